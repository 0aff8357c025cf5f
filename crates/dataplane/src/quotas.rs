//! Quotas: what a switch cannot exceed although its device could give it more.
//!
//! Rates are exact token buckets ([`TokenBucket`], whose unit is one operation here): in any time `t` at most the burst and what comes
//! in `t` is allowed. The burst is what one batch may ask for, or what comes in a thousandth of a second, whichever is more. All
//! workers of a switch share its buckets. Without a quota an operation costs a look at an option, and packets that stay in compiled
//! code cost nothing.
//!
//! Entries and memory are kept where they are written ([`millrace_state::Account`]).

use crate::Clock;
use crate::switch::Switch;
use millrace_frames::MAX_BATCH;
use millrace_state::{Digests, Limits};
use millrace_traffic::setting::MAX_RATE;
use millrace_traffic::tokens::{TokenBucket, Tokens};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a switch cannot exceed. Where there is none, it may have what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Packets a second that clone sessions make, of ingress and egress together.
    pub clones_per_second: Option<u64>,
    /// Packets a second that start again: recirculated and resubmitted ones together.
    pub recirculations_per_second: Option<u64>,
    /// Packets a second that multicast groups make, and sets of ports.
    pub copies_per_second: Option<u64>,
    /// Messages a second to the control plane.
    pub digests_per_second: Option<u64>,
    /// Lines a second in the log of the program.
    pub log_lines_per_second: Option<u64>,
    /// Packets that the switch holds in memory of its own, whatever they wait for: those that [`crate::QueueConfig::packet_memory`]
    /// bounds by their bytes. Its workers have equal parts.
    pub packet_buffers: Option<u64>,
    /// Packets that wait in its queues: before egress, for their times, and those of the schedulers of its ports.
    pub queue_places: Option<u64>,
    /// What its tables, groups and sessions hold ([`millrace_state::Held::entries`]).
    pub entries: Option<u64>,
    /// Bytes that its tables and its stateful objects take ([`millrace_state::Held::bytes`]).
    pub memory: Option<u64>,
}

impl Quotas {
    /// Those that concern tables and stateful objects.
    pub(crate) fn limits(&self) -> Limits {
        Limits { entries: self.entries, memory: self.memory }
    }
}

/// More than so many a second, nobody does: as if there was no quota.
const UNLIMITED: u64 = MAX_RATE / 8;

/// How many operations of one kind may be done, by all workers of a switch together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowance(Option<Arc<Mutex<Rate>>>);

/// None: nothing may be done, now or later.
#[derive(Debug)]
struct Rate(Option<TokenBucket>);

impl Rate {
    fn setting(per_second: u64) -> Tokens {
        let burst = (per_second / 1000).max(MAX_BATCH as u64);
        // A token of the bucket is a byte, and a rate is in bits.
        Tokens { rate: 8 * per_second, burst, overhead: 0 }
    }

    fn new(per_second: u64, now_ns: u64) -> Rate {
        // It takes all rates from 1 to the largest.
        Rate(TokenBucket::new(Rate::setting(per_second), now_ns).ok())
    }

    fn there(&self, now_ns: u64) -> u64 {
        self.0.as_ref().map_or(0, |bucket| u64::try_from(bucket.level(now_ns)).unwrap_or(0))
    }

    fn take(&mut self, wanted: u64, now_ns: u64) -> u64 {
        let taken = wanted.min(self.there(now_ns));
        if let Some(bucket) = &mut self.0 {
            // A burst is not so large.
            bucket.take(u32::try_from(taken).unwrap_or(u32::MAX), now_ns);
        }
        taken
    }
}

