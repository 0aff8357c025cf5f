//! When one gate is open within a cycle, and the first time in it that is long enough.

/// The times of a cycle at which one gate is open, from 0 to the end of the cycle, with none between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    cycle: u64,
    opens: Vec<u64>,
    closes: Vec<u64>,
    /// How long the gate was open in the cycle before each window.
    before: Vec<u64>,
    /// Lengths, the last with what it continues into the next cycle, as a tree of maxima: node `n` has 2n and 2n + 1 below it.
    longest: Vec<u64>,
    leaves: usize,
}

/// Where a time of some length fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// From a time on, in a window that closes at another, as far as is known.
    At(u64, u64),
    /// Nowhere before the end, but the gate is open from a time up to the end.
    Tail(u64),
    /// Nowhere, and the gate is closed at the end.
    Nowhere,
}

impl Windows {
    /// From the states of a gate with the time at which each begins.
    pub(super) fn new(states: impl Iterator<Item = (u64, bool)>, cycle: u64) -> Windows {
        let mut windows = Windows { cycle, ..Windows::default() };
        let mut was = false;
        for (start, open) in states {
            match (was, open) {
                (false, true) => windows.opens.push(start),
                (true, false) => windows.closes.push(start),
                _ => {}
            }
            was = open;
        }
        if was {
            windows.closes.push(cycle);
        }
        let lengths = windows.opens.iter().zip(&windows.closes).map(|(open, close)| close - open);
        windows.before = lengths.scan(0, |sum, length| Some(std::mem::replace(sum, *sum + length))).collect();
        windows.leaves = windows.opens.len().next_power_of_two();
        windows.longest = vec![0; 2 * windows.leaves];
        for at in 0..windows.opens.len() {
            windows.longest[windows.leaves + at] = windows.close(at) - windows.opens[at];
        }
        for node in (1..windows.leaves).rev() {
            windows.longest[node] = windows.longest[2 * node].max(windows.longest[2 * node + 1]);
        }
        windows
    }

    pub(super) fn always_open(&self) -> bool {
        self.opens.first() == Some(&0) && self.closes[0] == self.cycle
    }

    /// The longest time that the gate is open without a break, cycle after cycle.
    pub(super) fn longest(&self) -> u64 {
        if self.always_open() { u64::MAX } else { self.longest.get(1).copied().unwrap_or(0) }
    }

    /// How long the gate is open in a cycle.
    pub(super) fn open(&self) -> u64 {
        self.closes.iter().sum::<u64>() - self.opens.iter().sum::<u64>()
    }

    /// How long the gate is open from the start of a cycle up to a time of it. After the end of the cycle its last state lasts.
    pub(super) fn open_until(&self, phase: u64) -> u64 {
        let at = self.opens.partition_point(|open| *open < phase);
        let Some(last) = at.checked_sub(1) else { return 0 };
        let end = if self.closes[last] == self.cycle { u64::MAX } else { self.closes[last] };
        self.before[last] + phase.min(end) - self.opens[last]
    }

    /// How long the gate is open from the start of cycles up to some time of them.
    pub(super) fn open_in_cycles(&self, time: u64) -> u64 {
        time / self.cycle * self.open() + self.open_until(time % self.cycle)
    }

    /// When the gate has been open for `sum`, at least 1, from the start of a cycle on, whose last state lasts. None if never.
    pub(super) fn after_open(&self, sum: u64) -> Option<u64> {
        let last = self.before.partition_point(|before| *before < sum).checked_sub(1)?;
        let time = self.opens[last].saturating_add(sum - self.before[last]);
        (time <= self.closes[last] || self.closes[last] == self.cycle).then_some(time)
    }

    /// The same over cycles.
    pub(super) fn after_open_in_cycles(&self, sum: u64) -> Option<u64> {
        let cycles = (sum - 1).checked_div(self.open())?;
        let time = self.after_open(sum - cycles * self.open())?;
        Some(cycles.saturating_mul(self.cycle).saturating_add(time))
    }

