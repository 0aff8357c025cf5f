//! Packets: one buffer each, with room in front, recycled through a pool and moved in batches.

use crate::burst::{Burst, Place};
use crate::port::PortError;
use crate::slots::{ROOM, START, Slot, Slots};
use std::fmt;

/// Free bytes in front of a received frame, so that headers can be added without moving the frame.
pub const HEADROOM: usize = 256;

/// Longest frame in bytes, without its frame check sequence. Jumbo frames (9216 bytes) fit.
pub const MAX_FRAME: usize = 16 * 1024;

/// Most packets in a batch.
pub const MAX_BATCH: usize = 64;

/// A frame in a buffer of fixed size, and where and when it came in.
pub struct Packet {
    slot: Slot,
    /// Where the frame is in the slot.
    start: u32,
    end: u32,
    /// The switch port it was received on. Drivers leave it alone.
    pub ingress_port: u16,
    /// When it was received, in nanoseconds of the port's time ([`crate::TimeSource`]). A pcap port writes this time
    /// when it transmits, so whoever sends a packet later than it came sets it to the time of departure.
    pub timestamp_ns: u64,
}

/// A frame would be longer than [`MAX_FRAME`], or shorter than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLengthError {
    /// The length in bytes before the refused change.
    pub length: usize,
    /// The number of bytes that were to be added, or removed when negative.
    pub change: isize,
}

impl fmt::Display for FrameLengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameLengthError { length, change } = self;
        if *change < 0 {
            write!(f, "cannot remove {} bytes from a frame of {length}", change.unsigned_abs())
        } else {
            write!(f, "a frame of {length} bytes cannot grow by {change}, the limit is {MAX_FRAME}")
        }
    }
}

impl std::error::Error for FrameLengthError {}

impl Packet {
    /// An empty packet with its own buffer. On the way of packets take them from a [`PacketPool`] instead.
    pub fn new() -> Packet {
        Packet::within(Slot::alone())
    }

    fn within(slot: Slot) -> Packet {
        Packet { slot, start: START as u32, end: START as u32, ingress_port: 0, timestamp_ns: 0 }
    }

    /// A packet with this frame and its own buffer.
    ///
    /// # Errors
    /// [`FrameLengthError`] above [`MAX_FRAME`].
    pub fn from_frame(frame: &[u8]) -> Result<Packet, FrameLengthError> {
        let mut packet = Packet::new();
        packet.append(frame)?;
        Ok(packet)
    }

    /// The frame.
    #[inline]
    pub fn data(&self) -> &[u8] {
        &self.slot.bytes()[self.start as usize..self.end as usize]
    }

