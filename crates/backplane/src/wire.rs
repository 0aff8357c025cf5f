//! A port of a switch inside the device: what comes for it, and where goes what it sends.

use crate::MemberId;
use crate::counts::{Counts, Loss};
use crate::devices::{self, Place};
use crate::exit::Exit;
use crate::inbox::{Inbox, Mix};
use crate::link::Link;
use crate::own::LaneKey;
use crate::signals::Signals;
use millrace_classifier::TagsOut;
use millrace_dataplane::PortId;
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, Packet, PacketPool, ask_for_start};
use std::fmt;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Somebody on the machine who takes what a port of a switch sends, such as its controller.
pub trait Host: fmt::Debug + Send {
    /// Takes a frame at once, or says that there is no room for it.
    fn take(&mut self, frame: &[u8]) -> bool;
}

/// Where what a port of a switch sends goes.
#[derive(Debug, Default)]
pub(crate) enum Outlet {
    /// Nowhere: its link is down.
    #[default]
    Nowhere,
    /// To ports of the machine, a copy to each.
    Exits(Box<[(Arc<Exit>, TagsOut)]>),
    /// To a port of another switch.
    Link(Box<Link>),
    /// To somebody on the machine.
    Host(Box<dyn Host>),
}

/// See the module's documentation.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Wire {
    /// What each batch needs comes first: a cache line.
    signals: Arc<Signals>,
    port: PortId,
    member: MemberId,
    /// Its bit among the signals as a number; 64: it has none.
    bit: u8,
    /// Whether what it sends goes elsewhere from now on.
    is_changed: AtomicBool,
    inbox: Inbox,
    pub(crate) counts: Arc<Counts>,
    /// Whether packets may wait in the inbox for a time.
    has_late: AtomicBool,
    is_up: AtomicBool,
    /// Where what it sends goes from now on, until its lane has taken note of that.
    next_outlet: Mutex<Option<Outlet>>,
    /// The place of the device that it takes frames from itself ([`crate::devices`]), and one more; 0: there is none. The lane changes it.
    source: AtomicUsize,
}

impl Wire {
    pub(crate) fn new(
        (member, port): (MemberId, PortId),
        places: usize,
        counts: Arc<Counts>,
        signals: Arc<Signals>,
    ) -> Wire {
        Wire {
            port,
            member,
            bit: signals.give_bit().trailing_zeros() as u8,
            is_changed: AtomicBool::new(false),
            inbox: Inbox::new(places, Mix::Alike, signals.lane(), (Arc::clone(&counts), true)),
            counts,
            has_late: AtomicBool::new(false),
            is_up: AtomicBool::new(false),
            next_outlet: Mutex::default(),
            source: AtomicUsize::new(0),
            signals,
        }
    }

    /// Its bit among the signals; 0: it has none.
    #[inline]
    pub(crate) fn bit(&self) -> u64 {
        1u64.checked_shl(self.bit.into()).unwrap_or(0)
    }

    /// Has the lane look at it.
    #[inline]
    fn tell(&self) {
        self.signals.tell(self.member, self.bit());
    }

    /// The number of the port in its switch.
    pub fn port(&self) -> PortId {
        self.port
    }

    /// The switch that it is of, if the calling thread is its lane.
    #[inline]
    pub(crate) fn member_here(&self) -> Option<MemberId> {
        self.signals.is_here().then_some(self.member)
    }

    /// The number of its switch, if that is on this lane.
    pub(crate) fn member_on(&self, lane: &Arc<LaneKey>) -> Option<MemberId> {
        Arc::ptr_eq(self.signals.lane(), lane).then_some(self.member)
    }

    /// From now on so many packets may wait for the switch. Those that wait stay.
    pub fn set_places(&self, places: usize) {
        self.inbox.set_limit(places);
    }

    /// How many packets may wait for the switch.
    pub(crate) fn places(&self) -> usize {
        self.inbox.limit()
    }

