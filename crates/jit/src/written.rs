//! What code may change of a packet: a bound that is read off the specialised graph.
//!
//! Who shows the same frame to a program again and again restores just that. Fields of headers at known places count with
//! the bytes that they lie in, moved headers with where they go; a header at a place that shows only at run time may be
//! anywhere in front of the cursor.

use crate::abi::{GROWTH, HEADROOM};
use crate::codegen::deparse::{self, Front};
use crate::flat::{Flat, Op, Term};
use crate::layout::type_width;
use crate::specialise::{NodeId, Special};
use crate::state::{Cursor, Place, State, number};
use millrace_pipeline::*;
use rustc_hash::FxHashMap;

/// The bytes around the start of a packet that code may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes in front of the packet, at most [`HEADROOM`].
    pub front: u32,
    /// Bytes of the packet, from its start; [`u32::MAX`]: all.
    pub behind: u32,
}

impl Written {
    /// Anything.
    pub const EVERYTHING: Written = Written { front: HEADROOM as u32, behind: u32::MAX };

    fn range(&mut self, start: i64, end: i64) {
        if start < end {
            self.front = self.front.max(u32::try_from(-start).unwrap_or(0));
            self.behind = self.behind.max(u32::try_from(end).unwrap_or(0));
        }
    }
}

/// What the code of a graph may change, and whether every packet stays where it is, with its length.
pub(crate) fn written(program: &Program, flat: &Flat, special: &Special) -> (Written, bool) {
    let reaches = reaches(program, special);
    let mut bound = Bound { program, written: Written::default(), reach: 0, moves: false };
    for (node, reach) in special.order.iter().zip(reaches) {
        let node = &special.nodes[*node];
        bound.reach = reach;
        let mut state = node.entry.clone();
        for op in &flat.blocks[node.block].ops {
            bound.op(op, &state);
            state.transfer(program, op, &|slot| special.tracked[slot]);
        }
        if let Term::Lookahead { dst, .. } = node.term {
            bound.slot(dst, &state);
        }
    }
    // Behind a deparser that moves the start of the packet, offsets count from elsewhere.
    let starts_elsewhere = bound.moves && flat_deparsers(flat) > 1;
    let written = if starts_elsewhere { Written::EVERYTHING } else { bound.written };
    (written, !bound.moves)
}

/// Reaches all of a packet, however long it is.
const ALL: u32 = u32::MAX;

/// How many bytes of the packet the cursor may have passed at the start of each node, of nodes in [`Special::order`].
fn reaches(program: &Program, special: &Special) -> Vec<u32> {
    let order = &special.order;
    let places: FxHashMap<NodeId, usize> = order.iter().enumerate().map(|(at, node)| (*node, at)).collect();
    let mut reaches = vec![0; order.len()];
    for at in 0..order.len() {
        let node = &special.nodes[order[at]];
        reaches[at] = match node.entry.cursor {
            Cursor::At(bits) => bits.div_ceil(8),
            // It came from a context.
            _ if at == 0 => ALL,
            Cursor::Byte | Cursor::Bit => reaches[at],
        };
        for (to, bits) in advances(program, &node.term) {
            let reach = bits.map_or(ALL, |bits| u32::try_from(bits.div_ceil(8)).unwrap_or(ALL));
            let reach = reach.saturating_add(reaches[at]);
            let Some(to) = places.get(&to).copied() else { continue };
            if to <= at
                && reach > reaches[to]
                && !matches!(special.nodes[order[to]].entry.cursor, Cursor::At(_))
            {
                // A loop that goes further each time.
                return vec![ALL; order.len()];
            }
            reaches[to] = reaches[to].max(reach);
        }
    }
    reaches
}

/// Where a node leads to, and the bits that the cursor advances on that way, if that shows.
fn advances(program: &Program, term: &Term<NodeId>) -> Vec<(NodeId, Option<u64>)> {
    let mut ways = Vec::new();
    term.for_each_target(&mut |to| ways.push((*to, Some(0))));
    let own = match term {
        Term::Extract { header, next, .. } => {
            Some((*next, Some(u64::from(program.headers[*header].fixed_bits))))
        }
        Term::ExtractVar { next, .. } => Some((*next, None)),
        Term::Advance { bits, next, .. } => Some((*next, number(bits))),
        _ => None,
    };
    ways.extend(own);
    ways
}

/// How many places of a graph put packets together.
fn flat_deparsers(flat: &Flat) -> usize {
    let ops = flat.blocks.values().flat_map(|block| &block.ops);
    ops.filter(|op| matches!(op, Op::Deparse { .. } | Op::FinishEmit { .. })).count()
}

struct Bound<'a> {
    program: &'a Program,
    written: Written,
    /// Headers are in front of that byte.
    reach: u32,
    /// Whether a deparser may move the start of the packet.
    moves: bool,
}

impl Bound<'_> {
    fn op(&mut self, op: &Op, state: &State) {
        if let Some(slot) = op.dst() {
            self.slot(slot, state);
        }
        match op {
            Op::Deparse { headers, in_place, .. } => {
                match deparse::moves(self.program, state, headers, *in_place) {
                    Some((moves, Front::At(start))) => {
                        for step in moves {
                            let to = start + i64::from(step.to);
                            let stays =
                                matches!(state.place(step.header), Place::At(at) if i64::from(at) == to);
                            if !stays {
                                self.written.range(to, to + i64::from(step.bytes));
                            }
                        }
                        self.moves |= start != 0;
                    }
                    Some((_, Front::BeforeCursor(_))) | None => self.put_together(state, *in_place),
                }
            }
            Op::FinishEmit { in_place, .. } => self.put_together(state, *in_place),
            _ => {}
        }
    }

    /// A slot is written.
    fn slot(&mut self, slot: SlotId, state: &State) {
        let Home::Header { header, offset } = self.program.slots[slot].home else { return };
        match state.place(header) {
            Place::At(at) => {
                let first = 8 * at + offset;
                let end = first + type_width(self.program.slots[slot].ty);
                self.written.range(i64::from(first / 8), i64::from(end.div_ceil(8)));
            }
            Place::Pointed | Place::Maybe => self.written.range(0, i64::from(self.reach)),
            Place::Invalid | Place::Stored | Place::Unknown => {}
        }
    }

    /// The runtime puts headers in front of the payload, or all in memory of its own.
    fn put_together(&mut self, state: &State, in_place: bool) {
        self.moves = true;
        let front = if in_place { GROWTH as i64 } else { 0 };
        let end = match state.cursor {
            Cursor::At(at) => at / 8,
            Cursor::Byte | Cursor::Bit => self.reach,
        };
        self.written.range(-front, i64::from(end).max(1));
    }
}
