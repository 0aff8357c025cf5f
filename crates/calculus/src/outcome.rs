//! What an analysis gives.

use std::fmt;

use crate::network::{Load, Network, RouteId};
use crate::refusal::Refusal;
use crate::total_flow::TotalFlow;
use crate::units::Time;

/// By which analysis a bound was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Total flow analysis.
    TotalFlow(TotalFlow),
    /// Total flow analysis with arrival curves of separated flow analysis.
    TotalFlowSeparated,
    /// Separated flow analysis.
    SeparatedFlow(Cross),
    /// Pay multiplexing only once.
    Pmoo(Cross),
    /// A linear program for the route.
    LinearProgram,
}

/// Where an analysis of routes has the arrival curves of crossing flows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cross {
    /// From [`TotalFlow::BEST`]: fast, with steps and grouping.
    Total,
    /// From the same analysis, recursively, flows that come together taken as one: as tools of the literature do. It can take long, and ends
    /// at [`MAX_AGGREGATES`](crate::MAX_AGGREGATES).
    Separated,
}

impl fmt::Display for Method {
    /// A short name, for a column of a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::TotalFlow(setting) => {
                write!(f, "tfa-{}", if setting.staircase { "staircase" } else { "affine" })?;
                if setting.grouping { write!(f, "-grouping") } else { Ok(()) }
            }
            Method::TotalFlowSeparated => write!(f, "tfa-separated"),
            Method::SeparatedFlow(Cross::Total) => write!(f, "sfa"),
            Method::SeparatedFlow(Cross::Separated) => write!(f, "sfa-separated"),
            Method::Pmoo(Cross::Total) => write!(f, "pmoo"),
            Method::Pmoo(Cross::Separated) => write!(f, "pmoo-separated"),
            Method::LinearProgram => write!(f, "lp"),
        }
    }
}

/// The bounds that one analysis found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub method: Method,
    /// Of each route, in the order of [`Network::routes`].
    pub paths: Vec<Result<PathBound, Refusal>>,
    /// Of each server; empty for analyses that look at routes as a whole.
    pub servers: Vec<Result<ServerBound, Refusal>>,
}

impl Outcome {
    /// The bound of a route.
    ///
    /// # Errors
    /// Why there is none.
    ///
    /// # Panics
    /// If the route is not one of the network that was analysed.
    pub fn path(&self, network: &Network, route: RouteId) -> Result<PathBound, &Refusal> {
        self.paths[network.route_index(route)].as_ref().copied()
    }
}

/// The bound of a route: from the moment at which a frame is ready at its source to the arrival of its last bit at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBound {
    /// No frame takes longer.
    pub delay: Time,
    /// No frame takes less.
    pub lowest: Time,
}

impl PathBound {
    pub(crate) fn new(network: &Network, route: RouteId, delay: Time) -> PathBound {
        let hops = network.hops_of(route);
        let lowest = hops.iter().map(|&hop| network.lowest_delay(hop)).sum::<Time>();
        PathBound { delay, lowest: lowest + crate::total_flow::propagation(network, hops) }
    }

    /// Two frames of the flow differ in their delay by no more than this.
    pub fn jitter(self) -> Time {
        self.delay.saturating_sub(self.lowest)
    }
}

/// The bounds of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerBound {
    /// What its flows need of it.
    pub load: Load,
    /// Of each level that has flows; a server without strict priority has one, level 0.
    pub levels: Vec<LevelBound>,
    /// The most that waits or is being sent, bits that have been sent not counted, in bits.
    pub backlog: u64,
    /// The most room that frames take in its queue and transmitter, each whole until its last bit has been sent, in bits.
    pub buffer: u64,
    /// The most frames in its queue and transmitter: at most the sum of those of its levels, which cannot all be there at once.
    pub frames: u64,
}

/// The bounds of one level of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelBound {
    /// Which.
    pub level: u8,
    /// From the arrival of a frame's last bit to the sending of its last bit, latency included.
    pub delay: Time,
    /// The most frames of the level in the queue and the transmitter.
    pub frames: u64,
}
