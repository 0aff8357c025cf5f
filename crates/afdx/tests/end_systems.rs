//! Two end systems and what is between them, in virtual time.

use millrace_afdx::{
    Bag, Discard, EndSystem, EndSystemConfig, EndSystemId, IntegrityRule, LineRate, Misbehaviour, Network,
    Networks, Partition, PortKind, ReceivePort, ReceiveVl, RedundancyRule, SendError, TransmitPort,
    TransmitVl, UdpEnd, Verdict, VlId,
};
use proptest::prelude::*;
use std::net::Ipv4Addr;

const MS: u64 = 1_000_000;
const VL: VlId = VlId(300);

fn bag(ms: u64) -> Bag {
    Bag::from_ns(ms * MS).unwrap()
}

fn receive_vl(id: VlId, bag: Bag, lmax: u64) -> ReceiveVl {
    ReceiveVl {
        id,
        bag,
        lmax,
        networks: Networks::Both,
        integrity: Some(IntegrityRule::default()),
        redundancy: Some(RedundancyRule::new(10 * MS, bag).unwrap()),
    }
}

/// A sender of VL 300 (BAG 2 ms, two sub-VLs) and a receiver of it.
fn pair(lmax: u64) -> (EndSystem, EndSystem) {
    let rate = LineRate::from_bps(100_000_000).unwrap();
    let mut sender = EndSystemConfig::new(EndSystemId(0x0102), rate);
    sender.transmits.push(TransmitVl { sub_vls: 2, ..TransmitVl::new(VL, bag(2), lmax) });
    let mut receiver = EndSystemConfig::new(EndSystemId(0x0103), rate);
    receiver.checks_interface = true;
    receiver.receives.push(receive_vl(VL, bag(2), lmax));
    (EndSystem::new(&sender).unwrap(), EndSystem::new(&receiver).unwrap())
}

fn transmit_port(kind: PortKind, sub_vl: usize, port: u16) -> TransmitPort {
    let destination = (kind != PortKind::Sap).then_some((None, port));
    TransmitPort {
        kind,
        vl: VL,
        sub_vl,
        partition: Partition::new(1).unwrap(),
        source_port: 1000 + port,
        destination,
    }
}

fn receive_port(kind: PortKind, port: u16) -> ReceivePort {
    ReceivePort { kind, vl: VL, ip: None, port, depth: 16, max_message: 8192 }
}

/// A frame on its way.
type Sent = (u64, Network, Vec<u8>);

/// Everything that leaves until nothing waits or this time comes.
fn run(es: &mut EndSystem, mut now: u64, until: u64) -> Vec<Sent> {
    let mut sent = Vec::new();
    while let Some(next) = es.transmitter.next_ns().map(|next| next.max(now)).filter(|next| *next < until) {
        now = next;
        es.transmitter.step(now, |out| sent.push((out.start_ns, out.network, out.frame.to_vec())));
    }
    sent
}

/// Receives frames; the verdicts.
fn arrive(es: &mut EndSystem, sent: &[Sent], delay: [u64; 2]) -> Vec<Verdict> {
    let mut arrivals: Vec<_> =
        sent.iter().map(|(at, network, frame)| (at + delay[network.index()], *network, frame)).collect();
    arrivals.sort_by_key(|(at, ..)| *at);
    arrivals.into_iter().map(|(at, network, frame)| es.receiver.receive(at, network, frame)).collect()
}