    /// The frame, to be changed in place.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.slot.bytes_mut()[self.start as usize..self.end as usize]
    }

    /// The length of the frame in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Empties the packet and gives it its headroom, port 0 and time 0 again.
    #[inline]
    pub fn reset(&mut self) {
        self.put_at(START, 0);
        self.ingress_port = 0;
        self.timestamp_ns = 0;
    }

    /// Replaces the frame. Port and time stay.
    ///
    /// # Errors
    /// [`FrameLengthError`] above [`MAX_FRAME`]; the packet is then as it was.
    #[inline]
    pub fn set_frame(&mut self, frame: &[u8]) -> Result<(), FrameLengthError> {
        if frame.len() > MAX_FRAME {
            return Err(FrameLengthError { length: 0, change: frame.len() as isize });
        }
        self.put_at(START, frame.len());
        self.data_mut().copy_from_slice(frame);
        Ok(())
    }

    /// Replaces the frame by what `write` writes: it is given room for [`MAX_FRAME`] bytes and says how many it used.
    /// Returns false, and leaves an empty frame, when that is more than there was room for.
    pub(crate) fn fill<E>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<bool, E> {
        self.put_at(START, 0);
        let room = &mut self.slot.bytes_mut()[START..];
        let used = write(room)?;
        if used > room.len() {
            return Ok(false);
        }
        self.put_at(START, used);
        Ok(true)
    }

    /// Whether a place of the pool's memory ([`PacketPool::burst`]) begins where this packet's frames lie.
    #[inline]
    pub fn has_place(&self, place: Place) -> bool {
        self.start_of(place) < ROOM
    }

    /// Takes as its frame what lies at a place of the pool's memory; false, and nothing changed, when that is not this
    /// packet's or longer than [`MAX_FRAME`].
    #[inline]
    pub fn take_place(&mut self, place: Place) -> bool {
        let (start, len) = (self.start_of(place), place.len as usize);
        let fits = start < ROOM && len <= MAX_FRAME.min(ROOM - start);
        if fits {
            self.put_at(start, len);
        }
        fits
    }

    /// Where a place is in the slot; beyond it when it is in another one.
    #[inline]
    fn start_of(&self, place: Place) -> usize {
        (place.at as usize).wrapping_sub(self.slot.offset())
    }

    /// Makes this a copy of another packet: its frame, port and time.
    pub fn copy_from(&mut self, other: &Packet) {
        self.start = other.start;
        self.end = other.end;
        self.data_mut().copy_from_slice(other.data());
        self.ingress_port = other.ingress_port;
        self.timestamp_ns = other.timestamp_ns;
    }

    /// Adds `count` zero bytes in front and gives them, to be written. The frame is moved only when the headroom is
    /// used up.
    ///
    /// # Errors
    /// [`FrameLengthError`] above [`MAX_FRAME`]; the packet is then as it was.
    pub fn push(&mut self, count: usize) -> Result<&mut [u8], FrameLengthError> {
        self.check_growth(count)?;
        if count > self.start as usize {
            self.move_to(START + count);
        }
        self.start -= count as u32;
        let fresh = &mut self.data_mut()[..count];
        fresh.fill(0);
        Ok(fresh)
    }

    /// Removes `count` bytes in front.
    ///
    /// # Errors
    /// [`FrameLengthError`] when there are fewer; the packet is then as it was.
    pub fn pull(&mut self, count: usize) -> Result<(), FrameLengthError> {
        self.check_shrinkage(count)?;
        self.start += count as u32;
        Ok(())
    }

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// [`FrameLengthError`] above [`MAX_FRAME`]; the packet is then as it was.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FrameLengthError> {
        self.extend(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Adds `count` zero bytes at the end and gives them, to be written.
    ///
    /// # Errors
    /// [`FrameLengthError`] above [`MAX_FRAME`]; the packet is then as it was.
    pub fn extend(&mut self, count: usize) -> Result<&mut [u8], FrameLengthError> {
        self.check_growth(count)?;
        if self.end as usize + count > ROOM {
            self.move_to(START);
        }
        let before = self.len();
        self.end += count as u32;
        let fresh = &mut self.data_mut()[before..];
        fresh.fill(0);
        Ok(fresh)
    }

    /// Cuts the frame to at most `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.put_at(self.start as usize, length.min(self.len()));
    }

    /// Removes `count` bytes at the end.
    ///
    /// # Errors
    /// [`FrameLengthError`] when there are fewer; the packet is then as it was.
    pub fn trim(&mut self, count: usize) -> Result<(), FrameLengthError> {
        self.check_shrinkage(count)?;
        self.end -= count as u32;
        Ok(())
    }

    /// Moves the frame within the slot to start at `start`, at most up to where its end meets the slot's.
    fn move_to(&mut self, start: usize) {
        let length = self.len();
        let start = start.min(ROOM - length);
        let from = self.start as usize;
        self.slot.bytes_mut().copy_within(from..from + length, start);
        self.put_at(start, length);
    }

    /// Says where the frame is in the slot.
    #[inline]
    fn put_at(&mut self, start: usize, length: usize) {
        debug_assert!(start + length <= ROOM);
        // A slot is far smaller than 4 GiB.
        self.start = start as u32;
        self.end = (start + length) as u32;
    }

    fn check_growth(&self, count: usize) -> Result<(), FrameLengthError> {
        if count > MAX_FRAME - self.len() {
            return Err(FrameLengthError { length: self.len(), change: change(count) });
        }
        Ok(())
    }

    fn check_shrinkage(&self, count: usize) -> Result<(), FrameLengthError> {
        if count > self.len() {
            return Err(FrameLengthError { length: self.len(), change: -change(count) });
        }
        Ok(())
    }
}

