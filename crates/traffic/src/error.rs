//! Why a plan is refused.

use crate::plan::{Handle, MAX_DEPTH, MAX_NODES, MAX_QUEUES};
use crate::setting::SettingError;
use std::fmt;

/// A plan that cannot be, with the node that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// A number of the port is out of its limits.
    Port(SettingError),
    /// A number of a node is out of its limits.
    Setting(Handle, SettingError),
    /// Two nodes have one name.
    Twice(Handle),
    /// The node is deeper in the tree than [`MAX_DEPTH`].
    TooDeep(Handle),
    /// More queues than [`MAX_QUEUES`].
    TooManyQueues(u64),
    /// More nodes than [`MAX_NODES`].
    TooManyNodes(u64),
    /// A node orders nothing.
    Childless(Handle),
    /// No class goes to the queue.
    Unreached(Handle),
    /// Two queues are for one class.
    ClassTwice(Handle, u8),
    /// No queue is for the class.
    ClassNowhere(u8),
    /// As many shares as copies, or one, are needed.
    Shares {
        /// The node.
        at: Handle,
        /// Shares that it has.
        is: usize,
        /// Its copies.
        copies: u32,
    },
    /// A quantum is less than the longest frame with its overhead.
    QuantumShort {
        /// The node.
        at: Handle,
        /// In bytes.
        quantum: u32,
        /// In bytes.
        longest: u32,
    },
    /// A burst is less than the longest frame with its overhead.
    BurstShort {
        /// The node.
        at: Handle,
        /// In bytes.
        burst: u64,
        /// In bytes.
        longest: u32,
    },
    /// A queue or buffer has less room than the longest frame.
    RoomShort {
        /// The queue; the port's buffer without one.
        at: Option<Handle>,
        /// In bytes.
        bytes: u64,
        /// In bytes.
        longest: u32,
    },
    /// A rate is above that of the link, or of a shaper above it in the tree.
    RateAbove {
        /// The node.
        at: Handle,
        /// In bit/s.
        rate: u64,
        /// In bit/s.
        limit: u64,
    },
    /// The credit-based shapers together are to have more than the rate of the link.
    SlopesAbove {
        /// The last of them.
        at: Handle,
        /// Sum of their idle slopes, in bit/s.
        sum: u64,
        /// In bit/s.
        limit: u64,
    },
    /// Gates and credit need the rate of the link.
    NoRate(Handle),
    /// A gate never opens.
    NeverOpens {
        /// The node after the gate.
        at: Handle,
        /// Its number.
        gate: u8,
    },
    /// A gate is never open long enough for the longest frame.
    WindowShort {
        /// The node after the gate.
        at: Handle,
        /// Its number.
        gate: u8,
        /// Longest time that it is open.
        window_ns: u64,
        /// Time of the longest frame on the wire.
        frame_ns: u64,
    },
    /// The queues reserve more than there is.
    ReservedAbove {
        /// Sum, in bytes.
        sum: u64,
        /// The buffer, in bytes.
        bytes: u64,
    },
    /// A curve of early discard does not rise, or a class has two.
    Curve(Handle),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Port(wrong) => write!(f, "port: {wrong}"),
            PlanError::Setting(at, wrong) => write!(f, "{at}: {wrong}"),
            PlanError::Twice(at) => write!(f, "{at}: another node has this handle"),
            PlanError::TooDeep(at) => write!(f, "{at}: the tree may be {MAX_DEPTH} nodes deep"),
            PlanError::TooManyQueues(is) => write!(f, "{is} queues, a port may have {MAX_QUEUES}"),
            PlanError::TooManyNodes(is) => write!(f, "{is} nodes, a port may have {MAX_NODES}"),
            PlanError::Childless(at) => write!(f, "{at}: nothing is below it"),
            PlanError::Unreached(at) => write!(f, "{at}: no class goes to this queue"),
            PlanError::ClassTwice(at, class) => {
                write!(f, "{at}: class {class} goes to another queue already")
            }
            PlanError::ClassNowhere(class) => write!(f, "class {class} goes to no queue"),
            PlanError::Shares { at, is, copies } => {
                write!(f, "{at}: {is} shares for {copies} flows, it has to be one for all or one for each")
            }
            PlanError::QuantumShort { at, quantum, longest } => write!(
                f,
                "{at}: quantum is {quantum} bytes, the longest frame takes {longest} bytes on the wire"
            ),
            PlanError::BurstShort { at, burst, longest } => {
                write!(f, "{at}: burst is {burst} bytes, the longest frame takes {longest} bytes on the wire")
            }
            PlanError::RoomShort { at: Some(at), bytes, longest } => {
                write!(f, "{at}: room for {bytes} bytes, the longest frame has {longest} bytes")
            }
            PlanError::RoomShort { at: None, bytes, longest } => {
                write!(f, "the buffer has room for {bytes} bytes, the longest frame has {longest} bytes")
            }
            PlanError::RateAbove { at, rate, limit } => {
                write!(f, "{at}: rate is {rate} bit/s, what is above it has {limit} bit/s")
            }
            PlanError::SlopesAbove { at, sum, limit } => {
                write!(f, "{at}: idle slopes are {sum} bit/s together, the link has {limit} bit/s")
            }
            PlanError::NoRate(at) => write!(f, "{at}: the port needs a rate"),
            PlanError::NeverOpens { at, gate } => write!(f, "{at}: gate {gate} never opens"),
            PlanError::WindowShort { at, gate, window_ns, frame_ns } => {
                write!(
                    f,
                    "{at}: gate {gate} is open {window_ns} ns at most, the longest frame takes {frame_ns} ns"
                )
            }
            PlanError::ReservedAbove { sum, bytes } => {
                write!(f, "queues reserve {sum} bytes, the buffer has {bytes} bytes")
            }
            PlanError::Curve(at) => {
                write!(f, "{at}: a curve needs min < max, and a class has one curve at most")
            }
        }
    }
}

impl std::error::Error for PlanError {}
