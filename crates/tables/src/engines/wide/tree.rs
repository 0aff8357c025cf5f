//! What readers see: an array over the first bits of the key, and below it a tree of cache lines.
//!
//! | bytes of a line | hold |
//! | --- | --- |
//! | 0 to 23 | six prefixes of 32 bits |
//! | 24 to 29 | how far each is shifted right before it is compared: 32 less its length |
//! | 32 to 55 | their values |
//! | 56 to 59 | the value where none fits |
//!
//! A **chunk** is 2^n lines for the keys that share a prefix (n at most [`MAX_BITS`]). The next n bits of the key pick
//! the line, and the first prefix in it that fits the next 32 bits (the same n bits first) gives the value.
//! Prefixes in a line lie longest first, and unused places repeat the first. A value is a result, or leads to the chunk for the
//! keys below that prefix. Prefixes and shifts of a line never change while a reader may see it; values do, by one store.

use crate::engines::grace::{Domain, Stamp};
use crate::engines::memory::{Cells, NoMemory};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

/// Prefixes in a line.
pub(super) const LANES: usize = 6;

/// Words of a line, and where its parts begin.
pub(super) const LINE: usize = 16;
pub(super) const SHIFTS: usize = 6;
pub(super) const VALUES: usize = 8;

/// Bits of the key that a line compares.
pub(super) const WINDOW: u32 = 32;

/// The largest chunk has 2^this lines: a change copies one chunk.
pub(super) const MAX_BITS: u32 = 10;

/// Bits of the number of a line.
const LINE_BITS: u32 = 27;

/// What a lookup found: a result, or where to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Value(pub(super) u32);

impl Value {
    /// The bit of a value that is no result.
    const LINK: u32 = 1 << 31;

    pub(super) fn result(result: u32) -> Value {
        Value(result & !Value::LINK)
    }

    fn link(line: u32, bits: u32) -> Value {
        Value(Value::LINK | bits << LINE_BITS | line)
    }

    #[inline(always)]
    pub(super) fn is_link(self) -> bool {
        self.0 & Value::LINK != 0
    }

    /// Ones if this is a link, else zeros.
    #[inline(always)]
    pub(super) fn link_mask(self) -> u32 {
        (self.0.cast_signed() >> 31).cast_unsigned()
    }

    #[inline(always)]
    pub(super) fn line(self) -> u32 {
        self.0 & ((1 << LINE_BITS) - 1)
    }

    /// The chunk has 2^this lines.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0 >> LINE_BITS & 15
    }
}

/// A line, apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) prefixes: [u32; LANES],
    pub(super) shifts: [u8; 8],
    /// The last one where no prefix fits.
    pub(super) values: [Value; LANES + 1],
}

impl Line {
    /// The value, with its place, that a key of this window finds, the first `from` prefixes left aside.
    pub(super) fn find(&self, window: u32, from: usize) -> (usize, Value) {
        let fits = |lane: &usize| (self.prefixes[*lane] ^ window) >> self.shifts[*lane] == 0;
        let lane = (from..LANES).find(fits).unwrap_or(LANES);
        (lane, self.values[lane])
    }
}

pub(super) struct Tree {
    /// Bits of the first array.
    pub(super) root_bits: u32,
    /// A value for each combination of the first bits.
    pub(super) slots: Cells<AtomicU32>,
    /// Line 0 belongs to nobody.
    pub(super) lines: Cells<AtomicU32>,
}

impl Tree {
    /// No prefixes, and room for as many lines.
    pub(super) fn new(root_bits: u32, lines: usize) -> Result<Tree, NoMemory> {
        let lines = lines.min(1 << LINE_BITS);
        Ok(Tree { root_bits, slots: Cells::zeroed(1 << root_bits)?, lines: Cells::zeroed(lines * LINE)? })
    }

    pub(super) fn slot(&self, digits: &[u64]) -> usize {
        (digits[0] >> (64 - self.root_bits)) as usize
    }

