//! Why there is no bound.

use std::fmt;

/// Why a program has no bound, with the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoBound {
    /// Bytes that are no instruction that is known.
    Undecodable {
        /// Where in the code.
        at: u32,
    },
    /// A jump whose targets are not known.
    UnknownJump {
        /// Where in the code.
        at: u32,
    },
    /// A loop without a limit.
    Loop {
        /// What the code is of.
        place: String,
    },
    /// Something is called whose cost has no contract.
    Call {
        /// What is called.
        callee: String,
        /// What the code is of.
        place: String,
    },
    /// No way through the code goes with the program: the analysis does not know the code.
    NoPath,
    /// A limit of the analysis.
    TooLarge {
        /// Of what there is too much.
        what: &'static str,
        /// The most that there may be.
        most: usize,
    },
}

impl fmt::Display for NoBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoBound::Undecodable { at } => write!(f, "the machine code at {at:#x} is no known instruction"),
            NoBound::UnknownJump { at } => write!(f, "the jump at {at:#x} may lead anywhere"),
            NoBound::Loop { place } => write!(f, "the loop at {place} has no limit"),
            NoBound::Call { callee, place } => write!(f, "{place} calls {callee}, whose cost has no bound"),
            NoBound::NoPath => f.write_str("no way through the machine code goes with the program"),
            NoBound::TooLarge { what, most } => write!(f, "more than {most} {what}"),
        }
    }
}

impl std::error::Error for NoBound {}
