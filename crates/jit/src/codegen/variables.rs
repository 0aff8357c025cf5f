//! Variables of the function, and which of them live in memory.
//!
//! Where paths join, Cranelift makes each variable that the paths set an argument of the block. Code that is made
//! quickly then moves each argument on each edge, from stack memory to stack memory: these moves were two thirds of
//! such code. So in such code each variable has a word in a frame, and edges need not move it.

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
pub(super) enum Var {
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

/// A variable that is no slot, by what it holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum PacketVar {
    /// The packet's place counted from the end of the last one, in bytes: below 0.
    BeforeEnd,
    Context,
    Data,
    Len,
    Cursor,
    Parsed,
    /// The port to send to, or the parser's error.
    Out,
    /// The ports that copies are still to come for.
    ToCome,
    /// The port that a copy is for.
    Copy,
    /// The record of the action that the last lookup gave.
    Record,
    /// The slot of that record (0: a miss).
    Found,
    Steps,
    /// Whether a header is valid.
    Valid(HeaderId),
    /// Where a header is.
    Pointer(HeaderId),
    /// The entry (plus one) that a table with direct objects hit last.
    Entry(TableId),
}

/// The variables that are no slots, as [`PacketVar`] names them.
pub(super) struct Vars {
    before_end: Var,
    context: Var,
    data: Var,
    len: Var,
    cursor: Var,
    parsed: Var,
    out: Var,
    /// The ports to come and the port of a copy.
    copies: (Var, Var),
    /// The record and the slot that the last lookup gave.
    result: (Var, Var),
    steps: Var,
    /// For each header whether it is valid, and where it is.
    headers: Vec<(Var, Var)>,
    entries: Vec<Var>,
}

impl Vars {
    pub(super) fn of(&self, which: PacketVar) -> Var {
        match which {
            PacketVar::BeforeEnd => self.before_end,
            PacketVar::Context => self.context,
            PacketVar::Data => self.data,
            PacketVar::Len => self.len,
            PacketVar::Cursor => self.cursor,
            PacketVar::Parsed => self.parsed,
            PacketVar::Out => self.out,
            PacketVar::ToCome => self.copies.0,
            PacketVar::Copy => self.copies.1,
            PacketVar::Record => self.result.0,
            PacketVar::Found => self.result.1,
            PacketVar::Steps => self.steps,
            PacketVar::Valid(header) => self.headers[header.index()].0,
            PacketVar::Pointer(header) => self.headers[header.index()].1,
            PacketVar::Entry(table) => self.entries[table.index()],
        }
    }
}

/// The variable of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlotVar {
    Flag(Var),
    One(Var),
    Two(Var, Var),
    /// In the context.
    Memory,
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
        let mut vars = Vars {
            before_end: self.word(all),
            context: self.word(all),
            data: self.word(all),
            len: self.word(all),
            cursor: self.word(self.kept.cursor),
            parsed: self.word(self.kept.live.parsed),
            out: self.word(self.kept.live.out),
            // Of packets that are not to be copied no edge brings them.
            copies: (self.word(false), self.word(false)),
            // A dispatch follows its lookup at once.
            result: (self.word(false), self.word(false)),
            steps: self.word(self.kept.live.steps),
            headers: Vec::new(),
            entries: Vec::new(),
        };
        let headers = 0..program.headers.len();
        let valid: Vec<Var> =
            headers.clone().map(|header| self.word(self.kept.flags.contains(header))).collect();
        let pointers = headers.map(|header| self.word(self.kept.pointers.contains(header)));
        vars.headers = valid.into_iter().zip(pointers).collect();
        vars.entries = (0..program.tables.len())
            .map(|table| self.word(self.kept.live.entries.contains(table)))
            .collect();
        vars
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
