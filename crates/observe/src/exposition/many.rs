//! What is of a device with many switches, or of a switch outside of it.

use super::families::{Families, Labels, Samples};
use millrace_observe_api::{ChassisStatus, PhysicalStatus};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

pub(super) fn device(out: &mut Families, device: &ChassisStatus) {
    out.info("millrace_device", "The device", &[("device", device.device.as_str())]);
    let of = |name: &str| -> Labels { vec![("switch", name.to_owned())] };
    let answered = device.switches.keys().map(|name| (of(name), 1));
    let silent = device.silent.iter().map(|name| (of(name), 0));
    let help = "1: the switch has answered; 0: it has not in time, and its numbers are left out";
    out.gauges("millrace_switch_up", help, None, answered.chain(silent).collect());
    let used = device.outside.iter().map(|(name, outside)| (of(name), outside.used_ns as f64 / 1e9));
    let help = "Time of its worker that the switch has used";
    out.seconds("millrace_switch_used", help, MetricType::Counter, used.collect());
    let losses = device.outside.iter().flat_map(|(name, outside)| {
        outside
            .losses
            .iter()
            .map(move |(reason, count)| ([of(name), vec![("reason", reason.clone())]].concat(), *count))
    });
    let help = "Packets lost between the switch and a port, or another switch";
    out.counters("millrace_switch_losses", help, None, losses.collect());
    physical(out, &device.physical);
    let unclassified = device.unclassified.iter().map(|count| (vec![], *count)).collect();
    out.counters(
        "millrace_unclassified_packets",
        "Frames of physical ports that nobody claims",
        None,
        unclassified,
    );
}

fn physical(out: &mut Families, ports: &[PhysicalStatus]) {
    let each = |number: fn(&PhysicalStatus) -> u64| -> Samples {
        ports.iter().map(|port| (vec![("physical", port.name.clone())], number(port))).collect()
    };
    let help = "1 while the driver of the physical port works";
    out.gauges("millrace_physical_up", help, None, each(|port| port.failure.is_none().into()));
    let infos =
        ports.iter().map(|port| (vec![("physical", port.name.clone()), ("spec", port.spec.clone())], 1));
    out.gauges("millrace_physical_info", "What the physical port is connected to", None, infos.collect());
    let mut counters = |name, help, unit, number| {
        out.counters(&format!("millrace_physical_{name}"), help, unit, each(number));
    };
    counters("receive_packets", "Frames taken from the physical port", None, |port| port.rx_packets);
    counters("receive", "Bytes taken from the physical port", Some(Unit::Bytes), |port| port.rx_bytes);
    let help = "Frames that arrived and that nobody fetched in time";
    counters("receive_missed", help, None, |port| port.rx_missed);
    let help = "Frames that arrived and were longer than a frame can be, or damaged";
    counters("receive_errors", help, None, |port| port.rx_errors);
    counters("transmit_packets", "Frames sent by the physical port", None, |port| port.tx_packets);
    counters("transmit", "Bytes sent by the physical port", Some(Unit::Bytes), |port| port.tx_bytes);
    counters("transmit_refused", "Frames that the physical port did not take", None, |port| port.tx_refused);
}
