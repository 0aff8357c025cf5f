//! Registers: arrays of cells that the data plane reads and writes.

use crate::cell_lock::{CellLock, Held};
use crate::counter::check_cells;
use crate::engines::Cells;
use crate::error::SpecError;
use crate::limits::MAX_REGISTER_BITS;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Locks of one array whose cells have several limbs; cells share them by index.
const LOCKS: usize = 64;

/// An array of cells of `width` bits, all zero at first. A cell is `ceil(width / 64)` limbs, the least significant
/// first, with the unused high bits zero.
///
/// Several workers may have the same cells ([`RegisterArray::share`]). Each read and each write of a cell is a whole then: a
/// cell of one limb is one atomic number, and a cell of several limbs is read and written while its lock is held.
pub struct RegisterArray {
    width: u32,
    size: u64,
    limbs_per_cell: usize,
    cells: Arc<Limbs>,
}

struct Limbs {
    limbs: Cells<AtomicU64>,
    /// None for cells of one limb.
    locks: Option<Box<[CellLock; LOCKS]>>,
}

impl std::fmt::Debug for RegisterArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RegisterArray { width, size, .. } = self;
        f.debug_struct("RegisterArray").field("width", width).field("size", size).finish_non_exhaustive()
    }
}

impl RegisterArray {
    /// `size` cells of `width` bits.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] when the width, the number of cells or their memory is above its limit;
    /// [`SpecError::NoMemory`].
    pub fn new(width: u32, size: u64) -> Result<RegisterArray, SpecError> {
        if width > MAX_REGISTER_BITS {
            return Err(SpecError::TooLarge {
                what: "the width of a register in bits",
                asked: width.into(),
                limit: MAX_REGISTER_BITS.into(),
            });
        }
        let limbs_per_cell = width.div_ceil(64) as usize;
        check_cells("the number of registers", size, limbs_per_cell as u64 * 8)?;
        let locks = (limbs_per_cell > 1).then(|| Box::new([const { CellLock::new() }; LOCKS]));
        let cells = Limbs { limbs: Cells::zeroed((size as usize).saturating_mul(limbs_per_cell))?, locks };
        Ok(RegisterArray { width, size, limbs_per_cell, cells: Arc::new(cells) })
    }

    /// The same cells for one more worker.
    pub fn share(&self) -> RegisterArray {
        RegisterArray { cells: Arc::clone(&self.cells), ..*self }
    }

    /// The width of a cell in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The number of cells.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of memory once all cells were used.
    pub fn memory_bytes(&self) -> usize {
        self.cells.limbs.bytes() + self.cells.locks.as_ref().map_or(0, |locks| size_of_val(&**locks))
    }

    /// The value of a cell of at most 64 bits; zero when there is no such cell.
    #[inline]
    pub fn read_one(&self, index: u64) -> u64 {
        self.position(index)
            .and_then(|at| self.cells.limbs.get(at))
            .map_or(0, |limb| limb.load(Ordering::Relaxed))
    }

    /// For compiled code that reads and writes cells itself: 64 bits for each. None of cells that are wider.
    pub fn cells(&self) -> Option<*const u64> {
        (self.limbs_per_cell == 1).then(|| self.cells.limbs.as_ptr().cast())
    }

    /// Gives the value of a cell, limbs that it does not have as zero. Returns false, and gives zeros, when there is no such
    /// cell.
    pub fn read(&self, index: u64, value: &mut [u64]) -> bool {
        value.fill(0);
        let Some(at) = self.position(index) else { return false };
        let _held = self.hold(index);
        for (value, limb) in value.iter_mut().zip(self.cell(at)) {
            *value = limb.load(Ordering::Relaxed);
        }
        true
    }

    /// Sets a cell to a value, of which bits above the width are lost and missing limbs are zero. Returns false, and
    /// writes nothing, when there is no such cell.
    pub fn write(&self, index: u64, value: &[u64]) -> bool {
        let Some(at) = self.position(index) else { return false };
        let _held = self.hold(index);
        for (position, limb) in self.cell(at).iter().enumerate() {
            let is_top = position + 1 == self.limbs_per_cell;
            let mask = if is_top { self.top_limb_mask() } else { u64::MAX };
            limb.store(value.get(position).copied().unwrap_or(0) & mask, Ordering::Relaxed);
        }
        true
    }

    /// Sets every cell to a value, as [`RegisterArray::write`] does for one.
    pub fn fill(&self, value: &[u64]) {
        for index in 0..self.size {
            self.write(index, value);
        }
    }

    /// Gives the first cells the values of another array's, as far as both go; nothing where the widths differ.
    pub fn copy_from(&self, other: &RegisterArray) {
        if self.width == other.width {
            self.restore(&other.snapshot());
        }
    }

    /// The limbs of all cells, one cell after the other.
    pub fn snapshot(&self) -> Vec<u64> {
        let mut limbs = vec![0; self.cells.limbs.len()];
        for (index, cell) in (0..self.size).zip(limbs.chunks_mut(self.limbs_per_cell.max(1))) {
            self.read(index, cell);
        }
        limbs
    }

