//! Plans of ports as text, in the words of Linux `tc`.
//!
//! A text has sections that begin with a line `port`, and in each the lines that `tc -batch` would have for such a tree: `qdisc add` for
//! each discipline and queue, `class add` for what a class of `drr` or `wfq` gets. The user's page `docs/traffic.md` has all words.
//!
//! ```
//! let text = "port 1 rate 1gbit
//!     qdisc add root handle 1: prio bands 2
//!     qdisc add parent 1:1 handle 10: pfifo limit 100 classes 6-7
//!     qdisc add parent 1:2 handle 20: fq flows 64 quantum 1600 limit 100";
//! let plans = millrace_traffic::words::parse(text).unwrap();
//! assert_eq!(plans[0].plan.queues(), 65);
//! let error = millrace_traffic::words::parse("port 1\nqdisc add root handle 1: tbf rate 1gbit").unwrap_err();
//! assert_eq!(error.to_string(), "line 2, column 26: tbf needs a rate and a burst");
//! ```
//!
//! What is printed is read as the plan that it was printed from, if its handles are those of words: a node's without a class, and each
//! only once. Time and memory of reading are in proportion to the text, which has [`MAX_TEXT`] bytes at most.

mod assemble;
mod edit;
mod handle;
mod print;
mod quantity;
mod reader;
mod statement;

use crate::plan::Plan;

pub use edit::{EditError, edited};
pub use reader::{MAX_TEXT, WordsError};

/// Most ports of a text.
pub const MAX_PORTS: usize = 65_536;

/// A port and its plan. It is shown as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// Number of the port.
    pub port: u32,
    /// Its plan.
    pub plan: Plan,
}

/// Reads the plans of ports, in the order of the text. The first error ends it.
pub fn parse(text: &str) -> Result<Vec<PortPlan>, WordsError> {
    assemble::assemble(reader::lines(text)?)
}
