//! Buckets: how keys and results lie in lines of 64 bytes, and how a writer changes them.
//!
//! | limbs | at 0 | then | control word |
//! | --- | --- | --- | --- |
//! | 1 | 5 keys of 8 bytes | 5 results of 4 bytes | at 60 |
//! | 2 | 3 keys of 16 bytes | 3 results | at 60 |
//! | more | 10 tags of 2 bytes | 10 record numbers of 4 bytes | at 60 |
//!
//! The control word has a bit for each slot that is in use (bits 0 to 9) and, above, the number of the line where the
//! bucket goes on, 0 for none. A record is the key's limbs and the result in one limb more.

use crate::engines::contract::{LookupContract, lines};
use crate::engines::memory::{Cells, NoMemory};
use crate::engines::shape::{Line, LookupKind, LookupShape, Spread};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Keys of one limb.
    One,
    /// Keys of two limbs.
    Two,
    /// Tags of keys of so many limbs.
    Tags(usize),
}

/// Where a key is: a line, and the slot in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPosition {
    line: u32,
    slot: u32,
    /// The record of a wide key.
    record: u32,
}

/// Limbs in a line.
const LINE: usize = 8;

/// Bits of the control word that are slots.
pub(super) const SLOT_BITS: u32 = Line::SLOT_BITS;

/// Most lines, so that their numbers fit the control word above the slots.
const MAX_OVERFLOW: usize = (1 << (32 - SLOT_BITS)) - 1;

/// The byte of the control word: the high half of the last limb.
const CONTROL: usize = Line::CONTROL as usize;
const CONTROL_SHIFT: u32 = 32;

pub(super) struct Lines {
    kind: Kind,
    pub(super) spread: Spread,
    pub(super) cells: Cells<AtomicU64>,
    /// Limbs and result of each wide key.
    pub(super) records: Cells<AtomicU64>,
}

/// What the writer knows of the room in [`Lines`].
pub(super) struct Room {
    /// For each line, the slots that are taken out but may still be read.
    pub(super) resting: Vec<u16>,
    /// Overflow lines given out.
    overflow: u32,
    max_overflow: u32,
    free_records: Vec<u32>,
    /// Records never used are from here on.
    next_record: u32,
    max_records: u32,
}

impl Kind {
    pub(super) fn of(limbs: usize) -> Kind {
        match limbs {
            1 => Kind::One,
            2 => Kind::Two,
            more => Kind::Tags(more),
        }
    }

    fn slots(self) -> u32 {
        match self {
            Kind::One => Line::ONE.slots,
            Kind::Two => Line::TWO.slots,
            Kind::Tags(_) => 10,
        }
    }

    pub(super) fn limbs(self) -> usize {
        match self {
            Kind::One => 1,
            Kind::Two => 2,
            Kind::Tags(limbs) => limbs,
        }
    }
}

