//! If-conversion: a control-flow graph becomes one graph of values.
//!
//! Blocks are visited in an order in which every block comes after those that lead to it. A block has a condition (whether the
//! frame comes there) and an [`Env`] (the value of everything there). Where paths meet, the values that differ become
//! multiplexers on the conditions of the paths; where a condition is known to be false, the path is not followed at all.
//!
//! # Loops
//! The blocks of a loop are visited in *rounds*: an edge that leads back belongs to the next round, edges out of the loop are
//! collected until all rounds are done. So what follows a loop is there once, however often the loop goes round. The rounds end when
//! no edge back can be taken: the counter of a loop, the next index of a header stack or the window of the parser decide
//! that by constants ([`Graph::values`](crate::graph::Graph::values)). A loop that none of them bounds is refused.

mod bytes;
mod env;
mod expr;
mod hash;
mod op;
mod order;
mod payload;
mod term;

use crate::graph::{Graph, Node, Wire};
use crate::limits::{MAX_ACCESSES, MAX_BLOCKS, MAX_CELLS, MAX_UNROLL};
use crate::place::{Place as SourcePlace, block_of};
use crate::refusal::{Construct, Refusal};
use crate::stage::{Access, Dataflow, Input, Output, Start, Unit};
pub(crate) use env::answer_width;
use env::{Cells, Env, Place};
use millrace_midend::cfg::{Cfg, CfgId};
use millrace_midend::{Start as StartOf, Verdict};
use millrace_pipeline::entity::SecondaryMap;
use millrace_pipeline::*;
use order::Component;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What goes on with a program that hardware cannot have.
pub(crate) type Step<T> = Result<T, Construct>;

/// Paths that lead to a block: the condition, and the values.
type Paths = Vec<(Wire, Env)>;

/// Converts the graph of a stage.
///
/// `zero` says which metadata are certainly 0 at the start.
pub(crate) fn convert(
    program: &Program,
    cfg: &Cfg,
    start: StartOf,
    zero: &dyn Fn(SlotId) -> bool,
) -> Result<Dataflow, Refusal> {
    let mut converter = Converter::new(program, cfg);
    match converter.run(start, zero).and_then(|()| converter.finish()) {
        Ok(()) => Ok(converter.into_dataflow()),
        Err(construct) => Err(Refusal::at(construct, converter.place())),
    }
}

struct Converter<'a> {
    program: &'a Program,
    cfg: &'a Cfg,
    graph: Graph,
    cells: Cells,
    inputs: Vec<(Input, u32)>,
    accesses: Vec<Access>,
    columns: FxHashMap<HashAlgorithm, hash::Columns>,
    /// The ends of the stage: condition, verdict, number, values.
    ends: Vec<(Wire, End, Env)>,
    outputs: Vec<(Output, Wire)>,
    /// The block that is visited.
    at: CfgId,
    /// The blocks that were visited, with loops repeated, each with whether a frame gets there.
    visits: Vec<(CfgId, Wire)>,
    steps: u64,
}

/// How a path ends.
#[derive(Clone, Copy)]
struct End {
    verdict: Verdict,
    number: Wire,
    site: Wire,
}

