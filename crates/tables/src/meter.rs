//! Two-rate three-colour meters (RFC 2698), exact and deterministic, and arrays of these or of accounts ([`crate::account`]):
//! what a program asks for the colour of a packet.
//!
//! Tokens are kept in units of 10^-15: a rate in millionths of a unit per second times nanoseconds is exact in them,
//! so no rounding accumulates and the same packets at the same times get the same colours on every machine.
//! (2^64 rate steps times 2^64 ns, and 2^64 units of burst times 10^15, both fit 128 bits.)

use crate::account::{Account, AccountConfig};
use crate::account_cell::AccountCell;
use crate::cell_lock::CellLock;
use crate::counter::{CounterValue, check_cells};
use crate::engines::{Cells, NoMemory};
use crate::error::{MeterError, SpecError};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// 10^15: token steps in one unit (byte or packet).
const STEPS_PER_UNIT: u128 = 1_000_000_000_000_000;

/// The colour of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Color {
    /// Within the committed rate.
    #[default]
    Green = 0,
    /// Above the committed rate, within the peak rate.
    Yellow = 1,
    /// Above the peak rate.
    Red = 2,
}

/// What a meter has coloured, by [`Color`]: packets, and bytes of any length, whatever it measures.
pub type ColorCounts = [CounterValue; 3];

/// What a meter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterUnit {
    /// Every packet counts 1.
    Packets,
    /// Every packet counts its length.
    Bytes,
    /// No meter but an account: packets that pass are green, the others red.
    Account,
}

/// A rate in units (bytes or packets) per second, in steps of one millionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Whole units per second; the largest is about 1.8 * 10^13, above which the rate stays there.
    pub fn per_second(units: u64) -> Rate {
        Rate(units.saturating_mul(1_000_000))
    }

    /// Millionths of a unit per second. One unit per microsecond, the step of the bmv2 commands, is 10^12 of them.
    pub const fn per_second_millionths(millionths: u64) -> Rate {
        Rate(millionths)
    }

    /// The rate in millionths of a unit per second.
    pub fn millionths(self) -> u64 {
        self.0
    }
}

/// The parameters of a meter, or of the account that takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterConfig {
    /// Of a meter.
    Rates(MeterRates),
    /// Of an account.
    Account(AccountConfig),
}

/// The parameters of a meter (RFC 2698 section 2). A burst of 0 lets nothing through its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterRates {
    /// Committed information rate.
    pub cir: Rate,
    /// Committed burst size, in units.
    pub cbs: u64,
    /// Peak information rate, not below the committed one.
    pub pir: Rate,
    /// Peak burst size, in units.
    pub pbs: u64,
}

impl MeterConfig {
    /// Whether a meter that measures this can have it.
    ///
    /// # Errors
    /// [`MeterError::OtherKind`], [`MeterError::PeakBelowCommitted`].
    pub(crate) fn check(&self, unit: MeterUnit) -> Result<(), MeterError> {
        match (self, unit) {
            (MeterConfig::Rates(rates), MeterUnit::Packets | MeterUnit::Bytes) => rates.check(),
            (MeterConfig::Account(_), MeterUnit::Account) => Ok(()),
            _ => Err(MeterError::OtherKind),
        }
    }
}

impl MeterRates {
    fn check(&self) -> Result<(), MeterError> {
        if self.pir < self.cir { Err(MeterError::PeakBelowCommitted) } else { Ok(()) }
    }
}

impl From<MeterRates> for MeterConfig {
    fn from(rates: MeterRates) -> MeterConfig {
        MeterConfig::Rates(rates)
    }
}

impl From<AccountConfig> for MeterConfig {
    fn from(account: AccountConfig) -> MeterConfig {
        MeterConfig::Account(account)
    }
}

/// One meter. Without a configuration it colours every packet green.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    config: Option<MeterConfig>,
    /// Of an account, its credit by bytes.
    committed: Bucket,
    /// Of an account, its credit by frames.
    peak: Bucket,
    last_ns: u64,
}

/// A token bucket in token steps.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    tokens: u128,
}

