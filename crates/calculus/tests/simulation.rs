//! Random networks: no frame of a simulation is later than a bound, and bounds are ordered as theory says.

mod simulator;

use millrace_calculus::{
    Arrival, Cross, Flow, LinearPrograms, Network, Outcome, Route, Scheduler, Server, ServerId, Time,
    TokenBucket, TotalFlow, Transfer, bounds, pmoo, separated_flow, total_flow,
};
use proptest::prelude::*;
use simulator::{Behaviour, simulate};

/// Rounding: some picoseconds for each server.
const ROUNDING: u64 = 100;

/// Rate, latency, its variation, strict priority.
type ServerSketch = (u64, u64, u64, bool);
/// Frame, smallest frame, period, jitter, level, servers, servers of a second route.
type FlowSketch = (u64, u64, u64, u64, u8, u64, Option<u64>);

#[derive(Clone, Debug)]
struct Sketch {
    servers: Vec<ServerSketch>,
    flows: Vec<FlowSketch>,
}

fn sketch() -> impl Strategy<Value = Sketch> {
    // Rate in Mbit/s (a divisor of 10^6, so that a bit takes whole picoseconds), latency and its variation in us, strict priority.
    let server = (prop_oneof![Just(100u64), Just(50), Just(200)], 0..20u64, 0..30u64, any::<bool>());
    // Frame in bytes, smallest in percent of it, period in 100 us, jitter in percent of the period, level, and two sets of servers.
    let flow = (
        64..1518u64,
        10..=100u64,
        10..60u64,
        prop_oneof![Just(0u64), 0..250u64],
        0..3u8,
        1..64u64,
        prop::option::of(1..64u64),
    );
    (prop::collection::vec(server, 2..6), prop::collection::vec(flow, 1..12))
        .prop_map(|(servers, flows)| Sketch { servers, flows })
}

/// A route passes its servers in ascending order, so nothing is a circle.
fn route(servers: usize, set: u64, name: &str) -> Option<Route> {
    let passed = (0..servers).filter(|at| set & (1 << at) != 0).map(ServerId).collect::<Vec<_>>();
    (!passed.is_empty()).then(|| Route { destination: name.to_owned(), servers: passed })
}

fn network(sketch: &Sketch, vary: bool) -> Network {
    let servers = sketch.servers.iter().enumerate().map(|(at, &(rate, latency, more, strict))| {
        let scheduler = if strict { Scheduler::StrictPriority } else { Scheduler::Fifo };
        let (lowest, more) = (Time::from_us(latency), if vary { Time::from_us(more) } else { Time::ZERO });
        Server::port(&at.to_string(), rate * 1_000_000)
            .with_latency(lowest, lowest + more)
            .with_scheduler(scheduler)
    });
    let servers = servers.collect::<Vec<_>>();
    let mut flows: Vec<Flow> = Vec::new();
    for &(bytes, smallest, period, jitter, level, set, second) in &sketch.flows {
        let period = Time::from_us(100 * period);
        let arrival = Arrival::Periodic {
            largest_frame: 8 * bytes,
            smallest_frame: 8 * (bytes * smallest / 100).max(1),
            period,
            jitter: Time::from_ps(period.ps() / 100 * jitter),
        };
        let Some(first) = route(servers.len(), set, "one") else { continue };
        let one = Flow { name: flows.len().to_string(), arrival, level, routes: vec![first] };
        // A second route only if both are a tree.
        let second = second.and_then(|set| route(servers.len(), set, "two"));
        let both = second.map(|second| Flow { routes: vec![one.routes[0].clone(), second], ..one.clone() });
        let tree =
            both.filter(|both| Network::new(servers.clone(), vec![both.clone()], Transfer::Frames).is_ok());
        flows.push(tree.unwrap_or(one));
    }
    Network::new(servers, flows, Transfer::Frames).expect("it is within all limits")
}

