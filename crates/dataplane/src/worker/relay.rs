//! Which worker reaches a port through which queue pair of its device. A worker that has none reaches the port through rings and
//! through another worker's queue pair.
//!
//! ```text
//!  device -> receive -> spread by a hash -> ring -> another worker
//!  device <- transmit <------------------- ring <- another worker
//! ```
//!
//! A device with one queue pair has its frames spread over all workers by a hash. With several queue pairs the device spreads the
//! frames: then a worker without a queue pair gets none, and its rings serve what it sends.
//!
//! A ring has one thread at each end and no lock. Packets of one flow have one hash, so one worker switches them, in order, and
//! their ring keeps the order on the way out. A port with a scheduler ([`super::scheduled`]) sends by one queue pair alone: workers
//! with another one of the device receive by that, and hand what they send to the worker with the scheduler. A full ring refuses: on
//! the way in the frame counts as missed, on the way out the sender drops it as refused by its port. So nothing grows, and each
//! frame is counted once. Packets go through a ring a batch at a time, so that both ends write their places in it once for a batch.

use super::scheduled::{Scheduled, Scheduler};
use super::spread::Spread;
use super::waker::Waker;
use millrace_drivers::{Around, PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use rtrb::{Consumer, Producer, RingBuffer};
use std::any::Any;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Packets that a ring holds at most.
pub(super) const RING: usize = 1024;

/// A queue pair of a device, with its number and the worker that has it.
pub(super) struct Owned {
    pub(super) queue: usize,
    pub(super) worker: usize,
    pub(super) pair: Box<dyn QueuePair>,
    pub(super) past: Past,
}

/// What was seen of a queue pair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past {
    /// Its input has ended.
    pub(super) has_ended: bool,
    /// When its last packet came, by the clock of the switch, if that was asked.
    pub(super) latest_ns: u64,
}

/// How a worker reaches a port.
pub(super) struct Access {
    /// The number of the device's queue pair; none: it goes through rings.
    pub(super) queue: Option<usize>,
    pub(super) pair: Box<dyn QueuePair>,
    pub(super) past: Past,
}

/// What the worker with the device and another one know of each other.
#[derive(Default)]
struct Known {
    /// The input has ended.
    has_ended: AtomicBool,
    is_link_down: AtomicBool,
}

/// A queue pair of the device, for the worker that has it, through which others reach the port too.
#[repr(align(128))]
struct Relaying {
    inner: Box<dyn QueuePair>,
    /// None: frames are for the worker that has the queue pair.
    spreading: Option<Spreading>,
    others: Vec<Other>,
    /// What is on its way out for others.
    leaving: Batch,
    statistics: PortStatistics,
    known: Arc<Known>,
    /// The device broke while it sent for others.
    broken: Option<PortError>,
}

/// How frames are spread over all workers.
struct Spreading {
    by: Spread,
    /// The number of the worker that has the queue pair.
    worker: usize,
    /// What has come and is not spread yet.
    came: Batch,
}

/// Another worker, as the one with the device reaches it. Those whose frames are spread are in the order of their numbers.
struct Other {
    to: Producer<Packet>,
    from: Consumer<Packet>,
    waker: Waker,
    /// What it gets of a batch.
    share: Vec<Packet>,
}

/// The port as a worker without a queue pair has it.
#[repr(align(128))]
struct Relayed {
    from: Consumer<Packet>,
    to: Producer<Packet>,
    /// Of the worker that has the device.
    waker: Waker,
    /// What polls readable when a packet comes: this worker's own signal.
    fd: Option<RawFd>,
    batch: Vec<Packet>,
    refused: u64,
    known: Arc<Known>,
}

/// The port as a worker has it whose queue pair only receives.
#[repr(align(128))]
struct Split {
    receives: Box<dyn QueuePair>,
    /// Reaches the worker that sends.
    sends: Box<dyn QueuePair>,
}

/// The queue pairs of a device that has just been opened: one for each worker, or one, which the first worker has.
pub(super) fn first_owners(pairs: Vec<Box<dyn QueuePair>>) -> Vec<Owned> {
    let owned = pairs.into_iter().enumerate();
    owned.map(|(queue, pair)| Owned { queue, worker: queue, pair, past: Past::default() }).collect()
}

/// How each worker reaches a port with these queue pairs, in the order of their wakers: at least by one access.
pub(super) fn connect(pairs: Vec<Owned>, wakers: &[Waker], spread: Spread) -> Vec<Vec<Access>> {
    if let Some(at) = pairs.iter().position(|owned| scheduler_of(&*owned.pair).is_some()) {
        return connect_to_one(pairs, at, wakers, spread);
    }
    let spreads = pairs.len() == 1;
    let mut owners: Vec<usize> = pairs.iter().map(|owned| owned.worker).collect();
    owners.sort_unstable();
    owners.dedup();
    let mut accesses: Vec<Vec<Access>> = wakers.iter().map(|_| Vec::new()).collect();
    for Owned { queue, worker, mut pair, past } in pairs {
        if accesses[worker].is_empty() {
            // Its first queue pair serves some of the workers that have none.
            let without = (0..wakers.len()).filter(|other| !owners.contains(other));
            let served: Vec<usize> = without.filter(|other| owners[other % owners.len()] == worker).collect();
            if !served.is_empty() {
                let relayed;
                (pair, relayed) =
                    relay(pair, (worker, past.has_ended), &served, wakers, spreads.then_some(spread));
                for (other, pair) in served.into_iter().zip(relayed) {
                    accesses[other].push(Access { queue: None, pair, past: Past::default() });
                }
            }
        }
        accesses[worker].push(Access { queue: Some(queue), pair, past });
    }
    accesses
}

