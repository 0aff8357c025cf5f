//! Many switches on few threads: frames of the machine's ports to virtual switches and back, links between these, and the share of
//! the time that each has.
//!
//! ```text
//!  port of the machine --classify--> inbox of a wire --> switch (a driven worker, in its turn) --> outlet of a wire
//!                                        ^                                                            |      |
//!                                        +---------------------- link in memory ----------------------+      v
//!  port of the machine <--deficit round robin in bytes-- exits of all switches <------------------ tags put back
//! ```
//!
//! A **lane** is a thread with ports of the machine and the switches that it runs. A switch is an ordinary
//! [`Worker`](millrace_dataplane::Worker) whose ports are **wires** and whose steps the lane takes; so hot swap, reports, requests and
//! plans of queues go through its [`Control`](millrace_dataplane::Control) as for any other switch. Packets move from
//! inbox to inbox and are not copied, but for copies to several ports.
//!
//! It promises that a switch gets the frames of its routes and of its links and no other; that a switch with packets gets its share of
//! the time of its lane whatever others do ([`TimeShare`]); that a circle of links ends ([`Loss::Hops`]); and that each packet that is
//! lost between two switches, or a switch and a port, is counted with its reason for the switch ([`Counts`]).
//!
//! It never knows how a switch was made, who controls it, or what its program says.

#![forbid(unsafe_code)]

mod agenda;
mod backplane;
mod commands;
mod counts;
mod devices;
mod exit;
mod fair;
mod inbox;
mod lane;
mod link;
mod member;
mod own;
mod physical;
mod quota;
mod rate;
mod routes;
mod signals;
mod tags;
mod time;
mod wire;

pub use backplane::{Backplane, ExitTo, MemberHandle, MemberSetting, Setting, SetupError};
pub use commands::Ended;
pub use counts::{Counts, Loss};
pub use exit::{DEFAULT_PLACES, ExitShare};
pub use link::{ALL_LOST, DEFAULT_HOPS, Emulation, MAX_DELAY_NS, MAX_HOPS};
pub use quota::{Mirror, TimeShare, Traffic, WHOLE};
pub use routes::{Classify, Route};
pub use wire::{Host, NotSent, Wire};

use millrace_drivers::PortStatistics;

/// The number of a switch in its lane.
pub type MemberId = u16;
/// Most lanes of a device.
pub const MAX_LANES: usize = 256;
/// Most switches of a lane.
pub const MAX_MEMBERS: usize = 4096;

/// The ports of the machine.
#[derive(Clone, Debug, Default)]
pub struct PhysicalReport {
    /// What each has counted, by number.
    pub ports: Vec<(u16, PortStatistics)>,
    /// Those that broke.
    pub failures: Vec<PortFailure>,
}

impl PhysicalReport {
    /// What a port has counted, and why it broke if it did.
    pub fn of(&self, number: u16) -> (PortStatistics, Option<String>) {
        let counted = self.ports.iter().find(|(known, _)| *known == number);
        let failure = self.failures.iter().find(|failure| failure.port == number);
        let counted = counted.map(|(_, counted)| *counted).unwrap_or_default();
        (counted, failure.map(|failure| failure.error.clone()))
    }
}

/// A port of the machine broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFailure {
    /// Its number.
    pub port: u16,
    /// Why.
    pub error: String,
}
