//! Packets: one buffer each, with room in front.

#![allow(unsafe_code)]

use crate::ahead::ask_for_line;
use crate::burst::Place;
use crate::region::Slot;
use std::fmt;
use std::mem::offset_of;

/// Free bytes before a received frame, so that headers can be added without moving the frame.
pub const HEADROOM: usize = 256;

/// Longest frame in bytes, without its frame check sequence. Jumbo frames (9216 bytes) fit.
pub const MAX_FRAME: usize = 16 * 1024;

/// How a port is to serve a packet, where it tells packets apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Its class, below 128; 0 is the lowest.
    pub class: u8,
    /// The number of its queue among those of its class; 0: by a hash of its flow.
    pub queue: u16,
}

/// A frame in a buffer of fixed size, and where and when it came in.
pub struct Packet {
    pub(crate) slot: Slot,
    /// Where the frame is in the slot: `start <= end <= slot.room()`. Each change checks that, so that reading the frame
    /// needs no bound of the region, which is another cache line. No slot has more room than such a number says.
    start: u16,
    end: u16,
    /// How its port is to serve it on its way out ([`Service`]). The highest bit of the class says that it is a part ([`Packet::is_part`]).
    queue: u16,
    class: u8,
    /// How many links between switches of one device it has taken. Drivers leave it alone.
    pub hops: u8,
    /// When it was received, in nanoseconds of the port's time (`TimeSource` in `drivers`). A pcap port writes this time
    /// when it transmits, so whoever sends a packet later than it came sets it to the time of departure.
    pub timestamp_ns: u64,
}

/// See [`Packet::is_part`].
const PART: u8 = 0x80;

// Packets are moved where frames of many switches are told apart: two to a cache line.
const _: () = assert!(size_of::<Packet>() == size_of::<Slot>() + 3 * size_of::<u16>() + 2 + size_of::<u64>());
const _: () = assert!(size_of::<Packet>() <= 32);

/// A frame would be longer than [`MAX_FRAME`] or than its slot, or shorter than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLengthError {
    /// The length in bytes before the refused change.
    pub length: usize,
    /// The number of bytes that were to be added, or removed when negative.
    pub change: isize,
    /// The limit in bytes, that of the slot where it is less than [`MAX_FRAME`].
    pub limit: usize,
}

impl fmt::Display for FrameLengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameLengthError { length, change, limit } = self;
        if *change < 0 {
            write!(f, "cannot remove {} bytes from a frame of {length}", change.unsigned_abs())
        } else {
            write!(f, "a frame of {length} bytes cannot grow by {change}, the limit is {limit}")
        }
    }
}

impl std::error::Error for FrameLengthError {}

impl Packet {
    /// An empty packet with its own buffer. On the way of packets take them from a [`crate::PacketPool`] instead.
    pub fn new() -> Packet {
        Packet::within(Slot::alone())
    }

    /// An empty packet in a slot.
    pub(crate) fn within(slot: Slot) -> Packet {
        let start = slot.headroom();
        Packet { slot, start, end: start, queue: 0, class: 0, hops: 0, timestamp_ns: 0 }
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
        // SAFETY: the invariant of `start` and `end`.
        unsafe { self.slot.part(usize::from(self.start), self.len()) }
    }

