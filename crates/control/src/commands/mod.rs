//! Running the runtime commands of bmv2 ([`millrace_commands`]) on a switch.
//!
//! Objects are named by their full names or by the end of one, as long as it is the end of only one. Entry handles are those of
//! bmv2: they count from 0 for each table, entries in the source of the program first, and a handle is used again after its
//! entry is gone. Of entries that match at once, the smallest priority wins, as in bmv2.
//!
//! A refused command changes nothing.

mod dump;
mod execute;
mod multicast;
mod packet_log;
mod profiles;
mod stateful;
mod story;
mod tables;

pub(crate) use execute::refused;
pub use execute::{Executor, Reply};
pub use packet_log::{Importance, LogLine, packet_log};
pub(crate) use stateful::meter_command;
pub use story::number_trace;
