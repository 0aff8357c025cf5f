//! What all workers of a program change: meters and registers. Each worker has a handle on the same cells.

use millrace_pipeline::entity::PrimaryMap;
use millrace_pipeline::{MeterId, RegisterId};
use millrace_tables::{MeterArray, RegisterArray};

/// A worker's handles. What one worker writes, the others read: a cell is always read and written as a whole.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) meters: PrimaryMap<MeterId, MeterArray>,
    pub(crate) registers: PrimaryMap<RegisterId, RegisterArray>,
}

impl Shared {
    /// Handles on the same cells for one more worker.
    pub(crate) fn share(&mut self) -> Shared {
        Shared {
            meters: self.meters.values_mut().map(MeterArray::share).collect(),
            registers: self.registers.values().map(RegisterArray::share).collect(),
        }
    }
}
