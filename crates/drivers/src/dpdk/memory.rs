//! The memory of frames: for each queue pair one piece, which is a pool of mbufs for DPDK and a region of slots for the switch.
//!
//! ```text
//!  | header of the pool | mbuf | 128 private | headroom, 128 | frame ... | tailroom, 16 |     `stride` bytes to the next
//!                              |<-------------------- the slot ----------------------->|
//!                              |<- headroom of the slot, 256 ->|
//! ```
//!
//! An mbuf and the slot after it go together, by arithmetic alone. An mbuf has one owner at each moment, and its slot the same:
//!
//! | where the mbuf is | its slot | owner |
//! | --- | --- | --- |
//! | in the pool of DPDK, or in what that keeps apart for a thread | lent | DPDK |
//! | in a receive or transmit queue of any device | lent | the device |
//! | taken out of these by the driver, which has the number of its users as 1 | in a packet: a batch, a worker, a queue | the packet |
//! | as before, after the packet was dropped | on the list of returned slots | the queue pair, which gives it to the pool of DPDK |
//!
//! All slots are lent when a piece is made ([`Lender::lend`]). One is taken back ([`Lender::take_back`]) where `rte_eth_rx_burst` has
//! handed its mbuf over with one user and the frame in its own room: then no device and no pool has it. A packet is lent again
//! where it is given to `rte_eth_tx_burst`, whose device frees the mbuf to its pool when the frame has left, which is all of a
//! completion; an mbuf that the device did not take is taken back at once. So a slot is in a packet or lent, never both, and DPDK
//! writes into lent ones alone. Mbufs of other pools, with several users or in several parts, are never made packets: their frames
//! are copied.
//!
//! A piece stays while a slot of it is lent or in a packet, with its pool: an mbuf that is in the transmit queue of another port
//! finds the pool there. After its queue pair is closed the mbufs that come back to the pool are taken out ([`reap`]), until the
//! last one frees the piece. One that a device never gives back keeps it.

#![allow(unsafe_code)]

use super::DRIVER;
use super::shim::{self, Mbuf, Pool};
use crate::port::PortError;
use millrace_frames::{HEADROOM, Lender, MAX_FRAME, Packet, PacketPool, Place, Region, SlotLayout, TAILROOM};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Mbufs of a queue pair: 1024 for each of its two queues, as many as the switch may have in its own, and those that threads keep.
pub(super) const MBUFS: u32 = 8192;

/// Mbufs that a pool keeps apart for a thread.
const CACHE: u32 = 256;

/// Mbufs that are moved at once.
const MOVED: usize = 64;

/// Bytes of a slot before the room of the mbuf: `PRIVATE` of `shim.c`.
const PRIVATE: usize = 128;

/// The headroom that DPDK gives a frame: `RTE_PKTMBUF_HEADROOM`.
const MBUF_HEADROOM: usize = HEADROOM - PRIVATE;

/// Network cards divide the room of a frame by this.
const ROOM_STEP: usize = 1024;

/// The least room, which holds a frame of Ethernet's own MTU.
const MIN_ROOM: usize = 2 * ROOM_STEP;

/// The pieces of open queue pairs, and those of closed ones that are not free yet.
static PIECES: Mutex<Vec<Weak<Piece>>> = Mutex::new(Vec::new());
static CLOSED: Mutex<Vec<(Arc<Piece>, PacketPool)>> = Mutex::new(Vec::new());

/// Changes with each piece that is made or closed.
static GENERATION: AtomicUsize = AtomicUsize::new(1);

/// Names of pools are told apart by this.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A pool of mbufs whose memory is a region.
#[derive(Debug)]
pub(super) struct Piece {
    start: NonNull<u8>,
    length: usize,
    /// From an mbuf to its slot.
    distance: usize,
    pool: *mut Pool,
    lender: Lender,
}

// SAFETY: the pool of DPDK is made for any number of threads, and the memory is reached through slots that are taken back and mbufs
// whose slots are lent.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

/// What frees the pool and its memory, after the last slot.
struct Owner(#[allow(dead_code, reason = "kept for its drop")] shim::Memory);

// SAFETY: it does nothing but free, which DPDK does under a lock.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

/// Bytes for a frame of so many, as network cards like them.
fn room_for(frame: usize) -> usize {
    frame.max(MIN_ROOM).next_multiple_of(ROOM_STEP)
}

/// The pieces that there are, for one who meets their packets and mbufs.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    generation: usize,
    pieces: Vec<Arc<Piece>>,
}

