//! What the writer knows: the prefixes, by area, and which memory readers see of each.

use super::chunk::{Chunk, Range};
use super::{ARRAY, DIGIT, Link, SUB, Shared};
use crate::fast::grace::{Domain, Stamp};
use crate::fast::memory::{Cells, NoMemory};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

/// Beyond this many prefixes an area is split by an array.
const SPLIT_AT: usize = 1024;

/// The same for the first digit, of which there is one area only.
const SPLIT_ROOT_AT: usize = 48;

/// Beyond this many prefixes the first array of a digit is the larger one.
const LARGE_AT: usize = 40_000;

/// Bits of the arrays: the first one of a digit when small and when large, and any below.
const FIRST_STRIDE: u32 = 16;
const LARGE_STRIDE: u32 = 20;
const STRIDE: u32 = 10;

/// All keys whose digit has the same first `pos` bits.
pub(super) struct Area {
    pos: u32,
    split_at: usize,
    content: Content,
    /// What readers see, when it was last published.
    link: Link,
    base: u32,
    dirty: bool,
    chunk: Option<Chunk>,
    /// Prefixes in it, those of later digits counted as one for each digit value.
    count: usize,
}

enum Content {
    /// Prefixes in the order of start and length.
    Few {
        prefixes: Vec<Prefix>,
        subs: BTreeMap<u64, Sub>,
    },
    Split(Box<Split>),
}

#[derive(Clone, Copy)]
struct Prefix {
    start: u64,
    result: u32,
    len: u8,
}

/// The next digit below one value of this one.
struct Sub {
    number: u32,
    area: Box<Area>,
}

struct Split {
    stride: u32,
    /// Prefixes that end within the stride, by length and start. The others lie in an area each.
    short: BTreeMap<(u32, u64), u32>,
    /// For each length less `pos`, how many of `short` have it.
    lengths: Vec<u32>,
    areas: HashMap<u32, Area>,
    array: Box<Array>,
    /// Areas to publish.
    dirty: Vec<u32>,
    /// Short prefixes that changed, and with them the base of what lies below: length and start.
    moved: Vec<(u32, u64)>,
}

/// What readers see of a split.
#[repr(C)]
pub(super) struct Array {
    /// The index is the digit, shifted right by this, under `mask`.
    pub(super) shift: u64,
    pub(super) mask: u64,
    pub(super) links: Cells<AtomicU64>,
}

/// What readers may still hold: chunks, arrays, sub-table numbers.
#[derive(Default)]
pub(super) struct Garbage {
    chunks: Vec<Chunk>,
    areas: Vec<Area>,
    #[expect(clippy::vec_box, reason = "readers hold their addresses")]
    arrays: Vec<Box<Array>>,
    numbers: Vec<u32>,
    free: Vec<u32>,
    limbo: VecDeque<(Stamp, Vec<u32>)>,
    next_number: u32,
}

impl Garbage {
    /// Hands over what the last publication replaced.
    pub(super) fn retire(&mut self, domain: &Domain) {
        if !(self.chunks.is_empty() && self.areas.is_empty() && self.arrays.is_empty()) {
            let (chunks, areas) = (std::mem::take(&mut self.chunks), std::mem::take(&mut self.areas));
            domain.retire((chunks, areas, std::mem::take(&mut self.arrays)));
        }
        if !self.numbers.is_empty() {
            self.limbo.push_back((domain.stamp(), std::mem::take(&mut self.numbers)));
        }
        while let Some((stamp, numbers)) = self.limbo.front_mut()
            && domain.passed(*stamp)
        {
            self.free.append(numbers);
            self.limbo.pop_front();
        }
    }

    pub(super) fn subs_used(&self) -> usize {
        self.next_number as usize
    }

    fn number(&mut self, shared: &Shared) -> Result<u32, NoMemory> {
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        if self.next_number as usize >= shared.subs.len() {
            return Err(NoMemory { bytes: 8 });
        }
        self.next_number += 1;
        Ok(self.next_number - 1)
    }
}

