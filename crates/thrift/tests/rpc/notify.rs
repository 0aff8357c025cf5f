//! What a device tells subscribers of nanomsg, and the calls with which they answer.

use crate::common::{Device, refused};
use millrace_chassis::Listener;
use millrace_dataplane::{DigestMessage, Request};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{Bits, Program};
use millrace_thrift_api::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// The list of the program: of the first digest, where 0 is no list.
const LIST: i32 = 1;

/// A subscriber whom the device knows.
struct Subscriber(TcpStream);

impl Subscriber {
    fn new(device: &Device, client: &mut Client) -> Subscriber {
        let address = client.bm_mgmt_get_info().unwrap().notifications_socket.unwrap();
        let mut stream = TcpStream::connect(address.strip_prefix("tcp://").unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(b"\0SP\0\0\x21\0\0").unwrap();
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, *b"\0SP\0\0\x20\0\0");
        let mut subscriber = Subscriber(stream);
        // It may not be among the subscribers at once.
        subscriber.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut length = [0; 8];
        while subscriber.0.read_exact(&mut length).is_err() {
            device.server.feed().link(99, true);
        }
        subscriber.0.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut rest = vec![0; u64::from_be_bytes(length) as usize];
        subscriber.0.read_exact(&mut rest).unwrap();
        subscriber
    }

    /// The next message that is not one of the greeting.
    fn next(&mut self) -> Vec<u8> {
        loop {
            let mut length = [0; 8];
            self.0.read_exact(&mut length).unwrap();
            let mut message = vec![0; u64::from_be_bytes(length) as usize];
            self.0.read_exact(&mut message).unwrap();
            if message[32..36] != [99, 0, 0, 0] {
                return message;
            }
        }
    }

    /// The message and its samples, of a digest.
    fn samples(&mut self) -> (u64, Vec<Vec<u8>>) {
        let message = self.next();
        assert_eq!(message[..20], *b"LEA|\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0");
        let count = u32::from_le_bytes(message[28..32].try_into().unwrap());
        let samples: Vec<_> = message[32..].chunks(8).map(<[u8]>::to_vec).collect();
        assert_eq!(samples.len(), count as usize);
        (u64::from_le_bytes(message[20..28].try_into().unwrap()), samples)
    }
}

fn learned(device: &Device, mac: u64) -> Vec<u8> {
    let program: Arc<Program> = device.control.ask(Request::Look).unwrap().program;
    let (digest, _) = program.digests.iter().next().unwrap();
    let values = vec![Value::Bits(Bits::new(48, mac.into())), Value::Bits(Bits::new(9, 2))];
    device.server.feed().digest(&program, &DigestMessage { digest, values });
    [&mac.to_be_bytes()[2..], &[0, 2]].concat()
}

#[test]
fn a_sample_comes_again_once_it_is_acknowledged() {
    let device = Device::notifying();
    let mut client = device.client();
    let mut subscriber = Subscriber::new(&device, &mut client);
    let first = learned(&device, 0xa);
    assert_eq!(subscriber.samples(), (0, vec![first.clone()]));
    learned(&device, 0xa);
    let second = learned(&device, 0xb);
    assert_eq!(subscriber.samples(), (1, vec![second.clone()]), "the first is known");
    client.bm_learning_ack_buffer(LIST, 0).unwrap();
    learned(&device, 0xb);
    learned(&device, 0xa);
    assert_eq!(subscriber.samples(), (2, vec![first.clone()]));

    client.bm_learning_set_buffer_size(LIST, 3).unwrap();
    client.bm_learning_set_timeout(LIST, 0).unwrap();
    let more = [0xc, 0xd, 0xe].map(|mac| learned(&device, mac));
    assert_eq!(subscriber.samples(), (3, more.to_vec()));
    client.bm_learning_ack(LIST, 3, vec![1, 77, -1]).unwrap();
    client.bm_learning_set_timeout(LIST, 50).unwrap();
    for mac in [0xc, 0xd, 0xe] {
        learned(&device, mac);
    }
    assert_eq!(subscriber.samples(), (4, vec![more[1].clone()]), "after its time");

    assert_eq!(refused(client.bm_learning_ack_buffer(LIST + 1, 0)).code, LearnCode::InvalidId);
    assert_eq!(refused(client.bm_learning_ack_buffer(0, 0)).code, LearnCode::InvalidId);
    for wrong in [0, -1, i32::MAX] {
        assert_eq!(refused(client.bm_learning_set_buffer_size(LIST, wrong)).code, LearnCode::Error);
    }
    assert_eq!(refused(client.bm_learning_set_timeout(LIST, -1)).code, LearnCode::Error);
    // A message of which nothing is known any more was acknowledged, as far as bmv2 knows.
    client.bm_learning_ack_buffer(LIST, 1 << 40).unwrap();
}

#[test]
fn links_and_idle_entries_are_told() {
    let device = Device::notifying();
    let mut client = device.client();
    let mut subscriber = Subscriber::new(&device, &mut client);
    device.server.feed().link(2, false);
    let mut expected = b"PRT|\x01\0\0\0\0\0\0\0\x01\0\0\0".to_vec();
    expected.resize(32, 0);
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(subscriber.next(), expected);

    let exact = Some(MatchExact { key: vec![0, 0, 0, 0, 0, 1] });
    let key = vec![MatchParam { kind: MatchType::Exact, exact, ..MatchParam::default() }];
    let table = || "In.sources".to_owned();
    let options = EntryOptions { priority: None };
    let handle = client.bm_mt_add_entry(table(), key, "NoAction".into(), vec![], options).unwrap();
    client.bm_mt_set_entry_ttl(table(), handle, 1).unwrap();
    let message = subscriber.next();
    // Topic and device, context, number of the message.
    assert_eq!(message[..24], *b"AGE|\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let json: serde_json::Value = serde_json::from_str(&client.bm_get_config().unwrap()).unwrap();
    let tables =
        json["pipelines"].as_array().unwrap().iter().flat_map(|side| side["tables"].as_array().unwrap());
    let id = tables.clone().find(|table| table["name"] == "In.sources").unwrap()["id"].as_u64().unwrap();
    assert_eq!(message[24..], [[id as u8, 0, 0, 0], [1, 0, 0, 0], handle.to_le_bytes()].concat());
}

#[test]
fn without_notifications_there_are_no_lists() {
    let device = Device::start();
    let mut client = device.client();
    assert_eq!(client.bm_mgmt_get_info().unwrap().notifications_socket, None);
    assert_eq!(refused(client.bm_learning_ack_buffer(LIST, 0)).code, LearnCode::InvalidId);
}
