//! A switch over the null driver on one processor, with its P4Runtime server and clients on another.

#![allow(dead_code, reason = "each benchmark uses its part")]

pub(crate) mod peers;
pub(crate) mod running;

use millrace_bench::cpus;
use millrace_chassis::{Making, Pipeline};
use millrace_dataplane::{Control, EngineKind, PortId, Summary, Switch, SwitchConfig, Worker};
use millrace_describe::image::Image;
use millrace_drivers::null::NullPort;
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, PacketPool};
use millrace_p4runtime::{DeviceConfig, Listen, Server};
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::*;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

pub(crate) const DEVICE: u64 = 1;
/// Ports of the programs.
const PORTS: std::ops::Range<PortId> = 0..16;

pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs")
}

/// What this process has of the machine's memory, in bytes: workers, servers and clients.
pub(crate) fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("the size of the process");
    pages.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok()).expect("a number") * 4096
}

/// A program: its text, its entries, and its test with the frames. Stations that send are known.
pub(crate) fn files(name: &str) -> (String, String, String) {
    let read = |extension: &str| {
        let path = programs().join(format!("{name}.{extension}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    // What is above a subscriber's rate would be dropped.
    let mut entries: Vec<String> =
        read("entries").lines().filter(|line| !line.starts_with("meter_")).map(str::to_owned).collect();
    let packets = read("stf");
    if name == "l2_switch" {
        entries.extend(learned(&packets, &entries));
    }
    (read("p4"), entries.join("\n") + "\n", packets)
}

/// Entries for the stations that send, as a controller makes them: without it the switch tells it of each frame.
fn learned(packets: &str, known: &[String]) -> BTreeSet<String> {
    let entry = |(_, frame): (_, Vec<u8>)| {
        let station: Vec<String> = frame.get(6..12)?.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("table_add smac NoAction {} =>", station.join(":")))
    };
    frames(packets).into_iter().filter_map(entry).filter(|entry| !known.contains(entry)).collect()
}

pub(crate) fn compile(source: &str) -> Pipeline {
    Pipeline::new(image(source), source.as_bytes().to_vec()).unwrap()
}

/// What `millrace compile` writes of a program.
pub(crate) fn image(source: &str) -> Image {
    use millrace_compile::{Options, Source, Standard, check};
    let checked = check(Source::Text("program.p4", source), Standard::P4_16, &Options::default());
    assert!(!checked.has_errors(), "{:?}", checked.findings);
    let program = checked.lower().unwrap();
    Image::new(program, millrace_describe::p4info::describe(&checked.typed))
}

pub(crate) fn switch(pipeline: &Pipeline, entries: &str) -> Switch {
    let config = SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(&pipeline.program), config).unwrap();
    millrace_control::entries::load(&mut switch, entries).unwrap();
    switch
}

/// What one frame becomes: by which port, and as which bytes.
type Left = (PortId, Vec<u8>);

/// A frame, and what the old and the new program make of it.
type Both = (Vec<u8>, [Left; 2]);

/// The frames of a port that both programs forward, one copy each, and otherwise: what they become.
pub(crate) struct Traffic {
    port: PortId,
    frames: Vec<Vec<u8>>,
    expected: BTreeMap<PortId, Vec<[Vec<u8>; 2]>>,
}

impl Traffic {
    /// Of frames with their ports: those of the port that has most.
    pub(crate) fn new(frames: &[(PortId, Vec<u8>)], mut old: Switch, mut new: Switch) -> Traffic {
        let mut by_port: BTreeMap<PortId, Vec<Both>> = BTreeMap::new();
        for (port, frame) in frames {
            let pairs = [0, 1].map(|_| (one(&mut old, *port, frame), one(&mut new, *port, frame)));
            // What a frame becomes must not depend on those before it.
            if pairs[0] != pairs[1] {
                continue;
            }
            if let (Some(before), Some(after)) = &pairs[0]
                && before.0 == after.0
                && before.1 != after.1
            {
                let both = [before.clone(), after.clone()];
                by_port.entry(*port).or_default().push((frame.clone(), both));
            }
        }
        let most = by_port.into_iter().max_by_key(|(_, frames)| frames.len());
        let (port, found) = most.expect("a frame that both programs forward");
        let mut traffic = Traffic { port, frames: Vec::new(), expected: BTreeMap::new() };
        for (frame, [before, after]) in found {
            traffic.frames.push(frame);
            traffic.expected.entry(before.0).or_default().push([before.1, after.1]);
        }
        traffic
    }
}

/// What a frame becomes, if it is one.
fn one(switch: &mut Switch, port: PortId, frame: &[u8]) -> Option<Left> {
    let outcome = switch.inject(port, frame, 0);
    let mut left = outcome.outputs();
    let only = left.next().map(|(port, bytes)| (port, bytes.to_vec()))?;
    left.next().is_none().then_some(only)
}

/// The frames of a test: `packet PORT HEX...`.
pub(crate) fn frames(stf: &str) -> Vec<(PortId, Vec<u8>)> {
    let test = millrace_stf::parse(stf).expect("a test");
    test.frames().map(|(port, frame)| (port, frame.to_vec())).collect()
}

/// What was seen of all ports together.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) received: AtomicU64,
    /// By the program that it is from.
    pub(crate) sent: [AtomicU64; 2],
    /// What neither of them makes of the frame.
    pub(crate) wrong: AtomicU64,
    /// When a program forwarded after the other one, and the longest time between two bursts until then, in ns.
    pub(crate) changed: Mutex<Vec<Instant>>,
    /// The longest time between two bursts since this was taken, in ns.
    pub(crate) longest: AtomicU64,
}

