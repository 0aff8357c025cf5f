//! The replication engine: multicast groups and clone sessions, as the control plane configures them.
//!
//! A group is a list of copies to make, each a port and a replica number. It is built from nodes (a replica number and
//! a set of ports that several groups can share, as bmv2's commands do) and from single copies (as P4Runtime does).
//! Copies are made in the order in which nodes were associated, the ports of a node in ascending order, single copies
//! last. Nothing here sees a packet.

use crate::PortId;
use millrace_state::{Account, Charge, Held, OverQuota};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Most multicast groups.
pub const MAX_GROUPS: usize = 1 << 16;
/// Most nodes.
pub const MAX_NODES: usize = 1 << 16;
/// Most clone sessions.
pub const MAX_SESSIONS: usize = 1 << 15;
/// Most copies that one group or session makes of a packet.
pub const MAX_GROUP_COPIES: usize = 4096;
/// Most link aggregation groups, and above their largest number.
pub const MAX_LAGS: usize = 256;
/// bmv2 chooses the port of a link aggregation group by a hash that is always this.
const LAG_HASH: usize = 0xff;

/// One copy to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Where it goes.
    pub port: PortId,
    /// The replica number that egress sees.
    pub rid: u16,
}

/// Names a node. Each gets the lowest free number, as in bmv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeHandle(pub u32);

/// A replica number with the ports that get a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The replica number of the copies.
    pub rid: u16,
    /// The ports, ascending, each once.
    pub ports: Vec<PortId>,
    /// The link aggregation groups, ascending, each once. One port of each gets a copy, after `ports`.
    pub lags: Vec<u16>,
    /// The group that the node belongs to: a node is in one group at most.
    pub group: Option<u32>,
}

/// A multicast group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The nodes, in the order in which they were associated.
    pub nodes: Vec<NodeHandle>,
    /// Single copies, made after those of the nodes.
    pub copies: Vec<Replica>,
}

/// What becomes of a clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Copies to single ports (bmv2's port has replica number 0).
    pub copies: Vec<Replica>,
    /// A multicast group that gets copies too, before `copies`.
    pub group: Option<u32>,
    /// The clone keeps at most that many bytes; none: all.
    pub truncate: Option<u32>,
    /// Its class of service.
    pub class_of_service: u8,
}

impl Session {
    /// A clone to one port.
    pub fn to_port(port: PortId) -> Session {
        Session { copies: vec![Replica { port, rid: 0 }], ..Session::default() }
    }

    /// Clones to a multicast group.
    pub fn to_group(group: u32) -> Session {
        Session { group: Some(group), ..Session::default() }
    }
}

/// Why a configuration was refused. Everything is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicationError {
    /// A written limit is reached.
    TooMany {
        /// What there is too much of, in plural.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Group 0 means "no multicast".
    GroupZero,
    /// The group exists already.
    GroupExists(u32),
    /// There is no such group.
    NoGroup(u32),
    /// There is no such node.
    NoNode(NodeHandle),
    /// The node belongs to a group already.
    NodeInUse {
        /// The node.
        node: NodeHandle,
        /// Its group.
        group: u32,
    },
    /// The node does not belong to the group.
    NotAssociated {
        /// The node.
        node: NodeHandle,
        /// The group.
        group: u32,
    },
    /// A copy is listed twice.
    DuplicateCopy(Replica),
    /// There is no such session.
    NoSession(u32),
    /// The session exists already.
    SessionExists(u32),
    /// The number of a link aggregation group is too large.
    LagNumber(u16),
    /// A quota of the switch would be exceeded.
    Quota(OverQuota),
}

impl From<OverQuota> for ReplicationError {
    fn from(error: OverQuota) -> ReplicationError {
        ReplicationError::Quota(error)
    }
}

