//! How fast one and two workers of one switch take the frames of the programs' own tests, over devices of the null driver that open to
//! one or two queue pairs. Tables, counters, meters and registers are those of one program.
//!
//!     cargo bench -p millrace-bench --bench workers [-- PROGRAM...]
//!
//! Rates are by the CPU time of the workers' threads, so other work on the machine takes little away. `apart` is two switches with one
//! worker each, which share nothing: what the machine gives for a second processor.

mod lab;

use lab::running::{Running, median};
use lab::{capture, compile, files, frames, switch};
use millrace_chassis::Pipeline;
use millrace_dataplane::{PortId, Spread, Switch, Worker};
use millrace_drivers::null::NullDevice;
use millrace_drivers::{Device, PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, PacketPool};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration;

const PROGRAMS: [&str; 7] =
    ["router", "l2_switch", "firewall", "nat", "l3_gateway_pppoe", "l3_gateway_vxlan", "l3_gateway_gtp"];
const PORTS: std::ops::Range<PortId> = 0..16;
/// Rates of each kind, of which the median counts.
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(200);
/// Before a round: code is fitted, caches are warm.
const WARM_UP: Duration = Duration::from_millis(100);

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Sent,
    Copied,
    Dropped,
}

/// How many workers, and how many queue pairs the device of each port has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 1C/1Q.
    One,
    /// 1C/2Q: the worker asks both.
    TwoQueues,
    /// 2C/1Q: the first worker spreads the frames.
    Spread,
    /// 2C/2Q.
    Two,
    /// Two switches.
    Apart,
}

const KINDS: [Kind; 5] = [Kind::One, Kind::TwoQueues, Kind::Spread, Kind::Two, Kind::Apart];

fn main() {
    let allowed = sched_getaffinity(None).expect("the processors of this process");
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).take(2).collect();
    assert!(cores.len() == 2, "two processors are needed");
    println!(
        "Mpps by CPU time, medians of {ROUNDS} rounds that alternate; nC/mQ: workers, queue pairs of each port"
    );
    println!(
        "{:18} {:8} {:>7} {:>7} {:>7} {:>7} {:>11} {:>7} {:>11}",
        "program", "frames", "1C/1Q", "1C/2Q", "2C/1Q", "2C/2Q", "/ 1C/1Q", "apart", "/ 1C/1Q"
    );
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for name in
        PROGRAMS.into_iter().filter(|name| wanted.is_empty() || wanted.iter().any(|word| word == name))
    {
        let (source, entries, packets) = files(name);
        let (pipeline, packets) = (compile(&source), frames(&packets));
        let mut probe = switch(&pipeline, &entries);
        let mut by_fate: BTreeMap<(Fate, PortId), Vec<Vec<u8>>> = BTreeMap::new();
        for (port, frame) in packets {
            by_fate.entry((fate(&mut probe, port, &frame), port)).or_default().push(frame);
        }
        for fate in [Fate::Sent, Fate::Copied, Fate::Dropped] {
            let of_fate = by_fate.iter().filter(|((own, _), _)| *own == fate);
            let Some(((_, port), frames)) = of_fate.max_by_key(|(_, frames)| frames.len()) else { continue };
            let trace = capture(frames);
            row(
                name,
                fate,
                &Lane { pipeline: &pipeline, entries: &entries, port: *port, trace: &trace, cores: &cores },
            );
            std::fs::remove_file(&trace).expect("the trace");
        }
    }
}

fn fate(switch: &mut Switch, port: PortId, frame: &[u8]) -> Fate {
    let outcome = switch.inject(port, frame, 0);
    match (outcome.outputs().count(), outcome.drops.len()) {
        (0, _) => Fate::Dropped,
        (1, 0) => Fate::Sent,
        _ => Fate::Copied,
    }
}

fn row(name: &str, fate: Fate, lane: &Lane<'_>) {
    let mut rates: [Vec<f64>; KINDS.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (kind, rates) in KINDS.into_iter().zip(&mut rates) {
            rates.push(lane.rate(kind));
        }
    }
    let ratio = |kind: usize| {
        let ratios = rates[kind].iter().zip(&rates[0]).map(|(two, one)| two / one).collect();
        median(ratios)
    };
    let [two, apart] = [3, 4].map(ratio);
    let [one, queues, spread, both, separate] = rates.map(median);
    println!(
        "{name:18} {:8} {one:>7.2} {queues:>7.2} {spread:>7.2} {both:>7.2} {two:>11.2} {separate:>7.2} {apart:>11.2}",
        format!("{fate:?}").to_lowercase()
    );
}

/// A program and its traffic.
struct Lane<'l> {
    pipeline: &'l Pipeline,
    entries: &'l str,
    port: PortId,
    trace: &'l Path,
    cores: &'l [usize],
}

impl Lane<'_> {
    /// Millions of packets in a second.
    fn rate(&self, kind: Kind) -> f64 {
        let running: Vec<Running> = match kind {
            Kind::Apart => self.cores.iter().map(|core| self.start(Kind::One, &[*core])).collect(),
            Kind::Spread | Kind::Two => vec![self.start(kind, self.cores)],
            Kind::One | Kind::TwoQueues => vec![self.start(kind, &self.cores[..1])],
        };
        std::thread::sleep(WARM_UP);
        let before: Vec<_> = running.iter().map(Running::now).collect();
        std::thread::sleep(ROUND);
        let after: Vec<_> = running.iter().map(Running::now).collect();
        running.into_iter().for_each(Running::stop);
        let of_workers = before.into_iter().flatten().zip(after.into_iter().flatten());
        let moved: Vec<(f64, f64)> = of_workers
            .map(|(before, after)| ((after.0 - before.0) as f64, (after.1 - before.1).as_secs_f64()))
            .collect();
        let rate = match kind {
            // The second worker sleeps when the first has given it all.
            Kind::Spread => moved.iter().map(|(packets, _)| packets).sum::<f64>() / moved[0].1,
            _ => moved.iter().map(|(packets, time)| packets / time).sum(),
        };
        rate / 1e6
    }

    fn start(&self, kind: Kind, cores: &[usize]) -> Running {
        let trace = self.trace.to_str().expect("a path");
        let ports = PORTS.map(|port| {
            let device = NullDevice::new(if port == self.port { trace } else { "-" }).expect("a trace");
            let queues = if matches!(kind, Kind::TwoQueues | Kind::Two) { 2 } else { 1 };
            let pairs = Box::new(device).open(queues).expect("queue pairs");
            (port, if kind == Kind::TwoQueues { vec![Box::new(Both { pairs, next: 0 }) as _] } else { pairs })
        });
        let mut switch = switch(self.pipeline, self.entries);
        // Else another thread makes it, for which two workers leave less of two processors than one does.
        switch.use_best_code().expect("the best code");
        let worker = Worker::with_followers(switch, ports.collect(), cores.len(), Spread::Symmetric);
        let mut worker = worker.unwrap_or_else(|error| panic!("{error}"));
        worker.run_on(cores.to_vec());
        Running::start(worker, cores.len())
    }
}

/// Several queue pairs of a port for one worker, which asks one after the other.
struct Both {
    pairs: Vec<Box<dyn QueuePair>>,
    next: usize,
}

impl QueuePair for Both {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        self.next = (self.next + 1) % self.pairs.len();
        self.pairs[self.next].receive(batch, pool)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        self.pairs[0].transmit(batch, pool)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        self.pairs.iter().fold(PortStatistics::default(), |mut sum, pair| {
            sum += pair.statistics();
            sum
        })
    }
}
