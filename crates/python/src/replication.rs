//! Multicast groups and clone sessions, from Python and back.

use crate::errors::Wrong;
use crate::records;
use millrace_dataplane::{Replica, Replication, ReplicationError, Session};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Copies to make: ports, or pairs of a port and a replica number.
pub(crate) fn copies(given: &[Bound<'_, PyAny>]) -> PyResult<Vec<Replica>> {
    let one = |given: &Bound<'_, PyAny>| match given.extract::<u32>() {
        Ok(port) => Ok(Replica { port, rid: 0 }),
        Err(_) => match given.extract::<(u32, u16)>() {
            Ok((port, rid)) => Ok(Replica { port, rid }),
            Err(_) => Err(Wrong::Type(format!("a copy is a port or (port, replica), not {given}")).into()),
        },
    };
    given.iter().map(one).collect()
}

/// Makes a multicast group or gives one that is there other copies. When they are refused, all is as it was.
pub(crate) fn set_group(
    replication: &mut Replication,
    id: u32,
    copies: Vec<Replica>,
) -> Result<(), ReplicationError> {
    let is_new = replication.group(id).is_none();
    if is_new {
        replication.create_group(id)?;
    }
    replication.set_copies(id, copies).inspect_err(|_| {
        if is_new {
            // It was just made, so it is there.
            let _ = replication.destroy_group(id);
        }
    })
}

/// All multicast groups by id: lists of (port, replica).
pub(crate) fn groups<'py>(py: Python<'py>, groups: Vec<(u32, Vec<Replica>)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (id, copies) in groups {
        dict.set_item(id, pairs(&copies))?;
    }
    Ok(dict)
}

/// All clone sessions by id.
pub(crate) fn sessions<'py>(py: Python<'py>, sessions: Vec<(u32, Session)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (id, session) in sessions {
        let fields = (pairs(&session.copies), session.group, session.truncate, session.class_of_service);
        dict.set_item(id, records::make(py, "CloneSession", fields)?)?;
    }
    Ok(dict)
}

fn pairs(copies: &[Replica]) -> Vec<(u32, u16)> {
    copies.iter().map(|copy| (copy.port, copy.rid)).collect()
}
