//! What of the order of packets a program can notice, and so how its packets may be batched.
//!
//! The order is: all packets of a batch pass ingress before the first passes egress, and those that start again go
//! before others. A program that keeps nothing in which the order shows may be run in any other.

use millrace_pipeline::*;
use std::collections::BTreeSet;

/// Something in which the order of packets shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// A register array.
    Register(RegisterId),
    /// A meter array.
    Meter(MeterId),
    /// The meters of a table's entries.
    DirectMeter(TableId),
    /// The random number generator.
    Random,
    /// What a plugin remembers.
    Plugin(PluginId),
    /// Digests and lines of the log, in their order.
    Messages,
}

/// How the packets of a program may be batched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// A packet may go on to egress before the next one enters ingress, and a whole batch at once may run ahead of what
    /// starts again or is replicated.
    pub is_free: bool,
    /// Egress drops packets by a plain request only, and makes clones after it: so the destination of every packet is
    /// known.
    pub egress_is_plain: bool,
    /// A packet may pass egress before the queue of its class: egress keeps nothing from packet to packet, and no part of the
    /// program looks at what queues tell.
    pub serves_classes: bool,
    /// A packet that waits for its port has to do so before egress: egress looks at queues, at the time, or at what earlier packets
    /// have left, or the program has packets wait.
    pub egress_waits: bool,
}

impl Order {
    /// Of a verified program.
    pub fn of(program: &Program) -> Order {
        let (ingress, egress) = (memories(program, &program.ingress), memories(program, &program.egress));
        let asks = |roles: &[Intrinsic]| roles.iter().any(|role| may_set(program, *role));
        let starts_again = asks(&[Intrinsic::Resubmit, Intrinsic::Recirculate]);
        let replicates =
            asks(&[Intrinsic::Clone, Intrinsic::MulticastGroup, Intrinsic::EgressPorts]) || starts_again;
        let waits = asks(&[Intrinsic::SendTime]);
        let is_free = !waits
            && ingress.is_disjoint(&egress)
            && (ingress.is_empty() || !starts_again)
            && (egress.is_empty() || !replicates);
        let serves_classes = egress.is_empty() && !reads(program, &QUEUES);
        let egress_waits = waits || !serves_classes || looks_at_queues(program);
        Order { is_free, egress_is_plain: egress_is_plain(program), serves_classes, egress_waits }
    }
}

/// Whether a program looks at what queues tell, or at the time at which a packet leaves them.
pub fn looks_at_queues(program: &Program) -> bool {
    read_of_queues(program).is_some()
}

/// The first of what queues tell, and of the time at which a packet leaves them, that a program looks at.
pub fn read_of_queues(program: &Program) -> Option<Intrinsic> {
    let mut roles = QUEUES.into_iter().chain([Intrinsic::EgressTimestamp]);
    roles.find(|role| reads(program, &[*role]))
}

/// What queues tell programs.
pub(crate) const QUEUES: [Intrinsic; 5] = [
    Intrinsic::EnqueueTimestamp,
    Intrinsic::EnqueueDepth,
    Intrinsic::DequeueDepth,
    Intrinsic::QueueDelay,
    Intrinsic::QueueId,
];

/// Whether a program reads the slot of one of these roles, or keeps it from pass to pass.
fn reads(program: &Program, roles: &[Intrinsic]) -> bool {
    let is_one = |slot: SlotId| roles.iter().any(|role| program.intrinsics.get(*role) == Some(slot));
    let in_expr = |expr: &Expr| {
        let mut found = false;
        expr.for_each_read(&mut |slot| found |= is_one(slot));
        found
    };
    let in_bodies = program.bodies.values().flat_map(|body| body.blocks.values()).any(|block| {
        let mut found = false;
        block.for_each_expr(&mut |expr| found |= in_expr(expr));
        found
    });
    in_bodies
        || program.tables.values().any(|table| table.exprs().any(in_expr))
        || program.field_lists.iter().flat_map(|list| &list.slots).any(|slot| is_one(*slot))
}

/// Whether some instruction or application writes the slot of a role. (A header's field would be written by a parser
/// too, but no role has one.)
pub fn may_set(program: &Program, role: Intrinsic) -> bool {
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
        let is_plain = |inst: &Inst| {
            !matches!(inst, Inst::Assert { .. } | Inst::Stop { .. })
                && (clone.is_none() || inst.dst() != clone)
        };
        !rejects && !body.has_loop() && body.blocks.values().flat_map(|block| &block.insts).all(is_plain)
    })
}

/// Bodies, and the bodies of the actions that they apply.
pub(crate) fn reached(program: &Program, bodies: &[BodyId]) -> BTreeSet<BodyId> {
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

/// In what of its memories an instruction shows the order of packets.
pub fn memory(inst: &Inst) -> Option<Memory> {
    match inst {
        Inst::RegisterRead { register, .. } | Inst::RegisterWrite { register, .. } => {
            Some(Memory::Register(*register))
        }
        Inst::Meter { meter, .. } => Some(Memory::Meter(*meter)),
        Inst::MeterDirect { table, .. } => Some(Memory::DirectMeter(*table)),
        Inst::Random { .. } => Some(Memory::Random),
        Inst::Call { plugin, .. } => Some(Memory::Plugin(*plugin)),
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
             intrinsic enqueue_depth = depth metadata depth: bit<32> metadata d: bit<32>
             metadata port: bit<9> metadata again: bit<1> metadata copy: bit<1> metadata x: bit<8>
             register r: bit<8> size 4 register s: bit<8> size 4 counter c size 4 packets
             body control ingress {{ block0: {ingress} end }}
             body control egress {{ block0: {egress} end }}"
        ));
        Order::of(&program.unwrap())
    }

    #[test]
    fn a_program_without_memory_may_be_run_in_any_order() {
        let free = Order { is_free: true, egress_is_plain: true, serves_classes: true, egress_waits: false };
        assert_eq!(order("port = 9w1", "count c, 8w1"), free);
        assert!(!order("port = 9w1", "copy = 1w1").egress_is_plain);
        assert!(order("copy = 1w1", "again = 1w1").is_free);
    }

    #[test]
    fn egress_may_go_before_the_queue_where_nothing_tells() {
        assert!(order("register_read x, r, 8w0", "x = 8w1").serves_classes);
        assert!(!order("port = 9w1", "register_read x, r, 8w0").serves_classes);
        assert!(order("depth = 32w1", "port = 9w1").serves_classes);
        assert!(!order("port = 9w1", "d = depth").serves_classes);
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
