//! Calls about multicast groups and clone sessions.

use super::Device;
use super::codes::pre_code;
use crate::answer::Gone;
use millrace_dataplane::{
    GroupWrite, NodeHandle, NodeWrite, PortId, Replication, ReplicationError, Request, Session,
};
use millrace_thrift_api::{
    CallError, InvalidMcOperation, InvalidMirroringOperation, MirroringCode, MirroringSession, PreCode,
    Undeclared,
};
use serde_json::{Value, json};

type OfGroup<T = ()> = Result<T, CallError<InvalidMcOperation>>;
type OfSession<T = ()> = Result<T, CallError<InvalidMirroringOperation>>;

impl Device {
    pub(crate) fn bm_mc_mgrp_create(&self, group: i32) -> OfGroup<i32> {
        let id = u32::try_from(group).map_err(|_| PreCode::InvalidGroup)?;
        self.group(GroupWrite::Insert(id, Vec::new()))?;
        Ok(group)
    }

    pub(crate) fn bm_mc_mgrp_destroy(&self, group: i32) -> OfGroup {
        let id = group_of(group)?;
        self.group(GroupWrite::Destroy(id))
    }

    pub(crate) fn bm_mc_node_create(&self, rid: i32, ports: String, lags: String) -> OfGroup<i32> {
        let rid = u16::try_from(rid).map_err(|_| PreCode::Error)?;
        let (ports, lags) = (port_map(&ports)?, lag_map(&lags)?);
        let made = self.node(NodeWrite::Create(rid, ports, lags))?;
        let node = made.ok_or(PreCode::Error)?;
        Ok(i32::try_from(node.0).unwrap_or(i32::MAX))
    }

    pub(crate) fn bm_mc_node_associate(&self, group: i32, node: i32) -> OfGroup {
        let (group, node) = (group_of(group)?, node_of(node)?);
        self.node(NodeWrite::Associate(group, node)).map(drop)
    }

    pub(crate) fn bm_mc_node_dissociate(&self, group: i32, node: i32) -> OfGroup {
        let (group, node) = (group_of(group)?, node_of(node)?);
        self.node(NodeWrite::Dissociate(group, node)).map(drop)
    }

    pub(crate) fn bm_mc_node_destroy(&self, node: i32) -> OfGroup {
        let node = node_of(node)?;
        self.node(NodeWrite::Destroy(node)).map(drop)
    }

    pub(crate) fn bm_mc_node_update(&self, node: i32, ports: String, lags: String) -> OfGroup {
        let node = node_of(node)?;
        let (ports, lags) = (port_map(&ports)?, lag_map(&lags)?);
        self.node(NodeWrite::Update(node, ports, lags)).map(drop)
    }

    pub(crate) fn bm_mc_set_lag_membership(&self, lag: i16, ports: String) -> OfGroup {
        let lag = u16::try_from(lag).map_err(|_| PreCode::Error)?;
        let ports = port_map(&ports)?;
        self.node(NodeWrite::SetLag(lag, ports)).map(drop)
    }

    pub(crate) fn bm_mc_get_entries(&self) -> OfGroup<String> {
        Ok(described(&self.ask(Request::Replication)?).to_string())
    }

    fn group(&self, write: GroupWrite) -> OfGroup {
        Ok(self.replicate(write)?.map_err(|error| pre_code(&error))?)
    }

    fn node(&self, write: NodeWrite) -> OfGroup<Option<NodeHandle>> {
        let done = self.ask(|to| Request::Node(write, to))?;
        Ok(done.map_err(|error| pre_code(&error))?)
    }

    fn replicate(&self, write: GroupWrite) -> Result<Result<(), ReplicationError>, Gone> {
        let done = self.ask(|to| Request::Replicate(vec![write], to))?;
        Ok(done.into_iter().try_for_each(|done| done.map(drop)))
    }

    pub(crate) fn mirroring_session_add(&self, id: i32, config: MirroringSession) -> OfSession {
        let MirroringSession { port, mgid } = config;
        let numbers = |number: Option<i32>| number.map(|number| u32::try_from(number).ok());
        // Sessions, ports and groups have no negative numbers.
        let (id, port, group) = match (u32::try_from(id).ok(), numbers(port), numbers(mgid)) {
            (None, _, _) | (_, Some(None), _) | (_, _, Some(None)) => {
                return Err(MirroringCode::NotFound.into());
            }
            (Some(id), port, group) => (id, port.flatten(), group.flatten()),
        };
        let session = Session { group, ..port.map_or_else(Session::default, Session::to_port) };
        let set = self.replicate(GroupWrite::SetSession(id, session))?;
        Ok(set.map_err(|_| MirroringCode::NotFound)?)
    }

