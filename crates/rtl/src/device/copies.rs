//! What becomes of a frame after ingress: copies, one a cycle, for egress.

use super::build::{Header, Top, role_of};
use super::clones::{Turn, turn};
use super::clones_of_egress::{ClonesWait, wait_for_copies};
use super::control::{GROUP_WORDS, group_widths};
use super::fate::{Fate, is_told_of_copies};
use super::shape::Shape;
use super::{GROUPS, NODES, Reason};
use crate::parts::later;
use crate::software_port::PortKind;
use crate::stage::Input;
use millrace_netlist::{ModuleBuilder, NodeId, address_width};
use millrace_pipeline::{Intrinsic, PacketPath};

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
    /// What stages after ingress are given.
    pub(super) given: Vec<(Input, NodeId)>,
    /// Whether it starts again without egress; none: no frame starts again.
    pub(super) starts: Option<NodeId>,
    /// What is in the slots of its tag.
    pub(super) kept: Vec<NodeId>,
    pub(super) clone: Option<CopyClone>,
    /// The most bytes that it may have: by its session, and by what the program asked for in ingress.
    pub(super) most: Option<[NodeId; 2]>,
}

/// What of clones goes with a copy.
pub(super) struct CopyClone {
    /// Whether it starts again as a clone, and the session of that.
    pub(super) starts: NodeId,
    pub(super) session: NodeId,
    /// It is a copy of a clone of egress.
    pub(super) of_egress: NodeId,
    /// The bytes of headers when it was parsed, where clones of egress need them.
    pub(super) parsed: Option<NodeId>,
}

pub(super) struct Copies {
    pub(super) copy: Copy,
    /// Where clones of egress wait.
    pub(super) clones: Option<ClonesWait>,
    /// A frame has all its copies, and the bank that it meets.
    pub(super) consumed: NodeId,
    pub(super) of_bank: NodeId,
}

/// Frames wait here while one of them is copied. A frame that finds nothing waiting goes on in the same cycle.
pub(super) fn copies(top: &mut Top<'_>, fate: Fate, depth: u32) -> Copies {
    let mut fate = fate;
    let values: Vec<NodeId> = fate.parts().into_iter().map(|part| *part).collect();
    let m = &mut top.m;
    // What is always the same, or is there twice, does not wait, but where clones of egress do, which may have something else there.
    let mut stored: Vec<NodeId> = values.clone();
    if !top.shape.features.clones_egress {
        stored.retain(|value| m.as_constant(*value).is_none());
        stored.sort_unstable();
        stored.dedup();
    }
    let widths: Vec<u32> = stored.iter().map(|value| m.width(*value)).collect();
    let all = m.concat(&stored);
    let waiting = m.memory("frames_to_copy", m.width(all), depth, Vec::new());
    let bits = address_width(depth);
    let (head_register, head) = m.register("copy_head", bits, Some(0));
    let (tail_register, tail) = m.register("copy_tail", bits, Some(0));
    let (count_register, count) = m.register("copy_count", bits + 1, Some(0));
    let empty = m.is(count, 0);
    let oldest = m.read(waiting, head);
    let first = m.mux(empty, all, oldest);
    let some = m.not(empty);
    let mut there = m.or(some, fate.header.valid);
    // Clones of egress come first; a frame that may be cloned waits until there is room for its clone.
    let mut clones = wait_for_copies(top, &widths);
    let m = &mut top.m;
    let first = match &clones {
        Some(clones) => {
            let may = m.and(there, clones.has_room);
            there = m.mux(clones.goes, clones.some, may);
            m.mux(clones.goes, clones.first, first)
        }
        None => first,
    };
    let mut high = m.width(first);
    let mut parts: Vec<NodeId> = widths
        .iter()
        .map(|width| {
            high -= width;
            m.slice(first, high, *width)
        })
        .collect();
    if !top.shape.features.clones_egress {
        let of = |value: &NodeId| stored.binary_search(value).map_or(*value, |at| parts[at]);
        parts = values.iter().map(of).collect();
    }
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
    let ended = m.all(&[there, last, free]);
    let consumed = match &mut clones {
        Some(clones) => {
            let moves = m.and(there, free);
            clones.advance(m, (moves, last), fate_now.header.bank);
            let others = m.not(clones.goes);
            m.and(ended, others)
        }
        None => ended,
    };
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
    let of_bank = fate_now.header.bank;
    Copies { copy: copy.registered(m, valid, free), consumed, of_bank, clones }
}

