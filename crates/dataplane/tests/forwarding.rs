//! What becomes of packets after ingress and egress. The outputs are by hand: `tell` (port, replica, path, kept
//! metadata, other metadata, length at egress), then the operation and its argument, then the payload.

use millrace_dataplane::{
    DropReason, EngineKind, KnownPorts, Outcome, PortId, QueueConfig, Replica, Session, Switch, SwitchConfig,
    SwitchError,
};
use millrace_frames::{Burst, HEADROOM, Place, TAILROOM};
use millrace_pipeline::{Program, text, verify};
use std::sync::Arc;

const THROUGH: &str = include_str!("programs/through.mir");
const DEPARSED: &str = include_str!("programs/deparsed.mir");

const NORMAL: u8 = 0;
const INGRESS_CLONE: u8 = 1;
const EGRESS_CLONE: u8 = 2;
const RECIRCULATED: u8 = 4;
const REPLICATED: u8 = 5;

fn program(source: &str) -> Arc<Program> {
    let program = text::parse(source).unwrap();
    verify::verify(&program).unwrap();
    Arc::new(program)
}

fn switch(source: &str) -> Switch {
    Switch::new(program(source), SwitchConfig::default()).unwrap()
}

fn sent(outcome: &Outcome) -> Vec<(PortId, Vec<u8>)> {
    outcome.outputs().map(|(port, bytes)| (port, bytes.to_vec())).collect()
}

fn reasons(outcome: &Outcome) -> Vec<DropReason> {
    outcome.drops.iter().map(|drop| drop.reason).collect()
}

#[test]
fn unicast_and_payload() {
    let outcome = switch(THROUGH).inject(4, &[1, 9, 0xaa, 0xbb], 0);
    assert_eq!(sent(&outcome), [(9, vec![9, 0, NORMAL, 0, 0x66, 4, 1, 9, 0xaa, 0xbb])]);
    assert!(outcome.drops.is_empty());
}

#[test]
fn ingress_drop() {
    let mut switch = switch(THROUGH);
    let outcome = switch.inject(4, &[2, 9], 0);
    assert!(outcome.sent.is_empty());
    assert_eq!(reasons(&outcome), [DropReason::IngressDrop]);
    assert_eq!((outcome.drops[0].ingress_port, outcome.drops[0].egress_port), (4, None));
    assert_eq!(switch.counters().port(4).rx_drops, 1);
}

#[test]
fn egress_drop() {
    let mut switch = switch(THROUGH);
    let outcome = switch.inject(4, &[14, 9], 0);
    assert_eq!(reasons(&outcome), [DropReason::EgressDrop]);
    switch.inject(4, &[1, 9], 0);
    switch.inject(4, &[14, 9], 0);
    assert_eq!(switch.counters().port(9).tx_drops, 1);
    assert_eq!(switch.counters().port(9).tx_packets, 1);
}

/// A group wins over a drop.
#[test]
fn multicast() {
    let mut switch = switch(THROUGH);
    let groups = switch.replication_mut();
    groups.create_group(6).unwrap();
    groups.create_group(7).unwrap();
    let node = groups.create_node(3, vec![2, 1]).unwrap();
    groups.associate(6, node).unwrap();
    groups.set_copies(6, vec![Replica { port: 1, rid: 9 }]).unwrap();
    let outcome = switch.inject(4, &[3, 6], 0);
    let copy = |port: u8, rid| (u32::from(port), vec![port, rid, REPLICATED, 0, 0x66, 2, 3, 6]);
    assert_eq!(sent(&outcome), [copy(1, 3), copy(2, 3), copy(1, 9)]);
    assert_eq!(reasons(&switch.inject(4, &[3, 7], 0)), [DropReason::EmptyMulticastGroup]);
    assert_eq!(reasons(&switch.inject(4, &[3, 8], 0)), [DropReason::NoMulticastGroup]);
}

/// The clone has the packet as it came in; of its metadata only the field list, not what the parser wrote.
#[test]
fn ingress_clone() {
    let mut switch = switch(THROUGH);
    switch.replication_mut().set_session(5, Session::to_port(8)).unwrap();
    let outcome = switch.inject(4, &[4, 5, 0xaa], 0);
    assert_eq!(
        sent(&outcome),
        [
            (8, vec![8, 0, INGRESS_CLONE, 0x55, 0, 3, 4, 5, 0xaa]),
            (1, vec![1, 0, NORMAL, 0x55, 0x66, 3, 4, 0xee, 0xaa]),
        ]
    );
}

