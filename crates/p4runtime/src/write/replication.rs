//! Multicast groups and clone sessions.

use super::batch::Change;
use super::{Decoder, Kind, Op, Ports, metadata};
use crate::refusal::Refusal;
use crate::shadow::{Before, Shadow, put};
use crate::value;
use millrace_dataplane::{GroupWrite, MAX_GROUP_COPIES, PortId, Replica, Session};
use millrace_p4runtime_api::v1;
use millrace_pipeline::Bits;
use prost::bytes::Bytes;
use std::collections::BTreeSet;

/// Replicas, each with those that replace it when its port is down, the first choice first.
type Choices = Vec<Vec<Replica>>;

/// An update to a multicast group or a clone session.
#[derive(Clone, Debug)]
pub(crate) enum ReplicationOp {
    Multicast(MulticastOp),
    Clone(CloneOp),
}

#[derive(Clone, Debug)]
pub(crate) struct MulticastOp {
    kind: Kind,
    id: u32,
    choices: Choices,
    message: v1::MulticastGroupEntry,
}

#[derive(Clone, Debug)]
pub(crate) struct CloneOp {
    kind: Kind,
    id: u32,
    choices: Choices,
    session: Session,
    message: v1::CloneSessionEntry,
}

/// The string of a port.
pub(crate) fn port_bytes(port: PortId) -> Bytes {
    value::canonical(&Bits::new(32, u128::from(port)))
}

impl Decoder<'_> {
    pub(super) fn multicast(&self, kind: Kind, entry: v1::MulticastGroupEntry) -> Result<Op, Refusal> {
        let id = entry.multicast_group_id;
        if id == 0 {
            return Err(Refusal::invalid("the id of the multicast group is missing"));
        }
        if kind == Kind::Delete {
            // All else is to be ignored.
            let op =
                MulticastOp { kind, id, choices: Vec::new(), message: v1::MulticastGroupEntry::default() };
            return Ok(Op::Replication(ReplicationOp::Multicast(op)));
        }
        let of_group = |refusal: Refusal| refusal.of(format_args!("multicast group {id}"));
        let choices = choices(self.ports, &entry.replicas).map_err(of_group)?;
        let replicas = kept(entry.replicas);
        let message = v1::MulticastGroupEntry { metadata: metadata(entry.metadata)?, replicas, ..entry };
        Ok(Op::Replication(ReplicationOp::Multicast(MulticastOp { kind, id, choices, message })))
    }

    pub(super) fn clone_session(&self, kind: Kind, entry: v1::CloneSessionEntry) -> Result<Op, Refusal> {
        let id = entry.session_id;
        if id == 0 {
            return Err(Refusal::invalid("the id of the clone session is missing"));
        }
        if kind == Kind::Delete {
            let (choices, session) = (Vec::new(), Session::default());
            let op = CloneOp { kind, id, choices, session, message: v1::CloneSessionEntry::default() };
            return Ok(Op::Replication(ReplicationOp::Clone(op)));
        }
        let of_session = |refusal: Refusal| refusal.of(format_args!("clone session {id}"));
        let truncate = u32::try_from(entry.packet_length_bytes)
            .map_err(|_| of_session(Refusal::invalid("the packet length is negative")))?;
        let class_of_service = u8::try_from(entry.class_of_service)
            .map_err(|_| of_session(Refusal::invalid("a class of service is at most 255")))?;
        let choices = choices(self.ports, &entry.replicas).map_err(of_session)?;
        let session = Session {
            copies: Vec::new(),
            group: None,
            truncate: (truncate != 0).then_some(truncate),
            class_of_service,
        };
        let message = v1::CloneSessionEntry { replicas: kept(entry.replicas), ..entry };
        let op = CloneOp { kind, id, choices, session, message };
        Ok(Op::Replication(ReplicationOp::Clone(op)))
    }
}

/// The replicas as they are read again, with ports in canonical form.
fn kept(mut replicas: Vec<v1::Replica>) -> Vec<v1::Replica> {
    for replica in &mut replicas {
        if let Some(v1::replica::PortKind::Port(port)) = &mut replica.port_kind {
            *port = value::shortest(port);
        }
        for backup in &mut replica.backup_replicas {
            backup.port = value::shortest(&backup.port);
        }
    }
    replicas
}

