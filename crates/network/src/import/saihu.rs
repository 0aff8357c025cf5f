//! The output ports of Saihu, as JSON: servers with service curves, and flows that pass some of them.
//!
//! A server is an output port. It leads to the node whose ports come after it on paths: servers that follow the same one are ports of
//! one node. Of two ports of a node that lead to one other node the second leads there over a node of its own, as one link leads from a node
//! to another. Flows come from an end system of the node that they enter, over a link so fast that it costs next to nothing, and end at
//! an end system after their last server.

mod nodes;

use super::decimal::{At, LENGTHS, RATES, Round, TIMES, Units, amount};
use super::json::Json;
use super::traffic::{self, Bucket};
use super::{Notes, Source, label, wrong};
use crate::limits::{MAX_PATH, MAX_PORT_RATE, MAX_RATE, MAX_VLS};
use crate::model::*;
use foldhash::{HashMap, HashSet};
use millrace_toml_sections::{Finding, Kind, Problems, quoted};
use std::cell::Cell;

type Result<T> = std::result::Result<T, At<String>>;

/// Reads a file.
pub(super) fn read(source: Source<'_>, notes: &mut Notes) -> std::result::Result<Network, Problems> {
    let network = Json::parse(source.text).map_err(|fault| (Kind::Syntax, fault));
    let network = network.and_then(|whole| network_of(whole, notes).map_err(|fault| (Kind::Value, fault)));
    network.map_err(|(kind, At { is, at })| wrong(source, Finding::new(kind, at, is)))
}

/// The members of an object.
struct Members<'t> {
    of: Json<'t>,
    /// With whether it was asked for.
    keys: HashMap<String, (Json<'t>, Cell<bool>)>,
}

impl<'t> Members<'t> {
    fn of(of: Json<'t>) -> Result<Members<'t>> {
        let keys = of.object()?.into_iter().map(|(key, value)| (key, (value, Cell::new(false))));
        Ok(Members { of, keys: keys.collect() })
    }

    fn get(&self, key: &str) -> Option<Json<'t>> {
        let (value, asked) = self.keys.get(key)?;
        asked.set(true);
        Some(*value)
    }

    /// Says which keys nobody has asked for.
    fn tell_unread(&self, what: &str, notes: &mut Notes) {
        let unread = self.keys.iter().filter(|(_, (_, asked))| !asked.get()).map(|(key, _)| key.as_str());
        let mut unread: Vec<&str> = unread.collect();
        unread.sort_unstable();
        unread.into_iter().for_each(|key| notes.unread(what, key));
    }

    fn needed(&self, key: &str) -> Result<Json<'t>> {
        let missing =
            || At { is: format!("`{key}` is missing"), at: self.of.at().start..self.of.at().start + 1 };
        self.get(key).ok_or_else(missing)
    }

    /// The unit of numbers without one, here or further out.
    fn unit(&self, key: &str, outer: &str) -> Result<String> {
        self.get(key).map_or_else(|| Ok(outer.to_owned()), Json::string)
    }
}

/// Units of numbers without one.
#[derive(Clone)]
struct Without {
    time: String,
    data: String,
    rate: String,
}

impl Without {
    fn of(members: &Members<'_>, outer: &Without) -> Result<Without> {
        Ok(Without {
            time: members.unit("time_unit", &outer.time)?,
            data: members.unit("data_unit", &outer.data)?,
            rate: members.unit("rate_unit", &outer.rate)?,
        })
    }
}

fn number(value: Json<'_>, units: Units, without: &str, round: Round) -> Result<u64> {
    let text = value.amount()?;
    amount(&text, units, without, round)
        .map_err(|why| At { is: format!("{}: {why}", quoted(&text)), at: value.at() })
}

/// Pairs of two lists of a curve.
fn curve<'t>(members: &Members<'t>, first: &str, second: &str) -> Result<Vec<(Json<'t>, Json<'t>)>> {
    let (firsts, seconds) = (members.needed(first)?.list()?, members.needed(second)?.list()?);
    if firsts.is_empty() || firsts.len() != seconds.len() {
        let is = format!("`{first}` and `{second}` have as many elements each, one at least");
        return Err(At { is, at: members.of.at() });
    }
    Ok(firsts.into_iter().zip(seconds).collect())
}

struct Server {
    name: String,
    latency: u64,
    rate: u64,
    capacity: u64,
}

struct Flow<'t> {
    name: String,
    at: Json<'t>,
    paths: Vec<Vec<usize>>,
    bucket: Bucket,
}

