//! A port by hand: what comes, what leaves, what is counted.

use millrace_traffic::{Arrival, Discard, Egress, Handle, Kind, Next, Node, Plan, Port, Queue};
use std::sync::Arc;

fn queue(minor: u16, classes: u8, packets: u32) -> Node {
    let queue = Queue { classes, packets, ..Queue::default() };
    Node { handle: Handle::new(1, minor), kind: Kind::Queue(Box::new(queue)) }
}

fn node(kind: Kind) -> Node {
    Node { handle: Handle::new(1, 0), kind }
}

fn egress(root: Node) -> Egress<u32> {
    Egress::new(Arc::new(Plan::new(Port::default(), root).unwrap()), 0)
}

fn of_class(class: u8) -> Arrival {
    Arrival { class, len: 100, ..Arrival::default() }
}

fn all(egress: &mut Egress<u32>, now: u64) -> Vec<u32> {
    let mut left = Vec::new();
    while let Next::Leaves(departed) = egress.next(now) {
        left.push(departed.packet);
    }
    left
}

#[test]
fn one_queue_is_first_in_first_out() {
    let mut egress = egress(queue(1, 0xff, 3));
    for packet in 0..3 {
        assert_eq!(egress.offer(of_class(packet as u8), 0, packet).unwrap().depth, packet);
    }
    let refused = egress.offer(of_class(0), 0, 3).unwrap_err();
    assert_eq!((refused.packet, refused.reason), (3, Discard::QueueFull));
    assert_eq!((egress.len(), egress.bytes(), egress.wake_ns()), (3, 300, Some(0)));
    let Next::Leaves(first) = egress.next(50) else { panic!("a packet waits") };
    assert_eq!((first.packet, first.enqueued_ns, first.enqueue_depth, first.dequeue_depth), (0, 0, 0, 2));
    assert_eq!(all(&mut egress, 70), [1, 2]);
    assert_eq!((egress.len(), egress.bytes(), egress.wake_ns()), (0, 0, None));
    let report = egress.queues().next().unwrap();
    assert_eq!((report.sent, report.sent_bytes, report.discarded[Discard::QueueFull as usize]), (3, 300, 1));
    assert_eq!((report.largest_packets, report.delay_ns, report.largest_delay_ns), (3, 50 + 70 + 70, 70));
}

#[test]
fn the_first_of_strict_priority_sends() {
    let mut egress = egress(node(Kind::Priority(vec![queue(1, 0xf0, 9), queue(2, 0x0f, 9)])));
    for (packet, class) in [0, 7, 1, 4, 3].into_iter().enumerate() {
        egress.offer(of_class(class), 0, packet as u32).unwrap();
    }
    let Next::Leaves(first) = egress.next(0) else { panic!("packets wait") };
    assert_eq!((first.packet, first.queue, first.class), (1, 0, 7));
    egress.offer(of_class(5), 0, 9).unwrap();
    assert_eq!(all(&mut egress, 0), [3, 9, 0, 2, 4]);
}

#[test]
fn all_is_taken_out_and_the_port_goes_on() {
    let mut egress = egress(node(Kind::Priority(vec![queue(1, 0xf0, 9), queue(2, 0x0f, 9)])));
    for (packet, class) in [0, 7].into_iter().enumerate() {
        egress.offer(of_class(class), 0, packet as u32).unwrap();
    }
    egress.offer(Arrival { send_at_ns: Some(1000), ..of_class(7) }, 0, 2).unwrap();
    let mut taken = Vec::new();
    egress.take_all(|packet| taken.push(packet));
    taken.sort();
    assert_eq!((taken, egress.len(), egress.bytes(), egress.wake_ns()), (vec![0, 1, 2], 0, 0, None));
    egress.offer(of_class(0), 10, 5).unwrap();
    assert_eq!(all(&mut egress, 10), [5]);
}

#[test]
fn a_packet_waits_for_its_time() {
    let mut egress = egress(queue(1, 0xff, 9));
    egress.offer(Arrival { send_at_ns: Some(1000), ..of_class(0) }, 0, 1).unwrap();
    egress.offer(Arrival { send_at_ns: Some(500), ..of_class(0) }, 0, 2).unwrap();
    egress.offer(of_class(0), 0, 3).unwrap();
    assert_eq!(all(&mut egress, 499), [3]);
    assert_eq!(egress.wake_ns(), Some(500));
    assert_eq!(all(&mut egress, 999), [2]);
    assert_eq!(egress.wake_ns(), Some(1000));
    assert_eq!(all(&mut egress, 1000), [1]);
}
