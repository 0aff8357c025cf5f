//! Counters of packets and bytes.

use crate::engines::{Cell, NoMemory, Segments};
use crate::error::SpecError;
use crate::limits::{MAX_ARRAY_BYTES, MAX_CELLS};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a counter shows. Both numbers are always kept; the kind says which of them have a meaning to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterKind {
    /// Packets only.
    Packets,
    /// Bytes only.
    Bytes,
    /// Packets and bytes.
    Both,
}

/// The value of one counter. Both numbers wrap at 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Packets counted.
    pub packets: u64,
    /// Bytes counted.
    pub bytes: u64,
}

/// Counts that one worker made. Only that worker writes them, so it needs no locked instruction.
#[derive(Default)]
#[repr(C)]
pub(crate) struct CounterCell {
    packets: AtomicU64,
    bytes: AtomicU64,
}

// SAFETY: two atomic integers, valid in every bit pattern and made to be shared.
unsafe impl Cell for CounterCell {}

/// One worker's part of some counters. What it counts is seen by control at once, and no other worker writes to its
/// memory.
pub struct CounterPart {
    cells: Arc<Segments<CounterCell>>,
    /// Indices from here on count nothing.
    end: u64,
}

impl std::fmt::Debug for CounterPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CounterPart")
    }
}

impl CounterPart {
    /// Counts one packet of so many bytes. Returns false, and counts nothing, when there is no such counter.
    #[inline]
    pub fn count(&mut self, index: u64, bytes: u64) -> bool {
        let Some(cell) = self.cells.get(index as usize).filter(|_| index < self.end) else { return false };
        // Nobody else writes: a load and a store are enough.
        let packets = cell.packets.load(Ordering::Relaxed).wrapping_add(1);
        cell.packets.store(packets, Ordering::Relaxed);
        cell.bytes.store(cell.bytes.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
        true
    }

    /// For compiled code of this worker that counts itself: with `starts` what this gives, counter `at` lies at
    /// `starts[log2(at | 63)] + 16 at`, packets and bytes in 64 bits each. A start that is null has none of its counters.
    pub fn starts(&self) -> *const u8 {
        const { assert!(size_of::<CounterCell>() == 16) };
        self.cells.starts().cast()
    }
}

/// Counters as control sees them: the sum of what all workers counted, and of what it has set itself.
#[derive(Default)]
pub(crate) struct Tally {
    parts: Vec<Arc<Segments<CounterCell>>>,
    /// What is added to the counts of workers; zero beyond the end.
    own: Vec<CounterValue>,
    cells: usize,
}

impl Tally {
    /// Makes so many counters of them, or leaves them if they are more.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn reserve(&mut self, cells: usize) -> Result<(), NoMemory> {
        if let Some(last) = cells.checked_sub(1).filter(|_| cells > self.cells) {
            self.parts.iter().try_for_each(|part| part.reserve(last))?;
            self.cells = cells;
        }
        Ok(())
    }

    /// The part of one more worker, for the counters before `end`, of which there may be more in time.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(crate) fn part(&mut self, end: u64) -> Result<CounterPart, NoMemory> {
        let cells = Segments::new();
        if let Some(last) = self.cells.checked_sub(1) {
            cells.reserve(last)?;
        }
        let cells = Arc::new(cells);
        self.parts.push(Arc::clone(&cells));
        Ok(CounterPart { cells, end })
    }

    pub(crate) fn value(&self, at: usize) -> CounterValue {
        let counted = self.counted(at);
        let own = self.own.get(at).copied().unwrap_or_default();
        CounterValue {
            packets: counted.packets.wrapping_add(own.packets),
            bytes: counted.bytes.wrapping_add(own.bytes),
        }
    }

    pub(crate) fn set(&mut self, at: usize, value: CounterValue) {
        let counted = self.counted(at);
        let own = CounterValue {
            packets: value.packets.wrapping_sub(counted.packets),
            bytes: value.bytes.wrapping_sub(counted.bytes),
        };
        if at >= self.own.len() {
            if own == CounterValue::default() {
                return;
            }
            self.own.resize(at + 1, CounterValue::default());
        }
        self.own[at] = own;
    }

    /// Adds to a counter, whatever workers count meanwhile.
    pub(crate) fn add(&mut self, at: usize, value: CounterValue) {
        if value == CounterValue::default() {
            return;
        }
        if at >= self.own.len() {
            self.own.resize(at + 1, CounterValue::default());
        }
        let own = &mut self.own[at];
        own.packets = own.packets.wrapping_add(value.packets);
        own.bytes = own.bytes.wrapping_add(value.bytes);
    }

    pub(crate) fn reset(&mut self) {
        (0..self.cells).for_each(|at| self.set(at, CounterValue::default()));
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(|part| part.bytes()).sum();
        parts + self.own.capacity() * size_of::<CounterValue>()
    }

    fn counted(&self, at: usize) -> CounterValue {
        let cells = self.parts.iter().filter_map(|part| part.get(at));
        cells.fold(CounterValue::default(), |sum, cell| CounterValue {
            packets: sum.packets.wrapping_add(cell.packets.load(Ordering::Relaxed)),
            bytes: sum.bytes.wrapping_add(cell.bytes.load(Ordering::Relaxed)),
        })
    }
}

/// An array of counters, all zero at first. Workers count in [parts](CounterArray::part) of their own; what is read is
/// the sum.
pub struct CounterArray {
    kind: CounterKind,
    size: u64,
    tally: Tally,
}

impl std::fmt::Debug for CounterArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CounterArray").field("size", &self.size).finish_non_exhaustive()
    }
}

