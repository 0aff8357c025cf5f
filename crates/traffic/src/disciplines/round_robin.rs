//! Round robin, by packets.
//!
//! **Theorem.** While `n` children stay ready, each sends one packet in every `n` of the node. *Proof.* The one that has sent goes to
//! the end of the ring, and before it comes to the front again each of the others has been there. ∎

use super::ring::Ring;
use super::{Discipline, Permit};

/// A packet each.
#[derive(Clone, Debug)]
pub(crate) struct RoundRobin {
    ring: Ring,
}

impl RoundRobin {
    pub(crate) fn new(children: usize) -> RoundRobin {
        RoundRobin { ring: Ring::new(children) }
    }
}

impl Discipline for RoundRobin {
    #[inline]
    fn insert(&mut self, child: u32, _now_ns: u64) {
        self.ring.push(child);
    }

    #[inline]
    fn first(&mut self) -> Option<u32> {
        self.ring.first()
    }

    #[inline]
    fn permits(&mut self, _child: u32, _len: u32, _now_ns: u64) -> Permit {
        Permit::Now
    }

    #[inline]
    fn sent(&mut self, _child: u32, _len: u32, ready: bool, _now_ns: u64) {
        if ready { self.ring.turn() } else { self.ring.pop() }
    }

    #[inline]
    fn remove(&mut self, _child: u32, _now_ns: u64) {
        self.ring.pop();
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}
