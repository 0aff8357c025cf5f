//! What a device answers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`crate::Hello`].
    Ready {
        /// The name of the device.
        device: String,
    },
    /// To [`crate::Request::List`].
    Switches(Vec<SwitchStatus>),
    /// To [`crate::Request::Stats`].
    Stats(Stats),
    /// To [`crate::Request::Graph`].
    Graph(GraphStatus),
    /// To [`crate::Request::Show`], [`crate::Request::Snapshot`].
    Text(String),
    /// To requests that change something.
    Changed(Changed),
    /// To [`crate::Request::Shadow`].
    Shadow(ShadowStatus),
    /// The request is refused, and nothing has changed unless the message says so.
    Refused(Refused),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Refused {
    /// Its kind.
    pub kind: RefusalKind,
    /// In words.
    pub message: String,
    /// What is wrong with a text, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The line is no request, or of another version.
    Malformed,
    /// Nobody knows the client.
    Unknown,
    /// The client lacks a right.
    Forbidden,
    /// There is no such switch, or link, that the client may see.
    NotFound,
    /// The request cannot be done as it is written.
    Invalid,
    /// The device is not in a state in which it can be done.
    Failed,
    /// A limit is reached.
    Limit,
}

/// Something wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Problem {
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
    /// In words.
    pub message: String,
    /// With the line and a caret, as a terminal shows it without colours.
    pub shown: String,
}

/// What has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Changed {
    /// What was done, in order.
    pub done: Vec<String>,
    /// What stays as it was.
    pub kept: Vec<String>,
    /// Whether it would be done only.
    #[serde(default)]
    pub is_dry_run: bool,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct SwitchStatus {
    /// Its name.
    pub name: String,
    /// Its id in P4Runtime.
    pub device_id: u64,
    /// Its tenant.
    pub tenant: Option<String>,
    /// The name of the program that runs; empty of a silent switch.
    pub program: String,
    /// What runs it: `jit`, `interp` or `rtl`; empty of a silent switch.
    pub engine: String,
    /// Whether it takes packets.
    pub is_running: bool,
    /// The worker that it is on.
    pub worker: usize,
    /// Its ports, each with what it is connected to.
    pub ports: BTreeMap<u32, String>,
    /// Whether a program before it could come back.
    pub can_roll_back: bool,
    /// Whether a candidate runs next to it.
    pub has_shadow: bool,
    /// Why it has not said what runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Stats {
    /// Physical ports; none for a tenant.
    pub physical: Vec<PhysicalStatus>,
    /// Frames that belong to no switch; none for a tenant.
    pub unclassified: Option<u64>,
    /// Switches.
    pub switches: Vec<SwitchStats>,
}

/// A physical port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct PhysicalStatus {
    /// Its name.
    pub name: String,
    /// What it is connected to.
    pub device: String,
    /// Frames that it received.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that it sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that it refused to send.
    pub tx_refused: u64,
    /// Frames that it had no room for.
    pub rx_missed: u64,
    /// Why it is broken, if it is.
    pub failure: Option<String>,
}

/// What a switch has counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct SwitchStats {
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: Vec<PortStatus>,
    /// Packets that it dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets that were lost on their path to it or from it, by reason.
    pub losses: BTreeMap<String, u64>,
    /// Nanoseconds of its worker that it has used.
    pub used_ns: u64,
    /// Requests of P4Runtime that were worked on.
    pub requests: u64,
    /// Requests that its quota refused.
    pub refused_requests: u64,
    /// Messages of its program that came too fast to be told.
    pub lost_notices: u64,
    /// Why it has not said what it has counted: then there are no ports and no drops here, and nothing is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
}

/// A virtual port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct PortStatus {
    /// Its number.
    pub port: u32,
    /// Packets that the switch received.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Packets that it sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
}

/// The topology.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct GraphStatus {
    /// Names of physical ports, each with its device.
    pub physical: Vec<(String, String)>,
    /// Names of switches, each with its program.
    pub switches: Vec<(String, String)>,
    /// What is connected.
    pub links: Vec<LinkStatus>,
}

/// A link between two virtual ports, or a virtual port and a physical port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct LinkStatus {
    /// The switch and the virtual port.
    pub from: (String, u32),
    /// The other switch, with its port; or a physical port, without.
    pub to: (String, Option<u32>),
    /// What is special: the frames that a virtual port claims, or delay, rate and loss of a link.
    pub label: String,
}

/// How a candidate compares with the switch next to which it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct ShadowStatus {
    /// Its program.
    pub program: String,
    /// Packets that both got.
    pub compared: u64,
    /// Of these, those that both sent in the same way.
    pub same: u64,
    /// Those that they did not.
    pub different: u64,
    /// Packets that only the switch got, as the candidate had no time for them.
    pub left_out: u64,
    /// The first differences, each with the traces of both.
    pub differences: Vec<String>,
}
