//! Numbers with units, as `tc` writes them: rates, sizes and times, exact.
//!
//! - A rate without a unit is in bit/s; `bit`, `kbit`, `mbit`, `gbit`, `tbit` are powers of 1000 of it, `kibit` and so on of 1024; `bps`,
//!   `kbps`, `kibps` and so on are bytes a second.
//! - A size without a unit is in bytes; `b`, `k` or `kb`, `m` or `mb`, `g` or `gb` are powers of 1024 of it; `bit`, `kbit`, `mbit`, `gbit`
//!   eighths of them.
//! - A time has `ns`, `us`, `ms` or `s`, or `nsec`, `usec`, `msec`, `sec`. Without a unit it is in microseconds, in gate control lists in
//!   nanoseconds, as `tc` has it.
//! - A share is a number from 0 to 1, or with `%`.
//!
//! A number may have a fraction. What is not whole in bit/s, bytes or nanoseconds is refused, not rounded.

/// One, in shares: a millionth is the smallest.
pub(super) const ONE: u32 = 1_000_000;

/// Units and what they stand for, as a fraction.
type Units = [(&'static str, u128, u128)];

const RATES: &Units = &[
    ("gbit", 1_000_000_000, 1),
    ("mbit", 1_000_000, 1),
    ("kbit", 1000, 1),
    ("bit", 1, 1),
    ("tbit", 1_000_000_000_000, 1),
    ("kibit", 1 << 10, 1),
    ("mibit", 1 << 20, 1),
    ("gibit", 1 << 30, 1),
    ("bps", 8, 1),
    ("kbps", 8000, 1),
    ("mbps", 8_000_000, 1),
    ("gbps", 8_000_000_000, 1),
    ("kibps", 8 << 10, 1),
    ("mibps", 8 << 20, 1),
    ("gibps", 8 << 30, 1),
];
const SIZES: &Units = &[
    ("gb", 1 << 30, 1),
    ("mb", 1 << 20, 1),
    ("kb", 1 << 10, 1),
    ("b", 1, 1),
    ("g", 1 << 30, 1),
    ("m", 1 << 20, 1),
    ("k", 1 << 10, 1),
    ("bit", 1, 8),
    ("kbit", 1 << 10, 8),
    ("mbit", 1 << 20, 8),
    ("gbit", 1 << 30, 8),
];
const TIMES: &Units = &[
    ("s", 1_000_000_000, 1),
    ("ms", 1_000_000, 1),
    ("us", 1000, 1),
    ("ns", 1, 1),
    ("sec", 1_000_000_000, 1),
    ("secs", 1_000_000_000, 1),
    ("msec", 1_000_000, 1),
    ("msecs", 1_000_000, 1),
    ("usec", 1000, 1),
    ("usecs", 1000, 1),
    ("nsec", 1, 1),
    ("nsecs", 1, 1),
];

/// A number as a fraction with a power of ten below it, and what follows.
fn number(word: &str) -> Option<(u128, u128, &str)> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let (digits, unit) = word.split_at(end);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || digits.ends_with('.') || whole.len() > 20 || part.len() > 9 || part.contains('.') {
        return None;
    }
    let below = 10u128.pow(part.len() as u32);
    let part = if part.is_empty() { 0 } else { part.parse::<u128>().ok()? };
    Some((whole.parse::<u128>().ok()? * below + part, below, unit))
}

/// A number with a unit out of a list, or with the one that is meant.
fn quantity(word: &str, units: &Units, meant: &str, what: &str) -> Result<u64, String> {
    let example = units[1].0;
    let no = || format!("`{word}` is no {what}, such as 10{example}");
    let (above, below, unit) = number(word).ok_or_else(no)?;
    let unit = if unit.is_empty() { meant.to_string() } else { unit.to_ascii_lowercase() };
    let (_, times, over) = units.iter().find(|(name, ..)| *name == unit).ok_or_else(no)?;
    let (above, below) = (above * times, below * over);
    if !above.is_multiple_of(below) {
        return Err(format!("`{word}` is no whole number of {}", units[3].0));
    }
    u64::try_from(above / below).map_err(|_| format!("`{word}` is too large"))
}

/// A rate, in bit/s.
pub(super) fn rate(word: &str) -> Result<u64, String> {
    quantity(word, RATES, "bit", "rate")
}

/// A slope of a credit-based shaper, in bit/s: without a unit in kbit/s, and maybe negative.
pub(super) fn slope(word: &str) -> Result<i64, String> {
    let (sign, amount) = match word.strip_prefix('-') {
        Some(amount) => (-1, amount),
        None => (1, word),
    };
    let slope = quantity(amount, RATES, "kbit", "slope")?;
    i64::try_from(slope).map(|slope| sign * slope).map_err(|_| format!("`{word}` is too large"))
}

/// A size, in bytes.
pub(super) fn size(word: &str) -> Result<u64, String> {
    quantity(word, SIZES, "b", "size")
}

/// A time, in nanoseconds.
pub(super) fn time(word: &str) -> Result<u64, String> {
    quantity(word, TIMES, "us", "time")
}

/// A time of a gate control list, in nanoseconds.
pub(super) fn gate_time(word: &str) -> Result<u64, String> {
    quantity(word, TIMES, "ns", "time")
}

/// A share, in millionths.
pub(super) fn share(word: &str) -> Result<u32, String> {
    let no = || format!("`{word}` is no share of 0 to 1, such as 0.1 or 10%");
    let (above, below, unit) = number(word).ok_or_else(no)?;
    let below = match unit {
        "" => below,
        "%" => below * 100,
        _ => return Err(no()),
    };
    let millionths = above.checked_mul(u128::from(ONE)).ok_or_else(no)?;
    if millionths > u128::from(ONE) * below {
        return Err(no());
    }
    match millionths.is_multiple_of(below) {
        true => Ok((millionths / below) as u32),
        false => Err(format!("`{word}` is no whole number of millionths")),
    }
}

/// A factor of the dynamic threshold, in 256ths: `2`, `0.5` or `1/8`.
pub(super) fn alpha(word: &str) -> Result<u32, String> {
    let no = || format!("`{word}` is no factor, such as 2, 0.5 or 1/8");
    let (above, times, rest) = number(word).ok_or_else(no)?;
    let below = match rest.strip_prefix('/') {
        Some(below) => below.parse::<u8>().ok().filter(|below| *below > 0).ok_or_else(no)?,
        None if rest.is_empty() => 1,
        None => return Err(no()),
    };
    let (above, below) = (above.checked_mul(256).ok_or_else(no)?, times * u128::from(below));
    match above.is_multiple_of(below) {
        true => u32::try_from(above / below).map_err(|_| no()),
        false => Err(format!("`{word}` is no whole number of 256ths")),
    }
}

/// With the largest of the first four units that leaves no fraction.
fn shown(amount: u64, units: &Units) -> String {
    let fits = |unit: &&(&str, u128, u128)| amount > 0 && u128::from(amount).is_multiple_of(unit.1);
    let (unit, times, _) = units[..4].iter().find(fits).unwrap_or(&units[3]);
    format!("{}{unit}", u128::from(amount) / times)
}

/// A rate as [`rate`] reads it.
pub(super) fn show_rate(rate: u64) -> String {
    shown(rate, RATES)
}

/// A slope as [`slope`] reads it.
pub(super) fn show_slope(slope: i64) -> String {
    let sign = if slope < 0 { "-" } else { "" };
    format!("{sign}{}", shown(slope.unsigned_abs(), RATES))
}

/// A size as [`size`] reads it.
pub(super) fn show_size(size: u64) -> String {
    shown(size, SIZES)
}

/// A time as [`time`] and [`gate_time`] read it.
pub(super) fn show_time(time: u64) -> String {
    shown(time, TIMES)
}

/// A share as [`share`] reads it.
pub(super) fn show_share(share: u32) -> String {
    let fraction = format!("{:06}", share % ONE);
    match fraction.trim_end_matches('0') {
        "" => format!("{}", share / ONE),
        fraction => format!("{}.{fraction}", share / ONE),
    }
}

/// A factor as [`alpha`] reads it.
pub(super) fn show_alpha(alpha: u32) -> String {
    // Eight binary places are at most eight decimal ones.
    let fraction = format!("{:08}", u64::from(alpha % 256) * 100_000_000 / 256);
    match fraction.trim_end_matches('0') {
        "" => format!("{}", alpha / 256),
        fraction => format!("{}.{fraction}", alpha / 256),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_those_of_tc() {
        let rates = [("1", 1), ("1kbit", 1000), ("1.5Mbit", 1_500_000), ("400gbit", 400_000_000_000)];
        let more = [("1kibit", 1024), ("2bps", 16), ("1kbps", 8000), ("1mibps", 8 << 20)];
        for (word, wanted) in rates.into_iter().chain(more) {
            assert_eq!(rate(word), Ok(wanted), "{word}");
        }
        for (word, wanted) in [
            ("1600", 1600),
            ("32kb", 32 << 10),
            ("4mb", 4 << 20),
            ("1k", 1024),
            ("8kbit", 1024),
            ("0.5kb", 512),
        ] {
            assert_eq!(size(word), Ok(wanted), "{word}");
        }
        for (word, wanted) in
            [("7", 7000), ("7ns", 7), ("7us", 7000), ("2.5ms", 2_500_000), ("1sec", 1_000_000_000)]
        {
            assert_eq!(time(word), Ok(wanted), "{word}");
        }
        assert_eq!(gate_time("300000"), Ok(300_000));
        assert_eq!((slope("-980000"), slope("20mbit")), (Ok(-980_000_000), Ok(20_000_000)));
        assert_eq!(
            (share("0.1"), share("10%"), share("1"), share("0.000001")),
            (Ok(100_000), Ok(100_000), Ok(ONE), Ok(1))
        );
    }

    #[test]
    fn factors_are_256ths() {
        for (word, wanted) in [
            ("1", 256),
            ("0.5", 128),
            ("1/8", 32),
            ("2.25", 576),
            ("1/256", 0),
            ("1/0", 0),
            ("0.3", 0),
            ("1/3", 0),
        ] {
            assert_eq!(alpha(word).unwrap_or(0), wanted, "{word}");
        }
        assert_eq!((show_alpha(1), show_alpha(384)), ("0.00390625".into(), "1.5".into()));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for word in
            ["", "x", "-1", "1.", ".5", "1..2", "1.2.3", "1e3", "1 kb", "100000000000000000000", "1xbit"]
        {
            assert!(size(word).is_err(), "{word}");
            assert!(rate(word).is_err(), "{word}");
        }
        assert_eq!(size("3bit").unwrap_err(), "`3bit` is no whole number of b");
        assert_eq!(rate("0.5").unwrap_err(), "`0.5` is no whole number of bit");
        assert_eq!(time("1.5ns").unwrap_err(), "`1.5ns` is no whole number of ns");
        assert_eq!(rate("10kb").unwrap_err(), "`10kb` is no rate, such as 10mbit");
        assert_eq!(size("99999999999gb").unwrap_err(), "`99999999999gb` is too large");
        for word in ["1.1", "101%", "2", "0.1mb", "0.0000001"] {
            assert!(share(word).is_err(), "{word}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(amount in prop_oneof![any::<u64>(), (0u64..100, 0u32..5).prop_map(|(a, b)| a * 1000u64.pow(b))]) {
            prop_assert_eq!(rate(&show_rate(amount)), Ok(amount));
            prop_assert_eq!(size(&show_size(amount)), Ok(amount));
            prop_assert_eq!(time(&show_time(amount)), Ok(amount));
            prop_assert_eq!(gate_time(&show_time(amount)), Ok(amount));
            let slope_is = amount as i64 / 2;
            prop_assert_eq!(slope(&show_slope(slope_is)), Ok(slope_is));
            let share_is = (amount % u64::from(ONE + 1)) as u32;
            prop_assert_eq!(share(&show_share(share_is)), Ok(share_is));
            prop_assert_eq!(alpha(&show_alpha(amount as u32)), Ok(amount as u32));
        }
    }
}