    pub(crate) fn mirroring_session_delete(&self, id: i32) -> OfSession {
        let id = u32::try_from(id).map_err(|_| MirroringCode::NotFound)?;
        let deleted = self.replicate(GroupWrite::DeleteSession(id))?;
        Ok(deleted.map_err(|_| MirroringCode::NotFound)?)
    }

    pub(crate) fn mirroring_session_get(&self, id: i32) -> OfSession<MirroringSession> {
        let id = u32::try_from(id).map_err(|_| MirroringCode::NotFound)?;
        let session = self.ask(|to| Request::Session(id, to))?;
        let session = session.ok_or(MirroringCode::NotFound)?;
        let number = |number: u32| i32::try_from(number).ok();
        Ok(MirroringSession {
            port: session.copies.first().and_then(|copy| number(copy.port)),
            mgid: session.group.and_then(number),
        })
    }

    /// The older calls say 0 when it is done, and 1 when not.
    pub(crate) fn mirroring_mapping_add(&self, id: i32, port: i32) -> Result<i32, CallError<Undeclared>> {
        old(self.mirroring_session_add(id, MirroringSession { port: Some(port), mgid: None }))
    }

    pub(crate) fn mirroring_mapping_delete(&self, id: i32) -> Result<i32, CallError<Undeclared>> {
        old(self.mirroring_session_delete(id))
    }

    /// -1: clones of the session go to no port.
    pub(crate) fn mirroring_mapping_get_egress_port(&self, id: i32) -> Result<i32, CallError<Undeclared>> {
        match self.mirroring_session_get(id) {
            Ok(session) => Ok(session.port.unwrap_or(-1)),
            Err(CallError::Declared(_)) => Ok(-1),
            Err(CallError::Failed(error)) => Err(CallError::Failed(error)),
            Err(CallError::Broken(error)) => Err(CallError::Broken(error)),
        }
    }
}

fn old(done: OfSession) -> Result<i32, CallError<Undeclared>> {
    match done {
        Ok(()) => Ok(0),
        Err(CallError::Declared(_)) => Ok(1),
        Err(CallError::Failed(error)) => Err(CallError::Failed(error)),
        Err(CallError::Broken(error)) => Err(CallError::Broken(error)),
    }
}

fn group_of(handle: i32) -> Result<u32, PreCode> {
    u32::try_from(handle).map_err(|_| PreCode::InvalidGroupHandle)
}

fn node_of(handle: i32) -> Result<NodeHandle, PreCode> {
    u32::try_from(handle).map(NodeHandle).map_err(|_| PreCode::InvalidNode)
}

/// Ports as a string of digits, 1 for each that belongs to it, port 0 last.
fn port_map(digits: &str) -> Result<Vec<PortId>, PreCode> {
    let mut ports = Vec::new();
    for (port, digit) in (0..).zip(digits.bytes().rev()) {
        match digit {
            b'0' => {}
            b'1' => ports.push(port),
            _ => return Err(PreCode::Error),
        }
    }
    Ok(ports)
}

/// As [`port_map`] for link aggregation groups.
fn lag_map(digits: &str) -> Result<Vec<u16>, PreCode> {
    port_map(digits)?.into_iter().map(|lag| u16::try_from(lag).map_err(|_| PreCode::Error)).collect()
}

/// The groups as bmv2 describes them: each node has its ports under a handle of their own, which here is the node's. Single
/// copies, which P4Runtime makes, are nodes after the others.
fn described(engine: &Replication) -> Value {
    let mut next = engine.nodes().last().map_or(0, |(handle, _)| handle.0 + 1);
    let (mut nodes, mut ports) = (Vec::new(), Vec::new());
    for (handle, node) in engine.nodes() {
        nodes.push(json!({ "handle": handle.0, "rid": node.rid, "l2_handle": handle.0 }));
        ports.push(json!({ "handle": handle.0, "ports": node.ports, "lags": node.lags }));
    }
    let mut groups = Vec::new();
    for (id, group) in engine.groups() {
        let mut handles: Vec<u32> = group.nodes.iter().map(|handle| handle.0).collect();
        for copy in &group.copies {
            nodes.push(json!({ "handle": next, "rid": copy.rid, "l2_handle": next }));
            ports.push(json!({ "handle": next, "ports": [copy.port], "lags": [] }));
            handles.push(next);
            next += 1;
        }
        groups.push(json!({ "id": id, "l1_handles": handles }));
    }
    let lags: Vec<Value> = engine.lags().map(|(id, ports)| json!({ "id": id, "ports": ports })).collect();
    json!({ "mgrps": groups, "l1_handles": nodes, "l2_handles": ports, "lags": lags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_digits_from_the_right() {
        assert_eq!(port_map("100110"), Ok(vec![1, 2, 5]));
        assert_eq!(port_map(""), Ok(vec![]));
        assert_eq!(port_map("12"), Err(PreCode::Error));
    }
}
