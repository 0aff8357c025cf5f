//! Asynchronous traffic shaping of IEEE 802.1Q, 8.6.5.6 and 8.6.11 (from 802.1Qcr).
//!
//! A frame gets an *eligibility time* when it comes, from the scheduler of its stream, and may leave from then on. A scheduler has a
//! committed rate and burst, a token bucket; schedulers of one *group* (the streams from one port of one class into a queue) also keep
//! the order of their frames. The eligibility time is the latest of
//! - the arrival of the frame,
//! - the last eligibility time of the group,
//! - when the scheduler's bucket has tokens for the frame.
//!
//! A frame that would wait longer than the group's *largest residence time* is discarded, and leaves no trace in bucket or group. So the
//! eligibility times of a group never fall: a FIFO of its frames is in their order. Where frames of several groups go to one queue, the
//! one with the earliest eligibility time leaves first.
//!
//! **Conformance.** In any interval of `t` seconds, at most `burst + rate · t / 8` bytes of a scheduler become eligible: it is the
//! theorem of [`crate::tokens`], with frames that leave when they are eligible.
//!
//! **Delay** (Specht and Samii, ECRTS 2016; Le Boudec, 2018: shaping is free). Let frames pass a FIFO system that delays each of them by
//! at most `D`, and then the schedulers of one group. If each stream conforms to its scheduler's rate and burst where it enters the
//! system, every frame is eligible at most `D` after it entered.
//! *Proof* by induction over the frames. Frame `n` entered at `A(n)`. It arrives at `A(n) + D` at the latest. The frame before it was
//! eligible at `A(n-1) + D <= A(n) + D` at the latest. And the bucket: it would have tokens for the frame at `A(n)` at the latest if all
//! frames of the stream had been eligible when they entered, for the stream conforms; so at `A(n) + D` if all had been `D` later; and
//! none was eligible later than that, which can only bring the time forward. ∎
//!
//! With the bound of a strict priority queue, a hop so delays at most `(b + l) / (R - r') + n / R`, with the bursts `b` of all streams of
//! the class and higher ones less the frame itself, the longest lower frame `l`, the rate `R` of the port, the rates `r'` of higher
//! classes and the frame `n`; and streams leave the shaper with the burst with which they came to the hop, so bounds of hops add up.
//!
//! Eligibility times are whole nanoseconds, rounded up; the tokens that come until then are not lost.

use crate::setting::{SECOND, SettingError, within};
use crate::tokens::{TokenBucket, Tokens};

/// Longest time that a frame may be told to wait.
pub const MAX_RESIDENCE: u64 = 3600 * SECOND;

/// Schedulers whose frames keep their order.
#[derive(Clone, Debug)]
pub struct Group {
    eligible: u64,
    residence: u64,
}

impl Group {
    /// A group whose frames wait at most so long: 1 ns to [`MAX_RESIDENCE`].
    pub fn new(residence_ns: u64) -> Result<Group, SettingError> {
        let residence = within("largest residence time", "ns", residence_ns, 1..=MAX_RESIDENCE)?;
        Ok(Group { eligible: 0, residence })
    }

    /// The largest residence time.
    pub fn residence_ns(&self) -> u64 {
        self.residence
    }

    /// The last eligibility time that was given.
    pub fn eligible_ns(&self) -> u64 {
        self.eligible
    }
}

/// Why a frame gets no eligibility time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ineligible {
    /// It would wait longer than the largest residence time.
    TooLate,
    /// It is longer, with its overhead on the wire, than the committed burst: it would never conform.
    TooLong,
}

/// The scheduler of a stream, or of some streams together.
#[derive(Clone, Debug)]
pub struct Scheduler {
    bucket: TokenBucket,
}

impl Scheduler {
    /// A scheduler with a full bucket. The committed burst should be a longest frame at least.
    pub fn new(committed: Tokens, now_ns: u64) -> Result<Scheduler, SettingError> {
        Ok(Scheduler { bucket: TokenBucket::new(committed, now_ns)? })
    }

    /// Committed rate and burst.
    pub fn committed(&self) -> Tokens {
        self.bucket.tokens()
    }

    /// Another rate and burst from now on; the tokens that are there stay, up to the new burst.
    pub fn replace(&mut self, committed: Tokens, now_ns: u64) -> Result<(), SettingError> {
        self.bucket.replace(committed, now_ns)
    }

