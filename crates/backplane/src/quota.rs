//! What a switch may take of the device: packets and bits a second at its ports, and a share of the time of its worker.

use crate::counts::{Counts, Loss};
use crate::rate::Rate;
use crate::time;
use millrace_dataplane::PortId;
use millrace_frames::{Batch, MAX_BATCH, MAX_FRAME, PacketPool};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many millionths make the whole time of a worker.
pub const WHOLE: u32 = 1_000_000;

/// A switch's share of the time of its worker, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeShare {
    /// It gets so much whenever it has packets for it. The guarantees of a worker's switches are [`WHOLE`] at most together; what they
    /// leave is for those without a guarantee, in equal parts, and what somebody does not use is for all.
    pub guaranteed: u32,
    /// It never gets more.
    pub largest: u32,
}

impl Default for TimeShare {
    fn default() -> TimeShare {
        TimeShare { guaranteed: 0, largest: WHOLE }
    }
}

/// What may come in at the ports of a switch, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets a second; none: no limit.
    pub packets: Option<u64>,
    /// Bits a second, of frames without their check sequence; none: no limit.
    pub bits: Option<u64>,
}

/// Gets a copy of what a switch gets.
pub trait Mirror: std::fmt::Debug + Send {
    /// A frame has come for a port of the switch. Nobody waits for this for long.
    fn take(&mut self, port: PortId, frame: &[u8]);
}

/// Lets packets in as far as [`Traffic`] allows.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Admission {
    /// Whether there is a limit or a mirror: most have none, and take no lock then.
    is_special: AtomicBool,
    rules: Mutex<Rules>,
}

#[derive(Debug, Default)]
struct Rules {
    /// Nothing comes in.
    is_stopped: bool,
    packets: Option<Rate>,
    bits: Option<Rate>,
    mirror: Option<Box<dyn Mirror>>,
}

impl Admission {
    pub(crate) fn new(traffic: Traffic) -> Admission {
        let admission = Admission::default();
        admission.set(traffic);
        admission
    }

    /// Another limit from now on.
    pub(crate) fn set(&self, traffic: Traffic) {
        let now_ns = time::now_ns();
        let packets = traffic.packets.map(|rate| Rate::with_usual_burst(rate, MAX_BATCH as u64, now_ns));
        // The longest frame passes at any rate.
        let bits = traffic.bits.map(|rate| Rate::with_usual_burst(rate, 8 * MAX_FRAME as u64, now_ns));
        self.change(|rules| (rules.packets, rules.bits) = (packets, bits));
    }

    /// Nothing comes in from now on, or as much as the limit allows again.
    pub(crate) fn stop(&self, is_stopped: bool) {
        self.change(|rules| rules.is_stopped = is_stopped);
    }

    /// Whether nothing comes in.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_special.load(Ordering::Acquire)
            && self.rules.lock().unwrap_or_else(PoisonError::into_inner).is_stopped
    }

    /// Somebody gets a copy of what comes in from now on, or nobody.
    pub(crate) fn mirror(&self, mirror: Option<Box<dyn Mirror>>) {
        self.change(|rules| rules.mirror = mirror);
    }

    fn change(&self, change: impl FnOnce(&mut Rules)) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut rules);
        let Rules { is_stopped, packets, bits, mirror } = &*rules;
        let is_special = *is_stopped || packets.is_some() || bits.is_some() || mirror.is_some();
        self.is_special.store(is_special, Ordering::Release);
    }

    /// Takes the packets out of a batch for a port that are more than may come, the last ones.
    #[inline]
    pub(crate) fn admit(&self, port: PortId, batch: &mut Batch, counts: &Arc<Counts>, pool: &mut PacketPool) {
        if self.is_special.load(Ordering::Acquire) {
            self.cut(port, batch, counts, pool);
        }
    }

    #[cold]
    fn cut(&self, port: PortId, batch: &mut Batch, counts: &Counts, pool: &mut PacketPool) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let Rules { is_stopped, packets, bits, mirror } = &mut *rules;
        if *is_stopped {
            counts.lose(Loss::Stopped, batch.len());
            return batch.recycle(pool);
        }
        let now_ns = time::now_ns();
        if let Some(packets) = packets {
            let may = packets.take(batch.len() as u64, now_ns) as usize;
            counts.lose(Loss::PacketQuota, batch.len() - may);
            while batch.len() > may {
                batch.give_last_back(pool);
            }
        }
        if let Some(bits) = bits {
            let before = batch.len();
            batch.recycle_if(pool, |packet| !bits.take_all(8 * packet.len() as u64, now_ns));
            counts.lose(Loss::BitQuota, before - batch.len());
        }
        if let Some(mirror) = mirror {
            batch.packets().iter().for_each(|packet| mirror.take(port, packet.data()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(pool: &mut PacketPool, packets: usize) -> Batch {
        let mut batch = Batch::new();
        (0..packets).for_each(|_| _ = batch.add(pool).unwrap().set_frame(&[0; 100]));
        batch
    }

    #[test]
    fn what_is_more_than_a_quota_is_counted_by_its_reason() {
        let mut pool = PacketPool::new(MAX_BATCH);
        let counts = Arc::<Counts>::default();
        let admission = Admission::new(Traffic::default());
        let mut admit = |admission: &Admission, packets| {
            let mut batch = batch(&mut pool, packets);
            admission.admit(0, &mut batch, &counts, &mut pool);
            let left = batch.len();
            batch.recycle(&mut pool);
            left
        };
        assert_eq!(admit(&admission, 64), 64);
        admission.set(Traffic { packets: Some(1), bits: None });
        assert_eq!((admit(&admission, 60), admit(&admission, 10)), (60, 4));
        admission.stop(true);
        assert_eq!((admit(&admission, 10), counts.lost(Loss::Stopped)), (0, 10));
        admission.set(Traffic { packets: None, bits: None });
        assert_eq!((admit(&admission, 1), counts.lost(Loss::Stopped)), (0, 11));
        admission.stop(false);
        assert_eq!(admit(&admission, 64), 64);
        // 163 frames of 800 bits are in a bucket of 131072.
        admission.set(Traffic { packets: None, bits: Some(1) });
        assert_eq!([64, 64, 64].map(|packets| admit(&admission, packets)), [64, 64, 35]);
        assert_eq!((counts.lost(Loss::PacketQuota), counts.lost(Loss::BitQuota)), (6, 29));
        assert_eq!(pool.available(), MAX_BATCH);
    }
}
