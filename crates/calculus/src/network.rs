//! What is analysed: servers, and flows that pass them.
//!
//! A **server** is an output port: a queue, a scheduler and a transmitter. A **flow** is what one source sends, for example a virtual link; its
//! **routes** lead to its destinations and together are a tree, for a frame that several of them share passes a port once. [`Network::new`]
//! refuses what is no such network, with a [`ModelError`]. It accepts a network without bounds, with an overloaded port for example: an
//! analysis then has a [`Refusal`](crate::Refusal) where the bound would be.
//!
//! Where a frame is, is counted by its last bit: it arrives at a server when its last bit has been received, and leaves it when its last
//! bit has been sent (store and forward).

use crate::check::{self, ModelError, RouteFault};
use crate::order::{self, Order};
use crate::refusal::Refusal;
use crate::units::Time;

/// The largest number of servers.
pub const MAX_SERVERS: usize = 65_536;
/// The largest number of flows.
pub const MAX_FLOWS: usize = 65_536;
/// The largest number of routes of all flows.
pub const MAX_ROUTES: usize = 262_144;
/// The largest number of servers on a route.
pub const MAX_HOPS: usize = 64;
/// The largest number of hops of all flows, a shared one counted once.
pub const MAX_TOTAL_HOPS: usize = 1_048_576;
/// The largest number of priority levels.
pub const MAX_LEVELS: u8 = 64;
/// The largest number of token buckets of a flow, and of rate-latency curves of a server.
pub const MAX_PIECES: usize = 16;
/// The largest frame, in bits.
pub const MAX_FRAME: u64 = 1 << 20;
/// The largest burst of a token bucket, in bits.
pub const MAX_BURST: u64 = 1_000_000_000_000;
/// The largest rate, in bit/s.
pub const MAX_RATE: u64 = 10_000_000_000_000;
/// The shortest period.
pub const MIN_PERIOD: Time = Time::from_us(1);
/// The longest period.
pub const MAX_PERIOD: Time = Time::from_ms(1_000_000);
/// The longest jitter, latency and propagation, and the longest delay of one server that an analysis gives as a bound.
pub const MAX_DELAY: Time = Time::from_ms(100_000);

/// The number of a server in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub usize);

/// The number of a flow in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub usize);

/// A route of a flow: the flow, and the place of the route in [`Flow::routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId {
    /// The flow.
    pub flow: FlowId,
    /// Which of its routes.
    pub route: usize,
}

/// A service curve: nothing for a time, then at least a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLatency {
    /// In bit/s.
    pub rate: u64,
    /// For how long there may be no service.
    pub latency: Time,
}

/// How long a frame takes from its arrival at a switch to its place in the queue of the output port: the technological latency.
///
/// It includes what the switch does with a complete frame before the queue: checking, lookup, policing, copying. It does not include the
/// reception, waiting in the queue, or the transmission. If `lowest` and `largest` differ, frames of different inputs may change their order on
/// the way, frames of one flow do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// No frame takes less.
    pub lowest: Time,
    /// No frame takes more.
    pub largest: Time,
}

/// What follows a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The rate at which bits leave, in bit/s: never faster, so it limits what can arrive at the next server in a short time (grouping). None
    /// if no such limit is known.
    pub rate: Option<u64>,
    /// How long a bit takes to the other end.
    pub propagation: Time,
}

/// In which order a server sends what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// First in, first out; priorities of flows are not looked at.
    Fifo,
    /// Level 0 first, and so on; first in, first out within a level. A frame whose transmission has begun is sent to its end.
    StrictPriority,
    /// Any order, as long as the server is never idle with data waiting and the frames of one flow keep their order (blind multiplexing).
    Arbitrary,
    /// One for which there is no analysis here, with its name.
    Unsupported(String),
}

/// An output port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// What it is called in messages.
    pub name: String,
    /// What it serves at least, after the technological latency: the largest of these. A port that is never idle with a frame waiting has one,
    /// with the rate of its link and no latency. Strict: each holds from the start of any time in which the server always has data.
    pub service: Vec<RateLatency>,
    /// The time before the queue.
    pub latency: Latency,
    /// What follows.
    pub link: Link,
    /// Whose turn it is.
    pub scheduler: Scheduler,
}

impl Server {
    /// A port that sends at `rate` bit/s first in first out whenever it has a frame, without latency and propagation.
    pub fn port(name: &str, rate: u64) -> Server {
        Server {
            name: name.to_owned(),
            service: vec![RateLatency { rate, latency: Time::ZERO }],
            latency: Latency::default(),
            link: Link { rate: Some(rate), propagation: Time::ZERO },
            scheduler: Scheduler::Fifo,
        }
    }

