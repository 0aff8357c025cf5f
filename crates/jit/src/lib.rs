//! Machine code from the pipeline IR, with Cranelift.
//!
//! A [`Plan`] says which bodies a function runs and what happens between them; [`Compiled`] is that function: a loop over
//! a batch of packets, which it rewrites where they lie. Four steps lead there.
//!
//! 1. The plan becomes one flat graph: bodies behind one another, actions inlined at each application, every failure an
//!    edge.
//! 2. The graph is specialised: a block is cloned for each different thing that is known where it is entered (which
//!    headers there are and where in the packet, the cursor, constants), so that validity and offsets cost nothing on usual
//!    ways. The growth is bounded.
//! 3. From the specialised graph it is read off what the code may change of a packet ([`Compiled::written`]), and what
//!    is still needed of a packet that waits for the lookup of a table.
//! 4. Each node becomes code. Fields are read and written in the packet; slots are variables, and go to the packet's
//!    context only where control leaves the code. Tables are looked up by loads, by calls, or (staged,
//!    [`Options::staged`]) for all packets of the batch at once, whose way then goes on in a second loop.
//!
//! The interpreter says what a program means: for the same packets and state, compiled code leaves the same. It never
//! writes in front of a packet or behind it but as `written` says, never takes a lock, and allocates only where a packet
//! outgrows its buffer. Code memory is never writable and executable at once.

pub mod abi;
mod arrival;
mod batch;
mod codegen;
mod compiled;
mod contexts;
mod flat;
mod kind;
mod known;
mod layout;
mod live;
mod memory;
mod plan;
mod runtime;
pub mod sampling;
mod simplify;
mod site;
mod specialise;
mod stage;
mod state;
mod storage;
mod tables;
mod written;

pub use abi::{Outcome, Place, Shape, Verdict};
pub use batch::{Batch, Outcomes, Results};
pub use compiled::{Compiled, Effort, JitError, Listing, Options, Statistics, listing};
pub use contexts::Contexts;
pub use layout::{Layout, MAX_CONTEXT};
pub use millrace_state::{DigestMessage, Effects};
pub use plan::{Plan, Start, Step};
pub use runtime::Host;
pub use site::Site;
pub use stage::MAX_BATCH;
pub use storage::{SlotPlaces, Storage};
pub use tables::shapes;
pub use written::Written;
