//! Both halves next to frames that are put on the wire, and read from it, octet by octet.

use super::super::mac::frames::{check, random};
use super::*;
use crate::arbitrary::Rng;
use crate::*;
use std::collections::VecDeque;

/// What the wire has in a cycle: data, `dv` or `en`, `er`.
type Octet = (u8, bool, bool);

const IDLE: Octet = (0, false, false);

/// Makes a frame that has a fault.
type Fault<'a> = &'a dyn Fn(&mut Rng) -> Vec<Octet>;

/// A frame with its check sequence after so many octets of preamble, without a gap.
fn on_wire(bytes: &[u8], preamble: usize) -> Vec<Octet> {
    let mut all = vec![PREAMBLE as u8; preamble];
    all.push(START as u8);
    all.extend(bytes.iter().chain(&check(bytes)));
    all.into_iter().map(|byte| (byte, true, false)).collect()
}

fn gap(wire: &mut Vec<Octet>, octets: usize) {
    wire.extend(std::iter::repeat_n(IDLE, octets));
}

fn set(sim: &mut Simulator, name: &str, value: u64) {
    let signal = sim.input(name).unwrap();
    sim.set_u64(signal, value);
}

fn get(sim: &mut Simulator, name: &str) -> u64 {
    let signal = sim.output(name).unwrap();
    sim.get_u64(signal)
}

struct Receiver {
    sim: Simulator,
    left: Vec<(Vec<u8>, bool)>,
    frame: Vec<u8>,
}

impl Receiver {
    fn new(width: u32, longest: u32) -> Receiver {
        let mut design = Design::new();
        gmii_receive(&mut design, width, longest);
        crate::verify(&design).unwrap();
        let mut sim = Simulator::new(&design).unwrap();
        set(&mut sim, "enable", 1);
        set(&mut sim, "promiscuous", 1);
        Receiver { sim, left: Vec::new(), frame: Vec::new() }
    }

    fn octet(&mut self, (data, dv, er): Octet) {
        let sim = &mut self.sim;
        set(sim, "data", data.into());
        set(sim, "dv", dv.into());
        set(sim, "er", er.into());
        if get(sim, "m_tvalid") != 0 {
            let keep = get(sim, "m_tkeep");
            let count = (!keep).trailing_zeros() as usize;
            let lanes = sim.output("m_tdata").unwrap();
            let limbs: Vec<u64> = sim.limbs(lanes).collect();
            let is_last = get(sim, "m_tlast") != 0;
            assert!(count == limbs.len() * 8 || is_last && count > 0, "a beat of {count} bytes");
            assert!(count == 64 || keep == (1 << count) - 1, "{keep:x}");
            self.frame.extend(limbs.iter().flat_map(|limb| limb.to_le_bytes()).take(count));
            let is_bad = get(sim, "m_tuser") != 0;
            assert!(is_last || !is_bad);
            if is_last {
                self.left.push((std::mem::take(&mut self.frame), is_bad));
            }
        }
        self.sim.step();
    }

    fn all(&mut self, octets: &[Octet]) {
        octets.iter().for_each(|octet| self.octet(*octet));
        (0..20).for_each(|_| self.octet(IDLE));
    }

    fn counted(&mut self, name: &str) -> u64 {
        get(&mut self.sim, name)
    }
}

/// A frame to all of an ARP request's type whose other bytes are 0 to 45; its check sequence is that of zlib.
fn known() -> (Vec<u8>, [u8; 4]) {
    let mut bytes = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6];
    bytes.extend(0..46);
    (bytes, [0x01, 0x84, 0x31, 0x2b])
}

#[test]
fn a_known_frame_octet_by_octet() {
    let (bytes, fcs) = known();
    let mut wire = vec![(0x55, true, false); 7];
    wire.push((0xd5, true, false));
    wire.extend(bytes.iter().chain(&fcs).map(|byte| (*byte, true, false)));
    assert_eq!(wire.len(), 72);
    let mut receiver = Receiver::new(64, 1518);
    receiver.octet(IDLE);
    receiver.all(&wire);
    assert_eq!(receiver.left, [(bytes.clone(), false)]);
    let counted = ["frames", "octets", "length_64", "broadcast", "multicast", "bad_check"];
    assert_eq!(counted.map(|name| receiver.counted(name)), [1, 64, 1, 1, 0, 0]);

    let mut sender = Sender::new(64);
    let sent = sender.send(&[(bytes, false)], &mut || 0);
    let start = sent.iter().position(|octet| octet.1).unwrap();
    assert_eq!(sent[start..start + 72], wire);
    assert!(sent[start + 72..].iter().all(|octet| *octet == IDLE));
    assert_eq!(["frames", "octets", "bad"].map(|name| get(&mut sender.sim, name)), [1, 64, 0]);
}

