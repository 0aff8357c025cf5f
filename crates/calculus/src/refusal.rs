//! Why there is no bound.

use std::fmt;

use crate::network::{Load, Network, ServerId};

/// Why there is no bound for a server, and for each route that passes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More arrives in the long run than is served: the queue grows without limit.
    Overload {
        /// Where.
        server: ServerId,
        /// By how much.
        load: Load,
    },
    /// What arrives at each of these servers depends on the delay of the one before, in a circle; the last is before the first.
    Cycle(Vec<ServerId>),
    /// The scheduler has no analysis.
    Scheduler(ServerId),
    /// A flow comes from this server, for which there is no bound.
    DependsOn(ServerId),
    /// The delay in this server may be above [`MAX_DELAY`](crate::MAX_DELAY).
    TooLate(ServerId),
    /// The analysis by this name needs what the network has not.
    NotApplicable {
        /// Where.
        server: ServerId,
        /// What it needs.
        needs: &'static str,
    },
    /// The analysis ended before it had a bound: it was above its limits of size or time.
    TooMuch(&'static str),
}

impl Refusal {
    /// What it is for a server after this one: a consequence of the first cause.
    pub(crate) fn passed_on(&self, server: u32) -> Refusal {
        match self {
            Refusal::DependsOn(cause) => Refusal::DependsOn(*cause),
            _ => Refusal::DependsOn(ServerId(server as usize)),
        }
    }

    /// The same as a sentence with the names of this network.
    pub fn describe<'a>(&'a self, network: &'a Network) -> impl fmt::Display + 'a {
        Described { refusal: self, network }
    }
}

struct Described<'a> {
    refusal: &'a Refusal,
    network: &'a Network,
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = |id: &ServerId| &self.network.servers()[id.0];
        let name = |id: &ServerId| &server(id).name;
        match self.refusal {
            Refusal::Overload { server, load } => {
                write!(
                    f,
                    "port {} has a load of {:.1} %: it sends {} bit/s, its flows ",
                    name(server),
                    load.percent(),
                    load.service / 1_000_000
                )?;
                write!(f, "need {}", load.demand.div_ceil(1_000_000))
            }
            Refusal::Cycle(servers) => {
                write!(f, "ports depend on each other in a circle: ")?;
                for id in servers {
                    write!(f, "{} -> ", name(id))?;
                }
                write!(f, "{}", name(&servers[0]))
            }
            Refusal::Scheduler(id) => match &server(id).scheduler {
                crate::Scheduler::Unsupported(scheduler) => {
                    write!(f, "there is no analysis for the scheduler {scheduler} of port {}", name(id))
                }
                _ => write!(f, "there is no analysis for the scheduler of port {}", name(id)),
            },
            Refusal::DependsOn(id) => {
                write!(f, "it depends on port {}, for which there is no bound", name(id))
            }
            Refusal::TooLate(id) => {
                write!(f, "the delay in port {} may be above {}", name(id), crate::MAX_DELAY)
            }
            Refusal::NotApplicable { server, needs } => {
                write!(f, "from port {} on, the analysis needs {needs}", name(server))
            }
            Refusal::TooMuch(why) => write!(f, "the analysis ended without a bound: {why}"),
        }
    }
}
