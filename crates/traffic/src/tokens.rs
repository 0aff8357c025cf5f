//! Token bucket: a rate on the average, a burst at once.
//!
//! The bucket holds at most `burst` bytes of tokens and fills at `rate`. A frame of `n` bytes on the wire takes `n` tokens and leaves
//! when they are there.
//!
//! **Theorem.** In any interval of `t` seconds frames of at most `burst + rate · t / 8` bytes leave; and a queue that always has a
//! frame to send gets `rate` exactly in the long run.
//! *Proof.* Tokens are taken when frames leave. Those taken in an interval were there at its start, at most `burst`, or came since, at
//! most `rate · t / 8`. While frames wait and the bucket is not full, none of the tokens that come is lost; it is full only when a frame
//! could leave that did not. ∎
//!
//! Tokens are counted in billionths of a bit. A rate in bit/s times nanoseconds is a whole number of these, so nothing is rounded and
//! nothing drifts. Only the time at which a frame leaves is rounded, up to a whole nanosecond, and what comes in it is not lost.
//!
//! A frame longer than the bucket leaves when the bucket is full, and the tokens that it took too many are owed: the rate holds also
//! then, and the burst is that frame. A setting that allows such frames should be refused where it is made.

use crate::setting::{BYTE, MAX_BURST, MAX_RATE, SettingError, within};

/// What a token bucket is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens that come, in bit/s: 1 to [`MAX_RATE`].
    pub rate: u64,
    /// Tokens that the bucket holds, in bytes: 1 to [`MAX_BURST`].
    pub burst: u64,
    /// Bytes that a frame takes on the wire in addition to its own (preamble, checksum, gap between frames).
    pub overhead: u32,
}

