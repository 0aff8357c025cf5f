//! Links between ports of two switches, in memory: a packet moves and is not copied. A link may have a delay, a rate and a loss, for
//! emulation.

use crate::counts::Loss;
use crate::wire::Wire;
use millrace_frames::{Batch, PacketPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Most links inside a device that a packet takes, when nobody says otherwise.
pub const DEFAULT_HOPS: u8 = 16;
/// The most that this may be set to.
pub const MAX_HOPS: u8 = 64;
/// The longest delay of a link.
pub const MAX_DELAY_NS: u64 = 10_000_000_000;
/// Bytes of a frame on a wire beyond its own: preamble, check sequence, gap.
const OVERHEAD: u64 = 24;
/// All packets are lost.
pub const ALL_LOST: u32 = 1_000_000;

/// How a link is different from a piece of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emulation {
    /// How long a packet takes, at most [`MAX_DELAY_NS`].
    pub delay_ns: u64,
    /// Bits a second; none: no limit.
    pub rate: Option<u64>,
    /// How many of a million packets are lost, at most [`ALL_LOST`].
    pub loss: u32,
}

impl Emulation {
    fn is_nothing(self) -> bool {
        self == Emulation::default()
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Link {
    to: Arc<Wire>,
    /// The most links that a packet takes.
    hops: Arc<AtomicU8>,
    emulation: Emulation,
    /// When the link has sent what it was given.
    free_ns: u64,
    /// Of the generator that says which packets are lost (xorshift64).
    random: u64,
}

impl Link {
    pub(crate) fn new(to: Arc<Wire>, hops: &Arc<AtomicU8>, emulation: Emulation, seed: u64) -> Link {
        Link { to, hops: Arc::clone(hops), emulation, free_ns: 0, random: seed | 1 }
    }

    /// Sends the packets of a batch, of which those that are lost or have taken too many links are `from`'s.
    #[inline]
    pub(crate) fn send(&mut self, batch: &mut Batch, from: &Wire, pool: &mut PacketPool) {
        let (before, hops) = (batch.len(), self.hops.load(Ordering::Relaxed));
        if batch.packets().iter().any(|packet| packet.hops >= hops) {
            batch.recycle_if(pool, |packet| packet.hops >= hops);
            from.counts.lose(Loss::Hops, before - batch.len());
        }
        // Stamps of the other end are those of its own clock: packets arrive there when it takes them.
        batch.packets_mut().iter_mut().for_each(|packet| {
            packet.hops += 1;
            packet.timestamp_ns = 0;
        });
        match self.emulation.is_nothing() {
            true => self.to.deliver(batch, pool),
            false => self.emulate(batch, from, pool),
        }
    }

    fn emulate(&mut self, batch: &mut Batch, from: &Wire, pool: &mut PacketPool) {
        let Emulation { delay_ns, rate, loss } = self.emulation;
        if loss > 0 {
            let before = batch.len();
            let random = &mut self.random;
            batch.recycle_if(pool, |_| next(random) % u64::from(ALL_LOST) < u64::from(loss));
            from.counts.lose(Loss::LinkLoss, before - batch.len());
        }
        if delay_ns == 0 && rate.is_none() {
            self.to.deliver(batch, pool);
            return;
        }
        let (now_ns, mut free_ns) = (crate::time::now_ns(), self.free_ns);
        let due = |packet: &millrace_frames::Packet, free_ns: &mut u64| {
            let takes = rate.map_or(0, |rate| {
                ((packet.len() as u64 + OVERHEAD) * 8 * 1_000_000_000).div_ceil(rate.max(1))
            });
            *free_ns = (*free_ns).max(now_ns).saturating_add(takes);
            free_ns.saturating_add(delay_ns)
        };
        self.to.deliver_late(batch, |packet| due(packet, &mut free_ns), pool);
        self.free_ns = free_ns;
    }
}

/// The next number of xorshift64 (Marsaglia).
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}
