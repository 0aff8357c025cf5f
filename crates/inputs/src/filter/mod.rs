//! Filters: an expression of pcap-filter(7) becomes a small program of tests that only go forward.
//!
//! The language is that of tcpdump and libpcap for frames of Ethernet, with these differences: names of hosts are not looked up,
//! services and protocols have the names that are listed here and no others, and what libpcap has for other links, tunnels and
//! interfaces is refused with the reason. `tests/pcap_filter.rs` compares what is selected with what tcpdump selects.

mod code;
mod layers;
mod parser;
mod primitive;
mod program;
mod relation;
mod tree;
mod words;

use crate::error::TextError;
pub use parser::MAX_NESTING;
pub use program::MAX_INSTRUCTIONS;
use program::Program;
use std::fmt;
pub(crate) use words::mac;

/// Longest expression, in bytes.
pub const MAX_EXPRESSION: usize = 4096;

/// A compiled filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Program);

impl Filter {
    /// Compiles an expression; an empty one selects all frames.
    ///
    /// # Errors
    /// [`TextError`], with the place.
    pub fn compile(expression: &str) -> Result<Filter, TextError> {
        let words = words::words(expression)?;
        let tree = parser::parse(expression, words)?;
        let whole = 0..expression.len();
        code::program(&tree).map(Filter).map_err(|message| TextError::new(expression, whole, message))
    }

    /// Whether a frame is selected. One that is too short for what the expression asks of it is not.
    #[inline]
    pub fn selects(&self, frame: &[u8]) -> bool {
        self.0.run(frame)
    }

    /// How many instructions it has: most that run for a frame. At most [`MAX_INSTRUCTIONS`].
    pub fn instructions(&self) -> usize {
        self.0.len()
    }
}

/// The program, an instruction a line.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(expression: &str) -> String {
        Filter::compile(expression).unwrap_err().to_string()
    }

    #[test]
    fn limits_are_said() {
        assert!(refusal(&" ".repeat(MAX_EXPRESSION + 1)).starts_with("an expression has at most 4096 bytes"));
        assert!(
            refusal(&format!("{}ip", "!".repeat(MAX_NESTING + 1)))
                .starts_with("an expression has at most 64")
        );
        let nested = |levels: usize| format!("{}ip{}", "(".repeat(levels), ")".repeat(levels));
        assert!(Filter::compile(&nested(MAX_NESTING)).is_ok());
        assert!(refusal(&nested(MAX_NESTING + 1)).starts_with("an expression has at most 64 parentheses"));
        let many = vec!["port 1"; 400].join(" or ");
        assert!(refusal(&many).starts_with("the expression takes more than 4096 instructions"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (expression, wanted) in [
            (
                "host example.org",
                "`example.org` is no address; names of hosts are not looked up\n  host example.org\n       ^^^^^^^^^^^",
            ),
            ("net 10.0.0.1/8", "10.0.0.1 has bits beyond its prefix\n  net 10.0.0.1/8\n      ^^^^^^^^^^"),
            ("port 70000", "a port is at most 65535, not 70000\n  port 70000\n       ^^^^^"),
            ("tcp[0:3] = 1", "1, 2 or 4 bytes were expected\n  tcp[0:3] = 1\n        ^"),
            ("ip[0] / 0 = 1", "a division by zero\n  ip[0] / 0 = 1\n          ^"),
            (
                "tcp and",
                "a primitive was expected, as `host`, `net`, `port`, `tcp` or `vlan`\n  tcp and\n         ^",
            ),
            ("(tcp", "`)` was expected\n  (tcp\n      ^"),
            (
                "gateway 10.0.0.1",
                "there is no `gateway`: names are not looked up\n  gateway 10.0.0.1\n  ^^^^^^^",
            ),
        ] {
            assert_eq!(refusal(expression), wanted);
        }
    }

    const WORDS: [&str; 34] = [
        "ip", "tcp", "port", "host", "net", "src", "dst", "or", "and", "not", "(", ")", "[", "]", ":",
        "10.0.0.1", "80", "1-2", "::1", "/", "8", "len", "&", "=", "<", "-", "vlan", "mpls", "ether",
        "proto", "\\tcp", "0x", "mask", "é",
    ];

    proptest! {
        #[test]
        fn no_text_makes_it_fail(
            words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..40),
            gap in proptest::sample::select(&["", " "][..]),
            frame in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            match Filter::compile(&words.join(gap)) {
                Ok(filter) => {
                    prop_assert!(filter.instructions() <= MAX_INSTRUCTIONS);
                    filter.selects(&frame);
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