impl<'a> Converter<'a> {
    fn new(program: &'a Program, cfg: &'a Cfg) -> Converter<'a> {
        Converter {
            program,
            cfg,
            graph: Graph::new(),
            cells: Cells::of(program),
            inputs: Vec::new(),
            accesses: Vec::new(),
            columns: FxHashMap::default(),
            ends: Vec::new(),
            outputs: Vec::new(),
            at: cfg.entry,
            visits: Vec::new(),
            steps: 0,
        }
    }

    fn run(&mut self, start: StartOf, zero: &dyn Fn(SlotId) -> bool) -> Step<()> {
        let mut paths: SecondaryMap<CfgId, Paths> = SecondaryMap::new();
        let always = self.graph.bool(true);
        let env = self.start(start, zero)?;
        paths[self.cfg.entry].push((always, env));
        for component in order::components(self.cfg) {
            match component {
                Component::Block(block) => {
                    let here = std::mem::take(&mut paths[block]);
                    for (to, cond, env) in self.visit(block, here)? {
                        paths[to].push((cond, env));
                    }
                }
                Component::Loop(blocks) => self.rounds(&blocks, &mut paths)?,
            }
        }
        match self.steps > u64::from(limits::MAX_STEPS) {
            true => Err(Construct::Steps),
            false => Ok(()),
        }
    }

    /// Visits the blocks of a loop, in order, as often as an edge leads back.
    fn rounds(&mut self, blocks: &[CfgId], paths: &mut SecondaryMap<CfgId, Paths>) -> Step<()> {
        let places: BTreeMap<CfgId, usize> =
            blocks.iter().enumerate().map(|(at, block)| (*block, at)).collect();
        for _ in 0..=MAX_UNROLL {
            let mut next: SecondaryMap<CfgId, Paths> = SecondaryMap::new();
            let mut again = None;
            for (at, block) in blocks.iter().enumerate() {
                let here = std::mem::take(&mut paths[*block]);
                for (to, cond, env) in self.visit(*block, here)? {
                    match places.get(&to) {
                        Some(place) if *place <= at => {
                            again = Some(to);
                            next[to].push((cond, env));
                        }
                        _ => paths[to].push((cond, env)),
                    }
                }
            }
            let Some(head) = again else { return Ok(()) };
            self.at = head;
            for block in blocks {
                paths[*block].append(&mut next[*block]);
            }
        }
        Err(Construct::Loop)
    }

    /// Visits a block; gives where its paths lead.
    fn visit(&mut self, block: CfgId, paths: Paths) -> Step<Vec<(CfgId, Wire, Env)>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        self.at = block;
        if self.visits.len() >= MAX_BLOCKS {
            return Err(Construct::Blocks);
        }
        if (self.visits.len() + 1).saturating_mul(self.cells.len()) > MAX_CELLS {
            return Err(Construct::Cells);
        }
        let cfg = self.cfg;
        let body = cfg.blocks[block].body;
        let (cond, mut env) = self.meet(paths, body)?;
        self.visits.push((block, cond));
        env.body = body;
        self.graph.set_body(body);
        for op in &cfg.blocks[block].ops {
            self.op(op, cond, &mut env)?;
            self.has_room()?;
        }
        let to = self.term(&cfg.blocks[block].term, cond, env)?;
        self.has_room()?;
        if self.accesses.len() > MAX_ACCESSES {
            return Err(Construct::Accesses);
        }
        Ok(to)
    }

    /// Whether more values may come: those of a graph that is full mean nothing.
    fn has_room(&self) -> Step<()> {
        if self.graph.is_full() { Err(Construct::Nodes) } else { Ok(()) }
    }

    /// The storage at the start of the stage.
    fn start(&mut self, start: StartOf, zero: &dyn Fn(SlotId) -> bool) -> Step<Env> {
        let length = self.input(Input::Length, 32);
        let has_headers = start == StartOf::Context;
        let cursor = match has_headers {
            true => Some(self.input(Input::Cursor, 32)),
            false => None,
        };
        let mut cells = vec![self.graph.bool(false); self.cells.len()];
        for (id, slot) in &self.program.slots {
            let given = match slot.home {
                Home::Header { .. } => has_headers,
                Home::Metadata => !zero(id),
                Home::Local => false,
            };
            let place = self.cells.slot(id);
            let width = env::slot_width(slot.ty);
            if width > crate::limits::MAX_VALUE {
                // Only what a path uses matters; a value that is too wide shows where it is used.
                continue;
            }
            cells[place] = match given {
                true => self.input(Input::Slot(id), width),
                false => self.graph.number(width, 0),
            };
            if let Type::Varbit(_) = slot.ty {
                cells[place + 1] = match given {
                    true => self.input(Input::SlotLength(id), 32),
                    false => self.graph.number(32, 0),
                };
            }
        }
        if has_headers {
            for header in self.program.headers.keys() {
                cells[self.cells.valid(header)] = self.input(Input::Valid(header), 1);
            }
        }
        for (place, width) in self.cells.others() {
            cells[place] = self.graph.number(width, 0);
        }
        cells[self.cells.length()] = length;
        Ok(Env {
            cells,
            cursor: Place::start(cursor, &mut self.graph),
            emitted: Place::start(None, &mut self.graph),
            body: None,
        })
    }

    fn input(&mut self, input: Input, width: u32) -> Wire {
        let number = self.inputs.len() as u32;
        self.inputs.push((input, width));
        self.graph.input(number, width)
    }

    /// An input that is there once, whoever needs it.
    fn shared_input(&mut self, input: Input, width: u32) -> Wire {
        match self.inputs.iter().position(|(other, _)| *other == input) {
            Some(number) => self.graph.input(number as u32, width),
            None => self.input(input, width),
        }
    }

    fn access(&mut self, unit: Unit, enable: Wire, inputs: Vec<(Wire, Type)>, answer: u32) -> u32 {
        let latency = unit.latency();
        self.accesses.push(Access { unit, enable, inputs, answer, latency });
        self.accesses.len() as u32 - 1
    }

    /// The outputs: what the ends say, chosen by their conditions.
    fn finish(&mut self) -> Step<()> {
        let ends = std::mem::take(&mut self.ends);
        self.graph.set_body(None);
        let mut verdict = self.graph.number(4, Verdict::StepLimit as u64);
        let (mut number, mut site) = (self.graph.number(32, 0), self.graph.number(16, 0));
        let mut paths = Vec::new();
        for (cond, end, env) in ends {
            let this = self.graph.number(4, end.verdict as u64);
            verdict = self.graph.mux(cond, this, verdict);
            number = self.graph.mux(cond, end.number, number);
            site = self.graph.mux(cond, end.site, site);
            paths.push((cond, env));
        }
        let mut outputs =
            vec![(Output::Verdict, verdict), (Output::Number, number), (Output::DropSite, site)];
        if !paths.is_empty() {
            let (_, env) = self.meet(paths, None)?;
            let cells = &env.cells;
            for (id, slot) in &self.program.slots {
                if slot.home == Home::Local || env::slot_width(slot.ty) > crate::limits::MAX_VALUE {
                    continue;
                }
                let place = self.cells.slot(id);
                // What goes through unchanged need not go through.
                if !matches!(self.graph.node(cells[place]), Node::Input(number) if self.inputs[*number as usize].0 == Input::Slot(id))
                {
                    outputs.push((Output::Slot(id), cells[place]));
                    if let Type::Varbit(_) = slot.ty {
                        outputs.push((Output::SlotLength(id), cells[place + 1]));
                    }
                }
            }
            for header in self.program.headers.keys() {
                outputs.push((Output::Valid(header), cells[self.cells.valid(header)]));
            }
            outputs.push((Output::Cursor, env.cursor.wire));
            outputs.push((Output::ParsedBits, cells[self.cells.parsed()]));
            outputs.push((Output::Deparsed, cells[self.cells.deparsed()]));
            outputs.push((Output::Emitted, cells[self.cells.packet()]));
            outputs.push((Output::EmittedLength, cells[self.cells.packet_bits()]));
            outputs.push((Output::PayloadFrom, cells[self.cells.payload()]));
        }
        self.outputs = outputs;
        Ok(())
    }

    /// What the block that is visited is part of, and where it stands.
    fn place(&self) -> SourcePlace {
        let block = &self.cfg.blocks[self.at];
        SourcePlace::of_origin(self.program, &block.origin, block.body)
    }

    /// The parser and its state that a block comes from.
    fn state(&self, origin: &str) -> Option<(&'a str, &'a str)> {
        let (body, block) = block_of(self.program, origin)?;
        let state = body.blocks[block].state.as_ref()?;
        Some((&body.name, state))
    }

    /// Where parsers, their states, controls and deparsers start, as often as loops repeat them.
    fn starts(&self) -> Vec<Start> {
        // What follows an instruction in the same block of the program is a block of its own here, which comes after the first.
        let mut first: FxHashMap<&str, CfgId> = FxHashMap::default();
        for (id, block) in &self.cfg.blocks {
            first.entry(&block.origin).or_insert(id);
        }
        let is_body = |name: &str| self.program.bodies.values().any(|body| body.name == name);
        let visits = self.visits.iter().filter_map(|(block, enable)| {
            let origin = self.cfg.blocks[*block].origin.as_str();
            let (body, state) = match self.state(origin) {
                Some((body, state)) if first.get(origin) == Some(block) => (body, Some(state.to_owned())),
                None if is_body(origin) => (origin, None),
                _ => return None,
            };
            Some(Start { body: body.to_owned(), state, enable: *enable })
        });
        visits.collect()
    }

    fn into_dataflow(self) -> Dataflow {
        let starts = self.starts();
        Dataflow {
            graph: self.graph,
            inputs: self.inputs,
            accesses: self.accesses,
            outputs: self.outputs,
            blocks: self.visits.len(),
            starts,
        }
    }
}
