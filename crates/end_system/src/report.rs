//! What an end system did, as JSON and as text.

use crate::gateway::{Gateway, GatewayCounters};
use crate::management::ManagementCounters;
use crate::node::Node;
use crate::process::LineReport;
use millrace_afdx::{Discard, DiscardCounters, MeterCounts, Network};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// As JSON: the sending side, the receiving side, the lines.
pub fn json(node: &Node, lines: &[LineReport]) -> Value {
    let transmitter = &node.es.transmitter;
    let sends: Vec<Value> = transmitter
        .vls()
        .map(|(vl, counters)| {
            let ports: Vec<Value> = node
                .sent()
                .filter(|sent| sent.vl == vl.id)
                .map(
                    |sent| json!({"sub_vl": sent.sub_vl, "messages": sent.messages, "refused": sent.refused}),
                )
                .collect();
            json!({
                "vl": vl.id.0, "bag_ns": vl.bag.ns(), "lmax": vl.lmax, "frames_offered": counters.offered,
                "frames_released": counters.released, "frames_refused": counters.refused_full,
                "frames_late": counters.late, "ports": ports,
            })
        })
        .collect();
    let receives: Vec<Value> = node
        .es
        .receiver
        .vls()
        .map(|(vl, counters)| {
            let of_network = |network: Network| {
                let at = network.index();
                let integrity = counters.integrity[at];
                json!({
                    "frames": counters.frames[at], "bytes": counters.bytes[at], "valid": integrity.valid,
                    "missed": integrity.missed, "resets": integrity.resets,
                    "out_of_window": integrity.out_of_window,
                })
            };
            let ports: Vec<Value> = node
                .received()
                .filter(|(id, ..)| *id == vl.id)
                .map(|(_, sub_vl, counts)| measured(sub_vl, &counts))
                .collect();
            json!({
                "vl": vl.id.0, "A": of_network(Network::A), "B": of_network(Network::B),
                "delivered": counters.redundancy.delivered, "redundant": counters.redundancy.redundant,
                "late": counters.redundancy.late, "abandoned": counters.abandoned,
                "discards": discards(&counters.discards), "ports": ports,
            })
        })
        .collect();
    let of_line = |line: &LineReport| {
        let counters = transmitter.line_counters(line.network);
        json!({
            "network": line.network.to_string(), "frames": counters.frames, "bytes": counters.bytes,
            "dropped_full": counters.dropped_full, "refused": line.refused,
            "max_jitter_ns": counters.max_jitter_ns, "rx_packets": line.port.rx_packets,
            "rx_missed": line.port.rx_missed, "tx_packets": line.port.tx_packets,
        })
    };
    let receiver = &node.es.receiver;
    json!({
        "name": node.name, "jitter_ns": transmitter.jitter_ns(), "lines": lines.iter().map(of_line).collect::<Vec<_>>(),
        "sends": sends, "receives": receives, "received_frames": receiver.frames(),
        "discards": discards(&receiver.discards()),
    })
}

/// What passed gateways.
pub fn gateways(gateways: &[Gateway]) -> Value {
    let one = |gateway: &Gateway| {
        let (to, GatewayCounters { sent, refused, received, lost }) = (gateway.to(), gateway.counters());
        let to = format!("{}:{}", to.ip, to.port);
        json!({ "to": to, "sent": sent, "refused": refused, "received": received, "lost": lost })
    };
    gateways.iter().map(one).collect()
}

/// What happened to those who asked the own end system of a switch.
pub(crate) fn management(counters: &ManagementCounters) -> Value {
    let ManagementCounters { frames, discarded, echoes, requests, answers, no_way, busy, refused } =
        *counters;
    json!({
        "frames": frames, "discarded": discarded, "echoes": echoes,
        "requests": requests, "answers": answers, "no_way": no_way, "busy": busy, "refused": refused,
    })
}

fn measured(sub_vl: usize, counts: &MeterCounts) -> Value {
    json!({
        "sub_vl": sub_vl, "messages": counts.messages, "lost": counts.lost, "duplicates": counts.duplicates,
        "reordered": counts.reordered, "old": counts.old, "foreign": counts.foreign, "min_ns": counts.min_ns,
        "mean_ns": counts.mean_ns(), "max_ns": counts.max_ns,
    })
}

/// By reason, those that there are.
fn discards(counters: &DiscardCounters) -> Value {
    let object: Map<String, Value> =
        counters.all().map(|(reason, count)| (reason.name().to_owned(), count.into())).collect();
    object.into()
}

/// As text, a line for each thing.
pub fn text(node: &Node, lines: &[LineReport]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}", node.name);
    for line in lines {
        let counters = node.es.transmitter.line_counters(line.network);
        let _ = writeln!(
            text,
            "  line {}: {} frames sent, {} received; jitter up to {} us, {} not taken",
            line.network,
            counters.frames,
            line.port.rx_packets,
            counters.max_jitter_ns / 1000,
            line.refused + counters.dropped_full
        );
    }
    for sent in node.sent() {
        let _ = writeln!(
            text,
            "  sends VL {}.{}: {} messages, {} refused",
            sent.vl, sent.sub_vl, sent.messages, sent.refused
        );
    }
    for (vl, sub_vl, counts) in node.received() {
        let _ = write!(
            text,
            "  receives VL {vl}.{sub_vl}: {} messages, {} lost, {} twice",
            counts.messages, counts.lost, counts.duplicates
        );
        let _ = match counts.mean_ns() {
            Some(mean) => writeln!(
                text,
                "; {} to {} us, mean {} us",
                counts.min_ns / 1000,
                counts.max_ns / 1000,
                mean / 1000
            ),
            None => writeln!(text),
        };
    }
    for (reason, count) in node.es.receiver.discards().all() {
        let _ = match reason {
            Discard::Redundant => writeln!(text, "  {count} frames were the second copy"),
            _ => writeln!(text, "  {count} frames dropped: {reason}"),
        };
    }
    text
}
