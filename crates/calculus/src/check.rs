//! What is no network: checks of servers and flows, and what they say.

use std::fmt;

use crate::network::{
    Arrival, Flow, MAX_BURST, MAX_DELAY, MAX_FRAME, MAX_HOPS, MAX_LEVELS, MAX_PERIOD, MAX_PIECES, MAX_RATE,
    MIN_PERIOD, Server,
};

pub(crate) fn limit(what: &'static str, count: usize, largest: usize) -> Result<(), ModelError> {
    if count > largest { Err(ModelError::TooMany { what, count, largest }) } else { Ok(()) }
}

pub(crate) fn server(server: &Server) -> Result<(), ModelError> {
    let error = |what| ModelError::Server { server: server.name.clone(), what };
    if server.service.is_empty() || server.service.len() > MAX_PIECES {
        return Err(error("it needs 1 to 16 service curves"));
    }
    let link = server.link.rate.unwrap_or(1);
    if server.service.iter().any(|curve| curve.rate == 0 || curve.rate > MAX_RATE)
        || link == 0
        || link > MAX_RATE
    {
        return Err(error("a rate is to be 1 bit/s to 10 Tbit/s"));
    }
    let times = server.service.iter().map(|curve| curve.latency);
    if times.chain([server.latency.largest, server.link.propagation]).any(|time| time > MAX_DELAY) {
        return Err(error("a latency or propagation is above 100 s"));
    }
    if server.latency.lowest > server.latency.largest {
        return Err(error("its lowest latency is above its largest"));
    }
    if server.link.rate.is_some_and(|link| server.service.iter().any(|curve| curve.rate > link)) {
        return Err(error("it serves faster than its link"));
    }
    Ok(())
}

pub(crate) fn flow(flow: &Flow) -> Result<(), ModelError> {
    let error = |what| ModelError::Flow { flow: flow.name.clone(), what };
    let (largest, smallest) = (flow.arrival.largest_frame(), flow.arrival.smallest_frame());
    if largest == 0 || largest > MAX_FRAME || smallest > largest {
        return Err(error(
            "its frames are to have 1 to 1048576 bits, the smallest not more than the largest",
        ));
    }
    if flow.level >= MAX_LEVELS {
        return Err(error("its level is above 63"));
    }
    match &flow.arrival {
        Arrival::Periodic { period, jitter, .. } => {
            if *period < MIN_PERIOD || *period > MAX_PERIOD {
                return Err(error("its period is to be 1 us to 1000 s"));
            }
            if *jitter > MAX_DELAY {
                return Err(error("its jitter is above 100 s"));
            }
        }
        Arrival::Buckets { buckets, .. } => {
            if buckets.is_empty() || buckets.len() > MAX_PIECES {
                return Err(error("it needs 1 to 16 token buckets"));
            }
            if buckets.iter().any(|bucket| bucket.burst > MAX_BURST || bucket.rate > MAX_RATE) {
                return Err(error("a token bucket is above 10^12 bits or 10 Tbit/s"));
            }
        }
    }
    Ok(())
}

/// Why something is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// There is too much of it.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        largest: usize,
    },
    /// A server is wrong.
    Server {
        /// Its name.
        server: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A flow is wrong.
    Flow {
        /// Its name.
        flow: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A route is wrong.
    Route {
        /// The name of its flow.
        flow: String,
        /// The name of its destination.
        destination: String,
        /// What is wrong.
        what: RouteFault,
    },
}

/// What is wrong with a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteFault {
    /// It passes no server.
    Empty,
    /// It passes so many.
    TooLong(usize),
    /// It passes a server that is not there.
    NoSuchServer(usize),
    /// It passes this server twice.
    Twice(String),
    /// Another route of its flow reaches this server from elsewhere, so a frame would arrive there twice.
    NoTree(String),
}

impl fmt::Display for RouteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteFault::Empty => write!(f, "it passes no server"),
            RouteFault::TooLong(hops) => {
                write!(f, "it passes {hops} servers, at most {MAX_HOPS} are possible")
            }
            RouteFault::NoSuchServer(server) => write!(f, "there is no server {server}"),
            RouteFault::Twice(server) => write!(f, "it passes {server} twice"),
            RouteFault::NoTree(server) => {
                write!(
                    f,
                    "another route of the flow comes to {server} from elsewhere; the routes of a flow are to be a tree"
                )
            }
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::TooMany { what, count, largest } => {
                write!(f, "{count} {what}, at most {largest} are possible")
            }
            ModelError::Server { server, what } => write!(f, "server {server}: {what}"),
            ModelError::Flow { flow, what } => write!(f, "flow {flow}: {what}"),
            ModelError::Route { flow, destination, what } => {
                write!(f, "flow {flow} to {destination}: {what}")
            }
        }
    }
}

impl std::error::Error for ModelError {}