#[test]
fn ingress_clone_to_a_group_with_truncation() {
    let mut switch = switch(THROUGH);
    let groups = switch.replication_mut();
    groups.create_group(1).unwrap();
    groups.set_copies(1, vec![Replica { port: 2, rid: 7 }, Replica { port: 3, rid: 8 }]).unwrap();
    let session =
        Session { copies: vec![Replica { port: 6, rid: 1 }], truncate: Some(3), ..Session::to_group(1) };
    groups.set_session(5, session).unwrap();
    let outcome = switch.inject(4, &[4, 5, 0xaa, 0xbb], 0);
    // Parsed from three bytes, and three bytes when it leaves.
    assert_eq!(
        sent(&outcome),
        [
            (2, vec![2, 7, INGRESS_CLONE]),
            (3, vec![3, 8, INGRESS_CLONE]),
            (6, vec![6, 1, INGRESS_CLONE]),
            (1, vec![1, 0, NORMAL, 0x55, 0x66, 4, 4, 0xee, 0xaa, 0xbb]),
        ]
    );
}

#[test]
fn a_clone_without_a_session_leaves_the_packet_alone() {
    let mut switch = switch(THROUGH);
    let outcome = switch.inject(4, &[4, 5], 0);
    assert_eq!(sent(&outcome), [(1, vec![1, 0, NORMAL, 0x55, 0x66, 2, 4, 0xee])]);
    assert_eq!(reasons(&outcome), [DropReason::NoCloneSession]);
}

/// The clone has the packet as it is before the deparser, and passes egress.
#[test]
fn egress_clone() {
    let mut switch = switch(THROUGH);
    switch.replication_mut().set_session(5, Session::to_port(8)).unwrap();
    let outcome = switch.inject(4, &[8, 5, 0xaa], 0);
    assert_eq!(
        sent(&outcome),
        [
            (5, vec![5, 0, NORMAL, 0, 0x66, 3, 8, 0xdd, 0xaa]),
            (8, vec![8, 0, EGRESS_CLONE, 0x77, 0, 9, 8, 0xdd, 0xaa]),
        ]
    );
}

/// Resubmission wins over group and drop; the packet is as it came in, metadata as the field list says.
#[test]
fn resubmit() {
    let outcome = switch(THROUGH).inject(4, &[5, 7, 0xaa], 0);
    assert_eq!(sent(&outcome), [(8, vec![8, 0, NORMAL, 8, 0x66, 3, 5, 7, 0xaa])]);
    assert!(outcome.drops.is_empty());
}

/// The packet goes round as it left the deparser, and its metadata as the field list says.
#[test]
fn recirculate() {
    let outcome = switch(THROUGH).inject(4, &[6, 9, 0xaa], 0);
    assert_eq!(sent(&outcome), [(9, vec![9, 0, NORMAL, 0x77, 0x66, 3, 1, 9, 0xaa])]);
    assert_eq!(u32::from(RECIRCULATED), 4);
}

#[test]
fn endless_ways_end() {
    let mut switch = switch(THROUGH);
    assert_eq!(reasons(&switch.inject(4, &[13, 1], 0)), [DropReason::RecirculationLimit]);
    assert_eq!(reasons(&switch.inject(4, &[17, 1], 0)), [DropReason::RecirculationLimit]);
    assert_eq!(reasons(&switch.inject(4, &[12, 1], 0)), [DropReason::StepLimit]);
    assert_eq!(switch.counters().drops(DropReason::RecirculationLimit), 2);
}