#[test]
fn frames_come_in_with_any_preamble_and_gap() {
    for width in [64, 128, 256, 512] {
        let mut rng = Rng::new(1);
        let (mut wire, mut wanted) = (vec![IDLE], Vec::new());
        for length in (60..200).chain([1514, 1000, 61]) {
            let bytes = random(&mut rng, length);
            wire.extend(on_wire(&bytes, rng.below(9)));
            // What is said between frames is nothing of a frame: false carrier, carrier extension.
            match rng.below(3) {
                0 => wire.extend([(0x0e, false, true), IDLE]),
                1 => wire.extend([(0x0f, false, true); 3]),
                _ => gap(&mut wire, 1 + rng.below(12)),
            }
            wanted.push((bytes, false));
        }
        let mut receiver = Receiver::new(width, 1518);
        receiver.all(&wire);
        assert_eq!(receiver.left, wanted, "{width} bits");
        assert_eq!(receiver.counted("frames"), wanted.len() as u64);
        let octets: usize = wanted.iter().map(|(bytes, _)| bytes.len() + 4).sum();
        assert_eq!(receiver.counted("octets"), octets as u64);
        assert_eq!((receiver.counted("length_64"), receiver.counted("length_1024_up")), (1, 1));
        assert_eq!((receiver.counted("length_65_127"), receiver.counted("length_512_1023")), (64, 1));
        assert_eq!((receiver.counted("bad_preamble"), receiver.counted("bad_control")), (0, 0));
    }
}

/// Each fault is counted as what it is, marked, and harms no frame after it.
#[test]
fn faults_are_counted_and_harm_nobody() {
    let mut rng = Rng::new(2);
    let good = random(&mut rng, 90);
    let faults: [(&str, Fault<'_>); 8] = [
        ("bad_check", &|rng| {
            let mut wire = on_wire(&random(rng, 80), 7);
            wire[30].0 ^= 4;
            wire
        }),
        ("runt", &|rng| {
            let length = rng.below(59);
            on_wire(&random(rng, length), 7)
        }),
        ("runt", &|rng| on_wire(&random(rng, 59), 7)),
        ("oversize", &|rng| {
            let length = 1515 + rng.below(600);
            on_wire(&random(rng, length), 7)
        }),
        ("bad_control", &|rng| {
            let mut wire = on_wire(&random(rng, 200), 7);
            let at = 8 + rng.below(204);
            wire[at].2 = true;
            wire
        }),
        ("bad_preamble", &|rng| {
            let mut wire = on_wire(&random(rng, 100), 7);
            wire[3].0 = 0x56;
            wire
        }),
        ("bad_preamble", &|rng| {
            let mut wire = on_wire(&random(rng, 100), 7);
            wire[rng.below(8)].2 = true;
            wire
        }),
        // The preamble alone.
        ("bad_preamble", &|rng| vec![(0x55, true, false); 1 + rng.below(20)]),
    ];
    for (name, fault) in faults {
        for width in [64, 256] {
            let mut receiver = Receiver::new(width, 1518);
            let (mut wire, mut good_ones) = (vec![IDLE], 0);
            for _ in 0..20 {
                wire.extend(on_wire(&good, 7));
                gap(&mut wire, 1 + rng.below(12));
                wire.extend(fault(&mut rng));
                gap(&mut wire, 1 + rng.below(12));
                good_ones += 1;
            }
            wire.extend(on_wire(&good, 7));
            receiver.all(&wire);
            for other in ["bad_check", "runt", "oversize", "bad_control", "bad_preamble"] {
                let wanted = if other == name { good_ones } else { 0 };
                assert_eq!(receiver.counted(other), wanted, "{name}: {other}");
            }
            assert_eq!(receiver.counted("frames"), good_ones + 1, "{name}");
            let fine = receiver.left.iter().filter(|(_, bad)| !bad);
            let fine: Vec<&Vec<u8>> = fine.map(|(bytes, _)| bytes).collect();
            assert!(fine.len() as u64 == good_ones + 1 && fine.iter().all(|bytes| **bytes == good), "{name}");
        }
    }
}

/// A frame whose first octets came during the reset, or while the port was down, is none.
#[test]
fn the_rest_of_a_frame_is_no_frame() {
    let mut rng = Rng::new(5);
    let bytes = random(&mut rng, 100);
    let inner = on_wire(&bytes, 7);
    let mut receiver = Receiver::new(64, 1518);
    receiver.all(&inner);
    set(&mut receiver.sim, "enable", 0);
    receiver.all(&inner);
    inner[..20].iter().for_each(|octet| receiver.octet(*octet));
    set(&mut receiver.sim, "enable", 1);
    receiver.all(&inner[20..]);
    assert!(receiver.left.is_empty());
    receiver.all(&inner);
    assert_eq!(receiver.left, [(bytes, false)]);
    assert_eq!((receiver.counted("frames"), receiver.counted("bad_preamble")), (1, 0));
}

#[test]
fn frames_for_others_are_filtered() {
    for width in [64, 512] {
        let mut receiver = Receiver::new(width, 1518);
        set(&mut receiver.sim, "station", 0x0200_0000_0001);
        set(&mut receiver.sim, "promiscuous", 0);
        let mut wire = vec![IDLE];
        let addresses = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1]];
        for address in addresses {
            let mut bytes = vec![7; 64];
            bytes[..6].copy_from_slice(&address);
            wire.extend(on_wire(&bytes, 7));
            gap(&mut wire, 12);
        }
        receiver.all(&wire);
        let left: Vec<u8> = receiver.left.iter().map(|(bytes, _)| bytes[0]).collect();
        assert_eq!(left, [2, 0xff, 0x33]);
        let counted = ["filtered", "broadcast", "multicast"].map(|name| receiver.counted(name));
        assert_eq!(counted, [1, 1, 1]);
    }
}

