//! What becomes of a frame after ingress: copies, one a cycle, for egress.

use super::build::{Header, Top, role_of};
use super::clones::{FateClone, Turn};
use super::clones_of_egress::ClonesWait;
use super::fate::{Fate, is_told_of_copies};
use super::lists::{Member, listed};
use super::shape::Shape;
use super::waiting::{Step, Waiting};
use crate::parts::later;
use crate::stage::Input;
use millrace_netlist::{ModuleBuilder, NodeId, RegisterId, address_width};
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

/// Copies of frames, in the order in which the frames come.
pub(super) fn copies(top: &mut Top<'_>, fate: Fate, depth: u32) -> Copies {
    match top.shape.headers.has_groups {
        true => listed(top, fate, depth),
        false => at_once(top, fate, depth),
    }
}

/// Of frames that have no list. A frame that finds nothing waiting goes on in the same cycle.
fn at_once(top: &mut Top<'_>, fate: Fate, depth: u32) -> Copies {
    let waiting = Waiting::new(&mut top.m, fate, (depth, false));
    let copy = Step::new(&mut top.m, "copy");
    let m = &mut top.m;
    let word = m.mux(waiting.some, waiting.oldest, waiting.word);
    let there = m.or(waiting.some, waiting.comes);
    let fate = waiting.fate(m, there, word);
    let ready = top.egress.ready(m);
    let free = copy.is_free(m, ready);
    copy.connect(m, free, there);
    let choice = choose(top, &fate, None, free);
    let made = make(top, &fate, &choice, None);
    let m = &mut top.m;
    let consumed = m.all(&[there, choice.last, free]);
    let empty = m.not(waiting.some);
    let passes = m.and(empty, consumed);
    let stays = m.not(passes);
    let (push, pop) = (m.and(waiting.comes, stays), m.and(waiting.some, consumed));
    waiting.connect(m, push, pop);
    Copies { copy: made.registered(m, copy.valid, free), consumed, of_bank: fate.header.bank, clones: None }
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
    pub(super) fn registered(mut self, m: &mut ModuleBuilder, valid: NodeId, free: NodeId) -> Copy {
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

/// Which copy of a frame is made.
pub(super) struct Choice {
    pub(super) reason: NodeId,
    pub(super) last: NodeId,
    /// Its port is that of a node.
    pub(super) by_group: NodeId,
    /// Its port is that of a set.
    pub(super) by_set: NodeId,
    pub(super) port: NodeId,
    /// Whether it starts again as a clone; the most bytes of a clone, and its class.
    pub(super) turn: Option<[NodeId; 3]>,
}

impl Choice {
    /// The only copy of a frame that has no list.
    pub(super) fn plain(m: &mut ModuleBuilder, fate: &Fate) -> Choice {
        let (no, one) = (m.number(1, 0), m.number(1, 1));
        let port = m.number(m.width(fate.ports), 0);
        let port = m.resize(port, address_width(m.width(port)));
        Choice { reason: fate.reason, last: one, by_group: no, by_set: no, port, turn: None }
    }

    pub(super) fn parts(&mut self) -> Vec<(&'static str, &mut NodeId)> {
        let Choice { reason, last, by_group, by_set, port, turn } = self;
        let all =
            [("reason", reason), ("last", last), ("by_group", by_group), ("by_set", by_set), ("port", port)];
        let of_turn = turn
            .iter_mut()
            .flat_map(|[starts, most, class]| [("starts", starts), ("truncate", most), ("class", class)]);
        all.into_iter().chain(of_turn).collect()
    }
}

/// Whether a frame is resubmitted with this copy.
fn resubmits(m: &mut ModuleBuilder, fate: &Fate, starts: Option<NodeId>) -> Option<NodeId> {
    let asks = fate.again.as_ref().map(|again| again.asks)?;
    Some(match starts {
        Some(starts) => {
            let begins = m.not(starts);
            m.and(asks, begins)
        }
        None => asks,
    })
}

/// The copy whose turn it is, and the next when `moves` says so.
pub(super) fn choose(
    top: &mut Top<'_>,
    fate: &Fate,
    of: Option<(&Member, Option<&Turn>)>,
    moves: NodeId,
) -> Choice {
    let of_set = port_of_set(top, fate);
    let m = &mut top.m;
    let turn = of.and_then(|(_, turn)| turn);
    let fine = m.is(fate.reason, 0);
    // What starts again, or is a clone, has none of the copies that ingress asked for.
    let mut others = vec![fine];
    if let Some(turn) = turn {
        others.extend([turn.starts, turn.is_clone].map(|is| m.not(is)));
    }
    let resubmits = resubmits(m, fate, turn.map(|turn| turn.starts));
    others.extend(resubmits.map(|is| m.not(is)));
    let fine = m.all(&others);
    let grouped = m.reduce_or(fate.group);
    let asked = m.reduce_or(fate.ports);
    let not_group = m.not(grouped);
    let by_set = m.all(&[fine, asked, not_group]);
    let one = m.number(1, 1);
    let (mut reason, mut last) = (fate.reason, m.mux(by_set, of_set.last, one));
    let mut by_group = m.number(1, 0);
    if let Some((member, _)) = of {
        by_group = m.and(fine, grouped);
        reason = m.mux(by_group, member.reason, reason);
    }
    if let Some(turn) = turn {
        by_group = m.or(by_group, turn.by_list);
        let of_clone = m.mux(turn.by_list, fate.reason, reason);
        reason = m.mux(turn.decides, turn.reason, of_clone);
    }
    if let Some((member, _)) = of {
        last = m.mux(by_group, member.last, last);
    }
    if let Some(turn) = turn {
        last = m.mux(turn.decides, turn.last, last);
    }
    let moves = m.and(fate.header.valid, moves);
    if let Some((member, _)) = of {
        count_copies(m, (member.made, 0, by_group), moves, last);
        count_copies(m, (member.with_this, 1, by_group), moves, last);
    }
    count_copies(m, ((of_set.register, of_set.next), 0, by_set), moves, last);
    if let Some(turn) = turn {
        turn.connect(m, moves, last);
    }
    let turn = turn.map(|turn| [turn.starts, turn.truncate, turn.class]);
    Choice { reason, last, by_group, by_set, port: of_set.port, turn }
}

/// A copy of the frame; of a node, if it is by a list.
pub(super) fn make(top: &mut Top<'_>, fate: &Fate, choice: &Choice, node: Option<NodeId>) -> Copy {
    let m = &mut top.m;
    let port = m.resize(fate.port, 32);
    let of_set = m.resize(choice.port, 32);
    let port = m.mux(choice.by_set, of_set, port);
    let none = m.number(16, 0);
    let (port, rid) = match node {
        Some(node) => {
            let (of_node, rid) = (m.slice(node, 0, 32), m.slice(node, 32, 16));
            (m.mux(choice.by_group, of_node, port), m.mux(choice.by_group, rid, none))
        }
        None => (port, none),
    };
    let starts = choice.turn.map(|[starts, ..]| starts);
    let resubmits = resubmits(m, fate, starts);
    let (number, is_port) = top.shape.port_of(m, port);
    let path = path(m, (choice.by_group, choice.by_set), fate);
    let told = Told { port, rid, path };
    let given = given(top, fate, &told);
    let kept = kept(top, fate, (&told, starts, resubmits));
    let m = &mut top.m;
    let (header, emitted) = (fate.header, fate.emitted);
    let of_clone = choice.turn.zip(fate.clone.as_ref());
    let class =
        of_clone.map_or(fate.class, |([_, _, class], clone)| m.mux(clone.is_clone, class, fate.class));
    let most = fate.most.map(|asked| [session_cut(m, of_clone), asked]);
    let clone = of_clone.map(|([starts, ..], clone)| CopyClone {
        starts,
        session: clone.session,
        of_egress: clone.of_egress,
        parsed: clone.parsed,
    });
    let starts = resubmits.filter(|_| top.shape.tag > 0).map(|resubmits| match starts {
        Some(starts) => m.or(resubmits, starts),
        None => resubmits,
    });
    let number = match starts {
        Some(starts) => {
            let side = m.number(top.shape.port_bits(), top.shape.ports.into());
            m.mux(starts, side, number)
        }
        None => number,
    };
    let (reason, last) = (choice.reason, choice.last);
    Copy { header, reason, port: number, is_port, class, last, emitted, given, starts, kept, clone, most }
}

/// What counts the copies of a frame: a register with its next value, what it begins with, and whether it counts this copy.
fn count_copies(
    m: &mut ModuleBuilder,
    ((register, next), first, own): ((RegisterId, NodeId), u128, NodeId),
    moves: NodeId,
    last: NodeId,
) {
    let goes_on = m.not(last);
    let first = m.number(m.width(next), first);
    let counts = m.and(own, goes_on);
    let value = m.mux(counts, next, first);
    m.set_next(register, value);
    m.set_enable(register, moves);
}

/// The most bytes of this copy by a session.
fn session_cut(m: &mut ModuleBuilder, of: Option<([NodeId; 3], &FateClone)>) -> NodeId {
    let unlimited = m.number(Shape::LENGTH, u128::from(Shape::NO_LIMIT));
    of.map_or(unlimited, |([starts, truncate, _], clone)| {
        let of_session = m.or(starts, clone.is_clone);
        m.mux(of_session, truncate, unlimited)
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
    (told, starts, resubmits): (&Told, Option<NodeId>, Option<NodeId>),
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
        kept.push(match (starts, of_clone) {
            (Some(starts), Some(of_clone)) => m.mux(starts, *of_clone, before),
            _ => before,
        });
    }
    kept
}

/// The port of a set whose turn it is.
struct OfSet {
    port: NodeId,
    last: NodeId,
    register: RegisterId,
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
        (0..width).map(|at| (m.bit(lowest, at), m.number(address_width(width), at.into()))).collect();
    let port = m.one_hot(address_width(width), &bits);
    let next = m.or(served, lowest);
    let others = m.xor(left, lowest);
    let last = m.is(others, 0);
    OfSet { port, last, register, next }
}
