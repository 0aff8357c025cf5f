//! What becomes of a frame after ingress: copies, one a cycle, for egress.

use super::again::spent;
use super::build::{Header, Top, role_of};
use super::control::{GROUP_WORDS, group_widths};
use super::facts::needed;
use super::{GROUPS, NODES, Reason};
use crate::parts::later;
use crate::software_port::PortKind;
use crate::stage::{Input, Output};
use millrace_midend::Verdict;
use millrace_netlist::{ModuleBuilder, NodeId, address_width};
use millrace_pipeline::{Home, Intrinsic, PacketPath, SlotId, Type};

/// What ingress says of a frame.
#[derive(Clone)]
pub(super) struct Fate {
    header: Header,
    /// A [`Reason`] to drop it.
    reason: NodeId,
    group: NodeId,
    /// A bit for each port; 0: not asked for.
    ports: NodeId,
    port: NodeId,
    class: NodeId,
    /// Headers that egress emits itself have none here.
    emitted: [NodeId; 3],
    /// The inputs of egress that come from ingress, by their number.
    kept: Vec<(usize, NodeId)>,
    again: Option<FateAgain>,
}

/// What ingress says of a frame where frames may start again.
#[derive(Clone)]
struct FateAgain {
    /// It does so now.
    resubmits: NodeId,
    /// Of a frame that does, what its tag keeps of the metadata; of others what ingress left there.
    values: Vec<NodeId>,
}

/// A copy of a frame.
pub(super) struct Copy {
    pub(super) header: Header,
    pub(super) reason: NodeId,
    /// The number of the port, and whether there is such a port.
    pub(super) port: NodeId,
    pub(super) is_port: NodeId,
    pub(super) class: NodeId,
    /// The last copy of its frame.
    pub(super) last: NodeId,
    pub(super) emitted: [NodeId; 3],
    /// What egress is given, by the number of its input.
    pub(super) given: Vec<(usize, NodeId)>,
    /// Whether it starts again without egress; none: no frame starts again.
    pub(super) resubmits: Option<NodeId>,
    /// What is in the slots of its tag.
    pub(super) kept: Vec<NodeId>,
}

pub(super) struct Copies {
    pub(super) copy: Copy,
    /// A frame has all its copies, and the bank that it meets.
    pub(super) consumed: NodeId,
    pub(super) of_bank: NodeId,
}

impl Fate {
    pub(super) fn of(top: &mut Top<'_>, header: Header) -> Fate {
        let reason = reason_of_ingress(top);
        let told = |top: &mut Top<'_>, role: Intrinsic| {
            let width = width_of(role.ty());
            let slot = top.program.intrinsics.get(role);
            match slot {
                Some(slot) => top.ingress.said(&mut top.m, Output::Slot(slot), width),
                None => top.m.number(width, 0),
            }
        };
        let group = told(top, Intrinsic::MulticastGroup);
        let ports = told(top, Intrinsic::EgressPorts);
        let port = told(top, Intrinsic::EgressSpec);
        let priority = told(top, Intrinsic::Priority);
        let drop = told(top, Intrinsic::Drop);
        let again = resubmission(top, &header);
        let m = &mut top.m;
        let none = m.is(group, 0);
        let drops = m.and(none, drop);
        let (dropped, no) = (m.number(4, Reason::IngressDrop as u128), m.number(4, 0));
        let of_program = m.mux(drops, dropped, no);
        let fine = m.is(reason, 0);
        let of_program = match &again {
            Some((asks, reason, _)) => m.mux(*asks, *reason, of_program),
            None => of_program,
        };
        let reason = m.mux(fine, of_program, reason);
        let highest = m.number(8, u128::from(top.shape.queues - 1));
        let above = m.lt(highest, priority);
        let class = m.mux(above, highest, priority);
        let class = m.slice(class, 0, top.shape.class_bits());
        let emitted = match top.egress.stage.may_say(Output::Deparsed) {
            true => [no; 3],
            false => emitted(top, false),
        };
        let kept = kept(top, header);
        let again = again.map(|(asks, why, values)| {
            let (m, fits) = (&mut top.m, fine);
            let may = m.is(why, 0);
            FateAgain { resubmits: m.all(&[asks, may, fits]), values }
        });
        Fate { header, reason, group, ports, port, class, emitted, kept, again }
    }

    /// All of it but whether it is there.
    fn parts(&mut self) -> Vec<&mut NodeId> {
        let Header { valid: _, port, slot, length, time, bank, tag } = &mut self.header;
        let mut all = vec![bank, port, slot, length, time, &mut self.reason, &mut self.group];
        all.extend([&mut self.ports, &mut self.port, &mut self.class]);
        all.extend(&mut self.emitted);
        all.extend(self.kept.iter_mut().map(|(_, value)| value));
        all.extend(tag);
        if let Some(FateAgain { resubmits, values }) = &mut self.again {
            all.push(resubmits);
            all.extend(values);
        }
        all
    }

    /// The same with other values.
    fn with(&self, valid: NodeId, values: &[NodeId]) -> Fate {
        let mut other = self.clone();
        other.header.valid = valid;
        other.parts().into_iter().zip(values).for_each(|(part, value)| *part = *value);
        other
    }
}

