//! Frames whose copies are in a list: a multicast group, or the copies of a clone session.
//!
//! ```text
//!  waiting -> looked -> told -> asked -> read -> copy
//!             words of          node
//!             its lists
//! ```
//!
//! What a list is, and each of its nodes, is in block memory, which says it a cycle later. So a frame passes places one after the other:
//! at `looked` the words of its group and session are read, at `told` its copies are chosen, one a cycle, at `asked` and `read` the node
//! of each is read. Each place is free when the next one is, so a copy a cycle leaves whatever the frames are. A frame with one copy
//! and no list, which finds all places empty, does not pass them.

use super::build::Top;
use super::clones::{OfSession, SessionMemory, Turn, turn};
use super::clones_of_egress::{ClonesWait, wait_for_copies};
use super::control::{GROUP_WORDS, group_widths};
use super::copies::{Choice, Copies, choose, make};
use super::fate::Fate;
use super::waiting::{Step, Waiting};
use super::{GROUPS, NODES, Reason};
use crate::software_port::PortKind;
use millrace_netlist::{MemoryId, ModuleBuilder, NodeId, RegisterId, address_width};

/// Places of frames with lists, before their copies.
pub(super) const PLACES: u32 = 4;

/// Groups and nodes, whose words are as [`crate::groups`] has them.
struct Lists {
    groups: MemoryId,
    nodes: MemoryId,
}

impl Lists {
    /// Software writes only words of the bank that no frame meets.
    fn new(top: &mut Top<'_>) -> Lists {
        let m = &mut top.m;
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
            m.promise_no_collision(memory);
        }
        Lists { groups, nodes }
    }
}

/// The copy of a list whose turn it is.
pub(super) struct Member {
    pub(super) reason: NodeId,
    pub(super) last: NodeId,
    /// Copies of the frame that are made, and those with this one.
    pub(super) made: (RegisterId, NodeId),
    pub(super) with_this: (RegisterId, NodeId),
    /// The word of its node.
    place: NodeId,
}

/// Copies of frames by lists.
pub(super) fn listed(top: &mut Top<'_>, fate: Fate, depth: u32) -> Copies {
    let clones_egress = top.shape.features.clones_egress;
    let waiting = Waiting::new(&mut top.m, fate.clone(), (depth, clones_egress));
    // Clones of egress come first; a frame that may be cloned waits until there is room for its clone.
    let widths = waiting.widths(&top.m);
    let mut clones = wait_for_copies(top, &widths);
    let sessions = fate.clone.is_some().then(|| SessionMemory::new(top));
    let lists = Lists::new(top);
    let m = &mut top.m;
    let [looked, told, asked, read, copy] =
        ["looked", "told", "asked", "read", "copy"].map(|name| Step::new(m, name));
    let told_word = m.register("told_word", m.width(waiting.word), None);
    let told_group = m.register("told_group", group_widths().0, None);
    let told_session = sessions.as_ref().map(|sessions| m.register("told_session", sessions.width, None));

    // From the last place to the first: whether it is free.
    let ready = top.egress.ready(m);
    let copy_free = copy.is_free(m, ready);
    let read_free = read.is_free(m, copy_free);
    let asked_free = asked.is_free(m, read_free);
    let fate_told = waiting.fate(m, told.valid, told_word.1);
    let of_session = told_session
        .zip(fate_told.clone.as_ref())
        .map(|((_, word), clone)| OfSession::of(top, word, clone.session));
    let turn = of_session.and_then(|session| turn(top, &fate_told, session));
    let member = member(&mut top.m, &fate_told, told_group.1, turn.as_ref());
    let mut choice = choose(top, &fate_told, Some((&member, turn.as_ref())), asked_free);
    let m = &mut top.m;
    let ends = m.and(choice.last, asked_free);
    let told_free = told.is_free(m, ends);
    let looked_free = looked.is_free(m, told_free);

    // What finds all places empty.
    let places = [looked.valid, told.valid, asked.valid, read.valid, waiting.some];
    let passes = match sessions.is_some() {
        true => m.number(1, 0),
        false => {
            let (of_group, of_set) = (m.reduce_or(fate.group), m.reduce_or(fate.ports));
            let others = m.any(&[places.as_slice(), &[of_group, of_set]].concat());
            let alone = m.not(others);
            m.and(waiting.comes, alone)
        }
    };
    let passed = m.and(passes, copy_free);

    let Coming { some, word, push, pop } = coming(m, &waiting, clones.as_mut(), (passed, looked_free));
    let fate_now = waiting.fate(m, some, word);
    let looks = m.and(looked_free, some);
    let group = m.resize(fate_now.group, address_width(GROUPS));
    let group = m.concat(&[group, fate_now.header.bank]);
    let group_word = m.read_clocked(lists.groups, group, Some(looks));
    looked.connect(m, looked_free, some);
    let word = looked.keep(m, "word", word, looked_free);

    told.connect(m, told_free, looked.valid);
    let session_word = sessions.as_ref().map(|sessions| sessions.read(m, &fate_now, looks));
    let taken = [(told_word.0, Some(word)), (told_group.0, Some(group_word))];
    let of_session = told_session.map(|(register, _)| (register, session_word));
    for (register, value) in taken.into_iter().chain(of_session) {
        value.into_iter().for_each(|value| m.set_next(register, value));
        m.set_enable(register, told_free);
    }

    // The node of the copy.
    let asks = m.and(told.valid, asked_free);
    let place = m.concat(&[member.place, fate_told.header.bank]);
    let node = m.read_clocked(lists.nodes, place, Some(asks));
    asked.connect(m, asked_free, told.valid);
    read.connect(m, read_free, asked.valid);
    let mut word = told_word.1;
    for (step, free) in [(&asked, asked_free), (&read, read_free)] {
        word = step.keep(m, "word", word, free);
        choice.parts().into_iter().for_each(|(name, part)| *part = step.keep(m, name, *part, free));
    }
    let node = read.keep(m, "node", node, read_free);

    // The copy.
    let there = m.or(read.valid, passes);
    copy.connect(m, copy_free, there);
    let word = m.mux(read.valid, word, waiting.word);
    let fate = waiting.fate(m, there, word);
    let mut plain = Choice::plain(m, &fate);
    plain.turn = choice.turn;
    for ((_, part), (_, other)) in choice.parts().into_iter().zip(plain.parts()) {
        *part = m.mux(read.valid, *part, *other);
    }
    let made = make(top, &fate, &choice, Some(node));
    let m = &mut top.m;
    let mut consumed = m.all(&[there, choice.last, copy_free]);
    let of_bank = fate.header.bank;
    if let (Some(clones), Some(of)) = (&mut clones, &fate.clone) {
        let other = m.not(of.of_egress);
        clones.done = m.and(consumed, of.of_egress);
        clones.of_bank = of_bank;
        consumed = m.and(consumed, other);
    }
    waiting.connect(m, push, pop);
    Copies { copy: made.registered(m, copy.valid, copy_free), consumed, of_bank, clones }
}

