//! The cache lines that a block touches at most, without those that each path to it has touched already.
//!
//! Accesses with one base ([`Addresses`]) lie as far apart as their distances say. So those next to each other, a *piece*, lie within
//! some bytes, and touch one line for each 64 of them and one more, wherever they start. What a piece costs is told to blocks in that
//! one of two fashions that is less on the dearest path:
//!
//! - **block by block**: a block costs the lines of the bytes that it adds to what was touched on all paths to it (a dataflow
//!   analysis; what is touched on some paths alone does not count). *n* bytes next to some that were touched add at most ⌈n / 64⌉ lines.
//! - **at once**: the lines of the whole piece, in the nearest block that dominates all that touch it. The base has its value before that
//!   block: the place where it gets it dominates each of them too, so it dominates what is nearest. In a loop a new value comes
//!   with a new pass through that block, since no path leads around it from there to an access.
//!
//! Lines of different pieces count as if they were different.

use crate::addresses::{Addresses, Base, Name, Span, Touch};
use crate::cost::LINE;
use crate::graph::{BlockNumber, Graph};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Most steps of the analysis: pieces times blocks. Beyond, blocks count their lines as if nothing was touched before.
const MAX_STEPS: usize = 1 << 26;

/// What a block touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Lines.
    pub(crate) count: u64,
    /// How many of them are asked for when the one before has come.
    pub(crate) waits: u64,
}

/// The lines of each block.
pub(crate) fn lines(graph: &Graph, addresses: &Addresses) -> Vec<Lines> {
    let mut lines = vec![Lines::default(); graph.blocks.len()];
    // What is asked for at once: the levels of each block.
    let mut levels: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); graph.blocks.len()];
    let mut of_base: FxHashMap<Base, Vec<&Touch>> = FxHashMap::default();
    for touch in &addresses.touches {
        of_base.entry(touch.base).or_default().push(touch);
    }
    let mut steps = 0;
    for (base, touches) in of_base {
        let renewed: Vec<Renewed> = names(base).filter_map(|name| renewed(name, addresses)).collect();
        for piece in pieces(touches) {
            let piece = Piece { touches: &piece, renewed: &renewed, graph };
            let own = piece.block_by_block(&mut steps);
            let at_once = of_new(hull(piece.touches));
            let counts = own.iter().map(|(block, Adds { count, .. })| (*block, *count)).collect();
            if graph.flowing.longest(&counts) > at_once {
                let (block, level, waits) = piece.at_once();
                lines[block].count += at_once;
                lines[block].waits += waits;
                levels[block].extend(level);
                continue;
            }
            for (block, adds) in own {
                lines[block].count += adds.count;
                levels[block].extend(adds.levels);
            }
        }
    }
    for (lines, levels) in lines.iter_mut().zip(levels) {
        lines.waits = (lines.waits + levels.len() as u64).min(lines.count);
    }
    lines
}

/// What a block adds to a piece.
#[derive(Debug, Default)]
struct Adds {
    /// Lines.
    count: u64,
    /// When they are asked for ([`Touch::level`]).
    levels: BTreeSet<u32>,
}

/// Where a name gets another value: in a block, before the instruction with this number; before all of them: none.
type Renewed = (BlockNumber, Option<usize>);

fn names(base: Base) -> impl Iterator<Item = Name> {
    [Some(base.name), base.index.map(|(name, _)| name)].into_iter().flatten()
}

fn renewed(name: Name, addresses: &Addresses) -> Option<Renewed> {
    match name {
        Name::Joined(block, _) => Some((block, None)),
        Name::Argument(_) => None,
        Name::Given(..) | Name::Own(_) => addresses.given.get(&name).map(|(block, at)| (*block, Some(*at))),
    }
}

/// Touches with one base in groups, of which no two are nearer than a line.
fn pieces(mut touches: Vec<&Touch>) -> Vec<Vec<&Touch>> {
    touches.sort_by_key(|touch| touch.span);
    let mut found: Vec<(i64, Vec<&Touch>)> = Vec::new();
    for touch in touches {
        match found.last_mut() {
            Some((end, piece)) if touch.span.0 <= end.saturating_add(LINE.into()) => {
                *end = (*end).max(touch.span.1);
                piece.push(touch);
            }
            _ => found.push((touch.span.1, vec![touch])),
        }
    }
    found.into_iter().map(|(_, piece)| piece).collect()
}