impl fmt::Display for ReplicationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplicationError::TooMany { what, limit } => write!(f, "too many {what}, the limit is {limit}"),
            ReplicationError::GroupZero => {
                f.write_str("multicast group 0 means no multicast and cannot be created")
            }
            ReplicationError::GroupExists(id) => write!(f, "multicast group {id} already exists"),
            ReplicationError::NoGroup(id) => write!(f, "no multicast group {id}"),
            ReplicationError::NoNode(node) => write!(f, "no multicast node {}", node.0),
            ReplicationError::NodeInUse { node, group } => {
                write!(f, "multicast node {} already belongs to group {group}", node.0)
            }
            ReplicationError::NotAssociated { node, group } => {
                write!(f, "multicast node {} does not belong to group {group}", node.0)
            }
            ReplicationError::DuplicateCopy(copy) => {
                write!(f, "port {} with replica number {} is listed twice", copy.port, copy.rid)
            }
            ReplicationError::NoSession(id) => write!(f, "no clone session {id}"),
            ReplicationError::SessionExists(id) => write!(f, "clone session {id} already exists"),
            ReplicationError::Quota(error) => error.fmt(f),
            ReplicationError::LagNumber(id) => {
                write!(f, "link aggregation groups have numbers below {MAX_LAGS}, not {id}")
            }
        }
    }
}

impl std::error::Error for ReplicationError {}

/// All groups, nodes and sessions of a switch.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    groups: BTreeMap<u32, Group>,
    nodes: BTreeMap<NodeHandle, Node>,
    /// Handles that nodes had, below that of the next new one.
    free_nodes: BTreeSet<NodeHandle>,
    lags: BTreeMap<u16, Vec<PortId>>,
    /// Shared with the packets that are cloned.
    sessions: BTreeMap<u32, Arc<Session>>,
    /// What all this counts for. That of a copy is nobody's.
    charge: Charge,
}

/// What a list counts for: a group, a node, a link aggregation group or a session with so many ports. An empty one counts as one.
fn price(ports: usize) -> Held {
    let ports = ports as u64;
    Held { entries: ports.max(1), bytes: LIST + OF_LIST * ports }
}

/// Bytes of a list, and of each of its ports.
const LIST: u64 = 128;
const OF_LIST: u64 = 8;

impl Replication {
    /// Makes an empty group.
    ///
    /// # Errors
    /// Group 0, a group that exists, or [`MAX_GROUPS`].
    pub fn create_group(&mut self, id: u32) -> Result<(), ReplicationError> {
        if id == 0 {
            return Err(ReplicationError::GroupZero);
        }
        if self.groups.contains_key(&id) {
            return Err(ReplicationError::GroupExists(id));
        }
        check_room("multicast groups", self.groups.len(), MAX_GROUPS)?;
        self.charge.take(price(0))?;
        self.groups.insert(id, Group::default());
        Ok(())
    }

    /// Removes a group; its nodes stay, without a group.
    ///
    /// # Errors
    /// No such group.
    pub fn destroy_group(&mut self, id: u32) -> Result<(), ReplicationError> {
        let group = self.groups.remove(&id).ok_or(ReplicationError::NoGroup(id))?;
        self.charge.exchange(price(group.copies.len()), Held::default());
        for handle in group.nodes {
            if let Some(node) = self.nodes.get_mut(&handle) {
                node.group = None;
            }
        }
        Ok(())
    }

    /// Replaces the single copies of a group.
    ///
    /// # Errors
    /// No such group, a copy twice, or [`MAX_GROUP_COPIES`].
    pub fn set_copies(&mut self, id: u32, copies: Vec<Replica>) -> Result<(), ReplicationError> {
        let group = self.groups.get(&id).ok_or(ReplicationError::NoGroup(id))?;
        check_copies(&copies)?;
        check_room(
            "copies in a multicast group",
            self.node_copies(group) + copies.len(),
            MAX_GROUP_COPIES + 1,
        )?;
        self.charge.change(price(group.copies.len()), price(copies.len()))?;
        if let Some(group) = self.groups.get_mut(&id) {
            group.copies = copies;
        }
        Ok(())
    }

