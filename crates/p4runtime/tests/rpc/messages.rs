//! Streams: packets in and out, digests, idle entries, errors.

use crate::common::{Client, Device, exact, frame, leaving};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::stream_message_response::Update as Heard;
use millrace_p4runtime_api::v1::*;
use std::time::{Duration, Instant};
use tonic::Code;

fn metadata(metadata_id: u32, value: &[u8]) -> PacketMetadata {
    PacketMetadata { metadata_id, value: value.to_vec().into() }
}

fn packet_out(payload: Vec<u8>, port: u8) -> PacketOut {
    PacketOut { payload: payload.into(), metadata: vec![metadata(1, &[port]), metadata(2, &[0])] }
}

#[tokio::test]
async fn packets_go_out_and_come_in_with_their_metadata() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    let out = frame(9, [1, 2, 3, 4]);
    client.stream.tell(stream_message_request::Update::Packet(packet_out(out.clone(), 2))).await;
    assert_eq!(leaving(&mut device, 1).await, out);

    let route = TableEntry { action: client.run("to_cpu", &[&[5]]), ..client.route([10, 0, 0, 0], 8, 1) };
    client.insert(Entity::TableEntry(route)).await.unwrap();
    device.ports[1].send(frame(1, [10, 0, 0, 1])).unwrap();
    let wanted = PacketIn {
        payload: frame(1, [10, 0, 0, 1]).into(),
        metadata: vec![metadata(1, &[2]), metadata(2, &[5])],
    };
    assert_eq!(client.stream.next().await.unwrap(), Heard::Packet(wanted));
}

