//! What P4Runtime wants remembered and the switch has no use for: metadata of entries, one-shot groups as they were
//! written, watch ports, backup replicas, digest settings, timers of idle entries.
//!
//! It belongs to one loaded program.

use crate::idle::Timers;
use millrace_dataplane::PortId;
use millrace_p4runtime_api::v1;
use millrace_pipeline::{DigestId, EntryMatch, ProfileId, TableId};
use millrace_state::{EntryIndex, GroupMember};
use prost::bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Ids of one-shot members and groups start here; controllers cannot name them.
pub(crate) const FIRST_ONE_SHOT: u32 = 0x8000_0000;

/// Table, matches in canonical form, priority; without matches it is the default entry.
pub(crate) type EntryKey = (TableId, Vec<EntryMatch>, u32);

#[derive(Debug, Default)]
pub(crate) struct Shadow {
    pub(crate) cookies: HashMap<EntryKey, Cookie>,
    pub(crate) one_shots: HashMap<(ProfileId, u32), OneShot>,
    pub(crate) groups: HashMap<(ProfileId, u32), Group>,
    pub(crate) multicast: HashMap<u32, v1::MulticastGroupEntry>,
    pub(crate) clones: HashMap<u32, v1::CloneSessionEntry>,
    pub(crate) digests: HashMap<DigestId, v1::digest_entry::Config>,
    pub(crate) timers: Timers,
    /// Ports that are down.
    pub(crate) down: BTreeSet<PortId>,
    /// The next id of a one-shot member or group.
    pub(crate) next_one_shot: u32,
}

/// What a controller attached to an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cookie {
    pub(crate) metadata: Bytes,
    pub(crate) controller: u64,
}

impl Cookie {
    pub(crate) fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.controller == 0
    }
}

/// The members of a group with their ports.
pub(crate) type Watched = Vec<(GroupMember, Option<PortId>)>;

/// A group that came with its entry.
#[derive(Clone, Debug)]
pub(crate) struct OneShot {
    pub(crate) members: Watched,
    pub(crate) message: v1::ActionProfileActionSet,
}

/// A group that a controller made.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) members: Watched,
    pub(crate) message: v1::ActionProfileGroup,
}

/// All members, whatever their ports.
pub(crate) fn all(members: &Watched) -> Vec<GroupMember> {
    members.iter().map(|(member, _)| *member).collect()
}

/// What was remembered under a key before a write; none: nothing.
#[derive(Debug)]
pub(crate) enum Before {
    Cookie(EntryKey, Cookie),
    /// When the entry is due to be looked at.
    Timer(TableId, EntryIndex, Option<u64>),
    OneShot((ProfileId, u32), Option<OneShot>),
    Group((ProfileId, u32), Option<Group>),
    Multicast(u32, Option<v1::MulticastGroupEntry>),
    Clone(u32, Option<v1::CloneSessionEntry>),
    Digest(DigestId, Option<v1::digest_entry::Config>),
}

/// Has a map hold that, or nothing, at a key; gives what it held.
pub(crate) fn put<K: Eq + Hash, T>(map: &mut HashMap<K, T>, key: K, value: Option<T>) -> Option<T> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

impl Shadow {
    /// Remembers again what was before a write.
    pub(crate) fn recall(&mut self, before: Before) {
        match before {
            Before::Cookie(key, cookie) => drop(self.attach(key, cookie)),
            Before::Timer(table, index, Some(due_ns)) => self.timers.set(table, index, due_ns),
            Before::Timer(table, index, None) => self.timers.cancel(table, index),
            Before::OneShot(key, before) => drop(put(&mut self.one_shots, key, before)),
            Before::Group(key, before) => drop(put(&mut self.groups, key, before)),
            Before::Multicast(id, before) => drop(put(&mut self.multicast, id, before)),
            Before::Clone(id, before) => drop(put(&mut self.clones, id, before)),
            Before::Digest(digest, before) => drop(put(&mut self.digests, digest, before)),
        }
    }

    /// The members whose ports are up.
    pub(crate) fn up(&self, members: &Watched) -> Vec<GroupMember> {
        let up = |port: &Option<PortId>| port.is_none_or(|port| !self.down.contains(&port));
        members.iter().filter(|(_, port)| up(port)).map(|(member, _)| *member).collect()
    }

    /// Whether a group has a member, also one that it does without as its port is down.
    pub(crate) fn has_member(&self, profile: ProfileId, id: u32) -> bool {
        // Without such ports the tables know.
        !self.down.is_empty()
            && self.groups.iter().any(|((of, _), group)| {
                *of == profile && group.members.iter().any(|(member, _)| member.member == id)
            })
    }

    /// An id for a one-shot member or group.
    pub(crate) fn one_shot_id(&mut self) -> u32 {
        let id = FIRST_ONE_SHOT | self.next_one_shot;
        self.next_one_shot = (self.next_one_shot + 1) & !FIRST_ONE_SHOT;
        id
    }

    /// Attaches metadata to an entry, or takes it away; gives what was there.
    pub(crate) fn attach(&mut self, key: EntryKey, cookie: Cookie) -> Cookie {
        match cookie.is_empty() {
            true => self.cookies.remove(&key),
            false => self.cookies.insert(key, cookie),
        }
        .unwrap_or_default()
    }
}
