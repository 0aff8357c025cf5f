//! What happens only after a long time, or when one plan takes over from another one.

use millrace_traffic::gates::{GateEntry, GateList};
use millrace_traffic::{Arrival, Discard, Egress, Gated, Handle, Kind, Next, Node, Plan, Port, Queue, Share};
use std::sync::Arc;

fn node(minor: u16, kind: Kind) -> Node {
    Node { handle: Handle::new(1, minor), kind }
}

fn queue(minor: u16, classes: u8) -> Node {
    node(minor, Kind::Queue(Box::new(Queue { classes, ..Queue::default() })))
}

fn packet(class: u8, len: u32) -> Arrival {
    Arrival { class, len, ..Arrival::default() }
}

/// Weights without a small common multiple make large tags, which go once around 64 bits in 65,536 of the longest packets of weight 1.
/// By the theorem a child that was idle meanwhile waits for one packet of the other: `S / w` differs by `L / w + L' / w'` at most.
#[test]
fn a_share_outlasts_its_tag() {
    const LONGEST: u32 = 65_535;
    let weights = [1, 65_521, 65_519, 65_497];
    let children = weights.into_iter().zip([0x01, 0x02, 0x04, 0xf8]).zip(1..);
    let children = children.map(|((share, classes), minor)| Share { share, node: queue(minor, classes) });
    let port = Port { overhead: 0, longest: LONGEST, bytes: 1 << 30, ..Port::default() };
    let plan = Plan::new(port, node(9, Kind::Fair(children.collect()))).unwrap();
    let mut egress = Egress::new(Arc::new(plan), 0);
    let leaves = |egress: &mut Egress<u8>| match egress.next(0) {
        Next::Leaves(departed) => departed.class,
        other => panic!("{other:?}"),
    };
    // The second child sends and is idle from then on; the first one always has packets.
    egress.offer(packet(1, LONGEST), 0, 0).unwrap();
    assert_eq!(leaves(&mut egress), 1);
    egress.offer(packet(0, LONGEST), 0, 0).unwrap();
    for _ in 0..65_536 - 200 {
        egress.offer(packet(0, LONGEST), 0, 0).unwrap();
        assert_eq!(leaves(&mut egress), 0);
    }
    egress.offer(packet(1, 64), 0, 0).unwrap();
    let mut before = 0;
    while leaves(&mut egress) == 0 {
        before += 1;
        egress.offer(packet(0, LONGEST), 0, 0).unwrap();
    }
    assert!(before <= 1, "{before} packets of the first child were sent before one of the second");
}

/// A port of 1 Gbit/s whose gate is open for a fifth of the time.
fn gated(longest: u32, window_ns: u64) -> Arc<Plan> {
    let entries = vec![
        GateEntry { open: 1, interval_ns: window_ns },
        GateEntry { open: 0, interval_ns: 4 * window_ns },
    ];
    let list = Box::new(GateList { base_ns: 0, cycle_ns: 0, extension_ns: 0, entries });
    let gated = vec![Gated { gate: 0, node: queue(1, 0xff) }];
    let port = Port { rate: Some(1_000_000_000), longest, ..Port::default() };
    Arc::new(Plan::new(port, node(9, Kind::Gates { list, initial: 0, gated })).unwrap())
}

/// Packets that are longer than the new plan's longest would fit no window of it, and those after them in their queue would wait for
/// ever.
#[test]
fn a_packet_that_has_become_too_long_does_not_block_its_queue() {
    // 1518 bytes take 12,336 ns on the wire, 512 bytes take 4,288 ns.
    let mut egress = Egress::new(gated(1518, 20_000), 0);
    for (len, id) in [(1518, 1), (100, 2), (1518, 3), (200, 4)] {
        egress.offer(packet(0, len), 30_000, id).unwrap();
    }
    let held = Arrival { send_at_ns: Some(35_000), ..packet(0, 1000) };
    egress.offer(held, 30_000, 5).unwrap();
    let mut discarded = Vec::new();
    egress.replace(gated(512, 5_000), 30_000, |id, why| discarded.push((id, why)));
    discarded.sort();
    assert_eq!(discarded, [1, 3, 5].map(|id| (id, Discard::TooLong)));
    assert_eq!((egress.len(), egress.bytes()), (2, 300));
    let mut left = Vec::new();
    while let Some(wake) = egress.wake_ns().filter(|_| !egress.is_empty()) {
        if let Next::Leaves(departed) = egress.next(wake.max(30_000)) {
            left.push(departed.packet);
        }
        assert!(wake < 1_000_000, "nothing leaves");
    }
    assert_eq!(left, [2, 4]);
    let report = egress.queues().next().unwrap();
    assert_eq!((report.packets, report.sent), (0, 2));
    assert_eq!(report.discarded[Discard::TooLong as usize], 3);
}