    /// The frame, to be changed in place.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: the invariant of `start` and `end`.
        unsafe { self.slot.part_mut(usize::from(self.start), self.len()) }
    }

    /// Has the processor bring the start of the frame, which is read soon.
    #[inline]
    pub(crate) fn ask_for_frame(&self) {
        ask_for_line(self.data().as_ptr());
    }

    /// The length of the frame in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.end) - usize::from(self.start)
    }

    /// How its port is to serve it.
    #[inline]
    pub fn service(&self) -> Service {
        Service { class: self.class & !PART, queue: self.queue }
    }

    /// Whoever hands it to a port that tells packets apart says how that is to serve it.
    #[inline]
    pub fn set_service(&mut self, service: Service) {
        self.class = self.class & PART | service.class & !PART;
        self.queue = service.queue;
    }

    /// Whether the frame came to the switch as a part of a larger one, which its driver has cut. A port whose link takes such large ones may
    /// put parts together again.
    #[inline]
    pub fn is_part(&self) -> bool {
        self.class & PART != 0
    }

    /// Notes that it is a part of a larger frame.
    #[inline]
    pub fn set_part(&mut self) {
        self.class |= PART;
    }

    /// The longest frame that the packet can receive: [`MAX_FRAME`], or what its slot has room for after the headroom.
    #[inline]
    pub fn longest_received(&self) -> usize {
        self.slot.longest()
    }

    /// Where the frame of an empty packet starts.
    #[inline]
    fn headroom(&self) -> usize {
        usize::from(self.slot.headroom())
    }

    /// Whether it is of the same memory as another one and has taken as many links, so that both can be switched together.
    #[inline]
    pub fn is_like(&self, other: &Packet) -> bool {
        self.hops == other.hops && self.slot.is_with(&other.slot)
    }

    /// Whether all of these are like one another.
    #[inline]
    pub(crate) fn are_alike(packets: &[Packet]) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has AVX2.
            return unsafe { are_alike_avx2(packets) };
        }
        let Some((first, others)) = packets.split_first() else { return true };
        others.iter().all(|packet| packet.is_like(first))
    }

    /// The bytes of the frames of all these.
    #[inline]
    pub fn bytes_of(packets: &[Packet]) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has AVX2.
            return unsafe { bytes_of_avx2(packets) };
        }
        packets.iter().map(|packet| packet.len() as u64).sum()
    }

    /// Whether the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Empties the packet and gives it its headroom, no hops and time 0 again; it is no part.
    #[inline]
    pub fn reset(&mut self) {
        self.put_at(self.headroom(), 0);
        self.hops = 0;
        (self.class, self.queue) = (0, 0);
        self.timestamp_ns = 0;
    }

    /// Replaces the frame. Hops and time stay.
    ///
    /// # Errors
    /// [`FrameLengthError`] above [`MAX_FRAME`]; the packet is then as it was.
    #[inline]
    pub fn set_frame(&mut self, frame: &[u8]) -> Result<(), FrameLengthError> {
        let limit = self.longest_received();
        if frame.len() > limit {
            return Err(FrameLengthError { length: 0, change: change(frame.len()), limit });
        }
        // The longest frame that is received fits after the headroom.
        self.put_at(self.headroom(), frame.len());
        copy(frame, self.data_mut());
        Ok(())
    }

    /// Replaces the frame by what `write` writes: it is given room for the longest frame
    /// ([`Packet::longest_received`]) and says how many bytes it used.
    /// Returns false, and leaves an empty frame, when that is more than there was room for.
    pub fn fill<E>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<bool, E> {
        let (start, longest) = (self.headroom(), self.longest_received());
        self.put_at(start, 0);
        // SAFETY: the longest frame that is received fits after the headroom.
        let room = unsafe { self.slot.part_mut(start, longest) };
        let used = write(room)?;
        if used > room.len() {
            return Ok(false);
        }
        self.put_at(start, used);
        Ok(true)
    }

    /// Where the frame lies; none without [`HEADROOM`] bytes before it.
    #[inline]
    pub(crate) fn place(&self) -> Option<Place> {
        (usize::from(self.start) >= HEADROOM).then_some(self.lies())
    }

    /// Where the frame lies.
    #[inline]
    pub(crate) fn lies(&self) -> Place {
        let at = self.slot.offset() + usize::from(self.start);
        // A memory has at most 4 GiB.
        Place { at: at as u32, len: u32::from(self.end) - u32::from(self.start) }
    }

    /// Whether what lies at a place may be this packet's frame: it is in its slot, and not longer than [`MAX_FRAME`].
    #[inline]
    pub fn fits_place(&self, place: Place) -> bool {
        let (start, len) = (self.start_of(place), place.len as usize);
        let room = self.slot.room();
        start < room && len <= MAX_FRAME.min(room - start)
    }

    /// Takes as its frame what lies at a place in its memory; false, and nothing changed, when that does not
    /// [fit](Packet::fits_place).
    #[inline]
    pub fn take_place(&mut self, place: Place) -> bool {
        let fits = self.fits_place(place);
        if fits {
            self.put_at(self.start_of(place), place.len as usize);
        }
        fits
    }

    /// Where a place is in the slot; beyond it when it is in another one.
    #[inline]
    fn start_of(&self, place: Place) -> usize {
        (place.at as usize).wrapping_sub(self.slot.offset())
    }

    /// Makes this a copy of another packet: its frame, hops and time.
    ///
    /// # Errors
    /// [`FrameLengthError`] when the slot of this packet is too small for the frame; the packet is then as it was.
    pub fn copy_from(&mut self, other: &Packet) -> Result<(), FrameLengthError> {
        self.check_limit(0, other.len())?;
        let last = self.slot.room() - other.len();
        self.put_at(usize::from(other.start).min(last), other.len());
        self.data_mut().copy_from_slice(other.data());
        self.hops = other.hops;
        (self.class, self.queue) = (other.class, other.queue);
        self.timestamp_ns = other.timestamp_ns;
        Ok(())
    }

    /// Adds `count` zero bytes in front and gives them, to be written. The frame is moved only when the headroom is
    /// used up.
    ///
    /// # Errors
    /// [`FrameLengthError`] above [`MAX_FRAME`]; the packet is then as it was.
    #[inline]
    pub fn push(&mut self, count: usize) -> Result<&mut [u8], FrameLengthError> {
        self.check_growth(count)?;
        if count > usize::from(self.start) {
            self.move_to(self.headroom() + count);
        }
        // It is at most `start`.
        self.start -= count as u16;
        let fresh = &mut self.data_mut()[..count];
        fresh.fill(0);
        Ok(fresh)
    }

    /// Removes `count` bytes in front.
    ///
    /// # Errors
    /// [`FrameLengthError`] when there are fewer; the packet is then as it was.
    #[inline]
    pub fn pull(&mut self, count: usize) -> Result<(), FrameLengthError> {
        self.check_shrinkage(count)?;
        // It is at most the length of the frame, and so below.
        self.start += count as u16;
        Ok(())
    }

    /// Puts bytes into the frame after its first `AT` bytes, which move to the front; false, and nothing is done, where the frame has fewer, where there
    /// is no room before it, or where it would be too long. All numbers are the compiler's: that is a few instructions.
    #[inline]
    pub fn insert<const AT: usize, const N: usize>(&mut self, bytes: [u8; N]) -> bool {
        const { assert!(AT <= MAX_FRAME && N <= MAX_FRAME) };
        let (start, length) = (usize::from(self.start), self.len());
        let fits = start >= N && length >= AT && length + N <= MAX_FRAME;
        if fits {
            // SAFETY: `start + AT` is no more than `end`, which is within the slot's room, and so are the `N` bytes before `start`. The bytes that move
            // are read before any is written.
            unsafe {
                let to = self.slot.part_mut(start - N, N + AT).as_mut_ptr();
                let first = to.add(N).cast::<[u8; AT]>().read();
                to.cast::<[u8; AT]>().write(first);
                to.add(AT).cast::<[u8; N]>().write(bytes);
            }
            // It is at most `start`.
            self.start -= N as u16;
        }
        fits
    }

    /// Takes `N` bytes out of the frame after its first `AT` bytes, which move back; false, and nothing is done, where it has fewer.
    #[inline]
    pub fn remove<const AT: usize, const N: usize>(&mut self) -> bool {
        const { assert!(AT <= MAX_FRAME && N <= MAX_FRAME) };
        let fits = self.len() >= AT + N;
        if fits {
            // SAFETY: the frame has so many bytes. Those that move are read before any is written.
            unsafe {
                let from = self.slot.part_mut(usize::from(self.start), AT + N).as_mut_ptr();
                let first = from.cast::<[u8; AT]>().read();
                from.add(N).cast::<[u8; AT]>().write(first);
            }
            // It is at most the length of the frame, and so below.
            self.start += N as u16;
        }
        fits
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
        if usize::from(self.end) + count > self.slot.room() {
            let last = self.slot.room() - self.len() - count;
            self.move_to(self.headroom().min(last));
        }
        let before = self.len();
        // A frame that grows is shorter than its slot's room.
        self.end += count as u16;
        let fresh = &mut self.data_mut()[before..];
        fresh.fill(0);
        Ok(fresh)
    }

    /// Cuts the frame to at most `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.put_at(usize::from(self.start), length.min(self.len()));
    }

    /// Removes `count` bytes at the end.
    ///
    /// # Errors
    /// [`FrameLengthError`] when there are fewer; the packet is then as it was.
    pub fn trim(&mut self, count: usize) -> Result<(), FrameLengthError> {
        self.check_shrinkage(count)?;
        self.end -= count as u16;
        Ok(())
    }

    /// Moves the frame within the slot to start at `start`, at most up to where its end meets the slot's.
    fn move_to(&mut self, start: usize) {
        let length = self.len();
        let start = start.min(self.slot.room() - length);
        let from = usize::from(self.start);
        let all = self.slot.room();
        // SAFETY: the whole room of the slot.
        unsafe { self.slot.part_mut(0, all) }.copy_within(from..from + length, start);
        self.put_at(start, length);
    }

    /// Says where the frame is in the slot.
    #[inline]
    fn put_at(&mut self, start: usize, length: usize) {
        debug_assert!(start + length <= self.slot.room());
        // The room of a slot is no more than that of these numbers.
        self.start = start as u16;
        self.end = (start + length) as u16;
    }

    #[inline]
    fn check_growth(&self, count: usize) -> Result<(), FrameLengthError> {
        self.check_limit(self.len(), count)
    }

    /// Whether a frame of this length may become longer by so many bytes, in this packet's slot.
    #[inline]
    fn check_limit(&self, length: usize, count: usize) -> Result<(), FrameLengthError> {
        let limit = MAX_FRAME.min(self.slot.room());
        if count > limit - length {
            return Err(FrameLengthError { length, change: change(count), limit });
        }
        Ok(())
    }

    #[inline]
    fn check_shrinkage(&self, count: usize) -> Result<(), FrameLengthError> {
        if count > self.len() {
            return Err(FrameLengthError { length: self.len(), change: -change(count), limit: self.len() });
        }
        Ok(())
    }
}