fn outcomes(network: &Network) -> Vec<Outcome> {
    let mut all = Vec::new();
    for choice in 0..8 {
        let setting =
            TotalFlow { staircase: choice & 1 != 0, grouping: choice & 2 != 0, least_delay: choice & 4 != 0 };
        all.push(total_flow(network, setting));
    }
    for cross in [Cross::Total, Cross::Separated] {
        all.extend([separated_flow(network, cross), pmoo(network, cross)]);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_frame_is_later_than_a_bound(sketch in sketch(), seed in any::<u64>(), vary in any::<bool>()) {
        let network = network(&sketch, vary);
        let programs = LinearPrograms::new(&network);
        let found = outcomes(&network);
        for behaviour in [Behaviour::Together, Behaviour::Burst, Behaviour::Random] {
            let seen = simulate(&network, behaviour, seed);
            for route in network.routes() {
                let Some((least, most)) = seen.delay(&network, route) else { continue };
                for outcome in &found {
                    if let Ok(bound) = outcome.path(&network, route) {
                        prop_assert!(most <= bound.delay, "{} of {route:?}: {most} seen, {} the bound", outcome.method, bound.delay);
                        prop_assert!(least >= bound.lowest);
                    }
                }
                if let Ok(bound) = programs.bound(route) {
                    prop_assert!(most <= bound.delay, "lp of {route:?}: {most} seen, {} the bound", bound.delay);
                }
            }
            for (outcome, server) in found.iter().flat_map(|it| it.servers.iter().enumerate().map(move |(at, server)| (it, (at, server)))) {
                if let (at, Ok(bound)) = server {
                    let (bits, frames) = seen.most(at);
                    prop_assert!(bits <= bound.buffer, "{} at {at}: {bits} bits seen, {} the bound", outcome.method, bound.buffer);
                    prop_assert!(frames <= bound.frames, "{} at {at}: {frames} frames seen, {}", outcome.method, bound.frames);
                }
            }
        }
    }

    #[test]
    fn more_detail_gives_no_larger_bound(sketch in sketch(), vary in any::<bool>()) {
        let network = network(&sketch, vary);
        for choice in 0..8 {
            let setting = TotalFlow { staircase: choice & 1 != 0, grouping: choice & 2 != 0, least_delay: choice & 4 != 0 };
            let less = total_flow(&network, setting);
            let better = [
                TotalFlow { staircase: true, ..setting },
                TotalFlow { grouping: true, ..setting },
                TotalFlow { least_delay: true, ..setting },
            ];
            for better in better {
                let more = total_flow(&network, better);
                for route in network.routes() {
                    if let Ok(less) = less.path(&network, route) {
                        let more = more.path(&network, route).expect("it has a bound with less detail");
                        prop_assert!(more.delay.ps() <= less.delay.ps() + ROUNDING, "{setting:?}: {} then {better:?}: {}", less.delay, more.delay);
                    }
                }
            }
        }
    }

    #[test]
    fn another_flow_makes_no_bound_smaller(sketch in sketch()) {
        let all = network(&sketch, false);
        let mut flows = all.flows().to_vec();
        flows.pop();
        let fewer = Network::new(all.servers().to_vec(), flows, Transfer::Frames).unwrap();
        for setting in [TotalFlow::AFFINE, TotalFlow::BEST] {
            let (with, without) = (total_flow(&all, setting), total_flow(&fewer, setting));
            for route in fewer.routes() {
                if let Ok(with) = with.path(&all, route) {
                    let without = without.path(&fewer, route).expect("it has a bound with one flow more");
                    prop_assert!(without.delay.ps() <= with.delay.ps() + ROUNDING, "{} with, {} without", with.delay, without.delay);
                }
            }
        }
    }

    #[test]
    fn the_best_is_one_of_the_analyses(sketch in sketch(), vary in any::<bool>()) {
        let network = network(&sketch, vary);
        let found = bounds(&network);
        for route in network.routes() {
            let all = found.outcomes.iter().filter_map(|it| it.path(&network, route).ok()).map(|bound| bound.delay);
            prop_assert_eq!(found.best(&network, route).ok().map(|(_, bound)| bound.delay), all.min());
        }
    }
}

/// One of two or three values, all at or near limits of the model.
fn one_of<const N: usize>(values: [u64; N]) -> impl Strategy<Value = u64> {
    (0..N).prop_map(move |at| values[at])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    /// Integers are checked for overflow in tests, so this shows that none happens. Each of some twenty curves of a case could be followed for 2^20
    /// segments, which took hours; after so many, and at the horizon, an analysis goes on with the same line, whose products are the largest.
    #[test]
    fn limits_of_the_model_are_no_limits_of_the_arithmetic(
        servers in prop::collection::vec(
            (one_of([1, 1_000_000, 10_000_000_000_000]), one_of([0, 100_000]), one_of([0, 100_000]), 0..4u8, any::<bool>()),
            1..6,
        ),
        flows in prop::collection::vec(
            (one_of([1, 1 << 20]), one_of([1, 1_000, 1_000_000_000]), one_of([0, 1, 100_000_000]), 0..64u8, 1..64u64, any::<bool>()),
            1..10,
        ),
        fluid in any::<bool>(),
        segments in 0..14u32,
    ) {
        let server = |(rate, lowest, more, scheduler, link): (u64, u64, u64, u8, bool)| {
            let lowest = Time::from_ms(lowest);
            let largest = Time::from_ms(more).max(lowest);
            let scheduler = match scheduler {
                0 => Scheduler::StrictPriority,
                1 => Scheduler::Arbitrary,
                _ => Scheduler::Fifo,
            };
            let mut server = Server::port("p", rate).with_latency(lowest, largest).with_scheduler(scheduler);
            server.link.rate = server.link.rate.filter(|_| link);
            server
        };
        let servers = servers.into_iter().map(server).collect::<Vec<_>>();
        let flow = |(frame, period, jitter, level, set, periodic): (u64, u64, u64, u8, u64, bool)| {
            let bucket = |burst| TokenBucket { burst, rate: frame * 1_000_000 / period };
            let arrival = if periodic {
                let (period, jitter) = (Time::from_us(period), Time::from_us(jitter));
                Arrival::Periodic { largest_frame: frame, smallest_frame: 0, period, jitter }
            } else {
                let buckets = vec![bucket(frame), bucket(1_000_000_000_000), TokenBucket { burst: 0, rate: 10_000_000_000_000 }];
                Arrival::Buckets { buckets, largest_frame: frame, smallest_frame: 1 }
            };
            route(servers.len(), set, "d").map(|route| Flow { name: "f".to_owned(), arrival, level, routes: vec![route] })
        };
        let flows = flows.into_iter().filter_map(flow).collect::<Vec<_>>();
        let transfer = if fluid { Transfer::Fluid } else { Transfer::Frames };
        let network = Network::new(servers, flows, transfer).expect("it is within all limits").with_breakpoints(1 << segments);
        let programs = LinearPrograms::new(&network);
        let found = outcomes(&network);
        let least = bounds(&network);
        for route in network.routes() {
            let _ = programs.bound(route);
            prop_assert!(found.iter().all(|it| it.path(&network, route).is_ok_and(|it| it.delay >= it.lowest) || it.path(&network, route).is_err()));
            let _ = least.best(&network, route);
        }
    }
}
