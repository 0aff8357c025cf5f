//! The search for the way of a packet that costs most.
//!
//! Best first (Hart, Nilsson and Raphael, A Formal Basis for the Heuristic Determination of Minimum Cost Paths, for the largest
//! instead of the smallest): of all paths begun, that one goes on which can still cost most, where what is left is
//! taken from the graph alone, without conditions. What is left is never less than what any packet can need, so no way
//! that is left aside costs more than the first one that ends; and a way whose conditions exclude each other is dropped, since no
//! packet takes it. If the search is given up, what the best way begun can still cost is a bound too.

use crate::choice::Choices;
use crate::circuit::{Answer, Circuit, Lit};
use crate::cost::Cost;
use crate::error::NoBound;
use crate::graph::BlockNumber;
use crate::knowledge::Knowledge;
use crate::machine::Machine;
use crate::packet::{Arrival, Packet, World};
use crate::way::{Move, Next, Paths, Place};
use millrace_midend::Start;
use millrace_midend::cfg::Term;
use millrace_midend::specialise::NodeId;
use millrace_pipeline::{Matcher, Program};
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How much a search may do before it is given up: then what the best way begun can still cost is the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Most paths that it begins.
    paths: usize,
    /// Most variables that the solver is asked about, over all questions: what a question takes grows with them.
    asked: u64,
    /// How long it may take. Another machine may come farther: then its bound is less, and both hold.
    time: Duration,
}

impl Effort {
    /// For the first search.
    pub(crate) const FULL: Effort =
        Effort { paths: 60_000, asked: 1_000_000_000, time: Duration::from_secs(8) };
    /// Where another one was given up: conditions are too many here.
    pub(crate) const LITTLE: Effort =
        Effort { paths: 4_000, asked: 20_000_000, time: Duration::from_secs(1) };
}

/// Most places of paths.
const MAX_PLACES: usize = 1 << 20;

/// The dearest path.
pub(crate) struct Worst {
    /// What it costs, by the weight that was searched for.
    pub(crate) weight: u64,
    /// The way, if the search came to its end: the moves of the program, the blocks of the code, and a frame.
    pub(crate) way: Option<Path>,
    /// What conditions alone excluded: the bound without them.
    pub(crate) without_conditions: u64,
    /// Paths begun.
    pub(crate) paths: usize,
}

/// A way to its end.
pub(crate) struct Path {
    pub(crate) moves: Vec<Move>,
    pub(crate) blocks: Vec<BlockNumber>,
    /// Its cost in every regard.
    pub(crate) cost: Cost,
    pub(crate) frame: Option<Frame>,
}

/// A frame that takes a way, as far as what came in decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The port that it is to come in on.
    pub port: u32,
}

/// What cost is searched for.
pub(crate) type Weight<'w> = &'w dyn Fn(Cost) -> u64;

/// A way that was begun.
struct Begun {
    /// The one that it goes on from.
    before: Option<usize>,
    at: Next,
    /// Copies that it has made in the loop over copies where it is.
    copies: u32,
    cost: Cost,
    /// The packet there; none until the way is taken up.
    packet: Option<Rc<Packet>>,
}

/// Where a way is: a block, the place in the program at its end, and the copies made in the loop that the block is in.
type Spot = (BlockNumber, Place, u32);

/// In the queue: what a way can cost at most, its length, and its number.
type Waiting = (u64, u32, usize);

pub(crate) struct Search<'a, 'w> {
    program: &'a Program,
    machine: &'a Machine<'a>,
    paths: Paths<'a>,
    world: World<'a>,
    weight: Weight<'w>,
    /// What is left after a block, without conditions; none: no way ends from there.
    left: FxHashMap<Spot, Option<u64>>,
    begun: Vec<Begun>,
    asked: u64,
}

impl<'a, 'w> Search<'a, 'w> {
    pub(crate) fn new(
        program: &'a Program,
        machine: &'a Machine<'a>,
        knowledge: &'a Knowledge,
        most_bytes: u64,
        weight: Weight<'w>,
    ) -> Search<'a, 'w> {
        let mut circuit = Circuit::new();
        let arrival = Arrival::new(&mut circuit, most_bytes);
        Search {
            program,
            machine,
            paths: Paths::new(machine, knowledge),
            world: World { program, circuit, arrival, choices: Choices::new(knowledge) },
            weight,
            left: FxHashMap::default(),
            begun: Vec::new(),
            asked: 0,
        }
    }

