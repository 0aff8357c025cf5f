//! What the server does without being asked: packet-ins, digest lists, idle notifications, ports that come up and go down.

use crate::device::{Device, Event, PortState};
use crate::digests::{Digests, since_epoch_ns};
use crate::forwarding::Loaded;
use crate::packets;
use crate::read::match_messages;
use crate::role_config::RoleConfig;
use crate::write::{Ports, effective_copies};
use millrace_dataplane::{GroupWrite, PortId, Request, Session};
use millrace_p4runtime_api::v1::{
    self, DigestList, IdleTimeoutNotification, TableEntry, stream_message_response::Update,
};
use millrace_pipeline::TableId;
use millrace_state::EntryView;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often idle entries are looked for.
const IDLE_SCAN: Duration = Duration::from_millis(50);
/// Most entries that are looked at in one scan.
const IDLE_CHUNK: usize = 256;

/// Hands the frames of the CPU port to the primaries.
pub(crate) async fn packet_ins(device: Arc<Device>, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        let message = device.running().and_then(|catalog| packets::message(&catalog, &frame));
        if let Some(message) = message {
            let update = Update::Packet(message);
            let Update::Packet(message) = &update else { continue };
            device.tell_primaries(&update, |_, config| config.is_none_or(|config| config.hears(message)));
        }
    }
}

/// Takes what the device hears of, in order.
pub(crate) async fn events(device: Arc<Device>, mut events: mpsc::Receiver<Event>) {
    let mut digests = device.running().map(Digests::new);
    loop {
        let deadline = digests.as_ref().and_then(Digests::deadline);
        let far = Instant::now() + Duration::from_secs(3600);
        let event = tokio::select! {
            event = events.recv() => event,
            () = tokio::time::sleep_until(deadline.unwrap_or(far).into()), if deadline.is_some() => {
                let due = digests.as_mut().map(|digests| digests.due(Instant::now())).unwrap_or_default();
                due.into_iter().for_each(|list| tell_digest(&device, list));
                continue;
            }
        };
        match event {
            None => return,
            Some(Event::Digest(program, message)) => {
                let list =
                    digests.as_mut().and_then(|digests| digests.take(&program, message, Instant::now()));
                if let Some(list) = list {
                    tell_digest(&device, list);
                }
            }
            Some(Event::Acknowledge(client, ack)) => {
                let taken = digests.as_mut().map_or(Ok(()), |digests| match device.is_primary(client) {
                    true => digests.acknowledge(ack.digest_id, ack.list_id),
                    false => Err(crate::refusal::Refusal::denied("only the primary client may acknowledge")),
                });
                if let Err(refusal) = taken {
                    device.refuse_ack(client, ack, refusal);
                }
            }
            Some(Event::Configure(configs)) => {
                if let Some(digests) = &mut digests {
                    digests.configure(&configs);
                }
            }
            Some(Event::Program(catalog)) => digests = Some(Digests::new(catalog)),
            Some(Event::Port(port, state)) => {
                if matches!(state, PortState::Added | PortState::Removed) {
                    device.ports.set(port, state == PortState::Added);
                }
                let is_up = device.interfaces.take(port, state);
                set_port(&device, port, is_up).await;
            }
        }
    }
}

/// Tells the primaries of digests.
fn tell_digest(device: &Device, list: DigestList) {
    let id = list.digest_id;
    device.tell_primaries(&Update::Digest(list), |_, config| config.is_none_or(|config| config.allows(id)));
}

/// Tells the primaries of entries that are idle for too long.
pub(crate) async fn idle(device: Arc<Device>) {
    let mut ticks = tokio::time::interval(IDLE_SCAN);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Whoever has the lock is not to be hurried for this: there is a next time soon.
        let Some(mut forwarding) = device.forwarding.try_write() else { continue };
        let active = forwarding.active.as_mut().filter(|active| !active.shadow.timers.is_empty());
        let Some(active) = active else {
            // Many devices whose entries have no timers cost nothing.
            drop(forwarding);
            device.changed.notified().await;
            continue;
        };
        let Ok(expired) = expired(active).await else { return };
        for (table, view) in expired {
            tell_idle(&device, active, table, view);
        }
    }
}

