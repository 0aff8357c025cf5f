//! The life cycle of a running switch: from the text or the image that somebody brings to a program that forwards, from one
//! program to the next, and to everybody who has to hear of it.
//!
//! ```text
//!  bytes of a program --compile--> Pipeline --Making--> Candidate --Programs::start--> it forwards
//!                                                                        |
//!                                             the P4Runtime server, if there is one, goes on with it
//!
//!  Instance: worker --digests, failures--> listeners <--links that come up and go down-- kernel
//! ```
//!
//! It promises that one program is made at a time for a switch, whoever brings it, and only while somebody waits for it; that
//! packets go on until the next program is ready; and that a program that cannot take over leaves the one that runs alone.
//!
//! It never knows what a controller speaks: servers bring programs as bytes and take errors with a reason ([`Why`]).

mod carried;
mod chains;
mod compile;
mod error;
mod instance;
mod making;
mod modes;
mod pipeline;
mod programs;
mod turns;

pub use carried::add_carried;
pub use chains::check_chains;
pub use compile::compile;
pub use error::{ProgramError, Why};
pub use instance::{Instance, Listener, tell_of};
pub use making::Making;
pub use modes::{Configuration, ModeError, ModeState, Modes};
pub use pipeline::{Pipeline, empty_program};
pub use programs::{Candidate, MAX_ORDERS, Order, OrderAnswer, Orders, Programs};
pub use turns::{MAX_WAITING_PROGRAMS, Turn, Turns};
