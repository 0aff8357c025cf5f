//! The scheduler of hardware next to those of the traffic manager: the same frame at each choice, whatever comes in between.

use millrace_netlist::blocks::{Discipline, SETTLES, scheduler};
use millrace_netlist::{Design, SignalId, Simulator};
use millrace_pipeline::arbitrary::Rng;
use millrace_traffic::{Arrival, Egress, Handle, Kind, Next, Node, Plan, Port, Queue, Share};
use std::collections::VecDeque;
use std::sync::Arc;

const QUEUES: usize = 4;
const QUANTA: [u32; QUEUES] = [1542, 3084, 2000, 6168];
const OVERHEAD: u32 = 24;

/// Which classes a queue takes: the last one those above it, too.
fn classes(queue: usize) -> u8 {
    if queue == QUEUES - 1 { u8::MAX << queue } else { 1 << queue }
}

/// The software's port; the queue of the highest class is the first.
fn software(discipline: Discipline) -> Egress<u32> {
    let queue = |class: usize| Node {
        handle: Handle::new(1, class as u16 + 1),
        kind: Kind::Queue(Box::new(Queue { classes: classes(class), packets: 1 << 16, ..Queue::default() })),
    };
    let queues: Vec<Node> = (0..QUEUES).rev().map(queue).collect();
    let kind = match discipline {
        Discipline::Priority => Kind::Priority(queues),
        Discipline::RoundRobin => Kind::RoundRobin(queues),
        Discipline::Deficit => {
            let share = |(node, class): (Node, usize)| Share { share: QUANTA[class], node };
            Kind::Deficit(queues.into_iter().zip((0..QUEUES).rev()).map(share).collect())
        }
    };
    let port = Port { bytes: 1 << 30, packets: 1 << 20, ..Port::default() };
    let root = Node { handle: Handle::new(1, 0), kind };
    Egress::new(Arc::new(Plan::new(port, root).unwrap()), 0)
}

struct Hardware {
    simulator: Simulator,
    lengths: Vec<SignalId>,
    enqueue: SignalId,
    class: SignalId,
    take: SignalId,
    outputs: [SignalId; 2],
    counts: Vec<SignalId>,
    queues: Vec<VecDeque<(u32, u32)>>,
    is_deficit: bool,
    /// Cycles for which there was no choice though frames waited.
    idle: u32,
}

impl Hardware {
    fn new(discipline: Discipline) -> Hardware {
        let mut design = Design::new();
        scheduler(&mut design, QUEUES as u32, 16, 12);
        let mut simulator = Simulator::new(&design).unwrap();
        let input = |name: &str| simulator.input(name).unwrap();
        let (mode, quanta): (SignalId, Vec<SignalId>) =
            (input("mode"), (0..QUEUES).map(|at| input(&format!("quantum{at}"))).collect());
        let lengths = (0..QUEUES).map(|at| input(&format!("length{at}"))).collect();
        let (enqueue, class, take) = (input("enqueue"), input("class"), input("take"));
        let output = |name: &str| simulator.output(name).unwrap();
        let outputs = [output("valid"), output("choice")];
        let counts = (0..QUEUES).map(|at| output(&format!("count{at}"))).collect();
        simulator.set_u64(mode, discipline as u64);
        for (signal, quantum) in quanta.into_iter().zip(QUANTA) {
            simulator.set_u64(signal, quantum.into());
        }
        let queues = vec![VecDeque::new(); QUEUES];
        let is_deficit = discipline == Discipline::Deficit;
        Hardware { simulator, lengths, enqueue, class, take, outputs, counts, queues, is_deficit, idle: 0 }
    }

