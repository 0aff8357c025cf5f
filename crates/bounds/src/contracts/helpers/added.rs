//! How many bytes a program can write: to hash them, and before the payload.

use crate::knowledge::Knowledge;
use millrace_pipeline::entity::SecondaryMap;
use millrace_pipeline::limits::MAX_PAYLOAD;
use millrace_pipeline::*;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that all headers together have at most.
pub(super) fn header_bytes(program: &Program) -> u64 {
    program.headers.keys().map(|header| bytes_of(program, header)).sum()
}

fn bytes_of(program: &Program, header: HeaderId) -> u64 {
    program.most_bits(header).div_ceil(8)
}

/// Whether all that is read and written of varying length begins at a byte, so that it is copied as it is: its own length is whole bytes.
pub(super) fn begins_at_bytes(program: &Program) -> bool {
    let mut varbits = program.slots.values().filter(|slot| matches!(slot.ty, Type::Varbit(_)));
    let headers = headers_are_whole(program)
        && varbits.all(|slot| match slot.home {
            Home::Header { offset, .. } => offset.is_multiple_of(8),
            Home::Metadata | Home::Local => true,
        });
    let hashes = instructions(program).all(|inst| match inst {
        Inst::Hash { data, .. } => hash_begins_at_bytes(program, data),
        _ => true,
    });
    headers && hashes
}

fn headers_are_whole(program: &Program) -> bool {
    program.headers.values().all(|header| header.fixed_bits.is_multiple_of(8))
}

/// Headers are whole bytes, and begin at one where they have a number of varying length.
fn hash_begins_at_bytes(program: &Program, data: &[DataItem]) -> bool {
    let mut bits = 0u64;
    data.iter().all(|item| {
        let (fixed, begins) = match item {
            DataItem::Value(value) => match value.ty(program) {
                Type::Bool => (1, false),
                Type::Bits(width) => (width.into(), false),
                Type::Varbit(_) => (0, true),
            },
            DataItem::Header(_) | DataItem::Payload => (0, true),
        };
        let is_whole = !begins || bits.is_multiple_of(8);
        bits += fixed;
        is_whole
    })
}

fn instructions(program: &Program) -> impl Iterator<Item = &Inst> {
    program.bodies.values().flat_map(|body| body.blocks.values()).flat_map(|block| &block.insts)
}

/// Bytes that the headers which a packet leaves with have at most beyond those that were read from it; none: that is not known. A header
/// that is written was read, and the cursor moved over it, or the program has made it valid. All must be whole bytes, as a packet whose
/// payload does not start at a byte does not keep its place. Of branches, and of the actions of a table, one is taken.
pub(super) fn bytes(program: &Program, knowledge: &Knowledge) -> Option<u64> {
    let mut emitted: BTreeMap<HeaderId, u64> = BTreeMap::new();
    for inst in instructions(program) {
        match inst {
            Inst::Advance { .. } => return None,
            Inst::Emit(header) => *emitted.entry(*header).or_default() += 1,
            _ => {}
        }
    }
    let once = emitted.values().all(|times| *times == 1);
    let made = Made { program, knowledge };
    let bodies = program.ingress.iter().chain(&program.egress);
    (headers_are_whole(program) && once).then(|| bodies.map(|body| made.by(&program.bodies[*body])).sum())
}

/// The headers that a packet gets on its path through the program.
struct Made<'a> {
    program: &'a Program,
    knowledge: &'a Knowledge,
}

