//! The packet at hand: its place in the batch, its variables, and the environment of the batch ([`abi::Env`]).

use super::PLACE;
use super::cache::Cache;
use super::emitter::Emitter;
use super::fields::{constant_memory, plain};
use super::variables::{PacketVar, Var, Vars};
use crate::abi;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use millrace_pipeline::TableId;
use millrace_pipeline::entity::EntityRef;
use std::mem::offset_of;

/// What a loop over packets uses all the time, from [`abi::Env`]. Each loop loads it again, so that no
/// register holds it across the lookups between loops.
#[derive(Clone, Copy)]
pub(super) struct LoopEnv {
    memory: Value,
    pub(super) stage: Value,
    tables: Value,
    places_end: Value,
    outcomes_end: Value,
}

impl LoopEnv {
    /// Before the first loop, where nothing of it is used.
    fn unknown(value: Value) -> LoopEnv {
        LoopEnv { memory: value, stage: value, tables: value, places_end: value, outcomes_end: value }
    }
}

/// Access to the packet that the current code is for: variables, the packet's bytes ([`super::fields`]), and what surrounds
/// its batch.
///
/// All reads and writes of variables and of the packet's bytes go through here, so that `cache` is right: what it has of
/// them is what a load at this point of the code would give. `loop_env` is that of the loop which the code is in.
pub(super) struct PacketAccess<'a> {
    pub(super) e: Emitter<'a>,
    pub(super) cache: Cache,
    pub(super) loop_env: LoopEnv,
    /// The address of the environment.
    env: Value,
    vars: Vars,
    /// Where variables are that are kept in memory.
    frame: Value,
    /// The distance of two contexts, in places.
    context_places: u64,
    /// Whether packets stay where they are.
    stays: bool,
}

