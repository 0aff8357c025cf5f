//! Frames to the end system of a switch: as they come, and put together with right checksums, fragments and sequence numbers, which get
//! further. No panic, little time and memory for each input; each frame is delivered, kept as a fragment, or dropped with a reason that is
//! counted; what it answers keeps to the contract of its virtual link.

#![no_main]

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use millrace_afdx::{
    Bag, EndSystem, EndSystemConfig, EndSystemId, IntegrityRule, LineRate, MAX_ECHOES, MAX_MESSAGE, Network, Networks, Partition,
    PortKind, ReceivePort, ReceiveVl, RedundancyRule, TransmitPort, TransmitVl, Verdict, VlId,
};
use millrace_fuzz::budget::within;

/// The links that it receives: one by both networks, one by network A.
const RECEIVED: [u16; 2] = [1, 2];
const ANSWERS: u16 = 3;
const BAG_NS: u64 = 1_000_000;
/// Messages that a port keeps.
const DEPTH: usize = 8;
/// Frames of an input at most, so that an input stays a small thing.
const FRAMES: usize = 300;

fn end_system() -> EndSystem {
    let bag = Bag::from_ns(BAG_NS).expect("a gap that there may be");
    let rate = LineRate::from_bps(100_000_000).expect("a rate that there may be");
    let mut config = EndSystemConfig::new(EndSystemId(0x0109), rate);
    config.answers_echo = true;
    config.transmits.push(TransmitVl { queue_frames: 16, ..TransmitVl::new(VlId(ANSWERS), bag, 300) });
    for id in RECEIVED {
        let is_redundant = id == RECEIVED[0];
        config.receives.push(ReceiveVl {
            id: VlId(id),
            bag,
            lmax: 1518,
            networks: if is_redundant { Networks::Both } else { Networks::One(Network::A) },
            integrity: Some(IntegrityRule::default()),
            redundancy: is_redundant.then(|| RedundancyRule::new(5 * BAG_NS, bag).expect("a skew that there may be")),
        });
    }
    let mut es = EndSystem::new(&config).expect("an end system that there may be");
    let partition = Partition::default();
    let answers = TransmitPort { kind: PortKind::Sap, vl: VlId(ANSWERS), sub_vl: 0, partition, source_port: 161, destination: None };
    es.transmitter.add_port(answers).expect("a port that there may be");
    for (vl, kind) in [(1, PortKind::Sap), (2, PortKind::Queuing)] {
        let port = ReceivePort { kind, vl: VlId(vl), ip: None, port: 161, depth: DEPTH, max_message: MAX_MESSAGE };
        es.receiver.add_port(port).expect("a port that there may be");
    }
    es
}

fuzz_target!(|data: &[u8]| {
    within(|| {
        let mut es = end_system();
        let mut u = Unstructured::new(data);
        let (mut now_ns, mut frames, mut went_on) = (0u64, 0, 0);
        let mut departures = Vec::new();
        while frames < FRAMES && !u.is_empty() {
            let Ok((pause, network, frame)) = next(&mut u) else { break };
            now_ns += pause;
            frames += 1;
            match es.receiver.receive(now_ns, network, &frame) {
                Verdict::Dropped(reason) => assert!(es.receiver.discards().of(reason) > 0),
                Verdict::Fragment => went_on += 1,
                Verdict::Echo => {
                    went_on += 1;
                    // Not always at once, so that they wait.
                    if u.ratio(3, 4).unwrap_or(true) {
                        answer_echoes(&mut es, now_ns);
                    }
                }
                Verdict::Delivered(port) => {
                    went_on += 1;
                    while let Some(message) = es.receiver.take(port) {
                        assert!(message.data.len() <= MAX_MESSAGE && message.at_ns == now_ns);
                        // It fits the queue, or nothing of it is sent.
                        let _ = es.transmitter.send_to(now_ns, 0, message.source, &message.data);
                    }
                }
            }
            leave(&mut es, now_ns, &mut departures);
        }
        assert_eq!(es.receiver.discards().total() + went_on, frames as u64);
        answer_echoes(&mut es, now_ns);
        while let Some(next_ns) = es.transmitter.next_ns() {
            now_ns = now_ns.max(next_ns);
            leave(&mut es, now_ns, &mut departures);
        }
        assert!(departures.windows(2).all(|pair| pair[1] - pair[0] >= BAG_NS), "{departures:?}");
    });
});

