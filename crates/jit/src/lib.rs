//! Machine code from the pipeline IR, with Cranelift.
//!
//! [`Compiled`] is a function that runs a [`Plan`](millrace_midend::Plan) over a batch of packets and rewrites them where they
//! lie. [`millrace_midend`] makes a specialised graph of the plan. Here each node becomes code. Fields are read and written in
//! the packet; slots are variables, and go to the packet's context only where control leaves the code. Tables are looked up by
//! loads, by calls, or (staged, [`Options::staged`]) for all packets of the batch at once, which then go on in a second loop.
//!
//! The interpreter says what a program means: for the same packets and state, compiled code leaves the same. It never
//! writes before or after a packet but as its [footprint](millrace_midend::Footprint) says, never takes a lock, and
//! allocates only where a packet outgrows its buffer. Code memory is never writable and executable at once.

pub mod abi;
mod arrival;
mod batch;
mod codegen;
mod compiled;
mod contexts;
mod layout;
mod limits;
mod memory;
mod objects;
mod prefetch;
mod runtime;
pub mod sampling;
mod site;
mod stage;
pub mod stepping;
mod storage;
mod tables;

pub use abi::{DroppedCopy, Outcome, Shape};
pub use batch::{Batch, Outcomes, Results, Times};
pub use compiled::{Compiled, Effort, HAS_CODE_GENERATOR, JitError, Listing, Options, Statistics, listing};
pub use contexts::Contexts;
pub use layout::{Layout, MAX_CONTEXT};
pub use millrace_frames::MAX_BATCH;
pub use millrace_state::{DigestMessage, Effects};
pub use runtime::Host;
pub use storage::{SlotPlaces, Storage};
pub use tables::shapes;
