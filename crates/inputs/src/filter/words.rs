//! The words of an expression.

use super::MAX_EXPRESSION;
use crate::error::TextError;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// What a word is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword, or a name after a backslash, which is no keyword.
    Name {
        name: String,
        is_escaped: bool,
    },
    Number(u32),
    /// Two to four numbers with dots, and how many there are.
    Dotted(Ipv4Addr, u32),
    V6(Ipv6Addr),
    Mac([u8; 6]),
    /// Two numbers with a minus sign, of ports.
    Span(u32, u32),
    Sign(&'static str),
    End,
}

/// A word and its place.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

/// The longer signs come first.
const SIGNS: [&str; 24] = [
    "&&", "||", "<<", ">>", "<=", ">=", "!=", "==", "&", "|", "^", "<", ">", "!", "=", "+", "-", "*", "/",
    "%", "(", ")", "[", "]",
];

/// The words of a text, and an end.
pub(super) fn words(text: &str) -> Result<Vec<Word>, TextError> {
    if text.len() > MAX_EXPRESSION {
        let message = format!("an expression has at most {MAX_EXPRESSION} bytes");
        return Err(TextError::new(text, 0..0, message));
    }
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        // An index is a word by itself, so that `ip[0:2]` is not an address.
        let is_index = words.last().is_some_and(|word: &Word| word.kind == Kind::Sign("["))
            || words.last().is_some_and(|word: &Word| word.kind == Kind::Sign(":"));
        let (kind, length) = word(&text[at..], is_index)
            .map_err(|(length, message)| TextError::new(text, at..at + length, message))?;
        words.push(Word { kind, at: at..at + length });
        at += length;
    }
    words.push(Word { kind: Kind::End, at: text.len()..text.len() });
    Ok(words)
}

type Refused = (usize, String);

/// The first word, and its length.
fn word(text: &str, is_index: bool) -> Result<(Kind, usize), Refused> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let end = |is: fn(char) -> bool| text.find(|c| !is(c)).unwrap_or(text.len());
    if let Some(name) = text.strip_prefix('\\') {
        let length = name.find(|c: char| !is_of_name(c)).unwrap_or(name.len());
        let kind = Kind::Name { name: name[..length].to_owned(), is_escaped: true };
        return if length > 0 { Ok((kind, length + 1)) } else { Err((1, "a name follows `\\`".to_owned())) };
    }
    let address = end(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    let is_address = text[..address].matches(':').count() >= 2 && !is_index;
    if is_address {
        let given = &text[..address];
        return match (mac(given), given.parse::<Ipv6Addr>()) {
            (Some(mac), _) => Ok((Kind::Mac(mac), address)),
            (None, Ok(v6)) => Ok((Kind::V6(v6), address)),
            _ => Err((address, format!("`{given}` is neither an IPv6 nor a hardware address"))),
        };
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let length = end(|c| c.is_ascii_alphanumeric() || c == '.');
        if !text[..length].contains('.')
            && let Some((low, high, whole)) = span(text, length)
        {
            return Ok((Kind::Span(low, high), whole));
        }
        let given = &text[..length];
        return match (number(given), dotted(given)) {
            (Some(number), _) => Ok((Kind::Number(number), length)),
            (None, Some((address, parts))) => Ok((Kind::Dotted(address, parts), length)),
            _ => Err((length, format!("`{given}` is neither a number of 32 bits nor an IPv4 address"))),
        };
    }
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let mut length = end(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        // `icmp-echo` is a name, `len-4` is not.
        if let Some(short) = text[..length].find('-')
            && !is_dashed(&text[..length])
        {
            length = short;
        }
        return Ok((Kind::Name { name: text[..length].to_owned(), is_escaped: false }, length));
    }
    if text.starts_with(':') && !text.starts_with("::") {
        return Ok((Kind::Sign(":"), 1));
    }
    let sign = SIGNS.into_iter().find(|sign| text.starts_with(sign));
    let first = text.chars().next().map_or(1, char::len_utf8);
    sign.map(|sign| (Kind::Sign(sign), sign.len())).ok_or((first, "no word begins with that".to_owned()))
}

fn is_dashed(name: &str) -> bool {
    name.starts_with("tcp-") || name.starts_with("icmp-")
}

/// `1024-65535`, where the first number has so many digits.
fn span(text: &str, length: usize) -> Option<(u32, u32, usize)> {
    let rest = text[length..].strip_prefix('-')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((number(&text[..length])?, number(&rest[..digits])?, length + 1 + digits))
}

/// A decimal number, an octal one with 0 or a hexadecimal one with 0x.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u32::from_str_radix(digits, 16).ok()
        }
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
        Some(_) => None,
    }
}

fn dotted(text: &str) -> Option<(Ipv4Addr, u32)> {
    let mut octets = [0; 4];
    let mut parts = 0;
    for part in text.split('.') {
        *octets.get_mut(parts)? = part.parse().ok()?;
        parts += 1;
    }
    Some((Ipv4Addr::from(octets), parts as u32))
}

/// A hardware address with colons.
pub(crate) fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}
