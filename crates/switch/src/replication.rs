//! The replication engine: multicast groups and clone sessions, as the control plane configures them.
//!
//! A group is a list of copies to make, each a port and a replica number. It is built from nodes (a replica number and
//! a set of ports that several groups can share, as bmv2's commands do) and from single copies (as P4Runtime does).
//! Copies are made in the order in which nodes were associated, the ports of a node in ascending order, single copies
//! last. Nothing here sees a packet.

use crate::PortId;
use std::collections::BTreeMap;
use std::fmt;

/// Most multicast groups.
pub const MAX_GROUPS: usize = 1 << 16;
/// Most nodes.
pub const MAX_NODES: usize = 1 << 16;
/// Most clone sessions.
pub const MAX_SESSIONS: usize = 1 << 15;
/// Most copies that one group or session makes of a packet.
pub const MAX_GROUP_COPIES: usize = 4096;

/// One copy to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Where it goes.
    pub port: PortId,
    /// The replica number that egress sees.
    pub rid: u16,
}

/// Names a node. Handles count from 0 in the order of creation; a handle is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeHandle(pub u32);

/// A replica number with the ports that get a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The replica number of the copies.
    pub rid: u16,
    /// The ports, ascending, each once.
    pub ports: Vec<PortId>,
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
        }
    }
}

impl std::error::Error for ReplicationError {}

/// All groups, nodes and sessions of a switch.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    groups: BTreeMap<u32, Group>,
    nodes: BTreeMap<NodeHandle, Node>,
    next_node: u32,
    sessions: BTreeMap<u32, Session>,
}

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
        self.groups.insert(id, Group::default());
        Ok(())
    }

    /// Removes a group; its nodes stay, without a group.
    ///
    /// # Errors
    /// No such group.
    pub fn destroy_group(&mut self, id: u32) -> Result<(), ReplicationError> {
        let group = self.groups.remove(&id).ok_or(ReplicationError::NoGroup(id))?;
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
        check_room("multicast nodes", self.nodes.len().max(self.next_node as usize), MAX_NODES)?;
        let ports = in_order(ports)?;
        let handle = NodeHandle(self.next_node);
        self.next_node += 1;
        self.nodes.insert(handle, Node { rid, ports, group: None });
        Ok(handle)
    }

    /// Gives a node other ports.
    ///
    /// # Errors
    /// No such node, or [`MAX_GROUP_COPIES`].
    pub fn update_node(&mut self, handle: NodeHandle, ports: Vec<PortId>) -> Result<(), ReplicationError> {
        let node = self.nodes.get(&handle).ok_or(ReplicationError::NoNode(handle))?;
        let ports = in_order(ports)?;
        if let Some(group) = node.group.and_then(|id| self.groups.get(&id)) {
            let others = self.node_copies(group) + group.copies.len() - node.ports.len();
            check_room("copies in a multicast group", others + ports.len(), MAX_GROUP_COPIES + 1)?;
        }
        if let Some(node) = self.nodes.get_mut(&handle) {
            node.ports = ports;
        }
        Ok(())
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
        let copies = self.node_copies(group) + group.copies.len() + node.ports.len();
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
        if let Some(group) = node.group.and_then(|id| self.groups.get_mut(&id)) {
            group.nodes.retain(|other| *other != handle);
        }
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
        self.sessions.insert(id, session);
        Ok(())
    }

    /// Removes a clone session.
    ///
    /// # Errors
    /// No such session.
    pub fn delete_session(&mut self, id: u32) -> Result<(), ReplicationError> {
        self.sessions.remove(&id).map(drop).ok_or(ReplicationError::NoSession(id))
    }

    /// A clone session.
    pub fn session(&self, id: u32) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// All clone sessions, by number.
    pub fn sessions(&self) -> impl Iterator<Item = (u32, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    /// A multicast group.
    pub fn group(&self, id: u32) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// All multicast groups, by number.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(id, group)| (*id, group))
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
        let group = self.groups.get(&id)?;
        let nodes = group.nodes.iter().filter_map(|handle| self.nodes.get(handle));
        let of_nodes =
            nodes.flat_map(|node| node.ports.iter().map(|port| Replica { port: *port, rid: node.rid }));
        Some(of_nodes.chain(group.copies.iter().copied()).collect())
    }

    fn node_copies(&self, group: &Group) -> usize {
        group.nodes.iter().filter_map(|handle| self.nodes.get(handle)).map(|node| node.ports.len()).sum()
    }
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
mod tests {
    use super::*;

