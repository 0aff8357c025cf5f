//! Machine code as a search needs it: the loop over the packets of each phase without its way back, what each block costs, and
//! which nodes of the program its instructions tell of.

use crate::addresses::Addresses;
use crate::contracts::{Contract, contract};
use crate::copies::most_copies;
use crate::cost::Cost;
use crate::decode::Flow;
use crate::error::NoBound;
use crate::graph::{BlockNumber, Flowing, Graph, Loop, describe, does, mark};
use crate::knowledge::Knowledge;
use crate::touched::{self, Lines};
use millrace_midend::machine::{Callee, Does, MachineCode};
use millrace_midend::specialise::NodeId;
use millrace_pipeline::entity::EntitySet;
use millrace_pipeline::{Program, TableId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The blocks of some code, for batches of any number.
pub(crate) struct Blocks {
    graph: Graph,
    /// What each costs without what it calls.
    costs: Vec<Cost>,
}

impl Blocks {
    pub(crate) fn new(code: &MachineCode) -> Result<Blocks, NoBound> {
        let graph = Graph::new(code)?;
        Ok(Blocks { costs: own_costs(&graph, code), graph })
    }
}

/// The code of a plan, ready to be searched.
pub(crate) struct Machine<'a> {
    pub(crate) code: &'a MachineCode,
    pub(crate) graph: &'a Graph,
    /// What each block costs each time, with what it calls.
    pub(crate) costs: Vec<Cost>,
    /// The nodes that the instructions of a block are of which stay in the code of their node, in order; none twice in a row.
    pub(crate) marks: Vec<Vec<NodeId>>,
    /// Nodes with such an instruction.
    pub(crate) loud: EntitySet<NodeId>,
    /// Where the loop of each phase starts.
    pub(crate) headers: BTreeMap<u32, BlockNumber>,
    /// The phase whose loop a block belongs to.
    pub(crate) phase_of: Vec<Option<u32>>,
    /// Where each block leads within the loop of its phase. A way back to the loop's start, and one out of it, end the packet's
    /// part of the phase: [`Machine::ends`].
    pub(crate) successors: Vec<Vec<BlockNumber>>,
    /// Of a block in a loop over the copies of a packet for a set of ports, which. Its paths back stay.
    pub(crate) copies_of: Vec<Option<usize>>,
    /// Most copies of a packet in such a loop.
    most_copies: u32,
    /// Whether the part of a packet may end after a block.
    pub(crate) ends: Vec<bool>,
    /// What the lookup of all packets that wait for a table costs for each.
    pub(crate) each: FxHashMap<TableId, Cost>,
    /// What is done once for a batch.
    pub(crate) once: Cost,
    /// Of a batch of one packet: what is done between the loop of a phase and that of another, or the end.
    between: FxHashMap<(u32, Option<u32>), Cost>,
    /// What is called, with the most that one call takes: for reports.
    pub(crate) calls: BTreeMap<String, Cost>,
    /// Whether a call may allocate.
    pub(crate) allocates: bool,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(
        program: &'a Program,
        code: &'a MachineCode,
        blocks: &'a Blocks,
        knowledge: &Knowledge,
        batch: Batch,
    ) -> Result<Machine<'a>, NoBound> {
        let graph = &blocks.graph;
        let count = graph.blocks.len();
        let mut machine = Machine {
            code,
            costs: blocks.costs.clone(),
            marks: vec![Vec::new(); count],
            loud: EntitySet::new(),
            headers: BTreeMap::new(),
            phase_of: vec![None; count],
            successors: graph.blocks.iter().map(|block| block.successors.clone()).collect(),
            copies_of: vec![None; count],
            most_copies: most_copies(program, knowledge),
            ends: vec![false; count],
            each: FxHashMap::default(),
            once: Cost::default(),
            between: FxHashMap::default(),
            calls: BTreeMap::new(),
            allocates: false,
            graph,
        };
        machine.read_marks();
        machine.add_calls(program, knowledge, batch)?;
        machine.cut_loops(knowledge)?;
        machine.once = match batch {
            Batch::OfMany => machine.of_batch()?,
            Batch::OfOne => machine.of_one()?,
        };
        Ok(machine)
    }

    fn read_marks(&mut self) {
        for (block, marks) in self.graph.blocks.iter().zip(&mut self.marks) {
            let origins = block.instructions.iter().filter_map(|instruction| mark(self.code, instruction));
            for node in origins.filter_map(|origin| origin.node) {
                if marks.last() != Some(&node) {
                    marks.push(node);
                }
                self.loud.insert(node);
            }
        }
    }

    fn add_calls(&mut self, program: &Program, knowledge: &Knowledge, batch: Batch) -> Result<(), NoBound> {
        for (block, cost) in self.graph.blocks.iter().zip(&mut self.costs) {
            for instruction in block.instructions.iter().filter(|instruction| instruction.flow == Flow::Call)
            {
                let called = match self.code.origin(instruction.at).map(|origin| origin.does) {
                    Some(Does::Call(callee)) => Some(callee),
                    _ => None,
                };
                let found = called.and_then(|callee| contract(&callee, program, knowledge));
                let (Some(callee), Some(Contract { once, each, alone, allocates })) = (called, found) else {
                    let callee = called.map_or("an unknown function".into(), |callee| name(&callee, program));
                    return Err(NoBound::Call { callee, place: describe(self.code, instruction.at) });
                };
                match (callee, batch) {
                    // It is called where a packet waits: of a batch of one, by the only one.
                    (Callee::LookupOfAll(table), Batch::OfOne) => {
                        self.each.insert(table, alone);
                    }
                    (Callee::LookupOfAll(table), Batch::OfMany) => {
                        self.each.insert(table, each);
                        *cost += once;
                    }
                    _ => *cost += once,
                }
                let most = self.calls.entry(name(&callee, program)).or_default();
                *most = most.most(once + each).most(alone);
                self.allocates |= allocates;
            }
        }
        Ok(())
    }

    /// Takes out the paths back of loops: those over packets are the parts of packets, those over lines of tables turn so often at most.
    /// Loops over copies keep theirs, as copies may take different paths: a search [counts them](Machine::copies).
    ///
    /// A loop over copies may have others in it, where some copies pass code of their own; what counts is the outermost one.
    fn cut_loops(&mut self, knowledge: &Knowledge) -> Result<(), NoBound> {
        let loops = &self.graph.loops;
        // Inner ones first: what they cost belongs to the loop around them.
        for (number, found) in loops.iter().enumerate().rev() {
            let marks = does(self.code, self.graph, number);
            let phase = marks.iter().find_map(|does| match does {
                Does::NextPacket(phase) => Some(*phase),
                _ => None,
            });
            let table = marks.iter().find_map(|does| match does {
                Does::NextLine(table) => Some(*table),
                _ => None,
            });
            if let (Some(phase), None) = (phase, found.around) {
                self.headers.insert(phase, found.header);
                for block in &found.blocks {
                    self.phase_of[*block] = Some(phase);
                    let before = self.successors[*block].len();
                    self.successors[*block].retain(|to| *to != found.header && found.blocks.contains(to));
                    self.ends[*block] = self.successors[*block].len() != before;
                }
                continue;
            }
            if table.is_none() && found.around.is_some() && self.is_over_copies(found) {
                for block in &found.blocks {
                    self.copies_of[*block] = Some(number);
                }
                continue;
            }
            let at = self.graph.blocks[found.header].instructions.first().map_or(0, |first| first.at);
            let (Some(table), Some(_)) = (table, found.around) else {
                return Err(NoBound::Loop { place: describe(self.code, at) });
            };
            // The first line is the code once, each further one a turn.
            let turns = u64::from(knowledge.tables[table].lookup.probes.saturating_sub(1));
            for block in &found.blocks {
                self.successors[*block].retain(|to| *to != found.header);
            }
            let turn = self.longest(&found.blocks.iter().copied().collect::<Vec<_>>(), found.header);
            self.costs[found.header] += turn * turns;
        }
        Ok(())
    }

    /// Whether all turns of a loop ask for the next copy.
    fn is_over_copies(&self, found: &Loop) -> bool {
        let silent: Vec<BlockNumber> =
            found.blocks.iter().copied().filter(|block| !self.asks_for_copy(*block)).collect();
        // Without the blocks that ask nothing may lead back: each block has its place after those that lead to it.
        let mut waits: FxHashMap<BlockNumber, usize> = silent.iter().map(|block| (*block, 0)).collect();
        for to in silent.iter().flat_map(|block| &self.successors[*block]) {
            waits.entry(*to).and_modify(|count| *count += 1);
        }
        let mut free: Vec<BlockNumber> = silent.iter().copied().filter(|block| waits[block] == 0).collect();
        let mut placed = 0;
        while let Some(block) = free.pop() {
            placed += 1;
            for to in &self.successors[block] {
                if let Some(count) = waits.get_mut(to) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(*to);
                    }
                }
            }
        }
        placed == silent.len()
    }

    /// Whether a block ends with the question for the next copy.
    fn asks_for_copy(&self, block: BlockNumber) -> bool {
        // Only the branch itself: jumps on the edges after it may tell the same, and one copy must not count twice.
        self.graph.blocks[block].instructions.iter().any(|instruction| {
            let origin = self.code.origin(instruction.at);
            matches!(instruction.flow, Flow::Branch(_))
                && origin.is_some_and(|origin| origin.does == Does::NextCopy)
        })
    }

    /// How many copies a packet has made in the loop that a block is in, when it comes there from another block with so many; none: more
    /// than it can make. Elsewhere there are none, so that places outside of the loop are told apart by themselves alone.
    pub(crate) fn copies(&self, from: BlockNumber, copies: u32, to: BlockNumber) -> Option<u32> {
        let Some(number) = self.copies_of[to] else { return Some(0) };
        let before = if self.copies_of[from] == Some(number) { copies } else { 0 };
        let copies = before + u32::from(self.asks_for_copy(to));
        (copies <= self.most_copies).then_some(copies)
    }

    /// The most that a way from one block through some of them costs, in each regard alone.
    fn longest(&self, among: &[BlockNumber], from: BlockNumber) -> Cost {
        let order = self.graph.flowing.order.iter().rev().filter(|block| among.contains(block));
        let mut best: FxHashMap<BlockNumber, Cost> = FxHashMap::default();
        for block in order {
            let mut after = Cost::default();
            for to in &self.successors[*block] {
                let edge = self.graph.edge(*block, *to);
                after = after.most(best.get(to).copied().map_or(Cost::default(), |best| best + edge));
            }
            best.insert(*block, self.costs[*block] + after);
        }
        best.get(&from).copied().unwrap_or_default()
    }

    /// What is done for a batch of one before its packet is in the first loop; and what is done after it left one.
    fn of_one(&mut self) -> Result<Cost, NoBound> {
        let first = self.headers.get(&0).copied().ok_or(NoBound::NoPath)?;
        let headers: Vec<(u32, BlockNumber)> = self.headers.iter().map(|(phase, at)| (*phase, *at)).collect();
        for (phase, _) in &headers {
            let inside = |block: &BlockNumber| self.phase_of[*block] == Some(*phase);
            let left = (0..self.graph.blocks.len())
                .filter(inside)
                .flat_map(|block| &self.graph.blocks[block].successors);
            let left: Vec<BlockNumber> = left.copied().filter(|to| !inside(to)).collect();
            let later = headers
                .iter()
                .filter(|(later, _)| later > phase)
                .map(|(later, at)| (Some(*later), Some(*at)));
            let between: Vec<_> = later
                .chain([(None, None)])
                .filter_map(|(later, at)| Some(((*phase, later), self.outside(&left, at)?)))
                .collect();
            self.between.extend(between);
        }
        self.outside(&[0], Some(first)).ok_or(NoBound::NoPath)
    }

    /// The most that a way costs from one of some blocks to another one, or to the end, that touches no loop over packets; none:
    /// there is no such way.
    fn outside(&self, from: &[BlockNumber], to: Option<BlockNumber>) -> Option<Cost> {
        let blocks = &self.graph.blocks;
        let Flowing { order, place, .. } = &self.graph.flowing;
        let mut best: Vec<Option<Cost>> = vec![None; blocks.len()];
        for block in order.iter().rev().copied() {
            best[block] = if Some(block) == to {
                Some(Cost::default())
            } else if self.phase_of[block].is_some() {
                None
            } else {
                let returns = blocks[block].instructions.iter().any(|i| i.flow == Flow::Return);
                let ends = (returns && to.is_none()).then(Cost::default);
                let forward = blocks[block].successors.iter().filter(|to| place[**to] > place[block]);
                let after = forward.filter_map(|to| Some(best[*to]? + self.graph.edge(block, *to)));
                let after = after.chain(ends).reduce(Cost::most);
                after.map(|after| after + self.costs[block])
            };
        }
        // Where it comes from is not told: another line of code.
        from.iter().filter_map(|block| Some(best[*block]? + Cost::of_code(1, 0))).reduce(Cost::most)
    }

    /// What is done for a batch of one after the loop of a phase, before that of another or at the end.
    pub(crate) fn between(&self, phase: u32, next: Option<u32>) -> Cost {
        self.between.get(&(phase, next)).copied().unwrap_or_default()
    }

    /// What is done once for a batch: the most of all paths through the code, on which what is in loops over packets costs nothing.
    fn of_batch(&self) -> Result<Cost, NoBound> {
        let blocks = &self.graph.blocks;
        // Paths out of loops count, paths back do not: in reverse postorder they lead to an earlier block.
        let Flowing { order, place, .. } = &self.graph.flowing;
        let mut best = vec![Cost::default(); blocks.len()];
        for block in order.iter().rev() {
            let mut after = Cost::default();
            for to in blocks[*block].successors.iter().filter(|to| place[**to] > place[*block]) {
                after = after.most(best[*to] + self.graph.edge(*block, *to));
            }
            let own = if self.phase_of[*block].is_some() { Cost::default() } else { self.costs[*block] };
            best[*block] = own + after;
        }
        let returns = blocks.iter().flat_map(|block| &block.instructions).any(|i| i.flow == Flow::Return);
        if !returns || !self.headers.contains_key(&0) {
            return Err(NoBound::NoPath);
        }
        Ok(best[0])
    }
}

/// What each block costs without what it calls.
fn own_costs(graph: &Graph, code: &MachineCode) -> Vec<Cost> {
    let lines = touched::lines(graph, &Addresses::new(graph, code.processor, code.frame_by_address));
    let own = graph.blocks.iter().zip(lines).map(|(block, Lines { count, waits })| {
        let instructions = block.instructions.len() as u64;
        let code = block.code_lines().map_or(0, |(first, last)| u64::from(last - first));
        let own = Cost { instructions, own: instructions, ..Cost::default() };
        own + Cost::of_lines(count, waits) + Cost::of_code(0, code)
    });
    own.collect()
}

/// How many packets a batch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// One: what is done for a batch is done for that packet alone, where it waits for a table.
    OfOne,
    /// Any number.
    OfMany,
}

/// What is called, in words.
fn name(callee: &Callee, program: &Program) -> String {
    match callee {
        Callee::Helper { name, .. } => format!("helper {name}"),
        Callee::Lookup(table) => format!("the lookup of {}", program.tables[*table].name),
        Callee::LookupOfAll(table) => format!("the lookup of {} for a batch", program.tables[*table].name),
    }
}