    /// A cycle: what leaves, then what comes.
    fn step(&mut self, take: bool, comes: Option<(usize, u32, u32)>) -> Option<(usize, u32, u32)> {
        for (queue, signal) in self.queues.iter().zip(&self.lengths) {
            self.simulator
                .set_u64(*signal, queue.front().map_or(0, |(_, length)| (length + OVERHEAD).into()));
        }
        self.simulator.set_u64(self.take, u64::from(take));
        self.simulator.set_u64(self.enqueue, u64::from(comes.is_some()));
        self.simulator.set_u64(self.class, comes.map_or(0, |(class, ..)| class as u64));
        for (queue, count) in self.queues.iter().zip(&self.counts) {
            assert_eq!(self.simulator.get_u64(*count), queue.len() as u64);
        }
        let valid = self.simulator.get_u64(self.outputs[0]) != 0;
        let waits = self.queues.iter().any(|queue| !queue.is_empty());
        // A choice by deficits takes some cycles after each frame, and after the first one of a queue.
        self.idle = if waits && !valid { self.idle + 1 } else { 0 };
        let most = if self.is_deficit { (QUEUES as u32 + 1) * SETTLES } else { 0 };
        assert!(self.idle <= most && (waits || !valid), "no choice for {} cycles", self.idle);
        let choice = self.simulator.get_u64(self.outputs[1]) as usize;
        self.simulator.step();
        let left = (take && valid).then(|| {
            let (packet, length) = self.queues[choice].pop_front().expect("a queue that has a frame");
            (choice, packet, length)
        });
        if let Some((class, packet, length)) = comes {
            self.queues[class].push_back((packet, length));
        }
        left
    }
}

/// Lengths of a mix of frames.
fn length(rng: &mut Rng) -> u32 {
    match rng.below(3) {
        0 => 60,
        1 => 60 + rng.below(1458) as u32,
        _ => 1518,
    }
}

#[test]
fn frames_leave_in_the_order_of_the_software() {
    for discipline in [Discipline::Priority, Discipline::RoundRobin, Discipline::Deficit] {
        for (seed, (comes, goes)) in [(4, 4), (5, 4), (3, 6), (8, 7)].into_iter().enumerate() {
            let (mut software, mut hardware) = (software(discipline), Hardware::new(discipline));
            let mut rng = Rng::new(seed as u64);
            let (mut offered, mut left) = (0, 0);
            while left < 10_000 {
                let waiting: usize = hardware.queues.iter().map(VecDeque::len).sum();
                let frame = (offered < 10_000 && waiting < 2000 && rng.below(8) < comes).then(|| {
                    offered += 1;
                    (rng.below(QUEUES), offered, length(&mut rng))
                });
                let found = hardware.step(rng.below(8) < goes, frame);
                if let Some((class, packet, length)) = found {
                    let Next::Leaves(wanted) = software.next(0) else { panic!("a frame waits") };
                    let all = (usize::from(wanted.class), wanted.packet, wanted.len);
                    assert_eq!((class, packet, length), all, "{discipline:?}, frame {left}");
                    left += 1;
                }
                if let Some((class, packet, len)) = frame {
                    software
                        .offer(Arrival { class: class as u8, len, ..Arrival::default() }, 0, packet)
                        .unwrap();
                }
            }
            println!("{discipline:?}, seed {seed}: {left} frames in the order of the software");
        }
    }
}

/// Queues that always have frames get shares as their quanta are, within one percent.
#[test]
fn shares_are_as_quanta() {
    let mut hardware = Hardware::new(Discipline::Deficit);
    let mut rng = Rng::new(1);
    let mut sent = [0u64; QUEUES];
    let mut left = 0;
    while left < 30_000 {
        let shortest = (0..QUEUES).min_by_key(|at| hardware.queues[*at].len()).unwrap();
        let is_full = hardware.queues[shortest].len() > 100;
        let comes = (!is_full).then(|| (shortest, 0, length(&mut rng)));
        if let Some((class, _, length)) = hardware.step(is_full || left > 0, comes) {
            sent[class] += u64::from(length + OVERHEAD);
            left += 1;
        }
    }
    let (all, quanta) = (sent.iter().sum::<u64>() as f64, QUANTA.iter().sum::<u32>() as f64);
    for (sent, quantum) in sent.iter().zip(QUANTA) {
        let (share, wanted) = (*sent as f64 / all, f64::from(quantum) / quanta);
        println!("a quantum of {quantum}: {share:.4} of the link, {wanted:.4} wanted");
        assert!((share / wanted - 1.0).abs() < 0.01, "{share} of {wanted}");
    }
}
