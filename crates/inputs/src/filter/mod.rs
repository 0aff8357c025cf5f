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
