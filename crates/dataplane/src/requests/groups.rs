//! Writes to multicast groups and clone sessions, as values.

use crate::PortId;
use crate::replication::{Group, NodeHandle, Replica, Replication, ReplicationError, Session};

/// A write to a multicast group or a clone session as a whole, as P4Runtime has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupWrite {
    /// Makes a group with these single copies.
    Insert(u32, Vec<Replica>),
    /// Replaces the single copies of a group.
    SetCopies(u32, Vec<Replica>),
    /// Removes a group; its nodes stay.
    Destroy(u32),
    /// Makes a group again that was removed, with its nodes.
    Restore(u32, Group),
    /// Makes a clone session.
    InsertSession(u32, Session),
    /// Replaces a clone session.
    ModifySession(u32, Session),
    /// Makes a clone session or replaces it.
    SetSession(u32, Session),
    /// Removes a clone session.
    DeleteSession(u32),
}

/// A write to the nodes that groups consist of, as bmv2 has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeWrite {
    /// Makes a node in no group.
    Create(u16, Vec<PortId>, Vec<u16>),
    /// Gives a node other ports and link aggregation groups.
    Update(NodeHandle, Vec<PortId>, Vec<u16>),
    /// Puts a node into a group.
    Associate(u32, NodeHandle),
    /// Takes a node out of its group.
    Dissociate(u32, NodeHandle),
    /// Removes a node.
    Destroy(NodeHandle),
    /// Sets the ports of a link aggregation group.
    SetLag(u16, Vec<PortId>),
    /// Removes all multicast groups, nodes and link aggregation groups.
    Clear,
}

impl Replication {
    /// Does a write; gives the write that takes it back as long as nothing else writes there.
    pub(super) fn write(&mut self, write: GroupWrite) -> Result<GroupWrite, ReplicationError> {
        match write {
            GroupWrite::Insert(id, copies) => {
                self.insert_group(id, copies)?;
                Ok(GroupWrite::Destroy(id))
            }
            GroupWrite::SetCopies(id, copies) => {
                let before = self.group(id).map(|group| group.copies.clone()).unwrap_or_default();
                self.set_copies(id, copies)?;
                Ok(GroupWrite::SetCopies(id, before))
            }
            GroupWrite::Destroy(id) => {
                let before = self.group(id).cloned().unwrap_or_default();
                self.destroy_group(id)?;
                Ok(GroupWrite::Restore(id, before))
            }
            GroupWrite::Restore(id, group) => {
                self.insert_group(id, group.copies)?;
                let joined = group.nodes.into_iter().try_for_each(|node| self.associate(id, node));
                if let Err(error) = joined {
                    self.destroy_group(id)?;
                    return Err(error);
                }
                Ok(GroupWrite::Destroy(id))
            }
            GroupWrite::InsertSession(id, _) if self.session(id).is_some() => {
                Err(ReplicationError::SessionExists(id))
            }
            GroupWrite::ModifySession(id, _) if self.session(id).is_none() => {
                Err(ReplicationError::NoSession(id))
            }
            GroupWrite::InsertSession(id, session)
            | GroupWrite::ModifySession(id, session)
            | GroupWrite::SetSession(id, session) => {
                let back = self.session_back(id);
                self.set_session(id, session)?;
                Ok(back)
            }
            GroupWrite::DeleteSession(id) => {
                let back = self.session_back(id);
                self.delete_session(id)?;
                Ok(back)
            }
        }
    }

    /// The write that makes a session what it is now.
    fn session_back(&self, id: u32) -> GroupWrite {
        match self.session(id) {
            Some(session) => GroupWrite::SetSession(id, session.clone()),
            None => GroupWrite::DeleteSession(id),
        }
    }

    /// Does a write; a new node gives its handle.
    pub(super) fn write_node(&mut self, write: NodeWrite) -> Result<Option<NodeHandle>, ReplicationError> {
        match write {
            NodeWrite::Create(rid, ports, lags) => {
                let node = self.create_node(rid, ports)?;
                if let Err(error) = self.set_node_lags(node, lags) {
                    self.destroy_node(node)?;
                    return Err(error);
                }
                return Ok(Some(node));
            }
            NodeWrite::Update(node, ports, lags) => self.update_node_whole(node, ports, lags)?,
            NodeWrite::Associate(group, node) => self.associate(group, node)?,
            NodeWrite::Dissociate(group, node) => self.dissociate(group, node)?,
            NodeWrite::Destroy(node) => self.destroy_node(node)?,
            NodeWrite::SetLag(lag, ports) => self.set_lag(lag, ports)?,
            NodeWrite::Clear => self.clear_multicast(),
        }
        Ok(None)
    }

    /// Makes a group with single copies.
    fn insert_group(&mut self, id: u32, copies: Vec<Replica>) -> Result<(), ReplicationError> {
        self.create_group(id)?;
        let set = self.set_copies(id, copies);
        if set.is_err() {
            self.destroy_group(id)?;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(port: PortId) -> Replica {
        Replica { port, rid: 1 }
    }

    /// All groups, nodes and sessions.
    fn shown(all: &Replication) -> [String; 3] {
        let (groups, nodes): (Vec<_>, Vec<_>) = (all.groups().collect(), all.nodes().collect());
        let sessions: Vec<_> = all.sessions().collect();
        [format!("{groups:?}"), format!("{nodes:?}"), format!("{sessions:?}")]
    }

    #[test]
    fn what_takes_a_write_back_leaves_all_as_it_was() {
        let mut all = Replication::default();
        all.write(GroupWrite::Insert(1, vec![copy(4)])).unwrap();
        let node = all.write_node(NodeWrite::Create(7, vec![2, 3], vec![1])).unwrap().unwrap();
        all.write_node(NodeWrite::Associate(1, node)).unwrap();
        all.write(GroupWrite::SetSession(5, Session::to_port(9))).unwrap();
        let before = shown(&all);
        for write in [
            GroupWrite::Insert(2, vec![copy(1), copy(2)]),
            GroupWrite::SetCopies(1, vec![copy(8)]),
            GroupWrite::Destroy(1),
            GroupWrite::InsertSession(6, Session::to_group(1)),
            GroupWrite::ModifySession(5, Session::to_group(1)),
            GroupWrite::DeleteSession(5),
        ] {
            let back = all.write(write.clone()).unwrap();
            assert_ne!(shown(&all), before, "{write:?}");
            all.write(back).unwrap();
            assert_eq!(shown(&all), before, "{write:?}");
        }
    }

    #[test]
    fn a_refused_write_leaves_all_as_it_was() {
        let mut all = Replication::default();
        all.write(GroupWrite::InsertSession(5, Session::to_port(9))).unwrap();
        let before = shown(&all);
        let twice = vec![copy(1), copy(1)];
        assert_eq!(all.write(GroupWrite::Insert(1, twice)), Err(ReplicationError::DuplicateCopy(copy(1))));
        let again = GroupWrite::InsertSession(5, Session::to_port(1));
        assert_eq!(all.write(again), Err(ReplicationError::SessionExists(5)));
        let other = GroupWrite::ModifySession(6, Session::to_port(1));
        assert_eq!(all.write(other), Err(ReplicationError::NoSession(6)));
        assert_eq!(all.write(GroupWrite::Destroy(1)), Err(ReplicationError::NoGroup(1)));
        assert!(all.write_node(NodeWrite::Create(0, vec![1], vec![u16::MAX])).is_err());
        assert_eq!(shown(&all), before);
        assert_eq!(all.nodes().count(), 0);
    }
}
