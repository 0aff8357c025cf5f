//! What the objects of a program count for that are there whatever is written, by the list of [`millrace_tables::prices`].

use crate::account::{Account, Held, OverQuota, Quota};
use crate::migration::Vacant;
use crate::schema::Schema;
use crate::{BuildError, MAX_STATE_BYTES, ObjectKind, pack};
use millrace_pipeline::*;
use millrace_tables::{self as tables, KeyField, KeySchema, SpecError};

/// An object with what it counts for.
type Priced<'p> = (ObjectKind, &'p str, u64);

/// Counters, meters and registers.
fn cells(program: &Program) -> impl Iterator<Item = Priced<'_>> {
    let counters = program.counters.values();
    let counters = counters.map(|of| (ObjectKind::Counter, of.name.as_str(), of.size.saturating_mul(16)));
    let meters = program.meters.values();
    let meters =
        meters.map(|of| (ObjectKind::Meter, of.name.as_str(), of.size.saturating_mul(tables::METER_BYTES)));
    let registers = program.registers.values().map(|of| {
        let cell = u64::from(of.width.div_ceil(64)) * 8;
        (ObjectKind::Register, of.name.as_str(), of.size.saturating_mul(cell))
    });
    counters.chain(meters).chain(registers)
}

/// Value sets, each as if it were full.
fn sets(program: &Program) -> impl Iterator<Item = Priced<'_>> {
    program.value_sets.values().map(|set| {
        let bytes = set_schema(set).map_or(0, |schema| tables::prices::value_set_bytes(&schema, set.size));
        (ObjectKind::ValueSet, set.name.as_str(), bytes)
    })
}

/// The fields of a value set.
pub(crate) fn set_schema(set: &ValueSet) -> Result<KeySchema, SpecError> {
    let fields = set.fields.iter();
    let fields = fields.map(|(_, width, kind)| KeyField { width: *width, kind: pack::match_kind(*kind) });
    KeySchema::new(fields.collect())
}

/// The key of a table.
pub(crate) fn key_schema(schema: &Schema, id: TableId) -> Result<KeySchema, SpecError> {
    let fields = schema.program.tables[id].keys.iter().zip(&schema.keys[id]);
    let fields = fields.map(|(key, width)| KeyField { width: *width, kind: pack::match_kind(key.kind) });
    KeySchema::new(fields.collect())
}

/// What finds the entries of tables.
fn indices(schema: &Schema) -> impl Iterator<Item = Priced<'_>> {
    schema.program.tables.iter().map(|(id, table)| {
        let size = u32::try_from(table.size).unwrap_or(u32::MAX);
        let bytes = key_schema(schema, id).map_or(0, |key| tables::prices::index_bytes(&key, size));
        (ObjectKind::Table, table.name.as_str(), bytes)
    })
}

/// What the arrays and value sets of a program count for.
pub(crate) fn arrays(program: &Program) -> Held {
    Held::bytes(cells(program).chain(sets(program)).fold(0, |sum, (.., bytes)| sum.saturating_add(bytes)))
}

/// Checks a program before anything of it is made: the written limit of its arrays, and quotas as far as it alone exceeds them. Tables
/// that others will replace (`vacant`) have no entries of their own.
pub(crate) fn check(schema: &Schema, account: &Account, vacant: &Vacant) -> Result<(), BuildError> {
    let program = &schema.program;
    let bytes = cells(program).fold(0u64, |sum, (.., bytes)| sum.saturating_add(bytes));
    if bytes > MAX_STATE_BYTES {
        return Err(BuildError::Memory { bytes, limit: MAX_STATE_BYTES });
    }
    let entries = program.tables.iter().filter(|(id, _)| !vacant.tables.contains(id));
    let entries = entries.map(|(_, table)| table.entries.len() as u64).sum();
    let indices = indices(schema).fold(0u64, |sum, (.., bytes)| sum.saturating_add(bytes));
    let held = arrays(program) + Held { entries, bytes: indices };
    account.check(held).map_err(|error| over(schema, error))
}

/// The quotas have no room for a program: which of its objects takes the most of them.
pub(crate) fn over(schema: &Schema, error: OverQuota) -> BuildError {
    let program = &schema.program;
    let largest = match error.what {
        Quota::Entries => {
            let tables = program.tables.values();
            let tables = tables.map(|of| (ObjectKind::Table, of.name.as_str(), of.entries.len() as u64));
            tables.max_by_key(|(.., takes)| *takes)
        }
        Quota::Memory => {
            let all = cells(program).chain(sets(program)).chain(indices(schema));
            all.max_by_key(|(.., takes)| *takes)
        }
    };
    let largest = largest.filter(|(.., takes)| *takes > 0);
    let takes = largest.map_or(0, |(.., takes)| takes);
    BuildError::Quota { largest: largest.map(|(kind, name, _)| (kind, name.to_owned())), takes, error }
}
