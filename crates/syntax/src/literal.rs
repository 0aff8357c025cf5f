//! The values of integer and string literals (specification section 6.4.3).

use std::borrow::Cow;

use num_bigint::BigInt;

use crate::ast::{IntLiteral, IntWidth};

/// Widest `bit<W>`, `int<W>` literal prefix that is taken.
pub const MAX_LITERAL_WIDTH: u32 = 1 << 20;

/// Most digits of an integer literal.
pub const MAX_LITERAL_DIGITS: usize = 4096;

/// Reads an integer literal such as `8w0xFF`. The error says what is wrong with it.
pub(crate) fn integer(text: &str) -> Result<IntLiteral, String> {
    let (width, digits) = match text.find(['w', 's']) {
        // In `0xws` there is no prefix: the letter must end a run of decimal digits.
        Some(at) if text[..at].bytes().all(|b| b.is_ascii_digit()) => {
            (Some(width(&text[..at], text.as_bytes()[at] == b's')?), &text[at + 1..])
        }
        _ => (None, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'd' | b'D', ..] => (10, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'_', ..] => return Err("an integer cannot begin with an underscore".into()),
        _ => (10, digits),
    };
    let plain: Cow<'_, str> =
        if digits.contains('_') { digits.replace('_', "").into() } else { Cow::Borrowed(digits) };
    if plain.is_empty() {
        return Err("this integer has no digits".into());
    }
    if plain.len() > MAX_LITERAL_DIGITS {
        return Err(format!("this integer has more than {MAX_LITERAL_DIGITS} digits"));
    }
    if let Some(bad) = plain.chars().find(|c| !c.is_digit(radix)) {
        return Err(format!("`{bad}` is not a digit in base {radix}"));
    }
    let value = BigInt::parse_bytes(plain.as_bytes(), radix).ok_or("this is not an integer")?;
    Ok(IntLiteral { value, width, radix })
}

fn width(digits: &str, signed: bool) -> Result<IntWidth, String> {
    match digits.parse::<u32>() {
        Ok(bits) if bits <= MAX_LITERAL_WIDTH => Ok(IntWidth { bits, signed }),
        _ => Err(format!("this width is over the limit of {MAX_LITERAL_WIDTH} bits")),
    }
}

/// The contents of a string literal given with its quotes. `\"`, `\\`, `\n`, `\t`, `\r` stand for what they do in
/// C, a backslash before a line break for nothing; other backslashes stay.
pub(crate) fn string(quoted: &str) -> String {
    let inner = quoted.strip_prefix('"').unwrap_or(quoted);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(c @ ('"' | '\\')) => out.push(c),
            Some('\n') => {}
            Some('\r') if chars.as_str().starts_with('\n') => {
                chars.next();
            }
            Some(c) => out.extend(['\\', c]),
            None => out.push('\\'),
        }
    }
    out
}

/// A string as a literal with its quotes, such that [`string`] gives it back.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> (u64, Option<(u32, bool)>) {
        let literal = integer(text).unwrap();
        (literal.value.try_into().unwrap(), literal.width.map(|w| (w.bits, w.signed)))
    }

    #[test]
    fn examples_of_the_specification() {
        assert_eq!(value("32w255"), (255, Some((32, false))));
        assert_eq!(value("32w0d255"), (255, Some((32, false))));
        assert_eq!(value("32s0xFF"), (255, Some((32, true))));
        assert_eq!(value("8w0b_1010_1010"), (0xaa, Some((8, false))));
        assert_eq!(value("8s0b1010_1010"), (0xaa, Some((8, true))));
        assert_eq!(value("16w0377"), (377, Some((16, false))));
        assert_eq!(value("16w0o377"), (255, Some((16, false))));
        assert_eq!(value("0x_F_"), (15, None));
        assert_eq!(value("1_000"), (1000, None));
    }

    #[test]
    fn what_is_no_integer() {
        for text in ["0x", "8w", "8w_1", "12ab", "0b12", "0o8", "99999999999w1", "0xFw"] {
            assert!(integer(text).is_err(), "{text}");
        }
        assert!(integer(&"1".repeat(MAX_LITERAL_DIGITS + 1)).is_err());
    }

    #[test]
    fn big_values_are_exact() {
        let text = format!("128w0x{}", "F".repeat(32));
        assert_eq!(integer(&text).unwrap().value, (BigInt::from(1) << 128) - 1);
    }

    #[test]
    fn string_escapes() {
        assert_eq!(string(r#""a\"b\\c\q""#), r#"a"b\c\q"#);
        assert_eq!(string("\"a\\\nb\\n\""), "ab\n");
        assert_eq!(string(&quote(r#"x\"y"#)), r#"x\"y"#);
    }
}