    /// Gives a frame of `len` bytes that arrives now its eligibility time.
    #[inline]
    pub fn assign(&mut self, group: &mut Group, len: u32, now_ns: u64) -> Result<u64, Ineligible> {
        let Tokens { burst, overhead, .. } = self.bucket.tokens();
        if u64::from(len) + u64::from(overhead) > burst {
            return Err(Ineligible::TooLong);
        }
        let eligible = self.bucket.eligible_ns(len).max(group.eligible).max(now_ns);
        if eligible - now_ns > group.residence {
            return Err(Ineligible::TooLate);
        }
        group.eligible = eligible;
        self.bucket.take(len, eligible);
        Ok(eligible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{MAX_RATE, wire_ns};
    use proptest::prelude::*;

    const SECONDS: u64 = 1_000_000_000;

    fn scheduler(rate: u64, burst: u64) -> Scheduler {
        Scheduler::new(Tokens { rate, burst, overhead: 0 }, 0).unwrap()
    }

    #[test]
    fn a_hand_computed_case() {
        // A byte in a microsecond, a burst of 1000; frames of 600 at 0, 0 and 100 us.
        let (mut first, mut group) = (scheduler(8_000_000, 1000), Group::new(SECONDS).unwrap());
        assert_eq!(first.assign(&mut group, 600, 0), Ok(0));
        assert_eq!(first.assign(&mut group, 600, 0), Ok(200_000));
        assert_eq!(first.assign(&mut group, 600, 100_000), Ok(800_000));
        // Another stream of the group keeps the order, a stream of another group does not.
        let mut second = scheduler(8_000_000, 1000);
        assert_eq!(second.assign(&mut group, 600, 100_000), Ok(800_000));
        let (mut third, mut other) = (scheduler(8_000_000, 1000), Group::new(SECONDS).unwrap());
        assert_eq!(third.assign(&mut other, 600, 100_000), Ok(100_000));
        // The second stream had to wait with a full bucket: it has 400 bytes at 800 us.
        assert_eq!(second.assign(&mut group, 600, 900_000), Ok(1_000_000));
    }

    #[test]
    fn a_frame_that_would_wait_too_long_leaves_no_trace() {
        let (mut scheduler, mut group) = (scheduler(8_000_000, 1000), Group::new(500_000).unwrap());
        assert_eq!(scheduler.assign(&mut group, 1000, 0), Ok(0));
        assert_eq!(scheduler.assign(&mut group, 501, 0), Err(Ineligible::TooLate));
        assert_eq!(scheduler.assign(&mut group, 500, 0), Ok(500_000));
        assert_eq!(scheduler.assign(&mut group, 1, 0), Err(Ineligible::TooLate));
        assert_eq!(scheduler.assign(&mut group, 1, 1000), Ok(501_000));
        assert_eq!(scheduler.assign(&mut group, 1001, SECONDS), Err(Ineligible::TooLong));
    }

    #[test]
    fn settings_have_limits() {
        assert_eq!(
            Group::new(0).unwrap_err().to_string(),
            "largest residence time is 0 ns, it may be 1 to 3600000000000 ns"
        );
        assert!(Group::new(MAX_RESIDENCE + 1).is_err());
        assert!(Scheduler::new(Tokens { rate: MAX_RATE + 1, burst: 1, overhead: 0 }, 0).is_err());
    }

    /// `ProcessFrame` of 8.6.11.3, in 128 bits: times in nanoseconds times the committed rate. Only the eligibility time is rounded.
    struct Slow {
        rate: i128,
        burst_bits: i128,
        bucket_empty: i128,
    }

    impl Slow {
        fn process(&mut self, group: &mut u64, residence: u64, bytes: u64, arrival: u64) -> Option<u64> {
            let length_recovery = i128::from(bytes) * 8 * i128::from(SECOND);
            let empty_to_full = self.burst_bits * i128::from(SECOND);
            let scheduler_eligible = self.bucket_empty + length_recovery;
            let bucket_full = self.bucket_empty + empty_to_full;
            let rounded = (scheduler_eligible + self.rate - 1).div_euclid(self.rate);
            let eligible = i128::from(arrival).max(i128::from(*group)).max(rounded);
            if eligible > i128::from(arrival + residence) {
                return None;
            }
            *group = eligible as u64;
            let time = eligible * self.rate;
            self.bucket_empty = match time < bucket_full {
                true => scheduler_eligible,
                false => scheduler_eligible + time - bucket_full,
            };
            Some(eligible as u64)
        }
    }

    fn setting() -> impl Strategy<Value = (u64, u64)> {
        (prop_oneof![1_000u64..10_000_000, 1u64..=MAX_RATE], 1500u64..20_000)
    }

    proptest! {
        #[test]
        fn eligibility_times_are_those_of_the_standard(
            settings in prop::collection::vec((setting(), 0usize..2), 1..5),
            residence in prop_oneof![Just(MAX_RESIDENCE), 1u64..10_000_000],
            frames in prop::collection::vec((0usize..5, 1u32..1500, 0u64..3_000_000), 1..200),
        ) {
            let mut groups = [Group::new(residence).unwrap(), Group::new(residence).unwrap()];
            let mut slow_groups = [0u64; 2];
            let (mut now, mut fast, mut slow) = (0, Vec::new(), Vec::new());
            for ((rate, burst), _) in &settings {
                fast.push(scheduler(*rate, *burst));
                let (rate, burst_bits) = (i128::from(*rate), i128::from(burst * 8));
                // Full at time 0.
                slow.push(Slow { rate, burst_bits, bucket_empty: -burst_bits * i128::from(SECOND) });
            }
            for (which, len, wait) in frames {
                let which = which % settings.len();
                let group = settings[which].1;
                now += if wait % 4 == 0 { wait } else { 0 };
                let found = fast[which].assign(&mut groups[group], len, now);
                let wanted = slow[which].process(&mut slow_groups[group], residence, len.into(), now);
                prop_assert_eq!(found, wanted.ok_or(Ineligible::TooLate));
            }
        }

        /// Streams that conform pass a FIFO link, on which frames of others come in between, and the schedulers of a group.
        #[test]
        fn delay_and_burst_are_within_their_bounds(
            rates in prop::collection::vec(1u64..100, 1..8), load in 1u64..=100, seed in any::<u64>()
        ) {
            let link = 1_000_000_000u64;
            let sum: u64 = rates.iter().sum();
            let mut random = seed | 1;
            let mut next = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random >> 20) % below
            };
            let settings: Vec<Tokens> = rates
                .iter()
                .map(|rate| Tokens { rate: (link * rate * load / sum / 100).max(1000), burst: 1600 + next(5000), overhead: 0 })
                .collect();
            // Each stream sends frames as soon as it may, or a little later.
            let mut sent: Vec<(u64, usize, u32)> = Vec::new();
            for (stream, tokens) in settings.iter().enumerate() {
                let (mut source, mut now) = (TokenBucket::new(*tokens, 0).unwrap(), next(100_000));
                for _ in 0..100 {
                    let len = 64 + next(1455) as u32;
                    now = source.eligible_ns(len).max(now) + if next(4) == 0 { next(200_000) } else { 0 };
                    source.take(len, now);
                    sent.push((now, stream, len));
                }
            }
            sent.sort();
            let bursts: u64 = settings.iter().map(|tokens| tokens.burst).sum();
            // Bursts and one other frame at the rate of the link; and a nanosecond for the rounding of each frame of a busy time.
            let bound = wire_ns(bursts + 1538, link);
            let mut group = Group::new(MAX_RESIDENCE).unwrap();
            let mut schedulers: Vec<_> = settings.iter().map(|tokens| Scheduler::new(*tokens, 0).unwrap()).collect();
            let mut eligible: Vec<Vec<(u64, u32)>> = vec![Vec::new(); settings.len()];
            let mut free = 0;
            for (entered, stream, len) in sent {
                if free <= entered {
                    // The link is idle, and another frame may just have begun.
                    free = entered + next(2) * wire_ns(1538, link);
                }
                free += wire_ns(len.into(), link);
                prop_assert!(free - entered <= bound);
                let time = schedulers[stream].assign(&mut group, len, free).unwrap();
                prop_assert!(time - entered <= bound + 1, "{} after {}", time - entered, bound);
                eligible[stream].push((time, len));
            }
            for (tokens, frames) in settings.iter().zip(&eligible) {
                for from in 0..frames.len() {
                    let mut bytes = 0u64;
                    for (time, len) in &frames[from..] {
                        bytes += u64::from(*len);
                        let came = u128::from(tokens.rate) * u128::from(time - frames[from].0) / u128::from(8 * SECOND);
                        prop_assert!(u128::from(bytes) <= u128::from(tokens.burst) + came);
                    }
                }
            }
        }
    }
}
