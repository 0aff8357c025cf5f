//! Snapshots of a switch: its program, its entries and its state as one text, which goes on here or on another machine.
//!
//! A snapshot is taken while packets pass: what changes meanwhile may be in it or not. It is restored as a hot swap is made: the program with
//! all that the snapshot holds is made aside and takes over between two batches; a snapshot that does not fit leaves what runs alone.

use crate::device::{Device, Done};
use crate::entered::Entered;
use crate::failure::{Failure, short};
use crate::installed::{Before, told};
use millrace_control::entries;
use millrace_control::saved::Saved;
use millrace_ctl_api::MAX_REQUEST;
use millrace_dataplane::{ObjectError, Request, RequestError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a snapshot calls itself.
const FORMAT: &str = "millrace snapshot 1";
/// Largest snapshot: it comes back in one request, whose quotes JSON makes longer.
pub(crate) const MAX_SNAPSHOT: usize = MAX_REQUEST / 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Snapshot {
    format: String,
    /// The switch that it was taken of.
    switch: String,
    /// The image of its program, or the text.
    program: String,
    /// Commands that make its entries and state again.
    state: String,
}

/// Why a state is not read.
struct NotRead(String);

impl From<ObjectError> for NotRead {
    fn from(error: ObjectError) -> NotRead {
        NotRead(error.to_string())
    }
}

impl From<RequestError> for NotRead {
    fn from(error: RequestError) -> NotRead {
        NotRead(error.to_string())
    }
}

/// The program of a switch, and commands that make its entries and state again. Not while the device is locked: large tables take their
/// time.
pub(crate) fn read(device: &Device, switch: &Entered) -> Result<Before, Failure> {
    let name = &switch.name;
    let (control, config, program) = {
        let running = device.running();
        let installed = running.entered(switch)?;
        (installed.member.control.clone(), installed.config.clone(), Arc::clone(&installed.program))
    };
    let now = control.ask(Request::Look).map_err(Failure::failed)?;
    if now.program != program {
        return Err(Failure::Invalid(format!(
            "a controller has set the program of switch {name}, and has its image: only programs of the file and of `swap` are known here"
        )));
    }
    let mut saved = Saved::tables(&now.program, &now.tables.lock()).map_err(Failure::failed)?;
    let mut ask = |_, request| -> Result<(), NotRead> {
        Ok(control.take(Request::Objects(Arc::clone(&now.program), request))?)
    };
    let objects = Saved::objects(&now.program, &mut ask);
    saved.append(objects.map_err(|NotRead(reason)| Failure::failed(reason))?);
    saved.append(Saved::replication(&control.ask(Request::Replication).map_err(Failure::failed)?));
    let state = saved.text(&now.program.name).map_err(Failure::failed)?;
    Ok(Before { config, state })
}

/// Takes a snapshot of a switch.
pub(crate) fn take(device: &Device, switch: &Entered) -> Result<String, Failure> {
    let name = &switch.name;
    let Before { config, state } = read(device, switch)?;
    let program = String::from_utf8_lossy(&config).into_owned();
    let snapshot = Snapshot { format: FORMAT.into(), switch: name.clone(), program, state };
    let text = serde_json::to_string(&snapshot).map_err(Failure::failed)?;
    match text.len() <= MAX_SNAPSHOT {
        true => Ok(text),
        false => Err(Failure::Invalid(format!(
            "the snapshot of switch {name} has {} bytes, at most {MAX_SNAPSHOT} (MAX_SNAPSHOT)",
            text.len()
        ))),
    }
}

/// Has a switch go on with what a snapshot holds.
pub(crate) fn restore(device: &Device, switch: &Entered, text: &str) -> Result<Done, Failure> {
    let wrong = |reason: &dyn std::fmt::Display| {
        Failure::Invalid(format!("the snapshot cannot be restored: {reason}"))
    };
    let snapshot: Snapshot = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    if snapshot.format != FORMAT {
        return Err(wrong(&format_args!("its format is `{}`, not `{FORMAT}`", short(&snapshot.format))));
    }
    let name = &switch.name;
    let before = read(device, switch).ok();
    let commands = go_on_with(device, switch, (snapshot.program.as_bytes(), &snapshot.state), before)
        .map_err(|failure| if let Failure::Invalid(reason) = failure { wrong(&reason) } else { failure })?;
    let of =
        if snapshot.switch == *name { String::new() } else { format!(" of {}", short(&snapshot.switch)) };
    let done = format!("switch {name} goes on with the snapshot{of}: {commands} commands");
    Ok(Done { done: vec![done], kept: Vec::new() })
}

/// Has a switch run a program with a state, in place of all that it has, which can be rolled back to. Gives how many commands made the
/// state.
pub(crate) fn go_on_with(
    device: &Device,
    switch: &Entered,
    (program, state): (&[u8], &str),
    before: Option<Before>,
) -> Result<usize, Failure> {
    let programs = device.running().entered(switch)?.programs.clone();
    let mut candidate = programs.prepare(program).map_err(Failure::Invalid)?;
    let loaded = entries::load(&mut candidate.switch, state).map_err(|refused| {
        let each = refused.iter().map(|refusal| (refusal.at.start, refusal.message.as_str()));
        Failure::Invalid(told("its state", state, each))
    })?;
    device.running().start_foreign(switch, candidate, None, before)?;
    Ok(loaded.commands)
}