impl<'a> PacketAccess<'a> {
    pub(super) fn new(
        e: Emitter<'a>,
        env: Value,
        (vars, frame): (Vars, Value),
        context_bytes: usize,
        stays: bool,
    ) -> PacketAccess<'a> {
        PacketAccess {
            e,
            cache: Cache::default(),
            loop_env: LoopEnv::unknown(env),
            env,
            vars,
            frame,
            // Both sizes are multiples of that of a place.
            context_places: context_bytes as u64 / u64::from(PLACE),
            stays,
        }
    }

    /// The value of a variable.
    pub(super) fn get(&mut self, which: PacketVar) -> Value {
        self.get_var(self.vars.of(which))
    }

    /// Gives a variable a value.
    pub(super) fn set(&mut self, which: PacketVar, value: Value) {
        self.set_var(self.vars.of(which), value);
    }

    /// Whether a variable is kept in memory.
    pub(super) fn is_kept(&self, which: PacketVar) -> bool {
        self.vars.of(which).is_kept()
    }

    /// What a variable has depends on the path.
    pub(super) fn forget(&mut self, which: PacketVar) {
        self.cache.forget_var(self.vars.of(which));
    }

    /// As [`PacketAccess::get`], also for variables of slots.
    pub(super) fn get_var(&mut self, var: Var) -> Value {
        match var {
            Var::Value(variable) => self.e.b.use_var(variable),
            Var::Kept(ty, at) => match self.cache.kept.get(&at) {
                Some(value) => *value,
                None => {
                    let value = self.e.ins().load(ty, plain(), self.frame, at as i32);
                    self.cache.kept.insert(at, value);
                    value
                }
            },
        }
    }

    /// As [`PacketAccess::set`], also for variables of slots.
    pub(super) fn set_var(&mut self, var: Var, value: Value) {
        match var {
            Var::Value(variable) => self.e.b.def_var(variable, value),
            Var::Kept(_, at) => {
                self.e.ins().store(plain(), value, self.frame, at as i32);
                self.cache.kept.insert(at, value);
            }
        }
    }

    /// A field of the environment; it is the same for all packets of the batch.
    pub(super) fn env_field(&mut self, field: usize) -> Value {
        self.e.ins().load(types::I64, constant_memory(), self.env, field as i32)
    }

    /// Loads what the loop that starts here uses all the time.
    pub(super) fn load_loop_env(&mut self) {
        let mut load = |field: usize| self.e.ins().load(types::I64, plain(), self.env, field as i32);
        self.loop_env = LoopEnv {
            memory: load(offset_of!(abi::Env, packets.memory)),
            stage: load(offset_of!(abi::Env, stage)),
            tables: load(offset_of!(abi::Env, tables)),
            places_end: load(offset_of!(abi::Env, packets.places_end)),
            outcomes_end: load(offset_of!(abi::Env, results.outcomes_end)),
        };
    }

    /// A field of what the environment says of a table; the same for the whole batch.
    pub(super) fn table_field(&mut self, table: TableId, field: usize) -> Value {
        let tables = self.loop_env.tables;
        let at = table.index() * size_of::<abi::TableEnv>() + field;
        self.e.ins().load(types::I64, plain(), tables, at as i32)
    }

    /// The address of [`PacketAccess::table_field`].
    pub(super) fn table_address(&mut self, table: TableId, field: usize) -> Value {
        let at = table.index() * size_of::<abi::TableEnv>() + field;
        let tables = self.loop_env.tables;
        self.e.plus(tables, at as i64)
    }

    /// Works the packet's context out from the packet's place in the batch. Cranelift moves that to where it is needed,
    /// which is seldom.
    pub(super) fn find_context(&mut self) {
        let distance = self.distance();
        let size = self.e.int(self.context_places);
        let offset = self.e.ins().imul(distance, size);
        let contexts = self.env_field(offset_of!(abi::Env, contexts));
        let context = self.e.ins().iadd(contexts, offset);
        self.set(PacketVar::Context, context);
    }

    /// At the start of a packet: where it is.
    pub(super) fn load_packet(&mut self) {
        let before_end = self.get(PacketVar::BeforeEnd);
        let place = self.e.ins().iadd(self.loop_env.places_end, before_end);
        let at = self.e.ins().uload32(constant_memory(), place, 0);
        let len = self.e.ins().uload32(constant_memory(), place, 4);
        let data = self.e.ins().iadd(self.loop_env.memory, at);
        self.set(PacketVar::Data, data);
        self.set(PacketVar::Len, len);
        if !self.stays {
            self.packet_moved();
        }
    }

    /// Asks for the frame that comes as far after the batch as this packet is in it.
    pub(super) fn ask_ahead(&mut self) {
        let memory = self.env_field(offset_of!(abi::Env, ahead.memory));
        let end = self.env_field(offset_of!(abi::Env, ahead.places_end));
        let before_end = self.get(PacketVar::BeforeEnd);
        let place = self.e.ins().iadd(end, before_end);
        let at = self.e.ins().uload32(constant_memory(), place, 0);
        let frame = self.e.ins().iadd(memory, at);
        self.e.prefetch(frame);
    }

    /// At the start of another loop for a packet: where it is by then.
    pub(super) fn find_packet(&mut self) {
        match self.stays {
            true => self.load_packet(),
            false => self.reload_packet(),
        }
    }

    /// The packet is somewhere else now, or has another length.
    pub(super) fn packet_moved(&mut self) {
        let (moved, data, len) = (self.moved(), self.data(), self.length());
        self.e.store_word(data, moved, offset_of!(abi::Moved, data) as u32);
        self.e.store_word(len, moved, offset_of!(abi::Moved, len) as u32);
    }

    /// Finds the packet where it was moved to.
    pub(super) fn reload_packet(&mut self) {
        let moved = self.moved();
        let data = self.e.load_word(types::I64, moved, offset_of!(abi::Moved, data) as u32);
        let len = self.e.load_word(types::I64, moved, offset_of!(abi::Moved, len) as u32);
        self.set(PacketVar::Data, data);
        self.set(PacketVar::Len, len);
    }

    /// The packet's [`abi::Moved`].
    pub(super) fn moved(&mut self) -> Value {
        let distance = self.distance();
        let times = self.e.shl(distance, (size_of::<abi::Moved>() as u32 / PLACE).trailing_zeros());
        let all = self.env_field(offset_of!(abi::Env, results.moved));
        self.e.ins().iadd(all, times)
    }

    /// The packet's place counted from the first one, in bytes.
    fn distance(&mut self) -> Value {
        let before_end = self.get(PacketVar::BeforeEnd);
        let bytes = self.env_field(offset_of!(abi::Env, packets.places_bytes));
        self.e.ins().iadd(before_end, bytes)
    }

    /// Where the packet's outcome goes.
    pub(super) fn outcome(&mut self) -> Value {
        const { assert!(size_of::<abi::Outcome>() as u32 == PLACE) };
        let before_end = self.get(PacketVar::BeforeEnd);
        self.e.ins().iadd(self.loop_env.outcomes_end, before_end)
    }

    /// The port of arrival.
    pub(super) fn port(&mut self) -> Value {
        self.env_field(offset_of!(abi::Env, port))
    }

    /// The first argument of helpers that need the program's objects.
    pub(super) fn host(&mut self) -> Value {
        self.e.ins().load(types::I64, constant_memory(), self.env, offset_of!(abi::Env, host) as i32)
    }

    /// The time at which the batch is worked on.
    pub(super) fn now(&mut self) -> Value {
        self.env_field(offset_of!(abi::Env, times.now_ns))
    }

    /// The packet's time of arrival.
    pub(super) fn arrival(&mut self) -> Value {
        const { assert!(size_of::<u64>() as u32 == PLACE) };
        let before_end = self.get(PacketVar::BeforeEnd);
        let times_end = self.env_field(offset_of!(abi::Env, times.end));
        let time = self.e.ins().iadd(times_end, before_end);
        self.e.ins().load(types::I64, constant_memory(), time, 0)
    }

    /// The bytes of the packet.
    pub(super) fn length(&mut self) -> Value {
        self.get(PacketVar::Len)
    }

    /// The packet's context.
    pub(super) fn context(&mut self) -> Value {
        self.get(PacketVar::Context)
    }

    pub(super) fn data(&mut self) -> Value {
        self.get(PacketVar::Data)
    }
}