/// A token bucket.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    /// Tokens that the bucket lacks to be full, in billionths of a bit, at `since`.
    missing: u64,
    since: u64,
    rate: u64,
    full: u64,
    overhead: u32,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(tokens: Tokens, now_ns: u64) -> Result<TokenBucket, SettingError> {
        let rate = within("rate", "bit/s", tokens.rate, 1..=MAX_RATE)?;
        let burst = within("burst", "bytes", tokens.burst, 1..=MAX_BURST)?;
        Ok(TokenBucket { missing: 0, since: now_ns, rate, full: burst * BYTE, overhead: tokens.overhead })
    }

    /// The setting.
    pub fn tokens(&self) -> Tokens {
        Tokens { rate: self.rate, burst: self.full / BYTE, overhead: self.overhead }
    }

    /// Another setting from now on. The tokens that are there stay, up to the new burst.
    pub fn replace(&mut self, tokens: Tokens, now_ns: u64) -> Result<(), SettingError> {
        let new = TokenBucket::new(tokens, now_ns)?;
        self.settle(now_ns);
        let missing = match self.missing <= self.full {
            true => new.full.saturating_sub(self.full - self.missing),
            false => (self.missing - self.full).saturating_add(new.full),
        };
        *self = TokenBucket { missing, since: self.since, ..new };
        Ok(())
    }

    /// What a frame takes, in billionths of a bit.
    #[inline]
    fn cost(&self, len: u32) -> u64 {
        (u64::from(len) + u64::from(self.overhead)).min(MAX_BURST) * BYTE
    }

    /// When a frame of `len` bytes may leave, if none leaves before it; maybe a time that has passed.
    #[inline]
    pub fn eligible_ns(&self, len: u32) -> u64 {
        let room = self.full - self.cost(len).min(self.full);
        match self.missing <= room {
            true => self.since,
            false => self.since.saturating_add((self.missing - room).div_ceil(self.rate)),
        }
    }

    /// A frame of `len` bytes leaves. The caller has asked [`TokenBucket::eligible_ns`]; if it has not, the tokens are owed.
    #[inline]
    pub fn take(&mut self, len: u32, now_ns: u64) {
        self.settle(now_ns);
        self.missing = self.missing.saturating_add(self.cost(len));
    }

    /// Whole bytes of tokens that are there; negative if some are owed.
    pub fn level(&self, now_ns: u64) -> i64 {
        let missing =
            self.missing.saturating_sub(self.rate.saturating_mul(now_ns.saturating_sub(self.since)));
        ((i128::from(self.full) - i128::from(missing)).div_euclid(i128::from(BYTE))) as i64
    }

    #[inline]
    fn settle(&mut self, now_ns: u64) {
        if now_ns > self.since {
            // What does not fit 64 bits is more than can be missing.
            self.missing = self.missing.saturating_sub(self.rate.saturating_mul(now_ns - self.since));
            self.since = now_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate: u64, burst: u64, overhead: u32) -> TokenBucket {
        TokenBucket::new(Tokens { rate, burst, overhead }, 0).unwrap()
    }

    #[test]
    fn a_hand_computed_case() {
        // 8 Mbit/s are a byte in a microsecond.
        let mut bucket = bucket(8_000_000, 1500, 24);
        assert_eq!(bucket.eligible_ns(1476), 0);
        bucket.take(1476, 0);
        assert_eq!(bucket.eligible_ns(76), 100_000);
        assert_eq!((bucket.level(99_999), bucket.level(100_000)), (99, 100));
        bucket.take(76, 100_000);
        assert_eq!(bucket.eligible_ns(1476), 1_600_000);
        // No more comes than the bucket holds.
        assert_eq!(bucket.level(1_000_000_000_000), 1500);
        bucket.take(1476, 1_000_000_000_000);
        assert_eq!(bucket.eligible_ns(0), 1_000_000_024_000);
    }

    #[test]
    fn a_time_is_rounded_up_and_its_rest_is_not_lost() {
        // 3 Gbit/s: a byte in 2 2/3 ns.
        let mut bucket = bucket(3_000_000_000, 1, 0);
        let mut now = 0;
        let times: Vec<u64> = (0..7)
            .map(|_| {
                now = bucket.eligible_ns(1).max(now);
                bucket.take(1, now);
                now
            })
            .collect();
        assert_eq!(times[..2], [0, 3]);
        // The bucket of a byte is full at 3 ns: what comes between 2 2/3 and 3 has no room.
        assert_eq!(times[6], 18);
        let mut bucket = self::bucket(3_000_000_000, 2, 0);
        let mut now = 0;
        for _ in 0..32 {
            now = bucket.eligible_ns(1).max(now);
            bucket.take(1, now);
        }
        // With room for it: 2 bytes at once, then 30 in 80 ns.
        assert_eq!(now, 80);
    }

    #[test]
    fn a_frame_longer_than_the_bucket_owes() {
        let mut bucket = bucket(8_000_000, 100, 0);
        assert_eq!(bucket.eligible_ns(300), 0);
        bucket.take(300, 0);
        assert_eq!((bucket.level(0), bucket.eligible_ns(300)), (-200, 300_000));
        bucket.take(300, 300_000);
        assert_eq!(bucket.eligible_ns(1), 501_000);
    }

    #[test]
    fn settings_have_limits() {
        let refusal = |rate, burst| {
            TokenBucket::new(Tokens { rate, burst, overhead: 0 }, 0).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(0, 1).unwrap(), "rate is 0 bit/s, it may be 1 to 400000000000 bit/s");
        assert!(refusal(MAX_RATE + 1, 1).is_some() && refusal(1, MAX_BURST + 1).is_some());
        assert_eq!(refusal(1, 0).unwrap(), "burst is 0 bytes, it may be 1 to 1073741824 bytes");
        assert!(refusal(MAX_RATE, MAX_BURST).is_none());
    }

    #[test]
    fn the_rate_is_exact_after_hours_at_any_rate() {
        for rate in [1_000, 64_000, 9_999_991, 1_000_000_007, 100_000_000_003, MAX_RATE] {
            let mut bucket = bucket(rate, 16_000, 24);
            let (mut now, mut bytes, mut seed) = (0u64, 0u64, 1u32);
            for _ in 0..100_000 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let len = 60 + (seed >> 16) % 1459;
                now = bucket.eligible_ns(len).max(now);
                bucket.take(len, now);
                bytes += u64::from(len + 24);
            }
            // All but the first burst came at the rate: as many bytes as fit the time, to a frame's rounding of a nanosecond.
            let came = u128::from(rate) * u128::from(now) / u128::from(BYTE);
            let off = i128::from(bytes) - 16_000 - came as i128;
            assert!((-1 - rate as i128 / i128::from(BYTE)..=0).contains(&off), "{rate}: {off} bytes off");
        }
    }

    #[test]
    fn another_setting_keeps_tokens_and_debts() {
        let mut bucket = bucket(8_000_000, 1000, 0);
        bucket.take(600, 0);
        bucket.replace(Tokens { rate: 80_000_000, burst: 300, overhead: 0 }, 0).unwrap();
        assert_eq!(bucket.level(0), 300);
        bucket.take(400, 0);
        bucket.replace(Tokens { rate: 8_000_000, burst: 5000, overhead: 0 }, 0).unwrap();
        assert_eq!((bucket.level(0), bucket.level(1_000_000)), (-100, 900));
        assert!(bucket.replace(Tokens { rate: 0, burst: 1, overhead: 0 }, 5).is_err());
    }

    /// A bucket by its definition, in 128 bits, from the whole list of what was taken.
    fn slow_level(rate: u64, burst: u64, taken: &[(u64, u64)], now: u64) -> i128 {
        let (mut level, mut at) = (i128::from(burst) * i128::from(BYTE), 0);
        let full = level;
        for (time, bytes) in taken.iter().copied().chain([(now, 0)]) {
            level = full.min(level + i128::from(rate) * i128::from(time - at))
                - i128::from(bytes) * i128::from(BYTE);
            at = time;
        }
        level
    }

    proptest! {
        #[test]
        fn frames_leave_as_the_definition_says(
            rate in prop_oneof![1u64..1_000_000, 1u64..=MAX_RATE],
            burst in prop_oneof![1u64..10_000, 1u64..=MAX_BURST],
            overhead in 0u32..50,
            frames in prop::collection::vec((1u32..10_000, 0u64..1_000_000_000), 1..40),
        ) {
            let mut bucket = bucket(rate, burst, overhead);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for (len, wait) in frames {
                let bytes = u64::from(len + overhead);
                let wanted = i128::from(bytes.min(burst)) * i128::from(BYTE);
                let eligible = bucket.eligible_ns(len).max(now);
                prop_assert!(slow_level(rate, burst, &taken, eligible) >= wanted);
                if eligible > now {
                    prop_assert!(slow_level(rate, burst, &taken, eligible - 1) < wanted);
                }
                now = eligible + if wait % 3 == 0 { wait } else { 0 };
                bucket.take(len, now);
                taken.push((now, bytes));
                let level = slow_level(rate, burst, &taken, now).div_euclid(i128::from(BYTE));
                prop_assert_eq!(i128::from(bucket.level(now)), level);
            }
            // The theorem, for every interval between two frames.
            for from in 0..taken.len() {
                let mut sum = 0;
                for (time, bytes) in &taken[from..] {
                    sum += u128::from(*bytes);
                    let most = u128::from(burst.max(11_000)) * u128::from(BYTE)
                        + u128::from(rate) * u128::from(time - taken[from].0);
                    prop_assert!(sum * u128::from(BYTE) <= most);
                }
            }
        }
    }
}
