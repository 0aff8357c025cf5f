//! The objects that workers keep, a part at a time: packets wait while a worker reads cells.

use super::{OwnObject, Saved, own_objects};
use millrace_dataplane::{Answered, ObjectError, ObjectRequest, Reply, RequestError, answer};
use millrace_pipeline::Program;
use std::ops::Range;

/// Cells that are looked at between two rounds of a worker.
const CHUNK: u64 = 4096;

impl Saved {
    /// All objects of a program that its workers keep. `ask` hands a request to the switch, once for each part; it is told first how many
    /// cells the part has.
    ///
    /// # Errors
    /// What `ask` says; the switch has ended, or runs another program by now.
    pub fn objects<E: From<ObjectError> + From<RequestError>>(
        program: &Program,
        ask: &mut dyn FnMut(usize, ObjectRequest) -> Result<(), E>,
    ) -> Result<Saved, E> {
        let mut saved = Saved::default();
        for (object, size) in own_objects(program) {
            let mut next = 0;
            while next < size {
                let cells = next..size.min(next + CHUNK);
                next = cells.end;
                saved.append(part(program, object, cells, ask)?);
            }
        }
        Ok(saved)
    }
}

fn part<E: From<ObjectError> + From<RequestError>>(
    program: &Program,
    object: OwnObject,
    cells: Range<u64>,
    ask: &mut dyn FnMut(usize, ObjectRequest) -> Result<(), E>,
) -> Result<Saved, E> {
    let count = (cells.end - cells.start) as usize;
    Ok(match object {
        OwnObject::Register(id) => {
            let values = read(|to| ask(count, ObjectRequest::Registers(vec![id], cells.clone(), to)))?;
            Saved::register(program, id, cells.zip(values.iter().flatten()))
        }
        OwnObject::Meter(id) => {
            let meters = read(|to| ask(count, ObjectRequest::Meters(id, cells.clone(), to)))?;
            Saved::meter(program, id, cells.zip(meters.into_iter().map(|(config, _)| config)))
        }
        OwnObject::ValueSet(id) => {
            Saved::value_set(program, id, &read(|to| ask(count, ObjectRequest::Values(id, to)))?)
        }
        OwnObject::Hash(id) => Saved::hash(program, id, read(|to| ask(count, ObjectRequest::Hash(id, to)))?),
    })
}

fn read<T, E: From<ObjectError> + From<RequestError>>(
    ask: impl FnOnce(Reply<Answered<T>>) -> Result<(), E>,
) -> Result<T, E> {
    let (to, answered) = answer();
    ask(to)?;
    Ok(answered.wait()??)
}
