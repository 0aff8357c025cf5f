//! Packets that wait for a time that their program has set: they leave at that time, in order, and may come back again and again if they rest
//! in between.

use millrace_dataplane::{DropReason, EngineKind, MAX_TIMED, PortId, Switch, SwitchConfig};
use millrace_pipeline::{text, verify};
use std::sync::Arc;

/// The first byte is the port, the second one how many milliseconds after it came the packet is to be sent; with a third byte of 1 it goes
/// back to ingress then, with one more in the fourth byte.
const PROGRAM: &str = "program timed
    architecture test
    errors (NoError, PacketTooShort)
    on_reject drop
    ingress (parse, ingress)
    egress (egress, deparse)
    intrinsic parser_error = error
    intrinsic egress_spec = port
    intrinsic ingress_timestamp = came
    intrinsic send_time = when
    intrinsic recirculate = again
    header h: h_t { port: bit<8> after: bit<8> op: bit<8> count: bit<8> }
    metadata error: bit<16>
    metadata port: bit<32>
    metadata came: bit<64>
    metadata when: bit<64>
    metadata again: bool
    body parser parse { block0 state start: extract h end }
    body control ingress {
    block0:
        port = zext(h.port, 32)
        when = add(came, mul(zext(h.after, 64), 64w1000000))
        end }
    body control egress {
    block0:
        select (h.op) { 8w1 => block1 default => block2 }
    block1:
        again = true
        h.count = add(h.count, 8w1)
        end
    block2: end }
    body deparser deparse { block0: emit h end }";

fn switch(engine: EngineKind) -> Switch {
    let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap();
    Switch::new(Arc::new(program), SwitchConfig { engine, ..SwitchConfig::default() }).unwrap()
}

/// Ports, last bytes and milliseconds of what leaves when everything may.
fn leaving(switch: &mut Switch) -> Vec<(PortId, u8, u64)> {
    let outcome = switch.drain();
    outcome.sent.iter().map(|sent| (sent.port, sent.bytes[3], sent.time_ns / 1_000_000)).collect()
}

#[test]
fn packets_leave_at_their_times_in_order() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let mut switch = switch(engine);
        let packets: [(PortId, &[u8]); 5] = [
            (1, &[2, 30, 0, 1]),
            (1, &[3, 10, 0, 2]),
            (1, &[2, 0, 0, 3]),
            (1, &[2, 10, 0, 4]),
            (1, &[2, 255, 0, 5]),
        ];
        let outcome = switch.inject_batch(packets, 5_000_000);
        let now: Vec<u8> = outcome.outputs().map(|(_, bytes)| bytes[3]).collect();
        assert_eq!(now, [3], "{engine:?}");
        assert_eq!(switch.next_departure_ns(), Some(15_000_000), "{engine:?}");
        assert_eq!(switch.advance_to(14_999_999).sent.len(), 0, "{engine:?}");
        assert_eq!(leaving(&mut switch), [(3, 2, 15), (2, 4, 15), (2, 1, 35), (2, 5, 260)], "{engine:?}");
        assert_eq!(switch.counters().port(2).tx_packets, 4, "{engine:?}");
    }
}

/// A keep-alive: it comes back each 20 ms, far more often than a packet may otherwise. One that comes back sooner ends.
#[test]
fn a_packet_that_rests_comes_back_for_ever() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let mut switch = switch(engine);
        switch.inject(1, &[2, 20, 1, 0], 0);
        let outcome = switch.advance_to(20_000_000 * 1000 - 1);
        assert!(outcome.sent.is_empty() && outcome.drops.is_empty(), "{engine:?}: {:?}", outcome.drops);
        assert_eq!(switch.next_departure_ns(), Some(20_000_000 * 1000), "{engine:?}");
        switch.inject(1, &[2, 9, 1, 0], 20_000_000 * 1000);
        let outcome = switch.advance_to(20_000_000 * 1000 + 9_000_000 * 1000);
        let reasons: Vec<DropReason> = outcome.drops.iter().map(|drop| drop.reason).collect();
        assert_eq!(reasons, [DropReason::RecirculationLimit], "{engine:?}");
    }
}

#[test]
fn as_many_packets_as_may_wait_for_a_time() {
    let mut switch = switch(EngineKind::Fastest);
    for _ in 0..MAX_TIMED {
        assert!(switch.inject(1, &[2, 50, 0, 0], 0).drops.is_empty());
    }
    let outcome = switch.inject(1, &[2, 50, 0, 0], 0);
    assert_eq!(outcome.drops[0].reason, DropReason::TimedFull);
    assert_eq!(switch.inject(1, &[2, 0, 0, 7], 0).sent.len(), 1, "others go on");
    assert_eq!(leaving(&mut switch).len(), MAX_TIMED);
}

/// What waits for its time is not lost when another program takes over: it leaves at once.
#[test]
fn a_program_that_goes_lets_them_leave() {
    let mut switch = switch(EngineKind::Fastest);
    switch.inject(1, &[2, 50, 0, 9], 0);
    let next = self::switch(EngineKind::Fastest);
    switch.take_over(next);
    assert_eq!(switch.next_departure_ns(), None);
    assert_eq!(switch.counters().port(2).tx_packets, 1);
}
