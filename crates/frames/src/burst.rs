//! Frames that are switched together where they lie.
//!
//! A burst is one pointer, the start of a memory, and the [`Place`]s of its frames in it. Compiled code gets just that. The
//! memory may have other frames too, of packets that wait in a queue, in a transmit ring or at another worker, which are read
//! and written at the same time. That is sound for these reasons:
//!
//! - **A burst lends its own bytes only.** Of each frame these are [`Burst::headroom`] bytes before it, the frame, and
//!   [`TAILROOM`] bytes after it. [`Batch::burst`](crate::Batch::burst) makes a burst of packets that it borrows; a packet is
//!   the only owner of its slot, and the bytes of a frame lie in the slot. [`Burst::new`] borrows the whole memory.
//! - **Who uses the pointer keeps to these bytes.** To read or write through [`Burst::memory`] is `unsafe`, and this is what
//!   has to hold. Compiled code keeps to it: each access is checked against the frame's length or lies in the footprint that
//!   the code generator has computed, and [`Burst::headroom`] is compared with that before the code runs.
//! - **No reference covers the memory of a region.** References would be exclusive or would promise that nobody writes, and
//!   two bursts of one region break both. The pointer comes from the region, which never makes a reference; references are
//!   made for the bytes of one slot, by its owner, or of one frame of the burst, while the burst is borrowed.
//! - **What another thread did with a slot comes before.** A slot goes from thread to thread as a value, with the
//!   synchronisation of whatever carries it.
//!
//! Frames of a burst may share room when it borrows the whole memory: the loopback driver lays them out that way. Then the
//! frame that is switched later meets what the other wrote. Frames in slots share nothing.

#![allow(unsafe_code)]

use crate::packet::HEADROOM;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// Bytes after a frame that may be read, and written back unchanged, so that a field is one access.
///
/// Example: a field of 20 bits in the last 3 bytes of a frame is one load of 4 bytes, a shift and a mask. The load reaches one
/// byte past the frame, which the mask drops.
pub const TAILROOM: usize = 16;

/// Where a frame lies in its memory.
///
/// ```text
///  | headroom (headers that are added) | frame, `len` bytes | tailroom (read by wide loads, kept as it is) |
///                                      ^ memory + at
/// ```
///
/// It is a number, not a pointer, so that a place takes 8 bytes, as much as the outcome of a packet: one distance then serves
/// both arrays in compiled code, which reads a place as two `u32` in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// Its first byte.
    pub at: u32,
    /// Its bytes, at most [`crate::MAX_FRAME`].
    pub len: u32,
}

/// Frames to be switched where they lie, with the room around them.
#[derive(Debug)]
pub struct Burst<'m> {
    memory: NonNull<u8>,
    size: usize,
    /// Each of them lies in the memory with `headroom` bytes before and [`TAILROOM`] after it, and these bytes are borrowed.
    places: &'m [Place],
    headroom: usize,
    bytes: u64,
    ahead: Ahead<'m>,
    lent: PhantomData<&'m mut [u8]>,
}

/// Where the frames of a later burst lie, so that whoever switches this one can ask for their memory meanwhile, a frame with
/// each packet. All requests at once would wait for each other: a processor has ten to sixteen of them under way.
///
/// It is a hint: nothing is read there, so neither the memory nor the places need be right.
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'m> {
    /// What the places count from.
    pub memory: *const u8,
    /// The places, one or more for each frame of the burst.
    pub places: &'m [Place],
}

/// The bytes around the start of a frame that code may change. All else is as it was before the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes before the frame, at most [`HEADROOM`].
    pub before: usize,
    /// Bytes of the frame, from its start; [`usize::MAX`]: all.
    pub within: usize,
}

impl Footprint {
    /// Anything.
    pub const EVERYTHING: Footprint = Footprint { before: HEADROOM, within: usize::MAX };
}

