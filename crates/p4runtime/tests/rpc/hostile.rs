//! Clients that take all they can, and give nothing: what they cost others.

use crate::common::{ALL, Client, DEVICE, Device, errors, update};
use millrace_drivers::{FarEnd, MemoryPort, Next};
use millrace_p4runtime::{MAX_CONNECTIONS_OF_PEER, MAX_STREAMS_OF_CONNECTION};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tonic::Code;

fn address(device: &Device) -> SocketAddr {
    device.server.as_ref().unwrap().address()
}

/// A port that keeps its worker until it is told to go on.
struct Busy(Receiver<()>);

impl FarEnd for Busy {
    fn next(&mut self) -> Next<'_> {
        // Nobody tells it any more.
        let _ = self.0.recv();
        Next::None
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }
}

/// What a client of HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head[..], &stream.to_be_bytes(), payload].concat()
}

/// The HEADERS frame of a gRPC call, its fields as literals without indexing (RFC 7541, 6.2.2).
fn call(stream: u32, path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "x"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        block.extend([0, name.len() as u8]);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    http2_frame(1, 4, stream, &block)
}

/// A controller whose connection comes from that address of this machine.
async fn connect_from(device: &Device, last: u8) -> Client {
    let local = Some([127, 0, 0, last].into());
    let endpoint = tonic::transport::Endpoint::from_shared(device.address()).unwrap().local_address(local);
    Client::over(endpoint.connect().await.unwrap()).await
}

/// Bytes of memory of this process.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn silent_connections_give_way_to_a_controller() {
    let device = Device::start();
    let mut first = Client::primary(&device, 1).await;
    let held: Vec<TcpStream> =
        (0..2 * MAX_CONNECTIONS_OF_PEER).map(|_| TcpStream::connect(address(&device)).unwrap()).collect();
    // Those that greet and ask for nothing give way too.
    let greeted: Vec<TcpStream> = (0..MAX_CONNECTIONS_OF_PEER)
        .map(|_| {
            let mut stream = TcpStream::connect(address(&device)).unwrap();
            let _ = stream.write_all(PREFACE);
            stream
        })
        .collect();
    let begun = Instant::now();
    let mut second = Client::primary(&device, 2).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    second.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, ALL).await.unwrap();
    // Who is a controller stays.
    first.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    drop((held, greeted));
}

#[tokio::test]
async fn a_connection_that_says_too_little_is_closed() {
    let device = Device::start();
    let mut slow = TcpStream::connect(address(&device)).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let begun = Instant::now();
    // One byte of the greeting, every now and then.
    let mut greeting = PREFACE.iter();
    let closed = tokio::task::spawn_blocking(move || {
        while begun.elapsed() < Duration::from_secs(20) {
            if slow.write_all(&[*greeting.next().unwrap()]).is_err() {
                break;
            }
            slow.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let mut answer = [0; 256];
            match slow.read(&mut answer) {
                Ok(0) => break,
                Ok(_) => continue,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            }
        }
        begun.elapsed()
    });
    let closed = closed.await.unwrap();
    assert!(closed < Duration::from_secs(14), "{closed:?}");
}

#[tokio::test]
async fn streams_of_one_connection_leave_room_for_a_primary() {
    let device = Device::start();
    let mut first = Client::primary(&device, 1000).await;
    let mut held = Vec::new();
    for last in 2..6 {
        let mut other = connect_from(&device, last).await;
        other.arbitrate(Some(u64::from(last))).await.ok();
        for number in 1..2 * MAX_STREAMS_OF_CONNECTION as u64 {
            let (say, said) = tokio::sync::mpsc::channel(1);
            let stream = tokio_stream::wrappers::ReceiverStream::new(said);
            let Ok(hear) = other.calls.stream_channel(stream).await else { continue };
            let update = MasterArbitrationUpdate {
                device_id: DEVICE,
                election_id: Some(crate::common::election(number * 10 + u64::from(last))),
                ..MasterArbitrationUpdate::default()
            };
            let update = Some(stream_message_request::Update::Arbitration(update));
            say.send(StreamMessageRequest { update }).await.unwrap();
            held.push((say, hear));
        }
        held.push((other.stream.say.clone(), {
            let (_, said) = tokio::sync::mpsc::channel(1);
            match other.calls.stream_channel(tokio_stream::wrappers::ReceiverStream::new(said)).await {
                Ok(hear) => hear,
                Err(_) => continue,
            }
        }));
    }
    // The default role is full of backups; one that is higher than the primary gets in, one that is not does not.
    let mut low = Client::connect(&device).await;
    assert_eq!(low.arbitrate(Some(3)).await.unwrap_err().code(), Code::ResourceExhausted);
    let mut second = Client::primary(&device, 2000).await;
    second.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, ALL).await.unwrap();
    let told = first.stream.arbitration().await.unwrap();
    assert_eq!(told.status.unwrap().code, Code::AlreadyExists as i32, "the one before stays as a backup");
}

