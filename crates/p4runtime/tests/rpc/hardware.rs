//! A whole hardware device, simulated, in place of engine and traffic manager: in this process, and on the host link.

use crate::common::{Client, Device, Names, exact, leaving, update};
use millrace_chassis::Making;
use millrace_dataplane::{Attachment, Cancel, DropReason, HardwareConfig, Request};
use millrace_link::{Place, Server, Simulated};
use millrace_p4runtime::Listen;
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use millrace_p4runtime_api::v1::stream_message_response::Update as Heard;
use millrace_p4runtime_api::v1::write_request::Atomicity;
use millrace_p4runtime_api::v1::*;
use millrace_rtl::{DeviceOptions, Hardware, Options};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tonic::Code;

const PROGRAM: &str = include_str!("../programs/device.p4");
const CPU: u32 = 510;
/// How long a simulated device may take for what a test waits for.
const SOON: Duration = Duration::from_secs(60);

fn options() -> DeviceOptions {
    let numbers = vec![0, 1, 2, CPU];
    DeviceOptions {
        numbers,
        width: 128,
        frame: 512,
        slots: 4,
        queues: 1,
        depth: 8,
        ..DeviceOptions::default()
    }
}

/// A switch whose programs are on a device at a place.
fn at(place: Place) -> Device {
    let listen = Listen { address: ([127, 0, 0, 1], 0).into(), tls: None, allow_plaintext: false };
    let device = Some(Attachment { place, options: options() });
    let hardware = HardwareConfig { device, ..HardwareConfig::default() };
    Device::making(listen, Making { hardware, ..Making::default() }, CPU)
}

/// A device of the program that is served.
fn serve(listener: TcpListener) -> Server {
    let pipeline = Making::default().pipeline(PROGRAM.as_bytes(), &Cancel::default()).unwrap();
    let hardware = Hardware::new(pipeline.program, Options::default()).unwrap();
    let device = millrace_rtl::Device::new(&hardware, options()).unwrap();
    Server::serve(listener, Box::new(Simulated::new(&device).unwrap())).unwrap()
}

/// The way to a server, which can be cut.
struct Wire {
    address: SocketAddr,
    /// Whether it is whole, and the two sides of its connections.
    state: Arc<Mutex<(bool, Vec<TcpStream>)>>,
}

impl Wire {
    fn to(server: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new((true, Vec::new())));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mut state = shared.lock().unwrap();
                if !state.0 {
                    continue;
                }
                let Ok(far) = TcpStream::connect(server) else { continue };
                for (mut from, mut to) in [
                    (near.try_clone().unwrap(), far.try_clone().unwrap()),
                    (far.try_clone().unwrap(), near.try_clone().unwrap()),
                ] {
                    std::thread::spawn(move || {
                        _ = std::io::copy(&mut from, &mut to);
                        _ = to.shutdown(Shutdown::Both);
                    });
                }
                state.1.extend([near, far]);
            }
        });
        Wire { address, state }
    }

    fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 = false;
        state.1.drain(..).for_each(|side| _ = side.shutdown(Shutdown::Both));
    }

    fn mend(&self) {
        self.state.lock().unwrap().0 = true;
    }
}

fn frame(source: u8, destination: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, destination]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, source]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

async fn ready(device: &Device) -> Client {
    let mut client = Client::primary(device, 1).await;
    client.set(Action::VerifyAndCommit, PROGRAM).await.unwrap();
    client
}

/// Adds a station at a port, and one that is known as a source.
async fn stations(client: &mut Client) {
    let names = client.names();
    let forward = |port: u8| names.run("forward", &[&[port]]);
    client.insert(Entity::TableEntry(names.station(2, forward(2)))).await.unwrap();
    client.insert(Entity::TableEntry(names.station(9, names.run("to_cpu", &[])))).await.unwrap();
    client.insert(Entity::TableEntry(source(&names, 1, 0))).await.unwrap();
}

/// A known source, which may be idle for that long.
fn source(names: &Names, last: u8, idle_timeout_ns: i64) -> TableEntry {
    TableEntry {
        table_id: names.table("sources"),
        r#match: vec![exact(1, &[2, 0, 0, 0, 0, last])],
        action: names.run("NoAction", &[]),
        idle_timeout_ns,
        ..TableEntry::default()
    }
}

async fn hits(client: &mut Client, last: u8) -> i64 {
    let entry = client.names().station(last, None);
    let asked = DirectCounterEntry { table_entry: Some(entry), data: None };
    match &client.read(Entity::DirectCounterEntry(asked)).await[..] {
        [Entity::DirectCounterEntry(entry)] => entry.data.as_ref().unwrap().packet_count,
        other => panic!("{other:?}"),
    }
}

