//! Multicast groups and clone sessions.

use crate::common::{Device, frame, leaving, update};
use millrace_chassis::Listener;
use millrace_dataplane::Request;
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::packet_replication_engine_entry::Type;
use millrace_p4runtime_api::v1::*;
use tonic::Code;

pub(crate) fn replica(port: u8, instance: u32) -> Replica {
    Replica { port_kind: Some(replica::PortKind::Port(vec![port].into())), instance, backup_replicas: vec![] }
}

fn entry(kind: Type) -> Entity {
    Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(kind) })
}

pub(crate) fn multicast(multicast_group_id: u32, replicas: Vec<Replica>) -> Entity {
    let metadata = vec![multicast_group_id as u8; 3].into();
    entry(Type::MulticastGroupEntry(MulticastGroupEntry { multicast_group_id, replicas, metadata }))
}

fn clone(session_id: u32, replicas: Vec<Replica>) -> Entity {
    entry(Type::CloneSessionEntry(CloneSessionEntry {
        session_id,
        replicas,
        class_of_service: 0,
        packet_length_bytes: 20,
    }))
}

#[tokio::test]
async fn groups_and_sessions_come_back_and_replicate() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    let both = multicast(3, vec![replica(1, 1), replica(2, 2)]);
    client.insert(both.clone()).await.unwrap();
    client.insert(clone(5, vec![replica(2, 0)])).await.unwrap();
    assert_eq!(client.read(multicast(0, vec![])).await, std::slice::from_ref(&both));
    assert_eq!(client.read(clone(0, vec![])).await, [clone(5, vec![replica(2, 0)])]);
    let flood = TableEntry { action: client.run("flood", &[&[3]]), ..client.route([10, 0, 0, 0], 8, 1) };
    client.insert(Entity::TableEntry(flood)).await.unwrap();
    device.ports[0].send(frame(1, [10, 0, 0, 1])).unwrap();
    assert_eq!(leaving(&mut device, 0).await, frame(1, [10, 0, 0, 1]));
    assert_eq!(leaving(&mut device, 1).await, frame(1, [10, 0, 0, 1]));

    // A packet with time to live 1 is cloned, and the clone is cut.
    let mut old = frame(2, [99, 0, 0, 1]);
    old[22] = 1;
    device.ports[0].send(old.clone()).unwrap();
    assert_eq!(leaving(&mut device, 1).await, old[..20]);

    for (kind, entity, code) in [
        (update::Type::Insert, both.clone(), Code::AlreadyExists),
        (update::Type::Insert, multicast(0, vec![]), Code::InvalidArgument),
        (update::Type::Insert, multicast(4, vec![replica(1, 1), replica(1, 1)]), Code::InvalidArgument),
        (update::Type::Insert, multicast(4, vec![replica(1, 0x10000)]), Code::InvalidArgument),
        (update::Type::Insert, multicast(4, vec![Replica::default()]), Code::InvalidArgument),
        (update::Type::Modify, multicast(4, vec![]), Code::NotFound),
        (update::Type::Delete, multicast(4, vec![]), Code::NotFound),
        (update::Type::Insert, clone(0, vec![]), Code::InvalidArgument),
        (update::Type::Insert, clone(5, vec![]), Code::AlreadyExists),
        (update::Type::Modify, clone(6, vec![]), Code::NotFound),
        (update::Type::Delete, clone(6, vec![]), Code::NotFound),
        (
            update::Type::Insert,
            entry(Type::CloneSessionEntry(CloneSessionEntry {
                session_id: 7,
                class_of_service: 256,
                ..Default::default()
            })),
            Code::InvalidArgument,
        ),
    ] {
        let refused = client.write(kind, entity).await.unwrap_err();
        assert_eq!(refused.code, code, "{refused:?}");
    }
    // Of what is deleted all but the number is ignored.
    let rubbish = MulticastGroupEntry {
        multicast_group_id: 3,
        replicas: vec![Replica::default()],
        metadata: vec![0; 5000].into(),
    };
    client.delete(entry(Type::MulticastGroupEntry(rubbish))).await.unwrap();
    client.delete(clone(5, vec![Replica::default()])).await.unwrap();
    assert_eq!(client.read(multicast(0, vec![])).await, []);
}

#[tokio::test]
async fn many_groups_and_sessions_are_read_in_parts() {
    const COUNT: u32 = 2500;
    let device = Device::start();
    let mut client = device.ready().await;
    let groups: Vec<_> = (1..=COUNT).map(|id| multicast(id, vec![replica(1, 1), replica(2, 1)])).collect();
    let sessions: Vec<_> = (1..=COUNT).map(|id| clone(id, vec![replica(1, 0)])).collect();
    let updates = groups.iter().chain(&sessions).map(|entity| update(update::Type::Insert, entity.clone()));
    client.write_with(write_request::Atomicity::ContinueOnError, updates.collect()).await.unwrap();
    assert_eq!(client.read(multicast(0, vec![])).await, groups);
    assert_eq!(client.read(clone(0, vec![])).await, sessions);
    // Packets wait for a part alone.
    let part = device.control.ask(|to| Request::Groups(1000, to)).unwrap();
    assert_eq!(part[0].0, 1000);
    assert!(part.len() < 1000, "{}", part.len());
    assert_eq!(device.control.ask(|to| Request::Sessions(COUNT, to)).unwrap().len(), 1);
    assert_eq!(device.control.ask(|to| Request::Groups(COUNT + 1, to)).unwrap(), []);
}

#[tokio::test]
async fn the_cpu_has_a_port_number_of_its_own() {
    let device = Device::start();
    let mut client = device.ready().await;
    let to_cpu = Replica {
        port_kind: Some(replica::PortKind::Port(vec![0xff, 0xff, 0xff, 0xfd].into())),
        ..replica(0, 0)
    };
    let session = clone(9, vec![to_cpu]);
    client.insert(session.clone()).await.unwrap();
    assert_eq!(client.read(clone(9, vec![])).await, [session]);
    let session = device.control.ask(|to| Request::Session(9, to)).unwrap().unwrap();
    assert_eq!(session.copies[0].port, crate::common::CPU_PORT);
}

#[tokio::test]
async fn a_backup_takes_over_when_its_port_goes_down() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    let mut first = replica(1, 1);
    first.backup_replicas = vec![BackupReplica { port: vec![2].into(), instance: 1 }];
    let group = multicast(3, vec![first]);
    client.insert(group.clone()).await.unwrap();
    let mut itself = replica(1, 1);
    itself.backup_replicas = vec![BackupReplica { port: vec![1].into(), instance: 2 }];
    let refused = client.insert(multicast(4, vec![itself])).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);

    let flood = TableEntry { action: client.run("flood", &[&[3]]), ..client.route([10, 0, 0, 0], 8, 1) };
    client.insert(Entity::TableEntry(flood)).await.unwrap();
    device.ports[1].send(frame(1, [10, 0, 0, 1])).unwrap();
    assert_eq!(leaving(&mut device, 0).await, frame(1, [10, 0, 0, 1]));
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || feed.port_failed(1, "broken")).await.unwrap();
    for _ in 0..200 {
        let copies = device.control.ask(|to| Request::Group(3, to)).unwrap().unwrap();
        if copies[0].port == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    device.ports[1].send(frame(2, [10, 0, 0, 1])).unwrap();
    assert_eq!(leaving(&mut device, 1).await, frame(2, [10, 0, 0, 1]));
    assert_eq!(client.read(multicast(3, vec![])).await, [group]);
}
