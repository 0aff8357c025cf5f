//! Where things are in memory: the storage of a packet in its context. (Action data lie in records of the tables.)

use millrace_pipeline::entity::{EntityRef, SecondaryMap};
use millrace_pipeline::*;
use std::collections::BTreeSet;

/// The layout of a packet's context: the storage that it has where control leaves compiled code.
///
/// In this order, each at a multiple of 8 bytes: the cursor (bits), the bits of all valid headers after the parser, the
/// steps of the body, those of all bodies whose steps are counted, a flag for each header, the latest entry (plus one; 0: none) of each table, a
/// pointer for each header, the bytes of headers that the program may make (one after another, with 8 bytes after the
/// last), and the slots: numbers in limbs of 64 bits, the lowest first; varbits as their length in bits
/// and their bytes in network order.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) valid: u32,
    pub(crate) entries: u32,
    pub(crate) pointers: u32,
    /// Where a header that the program made lies as in a packet.
    pub(crate) made: SecondaryMap<HeaderId, u32>,
    pub(crate) slots: SecondaryMap<SlotId, u32>,
    /// Fields of varying length, with their headers.
    pub(crate) varbits: Vec<(HeaderId, SlotId)>,
    size: u32,
}

/// Offset of the cursor.
pub(crate) const CURSOR: u32 = 0;
/// Offset of the bits of headers after the parser.
pub(crate) const PARSED: u32 = 8;
/// Offset of the steps of the body.
pub(crate) const STEPS: u32 = 16;
/// Offset of the steps that bodies have taken whose steps are counted.
pub(crate) const TAKEN: u32 = 24;
/// The largest context, in bytes.
pub const MAX_CONTEXT: u32 = 1 << 24;

impl Layout {
    /// The layout for a program; none when a context would be larger than [`MAX_CONTEXT`].
    pub fn new(program: &Program) -> Option<Layout> {
        let valid = 32;
        let entries = align(valid + program.headers.len() as u32, 8);
        let pointers = align(entries + 4 * program.tables.len() as u32, 8);
        let mut at = pointers + 8 * program.headers.len() as u32;
        let mut made = SecondaryMap::new();
        for header in made_headers(program) {
            made[header] = at;
            at = at.checked_add(program.headers[header].fixed_bits.div_ceil(8))?;
        }
        // An access may reach beyond the last one.
        at = align(at.checked_add(8)?, 8);
        let mut slots = SecondaryMap::with_capacity(program.slots.len());
        for (id, slot) in &program.slots {
            slots[id] = at;
            at = at.checked_add(slot_bytes(slot.ty)).filter(|at| *at <= MAX_CONTEXT)?;
        }
        let mut varbits = Vec::new();
        for (header, described) in &program.headers {
            let is_varbit = |field: &SlotId| matches!(program.slots[*field].ty, Type::Varbit(_));
            varbits.extend(described.fields.iter().copied().filter(is_varbit).map(|field| (header, field)));
        }
        Some(Layout { valid, entries, pointers, made, slots, varbits, size: align(at, 64) })
    }

    /// Bytes of a context.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    pub(crate) fn valid_at(&self, header: HeaderId) -> u32 {
        self.valid + header.index() as u32
    }

    pub(crate) fn pointer_at(&self, header: HeaderId) -> u32 {
        self.pointers + 8 * header.index() as u32
    }

    pub(crate) fn entry_at(&self, table: TableId) -> u32 {
        self.entries + 4 * table.index() as u32
    }
}

/// The headers that a program may make valid, apart from the headers that it parses.
fn made_headers(program: &Program) -> BTreeSet<HeaderId> {
    let insts = program.bodies.values().flat_map(|body| body.blocks.values()).flat_map(|block| &block.insts);
    insts.filter_map(|inst| if let Inst::SetValid(header) = inst { Some(*header) } else { None }).collect()
}

/// Bytes of a slot in a context.
pub(crate) fn slot_bytes(ty: Type) -> u32 {
    match ty {
        Type::Bool => 8,
        Type::Bits(width) => 8 * width.div_ceil(64),
        Type::Varbit(width) => 8 + align(width.div_ceil(8), 8),
    }
}

fn align(at: u32, to: u32) -> u32 {
    at.div_ceil(to) * to
}
