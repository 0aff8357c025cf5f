//! What a switch is like at one moment, as JSON has it.

use crate::{AfdxStatus, ConfigurationStatus, ModeStatus, OwnEndSystemStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A running switch at one moment. Counters count from when it started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of this software.
    pub version: String,
    /// The name of the program that runs.
    pub program: String,
    /// What runs it: `jit` or `interp`.
    pub engine: String,
    /// The time of the switch, in nanoseconds since it started.
    pub now_ns: u64,
    /// The ports, by number.
    pub ports: Vec<PortStatus>,
    /// Packets and copies that were dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// The places of the program that asked for drops, since it runs.
    #[serde(default)]
    pub drop_sites: Vec<DropSiteStatus>,
    /// The tables, in the order of the program.
    pub tables: Vec<TableStatus>,
    /// The queues that there are: ports without one send at once.
    pub queues: Vec<QueueStatus>,
    /// The ports with a plan, and their queues.
    #[serde(default)]
    pub plans: Vec<PlanStatus>,
    /// Packets of each burst.
    pub bursts: Distribution,
    /// Nanoseconds from the arrival of a packet until it was on its way out, of a sample.
    pub latency_ns: Distribution,
    /// Digests and lines of the program's log that came too fast for whoever takes them.
    pub lost_notices: u64,
    /// The threads that forward, the leading one first.
    #[serde(default)]
    pub workers: Vec<WorkerStatus>,
    /// The captures that are on.
    pub captures: Vec<CaptureStatus>,
    /// The steps of the chains of ports.
    #[serde(default)]
    pub inputs: Vec<StepStatus>,
    /// The plugins that programs call.
    #[serde(default)]
    pub plugins: Vec<PluginStatus>,
    /// The process of the switch.
    pub process: Process,
    /// The mode of the switch.
    #[serde(default)]
    pub mode: ModeStatus,
    /// The configuration that it was given.
    #[serde(default)]
    pub configuration: ConfigurationStatus,
    /// What a program of an AFDX network counts, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub afdx: Option<AfdxStatus>,
    /// What the switch's own end system counted, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_end_system: Option<OwnEndSystemStatus>,
}

/// A plugin that programs call. Counts are of whatever was loaded under its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginStatus {
    /// Its name.
    pub name: String,
    /// `on`, `off`, `failed` (too often) or `missing` (nothing was loaded).
    pub state: String,
    /// How often something was loaded.
    pub loads: u64,
    /// Failures of what is loaded now.
    pub failures: u64,
    /// The workers that call it.
    pub callers: u64,
    /// Calls.
    pub calls: u64,
    /// Fuel of its calls, about one unit an instruction.
    pub fuel: u64,
    /// Time of its calls in nanoseconds, from one in 64 of them.
    pub nanoseconds: u64,
    /// Calls that trapped.
    pub traps: u64,
    /// Calls that used their fuel up.
    pub over_budget: u64,
    /// Packets that came while it was missing or off.
    pub unanswered: u64,
    /// Packets that it, or its policy, had dropped.
    pub drops: u64,
    /// Payloads that it has changed.
    pub rewrites: u64,
    /// Packets of its own.
    pub replies: u64,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its number.
    pub port: u32,
    /// Whether packets can come and go: its driver works, its input has not ended, and its link is up where it has one.
    pub up: bool,
    /// Whether it was not switched off.
    #[serde(default = "is_so")]
    pub enabled: bool,
    /// The name of its interface; none where it is no interface.
    #[serde(default)]
    pub interface: Option<String>,
    /// What it is connected to, as it was given to the switch: `packet:eth0`, `pcap:in.pcap`; none of the port of the CPU.
    #[serde(default)]
    pub spec: Option<String>,
    /// The hardware address of the interface, `02:00:00:00:00:01`.
    #[serde(default)]
    pub mac: Option<String>,
    /// The speed of its link in millions of bits per second, where the interface knows one.
    #[serde(default)]
    pub speed_mbps: Option<u32>,
    /// The longest payload of a frame that the interface takes, in bytes.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Packets taken from it.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Packets that came from it and were dropped before they had a port to leave by.
    pub rx_drops: u64,
    /// Packets that arrived and that nobody fetched in time.
    pub rx_missed: u64,
    /// Packets that arrived and were longer than a frame can be, or damaged.
    pub rx_errors: u64,
    /// Packets that the input holds only the beginning of.
    pub rx_truncated: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets and copies for it that were dropped.
    pub tx_drops: u64,
    /// Packets that the link did not take; they are among the drops.
    pub tx_refused: u64,
    /// Packets that came to the interface and are not for this port; they are not among those taken.
    #[serde(default)]
    pub rx_filtered: u64,
    /// The packets that came, by kind, where the port looks at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_kinds: Option<KindsStatus>,
    /// The packets sent, by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_kinds: Option<KindsStatus>,
    /// What the device of its interface has counted since the switch has it, whoever takes and sends the frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceStatus>,
}

