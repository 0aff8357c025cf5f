//! Upper bounds of delays, jitters and backlogs: the network as the calculus has it, and its answers by virtual link and port.

use crate::Topology;
use crate::graph::{Leaf, PortId, Tree};
use crate::load::{Load, frame_bits};
use crate::model::{Account, Network, Policing, Scheduler, Vl};
use millrace_calculus as calculus;
use millrace_calculus::{
    Arrival, Cross, Flow, LinearPrograms, Link, RateLatency, Route, RouteId, Server, ServerId, Time, Transfer,
};
pub use millrace_calculus::{Method, TotalFlow};
use std::collections::BTreeMap;
use std::fmt;

/// The bounds of a network. Times are in nanoseconds, rounded up; the least times of paths are rounded down.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Of each path, in the order of [`Topology::trees`] and of their leaves.
    pub paths: Vec<Path>,
    /// Of each output port.
    pub ports: Vec<PortBound>,
    /// Of each tree and each of its hops, by how much frames may be late when they come to the node after the hop.
    late: Vec<Vec<Option<u64>>>,
}

/// A path and its bound.
#[derive(Clone, Debug)]
pub struct Path {
    /// The tree, by its place.
    pub tree: usize,
    /// The leaf, by its place there.
    pub leaf: usize,
    /// The bound, or why there is none.
    pub bound: Result<PathBound, String>,
}

/// The bound of a path: from the release of a frame by its regulator until an application has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBound {
    /// No frame takes longer.
    pub delay: u64,
    /// No frame takes less.
    pub least: u64,
    /// No two frames differ by more.
    pub jitter: u64,
    /// The analysis that found it.
    pub method: Method,
}

/// The bound of an output port.
#[derive(Clone, Debug)]
pub struct PortBound {
    /// What its virtual links take of it.
    pub load: Load,
    /// The bound, or why there is none; none if no virtual link passes it.
    pub bound: Option<Result<Queue, String>>,
}

/// What waits at a port at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Bits that wait or are being sent, what the wire adds included.
    pub backlog: u64,
    /// Bytes of room for frames, each whole until its last bit has left; what the wire adds included.
    pub room: u64,
    /// Frames.
    pub frames: u64,
    /// Bytes of the longest frame that passes it, what the wire adds included.
    pub longest: u64,
    /// The longest from the last bit of a frame to its last bit on the link, latency included.
    pub delay: u64,
}

/// What the calculus has of a network: a server for each port, a flow for each tree.
///
/// A frame that takes longer than a port allows is discarded, and a frame that finds no room is, too: what is left is less than without
/// these limits, and a bound without them holds.
///
/// # Errors
/// The network is above a limit of the calculus, which is named.
pub fn model(topology: &Topology<'_>) -> Result<calculus::Network, String> {
    let network = topology.network;
    let graph = &topology.graph;
    let server = |(id, port): (usize, &crate::Port)| {
        let scheduler = match graph.switch(port.node).map(|place| network.switches[place].scheduler) {
            // An end system sends in the order in which its regulators release.
            None | Some(Scheduler::Fifo) => calculus::Scheduler::Fifo,
            Some(Scheduler::Priority) => calculus::Scheduler::StrictPriority,
            Some(Scheduler::RoundRobin) => calculus::Scheduler::Unsupported("round-robin".to_owned()),
            Some(Scheduler::Arbitrary) => calculus::Scheduler::Arbitrary,
        };
        Server {
            name: graph.port_name(id as PortId),
            service: vec![RateLatency { rate: port.service_rate, latency: Time::ZERO }],
            latency: calculus::Latency {
                lowest: Time::from_ns(port.least_latency),
                largest: Time::from_ns(port.latency),
            },
            link: Link { rate: Some(port.rate), propagation: Time::from_ns(port.propagation) },
            scheduler,
        }
    };
    let servers = graph.ports.iter().enumerate().map(server).collect();
    let flows = topology.trees.iter().map(|tree| flow(topology, tree)).collect();
    calculus::Network::new(servers, flows, Transfer::Frames).map_err(|error| error.to_string())
}

fn flow(topology: &Topology<'_>, tree: &Tree) -> Flow {
    let vl = &topology.network.vls[tree.vl];
    let overhead = topology.network.overhead;
    let route = |leaf: &Leaf| Route {
        destination: topology.graph.name(leaf.node).to_owned(),
        servers: topology.path(tree, *leaf).into_iter().map(|port| ServerId(port as usize)).collect(),
    };
    Flow {
        name: format!("{} in {}", vl.name, tree.network),
        arrival: Arrival::Periodic {
            largest_frame: frame_bits(vl, overhead),
            smallest_frame: (u64::from(vl.lmin) + u64::from(overhead)) * 8,
            period: Time::from_ns(vl.bag),
            jitter: Time::from_ns(vl.source_jitter),
        },
        // The largest priority goes first, and the smallest level.
        level: crate::MAX_PRIORITY as u8 - vl.priority,
        routes: tree.leaves.iter().map(route).collect(),
    }
}

