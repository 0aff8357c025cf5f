//! The workers of `millrace run`: on which processors they run, how frames are spread over them, how they wait.

use crate::captures::OpenPort;
use crate::findings::Failure;
use crate::output::note_line;
use clap::{Args, ValueEnum};
use millrace_dataplane::{MAX_WORKERS, Polling, Spread};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use tracing::{info, warn};

/// The threads that forward.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workers")]
pub(crate) struct WorkerArgs {
    /// The processors that forward, as 0,2 or 0-3: a worker for each, which runs on it alone [default: one worker, anywhere]
    #[arg(long, value_name = "LIST")]
    pub(crate) cores: Option<Cores>,
    /// What tells which worker gets a frame: the switch reads it then. If not given, a device with a queue pair for each worker
    /// decides, and frames of other devices are spread by symmetric
    #[arg(long, value_enum, value_name = "HOW", requires = "cores")]
    pub(crate) spread: Option<SpreadArg>,
    /// What workers without packets do
    #[arg(long, value_enum, value_name = "HOW", default_value_t = PollArg::Interrupt)]
    pub(crate) poll: PollArg,
}

/// How frames are spread over workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpreadArg {
    /// By addresses, protocol and ports, the same for both directions of a flow
    Symmetric,
    /// As symmetric, of the packet inside GTP-U, VXLAN, GRE or IP in IP
    Tunnel,
    /// By the virtual link of ARINC 664 part 7
    Vl,
    /// Not at all: the first worker gets all frames of a port
    Port,
}

/// How workers wait for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PollArg {
    /// Sleep at once: an idle switch takes no processor time
    Interrupt,
    /// Look for packets for a fifth of a millisecond, then sleep
    Adaptive,
    /// Look for packets all the time, which takes all time of their processors
    Busy,
}

/// Processors, each once, in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores(Vec<usize>);

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Cores, String> {
        let mut cores = Vec::new();
        for part in text.split(',') {
            let number = |digits: &str| {
                let digits = digits.trim();
                let number = digits.parse().ok().filter(|number| *number < CpuSet::MAX_CPU);
                number.ok_or_else(|| {
                    let limit = CpuSet::MAX_CPU - 1;
                    format!("`{digits}` is no processor: numbers (0 to {limit}) and ranges are expected, as in 0,2-3")
                })
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(format!("`{part}` is an empty range"));
            }
            for core in first..=last {
                if cores.contains(&core) {
                    return Err(format!("processor {core} is given twice: a processor has one worker"));
                }
                cores.push(core);
            }
        }
        if cores.len() > MAX_WORKERS {
            return Err(format!("a switch has at most {MAX_WORKERS} workers, not {}", cores.len()));
        }
        Ok(Cores(cores))
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&list(self.0.iter().copied()))
    }
}

/// `0,2-3`.
fn list(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(shown).collect::<Vec<_>>().join(",")
}

/// The first of some processors that this process may not run on, or that the machine does not have, and those that it may use.
///
/// # Errors
/// The system does not say.
pub(crate) fn missing(
    mut cores: impl Iterator<Item = usize>,
) -> Result<Option<(usize, String)>, std::io::Error> {
    let allowed = sched_getaffinity(None)?;
    let allowed: BTreeSet<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    let missing = cores.find(|core| !allowed.contains(core));
    Ok(missing.map(|core| (core, list(allowed.iter().copied()))))
}