impl Lines {
    /// Room for about `capacity` keys at a load of 60 %.
    pub(super) fn new(kind: Kind, capacity: usize, seeds: [u64; 2]) -> Result<(Lines, Room), NoMemory> {
        let buckets = (capacity * 5).div_ceil(kind.slots() as usize * 3).max(8);
        let max_overflow = (buckets / 4 + 8).min(MAX_OVERFLOW);
        let max_records = if let Kind::Tags(_) = kind { capacity + capacity / 4 + 64 } else { 0 };
        let cells = Cells::zeroed((buckets + max_overflow) * LINE)?;
        let records = Cells::zeroed(max_records.saturating_mul(kind.limbs() + 1))?;
        let room = Room {
            resting: vec![0; buckets + max_overflow],
            overflow: 0,
            max_overflow: max_overflow as u32,
            free_records: Vec::new(),
            next_record: 0,
            max_records: max_records as u32,
        };
        let spread = Spread { seeds, buckets: buckets as u64 };
        Ok((Lines { kind, spread, cells, records }, room))
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn limbs(&self) -> usize {
        self.kind.limbs()
    }

    /// How compiled code finds results.
    #[inline]
    pub(super) fn shape(&self) -> LookupShape {
        let kind = match self.kind {
            Kind::One => LookupKind::Lines1,
            Kind::Two => LookupKind::Lines2,
            Kind::Tags(_) => return LookupShape::CALL,
        };
        let second = std::ptr::from_ref(&self.spread).cast();
        LookupShape { kind, base: self.cells.as_ptr().cast(), second, ..LookupShape::CALL }
    }

    /// Lines that keys are spread over; the overflow lines follow.
    fn buckets(&self) -> u32 {
        // Lines are numbered by 32 bits.
        self.spread.buckets as u32
    }

    pub(super) fn count(&self) -> usize {
        self.cells.len() / LINE
    }

    pub(super) fn bytes(&self) -> usize {
        self.cells.bytes() + self.records.bytes()
    }

    /// Bucket and tag of a key.
    #[inline(always)]
    pub(super) fn place(&self, key: &[u64]) -> (u32, u16) {
        let hash = self.spread.hash(key);
        (self.spread.bucket(hash) as u32, hash as u16)
    }

    /// The control word of a line.
    #[inline(always)]
    pub(super) fn control(&self, line: u32) -> u32 {
        (self.cells[line as usize * LINE + 7].load(Ordering::Acquire) >> CONTROL_SHIFT) as u32
    }

    /// The line after one with this control word.
    #[inline(always)]
    pub(super) fn next(&self, control: u32) -> Option<u32> {
        let number = control >> SLOT_BITS;
        (number != 0).then(|| self.buckets() + number - 1)
    }

    /// See [`super::Exact::contract`].
    pub(super) fn contract(&self) -> LookupContract {
        let record = lines((self.limbs() + 1) * 8);
        let is_wide = matches!(self.kind, Kind::Tags(_));
        let mut most = LookupContract { engine: "exact", ..LookupContract::default() };
        let mut tags = HashMap::new();
        for bucket in 0..self.buckets() {
            tags.clear();
            let (mut line, mut chain) = (bucket, 1);
            loop {
                let control = self.control(line);
                if is_wide {
                    for slot in (0..SLOT_BITS).filter(|slot| control >> slot & 1 != 0) {
                        *tags.entry(self.tag(line, slot)).or_insert(0) += 1;
                    }
                }
                match self.next(control) {
                    Some(next) => (line, chain) = (next, chain + 1),
                    None => break,
                }
            }
            let records = tags.values().copied().max().unwrap_or(0);
            most.probes = most.probes.max(chain + records);
            most.lines = most.lines.max(chain + records * record);
        }
        most
    }

    /// The position of a key.
    pub(super) fn find(&self, key: &[u64]) -> Option<KeyPosition> {
        if key.len() != self.limbs() {
            return None;
        }
        let (bucket, tag) = self.place(key);
        let mut line = bucket;
        loop {
            let control = self.control(line);
            let mut used = control & ((1 << SLOT_BITS) - 1);
            while used != 0 {
                let slot = used.trailing_zeros();
                used &= used - 1;
                let position = KeyPosition { line, slot, record: self.record(line, slot) };
                if self.holds(position, key, tag) {
                    return Some(position);
                }
            }
            line = self.next(control)?;
        }
    }

    #[inline(always)]
    fn holds(&self, position: KeyPosition, key: &[u64], tag: u16) -> bool {
        let start = position.line as usize * LINE;
        let limb = |at: usize| self.cells[at].load(Ordering::Relaxed);
        match self.kind {
            Kind::One => limb(start + position.slot as usize) == key[0],
            Kind::Two => {
                let at = start + 2 * position.slot as usize;
                limb(at) == key[0] && limb(at + 1) == key[1]
            }
            Kind::Tags(limbs) => {
                let found = limb(start + position.slot as usize / 4) >> (position.slot % 4 * 16);
                let at = position.record as usize * (limbs + 1);
                found as u16 == tag
                    && key.iter().zip(&self.records[at..]).all(|(a, b)| *a == b.load(Ordering::Relaxed))
            }
        }
    }

    /// Whether a slot in use of a line of narrow keys has a key.
    #[cfg(test)]
    pub(super) fn holds_key(&self, line: u32, slot: u32, key: &[u64]) -> bool {
        self.holds(KeyPosition { line, slot, record: 0 }, key, 0)
    }

    /// The tag in a slot of a line of tags.
    pub(super) fn tag(&self, line: u32, slot: u32) -> u16 {
        let limb = &self.cells[line as usize * LINE + slot as usize / 4];
        (limb.load(Ordering::Relaxed) >> (slot % 4 * 16)) as u16
    }

    /// The 32-bit word at a byte offset of a line.
    #[inline(always)]
    fn word(&self, line: u32, byte: usize) -> u32 {
        (self.cells[line as usize * LINE + byte / 8].load(Ordering::Acquire) >> (byte % 8 * 8)) as u32
    }

    /// The writer is alone, and readers load single words of 32 bits: to them the other half never changes.
    fn set_word(&self, line: u32, byte: usize, word: u32) {
        let cell = &self.cells[line as usize * LINE + byte / 8];
        let shift = byte % 8 * 8;
        let rest = cell.load(Ordering::Relaxed) & !(0xffff_ffff << shift);
        cell.store(rest | u64::from(word) << shift, Ordering::Release);
    }

    fn result_byte(&self, slot: u32) -> usize {
        let start = match self.kind {
            Kind::One => Line::ONE.results as usize,
            Kind::Two => Line::TWO.results as usize,
            Kind::Tags(_) => 20,
        };
        start + 4 * slot as usize
    }

    fn record(&self, line: u32, slot: u32) -> u32 {
        if let Kind::Tags(_) = self.kind { self.word(line, self.result_byte(slot)) } else { 0 }
    }

    fn record_result(&self, record: u32) -> &AtomicU64 {
        &self.records[record as usize * (self.limbs() + 1) + self.limbs()]
    }

    pub(super) fn result(&self, position: KeyPosition) -> u32 {
        match self.kind {
            Kind::Tags(_) => self.record_result(position.record).load(Ordering::Acquire) as u32,
            Kind::One | Kind::Two => self.word(position.line, self.result_byte(position.slot)),
        }
    }

    pub(super) fn set_result(&self, position: KeyPosition, result: u32) {
        match self.kind {
            Kind::Tags(_) => self.record_result(position.record).store(result.into(), Ordering::Release),
            Kind::One | Kind::Two => self.set_word(position.line, self.result_byte(position.slot), result),
        }
    }

    /// Publishes a key that is not there. False when there is no room.
    pub(super) fn insert(&self, key: &[u64], result: u32, room: &mut Room) -> bool {
        let (bucket, tag) = self.place(key);
        let mut line = bucket;
        let all = (1u32 << self.kind.slots()) - 1;
        let slot = loop {
            let control = self.control(line);
            let free = all & !control & !u32::from(room.resting[line as usize]);
            if free != 0 {
                break free.trailing_zeros();
            }
            match self.next(control) {
                Some(next) => line = next,
                None if room.overflow < room.max_overflow => {
                    room.overflow += 1;
                    self.set_word(line, CONTROL, control | room.overflow << SLOT_BITS);
                    line = self.buckets() + room.overflow - 1;
                }
                None => return false,
            }
        };
        let start = line as usize * LINE;
        match self.kind {
            Kind::One => self.cells[start + slot as usize].store(key[0], Ordering::Relaxed),
            Kind::Two => {
                self.cells[start + 2 * slot as usize].store(key[0], Ordering::Relaxed);
                self.cells[start + 2 * slot as usize + 1].store(key[1], Ordering::Relaxed);
            }
            Kind::Tags(limbs) => {
                let Some(record) = room.record() else { return false };
                let at = record as usize * (limbs + 1);
                for (to, from) in self.records[at..].iter().zip(key) {
                    to.store(*from, Ordering::Relaxed);
                }
                self.records[at + limbs].store(result.into(), Ordering::Relaxed);
                let (byte, shift) = (slot as usize / 2 * 4, slot % 2 * 16);
                let tags = self.word(line, byte) & !(0xffff << shift) | u32::from(tag) << shift;
                self.set_word(line, byte, tags);
                self.set_word(line, self.result_byte(slot), record);
            }
        }
        if self.records.is_empty() {
            self.set_word(line, self.result_byte(slot), result);
        }
        // Readers see the bit only after all that it stands for.
        self.set_word(line, CONTROL, self.control(line) | 1 << slot);
        true
    }

    /// Hides a slot from readers that come from now on.
    pub(super) fn unpublish(&self, position: KeyPosition) {
        self.set_word(position.line, CONTROL, self.control(position.line) & !(1 << position.slot));
    }

    /// All keys with their results.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u64], u32)) {
        let limbs = self.limbs();
        let mut key = vec![0; limbs];
        for line in 0..self.count() as u32 {
            let mut used = self.control(line) & ((1 << SLOT_BITS) - 1);
            while used != 0 {
                let slot = used.trailing_zeros();
                used &= used - 1;
                let position = KeyPosition { line, slot, record: self.record(line, slot) };
                let from = match self.kind {
                    Kind::Tags(_) => &self.records[position.record as usize * (limbs + 1)..],
                    Kind::One | Kind::Two => &self.cells[line as usize * LINE + limbs * slot as usize..],
                };
                key.iter_mut().zip(from).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
                visit(&key, self.result(position));
            }
        }
    }

    /// The address of a line.
    #[inline(always)]
    pub(super) fn address(&self, line: u32) -> *const u8 {
        self.cells.as_ptr().wrapping_add(line as usize * LINE).cast()
    }

    /// The result of a slot that the reader found in use.
    #[inline(always)]
    pub(super) fn found(&self, line: u32, slot: u32) -> u32 {
        self.word(line, self.result_byte(slot))
    }
}

impl Room {
    /// Keeps a slot that was unpublished from being used.
    pub(super) fn rest(&mut self, position: KeyPosition) {
        self.resting[position.line as usize] |= 1 << position.slot;
    }

    /// Gives a slot free that no reader holds any more.
    pub(super) fn free(&mut self, position: KeyPosition) {
        self.resting[position.line as usize] &= !(1 << position.slot);
        if self.max_records > 0 {
            self.free_records.push(position.record);
        }
    }

    fn record(&mut self) -> Option<u32> {
        if let Some(record) = self.free_records.pop() {
            return Some(record);
        }
        let fresh = (self.next_record < self.max_records).then_some(self.next_record)?;
        self.next_record += 1;
        Some(fresh)
    }
}
