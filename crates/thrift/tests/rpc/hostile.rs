//! What no client of bmv2 sends.

use crate::common::Device;
use millrace_thrift::{MAX_CONNECTIONS, MAX_CONNECTIONS_OF_PEER};
use millrace_thrift_api::Client;
use millrace_thrift_api::limits::MAX_MESSAGE;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// The beginning of a call: version 1, type 1, the name, sequence number 1.
fn call(name: &str) -> Vec<u8> {
    let mut bytes = vec![0x80, 1, 0, 1];
    bytes.extend((name.len() as u32).to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend([0, 0, 0, 1]);
    bytes
}

/// Sends bytes and nothing more; gives what comes back.
fn say(device: &Device, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(device.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may close at once.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn is_well(device: &Device) {
    assert_eq!(device.client().bm_mt_get_num_entries("In.route".into()).unwrap(), 0);
}

#[test]
fn sizes_that_are_only_claimed_end_the_connection() {
    let device = Device::start();
    let add = call("standard:bm_mt_add_entry");
    let claims: [&[u8]; 7] = [
        // A string of 2^31 - 1 bytes, and of -1.
        &[11, 0, 2, 0x7f, 0xff, 0xff, 0xff],
        &[11, 0, 2, 0xff, 0xff, 0xff, 0xff],
        // A list of 2^31 - 1 structures, and of -1.
        &[15, 0, 3, 12, 0x7f, 0xff, 0xff, 0xff],
        &[15, 0, 3, 12, 0xff, 0xff, 0xff, 0xff],
        // A map and a set of as many bytes in a field that nobody knows.
        &[13, 0, 99, 3, 3, 0x7f, 0xff, 0xff, 0xff],
        &[14, 0, 99, 3, 0x7f, 0xff, 0xff, 0xff],
        // A type that there is not.
        &[77, 0, 2],
    ];
    for claim in claims {
        assert!(say(&device, &[&add, claim].concat()).is_empty(), "{claim:?}");
    }
    assert!(say(&device, &[0x7f, 0xff, 0xff, 0xff]).is_empty(), "a name of an older header");
    is_well(&device);
}

/// A message that is whole is answered, whatever its arguments are, and the connection goes on.
#[test]
fn arguments_that_nobody_knows_are_answered() {
    let device = Device::start();
    let text = |id: u8, text: &[u8]| [&[11, 0, id, 0, 0, 0, text.len() as u8], text].concat();
    let number = |id: u8, number: i32| [&[8, 0, id][..], &number.to_be_bytes()].concat();
    let next = call("standard:bm_mt_get_num_entries");
    // The code of an exception, in the only field of the only field of a result.
    let exception = |code: i32| [&[12, 0, 1][..], &number(1, code), &[0, 0]].concat();
    let no_resource = [text(3, b"In.route"), vec![0]].concat();
    // A field of a key that matches in a way that there is not.
    let key = [&[15, 0, 3, 12, 0, 0, 0, 1][..], &number(1, 9), &[0]].concat();
    for (name, arguments, answer) in [
        ("standard:bm_get_id_from_name", [number(2, 6), no_resource.clone()].concat(), exception(0)),
        ("standard:bm_get_id_from_name", [number(2, -1), no_resource].concat(), exception(0)),
        ("standard:bm_mt_get_entry_from_key", [text(2, b"In.route"), key, vec![0]].concat(), exception(18)),
        // A name that is no text.
        ("standard:bm_mt_get_num_entries", [text(2, b"In.\xff"), vec![0]].concat(), exception(7)),
    ] {
        let after = [&next[..], &text(2, b"In.next"), &[0]].concat();
        let answers = say(&device, &[&call(name), &arguments[..], &after].concat());
        let holds = |wanted: &[u8]| answers.windows(wanted.len()).any(|part| part == wanted);
        assert!(holds(&answer), "{name}: {answers:?}");
        assert!(answers.ends_with(&[10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "{name}: {answers:?}");
    }
    // Texts where structures belong.
    let texts = [&[15, 0, 3, 11, 0, 0, 0, 1, 0, 0, 0, 0][..], &[0]].concat();
    let after = [&next[..], &text(2, b"In.next"), &[0]].concat();
    let answers = say(&device, &[&call("standard:bm_mt_get_entry_from_key"), &texts[..], &after].concat());
    // An exception of the protocol itself (3), and then an answer (2).
    assert_eq!(answers[..4], [0x80, 1, 0, 3]);
    assert!(answers.ends_with(&[10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "{answers:?}");
    is_well(&device);
}

#[test]
fn deep_nesting_ends_the_connection() {
    let device = Device::start();
    // Structures in structures, in a field that nobody knows.
    let deep = [12, 0, 99].repeat(100_000);
    assert!(say(&device, &[call("standard:bm_get_config"), deep].concat()).is_empty());
    is_well(&device);
}

#[test]
fn a_message_without_end_is_cut_off() {
    let device = Device::start();
    let mut bytes = call("standard:bm_get_config");
    // Fields that nobody knows: strings of 64 KiB.
    let mut field = vec![11, 0, 99, 0, 1, 0, 0];
    field.resize(field.len() + 0x10000, 7);
    while bytes.len() < MAX_MESSAGE + 2 * field.len() {
        bytes.extend(&field);
    }
    assert!(say(&device, &bytes).is_empty());
    is_well(&device);
}

#[test]
fn calls_that_there_are_not_are_answered() {
    let device = Device::start();
    for name in ["standard:nothing", "nobody:bm_get_config", "x", ""] {
        let answer = say(&device, &[call(name), vec![0]].concat());
        // An exception (type 3) of kind 1, unknown method.
        assert_eq!(answer.get(..4), Some(&[0x80, 1, 0, 3][..]), "{name}");
    }
    // Without the service's name it is `standard`.
    let answer = say(&device, &[call("bm_get_config_md5"), vec![0]].concat());
    assert_eq!(answer.get(..4), Some(&[0x80, 1, 0, 2][..]));
}

#[test]
fn one_connection_too_many_takes_the_place_of_the_one_that_rested_longest() {
    let device = Device::start();
    let mut idle: Vec<Client> = (0..MAX_CONNECTIONS_OF_PEER).map(|_| device.client()).collect();
    idle.iter_mut().for_each(|client| {
        client.bm_get_config_md5().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    });
    idle[0].bm_get_config_md5().unwrap();
    let mut late = device.client();
    late.bm_get_config_md5().unwrap();
    assert!(idle[1].bm_get_config_md5().is_err(), "it gave way");
    assert!([0, 2].into_iter().all(|one| idle[one].bm_get_config_md5().is_ok()));
    late.bm_get_config_md5().unwrap();
}

#[test]
fn those_who_hold_all_places_keep_nobody_out() {
    let device = Device::start();
    // Some say nothing, some begin a message and trickle, some ask and take no answer.
    let held: Vec<TcpStream> = (0..2 * MAX_CONNECTIONS)
        .map(|number| {
            let mut stream = TcpStream::connect(device.address()).unwrap();
            let _ = match number % 3 {
                0 => Ok(()),
                1 => stream.write_all(&call("standard:bm_mt_add_entry")[..9]),
                _ => stream.write_all(&[call("standard:bm_get_config"), vec![0]].concat().repeat(1000)),
            };
            stream
        })
        .collect();
    let begun = Instant::now();
    device.client().bm_get_config_md5().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // And they have given way: some of them are closed.
    let closed = held.iter().filter(|stream| {
        stream.set_nonblocking(true).unwrap();
        let mut stream: &TcpStream = stream;
        loop {
            match stream.read(&mut [0; 4096]) {
                Ok(1..) => continue,
                Ok(0) => return true,
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    });
    assert!(closed.count() >= 2 * MAX_CONNECTIONS - MAX_CONNECTIONS_OF_PEER);
}

/// Bytes of memory that this process has asked for.
fn asked_for() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn announced_lengths_take_no_memory() {
    let device = Device::start();
    let held = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(device.address()).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    // The same connections, without a length: what threads take is not counted.
    let silent: Vec<TcpStream> = (0..40).map(|_| held(&call("standard:bm_get_config"))).collect();
    std::thread::sleep(Duration::from_millis(300));
    let before = asked_for();
    drop(silent);
    // A string of 7 MiB of which a few bytes come.
    let begun = [&call("standard:bm_mt_add_entry")[..], &[11, 0, 2, 0, 0x70, 0, 0, 1, 2, 3]].concat();
    let held: Vec<TcpStream> = (0..40).map(|_| held(&begun)).collect();
    std::thread::sleep(Duration::from_millis(300));
    let grown = asked_for().saturating_sub(before);
    // Tests that run concurrently take some; 40 strings of 7 MiB would be 280 MiB.
    assert!(grown < 200 << 20, "{grown} bytes");
    is_well(&device);
    drop(held);
}

/// A whole call that adds an entry, byte by byte as bmv2's tool sends it.
fn whole() -> Vec<u8> {
    let mut bytes = call("standard:bm_mt_add_entry");
    bytes.extend([8, 0, 1, 0, 0, 0, 0]);
    bytes.extend(b"\x0b\x00\x02\x00\x00\x00\x08In.route");
    bytes.extend([15, 0, 3, 12, 0, 0, 0, 1]);
    bytes.extend([8, 0, 1, 0, 0, 0, 1]);
    bytes.extend([12, 0, 3, 11, 0, 1, 0, 0, 0, 4, 10, 0, 0, 0, 8, 0, 2, 0, 0, 0, 8, 0, 0]);
    bytes.extend(b"\x0b\x00\x04\x00\x00\x00\x07In.drop");
    bytes.extend([15, 0, 5, 11, 0, 0, 0, 0]);
    bytes.extend([12, 0, 6, 8, 0, 1, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn a_call_byte_by_byte() {
    let device = Device::start();
    let answer = say(&device, &whole());
    // A reply: field 0, an i32, is the handle 0.
    assert!(answer.ends_with(&[8, 0, 0, 0, 0, 0, 0, 0]), "{answer:?}");
    assert_eq!(device.client().bm_mt_get_num_entries("In.route".into()).unwrap(), 1);
}

#[test]
fn damaged_calls_never_harm() {
    let device = Device::start();
    let sound = whole();
    for length in 0..sound.len() {
        assert!(say(&device, &sound[..length]).is_empty(), "cut after {length}");
    }
    is_well(&device);
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(at in prop::collection::vec((0..sound.len(), any::<u8>()), 1..6), tail in prop::collection::vec(any::<u8>(), 0..40))| {
        let mut bytes = sound.clone();
        at.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        bytes.extend(&tail);
        say(&device, &bytes);
    });
    proptest!(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() }, |(bytes in prop::collection::vec(any::<u8>(), 0..200))| {
        say(&device, &bytes);
    });
    device.client().bm_get_config().unwrap();
}
