//! A whole benchmark.

use crate::churn::{self, Churn, NOTHING_TO_CHANGE};
use crate::clock::{Stopwatch, nominal_hz};
use crate::cpus::{self, Pinned};
use crate::report::{Profile, Rate, Report, Spread, TableReport};
use crate::worker::{Pass, Profiled, Worker};
use millrace_dataplane::{PortId, Switch, SwitchError};
use millrace_drivers::PortError;
use millrace_drivers::null::{Replay, Share, Trace};
use millrace_frames::Footprint;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Barrier;
use std::time::Duration;

/// Most threads that forward.
pub const MAX_CORES: usize = 256;
/// Most receive queues.
pub const MAX_QUEUES: usize = 1024;
/// Most rounds.
pub const MAX_ROUNDS: u32 = 1000;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Each frame is copied into a buffer first, as a receiver does; else it is switched where it lies.
    pub copy: bool,
    /// Rounds, 1 to [`MAX_ROUNDS`].
    pub rounds: u32,
    /// How long each round takes at least.
    pub round: Duration,
    /// How long the warm-up takes at least.
    pub warm_up: Duration,
    /// Receive queues that share the trace, at most [`MAX_QUEUES`]; 0: one for each switch.
    pub queues: usize,
    /// The port that the frames come in on.
    pub port: PortId,
    /// Whether a further round looks where the time goes. Only with one switch.
    pub profile: bool,
    /// Changes of entries a second, by another thread, in further rounds. Only with one switch.
    pub churn: Option<f64>,
}

impl Default for Config {
    /// In place, five rounds of 300 ms, a queue for each switch, port 0.
    fn default() -> Config {
        Config {
            copy: false,
            rounds: 5,
            round: Duration::from_millis(300),
            warm_up: Duration::from_millis(100),
            queues: 0,
            port: 0,
            profile: false,
            churn: None,
        }
    }
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum BenchError {
    /// No switch, or more than [`MAX_CORES`].
    Cores(usize),
    /// More queues than [`MAX_QUEUES`], or fewer than switches.
    Queues {
        /// How many were asked for.
        queues: usize,
        /// How many switches there are.
        cores: usize,
    },
    /// No round, or more than [`MAX_ROUNDS`].
    Rounds(u32),
    /// The frames have no place in memory.
    Memory(PortError),
    /// The best code cannot be made, for that reason.
    Code(SwitchError),
    /// A thread that forwards has failed.
    Thread,
    /// There can be no profile, for that reason.
    Profile(String),
    /// Entries cannot be changed, for that reason.
    Churn(String),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::Cores(cores) => write!(f, "1 to {MAX_CORES} cores can be measured, not {cores}"),
            BenchError::Queues { queues, cores } => {
                write!(f, "{cores} to {MAX_QUEUES} queues are possible with {cores} cores, not {queues}")
            }
            BenchError::Rounds(rounds) => write!(f, "1 to {MAX_ROUNDS} rounds are possible, not {rounds}"),
            BenchError::Memory(error) => error.fmt(f),
            BenchError::Code(error) => error.fmt(f),
            BenchError::Churn(why) => write!(f, "entries cannot change: {why}"),
            BenchError::Profile(why) => write!(f, "no profile: {why}"),
            BenchError::Thread => f.write_str("a thread that forwards could not be started, or has failed"),
        }
    }
}

impl std::error::Error for BenchError {}

