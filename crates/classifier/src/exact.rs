//! A hash table with open addressing that is made once and then only read.

/// From a key of 64 bits to a value. At most half full, so a search ends; the hash is the best of several for the keys that
/// it holds, so it ends soon.
#[derive(Debug)]
pub(crate) struct Exact<V> {
    slots: Box<[Slot<V>]>,
    /// Odd.
    factor: u64,
    /// What a product is shifted right by to be an index: it leaves as many bits as the index of the last slot has.
    shift: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot<V> {
    key: u64,
    value: Option<V>,
}

/// Hashes that are tried, and the length of a search that is good enough.
const TRIES: u64 = 16;
const SHORT: usize = 4;

impl<V: Copy> Exact<V> {
    /// A table of these keys, each there once.
    pub(crate) fn new(entries: &[(u64, V)]) -> Exact<V> {
        let mut best = Exact::with_factor(entries, factor(0));
        for at in 1..TRIES {
            if best.1 <= SHORT {
                break;
            }
            let other = Exact::with_factor(entries, factor(at));
            if other.1 < best.1 {
                best = other;
            }
        }
        best.0
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<V> {
        let mut at = self.start(key);
        loop {
            let slot = &self.slots[at];
            if slot.value.is_none() || slot.key == key {
                return slot.value;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn start(&self, key: u64) -> usize {
        (key.wrapping_mul(self.factor) >> self.shift) as usize
    }

    /// A table, and the most slots that a search for one of its keys looks at.
    fn with_factor(entries: &[(u64, V)], factor: u64) -> (Exact<V>, usize) {
        // At least two slots: a product is shifted by less than its width.
        let count = (entries.len() * 2).next_power_of_two().max(2);
        let slots = vec![Slot { key: 0, value: None }; count].into_boxed_slice();
        let mut table = Exact { slots, factor, shift: u64::BITS - count.trailing_zeros() };
        let mut longest = 0;
        for (key, value) in entries {
            let mut at = table.start(*key);
            let mut looked = 1;
            while table.slots[at].value.is_some() {
                at = (at + 1) & (count - 1);
                looked += 1;
            }
            table.slots[at] = Slot { key: *key, value: Some(*value) };
            longest = longest.max(looked);
        }
        (table, longest)
    }
}

/// Odd numbers in no order (SplitMix64).
fn factor(at: u64) -> u64 {
    let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_no_other() {
        for count in [0, 1, 2, 3, 4, 5, 100, 60_000u64] {
            let entries: Vec<_> = (0..count).map(|key| (key << 16 | 7, key)).collect();
            let table = Exact::new(&entries);
            assert!(entries.iter().all(|(key, value)| table.find(*key) == Some(*value)));
            assert!(
                (0..count + 9)
                    .all(|key| table.find(key << 16).is_none() && table.find(key << 16 | 9).is_none())
            );
        }
    }
}