/// A session that clones to the ports from which everything is cloned again would double the packets for ever.
#[test]
fn replication_is_bounded() {
    let source = THROUGH
        .replace("(8w8, 32w2) => block4", "(8w8, 32w2) => block2")
        .replace("h.arg = 8w0xdd", "other = 8w1");
    let config = SwitchConfig { max_passes: 1000, ..SwitchConfig::default() };
    let mut switch = Switch::new(program(&source), config).unwrap();
    let session = Session {
        copies: vec![Replica { port: 1, rid: 1 }, Replica { port: 2, rid: 2 }],
        ..Session::default()
    };
    switch.replication_mut().set_session(5, session).unwrap();
    let outcome = switch.inject(4, &[8, 5], 0);
    assert!(outcome.sent.len() <= millrace_dataplane::MAX_COPIES as usize);
    assert!(reasons(&outcome).contains(&DropReason::CopyLimit));
}

#[test]
fn truncation() {
    let outcome = switch(THROUGH).inject(4, &[10, 9, 0xaa], 0);
    assert_eq!(sent(&outcome), [(9, vec![9, 0, NORMAL, 0, 0x66, 3, 10])]);
}

/// A header that ingress adds counts in the length that egress sees.
#[test]
fn the_length_follows_headers() {
    let outcome = switch(THROUGH).inject(4, &[15, 9, 0xaa], 0);
    assert_eq!(sent(&outcome), [(9, vec![9, 0, NORMAL, 0, 0x66, 9, 15, 9, 0xaa])]);
}

#[test]
fn digests_logs_and_assertions() {
    let mut switch = switch(THROUGH);
    let outcome = switch.inject(4, &[9, 0], 0);
    assert_eq!(outcome.digests.len(), 1);
    assert_eq!(outcome.digests[0].values[1].as_bits().to_u64(), Some(4));
    assert_eq!(outcome.log, ["op 9"]);
    let failed = switch.inject(4, &[11, 0], 0);
    assert_eq!(reasons(&failed), [DropReason::Assert]);
    assert_eq!(failed.log, ["assertion failed: never"]);
}

/// With an error the parser leaves the header invalid, so everything reads 0.
#[test]
fn parser_errors_continue_or_drop() {
    let outcome = switch(THROUGH).inject(4, &[1], 0);
    assert_eq!(sent(&outcome), [(0, vec![0, 0, NORMAL, 0, 0x66, 1, 1])]);
    let mut switch = switch(DEPARSED);
    let outcome = switch.inject(4, &[1], 0);
    assert_eq!(reasons(&outcome), [DropReason::ParserError(1)]);
    assert_eq!(outcome.drops[0].reason.label(switch.program()), "parser_error:PacketTooShort");
}

/// What neither parser can read leaves as it came.
#[test]
fn rejected_packets_may_pass_on() {
    let source = DEPARSED.replace("on_reject drop", "on_reject pass_on");
    assert_ne!(source, DEPARSED);
    let outcome = switch(&source).inject(4, &[1], 0);
    assert_eq!(sent(&outcome), [(0, vec![1])]);
    assert!(outcome.drops.is_empty());
}

/// Bit n is port n, lowest first; a drop comes before.
#[test]
fn sets_of_ports() {
    const SETS: &str = r#"
program sets
errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
intrinsic parser_error = error
intrinsic drop = dropped
intrinsic egress_ports = ports
ingress (parse)
metadata error: bit<16>
metadata dropped: bool
metadata ports: bit<64>
local set: bit<16>
body parser parse {
block0:
    lookahead set, skip 0
    ports = concat(concat(8w128, zext(set, 40)), 16w2)
    dropped = eq(set, 16w7)
    end
}
"#;
    let mut switch = switch(SETS);
    let ports = |outcome: &Outcome| sent(outcome).into_iter().map(|(port, _)| port).collect::<Vec<_>>();
    assert_eq!(ports(&switch.inject(4, &[0, 0x81], 0)), [1, 16, 23, 63]);
    assert_eq!(reasons(&switch.inject(4, &[0, 7], 0)), [DropReason::IngressDrop]);
}

