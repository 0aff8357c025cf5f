//! How a test went.

use crate::Pattern;
use millrace_printable::counted;
use std::fmt;
use std::ops::Range;

/// How a test went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets that came in.
    pub packets: usize,
    /// Packets that were expected and came, and counters that were right.
    pub passed: usize,
    /// What was not as the test says.
    pub failures: Vec<Failure>,
    /// Lines that the program logged.
    pub log: Vec<String>,
}

impl Report {
    /// Whether everything was as the test says.
    pub fn is_success(&self) -> bool {
        self.failures.is_empty()
    }
}

/// One thing that was not as the test says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The statement that was not fulfilled, or that led to it.
    pub at: Range<usize>,
    /// What was wrong.
    pub kind: FailureKind,
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A statement does not fit the program.
    Refused {
        /// Why.
        message: String,
        /// What would put it right.
        help: Option<String>,
    },
    /// A packet left, but not the expected one.
    Differs(Difference),
    /// An expected packet did not leave.
    Missing {
        /// The port.
        port: u32,
        /// Which packet on that port, from 1.
        number: usize,
        /// What it should look like; none: anything.
        pattern: Option<Pattern>,
    },
    /// A packet left that was not expected.
    Unexpected {
        /// The port.
        port: u32,
        /// Which packet on that port, from 1.
        number: usize,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A counter does not hold what it should.
    Counter {
        /// The counter with the cell.
        counter: String,
        /// What it should hold: `packets == 3`.
        wanted: String,
        /// What it holds.
        found: u64,
    },
}

/// A packet that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The port.
    pub port: u32,
    /// Which packet on that port, from 1.
    pub number: usize,
    /// What it should look like.
    pub expected: Pattern,
    /// What it is.
    pub got: Vec<u8>,
}

impl Difference {
    /// The bytes that differ; those that are missing or too many count too.
    pub fn bytes(&self) -> Vec<usize> {
        let shared = self.expected.length().min(self.got.len());
        let mut differing: Vec<usize> =
            (0..shared).filter(|&index| !self.expected.fits(index, self.got[index])).collect();
        if self.got.len() < self.expected.length() || self.expected.exact_length() {
            differing.extend(shared..self.expected.length().max(self.got.len()));
        }
        differing
    }
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureKind::Refused { message, .. } => f.write_str(message),
            FailureKind::Differs(difference) => {
                let (port, number) = (difference.port, difference.number);
                write!(f, "packet {number} on port {port} differs")?;
                match (difference.got.len(), difference.expected.length()) {
                    (got, expected) if got < expected => {
                        write!(f, ": it has {}, {expected} {} expected", counted(got, "byte"), are(expected))
                    }
                    (got, expected) if difference.expected.exact_length() && got > expected => {
                        write!(
                            f,
                            ": it has {}, exactly {expected} {} expected",
                            counted(got, "byte"),
                            are(expected)
                        )
                    }
                    _ => match difference.bytes().first() {
                        Some(first) => write!(f, " at byte {first}"),
                        None => Ok(()),
                    },
                }
            }
            FailureKind::Missing { port, number, pattern: Some(_) } => {
                write!(f, "packet {number} on port {port} did not come")
            }
            FailureKind::Missing { port, pattern: None, .. } => write!(f, "no packet came on port {port}"),
            FailureKind::Unexpected { port, number, .. } => {
                write!(f, "packet {number} on port {port} was not expected")
            }
            FailureKind::Counter { counter, wanted, found } => {
                write!(f, "counter {counter} should be {wanted}, it is {found}")
            }
        }
    }
}

impl FailureKind {
    /// The packets concerned in hexadecimal, 16 bytes a line, the bytes that differ marked below; empty for what has
    /// none.
    pub fn packets(&self) -> String {
        let mut text = String::new();
        match self {
            FailureKind::Differs(difference) => {
                let marked = difference.bytes();
                let (expected, got) = (&difference.expected, &difference.got);
                for start in (0..expected.length().max(got.len())).step_by(16) {
                    let line = start..start + 16;
                    let wanted = line.clone().map(|index| expected.byte_text(index));
                    let found = line
                        .clone()
                        .map(|index| got.get(index).map_or(String::new(), |b| format!("{b:02x}")));
                    text += &hex_line(&format!("{start:04x} expected"), wanted);
                    text += &hex_line("     got     ", found);
                    if line.clone().any(|index| marked.contains(&index)) {
                        let marks = line
                            .map(|index| if marked.contains(&index) { "^^".into() } else { String::new() });
                        text += &hex_line("             ", marks);
                    }
                }
            }
            FailureKind::Missing { pattern: Some(expected), .. } => {
                for start in (0..expected.length()).step_by(16) {
                    let bytes = (start..start + 16).map(|index| expected.byte_text(index));
                    text += &hex_line(&format!("{start:04x} expected"), bytes);
                }
            }
            FailureKind::Unexpected { bytes, .. } => {
                for (line, chunk) in bytes.chunks(16).enumerate() {
                    let bytes = chunk.iter().map(|byte| format!("{byte:02x}"));
                    text += &hex_line(&format!("{:04x} got     ", line * 16), bytes);
                }
            }
            _ => {}
        }
        text
    }
}

fn hex_line(head: &str, bytes: impl Iterator<Item = String>) -> String {
    let mut line = format!("  {head}");
    for byte in bytes {
        line.push_str(&format!(" {byte:2}"));
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(pattern: &str, got: &[u8]) -> FailureKind {
        let digits = pattern.trim_end_matches('$').chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
        let expected = Pattern::new(digits, pattern.ends_with('$'));
        FailureKind::Differs(Difference { port: 2, number: 1, expected, got: got.to_vec() })
    }

    #[test]
    fn the_differing_byte_is_marked() {
        let kind = difference("0102**04", &[1, 2, 3, 5, 6]);
        assert_eq!(kind.to_string(), "packet 1 on port 2 differs at byte 3");
        assert_eq!(
            kind.packets(),
            "  0000 expected 01 02 ** 04\n       got      01 02 03 05 06\n                         ^^\n"
        );
    }

    #[test]
    fn lengths_are_told() {
        let short = difference("010203", &[1]);
        assert_eq!(short.to_string(), "packet 1 on port 2 differs: it has 1 byte, 3 are expected");
        assert!(short.packets().ends_with("                   ^^ ^^\n"), "{}", short.packets());
        let long = difference("01$", &[1, 2]);
        assert_eq!(long.to_string(), "packet 1 on port 2 differs: it has 2 bytes, exactly 1 is expected");
    }
}
