//! Plans that cannot be, and what is said of them.

use millrace_traffic::gates::{GateEntry, GateList};
use millrace_traffic::{Among, Curve, Flows, Gated, Handle, Kind, Node, Plan, Port, Queue, Red, Share};

fn node(minor: u16, kind: Kind) -> Node {
    Node { handle: Handle::new(1, minor), kind }
}

fn queue(minor: u16, classes: u8) -> Node {
    node(minor, Kind::Queue(Box::new(Queue { classes, ..Queue::default() })))
}

fn gigabit() -> Port {
    Port { rate: Some(1_000_000_000), ..Port::default() }
}

#[track_caller]
fn refused(root: Node, why: &str) {
    assert_eq!(Plan::new(gigabit(), root).unwrap_err().to_string(), why);
}

fn gates(open: u8, interval_ns: u64) -> Node {
    let entries = vec![GateEntry { open, interval_ns }, GateEntry { open: 0b10, interval_ns: 50_000 }];
    let list = Box::new(GateList { base_ns: 0, cycle_ns: 0, extension_ns: 0, entries });
    let gated = vec![Gated { gate: 0, node: queue(1, 0xff) }];
    node(0, Kind::Gates { list, initial: 0, gated })
}

fn shaper(minor: u16, rate: u64, burst: u64, below: Node) -> Node {
    node(minor, Kind::Shaper { rate, burst, node: Box::new(below) })
}

fn flows(minor: u16, count: u32, each: Node) -> Node {
    node(minor, Kind::Flows(Flows { count, among: Among::RoundRobin, each: Box::new(each) }))
}

#[test]
fn trees_that_cannot_be() {
    refused(node(0, Kind::Priority(vec![])), "1:: nothing is below it");
    refused(node(0, Kind::Priority(vec![queue(1, 1), queue(1, 0xfe)])), "1:1: another node has this handle");
    refused(node(0, Kind::Priority(vec![queue(1, 0xff), queue(2, 0)])), "1:2: no class goes to this queue");
    refused(
        node(0, Kind::Priority(vec![queue(1, 0xff), queue(2, 4)])),
        "1:2: class 2 goes to another queue already",
    );
    refused(queue(1, 0x7f), "class 7 goes to no queue");
    let deep = (1..=8).rev().fold(queue(9, 0xff), |below, minor| node(minor, Kind::Priority(vec![below])));
    refused(deep, "1:9: the tree may be 8 nodes deep");
    refused(flows(1, 1024, flows(2, 65, queue(3, 0xff))), "66560 queues, a port may have 65536");
    refused(flows(1, 65_536, flows(2, 4, queue(3, 0xff))), "327681 nodes, a port may have 262144");
}

#[test]
fn shares_that_cannot_be() {
    let deficit = |share| node(0, Kind::Deficit(vec![Share { share, node: queue(1, 0xff) }]));
    refused(deficit(1541), "1:1: quantum is 1541 bytes, the longest frame takes 1542 bytes on the wire");
    assert!(Plan::new(gigabit(), deficit(1542)).is_ok());
    let fair = |share| node(0, Kind::Fair(vec![Share { share, node: queue(1, 0xff) }]));
    refused(fair(0), "1:1: weight is 0, it may be 1 to 65535");
    let among = Among::Fair(vec![1, 2]);
    let three = Flows { count: 3, among, each: Box::new(queue(1, 0xff)) };
    refused(
        node(0, Kind::Flows(three)),
        "1:: 2 shares for 3 flows, it has to be one for all or one for each",
    );
}

#[test]
fn rates_that_cannot_be() {
    refused(
        shaper(0, 2_000_000_000, 2000, queue(1, 0xff)),
        "1:: rate is 2000000000 bit/s, what is above it has 1000000000 bit/s",
    );
    refused(
        shaper(0, 1_000_000, 2000, shaper(1, 1_000_001, 2000, queue(2, 0xff))),
        "1:1: rate is 1000001 bit/s, what is above it has 1000000 bit/s",
    );
    refused(
        shaper(0, 1_000_000, 1541, queue(1, 0xff)),
        "1:: burst is 1541 bytes, the longest frame takes 1542 bytes on the wire",
    );
    let credit = |minor, idle_slope, below| {
        let (hi_credit, lo_credit) = (2000, 2000);
        node(minor, Kind::Credit { idle_slope, hi_credit, lo_credit, node: Box::new(below) })
    };
    let two = vec![credit(1, 500_000_000, queue(2, 0xf0)), credit(3, 500_000_001, queue(4, 0x0f))];
    refused(
        node(0, Kind::Priority(two)),
        "1:3: idle slopes are 1000000001 bit/s together, the link has 1000000000 bit/s",
    );
    let unpaced = Plan::new(Port::default(), credit(1, 1000, queue(2, 0xff)));
    assert_eq!(unpaced.unwrap_err().to_string(), "1:1: the port needs a rate");
}

#[test]
fn gates_that_cannot_be() {
    refused(gates(0b10, 50_000), "1:1: gate 0 never opens");
    refused(gates(1, 12_335), "1:1: gate 0 is open 12335 ns at most, the longest frame takes 12336 ns");
    assert!(Plan::new(gigabit(), gates(1, 12_336)).is_ok());
}

#[test]
fn room_that_cannot_be() {
    let with = |setting: Queue| node(1, Kind::Queue(Box::new(setting)));
    refused(
        with(Queue { bytes: 1517, ..Queue::default() }),
        "1:1: room for 1517 bytes, the longest frame has 1518 bytes",
    );
    refused(
        with(Queue { reserved: (4 << 20) + 1, ..Queue::default() }),
        "queues reserve 4194305 bytes, the buffer has 4194304 bytes",
    );
    refused(
        with(Queue { overflow: 1, ..Queue::default() }),
        "1:1: overflow is 1 bytes, it may be 0 to 0 bytes",
    );
    let curve = Curve { classes: 1, min: 10, max: 10, probability: 1, ecn: false };
    let red = Some(Red { average: 0, curves: vec![curve] });
    refused(
        with(Queue { red, ..Queue::default() }),
        "1:1: a curve needs min < max, and a class has one curve at most",
    );
    let small = Plan::new(Port { bytes: 1000, ..Port::default() }, queue(1, 0xff)).unwrap_err();
    assert_eq!(small.to_string(), "the buffer has room for 1000 bytes, the longest frame has 1518 bytes");
}
