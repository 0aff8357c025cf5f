//! The paths of packets through machine code and through the program together.
//!
//! A packet is in a block of the code and, at the same time, at a node of the specialised graph. Instructions with an effect
//! tell the node ([`crate::machine::Machine::marks`]); nodes without any (`silent` ones) are passed in between, wherever the graph
//! leads through them from one told node to the next. What no such path allows cannot be: the code of a node runs only where the
//! program is at that node.

use crate::error::NoBound;
use crate::graph::BlockNumber;
use crate::knowledge::Knowledge;
use crate::machine::Machine;
use millrace_midend::cfg::Term;
use millrace_midend::specialise::NodeId;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Most paths through silent nodes between two told ones.
const MAX_ROUTES: usize = 256;
/// Most silent nodes on one of them.
const MAX_SILENT: usize = 4096;

/// Where in the program a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// On an edge to a node, whose operations it has not done.
    Before(NodeId),
    /// At the end of a node, before its terminator.
    At(NodeId),
}

/// One step of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    /// The operations of a node.
    Enter(NodeId),
    /// The edge of a node's terminator with this number, in the order of [`Term::for_each_target`].
    Edge(NodeId, usize),
}

/// Steps of the program, in order.
pub(crate) type Route = Rc<[Move]>;

/// What comes after a block for a packet.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    /// Another block, after these steps.
    Block(BlockNumber, Place, Route),
    /// The loop of another phase, where the packet waited for a table.
    Phase(BlockNumber, Place, Route),
    /// The packet is done, in this phase.
    Done(Route, u32),
}

