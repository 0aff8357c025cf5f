//! How the code for bursts looks its tables up: inline by loads or by a call, packet by packet or staged, which means for the
//! packets of a burst together. Packet by packet wins where a table is in the nearest caches, staged where its memory has to
//! be waited for, and where one call answers many packets at once.

use crate::order::Order;
use millrace_jit::{Options, Shape, shapes};
use millrace_pipeline::*;
use millrace_state::State;

/// From this many bytes on that lookups touch, a table that is looked up by loads is staged.
const STAGED_BYTES: usize = 192 << 10;
/// What a lookup of an entry touches at least: a cache line.
const LINE: usize = 64;

/// The best options for the tables as they are.
pub(crate) fn choose(program: &Program, order: Order, state: &mut State) -> Options {
    let shapes = shapes(state);
    let is_large = |table: &TableId| {
        let entries = state.entry_count(*table) as usize;
        match shapes.get(table.as_u32() as usize).copied().unwrap_or_default() {
            Shape::Call => entries > 0,
            _ => state.table(*table).memory_bytes().min(entries * LINE) > STAGED_BYTES,
        }
    };
    // Packets of a burst overtake each other where one does not wait and another does.
    let staged = match order.is_without_memory {
        true => in_order(program).into_iter().filter(is_large).collect(),
        false => Vec::new(),
    };
    Options { staged, shapes, ..Options::default() }
}

/// Whether two options give the same code.
pub(crate) fn are_same(one: &Options, other: &Options) -> bool {
    one.staged == other.staged && one.shapes == other.shapes
}

/// The tables of a program in the order in which packets come to them: staged in any other order they would not all be.
fn in_order(program: &Program) -> Vec<TableId> {
    let mut tables = Vec::new();
    for body in program.ingress.iter().chain(&program.egress) {
        let body = &program.bodies[*body];
        for block in body.postorder().into_iter().rev() {
            if let Terminator::Apply { table, .. } = body.blocks[block].term
                && !tables.contains(&table)
            {
                tables.push(table);
            }
        }
    }
    tables
}
