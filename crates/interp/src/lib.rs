//! The reference interpreter of the pipeline IR: it defines what a program means.
//!
//! [`Interp::run`] runs one body of a program over one packet. It is written to be read next to the documentation of the
//! IR, one operation a line, never for speed; every other engine is compared with it.
//!
//! It promises:
//! - **Total**: any verified program and any bytes end in an [`Ending`]; nothing panics, nothing runs for ever.
//! - **Deterministic**: the result depends on the program, the packet, the [`State`](millrace_state::State) and the
//!   time given, on nothing else.
//! - **What the program sends out besides the packet** (digests, log lines) is collected in [`Effects`]; what it does is
//!   told to an [`Observer`].
//!
//! It never decides what becomes of a packet after a body: ports, copies and queues are the switch's.

mod context;
mod interp;
mod observe;
mod parser;
mod phv;
mod step;

pub use context::Context;
pub use interp::{Abort, Ending, Interp, World};
pub use millrace_state::{DigestMessage, Effects};
pub use observe::{Event, Observer, Unobserved};
pub use phv::Phv;
