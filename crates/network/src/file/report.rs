//! The latency of a switch from the report of `millrace bounds --json`.
//!
//! The report has, for batches of some numbers of packets, a time that the program takes at most on the machine that it names. A frame that comes
//! just after the switch has taken a batch waits until that batch is through, and then goes through with its own: it takes twice the time of
//! the largest batch at most. What the report does not cover (drivers, copies to several ports) is the file's `latency`, which is added.

use crate::limits::{MAX_BATCH, MAX_TIME};
use serde::Deserialize;

/// Gives the text of the report with this name, or says why there is none.
pub(super) type Reports<'r> = &'r mut dyn FnMut(&str) -> Result<String, String>;

/// What of a report matters here; it has more.
#[derive(Deserialize)]
struct Report {
    bounds: OfProgram,
    batches: Vec<Batch>,
}

#[derive(Deserialize)]
struct OfProgram {
    /// The machine that times hold on; none without a calibration.
    machine: Option<Machine>,
}

#[derive(Deserialize)]
struct Machine {
    machine: String,
}

#[derive(Deserialize)]
struct Batch {
    packets: u64,
    ns: Option<u64>,
}

/// The longest that a frame is in a switch that is this machine and takes at most so many frames at once, in nanoseconds.
pub(super) fn latency(text: &str, machine: &str, batch: u64) -> Result<u64, String> {
    let report: Report = serde_json::from_str(text)
        .map_err(|error| format!("it is no report of `millrace bounds --json`: {error}"))?;
    let batches = report.batches.iter().filter(|known| known.packets >= batch && known.packets <= MAX_BATCH);
    let batch_is = batches
        .min_by_key(|known| known.packets)
        .ok_or_else(|| format!("it has no bound of a batch of {batch} frames"))?;
    let (Some(of), Some(ns)) = (report.bounds.machine, batch_is.ns) else {
        return Err(
            "it has no bound in nanoseconds: `millrace bounds --calibration FILE --json` on the machine of the switch writes one"
                .to_owned(),
        );
    };
    if of.machine != machine {
        return Err(format!("it holds on machine `{}`, and `latency-machine` is `{machine}`", of.machine));
    }
    let both = ns.checked_mul(2).filter(|both| *both <= MAX_TIME);
    both.ok_or_else(|| format!("twice {ns} ns are more than 10 s (MAX_TIME)"))
}
