//! The own end system of a switch: another end system asks it, frame by frame, and hears what it answers.

use millrace_afdx::{
    Discard, Network as Side, Partition, PortKind, ReceivePort, Receiver, TransmitPort, Transmitter, UdpEnd,
    VlId,
};
use millrace_drivers::{QueuePair, wait_readable};
use millrace_end_system::{EndSystemPort, Plan, PortArguments, Receiving, Requests};
use millrace_frames::{Batch, PacketPool};
use millrace_network::Network;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/snmp/managed.toml");
const OWN: UdpEnd = UdpEnd { ip: Ipv4Addr::new(10, 1, 9, 0), port: 161 };

fn network() -> Network {
    Network::parse(FILE, &std::fs::read_to_string(FILE).unwrap()).unwrap()
}

fn arguments(words: &str) -> Result<PortArguments, String> {
    format!("managed.toml,{words}").parse()
}

/// An end system that asks by a virtual link, from UDP port 5000, and hears by VL 2.
struct Asker {
    transmitter: Transmitter,
    receiver: Receiver,
    port: (usize, Option<usize>),
    now_ns: u64,
}

impl Asker {
    fn new(name: &str, vl: u16, own: Ipv4Addr) -> Asker {
        let mut es = Plan::of(&network(), name, &Receiving::default()).unwrap().es;
        let partition = Partition::default();
        let sends = TransmitPort {
            kind: PortKind::Sap,
            vl: VlId(vl),
            sub_vl: 0,
            partition,
            source_port: 5000,
            destination: None,
        };
        let sends = es.transmitter.add_port(sends).unwrap();
        let hears = ReceivePort {
            kind: PortKind::Sap,
            vl: VlId(2),
            ip: Some(own),
            port: 5000,
            depth: 8,
            max_message: 8192,
        };
        let hears = es.receiver.add_port(hears).ok();
        Asker { transmitter: es.transmitter, receiver: es.receiver, port: (sends, hears), now_ns: 0 }
    }

    /// The frames of a message.
    fn frames(&mut self, to: UdpEnd, message: &[u8]) -> Vec<Vec<u8>> {
        self.transmitter.send_to(self.now_ns, self.port.0, to, message).unwrap();
        let mut frames = Vec::new();
        while let Some(next_ns) = self.transmitter.next_ns() {
            self.now_ns = self.now_ns.max(next_ns);
            self.transmitter.step(self.now_ns, |out| frames.push(out.frame.to_vec()));
        }
        frames
    }
}

fn give(port: &mut EndSystemPort, frames: &[Vec<u8>]) {
    let (mut pool, mut batch) = (PacketPool::new(64), Batch::new());
    for frame in frames {
        batch.add(&mut pool).unwrap().set_frame(frame).unwrap();
    }
    assert_eq!(port.transmit(&mut batch, &mut pool).unwrap().sent, frames.len());
}

/// What leaves within a time, by frames.
fn leaves(port: &mut EndSystemPort, frames: usize, within: Duration) -> Vec<Vec<u8>> {
    let (mut pool, mut batch, begun) = (PacketPool::new(64), Batch::new(), Instant::now());
    let mut left = Vec::new();
    while left.len() < frames && begun.elapsed() < within {
        port.receive(&mut batch, &mut pool).unwrap();
        left.extend(batch.packets().iter().map(|packet| packet.data().to_vec()));
        batch.recycle(&mut pool);
        if left.len() < frames {
            wait_readable(&[port.poll_fd().unwrap()], Some(Duration::from_millis(20))).unwrap();
        }
    }
    left
}

fn managed() -> (EndSystemPort, Requests) {
    let (port, requests) = EndSystemPort::new(&network(), &arguments("M1,management=on").unwrap()).unwrap();
    (port, requests.unwrap())
}

#[test]
fn a_request_is_answered_in_the_link_that_leads_back() {
    let (mut port, requests) = managed();
    // Of 1518 bytes 1471 are left for a message.
    let service =
        requests.serve(|request, limit| Some([request, &limit.to_be_bytes()[6..]].concat())).unwrap();
    let mut asker = Asker::new("ES1", 1, Ipv4Addr::new(10, 1, 1, 0));
    for (message, frames) in [(b"hello".to_vec(), 1), (vec![7; 2000], 2)] {
        give(&mut port, &asker.frames(OWN, &message));
        let left = leaves(&mut port, frames, Duration::from_secs(20));
        assert_eq!(left.len(), frames);
        for frame in &left {
            asker.receiver.receive(asker.now_ns, Side::A, frame);
        }
        let answer = asker.receiver.take(asker.port.1.unwrap()).unwrap();
        assert_eq!((answer.source, answer.data), (OWN, [&message[..], &1471u16.to_be_bytes()].concat()));
    }
    drop(service);
}

#[test]
fn who_cannot_be_answered_hears_nothing() {
    let (mut port, requests) = managed();
    let service = requests.serve(|request, _| (request != b"quiet").then(|| request.to_vec())).unwrap();
    // No link leads back to ES2.
    let mut other = Asker::new("ES2", 5, Ipv4Addr::new(10, 1, 2, 0));
    give(&mut port, &other.frames(OWN, b"hello"));
    let mut asker = Asker::new("ES1", 1, Ipv4Addr::new(10, 1, 1, 0));
    give(&mut port, &asker.frames(OWN, b"quiet"));
    give(&mut port, &asker.frames(UdpEnd { port: 162, ..OWN }, b"another port"));
    give(&mut port, &asker.frames(UdpEnd { ip: Ipv4Addr::new(10, 1, 8, 0), ..OWN }, b"another address"));
    assert!(leaves(&mut port, 1, Duration::from_millis(300)).is_empty());
    assert_eq!(port.node().es.receiver.discards().of(Discard::NoPort), 2);
    drop(service);
}

/// Nobody answers: requests wait up to a limit, and the rest is dropped.
#[test]
fn requests_that_nobody_answers_are_bounded() {
    let (mut port, requests) = managed();
    let mut asker = Asker::new("ES1", 1, Ipv4Addr::new(10, 1, 1, 0));
    for _ in 0..200 {
        give(&mut port, &asker.frames(OWN, b"hello"));
    }
    drop(requests);
    give(&mut port, &asker.frames(OWN, b"hello"));
    assert!(leaves(&mut port, 1, Duration::from_millis(50)).is_empty());
}

#[test]
fn what_cannot_be_managed_is_refused() {
    let wrong = |words: &str| match arguments(words) {
        Err(reason) => reason,
        Ok(arguments) => EndSystemPort::new(&network(), &arguments).unwrap_err().to_string(),
    };
    assert!(wrong("M1,management=on,time=virtual,seconds=1").contains("`management=on` needs `time=real`"));
    assert!(wrong("M1,management=yes").contains("`management=yes` is not one of"));
    let mut one_way = network();
    one_way.vls.retain(|vl| vl.source != "M1");
    let refused =
        EndSystemPort::new(&one_way, &arguments("M1,management=on").unwrap()).unwrap_err().to_string();
    assert!(
        refused.contains("M1 cannot answer: it needs a virtual link that it receives, and one that it sends"),
        "{refused}"
    );
}
