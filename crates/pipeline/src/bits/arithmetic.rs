//! The operations of the IR on bit strings.

use super::{Bits, Repr, big_mask, mask};
use num_bigint::BigUint;
use num_traits::Zero;
use std::cmp::Ordering;

impl Bits {
    /// The sum, wrapping.
    pub fn add(&self, other: &Bits) -> Bits {
        self.zip(other, u128::wrapping_add, |a, b| a + b)
    }

    /// The difference, wrapping.
    pub fn sub(&self, other: &Bits) -> Bits {
        self.zip(other, u128::wrapping_sub, |a, b| a + (big_mask(self.width) - b) + 1u8)
    }

    /// The product, wrapping.
    pub fn mul(&self, other: &Bits) -> Bits {
        self.zip(other, u128::wrapping_mul, |a, b| a * b)
    }

    /// The unsigned quotient; 0 when the divisor is 0.
    pub fn div(&self, other: &Bits) -> Bits {
        self.zip(
            other,
            |a, b| a.checked_div(b).unwrap_or(0),
            |a, b| if b.is_zero() { BigUint::ZERO } else { a / b },
        )
    }

    /// The unsigned remainder; 0 when the divisor is 0.
    pub fn rem(&self, other: &Bits) -> Bits {
        self.zip(
            other,
            |a, b| a.checked_rem(b).unwrap_or(0),
            |a, b| if b.is_zero() { BigUint::ZERO } else { a % b },
        )
    }

    /// The unsigned sum; the largest number instead of a wrap.
    pub fn add_sat(&self, other: &Bits) -> Bits {
        let sum = self.add(other);
        if sum.cmp_unsigned(self).is_lt() { Bits::ones(self.width) } else { sum }
    }

    /// The unsigned difference; 0 instead of a wrap.
    pub fn sub_sat(&self, other: &Bits) -> Bits {
        let other = other.zero_extend(self.width);
        if self.cmp_unsigned(&other).is_lt() { Bits::zero(self.width) } else { self.sub(&other) }
    }

    /// The two's complement sum; the largest or least number instead of a wrap.
    pub fn add_sat_signed(&self, other: &Bits) -> Bits {
        let other = other.zero_extend(self.width);
        let sum = self.add(&other);
        let overflow = self.sign() == other.sign() && sum.sign() != self.sign();
        if overflow { self.signed_limit() } else { sum }
    }

    /// The two's complement difference; the largest or least number instead of a wrap.
    pub fn sub_sat_signed(&self, other: &Bits) -> Bits {
        let other = other.zero_extend(self.width);
        let difference = self.sub(&other);
        let overflow = self.sign() != other.sign() && difference.sign() != self.sign();
        if overflow { self.signed_limit() } else { difference }
    }