    /// Makes a node without a group. Ports named twice count once.
    ///
    /// # Errors
    /// [`MAX_NODES`] or [`MAX_GROUP_COPIES`].
    pub fn create_node(&mut self, rid: u16, ports: Vec<PortId>) -> Result<NodeHandle, ReplicationError> {
        check_room("multicast nodes", self.nodes.len(), MAX_NODES)?;
        let ports = in_order(ports)?;
        self.charge.take(price(ports.len()))?;
        let handle = self.free_nodes.pop_first().unwrap_or(NodeHandle(self.nodes.len() as u32));
        self.nodes.insert(handle, Node { rid, ports, lags: Vec::new(), group: None });
        Ok(handle)
    }

    /// Gives a node other ports.
    ///
    /// # Errors
    /// No such node, or [`MAX_GROUP_COPIES`].
    pub fn update_node(&mut self, handle: NodeHandle, ports: Vec<PortId>) -> Result<(), ReplicationError> {
        let node = self.nodes.get(&handle).ok_or(ReplicationError::NoNode(handle))?;
        let ports = in_order(ports)?;
        self.check_change(node, ports.len() + node.lags.len())?;
        self.charge.change(price(node.copies()), price(ports.len() + node.lags.len()))?;
        if let Some(node) = self.nodes.get_mut(&handle) {
            node.ports = ports;
        }
        Ok(())
    }

    /// Gives a node other ports and link aggregation groups.
    ///
    /// # Errors
    /// As [`Replication::update_node`] and [`Replication::set_node_lags`].
    pub fn update_node_whole(
        &mut self,
        handle: NodeHandle,
        ports: Vec<PortId>,
        lags: Vec<u16>,
    ) -> Result<(), ReplicationError> {
        let before = self.nodes.get(&handle).ok_or(ReplicationError::NoNode(handle))?.clone();
        let mut changed = self.set_node_lags(handle, []);
        changed = changed.and_then(|()| self.update_node(handle, ports));
        changed = changed.and_then(|()| self.set_node_lags(handle, lags));
        if changed.is_err() {
            let was = before.copies();
            let is = self.nodes.insert(handle, before).map_or(was, |node| node.copies());
            self.charge.exchange(price(is), price(was));
        }
        changed
    }

    /// Gives a node other link aggregation groups. They need not have ports yet.
    ///
    /// # Errors
    /// No such node, [`MAX_LAGS`] or [`MAX_GROUP_COPIES`].
    pub fn set_node_lags(
        &mut self,
        handle: NodeHandle,
        lags: impl IntoIterator<Item = u16>,
    ) -> Result<(), ReplicationError> {
        let lags: BTreeSet<u16> = lags.into_iter().collect();
        lags.iter().try_for_each(|id| check_lag(*id))?;
        let node = self.nodes.get(&handle).ok_or(ReplicationError::NoNode(handle))?;
        self.check_change(node, node.ports.len() + lags.len())?;
        self.charge.change(price(node.copies()), price(node.ports.len() + lags.len()))?;
        if let Some(node) = self.nodes.get_mut(&handle) {
            node.lags = lags.into_iter().collect();
        }
        Ok(())
    }

    /// Sets the ports of a link aggregation group.
    ///
    /// # Errors
    /// [`MAX_LAGS`] or [`MAX_GROUP_COPIES`].
    pub fn set_lag(&mut self, id: u16, ports: Vec<PortId>) -> Result<(), ReplicationError> {
        check_lag(id)?;
        let ports = in_order(ports)?;
        let before = self.lags.get(&id).map_or_else(Held::default, |ports| price(ports.len()));
        self.charge.change(before, price(ports.len()))?;
        self.lags.insert(id, ports);
        Ok(())
    }

    /// All link aggregation groups that have been set, by number, with their ports.
    pub fn lags(&self) -> impl Iterator<Item = (u16, &[PortId])> {
        self.lags.iter().map(|(id, ports)| (*id, ports.as_slice()))
    }

    /// Removes all multicast groups, nodes and link aggregation groups; clone sessions stay.
    pub fn clear_multicast(&mut self) {
        let Replication { sessions, mut charge, .. } = std::mem::take(self);
        charge.set(sessions.values().map(|session| price(session.copies.len())).sum());
        *self = Replication { sessions, charge, ..Replication::default() };
    }