struct Sender {
    sim: Simulator,
    lanes: usize,
}

impl Sender {
    fn new(width: u32) -> Sender {
        let mut design = Design::new();
        gmii_transmit(&mut design, width);
        crate::verify(&design).unwrap();
        Sender { sim: Simulator::new(&design).unwrap(), lanes: width as usize / 8 }
    }

    /// What the wire has while these frames go out; `pause` says after each beat in how many cycles the next one is there at the earliest.
    fn send(&mut self, frames: &[(Vec<u8>, bool)], pause: &mut dyn FnMut() -> usize) -> Vec<Octet> {
        let mut wire = Vec::new();
        let mut waiting: VecDeque<(Vec<u8>, bool)> = frames.iter().cloned().collect();
        let (mut at, mut wait, mut idle) = (0, 0, 0);
        while idle < 100 {
            let sim = &mut self.sim;
            let there = wait == 0 && !waiting.is_empty();
            set(sim, "s_tvalid", u64::from(there));
            let mut last = false;
            if let (true, Some((bytes, bad))) = (there, waiting.front()) {
                let rest = &bytes[at..];
                let now = &rest[..rest.len().min(self.lanes)];
                last = rest.len() <= self.lanes;
                let mut data = vec![0xa5; self.lanes];
                data[..now.len()].copy_from_slice(now);
                let limbs: Vec<u64> =
                    data.chunks(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap())).collect();
                let signal = sim.input("s_tdata").unwrap();
                sim.set_limbs(signal, &limbs);
                set(sim, "s_tkeep", u64::MAX >> (64 - now.len()));
                set(sim, "s_tlast", u64::from(last));
                set(sim, "s_tuser", u64::from(last && *bad));
            }
            wire.push((get(sim, "data") as u8, get(sim, "en") != 0, get(sim, "er") != 0));
            wait = usize::saturating_sub(wait, 1);
            if there && get(sim, "s_tready") != 0 {
                at += self.lanes;
                wait = pause();
                if last {
                    waiting.pop_front();
                    at = 0;
                }
            }
            idle = if waiting.is_empty() { idle + 1 } else { 0 };
            sim.step();
        }
        wire
    }
}

/// A frame on a wire: its bytes, whether its check sequence is right, whether `er` was 1, the octets before it.
type Found = (Vec<u8>, bool, bool, usize);

