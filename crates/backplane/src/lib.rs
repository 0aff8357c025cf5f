//! Many switches on few threads: frames of the machine's ports to virtual switches and back, links between these, and the share of
//! the time that each has.
mod agenda;
mod backplane;
mod commands;
mod counts;
mod exit;
mod inbox;
mod lane;
mod link;
mod member;
mod physical;
mod quota;
mod rate;
mod routes;
mod tags;
mod time;
mod wire;

pub use backplane::{Backplane, ExitTo, MemberHandle, MemberSetting, Setting, SetupError};
pub use commands::Ended;
pub use counts::{Counts, Loss};
pub use exit::{DEFAULT_PLACES, ExitShare};
pub use link::{ALL_LOST, DEFAULT_HOPS, Emulation, MAX_DELAY_NS, MAX_HOPS};
pub use quota::{TimeShare, Traffic, WHOLE};
pub use routes::Route;
pub use wire::Wire;

use millrace_drivers::{PortError, PortStatistics};

/// The number of a switch in its lane.
pub type MemberId = u16;
/// Most lanes of a device.
pub const MAX_LANES: usize = 64;
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

/// A port of the machine broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFailure {
    /// Its number.
    pub port: u16,
    /// Why.
    pub error: String,
}

impl PortFailure {
    pub(crate) fn new(port: u16, error: &PortError) -> PortFailure {
        PortFailure { port, error: error.to_string() }
    }
}