/// By what bounds are found.
#[derive(Clone, Debug)]
pub enum Analysis {
    /// All that are quick, and of each path the least.
    Best,
    /// Total flow analysis.
    TotalFlow(TotalFlow),
    /// Separated flow analysis.
    SeparatedFlow,
    /// Pay multiplexing only once.
    Pmoo,
    /// A linear program for each path of these virtual links, by their places; it may take seconds. Other paths have their best bound.
    Linear(Vec<usize>),
}

/// The best bounds of a network that are found quickly.
///
/// # Errors
/// The network is above a limit of the calculus, which is named.
pub fn bounds(topology: &Topology<'_>) -> Result<Bounds, String> {
    bounds_by(topology, &Analysis::Best)
}

/// The bounds by an analysis.
///
/// # Errors
/// The network is above a limit of the calculus, which is named.
pub fn bounds_by(topology: &Topology<'_>, analysis: &Analysis) -> Result<Bounds, String> {
    let model = model(topology)?;
    let one = |outcome: &calculus::Outcome| -> Vec<Answer> {
        let answer = |route| match outcome.path(&model, route) {
            Ok(bound) => Ok((outcome.method, bound)),
            Err(refusal) => Err(refusal.clone()),
        };
        model.routes().map(answer).collect()
    };
    let of_ports = |setting| calculus::total_flow(&model, setting);
    let (servers, paths): (Vec<ServerAnswer>, Vec<Answer>) = match analysis {
        Analysis::TotalFlow(setting) => {
            let outcome = of_ports(*setting);
            let paths = one(&outcome);
            (outcome.servers, paths)
        }
        Analysis::SeparatedFlow => {
            (of_ports(TotalFlow::BEST).servers, one(&calculus::separated_flow(&model, Cross::Total)))
        }
        Analysis::Pmoo => (of_ports(TotalFlow::BEST).servers, one(&calculus::pmoo(&model, Cross::Total))),
        Analysis::Best => best(&model),
        Analysis::Linear(vls) => {
            let programs = LinearPrograms::new(&model);
            let chosen = |route: &RouteId| vls.contains(&topology.trees[route.flow.0].vl);
            let bound = |(route, best): (RouteId, Answer)| match chosen(&route) {
                true => programs.bound(route).map(|bound| (Method::LinearProgram, bound)),
                false => best,
            };
            let (servers, paths) = best(&model);
            (servers, model.routes().zip(paths).map(bound).collect())
        }
    };
    Ok(collect(topology, &model, &servers, paths))
}

/// The bound of a port, or why there is none.
type ServerAnswer = Result<calculus::ServerBound, calculus::Refusal>;

/// The bound of a path and its analysis, or why there is none.
type Answer = Result<(Method, calculus::PathBound), calculus::Refusal>;

fn best(model: &calculus::Network) -> (Vec<ServerAnswer>, Vec<Answer>) {
    let found = calculus::bounds(model);
    let paths = model.routes().map(|route| found.best(model, route).map_err(Clone::clone)).collect();
    (found.servers().to_vec(), paths)
}

fn collect(
    topology: &Topology<'_>,
    model: &calculus::Network,
    servers: &[ServerAnswer],
    answers: Vec<Answer>,
) -> Bounds {
    let network = topology.network;
    let mut paths = Vec::new();
    // Routes are in the order of trees and of their leaves.
    let mut answers = answers.into_iter();
    for (flow, tree) in topology.trees.iter().enumerate() {
        for (place, leaf) in tree.leaves.iter().enumerate() {
            let Some(answer) = answers.next() else { continue };
            let receive = network.end_systems.get(leaf.node as usize).map_or(0, |end| end.receive_latency);
            let bound = match answer {
                Ok((method, bound)) => {
                    let delay = bound.delay.ns_up().saturating_add(receive);
                    let least = bound.lowest.ps() / 1000;
                    let jitter = bound.jitter().ns_up().saturating_add(receive);
                    Ok(PathBound { delay, least, jitter, method })
                }
                Err(refusal) => Err(refusal.describe(model).to_string()),
            };
            paths.push(Path { tree: flow, leaf: place, bound });
        }
    }
    let loads = topology.loads();
    let longest = longest(topology);
    let port = |((load, bound), longest): ((&Load, &ServerAnswer), u64)| {
        let queue = |bound: &calculus::ServerBound| Queue {
            backlog: bound.backlog,
            room: bound.buffer.div_ceil(8),
            frames: bound.frames,
            longest,
            delay: bound.levels.iter().map(|level| level.delay.ns_up()).max().unwrap_or(0),
        };
        let bound = match bound {
            Ok(bound) => Ok(queue(bound)),
            Err(refusal) => Err(refusal.describe(model).to_string()),
        };
        PortBound { load: *load, bound: (load.vls > 0).then_some(bound) }
    };
    let ports = loads.iter().zip(servers).zip(longest).map(port).collect();
    let late = topology.trees.iter().map(|tree| lateness(topology, tree, servers)).collect();
    Bounds { paths, ports, late }
}

