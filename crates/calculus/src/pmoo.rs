//! Pay multiplexing only once: a route as one server, at which each flow that crosses it is paid for once, wherever it joins and leaves.
//!
//! It supposes nothing of the order in which a server sends frames of different flows (blind multiplexing), so it holds for FIFO too, where
//! it is worse than others if much crosses and better if little does over many servers.
//!
//! docs/dev/network-bounds.md has the theorem and what is changed for frames and latencies.

use crate::aggregate::Aggregates;
use crate::crossings::{Sums, in_order};
use crate::deviation::Service;
use crate::network::{Network, RouteId};
use crate::outcome::{Cross, Method, Outcome, PathBound};
use crate::refusal::Refusal;
use crate::separated_flow::{Crossing, conclude, left_by_crossings, of_flow};
use crate::tandem::{self, Tandems};
use crate::total_flow;
use crate::units::Ps;

/// The most visits of flows to servers that are looked at for all routes together; the routes that are left then have no such bound.
pub const MAX_STEPS: u64 = 1 << 30;

pub(crate) const TOO_MANY: Refusal = Refusal::TooMuch("too many flows cross each other");

/// Bounds by paying multiplexing only once.
pub fn pmoo(network: &Network, cross: Cross) -> Outcome {
    once(&Tandems::new(network), cross)
}

pub(crate) fn once(tandems: &Tandems<'_>, cross: Cross) -> Outcome {
    let mut aggregates = (cross == Cross::Separated).then(|| Aggregates::blind(tandems));
    let (mut sums, mut finder) = (Sums::new(tandems), Finder::new(tandems.network));
    let mut paths: Vec<_> = in_order(tandems.network)
        .into_iter()
        .map(|(place, route)| (place, analyse(tandems, route, (&mut sums, &mut finder), aggregates.as_mut())))
        .collect();
    paths.sort_unstable_by_key(|(place, _)| *place);
    let paths = paths.into_iter().map(|(_, path)| path).collect();
    Outcome { method: Method::Pmoo(cross), paths, servers: Vec::new() }
}

fn analyse(
    tandems: &Tandems<'_>,
    route: RouteId,
    (sums, finder): (&mut Sums, &mut Finder),
    aggregates: Option<&mut Aggregates<'_, '_>>,
) -> Result<PathBound, Refusal> {
    let network = tandems.network;
    let hops = network.hops_of(route);
    if let Some(refusal) = total_flow::refused(network, hops, &tandems.found) {
        return Err(refusal);
    }
    let crossings = match aggregates {
        None => sums.of(tandems, hops)?,
        Some(aggregates) => finder
            .find(tandems, hops, &hops[..1])?
            .into_iter()
            .map(|run| Ok(Crossing { from: run.from, to: run.to, line: aggregates.arrival(run.hops)? }))
            .collect::<Result<Vec<_>, Refusal>>()?,
    };
    let mut best = None;
    for piece in 0..tandems.pieces(hops) {
        let services = strict(tandems, hops, piece, false);
        let left = services.and_then(|services| left_by_crossings(&services, &crossings));
        let delay = left.and_then(|left| of_flow(tandems, hops, left));
        best = best.into_iter().chain(delay).min();
    }
    let constant = hops.iter().map(|&hop| latency(network, hop)).sum::<Ps>();
    conclude(tandems, route, best.map(|delay| delay + constant))
}

/// The part of the technological latency that all frames have: it only moves all of a server to a later time.
fn latency(network: &Network, hop: u32) -> Ps {
    Ps::from(network.servers()[network.hops[hop as usize].server as usize].latency.lowest.ps())
}

/// The services of a route that are strict for the level of its flow, without what of the latencies is the same for all frames. The
/// last server's frames need not be complete for the delay of the last bit, unless what leaves it is looked at (`output`).
pub(crate) fn strict(
    tandems: &Tandems<'_>,
    hops: &[u32],
    piece: usize,
    output: bool,
) -> Option<Vec<Service>> {
    let network = tandems.network;
    let one = |(at, &hop): (usize, &u32)| {
        let service = tandems.service(hop, piece)?;
        let frame = if at + 1 < hops.len() || output { tandems.level(hop).frame } else { 0 };
        let service = tandem::of_frames(network, service, frame)?;
        let more = tandem::variable(network, network.hops[hop as usize].server as usize);
        Some(Service { latency: service.latency + more, ..service })
    };
    hops.iter().enumerate().map(one).collect()
}

