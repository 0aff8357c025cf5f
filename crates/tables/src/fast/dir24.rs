//! Longest prefix match for keys of at most 32 bits, by one or two loads: an array over the first 24 bits, and
//! groups of 256 words below those of its words that have longer prefixes (DIR-24-8, Gupta, Lin, McKeown 1998).
//!
//! Words hold results directly, in 16 bits while results and groups are few and in 32 bits else. A word is written
//! whole, so a lookup meets each change before or after. A group that is no longer needed is used again after a
//! grace period.

mod lookup;
#[cfg(test)]
mod tests;

use super::grace::{Domain, Publisher, Stamp, Subscriber, Worker};
use super::memory::{Cell, Cells, NoMemory};
use super::shape::{Plan, PlanCell, PlanKind};
use super::simd::Simd;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Widest key in bits.
pub const MAX_DIR_BITS: u32 = 32;

/// Most bits that the first array is indexed by, and most that a group is.
const FIRST_BITS: u32 = 24;

/// Results and groups below this fit the narrow words.
const NARROW: u32 = 1 << 15;

/// Results and groups below this fit the wide words.
const WIDE: u32 = 1 << 31;

/// Most groups, in use or waiting for their grace period.
const MAX_GROUPS: u32 = 1 << 25;

/// The two arrays of one width.
struct Words<T: Cell> {
    /// One word for each index, and some that only a wide load past the end reads.
    first: Cells<T>,
    /// The largest index into `first`.
    mask: u64,
    groups: Cells<T>,
    /// Bits of the key that index a group.
    low: u32,
}

/// Words past the end of an array, so that a load of 32 bits may start at each.
const OVERHANG: usize = 4;

enum Array {
    Narrow(Words<AtomicU16>),
    Wide(Words<AtomicU32>),
}

#[repr(C)]
struct Version {
    plan: Plan,
    array: Array,
}

