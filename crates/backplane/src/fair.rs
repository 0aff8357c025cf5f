//! Who may have a turn: nobody who is ahead of others in what they have used of their shares, while these have packets.
//!
//! Each switch has a *virtual time*: the time that it has used, divided by its share. It grows as fast for all who use exactly what is
//! theirs. A switch may have a turn while its virtual time is at most [`Fair::lead`] later than the earliest of all contenders, who are
//! those with packets (start-time fair queueing; Goyal, Vin, Cheng 1996). *Theorem:* of two switches that contend during an interval, the
//! virtual times grow by amounts that differ by at most twice the lead and a step: `a` is ahead by more only after a step that began while it was
//! not. So over long intervals times used are as the shares are, whatever anybody does, and however long a step is.
//!
//! Only differences count, and only between contenders. Who was alone owes nothing for it: a switch that comes back with packets
//! begins where the earliest contender is ([`Fair::join`]), and has saved at most the lead. So nothing of what was idle is paid for later, and as the
//! earliest contender may always run, the lane never waits while anybody has packets, with one exception:
//!
//! A switch with a guarantee, whose packets the lane itself brings, has none from the end of its turn until the lane has received again.
//! It is *held* as a contender until then, and for [`HOLD_NS`] at least, or else a slow one next to it would have each such moment. Those
//! without a guarantee are not: what they are sent through a port that they share comes no faster than the slowest of them takes what it is
//! sent. Where the lane idles for that, the time is charged to the held switch: who does not come back for its share loses it, and the
//! others get theirs.

use crate::MemberId;
use crate::quota::WHOLE;
use std::collections::VecDeque;

/// How long a switch without packets counts as a contender at least, in nanoseconds.
const HOLD_NS: u64 = 50_000;
/// Binary places of a nanosecond in virtual times.
const PLACES: u32 = 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Fair {
    /// By number of the switch.
    standings: Vec<Standing>,
    /// How far a switch may be ahead.
    lead: u128,
    /// The earliest virtual time of the contenders when somebody looked last. It never goes back.
    earliest: u128,
    /// Those without packets that are held, with when they had some last.
    held: VecDeque<(u64, MemberId)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    virtual_time: u128,
    /// What a nanosecond of its own is in virtual time.
    pace: u64,
    /// It has packets, but has used as much time as it ever may.
    rests: bool,
}

/// Who may have a turn now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    latest: u128,
    /// The contender without packets that others wait for, if there is any.
    held: Option<MemberId>,
}

impl Fair {
    /// A switch has come. Whoever had its number before is not it.
    pub(crate) fn enter(&mut self, id: MemberId) {
        let at = usize::from(id);
        if self.standings.len() <= at {
            self.standings.resize(at + 1, Standing::default());
        }
        self.standings[at] = Standing { virtual_time: self.earliest, pace: 1 << PLACES, rests: false };
    }

    /// A switch has gone.
    pub(crate) fn leave(&mut self, id: MemberId) {
        self.held.retain(|(_, held)| *held != id);
    }

    /// A switch gets so many millionths of the time from now on.
    pub(crate) fn set_part(&mut self, id: MemberId, millionths: u64) {
        if let Some(standing) = self.standings.get_mut(usize::from(id)) {
            standing.pace = (u64::from(WHOLE) << PLACES) / millionths.clamp(1, WHOLE.into());
        }
    }

    /// How far a switch may be ahead of others, in nanoseconds of virtual time.
    pub(crate) fn set_lead(&mut self, ns: u64) {
        self.lead = u128::from(ns) << PLACES;
    }

    /// A switch has packets that had none.
    #[inline]
    pub(crate) fn join(&mut self, id: MemberId) {
        let from = self.earliest.saturating_sub(self.lead);
        if let Some(standing) = self.standings.get_mut(usize::from(id)) {
            standing.virtual_time = standing.virtual_time.max(from);
        }
    }

    /// A switch has no packets any more.
    #[inline]
    pub(crate) fn hold(&mut self, id: MemberId, now_ns: u64) {
        self.held.push_back((now_ns, id));
    }

    /// Whether a switch may not use time now, whoever else does: nobody waits for it.
    #[inline]
    pub(crate) fn rest(&mut self, id: MemberId, rests: bool) {
        if let Some(standing) = self.standings.get_mut(usize::from(id)) {
            standing.rests = rests;
        }
    }

    /// A switch has used so much time, or somebody else has for it.
    #[inline]
    pub(crate) fn charge(&mut self, id: MemberId, ns: u64) {
        if let Some(standing) = self.standings.get_mut(usize::from(id)) {
            standing.virtual_time += u128::from(ns) * u128::from(standing.pace);
        }
    }

    /// The lane has received, and the switches that got packets have joined: a held switch whose time is over is no contender any more.
    #[inline]
    pub(crate) fn release(&mut self, now_ns: u64) {
        while self.held.front().is_some_and(|(since, _)| now_ns.saturating_sub(*since) >= HOLD_NS) {
            self.held.pop_front();
        }
    }

