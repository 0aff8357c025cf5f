//! What a packet costs in a port: nanoseconds for offer and next together.
//!
//! `cargo bench -p millrace-traffic --bench schedulers` measures each discipline with 1 to 65,536 queues. Packets come in bursts of 64,
//! to queues and with lengths that a generator with a fixed seed says, and as many leave after each burst; before that two packets for
//! each queue, and a burst, have come and stay. The best of nine pieces is told, and the median, by processor time.
//!
//! Bursts that meet an idle port are measured too (`-- idle`: these alone).
//!
//! `-- levels WAITING SUBPORTS` is the traffic of `tests/traffic/rte_sched.c`: 4096 queues in three levels, so many subports with 256 pipes
//! of 16 queues together.

use millrace_traffic::{Among, Arrival, Egress, Flows, Handle, Kind, Next, Node, Plan, Port, Queue};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const BURST: usize = 64;
const PIECES: usize = 9;
/// Packets of a piece: enough that the kernel, which counts in ticks of milliseconds, is exact to a hundredth or two.
const PACKETS: usize = 1 << 23;
/// Different packets, which come again.
const SEQUENCE: usize = 1 << 16;

/// Numbers in no order, the same each time (SplitMix64); the comparison in C has the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Queue numbers and lengths.
fn sequence(queues: u32) -> Vec<Arrival> {
    let mut numbers = Numbers(1);
    let arrival = |number: u64| Arrival {
        flow: (number >> 32) as u32 % queues,
        len: 64 + (number as u32) % 1455,
        ..Arrival::default()
    };
    (0..SEQUENCE).map(|_| arrival(numbers.next())).collect()
}

fn node(minor: u16, kind: Kind) -> Node {
    Node { handle: Handle::new(1, minor), kind }
}

fn queue() -> Node {
    node(99, Kind::Queue(Box::new(Queue { packets: 1 << 16, ..Queue::default() })))
}

fn flows(minor: u16, count: u32, among: Among, each: Node) -> Node {
    node(minor, Kind::Flows(Flows { count, among, each: Box::new(each) }))
}

fn port(root: Node) -> Egress<u64> {
    let port = Port { bytes: 1 << 34, packets: 1 << 20, ..Port::default() };
    Egress::new(Arc::new(Plan::new(port, root).unwrap()), 0)
}

/// Processor time of this process, in nanoseconds.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux says how long a process ran");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

/// Nanoseconds a packet, best and median.
fn measure(egress: &mut Egress<u64>, sequence: &[Arrival], waiting: usize) -> (f64, f64) {
    let mut at = 0;
    let mut offer = |egress: &mut Egress<u64>, now: u64| {
        for arrival in &sequence[at..at + BURST] {
            egress.offer(*arrival, now, now).expect("there is room");
        }
        at = (at + BURST) % SEQUENCE;
    };
    for _ in 0..waiting.div_ceil(BURST) {
        offer(egress, 0);
    }
    let clock = Instant::now();
    let mut piece = |egress: &mut Egress<u64>| {
        let start = processor_ns();
        let mut sent = 0;
        while sent < PACKETS {
            let now = clock.elapsed().as_nanos() as u64;
            if egress.len() < waiting + BURST {
                offer(egress, now);
            }
            for _ in 0..BURST {
                let Next::Leaves(left) = egress.next(now) else { break };
                black_box(left.packet);
                sent += 1;
            }
        }
        (processor_ns() - start) as f64 / sent as f64
    };
    let mut pieces: Vec<f64> = (0..PIECES).map(|_| piece(egress)).collect();
    pieces.sort_by(f64::total_cmp);
    (pieces[0], pieces[PIECES / 2])
}

/// Nanoseconds a packet of bursts that meet an idle port, best and median: put in order at once.
fn measure_idle(egress: &mut Egress<u64>, sequence: &[Arrival]) -> (f64, f64) {
    let mut piece = || {
        let start = processor_ns();
        for at in (0..PACKETS).step_by(BURST).map(|at| at % SEQUENCE) {
            let burst = sequence[at..at + BURST].iter().copied();
            black_box(egress.arrange(burst).expect("it is idle"));
        }
        (processor_ns() - start) as f64 / PACKETS as f64
    };
    let mut pieces: Vec<f64> = (0..PIECES).map(|_| piece()).collect();
    pieces.sort_by(f64::total_cmp);
    (pieces[0], pieces[PIECES / 2])
}

/// The tree of `rte_sched`, with a token bucket for each subport and each pipe, or without.
fn levels(subports: u32, shaped: bool) -> Node {
    let shaped = |minor, node_below: Node| match shaped {
        true => {
            node(minor, Kind::Shaper { rate: 399_000_000_000, burst: 1 << 20, node: Box::new(node_below) })
        }
        false => node_below,
    };
    let pipe = flows(3, 16, Among::Priority, queue());
    let pipes = flows(2, 256 / subports, Among::RoundRobin, shaped(12, pipe));
    flows(1, subports, Among::RoundRobin, shaped(11, pipes))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [what, waiting, subports] = &arguments[..]
        && what == "levels"
    {
        let waiting = waiting.parse().expect("a number of packets");
        let subports = subports.parse().expect("a number of subports");
        for (name, shaped) in [("millrace", false), ("millrace, token buckets", true)] {
            let (best, median) = measure(&mut port(levels(subports, shaped)), &sequence(4096), waiting);
            println!("{name}: {:.2} {:.2}", 1e3 / best, 1e3 / median);
        }
        return;
    }
    let only_idle = arguments == ["idle"];
    let disciplines = [
        ("priority", Among::Priority),
        ("round robin", Among::RoundRobin),
        ("deficit", Among::Deficit(vec![1542])),
        ("fair", Among::Fair(vec![1])),
    ];
    println!("nanoseconds a packet for offer and next, best (median)");
    for (name, among) in disciplines.into_iter().filter(|_| !only_idle) {
        for queues in [1, 8, 64, 4096, 65_536] {
            let mut egress = port(flows(1, queues, among.clone(), queue()));
            let waiting = 2 * queues as usize + BURST;
            let (best, median) = measure(&mut egress, &sequence(queues), waiting);
            println!("{name:12} {queues:6} queues  {best:6.1} ({median:.1})");
        }
    }
    for queues in [1, 64, 4096] {
        let mut egress = port(flows(1, queues, Among::Deficit(vec![1542]), queue()));
        let (best, median) = measure_idle(&mut egress, &sequence(queues));
        println!("deficit, idle {queues:5} queues  {best:6.1} ({median:.1})");
        let short = sequence(queues).into_iter().map(|arrival| Arrival { len: 60, ..arrival });
        let (best, median) = measure_idle(&mut egress, &short.collect::<Vec<Arrival>>());
        println!("deficit, idle {queues:5} queues, 60 bytes  {best:6.1} ({median:.1})");
    }
}
