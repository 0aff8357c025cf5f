//! MILLRACE-AFDX-MIB (docs/mibs/MILLRACE-AFDX-MIB.txt): mode, configuration, and what a switch of an AFDX network counts.
//!
//! Counters of 32 bits are there for what cannot wrap within an hour (RFC 2578, 7.1.6) and for clients of version 1; counters of 64 bits
//! next to those that can.

use super::{Moment, Port, add_table, counter, integer, interface, large};
use crate::value::Value;
use crate::view::{Builder, Cell};
use millrace_observe_api::{
    AfdxPortStatus, ConfigurationStatus, OwnEndSystemStatus, PlanQueueStatus, QueueStatus, Status,
    VirtualLinkStatus,
};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// `millraceAfdxMIB`. No number was assigned to the project, so it is in the experimental arc.
const MIB: [u32; 6] = [1, 3, 6, 1, 3, 6647];
/// `afdxModeChanged`.
pub(crate) const MODE_CHANGED: [u32; 8] = [1, 3, 6, 1, 3, 6647, 0, 1];
/// `afdxMode.0`.
pub(crate) const MODE: [u32; 10] = [1, 3, 6, 1, 3, 6647, 1, 1, 1, 0];
/// `afdxPreviousMode.0`.
pub(crate) const PREVIOUS_MODE: [u32; 10] = [1, 3, 6, 1, 3, 6647, 1, 1, 2, 0];

/// The modes, in the order of their numbers from 1.
const MODES: [&str; 5] = ["init", "operational", "maintenance", "passive", "quiet"];
/// `afdxConfigurationState`.
const NO_CONFIGURATION: i32 = 1;
const VALID: i32 = 2;
const INVALID: i32 = 3;

/// The number of a mode; none of one that there is not.
pub(crate) fn mode_number(mode: &str) -> Option<i32> {
    (1..).zip(MODES).find(|(_, name)| *name == mode).map(|(number, _)| number)
}

pub(super) fn add(builder: &mut Builder, moment: &Moment<'_>, ports: &[Port<'_>]) {
    let status = moment.status;
    add_switch(builder, moment);
    let drops: Vec<_> = status.drops.iter().map(|(reason, count)| (text_index(reason), *count)).collect();
    // The table's order is that of its indexes, and the texts' that of their bytes: the same.
    add_table(builder, &table(2), &drops, &[(2, |count| counter(*count)), (3, |count| large(*count))]);
    add_ports(builder, status, ports);
    if let Some(afdx) = &status.afdx {
        let links =
            afdx.virtual_links.iter().filter_map(|link| Some((vec![interface(link.port)?, link.vl], link)));
        let links: Vec<_> = links.collect();
        add_table(builder, &table(4), &links, &virtual_link());
    }
    add_table(builder, &table(5), &queues(status), &queue());
    if let Some(own) = &status.own_end_system {
        let OwnEndSystemStatus { frames, discarded, echoes, requests, answers, no_way, busy, refused } = *own;
        for (number, count) in
            (1..).zip([frames, discarded, echoes, requests, answers, no_way, busy, refused])
        {
            builder.scalar(&[&MIB[..], &[1, 6, number]].concat(), counter(count));
        }
    }
}

/// The name of the entry of a table.
fn table(number: u32) -> Vec<u32> {
    [&MIB[..], &[1, number, 1]].concat()
}

fn gauge(number: u64) -> Option<Cell> {
    Some(Value::gauge(number).into())
}

/// A text as an `IMPLIED` index (RFC 2578, 7.7): its bytes, as many as a name has room for.
fn text_index(text: &str) -> Vec<u32> {
    const MAX_INDEX: usize = 64;
    text.bytes().take(MAX_INDEX).map(u32::from).collect()
}

fn add_switch(builder: &mut Builder, moment: &Moment<'_>) {
    let Status { mode, configuration, program, .. } = moment.status;
    let ConfigurationStatus { part_number, crc, fault } = configuration;
    let state = match (fault, part_number, crc) {
        (Some(_), ..) => INVALID,
        (None, None, None) => NO_CONFIGURATION,
        _ => VALID,
    };
    let crc = crc.map_or_else(Vec::new, |crc| crc.to_be_bytes().to_vec());
    let objects: [(u32, Option<Cell>); 9] = [
        (1, mode_number(&mode.mode).and_then(integer)),
        (2, mode_number(&mode.previous).and_then(integer)),
        (3, Some(Value::Ticks(ticks_at(moment, mode.since_ns)).into())),
        (4, counter(mode.changes)),
        (5, Some(Value::text(part_number.as_deref().unwrap_or_default()).into())),
        (6, Some(Value::Text(crc.into()).into())),
        (7, integer(state)),
        (8, Some(Value::text(fault.as_deref().unwrap_or_default()).into())),
        (9, Some(Value::text(program).into())),
    ];
    for (number, cell) in objects {
        builder.scalar(&[&MIB[..], &[1, 1, number]].concat(), cell);
    }
}

/// What `sysUpTime` was at a time of the world; 0 for one before the agent began.
fn ticks_at(moment: &Moment<'_>, since_ns: u64) -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let ago = now.saturating_sub(u128::from(since_ns)) / 10_000_000;
    u32::try_from(ago).map_or(0, |ago| moment.ticks.saturating_sub(ago))
}