    fn copies(replication: &Replication, group: u32) -> Vec<(PortId, u16)> {
        replication.copies(group).unwrap().into_iter().map(|copy| (copy.port, copy.rid)).collect()
    }

    #[test]
    fn copies_come_in_the_order_of_nodes_then_ports_then_single_copies() {
        let mut replication = Replication::default();
        replication.create_group(7).unwrap();
        let first = replication.create_node(10, vec![3, 1, 3]).unwrap();
        let second = replication.create_node(20, vec![2]).unwrap();
        assert_eq!((first, second), (NodeHandle(0), NodeHandle(1)));
        replication.associate(7, second).unwrap();
        replication.associate(7, first).unwrap();
        replication.set_copies(7, vec![Replica { port: 9, rid: 1 }, Replica { port: 0, rid: 1 }]).unwrap();
        assert_eq!(copies(&replication, 7), [(2, 20), (1, 10), (3, 10), (9, 1), (0, 1)]);

        replication.dissociate(7, second).unwrap();
        replication.update_node(first, vec![4]).unwrap();
        assert_eq!(copies(&replication, 7), [(4, 10), (9, 1), (0, 1)]);
        replication.destroy_node(first).unwrap();
        assert_eq!(copies(&replication, 7), [(9, 1), (0, 1)]);
    }

    #[test]
    fn refused_writes_say_why_and_change_nothing() {
        let mut replication = Replication::default();
        assert_eq!(replication.create_group(0), Err(ReplicationError::GroupZero));
        replication.create_group(1).unwrap();
        assert_eq!(replication.create_group(1), Err(ReplicationError::GroupExists(1)));
        let node = replication.create_node(0, vec![1]).unwrap();
        assert_eq!(replication.associate(2, node), Err(ReplicationError::NoGroup(2)));
        replication.associate(1, node).unwrap();
        assert_eq!(replication.associate(1, node), Err(ReplicationError::NodeInUse { node, group: 1 }));
        let twice = vec![Replica { port: 1, rid: 0 }; 2];
        assert_eq!(
            replication.set_copies(1, twice).unwrap_err().to_string(),
            "port 1 with replica number 0 is listed twice"
        );
        assert_eq!(copies(&replication, 1), [(1, 0)]);
        assert_eq!(replication.delete_session(5), Err(ReplicationError::NoSession(5)));
        assert!(replication.copies(2).is_none());
    }

    #[test]
    fn a_destroyed_group_frees_its_nodes() {
        let mut replication = Replication::default();
        replication.create_group(1).unwrap();
        let node = replication.create_node(0, vec![1]).unwrap();
        replication.associate(1, node).unwrap();
        replication.destroy_group(1).unwrap();
        replication.create_group(2).unwrap();
        replication.associate(2, node).unwrap();
        assert_eq!(copies(&replication, 2), [(1, 0)]);
    }

    #[test]
    fn the_copies_of_a_group_are_limited() {
        let mut replication = Replication::default();
        replication.create_group(1).unwrap();
        let full = replication.create_node(0, (0..MAX_GROUP_COPIES as u32).collect()).unwrap();
        replication.associate(1, full).unwrap();
        let more = replication.create_node(1, vec![0]).unwrap();
        assert!(matches!(replication.associate(1, more), Err(ReplicationError::TooMany { .. })));
        assert!(replication.set_copies(1, vec![Replica { port: 1, rid: 1 }]).is_err());
        assert_eq!(copies(&replication, 1).len(), MAX_GROUP_COPIES);
    }
}