fn network_of(whole: Json<'_>, notes: &mut Notes) -> Result<Network> {
    let whole = Members::of(whole)?;
    let about = Members::of(whole.needed("network")?)?;
    let policy = about.get("multiplexing");
    let scheduler =
        match policy.map(Json::string).transpose()?.as_deref().map(str::to_ascii_uppercase).as_deref() {
            None | Some("FIFO") => Scheduler::Fifo,
            Some("ARBITRARY") => Scheduler::Arbitrary,
            Some(_) => {
                let at = policy.map_or(0..0, Json::at);
                return Err(At { is: "`multiplexing` is FIFO or ARBITRARY".into(), at });
            }
        };
    let units = Without { time: "s".into(), data: "B".into(), rate: "bps".into() };
    let units = Without::of(&about, &units)?;
    let default_capacity = about.get("capacity");
    let lengths = (about.get("max_packet_length"), about.get("min_packet_length"));
    let (mut servers, mut places) = (Vec::new(), HashMap::default());
    for value in whole.needed("servers")?.list()? {
        let server = server(value, &units, default_capacity, notes)?;
        if places.insert(server.name.clone(), servers.len()).is_some() {
            return Err(At {
                is: format!("two servers have the name {}", quoted(&server.name)),
                at: value.at(),
            });
        }
        servers.push(server);
    }
    let mut flows = Vec::new();
    for value in whole.needed("flows")?.list()? {
        flows.push(flow(value, &units, lengths, &places, notes)?);
    }
    if flows.len() > MAX_VLS {
        return Err(At {
            is: format!("{} flows: at most {MAX_VLS} (MAX_VLS)", flows.len()),
            at: whole.of.at(),
        });
    }
    let name = about.get("name").map_or_else(|| Ok("network".to_owned()), Json::string)?;
    whole.tell_unread("keys of the file", notes);
    about.tell_unread("keys of `network`", notes);
    build(label(&name, notes), scheduler, &servers, &flows, notes)
}

fn server(value: Json<'_>, units: &Without, capacity: Option<Json<'_>>, notes: &mut Notes) -> Result<Server> {
    let members = Members::of(value)?;
    let own = Without::of(&members, units)?;
    let name = members.needed("name")?.string()?;
    let service = Members::of(members.needed("service_curve")?)?;
    // The curve is the largest of all its parts: each of them is a bound from below. The one with the least latency is taken.
    let parts = curve(&service, "latencies", "rates")?;
    let mut read = Vec::new();
    for (latency, rate) in &parts {
        let rate_at = rate.at();
        let part =
            (number(*latency, TIMES, &own.time, Round::Up)?, number(*rate, RATES, &own.rate, Round::Down)?);
        if part.1 == 0 {
            return Err(At { is: "a rate of 0 serves nothing".into(), at: rate_at });
        }
        read.push(part);
    }
    let (latency, rate) = read.iter().copied().min_by_key(|(latency, _)| *latency).unwrap_or((0, 1));
    if parts.len() > 1 {
        notes.add("service curves of several parts: the one with the least latency is read", &name);
    }
    let largest = read.iter().map(|(_, rate)| *rate).max().unwrap_or(rate);
    let capacity = match members.get("capacity") {
        Some(capacity) => number(capacity, RATES, &own.rate, Round::Up)?,
        None => match capacity {
            Some(capacity) => number(capacity, RATES, &units.rate, Round::Up)?,
            None => largest,
        },
    };
    let capacity = capacity.clamp(1, MAX_RATE);
    if latency > crate::MAX_TIME {
        return Err(At { is: "a latency is at most 10 s (MAX_TIME)".into(), at: value.at() });
    }
    members.tell_unread("keys of servers", notes);
    service.tell_unread("keys of `service_curve`", notes);
    Ok(Server { name, latency, rate: rate.min(capacity), capacity })
}