/// Measures switches over a trace, each in a thread of its own (a single one in the calling thread). They should be
/// alike: each gets a part of the frames.
///
/// # Errors
/// [`BenchError`].
pub fn measure(mut switches: Vec<Switch>, trace: &Trace, config: &Config) -> Result<Report, BenchError> {
    let cores = switches.len();
    let queues = if config.queues == 0 { cores } else { config.queues };
    if !(1..=MAX_CORES).contains(&cores) {
        return Err(BenchError::Cores(cores));
    }
    if !(cores..=MAX_QUEUES).contains(&queues) {
        return Err(BenchError::Queues { queues, cores });
    }
    if let Some(rate) = config.churn.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
        return Err(BenchError::Churn(format!("{rate} changes a second are no rate")));
    }
    if !(1..=MAX_ROUNDS).contains(&config.rounds) {
        return Err(BenchError::Rounds(config.rounds));
    }
    switches.iter_mut().try_for_each(settle)?;
    let written = switches.first().map_or_else(Footprint::default, Switch::footprint);
    let engine = switches.first().map_or("", Switch::engine_name).to_owned();
    let tables = switches.first().map_or_else(BTreeMap::new, table_reports);
    let mut workers = Vec::new();
    for (core, switch) in switches.into_iter().enumerate() {
        let mine = (core..queues).step_by(cores);
        let replay = |queue| {
            let share = Share { queue, of: queues };
            match config.copy {
                true => Replay::copying(trace, share, written.before),
                false => Replay::in_place(trace, share, written),
            }
        };
        let mine: Vec<Replay> = mine.map(replay).collect::<Result<_, _>>().map_err(BenchError::Memory)?;
        workers.push(Worker::new(switch, mine, config.port));
    }
    let (mut profiled, mut churned) = (None, None);
    let measured = match workers.as_mut_slice() {
        [only] => {
            let measured = run(only, config, &Barrier::new(1));
            if config.profile {
                let found = only.profiled_round(&mut Stopwatch::new(), config.round * config.rounds);
                profiled = Some(found.map_err(|error| BenchError::Profile(error.to_string()))?);
            }
            if let Some(per_second) = config.churn {
                let churn = Churn::of(&only.switch);
                let churn = churn.ok_or_else(|| BenchError::Churn(NOTHING_TO_CHANGE.to_owned()))?;
                churned = Some(churn::measure(only, &churn, per_second, config.round, config.rounds));
            }
            vec![measured]
        }
        several if config.profile || config.churn.is_some() => {
            let why = format!("it takes one core, and there are {}", several.len());
            return Err(if config.profile { BenchError::Profile(why) } else { BenchError::Churn(why) });
        }
        several => in_threads(several, config)?,
    };
    let (mut first, mut last) = (Pass::default(), Pass::default());
    for one in &measured {
        add(&mut first, &one.first);
        add(&mut last, &one.last);
    }
    let rounds: Vec<Rate> = (0..config.rounds as usize).map(|round| of_round(&measured, round)).collect();
    let mpps_rounds = Spread::of(rounds.iter().map(|rate| rate.cpu_mpps));
    let mpps = mpps_rounds.median;
    let ns_per_frame = if mpps > 0.0 { 1e3 * cores as f64 / mpps } else { 0.0 };
    let instructions: Option<Vec<f64>> = rounds.iter().map(|rate| rate.instructions).collect();
    let hz = nominal_hz();
    let frame_bits = 8.0 * trace.bytes() as f64 / trace.len().max(1) as f64;
    Ok(Report {
        mpps,
        clock: "cpu",
        mpps_rounds,
        wall_mpps_rounds: Spread::of(rounds.iter().map(|rate| rate.wall_mpps)),
        gbps: mpps * frame_bits / 1e3,
        ns_per_frame,
        cycles_per_frame: ns_per_frame * hz / 1e9,
        instructions_per_frame: instructions.map(|counts| Spread::of(counts).median),
        frames: trace.len() as u64,
        bytes: trace.bytes() as u64,
        forwarded: first.sink.frames(),
        dropped: first.drops.iter().map(|(_, count)| count).sum(),
        ports: first.sink.ports().map(|(port, taken)| (port, taken.frames)).collect(),
        drops: first.drops.iter().cloned().collect(),
        digest: first.sink.digest(),
        repeatable: first == last,
        cores,
        queues,
        copy: config.copy,
        engine,
        tables,
        load_ms: None,
        profile: profiled.map(|profiled| profile(&profiled, hz)),
        churn: churned,
    })
}

/// Has a switch use its best code from the start. Better code that came meanwhile would make rounds unlike, samples of a
/// profile would be looked up in code that they are not of, and frames would be restored as the first code wants it.
fn settle(switch: &mut Switch) -> Result<(), BenchError> {
    switch.use_best_code().map_err(BenchError::Code)
}