/// Whether a frame asks to be resubmitted, why it may not, and what its tag keeps.
fn resubmission(top: &mut Top<'_>, header: &Header) -> Option<(NodeId, NodeId, Vec<NodeId>)> {
    let tag = top.tag_of(header)?;
    let asked = |top: &mut Top<'_>, role: Intrinsic, width: u32| match top.program.intrinsics.get(role) {
        Some(slot) => top.ingress.said(&mut top.m, Output::Slot(slot), width),
        None => top.m.number(width, 0),
    };
    let asks = asked(top, Intrinsic::Resubmit, 1);
    let list = asked(top, Intrinsic::ResubmitList, 32);
    let after = top.after_stage(false, |top, _, slot| top.before_ingress(slot, header));
    let kept = top.kept_by(list, &after);
    let is_spent = top.is_spent(&tag);
    let m = &mut top.m;
    let reason = spent(m, is_spent);
    let values = kept.iter().zip(after).map(|(kept, after)| m.mux(asks, *kept, after)).collect();
    Some((asks, reason, values))
}

/// The new headers that a stage says, their bytes, and the byte of the frame that follows them.
pub(super) fn emitted(top: &mut Top<'_>, of_egress: bool) -> [NodeId; 3] {
    let (m, shape) = (&mut top.m, top.shape);
    let stage = if of_egress { &top.egress } else { &top.ingress };
    let deparsed = stage.said(m, Output::Deparsed, 1);
    let bits = stage.said(m, Output::Emitted, 8);
    let place = shape.editor().place();
    let width = shape.emitted.max(1) * 8;
    let bits = match width - m.width(bits).min(width) {
        0 => bits,
        more => {
            let zeros = m.number(more, 0);
            m.concat(&[bits, zeros])
        }
    };
    let mut bytes = |output| {
        let value = stage.said(m, output, 32);
        let value = m.slice(value, 3, place);
        let zero = m.number(place, 0);
        m.mux(deparsed, value, zero)
    };
    let (length, from) = (bytes(Output::EmittedLength), bytes(Output::PayloadFrom));
    [bits, length, from]
}

/// What a verdict means for the frame, as a [`Reason`].
pub(super) fn reason_of(m: &mut ModuleBuilder, verdict: NodeId) -> NodeId {
    let reasons = [
        (Verdict::IngressDrop, Reason::IngressDrop),
        (Verdict::EgressDrop, Reason::EgressDrop),
        (Verdict::ParserError, Reason::ParserError),
        (Verdict::Assert, Reason::Assert),
        (Verdict::StepLimit, Reason::StepLimit),
    ];
    let choices: Vec<(NodeId, NodeId)> = reasons
        .iter()
        .map(|(number, reason)| (m.is(verdict, *number as u128), m.number(4, *reason as u128)))
        .collect();
    m.one_hot(4, &choices)
}