/// The writing side. It knows which prefixes exist, not what they lead to: the caller keeps the routes.
pub struct Dir24 {
    version: Publisher<Version>,
    simd: Simd,
    bits: u32,
    /// Bits of the key below the first array.
    low: u32,
    /// For each length up to that of the first array, which prefixes exist.
    exists: Vec<Cells<AtomicU64>>,
    /// The prefixes that are longer, by the index in the first array that they lie below.
    groups: HashMap<u32, Group>,
    most_groups: u32,
    /// Group numbers never used are from here on.
    next_group: u32,
    free: Vec<u32>,
    limbo: VecDeque<(Stamp, u32)>,
}

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
    version: Subscriber<Version>,
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
        let exists = (0..=first_bits).map(|len| Cells::zeroed((1usize << len).div_ceil(64)));
        let exists = exists.collect::<Result<_, _>>()?;
        let words = Words::<AtomicU16>::new(first_bits, low, NARROW)?;
        let plan = words.plan(PlanKind::Two16);
        let version = Version { plan, array: Array::Narrow(words) };
        Ok(Dir24 {
            version: Publisher::new(domain, version),
            simd: simd.or_less(),
            bits,
            low,
            exists,
            groups: HashMap::new(),
            most_groups,
            next_group: 0,
            free: Vec::new(),
            limbo: VecDeque::new(),
        })
    }

    /// A reader.
    pub fn reader(&self) -> Dir24Reader {
        Dir24Reader { version: self.version.subscribe(), simd: self.simd }
    }

    /// Adds a prefix that is not there yet, with its result (below 2^31).
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
        if result >= NARROW {
            self.widen()?;
        }
        if len <= self.first_bits() {
            let at = prefix.checked_shr(self.bits - len).unwrap_or(0);
            self.mark(len, at, true);
            self.paint(len, at, result);
            return Ok(());
        }
        let at = prefix >> self.low;
        if !self.groups.contains_key(&at) {
            self.open_group(at)?;
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
        if len <= self.first_bits() {
            let at = prefix.checked_shr(self.bits - len).unwrap_or(0);
            self.mark(len, at, false);
            self.paint(len, at, parent.1);
            return;
        }
        let at = prefix >> self.low;
        self.paint_group(at, prefix, len, parent.1, Some(parent.0));
        let Some(group) = self.groups.get_mut(&at) else { return };
        group.prefixes = group.prefixes.saturating_sub(1);
        if group.prefixes == 0 {
            let (above, number) = (group.above, group.number);
            self.groups.remove(&at);
            self.set_first(at, above);
            self.limbo.push_back((self.version.domain().stamp(), number));
        }
    }

    /// Bytes of memory that the arrays and the bookkeeping take.
    pub fn memory_bytes(&self) -> usize {
        let used = (self.next_group as usize) << self.low;
        let arrays = match &self.version.current().array {
            Array::Narrow(words) => words.first.bytes() + 2 * used,
            Array::Wide(words) => words.first.bytes() + 4 * used,
        };
        let exists: usize = self.exists.iter().map(Cells::bytes).sum();
        arrays + exists + self.groups.capacity() * (size_of::<Group>() + 8) + (self.groups.len() << self.low)
    }

    fn first_bits(&self) -> u32 {
        self.bits - self.low
    }

    fn mark(&mut self, len: u32, at: u32, exists: bool) {
        let (word, bit) = (&self.exists[len as usize][(at / 64) as usize], 1u64 << (at % 64));
        let old = word.load(Ordering::Relaxed);
        word.store(if exists { old | bit } else { old & !bit }, Ordering::Relaxed);
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
                if spread >= 6 {
                    let prefix = block >> spread;
                    if self.exists[longer as usize][prefix / 64].load(Ordering::Relaxed) >> (prefix % 64) & 1
                        != 0
                    {
                        covered = !0;
                        break;
                    }
                } else {
                    let prefix = block >> spread;
                    let word = self.exists[longer as usize][prefix / 64].load(Ordering::Relaxed);
                    let mut bits = word >> (prefix % 64) & (!0 >> (64 - (64 >> spread)));
                    while bits != 0 {
                        let bit = bits.trailing_zeros();
                        covered |= (!0u64 >> (64 - (1 << spread))) << (bit << spread);
                        bits &= bits - 1;
                    }
                }
            }
            for word in block.max(start)..(block + 64).min(start + count) {
                if covered >> (word - block) & 1 == 0 {
                    self.set_above(word as u32, result);
                }
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
                self.version.current().array.set_group(start + word, result);
            }
        }
    }

    fn set_first(&self, at: u32, word: u32) {
        self.version.current().array.set_first(at as usize, word);
    }

    /// Writes the result of a prefix that was added, or of its parent of `parent_len` bits when it was removed.
    fn paint_group(&mut self, at: u32, prefix: u32, len: u32, result: u32, parent_len: Option<u32>) {
        let first_bits = self.first_bits();
        let Some(group) = self.groups.get_mut(&at) else { return };
        let depth = (len - first_bits) as u8;
        let count = 1usize << (self.bits - len);
        let from = (prefix as usize & ((1 << self.low) - 1)) & !(count - 1);
        let start = (group.number as usize) << self.low;
        let array = &self.version.current().array;
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

    /// Gives a word of the first array a group, filled with what the word holds.
    fn open_group(&mut self, at: u32) -> Result<(), NoMemory> {
        while let Some(&(stamp, number)) = self.limbo.front()
            && self.version.domain().passed(stamp)
        {
            self.free.push(number);
            self.limbo.pop_front();
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                if self.next_group as usize >= self.version.current().array.groups() >> self.low {
                    // Narrow words have no more; wide ones ran out while many groups wait for their grace period.
                    self.rebuild()?;
                }
                if self.next_group >= MAX_GROUPS {
                    return Err(NoMemory { bytes: 4 << self.low });
                }
                self.next_group += 1;
                self.next_group - 1
            }
        };
        let array = &self.version.current().array;
        let above = array.first(at as usize);
        let start = (number as usize) << self.low;
        for word in start..start + (1 << self.low) {
            array.set_group(word, above);
        }
        array.set_first_to_group(at as usize, number);
        let depth = vec![0; 1 << self.low].into();
        self.groups.insert(at, Group { number, depth, prefixes: 0, above });
        Ok(())
    }

    /// Goes over to wide words, if they are not yet.
    fn widen(&mut self) -> Result<(), NoMemory> {
        if let Array::Narrow(_) = self.version.current().array { self.rebuild() } else { Ok(()) }
    }

    /// Copies everything into wide words with room for more groups.
    fn rebuild(&mut self) -> Result<(), NoMemory> {
        let groups = self.most_groups.max(self.next_group).saturating_mul(2).saturating_add(1024);
        let words = Words::<AtomicU32>::new(self.first_bits(), self.low, groups.min(MAX_GROUPS))?;
        let used = (self.next_group as usize) << self.low;
        match &self.version.current().array {
            Array::Narrow(narrow) => {
                let widened = |word: &AtomicU16| {
                    let word = u32::from(word.load(Ordering::Relaxed));
                    (word & NARROW) << 16 | (word & (NARROW - 1))
                };
                copy(&narrow.first, &words.first, widened);
                copy(&narrow.groups[..used], &words.groups, widened);
            }
            Array::Wide(wide) => {
                let same = |word: &AtomicU32| word.load(Ordering::Relaxed);
                copy(&wide.first, &words.first, same);
                copy(&wide.groups[..used], &words.groups, same);
            }
        }
        let plan = words.plan(PlanKind::Two32);
        self.version.publish(Version { plan, array: Array::Wide(words) });
        self.version.domain().shape_changed();
        Ok(())
    }
}