fn profile(profiled: &Profiled, hz: f64) -> Profile {
    let samples: u64 = profiled.parts.values().sum();
    let mpps = profiled.rate.cpu_mpps;
    let all = if mpps > 0.0 { hz / (mpps * 1e6) } else { 0.0 };
    let cycles = |(part, count): (&String, &u64)| (part.clone(), all * *count as f64 / samples.max(1) as f64);
    Profile { mpps, samples, cycles: profiled.parts.iter().map(cycles).collect() }
}

/// What one thread measured.
struct Measured {
    first: Pass,
    rounds: Vec<Rate>,
    last: Pass,
}

fn run(worker: &mut Worker, config: &Config, together: &Barrier) -> Measured {
    let mut watch = Stopwatch::new();
    let first = worker.checked_pass();
    worker.round(&mut watch, config.warm_up);
    let round = |_| {
        together.wait();
        worker.round(&mut watch, config.round)
    };
    let rounds = (0..config.rounds).map(round).collect();
    together.wait();
    Measured { first, rounds, last: worker.checked_pass() }
}

fn in_threads(workers: &mut [Worker], config: &Config) -> Result<Vec<Measured>, BenchError> {
    let together = &Barrier::new(workers.len());
    let allowed = cpus::allowed();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (workers.iter_mut().enumerate())
            .map(|(core, worker)| {
                let cpu = allowed.get(core % allowed.len().max(1)).copied();
                scope.spawn(move || {
                    let _pinned = Pinned::to(cpu);
                    run(worker, config, together)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| BenchError::Thread)).collect()
    })
}

fn add(to: &mut Pass, pass: &Pass) {
    to.sink.add(&pass.sink);
    for (reason, count) in &pass.drops {
        match to.drops.iter_mut().find(|(other, _)| other == reason) {
            Some((_, sum)) => *sum += count,
            None => to.drops.push((reason.clone(), *count)),
        }
    }
}

/// The rate of all threads together in a round.
fn of_round(measured: &[Measured], round: usize) -> Rate {
    let rates: Vec<&Rate> = measured.iter().filter_map(|one| one.rounds.get(round)).collect();
    let instructions: Option<Vec<f64>> = rates.iter().map(|rate| rate.instructions).collect();
    Rate {
        cpu_mpps: rates.iter().map(|rate| rate.cpu_mpps).sum(),
        wall_mpps: rates.iter().map(|rate| rate.wall_mpps).sum(),
        instructions: instructions.map(|counts| counts.iter().sum::<f64>() / counts.len().max(1) as f64),
    }
}

fn table_reports(switch: &Switch) -> BTreeMap<String, TableReport> {
    let tables = switch.state().tables();
    let of = |id| TableReport {
        entries: tables.entry_count(id).into(),
        bytes: tables.table(id).memory_bytes() as u64,
    };
    switch.program().tables.iter().map(|(id, table)| (table.name.clone(), of(id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::{EngineKind, SwitchConfig};
    use millrace_pipeline::text;
    use std::sync::Arc;

    /// Large enough for its first code to be made in the quick way.
    fn large() -> Switch {
        let steps: String = (0..150)
            .map(|n| {
                let (then, after) = (2 * n + 1, 2 * n + 2);
                format!("block{}: branch eq(from, 32w{n}), block{then}, block{after}\nblock{then}: port = 32w7 goto block{after}\n", 2 * n)
            })
            .collect();
        let program = text::parse(&format!(
            "program t architecture test errors (NoError)
             ingress (ingress) egress ()
             intrinsic egress_spec = port
             intrinsic ingress_port = from
             metadata port: bit<32>
             metadata from: bit<32>
             body control ingress {{ {steps} block300: end }}"
        ));
        let config = SwitchConfig { engine: EngineKind::Jit, ..SwitchConfig::default() };
        Switch::new(Arc::new(program.expect("IR text")), config).expect("a switch")
    }

    #[test]
    fn the_best_code_is_there_before_the_first_round() {
        let mut switch = large();
        let first = switch.compile_statistics();
        settle(&mut switch).expect("code");
        let best = switch.compile_statistics();
        assert!(first.effort != best.effort, "{first:?} {best:?}");
        settle(&mut switch).expect("code");
        assert_eq!(switch.compile_statistics().codegen, best.codegen, "what is the best stays");
    }
}