    /// The most lines that a way down from a slot passes.
    pub(super) fn depth(&self) -> u32 {
        let slots = self.slots.iter().map(|slot| Value(slot.load(Ordering::Relaxed)));
        let mut waiting: Vec<(Value, u32)> =
            slots.filter(|value| value.is_link()).map(|value| (value, 1)).collect();
        let mut deepest = 0;
        while let Some((link, depth)) = waiting.pop() {
            deepest = deepest.max(depth);
            for line in 0..1 << link.bits() {
                let values = self.line(link.line() + line).values;
                waiting.extend(
                    values.into_iter().filter(|value| value.is_link()).map(|value| (value, depth + 1)),
                );
            }
        }
        deepest
    }

    pub(super) fn line(&self, number: u32) -> Line {
        let words = &self.lines[number as usize * LINE..][..LINE];
        let word = |at: usize| words[at].load(Ordering::Relaxed);
        let mut line = Line::default();
        line.prefixes.iter_mut().enumerate().for_each(|(at, prefix)| *prefix = word(at));
        line.shifts[..4].copy_from_slice(&word(SHIFTS).to_ne_bytes());
        line.shifts[4..].copy_from_slice(&word(SHIFTS + 1).to_ne_bytes());
        line.values.iter_mut().enumerate().for_each(|(at, value)| *value = Value(word(VALUES + at)));
        line
    }

    /// Writes a line that no reader sees yet.
    pub(super) fn write(&self, number: u32, line: &Line) {
        let words = &self.lines[number as usize * LINE..][..LINE];
        let [a, b, c, d, e, f, g, h] = line.shifts;
        let shifts = [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])];
        let values = line.values.iter().map(|value| value.0);
        let new = line.prefixes.into_iter().chain(shifts).chain(values);
        words.iter().zip(new).for_each(|(word, new)| word.store(new, Ordering::Relaxed));
    }

    /// Copies a chunk to lines that no reader sees yet.
    pub(super) fn copy(&self, from: Value, to: Value) {
        let words = LINE << from.bits();
        let (from, to) = (from.line() as usize * LINE, to.line() as usize * LINE);
        for (from, to) in self.lines[from..from + words].iter().zip(&self.lines[to..to + words]) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Where the value of a lane lies.
    pub(super) fn value(&self, line: u32, lane: usize) -> &AtomicU32 {
        &self.lines[line as usize * LINE + VALUES + lane]
    }
}

/// All lines are in use.
pub(super) struct Full;

/// Which lines of a tree are in use.
pub(super) struct Lines {
    next: usize,
    limit: usize,
    /// Chunks to be had, by bits.
    free: [Vec<u32>; MAX_BITS as usize + 1],
    /// Chunks that no link leads to any more.
    unlinked: Vec<Value>,
    /// Chunks that readers may still hold.
    limbo: VecDeque<(Stamp, Vec<Value>)>,
}

impl Lines {
    /// All lines of a new tree.
    pub(super) fn of(tree: &Tree) -> Lines {
        Lines {
            next: 1,
            limit: tree.lines.len() / LINE,
            free: Default::default(),
            unlinked: Vec::new(),
            limbo: VecDeque::new(),
        }
    }

    /// A chunk of 2^bits lines with any content.
    pub(super) fn take(&mut self, bits: u32) -> Result<Value, Full> {
        if let Some(line) = self.free[bits as usize].pop() {
            return Ok(Value::link(line, bits));
        }
        let line = self.next;
        if self.limit - line < 1 << bits {
            return Err(Full);
        }
        self.next += 1 << bits;
        Ok(Value::link(line as u32, bits))
    }

    /// Marks a chunk as unlinked, but nothing that it leads to.
    pub(super) fn drop_chunk(&mut self, link: Value) {
        self.unlinked.push(link);
    }

