//! Arrival curves: how much can come in any time of a given length.
//!
//! The arrival curve α of a set of flows says that in any time of length t at most α(t) arrives. Here it is a sum over **groups**, the
//! flows that come by one link, of the smaller of two bounds: what the flows of the group send, and what the link can carry. Both are piecewise
//! linear with upward steps, so α is. A [`Sweep`] gives its segments from left to right, as many as are asked for; nothing is stored,
//! for a staircase has no end.
//!
//! Each segment is an upper bound of α wherever it applies. Where two lines cross between two picoseconds, one of the two goes on in place
//! of the smaller one, which keeps that: of the token buckets of a flow the steeper one up to the next picosecond, of a group and its link
//! the flatter one from the picosecond before. For a fast link brings bits in a picosecond, and all of them would stay in the bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::network::{Arrival, Network, Transfer};
use crate::units::{self, Data, Ps, Rate};

/// `burst` + `rate` · t.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) burst: Data,
    pub(crate) rate: Rate,
}

impl Line {
    pub(crate) fn at(self, time: Ps) -> Data {
        self.burst + self.rate * time
    }

    pub(crate) fn add(&mut self, other: Line) {
        self.burst += other.burst;
        self.rate += other.rate;
    }

    pub(crate) fn subtract(&mut self, other: Line) {
        self.burst -= other.burst;
        self.rate -= other.rate;
    }

    /// The same curve seen through a change of delay by up to `shift`: α(t + shift).
    pub(crate) fn shifted(self, shift: Ps) -> Line {
        Line { burst: self.at(shift), rate: self.rate }
    }
}

/// Frames that become ready one in each `period`, each late by up to `jitter`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stair {
    frame: Data,
    period: Ps,
    jitter: Ps,
}

impl Stair {
    /// The frame times `time` / period, for a time below the period, rounded up.
    fn part(self, time: Ps) -> Data {
        match self.frame.checked_mul(time) {
            Some(product) => units::div_up(product, self.period),
            // The longest frames with the longest periods: each bit by itself, rounded up, is above it by less than a frame's bits of 10^-18 bit.
            None => (self.frame / units::BIT) * units::div_up(units::BIT * time, self.period),
        }
    }

    /// The least line that is nowhere below.
    fn line(self) -> Line {
        let rate = units::div_up(self.frame, self.period);
        let (whole, rest) = (self.jitter / self.period, self.jitter % self.period);
        Line { burst: self.frame + self.frame * whole + self.part(rest), rate }
    }
}

/// How much steeper than the flow its first token bucket may be.
const STEEPEST: Ps = 64;

/// The token buckets of a flow whose frames are late by up to `shift` more than at the source.
///
/// A periodic flow has two: the line through all its steps, and the steeper one from what can come at once to the first step after
/// that, where the two meet. The smaller of both is the least concave curve above the steps.
pub(crate) fn lines(arrival: &Arrival, shift: Ps) -> Vec<Line> {
    match arrival {
        Arrival::Periodic { largest_frame, period, jitter, .. } => {
            let (period, jitter) = (Ps::from(period.ps()), Ps::from(jitter.ps()) + shift);
            let stair = Stair { frame: units::data(*largest_frame), period, jitter };
            let ready = jitter / period + 1;
            let next = ready * period - jitter;
            // A line that is much steeper is of no use, and products with its rate might be too large.
            if next < period / STEEPEST {
                return vec![stair.line()];
            }
            let first = Line { burst: stair.frame * ready, rate: units::div_up(stair.frame, next) };
            vec![stair.line(), first]
        }
        Arrival::Buckets { buckets, .. } => {
            let line = |bucket: &crate::TokenBucket| Line {
                burst: units::data(bucket.burst),
                rate: units::rate(bucket.rate),
            };
            buckets.iter().map(|bucket| line(bucket).shifted(shift)).collect()
        }
    }
}

/// The token bucket of a flow with the least rate.
pub(crate) fn long_term_line(arrival: &Arrival, shift: Ps) -> Line {
    lines(arrival, shift).into_iter().min_by_key(|line| (line.rate, line.burst)).unwrap_or_default()
}

/// The token bucket of a flow that allows the least in a time of length `time`.
pub(crate) fn least_line(arrival: &Arrival, shift: Ps, time: Ps) -> Line {
    lines(arrival, shift).into_iter().min_by_key(|line| (line.at(time), line.rate)).unwrap_or_default()
}

