//! Both halves next to frames that are put on the wire, and read from it, character by character.

use super::super::mac::frames::{check, random};
use super::*;
use crate::arbitrary::Rng;
use std::collections::VecDeque;

/// A character, and whether it is a control character.
type Character = (u8, bool);

/// Makes a frame that has a fault.
type Fault<'a> = &'a dyn Fn(&mut Rng) -> Vec<Character>;

fn control(character: u32) -> Character {
    (character as u8, true)
}

/// A frame with its check sequence, from the start character to the terminator.
fn on_wire(bytes: &[u8]) -> Vec<Character> {
    let mut all = vec![control(START)];
    all.extend([0x55; 6].map(|byte| (byte, false)));
    all.push((0xd5, false));
    all.extend(bytes.iter().chain(&check(bytes)).map(|byte| (*byte, false)));
    all.push(control(TERMINATE));
    all
}

struct Receiver {
    sim: Simulator,
    left: Vec<(Vec<u8>, bool)>,
    frame: Vec<u8>,
}

impl Receiver {
    fn new(longest: u32) -> Receiver {
        let mut design = Design::new();
        xgmii_receive(&mut design, longest);
        crate::verify(&design).unwrap();
        let mut sim = Simulator::new(&design).unwrap();
        for (name, value) in [("enable", 1), ("promiscuous", 1)] {
            let signal = sim.input(name).unwrap();
            sim.set_u64(signal, value);
        }
        Receiver { sim, left: Vec::new(), frame: Vec::new() }
    }

    fn word(&mut self, characters: &[Character]) {
        let (mut data, mut flags) = (0u64, 0u64);
        for (lane, (byte, is_control)) in characters.iter().enumerate() {
            data |= u64::from(*byte) << (8 * lane);
            flags |= u64::from(*is_control) << lane;
        }
        let (to_data, to_control) = (self.sim.input("data").unwrap(), self.sim.input("control").unwrap());
        self.sim.set_u64(to_data, data);
        self.sim.set_u64(to_control, flags);
        let out = |sim: &mut Simulator, name: &str| {
            let signal = sim.output(name).unwrap();
            sim.get_u64(signal)
        };
        if out(&mut self.sim, "m_tvalid") != 0 {
            let count = (!out(&mut self.sim, "m_tkeep")).trailing_zeros() as usize;
            let data = out(&mut self.sim, "m_tdata").to_le_bytes();
            self.frame.extend(&data[..count]);
            if out(&mut self.sim, "m_tlast") != 0 {
                let bad = out(&mut self.sim, "m_tuser") != 0;
                self.left.push((std::mem::take(&mut self.frame), bad));
            }
        }
        self.sim.step();
    }

    fn all(&mut self, characters: &[Character]) {
        let mut all = characters.to_vec();
        all.resize(all.len().next_multiple_of(8) + 48, control(IDLE));
        all.chunks(8).for_each(|word| self.word(word));
    }

    fn counted(&mut self, name: &str) -> u64 {
        let signal = self.sim.output(name).unwrap();
        self.sim.get_u64(signal)
    }
}

/// Characters of idle up to a lane where a frame may start, at least so many.
fn gap(wire: &mut Vec<Character>, least: usize, half: usize) {
    (0..least).for_each(|_| wire.push(control(IDLE)));
    while wire.len() % 8 != half * 4 {
        wire.push(control(IDLE));
    }
}

#[test]
fn frames_come_in_from_both_lanes() {
    let mut rng = Rng::new(1);
    let (mut wire, mut wanted) = (Vec::new(), Vec::new());
    for length in (60..140).chain([1514, 1000, 61]) {
        let bytes = random(&mut rng, length);
        let (least, half) = (4 + rng.below(9), rng.below(2));
        gap(&mut wire, least, half);
        wire.extend(on_wire(&bytes));
        wanted.push((bytes, false));
    }
    let mut receiver = Receiver::new(1518);
    receiver.all(&wire);
    assert_eq!(receiver.left, wanted);
    assert_eq!(receiver.counted("frames"), wanted.len() as u64);
    let octets: usize = wanted.iter().map(|(bytes, _)| bytes.len() + 4).sum();
    assert_eq!(receiver.counted("octets"), octets as u64);
    assert_eq!((receiver.counted("length_64"), receiver.counted("length_1024_up")), (1, 1));
}