    /// The same with this scheduler.
    pub fn with_scheduler(mut self, scheduler: Scheduler) -> Server {
        self.scheduler = scheduler;
        self
    }

    /// The same with this technological latency.
    pub fn with_latency(mut self, lowest: Time, largest: Time) -> Server {
        self.latency = Latency { lowest, largest };
        self
    }

    /// The same with this propagation on its link.
    pub fn with_propagation(mut self, propagation: Time) -> Server {
        self.link.propagation = propagation;
        self
    }
}

/// A token bucket: at most `burst` + `rate` · t bits in any time t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// In bits.
    pub burst: u64,
    /// In bit/s.
    pub rate: u64,
}

/// What a source sends at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A frame at the earliest one `period` after the one before, each late by up to `jitter`: at most ⌊(t + jitter) / period⌋ + 1 frames in any
    /// time t. A virtual link, whose period is its BAG.
    Periodic {
        /// In bits, of which there may be none larger.
        largest_frame: u64,
        /// In bits, of which there may be none smaller.
        smallest_frame: u64,
        /// The least time between frames as they become ready.
        period: Time,
        /// The largest lateness.
        jitter: Time,
    },
    /// What fits in all of these.
    Buckets {
        /// At least one.
        buckets: Vec<TokenBucket>,
        /// In bits.
        largest_frame: u64,
        /// In bits.
        smallest_frame: u64,
    },
}

impl Arrival {
    /// The largest frame, in bits.
    pub fn largest_frame(&self) -> u64 {
        match self {
            Arrival::Periodic { largest_frame, .. } | Arrival::Buckets { largest_frame, .. } => {
                *largest_frame
            }
        }
    }

    /// The smallest frame, in bits.
    pub fn smallest_frame(&self) -> u64 {
        match self {
            Arrival::Periodic { smallest_frame, .. } | Arrival::Buckets { smallest_frame, .. } => {
                *smallest_frame
            }
        }
    }
}

/// A way of a flow to one of its destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What the destination is called.
    pub destination: String,
    /// The output ports on the way, that of the source first.
    pub servers: Vec<ServerId>,
}

/// What one source sends to its destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What it is called in messages.
    pub name: String,
    /// What it sends at most.
    pub arrival: Arrival,
    /// Its level at servers with strict priority: 0 goes first.
    pub level: u8,
    /// Where it goes. Routes that share their first servers share the frames there.
    pub routes: Vec<Route>,
}

/// What moves through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Whole frames: a server sends a frame after it has all of it.
    Frames,
    /// Bits, each sent on at once: the fluid model of the literature. Frame lengths do not matter to FIFO servers.
    Fluid,
}

/// A flow at a server. Hops of all flows are in one list, a hop always after the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) flow: u32,
    pub(crate) server: u32,
    /// The hop before this one; none at the source.
    pub(crate) parent: Option<u32>,
    /// The server of that hop, which is also the link by which the flow arrives.
    pub(crate) input: Option<u32>,
}

/// A network to analyse, checked.
#[derive(Clone, Debug)]
pub struct Network {
    servers: Vec<Server>,
    flows: Vec<Flow>,
    transfer: Transfer,
    pub(crate) hops: Vec<Hop>,
    /// Of each route its hops, in the order of flows and of their routes.
    pub(crate) route_hops: Vec<Vec<u32>>,
    /// Of each flow the place of its first route in `route_hops`.
    pub(crate) first_route: Vec<usize>,
    pub(crate) order: Order,
}

impl Network {
    /// Checks what is to be analysed.
    ///
    /// # Errors
    /// What is no network, or above a limit. A network in which some bounds do not exist is no error.
    pub fn new(servers: Vec<Server>, flows: Vec<Flow>, transfer: Transfer) -> Result<Network, ModelError> {
        check::limit("servers", servers.len(), MAX_SERVERS)?;
        check::limit("flows", flows.len(), MAX_FLOWS)?;
        check::limit("routes", flows.iter().map(|flow| flow.routes.len()).sum(), MAX_ROUTES)?;
        for server in &servers {
            check::server(server)?;
        }
        let mut network = Network {
            hops: Vec::new(),
            route_hops: Vec::new(),
            first_route: Vec::with_capacity(flows.len()),
            order: Order::default(),
            servers,
            flows: Vec::new(),
            transfer,
        };
        let mut known = vec![None; network.servers.len()];
        for (index, flow) in flows.iter().enumerate() {
            check::flow(flow)?;
            network.add_routes(index, flow, &mut known)?;
            check::limit("hops", network.hops.len(), MAX_TOTAL_HOPS)?;
        }
        network.flows = flows;
        network.order = order::of(&network);
        Ok(network)
    }