/// Bytes of the longest frame of each port, what the wire adds included.
fn longest(topology: &Topology<'_>) -> Vec<u64> {
    let mut longest = vec![0; topology.graph.ports.len()];
    for tree in &topology.trees {
        let frame = u64::from(topology.network.vls[tree.vl].lmax) + u64::from(topology.network.overhead);
        for hop in &tree.hops {
            let of_port: &mut u64 = &mut longest[hop.port as usize];
            *of_port = frame.max(*of_port);
        }
    }
    longest
}

/// By how much frames may be late after each hop: the sum of what each port before adds, from the least to the most, and the jitter of the
/// regulator.
fn lateness(topology: &Topology<'_>, tree: &Tree, servers: &[ServerAnswer]) -> Vec<Option<u64>> {
    let vl = &topology.network.vls[tree.vl];
    let mut late: Vec<Option<u64>> = Vec::with_capacity(tree.hops.len());
    for hop in &tree.hops {
        let before = match hop.before {
            Some(before) => late[before as usize],
            None => Some(vl.source_jitter),
        };
        let port = &topology.graph.ports[hop.port as usize];
        let level = level_at(topology, hop.port, vl);
        let bound = servers[hop.port as usize].as_ref().ok();
        let bound = bound.and_then(|bound| bound.levels.iter().find(|bound| bound.level == level));
        let least = u64::from(vl.lmin) + u64::from(topology.network.overhead);
        let least = Time::of_bits_down(least * 8, port.rate) + Time::from_ns(port.least_latency);
        let added = bound.map(|bound| bound.delay.saturating_sub(least).ns_up());
        late.push(before.zip(added).map(|(before, added)| before.saturating_add(added)));
    }
    late
}

/// The level of a virtual link at a port.
fn level_at(topology: &Topology<'_>, port: PortId, vl: &Vl) -> u8 {
    let node = topology.graph.ports[port as usize].node;
    let switch = topology.graph.switch(node).map(|place| &topology.network.switches[place]);
    match switch {
        Some(switch) if switch.scheduler == Scheduler::Priority => crate::MAX_PRIORITY as u8 - vl.priority,
        _ => 0,
    }
}

impl Bounds {
    /// The jitter with which frames of a tree come to the node after a hop, at most; none without a bound.
    pub fn jitter_after(&self, tree: usize, hop: usize) -> Option<u64> {
        self.late[tree][hop]
    }
}

/// An account that may refuse frames that their virtual links are allowed to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TightAccount {
    /// The virtual link whose own it is, or its name.
    pub account: String,
    /// The switch.
    pub switch: String,
    /// What it holds when it is full, in bytes, rounded down.
    pub credit: u64,
    /// What can come at once, in bytes, rounded up.
    pub needed: u64,
    /// Whether more comes in the long run, too.
    pub is_slow: bool,
}

impl fmt::Display for TightAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TightAccount { account, switch, credit, needed, is_slow } = self;
        match is_slow {
            true => write!(
                f,
                "the account of {account} at switch {switch} grows by less than its virtual links send"
            ),
            false => write!(
                f,
                "the account of {account} at switch {switch} may refuse what it is for: {needed} bytes can come at once, it holds {credit}"
            ),
        }
    }
}

/// What one account has to hold, and how it grows: sums over its virtual links, in 2^-32 byte and 2^-32 byte a second.
#[derive(Clone, Copy, Debug, Default)]
struct Needed {
    bytes: u128,
    rate: u128,
}

impl Bounds {
    /// Output ports that may need more room than their buffers have, with the buffers in bytes.
    pub fn small_buffers(&self, topology: &Topology<'_>) -> Vec<(PortId, u64)> {
        let small = |(port, bound): (usize, &PortBound)| {
            let switch = topology.graph.switch(topology.graph.ports[port].node)?;
            let buffer = topology.network.switches[switch].buffer?;
            let Some(Ok(queue)) = &bound.bound else { return None };
            (!queue.fits(buffer, topology.network.overhead)).then_some((port as PortId, buffer))
        };
        self.ports.iter().enumerate().filter_map(small).collect()
    }

