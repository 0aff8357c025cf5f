//! Both engines side by side: the same packets have the same outcome, in the same order, with the same counters, and
//! leave the same state.
//!
//! [`Trio`] runs three switches in step: the reference interpreter, compiled code packet by packet, and compiled code
//! that takes whole bursts where they lie. What is compared: packets, their order, bytes and times; drops, their
//! reasons and the places that asked for them; messages and log lines; the counters of ports; and all state: entries with counters, meters and times of
//! their last hits, hits of tables, counters, meters, registers, random numbers.

mod memory;
mod random;
mod source;
mod trio;

pub use memory::memory;
pub use random::{out_of_steps, packets, program, set_up};
pub use source::{compile, compile_path, programs_with_tests};
pub use trio::{Difference, Trio};
