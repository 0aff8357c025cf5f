//! The worker's side of a capture.

use super::{CAPTURE_END_TIME, Counts};
use crate::around::Around;
use crate::pcap::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES, record_header};
use crate::port::{PortError, QueuePair, Received, TimeSource, Transmitted, wall_clock_ns};
use millrace_frames::{Batch, Packet, PacketPool};
use pcap_file::Endianness;
use rtrb::Producer;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So long a port that replays a capture waits for the disk before it looks again.
const WAIT: Duration = Duration::from_micros(200);

/// A port whose frames are copied while somebody wants them.
#[repr(align(128))]
pub(super) struct WatchedPort<P: ?Sized> {
    port: Box<P>,
    /// Whether the port replays a capture: then there is time to wait.
    is_replay: bool,
    /// Whether frames that come in have the time at which they are taken, not one of their own.
    is_inner: bool,
    shared: Arc<Shared>,
    /// [`Shared::changes`] that are known.
    seen: u32,
    lanes: Option<[Lane; 2]>,
}

/// Switches the copying of one port on and off, from any thread.
#[derive(Clone, Debug)]
pub(super) struct Tap(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Counts what was put into `next`.
    changes: AtomicU32,
    /// What the port is to go on with.
    next: Mutex<Option<[Lane; 2]>>,
}

impl Tap {
    /// The port copies to these lanes from its next burst on, or nowhere.
    pub(super) fn set(&self, lanes: Option<[Lane; 2]>) {
        let mut next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = lanes;
        self.0.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes that a file may still grow by, of all that is written to it.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<AtomicU64>);

impl Room {
    /// Of a file with so many bytes at most.
    pub(super) fn of(max_file: u64) -> Room {
        Room(Arc::new(AtomicU64::new(max_file.saturating_sub(FILE_HEADER_BYTES))))
    }

    /// Takes so many bytes, if there are as many.
    fn take(&self, bytes: u64) -> bool {
        let less = |room: u64| room.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// One direction of a capture, of one queue pair.
#[derive(Debug)]
pub(super) struct Lane {
    bytes: Producer<u8>,
    counts: Arc<Counts>,
    room: Room,
    /// Whether the disk took nothing for so long that it is not waited for any more.
    is_late: bool,
}

impl Lane {
    pub(super) fn new(bytes: Producer<u8>, counts: Arc<Counts>, room: &Room) -> Lane {
        Lane { bytes, counts, room: room.clone(), is_late: false }
    }

    /// Copies frames, each with its time. `may_wait`: until there is room; else those that find none are left out.
    pub(super) fn put<'p>(&mut self, packets: impl Iterator<Item = (&'p Packet, u64)>, may_wait: bool) {
        let (mut taken, mut lost) = (0, 0);
        for (packet, time_ns) in packets {
            let record = RECORD_HEADER_BYTES + packet.len();
            if may_wait && !self.is_late && self.bytes.slots() < record {
                self.wait(record);
            }
            let header = record_header(Endianness::Little, 1, time_ns, packet.len());
            let has_place = self.bytes.slots() >= record && !self.bytes.is_abandoned();
            // There is room for both parts.
            let is_taken = has_place
                && self.room.take(record as u64)
                && self.bytes.push_entire_slice(&header).is_ok()
                && self.bytes.push_entire_slice(packet.data()).is_ok();
            *(if is_taken { &mut taken } else { &mut lost }) += 1;
        }
        // Workers of other queue pairs count there too.
        for (count, more) in [(&self.counts.taken, taken), (&self.counts.lost, lost)] {
            if more > 0 {
                count.fetch_add(more, Ordering::Relaxed);
            }
        }
    }
}

impl Lane {
    /// Waits until the disk has taken enough.
    #[cold]
    fn wait(&mut self, record: usize) {
        let begun = Instant::now();
        while self.bytes.slots() < record && !self.bytes.is_abandoned() && !self.is_late {
            std::thread::sleep(WAIT);
            self.is_late = begun.elapsed() > CAPTURE_END_TIME;
        }
    }
}

impl<P: QueuePair + ?Sized> WatchedPort<P> {
    pub(super) fn new(port: Box<P>) -> (WatchedPort<P>, Tap) {
        let shared = Arc::<Shared>::default();
        let tap = Tap(Arc::clone(&shared));
        let is_replay = port.time_source() == TimeSource::Simulated;
        (WatchedPort { port, is_replay, is_inner: false, shared, seen: 0, lanes: None }, tap)
    }

    /// A port between switches: what comes in may have come to the machine long before.
    pub(super) fn between(port: Box<P>) -> (WatchedPort<P>, Tap) {
        let (mut port, tap) = WatchedPort::new(port);
        port.is_inner = true;
        (port, tap)
    }

    /// The lanes, when the capture is on.
    #[inline]
    fn lanes(&mut self) -> Option<&mut [Lane; 2]> {
        // Both at once: one branch while the capture is off.
        if (self.shared.changes.load(Ordering::Relaxed) != self.seen) | self.lanes.is_some() {
            self.lanes_now()
        } else {
            None
        }
    }

    #[cold]
    fn lanes_now(&mut self) -> Option<&mut [Lane; 2]> {
        if self.shared.changes.load(Ordering::Relaxed) != self.seen {
            self.change();
        }
        self.lanes.as_mut()
    }

    /// Goes on with what was set last. While somebody sets something else, that waits for the next burst.
    fn change(&mut self) {
        if let Ok(mut next) = self.shared.next.try_lock() {
            self.lanes = next.take();
            // Changes only with the lock.
            self.seen = self.shared.changes.load(Ordering::Relaxed);
        }
    }
}

impl<P: QueuePair + ?Sized> Around for WatchedPort<P> {
    type Inner = P;

    fn inner(&self) -> &Self::Inner {
        &self.port
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.port
    }

    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let before = batch.len();
        let received = self.port.receive(batch, pool);
        let (is_replay, is_inner) = (self.is_replay, self.is_inner);
        if let Some([incoming, _]) = self.lanes() {
            let now_ns = is_inner.then(wall_clock_ns);
            let packets = batch.packets()[before..].iter();
            let packets = packets.map(|packet| (packet, now_ns.unwrap_or(packet.timestamp_ns)));
            incoming.put(packets, is_replay);
        }
        received
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let is_replay = self.is_replay;
        if let Some([_, outgoing]) = self.lanes() {
            let now_ns = (!is_replay).then(wall_clock_ns);
            let packets = batch.packets().iter();
            let packets = packets.map(|packet| (packet, now_ns.unwrap_or(packet.timestamp_ns)));
            outgoing.put(packets, is_replay);
        }
        self.port.transmit(batch, pool)
    }
}
