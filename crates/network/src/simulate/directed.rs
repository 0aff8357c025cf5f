//! A search for offsets that make a frame wait long.
//!
//! For one path at a time. The frame that is observed is released at a fixed time. Each virtual link that shares a port with the path,
//! or a port from which such a virtual link comes, has an offset; it sends from there with its gap. The delay of the observed frame is a function of these
//! offsets, which a simulation computes. It is made large in two steps:
//!
//! 1. **Alignment.** A frame of another virtual link does most harm if it comes to the first port that it shares with the path just
//!    before the observed frame. Whether it does is measured, not computed: what comes after the observed frame is moved earlier by the
//!    difference, what has left the port before is moved later. Frames over one link come one after the other, so some of them are
//!    moved to and fro; after a few rounds most of them are where they should be. The best round is kept.
//! 2. **Local search.** One or two offsets are changed, by the time of some frames, or by a new alignment; a change that
//!    makes the delay no smaller is kept.
//!
//! The largest delay found is that of a real run of the simulated network, so it is below the bound; how near says how good the bound is.

use super::Setting;
use super::engine::{Engine, Trace};
use super::product::Regulator;
use crate::Topology;
use crate::bounds::Bounds;
use crate::graph::{Leaf, PortId};
use crate::random::Random;

/// Rounds of alignment from each start.
const ROUNDS: usize = 12;
/// Changes in the local search at least, however few frames there are.
const LEAST_CHANGES: u64 = 40;

/// A virtual link of one network that meets the path.
struct Other {
    tree: usize,
    vl: usize,
    /// The first hop that it shares with the path, by the place in the layout, and the place of that port on the path.
    meets: Option<(u32, usize)>,
}

/// The search for one path.
struct Search<'s> {
    engine: &'s mut Engine,
    /// By virtual link.
    regulators: &'s mut [Regulator<u8>],
    topology: &'s Topology<'s>,
    random: &'s mut Random,
    /// The tree of the path.
    tree: usize,
    /// The hops of the path, by their places in the layout.
    hops: Vec<u32>,
    leaf: u32,
    others: Vec<Other>,
    /// Frames in this time before and after the observed one matter, in nanoseconds.
    window: u64,
    /// When the next run begins.
    base: u64,
    frames: u64,
}

/// Searches the largest delay of each path; the frames that were released, and the leaves that were looked at.
pub(super) fn search(
    topology: &Topology<'_>,
    bounds: Option<&Bounds>,
    engine: &mut Engine,
    setting: &Setting,
    random: &mut Random,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Vec<usize>), String> {
    let mut regulators =
        topology.network.vls.iter().map(super::sources::regulator).collect::<Result<Vec<_>, _>>()?;
    let mut vl_of = Vec::with_capacity(engine.layout.hops.len());
    for tree in &topology.trees {
        vl_of.extend(std::iter::repeat_n(tree.vl as u32, tree.hops.len()));
    }
    let hops = engine.layout.hops.len();
    engine.trace = Some(Trace {
        released: vec![u64::MAX; topology.network.vls.len()],
        vl_of,
        came: vec![0; hops],
        began: vec![0; hops],
    });
    let chosen = |leaf: &usize| {
        let vl = topology.trees[engine.layout.leaves[*leaf].tree as usize].vl;
        setting.vls.is_empty() || setting.vls.contains(&vl)
    };
    let leaves: Vec<usize> = (0..engine.layout.leaves.len()).filter(chosen).collect();
    let longest_bag = topology.network.vls.iter().map(|vl| vl.bag + vl.source_jitter).max().unwrap_or(0);
    let (mut frames, mut base) = (0, longest_bag);
    for (done, leaf) in leaves.iter().enumerate() {
        let share = (setting.frames.saturating_sub(frames)) / (leaves.len() - done) as u64;
        let at = engine.layout.leaves[*leaf];
        let tree = &topology.trees[at.tree as usize];
        let end = tree.leaves[at.place as usize];
        let bound =
            bounds.and_then(|bounds| bounds.paths[*leaf].bound.as_ref().ok()).map(|bound| bound.delay);
        let mut search = Search {
            topology,
            random,
            tree: at.tree as usize,
            hops: Vec::new(),
            leaf: *leaf as u32,
            others: Vec::new(),
            window: bound.unwrap_or(10_000_000).min(100_000_000),
            base,
            frames: 0,
            engine,
            regulators: &mut regulators,
        };
        search.prepare(end);
        search.run(share);
        frames += search.frames;
        base = search.base;
        progress(frames);
    }
    engine.trace = None;
    engine.only = None;
    Ok((frames, leaves))
}

