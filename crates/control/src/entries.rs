//! Loading a file of entries: runtime commands or P4Runtime JSON, found out by its first character.
//!
//! A file is taken whole or not at all: when one line does not fit, all that do not are reported and what was written is
//! taken back, so that the switch is as it was. (Commands that only show something are run too; their text is the answer.)

use crate::commands::{Executor, Reply};
use crate::runtime_json;
use millrace_commands::{Command, MAX_REFUSALS, Refusal, read};
use millrace_dataplane::Switch;
use millrace_state::Tables;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Most bytes that the commands of a file show: each may show a whole table.
pub const MAX_SHOWN: usize = 64 << 20;

/// What loading a file did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Commands run, or objects of the JSON written.
    pub commands: usize,
    /// What commands that show something showed.
    pub text: String,
}

/// Loads entries into a switch.
///
/// # Errors
/// Everything that does not fit, at most [`MAX_REFUSALS`] of it; then the switch is as it was.
pub fn load(switch: &mut Switch, text: &str) -> Result<Loaded, Vec<Refusal>> {
    load_if(switch, text, |_| Ok(()))
}

/// The text with blanks for a byte order mark at its beginning, with which some editors begin files: so all else stays in its place.
fn without_mark(text: &str) -> Cow<'_, str> {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => format!("{:1$}{rest}", "", text.len() - rest.len()).into(),
        None => text.into(),
    }
}

/// As [`load`], where somebody else has to hold the multicast groups and clone sessions of the switch, too: `holds` says why not.
///
/// # Errors
/// As there.
pub fn load_if(
    switch: &mut Switch,
    text: &str,
    holds: impl FnOnce(&Switch) -> Result<(), String>,
) -> Result<Loaded, Vec<Refusal>> {
    let handle = switch.state().handle();
    let tables = &mut *handle.lock();
    switch.note(tables);
    let text = &*without_mark(text);
    let loaded = match is_json(text) {
        true => runtime_json::load(switch, tables, text),
        false => load_commands(switch, tables, text),
    };
    let loaded = loaded.and_then(|loaded| match holds(switch) {
        Ok(()) => Ok(loaded),
        Err(why) => Err(vec![Refusal::new(0..0, why)]),
    });
    match loaded {
        Ok(loaded) => {
            switch.keep(tables);
            Ok(loaded)
        }
        Err(mut refused) => {
            if let Err(error) = switch.undo(tables) {
                refused.push(Refusal::new(0..0, format!("not all could be taken back: {error}")));
            }
            Err(refused)
        }
    }
}

/// Whether a text is JSON: no command begins with a brace.
pub fn is_json(text: &str) -> bool {
    text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).starts_with('{')
}

fn load_commands(switch: &mut Switch, tables: &mut Tables, text: &str) -> Result<Loaded, Vec<Refusal>> {
    let mut loaded = Loaded::default();
    let mut refused = Vec::new();
    let mut sets_queues = false;
    let mut executor = Executor::new(switch, tables);
    read(text, |line| {
        let at = line.as_ref().map_or(0..0, |line| line.at.clone());
        // Queues keep what they are set to, so they are set when everything else fits.
        let result = line.and_then(|line| match line.command {
            Command::SetQueueDepth { .. } | Command::SetQueueRate { .. } => {
                sets_queues = true;
                Ok(Reply::Done)
            }
            _ => executor.run(&line),
        });
        match result {
            Ok(reply) => {
                loaded.commands += 1;
                if let Reply::Text(shown) = reply {
                    loaded.text.push_str(&shown);
                }
                if loaded.text.len() > MAX_SHOWN {
                    let why = format!("the commands show more than {MAX_SHOWN} bytes (MAX_SHOWN)");
                    refused.push(Refusal::new(at, why));
                    return ControlFlow::Break(());
                }
            }
            Err(refusal) => refused.push(refusal),
        }
        if refused.len() < MAX_REFUSALS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if refused.is_empty() && sets_queues {
        read(text, |line| {
            if let Ok(line) = line
                && matches!(line.command, Command::SetQueueDepth { .. } | Command::SetQueueRate { .. })
                && let Err(refusal) = executor.run(&line)
            {
                refused.push(refusal);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
    }
    if refused.is_empty() { Ok(loaded) } else { Err(refused) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_blank_and_moves_nothing() {
        for (text, read) in [
            ("\u{feff}table_add t a 1 =>", "   table_add t a 1 =>"),
            ("\u{feff}", "   "),
            ("table_add \u{feff}", "table_add \u{feff}"),
        ] {
            assert_eq!(without_mark(text), read);
            assert_eq!(without_mark(text).len(), text.len());
        }
    }
}
