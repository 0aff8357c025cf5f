//! Disciplines next to their theorems, on a simulated clock.

use millrace_traffic::gates::{GateEntry, GateList, Schedule};
use millrace_traffic::{
    Among, Arrival, Egress, Flows, Gated, Handle, Kind, Next, Node, Plan, Port, Queue, Share,
};
use std::sync::Arc;

const GBIT: u64 = 1_000_000_000;
const OVERHEAD: u32 = 24;

fn node(minor: u16, kind: Kind) -> Node {
    Node { handle: Handle::new(1, minor), kind }
}

fn queue(minor: u16, classes: u8) -> Node {
    let queue = Queue { classes, packets: 100_000, ..Queue::default() };
    node(minor, Kind::Queue(Box::new(queue)))
}

fn port(rate: Option<u64>) -> Port {
    Port { rate, catch_up_ns: 0, bytes: 1 << 30, packets: 1 << 20, ..Port::default() }
}

fn egress(rate: Option<u64>, root: Node) -> Egress<u32> {
    Egress::new(Arc::new(Plan::new(port(rate), root).unwrap()), 0)
}

/// Lengths of a mix: 64 to 1518.
struct Mix(u64);

impl Mix {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match self.0 >> 60 {
            0..6 => 64,
            6..10 => 1518,
            _ => 64 + (self.0 >> 33) as u32 % 1455,
        }
    }
}

/// The bytes on the wire that each of some classes gets of 100,000 packets while each always has packets.
fn shares(egress: &mut Egress<u32>, classes: u8) -> Vec<u64> {
    let mut mix = Mix(7);
    let mut sums = vec![0; classes.into()];
    for class in 0..classes {
        for _ in 0..10 {
            egress.offer(Arrival { class, len: mix.next(), ..Arrival::default() }, 0, 0).unwrap();
        }
    }
    for _ in 0..100_000 {
        let Next::Leaves(left) = egress.next(0) else { panic!("packets wait") };
        sums[usize::from(left.class)] += u64::from(left.len + OVERHEAD);
        let another = Arrival { class: left.class, len: mix.next(), ..Arrival::default() };
        egress.offer(another, 0, 0).unwrap();
    }
    sums
}

#[track_caller]
fn assert_shares(sums: &[u64], wanted: &[u64]) {
    let (sum, all): (u64, u64) = (sums.iter().sum(), wanted.iter().sum());
    for (is, wanted) in sums.iter().zip(wanted) {
        let (is, wanted) = (*is as f64 / sum as f64, *wanted as f64 / all as f64);
        assert!((is / wanted - 1.0).abs() < 0.005, "{is} instead of {wanted}: {sums:?}");
    }
}

fn weighted(shares: [u32; 4]) -> Vec<Share> {
    let classes = [0b1, 0b10, 0b100, 0b1111_1000];
    let node = |number: u16| queue(number + 1, classes[usize::from(number)]);
    (0..4).map(|number| Share { share: shares[usize::from(number)], node: node(number) }).collect()
}

#[test]
fn deficit_round_robin_shares_by_quantum() {
    let quanta = [1542, 3084, 4626, 20_000];
    let sums = shares(&mut egress(None, node(0, Kind::Deficit(weighted(quanta)))), 4);
    assert_shares(&sums, &quanta.map(u64::from));
}

#[test]
fn fair_queueing_shares_by_weight() {
    for weights in [[1, 2, 3, 10], [65_535, 65_521, 32_003, 7]] {
        let sums = shares(&mut egress(None, node(0, Kind::Fair(weighted(weights)))), 4);
        let (wanted, longest) = (weights.map(u64::from), 1542.0);
        if weights[3] == 10 {
            assert_shares(&sums, &wanted);
        }
        // The bound of the theorem.
        for (i, j) in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3)] {
            let part = |i: usize| (sums[i] as f64 / wanted[i] as f64, longest / wanted[i] as f64);
            let ((a, la), (b, lb)) = (part(i), part(j));
            // Weights beyond 32 bits of least common multiple are exact to their part of 2^32.
            assert!((a - b).abs() <= la + lb + a * 65_536.0 / (1u64 << 32) as f64, "{weights:?} {sums:?}");
        }
    }
}

