//! The host link: what carries registers, frames and messages between programs on a processor and a hardware device.
//!
//! ```text
//!  client ----+                            +-- Mapped       registers of an FPGA in the memory of this machine (UIO)
//!  client ----+-- TCP --> Server --> Device
//!  client ----+                            +-- Simulated    the device as a netlist, cycle by cycle
//! ```
//!
//! The [`Server`] owns the device: one thread asks it, in the order in which requests come, so that a [`Device`] needs no lock, and a
//! batch of writes is not interleaved with that of another client. Connections are threads of their own.
//!
//! - **Registers** are words of 32 bits at byte addresses that are multiples of 4. A request is answered in the order of its connection.
//! - **Frames** go to and from ports of the device. One client at a time has them, the one that asked first.
//! - **Messages** are what the device has to say by itself, such as digests: a kind and bytes, to the client that has the frames.
//!
//! It promises:
//! - **Bounded**: each record, queue and wait has a limit of [`limits`]; a client that does not read loses frames and messages, which are
//!   counted and told ([`ToHost::Lost`]), and holds nobody up.
//! - **A link that is cut loses only frames that are on it**: requests whose answers did not come are refused at the client as
//!   [`LinkError::Gone`], and the server goes on with all other clients.
//!
//! It never knows what a register is for: that is in the register map that comes with a design. [`Client`] is a way to reach registers for
//! [`millrace_rtl::map::RegisterDevice`].

mod client;
mod device;
pub mod limits;
mod mapped;
mod outbox;
mod place;
mod remote;
mod server;
mod simulated;
mod wire;

pub use client::{Client, LinkError};
pub use device::{Counts, Device, Event, Fault, Shape};
pub use mapped::Mapped;
pub use place::Place;
pub use remote::Remote;
pub use server::Server;
pub use simulated::Simulated;
pub use wire::{Refused, ToDevice, ToHost, WireError};
