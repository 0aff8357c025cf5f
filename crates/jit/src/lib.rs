//! Machine code from the pipeline IR, with Cranelift.

pub mod abi;
mod batch;
mod codegen;
mod compiled;
mod contexts;
mod flat;
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
mod tables;
mod written;

pub use abi::{Packet, Shape, Verdict};
pub use batch::{Batch, PacketList, Results};
pub use compiled::{Compiled, Effort, JitError, Listing, Options, Statistics, listing};
pub use contexts::Contexts;
pub use layout::{Layout, MAX_CONTEXT};
pub use plan::{Plan, Start, Step};
pub use runtime::{DigestMessage, Effects, Host};
pub use site::Site;
pub use stage::MAX_BATCH;
pub use tables::shapes;
pub use written::Written;
