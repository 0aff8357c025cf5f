//! The tables of a state as compiled code sees them.

use crate::abi::{Shape, TableEnv};
use crate::runtime::lookup_of;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use millrace_state::{LookupKind, LookupShape, State};

/// The environments of all tables, made again for each batch in the same memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableEnvs(Vec<TableEnv>);

// SAFETY: the pointers are read only by the batch that they were made for.
unsafe impl Send for TableEnvs {}

impl TableEnvs {
    /// Sets the pointers for a batch of the state's worker, which has started it. False when a table has
    /// changed its [`Shape`] since the code was compiled.
    #[inline]
    pub(crate) fn refresh(&mut self, state: &State, shapes: &[Shape]) -> bool {
        self.0.clear();
        let worker = state.worker();
        for (at, reader) in state.readers().enumerate() {
            let found = reader.shape(worker);
            let wanted = shapes.get(at).copied().unwrap_or_default();
            if wanted != Shape::Call && wanted != shape(state, TableId::new(at), found) {
                return false;
            }
            let (lookup, argument) = lookup_of(state, TableId::new(at));
            self.0.push(TableEnv {
                lookup,
                table: argument,
                records: reader.records(worker),
                base: found.base,
                second: found.second,
                fallback: found.fallback,
                starts: found.starts,
            });
        }
        true
    }

    pub(crate) fn start(&self) -> *const TableEnv {
        self.0.as_ptr()
    }
}

/// How compiled code may look up each table of a state now, for [`crate::Options::shapes`].
pub fn shapes(state: &mut State) -> Vec<Shape> {
    state.start_batch();
    let lookups: Vec<LookupShape> = state.readers().map(|reader| reader.shape(state.worker())).collect();
    state.end_batch();
    lookups.into_iter().enumerate().map(|(at, lookup)| shape(state, TableId::new(at), lookup)).collect()
}

fn shape(state: &State, table: TableId, lookup: LookupShape) -> Shape {
    let described = &state.program().tables[table];
    let has_entries = described.direct_counter.is_some() || described.direct_meter.is_some();
    if described.keys.is_empty() && !has_entries && described.profile.is_none() && !described.idle_timeout {
        return Shape::NoKey;
    }
    if described.profile.is_some() || described.idle_timeout || has_entries == lookup.starts.is_null() {
        return Shape::Call;
    }
    match lookup.kind {
        LookupKind::Call => Shape::Call,
        LookupKind::Direct => Shape::Direct,
        LookupKind::Two8 => Shape::Two { low: lookup.shift, bytes: 1 },
        LookupKind::Two16 => Shape::Two { low: lookup.shift, bytes: 2 },
        LookupKind::Lines1 => Shape::Lines(1),
        LookupKind::Lines2 => Shape::Lines(2),
        LookupKind::Two32 => Shape::Two { low: lookup.shift, bytes: 4 },
    }
}
