//! Random networks, for tests and evaluations.

use crate::graph::Graph;
use crate::limits::MAX_PRIORITY;
use crate::load::{frame_bits, time_of};
use crate::model::*;
use crate::random::Random;

/// How large a random network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Switches, which are linked as a random tree: then no ports depend on each other in a circle.
    pub switches: usize,
    /// End systems, each at a random switch.
    pub end_systems: usize,
    /// Virtual links; fewer if links are full before.
    pub vls: usize,
    /// Destinations of a virtual link at most.
    pub destinations: usize,
    /// Links between switches beyond the tree. With some, ports may depend on each other in a circle.
    pub extra_links: usize,
    /// The largest load of a link, in percent.
    pub load: u64,
}

impl Size {
    /// A random size that is quick to analyse and to simulate.
    pub fn random(seed: u64) -> Size {
        let mut random = Random::new(seed ^ 0x51ce);
        let mut between = |least: u64, most: u64| (least + random.below(most - least + 1)) as usize;
        Size {
            switches: between(1, 6),
            end_systems: between(3, 16),
            vls: between(4, 80),
            destinations: between(1, 4),
            extra_links: 0,
            load: between(10, 90) as u64,
        }
    }
}

/// A random network; the same seed gives the same.
pub fn generate(seed: u64, size: Size) -> Network {
    let mut random = Random::new(seed);
    let priorities = 1 + random.below(3) as u8;
    let scheduler = if random.one_in(2) { Scheduler::Fifo } else { Scheduler::Priority };
    let switch = |place: usize, random: &mut Random| Switch {
        name: format!("S{}", place + 1),
        network: Side::A,
        latency: random.below(4) * 8_000,
        least_latency: 0,
        scheduler,
        priorities,
        buffer: None,
        max_delay: None,
        end_system: None,
    };
    let switches: Vec<Switch> = (0..size.switches.max(1)).map(|place| switch(place, &mut random)).collect();
    let end_system = |place: usize| EndSystem {
        name: format!("E{}", place + 1),
        id: place as u16 + 1,
        latency: 0,
        least_latency: 0,
        receive_latency: 0,
        technological_jitter: 40_000,
        max_jitter: crate::MAX_TIME,
    };
    let mut network = Network {
        end_systems: (0..size.end_systems.max(2)).map(end_system).collect(),
        switches,
        ..Network::empty(format!("random-{seed}"), 20)
    };
    link(&mut network, size, &mut random);
    send(&mut network, size, priorities, &mut random);
    network
}

fn link(network: &mut Network, size: Size, random: &mut Random) {
    let rates = [10_000_000, 100_000_000, 100_000_000, 1_000_000_000];
    let mut used = std::collections::HashMap::new();
    let mut add = |from: String, to: String, random: &mut Random| {
        let mut end = |node: String| {
            let port = used.entry(node.clone()).or_insert(0u16);
            *port += 1;
            End { node, port: *port - 1 }
        };
        let between = [end(from), end(to)];
        let rate = rates[random.below(rates.len() as u64) as usize];
        network.links.push(Link {
            between,
            network: Side::A,
            rate,
            service_rate: rate,
            latency: None,
            propagation: random.below(3) * 100,
            one_way: false,
        });
    };
    let name = |place: u64| format!("S{}", place + 1);
    let count = network.switches.len() as u64;
    let mut joined = std::collections::HashSet::new();
    for place in 1..count {
        let before = random.below(place);
        joined.insert((before, place));
        add(name(before), name(place), random);
    }
    for _ in 0..size.extra_links {
        let (a, b) = (random.below(count), random.below(count));
        if a != b && joined.insert((a.min(b), a.max(b))) {
            add(name(a), name(b), random);
        }
    }
    for place in 0..network.end_systems.len() {
        let switch = name(random.below(count));
        add(format!("E{}", place + 1), switch, random);
    }
}

fn send(network: &mut Network, size: Size, priorities: u8, random: &mut Random) {
    let graph = Graph::new(&network.end_systems, &network.switches, &network.links);
    let count = network.end_systems.len() as u64;
    // Bit/s that are left of what each port may have.
    let mut left: Vec<u64> = graph.ports.iter().map(|port| port.rate / 100 * size.load.min(100)).collect();
    for id in 0..size.vls.min(crate::MAX_VLS) {
        let source = random.below(count) as u32;
        let mut to: Vec<u32> = Vec::new();
        for _ in 0..1 + random.below(size.destinations.max(1) as u64) {
            let node = random.below(count) as u32;
            if node != source && !to.contains(&node) {
                to.push(node);
            }
        }
        let lmax = 64 + random.below(1455) as u16;
        let lmin = 64 + random.below(u64::from(lmax) - 63) as u16;
        let is_late = random.one_in(4);
        let vl = Vl {
            id: id as u16,
            name: format!("V{id}"),
            source: graph.name(source).to_owned(),
            bag: 500_000 << random.below(6),
            lmin,
            lmax,
            jitter: None,
            source_jitter: if is_late { random.below(400_000) } else { 0 },
            priority: (random.below(priorities.into()) as u8).min(MAX_PRIORITY as u8),
            policing: Policing::ALL[random.below(4) as usize].0,
            shared_account: None,
            skew_max: 5_000_000,
            deadline: None,
            routes: Vec::new(),
            sub_vls: Vec::new(),
        };
        let reached = graph.reached_from(source, Side::A);
        let paths: Vec<Vec<String>> = to
            .iter()
            .map(|node| {
                graph.path_to(*node, &reached).into_iter().map(|node| graph.name(node).to_owned()).collect()
            })
            .filter(|path: &Vec<String>| !path.is_empty())
            .collect();
        let Ok(tree) = graph.tree(0, source, Side::A, &paths) else { continue };
        // A second has so many gaps, and each a frame.
        let rate = time_of(frame_bits(&vl, network.overhead), vl.bag);
        if tree.hops.is_empty() || tree.hops.iter().any(|hop| left[hop.port as usize] < rate) {
            continue;
        }
        tree.hops.iter().for_each(|hop| left[hop.port as usize] -= rate);
        network.vls.push(Vl { routes: vec![Route { network: Side::A, paths }], ..vl });
    }
}