impl Bucket {
    fn full(burst: u64) -> Bucket {
        Bucket { tokens: u128::from(burst) * STEPS_PER_UNIT }
    }

    fn refill(&mut self, rate: Rate, burst: u64, elapsed_ns: u64) {
        let gained = u128::from(rate.0) * u128::from(elapsed_ns);
        self.tokens = self.tokens.saturating_add(gained).min(Bucket::full(burst).tokens);
    }
}

impl Meter {
    /// Sets the parameters and fills both buckets; `None` makes the meter colour everything green again.
    ///
    /// # Errors
    /// [`MeterError::PeakBelowCommitted`].
    pub fn configure(&mut self, config: Option<MeterConfig>) -> Result<(), MeterError> {
        let [committed, peak] = match &config {
            None => [Bucket::default(); 2],
            Some(MeterConfig::Rates(rates)) => {
                rates.check()?;
                [rates.cbs, rates.pbs].map(Bucket::full)
            }
            Some(MeterConfig::Account(config)) => {
                Account::new(*config).kept().0.map(|credit| Bucket { tokens: credit.into() })
            }
        };
        // The time of the last packet stays 0: whatever has elapsed until the first packet cannot fill more than full.
        *self = Meter { config, committed, peak, last_ns: 0 };
        Ok(())
    }

    /// A meter with these parameters, whose buckets (committed, peak) hold so much and which had its last packet then.
    pub fn with(config: Option<MeterConfig>, [committed, peak]: [u128; 2], last_ns: u64) -> Meter {
        Meter { config, committed: Bucket { tokens: committed }, peak: Bucket { tokens: peak }, last_ns }
    }

    /// What [`Meter::with`] makes it from again, but for its parameters.
    pub fn buckets(&self) -> ([u128; 2], u64) {
        ([self.committed.tokens, self.peak.tokens], self.last_ns)
    }

    /// The parameters, `None` when unconfigured.
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    /// Colours a packet of `units` (1, or its length in bytes) that arrives at `now_ns`. `before` is the colour it
    /// came with: green for the colour-blind mode of RFC 2698 section 3, whose result is then that of the
    /// colour-aware mode. Time that runs backwards counts as standing still.
    #[inline]
    pub fn execute(&mut self, now_ns: u64, units: u64, before: Color) -> Color {
        let rates = match &self.config {
            None => return Color::Green,
            Some(MeterConfig::Rates(rates)) => *rates,
            Some(MeterConfig::Account(config)) => return self.admit(*config, (now_ns, units), before),
        };
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        self.committed.refill(rates.cir, rates.cbs, elapsed_ns);
        self.peak.refill(rates.pir, rates.pbs, elapsed_ns);

        let cost = u128::from(units) * STEPS_PER_UNIT;
        if before == Color::Red || self.peak.tokens < cost {
            return Color::Red;
        }
        self.peak.tokens -= cost;
        if before == Color::Yellow || self.committed.tokens < cost {
            return Color::Yellow;
        }
        self.committed.tokens -= cost;
        Color::Green
    }

    /// Asks the account. A packet that is red already takes nothing.
    fn admit(&mut self, config: AccountConfig, (now_ns, bytes): (u64, u64), before: Color) -> Color {
        if before == Color::Red {
            return Color::Red;
        }
        // The credits of an account fit 64 bits.
        let credits = [self.committed, self.peak].map(|bucket| bucket.tokens as u64);
        let mut account = Account::with(config, credits, self.last_ns);
        let color = if account.admit(now_ns, bytes) { Color::Green } else { Color::Red };
        let ([by_bytes, by_frames], last_ns) = account.kept();
        (self.committed.tokens, self.peak.tokens, self.last_ns) =
            (by_bytes.into(), by_frames.into(), last_ns);
        color
    }
}

/// One meter of an array that several workers may share.
#[derive(Default)]
struct Shared {
    lock: CellLock,
    meter: UnsafeCell<Meter>,
}

// SAFETY: the meter is reached by the holder of the lock alone, or through an exclusive borrow of the only handle on its
// array (`Shared::change`).
unsafe impl Sync for Shared {}