/// What a status of an older switch does not say.
fn is_so() -> bool {
    true
}

/// Frames of one direction by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindsStatus {
    /// To the address of one station.
    pub unicast: u64,
    /// To the address of a group.
    pub multicast: u64,
    /// To the broadcast address.
    pub broadcast: u64,
    /// By size with the check sequence, as RFC 2819 has it, `65-127`; shorter ones are `0-63`, longer ones `1519-max`.
    pub sizes: BTreeMap<String, u64>,
}

/// What a device has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Received.
    pub rx: DeviceDirection,
    /// Sent.
    pub tx: DeviceDirection,
    /// Frames received that are wrong or lost, by kind: `crc`, `alignment`, `length`, `overrun`, `missed`.
    pub rx_errors: BTreeMap<String, u64>,
}

/// What a device has counted in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDirection {
    /// Good frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that were wrong.
    pub errors: u64,
    /// Frames that were dropped.
    pub dropped: u64,
    /// Frames by size, where the device counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<BTreeMap<String, u64>>,
}

/// A step of the chain of a port, before or after the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStatus {
    /// The port.
    pub port: u32,
    /// `input` or `output`.
    pub direction: String,
    /// Its number in the chain, from 1.
    pub step: u64,
    /// The name of the plugin.
    pub plugin: String,
    /// Packets that came to it.
    pub packets: u64,
    /// Those that went on.
    pub passed: u64,
    /// Those that it counted in flows.
    pub accounted: u64,
    /// Those that it dropped.
    pub dropped: u64,
    /// Its flows, if it has an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowStatus>,
}

/// The flows of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Where they are told.
    pub file: String,
    /// Flows that are in the table now.
    pub flows: u64,
    /// Records that are in the file.
    pub records: u64,
    /// Records that are not, because they came too fast or the file cannot be written.
    pub lost: u64,
    /// Why the file is not written any more.
    #[serde(default)]
    pub error: Option<String>,
}

/// A place of the program that asked for packets to be dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropSiteStatus {
    /// The source file, without its folder, and the line: `router.p4:61`; empty when they are not known.
    pub place: String,
    /// The action, control or parser state.
    pub block: String,
    /// What is written there: `mark_to_drop`.
    pub request: String,
    /// The line that calls the action or applies the control, where another block does; else 0.
    pub called_at: u32,
    /// The tables that run the action.
    pub tables: Vec<String>,
    /// Packets and copies.
    pub packets: u64,
}

impl DropSiteStatus {
    /// Whether another one tells of the same place.
    pub fn is_same(&self, other: &DropSiteStatus) -> bool {
        let place = |site: &DropSiteStatus| {
            (
                site.place.clone(),
                site.block.clone(),
                site.request.clone(),
                site.called_at,
                site.tables.clone(),
            )
        };
        place(self) == place(other)
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableStatus {
    /// Its name in the control plane.
    pub table: String,
    /// Entries that it has.
    pub entries: u64,
    /// Entries that it has room for.
    pub max_entries: u64,
    /// Lookups in which an entry matched; none where they are not counted.
    pub hits: Option<u64>,
    /// Lookups in which none did.
    pub misses: Option<u64>,
    /// Memory that it takes.
    pub bytes: u64,
}

/// A queue of the traffic manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// The port that its packets leave by.
    pub port: u32,
    /// Its class of service.
    pub priority: u8,
    /// Packets that wait.
    pub packets: u32,
    /// Packets that it holds at most.
    pub max_packets: u32,
    /// Packets that it had no room for.
    pub drops: u64,
}

/// How a port shares its workers with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntakeStatus {
    /// The port.
    pub port: u32,
    /// Its class: those of a higher one go first.
    pub class: u8,
    /// Its share among the ports of its class, in bytes a round.
    pub quantum: u32,
}