    /// Puts a node into a group.
    ///
    /// # Errors
    /// No such node or group, a node that has a group, or [`MAX_GROUP_COPIES`].
    pub fn associate(&mut self, id: u32, handle: NodeHandle) -> Result<(), ReplicationError> {
        let group = self.groups.get(&id).ok_or(ReplicationError::NoGroup(id))?;
        let node = self.nodes.get(&handle).ok_or(ReplicationError::NoNode(handle))?;
        if let Some(group) = node.group {
            return Err(ReplicationError::NodeInUse { node: handle, group });
        }
        let copies = self.node_copies(group) + group.copies.len() + node.copies();
        check_room("copies in a multicast group", copies, MAX_GROUP_COPIES + 1)?;
        if let (Some(group), Some(node)) = (self.groups.get_mut(&id), self.nodes.get_mut(&handle)) {
            group.nodes.push(handle);
            node.group = Some(id);
        }
        Ok(())
    }

    /// Takes a node out of its group.
    ///
    /// # Errors
    /// No such node or group, or the node is not in it.
    pub fn dissociate(&mut self, id: u32, handle: NodeHandle) -> Result<(), ReplicationError> {
        let group = self.groups.get_mut(&id).ok_or(ReplicationError::NoGroup(id))?;
        let node = self.nodes.get_mut(&handle).ok_or(ReplicationError::NoNode(handle))?;
        if node.group != Some(id) {
            return Err(ReplicationError::NotAssociated { node: handle, group: id });
        }
        group.nodes.retain(|other| *other != handle);
        node.group = None;
        Ok(())
    }

    /// Removes a node, also from its group.
    ///
    /// # Errors
    /// No such node.
    pub fn destroy_node(&mut self, handle: NodeHandle) -> Result<(), ReplicationError> {
        let node = self.nodes.remove(&handle).ok_or(ReplicationError::NoNode(handle))?;
        self.charge.exchange(price(node.copies()), Held::default());
        if let Some(group) = node.group.and_then(|id| self.groups.get_mut(&id)) {
            group.nodes.retain(|other| *other != handle);
        }
        self.free_nodes.insert(handle);
        Ok(())
    }

    /// Makes a clone session or replaces it.
    ///
    /// # Errors
    /// A copy twice, [`MAX_SESSIONS`] or [`MAX_GROUP_COPIES`]. The group need not exist yet.
    pub fn set_session(&mut self, id: u32, session: Session) -> Result<(), ReplicationError> {
        check_copies(&session.copies)?;
        if !self.sessions.contains_key(&id) {
            check_room("clone sessions", self.sessions.len(), MAX_SESSIONS)?;
        }
        let before = self.sessions.get(&id).map_or_else(Held::default, |before| price(before.copies.len()));
        self.charge.change(before, price(session.copies.len()))?;
        self.sessions.insert(id, Arc::new(session));
        Ok(())
    }

    /// Removes a clone session.
    ///
    /// # Errors
    /// No such session.
    pub fn delete_session(&mut self, id: u32) -> Result<(), ReplicationError> {
        let session = self.sessions.remove(&id).ok_or(ReplicationError::NoSession(id))?;
        self.charge.exchange(price(session.copies.len()), Held::default());
        Ok(())
    }

    /// A clone session.
    pub fn session(&self, id: u32) -> Option<&Session> {
        self.sessions.get(&id).map(|session| &**session)
    }

    /// A clone session, to be kept while a packet is cloned.
    pub(crate) fn shared_session(&self, id: u32) -> Option<Arc<Session>> {
        self.sessions.get(&id).cloned()
    }

    /// The same for another thread. Nothing is shared, so that no thread writes where another one counts who holds a session.
    pub(crate) fn apart(&self) -> Replication {
        let own = |(id, session): (&u32, &Arc<Session>)| (*id, Arc::new(Session::clone(session)));
        Replication { sessions: self.sessions.iter().map(own).collect(), ..self.clone() }
    }

    /// What all this counts for.
    pub fn held(&self) -> Held {
        self.charge.held()
    }