#[test]
fn messages_of_all_kinds_of_ports_arrive_once() {
    let (mut sender, mut receiver) = pair(200);
    let sampling = sender.transmitter.add_port(transmit_port(PortKind::Sampling, 0, 1)).unwrap();
    let queuing = sender.transmitter.add_port(transmit_port(PortKind::Queuing, 1, 2)).unwrap();
    let sap = sender.transmitter.add_port(transmit_port(PortKind::Sap, 0, 3)).unwrap();
    let ports = [(PortKind::Sampling, 1), (PortKind::Queuing, 2), (PortKind::Sap, 3)];
    let inboxes = ports.map(|(kind, port)| receiver.receiver.add_port(receive_port(kind, port)).unwrap());
    let long: Vec<u8> = (0..1000).map(|byte| byte as u8).collect();
    sender.transmitter.send(0, sampling, b"sample").unwrap();
    sender.transmitter.send(0, queuing, &long).unwrap();
    let to = UdpEnd { ip: Ipv4Addr::new(224, 224, 1, 44), port: 3 };
    sender.transmitter.send_to(0, sap, to, b"to an address").unwrap();
    let sent = run(&mut sender, 0, u64::MAX);
    // Frames of 200 bytes have 161 of an IP packet: fragments of 160, 1008 = 6 * 160 + 48. Sub-VLs alternate: 1 of 0, 1 of 1, 1 of 0, ...
    assert_eq!(sent.len(), 2 * (1 + 7 + 1));
    let times: Vec<u64> = sent.iter().step_by(2).map(|(at, ..)| at / MS).collect();
    assert_eq!(times, [0, 2, 4, 6, 8, 10, 12, 14, 16]);
    let verdicts = arrive(&mut receiver, &sent, [100_000, 700_000]);
    let delivered: Vec<_> =
        verdicts.iter().filter(|verdict| !matches!(verdict, Verdict::Dropped(_))).collect();
    use Verdict::{Delivered, Fragment};
    let expected = [
        Delivered(0),
        Fragment,
        Delivered(2),
        Fragment,
        Fragment,
        Fragment,
        Fragment,
        Fragment,
        Delivered(1),
    ];
    assert_eq!(delivered, expected.iter().collect::<Vec<_>>());
    assert_eq!(receiver.receiver.discards().all().collect::<Vec<_>>(), [(Discard::Redundant, 9)]);
    let sample = receiver.receiver.sample(MS, inboxes[0]).unwrap();
    assert_eq!((sample.age_ns, &sample.message.data[..]), (900_000, &b"sample"[..]));
    let message = receiver.receiver.take(inboxes[1]).unwrap();
    assert_eq!((message.data == long, message.at_ns), (true, 16 * MS + 100_000));
    let message = receiver.receiver.take(inboxes[2]).unwrap();
    let source = UdpEnd { ip: Ipv4Addr::new(10, 1, 2, 1), port: 1003 };
    assert_eq!((&message.data[..], message.source), (&b"to an address"[..], source));
    let (_, counters) = receiver.receiver.vls().next().unwrap();
    assert_eq!(
        (counters.frames, counters.redundancy.delivered, counters.redundancy.redundant),
        ([9, 9], 9, 9)
    );
}

#[test]
fn a_cut_cable_loses_nothing() {
    let (mut sender, mut receiver) = pair(200);
    let port = sender.transmitter.add_port(transmit_port(PortKind::Queuing, 0, 2)).unwrap();
    let inbox = receiver.receiver.add_port(receive_port(PortKind::Queuing, 2)).unwrap();
    let mut received = Vec::new();
    for number in 0..1000u64 {
        let now = number * 2 * MS;
        sender.transmitter.send(now, port, &number.to_be_bytes()).unwrap();
        let mut sent = run(&mut sender, now, now + 2 * MS);
        // A is cut for good after 400 frames, and B for 20 frames before that.
        sent.retain(|(_, network, _)| match network {
            Network::A => number < 400,
            Network::B => !(100..120).contains(&number),
        });
        arrive(&mut receiver, &sent, [50_000, 300_000]);
        while let Some(message) = receiver.receiver.take(inbox) {
            received.push(u64::from_be_bytes(message.data.try_into().unwrap()));
        }
    }
    assert_eq!(received, (0..1000).collect::<Vec<_>>());
    // B came back with a gap of 20 numbers: one frame was not valid there; A had brought it.
    let (_, counters) = receiver.receiver.vls().next().unwrap();
    assert_eq!(counters.integrity.map(|network| network.out_of_window), [0, 1]);
}

