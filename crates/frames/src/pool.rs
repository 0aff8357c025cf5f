//! Packets recycled through a pool, and moved in batches.

#![allow(unsafe_code)]

use crate::ahead::ask_for_line;
use crate::burst::{Burst, Place};
use crate::layout::SlotLayout;
use crate::packet::Packet;
use crate::region::{MAX_REGION, Region, RegionError, Slots};
use crate::stock;
use std::vec::Drain;

/// Most packets in a batch.
pub const MAX_BATCH: usize = 64;

/// Packets that wait to be used again, and the memory in which all of them lie. What has never been used takes no
/// memory; in steady state nothing is allocated.
///
/// A packet that is dropped, or given to another pool, comes back to this one.
#[derive(Debug)]
pub struct PacketPool {
    slots: Slots,
}

impl PacketPool {
    /// A pool that has at most `limit` packets, in use and waiting together (each about 16 KiB).
    pub fn new(limit: usize) -> PacketPool {
        PacketPool::try_new(limit).unwrap_or_else(|_| {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; SlotLayout::DEFAULT.size]>())
        })
    }

    /// As [`PacketPool::new`], for a program that can go on without it.
    ///
    /// # Errors
    /// The system has not so much memory.
    pub fn try_new(limit: usize) -> Result<PacketPool, RegionError> {
        let limit = limit.min(MAX_REGION / SlotLayout::DEFAULT.size);
        Ok(PacketPool::over(Region::new(limit, SlotLayout::DEFAULT)?))
    }

    /// A pool of the packets of a region.
    pub fn over(region: Region) -> PacketPool {
        PacketPool { slots: Slots::new(region) }
    }

    /// How its packets lie in memory.
    pub fn layout(&self) -> SlotLayout {
        self.slots.region().layout()
    }

    /// Whether no packet can be taken now.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.slots.is_exhausted()
    }

    /// An empty packet, or `None` when all are in use.
    #[inline]
    pub fn take(&mut self) -> Option<Packet> {
        self.slots.take().map(Packet::within)
    }

    /// Takes a packet back. One of another pool goes to that.
    #[inline]
    pub fn put(&mut self, packet: Packet) {
        self.slots.put(packet.slot);
    }

    /// Takes packets back. Those of another pool go to that, at little cost for each if many of one pool follow one another.
    #[inline]
    pub fn put_all(&mut self, packets: impl IntoIterator<Item = Packet>) {
        self.slots.put_all(packets.into_iter().map(|packet| packet.slot));
    }

    /// Packets that can be taken now.
    pub fn available(&self) -> usize {
        self.slots.available()
    }

    /// Packets that can be taken now, or fewer, but not fewer than wanted if there are so many. It costs no look at those that other threads have given
    /// back, if it need not.
    #[inline]
    pub fn available_of(&mut self, wanted: usize) -> usize {
        self.slots.available_of(wanted)
    }

    /// Most packets, in use and waiting together.
    pub fn limit(&self) -> usize {
        self.slots.limit()
    }
}

/// Up to [`MAX_BATCH`] packets in order. Its memory is its thread's until the first packet comes, and after [`Batch::rest`] again.
#[derive(Debug)]
pub struct Batch {
    /// Without memory, or with room for [`MAX_BATCH`].
    packets: Vec<Packet>,
    /// How many it takes now: none without memory, so that whoever adds a packet looks at one number.
    limit: u8,
    /// How many it takes with memory.
    wanted: u8,
    /// The most that this may be set to.
    most: u8,
    times_each: bool,
}

const _: () = assert!(MAX_BATCH <= u8::MAX as usize);

impl Batch {
    /// An empty batch of at most [`MAX_BATCH`] packets.
    pub fn new() -> Batch {
        Batch::with_limit(MAX_BATCH)
    }

