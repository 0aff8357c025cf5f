//! Two-rate three-colour meters (RFC 2698), exact and deterministic.
//!
//! Tokens are kept in units of 10^-15: a rate in millionths of a unit per second times nanoseconds is exact in them,
//! so no rounding accumulates and the same packets at the same times get the same colours on every machine.
//! (2^64 rate steps times 2^64 ns, and 2^64 units of burst times 10^15, both fit 128 bits.)

use crate::counter::{CounterValue, check_cells};
use crate::engines::{Cell, NoMemory, zeros};
use crate::error::{MeterError, SpecError};
use std::sync::atomic::{AtomicU64, Ordering, fence};

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
    pub fn per_second_millionths(millionths: u64) -> Rate {
        Rate(millionths)
    }

    /// The rate in millionths of a unit per second.
    pub fn millionths(self) -> u64 {
        self.0
    }
}

/// The parameters of a meter (RFC 2698 section 2). A burst of 0 lets nothing through its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate.
    pub cir: Rate,
    /// Committed burst size, in units.
    pub cbs: u64,
    /// Peak information rate, not below the committed one.
    pub pir: Rate,
    /// Peak burst size, in units.
    pub pbs: u64,
}

/// One meter. Without a configuration it colours every packet green.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    config: Option<MeterConfig>,
    committed: Bucket,
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
        let Some(parameters) = config else {
            *self = Meter::default();
            return Ok(());
        };
        if parameters.pir < parameters.cir {
            return Err(MeterError::PeakBelowCommitted);
        }
        // The time of the last packet stays 0: whatever has elapsed until the first packet cannot fill more than full.
        *self = Meter {
            config,
            committed: Bucket::full(parameters.cbs),
            peak: Bucket::full(parameters.pbs),
            last_ns: 0,
        };
        Ok(())
    }

    /// The parameters, `None` when unconfigured.
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    /// Colours a packet of `units` (1, or its length in bytes) that arrives at `now_ns`. `before` is the colour it
    /// came with: green for the colour-blind mode of RFC 2698 section 3, whose result is then that of the
    /// colour-aware mode. Time that runs backwards counts as standing still.
    pub fn execute(&mut self, now_ns: u64, units: u64, before: Color) -> Color {
        let Some(config) = self.config else { return Color::Green };
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        self.committed.refill(config.cir, config.cbs, elapsed_ns);
        self.peak.refill(config.pir, config.pbs, elapsed_ns);

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
}

/// The parameters of one meter as control publishes them, for a worker that keeps the buckets. All zero: none, and none
/// ever.
#[derive(Default)]
pub(crate) struct MeterCell {
    /// Odd while they are written.
    version: AtomicU64,
    /// Whether there are any, then CIR, CBS, PIR, PBS.
    words: [AtomicU64; 5],
}

// SAFETY: atomic integers, valid in every bit pattern and made to be shared.
unsafe impl Cell for MeterCell {}

