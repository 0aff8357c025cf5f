//! Deterministic bounds of delay, jitter, backlog and load of a network of queues.
//!
//! A [`Network`] is made of servers (output ports) and flows (what one source sends to its destinations). [`bounds()`] gives for each route of each flow a
//! delay that no frame exceeds, and for each server the room that its frames can need. Nothing here knows of files, of AFDX or of frames' contents.
//!
//! ```
//! use millrace_calculus::{Arrival, Flow, Network, Route, Server, ServerId, Time, Transfer, bounds};
//!
//! // Two end systems send to one switch port, all at 100 Mbit/s; the switch takes up to 10 us for a frame.
//! let latency = Time::from_us(10);
//! let servers = vec![
//!     Server::port("es1", 100_000_000),
//!     Server::port("es2", 100_000_000),
//!     Server::port("switch.3", 100_000_000).with_latency(latency, latency),
//! ];
//! let flow = |name: &str, source| Flow {
//!     name: name.to_owned(),
//!     arrival: Arrival::Periodic {
//!         largest_frame: 8_000, // 80 us at 100 Mbit/s
//!         smallest_frame: 512,
//!         period: Time::from_ms(2),
//!         jitter: Time::ZERO,
//!     },
//!     level: 0,
//!     routes: vec![Route { destination: "es3".to_owned(), servers: vec![ServerId(source), ServerId(2)] }],
//! };
//! let network = Network::new(servers, vec![flow("a", 0), flow("b", 1)], Transfer::Frames)?;
//!
//! let found = bounds(&network);
//! for route in network.routes() {
//!     let (method, bound) = found.best(&network, route).expect("no port is overloaded");
//!     // 80 us to leave the end system, 10 us latency, and one frame of the other flow before its own: 2 · 80 us.
//!     assert_eq!(bound.delay, Time::from_us(80 + 10 + 160), "by {method}");
//! }
//! // Both frames can be in the port: 16 000 bits.
//! assert_eq!(found.servers()[2].as_ref().unwrap().backlog, 16_000);
//! # Ok::<(), millrace_calculus::ModelError>(())
//! ```
//!
//! # What a bound covers
//!
//! From the moment at which a frame is complete in the queue of its source (for a virtual link: its regulator let it go) to the
//! arrival of its last bit at the destination. It holds if sources keep to their [`Arrival`], servers to their service and
//! [`Latency`], and nothing is lost; it does not hold for a port whose queue is smaller than [`ServerBound::buffer`].
//!
//! # Rounding
//!
//! Time is counted in picoseconds; data and rates inside are exact integers. Each division rounds to the larger bound. So a bound is
//! above the exact value of its formula by a few picoseconds for each server on the way, and never below.
//!
//! # No bound
//!
//! An overloaded port, ports that depend on each other in a circle, and a scheduler without an analysis have no bound, nor has
//! what passes them; a [`Refusal`] says which it is. All else in the network keeps its bounds.
//!
//! docs/dev/network-bounds.md names the theorem of each step.

mod aggregate;
mod bounds;
mod check;
mod crossings;
mod curve;
mod deviation;
mod linear;
mod network;
mod order;
mod outcome;
mod pmoo;
mod program;
mod refusal;
mod separated_flow;
mod tandem;
mod total_flow;
mod units;

pub use aggregate::MAX_AGGREGATES;
pub use bounds::{Bounds, bounds};
pub use check::{ModelError, RouteFault};
pub use linear::LinearPrograms;
pub use network::{
    Arrival, Flow, FlowId, Latency, Link, Load, MAX_BURST, MAX_DELAY, MAX_FLOWS, MAX_FRAME, MAX_HOPS,
    MAX_LEVELS, MAX_PERIOD, MAX_PIECES, MAX_RATE, MAX_ROUTES, MAX_SERVERS, MAX_TOTAL_HOPS, MIN_PERIOD,
    Network, RateLatency, Route, RouteId, Scheduler, Server, ServerId, TokenBucket, Transfer,
};
pub use order::{MAX_BREAKPOINTS, MAX_TOTAL_BREAKPOINTS};
pub use outcome::{Cross, LevelBound, Method, Outcome, PathBound, ServerBound};
pub use pmoo::{MAX_STEPS, pmoo};
pub use program::{MAX_COEFFICIENTS, MAX_INEQUALITIES, MAX_SECONDS, MAX_VARIABLES};
pub use refusal::Refusal;
pub use separated_flow::{separated_flow, total_flow_separated};
pub use total_flow::{TotalFlow, total_flow};
pub use units::Time;
