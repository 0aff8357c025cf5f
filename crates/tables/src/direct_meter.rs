//! Meters of single entries: control publishes their parameters, workers keep their buckets.
//!
//! Control never waits for a worker here, nor a worker for control. The parameters are numbers with a version, which a worker
//! copies when it finds a newer one; a worker that comes while they are written goes on with those that it has. The buckets are
//! shared by all workers, and each packet takes its tokens while the lock of its meter is held.

use crate::cell_lock::CellLock;
use crate::engines::Cell;
use crate::error::MeterError;
use crate::meter::{Color, Meter, MeterConfig, Rate};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// One meter. All zero: no parameters, and none ever.
#[derive(Default)]
pub(crate) struct MeterCell {
    /// Odd while the parameters are written.
    version: AtomicU64,
    /// Whether there are any, then CIR, CBS, PIR, PBS.
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
    /// [`MeterError::PeakBelowCommitted`]; nothing has changed then.
    pub(crate) fn publish(&self, config: Option<MeterConfig>) -> Result<(), MeterError> {
        if config.is_some_and(|config| config.pir < config.cir) {
            return Err(MeterError::PeakBelowCommitted);
        }
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let of = config.unwrap_or_default();
        let words = [config.is_some().into(), of.cir.millionths(), of.cbs, of.pir.millionths(), of.pbs];
        self.words.iter().zip(words).for_each(|(cell, word)| cell.store(word, Ordering::Relaxed));
        self.version.store(version + 2, Ordering::Release);
        Ok(())
    }

    /// Forgets what was published, if something was.
    pub(crate) fn clear(&self) {
        if self.config().is_some() {
            // No parameters cannot contradict each other.
            let _ = self.publish(None);
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

fn of_words([exists, cir, cbs, pir, pbs]: [u64; 5]) -> Option<MeterConfig> {
    let rate = Rate::per_second_millionths;
    (exists != 0).then_some(MeterConfig { cir: rate(cir), cbs, pir: rate(pir), pbs })
}

#[cfg(test)]
mod tests {
    use super::Color::{Green, Red, Yellow};
    use super::*;

    fn config(cbs: u64, pbs: u64) -> Option<MeterConfig> {
        Some(MeterConfig { cir: Rate::per_second(1), cbs, pir: Rate::per_second(2), pbs })
    }

    #[test]
    fn parameters_count_from_the_next_packet_on_and_fill_the_buckets() {
        let cell = MeterCell::default();
        assert_eq!(cell.execute(0, u64::MAX, Green), Green, "none yet");
        cell.publish(config(1, 2)).unwrap();
        assert_eq!([0; 3].map(|_| cell.execute(0, 1, Green)), [Green, Yellow, Red]);
        // Half a second brings half a token of the first and one of the second.
        assert_eq!([0; 2].map(|_| cell.execute(500_000_000, 1, Green)), [Yellow, Red]);
        cell.publish(config(1, 2)).unwrap();
        assert_eq!(cell.execute(500_000_000, 1, Green), Green);
        assert_eq!(
            cell.publish(Some(MeterConfig { cir: Rate::per_second(3), ..config(1, 1).unwrap() })),
            Err(MeterError::PeakBelowCommitted)
        );
        assert_eq!(cell.config(), config(1, 2));
        cell.clear();
        assert_eq!(cell.execute(0, u64::MAX, Green), Green);
    }

    #[test]
    fn workers_share_the_tokens() {
        let packets = if cfg!(miri) { 50 } else { 20_000 };
        let cell = MeterCell::default();
        let none = MeterConfig { cir: Rate::default(), cbs: packets, pir: Rate::default(), pbs: packets };
        cell.publish(Some(none)).unwrap();
        let green = || (0..packets).filter(|_| cell.execute(0, 1, Green) == Green).count() as u64;
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(green);
            green() + other.join().unwrap()
        });
        assert_eq!(both, packets);
    }
}
