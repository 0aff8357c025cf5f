//! What an end system sends and receives, checked before anything runs.

use crate::address::{Addressing, EndSystemId, VlId};
use crate::integrity::IntegrityRule;
use crate::limits::{LimitError, within};
use crate::line::{FRAME_LIMITS, JitterError, JitterLimits, LineRate, check_output};
use crate::ports::PortKind;
use crate::receiver::Receiver;
use crate::redundancy::RedundancyRule;
use crate::regulator::{Bag, DEFAULT_QUEUE_FRAMES, MAX_QUEUE_FRAMES, MAX_SUB_VLS};
use crate::scheduler::{Network, Networks};
use crate::transmitter::Transmitter;
use std::collections::HashSet;
use std::fmt;

/// Most VLs that an end system sends, and most that it receives.
pub const MAX_VLS: usize = 4096;

/// Most ports of an end system that send, and most that receive.
pub const MAX_PORTS: usize = 4096;

/// Most bytes that may wait to be sent, in the queues of all sub-VLs.
pub const MAX_QUEUE_BYTES: u64 = 1 << 30;

/// A VL that an end system sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransmitVl {
    /// Its identifier.
    pub id: VlId,
    /// The gap from one frame to the next.
    pub bag: Bag,
    /// Its shortest frame in bytes with FCS; shorter ones are filled up.
    pub lmin: u64,
    /// Its longest frame in bytes with FCS.
    pub lmax: u64,
    /// How many sub-VLs it has, 1 to 4.
    pub sub_vls: usize,
    /// How many frames wait in the queue of each.
    pub queue_frames: usize,
    /// Where it is sent.
    pub networks: Networks,
}

impl TransmitVl {
    /// A VL with one sub-VL, on both networks.
    pub fn new(id: VlId, bag: Bag, lmax: u64) -> TransmitVl {
        let (lmin, queue_frames) = (FRAME_LIMITS.0, DEFAULT_QUEUE_FRAMES);
        TransmitVl { id, bag, lmin, lmax, sub_vls: 1, queue_frames, networks: Networks::Both }
    }
}

/// A VL that an end system receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveVl {
    /// Its identifier.
    pub id: VlId,
    /// The gap of its sender.
    pub bag: Bag,
    /// Its longest frame in bytes with FCS.
    pub lmax: u64,
    /// Where it comes from.
    pub networks: Networks,
    /// How sequence numbers are checked, if they are.
    pub integrity: Option<IntegrityRule>,
    /// How copies are found, if they are; else both are delivered.
    pub redundancy: Option<RedundancyRule>,
}

/// An end system.
#[derive(Clone, Debug)]
pub struct EndSystemConfig {
    /// Its identifier, which its addresses contain.
    pub id: EndSystemId,
    /// The constant parts of addresses.
    pub addressing: Addressing,
    /// The rates of its lines to networks A and B.
    pub rates: [LineRate; 2],
    /// How much output jitter it may have.
    pub jitter: JitterLimits,
    /// Whether frames are dropped whose source address is not of an interface to the network that they come by.
    pub checks_interface: bool,
    /// Whether echo requests (ICMP) are taken, for whoever replies ([`Receiver::take_echo`]).
    pub answers_echo: bool,
    /// The VLs that it sends.
    pub transmits: Vec<TransmitVl>,
    /// The VLs that it receives.
    pub receives: Vec<ReceiveVl>,
}

