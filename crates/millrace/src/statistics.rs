//! What a switch counted, as a table and as JSON.

use millrace_ports::PortStatistics;
use millrace_switch::{PortId, Switch};
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
    for (port, s) in drivers {
        for (count, what) in [
            (s.rx_missed, "arrived and were lost because the switch was too slow"),
            (s.rx_errors, "arrived and were longer than a frame can be"),
            (s.rx_truncated, "are in the input only in part"),
            (s.tx_refused, "were refused by the link"),
        ] {
            if count > 0 {
                let _ = writeln!(text, "port {port}: {count} packets {what}");
            }
        }
    }
    let drops: Vec<_> = switch.counters().all_drops().filter(|(_, count)| *count > 0).collect();
    match drops.is_empty() {
        true => text.push_str("nothing was dropped\n"),
        false => text.push_str("dropped:\n"),
    }
    for (reason, count) in drops {
        let _ = writeln!(text, "  {count:>8}  {}", reason.label(switch.program()));
    }
    text
}

/// The same as JSON: `ports` and `drops`.
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
                ("rx_missed", s.rx_missed),
                ("rx_errors", s.rx_errors),
                ("rx_truncated", s.rx_truncated),
                ("tx_refused", s.tx_refused),
            ] {
                object.insert(name.into(), count.into());
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
    object
}
