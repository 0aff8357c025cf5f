//! Redundancy management: of the two copies of a frame, the first valid one is delivered.
//!
//! Both networks carry every frame. A copy is redundant if a frame with its number was delivered not longer than **SkewMax** ago, the
//! largest difference of the delays of both networks. Numbers come again after 255 frames, so SkewMax has to be below the time that
//! half of them take ([`max_skew_ns`]).
//!
//! ```text
//!   A:  7   9        10            8 was lost on A
//!   B:    7    8   9      10
//!   =   7   9  8     10            order: any
//!   =   7   9        10            order: increasing; 8 is late
//! ```
//!
//! **Order.** When a frame is lost on the faster network, its copy comes after the next frame. [`Order::Any`] delivers it then: no frame is
//! lost that one network brought. [`Order::Increasing`] keeps the order of the sender and drops it. Public descriptions of the
//! standard have both.

use crate::limits::{LimitError, within};
use crate::regulator::Bag;
use crate::sequence::{RESET_NUMBER, steps_between};

/// Largest SkewMax in nanoseconds.
pub const MAX_SKEW_NS: u64 = 1_000_000_000;

/// Numbers after one that are newer than it; the others are older.
pub const NEWER_NUMBERS: u8 = 127;

/// The largest SkewMax of a VL with this BAG: at most [`NEWER_NUMBERS`] frames are sent in that time.
pub fn max_skew_ns(bag: Bag) -> u64 {
    (bag.ns() * u64::from(NEWER_NUMBERS)).min(MAX_SKEW_NS)
}

/// Whether frames may be delivered in another order than they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A frame that comes after a newer one is delivered, if its copy was not.
    #[default]
    Any,
    /// It is dropped.
    Increasing,
}

/// How redundant frames are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedundancyRule {
    skew_max_ns: u64,
    /// Whether frames may be delivered in another order than they were sent.
    pub order: Order,
}

impl RedundancyRule {
    /// With this SkewMax, in any order, for a VL with this BAG.
    ///
    /// # Errors
    /// [`LimitError`] above [`max_skew_ns`].
    pub fn new(skew_max_ns: u64, bag: Bag) -> Result<RedundancyRule, LimitError> {
        within("SkewMax", skew_max_ns, (0, max_skew_ns(bag)), "ns")?;
        Ok(RedundancyRule { skew_max_ns, order: Order::Any })
    }

    /// SkewMax in nanoseconds.
    pub fn skew_max_ns(&self) -> u64 {
        self.skew_max_ns
    }
}

/// What redundancy management says of a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// It is the first of its copies: delivered.
    First,
    /// Its copy was delivered before.
    Redundant,
    /// A newer frame was delivered before, and the order is to increase.
    Late,
}

/// What was said so far of the valid frames of a VL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedundancyCounters {
    /// Frames delivered.
    pub delivered: u64,
    /// Copies of frames that were delivered before.
    pub redundant: u64,
    /// Frames dropped because a newer one was delivered before.
    pub late: u64,
}

/// Whether a frame was sent after another one, when both came within SkewMax.
fn is_newer(last: u8, number: u8) -> bool {
    match number {
        // A reset takes longer than SkewMax: after a low number it is the copy of the first frame that comes late.
        RESET_NUMBER => last > NEWER_NUMBERS,
        _ => matches!(steps_between(last, number), Some(1..=NEWER_NUMBERS)),
    }
}

/// No frame of a number was delivered yet.
const NEVER: u64 = u64::MAX;

/// Redundancy management of one VL.
#[derive(Clone, Debug)]
pub struct RedundancyManager {
    /// When a frame of each number was delivered last.
    delivered_ns: Box<[u64; 256]>,
    /// The number that was delivered last, and when.
    last: Option<(u8, u64)>,
    counters: RedundancyCounters,
}

impl Default for RedundancyManager {
    fn default() -> RedundancyManager {
        let counters = RedundancyCounters::default();
        RedundancyManager { delivered_ns: Box::new([NEVER; 256]), last: None, counters }
    }
}

impl RedundancyManager {
    /// Decides about a valid frame that came at this time.
    pub fn check(&mut self, rule: &RedundancyRule, now_ns: u64, number: u8) -> Redundancy {
        let verdict = self.verdict(rule, now_ns, number);
        match verdict {
            Redundancy::First => {
                // The end of time is a moment later than that.
                self.delivered_ns[usize::from(number)] = now_ns.min(NEVER - 1);
                self.last = Some((number, now_ns));
                self.counters.delivered += 1;
            }
            Redundancy::Redundant => self.counters.redundant += 1,
            Redundancy::Late => self.counters.late += 1,
        }
        verdict
    }

