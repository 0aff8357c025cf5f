//! The control side of counters, meters, registers and value sets.

use crate::WriteError;
use crate::journal::Undo;
use crate::own::ObjectUndo;
use crate::pack;
use crate::state::State;
use crate::tables::Tables;
use millrace_pipeline::*;
use millrace_tables::{
    ColorCounts, CounterKind, CounterValue, EntryIndex, FieldMatch, MeterConfig, MeterUnit, TableError,
};

/// A counter: an array, or that of the entries of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterRef {
    /// Indexed by the program.
    Indexed(CounterId),
    /// Indexed by [`EntryIndex`].
    Direct(TableId),
}

/// A meter: an array, whose buckets and configuration are the [`State`]'s, or that of the entries of a table, which is
/// configured through the [`Tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterRef {
    /// Indexed by the program.
    Indexed(MeterId),
    /// Indexed by [`EntryIndex`].
    Direct(TableId),
}

impl Tables {
    /// What a counter counts.
    pub fn counter_kind(&self, counter: CounterRef) -> CounterKind {
        match counter {
            CounterRef::Indexed(id) => self.counters[id].kind(),
            CounterRef::Direct(id) => self.tables[id].spec().counter.unwrap_or(CounterKind::Both),
        }
    }

    /// The value of a cell: the sum of what all workers counted.
    ///
    /// # Errors
    /// No such cell or entry.
    pub fn counter_value(&self, counter: CounterRef, index: u64) -> Result<CounterValue, WriteError> {
        match counter {
            CounterRef::Indexed(id) => {
                let array = &self.counters[id];
                array.read(index).ok_or(WriteError::Index { index, size: array.size() })
            }
            CounterRef::Direct(id) => Ok(self.tables[id].counter(entry_index(index)?)?),
        }
    }

    /// Sets a cell.
    ///
    /// # Errors
    /// No such cell or entry.
    pub fn set_counter(
        &mut self,
        counter: CounterRef,
        index: u64,
        value: CounterValue,
    ) -> Result<(), WriteError> {
        self.counter_writes += 1;
        let before = self.counter_value(counter, index)?;
        match counter {
            // The cell is there.
            CounterRef::Indexed(id) => drop(self.counters[id].write(index, value)),
            CounterRef::Direct(id) => self.tables[id].set_counter(entry_index(index)?, value)?,
        }
        self.note_counter(counter, index, before);
        Ok(())
    }

    /// Adds to a cell; what is counted at the same time is counted too, and there is no undoing it.
    ///
    /// # Errors
    /// No such cell or entry.
    pub(crate) fn add_to_counter(
        &mut self,
        counter: CounterRef,
        index: u64,
        value: CounterValue,
    ) -> Result<(), WriteError> {
        self.counter_writes += 1;
        match counter {
            CounterRef::Indexed(id) => {
                let array = &mut self.counters[id];
                let size = array.size();
                array.add(index, value).then_some(()).ok_or(WriteError::Index { index, size })
            }
            CounterRef::Direct(id) => Ok(self.tables[id].add_counter(entry_index(index)?, value)?),
        }
    }

    /// Sets all cells to zero.
    ///
    /// # Errors
    /// The table has no direct counter.
    pub fn reset_counter(&mut self, counter: CounterRef) -> Result<(), WriteError> {
        self.counter_writes += 1;
        if self.undo.is_some() {
            let cells: Vec<u64> = match counter {
                CounterRef::Indexed(id) => (0..self.counters[id].size()).collect(),
                CounterRef::Direct(id) => {
                    let entries = self.tables[id].iter().map(|(index, _)| u64::from(index.0));
                    entries.chain([0]).collect()
                }
            };
            for index in cells {
                let before = self.counter_value(counter, index)?;
                if before != CounterValue::default() {
                    self.note_counter(counter, index, before);
                }
            }
        }
        match counter {
            CounterRef::Indexed(id) => self.counters[id].reset(),
            CounterRef::Direct(id) => self.tables[id].reset_counters()?,
        }
        Ok(())
    }

    /// Configures the direct meter of an entry and fills its buckets; none: everything is green.
    ///
    /// # Errors
    /// No such entry, no direct meter, or rates that contradict each other.
    pub fn set_direct_meter(
        &mut self,
        table: TableId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), WriteError> {
        let index = entry_index(index)?;
        let before = self.tables[table].entry(index).and_then(|entry| entry.meter());
        self.tables[table].set_meter(index, config)?;
        self.commits += 1;
        self.note_undo(|| Undo::Meter(table, Box::new((index, before))));
        Ok(())
    }

