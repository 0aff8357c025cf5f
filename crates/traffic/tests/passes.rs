//! Packets that pass an idle port: the port counts them as it does packets that were offered and left.

use millrace_traffic::words::parse;
use millrace_traffic::{Arrival, Egress, Next};
use std::sync::Arc;

fn port(words: &str) -> Egress<u32> {
    Egress::new(Arc::new(parse(words).unwrap().remove(0).plan), 0)
}

fn of(class: u8, len: u32) -> Arrival {
    Arrival { class, len, ..Arrival::default() }
}

const CLASSES: &str =
    "port 1\nqdisc add root handle 1: prio bands 2\nqdisc add parent 1:1 handle 10: pfifo limit 5 classes 7
qdisc add parent 1:2 handle 20: bfifo limit 4000b";

#[test]
fn they_are_counted_as_those_that_waited() {
    let (mut passes, mut waits) = (port(CLASSES), port(CLASSES));
    for (class, lengths) in [(7, &[60, 1518, 60][..]), (0, &[100][..]), (7, &[60][..])] {
        let bytes = lengths.iter().map(|len| u64::from(*len)).sum();
        let longest = *lengths.iter().max().unwrap();
        assert!(passes.may_pass(class, lengths.len() as u32, bytes, longest));
        passes.passed(class, lengths.len() as u32, bytes);
        lengths.iter().for_each(|len| _ = waits.offer(of(class, *len), 0, 0).unwrap());
        lengths.iter().for_each(|_| assert!(matches!(waits.next(0), Next::Leaves(_))));
    }
    assert!(passes.queues().eq(waits.queues()));
}

#[test]
fn what_a_queue_has_no_room_for_or_others_order_does_not_pass() {
    let mut idle = port(CLASSES);
    assert!(idle.may_pass(7, 5, 300, 60) && !idle.may_pass(7, 6, 360, 60));
    assert!(
        idle.may_pass(0, 3, 4000, 1518)
            && !idle.may_pass(0, 3, 4001, 1518)
            && !idle.may_pass(0, 1, 1519, 1519)
    );
    idle.offer(of(0, 60), 0, 0).unwrap();
    assert!(!idle.may_pass(7, 1, 60, 60), "another one waits");
    for other in [
        "port 1\nqdisc add root handle 1: fq flows 4 quantum 1600b",
        "port 1 rate 1gbit\nqdisc add root handle 1: pfifo",
        "port 1\nqdisc add root handle 1: red limit 1mb min 10kb max 20kb",
        "port 1\nqdisc add root handle 1: tbf rate 1mbit burst 2kb\nqdisc add parent 1: handle 2: pfifo",
        "port 1\nqdisc add root handle 1: pfifo alpha 1/8",
        "port 1\nqdisc add root handle 1: pfifo ats rate 1mbit burst 1600b residence 5ms",
    ] {
        assert!(!port(other).may_pass(0, 1, 60, 60), "{other}");
    }
}