impl MeterCell {
    /// What is published. For the only writer.
    pub(crate) fn config(&self) -> Option<MeterConfig> {
        let [exists, cir, cbs, pir, pbs] = [0, 1, 2, 3, 4].map(|at| self.words[at].load(Ordering::Relaxed));
        (exists != 0).then_some(MeterConfig { cir: Rate(cir), cbs, pir: Rate(pir), pbs })
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
        let words = [config.is_some().into(), of.cir.0, of.cbs, of.pir.0, of.pbs];
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
    fn newer(&self, known: u64) -> Option<(u64, Option<MeterConfig>)> {
        let version = self.version.load(Ordering::Acquire);
        if version == known || version % 2 == 1 {
            return None;
        }
        let config = self.config();
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some((version, config))
    }
}

/// The buckets that a worker keeps of meters that control configures in [`MeterCell`]s.
#[derive(Default)]
pub(crate) struct FollowingMeters(Vec<(u64, Meter)>);

impl FollowingMeters {
    /// Colours a packet ([`Meter::execute`]). A configuration that is written at this moment counts from the next packet on.
    pub(crate) fn execute(
        &mut self,
        at: usize,
        cell: &MeterCell,
        now_ns: u64,
        units: u64,
        before: Color,
    ) -> Color {
        let known = self.0.get(at).map_or(0, |(version, _)| *version);
        if let Some((version, config)) = cell.newer(known) {
            if self.0.len() <= at {
                self.0.resize(at + 1, Default::default());
            }
            let mut meter = Meter::default();
            // What was published does not contradict itself.
            let _ = meter.configure(config);
            self.0[at] = (version, meter);
        }
        self.0.get_mut(at).map_or(Color::Green, |(_, meter)| meter.execute(now_ns, units, before))
    }
}

/// Memory that one meter of an array takes at most.
pub const METER_BYTES: u64 = (size_of::<Meter>() + COUNTS * size_of::<u64>()) as u64;

/// Meters whose memory is made together.
const CHUNK: usize = 256;

/// What an index leads to where nothing was ever configured.
static UNCONFIGURED: Meter =
    Meter { config: None, committed: Bucket { tokens: 0 }, peak: Bucket { tokens: 0 }, last_ns: 0 };

/// Numbers that are counted for one meter: packets and bytes of each colour.
const COUNTS: usize = 6;

/// An array of meters, all unconfigured at first. Memory is made when something near is configured, and that of counts is
/// zeroed pages of the system, so that a large array costs nothing before it is used.
#[derive(Clone, Debug)]
pub struct MeterArray {
    unit: MeterUnit,
    size: u64,
    /// [`COUNTS`] for each meter.
    counts: Vec<u64>,
    /// None: [`CHUNK`] meters without a configuration.
    chunks: Vec<Option<Box<[Meter]>>>,
}

impl MeterArray {
    /// `size` meters.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] when the number of meters or their memory is above its limit; [`SpecError::NoMemory`].
    pub fn new(unit: MeterUnit, size: u64) -> Result<MeterArray, SpecError> {
        check_cells("the number of meters", size, METER_BYTES)?;
        let counts = zeros(size as usize * COUNTS)?;
        let mut chunks = Vec::new();
        let count = (size as usize).div_ceil(CHUNK);
        chunks.try_reserve_exact(count).map_err(|_| NoMemory { bytes: count * size_of::<usize>() })?;
        chunks.resize_with(count, || None);
        Ok(MeterArray { unit, size, counts, chunks })
    }

    /// What the meters measure.
    pub fn unit(&self) -> MeterUnit {
        self.unit
    }

    /// The number of meters.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Colours a packet of `bytes` bytes that arrives at `now_ns` ([`Meter::execute`]) and counts it by its colour. `None`,
    /// and no meter changes, when there is no such meter.
    pub fn execute(&mut self, index: u64, now_ns: u64, bytes: u64, before: Color) -> Option<Color> {
        let (chunk, at) = self.place(index)?;
        let color = match self.chunks.get_mut(chunk)? {
            Some(meters) => meters.get_mut(at)?.execute(now_ns, self.unit.units(bytes), before),
            None => Color::Green,
        };
        let at = index as usize * COUNTS + 2 * color as usize;
        if let Some([packets, counted]) = self.counts.get_mut(at..at + 2) {
            (*packets, *counted) = (packets.wrapping_add(1), counted.wrapping_add(bytes));
        }
        Some(color)
    }

    /// What a meter has coloured; `None` when there is no such meter.
    pub fn counts(&self, index: u64) -> Option<ColorCounts> {
        let counts = self.counts_of(index)?;
        let [green, yellow, red] =
            [0, 2, 4].map(|at| CounterValue { packets: counts[at], bytes: counts[at + 1] });
        Some([green, yellow, red])
    }

    /// Sets what a meter has coloured. Returns false when there is no such meter.
    pub fn set_counts(&mut self, index: u64, counts: ColorCounts) -> bool {
        let place = self.place(index).map(|_| index as usize * COUNTS);
        let kept = place.and_then(|at| self.counts.get_mut(at..at + COUNTS));
        let is_there = kept.is_some();
        for (kept, value) in kept.into_iter().flat_map(|kept| kept.chunks_exact_mut(2)).zip(counts) {
            kept.copy_from_slice(&[value.packets, value.bytes]);
        }
        is_there
    }

    fn counts_of(&self, index: u64) -> Option<&[u64; COUNTS]> {
        let at = self.place(index).map(|_| index as usize * COUNTS)?;
        self.counts.get(at..)?.first_chunk()
    }

    /// Sets the parameters of one meter and fills its buckets ([`Meter::configure`]).
    ///
    /// # Errors
    /// [`MeterError`]; the meter is then as it was.
    pub fn configure(&mut self, index: u64, config: Option<MeterConfig>) -> Result<(), MeterError> {
        let size = self.size;
        let place = self.place(index);
        let chunk = place.and_then(|(chunk, at)| Some((self.chunks.get_mut(chunk)?, at)));
        let (chunk, at) = chunk.ok_or(MeterError::OutOfRange { index, size })?;
        if chunk.is_none() && config.is_none() {
            return Ok(());
        }
        let meters = chunk.get_or_insert_with(|| vec![Meter::default(); CHUNK].into());
        meters.get_mut(at).ok_or(MeterError::OutOfRange { index, size })?.configure(config)
    }

