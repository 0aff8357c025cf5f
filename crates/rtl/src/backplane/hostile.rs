//! Slots that do what they want with their signals, and what the others notice of it.

use super::tests::write;
use super::{BEAT, Backplane, BackplaneOptions, HOLD, LONGEST, Place, QUEUE, REFILL, Rule};
use crate::streams::{Stream, get, set};
use millrace_netlist::{SignalKind, Simulator};
use millrace_pipeline::Bits;
use millrace_pipeline::arbitrary::Rng;

const WIDTH: u32 = 64;
/// Beats of a frame of slot 1.
const BEATS: u64 = 8;

/// Offers a whole beat at a stream.
fn offer(sim: &mut Simulator, stream: &Stream, data: u64, is_last: bool) {
    let values = [data, 0xff, is_last.into(), 0];
    stream.beat.into_iter().zip(values).for_each(|(signal, value)| set(sim, signal, value));
    set(sim, stream.valid, 1);
}

/// The beat that passes: its data, whether it ends a frame, and a bad one.
fn passing(sim: &mut Simulator, stream: &Stream) -> Option<(u64, bool, bool)> {
    let [data, _, last, user] = stream.beat;
    stream.passes(sim).then(|| (get(sim, data), get(sim, last) == 1, get(sim, user) == 1))
}

/// Two slots of one port, open; frames whose destination ends with `n` go to slot `n`, and both leave by port 0.
fn backplane() -> Simulator {
    let options = BackplaneOptions { slots: 2, ports: 1, width: WIDTH };
    let mut design = Backplane::new(options).unwrap().design().clone();
    millrace_netlist::passes::optimize(&mut design);
    let mut sim = Simulator::new(&design).unwrap();
    for slot in 0..2 {
        let destination = Some([2, 0, 0, 0, 0, slot as u8]);
        let rule = Rule { lines: 1, vlan: None, destination, from: None, to: Place { slot, port: 0 } };
        write(&mut sim, "rule", slot.into(), &rule.word(&options));
        write(&mut sim, "map", slot.into(), &Bits::new(1, 0));
        write(&mut sim, "gate", slot.into(), &Bits::new(2, 0));
    }
    sim
}

/// A beat of a frame to a slot; the second one has its number.
fn beat(number: u64, at: u64) -> u64 {
    match at {
        0 => u64::from_le_bytes([2, 0, 0, 0, 0, (number % 2) as u8, 2, 0]),
        1 => number << 32,
        _ => 0,
    }
}

/// Frames of so many beats to both slots in turn, at the rate of a line, while slot 0 takes beats as it likes: slot 1 gets all of its
/// frames, and none late. What slot 0 was offered stays until it is taken, and each frame of it is whole, cut, or dropped and counted.
fn a_slot_takes(beats: u64, mut takes: impl FnMut(u64) -> bool) {
    let frames = 4800 / beats;
    let every = beats * 4 / 3 + 1;
    let mut sim = backplane();
    let line = Stream::of(&sim, "rx0", SignalKind::Input);
    let slots = [0, 1].map(|slot| Stream::of(&sim, &format!("slot{slot}_rx0"), SignalKind::Output));
    set(&mut sim, slots[1].ready, 1);
    let begun = sim.cycle();
    let (mut number, mut at) = (0, 0);
    let mut got: Vec<(u64, u64)> = Vec::new();
    let (mut whole, mut cut, mut offered, mut part) = (0, 0, None, Vec::new());
    while sim.cycle() < begun + frames * every + 200 {
        let now = sim.cycle() - begun;
        match number < frames && now >= number * every + at {
            true => offer(&mut sim, &line, beat(number, at), at == beats - 1),
            false => set(&mut sim, line.valid, 0),
        }
        set(&mut sim, slots[0].ready, takes(now).into());
        if passing(&mut sim, &line).is_some() {
            (number, at) = if at == beats - 1 { (number + 1, 0) } else { (number, at + 1) };
        }
        if let Some((data, _, _)) = passing(&mut sim, &slots[1])
            && data >> 32 != 0
            && data as u32 == 0
        {
            got.push((data >> 32, now));
        }
        let before = offered.take();
        if get(&mut sim, slots[0].valid) == 1 {
            let is = slots[0].beat.map(|signal| get(&mut sim, signal));
            assert!(before.is_none_or(|before| before == is), "a beat changed before it was taken");
            match passing(&mut sim, &slots[0]) {
                Some((data, last, bad)) => {
                    part.push(data);
                    if last {
                        let number = part.get(1).map_or(0, |data| data >> 32);
                        let sent: Vec<u64> = (0..beats).map(|at| beat(number, at)).collect();
                        match bad {
                            true => assert!(sent.starts_with(&part[..part.len() - 1])),
                            false => assert_eq!(sent, part),
                        }
                        *(if bad { &mut cut } else { &mut whole }) += 1;
                        part.clear();
                    }
                }
                None => offered = Some(is),
            }
        } else {
            assert!(before.is_none(), "a beat went before it was taken");
        }
        sim.step();
    }
    let of_slot: Vec<u64> = (0..frames).filter(|number| number % 2 == 1).collect();
    assert_eq!(got.iter().map(|(number, _)| *number).collect::<Vec<_>>(), of_slot);
    let late = got.iter().map(|(number, at)| at - number * every).max();
    assert!(late <= Some(30), "{late:?} cycles");
    let dropped = sim.output("slot0_rx0_dropped").unwrap();
    let dropped = sim.get_u64(dropped);
    let waiting = u64::from(QUEUE) / beats + 1;
    let all = frames / 2;
    assert!((all - waiting..=all).contains(&(whole + dropped)), "{whole} whole, {dropped} dropped of {all}");
    // Frames that fit into the queue are dropped as a whole.
    assert!(if beats < u64::from(QUEUE) { cut == 0 } else { cut <= dropped }, "{cut} cut");
}