/// [`Packet::are_alike`]. A packet is a vector: it is compared with the first one by two instructions, and what differs in any place that counts
/// is looked at once in the end.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
fn are_alike_avx2(packets: &[Packet]) -> bool {
    use std::arch::x86_64::{
        __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256, _mm256_testz_si256,
        _mm256_xor_si256,
    };
    /// The bytes that say which memory a packet is of, and how many links it has taken.
    const COUNTS: [u8; size_of::<Packet>()] = {
        let mut bytes = [0; size_of::<Packet>()];
        let (slot, mut at) = (offset_of!(Packet, slot) + Slot::MEMORY_AT, 0);
        while at < size_of::<usize>() {
            bytes[slot + at] = 0xff;
            at += 1;
        }
        bytes[offset_of!(Packet, hops)] = 0xff;
        bytes
    };
    let Some(first) = packets.first() else { return true };
    // SAFETY: a packet has the size of a vector and no bytes between its fields, and so has the constant.
    let load = |place: *const __m256i| unsafe { _mm256_loadu_si256(place) };
    let first = load(std::ptr::from_ref(first).cast());
    let differs = |differences, packet| {
        _mm256_or_si256(
            differences,
            _mm256_xor_si256(load(std::ptr::from_ref::<Packet>(packet).cast()), first),
        )
    };
    let differences = packets.iter().fold(_mm256_setzero_si256(), differs);
    _mm256_testz_si256(differences, load(COUNTS.as_ptr().cast())) == 1
}

