//! What a switch counted, as a table and as JSON.

use millrace_dataplane::{PortId, Switch, WorkerReport};
use millrace_drivers::{FrameKinds, PortStatistics, SIZES};
use millrace_printable::counted;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The counters of the ports and the reasons for drops. `drivers` are what the ports counted themselves.
pub(crate) fn text(switch: &Switch, drivers: &[(PortId, PortStatistics)]) -> String {
    let mut text = String::from(
        "port    rx packets      rx bytes    tx packets      tx bytes      rx drops      tx drops\n",
    );
    for (port, c) in switch.counters().ports() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{port:<4} {:>13} {:>13} {:>13} {:>13} {:>13} {:>13}",
            c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes, c.rx_drops, c.tx_drops
        );
    }
    let counters = switch.counters();
    let drops: Vec<_> = counters.all_drops().filter(|(_, count)| *count > 0).collect();
    let losses = losses(drivers);
    if drops.is_empty() && losses.is_empty() {
        text.push_str("nothing was dropped\n");
    }
    if !drops.is_empty() {
        text.push_str("dropped:\n");
    }
    for (reason, count) in drops {
        let _ = writeln!(text, "  {count:>8}  {}", reason.label(switch.program()));
    }
    for (site, count) in counters.drop_sites(switch.program()) {
        let _ = writeln!(text, "  {count:>8}  by the program: {site}");
    }
    if !losses.is_empty() {
        text.push_str("lost at ports:\n");
    }
    for Loss { port, reason, count, what } in losses {
        let _ = writeln!(text, "  {count:>8}  port {port}: {reason}: {what}");
    }
    for (port, s) in drivers.iter().filter(|(_, s)| s.rx_truncated > 0) {
        let _ = writeln!(
            text,
            "port {port}: of {} only a part is in the input",
            counted(s.rx_truncated, "packet")
        );
    }
    text
}

/// Packets that a port lost.
struct Loss {
    port: PortId,
    /// As in metrics.
    reason: &'static str,
    count: u64,
    what: &'static str,
}

/// What the ports lost, which the switch never saw or could not send.
fn losses(drivers: &[(PortId, PortStatistics)]) -> Vec<Loss> {
    let of = |(port, s): &(PortId, PortStatistics)| {
        [
            ("receive_missed", s.rx_missed, "arrived while no memory was free: the switch was too slow"),
            ("receive_errors", s.rx_errors, "arrived damaged, or longer than a frame can be"),
            (
                "transmit_refused",
                s.tx_refused,
                "the link did not take them: it is down or full, or they are longer than its MTU",
            ),
        ]
        .map(|(reason, count, what)| Loss { port: *port, reason, count, what })
    };
    drivers.iter().flat_map(of).filter(|loss| loss.count > 0).collect()
}

/// The same as JSON: `ports`, `drops`, `drop_sites` and `losses`.
pub(crate) fn json(switch: &Switch, drivers: &[(PortId, PortStatistics)]) -> Map<String, Value> {
    let ports = switch.counters().ports().map(|(port, c)| {
        let mut object = json!({
            "port": port,
            "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes, "rx_drops": c.rx_drops,
            "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes, "tx_drops": c.tx_drops,
        });
        if let (Some(object), Some((_, s))) =
            (object.as_object_mut(), drivers.iter().find(|(id, _)| *id == port))
        {
            for (name, count) in [
                ("rx_filtered", s.rx_filtered),
                ("rx_missed", s.rx_missed),
                ("rx_errors", s.rx_errors),
                ("rx_truncated", s.rx_truncated),
                ("tx_refused", s.tx_refused),
            ] {
                object.insert(name.into(), count.into());
            }
            let (rx, tx) = s.kinds();
            for (name, kinds) in [("rx_kinds", rx), ("tx_kinds", tx)] {
                object.extend(kinds.map(|kinds| (name.to_owned(), kinds_json(&kinds))));
            }
        }
        object
    });
    let drops = switch.counters().all_drops().filter(|(_, count)| *count > 0);
    let drops: Map<String, Value> =
        drops.map(|(reason, count)| (reason.label(switch.program()), count.into())).collect();
    let mut object = Map::new();
    object.insert("ports".into(), ports.collect());
    object.insert("drops".into(), drops.into());
    let sites = switch.counters().drop_sites(switch.program());
    let sites = sites.map(|(site, count)| {
        json!({
            "file": site.file, "line": site.line, "block": site.block, "request": site.request,
            "called_at": site.called_at, "tables": site.tables, "packets": count,
        })
    });
    object.insert("drop_sites".into(), sites.collect());
    let losses = losses(drivers).into_iter();
    let losses =
        losses.map(|loss| json!({ "port": loss.port, "reason": loss.reason, "packets": loss.count }));
    object.insert("losses".into(), losses.collect());
    object
}

fn kinds_json(kinds: &FrameKinds) -> Value {
    let sizes: Map<String, Value> =
        SIZES.iter().zip(kinds.sizes).map(|(size, count)| ((*size).to_owned(), count.into())).collect();
    json!({
        "unicast": kinds.unicast(), "multicast": kinds.multicast, "broadcast": kinds.broadcast, "sizes": sizes,
    })
}

/// How many packets each of several workers had.
pub(crate) fn workers_text(workers: &[WorkerReport]) -> String {
    let mut text = String::new();
    for (number, worker) in workers.iter().enumerate().filter(|_| workers.len() > 1) {
        let _ = write!(text, "worker {number}");
        if let Some(processor) = worker.processor {
            let _ = write!(text, " on processor {processor}");
        }
        let _ = writeln!(text, ": {}", counted(worker.rx_packets, "packet"));
    }
    text
}

/// The same as JSON, with the queue pairs that each worker has.
pub(crate) fn workers_json(workers: &[WorkerReport]) -> Value {
    let one = |worker: &WorkerReport| {
        let pair = |(port, queue): &(PortId, usize)| json!({ "port": port, "queue": queue });
        json!({
            "processor": worker.processor, "rx_packets": worker.rx_packets,
            "queue_pairs": worker.queue_pairs.iter().map(pair).collect::<Value>(),
        })
    };
    workers.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::SwitchConfig;
    use millrace_pipeline::{DropSite, Program};
    use std::sync::Arc;

    fn switch() -> Switch {
        let program = Program {
            errors: vec!["NoError".into()],
            drop_sites: vec![DropSite::default()],
            ..Program::default()
        };
        Switch::new(Arc::new(program), SwitchConfig::default()).unwrap()
    }

    #[test]
    fn what_ports_lost_is_said_with_its_reason() {
        let mut drivers = [(0, PortStatistics::default()), (7, PortStatistics::default())];
        assert!(text(&switch(), &drivers).ends_with("nothing was dropped\n"));
        assert_eq!(json(&switch(), &drivers)["losses"], json!([]));
        drivers[1].1.rx_missed = 5000;
        drivers[0].1.tx_refused = 3;
        let shown = text(&switch(), &drivers);
        assert!(!shown.contains("nothing was dropped"), "{shown}");
        assert!(shown.contains("lost at ports:\n         3  port 0: transmit_refused: the link "), "{shown}");
        assert!(shown.ends_with("      5000  port 7: receive_missed: arrived while no memory was free: the switch was too slow\n"), "{shown}");
        let wanted = json!([
            { "port": 0, "reason": "transmit_refused", "packets": 3 },
            { "port": 7, "reason": "receive_missed", "packets": 5000 },
        ]);
        assert_eq!(json(&switch(), &drivers)["losses"], wanted);
    }
}
