//! Bits of registers that always hold the same, as tools for synthesis find and join them: a number that is one of two, carried along a
//! pipeline, takes a flip-flop a cycle and not one for each of its bits.

use super::bits::{Bits, Gate, Leaf, Lit};
use super::registers::Pin;
use crate::sim::flatten::Flat;
use rustc_hash::FxHashMap;

/// They are looked for so often with the same gates: what one pass finds of a register tells more of those after it.
const PASSES: usize = 64;

/// What is known of bits of registers, by the number of the register.
#[derive(Default)]
pub(super) struct Same(FxHashMap<(u32, u32), Known>);

#[derive(Clone, Copy)]
pub(super) enum Known {
    Constant(bool),
    /// It holds what another bit holds.
    As((u32, u32)),
}

impl Same {
    /// What a bit is, or itself.
    pub(super) fn of(&self, bit: (u32, u32)) -> Known {
        let mut known = Known::As(bit);
        // Another bit is known as a third one at most in a later pass, so this ends.
        while let Known::As(other) = known
            && let Some(more) = self.0.get(&other)
        {
            known = *more;
        }
        known
    }
}

/// What a bit takes, the number of what says when, what it starts with, and the constant that it takes at times.
type Takes = (Lit, usize, bool, Option<bool>);

impl Bits {
    /// Finds bits of registers that always hold a constant, or what another one holds: they start with it, take it always or at the same
    /// times. Says whether there are more than before.
    pub(super) fn find_same(&self, flat: &Flat<'_>, same: &mut Same) -> bool {
        let before = same.0.len();
        // What leaves of registers are known to be, as uses of gates.
        let mut is: FxHashMap<u32, Lit> = FxHashMap::default();
        let now = |is: &FxHashMap<u32, Lit>, lit: Lit| is.get(&(lit / 2)).map_or(lit, |of| of ^ (lit & 1));
        let gate = |(number, bit)| self.known.get(&Gate::Leaf(Leaf::Register(number, bit))).copied();
        for _ in 0..PASSES {
            let known = same.0.len();
            let mut controls: FxHashMap<(Vec<Lit>, bool, &[Pin]), usize> = FxHashMap::default();
            let mut first: FxHashMap<Takes, (u32, u32)> = FxHashMap::default();
            for (number, cells) in (0..).zip(&self.registers) {
                let reset = &flat.scopes[cells.scope as usize].module.registers[cells.id].reset;
                let mut of_parts = Vec::new();
                for part in &cells.parts {
                    let control = part.control.iter().map(|lit| now(&is, *lit)).collect();
                    let count = controls.len();
                    of_parts.push(*controls.entry((control, reset.is_some(), &part.pins)).or_insert(count));
                }
                let (mut part, mut start) = (0, 0);
                for (bit, next) in (0..).zip(&cells.next) {
                    if bit == cells.parts[part].end {
                        (part, start) = (part + 1, bit);
                    }
                    let own = (number, bit);
                    if same.0.contains_key(&own) {
                        continue;
                    }
                    let next = now(&is, *next);
                    let starts = reset.as_ref().is_some_and(|start| start.bit(bit));
                    let set = cells.parts[part].set.as_ref().map(|value| value.bit(bit - start));
                    let found = match *first.entry((next, of_parts[part], starts, set)).or_insert(own) {
                        _ if next == Lit::from(starts) && set.is_none_or(|set| set == starts) => {
                            Known::Constant(starts)
                        }
                        other if other == own => continue,
                        other => Known::As(other),
                    };
                    same.0.insert(own, found);
                    let lit = match found {
                        Known::Constant(value) => Some(Lit::from(value)),
                        Known::As(other) => gate(other).map(|gate| 2 * gate),
                    };
                    is.extend(gate(own).zip(lit));
                }
            }
            if same.0.len() == known {
                break;
            }
        }
        same.0.len() > before
    }
}
