//! Bit strings: the values of the IR.
//!
//! [`Bits`] is a number of a fixed width with every operation of the IR on it. All of them are total: a result is cut
//! to its width, a division by zero gives 0, a shift by the width or more gives 0 (or the sign). Where two operands
//! ought to have one width and do not, the second is cut or zero-extended to the width of the first; the verifier
//! rules that out.
//!
//! [`BitWriter`] and [`Bits::read_at`] go between bit strings and the bytes of a packet, in network order.

mod arithmetic;
mod bytes;
mod text;

pub use bytes::{BitWriter, lowest_word};
pub use text::ParseBitsError;

use num_bigint::{BigInt, BigUint};
use num_traits::{ToPrimitive, Zero};

/// A bit string of a fixed width, 1 to [`crate::limits::MAX_WIDTH`] bits (to [`crate::limits::MAX_VARBIT`] inside a
/// varbit), read as an unsigned number or, by operations that say so, in two's complement. Bits above the width are
/// always 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bits {
    width: u32,
    repr: Repr,
}

/// Up to 128 bits in place, wider ones on the heap. A width has one representation, so equality is structural.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Small(u128),
    Big(BigUint),
}

impl Bits {
    /// A number cut to `width` bits.
    pub fn new(width: u32, value: u128) -> Bits {
        debug_assert!(width > 0);
        match width {
            0..=128 => Bits { width, repr: Repr::Small(value & mask(width)) },
            _ => Bits { width, repr: Repr::Big(BigUint::from(value)) },
        }
    }

    /// All bits 0.
    pub fn zero(width: u32) -> Bits {
        Bits::new(width, 0)
    }

    /// All bits 1.
    pub fn ones(width: u32) -> Bits {
        match width {
            0..=128 => Bits::new(width, u128::MAX),
            _ => Bits { width, repr: Repr::Big(big_mask(width)) },
        }
    }

    /// The least number in two's complement: only the highest bit is 1.
    pub fn min_signed(width: u32) -> Bits {
        Bits::new(width, 1).shl_by(u64::from(width.saturating_sub(1)))
    }

    /// The largest number in two's complement: only the highest bit is 0.
    pub fn max_signed(width: u32) -> Bits {
        Bits::min_signed(width).bit_not()
    }

    /// The number of these limbs, the lowest first, cut to `width` bits.
    #[inline]
    pub fn from_limbs(width: u32, limbs: &[u64]) -> Bits {
        match *limbs {
            [] => Bits::zero(width),
            [low] | [low, 0] => Bits::new(width, u128::from(low)),
            [low, high] => Bits::new(width, u128::from(high) << 64 | u128::from(low)),
            _ => {
                let bytes: Vec<u8> = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
                Bits::from_bytes(width, &bytes)
            }
        }
    }

    /// A number of any size cut to `width` bits.
    pub fn from_biguint(width: u32, value: &BigUint) -> Bits {
        let cut = if value.bits() > u64::from(width) { value & big_mask(width) } else { value.clone() };
        match (width, cut.to_u128()) {
            (..=128, Some(small)) => Bits { width, repr: Repr::Small(small) },
            _ => Bits { width, repr: Repr::Big(cut) },
        }
    }

    /// A number of any size and sign modulo 2 to the power of `width`.
    pub fn from_bigint(width: u32, value: &BigInt) -> Bits {
        let magnitude = Bits::from_biguint(width, value.magnitude());
        if value.sign() == num_bigint::Sign::Minus { magnitude.neg() } else { magnitude }
    }

    /// The width in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The unsigned number.
    pub fn to_biguint(&self) -> BigUint {
        match &self.repr {
            Repr::Small(v) => BigUint::from(*v),
            Repr::Big(v) => v.clone(),
        }
    }

    /// The number in two's complement.
    pub fn to_bigint_signed(&self) -> BigInt {
        let unsigned = BigInt::from(self.to_biguint());
        if self.sign() { unsigned - (BigInt::from(1) << self.width) } else { unsigned }
    }

