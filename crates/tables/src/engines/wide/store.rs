//! The prefixes as the writer keeps them: in order, in blocks.
//!
//! A prefix takes `digits + 1` words: its bits from the top, zeros after its end, then its length (high half) and its
//! result (low half). The order is that of bits, then length, so that what covers others comes before them.

/// Prefixes in a block; a block that would hold more is cut in two.
const BLOCK: usize = 256;

/// One prefix, in the words that the store keeps.
#[derive(Clone, Copy)]
pub(super) struct Item<'a>(&'a [u64]);

/// Prefixes in order, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Items<'a> {
    words: &'a [u64],
    stride: usize,
}

/// All prefixes of a table.
pub(super) struct Store {
    stride: usize,
    blocks: Vec<Block>,
    /// How many prefixes have each length.
    lengths: Vec<u32>,
    len: usize,
}

struct Block {
    /// The first digit of the first prefix.
    first: u64,
    words: Vec<u64>,
}

/// A place between prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    block: usize,
    at: usize,
}

/// The 32 bits of a key from bit `pos` on; what lies beyond the key reads 0.
pub(super) fn window(digits: &[u64], pos: u32) -> u32 {
    let (at, skip) = (pos as usize / 64, pos % 64);
    let digit = |at| digits.get(at).copied().unwrap_or(0);
    let low = if skip > 32 { digit(at + 1) >> (64 - skip) } else { 0 };
    ((digit(at) << skip | low) >> 32) as u32
}

/// The first `len` bits of a key, zeros after them.
pub(super) fn cut(mut digits: Vec<u64>, len: u32) -> Vec<u64> {
    for (digit, from) in digits.iter_mut().zip((0u32..).step_by(64)) {
        *digit &= !(!0u64).checked_shr(len.saturating_sub(from)).unwrap_or(0);
    }
    digits
}

impl<'a> Item<'a> {
    pub(super) fn digits(self) -> &'a [u64] {
        &self.0[..self.0.len() - 1]
    }

    pub(super) fn len(self) -> u32 {
        (self.0[self.0.len() - 1] >> 32) as u32
    }

    pub(super) fn result(self) -> u32 {
        self.0[self.0.len() - 1] as u32
    }

    pub(super) fn window(self, pos: u32) -> u32 {
        window(self.digits(), pos)
    }

    fn order(self, digits: &[u64], len: u32) -> std::cmp::Ordering {
        self.digits().cmp(digits).then(self.len().cmp(&len))
    }
}

impl<'a> Items<'a> {
    pub(super) fn new(words: &'a [u64], digits: usize) -> Items<'a> {
        Items { words, stride: digits + 1 }
    }

    pub(super) fn count(self) -> usize {
        self.words.len() / self.stride
    }

    pub(super) fn item(self, at: usize) -> Item<'a> {
        Item(&self.words[at * self.stride..(at + 1) * self.stride])
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Item<'a>> {
        self.words.chunks_exact(self.stride).map(Item)
    }

    pub(super) fn split(self, at: usize) -> (Items<'a>, Items<'a>) {
        let (low, high) = self.words.split_at(at * self.stride);
        (Items { words: low, ..self }, Items { words: high, ..self })
    }

    /// How many come before the first that does not pass.
    pub(super) fn partition_point(self, pass: impl Fn(Item<'a>) -> bool) -> usize {
        let (mut low, mut size) = (0, self.count());
        while size > 0 {
            let half = size / 2;
            let passes = pass(self.item(low + half));
            low = if passes { low + half + 1 } else { low };
            size = if passes { size - half - 1 } else { half };
        }
        low
    }

    /// The length of the longest prefix that covers them all. There is at least one.
    pub(super) fn common(self) -> u32 {
        let (first, last) = (self.item(0), self.item(self.count() - 1));
        let differ = first.digits().iter().zip(last.digits()).zip((0u32..).step_by(64));
        let bits = differ
            .map(|((a, b), from)| (a ^ b, from))
            .find_map(|(differ, from)| (differ != 0).then(|| from + differ.leading_zeros()));
        // Of those with the same first bits, the shortest comes first.
        bits.unwrap_or(u32::MAX).min(first.len())
    }
}

impl Store {
    pub(super) fn new(digits: usize, bits: u32) -> Store {
        Store { stride: digits + 1, blocks: Vec::new(), lengths: vec![0; bits as usize + 1], len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.words.capacity() * 8).sum();
        blocks + self.blocks.capacity() * size_of::<Block>()
    }

