//! How far an arrival curve is from a service curve: sideways a delay, upwards a backlog.
//!
//! Both are found by going along the arrival curve. A curve with steps has no end, so each search stops when the line above the rest of
//! the curve ([`Sweep::tail`]) can no longer give more than what was found. After [`Sweep::breakpoints`] segments or at [`HORIZON`] it stops in any case and
//! takes what that line gives, which is larger and so safe.

use crate::curve::{Line, NEVER, Segment, Sweep};
use crate::units::{self, Data, Ps, Rate};

/// After this time of a curve an analysis goes on with the line above it, in picoseconds: 10 000 s.
const HORIZON: Ps = 10_000_000_000_000_000;

/// The longest latency of a service that is left over, in picoseconds: 1000 s, ten times the longest delay that is given as a bound.
pub(crate) const LONGEST: Ps = 1_000_000_000_000_000;

/// A service curve in the units of calculations: nothing for `latency`, then `rate`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    pub(crate) rate: Rate,
    pub(crate) latency: Ps,
}

impl Service {
    /// The line that the curve follows after its latency; below zero before.
    fn line(self) -> Line {
        Line { burst: -self.rate * self.latency, rate: self.rate }
    }

    /// What is left of it after flows with an arrival curve below `line` that go first, and `blocking` that may have started. None if
    /// nothing is left.
    pub(crate) fn left_by(self, line: Line, blocking: Data) -> Option<Service> {
        let rate = self.rate - line.rate;
        if rate <= 0 {
            return None;
        }
        let missing = self.rate * self.latency + line.burst + blocking;
        Service { rate, latency: units::div_up(missing, rate) }.within()
    }

    /// The same, unless its latency is so long that it is of no use and products with it might be too large.
    pub(crate) fn within(self) -> Option<Service> {
        (self.latency <= LONGEST).then_some(self)
    }

    /// The delay of what arrives below `line` and is served first in, first out.
    pub(crate) fn delay_of(self, line: Line) -> Ps {
        self.latency + units::div_up(line.burst, self.rate)
    }
}

/// The delay of what arrives by `own`, first in first out, while all of `service` is for it.
///
/// The horizontal deviation: the largest, over t, of the time from t until the service reaches α(t). None if the service is too little.
pub(crate) fn fifo(own: &mut Sweep, service: Service) -> Option<Ps> {
    let mut most = Data::MIN;
    let rate = service.rate;
    let (tail, limit) = (own.tail(), own.breakpoints());
    if tail.rate > rate {
        return None;
    }
    for count in 0.. {
        let Segment { from, to, line } = own.next();
        // What is waiting at t, if all is served from 0 on: the time that it takes is the delay of what arrives at t.
        let rest = tail.at(from) - rate * from;
        if rest <= most {
            break;
        }
        most = most.max(line.at(from) - rate * from);
        if to == NEVER || count >= limit || to > HORIZON {
            most = most.max(if to == NEVER { Data::MIN } else { rest });
            break;
        }
        most = most.max(line.at(to) - rate * to);
    }
    Some(service.latency + units::div_up(most.max(0), rate))
}

/// The time for which a server can have data without a pause: no delay is longer, in whatever order it sends. None if there is no such time.
pub(crate) fn busy(own: &mut Sweep, service: Service) -> Option<Ps> {
    let (tail, limit) = (own.tail(), own.breakpoints());
    let served = |line: Line| {
        let closing = service.rate - line.rate;
        (closing > 0).then(|| units::div_up(line.burst + service.rate * service.latency, closing))
    };
    for count in 0.. {
        let Segment { from, to, line } = own.next();
        if count >= limit || to > HORIZON && to != NEVER {
            return served(tail);
        }
        // A curve may touch the service at once, before anything came; that ends no busy period.
        if let Some(end) = served(line).map(|end| end.max(from)).filter(|&end| end < to && end > 0) {
            return Some(end);
        }
        if to == NEVER {
            return served(line).map(|end| end.max(0));
        }
    }
    None
}

