//! Function blocks in software.
//!
//! Most of them *pass*: a frame goes in and what becomes of it comes out at once. Queues keep frames, and are *asked* for them: by a
//! scheduler, a MAC, or the node, which hands on what nobody else asks for. What a block counts and what can be set are its
//! [`Register`]s.

mod demultiplexer;
mod mac;
mod manager;
mod program;
mod queue;
mod register;
mod scheduler;
mod selector;
mod shared;
mod tcam;

pub use mac::{Mac, Rmon};
pub use manager::Manager;
pub use program::{Load, NoProgram, Program, compile};
pub use queue::Queue;
pub use register::{Refusal, Register, registers};
pub use scheduler::Scheduler;
pub use selector::Selector;
pub use shared::SharedCounts;
pub use tcam::Tcam;

pub(crate) use demultiplexer::demultiplex;
pub(crate) use manager::Answerer;
pub(crate) use program::{command, load_entries};
pub(crate) use register::{ENTRY_START, ENTRY_WORDS, MAC_ERRORS, RMON, half};
pub(crate) use shared::Place;

use crate::interface::Item;

/// What leaves a block: the number of the output and the frame.
pub(crate) type Out = Vec<(usize, Item)>;