fn hull(touches: &[&Touch]) -> Span {
    let ends = touches.iter().map(|touch| touch.span);
    ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or_default()
}

/// The lines that a span touches at most.
fn of_new((low, high): Span) -> u64 {
    if low == high { 0 } else { (high.abs_diff(low) - 1).div_ceil(LINE.into()) + 1 }
}

/// Spans, of which no two are nearer to each other than a line: all lines between their ends are touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Touched(Vec<Span>);

impl Touched {
    /// Adds a span.
    fn add(&mut self, mut span: Span) {
        let line = i64::from(LINE);
        self.0.retain(|(low, high)| {
            let is_near = span.0 <= high.saturating_add(line) && *low <= span.1.saturating_add(line);
            if is_near {
                span = (span.0.min(*low), span.1.max(*high));
            }
            !is_near
        });
        let at = self.0.partition_point(|(low, _)| *low < span.0);
        self.0.insert(at, span);
    }

    /// What is in both.
    fn and(&self, other: &Touched) -> Touched {
        let mut both = Vec::new();
        for (low, high) in &self.0 {
            for (other_low, other_high) in &other.0 {
                let span = (*low.max(other_low), *high.min(other_high));
                if span.0 < span.1 {
                    both.push(span);
                }
            }
        }
        Touched(both)
    }

    /// The lines that come when `before` becomes this, which has all of it.
    fn more_than(&self, before: &Touched) -> u64 {
        let line = u64::from(LINE);
        self.0
            .iter()
            .map(|(low, high)| {
                let within = before.0.iter().filter(|(old, _)| low <= old && old < high);
                let (mut count, mut end) = (0, None);
                for (old_low, old_high) in within {
                    // Bytes up to some that were touched, or between two such.
                    count += end.unwrap_or(*low).abs_diff(*old_low).div_ceil(line);
                    end = Some(*old_high);
                }
                match end {
                    Some(end) => count + end.abs_diff(*high).div_ceil(line),
                    None => of_new((*low, *high)),
                }
            })
            .sum()
    }
}

/// Touches of one piece.
struct Piece<'t> {
    touches: &'t [&'t Touch],
    renewed: &'t [Renewed],
    graph: &'t Graph,
}

/// What a block does: touches some bytes, up to where the base gets another value.
type Does = Vec<Touched>;

