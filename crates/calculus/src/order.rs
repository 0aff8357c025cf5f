//! In which order servers can be analysed, and which cannot.
//!
//! What arrives at a server depends on the delays of the servers before it. So these go first: a topological order of the graph whose
//! edges are the steps of flows from server to server. A server in a cycle has no place in such an order.

use crate::network::{Arrival, Load, Network, Scheduler, ServerId};
use crate::refusal::Refusal;
use crate::units::{self, Rate};

/// The most segments that are looked at of an arrival curve of one level of a server.
pub const MAX_BREAKPOINTS: usize = 1 << 20;
/// The most of all levels of all servers together, so that the time of an analysis is bounded.
pub const MAX_TOTAL_BREAKPOINTS: usize = 1 << 25;
/// But so many for each in any case.
const MIN_BREAKPOINTS: usize = 1 << 8;

/// What holds for a network whatever the analysis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// The servers that can be analysed, each after those before it.
    pub(crate) servers: Vec<u32>,
    /// Of each server, why it cannot be analysed.
    pub(crate) refusals: Vec<Option<Refusal>>,
    /// Of each server, its load.
    pub(crate) loads: Vec<Load>,
    /// Of each server the hops that pass it, by level, then by input.
    pub(crate) visits: Vec<Vec<u32>>,
    /// After so many segments of an arrival curve, what is left is taken as a line.
    pub(crate) breakpoints: usize,
}

/// The long-term rate of a flow, rounded up.
pub(crate) fn long_term_rate(arrival: &Arrival) -> Rate {
    match arrival {
        Arrival::Periodic { largest_frame, period, .. } => units::rate_of_up(*largest_frame, *period),
        Arrival::Buckets { buckets, .. } => {
            buckets.iter().map(|bucket| units::rate(bucket.rate)).min().unwrap_or(0)
        }
    }
}

pub(crate) fn of(network: &Network) -> Order {
    let count = network.servers().len();
    let mut visits = vec![Vec::new(); count];
    for (index, hop) in network.hops.iter().enumerate() {
        visits[hop.server as usize].push(index as u32);
    }
    for list in &mut visits {
        list.sort_by_key(|&hop| (network.level(hop), network.input(hop)));
    }
    let loads = (0..count).map(|server| load(network, server, &visits[server])).collect::<Vec<_>>();
    let (sorted, cyclic) = sort(network, &visits);
    let mut refusals = vec![None; count];
    for server in sorted.iter().map(|&server| server as usize) {
        let id = ServerId(server);
        let bad_input = visits[server]
            .iter()
            .filter_map(|&hop| network.input(hop))
            .find(|&input| refusals[input as usize].is_some());
        refusals[server] = if cyclic[server] {
            None
        } else if let Scheduler::Unsupported(_) = network.servers()[server].scheduler {
            Some(Refusal::Scheduler(id))
        } else if loads[server].demand > loads[server].service {
            Some(Refusal::Overload { server: id, load: loads[server] })
        } else {
            bad_input
                .and_then(|input| refusals[input as usize].as_ref().map(|it: &Refusal| it.passed_on(input)))
        };
    }
    mark_cycles(network, &visits, &cyclic, &mut refusals);
    let servers = sorted.into_iter().filter(|&server| refusals[server as usize].is_none()).collect();
    let levels =
        |list: &Vec<u32>| list.chunk_by(|&one, &other| network.level(one) == network.level(other)).count();
    let levels = visits.iter().map(levels).sum::<usize>();
    let breakpoints = (MAX_TOTAL_BREAKPOINTS / levels.max(1)).clamp(MIN_BREAKPOINTS, MAX_BREAKPOINTS);
    Order { servers, refusals, loads, visits, breakpoints }
}

fn load(network: &Network, server: usize, visits: &[u32]) -> Load {
    let demand = visits
        .iter()
        .map(|&hop| long_term_rate(&network.flows()[network.hops[hop as usize].flow as usize].arrival));
    let service = network.servers()[server].service.iter().map(|curve| units::rate(curve.rate)).max();
    Load { demand: demand.sum::<Rate>().unsigned_abs(), service: service.unwrap_or(0).unsigned_abs() }
}

/// Kahn's algorithm. Gives the servers in order, and which are in a cycle or after one.
fn sort(network: &Network, visits: &[Vec<u32>]) -> (Vec<u32>, Vec<bool>) {
    let mut inputs = visits.iter().map(|list| distinct_inputs(network, list)).collect::<Vec<_>>();
    let mut followers = vec![Vec::new(); visits.len()];
    for (server, list) in inputs.iter().enumerate() {
        for &input in list {
            followers[input as usize].push(server as u32);
        }
    }
    let mut missing = inputs.iter_mut().map(|list| list.len()).collect::<Vec<_>>();
    let mut sorted =
        (0..visits.len() as u32).filter(|&server| missing[server as usize] == 0).collect::<Vec<_>>();
    let mut next = 0;
    while next < sorted.len() {
        for &follower in &followers[sorted[next] as usize] {
            missing[follower as usize] -= 1;
            if missing[follower as usize] == 0 {
                sorted.push(follower);
            }
        }
        next += 1;
    }
    let cyclic = missing.iter().map(|&left| left > 0).collect();
    (sorted, cyclic)
}

/// The servers from which hops at one server come, each once, in order.
pub(crate) fn distinct_inputs(network: &Network, visits: &[u32]) -> Vec<u32> {
    let mut inputs = visits.iter().filter_map(|&hop| network.input(hop)).collect::<Vec<_>>();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// Names a cycle for each server that could not be ordered: from such a server, steps backwards along inputs that could not be ordered
/// either must come to a server a second time. What is between is a cycle; a server outside it depends on it.
fn mark_cycles(network: &Network, visits: &[Vec<u32>], cyclic: &[bool], refusals: &mut [Option<Refusal>]) {
    let mut seen_by = vec![usize::MAX; cyclic.len()];
    for start in (0..cyclic.len()).filter(|&server| cyclic[server]) {
        let mut walk = Vec::new();
        let mut at = start;
        while refusals[at].is_none() && seen_by[at] != start {
            seen_by[at] = start;
            walk.push(at);
            let inputs = distinct_inputs(network, &visits[at]);
            at = inputs
                .into_iter()
                .map(|input| input as usize)
                .find(|&input| cyclic[input])
                .expect("each has such an input");
        }
        if refusals[at].is_none() {
            let from = walk.iter().position(|&server| server == at).expect("it was passed on this walk");
            let circle = walk.split_off(from);
            let mut ids = circle.iter().rev().map(|&server| ServerId(server)).collect::<Vec<_>>();
            let least = (0..ids.len()).min_by_key(|&place| ids[place]).unwrap_or(0);
            ids.rotate_left(least);
            for server in circle {
                refusals[server] = Some(Refusal::Cycle(ids.clone()));
            }
        }
        let mut after = at;
        for server in walk.into_iter().rev() {
            refusals[server] = refusals[after].as_ref().map(|it| it.passed_on(after as u32));
            after = server;
        }
    }
}