/// Where egress does the same to all copies, it takes them in one: a burst of packets leaves as the packets alone do, also for ports
/// that are not there and beyond those that one pass does for.
#[test]
fn copies_of_a_set_pass_egress_in_one() {
    const SETS: &str = r#"
program sets
errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
intrinsic parser_error = error
intrinsic egress_ports = ports
intrinsic packet_path = path
ingress (parse)
egress (leave, deparse)
header h: h_t { set: bit<40> path: bit<8> }
metadata error: bit<16>
metadata ports: bit<64>
metadata path: bit<32>
body parser parse {
block0:
    extract h
    ports = zext(h.set, 64)
    end
}
body control leave { block0: h.path = path[7:0] end }
body deparser deparse { block0: emit h end }
"#;
    let packets: Vec<[u8; 6]> = [0b1011, 0, 1 << 31, 0b110, 1 << 39 | 0b100, 0b11 << 20, 1 << 9 | 0b10]
        .map(|set: u64| {
            let mut packet = [0; 6];
            packet[..5].copy_from_slice(&set.to_be_bytes()[3..]);
            packet
        })
        .into();
    let told = |packet: &[u8]| packet.to_vec();
    for ports in [KnownPorts::Any, KnownPorts::Only([0, 1, 2, 4, 9, 31].into())] {
        let mut left = Vec::new();
        for &engine in EngineKind::HERE {
            let config = SwitchConfig { engine, ports: ports.clone(), ..SwitchConfig::default() };
            let mut switch = Switch::new(program(SETS), config).unwrap();
            let mut sent = Vec::new();
            for _ in 0..2 {
                let mut memory = vec![0; (HEADROOM + 64) * packets.len() + TAILROOM];
                let mut places = Vec::new();
                for (number, packet) in packets.iter().enumerate() {
                    let at = number * (HEADROOM + 64) + HEADROOM;
                    memory[at..at + 6].copy_from_slice(packet);
                    places.push(Place { at: at as u32, len: 6 });
                }
                let mut burst = Burst::new(&mut memory, &places, HEADROOM).unwrap();
                switch.switch_burst(4, &mut burst, |port, output| sent.push((port, told(output.bytes))));
            }
            let counters = [0, 1, 2, 3, 4, 9, 20, 31].map(|port| switch.counters().port(port));
            left.push((sent, counters));
        }
        assert!(left[0].0.len() >= 18);
        assert!(left.iter().all(|one| *one == left[0]), "{left:#?}");
    }
}

#[test]
fn ports_that_do_not_exist() {
    let config = SwitchConfig { ports: KnownPorts::Only([1, 2].into()), ..SwitchConfig::default() };
    let mut switch = Switch::new(program(THROUGH), config).unwrap();
    assert_eq!(reasons(&switch.inject(3, &[1, 1], 0)), [DropReason::UnknownPort]);
    let outcome = switch.inject(1, &[1, 3], 0);
    assert_eq!((reasons(&outcome), outcome.drops[0].egress_port), (vec![DropReason::UnknownPort], Some(3)));
    assert_eq!(switch.inject(1, &[1, 2], 0).sent.len(), 1);
    assert_eq!(switch.counters().port(1).rx_packets, 2);
}

#[test]
fn frames_have_a_longest() {
    let mut switch = switch(THROUGH);
    let mut frame = vec![0; 16 * 1024];
    (frame[0], frame[1]) = (1, 1);
    assert_eq!(reasons(&switch.inject(3, &frame, 0)), [DropReason::Oversize], "it grows in egress");
    frame.push(0);
    assert_eq!(reasons(&switch.inject(3, &frame, 0)), [DropReason::Oversize]);
}