/// By how much a periodic flow can be ahead of `rate` at its source: the largest α(t) − rate · t. None for other flows, and if `rate` is
/// below that of the flow.
///
/// Each step after the second is a period later than the one before and a frame higher, so it is not further ahead.
pub(crate) fn most_ahead(arrival: &Arrival, rate: Rate) -> Option<Data> {
    let Arrival::Periodic { largest_frame, period, jitter, .. } = arrival else { return None };
    let (frame, period, jitter) = (units::data(*largest_frame), Ps::from(period.ps()), Ps::from(jitter.ps()));
    let ready = jitter / period + 1;
    let next = frame * (ready + 1) - rate * (ready * period - jitter);
    (rate * period >= frame).then(|| next.max(frame * ready))
}

/// At most so many frames of a flow in any time of length `time`.
pub(crate) fn frames(arrival: &Arrival, shift: Ps, time: Ps) -> u64 {
    let count = match arrival {
        Arrival::Periodic { period, jitter, .. } => {
            (time + Ps::from(jitter.ps()) + shift) / Ps::from(period.ps()) + 1
        }
        Arrival::Buckets { smallest_frame, .. } => {
            let most = lines(arrival, shift).into_iter().map(|line| line.at(time)).min().unwrap_or(0);
            most / units::data((*smallest_frame).max(1))
        }
    };
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// How arrival curves are described.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// With the steps of periodic flows, not only the line above them.
    pub(crate) staircase: bool,
    /// With what the link of a group can carry.
    pub(crate) grouping: bool,
}

/// One flow in a sweep: the next change of its line, and what it does.
enum Part {
    Stair { stair: Stair, next: Ps },
    Lines { lines: Vec<Line>, active: usize },
}

struct Group {
    own: Line,
    /// What the link can carry.
    link: Option<Line>,
    by_link: bool,
    /// How often the group changed; an event of an older version is void.
    version: u32,
}

impl Group {
    fn active(&self) -> Line {
        match self.link {
            Some(link) if self.by_link => link,
            _ => self.own,
        }
    }
}

/// A piece of an arrival curve, from `from` to before `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) from: Ps,
    pub(crate) to: Ps,
    pub(crate) line: Line,
}

/// The end of the last segment of a curve without further steps.
pub(crate) const NEVER: Ps = Ps::MAX / 4;

/// The segments of an arrival curve, from left to right.
pub(crate) struct Sweep {
    parts: Vec<(u32, Part)>,
    groups: Vec<Group>,
    /// Time, then a part, or a group (after all parts) with its version.
    events: BinaryHeap<Reverse<(i64, u32, u32)>>,
    total: Line,
    /// A line that is nowhere below the curve.
    tail: Line,
    now: Ps,
    /// How many segments to look at.
    breakpoints: usize,
}

impl Sweep {
    /// The curve of the flows at these hops, which are sorted by input. `shift` has for each hop of the network how late its frames may be
    /// compared with the source; `more` is added to all of them.
    pub(crate) fn new(network: &Network, hops: &[u32], shift: &[Ps], more: Ps, detail: Detail) -> Sweep {
        let mut sweep = Sweep {
            parts: Vec::with_capacity(hops.len()),
            groups: Vec::new(),
            events: BinaryHeap::with_capacity(hops.len() * 2),
            total: Line::default(),
            tail: Line::default(),
            now: 0,
            breakpoints: network.order.breakpoints,
        };
        let mut before = None;
        for &hop in hops {
            let input = network.input(hop);
            if input.is_none() || before != Some(input) {
                sweep.groups.push(Group { own: Line::default(), link: None, by_link: false, version: 0 });
            }
            before = Some(input);
            let arrival = &network.flows()[network.hops[hop as usize].flow as usize].arrival;
            sweep.add(arrival, shift[hop as usize] + more, detail.staircase);
            if let (true, Some(input)) = (detail.grouping, input) {
                sweep.limit(network, input, arrival, more);
            }
        }
        for group in 0..sweep.groups.len() {
            sweep.total.add(sweep.groups[group].own);
            sweep.change(group, |_| ());
        }
        sweep
    }

    fn add(&mut self, arrival: &Arrival, shift: Ps, staircase: bool) {
        let group = self.groups.len() - 1;
        let part = self.parts.len() as u32;
        let (own, made, next) = match arrival {
            Arrival::Periodic { largest_frame, period, jitter, .. } if staircase => {
                let (period, jitter) = (Ps::from(period.ps()), Ps::from(jitter.ps()) + shift);
                let stair = Stair { frame: units::data(*largest_frame), period, jitter };
                let ready = jitter / period + 1;
                self.tail.add(stair.line());
                let next = ready * period - jitter;
                (Line { burst: stair.frame * ready, rate: 0 }, Part::Stair { stair, next }, next)
            }
            _ => {
                let lines = match arrival {
                    Arrival::Periodic { .. } => vec![long_term_line(arrival, shift)],
                    Arrival::Buckets { .. } => lines(arrival, shift),
                };
                let active =
                    (0..lines.len()).min_by_key(|&at| (lines[at].burst, lines[at].rate)).unwrap_or(0);
                self.tail.add(long_term_line(arrival, shift));
                let next = bend(&lines, active, 0).map_or(NEVER, |(time, _)| time);
                (lines[active], Part::Lines { lines, active }, next)
            }
        };
        self.groups[group].own.add(own);
        self.parts.push((group as u32, made));
        self.wake(next, part, 0);
    }

