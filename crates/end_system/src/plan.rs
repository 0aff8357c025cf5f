//! From the file of a network to one of its end systems.
//!
//! The file says which virtual links an end system sends and receives, not which applications it has. So each sub-VL gets one queuing
//! port at either end, whose UDP port is [`FIRST_UDP_PORT`] and the number of the sub-VL.

use millrace_afdx::{
    Bag, ConfigError, EndSystem, EndSystemConfig, EndSystemId, IntegrityRule, JitterLimits, LimitError,
    LineRate, MAX_MESSAGE, MAX_PORT_DEPTH, Network as Side, Networks, Order, Partition, PortKind,
    ReceivePort, ReceiveVl, RedundancyRule, TransmitPort, TransmitVl, VlId,
};
use millrace_network::{self as network, Network};
use std::fmt;

/// The UDP port of sub-VL 0, at either end.
pub const FIRST_UDP_PORT: u16 = 10_000;

/// Most names that an error shows.
const MAX_SHOWN: usize = 16;

/// Why an end system of a file cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The file has no end system of this name.
    NoEndSystem {
        /// The name.
        name: String,
        /// Some that it has.
        known: Vec<String>,
    },
    /// A value of a virtual link is outside of the limits.
    Vl(VlId, LimitError),
    /// There cannot be such an end system.
    Config(ConfigError),
    /// It sends and receives nothing.
    Idle(String),
    /// It is to answer, and sends or receives nothing.
    Unreachable(String),
    /// No virtual link leads from the first to the second.
    NoWay(String, String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::NoEndSystem { name, known } => {
                write!(f, "there is no end system `{name}`")?;
                match known.as_slice() {
                    [] => f.write_str(": the file has none"),
                    known => write!(f, " (there are: {})", known.join(", ")),
                }
            }
            PlanError::Vl(vl, error) => write!(f, "VL {vl}: {error}"),
            PlanError::Config(error) => error.fmt(f),
            PlanError::Unreachable(name) => {
                write!(
                    f,
                    "{name} cannot answer: it needs a virtual link that it receives, and one that it sends"
                )
            }
            PlanError::NoWay(from, to) => write!(f, "no virtual link leads from {from} to {to}"),
            PlanError::Idle(name) => write!(f, "{name} neither sends nor receives a virtual link"),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<ConfigError> for PlanError {
    fn from(error: ConfigError) -> PlanError {
        PlanError::Config(error)
    }
}

/// How an end system receives, where the file leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Receiving {
    /// How sequence numbers are checked.
    pub integrity: IntegrityRule,
    /// Whether frames may be delivered in another order than they were sent.
    pub order: Order,
    /// Whether source addresses are checked.
    pub checks_interface: bool,
    /// Whether echo requests are taken.
    pub answers_echo: bool,
}

/// A port that sends, as the plan has made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPort {
    /// Its number in the transmitter.
    pub port: usize,
    /// The virtual link.
    pub vl: VlId,
    /// The sub-VL.
    pub sub_vl: usize,
    /// The gap of the virtual link in nanoseconds, times the number of its sub-VLs: how often each can send.
    pub share_ns: u64,
    /// The longest frame in bytes with FCS.
    pub lmax: u64,
}

/// An end system of a file, made.
#[derive(Debug)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The end system.
    pub es: EndSystem,
    /// The ports that send.
    pub sends: Vec<PlannedPort>,
    /// For each port that receives its virtual link and sub-VL.
    pub receives: Vec<(VlId, usize)>,
}

impl Plan {
    /// The end system of this name.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn of(network: &Network, name: &str, receiving: &Receiving) -> Result<Plan, PlanError> {
        let config = config(network, name, receiving)?;
        let mut es = EndSystem::new(&config)?;
        let mut sends = Vec::new();
        for vl in &config.transmits {
            for sub_vl in 0..vl.sub_vls {
                let udp = FIRST_UDP_PORT + sub_vl as u16;
                let port = es.transmitter.add_port(TransmitPort {
                    kind: PortKind::Queuing,
                    vl: vl.id,
                    sub_vl,
                    partition: Partition::default(),
                    source_port: udp,
                    destination: Some((None, udp)),
                })?;
                let share_ns = vl.bag.ns().saturating_mul(vl.sub_vls as u64);
                sends.push(PlannedPort { port, vl: vl.id, sub_vl, share_ns, lmax: vl.lmax });
            }
        }
        let mut receives = Vec::new();
        for vl in network.vls.iter().filter(|vl| !networks_to(vl, name).is_empty()) {
            for sub_vl in 0..vl.sub_vls.len().max(1) {
                es.receiver.add_port(ReceivePort {
                    kind: PortKind::Queuing,
                    vl: VlId(vl.id),
                    ip: None,
                    port: FIRST_UDP_PORT + sub_vl as u16,
                    depth: MAX_PORT_DEPTH,
                    max_message: MAX_MESSAGE,
                })?;
                receives.push((VlId(vl.id), sub_vl));
            }
        }
        Ok(Plan { name: name.to_owned(), es, sends, receives })
    }
}