impl Area {
    /// All keys.
    pub(super) fn root() -> Area {
        Area { split_at: SPLIT_ROOT_AT, ..Area::new(0) }
    }

    fn new(pos: u32) -> Area {
        let content = Content::Few { prefixes: Vec::new(), subs: BTreeMap::new() };
        Area { pos, split_at: SPLIT_AT, content, link: Link(0), base: 0, dirty: true, chunk: None, count: 0 }
    }

    /// Whether the prefix was not there yet.
    pub(super) fn set(
        &mut self,
        digits: &[u64],
        len: u32,
        result: u32,
        garbage: &mut Garbage,
        shared: &Shared,
    ) -> Result<bool, NoMemory> {
        self.split_if_large(garbage)?;
        let (digit, pos) = (digits[0], self.pos);
        let is_new = match &mut self.content {
            Content::Few { prefixes, .. } if len <= DIGIT => {
                let prefix = Prefix { start: cut(digit, len), result, len: len as u8 };
                match prefixes.binary_search_by_key(&prefix.order(), Prefix::order) {
                    Ok(at) => {
                        prefixes[at].result = result;
                        false
                    }
                    Err(at) => {
                        if prefixes.len() == prefixes.capacity() {
                            prefixes.reserve_exact(prefixes.len() / 4 + 2);
                        }
                        prefixes.insert(at, prefix);
                        self.count += 1;
                        true
                    }
                }
            }
            Content::Few { subs, .. } => {
                let sub = match subs.entry(digit) {
                    std::collections::btree_map::Entry::Occupied(sub) => sub.into_mut(),
                    std::collections::btree_map::Entry::Vacant(vacant) => {
                        self.count += 1;
                        vacant.insert(Sub { number: garbage.number(shared)?, area: Box::new(Area::new(0)) })
                    }
                };
                sub.area.set(&digits[1..], len - DIGIT, result, garbage, shared)?
            }
            Content::Split(split) if len <= pos + split.stride => {
                split.moved.push((len, cut(digit, len)));
                let is_new = split.short.insert((len, cut(digit, len)), result).is_none();
                split.lengths[(len - pos) as usize] += u32::from(is_new);
                is_new
            }
            Content::Split(split) => {
                let slot = split.slot(digit);
                split.dirty.push(slot);
                let below = pos + split.stride;
                let area = split.areas.entry(slot).or_insert_with(|| Area::new(below));
                let before = area.count;
                let is_new = area.set(digits, len, result, garbage, shared)?;
                self.count += area.count - before;
                is_new
            }
        };
        self.dirty = true;
        Ok(is_new)
    }

    /// Whether the prefix was there.
    pub(super) fn remove(&mut self, digits: &[u64], len: u32, garbage: &mut Garbage) -> bool {
        let (digit, pos) = (digits[0], self.pos);
        let was_there = match &mut self.content {
            Content::Few { prefixes, .. } if len <= DIGIT => {
                let wanted = (cut(digit, len), len as u8);
                let found = prefixes.binary_search_by_key(&wanted, Prefix::order);
                if let Ok(at) = found {
                    prefixes.remove(at);
                    self.count -= 1;
                }
                found.is_ok()
            }
            Content::Few { subs, .. } => {
                let Some(sub) = subs.get_mut(&digit) else { return false };
                let was_there = sub.area.remove(&digits[1..], len - DIGIT, garbage);
                if sub.area.count == 0
                    && let Some(sub) = subs.remove(&digit)
                {
                    garbage.numbers.push(sub.number);
                    garbage.areas.push(*sub.area);
                    self.count -= 1;
                }
                was_there
            }
            Content::Split(split) if len <= pos + split.stride => {
                let was_there = split.short.remove(&(len, cut(digit, len))).is_some();
                split.lengths[(len - pos) as usize] -= u32::from(was_there);
                split.moved.push((len, cut(digit, len)));
                was_there
            }
            Content::Split(split) => {
                let slot = split.slot(digit);
                let Some(area) = split.areas.get_mut(&slot) else { return false };
                let before = area.count;
                let was_there = area.remove(digits, len, garbage);
                self.count -= before - area.count;
                split.dirty.push(slot);
                was_there
            }
        };
        self.dirty |= was_there;
        was_there
    }