fn reason_of_ingress(top: &mut Top<'_>) -> NodeId {
    let verdict = top.ingress.said(&mut top.m, Output::Verdict, 4);
    reason_of(&mut top.m, verdict)
}

pub(super) fn width_of(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    }
}

/// What of ingress egress needs.
fn kept(top: &mut Top<'_>, header: Header) -> Vec<(usize, NodeId)> {
    let mut kept = Vec::new();
    for number in needed(top.egress.stage) {
        let (input, width) = top.egress.stage.dataflow.inputs[number];
        let value = match input {
            Input::Length => header.length,
            Input::Now => header.time,
            Input::Rest(_) | Input::Parameters(_) => continue,
            Input::Cursor => top.ingress.said(&mut top.m, Output::Cursor, 32),
            Input::Valid(of) => top.ingress.said(&mut top.m, Output::Valid(of), 1),
            Input::SlotLength(slot) => top.ingress.said(&mut top.m, Output::SlotLength(slot), 32),
            Input::Slot(slot) => match slot_after_ingress(top, slot, header) {
                Some(value) => value,
                None => continue,
            },
        };
        kept.push((number, top.m.resize(value, width)));
    }
    kept
}

/// What a slot holds after ingress; none: that is told of each copy, or is 0.
fn slot_after_ingress(top: &mut Top<'_>, slot: SlotId, header: Header) -> Option<NodeId> {
    let role = role_of(top.program, slot);
    if role == Some(Intrinsic::PacketLength) {
        return Some(length_now(top, header));
    }
    if top.program.reset_at_egress.contains(&slot) || role.is_some_and(is_told_of_copies) {
        return None;
    }
    let written = top.ingress.output(&mut top.m, Output::Slot(slot));
    written.or_else(|| top.before_ingress(slot, &header))
}

/// Whether egress finds something else in a slot of that role than what ingress left.
fn is_told_of_copies(role: Intrinsic) -> bool {
    matches!(
        role,
        Intrinsic::Drop
            | Intrinsic::Clone
            | Intrinsic::CloneSession
            | Intrinsic::CloneList
            | Intrinsic::Recirculate
            | Intrinsic::RecirculateList
            | Intrinsic::PacketPath
            | Intrinsic::EgressPort
            | Intrinsic::EgressRid
            | Intrinsic::EnqueueTimestamp
            | Intrinsic::EnqueueDepth
            | Intrinsic::QueueDelay
            | Intrinsic::DequeueDepth
            | Intrinsic::QueueId
            | Intrinsic::EgressTimestamp
    )
}

/// The bytes of the frame, with headers that became valid or invalid since it was parsed.
fn length_now(top: &mut Top<'_>, header: Header) -> NodeId {
    let m = &mut top.m;
    let mut bits = m.number(32, 0);
    for (id, of) in &top.program.headers {
        let valid = top.ingress.said(m, Output::Valid(id), 1);
        let mut own = m.number(32, 0);
        for slot in &of.fields {
            let Home::Header { .. } = top.program.slots[*slot].home else { continue };
            let width = match top.program.slots[*slot].ty {
                Type::Varbit(_) => top.ingress.said(m, Output::SlotLength(*slot), 32),
                ty => m.number(32, u128::from(width_of(ty))),
            };
            own = m.add(own, width);
        }
        let zero = m.number(32, 0);
        let own = m.mux(valid, own, zero);
        bits = m.add(bits, own);
    }
    let parsed = top.ingress.said(m, Output::ParsedBits, 32);
    let (now, before) = (m.shr_by(bits, 3), m.shr_by(parsed, 3));
    let length = m.resize(header.length, 32);
    let more = m.add(length, now);
    let short = m.lt(more, before);
    let (zero, rest) = (m.number(32, 0), m.sub(more, before));
    m.mux(short, zero, rest)
}

