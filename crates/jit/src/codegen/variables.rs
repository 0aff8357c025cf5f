//! Variables of the function, and which of them live in memory.
//!
//! Where paths join, Cranelift makes each variable that the paths set an argument of the block. Code that is made
//! quickly then moves each argument on each edge, from stack memory to stack memory: these moves were two thirds of
//! such code. So in such code each variable has a word in a frame, and edges need not move it.

use super::fields::plain;
use super::{Gen, SlotVar};
use cranelift_codegen::ir::{
    InstBuilder, StackSlot, StackSlotData, StackSlotKind, Type as ClifType, Value, types,
};
use cranelift_frontend::{FunctionBuilder, Variable};
use millrace_midend::facts::{Cursor, HeaderPlace};
use millrace_midend::liveness::{Live, Set, has_storage};
use millrace_midend::specialise::{NodeId, Specialised};
use millrace_pipeline::entity::{EntityRef, SecondaryMap};
use millrace_pipeline::*;

/// A variable of the function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Var {
    /// Cranelift finds out which value it has.
    Value(Variable),
    /// It has a word of the frame, of that type, at that many bytes.
    Kept(ClifType, u32),
}

/// Most bytes of the frame: of programs with more variables the last ones have none. Threads have stacks of megabytes.
const MAX_FRAME: u32 = 1 << 16;

impl Var {
    pub(super) fn is_kept(self) -> bool {
        matches!(self, Var::Kept(..))
    }
}

/// What edges bring from node to node: the variables that are kept in memory, if any are.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// Those that all nodes have, of the packet and its place.
    always: bool,
    live: Live,
    /// Headers by whether their flags or their pointers are brought.
    flags: Set,
    pointers: Set,
    cursor: bool,
}

impl Brought {
    /// What is brought to nodes, of which that is live.
    pub(super) fn new(
        program: &Program,
        special: &Specialised,
        live: &SecondaryMap<NodeId, Live>,
    ) -> Brought {
        let mut brought = Brought { always: true, ..Brought::default() };
        for node in &special.order {
            let entry = &special.nodes[*node].entry;
            let mut here = live[*node].clone();
            here.slots.retain(|slot| has_storage(program, entry, SlotId::new(slot)));
            brought.live.extend(&here);
            brought.cursor |= !matches!(entry.cursor, Cursor::At(_));
            for (header, place) in entry.places.iter().enumerate() {
                match place {
                    HeaderPlace::Unknown => brought.flags.insert(header),
                    HeaderPlace::Pointed | HeaderPlace::Maybe => brought.pointers.insert(header),
                    HeaderPlace::Invalid | HeaderPlace::At(_) | HeaderPlace::Stored => {}
                }
            }
        }
        brought
    }
}

/// The variables that are no slots.
pub(super) struct Vars {
    /// The packet's place counted from the end of the last one, in bytes: below 0.
    pub(super) before_end: Var,
    pub(super) context: Var,
    pub(super) data: Var,
    pub(super) len: Var,
    pub(super) cursor: Var,
    pub(super) parsed: Var,
    /// The port to send to, or the parser's error.
    pub(super) out: Var,
    /// The record of the action that the last lookup gave, and its slot (0: a miss).
    pub(super) record: Var,
    pub(super) found: Var,
    pub(super) steps: Var,
    pub(super) valid: Vec<Var>,
    pub(super) pointer: Vec<Var>,
    /// The entry (plus one) that each table with direct objects hit last.
    pub(super) entries: Vec<Var>,
}

/// Gives variables their places.
pub(super) struct Places<'a, 'b> {
    b: &'a mut FunctionBuilder<'b>,
    /// Those that are kept in memory.
    kept: Brought,
    frame: StackSlot,
    /// Bytes of the frame.
    bytes: u32,
}

impl<'a, 'b> Places<'a, 'b> {
    pub(super) fn new(b: &'a mut FunctionBuilder<'b>, kept: Brought) -> Places<'a, 'b> {
        let frame = b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 3));
        Places { b, kept, frame, bytes: 0 }
    }

    /// The variables that are no slots.
    pub(super) fn vars(&mut self, program: &Program) -> Vars {
        let all = self.kept.always;
        let headers = 0..program.headers.len();
        Vars {
            before_end: self.word(all),
            context: self.word(all),
            data: self.word(all),
            len: self.word(all),
            cursor: self.word(self.kept.cursor),
            parsed: self.word(self.kept.live.parsed),
            out: self.word(self.kept.live.out),
            // A dispatch follows its lookup at once.
            record: self.word(false),
            found: self.word(false),
            steps: self.word(self.kept.live.steps),
            valid: headers.clone().map(|header| self.word(self.kept.flags.contains(header))).collect(),
            pointer: headers.map(|header| self.word(self.kept.pointers.contains(header))).collect(),
            entries: (0..program.tables.len())
                .map(|table| self.word(self.kept.live.entries.contains(table)))
                .collect(),
        }
    }

    /// The variables of slots.
    pub(super) fn slots(&mut self, program: &Program) -> SecondaryMap<SlotId, Option<SlotVar>> {
        let mut slots = SecondaryMap::new();
        for (id, slot) in &program.slots {
            let kept = self.kept.live.slots.contains(id.index());
            slots[id] = Some(match slot.ty {
                Type::Bool => SlotVar::Flag(self.place(types::I8, kept)),
                Type::Bits(..=64) => SlotVar::One(self.word(kept)),
                Type::Bits(65..=128) => SlotVar::Two(self.word(kept), self.word(kept)),
                Type::Bits(_) | Type::Varbit(_) => SlotVar::Memory,
            });
        }
        slots
    }

    /// Makes the frame of what is kept; gives its address.
    pub(super) fn frame(self) -> Value {
        self.b.func.sized_stack_slots[self.frame].size = self.bytes;
        self.b.ins().stack_addr(types::I64, self.frame, 0)
    }

    fn word(&mut self, kept: bool) -> Var {
        self.place(types::I64, kept)
    }

    fn place(&mut self, ty: ClifType, kept: bool) -> Var {
        if !kept || self.bytes >= MAX_FRAME {
            return Var::Value(self.b.declare_var(ty));
        }
        let at = self.bytes;
        self.bytes += 8;
        Var::Kept(ty, at)
    }
}

impl Gen<'_> {
    /// The value of a variable.
    pub(super) fn get(&mut self, var: Var) -> Value {
        match var {
            Var::Value(variable) => self.b.use_var(variable),
            Var::Kept(ty, at) => match self.cache.kept.get(&at) {
                Some(value) => *value,
                None => {
                    let value = self.b.ins().load(ty, plain(), self.frame, at as i32);
                    self.cache.kept.insert(at, value);
                    value
                }
            },
        }
    }

    /// Gives a variable a value.
    pub(super) fn set(&mut self, var: Var, value: Value) {
        match var {
            Var::Value(variable) => self.b.def_var(variable, value),
            Var::Kept(_, at) => {
                self.b.ins().store(plain(), value, self.frame, at as i32);
                self.cache.kept.insert(at, value);
            }
        }
    }
}