    /// Brings what readers see up to date, below a link that the caller then publishes. `base` is the result of keys
    /// that no prefix of the area covers.
    pub(super) fn publish(
        &mut self,
        base: u32,
        garbage: &mut Garbage,
        shared: &Shared,
    ) -> Result<Link, NoMemory> {
        if !self.dirty && self.base == base {
            return Ok(self.link);
        }
        self.split_if_large(garbage)?;
        let pos = self.pos;
        self.link = match &mut self.content {
            Content::Few { prefixes, subs } => {
                let ranges = ranges(pos, prefixes, subs, base, garbage, shared)?;
                let old = match &ranges[..] {
                    [only] if only.value & SUB == 0 => {
                        self.link = Link::result(only.value);
                        self.chunk.take()
                    }
                    _ => {
                        let (chunk, link) = Chunk::build(&ranges, pos)?;
                        self.link = link;
                        self.chunk.replace(chunk)
                    }
                };
                garbage.chunks.extend(old);
                self.link
            }
            Content::Split(split) => {
                split.publish(pos, base, self.base != base, garbage, shared)?;
                Link(std::ptr::from_ref(&*split.array) as u64 | ARRAY)
            }
        };
        // What was shown while the area was small stays until nobody reads it.
        if let Content::Split(_) = self.content {
            garbage.chunks.extend(self.chunk.take());
        }
        (self.base, self.dirty) = (base, false);
        Ok(self.link)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let chunk = self.chunk.as_ref().map_or(0, |chunk| chunk.bytes() + 16);
        let content = match &self.content {
            Content::Few { prefixes, subs } => {
                let below: usize = subs.values().map(|sub| sub.area.memory_bytes() + size_of::<Area>()).sum();
                prefixes.capacity() * size_of::<Prefix>() + subs.len() * 40 + below
            }
            Content::Split(split) => {
                let areas: usize = split.areas.values().map(Area::memory_bytes).sum();
                let table = split.areas.capacity() * (size_of::<Area>() + 8);
                areas + table + split.short.len() * 32 + split.array.links.bytes()
            }
        };
        chunk + content
    }

    /// Puts an array over an area that has become large, or a larger one over the first of a digit.
    fn split_if_large(&mut self, garbage: &mut Garbage) -> Result<(), NoMemory> {
        let stride = match &self.content {
            Content::Few { .. } if self.count < self.split_at || self.pos + 1 >= DIGIT => return Ok(()),
            Content::Few { .. } if self.pos > 0 => STRIDE.min(DIGIT - self.pos - 1),
            Content::Few { .. } if self.count < LARGE_AT => FIRST_STRIDE,
            Content::Split(split) if self.pos > 0 || self.count < LARGE_AT || split.stride > FIRST_STRIDE => {
                return Ok(());
            }
            Content::Few { .. } | Content::Split(_) => LARGE_STRIDE,
        };
        let mut split = Box::new(Split::new(self.pos, stride)?);
        let nothing = Content::Few { prefixes: Vec::new(), subs: BTreeMap::new() };
        let (mut prefixes, mut subs) = (Vec::new(), BTreeMap::new());
        std::mem::replace(&mut self.content, nothing).gather(&mut prefixes, &mut subs, garbage);
        // In order, so that each area's are too.
        prefixes.sort_unstable_by_key(Prefix::order);
        for prefix in prefixes {
            let len = u32::from(prefix.len);
            if len <= self.pos + stride {
                split.short.insert((len, prefix.start), prefix.result);
                split.lengths[(len - self.pos) as usize] += 1;
            } else if let Content::Few { prefixes, .. } =
                &mut split.fresh_area(self.pos, prefix.start).content
            {
                prefixes.push(prefix);
            }
        }
        for (digit, sub) in subs {
            if let Content::Few { subs, .. } = &mut split.fresh_area(self.pos, digit).content {
                subs.insert(digit, sub);
            }
        }
        self.count = split.areas.values().map(|area| area.count).sum();
        self.content = Content::Split(split);
        self.dirty = true;
        Ok(())
    }
}

