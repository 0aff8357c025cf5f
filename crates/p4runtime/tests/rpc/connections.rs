//! Connections are counted, and those of one peer too.

use crate::common::{Client, Device};
use millrace_p4runtime::MAX_CONNECTIONS_OF_PEER;
use millrace_p4runtime_api::v1::CapabilitiesRequest;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

#[tokio::test]
async fn one_connection_too_many_takes_the_place_of_a_silent_one() {
    let device = Device::start();
    let mut client = Client::connect(&device).await;
    let address = device.server.as_ref().unwrap().address();
    let connect = || TcpStream::connect(address).unwrap();
    let mut held: Vec<TcpStream> = (1..MAX_CONNECTIONS_OF_PEER).map(|_| connect()).collect();
    let _one_more = connect();
    // The one that is silent for the longest time gives way.
    let first = &mut held[0];
    first.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert!(!matches!(first.read(&mut [0; 64]), Err(error) if error.kind() == ErrorKind::WouldBlock));
    client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    let last = held.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(matches!(last.read(&mut [0; 64]), Ok(1..)), "settings of HTTP/2");
    assert!(matches!(last.read(&mut [0; 64]), Err(error) if error.kind() == ErrorKind::WouldBlock));
    // Whoever goes makes room.
    held.truncate(1);
    for _ in 0..100 {
        if let Ok(mut calls) =
            millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient::connect(device.address()).await
            && calls.capabilities(CapabilitiesRequest::default()).await.is_ok()
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no room for another connection");
}