/// Of one batch, the higher class leaves first; depth and delay are told.
#[test]
fn classes_of_service() {
    let config = SwitchConfig {
        queues: QueueConfig { priorities: 8, depth: 2, ..QueueConfig::default() },
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(program(THROUGH), config).unwrap();
    let frames: [&[u8]; 4] = [&[7, 0, 0xa], &[7, 3, 0xb], &[7, 0, 0xc], &[7, 0, 0xd]];
    let outcome = switch.inject_batch(frames.map(|frame| (1, frame)), 0);
    let last: Vec<u8> = outcome.sent.iter().filter_map(|sent| sent.bytes.last().copied()).collect();
    assert_eq!(last, [0xb, 0xa, 0xc]);
    assert_eq!(reasons(&outcome), [DropReason::QueueFull]);
}

#[test]
fn a_rate_delays_packets_and_time_brings_them() {
    let mut switch = switch(THROUGH);
    switch.set_queue_rate(1_000_000, Some(9), None).unwrap();
    let frames: [&[u8]; 3] = [&[1, 9, 1], &[1, 9, 2], &[1, 9, 3]];
    let outcome = switch.inject_batch(frames.map(|frame| (1, frame)), 100);
    assert_eq!(outcome.sent.iter().map(|sent| sent.time_ns).collect::<Vec<_>>(), [100]);
    assert_eq!(switch.next_departure_ns(), Some(1100));
    let later = switch.advance_to(1500);
    assert_eq!(later.sent.iter().map(|sent| sent.time_ns).collect::<Vec<_>>(), [1100]);
    let drained = switch.drain();
    assert_eq!(drained.sent.iter().map(|sent| sent.time_ns).collect::<Vec<_>>(), [2100]);
    assert_eq!(switch.now_ns(), 2100);
}

#[test]
fn configurations_that_cannot_be() {
    let config = SwitchConfig {
        queues: QueueConfig { priorities: 0, depth: 1, ..QueueConfig::default() },
        ..SwitchConfig::default()
    };
    assert!(matches!(Switch::new(program(THROUGH), config), Err(SwitchError::Queues(_))));
    let config = SwitchConfig { ports: KnownPorts::Only((0..5000).collect()), ..SwitchConfig::default() };
    assert_eq!(Switch::new(program(THROUGH), config).unwrap_err(), SwitchError::TooManyPorts(5000));
}

#[test]
fn counters_count() {
    let mut switch = switch(THROUGH);
    switch.inject(4, &[1, 9, 0xaa], 0);
    let (rx, tx) = (switch.counters().port(4), switch.counters().port(9));
    assert_eq!((rx.rx_packets, rx.rx_bytes, tx.tx_packets, tx.tx_bytes), (1, 3, 1, 9));
}

/// Egress parses what the ingress deparser made; metadata passes but for what is reset.
#[test]
fn deparsed_between() {
    let outcome = switch(DEPARSED).inject(4, &[1, 9, 0xaa], 0);
    assert_eq!(sent(&outcome), [(9, vec![9, 0, NORMAL, 0x55, 0, 4, 0xad, 1, 9, 0xaa])]);
}

#[test]
fn deparsed_ingress_clone_is_the_packet_as_it_came_in() {
    let mut switch = switch(DEPARSED);
    let session = Session { truncate: Some(3), ..Session::to_port(8) };
    switch.replication_mut().set_session(5, session).unwrap();
    let outcome = switch.inject(4, &[4, 5, 0xaa, 0xbb], 0);
    assert_eq!(
        sent(&outcome),
        [(8, vec![8, 0, INGRESS_CLONE]), (1, vec![1, 0, NORMAL, 0x55, 0, 5, 0xad, 4, 5, 0xaa, 0xbb]),]
    );
}

/// The clone starts from the bytes after the deparser.
#[test]
fn deparsed_egress_clone() {
    let mut switch = switch(DEPARSED);
    switch.replication_mut().set_session(1, Session::to_port(8)).unwrap();
    let outcome = switch.inject(4, &[8, 5, 0xaa], 0);
    assert_eq!(
        sent(&outcome),
        [(5, vec![0xad, 8, 0xdd, 0xaa]), (8, vec![8, 0, EGRESS_CLONE, 0, 0, 4, 0xad, 8, 0xdd, 0xaa]),]
    );
}

#[test]
fn deparsed_resubmit_and_recirculate() {
    let mut switch = switch(DEPARSED);
    let resubmitted = switch.inject(4, &[5, 9, 0xaa], 0);
    assert_eq!(sent(&resubmitted), [(9, vec![9, 0, NORMAL, 0x55, 0, 4, 0xad, 5, 9, 0xaa])]);
    let recirculated = switch.inject(4, &[6, 9, 0xaa], 0);
    assert_eq!(sent(&recirculated), [(9, vec![9, 0, NORMAL, 0x55, 0, 4, 0xad, 1, 9, 0xaa])]);
}

#[test]
fn equal_runs_are_equal() {
    let run = || {
        let mut switch = switch(THROUGH);
        (0..=255u8)
            .map(|byte| switch.inject(u32::from(byte % 4), &[byte % 18, byte, 1], u64::from(byte)))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
