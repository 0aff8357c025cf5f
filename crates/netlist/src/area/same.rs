//! Bits of registers that always hold the same, as tools for synthesis find and join them: a number that is one of two, carried along a
//! pipeline, takes a flip-flop a cycle and not one for each of its bits.

use super::bits::{Bits, Leaf, Lit, ZERO};
use super::registers::Pin;
use crate::sim::flatten::Flat;
use rustc_hash::{FxHashMap, FxHashSet};

/// They are looked for so often with the same gates: what one pass finds of a register tells more of those after it.
const PASSES: usize = 64;

/// What is known of bits of registers.
#[derive(Default)]
pub(super) struct Same {
    /// The place of the first bit of each register, by its number.
    first: Vec<usize>,
    /// What each bit is, if it is not only itself.
    of_bits: Vec<Option<Known>>,
    /// Bits of the words of memories, by their numbers, into which nothing but 0 is written: they are 0 in all words.
    zeros: FxHashSet<(u32, u32)>,
    /// How many are known.
    count: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Known {
    Constant(bool),
    /// It holds what another bit holds.
    As((u32, u32)),
}

impl Same {
    /// Whether a bit of all words of a memory is 0.
    pub(super) fn is_zero(&self, memory: u32, bit: u32) -> bool {
        self.zeros.contains(&(memory, bit))
    }

    fn place(&self, (number, bit): (u32, u32)) -> Option<usize> {
        Some(self.first.get(number as usize)? + bit as usize)
    }

    /// What a bit is, or itself.
    pub(super) fn of(&self, bit: (u32, u32)) -> Known {
        let mut known = Known::As(bit);
        // Another bit is known as a third one at most in a later pass, so this ends.
        while let Known::As(other) = known
            && let Some(more) = self.place(other).and_then(|place| self.of_bits[place])
        {
            known = more;
        }
        known
    }
}

/// What a bit takes, the number of what says when, what it starts with, and the constant that it takes at times.
type Takes = (Lit, u32, bool, Option<bool>);

/// What leaves of registers are known to be, as uses of gates, by the number of their gate.
struct Now(Vec<Lit>);

impl Now {
    fn of(&self, lit: Lit) -> Lit {
        self.0[(lit / 2) as usize] ^ (lit & 1)
    }
}

impl Bits {
    /// Finds bits of registers that always hold a constant, or what another one holds: they start with it, take it always or at the same
    /// times. Says whether there are more than before.
    pub(super) fn find_same(&self, flat: &Flat<'_>, same: &mut Same) -> bool {
        if same.first.is_empty() {
            let mut bits = 0;
            for cells in &self.registers {
                same.first.push(bits);
                bits += cells.next.len();
            }
            same.of_bits = vec![None; bits];
        }
        let before = same.count;
        for (number, words) in (0..).zip(&self.memories) {
            let memory = &flat.scopes[words.scope as usize].module.memories[words.id];
            let starts = |bit: u32| memory.initial.iter().any(|word| word.bit(bit));
            let is_written = |bit: u32| words.data.iter().any(|data| data.get(bit as usize) != Some(&ZERO));
            let zeros = (0..memory.width).filter(|bit| !is_written(*bit) && !starts(*bit));
            let known = same.zeros.len();
            same.zeros.extend(zeros.map(|bit| (number, bit)));
            same.count += same.zeros.len() - known;
        }
        let mut now = Now((0..self.gates.len() as Lit).map(|gate| 2 * gate).collect());
        let gate = |(number, bit)| self.number_of(Leaf::Register(number, bit));
        for _ in 0..PASSES {
            let known = same.count;
            let mut controls: FxHashMap<(Vec<Lit>, bool, &[Pin]), u32> = FxHashMap::default();
            let mut first: FxHashMap<Takes, (u32, u32)> = FxHashMap::default();
            for (number, cells) in (0..).zip(&self.registers) {
                let places = same.first[number as usize]..;
                if same.of_bits[places.clone()].iter().take(cells.next.len()).all(Option::is_some) {
                    continue;
                }
                let reset = &flat.scopes[cells.scope as usize].module.registers[cells.id].reset;
                let mut of_parts = Vec::with_capacity(cells.parts.len());
                for part in &cells.parts {
                    let control = part.control.iter().map(|lit| now.of(*lit)).collect();
                    let count = controls.len() as u32;
                    of_parts.push(*controls.entry((control, reset.is_some(), &part.pins)).or_insert(count));
                }
                let (mut part, mut start) = (0, 0);
                for ((bit, next), place) in (0..).zip(&cells.next).zip(places) {
                    if bit == cells.parts[part].end {
                        (part, start) = (part + 1, bit);
                    }
                    let own = (number, bit);
                    if same.of_bits[place].is_some() {
                        continue;
                    }
                    let next = now.of(*next);
                    let starts = reset.as_ref().is_some_and(|start| start.bit(bit));
                    let set = cells.parts[part].set.as_ref().map(|value| value.bit(bit - start));
                    let found = match *first.entry((next, of_parts[part], starts, set)).or_insert(own) {
                        _ if next == Lit::from(starts) && set.is_none_or(|set| set == starts) => {
                            Known::Constant(starts)
                        }
                        other if other == own => continue,
                        other => Known::As(other),
                    };
                    same.of_bits[place] = Some(found);
                    same.count += 1;
                    let lit = match found {
                        Known::Constant(value) => Some(Lit::from(value)),
                        Known::As(other) => gate(other).map(|gate| 2 * gate),
                    };
                    if let (Some(gate), Some(lit)) = (gate(own), lit) {
                        now.0[gate as usize] = lit;
                    }
                }
            }
            if same.count == known {
                break;
            }
        }
        same.count > before
    }
}
