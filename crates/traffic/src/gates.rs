//! Gates by the clock: transmission gates of IEEE 802.1Q, 8.6.8.4, and their state machines, 8.6.9 (from 802.1Qbv).
//!
//! A gate control list has entries of states (a bit for each gate, 1 is open) and how long they last. The list starts again each cycle,
//! at `base + n · cycle`. If its entries are shorter than the cycle, the last states last until its end; if they are longer, they are
//! cut there.
//!
//! **A frame leaves only if its gate is open from its first bit to its last**, at the rate of the port and with the overhead of the
//! wire: that is the guard band, as long as the frame that waits. A gate that stays open from one entry, cycle or list to the next is
//! one window. [`Gates::opens_ns`] says when a frame may begin; it takes O(log n) steps for n windows, however many of them are too
//! short.
//!
//! **Change of lists** (8.6.9.3). A list takes over at its base time. If that has passed, it does at the first start of a cycle of its
//! own that has not, and if a list runs already that counts as an error of configuration (`ConfigChangeError`): it was too late. Before
//! the first list the gates have their initial states. A cycle that starts at `s` is the last of the old list if the new one starts at
//! `s + cycle + extension` or before. So what is left of the old list is no short piece of a cycle: up to `extension` the last cycle is
//! made longer, its last states last until the end; beyond that, the piece is a cycle that is cut. A list that comes while another
//! waits for its time takes its place.
//!
//! Times are those of one clock, in nanoseconds; a list of base 0 has its cycles counted from the start of that clock.
//!
//! Entries only set states: `Set-And-Hold-MAC` and `Set-And-Release-MAC` are for frame preemption, which there is not.

mod windows;

#[cfg(test)]
mod tests;

use crate::setting::{MAX_RATE, SECOND, SettingError, wire_ns, within};
use std::sync::Arc;
use windows::{Fit, Windows};

/// Gates of a port.
pub const GATES: usize = 8;
/// Most entries of a list.
pub const MAX_ENTRIES: usize = 16_384;
/// Longest cycle, and longest extension of one: an hour.
pub const MAX_CYCLE: u64 = 3600 * SECOND;

/// Segments that have passed and are kept.
const PAST: usize = 4;

/// States of the gates, and how long they last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateEntry {
    /// Bit `n` is 1 if gate `n` is open.
    pub open: u8,
    /// Nanoseconds, at least 1.
    pub interval_ns: u64,
}

/// A gate control list as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateList {
    /// When its first cycle starts.
    pub base_ns: u64,
    /// Length of a cycle, at most [`MAX_CYCLE`]; 0 means the sum of the entries.
    pub cycle_ns: u64,
    /// By how much the last cycle may be made longer when another list follows.
    pub extension_ns: u64,
    /// At most [`MAX_ENTRIES`].
    pub entries: Vec<GateEntry>,
}

/// A gate control list that is sound, ready to run.
#[derive(Clone, Debug)]
pub struct Schedule {
    list: GateList,
    cycle: u64,
    windows: [Windows; GATES],
}

impl Schedule {
    /// Checks a list.
    pub fn new(list: GateList) -> Result<Schedule, SettingError> {
        within("number of entries", "entries", list.entries.len() as u64, 0..=MAX_ENTRIES as u64)?;
        if list.entries.is_empty() {
            return Err(SettingError::NoEntries);
        }
        for entry in &list.entries {
            within("interval", "ns", entry.interval_ns, 1..=MAX_CYCLE)?;
        }
        let sum: u64 = list.entries.iter().map(|entry| entry.interval_ns).sum();
        let cycle = if list.cycle_ns == 0 { sum } else { list.cycle_ns };
        within("cycle", "ns", cycle, 1..=MAX_CYCLE)?;
        within("extension of the cycle", "ns", list.extension_ns, 0..=MAX_CYCLE)?;
        if let Some(entry) = starts(&list.entries).position(|(start, _)| start >= cycle) {
            return Err(SettingError::PastCycle { entry, cycle_ns: cycle });
        }
        let windows = std::array::from_fn(|gate| {
            Windows::new(starts(&list.entries).map(|(start, open)| (start, open >> gate & 1 == 1)), cycle)
        });
        Ok(Schedule { windows, cycle, list })
    }

