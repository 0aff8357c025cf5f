//! The devices of a lane's ports of the machine, where its switches reach them.
//!
//! Packets of a switch wait for a port of the machine in an exit, so that many switches share the port as they should. Where nothing waits for it there is
//! nobody to share with: the switch hands its packets to the device itself ([`Exit::send`](crate::exit::Exit::send)), and what the device has no room for
//! waits in the exit. From then on all packets do, until none is left; so no packet overtakes another one of its exit.
//!
//! A switch that has its lane alone takes frames from the device of a port that is its own as a whole, too: nobody's frames have to be told apart.
//!
//! A device is in a variable of its lane's thread, as queues are ([`crate::own`]); nobody else reaches it.

use crate::MemberId;
use crate::counts::{Counts, Loss};
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received};
use millrace_frames::{Batch, Packet, PacketPool};
use std::cell::RefCell;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// Those of the lane that is this thread.
    static DEVICES: RefCell<Vec<Option<Device>>> = const { RefCell::new(Vec::new()) };
}

/// The place of a device in its lane.
pub(crate) type Place = usize;

/// The device of a port of the machine.
pub(crate) struct Device {
    number: u16,
    pair: Box<dyn QueuePair>,
    /// Whether it keeps packets of frames that leave from where they lie.
    keeps: bool,
    /// It gives nothing any more.
    has_ended: bool,
    /// It takes nothing any more.
    is_broken: bool,
    /// Why it broke, until the lane has noted that.
    failure: Option<PortError>,
    /// Whether packets wait for it in its exits.
    has_waiting: bool,
    /// Whether it was handed packets that it may hold back.
    is_to_flush: bool,
    /// How many frames of which switches of the lane it was handed by these themselves since the lane has looked.
    sent: Vec<(MemberId, usize)>,
}

impl Device {
    /// Takes a batch that has come; whether there may be more.
    #[inline]
    pub(crate) fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> bool {
        if self.has_ended {
            return false;
        }
        match self.pair.receive(batch, pool) {
            Ok(Received::More) => return true,
            Ok(Received::Idle) => return false,
            Ok(Received::End) => {}
            Err(error) => self.failure = Some(error),
        }
        self.has_ended = true;
        false
    }

    /// Hands packets of a switch to the device. Those for which it has no room now stay in the batch; what its link takes never, or not now as it is
    /// down, is lost, and counted for the switch: nobody else would get past it.
    #[inline]
    pub(crate) fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool, counts: &Counts) {
        if self.is_broken {
            return;
        }
        self.is_to_flush = true;
        if let Err(error) = self.pair.transmit(batch, pool) {
            self.fail(error);
        } else if !batch.is_empty() {
            self.lose_unsent(batch, pool, counts);
        }
    }

    #[cold]
    fn lose_unsent(&self, batch: &mut Batch, pool: &mut PacketPool, counts: &Counts) {
        if self.pair.is_link_down() {
            counts.lose(Loss::LinkDown, batch.len());
            return batch.recycle(pool);
        }
        let before = batch.len();
        batch.recycle_if(pool, |packet: &Packet| !self.pair.takes_length(packet.len()));
        counts.lose(Loss::Length, before - batch.len());
    }

    /// Whether it was handed packets that it may hold back.
    #[inline]
    pub(crate) fn is_to_flush(&self) -> bool {
        self.is_to_flush
    }

    /// Adds how many frames it was handed by switches themselves since this was asked last.
    #[inline]
    pub(crate) fn take_sent(&mut self, into: &mut Vec<(MemberId, usize)>) {
        into.append(&mut self.sent);
    }

    /// Has what was handed to it leave.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.is_to_flush)
            && !self.is_broken
            && let Err(error) = self.pair.flush()
        {
            self.fail(error);
        }
    }

    #[cold]
    fn fail(&mut self, error: PortError) {
        (self.has_ended, self.is_broken) = (true, true);
        self.failure = Some(error);
    }

    /// Takes the packets back whose frames have left, if it keeps some.
    #[inline]
    pub(crate) fn complete(&mut self, pool: &mut PacketPool) {
        if self.keeps {
            self.pair.complete(pool);
        }
    }

    /// It takes nothing any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Why it broke, once.
    #[inline]
    pub(crate) fn take_failure(&mut self) -> Option<PortError> {
        self.failure.take()
    }

    /// Whether packets wait for it in its exits from now on.
    #[inline]
    pub(crate) fn set_waiting(&mut self, has_waiting: bool) {
        self.has_waiting = has_waiting;
    }

    /// A descriptor to wait for, if it may still give something: none for one without.
    pub(crate) fn waits_by(&self) -> Option<Option<RawFd>> {
        (!self.has_ended).then(|| self.pair.poll_fd())
    }

    pub(crate) fn statistics(&self) -> PortStatistics {
        self.pair.statistics()
    }
}

/// One more device.
pub(crate) fn add(number: u16, pair: Box<dyn QueuePair>) -> Place {
    let device = Device {
        number,
        keeps: pair.max_kept() > 0,
        pair,
        has_ended: false,
        is_broken: false,
        failure: None,
        has_waiting: false,
        is_to_flush: false,
        sent: Vec::new(),
    };
    DEVICES.with_borrow_mut(|places| {
        let free = places.iter().position(Option::is_none).unwrap_or(places.len());
        if free == places.len() {
            places.push(None);
        }
        places[free] = Some(device);
        free
    })
}

/// The device of that place goes.
pub(crate) fn remove(place: Place) -> Option<Box<dyn QueuePair>> {
    let device = DEVICES.with_borrow_mut(|devices| devices.get_mut(place)?.take());
    device.map(|device| device.pair)
}

/// All devices go: the lane ends.
pub(crate) fn remove_all() {
    drop(DEVICES.take());
}

/// Does something with a device; none: there is none. `work` reaches no other device.
#[inline]
pub(crate) fn with<R>(place: Place, work: impl FnOnce(&mut Device) -> R) -> Option<R> {
    DEVICES.with_borrow_mut(|devices| devices.get_mut(place)?.as_mut().map(work))
}

/// Hands packets of a switch to the device of a port, if nothing waits for that; what it has no room for stays in the batch. The device was at `place` the
/// last time.
#[inline]
pub(crate) fn send(
    (number, place): (u16, &AtomicUsize),
    batch: &mut Batch,
    pool: &mut PacketPool,
    (counts, member): (&Counts, Option<MemberId>),
) {
    DEVICES.with_borrow_mut(|places| {
        let is_it = |device: &Option<Device>| device.as_ref().is_some_and(|device| device.number == number);
        let mut at = place.load(Ordering::Relaxed);
        if !places.get(at).is_some_and(is_it) {
            let Some(found) = places.iter().position(is_it) else { return };
            at = found;
            place.store(at, Ordering::Relaxed);
        }
        let Some(device) = places[at].as_mut().filter(|device| !device.has_waiting) else { return };
        // No round of the lane may come before it has kept all that it can keep.
        device.complete(pool);
        let before = batch.len();
        device.transmit(batch, pool, counts);
        let Some(member) = member else { return };
        match device.sent.last_mut() {
            Some((last, frames)) if *last == member => *frames += before - batch.len(),
            _ => device.sent.push((member, before - batch.len())),
        }
    });
}