fn copy<T>(from: &[T], to: &[AtomicU32], word: impl Fn(&T) -> u32) {
    for (from, to) in from.iter().zip(to) {
        // Zeros are there already, and pages that stay untouched take no memory.
        match word(from) {
            0 => {}
            word => to.store(word, Ordering::Relaxed),
        }
    }
}

impl<T: Cell> Words<T> {
    fn new(first_bits: u32, low: u32, groups: u32) -> Result<Words<T>, NoMemory> {
        let groups = if low == 0 { 0 } else { (groups as usize) << low };
        Ok(Words {
            first: Cells::zeroed((1 << first_bits) + OVERHANG)?,
            mask: (1 << first_bits) - 1,
            groups: Cells::zeroed(groups + OVERHANG)?,
            low,
        })
    }

    fn plan(&self, kind: PlanKind) -> Plan {
        Plan { kind, shift: self.low, base: self.first.as_ptr().cast(), second: self.groups.as_ptr().cast() }
    }
}

impl Array {
    fn groups(&self) -> usize {
        match self {
            Array::Narrow(words) => words.groups.len(),
            Array::Wide(words) => words.groups.len(),
        }
    }

    fn first(&self, at: usize) -> u32 {
        match self {
            Array::Narrow(words) => words.first[at].load(Ordering::Relaxed).into(),
            Array::Wide(words) => words.first[at].load(Ordering::Relaxed),
        }
    }

    fn set_first(&self, at: usize, word: u32) {
        match self {
            Array::Narrow(words) => words.first[at].store(word as u16, Ordering::Release),
            Array::Wide(words) => words.first[at].store(word, Ordering::Release),
        }
    }

    fn set_first_to_group(&self, at: usize, group: u32) {
        match self {
            Array::Narrow(words) => words.first[at].store((group | NARROW) as u16, Ordering::Release),
            Array::Wide(words) => words.first[at].store(group | WIDE, Ordering::Release),
        }
    }

    fn set_group(&self, at: usize, word: u32) {
        match self {
            Array::Narrow(words) => words.groups[at].store(word as u16, Ordering::Release),
            Array::Wide(words) => words.groups[at].store(word, Ordering::Release),
        }
    }
}

impl Dir24Reader {
    /// Looks up a batch. Key bits above the width do not count. All keys miss for a worker of another domain.
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        match self.version.get(worker) {
            Some(version) => lookup::batch(self.simd, &version.array, keys, out),
            None => out.fill(0),
        }
    }

    /// The plan as of now, whose pointers are valid until the worker's next quiescent point.
    #[inline]
    pub fn current_plan(&self, worker: &Worker) -> Plan {
        self.version.get(worker).map_or(Plan::CALL, |version| version.plan)
    }

    /// For compiled code.
    pub fn plan(&self) -> PlanCell {
        // The plan is the first field of a `repr(C)` version.
        PlanCell(self.version.cell().cast::<AtomicPtr<Plan>>())
    }
}
