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
        let wanted = request.multicast_group_id;
        let target = &self.loaded.target;
        let groups: Vec<(u32, Vec<Replica>)> = match wanted {
            0 => {
                let all = target.ask(Request::Replication).await?;
                all.groups().map(|(id, _)| (id, all.copies(id).unwrap_or_default())).collect()
            }
            id => {
                let copies = target.ask(|to| Request::Group(id, to)).await?;
                copies.into_iter().map(|copies| (id, copies)).collect()
            }
        };
        if groups.is_empty() && wanted != 0 {
            return Err(Refusal::not_found(format!("no multicast group {wanted}")).into());
        }
        let message = |(id, copies): &(u32, Vec<Replica>)| {
            let written = self.loaded.shadow.multicast.get(id).cloned();
            written.unwrap_or_else(|| v1::MulticastGroupEntry {
                multicast_group_id: *id,
                replicas: copies.iter().map(replica_message).collect(),
                metadata: Default::default(),
            })
        };
        for part in groups.chunks(MAX_ENTITIES) {
            let messages =
                part.iter().map(|group| replication_entry(Type::MulticastGroupEntry(message(group))));
            self.send(messages.collect()).await?;
        }
        Ok(())
    }

    pub(super) async fn clone_sessions(&self, request: v1::CloneSessionEntry) -> Result<(), Stop> {
        let wanted = request.session_id;
        let target = &self.loaded.target;
        let sessions: Vec<(u32, Session)> = match wanted {
            0 => {
                let all = target.ask(Request::Replication).await?;
                // Number 0, which the data plane has, cannot be named here.
                let shown = all.sessions().filter(|(id, _)| *id != 0);
                shown.map(|(id, session)| (id, session.clone())).collect()
            }
            id => {
                let session = target.ask(|to| Request::Session(id, to)).await?;
                session.into_iter().map(|session| (id, session)).collect()
            }
        };
        if sessions.is_empty() && wanted != 0 {
            return Err(Refusal::not_found(format!("no clone session {wanted}")).into());
        }
        let message = |(id, session): &(u32, Session)| {
            let written = self.loaded.shadow.clones.get(id).cloned();
            written.unwrap_or_else(|| v1::CloneSessionEntry {
                session_id: *id,
                replicas: session.copies.iter().map(replica_message).collect(),
                class_of_service: session.class_of_service.into(),
                packet_length_bytes: session
                    .truncate
                    .map_or(0, |length| i32::try_from(length).unwrap_or(i32::MAX)),
            })
        };
        for part in sessions.chunks(MAX_ENTITIES) {
            let messages =
                part.iter().map(|session| replication_entry(Type::CloneSessionEntry(message(session))));
            self.send(messages.collect()).await?;
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