/// Where packets can go, by block and place.
pub(crate) struct Paths<'a> {
    machine: &'a Machine<'a>,
    knowledge: &'a Knowledge,
    routes: FxHashMap<(Place, NodeId), Rc<[Route]>>,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(machine: &'a Machine<'a>, knowledge: &'a Knowledge) -> Paths<'a> {
        Paths { machine, knowledge, routes: FxHashMap::default() }
    }

    /// Where a packet may be when it has passed the first block.
    pub(crate) fn start(&mut self) -> Result<Vec<Next>, NoBound> {
        let header = *self.machine.headers.get(&0).ok_or(NoBound::NoPath)?;
        self.enter(header, Place::Before(self.machine.code.graph.entry))
    }

    /// What may come after a block that was left at a place.
    pub(crate) fn after(&mut self, block: BlockNumber, place: Place) -> Result<Vec<Next>, NoBound> {
        let machine = self.machine;
        let mut next = Vec::new();
        for to in &machine.successors[block] {
            next.extend(self.enter(*to, place)?);
        }
        if machine.ends[block] {
            self.finish(block, place, &mut next)?;
        }
        Ok(next)
    }

    /// Goes through a block from a place.
    fn enter(&mut self, block: BlockNumber, place: Place) -> Result<Vec<Next>, NoBound> {
        let mut found: Vec<(Place, Vec<Move>)> = vec![(place, Vec::new())];
        for mark in &self.machine.marks[block] {
            let mut on = Vec::new();
            for (place, moves) in found {
                if place == Place::At(*mark) {
                    on.push((place, moves));
                    continue;
                }
                for route in self.routes(place, *mark)?.iter() {
                    on.push((Place::At(*mark), [moves.as_slice(), route].concat()));
                }
            }
            found = on;
            if found.len() > MAX_ROUTES {
                return Err(NoBound::TooLarge { what: "paths between two places", most: MAX_ROUTES });
            }
        }
        Ok(found.into_iter().map(|(place, moves)| Next::Block(block, place, moves.into())).collect())
    }

    /// Whether packets may take an edge at all: an action runs only where an entry or the default names it, and within a phase
    /// nothing goes beyond a lookup that packets wait for.
    fn is_open(&self, node: NodeId, edge: usize, to: NodeId) -> bool {
        let graph = &self.machine.code.graph;
        match &graph.nodes[node].term {
            Term::Dispatch { table, .. } => self.knowledge.tables[*table].may_run(edge),
            Term::Lookup { .. } => graph.nodes[to].entry.phase == graph.nodes[node].entry.phase,
            _ => true,
        }
    }

    /// All paths from a place to the end of a told node through silent ones.
    fn routes(&mut self, from: Place, to: NodeId) -> Result<Rc<[Route]>, NoBound> {
        if let Some(known) = self.routes.get(&(from, to)) {
            return Ok(Rc::clone(known));
        }
        let mut found: Vec<Route> = Vec::new();
        self.explore(from, &mut |paths, node, moves| {
            if node == to {
                found.push(moves.into());
            }
            // A told node has code of its own, which would have told.
            !paths.machine.loud.contains(node)
        })?;
        let found: Rc<[Route]> = found.into();
        self.routes.insert((from, to), Rc::clone(&found));
        Ok(found)
    }

    /// Calls `each` at each node that is entered on a way from a place; goes on from there where the answer is true.
    fn explore(
        &self,
        from: Place,
        each: &mut dyn FnMut(&Paths<'a>, NodeId, &[Move]) -> bool,
    ) -> Result<(), NoBound> {
        let graph = &self.machine.code.graph;
        let mut waiting: Vec<(NodeId, Vec<Move>)> = Vec::new();
        match from {
            Place::Before(node) => {
                let moves = vec![Move::Enter(node)];
                if each(self, node, &moves) {
                    waiting.push((node, moves));
                }
            }
            Place::At(node) => waiting.push((node, Vec::new())),
        }
        let mut steps = 0;
        while let Some((node, moves)) = waiting.pop() {
            steps += 1;
            if steps > MAX_SILENT {
                return Err(NoBound::TooLarge { what: "nodes without code in a row", most: MAX_SILENT });
            }
            let mut edge = 0;
            graph.nodes[node].term.for_each_target(&mut |to| {
                if self.is_open(node, edge, *to) {
                    let moves = [moves.as_slice(), &[Move::Edge(node, edge), Move::Enter(*to)]].concat();
                    if each(self, *to, &moves) {
                        waiting.push((*to, moves));
                    }
                }
                edge += 1;
            });
        }
        Ok(())
    }

    /// The part of a packet in a phase ends: the packet is done, or waits for a table.
    fn finish(&mut self, block: BlockNumber, place: Place, next: &mut Vec<Next>) -> Result<(), NoBound> {
        let graph = &self.machine.code.graph;
        let phase = self.machine.phase_of[block];
        let mut ends: Vec<(NodeId, Vec<Move>)> = Vec::new();
        let mut note = |node: NodeId, moves: &[Move]| {
            let waits = match &graph.nodes[node].term {
                Term::Leave(_) => true,
                Term::Lookup { next, .. } => Some(graph.nodes[*next].entry.phase) != phase,
                _ => false,
            };
            if waits {
                ends.push((node, moves.to_vec()));
            }
        };
        if let Place::At(node) = place {
            note(node, &[]);
        }
        self.explore(place, &mut |paths, node, moves| {
            let is_silent = !paths.machine.loud.contains(node);
            if is_silent {
                note(node, moves);
            }
            is_silent
        })?;
        for (node, mut moves) in ends {
            match &graph.nodes[node].term {
                Term::Lookup { next: on, .. } => {
                    let phase = graph.nodes[*on].entry.phase;
                    let Some(header) = self.machine.headers.get(&phase) else { continue };
                    moves.push(Move::Edge(node, 0));
                    for entered in self.enter(*header, Place::Before(*on))? {
                        if let Next::Block(block, place, more) = entered {
                            let all = [moves.as_slice(), &more].concat();
                            next.push(Next::Phase(block, place, all.into()));
                        }
                    }
                }
                _ => next.push(Next::Done(moves.into(), phase.unwrap_or(0))),
            }
        }
        Ok(())
    }
}
