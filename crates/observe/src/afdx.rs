//! What a program of an AFDX network counts, found by the names that programs/afdx.p4 has.
//!
//! | object | what |
//! | --- | --- |
//! | table `vls` | its entries are the virtual links: two exact keys, port and number of the link; its direct counter counts the frames that come |
//! | parameter `number` of an entry's action | the number of the link among the cells of `vl_...` |
//! | counter `port_discards` | cell 8 P + R: frames from port P that were discarded for the reason R |
//! | counter `vl_discards` | cell 8 N + R: the same of the link with the number N |
//! | counter `port_aged` | cell P: frames for port P that were in the switch for too long |
//! | counter `vl_aged` | cell N: frames of the link that were in the switch for too long |
//!
//! The reasons are those of [`REASONS`], in their order. A name is the last part of that of the control plane. What a program has not
//! is not told.

use millrace_dataplane::Report;
use millrace_observe_api::{AfdxPortStatus, AfdxStatus, VirtualLinkStatus};
use millrace_pipeline::{EntryMatch, MatchKind, Program, TableId};
use millrace_state::{CounterRef, EntryView, Tables, Target};

/// Cells of a port or a link: one for each reason.
const REASONS: u64 = 8;
const BAD_LENGTH: u64 = 0;
const BAD_PREFIX: u64 = 1;
const UNKNOWN_VL: u64 = 2;
const TOO_SHORT: u64 = 3;
const TOO_LONG: u64 = 4;
const POLICED: u64 = 5;
const MODE: u64 = 6;

/// Most virtual links that a status tells, as many as their numbers tell apart.
pub(crate) const MAX_VIRTUAL_LINKS: usize = 1 << 16;

/// The objects of a program that counts virtual links.
struct Objects {
    links: TableId,
    /// The place of the parameter `number` of each action of the table.
    numbers: Vec<Option<usize>>,
    port_discards: Option<CounterRef>,
    port_aged: Option<CounterRef>,
    vl_discards: Option<CounterRef>,
    vl_aged: Option<CounterRef>,
}

/// What the program of a report counts, if it is one of an AFDX network. Waits for whoever writes tables.
pub(crate) fn status(report: &Report) -> Option<AfdxStatus> {
    let objects = Objects::of(&report.program)?;
    let tables = report.tables.lock();
    let cell = |counter: Option<CounterRef>, at: u64| Some(tables.counter_value(counter?, at).ok()?.packets);
    let ports = report.ports.iter().map(|port| {
        let of = |reason| cell(objects.port_discards, u64::from(port.port) * REASONS + reason);
        AfdxPortStatus {
            port: port.port,
            bad_length: of(BAD_LENGTH),
            bad_prefix: of(BAD_PREFIX),
            unknown_vl: of(UNKNOWN_VL),
            aged: cell(objects.port_aged, u64::from(port.port)),
        }
    });
    let ports = ports.collect();
    let links = tables.entries(objects.links).take(MAX_VIRTUAL_LINKS);
    let mut virtual_links: Vec<VirtualLinkStatus> =
        links.filter_map(|entry| objects.link(&tables, &entry)).collect();
    virtual_links.sort_unstable_by_key(|link| (link.port, link.vl));
    Some(AfdxStatus { ports, virtual_links })
}

/// The last part of a name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

impl Objects {
    fn of(program: &Program) -> Option<Objects> {
        let (links, table) = program.tables.iter().find(|(_, table)| {
            let is_exact = table.keys.iter().all(|key| key.kind == MatchKind::Exact);
            last(&table.name) == "vls" && table.keys.len() == 2 && is_exact
        })?;
        let numbers = table.actions.iter().map(|action| {
            let params = &program.actions[action.action].params;
            params.iter().position(|param| last(&program.slots[*param].name) == "number")
        });
        let counter = |name: &str| {
            let named = program.counters.iter().find(|(_, counter)| last(&counter.name) == name);
            named.map(|(id, _)| CounterRef::Indexed(id))
        };
        Some(Objects {
            links,
            numbers: numbers.collect(),
            port_discards: counter("port_discards"),
            port_aged: counter("port_aged"),
            vl_discards: counter("vl_discards"),
            vl_aged: counter("vl_aged"),
        })
    }

    fn link(&self, tables: &Tables, entry: &EntryView) -> Option<VirtualLinkStatus> {
        let [EntryMatch::Exact(port), EntryMatch::Exact(vl)] = &entry.matches[..] else { return None };
        let (port, vl) = (u32::try_from(port.to_u64()?).ok()?, u32::try_from(vl.to_u64()?).ok()?);
        let number = match &entry.target {
            Target::Action(call) => {
                let place = self.numbers.get(call.action).copied().flatten();
                place.and_then(|place| call.args.get(place)?.to_u64())
            }
            Target::Member(_) | Target::Group(_) => None,
        };
        let cell = |counter: Option<CounterRef>, at: Option<u64>| {
            Some(tables.counter_value(counter?, at?).ok()?.packets)
        };
        let of = |reason| {
            let at = number.and_then(|number| number.checked_mul(REASONS)?.checked_add(reason));
            cell(self.vl_discards, at)
        };
        Some(VirtualLinkStatus {
            port,
            vl,
            frames: entry.counter.map(|counter| counter.packets),
            bytes: entry.counter.map(|counter| counter.bytes),
            too_short: of(TOO_SHORT),
            too_long: of(TOO_LONG),
            policed: of(POLICED),
            mode: of(MODE),
            aged: cell(self.vl_aged, number),
        })
    }
}
