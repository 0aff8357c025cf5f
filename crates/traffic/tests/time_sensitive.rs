//! Gates over credit on a simulated clock, from words to packets that leave: the figures come from the words by hand.

use millrace_traffic::words::{edited, parse};
use millrace_traffic::{Arrival, Egress, Next};
use std::sync::Arc;

/// 24 bytes more than the frame, at 1 Gbit/s.
fn wire_ns(len: u32) -> u64 {
    u64::from(len + 24) * 8
}

/// A packet that left: its class, its length, when.
type Left = (u8, u32, u64);

/// Runs a port whose queues of all these classes always have packets, until a time.
fn saturated(words: &str, classes: &[u8], until_ns: u64) -> Vec<Left> {
    let plan = parse(words).unwrap().remove(0).plan;
    let mut egress = Egress::new(Arc::new(plan), 0);
    let (mut now, mut left, mut random) = (0u64, Vec::new(), 1u32);
    let mut offer = |egress: &mut Egress<u8>, class: u8, now: u64| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let arrival = Arrival { class, len: 60 + (random >> 16) % 1459, ..Arrival::default() };
        assert!(egress.offer(arrival, now, class).is_ok());
    };
    for class in classes {
        (0..10).for_each(|_| offer(&mut egress, *class, 0));
    }
    while now < until_ns {
        match egress.next(now) {
            Next::Leaves(packet) => {
                left.push((packet.class, packet.len, now));
                offer(&mut egress, packet.class, now);
            }
            Next::Discarded(..) => panic!("nothing is discarded"),
            Next::Nothing => now = egress.wake_ns().expect("packets wait").max(now + 1),
        }
    }
    left
}

/// Bit/s of a class on the wire, between two times.
fn rate(left: &[Left], class: u8, from: u64, until: u64) -> u64 {
    let of = left.iter().filter(|(is, _, at)| *is == class && (from..until).contains(at));
    of.map(|(_, len, _)| u64::from(len + 24) * 8).sum::<u64>() * 1_000_000_000 / (until - from)
}

const MS: u64 = 1_000_000;

#[test]
fn no_frame_is_outside_of_its_gate_and_credit_gives_its_rate() {
    let words = "port 2 rate 1gbit
        qdisc add root handle 1: taprio cycle-time 1ms sched-entry S 80 300us sched-entry S 7f 700us
        qdisc add parent 1:8 handle 80: pfifo limit 50 classes 7
        qdisc add parent 1:7 handle 70: cbs idleslope 107143kbit hicredit 2kb
        qdisc add parent 70: handle 71: pfifo classes 6
        qdisc add parent 1:6 handle 60: cbs idleslope 100000 hicredit 4kb
        qdisc add parent 60: handle 61: pfifo classes 5
        qdisc add parent 1:1 handle 10: pfifo";
    let left = saturated(words, &[0, 5, 6, 7], 500 * MS);
    let mut free = 0;
    for (class, len, at) in &left {
        assert!(*at >= free, "two frames at once");
        free = at + wire_ns(*len);
        let (begin, end) = (at % MS, at % MS + wire_ns(*len));
        match class {
            7 => assert!(end <= 300_000, "class 7 until {end}"),
            _ => assert!(begin >= 300_000 && end <= MS, "class {class} from {begin} to {end}"),
        }
    }
    // Class 7 is alone in its time: all of it but the last frames that have no room.
    let share = rate(&left, 7, 0, 500 * MS);
    assert!((296_000_000..=300_000_000).contains(&share), "{share}");
    // Idle slope times the share of the time that the gate is open: 75.0001 and 70 Mbit/s. Half a second holds a frame more or less.
    for (class, wanted) in [(6, 75_000_100u64), (5, 70_000_000)] {
        let share = rate(&left, class, 0, 500 * MS);
        assert!(share.abs_diff(wanted) <= wanted / 1000, "class {class}: {share}");
    }
    // What is left goes to class 0: the link is full while its gate is open, but for the guard at the end of each cycle.
    let all: u64 = [0, 5, 6].iter().map(|class| rate(&left, *class, 0, 500 * MS)).sum();
    assert!((690_000_000..=700_000_000).contains(&all), "{all}");
}