fn answer_echoes(es: &mut EndSystem, now_ns: u64) {
    let mut waiting = 0;
    while let Some(request) = es.receiver.take_echo() {
        waiting += 1;
        let _ = es.transmitter.answer_echo(now_ns, 0, &request);
    }
    assert!(waiting <= MAX_ECHOES);
}

/// Has leave what may; notes when frames were released to network A.
fn leave(es: &mut EndSystem, now_ns: u64, departures: &mut Vec<u64>) {
    es.transmitter.step(now_ns, |out| {
        assert!((60..=296).contains(&out.frame.len()), "{} bytes", out.frame.len());
        if out.network == Network::A {
            departures.push(out.released_ns);
        }
    });
}

/// A pause and a frame.
fn next(u: &mut Unstructured<'_>) -> Result<(u64, Network, Vec<u8>)> {
    let pause = if u.ratio(1, 8)? { u.int_in_range(0..=200_000_000)? } else { u.int_in_range(0..=2_000_000)? };
    let network = if u.arbitrary()? { Network::A } else { Network::B };
    let frame = if u.ratio(1, 8)? {
        let length = u.int_in_range(0..=1600)?;
        u.bytes(length.min(u.len()))?.to_vec()
    } else {
        near(u)?
    };
    Ok((pause, network, frame))
}

/// A frame that is nearly right.
fn near(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let vl = *u.choose(&[1, 1, 1, 2, 2, 3])?;
    let is_icmp = u.arbitrary()?;
    let to = if u.arbitrary()? { [224, 224, 0, vl] } else { [10, 1, 9, 0] };
    let length = u.int_in_range(0..=u.len().min(120))?;
    let mut carried = u.bytes(length)?.to_vec();
    // A few bytes stand for long messages.
    carried.resize(carried.len() * usize::from(u.int_in_range(1..=12u8)?), 0x5a);
    if is_icmp {
        carried.splice(0..0, [8, 0, 0, 0, 1, 2, 3, 4]);
        let sum = sum(&carried);
        carried[2..4].copy_from_slice(&sum);
    } else {
        let total = (carried.len() + 8) as u16;
        carried.splice(0..0, [[3, 232, 0, 161], [(total >> 8) as u8, total as u8, 0, 0]].concat());
    }
    // The whole, or a part.
    let (offset, more) = if u.ratio(1, 2)? { (0, false) } else { (u.int_in_range(0..=1100u16)?, u.arbitrary()?) };
    if more {
        carried.truncate(carried.len() / 8 * 8);
    }
    let mut header = vec![0x45, 0, 0, 0, 0, u.int_in_range(0..=5)?, 0, 0, 1, if is_icmp { 1 } else { 17 }, 0, 0, 10, 1, 1, 0];
    header.extend(to);
    header[2..4].copy_from_slice(&((20 + carried.len()) as u16).to_be_bytes());
    header[6..8].copy_from_slice(&(offset | if more { 0x2000 } else { 0 }).to_be_bytes());
    let checked = sum(&header);
    header[10..12].copy_from_slice(&checked);
    let mut frame = vec![3, 0, 0, 0, 0, vl, 2, 0, 0, 1, 1, 0x20, 8, 0];
    frame.extend(header);
    frame.extend(carried);
    frame.resize(frame.len().max(59), 0);
    frame.push(u.int_in_range(0..=12)?);
    if u.ratio(1, 16)? {
        let at = u.choose_index(frame.len())?;
        frame[at] ^= 1 << u.int_in_range(0..=7u8)?;
    }
    Ok(frame)
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