impl Shared {
    /// The meter as it is now.
    fn look(&self) -> Meter {
        let _held = self.lock.hold();
        // SAFETY: the lock is held.
        unsafe { *self.meter.get() }
    }

    /// Changes the meter; without the lock where its array was never shared.
    ///
    /// # Safety
    /// The caller has a handle on the array exclusively, and `is_shared` is false only if there was never another handle.
    /// `work` reaches the meter by no other path.
    #[inline]
    unsafe fn change<R>(&self, is_shared: bool, work: impl FnOnce(&mut Meter) -> R) -> R {
        let _held = is_shared.then(|| self.lock.hold());
        // SAFETY: the lock is held, or nobody else has a handle and nobody else borrows this one.
        work(unsafe { &mut *self.meter.get() })
    }
}

/// Memory that one meter of an array takes at most.
pub const METER_BYTES: u64 = (size_of::<Shared>() + COUNTS * size_of::<u64>()) as u64;

/// Meters whose memory is made together.
const CHUNK: usize = 256;

/// Numbers that are counted for one meter: packets and bytes of each colour.
const COUNTS: usize = 6;

/// The distance of two counts of what accounts of an array refused.
pub const REFUSED_BYTES: usize = COUNTS * size_of::<u64>();

/// An array of meters, all unconfigured at first. Memory is made when something near is configured, and that of counts is
/// zeroed pages of the system, so that a large array costs nothing before it is used.
///
/// Several workers may have the same meters ([`MeterArray::share`]). A packet is then coloured while the lock of its meter is
/// held, so packets of all workers take tokens one after the other, each at its own time.
pub struct MeterArray {
    unit: MeterUnit,
    size: u64,
    /// Whether there was ever another handle on the same meters. Without one nobody else reaches them, and no lock is taken.
    is_shared: bool,
    cells: Arc<MeterCells>,
}

struct MeterCells {
    /// [`COUNTS`] for each meter.
    counts: Cells<AtomicU64>,
    /// Not set: [`CHUNK`] meters without a configuration.
    chunks: Box<[OnceLock<Box<[Shared]>>]>,
    /// Of an array of accounts, which has no chunks; what has passed is counted there.
    accounts: Option<Cells<AccountCell>>,
}

impl std::fmt::Debug for MeterArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MeterArray { unit, size, .. } = self;
        f.debug_struct("MeterArray").field("unit", unit).field("size", size).finish_non_exhaustive()
    }
}

impl MeterArray {
    /// `size` meters.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] when the number of meters or their memory is above its limit; [`SpecError::NoMemory`].
    pub fn new(unit: MeterUnit, size: u64) -> Result<MeterArray, SpecError> {
        check_cells("the number of meters", size, METER_BYTES)?;
        let counts = Cells::zeroed((size as usize).saturating_mul(COUNTS))?;
        let is_account = unit == MeterUnit::Account;
        let accounts = is_account.then(|| Cells::zeroed(size as usize)).transpose()?;
        let mut chunks = Vec::new();
        let count = if is_account { 0 } else { (size as usize).div_ceil(CHUNK) };
        chunks.try_reserve_exact(count).map_err(|_| NoMemory { bytes: count * size_of::<usize>() })?;
        chunks.resize_with(count, OnceLock::new);
        let cells = Arc::new(MeterCells { counts, chunks: chunks.into(), accounts });
        Ok(MeterArray { unit, size, is_shared: false, cells })
    }

    /// The same meters for one more worker.
    pub fn share(&mut self) -> MeterArray {
        self.is_shared = true;
        MeterArray { cells: Arc::clone(&self.cells), ..*self }
    }

    /// What the meters measure.
    pub fn unit(&self) -> MeterUnit {
        self.unit
    }

    /// The number of meters.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of memory once all counts were used: those of configured meters, of all accounts, and of what is counted.
    pub fn memory_bytes(&self) -> usize {
        let MeterCells { counts, chunks, accounts } = &*self.cells;
        let made = chunks.iter().filter(|chunk| chunk.get().is_some()).count();
        let meters = made * CHUNK * size_of::<Shared>() + size_of_val(&**chunks);
        counts.bytes() + meters + accounts.as_ref().map_or(0, Cells::bytes)
    }

