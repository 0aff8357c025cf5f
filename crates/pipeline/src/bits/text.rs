//! Bit strings as text, in the manner of P4: width, `w`, number. `8w1`, `16w0x800`.

use super::{Bits, big_mask};
use crate::limits::MAX_VARBIT;
use num_bigint::BigUint;
use num_traits::Num;
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Bits {
    /// Numbers below ten in decimal, others in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_u128() {
            Some(v @ 0..10) => write!(f, "{}w{v}", self.width()),
            Some(v) => write!(f, "{}w{v:#x}", self.width()),
            None => write!(f, "{}w{:#x}", self.width(), self.to_biguint()),
        }
    }
}

impl Bits {
    /// Its value in hexadecimal, with as many digits as the width has: `0b` for `8w11`.
    pub fn to_hex(&self) -> String {
        let digits = self.width().div_ceil(4) as usize;
        match self.to_u128() {
            Some(small) => format!("{small:0digits$x}"),
            None => format!("{:0>digits$}", self.to_biguint().to_str_radix(16)),
        }
    }
}

/// Why a text is no bit string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseBitsError {
    /// Not of the form `WIDTHwNUMBER`, the number decimal or hexadecimal with `0x`.
    Form,
    /// The width is 0 or more than [`MAX_VARBIT`].
    Width,
    /// The number does not fit the width.
    Overflow,
}

impl fmt::Display for ParseBitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseBitsError::Form => write!(f, "a number is written as WIDTHwVALUE, such as 8w255 or 8w0xff"),
            ParseBitsError::Width => write!(f, "the width of a number is 1 to {MAX_VARBIT} bits"),
            ParseBitsError::Overflow => write!(f, "the number does not fit its width"),
        }
    }
}

impl std::error::Error for ParseBitsError {}

impl FromStr for Bits {
    type Err = ParseBitsError;

    fn from_str(text: &str) -> Result<Bits, ParseBitsError> {
        let (width, number) = text.split_once('w').ok_or(ParseBitsError::Form)?;
        if !width.bytes().all(|b| b.is_ascii_digit()) || width.is_empty() {
            return Err(ParseBitsError::Form);
        }
        let width = width.parse().map_err(|_| ParseBitsError::Width)?;
        if !(1..=MAX_VARBIT).contains(&width) {
            return Err(ParseBitsError::Width);
        }
        let (digits, radix) = match number.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (number, 10),
        };
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(ParseBitsError::Form);
        }
        let digits = digits.trim_start_matches('0');
        // Decimal conversion takes quadratic time, so the length is checked before: a decimal digit is over 3 bits.
        if digits.len() as u64 * 3 > u64::from(width) + 4 {
            return Err(ParseBitsError::Overflow);
        }
        // What surely fits 128 bits.
        if digits.len() <= 32 {
            let value = match digits {
                "" => 0,
                _ => u128::from_str_radix(digits, radix).map_err(|_| ParseBitsError::Form)?,
            };
            return match width < 128 && value >> width != 0 {
                true => Err(ParseBitsError::Overflow),
                false => Ok(Bits::new(width, value)),
            };
        }
        let value = BigUint::from_str_radix(digits, radix).map_err(|_| ParseBitsError::Form)?;
        if value > big_mask(width) {
            return Err(ParseBitsError::Overflow);
        }
        Ok(Bits::from_biguint(width, &value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (text, bits) in [
            ("8w0", Bits::zero(8)),
            ("8w9", Bits::new(8, 9)),
            ("8w0xa", Bits::new(8, 10)),
            ("16w0x800", Bits::new(16, 0x800)),
            ("200w0x1", Bits::new(200, 1)),
            ("1w1", Bits::new(1, 1)),
            ("3w7", Bits::new(3, 7)),
        ] {
            assert_eq!(text.parse(), Ok(bits.clone()));
            assert_eq!(bits.to_string().parse(), Ok(bits));
        }
        assert_eq!(Bits::ones(8).to_string(), "8w0xff");
        assert_eq!(Bits::ones(132).to_string(), format!("132w0x{}", "f".repeat(33)));
        assert_eq!(Bits::ones(132).to_string().parse(), Ok(Bits::ones(132)));
        assert_eq!("8w255".parse(), Ok(Bits::ones(8)));
        assert_eq!("8w000000000000000255".parse(), Ok(Bits::ones(8)));
    }

    #[test]
    fn refused() {
        for (text, error) in [
            ("", ParseBitsError::Form),
            ("8", ParseBitsError::Form),
            ("w8", ParseBitsError::Form),
            ("8w", ParseBitsError::Form),
            ("8w0x", ParseBitsError::Form),
            ("8w-1", ParseBitsError::Form),
            ("+8w1", ParseBitsError::Form),
            ("8w1w1", ParseBitsError::Form),
            ("8wé", ParseBitsError::Form),
            ("0w0", ParseBitsError::Width),
            ("99999999999w0", ParseBitsError::Width),
            ("8w256", ParseBitsError::Overflow),
            ("8w99999999999999999999999999999999", ParseBitsError::Overflow),
            ("1w2", ParseBitsError::Overflow),
        ] {
            assert_eq!(text.parse::<Bits>(), Err(error), "{text}");
        }
    }
}