    /// The list as it was written.
    pub fn list(&self) -> &GateList {
        &self.list
    }

    /// Length of a cycle, in nanoseconds.
    pub fn cycle_ns(&self) -> u64 {
        self.cycle
    }

    /// How long a gate is open in each cycle, in nanoseconds.
    pub fn open_ns(&self, gate: usize) -> u64 {
        self.windows[gate].open()
    }

    /// The longest time without a break that a gate is open: 0 if it never is, `u64::MAX` if it always is.
    pub fn longest_ns(&self, gate: usize) -> u64 {
        self.windows[gate].longest()
    }

    /// States at a time of the cycle. Takes a step for each entry.
    fn states(&self, phase: u64) -> u8 {
        starts(&self.list.entries).take_while(|(start, _)| *start <= phase).last().map_or(0, |(_, open)| open)
    }
}

/// The entries with their start in the cycle.
fn starts(entries: &[GateEntry]) -> impl Iterator<Item = (u64, u8)> + Clone {
    entries.iter().scan(0, |end, entry| {
        let start = *end;
        *end += entry.interval_ns;
        Some((start, entry.open))
    })
}

/// What the gates do between two times.
#[derive(Clone, Debug)]
struct Segment {
    from: u64,
    until: u64,
    course: Course,
}

#[derive(Clone, Debug)]
enum Course {
    /// One state: before the first list.
    Fixed(u8),
    /// Cycle after cycle.
    Cycles(Arc<Schedule>),
    /// One cycle, cut or made longer: the last before another list.
    Once(Arc<Schedule>),
}

impl Segment {
    /// The first time from `now` on, which is in the segment, at which a gate stays open for `length`.
    fn fit(&self, gate: usize, now: u64, length: u64) -> Fit {
        match &self.course {
            Course::Fixed(open) if open >> gate & 1 == 0 => Fit::Nowhere,
            Course::Fixed(_) if self.until - now >= length => Fit::At(now, self.until),
            Course::Fixed(_) => Fit::Tail(now),
            Course::Cycles(schedule) => schedule.windows[gate].fit_cycles(self.from, self.until, now, length),
            Course::Once(schedule) => schedule.windows[gate].fit_once(self.from, self.until, now, length),
        }
    }

    /// How long a gate is open from the start of the segment on.
    fn lead(&self, gate: usize) -> u64 {
        let length = self.until - self.from;
        match &self.course {
            Course::Fixed(open) => u64::from(open >> gate & 1) * length,
            Course::Cycles(schedule) if schedule.windows[gate].always_open() => length,
            Course::Cycles(schedule) => schedule.windows[gate].lead(),
            Course::Once(schedule) => schedule.windows[gate].lead_once(length),
        }
    }

    /// How long a gate is open from the start of the segment up to a time of it.
    fn open_until(&self, gate: usize, now: u64) -> u64 {
        let time = now - self.from;
        match &self.course {
            Course::Fixed(open) => u64::from(open >> gate & 1) * time,
            Course::Cycles(schedule) => schedule.windows[gate].open_in_cycles(time),
            Course::Once(schedule) => schedule.windows[gate].open_until(time),
        }
    }

    /// When a gate has been open for `sum`, at least 1, from the start of the segment on; maybe after its end.
    fn after_open(&self, gate: usize, sum: u64) -> Option<u64> {
        let time = match &self.course {
            Course::Fixed(open) => (open >> gate & 1 == 1).then_some(sum),
            Course::Cycles(schedule) => schedule.windows[gate].after_open_in_cycles(sum),
            Course::Once(schedule) => schedule.windows[gate].after_open(sum),
        };
        Some(self.from.saturating_add(time?))
    }

    fn states(&self, now: u64) -> u8 {
        match &self.course {
            Course::Fixed(open) => *open,
            Course::Cycles(schedule) => schedule.states((now - self.from) % schedule.cycle),
            Course::Once(schedule) => schedule.states(now - self.from),
        }
    }
}