    /// A link of rate C brings at most C t and what is complete of a frame at the start of the time: in frames, one frame more.
    fn limit(&mut self, network: &Network, input: u32, arrival: &Arrival, more: Ps) {
        let Some(rate) = network.servers()[input as usize].link.rate.map(units::rate) else { return };
        let frame = match network.transfer() {
            Transfer::Frames => units::data(arrival.largest_frame()),
            Transfer::Fluid => 0,
        };
        let burst = frame + rate * more;
        let group = self.groups.last_mut().expect("a flow was added to it");
        let link = group.link.get_or_insert(Line { burst, rate });
        link.burst = link.burst.max(burst);
    }

    fn wake(&mut self, time: Ps, key: u32, version: u32) {
        if let Ok(time) = i64::try_from(time) {
            self.events.push(Reverse((time, key, version)));
        }
    }

    /// A line that is nowhere below the curve.
    pub(crate) fn tail(&self) -> Line {
        self.tail
    }

    /// After so many segments the tail is to be taken.
    pub(crate) fn breakpoints(&self) -> usize {
        self.breakpoints
    }

    /// The next segment. After the last one, which ends at [`NEVER`], the same again.
    pub(crate) fn next(&mut self) -> Segment {
        while let Some(&Reverse((time, key, version))) = self.events.peek() {
            if Ps::from(time) > self.now {
                break;
            }
            self.events.pop();
            self.happen(key, version);
        }
        let from = self.now;
        let to = self.events.peek().map_or(NEVER, |&Reverse((time, _, _))| Ps::from(time));
        self.now = to;
        Segment { from, to, line: self.total }
    }

    fn happen(&mut self, key: u32, version: u32) {
        let Some(part) = self.parts.get_mut(key as usize) else {
            let group = key as usize - self.parts.len();
            if self.groups[group].version == version {
                self.change(group, |_| ());
            }
            return;
        };
        let group = part.0 as usize;
        let (difference, next) = match &mut part.1 {
            Part::Stair { stair, next } => {
                *next += stair.period;
                (Line { burst: stair.frame, rate: 0 }, *next)
            }
            Part::Lines { lines, active } => {
                let Some((_, new)) = bend(lines, *active, self.now - 1) else { return };
                let mut difference = lines[new];
                difference.subtract(lines[*active]);
                *active = new;
                (difference, bend(lines, new, self.now).map_or(NEVER, |(time, _)| time))
            }
        };
        self.wake(next, key, 0);
        self.change(group, |own| own.add(difference));
    }

    /// Changes the own line of a group, decides which of its two lines is the lower one now, and when that ends.
    fn change(&mut self, group: usize, change: impl FnOnce(&mut Line)) {
        let key = (self.parts.len() + group) as u32;
        let now = self.now;
        let it = &mut self.groups[group];
        self.total.subtract(it.active());
        change(&mut it.own);
        it.version += 1;
        let mut end = None;
        if let Some(link) = it.link {
            let (ahead, closing) = (it.own.at(now) - link.at(now), link.rate - it.own.rate);
            // The steeper line as long as it is the lower one for a picosecond at least, then the flatter one.
            let steeper_is_lower =
                if closing > 0 { ahead >= closing } else { closing < 0 && ahead <= closing };
            it.by_link = if closing == 0 { ahead > 0 } else { (closing > 0) == steeper_is_lower };
            if steeper_is_lower {
                end = Some((now + ahead / closing, it.version));
            }
        }
        let active = it.active();
        self.total.add(active);
        if let Some((time, version)) = end.filter(|&(time, _)| time > now) {
            self.wake(time, key, version);
        }
    }
}

/// When the lowest of some lines is no longer `active`, first after `after`, and which is then.
fn bend(lines: &[Line], active: usize, after: Ps) -> Option<(Ps, usize)> {
    let now = lines[active];
    let lower = lines.iter().enumerate().filter(|(_, line)| line.rate < now.rate);
    let crossing = lower.map(|(at, line)| {
        (units::div_up(line.burst - now.burst, now.rate - line.rate).max(after + 1), line.rate, at)
    });
    crossing.min().map(|(time, _, at)| (time, at))
}
