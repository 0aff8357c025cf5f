//! A port whose frames leave in the order that its scheduler says: a queue pair around that of the device, with the port's queues in
//! between.
//!
//! ```text
//!  worker ----> transmit -> queues, scheduler -> device
//!  others ----> rings ---------^
//! ```
//!
//! Frames come here when the program is done with them, as packets that go into a queue and out of it without a copy. The device
//! gets no more than [`LINK_FRAMES`] at a time, so that what waits does so here, where its order can still change. One worker has the
//! port's only transmit queue: others hand frames to it by rings ([`super::relay`]), and so a port has one scheduler, and its frames
//! one order, however many workers there are.
//!
//! The worker that has the queue pair reaches the queues by a [`Scheduler`] of its own: it tells the time where a simulated clock
//! stands still between two frames, asks when it has to be awake, and takes what was dropped, to count it.

use super::relay::cast;
use crate::arrival::Asks;
use crate::links::LINK_FRAMES;
use crate::quotas::{Occupied, Places};
use crate::{Clock, DropReason, ecn};
use millrace_drivers::{Around, PortError, PortStatistics, QueuePair, Transmitted};
use millrace_frames::{Batch, Packet, PacketPool};
use millrace_traffic::{Egress, Next, Plan, QueueReport};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When a device that has no room is asked again, in nanoseconds.
const LINK_WAIT_NS: u64 = 50_000;

/// The queues of a port, for the worker that has the port's queue pair. It alone uses them, so nobody waits for the lock.
#[derive(Clone)]
pub(crate) struct Scheduler(Arc<Mutex<Served>>);

/// What a port has to send.
struct Served {
    egress: Egress<Packet>,
    /// What was taken out of the queues and the device has not taken yet.
    leaving: Batch,
    /// Lengths of frames that were dropped since the worker asked, and why.
    discarded: Vec<(usize, DropReason)>,
    /// The places that its packets take among those of the switch.
    occupied: Occupied,
    time: Time,
}

/// What time it is.
enum Time {
    /// What the clock of the switch says.
    Clock(Clock),
    /// What the worker said last, of ports that replay captures; and what that is in the time of the captures.
    Told { now_ns: u64, origin_ns: u64 },
}

impl Time {
    fn now_ns(&self) -> u64 {
        match self {
            Time::Clock(clock) => clock.now_ns(),
            Time::Told { now_ns, .. } => *now_ns,
        }
    }
}

/// The queue pair.
pub(super) struct Scheduled {
    inner: Box<dyn QueuePair>,
    scheduler: Scheduler,
    /// Frames that were refused with the link down.
    refused: u64,
    broken: Option<PortError>,
}

/// A port's queue pair with a scheduler of that plan around it, whose packets take places of the switch.
pub(super) fn schedule(
    inner: Box<dyn QueuePair>,
    plan: Arc<Plan>,
    clock: &Clock,
    places: &Places,
) -> Box<dyn QueuePair> {
    let time = match clock.is_real() {
        true => Time::Clock(clock.clone()),
        false => Time::Told { now_ns: 0, origin_ns: 0 },
    };
    let egress = Egress::new(plan, time.now_ns());
    let queues =
        Served { egress, leaving: Batch::new(), discarded: Vec::new(), occupied: Occupied::of(places), time };
    let scheduler = Scheduler(Arc::new(Mutex::new(queues)));
    Box::new(Scheduled { inner, scheduler, refused: 0, broken: None })
}

/// A port's queue pair without the scheduler around it. What waits leaves at once, as much as the device takes; the rest is dropped, with
/// its lengths.
pub(super) fn unschedule(
    pair: Box<dyn QueuePair>,
    pool: &mut PacketPool,
    mut lost: impl FnMut(usize, DropReason),
) -> Box<dyn QueuePair> {
    let scheduled = match cast::<Scheduled>(pair) {
        Ok(scheduled) => scheduled,
        Err(other) => return other,
    };
    let Scheduled { mut inner, scheduler, .. } = *scheduled;
    let mut queues = scheduler.queues();
    queues.run_empty(&mut *inner, pool);
    queues.discarded.drain(..).for_each(|(len, why)| lost(len, why));
    inner
}

impl Scheduler {
    fn queues(&self) -> MutexGuard<'_, Served> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time is that now, where it is told.
    pub(super) fn tell_time(&self, at_ns: u64, origin: u64) {
        if let Time::Told { now_ns, origin_ns } = &mut self.queues().time {
            (*now_ns, *origin_ns) = (at_ns.max(*now_ns), origin);
        }
    }

