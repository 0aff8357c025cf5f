//! A trace in memory, given out burst by burst, over and over.

#![allow(unsafe_code)]

use super::trace::{MAX_TRACE_BYTES, Trace};
use crate::port::PortError;
use millrace_frames::{Ahead, Burst, Footprint, MAX_BATCH, Memory, Place, TAILROOM};

/// Buffers that frames are copied to in turn.
pub const RING_BUFFERS: usize = 1024;

/// Frames start at multiples of this, as in the buffers of a network card.
const LINE: usize = 64;
/// What is put by and put back of a frame is counted in these.
const CHUNK: usize = 32;
/// The least room that a buffer of the ring has, as drivers give it.
const MIN_BUFFER: usize = 2304;

type Chunk = [u8; CHUNK];

/// The bursts of a trace that several queues share: each has every `of`-th, from number `queue` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the queue, from 0.
    pub queue: usize,
    /// How many there are.
    pub of: usize,
}

impl Share {
    /// The whole trace.
    pub const ALL: Share = Share { queue: 0, of: 1 };
}

/// A receive queue that never runs dry: the bursts of a trace, over and over, each time with the original bytes.
///
/// For each burst [`Replay::burst`], then [`Replay::finish`].
#[derive(Debug)]
pub struct Replay {
    memory: Memory,
    places: Vec<Place>,
    /// The first frame of the burst, and the first after it.
    burst: (usize, usize),
    way: Way,
    bytes: u64,
}

#[derive(Debug)]
enum Way {
    /// Frames are given out where they lie; what a program may write is put by before and put back after.
    InPlace { kept: Vec<Chunk>, front: usize, before: usize, chunks: usize },
    /// Frames are copied into a ring of buffers, as a receiver does.
    Copy { ring: Memory, stride: usize, front: usize, next: usize, places: Vec<Place> },
}

impl Replay {
    /// Gives frames out where they lie. `written` is what the program may change of them.
    ///
    /// # Errors
    /// [`PortError`] when there is not so much memory.
    pub fn in_place(trace: &Trace, share: Share, footprint: Footprint) -> Result<Replay, PortError> {
        let front = footprint.before.next_multiple_of(LINE);
        let longest = trace.frames().map(<[u8]>::len).max().unwrap_or(0);
        let within = footprint.within.min(longest);
        let (before, after) = (footprint.before.div_ceil(CHUNK), within.div_ceil(CHUNK));
        let chunks = before + after;
        let kept = vec![[0; CHUNK]; chunks * MAX_BATCH];
        Replay::lay_out(trace, share, front, Way::InPlace { kept, front, before, chunks })
    }

    /// Copies each frame into a buffer of a ring before it is given out, with `front` bytes of room before it.
    ///
    /// # Errors
    /// [`PortError`] when there is not so much memory.
    pub fn copying(trace: &Trace, share: Share, front: usize) -> Result<Replay, PortError> {
        let front = front.next_multiple_of(LINE);
        let longest = trace.frames().map(<[u8]>::len).max().unwrap_or(0);
        let stride = (front + longest + TAILROOM).next_multiple_of(LINE).max(MIN_BUFFER);
        let ring = Memory::zeroed(stride * RING_BUFFERS)?;
        let places = vec![Place::default(); MAX_BATCH];
        Replay::lay_out(trace, share, 0, Way::Copy { ring, stride, front, next: 0, places })
    }

    fn lay_out(trace: &Trace, share: Share, front: usize, way: Way) -> Result<Replay, PortError> {
        let of = share.of.max(1);
        let mine = |number: &usize| number / MAX_BATCH % of == share.queue % of;
        let numbers = || (0..trace.len()).filter(mine);
        let room = |number: usize| front + trace.frame(number).len().next_multiple_of(LINE).max(LINE);
        // The last frame has a tail too.
        let length = numbers().map(room).sum::<usize>() + LINE;
        if length > MAX_TRACE_BYTES {
            let reason = format!("the trace takes {length} bytes in memory, the limit is {MAX_TRACE_BYTES}");
            return Err(PortError::Arguments { driver: "null", reason });
        }
        let mut memory = Memory::zeroed(length)?;
        let (mut places, mut at, mut bytes) = (Vec::new(), 0, 0);
        for number in numbers() {
            let frame = trace.frame(number);
            let start = at + front;
            memory[start..start + frame.len()].copy_from_slice(frame);
            places.push(Place { at: start as u32, len: frame.len() as u32 });
            bytes += frame.len() as u64;
            at += room(number);
        }
        Ok(Replay { memory, places, burst: (0, 0), way, bytes })
    }

