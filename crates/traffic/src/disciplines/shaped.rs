//! Shapers: nodes with one child, which may send when the shaper has tokens or credit for its packet.
//!
//! The theorems are those of [`crate::tokens`] and [`crate::credit`]. A packet is asked for with its exact length, so nothing is taken
//! that is not sent. While the packet has to wait the node is not ready, and a timer or a packet that comes below it makes it so again.

use super::{Discipline, Permit};
use crate::credit::CreditShaper;
use crate::tokens::TokenBucket;

/// A token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    bucket: TokenBucket,
    ready: bool,
}

impl Shaper {
    pub(crate) fn new(bucket: TokenBucket) -> Shaper {
        Shaper { bucket, ready: false }
    }

    /// Goes on with the tokens that another one has.
    pub(crate) fn follow(&mut self, old: &Shaper, now_ns: u64) {
        let mut bucket = old.bucket.clone();
        if bucket.replace(self.bucket.tokens(), now_ns).is_ok() {
            self.bucket = bucket;
        }
    }
}

fn from(time: u64, now_ns: u64) -> Permit {
    if time <= now_ns { Permit::Now } else { Permit::Until(time) }
}

impl Discipline for Shaper {
    fn insert(&mut self, _child: u32, _now_ns: u64) {
        self.ready = true;
    }

    #[inline]
    fn first(&mut self) -> Option<u32> {
        self.ready.then_some(0)
    }

    #[inline]
    fn permits(&mut self, _child: u32, len: u32, now_ns: u64) -> Permit {
        from(self.bucket.eligible_ns(len), now_ns)
    }

    #[inline]
    fn sent(&mut self, _child: u32, len: u32, ready: bool, now_ns: u64) {
        self.bucket.take(len, now_ns);
        self.ready = ready;
    }

    fn remove(&mut self, _child: u32, _now_ns: u64) {
        self.ready = false;
    }

    fn is_empty(&self) -> bool {
        !self.ready
    }
}

/// A credit-based shaper.
#[derive(Clone, Debug)]
pub(crate) struct Credited {
    shaper: CreditShaper,
    ready: bool,
    /// The gate before it: while it is closed, the credit stands still.
    pub(crate) gate: Option<u8>,
    /// A timer is set for the next turn of the gate.
    pub(crate) turning: bool,
}

impl Credited {
    pub(crate) fn new(shaper: CreditShaper) -> Credited {
        Credited { shaper, ready: false, gate: None, turning: false }
    }

    /// Goes on with the credit that another one has.
    pub(crate) fn follow(&mut self, old: &Credited, now_ns: u64) {
        let mut shaper = old.shaper.clone();
        if shaper.replace(self.shaper.setting(), now_ns).is_ok() {
            shaper.empty(now_ns);
            self.shaper = shaper;
        }
    }

    /// The gate is open from now on, or closed.
    pub(crate) fn turn(&mut self, is_open: bool, now_ns: u64) {
        if is_open { self.shaper.thaw(now_ns) } else { self.shaper.freeze(now_ns) }
    }

    /// Nothing waits, and the credit is 0.
    pub(crate) fn is_idle(&self, now_ns: u64) -> bool {
        !self.ready && self.shaper.credit_bits(now_ns) == 0
    }
}

impl Discipline for Credited {
    fn insert(&mut self, _child: u32, now_ns: u64) {
        self.ready = true;
        self.shaper.fill(now_ns);
    }

    #[inline]
    fn first(&mut self) -> Option<u32> {
        self.ready.then_some(0)
    }

    #[inline]
    fn permits(&mut self, _child: u32, _len: u32, now_ns: u64) -> Permit {
        from(self.shaper.eligible_ns(), now_ns)
    }

    #[inline]
    fn sent(&mut self, child: u32, len: u32, ready: bool, now_ns: u64) {
        self.shaper.send(len, now_ns);
        if !ready {
            self.remove(child, now_ns);
        }
    }

    fn remove(&mut self, _child: u32, now_ns: u64) {
        self.ready = false;
        self.shaper.empty(now_ns);
    }

    fn is_empty(&self) -> bool {
        !self.ready
    }
}
