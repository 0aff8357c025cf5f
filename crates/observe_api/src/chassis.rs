//! What a device with many switches is like at one moment, as JSON has it.

use crate::status::{Process, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A device with many switches at one moment, as far as whoever asks may see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChassisStatus {
    /// The version of this software.
    pub version: String,
    /// The name of the device.
    pub device: String,
    /// Its physical ports, for the operator.
    #[serde(default)]
    pub physical: Vec<PhysicalStatus>,
    /// Frames of physical ports that nobody claims, for the operator.
    #[serde(default)]
    pub unclassified: Option<u64>,
    /// The switches, by name.
    pub switches: BTreeMap<String, Status>,
    /// What is counted of each switch outside of it.
    #[serde(default)]
    pub outside: BTreeMap<String, OutsideStatus>,
    /// Switches that have not answered in time: they are not among the others.
    #[serde(default)]
    pub silent: Vec<String>,
    /// The process of the device, for the operator.
    #[serde(default)]
    pub process: Option<Process>,
}

/// A physical port. Its counters count from when the device opened it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalStatus {
    /// Its name.
    pub name: String,
    /// What it is connected to, as the file of the device has it: `packet:eth0`.
    pub spec: String,
    /// Frames taken from it.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that arrived and that nobody fetched in time.
    pub rx_missed: u64,
    /// Frames that arrived and were longer than a frame can be, or damaged.
    pub rx_errors: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that it did not take.
    pub tx_refused: u64,
    /// Why it works no more.
    #[serde(default)]
    pub failure: Option<String>,
}

/// What is counted of a switch outside of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideStatus {
    /// Nanoseconds of its worker that it has used.
    pub used_ns: u64,
    /// Packets lost between the switch and a port or another switch, by reason.
    pub losses: BTreeMap<String, u64>,
}
