//! Frames of ports by kind, and what devices count.

use super::{Families, Labels, Samples};
use millrace_observe_api::{DeviceStatus, KindsStatus, PortStatus, Status};
use std::collections::BTreeMap;

/// A direction as names and labels have it, with what a port has of it.
type Direction = (&'static str, fn(&PortStatus) -> Option<&KindsStatus>);

const DIRECTIONS: [Direction; 2] =
    [("receive", |port| port.rx_kinds.as_ref()), ("transmit", |port| port.tx_kinds.as_ref())];

pub(super) fn write(out: &mut Families, status: &Status) {
    let filtered = status.ports.iter().map(|port| (labels(port), port.rx_filtered)).collect();
    let help = "Packets that came to the interface and are not for this port";
    out.counters("millrace_port_receive_filtered", help, None, filtered);
    for (direction, kinds) in DIRECTIONS {
        let mut counted = Samples::new();
        for (port, kinds) in status.ports.iter().filter_map(|port| Some((port, kinds(port)?))) {
            for (kind, count) in
                [("unicast", kinds.unicast), ("multicast", kinds.multicast), ("broadcast", kinds.broadcast)]
            {
                counted.push((with(labels(port), "kind", kind), count));
            }
        }
        let help = "Packets by who they are for";
        out.counters(&format!("millrace_port_{direction}_kinds"), help, None, counted);
        let mut sizes = Samples::new();
        for port in &status.ports {
            let of_device = port.device.as_ref().and_then(|device| match direction {
                "receive" => device.rx.sizes.as_ref(),
                _ => device.tx.sizes.as_ref(),
            });
            let of_port = kinds(port).map(|kinds| &kinds.sizes);
            for (by, counts) in [("port", of_port), ("device", of_device)] {
                sizes.extend(
                    counts.into_iter().flatten().map(|(size, count)| {
                        (with(with(labels(port), "size", size), "counted_by", by), *count)
                    }),
                );
            }
        }
        let help =
            "Packets by size with their check sequence (RFC 2819), as the port and the device count them";
        out.counters(&format!("millrace_port_{direction}_sizes"), help, None, sizes);
    }
    devices(out, status)
}

fn devices(out: &mut Families, status: &Status) {
    let each = |counts: fn(&DeviceStatus) -> BTreeMap<&str, u64>, label: &'static str| -> Samples {
        let devices = status.ports.iter().filter_map(|port| Some((port, port.device.as_ref()?)));
        let samples = devices.flat_map(|(port, device)| {
            let count = move |(of, count): (&str, u64)| (with(labels(port), label, of), count);
            counts(device).into_iter().map(count).collect::<Vec<_>>()
        });
        samples.collect()
    };
    let packets = |device: &DeviceStatus| {
        BTreeMap::from([("receive", device.rx.packets), ("transmit", device.tx.packets)])
    };
    let help = "Frames that the device of the interface has received and sent, whoever takes and sends them";
    out.counters("millrace_port_device_packets", help, None, each(packets, "direction"));
    let errors = |device: &DeviceStatus| {
        BTreeMap::from([("receive", device.rx.errors), ("transmit", device.tx.errors)])
    };
    let help = "Frames of the device that were wrong";
    out.counters("millrace_port_device_errors", help, None, each(errors, "direction"));
    let dropped = |device: &DeviceStatus| {
        BTreeMap::from([("receive", device.rx.dropped), ("transmit", device.tx.dropped)])
    };
    let help = "Frames that the device has dropped";
    out.counters("millrace_port_device_drops", help, None, each(dropped, "direction"));
    let mut kinds = Samples::new();
    for (port, device) in status.ports.iter().filter_map(|port| Some((port, port.device.as_ref()?))) {
        kinds.extend(device.rx_errors.iter().map(|(kind, count)| (with(labels(port), "kind", kind), *count)));
    }
    let help = "Frames that the device has received and that are wrong or lost, by kind";
    out.counters("millrace_port_device_receive_errors", help, None, kinds)
}

fn labels(port: &PortStatus) -> Labels {
    vec![("port", port.port.to_string())]
}

fn with(mut labels: Labels, name: &'static str, value: &str) -> Labels {
    labels.push((name, value.to_owned()));
    labels
}