    /// Marks all that a value leads to as unlinked.
    pub(super) fn drop_below(&mut self, tree: &Tree, value: Value) {
        if value.is_link() {
            for line in value.line()..value.line() + (1 << value.bits()) {
                self.drop_line(tree, line);
            }
            self.unlinked.push(value);
        }
    }

    /// The same for all values of a line.
    pub(super) fn drop_line(&mut self, tree: &Tree, line: u32) {
        tree.line(line).values.into_iter().for_each(|value| self.drop_below(tree, value));
    }

    /// From here on, what is taken may be as much again as is in use now, and `spare` lines.
    pub(super) fn limit_growth(&mut self, spare: usize) {
        self.limit = self.limit.min(2 * self.next + spare);
    }

    /// Hands what has been unlinked over to the grace period, and takes back what has had it.
    pub(super) fn retire(&mut self, domain: &Domain) {
        if !self.unlinked.is_empty() {
            self.limbo.push_back((domain.stamp(), std::mem::take(&mut self.unlinked)));
        }
        while let Some((stamp, _)) = self.limbo.front()
            && domain.passed(*stamp)
            && let Some((_, chunks)) = self.limbo.pop_front()
        {
            chunks.iter().for_each(|chunk| self.free[chunk.bits() as usize].push(chunk.line()));
        }
    }

    /// Whether no tree can have more.
    pub(super) fn is_largest(&self) -> bool {
        self.limit >= 1 << LINE_BITS
    }

    /// Bytes of the lines that were ever written.
    pub(super) fn bytes(&self) -> usize {
        self.next * LINE * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_was_written_and_gives_the_longest_that_fits() {
        let tree = Tree::new(8, 4).unwrap();
        let result = Value::result;
        let line = Line {
            prefixes: [0xabcd_0000, 0xab00_0000, 0x8000_0000, 1, 2, 3],
            shifts: [16, 24, 31, 0, 0, 0, 0, 0],
            values: [result(1), result(2), Value::link(3, 10), result(4), result(5), result(6), result(7)],
        };
        tree.write(2, &line);
        assert_eq!(tree.line(2), line);
        assert_eq!((tree.line(1), tree.line(3)), (Line::default(), Line::default()));
        assert_eq!(line.find(0xabcd_1234, 0), (0, result(1)));
        assert_eq!(line.find(0xabcd_1234, 1), (1, result(2)));
        assert_eq!(line.find(0xffff_ffff, 0), (2, Value::link(3, 10)));
        assert_eq!(line.find(4, 0), (LANES, result(7)));
        assert_eq!(tree.value(2, 2).load(Ordering::Relaxed), Value::link(3, 10).0);
    }

    #[test]
    fn values_keep_what_they_are_made_of() {
        let link = Value::link((1 << LINE_BITS) - 1, MAX_BITS);
        assert_eq!((link.is_link(), link.line(), link.bits()), (true, (1 << LINE_BITS) - 1, MAX_BITS));
        assert_eq!((link.link_mask(), Value::result(9).link_mask()), (u32::MAX, 0));
        assert!(!Value::result(u32::MAX).is_link());
    }

    #[test]
    fn lines_come_back_after_the_grace_period_and_end_at_the_limit() {
        let (domain, tree) = (Domain::new(), Tree::new(8, 8).unwrap());
        let mut worker = domain.worker();
        let mut lines = Lines::of(&tree);
        let chunk = lines.take(2).ok().unwrap();
        let other = lines.take(1).ok().unwrap();
        assert_eq!((chunk.line(), other.line()), (1, 5));
        assert!(lines.take(1).is_err(), "one line is left");
        lines.drop_chunk(chunk);
        lines.retire(&domain);
        assert!(lines.take(2).is_err(), "the worker may hold it");
        worker.quiescent();
        lines.retire(&domain);
        assert_eq!(lines.take(2).ok(), Some(chunk));
    }
}
