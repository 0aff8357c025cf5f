//! The quota `requests-per-second` of a device.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The name of the quota.
pub(crate) const NAME: &str = "requests-per-second";

/// How many requests a device has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Calls, and messages of streams, that were worked on.
    pub requests: u64,
    /// Those that the quota `requests-per-second` refused.
    pub refused: u64,
}

/// A token bucket: of requests that come at once there may be as many as in a second.
#[derive(Debug)]
pub(crate) struct Requests {
    /// 0: no quota.
    per_second: AtomicU32,
    /// When the bucket is full again, if nothing more comes. Its level is the time until then.
    full_at: Mutex<Instant>,
    requests: AtomicU64,
    refused: AtomicU64,
}

impl Requests {
    pub(crate) fn new(per_second: Option<NonZeroU32>, now: Instant) -> Requests {
        let (requests, refused) = Default::default();
        let per_second = AtomicU32::new(per_second.map_or(0, NonZeroU32::get));
        Requests { per_second, full_at: Mutex::new(now), requests, refused }
    }

    /// Another quota from now on.
    pub(crate) fn set(&self, per_second: Option<NonZeroU32>) {
        self.per_second.store(per_second.map_or(0, NonZeroU32::get), Relaxed);
    }

    /// Whether there may be one more. Without a quota there may.
    pub(crate) fn take(&self, now: Instant) -> Result<(), NonZeroU32> {
        let Some(per_second) = NonZeroU32::new(self.per_second.load(Relaxed)) else {
            self.requests.fetch_add(1, Relaxed);
            return Ok(());
        };
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        // Rounded up, so that there are never more than the quota says.
        let each = Duration::from_nanos(1_000_000_000u64.div_ceil(u64::from(per_second.get())));
        let next = (*full_at).max(now) + each;
        if next > now + Duration::from_secs(1) {
            self.refused.fetch_add(1, Relaxed);
            return Err(per_second);
        }
        *full_at = next;
        self.requests.fetch_add(1, Relaxed);
        Ok(())
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage { requests: self.requests.load(Relaxed), refused: self.refused.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_the_quota_says_over_any_time() {
        for rate in [1u32, 3, 100, 65_536, 1_000_000] {
            let begun = Instant::now();
            let requests = Requests::new(NonZeroU32::new(rate), begun);
            let burst = (0..2 * rate).filter(|_| requests.take(begun).is_ok()).count();
            let is_near =
                |count: usize, most: u32| (most - most / 10_000 - 1..=most).contains(&(count as u32));
            assert!(is_near(burst, rate), "{rate}: {burst}");
            let mut taken = 0;
            for tick in 1..=20 {
                let now = begun + tick * Duration::from_millis(100);
                taken += (0..rate).filter(|_| requests.take(now).is_ok()).count();
            }
            // In two seconds twice as many, but for what rounding takes.
            assert!(is_near(taken, 2 * rate), "{rate}: {taken}");
            let usage = requests.usage();
            assert_eq!(usage.requests, (burst + taken) as u64);
            assert_eq!(usage.requests + usage.refused, 22 * u64::from(rate));
        }
    }

    #[test]
    fn without_a_quota_all_are_counted_alone() {
        let requests = Requests::new(None, Instant::now());
        assert!((0..1000).all(|_| requests.take(Instant::now()).is_ok()));
        assert_eq!(requests.usage(), Usage { requests: 1000, refused: 0 });
    }
}
