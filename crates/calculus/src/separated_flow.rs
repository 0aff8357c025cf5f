//! Separated flow analysis: what each server leaves to one flow, put together along the route, so that its burst is paid once.
//!
//! At each server, the others of its level leave the flow a service curve; the convolution of these is a service curve of the whole
//! route, and the delay is the horizontal deviation from the flow's curve at its source.
//!
//! docs/dev/network-bounds.md has the theorems.

use crate::aggregate::Aggregates;
use crate::curve::{self, Detail, Line, Sweep};
use crate::deviation::{self, Service};
use crate::network::{MAX_DELAY, Network, RouteId, Scheduler, ServerId, Transfer};
use crate::outcome::{Cross, Method, Outcome, PathBound};
use crate::refusal::Refusal;
use crate::tandem::{self, Tandems};
use crate::total_flow;
use crate::units::{self, Ps, Rate};

/// Bounds by separated flow analysis.
pub fn separated_flow(network: &Network, cross: Cross) -> Outcome {
    separated(&Tandems::new(network), cross)
}

/// Total flow analysis with the arrival curves of [`Cross::Separated`]: the delay of each server for all that passes it, where these are found as separated
/// flow analysis does. It is what some tools call total flow analysis.
pub fn total_flow_separated(network: &Network) -> Outcome {
    let tandems = Tandems::new(network);
    let mut aggregates = Aggregates::new(&tandems);
    let paths = network.routes().map(|route| total(&tandems, route, &mut aggregates)).collect();
    Outcome { method: Method::TotalFlowSeparated, paths, servers: Vec::new() }
}

fn total(
    tandems: &Tandems<'_>,
    route: RouteId,
    aggregates: &mut Aggregates<'_, '_>,
) -> Result<PathBound, Refusal> {
    let network = tandems.network;
    let hops = network.hops_of(route);
    if let Some(refusal) = total_flow::refused(network, hops, &tandems.found) {
        return Err(refusal);
    }
    let mut sum = Some(0);
    for &hop in hops {
        let server = network.hops[hop as usize].server as usize;
        let visits = network.order.visits[server][tandems.level(hop).visits.clone()].to_vec();
        let line = aggregates.arrival(visits)?.shifted(tandem::variable(network, server));
        let service = tandems.service(hop, 0);
        let delay = service.and_then(|service| match network.servers()[server].scheduler {
            // Until all that can have come is served; a single flow keeps its order.
            Scheduler::Arbitrary if tandems.level(hop).visits.len() > 1 => {
                service.left_by(line, 0).map(|left| left.latency)
            }
            _ => (line.rate <= service.rate).then(|| service.delay_of(line)),
        });
        let latency = Ps::from(network.servers()[server].latency.largest.ps());
        sum = sum.zip(delay).map(|(sum, delay)| sum + delay + latency);
    }
    conclude(tandems, route, sum)
}

pub(crate) fn separated(tandems: &Tandems<'_>, cross: Cross) -> Outcome {
    let mut aggregates = (cross == Cross::Separated).then(|| Aggregates::new(tandems));
    let paths = tandems.network.routes().map(|route| analyse(tandems, route, aggregates.as_mut())).collect();
    Outcome { method: Method::SeparatedFlow(cross), paths, servers: Vec::new() }
}

fn analyse(
    tandems: &Tandems<'_>,
    route: RouteId,
    mut aggregates: Option<&mut Aggregates<'_, '_>>,
) -> Result<PathBound, Refusal> {
    let network = tandems.network;
    let hops = network.hops_of(route);
    if let Some(refusal) = total_flow::refused(network, hops, &tandems.found) {
        return Err(refusal);
    }
    let mut best = None;
    for piece in 0..tandems.pieces(hops) {
        let services = (0..hops.len()).map(|at| left(tandems, hops, at, piece, aggregates.as_deref_mut()));
        let delay = services
            .collect::<Result<Option<Vec<_>>, _>>()?
            .and_then(|services| through(tandems, hops, &services));
        best = best.into_iter().chain(delay).min();
    }
    conclude(tandems, route, best)
}

