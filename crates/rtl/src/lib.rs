//! From a program to hardware: each stage becomes a pipeline that takes a frame in every cycle.
//!
//! ```text
//!  program -> plan -> control-flow graph         midend
//!                        | convert               branches become conditions, joins become choices, loops are repeated
//!                      Dataflow                  one graph of values, accesses to tables and objects
//!                        | schedule              each value has a cycle
//!                        | emit                  registers where a value is needed later
//!                      Design                    netlist: verified, simulated, printed as SystemVerilog
//! ```
//!
//! It promises:
//! - **Equal or refused**: for each frame a pipeline gives what the interpreter gives, to the last message and the last bit of
//!   state; what it cannot do is a [`Refusal`] that names the construct, its place in the source, and the limit.
//! - **Bounded**: [`limits`] holds for every program, however it was written.
//! - **One latency**: every frame takes as many cycles as every other.
//!
//! Tables and objects are units outside of a pipeline, at named ports ([`Unit`]), most of them in hardware, with a port of software
//! ([`SoftwarePort`]). In simulation these are kept equal to the objects of the running program ([`Objects`]), which take the place of
//! the others.
//!
//! As an engine this crate never decides what becomes of a frame between stages; a whole [`device`] has a traffic manager of its own.

mod area;
mod assemble;
pub mod backplane;
mod build_files;
mod convert;
pub mod device;
mod driver;
mod emit;
#[cfg(test)]
mod evaluate;
mod exclusive;
mod frame_bits;
mod graph;
mod groups;
mod hardware;
pub mod limits;
pub mod map;
mod model;
mod objects;
mod pair;
mod parts;
pub mod phy;
mod pins;
mod place;
mod refusal;
mod report;
mod running;
mod schedule;
mod shared;
mod simulate;
mod slots;
mod software_port;
mod stage;
mod streams;
mod table_memories;
pub mod tables;
mod target;
mod units;
mod verilated;

#[cfg(test)]
mod tests;

pub use area::AreaReport;
pub use build_files::{BuildFile, build_chassis, build_files, build_wrapper};
pub use device::{Device, DeviceOptions};
pub use driver::{Driver, DriverError, SoftwareAccess};
pub use groups::{GROUPS, Groups, NODES, SESSIONS, Session, Sessions, TooMany};
pub use hardware::{Capacities, Hardware, Options, Part, without_unit};
pub use model::Sim;
pub use pair::Pair;
pub use refusal::{Construct, Refusal};
pub use report::{
    AccessReport, ObjectReport, OutsideReport, Report, StageReport, StartReport, TableReport, line_rate,
};
pub use running::{Frame, Running, Said};
pub use software_port::{PortKind, READ_LATENCY, SoftwarePort};
pub use stage::{Input, LookupAnswer, Output, Rest, Unit};
pub use target::Target;
pub use units::Objects;
pub use verilated::Effort;
