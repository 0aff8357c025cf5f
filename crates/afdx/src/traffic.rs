//! Messages that measure: each has a counter and the time when it was sent, so that its receiver knows what was lost, what came twice, and
//! how long it took.
//!
//! ```text
//!   'M' 'R' 'E' 'S'   counter 8   nanoseconds 8   filling
//! ```

use crate::limits::{LimitError, within};

/// What a message that measures begins with.
const MAGIC: [u8; 4] = *b"MRES";

/// Bytes of the shortest message that measures.
pub const STAMP_BYTES: usize = 20;

/// Messages that come later than so many newer ones are counted as old; they may be the first or a second copy.
pub const METER_WINDOW: u64 = 4096;

/// Periods of messages in nanoseconds, least and most.
pub const PERIOD_LIMITS_NS: (u64, u64) = (10_000, 3_600_000_000_000);

/// Makes a message each period.
#[derive(Clone, Debug)]
pub struct Source {
    period_ns: u64,
    next_ns: u64,
    counter: u64,
    message: Vec<u8>,
}

impl Source {
    /// Messages of so many bytes, the first at this time.
    ///
    /// # Errors
    /// [`LimitError`] for a period outside of [`PERIOD_LIMITS_NS`], or a message that is too short for what it has to say or longer than
    /// `longest`.
    pub fn new(first_ns: u64, period_ns: u64, length: usize, longest: usize) -> Result<Source, LimitError> {
        within("the period of messages", period_ns, PERIOD_LIMITS_NS, "ns")?;
        within("the length of messages", length as u64, (STAMP_BYTES as u64, longest as u64), "bytes")?;
        Ok(Source { period_ns, next_ns: first_ns, counter: 0, message: vec![0; length] })
    }

    /// When the next message is due.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The next message, if it is due at this time. Who is late by a whole period or more leaves those periods out.
    pub fn due(&mut self, now_ns: u64) -> Option<&[u8]> {
        if now_ns < self.next_ns {
            return None;
        }
        let periods = (now_ns - self.next_ns) / self.period_ns + 1;
        self.next_ns = self.next_ns.saturating_add(periods.saturating_mul(self.period_ns));
        self.message[..4].copy_from_slice(&MAGIC);
        self.message[4..12].copy_from_slice(&self.counter.to_be_bytes());
        self.message[12..20].copy_from_slice(&now_ns.to_be_bytes());
        Some(&self.message)
    }

    /// The message was taken: the next one has the next counter. One that was not leaves no gap that its receiver would take for a loss.
    pub fn sent(&mut self) {
        self.counter += 1;
    }

    /// Messages that were sent.
    pub fn count(&self) -> u64 {
        self.counter
    }
}

/// What a receiver knows of the messages of one source.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Bit N % [`METER_WINDOW`]: whether message N has come, for those up to the newest.
    come: Vec<u64>,
    first: Option<u64>,
    newest: u64,
    counts: MeterCounts,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterCounts {
    /// Messages that came for the first time.
    pub messages: u64,
    /// Messages between the first and the newest that have not come.
    pub lost: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Those of `messages` that came after a newer one.
    pub reordered: u64,
    /// Messages older than the window.
    pub old: u64,
    /// Messages that do not measure.
    pub foreign: u64,
    /// The shortest time from sending to receiving, in nanoseconds.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The sum, for the mean.
    pub sum_ns: u128,
}

impl MeterCounts {
    /// The mean time from sending to receiving, rounded down; none without messages.
    pub fn mean_ns(&self) -> Option<u64> {
        let mean = self.sum_ns.checked_div(u128::from(self.messages))?;
        u64::try_from(mean).ok()
    }
}

impl Default for Meter {
    fn default() -> Meter {
        let come = vec![0; (METER_WINDOW / 64) as usize];
        Meter { come, first: None, newest: 0, counts: MeterCounts::default() }
    }
}

impl Meter {
    /// Takes a message that came at this time.
    pub fn take(&mut self, now_ns: u64, message: &[u8]) {
        let Some((counter, sent_ns)) = parse(message) else {
            self.counts.foreign += 1;
            return;
        };
        if self.first.is_none() {
            (self.first, self.newest) = (Some(counter), counter);
            self.first_time(counter, now_ns, sent_ns);
        } else if counter > self.newest {
            // Those in between have not come yet.
            let between = (counter - self.newest - 1).min(METER_WINDOW);
            (counter - between..counter).for_each(|missing| self.set(missing, false));
            self.newest = counter;
            self.first_time(counter, now_ns, sent_ns);
        } else if self.newest - counter >= METER_WINDOW {
            self.counts.old += 1;
        } else if self.has(counter) {
            self.counts.duplicates += 1;
        } else {
            self.first = self.first.map(|first| first.min(counter));
            self.counts.reordered += 1;
            self.first_time(counter, now_ns, sent_ns);
        }
    }

