//! The state of the switch as a text.

use super::{Device, failed};
use crate::limits;
use millrace_control::saved::{OwnObject, Saved, own_objects};
use millrace_dataplane::{ObjectRequest, Request};
use millrace_thrift_api::{CallError, Undeclared};

/// About the text of an entry and of a cell, with what it is made of, in bytes.
const LINE: usize = 256;
const CELL: usize = 32;
/// Cells that are looked at between two rounds of the worker.
const CHUNK: u64 = 4096;

impl Device {
    /// bmv2 has a format of its own for that; here it is commands. What changes meanwhile may be in it or not.
    pub(crate) fn bm_serialize_state(&self) -> Result<String, CallError<Undeclared>> {
        let running = self.running()?;
        let (program, tables) = (&running.loaded.program, &running.tables);
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
                let part = match object {
                    OwnObject::Register(id) => {
                        let read = |to| ObjectRequest::Registers(vec![id], cells.clone(), to);
                        let values = self.objects(&running, read)?.map_err(failed)?;
                        Saved::register(program, id, cells.clone().zip(values.iter().flatten()))
                    }
                    OwnObject::Meter(id) => {
                        let read = |to| ObjectRequest::Meters(id, cells.clone(), to);
                        let meters = self.objects(&running, read)?.map_err(failed)?;
                        let configs = meters.into_iter().map(|(config, _)| config);
                        Saved::meter(program, id, cells.clone().zip(configs))
                    }
                    OwnObject::ValueSet(id) => {
                        let read = self.objects(&running, |to| ObjectRequest::Values(id, to))?;
                        Saved::value_set(program, id, &read.map_err(failed)?)
                    }
                    OwnObject::Hash(id) => {
                        let read = self.objects(&running, |to| ObjectRequest::Hash(id, to))?;
                        Saved::hash(program, id, read.map_err(failed)?)
                    }
                };
                saved.append(part);
            }
        }
        saved.append(Saved::replication(&self.ask(Request::Replication)?));
        saved.text(&program.name).map_err(failed)
    }
}
