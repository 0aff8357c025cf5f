//! Registers: arrays of cells that the data plane reads and writes.

use crate::counter::check_cells;
use crate::engines::zeros;
use crate::error::SpecError;
use crate::limits::MAX_REGISTER_BITS;

/// An array of cells of `width` bits, all zero at first. A cell is `ceil(width / 64)` limbs, the least significant
/// first, with the unused high bits zero.
#[derive(Clone, Debug)]
pub struct RegisterArray {
    width: u32,
    size: u64,
    limbs_per_cell: usize,
    limbs: Vec<u64>,
    zero: Box<[u64]>,
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
        Ok(RegisterArray {
            width,
            size,
            limbs_per_cell,
            limbs: zeros(size as usize * limbs_per_cell)?,
            zero: vec![0; limbs_per_cell].into(),
        })
    }

    /// The width of a cell in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The number of cells.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The value of a cell, and true; or zero and false when there is no such cell.
    pub fn read(&self, index: u64) -> (&[u64], bool) {
        match self.position(index) {
            Some(at) => (&self.limbs[at..at + self.limbs_per_cell], true),
            None => (&self.zero, false),
        }
    }

    /// Sets a cell to a value, of which bits above the width are lost and missing limbs are zero. Returns false, and
    /// writes nothing, when there is no such cell.
    pub fn write(&mut self, index: u64, value: &[u64]) -> bool {
        let Some(at) = self.position(index) else { return false };
        let top_mask = self.top_limb_mask();
        let cell = &mut self.limbs[at..at + self.limbs_per_cell];
        for (position, limb) in cell.iter_mut().enumerate() {
            *limb = value.get(position).copied().unwrap_or(0);
        }
        if let Some(top) = cell.last_mut() {
            *top &= top_mask;
        }
        true
    }

    /// Sets every cell to a value, as [`RegisterArray::write`] does for one.
    pub fn fill(&mut self, value: &[u64]) {
        for index in 0..self.size {
            self.write(index, value);
        }
    }

    /// Gives the first cells the values of another array's, as far as both go; nothing where the widths differ.
    pub fn copy_from(&mut self, other: &RegisterArray) {
        if self.width == other.width {
            let limbs = self.limbs.len().min(other.limbs.len());
            self.limbs[..limbs].copy_from_slice(&other.limbs[..limbs]);
        }
    }

    /// Sets every cell to zero.
    pub fn reset(&mut self) {
        self.limbs.fill(0);
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

    #[test]
    fn cells_keep_what_fits_their_width() {
        let mut cells = RegisterArray::new(100, 3).unwrap();
        assert!(cells.write(1, &[u64::MAX, u64::MAX, 5]));
        assert_eq!(cells.read(1), (&[u64::MAX, (1 << 36) - 1][..], true));
        assert_eq!(cells.read(0), (&[0, 0][..], true));
        assert_eq!(cells.read(2), (&[0, 0][..], true));
        assert!(cells.write(1, &[7]));
        assert_eq!(cells.read(1), (&[7, 0][..], true));
    }

    #[test]
    fn out_of_range_reads_zero_and_writes_nothing() {
        let mut cells = RegisterArray::new(32, 2).unwrap();
        cells.fill(&[9]);
        assert!(!cells.write(2, &[1]));
        assert!(!cells.write(u64::MAX, &[1]));
        assert_eq!(cells.read(2), (&[0][..], false));
        assert_eq!((cells.read(0), cells.read(1)), ((&[9][..], true), (&[9][..], true)));
        cells.reset();
        assert_eq!(cells.read(0), (&[0][..], true));
    }

    #[test]
    fn as_many_cells_are_copied_as_both_have() {
        let (mut few, mut many) = (RegisterArray::new(65, 2).unwrap(), RegisterArray::new(65, 3).unwrap());
        many.fill(&[7, 1]);
        few.copy_from(&many);
        assert_eq!(few.read(1), (&[7, 1][..], true));
        few.fill(&[8, 0]);
        many.copy_from(&few);
        assert_eq!((many.read(1), many.read(2)), ((&[8, 0][..], true), (&[7, 1][..], true)));
        let mut narrow = RegisterArray::new(64, 3).unwrap();
        narrow.copy_from(&many);
        assert_eq!(narrow.read(0), (&[0][..], true));
    }

    #[test]
    fn zero_width_and_zero_size_are_harmless() {
        let mut nothing = RegisterArray::new(0, 4).unwrap();
        assert!(nothing.write(3, &[1]));
        assert_eq!(nothing.read(3), (&[][..], true));
        assert_eq!(RegisterArray::new(64, 0).unwrap().read(0), (&[0][..], false));
    }

    #[test]
    fn sizes_are_limited() {
        assert!(RegisterArray::new(MAX_REGISTER_BITS + 1, 1).is_err());
        assert!(RegisterArray::new(1, MAX_CELLS + 1).is_err());
        let memory = RegisterArray::new(1024, MAX_CELLS).unwrap_err();
        assert!(memory.to_string().starts_with("the memory of the array in bytes is 8589934592"), "{memory}");
    }
}
