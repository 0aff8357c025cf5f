//! Connections are counted, and those of one peer too.

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