/// Flows that cross the same part of a route, with their hops at its first server.
pub(crate) struct Run {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) hops: Vec<u32>,
}

/// Finds what crosses a route, and where.
pub(crate) struct Finder {
    /// Of each flow, what was seen of it last.
    seen: Vec<Seen>,
    search: u32,
    steps: u64,
}

/// Where a flow was seen on a route.
#[derive(Clone, Copy, Default)]
struct Seen {
    search: u32,
    /// The last place on the route; [`OWN`] for a flow that is not to be found.
    last: u32,
    /// The number of its run, or the place where that begins.
    run: u32,
    /// The hop where its run begins.
    hop: u32,
}

const OWN: u32 = u32::MAX - 1;

impl Finder {
    pub(crate) fn new(network: &Network) -> Finder {
        Finder { seen: vec![Seen::default(); network.flows().len()], search: 0, steps: 0 }
    }

    /// What of the level of the route crosses it, but for the flows of the hops in `own`: each run of servers that a flow passes without
    /// leaving the route between.
    pub(crate) fn find(
        &mut self,
        tandems: &Tandems<'_>,
        hops: &[u32],
        own: &[u32],
    ) -> Result<Vec<Run>, Refusal> {
        // Each run as (from, to, first hop); `to` grows as the run does.
        let mut runs: Vec<(usize, usize, u32)> = Vec::new();
        self.walk(tandems, hops, own, |at, hop, before| match before {
            Some(seen) => {
                runs[seen.run as usize].1 = at;
                seen.run
            }
            None => {
                runs.push((at, at, hop));
                runs.len() as u32 - 1
            }
        })?;
        runs.sort_unstable();
        let mut found: Vec<Run> = Vec::new();
        for (from, to, hop) in runs {
            match found.last_mut().filter(|run| run.from == from && run.to == to) {
                Some(run) => run.hops.push(hop),
                None => found.push(Run { from, to, hops: vec![hop] }),
            }
        }
        Ok(found)
    }

    /// Tells of each flow that crosses the route, at each server: the place, the hop, and, if its run began before, what was seen of it. The
    /// answer is kept as its run.
    fn walk(
        &mut self,
        tandems: &Tandems<'_>,
        hops: &[u32],
        own: &[u32],
        mut tell: impl FnMut(usize, u32, Option<Seen>) -> u32,
    ) -> Result<(), Refusal> {
        let network = tandems.network;
        if self.search == u32::MAX {
            *self = Finder { steps: self.steps, ..Finder::new(network) };
        }
        self.search += 1;
        let search = self.search;
        for &hop in own {
            let flow = network.hops[hop as usize].flow as usize;
            self.seen[flow] = Seen { search, last: OWN, ..Seen::default() };
        }
        for (at, &hop) in hops.iter().enumerate() {
            let server = network.hops[hop as usize].server as usize;
            let before = at.checked_sub(1).map(|before| network.hops[hops[before] as usize].server);
            let visits = &network.order.visits[server][tandems.level(hop).visits.clone()];
            self.steps += visits.len() as u64;
            if self.steps > MAX_STEPS {
                return Err(TOO_MANY);
            }
            for &other in visits {
                let flow = network.hops[other as usize].flow as usize;
                let seen = self.seen[flow];
                if seen.search == search && seen.last == OWN {
                    continue;
                }
                let on =
                    seen.search == search && seen.last + 1 == at as u32 && network.input(other) == before;
                let first = if on { seen.hop } else { other };
                let run = tell(at, other, on.then_some(seen));
                self.seen[flow] = Seen { search, last: at as u32, run, hop: first };
            }
        }
        Ok(())
    }
}