#[test]
fn round_robin_shares_by_packet() {
    let nodes = weighted([1; 4]).into_iter().map(|share| share.node).collect();
    let mut egress = egress(None, node(0, Kind::RoundRobin(nodes)));
    shares(&mut egress, 4);
    assert!(egress.queues().all(|queue| queue.sent == 25_000));
}

#[test]
fn a_flow_of_long_packets_gets_no_more_than_others() {
    let flows = Flows { count: 64, among: Among::Deficit(vec![1542]), each: Box::new(queue(2, 0xff)) };
    let mut egress = egress(None, node(1, Kind::Flows(flows)));
    let len = |flow: u32| if flow == 5 { 1518 } else { 64 };
    let arrival = |flow| Arrival { flow, len: len(flow), ..Arrival::default() };
    for flow in 0..64 {
        for _ in 0..50 {
            egress.offer(arrival(flow), 0, flow).unwrap();
        }
    }
    let mut sums = [0u64; 64];
    for _ in 0..600_000 {
        let Next::Leaves(left) = egress.next(0) else { panic!("packets wait") };
        assert_eq!(left.queue, left.packet);
        sums[left.packet as usize] += u64::from(left.len + OVERHEAD);
        egress.offer(arrival(left.packet), 0, left.packet).unwrap();
    }
    assert_shares(&sums, &[1; 64]);
}

/// Runs a port until a time. What leaves, with its time.
fn run(egress: &mut Egress<u32>, until: u64, mut each: impl FnMut(&mut Egress<u32>, u64, u32, u8)) {
    let mut now = 0;
    while now < until {
        match egress.next(now) {
            Next::Leaves(left) => each(egress, now, left.len, left.class),
            Next::Discarded(..) => {}
            Next::Nothing => match egress.wake_ns() {
                Some(wake) if wake > now => now = wake,
                Some(_) => {}
                None => break,
            },
        }
    }
}

#[test]
fn strict_priority_waits_for_one_frame_at_most() {
    let mut egress = egress(Some(GBIT), node(0, Kind::Priority(vec![queue(1, 0xf0), queue(2, 0x0f)])));
    let mut mix = Mix(3);
    let (mut now, mut longest, mut sent) = (0, 0, 0);
    let mut next_urgent = 10_000;
    while sent < 10_000 {
        while egress.len() < 4 {
            egress.offer(Arrival { class: 0, len: mix.next(), ..Arrival::default() }, now, 0).unwrap();
        }
        let wake = egress.wake_ns().unwrap().max(now);
        if next_urgent < wake {
            now = next_urgent;
            egress.offer(Arrival { class: 7, len: mix.next(), ..Arrival::default() }, now, 0).unwrap();
            next_urgent += 20_000 + u64::from(mix.next()) * 7;
            continue;
        }
        now = wake;
        let Next::Leaves(left) = egress.next(now) else { continue };
        if left.class == 7 {
            longest = longest.max(now - left.enqueued_ns);
            sent += 1;
        }
    }
    // A frame of 1518 + 24 bytes takes 12,336 ns, and urgent frames come further apart.
    assert!(longest <= 12_336 && longest > 12_000, "{longest}");
}

