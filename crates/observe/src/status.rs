//! What a switch is like at one moment, as JSON has it.

use crate::process::Process;
use millrace_dataplane::{DropSite, Histogram, PortReport, QueueReport, RANGES, Report};
use millrace_drivers::{PortLink, PortStatistics};
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
    /// Packets of each burst.
    pub bursts: Distribution,
    /// Nanoseconds from the arrival of a packet until it was on its way out, of a sample.
    pub latency_ns: Distribution,
    /// Digests and lines of the program's log that came too fast for whoever takes them.
    pub lost_notices: u64,
    /// The captures that are on.
    pub captures: Vec<CaptureStatus>,
    /// The process of the switch.
    pub process: Process,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its number.
    pub port: u32,
    /// Whether packets can come and go: its driver works, its input has not ended, and its link is up where it has one.
    pub up: bool,
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
    pub(crate) fn is_same(&self, other: &DropSiteStatus) -> bool {
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

impl From<&(DropSite, u64)> for DropSiteStatus {
    fn from((site, packets): &(DropSite, u64)) -> DropSiteStatus {
        let DropSite { file, line, block, request, called_at, tables } = site;
        DropSiteStatus {
            place: if *line > 0 { format!("{file}:{line}") } else { String::new() },
            block: block.clone(),
            request: request.clone(),
            called_at: *called_at,
            tables: tables.clone(),
            packets: *packets,
        }
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

impl PortStatus {
    pub(crate) fn new(report: &PortReport, far_end: Option<&PortLink>) -> PortStatus {
        let link = far_end.and_then(|far_end| far_end.link.as_ref());
        let PortReport { port, is_up, counters, driver } = *report;
        let PortStatistics { rx_missed, rx_errors, rx_truncated, tx_refused, .. } = driver;
        PortStatus {
            port,
            up: is_up && link.is_none_or(|link| link.is_up),
            interface: link.map(|link| link.name.clone()),
            spec: far_end.map(|far_end| far_end.spec.to_string()),
            mac: link.and_then(|link| link.mac).map(mac),
            speed_mbps: link.and_then(|link| link.speed_mbps),
            mtu: link.and_then(|link| link.mtu),
            rx_packets: counters.rx_packets,
            rx_bytes: counters.rx_bytes,
            rx_drops: counters.rx_drops,
            rx_missed,
            rx_errors,
            rx_truncated,
            tx_packets: counters.tx_packets,
            tx_bytes: counters.tx_bytes,
            tx_drops: counters.tx_drops,
            tx_refused,
        }
    }
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

impl TableStatus {
    /// All tables of a report. Waits for whoever writes them.
    pub(crate) fn all(report: &Report) -> Vec<TableStatus> {
        let tables = report.tables.lock();
        let of_program = report.program.tables.iter().enumerate();
        let each = of_program.map(|(at, (id, table))| {
            let counts = report.lookups.get(at);
            TableStatus {
                table: table.name.clone(),
                entries: tables.entry_count(id).into(),
                max_entries: table.size,
                hits: counts.map(|counts| counts.lookups - counts.misses),
                misses: counts.map(|counts| counts.misses),
                bytes: tables.table(id).memory_bytes() as u64,
            }
        });
        each.collect()
    }
}

impl From<QueueReport> for QueueStatus {
    fn from(report: QueueReport) -> QueueStatus {
        let QueueReport { port, priority, packets, depth, dropped } = report;
        QueueStatus { port, priority, packets, max_packets: depth, drops: dropped }
    }
}

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Distribution {
        let ranges = (0..=RANGES).map(|power| histogram.in_range(power)).collect();
        Distribution { count: histogram.count(), sum: histogram.sum(), ranges }
    }
}

impl From<millrace_drivers::CaptureStatus> for CaptureStatus {
    fn from(capture: millrace_drivers::CaptureStatus) -> CaptureStatus {
        CaptureStatus {
            port: capture.port,
            incoming: capture.incoming.display().to_string(),
            outgoing: capture.outgoing.display().to_string(),
            packets: capture.packets,
            lost: capture.lost,
            error: capture.error,
        }
    }
}

impl Distribution {
    /// What came after an earlier moment.
    pub(crate) fn since(&self, earlier: &Distribution) -> Distribution {
        let before = earlier.ranges.iter().copied().chain(std::iter::repeat(0));
        Distribution {
            count: self.count.saturating_sub(earlier.count),
            sum: self.sum.saturating_sub(earlier.sum),
            ranges: self.ranges.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect(),
        }
    }

    /// The power of two that a part of all numbers, from 0 to 1, does not exceed; none without numbers.
    pub(crate) fn quantile(&self, part: f64) -> Option<u64> {
        let wanted = (part * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let range = self.ranges.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(1u64.checked_shl(range as u32).unwrap_or(u64::MAX))
    }

    /// The mean; none without numbers.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_differences_and_quantiles() {
        let mut histogram = Histogram::default();
        histogram.add(1000);
        let before = Distribution::from(&histogram);
        [3, 4, 5, 1000].into_iter().for_each(|number| histogram.add(number));
        let added = Distribution::from(&histogram).since(&before);
        assert_eq!((added.count, added.sum, added.mean()), (4, 1012, Some(253.0)));
        let quantiles = [0.0, 0.5, 0.75, 0.99].map(|part| added.quantile(part));
        assert_eq!(quantiles, [Some(4), Some(4), Some(8), Some(1024)]);
        assert_eq!((Distribution::default().quantile(0.5), Distribution::default().mean()), (None, None));
    }
}
