//! Match fields as people write them: `10.0.0.0/8`, `0x800&&&0xff00`, `80->443`.

use crate::value::{self, ValueError};
use millrace_pipeline::{Bits, EntryMatch, MatchKind};
use std::ops::Range;

/// Why a match field was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchError {
    /// The part of the field that is wrong, in bytes of it.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would put it right.
    pub help: Option<String>,
}

impl MatchError {
    fn new(at: Range<usize>, message: impl Into<String>, help: impl Into<Option<String>>) -> MatchError {
        MatchError { at, message: message.into(), help: help.into() }
    }
}

/// Reads a match field of a kind and width, as the runtime commands of bmv2 write it:
/// exact `v`, lpm `v/length`, ternary `v&&&mask`, range `low->high`, optional `v` or `v&&&mask` with a mask of all ones
/// or zero. Bits outside a mask or prefix are ignored.
///
/// # Errors
/// [`MatchError`].
pub fn parse(text: &str, kind: MatchKind, width: u32) -> Result<EntryMatch, MatchError> {
    match kind {
        MatchKind::Exact => Ok(EntryMatch::Exact(part(text, 0..text.len(), width)?)),
        MatchKind::Lpm => {
            let Some(slash) = text.find('/') else {
                let whole = value::parse(text, width).is_ok();
                let help = whole.then(|| format!("one address is `{text}/{width}`"));
                return Err(MatchError::new(
                    0..text.len(),
                    "an lpm field needs a prefix length: `value/length`",
                    help,
                ));
            };
            let value = part(text, 0..slash, width)?;
            let at = slash + 1..text.len();
            let length = text[at.clone()].parse::<u32>();
            match length {
                Ok(length) if length <= width => Ok(EntryMatch::Lpm(value, length)),
                Ok(length) => Err(MatchError::new(
                    at,
                    format!("a prefix of {length} bits is too long, the field has {width}"),
                    None,
                )),
                Err(_) => Err(MatchError::new(at, "a prefix length is a decimal number", None)),
            }
        }
        MatchKind::Ternary => {
            let (value, mask) = masked(text, width, "a ternary field needs a mask: `value&&&mask`")?;
            Ok(EntryMatch::Ternary(value, mask))
        }
        MatchKind::Optional => {
            if !text.contains("&&&") {
                return Ok(EntryMatch::Optional(Some(part(text, 0..text.len(), width)?)));
            }
            let (value, mask) = masked(text, width, "")?;
            if mask.is_zero() {
                Ok(EntryMatch::Optional(None))
            } else if mask.is_ones() {
                Ok(EntryMatch::Optional(Some(value)))
            } else {
                let help = "an optional field matches one value or all of them".to_owned();
                Err(MatchError::new(0..text.len(), "the mask of an optional field is all ones or 0", help))
            }
        }
        MatchKind::Range => {
            let Some(arrow) = text.find("->") else {
                let whole = value::parse(text, width).is_ok();
                let help = whole.then(|| format!("one value is `{text}->{text}`"));
                return Err(MatchError::new(
                    0..text.len(),
                    "a range field needs two ends: `low->high`",
                    help,
                ));
            };
            let low = part(text, 0..arrow, width)?;
            let high = part(text, arrow + 2..text.len(), width)?;
            if low.to_biguint() > high.to_biguint() {
                return Err(MatchError::new(
                    0..text.len(),
                    "the range is empty: its low end is above its high end",
                    None,
                ));
            }
            Ok(EntryMatch::Range(low, high))
        }
    }
}

/// A match field as text that [`parse`] reads again.
pub fn show(field: &EntryMatch) -> String {
    let hex = |value: &Bits| format!("0x{}", value.to_hex());
    match field {
        EntryMatch::Exact(value) => hex(value),
        EntryMatch::Lpm(value, length) => format!("{}/{length}", hex(value)),
        EntryMatch::Ternary(value, mask) => format!("{}&&&{}", hex(value), hex(mask)),
        EntryMatch::Range(low, high) => format!("{}->{}", hex(low), hex(high)),
        EntryMatch::Optional(Some(value)) => hex(value),
        EntryMatch::Optional(None) => "0&&&0".into(),
    }
}

/// The name of a match kind.
pub fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
    }
}

fn masked(text: &str, width: u32, missing: &str) -> Result<(Bits, Bits), MatchError> {
    let Some(at) = text.find("&&&") else {
        let help = value::parse(text, width)
            .ok()
            .map(|value| format!("one value is `{text}&&&0x{}`", Bits::ones(value.width()).to_hex()));
        return Err(MatchError::new(0..text.len(), missing, help));
    };
    Ok((part(text, 0..at, width)?, part(text, at + 3..text.len(), width)?))
}

fn part(text: &str, at: Range<usize>, width: u32) -> Result<Bits, MatchError> {
    value::parse(&text[at.clone()], width).map_err(|error: ValueError| {
        // An empty part still needs a place to point at.
        let at = if at.is_empty() { 0..text.len() } else { at };
        MatchError::new(at, error.to_string(), None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read() {
        let b = |value| Bits::new(16, value);
        assert_eq!(parse("7", MatchKind::Exact, 16), Ok(EntryMatch::Exact(b(7))));
        assert_eq!(parse("0x0a00/8", MatchKind::Lpm, 16), Ok(EntryMatch::Lpm(b(0x0a00), 8)));
        assert_eq!(parse("0/0", MatchKind::Lpm, 16), Ok(EntryMatch::Lpm(b(0), 0)));
        assert_eq!(parse("1&&&0xff", MatchKind::Ternary, 16), Ok(EntryMatch::Ternary(b(1), b(0xff))));
        assert_eq!(parse("1->0xff", MatchKind::Range, 16), Ok(EntryMatch::Range(b(1), b(0xff))));
        assert_eq!(parse("9", MatchKind::Optional, 16), Ok(EntryMatch::Optional(Some(b(9)))));
        assert_eq!(parse("9&&&0xffff", MatchKind::Optional, 16), Ok(EntryMatch::Optional(Some(b(9)))));
        assert_eq!(parse("0&&&0", MatchKind::Optional, 16), Ok(EntryMatch::Optional(None)));
        let v6 = parse("2001:db8::/32", MatchKind::Lpm, 128).unwrap();
        assert_eq!(show(&v6), "0x20010db8000000000000000000000000/32");
        assert_eq!(parse(&show(&v6), MatchKind::Lpm, 128), Ok(v6));
    }

    #[test]
    fn errors_point_at_the_part() {
        let error = |text, kind| parse(text, kind, 32).unwrap_err();
        let no_length = error("10.0.0.1", MatchKind::Lpm);
        assert_eq!(no_length.help.as_deref(), Some("one address is `10.0.0.1/32`"));
        let long = error("10.0.0.0/33", MatchKind::Lpm);
        assert_eq!(
            (long.at, long.message.as_str()),
            (9..11, "a prefix of 33 bits is too long, the field has 32")
        );
        assert_eq!(error("10.0.0.0/x", MatchKind::Lpm).at, 9..10);
        assert_eq!(error("10.0.0.0/-1", MatchKind::Lpm).at, 9..11);
        assert_eq!(error("1&&&zz", MatchKind::Ternary).at, 4..6);
        assert_eq!(error("5->4", MatchKind::Range).at, 0..4);
        assert_eq!(error("5->", MatchKind::Range).message, "a value is missing");
        assert!(error("1&&&1", MatchKind::Optional).message.contains("all ones"));
        assert_eq!(error("7", MatchKind::Ternary).help.as_deref(), Some("one value is `7&&&0xffffffff`"));
    }
}