    /// Whether its switch is to look at it: packets wait, or what it sends goes elsewhere from now on.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.inbox.waiting() > 0 || self.is_changed.load(Ordering::Relaxed)
    }

    /// Packets that wait for the switch.
    pub fn waiting(&self) -> usize {
        self.inbox.waiting()
    }

    /// Gives the switch the packets of a batch, as far as its quota and its inbox allow.
    #[inline]
    pub(crate) fn deliver(&self, batch: &mut Batch, pool: &mut PacketPool) {
        self.signals.admission.admit(self.port, batch, &self.counts, pool);
        let cut = self.counts.cut(batch, pool);
        if self.inbox.put(batch) {
            self.tell();
        }
        self.counts.lose(Loss::InboxFull, cut + batch.len());
        batch.recycle(pool);
    }

    /// As [`Wire::deliver`], each packet at a time.
    pub(crate) fn deliver_late(
        &self,
        batch: &mut Batch,
        due_ns: impl FnMut(&Packet) -> u64,
        pool: &mut PacketPool,
    ) {
        self.signals.admission.admit(self.port, batch, &self.counts, pool);
        let cut = self.counts.cut(batch, pool);
        self.inbox.put_late(batch, due_ns);
        self.has_late.store(true, Ordering::Release);
        self.signals.tell_late(self.member);
        self.counts.lose(Loss::InboxFull, cut + batch.len());
        batch.recycle(pool);
    }

    /// Gives the switch a frame of somebody on the machine. Its quota of packets is not for these: whoever sends them has one of his own. A
    /// switch that is stopped does not get it: it is lost, and counted.
    ///
    /// # Errors
    /// The switch has no room for it, or it is too long.
    pub fn send_in(&self, frame: &[u8]) -> Result<(), NotSent> {
        let packet = Packet::from_frame(frame).map_err(|_| NotSent::TooLong)?;
        if self.signals.admission.is_stopped() {
            self.counts.lose(Loss::Stopped, 1);
            return Ok(());
        }
        let mut batch = Batch::new();
        let _ = batch.push(packet);
        if self.inbox.put(&mut batch) {
            self.tell();
        }
        match batch.is_empty() {
            true => Ok(()),
            false => {
                self.counts.lose(Loss::InboxFull, 1);
                Err(NotSent::Full)
            }
        }
    }

    /// No packet was free for a copy of a frame.
    #[cold]
    pub(crate) fn lacks_packet(&self) {
        self.counts.lose(Loss::NoPacket, 1);
    }

    /// It takes frames from this device itself from now on, or from none.
    pub(crate) fn set_source(&self, device: Option<Place>) {
        self.source.store(device.map_or(0, |place| place + 1), Ordering::Relaxed);
    }

    /// Its device may have frames for it.
    #[inline]
    pub(crate) fn look_at_source(&self) {
        self.signals.set(self.bit());
    }

    /// Adds frames of its device to a batch, as far as the quota of the switch allows; whether there may be more. There are none while packets wait
    /// in the inbox: all packets of a batch are of one memory.
    #[inline]
    fn take_from_source(&self, batch: &mut Batch, pool: &mut PacketPool) -> bool {
        let Some(place) = self.source.load(Ordering::Relaxed).checked_sub(1) else { return false };
        batch.make_room();
        let more = devices::with(place, |device| device.receive(batch, pool)).unwrap_or(false);
        self.signals.admission.admit(self.port, batch, &self.counts, pool);
        if more {
            self.signals.set(self.bit());
        }
        more
    }

    /// Has the processor bring what a delivery uses: the wire is in the cache itself, and that is soon.
    #[inline]
    pub(crate) fn ask_ahead(&self) {
        ask_for_start(&*self.signals);
        self.inbox.ask_ahead();
    }

    /// Lets packets go on whose time has come.
    pub(crate) fn let_time_pass(&self, now_ns: u64) {
        if self.has_late.load(Ordering::Acquire) && self.inbox.let_time_pass(now_ns) {
            self.signals.set(self.bit());
        }
    }

    /// When the next packet may go on that waits for its time.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.has_late.load(Ordering::Acquire).then(|| self.inbox.due_ns()).flatten()
    }

    /// What the port sends goes there from the next batch on.
    pub(crate) fn connect(&self, outlet: Outlet) {
        self.is_up.store(!matches!(outlet, Outlet::Nowhere), Ordering::Release);
        // One that nobody has taken note of may hold the other end of a link, whose last holder it is: it goes after the lock.
        let unused = self.next_outlet().replace(outlet);
        self.is_changed.store(true, Ordering::Release);
        drop(unused);
        // The switch takes a step, with which the outlet goes that it had before.
        self.tell();
    }

    fn next_outlet(&self) -> MutexGuard<'_, Option<Outlet>> {
        self.next_outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing comes any more, and what waits is gone.
    pub(crate) fn close(&self) {
        self.connect(Outlet::Nowhere);
        self.counts.lose(Loss::PortGone, self.inbox.close());
        self.signals.take_bit_back(self.bit());
    }

    /// Adds packets that have come to a batch; whether there are more.
    #[inline]
    fn take(&self, batch: &mut Batch) -> bool {
        self.signals.clear(self.bit());
        let more = self.inbox.take(batch);
        if more {
            self.signals.set(self.bit());
        }
        more
    }
}

