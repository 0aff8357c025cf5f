//! A set of small numbers whose least is found in three steps.

/// Bits of a word.
const BITS: usize = 64;

/// A set of numbers up to 262,143: a bit for each, a bit for each word of these that is not 0, and so on. Up to 64 numbers are one word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bitmap {
    top: u64,
    middle: Box<[u64]>,
    low: Box<[u64]>,
}

impl Bitmap {
    /// An empty set for numbers below `size`.
    pub(crate) fn new(size: usize) -> Bitmap {
        let low = if size <= BITS { 0 } else { size.div_ceil(BITS) };
        Bitmap { top: 0, middle: vec![0; low.div_ceil(BITS)].into(), low: vec![0; low].into() }
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        if self.low.is_empty() {
            self.top |= 1 << number;
            return;
        }
        let number = number as usize;
        let (low, middle) = (number / BITS, number / BITS / BITS);
        self.low[low] |= 1 << (number % BITS);
        self.middle[middle] |= 1 << (low % BITS);
        self.top |= 1 << middle;
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        if self.low.is_empty() {
            self.top &= !(1 << number);
            return;
        }
        let number = number as usize;
        let (low, middle) = (number / BITS, number / BITS / BITS);
        self.low[low] &= !(1 << (number % BITS));
        if self.low[low] == 0 {
            self.middle[middle] &= !(1 << (low % BITS));
            if self.middle[middle] == 0 {
                self.top &= !(1 << middle);
            }
        }
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        if self.low.is_empty() {
            return self.top >> number & 1 == 1;
        }
        self.low[number as usize / BITS] >> (number as usize % BITS) & 1 == 1
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        if self.top == 0 {
            return None;
        }
        if self.low.is_empty() {
            return Some(self.top.trailing_zeros());
        }
        let middle = self.top.trailing_zeros() as usize;
        let low = middle * BITS + self.middle[middle].trailing_zeros() as usize;
        Some((low * BITS) as u32 + self.low[low].trailing_zeros())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.top == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Bitmap;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn is_a_set_of_few(changes in prop::collection::vec((any::<bool>(), 0u32..64), 0..200)) {
            let (mut bitmap, mut set) = (Bitmap::new(64), BTreeSet::new());
            for (comes, number) in changes {
                match comes {
                    true => { bitmap.insert(number); set.insert(number); }
                    false => { bitmap.remove(number); set.remove(&number); }
                }
                prop_assert_eq!(bitmap.first(), set.first().copied());
                prop_assert_eq!(bitmap.contains(number), set.contains(&number));
            }
        }

        #[test]
        fn is_a_set(changes in prop::collection::vec((any::<bool>(), 0u32..70_000), 0..200)) {
            let (mut bitmap, mut set) = (Bitmap::new(70_000), BTreeSet::new());
            for (comes, number) in changes {
                match comes {
                    true => { bitmap.insert(number); set.insert(number); }
                    false => { bitmap.remove(number); set.remove(&number); }
                }
                prop_assert_eq!(bitmap.first(), set.first().copied());
                prop_assert_eq!(bitmap.is_empty(), set.is_empty());
            }
        }
    }
}
