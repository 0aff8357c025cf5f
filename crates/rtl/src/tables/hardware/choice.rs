//! The member of a group: the remainder of the selector's hash by the number of places that the group has, and the word there.

use super::Making;
use crate::objects::xorshift;
use crate::parts::later;
use crate::tables::{Choice, Chosen};
use millrace_netlist::{ModuleBuilder, NodeId};
use millrace_pipeline::Bits;

/// Bits of the hash that are divided in a cycle: each is a subtraction of as many bits as the number of places has.
const ROWS: u32 = 3;

/// What the generator of random numbers starts with; any number but 0.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

impl Choice {
    /// Bits of what is divided: of the hash, and for groups that choose at random at least 8 more than of the number of places, so that
    /// no place is chosen more often than another by more than a part in 256.
    fn dividend(self) -> u32 {
        self.hash.max((self.count_bits() + 8).min(64))
    }

    /// Cycles from a stored answer to that of the member: what is divided, the rows of the division, the place, its word (from a block
    /// memory, and once more in a register).
    pub(super) fn cycles(self) -> u32 {
        1 + self.dividend().div_ceil(ROWS) + 1 + 2
    }
}

impl Making<'_> {
    /// Takes the place of a group in a stored answer for the action of the member. The answer is that of `cycle`, and what is given is that
    /// of [`Choice::cycles`] later; `hash` is that of cycle 1.
    pub(super) fn choose(&mut self, choice: Choice, stored: NodeId, hash: NodeId, cycle: u32) -> NodeId {
        let widths = self.unit.stored;
        let at_random = self.random();
        let m = &mut self.m;
        let hash = later(m, "hash", hash, cycle - 1, None);
        let place = widths.action + widths.entry;
        let chosen = m.slice(stored, place + widths.data, widths.chosen);
        let is_random = m.is(chosen, Chosen::AtRandom as u128);
        let width = choice.dividend();
        let (hash, at_random) = (m.resize(hash, width), m.slice(at_random, 0, width));
        let dividend = m.mux(is_random, at_random, hash);
        let mut left = m.delayed("dividend", dividend, None);
        let stored = m.delayed("group", stored, None);
        let base = m.slice(stored, place, choice.base_bits());
        let mut count = m.slice(stored, place + choice.base_bits(), choice.count_bits());
        let rows = width.div_ceil(ROWS);
        let mut rest = m.number(choice.count_bits(), 0);
        for row in 0..rows {
            let bits = ROWS.min(width - row * ROWS);
            let has = m.width(left);
            for at in 0..bits {
                let next = m.bit(left, has - 1 - at);
                rest = reduced(m, rest, next, count);
            }
            rest = m.delayed(&format!("rest{row}"), rest, None);
            if row + 1 < rows {
                let fewer = m.slice(left, 0, has - bits);
                left = m.delayed(&format!("left{row}"), fewer, None);
                count = m.delayed(&format!("count{row}"), count, None);
            }
        }
        let base = later(m, "base", base, rows, None);
        let rest = m.resize(rest, choice.base_bits());
        let index = m.add(base, rest);
        let index = m.delayed("member", index, None);
        let memory = self.memory("members");
        let asked = cycle + choice.cycles() - 2;
        let place = self.place((choice.places > 1).then_some(index), asked);
        let word = self.m.read_clocked(memory, place, None);
        let word = self.m.delayed("member_word", word, None);
        let stored = later(&mut self.m, "given", stored, choice.cycles() - 1, None);
        self.with_member(stored, word)
    }

    /// A stored answer whose action is that of a member, if it has a group.
    fn with_member(&mut self, stored: NodeId, word: NodeId) -> NodeId {
        let (widths, data) = (self.unit.stored, self.unit.data());
        let m = &mut self.m;
        let place = widths.action + widths.entry;
        let chosen = m.slice(stored, place + widths.data, widths.chosen);
        let is_given = m.is(chosen, Chosen::Given as u128);
        let given = m.slice(stored, place, data);
        let of_member = m.slice(word, widths.action, data);
        let mut parts = vec![m.mux(is_given, given, of_member)];
        if widths.entry > 0 {
            parts.push(m.slice(stored, widths.action, widths.entry));
        }
        if widths.action > 0 {
            let (given, of_member) = (m.slice(stored, 0, widths.action), m.slice(word, 0, widths.action));
            parts.push(m.mux(is_given, given, of_member));
        }
        m.concat(&parts)
    }

    /// A random number of 64 bits in each cycle.
    fn random(&mut self) -> NodeId {
        let m = &mut self.m;
        let (register, state) = m.register_with("random", 64, Some(Bits::new(64, SEED.into())));
        let next = xorshift(m, state);
        m.set_next(register, next);
        state
    }
}

/// A step of a division: the remainder so far, twice as much and the next bit, less the divisor if that is no more. As the remainder is less
/// than the divisor, one bit more holds it. For a divisor of 0, which no group has, the answer is any.
fn reduced(m: &mut ModuleBuilder, rest: NodeId, next: NodeId, divisor: NodeId) -> NodeId {
    let bits = m.width(rest);
    let twice = m.concat(&[rest, next]);
    let divisor = m.resize(divisor, bits + 1);
    let less = m.sub(twice, divisor);
    let is_less = m.lt(twice, divisor);
    let kept = m.mux(is_less, twice, less);
    m.slice(kept, 0, bits)
}