    /// An empty batch of at most `limit` packets, and never more than [`MAX_BATCH`].
    pub fn with_limit(limit: usize) -> Batch {
        let limit = limit.min(MAX_BATCH) as u8;
        Batch { packets: Vec::new(), limit: 0, wanted: limit, most: limit, times_each: false }
    }

    /// Has no memory until it has packets again, if it has none now. Who hands packets on to thousands of batches in turn has the cache hold the
    /// memory of those that have some.
    #[inline]
    pub fn rest(&mut self) {
        if self.packets.is_empty() && self.has_memory() {
            stock::put(std::mem::take(&mut self.packets));
            self.limit = 0;
        }
    }

    /// Whether it has memory: it has packets, or will have some soon.
    #[inline]
    pub fn has_memory(&self) -> bool {
        self.packets.capacity() > 0
    }

    /// Has memory from now on, also without packets.
    #[inline]
    pub fn make_room(&mut self) {
        if !self.has_memory() {
            self.find_memory();
        }
    }

    /// Once a batch: it is no part of the code that adds one packet after the other.
    #[cold]
    #[inline(never)]
    fn find_memory(&mut self) {
        self.packets = stock::take();
        self.limit = self.wanted;
    }

    /// Whether a batch that takes no packet as it is takes one with memory, which it has then.
    #[cold]
    #[inline(never)]
    fn begin(&mut self) -> bool {
        self.make_room();
        !self.is_full()
    }

    /// Its memory has come or gone with that of another batch.
    #[inline]
    fn note_memory(&mut self) {
        self.limit = if self.has_memory() { self.wanted } else { 0 };
    }

    /// Whether somebody looks at when each packet came, which costs a look at the clock for each where the device says nothing.
    pub fn want_times(&mut self, each: bool) {
        self.times_each = each;
    }

    /// What [`Batch::want_times`] said last; at first nobody looks.
    #[inline]
    pub fn wants_times(&self) -> bool {
        self.times_each
    }

    /// Takes at most so many packets from now on, and never more than was said at the beginning. Those that are there stay.
    #[inline]
    pub fn set_limit(&mut self, limit: usize) {
        self.wanted = limit.min(self.most.into()) as u8;
        self.note_memory();
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
        self.packets.len() >= usize::from(self.limit) && (self.has_memory() || self.wanted == 0)
    }

    /// How many more fit.
    pub fn room(&self) -> usize {
        usize::from(self.wanted).saturating_sub(self.packets.len())
    }

    /// Adds a packet at the end, and shows it there. What is still to be changed of it is best changed there: a packet that
    /// is moved right after a change waits until the processor has stored that.
    ///
    /// # Errors
    /// Gives the packet back when the batch is full.
    #[inline]
    pub fn push(&mut self, packet: Packet) -> Result<&mut Packet, Packet> {
        if self.packets.len() >= usize::from(self.limit) && !self.begin() {
            return Err(packet);
        }
        Ok(self.append(packet))
    }

    /// Adds an empty packet of a pool at the end, to be filled there; none when the batch is full or the pool empty.
    #[inline]
    pub fn add(&mut self, pool: &mut PacketPool) -> Option<&mut Packet> {
        self.add_made(|| pool.take())
    }

    /// Adds a packet that is made when there is room for it, and shows it there: nothing has to move it. None when the batch is full or
    /// none is made.
    #[inline]
    pub fn add_made(&mut self, make: impl FnOnce() -> Option<Packet>) -> Option<&mut Packet> {
        if self.packets.len() >= usize::from(self.limit) && !self.begin() {
            return None;
        }
        let packet = make()?;
        Some(self.append(packet))
    }

