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

/// Offers a burst and asks for all of it; none if some of it did not leave.
fn offered(port: &mut Egress<u32>, burst: &[Arrival]) -> Option<Vec<u8>> {
    let mut all = true;
    for (number, arrival) in (0..).zip(burst) {
        all &= port.offer(*arrival, 0, number).is_ok();
    }
    let leaves = |port: &mut Egress<u32>| match port.next(0) {
        Next::Leaves(left) => Some(left.packet as u8),
        _ => None,
    };
    let order: Vec<u8> = std::iter::from_fn(|| leaves(port)).collect();
    all.then_some(order)
}

#[test]
fn bursts_are_arranged_as_if_they_had_waited() {
    let mut number = 1u64;
    let mut dice = |below: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % below
    };
    let classes = "\nqdisc add parent 1:1 handle 10: pfifo limit 1000 classes 3-7 reserve 2kb
qdisc add parent 1:2 handle 20: pfifo limit 70 classes 1,2 age 5ms\nqdisc add parent 1:3 handle 30: pfifo";
    for (plan, has_flows) in [
        ("port 1\nqdisc add root handle 1: pfifo".to_owned(), true),
        (format!("port 1\nqdisc add root handle 1: prio bands 3{classes}"), true),
        (
            format!(
                "port 1\nqdisc add root handle 1: drr\nclass add parent 1: classid 1:1 drr quantum 1600b\n\
                 class add parent 1: classid 1:2 drr quantum 5000b\nclass add parent 1: classid 1:3 drr quantum 1550b{classes}"
            ),
            true,
        ),
        ("port 1\nqdisc add root handle 1: fq flows 5 quantum 1600b".to_owned(), true),
        ("port 1\nqdisc add root handle 1: fq flows 64 quantum 1600b".to_owned(), true),
        ("port 1 buffer 20kb\nqdisc add root handle 1: fq flows 3 quantum 4000b".to_owned(), false),
    ] {
        let (mut passes, mut waits) = (port(&plan), port(&plan));
        assert!(passes.may_arrange(), "{plan}");
        let mut arranged = 0;
        for _ in 0..300 {
            let longest = [60, 1518][dice(2) as usize];
            let burst: Vec<Arrival> = (0..1 + dice(64))
                .map(|_| Arrival {
                    class: dice(9) as u8,
                    flow: dice(1000) as u32,
                    len: 40 + dice(longest - 39) as u32,
                    ..Arrival::default()
                })
                .collect();
            let order = passes.arrange(burst.iter().copied()).map(<[u8]>::to_vec);
            arranged += usize::from(order.is_some());
            let wanted = offered(&mut waits, &burst);
            match order {
                Some(order) => assert_eq!(Some(order), wanted, "{plan}: {burst:?}"),
                None => _ = offered(&mut passes, &burst),
            }
        }
        assert!(arranged > 100 && (!has_flows || arranged == 300), "{plan}: {arranged}");
        assert!(passes.queues().eq(waits.queues()), "{plan}");
    }
}

#[test]
fn what_has_no_room_or_an_order_that_depends_on_the_past_is_not_arranged() {
    let mut idle = port("port 1\nqdisc add root handle 1: fq flows 4 quantum 1600b limit 40");
    let burst = |count: usize| std::iter::repeat_n(of(0, 60), count);
    assert!(idle.arrange(burst(40)).is_some() && idle.arrange(burst(41)).is_none());
    assert!(idle.arrange(burst(65)).is_none() && idle.arrange([of(0, 1519)].into_iter()).is_none());
    assert!(idle.arrange([Arrival { send_at_ns: Some(1), ..of(0, 60) }].into_iter()).is_none());
    idle.offer(of(0, 60), 0, 0).unwrap();
    assert!(!idle.may_arrange() && idle.arrange(burst(1)).is_none(), "another one waits");
    for other in [
        "port 1 rate 1gbit\nqdisc add root handle 1: fq flows 4 quantum 1600b",
        "port 1\nqdisc add root handle 1: red limit 1mb min 10kb max 20kb",
        "port 1\nqdisc add root handle 1: tbf rate 1mbit burst 2kb\nqdisc add parent 1: handle 2: pfifo",
        "port 1\nqdisc add root handle 1: pfifo alpha 1/8",
    ] {
        assert!(port(other).arrange(burst(1)).is_none(), "{other}");
    }
}