impl<'m> Burst<'m> {
    /// Frames in a memory that is borrowed as a whole. None when one does not lie in it with `headroom` bytes before, of which
    /// no more than [`HEADROOM`] count, and [`TAILROOM`] after it.
    #[inline]
    pub fn new(memory: &'m mut [u8], places: &'m [Place], headroom: usize) -> Option<Burst<'m>> {
        let end = memory.len().checked_sub(TAILROOM)? as u64;
        let headroom = headroom.min(HEADROOM);
        let bytes = bytes_within(places, headroom as u64, end)?;
        let (size, memory) = (memory.len(), NonNull::from_mut(memory).cast());
        let ahead = Ahead { memory: memory.as_ptr(), places };
        Some(Burst { memory, size, places, headroom, bytes, ahead, lent: PhantomData })
    }

    /// The same burst, with what comes after it. Without this, and if there are fewer places than frames, the frames of the burst
    /// stand for those that come.
    #[inline]
    #[must_use]
    pub fn with_ahead(self, ahead: Ahead<'m>) -> Burst<'m> {
        if ahead.places.len() < self.places.len() { self } else { Burst { ahead, ..self } }
    }

    /// Frames that come after this burst, as many as it has or more.
    #[inline]
    pub fn ahead(&self) -> Ahead<'m> {
        self.ahead
    }

    /// Frames in slots of a memory of `size` bytes, which have `bytes` bytes together.
    ///
    /// # Safety
    /// For `'m`, [`HEADROOM`] bytes before each place, the frame and [`TAILROOM`] bytes after it are there, initialised, and
    /// reached through the burst alone.
    #[inline]
    pub(crate) unsafe fn of_slots(
        (memory, size): (NonNull<u8>, usize),
        places: &'m [Place],
        bytes: u64,
    ) -> Burst<'m> {
        let ahead = Ahead { memory: memory.as_ptr(), places };
        Burst { memory, size, places, headroom: HEADROOM, bytes, ahead, lent: PhantomData }
    }

    /// What places count from. Through this pointer only the bytes that the burst lends may be read or written, and only
    /// while it is borrowed.
    #[inline]
    pub fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// The addresses of the memory, to be compared: not all of these bytes belong to the burst.
    #[inline]
    pub fn addresses(&self) -> Range<*const u8> {
        let start = self.memory.as_ptr().cast_const();
        start..start.wrapping_add(self.size)
    }

    /// Where the frames are, in order.
    #[inline]
    pub fn places(&self) -> &'m [Place] {
        self.places
    }

    /// Bytes before each frame that may be written.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.headroom
    }

    /// The bytes of all frames together.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A frame by its number.
    #[inline]
    pub fn frame(&self, number: usize) -> Option<&[u8]> {
        let place = self.places.get(number)?;
        // SAFETY: these bytes are in the memory and are lent to this burst, which is borrowed.
        Some(unsafe {
            let start = self.memory.add(place.at as usize);
            std::slice::from_raw_parts(start.as_ptr(), place.len as usize)
        })
    }

    /// All frames in order, each with the [`TAILROOM`] bytes after it.
    #[inline]
    pub fn frames_with_tail(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| {
            // SAFETY: these bytes are in the memory and are lent to this burst, which is borrowed.
            unsafe {
                let start = self.memory.add(place.at as usize);
                std::slice::from_raw_parts(start.as_ptr(), place.len as usize + TAILROOM)
            }
        })
    }

    /// All that the burst lends of a frame: [`Burst::headroom`] bytes before it, the frame, and [`TAILROOM`] after it.
    #[inline]
    pub fn room_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        let place = self.places.get(number)?;
        let length = self.headroom + place.len as usize + TAILROOM;
        // SAFETY: as above, and the borrow is exclusive.
        Some(unsafe {
            let start = self.memory.add(place.at as usize - self.headroom);
            std::slice::from_raw_parts_mut(start.as_ptr(), length)
        })
    }

    /// The same burst for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> Burst<'_> {
        Burst { ..*self }
    }

    /// The frames from one number to another, as far as there are any.
    #[inline]
    pub fn part(&mut self, numbers: Range<usize>) -> Burst<'_> {
        let end = numbers.end.min(self.places.len());
        let numbers = numbers.start.min(end)..end;
        let places = &self.places[numbers.clone()];
        let ahead = Ahead { places: &self.ahead.places[numbers], ..self.ahead };
        let bytes = match places.len() == self.places.len() {
            true => self.bytes,
            false => places.iter().map(|place| u64::from(place.len)).sum(),
        };
        Burst { places, bytes, ahead, ..*self }
    }
}