impl Copy {
    /// All of it but whether it is there, each with a name.
    fn parts(&mut self) -> Vec<(String, &mut NodeId)> {
        let Header { valid: _, port, slot, length, time, bank, tag } = &mut self.header;
        let time = tag.is_some().then_some(("time", time));
        let [bits, bytes, from] = &mut self.emitted;
        let own = [
            ("from", port),
            ("slot", slot),
            ("length", length),
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
        let may_be = [("tag", tag), ("starts", &mut self.starts)];
        let may_be = may_be.into_iter().filter_map(|(name, part)| Some((name, part.as_mut()?)));
        let clone = self.clone.iter_mut().flat_map(|CopyClone { starts, session, of_egress, parsed }| {
            let all = [("is_clone", starts), ("session", session), ("of_egress", of_egress)];
            all.into_iter().chain(parsed.as_mut().map(|parsed| ("parsed", parsed)))
        });
        let most = self.most.iter_mut().flat_map(|[cut, asked]| [("most", cut), ("most_asked", asked)]);
        let all = own.into_iter().chain(time).chain(may_be).chain(clone).chain(most);
        let all = all.map(|(name, part)| (name.to_owned(), part));
        let given = (0..).zip(&mut self.given);
        let given = given.map(|(at, (_, value)): (usize, _)| (format!("input{at}"), value));
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

    /// So many cycles later.
    pub(super) fn later(mut self, m: &mut ModuleBuilder, of: &str, valid: NodeId, cycles: u32) -> Copy {
        self.header.valid = later(m, &format!("{of}_valid"), valid, cycles, Some(0));
        for (name, part) in self.parts() {
            *part = later(m, &format!("{of}_{name}"), *part, cycles, None);
        }
        self
    }
}

/// A copy of the frame, and whether it is the last one.
fn next_copy(top: &mut Top<'_>, fate: &Fate, free: NodeId) -> (Copy, NodeId) {
    let turn = turn(top, fate);
    let member = match top.shape.headers.has_groups {
        true => group_member(top, fate, turn.as_ref()),
        false => no_member(&mut top.m),
    };
    let of_set = port_of_set(top, fate);
    let m = &mut top.m;
    let fine = m.is(fate.reason, 0);
    let resubmits = fate.again.as_ref().map(|again| again.asks);
    // What starts again, or is a clone, has none of the copies that ingress asked for.
    let mut others = vec![fine];
    if let Some(turn) = &turn {
        others.extend([turn.starts, turn.is_clone].map(|is| m.not(is)));
    }
    let resubmits = resubmits.map(|asks| match &turn {
        Some(turn) => {
            let begins = m.not(turn.starts);
            m.and(asks, begins)
        }
        None => asks,
    });
    others.extend(resubmits.map(|is| m.not(is)));
    let fine = m.all(&others);
    let grouped = m.reduce_or(fate.group);
    let asked = m.reduce_or(fate.ports);
    let mut by_group = m.and(fine, grouped);
    let not_group = m.not(grouped);
    let by_set = m.all(&[fine, asked, not_group]);
    let mut reason = m.mux(by_group, member.reason, fate.reason);
    if let Some(turn) = &turn {
        by_group = m.or(by_group, turn.by_list);
        let of_clone = m.mux(turn.by_list, fate.reason, reason);
        reason = m.mux(turn.decides, turn.reason, of_clone);
    }
    let port = m.resize(fate.port, 32);
    let port = m.mux(by_set, of_set.port, port);
    let port = m.mux(by_group, member.port, port);
    let none = m.number(16, 0);
    let rid = m.mux(by_group, member.rid, none);
    let one = m.number(1, 1);
    let last = m.mux(by_set, of_set.last, one);
    let mut last = m.mux(by_group, member.last, last);
    if let Some(turn) = &turn {
        last = m.mux(turn.decides, turn.last, last);
    }

    let moves = m.and(fate.header.valid, free);
    let counters = [(member.register, member.next, by_group), (of_set.register, of_set.next, by_set)];
    count_copies(m, counters, moves, last);
    if let Some(turn) = &turn {
        turn.connect(m, moves, last);
    }
    let (number, is_port) = top.shape.port_of(m, port);
    let path = path(m, (by_group, by_set), fate);
    let told = Told { port, rid, path };
    let given = given(top, fate, &told);
    let kept = kept(top, fate, (&told, turn.as_ref(), resubmits));
    let m = &mut top.m;
    let starts = resubmits.filter(|_| top.shape.tag > 0).map(|resubmits| match &turn {
        Some(turn) => m.or(resubmits, turn.starts),
        None => resubmits,
    });
    let number = match starts {
        Some(starts) => {
            let side = m.number(top.shape.port_bits(), top.shape.ports.into());
            m.mux(starts, side, number)
        }
        None => number,
    };
    let (header, emitted) = (fate.header, fate.emitted);
    let class = turn.as_ref().map_or(fate.class, |turn| m.mux(turn.is_clone, turn.class, fate.class));
    let most = fate.most.map(|asked| [session_cut(m, turn.as_ref()), asked]);
    let clone = turn.as_ref().zip(fate.clone.as_ref()).map(|(turn, clone)| CopyClone {
        starts: turn.starts,
        session: turn.session,
        of_egress: clone.of_egress,
        parsed: clone.parsed,
    });
    let copy = Copy {
        header,
        reason,
        port: number,
        is_port,
        class,
        last,
        emitted,
        given,
        starts,
        kept,
        clone,
        most,
    };
    (copy, last)
}

/// What counts the copies of a frame: a register, its next value, and whether it counts this copy.
fn count_copies(
    m: &mut ModuleBuilder,
    counters: [(millrace_netlist::RegisterId, NodeId, NodeId); 2],
    moves: NodeId,
    last: NodeId,
) {
    let goes_on = m.not(last);
    for (register, next, own) in counters {
        let zero = m.number(m.width(next), 0);
        let counts = m.and(own, goes_on);
        let value = m.mux(counts, next, zero);
        m.set_next(register, value);
        m.set_enable(register, moves);
    }
}

/// The most bytes of this copy by a session.
fn session_cut(m: &mut ModuleBuilder, turn: Option<&Turn>) -> NodeId {
    let unlimited = m.number(Shape::LENGTH, u128::from(Shape::NO_LIMIT));
    turn.map_or(unlimited, |turn| {
        let of_session = m.or(turn.starts, turn.is_clone);
        m.mux(of_session, turn.truncate, unlimited)
    })
}

/// How egress is told that the copy came there.
fn path(m: &mut ModuleBuilder, (by_group, by_set): (NodeId, NodeId), fate: &Fate) -> NodeId {
    let replicated = m.or(by_group, by_set);
    let mut number = |path: PacketPath| m.number(32, path as u128);
    let (normal, replica) = (number(PacketPath::Normal), number(PacketPath::Replication));
    let (of_ingress, of_egress) = (number(PacketPath::IngressClone), number(PacketPath::EgressClone));
    let path = m.mux(replicated, replica, normal);
    match &fate.clone {
        Some(clone) => {
            let of_clone = m.mux(clone.of_egress, of_egress, of_ingress);
            m.mux(clone.is_clone, of_clone, path)
        }
        None => path,
    }
}

/// What egress is told of a copy.
struct Told {
    port: NodeId,
    rid: NodeId,
    path: NodeId,
}

impl Told {
    fn of(&self, role: Option<Intrinsic>) -> Option<NodeId> {
        match role {
            Some(Intrinsic::EgressPort) => Some(self.port),
            Some(Intrinsic::EgressRid) => Some(self.rid),
            Some(Intrinsic::PacketPath) => Some(self.path),
            _ => None,
        }
    }
}

/// What stages after ingress are given.
fn given(top: &mut Top<'_>, fate: &Fate, told: &Told) -> Vec<(Input, NodeId)> {
    let mut given = Vec::new();
    for (input, width) in top.carried() {
        let kept = fate.kept.iter().find(|(other, _)| *other == input).map(|(_, value)| *value);
        let role = match input {
            Input::Slot(slot) => role_of(top.program, slot),
            _ => None,
        };
        let m = &mut top.m;
        let value = match (told.of(role), kept) {
            (Some(value), _) | (None, Some(value)) => value,
            (None, None) => m.number(width, 0),
        };
        given.push((input, m.resize(value, width)));
    }
    given
}

/// What is in the slots of the tag of a copy: what it keeps if it starts again now, else what it has before egress.
fn kept(
    top: &mut Top<'_>,
    fate: &Fate,
    (told, turn, resubmits): (&Told, Option<&Turn>, Option<NodeId>),
) -> Vec<NodeId> {
    let (Some(again), Some(tag), Some(resubmits)) = (&fate.again, top.again.clone(), resubmits) else {
        return Vec::new();
    };
    let m = &mut top.m;
    let mut kept = Vec::new();
    for (at, ((slot, width), value)) in tag.slots.iter().zip(&again.values).enumerate() {
        let role = role_of(top.program, *slot);
        let starts_again = role.is_some_and(is_told_of_copies) || top.program.reset_at_egress.contains(slot);
        let of_copy = match told.of(role) {
            Some(told) => m.resize(told, *width),
            None if starts_again => m.number(*width, 0),
            None => *value,
        };
        let before = m.mux(resubmits, *value, of_copy);
        let of_clone = fate.clone.as_ref().and_then(|clone| clone.values.get(at));
        kept.push(match (turn, of_clone) {
            (Some(turn), Some(of_clone)) => m.mux(turn.starts, *of_clone, before),
            _ => before,
        });
    }
    kept
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

/// Of a program that asks for no group.
fn no_member(m: &mut ModuleBuilder) -> Member {
    let (register, _) = m.register("copies_made", 1, Some(0));
    let (reason, port, rid) = (m.number(4, 0), m.number(32, 0), m.number(16, 0));
    Member { reason, port, rid, last: m.number(1, 1), register, next: m.number(1, 0) }
}

/// Groups and nodes are words as [`crate::groups`] has them.
fn group_member(top: &mut Top<'_>, fate: &Fate, turn: Option<&Turn>) -> Member {
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
    let low = m.resize(fate.group, at_bits);
    let low = m.concat(&[low, bank]);
    let word = m.read(groups, low);
    let exists = m.bit(word, 2 * node_bits + 1);
    let list = m.slice(word, 0, 2 * node_bits + 1);
    let word = turn.map_or(list, |turn| m.mux(turn.by_list, turn.list, list));
    let first = m.slice(word, 0, node_bits);
    let count = m.slice(word, node_bits, node_bits + 1);
    let most = m.number(32, u128::from(GROUPS));
    let group = m.resize(fate.group, 32);
    let inside = m.lt(group, most);
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
    let of_group = m.or(ends, absent);
    let last = turn.map_or(of_group, |turn| m.mux(turn.by_list, ends, of_group));
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
    let width = m.width(fate.ports);
    let (register, served) = m.register("ports_served", width, Some(0));
    let open = m.not(served);
    let left = m.and(fate.ports, open);
    let zero = m.number(width, 0);
    let negative = m.sub(zero, left);
    let lowest = m.and(left, negative);
    let bits: Vec<(NodeId, NodeId)> =
        (0..width).map(|at| (m.bit(lowest, at), m.number(32, at.into()))).collect();
    let port = m.one_hot(32, &bits);
    let next = m.or(served, lowest);
    let others = m.xor(left, lowest);
    let last = m.is(others, 0);
    OfSet { port, last, register, next }
}