#[test]
fn what_cannot_be_sent_is_refused_whole() {
    let (mut sender, _) = pair(200);
    let sampling = sender.transmitter.add_port(transmit_port(PortKind::Sampling, 0, 1)).unwrap();
    let queuing = sender.transmitter.add_port(transmit_port(PortKind::Queuing, 1, 2)).unwrap();
    let sap = sender.transmitter.add_port(transmit_port(PortKind::Sap, 0, 3)).unwrap();
    let transmitter = &mut sender.transmitter;
    assert_eq!(transmitter.send(0, sampling, &[0; 153]), Ok(()));
    let long = SendError::TooLong { length: 154, limit: 153 };
    assert_eq!(transmitter.send(0, sampling, &[0; 154]), Err(long));
    assert_eq!(
        transmitter.send(0, queuing, &[0; 8193]),
        Err(SendError::TooLong { length: 8193, limit: 8192 })
    );
    assert_eq!(transmitter.send(0, sap, b""), Err(SendError::Destination));
    assert_eq!(transmitter.send(0, 3, b""), Err(SendError::NoPort));
    // 8200 bytes are 51 fragments of 160 and one of 40: one message fits a queue of 64 frames.
    assert_eq!(transmitter.send(0, queuing, &[0; 8192]), Ok(()));
    let full = SendError::QueueFull { frames: 52, room: 12 };
    assert_eq!(transmitter.send(0, queuing, &[0; 8192]), Err(full));
    assert_eq!(transmitter.waiting(), 53);
    let counters = transmitter.ports()[queuing].1;
    assert_eq!((counters.messages, counters.refused_long, counters.refused_full), (1, 1, 1));
}

#[test]
fn a_configuration_that_cannot_be_is_refused() {
    let rate = LineRate::from_bps(100_000_000).unwrap();
    let config = EndSystemConfig::new(EndSystemId(1), rate);
    let error = |change: &dyn Fn(&mut EndSystemConfig)| {
        let mut config = config.clone();
        change(&mut config);
        EndSystem::new(&config).unwrap_err().to_string()
    };
    let vl = |id: u16| TransmitVl::new(VlId(id), bag(1), 200);
    assert_eq!(error(&|config| config.transmits = vec![vl(1), vl(1)]), "VL 1 is there twice");
    assert_eq!(
        error(&|config| config.transmits = vec![TransmitVl { lmin: 300, ..vl(2) }]),
        "VL 2: Lmin is above Lmax"
    );
    assert_eq!(
        error(&|config| config.transmits = vec![TransmitVl { lmax: 1519, ..vl(2) }]),
        "VL 2: Lmax is 1519 bytes: 64 to 1518 bytes is allowed"
    );
    // 40 us + 27 * 17.6 us.
    assert_eq!(
        error(&|config| config.transmits = (0..27).map(vl).collect()),
        "network A: the output jitter may be 515200 ns: at most 500000 ns is allowed"
    );
    assert_eq!(
        error(&|config| config.receives = vec![receive_vl(VL, bag(2), 100), receive_vl(VL, bag(2), 100)]),
        "VL 300 is there twice"
    );
    let (mut sender, mut receiver) = pair(200);
    let other = TransmitPort { vl: VlId(1), ..transmit_port(PortKind::Queuing, 0, 1) };
    let error = sender.transmitter.add_port(other).unwrap_err().to_string();
    assert_eq!(error, "a port is of VL 1: there is no such VL or sub-VL");
    assert!(sender.transmitter.add_port(transmit_port(PortKind::Queuing, 2, 1)).is_err());
    receiver.receiver.add_port(receive_port(PortKind::Sap, 5)).unwrap();
    let error = receiver.receiver.add_port(receive_port(PortKind::Queuing, 5)).unwrap_err().to_string();
    assert_eq!(error, "two ports receive messages of VL 300 for UDP port 5");
}