impl Pieces {
    /// Looks which there are now, if that has changed.
    #[inline]
    pub(super) fn refresh(&mut self) {
        let generation = GENERATION.load(Ordering::Acquire);
        if generation != self.generation {
            self.generation = generation;
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        let mut all = PIECES.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|piece| piece.strong_count() > 0);
        let old = std::mem::replace(&mut self.pieces, all.iter().filter_map(Weak::upgrade).collect());
        drop(all);
        drop(old);
    }

    /// The piece in which a byte lies.
    #[inline]
    pub(super) fn of(&self, address: *const u8) -> Option<&Piece> {
        self.pieces.iter().map(|piece| &**piece).find(|piece| piece.has(address))
    }
}

impl Piece {
    /// A piece for frames of so many bytes near this processor socket, with the pool of its slots. All are lent.
    pub(super) fn new(frame: usize, socket: i16) -> Result<(Arc<Piece>, PacketPool), PortError> {
        reap();
        let room = MBUF_HEADROOM + room_for(frame.min(MAX_FRAME));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("millrace_{number}")).unwrap_or_default();
        let memory = shim::Memory::new(&name, MBUFS, CACHE, room as u16, TAILROOM as u32, socket);
        let memory = memory.map_err(|error| {
            let megabytes = (MBUFS as usize * room) >> 20;
            let reason = format!(
                "no memory for {MBUFS} frames, {megabytes} MB, of DPDK: {error} (-m in {} says how much it has)",
                super::eal::ARGUMENTS
            );
            PortError::Arguments { driver: DRIVER, reason }
        })?;
        let refused =
            |reason: &dyn ToString| PortError::Arguments { driver: DRIVER, reason: reason.to_string() };
        let start = memory.start().ok_or_else(|| refused(&"DPDK gives no memory"))?;
        let (stride, pool) = (memory.stride as usize, memory.pool);
        let layout = SlotLayout { size: PRIVATE + room + TAILROOM, headroom: HEADROOM as u16 };
        // SAFETY: the zone has so many mbufs, each followed by so many bytes that DPDK, as the pool is divided, leaves to the
        // user of the mbuf, and at this distance from one to the next, which was checked. The system gives memory zeroed. The
        // owner keeps the zone. A device writes into lent slots alone.
        let region = unsafe { Region::apart(start, MBUFS as usize, layout, stride, Box::new(Owner(memory))) }
            .map_err(|error| refused(&error))?;
        let piece = Piece {
            start,
            length: stride * MBUFS as usize,
            // SAFETY: gives a constant.
            distance: unsafe { shim::millrace_slot_distance() } as usize,
            pool,
            lender: region.lender(),
        };
        let mut slots = PacketPool::over(region);
        while let Some(packet) = slots.take() {
            // Their mbufs are in the pool of DPDK from the beginning.
            if piece.lender.lend(packet).is_err() {
                break;
            }
        }
        let piece = Arc::new(piece);
        PIECES.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&piece));
        GENERATION.fetch_add(1, Ordering::Release);
        Ok((piece, slots))
    }

    #[inline]
    pub(super) fn has(&self, address: *const u8) -> bool {
        (address as usize).wrapping_sub(self.start.as_ptr() as usize) < self.length
    }

    pub(super) fn pool(&self) -> *mut Pool {
        self.pool
    }

    /// The mbuf of the slot that begins at a place.
    #[inline]
    fn mbuf_of(&self, slot: u32) -> *mut Mbuf {
        self.start.as_ptr().wrapping_add(slot as usize).wrapping_sub(self.distance).cast()
    }

    /// The packet of an mbuf, which is of this piece, with the frame at an address.
    ///
    /// # Safety
    /// DPDK has handed the mbuf over, and nobody else has it: its slot is lent.
    #[inline]
    pub(super) unsafe fn packet(&self, mbuf: *mut Mbuf, data: *const u8, length: u32) -> Option<Packet> {
        // SAFETY: as the caller promises.
        let mut packet = unsafe { self.empty(mbuf) }?;
        // What a device says that cannot be leaves an empty frame.
        packet.take_place(self.place(data, length));
        Some(packet)
    }

    /// The packet of an mbuf, which is of this piece, without a frame.
    ///
    /// # Safety
    /// As for [`Piece::packet`].
    #[inline]
    pub(super) unsafe fn empty(&self, mbuf: *mut Mbuf) -> Option<Packet> {
        let slot = self.at_of((mbuf as usize).wrapping_add(self.distance));
        // SAFETY: as the caller promises; an mbuf of the piece has its slot there.
        unsafe { self.lender.take_back(slot) }
    }

    /// Where so many bytes at an address lie.
    #[inline]
    pub(super) fn place(&self, data: *const u8, length: u32) -> Place {
        Place { at: self.at_of(data as usize), len: length }
    }

    #[inline]
    fn at_of(&self, address: usize) -> u32 {
        address.wrapping_sub(self.start.as_ptr() as usize) as u32
    }

    /// Whether [`Piece::lend`] takes a packet.
    #[inline]
    pub(super) fn lends(&self, packet: &Packet) -> bool {
        let data = packet.data().as_ptr();
        self.has(data) && self.lender.within_slot(self.at_of(data as usize)) >= PRIVATE as u32
    }

    /// Lends a packet: gives its mbuf, or the packet back, when it is of another piece or its frame begins where an mbuf cannot say
    /// so.
    #[inline]
    pub(super) fn lend(&self, packet: Packet) -> Result<*mut Mbuf, Packet> {
        let at = (packet.data().as_ptr() as usize).wrapping_sub(self.start.as_ptr() as usize);
        // A region has fewer than 4 GiB.
        let before = self.lender.within_slot(at as u32);
        if before < PRIVATE as u32 {
            return Err(packet);
        }
        let place = self.lender.lend(packet)?;
        Ok(self.mbuf_of(place.at - before))
    }

    /// Gives mbufs whose packets were dropped to the pool of DPDK.
    #[inline]
    pub(super) fn refill(&self, slots: &mut PacketPool) {
        while slots.available() > 0 {
            let mut mbufs = [std::ptr::null_mut(); MOVED];
            let mut count = 0;
            while count < MOVED
                && let Some(packet) = slots.take()
            {
                match self.lender.lend(packet) {
                    Ok(place) => {
                        mbufs[count] = self.mbuf_of(place.at - self.lender.within_slot(place.at));
                        count += 1;
                    }
                    Err(_) => return,
                }
            }
            if count == 0 {
                return;
            }
            // SAFETY: so many mbufs of this pool, which were taken out of it and are as it wants them: with one user and one part.
            // Their slots are lent.
            unsafe { shim::millrace_memory_put(self.pool, mbufs.as_ptr(), count as u32) };
        }
    }

    /// Takes out of the pool of DPDK what is there; whether all slots are back then.
    fn drain(&self, slots: &mut PacketPool) -> bool {
        // SAFETY: the pool is there. This thread's own are put to the others.
        unsafe { shim::millrace_memory_flush(self.pool) };
        let mut mbuf: *mut Mbuf = std::ptr::null_mut();
        // SAFETY: the pool is there, and there is room for one.
        while unsafe { shim::millrace_memory_take(self.pool, &raw mut mbuf, 1) } == 0 {
            // SAFETY: the pool has given the mbuf, so that nobody else has it, and its slot is lent.
            match unsafe { self.packet(mbuf, mbuf.cast(), 0) } {
                Some(packet) => slots.put(packet),
                None => break,
            }
        }
        slots.available() == slots.limit()
    }

    /// Mbufs in the pool of DPDK.
    #[cfg(test)]
    pub(super) fn available(&self) -> usize {
        // SAFETY: the pool is there.
        unsafe { shim::millrace_memory_available(self.pool) as usize }
    }
}

/// Hands over the pieces of a device that is closed.
pub(super) fn close(pieces: Vec<(Arc<Piece>, PacketPool)>) {
    let is_closed =
        |open: &Weak<Piece>| pieces.iter().any(|(piece, _)| std::ptr::eq(open.as_ptr(), &**piece));
    PIECES.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| !is_closed(open));
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner).extend(pieces);
    // Others forget them: their frames are copied from now on.
    GENERATION.fetch_add(1, Ordering::Release);
    reap();
}

/// Frees the closed pieces of which all mbufs are back.
pub(super) fn reap() {
    let mut closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut done = Vec::new();
    for at in (0..closed.len()).rev() {
        let (piece, slots) = &mut closed[at];
        if piece.drain(slots) {
            done.push(closed.swap_remove(at));
        }
    }
    drop(closed);
}

/// Gives back what pools keep apart for this thread.
pub(super) fn flush() {
    let open: Vec<Arc<Piece>> =
        PIECES.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    let closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    for piece in open.iter().chain(closed.iter().map(|(piece, _)| piece)) {
        // SAFETY: the pool is there while the piece is.
        unsafe { shim::millrace_memory_flush(piece.pool) };
    }
}