    fn verdict(&self, rule: &RedundancyRule, now_ns: u64, number: u8) -> Redundancy {
        // Stamps of two interfaces may be out of order by a little: a copy "before" the frame is a copy.
        let is_recent = |at_ns: u64| now_ns.saturating_sub(at_ns) <= rule.skew_max_ns;
        let delivered_ns = self.delivered_ns[usize::from(number)];
        if delivered_ns != NEVER && is_recent(delivered_ns) {
            return Redundancy::Redundant;
        }
        match (rule.order, self.last) {
            (Order::Increasing, Some((last, at_ns))) if is_recent(at_ns) && !is_newer(last, number) => {
                Redundancy::Late
            }
            _ => Redundancy::First,
        }
    }

    /// As after a reset of the receiver; what was counted stays.
    pub fn reset(&mut self) {
        *self = RedundancyManager { counters: self.counters, ..RedundancyManager::default() };
    }

    /// What has happened so far.
    pub fn counters(&self) -> RedundancyCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrity::{IntegrityChecker, IntegrityRule};
    use crate::sequence::next_number;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn rule(skew_ms: u64, order: Order) -> RedundancyRule {
        let rule = RedundancyRule::new(skew_ms * MS, Bag::from_ns(8 * MS).unwrap()).unwrap();
        RedundancyRule { order, ..rule }
    }

    /// What is said of frames (milliseconds, number).
    fn verdicts(rule: &RedundancyRule, frames: &[(u64, u8)]) -> Vec<Redundancy> {
        let mut manager = RedundancyManager::default();
        frames.iter().map(|&(ms, number)| manager.check(rule, ms * MS, number)).collect()
    }

    use Redundancy::{First, Late, Redundant};

    #[test]
    fn the_first_copy_is_delivered_and_the_second_is_not() {
        let frames = [(0, 0), (3, 0), (8, 1), (9, 1), (16, 2), (24, 3), (26, 3)];
        let expected = [First, Redundant, First, Redundant, First, First, Redundant];
        for order in [Order::Any, Order::Increasing] {
            assert_eq!(verdicts(&rule(5, order), &frames), expected);
        }
    }

    #[test]
    fn skew_max_itself_is_redundant_and_a_nanosecond_more_is_not() {
        let rule = rule(5, Order::Any);
        let mut manager = RedundancyManager::default();
        assert_eq!(manager.check(&rule, 10, 7), First);
        assert_eq!(manager.check(&rule, 10 + 5 * MS, 7), Redundant);
        // The time counts from the frame that was delivered.
        assert_eq!(manager.check(&rule, 11 + 5 * MS, 7), First);
        // A copy with an earlier stamp.
        assert_eq!(manager.check(&rule, 11, 7), Redundant);
        let counters = RedundancyCounters { delivered: 2, redundant: 2, late: 0 };
        assert_eq!(manager.counters(), counters);
    }

    #[test]
    fn a_frame_after_a_newer_one() {
        // 8 was lost on A: its copy of B comes after 9 of A.
        let frames = [(0, 7), (1, 7), (16, 9), (17, 8), (18, 9), (24, 10)];
        let any = [First, Redundant, First, First, Redundant, First];
        assert_eq!(verdicts(&rule(20, Order::Any), &frames), any);
        let increasing = [First, Redundant, First, Late, Redundant, First];
        assert_eq!(verdicts(&rule(20, Order::Increasing), &frames), increasing);
    }

    #[test]
    fn a_reset_of_the_sender_is_delivered_in_either_order() {
        // 200 of B comes after the reset.
        let frames = [(0, 199), (8, 200), (16, 0), (17, 0), (18, 201), (24, 1)];
        let expected = [First, First, First, Redundant, First, First];
        assert_eq!(verdicts(&rule(20, Order::Any), &frames), expected);
        let expected = [First, First, First, Redundant, Late, First];
        assert_eq!(verdicts(&rule(20, Order::Increasing), &frames), expected);
    }

    #[test]
    fn the_first_frame_of_all_may_be_late_too() {
        // 0 was lost on A.
        let frames = [(0, 1), (1, 0), (2, 1)];
        assert_eq!(verdicts(&rule(20, Order::Any), &frames), [First, First, Redundant]);
        assert_eq!(verdicts(&rule(20, Order::Increasing), &frames), [First, Late, Redundant]);
    }