    /// Sets a meter to what [`MeterArray::meter`] gave earlier; one that does not exist stays away.
    pub fn put(&mut self, index: u64, meter: Meter) {
        let place = self.place(index);
        if let Some(meters) = place.and_then(|(chunk, _)| self.chunks.get_mut(chunk)?.as_mut())
            && let Some(kept) = place.and_then(|(_, at)| meters.get_mut(at))
        {
            *kept = meter;
        }
    }

    /// Takes the first meters of another array with all that they have metered and counted, as far as both go; nothing where
    /// the units differ. The other array loses them. Counts of an array of another size are copied.
    pub fn take_from(&mut self, other: &mut MeterArray) {
        if self.unit != other.unit {
            return;
        }
        match self.size == other.size {
            true => self.counts = std::mem::take(&mut other.counts),
            false => {
                let both = self.counts.len().min(other.counts.len());
                self.counts[..both].copy_from_slice(&other.counts[..both]);
            }
        }
        for (mine, other) in self.chunks.iter_mut().zip(&mut other.chunks) {
            *mine = other.take();
        }
        // The last chunk may have had meters after the end.
        let used = (self.size.min(other.size) as usize) % CHUNK;
        let last = (self.size.min(other.size) as usize) / CHUNK;
        if let Some(Some(meters)) = self.chunks.get_mut(last).filter(|_| used > 0) {
            meters[used..].fill(Meter::default());
        }
    }

    /// Sets the parameters of all meters.
    ///
    /// # Errors
    /// [`MeterError::PeakBelowCommitted`]; the meters are then as they were.
    pub fn configure_all(&mut self, config: Option<MeterConfig>) -> Result<(), MeterError> {
        let mut meter = Meter::default();
        meter.configure(config)?;
        let chunk = config.map(|_| vec![meter; CHUNK].into_boxed_slice());
        self.chunks.fill(chunk);
        Ok(())
    }

    /// One meter; `None` when there is no such meter.
    pub fn meter(&self, index: u64) -> Option<&Meter> {
        let (chunk, at) = self.place(index)?;
        match self.chunks.get(chunk)? {
            Some(meters) => meters.get(at),
            None => Some(&UNCONFIGURED),
        }
    }

    /// The chunk of a meter, and its place there.
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
            MeterUnit::Bytes => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Color::{Green, Red, Yellow};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn config(cir: u64, cbs: u64, pir: u64, pbs: u64) -> Option<MeterConfig> {
        Some(MeterConfig { cir: Rate::per_second(cir), cbs, pir: Rate::per_second(pir), pbs })
    }

    fn meter(cir: u64, cbs: u64, pir: u64, pbs: u64) -> Meter {
        let mut meter = Meter::default();
        meter.configure(config(cir, cbs, pir, pbs)).unwrap();
        meter
    }

    #[test]
    fn an_array_takes_meters_with_what_they_have_metered() {
        let (mut from, mut to) = (
            MeterArray::new(MeterUnit::Bytes, 300).unwrap(),
            MeterArray::new(MeterUnit::Bytes, 600).unwrap(),
        );
        from.configure_all(config(0, 1000, 0, 1000)).unwrap();
        assert_eq!(from.execute(299, 0, 1000, Green), Some(Green));
        to.take_from(&mut from);
        assert_eq!(to.execute(299, 0, 1, Green), Some(Red), "its buckets are empty");
        let counted = [(1, 1000), (0, 0), (1, 1)].map(|(packets, bytes)| CounterValue { packets, bytes });
        assert_eq!((to.counts(299), to.counts(600)), (Some(counted), None));
        assert_eq!(to.execute(298, 0, 1, Green), Some(Green));
        assert!((300..600).all(|index| to.meter(index).unwrap().config().is_none()));
        let mut packets = MeterArray::new(MeterUnit::Packets, 300).unwrap();
        packets.take_from(&mut to);
        let mut same = MeterArray::new(MeterUnit::Bytes, 600).unwrap();
        same.take_from(&mut to.clone());
        assert_eq!(same.counts(299), Some(counted));
        assert!(packets.meter(0).unwrap().config().is_none() && to.meter(0).unwrap().config().is_some());
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
        meter.configure(Some(MeterConfig { cir: third, cbs: 1, pir: third, pbs: 1 })).unwrap();
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
    fn sizes_are_limited() {
        assert!(MeterArray::new(MeterUnit::Bytes, u64::MAX).is_err());
        assert!(MeterArray::new(MeterUnit::Bytes, 1 << 26).is_err(), "the memory limit holds too");
    }
}