    /// Writes a packet after the others, which are fewer than the limit. [`Vec::push`] would put it elsewhere first, as it
    /// may have to make room.
    #[inline]
    fn append(&mut self, packet: Packet) -> &mut Packet {
        let at = self.packets.len();
        debug_assert!(at < usize::from(self.limit) && self.packets.capacity() >= MAX_BATCH);
        // SAFETY: there are fewer packets than the limit, which is 0 without memory, and memory has room for as many as any limit says.
        // The packet at that place is written before it counts as one.
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

    /// The frames where they lie, with [`crate::HEADROOM`] bytes before and [`crate::TAILROOM`] after each that are nobody
    /// else's. Packets of the same memory may be elsewhere meanwhile, and in use. None when that cannot be: when there is no
    /// packet, when they are not all of one memory, or when a frame has less room. `places` is room for its places.
    ///
    /// [`Packet::take_place`] has a packet follow its frame when that was moved or cut.
    #[inline]
    pub fn burst<'a>(&'a mut self, places: &'a mut Vec<Place>) -> Option<Burst<'a>> {
        let slot = &self.packets.first()?.slot;
        places.clear();
        let mut bytes = 0;
        for packet in &self.packets {
            if !packet.slot.is_with(slot) {
                return None;
            }
            let place = packet.place()?;
            packet.ask_for_frame();
            bytes += u64::from(place.len);
            places.push(place);
        }
        // SAFETY: each place lies with its room in a slot of this memory whose only owner is a packet of this batch, and the
        // batch is borrowed exclusively.
        Some(unsafe { Burst::of_slots(slot.memory(), places, bytes) })
    }

    /// Has the processor bring the starts of the frames, which are read soon.
    #[inline]
    pub fn ask_for_frames(&self) {
        self.packets.iter().for_each(Packet::ask_for_frame);
    }

    /// Has the processor bring the place of the next packet, which is put there soon.
    #[inline]
    pub fn ask_for_end(&self) {
        ask_for_line(self.packets.as_ptr().wrapping_add(self.packets.len()));
    }

    /// Whether all packets are of one memory and have taken as many links, so that they can be switched together.
    #[inline]
    pub fn is_alike(&self) -> bool {
        Packet::are_alike(&self.packets)
    }

    /// Takes all packets out, in order.
    pub fn drain(&mut self) -> Drain<'_, Packet> {
        self.packets.drain(..)
    }

