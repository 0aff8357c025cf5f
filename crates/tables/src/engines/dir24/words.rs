//! The two arrays of words, of one of three widths. The highest bit of a word of the first array says that the others
//! are the number of a group. A word of 0 stands for the prefix of length 0, whatever that leads to.

use super::super::memory::{Cell, Cells, HUGE, NoMemory};
use super::super::shape::{LookupKind, LookupShape};
use super::prefixes::ones;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// A word of some width.
pub(super) trait Word: Cell {
    /// The highest bit. Results and numbers of groups are below it.
    const FLAG: u32;
    const KIND: LookupKind;

    fn get(&self) -> u32;
    fn set(&self, word: u32);
}

macro_rules! word {
    ($atomic:ty, $number:ty, $kind:expr) => {
        impl Word for $atomic {
            const FLAG: u32 = 1 << (<$number>::BITS - 1);
            const KIND: LookupKind = $kind;

            #[inline(always)]
            fn get(&self) -> u32 {
                self.load(Ordering::Acquire).into()
            }

            #[inline(always)]
            fn set(&self, word: u32) {
                self.store(word as $number, Ordering::Release);
            }
        }
    };
}

word!(AtomicU8, u8, LookupKind::Two8);
word!(AtomicU16, u16, LookupKind::Two16);
word!(AtomicU32, u32, LookupKind::Two32);

/// The two arrays of one width.
pub(super) struct Words<T: Cell> {
    /// One word for each index, and some that only a wide load past the end reads.
    pub(super) first: Cells<T>,
    /// The largest index into `first`.
    pub(super) mask: u64,
    pub(super) groups: Cells<T>,
    /// Bits of the key that index a group.
    pub(super) low: u32,
}

/// Words past the end of an array, so that a load of 32 bits may start at each.
const OVERHANG: usize = 4;

impl<T: Word> Words<T> {
    /// Zeros, with room for so many groups.
    pub(super) fn new(first_bits: u32, low: u32, groups: u32) -> Result<Words<T>, NoMemory> {
        let groups = if low == 0 { Some(0) } else { (groups as usize).checked_mul(1 << low) };
        let grouped = groups.and_then(|words| words.checked_add(OVERHANG));
        Ok(Words {
            first: Cells::sparse((1 << first_bits) + OVERHANG)?,
            mask: (1 << first_bits) - 1,
            groups: Cells::filled_from_the_first(grouped.ok_or(NoMemory { bytes: usize::MAX })?)?,
            low,
        })
    }

    fn shape(&self) -> LookupShape {
        let (base, second) = (self.first.as_ptr().cast(), self.groups.as_ptr().cast());
        LookupShape { kind: T::KIND, shift: self.low, base, second, ..LookupShape::CALL }
    }

    fn copy_to<W: Word>(&self, to: &Words<W>, sections: Sections, group_words: usize) {
        let copy = |from: &[T], to: &[W]| {
            for (from, to) in from.iter().zip(to) {
                // Zeros are there already, and pages that stay untouched take no memory.
                match from.get() {
                    0 => {}
                    word if word & T::FLAG != 0 => to.set(word & !T::FLAG | W::FLAG),
                    word => to.set(word),
                }
            }
        };
        for section in ones(sections.filled) {
            let range = sections.words_of(section);
            copy(&self.first[range.clone()], &to.first[range]);
        }
        copy(&self.groups[..group_words], &to.groups);
    }

    /// Pages of the first array are huge where all sections of one have prefixes, so that they take no memory that is not counted.
    /// `changed`: sections whose pages may be of the wrong size.
    fn set_pages(&self, sections: Sections, changed: u64) {
        let together = (HUGE / size_of::<T>() / sections.words).clamp(1, 64);
        for first in (0..64).step_by(together) {
            let of = (!0u64 >> (64 - together)) << first;
            if changed & of != 0 {
                let range = first * sections.words..(first + together) * sections.words;
                self.first.set_huge_pages(range, sections.filled & of == of);
            }
        }
    }

