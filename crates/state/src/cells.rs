//! The control side of counters, meters, registers and value sets.

use crate::WriteError;
use crate::pack;
use crate::state::State;
use millrace_pipeline::*;
use millrace_tables::{
    CounterKind, CounterValue, EntryIndex, FieldMatch, MeterConfig, MeterUnit, TableError,
};

/// A counter: an array, or that of the entries of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterRef {
    /// Indexed by the program.
    Indexed(CounterId),
    /// Indexed by [`EntryIndex`].
    Direct(TableId),
}

/// A meter: an array, or that of the entries of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterRef {
    /// Indexed by the program.
    Indexed(MeterId),
    /// Indexed by [`EntryIndex`].
    Direct(TableId),
}

impl State {
    /// What a counter counts.
    pub fn counter_kind(&self, counter: CounterRef) -> CounterKind {
        match counter {
            CounterRef::Indexed(id) => self.counters[id].kind(),
            CounterRef::Direct(id) => self.tables[id].table.spec().counter.unwrap_or(CounterKind::Both),
        }
    }

    /// The cells of an indexed counter; none for a direct one, which has one for each entry.
    pub fn counter_size(&self, counter: CounterRef) -> Option<u64> {
        match counter {
            CounterRef::Indexed(id) => Some(self.counters[id].size()),
            CounterRef::Direct(_) => None,
        }
    }

    /// The value of a cell.
    ///
    /// # Errors
    /// No such cell or entry.
    pub fn counter_value(&self, counter: CounterRef, index: u64) -> Result<CounterValue, WriteError> {
        match counter {
            CounterRef::Indexed(id) => {
                let array = &self.counters[id];
                array.read(index).ok_or(WriteError::Index { index, size: array.size() })
            }
            CounterRef::Direct(id) => Ok(self.tables[id].table.counter(entry_index(index)?)?),
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
        match counter {
            CounterRef::Indexed(id) => {
                let array = &mut self.counters[id];
                let size = array.size();
                if array.write(index, value) { Ok(()) } else { Err(WriteError::Index { index, size }) }
            }
            CounterRef::Direct(id) => Ok(self.tables[id].table.set_counter(entry_index(index)?, value)?),
        }
    }

    /// Sets all cells to zero.
    ///
    /// # Errors
    /// The table has no direct counter.
    pub fn reset_counter(&mut self, counter: CounterRef) -> Result<(), WriteError> {
        match counter {
            CounterRef::Indexed(id) => self.counters[id].reset(),
            CounterRef::Direct(id) => self.tables[id].table.reset_counters()?,
        }
        Ok(())
    }

    /// What a meter measures.
    pub fn meter_unit(&self, meter: MeterRef) -> MeterUnit {
        match meter {
            MeterRef::Indexed(id) => self.meters[id].unit(),
            MeterRef::Direct(id) => self.tables[id].table.spec().meter.unwrap_or(MeterUnit::Bytes),
        }
    }

    /// Configures a meter and fills its buckets; none: everything is green.
    ///
    /// # Errors
    /// No such cell or entry, or rates that contradict each other.
    pub fn set_meter(
        &mut self,
        meter: MeterRef,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), WriteError> {
        match meter {
            MeterRef::Indexed(id) => self.meters[id].configure(index, config)?,
            MeterRef::Direct(id) => self.tables[id].table.set_meter(entry_index(index)?, config)?,
        }
        Ok(())
    }

    /// Configures all cells of an indexed meter, or the meters of all entries that there are now.
    ///
    /// # Errors
    /// Rates that contradict each other.
    pub fn set_all_meters(&mut self, meter: MeterRef, config: Option<MeterConfig>) -> Result<(), WriteError> {
        match meter {
            MeterRef::Indexed(id) => self.meters[id].configure_all(config)?,
            MeterRef::Direct(id) => {
                let entries: Vec<EntryIndex> = self.tables[id].table.iter().map(|(index, _)| index).collect();
                for index in entries {
                    self.tables[id].table.set_meter(index, config)?;
                }
            }
        }
        Ok(())
    }

    /// The configuration of a meter; none when it has none.
    ///
    /// # Errors
    /// No such cell or entry.
    pub fn meter_config(&self, meter: MeterRef, index: u64) -> Result<Option<MeterConfig>, WriteError> {
        match meter {
            MeterRef::Indexed(id) => {
                let array = &self.meters[id];
                let meter = array.meter(index).ok_or(WriteError::Index { index, size: array.size() })?;
                Ok(meter.config())
            }
            MeterRef::Direct(id) => {
                let entry = self.tables[id].table.entry(entry_index(index)?).ok_or(TableError::NotFound)?;
                Ok(entry.meter().config())
            }
        }
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
        self.check_cell(register, index)?;
        let width = self.registers[register].width();
        if value.width() != width {
            return Err(WriteError::CellWidth { width, found: value.width() });
        }
        self.register_write(register, index, value);
        Ok(())
    }

    /// Sets all cells of a register to zero.
    pub fn reset_register(&mut self, register: RegisterId) {
        self.registers[register].reset();
    }

    /// Adds a member to a value set. [`EntryMatch::Exact`] is accepted for a field of any kind.
    ///
    /// # Errors
    /// The member is there, the set is full, or the matches do not fit its fields.
    pub fn insert_value(&mut self, set: ValueSetId, member: &[EntryMatch]) -> Result<(), WriteError> {
        let member = self.set_matches(set, member)?;
        Ok(self.value_sets[set].insert(&member)?)
    }

    /// Removes a member from a value set.
    ///
    /// # Errors
    /// No such member, or matches that do not fit.
    pub fn remove_value(&mut self, set: ValueSetId, member: &[EntryMatch]) -> Result<(), WriteError> {
        let member = self.set_matches(set, member)?;
        Ok(self.value_sets[set].remove(&member)?)
    }

    /// Replaces all members of a value set.
    ///
    /// # Errors
    /// As [`State::insert_value`].
    pub fn replace_values(&mut self, set: ValueSetId, members: &[Vec<EntryMatch>]) -> Result<(), WriteError> {
        let members: Vec<Vec<FieldMatch>> =
            members.iter().map(|member| self.set_matches(set, member)).collect::<Result<_, _>>()?;
        Ok(self.value_sets[set].replace(&members)?)
    }

    /// Removes all members of a value set.
    pub fn clear_values(&mut self, set: ValueSetId) {
        self.value_sets[set].clear();
    }

    /// The members of a value set, in the order in which they were added.
    pub fn values(&self, set: ValueSetId) -> impl Iterator<Item = Vec<EntryMatch>> {
        let fields = &self.program.value_sets[set].fields;
        self.value_sets[set].members().map(move |member| {
            fields.iter().zip(&member).map(|((_, width, _), kept)| pack::entry_match(*width, kept)).collect()
        })
    }

    fn check_cell(&self, register: RegisterId, index: u64) -> Result<(), WriteError> {
        let size = self.registers[register].size();
        if index < size { Ok(()) } else { Err(WriteError::Index { index, size }) }
    }

    fn set_matches(&self, set: ValueSetId, member: &[EntryMatch]) -> Result<Vec<FieldMatch>, WriteError> {
        let fields = &self.program.value_sets[set].fields;
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
