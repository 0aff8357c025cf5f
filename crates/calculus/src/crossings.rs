//! What crosses a route, as sums of token buckets: for each part of the route, of all flows that cross just that part.
//!
//! A **run** of a flow is a part of the route that it crosses without leaving the route between. A flow that leaves and comes back has two.

use crate::curve::Line;
use crate::network::{Hop, Network, RouteId};
use crate::pmoo::{MAX_STEPS, TOO_MANY};
use crate::refusal::Refusal;
use crate::separated_flow::Crossing;
use crate::tandem::Tandems;

/// Sums what crosses routes: quickly if routes come one after the other that begin with the same servers ([`in_order`]).
pub(crate) struct Sums {
    /// Of each server what comes to it, by level and link.
    groups: Vec<Vec<Group>>,
    /// Of each hop, the run that it was seen in last.
    begun: Vec<Begun>,
    /// The servers of the last route.
    places: Vec<Place>,
    search: u32,
    steps: u64,
}

/// The flows of a level that come to a server by one link, or begin there.
struct Group {
    level: u8,
    input: Option<u32>,
    hops: Vec<u32>,
    sum: Line,
}

/// Where a run begins that a hop is in.
#[derive(Clone, Copy, Default)]
struct Begun {
    search: u32,
    /// The place on the route.
    from: u32,
    /// The hop there.
    hop: u32,
}

/// What crosses a route at one of its servers: sums of token buckets, by the place where runs begin.
struct Place {
    server: u32,
    level: u8,
    search: u32,
    /// All runs, that of the route's own flow among them.
    passes: Vec<Line>,
    /// Those that have passed the server before, too.
    goes_on: Vec<Line>,
}

impl Sums {
    pub(crate) fn new(tandems: &Tandems<'_>) -> Sums {
        let network = tandems.network;
        Sums {
            groups: network.order.visits.iter().map(|visits| groups(tandems, visits)).collect(),
            begun: vec![Begun::default(); network.hops.len()],
            places: Vec::new(),
            search: 0,
            steps: 0,
        }
    }

    /// What crosses a route, by where its runs begin and end.
    ///
    /// What passes a route at one of its servers depends on the servers before it alone. So where a route begins with the servers of the last one, their
    /// sums are known. A run that passes a server goes on to the next one or ends: what ends is what passes less what goes on. The route's own flow is a run
    /// of all servers.
    pub(crate) fn of(&mut self, tandems: &Tandems<'_>, hops: &[u32]) -> Result<Vec<Crossing>, Refusal> {
        if self.search as usize > u32::MAX as usize - hops.len() {
            *self = Sums { steps: self.steps, ..Sums::new(tandems) };
        }
        let network = tandems.network;
        let is_same = |(place, hop): &(&Place, &u32)| {
            (place.server, place.level) == (network.hops[**hop as usize].server, network.level(**hop))
        };
        let same = self.places.iter().zip(hops).take_while(is_same).count();
        self.places.truncate(same);
        for &hop in &hops[same..] {
            self.place(tandems, hop)?;
        }
        let mut crossings = Vec::new();
        for from in 0..hops.len() {
            for to in from..hops.len() {
                let mut line = self.places[to].passes[from];
                match self.places.get(to + 1) {
                    Some(next) => line.subtract(next.goes_on[from]),
                    None if from == 0 => line.subtract(tandems.lines[hops[0] as usize]),
                    None => {}
                }
                if line != Line::default() {
                    crossings.push(Crossing { from, to, line });
                }
            }
        }
        Ok(crossings)
    }

    /// Sums what crosses a route at the server of its next hop. What comes by another link than the route's begins its run here, and its sum is known; so
    /// only flows that come by the same link are looked at one by one.
    fn place(&mut self, tandems: &Tandems<'_>, hop: u32) -> Result<(), Refusal> {
        let network = tandems.network;
        let Hop { server, input, .. } = network.hops[hop as usize];
        let (at, level) = (self.places.len(), network.level(hop));
        self.search += 1;
        let search = self.search;
        let mut passes = vec![Line::default(); at + 1];
        let mut goes_on = passes.clone();
        let groups = self.groups[server as usize].iter().filter(|group| group.level == level);
        let (same, others): (Vec<&Group>, Vec<&Group>) =
            groups.partition(|group| at > 0 && group.input == input);
        others.iter().for_each(|group| passes[at].add(group.sum));
        let Some(before) = self.places.last() else {
            self.places.push(Place { server, level, search, passes, goes_on });
            return Ok(());
        };
        for &other in same.iter().flat_map(|group| &group.hops) {
            let parent = network.hops[other as usize].parent;
            self.steps += 1;
            let run = match parent.map(|parent| (parent, self.begun[parent as usize])) {
                // It passed the server before, and came there by the route's link or
                Some((_, begun)) if begun.search == before.search => Some(begun),
                // by another one, of the same level;
                Some((parent, _)) if network.level(parent) == before.level => {
                    Some(Begun { search, from: at as u32 - 1, hop: parent })
                }
                // or it begins to cross here.
                _ => None,
            };
            if let Some(begun) = run {
                goes_on[begun.from as usize].add(tandems.lines[begun.hop as usize]);
            }
            let run = run.unwrap_or(Begun { search, from: at as u32, hop: other });
            passes[run.from as usize].add(tandems.lines[run.hop as usize]);
            self.begun[other as usize] = Begun { search, ..run };
        }
        self.places.push(Place { server, level, search, passes, goes_on });
        match self.steps > MAX_STEPS {
            true => Err(TOO_MANY),
            false => Ok(()),
        }
    }
}

