//! What an editor makes of frames, next to bytes that are put together.

use millrace_netlist::arbitrary::Rng;
use millrace_netlist::blocks::{self, EditorShape};
use millrace_netlist::{Bits, Design, SignalId, Simulator};
use std::collections::BTreeMap;

/// A frame in memory, and what becomes of it.
struct Frame {
    old: Vec<u8>,
    new: Vec<u8>,
    from: usize,
    is_bad: bool,
}

impl Frame {
    /// A frame whose bytes move as the shape allows.
    fn random(rng: &mut Rng, shape: EditorShape) -> Frame {
        loop {
            let length = 1 + rng.below(5 * shape.bytes() as usize);
            let (new, from) = (rng.below(shape.emitted as usize + 1), rng.below(length.min(40) + 1));
            let by = (new as u32).wrapping_sub(from as u32) % shape.bytes();
            if shape.moves >> by & 1 == 1 {
                let mut bytes = |count: usize| (0..count).map(|_| rng.below(256) as u8).collect();
                let (old, new) = (bytes(length), bytes(new));
                return Frame { old, new, from, is_bad: rng.one_in(4) };
            }
        }
    }

    /// Lanes by which the old bytes move, the first step, whether they move to the front: with ten bytes instead of the first two of a
    /// frame they move by a word of eight bytes, so the first step is one before the first word.
    fn moves(&self, shape: EditorShape) -> Bits {
        let (by, bytes) = (self.new.len() as i64 - self.from as i64, i64::from(shape.bytes()));
        let (lanes, words) = (by.rem_euclid(bytes), by.div_euclid(bytes));
        let first = if by < 0 { -words - 1 } else { -words };
        let (all, bits) = (shape.place() - shape.lane(), |width: u32, value: i64| {
            Bits::new(width, (value as u64 & ((1 << width) - 1)).into())
        });
        bits(1, i64::from(by < 0)).concat(&bits(all, first)).concat(&bits(shape.lane(), lanes))
    }

    fn expected(&self) -> Vec<u8> {
        [&self.new[..], &self.old[self.from..]].concat()
    }

    /// Whether a word is the last, and its bytes less one.
    fn end(&self, shape: EditorShape, number: usize) -> (bool, usize) {
        let start = number * shape.bytes() as usize;
        let bytes = self.old.len().saturating_sub(start).min(shape.bytes() as usize);
        (start + shape.bytes() as usize >= self.old.len(), bytes.saturating_sub(1))
    }

    /// The bytes of a word in memory.
    fn word(&self, shape: EditorShape, number: usize) -> Bits {
        let bytes = shape.bytes() as usize;
        let part =
            &self.old[(number * bytes).min(self.old.len())..((number + 1) * bytes).min(self.old.len())];
        let mut all: Vec<u8> = part.to_vec();
        all.resize(bytes, 0xee);
        all.reverse();
        Bits::from_bytes(shape.data, &all)
    }
}

/// Sends frames through an editor whose memory and whose output have it wait at random.
fn exercise(shape: EditorShape, frames: usize) {
    let mut design = Design::new();
    blocks::editor(&mut design, shape);
    let mut sim = Simulator::new(&design).unwrap();
    let inputs = [
        "start",
        "emitted",
        "emitted_bytes",
        "moves",
        "available",
        "ends",
        "less",
        "bad",
        "stored",
        "m_tready",
    ];
    let inputs: BTreeMap<&str, SignalId> =
        inputs.into_iter().map(|name| (name, sim.input(name).unwrap())).collect();
    let outputs = ["take", "read", "word", "done", "m_tdata", "m_tkeep", "m_tlast", "m_tuser", "m_tvalid"];
    let outputs: BTreeMap<&str, SignalId> =
        outputs.into_iter().map(|name| (name, sim.output(name).unwrap())).collect();
    let mut rng = Rng::new(u64::from(shape.data) + shape.moves.count_ones() as u64);
    let (mut next, mut current) = (Frame::random(&mut rng, shape), None::<Frame>);
    let (mut stored, mut got, mut ended) = (Bits::zero(shape.data), Vec::new(), 0);
    let mut expected: Vec<(Vec<u8>, bool)> = Vec::new();
    let (mut left, mut cycles) = (frames, 0);
    while ended < frames {
        cycles += 1;
        assert!(cycles < 200 * frames, "an editor that stands still");
        let starts = left > 0 && !rng.one_in(4);
        let mut emitted = next.new.clone();
        emitted.resize(shape.emitted.max(1) as usize, 0);
        sim.set(inputs["start"], &Bits::new(1, u128::from(starts)));
        sim.set(inputs["emitted"], &Bits::from_bytes(shape.emitted.max(1) * 8, &emitted));
        sim.set(inputs["emitted_bytes"], &Bits::new(shape.place(), next.new.len() as u128));
        sim.set(inputs["moves"], &next.moves(shape));
        sim.set_u64(inputs["available"], u64::from(!rng.one_in(3)));
        sim.set(inputs["stored"], &stored);
        let ready = !rng.one_in(3);
        sim.set_u64(inputs["m_tready"], ready.into());
        let flag = |sim: &mut Simulator, name: &str| sim.get_u64(outputs[name]) == 1;
        if flag(&mut sim, "m_tvalid") && ready {
            let (data, keep) = (sim.get(outputs["m_tdata"]), sim.get(outputs["m_tkeep"]));
            let kept = (0..shape.bytes()).filter(|byte| keep.bit(*byte));
            got.extend(kept.map(|byte| data.slice(8 * byte + 7, 8 * byte).to_u64().unwrap() as u8));
            if flag(&mut sim, "m_tlast") {
                let bad = flag(&mut sim, "m_tuser");
                assert_eq!((std::mem::take(&mut got), bad), expected.remove(0));
                ended += 1;
            }
        }
        let word = sim.get_u64(outputs["word"]) as usize;
        let (ends, less) = current.as_ref().map_or((false, 0), |frame| frame.end(shape, word));
        sim.set_u64(inputs["ends"], ends.into());
        sim.set_u64(inputs["less"], less as u64);
        // What is told of another word than the last counts for nothing.
        let is_bad = if ends { current.as_ref().is_some_and(|frame| frame.is_bad) } else { rng.one_in(2) };
        sim.set_u64(inputs["bad"], is_bad.into());
        let read = flag(&mut sim, "read").then(|| current.as_ref().expect("a frame").word(shape, word));
        stored = read.unwrap_or(stored);
        if flag(&mut sim, "done") && current.take().is_some_and(|frame| frame.expected().is_empty()) {
            ended += 1;
        }
        if flag(&mut sim, "take") && starts {
            if !next.expected().is_empty() {
                expected.push((next.expected(), next.is_bad));
            }
            current = Some(std::mem::replace(&mut next, Frame::random(&mut rng, shape)));
            left -= 1;
        }
        sim.step();
    }
}

#[test]
fn frames_come_out_as_they_are_put_together() {
    for (data, emitted) in [(64, 0), (64, 54), (128, 34), (256, 42), (512, 34)] {
        let bytes = data / 8;
        let all = EditorShape::all_moves(data);
        let four = 1 | 1 << 3 | 1 << (bytes - 3);
        let even = (0..bytes).filter(|by| by % 4 == 0).fold(0, |moves, by| moves | 1 << by);
        for moves in [all, 1, 1 << 2, four, even | 1 << 2, 1 << 1 | 1 << (bytes - 1)] {
            let shape = EditorShape { data, emitted, word: 6, moves };
            exercise(shape, 200);
        }
    }
}