/// [`Packet::bytes_of`]. Of a packet as a vector of 16 numbers of 16 bits, the end of its frame counts once, its start once less, and all else not at
/// all: a product with constants and a sum, two instructions. No place is above the largest signed number (`SlotLayout::room`).
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
fn bytes_of_avx2(packets: &[Packet]) -> u64 {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm256_add_epi32,
        _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_madd_epi16,
        _mm256_setzero_si256,
    };
    const COUNTS: [i16; size_of::<Packet>() / 2] = {
        let mut counts = [0; size_of::<Packet>() / 2];
        counts[offset_of!(Packet, start) / 2] = -1;
        counts[offset_of!(Packet, end) / 2] = 1;
        counts
    };
    /// The lengths of so many packets together are below 2^31.
    const PART: usize = 1 << 15;
    // SAFETY: a packet has the size of a vector and no bytes between its fields, and so has the constant.
    let load = |place: *const __m256i| unsafe { _mm256_loadu_si256(place) };
    let counts = load(COUNTS.as_ptr().cast());
    let length = |packet: &Packet| _mm256_madd_epi16(load(std::ptr::from_ref(packet).cast()), counts);
    let part_bytes = |part: &[Packet]| {
        let (fours, others) = part.as_chunks();
        let sums = fours.iter().fold(_mm256_setzero_si256(), |sums, [a, b, c, d]| {
            let (ab, cd) = (_mm256_add_epi32(length(a), length(b)), _mm256_add_epi32(length(c), length(d)));
            _mm256_add_epi32(sums, _mm256_add_epi32(ab, cd))
        });
        let sums = others.iter().fold(sums, |sums, packet| _mm256_add_epi32(sums, length(packet)));
        let sums = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b00_00_11_10>(sums));
        let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b00_00_00_01>(sums));
        u64::from(_mm_cvtsi128_si32(sums).unsigned_abs())
    };
    packets.chunks(PART).map(part_bytes).sum()
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
        // A slot of the default layout has room for every frame.
        let _ = copy.copy_from(self);
        copy
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("length", &self.len())
            .field("hops", &self.hops)
            .field("timestamp_ns", &self.timestamp_ns)
            .finish_non_exhaustive()
    }
}

