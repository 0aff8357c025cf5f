//! The frames of a burst as they came in, and when: for clones of them, and for packets that start again after the program has
//! changed them where they lie.

use crate::buffers::Buffers;
use millrace_frames::{Burst, TAILROOM};

/// Frames that may be needed again are copied in whole blocks of so many bytes. After the last byte of a frame there is room
/// to the end of a block, so no frame leaves a part of a block over.
const BLOCK: usize = 16;
const _: () = assert!(BLOCK <= TAILROOM);

/// Up to so many bytes of each frame are copied by moves whose number is known when this is compiled.
const MAX_MOVED: usize = 8 * BLOCK;

/// Frames as they came in, as far as a program may write them.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The start of each frame, with whatever follows a shorter one; more for bursts that were larger.
    bytes: Vec<u8>,
    /// How many bytes of each, a multiple of [`BLOCK`].
    each: usize,
    /// When each came, where that makes a difference.
    pub(super) times: Vec<u64>,
}

impl Arrivals {
    /// Notes when each of so many frames came. Later than now, or not known, is now.
    #[inline]
    pub(super) fn note_times(&mut self, packets: usize, times: &[u64], now_ns: u64) -> &[u64] {
        self.times.clear();
        self.times.extend(times.iter().take(packets).map(|time| now_ns.min(*time)));
        self.times.resize(packets, now_ns);
        &self.times
    }

    /// Keeps the first `written` bytes of each frame, before the program runs.
    #[inline]
    pub(super) fn keep(&mut self, burst: &Burst<'_>, written: usize) {
        let longest = || burst.places().iter().map(|place| place.len as usize).max().unwrap_or(0);
        let each = if written <= MAX_MOVED { written } else { written.min(longest()) };
        self.each = each.next_multiple_of(BLOCK);
        let size = self.each * burst.places().len();
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
        let kept = &mut self.bytes[..size];
        match self.each / BLOCK {
            0 => {}
            1 => keep_starts::<BLOCK>(kept, burst),
            2 => keep_starts::<{ 2 * BLOCK }>(kept, burst),
            3 => keep_starts::<{ 3 * BLOCK }>(kept, burst),
            4 => keep_starts::<{ 4 * BLOCK }>(kept, burst),
            5 => keep_starts::<{ 5 * BLOCK }>(kept, burst),
            6 => keep_starts::<{ 6 * BLOCK }>(kept, burst),
            7 => keep_starts::<{ 7 * BLOCK }>(kept, burst),
            8 => keep_starts::<MAX_MOVED>(kept, burst),
            _ => {
                for (kept, frame) in kept.chunks_exact_mut(self.each).zip(burst.frames_with_tail()) {
                    let length = kept.len().min(frame.len());
                    kept[..length].copy_from_slice(&frame[..length]);
                }
            }
        }
    }

    /// A frame as it came in, from what was kept and what the program has not changed.
    pub(super) fn frame(&self, number: usize, burst: &Burst<'_>, buffers: &mut Buffers) -> Vec<u8> {
        let mut frame = buffers.copy(burst.frame(number).unwrap_or(&[]));
        let kept = self.bytes.iter().skip(number * self.each).take(self.each);
        frame.iter_mut().zip(kept).for_each(|(byte, kept)| *byte = *kept);
        frame
    }
}

/// Copies the first bytes of each frame. A call for each, or a loop that turns as often as the frame is long, would cost more
/// than the copy: the processor cannot foretell where it ends.
#[inline(always)]
fn keep_starts<const BYTES: usize>(kept: &mut [u8], burst: &Burst<'_>) {
    for (kept, frame) in kept.as_chunks_mut::<BYTES>().0.iter_mut().zip(burst.frames_with_tail()) {
        match frame.first_chunk::<BYTES>() {
            Some(start) => *kept = *start,
            None => {
                let blocks = frame.as_chunks::<BLOCK>().0;
                for (kept, block) in kept.as_chunks_mut::<BLOCK>().0.iter_mut().zip(blocks) {
                    *kept = *block;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_frames::Place;

    /// Distance of the frames in the memory: more than the longest, with its tail.
    const ROOM: usize = 512;

    #[test]
    fn frames_come_back_whatever_their_length_and_the_footprint() {
        let lengths: Vec<usize> = (1..=140).chain([255, 256, 257, 400]).collect();
        let places: Vec<Place> =
            (0u32..).zip(&lengths).map(|(n, len)| Place { at: n * ROOM as u32, len: *len as u32 }).collect();
        let as_it_came: Vec<u8> = (0..lengths.len() * ROOM).map(|at| (at % 251) as u8).collect();
        // Bursts of several sizes, one after the other: what larger ones left over is not of the next.
        let mut arrivals = Arrivals::default();
        for written in (0..=2 * MAX_MOVED).chain([usize::MAX]) {
            for numbers in [0..lengths.len(), 7..40, 100..101] {
                let mut memory = as_it_came.clone();
                let mut burst = Burst::new(&mut memory, &places[numbers.clone()], 0).expect("room");
                arrivals.keep(&burst, written);
                for (number, len) in lengths[numbers.clone()].iter().enumerate() {
                    burst.room_mut(number).expect("a frame")[..written.min(*len)].fill(0xff);
                }
                for (number, of_all) in numbers.enumerate() {
                    let frame = arrivals.frame(number, &burst, &mut Buffers::default());
                    let (at, len) = (of_all * ROOM, lengths[of_all]);
                    assert_eq!(frame, as_it_came[at..at + len], "{len} bytes, {written} written");
                }
            }
        }
    }
}