    /// Takes the first `count` packets out, in order.
    pub fn drain_first(&mut self, count: usize) -> Drain<'_, Packet> {
        self.packets.drain(..count.min(self.packets.len()))
    }

    /// Takes all packets of another batch at once, where they lie; false, and nothing is done, when this one has some or takes
    /// fewer. The packets are not moved: the batches exchange their memory.
    #[inline]
    pub fn take_all(&mut self, other: &mut Batch) -> bool {
        let can = self.packets.is_empty() && usize::from(self.wanted) >= other.packets.len();
        if can {
            std::mem::swap(&mut self.packets, &mut other.packets);
            self.note_memory();
            other.note_memory();
        }
        can
    }

    /// Moves all packets of another batch after those of this one, which has some; false, and nothing is done, without room for all.
    #[inline]
    pub fn join(&mut self, other: &mut Batch) -> bool {
        let can = !self.packets.is_empty() && self.room() >= other.packets.len();
        if can {
            self.packets.append(&mut other.packets);
        }
        can
    }

    /// Takes all packets of another batch in an order that is given by their numbers; false, and nothing is done, when this one has
    /// some or takes fewer, or when the numbers are not those of the packets, each once.
    #[inline]
    pub fn take_in_order(&mut self, other: &mut Batch, order: &[u8]) -> bool {
        let count = other.packets.len();
        // A batch has at most 64 packets: a bit for each number that has come.
        let mut came = 0u64;
        for number in order {
            came |= 1u64.checked_shl(u32::from(*number)).unwrap_or(0);
        }
        let all = u64::MAX.checked_shr((MAX_BATCH - count.min(MAX_BATCH)) as u32).unwrap_or(0);
        if order.len() != count || came != all {
            return false;
        }
        if order.is_sorted() && self.take_all(other) {
            return true;
        }
        if !self.packets.is_empty() || usize::from(self.wanted) < count {
            return false;
        }
        self.make_room();
        let (from, to) = (other.packets.as_ptr(), self.packets.as_mut_ptr());
        // SAFETY: the numbers are those of the packets, each once, so that each packet is moved once, and there is room for as many as
        // the limit says. Nothing here panics between the first and the last.
        unsafe {
            other.packets.set_len(0);
            for (at, number) in order.iter().enumerate() {
                to.add(at).write(from.add(usize::from(*number)).read());
            }
            self.packets.set_len(count);
        }
        true
    }

    /// Moves each packet to the batch of its goal's number. Those whose goal is no batch, or one that is full or without memory, stay in their
    /// order, and so do their goals. A packet is copied once, from where it lies to where it will lie: one in hand is put elsewhere first.
    #[inline]
    pub fn deal(&mut self, goals: &mut [u32; MAX_BATCH], batches: &mut [Batch]) {
        let (count, from) = (self.packets.len().min(MAX_BATCH), self.packets.as_mut_ptr());
        let mut kept = 0;
        // SAFETY: of the packets at places from 0 to `count`, each is copied once, to a place that counts from then on as one of its new batch or,
        // if it stays, will count as one of this one. A batch has room for as many as its limit says, which is 0 without memory; another batch has
        // other memory, as both are borrowed. Nothing here panics between the first and the last.
        unsafe {
            self.packets.set_len(0);
            for at in 0..count {
                let goal = goals[at];
                match batches.get_mut(goal as usize) {
                    Some(batch) if batch.packets.len() < batch.limit.into() => {
                        let end = batch.packets.len();
                        batch.packets.as_mut_ptr().add(end).copy_from_nonoverlapping(from.add(at), 1);
                        batch.packets.set_len(end + 1);
                    }
                    _ => {
                        from.add(kept).copy_from(from.add(at), 1);
                        goals[kept] = goal;
                        kept += 1;
                    }
                }
            }
            self.packets.set_len(kept);
        }
    }

    /// The packets in order, each to be changed in place.
    #[inline]
    pub fn packets_mut(&mut self) -> &mut [Packet] {
        &mut self.packets
    }

    /// Gives the first `count` packets back to the pool.
    #[inline]
    pub fn recycle_first(&mut self, count: usize, pool: &mut PacketPool) {
        let count = count.min(self.packets.len());
        pool.put_all(self.packets.drain(..count));
    }

    /// Gives the packets for which `done` says so back to the pool; the others stay, in order.
    pub fn recycle_if(&mut self, pool: &mut PacketPool, mut done: impl FnMut(&Packet) -> bool) {
        let mut kept = 0;
        for at in 0..self.packets.len() {
            if !done(&self.packets[at]) {
                self.packets.swap(at, kept);
                kept += 1;
            }
        }
        pool.put_all(self.packets.drain(kept..));
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
    use crate::{HEADROOM, MAX_FRAME};

    #[test]
    fn packets_are_dealt_to_batches_and_those_without_room_stay_in_order() {
        let mut pool = PacketPool::new(MAX_BATCH);
        let mut batch = Batch::new();
        for number in 0..10 {
            batch.add(&mut pool).unwrap().set_frame(&[number]).unwrap();
        }
        let mut batches = [Batch::new(), Batch::with_limit(2), Batch::new()];
        batches[..2].iter_mut().for_each(Batch::make_room);
        let mut goals = [u32::MAX; MAX_BATCH];
        goals[..10].copy_from_slice(&[1, 0, 1, 3, 1, 0, 2, u32::MAX, 1, 0]);
        batch.deal(&mut goals, &mut batches);
        let numbers =
            |batch: &Batch| batch.packets().iter().map(|packet| packet.data()[0]).collect::<Vec<u8>>();
        assert_eq!(batches.each_ref().map(numbers), [vec![1, 5, 9], vec![0, 2], vec![]]);
        assert_eq!((numbers(&batch), &goals[..5]), (vec![3, 4, 6, 7, 8], &[3, 1, 2, u32::MAX, 1][..]));
        batches[1].recycle(&mut pool);
        batches[2].make_room();
        batch.deal(&mut goals, &mut batches);
        assert_eq!(batches.each_ref().map(numbers), [vec![1, 5, 9], vec![4, 8], vec![6]]);
        assert_eq!((numbers(&batch), &goals[..2]), (vec![3, 7], &[3, u32::MAX][..]));
        batches.iter_mut().chain([&mut batch]).for_each(|batch| batch.recycle(&mut pool));
        assert_eq!(pool.available(), MAX_BATCH);
    }

    #[test]
    fn the_pool_recycles_and_keeps_its_limit() {
        let mut pool = PacketPool::new(2);
        let mut first = pool.take().unwrap();
        let second = pool.take().unwrap();
        assert!(pool.take().is_none());
        first.append(&[1]).unwrap();
        first.hops = 4;
        let buffer = first.data().as_ptr();
        pool.put(first);
        let mut again = pool.take().unwrap();
        assert_eq!((again.len(), again.hops, again.timestamp_ns), (0, 0, 0));
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
        let (_pool, mut batch) = pool_and_batch(&[b"first", b"second"]);
        let mut places = Vec::new();
        let mut burst = batch.burst(&mut places).unwrap();
        assert_eq!((burst.bytes(), burst.headroom()), (11, HEADROOM));
        assert_eq!((burst.frame(0), burst.frame(1)), (Some(&b"first"[..]), Some(&b"second"[..])));
        // The longest header before one, the bytes after the last.
        burst.room_mut(0).unwrap()[..HEADROOM - 2].fill(b'<');
        burst.room_mut(0).unwrap()[HEADROOM - 2..HEADROOM].copy_from_slice(b"my");
        burst.room_mut(1).unwrap()[HEADROOM + 6..].fill(b'>');
        let [first, second] = *burst.places() else { panic!("{:?}", burst.places()) };
        let (moved, cut) = (Place { at: first.at - 2, len: 4 }, Place { at: second.at, len: 3 });
        assert!(!batch.packets[0].take_place(cut) && !batch.packets[1].take_place(moved));
        assert!(batch.packets[0].take_place(moved) && batch.packets[1].take_place(cut));
        assert_eq!((batch.packets[0].data(), batch.packets[1].data()), (&b"myfi"[..], &b"sec"[..]));
    }

    #[test]
    fn a_burst_lends_its_own_slots_while_others_are_in_use_elsewhere() {
        let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
        let mut held = Vec::new();
        // Every second slot is held elsewhere; all bytes of those have a value.
        for number in 0..8 {
            let mut packet = pool.take().unwrap();
            if number % 2 == 0 {
                let whole = |room: &mut [u8]| {
                    room.fill(0x77);
                    Ok::<_, ()>(room.len())
                };
                packet.fill(whole).unwrap();
                held.push(packet);
            } else {
                packet.set_frame(&[number; 60]).unwrap();
                batch.push(packet).unwrap();
            }
        }
        assert_eq!(pool.available(), 0);
        let others = std::thread::spawn(move || {
            for round in 0..100u8 {
                for packet in &mut held {
                    assert!(packet.data().iter().step_by(251).all(|byte| *byte == 0x77 + round));
                    packet.data_mut().iter_mut().step_by(251).for_each(|byte| *byte += 1);
                }
            }
            held
        });
        let mut places = Vec::new();
        let mut burst = batch.burst(&mut places).expect("the batch has its slots for itself");
        for round in 0..100 {
            for (at, place) in burst.places().iter().enumerate() {
                assert_eq!(burst.frame(at).unwrap(), [2 * at as u8 + 1 + round; 60]);
                let start = place.at as usize - burst.headroom();
                // SAFETY: what a burst lends of a frame, as compiled code writes it.
                unsafe {
                    let start = burst.memory().add(start);
                    let room = burst.headroom() + place.len as usize + crate::TAILROOM;
                    start.write_bytes(2 * at as u8 + 2 + round, room);
                }
            }
        }
        burst.room_mut(3).unwrap().fill(0xee);
        for packet in others.join().unwrap() {
            assert_eq!(packet.len(), MAX_FRAME);
            let is_own = |(at, byte): (usize, &u8)| *byte == if at % 251 == 0 { 0x77 + 100 } else { 0x77 };
            assert!(
                packet.data().iter().enumerate().all(is_own),
                "a burst has lent a slot that is not its own"
            );
        }
    }

    #[test]
    fn packets_of_a_region_are_a_burst_where_its_headroom_is_whole_and_find_their_pool() {
        let mut others = PacketPool::new(1);
        for (headroom, is_burst) in [(HEADROOM as u16, true), (HEADROOM as u16 - 1, false)] {
            let layout = SlotLayout { size: 2048, headroom };
            let mut pool = PacketPool::over(Region::new(3, layout).unwrap());
            let (mut batch, mut places) = (Batch::new(), Vec::new());
            let longest = vec![7; layout.longest_frame()];
            while let Some(packet) = batch.add(&mut pool) {
                packet.set_frame(&longest).unwrap();
            }
            assert!(batch.len() == 3 && pool.is_exhausted());
            let burst = batch.burst(&mut places);
            assert_eq!(burst.is_some(), is_burst);
            if let Some(mut burst) = burst {
                // All that a burst lends lies in the slot of its frame.
                (0..3).for_each(|number| burst.room_mut(number).unwrap().fill(number as u8));
                assert!(
                    (0..3).all(|number| burst
                        .frame(number)
                        .unwrap()
                        .iter()
                        .all(|byte| *byte == number as u8))
                );
            }
            batch.recycle(&mut others);
            assert_eq!((others.available(), pool.available()), (1, 3));
            assert!((0..3).all(|_| pool.take().is_some()), "a packet let go is in its pool at once");
        }
    }

    #[test]
    fn no_burst_of_two_memories_or_without_headroom() {
        let (_pool, mut batch) = pool_and_batch(&[b"first", b"second"]);
        let mut places = Vec::new();
        assert!(batch.burst(&mut places).is_some());
        batch.push(Packet::from_frame(b"of another memory").unwrap()).unwrap();
        assert!(batch.burst(&mut places).is_none());
        batch.packets.pop();
        let before = usize::from(SlotLayout::DEFAULT.headroom) - HEADROOM;
        batch.packets[0].push(before).unwrap();
        assert!(batch.burst(&mut places).is_some());
        batch.packets[0].push(1).unwrap();
        assert!(batch.burst(&mut places).is_none());
        assert!(Batch::new().burst(&mut places).is_none());
    }

    #[test]
    fn a_batch_takes_all_packets_of_another_one_that_it_has_room_for() {
        let (mut pool, mut batch) = pool_and_batch(&[b"first", b"second"]);
        let mut other = Batch::new();
        assert!(!batch.take_all(&mut other), "it has some");
        assert!(other.take_all(&mut batch));
        assert_eq!((batch.len(), other.packets()[0].data(), other.packets()[1].data()), {
            (0, &b"first"[..], &b"second"[..])
        });
        // One that takes fewer keeps what it has.
        batch.set_limit(1);
        assert!(!batch.take_all(&mut other) && !Batch::with_limit(1).take_all(&mut other));
        batch.set_limit(2);
        assert!(batch.take_all(&mut other) && batch.is_full() && other.is_empty());
        batch.recycle(&mut pool);
        assert_eq!(pool.available(), 4);
    }

    #[test]
    fn a_batch_has_memory_while_it_has_packets() {
        let (mut pool, mut batch) = pool_and_batch(&[b"first"]);
        batch.rest();
        assert_eq!(batch.packets()[0].data(), b"first");
        let memory = batch.packets.as_ptr();
        batch.recycle(&mut pool);
        assert_eq!(batch.packets.as_ptr(), memory);
        batch.rest();
        assert_eq!(batch.packets.capacity(), 0);
        // The next one has what was given back last.
        let mut other = Batch::with_limit(1);
        other.add(&mut pool).unwrap();
        assert_eq!((other.packets.as_ptr(), other.is_full()), (memory, true));
        // What a batch takes over leaves the other one without.
        assert!(batch.take_all(&mut other));
        assert_eq!((batch.packets.as_ptr(), other.packets.capacity()), (memory, 0));
        other.make_room();
        assert!(other.packets.capacity() >= MAX_BATCH && other.is_empty());
    }

    #[test]
    fn a_batch_takes_packets_in_another_order() {
        let frames = [&b"a"[..], b"b", b"c"];
        let (mut pool, mut batch) = pool_and_batch(&frames);
        let mut other = Batch::new();
        for wrong in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3], &[0, 1, 2, 2], &[0, 1, 255], &[]] {
            assert!(!other.take_in_order(&mut batch, wrong), "{wrong:?}");
        }
        assert!(!Batch::with_limit(2).take_in_order(&mut batch, &[2, 0, 1]));
        assert_eq!((batch.len(), other.len()), (3, 0));
        let frames_of =
            |batch: &Batch| batch.packets().iter().map(|packet| packet.data().to_vec()).collect::<Vec<_>>();
        assert!(other.take_in_order(&mut batch, &[2, 0, 1]) && batch.is_empty());
        assert_eq!(frames_of(&other), [b"c", b"a", b"b"]);
        assert!(batch.take_in_order(&mut other, &[0, 1, 2]) && other.is_empty());
        assert_eq!(frames_of(&batch), [b"c", b"a", b"b"]);
        other.add(&mut pool).unwrap();
        assert!(!other.take_in_order(&mut batch, &[1, 0, 2]), "it has some");
        let (_pool, mut full) =
            (0..MAX_BATCH).fold((PacketPool::new(64), Batch::new()), |(mut pool, mut batch), number| {
                batch.add(&mut pool).unwrap().set_service(crate::Service { class: 0, queue: number as u16 });
                (pool, batch)
            });
        let backwards: Vec<u8> = (0..MAX_BATCH as u8).rev().collect();
        batch.recycle(&mut pool);
        assert!(batch.take_in_order(&mut full, &backwards));
        assert!((0..64u16).rev().eq(batch.packets().iter().map(|packet| packet.service().queue)));
    }

    #[test]
    fn a_packet_is_made_only_where_there_is_room() {
        let mut pool = PacketPool::new(3);
        let mut batch = Batch::with_limit(1);
        assert!(batch.add_made(|| None).is_none() && batch.is_empty());
        batch.add_made(|| pool.take()).unwrap().set_frame(&[1]).unwrap();
        assert!(batch.add_made(|| unreachable!("the batch is full")).is_none());
        assert_eq!((batch.packets()[0].data(), pool.available()), (&[1][..], 2));
        batch.recycle(&mut pool);
    }

    #[test]
    fn a_batch_keeps_order_and_limit() {
        let mut pool = PacketPool::new(100);
        let mut batch = Batch::with_limit(1000);
        for number in 0..MAX_BATCH {
            let mut packet = pool.take().unwrap();
            packet.hops = number as u8;
            batch.push(packet).unwrap();
        }
        assert!(batch.is_full());
        assert!(batch.push(pool.take().unwrap()).is_err());
        batch.recycle_first(60, &mut pool);
        let left: Vec<u8> = batch.packets().iter().map(|packet| packet.hops).collect();
        assert_eq!(left, [60, 61, 62, 63]);
        batch.recycle(&mut pool);
        assert_eq!((batch.len(), batch.room()), (0, 64));
    }
}