/// The bytes of places, all of which lie between two others; none when one does not.
#[inline]
fn bytes_within(places: &[Place], from: u64, end: u64) -> Option<u64> {
    #[inline(always)]
    fn portable(places: &[Place], from: u64, end: u64) -> Option<u64> {
        let (mut bytes, mut outside) = (0u64, 0u64);
        for Place { at, len } in places {
            let (at, len) = (u64::from(*at), u64::from(*len));
            // One of the differences is below 0 where it does not.
            outside |= at.wrapping_sub(from) | end.wrapping_sub(at + len);
            bytes += len;
        }
        (outside >> 63 == 0).then_some(bytes)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        #[target_feature(enable = "avx2")]
        fn avx2(places: &[Place], from: u64, end: u64) -> Option<u64> {
            portable(places, from, end)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has AVX2.
            return unsafe { avx2(places, from, end) };
        }
    }
    portable(places, from, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_borrowed_memory_lends_frames_with_their_room_alone() {
        let mut memory: Vec<u8> = (0..100).collect();
        let places = [Place { at: 8, len: 4 }, Place { at: 80, len: 4 }];
        let mut burst = Burst::new(&mut memory, &places, 8).unwrap();
        assert_eq!(
            (burst.bytes(), burst.headroom(), burst.addresses().end.addr()),
            (8, 8, { burst.memory().addr().get() + 100 })
        );
        assert_eq!(burst.frame(1), Some(&[80, 81, 82, 83][..]));
        let room = burst.room_mut(1).unwrap();
        assert_eq!((room.len(), room[0], room[27]), (8 + 4 + TAILROOM, 72, 99));
        room.fill(0xff);
        assert!(burst.frame(2).is_none() && burst.room_mut(2).is_none());
        let mut part = burst.part(1..9);
        assert_eq!((part.places(), part.bytes()), (&places[1..], 4));
        assert_eq!(part.reborrow().frames_with_tail().next(), Some(&[0xff; 4 + TAILROOM][..]));
        assert!(part.part(3..9).places().is_empty());
        assert!((0..72).all(|at| usize::from(memory[at]) == at));
    }

    #[test]
    fn what_comes_after_a_burst_has_a_place_for_each_of_its_frames() {
        let mut memory = [0; 64];
        let frame = |at| Place { at, len: 4 };
        let (places, later) =
            ([frame(0), frame(8), frame(16)], [frame(90), frame(98), frame(106), frame(114)]);
        let elsewhere = std::ptr::without_provenance::<u8>(4096);
        let burst = Burst::new(&mut memory, &places, 0).unwrap();
        assert_eq!(burst.ahead().places, places);
        let short = burst.with_ahead(Ahead { memory: elsewhere, places: &later[..2] });
        assert_eq!(short.ahead().places, places, "two places do not do for three frames");
        let mut burst = short.with_ahead(Ahead { memory: elsewhere, places: &later });
        assert_eq!((burst.ahead().memory, burst.ahead().places), (elsewhere, &later[..]));
        assert_eq!(burst.part(1..3).ahead().places, &later[1..3]);
        assert!(burst.part(3..4).ahead().places.is_empty());
    }

    #[test]
    fn frames_without_room_are_no_burst() {
        let mut memory = vec![0; HEADROOM + 100 + TAILROOM];
        let mut fits = |at, len, headroom| Burst::new(&mut memory, &[Place { at, len }], headroom).is_some();
        let start = HEADROOM as u32;
        assert!(fits(start, 100, HEADROOM) && fits(0, 100, 0));
        assert!(fits(start, 100, usize::MAX), "more headroom than there ever is");
        assert!(!fits(start - 1, 100, HEADROOM) && !fits(start, 101, HEADROOM) && !fits(start + 1, 100, 0));
        assert!(!fits(u32::MAX, u32::MAX, 0) && !fits(0, u32::MAX, 0) && !fits(u32::MAX, 0, 0));
        assert!(Burst::new(&mut [0; TAILROOM - 1], &[], 0).is_none());
    }
}
