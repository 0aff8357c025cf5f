//! The multiplexer of one line: what the regulators of an end system release leaves one frame after the other, first come, first served.

use crate::limits::{LimitError, within};
use crate::line::LineRate;
use std::collections::VecDeque;

/// Most frames that wait for a line. An end system has at most that many VLs, and regulators that keep their contract have at most one
/// frame each here.
pub const MAX_LINE_FRAMES: usize = 8192;

/// What became of the frames of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounters {
    /// Frames that left.
    pub frames: u64,
    /// Their bytes, with FCS.
    pub bytes: u64,
    /// Frames dropped because too many waited.
    pub dropped_full: u64,
    /// The longest time from the release of a frame to its first bit on the line, in nanoseconds.
    pub max_jitter_ns: u64,
}

/// A frame that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<F> {
    /// The frame.
    pub frame: F,
    /// Its length in bytes, with FCS.
    pub length: u64,
    /// When its regulator released it.
    pub released_ns: u64,
    /// When its first bit leaves.
    pub start_ns: u64,
    /// When the next frame may begin.
    pub free_ns: u64,
}

/// The multiplexer of one line. `F` is a frame, or whatever stands for one.
#[derive(Clone, Debug)]
pub struct Multiplexer<F> {
    rate: LineRate,
    limit: usize,
    waiting: VecDeque<(u64, u64, F)>,
    free_ns: u64,
    counters: LineCounters,
}

impl<F> Multiplexer<F> {
    /// A multiplexer for a line of this rate, with room for so many frames.
    ///
    /// # Errors
    /// [`LimitError`] for none, or more than [`MAX_LINE_FRAMES`].
    pub fn new(rate: LineRate, limit: usize) -> Result<Multiplexer<F>, LimitError> {
        within("the queue of a line", limit as u64, (1, MAX_LINE_FRAMES as u64), "frames")?;
        let counters = LineCounters::default();
        Ok(Multiplexer { rate, limit, waiting: VecDeque::new(), free_ns: 0, counters })
    }

    /// Has a frame wait for the line: of so many bytes with FCS, released at this time.
    ///
    /// # Errors
    /// The frame, when there is no room; that is counted.
    pub fn offer(&mut self, released_ns: u64, length: u64, frame: F) -> Result<(), F> {
        if self.waiting.len() >= self.limit {
            self.counters.dropped_full += 1;
            return Err(frame);
        }
        self.waiting.push_back((released_ns, length, frame));
        Ok(())
    }

    /// When the next frame can leave; a time that has passed means at once. None while none waits.
    pub fn next_ns(&self) -> Option<u64> {
        self.waiting.front().map(|&(released_ns, ..)| self.free_ns.max(released_ns))
    }

    /// Has the next frame leave, if one waits and the line is free at this time. It leaves now: in virtual time a caller asks at exactly
    /// [`Multiplexer::next_ns`].
    pub fn depart(&mut self, now_ns: u64) -> Option<Departure<F>> {
        if now_ns < self.next_ns()? {
            return None;
        }
        let (released_ns, length, frame) = self.waiting.pop_front()?;
        self.free_ns = now_ns.saturating_add(self.rate.duration_ns(length));
        self.counters.frames += 1;
        self.counters.bytes += length;
        self.counters.max_jitter_ns = self.counters.max_jitter_ns.max(now_ns - released_ns);
        Some(Departure { frame, length, released_ns, start_ns: now_ns, free_ns: self.free_ns })
    }

    /// Drops what waits, and says how many frames that were.
    pub fn clear(&mut self) -> usize {
        let waiting = self.waiting.len();
        self.waiting.clear();
        waiting
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What has happened so far.
    pub fn counters(&self) -> LineCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_in_order_one_after_the_other() {
        let rate = LineRate::from_bps(100_000_000).unwrap();
        let mut line = Multiplexer::new(rate, 3).unwrap();
        assert_eq!((line.next_ns(), line.depart(5)), (None, None));
        line.offer(100, 64, 'a').unwrap();
        line.offer(100, 1518, 'b').unwrap();
        line.offer(200, 64, 'c').unwrap();
        assert_eq!(line.offer(200, 64, 'd'), Err('d'));
        assert_eq!(line.depart(99), None);
        let mut left = Vec::new();
        while let Some(next) = line.next_ns() {
            let departure = line.depart(next).unwrap();
            left.push((departure.frame, departure.start_ns, departure.free_ns));
        }
        // 6.72 us, then 123.04 us, then 6.72 us.
        assert_eq!(left, [('a', 100, 6_820), ('b', 6_820, 129_860), ('c', 129_860, 136_580)]);
        let counters = LineCounters { frames: 3, bytes: 1646, dropped_full: 1, max_jitter_ns: 129_660 };
        assert_eq!(line.counters(), counters);
    }
}