    /// Accounts that may refuse frames that their virtual links are allowed to send.
    ///
    /// In any time t a virtual link whose frames are late by up to j where they come brings at most Lmax (1 + (t + j) / BAG) bytes, and one
    /// that is tested by frames as many times Smax. An account with Smax, G for its gap and J lets all pass if the sum of these is at most
    /// Smax (1 + (t + J) / G) for each t: at 0, and by its growth.
    pub fn tight_accounts(&self, topology: &Topology<'_>) -> Vec<TightAccount> {
        let network = topology.network;
        let mut needed: BTreeMap<(u32, Result<&str, usize>), Needed> = BTreeMap::new();
        for (place, tree) in topology.trees.iter().enumerate() {
            let vl = &network.vls[tree.vl];
            for (hop, is) in tree.hops.iter().enumerate() {
                let node = topology.graph.ports[is.port as usize].to;
                let (Some(_), Some(late)) = (topology.graph.switch(node), self.jitter_after(place, hop))
                else {
                    continue;
                };
                let Some((key, account)) = account_of(network, tree.vl) else { continue };
                let cost = match account.policing {
                    Policing::Frame | Policing::Both => account.lmax.max(vl.lmax),
                    _ => vl.lmax,
                };
                let part = u128::from(cost) << 32;
                let bag = u128::from(vl.bag);
                let sum = needed.entry((node, key)).or_default();
                sum.bytes += part + (part * u128::from(late)).div_ceil(bag);
                sum.rate += (part * 1_000_000_000).div_ceil(bag);
            }
        }
        let tight = |((node, key), sum): ((u32, Result<&str, usize>), Needed)| {
            let vl = key.map_or_else(
                |vl| vl,
                |name| {
                    network.vls.iter().position(|vl| vl.shared_account.as_deref() == Some(name)).unwrap_or(0)
                },
            );
            let (_, account) = account_of(network, vl)?;
            let full = (u128::from(account.lmax) << 32) * u128::from(account.bag + account.jitter);
            let full = full.div_ceil(u128::from(account.bag));
            // Rounded up as the sum of one virtual link is, so that an account just right is not slow.
            let growth = ((u128::from(account.lmax) << 32) * 1_000_000_000).div_ceil(u128::from(account.bag));
            let is_slow = sum.rate > growth;
            (sum.bytes > full || is_slow).then(|| TightAccount {
                account: key.map_or_else(|vl| network.vls[vl].name.clone(), str::to_owned),
                switch: topology.graph.name(node).to_owned(),
                credit: u64::try_from(full >> 32).unwrap_or(u64::MAX),
                needed: u64::try_from(sum.bytes.div_ceil(1 << 32)).unwrap_or(u64::MAX),
                is_slow,
            })
        };
        needed.into_iter().filter_map(tight).collect()
    }
}

/// The account of a virtual link, by its name or by the virtual link; none if nothing is policed, or its jitter is that of the bounds.
fn account_of(network: &Network, vl: usize) -> Option<(Result<&str, usize>, Account)> {
    let is = &network.vls[vl];
    let account = match &is.shared_account {
        Some(name) => network.accounts.iter().find(|account| account.name == *name)?.clone(),
        None => Account {
            name: is.name.clone(),
            bag: is.bag,
            lmax: is.lmax,
            jitter: is.jitter?,
            policing: is.policing,
        },
    };
    let key = is.shared_account.as_deref().ok_or(vl);
    (account.policing != Policing::None).then_some((key, account))
}

impl Queue {
    /// Whether a buffer of so many bytes of frames is sure to have room; the wire's bytes take none of it.
    ///
    /// Frames that take W bytes of the wire, none more than `longest`, are W / `longest` at least, so of W bytes at least
    /// that many times `overhead` take no room. How many frames there are at most says nothing of that.
    pub fn fits(&self, buffer: u64, overhead: u32) -> bool {
        let frames = u128::from(self.longest.saturating_sub(overhead.into()));
        let bytes = u128::from(self.room) * frames / u128::from(self.longest.max(1));
        bytes <= u128::from(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_room_for_the_fewest_frames_that_bytes_can_be() {
        // 3076 bytes of the wire can be two frames of 1538, 20 of which are the wire's: 3036 bytes. They can be 36 frames of 84, too,
        // which take less room.
        let queue = |frames| Queue { backlog: 0, room: 3076, frames, longest: 1538, delay: 0 };
        for frames in [2, 36, 10_068] {
            assert!(queue(frames).fits(3036, 20) && !queue(frames).fits(3035, 20), "{frames}");
        }
        // Without bytes of the wire, and where nothing passes.
        assert!(queue(2).fits(3076, 0) && !queue(2).fits(3075, 0));
        assert!(Queue { backlog: 0, room: 0, frames: 0, longest: 0, delay: 0 }.fits(0, 20));
    }
}