/// The delay of what arrives by `own`, first in first out, while what arrives by `high` goes first and `blocking` may have started: the
/// horizontal deviation between α and the largest, over s up to t, of β(s) − α_high(s) − blocking. None if the sum is too much.
pub(crate) fn below(own: &mut Sweep, high: &mut Sweep, blocking: Data, service: Service) -> Option<Ps> {
    let (tail, limit) = (own.tail(), own.breakpoints());
    let left = service.left_by(high.tail(), blocking).filter(|left| tail.rate <= left.rate)?;
    // Nothing after t is later than this.
    let rest = |time: Ps| left.latency + units::div_up(tail.at(time), left.rate) - time;
    let mut leftover = Leftover { segment: high.next(), high, service: service.line(), blocking, count: 0 };
    let mut most = 0;
    for count in 0.. {
        let Segment { from, to, line } = own.next();
        let bound = rest(from);
        if bound <= most {
            break;
        }
        if count >= limit || leftover.count >= limit || (to > HORIZON && to != NEVER) {
            return Some(bound);
        }
        let (mut time, mut level) = (from, line.at(from));
        loop {
            let Some(served) = leftover.reaches(level) else { return Some(bound) };
            most = most.max(served - time);
            if time >= to || (to == NEVER && line.rate == 0) {
                break;
            }
            // On this segment of the service, the delay is a straight function of time up to where one of the two segments ends.
            let top = leftover.top();
            let end = if to == NEVER { Data::MAX } else { line.at(to) };
            if end <= top {
                most = most.max(leftover.reaches(end)? - to);
                break;
            }
            if to == NEVER && (rest(time) <= most || leftover.segment.to == NEVER) {
                break;
            }
            let last = if line.rate > 0 { ((top - line.burst) / line.rate).max(time) } else { time };
            most = most.max(leftover.reaches(top.max(level))? - last);
            (time, level) = (last, top.max(level));
            if !leftover.advance() {
                return Some(bound);
            }
        }
        if to == NEVER {
            break;
        }
    }
    Some(most)
}

/// What a service leaves to lower levels, piece by piece.
struct Leftover<'a> {
    high: &'a mut Sweep,
    segment: Segment,
    service: Line,
    blocking: Data,
    count: usize,
}

impl Leftover<'_> {
    /// The line of the present piece.
    fn line(&self) -> Line {
        Line {
            burst: self.service.burst - self.segment.line.burst - self.blocking,
            rate: self.service.rate - self.segment.line.rate,
        }
    }

    /// The most that the present piece reaches.
    fn top(&self) -> Data {
        let line = self.line();
        if self.segment.to == NEVER {
            return if line.rate > 0 { Data::MAX / 2 } else { line.at(self.segment.from) };
        }
        line.at(self.segment.from).max(line.at(self.segment.to))
    }

    /// When `level` is reached, on this piece or a later one. Levels may only grow from call to call.
    fn reaches(&mut self, level: Data) -> Option<Ps> {
        loop {
            let line = self.line();
            if line.at(self.segment.from) >= level {
                return Some(self.segment.from);
            }
            if line.rate > 0 {
                let time = units::div_up(level - line.burst, line.rate);
                if time <= self.segment.to {
                    return Some(time);
                }
            }
            if !self.advance() {
                return None;
            }
        }
    }

    fn advance(&mut self) -> bool {
        self.count += 1;
        if self.segment.to > HORIZON || self.count > self.high.breakpoints() {
            return false;
        }
        self.segment = self.high.next();
        true
    }
}

/// The most that can be in a server: the vertical deviation. None if the service is too little.
pub(crate) fn backlog(own: &mut Sweep, service: Service) -> Option<Data> {
    let (tail, limit) = (own.tail(), own.breakpoints());
    if tail.rate > service.rate {
        return None;
    }
    let served = |time: Ps| service.rate * (time - service.latency).max(0);
    let mut most = 0;
    for count in 0.. {
        let Segment { from, to, line } = own.next();
        let rest = tail.at(from.max(service.latency)) - served(from);
        if from >= service.latency && rest <= most {
            break;
        }
        most = most.max(line.at(from) - served(from));
        if service.latency > from && service.latency < to {
            most = most.max(line.at(service.latency));
        }
        if to == NEVER {
            break;
        }
        if count >= limit || to > HORIZON {
            most = most.max(rest);
            break;
        }
        most = most.max(line.at(to) - served(to));
    }
    Some(most)
}
