//! A simulation of a network by the parts of the product: the regulator of end systems, the accounts of switches, the queues of ports.
//!
//! Sources send as much as their virtual links may: a frame of the largest length whenever the regulator lets one go. What differs is
//! when they begin ([`Offsets`]). Delays count from the release by the regulator until the application has the frame, as bounds do, so
//! each is at most the bound of its path; if one is above it, the bound or the product is wrong, and [`Report::above`] says so.

mod directed;
mod engine;
mod layout;
mod product;
mod queue;
mod sources;

pub use engine::Discards;

use crate::Topology;
use crate::bounds::Bounds;
use crate::random::Random;
use engine::Engine;

/// Most frames that a simulation may be asked for.
pub const MAX_FRAMES: u64 = 1_000_000_000_000;

/// When virtual links begin to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// At random times; now and then a source pauses, so that the order changes.
    Random,
    /// All at once, and without a pause.
    Synchronous,
    /// For each path so that its frames meet as many others as a search can make them meet.
    Directed,
}

impl Offsets {
    /// All, as the command line has them.
    pub const ALL: [(Offsets, &'static str); 3] =
        [(Offsets::Random, "random"), (Offsets::Synchronous, "synchronous"), (Offsets::Directed, "directed")];
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Frames that regulators release in all. A directed search shares them among the paths that it looks at.
    pub frames: u64,
    /// When virtual links begin.
    pub offsets: Offsets,
    /// Of the random numbers.
    pub seed: u64,
    /// The virtual links, by their places, whose paths a directed search looks at; all if it is empty.
    pub vls: Vec<usize>,
}

/// What was seen. Times are in nanoseconds, the largest rounded up, the least rounded down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Of each path, in the order of [`Topology::trees`] and of their leaves.
    pub paths: Vec<PathSeen>,
    /// Of each output port the most bytes of frames that waited together.
    pub most_waiting: Vec<u64>,
    /// Frames that regulators released.
    pub frames: u64,
    /// Frames at output ports.
    pub hops: u64,
    /// Frames that were discarded.
    pub discards: Discards,
}

/// What was seen of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSeen {
    /// The tree, by its place.
    pub tree: usize,
    /// The leaf, by its place there.
    pub leaf: usize,
    /// Frames that arrived.
    pub frames: u64,
    /// The largest delay.
    pub delay: u64,
    /// The largest less the least.
    pub jitter: u64,
    /// Whether a directed search looked for its largest delay.
    pub is_searched: bool,
}

impl PathSeen {
    /// The part of a bound that its delay is, in thousandths.
    pub fn part_of(&self, bound: u64) -> u64 {
        u64::try_from(u128::from(self.delay) * 1000 / u128::from(bound.max(1))).unwrap_or(u64::MAX)
    }
}

/// A path whose delay or jitter was above its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Above {
    /// The path, by its place.
    pub path: usize,
    /// What was seen, and the bound of it.
    pub delay: (u64, u64),
    /// The same of jitter.
    pub jitter: (u64, u64),
}

/// Simulates a network. Accounts tolerate the jitter of the file, else that of the bounds; without either nothing is policed.
/// `progress` is told how many frames were released, now and then.
///
/// # Errors
/// A port cannot be simulated, and why.
pub fn simulate(
    topology: &Topology<'_>,
    bounds: Option<&Bounds>,
    setting: &Setting,
    progress: &mut dyn FnMut(u64),
) -> Result<Report, String> {
    let engine = Engine::new(layout::layout(topology, bounds)?);
    run(engine, topology, bounds, setting, progress)
}

fn run(
    mut engine: Engine,
    topology: &Topology<'_>,
    bounds: Option<&Bounds>,
    setting: &Setting,
    progress: &mut dyn FnMut(u64),
) -> Result<Report, String> {
    let mut random = Random::new(setting.seed);
    let (frames, searched) = match setting.offsets {
        Offsets::Directed => directed::search(topology, bounds, &mut engine, setting, &mut random, progress)?,
        _ => (sources::run(topology, &mut engine, setting, &mut random, progress)?, Vec::new()),
    };
    let mut is_searched = vec![false; engine.seen.len()];
    searched.into_iter().for_each(|place| is_searched[place] = true);
    let leaf = |(place, seen): (usize, &engine::Seen)| {
        let leaf = engine.layout.leaves[place];
        // No frame, no delay.
        let receive = if seen.frames == 0 { 0 } else { leaf.latency };
        PathSeen {
            tree: leaf.tree as usize,
            leaf: leaf.place as usize,
            frames: seen.frames,
            delay: (seen.largest + receive).div_ceil(1000),
            jitter: seen.largest.saturating_sub(seen.least.min(seen.largest)).div_ceil(1000),
            is_searched: is_searched[place],
        }
    };
    Ok(Report {
        paths: engine.seen.iter().enumerate().map(leaf).collect(),
        most_waiting: engine.layout.ports.iter().map(|port| port.most_waiting).collect(),
        frames,
        hops: engine.hops,
        discards: engine.discards,
    })
}

impl Report {
    /// The paths that were above their bounds.
    pub fn above(&self, bounds: &Bounds) -> Vec<Above> {
        let compare = |(path, (seen, bound)): (usize, (&PathSeen, &crate::bounds::Path))| {
            let bound = bound.bound.as_ref().ok()?;
            let above = Above { path, delay: (seen.delay, bound.delay), jitter: (seen.jitter, bound.jitter) };
            (seen.delay > bound.delay || seen.jitter > bound.jitter).then_some(above)
        };
        self.paths.iter().zip(&bounds.paths).enumerate().filter_map(compare).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::bounds;
    use crate::generate::{Size, generate};
    use crate::model::Scheduler;

    /// A port that is first in, first out tells when a frame comes when it will leave; asked for each frame like any other port, it does the same. With
    /// buffers that overflow, and accounts that refuse.
    #[test]
    fn what_a_port_tells_before_is_what_it_does_when_it_is_asked() {
        let (mut refused, mut lost) = (0, 0);
        for seed in 0..60 {
            let mut network = generate(seed, Size::random(seed));
            for switch in &mut network.switches {
                switch.scheduler = Scheduler::Fifo;
                switch.buffer = (seed % 2 == 1).then_some(2_000 + 500 * seed);
            }
            if seed % 3 == 2 {
                network.vls.iter_mut().for_each(|vl| vl.jitter = Some(1_000));
            }
            let network =
                network.checked("generated").unwrap_or_else(|problems| panic!("{}", problems.render(false)));
            let topology = Topology::new(&network).expect("a topology");
            let bounds = bounds(&topology).expect("bounds");
            for (offsets, _) in Offsets::ALL {
                let setting = Setting { frames: 3_000, offsets, seed, vls: Vec::new() };
                let engine = || Engine::new(layout::layout(&topology, Some(&bounds)).expect("a layout"));
                let told =
                    run(engine(), &topology, Some(&bounds), &setting, &mut |_| {}).expect("a simulation");
                let mut asked = engine();
                assert!(asked.layout.ports.iter().all(|port| port.is_fifo));
                asked.layout.ports.iter_mut().for_each(|port| port.is_fifo = false);
                let asked =
                    run(asked, &topology, Some(&bounds), &setting, &mut |_| {}).expect("a simulation");
                assert_eq!(told, asked, "{seed} {offsets:?}");
                (refused, lost) = (refused + told.discards.policed, lost + told.discards.no_room);
            }
        }
        assert!(refused > 0 && lost > 0, "{refused} {lost}");
    }
}
