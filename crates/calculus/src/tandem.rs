//! What analyses of whole routes share: the service of each level of each server, and token buckets of all that crosses.

use std::ops::Range;

use crate::curve::{self, Line};
use crate::deviation::Service;
use crate::network::{Network, Scheduler, Transfer};
use crate::total_flow::{self, Propagation, TotalFlow};
use crate::units::{self, Data, Ps};

/// The flows of one level at a server.
pub(crate) struct Level {
    level: u8,
    /// Their places in the visits of the server.
    pub(crate) visits: Range<usize>,
    /// The token bucket of the level there.
    pub(crate) own: Line,
    /// By each service curve of the server, what it leaves to the level. None where it leaves nothing.
    services: Vec<Option<Service>>,
    /// The largest frame of the level.
    pub(crate) frame: Data,
}

/// A network with what a total flow analysis found, ready for analyses of routes.
pub(crate) struct Tandems<'a> {
    pub(crate) network: &'a Network,
    pub(crate) found: Propagation,
    /// Of each hop the token bucket of its flow where it arrives at the server.
    pub(crate) lines: Vec<Line>,
    levels: Vec<Vec<Level>>,
}

impl<'a> Tandems<'a> {
    /// Takes the arrival curves of crossing flows from the best total flow analysis.
    pub(crate) fn new(network: &'a Network) -> Tandems<'a> {
        let found = total_flow::propagate(network, TotalFlow::BEST);
        let lines = lines(network, &found);
        let levels = (0..network.servers().len()).map(|server| levels(network, server, &lines)).collect();
        Tandems { network, found, lines, levels }
    }

    /// The level of a hop at its server.
    pub(crate) fn level(&self, hop: u32) -> &Level {
        let level = self.network.level(hop);
        let levels = &self.levels[self.network.hops[hop as usize].server as usize];
        levels.iter().find(|it| it.level == level).expect("each hop is in a level of its server")
    }

    /// The token bucket of a flow where it enters the queue of a server, after the technological latency.
    pub(crate) fn queued(&self, hop: u32) -> Line {
        self.lines[hop as usize]
            .shifted(variable(self.network, self.network.hops[hop as usize].server as usize))
    }

    /// What the queue and the transmitter serve of the level of a hop, by the server's service curve number `piece` or its last one.
    pub(crate) fn service(&self, hop: u32, piece: usize) -> Option<Service> {
        let services = &self.level(hop).services;
        services[piece.min(services.len() - 1)]
    }

    /// How many choices of service curves are worth trying for a route.
    pub(crate) fn pieces(&self, hops: &[u32]) -> usize {
        let counts = hops.iter().map(|&hop| {
            self.network.servers()[self.network.hops[hop as usize].server as usize].service.len()
        });
        counts.max().unwrap_or(1)
    }
}

/// How much the technological latency of a server can vary.
pub(crate) fn variable(network: &Network, server: usize) -> Ps {
    let latency = network.servers()[server].latency;
    Ps::from(latency.largest.ps()) - Ps::from(latency.lowest.ps())
}

/// A service of whole frames: a frame is only passed on when its last bit has been served.
pub(crate) fn of_frames(network: &Network, service: Service, frame: Data) -> Option<Service> {
    match network.transfer() {
        Transfer::Fluid => Some(service),
        Transfer::Frames => {
            let latency = service.latency + units::div_up(frame, service.rate);
            Service { latency, ..service }.within()
        }
    }
}

/// What a level's service leaves to one flow of it, first in first out or in any order, while `cross` is the token bucket of the others.
pub(crate) fn left_to_flow(service: Service, cross: Line, scheduler: &Scheduler) -> Option<Service> {
    match scheduler {
        Scheduler::Arbitrary => service.left_by(cross, 0),
        _ => {
            let rate = service.rate - cross.rate;
            (rate > 0).then(|| Service {
                rate,
                latency: service.latency + units::div_up(cross.burst, service.rate),
            })
        }
    }
}

/// One token bucket for each hop: that which allows least in the delay of the server, or, where these would be too much for the server, those
/// with the least rates.
fn lines(network: &Network, found: &Propagation) -> Vec<Line> {
    let mut lines = vec![Line::default(); network.hops.len()];
    for (server, visits) in network.order.visits.iter().enumerate() {
        let arrival = |hop: u32| &network.flows()[network.hops[hop as usize].flow as usize].arrival;
        let shift = |hop: u32| found.shift[hop as usize];
        let mut rate = 0;
        for &hop in visits {
            lines[hop as usize] = curve::least_line(arrival(hop), shift(hop), found.delay[hop as usize]);
            rate += lines[hop as usize].rate;
        }
        let service = total_flow::services(network, server).map(|service| service.rate).max();
        // Half of the room that the least rates leave: so much less than the service that latencies stay small.
        let least = visits.iter().map(|&hop| crate::order::long_term_rate(arrival(hop))).sum::<units::Rate>();
        if service.is_none_or(|service| rate > least + (service - least) / 2) {
            for &hop in visits {
                lines[hop as usize] = curve::long_term_line(arrival(hop), shift(hop));
            }
        }
    }
    lines
}

fn levels(network: &Network, server: usize, lines: &[Line]) -> Vec<Level> {
    let visits = &network.order.visits[server];
    let more = variable(network, server);
    let mut levels = Vec::new();
    let mut high = Line::default();
    let mut at = 0;
    while at < visits.len() {
        let level = network.level(visits[at]);
        let end = at + visits[at..].iter().take_while(|&&hop| network.level(hop) == level).count();
        let mut own = Line::default();
        for &hop in &visits[at..end] {
            own.add(lines[hop as usize].shifted(more));
        }
        let blocking = total_flow::blocking(network, &visits[end..]);
        let frame = total_flow::blocking(network, &visits[at..end]);
        let services =
            total_flow::services(network, server).map(|service| service.left_by(high, blocking)).collect();
        levels.push(Level { level, visits: at..end, services, own, frame });
        high.add(own);
        at = end;
    }
    levels
}