/// What a server on the route leaves to the flow, its technological latency included.
fn left(
    tandems: &Tandems<'_>,
    hops: &[u32],
    at: usize,
    piece: usize,
    aggregates: Option<&mut Aggregates<'_, '_>>,
) -> Result<Option<Service>, Refusal> {
    let (network, hop) = (tandems.network, hops[at]);
    let server = network.hops[hop as usize].server as usize;
    let cross = match aggregates {
        None => {
            let mut others = tandems.level(hop).own;
            others.subtract(tandems.queued(hop));
            others
        }
        Some(aggregates) => {
            let visits = &network.order.visits[server][tandems.level(hop).visits.clone()];
            let others = visits.iter().copied().filter(|&other| other != hop).collect();
            aggregates.arrival(others)?.shifted(tandem::variable(network, server))
        }
    };
    let Some(service) = tandems.service(hop, piece) else { return Ok(None) };
    let Some(left) = tandem::left_to_flow(service, cross, &network.servers()[server].scheduler) else {
        return Ok(None);
    };
    let frame = match network.transfer() {
        Transfer::Frames if at + 1 < hops.len() => units::data(frame_of(network, hop)),
        _ => 0,
    };
    let latency = Ps::from(network.servers()[server].latency.largest.ps());
    let left = tandem::of_frames(network, left, frame);
    Ok(left.map(|left| Service { latency: left.latency + latency, ..left }))
}

fn frame_of(network: &Network, hop: u32) -> u64 {
    network.flows()[network.hops[hop as usize].flow as usize].arrival.largest_frame()
}

/// The delay of a flow through services one after the other.
fn through(tandems: &Tandems<'_>, hops: &[u32], services: &[Service]) -> Option<Ps> {
    let rate = services.iter().map(|service| service.rate).min()?;
    let latency = services.iter().map(|service| service.latency).sum();
    of_flow(tandems, hops, Service { rate, latency })
}

/// The delay of the flow of a route, which has all of a service.
pub(crate) fn of_flow(tandems: &Tandems<'_>, hops: &[u32], service: Service) -> Option<Ps> {
    let arrival = &tandems.network.flows()[tandems.network.hops[hops[0] as usize].flow as usize].arrival;
    if let Some(most) = curve::most_ahead(arrival, service.rate) {
        return Some(service.latency + units::div_up(most, service.rate));
    }
    let detail = Detail { staircase: true, grouping: false };
    let mut own = Sweep::new(tandems.network, &hops[..1], &tandems.found.shift, 0, detail);
    deviation::fifo(&mut own, service)
}

/// A found delay as the bound of a route.
pub(crate) fn conclude(
    tandems: &Tandems<'_>,
    route: RouteId,
    delay: Option<Ps>,
) -> Result<PathBound, Refusal> {
    let network = tandems.network;
    let hops = network.hops_of(route);
    let largest = Ps::from(MAX_DELAY.ps()) * hops.len() as Ps;
    let first = ServerId(network.hops[hops[0] as usize].server as usize);
    match delay {
        Some(delay) if delay <= largest => {
            let delay = units::time(delay) + total_flow::propagation(network, hops);
            Ok(PathBound::new(network, route, delay))
        }
        Some(_) => Err(Refusal::TooLate(first)),
        None => Err(Refusal::NotApplicable {
            server: first,
            needs: "that other flows leave room on the whole route",
        }),
    }
}

/// Flows that cross a part of a route together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// The first and last place on the route.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Their token bucket where they enter.
    pub(crate) line: Line,
}

/// What servers leave to flows that pass all of them, others joining and leaving, each burst of these counted once.
///
/// `services` are strict for the level. Pay multiplexing only once: with R the least of what the rates of the others leave, the latency
/// is Σ T + (Σ bursts + Σ rate · T where they are) / R.
pub(crate) fn left_by_crossings(services: &[Service], crossings: &[Crossing]) -> Option<Service> {
    let mut rates = services.iter().map(|service| service.rate).collect::<Vec<Rate>>();
    let mut missing = 0;
    for &Crossing { from, to, line } in crossings {
        missing += line.burst;
        for at in from..=to {
            rates[at] -= line.rate;
            missing += line.rate * services[at].latency;
        }
    }
    let rate = rates.into_iter().min().filter(|&rate| rate > 0)?;
    let latency = services.iter().map(|service| service.latency).sum::<Ps>() + units::div_up(missing, rate);
    Some(Service { rate, latency })
}
