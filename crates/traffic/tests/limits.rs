//! Buffers, early discard and changes of plan by hand.

use millrace_traffic::{
    Arrival, Asynchronous, Curve, Discard, Egress, Handle, Kind, Next, Node, Plan, Port, Queue, Red,
};
use std::sync::Arc;

fn node(minor: u16, kind: Kind) -> Node {
    Node { handle: Handle::new(1, minor), kind }
}

fn queue(minor: u16, queue: Queue) -> Node {
    node(minor, Kind::Queue(Box::new(queue)))
}

fn plan(port: Port, nodes: Vec<Node>) -> Arc<Plan> {
    Arc::new(Plan::new(port, node(0, Kind::Priority(nodes))).unwrap())
}

fn of(class: u8, len: u32) -> Arrival {
    Arrival { class, len, ..Arrival::default() }
}

/// How many packets of a class find room, and why the next one does not.
fn fill(egress: &mut Egress<u32>, class: u8, len: u32) -> (u32, Discard) {
    for packet in 0.. {
        if let Err(refused) = egress.offer(of(class, len), 0, packet) {
            return (packet, refused.reason);
        }
    }
    unreachable!()
}

#[test]
fn a_queue_takes_alpha_times_what_is_free() {
    // Of 100 packets' room one queue alone has alpha / (1 + alpha): a half, with an alpha of 1. The next then a half of what is left.
    let port = Port { bytes: 100_000, longest: 1000, ..Port::default() };
    let setting = |classes| Queue { classes, alpha: Some(256), ..Queue::default() };
    let mut egress = Egress::new(plan(port, vec![queue(1, setting(0x0f)), queue(2, setting(0xf0))]), 0);
    // The threshold is asked before the packet is there: with 50 the 51st finds 50 free, and 51 are more.
    assert_eq!(fill(&mut egress, 0, 1000), (50, Discard::BufferFull));
    assert_eq!(fill(&mut egress, 7, 1000), (25, Discard::BufferFull));
    assert_eq!(egress.bytes(), 75_000);
}

#[test]
fn a_reservation_is_kept_and_the_larger_buffer_takes_the_rest() {
    let port = Port { bytes: 10_000, longest: 1000, overflow: 3000, ..Port::default() };
    let first = Queue { classes: 0x0f, overflow: 2000, ..Queue::default() };
    let second = Queue { classes: 0xf0, reserved: 4000, ..Queue::default() };
    let mut egress = Egress::new(plan(port, vec![queue(1, first), queue(2, second)]), 0);
    // 6 of the shared part, 2 of the larger buffer.
    assert_eq!(fill(&mut egress, 0, 1000), (8, Discard::BufferFull));
    assert_eq!(fill(&mut egress, 7, 1000), (4, Discard::BufferFull));
    // What leaves makes room where it was: the buffer first.
    let Next::Leaves(_) = egress.next(0) else { panic!("packets wait") };
    assert!(egress.offer(of(7, 1000), 0, 0).is_ok());
    assert!(egress.offer(of(7, 1000), 0, 0).is_err());
}

#[test]
fn the_average_follows_and_falls_while_the_queue_is_empty() {
    // Every packet is hit from an average of 1000 bytes on. The average follows by a half: with packets of 1000 bytes it is, before each,
    // 0, 500, 1250.
    let curve = Curve { classes: 0xff, min: 999, max: 1000, probability: 1, ecn: true };
    let red = Some(Red { average: 1, curves: vec![curve] });
    let port = Port { rate: Some(1_000_000_000), ..Port::default() };
    let mut egress = Egress::new(plan(port, vec![queue(1, Queue { red, ..Queue::default() })]), 0);
    let capable = Arrival { ecn: true, ..of(0, 1000) };
    assert!(!egress.offer(capable, 0, 0).unwrap().mark);
    assert!(!egress.offer(capable, 0, 1).unwrap().mark);
    assert!(egress.offer(capable, 0, 2).unwrap().mark);
    assert_eq!(egress.offer(of(0, 1000), 0, 3).unwrap_err().reason, Discard::Early);
    let mut now = 0;
    while !egress.is_empty() {
        now = egress.wake_ns().unwrap();
        egress.next(now);
    }
    // It was (1250 + 3000) / 2 = 2125. A packet of 1000 bytes takes 8 us, so 24 us later it is an eighth, and half of that with the one
    // that comes.
    assert!(!egress.offer(capable, now + 24_000, 0).unwrap().mark);
    let report = egress.queues().next().unwrap();
    assert_eq!((report.marked, report.discarded[Discard::Early as usize]), (1, 1));
}

