//! What belongs to single entries in addition to their match and action: direct counters, direct meters, and when
//! packets last matched them.
//!
//! Control makes room, sets and reads; a worker counts, meters and notes hits through its [`AttachedPart`]. Each worker counts in
//! memory of its own. Meters are shared, as their tokens are; see [`crate::direct_meter`].

use crate::counter::{CounterPart, CounterValue, Tally};
use crate::direct_meter::MeterCell;
use crate::engines::{NoMemory, Segments};
use crate::entry::EntryIndex;
use crate::meter::{Color, ColorCounts, Meter, MeterConfig, MeterUnit};
use crate::table::TableSpec;
use crate::{MeterError, TableError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The control side. Every index of an entry, and that of the default entry, has its own of each.
pub(crate) struct Attached {
    counters: Option<Tally>,
    meters: Option<Meters>,
    idle: Option<Idle>,
}

struct Meters {
    unit: MeterUnit,
    cells: Arc<Segments<MeterCell>>,
    /// What was coloured, by [`Color`].
    colors: [Tally; 3],
}

struct Idle {
    timeouts_ns: Vec<u64>,
    last_hits_ns: Arc<Segments<AtomicU64>>,
}

/// A worker's side of what is attached to the entries of one table.
pub struct AttachedPart {
    counters: Option<CounterPart>,
    meters: Option<MetersPart>,
    last_hits_ns: Option<Arc<Segments<AtomicU64>>>,
}

struct MetersPart {
    unit: MeterUnit,
    cells: Arc<Segments<MeterCell>>,
    colors: [CounterPart; 3],
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attached")
    }
}

impl std::fmt::Debug for AttachedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AttachedPart")
    }
}

impl AttachedPart {
    /// Records that a packet matched an entry at `now_ns`, in a table whose entries may have idle timeouts.
    #[inline]
    pub fn record(&mut self, found: EntryIndex, now_ns: u64) {
        if let Some(hit) = self.last_hits_ns.as_ref().and_then(|hits| hits.get(found.0 as usize)) {
            hit.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Counts a packet of so many bytes on the entry's direct counter, if the table has one. Whether a miss counts on
    /// the default entry is the caller's to say.
    #[inline]
    pub fn count(&mut self, found: EntryIndex, bytes: u64) {
        if let Some(counters) = &mut self.counters {
            counters.count(found.0.into(), bytes);
        }
    }

    /// Where the direct counters are ([`CounterPart::starts`]); null in a table without any.
    pub fn counter_starts(&self) -> *const u8 {
        self.counters.as_ref().map_or(std::ptr::null(), CounterPart::starts)
    }

    /// Colours a packet by the entry's direct meter ([`crate::Meter::execute`]) and counts it by its colour; green, and not
    /// counted, in a table without one.
    pub fn meter(&mut self, found: EntryIndex, now_ns: u64, bytes: u64, before: Color) -> Color {
        let Some(meters) = &mut self.meters else { return Color::Green };
        let at = found.0 as usize;
        let Some(cell) = meters.cells.get(at) else { return Color::Green };
        let color = cell.execute(now_ns, meters.unit.units(bytes), before);
        meters.colors[color as usize].count(found.0.into(), bytes);
        color
    }
}

impl Attached {
    /// Of the default entry of a table.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(crate) fn new(spec: &TableSpec) -> Result<Attached, NoMemory> {
        let mut attached = Attached {
            counters: spec.counter.map(|_| Tally::default()),
            meters: spec.meter.map(|unit| Meters {
                unit,
                cells: Arc::new(Segments::new()),
                colors: Default::default(),
            }),
            idle: spec
                .idle_timeout
                .then(|| Idle { timeouts_ns: Vec::new(), last_hits_ns: Arc::new(Segments::new()) }),
        };
        attached.reserve(EntryIndex::MISS)?;
        Ok(attached)
    }

    /// The side of one more worker.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(crate) fn part(&mut self) -> Result<AttachedPart, NoMemory> {
        let meters = match &mut self.meters {
            None => None,
            Some(Meters { unit, cells, colors: [green, yellow, red] }) => Some(MetersPart {
                unit: *unit,
                cells: Arc::clone(cells),
                colors: [green.part(u64::MAX)?, yellow.part(u64::MAX)?, red.part(u64::MAX)?],
            }),
        };
        Ok(AttachedPart {
            counters: self.counters.as_mut().map(|counters| counters.part(u64::MAX)).transpose()?,
            meters,
            last_hits_ns: self.idle.as_ref().map(|idle| Arc::clone(&idle.last_hits_ns)),
        })
    }