    /// Colours a packet of `bytes` bytes that arrives at `now_ns` ([`Meter::execute`]) and counts it by its colour. `None`,
    /// and no meter changes, when there is no such meter.
    #[inline]
    pub fn execute(&mut self, index: u64, now_ns: u64, bytes: u64, before: Color) -> Option<Color> {
        let (chunk, at) = self.place(index)?;
        if let Some(accounts) = &self.cells.accounts {
            // SAFETY: `self` is exclusive.
            let color =
                unsafe { accounts.get(index as usize)?.execute(self.is_shared, now_ns, bytes, before) };
            if color == Color::Red {
                self.count(index, color, bytes);
            }
            return Some(color);
        }
        let units = self.unit.units(bytes);
        let color = match self.cells.chunks.get(chunk)?.get() {
            Some(meters) => {
                let execute = |meter: &mut Meter| meter.execute(now_ns, units, before);
                // SAFETY: `self` is exclusive.
                unsafe { meters.get(at)?.change(self.is_shared, execute) }
            }
            None => Color::Green,
        };
        self.count(index, color, bytes);
        Some(color)
    }

    #[inline]
    fn count(&self, index: u64, color: Color, bytes: u64) {
        let at = index as usize * COUNTS + 2 * color as usize;
        if let Some([packets, counted]) = self.cells.counts.get(at..at + 2) {
            self.add(packets, 1);
            self.add(counted, bytes);
        }
    }

    /// For compiled code that works on accounts itself: the cells, and the counts of what was refused, two numbers of 64 bits each
    /// [`REFUSED_BYTES`] bytes. None of an array of meters, and where several workers have the accounts: these take locks.
    pub fn accounts(&mut self) -> Option<(*const AccountCell, *const u64)> {
        let accounts = self.cells.accounts.as_ref().filter(|_| !self.is_shared)?;
        let refused = self.cells.counts.get(2 * Color::Red as usize..)?;
        Some((accounts.as_ptr(), refused.as_ptr().cast()))
    }

    /// Adds to a count, which wraps.
    #[inline]
    fn add(&self, count: &AtomicU64, more: u64) {
        if self.is_shared {
            count.fetch_add(more, Ordering::Relaxed);
        } else {
            count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        }
    }

    /// What a meter has coloured; `None` when there is no such meter.
    pub fn counts(&self, index: u64) -> Option<ColorCounts> {
        let counts = self.counts_of(index)?;
        let count = |at: usize| counts[at].load(Ordering::Relaxed);
        let mut counts = [0, 2, 4].map(|at| CounterValue { packets: count(at), bytes: count(at + 1) });
        if let Some(accounts) = &self.cells.accounts {
            counts[Color::Green as usize] = accounts.get(index as usize)?.passed();
        }
        Some(counts)
    }

    /// Sets what a meter has coloured. Returns false when there is no such meter.
    pub fn set_counts(&mut self, index: u64, counts: ColorCounts) -> bool {
        let Some(kept) = self.counts_of(index) else { return false };
        for (kept, value) in kept.chunks_exact(2).zip(counts) {
            kept[0].store(value.packets, Ordering::Relaxed);
            kept[1].store(value.bytes, Ordering::Relaxed);
        }
        if let Some(account) = self.cells.accounts.as_ref().and_then(|accounts| accounts.get(index as usize))
        {
            // SAFETY: `self` is exclusive.
            unsafe { account.set_passed(self.is_shared, counts[Color::Green as usize]) };
        }
        true
    }

    fn counts_of(&self, index: u64) -> Option<&[AtomicU64]> {
        let at = self.place(index).map(|_| index as usize * COUNTS)?;
        self.cells.counts.get(at..at + COUNTS)
    }

