//! Objects that need not be made: those of the program until now will move into their places.

use super::arrays::pairs;
use super::likeness::{profile_pairs, table_pairs};
use super::moved;
use crate::pack::meter_unit;
use crate::schema::Schema;
use millrace_pipeline::entity::{EntityRef, PrimaryMap};
use millrace_pipeline::*;
use std::collections::BTreeSet;

/// The objects of a program in whose places others will move, and that hold next to nothing until then. Large tables and
/// arrays take milliseconds to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vacant {
    pub(crate) tables: BTreeSet<TableId>,
    pub(crate) counters: BTreeSet<CounterId>,
    pub(crate) meters: BTreeSet<MeterId>,
    pub(crate) registers: BTreeSet<RegisterId>,
}

impl Vacant {
    /// What may be left out of a program that takes over from another.
    pub(crate) fn of(old: &Schema, new: &Schema) -> Vacant {
        let tables = table_pairs(old, new, &profile_pairs(old, new));
        let (before, now) = (&old.program, &new.program);
        Vacant {
            tables: moved(&tables).map(|(_, new)| new).collect(),
            counters: alike(&before.counters, &now.counters, |counter| &counter.name, Counter::eq),
            meters: alike(&before.meters, &now.meters, |meter| &meter.name, same_meters),
            registers: alike(&before.registers, &now.registers, |register| &register.name, same_registers),
        }
    }

    /// Whether all of it is also left out of another.
    pub(crate) fn is_within(&self, other: &Vacant) -> bool {
        self.tables.is_subset(&other.tables)
            && self.counters.is_subset(&other.counters)
            && self.meters.is_subset(&other.meters)
            && self.registers.is_subset(&other.registers)
    }

    /// Whether there is nothing that was left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_within(&Vacant::default())
    }
}

/// The new objects of one kind in whose places the old ones of their names can go.
fn alike<K: EntityRef + Ord, V>(
    old: &PrimaryMap<K, V>,
    new: &PrimaryMap<K, V>,
    name: fn(&V) -> &str,
    same: fn(&V, &V) -> bool,
) -> BTreeSet<K> {
    pairs(old, new, name)
        .filter_map(|(id, found)| found.filter(|found| same(&old[id], &new[*found])))
        .collect()
}

/// Whether one array of meters can take the place of another.
pub(super) fn same_meters(old: &Meter, new: &Meter) -> bool {
    old.size == new.size && meter_unit(old.unit) == meter_unit(new.unit)
}

/// Whether one register can take the place of another.
pub(super) fn same_registers(old: &Register, new: &Register) -> bool {
    old.size == new.size && old.width == new.width
}