async fn drops(device: &Device, reason: DropReason) -> u64 {
    let control = device.control.clone();
    let report = tokio::task::spawn_blocking(move || control.report(SOON)).await.unwrap().unwrap();
    report.drops.iter().find(|(other, _)| *other == reason).map_or(0, |(_, count)| *count)
}

async fn is_unreachable(device: &Device) -> bool {
    let control = device.control.clone();
    let moment = tokio::task::spawn_blocking(move || control.ask(Request::Look)).await.unwrap();
    moment.unwrap().device.is_some_and(|device| device.unreachable.is_some())
}

/// Waits for something that comes with the time.
async fn soon(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < SOON, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_device_does_what_a_controller_writes_and_tells_what_it_counts() {
    let mut device = at(Place::Simulated);
    let mut client = ready(&device).await;
    stations(&mut client).await;
    for round in 1..=3 {
        device.ports[0].send(frame(1, 2)).unwrap();
        assert_eq!(leaving(&mut device, 1).await, frame(1, 2));
        assert_eq!(hits(&mut client, 2).await, round);
    }
    // Registers and counters.
    let last = RegisterEntry {
        register_id: crate::common::id(client.names().info.registers.iter().map(|r| &r.preamble), "last"),
        ..RegisterEntry::default()
    };
    let read =
        client.read(Entity::RegisterEntry(RegisterEntry { index: Some(Index { index: 1 }), ..last })).await;
    let [Entity::RegisterEntry(RegisterEntry { data: Some(data), .. })] = &read[..] else {
        panic!("{read:?}")
    };
    assert_eq!(data.data, Some(p4_data::Data::Bitstring([2, 0, 0, 0, 0, 1].to_vec().into())));
    // A packet-in, a packet-out.
    device.ports[1].send(frame(1, 9)).unwrap();
    let Heard::Packet(packet) = client.stream.next().await.unwrap() else { panic!() };
    assert_eq!((packet.payload, packet.metadata[0].value.to_vec()), (frame(1, 9).into(), vec![2]));
    let metadata = vec![PacketMetadata { metadata_id: 1, value: [1].to_vec().into() }];
    let out = PacketOut { payload: frame(7, 7).into(), metadata };
    client.stream.tell(stream_message_request::Update::Packet(out)).await;
    assert_eq!(leaving(&mut device, 0).await, frame(7, 7));
    // A group.
    let replicas = [1, 2].map(|port| Replica {
        instance: 1,
        port_kind: Some(replica::PortKind::Port([port].to_vec().into())),
        ..Replica::default()
    });
    let group = |multicast_group_id| {
        let group = MulticastGroupEntry {
            multicast_group_id,
            replicas: replicas.to_vec(),
            ..MulticastGroupEntry::default()
        };
        let r#type = Some(packet_replication_engine_entry::Type::MulticastGroupEntry(group));
        Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type })
    };
    client.insert(group(5)).await.unwrap();
    let flood = client.names().run("flood", &[&[5]]);
    client.insert(Entity::TableEntry(client.names().station(0xff, flood))).await.unwrap();
    device.ports[0].send(frame(1, 0xff)).unwrap();
    for place in [0, 1] {
        assert_eq!(leaving(&mut device, place).await, frame(1, 0xff));
    }
    // Beyond what the device has.
    let refused = client.insert(group(64)).await.unwrap_err();
    assert_eq!(refused.code, Code::ResourceExhausted, "{}", refused.message);
    // What is for nobody is dropped there, and counted.
    device.ports[0].send(frame(1, 0x77)).unwrap();
    soon("a drop", async || drops(&device, DropReason::IngressDrop).await == 1).await;
}

#[tokio::test]
async fn what_is_more_than_a_device_holds_is_refused_and_nothing_changes() {
    let mut device = at(Place::Simulated);
    let mut client = ready(&device).await;
    let names = client.names();
    let station = |last: u8| Entity::TableEntry(names.station(last, names.run("forward", &[&[2]])));
    let batch = |range: std::ops::RangeInclusive<u8>| -> Vec<Update> {
        range.map(|last| update(update::Type::Insert, station(last))).collect()
    };
    // Nine tenths of the size is the least that a unit holds.
    client.write_with(Atomicity::DataplaneAtomic, batch(1..=36)).await.unwrap();
    let status = client.write_with(Atomicity::DataplaneAtomic, batch(37..=60)).await.unwrap_err();
    let errors = crate::common::errors(&status);
    assert!(errors.iter().any(|error| error.code == Code::ResourceExhausted), "{errors:?}");
    let all = TableEntry { table_id: names.table("stations"), ..TableEntry::default() };
    assert_eq!(client.read(Entity::TableEntry(all)).await.len(), 36);
    device.ports[0].send(frame(1, 37)).unwrap();
    device.ports[0].send(frame(1, 36)).unwrap();
    assert_eq!(leaving(&mut device, 1).await, frame(1, 36));
}