/// As [`connect`], where that queue pair sends for all workers.
fn connect_to_one(mut pairs: Vec<Owned>, sends: usize, wakers: &[Waker], spread: Spread) -> Vec<Vec<Access>> {
    let spreading = (pairs.len() == 1).then_some(spread);
    let mut accesses: Vec<Vec<Access>> = wakers.iter().map(|_| Vec::new()).collect();
    let Owned { queue, worker, mut pair, past } = pairs.remove(sends);
    let served: Vec<usize> = (0..wakers.len()).filter(|other| *other != worker).collect();
    let mut relayed = Vec::new();
    if !served.is_empty() {
        (pair, relayed) = relay(pair, (worker, past.has_ended), &served, wakers, spreading);
    }
    // The first access of a worker to a port is that by which it sends.
    accesses[worker].push(Access { queue: Some(queue), pair, past });
    let mut relayed: Vec<(usize, Box<dyn QueuePair>)> = served.into_iter().zip(relayed).collect();
    for Owned { queue, worker, mut pair, past } in pairs {
        if let Some(at) = relayed.iter().position(|(other, _)| *other == worker) {
            let (_, sends) = relayed.remove(at);
            pair = Box::new(Split { receives: pair, sends });
        }
        accesses[worker].push(Access { queue: Some(queue), pair, past });
    }
    for (worker, pair) in relayed {
        accesses[worker].push(Access { queue: None, pair, past: Past::default() });
    }
    accesses
}

/// The scheduler of a worker's access to a port, if it has the one of the port.
pub(super) fn scheduler_of(pair: &dyn QueuePair) -> Option<Scheduler> {
    let pair = pair as &dyn Any;
    if let Some(relaying) = pair.downcast_ref::<Relaying>() {
        return scheduler_of(&*relaying.inner);
    }
    pair.downcast_ref::<Scheduled>().map(Scheduled::scheduler)
}

/// A queue pair as what it is, or the same if it is something else.
pub(super) fn cast<T: QueuePair>(pair: Box<dyn QueuePair>) -> Result<Box<T>, Box<dyn QueuePair>> {
    match (&*pair as &dyn Any).is::<T>() {
        true => Ok((pair as Box<dyn Any>).downcast().expect("its type was looked at")),
        false => Err(pair),
    }
}

/// What is left of a worker's access to a port: the queue pair of the device, if it has one, and what was counted beyond that.
pub(super) fn disconnect(pair: Box<dyn QueuePair>) -> (Option<Box<dyn QueuePair>>, PortStatistics) {
    let counted = pair.statistics();
    let pair = match cast::<Relayed>(pair) {
        Ok(_) => return (None, counted),
        Err(other) => other,
    };
    let pair = match cast::<Split>(pair) {
        Ok(split) => return (Some(split.receives), split.sends.statistics()),
        Err(other) => other,
    };
    match cast::<Relaying>(pair) {
        Ok(relaying) => (Some(relaying.inner), relaying.statistics),
        Err(plain) => (Some(plain), PortStatistics::default()),
    }
}

/// Has other workers reach a port through a queue pair that a worker has; gives what that worker and the others have then.
fn relay(
    inner: Box<dyn QueuePair>,
    (worker, has_ended): (usize, bool),
    served: &[usize],
    wakers: &[Waker],
    spread: Option<Spread>,
) -> (Box<dyn QueuePair>, Vec<Box<dyn QueuePair>>) {
    let known = Arc::new(Known { has_ended: has_ended.into(), is_link_down: inner.is_link_down().into() });
    let (mut others, mut relayed) = (Vec::new(), Vec::new());
    for other in served {
        let waker = &wakers[*other];
        let ((to, come), (go, from)) = (RingBuffer::new(RING), RingBuffer::new(RING));
        let share = Vec::with_capacity(MAX_BATCH);
        others.push(Other { to, from, waker: waker.clone(), share });
        relayed.push(Box::new(Relayed {
            from: come,
            to: go,
            waker: wakers[worker].clone(),
            fd: waker.fd(),
            batch: Vec::with_capacity(MAX_BATCH),
            refused: 0,
            known: Arc::clone(&known),
        }) as Box<dyn QueuePair>);
    }
    let relaying = Relaying {
        inner,
        spreading: spread.map(|by| Spreading { by, worker, came: Batch::new() }),
        others,
        leaving: Batch::new(),
        statistics: PortStatistics::default(),
        known,
        broken: None,
    };
    (Box::new(relaying), relayed)
}