impl Piece<'_> {
    /// The lines that each block adds.
    fn block_by_block(&self, steps: &mut usize) -> FxHashMap<BlockNumber, Adds> {
        let mut does: FxHashMap<BlockNumber, Does> = FxHashMap::default();
        for block in
            self.touches.iter().map(|touch| touch.block).chain(self.renewed.iter().map(|(block, _)| *block))
        {
            does.entry(block).or_insert_with(|| self.does(block));
        }
        let touching = |does: &Does| does.iter().any(|touched| *touched != Touched::default());
        let is_shared = does.values().filter(|does| touching(does)).count() > 1;
        let starts =
            if is_shared && *steps < MAX_STEPS { self.starts(&does, steps) } else { FxHashMap::default() };
        let mut found = FxHashMap::default();
        for (block, does) in &does {
            let mut before = starts.get(block).cloned().unwrap_or_default();
            let mut adds = Adds::default();
            for touched in does {
                let mut after = before.clone();
                touched.0.iter().for_each(|span| after.add(*span));
                adds.count += after.more_than(&before);
                before = Touched::default();
            }
            if adds.count > 0 {
                let known = starts.get(block).filter(|_| does.len() == 1);
                adds.levels = self.levels(*block, known);
                found.insert(*block, adds);
            }
        }
        found
    }

    /// When a block asks for its lines: the levels of the touches that add to those of lower ones.
    fn levels(&self, block: BlockNumber, known: Option<&Touched>) -> BTreeSet<u32> {
        let mut own: Vec<&&Touch> = self.touches.iter().filter(|touch| touch.block == block).collect();
        own.sort_by_key(|touch| touch.level);
        let mut before = known.cloned().unwrap_or_default();
        let mut levels = BTreeSet::new();
        for touch in own {
            let mut after = before.clone();
            after.add(touch.span);
            if after.more_than(&before) > 0 {
                levels.insert(touch.level);
            }
            before = after;
        }
        levels
    }

    /// The block that asks for all lines at once; when it does so for those that it touches itself; and how many of the others may be
    /// waited for, of one after the other.
    fn at_once(&self) -> (BlockNumber, Option<u32>, u64) {
        let all = self.touches.iter().map(|touch| touch.block);
        let block = self.graph.flowing.common_dominator(all);
        let mut levels: FxHashMap<BlockNumber, BTreeSet<u32>> = FxHashMap::default();
        for touch in self.touches {
            levels.entry(touch.block).or_default().insert(touch.level);
        }
        let mut here = levels.remove(&block).unwrap_or_default();
        let first = here.pop_first();
        let (mut own, mut whole) = (Touched::default(), Touched::default());
        let own_touches = self.touches.iter().filter(|touch| touch.block == block);
        own_touches.filter(|touch| Some(touch.level) == first).for_each(|touch| own.add(touch.span));
        whole.add(hull(self.touches));
        // Each later level may wait for a line, as long as there are lines left. The turns of a loop may take different paths: then all
        // its blocks count.
        let is_turned = |other: &BlockNumber| self.graph.loop_of[*other] != self.graph.loop_of[block];
        let counts: FxHashMap<BlockNumber, u64> =
            levels.into_iter().map(|(block, levels)| (block, levels.len() as u64)).collect();
        let later = match counts.keys().any(is_turned) {
            true => counts.values().sum(),
            false => self.graph.flowing.longest(&counts),
        };
        let later = later + here.len() as u64;
        (block, first, whole.more_than(&own).min(later))
    }

    fn does(&self, block: BlockNumber) -> Does {
        let mut ends: Vec<usize> = self
            .renewed
            .iter()
            .filter(|(at, _)| *at == block)
            // What an instruction gives is used after it, and what is joined from the first one on.
            .map(|(_, at)| at.map_or(0, |at| at + 1))
            .collect();
        ends.sort_unstable();
        let mut does = vec![Touched::default(); ends.len() + 1];
        for touch in self.touches.iter().filter(|touch| touch.block == block) {
            let part = ends.partition_point(|end| *end <= touch.at);
            does[part].add(touch.span);
        }
        does
    }

    /// What is touched on all paths to a block, for the blocks that do something; a path that leads nowhere yet allows all.
    fn starts(
        &self,
        does: &FxHashMap<BlockNumber, Does>,
        steps: &mut usize,
    ) -> FxHashMap<BlockNumber, Touched> {
        let flowing = &self.graph.flowing;
        let mut ends: Vec<Option<Touched>> = vec![None; flowing.order.len()];
        let mut starts = FxHashMap::default();
        let mut changed = true;
        while changed {
            changed = false;
            *steps += flowing.order.len();
            for (place, block) in flowing.order.iter().enumerate() {
                let mut start = (place == 0).then(Touched::default);
                for before in &flowing.predecessors[*block] {
                    let Some(end) = &ends[flowing.place[*before]] else { continue };
                    start = Some(start.map_or_else(|| end.clone(), |start| start.and(end)));
                }
                let Some(start) = start else { continue };
                let mut end = start.clone();
                if let Some(does) = does.get(block) {
                    starts.insert(*block, start);
                    if let [.., last] = does.as_slice() {
                        if does.len() > 1 {
                            end = Touched::default();
                        }
                        last.0.iter().for_each(|span| end.add(*span));
                    }
                }
                if ends[place].as_ref() != Some(&end) {
                    ends[place] = Some(end);
                    changed = true;
                }
            }
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Block, Flowing};

    /// Blocks by where they lead.
    fn graph(successors: &[&[BlockNumber]]) -> Graph {
        let block = |to: &&[BlockNumber]| Block { instructions: Vec::new(), successors: to.to_vec() };
        let loop_of = vec![None; successors.len()];
        let blocks: Vec<Block> = successors.iter().map(block).collect();
        Graph { flowing: Flowing::new(&blocks), blocks, loops: Vec::new(), loop_of }
    }

    const DIAMOND: [&[BlockNumber]; 4] = [&[1, 2], &[3], &[3], &[]];

    fn touch(block: BlockNumber, name: Name, span: Span) -> Touch {
        Touch { block, at: 1, base: Base { name, index: None }, span, level: 0 }
    }

    fn lines_of(
        successors: &[&[BlockNumber]],
        touches: Vec<Touch>,
        given: &[(Name, BlockNumber)],
    ) -> Vec<(u64, u64)> {
        let given = given.iter().map(|(name, block)| (*name, (*block, 0))).collect();
        let found = lines(&graph(successors), &Addresses { touches, given });
        found.iter().map(|lines| (lines.count, lines.waits)).collect()
    }

    const CONTEXT: Name = Name::Argument(0);

    #[test]
    fn what_all_paths_have_touched_counts_once() {
        // Eight bytes touch two lines at most, and so do the next eight with them, which may be the first to ask for the second.
        let touches = vec![touch(0, CONTEXT, (0, 8)), touch(3, CONTEXT, (8, 16))];
        assert_eq!(lines_of(&DIAMOND, touches, &[]), [(2, 2), (0, 0), (0, 0), (0, 0)]);
        // A page farther are lines of their own.
        let touches = vec![touch(0, CONTEXT, (0, 8)), touch(3, CONTEXT, (4096, 4104))];
        assert_eq!(lines_of(&DIAMOND, touches, &[]), [(2, 1), (0, 0), (0, 0), (2, 1)]);
        // All 140 bytes touch four lines at most (one byte of the first, two whole ones, eleven bytes of the last); one by one it would be
        // two for ten bytes, and three more for 130.
        let touches = vec![touch(0, CONTEXT, (0, 10)), touch(3, CONTEXT, (10, 140))];
        assert_eq!(lines_of(&DIAMOND, touches, &[])[0].0, 4);
    }

    #[test]
    fn what_some_paths_have_touched_counts_where_they_part() {
        // Once for both touches, before the paths part; the second block may be the first that asks.
        let touches = vec![touch(1, CONTEXT, (0, 64)), touch(3, CONTEXT, (0, 64))];
        assert_eq!(lines_of(&DIAMOND, touches, &[]), [(2, 2), (0, 0), (0, 0), (0, 0)]);
        // The turns of a loop may take each of two paths: 257 bytes touch five lines at most, once; the block before the loop asks for the
        // first, and three blocks in it may wait.
        let mut looping = graph(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
        looping.loop_of = [None, Some(0), Some(0), Some(0), Some(0), None].to_vec();
        let parts = [(0, (-1, 0)), (2, (0, 64)), (3, (64, 192)), (4, (128, 256))];
        let touches = parts.map(|(block, span)| touch(block, CONTEXT, span)).to_vec();
        let found = lines(&looping, &Addresses { touches, given: FxHashMap::default() });
        assert_eq!(found[0], Lines { count: 5, waits: 4 });
        // On paths of which no packet takes both, each counts where it is.
        let touches = vec![touch(1, CONTEXT, (0, 64)), touch(2, CONTEXT, (0, 64))];
        assert_eq!(lines_of(&DIAMOND, touches, &[]), [(0, 0), (2, 1), (2, 1), (0, 0)]);
    }

    #[test]
    fn another_value_has_other_lines() {
        let looping: [&[BlockNumber]; 3] = [&[1], &[1, 2], &[]];
        // An address of which each turn has another one counts in each; one from before the loop counts before it.
        let record = Name::Given(16, 0);
        assert_eq!(lines_of(&looping, vec![touch(1, record, (0, 8))], &[(record, 1)])[1], (2, 1));
        let touches = vec![touch(0, record, (0, 8)), touch(1, record, (0, 8))];
        assert_eq!(lines_of(&looping, touches, &[(record, 0)]), [(2, 1), (0, 0), (0, 0)]);
    }

    #[test]
    fn lines_of_one_level_wait_once() {
        let second = Name::Argument(1);
        let touches = vec![touch(0, CONTEXT, (0, 8)), touch(0, second, (0, 8))];
        assert_eq!(lines_of(&[&[]], touches, &[]), [(4, 1)]);
        let later = Touch { level: 1, ..touch(0, second, (0, 8)) };
        assert_eq!(lines_of(&[&[]], vec![touch(0, CONTEXT, (0, 8)), later], &[]), [(4, 2)]);
    }
}