/// Frames wait here while one of them is copied. A frame that finds nothing waiting goes on in the same cycle.
pub(super) fn copies(top: &mut Top<'_>, fate: Fate, depth: u32) -> Copies {
    let mut fate = fate;
    let values: Vec<NodeId> = fate.parts().into_iter().map(|part| *part).collect();
    let m = &mut top.m;
    let widths: Vec<u32> = values.iter().map(|value| m.width(*value)).collect();
    let all = m.concat(&values);
    let waiting = m.memory("frames_to_copy", m.width(all), depth, Vec::new());
    let bits = address_width(depth);
    let (head_register, head) = m.register("copy_head", bits, Some(0));
    let (tail_register, tail) = m.register("copy_tail", bits, Some(0));
    let (count_register, count) = m.register("copy_count", bits + 1, Some(0));
    let empty = m.is(count, 0);
    let oldest = m.read(waiting, head);
    let first = m.mux(empty, all, oldest);
    let some = m.not(empty);
    let there = m.or(some, fate.header.valid);
    let mut high = m.width(first);
    let parts: Vec<NodeId> = widths
        .iter()
        .map(|width| {
            high -= width;
            m.slice(first, high, *width)
        })
        .collect();
    let fate_now = fate.with(there, &parts);

    // A copy stays until egress takes it.
    let m = &mut top.m;
    let (valid_register, valid) = m.register("copy_valid", 1, Some(0));
    let ready = top.egress.ready(m);
    let idle = m.not(valid);
    let free = m.or(idle, ready);
    let next_valid = m.mux(free, there, valid);
    m.set_next(valid_register, next_valid);
    let (copy, last) = next_copy(top, &fate_now, free);
    let m = &mut top.m;
    let consumed = m.all(&[there, last, free]);
    let passes = m.and(empty, consumed);
    let stays = m.not(passes);
    let push = m.and(fate.header.valid, stays);
    let pop = m.and(some, consumed);
    m.write(waiting, push, tail, all);
    for (register, at, moves) in [(head_register, head, pop), (tail_register, tail, push)] {
        let next = m.add_number(at, 1);
        m.set_next(register, next);
        m.set_enable(register, moves);
    }
    let (more, one) = (m.add_number(count, 1), m.number(bits + 1, 1));
    let less = m.sub(count, one);
    let next = m.mux(push, more, less);
    m.set_next(count_register, next);
    let changes = m.xor(push, pop);
    m.set_enable(count_register, changes);
    Copies { copy: copy.registered(m, valid, free), consumed, of_bank: fate_now.header.bank }
}

impl Copy {
    /// All of it but whether it is there, each with a name.
    fn parts(&mut self) -> Vec<(String, &mut NodeId)> {
        let Header { valid: _, port, slot, length, time, bank, tag } = &mut self.header;
        let [bits, bytes, from] = &mut self.emitted;
        let own = [
            ("from", port),
            ("slot", slot),
            ("length", length),
            ("time", time),
            ("bank", bank),
            ("reason", &mut self.reason),
            ("port", &mut self.port),
            ("is_port", &mut self.is_port),
            ("class", &mut self.class),
            ("last", &mut self.last),
            ("emitted", bits),
            ("emitted_bytes", bytes),
            ("payload_from", from),
        ];
        let may_be = [("tag", tag), ("resubmits", &mut self.resubmits)];
        let may_be = may_be.into_iter().filter_map(|(name, part)| Some((name, part.as_mut()?)));
        let all = own.into_iter().chain(may_be).map(|(name, part)| (name.to_owned(), part));
        let given = self.given.iter_mut().map(|(at, value)| (format!("input{at}"), value));
        let kept = (0..).zip(&mut self.kept).map(|(at, value): (usize, _)| (format!("kept{at}"), value));
        all.chain(given).chain(kept).collect()
    }