fn change(count: usize) -> isize {
    isize::try_from(count).unwrap_or(isize::MAX)
}

impl Default for Packet {
    fn default() -> Packet {
        Packet::new()
    }
}

impl Clone for Packet {
    fn clone(&self) -> Packet {
        let mut copy = Packet::new();
        copy.copy_from(self);
        copy
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("length", &self.len())
            .field("ingress_port", &self.ingress_port)
            .field("timestamp_ns", &self.timestamp_ns)
            .finish_non_exhaustive()
    }
}

/// Packets that wait to be used again, and the one memory in which all of them lie. What has never been used takes no
/// memory; in steady state nothing is allocated.
///
/// A packet that is dropped instead of given back is lost to the pool.
#[derive(Debug)]
pub struct PacketPool {
    slots: Slots,
}

impl PacketPool {
    /// A pool that has at most `limit` packets, in use and waiting together (each about 16 KiB).
    pub fn new(limit: usize) -> PacketPool {
        PacketPool { slots: Slots::new(limit) }
    }

    /// As [`PacketPool::new`], for a program that can go on without it.
    ///
    /// # Errors
    /// The system has not so much memory.
    pub fn try_new(limit: usize) -> Result<PacketPool, PortError> {
        Ok(PacketPool { slots: Slots::try_new(limit)? })
    }

    /// An empty packet, or `None` when all are in use.
    #[inline]
    pub fn take(&mut self) -> Option<Packet> {
        self.slots.take().map(Packet::within)
    }

    /// Takes a packet back. One that is not from this pool is freed.
    #[inline]
    pub fn put(&mut self, packet: Packet) {
        self.slots.put(packet.slot);
    }

    /// Packets that can be taken now.
    pub fn available(&self) -> usize {
        self.slots.available()
    }

    /// Most packets, in use and waiting together.
    pub fn limit(&self) -> usize {
        self.slots.limit()
    }

    /// The frames of a batch where they lie, in the memory of all packets, with at least [`HEADROOM`] bytes in front and
    /// [`crate::TAILROOM`] behind that are nobody else's. None when that cannot be: when a packet of the pool is neither in it nor in
    /// the batch, one of the batch is not of the pool, or a frame has less room. `places` is room for its places.
    ///
    /// [`Packet::take_place`] has a packet follow its frame when that was moved or cut.
    #[inline]
    pub fn burst<'a>(&'a mut self, batch: &'a mut Batch, places: &'a mut Vec<Place>) -> Option<Burst<'a>> {
        places.clear();
        for packet in &batch.packets {
            if (packet.start as usize) < HEADROOM {
                return None;
            }
            let at = packet.slot.offset() + packet.start as usize;
            // A memory has at most 4 GiB.
            places.push(Place { at: at as u32, len: packet.end - packet.start });
        }
        let memory = self.slots.whole(batch.packets.iter_mut().map(|packet| &mut packet.slot))?;
        Some(Burst { memory, places })
    }
}

/// Up to [`MAX_BATCH`] packets in order.
#[derive(Debug)]
pub struct Batch {
    packets: Vec<Packet>,
    limit: usize,
}

impl Batch {
    /// An empty batch of at most [`MAX_BATCH`] packets.
    pub fn new() -> Batch {
        Batch::with_limit(MAX_BATCH)
    }

    /// An empty batch of at most `limit` packets, and never more than [`MAX_BATCH`].
    pub fn with_limit(limit: usize) -> Batch {
        let limit = limit.min(MAX_BATCH);
        Batch { packets: Vec::with_capacity(limit), limit }
    }