/// What the file says of an end system.
fn config(network: &Network, name: &str, receiving: &Receiving) -> Result<EndSystemConfig, PlanError> {
    let Some(known) = network.end_systems.iter().find(|es| es.name == name) else {
        let known = network.end_systems.iter().map(|es| es.name.clone()).take(MAX_SHOWN).collect();
        return Err(PlanError::NoEndSystem { name: name.to_owned(), known });
    };
    let transmits = network.vls.iter().filter(|vl| vl.source == name).map(transmit);
    let transmits = transmits.collect::<Result<Vec<_>, _>>()?;
    let receives = network.vls.iter().filter_map(|vl| {
        let networks = networks_of(&networks_to(vl, name))?;
        Some(receive(vl, networks, receiving))
    });
    let receives = receives.collect::<Result<Vec<_>, _>>()?;
    if transmits.is_empty() && receives.is_empty() {
        return Err(PlanError::Idle(name.to_owned()));
    }
    let rate = |side| line_rate(network, name, side).map_err(ConfigError::Limit);
    Ok(EndSystemConfig {
        id: EndSystemId(known.id),
        addressing: Default::default(),
        rates: [rate(network::Side::A)?, rate(network::Side::B)?],
        jitter: JitterLimits { technology_ns: known.technological_jitter, most_ns: known.max_jitter },
        checks_interface: receiving.checks_interface,
        answers_echo: receiving.answers_echo,
        transmits,
        receives,
    })
}

/// The rate of the line of an end system to a network; that of the other where it has none.
fn line_rate(network: &Network, name: &str, side: network::Side) -> Result<LineRate, LimitError> {
    let line = network.links_at(name).find(|link| link.network == side);
    let line = line.or_else(|| network.links_at(name).next());
    LineRate::from_bps(line.map_or(0, |link| link.rate))
}

/// The networks by which a virtual link comes to an end system.
fn networks_to(vl: &network::Vl, name: &str) -> Vec<network::Side> {
    let leads = |route: &&network::Route| route.ends().any(|end| end == name);
    vl.routes.iter().filter(leads).map(|route| route.network).collect()
}

fn networks_of(sides: &[network::Side]) -> Option<Networks> {
    let has = |side| sides.contains(&side);
    match (has(network::Side::A), has(network::Side::B)) {
        (true, true) => Some(Networks::Both),
        (true, false) => Some(Networks::One(Side::A)),
        (false, true) => Some(Networks::One(Side::B)),
        (false, false) => None,
    }
}

fn transmit(vl: &network::Vl) -> Result<TransmitVl, PlanError> {
    let id = VlId(vl.id);
    let sides: Vec<_> = vl.routes.iter().map(|route| route.network).collect();
    let bag = Bag::from_ns(vl.bag).map_err(|error| PlanError::Vl(id, error))?;
    let mut made = TransmitVl::new(id, bag, vl.lmax.into());
    made.lmin = vl.lmin.into();
    made.sub_vls = vl.sub_vls.len().max(1);
    // All sub-VLs get the longest of the queues of the file: memory is taken by frames, not by room for them.
    let longest = vl.sub_vls.iter().map(|sub_vl| sub_vl.queue as usize).max();
    made.queue_frames = longest.unwrap_or(made.queue_frames);
    made.networks = networks_of(&sides).unwrap_or_default();
    Ok(made)
}

fn receive(vl: &network::Vl, networks: Networks, receiving: &Receiving) -> Result<ReceiveVl, PlanError> {
    let wrong = |error| PlanError::Vl(VlId(vl.id), error);
    let bag = Bag::from_ns(vl.bag).map_err(wrong)?;
    let redundancy = match networks {
        Networks::Both => {
            let mut rule = RedundancyRule::new(vl.skew_max, bag).map_err(wrong)?;
            rule.order = receiving.order;
            Some(rule)
        }
        Networks::One(_) => None,
    };
    Ok(ReceiveVl {
        id: VlId(vl.id),
        bag,
        lmax: vl.lmax.into(),
        networks,
        integrity: Some(receiving.integrity),
        redundancy,
    })
}