    /// Sets the first cells to what [`RegisterArray::snapshot`] gave for an array of this width, as far as both go.
    pub fn restore(&self, limbs: &[u64]) {
        for (index, cell) in (0..self.size).zip(limbs.chunks(self.limbs_per_cell.max(1))) {
            self.write(index, cell);
        }
    }

    /// Sets every cell to zero.
    pub fn reset(&self) {
        self.fill(&[]);
    }

    /// The lock of a cell of several limbs.
    #[inline]
    fn hold(&self, index: u64) -> Option<Held<'_>> {
        self.cells.locks.as_ref().map(|locks| locks[index as usize % LOCKS].hold())
    }

    fn cell(&self, at: usize) -> &[AtomicU64] {
        &self.cells.limbs[at..at + self.limbs_per_cell]
    }

    fn top_limb_mask(&self) -> u64 {
        match self.width % 64 {
            0 => u64::MAX,
            used => (1 << used) - 1,
        }
    }

    fn position(&self, index: u64) -> Option<usize> {
        (index < self.size).then(|| index as usize * self.limbs_per_cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_CELLS;

    /// A cell, and whether there is one.
    fn read<const LIMBS: usize>(cells: &RegisterArray, index: u64) -> ([u64; LIMBS], bool) {
        let mut value = [u64::MAX; LIMBS];
        let is_there = cells.read(index, &mut value);
        (value, is_there)
    }

    #[test]
    fn cells_keep_what_fits_their_width() {
        let cells = RegisterArray::new(100, 3).unwrap();
        assert!(cells.write(1, &[u64::MAX, u64::MAX, 5]));
        assert_eq!(read(&cells, 1), ([u64::MAX, (1 << 36) - 1], true));
        assert_eq!(read(&cells, 0), ([0, 0], true));
        assert_eq!(read(&cells, 2), ([0, 0], true));
        assert!(cells.write(1, &[7]));
        assert_eq!(read(&cells, 1), ([7, 0], true));
    }

    #[test]
    fn out_of_range_reads_zero_and_writes_nothing() {
        let cells = RegisterArray::new(32, 2).unwrap();
        cells.fill(&[9]);
        assert!(!cells.write(2, &[1]));
        assert!(!cells.write(u64::MAX, &[1]));
        assert_eq!(read(&cells, 2), ([0], false));
        assert_eq!((read(&cells, 0), read(&cells, 1)), (([9], true), ([9], true)));
        assert_eq!([0, 1, 2].map(|index| cells.read_one(index)), [9, 9, 0]);
        cells.reset();
        assert_eq!(read(&cells, 0), ([0], true));
    }

    #[test]
    fn as_many_cells_are_copied_as_both_have() {
        let (few, many) = (RegisterArray::new(65, 2).unwrap(), RegisterArray::new(65, 3).unwrap());
        many.fill(&[7, 1]);
        few.copy_from(&many);
        assert_eq!(read(&few, 1), ([7, 1], true));
        few.fill(&[8, 0]);
        many.copy_from(&few);
        assert_eq!((read(&many, 1), read(&many, 2)), (([8, 0], true), ([7, 1], true)));
        let narrow = RegisterArray::new(64, 3).unwrap();
        narrow.copy_from(&many);
        assert_eq!(read(&narrow, 0), ([0], true));
    }

    #[test]
    fn shared_cells_are_the_same_and_never_half_written() {
        let cells = RegisterArray::new(128, 2).unwrap();
        let rounds = if cfg!(miri) { 100 } else { 50_000_u64 };
        std::thread::scope(|scope| {
            let writer = cells.share();
            scope.spawn(move || (1..=rounds).for_each(|value| _ = writer.write(1, &[value, !value])));
            let mut seen = 0;
            while seen < rounds {
                let ([low, high], _) = read(&cells, 1);
                assert!(low >= seen && (high == !low || low == 0), "{low:x} {high:x}");
                seen = low;
            }
        });
        assert_eq!(read(&cells, 0), ([0, 0], true));
    }

    #[test]
    fn zero_width_and_zero_size_are_harmless() {
        let nothing = RegisterArray::new(0, 4).unwrap();
        assert!(nothing.write(3, &[1]));
        assert_eq!(read(&nothing, 3), ([], true));
        assert_eq!((nothing.read_one(3), nothing.snapshot()), (0, Vec::new()));
        assert_eq!(read(&RegisterArray::new(64, 0).unwrap(), 0), ([0], false));
    }

    #[test]
    fn sizes_are_limited() {
        assert!(RegisterArray::new(MAX_REGISTER_BITS + 1, 1).is_err());
        assert!(RegisterArray::new(1, MAX_CELLS + 1).is_err());
        let memory = RegisterArray::new(1024, MAX_CELLS).unwrap_err();
        assert!(memory.to_string().starts_with("the memory of the array in bytes is 8589934592"), "{memory}");
    }
}