    /// Sets the parameters of one meter and fills its buckets ([`Meter::configure`]).
    ///
    /// # Errors
    /// [`MeterError`]; the meter is then as it was.
    pub fn configure(&mut self, index: u64, config: Option<MeterConfig>) -> Result<(), MeterError> {
        config.iter().try_for_each(|config| config.check(self.unit))?;
        let mut meter = Meter::default();
        meter.configure(config)?;
        match self.put(index, meter) {
            true => Ok(()),
            false => Err(MeterError::OutOfRange { index, size: self.size }),
        }
    }

    /// Sets a meter to what [`MeterArray::meter`] gave earlier. Returns false when there is no such meter.
    pub fn put(&mut self, index: u64, meter: Meter) -> bool {
        let Some((chunk, at)) = self.place(index) else { return false };
        if let Some(account) = self.cells.accounts.as_ref().and_then(|accounts| accounts.get(index as usize))
        {
            // SAFETY: `self` is exclusive.
            unsafe { account.put(self.is_shared, &meter) };
            return true;
        }
        let Some(chunk) = self.cells.chunks.get(chunk) else { return false };
        if chunk.get().is_none() && meter.config.is_none() {
            return true;
        }
        let meters = chunk.get_or_init(|| (0..CHUNK).map(|_| Shared::default()).collect());
        // SAFETY: `self` is exclusive.
        meters.get(at).map(|shared| unsafe { shared.change(self.is_shared, |kept| *kept = meter) }).is_some()
    }

    /// Sets the first meters to those of another array with all that they have metered and counted, as far as both go; nothing
    /// where the units differ.
    pub fn copy_from(&mut self, other: &MeterArray) {
        if self.unit != other.unit {
            return;
        }
        for index in 0..self.size.min(other.size) {
            if let (Some(meter), Some(counts)) = (other.meter(index), other.counts(index)) {
                self.put(index, meter);
                // Pages that were never counted in stay untouched.
                if self.counts(index) != Some(counts) {
                    self.set_counts(index, counts);
                }
            }
        }
    }

    /// All meters, for [`MeterArray::restore`]; of those that were never configured nothing.
    pub fn snapshot(&self) -> Vec<(u64, Meter)> {
        if let Some(accounts) = &self.cells.accounts {
            let all = (0..).zip(accounts.iter().map(AccountCell::look));
            return all.filter(|(_, meter)| meter.config().is_some()).collect();
        }
        let chunks = (0..).step_by(CHUNK).zip(&self.cells.chunks);
        let configured = chunks.filter_map(|(first, chunk)| Some((first, &**chunk.get()?)));
        let meters = |(first, chunk): (u64, &[Shared])| {
            let meters = chunk.iter().map(Shared::look);
            (first..self.size).zip(meters).collect::<Vec<_>>()
        };
        configured.flat_map(meters).collect()
    }

    /// Sets all meters to what [`MeterArray::snapshot`] gave.
    pub fn restore(&mut self, snapshot: &[(u64, Meter)]) {
        // No parameters do not contradict each other.
        let _ = self.configure_all(None);
        for (index, meter) in snapshot {
            self.put(*index, *meter);
        }
    }

    /// Sets the parameters of all meters.
    ///
    /// # Errors
    /// [`MeterError`]; the meters are then as they were.
    pub fn configure_all(&mut self, config: Option<MeterConfig>) -> Result<(), MeterError> {
        config.iter().try_for_each(|config| config.check(self.unit))?;
        let mut meter = Meter::default();
        meter.configure(config)?;
        for index in 0..self.size {
            self.put(index, meter);
        }
        Ok(())
    }

    /// One meter as it is now; `None` when there is no such meter.
    pub fn meter(&self, index: u64) -> Option<Meter> {
        let (chunk, at) = self.place(index)?;
        if let Some(accounts) = &self.cells.accounts {
            return accounts.get(index as usize).map(AccountCell::look);
        }
        match self.cells.chunks.get(chunk)?.get() {
            Some(meters) => meters.get(at).map(Shared::look),
            None => Some(Meter::default()),
        }
    }

    /// The chunk of a meter, and its place there.
    #[inline]
    fn place(&self, index: u64) -> Option<(usize, usize)> {
        let at = usize::try_from(index).ok().filter(|_| index < self.size)?;
        Some((at / CHUNK, at % CHUNK))
    }
}

