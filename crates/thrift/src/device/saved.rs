//! The state of the switch as a text.

use super::Device;
use super::loaded::Running;
use crate::limits;
use millrace_control::saved::{Saved, own_objects};
use millrace_thrift_api::{CallError, Undeclared};
use std::sync::Arc;

/// About the text of an entry and of a cell, with what it is made of, in bytes.
const LINE: usize = 256;
const CELL: usize = 32;
/// Cells that are looked at between two rounds of the worker.
const CHUNK: u64 = 4096;

impl Device {
    /// bmv2 has a format of its own for that; here it is commands. What changes meanwhile may be in it or not.
    pub(crate) fn bm_serialize_state(&self) -> Result<String, CallError<Undeclared>> {
        let Running { loaded, tables, .. } = self.running()?;
        let program = &loaded.program;
        let entries: usize = {
            let tables = tables.lock();
            program.tables.keys().map(|table| tables.entry_count(table) as usize).sum()
        };
        limits::charge(LINE * entries)?;
        // Packets go on: workers read tables without this lock.
        let mut saved = Saved::tables(program, &tables.lock()).map_err(failed)?;
        for (object, size) in own_objects(program) {
            let mut next = 0;
            while next < size {
                let cells = next..size.min(next + CHUNK);
                next = cells.end;
                limits::charge(CELL * (cells.end - cells.start) as usize)?;
                let of = Arc::clone(program);
                let part = self.program(move |switch| {
                    Arc::ptr_eq(switch.program(), &of).then(|| Saved::own(switch.state(), object, cells))
                })?;
                saved.append(part.ok_or_else(|| failed("another program has taken over"))?);
            }
        }
        saved.append(self.switch(|switch| Saved::replication(switch.replication()))?);
        saved.text(&program.name).map_err(failed)
    }
}

fn failed(why: impl ToString) -> CallError<Undeclared> {
    let kind = thrift::ApplicationErrorKind::InternalError;
    CallError::Failed(thrift::ApplicationError::new(kind, why.to_string()))
}
