//! Which slots matter at a point of a program: what travels with a frame.

use millrace_pipeline::*;
use std::collections::{BTreeMap, BTreeSet};

/// Slots that are read later, before they are written.
pub(super) type Live = BTreeSet<SlotId>;

/// What bodies, the tables that they apply and the actions of these read, in any order.
pub(super) fn reads(program: &Program, bodies: &[BodyId]) -> Live {
    let mut live = Live::new();
    for body in bodies {
        for block in program.bodies[*body].blocks.values() {
            block.insts.iter().for_each(|inst| inst_reads(program, inst, &mut live));
            term_reads(program, &block.term, &mut live);
        }
    }
    live
}

/// What the switch reads after a stage: what the program tells it, and what packets keep that start again.
pub(super) fn told(program: &Program) -> Live {
    let roles = Intrinsic::ALL.iter().filter_map(|role| program.intrinsics.get(*role));
    roles.chain(program.field_lists.iter().flat_map(|list| list.slots.iter().copied())).collect()
}

/// What is live at the start of each block of a body, when `end` is live after it.
pub(super) fn live_in(program: &Program, body: &Body, end: &Live) -> BTreeMap<BlockId, Live> {
    let mut all: BTreeMap<BlockId, Live> = body.blocks.keys().map(|block| (block, Live::new())).collect();
    let order = body.postorder();
    loop {
        let mut changed = false;
        for id in &order {
            let block = &body.blocks[*id];
            let mut live = after_term(program, &block.term, &all, end);
            for inst in block.insts.iter().rev() {
                if let Some(dst) = inst.dst().filter(|dst| is_whole(program, *dst)) {
                    live.remove(&dst);
                }
                inst_reads(program, inst, &mut live);
            }
            if all[id] != live {
                all.insert(*id, live);
                changed = true;
            }
        }
        if !changed {
            return all;
        }
    }
}

/// What is live before a terminator.
pub(super) fn after_term(
    program: &Program,
    term: &Terminator,
    all: &BTreeMap<BlockId, Live>,
    end: &Live,
) -> Live {
    let mut live = Live::new();
    let mut ends = true;
    term.for_each_successor(&mut |next| {
        ends = false;
        live.extend(&all[&next]);
    });
    if ends {
        live.extend(end);
    }
    if let Terminator::Apply { hit, action, .. } = term {
        for slot in hit.iter().chain(action).filter(|slot| is_whole(program, **slot)) {
            live.remove(slot);
        }
    }
    term_reads(program, term, &mut live);
    live
}

/// Whether a write always takes effect: that to a field of an invalid header does not.
fn is_whole(program: &Program, slot: SlotId) -> bool {
    !matches!(program.slots[slot].home, Home::Header { .. })
}

fn inst_reads(program: &Program, inst: &Inst, live: &mut Live) {
    inst.for_each_expr(&mut |expr| expr.for_each_read(&mut |slot| live.extend([slot])));
    let mut header = |header: HeaderId| live.extend(&program.headers[header].fields);
    match inst {
        Inst::Emit(emitted) => header(*emitted),
        Inst::Hash { data, .. } => data.iter().for_each(|item| {
            if let DataItem::Header(hashed) = item {
                header(*hashed);
            }
        }),
        _ => {}
    }
}

fn term_reads(program: &Program, term: &Terminator, live: &mut Live) {
    term.for_each_expr(&mut |expr| expr.for_each_read(&mut |slot| live.extend([slot])));
    if let Terminator::Apply { table, .. } = term {
        let of = &program.tables[*table];
        of.exprs().for_each(|expr| expr.for_each_read(&mut |slot| live.extend([slot])));
        let called = of.actions.iter().map(|action| action.action);
        let bodies: Vec<BodyId> = called.map(|action| program.actions[action].body).collect();
        live.extend(reads(program, &bodies));
    }
}
