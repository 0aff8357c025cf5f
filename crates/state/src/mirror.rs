//! What those need who keep objects outside of this memory, as hardware does: to know whether control has written since they looked
//! last, and to bring back what packets did there.

use crate::WriteError;
use crate::cells::{CounterRef, MeterRef};
use crate::state::State;
use crate::tables::Tables;
use millrace_pipeline::*;
use millrace_tables::{CounterValue, EntryIndex, Meter};

/// Which writes of control there were: another value after each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// To registers, meters, value sets and hashes.
    objects: u64,
    /// To counters and to what belongs to entries.
    tables: (u64, u64),
}

impl Written {
    /// Those to registers, meters, value sets and hashes.
    pub fn to_objects(self) -> Written {
        Written { tables: (0, 0), ..self }
    }

    /// These, and those to counters, but not to entries.
    pub fn to_arrays(self) -> Written {
        Written { tables: (0, self.tables.1), ..self }
    }
}

impl Tables {
    /// Adds what packets counted elsewhere. Control has not written by that.
    ///
    /// # Errors
    /// No such cell or entry.
    pub fn bring_counts(
        &mut self,
        counter: CounterRef,
        index: u64,
        more: CounterValue,
    ) -> Result<(), WriteError> {
        let written = self.counter_writes;
        let added = self.add_to_counter(counter, index, more);
        self.counter_writes = written;
        added
    }

    /// The direct meter of an entry as it is now; none where there is no such entry or no meter.
    pub fn direct_meter(&self, table: TableId, index: u64) -> Option<Meter> {
        let index = EntryIndex(u32::try_from(index).ok()?);
        self.tables[table].meter_of(index)
    }
}

impl State {
    /// Which writes of control there were. `tables` are those of this state.
    pub fn written(&self, tables: &Tables) -> Written {
        Written { objects: self.object_writes, tables: (tables.commits, tables.counter_writes) }
    }

    /// A cell of a meter as it is now; none where there is no such cell.
    pub fn meter_cell(&self, meter: MeterId, index: u64) -> Option<Meter> {
        self.shared.meters[meter].meter(index)
    }

    /// Sets a meter to what packets made of it elsewhere, as long as its configuration is the same, and adds what they counted by
    /// colour.
    pub fn bring_meter(&mut self, meter: MeterRef, index: u64, kept: Meter, more: [CounterValue; 3]) {
        match meter {
            MeterRef::Indexed(id) => {
                let array = &mut self.shared.meters[id];
                if array.meter(index).is_some_and(|meter| meter.config() == kept.config()) {
                    array.put(index, kept);
                }
                if let Some(mut counts) = array.counts(index) {
                    for (count, more) in counts.iter_mut().zip(more) {
                        count.packets = count.packets.wrapping_add(more.packets);
                        count.bytes = count.bytes.wrapping_add(more.bytes);
                    }
                    array.set_counts(index, counts);
                }
            }
            MeterRef::Direct(id) => {
                let mut tables = self.handle.lock();
                if let Ok(at) = u32::try_from(index) {
                    tables.tables[id].keep_meter(EntryIndex(at), kept);
                }
                // An entry that is gone has nothing to be added to.
                let _ = tables.add_to_meter_counts(id, index, more);
            }
        }
    }
}
