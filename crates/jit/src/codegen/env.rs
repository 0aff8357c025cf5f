//! The environment of a batch ([`abi::Env`]), and a packet's place in the batch.

use super::fields::{constant_memory, plain};
use super::{Gen, PLACE};
use crate::abi;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::mem::offset_of;

/// What a loop over packets uses all the time, from [`abi::Env`]. Each loop loads it again, so that no
/// register holds it across the lookups between loops.
#[derive(Clone, Copy)]
pub(super) struct LoopEnv {
    memory: Value,
    pub(super) stage: Value,
    pub(super) tables: Value,
    places_end: Value,
    outcomes_end: Value,
}

impl LoopEnv {
    /// Before the first loop, where nothing of it is used.
    pub(super) fn unknown(value: Value) -> LoopEnv {
        LoopEnv { memory: value, stage: value, tables: value, places_end: value, outcomes_end: value }
    }
}

impl Gen<'_> {
    /// Loads what the loop that starts here uses all the time.
    pub(super) fn load_loop_env(&mut self) {
        let mut load = |field: usize| self.b.ins().load(types::I64, plain(), self.env, field as i32);
        self.loop_env = LoopEnv {
            memory: load(offset_of!(abi::Env, memory)),
            stage: load(offset_of!(abi::Env, stage)),
            tables: load(offset_of!(abi::Env, tables)),
            places_end: load(offset_of!(abi::Env, places_end)),
            outcomes_end: load(offset_of!(abi::Env, outcomes_end)),
        };
    }

    /// A field of the environment; it is the same for all packets of the batch.
    pub(super) fn env_field(&mut self, field: usize) -> Value {
        self.b.ins().load(types::I64, constant_memory(), self.env, field as i32)
    }

    /// Works the packet's context out from the packet's place in the batch. Cranelift moves that to where it is needed,
    /// which is seldom.
    pub(super) fn find_context(&mut self) {
        let distance = self.distance();
        // Both sizes are multiples of that of a place.
        let size = self.int(self.s.layout.size() as u64 / u64::from(PLACE));
        let offset = self.b.ins().imul(distance, size);
        let contexts = self.env_field(offset_of!(abi::Env, contexts));
        let context = self.b.ins().iadd(contexts, offset);
        self.set(self.vars.context, context);
    }

    /// At the start of a packet: where it is.
    pub(super) fn load_packet(&mut self) {
        let before_end = self.get(self.vars.before_end);
        let place = self.b.ins().iadd(self.loop_env.places_end, before_end);
        let at = self.b.ins().uload32(constant_memory(), place, 0);
        let len = self.b.ins().uload32(constant_memory(), place, 4);
        let data = self.b.ins().iadd(self.loop_env.memory, at);
        self.set(self.vars.data, data);
        self.set(self.vars.len, len);
        if !self.s.stays {
            self.packet_moved();
        }
    }

    /// The packet is somewhere else now, or has another length.
    pub(super) fn packet_moved(&mut self) {
        let (moved, data, len) = (self.moved(), self.data(), self.length());
        self.store_word(data, moved, offset_of!(abi::Moved, data) as u32);
        self.store_word(len, moved, offset_of!(abi::Moved, len) as u32);
    }

    /// Finds the packet where it was moved to.
    pub(super) fn reload_packet(&mut self) {
        let moved = self.moved();
        let data = self.load_word(types::I64, moved, offset_of!(abi::Moved, data) as u32);
        let len = self.load_word(types::I64, moved, offset_of!(abi::Moved, len) as u32);
        self.set(self.vars.data, data);
        self.set(self.vars.len, len);
    }

    /// The packet's [`abi::Moved`].
    pub(super) fn moved(&mut self) -> Value {
        let distance = self.distance();
        let times = self.shl(distance, (size_of::<abi::Moved>() as u32 / PLACE).trailing_zeros());
        let all = self.env_field(offset_of!(abi::Env, moved));
        self.b.ins().iadd(all, times)
    }

    /// The packet's place counted from the first one, in bytes.
    pub(super) fn distance(&mut self) -> Value {
        let before_end = self.get(self.vars.before_end);
        let bytes = self.env_field(offset_of!(abi::Env, places_bytes));
        self.b.ins().iadd(before_end, bytes)
    }

    /// Where the packet's outcome goes.
    pub(super) fn outcome(&mut self) -> Value {
        const { assert!(size_of::<abi::Outcome>() as u32 == PLACE) };
        let before_end = self.get(self.vars.before_end);
        self.b.ins().iadd(self.loop_env.outcomes_end, before_end)
    }

    /// The port of arrival.
    pub(super) fn port(&mut self) -> Value {
        self.env_field(offset_of!(abi::Env, port))
    }
}
