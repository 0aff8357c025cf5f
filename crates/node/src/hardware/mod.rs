//! Function blocks in hardware: a design for each device of a node, of all its blocks that are in hardware, in simulation.
//!
//! ```text
//!   graph -- frames with facts --> host link --> HardwareDevice: streams in -> blocks -> streams out
//!   graph <-- what left ------------------------/
//! ```
//!
//! Connections between blocks of the design are streams within it. Connections to blocks in software are *paths* over the host link: a
//! way in for each input, a way out for each output. What comes from queues and schedulers is asked for by software; all else leaves by
//! itself.

mod control;
mod cycles;
mod device;
mod driver;
mod far;
mod mac;
mod modules;
mod queue;
#[cfg(test)]
mod tests;
mod top;
mod wires;

pub use device::{HardwareDevice, MappedDevice};
pub(crate) use far::Far;
pub use top::{NoHardware, Top};