    /// When a frame may leave, or the device is to be asked again whether it has room; none: nothing waits.
    pub(super) fn wake_ns(&self) -> Option<u64> {
        let queues = self.queues();
        let wake = queues.egress.wake_ns();
        match queues.leaving.is_empty() && wake.is_none_or(|wake| wake > queues.time.now_ns()) {
            true => wake,
            // They would be gone if the device had room.
            false => Some(queues.time.now_ns() + LINK_WAIT_NS),
        }
    }

    /// Packets that wait, and their bytes: they were counted as sent when they came.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        let queues = self.queues();
        let leaving: usize = queues.leaving.packets().iter().map(Packet::len).sum();
        let packets = queues.egress.len() + queues.leaving.len();
        (packets, queues.egress.bytes() + leaving as u64)
    }

    /// Takes the lengths of frames that were dropped, and why.
    pub(super) fn take_discarded(&self, mut each: impl FnMut(usize, DropReason)) {
        self.queues().discarded.drain(..).for_each(|(len, reason)| each(len, reason));
    }

    /// Drops what waits: its device has gone, or may not send.
    pub(super) fn give_up(&self, reason: DropReason) {
        let mut served = self.queues();
        let Served { egress, leaving, discarded, .. } = &mut *served;
        let mut lose = |packet: Packet| discarded.push((packet.len(), reason));
        leaving.drain().for_each(&mut lose);
        egress.take_all(lose);
        served.occupied.tell(0);
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(self.queues().egress.plan())
    }

    /// Goes on by another plan. What waits stays where it is as far as the new plan has its queue.
    pub(super) fn replace(&self, plan: Arc<Plan>) {
        let mut queues = self.queues();
        let Served { egress, discarded, time, .. } = &mut *queues;
        egress.replace(plan, time.now_ns(), |packet: Packet, why| discarded.push((packet.len(), why.into())));
        let waiting = egress.len();
        queues.occupied.tell(waiting);
    }

    /// What each queue tells.
    pub(super) fn report(&self, each: impl FnMut(QueueReport)) {
        self.queues().egress.queues().for_each(each);
    }
}

impl Served {
    /// Has a batch pass if it is all that there is and the device has room for it. Frames of one class that nothing else orders are sent
    /// where they lie, as many as the device takes; their rest waits as other frames do. Others are put in their order.
    fn pass(
        &mut self,
        inner: &mut dyn QueuePair,
        (batch, pool): (&mut Batch, &mut PacketPool),
    ) -> Result<(), PortError> {
        let Some(class) = batch.packets().first().map(|packet| packet.service().class) else { return Ok(()) };
        let is_idle = self.leaving.is_empty()
            && self.egress.is_empty()
            && matches!(self.time, Time::Clock(_))
            && batch.len() + inner.in_flight() <= LINK_FRAMES;
        if !is_idle {
            return Ok(());
        }
        if self.egress.may_pass(class, 0, 0, 0) {
            let (mut bytes, mut longest, mut other) = (0, 0, 0);
            for packet in batch.packets() {
                let len = packet.len() as u32;
                (bytes, longest) = (bytes + u64::from(len), longest.max(len));
                other |= packet.service().class ^ class;
            }
            let packets = batch.len() as u32;
            if other == 0 && self.egress.may_pass(class, packets, bytes, longest) {
                let sent = inner.transmit(batch, pool);
                let left = Packet::bytes_of(batch.packets());
                self.egress.passed(class, packets - batch.len() as u32, bytes - left);
                return sent.map(|_| ());
            }
        }
        if self.egress.may_arrange() {
            let asks = Asks::of(self.egress.plan());
            let frames = batch.packets().iter();
            let arrivals = frames.map(|packet| asks.arrival(packet.service(), packet.data()));
            if let Some(order) = self.egress.arrange(arrivals) {
                let taken = self.leaving.take_in_order(batch, order);
                debug_assert!(taken, "a batch of its own size is empty");
            }
        }
        Ok(())
    }

    /// Takes frames in.
    fn offer(&mut self, batch: &mut Batch, pool: &mut PacketPool) {
        if batch.is_empty() {
            return;
        }
        let (now_ns, asks) = (self.time.now_ns(), Asks::of(self.egress.plan()));
        for packet in batch.drain() {
            if !self.occupied.take(self.egress.len()) {
                self.discarded.push((packet.len(), DropReason::QueuePlaces));
                pool.put(packet);
                continue;
            }
            let arrival = asks.arrival(packet.service(), packet.data());
            if let Err(refused) = self.egress.offer(arrival, now_ns, packet) {
                self.discarded.push((refused.packet.len(), refused.reason.into()));
                pool.put(refused.packet);
            }
        }
    }

