//! Streams: who is the primary, who learns it, what ends a stream.

use crate::common::{Client, DEVICE, Device, election};
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use millrace_p4runtime_api::v1::*;
use tonic::Code;

fn code(update: &MasterArbitrationUpdate) -> Code {
    Code::from_i32(update.status.as_ref().unwrap().code)
}

#[tokio::test]
async fn the_highest_id_writes_and_a_backup_takes_over() {
    let device = Device::start();
    let mut first = device.ready().await;
    let mut second = Client::connect(&device).await;
    let answer = second.arbitrate(Some(2)).await.unwrap();
    assert_eq!((code(&answer), answer.election_id), (Code::Ok, Some(election(2))));
    let told = first.stream.arbitration().await.unwrap();
    assert_eq!(
        (code(&told), told.election_id, told.device_id),
        (Code::AlreadyExists, Some(election(2)), DEVICE)
    );

    // The first may not write any more, whatever it asks for.
    let entry = first.route([10, 0, 0, 0], 8, 1);
    let updates = vec![crate::common::update(update::Type::Insert, entity::Entity::TableEntry(entry))];
    let refused = first.write_with(Default::default(), updates.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let refused = first.set(Action::VerifyAndCommit, crate::common::ALL).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    second.write_with(Default::default(), updates).await.unwrap();

    // The second goes away; its backup hears of it and takes over with a higher id.
    drop(second);
    let told = first.stream.arbitration().await.unwrap();
    assert_eq!((code(&told), told.election_id), (Code::NotFound, Some(election(2))));
    assert_eq!(code(&first.arbitrate(Some(1)).await.unwrap()), Code::NotFound);
    assert_eq!(code(&first.arbitrate(Some(3)).await.unwrap()), Code::Ok);
    first.insert(entity::Entity::TableEntry(first.route([11, 0, 0, 0], 8, 1))).await.unwrap();
}

/// A controller that comes back at once finds its election id free, however late the end of its last stream is known.
#[tokio::test]
async fn a_controller_may_come_back_at_once() {
    let device = Device::start();
    let mut first = Client::primary(&device, 1).await;
    for _ in 0..100 {
        // On the same connection, as clients in Python share one.
        let next = crate::common::Stream::open(&mut first.calls).await;
        first.stream = next;
        let answer = first.arbitrate(Some(1)).await.unwrap();
        assert_eq!(code(&answer), Code::Ok);
    }
}

#[tokio::test]
async fn roles_have_primaries_of_their_own() {
    let device = Device::start();
    let mut everything = Client::primary(&device, 5).await;
    let mut acl = Client::connect(&device).await;
    acl.role = "acl".into();
    let answer = acl.arbitrate(Some(1)).await.unwrap();
    assert_eq!((code(&answer), answer.role.unwrap().name.as_str()), (Code::Ok, "acl"));
    assert!(everything.stream.is_silent().await);
    // Nobody has this role.
    acl.role = "other".into();
    assert_eq!(acl.write_with(Default::default(), vec![]).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn what_ends_a_stream() {
    let device = Device::start();
    let first = Client::primary(&device, 1).await;
    let arbitration = |device_id, id| {
        stream_message_request::Update::Arbitration(MasterArbitrationUpdate {
            device_id,
            election_id: Some(election(id)),
            ..Default::default()
        })
    };
    let ends = async |messages: Vec<stream_message_request::Update>| {
        let mut client = Client::connect(&device).await;
        for message in messages {
            client.stream.tell(message).await;
        }
        loop {
            match client.stream.next().await {
                Ok(_) => {}
                Err(status) => break status.code(),
            }
        }
    };
    assert_eq!(ends(vec![arbitration(DEVICE + 1, 2)]).await, Code::NotFound);
    assert_eq!(ends(vec![arbitration(DEVICE, 1)]).await, Code::InvalidArgument);
    assert_eq!(
        ends(vec![arbitration(DEVICE, 0), arbitration(DEVICE + 1, 0)]).await,
        Code::FailedPrecondition
    );
    drop(first);
}

#[tokio::test]
async fn what_comes_before_an_arbitration_is_dropped_and_the_stream_goes_on() {
    let device = Device::start();
    let mut client = Client::connect(&device).await;
    let packet = PacketOut { payload: vec![1; 60].into(), ..PacketOut::default() };
    let ack = DigestListAck { digest_id: 1, list_id: 2 };
    for (said, details) in [
        (
            stream_message_request::Update::Packet(packet.clone()),
            stream_error::Details::PacketOut(PacketOutError { packet_out: Some(packet) }),
        ),
        (
            stream_message_request::Update::DigestAck(ack),
            stream_error::Details::DigestListAck(DigestListAckError { digest_list_ack: Some(ack) }),
        ),
    ] {
        client.stream.tell(said).await;
        let stream_message_response::Update::Error(error) = client.stream.next().await.unwrap() else {
            panic!("an error is expected");
        };
        assert_eq!(error.canonical_code, Code::PermissionDenied as i32);
        assert_eq!(error.details, Some(details));
    }
    let told = client.arbitrate(Some(1)).await.unwrap();
    assert_eq!(told.status.unwrap().code, Code::Ok as i32);
}

#[tokio::test]
async fn two_controllers_that_fight_leave_one_primary() {
    let device = Device::start();
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(Client::connect(&device).await);
    }
    for id in 1..50 {
        let client = &mut clients[id as usize % 2];
        client.election = Some(election(id));
        let update =
            MasterArbitrationUpdate { device_id: DEVICE, election_id: client.election, ..Default::default() };
        client.stream.tell(stream_message_request::Update::Arbitration(update)).await;
        // Wait until the device knows, which the answer with this id tells.
        while client.stream.arbitration().await.unwrap().election_id != Some(election(id)) {}
    }
    assert!(
        clients[1]
            .write_with(Default::default(), vec![])
            .await
            .is_err_and(|s| s.code() != Code::PermissionDenied)
    );
    let refused = clients[0].write_with(Default::default(), vec![]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}