#[test]
fn credit_bounds_the_burst_of_a_queue_after_a_long_frame() {
    let words = "port 1 rate 1gbit catch-up 0
        qdisc add root handle 1: prio bands 2
        qdisc add parent 1:1 handle 10: cbs idleslope 500mbit
        qdisc add parent 10: handle 11: pfifo classes 7
        qdisc add parent 1:2 handle 20: pfifo";
    let left = saturated(words, &[0, 7], 200 * MS);
    let of: Vec<_> = left.iter().filter(|(class, ..)| *class == 7).collect();
    // In a time t it sends at most t / 2 bits and the credit from its upper to its lower limit: a longest frame in all (1542 bytes).
    for (number, (_, _, from)) in of.iter().enumerate() {
        let mut bits = 0;
        for (_, len, at) in of[number..].iter().take(50) {
            bits += u64::from(len + 24) * 8;
            let most = (at + wire_ns(*len) - from) / 2 + 1542 * 8 + 16;
            assert!(bits <= most, "{bits} bits from {from} to {at}, at most {most}");
        }
    }
    let share = rate(&left, 7, 0, 200 * MS);
    assert!(share.abs_diff(500_000_000) <= 500_000, "{share}");
}

/// A frame that makes up for time ends after its gate has closed. What is usual of `catch-up` follows the lines that change.
#[test]
fn under_gates_a_port_makes_up_for_no_time() {
    let shaped = "port 1 rate 1gbit\nqdisc add root handle 1: tbf rate 1mbit burst 2000\nqdisc add parent 1: handle 2: pfifo\n";
    let gates = "qdisc replace root handle 1: taprio sched-entry S 01 1ms\n";
    let catch_up = |text: &str| parse(text).map(|plans| plans[0].plan.port().catch_up_ns);
    let changed = |text: &str, change| edited(&parse(text).unwrap()[0].to_string(), change).unwrap();
    let gated = changed(shaped, gates);
    let back = changed(&gated, shaped.lines().nth(1).unwrap());
    assert_eq!([shaped, &gated, &back].map(catch_up), [Ok(100_000), Ok(0), Ok(100_000)], "{gated}{back}");
    let said = shaped.replace("1gbit", "1gbit catch-up 50us");
    let error = catch_up(&changed(&said, gates)).unwrap_err();
    assert_eq!((error.line, error.column), (1, 1));
    assert!(error.reason.starts_with("under `taprio` a port makes up for no time"), "{}", error.reason);
    assert_eq!(catch_up(&changed(&said.replace("50us", "0"), gates)), Ok(0));
}

#[test]
fn a_shaped_stream_is_late_by_its_bound_at_most() {
    // Two streams of 8 Mbit/s: a byte in a microsecond.
    let words = "port 1 rate 1gbit catch-up 0
        qdisc add root handle 1: pfifo classes 0-7 ats rate 8mbit burst 1542 residence 2ms streams 2";
    let plan = parse(words).unwrap().remove(0).plan;
    let mut egress = Egress::new(Arc::new(plan), 0);
    let offer = |egress: &mut Egress<u32>, flow: u32, len: u32, now: u64| {
        egress.offer(Arrival { flow, len, ..Arrival::default() }, now, flow).map_err(|refused| refused.reason)
    };
    // Stream 0 has a burst of 1542: one frame at once, the next 1024 us later; stream 1 comes after them, in the order of the group.
    assert!(offer(&mut egress, 0, 1518, 0).is_ok());
    assert!(offer(&mut egress, 0, 1000, 0).is_ok());
    assert!(offer(&mut egress, 1, 1000, 0).is_ok());
    // Stream 0 would have to wait for 1024 us more.
    assert_eq!(offer(&mut egress, 0, 1000, 0), Err(millrace_traffic::Discard::TooOld));
    let mut times = Vec::new();
    let mut now = 0;
    while !egress.is_empty() {
        match egress.next(now) {
            Next::Leaves(packet) => times.push((packet.packet, now)),
            Next::Discarded(..) => panic!("nothing waits too long"),
            Next::Nothing => now = egress.wake_ns().expect("packets wait").max(now + 1),
        }
    }
    assert_eq!(times, [(0, 0), (0, 1_024_000), (1, 1_024_000 + wire_ns(1000))]);
}