/// How a port serves what leaves by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStatus {
    /// The port.
    pub port: u32,
    /// Its plan, in words as `tc` has them.
    pub plan: String,
    /// Its queues.
    pub queues: Vec<PlanQueueStatus>,
}

/// A queue of a plan, or all copies of it together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanQueueStatus {
    /// Its name in the plan, as `10:` or `10:2`.
    pub handle: String,
    /// Packets that wait.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that left.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that were marked for congestion.
    pub marked: u64,
    /// Packets that were dropped, by reason; those without any are left out.
    pub drops: BTreeMap<String, u64>,
    /// Most packets that have waited together.
    pub largest_packets: u64,
    /// Most bytes that have waited together.
    pub largest_bytes: u64,
    /// The sum of the times that packets which left have waited, in nanoseconds.
    pub delay_ns: u64,
    /// The longest of these times.
    pub largest_delay_ns: u64,
}

/// A thread that forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The processor that it runs on alone; none: where the system has it run.
    pub processor: Option<u32>,
    /// Packets that it has switched.
    pub rx_packets: u64,
    /// The queue pairs of devices that it has; it reaches other ports through the worker that has one of theirs.
    pub queue_pairs: Vec<QueuePairStatus>,
}

/// A queue pair of the device of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePairStatus {
    /// The port.
    pub port: u32,
    /// The number of the queue pair, from 0.
    pub queue: u32,
}

/// How often numbers of each size came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// How many were up to 1, above that up to 2, above that up to 4, and so on; the last ones are above all others.
    pub ranges: Vec<u64>,
}

/// A capture that is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureStatus {
    /// The port.
    pub port: u32,
    /// Where packets that come in go.
    pub incoming: String,
    /// Where packets that go out go.
    pub outgoing: String,
    /// Packets that are in its files.
    pub packets: u64,
    /// Packets left out, also those that could not be written.
    pub lost: u64,
    /// Why its files are not written any more.
    #[serde(default)]
    pub error: Option<String>,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStatus {
    /// The name of its level.
    pub level: String,
}

/// A process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// When it started, in seconds since 1970.
    pub start_seconds: f64,
    /// Processor time that it took, in seconds.
    pub cpu_seconds: f64,
    /// Memory that it has in use, in bytes.
    pub resident_bytes: u64,
    /// Addresses that it has, in bytes.
    pub virtual_bytes: u64,
}

impl Distribution {
    /// What came after an earlier moment.
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let before = earlier.ranges.iter().copied().chain(std::iter::repeat(0));
        Distribution {
            count: self.count.saturating_sub(earlier.count),
            sum: self.sum.saturating_sub(earlier.sum),
            ranges: self.ranges.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect(),
        }
    }

    /// The power of two that a part of all numbers, from 0 to 1, does not exceed; none without numbers.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let wanted = (part * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let range = self.ranges.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(1u64.checked_shl(range as u32).unwrap_or(u64::MAX))
    }

    /// The mean; none without numbers.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_differences_and_quantiles() {
        // 1000; then 3, 4, 5 and 1000 more. The ranges end at 1, 2, 4, 8, ..., 1024.
        let before = Distribution { count: 1, sum: 1000, ranges: vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] };
        let now = Distribution { count: 5, sum: 2012, ranges: vec![0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 2] };
        let added = now.since(&before);
        assert_eq!((added.count, added.sum, added.mean()), (4, 1012, Some(253.0)));
        let quantiles = [0.0, 0.5, 0.75, 0.99].map(|part| added.quantile(part));
        assert_eq!(quantiles, [Some(4), Some(4), Some(8), Some(1024)]);
        assert_eq!((Distribution::default().quantile(0.5), Distribution::default().mean()), (None, None));
    }
}
