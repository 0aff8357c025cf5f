//! Total flow analysis: each server by itself, its delay for all that passes it.
//!
//! Servers are taken in an order in which all inputs of a server come before it. At each, the arrival curve of all flows gives the
//! largest delay D of a frame. A flow whose frames are late by up to j where they arrive is then late by up to j + D − d where
//! they leave, d being the least delay: with α its curve at the source, its curve after the server is α(t + j + D − d). The bound of a route
//! is the sum of the delays of its servers and links.
//!
//! docs/dev/network-bounds.md has the theorems.

use crate::curve::{self, Detail, Sweep};
use crate::deviation::{self, Service};
use crate::network::{MAX_DELAY, Network, Scheduler, ServerId, Transfer};
use crate::outcome::{LevelBound, Method, Outcome, PathBound, ServerBound};
use crate::refusal::Refusal;
use crate::units::{self, Data, Ps};

/// How exact a total flow analysis is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TotalFlow {
    /// With the steps of periodic flows; else with a token bucket above each (affine).
    pub staircase: bool,
    /// With what the link can carry by which flows arrive together.
    pub grouping: bool,
    /// A flow leaves a server with the largest delay less the least one as more jitter; else with the largest delay, as textbooks have it.
    pub least_delay: bool,
}

impl TotalFlow {
    /// Everything: what [`bounds`](crate::bounds()) uses.
    pub const BEST: TotalFlow = TotalFlow { staircase: true, grouping: true, least_delay: true };
    /// The analysis of textbooks and of the first certified networks: token buckets, nothing else.
    pub const AFFINE: TotalFlow = TotalFlow { staircase: false, grouping: false, least_delay: false };

    fn detail(self) -> Detail {
        Detail { staircase: self.staircase, grouping: self.grouping }
    }
}

/// What a total flow analysis found at each hop, for analyses that build on it.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    /// Of each hop how late frames may be there, compared with the source.
    pub(crate) shift: Vec<Ps>,
    /// Of each hop the largest delay in its server, with the latency.
    pub(crate) delay: Vec<Ps>,
    /// Of each server its bound.
    pub(crate) servers: Vec<Result<ServerBound, Refusal>>,
}

/// Bounds by total flow analysis.
pub fn total_flow(network: &Network, setting: TotalFlow) -> Outcome {
    outcome(network, setting, propagate(network, setting))
}

/// What [`propagate`] found as bounds of routes and servers.
pub(crate) fn outcome(network: &Network, setting: TotalFlow, found: Propagation) -> Outcome {
    let method = Method::TotalFlow(setting);
    let paths = network
        .routes()
        .map(|route| {
            let hops = network.hops_of(route);
            if let Some(refusal) = refused(network, hops, &found) {
                return Err(refusal);
            }
            let delay = hops.iter().map(|&hop| found.delay[hop as usize]).sum();
            Ok(PathBound::new(network, route, units::time(delay) + propagation(network, hops)))
        })
        .collect();
    Outcome { method, paths, servers: found.servers }
}

/// Why a route has no bound: of its servers the first that is itself the cause, else the first without a bound.
pub(crate) fn refused(network: &Network, hops: &[u32], found: &Propagation) -> Option<Refusal> {
    let refusals = || {
        hops.iter()
            .filter_map(|&hop| found.servers[network.hops[hop as usize].server as usize].as_ref().err())
    };
    refusals().find(|it| !matches!(it, Refusal::DependsOn(_))).or_else(|| refusals().next()).cloned()
}

/// The time on the links of a route.
pub(crate) fn propagation(network: &Network, hops: &[u32]) -> crate::Time {
    hops.iter()
        .map(|&hop| network.servers()[network.hops[hop as usize].server as usize].link.propagation)
        .sum()
}

/// The service curves of a server, for calculations. Each holds; the best may be taken.
pub(crate) fn services(network: &Network, server: usize) -> impl Iterator<Item = Service> + '_ {
    let curves = network.servers()[server].service.iter();
    curves.map(|curve| Service { rate: units::rate(curve.rate), latency: Ps::from(curve.latency.ps()) })
}

pub(crate) fn propagate(network: &Network, setting: TotalFlow) -> Propagation {
    let refused = network.order.refusals.iter().zip(0..);
    let mut found = Propagation {
        shift: vec![0; network.hops.len()],
        delay: vec![0; network.hops.len()],
        servers: refused
            .map(|(refusal, server)| Err(refusal.clone().unwrap_or(Refusal::DependsOn(ServerId(server)))))
            .collect(),
    };
    for &server in &network.order.servers {
        let server = server as usize;
        let visits = &network.order.visits[server];
        let late = visits
            .iter()
            .filter_map(|&hop| network.input(hop))
            .find(|&input| found.servers[input as usize].is_err());
        found.servers[server] = match late {
            Some(input) => Err(found.servers[input as usize]
                .as_ref()
                .err()
                .map_or(Refusal::DependsOn(ServerId(input as usize)), |it| it.passed_on(input))),
            None => analyse(network, server, setting, &mut found),
        };
    }
    found
}