    /// Configures the direct meters of all entries that there are now.
    ///
    /// # Errors
    /// No direct meter, or rates that contradict each other.
    pub fn set_direct_meters(
        &mut self,
        table: TableId,
        config: Option<MeterConfig>,
    ) -> Result<(), WriteError> {
        let entries: Vec<EntryIndex> = self.tables[table].iter().map(|(index, _)| index).collect();
        entries.into_iter().try_for_each(|index| self.set_direct_meter(table, index.0.into(), config))
    }

    /// The configuration of the direct meter of an entry; none when it has none.
    ///
    /// # Errors
    /// No such entry.
    pub fn direct_meter_config(&self, table: TableId, index: u64) -> Result<Option<MeterConfig>, WriteError> {
        let entry = self.tables[table].entry(entry_index(index)?).ok_or(TableError::NotFound)?;
        Ok(entry.meter())
    }

    /// What the direct meter of an entry has coloured.
    ///
    /// # Errors
    /// No such entry, or no direct meter.
    pub fn direct_meter_counts(&self, table: TableId, index: u64) -> Result<ColorCounts, WriteError> {
        Ok(self.tables[table].meter_counts(entry_index(index)?)?)
    }

    /// Adds to what the direct meter of an entry has coloured.
    ///
    /// # Errors
    /// As [`Tables::direct_meter_counts`].
    pub(crate) fn add_to_meter_counts(
        &mut self,
        table: TableId,
        index: u64,
        counts: ColorCounts,
    ) -> Result<(), WriteError> {
        Ok(self.tables[table].add_meter_counts(entry_index(index)?, counts)?)
    }

    /// Sets what the direct meter of an entry has coloured.
    ///
    /// # Errors
    /// As [`Tables::direct_meter_counts`].
    pub fn set_direct_meter_counts(
        &mut self,
        table: TableId,
        index: u64,
        counts: ColorCounts,
    ) -> Result<(), WriteError> {
        self.counter_writes += 1;
        let index = entry_index(index)?;
        let before = self.tables[table].meter_counts(index)?;
        self.tables[table].set_meter_counts(index, counts)?;
        self.commits += 1;
        self.note_undo(|| Undo::MeterCounts(table, Box::new((index, before))));
        Ok(())
    }
}

impl State {
    /// What a meter measures.
    pub fn meter_unit(&self, meter: MeterId) -> MeterUnit {
        self.shared.meters[meter].unit()
    }

    /// Configures a meter and fills its buckets; none: everything is green.
    ///
    /// # Errors
    /// No such cell, or rates that contradict each other.
    pub fn set_meter(
        &mut self,
        meter: MeterId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), WriteError> {
        self.object_writes += 1;
        let before = self.shared.meters[meter].meter(index);
        self.shared.meters[meter].configure(index, config)?;
        if let Some(before) = before {
            self.noted.note_undo(|| ObjectUndo::Meter(meter, index, Box::new(before)));
        }
        Ok(())
    }

    /// Configures all cells of a meter.
    ///
    /// # Errors
    /// Rates that contradict each other.
    pub fn set_all_meters(&mut self, meter: MeterId, config: Option<MeterConfig>) -> Result<(), WriteError> {
        self.object_writes += 1;
        let before = self.noted.notes().then(|| self.shared.meters[meter].snapshot());
        self.shared.meters[meter].configure_all(config)?;
        if let Some(before) = before {
            self.noted.note_undo(|| ObjectUndo::Meters(meter, before));
        }
        Ok(())
    }

    /// The configuration of a meter; none when it has none.
    ///
    /// # Errors
    /// No such cell.
    pub fn meter_config(&self, meter: MeterId, index: u64) -> Result<Option<MeterConfig>, WriteError> {
        let array = &self.shared.meters[meter];
        let meter = array.meter(index).ok_or(WriteError::Index { index, size: array.size() })?;
        Ok(meter.config())
    }

    /// What a meter has coloured.
    ///
    /// # Errors
    /// No such cell.
    pub fn meter_counts(&self, meter: MeterId, index: u64) -> Result<ColorCounts, WriteError> {
        let array = &self.shared.meters[meter];
        array.counts(index).ok_or(WriteError::Index { index, size: array.size() })
    }

    /// Sets what a meter has coloured; there is no undoing it.
    ///
    /// # Errors
    /// No such cell.
    pub fn set_meter_counts(
        &mut self,
        meter: MeterId,
        index: u64,
        counts: ColorCounts,
    ) -> Result<(), WriteError> {
        self.object_writes += 1;
        let array = &mut self.shared.meters[meter];
        let size = array.size();
        array.set_counts(index, counts).then_some(()).ok_or(WriteError::Index { index, size })
    }