#[test]
fn a_slot_that_takes_no_beats_holds_up_nobody() {
    for beats in [8, 30, 100] {
        a_slot_takes(beats, |_| true);
        a_slot_takes(beats, |_| false);
        for every in [2, 3, 9, 16, 33, 100] {
            a_slot_takes(beats, |now| now % every == 0);
            a_slot_takes(beats, |now| now % every != 0);
            // Takes all for some time, and then nothing.
            a_slot_takes(beats, |now| now / (every * 10) % 2 == 0);
        }
        for seed in 0..8 {
            let mut rng = Rng::new(seed);
            a_slot_takes(beats, |_| rng.below(seed as usize + 2) == 0);
        }
    }
}

/// Both slots send to one port, slot 1 a frame each 100 cycles, slot 0 what it likes: a beat, its end or none. All of slot 1 leaves,
/// whole, and none waits for more than the longest frame and the patience with slot 0.
fn a_slot_says(mut says: impl FnMut(u64) -> Option<bool>) -> (u64, u64) {
    const FRAMES: u64 = 120;
    const EVERY: u64 = 100;
    let mut sim = backplane();
    let line = Stream::of(&sim, "tx0", SignalKind::Output);
    set(&mut sim, line.ready, 1);
    let slots = [0, 1].map(|slot| Stream::of(&sim, &format!("slot{slot}_tx0"), SignalKind::Input));
    let begun = sim.cycle();
    let longest = u64::from(LONGEST / (WIDTH / 8));
    let (mut number, mut at, mut left) = (0, 0, 0);
    let (mut of, mut beats, mut others) = (None, 0, 0);
    let (mut latest, mut free) = (0, 0);
    while left < FRAMES {
        let now = sim.cycle() - begun;
        assert!(now < FRAMES * (EVERY + longest + 200), "{left} of {number} have left");
        match number < FRAMES && now >= number * EVERY {
            true => offer(&mut sim, &slots[1], 1 << 63 | number << 8 | at, at == BEATS - 1),
            false => set(&mut sim, slots[1].valid, 0),
        }
        match says(now) {
            Some(last) => offer(&mut sim, &slots[0], 0, last),
            None => set(&mut sim, slots[0].valid, 0),
        }
        if passing(&mut sim, &slots[1]).is_some() {
            (number, at) = if at == BEATS - 1 { (number + 1, 0) } else { (number, at + 1) };
        }
        if let Some((data, last, bad)) = passing(&mut sim, &line) {
            let is_ours = data >> 63 == 1;
            assert!(of.is_none_or(|of| of == is_ours), "frames are mixed");
            if is_ours {
                assert_eq!((data & !(1 << 63), bad), (left << 8 | beats, false));
            }
            (of, beats) = (Some(is_ours), beats + 1);
            assert!(beats <= longest + 1, "a frame of {beats} beats");
            if last {
                (of, beats) = (None, 0);
                if is_ours {
                    // Since it came, or since the one before it had left.
                    let waited = now - free.max(left * EVERY);
                    (left, latest, free) = (left + 1, latest.max(waited), now);
                } else {
                    others += 1;
                }
            }
        }
        sim.step();
    }
    let cut = sim.output("slot0_tx0_cut").unwrap();
    let cut = sim.get_u64(cut);
    assert!(cut <= others + 1);
    // One frame of slot 0, with all cycles in which it may say nothing.
    let most = longest + longest / u64::from(REFILL) + u64::from(HOLD);
    assert!(latest <= 20 + BEATS + most, "{latest}");
    (cut, latest)
}

#[test]
fn a_slot_that_does_not_end_its_frames_holds_up_nobody() {
    let silence = u64::from(HOLD + HOLD / REFILL) + 30;
    assert_eq!(a_slot_says(|_| None).0, 0);
    // One beat, and nothing after it.
    let (cut, latest) = a_slot_says(|now| (now == 5).then_some(false));
    assert!(cut == 1 && latest < silence, "{cut}, {latest}");
    // A beat now and then, and never an end: most of its time is silence.
    for every in [2, 10, 33, 50] {
        let (cut, latest) = a_slot_says(|now| (now % every == 0).then_some(false));
        assert!(cut >= 1 && latest < u64::from(LONGEST / 8) * 2, "{every}: {cut}, {latest}");
    }
    // A frame without an end.
    assert!(a_slot_says(|_| Some(false)).0 >= 1);
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        a_slot_says(|_| (rng.below(3) == 0).then(|| rng.below(10) == 0));
    }
}

/// What a slot has used counts in the long run, also a frame that it begins with its last token: half the rate is half the beats.
#[test]
fn rates_hold_in_the_long_run() {
    let mut sim = backplane();
    write(&mut sim, "rate", 0, &Bits::new(16, u128::from(BEAT / 2)));
    let line = Stream::of(&sim, "tx0", SignalKind::Output);
    set(&mut sim, line.ready, 1);
    let slot = Stream::of(&sim, "slot0_tx0", SignalKind::Input);
    let (mut beats, mut at) = (0u64, 0);
    let cycles = 20_000;
    for _ in 0..cycles {
        offer(&mut sim, &slot, 0, at % 100 == 99);
        at += u64::from(passing(&mut sim, &slot).is_some());
        beats += u64::from(passing(&mut sim, &line).is_some());
        sim.step();
    }
    let allowed = cycles / 2..=cycles / 2 + u64::from(super::BURST) + 100;
    assert!(allowed.contains(&beats), "{beats}");
}