/// Each fault is counted as what it is, marked, and harms no frame after it.
#[test]
fn faults_are_counted_and_harm_nobody() {
    let mut rng = Rng::new(2);
    let good = random(&mut rng, 90);
    let faults: [(&str, Fault<'_>); 6] = [
        ("bad_check", &|rng| {
            let mut wire = on_wire(&random(rng, 80));
            wire[30].0 ^= 4;
            wire
        }),
        ("runt", &|rng| {
            let length = rng.below(59);
            on_wire(&random(rng, length))
        }),
        ("oversize", &|rng| {
            let length = 1519 + rng.below(600);
            on_wire(&random(rng, length))
        }),
        ("bad_control", &|rng| {
            let mut wire = on_wire(&random(rng, 200));
            let at = 9 + rng.below(190);
            wire[at] = control(ERROR);
            // What is after the error is nothing until the next start.
            wire
        }),
        ("bad_control", &|rng| {
            // A stream without an end.
            let mut wire = on_wire(&random(rng, 100));
            wire.pop();
            wire
        }),
        ("bad_preamble", &|rng| {
            let mut wire = on_wire(&random(rng, 100));
            wire[3].0 = 0x56;
            wire
        }),
    ];
    for (name, fault) in faults {
        for half in [0, 1] {
            let mut receiver = Receiver::new(1518);
            let (mut wire, mut good_ones) = (Vec::new(), 0);
            for _ in 0..20 {
                gap(&mut wire, 8, half);
                wire.extend(on_wire(&good));
                let other = rng.below(2);
                gap(&mut wire, 8, other);
                wire.extend(fault(&mut rng));
                good_ones += 1;
            }
            gap(&mut wire, 8, half);
            wire.extend(on_wire(&good));
            receiver.all(&wire);
            assert_eq!(receiver.counted(name), good_ones, "{name}");
            assert_eq!(receiver.counted("frames"), good_ones + 1, "{name}");
            let fine = receiver.left.iter().filter(|(_, bad)| !bad);
            let fine: Vec<&Vec<u8>> = fine.map(|(bytes, _)| bytes).collect();
            assert!(fine.len() as u64 == good_ones + 1 && fine.iter().all(|bytes| **bytes == good), "{name}");
        }
    }
}

/// A frame without a terminator that another follows at once is bad. The other is received as a whole, or counted as no start if it
/// begins in the word that ends the first; the frame after them is received.
#[test]
fn a_start_within_a_frame_ends_it() {
    for half in [0, 1] {
        for length in [80, 84] {
            let mut rng = Rng::new(5);
            let mut wire = Vec::new();
            gap(&mut wire, 8, half);
            let [broken, other, good] = [length, 90, 100].map(|length| random(&mut rng, length));
            wire.extend(on_wire(&broken));
            wire.pop();
            wire.extend(on_wire(&other));
            gap(&mut wire, 8, half);
            wire.extend(on_wire(&good));
            let mut receiver = Receiver::new(1518);
            receiver.all(&wire);
            // Of a frame in lane 4 the word that ends before lane 0 is over when a start comes there.
            let is_received = half == 1 && length == 80;
            assert_eq!(receiver.counted("bad_control"), 1);
            assert_eq!(receiver.counted("bad_preamble"), u64::from(!is_received));
            let fine: Vec<&Vec<u8>> =
                receiver.left.iter().filter(|(_, bad)| !bad).map(|(bytes, _)| bytes).collect();
            let wanted = if is_received { vec![&other, &good] } else { vec![&good] };
            assert_eq!(fine, wanted, "lane {}, {length} bytes", 4 * half);
        }
    }
}

#[test]
fn frames_for_others_are_filtered() {
    let mut receiver = Receiver::new(1518);
    for (name, value) in [("station", 0x0200_0000_0001), ("promiscuous", 0)] {
        let signal = receiver.sim.input(name).unwrap();
        receiver.sim.set_u64(signal, value);
    }
    let mut wire = Vec::new();
    let addresses = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1]];
    for address in addresses {
        let mut bytes = vec![7; 64];
        bytes[..6].copy_from_slice(&address);
        gap(&mut wire, 8, 1);
        wire.extend(on_wire(&bytes));
    }
    receiver.all(&wire);
    let left: Vec<u8> = receiver.left.iter().map(|(bytes, _)| bytes[0]).collect();
    assert_eq!(left, [2, 0xff, 0x33]);
    assert_eq!(
        (receiver.counted("filtered"), receiver.counted("broadcast"), receiver.counted("multicast")),
        (1, 1, 1)
    );
}

