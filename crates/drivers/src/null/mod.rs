//! The `null` driver: a software loopback. Frames come from a capture in memory, over and over, and what is sent is
//! counted and gone. It shows what a switch does when no cable, card or kernel is in its way.
//!
//! - [`Trace`] is the capture.
//! - [`Replay`] gives it out in bursts: in place (no copy; each pass shows the original bytes, and putting them back is
//!   part of its work) or with one copy of each frame. Several can share a trace, as queues of one card do.
//! - [`Sink`] counts what comes out, and sums it up so that its bytes can be checked.
//! - [`NullDevice`] is the same as an ordinary device, for `millrace run`, and [`NullPort`] a queue pair of it.

mod port;
mod replay;
mod sink;
mod trace;

pub use port::{Loopback, NullDevice, NullPort};
pub use replay::{RING_BUFFERS, Replay, Share};
pub use sink::{Sink, Taken, frame_digest};
pub use trace::{MAX_TRACE_BYTES, MAX_TRACE_FRAMES, Trace, TraceTooLarge};
