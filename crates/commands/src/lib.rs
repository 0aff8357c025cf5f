//! The runtime commands of bmv2 as text, one a line: `table_add ingress.t set_port 10.0.0.0/8 => 3`.
//!
//! [`read`] turns a text into commands without allocating for each line. Words are separated by blanks; `#` at the start of a
//! word begins a comment. [`value`] and [`matching`] read single values and match fields; test languages and clients use them
//! too. A text that does not fit is refused with the place in it, the reason and, where one is near, the word that was
//! probably meant ([`Refusal`]).
//!
//! It runs nothing: a client sends commands over a connection, `millrace-control` runs them on a switch.

mod ast;
mod catalogue;
pub mod matching;
mod near;
mod parse;
mod priority;
mod refusal;
pub mod value;

pub use ast::{Command, Line, Parameters, ProfileName, QueuePlace, Rates, Test, Topic, Word};
pub use catalogue::{COMMANDS, usage};
pub use near::nearest;
pub use parse::{MAX_LINE, read};
pub use priority::{bmv2_priority, from_bmv2_priority};
pub use refusal::{MAX_REFUSALS, Refusal, diagnostics};