    /// In registers that take the next one when they are free.
    fn registered(mut self, m: &mut ModuleBuilder, valid: NodeId, free: NodeId) -> Copy {
        self.header.valid = valid;
        for (name, part) in self.parts() {
            let (register, held) = m.register(&format!("copy_{name}"), m.width(*part), None);
            m.set_next(register, *part);
            m.set_enable(register, free);
            *part = held;
        }
        self
    }

    /// So many cycles later, without what egress was given.
    pub(super) fn later(mut self, m: &mut ModuleBuilder, valid: NodeId, cycles: u32) -> Copy {
        self.header.valid = later(m, "egress_valid", valid, cycles, Some(0));
        self.given.clear();
        for (name, part) in self.parts() {
            *part = later(m, &format!("egress_{name}"), *part, cycles, None);
        }
        self
    }
}

/// A copy of the frame, and whether it is the last one.
fn next_copy(top: &mut Top<'_>, fate: &Fate, free: NodeId) -> (Copy, NodeId) {
    let member = group_member(top, fate);
    let of_set = port_of_set(top, fate);
    let m = &mut top.m;
    let mut fine = m.is(fate.reason, 0);
    let resubmits = fate.again.as_ref().map(|again| again.resubmits);
    if let Some(resubmits) = resubmits {
        let others = m.not(resubmits);
        fine = m.and(fine, others);
    }
    let grouped = m.reduce_or(fate.group);
    let asked = m.reduce_or(fate.ports);
    let by_group = m.and(fine, grouped);
    let not_group = m.not(grouped);
    let by_set = m.all(&[fine, asked, not_group]);
    let reason = m.mux(by_group, member.reason, fate.reason);
    let port = m.mux(by_set, of_set.port, fate.port);
    let port = m.mux(by_group, member.port, port);
    let none = m.number(16, 0);
    let rid = m.mux(by_group, member.rid, none);
    let one = m.number(1, 1);
    let last = m.mux(by_set, of_set.last, one);
    let last = m.mux(by_group, member.last, last);

    // What counts the copies of this frame.
    let goes_on = m.not(last);
    for (register, next, own) in
        [(member.register, member.next, by_group), (of_set.register, of_set.next, by_set)]
    {
        let zero = m.number(m.width(next), 0);
        let counts = m.all(&[fate.header.valid, own, goes_on]);
        let value = m.mux(counts, next, zero);
        m.set_next(register, value);
        let moves = m.and(fate.header.valid, free);
        m.set_enable(register, moves);
    }
    let ports = m.number(32, u128::from(top.shape.ports));
    let is_port = m.lt(port, ports);
    let mut number = m.slice(port, 0, top.shape.port_bits());
    if let Some(resubmits) = resubmits {
        let side = m.number(top.shape.port_bits(), top.shape.ports.into());
        number = m.mux(resubmits, side, number);
    }
    let replicated = m.or(by_group, by_set);
    let (normal, replica) =
        (m.number(32, PacketPath::Normal as u128), m.number(32, PacketPath::Replication as u128));
    let path = m.mux(replicated, replica, normal);
    let told = |role| match role {
        Some(Intrinsic::EgressPort) => Some(port),
        Some(Intrinsic::EgressRid) => Some(rid),
        Some(Intrinsic::PacketPath) => Some(path),
        _ => None,
    };
    let mut given = Vec::new();
    for at in needed(top.egress.stage) {
        let (input, width) = top.egress.stage.dataflow.inputs[at];
        let kept = fate.kept.iter().find(|(other, _)| *other == at).map(|(_, value)| *value);
        let role = match input {
            Input::Slot(slot) => role_of(top.program, slot),
            _ => None,
        };
        let value = match (told(role), kept) {
            (Some(value), _) | (None, Some(value)) => value,
            (None, None) => m.number(width, 0),
        };
        given.push((at, m.resize(value, width)));
    }
    let kept = match (&fate.again, &top.again) {
        (Some(again), Some(tag)) => {
            let each = tag.slots.iter().zip(&again.values).map(|((slot, width), value)| {
                let role = role_of(top.program, *slot);
                let of_copy = match (told(role), role.is_some_and(is_told_of_copies)) {
                    (Some(told), _) => m.resize(told, *width),
                    (None, true) => m.number(*width, 0),
                    (None, false) if top.program.reset_at_egress.contains(slot) => m.number(*width, 0),
                    (None, false) => *value,
                };
                m.mux(again.resubmits, *value, of_copy)
            });
            each.collect()
        }
        _ => Vec::new(),
    };
    let header = fate.header;
    let (class, emitted) = (fate.class, fate.emitted);
    (Copy { header, reason, port: number, is_port, class, last, emitted, given, resubmits, kept }, last)
}

