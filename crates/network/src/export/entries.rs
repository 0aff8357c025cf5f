//! What each switch needs to run `programs/afdx.p4`: runtime commands for its tables and accounts, and the plans of its ports.

use super::{FCS, plan};
use crate::bounds::Bounds;
use crate::graph::NodeId;
use crate::model::{Network, Policing, Switch, Vl};
use crate::{MAX_QUEUED, MAX_TIME, SHORTEST_FRAME, Topology};
use foldhash::{HashMap, HashSet};
use millrace_toml_sections::{Measure, quantity};
use millrace_traffic::words::PortPlan;
use std::fmt::Write;

/// The constant part of the destination address of AFDX.
const PREFIX: u32 = 0x0300_0000;
/// The mode in which virtual links pass, and the number of that mode: a bit of the parameter `modes`.
const OPERATIONAL: (u32, u8) = (1, 0x02);
/// The modes in which virtual links of a switch's own end system pass: operational, maintenance, passive.
const MANAGEMENT_MODES: u8 = 0x0e;

/// What a switch needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries {
    /// The name of the switch.
    pub switch: String,
    /// What its files are called, without what tells them apart: letters, digits, `_`, `-`, `.` and `~` alone, and once in the network.
    pub file: String,
    /// Runtime commands for the tables of `afdx.p4`.
    pub commands: String,
    /// The same for the virtual links of management alone, for `millrace run --management-entries`: what a switch without valid entries still forwards. None
    /// if no virtual link that passes it is from or to the own end system of a switch.
    pub management: Option<String>,
    /// Plans of its ports, as `millrace run --tc` reads them.
    pub plans: String,
}

/// A virtual link at a switch.
struct Passing<'n> {
    vl: &'n Vl,
    /// Whether it is from or to the own end system of a switch.
    manages: bool,
    enters: u16,
    leaves: u64,
    /// None: nothing is policed.
    jitter: Option<u64>,
    /// The number of its account: that of those that share it. One that is not set lets all pass: so it is for what is not policed.
    account: u32,
}

/// Which virtual links entries are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    All,
    Management,
}

/// The entries of each switch. A virtual link that has no `jitter` is policed with that of the bounds.
///
/// # Errors
/// A virtual link has neither a jitter nor a bound.
pub fn entries(topology: &Topology<'_>, bounds: &Bounds) -> Result<Vec<Entries>, String> {
    let network = topology.network;
    let first = network.end_systems.len();
    let files = file_names(network);
    let made = network.switches.iter().enumerate().map(|(place, switch)| {
        let node = (first + place) as NodeId;
        let passing = passing(topology, bounds, node)?;
        let manages = passing.iter().any(|passing| passing.manages);
        Ok(Entries {
            switch: switch.name.clone(),
            file: files[place].clone(),
            commands: commands(network, switch, &passing, For::All),
            management: manages.then(|| commands(network, switch, &passing, For::Management)),
            plans: plans(topology, switch, node, &used(passing.iter()))?,
        })
    });
    made.collect()
}

/// For each switch what its files are called.
pub(super) fn file_names(network: &Network) -> Vec<String> {
    let name = |switch: &Switch| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let plain: String = switch.name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        // A file whose name starts with a dot is in no list.
        if plain.starts_with('.') { format!("_{plain}") } else { plain }
    };
    let mut names: Vec<String> = network.switches.iter().map(name).collect();
    let mut known = HashSet::default();
    for (place, name) in names.iter_mut().enumerate() {
        if !known.insert(name.clone()) {
            // The place of a switch is its own.
            *name = format!("{name}~{place}");
        }
    }
    names
}

/// The ports that some virtual link leaves by.
fn used<'p, 'n: 'p>(passing: impl Iterator<Item = &'p Passing<'n>>) -> Vec<u16> {
    let bitmap = passing.fold(0, |bitmap, passing| bitmap | passing.leaves);
    (0..64).filter(|port| bitmap >> port & 1 == 1).collect()
}

fn passing<'n>(topology: &Topology<'n>, bounds: &Bounds, node: NodeId) -> Result<Vec<Passing<'n>>, String> {
    let graph = &topology.graph;
    let switches = &topology.network.switches;
    let own = switches.iter().filter_map(|switch| switch.end_system.as_deref()).collect();
    let mut passing = Vec::new();
    for (place, tree) in topology.trees.iter().enumerate() {
        let Some(hop) = tree.hops.iter().position(|hop| graph.ports[hop.port as usize].to == node) else {
            continue;
        };
        let vl = &topology.network.vls[tree.vl];
        let after = tree.hops.iter().filter(|after| after.before == Some(hop as u32));
        let leaves = after.fold(0, |bitmap, after| bitmap | 1 << graph.ports[after.port as usize].number);
        let jitter = match (vl.policing, vl.jitter) {
            (Policing::None, _) => None,
            _ if vl.shared_account.is_some() => None,
            (_, Some(jitter)) => Some(jitter),
            (_, None) => {
                let why = || {
                    let switch = graph.name(node);
                    format!(
                        "virtual link {} has no `jitter`, and no bound says how late it is at switch `{switch}`",
                        vl.id
                    )
                };
                Some(bounds.jitter_after(place, hop).ok_or_else(why)?.min(MAX_TIME))
            }
        };
        passing.push(Passing {
            vl,
            manages: has_end_among(vl, &own),
            enters: graph.ports[tree.hops[hop].port as usize].to_number,
            leaves,
            jitter,
            account: 0,
        });
    }
    passing.sort_by_key(|passing| passing.vl.id);
    let (mut shared, mut next) = (HashMap::default(), 0);
    for passing in &mut passing {
        let known = passing.vl.shared_account.as_deref().map(|name| *shared.entry(name).or_insert(next));
        passing.account = known.unwrap_or(next);
        next = next.max(passing.account + 1);
    }
    Ok(passing)
}

