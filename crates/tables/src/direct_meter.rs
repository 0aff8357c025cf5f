//! Meters and accounts of single entries: control publishes their parameters, workers keep their buckets.
//!
//! Control never waits for a worker here, nor a worker for control. The parameters are numbers with a version, which a worker
//! copies when it finds a newer one; a worker that comes while they are written goes on with those that it has. The buckets are
//! shared by all workers, and each packet takes its tokens while the lock of its meter is held.

use crate::account::{AccountConfig, AccountTest};
use crate::cell_lock::CellLock;
use crate::engines::Cell;
use crate::error::MeterError;
use crate::meter::{Color, Meter, MeterConfig, MeterRates, MeterUnit, Rate};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// One meter. All zero: no parameters, and none ever.
#[derive(Default)]
pub(crate) struct MeterCell {
    /// Odd while the parameters are written.
    version: AtomicU64,
    /// What they are of ([`to_words`]), and four of them.
    words: [AtomicU64; 5],
    /// Of [`MeterCell::kept`].
    lock: CellLock,
    kept: UnsafeCell<Kept>,
}

/// What workers keep of a meter.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Kept {
    committed: u128,
    peak: u128,
    last_ns: u64,
    /// The version of the parameters below.
    version: u64,
    /// As [`MeterCell::words`].
    words: [u64; 5],
}

// SAFETY: integers, valid in every bit pattern; those that are not atomic are reached by the holder of the lock alone.
unsafe impl Cell for MeterCell {}
// SAFETY: as above.
unsafe impl Sync for MeterCell {}

impl MeterCell {
    /// What is published. For the only writer.
    pub(crate) fn config(&self) -> Option<MeterConfig> {
        of_words(self.words())
    }

    fn words(&self) -> [u64; 5] {
        [0, 1, 2, 3, 4].map(|at| self.words[at].load(Ordering::Relaxed))
    }

    /// Publishes other parameters, or the same again: buckets are filled. For the only writer.
    ///
    /// # Errors
    /// [`MeterError`], when a meter that measures this cannot have them; nothing has changed then.
    pub(crate) fn publish(&self, unit: MeterUnit, config: Option<MeterConfig>) -> Result<(), MeterError> {
        config.iter().try_for_each(|config| config.check(unit))?;
        self.put(to_words(config));
        Ok(())
    }

    fn put(&self, words: [u64; 5]) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.words.iter().zip(words).for_each(|(cell, word)| cell.store(word, Ordering::Relaxed));
        self.version.store(version + 2, Ordering::Release);
    }

    /// Forgets what was published, if something was.
    pub(crate) fn clear(&self) {
        if self.config().is_some() {
            self.put(to_words(None));
        }
    }

    /// The parameters with their version, when it is another than `known` and they are not being written just now.
    #[inline]
    fn newer(&self, known: u64) -> Option<(u64, [u64; 5])> {
        let version = self.version.load(Ordering::Acquire);
        if version == known || version % 2 == 1 {
            return None;
        }
        let words = self.words();
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some((version, words))
    }

    /// The meter as it is now.
    pub(crate) fn look(&self) -> Meter {
        let _held = self.lock.hold();
        // SAFETY: the lock is held.
        let kept = unsafe { *self.kept.get() };
        match self.newer(kept.version) {
            Some((_, words)) => {
                let mut meter = Meter::default();
                // What was published does not contradict itself.
                let _ = meter.configure(of_words(words));
                meter
            }
            None => Meter::with(of_words(kept.words), [kept.committed, kept.peak], kept.last_ns),
        }
    }

    /// Sets the buckets to those of a meter, as long as its parameters are those that are published.
    pub(crate) fn keep(&self, meter: &Meter) {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, and nothing below reaches the cell again.
        let kept = unsafe { &mut *self.kept.get() };
        if let Some((version, words)) = self.newer(kept.version) {
            (kept.version, kept.words) = (version, words);
        }
        if of_words(kept.words) == meter.config() {
            ([kept.committed, kept.peak], kept.last_ns) = meter.buckets();
        }
    }

    /// Colours a packet ([`Meter::execute`]). Parameters that are written at this moment count from a later packet on.
    pub(crate) fn execute(&self, now_ns: u64, units: u64, before: Color) -> Color {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, and nothing below reaches the cell again.
        let kept = unsafe { &mut *self.kept.get() };
        let mut meter = match self.newer(kept.version) {
            Some((version, words)) => {
                (kept.version, kept.words) = (version, words);
                let mut meter = Meter::default();
                // What was published does not contradict itself.
                let _ = meter.configure(of_words(words));
                meter
            }
            None => Meter::with(of_words(kept.words), [kept.committed, kept.peak], kept.last_ns),
        };
        let color = meter.execute(now_ns, units, before);
        ([kept.committed, kept.peak], kept.last_ns) = meter.buckets();
        color
    }
}

