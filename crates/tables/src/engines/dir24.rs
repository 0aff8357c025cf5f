//! Longest prefix match for keys of at most 32 bits, by one or two loads: an array over the first 24 bits, and
//! groups of 256 words below those of its words that have longer prefixes (DIR-24-8, Gupta, Lin, McKeown 1998).
//!
//! Words hold results directly, in 8 bits while results and groups are few (a router has few next hops, and small arrays
//! stay in caches), then in 16, else in 32. A word is written whole, so a lookup meets each change before or after. A group
//! that is no longer needed is used again after a grace period.
//!
//! A word of 0 stands for the prefix of length 0, the default route of a router: what that leads to is in one word of its own,
//! the **fallback**, 0 without one. So writing it is one store, and memory of addresses without other prefixes stays untouched.
//!
//! A lookup reads two words then, and each key must still meet what there was at one moment. Be `P` a prefix and `D` that of
//! length 0:
//!
//! - *`D` is inserted or replaced, then `P` removed.* Words are loaded first, acquiring, and the fallback after them. So whoever
//!   finds the 0 that the removal has left finds what was the fallback then, or a later one.
//! - *`P` is inserted, then `D` removed.* Whoever has loaded a word before `P` was there must not find that `D` is gone. So a
//!   removal changes no fallback that is read: it publishes another one, as a batch meets it from its start on or not at all. A
//!   batch loads the fallback's address before that of the arrays, acquiring; with the new one it finds `P`. With the old one it
//!   goes to `D`, whose result is still valid, as what it means is kept for a grace period, too.

mod lookup;
mod prefixes;
#[cfg(test)]
mod tests;
mod words;

use super::contract::LookupContract;
use super::grace::{Domain, Publisher, Stamp, Subscriber, Worker};
use super::memory::NoMemory;
use super::shape::LookupShape;
use super::simd::Simd;
use crate::heap;
use prefixes::Prefixes;
pub(crate) use prefixes::SECTION_BITS;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};
use words::{Array, Sections, Word, Words};

/// Widest key in bits.
pub const MAX_DIR_BITS: u32 = 32;

/// Most bits that the first array is indexed by, and most that a group is.
pub(crate) const FIRST_BITS: u32 = 24;

/// Most groups, in use or waiting for their grace period.
const MAX_GROUPS: u32 = 1 << 25;

/// The writing side. It knows which prefixes exist, not what they lead to: the caller keeps the routes.
pub struct Dir24 {
    array: Publisher<Array>,
    fallback: Publisher<Fallback>,
    simd: Simd,
    bits: u32,
    /// Bits of the key below the first array.
    low: u32,
    exists: Prefixes,
    /// The prefixes that are longer, by the index in the first array that they lie below.
    groups: HashMap<u32, Group>,
    most_groups: u32,
    /// Group numbers never used are from here on.
    next_group: u32,
    free: Vec<u32>,
    limbo: VecDeque<(Stamp, u32)>,
}

/// What a word of 0 leads to: the result of the prefix of length 0, or 0. It is as wide as a register, so that a processor may take
/// it from memory where it chooses, and has a line of its own, as every lookup reads it.
#[derive(Default)]
#[repr(align(64))]
struct Fallback(AtomicU64);

/// A group of the second level.
struct Group {
    number: u32,
    /// The lengths, less that of the first array, of the prefixes that each word's result comes from; 0 for a word
    /// that has it from above.
    depth: Box<[u8]>,
    prefixes: u32,
    /// What the word of the first array would hold without the group.
    above: u32,
}

/// The reading side. Clones read the same table.
#[derive(Clone)]
pub struct Dir24Reader {
    array: Subscriber<Array>,
    fallback: Subscriber<Fallback>,
    simd: Simd,
}