/// The routes of a network in an order in which those that begin with the same servers come one after the other, each with its place.
pub(crate) fn in_order(network: &Network) -> Vec<(usize, RouteId)> {
    let server = |hop: &u32| (network.hops[*hop as usize].server, network.level(*hop));
    let mut routes: Vec<_> = network.routes().enumerate().collect();
    routes.sort_by(|(_, a), (_, b)| {
        network.hops_of(*a).iter().map(server).cmp(network.hops_of(*b).iter().map(server))
    });
    routes
}

fn groups(tandems: &Tandems<'_>, visits: &[u32]) -> Vec<Group> {
    let network = tandems.network;
    let key = |hop: u32| (network.level(hop), network.input(hop));
    let mut hops = visits.to_vec();
    hops.sort_by_key(|&hop| key(hop));
    let group = |hops: &[u32]| {
        let mut sum = Line::default();
        hops.iter().for_each(|&hop| sum.add(tandems.lines[hop as usize]));
        let (level, input) = key(hops[0]);
        Group { level, input, hops: hops.to_vec(), sum }
    };
    hops.chunk_by(|&a, &b| key(a) == key(b)).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Arrival, Flow, Route, Scheduler, Server, ServerId, Transfer};
    use crate::pmoo::Finder;
    use crate::units::Time;

    const LAYERS: usize = 5;
    const WIDTH: usize = 4;

    /// Flows over five layers of servers. A flow comes to each server by one other, which differs from flow to flow, so flows leave each other's routes and
    /// come back; and some servers are first in, first out, so that flows of a route's level there are of another one before.
    fn network(seed: u64) -> Network {
        let mut at = seed;
        let mut random = |below: usize| {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (at >> 33) as usize % below
        };
        let server = |place: usize, random: &mut dyn FnMut(usize) -> usize| Server {
            scheduler: if random(2) == 0 { Scheduler::Fifo } else { Scheduler::StrictPriority },
            ..Server::port(&format!("p{place}"), 1_000_000_000)
        };
        let servers = (0..LAYERS * WIDTH).map(|place| server(place, &mut random)).collect();
        let flow = |place: usize, random: &mut dyn FnMut(usize) -> usize| {
            let source = random(WIDTH);
            let before: Vec<usize> = (0..LAYERS * WIDTH)
                .map(|to| if to < 2 * WIDTH { source } else { (to / WIDTH - 1) * WIDTH + random(WIDTH) })
                .collect();
            let mut targets: Vec<usize> =
                (0..1 + random(5)).map(|_| WIDTH + random((LAYERS - 1) * WIDTH)).collect();
            targets.sort_unstable();
            targets.dedup();
            let route = |target: usize| {
                let mut servers = vec![target];
                while servers[servers.len() - 1] >= WIDTH {
                    servers.push(before[servers[servers.len() - 1]]);
                }
                servers.reverse();
                Route {
                    destination: format!("d{target}"),
                    servers: servers.into_iter().map(ServerId).collect(),
                }
            };
            Flow {
                name: format!("f{place}"),
                arrival: Arrival::Periodic {
                    largest_frame: 512 + random(8192) as u64,
                    smallest_frame: 512,
                    period: Time::from_ms(1 + random(100) as u64),
                    jitter: Time::ZERO,
                },
                level: random(2) as u8,
                routes: targets.into_iter().map(route).collect(),
            }
        };
        let flows = (0..40).map(|place| flow(place, &mut random)).collect();
        Network::new(servers, flows, Transfer::Frames).expect("a network")
    }

    /// The same as the search that looks at each flow by itself, in the order for which it is quick and in any other.
    #[test]
    fn sums_are_those_of_each_run_by_itself() {
        let mut several = 0;
        for seed in 0..50 {
            let network = network(seed);
            let tandems = Tandems::new(&network);
            let (mut sums, mut finder) = (Sums::new(&tandems), Finder::new(&network));
            let routes = in_order(&network).into_iter().chain(network.routes().enumerate());
            for (_, route) in routes {
                let hops = network.hops_of(route);
                let runs = finder.find(&tandems, hops, &hops[..1]).expect("few runs");
                several += usize::from(runs.iter().any(|run| run.to > run.from));
                let sum = |hops: &[u32]| {
                    let mut sum = Line::default();
                    hops.iter().for_each(|&hop| sum.add(tandems.lines[hop as usize]));
                    sum
                };
                let wanted: Vec<_> = runs.iter().map(|run| (run.from, run.to, sum(&run.hops))).collect();
                let found = sums.of(&tandems, hops).expect("few runs");
                let found: Vec<_> = found.iter().map(|it| (it.from, it.to, it.line)).collect();
                assert_eq!(found, wanted, "{seed} {route:?}");
            }
        }
        assert!(several > 1000, "{several}");
    }
}