#[tokio::test]
async fn streams_that_never_say_who_they_are_end() {
    let device = Device::start();
    let mut client = Client::connect(&device).await;
    let begun = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(20), client.stream.hear.message()).await;
    assert_eq!(ended.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    assert!(begun.elapsed() > Duration::from_secs(9));
}

/// Four connections with 120 streams each that announce messages of 32 MiB, and send a few bytes of them.
#[tokio::test]
async fn announced_lengths_take_no_memory() {
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    let before = resident();
    let mut held = Vec::new();
    for (number, path) in ["StreamChannel", "Write", "SetForwardingPipelineConfig", "Read"].iter().enumerate()
    {
        let mut stream = TcpStream::connect(address(&device)).unwrap();
        stream.write_all(PREFACE).unwrap();
        for id in 0..120 {
            let begun = [0, 2, 0, 0, 0, 0x0a, 0x0a, 0x0a];
            let path = format!("/p4.v1.P4Runtime/{path}");
            let id = 2 * id + 1;
            if stream.write_all(&[call(id, &path), http2_frame(0, 0, id, &begun)].concat()).is_err() {
                break;
            }
        }
        held.push((number, stream));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    client.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, ALL).await.unwrap();
    let grown = resident().saturating_sub(before);
    assert!(grown < 256 << 20, "{grown} bytes");
}

/// Two bytes for an update: 32 MiB would be 8 GiB of structures.
#[tokio::test]
async fn batches_of_nothing_are_refused_before_they_take_memory() {
    let device = Device::start();
    let mut client = device.ready().await;
    let request = |count| WriteRequest {
        device_id: DEVICE,
        election_id: Some(crate::common::election(1)),
        updates: vec![Update::default(); count],
        ..WriteRequest::default()
    };
    let before = resident();
    let large = request(2_000_000);
    let own = resident().saturating_sub(before);
    let status = client.calls.write(large).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(resident().saturating_sub(before) < own + (256 << 20));
    // What can be had is answered one by one.
    let status = client.calls.write(request(100)).await.unwrap_err();
    assert_eq!(errors(&status).len(), 100);
}

#[tokio::test]
async fn large_messages_of_all_clients_leave_room_for_small_ones_and_for_the_primary() {
    const LARGE: usize = 30 << 20;
    let device = Device::start();
    let mut client = device.ready().await;
    let last = client.info.registers[0].preamble.as_ref().unwrap().id;
    // The worker is busy with a port, so that writes to registers wait.
    let (release, released) = std::sync::mpsc::channel::<()>();
    device.control.add_port(99, vec![Box::new(MemoryPort::new(Busy(released)))]).unwrap();
    let request = |length: usize| {
        let register = |register_id, bytes: Vec<u8>| {
            let data = Some(P4Data { data: Some(p4_data::Data::Bitstring(bytes.into())) });
            let index = Some(Index { index: 0 });
            update(update::Type::Modify, Entity::RegisterEntry(RegisterEntry { register_id, index, data }))
        };
        WriteRequest {
            device_id: DEVICE,
            election_id: Some(crate::common::election(1)),
            updates: vec![register(last, vec![1]), register(0, vec![0; length])],
            ..WriteRequest::default()
        }
    };
    // Each takes its bytes, and as many decoded; with the election id of the primary, so that they wait for the worker.
    let mut writes = tokio::task::JoinSet::new();
    for last in 2..8 {
        let mut other = P4RuntimeClient::new(
            tonic::transport::Endpoint::from_shared(device.address())
                .unwrap()
                .local_address(Some([127, 0, 0, last].into()))
                .connect()
                .await
                .unwrap(),
        );
        let request = request(LARGE);
        writes.spawn(async move { other.write(request).await.map(drop).unwrap_err() });
    }
    let refused = tokio::time::timeout(Duration::from_secs(60), writes.join_next()).await.unwrap();
    let refused = refused.unwrap().unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().starts_with("messages of all clients take"), "{refused:?}");
    // Small ones always have room, and so has the primary.
    client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    let mut primary = client.calls.clone();
    let large = request(LARGE);
    let written = tokio::spawn(async move { primary.write(large).await.map(drop).unwrap_err() });
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(release);
    assert_eq!(errors(&written.await.unwrap())[1].code, Code::InvalidArgument);
    while let Some(status) = writes.join_next().await {
        let status = status.unwrap();
        if status.code() != Code::ResourceExhausted {
            assert_eq!(errors(&status)[1].code, Code::InvalidArgument);
        }
    }
    // And there is room again.
    let status = client.calls.write(request(LARGE)).await.unwrap_err();
    assert_eq!(errors(&status)[1].code, Code::InvalidArgument);
}

