//! Function blocks in hardware: a design for each device of a node, of all its blocks that are in hardware, in simulation.
//!
//! ```text
//!   graph -- frames with facts --> host link --> HardwareDevice: streams in -> blocks -> streams out
//!   graph <-- what left ------------------------/
//! ```
//!
//! Connections between blocks of the design are streams within it. Connections to blocks in software are *paths* over the host link: a
//! way in for each input, a way out for each output. What comes from queues and schedulers is asked for by software; all else leaves by
//! itself. A program that is part of the design has a bus of its own next to that of the registers of all other blocks.

mod control;
mod cycles;
mod device;
mod driver;
mod facts;
mod far;
mod mac;
mod modules;
mod programs;
mod queue;
mod tables;
#[cfg(test)]
mod tests;
mod top;
mod wires;

pub use device::{HardwareDevice, MappedDevice};
pub(crate) use driver::no_program;
pub(crate) use far::Far;
pub use programs::{NoHardware, Part, Programs};
pub use top::Top;