async fn expired(active: &mut Loaded) -> Result<Vec<(TableId, EntryView)>, tonic::Status> {
    // Of an entry that a device may have hit since it was asked nothing is said yet.
    let until_ns = active.target.hits_until_ns().await?;
    let handle = active.target.tables().await?;
    let tables = handle.lock();
    let timers = &mut active.shadow.timers;
    let mut expired = Vec::new();
    for _ in 0..IDLE_CHUNK {
        let Some((table, index)) = timers.pop(until_ns) else { break };
        let Some(view) = tables.entry(table, index).filter(|view| view.idle_timeout_ns != 0) else {
            continue;
        };
        let due_ns = view.last_hit_ns.saturating_add(view.idle_timeout_ns);
        if due_ns > until_ns {
            timers.set(table, index, due_ns);
            continue;
        }
        // It is told of again when it stays idle for as long again.
        timers.set(table, index, until_ns.saturating_add(view.idle_timeout_ns));
        expired.push((table, view));
    }
    Ok(expired)
}

fn tell_idle(device: &Device, active: &Loaded, table: TableId, view: EntryView) {
    let Some(info) = active.catalog.table(table) else { return };
    let matches = match_messages(&active.catalog, info, &view.matches);
    let cookie =
        active.shadow.cookies.get(&(table, view.matches, view.priority)).cloned().unwrap_or_default();
    #[allow(deprecated, reason = "older controllers use it still")]
    let entry = TableEntry {
        table_id: info.id,
        r#match: matches,
        priority: i32::try_from(view.priority).unwrap_or(i32::MAX),
        controller_metadata: cookie.controller,
        metadata: cookie.metadata,
        idle_timeout_ns: i64::try_from(view.idle_timeout_ns).unwrap_or(i64::MAX),
        ..TableEntry::default()
    };
    let notification = IdleTimeoutNotification { table_entry: vec![entry], timestamp: since_epoch_ns() };
    let sees = |role: &str, config: Option<&RoleConfig>| {
        let has = role.is_empty() || info.role.as_deref().is_none_or(|own| own == role);
        has && config.is_none_or(|config| config.allows(info.id))
    };
    device.tell_primaries(&Update::IdleTimeoutNotification(notification), sees);
}

/// A port came up or went down: groups do with or without the members that watch it, replicas go to it or to a backup.
async fn set_port(device: &Device, port: PortId, is_up: bool) {
    let mut forwarding = device.forwarding.write().await;
    let forwarding = &mut *forwarding;
    let is_new = match is_up {
        true => forwarding.down.remove(&port),
        false => forwarding.down.insert(port),
    };
    if !is_new {
        return;
    }
    for loaded in [&mut forwarding.active, &mut forwarding.saved].into_iter().flatten() {
        loaded.shadow.down.clone_from(&forwarding.down);
        // Without the switch nothing follows.
        let _ = follow_port(loaded, &device.ports, port).await;
    }
}

/// Most writes to groups and sessions that the worker does between two rounds.
const CHUNK: usize = 64;

/// Has everything that depends on a port do what its state asks for.
async fn follow_port(loaded: &Loaded, ports: &Ports, changed: PortId) -> Result<(), tonic::Status> {
    let Loaded { shadow, target, .. } = loaded;
    let handle = target.tables().await?;
    {
        let mut tables = handle.lock();
        let own = shadow.groups.iter().map(|(key, group)| (key, &group.members));
        let one_shot = shadow.one_shots.iter().map(|(key, group)| (key, &group.members));
        for ((profile, group), members) in own.chain(one_shot) {
            if members.iter().any(|(_, port)| *port == Some(changed)) {
                // All members of a group were accepted together, and so are some of them.
                let _ = tables.modify_group(*profile, *group, &shadow.up(members));
            }
        }
    }
    let has_backups = |replicas: &[v1::Replica]| replicas.iter().any(|of| !of.backup_replicas.is_empty());
    let copies = |replicas: &[v1::Replica]| effective_copies(ports, replicas, &shadow.down);
    let mut writes = Vec::new();
    for (id, group) in shadow.multicast.iter().filter(|(_, group)| has_backups(&group.replicas)) {
        writes.push(GroupWrite::SetCopies(*id, copies(&group.replicas)));
    }
    for (id, clone) in shadow.clones.iter().filter(|(_, clone)| has_backups(&clone.replicas)) {
        if let Some(session) = target.ask(|to| Request::Session(*id, to)).await? {
            let session = Session { copies: copies(&clone.replicas), ..session };
            writes.push(GroupWrite::ModifySession(*id, session));
        }
    }
    while !writes.is_empty() {
        let part = writes.drain(..writes.len().min(CHUNK)).collect();
        // What was removed meanwhile is not there to be written.
        target.ask(|to| Request::Replicate(part, to)).await?;
    }
    Ok(())
}