/// A port with what the program has discarded of its frames.
struct AfdxPort<'s> {
    port: Port<'s>,
    discards: Option<&'s AfdxPortStatus>,
    aged: u64,
}

fn add_ports(builder: &mut Builder, status: &Status, ports: &[Port<'_>]) {
    let of_program = status.afdx.iter().flat_map(|afdx| &afdx.ports).map(|of_port| (of_port.port, of_port));
    let of_program: BTreeMap<u32, &AfdxPortStatus> = of_program.collect();
    let mut aged: BTreeMap<u32, u64> = BTreeMap::new();
    for plan in &status.plans {
        *aged.entry(plan.port).or_default() +=
            plan.queues.iter().map(|queue| discarded(queue, &["too_old"])).sum::<u64>();
    }
    let rows = ports.iter().map(|port| {
        let number = port.status.port;
        let row = AfdxPort {
            port: *port,
            discards: of_program.get(&number).copied(),
            aged: aged.get(&number).copied().unwrap_or(0),
        };
        (vec![port.index], row)
    });
    add_table(builder, &table(3), &rows.collect::<Vec<_>>(), &afdx_port());
}

fn afdx_port<'s>() -> [super::Column<AfdxPort<'s>>; 11] {
    [
        (1, |row| large(row.port.status.rx_packets)),
        (2, |row| large(row.port.status.rx_bytes)),
        (3, |row| large(row.port.status.tx_packets)),
        (4, |row| large(row.port.status.tx_bytes)),
        (5, |row| counter(row.port.status.rx_drops)),
        (6, |row| counter(row.port.status.tx_drops)),
        (7, |row| counter(row.discards?.bad_length?)),
        (8, |row| counter(row.discards?.bad_prefix?)),
        (9, |row| counter(row.discards?.unknown_vl?)),
        (10, |row| counter(row.port.status.device.as_ref()?.rx_errors.get("crc").copied()?)),
        (11, |row| counter(row.aged + row.discards.and_then(|discards| discards.aged).unwrap_or(0))),
    ]
}

fn virtual_link<'s>() -> [super::Column<&'s VirtualLinkStatus>; 9] {
    [
        (3, |link| counter(link.frames?)),
        (4, |link| large(link.frames?)),
        (5, |link| counter(link.bytes?)),
        (6, |link| large(link.bytes?)),
        (7, |link| counter(link.too_short?)),
        (8, |link| counter(link.too_long?)),
        (9, |link| counter(link.policed?)),
        (10, |link| counter(link.mode?)),
        (11, |link| counter(link.aged?)),
    ]
}

/// A queue of a port, of a plan or of a class.
enum Queue<'s> {
    Planned(&'s PlanQueueStatus),
    Plain(QueueStatus),
}

/// The queues by port and number: of a plan in its order from 1, else one more than their class.
fn queues(status: &Status) -> Vec<(Vec<u32>, Queue<'_>)> {
    let mut queues: BTreeMap<Vec<u32>, Queue<'_>> = BTreeMap::new();
    for queue in &status.queues {
        if let Some(index) = interface(queue.port) {
            queues.insert(vec![index, u32::from(queue.priority) + 1], Queue::Plain(*queue));
        }
    }
    for plan in &status.plans {
        let Some(index) = interface(plan.port) else { continue };
        for (number, queue) in (1..).zip(&plan.queues) {
            queues.insert(vec![index, number], Queue::Planned(queue));
        }
    }
    queues.into_iter().collect()
}

fn queue<'s>() -> [super::Column<Queue<'s>>; 12] {
    fn planned<'q>(queue: &'q Queue<'_>) -> Option<&'q PlanQueueStatus> {
        match queue {
            Queue::Planned(queue) => Some(queue),
            Queue::Plain(_) => None,
        }
    }
    [
        (2, |queue| match queue {
            Queue::Planned(queue) => Some(Value::text(&queue.handle).into()),
            Queue::Plain(queue) => Some(Value::text(&format!("class {}", queue.priority)).into()),
        }),
        (3, |queue| match queue {
            Queue::Planned(queue) => gauge(queue.packets),
            Queue::Plain(queue) => gauge(queue.packets.into()),
        }),
        (4, |queue| gauge(planned(queue)?.bytes)),
        (5, |queue| gauge(planned(queue)?.largest_packets)),
        (6, |queue| gauge(planned(queue)?.largest_bytes)),
        (7, |queue| counter(planned(queue)?.sent)),
        (8, |queue| large(planned(queue)?.sent)),
        (9, |queue| large(planned(queue)?.sent_bytes)),
        (10, |queue| match queue {
            Queue::Planned(queue) => counter(discarded(queue, &["queue_full", "buffer_full"])),
            Queue::Plain(queue) => counter(queue.drops),
        }),
        (11, |queue| counter(discarded(planned(queue)?, &["too_old"]))),
        (12, |queue| {
            let planned = planned(queue)?;
            let all: u64 = planned.drops.values().sum();
            counter(all - discarded(planned, &["queue_full", "buffer_full", "too_old"]))
        }),
        // Rounded up: nobody waited longer than is told.
        (13, |queue| gauge(planned(queue)?.largest_delay_ns.div_ceil(1000))),
    ]
}

fn discarded(queue: &PlanQueueStatus, reasons: &[&str]) -> u64 {
    reasons.iter().filter_map(|reason| queue.drops.get(*reason)).sum()
}