    /// The number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Whether no more fit.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.packets.len() >= self.limit
    }

    /// How many more fit.
    pub fn room(&self) -> usize {
        self.limit - self.packets.len()
    }

    /// Adds a packet at the end.
    ///
    /// # Errors
    /// Gives the packet back when the batch is full.
    #[inline]
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.is_full() {
            return Err(packet);
        }
        self.packets.push(packet);
        Ok(())
    }

    /// The packets in order.
    #[inline]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// Takes all packets out, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> {
        self.packets.drain(..)
    }

    /// Gives the first `count` packets back to the pool.
    #[inline]
    pub fn recycle_first(&mut self, count: usize, pool: &mut PacketPool) {
        let count = count.min(self.packets.len());
        self.packets.drain(..count).for_each(|packet| pool.put(packet));
    }

    /// Gives the packets for which `done` says so back to the pool; the others stay, in order.
    pub(crate) fn recycle_if(&mut self, pool: &mut PacketPool, mut done: impl FnMut(&Packet) -> bool) {
        let mut kept = 0;
        for at in 0..self.packets.len() {
            if !done(&self.packets[at]) {
                self.packets.swap(at, kept);
                kept += 1;
            }
        }
        self.packets.drain(kept..).for_each(|packet| pool.put(packet));
    }

    /// Gives all packets back to the pool.
    #[inline]
    pub fn recycle(&mut self, pool: &mut PacketPool) {
        self.recycle_first(self.packets.len(), pool);
    }
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pushed_and_pulled_in_place() {
        let mut packet = Packet::from_frame(&[1, 2, 3]).unwrap();
        packet.push(2).unwrap().copy_from_slice(&[8, 9]);
        assert_eq!(packet.data(), [8, 9, 1, 2, 3]);
        packet.pull(3).unwrap();
        packet.append(&[4]).unwrap();
        assert_eq!(packet.data(), [2, 3, 4]);
        packet.trim(1).unwrap();
        packet.data_mut()[0] = 7;
        assert_eq!(packet.data(), [7, 3]);
        packet.truncate(1);
        packet.truncate(5);
        assert_eq!(packet.data(), [7]);
    }

    #[test]
    fn fresh_bytes_are_zero_whatever_the_buffer_held() {
        let mut packet = Packet::from_frame(&[0xff; 100]).unwrap();
        packet.pull(50).unwrap();
        packet.trim(10).unwrap();
        assert_eq!(packet.push(50).unwrap(), [0; 50]);
        assert_eq!(packet.extend(10).unwrap(), [0; 10]);
    }

    #[test]
    fn more_than_the_headroom_moves_the_frame() {
        let mut packet = Packet::from_frame(&[5; 10]).unwrap();
        packet.push(START + 1).unwrap();
        assert_eq!(packet.len(), START + 11);
        assert_eq!(packet.data()[START + 1..], [5; 10]);
        assert_eq!(packet.push(MAX_FRAME - packet.len()).unwrap().len(), MAX_FRAME - START - 11);
        assert_eq!(packet.data()[MAX_FRAME - 10..], [5; 10]);
        packet.pull(MAX_FRAME - 10).unwrap();
        packet.append(&vec![6; MAX_FRAME - 10]).unwrap();
        assert_eq!(packet.data()[..11], [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6]);
        assert_eq!(packet.len(), MAX_FRAME);
    }

    #[test]
    fn frames_neither_outgrow_the_limit_nor_shrink_below_nothing() {
        let mut packet = Packet::from_frame(&vec![1; MAX_FRAME]).unwrap();
        assert_eq!(packet.push(1).unwrap_err(), FrameLengthError { length: MAX_FRAME, change: 1 });
        assert!(packet.append(&[1]).is_err());
        assert!(packet.set_frame(&vec![0; MAX_FRAME + 1]).is_err());
        assert!(packet.push(usize::MAX).is_err());
        assert_eq!(packet.len(), MAX_FRAME);
        packet.truncate(2);
        let error = packet.pull(3).unwrap_err();
        assert_eq!(error.to_string(), "cannot remove 3 bytes from a frame of 2");
        assert!(packet.trim(3).is_err());
        assert_eq!(packet.data(), [1, 1]);
        assert!(Packet::from_frame(&vec![0; MAX_FRAME + 1]).is_err());
    }

    #[test]
    fn a_copy_has_everything() {
        let mut packet = Packet::from_frame(&[1, 2]).unwrap();
        packet.push(1).unwrap()[0] = 9;
        packet.ingress_port = 3;
        packet.timestamp_ns = 77;
        let copy = packet.clone();
        assert_eq!((copy.data(), copy.ingress_port, copy.timestamp_ns), (&[9, 1, 2][..], 3, 77));
    }

    #[test]
    fn the_pool_recycles_and_keeps_its_limit() {
        let mut pool = PacketPool::new(2);
        let mut first = pool.take().unwrap();
        let second = pool.take().unwrap();
        assert!(pool.take().is_none());
        first.append(&[1]).unwrap();
        first.ingress_port = 4;
        let buffer = first.data().as_ptr();
        pool.put(first);
        let mut again = pool.take().unwrap();
        assert_eq!((again.len(), again.ingress_port, again.timestamp_ns), (0, 0, 0));
        again.append(&[2]).unwrap();
        assert_eq!(again.data().as_ptr(), buffer, "the buffer is the same one");
        pool.put(again);
        pool.put(second);
        pool.put(Packet::new());
        assert_eq!(pool.available(), 2);
    }

    /// A pool with packets of these frames in a batch.
    fn pool_and_batch(frames: &[&[u8]]) -> (PacketPool, Batch) {
        let (mut pool, mut batch) = (PacketPool::new(4), Batch::new());
        for frame in frames {
            let mut packet = pool.take().unwrap();
            packet.set_frame(frame).unwrap();
            batch.push(packet).unwrap();
        }
        (pool, batch)
    }

    #[test]
    fn a_burst_has_the_frames_where_they_lie() {
        let (mut pool, mut batch) = pool_and_batch(&[b"first", b"second"]);
        let mut places = Vec::new();
        let burst = pool.burst(&mut batch, &mut places).unwrap();
        let [first, second] = *burst.places else { panic!("{:?}", burst.places) };
        assert_eq!(&burst.memory[second.at as usize..][..6], b"second");
        // The longest header in front of one, the bytes behind the last.
        burst.memory[first.at as usize - HEADROOM] = b'<';
        burst.memory[second.at as usize + 6..][..crate::TAILROOM].fill(b'>');
        let (moved, cut) = (Place { at: first.at - 2, len: 4 }, Place { at: second.at, len: 3 });
        burst.memory[moved.at as usize..][..2].copy_from_slice(b"my");
        assert!(!batch.packets[0].take_place(cut) && !batch.packets[1].take_place(moved));
        assert!(batch.packets[0].take_place(moved) && batch.packets[1].take_place(cut));
        assert_eq!((batch.packets[0].data(), batch.packets[1].data()), (&b"myfi"[..], &b"sec"[..]));
    }

    #[test]
    fn no_burst_while_a_packet_is_elsewhere_or_without_headroom() {
        let (mut pool, mut batch) = pool_and_batch(&[b"first", b"second"]);
        let mut places = Vec::new();
        let packet = pool.take().unwrap();
        assert!(pool.burst(&mut batch, &mut places).is_none());
        pool.put(packet);
        assert!(pool.burst(&mut batch, &mut places).is_some());
        batch.push(Packet::from_frame(b"of another memory").unwrap()).unwrap();
        assert!(pool.burst(&mut batch, &mut places).is_none());
        batch.packets.pop();
        batch.packets[0].push(START - HEADROOM).unwrap();
        assert!(pool.burst(&mut batch, &mut places).is_some());
        batch.packets[0].push(1).unwrap();
        assert!(pool.burst(&mut batch, &mut places).is_none());
    }

    #[test]
    fn a_batch_keeps_order_and_limit() {
        let mut pool = PacketPool::new(100);
        let mut batch = Batch::with_limit(1000);
        for number in 0..MAX_BATCH {
            let mut packet = pool.take().unwrap();
            packet.ingress_port = number as u16;
            batch.push(packet).unwrap();
        }
        assert!(batch.is_full());
        assert!(batch.push(pool.take().unwrap()).is_err());
        batch.recycle_first(60, &mut pool);
        let left: Vec<u16> = batch.packets().iter().map(|packet| packet.ingress_port).collect();
        assert_eq!(left, [60, 61, 62, 63]);
        batch.recycle(&mut pool);
        assert_eq!((batch.len(), batch.room()), (0, 64));
    }
}