impl MeterUnit {
    /// What a packet of `bytes` bytes counts.
    pub(crate) fn units(self, bytes: u64) -> u64 {
        match self {
            MeterUnit::Packets => 1,
            MeterUnit::Bytes | MeterUnit::Account => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Color::{Green, Red, Yellow};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn config(cir: u64, cbs: u64, pir: u64, pbs: u64) -> Option<MeterConfig> {
        Some(MeterRates { cir: Rate::per_second(cir), cbs, pir: Rate::per_second(pir), pbs }.into())
    }

    fn meter(cir: u64, cbs: u64, pir: u64, pbs: u64) -> Meter {
        let mut meter = Meter::default();
        meter.configure(config(cir, cbs, pir, pbs)).unwrap();
        meter
    }

    #[test]
    fn an_array_is_copied_with_what_it_has_metered() {
        let (mut from, mut to) = (
            MeterArray::new(MeterUnit::Bytes, 300).unwrap(),
            MeterArray::new(MeterUnit::Bytes, 600).unwrap(),
        );
        from.configure_all(config(0, 1000, 0, 1000)).unwrap();
        assert_eq!(from.execute(299, 0, 1000, Green), Some(Green));
        to.copy_from(&from);
        assert_eq!(to.execute(299, 0, 1, Green), Some(Red), "its buckets are empty");
        let counted = [(1, 1000), (0, 0), (1, 1)].map(|(packets, bytes)| CounterValue { packets, bytes });
        assert_eq!((to.counts(299), to.counts(600)), (Some(counted), None));
        assert_eq!(to.execute(298, 0, 1, Green), Some(Green));
        assert!((300..600).all(|index| to.meter(index).unwrap().config().is_none()));
        let mut packets = MeterArray::new(MeterUnit::Packets, 300).unwrap();
        packets.copy_from(&to);
        assert!(packets.meter(0).unwrap().config().is_none() && to.meter(0).unwrap().config().is_some());
    }

    #[test]
    fn a_snapshot_brings_back_what_was_metered() {
        let mut meters = MeterArray::new(MeterUnit::Packets, 700).unwrap();
        meters.configure(600, config(0, 2, 0, 2)).unwrap();
        assert_eq!(meters.execute(600, 0, 1, Green), Some(Green));
        let before = meters.snapshot();
        meters.configure_all(config(0, 0, 0, 0)).unwrap();
        assert_eq!([3, 600].map(|at| meters.execute(at, 0, 1, Green)), [Some(Red); 2]);
        meters.restore(&before);
        assert_eq!(meters.meter(3).unwrap().config(), None);
        let left = [0; 2].map(|_| meters.execute(600, 0, 1, Green));
        assert_eq!(left, [Some(Green), Some(Red)]);
    }

    /// Two workers, one bucket: as many packets pass as it holds, whichever worker has them.
    #[test]
    fn workers_share_the_tokens_of_a_meter() {
        let packets: u64 = if cfg!(miri) { 60 } else { 30_000 };
        let mut meters = MeterArray::new(MeterUnit::Packets, 300).unwrap();
        meters.configure(7, config(0, packets, 0, packets + packets / 2)).unwrap();
        let mut other = meters.share();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..packets).for_each(|_| _ = other.execute(7, 0, 100, Green)));
            (0..packets).for_each(|_| _ = meters.execute(7, 0, 100, Green));
        });
        let counted = |packets| CounterValue { packets, bytes: 100 * packets };
        let expected = [packets, packets / 2, packets / 2].map(counted);
        assert_eq!((meters.counts(7), other.counts(7)), (Some(expected), Some(expected)));
    }

    #[test]
    fn unconfigured_is_green() {
        let mut meter = Meter::default();
        assert_eq!(meter.execute(0, u64::MAX, Green), Green);
        assert_eq!(meter.execute(0, 1, Red), Green);
    }

    /// CIR 1000 B/s, CBS 1500; PIR 2000 B/s, PBS 3000. Worked out on paper after RFC 2698 section 3 (Tc, Tp after).
    #[test]
    fn colour_blind_by_hand() {
        let mut meter = meter(1000, 1500, 2000, 3000);
        assert_eq!(meter.execute(0, 1000, Green), Green); // 500, 2000
        assert_eq!(meter.execute(0, 1000, Green), Yellow); // 500, 1000
        assert_eq!(meter.execute(0, 500, Green), Green); // 0, 500
        assert_eq!(meter.execute(0, 501, Green), Red); // 0, 500
        assert_eq!(meter.execute(0, 500, Green), Yellow); // 0, 0
        // A quarter of a second brings 250 and 500.
        assert_eq!(meter.execute(SECOND / 4, 500, Green), Yellow); // 250, 0
        // Another quarter: 500 and 500.
        assert_eq!(meter.execute(SECOND / 2, 500, Green), Green); // 0, 0
        // Two seconds bring 2000 and 4000, capped at 1500 and 3000.
        assert_eq!(meter.execute(5 * SECOND / 2, 1500, Green), Green); // 0, 1500
        assert_eq!(meter.execute(5 * SECOND / 2, 1501, Green), Red);
        assert_eq!(meter.execute(5 * SECOND / 2, 1500, Green), Yellow); // 0, 0
    }

    /// RFC 2698 section 3, colour-aware: a red packet takes no tokens, a yellow one only peak tokens.
    #[test]
    fn colour_aware_by_hand() {
        let mut meter = meter(1000, 1000, 1000, 2000);
        assert_eq!(meter.execute(0, 500, Red), Red); // 1000, 2000
        assert_eq!(meter.execute(0, 500, Yellow), Yellow); // 1000, 1500
        assert_eq!(meter.execute(0, 1000, Green), Green); // 0, 500
        assert_eq!(meter.execute(0, 600, Yellow), Red); // 0, 500
        assert_eq!(meter.execute(0, 500, Green), Yellow); // 0, 0
        assert_eq!(meter.execute(0, 1, Yellow), Red);
    }

    #[test]
    fn slow_rates_lose_nothing_to_rounding() {
        // One packet in 3 s, asked once a nanosecond short of it and then exactly there.
        let mut meter = Meter::default();
        let third = Rate::per_second_millionths(333_334);
        meter.configure(Some(MeterRates { cir: third, cbs: 1, pir: third, pbs: 1 }.into())).unwrap();
        assert_eq!(meter.execute(0, 1, Green), Green);
        // 10^15 / 333334 = 2999994000.01...: the token is there at ...001 and not at ...000.
        for asked in (0..2_999_994_000).step_by(99_999_800) {
            assert_eq!(meter.execute(asked, 1, Green), Red, "at {asked}");
        }
        assert_eq!(meter.execute(2_999_994_000, 1, Green), Red);
        assert_eq!(meter.execute(2_999_994_001, 1, Green), Green);
    }

    #[test]
    fn time_running_backwards_stands_still() {
        let mut meter = meter(1, 1, 1, 1);
        assert_eq!(meter.execute(10 * SECOND, 1, Green), Green);
        assert_eq!(meter.execute(9 * SECOND, 1, Green), Red);
        assert_eq!(meter.execute(10 * SECOND, 1, Green), Red);
        assert_eq!(meter.execute(11 * SECOND, 1, Green), Green);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let mut meter = meter(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(meter.execute(u64::MAX, u64::MAX, Green), Green);
        assert_eq!(meter.execute(u64::MAX, 1, Green), Red);
    }

    #[test]
    fn a_bad_configuration_is_refused_and_changes_nothing() {
        let mut meters = MeterArray::new(MeterUnit::Bytes, 2).unwrap();
        meters.configure(1, config(10, 20, 30, 40)).unwrap();
        assert_eq!(meters.configure(1, config(10, 1, 9, 1)), Err(MeterError::PeakBelowCommitted));
        assert_eq!(meters.meter(1).unwrap().config(), config(10, 20, 30, 40));
        assert_eq!(
            meters.configure(2, config(1, 1, 1, 1)),
            Err(MeterError::OutOfRange { index: 2, size: 2 })
        );
        meters.configure(1, None).unwrap();
        assert_eq!(meters.meter(1).unwrap().config(), None);
    }

    #[test]
    fn meters_far_apart_are_their_own() {
        let mut meters = MeterArray::new(MeterUnit::Bytes, 1000).unwrap();
        assert_eq!(meters.execute(999, 0, 1500, Red), Some(Green), "not configured");
        assert_eq!(meters.meter(999).unwrap().config(), None);
        meters.configure(999, config(1, 0, 1, 0)).unwrap();
        assert_eq!(meters.execute(999, 0, 1, Green), Some(Red));
        assert_eq!([0, 256, 743, 998].map(|at| meters.execute(at, 0, 1, Green)), [Some(Green); 4]);
        assert_eq!(meters.execute(1000, 0, 1, Green), None);
        meters.configure_all(None).unwrap();
        assert_eq!(meters.execute(999, 0, 1, Green), Some(Green));
    }

    #[test]
    fn packets_count_one_and_bytes_their_length() {
        let mut packets = MeterArray::new(MeterUnit::Packets, 1).unwrap();
        packets.configure_all(config(1, 2, 1, 2)).unwrap();
        assert_eq!(packets.execute(0, 0, 1500, Green), Some(Green));
        assert_eq!(packets.execute(0, 0, 1500, Green), Some(Green));
        assert_eq!(packets.execute(0, 0, 1500, Green), Some(Red));
        assert_eq!(packets.execute(1, 0, 1500, Green), None);

        let mut bytes = MeterArray::new(MeterUnit::Bytes, 1).unwrap();
        bytes.configure_all(config(1, 1500, 1, 1500)).unwrap();
        assert_eq!(bytes.execute(0, 0, 1500, Green), Some(Green));
        assert_eq!(bytes.execute(0, 0, 1, Green), Some(Red));
    }

    #[test]
    fn an_account_takes_the_place_of_a_meter() {
        let account = AccountConfig::new(1_000_000, 0, 100, crate::AccountTest::Both).unwrap();
        let mut accounts = MeterArray::new(MeterUnit::Account, 2).unwrap();
        assert_eq!(accounts.execute(1, 0, 5000, Green), Some(Green), "not configured");
        accounts.configure(1, Some(account.into())).unwrap();
        assert_eq!(accounts.meter(1).unwrap().config(), Some(account.into()));
        assert_eq!(accounts.execute(1, 7, 100, Red), Some(Red), "it is red and takes nothing");
        assert_eq!([8, 9].map(|now| accounts.execute(1, now, 100, Green)), [Some(Green), Some(Red)]);
        assert_eq!(accounts.execute(1, 1_000_008, 100, Green), Some(Green));
        let counted = [(3, 5200), (0, 0), (2, 200)].map(|(packets, bytes)| CounterValue { packets, bytes });
        assert_eq!(accounts.counts(1), Some(counted));
        let mut copy = MeterArray::new(MeterUnit::Account, 2).unwrap();
        copy.copy_from(&accounts);
        let at = |accounts: &mut MeterArray, now| accounts.execute(1, now, 100, Green);
        assert_eq!([2_000_007, 2_000_008].map(|now| at(&mut copy, now)), [Some(Red), Some(Green)]);

        let rates = config(1, 2, 3, 4);
        assert_eq!(accounts.configure(1, rates), Err(MeterError::OtherKind));
        assert_eq!(accounts.configure_all(rates), Err(MeterError::OtherKind));
        let mut meters = MeterArray::new(MeterUnit::Bytes, 2).unwrap();
        assert_eq!(meters.configure(1, Some(account.into())), Err(MeterError::OtherKind));
        assert_eq!(at(&mut accounts, 2_000_007), Some(Red), "as it was");
    }

    #[test]
    fn sizes_are_limited() {
        assert!(MeterArray::new(MeterUnit::Bytes, u64::MAX).is_err());
        assert!(MeterArray::new(MeterUnit::Bytes, 1 << 26).is_err(), "the memory limit holds too");
    }
}
