//! What has to fit together: names and numbers that are there once, links, routes, accounts, loads, the CRC.

use super::parse::{Draft, LinkDraft, Read, VlDraft};
use super::routes::Routing;
use crate::graph::{Graph, Tree};
use crate::limits::*;
use crate::load::{Percent, loads, output_jitters};
use crate::model::*;
use foldhash::{HashMap, HashSet};
use millrace_toml_sections::{Finding, Findings, Kind, Measure, Table, nearest, quantity, quoted};
use std::ops::Range;

/// A map from what has to be there once to its place.
struct Once<K>(HashMap<K, Range<usize>>);

impl<K: std::hash::Hash + Eq> Once<K> {
    fn new() -> Once<K> {
        Once(HashMap::default())
    }

    /// Adds one; tells if it is there already.
    fn add(
        &mut self,
        key: K,
        at: Range<usize>,
        what: impl FnOnce() -> String,
        findings: &mut Findings,
    ) -> bool {
        match self.0.get(&key) {
            Some(first) => {
                let first = first.clone();
                findings.push_with(|| Finding::new(Kind::Duplicate, at, what()).also(first, "first here"));
                false
            }
            None => {
                self.0.insert(key, at);
                true
            }
        }
    }
}

/// Checks a draft, fills in what its neighbours say, and makes the model; none if something is wrong. `with_crc`: so is another CRC.
pub(super) fn check(draft: Draft<'_>, with_crc: bool, findings: &mut Findings) -> Option<Network> {
    let Draft { network: whole, mut end_systems, switches, mut links, accounts, vls } = draft;
    names(&end_systems, &switches, findings);
    ids(&mut end_systems, findings);
    connect(&end_systems, &switches, &mut links, findings);
    own_end_systems(&end_systems, &switches, &links, findings);
    unique_accounts(&accounts, findings);
    unique_vls(&vls, findings);
    let (link_tables, links): (Vec<_>, Vec<_>) = links.into_iter().map(|link| (link.table, link.is)).unzip();
    let mut network = Network {
        name: whole.name,
        part_number: whole.part_number,
        overhead: whole.overhead,
        bags: whole.bags,
        end_systems: end_systems.iter().map(|read| read.is.clone()).collect(),
        switches: switches.into_iter().map(|read| read.is).collect(),
        links,
        accounts: accounts.into_iter().map(|read| read.is).collect(),
        vls: Vec::new(),
    };
    let graph = Graph::new(&network.end_systems, &network.switches, &network.links);
    let trees = route(&graph, &vls, &mut network, findings);
    let tables: Vec<Table<'_>> = vls.into_iter().map(|draft| draft.table).collect();
    priorities(&graph, &trees, &network, &tables, findings);
    shared(&graph, &trees, &network, &tables, findings);
    // A load is that of all routes, or says nothing.
    if findings.count() == 0 {
        full_links(&graph, &trees, &network, &link_tables, findings);
        jitters(&graph, &trees, &network, &end_systems, findings);
    }
    if findings.count() == 0
        && with_crc
        && let Some(written) = whole.crc
        && written != network.crc()
    {
        let message =
            format!("`crc` is {written:#010x}, and that of this configuration is {:#010x}", network.crc());
        let finding = Finding::new(Kind::Crc, whole.table.at("crc"), message);
        findings.push(finding.help("a switch with this file goes to mode PASSIVE; `millrace network export --to toml` writes it with its own"));
    }
    (findings.count() == 0).then_some(network)
}

/// A name is that of one node. An empty one was not read.
fn names(end_systems: &[Read<'_, EndSystem>], switches: &[Read<'_, Switch>], findings: &mut Findings) {
    let named = end_systems.iter().map(|read| (read.is.name.as_str(), &read.table));
    let named = named.chain(switches.iter().map(|read| (read.is.name.as_str(), &read.table)));
    let mut known = Once::new();
    for (name, table) in named.filter(|(name, _)| !name.is_empty()) {
        known.add(name, table.at("name"), || format!("two nodes have the name {}", quoted(name)), findings);
    }
}

