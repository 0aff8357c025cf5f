//! What happens only after a long time, or when one plan takes over from another one.

use millrace_traffic::{Arrival, Egress, Handle, Kind, Next, Node, Plan, Port, Queue, Share};
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