/// The copy of a multicast group whose turn it is.
struct Member {
    reason: NodeId,
    port: NodeId,
    rid: NodeId,
    last: NodeId,
    register: millrace_netlist::RegisterId,
    next: NodeId,
}

/// Groups and nodes are words as [`crate::groups`] has them.
fn group_member(top: &mut Top<'_>, fate: &Fate) -> Member {
    let m = &mut top.m;
    let (at_bits, node_bits) = (address_width(GROUPS), address_width(NODES));
    let ((group_words, node_words), (group_width, node_width)) = (GROUP_WORDS, group_widths());
    let groups = m.memory("groups", group_width, group_words, Vec::new());
    let nodes = m.memory("nodes", node_width, node_words, Vec::new());
    let shapes = [
        (groups, "groups", PortKind::Groups, (group_words, group_width)),
        (nodes, "nodes", PortKind::Nodes, (node_words, node_width)),
    ];
    for (memory, name, kind, shape) in shapes {
        let [enable, address, data] = top.control.memory(m, name, kind, shape);
        m.write(memory, enable, address, data);
    }
    let bank = fate.header.bank;
    let (register, at) = m.register("copies_made", node_bits + 1, Some(0));
    let low = m.slice(fate.group, 0, at_bits);
    let low = m.concat(&[low, bank]);
    let word = m.read(groups, low);
    let first = m.slice(word, 0, node_bits);
    let count = m.slice(word, node_bits, node_bits + 1);
    let exists = m.bit(word, 2 * node_bits + 1);
    let most = m.number(32, u128::from(GROUPS));
    let inside = m.lt(fate.group, most);
    let exists = m.and(exists, inside);
    let offset = m.slice(at, 0, node_bits);
    let place = m.add(first, offset);
    let place = m.concat(&[place, bank]);
    let node = m.read(nodes, place);
    let (port, rid) = (m.slice(node, 0, 32), m.slice(node, 32, 16));
    let next = m.add_number(at, 1);
    let empty = m.is(count, 0);
    let (no_group, no_copy) =
        (m.number(4, Reason::NoMulticastGroup as u128), m.number(4, Reason::EmptyMulticastGroup as u128));
    let fine = m.number(4, 0);
    let reason = m.mux(empty, no_copy, fine);
    let reason = m.mux(exists, reason, no_group);
    let ends = m.le(count, next);
    let absent = m.not(exists);
    let last = m.or(ends, absent);
    Member { reason, port, rid, last, register, next }
}

/// The port of a set whose turn it is.
struct OfSet {
    port: NodeId,
    last: NodeId,
    register: millrace_netlist::RegisterId,
    /// The ports that had theirs.
    next: NodeId,
}

fn port_of_set(top: &mut Top<'_>, fate: &Fate) -> OfSet {
    let m = &mut top.m;
    let (register, served) = m.register("ports_served", 64, Some(0));
    let open = m.not(served);
    let left = m.and(fate.ports, open);
    let zero = m.number(64, 0);
    let negative = m.sub(zero, left);
    let lowest = m.and(left, negative);
    let bits: Vec<(NodeId, NodeId)> =
        (0..64).map(|at| (m.bit(lowest, at), m.number(32, at.into()))).collect();
    let port = m.one_hot(32, &bits);
    let next = m.or(served, lowest);
    let others = m.xor(left, lowest);
    let last = m.is(others, 0);
    OfSet { port, last, register, next }
}
