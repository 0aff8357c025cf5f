//! What a port's traffic manager is to do: its link, its buffer, and the tree of nodes.
//!
//! A [`Node`] is a queue or orders the nodes below it. [`Kind::Flows`] stands for a number of equal copies of what is below it, and the
//! flow number of a packet says which copy it goes to; so a plan of 65,536 queues is written in a few lines. The class of a packet says
//! which queue of the tree it goes to, or of the copy.

use crate::check;
use crate::error::PlanError;
use crate::gates::GateList;
use std::fmt;

/// Most queues of a port.
pub const MAX_QUEUES: usize = 65_536;
/// Most nodes of a port, queues and copies among them.
pub const MAX_NODES: usize = 1 << 18;
/// Most nodes from the root to a queue, both included.
pub const MAX_DEPTH: usize = 8;
/// Classes of a port.
pub const CLASSES: usize = 8;
/// Most packets that a port may hold.
pub const MAX_PACKETS: u32 = 1 << 22;
/// Most bytes that a port may hold.
pub const MAX_BYTES: u64 = 1 << 36;
/// Longest frame that a port may carry, without the overhead of the wire.
pub const MAX_FRAME: u32 = 65_535;
/// Most bytes that the wire may add to a frame.
pub const MAX_OVERHEAD: u32 = 512;
/// Largest weight of a node under weighted fair queueing.
pub const MAX_WEIGHT: u32 = 65_535;
/// Largest quantum of a node under deficit round robin, in bytes.
pub const MAX_QUANTUM: u32 = 1 << 24;
/// Most streams with a scheduler of their own that a port may have, over its queues of asynchronous shaping.
pub const MAX_STREAMS: u64 = 65_536;

/// The name of a node, as Linux `tc` writes it: `major:minor`, both hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

impl Handle {
    /// From its two parts.
    pub fn new(major: u16, minor: u16) -> Handle {
        Handle(u32::from(major) << 16 | u32::from(minor))
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 & 0xffff {
            0 => write!(f, "{:x}:", self.0 >> 16),
            minor => write!(f, "{:x}:{minor:x}", self.0 >> 16),
        }
    }
}

/// The link and the buffer of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Rate of the link, in bit/s. With it the port sends no faster; gates and credit need it.
    pub rate: Option<u64>,
    /// Bytes that a frame takes on the wire in addition to its own (Ethernet: preamble, checksum and gap, 24).
    pub overhead: u32,
    /// Longest frame, in bytes. A longer one is refused.
    pub longest: u32,
    /// Bytes that all queues may hold together.
    pub bytes: u64,
    /// Packets that all queues may hold together.
    pub packets: u32,
    /// Bytes of the larger buffer, for packets of queues with an `overflow` that find no room in the first one.
    pub overflow: u64,
    /// How much time of the link may be made up for when the port is asked late, in nanoseconds. 0 paces every frame exactly.
    pub catch_up_ns: u64,
    /// Seed of the random numbers of early discard.
    pub seed: u64,
}

impl Default for Port {
    fn default() -> Port {
        Port {
            rate: None,
            overhead: 24,
            longest: 1518,
            bytes: 4 << 20,
            packets: 16_384,
            overflow: 0,
            catch_up_ns: 100_000,
            seed: 1,
        }
    }
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, of which there is one in a plan.
    pub handle: Handle,
    /// What it does.
    pub kind: Kind,
}

impl Node {
    /// Whether it is a queue.
    pub(crate) fn is_queue(&self) -> bool {
        matches!(self.kind, Kind::Queue(_))
    }
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Holds packets, first in, first out.
    Queue(Box<Queue>),
    /// The first that has a packet sends.
    Priority(Vec<Node>),
    /// Each sends a packet, then the next.
    RoundRobin(Vec<Node>),
    /// Deficit round robin; a share is the quantum, in bytes.
    Deficit(Vec<Share>),
    /// Weighted fair queueing; a share is the weight.
    Fair(Vec<Share>),
    /// Equal copies of a tree, picked by flow number.
    Flows(Flows),
    /// A token bucket.
    Shaper {
        /// In bit/s.
        rate: u64,
        /// In bytes on the wire.
        burst: u64,
        /// What is shaped.
        node: Box<Node>,
    },
    /// A credit-based shaper (802.1Qav) at the rate and the overhead of the port.
    Credit {
        /// In bit/s.
        idle_slope: u64,
        /// Most credit, in bytes.
        hi_credit: u64,
        /// How far below 0 the credit may fall, in bytes.
        lo_credit: u64,
        /// What is shaped.
        node: Box<Node>,
    },
    /// Gates by the clock (802.1Qbv); of the nodes whose gates are open, the first that has a packet sends.
    Gates {
        /// When which gate is open.
        list: Box<GateList>,
        /// States of the gates before the list begins, bit `n` for gate `n`.
        initial: u8,
        /// The nodes.
        gated: Vec<Gated>,
    },
}

/// A node with its share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Quantum in bytes, or weight.
    pub share: u32,
    /// The node.
    pub node: Node,
}

/// A node after a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gated {
    /// Number of the gate, from 0.
    pub gate: u8,
    /// The node.
    pub node: Node,
}

