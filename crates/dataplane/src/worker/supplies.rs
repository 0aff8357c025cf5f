//! What a worker has in hand from a port to ports.
//!
//! Nothing in it is left from one round to the next but memory. So whoever drives many workers has one for all of them, which is in the
//! first-level cache when the next one takes its step; one for each worker would be brought there for each step.

use super::leaving::Leaving;
use super::outgoing::Outgoing;
use millrace_frames::{self as frames, Batch, MAX_BATCH, PacketPool};

/// The packets of a worker, and the lists of what becomes of them.
pub(super) struct Packets {
    pub(super) pool: PacketPool,
    /// The batch that came from a port.
    pub(super) received: Batch,
    /// Where its frames lie.
    pub(super) places: Vec<frames::Place>,
    pub(super) leaving: Leaving,
    pub(super) outgoing: Outgoing,
}

impl Packets {
    /// Those of a pool, of which so many are received at once at most.
    pub(super) fn of(pool: PacketPool, batch: usize) -> Box<Packets> {
        Box::new(Packets {
            pool,
            received: Batch::with_limit(batch),
            places: Vec::new(),
            leaving: Leaving::default(),
            outgoing: Outgoing::default(),
        })
    }
}

/// What is lent to driven workers for their steps: packets, and room for a batch on its way.
pub struct Supplies(pub(super) Box<Packets>);

impl Supplies {
    /// The packets of a pool.
    pub fn new(pool: PacketPool) -> Supplies {
        Supplies(Packets::of(pool, MAX_BATCH))
    }

    /// The packets.
    pub fn pool(&mut self) -> &mut PacketPool {
        &mut self.0.pool
    }
}