/// Copies a frame. Short ones are most of those that count, and a call for one would cost more than it copies: they are
/// copied as two blocks, which overlap.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    fn blocks<const N: usize>(from: &[u8], to: &mut [u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut()? = first;
        *to.last_chunk_mut()? = last;
        Some(())
    }
    let done = match from.len() {
        32..=64 => blocks::<32>(from, to),
        65..=128 => blocks::<64>(from, to),
        _ => None,
    };
    if done.is_none() {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TAILROOM;

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
    fn packets_of_one_memory_with_as_many_links_are_alike() {
        let (mut pool, mut other) = (crate::PacketPool::new(64), crate::PacketPool::new(1));
        let mut packets: Vec<Packet> = std::iter::from_fn(|| pool.take()).collect();
        for (number, packet) in packets.iter_mut().enumerate() {
            packet.set_frame(&vec![1; number]).unwrap();
            packet.set_service(Service { class: number as u8, queue: number as u16 });
            (packet.hops, packet.timestamp_ns) = (3, number as u64);
        }
        assert!((0..=64).all(|count| Packet::are_alike(&packets[..count])));
        for at in 0..64 {
            packets[at].hops = 2;
            assert!(!Packet::are_alike(&packets));
            packets[at].hops = 3;
        }
        packets[40] = other.take().unwrap();
        packets[40].hops = 3;
        assert!(
            !Packet::are_alike(&packets)
                && Packet::are_alike(&packets[..40])
                && Packet::are_alike(&packets[41..])
        );
    }

    #[test]
    fn bytes_of_packets_are_those_of_their_frames() {
        let mut pool = crate::PacketPool::new(64);
        let mut packets: Vec<Packet> = std::iter::from_fn(|| pool.take()).collect();
        for (number, packet) in packets.iter_mut().enumerate() {
            packet.set_frame(&vec![1; 16 + 250 * number]).unwrap();
            packet.set_service(Service { class: !0, queue: !0 });
            (packet.hops, packet.timestamp_ns) = (0xff, !0);
        }
        assert!(packets[63].insert::<12, 4>([9; 4]) && packets[7].remove::<0, 16>());
        let left = MAX_FRAME - packets[63].len();
        packets[63].append(&vec![1; left]).unwrap();
        assert_eq!((packets[7].len(), packets[63].len()), (1750, MAX_FRAME));
        let lengths: Vec<u64> = packets.iter().map(|packet| packet.len() as u64).collect();
        assert!((0..=64).all(|count| Packet::bytes_of(&packets[..count]) == lengths[..count].iter().sum()));
        let most: Vec<Packet> = (0..64).map(|_| Packet::from_frame(&[1; MAX_FRAME]).unwrap()).collect();
        assert_eq!(Packet::bytes_of(&most), 64 * MAX_FRAME as u64);
    }

    #[test]
    fn bytes_come_into_a_frame_and_go_out_of_it() {
        let mut packet = Packet::from_frame(&[1, 2, 3, 4, 5]).unwrap();
        assert!(packet.insert::<2, 3>([7, 8, 9]));
        assert_eq!(packet.data(), [1, 2, 7, 8, 9, 3, 4, 5]);
        assert!(packet.insert::<8, 1>([6]) && packet.insert::<0, 1>([0]));
        assert_eq!(packet.data(), [0, 1, 2, 7, 8, 9, 3, 4, 5, 6]);
        assert!(!packet.insert::<11, 1>([0]) && !packet.remove::<8, 3>() && packet.len() == 10);
        assert!(packet.remove::<3, 3>() && packet.remove::<0, 1>() && packet.remove::<5, 1>());
        assert_eq!(packet.data(), [1, 2, 3, 4, 5]);
        assert!(packet.remove::<1, 4>() && packet.remove::<1, 0>());
        assert_eq!(packet.data(), [1]);
        // Neither more than there is room for before it, nor more than a frame may have.
        let room = packet.headroom() + 4;
        assert!((0..room).all(|_| packet.insert::<1, 1>([3])) && !packet.insert::<1, 1>([3]));
        assert_eq!((packet.len(), packet.data()[0], packet.data()[room]), (room + 1, 1, 3));
        let mut longest = Packet::from_frame(&vec![5; MAX_FRAME - 4]).unwrap();
        assert!(
            !longest.insert::<12, 5>([0; 5]) && longest.insert::<12, 4>([0; 4]) && longest.len() == MAX_FRAME
        );
    }

    #[test]
    fn a_frame_of_any_length_is_taken_whole() {
        let mut packet = Packet::new();
        for len in (0..=300).chain([1500, MAX_FRAME]) {
            let frame: Vec<u8> = (0..len).map(|at| (at * 31 + len) as u8).collect();
            packet.set_frame(&frame).unwrap();
            assert_eq!(packet.data(), frame);
        }
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
        let more = packet.headroom() + 1;
        packet.push(more).unwrap();
        assert_eq!(packet.len(), more + 10);
        assert_eq!(packet.data()[more..], [5; 10]);
        assert_eq!(packet.push(MAX_FRAME - packet.len()).unwrap().len(), MAX_FRAME - more - 10);
        assert_eq!(packet.data()[MAX_FRAME - 10..], [5; 10]);
        packet.pull(MAX_FRAME - 10).unwrap();
        packet.append(&vec![6; MAX_FRAME - 10]).unwrap();
        assert_eq!(packet.data()[..11], [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6]);
        assert_eq!(packet.len(), MAX_FRAME);
    }

    #[test]
    fn frames_neither_outgrow_the_limit_nor_shrink_below_nothing() {
        let mut packet = Packet::from_frame(&vec![1; MAX_FRAME]).unwrap();
        assert_eq!(
            packet.push(1).unwrap_err(),
            FrameLengthError { length: MAX_FRAME, change: 1, limit: MAX_FRAME }
        );
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
    fn a_smaller_slot_has_a_limit_of_its_own() {
        let layout = crate::SlotLayout { size: 2048, headroom: 256 };
        let mut pool = crate::PacketPool::over(crate::Region::new(2, layout).unwrap());
        let mut packet = pool.take().unwrap();
        let (longest, room) = (packet.longest_received(), 2048 - TAILROOM);
        assert_eq!(longest, room - 256);
        let error = packet.set_frame(&vec![1; longest + 1]).unwrap_err();
        assert_eq!(error.limit, longest);
        packet.set_frame(&vec![1; longest]).unwrap();
        packet.push(10).unwrap();
        packet.append(&[2; 100]).unwrap();
        assert_eq!((packet.len(), packet.data()[longest + 9..][..2].to_vec()), (longest + 110, vec![1, 2]));
        assert_eq!(packet.push(room).unwrap_err().limit, room);
        packet.push(room - packet.len()).unwrap();
        assert!(packet.push(1).is_err() && packet.append(&[1]).is_err() && packet.place().is_none());
        let mut small = pool.take().unwrap();
        small.copy_from(&packet).unwrap();
        assert_eq!((small.data(), packet.clone().data()), (packet.data(), packet.data()));
        assert!(small.copy_from(&Packet::from_frame(&vec![3; room + 1]).unwrap()).is_err());
        assert_eq!(small.data(), packet.data(), "as it was");
        let near = Packet::from_frame(&vec![4; room - 256 + 1]).unwrap();
        small.copy_from(&near).unwrap();
        assert_eq!(small.data(), near.data());
    }

    #[test]
    fn a_copy_has_everything() {
        let mut packet = Packet::from_frame(&[1, 2]).unwrap();
        packet.push(1).unwrap()[0] = 9;
        packet.hops = 3;
        packet.timestamp_ns = 77;
        packet.set_part();
        packet.set_service(Service { class: 5, queue: 9 });
        let mut copy = packet.clone();
        assert_eq!((copy.data(), copy.hops, copy.timestamp_ns), (&[9, 1, 2][..], 3, 77));
        assert_eq!((copy.is_part(), copy.service()), (true, Service { class: 5, queue: 9 }));
        copy.reset();
        assert_eq!((copy.is_part(), copy.service()), (false, Service::default()));
    }
}