fn flow<'t>(
    value: Json<'t>,
    units: &Without,
    (longest, shortest): (Option<Json<'_>>, Option<Json<'_>>),
    places: &HashMap<String, usize>,
    notes: &mut Notes,
) -> Result<Flow<'t>> {
    let members = Members::of(value)?;
    let own = Without::of(&members, units)?;
    let path = |path: Json<'_>| -> Result<Vec<usize>> {
        let mut read = Vec::new();
        let steps = path.list()?;
        if steps.len() > MAX_PATH {
            let is = format!("a path of {} servers: at most {MAX_PATH} (MAX_PATH)", steps.len());
            return Err(At { is, at: path.at().start..path.at().start + 1 });
        }
        for step in steps {
            let name = step.string()?;
            let unknown = || At { is: format!("there is no server {}", quoted(&name)), at: step.at() };
            let place = *places.get(&name).ok_or_else(unknown)?;
            if read.contains(&place) {
                return Err(At { is: format!("{} is twice on the path", quoted(&name)), at: step.at() });
            }
            read.push(place);
        }
        match read.is_empty() {
            true => Err(At { is: "a path has a server at least".into(), at: path.at() }),
            false => Ok(read),
        }
    };
    let mut paths = vec![path(members.needed("path")?)?];
    if let Some(more) = members.get("multicast") {
        for one in more.list()? {
            let one = Members::of(one)?;
            paths.push(path(one.needed("path")?)?);
            one.tell_unread("keys of `multicast`", notes);
        }
    }
    let arrival = Members::of(members.needed("arrival_curve")?)?;
    // The curve is the least of its parts: each of them is a bound from above. The one with the least rate lasts.
    let mut buckets = Vec::new();
    for (burst, rate) in curve(&arrival, "bursts", "rates")? {
        let rate = number(rate, RATES, &own.rate, Round::Up)?;
        buckets.push((rate, number(burst, LENGTHS, &own.data, Round::Up)?));
    }
    let (rate, burst) = buckets.into_iter().min().unwrap_or((0, 0));
    let length = |key, whole: Option<Json<'_>>, round| match members.get(key) {
        Some(length) => number(length, LENGTHS, &own.data, round).map(Some),
        None => whole.map(|length| number(length, LENGTHS, &units.data, round)).transpose(),
    };
    let longest = length("max_packet_length", longest, Round::Up)?;
    let shortest = length("min_packet_length", shortest, Round::Down)?;
    let name = members.needed("name")?.string()?;
    members.tell_unread("keys of flows", notes);
    arrival.tell_unread("keys of `arrival_curve`", notes);
    Ok(Flow { name, at: value, paths, bucket: Bucket { burst, rate, longest, shortest } })
}

