//! Counters, meters, registers and value sets going on under another program.

use super::Carried;
use super::vacant::{same_meters, same_registers};
use crate::cells::CounterRef;
use crate::pack::meter_unit;
use crate::state::State;
use crate::tables::Tables;
use crate::{CounterValue, ObjectKind};
use millrace_pipeline::entity::{EntityRef, PrimaryMap};
use millrace_pipeline::*;

pub(super) const GONE: &str = "it is not in the new program";
const FEWER: &str = "the new program has fewer";

/// The objects of one kind that two programs have under the same names.
pub(super) fn pairs<'p, K: EntityRef, V>(
    old: &'p PrimaryMap<K, V>,
    new: &'p PrimaryMap<K, V>,
    name: impl Fn(&V) -> &str + Copy + 'p,
) -> impl Iterator<Item = (K, Option<K>)> + 'p {
    old.iter().map(move |(id, object)| {
        let found = new.iter().find(|(_, other)| name(other) == name(object));
        (id, found.map(|(id, _)| id))
    })
}

/// Moves counters that look the same; [`add_counters`] does for the others.
pub(super) fn take_counters(from: &mut Tables, to: &mut Tables) {
    let (old_schema, new_schema) = (from.schema.clone(), to.schema.clone());
    let (before, now) = (&old_schema.program.counters, &new_schema.program.counters);
    for (id, found) in pairs(before, now, |counter: &Counter| counter.name.as_str()) {
        let Some(found) = found.filter(|found| before[id] == now[*found]) else { continue };
        std::mem::swap(&mut from.counters[id], &mut to.counters[found]);
    }
}

/// Moves a worker's parts of counters that look the same.
pub(super) fn take_counter_parts(old: &mut State, next: &mut State) {
    let (old_schema, new_schema) = (old.schema.clone(), next.schema.clone());
    let (before, now) = (&old_schema.program.counters, &new_schema.program.counters);
    for (id, found) in pairs(before, now, |counter: &Counter| counter.name.as_str()) {
        let Some(found) = found.filter(|found| before[id] == now[*found]) else { continue };
        std::mem::swap(&mut old.own.counters[id], &mut next.own.counters[found]);
    }
}

/// Adds what counters of another size or unit had counted.
pub(super) fn add_counters(from: &Tables, to: &mut Tables) {
    let (old_schema, new_schema) = (from.schema.clone(), to.schema.clone());
    let (before, now) = (&old_schema.program.counters, &new_schema.program.counters);
    for (id, found) in pairs(before, now, |counter: &Counter| counter.name.as_str()) {
        let Some(found) = found.filter(|found| before[id] != now[*found]) else { continue };
        for cell in 0..before[id].size.min(now[found].size) {
            if let Ok(value) = from.counter_value(CounterRef::Indexed(id), cell) {
                // Both have the cell.
                let _ = to.add_to_counter(CounterRef::Indexed(found), cell, value);
            }
        }
    }
}

/// Takes registers, and meters with their buckets, of the same size: a worker's handles move.
pub(super) fn take_cells(old: &mut State, next: &mut State) {
    let (old_schema, new_schema) = (old.schema.clone(), next.schema.clone());
    let (before, now) = (&old_schema.program.registers, &new_schema.program.registers);
    for (id, found) in pairs(before, now, |register: &Register| register.name.as_str()) {
        if let Some(found) = found.filter(|found| same_registers(&before[id], &now[*found])) {
            std::mem::swap(&mut next.shared.registers[found], &mut old.shared.registers[id]);
        }
    }
    let (before, now) = (&old_schema.program.meters, &new_schema.program.meters);
    for (id, found) in pairs(before, now, |meter: &Meter| meter.name.as_str()) {
        if let Some(found) = found.filter(|found| same_meters(&before[id], &now[*found])) {
            std::mem::swap(&mut next.shared.meters[found], &mut old.shared.meters[id]);
        }
    }
}

/// Copies registers, and meters with their buckets, of another size: once for all workers.
pub(super) fn copy_cells(old: &State, next: &mut State) {
    let (old_schema, new_schema) = (old.schema.clone(), next.schema.clone());
    let (before, now) = (&old_schema.program.registers, &new_schema.program.registers);
    for (id, found) in pairs(before, now, |register: &Register| register.name.as_str()) {
        if let Some(found) = found.filter(|found| !same_registers(&before[id], &now[*found])) {
            next.shared.registers[found].copy_from(&old.shared.registers[id]);
        }
    }
    let (before, now) = (&old_schema.program.meters, &new_schema.program.meters);
    for (id, found) in pairs(before, now, |meter: &Meter| meter.name.as_str()) {
        if let Some(found) = found.filter(|found| !same_meters(&before[id], &now[*found])) {
            next.shared.meters[found].copy_from(&old.shared.meters[id]);
        }
    }
}