#[test]
fn a_shaper_keeps_rate_and_burst() {
    for rate in [10_000_000, 333_333_333] {
        let burst = 20_000;
        let shaper = Kind::Shaper { rate, burst, node: Box::new(queue(2, 0xff)) };
        let mut egress = egress(Some(GBIT), node(1, shaper));
        let mut mix = Mix(1);
        for _ in 0..50 {
            egress.offer(Arrival { len: mix.next(), ..Arrival::default() }, 0, 0).unwrap();
        }
        let (mut left, mut most) = (Vec::new(), 0f64);
        run(&mut egress, 2 * GBIT, |egress, now, len, _| {
            left.push((now, u64::from(len + OVERHEAD)));
            egress.offer(Arrival { len: mix.next(), ..Arrival::default() }, now, 0).unwrap();
        });
        let sum: u64 = left.iter().map(|(_, bytes)| bytes).sum();
        let wanted = rate as f64 * 2.0 / 8.0 + burst as f64;
        assert!((sum as f64 / wanted - 1.0).abs() < 0.001, "{sum} instead of {wanted}");
        // In any interval at most burst and rate: the lowest level so far bounds all intervals that end here.
        let (mut before, mut lowest) = (0.0, f64::MAX);
        for (now, bytes) in left {
            let level = before - rate as f64 * now as f64 / 8e9;
            lowest = lowest.min(level);
            before += bytes as f64;
            most = most.max(before - rate as f64 * now as f64 / 8e9 - lowest);
        }
        assert!(most <= burst as f64 + 1.0 && most > burst as f64 - 1542.0, "{most}");
    }
}

#[test]
fn gates_over_credit_keep_both() {
    let entries =
        vec![GateEntry { open: 0b01, interval_ns: 300_000 }, GateEntry { open: 0b10, interval_ns: 200_000 }];
    let list = GateList { base_ns: 0, cycle_ns: 0, extension_ns: 0, entries };
    let schedule = Schedule::new(list.clone()).unwrap();
    // In its window of 3/5 the queue may have half of the link.
    let credit = Kind::Credit {
        idle_slope: GBIT / 2,
        hi_credit: 3000,
        lo_credit: 3000,
        node: Box::new(queue(3, 0x0f)),
    };
    let gated = vec![Gated { gate: 0, node: node(2, credit) }, Gated { gate: 1, node: queue(4, 0xf0) }];
    let mut egress = egress(Some(GBIT), node(1, Kind::Gates { list: Box::new(list), initial: 0, gated }));
    let mut mix = Mix(1);
    for class in [0, 7] {
        for _ in 0..50 {
            egress.offer(Arrival { class, len: mix.next(), ..Arrival::default() }, 0, 0).unwrap();
        }
    }
    let mut sums = [0u64; 2];
    run(&mut egress, GBIT, |egress, now, len, class| {
        let (urgent, bytes) = (class == 7, u64::from(len + OVERHEAD));
        let (from, until) = if urgent { (300_000, 500_000) } else { (0, 300_000) };
        let phase = now % schedule.cycle_ns();
        assert!(phase >= from && phase + (bytes * 8) <= until, "{class} at {phase}");
        sums[usize::from(urgent)] += bytes;
        egress.offer(Arrival { class, len: mix.next(), ..Arrival::default() }, now, 0).unwrap();
    });
    // Half of the link in three fifths of the time; the rest of the time less a guard band.
    let share = sums[0] as f64 * 8.0 / GBIT as f64;
    assert!((share / 0.3 - 1.0).abs() < 0.02, "{share}");
    let share = sums[1] as f64 * 8.0 / GBIT as f64;
    assert!(share > 0.4 * (1.0 - 12_336.0 / 200_000.0) && share <= 0.4, "{share}");
}

#[test]
fn the_link_is_used_to_the_nanosecond() {
    // 64 + 24 bytes at 100 Gbit/s take 7.04 ns.
    let mut egress = egress(Some(100 * GBIT), queue(1, 0xff));
    for _ in 0..100_000 {
        egress.offer(Arrival { len: 64, ..Arrival::default() }, 0, 0).unwrap();
    }
    let mut last = 0;
    run(&mut egress, GBIT, |_, now, _, _| last = now);
    assert_eq!(last, (99_999 * 704_u64).div_ceil(100));
}