/// A port of the null driver whose every frame is compared with what it may be.
struct Checked {
    inner: NullPort,
    expected: Vec<[Vec<u8>; 2]>,
    next: usize,
    /// The program of the last frame.
    program: usize,
    seen: Arc<Seen>,
    last: Option<Instant>,
}

impl QueuePair for Checked {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let result = self.inner.receive(batch, pool);
        self.seen.received.fetch_add(batch.len() as u64, Relaxed);
        result
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.seen.longest.fetch_max((now - last).as_nanos() as u64, Relaxed);
        }
        let mut sent = [0, 0];
        for packet in batch.packets() {
            let Some(both) = self.expected.get(self.next) else {
                self.seen.wrong.fetch_add(1, Relaxed);
                continue;
            };
            self.next = if self.next + 1 == self.expected.len() { 0 } else { self.next + 1 };
            if packet.data() != both[self.program] {
                let other = 1 - self.program;
                if packet.data() != both[other] {
                    self.seen.wrong.fetch_add(1, Relaxed);
                    continue;
                }
                self.program = other;
                self.seen.changed.lock().unwrap().push(now);
            }
            sent[self.program] += 1;
        }
        for (total, sent) in self.seen.sent.iter().zip(sent) {
            total.fetch_add(sent, Relaxed);
        }
        self.inner.transmit(batch, pool)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.inner.flush()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        self.inner.statistics()
    }
}

/// A switch that runs, with its server.
pub(crate) struct Lab {
    pub(crate) control: Control,
    pub(crate) seen: Arc<Seen>,
    pub(crate) server: Server,
    /// How many ports packets leave by.
    pub(crate) outputs: usize,
    worker: JoinHandle<Summary>,
    /// The worker's number in the system.
    thread: i32,
    _pinned: cpus::Pinned,
}