fn build(
    name: String,
    scheduler: Scheduler,
    servers: &[Server],
    flows: &[Flow<'_>],
    notes: &mut Notes,
) -> Result<Network> {
    let node_of = nodes::nodes(servers, flows);
    // Those whose ports have names of one beginning: of two such nodes each has the name of its first port.
    let firsts = || node_of.iter().enumerate().filter(|(place, node)| place == *node).map(|(place, _)| place);
    let mut alike: HashMap<&str, usize> = HashMap::default();
    firsts().for_each(|node| *alike.entry(nodes::beginning(&servers[node])).or_default() += 1);
    let mut network = Network { bags: Bags::Any, ..Network::empty(name, 0) };
    let (mut switch_names, mut told) = (HashMap::default(), HashSet::default());
    for node in firsts() {
        let beginning = nodes::beginning(&servers[node]);
        let is_alone = alike[beginning] == 1;
        if !is_alone && told.insert(beginning) {
            let what =
                "ports that are read as those of several nodes, as paths take these twice or by two links";
            notes.add(what, beginning);
        }
        let name = label(if is_alone { beginning } else { &servers[node].name }, notes);
        switch_names.insert(node, name.clone());
        network.switches.push(switch(name, scheduler));
    }
    let next = lead(servers, flows, &node_of)?;
    let mut joined = Joined {
        network: &mut network,
        names: &switch_names,
        end_systems: HashSet::default(),
        fast: HashSet::default(),
        linked: HashSet::default(),
        between: Vec::new(),
    };
    for ((server, next), node) in servers.iter().zip(&next).zip(&node_of) {
        joined.server(server, *node, *next, scheduler, notes);
    }
    for (id, flow) in flows.iter().enumerate() {
        let vl = joined.flow((id, flow), servers, (&node_of, &next), notes)?;
        joined.network.vls.push(vl);
    }
    notes.add("flows come from end systems over links of 10 Tbit/s, which add a few ns to bounds", "");
    number_ports(&mut network);
    Ok(network)
}

/// Where each server leads: to the node of those after it, else to an end system.
fn lead(servers: &[Server], flows: &[Flow<'_>], node_of: &[usize]) -> Result<Vec<Option<usize>>> {
    let mut next: Vec<Option<usize>> = vec![None; servers.len()];
    for flow in flows {
        for pair in flow.paths.iter().flat_map(|path| path.windows(2)) {
            let to = node_of[pair[1]];
            if to == node_of[pair[0]] {
                let name = &servers[pair[0]].name;
                let is = format!("after {} comes a port of its own node", quoted(name));
                return Err(At { is, at: flow.at.at() });
            }
            next[pair[0]] = Some(to);
        }
    }
    Ok(next)
}

/// A network whose links and end systems are being added.
struct Joined<'n> {
    network: &'n mut Network,
    /// Of each node its name.
    names: &'n HashMap<usize, String>,
    /// Those that are there.
    end_systems: HashSet<String>,
    /// Links of no cost that are there, by their ends.
    fast: HashSet<(String, String)>,
    /// Nodes with a link from the first to the second.
    linked: HashSet<(usize, usize)>,
    /// Of each server the node that it leads to before the one after it on paths, if there is one.
    between: Vec<Option<String>>,
}

impl Joined<'_> {
    fn end_system(&mut self, name: &str) {
        if self.end_systems.insert(name.to_owned()) {
            let end_system = super::end_system(name.to_owned(), self.network.end_systems.len(), 0);
            self.network.end_systems.push(end_system);
        }
    }

    /// A link that takes as little time as one of its rate can.
    fn fast_link(&mut self, from: &str, to: &str, rate: u64) {
        if self.fast.insert((from.to_owned(), to.to_owned())) {
            self.network.links.push(one_way(from, to, (rate, rate), None));
        }
    }

    /// Adds the link of a server.
    fn server(
        &mut self,
        server: &Server,
        node: usize,
        next: Option<usize>,
        scheduler: Scheduler,
        notes: &mut Notes,
    ) {
        let is_second = next.is_some_and(|next| !self.linked.insert((node, next)));
        let via = is_second.then(|| label(&format!("via-{}", server.name), notes));
        self.between.push(via.clone());
        let to = match (next, via) {
            (Some(next), Some(via)) => {
                notes.add(
                    "second links from one node to another lead over a node of 400 Gbit/s, which adds a few ns to bounds",
                    &server.name,
                );
                self.network.switches.push(switch(via.clone(), scheduler));
                self.fast_link(&via, &self.names[&next].clone(), MAX_PORT_RATE);
                via
            }
            (Some(next), None) => self.names[&next].clone(),
            (None, _) => {
                let sink = label(&format!("sink-{}", server.name), notes);
                self.end_system(&sink);
                sink
            }
        };
        let rates = (server.capacity, server.rate);
        self.network.links.push(one_way(&self.names[&node], &to, rates, Some(server.latency)));
    }

    /// The virtual link of a flow, with what it comes from and ends at.
    fn flow(
        &mut self,
        (id, flow): (usize, &Flow<'_>),
        servers: &[Server],
        (node_of, next): (&[usize], &[Option<usize>]),
        notes: &mut Notes,
    ) -> Result<Vl> {
        let name = label(&flow.name, notes);
        let source = label(&format!("source-{}", self.names[&node_of[flow.paths[0][0]]]), notes);
        let traffic = traffic::bucket(flow.bucket, 0, notes, &name);
        let traffic = traffic.map_err(|why| At {
            is: format!("flow {} is no virtual link: {why}", quoted(&name)),
            at: flow.at.at(),
        })?;
        self.end_system(&source);
        let mut paths = Vec::new();
        for path in &flow.paths {
            let mut names: Vec<String> = Vec::new();
            for server in path {
                names.push(self.names[&node_of[*server]].clone());
                names.extend(self.between[*server].clone());
            }
            self.fast_link(&source, &names[0], MAX_RATE);
            let last = path[path.len() - 1];
            match next[last] {
                None => names.push(label(&format!("sink-{}", servers[last].name), notes)),
                Some(node) => {
                    let at = self.names[&node].clone();
                    let sink = label(&format!("end-{at}"), notes);
                    self.end_system(&sink);
                    self.fast_link(&at, &sink, MAX_PORT_RATE);
                    names.extend([at, sink]);
                }
            }
            paths.push(names);
        }
        let mut vl = traffic.vl(id as u16, name, source);
        vl.routes.push(Route { network: Side::A, paths });
        Ok(vl)
    }
}

fn switch(name: String, scheduler: Scheduler) -> Switch {
    Switch {
        name,
        network: Side::A,
        latency: 0,
        least_latency: 0,
        scheduler,
        priorities: 2,
        buffer: None,
        max_delay: None,
        end_system: None,
    }
}

fn one_way(from: &str, to: &str, (rate, service_rate): (u64, u64), latency: Option<u64>) -> Link {
    let end = |node: &str| End { node: node.to_owned(), port: 0 };
    Link {
        between: [end(from), end(to)],
        network: Side::A,
        rate,
        service_rate,
        latency,
        propagation: 0,
        one_way: true,
    }
}

/// Numbers the ports of each node in the order of links.
pub(super) fn number_ports(network: &mut Network) {
    let mut next: HashMap<String, u16> = HashMap::default();
    for end in network.links.iter_mut().flat_map(|link| &mut link.between) {
        let next = next.entry(end.node.clone()).or_default();
        end.port = *next;
        *next = next.saturating_add(1);
    }
}