/// The error that a packet is answered with.
async fn refused(client: &mut Client, packet: PacketOut) -> (Code, String) {
    client.stream.tell(stream_message_request::Update::Packet(packet.clone())).await;
    loop {
        match client.stream.next().await.unwrap() {
            Heard::Error(error) => {
                let details = PacketOutError { packet_out: Some(packet) };
                assert_eq!(error.details, Some(stream_error::Details::PacketOut(details)));
                return (Code::from_i32(error.canonical_code), error.message);
            }
            Heard::Arbitration(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn packets_that_do_not_fit_are_answered_with_an_error() {
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    let packet = packet_out(frame(1, [1, 1, 1, 1]), 2);
    assert_eq!(refused(&mut client, packet.clone()).await.0, Code::FailedPrecondition);
    let action = set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    client.set(action, crate::common::ALL).await.unwrap();
    for (metadata, why) in [
        (vec![metadata(1, &[2])], "`pad`: it is missing"),
        (vec![metadata(1, &[2]), metadata(2, &[0]), metadata(7, &[0])], "unknown metadata field with id 7"),
        (vec![metadata(1, &[2, 0]), metadata(2, &[0])], "`egress_port`: the number takes 10 bits"),
        (vec![metadata(1, &[2]), metadata(1, &[2]), metadata(2, &[0])], "twice"),
    ] {
        let (code, message) = refused(&mut client, PacketOut { metadata, ..packet.clone() }).await;
        assert_eq!(code, Code::InvalidArgument);
        assert!(message.contains(why), "{message}");
    }
    let long = PacketOut { payload: vec![0; 70_000].into(), ..packet.clone() };
    assert_eq!(refused(&mut client, long).await.0, Code::InvalidArgument);
    let mut backup = Client::connect(&device).await;
    backup.arbitrate(Some(0)).await.unwrap();
    assert_eq!(refused(&mut backup, packet).await.0, Code::PermissionDenied);

    let ack = DigestListAck { digest_id: 1, list_id: 1 };
    client.stream.tell(stream_message_request::Update::DigestAck(ack)).await;
    let Heard::Error(error) = client.stream.next().await.unwrap() else { panic!() };
    assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
    let details = DigestListAckError { digest_list_ack: Some(ack) };
    assert_eq!(error.details, Some(stream_error::Details::DigestListAck(details)));
    let other = prost_types::Any { type_url: "x".into(), value: vec![] };
    client.stream.tell(stream_message_request::Update::Other(other)).await;
    assert!(
        matches!(client.stream.next().await.unwrap(), Heard::Error(error) if error.canonical_code == Code::Unimplemented as i32)
    );
}

#[tokio::test]
async fn a_client_that_takes_no_packets_slows_nobody_and_still_learns_who_is_primary() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    let route = TableEntry { action: client.run("to_cpu", &[&[5]]), ..client.route([10, 0, 0, 0], 8, 1) };
    client.insert(Entity::TableEntry(route)).await.unwrap();
    client.insert(Entity::TableEntry(client.route([11, 0, 0, 0], 8, 2))).await.unwrap();
    let mut sent = 0;
    let mut seen = 0;
    // Many more than all queues hold, with others in between that are to be forwarded.
    while sent < 40_000 {
        for _ in 0..64 {
            if device.ports[0].send(frame(1, [10, 0, 0, 1])).is_ok() {
                sent += 1;
            }
        }
        device.ports[0].send(frame(1, [11, 0, 0, 1])).ok();
        leaving(&mut device, 1).await;
        seen += 1;
    }
    assert!(seen > 500);
    let mut other = Client::connect(&device).await;
    other.arbitrate(Some(2)).await.unwrap();
    other.insert(Entity::TableEntry(other_route(&client))).await.unwrap();
    loop {
        if let Heard::Arbitration(update) = client.stream.next().await.unwrap() {
            assert_eq!(update.status.unwrap().code, Code::AlreadyExists as i32);
            break;
        }
    }
}

fn other_route(client: &Client) -> TableEntry {
    client.route([12, 0, 0, 0], 8, 1)
}

async fn digest_list(client: &mut Client) -> DigestList {
    match client.stream.next().await.unwrap() {
        Heard::Digest(list) => list,
        other => panic!("{other:?}"),
    }
}

fn learned(source: u8, port: u8) -> P4Data {
    let bits = |bytes: &[u8]| P4Data { data: Some(p4_data::Data::Bitstring(bytes.to_vec().into())) };
    let members = vec![bits(&[2, 0, 0, 0, 0, source]), bits(&[port])];
    P4Data { data: Some(p4_data::Data::Struct(P4StructLike { members })) }
}

#[tokio::test]
async fn digests_come_in_lists_and_once_until_acknowledged() {
    let device = Device::start();
    let mut client = device.ready().await;
    let digest_id = client.info.digests[0].preamble.as_ref().unwrap().id;
    let digest = |max_timeout_ns, max_list_size, ack_timeout_ns| {
        let config = digest_entry::Config { max_timeout_ns, max_list_size, ack_timeout_ns };
        Entity::DigestEntry(DigestEntry { digest_id, config: Some(config) })
    };
    let hour = 3_600_000_000_000;
    // Not enabled: nothing comes.
    device.ports[0].send(frame(1, [9, 9, 9, 9])).unwrap();
    assert!(client.stream.is_silent().await);

    client.insert(digest(hour, 2, hour)).await.unwrap();
    for source in [1, 1, 1, 2] {
        device.ports[0].send(frame(source, [9, 9, 9, 9])).unwrap();
    }
    let list = digest_list(&mut client).await;
    assert_eq!((list.digest_id, list.data), (digest_id, vec![learned(1, 1), learned(2, 1)]));
    assert!(list.timestamp > 1_700_000_000_000_000_000);
    // Those two are known until they are acknowledged; a list that is not full waits.
    for source in [1, 2, 3] {
        device.ports[0].send(frame(source, [9, 9, 9, 9])).unwrap();
    }
    assert!(client.stream.is_silent().await);
    let ack = DigestListAck { digest_id, list_id: list.list_id };
    client.stream.tell(stream_message_request::Update::DigestAck(ack)).await;
    // An acknowledgement is handled in the order of the stream, a packet may overtake it.
    tokio::time::sleep(Duration::from_millis(100)).await;
    device.ports[0].send(frame(1, [9, 9, 9, 9])).unwrap();
    let next = digest_list(&mut client).await;
    assert_eq!(next.data, [learned(3, 1), learned(1, 1)]);
    assert!(next.list_id > list.list_id);

    // By time, and forgotten without an acknowledgement.
    client.modify(digest(50_000_000, 0, 1_000_000)).await.unwrap();
    for _ in 0..2 {
        device.ports[1].send(frame(7, [9, 9, 9, 9])).unwrap();
        device.ports[1].send(frame(7, [9, 9, 9, 9])).unwrap();
        assert_eq!(digest_list(&mut client).await.data, [learned(7, 2)]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.delete(digest(0, 0, 0)).await.unwrap();
    device.ports[1].send(frame(8, [9, 9, 9, 9])).unwrap();
    assert!(client.stream.is_silent().await);
}

/// Specification, "DigestEntry": a list that is as old as the time-out is forgotten, and packets after it are told of. Nothing is
/// sent again by itself, and packets meanwhile do not make the time longer.
#[tokio::test]
async fn digests_are_forgotten_when_they_are_as_old_as_the_time_out() {
    let device = Device::start();
    let mut client = device.ready().await;
    let digest_id = client.info.digests[0].preamble.as_ref().unwrap().id;
    let timeout = Duration::from_secs(3);
    let config = digest_entry::Config {
        max_timeout_ns: 0,
        max_list_size: 1,
        ack_timeout_ns: i64::try_from(timeout.as_nanos()).unwrap(),
    };
    client.insert(Entity::DigestEntry(DigestEntry { digest_id, config: Some(config) })).await.unwrap();
    let mut last_id = 0;
    for _ in 0..2 {
        let start = Instant::now();
        device.ports[0].send(frame(1, [9, 9, 9, 9])).unwrap();
        let list = digest_list(&mut client).await;
        let sent = Instant::now();
        assert!(list.list_id > last_id);
        last_id = list.list_id;
        assert_eq!(list.data, [learned(1, 1)]);
        while start.elapsed() < timeout / 2 {
            device.ports[0].send(frame(1, [9, 9, 9, 9])).unwrap();
            assert!(client.stream.is_silent().await);
        }
        tokio::time::sleep_until((sent + timeout).into()).await;
        assert!(client.stream.is_silent().await);
    }
}

#[tokio::test]
async fn idle_entries_are_told_of_and_told_of_again() {
    let device = Device::start();
    let mut client = device.ready().await;
    let timeout = 200_000_000;
    let entry = |source: u8| TableEntry {
        table_id: client.table("sources"),
        r#match: vec![exact(1, &[2, 0, 0, 0, 0, source])],
        action: client.run("NoAction", &[]),
        idle_timeout_ns: timeout,
        metadata: vec![source].into(),
        ..TableEntry::default()
    };
    let (busy, idle) = (entry(1), entry(2));
    let start = Instant::now();
    client.insert(Entity::TableEntry(busy.clone())).await.unwrap();
    client.insert(Entity::TableEntry(idle.clone())).await.unwrap();
    let mut told = 0;
    while told < 2 {
        assert!(start.elapsed() < Duration::from_secs(10));
        device.ports[0].send(frame(1, [9, 9, 9, 9])).unwrap();
        let Ok(message) = tokio::time::timeout(Duration::from_millis(20), client.stream.hear.message()).await
        else {
            continue;
        };
        let Some(Heard::IdleTimeoutNotification(notification)) = message.unwrap().unwrap().update else {
            panic!()
        };
        let wanted = TableEntry { action: None, ..idle.clone() };
        assert_eq!(notification.table_entry, [wanted]);
        told += 1;
        assert!(start.elapsed() >= Duration::from_nanos(timeout as u64) * told);
    }
    let request = TableEntry {
        table_id: busy.table_id,
        r#match: busy.r#match.clone(),
        time_since_last_hit: Some(Default::default()),
        ..TableEntry::default()
    };
    let read = client.read(Entity::TableEntry(request)).await;
    let [Entity::TableEntry(read)] = &read[..] else { panic!("{read:?}") };
    let elapsed = read.time_since_last_hit.unwrap().elapsed_ns;
    assert!((0..timeout).contains(&elapsed), "{elapsed}");
    assert_eq!(read.idle_timeout_ns, timeout);
    // Without a timeout, or without the entry, nothing more comes.
    client.modify(Entity::TableEntry(TableEntry { idle_timeout_ns: 0, ..busy })).await.unwrap();
    client.delete(Entity::TableEntry(idle)).await.unwrap();
    while tokio::time::timeout(Duration::from_millis(100), client.stream.hear.message()).await.is_ok() {}
    assert!(client.stream.is_silent().await);
}
