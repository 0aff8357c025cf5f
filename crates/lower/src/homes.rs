//! Where scalars outside headers live: a slot that several bodies use is metadata, one that one body uses is local.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use millrace_pipeline::{BodyId, Home, Program, SlotId};

/// Makes local slots metadata where one body is not all that uses them.
pub(crate) fn settle(program: &mut Program) {
    let mut user: HashMap<SlotId, BodyId> = HashMap::new();
    let mut shared: HashSet<SlotId> = HashSet::new();
    for body in program.bodies.keys() {
        program.bodies[body].for_each_slot(program, &mut |slot| {
            if *user.entry(slot).or_insert(body) != body {
                shared.insert(slot);
            }
        });
    }
    // What a copy of the packet keeps is the packet's.
    shared.extend(program.field_lists.iter().flat_map(|l| &l.slots));
    for slot in shared {
        if program.slots[slot].home == Home::Local {
            program.slots[slot].home = Home::Metadata;
        }
    }
}

/// The slots that something reads.
pub(crate) fn slots_read(program: &Program) -> HashSet<SlotId> {
    let mut slots = HashSet::new();
    let mut note = |slot: SlotId| {
        slots.insert(slot);
    };
    for block in program.bodies.values().flat_map(|b| b.blocks.values()) {
        block.for_each_expr(&mut |e| e.for_each_read(&mut note));
    }
    for table in program.tables.values() {
        table.exprs().for_each(|expr| expr.for_each_read(&mut note));
    }
    slots
}
