//! What the management of a network asks a switch for: its mode, its configuration, its virtual links.

use serde::{Deserialize, Serialize};

/// The mode of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeStatus {
    /// `init`, `operational`, `maintenance`, `passive`, `quiet`.
    pub mode: String,
    /// The mode before it.
    pub previous: String,
    /// When it began, in nanoseconds since 1970.
    pub since_ns: u64,
    /// How often the mode has changed.
    pub changes: u64,
}

/// The configuration of a switch, as whoever made it names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationStatus {
    /// Its part number.
    #[serde(default)]
    pub part_number: Option<String>,
    /// Its CRC-32.
    #[serde(default)]
    pub crc: Option<u32>,
    /// Why it is not valid.
    #[serde(default)]
    pub fault: Option<String>,
}

/// What happened to those who ask the switch's own end system, which answers in virtual links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnEndSystemStatus {
    /// Frames that came to it.
    pub frames: u64,
    /// Those of them that it discarded, second copies included.
    pub discarded: u64,
    /// Echo requests with a reply.
    pub echoes: u64,
    /// Requests of SNMP that were given to the agent.
    pub requests: u64,
    /// Answers that were sent.
    pub answers: u64,
    /// Echo requests and requests of whom no virtual link leads to.
    pub no_way: u64,
    /// Requests that came while as many as may wait did.
    pub busy: u64,
    /// Replies and answers that the queue of their virtual link had no room for.
    pub refused: u64,
}

/// What a program of an AFDX network counts of its ports and virtual links. What it does not count is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfdxStatus {
    /// The ports, by number.
    pub ports: Vec<AfdxPortStatus>,
    /// The virtual links, by port and number.
    pub virtual_links: Vec<VirtualLinkStatus>,
}

/// What a program has discarded of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfdxPortStatus {
    /// The port.
    pub port: u32,
    /// Frames that came by it and were discarded because they are shorter or longer than a frame of Ethernet may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_length: Option<u64>,
    /// Because the destination address has not the prefix of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_prefix: Option<u64>,
    /// Because there is no such virtual link, or it comes by another port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_vl: Option<u64>,
    /// Frames for it that had been in the switch for longer than they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aged: Option<u64>,
}

/// A virtual link at the port that it comes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualLinkStatus {
    /// The port.
    pub port: u32,
    /// Its number.
    pub vl: u32,
    /// Frames that came, also those that were discarded then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Frames shorter than it may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_short: Option<u64>,
    /// Frames longer than it may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_long: Option<u64>,
    /// Frames that came sooner or were more than its contract allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policed: Option<u64>,
    /// Frames that the mode of the switch did not let pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u64>,
    /// Frames that had been in the switch for longer than they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aged: Option<u64>,
}
