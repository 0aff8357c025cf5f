//! Numbers of other formats: decimals with a unit, to whole numbers of our units, rounded to the safe side.

use std::ops::Range;

/// Most digits of a number that are kept.
const MAX_DIGITS: usize = 25;

/// A decimal: `digits` times ten to the `exponent`, and a little more if digits below these were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    exponent: i64,
    is_more: bool,
}

/// A unit that stands after a number, with how many of our units it is, as a fraction.
pub(super) type Units = &'static [(&'static str, u64, u64)];

/// Times in nanoseconds.
pub(super) const TIMES: Units =
    &[("s", 1_000_000_000, 1), ("ms", 1_000_000, 1), ("us", 1000, 1), ("ns", 1, 1), ("ps", 1, 1000)];

/// Rates in bit/s.
pub(super) const RATES: Units = &[
    ("bps", 1, 1),
    ("kbps", 1000, 1),
    ("Mbps", 1_000_000, 1),
    ("Gbps", 1_000_000_000, 1),
    ("Tbps", 1_000_000_000_000, 1),
];

/// Lengths in bits.
pub(super) const LENGTHS: Units = &[
    ("b", 1, 1),
    ("kb", 1000, 1),
    ("Mb", 1_000_000, 1),
    ("Gb", 1_000_000_000, 1),
    ("B", 8, 1),
    ("kB", 8000, 1),
    ("MB", 8_000_000, 1),
    ("GB", 8_000_000_000, 1),
];

/// Which whole number stands for what lies between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Up,
    Down,
}

impl Decimal {
    /// A whole or decimal number, with an exponent or without, that is not negative.
    pub(super) fn parse(text: &str) -> Option<Decimal> {
        let (number, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) || whole.len() + part.len() == 0 {
            return None;
        }
        let digits = format!("{whole}{part}");
        // Zeros in front say nothing. Digits beyond the most are far below those that are kept.
        let digits = digits.trim_start_matches('0');
        let (kept, cut) = digits.split_at(digits.len().min(MAX_DIGITS));
        Some(Decimal {
            digits: if kept.is_empty() { 0 } else { kept.parse().ok()? },
            exponent: i64::from(exponent) + cut.len() as i64 - part.len() as i64,
            is_more: cut.bytes().any(|digit| digit != b'0'),
        })
    }

    /// How many of our units so many of another one are.
    pub(super) fn in_units(self, (times, per): (u64, u64), round: Round) -> Option<u64> {
        let digits = self.digits + u128::from(self.is_more && round == Round::Up);
        if digits == 0 {
            return Some(0);
        }
        let mut above = digits.checked_mul(u128::from(times))?;
        let mut below = u128::from(per);
        let power =
            u32::try_from(self.exponent.unsigned_abs()).ok().and_then(|power| 10u128.checked_pow(power));
        if self.exponent >= 0 {
            above = above.checked_mul(power?)?;
        } else {
            match power.and_then(|power| below.checked_mul(power)) {
                Some(product) => below = product,
                // It is less than one of any unit.
                None => return Some(u64::from(round == Round::Up)),
            }
        }
        let whole = match round {
            Round::Up => above.div_ceil(below),
            Round::Down => above / below,
        };
        u64::try_from(whole).ok()
    }
}

/// A number with a unit, or without one if it has this one, in our units.
pub(super) fn amount(text: &str, units: Units, without: &str, round: Round) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')).unwrap_or(text.len());
    // An `e` belongs to the number if a digit or a sign follows.
    let (number, unit) = text.split_at(end);
    let unit = if unit.is_empty() { without } else { unit.trim() };
    let known = units.iter().find(|(name, ..)| *name == unit);
    // Capital letters tell bits from bytes; nothing else.
    let known = known.or_else(|| {
        units.iter().find(|(name, ..)| units.as_ptr() != LENGTHS.as_ptr() && name.eq_ignore_ascii_case(unit))
    });
    let Some((_, times, per)) = known else {
        let names: Vec<&str> = units.iter().map(|(name, ..)| *name).collect();
        return Err(format!("one of the units {} is expected", names.join(", ")));
    };
    let number = Decimal::parse(number.trim()).ok_or("a number is expected, with a unit or without")?;
    number.in_units((*times, *per), round).ok_or_else(|| "it is too large".to_owned())
}

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) is: T,
    pub(super) at: Range<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_or_rounded_to_the_side_that_is_asked_for() {
        assert_eq!(amount("100000000", RATES, "bps", Round::Down), Ok(100_000_000));
        assert_eq!(amount("0.5Mbps", RATES, "bps", Round::Down), Ok(500_000));
        assert_eq!(amount("1", TIMES, "ms", Round::Down), Ok(1_000_000));
        assert_eq!(amount("1e-2", TIMES, "ms", Round::Up), Ok(10_000));
        assert_eq!(amount("2.5E1us", TIMES, "ms", Round::Up), Ok(25_000));
        assert_eq!(amount("0.0000001ms", TIMES, "ms", Round::Up), Ok(1));
        assert_eq!(amount("0.0000001ms", TIMES, "ms", Round::Down), Ok(0));
        assert_eq!(amount("50B", LENGTHS, "B", Round::Up), Ok(400));
        assert_eq!(amount("50b", LENGTHS, "B", Round::Up), Ok(50));
        assert_eq!(amount("2 kB", LENGTHS, "B", Round::Up), Ok(16_000));
        assert_eq!(amount("10MBPS", RATES, "bps", Round::Up), Ok(10_000_000));
    }

    #[test]
    fn neither_zeros_in_front_nor_digits_at_the_end_change_what_a_number_is() {
        let zeros = "0".repeat(30);
        assert_eq!(amount(&format!("{zeros}2.5"), TIMES, "ms", Round::Up), Ok(2_500_000));
        assert_eq!(amount(&format!("0.{zeros}25e31"), TIMES, "ms", Round::Up), Ok(2_500_000));
        assert_eq!(amount(&format!("25{zeros}e-31"), TIMES, "ms", Round::Up), Ok(2_500_000));
        // What is cut off counts where a number is rounded up: 0.1 as a computer with binary numbers prints it.
        let tenth = "0.1000000000000000055511151231257827";
        assert_eq!(amount(tenth, TIMES, "ms", Round::Up), Ok(100_001));
        assert_eq!(amount(tenth, TIMES, "ms", Round::Down), Ok(100_000));
        // As much or as little as an exponent can say.
        assert_eq!(amount("1e-2147483648", TIMES, "ms", Round::Up), Ok(1));
        assert_eq!(amount("1.5e-2147483648", TIMES, "ms", Round::Down), Ok(0));
        assert_eq!(amount("0e2147483647", TIMES, "ms", Round::Up), Ok(0));
        assert!(amount("1e2147483647", TIMES, "ms", Round::Up).is_err());
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in
            ["", "ms", "-1", "1.2.3", "1 lightyear", "nan", "inf", "1e99", "99999999999999999999999999999"]
        {
            assert!(amount(text, TIMES, "ms", Round::Up).is_err(), "{text}");
        }
    }
}
