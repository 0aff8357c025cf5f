//! What of the order of packets a program can notice, and so how its packets may be batched.
//!
//! The order is: all packets of a batch pass ingress before the first passes egress, and those that start again go
//! before others. A program that keeps nothing in which the order shows may be run in any other.

use millrace_pipeline::*;
use std::collections::BTreeSet;

/// Something in which the order of packets shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Memory {
    Register(RegisterId),
    Meter(MeterId),
    DirectMeter(TableId),
    Random,
    /// Digests and lines of the log, in their order.
    Messages,
}

/// How the packets of a program may be batched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// A packet may go on to egress before the next one enters ingress, and a whole batch at once may run ahead of what
    /// starts again or is replicated.
    pub(crate) is_free: bool,
    /// Whoever is dropped in egress is dropped by a plain request, and clones are made behind it: so it is known of every
    /// packet where it was going.
    pub(crate) egress_is_plain: bool,
}

impl Order {
    /// Of a verified program.
    pub(crate) fn of(program: &Program) -> Order {
        let (ingress, egress) = (memories(program, &program.ingress), memories(program, &program.egress));
        let asks = |roles: &[Intrinsic]| roles.iter().any(|role| may_set(program, *role));
        let starts_again = asks(&[Intrinsic::Resubmit, Intrinsic::Recirculate]);
        let replicates =
            asks(&[Intrinsic::Clone, Intrinsic::MulticastGroup, Intrinsic::EgressPorts]) || starts_again;
        let is_free = ingress.is_disjoint(&egress)
            && (ingress.is_empty() || !starts_again)
            && (egress.is_empty() || !replicates);
        Order { is_free, egress_is_plain: egress_is_plain(program) }
    }
}

/// Whether some instruction or application writes the slot of a role. (A header's field would be written by a parser
/// too, but no role has one.)
pub(crate) fn may_set(program: &Program, role: Intrinsic) -> bool {
    let Some(slot) = program.intrinsics.get(role) else { return false };
    let in_header = matches!(program.slots[slot].home, Home::Header { .. });
    let parameter = program.actions.values().any(|action| action.params.contains(&slot));
    let written = |block: &Block| {
        let applied = match &block.term {
            Terminator::Apply { hit, action, .. } => *hit == Some(slot) || *action == Some(slot),
            _ => false,
        };
        applied || block.insts.iter().any(|inst| inst.dst() == Some(slot))
    };
    let metered = program
        .tables
        .values()
        .any(|table| table.direct_meter.as_ref().is_some_and(|m| m.at_hit == Some(slot)));
    in_header || parameter || metered || program.bodies.values().any(|body| body.blocks.values().any(written))
}

fn egress_is_plain(program: &Program) -> bool {
    reached(program, &program.egress).into_iter().all(|id| {
        let body = &program.bodies[id];
        let rejects = body.kind == BodyKind::Parser && program.on_reject != OnReject::Continue;
        let clone = program.intrinsics.get(Intrinsic::Clone).filter(|_| !program.deparse_at_ingress);
        let is_plain =
            |inst: &Inst| !matches!(inst, Inst::Assert { .. }) && (clone.is_none() || inst.dst() != clone);
        !rejects && !body.has_loop() && body.blocks.values().flat_map(|block| &block.insts).all(is_plain)
    })
}

/// Bodies, and the bodies of the actions that they apply.
fn reached(program: &Program, bodies: &[BodyId]) -> BTreeSet<BodyId> {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<BodyId> = bodies.to_vec();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        for block in program.bodies[id].blocks.values() {
            if let Terminator::Apply { table, .. } = &block.term {
                let listed = &program.tables[*table].actions;
                waiting.extend(listed.iter().map(|listed| program.actions[listed.action].body));
            }
        }
    }
    seen
}

/// What bodies, and the actions that they apply, keep from packet to packet.
fn memories(program: &Program, bodies: &[BodyId]) -> BTreeSet<Memory> {
    let mut found = BTreeSet::new();
    for id in reached(program, bodies) {
        for block in program.bodies[id].blocks.values() {
            found.extend(block.insts.iter().filter_map(memory));
            if let Terminator::Apply { table, .. } = &block.term {
                let meter = program.tables[*table].direct_meter.as_ref();
                if meter.is_some_and(|meter| meter.at_hit.is_some()) {
                    found.insert(Memory::DirectMeter(*table));
                }
            }
        }
    }
    found
}

pub(crate) fn memory(inst: &Inst) -> Option<Memory> {
    match inst {
        Inst::RegisterRead { register, .. } | Inst::RegisterWrite { register, .. } => {
            Some(Memory::Register(*register))
        }
        Inst::Meter { meter, .. } => Some(Memory::Meter(*meter)),
        Inst::MeterDirect { table, .. } => Some(Memory::DirectMeter(*table)),
        Inst::Random { .. } => Some(Memory::Random),
        // A failed assertion writes to the log.
        Inst::Digest { .. } | Inst::Log { .. } | Inst::Assert { .. } => Some(Memory::Messages),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ingress: &str, egress: &str) -> Order {
        let program = text::parse(&format!(
            "program t architecture test errors (NoError)
             ingress (ingress) egress (egress)
             intrinsic egress_spec = port intrinsic recirculate = again intrinsic clone = copy
             metadata port: bit<9> metadata again: bit<1> metadata copy: bit<1> metadata x: bit<8>
             register r: bit<8> size 4 register s: bit<8> size 4 counter c size 4 packets
             body control ingress {{ block0: {ingress} end }}
             body control egress {{ block0: {egress} end }}"
        ));
        Order::of(&program.unwrap())
    }

    #[test]
    fn a_program_without_memory_may_be_run_in_any_order() {
        let free = Order { is_free: true, egress_is_plain: true };
        assert_eq!(order("port = 9w1", "count c, 8w1"), free);
        assert!(!order("port = 9w1", "copy = 1w1").egress_is_plain);
        assert!(order("copy = 1w1", "again = 1w1").is_free);
    }

    #[test]
    fn what_ingress_and_egress_share_keeps_them_apart() {
        let (read, write) = ("register_read x, r, 8w0", "register_write r, 8w0, 8w1");
        assert!(order(read, "x = 8w1").is_free);
        assert!(!order(read, write).is_free);
        assert!(order(read, "register_write s, 8w0, 8w1").is_free);
    }

    #[test]
    fn copies_and_second_passes_come_in_their_order_where_it_shows() {
        let write = "register_write r, 8w0, 8w1";
        assert!(!order(&format!("copy = 1w1 {write}"), &write.replace(" r,", " s,")).is_free);
        assert!(order(&format!("copy = 1w1 {write}"), "x = 8w1").is_free);
        assert!(!order(write, "again = 1w1").is_free);
    }
}