/// Equal copies of a tree. A packet of flow `f` goes to copy `f % count`, and to a group within the copy with `f / count`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flows {
    /// Number of copies.
    pub count: u32,
    /// How they take turns.
    pub among: Among,
    /// What there are copies of.
    pub each: Box<Node>,
}

/// How copies take turns. Where there are numbers, it is one for all copies, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Among {
    /// The first that has a packet.
    Priority,
    /// A packet each.
    RoundRobin,
    /// Deficit round robin with these quanta.
    Deficit(Vec<u32>),
    /// Weighted fair queueing with these weights.
    Fair(Vec<u32>),
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Bit `n` is 1 if packets of class `n` go here.
    pub classes: u8,
    /// Most packets.
    pub packets: u32,
    /// Most bytes.
    pub bytes: u64,
    /// Early discard or marking.
    pub red: Option<Red>,
    /// Bytes of the port's buffer that are kept for this queue.
    pub reserved: u64,
    /// Of what is free in the rest of the buffer, the queue may hold this many 256ths in it (the dynamic threshold of Choudhury and
    /// Hahne: 256 is an alpha of 1). None: all.
    pub alpha: Option<u32>,
    /// Packets that have waited longer are discarded when their turn comes.
    pub age_ns: Option<u64>,
    /// Most bytes of this queue in the larger buffer.
    pub overflow: u64,
    /// Asynchronous traffic shaping (802.1Qcr).
    pub asynchronous: Option<Asynchronous>,
}

impl Queue {
    /// Whether nothing but the room for it decides what becomes of a packet.
    pub(crate) fn is_plain(&self) -> bool {
        self.red.is_none() && self.alpha.is_none() && self.asynchronous.is_none()
    }
}

impl Default for Queue {
    /// A queue of 1000 packets for every class.
    fn default() -> Queue {
        Queue {
            classes: 0xff,
            packets: 1000,
            bytes: MAX_BYTES,
            red: None,
            reserved: 0,
            alpha: None,
            age_ns: None,
            overflow: 0,
            asynchronous: None,
        }
    }
}

/// Random early detection (Floyd and Jacobson 1993), weighted: a curve for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Red {
    /// The average length follows the length by 2^-n a packet; 0: it is the length.
    pub average: u8,
    /// At most one for each class.
    pub curves: Vec<Curve>,
}

/// How likely a packet is to be discarded, or marked, by the average length of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Bit `n` is 1 if it is for packets of class `n`.
    pub classes: u8,
    /// Up to here nothing happens, in bytes.
    pub min: u64,
    /// From here on always, in bytes.
    pub max: u64,
    /// How likely it is just before that, in millionths.
    pub probability: u32,
    /// Packets that are capable of ECN are marked instead.
    pub ecn: bool,
}

/// Asynchronous traffic shaping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asynchronous {
    /// Committed rate of each stream, in bit/s.
    pub rate: u64,
    /// Committed burst of each stream, in bytes on the wire.
    pub burst: u64,
    /// A packet that would wait longer is discarded.
    pub residence_ns: u64,
    /// Streams with a scheduler each; flow `f` is stream `f % streams`.
    pub streams: u32,
    /// Groups of schedulers; stream `s` is in group `s % groups`.
    pub groups: u32,
}

/// A plan that is sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    port: Port,
    root: Node,
    facts: check::Facts,
}

impl Plan {
    /// Checks a plan.
    pub fn new(port: Port, root: Node) -> Result<Plan, PlanError> {
        let facts = check::check(&port, &root)?;
        Ok(Plan { port, root, facts })
    }

    /// Link and buffer.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether some class goes to a group of queues by flow.
    pub fn has_flows(&self) -> bool {
        self.facts.has_flows
    }

    /// Whether some queue marks packets that are capable of ECN.
    pub fn marks(&self) -> bool {
        self.facts.marks
    }

    /// Queues of all copies.
    pub fn queues(&self) -> usize {
        self.facts.queues
    }

    /// Nodes of all copies.
    pub fn nodes(&self) -> usize {
        self.facts.nodes
    }

    /// Most packets that all queues and the buffer hold together.
    pub fn max_packets(&self) -> usize {
        self.facts.packets
    }

    /// Whether it has no rate, and nothing but queues, or strict priority over queues: an idle port that is given packets of one class
    /// sends them as they came.
    pub(crate) fn orders_classes_alone(&self) -> bool {
        let is_flat = match &self.root.kind {
            Kind::Priority(nodes) => nodes.iter().all(Node::is_queue),
            _ => self.root.is_queue(),
        };
        is_flat && self.port.rate.is_none()
    }

    /// Whether packets leave in the order in which they came, all that had room for it: one queue takes all, and nothing in it waits for a
    /// time or discards a packet later.
    pub fn is_fifo(&self) -> bool {
        let is_one = matches!(&self.root.kind, Kind::Queue(queue) if queue.age_ns.is_none() && queue.asynchronous.is_none());
        is_one && self.port.rate.is_none()
    }

    /// Whether something in it waits for a time, other than the link.
    pub(crate) fn is_timed(&self) -> bool {
        self.facts.timed
    }

    /// Bytes of the buffer that no queue has to itself.
    pub(crate) fn shared(&self) -> u64 {
        self.facts.shared
    }
}
