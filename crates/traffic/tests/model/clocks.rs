//! Nodes of the model that wait for a time.

use millrace_traffic::Asynchronous;
use millrace_traffic::gates::GateList;

/// Units of a bucket, a billionth of a bit, in a byte.
const BYTE: i128 = 8_000_000_000;

/// A token bucket: a level that rises.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    pub(crate) rate: i128,
    pub(crate) burst: i128,
    pub(crate) level: i128,
    pub(crate) at: u64,
}

impl Bucket {
    pub(crate) fn new(rate: u64, burst: u64, now: u64) -> Bucket {
        let burst = i128::from(burst) * BYTE;
        Bucket { rate: rate.into(), burst, level: burst, at: now }
    }

    pub(crate) fn level(&self, now: u64) -> i128 {
        (self.level + self.rate * i128::from(now - self.at)).min(self.burst)
    }

    /// When a packet may leave, from now on.
    pub(crate) fn from(&self, len: u32, now: u64) -> u64 {
        let lacks = i128::from(len) * BYTE - self.level(now);
        if lacks <= 0 { now } else { now + (lacks as u128).div_ceil(self.rate as u128) as u64 }
    }

    pub(crate) fn take(&mut self, len: u32, now: u64) {
        (self.level, self.at) = (self.level(now) - i128::from(len) * BYTE, now);
    }

    /// Another rate and burst: the level stays, up to the burst.
    pub(crate) fn change(&mut self, rate: u64, burst: u64, now: u64) {
        let level = self.level(now);
        *self = Bucket::new(rate, burst, now);
        self.level = level.min(self.burst);
    }
}

/// Credit of 802.1Q, 8.6.8.2. While a frame is sent its whole cost has been taken, and time goes on at its end.
#[derive(Clone, Debug)]
pub(crate) struct Credit {
    pub(crate) idle: i128,
    pub(crate) rate: i128,
    pub(crate) high: i128,
    pub(crate) low: i128,
    pub(crate) credit: i128,
    /// To this time the credit is known.
    pub(crate) at: u64,
    pub(crate) waiting: bool,
}

impl Credit {
    pub(crate) fn new(idle: u64, rate: u64, high: u64, low: u64, now: u64) -> Credit {
        let (high, low) = (i128::from(high) * BYTE, -i128::from(low) * BYTE);
        Credit { idle: idle.into(), rate: rate.into(), high, low, credit: 0, at: now, waiting: false }
    }

    fn go(&mut self, now: u64) {
        if now >= self.at {
            let most = if self.waiting { self.high } else { 0 };
            self.credit = (self.credit + self.idle * i128::from(now - self.at)).min(most);
            self.at = now;
        }
    }

    pub(crate) fn wait(&mut self, waiting: bool, now: u64) {
        self.go(now);
        self.waiting = waiting;
        self.go(now);
    }

    pub(crate) fn from(&self, now: u64) -> u64 {
        let owed = (-self.credit).max(0) as u128;
        now.max(self.at + owed.div_ceil(self.idle as u128) as u64)
    }

    pub(crate) fn send(&mut self, len: u32, now: u64) {
        self.go(now);
        let cost = i128::from(len) * BYTE;
        let time = (cost as u128).div_ceil(self.rate as u128) as u64;
        self.credit = (self.credit + self.idle * i128::from(time) - cost).max(self.low);
        self.at += time;
    }
}

/// The first time from `now` on at which a gate is open for `length`: each entry of some cycles is looked at.
/// The list starts at `start`; before, the gates have their initial states.
pub(crate) fn opens(
    list: &GateList,
    start: u64,
    gate: u8,
    initial: u8,
    length: u64,
    now: u64,
) -> Option<u64> {
    let cycle: u64 = list.entries.iter().map(|entry| entry.interval_ns).sum();
    // Stretches of time with the state of the gate: before the list, then cycle after cycle.
    let mut stretches = Vec::new();
    if now < start {
        stretches.push((now, start, initial >> gate & 1 == 1));
    }
    let mut at = match now < start {
        true => start,
        false => start + (now - start) / cycle * cycle,
    };
    let end = at + 3 * cycle + length;
    while at < end {
        for entry in &list.entries {
            stretches.push((at, at + entry.interval_ns, entry.open >> gate & 1 == 1));
            at += entry.interval_ns;
        }
    }
    let mut since = None;
    for (from, until, is_open) in stretches {
        let (from, until) = (from.max(now), until.max(now));
        if !is_open {
            since = None;
        } else {
            let start = *since.get_or_insert(from);
            if until - start >= length {
                return Some(start);
            }
        }
    }
    None
}

/// Schedulers of 802.1Q, 8.6.11.3, with its variables. Times of a scheduler are in units of 1 / rate of a nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct Shaping {
    setting: Asynchronous,
    bucket_empty: Vec<i128>,
    group: Vec<u64>,
}

impl Shaping {
    pub(crate) fn new(setting: Asynchronous, now: u64) -> Shaping {
        let full = i128::from(now) * i128::from(setting.rate) - i128::from(setting.burst) * BYTE;
        Shaping {
            bucket_empty: vec![full; setting.streams as usize],
            group: vec![0; setting.groups as usize],
            setting,
        }
    }

    pub(crate) fn assign(&mut self, stream: u32, len: u32, now: u64) -> Option<u64> {
        let stream = (stream % self.setting.streams) as usize;
        let group = stream % self.group.len();
        let rate = i128::from(self.setting.rate);
        let length_recovery = i128::from(len) * BYTE;
        let empty_to_full = i128::from(self.setting.burst) * BYTE;
        let scheduler_eligibility = self.bucket_empty[stream] + length_recovery;
        let bucket_full = self.bucket_empty[stream] + empty_to_full;
        let whole = scheduler_eligibility.max(0) as u128;
        let eligibility = now.max(self.group[group]).max(whole.div_ceil(rate as u128) as u64);
        if eligibility > now + self.setting.residence_ns {
            return None;
        }
        self.group[group] = eligibility;
        let eligible = i128::from(eligibility) * rate;
        self.bucket_empty[stream] = match eligible < bucket_full {
            true => scheduler_eligibility,
            false => scheduler_eligibility + eligible - bucket_full,
        };
        Some(eligibility)
    }
}