/// Takes the members of value sets, as many as there is room for.
pub(super) fn take_values(old: &mut State, next: &mut State) {
    let (old_schema, new_schema) = (old.schema.clone(), next.schema.clone());
    let (before, now) = (&old_schema.program.value_sets, &new_schema.program.value_sets);
    for (id, found) in pairs(before, now, |set: &ValueSet| set.name.as_str()) {
        let Some(found) = found.filter(|found| before[id].fields == now[*found].fields) else { continue };
        if before[id].size == now[found].size {
            std::mem::swap(&mut next.own.value_sets[found], &mut old.own.value_sets[id]);
            continue;
        }
        let members: Vec<Vec<EntryMatch>> = old.values(id).collect();
        for member in &members {
            if next.insert_value(found, member).is_err() {
                break;
            }
        }
    }
}

/// What becomes of value sets with so many members.
pub(super) fn report_values(old: &Program, new: &Program, held: &[u64], report: &mut Vec<Carried>) {
    let sets = pairs(&old.value_sets, &new.value_sets, |set: &ValueSet| set.name.as_str());
    for ((id, found), held) in sets.zip(held) {
        let set = &old.value_sets[id];
        let room = match found.map(|found| &new.value_sets[found]) {
            Some(now) if now.fields == set.fields => Ok(now.size),
            Some(_) => Err("the new program has other fields"),
            None => Err(GONE),
        };
        note(report, (ObjectKind::ValueSet, &set.name, "values"), *held, room);
    }
}

/// What became of counters, meters and registers. `old` holds what was not taken.
pub(super) fn report(old: &State, new: &Program, report: &mut Vec<Carried>) {
    let program = old.program();
    let tables = old.tables();
    for (id, found) in pairs(&program.counters, &new.counters, |counter: &Counter| counter.name.as_str()) {
        let counter = &program.counters[id];
        let left = |from: u64| {
            let value = |cell| tables.counter_value(CounterRef::Indexed(id), cell).unwrap_or_default();
            (from..counter.size).any(|cell| value(cell) != CounterValue::default())
        };
        let room = found.map(|found| new.counters[found].size).ok_or(GONE);
        note_cells(report, (ObjectKind::Counter, &counter.name), counter.size, room, left);
    }
    for (id, found) in pairs(&program.meters, &new.meters, |meter: &Meter| meter.name.as_str()) {
        let meter = &program.meters[id];
        let left =
            |from: u64| (from..meter.size).any(|cell| matches!(old.meter_config(id, cell), Ok(Some(_))));
        let room = match found.map(|found| &new.meters[found]) {
            Some(now) if meter_unit(now.unit) == meter_unit(meter.unit) => Ok(now.size),
            Some(_) => Err("the new program meters something else"),
            None => Err(GONE),
        };
        note_cells(report, (ObjectKind::Meter, &meter.name), meter.size, room, left);
    }
    for (id, found) in pairs(&program.registers, &new.registers, |register: &Register| register.name.as_str())
    {
        let register = &program.registers[id];
        let written = |cell| {
            let value = old.register_read(id, cell);
            register.initial.as_ref().map_or(!value.is_zero(), |initial| value != *initial)
        };
        let left = |from: u64| (from..register.size).any(written);
        let room = match found.map(|found| &new.registers[found]) {
            Some(now) if now.width == register.width => Ok(now.size),
            Some(_) => Err("the new program has another width"),
            None => Err(GONE),
        };
        note_cells(report, (ObjectKind::Register, &register.name), register.size, room, left);
    }
}

/// Notes what became of so many cells, of which some that were not kept may never have held anything.
fn note_cells(
    report: &mut Vec<Carried>,
    (kind, name): (ObjectKind, &str),
    cells: u64,
    room: Result<u64, &str>,
    left: impl Fn(u64) -> bool,
) {
    let kept = room.unwrap_or(0).min(cells);
    let held = if kept < cells && left(kept) { cells } else { kept };
    note(report, (kind, name, "cells"), held, room);
}

/// Notes that of so many as much was kept as there was room for, or none.
fn note(
    report: &mut Vec<Carried>,
    (kind, name, what): (ObjectKind, &str, &'static str),
    held: u64,
    room: Result<u64, &str>,
) {
    let kept = room.unwrap_or(0).min(held);
    let reason = room.err().unwrap_or(FEWER);
    for (count, dropped) in [(kept, None), (held - kept, Some(reason.to_owned()))] {
        if count > 0 {
            report.push(Carried { kind, name: name.to_owned(), what, count, dropped });
        }
    }
}
