//! The words of multicast groups in a device.
//!
//! A group is a word at its number: whether there is one, how many copies it has, and its first node. Nodes are words of a replica
//! number and a port. A clone session is such a word, too, with the bytes that its clones keep and their class; its nodes are those of
//! its group and its own. All are there in two banks, as tables are; word n in bank b is word 2 n + b of the port.

use millrace_netlist::address_width;
use millrace_pipeline::Bits;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Multicast groups: those of number 1 to one less.
pub const GROUPS: u32 = 64;
/// Copies of all multicast groups and clone sessions together.
pub const NODES: u32 = 256;
/// Clone sessions: those of number 0 to one less.
pub const SESSIONS: u32 = 512;

/// Multicast groups: for each number the ports and replica numbers of its copies.
pub type Groups = BTreeMap<u32, Vec<(u32, u16)>>;

/// A clone session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// A multicast group that gets copies first.
    pub group: Option<u32>,
    /// Ports and replica numbers of its own copies.
    pub copies: Vec<(u32, u16)>,
    /// The most bytes of its clones; none: all.
    pub truncate: Option<u32>,
    /// Their class of service.
    pub class: u8,
}

/// Clone sessions by their numbers.
pub type Sessions = BTreeMap<u32, Session>;

/// Where things are in the word of a session: lowest bit, bits.
pub(crate) struct SessionWord;

impl SessionWord {
    pub(crate) const LIST: (u32, u32) = (0, 17);
    pub(crate) const EXISTS: (u32, u32) = (17, 1);
    pub(crate) const NO_GROUP: (u32, u32) = (18, 1);
    pub(crate) const TRUNCATE: (u32, u32) = (19, 16);
    pub(crate) const CLASS: (u32, u32) = (35, 3);
}

/// Bits of the word of a session.
pub(crate) fn session_width() -> u32 {
    SessionWord::CLASS.0 + SessionWord::CLASS.1
}

/// What of multicast groups is more than a device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// The number of a group.
    Group(u32),
    /// Copies.
    Copies(usize),
    /// The number of a session, and how many the device has.
    Session(u32, u32),
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooMany::Group(group) => {
                write!(f, "multicast group {group} is not from 1 to {} (limit GROUPS)", GROUPS - 1)
            }
            TooMany::Copies(copies) => {
                write!(
                    f,
                    "{copies} copies in multicast groups and clone sessions, more than {NODES} (limit NODES)"
                )
            }
            TooMany::Session(session, 0) => {
                write!(f, "clone session {session} in a device that clones nothing")
            }
            TooMany::Session(session, held) => {
                write!(f, "clone session {session} is not below {held} (limit SESSIONS)")
            }
        }
    }
}

impl std::error::Error for TooMany {}

/// Bits of the number of a node.
fn node_bits() -> u32 {
    address_width(NODES)
}

/// Bits of the word of a group.
pub(crate) fn group_width() -> u32 {
    1 + node_bits() + 1 + node_bits()
}

/// Bits of the word of a node.
pub(crate) const NODE_WIDTH: u32 = 48;

/// The words of all groups and sessions, and which have changed.
#[derive(Debug)]
pub(crate) struct GroupWords {
    groups: Area,
    nodes: Area,
    sessions: Option<Area>,
    /// What control asked for.
    asked: (Groups, Sessions),
}

#[derive(Debug)]
struct Area {
    /// The number of its port.
    port: usize,
    words: Vec<Bits>,
    changed: BTreeSet<usize>,
}

impl Area {
    fn new(port: usize, words: u32, width: u32) -> Area {
        Area { port, words: vec![Bits::zero(width); words as usize], changed: BTreeSet::new() }
    }

    fn set(&mut self, at: usize, word: Bits) {
        if self.words[at] != word {
            self.words[at] = word;
            self.changed.insert(at);
        }
    }

    fn take(&mut self) -> (usize, Vec<(u64, Bits)>) {
        let changed = std::mem::take(&mut self.changed).into_iter();
        (self.port, changed.map(|at| (2 * at as u64, self.words[at].clone())).collect())
    }
}

impl GroupWords {
    /// None, by the ports of those numbers.
    pub(crate) fn new(groups: usize, nodes: usize, sessions: Option<usize>) -> GroupWords {
        GroupWords {
            groups: Area::new(groups, GROUPS, group_width()),
            nodes: Area::new(nodes, NODES, NODE_WIDTH),
            sessions: sessions.map(|port| Area::new(port, SESSIONS, session_width())),
            asked: Default::default(),
        }
    }

