//! What code may change of a packet: a bound that is read off the specialised graph.
//!
//! A caller that runs a program on the same frame many times restores only these bytes. Fields of headers at known
//! places count with the bytes that they lie in, moved headers with where they go; a header at a place that shows only
//! at run time may be anywhere before the cursor.

use crate::cfg::{Cfg, Op, Term};
use crate::deparse::{self, Front};
use crate::facts::{Cursor, Facts, HeaderPlace, number};
use crate::specialise::{NodeId, Specialised};
use crate::type_width;
use millrace_pipeline::*;
use rustc_hash::FxHashMap;

pub use millrace_frames::{Footprint, HEADROOM};

/// Adds the bytes from one to another, counted from the start of the packet.
fn extend(footprint: &mut Footprint, start: i64, end: i64) {
    if start < end {
        footprint.before = footprint.before.max(usize::try_from(-start).unwrap_or(0));
        footprint.within = footprint.within.max(usize::try_from(end).unwrap_or(0));
    }
}

/// What the code of a graph may change, and whether every packet stays where it is, with its length.
pub fn footprint(program: &Program, cfg: &Cfg, special: &Specialised) -> (Footprint, bool) {
    let reaches = reaches(program, special);
    let mut bound = Bound { program, footprint: Footprint::default(), reach: 0, moves: false };
    for (node, reach) in special.order.iter().zip(reaches) {
        let node = &special.nodes[*node];
        bound.reach = reach;
        let mut facts = node.entry.clone();
        for op in &cfg.blocks[node.block].ops {
            bound.op(op, &facts);
            facts.transfer(program, op, &|slot| special.tracked[slot]);
        }
        if let Term::Lookahead { dst, .. } = node.term {
            bound.slot(dst, &facts);
        }
    }
    // After a deparser that moves the start of the packet, offsets count from elsewhere.
    let starts_elsewhere = bound.moves && flat_deparsers(cfg) > 1;
    let footprint = if starts_elsewhere { Footprint::EVERYTHING } else { bound.footprint };
    (footprint, !bound.moves)
}

/// Reaches all of a packet, however long it is.
const ALL: u32 = u32::MAX;

/// How many bytes of the packet the cursor may have passed at the start of each node, of nodes in [`Specialised::order`].
fn reaches(program: &Program, special: &Specialised) -> Vec<u32> {
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
    let mut edges = Vec::new();
    term.for_each_target(&mut |to| edges.push((*to, Some(0))));
    let own = match term {
        Term::Extract { header, next, .. } => {
            Some((*next, Some(u64::from(program.headers[*header].fixed_bits))))
        }
        Term::ExtractVar { next, .. } => Some((*next, None)),
        Term::Advance { bits, next, .. } => Some((*next, number(bits))),
        _ => None,
    };
    edges.extend(own);
    edges
}

/// How many places of a graph put packets together.
fn flat_deparsers(cfg: &Cfg) -> usize {
    let ops = cfg.blocks.values().flat_map(|block| &block.ops);
    ops.filter(|op| matches!(op, Op::Deparse { .. } | Op::FinishEmit { .. })).count()
}

struct Bound<'a> {
    program: &'a Program,
    footprint: Footprint,
    /// Headers are before that byte.
    reach: u32,
    /// Whether a deparser may move the start of the packet.
    moves: bool,
}

impl Bound<'_> {
    fn op(&mut self, op: &Op, facts: &Facts) {
        if let Some(slot) = op.dst() {
            self.slot(slot, facts);
        }
        match op {
            Op::Inst(inst) if inst.rewrites(self.program) => {
                self.footprint = Footprint::EVERYTHING;
                self.moves = true;
            }
            Op::Deparse { headers, growth, .. } => {
                match deparse::moves(self.program, facts, headers, *growth) {
                    Some((moves, Front::At(start))) => {
                        for step in moves {
                            let to = start + i64::from(step.to);
                            let stays = matches!(facts.place(step.header), HeaderPlace::At(at) if i64::from(at) == to);
                            if !stays {
                                extend(&mut self.footprint, to, to + i64::from(step.bytes));
                            }
                        }
                        self.moves |= start != 0;
                    }
                    Some((_, Front::BeforeCursor(_))) | None => self.put_together(facts, *growth),
                }
            }
            Op::FinishEmit { growth, .. } => self.put_together(facts, *growth),
            _ => {}
        }
    }

    /// A slot is written.
    fn slot(&mut self, slot: SlotId, facts: &Facts) {
        let Home::Header { header, offset } = self.program.slots[slot].home else { return };
        match facts.place(header) {
            HeaderPlace::At(at) => {
                let first = 8 * at + offset;
                let end = first + type_width(self.program.slots[slot].ty);
                extend(&mut self.footprint, i64::from(first / 8), i64::from(end.div_ceil(8)));
            }
            HeaderPlace::Pointed | HeaderPlace::Maybe => {
                extend(&mut self.footprint, 0, i64::from(self.reach))
            }
            HeaderPlace::Invalid | HeaderPlace::Stored | HeaderPlace::Unknown => {}
        }
    }

    /// The runtime puts headers before the payload, or all in memory of its own.
    fn put_together(&mut self, facts: &Facts, growth: u32) {
        self.moves = true;
        let end = match facts.cursor {
            Cursor::At(at) => at / 8,
            Cursor::Byte | Cursor::Bit => self.reach,
        };
        extend(&mut self.footprint, -i64::from(growth), i64::from(end).max(1));
    }
}
