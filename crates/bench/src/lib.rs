//! How fast is a switch? Frames from memory, over and over, and a clock.
//!
//! [`measure`] runs switches over a [`Trace`](millrace_drivers::null::Trace) with the null driver: first one pass whose
//! output is counted and summed up byte by byte, then a warm-up, then rounds of which each gives a rate, then another
//! checked pass. Each switch has a thread of its own and its share of the trace.
//!
//! It promises:
//! - **The work is real**: every frame is switched in every pass, each time from its original bytes, and the counts and
//!   the digest of a pass are reported next to the rate.
//! - **The rate is by the CPU time of the forwarding threads**, so that other load on the machine does not count; the
//!   rate by the clock on the wall is reported too.
//! - **The spread is reported**, not only the best or the middle.
//!
//! It is not needed to run a switch, and it never knows what a program does.

mod calibrate;
mod churn;
mod clock;
pub mod cpus;
mod measure;
mod report;
mod worker;

pub use calibrate::{Figures, calibrate};
pub use measure::{BenchError, Config, MAX_CORES, MAX_QUEUES, MAX_ROUNDS, measure};
pub use report::{ChurnReport, Profile, Rate, Report, Spread, TableReport};
