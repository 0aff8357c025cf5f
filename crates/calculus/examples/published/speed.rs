//! How long bounds take on a large network: 8 switches in two rows, 1000 virtual links with 6 destinations each.

use std::time::Instant;

use millrace_calculus::{
    Arrival, Flow, LinearPrograms, Network, Route, Server, ServerId, Time, Transfer, bounds,
};

const SWITCHES: usize = 8;
const STATIONS: usize = 96;
const RATE: u64 = 100_000_000;

/// Ports: of each end system one, of each switch one to each end system at it, and one to each switch with a higher or lower number.
fn network() -> Network {
    let mut servers = (0..STATIONS).map(|at| Server::port(&format!("es{at}"), RATE)).collect::<Vec<_>>();
    let down = servers.len();
    let latency = Time::from_us(16);
    servers.extend(
        (0..STATIONS).map(|at| Server::port(&format!("to es{at}"), RATE).with_latency(latency, latency)),
    );
    let across = servers.len();
    let trunk = |at| Server::port(&format!("trunk {at}"), 10 * RATE).with_latency(latency, latency);
    servers.extend((0..SWITCHES * SWITCHES).map(trunk));
    // Switches 0 to 3 are linked in all pairs; each of 4 to 7 with the one that is 4 less.
    let way = |from: usize, to: usize| {
        if from == to {
            return Vec::new();
        }
        let mut nodes = vec![from, from % 4, to % 4, to];
        nodes.dedup();
        nodes.windows(2).map(|pair| ServerId(across + pair[0] * SWITCHES + pair[1])).collect::<Vec<_>>()
    };
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let flows = (0..1000).map(|at| {
        let source = random(STATIONS);
        let mut targets = Vec::new();
        while targets.len() < 6 {
            let target = random(STATIONS);
            if target != source && !targets.contains(&target) {
                targets.push(target);
            }
        }
        let routes = targets.iter().map(|&target| {
            let mut servers = vec![ServerId(source)];
            servers.extend(way(source % SWITCHES, target % SWITCHES));
            servers.push(ServerId(down + target));
            Route { destination: format!("es{target}"), servers }
        });
        let frame = 8 * (84 + random(500) as u64);
        let arrival = Arrival::Periodic {
            largest_frame: frame,
            smallest_frame: 672,
            period: Time::from_ms(1 << random(6).max(2)),
            jitter: Time::ZERO,
        };
        Flow { name: format!("vl{at}"), arrival, level: 0, routes: routes.collect() }
    });
    Network::new(servers, flows.collect(), Transfer::Frames).expect("it is a network")
}

pub(crate) fn measure() {
    let network = network();
    let largest =
        (0..network.servers().len()).map(|at| network.load(ServerId(at)).percent()).fold(0.0, f64::max);
    println!(
        "{} ports, {} flows, {} routes, largest load {largest:.1} %",
        network.servers().len(),
        network.flows().len(),
        network.routes().count()
    );
    for _ in 0..3 {
        let begin = Instant::now();
        let found = bounds(&network);
        let took = begin.elapsed();
        let all = network
            .routes()
            .filter_map(|route| found.best(&network, route).ok())
            .map(|(_, bound)| bound.delay.us());
        let all = all.collect::<Vec<_>>();
        println!(
            "bounds of {} routes, mean {:.1} us, in {took:?}",
            all.len(),
            all.iter().sum::<f64>() / all.len().max(1) as f64
        );
    }
    let begin = Instant::now();
    let programs = LinearPrograms::new(&network);
    println!("preparing linear programs: {:?}", begin.elapsed());
    let mut slowest = std::time::Duration::ZERO;
    for route in network.routes().step_by(500) {
        let begin = Instant::now();
        let bound = programs.bound(route);
        slowest = slowest.max(begin.elapsed());
        if let Err(refusal) = bound {
            println!("{}", refusal.describe(&network));
        }
    }
    println!("slowest of {} linear programs: {slowest:?}", network.routes().step_by(500).count());
}