    /// How long the gate is open from the start of a cycle on, if nothing comes after it.
    pub(super) fn lead(&self) -> u64 {
        if self.opens.first() == Some(&0) { self.closes[0] } else { 0 }
    }

    /// The end of a window; of the last one, where it closes in the next cycle.
    fn close(&self, at: usize) -> u64 {
        let close = self.closes[at];
        if close == self.cycle { close + self.lead() } else { close }
    }

    /// Start of the window that is open at the end of the cycle.
    fn last_open(&self) -> Option<u64> {
        (self.closes.last() == Some(&self.cycle)).then(|| self.opens[self.opens.len() - 1])
    }

    /// The first window from number `from` on that is at least so long.
    fn first_of(&self, length: u64, from: usize) -> Option<usize> {
        if from >= self.opens.len() {
            return None;
        }
        let mut node = self.leaves + from;
        // Up until a node with something long enough, from left to right.
        while self.longest[node] < length {
            while node & 1 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.longest[node] < length {
                node += 1;
            }
        }
        (node - self.leaves < self.opens.len()).then_some(node - self.leaves)
    }

    /// The first time from `phase` (in the cycle) on at which the gate stays open for `length`, if cycles go on forever, with the end
    /// of its window.
    fn in_cycles(&self, phase: u64, length: u64) -> Option<(u64, u64)> {
        if self.always_open() {
            return Some((phase, u64::MAX));
        }
        let at = self.closes.partition_point(|close| *close <= phase);
        if at < self.opens.len() {
            let (begin, close) = (self.opens[at].max(phase), self.close(at));
            if close - begin >= length {
                return Some((begin, close));
            }
            if let Some(later) = self.first_of(length, at + 1) {
                return Some((self.opens[later], self.close(later)));
            }
        }
        let next = self.first_of(length, 0)?;
        Some((self.cycle + self.opens[next], self.cycle + self.close(next)))
    }

    /// The first fit in whole cycles from `from` to `until`, from `now` on.
    pub(super) fn fit_cycles(&self, from: u64, until: u64, now: u64, length: u64) -> Fit {
        let phase = (now - from) % self.cycle;
        if let Some((begin, close)) = self.in_cycles(phase, length) {
            let start = now - phase;
            let (begin, close) = (start.saturating_add(begin), start.saturating_add(close).min(until));
            if begin < close && close - begin >= length {
                return Fit::At(begin, close);
            }
        }
        match self.last_open() {
            Some(_) if until == u64::MAX => Fit::Nowhere,
            Some(_) if self.always_open() => Fit::Tail(now),
            Some(open) => Fit::Tail(now.max(until - (self.cycle - open))),
            None => Fit::Nowhere,
        }
    }

    /// The first fit in one cycle from `from` to `until`, which is cut there, or whose last states last until then.
    pub(super) fn fit_once(&self, from: u64, until: u64, now: u64, length: u64) -> Fit {
        let (phase, end) = (now - from, until - from);
        let close = |at: usize| match self.closes[at] {
            close if close >= end.min(self.cycle) => end,
            close => close,
        };
        let windows = self.opens.partition_point(|open| *open < end);
        let at = self.closes[..windows].partition_point(|close| *close <= phase.min(self.cycle - 1));
        let mut candidates = [Some(at), self.first_of(length, at + 1), windows.checked_sub(1)].into_iter();
        while let Some(at) = candidates.next().map(|at| at.filter(|at| *at < windows)) {
            let Some(at) = at else { continue };
            let (begin, close) = (self.opens[at].max(phase), close(at));
            if begin < close && close - begin >= length {
                return Fit::At(from + begin, from + close);
            }
            if begin < close && close == end {
                return Fit::Tail(from + begin);
            }
        }
        Fit::Nowhere
    }

    /// How long the gate is open from the start of one cycle on, whose last states last until its end.
    pub(super) fn lead_once(&self, end: u64) -> u64 {
        match self.lead() {
            lead if lead >= self.cycle.min(end) => end,
            lead => lead,
        }
    }
}