    /// Bitwise and.
    pub fn and(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a & b, |a, b| a & b)
    }

    /// Bitwise or.
    pub fn or(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a | b, |a, b| a | b)
    }

    /// Bitwise exclusive or.
    pub fn xor(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a ^ b, |a, b| a ^ b)
    }

    /// One's complement.
    pub fn bit_not(&self) -> Bits {
        self.xor(&Bits::ones(self.width))
    }

    /// Two's complement negation, wrapping.
    pub fn neg(&self) -> Bits {
        Bits::zero(self.width).sub(self)
    }

    /// Shift to the left by an unsigned amount of any width; 0 from the width on.
    pub fn shl(&self, amount: &Bits) -> Bits {
        self.shl_by(amount.to_u64_saturating())
    }

    /// Shift to the right, zeros come in; 0 from the width on.
    pub fn shr(&self, amount: &Bits) -> Bits {
        self.shr_by(amount.to_u64_saturating())
    }

    /// Shift to the right, copies of the sign come in; all sign from the width on.
    pub fn shr_signed(&self, amount: &Bits) -> Bits {
        let amount = amount.to_u64_saturating();
        if !self.sign() {
            return self.shr_by(amount);
        }
        // A negative number shifts like its complement, which is not negative.
        self.bit_not().shr_by(amount).bit_not()
    }

    /// As [`Bits::shl`], by that many bits.
    pub fn shl_by(&self, amount: u64) -> Bits {
        match &self.repr {
            _ if amount >= u64::from(self.width) => Bits::zero(self.width),
            Repr::Small(v) => Bits::new(self.width, v << amount),
            Repr::Big(v) => Bits::from_biguint(self.width, &(v << amount)),
        }
    }

    /// As [`Bits::shr`], by that many bits.
    pub fn shr_by(&self, amount: u64) -> Bits {
        match &self.repr {
            _ if amount >= u64::from(self.width) => Bits::zero(self.width),
            Repr::Small(v) => Bits::new(self.width, v >> amount),
            Repr::Big(v) => Bits::from_biguint(self.width, &(v >> amount)),
        }
    }

    /// The order as unsigned numbers, of any two widths.
    pub fn cmp_unsigned(&self, other: &Bits) -> Ordering {
        match (&self.repr, &other.repr) {
            (Repr::Small(a), Repr::Small(b)) => a.cmp(b),
            (Repr::Big(a), Repr::Big(b)) => a.cmp(b),
            _ => self.to_biguint().cmp(&other.to_biguint()),
        }
    }

    /// The order in two's complement, of any two widths.
    pub fn cmp_signed(&self, other: &Bits) -> Ordering {
        if self.width != other.width {
            return self.to_bigint_signed().cmp(&other.to_bigint_signed());
        }
        // A negative number has the highest bit set, and among numbers of one sign the unsigned order holds.
        other.sign().cmp(&self.sign()).then_with(|| self.cmp_unsigned(other))
    }

    /// Bits `high` down to `low`, `high - low + 1` of them (at least one); bits above the width are 0.
    pub fn slice(&self, high: u32, low: u32) -> Bits {
        debug_assert!(low <= high && high < self.width);
        self.shr_by(u64::from(low)).zero_extend(high.saturating_sub(low) + 1)
    }

    /// This with bits `high` down to `low` replaced by `value`, which is cut or zero-extended to fit.
    pub fn with_slice(&self, high: u32, low: u32, value: &Bits) -> Bits {
        debug_assert!(low <= high && high < self.width);
        let hole = Bits::ones(high.saturating_sub(low) + 1);
        let hole =
            hole.zero_extend(self.width.max(hole.width)).zero_extend(self.width).shl_by(u64::from(low));
        let value = value.zero_extend(self.width).shl_by(u64::from(low)).and(&hole);
        self.and(&hole.bit_not()).or(&value)
    }

    /// This above `low`: a bit string as wide as both together.
    pub fn concat(&self, low: &Bits) -> Bits {
        let width = self.width + low.width;
        self.zero_extend(width).shl_by(u64::from(low.width)).or(&low.zero_extend(width))
    }

    /// This cut, or widened with zeros, to that width.
    pub fn zero_extend(&self, width: u32) -> Bits {
        match &self.repr {
            Repr::Small(v) => Bits::new(width, *v),
            Repr::Big(v) => Bits::from_biguint(width, v),
        }
    }

    /// This cut, or widened with its sign, to that width.
    pub fn sign_extend(&self, width: u32) -> Bits {
        if self.sign() && width > self.width {
            // The complement of a negative number is not negative, so zeros widen it.
            self.bit_not().zero_extend(width).bit_not()
        } else {
            self.zero_extend(width)
        }
    }

    /// The number where a signed sum or difference that starts from this stops.
    fn signed_limit(&self) -> Bits {
        if self.sign() { Bits::min_signed(self.width) } else { Bits::max_signed(self.width) }
    }

    fn zip(
        &self,
        other: &Bits,
        small: impl FnOnce(u128, u128) -> u128,
        big: impl FnOnce(&BigUint, &BigUint) -> BigUint,
    ) -> Bits {
        debug_assert_eq!(self.width, other.width, "operands of one width");
        match (&self.repr, &other.repr) {
            (Repr::Small(a), Repr::Small(b)) => Bits::new(self.width, small(*a, *b & mask(self.width))),
            (Repr::Big(a), Repr::Big(b)) if self.width >= other.width => {
                Bits::from_biguint(self.width, &big(a, b))
            }
            _ => self.zip(&other.zero_extend(self.width), small, big),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use num_integer::Integer;
    use proptest::prelude::*;

    fn bits(width: u32) -> impl Strategy<Value = Bits> {
        prop_oneof![
            3 => proptest::collection::vec(any::<u8>(), width.div_ceil(8) as usize)
                .prop_map(move |b| Bits::from_biguint(width, &BigUint::from_bytes_be(&b))),
            1 => (0..width).prop_map(move |s| Bits::new(width, 1).shl_by(u64::from(s))),
            1 => (0u128..4).prop_map(move |v| Bits::new(width, v)),
            1 => (0u128..4).prop_map(move |v| Bits::new(width, v).bit_not()),
        ]
    }

    fn width() -> impl Strategy<Value = u32> {
        prop_oneof![1u32..20, 60u32..70, 120u32..140, 250u32..260]
    }

    fn pair() -> impl Strategy<Value = (Bits, Bits)> {
        width().prop_flat_map(|w| (bits(w), bits(w)))
    }

    fn wrap(width: u32, v: BigInt) -> Bits {
        let modulus = BigInt::from(1) << width;
        Bits::from_biguint(width, v.mod_floor(&modulus).magnitude())
    }

    proptest! {
        #[test]
        fn against_integers((a, b) in pair()) {
            let w = a.width();
            let (ua, ub) = (BigInt::from(a.to_biguint()), BigInt::from(b.to_biguint()));
            let (sa, sb) = (a.to_bigint_signed(), b.to_bigint_signed());
            let one = BigInt::from(1);
            let umax = (&one << w) - 1;
            let smax: BigInt = (&one << (w - 1)) - 1;
            let smin: BigInt = -&smax - 1;
            prop_assert_eq!(a.add(&b), wrap(w, &ua + &ub));
            prop_assert_eq!(a.sub(&b), wrap(w, &ua - &ub));
            prop_assert_eq!(a.mul(&b), wrap(w, &ua * &ub));
            if ub.is_zero() {
                prop_assert!(a.div(&b).is_zero() && a.rem(&b).is_zero());
            } else {
                prop_assert_eq!(a.div(&b), wrap(w, &ua / &ub));
                prop_assert_eq!(a.rem(&b), wrap(w, &ua % &ub));
            }
            prop_assert_eq!(a.add_sat(&b), wrap(w, (&ua + &ub).min(umax)));
            prop_assert_eq!(a.sub_sat(&b), wrap(w, (&ua - &ub).max(BigInt::ZERO)));
            prop_assert_eq!(
                a.add_sat_signed(&b).to_bigint_signed(), (&sa + &sb).clamp(smin.clone(), smax.clone()));
            prop_assert_eq!(a.sub_sat_signed(&b).to_bigint_signed(), (&sa - &sb).clamp(smin, smax));
            prop_assert_eq!(a.and(&b), wrap(w, &ua & &ub));
            prop_assert_eq!(a.or(&b), wrap(w, &ua | &ub));
            prop_assert_eq!(a.xor(&b), wrap(w, &ua ^ &ub));
            prop_assert_eq!(a.bit_not(), wrap(w, -&ua - 1));
            prop_assert_eq!(a.neg(), wrap(w, -&ua));
            prop_assert_eq!(a.cmp_unsigned(&b), ua.cmp(&ub));
            prop_assert_eq!(a.cmp_signed(&b), sa.cmp(&sb));
            prop_assert_eq!(a.concat(&b), wrap(2 * w, (&ua << w) + &ub));
        }

        #[test]
        fn shifts_and_widths(a in width().prop_flat_map(bits), by in 0u32..300, to in width()) {
            let w = a.width();
            let (u, s) = (BigInt::from(a.to_biguint()), a.to_bigint_signed());
            let amount = Bits::new(9, u128::from(by));
            prop_assert_eq!(a.shl(&amount), wrap(w, &u << by));
            prop_assert_eq!(a.shr(&amount), wrap(w, &u >> by));
            prop_assert_eq!(a.shr_signed(&amount), wrap(w, &s >> by));
            prop_assert_eq!(a.zero_extend(to), wrap(to, u.clone()));
            prop_assert_eq!(a.sign_extend(to), wrap(to, s));
            let (high, low) = (by % w, (by / 2) % (by % w + 1));
            let part = a.slice(high, low);
            prop_assert_eq!(part.width(), high - low + 1);
            prop_assert_eq!(&part, &wrap(high - low + 1, u >> low));
            prop_assert_eq!(a.with_slice(high, low, &part), a.clone());
            let flipped = a.with_slice(high, low, &part.bit_not());
            prop_assert_eq!(flipped.slice(high, low), part.bit_not());
            for i in (0..w).filter(|i| *i > high || *i < low) {
                prop_assert_eq!(flipped.bit(i), a.bit(i));
            }
        }
    }

    #[test]
    fn enormous_shift_amounts() {
        let amount = Bits::ones(200);
        assert_eq!(Bits::ones(8).shl(&amount), Bits::zero(8));
        assert_eq!(Bits::ones(8).shr(&amount), Bits::zero(8));
        assert_eq!(Bits::ones(8).shr_signed(&amount), Bits::ones(8));
        assert_eq!(Bits::new(8, 0x7f).shr_signed(&amount), Bits::zero(8));
    }

    #[test]
    fn by_hand() {
        assert_eq!(Bits::new(8, 200).add(&Bits::new(8, 100)), Bits::new(8, 44));
        assert_eq!(Bits::new(8, 200).add_sat(&Bits::new(8, 100)), Bits::new(8, 255));
        assert_eq!(Bits::new(8, 100).add_sat_signed(&Bits::new(8, 100)), Bits::new(8, 127));
        assert_eq!(Bits::new(8, 0x80).sub_sat_signed(&Bits::new(8, 1)), Bits::new(8, 0x80));
        assert_eq!(Bits::new(8, 0x84).shr_signed(&Bits::new(4, 2)), Bits::new(8, 0xe1));
        assert_eq!(Bits::new(16, 0x1234).slice(11, 4), Bits::new(8, 0x23));
        assert_eq!(Bits::new(4, 0xa).concat(&Bits::new(8, 0xbc)), Bits::new(12, 0xabc));
        assert_eq!(Bits::new(4, 0xa).sign_extend(8), Bits::new(8, 0xfa));
        assert!(Bits::new(8, 0xff).cmp_signed(&Bits::new(8, 1)).is_lt());
    }
}