impl Made<'_> {
    /// The most bytes that one run of a body makes: at most each of its headers once. Where no block is met twice, also at most the sum of
    /// the blocks on the longest path.
    fn by(&self, body: &Body) -> u64 {
        let mut headers = BTreeSet::new();
        body.blocks.values().for_each(|block| self.all_in(block, &mut headers));
        let each_once = headers.iter().map(|header| bytes_of(self.program, *header)).sum();
        if headers.is_empty() || body.has_loop() {
            return each_once;
        }
        // From the ends on: each block comes after its successors.
        let mut most: SecondaryMap<BlockId, u64> = SecondaryMap::new();
        for id in body.postorder() {
            let block = &body.blocks[id];
            let mut rest = 0;
            block.term.for_each_successor(&mut |next| rest = rest.max(most[next]));
            let own: u64 =
                block.insts.iter().filter_map(|inst| self.header_of(inst)).map(|(_, bytes)| bytes).sum();
            let of_actions = self.actions(block).map(|action| self.by(action)).max();
            most[id] = own + of_actions.unwrap_or(0) + rest;
        }
        most[body.entry].min(each_once)
    }

    /// The headers that a block, and all actions that it may run, make.
    fn all_in(&self, block: &millrace_pipeline::Block, headers: &mut BTreeSet<HeaderId>) {
        headers.extend(block.insts.iter().filter_map(|inst| self.header_of(inst)).map(|(header, _)| header));
        for action in self.actions(block) {
            action.blocks.values().for_each(|block| self.all_in(block, headers));
        }
    }

    /// What the table that a block applies may run. Actions apply no tables.
    fn actions(&self, block: &millrace_pipeline::Block) -> impl Iterator<Item = &Body> {
        let applied = match block.term {
            Terminator::Apply { table, .. } => Some(table),
            _ => None,
        };
        applied.into_iter().flat_map(move |table| {
            let listed = self.program.tables[table].actions.iter().enumerate();
            let run = listed.filter(move |(number, _)| self.knowledge.tables[table].may_run(*number));
            run.map(|(_, listed)| &self.program.bodies[self.program.actions[listed.action].body])
        })
    }

    /// The header that an instruction makes, or may make longer than it was read, and its bytes.
    fn header_of(&self, inst: &Inst) -> Option<(HeaderId, u64)> {
        let header = match inst {
            Inst::SetValid(header) => *header,
            Inst::Assign { dst, .. } => {
                match (&self.program.slots[*dst].ty, &self.program.slots[*dst].home) {
                    (Type::Varbit(_), Home::Header { header, .. }) => *header,
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some((header, bytes_of(self.program, header)))
    }
}

/// The most bytes of one hash.
pub(super) fn hashed_bytes(program: &Program) -> u64 {
    let of_item = |item: &DataItem| match item {
        DataItem::Value(value) => match value.ty(program) {
            Type::Bool => 8,
            Type::Bits(width) | Type::Varbit(width) => u64::from(width),
        },
        DataItem::Header(header) => 8 * bytes_of(program, *header),
        DataItem::Payload => 8 * MAX_PAYLOAD as u64,
    };
    let hashes = instructions(program).filter_map(|inst| match inst {
        Inst::Hash { data, .. } => Some(data.iter().map(of_item).sum::<u64>().div_ceil(8)),
        _ => None,
    });
    hashes.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::entity::PrimaryMap;

    /// A program with headers of 10, 20 and 300 bytes, of which the last has a number of varying length after `before` bits, with the blocks
    /// of its control.
    fn program(blocks: &str, before: u32) -> Program {
        let text = format!(
            "program p
errors (NoError)
ingress (c)
egress (d)
header h: t {{
    x: bit<8>
}}
header a: a_t {{
    x: bit<80>
}}
header b: b_t {{
    x: bit<160>
}}
header v: v_t {{
    x: bit<{before}>
    y: varbit<2384>
    z: bit<{}>
}}
metadata sum: bit<16>
body control c {{
{blocks}
}}
body deparser d {{
block0:
    emit h
    emit a
    emit b
    emit v
    end
}}
",
            16 - before
        );
        let program = millrace_pipeline::text::parse(&text).unwrap();
        millrace_pipeline::verify(&program).unwrap();
        program
    }

    fn added(blocks: &str) -> Option<u64> {
        let knowledge = Knowledge { tables: PrimaryMap::new(), is_shared: false, memory: 0 };
        bytes(&program(blocks, 8), &knowledge)
    }

    #[test]
    fn of_two_branches_one_makes_headers() {
        let branch = "block0:\n branch eq(h.x, 8w0), block1, block2\nblock1:\n set_valid a\n goto block3\nblock2:\n set_valid b\n goto block3\n";
        assert_eq!(added(&format!("{branch}block3:\n end")), Some(20));
        assert_eq!(added(&format!("{branch}block3:\n set_valid v\n end")), Some(320));
        // Once more is no more: all together are 30 bytes.
        assert_eq!(added(&format!("{branch}block3:\n set_valid a\n set_valid b\n end")), Some(30));
    }

    #[test]
    fn a_loop_makes_each_header_once() {
        let turns = "block0:\n branch eq(h.x, 8w0), block1, block2\nblock1:\n set_valid a\n h.x = add(h.x, 8w1)\n goto block0\nblock2:\n set_valid b\n end";
        assert_eq!(added(turns), Some(30));
    }

    #[test]
    fn a_number_of_varying_length_may_grow() {
        assert_eq!(added("block0:\n v.y = v.y\n end"), Some(300));
        assert_eq!(added("block0:\n end"), Some(0));
    }

    #[test]
    fn what_is_copied_begins_at_a_byte() {
        let hash = |data: &str| format!("block0:\n hash sum, csum16, ({data})\n end");
        for (blocks, before, is_so) in [
            ("block0:\n end", 8, true),
            ("block0:\n end", 4, false),
            (&hash("h.x, v.y, 8w1"), 8, true),
            (&hash("4w1, h.x, 4w1, header v, payload"), 8, true),
            (&hash("4w1, v.y, 4w1"), 8, false),
            (&hash("7w1, payload"), 8, false),
        ] {
            assert_eq!(begins_at_bytes(&program(blocks, before)), is_so, "{blocks} {before}");
        }
    }
}
