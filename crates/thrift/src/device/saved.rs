//! The state of the switch as a text.

use super::{Device, failed};
use crate::answer::Gone;
use crate::limits;
use millrace_control::saved::Saved;
use millrace_dataplane::{ObjectError, Request, RequestError};
use millrace_thrift_api::{CallError, Undeclared};

/// About the text of an entry and of a cell, with what it is made of, in bytes.
const LINE: usize = 256;
const CELL: usize = 32;

/// Why objects are not saved.
enum Trouble {
    Call(CallError<Undeclared>),
    Object(String),
}

impl From<ObjectError> for Trouble {
    fn from(error: ObjectError) -> Trouble {
        Trouble::Object(error.to_string())
    }
}

impl From<RequestError> for Trouble {
    fn from(RequestError: RequestError) -> Trouble {
        Trouble::Call(Gone.into())
    }
}

impl From<Trouble> for CallError<Undeclared> {
    fn from(trouble: Trouble) -> CallError<Undeclared> {
        match trouble {
            Trouble::Call(error) => error,
            Trouble::Object(reason) => failed(reason),
        }
    }
}

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
        let mut ask = |cells: usize, request| -> Result<(), Trouble> {
            limits::charge::<Undeclared>(CELL * cells).map_err(Trouble::Call)?;
            self.hand_over(&running, request).map_err(|gone| Trouble::Call(gone.into()))
        };
        saved.append(Saved::objects(program, &mut ask)?);
        saved.append(Saved::replication(&self.ask(Request::Replication)?));
        saved.text(&program.name).map_err(failed)
    }
}