impl Allowance {
    /// Another rate from now on. What is left of the burst stays, as far as the new one goes.
    fn set(&mut self, per_second: Option<u64>, now_ns: u64) {
        let Some(rate) = per_second.filter(|rate| *rate < UNLIMITED) else {
            self.0 = None;
            return;
        };
        let Some(known) = &self.0 else {
            self.0 = Some(Arc::new(Mutex::new(Rate::new(rate, now_ns))));
            return;
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced =
            known.0.as_mut().is_some_and(|bucket| bucket.replace(Rate::setting(rate), now_ns).is_ok());
        if !replaced {
            *known = Rate::new(rate, now_ns);
        }
    }

    /// How many of so many may be done now; they count as done.
    #[inline]
    pub(crate) fn take(&self, wanted: u64, now_ns: u64) -> u64 {
        match &self.0 {
            None => wanted,
            Some(rate) => rate.lock().unwrap_or_else(PoisonError::into_inner).take(wanted, now_ns),
        }
    }

    /// Whether there is a limit.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// How many of so many may be now.
    #[inline]
    fn of(&self, wanted: usize, clock: &Clock) -> usize {
        match self.0 {
            None => wanted,
            Some(_) => usize::try_from(self.take(wanted as u64, clock.now_ns())).unwrap_or(wanted),
        }
    }

    /// Whether none may be done now.
    #[inline]
    pub(crate) fn is_spent(&self, now_ns: u64) -> bool {
        self.0
            .as_ref()
            .is_some_and(|rate| rate.lock().unwrap_or_else(PoisonError::into_inner).there(now_ns) == 0)
    }
}

/// What the data path of a switch may do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowances {
    quotas: Quotas,
    pub(crate) clones: Allowance,
    pub(crate) recirculations: Allowance,
    pub(crate) copies: Allowance,
    digests: Allowance,
    log_lines: Allowance,
}

impl Allowances {
    pub(crate) fn quotas(&self) -> Quotas {
        self.quotas
    }

    fn set(&mut self, quotas: Quotas, now_ns: u64) {
        self.clones.set(quotas.clones_per_second, now_ns);
        self.recirculations.set(quotas.recirculations_per_second, now_ns);
        self.copies.set(quotas.copies_per_second, now_ns);
        self.digests.set(quotas.digests_per_second, now_ns);
        self.log_lines.set(quotas.log_lines_per_second, now_ns);
        self.quotas = quotas;
    }
}

/// Places in the queues of a switch, which all of them share: those before egress of each worker, and those of the schedulers of ports.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// [`usize::MAX`]: there is no quota, and nothing is counted.
    limit: AtomicUsize,
    taken: AtomicUsize,
}

impl Default for Places {
    fn default() -> Places {
        Places(Arc::new(Shared { limit: AtomicUsize::new(usize::MAX), taken: AtomicUsize::new(0) }))
    }
}

impl Places {
    pub(crate) fn set(&self, limit: Option<u64>) {
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// How many there are.
    pub(crate) fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }
}

/// The part of some queues in the [`Places`].
#[derive(Debug, Default)]
pub(crate) struct Occupied {
    places: Places,
    /// What of it is in the sum.
    told: usize,
}

