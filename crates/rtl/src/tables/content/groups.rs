//! The members of groups: each has as many places, one after the other, as its weight, in the order in which software counts them round.

use super::{Full, Image, call_data};
use crate::tables::{Chosen, TableUnit};
use millrace_pipeline::*;
use millrace_state::{Selection, Tables, Target};
use std::collections::{BTreeMap, BTreeSet};

/// The groups that a table names and that have members, with their places.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<u32, Group>);

#[derive(Debug)]
struct Group {
    base: u32,
    count: u32,
    selection: Selection,
}

impl Groups {
    /// The groups of a table.
    ///
    /// # Errors
    /// They have more places together than the unit.
    pub(super) fn of(unit: &TableUnit, program: &Program, tables: &Tables) -> Result<Groups, Full> {
        let table = &program.tables[unit.table];
        let (Some(choice), Some(profile)) = (unit.choice, table.profile) else {
            return Ok(Groups::default());
        };
        let default = tables.default_target(unit.table);
        let targets = tables.entries(unit.table).map(|entry| entry.target).chain([default]);
        let named: BTreeSet<u32> = targets
            .filter_map(|target| match target {
                Target::Group(id) => Some(id),
                _ => None,
            })
            .collect();
        let mut groups = BTreeMap::new();
        let mut next = 0;
        for id in named {
            let members = tables.group(profile, id).unwrap_or_default();
            let count: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
            if count > 0 {
                let selection = tables.selection(profile, id).unwrap_or_default();
                // More than there are places of are no words: the sum is looked at below.
                groups.insert(id, Group { base: next as u32, count: count as u32, selection });
                next += count;
            }
        }
        if next > u64::from(choice.places) {
            let selector = Some(program.profiles[profile].name.clone());
            let capacity = choice.places.into();
            return Err(Full { table: table.name.clone(), selector, entries: next, capacity });
        }
        Ok(Groups(groups))
    }

    /// How a group's members are chosen, and the data of an answer that say where they are: the base lowest, then how many. None: the
    /// group is empty.
    pub(super) fn place(&self, unit: &TableUnit, id: u32) -> Option<(Chosen, Bits)> {
        let (choice, group) = (unit.choice?, self.0.get(&id)?);
        let chosen = match group.selection {
            Selection::Hash => Chosen::ByHash,
            Selection::Random => Chosen::AtRandom,
        };
        let count = Bits::new(choice.count_bits(), group.count.into());
        let place = count.concat(&Bits::new(choice.base_bits(), group.base.into()));
        Some((chosen, place.zero_extend(unit.stored.data)))
    }

    /// Sets the words of members.
    pub(super) fn write(&self, unit: &TableUnit, program: &Program, tables: &Tables, image: &mut Image) {
        let table = &program.tables[unit.table];
        let area = image.areas.iter().position(|area| area.name == "members");
        let (Some(area), Some(profile)) = (area, table.profile) else { return };
        for (id, group) in &self.0 {
            let mut place = group.base;
            for member in tables.group(profile, *id).unwrap_or_default() {
                let call = unit.call_of_member(table, tables, member.member);
                let call = call.unwrap_or_else(|| unit.call_of(program, tables, &Target::Group(*id)));
                let data = call_data(program, table, &call, unit.data());
                let word = match unit.stored.action {
                    0 => data,
                    bits => data.concat(&Bits::new(bits, call.action as u128)),
                };
                for _ in 0..member.weight {
                    image.set(area, place, word.clone());
                    place += 1;
                }
            }
        }
    }
}
