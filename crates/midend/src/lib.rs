//! The questions that every consumer of a program asks first: code generators, reports, hardware.
//!
//! A [`Plan`] lists what happens to a packet: bodies, and the contract with the switch between them. Four steps lead from there
//! to what a back end needs, and none of them knows a target.
//!
//! 1. [`cfg`](mod@cfg): the plan becomes one control-flow graph. Actions are inlined at each application, every failure is an edge.
//! 2. [`specialise`](mod@specialise): a block of the graph is cloned for each different set of [`facts`] that it is entered with (which headers
//!    there are and where in the packet, the cursor, constants), so that validity and offsets need no code on usual paths. The
//!    growth is bounded.
//! 3. [`liveness`] and [`footprint`](mod@footprint): what is still needed of a packet at each node, and which bytes of a packet may change.
//! 4. [`schedule`] and [`order`]: which tables may be looked up for a whole batch at once. [`copies`]: which part of egress copies
//!    of a packet need to pass one by one.
//!
//! What a code generator makes of that it tells as [`machine::MachineCode`].
//!
//! Everything is bounded by [`budget`]: a program beyond a limit gets a [`Refusal`] with the limit's name.
//!
//! Plans, both graphs and what is live have a text form (`to_text`), which docs/dev/ir.md describes.
//!
//! `examples/statistics.rs` is a whole reader of these results: it prints paths, table applications and the bytes that a
//! program touches.

pub mod budget;
pub mod cfg;
mod constants;
pub mod copies;
pub mod deparse;
pub mod facts;
pub mod footprint;
pub mod liveness;
pub mod machine;
pub mod order;
mod plan;
mod precision;
pub mod schedule;
mod simplify;
mod site;
pub mod specialise;
mod text;
mod verdict;

pub use budget::{Cancel, CancelOnDrop, Limit, Meter, Refusal, limbs, type_width};
pub use constants::Constants;
pub use footprint::{Footprint, HEADROOM};
pub use plan::{Plan, Start, Step};
pub use simplify::simplify;
pub use site::Site;
pub use verdict::Verdict;