impl Occupied {
    /// None yet.
    pub(crate) fn of(places: &Places) -> Occupied {
        Occupied { places: places.clone(), told: 0 }
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// One more packet is to wait next to so many: whether there is a place for it, which is its own then.
    #[inline]
    pub(crate) fn take(&mut self, waiting: usize) -> bool {
        let limit = self.places.limit();
        if limit == usize::MAX {
            return true;
        }
        self.tell(waiting);
        let has_place = self.places.0.taken.fetch_add(1, Ordering::Relaxed) < limit;
        match has_place {
            true => self.told += 1,
            false => _ = self.places.0.taken.fetch_sub(1, Ordering::Relaxed),
        }
        has_place
    }

    /// So many packets wait now.
    #[inline]
    pub(crate) fn tell(&mut self, waiting: usize) {
        if waiting != self.told && (self.told > 0 || self.places.limit() != usize::MAX) {
            let taken = &self.places.0.taken;
            match waiting.checked_sub(self.told) {
                Some(more) => taken.fetch_add(more, Ordering::Relaxed),
                None => taken.fetch_sub(self.told - waiting, Ordering::Relaxed),
            };
            self.told = waiting;
        }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.tell(0);
    }
}

/// What one of so many workers has of a quota, such that they have all of it together.
fn part(of: u64, worker: usize, workers: usize) -> u64 {
    let (worker, workers) = (worker as u64, (workers as u64).max(1));
    of / workers + u64::from(worker < of % workers)
}

/// Takes what programs said, as much as may be said; the rest is lost.
pub(crate) fn take_said(switch: &mut Switch) -> (Digests, Vec<String>) {
    let effects = &mut switch.forwarder.effects;
    if effects.is_silent() {
        return Default::default();
    }
    let Allowances { digests: may_send, log_lines: may_say, .. } = &switch.traffic.allowances;
    let digests = may_send.of(effects.message_count(), &switch.clock);
    let lines = may_say.of(effects.log.len(), &switch.clock);
    effects.take([digests, lines])
}

/// Other quotas from now on, of all workers of a switch.
pub(crate) fn set(first: &mut Switch, others: &mut [&mut Switch], quotas: Quotas) {
    let now_ns = first.clock.now_ns();
    first.traffic.allowances.set(quotas, now_ns);
    first.traffic.queues.places().set(quotas.queue_places);
    first.state().account().set_limits(quotas.limits());
    let workers = others.len() + 1;
    apply(first, 0, workers);
    for (worker, switch) in (1..).zip(others) {
        switch.traffic.allowances = first.traffic.allowances.clone();
        apply(switch, worker, workers);
    }
}

/// Has one of so many workers heed the quotas that it has its part of.
pub(crate) fn apply(switch: &mut Switch, worker: usize, workers: usize) {
    let buffers = switch.traffic.allowances.quotas.packet_buffers.map(|of| part(of, worker, workers));
    switch.traffic.budget.set_buffers(buffers);
    switch.traffic.queues.heed_places();
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn allowance(per_second: u64) -> Allowance {
        let mut allowance = Allowance::default();
        allowance.set(Some(per_second), 0);
        allowance
    }

    #[test]
    fn a_burst_is_a_batch_or_a_thousandth_of_a_second() {
        // 1000 a second: a batch, then one a millisecond.
        let slow = allowance(1000);
        assert_eq!([slow.take(100, 0), slow.take(1, 999_999), slow.take(5, 3_000_000)], [64, 0, 3]);
        // A million a second: 1000 at once.
        let fast = allowance(1_000_000);
        assert_eq!([fast.take(5000, 0), fast.take(5000, 0), fast.take(5000, SECOND)], [1000, 0, 1000]);
        assert!(fast.is_spent(SECOND) && !fast.is_spent(SECOND + 1000));
        let none = allowance(0);
        assert_eq!((none.take(1, 0), none.take(1, u64::MAX), none.is_spent(SECOND)), (0, 0, true));
        assert_eq!(allowance(UNLIMITED).take(1 << 40, 0), 1 << 40);
    }

    /// However often and when it is asked, in no time more than the burst and what comes in it is allowed, and nothing is lost to rounding.
    #[test]
    fn what_is_allowed_is_exact() {
        let may = allowance(999_983);
        // What comes while the bucket is full is lost.
        let (mut now, mut all, mut seed) = (0u64, may.take(5000, 0), 1u64);
        while now < SECOND {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now = (now + (seed >> 33) % 1900).min(SECOND);
            all += may.take(1 + (seed >> 60), now);
            assert!(u128::from(all) <= 999 + u128::from(now) * 999_983 / u128::from(SECOND));
        }
        assert_eq!(all + may.take(5000, SECOND), 999 + 999_983);
    }

    #[test]
    fn another_rate_keeps_what_is_left() {
        let mut may = allowance(1_000_000);
        assert_eq!(may.take(990, 0), 990);
        let shared = may.clone();
        may.set(Some(1000), 0);
        assert_eq!((may.take(100, 0), shared.take(100, 1_000_000)), (10, 1));
        may.set(Some(0), 1_000_000);
        assert_eq!(shared.take(1, SECOND), 0);
        may.set(Some(1000), SECOND);
        assert_eq!(shared.take(100, SECOND), 64);
        may.set(None, SECOND);
        assert_eq!(may.take(1 << 40, SECOND), 1 << 40);
    }

    #[test]
    fn queues_share_places_also_when_the_quota_comes_later() {
        let places = Places::default();
        let (mut one, mut other) = (Occupied::of(&places), Occupied::of(&places));
        assert!(one.take(0) && one.take(1));
        places.set(Some(3));
        assert!(one.take(2), "two wait already");
        assert!(!one.take(3) && !other.take(0));
        one.tell(1);
        assert!(other.take(0) && other.take(1) && !other.take(2));
        places.set(Some(1));
        drop(one);
        assert!(!other.take(2), "more wait than may, and no more comes");
        other.tell(0);
        assert!(other.take(0));
        places.set(None);
        assert!(other.take(1) && other.take(1000));
    }

    #[test]
    fn workers_have_all_of_a_quota_together() {
        let parts = |of| (0..3).map(|worker| part(of, worker, 3)).collect::<Vec<_>>();
        assert_eq!((parts(11), parts(1), parts(0)), (vec![4, 4, 3], vec![1, 0, 0], vec![0, 0, 0]));
    }
}
