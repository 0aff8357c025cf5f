//! Connections are counted, and those of one peer too; and so are the bytes of messages.

use crate::common::{Client, Device};
use millrace_p4runtime::MAX_CONNECTIONS_OF_PEER;
use millrace_p4runtime::proto::v1::CapabilitiesRequest;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

#[tokio::test]
async fn one_connection_too_many_is_closed_and_the_others_go_on() {
    let device = Device::start();
    let mut client = Client::connect(&device).await;
    let address = device.server.as_ref().unwrap().address();
    let connect = || TcpStream::connect(address).unwrap();
    let closed = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_)) && stream.read(&mut [0; 64]).is_ok()
    };
    let mut held: Vec<TcpStream> = (1..MAX_CONNECTIONS_OF_PEER).map(|_| connect()).collect();
    let mut refused = connect();
    refused.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert!(matches!(refused.read(&mut [0; 64]), Ok(0)), "one too many is closed");
    client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    assert!(!closed(held.last_mut().unwrap()), "the one before is open");
    // Whoever goes makes room.
    held.truncate(1);
    for _ in 0..100 {
        if let Ok(mut calls) =
            millrace_p4runtime::proto::v1::p4_runtime_client::P4RuntimeClient::connect(device.address()).await
            && calls.capabilities(CapabilitiesRequest::default()).await.is_ok()
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no room for another connection");
}

#[tokio::test]
async fn large_messages_of_all_clients_have_one_limit() {
    use millrace_p4runtime::MAX_IN_FLIGHT;
    use millrace_p4runtime::proto::v1::*;
    use tonic::Code;
    const LARGE: usize = 30 << 20;
    let device = Device::start();
    let mut client = device.ready().await;
    // The worker is busy, so that writes wait.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let control = device.control.clone();
    let busy = std::thread::spawn(move || control.call(move |_| released.recv().is_ok()));
    let data = Some(P4Data { data: Some(p4_data::Data::Bitstring(vec![0; LARGE].into())) });
    let register = entity::Entity::RegisterEntry(RegisterEntry { data, ..RegisterEntry::default() });
    let request = WriteRequest {
        device_id: crate::common::DEVICE,
        election_id: client.election,
        updates: vec![crate::common::update(update::Type::Modify, register)],
        ..WriteRequest::default()
    };
    let mut writes = tokio::task::JoinSet::new();
    for _ in 0..=MAX_IN_FLIGHT / LARGE {
        let (mut other, request) = (Client::connect(&device).await.calls, request.clone());
        writes.spawn(async move { other.write(request).await.map(drop).unwrap_err() });
    }
    let refused = tokio::time::timeout(Duration::from_secs(60), writes.join_next()).await.unwrap();
    let refused = refused.unwrap().unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().starts_with("messages of all clients have more than"), "{refused:?}");
    // Small ones always have room.
    client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    release.send(()).unwrap();
    busy.join().unwrap().unwrap();
    while let Some(status) = writes.join_next().await {
        let status = status.unwrap();
        assert_eq!(crate::common::errors(&status)[0].code, Code::InvalidArgument);
    }
    // And there is room again.
    let status = client.calls.write(request).await.unwrap_err();
    assert_eq!(crate::common::errors(&status)[0].code, Code::InvalidArgument);
}