impl WorkerArgs {
    /// Whether the process may run on all of the processors.
    ///
    /// # Errors
    /// It may not run on one, or the machine has it not.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(Cores(cores)) = &self.cores else { return Ok(()) };
        let missing = missing(cores.iter().copied()).map_err(|error| Failure::failed("--cores", error))?;
        match missing {
            None => Ok(()),
            Some((core, known)) => Err(Failure::Usage(format!(
                "--cores: the switch cannot run on processor {core}; it may use {known}"
            ))),
        }
    }

    /// How many workers there are.
    pub(crate) fn count(&self) -> usize {
        self.processors().len().max(1)
    }

    /// Where they run; none: anywhere.
    pub(crate) fn processors(&self) -> &[usize] {
        self.cores.as_ref().map_or(&[], |Cores(cores)| cores)
    }

    /// How many queue pairs of a device with so many are used: one for each worker, or one, whose frames the switch spreads.
    pub(crate) fn queue_pairs(&self, device: usize) -> usize {
        let is_enough = self.spread.is_none() && device >= self.count();
        if is_enough { self.count() } else { 1 }
    }

    /// By which frames of one queue pair are spread.
    pub(crate) fn spread(&self) -> Spread {
        match self.spread {
            None | Some(SpreadArg::Symmetric) => Spread::Symmetric,
            Some(SpreadArg::Tunnel) => Spread::Tunnel,
            Some(SpreadArg::Vl) => Spread::VirtualLink,
            Some(SpreadArg::Port) => Spread::Port,
        }
    }

    pub(crate) fn polling(&self) -> Polling {
        match self.poll {
            PollArg::Interrupt => Polling::Interrupt,
            PollArg::Adaptive => Polling::Adaptive,
            PollArg::Busy => Polling::Busy,
        }
    }

    /// Nobody has asked for it: one worker takes all frames of these ports and hands most of them to others.
    fn warn_of_spreading(&self, ports: &str) {
        let workers = self.count();
        let reason = format!(
            "the device of port {ports} has fewer queue pairs than there are workers ({workers}): worker 0 receives and sends \
             all its frames and hands those of other flows over, which is slower than one worker for a program that does \
             little with a packet"
        );
        warn!(ports, workers, "{reason}");
        note_line(format_args!(
            "warning: {reason}; use a device with more queue pairs, one processor in `--cores`, or `--spread symmetric` if \
             this is wanted"
        ));
    }

    /// Tells of several workers: where they run, and which of them get the frames of each port.
    pub(crate) fn tell(&self, ports: &[OpenPort]) {
        let Some(cores) = &self.cores else { return };
        for (worker, core) in self.processors().iter().enumerate() {
            info!(worker, processor = core, "worker");
        }
        if self.count() == 1 {
            return;
        }
        let name = |(port, _): &OpenPort| port.to_string();
        let (own, shared): (Vec<&OpenPort>, Vec<&OpenPort>) =
            ports.iter().partition(|(_, pairs)| pairs.len() > 1);
        let names = |ports: &[&OpenPort]| ports.iter().map(|port| name(port)).collect::<Vec<_>>().join(", ");
        note_line(format_args!("{} workers on processors {cores}", self.count()));
        if !own.is_empty() {
            note_line(format_args!("a queue pair for each worker: port {}", names(&own)));
            info!(ports = names(&own), "a queue pair for each worker");
        }
        if !shared.is_empty() {
            let spread = self.spread();
            note_line(format_args!(
                "one queue pair, that of worker 0, whose frames are spread by {spread}: port {}",
                names(&shared)
            ));
            info!(ports = names(&shared), %spread, "one queue pair, spread by worker 0");
            if self.spread.is_none() {
                self.warn_of_spreading(&names(&shared));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        let read = |text: &str| text.parse::<Cores>();
        assert_eq!(read("0").unwrap().0, [0]);
        assert_eq!(read("3,0-1").unwrap().0, [3, 0, 1]);
        assert_eq!(read("0-3,7").unwrap().to_string(), "0-3,7");
        for (text, message) in [
            ("", "`` is no processor"),
            ("a", "`a` is no processor"),
            ("1-", "`` is no processor"),
            ("99999", "`99999` is no processor: numbers (0 to 1023)"),
            ("3-1", "`3-1` is an empty range"),
            ("0-2,1", "processor 1 is given twice"),
            ("0-64", "at most 64 workers, not 65"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_device_has_a_queue_pair_for_each_worker_or_one() {
        let mut args = WorkerArgs { cores: None, spread: None, poll: PollArg::Interrupt };
        assert_eq!((args.count(), args.queue_pairs(128)), (1, 1));
        args.cores = Some(Cores(vec![0, 1, 2]));
        assert_eq!([1, 2, 3, 128].map(|device| args.queue_pairs(device)), [1, 1, 3, 3]);
        // What the switch is told to spread, the device does not.
        args.spread = Some(SpreadArg::Tunnel);
        assert_eq!((args.queue_pairs(128), args.spread()), (1, Spread::Tunnel));
    }
}
