//! Removal of assignments to slots that nothing reads afterwards.

use super::dataflow::{Readers, Things};
use crate::*;
use cranelift_entity::{EntitySet, SecondaryMap};
use std::mem;

/// Removes writes to locals that no path reads, and to metadata that nothing in the program reads. What the switch
/// reads (intrinsics), what field lists keep and what counts stacks stays. Instructions with another effect stay.
pub fn remove_dead_assignments(program: &mut Program) {
    let unread = unread_metadata(program);
    let mut bodies = mem::take(&mut program.bodies);
    for body in bodies.values_mut() {
        let live = live_locals(body, program);
        for id in body.postorder() {
            let block = &mut body.blocks[id];
            let mut after = live_at_end(&block.term, &live);
            let is_dead = |slot: SlotId, after: &Things<SlotId>| match program.slots[slot].home {
                Home::Local => !after.contains(&slot),
                Home::Metadata => unread.contains(slot),
                Home::Header { .. } => false,
            };
            if let Terminator::Apply { hit, action, .. } = &mut block.term {
                hit.take_if(|slot| is_dead(*slot, &after));
                action.take_if(|slot| is_dead(*slot, &after));
            }
            term_uses(&block.term, program, &mut after);
            let mut kept = Vec::with_capacity(block.insts.len());
            for inst in mem::take(&mut block.insts).into_iter().rev() {
                let only_writes =
                    matches!(inst, Inst::Assign { .. } | Inst::RegisterRead { .. } | Inst::Hash { .. });
                if only_writes && inst.dst().is_some_and(|dst| is_dead(dst, &after)) {
                    continue;
                }
                inst_uses(&inst, program, &mut after);
                kept.push(inst);
            }
            kept.reverse();
            block.insts = kept;
        }
    }
    program.bodies = bodies;
}

/// Metadata that no expression and nobody else reads.
fn unread_metadata(program: &Program) -> EntitySet<SlotId> {
    let readers = Readers::of(program);
    let mut unread = EntitySet::new();
    for (id, slot) in &program.slots {
        if slot.home == Home::Metadata && readers.counts[id] == 0 {
            unread.insert(id);
        }
    }
    let mut read: Vec<SlotId> =
        Intrinsic::ALL.iter().filter_map(|role| program.intrinsics.get(*role)).collect();
    read.extend(program.field_lists.iter().flat_map(|list| &list.slots));
    read.extend(program.stacks.values().map(|stack| stack.next));
    read.into_iter().for_each(|slot| {
        unread.remove(slot);
    });
    unread
}

/// The locals that are live where each block starts.
fn live_locals(body: &Body, program: &Program) -> SecondaryMap<BlockId, Things<SlotId>> {
    let mut live: SecondaryMap<BlockId, Things<SlotId>> = SecondaryMap::with_capacity(body.blocks.len());
    let order = body.postorder();
    loop {
        let mut changed = false;
        for id in &order {
            let block = &body.blocks[*id];
            let mut at = live_at_end(&block.term, &live);
            term_uses(&block.term, program, &mut at);
            block.insts.iter().rev().for_each(|inst| inst_uses(inst, program, &mut at));
            if at.len() != live[*id].len() {
                live[*id] = at;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}

fn live_at_end(term: &Terminator, live: &SecondaryMap<BlockId, Things<SlotId>>) -> Things<SlotId> {
    let mut at = Things::default();
    term.for_each_successor(&mut |to| at.extend(&live[to]));
    at
}

fn term_uses(term: &Terminator, program: &Program, live: &mut Things<SlotId>) {
    let mut read = |e: &Expr| e.for_each_read(&mut |slot| use_slot(slot, program, live));
    term.for_each_expr(&mut |e| read(e));
    if let Terminator::Apply { table, hit, action, .. } = term {
        hit.iter().chain(action).for_each(|slot| {
            live.remove(slot);
        });
        let exprs = program.tables[*table].exprs();
        exprs.for_each(|e| e.for_each_read(&mut |slot| use_slot(slot, program, live)));
    }
}

fn inst_uses(inst: &Inst, program: &Program, live: &mut Things<SlotId>) {
    if let Some(dst) = inst.dst() {
        live.remove(&dst);
    }
    inst.for_each_expr(&mut |e| e.for_each_read(&mut |slot| use_slot(slot, program, live)));
}

fn use_slot(slot: SlotId, program: &Program, live: &mut Things<SlotId>) {
    if program.slots[slot].home == Home::Local {
        live.insert(slot);
    }
}