/// The replicas of a message, checked.
fn choices(ports: &Ports, replicas: &[v1::Replica]) -> Result<Choices, Refusal> {
    let copies: usize = replicas.iter().map(|replica| 1 + replica.backup_replicas.len()).sum();
    if copies > MAX_GROUP_COPIES {
        return Err(Refusal::exhausted(format!("at most {MAX_GROUP_COPIES} replicas, {copies} given")));
    }
    let instance = |instance: u32| {
        u16::try_from(instance).map_err(|_| Refusal::invalid(format!("an instance is at most {}", u16::MAX)))
    };
    let mut known = BTreeSet::new();
    let mut all = Choices::new();
    for replica in replicas {
        use v1::replica::PortKind;
        #[allow(deprecated, reason = "older controllers use it still")]
        let port = match &replica.port_kind {
            Some(PortKind::Port(port)) => ports.read(port)?,
            Some(PortKind::EgressPort(port)) => ports.number(*port)?,
            None => return Err(Refusal::invalid("the port of a replica is missing")),
        };
        let mut list = vec![Replica { port, rid: instance(replica.instance)? }];
        for backup in &replica.backup_replicas {
            let port = ports.read(&backup.port)?;
            if port == list[0].port {
                return Err(Refusal::invalid(format!("port {port} would replace itself")));
            }
            list.push(Replica { port, rid: instance(backup.instance)? });
        }
        if let Some(twice) = list.iter().find(|replica| !known.insert((replica.port, replica.rid))) {
            return Err(Refusal::invalid(format!(
                "port {} with instance {} is given twice",
                twice.port, twice.rid
            )));
        }
        all.push(list);
    }
    Ok(all)
}

/// The copies to make while some ports are down: of each replica the first choice that is up, or, when all are down, the
/// first, which the switch drops at its port.
fn effective(choices: &Choices, down: &BTreeSet<PortId>) -> Vec<Replica> {
    let up = |list: &Vec<Replica>| {
        list.iter().find(|replica| !down.contains(&replica.port)).or_else(|| list.first()).copied()
    };
    choices.iter().filter_map(up).collect()
}

/// [`effective`] for a message that was accepted before.
pub(crate) fn effective_copies(
    ports: &Ports,
    replicas: &[v1::Replica],
    down: &BTreeSet<PortId>,
) -> Vec<Replica> {
    choices(ports, replicas).map(|choices| effective(&choices, down)).unwrap_or_default()
}

impl ReplicationOp {
    /// The write that the update asks for, with the copies that the ports that are up now ask for.
    pub(super) fn write(&self, shadow: &Shadow) -> GroupWrite {
        match self {
            ReplicationOp::Multicast(MulticastOp { kind, id, choices, .. }) => {
                let copies = effective(choices, &shadow.down);
                match kind {
                    Kind::Insert => GroupWrite::Insert(*id, copies),
                    Kind::Modify => GroupWrite::SetCopies(*id, copies),
                    Kind::Delete => GroupWrite::Destroy(*id),
                }
            }
            ReplicationOp::Clone(CloneOp { kind, id, choices, session, .. }) => {
                let session = Session { copies: effective(choices, &shadow.down), ..session.clone() };
                match kind {
                    Kind::Insert => GroupWrite::InsertSession(*id, session),
                    Kind::Modify => GroupWrite::ModifySession(*id, session),
                    Kind::Delete => GroupWrite::DeleteSession(*id),
                }
            }
        }
    }

    /// Remembers the message of an update that was done.
    pub(super) fn remember(self, change: &mut Change) {
        match self {
            ReplicationOp::Multicast(MulticastOp { kind, id, message, .. }) => {
                let message = (kind != Kind::Delete).then_some(message);
                let before = put(&mut change.shadow.multicast, id, message);
                change.note([Before::Multicast(id, before)]);
            }
            ReplicationOp::Clone(CloneOp { kind, id, message, .. }) => {
                let message = (kind != Kind::Delete).then_some(message);
                let before = put(&mut change.shadow.clones, id, message);
                change.note([Before::Clone(id, before)]);
            }
        }
    }
}
