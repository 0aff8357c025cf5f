//! Ports with classes of service: a burst that compiled code takes as a whole leaves in the same order as packets that the
//! interpreter has wait in queues one by one.

use millrace_dataplane::{EngineKind, PortId, QueueConfig, Replica, Session, Switch, SwitchConfig, Worker};
use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use millrace_frames::{Burst, HEADROOM, Place, TAILROOM};
use millrace_pipeline::{Program, text, verify};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

const PROGRAM: &str = include_str!("programs/classes.mir");

/// With clones in egress packets go one by one in every engine; without them compiled code takes whole bursts.
fn program(clones: bool) -> Arc<Program> {
    let source = if clones { PROGRAM.to_owned() } else { PROGRAM.replace("copy = true", "cut = 32w3") };
    let program = text::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap();
    Arc::new(program)
}

fn switch(engine: EngineKind, depth: u32, clones: bool) -> Switch {
    let queues = QueueConfig { priorities: 4, depth, ..QueueConfig::default() };
    let config = SwitchConfig { engine, queues, ..SwitchConfig::default() };
    let mut switch = Switch::new(program(clones), config).unwrap();
    let replicas = || [2, 3].map(|port| Replica { port, rid: 0 }).to_vec();
    let replication = switch.replication_mut();
    replication.create_group(1).unwrap();
    replication.set_copies(1, replicas()).unwrap();
    replication.set_session(1, Session { copies: replicas(), ..Session::default() }).unwrap();
    switch
}

/// What leaves each port, in order, when these packets come as one burst.
fn burst(switch: &mut Switch, packets: &[[u8; 4]]) -> BTreeMap<PortId, Vec<Vec<u8>>> {
    let stride = HEADROOM + 64;
    let mut memory = vec![0; stride * packets.len() + TAILROOM];
    let mut places = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let at = number * stride + HEADROOM;
        memory[at..at + 4].copy_from_slice(packet);
        places.push(Place { at: at as u32, len: 4 });
    }
    let mut sent: BTreeMap<PortId, Vec<Vec<u8>>> = BTreeMap::new();
    let mut burst = Burst::new(&mut memory, &places, HEADROOM).unwrap();
    switch.switch_burst(9, &mut burst, |port, output| {
        sent.entry(port).or_default().push(output.bytes.to_vec());
    });
    sent
}

fn tags(frames: &[Vec<u8>]) -> Vec<u8> {
    frames.iter().map(|frame| frame[3]).collect()
}

#[test]
fn the_highest_class_of_a_burst_leaves_first() {
    let packets = [[1, 0, 0, 10], [1, 0, 3, 11], [2, 0, 1, 12], [1, 1, 3, 13], [1, 0, 2, 14], [1, 0, 3, 15]];
    for &engine in EngineKind::HERE {
        let mut switch = switch(engine, 1024, false);
        let sent = burst(&mut switch, &packets);
        assert_eq!(tags(&sent[&1]), [11, 15, 14, 10], "{engine:?}");
        assert_eq!(tags(&sent[&2]), [12], "{engine:?}");
        // A class that ports do not have is the lowest.
        let sent = burst(&mut switch, &[[1, 0, 9, 1], [1, 0, 0, 2], [1, 0, 1, 3], [1, 0, 255, 4]]);
        assert_eq!(tags(&sent[&1]), [3, 1, 2, 4], "{engine:?}");
        assert_eq!(switch.counters().port(1).tx_packets, 8, "{engine:?}");
    }
}

/// Bursts of 64 packets of all kinds, and of simple ones alone, in queues that hold all of them or too few.
#[test]
fn bursts_of_all_kinds_leave_as_packets_one_by_one_do() {
    let mut seed = 1u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(seed) * u64::from(below)) >> 32) as u8
    };
    for (depth, clones) in [(1024, false), (1024, true), (8, false)] {
        let mut switches =
            [EngineKind::Fastest, EngineKind::Interp].map(|engine| switch(engine, depth, clones));
        for round in 0..200 {
            let kinds = if round % 2 == 0 { 7 } else { 2 };
            let packets: Vec<[u8; 4]> =
                (0..64).map(|tag| [random(4), random(kinds), random(5), tag]).collect();
            let [compiled, interpreted] = switches.each_mut().map(|switch| burst(switch, &packets));
            assert_eq!(compiled, interpreted, "depth {depth}, round {round}: {packets:?}");
        }
        let [compiled, interpreted] = switches.each_ref().map(|switch| {
            let counters = switch.counters();
            (0..4).map(|port| counters.port(port).tx_packets).collect::<Vec<_>>()
        });
        assert_eq!(compiled, interpreted);
    }
}

/// Gives its frames at once, and takes what leaves.
struct Wire {
    frames: std::vec::IntoIter<Vec<u8>>,
    last: Vec<u8>,
    taken: Sender<Vec<u8>>,
}

impl FarEnd for Wire {
    fn next(&mut self) -> Next<'_> {
        let Some(frame) = self.frames.next() else { return Next::End };
        self.last = frame;
        Next::Frame(&self.last)
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.taken.send(frame.to_vec()).is_ok()
    }
}

/// Packets that overtake others of their burst leave too, with their own bytes, and all packets go back to the pool.
#[test]
fn a_worker_sends_the_highest_class_of_a_burst_first() {
    for &engine in EngineKind::HERE {
        let (taken, sent) = channel();
        let port = |frames: Vec<Vec<u8>>| {
            let wire = Wire { frames: frames.into_iter(), last: Vec::new(), taken: taken.clone() };
            Box::new(MemoryPort::new(wire)) as Box<dyn QueuePair>
        };
        // Many bursts of 64: 16 of each class, tagged by their number in the burst.
        let burst = || (0..64u8).map(|tag| vec![1, 0, tag % 4, tag]);
        let frames: Vec<Vec<u8>> = (0..50).flat_map(|_| burst()).collect();
        let ports = vec![(9, port(frames)), (1, port(Vec::new()))];
        let summary = Worker::new(switch(engine, 1024, false), ports).unwrap().run();
        assert_eq!(summary.switch.counters().all_drops().count(), 0, "{engine:?}");
        drop(taken);
        let tags: Vec<u8> = sent.iter().map(|frame| frame[3]).collect();
        let in_order: Vec<u8> =
            [3, 2, 1, 0].into_iter().flat_map(|class| (0..16).map(move |at| 4 * at + class)).collect();
        for burst in tags.chunks(64) {
            assert_eq!(burst, in_order, "{engine:?}");
        }
        assert_eq!(tags.len(), 50 * 64);
    }
}