#[tokio::test]
async fn entries_of_a_device_that_are_not_hit_are_idle() {
    let mut device = at(Place::Simulated);
    let mut client = ready(&device).await;
    stations(&mut client).await;
    let names = client.names();
    let source = |last, timeout| source(&names, last, timeout);
    // Long enough that frames of a simulation hit the one in time.
    let timeout = 3_000_000_000;
    client.insert(Entity::TableEntry(source(4, timeout))).await.unwrap();
    let begun = Instant::now();
    client.insert(Entity::TableEntry(source(5, timeout))).await.unwrap();
    let mut told = Vec::new();
    while told.is_empty() {
        device.ports[0].send(frame(4, 2)).unwrap();
        assert_eq!(leaving(&mut device, 1).await, frame(4, 2));
        let next = tokio::time::timeout(Duration::from_millis(300), client.stream.hear.message()).await;
        if let Ok(message) = next
            && let Heard::IdleTimeoutNotification(idle) = message.unwrap().unwrap().update.unwrap()
        {
            told.extend(idle.table_entry);
        }
        assert!(begun.elapsed() < SOON, "nothing is told");
    }
    assert!(begun.elapsed() >= Duration::from_nanos(timeout as u64));
    let keys: Vec<_> = told.iter().map(|entry| entry.r#match.clone()).collect();
    assert_eq!(keys, [source(5, 0).r#match]);
}

/// What a report tells of lookups, of drops by reason and by port.
async fn told(device: &Device) -> Told {
    let control = device.control.clone();
    let report = tokio::task::spawn_blocking(move || control.report(SOON)).await.unwrap().unwrap();
    let lookups = report.lookups.iter().map(|counts| [counts.lookups, counts.misses]).collect();
    let ports = report.ports.iter().map(|port| [port.counters.rx_drops, port.counters.tx_drops]).collect();
    Told { lookups, drops: report.drops.iter().copied().filter(|(_, count)| *count > 0).collect(), ports }
}

#[derive(Debug, PartialEq, Eq)]
struct Told {
    /// Of each table: all, and those that missed.
    lookups: Vec<[u64; 2]>,
    drops: Vec<(DropReason, u64)>,
    /// Of each port: drops of what came in by it, and of what was for it.
    ports: Vec<[u64; 2]>,
}

/// The same frames in the interpreter and in a device: control is told the same lookups and drops.
#[tokio::test]
async fn lookups_and_drops_of_a_device_are_those_of_an_engine() {
    let listen = Listen { address: ([127, 0, 0, 1], 0).into(), tls: None, allow_plaintext: false };
    let making = Making { engine: millrace_dataplane::EngineKind::Interp, ..Making::default() };
    let mut both = [at(Place::Simulated), Device::making(listen, making, CPU)];
    let mut clients = Vec::new();
    for device in &both {
        let mut client = ready(device).await;
        stations(&mut client).await;
        clients.push(client);
    }
    for round in 0..3 {
        for device in &mut both {
            for last in [0x77, 0x78 + round] {
                device.ports[1].send(frame(1, last)).unwrap();
            }
            device.ports[0].send(frame(3, 0x77)).unwrap();
            device.ports[0].send(frame(1, 2)).unwrap();
            assert_eq!(leaving(device, 1).await, frame(1, 2));
        }
        let wanted = told(&both[1]).await;
        soon("the same counts", async || told(&both[0]).await == wanted).await;
        let rounds = u64::from(round) + 1;
        // Of four frames one has an unknown source, which is looked up first, and three have an unknown destination.
        let expected = Told {
            lookups: vec![[4 * rounds, rounds], [4 * rounds, 3 * rounds]],
            drops: vec![(DropReason::IngressDrop, 3 * rounds)],
            ports: vec![[rounds, 0], [2 * rounds, 0], [0, 0]],
        };
        assert_eq!(wanted, expected);
    }
}

/// What a device has counted since software looked last is there when it is reached again; it is written to as before.
#[tokio::test]
async fn a_device_without_a_reset_keeps_its_counts() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let wire = Wire::to(server.local_addr().unwrap());
    let server = serve(server);
    let mut device = at(Place::Served(wire.address));
    let mut client = ready(&device).await;
    stations(&mut client).await;
    for round in 0..3 {
        for _ in 0..5 {
            device.ports[0].send(frame(1, 2)).unwrap();
            assert_eq!(leaving(&mut device, 1).await, frame(1, 2));
        }
        wire.cut();
        soon("the link is cut", async || is_unreachable(&device).await).await;
        wire.mend();
        soon("the link is there", async || !is_unreachable(&device).await).await;
        device.ports[0].send(frame(1, 2)).unwrap();
        assert_eq!(leaving(&mut device, 1).await, frame(1, 2));
        assert_eq!(hits(&mut client, 2).await, 6 * (round + 1));
        let [stations, sources] = told(&device).await.lookups[..] else { panic!() };
        // Each of 6 frames, and of one in each round before.
        let frames = 6 * (round as u64 + 1) + round as u64;
        assert_eq!((stations, sources), ([frames, 0], [frames, 0]), "round {round}");
        let names = client.names();
        let station = names.station(10 + round as u8, names.run("forward", &[&[2]]));
        client.insert(Entity::TableEntry(station)).await.unwrap();
        device.ports[0].send(frame(1, 10 + round as u8)).unwrap();
        assert_eq!(leaving(&mut device, 1).await, frame(1, 10 + round as u8));
    }
    drop((client, device));
    drop(server);
}

#[tokio::test]
async fn a_link_that_is_cut_loses_frames_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let server = serve(listener);
    let mut device = at(Place::Served(address));
    let mut client = ready(&device).await;
    stations(&mut client).await;
    device.ports[0].send(frame(1, 2)).unwrap();
    assert_eq!(leaving(&mut device, 1).await, frame(1, 2));
    assert_eq!(hits(&mut client, 2).await, 1);
    // An unknown source is told by itself.
    let digest = DigestEntry {
        digest_id: crate::common::id(
            client.names().info.digests.iter().map(|digest| &digest.preamble),
            "learn_t",
        ),
        config: Some(digest_entry::Config { max_list_size: 1, ..digest_entry::Config::default() }),
    };
    client.insert(Entity::DigestEntry(digest)).await.unwrap();
    device.ports[1].send(frame(8, 2)).unwrap();
    let Heard::Digest(list) = client.stream.next().await.unwrap() else { panic!() };
    assert_eq!(list.data.len(), 1);
    assert_eq!(leaving(&mut device, 1).await, frame(8, 2));
    // Another program than the device's is refused.
    let refused = client.set(Action::Verify, &PROGRAM.replace("size = 16", "size = 17")).await.unwrap_err();
    assert!(refused.message().contains("of another program"), "{}", refused.message());

    let timeout = Duration::from_secs(2);
    let timed = source(&client.names(), 5, timeout.as_nanos() as i64);
    client.insert(Entity::TableEntry(timed.clone())).await.unwrap();
    drop(server);
    soon("the link is cut", async || is_unreachable(&device).await).await;
    let station = Entity::TableEntry(client.names().station(6, client.names().run("forward", &[&[2]])));
    let updates = vec![update(update::Type::Insert, station)];
    let status = client.write_with(Atomicity::ContinueOnError, updates.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{}", status.message());
    for _ in 0..3 {
        device.ports[0].send(frame(1, 2)).unwrap();
    }
    soon("frames are lost", async || drops(&device, DropReason::Device).await == 3).await;
    assert_eq!(hits(&mut client, 2).await, 2, "what was known last");
    // Frames may hit what a switch does not see: nothing is said to be idle.
    let early = tokio::time::timeout(timeout, client.stream.hear.message()).await;
    assert!(early.is_err(), "{early:?}");

    // One after its reset: it is brought to the whole state. A write waits until it is looked for.
    let back = Instant::now();
    let server = serve(TcpListener::bind(address).unwrap());
    client.write_with(Atomicity::ContinueOnError, updates).await.unwrap();
    for destination in [2, 6] {
        device.ports[0].send(frame(1, destination)).unwrap();
        assert_eq!(leaving(&mut device, 1).await, frame(1, destination));
    }
    assert_eq!(hits(&mut client, 2).await, 3, "one before, one of the unknown source, one after");
    let Heard::IdleTimeoutNotification(idle) = client.stream.next().await.unwrap() else { panic!() };
    assert!(back.elapsed() >= timeout);
    assert_eq!(idle.table_entry[0].r#match, timed.r#match);
    drop((client, device));
    drop(server);
}