/// 0: no parameters; 1: CIR, CBS, PIR, PBS; 2: BAG, jitter, Smax, and the test of an account.
fn to_words(config: Option<MeterConfig>) -> [u64; 5] {
    match config {
        None => [0; 5],
        Some(MeterConfig::Rates(of)) => [1, of.cir.millionths(), of.cbs, of.pir.millionths(), of.pbs],
        Some(MeterConfig::Account(of)) => {
            [2, of.bag_ns(), of.jitter_ns(), of.smax().into(), of.test() as u64]
        }
    }
}

/// What the words of [`to_words`] say. Others say nothing.
fn of_words(words: [u64; 5]) -> Option<MeterConfig> {
    let rate = Rate::per_second_millionths;
    match words {
        [1, cir, cbs, pir, pbs] => Some(MeterRates { cir: rate(cir), cbs, pir: rate(pir), pbs }.into()),
        [2, bag_ns, jitter_ns, smax, test] => {
            let test = *AccountTest::ALL.get(usize::try_from(test).ok()?)?;
            Some(AccountConfig::new(bag_ns, jitter_ns, u32::try_from(smax).ok()?, test).ok()?.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Color::{Green, Red, Yellow};
    use super::*;

    const RATES: MeterRates = MeterRates {
        cir: Rate::per_second_millionths(1_000_000),
        cbs: 1,
        pir: Rate::per_second_millionths(2_000_000),
        pbs: 2,
    };

    fn config(cbs: u64, pbs: u64) -> Option<MeterConfig> {
        Some(MeterRates { cbs, pbs, ..RATES }.into())
    }

    impl MeterCell {
        fn publish_packets(&self, config: Option<MeterConfig>) -> Result<(), MeterError> {
            self.publish(MeterUnit::Packets, config)
        }
    }

    #[test]
    fn parameters_count_from_the_next_packet_on_and_fill_the_buckets() {
        let cell = MeterCell::default();
        assert_eq!(cell.execute(0, u64::MAX, Green), Green, "none yet");
        cell.publish_packets(config(1, 2)).unwrap();
        assert_eq!([0; 3].map(|_| cell.execute(0, 1, Green)), [Green, Yellow, Red]);
        // Half a second brings half a token of the first and one of the second.
        assert_eq!([0; 2].map(|_| cell.execute(500_000_000, 1, Green)), [Yellow, Red]);
        cell.publish_packets(config(1, 2)).unwrap();
        assert_eq!(cell.execute(500_000_000, 1, Green), Green);
        assert_eq!(
            cell.publish_packets(Some(MeterRates { cir: Rate::per_second(3), ..RATES }.into())),
            Err(MeterError::PeakBelowCommitted)
        );
        assert_eq!(cell.config(), config(1, 2));
        cell.clear();
        assert_eq!(cell.execute(0, u64::MAX, Green), Green);
    }

    #[test]
    fn an_account_of_an_entry() {
        let cell = MeterCell::default();
        let account = AccountConfig::new(1_000_000, 500_000, 200, AccountTest::Both).unwrap();
        cell.publish(MeterUnit::Account, Some(account.into())).unwrap();
        assert_eq!(cell.config(), Some(account.into()));
        assert_eq!(cell.publish(MeterUnit::Account, config(1, 1)), Err(MeterError::OtherKind));
        // 300 bytes are there; half a millisecond brings 100.
        assert_eq!([0; 2].map(|_| cell.execute(9, 100, Green)), [Green, Red]);
        assert_eq!([500_008, 500_009].map(|now| cell.execute(now, 200, Green)), [Red, Green]);
        cell.clear();
        assert_eq!(cell.execute(500_009, 9000, Green), Green);
    }

    #[test]
    fn workers_share_the_tokens() {
        let packets = if cfg!(miri) { 50 } else { 20_000 };
        let cell = MeterCell::default();
        let none = MeterRates { cbs: packets, pbs: packets, ..MeterRates::default() };
        cell.publish_packets(Some(none.into())).unwrap();
        let green = || (0..packets).filter(|_| cell.execute(0, 1, Green) == Green).count() as u64;
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(green);
            green() + other.join().unwrap()
        });
        assert_eq!(both, packets);
    }
}