/// What the sending half puts on the wire, character by character; `pauses` between frames. Where these are told of before they come, they
/// begin a cycle earlier.
fn send(
    frames: &[(Vec<u8>, bool)],
    rng: &mut Rng,
    (pauses, is_told): (bool, bool),
) -> (Vec<Character>, Simulator) {
    let mut design = Design::new();
    xgmii_transmit(&mut design);
    crate::verify(&design).unwrap();
    let mut sim = Simulator::new(&design).unwrap();
    let mut wire = Vec::new();
    let mut waiting: VecDeque<(Vec<u8>, bool)> = frames.iter().cloned().collect();
    let (mut at, mut pause, mut idle) = (0, 0, 0);
    while idle < 40 {
        let set = |sim: &mut Simulator, name: &str, value: u64| {
            let signal = sim.input(name).unwrap();
            sim.set_u64(signal, value);
        };
        let there = pause == 0 && !waiting.is_empty();
        set(&mut sim, "s_tvalid", u64::from(there));
        set(&mut sim, "s_soon", u64::from(is_told && pause <= 1 && !waiting.is_empty()));
        let mut last = false;
        if let (true, Some((bytes, bad))) = (there, waiting.front()) {
            let rest = &bytes[at..];
            let now = &rest[..rest.len().min(8)];
            last = rest.len() <= 8;
            let mut data = [0; 8];
            data[..now.len()].copy_from_slice(now);
            set(&mut sim, "s_tdata", u64::from_le_bytes(data));
            set(&mut sim, "s_tkeep", 0xff >> (8 - now.len()));
            set(&mut sim, "s_tlast", u64::from(last));
            set(&mut sim, "s_tuser", u64::from(last && *bad));
        }
        let get = |sim: &mut Simulator, name: &str| {
            let signal = sim.output(name).unwrap();
            sim.get_u64(signal)
        };
        let (data, flags) = (get(&mut sim, "data").to_le_bytes(), get(&mut sim, "control"));
        wire.extend(data.iter().enumerate().map(|(lane, byte)| (*byte, flags >> lane & 1 != 0)));
        let ready = get(&mut sim, "s_tready") != 0;
        pause = usize::saturating_sub(pause, 1);
        if there && ready {
            at += 8;
            if last {
                waiting.pop_front();
                at = 0;
                if pauses && rng.one_in(3) {
                    pause = rng.below(20);
                }
            }
        }
        idle = if waiting.is_empty() { idle + 1 } else { 0 };
        sim.step();
    }
    (wire, sim)
}

