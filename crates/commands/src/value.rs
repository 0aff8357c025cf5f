//! Values as people write them.
//!
//! A value is a number (decimal, `0x` hexadecimal, `0o` octal, `0b` binary), `true` or `false`, or an address: a MAC
//! address for a field of 48 bits, an IPv4 address for one of 32, an IPv6 address for one of 128.

use millrace_pipeline::Bits;
use num_bigint::BigUint;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Most characters of one value. Numbers are converted in time quadratic in their length.
pub const MAX_LENGTH: usize = 32 * 1024;

/// Why a value was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// There is nothing.
    Empty,
    /// Longer than [`MAX_LENGTH`].
    TooLong,
    /// Not a number or address.
    NotANumber,
    /// Below zero.
    Negative,
    /// It takes more bits than there are.
    TooWide {
        /// Bits that there are.
        width: u32,
        /// Bits that it takes.
        needed: u64,
    },
    /// Not a right address of its kind.
    BadAddress(&'static str),
    /// A right address for a field of another width.
    AddressWidth {
        /// Its kind.
        kind: &'static str,
        /// Bits that it has.
        bits: u32,
        /// Bits of the field.
        width: u32,
    },
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::Empty => f.write_str("a value is missing"),
            ValueError::TooLong => write!(f, "the value is longer than {MAX_LENGTH} characters"),
            ValueError::NotANumber => {
                f.write_str("not a value: a number (decimal, 0x, 0b) or an address is expected")
            }
            ValueError::Negative => f.write_str("a negative value does not fit: values are unsigned"),
            ValueError::TooWide { width, needed } => {
                write!(f, "the value takes {needed} bits, the field has {width}")
            }
            ValueError::BadAddress(kind) => write!(f, "not a right {kind} address"),
            ValueError::AddressWidth { kind, bits, width } => {
                write!(f, "an {kind} address has {bits} bits, the field has {width}")
            }
        }
    }
}

impl std::error::Error for ValueError {}

/// Reads a value of a width in bits.
///
/// # Errors
/// [`ValueError`].
pub fn parse(text: &str, width: u32) -> Result<Bits, ValueError> {
    let mut has_dot = false;
    for byte in text.bytes() {
        if byte == b':' {
            return match mac(text.as_bytes()) {
                Some(value) if width == 48 => Ok(Bits::new(48, value.into())),
                _ => address_with_colons(text, width),
            };
        }
        has_dot |= byte == b'.';
    }
    if has_dot {
        let address: Ipv4Addr = text.parse().map_err(|_| ValueError::BadAddress("IPv4"))?;
        return of_address("IPv4", 32, u32::from(address).into(), width);
    }
    number(text, width)
}

/// Reads a number, `true` or `false`, but no address.
///
/// # Errors
/// [`ValueError`].
pub fn number(text: &str, width: u32) -> Result<Bits, ValueError> {
    let (digits, radix) = digits(text)?;
    match small(digits, radix) {
        Some(Ok(value)) => fit(value, width),
        Some(Err(())) => Err(ValueError::NotANumber),
        None => {
            let value = BigUint::parse_bytes(digits.as_bytes(), radix).ok_or(ValueError::NotANumber)?;
            if value.bits() > u64::from(width) {
                return Err(ValueError::TooWide { width, needed: value.bits() });
            }
            Ok(Bits::from_biguint(width.max(1), &value))
        }
    }
}

/// Reads a number that is an index, a handle, a port: anything without a width.
///
/// # Errors
/// [`ValueError`], with `width` 64.
pub fn plain(text: &str) -> Result<u64, ValueError> {
    let (digits, radix) = digits(text)?;
    match small(digits, radix) {
        Some(Ok(value)) => {
            u64::try_from(value).map_err(|_| ValueError::TooWide { width: 64, needed: bits_of(value) })
        }
        Some(Err(())) => Err(ValueError::NotANumber),
        None => Err(ValueError::TooWide { width: 64, needed: 129 }),
    }
}

fn digits(text: &str) -> Result<(&str, u32), ValueError> {
    let split = match text.as_bytes() {
        [] => return Err(ValueError::Empty),
        _ if text.len() > MAX_LENGTH => return Err(ValueError::TooLong),
        [b'-', b'0'..=b'9', ..] => return Err(ValueError::Negative),
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        [b'0', b'o' | b'O', ..] => (&text[2..], 8),
        b"true" => ("1", 10),
        b"false" => ("0", 10),
        _ => (text, 10),
    };
    if split.0.is_empty() { Err(ValueError::NotANumber) } else { Ok(split) }
}

/// The number when it takes no more than 128 bits; `Some(Err)` when it is none.
fn small(digits: &str, radix: u32) -> Option<Result<u128, ()>> {
    let mut value = 0u128;
    for digit in digits.chars() {
        let Some(digit) = digit.to_digit(radix) else { return Some(Err(())) };
        value = value.checked_mul(radix.into())?.checked_add(digit.into())?;
    }
    Some(Ok(value))
}

fn fit(value: u128, width: u32) -> Result<Bits, ValueError> {
    let needed = bits_of(value);
    if needed > u64::from(width) {
        return Err(ValueError::TooWide { width, needed });
    }
    Ok(Bits::new(width.max(1), value))
}