/// Why there cannot be such an end system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A value of a VL is outside of its limits.
    Vl(VlId, LimitError),
    /// A value is outside of its limits.
    Limit(LimitError),
    /// A VL is sent twice, or received twice.
    Twice(VlId),
    /// A VL cannot be shorter than its longest frame.
    LminAboveLmax(VlId),
    /// The VLs do not fit the line to a network.
    Output(Network, JitterError),
    /// A port is of a VL, or of a sub-VL, that there is not.
    PortVl(VlId),
    /// A fault is of a VL that the end system does not send.
    FaultVl(VlId),
    /// A sampling or queuing port that sends has no destination, or a SAP port has one.
    PortDestination(VlId, PortKind),
    /// Two ports receive messages of the same VL, IP address and UDP port.
    PortTwice(VlId, u16),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Vl(vl, error) => write!(f, "VL {vl}: {error}"),
            ConfigError::Limit(error) => error.fmt(f),
            ConfigError::Twice(vl) => write!(f, "VL {vl} is there twice"),
            ConfigError::LminAboveLmax(vl) => write!(f, "VL {vl}: Lmin is above Lmax"),
            ConfigError::Output(network, error) => write!(f, "network {network}: {error}"),
            ConfigError::FaultVl(vl) => {
                write!(f, "a fault is of VL {vl}, which the end system does not send")
            }
            ConfigError::PortVl(vl) => write!(f, "a port is of VL {vl}: there is no such VL or sub-VL"),
            ConfigError::PortDestination(vl, PortKind::Sap) => {
                write!(f, "a SAP port of VL {vl} has a destination: it is given with each message")
            }
            ConfigError::PortDestination(vl, _) => write!(f, "a port of VL {vl} has no destination"),
            ConfigError::PortTwice(vl, port) => {
                write!(f, "two ports receive messages of VL {vl} for UDP port {port}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<LimitError> for ConfigError {
    fn from(error: LimitError) -> ConfigError {
        ConfigError::Limit(error)
    }
}

impl EndSystemConfig {
    /// An end system that sends and receives nothing, with the usual addresses, and lines of this rate.
    pub fn new(id: EndSystemId, rate: LineRate) -> EndSystemConfig {
        EndSystemConfig {
            id,
            addressing: Addressing::default(),
            rates: [rate; 2],
            jitter: JitterLimits::default(),
            checks_interface: false,
            answers_echo: false,
            transmits: Vec::new(),
            receives: Vec::new(),
        }
    }

    /// Checks all of it; the output jitter in nanoseconds.
    fn check(&self) -> Result<u64, ConfigError> {
        within("the number of VLs that are sent", self.transmits.len() as u64, (0, MAX_VLS as u64), "")?;
        within("the number of VLs that are received", self.receives.len() as u64, (0, MAX_VLS as u64), "")?;
        let mut ids = HashSet::new();
        for vl in &self.transmits {
            vl.check().map_err(|error| ConfigError::Vl(vl.id, error))?;
            if vl.lmin > vl.lmax {
                return Err(ConfigError::LminAboveLmax(vl.id));
            }
            if !ids.insert(vl.id) {
                return Err(ConfigError::Twice(vl.id));
            }
        }
        ids.clear();
        for vl in &self.receives {
            within("Lmax", vl.lmax, FRAME_LIMITS, "bytes").map_err(|error| ConfigError::Vl(vl.id, error))?;
            if !ids.insert(vl.id) {
                return Err(ConfigError::Twice(vl.id));
            }
        }
        let queues = self.transmits.iter().map(|vl| (vl.sub_vls * vl.queue_frames) as u64 * vl.lmax).sum();
        within("the sum of all queues", queues, (0, MAX_QUEUE_BYTES), "bytes")?;
        let jitter = |network: Network| {
            let vls = self.transmits.iter().filter(|vl| vl.networks.has(network));
            let vls: Vec<_> = vls.map(|vl| (vl.bag, vl.lmax)).collect();
            let checked = check_output(self.rates[network.index()], self.jitter, &vls);
            checked.map_err(|error| ConfigError::Output(network, error))
        };
        Ok(jitter(Network::A)?.max(jitter(Network::B)?))
    }
}

impl TransmitVl {
    fn check(&self) -> Result<(), LimitError> {
        within("Lmin", self.lmin, FRAME_LIMITS, "bytes")?;
        within("Lmax", self.lmax, FRAME_LIMITS, "bytes")?;
        within("the number of sub-VLs", self.sub_vls as u64, (1, MAX_SUB_VLS as u64), "")?;
        within("the queue of a sub-VL", self.queue_frames as u64, (1, MAX_QUEUE_FRAMES as u64), "frames")?;
        Ok(())
    }
}

/// An end system: what it sends, and what it receives. Both sides know nothing of each other.
#[derive(Debug)]
pub struct EndSystem {
    /// The sending side.
    pub transmitter: Transmitter,
    /// The receiving side.
    pub receiver: Receiver,
}

impl EndSystem {
    /// An end system without ports.
    ///
    /// # Errors
    /// [`ConfigError`] when there cannot be one.
    pub fn new(config: &EndSystemConfig) -> Result<EndSystem, ConfigError> {
        let jitter_ns = config.check()?;
        Ok(EndSystem { transmitter: Transmitter::new(config, jitter_ns)?, receiver: Receiver::new(config) })
    }
}
