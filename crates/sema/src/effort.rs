//! How much work a check may take.
//!
//! Types are graphs: a structure of two structures of two ... has few parts and many paths to them, and whoever walks over
//! all of its members takes each of these. A check counts its steps; when they are used up, types count as unknown and
//! expressions are not looked at any more, so that whatever is being done ends soon, and one error says why.

use crate::limits::MAX_STEPS;
use std::cell::Cell;

/// The steps of one check.
#[derive(Debug, Default)]
pub(crate) struct Effort {
    spent: Cell<usize>,
}

impl Effort {
    /// Counts steps. False when no more are left.
    pub(crate) fn spend(&self, steps: usize) -> bool {
        let spent = self.spent.get().saturating_add(steps);
        self.spent.set(spent);
        spent <= MAX_STEPS
    }

    /// Whether the steps are used up.
    pub(crate) fn is_used_up(&self) -> bool {
        self.spent.get() > MAX_STEPS
    }
}