fn read(wire: &[Octet]) -> Vec<Found> {
    let (mut found, mut gap) = (Vec::new(), 0);
    for run in wire.chunk_by(|a, b| a.1 == b.1) {
        if !run[0].1 {
            assert!(run.iter().all(|octet| !octet.2), "an error between frames");
            gap = run.len();
            continue;
        }
        let bytes: Vec<u8> = run.iter().map(|octet| octet.0).collect();
        assert_eq!(bytes[..8], [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5]);
        let (frame, fcs) = bytes[8..].split_at(bytes.len() - 12);
        found.push((frame.to_vec(), fcs == check(frame), run.iter().any(|octet| octet.2), gap));
    }
    found
}

#[test]
fn frames_go_out_whole_padded_and_apart() {
    for width in [64, 128, 512] {
        for pauses in [false, true] {
            let mut rng = Rng::new(3);
            let mut frames = Vec::new();
            for length in (1..140).chain((0..100).map(|at| 60 + at * 37 % 90)).chain([1514]) {
                let bad = rng.one_in(9);
                frames.push((random(&mut rng, length), bad));
            }
            let mut sender = Sender::new(width);
            // A beat is there after the last octet of the one before it, or earlier.
            let most = if pauses { width as usize / 8 } else { 1 };
            let wire = sender.send(&frames, &mut || rng.below(most));
            let found = read(&wire);
            assert_eq!(found.len(), frames.len());
            for ((wanted, bad), (bytes, right, error, _)) in frames.iter().zip(&found) {
                let mut padded = wanted.clone();
                padded.resize(wanted.len().max(60), 0);
                assert_eq!((bytes, *right, *error), (&padded, !bad, *bad));
            }
            let gaps = found.iter().skip(1).map(|(.., gap)| *gap);
            assert!(gaps.clone().all(|gap| if pauses { gap >= 12 } else { gap == 12 }), "{width} bits");
            let good: Vec<usize> =
                frames.iter().filter(|(_, bad)| !bad).map(|(bytes, _)| bytes.len().max(60) + 4).collect();
            let counted = ["frames", "octets", "bad", "underrun"].map(|name| get(&mut sender.sim, name));
            let (all, octets) = (good.len() as u64, good.iter().sum::<usize>() as u64);
            assert_eq!(counted, [all, octets, frames.len() as u64 - all, 0]);
        }
    }
}

/// A beat that comes too late ends its frame with an error and a wrong check sequence; what comes after is whole.
#[test]
fn a_late_beat_ends_the_frame() {
    let mut rng = Rng::new(6);
    let frames: Vec<(Vec<u8>, bool)> = (0..40).map(|_| (random(&mut rng, 100), false)).collect();
    let mut sender = Sender::new(64);
    let mut beats = 0;
    // The fifth beat of each second frame is late by a cycle.
    let wire = sender.send(&frames, &mut || {
        beats += 1;
        if beats % 26 == 4 { 8 } else { 7 }
    });
    let found = read(&wire);
    assert_eq!(found.len(), frames.len());
    for (at, ((wanted, _), (bytes, right, error, gap))) in frames.iter().zip(&found).enumerate() {
        assert!(at == 0 || *gap >= 12);
        match at % 2 {
            0 => assert_eq!((&bytes[..], *right, *error), (&wanted[..32], false, true), "frame {at}"),
            _ => assert_eq!((bytes, *right, *error), (wanted, true, false), "frame {at}"),
        }
    }
    let counted = ["frames", "bad", "underrun"].map(|name| get(&mut sender.sim, name));
    assert_eq!(counted, [20, 0, 20]);
}

/// Frames of all sizes at line rate from one MAC to another, whose stream may be of another width.
#[test]
fn all_sizes_from_mac_to_mac() {
    for (out, width) in [(64, 64), (512, 64), (64, 512)] {
        let mut rng = Rng::new(4);
        let frames: Vec<(Vec<u8>, bool)> =
            (60..=1514).map(|length| (random(&mut rng, length), false)).collect();
        let wire = Sender::new(out).send(&frames, &mut || 0);
        let octets: usize = frames.iter().map(|(bytes, _)| 8 + bytes.len() + 4 + 12).sum();
        let busy =
            wire.iter().rposition(|octet| octet.1).unwrap() - wire.iter().position(|octet| octet.1).unwrap();
        assert_eq!(busy + 1 + 12, octets, "line rate");
        let mut receiver = Receiver::new(width, 1518);
        receiver.all(&wire);
        assert!(receiver.left == frames, "{out} to {width} bits");
        assert_eq!(receiver.counted("frames"), 1455);
    }
}
