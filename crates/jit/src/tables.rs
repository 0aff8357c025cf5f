//! The tables of a state as compiled code sees them.

use crate::abi::{Shape, TableEnv};
use crate::runtime::lookup_of;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use millrace_state::{Plan, PlanKind, State};

/// The environments of all tables, made anew for each batch in the same memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableEnvs(Vec<TableEnv>);

// SAFETY: the pointers are read only by the batch that they were made for.
unsafe impl Send for TableEnvs {}

impl TableEnvs {
    /// Sets the pointers for a batch of the state's worker, which has started it. False when some table has to be looked
    /// up in another way than the code does.
    #[inline]
    pub(crate) fn refresh(&mut self, state: &State, shapes: &[Shape]) -> bool {
        self.0.clear();
        let worker = state.worker();
        for (at, reader) in state.readers().enumerate() {
            let plan = reader.plan(worker);
            let wanted = shapes.get(at).copied().unwrap_or_default();
            if wanted != Shape::Call && wanted != shape(state, TableId::new(at), plan) {
                return false;
            }
            let (lookup, argument) = lookup_of(state, TableId::new(at));
            self.0.push(TableEnv {
                lookup,
                table: argument,
                records: reader.records(worker),
                base: plan.base,
                second: plan.second,
                starts: plan.starts,
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
    let plans: Vec<Plan> = state.readers().map(|reader| reader.plan(state.worker())).collect();
    state.end_batch();
    plans.into_iter().enumerate().map(|(at, plan)| shape(state, TableId::new(at), plan)).collect()
}

fn shape(state: &State, table: TableId, plan: Plan) -> Shape {
    let described = &state.program().tables[table];
    let has_entries = described.direct_counter.is_some() || described.direct_meter.is_some();
    if described.profile.is_some() || described.idle_timeout || has_entries == plan.starts.is_null() {
        return Shape::Call;
    }
    match plan.kind {
        PlanKind::Call => Shape::Call,
        PlanKind::Direct => Shape::Direct,
        PlanKind::Two8 => Shape::Two { low: plan.shift, bytes: 1 },
        PlanKind::Two16 => Shape::Two { low: plan.shift, bytes: 2 },
        PlanKind::Lines1 => Shape::Lines(1),
        PlanKind::Lines2 => Shape::Lines(2),
        PlanKind::Two32 => Shape::Two { low: plan.shift, bytes: 4 },
    }
}
