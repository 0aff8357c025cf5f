//! Entries that are taken out of a table and may be put back.

use super::Table;
use crate::counter::CounterValue;
use crate::entry::{EntryIndex, EntryTarget};
use crate::error::TableError;
use crate::key::FieldMatch;
use crate::meter::{ColorCounts, MeterConfig};
use crate::published::Rank;

/// An entry that was taken out, with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Taken {
    index: EntryIndex,
    matches: Vec<FieldMatch>,
    rank: Rank,
    target: EntryTarget,
    counter: CounterValue,
    meter: Option<MeterConfig>,
    meter_counts: Option<ColorCounts>,
    idle_timeout_ns: u64,
    last_hit_ns: u64,
}

impl Taken {
    /// The index that the entry had.
    pub fn index(&self) -> EntryIndex {
        self.index
    }
}

impl Table {
    /// As [`Table::remove`], with what [`Table::put_back`] needs.
    ///
    /// # Errors
    /// As [`Table::remove`].
    pub fn take(&mut self, index: EntryIndex) -> Result<Taken, TableError> {
        self.changeable(index)?;
        let taken = Taken {
            index,
            matches: self.store.matches(index),
            rank: self.rank(index),
            target: self.target_to_write(index),
            counter: self.attached.counter(index),
            meter: self.attached.meter_config(index),
            meter_counts: self.attached.meter_counts(index),
            idle_timeout_ns: self.attached.timeout_ns(index),
            last_hit_ns: self.attached.last_hit_ns(index),
        };
        self.take_out(index);
        Ok(taken)
    }

    /// Puts an entry back that was taken out: to its place in the order and, unless another entry has that meanwhile, to its
    /// index. Gives the index that it has.
    ///
    /// # Errors
    /// [`TableError::NoMemory`], or what others have written meanwhile: an entry with its matches, or entries that fill the
    /// table. The entry stays out.
    pub fn put_back(&mut self, taken: Taken) -> Result<EntryIndex, TableError> {
        let Taken { index, matches, rank, target, .. } = taken;
        let identity = self.store.identity(&matches, rank.priority);
        if self.store.find(&identity).is_some() {
            return Err(TableError::Duplicate);
        }
        if self.store.len() >= self.spec.size {
            return Err(TableError::Full { limit: self.spec.size });
        }
        let index = if self.store.contains(index) { self.next_index() } else { index };
        self.attached.reserve(index)?;
        self.store.make_room(index)?;
        self.attached.start(index, taken.idle_timeout_ns, taken.last_hit_ns);
        self.attached.set_counter(index, taken.counter);
        if taken.meter.is_some() {
            self.attached.set_meter(index, taken.meter)?;
        }
        self.attached.set_meter_counts(index, taken.meter_counts.unwrap_or_default());
        let arguments = target.arguments();
        let slot = self.intern(target)?;
        if let Err(error) = self.published.insert(&matches, rank, index, slot) {
            self.slots.release(slot);
            return Err(error.into());
        }
        self.arguments += arguments;
        self.store.insert(index, &identity, slot, false, rank.serial);
        // It is among the last ones that became free.
        if let Some(at) = self.free.iter().rposition(|free| *free == index) {
            self.free.remove(at);
        } else if let Some(at) = self.unlinked.iter().rposition(|free| *free == index) {
            self.unlinked.remove(at);
        } else if let Some(at) = self.limbo.iter().rposition(|(_, free)| *free == index) {
            self.limbo.remove(at);
        }
        self.tell_entries();
        Ok(index)
    }
}