impl Content {
    /// Takes all prefixes and sub-tables out. What readers see of the rest goes to the garbage.
    fn gather(self, prefixes: &mut Vec<Prefix>, subs: &mut BTreeMap<u64, Sub>, garbage: &mut Garbage) {
        match self {
            Content::Few { prefixes: few, subs: below } => {
                prefixes.extend(few);
                subs.extend(below);
            }
            Content::Split(split) => {
                let short = split.short.iter();
                prefixes.extend(short.map(|(&(len, start), &result)| Prefix {
                    start,
                    result,
                    len: len as u8,
                }));
                for mut area in split.areas.into_values() {
                    let nothing = Content::Few { prefixes: Vec::new(), subs: BTreeMap::new() };
                    std::mem::replace(&mut area.content, nothing).gather(prefixes, subs, garbage);
                    garbage.areas.push(area);
                }
                garbage.arrays.push(split.array);
            }
        }
    }
}

impl Split {
    fn new(pos: u32, stride: u32) -> Result<Split, NoMemory> {
        Ok(Split {
            stride,
            short: BTreeMap::new(),
            lengths: vec![0; stride as usize + 1],
            areas: HashMap::new(),
            array: Box::new(Array {
                shift: u64::from(DIGIT - pos - stride),
                mask: (1 << stride) - 1,
                links: Cells::zeroed(1 << stride)?,
            }),
            dirty: Vec::new(),
            // Everything, once.
            moved: vec![(pos, 0)],
        })
    }

    fn slot(&self, digit: u64) -> u32 {
        (digit >> self.array.shift & self.array.mask) as u32
    }

    /// The area of a digit, counted one more.
    fn fresh_area(&mut self, pos: u32, digit: u64) -> &mut Area {
        let below = pos + self.stride;
        let slot = self.slot(digit);
        let area = self.areas.entry(slot).or_insert_with(|| Area::new(below));
        area.count += 1;
        area
    }

    fn publish(
        &mut self,
        pos: u32,
        base: u32,
        base_changed: bool,
        garbage: &mut Garbage,
        shared: &Shared,
    ) -> Result<(), NoMemory> {
        // Below changed short prefixes (the base is the shortest) all links may be others.
        let mut moved = std::mem::take(&mut self.moved);
        if base_changed || moved.iter().any(|&(len, _)| len == pos) {
            moved = vec![(pos, 0)];
        }
        for (len, start) in moved {
            let first = if len == pos { 0 } else { self.slot(start) };
            for (slot, base) in (first..).zip(self.bases(pos, len, first, base)) {
                self.publish_slot(slot, base, garbage, shared)?;
            }
        }
        for slot in std::mem::take(&mut self.dirty) {
            let below = pos + self.stride;
            let slot_base = self.bases(pos, below, slot, base)[0];
            self.publish_slot(slot, slot_base, garbage, shared)?;
        }
        Ok(())
    }

    fn publish_slot(
        &mut self,
        slot: u32,
        base: u32,
        garbage: &mut Garbage,
        shared: &Shared,
    ) -> Result<(), NoMemory> {
        let link = match self.areas.get_mut(&slot) {
            Some(area) if area.count == 0 => {
                garbage.areas.extend(self.areas.remove(&slot));
                Link::result(base)
            }
            Some(area) => area.publish(base, garbage, shared)?,
            None => Link::result(base),
        };
        self.array.links[slot as usize].store(link.0, Ordering::Release);
        Ok(())
    }

