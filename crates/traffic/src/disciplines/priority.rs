//! Strict priority.
//!
//! **Theorem.** When a packet leaves, no child before its own has one that may leave. A packet that comes to the first child waits for
//! at most one frame of others, the one that is on the wire. *Proof.* The first of the ready children is asked, each time a frame
//! begins. ∎

use super::bitmap::Bitmap;
use super::{Discipline, Permit};

/// The first ready child sends.
#[derive(Clone, Debug)]
pub(crate) struct Priority {
    ready: Bitmap,
}

impl Priority {
    pub(crate) fn new(children: usize) -> Priority {
        Priority { ready: Bitmap::new(children) }
    }
}

impl Discipline for Priority {
    #[inline]
    fn insert(&mut self, child: u32, _now_ns: u64) {
        self.ready.insert(child);
    }

    #[inline]
    fn first(&mut self) -> Option<u32> {
        self.ready.first()
    }

    #[inline]
    fn permits(&mut self, _child: u32, _len: u32, _now_ns: u64) -> Permit {
        Permit::Now
    }

    #[inline]
    fn sent(&mut self, child: u32, _len: u32, ready: bool, _now_ns: u64) {
        if !ready {
            self.ready.remove(child);
        }
    }

    #[inline]
    fn remove(&mut self, child: u32, _now_ns: u64) {
        self.ready.remove(child);
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
}