#[test]
fn hits_are_as_many_as_the_curve_says() {
    // At 15,000 of 10,000 to 20,000 bytes p is a tenth; the distance of hits is uniform from 1 to 10 packets.
    let curve = Curve { classes: 0xff, min: 10_000, max: 20_000, probability: 200_000, ecn: false };
    let red = Some(Red { average: 0, curves: vec![curve] });
    let mut egress = Egress::new(plan(Port::default(), vec![queue(1, Queue { red, ..Queue::default() })]), 0);
    while egress.bytes() < 15_000 {
        let _ = egress.offer(of(0, 1000), 0, 0);
    }
    let (mut last, mut distances) = (None, Vec::new());
    for number in 0..100_000 {
        match egress.offer(of(0, 1000), 0, 0) {
            Ok(_) => assert!(matches!(egress.next(0), Next::Leaves(_))),
            Err(_) => distances.extend(last.replace(number).map(|last| number - last)),
        }
    }
    for distance in 1..=10 {
        let share = distances.iter().filter(|is| **is == distance).count() as f64 / distances.len() as f64;
        assert!((share - 0.1).abs() < 0.01, "{distance}: {share}");
    }
    assert_eq!(distances.iter().max(), Some(&10));
}

#[test]
fn another_plan_keeps_queues_of_the_same_name() {
    let setting = |classes| Queue { classes, ..Queue::default() };
    let old = plan(Port::default(), vec![queue(1, setting(0x0f)), queue(2, setting(0xf0))]);
    let mut egress = Egress::new(old, 0);
    for packet in 0..3 {
        egress.offer(of(0, 100), 0, packet).unwrap();
        egress.offer(of(7, 100), 0, 10 + packet).unwrap();
    }
    // Queue 2 is first now, and smaller than what it holds; queue 1 has gone.
    let smaller = Queue { packets: 1, ..setting(0x0f) };
    let new = plan(Port::default(), vec![queue(2, smaller), queue(3, setting(0xf0))]);
    let mut gone = Vec::new();
    egress.replace(new, 5, |packet, why| gone.push((packet, why)));
    assert_eq!(gone, [0, 1, 2].map(|packet| (packet, Discard::NoQueue)));
    assert_eq!(egress.offer(of(0, 100), 5, 20).unwrap_err().reason, Discard::QueueFull);
    egress.offer(of(7, 100), 5, 21).unwrap();
    let left: Vec<u32> = std::iter::from_fn(|| match egress.next(6) {
        Next::Leaves(left) => Some(left.packet),
        _ => None,
    })
    .collect();
    assert_eq!((left, egress.len()), (vec![10, 11, 12, 21], 0));
    let reports: Vec<(Handle, u64)> = egress.queues().map(|queue| (queue.handle, queue.sent)).collect();
    assert_eq!(reports, [(Handle::new(1, 2), 3), (Handle::new(1, 3), 1)]);
}

#[test]
fn asynchronous_shaping_keeps_each_stream_to_its_rate() {
    // 1000 bytes on the wire at 8 Mbit/s are a millisecond; the burst is one frame.
    let shaping =
        Asynchronous { rate: 8_000_000, burst: 1000, residence_ns: 2_500_000, streams: 2, groups: 2 };
    let port = Port { overhead: 0, longest: 1000, ..Port::default() };
    let setting = Queue { asynchronous: Some(shaping), ..Queue::default() };
    let mut egress = Egress::new(plan(port, vec![queue(1, setting)]), 0);
    let stream = |flow| Arrival { flow, ..of(0, 1000) };
    for packet in 0..3 {
        egress.offer(stream(0), 0, packet).unwrap();
    }
    // It would wait for three milliseconds.
    assert_eq!(egress.offer(stream(0), 0, 3).unwrap_err().reason, Discard::TooOld);
    // The other stream is in a group of its own.
    egress.offer(stream(1), 0, 10).unwrap();
    let mut left = Vec::new();
    while let Some(now) = egress.wake_ns() {
        if let Next::Leaves(departed) = egress.next(now) {
            left.push((now, departed.packet));
        }
    }
    assert_eq!(left, [(0, 0), (0, 10), (1_000_000, 1), (2_000_000, 2)]);
}
