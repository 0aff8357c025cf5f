//! Echo requests of ICMP: frames made by hand, what becomes of them, and the frames of replies.

use millrace_afdx::{
    Bag, Discard, EndSystem, EndSystemConfig, EndSystemId, IntegrityRule, LineRate, MAX_ECHOES, Network,
    Networks, Partition, PortKind, ReceiveVl, SendError, TransmitPort, TransmitVl, Verdict, VlId,
};
use std::net::Ipv4Addr;

const MS: u64 = 1_000_000;
const ASK: VlId = VlId(1);
const ANSWER: VlId = VlId(2);
const ASKER: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 0);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 9, 0);

fn end_system(answers_echo: bool) -> EndSystem {
    let bag = Bag::from_ns(2 * MS).unwrap();
    let mut config = EndSystemConfig::new(EndSystemId(0x0109), LineRate::from_bps(100_000_000).unwrap());
    config.answers_echo = answers_echo;
    config.transmits.push(TransmitVl { queue_frames: 4, ..TransmitVl::new(ANSWER, bag, 300) });
    let (integrity, redundancy) = (Some(IntegrityRule::default()), None);
    config.receives.push(ReceiveVl {
        id: ASK,
        bag,
        lmax: 1518,
        networks: Networks::Both,
        integrity,
        redundancy,
    });
    let mut es = EndSystem::new(&config).unwrap();
    let port = TransmitPort {
        kind: PortKind::Sap,
        vl: ANSWER,
        sub_vl: 0,
        partition: Partition::default(),
        source_port: 161,
        destination: None,
    };
    assert_eq!(es.transmitter.add_port(port), Ok(0));
    es
}

/// The checksum of the Internet.
fn sum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn icmp(kind: u8, data: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, 0, 0, 0], data].concat();
    let sum = sum(&message);
    message[2..4].copy_from_slice(&sum);
    message
}

/// A frame with a part of an ICMP message.
fn frame(number: u8, to: Ipv4Addr, (offset, more): (usize, bool), part: &[u8]) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 1, 1, 0, 0];
    header[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
    header[6..8].copy_from_slice(&((offset / 8) as u16 | if more { 0x2000 } else { 0 }).to_be_bytes());
    header.extend(ASKER.octets());
    header.extend(to.octets());
    let sum = sum(&header);
    header[10..12].copy_from_slice(&sum);
    let mut frame = vec![3, 0, 0, 0, 0, 1, 2, 0, 0, 1, 1, 0x20, 8, 0];
    frame.extend(header);
    frame.extend(part);
    frame.resize(frame.len().max(59), 0);
    frame.push(number);
    frame
}

#[test]
fn a_request_is_answered_in_a_virtual_link_of_the_end_system() {
    let mut es = end_system(true);
    let data = [0x12, 0x34, 0, 1, b'A', b'F', b'D', b'X'];
    let asked = frame(0, OWN, (0, false), &icmp(8, &data));
    assert_eq!(es.receiver.receive(5, Network::A, &asked), Verdict::Echo);
    let request = es.receiver.take_echo().unwrap();
    assert_eq!((request.at_ns, request.vl, request.source, &request.data[..]), (5, ASK, ASKER, &data[..]));
    assert_eq!(es.transmitter.answer_echo(10, 0, &request), Ok(()));
    let mut left = Vec::new();
    es.transmitter.step(10, |out| left.push((out.network, out.vl, out.frame.to_vec())));
    let [(Network::A, ANSWER, reply), (Network::B, ANSWER, _)] = &left[..] else { panic!("{left:?}") };
    assert_eq!(reply[..14], [3, 0, 0, 0, 0, 2, 2, 0, 0, 1, 9, 0x20, 8, 0]);
    assert_eq!((&reply[26..30], &reply[30..34]), (&OWN.octets()[..], &ASKER.octets()[..]));
    assert_eq!((reply[23], sum(&reply[14..34])), (1, [0, 0]));
    assert_eq!(reply[34..46], icmp(0, &data));
    assert_eq!((reply.len(), es.transmitter.ports()[0].1.messages), (60, 1));
}

#[test]
fn long_requests_come_and_go_in_fragments_that_fit_or_not_at_all() {
    let mut es = end_system(true);
    let message = icmp(8, &[7; 700]);
    assert_eq!(
        es.receiver.receive(0, Network::A, &frame(0, OWN, (0, true), &message[..400])),
        Verdict::Fragment
    );
    assert_eq!(
        es.receiver.receive(0, Network::A, &frame(1, OWN, (400, false), &message[400..])),
        Verdict::Echo
    );
    let request = es.receiver.take_echo().unwrap();
    assert_eq!(request.data, [7; 700]);
    // 704 bytes in fragments of 256: three frames of four that may wait. So the second reply has no room.
    assert_eq!(es.transmitter.answer_echo(0, 0, &request), Ok(()));
    assert_eq!(es.transmitter.answer_echo(0, 0, &request), Err(SendError::QueueFull { frames: 3, room: 1 }));
    assert_eq!(es.transmitter.waiting(), 3);
}

#[test]
fn what_is_not_answered_has_a_reason() {
    let mut es = end_system(true);
    let other = Ipv4Addr::new(10, 1, 8, 0);
    let multicast = Ipv4Addr::new(224, 224, 0, 1);
    let mut damaged = icmp(8, &[1, 2, 3, 4]);
    damaged[7] = 5;
    let cases = [
        (OWN, damaged, Discard::IcmpChecksum),
        (OWN, icmp(0, &[1; 8]), Discard::IcmpType),
        (OWN, icmp(8, &[1; 3]), Discard::IcmpLength),
        (other, icmp(8, &[1; 8]), Discard::EchoAddress),
    ];
    for (number, (to, message, reason)) in cases.into_iter().enumerate() {
        let frame = frame(number as u8, to, (0, false), &message);
        assert_eq!(es.receiver.receive(0, Network::A, &frame), Verdict::Dropped(reason));
        assert_eq!(es.receiver.discards().of(reason), 1);
    }
    // As many as may wait, whatever their address.
    for number in 4..4 + MAX_ECHOES as u8 {
        let to = if number % 2 == 0 { multicast } else { OWN };
        let frame = frame(number, to, (0, false), &icmp(8, &[number; 8]));
        assert_eq!(es.receiver.receive(0, Network::A, &frame), Verdict::Echo);
    }
    let one_more = frame(4 + MAX_ECHOES as u8, OWN, (0, false), &icmp(8, &[1; 8]));
    assert_eq!(es.receiver.receive(0, Network::A, &one_more), Verdict::Dropped(Discard::EchoFull));
    es.receiver.reset();
    assert_eq!(es.receiver.take_echo(), None);
}

#[test]
fn an_end_system_that_does_not_answer_takes_udp_alone() {
    let mut es = end_system(false);
    let asked = frame(0, OWN, (0, false), &icmp(8, &[1; 8]));
    assert_eq!(es.receiver.receive(0, Network::A, &asked), Verdict::Dropped(Discard::Protocol));
    assert_eq!(es.receiver.take_echo(), None);
}
