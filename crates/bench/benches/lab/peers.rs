//! Peers that take all they can: they hold connections and streams, announce what they never send, send frames as fast as
//! they may, and read nothing. Each kind has a thread.

use super::DEVICE;
use millrace_p4runtime_api::v1::*;
use prost::Message;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where the servers of the switch listen.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) grpc: SocketAddr,
    pub(crate) thrift: SocketAddr,
    pub(crate) metrics: SocketAddr,
}

/// All peers, until this is stopped.
pub(crate) struct Peers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// What they did, in connections.
    pub(crate) count: Arc<AtomicU64>,
}

/// What a peer does once; it does so again and again.
type Deed = fn(Addresses, &AtomicU64, &AtomicBool);

const DEEDS: &[Deed] = &[
    |at, count, stop| hold(at.grpc, 150, &[b"", PREFACE, b"\x16\x03\x01\x02\x00\x01"], count, stop),
    |at, count, stop| hold(at.thrift, 100, &[b"", THRIFT_BEGUN, THRIFT_CLAIM], count, stop),
    |at, count, stop| hold(at.metrics, 60, &[b"", b"GET /metrics HTTP/1.1\r\nHost: "], count, stop),
    announced,
    slow_readers,
    backups,
    resets,
    |at, count, stop| flood(at.grpc, &frame(6, 0, 0, &[7; 8]), count, stop),
    |at, count, stop| flood(at.grpc, &frame(4, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]), count, stop),
    empty_batches,
    unread_thrift,
    unread_metrics,
];

impl Peers {
    pub(crate) fn start(at: Addresses) -> Peers {
        let (stop, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let start = |deed: &Deed| {
            let (stop, count, deed) = (Arc::clone(&stop), Arc::clone(&count), *deed);
            std::thread::spawn(move || {
                while !stop.load(Relaxed) {
                    deed(at, &count, &stop);
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        };
        let threads = DEEDS.iter().map(start).collect();
        Peers { stop, threads, count }
    }

    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        self.count.load(Relaxed)
    }
}

/// What a client of HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A call of Thrift that does not go on.
const THRIFT_BEGUN: &[u8] = b"\x80\x01\0\x01\0\0\0\x17standard:bm_get_co";
/// A call with a string of 7 MiB, of which nothing comes.
const THRIFT_CLAIM: &[u8] = b"\x80\x01\0\x01\0\0\0\x01x\0\0\0\x01\x0b\0\x02\0\x70\0\0";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head[..], &stream.to_be_bytes(), payload].concat()
}

/// The HEADERS frame of a call, its fields as literals without indexing (RFC 7541, 6.2.2).
fn call(stream: u32, method: &str) -> Vec<u8> {
    let path = format!("/p4.v1.P4Runtime/{method}");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "x"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let field = |(name, value): &(&str, &str)| {
        let lengths = [name.len() as u8, value.len() as u8];
        [&[0, lengths[0]], name.as_bytes(), &lengths[1..], value.as_bytes()].concat()
    };
    frame(1, 4, stream, &fields.iter().flat_map(field).collect::<Vec<u8>>())
}

/// The DATA frames of a message; the last one ends the request.
fn data(stream: u32, message: &impl Message, is_last: bool) -> Vec<u8> {
    let encoded = message.encode_to_vec();
    let bytes = [&[0][..], &(encoded.len() as u32).to_be_bytes(), &encoded].concat();
    let count = bytes.len().div_ceil(16_000);
    let parts = bytes.chunks(16_000).enumerate();
    parts.flat_map(|(at, part)| frame(0, u8::from(is_last && at + 1 == count), stream, part)).collect()
}

fn connect(to: SocketAddr, first: &[u8], count: &AtomicU64) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    stream.write_all(first).ok()?;
    count.fetch_add(1, Relaxed);
    Some(stream)
}

/// Rests, unless all is over.
fn rest(time: Duration, stop: &AtomicBool) {
    let mut left = time;
    while !left.is_zero() && !stop.load(Relaxed) {
        let part = left.min(Duration::from_millis(20));
        std::thread::sleep(part);
        left -= part;
    }
}

/// Holds connections that begin so, and go no further.
fn hold(to: SocketAddr, places: usize, first: &[&[u8]], count: &AtomicU64, stop: &AtomicBool) {
    let held: Vec<_> = (0..places).map(|at| connect(to, first[at % first.len()], count)).collect();
    rest(Duration::from_secs(2), stop);
    drop(held);
}

/// Messages of 32 MiB that are announced on all the streams of four connections.
fn announced(at: Addresses, count: &AtomicU64, stop: &AtomicBool) {
    let connections = ["StreamChannel", "Write", "SetForwardingPipelineConfig", "Read"];
    let held = connections.iter().filter_map(|method| {
        let mut stream = connect(at.grpc, PREFACE, count)?;
        for number in 0..120 {
            let begun = [0, 2, 0, 0, 0, 0x0a, 0x0a];
            let id = 2 * number + 1;
            stream.write_all(&[call(id, method), frame(0, 0, id, &begun)].concat()).ok()?;
        }
        Some(stream)
    });
    let held: Vec<_> = held.collect();
    rest(Duration::from_secs(2), stop);
    drop(held);
}

