//! `dot3StatsTable` (RFC 3635) and `etherStatsTable` (RFC 2819) of the ports that have a cable or its like.
//!
//! A port's own counters are of frames that came whole; what was wrong on a cable only its device has found. So ports without a device
//! have rows without the counters of errors.

use super::{Port, add_port_table, counter, integer};
use crate::value::Value;
use crate::view::{Builder, Cell};
use millrace_observe_api::{KindsStatus, PortStatus};
use std::collections::BTreeMap;
use std::sync::Arc;

const DOT3_STATS_ENTRY: [u32; 10] = [1, 3, 6, 1, 2, 1, 10, 7, 2, 1];
const ETHER_STATS_ENTRY: [u32; 10] = [1, 3, 6, 1, 2, 1, 16, 1, 1, 1];
/// `ifIndex`, of which `etherStatsDataSource` is an instance.
const IF_INDEX: [u32; 10] = super::IF_INDEX;

/// Bytes of the check sequence: `etherStatsOctets` counts them.
const CHECK_SEQUENCE: u64 = 4;
/// `dot3StatsDuplexStatus`: the switch does not ask. Flow control is not its own.
const DUPLEX_UNKNOWN: i32 = 1;
const RATE_CONTROL_OFF: i32 = 1;
const FALSE: i32 = 2;
/// `EntryStatus`.
const VALID: i32 = 1;

pub(super) fn add(builder: &mut Builder, ports: &[Port<'_>]) {
    let cables = || ports.iter().copied().filter(|port| port.is_ethernet);
    add_port_table(builder, &DOT3_STATS_ENTRY, cables(), &dot3_stats());
    add_port_table(builder, &ETHER_STATS_ENTRY, cables(), &ether_stats());
}

/// `dot3StatsTable`. Collisions are those of a shared cable, which no device tells a switch of here.
fn dot3_stats<'s>() -> [super::Column<Port<'s>>; 9] {
    [
        (1, |port| integer(i32::try_from(port.index).ok()?)),
        (2, |port| counter(found_wrong(port.status, &["alignment"])?)),
        (3, |port| counter(found_wrong(port.status, &["crc"])?)),
        (10, |port| counter(port.status.device.as_ref()?.tx.errors)),
        (13, |port| counter(found_wrong(port.status, &["length"])?)),
        (16, |port| counter(found_wrong(port.status, &["overrun", "missed"])?)),
        (19, |_| integer(DUPLEX_UNKNOWN)),
        (20, |_| integer(FALSE)),
        (21, |_| integer(RATE_CONTROL_OFF)),
    ]
}

/// `etherStatsTable`: frames that came in by the port.
fn ether_stats<'s>() -> [super::Column<Port<'s>>; 18] {
    [
        (1, |port| integer(i32::try_from(port.index).ok()?)),
        (2, |port| {
            let name: Arc<[u32]> = IF_INDEX.into_iter().chain([port.index]).collect();
            Some(Value::Name(name).into())
        }),
        (3, |port| counter(port.status.rx_missed)),
        (4, |port| counter(octets(port.status))),
        (5, |port| counter(port.status.rx_packets)),
        (6, |port| counter(kinds(port)?.broadcast)),
        (7, |port| counter(kinds(port)?.multicast)),
        (8, |port| counter(found_wrong(port.status, &["alignment", "crc"])?)),
        (9, |port| of_size(port, "0-63")),
        (10, |port| of_size(port, "1519-max")),
        (14, |port| of_size(port, "64")),
        (15, |port| of_size(port, "65-127")),
        (16, |port| of_size(port, "128-255")),
        (17, |port| of_size(port, "256-511")),
        (18, |port| of_size(port, "512-1023")),
        (19, |port| of_size(port, "1024-1518")),
        (20, |_| Some(Value::text("millrace").into())),
        (21, |_| integer(VALID)),
    ]
}

/// Frames that the device has found wrong in one of these manners; none without a device.
fn found_wrong(port: &PortStatus, kinds: &[&str]) -> Option<u64> {
    let errors = &port.device.as_ref()?.rx_errors;
    let counts = kinds.iter().map(|kind| errors.get(*kind).copied());
    counts.sum()
}

/// Bytes with the check sequence of each frame.
fn octets(port: &PortStatus) -> u64 {
    port.rx_bytes.wrapping_add(port.rx_packets.wrapping_mul(CHECK_SEQUENCE))
}

fn kinds<'p>(port: &'p Port<'_>) -> Option<&'p KindsStatus> {
    port.status.rx_kinds.as_ref()
}

/// Frames of a size, as the port counts them, or else its device.
fn of_size(port: &Port<'_>, size: &str) -> Option<Cell> {
    let of_port = port.status.rx_kinds.as_ref().map(|kinds| &kinds.sizes);
    let of_device = || port.status.device.as_ref()?.rx.sizes.as_ref();
    let sizes: &BTreeMap<String, u64> = of_port.or_else(of_device)?;
    counter(*sizes.get(size)?)
}