    /// The results that the slots from `first` on have from short prefixes, as many as lie below one prefix of `len` bits.
    fn bases(&self, pos: u32, len: u32, first: u32, base: u32) -> Vec<u32> {
        let shift = self.array.shift as u32;
        let count = 1usize << (pos + self.stride - len);
        let mut bases = vec![base; count];
        // The bits above `pos` are those of any prefix in here.
        let Some((&(_, any), _)) = self.short.first_key_value() else { return bases };
        let start = cut(any, pos) | u64::from(first) << shift;
        for (longer, _) in (pos..).zip(&self.lengths).filter(|(_, count)| **count > 0) {
            if longer <= len {
                if let Some(&result) = self.short.get(&(longer, cut(start, longer))) {
                    bases.fill(result);
                }
                continue;
            }
            let last = start | (count as u64 - 1) << shift;
            for (&(_, prefix), &result) in self.short.range((longer, start)..=(longer, last)) {
                let from = (self.slot(prefix) - first) as usize;
                bases[from..from + (1 << (pos + self.stride - longer))].fill(result);
            }
        }
        bases
    }
}

/// The disjoint ranges of an area, in order, and the sub-tables below them published.
fn ranges(
    pos: u32,
    prefixes: &[Prefix],
    subs: &mut BTreeMap<u64, Sub>,
    base: u32,
    garbage: &mut Garbage,
    shared: &Shared,
) -> Result<Vec<Range>, NoMemory> {
    let first =
        prefixes.first().map(|prefix| prefix.start).into_iter().chain(subs.keys().next().copied()).next();
    let lowest = cut(first.unwrap_or(0), pos);
    let highest = lowest | (!0u64).checked_shr(pos).unwrap_or(0);
    let mut sweep =
        Sweep { ranges: Vec::with_capacity(2 * prefixes.len() + 1), open: Vec::new(), base, highest };
    sweep.ranges.push(Range { start: lowest, value: base });
    let mut subs = subs.iter_mut().peekable();
    for prefix in prefixes {
        while let Some((&digit, sub)) = subs.next_if(|(digit, _)| **digit < prefix.start) {
            sweep.point(digit, sub, garbage, shared)?;
        }
        sweep.open(prefix.start, prefix.end(), prefix.result);
    }
    for (&digit, sub) in subs {
        sweep.point(digit, sub, garbage, shared)?;
    }
    sweep.close_before(None);
    Ok(sweep.ranges)
}

/// Goes over nested prefixes from low to high.
struct Sweep {
    ranges: Vec<Range>,
    /// The last key and the result of each prefix that has begun and not ended, outermost first.
    open: Vec<(u64, u32)>,
    base: u32,
    highest: u64,
}

impl Sweep {
    fn open(&mut self, start: u64, end: u64, value: u32) {
        self.close_before(Some(start));
        self.begin(start, value);
        self.open.push((end, value));
    }

    fn point(
        &mut self,
        digit: u64,
        sub: &mut Sub,
        garbage: &mut Garbage,
        shared: &Shared,
    ) -> Result<(), NoMemory> {
        self.close_before(Some(digit));
        let link = sub.area.publish(self.value(), garbage, shared)?;
        shared.subs[sub.number as usize].store(link.0, Ordering::Release);
        self.open(digit, digit, sub.number | SUB);
        Ok(())
    }

    fn value(&self) -> u32 {
        self.open.last().map_or(self.base, |(_, value)| *value)
    }

    /// Ends what ends before a key, or everything.
    fn close_before(&mut self, start: Option<u64>) {
        while let Some(&(end, _)) = self.open.last()
            && start.is_none_or(|start| end < start)
        {
            self.open.pop();
            if end < self.highest {
                self.begin(end + 1, self.value());
            }
        }
    }

    fn begin(&mut self, start: u64, value: u32) {
        if self.ranges.last().is_some_and(|last| last.start == start) {
            self.ranges.pop();
        }
        if self.ranges.last().is_none_or(|last| last.value != value) {
            self.ranges.push(Range { start, value });
        }
    }
}

impl Prefix {
    fn order(&self) -> (u64, u8) {
        (self.start, self.len)
    }

    /// The last digit that it covers.
    fn end(&self) -> u64 {
        self.start | (!0u64).checked_shr(self.len.into()).unwrap_or(0)
    }
}

/// The first `len` bits of a digit.
fn cut(digit: u64, len: u32) -> u64 {
    if len == 0 { 0 } else { digit & !0u64 << (DIGIT - len) }
}