/// Most packets that wait in the rings to and from so many other workers, and between these and the device.
pub(super) fn most_kept(others: usize) -> usize {
    others * (RING + MAX_BATCH) + 2 * MAX_BATCH
}

/// Moves the first packets of a list into a ring, as many as it has room for.
fn hand_over(packets: &mut Vec<Packet>, ring: &mut Producer<Packet>) -> usize {
    let count = packets.len().min(ring.slots());
    match ring.write_chunk_uninit(count) {
        Ok(chunk) => chunk.fill_from_iter(packets.drain(..count)),
        // There is room.
        Err(_) => 0,
    }
}

/// Moves packets from a ring into a batch, as many as that has room for.
fn take_over(ring: &mut Consumer<Packet>, batch: &mut Batch) {
    let count = batch.room().min(ring.slots());
    if let Ok(chunk) = ring.read_chunk(count) {
        // There is room.
        chunk.into_iter().for_each(|packet| _ = batch.push(packet));
    }
}

impl Relaying {
    /// Sends what others have handed over, as much as the device takes. The rest waits in the rings, or here.
    fn send_for_others(&mut self, pool: &mut PacketPool) -> Result<(), PortError> {
        let is_down = self.inner.is_link_down();
        self.known.is_link_down.store(is_down, Ordering::Relaxed);
        let Relaying { inner, others, leaving, statistics, .. } = self;
        for other in others {
            loop {
                take_over(&mut other.from, leaving);
                if leaving.is_empty() {
                    break;
                }
                let scheduled = (&**inner as &dyn Any).downcast_ref::<Scheduled>();
                if scheduled.is_some_and(Scheduled::reads_frames) {
                    // They are in the cache of the processor that has switched them.
                    leaving.ask_for_frames();
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
}

impl Spreading {
    /// Receives frames and gives each to the worker of its hash.
    fn receive(
        &mut self,
        inner: &mut dyn QueuePair,
        others: &mut [Other],
        (batch, pool): (&mut Batch, &mut PacketPool),
        statistics: &mut PortStatistics,
    ) -> Result<Received, PortError> {
        self.came.set_limit(batch.room().max(1));
        let received = inner.receive(&mut self.came, pool);
        let workers = others.len() as u64 + 1;
        for packet in self.came.drain() {
            // The upper half of the product of two numbers of 32 bits: evenly many hashes for each worker.
            let worker = ((u64::from(self.by.hash(packet.data())) * workers) >> 32) as usize;
            // The others are in the order of their numbers, and the own one is not among them.
            match worker.cmp(&self.worker) {
                std::cmp::Ordering::Less => others[worker].share.push(packet),
                std::cmp::Ordering::Greater => others[worker - 1].share.push(packet),
                std::cmp::Ordering::Equal => {
                    if let Err(packet) = batch.push(packet) {
                        statistics.rx_missed += 1;
                        pool.put(packet);
                    }
                }
            }
        }
        for other in others.iter_mut().filter(|other| !other.share.is_empty()) {
            hand_over(&mut other.share, &mut other.to);
            statistics.rx_missed += other.share.len() as u64;
            other.share.drain(..).for_each(|packet| pool.put(packet));
            other.waker.wake_if_asleep();
        }
        received
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
        let Relaying { inner, spreading, others, statistics, known, .. } = self;
        let received = match spreading {
            Some(spreading) => spreading.receive(&mut **inner, others, (batch, pool), statistics),
            None => inner.receive(batch, pool),
        };
        if !matches!(received, Ok(Received::More | Received::Idle)) {
            known.has_ended.store(true, Ordering::Release);
            others.iter().for_each(|other| other.waker.wake_if_asleep());
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
        self.inner.max_kept() + most_kept(self.others.len())
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

impl Around for Split {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &Self::Inner {
        &*self.receives
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.receives
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        self.sends.transmit(batch, pool)
    }

    fn max_kept(&self) -> usize {
        self.receives.max_kept() + self.sends.max_kept()
    }

    fn in_flight(&mut self) -> usize {
        self.receives.in_flight() + self.sends.in_flight()
    }

    fn is_link_down(&self) -> bool {
        self.sends.is_link_down()
    }

    fn statistics(&self) -> PortStatistics {
        let mut statistics = self.receives.statistics();
        statistics += self.sends.statistics();
        statistics
    }
}

impl QueuePair for Relayed {
    fn receive(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Received, PortError> {
        // Before the ring is looked at: nothing comes after the end.
        let has_ended = self.known.has_ended.load(Ordering::Acquire);
        take_over(&mut self.from, batch);
        if batch.is_full() {
            return Ok(Received::More);
        }
        Ok(if has_ended { Received::End } else { Received::Idle })
    }

    fn transmit(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Transmitted, PortError> {
        let before = batch.len();
        self.batch.extend(batch.drain());
        if !self.is_link_down() {
            hand_over(&mut self.batch, &mut self.to);
        }
        self.refused += self.batch.len() as u64;
        // They had their places there.
        self.batch.drain(..).for_each(|packet| _ = batch.push(packet));
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
        self.fd
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
