//! What a running switch tells of itself, all of one moment between two rounds of its worker.

use super::Worker;
use super::schedulers::{self, PlannedPort};
use crate::histogram::Histogram;
use crate::requests::RequestError;
use crate::{DropReason, Mode, PortCounters, PortId, QueueReport};
use millrace_drivers::PortStatistics;
use millrace_pipeline::{DropSite, Program};
use millrace_state::{LookupCounts, TablesHandle};
use std::fmt;
use std::sync::Arc;

/// A switch at one moment.
#[derive(Clone, Debug)]
pub struct Report {
    /// The time of the switch in nanoseconds.
    pub now_ns: u64,
    /// The program that runs.
    pub program: Arc<Program>,
    /// What runs it.
    pub engine: &'static str,
    /// Its tables; their entries are looked at without the worker.
    pub tables: TablesHandle,
    /// How often each table was looked up since the program started, in the order of their ids; empty where that is not
    /// counted.
    pub lookups: Vec<LookupCounts>,
    /// The ports, by number.
    pub ports: Vec<PortReport>,
    /// The reasons that have dropped something.
    pub drops: Vec<(DropReason, u64)>,
    /// The places of the program that have dropped something, with how much.
    pub drop_sites: Vec<(DropSite, u64)>,
    /// The queues that there are.
    pub queues: QueueReports,
    /// How large bursts were, and how long they took.
    pub bursts: BurstReport,
    /// The workers, the leading one first.
    pub workers: Vec<WorkerReport>,
    /// The mode of the switch.
    pub mode: Mode,
}

/// The queues of ports at one moment.
#[derive(Clone, Debug, Default)]
pub struct QueueReports {
    /// Of ports without a plan.
    pub plain: Vec<QueueReport>,
    /// The ports with a plan, and their queues.
    pub planned: Vec<PlannedPort>,
}

/// The bursts of packets until one moment.
#[derive(Clone, Debug, Default)]
pub struct BurstReport {
    /// Packets of each.
    pub sizes: Histogram,
    /// Nanoseconds from the arrival of a packet until it was on its way out, of some packets.
    pub latency: Histogram,
}

/// A worker at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerReport {
    /// The processor that it runs on alone; none: where the system has it run.
    pub processor: Option<usize>,
    /// Packets that it has switched.
    pub rx_packets: u64,
    /// The queue pairs of devices that it has, as the numbers of port and queue pair, in order. It reaches other ports through the
    /// worker that has one of theirs.
    pub queue_pairs: Vec<(PortId, usize)>,
    /// Digests and lines of the log that nobody took in time.
    pub lost_notices: u64,
}

impl WorkerReport {
    pub(super) fn of(worker: &Worker) -> WorkerReport {
        let of_device = worker.ports.iter().filter_map(|live| Some((live.id, live.queue?)));
        let mut queue_pairs: Vec<(PortId, usize)> = of_device.collect();
        queue_pairs.sort_unstable();
        WorkerReport {
            processor: worker.seat.processors.get(worker.seat.number).copied(),
            rx_packets: worker.switch.counters().ports().map(|(_, port)| port.rx_packets).sum(),
            queue_pairs,
            lost_notices: worker.listener.lost,
        }
    }
}

/// A port at one moment.
#[derive(Clone, Copy, Debug)]
pub struct PortReport {
    /// Its number.
    pub port: PortId,
    /// Whether it works: it is not broken, and its input has not ended.
    pub is_up: bool,
    /// Whether it was not switched off.
    pub is_enabled: bool,
    /// What the switch counted.
    pub counters: PortCounters,
    /// What its driver counted.
    pub driver: PortStatistics,
}

/// Why there is no report, and no answer to what else was asked for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// The worker has ended.
    Ended,
    /// The worker has too much else to do.
    Busy,
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportError::Ended => RequestError.fmt(f),
            ReportError::Busy => f.write_str("the switch is too busy to answer"),
        }
    }
}