    /// From now on it is charged to that account, also where it is more than that may have.
    pub(crate) fn charge_to(&mut self, account: &Arc<Account>) {
        self.charge.move_to(account);
    }

    /// All clone sessions, by number.
    pub fn sessions(&self) -> impl Iterator<Item = (u32, &Session)> {
        self.sessions_from(0)
    }

    /// The clone sessions from this number on.
    pub(crate) fn sessions_from(&self, first: u32) -> impl Iterator<Item = (u32, &Session)> {
        self.sessions.range(first..).map(|(id, session)| (*id, &**session))
    }

    /// A multicast group.
    pub fn group(&self, id: u32) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// All multicast groups, by number.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups_from(0)
    }

    /// The multicast groups from this number on.
    pub(crate) fn groups_from(&self, first: u32) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.range(first..).map(|(id, group)| (*id, group))
    }

    /// A node.
    pub fn node(&self, handle: NodeHandle) -> Option<&Node> {
        self.nodes.get(&handle)
    }

    /// All nodes, by handle.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeHandle, &Node)> {
        self.nodes.iter().map(|(handle, node)| (*handle, node))
    }

    /// The copies that a group makes, in order; `None` when there is no such group.
    pub fn copies(&self, id: u32) -> Option<Vec<Replica>> {
        let mut copies = Vec::new();
        self.add_copies(id, &mut copies).then_some(copies)
    }

    /// Adds the copies that a group makes, in order; says whether there is such a group.
    pub(crate) fn add_copies(&self, id: u32, to: &mut Vec<Replica>) -> bool {
        let Some(group) = self.groups.get(&id) else { return false };
        let nodes = group.nodes.iter().filter_map(|handle| self.nodes.get(handle));
        let of_nodes = nodes.flat_map(|node| {
            let lags = node.lags.iter().filter_map(|lag| chosen(self.lags.get(lag)?));
            node.ports.iter().copied().chain(lags).map(|port| Replica { port, rid: node.rid })
        });
        to.extend(of_nodes.chain(group.copies.iter().copied()));
        true
    }

    fn node_copies(&self, group: &Group) -> usize {
        group.nodes.iter().filter_map(|handle| self.nodes.get(handle)).map(Node::copies).sum()
    }

    /// Whether there is room for a node with so many copies in place of those that it has.
    fn check_change(&self, node: &Node, copies: usize) -> Result<(), ReplicationError> {
        let Some(group) = node.group.and_then(|id| self.groups.get(&id)) else { return Ok(()) };
        let others = self.node_copies(group) + group.copies.len() - node.copies();
        check_room("copies in a multicast group", others + copies, MAX_GROUP_COPIES + 1)
    }
}

impl Node {
    /// The most copies that it makes.
    fn copies(&self) -> usize {
        self.ports.len() + self.lags.len()
    }
}

/// The port of a link aggregation group that gets a copy.
fn chosen(ports: &[PortId]) -> Option<PortId> {
    ports.get(LAG_HASH.checked_rem(ports.len())?).copied()
}

fn check_lag(id: u16) -> Result<(), ReplicationError> {
    if usize::from(id) < MAX_LAGS { Ok(()) } else { Err(ReplicationError::LagNumber(id)) }
}

fn check_room(what: &'static str, present: usize, limit: usize) -> Result<(), ReplicationError> {
    if present < limit { Ok(()) } else { Err(ReplicationError::TooMany { what, limit }) }
}

fn check_copies(copies: &[Replica]) -> Result<(), ReplicationError> {
    check_room("copies in a multicast group", copies.len(), MAX_GROUP_COPIES + 1)?;
    let mut sorted = copies.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ReplicationError::DuplicateCopy(pair[0])),
        None => Ok(()),
    }
}

fn in_order(mut ports: Vec<PortId>) -> Result<Vec<PortId>, ReplicationError> {
    ports.sort_unstable();
    ports.dedup();
    check_room("copies in a multicast group", ports.len(), MAX_GROUP_COPIES + 1)?;
    Ok(ports)
}

#[cfg(test)]
mod tests;
