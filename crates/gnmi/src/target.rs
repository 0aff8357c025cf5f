//! What the service shows, and what it has changed.

use std::sync::Arc;
use tokio::sync::watch;
use tonic::Status;

/// A switch with interfaces.
#[tonic::async_trait]
pub trait Target: Send + Sync + 'static {
    /// All interfaces as they are now, or were a few milliseconds ago.
    async fn snapshot(&self) -> Result<Arc<Snapshot>, Status>;

    /// Makes all changes, of interfaces that there are.
    async fn apply(&self, changes: Vec<Change>) -> Result<(), Status>;

    /// Changes its value whenever something other than a counter has changed.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// A switch at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The id that P4Runtime has for the device.
    pub device_id: u64,
    /// The version of the software.
    pub version: String,
    /// The interfaces, by port; no two have one name.
    pub interfaces: Vec<Interface>,
}

/// An interface: a port of the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The number of the port.
    pub port: u32,
    /// Whether it may be used, as it was configured.
    pub is_enabled: bool,
    /// Whether it can be used: enabled, and its link is up.
    pub is_up: bool,
    /// When that changed last, in nanoseconds since the epoch.
    pub last_change_ns: u64,
    /// What somebody says of it.
    pub health: Health,
    /// Its address, if it has one.
    pub mac: Option<[u8; 6]>,
    /// Its speed in Mbit/s, if it has one.
    pub speed_mbps: Option<u64>,
    /// What it has counted.
    pub counters: Counters,
}

/// The counters of an interface, since the switch was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received.
    pub in_pkts: u64,
    /// Their bytes.
    pub in_octets: u64,
    /// Frames received that went nowhere.
    pub in_discards: u64,
    /// Frames sent.
    pub out_pkts: u64,
    /// Their bytes.
    pub out_octets: u64,
    /// Frames for it that were dropped.
    pub out_discards: u64,
    /// The frames received by kind; none where they are not looked at.
    pub in_kinds: Option<Kinds>,
    /// The frames sent by kind.
    pub out_kinds: Option<Kinds>,
    /// Frames received that were wrong or lost.
    pub in_errors: u64,
    /// Frames with a wrong check sequence, which are among these.
    pub in_fcs_errors: u64,
    /// Frames that could not be sent.
    pub out_errors: u64,
}

/// Frames of one direction by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// To one station.
    pub unicast: u64,
    /// To a group.
    pub multicast: u64,
    /// To all.
    pub broadcast: u64,
    /// By size with the check sequence: below 64, 64, up to 127, 255, 511, 1023, 1518, and above.
    pub sizes: [u64; 8],
}

/// What an operator says of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Nothing.
    #[default]
    Unknown,
    /// It is fine.
    Good,
    /// It is not.
    Bad,
}

/// A change of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The number of the port.
    pub port: u32,
    /// To what.
    pub setting: Setting,
}

/// What can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Whether it may be used.
    Enabled(bool),
    /// What is said of it.
    Health(Health),
}

impl Health {
    /// As OpenConfig writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Health::Unknown => "UNKNOWN",
            Health::Good => "GOOD",
            Health::Bad => "BAD",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Health> {
        [Health::Unknown, Health::Good, Health::Bad].into_iter().find(|health| health.name() == name)
    }
}
