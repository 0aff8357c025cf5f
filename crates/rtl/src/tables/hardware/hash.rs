//! Exact keys: a memory for each hash, and in full units a stash that is compared with every key.
//!
//! A hash is a matrix of random bits times the key, to which first, in parts of 32 bits, a number is added that software chooses (the
//! *seed*). The sum is what makes hashes with another seed different ones: without it, keys that meet in all memories, of which there are
//! many once keys are longer than all hashes together, would meet there for each choice of the seed.

use super::{Found, Making};
use millrace_netlist::NodeId;
use millrace_pipeline::Bits;

/// Cycles from a key to what is found.
pub(super) const CYCLES: u32 = 7;
/// Bits of a key that are added at once.
pub(crate) const LANE: u32 = 32;

impl Making<'_> {
    pub(super) fn hash(&mut self, memories: u32, bits: u32) -> Found {
        let (width, stored) = (self.unit.key(), self.unit.stored.bits());
        let Some(key) = self.key else {
            let (hit, stored) = (self.m.number(1, 0), self.m.number(stored, 0));
            return Found { hit, stored, cycle: CYCLES };
        };
        let seed = self.word("seed", 1);
        let lanes = (0..width).step_by(LANE as usize).map(|low| {
            let part = LANE.min(width - low);
            let (a, b) = (self.m.slice(key, low, part), self.m.slice(seed, low, part));
            self.m.add(a, b)
        });
        let lanes: Vec<NodeId> = lanes.collect::<Vec<_>>().into_iter().rev().collect();
        // An ECP5 at 156.25 MHz needs a cycle for the sum, one for the matrix, and one for the wires to the blocks of a memory.
        let mixed = self.m.concat(&lanes);
        let mixed = self.m.delayed("mixed", mixed, None);
        let mut words = Vec::new();
        for way in 0..memories {
            let memory = self.memory(&format!("entries{way}"));
            let place: Vec<NodeId> = (0..bits)
                .rev()
                .map(|bit| {
                    let mask = self.m.constant(hash_mask(width, way, bit));
                    let taken = self.m.and(mixed, mask);
                    self.m.reduce_xor(taken)
                })
                .collect();
            let place = self.m.concat(&place);
            let place = self.m.delayed(&format!("place{way}"), place, None);
            let place = self.place(Some(place), 3);
            let word = self.m.read_clocked(memory, place, None);
            words.push(self.m.delayed(&format!("word{way}"), word, None));
        }
        // The stash is read when the memories have given their words.
        words.extend((0..self.unit.kind.stash()).map(|place| {
            let word = self.word(&format!("stash{place}"), 4);
            self.m.delayed(&format!("stash{place}_word"), word, None)
        }));
        let asked = (2..=5).fold(key, |asked, cycle| self.m.delayed(&format!("asked_{cycle}"), asked, None));
        let mut found = Vec::new();
        for (number, word) in words.into_iter().enumerate() {
            let kept = self.m.slice(word, stored, width);
            let (valid, same) = (self.m.bit(word, stored + width), self.m.eq(kept, asked));
            let hit = self.m.and(valid, same);
            let answer = self.m.slice(word, 0, stored);
            let hit = self.m.delayed(&format!("hit{number}"), hit, None);
            found.push((hit, self.m.delayed(&format!("answer{number}"), answer, None)));
        }
        // A key is in one place at most.
        let hits: Vec<NodeId> = found.iter().map(|(hit, _)| *hit).collect();
        let any = self.m.any(&hits);
        let answer = self.m.one_hot(stored, &found);
        let hit = self.m.delayed("found", any, None);
        Found { hit, stored: self.m.delayed("found_answer", answer, None), cycle: CYCLES }
    }
}

/// The bits of a key that a bit of its hash is the exclusive or of: a row of a matrix of random bits, by which equal hashes of
/// one memory say nothing about those of another.
pub(crate) fn hash_mask(key: u32, way: u32, bit: u32) -> Bits {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(way * 64 + bit + 1)) | 1;
    let bytes: Vec<u8> = (0..key.div_ceil(8))
        .map(|_| {
            // xorshift64*
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        })
        .collect();
    Bits::from_bytes(key, &bytes)
}