/// A program with one table of so many exact entries, and how many were written.
async fn large_table(client: &mut Client, entries: u32) {
    let source = "#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> key; bit<32> value; }
struct headers { h_t h; }
struct meta {}
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout headers h, inout meta m) { apply {} }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    action set(bit<32> value) { h.h.value = value; }
    table t { key = { h.h.key: exact; } actions = { set; NoAction; } default_action = NoAction(); size = 1048576; }
    apply { t.apply(); }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply {} }
control C(inout headers h, inout meta m) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";
    client.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, source).await.unwrap();
    let keys: Vec<u32> = (0..entries).collect();
    for keys in keys.chunks(20_000) {
        let updates =
            keys.iter().map(|key| entry(client, *key)).map(|entry| update(update::Type::Insert, entry));
        client
            .write_with(write_request::Atomicity::ContinueOnError, updates.collect::<Vec<_>>())
            .await
            .unwrap();
    }
}

fn entry(client: &Client, key: u32) -> Entity {
    Entity::TableEntry(TableEntry {
        table_id: client.table("t"),
        r#match: vec![crate::common::exact(1, &(key + 1).to_be_bytes())],
        action: client.run("set", &[&(key + 1).to_be_bytes()]),
        ..TableEntry::default()
    })
}

/// Sixteen clients ask for all of a large table, and take the first message of the answer.
#[tokio::test]
async fn slow_readers_of_a_large_table_keep_no_writer_waiting() {
    const ENTRIES: u32 = 30_000;
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    large_table(&mut client, ENTRIES).await;
    let mut held = Vec::new();
    for _ in 0..16 {
        let mut other = P4RuntimeClient::connect(device.address()).await.unwrap();
        let entity = Some(Entity::TableEntry(TableEntry::default()));
        let request = ReadRequest {
            device_id: DEVICE,
            entities: vec![crate::common::wrapped(entity)],
            ..ReadRequest::default()
        };
        let mut answers = other.read(request).await.unwrap().into_inner();
        answers.message().await.unwrap();
        held.push(answers);
    }
    // An answer is made in a fraction of a second, on a busy machine in a second, and each write may wait for two of them. Clients
    // that do not read on never end.
    let begun = Instant::now();
    for key in 0..10 {
        client.insert(entry(&client, ENTRIES + key)).await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // Whoever takes the answer gets all of it, in one state.
    let read = client.read(Entity::TableEntry(TableEntry::default()));
    let write = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut second = Client::connect(&device).await;
        second.arbitrate(Some(2)).await.unwrap();
    };
    let (all, ()) = tokio::join!(read, write);
    assert_eq!(all.len(), ENTRIES as usize + 10);
}

/// While a batch of two hundred thousand updates is applied, the others on the same server are answered.
#[tokio::test]
async fn a_large_batch_leaves_the_server_answering() {
    const ENTRIES: u32 = 200_000;
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    large_table(&mut client, 1).await;
    let request = WriteRequest {
        device_id: DEVICE,
        election_id: Some(crate::common::election(1)),
        updates: (1..ENTRIES).map(|key| update(update::Type::Insert, entry(&client, key))).collect(),
        ..WriteRequest::default()
    };
    let mut calls = client.calls.clone();
    let writing = tokio::spawn(async move { calls.write(request).await.unwrap() });
    let moment = device.control.ask(millrace_dataplane::Request::Look).unwrap();
    let table = moment.program.tables.keys().next().unwrap();
    let count = || moment.tables.lock().entry_count(table);
    let mut other = P4RuntimeClient::connect(device.address()).await.unwrap();
    let mut meanwhile = 0;
    while count() < ENTRIES {
        let begun = count() > 1;
        other.capabilities(CapabilitiesRequest::default()).await.unwrap();
        meanwhile += u32::from(begun && count() < ENTRIES);
    }
    writing.await.unwrap();
    assert!(meanwhile > 0);
}

