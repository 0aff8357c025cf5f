//! A port whose device has fewer queue pairs than there are workers: one worker has its queue pair, the others reach it through
//! rings.
//!
//! ```text
//!  device -> receive -> spread by a hash -> ring -> another worker
//!  device <- transmit <------------------- ring <- another worker
//! ```
//!
//! A ring has one thread at each end and no lock. Packets of one flow have one hash, so one worker switches them, in order, and
//! their ring keeps the order on the way out. A full ring refuses: on the way in the frame counts as missed, on the way out the
//! sender drops it as refused by its port. So nothing grows, and each frame is counted once.

use super::mailbox::Waker;
use super::spread::Spread;
use millrace_drivers::{Around, PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use rtrb::{Consumer, Producer, RingBuffer};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Packets that a ring holds at most.
pub(super) const RING: usize = 1024;

/// What the worker with the device and another one know of each other.
#[derive(Default)]
struct Known {
    /// The input has ended.
    has_ended: AtomicBool,
    is_link_down: AtomicBool,
}

/// The device's queue pair, for the worker that has it.
pub(super) struct Relaying {
    inner: Box<dyn QueuePair>,
    spread: Spread,
    others: Vec<Other>,
    /// What has come and is not spread yet.
    came: Batch,
    /// What is on its way out for others.
    leaving: Batch,
    statistics: PortStatistics,
    known: Arc<Known>,
    /// The device broke while it sent for others.
    broken: Option<PortError>,
}

/// Another worker, as the one with the device reaches it.
struct Other {
    to: Producer<Packet>,
    from: Consumer<Packet>,
    waker: Waker,
}

/// The port as another worker has it.
pub(super) struct Relayed {
    from: Consumer<Packet>,
    to: Producer<Packet>,
    /// Of the worker that has the device.
    waker: Waker,
    /// What polls readable when a packet comes: this worker's own signal.
    fd: RawFd,
    batch: Vec<Packet>,
    refused: u64,
    known: Arc<Known>,
}

/// A queue pair for each worker, in the order of their wakers: those that the device has opened to, or the leading worker has
/// its only one and the others reach it.
pub(super) fn for_each_worker(
    mut pairs: Vec<Box<dyn QueuePair>>,
    wakers: &[Waker],
    spread: Spread,
) -> Vec<Box<dyn QueuePair>> {
    match (pairs.pop(), wakers) {
        (Some(only), [leader, others @ ..]) if pairs.is_empty() && !others.is_empty() => {
            relay(only, leader, others, spread)
        }
        (last, _) => pairs.into_iter().chain(last).collect(),
    }
}

fn relay(
    inner: Box<dyn QueuePair>,
    leader: &Waker,
    followers: &[Waker],
    spread: Spread,
) -> Vec<Box<dyn QueuePair>> {
    let known = Arc::new(Known::default());
    let (mut others, mut relayed) = (Vec::new(), Vec::new());
    for waker in followers {
        let ((to, come), (go, from)) = (RingBuffer::new(RING), RingBuffer::new(RING));
        others.push(Other { to, from, waker: waker.clone() });
        relayed.push(Box::new(Relayed {
            from: come,
            to: go,
            waker: leader.clone(),
            fd: waker.fd(),
            batch: Vec::with_capacity(MAX_BATCH),
            refused: 0,
            known: Arc::clone(&known),
        }) as Box<dyn QueuePair>);
    }
    let relaying = Relaying {
        inner,
        spread,
        others,
        came: Batch::new(),
        leaving: Batch::new(),
        statistics: PortStatistics::default(),
        known,
        broken: None,
    };
    std::iter::once(Box::new(relaying) as Box<dyn QueuePair>).chain(relayed).collect()
}

impl Relaying {
    /// Sends what others have handed over, as much as the device takes. The rest waits in the rings, or here.
    fn send_for_others(&mut self, pool: &mut PacketPool) -> Result<(), PortError> {
        let is_down = self.inner.is_link_down();
        self.known.is_link_down.store(is_down, Ordering::Relaxed);
        for other in 0..self.others.len() {
            loop {
                let Relaying { inner, others, leaving, statistics, .. } = self;
                while !leaving.is_full()
                    && let Ok(packet) = others[other].from.pop()
                {
                    // There is room.
                    let _ = leaving.push(packet);
                }
                if leaving.is_empty() {
                    break;
                }
                inner.transmit(leaving, pool)?;
                if !leaving.is_empty() && is_down {
                    // They would only be sent later than all that comes after them.
                    statistics.tx_refused += leaving.len() as u64;
                    leaving.recycle(pool);
                }
                if !leaving.is_empty() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Gives each frame that has come to the worker of its hash.
    fn spread(&mut self, batch: &mut Batch, pool: &mut PacketPool) {
        let Relaying { others, came, statistics, spread, .. } = self;
        let workers = others.len() as u64 + 1;
        let mut woken = 0u64;
        for packet in came.drain() {
            // The upper half of the product of two numbers of 32 bits: evenly many hashes for each worker.
            let worker = (u64::from(spread.hash(packet.data())) * workers) >> 32;
            let refused = match worker.checked_sub(1).map(|other| (other, &mut others[other as usize])) {
                None => batch.push(packet).err(),
                Some((number, other)) => {
                    woken |= 1 << number;
                    other.to.push(packet).err().map(|rtrb::PushError::Full(packet)| packet)
                }
            };
            if let Some(packet) = refused {
                statistics.rx_missed += 1;
                pool.put(packet);
            }
        }
        let woken = (0..).zip(others).filter(|(number, _)| woken >> number & 1 == 1);
        woken.for_each(|(_, other)| other.waker.wake_if_asleep());
    }
}

impl Around for Relaying {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &Self::Inner {
        &*self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.inner
    }

    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        self.came.set_limit(batch.room().max(1));
        let received = self.inner.receive(&mut self.came, pool);
        self.spread(batch, pool);
        if !matches!(received, Ok(Received::More | Received::Idle)) {
            self.known.has_ended.store(true, Ordering::Release);
            self.others.iter().for_each(|other| other.waker.wake_if_asleep());
        }
        received
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.broken.take().map_or_else(|| self.inner.flush(), Err)
    }

    /// Once a round, as completions are asked for: sends what others have handed over.
    fn complete(&mut self, pool: &mut PacketPool) {
        self.inner.complete(pool);
        self.broken = self.send_for_others(pool).and_then(|()| self.inner.flush()).err();
    }

    fn max_kept(&self) -> usize {
        // Each other worker may have a ring and a batch of them.
        self.inner.max_kept() + self.others.len() * (RING + MAX_BATCH) + 2 * MAX_BATCH
    }

    fn in_flight(&mut self) -> usize {
        let waiting: usize = self.others.iter().map(|other| other.from.slots()).sum();
        self.inner.in_flight() + self.leaving.len() + waiting
    }

    fn poll_fd(&self) -> Option<RawFd> {
        // What the device had no room for is tried again at once.
        let waits = !self.leaving.is_empty() || self.others.iter().any(|other| !other.from.is_empty());
        if waits { None } else { self.inner.poll_fd() }
    }

    fn statistics(&self) -> PortStatistics {
        let mut statistics = self.inner.statistics();
        statistics += self.statistics;
        statistics
    }
}

impl QueuePair for Relayed {
    fn receive(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Received, PortError> {
        // Before the ring is looked at: nothing comes after the end.
        let has_ended = self.known.has_ended.load(Ordering::Acquire);
        while !batch.is_full() {
            let Ok(packet) = self.from.pop() else {
                return Ok(if has_ended { Received::End } else { Received::Idle });
            };
            // There is room.
            let _ = batch.push(packet);
        }
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Transmitted, PortError> {
        let before = batch.len();
        self.batch.extend(batch.drain());
        let is_down = self.is_link_down();
        for packet in self.batch.drain(..) {
            let refused = match is_down {
                true => Some(packet),
                false => self.to.push(packet).err().map(|rtrb::PushError::Full(packet)| packet),
            };
            if let Some(packet) = refused {
                self.refused += 1;
                // It had its place there.
                let _ = batch.push(packet);
            }
        }
        let sent = before - batch.len();
        if sent > 0 {
            self.waker.wake_if_asleep();
        }
        Ok(Transmitted { sent, refused: batch.len() })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn max_kept(&self) -> usize {
        RING
    }

    fn in_flight(&mut self) -> usize {
        RING - self.to.slots()
    }

    fn is_link_down(&self) -> bool {
        self.known.is_link_down.load(Ordering::Relaxed)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.fd)
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    /// The device counts what comes and goes; here is what did not get so far.
    fn statistics(&self) -> PortStatistics {
        PortStatistics { tx_refused: self.refused, ..PortStatistics::default() }
    }
}