    #[test]
    fn after_skew_max_any_number_is_new() {
        let frames = [(0, 100), (50, 60), (100, 100)];
        assert_eq!(verdicts(&rule(5, Order::Increasing), &frames), [First; 3]);
    }

    #[test]
    fn skew_max_is_below_half_of_the_numbers() {
        let bag = Bag::from_ns(MS).unwrap();
        assert!(RedundancyRule::new(127 * MS, bag).is_ok());
        let error = RedundancyRule::new(127 * MS + 1, bag).unwrap_err().to_string();
        assert_eq!(error, "SkewMax is 127000001 ns: 0 to 127000000 ns is allowed");
    }

    /// A frame on its way: which, its number, when it arrives on each network, if it does.
    type Sent = (usize, u8, [Option<u64>; 2]);

    /// A sender that may be reset, two networks that keep the order, lose frames and differ by at most SkewMax.
    fn sent(bag: u64, skew: u64, frames: &[(u64, u64, u64, bool, bool, bool)]) -> Vec<Sent> {
        let (mut number, mut at, mut arrived) = (0, 0, [0u64; 2]);
        let mut sent = Vec::new();
        for (index, &(pause, a, b, has_a, has_b, resets)) in frames.iter().enumerate() {
            // A reset takes longer than SkewMax: copies of the first 0 are gone when the next one comes.
            at += bag + pause + if resets { 2 * skew + bag } else { 0 };
            number = if index == 0 || resets { 0 } else { next_number(number) };
            // Delays of at most SkewMax; a frame does not pass the one before it.
            arrived = [arrived[0].max(at + a % (skew + 1)), arrived[1].max(at + b % (skew + 1))];
            sent.push((index, number, [has_a.then_some(arrived[0]), has_b.then_some(arrived[1])]));
        }
        sent
    }

    /// What is delivered of those: by integrity checking and redundancy management.
    fn deliver(sent: &[Sent], rule: &RedundancyRule) -> Vec<usize> {
        let mut arrivals = Vec::new();
        for (index, number, times) in sent {
            for (network, time) in times.iter().enumerate() {
                arrivals.extend(time.map(|time| (time, network, *index, *number)));
            }
        }
        arrivals.sort_unstable();
        let (mut checkers, mut manager) = ([IntegrityChecker::default(); 2], RedundancyManager::default());
        let mut delivered = Vec::new();
        for (time, network, index, number) in arrivals {
            let valid = checkers[network].check(&IntegrityRule::default(), number).is_valid();
            if valid && manager.check(rule, time, number) == First {
                delivered.push(index);
            }
        }
        delivered
    }

    fn frames() -> impl Strategy<Value = Vec<(u64, u64, u64, bool, bool, bool)>> {
        let lost = || prop::bool::weighted(0.8);
        let one = (0u64..3_000_000, any::<u64>(), any::<u64>(), lost(), lost(), prop::bool::weighted(0.02));
        prop::collection::vec(one, 1..700)
    }

    proptest! {
        /// Never twice, and in any order nothing is lost that a network without losses brought, whatever the other one does; an increasing
        /// order increases.
        #[test]
        fn delivered_once_and_not_lost_while_one_network_is_fine(
            frames in frames(),
            bag in 100_000u64..4_000_000,
            skew_bags in 0u64..60,
            fine in 0usize..3,
        ) {
            let mut rule = RedundancyRule::new(skew_bags * bag, Bag::from_ns(bag).unwrap()).unwrap();
            let mut sent = sent(bag, skew_bags * bag, &frames);
            let all: Vec<_> =
                frames.iter().map(|&(pause, a, b, _, _, resets)| (pause, a, b, true, true, resets)).collect();
            let complete = self::sent(bag, skew_bags * bag, &all);
            if fine < 2 {
                for ((_, _, times), (_, _, all)) in sent.iter_mut().zip(&complete) {
                    times[fine] = all[fine];
                }
            }
            let delivered = deliver(&sent, &rule);
            let mut once = delivered.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), delivered.len(), "delivered twice");
            if fine < 2 {
                prop_assert_eq!(once.len(), sent.len(), "lost");
            }
            rule.order = Order::Increasing;
            let delivered = deliver(&sent, &rule);
            prop_assert!(delivered.is_sorted_by(|before, after| before < after), "{:?}", delivered);
        }
    }
}