    /// The unsigned number, if it fits.
    pub fn to_u128(&self) -> Option<u128> {
        match &self.repr {
            Repr::Small(v) => Some(*v),
            Repr::Big(v) => v.to_u128(),
        }
    }

    /// The number in limbs of 64 bits, the lowest first, as many as the width needs.
    pub fn limbs(&self) -> impl Iterator<Item = u64> {
        (0..self.width.div_ceil(64) as usize).map(|at| match &self.repr {
            Repr::Small(v) => (v >> (64 * at)) as u64,
            Repr::Big(v) => v.iter_u64_digits().nth(at).unwrap_or(0),
        })
    }

    /// The unsigned number, if it fits.
    pub fn to_u64(&self) -> Option<u64> {
        self.to_u128().and_then(|v| u64::try_from(v).ok())
    }

    /// The unsigned number, or the largest `u64`.
    pub fn to_u64_saturating(&self) -> u64 {
        self.to_u64().unwrap_or(u64::MAX)
    }

    /// Whether all bits are 0.
    pub fn is_zero(&self) -> bool {
        match &self.repr {
            Repr::Small(v) => *v == 0,
            Repr::Big(v) => v.is_zero(),
        }
    }

    /// Whether all bits are 1.
    pub fn is_ones(&self) -> bool {
        match &self.repr {
            Repr::Small(v) => *v == mask(self.width),
            Repr::Big(v) => v.count_ones() == u64::from(self.width),
        }
    }

    /// Bit `index`, counted from the lowest; 0 outside.
    pub fn bit(&self, index: u32) -> bool {
        match &self.repr {
            Repr::Small(v) => index < 128 && (v >> index) & 1 == 1,
            Repr::Big(v) => v.bit(u64::from(index)),
        }
    }

    /// The highest bit: whether the number is negative in two's complement.
    pub fn sign(&self) -> bool {
        self.width > 0 && self.bit(self.width - 1)
    }
}

/// The ones of that many bits, at most 128.
fn mask(width: u32) -> u128 {
    match width {
        0 => 0,
        _ => u128::MAX >> (128 - width.min(128)),
    }
}

fn big_mask(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_cut() {
        assert_eq!(Bits::new(8, 0x1ff), Bits::new(8, 0xff));
        assert_eq!(Bits::new(128, u128::MAX), Bits::ones(128));
        assert_eq!(Bits::from_biguint(130, &(BigUint::from(1u8) << 131)), Bits::zero(130));
        assert_eq!(Bits::from_biguint(4, &BigUint::from(0x123u32)), Bits::new(4, 3));
    }

    #[test]
    fn signed_reading() {
        assert_eq!(Bits::new(8, 0x80).to_bigint_signed(), BigInt::from(-128));
        assert_eq!(Bits::new(8, 0x7f).to_bigint_signed(), BigInt::from(127));
        assert_eq!(Bits::new(1, 1).to_bigint_signed(), BigInt::from(-1));
        assert_eq!(Bits::ones(200).to_bigint_signed(), BigInt::from(-1));
        assert_eq!(Bits::from_bigint(200, &BigInt::from(-1)), Bits::ones(200));
        assert_eq!(Bits::from_bigint(8, &BigInt::from(-130)), Bits::new(8, 126));
        assert_eq!(Bits::min_signed(129).to_bigint_signed(), BigInt::from(-1) << 128);
        assert_eq!(Bits::max_signed(16), Bits::new(16, 0x7fff));
    }

    #[test]
    fn single_bits() {
        let b = Bits::new(9, 0x101);
        assert!(b.bit(0) && b.bit(8) && !b.bit(4) && !b.bit(9) && !b.bit(500));
        assert!(b.sign());
        assert!(Bits::ones(300).bit(299) && !Bits::ones(300).bit(300));
        assert!(Bits::ones(300).is_ones() && Bits::ones(7).is_ones() && !Bits::new(7, 1).is_ones());
    }
}