    fn give_back(&self, sections: Sections, emptied: u64) {
        self.set_pages(sections, emptied);
        for section in ones(emptied) {
            let range = sections.words_of(section);
            debug_assert!(self.first[range.clone()].iter().all(|word| word.get() == 0));
            self.first.give_back_zeros(range);
        }
    }
}

/// The sections of a first array, see [`super::prefixes`].
#[derive(Clone, Copy)]
pub(super) struct Sections {
    /// Those with prefixes, a bit for each.
    pub(super) filled: u64,
    /// The words of each.
    pub(super) words: usize,
}

impl Sections {
    /// The words of a section.
    fn words_of(self, section: usize) -> Range<usize> {
        section * self.words..(section + 1) * self.words
    }
}

/// The arrays, in the width that results and groups need.
pub(super) enum Array {
    Byte(Words<AtomicU8>),
    Narrow(Words<AtomicU16>),
    Wide(Words<AtomicU32>),
}

/// The same expression for the words of each width.
macro_rules! each {
    ($array:expr, $words:ident => $what:expr) => {
        match $array {
            Array::Byte($words) => $what,
            Array::Narrow($words) => $what,
            Array::Wide($words) => $what,
        }
    };
}

impl Array {
    pub(super) fn shape(&self) -> LookupShape {
        each!(self, words => words.shape())
    }

    /// What results and numbers of groups are below.
    pub(super) fn flag(&self) -> u32 {
        fn flag<T: Word>(_: &Words<T>) -> u32 {
            T::FLAG
        }
        each!(self, words => flag(words))
    }

    /// Bytes of memory, with so many words of each array in use.
    pub(super) fn bytes(&self, first_words: usize, group_words: usize) -> usize {
        fn bytes<T: Word>(_: &Words<T>, used: usize) -> usize {
            size_of::<T>() * used
        }
        each!(self, words => bytes(words, first_words + group_words))
    }

    /// Words of groups that there is room for.
    pub(super) fn groups(&self) -> usize {
        each!(self, words => words.groups.len())
    }

    pub(super) fn first(&self, at: usize) -> u32 {
        each!(self, words => words.first[at].get())
    }

    pub(super) fn set_first(&self, at: usize, word: u32) {
        each!(self, words => words.first[at].set(word));
    }

    /// Sets those of 64 words that `which` names, but not words that lead to a group: it says which these are.
    pub(super) fn fill_first(&self, block: usize, which: u64, word: u32) -> u64 {
        fn fill<T: Word>(words: &Words<T>, block: usize, which: u64, word: u32) -> u64 {
            let first = &words.first[block..words.first.len().min(block + 64)];
            let flags = first.iter().fold(0, |flags, word| flags | word.get()) & T::FLAG;
            if which == !0 && flags == 0 {
                first.iter().for_each(|own| own.set(word));
                return 0;
            }
            let named = first.iter().enumerate().filter(|(at, _)| which >> at & 1 != 0);
            named.fold(0, |with_group, (at, own)| match own.get() & T::FLAG {
                0 => {
                    own.set(word);
                    with_group
                }
                _ => with_group | 1 << at,
            })
        }
        each!(self, words => fill(words, block, which, word))
    }

    pub(super) fn set_first_to_group(&self, at: usize, group: u32) {
        self.set_first(at, group | self.flag());
    }

    pub(super) fn set_group(&self, at: usize, word: u32) {
        each!(self, words => words.groups[at].set(word));
    }

    /// Copies all into other arrays, empty ones of at least this width.
    pub(super) fn copy_to(&self, to: &Array, sections: Sections, group_words: usize) {
        each!(self, from => each!(to, to => from.copy_to(to, sections, group_words)));
    }

    /// Sets the size of pages where sections have changed, before anything is written there.
    pub(super) fn set_pages(&self, sections: Sections, changed: u64) {
        each!(self, words => words.set_pages(sections, changed));
    }

    /// Gives back the memory of sections without prefixes, whose words are all 0.
    pub(super) fn give_back(&self, sections: Sections, emptied: u64) {
        each!(self, words => words.give_back(sections, emptied));
    }
}