    /// Sends what may leave, as much as the device has room for.
    fn send(&mut self, inner: &mut dyn QueuePair, pool: &mut PacketPool) -> Result<(), PortError> {
        let sent = self.send_some(inner, pool);
        self.occupied.tell(self.egress.len());
        sent
    }

    fn send_some(&mut self, inner: &mut dyn QueuePair, pool: &mut PacketPool) -> Result<(), PortError> {
        // The clock costs as much as a frame: it is asked only where time decides.
        let now_ns = if self.egress.wake_ns().is_none() { 0 } else { self.time.now_ns() };
        while !self.leaving.is_empty() || self.egress.wake_ns().is_some() {
            let room = LINK_FRAMES.saturating_sub(inner.in_flight());
            while self.leaving.len() < room {
                match self.egress.next(now_ns) {
                    Next::Leaves(departed) => {
                        let mut packet = departed.packet;
                        if departed.mark {
                            ecn::mark(packet.data_mut());
                        }
                        if let Time::Told { origin_ns, .. } = self.time {
                            packet.timestamp_ns = origin_ns + now_ns;
                        }
                        // There is room.
                        let _ = self.leaving.push(packet);
                    }
                    Next::Discarded(packet, why) => {
                        self.discarded.push((packet.len(), why.into()));
                        pool.put(packet);
                    }
                    Next::Nothing => break,
                }
            }
            if self.leaving.is_empty() {
                return Ok(());
            }
            let sent = inner.transmit(&mut self.leaving, pool)?.sent;
            if inner.is_link_down() {
                let down = |packet: &Packet| (packet.len(), DropReason::LinkDown);
                self.discarded.extend(self.leaving.packets().iter().map(down));
                self.leaving.recycle(pool);
            }
            if sent == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends all that waits, as much as the device takes, and drops the rest.
    fn run_empty(&mut self, inner: &mut dyn QueuePair, pool: &mut PacketPool) {
        let mut waiting: Vec<Packet> = self.leaving.drain().collect();
        self.egress.take_all(|packet| waiting.push(packet));
        self.occupied.tell(0);
        let mut waiting = waiting.into_iter().peekable();
        while waiting.peek().is_some() {
            let room = self.leaving.room();
            waiting.by_ref().take(room).for_each(|packet| _ = self.leaving.push(packet));
            // A device that is broken says so again.
            let _ = inner.transmit(&mut self.leaving, pool);
            let refused = |packet: &Packet| (packet.len(), DropReason::TxRefused);
            self.discarded.extend(self.leaving.packets().iter().map(refused));
            self.leaving.recycle(pool);
        }
    }
}

impl Around for Scheduled {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &Self::Inner {
        &*self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.inner
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let offered = batch.len();
        if self.inner.is_link_down() {
            self.refused += offered as u64;
            return Ok(Transmitted { sent: 0, refused: offered });
        }
        let mut queues = self.scheduler.queues();
        queues.pass(&mut *self.inner, (batch, pool))?;
        queues.offer(batch, pool);
        queues.send(&mut *self.inner, pool)?;
        Ok(Transmitted { sent: offered, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.broken.take().map_or_else(|| self.inner.flush(), Err)
    }

    /// Once a round, as completions are asked for: sends what may leave by now.
    fn complete(&mut self, pool: &mut PacketPool) {
        self.inner.complete(pool);
        let sent = self.scheduler.queues().send(&mut *self.inner, pool);
        self.broken = sent.and_then(|()| self.inner.flush()).err();
    }

    fn max_kept(&self) -> usize {
        self.inner.max_kept() + self.scheduler.queues().egress.plan().max_packets() + LINK_FRAMES
    }

    fn in_flight(&mut self) -> usize {
        self.inner.in_flight() + self.scheduler.queues().leaving.len()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.inner.poll_fd()
    }

    fn statistics(&self) -> PortStatistics {
        let mut statistics = self.inner.statistics();
        statistics.tx_refused += self.refused;
        statistics
    }
}

impl Scheduled {
    /// Whether it looks into the frames that it is given.
    pub(super) fn reads_frames(&self) -> bool {
        Asks::of(self.scheduler.queues().egress.plan()).reads_frames()
    }

    /// Its queues.
    pub(super) fn scheduler(&self) -> Scheduler {
        self.scheduler.clone()
    }
}