    /// Frames of one pass over the share of the trace.
    pub fn frames(&self) -> usize {
        self.places.len()
    }

    /// Bytes of one pass over the share of the trace.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the next burst is the first of a pass.
    pub fn is_at_start(&self) -> bool {
        self.burst.1 == 0
    }

    /// The next burst of up to [`MAX_BATCH`] frames, from the start again after the last. Empty only when the share is.
    #[inline]
    pub fn burst(&mut self) -> Burst<'_> {
        let first = self.burst.1;
        let end = (first + MAX_BATCH).min(self.places.len());
        self.burst = (first, end);
        let places = &self.places[first..end];
        let ahead =
            Ahead { memory: self.memory.as_ptr(), places: self.places.get(end..).unwrap_or_default() };
        let burst = match &mut self.way {
            Way::InPlace { kept, front, before, chunks } => {
                if *chunks > 0 {
                    put_by(&self.memory, places, kept, *before, *chunks);
                }
                Burst::new(&mut self.memory, places, *front)
            }
            Way::Copy { ring, stride, front, next, places: copies } => {
                let copies = &mut copies[..places.len()];
                for (copy, place) in copies.iter_mut().zip(places) {
                    *copy = Place { at: (*next * *stride + *front) as u32, len: place.len };
                    *next = (*next + 1) % RING_BUFFERS;
                }
                copy_frames(&self.memory, places, ring, copies);
                Burst::new(ring, copies, *front)
            }
        };
        burst.expect("frames are laid out with their room").with_ahead(ahead)
    }

    /// Puts the bytes of the burst back. To be called when its frames have been sent.
    #[inline]
    pub fn finish(&mut self) {
        let (first, end) = self.burst;
        if let Way::InPlace { kept, before, chunks, .. } = &self.way
            && *chunks > 0
        {
            put_back(&mut self.memory, &self.places[first..end], kept, *before, *chunks);
        }
        self.burst = if end == self.places.len() { (0, 0) } else { (end, end) };
    }
}

/// Runs a function compiled for the vectors that the machine has.
macro_rules! with_vectors {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $body:block) => {
        $(#[$doc])*
        #[inline]
        fn $name($($arg: $ty),*) {
            #[inline(always)]
            fn portable($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $ty),*) {
                    portable($($arg),*);
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the machine has AVX2.
                    return unsafe { avx2($($arg),*) };
                }
            }
            portable($($arg),*);
        }
    };
}

with_vectors! {
    /// Copies `chunks` chunks of each frame, from `before` chunks before it on.
    fn put_by(memory: &[u8], places: &[Place], kept: &mut [Chunk], before: usize, chunks: usize) {
        if (before, chunks) == (0, 1) {
            for (place, kept) in places.iter().zip(kept) {
                *kept = start_of(memory, place);
            }
            return;
        }
        let (all, _) = memory.as_chunks::<CHUNK>();
        for (place, kept) in places.iter().zip(kept.chunks_exact_mut(chunks)) {
            let from = (place.at as usize / CHUNK).saturating_sub(before);
            let end = (from + chunks).min(all.len());
            kept[..end - from].copy_from_slice(&all[from..end]);
        }
    }
}

with_vectors! {
    /// The reverse of `put_by`. All was put by before anything was written, so what two frames share comes back too.
    fn put_back(memory: &mut [u8], places: &[Place], kept: &[Chunk], before: usize, chunks: usize) {
        if (before, chunks) == (0, 1) {
            for (place, kept) in places.iter().zip(kept) {
                set_start_of(memory, place, kept);
            }
            return;
        }
        let (all, _) = memory.as_chunks_mut::<CHUNK>();
        for (place, kept) in places.iter().zip(kept.chunks_exact(chunks)) {
            let from = (place.at as usize / CHUNK).saturating_sub(before);
            let end = (from + chunks).min(all.len());
            all[from..end].copy_from_slice(&kept[..end - from]);
        }
    }
}

/// The first bytes of a frame.
#[inline(always)]
fn start_of(memory: &[u8], place: &Place) -> Chunk {
    debug_assert!(place.at as usize + CHUNK <= memory.len());
    // SAFETY: `lay_out` gave each frame at least a line of the memory, and nobody changes its places.
    unsafe { memory.as_ptr().add(place.at as usize).cast::<Chunk>().read() }
}

/// Writes them.
#[inline(always)]
fn set_start_of(memory: &mut [u8], place: &Place, bytes: &Chunk) {
    debug_assert!(place.at as usize + CHUNK <= memory.len());
    // SAFETY: as for `start_of`.
    unsafe { memory.as_mut_ptr().add(place.at as usize).cast::<Chunk>().write(*bytes) };
}

