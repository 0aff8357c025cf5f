//! What is the same for all packets of a batch: slots that hold the port of arrival, and so need not be stored while a
//! packet waits.

use millrace_midend::cfg::{Cfg, CfgId, Input, Op, Term};
use millrace_pipeline::entity::SecondaryMap;
use millrace_pipeline::*;
use std::collections::BTreeMap;

/// The slots that hold the port of arrival from the start on, with the mask that cuts it to their width. They are written
/// once, where all packets begin.
pub(crate) fn port_slots(program: &Program, flat: &Cfg) -> BTreeMap<SlotId, u64> {
    let mut written: SecondaryMap<SlotId, u32> = SecondaryMap::with_default(0);
    let mut edges: SecondaryMap<CfgId, u32> = SecondaryMap::with_default(0);
    for block in flat.blocks.values() {
        block.writes().for_each(|dst| written[dst] += 1);
        block.term.for_each_target(&mut |to| edges[*to] += 1);
    }
    let mut ports = BTreeMap::new();
    let (mut at, mut edges_to_start) = (flat.entry, 0);
    while edges[at] == edges_to_start {
        for op in &flat.blocks[at].ops {
            if let Some((dst, mask)) = holds_port(op, &ports)
                && written[dst] == 1
                && let (Home::Metadata, Type::Bits(width @ ..=64)) =
                    (program.slots[dst].home, program.slots[dst].ty)
            {
                ports.insert(dst, mask & (u64::MAX >> (64 - width)));
            }
        }
        let (Term::Goto(next) | Term::Step { next, .. }) = &flat.blocks[at].term else { break };
        (at, edges_to_start) = (*next, 1);
    }
    ports
}

/// The slot that an operation gives the port of arrival, under a mask.
fn holds_port(op: &Op, ports: &BTreeMap<SlotId, u64>) -> Option<(SlotId, u64)> {
    match op {
        Op::Input { dst, input: Input::Port } => Some((*dst, u64::from(u32::MAX))),
        Op::Inst(Inst::Assign { dst, value: Expr::Read(from) }) => Some((*dst, *ports.get(from)?)),
        Op::Inst(Inst::Assign { dst, value: Expr::ZeroExtend(inner, _) }) => match &**inner {
            Expr::Read(from) => Some((*dst, *ports.get(from)?)),
            _ => None,
        },
        _ => None,
    }
}
