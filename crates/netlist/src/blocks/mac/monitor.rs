//! What monitors of receiving halves share: a monitor looks at the module that it is part of.

use crate::*;

/// The value of an output of the module that is built.
pub(in crate::blocks) fn output(m: &ModuleBuilder, name: &str) -> NodeId {
    let found = m.module().outputs.values().find(|output| output.name == name);
    found.and_then(|output| output.value.expand()).unwrap_or_else(|| panic!("no output {name}"))
}

/// The value of an input of the module that is built.
pub(in crate::blocks) fn input(m: &ModuleBuilder, name: &str) -> NodeId {
    let (id, _) =
        (m.module().inputs.iter()).find(|(_, of)| of.name == name).unwrap_or_else(|| panic!("no {name}"));
    let node = m.module().nodes.iter().find(|(_, node)| node.op == Op::Input(id));
    node.map(|(node, _)| node).unwrap_or_else(|| panic!("no value of {name}"))
}

/// The value of a register of the module that is built.
pub(in crate::blocks) fn register(m: &ModuleBuilder, name: &str) -> NodeId {
    let (id, _) =
        (m.module().registers.iter()).find(|(_, of)| of.name == name).unwrap_or_else(|| panic!("no {name}"));
    let node = m.module().nodes.iter().find(|(_, node)| node.op == Op::Register(id));
    node.map(|(node, _)| node).unwrap_or_else(|| panic!("no value of {name}"))
}

/// What a register of the module that is built takes, and when.
pub(in crate::blocks) fn next(m: &ModuleBuilder, name: &str) -> (NodeId, NodeId) {
    let found = m.module().registers.values().find(|of| of.name == name);
    let both = found.and_then(|of| of.next.expand().zip(of.enable.expand()));
    both.unwrap_or_else(|| panic!("no enable of {name}"))
}

/// What is wrong with a beat by itself.
pub(in crate::blocks) fn beat_faults(
    m: &mut ModuleBuilder,
    (valid, last, user, keep): (NodeId, NodeId, NodeId, NodeId),
) -> [NodeId; 4] {
    let full = m.reduce_and(keep);
    let partial = m.not(full);
    let not_last = m.not(last);
    let early = m.all(&[valid, not_last, partial]);
    let none = m.is(keep, 0);
    let empty = m.and(valid, none);
    let next = m.add_number(keep, 1);
    let gap = m.and(next, keep);
    let gap = m.reduce_or(gap);
    let gap = m.and(valid, gap);
    let marked = m.and(user, not_last);
    [early, empty, gap, marked]
}

/// Any value, the same one in all cycles: that of an input in the first.
pub(in crate::blocks) fn kept_from_start(m: &mut ModuleBuilder, name: &str, width: u32) -> NodeId {
    let now = m.input(name, width);
    let (started_register, started) = m.register(&format!("{name}_started"), 1, Some(0));
    let one = m.number(1, 1);
    m.set_next(started_register, one);
    let (register, kept) = m.register(&format!("{name}_kept"), width, Some(0));
    let value = m.mux(started, kept, now);
    m.set_next(register, value);
    value
}

/// Whether the rules that a monitor asks for have held in all cycles up to this one: what follows a breach counts for nothing.
pub(in crate::blocks) fn have_held(m: &mut ModuleBuilder, holds: NodeId) -> NodeId {
    let (register, before) = m.register("fine", 1, Some(1));
    let fine = m.and(holds, before);
    m.set_next(register, fine);
    fine
}
