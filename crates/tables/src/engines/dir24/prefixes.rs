//! Which prefixes there are, but that of length 0, and which sections of the first array they lie in.
//!
//! A first array of 24 bits has 64 sections. Of one without prefixes all words are 0, and so are the bits here: neither takes
//! memory. So what a table takes is known from the prefixes that it has, whatever there was before.

use super::super::memory::{Cells, NoMemory};
use super::FIRST_BITS;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a key that name its section, of keys that have enough.
pub(crate) const SECTION_BITS: u32 = 6;

/// The prefixes, as bits.
pub(super) struct Prefixes {
    /// Bits of the key, those of its first array, and of these the ones that name its section.
    bits: u32,
    first_bits: u32,
    section_bits: u32,
    /// Those that are shorter than the name of a section: the bit of prefix `at` of `len` bits is `1 << len | at`.
    short: u64,
    /// The others up to the length of the first array. The bits of a section lie together, as in a heap: that of prefix `at` of
    /// `len` bits after those of the section is `1 << len | at`. The bits of prefixes that begin 64 words or fewer are in one
    /// word.
    below: Cells<AtomicU64>,
    /// Prefixes of all lengths that have words in a section.
    counts: Box<[u32; 1 << SECTION_BITS]>,
    /// The sections that have prefixes.
    filled: u64,
}

impl Prefixes {
    /// None, of keys of so many bits.
    pub(super) fn new(bits: u32) -> Result<Prefixes, NoMemory> {
        let first_bits = bits.min(FIRST_BITS);
        let section_bits = if first_bits == FIRST_BITS { SECTION_BITS } else { 0 };
        let each = (2usize << (first_bits - section_bits)).div_ceil(64);
        Ok(Prefixes {
            bits,
            first_bits,
            section_bits,
            short: 0,
            below: Cells::sparse(each << section_bits)?,
            counts: Box::new([0; 1 << SECTION_BITS]),
            filled: 0,
        })
    }

    /// The sections that have prefixes, a bit for each.
    pub(super) fn filled(&self) -> u64 {
        self.filled
    }

    /// Words of the first array that a section has.
    pub(super) fn section_words(&self) -> usize {
        1 << (self.first_bits - self.section_bits)
    }

    /// The sections that a prefix of at least one bit lies in.
    pub(super) fn sections_of(&self, prefix: u32, len: u32) -> u64 {
        if self.section_bits == 0 {
            return 1;
        }
        let section = prefix >> (self.bits - self.section_bits);
        let count = 1u32 << self.section_bits.saturating_sub(len);
        (!0 >> (64 - count)) << (section & !(count - 1))
    }

    /// Counts a prefix; the sections that have one from now on.
    pub(super) fn count(&mut self, prefix: u32, len: u32) -> u64 {
        let (of, before) = (self.sections_of(prefix, len), self.filled);
        ones(of).for_each(|section| self.counts[section] += 1);
        self.filled |= of;
        self.filled & !before
    }

    /// No longer counts a prefix, whose bit is gone; the sections that have none from now on.
    pub(super) fn uncount(&mut self, prefix: u32, len: u32) -> u64 {
        let mut emptied = 0;
        for section in ones(self.sections_of(prefix, len)) {
            self.counts[section] = self.counts[section].saturating_sub(1);
            if self.counts[section] == 0 {
                emptied |= 1 << section;
                let each = self.below.len() >> self.section_bits;
                self.below.give_back_zeros(section * each..(section + 1) * each);
            }
        }
        self.filled &= !emptied;
        emptied
    }

    /// Whether prefix `at` of `len` bits exists from now on, at least one and at most those of the first array.
    pub(super) fn mark(&mut self, len: u32, at: u32, exists: bool) {
        let set = |word: u64, bit: u32| if exists { word | 1 << bit } else { word & !(1 << bit) };
        if len < self.section_bits {
            self.short = set(self.short, 1 << len | at);
            return;
        }
        let (word, bit) = self.place(len, at as usize);
        let word = &self.below[word];
        word.store(set(word.load(Ordering::Relaxed), bit), Ordering::Relaxed);
    }

    /// The bits of the prefixes of `len` bits from `at` on, as far as they are in one word; those beyond mean nothing.
    pub(super) fn from(&self, len: u32, at: usize) -> u64 {
        if len < self.section_bits {
            return self.short >> (1 << len | at);
        }
        let (word, bit) = self.place(len, at);
        self.below[word].load(Ordering::Relaxed) >> bit
    }

    fn place(&self, len: u32, at: usize) -> (usize, u32) {
        let within = len - self.section_bits;
        let section = at >> within;
        let bit = 1 << within | (at & ((1 << within) - 1));
        let each = self.below.len() >> self.section_bits;
        (section * each + bit / 64, bit as u32 % 64)
    }

    /// Bytes of the bits of so many sections.
    pub(super) fn bytes(&self) -> usize {
        (self.below.bytes() >> self.section_bits) * self.filled.count_ones() as usize
    }
}

/// The numbers of the bits that are set.
pub(super) fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}