impl Search<'_> {
    /// Finds who meets the path, and which hops matter.
    fn prepare(&mut self, end: Leaf) {
        let topology = self.topology;
        let tree = &topology.trees[self.tree];
        let first = self.engine.layout.first_hops[self.tree];
        self.hops = crate::Graph::hops_to(tree, end).into_iter().map(|hop| first + hop).collect();
        let path = topology.path(tree, end);
        // Ports on the path, and all from which frames come to one that matters.
        let mut matters = vec![false; topology.graph.ports.len()];
        let mut waiting: Vec<PortId> = path.clone();
        path.iter().for_each(|port| matters[*port as usize] = true);
        let mut before: Vec<Vec<PortId>> = vec![Vec::new(); topology.graph.ports.len()];
        for tree in &topology.trees {
            for hop in &tree.hops {
                if let Some(parent) = hop.before {
                    let from = tree.hops[parent as usize].port;
                    let known = &mut before[hop.port as usize];
                    if !known.contains(&from) {
                        known.push(from);
                    }
                }
            }
        }
        while let Some(port) = waiting.pop() {
            for from in &before[port as usize] {
                if !std::mem::replace(&mut matters[*from as usize], true) {
                    waiting.push(*from);
                }
            }
        }
        let mut only = vec![false; self.engine.layout.hops.len()];
        for (place, other) in topology.trees.iter().enumerate() {
            if other.network != tree.network {
                continue;
            }
            let first = self.engine.layout.first_hops[place];
            let mut meets: Option<(u32, usize)> = None;
            let mut is_part = false;
            for (hop, is) in other.hops.iter().enumerate() {
                if !matters[is.port as usize] {
                    continue;
                }
                is_part = true;
                only[first as usize + hop] = true;
                let on_path = path.iter().position(|port| *port == is.port);
                if let Some(at) = on_path
                    && meets.is_none_or(|(_, known)| at < known)
                {
                    meets = Some((first + hop as u32, at));
                }
            }
            if is_part && place != self.tree {
                self.others.push(Other { tree: place, vl: other.vl, meets });
            }
        }
        self.engine.only = Some(only);
    }

    fn run(&mut self, share: u64) {
        let mut best: (u64, Vec<i64>) = (0, Vec::new());
        // From all together, and from the times of travel over idle ports.
        for start in [vec![0; self.others.len()], self.travelled()] {
            let mut offsets = start;
            for _ in 0..ROUNDS {
                let delay = self.simulate(&offsets);
                if delay >= best.0 {
                    best = (delay, offsets.clone());
                }
                if !self.align(&mut offsets) {
                    break;
                }
            }
        }
        let each = (self.frames / (2 * ROUNDS as u64)).max(1);
        let changes = (share.saturating_sub(self.frames) / each).max(LEAST_CHANGES);
        if self.others.is_empty() {
            return;
        }
        let frame_time = self.frame_time();
        for change in 0..changes {
            let mut offsets = best.1.clone();
            for _ in 0..1 + self.random.below(3) {
                let other = self.random.below(offsets.len() as u64) as usize;
                let steps = self.random.below(9) as i64 - 4;
                let fine = self.random.below(3) as i64 - 1;
                offsets[other] += steps * frame_time as i64 / 2 + fine;
            }
            if change % 4 == 3 {
                self.simulate(&offsets);
                self.align(&mut offsets);
            }
            let delay = self.simulate(&offsets);
            if delay >= best.0 {
                best = (delay, offsets);
            }
        }
    }

    /// The time of a long frame at the first port of the path, in nanoseconds.
    fn frame_time(&self) -> u64 {
        let port = self.engine.layout.hops[self.hops[0] as usize].port;
        let longest = self.topology.network.vls.iter().map(|vl| vl.lmax).max().unwrap_or(1518);
        self.engine.layout.ports[port as usize].time_of(u64::from(longest)) / 1000
    }

    /// Offsets for which frames come to where they meet the path together with the observed one, if no port were busy.
    fn travelled(&self) -> Vec<i64> {
        let topology = self.topology;
        let time = |tree: usize, until: u32| {
            let first = self.engine.layout.first_hops[tree];
            let is = &topology.trees[tree];
            let length = u64::from(topology.network.vls[is.vl].lmax) + self.engine.layout.overhead;
            let mut at = until - first;
            let latency = |hop: u32| topology.graph.ports[is.hops[hop as usize].port as usize].latency * 1000;
            let mut time = latency(at);
            while let Some(before) = is.hops[at as usize].before {
                let port = &self.engine.layout.ports[is.hops[before as usize].port as usize];
                time += latency(before) + port.time_of(length) + port.propagation;
                at = before;
            }
            (time / 1000) as i64
        };
        let offset = |other: &Other| match other.meets {
            Some((hop, at)) => time(self.tree, self.hops[at]) - time(other.tree, hop) - 1,
            None => 0,
        };
        self.others.iter().map(offset).collect()
    }

    /// Moves frames that miss the observed one; whether some did.
    fn align(&mut self, offsets: &mut [i64]) -> bool {
        let Some(trace) = &self.engine.trace else { return false };
        let mut has_moved = false;
        for (other, offset) in self.others.iter().zip(offsets) {
            let Some((hop, at)) = other.meets else { continue };
            let observed = (trace.came[self.hops[at] as usize], trace.began[self.hops[at] as usize]);
            let (came, began) = (trace.came[hop as usize], trace.began[hop as usize]);
            // What did not get there in this run has no place to be moved from.
            if came < self.base * 1000 || observed.0 < self.base * 1000 {
                continue;
            }
            let length = u64::from(self.topology.network.vls[other.vl].lmax) + self.engine.layout.overhead;
            let port = self.engine.layout.hops[hop as usize].port;
            let left = began + self.engine.layout.ports[port as usize].time_of(length);
            if came >= observed.0 {
                *offset -= ((came - observed.0) / 1000 + 1) as i64;
                has_moved = true;
            } else if left < observed.0 {
                *offset += ((observed.0 - left) / 1000 + 1) as i64;
                has_moved = true;
            }
        }
        has_moved
    }

    /// The delay of the observed frame with these offsets, in picoseconds.
    fn simulate(&mut self, offsets: &[i64]) -> u64 {
        let network = self.topology.network;
        // Long after the last run, so that accounts are full again and ports idle; room for what is released before.
        let longest = network.vls.iter().map(|vl| vl.bag + vl.source_jitter).max().unwrap_or(0);
        self.base += 2 * (longest + self.window) + 1;
        let start = self.base + self.window;
        let observed = self.topology.trees[self.tree].vl;
        let released = match &mut self.engine.trace {
            Some(trace) => &mut trace.released,
            None => return 0,
        };
        let mut releases: Vec<(u64, usize, bool)> = Vec::new();
        let mut add = |vl: usize, main: u64, is_observed: bool| {
            released[vl] = main * 1000;
            let bag = network.vls[vl].bag;
            let steps = (main - self.base.min(main)) / bag;
            let mut time = main - steps * bag;
            while time <= start + self.window {
                releases.push((time, vl, is_observed && time == main));
                time += bag;
            }
        };
        add(observed, start, true);
        for (other, offset) in self.others.iter().zip(offsets) {
            // The observed virtual link in the other network, or one that both trees have, is there already.
            if other.vl == observed {
                continue;
            }
            let most = self.window as i64;
            add(other.vl, start.saturating_add_signed((*offset).clamp(-most, most)), false);
        }
        releases.sort_unstable();
        self.engine.observed.clear();
        for (time, vl, is_observed) in releases {
            while self.engine.next_time().is_some_and(|next| next < time * 1000) {
                self.engine.step();
            }
            // Frames are a gap apart, so the regulator lets each go when it comes.
            let regulator = &mut self.regulators[vl];
            if regulator.offer(0, 0).is_ok() && regulator.release(time).is_some() {
                self.engine.release(vl, time * 1000, network.vls[vl].lmax, is_observed);
                self.frames += 1;
            }
        }
        while self.engine.next_time().is_some() {
            self.engine.step();
        }
        let found = self.engine.observed.iter().filter(|(leaf, _)| *leaf == self.leaf);
        found.map(|(_, delay)| *delay).max().unwrap_or(0)
    }
}