/// One server, after all its inputs.
fn analyse(
    network: &Network,
    server: usize,
    setting: TotalFlow,
    found: &mut Propagation,
) -> Result<ServerBound, Refusal> {
    let latency = network.servers()[server].latency;
    let more = Ps::from(latency.largest.ps()) - Ps::from(latency.lowest.ps());
    let visits = &network.order.visits[server];
    for &hop in visits {
        if let Some(parent) = network.hops[hop as usize].parent {
            let parent = parent as usize;
            let least =
                if setting.least_delay { Ps::from(network.lowest_delay(parent as u32).ps()) } else { 0 };
            found.shift[hop as usize] = found.shift[parent] + (found.delay[parent] - least).max(0);
        }
    }
    let (backlog, buffer) = backlog(network, server, more, setting, &found.shift);
    let mut levels = Vec::new();
    let mut all = Vec::new();
    let mut at = 0;
    while at < visits.len() {
        let level = network.level(visits[at]);
        let end = at + visits[at..].iter().take_while(|&&hop| network.level(hop) == level).count();
        let queueing = level_delay(network, server, (at, end), more, setting, &found.shift);
        let queueing = queueing
            .filter(|&delay| delay <= Ps::from(MAX_DELAY.ps()))
            .ok_or(Refusal::TooLate(ServerId(server)))?;
        let delay = queueing + Ps::from(latency.largest.ps());
        for &hop in &visits[at..end] {
            found.delay[hop as usize] = delay;
        }
        let frames = visits[at..end].iter().map(|&hop| {
            let arrival = &network.flows()[network.hops[hop as usize].flow as usize].arrival;
            let frames = curve::frames(arrival, found.shift[hop as usize] + more, queueing);
            (arrival.smallest_frame(), frames)
        });
        let frames: Vec<(u64, u64)> = frames.collect();
        levels.push(LevelBound {
            level,
            delay: units::time(delay),
            frames: most_frames(network, frames.clone(), buffer),
        });
        all.extend(frames);
        at = end;
    }
    let frames = most_frames(network, all, buffer);
    Ok(ServerBound { load: network.load(ServerId(server)), levels, backlog, buffer, frames })
}

/// The most frames of flows, each with the bits of its smallest frame and the most of its frames, that are in a server at once.
///
/// Frames there have at most `buffer` bits together, the one that is being sent with all of its bits, and none has fewer than the
/// smallest of its flow. Of numbers of frames that fit, the largest takes the smallest frames first. In the fluid model a part of
/// a frame can be there, so bits say nothing of how many.
fn most_frames(network: &Network, mut flows: Vec<(u64, u64)>, buffer: u64) -> u64 {
    if network.transfer() == Transfer::Fluid {
        return flows.iter().fold(0, |sum, (_, frames)| sum.saturating_add(*frames));
    }
    flows.sort_unstable();
    let mut room = buffer;
    let fitting = flows.into_iter().map(|(bits, frames)| {
        let bits = bits.max(1);
        let fit = frames.min(room / bits);
        room -= fit * bits;
        fit
    });
    fitting.sum()
}

/// The delay of one level in the queue and the transmitter, its hops being visits `range`.
fn level_delay(
    network: &Network,
    server: usize,
    range: (usize, usize),
    more: Ps,
    setting: TotalFlow,
    shift: &[Ps],
) -> Option<Ps> {
    let visits = &network.order.visits[server];
    let own = &visits[range.0..range.1];
    let sweep = |hops: &[u32]| Sweep::new(network, hops, shift, more, setting.detail());
    let mut high = visits[..range.0].to_vec();
    high.sort_by_key(|&hop| network.input(hop));
    let blocking = blocking(network, &visits[range.1..]);
    let delays = services(network, server).map(|service| match network.servers()[server].scheduler {
        // One flow keeps its order whatever the server does.
        Scheduler::Arbitrary if own.len() > 1 => deviation::busy(&mut sweep(own), service),
        _ if high.is_empty() => {
            let start = units::div_up(blocking, service.rate);
            deviation::fifo(&mut sweep(own), Service { latency: service.latency + start, ..service })
        }
        _ => deviation::below(&mut sweep(own), &mut sweep(&high), blocking, service),
    });
    delays.flatten().min()
}

/// The largest frame of lower levels: it may have started just before.
pub(crate) fn blocking(network: &Network, lower: &[u32]) -> Data {
    if network.transfer() == Transfer::Fluid {
        return 0;
    }
    let frames = lower
        .iter()
        .map(|&hop| network.flows()[network.hops[hop as usize].flow as usize].arrival.largest_frame());
    units::data(frames.max().unwrap_or(0))
}

/// The backlog of all levels, and the room that their frames take.
fn backlog(network: &Network, server: usize, more: Ps, setting: TotalFlow, shift: &[Ps]) -> (u64, u64) {
    let mut visits = network.order.visits[server].clone();
    visits.sort_by_key(|&hop| network.input(hop));
    let sweep = || Sweep::new(network, &visits, shift, more, setting.detail());
    let backlog =
        services(network, server).filter_map(|service| deviation::backlog(&mut sweep(), service)).min();
    // A frame takes its whole room until its last bit has been sent: as if each bit was sent a frame later.
    let largest = blocking(network, &visits);
    let buffers = services(network, server).filter_map(|service| {
        let latency = service.latency + units::div_up(largest, service.rate);
        deviation::backlog(&mut sweep(), Service { latency, ..service })
    });
    (units::bits_up(backlog.unwrap_or(0)), units::bits_up(buffers.min().unwrap_or(0)))
}