/// Reads of everything whose answers nobody takes.
fn slow_readers(at: Addresses, count: &AtomicU64, stop: &AtomicBool) {
    let entity = Entity { entity: Some(entity::Entity::TableEntry(TableEntry::default())) };
    let request = ReadRequest { device_id: DEVICE, entities: vec![entity], ..ReadRequest::default() };
    let held = (0..8).filter_map(|_| {
        let mut stream = connect(at.grpc, PREFACE, count)?;
        for number in 0..8 {
            let id = 2 * number + 1;
            stream.write_all(&[call(id, "Read"), data(id, &request, true)].concat()).ok()?;
        }
        Some(stream)
    });
    let held: Vec<_> = held.collect();
    rest(Duration::from_secs(1), stop);
    drop(held);
}

/// Backups on as many streams as there may be, which send packets that they may not send, and hear nothing.
fn backups(at: Addresses, count: &AtomicU64, stop: &AtomicBool) {
    let update = |update| StreamMessageRequest { update: Some(update) };
    let packet = PacketOut { payload: vec![0; 1400].into(), metadata: vec![] };
    let packet = update(stream_message_request::Update::Packet(packet));
    let mut held: Vec<_> = (0..4)
        .filter_map(|_| {
            let mut stream = connect(at.grpc, PREFACE, count)?;
            for number in 0..40 {
                let id = 2 * number + 1;
                let arbitration = MasterArbitrationUpdate { device_id: DEVICE, ..Default::default() };
                let says = update(stream_message_request::Update::Arbitration(arbitration));
                stream.write_all(&[call(id, "StreamChannel"), data(id, &says, false)].concat()).ok()?;
            }
            Some(stream)
        })
        .collect();
    for _ in 0..100 {
        for stream in &mut held {
            let _ = stream.write_all(&data(1, &packet, false));
        }
        rest(Duration::from_millis(20), stop);
    }
}

/// Calls that are given up at once.
fn resets(at: Addresses, count: &AtomicU64, stop: &AtomicBool) {
    let Some(mut stream) = connect(at.grpc, PREFACE, count) else { return };
    for number in 0..50_000 {
        let id = 2 * number + 1;
        if stream.write_all(&[call(id, "Read"), frame(3, 0, id, &[0, 0, 0, 8])].concat()).is_err() {
            return;
        }
        if number % 50 == 0 {
            rest(Duration::from_millis(1), stop);
        }
        if stop.load(Relaxed) {
            return;
        }
    }
}

/// The same frame again and again.
fn flood(to: SocketAddr, frame: &[u8], count: &AtomicU64, stop: &AtomicBool) {
    let Some(mut stream) = connect(to, PREFACE, count) else { return };
    let burst = frame.repeat(50);
    while !stop.load(Relaxed) && stream.write_all(&burst).is_ok() {
        rest(Duration::from_millis(1), stop);
    }
}

/// Batches of updates without anything in them, of 2 MiB: a gigabyte of structures.
fn empty_batches(at: Addresses, count: &AtomicU64, stop: &AtomicBool) {
    let request =
        WriteRequest { device_id: DEVICE, updates: vec![Update::default(); 1 << 20], ..Default::default() };
    let bytes = data(1, &request, true);
    drop(request);
    for _ in 0..10 {
        let Some(mut stream) = connect(at.grpc, PREFACE, count) else { return };
        let _ = stream.write_all(&call(1, "Write")).and_then(|()| stream.write_all(&bytes));
        rest(Duration::from_millis(200), stop);
    }
}

/// Calls of Thrift whose answers nobody takes, and bytes that are no calls.
fn unread_thrift(at: Addresses, count: &AtomicU64, stop: &AtomicBool) {
    let name = b"standard:bm_get_config";
    let call = [&[0x80, 1, 0, 1, 0, 0, 0, name.len() as u8], &name[..], &[0, 0, 0, 1, 0]].concat();
    let calls = call.repeat(500);
    let held: Vec<_> = (0..20)
        .map(|number| connect(at.thrift, if number % 2 == 0 { &calls } else { &[0xff; 64] }, count))
        .collect();
    rest(Duration::from_millis(500), stop);
    drop(held);
}

/// Requests for metrics whose answers nobody takes, and some that are taken.
fn unread_metrics(at: Addresses, count: &AtomicU64, stop: &AtomicBool) {
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let held: Vec<_> = (0..20).map(|_| connect(at.metrics, request, count)).collect();
    rest(Duration::from_millis(500), stop);
    for mut stream in held.into_iter().flatten().take(2) {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let _ = stream.read(&mut [0; 4096]);
    }
}
