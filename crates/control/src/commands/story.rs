//! Traces, numbered as commands number things.

use super::execute::entry_handle;
use millrace_commands::bmv2_priority;
use millrace_dataplane::{Step, Trace};
use millrace_state::EntryIndex;

/// Kept priorities from here on came from commands, which count down from the highest there is; those of programs, STF
/// tests and P4Runtime count up from 1.
const FROM_COMMANDS: u32 = 1 << 30;

/// Gives the entries of a trace the handles that commands know them by, and shows priorities as they were written.
pub fn number_trace(trace: &mut Trace) {
    for step in trace.journeys.iter_mut().flat_map(|journey| &mut journey.steps) {
        let Step::Table { entry, priority, .. } = step else { continue };
        *entry = entry.map(|entry| entry_handle(EntryIndex(entry)));
        *priority = priority.map(|kept| if kept >= FROM_COMMANDS { bmv2_priority(kept) } else { kept });
    }
}
