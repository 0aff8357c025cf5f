//! What a switch is like at one moment, as JSON has it.

use crate::process::Process;
use millrace_ports::PortStatistics;
use millrace_switch::{Histogram, PortReport, QueueReport, RANGES, Report};
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its number.
    pub port: u32,
    /// Whether it works: it is not broken, and its input has not ended.
    pub up: bool,
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
    /// Packets captured.
    pub packets: u64,
    /// Packets left out.
    pub lost: u64,
}

impl PortStatus {
    pub(crate) fn new(report: &PortReport) -> PortStatus {
        let PortReport { port, is_up, counters, driver } = *report;
        let PortStatistics { rx_missed, rx_errors, rx_truncated, tx_refused, .. } = driver;
        PortStatus {
            port,
            up: is_up,
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

impl From<millrace_ports::CaptureStatus> for CaptureStatus {
    fn from(capture: millrace_ports::CaptureStatus) -> CaptureStatus {
        CaptureStatus {
            port: capture.port,
            incoming: capture.incoming.display().to_string(),
            outgoing: capture.outgoing.display().to_string(),
            packets: capture.packets,
            lost: capture.lost,
        }
    }
}

impl Distribution {
    /// What came behind an earlier moment.
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
