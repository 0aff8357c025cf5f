//! The runtime commands of bmv2, one a line: `table_add ingress.t set_port 10.0.0.0/8 => 3`.
//!
//! [`read`] turns a text into commands without allocating for each line; [`Executor`] runs them on a
//! switch. Words are separated by blanks; `#` at the start of a word begins a comment. Objects are named by their full
//! names or by the end of one, as long as it is the end of only one. Entry handles are those of bmv2: they count from 0
//! for each table, entries in the source of the program first, and a handle is used again after its entry is gone. Of
//! entries that match at once, the smallest priority wins, as in bmv2.
//!
//! A refused command changes nothing.

mod ast;
mod catalogue;
mod dump;
mod execute;
mod multicast;
mod parse;
mod profiles;
mod stateful;
mod story;
mod tables;

pub use ast::{Command, Line, ProfileName, QueuePlace, Rates, Topic, Word};
pub use catalogue::{COMMANDS, usage};
pub(crate) use execute::refused;
pub use execute::{Executor, Reply};
pub use parse::{MAX_LINE, read};
pub(crate) use stateful::rates_words;
pub use story::number_trace;