    fn first_time(&mut self, counter: u64, now_ns: u64, sent_ns: u64) {
        self.set(counter, true);
        let took = now_ns.saturating_sub(sent_ns);
        let counts = &mut self.counts;
        counts.min_ns = if counts.messages == 0 { took } else { counts.min_ns.min(took) };
        counts.max_ns = counts.max_ns.max(took);
        counts.sum_ns += u128::from(took);
        counts.messages += 1;
    }

    fn has(&self, counter: u64) -> bool {
        let at = counter % METER_WINDOW;
        self.come[(at / 64) as usize] >> (at % 64) & 1 != 0
    }

    fn set(&mut self, counter: u64, has: bool) {
        let at = counter % METER_WINDOW;
        let (word, bit) = (&mut self.come[(at / 64) as usize], 1 << (at % 64));
        if has {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    /// What was measured so far.
    pub fn counts(&self) -> MeterCounts {
        let span = self.first.map_or(0, |first| (self.newest - first).saturating_add(1));
        MeterCounts { lost: span.saturating_sub(self.counts.messages), ..self.counts }
    }
}

/// The counter and the time of a message that measures.
fn parse(message: &[u8]) -> Option<(u64, u64)> {
    let (magic, rest) = message.split_first_chunk::<4>()?;
    let (counter, rest) = rest.split_first_chunk::<8>()?;
    let (sent, _) = rest.split_first_chunk::<8>()?;
    (*magic == MAGIC).then_some((u64::from_be_bytes(*counter), u64::from_be_bytes(*sent)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn message(counter: u64, sent_ns: u64) -> Vec<u8> {
        [&MAGIC[..], &counter.to_be_bytes(), &sent_ns.to_be_bytes()].concat()
    }

    #[test]
    fn a_source_is_punctual_and_leaves_out_what_is_too_late() {
        let mut source = Source::new(100_000, 50_000, 24, 100).unwrap();
        assert!(source.due(99_999).is_none());
        assert_eq!(source.due(100_000).map(parse), Some(Some((0, 100_000))));
        source.sent();
        assert_eq!((source.due(120_000).is_none(), source.next_ns()), (true, 150_000));
        // The periods at 200 000 and 250 000 are left out.
        assert_eq!(source.due(260_000).map(parse), Some(Some((1, 260_000))));
        // Nobody took it.
        assert_eq!(source.next_ns(), 300_000);
        assert_eq!(source.due(300_000).map(parse), Some(Some((1, 300_000))));
        let error = Source::new(0, 50_000, 19, 100).unwrap_err().to_string();
        assert_eq!(error, "the length of messages is 19 bytes: 20 to 100 bytes is allowed");
    }

    #[test]
    fn a_meter_knows_what_was_lost_and_what_came_twice() {
        let mut meter = Meter::default();
        for (now, counter, sent) in
            [(15, 3, 10), (27, 4, 20), (33, 4, 20), (50, 7, 40), (51, 6, 30), (60, 2, 5)]
        {
            meter.take(now, &message(counter, sent));
        }
        meter.take(70, b"something else");
        let counts = meter.counts();
        let expected = MeterCounts {
            messages: 5,
            lost: 1,
            duplicates: 1,
            reordered: 2,
            old: 0,
            foreign: 1,
            min_ns: 5,
            max_ns: 55,
            sum_ns: 5 + 7 + 10 + 21 + 55,
        };
        assert_eq!((counts, counts.mean_ns()), (expected, Some(19)));
        meter.take(80, &message(7 + METER_WINDOW, 80));
        meter.take(80, &message(7, 80));
        assert_eq!((meter.counts().old, meter.counts().lost), (1, METER_WINDOW));
        assert_eq!(MeterCounts::default().mean_ns(), None);
    }

    proptest! {
        #[test]
        fn a_meter_counts_as_a_set_does(counters in prop::collection::vec(0u64..3000, 1..500)) {
            let (mut meter, mut set) = (Meter::default(), HashSet::new());
            for counter in &counters {
                meter.take(0, &message(*counter, 0));
                set.insert(*counter);
            }
            let counts = meter.counts();
            let span = counters.iter().max().unwrap() - counters.iter().min().unwrap() + 1;
            prop_assert_eq!(counts.messages, set.len() as u64);
            prop_assert_eq!(counts.duplicates, (counters.len() - set.len()) as u64);
            prop_assert_eq!(counts.lost, span - set.len() as u64);
        }

        #[test]
        fn any_counters_are_counted(counters in prop::collection::vec(any::<u64>(), 1..50)) {
            let mut meter = Meter::default();
            counters.iter().for_each(|counter| meter.take(9, &message(*counter, 5)));
            let counts = meter.counts();
            prop_assert_eq!(counts.messages + counts.duplicates + counts.old, counters.len() as u64);
        }
    }
}