with_vectors! {
    /// Copies frames in whole lines.
    fn copy_frames(from: &[u8], places: &[Place], to: &mut [u8], copies: &[Place]) {
        let (from, _) = from.as_chunks::<LINE>();
        let (to, _) = to.as_chunks_mut::<LINE>();
        for (place, copy) in places.iter().zip(copies) {
            let (source, target) = (place.at as usize / LINE, copy.at as usize / LINE);
            let lines = (place.len as usize).div_ceil(LINE);
            // Short frames are most of those that count, and a call for one would cost more than it copies.
            let Some(source) = from.get(source..source + lines) else { continue };
            let Some(target) = to.get_mut(target..target + lines) else { continue };
            match (source, target) {
                ([source], [target]) => *target = *source,
                ([first, second], [target, next]) => (*target, *next) = (*first, *second),
                (source, target) => target.copy_from_slice(source),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of all small lengths, each of a byte of its own.
    fn trace() -> Trace {
        let mut trace = Trace::default();
        for number in 0..150u8 {
            trace.push(&vec![number; usize::from(number)]).unwrap();
        }
        trace
    }

    fn pass(replay: &mut Replay, mut each: impl FnMut(&mut [u8])) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        loop {
            let mut burst = replay.burst();
            assert!(burst.places().len() <= MAX_BATCH && !burst.places().is_empty());
            for (number, place) in burst.places().iter().enumerate() {
                assert!((place.at as usize).is_multiple_of(LINE));
                seen.push(burst.frame(number).unwrap().to_vec());
            }
            for number in 0..burst.places().len() {
                let headroom = burst.headroom();
                let room = burst.room_mut(number).unwrap();
                let end = room.len() - TAILROOM;
                each(&mut room[headroom..end]);
            }
            replay.finish();
            if replay.is_at_start() {
                return seen;
            }
        }
    }

    fn whole(trace: &Trace) -> Vec<Vec<u8>> {
        trace.frames().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn each_pass_sees_the_original_bytes_in_place() {
        let trace = trace();
        for within in [0, 1, 32, 33, 96, 150] {
            let mut replay = Replay::in_place(&trace, Share::ALL, Footprint { before: 0, within }).unwrap();
            assert_eq!((replay.frames(), replay.bytes()), (150, trace.bytes() as u64));
            for _ in 0..3 {
                let seen = pass(&mut replay, |frame| {
                    let end = frame.len().min(within);
                    frame[..end].fill(0xff);
                });
                assert_eq!(seen, whole(&trace), "{within}");
            }
        }
    }

    #[test]
    fn room_in_front_belongs_to_the_frame() {
        let trace = trace();
        let mut replay = Replay::in_place(&trace, Share::ALL, Footprint { before: 20, within: 14 }).unwrap();
        for _ in 0..2 {
            loop {
                let mut burst = replay.burst();
                let start = burst.headroom();
                assert!(start >= 20);
                for number in 0..burst.places().len() {
                    let room = burst.room_mut(number).unwrap();
                    assert_eq!(room[start - 20..start], [0; 20]);
                }
                for (number, place) in burst.places().iter().enumerate() {
                    burst.room_mut(number).unwrap()[start - 20..start + place.len.min(14) as usize]
                        .fill(0xee);
                }
                replay.finish();
                if replay.is_at_start() {
                    break;
                }
            }
        }
    }

    #[test]
    fn copies_may_be_changed_as_one_likes() {
        let trace = trace();
        let mut replay = Replay::copying(&trace, Share::ALL, 256).unwrap();
        for _ in 0..10 {
            assert_eq!(pass(&mut replay, |frame| frame.fill(0xff)), whole(&trace));
        }
    }

    #[test]
    fn queues_share_a_trace_by_bursts() {
        let trace = trace();
        let share = |queue| Replay::in_place(&trace, Share { queue, of: 2 }, Footprint::default()).unwrap();
        let (mut first, mut second) = (share(0), share(1));
        let all = whole(&trace);
        assert_eq!(pass(&mut first, |_| ()), [&all[..64], &all[128..]].concat());
        assert_eq!(pass(&mut second, |_| ()), all[64..128]);
    }

    #[test]
    fn an_empty_share_gives_empty_bursts() {
        let mut trace = Trace::default();
        trace.push(b"one").unwrap();
        let mut replay = Replay::copying(&trace, Share { queue: 1, of: 2 }, 0).unwrap();
        assert!(replay.burst().places().is_empty());
        replay.finish();
        assert!(replay.is_at_start());
    }
}