#[test]
fn each_check_has_its_reason() {
    let (mut sender, mut receiver) = pair(200);
    let port = sender.transmitter.add_port(transmit_port(PortKind::Queuing, 0, 2)).unwrap();
    receiver
        .receiver
        .add_port(ReceivePort { max_message: 100, ..receive_port(PortKind::Queuing, 2) })
        .unwrap();
    let mut frame = |number: u8, data: &[u8]| {
        sender.transmitter.send(0, port, data).unwrap();
        let mut frame = run(&mut sender, 0, u64::MAX).remove(0).2;
        *frame.last_mut().unwrap() = number;
        frame
    };
    let good = frame(7, b"good");
    let mut receive = |network, frame: &[u8]| receiver.receiver.receive(0, network, frame);
    let changed = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        frame
    };
    use Network::{A, B};
    use Verdict::{Delivered, Dropped};
    assert_eq!(receive(A, &[]), Dropped(Discard::Short));
    assert_eq!(receive(A, &good[..59]), Dropped(Discard::Short));
    assert_eq!(receive(A, &[0; 1515]), Dropped(Discard::Long));
    assert_eq!(receive(A, &changed(0, 1)), Dropped(Discard::Destination));
    assert_eq!(receive(A, &changed(5, 1)), Dropped(Discard::UnknownVl));
    assert_eq!(receive(B, &good), Dropped(Discard::Interface));
    let mut long = good.clone();
    long.resize(197, 0);
    assert_eq!(receive(A, &long), Dropped(Discard::Lmax));
    assert_eq!(receive(A, &good), Delivered(0));
    assert_eq!(receive(A, &good), Dropped(Discard::OutOfWindow));
    assert_eq!(receive(B, &changed(11, 0x40)), Dropped(Discard::Redundant));
    let mut other = frame(8, b"to nobody");
    other[37] = 9;
    (other[40], other[41]) = (0, 0);
    assert_eq!(receive(A, &other), Dropped(Discard::NoPort));
    assert_eq!(receive(A, &frame(9, &[0; 101])), Dropped(Discard::PortLong));
    let mut wrong = frame(10, b"a checksum");
    wrong[45] ^= 1;
    assert_eq!(receive(A, &wrong), Dropped(Discard::UdpChecksum));
    for number in 11..26 {
        assert_eq!(receive(A, &frame(number, b"fills it")), Delivered(0));
    }
    assert_eq!(receive(A, &frame(26, b"is too much")), Dropped(Discard::PortFull));
    assert_eq!(receiver.receiver.discards().total(), 13);
}

/// What a receiver says of 400 frames of a sender with this fault: those delivered, and the reasons of the others.
fn with_fault(fault: &str, seed: u64) -> (usize, Vec<(Discard, u64)>, Vec<Sent>) {
    let (mut sender, mut receiver) = pair(200);
    let port = sender.transmitter.add_port(transmit_port(PortKind::Sampling, 0, 2)).unwrap();
    receiver.receiver.add_port(receive_port(PortKind::Sampling, 2)).unwrap();
    let fault: Misbehaviour = fault.parse().unwrap();
    sender.transmitter.misbehave((0, u64::MAX), seed, &[fault]).unwrap();
    let (mut delivered, mut all) = (0, Vec::new());
    for number in 0..400u64 {
        let now = number * 2 * MS;
        sender.transmitter.send(now, port, &number.to_be_bytes()).unwrap();
        let sent = run(&mut sender, now, now + 2 * MS);
        let verdicts = arrive(&mut receiver, &sent, [50_000, 60_000]);
        delivered += verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Delivered(_))).count();
        all.extend(sent);
    }
    (delivered, receiver.receiver.discards().all().collect(), all)
}

#[test]
fn faults_do_what_they_say_and_the_same_for_the_same_seed() {
    let reasons = |fault: &str| {
        let (delivered, discards, sent) = with_fault(fault, 1);
        let again = with_fault(fault, 1);
        assert_eq!((delivered, &discards, &sent), (again.0, &again.1, &again.2), "{fault}");
        (delivered, discards.into_iter().map(|(reason, _)| reason).collect::<Vec<_>>())
    };
    assert_eq!(reasons("length=300"), (0, vec![Discard::Short, Discard::Lmax]));
    assert_eq!(reasons("port=300"), (0, vec![Discard::Redundant, Discard::NoPort]));
    assert_eq!(reasons("vl=300"), (0, vec![Discard::UnknownVl]));
    assert_eq!(reasons("network=300"), (0, vec![Discard::Interface]));
    let (delivered, discards, _) = with_fault("number=300:4", 1);
    // One in four is wrong, and the one after it is out of the window of the wrong one.
    assert!((150..300).contains(&delivered), "{delivered}");
    assert!(discards.iter().all(|(reason, _)| [Discard::OutOfWindow, Discard::Redundant].contains(reason)));
    assert_ne!(with_fault("number=300:4", 2).2, with_fault("number=300:4", 1).2);
}