/// A request that looks at a large table twenty thousand times, and wants nothing of it, ends when a writer has waited for it.
#[tokio::test]
async fn a_read_that_finds_nothing_gives_way_to_a_writer() {
    const ENTRIES: u32 = 20_000;
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    large_table(&mut client, ENTRIES).await;
    let none = TableEntry {
        table_id: client.table("t"),
        action: client.run("NoAction", &[]),
        ..TableEntry::default()
    };
    let entities = vec![crate::common::wrapped(Some(Entity::TableEntry(none))); ENTRIES as usize];
    let request = ReadRequest { device_id: DEVICE, entities, ..ReadRequest::default() };
    let mut other = P4RuntimeClient::connect(device.address()).await.unwrap();
    let mut answers = other.read(request).await.unwrap().into_inner();
    let ended = tokio::spawn(async move { answers.message().await.unwrap_err() });
    // Others are answered while it lasts, and who writes sees it end.
    client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    assert!(!ended.is_finished());
    client.insert(entry(&client, ENTRIES)).await.unwrap();
    assert_eq!(ended.await.unwrap().code(), Code::Aborted);
}

/// A hundred thousand streams that are opened and reset at once, and as many pings and settings.
#[tokio::test]
async fn floods_of_frames_leave_the_server_answering() {
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    let address = address(&device);
    let flood = |make: fn(u32) -> Vec<u8>| {
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
            stream.write_all(PREFACE).unwrap();
            for id in 0..100_000 {
                // The server may close it, or take no more.
                if stream.write_all(&make(2 * id + 1)).is_err() {
                    break;
                }
            }
        })
    };
    let floods = [
        flood(|id| [call(id, "/p4.v1.P4Runtime/Read"), http2_frame(3, 0, id, &[0, 0, 0, 8])].concat()),
        flood(|_| http2_frame(6, 0, 0, &[7; 8])),
        flood(|_| http2_frame(4, 0, 0, &[0, 4, 0, 0, 0xff, 0xff])),
        // A list of fields without end.
        flood(|id| {
            if id == 1 {
                http2_frame(1, 0, 1, &[])
            } else {
                http2_frame(9, 0, 1, &[0, 1, b'a', 1, b'b'].repeat(1000))
            }
        }),
    ];
    let before = resident();
    for _ in 0..20 {
        let begun = Instant::now();
        client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    tokio::task::spawn_blocking(move || floods.into_iter().for_each(|flood| flood.join().unwrap()))
        .await
        .unwrap();
    let grown = resident().saturating_sub(before);
    assert!(grown < 128 << 20, "{grown} bytes");
    client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
}

/// Packets out faster than the switch takes them, unknown acknowledgements, by a client that hears nothing.
#[tokio::test]
async fn a_stream_that_is_flooded_and_not_read_takes_bounded_memory() {
    let device = Device::start();
    let client = device.ready().await;
    let before = resident();
    let packet = PacketOut { payload: vec![0; 9000].into(), metadata: vec![] };
    let ack = DigestListAck { digest_id: 1, list_id: 1 };
    for number in 0..30_000u32 {
        let update = match number % 2 {
            0 => stream_message_request::Update::Packet(packet.clone()),
            _ => stream_message_request::Update::DigestAck(ack),
        };
        client.stream.tell(update).await;
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
    let mut second = Client::primary(&device, 2).await;
    second.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
}

/// A read that goes through many entries again and again and finds none of them is made until its client leaves, not to its end.
#[tokio::test]
async fn who_leaves_a_long_read_holds_up_nobody() {
    let device = Device::start();
    let mut client = device.ready().await;
    let names = client.names();
    let route =
        |number: u16| Entity::TableEntry(names.route([10, (number >> 8) as u8, number as u8, 0], 24, 1));
    let routes = (0..3500).map(|number| update(update::Type::Insert, route(number))).collect();
    client.write_with(write_request::Atomicity::ContinueOnError, routes).await.unwrap();
    // Minutes of an unoptimised build, in a message that is almost as long as it may be.
    let none =
        TableEntry { action: names.run("drop", &[]), r#match: Vec::new(), ..names.route([0; 4], 0, 1) };
    let entities = vec![Entity::TableEntry(none); 50_000];
    let mut other = Client::connect(&device).await;
    let read = tokio::spawn(async move { other.read_all(entities).await });
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!read.is_finished(), "{:?}", read.await);
    read.abort();
    client.insert(route(3500)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
