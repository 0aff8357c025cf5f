//! Bit strings: the values of the IR.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

/// A bit string of a fixed width, 1 to [`crate::limits::MAX_WIDTH`] bits, read as an unsigned number or, by operations
/// that say so, in two's complement. Bits above the width are always 0.
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
            0..128 => Bits { width, repr: Repr::Small(value & ((1 << width) - 1)) },
            128 => Bits { width, repr: Repr::Small(value) },
            _ => Bits { width, repr: Repr::Big(BigUint::from(value)) },
        }
    }

    /// A number of any size cut to `width` bits.
    pub fn from_biguint(width: u32, value: &BigUint) -> Bits {
        let cut = if value.bits() > u64::from(width) {
            value & ((BigUint::from(1u8) << width) - 1u8)
        } else {
            value.clone()
        };
        match (width, cut.to_u128()) {
            (..=128, Some(small)) => Bits { width, repr: Repr::Small(small) },
            _ => Bits { width, repr: Repr::Big(cut) },
        }
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

    /// The unsigned number, if it fits.
    pub fn to_u128(&self) -> Option<u128> {
        match &self.repr {
            Repr::Small(v) => Some(*v),
            Repr::Big(v) => v.to_u128(),
        }
    }

    /// The unsigned number, or the largest `u64`.
    pub fn to_u64_saturating(&self) -> u64 {
        self.to_u128().and_then(|v| u64::try_from(v).ok()).unwrap_or(u64::MAX)
    }
}
