//! Objects that need not be made: those of the program until now will move into their places.

use super::arrays::pairs;
use super::likeness::{profile_pairs, table_pairs};
use super::moved;
use crate::pack::meter_unit;
use crate::schema::Schema;
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
        let counters = pairs(&before.counters, &now.counters, |counter: &Counter| counter.name.as_str());
        let meters = pairs(&before.meters, &now.meters, |meter: &Meter| meter.name.as_str());
        let registers =
            pairs(&before.registers, &now.registers, |register: &Register| register.name.as_str());
        Vacant {
            tables: moved(&tables).map(|(_, new)| new).collect(),
            counters: counters
                .filter_map(|(id, found)| found.filter(|found| before.counters[id] == now.counters[*found]))
                .collect(),
            meters: meters
                .filter_map(|(id, found)| {
                    found.filter(|found| same_meters(&before.meters[id], &now.meters[*found]))
                })
                .collect(),
            registers: registers
                .filter_map(|(id, found)| {
                    found.filter(|found| same_registers(&before.registers[id], &now.registers[*found]))
                })
                .collect(),
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

/// Whether one array of meters can take the place of another.
pub(super) fn same_meters(old: &Meter, new: &Meter) -> bool {
    old.size == new.size && meter_unit(old.unit) == meter_unit(new.unit)
}

/// Whether one register can take the place of another.
pub(super) fn same_registers(old: &Register, new: &Register) -> bool {
    old.size == new.size && old.width == new.width
}