#[test]
fn a_babbling_end_system_sends_nearer_than_bag() {
    let (_, _, sent) = with_fault("babble=300:250", 3);
    let of_a: Vec<_> = sent.iter().filter(|(_, network, _)| *network == Network::A).collect();
    // 800 ms: one each 250 us, and 400 of its own.
    assert_eq!(of_a.len(), 3200 + 400);
    // All with lengths and numbers as they should be.
    let mut expected = 0u8;
    for (_, _, frame) in of_a {
        assert!((60..=196).contains(&frame.len()));
        assert_eq!(*frame.last().unwrap(), expected);
        expected = millrace_afdx::next_number(expected);
    }
    let (mut sender, _) = pair(200);
    let error = sender.transmitter.misbehave((0, u64::MAX), 1, &["babble=7".parse().unwrap()]).unwrap_err();
    assert_eq!(error.to_string(), "a fault is of VL 7, which the end system does not send");
}

#[test]
fn babbling_ends_even_for_who_looks_late() {
    let (mut sender, _) = pair(200);
    sender.transmitter.misbehave((0, MS), 1, &["babble=300:100".parse().unwrap()]).unwrap();
    let mut sent = 0;
    for now in [0, 950_000, 5 * MS, 6 * MS, 7 * MS] {
        sender.transmitter.step(now, |out| sent += usize::from(out.network == Network::A));
    }
    // The one that was due at 1050 us is not sent.
    assert_eq!((sent, sender.transmitter.next_ns()), (2, None));
}

proptest! {
    /// Messages of any length by two networks that lose frames: whole or not at all, once, and all of them when one network is fine.
    #[test]
    fn messages_are_whole(
        messages in prop::collection::vec((0usize..2000, 0u64..20), 1..30),
        lost in prop::collection::vec(any::<u8>(), 400),
        lmax in 64u64..1519,
        fine in 0usize..3,
    ) {
        let (mut sender, mut receiver) = pair(lmax);
        let port = sender.transmitter.add_port(transmit_port(PortKind::Queuing, 1, 2)).unwrap();
        let inbox = receiver.receiver.add_port(ReceivePort { depth: 64, ..receive_port(PortKind::Queuing, 2) }).unwrap();
        let (mut now, mut taken, mut sent) = (0, Vec::new(), Vec::new());
        for (number, (length, pause)) in messages.into_iter().enumerate() {
            let message = vec![number as u8; length];
            if sender.transmitter.send(now, port, &message).is_ok() {
                taken.push(message);
            }
            sent.extend(run(&mut sender, now, now + pause * MS));
            now += pause * MS;
        }
        sent.extend(run(&mut sender, now, u64::MAX));
        let mut index = 0usize;
        sent.retain(|(_, network, _)| {
            index += 1;
            network.index() == fine || lost[index % lost.len()] > 30
        });
        arrive(&mut receiver, &sent, [200_000, 100_000]);
        let mut received = Vec::new();
        while let Some(message) = receiver.receiver.take(inbox) {
            received.push(message.data);
        }
        if fine < 2 {
            prop_assert_eq!(received, taken);
        } else {
            let mut rest = taken.iter();
            // In order, once, whole.
            prop_assert!(received.iter().all(|message| rest.any(|sent| sent == message)));
        }
    }

    #[test]
    fn no_frame_makes_a_receiver_panic(
        frames in prop::collection::vec((any::<bool>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..200)), 1..50),
    ) {
        let (_, mut receiver) = pair(1518);
        receiver.receiver.add_port(receive_port(PortKind::Queuing, 2)).unwrap();
        let count = frames.len() as u64;
        for (is_b, number, mut frame) in frames {
            // Most are of the VL, and IP.
            let start = [3, 0, 0, 0, 1, 44, 2, 0, 0, 1, 2, if is_b { 0x40 } else { 0x20 }, 8, 0, 0x45];
            if number > 20 {
                frame.splice(0..start.len().min(frame.len()), start);
            }
            receiver.receiver.receive(0, if is_b { Network::B } else { Network::A }, &frame);
        }
        prop_assert_eq!(receiver.receiver.frames().iter().sum::<u64>(), count);
    }
}
