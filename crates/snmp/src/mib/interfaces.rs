//! `interfaces` and `ifXTable` (RFC 2863).
//!
//! Octets are the bytes of frames as `/status` has them, without the check sequence, which drivers do not hand over. Where a port does not
//! look at the kind of frames, all of them are unicast ones, as in gNMI, and there are no counters of the other kinds.

use super::{Moment, Port, add_port_table, counter, integer, large};
use crate::value::Value;
use crate::view::Builder;
use millrace_observe_api::{KindsStatus, PortStatus};

const INTERFACES: [u32; 7] = [1, 3, 6, 1, 2, 1, 2];
const IF_MIB_OBJECTS: [u32; 8] = [1, 3, 6, 1, 2, 1, 31, 1];
/// `ifIndex`, `ifAdminStatus`, `ifOperStatus`.
pub(crate) const IF_INDEX: [u32; 10] = [1, 3, 6, 1, 2, 1, 2, 2, 1, 1];
pub(crate) const IF_ADMIN_STATUS: [u32; 10] = [1, 3, 6, 1, 2, 1, 2, 2, 1, 7];
pub(crate) const IF_OPER_STATUS: [u32; 10] = [1, 3, 6, 1, 2, 1, 2, 2, 1, 8];

/// `ifType`.
const OTHER: i32 = 1;
const ETHERNET: i32 = 6;
/// `TruthValue`.
const TRUE: i32 = 1;
const FALSE: i32 = 2;
/// `ifAdminStatus`, `ifOperStatus`, and `ifLinkUpDownTrapEnable`.
const UP: i32 = 1;
const DOWN: i32 = 2;
const ENABLED: i32 = 1;

/// A port with when its state changed.
struct Interface<'s> {
    port: Port<'s>,
    last_change: u32,
}

pub(super) fn add(builder: &mut Builder, moment: &Moment<'_>, ports: &[Port<'_>]) {
    let number = i32::try_from(ports.len()).unwrap_or(i32::MAX);
    builder.scalar(&[&INTERFACES[..], &[1]].concat(), Some(Value::Integer(number)));
    let interface = |port: &Port<'_>| {
        let last_change = moment.last_changes.get(&port.status.port).copied().unwrap_or(0);
        (vec![port.index], last_change)
    };
    let rows: Vec<_> = ports
        .iter()
        .map(|port| {
            let (index, last_change) = interface(port);
            (index, Interface { port: *port, last_change })
        })
        .collect();
    super::add_table(builder, &[&INTERFACES[..], &[2, 1]].concat(), &rows, &if_table());
    add_port_table(builder, &[&IF_MIB_OBJECTS[..], &[1, 1]].concat(), ports.iter().copied(), &if_x_table());
    // When a row came or went: ports that there are from the start are most.
    builder.scalar(&[&IF_MIB_OBJECTS[..], &[5]].concat(), Some(Value::Ticks(0)));
}

/// `ifTable`, without the objects that RFC 2863 has deprecated.
fn if_table<'s>() -> [super::Column<Interface<'s>>; 18] {
    [
        (1, |row| integer(i32::try_from(row.port.index).ok()?)),
        (2, |row| Some(Value::text(&description(row.port.status)).into())),
        (3, |row| integer(if row.port.is_ethernet { ETHERNET } else { OTHER })),
        (4, |row| integer(i32::try_from(row.port.status.mtu?).unwrap_or(i32::MAX))),
        (5, |row| Some(Value::gauge(u64::from(row.port.status.speed_mbps.unwrap_or(0)) * 1_000_000).into())),
        (6, |row| Some(Value::Text(address(row.port.status).into()).into())),
        (7, |row| integer(if row.port.status.enabled { UP } else { DOWN })),
        (8, |row| integer(if row.port.status.enabled && row.port.status.up { UP } else { DOWN })),
        (9, |row| Some(Value::Ticks(row.last_change).into())),
        (10, |row| counter(row.port.status.rx_bytes)),
        (11, |row| counter(unicast(row.port.status.rx_kinds.as_ref(), row.port.status.rx_packets))),
        (13, |row| counter(in_discards(row.port.status))),
        (14, |row| counter(in_errors(row.port.status))),
        // No frame is for a protocol that the switch might not know.
        (15, |_| counter(0)),
        (16, |row| counter(row.port.status.tx_bytes)),
        (17, |row| counter(unicast(row.port.status.tx_kinds.as_ref(), row.port.status.tx_packets))),
        (19, |row| counter(row.port.status.tx_drops)),
        (20, |row| counter(row.port.status.device.as_ref().map_or(0, |device| device.tx.errors))),
    ]
}

/// `ifXTable`.
fn if_x_table<'s>() -> [super::Column<Port<'s>>; 19] {
    [
        (1, |port| Some(Value::text(&name(port.status)).into())),
        (2, |port| counter(port.status.rx_kinds.as_ref()?.multicast)),
        (3, |port| counter(port.status.rx_kinds.as_ref()?.broadcast)),
        (4, |port| counter(port.status.tx_kinds.as_ref()?.multicast)),
        (5, |port| counter(port.status.tx_kinds.as_ref()?.broadcast)),
        (6, |port| large(port.status.rx_bytes)),
        (7, |port| large(unicast(port.status.rx_kinds.as_ref(), port.status.rx_packets))),
        (8, |port| large(port.status.rx_kinds.as_ref()?.multicast)),
        (9, |port| large(port.status.rx_kinds.as_ref()?.broadcast)),
        (10, |port| large(port.status.tx_bytes)),
        (11, |port| large(unicast(port.status.tx_kinds.as_ref(), port.status.tx_packets))),
        (12, |port| large(port.status.tx_kinds.as_ref()?.multicast)),
        (13, |port| large(port.status.tx_kinds.as_ref()?.broadcast)),
        (14, |_| integer(ENABLED)),
        (15, |port| Some(Value::Gauge(port.status.speed_mbps.unwrap_or(0)).into())),
        // A switch takes frames for everybody.
        (16, |_| integer(TRUE)),
        (17, |port| integer(if port.status.interface.is_some() { TRUE } else { FALSE })),
        (18, |port| Some(Value::text(port.status.spec.as_deref().unwrap_or_default()).into())),
        (19, |_| Some(Value::Ticks(0).into())),
    ]
}

/// The name of its interface, or `port` and its number.
fn name(port: &PortStatus) -> String {
    port.interface.clone().unwrap_or_else(|| format!("port{}", port.port))
}

fn description(port: &PortStatus) -> String {
    match &port.spec {
        Some(spec) => format!("port {}: {spec}", port.port),
        None => format!("port {}", port.port),
    }
}

/// The six bytes of its address; none where it has none.
fn address(port: &PortStatus) -> Vec<u8> {
    let bytes = port.mac.iter().flat_map(|mac| mac.split(':'));
    bytes.map(|byte| u8::from_str_radix(byte, 16)).collect::<Result<_, _>>().unwrap_or_default()
}

/// Frames of one station; all of them where nobody looks.
fn unicast(kinds: Option<&KindsStatus>, packets: u64) -> u64 {
    kinds.map_or(packets, |kinds| kinds.unicast)
}

/// Frames without a fault that go nowhere: dropped by program or switch, or not fetched in time.
fn in_discards(port: &PortStatus) -> u64 {
    port.rx_drops.wrapping_add(port.rx_missed)
}

/// Frames with a fault: the driver's, and those that the device has found.
fn in_errors(port: &PortStatus) -> u64 {
    port.rx_errors.wrapping_add(port.device.as_ref().map_or(0, |device| device.rx.errors))
}