impl Lab {
    pub(crate) fn start(pipeline: Pipeline, switch: Switch, traffic: &Traffic) -> Lab {
        let (here, there) = cpus::two();
        // Threads are where the one is that starts them.
        let pinned = cpus::Pinned::to(there);
        let seen = Arc::new(Seen::default());
        let trace = capture(&traffic.frames);
        let mut ports: Vec<(PortId, Box<dyn QueuePair>)> = Vec::new();
        for port in PORTS {
            let args = if port == traffic.port { trace.to_str().unwrap() } else { "-" };
            let checked = Checked {
                inner: NullPort::open(args).unwrap(),
                expected: traffic.expected.get(&port).cloned().unwrap_or_default(),
                next: 0,
                program: 0,
                seen: Arc::clone(&seen),
                last: None,
            };
            ports.push((port, Box::new(checked)));
        }
        std::fs::remove_file(&trace).unwrap();
        let worker = Worker::new(switch, ports).unwrap();
        let control = worker.control();
        let device = DeviceConfig {
            device_id: DEVICE,
            making: Making { engine: EngineKind::Fastest, ..Making::default() },
            ports: PORTS.collect(),
            links: Default::default(),
            cpu_port: None,
            pipeline: Some(pipeline),
        };
        let listen = Listen { address: ([127, 0, 0, 1], 0).into(), tls: None, allow_plaintext: false };
        let server = Server::start(&listen, device, control.clone()).unwrap();
        let (started, thread) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            let _pinned = cpus::Pinned::to(here);
            // Nobody waits for it when the lab was not made.
            let _ = started.send(rustix::thread::gettid().as_raw_nonzero().get());
            worker.run()
        });
        let thread = thread.recv().unwrap();
        Lab { thread, control, seen, server, outputs: traffic.expected.len(), worker, _pinned: pinned }
    }

    pub(crate) fn received(&self) -> u64 {
        self.seen.received.load(Relaxed)
    }

    /// What the worker has had of its processor.
    pub(crate) fn worker_cpu(&self) -> Duration {
        let path = format!("/proc/self/task/{}/schedstat", self.thread);
        let text = std::fs::read_to_string(path).unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    /// Ends it; gives how many frames were lost or wrong.
    pub(crate) fn stop(self) -> u64 {
        drop(self.server);
        self.control.stop();
        self.worker.join().unwrap();
        let sent: u64 = self.seen.sent.iter().map(|sent| sent.load(Relaxed)).sum();
        let (received, wrong) = (self.seen.received.load(Relaxed), self.seen.wrong.load(Relaxed));
        assert!(sent <= received, "{sent} frames of {received} left");
        (received - sent).max(wrong)
    }
}

/// The frames over and over, some thousands of them, as a capture file.
pub(crate) fn capture(frames: &[Vec<u8>]) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let path = std::env::temp_dir().join(format!("millrace-lab-{}-{number}.pcap", std::process::id()));
    let mut file =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    let passes = 1024 / frames.len() + 1;
    for frame in (0..passes).flat_map(|_| frames) {
        file.extend_from_slice(&[0; 8]);
        let length = (frame.len() as u32).to_le_bytes();
        file.extend_from_slice(&length);
        file.extend_from_slice(&length);
        file.extend_from_slice(frame);
    }
    std::fs::write(&path, file).unwrap();
    path
}

/// An election id above all before.
pub(crate) fn next_election() -> Uint128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uint128 { high: 0, low: NEXT.fetch_add(1, Relaxed) }
}

/// A client that is the primary.
pub(crate) struct Client {
    pub(crate) calls: P4RuntimeClient<Channel>,
    pub(crate) election_id: Option<Uint128>,
    pub(crate) say: mpsc::Sender<StreamMessageRequest>,
    pub(crate) hear: tonic::Streaming<StreamMessageResponse>,
}

impl Client {
    /// A new one, with an election id above all before.
    pub(crate) async fn primary(lab: &Lab) -> Client {
        let calls = P4RuntimeClient::connect(format!("http://{}", lab.server.address())).await.unwrap();
        let mut calls = calls.max_decoding_message_size(64 << 20);
        let (say, said) = mpsc::channel(64);
        let hear = calls.stream_channel(ReceiverStream::new(said)).await.unwrap().into_inner();
        let election_id = Some(next_election());
        let mut client = Client { calls, election_id, say, hear };
        client.arbitrate().await;
        client.hear.message().await.unwrap();
        client
    }

    /// Says who it is.
    pub(crate) async fn arbitrate(&self) {
        let arbitration = MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: self.election_id,
            ..MasterArbitrationUpdate::default()
        };
        let update = Some(stream_message_request::Update::Arbitration(arbitration));
        self.say.send(StreamMessageRequest { update }).await.unwrap();
    }

    pub(crate) fn request(
        &self,
        action: set_forwarding_pipeline_config_request::Action,
        device_config: Option<&str>,
    ) -> SetForwardingPipelineConfigRequest {
        SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: self.election_id,
            action: action as i32,
            config: device_config.map(|config| ForwardingPipelineConfig {
                p4_device_config: config.as_bytes().to_vec().into(),
                ..ForwardingPipelineConfig::default()
            }),
            ..SetForwardingPipelineConfigRequest::default()
        }
    }
}
