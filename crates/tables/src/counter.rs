//! Counters of packets and bytes.

use crate::error::SpecError;
use crate::limits::{MAX_ARRAY_BYTES, MAX_CELLS};

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

impl CounterValue {
    /// Counts one packet of so many bytes.
    pub fn count(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// An array of counters, all zero at first.
#[derive(Clone, Debug)]
pub struct CounterArray {
    kind: CounterKind,
    // Packets and bytes by turns: plain zeroes cost no memory until they are touched.
    cells: Vec<u64>,
}

impl CounterArray {
    /// `size` counters.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] above [`MAX_CELLS`] or [`MAX_ARRAY_BYTES`].
    pub fn new(kind: CounterKind, size: u64) -> Result<CounterArray, SpecError> {
        check_cells("the number of counters", size, 16)?;
        Ok(CounterArray { kind, cells: vec![0; size as usize * 2] })
    }

    /// What the counters show.
    pub fn kind(&self) -> CounterKind {
        self.kind
    }

    /// The number of counters.
    pub fn size(&self) -> u64 {
        (self.cells.len() / 2) as u64
    }

    /// Counts one packet of so many bytes. Returns false, and counts nothing, when there is no such counter.
    pub fn count(&mut self, index: u64, bytes: u64) -> bool {
        let Some(mut value) = self.read(index) else { return false };
        value.count(bytes);
        self.write(index, value)
    }

    /// The value of a counter; `None` when there is no such counter.
    pub fn read(&self, index: u64) -> Option<CounterValue> {
        let at = self.position(index)?;
        Some(CounterValue { packets: self.cells[at], bytes: self.cells[at + 1] })
    }

    /// Sets a counter. Returns false when there is no such counter.
    pub fn write(&mut self, index: u64, value: CounterValue) -> bool {
        let Some(at) = self.position(index) else { return false };
        self.cells[at] = value.packets;
        self.cells[at + 1] = value.bytes;
        true
    }

    /// Sets all counters to zero.
    pub fn reset(&mut self) {
        self.cells.fill(0);
    }

    fn position(&self, index: u64) -> Option<usize> {
        (index < self.size()).then(|| index as usize * 2)
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
        assert!(counters.count(1, 64));
        assert!(counters.count(1, 1500));
        assert_eq!(counters.read(0), Some(CounterValue::default()));
        assert_eq!(counters.read(1), Some(CounterValue { packets: 2, bytes: 1564 }));
        counters.reset();
        assert_eq!(counters.read(1), Some(CounterValue::default()));
    }

    #[test]
    fn an_index_out_of_range_is_reported_and_changes_nothing() {
        let mut counters = CounterArray::new(CounterKind::Packets, 2).unwrap();
        assert!(!counters.count(2, 64));
        assert!(!counters.count(u64::MAX, 64));
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
        counters.count(0, 3);
        assert_eq!(counters.read(0), Some(CounterValue { packets: 0, bytes: 1 }));
    }

    #[test]
    fn sizes_are_limited() {
        assert!(CounterArray::new(CounterKind::Both, MAX_CELLS).is_ok());
        let error = CounterArray::new(CounterKind::Both, MAX_CELLS + 1).unwrap_err();
        assert_eq!(error.to_string(), "the number of counters is 67108865, the limit is 67108864");
    }
}
