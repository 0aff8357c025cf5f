//! Packets recycled through a pool, and moved in batches.

#![allow(unsafe_code)]

use crate::burst::{Burst, Place};
use crate::packet::Packet;
use crate::port::PortError;
use crate::slots::Slots;
use std::vec::Drain;

/// Most packets in a batch.
pub const MAX_BATCH: usize = 64;

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

    /// The frames of a batch where they lie, in the memory of all packets, with at least [`crate::HEADROOM`] bytes in front and
    /// [`crate::TAILROOM`] behind that are nobody else's. None when that cannot be: when a packet of the pool is neither in
    /// it nor in the batch, one of the batch is not of the pool, or a frame has less room. `places` is room for its places.
    ///
    /// [`Packet::take_place`] has a packet follow its frame when that was moved or cut.
    #[inline]
    pub fn burst<'a>(&'a mut self, batch: &'a mut Batch, places: &'a mut Vec<Place>) -> Option<Burst<'a>> {
        places.clear();
        for packet in &batch.packets {
            places.push(packet.place()?);
        }
        let memory = self.slots.whole(batch.packets.iter_mut().map(|packet| &mut packet.slot))?;
        Some(Burst { memory, places })
    }
}

/// Up to [`MAX_BATCH`] packets in order.
#[derive(Debug)]
pub struct Batch {
    /// With room for all from the beginning.
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

    /// Adds a packet at the end, and shows it there. What is still to be changed of it is best changed there: a packet that
    /// is moved right after a change waits until the processor has stored that.
    ///
    /// # Errors
    /// Gives the packet back when the batch is full.
    #[inline]
    pub fn push(&mut self, packet: Packet) -> Result<&mut Packet, Packet> {
        if self.is_full() {
            return Err(packet);
        }
        Ok(self.append(packet))
    }

    /// Adds an empty packet of a pool at the end, to be filled there; none when the batch is full or the pool empty.
    #[inline]
    pub fn add(&mut self, pool: &mut PacketPool) -> Option<&mut Packet> {
        if self.is_full() {
            return None;
        }
        let packet = pool.take()?;
        Some(self.append(packet))
    }

    /// Writes a packet behind the others, which are fewer than the limit. [`Vec::push`] would put it elsewhere first, as it may
    /// have to make room.
    #[inline]
    fn append(&mut self, packet: Packet) -> &mut Packet {
        let at = self.packets.len();
        debug_assert!(at < self.limit);
        // SAFETY: there are fewer packets than the limit, for which there was room from the beginning and is still: no packet
        // takes any of it away. The packet at that place is written before it counts as one.
        unsafe {
            let place = self.packets.as_mut_ptr().add(at);
            place.write(packet);
            self.packets.set_len(at + 1);
            &mut *place
        }
    }

    /// Gives the last packet back to the pool.
    #[inline]
    pub fn give_last_back(&mut self, pool: &mut PacketPool) {
        self.packets.pop().into_iter().for_each(|packet| pool.put(packet));
    }

    /// The packets in order.
    #[inline]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// Takes all packets out, in order.
    pub fn drain(&mut self) -> Drain<'_, Packet> {
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
    use crate::HEADROOM;
    use crate::slots::START;

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
