//! What the state of a program handed over to the next one, for the report on the change.

use millrace_state::Carried;
use millrace_swap_report::{Item, Report};

/// Adds objects of the switch to a report: those that moved or were copied, and those that had no place.
pub fn add_carried(report: &mut Report, carried: &[Carried]) {
    for of in carried {
        report.add(Item {
            kind: of.kind.to_string(),
            name: of.name.clone(),
            what: of.what.to_owned(),
            count: of.count,
            reason: of.dropped.clone(),
        });
    }
}
