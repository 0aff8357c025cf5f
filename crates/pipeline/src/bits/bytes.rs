//! Between bit strings and bytes in network order: the most significant bit first.

use super::{Bits, Repr};
use num_bigint::BigUint;

impl Bits {
    /// The number that these big-endian bytes are, cut to `width` bits.
    pub fn from_bytes(width: u32, bytes: &[u8]) -> Bits {
        if bytes.len() <= 16 {
            let value = bytes.iter().fold(0u128, |v, b| v << 8 | u128::from(*b));
            return Bits::new(width, value);
        }
        Bits::from_biguint(width, &BigUint::from_bytes_be(bytes))
    }

    /// Big-endian bytes, as many as the width needs; the bits above the width in the first byte are 0.
    pub fn to_bytes(&self) -> Vec<u8> {
        let len = self.width.div_ceil(8) as usize;
        match &self.repr {
            Repr::Small(v) => v.to_be_bytes()[16 - len..].to_vec(),
            Repr::Big(v) => {
                let digits = v.to_bytes_be();
                let mut bytes = vec![0; len.saturating_sub(digits.len())];
                bytes.extend_from_slice(&digits);
                bytes
            }
        }
    }

    /// `width` bits of `bytes` from bit `offset` on, where bit 0 is the highest of the first byte; `None` when they
    /// reach past the end.
    pub fn read_at(bytes: &[u8], offset: usize, width: u32) -> Option<Bits> {
        let end = offset.checked_add(width as usize)?;
        let covering = bytes.get(offset / 8..end.div_ceil(8))?;
        let below = (end.div_ceil(8) * 8 - end) as u64;
        let wide = Bits::from_bytes(covering.len() as u32 * 8, covering);
        Some(wide.shr_by(below).zero_extend(width))
    }
}

/// The lowest 64 bits of the `width` from bit `offset` of `bytes` on, where bit 0 is the highest of the first byte. They are in the bytes.
#[inline]
pub fn lowest_word(bytes: &[u8], offset: usize, width: usize) -> u64 {
    let ones = u64::MAX.checked_shr(64 - width.min(64) as u32).unwrap_or(0);
    word_before(bytes, offset + width) & ones
}

/// The 64 bits before bit `end` of `bytes`, where bit 0 is the highest of the first byte and `end` is not after the last. Before the first
/// bit are zeros.
#[inline]
fn word_before(bytes: &[u8], end: usize) -> u64 {
    let (last, below) = (end.div_ceil(8), end.div_ceil(8) * 8 - end);
    let nine = last
        .checked_sub(9)
        .and_then(|first| bytes.get(first..last))
        .and_then(|nine| nine.split_first_chunk());
    match nine {
        Some((&[highest], &[a, b, c, d, e, f, g, h])) => {
            let low = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            // Without bits below, the highest byte is above the word.
            low >> below | u64::from(highest).checked_shl(64 - below as u32).unwrap_or(0)
        }
        _ => {
            // There are fewer than nine.
            let value = bytes.iter().take(last).fold(0u64, |value, byte| value << 8 | u64::from(*byte));
            value >> below
        }
    }
}

/// Bytes that are written for a moment after those of a word.
const SPARE: usize = 8;

/// Puts bit strings one after another into bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// The free low bits of the last byte, 0 to 7.
    free: u32,
}

impl BitWriter {
    /// Without any bits yet.
    pub fn new() -> BitWriter {
        BitWriter::default()
    }

    /// Begins again, with room for so many bytes: memory of what was written before is used again.
    pub fn begin(&mut self, room: usize) {
        self.bytes.clear();
        self.bytes.reserve(room + SPARE);
        self.free = 0;
    }

    /// The bytes written so far; the last is filled up with zero bits.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bits written so far.
    pub fn len_bits(&self) -> usize {
        self.bytes.len() * 8 - self.free as usize
    }

    /// Appends all bits of a string, the highest first.
    pub fn push(&mut self, bits: &Bits) {
        match &bits.repr {
            Repr::Small(v) if bits.width <= 64 => self.push_word(bits.width, *v as u64),
            _ => self.push_limbs(bits.width, &bits.limbs().collect::<Vec<_>>()),
        }
    }

    /// Appends the lowest bits of a word, 64 at most.
    #[inline]
    fn push_word(&mut self, width: u32, word: u64) {
        if width == 0 {
            return;
        }
        // The last byte has so many bits already: the string starts after these, at the highest end.
        let used = (8 - self.free) % 8;
        let shifted = u128::from(word << (64 - width)) << (64 - used);
        let [first, fresh @ .., _, _, _, _, _, _, _] = shifted.to_be_bytes();
        // A known number of bytes is copied without a call, and those that are none of the string go again.
        let whole = self.bytes.len() + (used + width).div_ceil(8) as usize - usize::from(used > 0);
        match self.bytes.last_mut().filter(|_| used > 0) {
            Some(last) => *last |= first,
            None => self.bytes.push(first),
        }
        self.bytes.extend_from_slice(&fresh);
        self.bytes.truncate(whole);
        self.free = (8 - (used + width) % 8) % 8;
    }