fn bits_of(value: u128) -> u64 {
    (128 - value.leading_zeros()).into()
}

/// A MAC address of two digits to each byte, as nearly all are written.
fn mac(text: &[u8]) -> Option<u64> {
    if text.len() != 17 {
        return None;
    }
    text.chunks(3).try_fold(0, |value, group| {
        let digit = |at: usize| char::from(group[at]).to_digit(16);
        let ends = group.get(2).is_none_or(|colon| *colon == b':');
        Some(value << 8 | u64::from(digit(0)? << 4 | digit(1).filter(|_| ends)?))
    })
}

fn address_with_colons(text: &str, width: u32) -> Result<Bits, ValueError> {
    let groups = || text.split(':').count();
    let looks_like_mac =
        || groups() == 6 && !text.contains("::") && text.split(':').all(|group| group.len() <= 2);
    if width == 48 || (width != 128 && looks_like_mac()) {
        let mut value = 0u128;
        for group in text.split(':') {
            let byte = match group.len() {
                1 | 2 if group.bytes().all(|b| b.is_ascii_hexdigit()) => u128::from_str_radix(group, 16).ok(),
                _ => None,
            };
            value = value << 8 | byte.ok_or(ValueError::BadAddress("Ethernet (MAC)"))?;
            if value >> 48 != 0 {
                return Err(ValueError::BadAddress("Ethernet (MAC)"));
            }
        }
        if groups() != 6 {
            return Err(ValueError::BadAddress("Ethernet (MAC)"));
        }
        return of_address("Ethernet (MAC)", 48, value, width);
    }
    let address: Ipv6Addr = text.parse().map_err(|_| ValueError::BadAddress("IPv6"))?;
    of_address("IPv6", 128, u128::from(address), width)
}

fn of_address(kind: &'static str, bits: u32, value: u128, width: u32) -> Result<Bits, ValueError> {
    if bits != width {
        return Err(ValueError::AddressWidth { kind, bits, width });
    }
    Ok(Bits::new(width, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_all_bases() {
        for text in ["10", "0xa", "0XA", "0b1010", "0o12", "00010"] {
            assert_eq!(parse(text, 9), Ok(Bits::new(9, 10)), "{text}");
        }
        assert_eq!(parse("true", 1), Ok(Bits::new(1, 1)));
        assert_eq!(parse("false", 1), Ok(Bits::new(1, 0)));
        let wide = parse("0x1000000000000000000000000000000000000000f", 200).unwrap();
        assert_eq!(wide.to_biguint(), (BigUint::from(1u8) << 160) + 15u8);
        assert_eq!(wide.to_hex().len(), 50);
    }

    #[test]
    fn addresses_for_their_widths() {
        assert_eq!(parse("10.0.1.2", 32), Ok(Bits::new(32, 0x0a00_0102)));
        assert_eq!(parse("08:00:00:00:01:11", 48), Ok(Bits::new(48, 0x0800_0000_0111)));
        assert_eq!(parse("2001:db8::1", 128), Ok(Bits::new(128, 0x2001_0db8_0000_0000_0000_0000_0000_0001)));
        let mac = ValueError::AddressWidth { kind: "Ethernet (MAC)", bits: 48, width: 32 };
        assert_eq!(parse("08:00:00:00:01:11", 32), Err(mac));
        let v4 = ValueError::AddressWidth { kind: "IPv4", bits: 32, width: 48 };
        assert_eq!(parse("10.0.1.2", 48), Err(v4));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str, width| parse(text, width).unwrap_err();
        assert_eq!(error("", 8), ValueError::Empty);
        assert_eq!(error("x", 8), ValueError::NotANumber);
        assert_eq!(error("0x", 8), ValueError::NotANumber);
        assert_eq!(error("0b12", 8), ValueError::NotANumber);
        assert_eq!(error("-1", 8), ValueError::Negative);
        assert_eq!(error("256", 8), ValueError::TooWide { width: 8, needed: 9 });
        assert_eq!(error("1", 0), ValueError::TooWide { width: 0, needed: 1 });
        assert_eq!(error("10.0.0", 32), ValueError::BadAddress("IPv4"));
        assert_eq!(error("10.0.0.256", 32), ValueError::BadAddress("IPv4"));
        assert_eq!(error("00:00:00:00:00", 48), ValueError::BadAddress("Ethernet (MAC)"));
        assert_eq!(error("00:00:00:00:00:+1", 48), ValueError::BadAddress("Ethernet (MAC)"));
        assert_eq!(error("1:2:3:4:5:6:7", 48), ValueError::BadAddress("Ethernet (MAC)"));
        assert_eq!(error("2001::db8::1", 128), ValueError::BadAddress("IPv6"));
        assert_eq!(error(&"9".repeat(MAX_LENGTH + 1), 8), ValueError::TooLong);
        assert!(matches!(error(&"9".repeat(1000), 128), ValueError::TooWide { width: 128, .. }));
        assert_eq!(plain("18446744073709551616"), Err(ValueError::TooWide { width: 64, needed: 65 }));
        assert_eq!(error("é", 8), ValueError::NotANumber);
    }
}