/// Why a frame of somebody on the machine did not go to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// As many packets wait for the port as may.
    Full,
    /// A frame cannot be so long.
    TooLong,
}

/// The wire as the switch has it: a port like any other.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct WirePort {
    /// What each batch needs comes first: a cache line.
    wire: Arc<Wire>,
    outlet: Outlet,
    /// Packets and bytes received, then sent.
    counted: [u64; 4],
    refused: u64,
    /// A copy on its way to one more port of the machine.
    copies: Batch,
}

const _: () = assert!(std::mem::offset_of!(WirePort, refused) <= 64);

impl WirePort {
    pub(crate) fn new(wire: Arc<Wire>) -> WirePort {
        WirePort { wire, outlet: Outlet::Nowhere, counted: [0; 4], refused: 0, copies: Batch::new() }
    }

    /// Takes note of where what it sends goes.
    #[inline]
    fn look(&mut self) {
        if self.wire.is_changed.load(Ordering::Acquire) {
            self.change();
        }
    }

    #[cold]
    fn change(&mut self) {
        let next = {
            let mut next = self.wire.next_outlet();
            self.wire.is_changed.store(false, Ordering::Release);
            next.take()
        };
        if let Some(next) = next {
            self.outlet = next;
        }
    }
}

impl QueuePair for WirePort {
    #[inline]
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let before = batch.len();
        let mut more = self.wire.take(batch);
        if batch.is_empty() {
            more |= self.wire.take_from_source(batch, pool);
        }
        self.look();
        let came = &batch.packets()[before..];
        self.counted[0] += came.len() as u64;
        self.counted[1] += Packet::bytes_of(came);
        Ok(if more { Received::More } else { Received::Idle })
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        self.look();
        let WirePort { wire, outlet, counted: [_, _, tx_packets, tx_bytes], refused: tx_refused, copies } =
            self;
        let sent = batch.len();
        match outlet {
            Outlet::Nowhere => {
                *tx_refused += sent as u64;
                return Ok(Transmitted { sent: 0, refused: sent });
            }
            Outlet::Link(link) => {
                *tx_bytes += Packet::bytes_of(batch.packets());
                link.send(batch, wire, pool);
            }
            Outlet::Host(host) => {
                // What it has no room for stays in the batch, and is refused.
                let before = batch.len();
                batch.recycle_if(pool, |packet| {
                    let is_taken = host.take(packet.data());
                    *tx_bytes += if is_taken { packet.len() as u64 } else { 0 };
                    is_taken
                });
                let refused = batch.len();
                *tx_packets += (before - refused) as u64;
                *tx_refused += refused as u64;
                return Ok(Transmitted { sent: before - refused, refused });
            }
            Outlet::Exits(exits) => {
                *tx_bytes += Packet::bytes_of(batch.packets());
                let Some(((last, tags), others)) = exits.split_last() else {
                    return Ok(Transmitted::default());
                };
                for (exit, tags) in others {
                    copy(batch, copies, wire, pool);
                    exit.send(copies, *tags, pool);
                    copies.rest();
                }
                last.send(batch, *tags, pool);
            }
        }
        *tx_packets += sent as u64;
        Ok(Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn is_link_down(&self) -> bool {
        !self.wire.is_up.load(Ordering::Acquire)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        let [rx_packets, rx_bytes, tx_packets, tx_bytes] = self.counted;
        let tx_refused = self.refused;
        PortStatistics { rx_packets, rx_bytes, tx_packets, tx_bytes, tx_refused, ..PortStatistics::default() }
    }
}

/// Copies the packets of a batch, as many as there are free packets for.
fn copy(batch: &Batch, copies: &mut Batch, wire: &Wire, pool: &mut PacketPool) {
    let mut lost = 0;
    for packet in batch.packets() {
        match copies.add(pool).map(|copy| copy.copy_from(packet)) {
            Some(Ok(())) => {}
            Some(Err(_)) => {
                copies.give_last_back(pool);
                lost += 1;
            }
            None => lost += 1,
        }
    }
    wire.counts.lose(Loss::NoPacket, lost);
}