/// When a list takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its time (`ConfigChangeTime`).
    pub at_ns: u64,
    /// Its base time had passed while another list ran (`ConfigChangeError`).
    pub late: bool,
}

/// The gates of a port.
#[derive(Clone, Debug)]
pub struct Gates {
    rate: u64,
    overhead: u32,
    /// One after the other, the first with the time of the last call, the last without end.
    segments: Vec<Segment>,
    /// The last segments that have passed, for [`Gates::open_between`].
    past: Vec<Segment>,
    /// A time from which each gate is open, up to another: what was found last.
    known: [(u64, u64); GATES],
}

impl Gates {
    /// Gates at a port of a rate, with the overhead of a frame on the wire. They have their `initial` states until the list starts, at
    /// [`Gates::starts_ns`].
    pub fn new(
        schedule: Arc<Schedule>,
        rate: u64,
        overhead: u32,
        initial: u8,
        now_ns: u64,
    ) -> Result<Gates, SettingError> {
        within("rate of the port", "bit/s", rate, 1..=MAX_RATE)?;
        let segments = vec![Segment { from: now_ns, until: u64::MAX, course: Course::Fixed(initial) }];
        let mut gates = Gates { rate, overhead, segments, past: Vec::new(), known: [(0, 0); GATES] };
        gates.change(schedule, now_ns);
        Ok(gates)
    }

    /// Another list takes over when its time comes. It replaces a list that waits for its time.
    pub fn change(&mut self, schedule: Arc<Schedule>, now_ns: u64) -> Change {
        self.settle(now_ns);
        let base = schedule.list.base_ns;
        let past = now_ns.saturating_sub(base).div_ceil(schedule.cycle) * schedule.cycle;
        let at = base.saturating_add(past);
        let running = self.segments.swap_remove(0);
        let late = base < now_ns && !matches!(running.course, Course::Fixed(_));
        self.segments.clear();
        match running.course {
            Course::Fixed(_) => self.segments.push(Segment { until: at, ..running }),
            Course::Cycles(old) | Course::Once(old) => self.last_cycles(old, running.from, at, now_ns),
        }
        self.segments.push(Segment { from: at, until: u64::MAX, course: Course::Cycles(schedule) });
        self.segments.retain(|segment| segment.from < segment.until);
        self.known = [(0, 0); GATES];
        Change { at_ns: at, late }
    }

    /// Cycles of a list from `from` on until another takes over.
    fn last_cycles(&mut self, old: Arc<Schedule>, from: u64, until: u64, now: u64) {
        if from == until {
            return;
        }
        let cycle = old.cycle;
        // The cycle that is still due when the change comes, and what there is of it: 1 ns to all of it.
        let number = (until - from - 1) / cycle;
        let rest = until - from - number * cycle;
        // A cycle that starts up to so many before it is the last: the new list starts in its time or its extension.
        let before = (cycle + old.list.extension_ns - rest) / cycle;
        let running = (now - from) / cycle;
        let last = from + number.saturating_sub(before).max(running) * cycle;
        self.segments.push(Segment { from, until: last, course: Course::Cycles(old.clone()) });
        self.segments.push(Segment { from: last, until, course: Course::Once(old) });
    }

    /// When the last list that was given starts, or has started.
    pub fn starts_ns(&self) -> u64 {
        self.segments[self.segments.len() - 1].from
    }

    /// The list that runs; none before the first one starts.
    pub fn running(&mut self, now_ns: u64) -> Option<&Arc<Schedule>> {
        self.settle(now_ns);
        match &self.segments[0].course {
            Course::Fixed(_) => None,
            Course::Cycles(schedule) | Course::Once(schedule) => Some(schedule),
        }
    }

    /// The list that waits for its time, if one does.
    pub fn pending(&mut self, now_ns: u64) -> Option<&Arc<Schedule>> {
        self.settle(now_ns);
        match self.segments.as_slice() {
            [_, .., Segment { course: Course::Cycles(schedule), .. }] => Some(schedule),
            _ => None,
        }
    }