    /// Appends whole bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if self.free == 0 {
            return self.bytes.extend_from_slice(bytes);
        }
        let (words, rest) = bytes.as_chunks();
        self.bytes.reserve(bytes.len());
        for word in words {
            // Its highest bits fill the last byte, which has as many free again after it.
            let word = u64::from_be_bytes(*word);
            if let Some(last) = self.bytes.last_mut() {
                *last |= (word >> (64 - self.free)) as u8;
            }
            self.bytes.extend_from_slice(&(word << self.free).to_be_bytes());
        }
        if !rest.is_empty() {
            self.push(&Bits::from_bytes(8 * rest.len() as u32, rest));
        }
    }

    /// Appends the lowest `width` bits of a number in limbs, the lowest first.
    pub fn push_limbs(&mut self, width: u32, limbs: &[u64]) {
        for (at, limb) in limbs.iter().enumerate().rev() {
            let width = width.saturating_sub(64 * at as u32).min(64);
            self.push_word(width, *limb);
        }
    }

    /// Appends the lowest `width` bits of a number in big-endian bytes, as many as the width needs.
    pub fn push_number(&mut self, width: u32, bytes: &[u8]) {
        match bytes.split_first() {
            Some((first, rest)) if !width.is_multiple_of(8) => {
                self.push(&Bits::new(width % 8, u128::from(*first)));
                self.push_bytes(rest);
            }
            _ => self.push_bytes(bytes),
        }
    }

    /// The bytes; the last is filled up with zero bits.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_by_hand() {
        assert_eq!(Bits::new(12, 0xabc).to_bytes(), [0x0a, 0xbc]);
        assert_eq!(Bits::from_bytes(12, &[0xfa, 0xbc]), Bits::new(12, 0xabc));
        assert_eq!(Bits::new(129, 1).to_bytes().len(), 17);
        assert!(Bits::from_bytes(136, &[1; 17]).limbs().eq([
            0x0101_0101_0101_0101,
            0x0101_0101_0101_0101,
            1
        ]));
        assert!(Bits::new(65, 1 << 64 | 5).limbs().eq([5, 1]));
        assert_eq!(Bits::from_bytes(136, &[1; 17]).to_bytes(), [1; 17]);
        assert_eq!(Bits::read_at(&[0x45, 0x00, 0x12], 4, 12), Some(Bits::new(12, 0x500)));
        assert_eq!(Bits::read_at(&[0x45, 0x00, 0x12], 3, 3), Some(Bits::new(3, 1)));
        assert_eq!(Bits::read_at(&[0x45], 4, 5), None);
        assert_eq!(Bits::read_at(&[0x45], usize::MAX, 5), None);
    }

    #[test]
    fn written_by_hand() {
        let mut w = BitWriter::new();
        w.push(&Bits::new(4, 4));
        w.push(&Bits::new(4, 5));
        w.push(&Bits::new(3, 7));
        w.push_bytes(&[0xff, 0]);
        assert_eq!(w.len_bits(), 27);
        assert_eq!(w.finish(), [0x45, 0b1111_1111, 0b1110_0000, 0]);
    }

    proptest! {
        /// Words before each other are the number that is read as a whole.
        #[test]
        fn words_are_those_of_the_number(bytes in proptest::collection::vec(any::<u8>(), 1..40), cut: [proptest::sample::Index; 2]) {
            let bits = bytes.len() * 8;
            let offset = cut[0].index(bits);
            let width = 1 + cut[1].index(bits - offset);
            let number = Bits::read_at(&bytes, offset, width as u32).unwrap();
            for (at, limb) in number.limbs().enumerate() {
                let left = width - 64 * at;
                prop_assert_eq!(lowest_word(&bytes, offset, left), limb);
            }
        }

        /// Numbers come out the same from limbs, from bytes and as a whole, wherever they begin.
        #[test]
        fn numbers_are_written_alike(before in 0u32..8, width in 1u32..300, bytes in proptest::collection::vec(any::<u8>(), 38)) {
            let number = Bits::from_bytes(width, &bytes);
            let mut writers = [0; 3].map(|_| BitWriter::new());
            for writer in &mut writers {
                (0..before).for_each(|_| writer.push(&Bits::new(1, 1)));
            }
            writers[0].push(&number);
            writers[1].push_limbs(width, &number.limbs().collect::<Vec<_>>());
            writers[2].push_number(width, &number.to_bytes());
            let [whole, limbs, bytes] = writers.map(|writer| (writer.len_bits(), writer.finish()));
            prop_assert_eq!(&whole, &limbs);
            prop_assert_eq!(&whole, &bytes);
        }

        #[test]
        fn what_is_written_reads_back(fields in proptest::collection::vec((1u32..200, any::<u128>()), 0..12)) {
            let fields: Vec<Bits> = fields
                .into_iter()
                .map(|(w, v)| Bits::new(w.min(128), v).concat(&Bits::ones(w)))
                .collect();
            let mut writer = BitWriter::new();
            fields.iter().for_each(|f| writer.push(f));
            let total = writer.len_bits();
            let bytes = writer.finish();
            let mut at = 0;
            for f in &fields {
                let read = Bits::read_at(&bytes, at, f.width());
                prop_assert_eq!(read.as_ref(), Some(f));
                at += f.width() as usize;
            }
            prop_assert_eq!(total, at);
            prop_assert_eq!(bytes.len(), at.div_ceil(8));
        }
    }
}