    /// Makes room for an entry of this index.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn reserve(&mut self, index: EntryIndex) -> Result<(), NoMemory> {
        let at = index.0 as usize;
        if let Some(counters) = &mut self.counters {
            counters.reserve(at + 1)?;
        }
        if let Some(meters) = &mut self.meters {
            meters.colors.iter_mut().try_for_each(|tally| tally.reserve(at + 1))?;
            meters.cells.reserve(at)?;
        }
        if let Some(idle) = &mut self.idle {
            idle.last_hits_ns.reserve(at)?;
            if idle.timeouts_ns.len() <= at {
                idle.timeouts_ns.resize(at + 1, 0);
            }
        }
        Ok(())
    }

    /// An entry comes to an index with room, which no worker holds: counter and meter start from zero.
    pub(crate) fn start(&mut self, index: EntryIndex, timeout_ns: u64, now_ns: u64) {
        if let Some(counters) = &mut self.counters {
            counters.set(index.0 as usize, CounterValue::default());
        }
        if let Some(cell) = self.meter_cell(index) {
            cell.clear();
        }
        self.set_meter_counts(index, ColorCounts::default());
        self.set_timeout(index, timeout_ns);
        if let Some(hit) = self.idle.as_ref().and_then(|idle| idle.last_hits_ns.get(index.0 as usize)) {
            hit.store(now_ns, Ordering::Relaxed);
        }
    }

    /// The counter of an entry; zero without counters.
    pub(crate) fn counter(&self, index: EntryIndex) -> CounterValue {
        self.counters.as_ref().map_or_else(CounterValue::default, |tally| tally.value(index.0 as usize))
    }

    pub(crate) fn set_counter(&mut self, index: EntryIndex, value: CounterValue) {
        if let Some(counters) = &mut self.counters {
            counters.set(index.0 as usize, value);
        }
    }

    pub(crate) fn add_counter(&mut self, index: EntryIndex, value: CounterValue) {
        if let Some(counters) = &mut self.counters {
            counters.add(index.0 as usize, value);
        }
    }

    pub(crate) fn reset_counters(&mut self) {
        if let Some(counters) = &mut self.counters {
            counters.reset();
        }
    }

    pub(crate) fn meter_config(&self, index: EntryIndex) -> Option<MeterConfig> {
        self.meter_cell(index)?.config()
    }

    /// Configures the meter of an entry and has its buckets be full.
    ///
    /// # Errors
    /// [`TableError::NoMeter`], [`MeterError`].
    pub(crate) fn set_meter(
        &mut self,
        index: EntryIndex,
        config: Option<MeterConfig>,
    ) -> Result<(), TableError> {
        let unit = self.meters.as_ref().ok_or(TableError::NoMeter)?.unit;
        let written = self.meter_cell(index).ok_or(TableError::NoMeter)?.publish(unit, config);
        written.map_err(|error: MeterError| error.into())
    }

    /// What the meter of an entry has coloured; none without meters.
    pub(crate) fn meter_counts(&self, index: EntryIndex) -> Option<ColorCounts> {
        let meters = self.meters.as_ref()?;
        Some(meters.colors.each_ref().map(|tally| tally.value(index.0 as usize)))
    }

    pub(crate) fn set_meter_counts(&mut self, index: EntryIndex, counts: ColorCounts) {
        for (tally, value) in self.meters.iter_mut().flat_map(|meters| &mut meters.colors).zip(counts) {
            tally.set(index.0 as usize, value);
        }
    }

    /// Adds to what the meter of an entry has coloured.
    pub(crate) fn add_meter_counts(&mut self, index: EntryIndex, counts: ColorCounts) {
        for (tally, value) in self.meters.iter_mut().flat_map(|meters| &mut meters.colors).zip(counts) {
            tally.add(index.0 as usize, value);
        }
    }

    /// The meter of an entry as it is now.
    pub(crate) fn meter(&self, index: EntryIndex) -> Option<Meter> {
        self.meter_cell(index).map(MeterCell::look)
    }

    /// Sets the buckets of the meter of an entry, as long as its parameters are the same.
    pub(crate) fn keep_meter(&self, index: EntryIndex, meter: &Meter) {
        if let Some(cell) = self.meter_cell(index) {
            cell.keep(meter);
        }
    }

    fn meter_cell(&self, index: EntryIndex) -> Option<&MeterCell> {
        self.meters.as_ref()?.cells.get(index.0 as usize)
    }

    pub(crate) fn timeout_ns(&self, index: EntryIndex) -> u64 {
        self.idle.as_ref().and_then(|idle| idle.timeouts_ns.get(index.0 as usize)).copied().unwrap_or(0)
    }

    pub(crate) fn set_timeout(&mut self, index: EntryIndex, timeout_ns: u64) {
        if let Some(timeout) = self.idle.as_mut().and_then(|idle| idle.timeouts_ns.get_mut(index.0 as usize))
        {
            *timeout = timeout_ns;
        }
    }

    pub(crate) fn last_hit_ns(&self, index: EntryIndex) -> u64 {
        let hit = self.idle.as_ref().and_then(|idle| idle.last_hits_ns.get(index.0 as usize));
        hit.map_or(0, |hit| hit.load(Ordering::Relaxed))
    }

    /// Bytes of memory, as far as it has been reserved.
    pub(crate) fn bytes(&self) -> usize {
        let counters = self.counters.as_ref().map_or(0, Tally::bytes);
        let meters = self
            .meters
            .as_ref()
            .map_or(0, |meters| meters.cells.bytes() + meters.colors.iter().map(Tally::bytes).sum::<usize>());
        let idle =
            self.idle.as_ref().map_or(0, |idle| idle.timeouts_ns.len() * 8 + idle.last_hits_ns.bytes());
        counters + meters + idle
    }
}