    pub(crate) fn set(&mut self, groups: &Groups) -> Result<(), TooMany> {
        let sessions = self.asked.1.clone();
        self.set_all(groups, &sessions)
    }

    pub(crate) fn set_sessions(&mut self, sessions: &Sessions) -> Result<(), TooMany> {
        let groups = self.asked.0.clone();
        self.set_all(&groups, sessions)
    }

    /// Both; no sessions where nothing clones.
    pub(crate) fn set_needed(&mut self, groups: &Groups, sessions: &Sessions) -> Result<(), TooMany> {
        match self.sessions {
            Some(_) => self.set_all(groups, sessions),
            None => self.set_all(groups, &Sessions::new()),
        }
    }

    fn set_all(&mut self, groups: &Groups, sessions: &Sessions) -> Result<(), TooMany> {
        let held = if self.sessions.is_some() { SESSIONS } else { 0 };
        if let Some(session) = sessions.keys().find(|session| **session >= held) {
            return Err(TooMany::Session(*session, held));
        }
        let of_session = |session: &Session| -> Vec<(u32, u16)> {
            let of_group = session.group.and_then(|group| groups.get(&group));
            of_group.into_iter().flatten().chain(&session.copies).copied().collect()
        };
        let of_sessions: Vec<(u32, Vec<(u32, u16)>)> =
            sessions.iter().map(|(number, session)| (*number, of_session(session))).collect();
        let copies: usize =
            groups.values().chain(of_sessions.iter().map(|(_, list)| list)).map(Vec::len).sum();
        if copies > NODES as usize {
            return Err(TooMany::Copies(copies));
        }
        if let Some(group) = groups.keys().find(|group| !(1..GROUPS).contains(*group)) {
            return Err(TooMany::Group(*group));
        }
        let mut next = 0;
        for number in 1..GROUPS {
            let word = match groups.get(&number) {
                Some(members) => Bits::new(1, 1).concat(&self.add(members, &mut next)),
                None => Bits::zero(group_width()),
            };
            self.groups.set(number as usize, word);
        }
        for number in 0..held {
            let list = of_sessions.iter().find(|(other, _)| *other == number).map(|(_, list)| list);
            let word = match (sessions.get(&number), list) {
                (Some(session), Some(list)) => {
                    let no_group = session.group.is_some_and(|group| !groups.contains_key(&group));
                    let all = SessionWord::TRUNCATE.1;
                    let most = session.truncate.unwrap_or(u32::MAX).min((1 << all) - 1);
                    let class = Bits::new(SessionWord::CLASS.1, session.class.min(7).into());
                    let list = Bits::new(1, 1).concat(&self.add(list, &mut next));
                    class
                        .concat(&Bits::new(all, most.into()))
                        .concat(&Bits::new(1, no_group.into()))
                        .concat(&list)
                }
                _ => Bits::zero(session_width()),
            };
            self.sessions.iter_mut().for_each(|area| area.set(number as usize, word.clone()));
        }
        self.asked = (groups.clone(), sessions.clone());
        Ok(())
    }

    /// Adds the nodes of a list; gives the word that says which they are.
    fn add(&mut self, members: &[(u32, u16)], next: &mut usize) -> Bits {
        let bits = node_bits();
        let word = Bits::new(bits + 1, members.len() as u128)
            .concat(&Bits::new(bits, *next as u128 % u128::from(NODES)));
        for (port, rid) in members {
            let node = Bits::new(16, u128::from(*rid)).concat(&Bits::new(32, u128::from(*port)));
            self.nodes.set(*next, node);
            *next += 1;
        }
        word
    }

    pub(crate) fn change_all(&mut self) {
        for area in
            [Some(&mut self.groups), Some(&mut self.nodes), self.sessions.as_mut()].into_iter().flatten()
        {
            area.changed.extend(0..area.words.len());
        }
    }

    pub(crate) fn take_changes(&mut self) -> impl Iterator<Item = (usize, Vec<(u64, Bits)>)> {
        let sessions = self.sessions.as_mut().map(Area::take);
        [self.nodes.take(), self.groups.take()].into_iter().chain(sessions)
    }
}
