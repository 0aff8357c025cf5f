//! What was measured.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The result of a benchmark. Counts are of one pass over the trace; rates are of all cores together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Million frames a second, by [`Report::clock`]: the median of the rounds.
    pub mpps: f64,
    /// The clock of `mpps`: `cpu`, the CPU time of the forwarding threads.
    pub clock: &'static str,
    /// Million frames a second of the rounds.
    pub mpps_rounds: Spread,
    /// The same by the clock on the wall.
    pub wall_mpps_rounds: Spread,
    /// Gigabits a second of frames as they came in, without preamble, gap and check sequence, at `mpps`.
    pub gbps: f64,
    /// Nanoseconds of one core for a frame, at `mpps`.
    pub ns_per_frame: f64,
    /// Cycles of the nominal clock rate of one core for a frame, at `mpps`.
    pub cycles_per_frame: f64,
    /// Instructions for a frame, where the machine counts them.
    pub instructions_per_frame: Option<f64>,
    /// Frames of one pass.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that left the switch.
    pub forwarded: u64,
    /// Frames and copies that did not.
    pub dropped: u64,
    /// Frames that left, by port.
    pub ports: BTreeMap<u32, u64>,
    /// Frames and copies that did not leave, by reason.
    pub drops: BTreeMap<String, u64>,
    /// The sum modulo 2^32 of the CRC-32 of each frame that left, started from its port.
    pub digest: u32,
    /// Whether a pass after the measurement gave the same counts and the same bytes.
    pub repeatable: bool,
    /// Threads that forwarded.
    pub cores: usize,
    /// Receive queues that shared the trace.
    pub queues: usize,
    /// Whether each frame was copied into a buffer first.
    pub copy: bool,
    /// What ran the program.
    pub engine: String,
    /// The tables.
    pub tables: BTreeMap<String, TableReport>,
    /// Milliseconds that loading the entries took, when whoever measured says so.
    pub load_ms: Option<f64>,
    /// Where the time went, when that was asked for.
    pub profile: Option<Profile>,
    /// What changing tables meanwhile did, when that was asked for.
    pub churn: Option<ChurnReport>,
}

/// A table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// Its entries.
    pub entries: u64,
    /// Bytes of memory of all that belongs to it.
    pub bytes: u64,
}

/// Where the time of a round went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Million frames a second of the round, by CPU time.
    pub mpps: f64,
    /// How often it was looked.
    pub samples: u64,
    /// Cycles of the nominal clock rate for a frame, by part. Their sum is what a frame took in this round.
    pub cycles: BTreeMap<String, f64>,
}

/// Forwarding while entries change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ChurnReport {
    /// Changes a second that were asked for.
    pub asked: f64,
    /// Changes a second that were made.
    pub made: f64,
    /// Million frames a second meanwhile, by CPU time.
    pub mpps: f64,
    /// The rate without changes, between the rounds with them.
    pub quiet_mpps: f64,
    /// The rate with changes as a share of the quiet one.
    pub ratio: f64,
    /// Changes that were refused; there should be none.
    pub refused: u64,
    /// Frames that were lost, changed or sent to a port that is right neither before nor after a change.
    pub wrong: u64,
    /// Frames that were looked at for that.
    pub checked: u64,
}

/// Several values of one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The one in the middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

/// A rate of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Million frames a second by CPU time.
    pub cpu_mpps: f64,
    /// Million frames a second by the clock on the wall.
    pub wall_mpps: f64,
    /// Instructions for a frame.
    pub instructions: Option<f64>,
}

impl Spread {
    /// Of these values; all 0 without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (values.first().copied(), values.last().copied()) else {
            return Spread::default();
        };
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        };
        Spread { min, median, max }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<String> =
            self.ports.iter().map(|(port, frames)| format!("{port}: {frames}")).collect();
        let drops: Vec<String> =
            self.drops.iter().map(|(reason, frames)| format!("{reason}: {frames}")).collect();
        let spread = |s: &Spread| format!("{:.2} to {:.2}", s.min, s.max);
        writeln!(
            f,
            "{:.2} Mpps ({} over the rounds; {:.2} by the wall clock), {:.2} Gbit/s",
            self.mpps,
            spread(&self.mpps_rounds),
            self.wall_mpps_rounds.median,
            self.gbps
        )?;
        write!(f, "{:.1} ns, {:.0} cycles", self.ns_per_frame, self.cycles_per_frame)?;
        if let Some(instructions) = self.instructions_per_frame {
            write!(f, ", {instructions:.0} instructions")?;
        }
        writeln!(
            f,
            " a frame and core; {}, {}, {}, {}",
            self.engine,
            if self.copy { "one copy" } else { "in place" },
            count(self.cores, "core"),
            count(self.queues, "queue"),
        )?;
        writeln!(f, "one pass: {} frames in, {} out, {} dropped", self.frames, self.forwarded, self.dropped)?;
        if !ports.is_empty() {
            writeln!(f, "  out by port   {}", ports.join(", "))?;
        }
        if !drops.is_empty() {
            writeln!(f, "  dropped       {}", drops.join(", "))?;
        }
        for (table, TableReport { entries, bytes }) in &self.tables {
            writeln!(f, "  table {table}: {entries} entries, {:.1} MB", *bytes as f64 / 1e6)?;
        }
        if let Some(ms) = self.load_ms {
            writeln!(f, "  entries loaded in {ms:.0} ms")?;
        }
        writeln!(f, "  digest        {:#010x}", self.digest)?;
        if !self.repeatable {
            writeln!(f, "  the passes differ: the program remembers what it has seen")?;
        }
        if let Some(profile) = &self.profile {
            let all: f64 = profile.cycles.values().sum();
            writeln!(
                f,
                "profile: {:.1} cycles a frame, {:.2} Mpps, {} samples",
                all, profile.mpps, profile.samples
            )?;
            for (part, cycles) in &profile.cycles {
                writeln!(f, "  {cycles:8.2}  {:5.1} %  {part}", 100.0 * cycles / all)?;
            }
        }
        if let Some(churn) = &self.churn {
            writeln!(
                f,
                "{:.0} changes of entries a second by another thread ({:.0} asked for, {} refused): {:.2} Mpps, {:.0} % of \
                 the quiet {:.2}; {} of {} frames lost or misrouted",
                churn.made,
                churn.asked,
                churn.refused,
                churn.mpps,
                100.0 * churn.ratio,
                churn.quiet_mpps,
                churn.wrong,
                churn.checked
            )?;
        }
        Ok(())
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of([]), Spread::default());
    }
}