fn ids(end_systems: &mut [Read<'_, EndSystem>], findings: &mut Findings) {
    let mut known = Once::new();
    for read in end_systems.iter().filter(|read| read.is.id != 0) {
        let id = read.is.id;
        known.add(id, read.table.at("id"), || format!("two end systems have the id {id}"), findings);
    }
    let mut next = 1;
    for read in end_systems.iter_mut().filter(|read| !read.table.has("id")) {
        while known.0.contains_key(&next) {
            next += 1;
        }
        read.is.id = next;
        next += 1;
    }
}

/// Links join nodes that are there, at ports of their own, within one network. Chooses the ports that are not written.
fn connect(
    end_systems: &[Read<'_, EndSystem>],
    switches: &[Read<'_, Switch>],
    links: &mut [LinkDraft<'_>],
    findings: &mut Findings,
) {
    // The network of a switch; none of an end system.
    let mut nodes: HashMap<&str, Option<Side>> =
        end_systems.iter().map(|read| (read.is.name.as_str(), None)).collect();
    nodes.extend(switches.iter().map(|read| (read.is.name.as_str(), Some(read.is.network))));
    let mut ports = Once::new();
    let mut used: HashMap<String, u64> = HashMap::default();
    for link in links.iter() {
        for (end, at) in &link.ends {
            if !nodes.contains_key(end.node.as_str()) {
                findings.push_with(|| unknown("node", &end.node, at.clone(), nodes.keys().copied()));
            }
            if let Some(port) = end.port {
                let what = || format!("port `{}:{port}` has two links", end.node);
                ports.add((end.node.clone(), port), at.clone(), what, findings);
                *used.entry(end.node.clone()).or_default() |= 1 << port;
            }
        }
    }
    let mut joined = Once::new();
    for link in links.iter_mut() {
        let ends = link.ends.clone();
        for ((end, at), is) in ends.iter().zip(&mut link.is.between) {
            if end.port.is_none() {
                let used = used.entry(end.node.clone()).or_default();
                let free = used.trailing_ones();
                if free as usize >= MAX_PORTS {
                    let message =
                        format!("{} has more than {MAX_PORTS} links (MAX_PORTS)", quoted(&end.node));
                    findings.push(Finding::new(Kind::Limit, at.clone(), message));
                    continue;
                }
                *used |= 1 << free;
                is.port = free as u16;
            }
        }
        let [(first, _), (second, _)] = &ends;
        let at = link.table.at("between");
        if first.node == second.node {
            let message =
                format!("a link needs two ends: {} cannot be linked with itself", quoted(&first.node));
            findings.push(Finding::new(Kind::Conflict, at, message));
            continue;
        }
        let side = |end: &WrittenEnd| nodes.get(end.node.as_str()).copied().flatten();
        link.is.network = match (side(first), side(second)) {
            (Some(a), Some(b)) if a != b => {
                let message =
                    format!("`{}` is in network {a} and `{}` in network {b}", first.node, second.node);
                findings.push(Finding::new(Kind::Conflict, at.clone(), message));
                a
            }
            (Some(side), _) | (None, Some(side)) => {
                if link.network.is_some_and(|written| written != side) {
                    let message = format!("the switch of this link is in network {side}");
                    findings.push(Finding::new(Kind::Conflict, link.table.at("network"), message));
                }
                side
            }
            (None, None) => link.network.unwrap_or(Side::A),
        };
        // A path names nodes, so one link leads from one to the other.
        let directions = if link.is.one_way { 1 } else { 2 };
        let senders = ends[..directions].iter().map(|(end, _)| end);
        if let Some(switch) = senders.into_iter().find(|end| side(end).is_some()) {
            port_rate(&switch.node, link, findings);
        }
        let pairs = [(&first.node, &second.node), (&second.node, &first.node)];
        for (from, to) in &pairs[..directions] {
            let key = ((*from).clone(), (*to).clone(), link.is.network);
            if !joined.add(key, at.clone(), || format!("two links lead from `{from}` to `{to}`"), findings) {
                break;
            }
        }
    }
}

/// The port of a switch that sends by a link can have its rate.
fn port_rate(switch: &str, link: &LinkDraft<'_>, findings: &mut Findings) {
    if link.is.rate > MAX_PORT_RATE {
        let rate = |rate| quantity::show(rate, Measure::Rate);
        let message = format!(
            "switch {} sends by this link with {}: at most {} (MAX_PORT_RATE)",
            quoted(switch),
            rate(link.is.rate),
            rate(MAX_PORT_RATE)
        );
        findings.push(Finding::new(Kind::Limit, link.table.at("rate"), message));
    }
}

/// The own end system of a switch is there, is that of no other switch, and has one link, with its switch.
fn own_end_systems(
    end_systems: &[Read<'_, EndSystem>],
    switches: &[Read<'_, Switch>],
    links: &[LinkDraft<'_>],
    findings: &mut Findings,
) {
    let known: HashSet<&str> = end_systems.iter().map(|read| read.is.name.as_str()).collect();
    let mut owned = Once::new();
    // The other end of each link of the end systems that switches own.
    let mut others: HashMap<&str, Vec<&str>> =
        switches.iter().filter_map(|read| Some((read.is.end_system.as_deref()?, Vec::new()))).collect();
    for link in links {
        let [first, second] = link.ends.each_ref().map(|(end, _)| end.node.as_str());
        for (node, other) in [(first, second), (second, first)] {
            if let Some(others) = others.get_mut(node) {
                others.push(other);
            }
        }
    }
    for read in switches {
        let Some(name) = read.is.end_system.as_deref() else { continue };
        let at = read.table.at("end-system");
        if !known.contains(name) {
            findings.push_with(|| unknown("end system", name, at, known.iter().copied()));
            continue;
        }
        let what = || format!("end system {} is that of two switches", quoted(name));
        let is_first = owned.add(name, at.clone(), what, findings);
        if is_first && others.get(name).is_none_or(|others| others[..] != [read.is.name.as_str()]) {
            let message = format!(
                "end system {} is not inside of switch {}: it needs one link, with that switch",
                quoted(name),
                quoted(&read.is.name)
            );
            findings.push(Finding::new(Kind::Conflict, at, message));
        }
    }
}

fn unique_accounts(accounts: &[Read<'_, Account>], findings: &mut Findings) {
    let mut known = Once::new();
    for read in accounts.iter().filter(|read| !read.is.name.is_empty()) {
        let name = read.is.name.as_str();
        let what = || format!("two accounts have the name {}", quoted(name));
        known.add(name, read.table.at("name"), what, findings);
    }
}

fn unique_vls(vls: &[VlDraft<'_>], findings: &mut Findings) {
    let (mut ids, mut names) = (Once::new(), Once::new());
    for draft in vls {
        let Some(id) = draft.id else { continue };
        if ids.add(id, draft.table.at("id"), || format!("two virtual links have the id {id}"), findings) {
            let name = draft.is.name.as_str();
            let what = || format!("two virtual links have the name {}", quoted(name));
            names.add(name, draft.table.at("name"), what, findings);
        }
    }
}

/// Routes virtual links and adds them to the model.
fn route(graph: &Graph, vls: &[VlDraft<'_>], network: &mut Network, findings: &mut Findings) -> Vec<Tree> {
    let mut routing = Routing::new(graph);
    let (mut trees, mut hops) = (Vec::new(), 0);
    for (place, draft) in vls.iter().enumerate() {
        let mut vl = draft.is.clone();
        // Of a file with more hops than that no further one is looked at.
        if hops <= MAX_HOPS {
            for (route, tree) in routing.route(place, draft, findings) {
                hops += tree.hops.len();
                vl.routes.push(route);
                trees.push(tree);
            }
            if hops > MAX_HOPS {
                let message = format!(
                    "the virtual links up to here take {hops} output ports: at most {MAX_HOPS} (MAX_HOPS)"
                );
                findings.push(Finding::new(Kind::Limit, draft.table.header(), message));
            }
        }
        network.vls.push(vl);
    }
    trees
}

/// Switches tell the priorities of their virtual links apart.
fn priorities(
    graph: &Graph,
    trees: &[Tree],
    network: &Network,
    tables: &[Table<'_>],
    findings: &mut Findings,
) {
    for tree in trees {
        let priority = network.vls[tree.vl].priority;
        let few = tree.hops.iter().find_map(|hop| {
            let switch = &network.switches[graph.switch(graph.ports[hop.port as usize].node)?];
            (switch.scheduler.has_priorities() && priority >= switch.priorities).then_some(switch)
        });
        if let Some(switch) = few {
            let message = format!(
                "priority {priority} passes switch `{}`, which tells {} apart: 0 to {}",
                switch.name,
                switch.priorities,
                switch.priorities - 1
            );
            findings.push(Finding::new(Kind::Conflict, tables[tree.vl].at("priority"), message));
        }
    }
}

/// Accounts that are shared are there, are large enough, and have one port at each switch: the worker of that port owns their state.
fn shared(graph: &Graph, trees: &[Tree], network: &Network, tables: &[Table<'_>], findings: &mut Findings) {
    let accounts: HashMap<&str, &Account> =
        network.accounts.iter().map(|account| (account.name.as_str(), account)).collect();
    for (vl, table) in network.vls.iter().zip(tables) {
        let Some(name) = &vl.shared_account else { continue };
        let at = table.at("shared-account");
        let Some(account) = accounts.get(name.as_str()) else {
            findings.push_with(|| unknown("account", name, at, accounts.keys().copied()));
            continue;
        };
        if vl.lmax > account.lmax {
            let message = format!(
                "account `{name}` is for frames up to {} bytes, and this virtual link has {}",
                account.lmax, vl.lmax
            );
            findings.push(Finding::new(Kind::Conflict, at.clone(), message));
        }
        for key in ["jitter", "policing"].into_iter().filter(|key| table.has(key)) {
            // A file that is written from a model has every default.
            if key == "policing" && vl.policing == account.policing {
                continue;
            }
            let message = format!("`{key}` is that of the account `{name}`");
            findings
                .push(Finding::new(Kind::Conflict, table.at(key), message).also(at.clone(), "the account"));
        }
    }
    let mut entered: HashMap<(&str, u32), (u32, usize)> = HashMap::default();
    let mut told = HashSet::default();
    for tree in trees {
        let Some(name) = network.vls[tree.vl].shared_account.as_deref() else { continue };
        for hop in &tree.hops {
            let port = &graph.ports[hop.port as usize];
            if graph.switch(port.to).is_none() {
                continue;
            }
            let (first, by) = *entered.entry((name, port.to)).or_insert((hop.port, tree.vl));
            if first != hop.port && told.insert((name, tree.vl)) {
                let message = format!(
                    "account {} is shared over two ports of switch `{}`: {} is one, and {} the other",
                    quoted(name),
                    graph.name(port.to),
                    port.to_number,
                    graph.ports[first as usize].to_number
                );
                let finding = Finding::new(Kind::Conflict, tables[tree.vl].at("shared-account"), message);
                findings.push(finding.also(tables[by].at("shared-account"), "enters by the other port"));
            }
        }
    }
}

fn full_links(
    graph: &Graph,
    trees: &[Tree],
    network: &Network,
    tables: &[Table<'_>],
    findings: &mut Findings,
) {
    let loads = loads(network, graph, trees);
    for (id, (port, load)) in graph.ports.iter().zip(&loads).enumerate() {
        if load.exceeds(port.service_rate) {
            let message = format!(
                "{} virtual links take {} of port {}: {} of {}",
                load.vls,
                Percent(load.share(port.service_rate)),
                graph.port_name(id as u32),
                quantity::show(load.bits_per_second(), Measure::Rate),
                quantity::show(port.service_rate, Measure::Rate)
            );
            findings.push(Finding::new(Kind::Load, tables[port.link].header(), message));
        }
    }
}

fn jitters(
    graph: &Graph,
    trees: &[Tree],
    network: &Network,
    end_systems: &[Read<'_, EndSystem>],
    findings: &mut Findings,
) {
    for (id, jitter) in output_jitters(network, graph, trees).into_iter().enumerate() {
        let Some(jitter) = jitter else { continue };
        let read = &end_systems[graph.ports[id].node as usize];
        if jitter > read.is.max_jitter {
            let message = format!(
                "the output jitter of port {} is {}, and {} is allowed (`max-jitter`)",
                graph.port_name(id as u32),
                quantity::show(jitter, Measure::Time),
                quantity::show(read.is.max_jitter, Measure::Time)
            );
            let finding = Finding::new(Kind::Load, read.table.at("max-jitter"), message);
            findings.push(finding.help(
                "by the standard's formula each virtual link of the end system adds its longest frame",
            ));
        }
    }
}

/// A name that nothing has.
fn unknown<'n>(what: &str, name: &str, at: Range<usize>, known: impl Iterator<Item = &'n str>) -> Finding {
    let finding = Finding::new(Kind::UnknownName, at, format!("there is no {what} {}", quoted(name)));
    match nearest(name, known) {
        Some(near) => finding.help(format!("did you mean `{near}`?")),
        None => finding,
    }
}