/// What comes to the first place: whether something does, and its word.
struct Coming {
    some: NodeId,
    word: NodeId,
    /// The frame that comes waits, and the oldest that waits goes.
    push: NodeId,
    pop: NodeId,
}

/// A clone of egress, a frame that waits, or one that comes and has not `passed` by.
fn coming(
    m: &mut ModuleBuilder,
    waiting: &Waiting,
    clones: Option<&mut ClonesWait>,
    (passed, free): (NodeId, NodeId),
) -> Coming {
    let not_passed = m.not(passed);
    let comes = m.and(waiting.comes, not_passed);
    let mut some = m.or(waiting.some, comes);
    let mut word = m.mux(waiting.some, waiting.oldest, waiting.word);
    let mut takes = free;
    if let Some(clones) = clones {
        let may = m.and(some, clones.has_room);
        let none = m.not(clones.some);
        takes = m.all(&[free, clones.has_room, none]);
        some = m.or(clones.some, may);
        word = m.mux(clones.some, clones.first, word);
        clones.takes = m.and(clones.some, free);
    }
    let pop = m.and(takes, waiting.some);
    let none_waits = m.not(waiting.some);
    let at_once = m.and(takes, none_waits);
    let waits = m.not(at_once);
    Coming { some, word, push: m.and(comes, waits), pop }
}

/// The copy of a list whose turn it is: of a group, whose word is given, or of a session.
fn member(m: &mut ModuleBuilder, fate: &Fate, word: NodeId, turn: Option<&Turn>) -> Member {
    let node_bits = address_width(NODES);
    // In a register too, as what is compared with it decides about all places before.
    let (made, at) = m.register("copies_made", node_bits + 1, Some(0));
    let (with_this, number) = m.register("copies_with_this", node_bits + 1, Some(1));
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
    let next = m.add_number(number, 1);
    let empty = m.is(count, 0);
    let (no_group, no_copy) =
        (m.number(4, Reason::NoMulticastGroup as u128), m.number(4, Reason::EmptyMulticastGroup as u128));
    let fine = m.number(4, 0);
    let reason = m.mux(empty, no_copy, fine);
    let reason = m.mux(exists, reason, no_group);
    let ends = m.le(count, number);
    let absent = m.not(exists);
    let of_group = m.or(ends, absent);
    let last = turn.map_or(of_group, |turn| m.mux(turn.by_list, ends, of_group));
    Member { reason, last, made: (made, number), with_this: (with_this, next), place }
}
