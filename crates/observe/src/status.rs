//! The parts of a status, each from what its part of the switch reports.

use millrace_dataplane::{
    DropSite, Histogram, PlannedPort, PortId, PortReport, QueueReport, RANGES, Report, WorkerReport,
};
use millrace_drivers::{DirectionCounters, FrameKinds, LinkCounters, PortLink, PortStatistics, SIZES};
use millrace_observe_api::{
    CaptureStatus, DeviceDirection, DeviceStatus, Distribution, DropSiteStatus, FlowStatus, KindsStatus,
    PlanQueueStatus, PlanStatus, PortStatus, QueuePairStatus, QueueStatus, StepStatus, TableStatus,
    WorkerStatus,
};
use millrace_traffic::{Discard, Plan, words};
use std::collections::BTreeMap;

pub(crate) fn port(report: &PortReport, far_end: Option<&PortLink>) -> PortStatus {
    let link = far_end.and_then(|far_end| far_end.link.as_ref());
    let PortReport { port, is_up, is_enabled, counters, driver } = *report;
    let PortStatistics { rx_missed, rx_errors, rx_filtered, rx_truncated, tx_refused, .. } = driver;
    let (rx_kinds, tx_kinds) = driver.kinds();
    PortStatus {
        port,
        up: is_up && link.is_none_or(|link| link.is_up),
        enabled: is_enabled,
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
        rx_filtered,
        rx_kinds: rx_kinds.map(kinds),
        tx_kinds: tx_kinds.map(kinds),
        device: link.and_then(|link| link.counters.as_ref()).map(device),
    }
}

fn kinds(counted: FrameKinds) -> KindsStatus {
    let FrameKinds { multicast, broadcast, sizes } = counted;
    KindsStatus { unicast: counted.unicast(), multicast, broadcast, sizes: by_size(sizes) }
}

fn by_size(counts: [u64; SIZES.len()]) -> BTreeMap<String, u64> {
    SIZES.iter().map(|size| (*size).to_owned()).zip(counts).collect()
}

fn device(counters: &LinkCounters) -> DeviceStatus {
    let direction = |of: DirectionCounters, sizes: Option<[u64; SIZES.len()]>| DeviceDirection {
        packets: of.packets,
        bytes: of.bytes,
        errors: of.errors,
        dropped: of.dropped,
        sizes: sizes.map(by_size),
    };
    let errors = [
        ("crc", counters.rx_crc_errors),
        ("alignment", counters.rx_alignment_errors),
        ("length", counters.rx_length_errors),
        ("overrun", counters.rx_overruns),
        ("missed", counters.rx_missed),
    ];
    DeviceStatus {
        rx: direction(counters.rx, counters.rx_sizes),
        tx: direction(counters.tx, counters.tx_sizes),
        rx_errors: errors.map(|(kind, count)| (kind.to_owned(), count)).into(),
    }
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

pub(crate) fn drop_site((site, packets): &(DropSite, u64)) -> DropSiteStatus {
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

/// All tables of a report. Waits for whoever writes them.
pub(crate) fn tables(report: &Report) -> Vec<TableStatus> {
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

pub(crate) fn queue(report: &QueueReport) -> QueueStatus {
    let QueueReport { port, priority, packets, depth, dropped } = *report;
    QueueStatus { port, priority, packets, max_packets: depth, drops: dropped }
}

pub(crate) fn plan(plan: &PlannedPort) -> PlanStatus {
    let PlannedPort { port, plan, queues } = plan;
    PlanStatus {
        port: *port,
        plan: words::PortPlan { port: *port, plan: Plan::clone(plan) }.to_string(),
        queues: queues.iter().map(plan_queue).collect(),
    }
}

fn plan_queue(report: &millrace_traffic::QueueReport) -> PlanQueueStatus {
    let drops = Discard::ALL.into_iter().zip(report.discarded).filter(|(_, count)| *count > 0);
    PlanQueueStatus {
        handle: report.handle.to_string(),
        packets: report.packets.into(),
        bytes: report.bytes,
        sent: report.sent,
        sent_bytes: report.sent_bytes,
        marked: report.marked,
        drops: drops.map(|(why, count)| (why.name().to_owned(), count)).collect(),
        largest_packets: report.largest_packets.into(),
        largest_bytes: report.largest_bytes,
        delay_ns: report.delay_ns,
        largest_delay_ns: report.largest_delay_ns,
    }
}

pub(crate) fn worker(report: &WorkerReport) -> WorkerStatus {
    let WorkerReport { processor, rx_packets, queue_pairs, .. } = report;
    WorkerStatus {
        processor: processor.and_then(|processor| processor.try_into().ok()),
        rx_packets: *rx_packets,
        queue_pairs: queue_pairs.iter().map(|(port, queue)| queue_pair(*port, *queue)).collect(),
    }
}

fn queue_pair(port: PortId, queue: usize) -> QueuePairStatus {
    QueuePairStatus { port, queue: u32::try_from(queue).unwrap_or(u32::MAX) }
}

pub(crate) fn distribution(histogram: &Histogram) -> Distribution {
    let ranges = (0..=RANGES).map(|power| histogram.in_range(power)).collect();
    Distribution { count: histogram.count(), sum: histogram.sum(), ranges }
}

pub(crate) fn capture(capture: millrace_drivers::CaptureStatus) -> CaptureStatus {
    CaptureStatus {
        port: capture.port,
        incoming: capture.incoming.display().to_string(),
        outgoing: capture.outgoing.display().to_string(),
        packets: capture.packets,
        lost: capture.lost,
        error: capture.error,
    }
}

pub(crate) fn step(status: millrace_inputs::StepStatus) -> StepStatus {
    let millrace_inputs::StepStatus { place, packets, passed, accounted, dropped, flows } = status;
    let flows = flows.map(|flows| {
        let millrace_inputs::FlowStatus { file, flows, records, lost, error } = flows;
        FlowStatus { file, flows, records, lost, error }
    });
    StepStatus {
        port: place.port,
        direction: place.direction().to_owned(),
        step: place.step as u64,
        plugin: place.plugin.to_owned(),
        packets,
        passed,
        accounted,
        dropped,
        flows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_a_histogram_are_those_of_its_distribution() {
        let mut histogram = Histogram::default();
        [1, 3, 4, 5, 1000].into_iter().for_each(|number| histogram.add(number));
        let distribution = distribution(&histogram);
        assert_eq!((distribution.count, distribution.sum), (5, 1013));
        // The ranges end at 1, 2, 4, 8, ..., 1024.
        assert_eq!(distribution.ranges[..11], [1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(distribution.quantile(0.99), Some(1024));
    }
}
