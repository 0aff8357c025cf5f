//! Which names stand as they are, and which in quotes.

use super::lexer;

/// The words that start a declaration or an expression. A thing that is called so is written in quotes; all other
/// words of the language stand where no name can.
const RESERVED: &[&str] = &[
    "_",
    "action",
    "add",
    "add_sat",
    "add_sat_signed",
    "and",
    "bit_not",
    "body",
    "bool_and",
    "bool_or",
    "bool_to_bits",
    "concat",
    "counter",
    "cursor",
    "digest",
    "div",
    "eq",
    "false",
    "header",
    "le",
    "le_signed",
    "local",
    "lt",
    "lt_signed",
    "metadata",
    "meter",
    "mod",
    "mul",
    "mux",
    "ne",
    "neg",
    "not",
    "or",
    "packet_length",
    "payload",
    "plugin",
    "profile",
    "register",
    "sext",
    "shl",
    "shr",
    "shr_signed",
    "slot",
    "stack",
    "sub",
    "sub_sat",
    "sub_sat_signed",
    "table",
    "true",
    "valid",
    "value_set",
    "xor",
    "zext",
];

/// Whether a word cannot be a name as it is.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok() || block_number(word).is_some()
}

/// The number of a block label.
pub(super) fn block_number(word: &str) -> Option<&str> {
    word.strip_prefix("block").filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// A name as it is written.
pub(super) fn written(name: &str) -> String {
    if lexer::is_word(name) && !is_reserved(name) { name.into() } else { quoted(name) }
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, UnaryOp};

    #[test]
    fn reserved_words_are_sorted_and_complete() {
        assert!(RESERVED.is_sorted());
        assert!(BinaryOp::ALL.iter().all(|op| is_reserved(op.name())));
        assert!(UnaryOp::ALL.iter().all(|op| is_reserved(op.name())));
    }

    #[test]
    fn how_names_are_written() {
        for plain in ["hdr.ipv4.ttl", "a", "_a", "x$1", "hdr.mpls[2].label", "blocks", "block", "v"] {
            assert_eq!(written(plain), plain);
        }
        for (odd, text) in [
            ("", "\"\""),
            ("table", "\"table\""),
            ("block7", "\"block7\""),
            ("a b", "\"a b\""),
            ("a\"\\\n\u{7}", "\"a\\\"\\\\\\n\\u{7}\""),
            ("1a", "\"1a\""),
            ("a.", "\"a.\""),
            ("a..b", "\"a..b\""),
            ("a[x]", "\"a[x]\""),
            ("é", "\"é\""),
        ] {
            assert_eq!(written(odd), text);
        }
    }
}
