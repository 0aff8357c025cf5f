//! Networks in the formats of other tools: WoPANets XML, which xTFA reads too; the output ports of Saihu as JSON; the tables of
//! Net2Plan-AFDX as CSV.
//!
//! Those tools know less than an AFDX network has, or other things. What is read is at least as much traffic as the file says, at most
//! as much service, so that a bound of what is read is a bound of what was written; each difference is a note.

mod decimal;
mod json;
mod net2plan;
mod saihu;
mod traffic;
mod wopanets;
mod xml;

use crate::limits::{MAX_FILE, MAX_NAME};
use crate::model::{Bags, EndSystem, Network};
use crate::{Topology, load};
use millrace_toml_sections::{Finding, Findings, Kind, Measure, Problems, quantity, quoted};
use std::collections::BTreeMap;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// XML of WoPANets and xTFA: the physical network.
    Wopanets,
    /// JSON of Saihu: the network of output ports.
    Saihu,
    /// Three CSV tables of Net2Plan-AFDX: switches, end systems, virtual links.
    Net2plan,
}

impl Format {
    /// All, as the command line has them.
    pub const ALL: [(Format, &'static str); 3] =
        [(Format::Wopanets, "wopanets"), (Format::Saihu, "saihu"), (Format::Net2plan, "net2plan")];

    /// The format that a text looks like.
    pub fn of(text: &str) -> Option<Format> {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        match start.chars().next()? {
            '<' => Some(Format::Wopanets),
            '{' => Some(Format::Saihu),
            _ => start.lines().next().is_some_and(|line| line.contains(';')).then_some(Format::Net2plan),
        }
    }
}

/// A file that is read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    /// What problems call it.
    pub name: &'s str,
    /// Its text.
    pub text: &'s str,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The network, checked.
    pub network: Network,
    /// Where it differs from what the file says, and why.
    pub notes: Vec<String>,
}

/// Reads files of a format: one, or the three of Net2Plan-AFDX in any order.
///
/// # Errors
/// Everything that is wrong, in one of the files or in the network that comes of them.
pub fn import(format: Format, sources: &[Source<'_>]) -> Result<Imported, Problems> {
    let [first, ..] = sources else {
        return Err(wrong(
            Source { name: "", text: "" },
            Finding::new(Kind::Missing, 0..0, "there is no file"),
        ));
    };
    if let Some(source) = sources.iter().find(|source| source.text.len() > MAX_FILE) {
        let message = format!("the file has {} bytes: at most {MAX_FILE} (MAX_FILE)", source.text.len());
        return Err(wrong(Source { name: source.name, text: "" }, Finding::new(Kind::Limit, 0..0, message)));
    }
    let most = if format == Format::Net2plan { 3 } else { 1 };
    if sources.len() > most {
        let message = format!("at most {most} files of this format are a network");
        return Err(wrong(sources[most], Finding::new(Kind::Conflict, 0..0, message)));
    }
    let mut notes = Notes::default();
    let network = match format {
        Format::Wopanets => wopanets::read(*first, &mut notes)?,
        Format::Saihu => saihu::read(*first, &mut notes)?,
        Format::Net2plan => net2plan::read(sources, &mut notes)?,
    };
    let network = settle(network, &mut notes).checked(&format!("the network of {}", first.name))?;
    Ok(Imported { network, notes: notes.told() })
}

/// Problems of one finding.
fn wrong(source: Source<'_>, finding: Finding) -> Problems {
    let mut findings = Findings::default();
    findings.push(finding);
    findings.problems(source.name, source.text).unwrap_or_else(|| unreachable!("a finding was made"))
}

/// Sets what follows from the rest: the kind of gaps, and the output jitter of end systems whose tool does not limit it.
fn settle(mut network: Network, notes: &mut Notes) -> Network {
    let is_standard = |bag: u64| {
        let (shortest, longest) = crate::STANDARD_BAG;
        (shortest..=longest).contains(&bag)
            && bag.is_multiple_of(shortest)
            && (bag / shortest).is_power_of_two()
    };
    network.bags = Bags::Standard;
    if network.vls.iter().any(|vl| !is_standard(vl.bag)) {
        network.bags = Bags::Any;
        notes.add("gaps that the standard does not have: `bags` is \"any\"", "");
    }
    let jitters = Topology::new(&network).map(|topology| {
        let jitters = load::output_jitters(&network, &topology.graph, &topology.trees);
        let node = |port: usize| topology.graph.ports[port].node as usize;
        let of_node = jitters.iter().enumerate().filter_map(|(port, jitter)| Some((node(port), (*jitter)?)));
        of_node.collect::<Vec<_>>()
    });
    for (node, jitter) in jitters.unwrap_or_default() {
        let end_system = &mut network.end_systems[node];
        // A longer one is of a port that is overloaded, which is refused as that.
        let jitter = jitter.min(crate::MAX_TIME);
        if jitter > end_system.max_jitter {
            end_system.max_jitter = jitter;
            let shown = quantity::show(jitter, Measure::Time);
            let example = format!("{shown} of `{}`", end_system.name);
            notes.add("output jitter over the 500 us of the standard: `max-jitter` allows it", &example);
        }
    }
    network
}

/// Most names of one kind that are told as not read.
const MAX_UNREAD: usize = 64;

/// Where what is read differs from what is written.
#[derive(Debug, Default)]
struct Notes {
    told: BTreeMap<String, (usize, String)>,
    /// What says something and is not read: what it is, and names.
    unread: BTreeMap<String, Vec<String>>,
}

impl Notes {
    /// Adds a note with an example; the same note is told once, with how often it was made.
    fn add(&mut self, note: &str, example: &str) {
        let (times, _) = self.told.entry(note.to_owned()).or_insert_with(|| (0, example.to_owned()));
        *times += 1;
    }

    /// Adds something of the file that nothing reads, such as "columns of the switches".
    fn unread(&mut self, what: &str, name: &str) {
        if !self.unread.contains_key(what) {
            self.unread.insert(what.to_owned(), Vec::new());
        }
        let Some(names) = self.unread.get_mut(what) else { return };
        if names.len() <= MAX_UNREAD && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }

    fn told(mut self) -> Vec<String> {
        for (what, names) in std::mem::take(&mut self.unread) {
            let more = if names.len() > MAX_UNREAD { ", and more" } else { "" };
            let names: Vec<String> = names.iter().take(MAX_UNREAD).map(|name| quoted(name)).collect();
            self.add(&format!("{what} that are not read: {}{more}", names.join(", ")), "");
        }
        let told = |(note, (times, example)): (String, (usize, String))| match (times, example.is_empty()) {
            (_, true) => note,
            (1, false) => format!("{note}: {example}"),
            (times, false) => format!("{note}: {example} and {} more", times - 1),
        };
        self.told.into_iter().map(told).collect()
    }
}

/// A name of another tool as a name of ours.
fn label(name: &str, notes: &mut Notes) -> String {
    let mut label: String =
        name.chars().map(|c| if c.is_control() || matches!(c, ':' | ',') { '_' } else { c }).collect();
    while label.len() > MAX_NAME {
        label.pop();
    }
    if label.is_empty() {
        label.push('_');
    }
    if label != name {
        notes.add("names with characters that ours cannot have", &label);
    }
    label
}

/// An end system with what the standard says.
fn end_system(name: String, place: usize, latency: u64) -> EndSystem {
    let id = u16::try_from(place + 1).unwrap_or(u16::MAX);
    EndSystem {
        name,
        id,
        latency,
        least_latency: 0,
        receive_latency: 0,
        technological_jitter: 40_000,
        max_jitter: 500_000,
    }
}