/// Whether a virtual link is from or to one of these end systems.
fn has_end_among(vl: &Vl, end_systems: &HashSet<&str>) -> bool {
    vl.ends().chain([vl.source.as_str()]).any(|name| end_systems.contains(name))
}

/// Virtual links and accounts have the same numbers in both kinds of entries, so what is counted of them stays in its place.
fn commands(network: &Network, switch: &Switch, passing: &[Passing<'_>], which: For) -> String {
    let mut text = format!(
        "# Switch {} of network {}{}: for programs/afdx.p4.\n# Part number {}, CRC {:#010x}.\n\n",
        switch.name,
        network.name,
        if which == For::Management { ", management alone" } else { "" },
        network.part_number.as_deref().unwrap_or("none"),
        network.crc()
    );
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "table_set_default network set_prefix {PREFIX:#010x}\ntable_set_default switch_mode set_mode {}\n",
        OPERATIONAL.0
    );
    let is_written = |passing: &Passing<'_>| which == For::All || passing.manages;
    let mut set = HashSet::default();
    for (number, passing) in passing.iter().enumerate().filter(|(_, passing)| is_written(passing)) {
        let vl = passing.vl;
        let _ = write!(
            text,
            "\n# {} of {}\ntable_add vls forward {} {} => {number} {} {} {} {:#04x} {:#x} {}\n",
            vl.name,
            vl.source,
            passing.enters,
            vl.id,
            passing.account,
            vl.lmin,
            vl.lmax,
            if passing.manages { MANAGEMENT_MODES } else { OPERATIONAL.1 },
            passing.leaves,
            vl.priority
        );
        if set.insert(passing.account) {
            text.push_str(&account(network, passing).unwrap_or_default());
        }
    }
    if let Some(most) = switch.max_delay {
        text.push_str("\n# Frames that are older do not leave, in microseconds.\n");
        for port in used(passing.iter().filter(|passing| is_written(passing))) {
            let _ = writeln!(
                text,
                "table_add longest_stays set_longest_stay {port} => {}",
                most.div_ceil(1000).max(1)
            );
        }
    }
    text
}

/// What sets the account of a virtual link; none if nothing is policed.
fn account(network: &Network, passing: &Passing<'_>) -> Option<String> {
    let (bag, jitter, lmax, policing) = match passing.vl.shared_account.as_deref() {
        Some(name) => {
            let is = network.accounts.iter().find(|account| account.name == name)?;
            (is.bag, is.jitter, is.lmax, is.policing)
        }
        None => (passing.vl.bag, passing.jitter.unwrap_or(0), passing.vl.lmax, passing.vl.policing),
    };
    let test = match policing {
        Policing::Byte => "bytes",
        Policing::Frame => "frames",
        Policing::Both => "both",
        Policing::None => return None,
    };
    let time = |time| quantity::show(time, Measure::Time);
    Some(format!("account_set accounts {} {} {} {lmax} {test}\n", passing.account, time(bag), time(jitter)))
}

fn plans(topology: &Topology<'_>, switch: &Switch, node: NodeId, used: &[u16]) -> Result<String, String> {
    let graph = &topology.graph;
    let mut text = format!("# Ports of switch {}: for millrace run --tc.\n", switch.name);
    let mut ports: Vec<&crate::Port> =
        graph.ports_of(node).iter().map(|port| &graph.ports[*port as usize]).collect();
    ports.sort_by_key(|port| port.number);
    // A buffer has room for that many of the shortest frames; without one, or with large ones, ports share what the switch has.
    let share = MAX_QUEUED / used.len().max(1) as u32;
    let shortest = SHORTEST_FRAME - u64::from(FCS);
    let frames = switch.buffer.map_or(share, |buffer| (buffer / shortest).clamp(1, share.into()) as u32);
    for port in ports.into_iter().filter(|port| used.contains(&port.number)) {
        let plan = plan(switch, Some((port.rate, frames)), topology.network.overhead)?;
        let _ = write!(text, "\n{}", PortPlan { port: port.number.into(), plan });
    }
    Ok(text)
}
