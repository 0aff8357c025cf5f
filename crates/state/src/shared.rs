//! What all workers of a program change: meters and registers, and the locks of atomic sections. Each worker has a handle on the
//! same cells.

use crate::state::State;
use millrace_pipeline::entity::PrimaryMap;
use millrace_pipeline::{MeterId, RegisterId};
use millrace_tables::{CellLocks, MeterArray, RegisterArray};
use std::sync::Arc;

/// A worker's handles. What one worker writes, the others read: a cell is always read and written as a whole.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) meters: PrimaryMap<MeterId, MeterArray>,
    pub(crate) registers: PrimaryMap<RegisterId, RegisterArray>,
    /// None while one worker alone has the program: then no section has to wait.
    sections: Option<Sections>,
}

/// The locks of sections, which share them by their names, and the one that this worker holds.
struct Sections {
    locks: Arc<CellLocks>,
    held: Option<usize>,
}

impl Sections {
    fn of(locks: &Arc<CellLocks>) -> Sections {
        Sections { locks: Arc::clone(locks), held: None }
    }

    fn end(&mut self) {
        if let Some(held) = self.held.take() {
            self.locks.release(held);
        }
    }
}

impl Drop for Sections {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// Handles on the same cells for one more worker.
    pub(crate) fn share(&mut self) -> Shared {
        let sections = self.sections.get_or_insert_with(|| Sections::of(&Arc::default()));
        Shared {
            sections: Some(Sections::of(&sections.locks)),
            meters: self.meters.values_mut().map(MeterArray::share).collect(),
            registers: self.registers.values().map(RegisterArray::share).collect(),
        }
    }
}

impl State {
    /// An atomic section begins ([`millrace_pipeline::Inst::AtomicBegin`]): waits until no other worker is in one of this name, or
    /// without a name in one without a name. One that is open ends first, so a worker never waits while it holds a lock.
    #[inline]
    pub fn begin_atomic(&mut self, name: Option<u64>) {
        if let Some(sections) = &mut self.shared.sections {
            sections.end();
            sections.held = Some(sections.locks.hold(name.unwrap_or(0)));
        }
    }

    /// Whether sections have to wait for those of other workers.
    #[inline]
    pub fn has_sections(&self) -> bool {
        self.shared.sections.is_some()
    }

    /// The section ends, if one is open.
    #[inline]
    pub fn end_atomic(&mut self) {
        if let Some(sections) = &mut self.shared.sections {
            sections.end();
        }
    }
}