    /// The first time from `now_ns` on at which a frame of `len` bytes may begin, such that its gate stays open until its end. None if
    /// there is no such time, as the lists are now.
    #[inline]
    pub fn opens_ns(&mut self, gate: usize, len: u32, now_ns: u64) -> Option<u64> {
        let length = wire_ns(u64::from(len) + u64::from(self.overhead), self.rate);
        let (open, close) = self.known[gate];
        if open <= now_ns && now_ns < close && close - now_ns >= length {
            return Some(now_ns);
        }
        self.first_fit(gate, length, now_ns)
    }

    /// The first time from `now_ns` on at which a gate is open, for a nanosecond at least.
    pub fn next_open_ns(&mut self, gate: usize, now_ns: u64) -> Option<u64> {
        self.first_fit(gate, 1, now_ns)
    }

    /// When a gate that is open at `now_ns` closes: `u64::MAX` if it does not; none if it is closed.
    pub fn closes_ns(&mut self, gate: usize, now_ns: u64) -> Option<u64> {
        self.settle(now_ns);
        let first = &self.segments[0];
        match first.fit(gate, now_ns, 1) {
            Fit::At(begin, close) if begin == now_ns && close < first.until => Some(close),
            Fit::At(begin, _) if begin == now_ns => Some(first.until.saturating_add(self.lead(gate, 1))),
            _ => None,
        }
    }

    /// How long a gate is open between two times. Of the past, the last change of lists and the one before it are known; before that the
    /// gate counts as closed.
    pub fn open_between(&self, gate: usize, from_ns: u64, until_ns: u64) -> u64 {
        let parts = self.past.iter().chain(&self.segments);
        parts
            .filter(|segment| segment.from < until_ns && segment.until > from_ns)
            .map(|segment| {
                let from = segment.open_until(gate, from_ns.max(segment.from));
                segment.open_until(gate, until_ns.min(segment.until)) - from
            })
            .sum()
    }

    /// When a gate has been open for `open_ns` since a time; `from_ns` itself if that is 0, none if never.
    pub fn after_open(&self, gate: usize, from_ns: u64, open_ns: u64) -> Option<u64> {
        let mut left = open_ns;
        if left == 0 {
            return Some(from_ns);
        }
        for segment in self.past.iter().chain(&self.segments).filter(|segment| segment.until > from_ns) {
            let passed = segment.open_until(gate, from_ns.max(segment.from));
            match segment.after_open(gate, passed.saturating_add(left)) {
                Some(time) if time <= segment.until => return Some(time),
                _ => left -= segment.open_until(gate, segment.until) - passed,
            }
        }
        None
    }

    /// States of all gates. Takes a step for each entry of the list: for reports.
    pub fn states(&mut self, now_ns: u64) -> u8 {
        self.settle(now_ns);
        self.segments[0].states(now_ns)
    }

    fn first_fit(&mut self, gate: usize, length: u64, now: u64) -> Option<u64> {
        self.settle(now);
        for (at, segment) in self.segments.iter().enumerate() {
            match segment.fit(gate, now.max(segment.from), length) {
                Fit::At(begin, close) => {
                    self.known[gate] = (begin, close);
                    return Some(begin);
                }
                Fit::Tail(begin) => {
                    let close = segment.until.saturating_add(self.lead(gate, at + 1));
                    if close - begin >= length {
                        self.known[gate] = (begin, close);
                        return Some(begin);
                    }
                }
                Fit::Nowhere => {}
            }
        }
        None
    }

    /// How long a gate is open from the start of a segment on, over the segments after it too.
    fn lead(&self, gate: usize, from: usize) -> u64 {
        let mut sum: u64 = 0;
        for segment in &self.segments[from.min(self.segments.len())..] {
            let lead = segment.lead(gate);
            sum = sum.saturating_add(lead);
            if lead < segment.until - segment.from {
                break;
            }
        }
        sum
    }

    /// Moves what has passed to the past.
    #[inline]
    fn settle(&mut self, now: u64) {
        while self.segments[0].until <= now && self.segments.len() > 1 {
            if self.past.len() == PAST {
                self.past.remove(0);
            }
            self.past.push(self.segments.remove(0));
        }
    }
}
