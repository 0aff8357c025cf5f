//! Where scalars outside headers live: a slot that several bodies use is metadata, one that one body uses is local.

use millrace_pipeline::{BodyId, Home, Inst, Program, SlotId, Terminator};
use std::collections::{HashMap, HashSet};

/// The slots that a body uses: in its code, and in the tables that it applies.
fn used(program: &Program, body: BodyId) -> HashSet<SlotId> {
    let mut slots = HashSet::new();
    for block in program.bodies[body].blocks.values() {
        block.for_each_expr(&mut |e| {
            e.for_each_read(&mut |slot| {
                slots.insert(slot);
            });
        });
        slots.extend(block.insts.iter().filter_map(Inst::dst));
        if let Terminator::Apply { table, hit, action, .. } = &block.term {
            slots.extend(hit.iter().chain(action));
            let table = &program.tables[*table];
            slots.extend(table.direct_meter.as_ref().and_then(|m| m.at_hit));
            for key in table.keys.iter().map(|k| &k.value).chain(&table.selector_inputs) {
                key.for_each_read(&mut |slot| {
                    slots.insert(slot);
                });
            }
        }
    }
    slots
}

/// Makes local slots metadata where one body is not all that uses them.
pub(crate) fn settle(program: &mut Program) {
    let mut user: HashMap<SlotId, BodyId> = HashMap::new();
    let mut shared: HashSet<SlotId> = HashSet::new();
    for body in program.bodies.keys() {
        for slot in used(program, body) {
            if *user.entry(slot).or_insert(body) != body {
                shared.insert(slot);
            }
        }
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
        for key in table.keys.iter().map(|k| &k.value).chain(&table.selector_inputs) {
            key.for_each_read(&mut note);
        }
    }
    slots
}
