//! Disciplines: in which order the children of a node send.
//!
//! A node knows which of its children are *ready*: they have a packet that may leave now, as far as is known. [`Discipline::first`]
//! says whose turn it is, [`Discipline::permits`] whether its packet may leave, and [`Discipline::sent`] that it has left. A child
//! that turns out to have nothing that may leave now (a shaper, a gate) is taken out, and comes again when its time has come, or
//! something has come below it.
//!
//! Children are numbered from 0. What a discipline keeps of each child it keeps itself.

pub(crate) mod bitmap;
pub(crate) mod deficit;
pub(crate) mod fair;
pub(crate) mod gated;
pub(crate) mod priority;
pub(crate) mod ring;
pub(crate) mod round_robin;
pub(crate) mod shaped;

use deficit::Deficit;
use fair::Fair;
use gated::GatedNodes;
use priority::Priority;
use round_robin::RoundRobin;
use shaped::{Credited, Shaper};

/// What a child is: a queue or an inner node, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child(u32);

/// What a child is, told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// A queue.
    Queue(u32),
    /// An inner node.
    Inner(u32),
}

impl Child {
    const INNER: u32 = 1 << 31;

    pub(crate) fn new(body: Body) -> Child {
        match body {
            Body::Queue(queue) => Child(queue),
            Body::Inner(inner) => Child(inner | Child::INNER),
        }
    }

    #[inline]
    pub(crate) fn body(self) -> Body {
        match self.0 & Child::INNER {
            0 => Body::Queue(self.0),
            _ => Body::Inner(self.0 & !Child::INNER),
        }
    }
}

/// Whether a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// Yes.
    Now,
    /// Not now: another child is first from now on.
    Another,
    /// None may, before this time.
    Until(u64),
}

/// The order of the children of a node.
pub(crate) trait Discipline {
    /// A child that was not ready is.
    fn insert(&mut self, child: u32, now_ns: u64);
    /// Whose turn it is: none if no child is ready.
    fn first(&mut self) -> Option<u32>;
    /// Whether the first child may send its packet of so many bytes.
    fn permits(&mut self, child: u32, len: u32, now_ns: u64) -> Permit;
    /// The first child has sent such a packet, which was permitted; whether it is still ready.
    fn sent(&mut self, child: u32, len: u32, ready: bool, now_ns: u64);
    /// The first child is not ready any more, without having sent.
    fn remove(&mut self, child: u32, now_ns: u64);
    /// Whether no child is ready.
    fn is_empty(&self) -> bool;
}

/// An inner node.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    pub(crate) order: Order,
    /// First of its children in the list of all; they follow each other.
    pub(crate) children: u32,
    /// Its parent among the inner nodes; [`crate::store::NONE`] for the root.
    pub(crate) parent: u32,
    /// Its number among the children of the parent.
    pub(crate) position: u32,
    /// It is among the ready children of its parent.
    pub(crate) ready: bool,
    /// It waits, with packets that may not leave now.
    pub(crate) waits: bool,
}

/// The discipline of a node.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Priority(Priority),
    RoundRobin(RoundRobin),
    Deficit(Deficit),
    Fair(Box<Fair>),
    Shaper(Shaper),
    Credit(Box<Credited>),
    Gates(Box<GatedNodes>),
}

/// Does something with the discipline of a node, whichever it is.
macro_rules! with {
    ($order:expr, $discipline:ident => $what:expr) => {
        match $order {
            $crate::disciplines::Order::Priority($discipline) => $what,
            $crate::disciplines::Order::RoundRobin($discipline) => $what,
            $crate::disciplines::Order::Deficit($discipline) => $what,
            $crate::disciplines::Order::Fair($discipline) => $what,
            $crate::disciplines::Order::Shaper($discipline) => $what,
            $crate::disciplines::Order::Credit($discipline) => $what,
            $crate::disciplines::Order::Gates($discipline) => $what,
        }
    };
}
pub(crate) use with;

// An inner node is one cache line.
const _: () = assert!(size_of::<Inner>() <= 64);