    /// Searches.
    pub(crate) fn run(mut self, start: Start, effort: Effort) -> Result<Worst, NoBound> {
        let until = Instant::now() + effort.time;
        self.world.circuit.end_at(until);
        let packet = Rc::new(Packet::new(&mut self.world, start));
        let mut queue: BinaryHeap<Waiting> = BinaryHeap::new();
        for next in self.paths.start()? {
            self.begin(None, next, 0, Cost::default(), &mut queue)?;
        }
        let without_conditions = queue.peek().ok_or(NoBound::NoPath)?.0;
        while let Some((most, _, number)) = queue.pop() {
            let given_up = self.begun.len() > effort.paths
                || self.asked > effort.asked
                || Instant::now() > until
                || self.world.circuit.is_spent();
            if given_up {
                return Ok(self.given_up(most, without_conditions));
            }
            let before = match self.begun[number].before {
                Some(before) => self.begun[before].packet.clone(),
                None => Some(Rc::clone(&packet)),
            };
            let Some(before) = before else { continue };
            let gone = self.go(&before, number);
            // What was found out with literals that mean nothing does not count.
            if self.world.circuit.is_spent() {
                return Ok(self.given_up(most, without_conditions));
            }
            let Some(packet) = gone else { continue };
            let packet = Rc::new(packet);
            self.begun[number].packet = Some(Rc::clone(&packet));
            let Begun { at, copies, cost, .. } = &self.begun[number];
            let (at, copies, cost) = (at.clone(), *copies, *cost);
            match at {
                Next::Done(..) => {
                    let way = self.told(number, &packet);
                    let paths = self.begun.len();
                    return Ok(Worst { weight: most, way: Some(way), without_conditions, paths });
                }
                Next::Block(block, place, _) | Next::Phase(block, place, _) => {
                    for next in self.paths.after(block, place)? {
                        if let Some(copies) = self.copies(block, copies, &next) {
                            self.begin(Some(number), next, copies, cost, &mut queue)?;
                        }
                    }
                }
            }
        }
        Err(NoBound::NoPath)
    }

    /// What is known when the search is given up, and this is the most that a way that waits can cost.
    fn given_up(&self, most: u64, without_conditions: u64) -> Worst {
        Worst { weight: most, way: None, without_conditions, paths: self.begun.len() }
    }

    /// Puts a way into the queue, unless it cannot end.
    fn begin(
        &mut self,
        before: Option<usize>,
        next: Next,
        copies: u32,
        cost: Cost,
        queue: &mut BinaryHeap<Waiting>,
    ) -> Result<(), NoBound> {
        let from = before.and_then(|before| match self.begun[before].at {
            Next::Block(block, ..) | Next::Phase(block, ..) => Some(block),
            Next::Done(..) => None,
        });
        let cost = cost + self.own_cost(from, &next);
        let left = match &next {
            Next::Done(..) => Some(0),
            Next::Block(block, place, _) | Next::Phase(block, place, _) => {
                self.left((*block, *place, copies))?
            }
        };
        if let Some(left) = left {
            let length = before.map_or(0, |before| self.length(before) + 1);
            queue.push(((self.weight)(cost).saturating_add(left), length, self.begun.len()));
            self.begun.push(Begun { before, at: next, copies, cost, packet: None });
        }
        Ok(())
    }

    fn length(&self, number: usize) -> u32 {
        // Only the order of equals depends on it, so a bounded look back is enough.
        let mut at = number;
        for length in 0..64 {
            match self.begun[at].before {
                Some(before) => at = before,
                None => return length,
            }
        }
        64
    }

    /// What a step from a block costs by itself.
    fn own_cost(&self, from: Option<BlockNumber>, next: &Next) -> Cost {
        match next {
            Next::Done(_, phase) => self.machine.between(*phase, None),
            Next::Block(block, ..) => {
                let edge = from.map_or(Cost::of_code(1, 0), |from| self.machine.graph.edge(from, *block));
                self.machine.costs[*block] + edge
            }
            Next::Phase(block, _, moves) => {
                self.machine.costs[*block] + Cost::of_code(1, 0) + self.of_waiting(moves)
            }
        }
    }

    /// What the lookup for all packets costs for one that waited.
    fn of_waiting(&self, moves: &[Move]) -> Cost {
        let graph = &self.machine.code.graph;
        let mut cost = Cost::default();
        for step in moves {
            if let Move::Edge(node, _) = step
                && let Term::Lookup { table, next } = &graph.nodes[*node].term
                && graph.nodes[*next].entry.phase != graph.nodes[*node].entry.phase
            {
                let (phase, later) = (graph.nodes[*node].entry.phase, graph.nodes[*next].entry.phase);
                cost += self.machine.between(phase, Some(later));
                cost += self.machine.each.get(table).copied().unwrap_or_default();
            }
        }
        cost
    }