/// The frames on a wire with whether their check sequence is right, and the idle characters before each.
fn read(wire: &[Character]) -> Vec<(Vec<u8>, bool, usize)> {
    let (mut found, mut at, mut gap) = (Vec::new(), 0, 0);
    while at < wire.len() {
        if wire[at] != control(START) {
            assert_eq!(wire[at], control(IDLE), "character {at}");
            (at, gap) = (at + 1, gap + 1);
            continue;
        }
        assert_eq!(at % 4, 0, "a frame starts in lane 0 or 4");
        let preamble: Vec<u8> = wire[at + 1..at + 8].iter().map(|(byte, _)| *byte).collect();
        assert_eq!(preamble, [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5]);
        let end = at + wire[at..].iter().position(|character| *character == control(TERMINATE)).unwrap();
        let bytes: Vec<u8> = wire[at + 8..end].iter().map(|(byte, _)| *byte).collect();
        assert!(wire[at + 8..end].iter().all(|(_, is_control)| !is_control));
        let (frame, fcs) = bytes.split_at(bytes.len() - 4);
        found.push((frame.to_vec(), fcs == check(frame), gap));
        // The terminator is part of the gap.
        (at, gap) = (end + 1, 1);
    }
    found
}

#[test]
fn frames_go_out_whole_padded_and_apart() {
    for (pauses, is_told) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut rng = Rng::new(3);
        let mut frames = Vec::new();
        for length in (1..140).chain((0..300).map(|at| 60 + at * 37 % 90)).chain([1514]) {
            let bad = rng.one_in(9);
            frames.push((random(&mut rng, length), bad));
        }
        let (wire, mut sim) = send(&frames, &mut rng, (pauses, is_told));
        let found = read(&wire);
        assert_eq!(found.len(), frames.len());
        for ((wanted, bad), (bytes, right, _)) in frames.iter().zip(&found) {
            let mut padded = wanted.clone();
            padded.resize(wanted.len().max(60), 0);
            assert_eq!((bytes, *right), (&padded, !bad));
        }
        let gaps: Vec<usize> = found.iter().skip(1).map(|(.., gap)| *gap).collect();
        assert!(gaps.iter().all(|gap| *gap >= 9), "{gaps:?}");
        let sum: usize = gaps.iter().sum();
        assert!(sum >= 12 * gaps.len() - 3, "{sum} characters in {} gaps", gaps.len());
        if !pauses {
            assert!(sum <= 12 * gaps.len() + 16, "{sum} characters in {} gaps", gaps.len());
        }
        let counted = sim.output("frames").unwrap();
        let good = frames.iter().filter(|(_, bad)| !bad).count();
        assert_eq!(sim.get_u64(counted), good as u64);
    }
}

/// A frame that was told of in the cycle before its first beat begins a cycle earlier than one that was not.
#[test]
fn a_frame_that_is_told_of_begins_earlier() {
    let [at_once, told] = [false, true].map(|is_told| {
        let mut design = Design::new();
        xgmii_transmit(&mut design);
        let mut sim = Simulator::new(&design).unwrap();
        let [valid, soon] = ["s_tvalid", "s_soon"].map(|name| sim.input(name).unwrap());
        let control = sim.output("control").unwrap();
        (0..40)
            .position(|cycle| {
                sim.set_u64(soon, u64::from(is_told && cycle >= 9));
                sim.set_u64(valid, u64::from(cycle >= 10));
                let starts = sim.get_u64(control) == 1;
                sim.step();
                starts
            })
            .unwrap()
    });
    assert_eq!(at_once - told, 1);
}

/// Frames of the least length leave as often as the link can carry them.
#[test]
fn least_frames_go_out_at_line_rate() {
    let mut rng = Rng::new(4);
    let frames: Vec<(Vec<u8>, bool)> = (0..100).map(|_| (random(&mut rng, 60), false)).collect();
    for is_told in [false, true] {
        let (wire, _) = send(&frames, &mut rng, (false, is_told));
        let starts: Vec<usize> =
            wire.iter().enumerate().filter(|(_, one)| **one == control(START)).map(|(at, _)| at).collect();
        assert_eq!(starts.len(), 100);
        assert_eq!(starts[99] - starts[0], 99 * 84);
    }
}
