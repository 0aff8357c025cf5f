//! Numbers with units: rates, sizes, times and shares, exact.
//!
//! A number may have a fraction. What is not whole in bit/s, bytes, nanoseconds or parts per million is refused, not
//! rounded.

use crate::limits::WHOLE;

/// What a number with a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// In bit/s.
    Rate,
    /// In bytes.
    Size,
    /// In nanoseconds.
    Time,
    /// In parts per million, written in percent.
    Share,
}

/// A unit with how many of the smallest unit it is. From the largest to the smallest.
type Units = &'static [(&'static str, u64)];

impl Measure {
    fn units(self) -> Units {
        match self {
            Measure::Rate => &[
                ("Tbit", 1_000_000_000_000),
                ("Gbit", 1_000_000_000),
                ("Mbit", 1_000_000),
                ("kbit", 1000),
                ("bit", 1),
            ],
            Measure::Size => {
                &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)]
            }
            Measure::Time => &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)],
            Measure::Share => &[("%", WHOLE / 100)],
        }
    }

    /// How a value is written.
    pub fn form(self) -> &'static str {
        match self {
            Measure::Rate => "a rate, such as \"10Gbit\"",
            Measure::Size => "a size, such as \"64MiB\"",
            Measure::Time => "a time, such as \"1ms\"",
            Measure::Share => "a share, such as \"10%\"",
        }
    }
}

/// A number with its unit, in the smallest unit. Large and small letters of units are the same.
pub fn parse(text: &str, measure: Measure) -> Result<u64, String> {
    let no = || format!("{} is expected", measure.form());
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || digits.ends_with('.') || whole.len() > 19 || part.len() > 9 || part.contains('.') {
        return Err(no());
    }
    let unit = unit.trim_start_matches(' ');
    let units = measure.units();
    let Some((_, times)) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        return Err(format!("{} is expected, with one of the units {}", measure.form(), known.join(", ")));
    };
    // At most 19 digits and a unit below 2^40 stay far below 2^128.
    let below = 10u128.pow(part.len() as u32);
    let part = if part.is_empty() { 0 } else { part.parse::<u128>().map_err(|_| no())? };
    let number = whole.parse::<u128>().map_err(|_| no())? * below + part;
    let above = number * u128::from(*times);
    if !above.is_multiple_of(below) {
        let smallest = match measure {
            Measure::Share => "parts per million",
            _ => units[units.len() - 1].0,
        };
        return Err(format!("it is no whole number of {smallest}"));
    }
    u64::try_from(above / below).map_err(|_| "it is too large".to_owned())
}

/// A value as [`parse`] reads it, with the largest unit that leaves no fraction.
pub fn show(amount: u64, measure: Measure) -> String {
    let units = measure.units();
    if measure == Measure::Share {
        let (whole, part) = (amount / (WHOLE / 100), amount % (WHOLE / 100));
        return match format!("{part:04}").trim_end_matches('0') {
            "" => format!("{whole}%"),
            part => format!("{whole}.{part}%"),
        };
    }
    let fits = |unit: &&(&str, u64)| amount > 0 && amount.is_multiple_of(unit.1);
    let (unit, times) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    format!("{}{unit}", amount / times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_exact() {
        for (text, measure, value) in [
            ("10Gbit", Measure::Rate, 10_000_000_000),
            ("1.5 mbit", Measure::Rate, 1_500_000),
            ("64MiB", Measure::Size, 64 << 20),
            ("0.5KiB", Measure::Size, 512),
            ("1ms", Measure::Time, 1_000_000),
            ("2.5us", Measure::Time, 2500),
            ("0.1%", Measure::Share, 1000),
            ("100%", Measure::Share, 1_000_000),
            ("0.0001%", Measure::Share, 1),
        ] {
            assert_eq!(parse(text, measure), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", "1", "bit", "-1bit", "1.bit", ".5bit", "1.2.3bit", "1e3bit", "1xbit", "1 bit x", "0.5bit"]
        {
            assert!(parse(text, Measure::Rate).is_err(), "{text}");
        }
        assert_eq!(
            parse("0.00001%", Measure::Share).unwrap_err(),
            "it is no whole number of parts per million"
        );
        assert_eq!(parse("9999999999999999999TiB", Measure::Size).unwrap_err(), "it is too large");
        assert!(parse("1MB", Measure::Size).unwrap_err().contains("MiB, KiB, B"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(amount in prop_oneof![any::<u64>(), (0u64..100, 0u32..5).prop_map(|(a, b)| a * 1000u64.pow(b))]) {
            for measure in [Measure::Rate, Measure::Size, Measure::Time, Measure::Share] {
                // Numbers of more than 19 digits are not read.
                let amount = amount % 10_000_000_000_000_000_000;
                prop_assert_eq!(parse(&show(amount, measure), measure), Ok(amount));
            }
        }
    }
}