impl Dir24 {
    /// An empty table for keys of `bits` bits, at most [`MAX_DIR_BITS`], and at most `size` prefixes.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(domain: &Domain, bits: u32, size: u32, simd: Simd) -> Result<Dir24, NoMemory> {
        let bits = bits.min(MAX_DIR_BITS);
        let first_bits = bits.min(FIRST_BITS);
        let low = bits - first_bits;
        let most_groups = if low == 0 { 0 } else { size.min(1 << first_bits) };
        let array = Array::Byte(Words::new(first_bits, low, AtomicU8::FLAG)?);
        Ok(Dir24 {
            array: Publisher::new(domain, array),
            fallback: Publisher::new(domain, Fallback::default()),
            simd: simd.or_less(),
            bits,
            low,
            exists: Prefixes::new(bits)?,
            groups: HashMap::new(),
            most_groups,
            next_group: 0,
            free: Vec::new(),
            limbo: VecDeque::new(),
        })
    }

    /// A reader.
    pub fn reader(&self) -> Dir24Reader {
        Dir24Reader { array: self.array.subscribe(), fallback: self.fallback.subscribe(), simd: self.simd }
    }

    /// Adds a prefix that is not there yet, with its result (from 1 on, below 2^31).
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn insert(&mut self, prefix: u64, len: u32, result: u32) -> Result<(), NoMemory> {
        self.write(prefix, len, result, true)
    }

    /// Gives a prefix that is there another result.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn replace(&mut self, prefix: u64, len: u32, result: u32) -> Result<(), NoMemory> {
        self.write(prefix, len, result, false)
    }

    fn write(&mut self, prefix: u64, len: u32, result: u32, is_new: bool) -> Result<(), NoMemory> {
        let (prefix, len) = (prefix as u32, len.min(self.bits));
        if len == 0 {
            // Whatever the width of words is.
            self.fallback.current().0.store(result.into(), Ordering::Release);
            return Ok(());
        }
        if result >= self.array.current().flag() {
            self.rebuild(result)?;
        }
        let (is_short, at) = (len <= self.first_bits(), prefix >> self.low);
        let needs_group = !is_short && !self.groups.contains_key(&at);
        let number = if needs_group { Some(self.free_group()?) } else { None };
        // Nothing fails from here on.
        if is_new {
            let filled = self.exists.count(prefix, len);
            if filled != 0 {
                self.array.current().set_pages(self.sections(), filled);
            }
        }
        if is_short {
            let at = prefix >> (self.bits - len);
            self.exists.mark(len, at, true);
            self.paint(len, at, result);
            return Ok(());
        }
        if let Some(number) = number {
            self.open_group(at, number);
        }
        self.paint_group(at, prefix, len, result, None);
        if let Some(group) = self.groups.get_mut(&at) {
            group.prefixes += u32::from(is_new);
        }
        Ok(())
    }

    /// Takes a prefix out. `parent` is the length and result of the longest other prefix that contains it, or
    /// `(0, 0)` without one.
    pub fn remove(&mut self, prefix: u64, len: u32, parent: (u32, u32)) {
        let (prefix, len) = (prefix as u32, len.min(self.bits));
        if len == 0 {
            // Batches that have found words of 0 go on to what there was.
            return self.fallback.publish(Fallback::default());
        }
        // The prefix of length 0 is not written into words.
        let parent = if parent.0 == 0 { (0, 0) } else { parent };
        if len <= self.first_bits() {
            let at = prefix >> (self.bits - len);
            self.exists.mark(len, at, false);
            self.paint(len, at, parent.1);
        } else {
            self.remove_long(prefix, len, parent);
        }
        let emptied = self.exists.uncount(prefix, len);
        if emptied != 0 {
            self.array.current().give_back(self.sections(), emptied);
        }
    }

    /// Takes a prefix out that is longer than the first array reaches.
    fn remove_long(&mut self, prefix: u32, len: u32, parent: (u32, u32)) {
        let at = prefix >> self.low;
        self.paint_group(at, prefix, len, parent.1, Some(parent.0));
        let Some(group) = self.groups.get_mut(&at) else { return };
        group.prefixes = group.prefixes.saturating_sub(1);
        if group.prefixes == 0 {
            let (above, number) = (group.above, group.number);
            self.groups.remove(&at);
            self.set_first(at, above);
            self.limbo.push_back((self.array.domain().stamp(), number));
        }
    }

    /// What a lookup takes at most: a load, and one more where a prefix is longer than the first array reaches. Words are
    /// aligned, so each lies in one line; the fallback, which nothing waits for, has another one.
    pub fn contract(&self) -> LookupContract {
        let probes = if self.groups.is_empty() { 1 } else { 2 };
        LookupContract { engine: "dir24", probes, lines: probes + 1 }
    }

    /// Groups in use.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Whether a prefix is to get a group that is not there yet.
    pub fn opens_group(&self, prefix: u64, len: u32) -> bool {
        len.min(self.bits) > self.first_bits() && !self.groups.contains_key(&(prefix as u32 >> self.low))
    }

    /// Sections of the first array that have prefixes but that of length 0: those of one section begin with the same six bits. Of keys of
    /// less than 24 bits there is one.
    pub fn held_sections(&self) -> usize {
        self.exists.filled().count_ones() as usize
    }

    fn sections(&self) -> Sections {
        Sections { filled: self.exists.filled(), words: self.exists.section_words() }
    }

    /// Sections that a prefix is to get and that have none yet.
    pub fn opens_sections(&self, prefix: u64, len: u32) -> u32 {
        match len.min(self.bits) {
            0 => 0,
            len => (self.exists.sections_of(prefix as u32, len) & !self.exists.filled()).count_ones(),
        }
    }

    /// Bytes of memory that the arrays and the bookkeeping take.
    pub fn memory_bytes(&self) -> usize {
        let (first, used) =
            (self.held_sections() * self.exists.section_words(), (self.next_group as usize) << self.low);
        let arrays = self.array.current().bytes(first, used);
        arrays
            + self.exists.bytes()
            + heap::hash_map::<(u32, Group)>(self.groups.capacity())
            + (self.groups.len() << self.low)
    }

    fn first_bits(&self) -> u32 {
        self.bits - self.low
    }

    /// Writes a result to all words of the first array below the prefix `at` of `len` bits, where no longer one is.
    fn paint(&mut self, len: u32, at: u32, result: u32) {
        let first_bits = self.first_bits();
        let (start, count) = ((at as usize) << (first_bits - len), 1usize << (first_bits - len));
        if count == 1 {
            return self.set_above(start as u32, result);
        }
        // Blocks of 64 words: a set bit is a word that a longer prefix has.
        let mut block = start / 64 * 64;
        while block < start + count {
            let mut covered = 0u64;
            for longer in len + 1..=first_bits {
                let spread = first_bits - longer;
                let exist = self.exists.from(longer, block >> spread);
                if spread >= 6 {
                    if exist & 1 != 0 {
                        covered = !0;
                        break;
                    }
                } else {
                    let mut bits = exist & (!0 >> (64 - (64 >> spread)));
                    while bits != 0 {
                        let bit = bits.trailing_zeros();
                        covered |= (!0u64 >> (64 - (1 << spread))) << (bit << spread);
                        bits &= bits - 1;
                    }
                }
            }
            // A prefix of fewer than 64 words lies in one block.
            let own = (!0u64 >> (64 - count.min(64))) << (block.max(start) - block);
            let mut with_group = self.array.current().fill_first(block, own & !covered, result);
            while with_group != 0 {
                self.set_above((block + with_group.trailing_zeros() as usize) as u32, result);
                with_group &= with_group - 1;
            }
            block += 64;
        }
    }

    /// Sets what a word of the first array holds, or what the words of its group hold that have it from above.
    fn set_above(&mut self, at: u32, result: u32) {
        let Some(group) = self.groups.get_mut(&at) else { return self.set_first(at, result) };
        group.above = result;
        let start = (group.number as usize) << self.low;
        for (word, depth) in group.depth.iter().enumerate() {
            if *depth == 0 {
                self.array.current().set_group(start + word, result);
            }
        }
    }

    fn set_first(&self, at: u32, word: u32) {
        self.array.current().set_first(at as usize, word);
    }

    /// Writes the result of a prefix that was added, or of its parent of `parent_len` bits when it was removed.
    fn paint_group(&mut self, at: u32, prefix: u32, len: u32, result: u32, parent_len: Option<u32>) {
        let first_bits = self.first_bits();
        let Some(group) = self.groups.get_mut(&at) else { return };
        let depth = (len - first_bits) as u8;
        let count = 1usize << (self.bits - len);
        let from = (prefix as usize & ((1 << self.low) - 1)) & !(count - 1);
        let start = (group.number as usize) << self.low;
        let array = self.array.current();
        for word in from..from + count {
            match parent_len {
                None if group.depth[word] <= depth => group.depth[word] = depth,
                Some(parent) if group.depth[word] == depth => {
                    group.depth[word] = parent.saturating_sub(first_bits) as u8;
                }
                _ => continue,
            }
            array.set_group(start + word, result);
        }
    }

    /// The number of a group that nobody reads.
    fn free_group(&mut self) -> Result<u32, NoMemory> {
        while let Some(&(stamp, number)) = self.limbo.front()
            && self.array.domain().passed(stamp)
        {
            self.free.push(number);
            self.limbo.pop_front();
        }
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        if self.next_group as usize >= self.array.current().groups() >> self.low {
            // Small words cannot name more; wide ones ran out while many groups wait for their grace period.
            self.rebuild(0)?;
        }
        if self.next_group >= MAX_GROUPS {
            return Err(NoMemory { bytes: 4 << self.low });
        }
        self.next_group += 1;
        Ok(self.next_group - 1)
    }

    /// Gives a word of the first array a group, filled with what the word holds.
    fn open_group(&mut self, at: u32, number: u32) {
        let array = self.array.current();
        let above = array.first(at as usize);
        let start = (number as usize) << self.low;
        for word in start..start + (1 << self.low) {
            array.set_group(word, above);
        }
        array.set_first_to_group(at as usize, number);
        let depth = vec![0; 1 << self.low].into();
        self.groups.insert(at, Group { number, depth, prefixes: 0, above });
    }

    /// Copies everything into words with room for one more group, and for a result.
    fn rebuild(&mut self, result: u32) -> Result<(), NoMemory> {
        let (first_bits, low) = (self.first_bits(), self.low);
        let most = result.max(self.next_group);
        let array = match self.array.current() {
            Array::Byte(_) if most < AtomicU16::FLAG => {
                Array::Narrow(Words::new(first_bits, low, AtomicU16::FLAG)?)
            }
            _ => {
                // With addresses of 32 bits there is no room for all that may come; more groups then mean another copy.
                let most = if cfg!(target_pointer_width = "32") { 0 } else { self.most_groups };
                let groups = most.max(self.next_group).saturating_mul(2).saturating_add(1024);
                Array::Wide(Words::new(first_bits, low, groups.min(MAX_GROUPS))?)
            }
        };
        array.set_pages(self.sections(), !0);
        self.array.current().copy_to(&array, self.sections(), (self.next_group as usize) << low);
        self.array.publish(array);
        self.array.domain().shape_changed();
        Ok(())
    }
}

impl Dir24Reader {
    /// Looks up a batch. Key bits above the width do not count. All keys miss for a worker of another domain.
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        let fallback = self.fallback.get(worker);
        match fallback.zip(self.array.get(worker)) {
            Some((fallback, array)) => lookup::batch(self.simd, array, &fallback.0, keys, out),
            None => out.fill(0),
        }
    }

    /// The lookup shape at this moment; its pointers are valid until the worker's next quiescent point.
    #[inline]
    pub fn shape(&self, worker: &Worker) -> LookupShape {
        let Some(Fallback(fallback)) = self.fallback.get(worker) else { return LookupShape::CALL };
        let fallback = std::ptr::from_ref(fallback).cast();
        self.array.get(worker).map_or(LookupShape::CALL, |array| LookupShape { fallback, ..array.shape() })
    }
}