    /// Sets a prefix (zeros after its end), and says whether it is new.
    pub(super) fn set(&mut self, digits: &[u64], len: u32, result: u32) -> bool {
        let place = self.seek(digits, len);
        let meta = u64::from(len) << 32 | u64::from(result);
        let stride = self.stride;
        if let Some(item) = self.at(place)
            && item.order(digits, len).is_eq()
        {
            self.blocks[place.block].words[(place.at + 1) * stride - 1] = meta;
            return false;
        }
        self.lengths[len as usize] += 1;
        self.len += 1;
        let (mut at, mut index) = (place.at, place.block);
        // A place between two blocks is the end of the first.
        if at == 0 && index > 0 {
            index -= 1;
            at = self.blocks[index].words.len() / stride;
        }
        let is_last = index + 1 >= self.blocks.len();
        match self.blocks.get_mut(index) {
            Some(block) if block.words.len() < BLOCK * stride => {
                let words = &mut block.words;
                if words.len() == words.capacity() {
                    words.reserve_exact((words.len() / 4).max(8 * stride));
                }
                let from = at * stride;
                words.resize(words.len() + stride, 0);
                let end = words.len();
                words.copy_within(from..end - stride, from + stride);
                words[from..from + stride - 1].copy_from_slice(digits);
                words[from + stride - 1] = meta;
                block.first = words[0];
                return true;
            }
            // Prefixes that come in order fill their blocks.
            Some(block) if is_last && at * stride == block.words.len() => index += 1,
            Some(block) => {
                let high = block.words.split_off(BLOCK / 2 * stride);
                block.words.shrink_to_fit();
                self.blocks.insert(index + 1, Block { first: high[0], words: high });
                self.lengths[len as usize] -= 1;
                self.len -= 1;
                return self.set(digits, len, result);
            }
            None => {}
        }
        let mut words = Vec::with_capacity(8 * stride);
        words.extend_from_slice(digits);
        words.push(meta);
        self.blocks.insert(index, Block { first: words[0], words });
        true
    }

    /// Takes a prefix out, and says whether it was there.
    pub(super) fn remove(&mut self, digits: &[u64], len: u32) -> bool {
        let place = self.seek(digits, len);
        if self.at(place).is_none_or(|item| item.order(digits, len).is_ne()) {
            return false;
        }
        self.lengths[len as usize] -= 1;
        self.len -= 1;
        let words = &mut self.blocks[place.block].words;
        words.drain(place.at * self.stride..(place.at + 1) * self.stride);
        match words.first() {
            Some(&first) => self.blocks[place.block].first = first,
            None => drop(self.blocks.remove(place.block)),
        }
        self.merge(place.block);
        true
    }

    /// Joins a block that has become small with the next.
    fn merge(&mut self, block: usize) {
        let room = BLOCK / 2 * self.stride;
        if let (Some(low), Some(high)) = (self.blocks.get(block), self.blocks.get(block + 1))
            && low.words.len() + high.words.len() <= room
        {
            let high = self.blocks.remove(block + 1);
            self.blocks[block].words.extend_from_slice(&high.words);
        }
    }

    /// The result of a prefix.
    pub(super) fn get(&self, digits: &[u64], len: u32) -> Option<u32> {
        let item = self.at(self.seek(digits, len))?;
        item.order(digits, len).is_eq().then(|| item.result())
    }

    /// The result of the longest prefix of a key that has one of these lengths.
    pub(super) fn longest(&self, key: &[u64], lengths: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let used = |len: &u32| self.lengths.get(*len as usize).is_some_and(|count| *count > 0);
        lengths.rev().filter(used).find_map(|len| self.get(&cut(key.to_vec(), len), len))
    }

    /// The first prefix that is not before this one.
    pub(super) fn seek(&self, digits: &[u64], len: u32) -> Position {
        let (stride, first) = (self.stride, digits[0]);
        let before = |item: Item<'_>| item.order(digits, len).is_lt();
        // The first digit decides mostly, and without a branch; the others are looked at where it is the same.
        let mut blocks = self.blocks.partition_point(|block| block.first < first);
        if self.blocks.get(blocks).is_some_and(|block| block.first == first) {
            let starts_before = |block: &Block| block.first == first && before(Item(&block.words[..stride]));
            blocks += self.blocks[blocks..].partition_point(starts_before);
        }
        let Some(block) = blocks.checked_sub(1) else { return Position { block: 0, at: 0 } };
        let items = Items { words: &self.blocks[block].words, stride };
        let mut at = items.partition_point(|item| item.0[0] < first);
        if at < items.count() && items.item(at).0[0] == first {
            at += items.split(at).1.partition_point(before);
        }
        if at == items.count() { Position { block: block + 1, at: 0 } } else { Position { block, at } }
    }