    /// The value of a register's cell.
    ///
    /// # Errors
    /// No such cell.
    pub fn register_value(&self, register: RegisterId, index: u64) -> Result<Bits, WriteError> {
        self.check_cell(register, index)?;
        Ok(self.register_read(register, index))
    }

    /// Sets a register's cell.
    ///
    /// # Errors
    /// No such cell, or a value of another width.
    pub fn set_register(&mut self, register: RegisterId, index: u64, value: &Bits) -> Result<(), WriteError> {
        self.object_writes += 1;
        self.check_cell(register, index)?;
        let width = self.shared.registers[register].width();
        if value.width() != width {
            return Err(WriteError::CellWidth { width, found: value.width() });
        }
        let before = self.register_read(register, index);
        self.register_write(register, index, value);
        self.noted.note_undo(|| ObjectUndo::Register(register, index, before));
        Ok(())
    }

    /// Sets all cells of a register to zero.
    pub fn reset_register(&mut self, register: RegisterId) {
        self.object_writes += 1;
        if self.noted.notes() {
            let before = self.shared.registers[register].snapshot();
            self.noted.note_undo(|| ObjectUndo::Registers(register, before));
        }
        self.shared.registers[register].reset();
    }

    /// Adds a member to a value set. [`EntryMatch::Exact`] is accepted for a field of any kind.
    ///
    /// # Errors
    /// The member is there, the set is full, or the matches do not fit its fields.
    pub fn insert_value(&mut self, set: ValueSetId, member: &[EntryMatch]) -> Result<(), WriteError> {
        self.object_writes += 1;
        let member = self.set_matches(set, member)?;
        self.note_set(set);
        Ok(self.own.value_sets[set].insert(&member)?)
    }

    /// Removes a member from a value set.
    ///
    /// # Errors
    /// No such member, or matches that do not fit.
    pub fn remove_value(&mut self, set: ValueSetId, member: &[EntryMatch]) -> Result<(), WriteError> {
        self.object_writes += 1;
        let member = self.set_matches(set, member)?;
        self.note_set(set);
        Ok(self.own.value_sets[set].remove(&member)?)
    }

    /// Replaces all members of a value set.
    ///
    /// # Errors
    /// As [`State::insert_value`].
    pub fn replace_values(&mut self, set: ValueSetId, members: &[Vec<EntryMatch>]) -> Result<(), WriteError> {
        self.object_writes += 1;
        let members: Vec<Vec<FieldMatch>> =
            members.iter().map(|member| self.set_matches(set, member)).collect::<Result<_, _>>()?;
        self.note_set(set);
        Ok(self.own.value_sets[set].replace(&members)?)
    }

    /// Removes all members of a value set.
    pub fn clear_values(&mut self, set: ValueSetId) {
        self.object_writes += 1;
        self.note_set(set);
        self.own.value_sets[set].clear();
    }

    /// The members of a value set, in the order in which they were added.
    pub fn values(&self, set: ValueSetId) -> impl Iterator<Item = Vec<EntryMatch>> {
        let fields = &self.schema.program.value_sets[set].fields;
        self.own.value_sets[set].members().map(move |member| {
            fields.iter().zip(&member).map(|((_, width, _), kept)| pack::entry_match(*width, kept)).collect()
        })
    }

    /// Notes a set as it was before its first change.
    fn note_set(&mut self, set: ValueSetId) {
        if self.noted.notes() && !self.noted.has_noted_set(set) {
            let before = self.own.value_sets[set].clone();
            self.noted.note_undo(|| ObjectUndo::Values(set, Box::new(before)));
        }
    }

    fn check_cell(&self, register: RegisterId, index: u64) -> Result<(), WriteError> {
        let size = self.shared.registers[register].size();
        if index < size { Ok(()) } else { Err(WriteError::Index { index, size }) }
    }

    fn set_matches(&self, set: ValueSetId, member: &[EntryMatch]) -> Result<Vec<FieldMatch>, WriteError> {
        let fields = &self.schema.program.value_sets[set].fields;
        if member.len() != fields.len() {
            return Err(WriteError::MatchCount {
                keys: fields.iter().map(|(name, _, _)| name.clone()).collect(),
                found: member.len(),
            });
        }
        for ((name, width, _), given) in fields.iter().zip(member) {
            if let Some(value) = pack::match_values(given).find(|value| value.width() != *width) {
                return Err(WriteError::KeyWidth { key: name.clone(), width: *width, found: value.width() });
            }
        }
        Ok(member.iter().map(pack::field_match).collect())
    }
}

fn entry_index(index: u64) -> Result<EntryIndex, TableError> {
    u32::try_from(index).map(EntryIndex).map_err(|_| TableError::NotFound)
}
