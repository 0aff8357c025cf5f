//! A simulation of a network of [`millrace_calculus`], frame by frame, that shares nothing with the analyses but the description.
//!
//! Servers are simulated one after the other, each after those before it: which frames come, and when, is known by then.

use std::collections::{HashMap, VecDeque};

use millrace_calculus::{Arrival, Network, RouteId, Scheduler, Time};

/// How sources behave, within what they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// All send their largest frames from moment 0 on, as often as they can, none late.
    Together,
    /// The same, but each is so late at first that what became ready until then comes at once.
    Burst,
    /// Any length, any offset, any lateness.
    Random,
}

/// What was seen.
pub(crate) struct Seen {
    /// Of each frame of each flow: when it was ready at the source.
    ready: Vec<Vec<u64>>,
    /// When frame n of a flow left a server.
    left: HashMap<(usize, usize), Vec<u64>>,
    most: Vec<(u64, u64)>,
}

impl Seen {
    /// The least and the largest delay of the frames of a route.
    pub(crate) fn delay(&self, network: &Network, route: RouteId) -> Option<(Time, Time)> {
        let flow = route.flow.0;
        let servers = &network.flows()[flow].routes[route.route].servers;
        let last = servers.last()?.0;
        let end = network.servers()[last].link.propagation.ps();
        let left = self.left.get(&(flow, last))?;
        let delays =
            left.iter().zip(&self.ready[flow]).map(|(left, ready)| Time::from_ps(left + end - ready));
        Some((delays.clone().min()?, delays.max()?))
    }

    /// The most bits and frames in a server.
    pub(crate) fn most(&self, server: usize) -> (u64, u64) {
        self.most[server]
    }
}

const FRAMES: u64 = 24;

/// A generator of numbers: xorshift.
struct Numbers(u64);

impl Numbers {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if most == u64::MAX { self.0 } else { self.0 % (most + 1) }
    }
}

/// Simulates some frames of each flow.
pub(crate) fn simulate(network: &Network, behaviour: Behaviour, seed: u64) -> Seen {
    let mut numbers = Numbers(seed | 1);
    let mut ready = Vec::new();
    let mut bits = Vec::new();
    for flow in network.flows() {
        let Arrival::Periodic { largest_frame, smallest_frame, period, jitter } = flow.arrival else {
            panic!("only periodic flows")
        };
        let offset = if behaviour == Behaviour::Random { numbers.up_to(period.ps()) } else { 0 };
        let mut times: Vec<u64> = Vec::new();
        for frame in 0..FRAMES {
            let due = frame * period.ps();
            let at = match behaviour {
                Behaviour::Together => due,
                Behaviour::Burst => due.max(jitter.ps()) - jitter.ps(),
                Behaviour::Random => offset + due + numbers.up_to(jitter.ps()),
            };
            times.push(at.max(times.last().copied().unwrap_or(0)));
        }
        ready.push(times);
        let length = |numbers: &mut Numbers| match behaviour {
            Behaviour::Random => smallest_frame + numbers.up_to(largest_frame - smallest_frame),
            _ => largest_frame,
        };
        bits.push((0..FRAMES).map(|_| length(&mut numbers)).collect::<Vec<_>>());
    }
    let mut seen = Seen { ready, left: HashMap::new(), most: vec![(0, 0); network.servers().len()] };
    // Routes go up in the numbers of servers.
    for server in 0..network.servers().len() {
        serve(network, server, &bits, &mut numbers, &mut seen);
    }
    seen
}

/// A frame in a queue: when it came there, and a random number by which those of the same moment are ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    at: u64,
    tie: u64,
    flow: usize,
    frame: usize,
}

fn serve(network: &Network, number: usize, bits: &[Vec<u64>], numbers: &mut Numbers, seen: &mut Seen) {
    let server = &network.servers()[number];
    let mut waiting = Vec::new();
    for (flow, it) in network.flows().iter().enumerate() {
        let passing = it.routes.iter().find_map(|route| {
            let at = route.servers.iter().position(|server| server.0 == number)?;
            Some(at.checked_sub(1).map(|before| route.servers[before].0))
        });
        let Some(before) = passing else { continue };
        let arrivals = match before {
            None => seen.ready[flow].clone(),
            Some(before) => {
                let way = network.servers()[before].link.propagation.ps();
                seen.left[&(flow, before)].iter().map(|left| left + way).collect()
            }
        };
        let mut earliest = 0;
        let mut tie = 0;
        for (frame, arrival) in arrivals.into_iter().enumerate() {
            let lowest = server.latency.lowest.ps();
            let latency = lowest + numbers.up_to(server.latency.largest.ps() - lowest);
            let at = (arrival + latency).max(earliest);
            // Frames of a flow keep their order.
            tie = if at == earliest { tie + 1 } else { numbers.up_to(1 << 32) };
            earliest = at;
            waiting.push(Queued { at, tie, flow, frame });
        }
    }
    waiting.sort_unstable();
    let mut queues = vec![VecDeque::new(); 256];
    let mut changes = Vec::new();
    let mut next = waiting.into_iter().peekable();
    let mut now = 0;
    loop {
        while let Some(frame) = next.next_if(|frame| frame.at <= now) {
            let level = if server.scheduler == Scheduler::StrictPriority {
                network.flows()[frame.flow].level
            } else {
                0
            };
            queues[usize::from(level)].push_back(frame);
        }
        if let Some(frame) = queues.iter_mut().find_map(VecDeque::pop_front) {
            let length = bits[frame.flow][frame.frame];
            now += length * (1_000_000_000_000 / server.service[0].rate);
            seen.left.entry((frame.flow, number)).or_default().push(now);
            // What leaves at a moment is counted before what comes.
            changes.push((frame.at, 1, length));
            changes.push((now, 0, length));
        } else if let Some(frame) = next.peek() {
            now = frame.at;
        } else {
            break;
        }
    }
    changes.sort_unstable();
    let (mut room, mut frames) = (0, 0);
    for (_, comes, length) in changes {
        if comes == 1 {
            (room, frames) = (room + length, frames + 1);
        } else {
            (room, frames) = (room - length, frames - 1);
        }
        seen.most[number] = (seen.most[number].0.max(room), seen.most[number].1.max(frames));
    }
}