impl std::error::Error for ReportError {}

impl Report {
    /// What a worker and its followers tell between two rounds, summed.
    pub(super) fn of_all(worker: &mut Worker) -> Report {
        let mut report = Report::of(worker);
        report.queues.planned = schedulers::plans(worker);
        for follower in worker.followers.all() {
            report.add(Report::of(follower));
        }
        report
    }

    /// Adds what another worker of the same switch tells.
    fn add(&mut self, other: Report) {
        for (mine, its) in self.lookups.iter_mut().zip(other.lookups) {
            mine.lookups += its.lookups;
            mine.misses += its.misses;
        }
        for its in other.ports {
            if let Some(mine) = self.ports.iter_mut().find(|mine| mine.port == its.port) {
                mine.is_up &= its.is_up;
                mine.counters += its.counters;
                mine.driver += its.driver;
            }
        }
        sum(&mut self.drops, other.drops);
        sum(&mut self.drop_sites, other.drop_sites);
        for its in other.queues.plain {
            let same = |mine: &&mut QueueReport| (mine.port, mine.priority) == (its.port, its.priority);
            match self.queues.plain.iter_mut().find(same) {
                Some(mine) => {
                    mine.packets += its.packets;
                    mine.depth += its.depth;
                    mine.dropped += its.dropped;
                }
                None => self.queues.plain.push(its),
            }
        }
        self.queues.plain.sort_by_key(|queue| (queue.port, queue.priority));
        self.bursts.sizes.append(&other.bursts.sizes);
        self.bursts.latency.append(&other.bursts.latency);
        self.workers.extend(other.workers);
    }

    /// What a worker tells between two rounds.
    pub(super) fn of(worker: &Worker) -> Report {
        let (switch, counters) = (&worker.switch, worker.switch.counters());
        let lookups = switch.counts_lookups().then(|| switch.forwarder.state.lookup_counts().collect());
        let mut ports: Vec<PortReport> = Vec::with_capacity(worker.ports.len());
        for live in worker.ports.iter() {
            let (port, driver) = (live.id, live.statistics());
            match ports.iter_mut().find(|known| !live.sends && known.port == port) {
                Some(known) => {
                    known.is_up &= !live.ended;
                    known.driver += driver;
                }
                None => {
                    let mut counters = counters.port(port);
                    if let Some(scheduler) = &live.scheduler {
                        let (packets, bytes) = scheduler.waiting();
                        counters.tx_packets = counters.tx_packets.wrapping_sub(packets as u64);
                        counters.tx_bytes = counters.tx_bytes.wrapping_sub(bytes);
                    }
                    let is_enabled = switch.ports.is_enabled(port);
                    ports.push(PortReport { port, is_up: !live.ended, is_enabled, counters, driver });
                }
            }
        }
        ports.sort_by_key(|port| port.port);
        Report {
            now_ns: switch.now_ns(),
            program: Arc::clone(switch.program()),
            engine: switch.engine_name(),
            tables: switch.state().handle(),
            lookups: lookups.unwrap_or_default(),
            ports,
            drops: counters.all_drops().collect(),
            drop_sites: (counters.drop_sites(switch.program()))
                .map(|(site, count)| (site.clone(), count))
                .collect(),
            queues: QueueReports { plain: switch.traffic.queues.report().collect(), planned: Vec::new() },
            bursts: BurstReport { sizes: worker.bursts.sizes, latency: *worker.bursts.latency },
            workers: vec![WorkerReport::of(worker)],
            mode: switch.mode(),
        }
    }
}

/// Adds counts by what they count.
fn sum<K: PartialEq>(counts: &mut Vec<(K, u64)>, more: Vec<(K, u64)>) {
    for (of, count) in more {
        match counts.iter_mut().find(|(known, _)| *known == of) {
            Some((_, sum)) => *sum += count,
            None => counts.push((of, count)),
        }
    }
}
