//! What runs a program's code over packets.
//!
//! ```text
//!             Engines                      one for each switch: which engine a packet is in, and what happens when code is missing
//!            /       \
//!   Interpreted     Code                   both are an Engine: run(stage, packets) -> what each stage said, by packet
//!       |          /    \
//!     interp   stages   bursts             jit: one packet at a time where the switch acts; whole bursts where it need not
//!                  \    /
//!                 Compiler                 makes code that nobody waits for, on one thread, for each switch in its turn
//! ```
//!
//! A program is split into [`Stage`]s at the places where the switch may have to act: copy a packet, queue it, send it back.
//! An [`Engine`] runs one stage over packets and says for each [what the stage said](Ended). All else (which copy goes where,
//! queues, counters) is the caller's, so that every engine has the same meaning there. Compiled code also takes whole bursts
//! through all stages ([`Engines::bursts`]), up to the packets for which the switch has to act.
//!
//! It promises:
//! - **Every packet goes on**: where code cannot be made, the interpreter takes over with the same storage.
//! - **No packet waits for better code**: what would take long is made by a [`Compiler`] while packets pass.
//! - **Switches share a compiler fairly**: one piece of code at a time, and next the switch that was served longest ago.
//!
//! It never decides what becomes of a packet after a stage.

mod background;
mod bursts;
mod code;
mod common;
mod context;
mod described;
mod engines;
mod interpreted;
mod processors;
mod schedule;
mod simulated;
mod stage;
mod time;

pub use background::{Compiler, Hold};
pub use bursts::{Bursts, Ran};
pub use context::Context;
pub use described::{Described, described};
pub use engines::{EngineKind, Engines, Settings, Weights};
pub use interpreted::Interpreted;
pub use stage::{Ended, Engine, EngineError, Stage};
pub use time::shows as shows_time;

pub use millrace_interp::{Event, Observer, Phv, Unobserved, World};
pub use millrace_jit::sampling::{Mark, Sampler, Samples, mark};
pub use millrace_jit::{Batch, DroppedCopy, Effort, Host, Outcome, Results, Statistics, Times};