    /// The same network, of whose arrival curves an analysis follows at most so many segments: then it goes on with the line above the
    /// rest. Fewer segments take less time and give larger bounds; without this there are up to [`MAX_BREAKPOINTS`](crate::MAX_BREAKPOINTS).
    #[must_use]
    pub fn with_breakpoints(mut self, most: usize) -> Network {
        self.order.breakpoints = self.order.breakpoints.min(most);
        self
    }

    /// Adds the hops of a flow. `known` has the last hop at each server, of whatever flow.
    fn add_routes(&mut self, index: usize, flow: &Flow, known: &mut [Option<u32>]) -> Result<(), ModelError> {
        self.first_route.push(self.route_hops.len());
        let first = self.hops.len() as u32;
        for route in &flow.routes {
            let error = |what| ModelError::Route {
                flow: flow.name.clone(),
                destination: route.destination.clone(),
                what,
            };
            if route.servers.is_empty() {
                return Err(error(RouteFault::Empty));
            }
            if route.servers.len() > MAX_HOPS {
                return Err(error(RouteFault::TooLong(route.servers.len())));
            }
            let mut path = Vec::with_capacity(route.servers.len());
            let mut parent = None;
            for &ServerId(server) in &route.servers {
                if server >= self.servers.len() {
                    return Err(error(RouteFault::NoSuchServer(server)));
                }
                let name = || self.servers[server].name.clone();
                let hop = match known[server].filter(|&hop| hop >= first) {
                    Some(hop) if path.contains(&hop) => return Err(error(RouteFault::Twice(name()))),
                    Some(hop) if self.hops[hop as usize].parent != parent => {
                        return Err(error(RouteFault::NoTree(name())));
                    }
                    Some(hop) => hop,
                    None => {
                        let input = parent.map(|parent: u32| self.hops[parent as usize].server);
                        self.hops.push(Hop { flow: index as u32, server: server as u32, parent, input });
                        self.hops.len() as u32 - 1
                    }
                };
                known[server] = Some(hop);
                path.push(hop);
                parent = Some(hop);
            }
            self.route_hops.push(path);
        }
        Ok(())
    }

    /// The servers, in the order they were given.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The flows, in the order they were given.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// What moves.
    pub fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// All routes, those of the first flow first.
    pub fn routes(&self) -> impl Iterator<Item = RouteId> + '_ {
        self.flows.iter().enumerate().flat_map(|(flow, it)| {
            (0..it.routes.len()).map(move |route| RouteId { flow: FlowId(flow), route })
        })
    }

    /// Why there is no bound for what passes this server, whatever the analysis; none if there is one.
    pub fn refusal(&self, server: ServerId) -> Option<&Refusal> {
        self.order.refusals[server.0].as_ref()
    }

    /// The load of a server by all flows that pass it.
    pub fn load(&self, server: ServerId) -> Load {
        self.order.loads[server.0]
    }

    /// The place of a route in `route_hops`.
    pub(crate) fn route_index(&self, route: RouteId) -> usize {
        self.first_route[route.flow.0] + route.route
    }

    pub(crate) fn hops_of(&self, route: RouteId) -> &[u32] {
        &self.route_hops[self.route_index(route)]
    }

    /// The server before a hop, which is also the link by which it arrives.
    pub(crate) fn input(&self, hop: u32) -> Option<u32> {
        self.hops[hop as usize].input
    }

    /// The level of a flow at a server.
    pub(crate) fn level(&self, hop: u32) -> u8 {
        let Hop { flow, server, .. } = self.hops[hop as usize];
        match self.servers[server as usize].scheduler {
            Scheduler::StrictPriority => self.flows[flow as usize].level,
            _ => 0,
        }
    }

    /// The least time of a frame in a server: the lowest latency and its own transmission, as fast as that can be.
    pub(crate) fn lowest_delay(&self, hop: u32) -> Time {
        let Hop { flow, server, .. } = self.hops[hop as usize];
        let server = &self.servers[server as usize];
        let transmission = match (self.transfer, server.link.rate) {
            (Transfer::Frames, Some(rate)) => {
                Time::of_bits_down(self.flows[flow as usize].arrival.smallest_frame(), rate)
            }
            _ => Time::ZERO,
        };
        server.latency.lowest + transmission
    }
}

/// How much of a server its flows need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// What they send in the long run, in 10⁻⁶ bit/s, that of each flow rounded up.
    pub demand: u128,
    /// What the server serves in the long run, in 10⁻⁶ bit/s.
    pub service: u128,
}

impl Load {
    /// In percent, for people.
    pub fn percent(self) -> f64 {
        100.0 * self.demand as f64 / self.service as f64
    }
}
