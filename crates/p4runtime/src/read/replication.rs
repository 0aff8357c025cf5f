//! Multicast groups and clone sessions.

use super::{MAX_ENTITIES, Reader, Stop};
use crate::refusal::Refusal;
use crate::write::port_bytes;
use millrace_dataplane::{Replica, Request, Session};
use millrace_p4runtime_api::v1::{
    self, PacketReplicationEngineEntry, entity::Entity, packet_replication_engine_entry::Type,
    replica::PortKind,
};

impl Reader<'_> {
    pub(super) async fn multicast_groups(&self, request: v1::MulticastGroupEntry) -> Result<(), Stop> {
        let target = &self.loaded.target;
        let message = |(id, copies): (u32, Vec<Replica>)| {
            let written = self.loaded.shadow.multicast.get(&id).cloned();
            replication_entry(Type::MulticastGroupEntry(written.unwrap_or_else(|| v1::MulticastGroupEntry {
                multicast_group_id: id,
                replicas: copies.iter().map(replica_message).collect(),
                metadata: Default::default(),
            })))
        };
        if request.multicast_group_id != 0 {
            let id = request.multicast_group_id;
            let copies = target.ask(|to| Request::Group(id, to)).await?;
            let copies = copies.ok_or_else(|| Refusal::not_found(format!("no multicast group {id}")))?;
            return self.send(vec![message((id, copies))]).await;
        }
        let mut next = Some(0);
        while let Some(first) = next {
            let groups = target.ask(|to| Request::Groups(first, to)).await?;
            next = groups.last().and_then(|(last, _)| last.checked_add(1));
            self.send_all(groups.into_iter().map(message)).await?;
        }
        Ok(())
    }

    pub(super) async fn clone_sessions(&self, request: v1::CloneSessionEntry) -> Result<(), Stop> {
        let target = &self.loaded.target;
        let message = |(id, session): (u32, Session)| {
            let written = self.loaded.shadow.clones.get(&id).cloned();
            replication_entry(Type::CloneSessionEntry(written.unwrap_or_else(|| v1::CloneSessionEntry {
                session_id: id,
                replicas: session.copies.iter().map(replica_message).collect(),
                class_of_service: session.class_of_service.into(),
                packet_length_bytes:
                    session.truncate.map_or(0, |length| i32::try_from(length).unwrap_or(i32::MAX)),
            })))
        };
        if request.session_id != 0 {
            let id = request.session_id;
            let session = target.ask(|to| Request::Session(id, to)).await?;
            let session = session.ok_or_else(|| Refusal::not_found(format!("no clone session {id}")))?;
            return self.send(vec![message((id, session))]).await;
        }
        // Number 0, which the data plane has, cannot be named here.
        let mut next = Some(1);
        while let Some(first) = next {
            let sessions = target.ask(|to| Request::Sessions(first, to)).await?;
            next = sessions.last().and_then(|(last, _)| last.checked_add(1));
            self.send_all(sessions.into_iter().map(message)).await?;
        }
        Ok(())
    }

    /// Sends entities to the client, in messages of bounded size.
    async fn send_all(&self, entities: impl Iterator<Item = Entity>) -> Result<(), Stop> {
        let mut entities = entities.peekable();
        while entities.peek().is_some() {
            self.send(entities.by_ref().take(MAX_ENTITIES).collect()).await?;
        }
        Ok(())
    }
}

fn replication_entry(kind: Type) -> Entity {
    Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(kind) })
}

fn replica_message(replica: &Replica) -> v1::Replica {
    v1::Replica {
        port_kind: Some(PortKind::Port(port_bytes(replica.port))),
        instance: replica.rid.into(),
        backup_replicas: Vec::new(),
    }
}
