//! The objects of a switch: its status, encoded as the MIBs have it.
//!
//! | module | group | from |
//! | --- | --- | --- |
//! | SNMPv2-MIB (RFC 3418) | `system`, `snmp` | the identity of the agent, what it has counted |
//! | IF-MIB (RFC 2863) | `interfaces`, `ifXTable` | the ports |
//! | EtherLike-MIB (RFC 3635) | `dot3StatsTable` | what the devices of ports have counted |
//! | RMON-MIB (RFC 2819) | `etherStatsTable` | the ports, by kind and size |
//! | MILLRACE-AFDX-MIB (docs/mibs) | all | mode, configuration, ports, virtual links, queues |
//!
//! What the switch does not know is no object: a client hears `noSuchInstance`, never a number that nobody has counted.

mod afdx;
mod ethernet;
mod interfaces;
mod system;

pub(crate) use afdx::{MODE, MODE_CHANGED, PREVIOUS_MODE, mode_number};
pub(crate) use interfaces::{IF_ADMIN_STATUS, IF_INDEX, IF_OPER_STATUS};
pub(crate) use system::{SYS_OBJECT_ID, SYS_UP_TIME, TRAP_OID, TRAPS};

use crate::value::Value;
use crate::view::{Builder, Cell, Rows, View};
use millrace_observe_api::{PortStatus, Status};
use std::collections::BTreeMap;

/// What an operator says of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `sysName`.
    pub name: String,
    /// `sysDescr`.
    pub description: String,
    /// `sysContact`.
    pub contact: String,
    /// `sysLocation`.
    pub location: String,
}

/// A switch at a moment, as its agent knows it.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'s> {
    /// What an operator says of it.
    pub identity: &'s Identity,
    /// What it is like.
    pub status: &'s Status,
    /// When the state of each port changed last, in hundredths of a second of the agent.
    pub last_changes: &'s BTreeMap<u32, u32>,
    /// The time of the agent, in hundredths of a second.
    pub ticks: u32,
}

/// The objects of a moment.
pub fn view(moment: Moment<'_>) -> View {
    let mut builder = Builder::default();
    let ports = ports(moment.status);
    system::add(&mut builder, &moment);
    interfaces::add(&mut builder, &moment, &ports);
    ethernet::add(&mut builder, &ports);
    afdx::add(&mut builder, &moment, &ports);
    builder.view()
}

/// A port that has an interface number.
#[derive(Clone, Copy, Debug)]
struct Port<'s> {
    /// `ifIndex`: one more than the number of the port, as there is no interface 0.
    index: u32,
    status: &'s PortStatus,
    /// Whether frames come from a cable or its like; the port of the CPU has none.
    is_ethernet: bool,
}

/// The largest `ifIndex`.
const MAX_INTERFACE: u32 = i32::MAX as u32;

/// `ifIndex` of a port; none of numbers that architectures use for what is no cable.
pub(crate) fn interface(port: u32) -> Option<u32> {
    port.checked_add(1).filter(|index| *index <= MAX_INTERFACE)
}

/// The ports with their interface numbers, by number.
fn ports(status: &Status) -> Vec<Port<'_>> {
    let each = status.ports.iter().filter_map(|status| {
        let is_ethernet = status.spec.is_some() || status.interface.is_some();
        Some(Port { index: interface(status.port)?, status, is_ethernet })
    });
    let mut ports: Vec<Port<'_>> = each.collect();
    ports.sort_by_key(|port| port.index);
    ports
}

fn integer(number: i32) -> Option<Cell> {
    Some(Value::Integer(number).into())
}

fn counter(count: u64) -> Option<Cell> {
    Some(Value::counter(count).into())
}

fn large(count: u64) -> Option<Cell> {
    Some(Value::Counter64(count).into())
}

/// A column of a table whose rows are like that: its number, and what it has of a row.
type Column<R> = (u32, fn(&R) -> Option<Cell>);

/// Adds a table: the name of its entry, its rows with their indexes, its columns.
fn add_table<R>(builder: &mut Builder, entry: &[u32], rows: &[(Vec<u32>, R)], columns: &[Column<R>]) {
    let indexes = Rows::new(rows.iter().map(|(index, _)| &index[..]));
    let cells = columns.iter().map(|(number, cell)| (*number, move |row: usize| cell(&rows[row].1)));
    let cells: Vec<(u32, _)> = cells.collect();
    builder.table(
        entry,
        indexes,
        cells.iter().map(|(number, cell)| (*number, cell as &dyn Fn(usize) -> Option<Cell>)),
    );
}

/// A table with a row for each port.
fn add_port_table<'s>(
    builder: &mut Builder,
    entry: &[u32],
    ports: impl Iterator<Item = Port<'s>>,
    columns: &[Column<Port<'s>>],
) {
    let rows: Vec<_> = ports.map(|port| (vec![port.index], port)).collect();
    add_table(builder, entry, &rows, columns);
}

#[cfg(test)]
mod tests;