    /// The copies that a way has made where it comes from a block; none: too many.
    fn copies(&self, from: BlockNumber, copies: u32, next: &Next) -> Option<u32> {
        match next {
            Next::Block(to, ..) => self.machine.copies(from, copies, *to),
            Next::Phase(..) | Next::Done(..) => Some(0),
        }
    }

    /// The most that can come after a block at a place, without conditions.
    fn left(&mut self, spot: Spot) -> Result<Option<u64>, NoBound> {
        let mut stack = vec![spot];
        while let Some(at) = stack.pop() {
            if self.left.contains_key(&at) {
                continue;
            }
            if self.left.len() > MAX_PLACES {
                return Err(NoBound::TooLarge { what: "places in the code", most: MAX_PLACES });
            }
            let (mut best, mut is_whole) = (None, true);
            let (from, from_place, copies) = at;
            for next in self.paths.after(from, from_place)? {
                let Some(copies) = self.copies(from, copies, &next) else { continue };
                let own = (self.weight)(self.own_cost(Some(from), &next));
                let after = match &next {
                    Next::Done(..) => Some(0),
                    Next::Block(block, place, _) | Next::Phase(block, place, _) => {
                        let spot = (*block, *place, copies);
                        match self.left.get(&spot) {
                            Some(known) => *known,
                            None => {
                                if is_whole {
                                    stack.push(at);
                                }
                                is_whole = false;
                                stack.push(spot);
                                None
                            }
                        }
                    }
                };
                if let Some(after) = after {
                    best = best.max(Some(own.saturating_add(after)));
                }
            }
            if is_whole {
                self.left.insert(at, best);
            }
        }
        Ok(self.left.get(&spot).copied().flatten())
    }

    /// Takes a packet along a step; none when no packet can go there.
    fn go(&mut self, before: &Packet, number: usize) -> Option<Packet> {
        let moves = match &self.begun[number].at {
            Next::Block(_, _, moves) | Next::Phase(_, _, moves) | Next::Done(moves, _) => Rc::clone(moves),
        };
        let mut packet = before.clone();
        let taken = packet.taken.len();
        for step in moves.iter() {
            if !self.step(&mut packet, *step) {
                return None;
            }
        }
        if packet.taken.len() > taken {
            self.asked += u64::from(self.world.circuit.size());
            if self.world.circuit.holds(&packet.taken) == Answer::No {
                return None;
            }
        }
        Some(packet)
    }

    /// One step of the program; false where it cannot be taken.
    fn step(&mut self, packet: &mut Packet, step: Move) -> bool {
        let graph = &self.machine.code.graph;
        match step {
            Move::Enter(node) => {
                let block = graph.nodes[node].block;
                for op in &self.machine.code.cfg.blocks[block].ops {
                    if self.world.circuit.is_spent() {
                        return false;
                    }
                    packet.op(&mut self.world, op);
                }
                true
            }
            Move::Edge(node, edge) => self.edge(packet, node, edge),
        }
    }