    /// Who may have a turn, if these have packets and may use time.
    #[inline]
    pub(crate) fn limit(&mut self, active: impl Iterator<Item = MemberId>) -> Limit {
        let time = |id: MemberId| {
            let standing = self.standings.get(usize::from(id)).filter(|standing| !standing.rests)?;
            Some(standing.virtual_time)
        };
        let with_packets = active.filter_map(time).min();
        let held = self.held.iter().filter_map(|(_, id)| Some((time(*id)?, *id))).min();
        let held = held.filter(|(time, _)| with_packets.is_none_or(|with_packets| *time < with_packets));
        let earliest = held.map(|(time, _)| time).or(with_packets);
        self.earliest = self.earliest.max(earliest.unwrap_or(0));
        Limit {
            latest: earliest.unwrap_or(u128::MAX).saturating_add(self.lead),
            held: held.map(|(_, id)| id),
        }
    }

    /// Whether a switch may have a turn.
    #[inline]
    pub(crate) fn allows(&self, id: MemberId, limit: Limit) -> bool {
        self.standings.get(usize::from(id)).is_none_or(|standing| standing.virtual_time <= limit.latest)
    }

    /// The lane has idled for so long, as nobody was allowed to run.
    pub(crate) fn idled(&mut self, limit: Limit, ns: u64) {
        if let Some(held) = limit.held {
            self.charge(held, ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAD_NS: u64 = 1_000_000;

    fn fair(parts: &[u64]) -> Fair {
        let mut fair = Fair::default();
        fair.set_lead(LEAD_NS);
        for (id, part) in (0..).zip(parts) {
            fair.enter(id);
            fair.set_part(id, *part);
        }
        fair
    }

    /// Runs whoever may in turns, each for its step, until so much time has been used; what each has used.
    fn run<const N: usize>(fair: &mut Fair, steps: [u64; N], until_ns: u64) -> [u64; N] {
        let mut used = [0; N];
        let mut now = 0;
        while now < until_ns {
            let limit = fair.limit(0..N as MemberId);
            let mut any = false;
            for (id, step) in (0..).zip(steps) {
                if fair.allows(id, limit) {
                    any = true;
                    fair.charge(id, step);
                    used[usize::from(id)] += step;
                    now += step;
                }
            }
            assert!(any, "the earliest may always run");
        }
        used
    }

    #[test]
    fn long_steps_buy_no_time() {
        // One with half of the time takes steps of 10 us, others with a quarter steps of 5 ms and of 70 us.
        let mut fair = fair(&[500_000, 250_000, 250_000]);
        let used = run(&mut fair, [10_000, 5_000_000, 70_000], 1_000_000_000);
        // Twice the lead and a step, as the shares count: 0.5 of 12 ms at most.
        assert!(used[0].abs_diff(500_000_000) < 6_000_000, "{used:?}");
        assert!(used[1].abs_diff(250_000_000) < 6_000_000, "{used:?}");
        assert!(used[2].abs_diff(250_000_000) < 6_000_000, "{used:?}");
    }

    #[test]
    fn nobody_owes_for_what_others_left_idle() {
        let mut fair = fair(&[100_000, 900_000]);
        // The first is alone for an hour.
        let hour = 3_600_000_000_000;
        fair.charge(0, hour);
        let limit = fair.limit([0].into_iter());
        assert!(fair.allows(0, limit), "nobody else has packets");
        // Then the other comes. Each gets its part of the next 100 ms, but for what the other one has saved.
        fair.join(1);
        let used = run(&mut fair, [10_000, 10_000], 100_000_000);
        assert!(used[0].abs_diff(10_000_000) < 1_000_000, "{used:?}");
    }

    #[test]
    fn who_is_held_pays_for_the_wait() {
        let mut fair = fair(&[500_000, 500_000]);
        // The other has used 2 ms of its half: 4 ms of virtual time.
        fair.charge(1, 2_000_000);
        fair.hold(0, 0);
        fair.release(10_000);
        let limit = fair.limit([1].into_iter());
        assert!(!fair.allows(1, limit), "the first may come back");
        // It does not, but others of its kind do again and again: 1.5 ms are 3 ms of its virtual time, and the lead is one.
        fair.idled(limit, 1_500_000);
        fair.hold(0, 1_500_000);
        fair.release(1_510_000);
        let limit = fair.limit([1].into_iter());
        assert!(fair.allows(1, limit));
        // Nobody is held for longer than that, once the lane has received.
        fair.charge(1, 10_000_000);
        let limit = fair.limit([1].into_iter());
        assert!(!fair.allows(1, limit));
        fair.release(1_500_000 + HOLD_NS);
        let limit = fair.limit([1].into_iter());
        assert!(fair.allows(1, limit) && limit.held.is_none());
    }
}
