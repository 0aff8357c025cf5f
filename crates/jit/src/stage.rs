//! The memory of staged tables: what waits for a lookup of the whole batch.

use crate::abi::Shape;
use millrace_midend::{limbs, type_width};
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;

use millrace_frames::MAX_BATCH;
/// Most sums that are kept for a packet while it waits.
pub(crate) const MAX_SUMS: usize = 2;

/// Where things are in the stage memory, for one table.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The number of the loop after the lookup.
    pub(crate) phase: u32,
    /// Whether what a lookup loads first is asked for when a packet starts to wait.
    pub(crate) is_far: bool,
    /// Whether each packet does its own lookup, by loads, when it goes on. What these load was asked for when the packet
    /// started to wait. Else one call looks all keys up before the loop.
    pub(crate) by_loads: bool,
    /// `u32` each: the place of the waiting packet counted from the end of the last one, where it goes on, the action
    /// slot, the entry.
    pub(crate) waiting: u32,
    pub(crate) resume: u32,
    pub(crate) slots: u32,
    pub(crate) entries: u32,
    /// The limbs of keys and of selector inputs. For lookups by loads a key is a `u32`.
    pub(crate) keys: u32,
    pub(crate) inputs: u32,
    /// Sums over the packet that are kept while it waits: [`MAX_SUMS`] arrays of `u64`.
    pub(crate) sums: u32,
    /// Where the next table may start.
    end: u32,
}

impl Stage {
    fn new(
        program: &Program,
        table: &Table,
        phase: u32,
        (is_far, by_loads): (bool, bool),
        start: u32,
    ) -> Stage {
        let width: u32 = table.keys.iter().map(|key| type_width(key.value.ty(program))).sum();
        let inputs: usize =
            table.selector_inputs.iter().map(|input| limbs(type_width(input.ty(program)))).sum();
        let batch = MAX_BATCH as u32;
        let waiting = start;
        let resume = waiting + 4 * batch;
        let slots = resume + 4 * batch;
        let entries = slots + 4 * batch;
        let keys = entries + 4 * batch;
        let inputs_at = keys + 8 * batch * limbs(width) as u32;
        let sums = inputs_at + 8 * batch * inputs as u32;
        Stage {
            phase,
            is_far,
            by_loads,
            waiting,
            resume,
            slots,
            entries,
            keys,
            inputs: inputs_at,
            sums,
            end: sums + 8 * batch * MAX_SUMS as u32,
        }
    }
}

/// Tables in the order in which packets meet them first: no packet then comes to a table whose loop has passed, unless
/// paths meet the tables in different orders.
fn in_order(program: &Program, tables: &[TableId]) -> Vec<TableId> {
    let mut ordered: Vec<TableId> = Vec::new();
    for body in program.ingress.iter().chain(&program.egress) {
        let body = &program.bodies[*body];
        for block in body.postorder().into_iter().rev() {
            if let Terminator::Apply { table, .. } = &body.blocks[block].term
                && tables.contains(table)
                && !ordered.contains(table)
            {
                ordered.push(*table);
            }
        }
    }
    ordered
}

/// The stages of a program whose tables in `staged` are looked up a batch at a time, those in `far` with memory that is far
/// away; and the bytes of their memory.
pub(crate) fn stages(
    program: &Program,
    staged: &[TableId],
    far: &[TableId],
    shapes: &[Shape],
) -> (Vec<Option<Stage>>, usize) {
    let mut all = vec![None; program.tables.len()];
    let mut at = 0;
    for (number, table) in in_order(program, staged).iter().enumerate() {
        let is_far = far.contains(table);
        let by_loads = is_far && matches!(shapes.get(table.index()), Some(Shape::Two { .. }));
        let stage = Stage::new(program, &program.tables[*table], number as u32 + 1, (is_far, by_loads), at);
        at = stage.end;
        all[table.as_u32() as usize] = Some(stage);
    }
    (all, at as usize)
}