    /// Takes an edge of a terminator: in the order of [`Term::for_each_target`].
    fn edge(&mut self, packet: &mut Packet, node: NodeId, edge: usize) -> bool {
        let (world, graph) = (&mut self.world, &self.machine.code.graph);
        match &graph.nodes[node].term {
            Term::Goto(_) | Term::Leave(_) => true,
            Term::Branch { cond, .. } => {
                let truth = packet.truth(world, cond);
                packet.take(&world.circuit, if edge == 0 { truth } else { !truth })
            }
            Term::Select { keys, cases, .. } => {
                let keys: Vec<_> = keys.iter().map(|key| packet.eval(world, key)).collect();
                let mut is_possible = true;
                for (number, (matchers, _)) in cases.iter().enumerate().take(edge + 1) {
                    let mut all = world.circuit.constant(true);
                    let mut at = 0;
                    for matcher in matchers {
                        let width = match matcher {
                            Matcher::ValueSet(set) => self.program.value_sets[*set].fields.len(),
                            _ => 1,
                        };
                        let own = keys.get(at..at + width).unwrap_or(&[]);
                        let one = Packet::matches(world, matcher, own);
                        all = world.circuit.and(all, one);
                        at += width;
                    }
                    let wanted = if number == edge { all } else { !all };
                    is_possible &= packet.take(&world.circuit, wanted);
                }
                is_possible
            }
            Term::Extract { header, .. } => {
                let bits = self.program.headers[*header].fixed_bits;
                let bits = world.circuit.number(32, bits.into());
                let room = packet.has_room(&mut world.circuit, &bits);
                let is_possible = packet.take(&world.circuit, if edge == 0 { room } else { !room });
                if edge == 0 && is_possible {
                    packet.extract(world, *header, None);
                }
                is_possible
            }
            Term::ExtractVar { header, bits, .. } => {
                // Nothing is known of which failure it is; with the header there is room for its fixed part at least.
                let bits = packet.eval(world, bits);
                if edge == 0 {
                    let fixed = world.circuit.number(32, self.program.headers[*header].fixed_bits.into());
                    let room = packet.has_room(&mut world.circuit, &fixed);
                    let is_possible = packet.take(&world.circuit, room);
                    packet.extract(world, *header, Some(&bits));
                    return is_possible;
                }
                true
            }
            Term::Advance { bits, .. } => {
                let bits = packet.eval(world, bits);
                if edge == 0 {
                    let mut whole = bits.clone();
                    whole.resize(32, world.circuit.constant(false));
                    let room = packet.has_room(&mut world.circuit, &whole);
                    let is_possible = packet.take(&world.circuit, room);
                    packet.advance(&mut world.circuit, &whole);
                    return is_possible;
                }
                true
            }
            Term::Lookahead { dst, skip, .. } => {
                let width = millrace_midend::type_width(self.program.slots[*dst].ty);
                let bits = world.circuit.number(32, (skip + width).into());
                let room = packet.has_room(&mut world.circuit, &bits);
                let is_possible = packet.take(&world.circuit, if edge == 0 { room } else { !room });
                if edge == 0 && is_possible {
                    packet.lookahead(world, *dst, *skip);
                }
                is_possible
            }
            Term::Step { steps, .. } => packet.step(*steps) == (edge == 0),
            Term::MoreCopies { .. } => {
                let more = packet.more_copies(&mut world.circuit);
                packet.take(&world.circuit, if edge == 0 { more } else { !more })
            }
            Term::Lookup { table, .. } => {
                packet.lookup(world, *table);
                true
            }
            Term::Dispatch { table, .. } => match packet.found().filter(|found| found.table == *table) {
                Some(found) => match found.actions.get(edge) {
                    Some(runs) => packet.take(&world.circuit, *runs),
                    // No entry and no default names it.
                    None => false,
                },
                None => true,
            },
        }
    }

    /// A way that has come to its end, with a frame that takes it.
    fn told(&mut self, number: usize, packet: &Packet) -> Path {
        let (mut moves, mut blocks, mut at) = (Vec::new(), Vec::new(), Some(number));
        let cost = self.begun[number].cost;
        while let Some(number) = at {
            let begun = &self.begun[number];
            match &begun.at {
                Next::Block(block, _, own) | Next::Phase(block, _, own) => {
                    moves.extend(own.iter().rev());
                    blocks.push(*block);
                }
                Next::Done(own, _) => moves.extend(own.iter().rev()),
            }
            at = begun.before;
        }
        moves.reverse();
        blocks.reverse();
        Path { moves, blocks, cost, frame: self.frame(packet) }
    }

    /// A frame for which all that was taken for granted holds: of the usual smallest length if one can be, and with entries that
    /// are told apart.
    fn frame(&mut self, packet: &Packet) -> Option<Frame> {
        let World { circuit, arrival, choices, .. } = &mut self.world;
        let mut wanted = packet.taken.clone();
        wanted.extend(choices.told_apart());
        let lengths = [60, 64, 128, 256, 512, 1024, 1514];
        let lengths: Vec<_> = lengths
            .iter()
            .map(|bytes| {
                let bytes = circuit.number(32, *bytes);
                Some(circuit.equal(&arrival.length, &bytes))
            })
            .chain([None])
            .collect();
        let small_port = !circuit.any(arrival.port[3..].iter().copied());
        for length in lengths {
            for port in [Some(small_port), None] {
                let all: Vec<_> = wanted.iter().copied().chain(length).chain(port).collect();
                if circuit.example(&all) == Answer::Yes && !circuit.is_spent() {
                    return Some(read_frame(circuit, arrival));
                }
            }
        }
        None
    }
}

/// The frame of the latest example.
fn read_frame(circuit: &Circuit, arrival: &Arrival) -> Frame {
    let number = |word: &[Lit]| {
        word.iter().enumerate().fold(0u32, |sum, (at, bit)| sum | u32::from(circuit.value(*bit)) << at)
    };
    let mut bytes: Vec<u8> = arrival
        .bits
        .chunks(8)
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(circuit.value(*bit))))
        .collect();
    bytes.resize(number(&arrival.length) as usize, 0);
    Frame { bytes, port: number(&arrival.port) }
}
