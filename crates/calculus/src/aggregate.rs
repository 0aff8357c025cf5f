//! Arrival curves of flows that cross a route, found without a total flow analysis: as the literature of separated flow analysis does.
//!
//! Flows that come to a server by the same link have passed some servers together before it. There they are taken as one, and what these
//! servers leave to all of them together delays them; so their bursts grow by less than if each was delayed by the others of its own
//! kind. What delays them is found in the same way, and so on to the sources.
//!
//! The number of sets of flows that this looks at can grow exponentially with the number of servers, so it ends at a limit.

use std::collections::HashMap;

use crate::curve::Line;
use crate::deviation::{LONGEST, Service};
use crate::network::ServerId;
use crate::pmoo::{self, Finder};
use crate::refusal::Refusal;
use crate::separated_flow::{Crossing, left_by_crossings};
use crate::tandem::{self, Tandems};
use crate::units::{Data, Ps};

/// The largest number of sets of flows that an analysis with [`Cross::Separated`](crate::Cross::Separated) looks at.
pub const MAX_AGGREGATES: usize = 100_000;
/// The largest number of hops in these sets, each set counted as often as it is asked for.
const MAX_AGGREGATE_HOPS: usize = 50_000_000;
/// How often a set may lead to another before this ends: the calls are nested that deep.
const MAX_NESTING: usize = 512;

/// Arrival curves of sets of flows, each found once.
pub(crate) struct Aggregates<'t, 'n> {
    tandems: &'t Tandems<'n>,
    known: HashMap<Vec<u32>, Line>,
    hops: usize,
    nesting: usize,
    blind: Option<Finder>,
}

impl<'t, 'n> Aggregates<'t, 'n> {
    /// With what each server leaves, put together.
    pub(crate) fn new(tandems: &'t Tandems<'n>) -> Aggregates<'t, 'n> {
        Aggregates { tandems, known: HashMap::new(), hops: 0, nesting: 0, blind: None }
    }

    /// With what the servers leave if multiplexing is paid only once.
    pub(crate) fn blind(tandems: &'t Tandems<'n>) -> Aggregates<'t, 'n> {
        Aggregates { blind: Some(Finder::new(tandems.network)), ..Aggregates::new(tandems) }
    }

    /// The token bucket of the flows at these hops, which are at one server, where they arrive there.
    pub(crate) fn arrival(&mut self, mut hops: Vec<u32>) -> Result<Line, Refusal> {
        let network = self.tandems.network;
        hops.sort_unstable_by_key(|&hop| (network.input(hop), hop));
        self.hops += hops.len();
        if let Some(&line) = self.known.get(&hops) {
            return Ok(line);
        }
        if self.known.len() >= MAX_AGGREGATES || self.hops > MAX_AGGREGATE_HOPS || self.nesting >= MAX_NESTING
        {
            return Err(Refusal::TooMuch("too many sets of flows cross each other"));
        }
        self.nesting += 1;
        let mut line = Line::default();
        for together in hops.chunk_by(|&one, &other| network.input(one) == network.input(other)) {
            if network.input(together[0]).is_none() {
                together.iter().for_each(|&hop| line.add(self.tandems.lines[hop as usize]));
            } else {
                line.add(self.by_one_link(together)?);
            }
        }
        self.nesting -= 1;
        self.known.insert(hops, line);
        Ok(line)
    }

    /// The token bucket of flows that all come from the same server.
    fn by_one_link(&mut self, hops: &[u32]) -> Result<Line, Refusal> {
        let network = self.tandems.network;
        // Back along the servers that all of them passed.
        let mut steps: Vec<Vec<u32>> = Vec::new();
        let mut at = hops.to_vec();
        while let Some(parents) =
            at.iter().map(|&hop| network.hops[hop as usize].parent).collect::<Option<Vec<_>>>()
        {
            let server = |hop: u32| network.hops[hop as usize].server;
            if parents.iter().any(|&parent| server(parent) != server(parents[0])) {
                break;
            }
            at = parents;
            steps.push(at.clone());
        }
        steps.reverse();
        let line = self.arrival(at)?;
        let latency = if self.blind.is_some() { self.once(&steps)? } else { self.separated(&steps)? };
        if latency > LONGEST {
            return Err(Refusal::TooLate(ServerId(network.hops[hops[0] as usize].server as usize)));
        }
        Ok(line.shifted(latency))
    }

    /// The latency of what servers leave to flows that pass all of them, each by itself.
    fn separated(&mut self, steps: &[Vec<u32>]) -> Result<Ps, Refusal> {
        let tandems = self.tandems;
        let network = tandems.network;
        let mut sum = 0;
        for hops in steps {
            let server = network.hops[hops[0] as usize].server as usize;
            let level = tandems.level(hops[0]);
            let mut sorted = hops.clone();
            sorted.sort_unstable();
            let others = network.order.visits[server][level.visits.clone()].iter().copied();
            let cross = self.arrival(others.filter(|hop| sorted.binary_search(hop).is_err()).collect())?;
            let cross = cross.shifted(tandem::variable(network, server));
            let service = tandems.service(hops[0], 0);
            let left = service.and_then(|service| {
                let left = tandem::left_to_flow(service, cross, &network.servers()[server].scheduler)?;
                tandem::of_frames(network, left, self.frame(hops))
            });
            let Some(left) = left else { return Err(Refusal::TooLate(ServerId(server))) };
            sum += left.latency + Ps::from(network.servers()[server].latency.largest.ps());
        }
        Ok(sum)
    }

    /// The same, with multiplexing paid once.
    fn once(&mut self, steps: &[Vec<u32>]) -> Result<Ps, Refusal> {
        let tandems = self.tandems;
        let network = tandems.network;
        let route = steps.iter().map(|hops| hops[0]).collect::<Vec<_>>();
        let runs = self.blind.as_mut().expect("only then").find(tandems, &route, &steps[0])?;
        let mut crossings = Vec::with_capacity(runs.len());
        for run in runs {
            crossings.push(Crossing { from: run.from, to: run.to, line: self.arrival(run.hops)? });
        }
        let services: Option<Vec<Service>> = pmoo::strict(tandems, &route, 0, true);
        let left = services.and_then(|services| left_by_crossings(&services, &crossings));
        let first = ServerId(network.hops[route[0] as usize].server as usize);
        let Some(left) = left else { return Err(Refusal::TooLate(first)) };
        let constant = route
            .iter()
            .map(|&hop| network.servers()[network.hops[hop as usize].server as usize].latency.lowest);
        Ok(left.latency + constant.map(|latency| Ps::from(latency.ps())).sum::<Ps>())
    }

    /// The largest frame of some flows.
    fn frame(&self, hops: &[u32]) -> Data {
        crate::total_flow::blocking(self.tandems.network, hops)
    }
}