    /// The prefix after a place.
    pub(super) fn at(&self, place: Position) -> Option<Item<'_>> {
        let words = &self.blocks.get(place.block)?.words;
        words.get(place.at * self.stride..(place.at + 1) * self.stride).map(Item)
    }

    /// The place after the prefix that is there.
    pub(super) fn next(&self, place: Position) -> Position {
        let is_last = (place.at + 1) * self.stride >= self.blocks[place.block].words.len();
        if is_last {
            Position { block: place.block + 1, at: 0 }
        } else {
            Position { at: place.at + 1, ..place }
        }
    }

    /// Appends all that a prefix covers, itself too, to a list of words, but stops after `limit` of them.
    pub(super) fn below(&self, digits: &[u64], len: u32, limit: usize, words: &mut Vec<u64>) {
        let mut place = self.seek(digits, len);
        let most = words.len().saturating_add(limit.saturating_mul(self.stride));
        while let Some(item) = self.at(place)
            && words.len() < most
            && is_below(item.digits(), digits, len)
        {
            words.extend_from_slice(item.0);
            place = self.next(place);
        }
    }

    /// Appends the prefix after a place to a list of words.
    pub(super) fn copy(&self, place: Position, words: &mut Vec<u64>) {
        if let Some(item) = self.at(place) {
            words.extend_from_slice(item.0);
        }
    }
}

/// Whether the first `len` bits are the same.
fn is_below(key: &[u64], prefix: &[u64], len: u32) -> bool {
    key.iter().zip(prefix).zip((0u32..).step_by(64)).all(|((a, b), from)| {
        let bits = len.saturating_sub(from).min(64);
        bits == 0 || (a ^ b) >> (64 - bits) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_store_agrees_with_an_ordered_map(
            writes in prop::collection::vec((0u64..40, 0u64..40, 0u32..129, prop::option::weighted(0.8, 1u32..9)), 1..2000),
            rising in any::<bool>(),
        ) {
            let (mut store, mut map) = (Store::new(2, 128), BTreeMap::new());
            for (n, (a, b, len, result)) in (0..).zip(writes) {
                let key = cut(vec![if rising { n << 40 } else { a << 58 | a }, b << 59 | b], len);
                match result {
                    Some(result) => {
                        let is_new = map.insert((key.clone(), len), result).is_none();
                        prop_assert_eq!(store.set(&key, len, result), is_new);
                    }
                    None => prop_assert_eq!(store.remove(&key, len), map.remove(&(key.clone(), len)).is_some()),
                }
                prop_assert_eq!(store.get(&key, len), map.get(&(key, len)).copied());
            }
            prop_assert_eq!(store.len(), map.len());
            let mut place = store.seek(&[0, 0], 0);
            for ((digits, len), result) in &map {
                let item = store.at(place).unwrap();
                prop_assert_eq!((item.digits(), item.len(), item.result()), (&digits[..], *len, *result));
                place = store.next(place);
            }
            prop_assert!(store.at(place).is_none());
            for from in [0, 1, 60, 64, 70, 128] {
                for ((digits, _), _) in map.iter().step_by(17) {
                    let prefix = cut(digits.clone(), from);
                    let mut words = Vec::new();
                    store.below(&prefix, from, usize::MAX, &mut words);
                    let expected = map.keys().filter(|(key, len)| *len >= from && cut(key.clone(), from) == prefix);
                    prop_assert_eq!(words.len() / 3, expected.count());
                }
            }
        }
    }

    #[test]
    fn windows_and_cuts_cross_digits_and_end_in_zeros() {
        let key = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
        assert_eq!(window(&key, 0), 0x0123_4567);
        assert_eq!(window(&key, 32), 0x89ab_cdef);
        assert_eq!(window(&key, 48), 0xcdef_fedc);
        assert_eq!(window(&key, 64), 0xfedc_ba98);
        assert_eq!(window(&key, 112), 0x3210_0000);
        assert_eq!(window(&key, 128), 0);
        assert_eq!(cut(key.to_vec(), 0), [0, 0]);
        assert_eq!(cut(key.to_vec(), 12), [0x0120_0000_0000_0000, 0]);
        assert_eq!(cut(key.to_vec(), 64), [key[0], 0]);
        assert_eq!(cut(key.to_vec(), 68), [key[0], 0xf000_0000_0000_0000]);
        assert_eq!(cut(key.to_vec(), 128), key);
    }
}