impl CounterArray {
    /// `size` counters.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] above [`MAX_CELLS`] or [`MAX_ARRAY_BYTES`]; [`SpecError::NoMemory`].
    pub fn new(kind: CounterKind, size: u64) -> Result<CounterArray, SpecError> {
        check_cells("the number of counters", size, 16)?;
        let mut tally = Tally::default();
        tally.reserve(size as usize)?;
        Ok(CounterArray { kind, size, tally })
    }

    /// What the counters show.
    pub fn kind(&self) -> CounterKind {
        self.kind
    }

    /// The number of counters.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of memory once all counters were used: those of each worker.
    pub fn memory_bytes(&self) -> usize {
        self.tally.bytes()
    }

    /// The part of one more worker. What it has counted stays when the worker goes.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn part(&mut self) -> Result<CounterPart, NoMemory> {
        self.tally.part(self.size)
    }

    /// The value of a counter; `None` when there is no such counter.
    pub fn read(&self, index: u64) -> Option<CounterValue> {
        (index < self.size).then(|| self.tally.value(index as usize))
    }

    /// Sets a counter. Returns false when there is no such counter.
    pub fn write(&mut self, index: u64, value: CounterValue) -> bool {
        let exists = index < self.size;
        if exists {
            self.tally.set(index as usize, value);
        }
        exists
    }

    /// Adds to a counter; what workers count at the same time is counted too. Returns false when there is no such counter.
    pub fn add(&mut self, index: u64, value: CounterValue) -> bool {
        let exists = index < self.size;
        if exists {
            self.tally.add(index as usize, value);
        }
        exists
    }

    /// Sets all counters to zero.
    pub fn reset(&mut self) {
        self.tally.reset();
    }
}

/// Checks the number of cells of an array and the memory they take.
pub(crate) fn check_cells(what: &'static str, cells: u64, cell_bytes: u64) -> Result<(), SpecError> {
    if cells > MAX_CELLS {
        return Err(SpecError::TooLarge { what, asked: cells, limit: MAX_CELLS });
    }
    // At most 2^26 cells of at most 2^13 bytes: no overflow.
    let bytes = cells * cell_bytes;
    if bytes > MAX_ARRAY_BYTES {
        return Err(SpecError::TooLarge {
            what: "the memory of the array in bytes",
            asked: bytes,
            limit: MAX_ARRAY_BYTES,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_packets_and_bytes() {
        let mut counters = CounterArray::new(CounterKind::Both, 2).unwrap();
        let mut part = counters.part().unwrap();
        assert!(part.count(1, 64));
        assert!(part.count(1, 1500));
        assert_eq!(counters.read(0), Some(CounterValue::default()));
        assert_eq!(counters.read(1), Some(CounterValue { packets: 2, bytes: 1564 }));
        counters.reset();
        assert_eq!(counters.read(1), Some(CounterValue::default()));
        part.count(1, 7);
        assert_eq!(counters.read(1), Some(CounterValue { packets: 1, bytes: 7 }));
    }

    #[test]
    fn what_workers_count_each_for_themselves_is_read_as_a_sum_and_can_be_set() {
        const PACKETS: u64 = 100_000;
        let mut counters = CounterArray::new(CounterKind::Both, 300).unwrap();
        counters.write(299, CounterValue { packets: 1000, bytes: 5 });
        std::thread::scope(|scope| {
            for bytes in [1, 2, 3] {
                let mut part = counters.part().unwrap();
                scope.spawn(move || (0..PACKETS).for_each(|_| assert!(part.count(299, bytes))));
            }
            // Never less than what was set, and what is counted meanwhile is not lost.
            while counters.read(299).unwrap().packets < 2000 {
                std::hint::spin_loop();
            }
        });
        let sum = CounterValue { packets: 1000 + 3 * PACKETS, bytes: 5 + 6 * PACKETS };
        assert_eq!(counters.read(299), Some(sum));
        counters.write(299, CounterValue { packets: 7, bytes: 7 });
        counters.part().unwrap().count(299, 1);
        assert_eq!(counters.read(299), Some(CounterValue { packets: 8, bytes: 8 }));
        assert_eq!(counters.read(298), Some(CounterValue::default()));
        assert!(counters.add(298, CounterValue { packets: 2, bytes: 3 }));
        assert!(!counters.add(300, CounterValue { packets: 2, bytes: 3 }));
        assert_eq!(counters.read(298), Some(CounterValue { packets: 2, bytes: 3 }));
    }

    #[test]
    fn an_index_out_of_range_is_reported_and_changes_nothing() {
        let mut counters = CounterArray::new(CounterKind::Packets, 2).unwrap();
        let mut part = counters.part().unwrap();
        assert!(!part.count(2, 64));
        assert!(!part.count(u64::MAX, 64));
        assert!(!counters.write(2, CounterValue { packets: 1, bytes: 1 }));
        assert_eq!(counters.read(2), None);
        assert_eq!(
            (0..2).filter_map(|i| counters.read(i)).filter(|v| *v != CounterValue::default()).count(),
            0
        );
    }

    #[test]
    fn counters_wrap() {
        let mut counters = CounterArray::new(CounterKind::Both, 1).unwrap();
        counters.write(0, CounterValue { packets: u64::MAX, bytes: u64::MAX - 1 });
        counters.part().unwrap().count(0, 3);
        assert_eq!(counters.read(0), Some(CounterValue { packets: 0, bytes: 1 }));
    }

    #[test]
    fn sizes_are_limited() {
        assert!(CounterArray::new(CounterKind::Both, MAX_CELLS).is_ok());
        let error = CounterArray::new(CounterKind::Both, MAX_CELLS + 1).unwrap_err();
        assert_eq!(error.to_string(), "the number of counters is 67108865, the limit is 67108864");
    }
}
