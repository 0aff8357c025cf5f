//! A running node: blocks, and what passes between them.
//!
//! A frame that comes in by a MAC passes from block to block at once, by direct calls, until it and its copies wait in queues or in
//! buffers, or are gone. [`Graph::turn`] then has queues give frames to who asks, and managers answer.

use crate::blocks::*;
use crate::hardware::{Far, NoHardware, Programs, Top, no_program};
use crate::interface::Item;
use crate::lease::SharedMemory;
use crate::limits::{MAX_PASSES, MAX_TURN};
use crate::model::*;
use crate::registers::{UNCONNECTED, WINDOW_WORDS, place};
use millrace_dataplane::EngineKind;
use millrace_link::Server;
use millrace_rtl::Target;
use millrace_rtl::map::Bus;
use std::fmt;

/// The first words of what a MAC has received, and of what it has left out of that.
const RECEIVED: u32 = 16;
const FILTERED: u32 = 2;

/// A running node.
#[derive(Debug)]
pub struct Graph {
    blocks: Vec<Block>,
    names: Vec<String>,
    /// The input after each output of each block.
    follows: Vec<Vec<Option<End>>>,
    /// The block whose output gives what each input of each block asks for.
    asks: Vec<Vec<Option<usize>>>,
    counts: Counts,
    /// The blocks in hardware, by device.
    fars: Vec<Far>,
    /// The memories that this process has; they end with it.
    _memories: Vec<Server>,
}

/// What a node has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that MACs let in.
    pub arrivals: u64,
    /// Frames that left a block by an output without a connection: they are lost.
    pub unconnected: u64,
    /// Frames that would have passed more blocks than [`MAX_PASSES`]: they are lost.
    pub passes: u64,
    /// Frames that were on a host link when it was cut, or that it did not take.
    pub link_lost: u64,
}

/// Why there is no running node: which block or memory, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphError {
    /// The name of the block, or of the memory.
    pub block: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block `{}`: {}", self.block, self.why)
    }
}

impl std::error::Error for GraphError {}

/// A block that runs.
#[derive(Debug)]
enum Block {
    P4(Box<Program>),
    Queue(Queue),
    Scheduler(Scheduler),
    Selector(Selector),
    Tcam(Tcam),
    Demultiplexer {
        outputs: u32,
        lost: u64,
    },
    Mac(Box<Mac>),
    Manager(Box<Manager>),
    /// In hardware; whether its output is asked.
    Far(bool),
    /// A MAC in hardware, with what its link is connected to.
    FarMac(Option<String>),
    /// A manager whose buffer is in hardware.
    FarManager(Box<Answerer>),
}

impl Graph {
    /// A node as its file has it. `load` reads the files that it names.
    ///
    /// # Errors
    /// A block cannot be made.
    pub fn new(node: &NodeFile, load: Load<'_>) -> Result<Graph, GraphError> {
        let (places, memories) = memories(node)?;
        let of_hardware = |why: NoHardware| GraphError { block: why.block, why: why.why };
        let programs = Programs::of(node, (Bus::Axi4Lite, Target::default()), load).map_err(of_hardware)?;
        let mut blocks = Vec::new();
        for (number, spec) in node.blocks.iter().enumerate() {
            let made = Block::new(spec, programs.get(number).is_some(), &places, load);
            blocks.push(made.map_err(|why| GraphError { block: spec.name.clone(), why: why.to_string() })?);
        }
        let mut fars = Vec::new();
        for top in Top::all(node, &programs, Bus::Axi4Lite).map_err(of_hardware)? {
            let failed = |why| GraphError { block: node.blocks[top.blocks[0]].name.clone(), why };
            fars.push(Far::new(node, &top).map_err(failed)?);
        }
        let follows = node.blocks.iter().enumerate().map(|(block, spec)| {
            let outputs = 0..spec.kind.outputs().len();
            outputs.map(|port| node.follows(End { block, port })).collect()
        });
        let asks = node.blocks.iter().enumerate().map(|(block, spec)| {
            let asked = |port| {
                let to = End { block, port };
                let sources = node.connections.iter().filter(|connection| connection.to == to);
                let mut sources = sources.map(|connection| connection.from.block);
                sources.find(|source| node.blocks[*source].kind.is_asked())
            };
            (0..spec.kind.inputs().len()).map(asked).collect()
        });
        Ok(Graph {
            follows: follows.collect(),
            asks: asks.collect(),
            names: node.blocks.iter().map(|spec| spec.name.clone()).collect(),
            blocks,
            counts: Counts::default(),
            fars,
            _memories: memories,
        })
    }

    /// A frame has come to a MAC; false: the block is none.
    pub fn receive(&mut self, mac: usize, frame: &[u8], now_ns: u64) -> bool {
        match self.blocks.get_mut(mac) {
            Some(Block::Mac(of)) => {
                if let Some(item) = of.receive(frame) {
                    self.counts.arrivals += 1;
                    self.leave(vec![(End { block: mac, port: 0 }, item)], now_ns);
                }
                true
            }
            Some(Block::FarMac(_)) => {
                let came = self.far(mac).map(|far| far.come(mac, frame, now_ns));
                self.leave(came.unwrap_or_default(), now_ns);
                true
            }
            _ => false,
        }
    }

    /// Has queues give frames to who asks for them, and managers answer, each at most [`MAX_TURN`] frames; gives whether anything moved.
    pub fn turn(&mut self, now_ns: u64) -> bool {
        let mut moved = false;
        for block in 0..self.blocks.len() {
            for _ in 0..MAX_TURN {
                if !self.move_one(block, now_ns) {
                    break;
                }
                moved = true;
            }
        }
        moved
    }

    /// The next frame that leaves by a MAC.
    pub fn leave_by(&mut self, mac: usize) -> Option<Vec<u8>> {
        match self.blocks.get_mut(mac)? {
            Block::Mac(mac) => mac.leave(),
            Block::FarMac(_) => self.far(mac)?.leave_by(mac),
            _ => None,
        }
    }

    /// A frame that has left by a MAC could not be sent after all.
    pub(crate) fn lose(&mut self, block: usize) {
        match self.blocks.get_mut(block) {
            Some(Block::Mac(mac)) => mac.lose(),
            // Who is at the other end of a link in a simulation has lost it.
            _ => self.counts.link_lost += 1,
        }
    }

    /// A program.
    pub fn program(&mut self, block: usize) -> Option<&mut Program> {
        match self.blocks.get_mut(block)? {
            Block::P4(program) => Some(program),
            _ => None,
        }
    }

    /// Runs commands on the program of a block, all or none, as those of its entries are; gives what they show.
    ///
    /// # Errors
    /// The block runs none, the first command that is refused, or its hardware cannot be reached.
    pub fn command(&mut self, block: usize, text: &str) -> Result<String, Refusal> {
        let refuse = |why: &dyn fmt::Display| Refusal(why.to_string());
        if let Some(far) = self.fars.iter_mut().find(|far| far.runs(block)) {
            return far.command(block, text).map_err(|why| refuse(&why));
        }
        let program = match self.blocks.get_mut(block) {
            Some(Block::P4(program)) => Some(&mut **program),
            Some(Block::Manager(_) | Block::FarManager(_)) => {
                self.answerer(block).and_then(Answerer::program)
            }
            _ => None,
        };
        program.ok_or_else(|| Refusal(no_program(block)))?.command(text).map_err(|why| refuse(&why))
    }

    /// The managers that answer from outside, and the next frame of the first that has one, with its block.
    pub fn ask_outside(&mut self) -> Option<(usize, Item)> {
        for number in 0..self.blocks.len() {
            let item = match &mut self.blocks[number] {
                Block::Manager(manager) if !manager.has_program() => manager.take(),
                Block::FarManager(answerer) if !answerer.has_program() => self.ask_far(number),
                _ => None,
            };
            if let Some(item) = item {
                return Some((number, item));
            }
        }
        None
    }

    /// An answer from outside for a manager; false: the block is none that answers from outside.
    pub fn answer(&mut self, block: usize, item: Item, now_ns: u64) -> bool {
        let Some(answerer) = self.answerer(block).filter(|answerer| !answerer.has_program()) else {
            return false;
        };
        let answer = answerer.answer(item);
        self.leave(vec![(End { block, port: 0 }, answer)], now_ns);
        true
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let macs = self.fars.iter().flat_map(|far| far.macs().iter().map(move |mac| (far, mac)));
        let let_in = macs.map(|(far, mac)| {
            let [received, filtered] = [RECEIVED, FILTERED].map(|word| counter(far, first_word(*mac) + word));
            received.saturating_sub(filtered)
        });
        let unconnected = self.fars.iter().map(|far| counter(far, UNCONNECTED));
        Counts {
            arrivals: self.counts.arrivals + let_in.sum::<u64>(),
            unconnected: self.counts.unconnected + unconnected.sum::<u64>(),
            link_lost: self.counts.link_lost + self.fars.iter().map(Far::lost).sum::<u64>(),
            ..self.counts
        }
    }

    /// The device whose hardware has a block.
    fn far(&mut self, block: usize) -> Option<&mut Far> {
        self.fars.iter_mut().find(|far| far.has(block))
    }

    /// The MACs, each with its block, its name, and what it is connected to.
    pub fn macs(&self) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
        self.blocks.iter().enumerate().filter_map(|(number, block)| {
            let name = self.names[number].as_str();
            match block {
                Block::Mac(mac) => Some((number, name, mac.attach())),
                Block::FarMac(attach) => Some((number, name, attach.as_deref())),
                _ => None,
            }
        })
    }

    /// Who answers the frames of a manager.
    fn answerer(&mut self, block: usize) -> Option<&mut Answerer> {
        match self.blocks.get_mut(block)? {
            Block::Manager(manager) => Some(manager.answerer()),
            Block::FarManager(answerer) => Some(answerer),
            _ => None,
        }
    }

    /// A word of the registers.
    pub fn read(&self, address: u32) -> u32 {
        let (window, word) = place(address);
        match window.checked_sub(1) {
            None => self.counts().read(word),
            Some(block) if block < self.blocks.len() => self.read_block(block, word),
            Some(_) => 0,
        }
    }

    /// A request for registers begins: numbers that are read are of a moment after this.
    pub(crate) fn begin(&mut self) {
        self.fars.iter().for_each(Far::forget);
    }

    /// What was [put](Graph::put) is in effect, also in hardware.
    ///
    /// # Errors
    /// The hardware does not take it, or cannot be reached.
    pub(crate) fn end(&mut self) -> Result<(), Refusal> {
        let mut ended = Ok(());
        for far in &mut self.fars {
            ended = ended.and(far.end().map_err(|error| Refusal(error.to_string())));
        }
        ended
    }

    /// Sets a word of the registers.
    ///
    /// # Errors
    /// It cannot be written, or not to that.
    pub fn write(&mut self, address: u32, word: u32) -> Result<(), Refusal> {
        self.put(address, word)?;
        self.end()
    }

    /// Sets a word of the registers; that of a block in hardware has it at the [end](Graph::end).
    ///
    /// # Errors
    /// It cannot be written, or not to that.
    pub(crate) fn put(&mut self, address: u32, word: u32) -> Result<(), Refusal> {
        let (window, at) = place(address);
        let refuse = || Refusal(format!("{address:#x} cannot be written"));
        let block = window.checked_sub(1).ok_or_else(refuse)?;
        match self.blocks.get_mut(block).ok_or_else(refuse)? {
            Block::Scheduler(scheduler) => scheduler.write(at, word),
            Block::Selector(selector) => selector.write(at, word),
            Block::Tcam(tcam) => tcam.write(at, word).map(|_| ()),
            Block::Far(_) | Block::FarMac(_) => {
                let far = self.far(block).ok_or_else(refuse)?;
                far.put(address, word).map_err(|error| Refusal(error.to_string()))
            }
            Block::Mac(mac) if at <= 1 && word <= 1 => {
                match at {
                    0 => mac.set_up(word == 1),
                    _ => mac.set_promiscuous(word == 1),
                }
                Ok(())
            }
            _ => Err(refuse()),
        }
    }

    /// Frames leave blocks, and pass on until none is under way.
    fn leave(&mut self, first: Vec<(End, Item)>, now_ns: u64) {
        let mut under_way = first;
        let mut passes = 0;
        let mut out = Out::new();
        // The last is next: a frame goes as far as it can before its next copy does, whose order at each queue is that of the outputs.
        under_way.reverse();
        while let Some((from, item)) = under_way.pop() {
            let Some(to) = self.follows[from.block][from.port] else {
                self.counts.unconnected += 1;
                continue;
            };
            passes += 1;
            if passes > MAX_PASSES {
                self.counts.passes += 1 + under_way.len() as u64;
                return;
            }
            if let Block::Far(_) | Block::FarMac(_) | Block::FarManager(_) = self.blocks[to.block] {
                let came = self.deliver(to, &item, now_ns);
                under_way.extend(came.into_iter().rev());
                continue;
            }
            self.pass(to, item, now_ns, &mut out);
            under_way.extend(out.drain(..).rev().map(|(port, item)| (End { block: to.block, port }, item)));
        }
    }

    /// A frame comes to an input.
    fn pass(&mut self, to: End, item: Item, now_ns: u64, out: &mut Out) {
        match &mut self.blocks[to.block] {
            Block::P4(program) => program.pass(to.port as u32, item, now_ns, out),
            Block::Selector(selector) => out.push((0, selector.pass(item))),
            Block::Tcam(tcam) => out.push((0, tcam.pass(item))),
            Block::Demultiplexer { outputs, lost } => {
                if !demultiplex(*outputs, item, out) {
                    *lost += 1;
                }
            }
            Block::Mac(mac) => mac.send(item.bytes),
            Block::Manager(manager) => drop(manager.put(item)),
            Block::Queue(queue) => {
                if queue.put(item) {
                    self.tell_scheduler(to.block);
                }
            }
            // Schedulers ask; the check of a file lets nothing else lead to one. What is in hardware is delivered.
            Block::Scheduler(_) | Block::Far(_) | Block::FarMac(_) | Block::FarManager(_) => {
                self.counts.unconnected += 1;
            }
        }
    }

    /// A frame goes to the hardware; what leaves it by itself.
    fn deliver(&mut self, to: End, item: &Item, now_ns: u64) -> Vec<(End, Item)> {
        // A stream has no frames without a beat.
        if item.bytes.is_empty() {
            self.counts.link_lost += 1;
            return Vec::new();
        }
        self.far(to.block).map_or_else(Vec::new, |far| far.deliver(to, item, now_ns))
    }

    /// The next frame of a block in hardware whose output is asked.
    fn ask_far(&mut self, block: usize) -> Option<Item> {
        self.far(block)?.ask(End { block, port: 0 })
    }

    /// The scheduler that asks a queue hears of a frame that came to it.
    fn tell_scheduler(&mut self, queue: usize) {
        if let Some(to) = self.follows[queue][0]
            && let Block::Scheduler(scheduler) = &mut self.blocks[to.block]
        {
            scheduler.came(to.port);
        }
    }

    /// Has a block do one thing of its own; false: there is nothing to do.
    fn move_one(&mut self, block: usize, now_ns: u64) -> bool {
        match &mut self.blocks[block] {
            Block::Mac(mac) => {
                let Some(source) = self.asks[block][0].filter(|_| mac.has_room()) else { return false };
                self.fetch(source, block, now_ns)
            }
            Block::FarMac(_) => {
                let far = far_of(&self.fars, block).filter(|far| far.has_room(block));
                // What is in the same hardware asks for itself.
                let source = self.asks[block][0].filter(|source| far.is_some_and(|far| !far.has(*source)));
                source.is_some_and(|source| self.fetch(source, block, now_ns))
            }
            Block::Far(true)
                if far_of(&self.fars, block).is_none_or(|far| !far.is_way_out(End { block, port: 0 })) =>
            {
                false
            }
            Block::Queue(_) | Block::Scheduler(_) | Block::Far(true) => {
                let follows = self.follows[block][0];
                let asks = |of: &Block| matches!(of, Block::Mac(_) | Block::FarMac(_) | Block::Scheduler(_));
                let is_asked = follows.is_some_and(|to| asks(&self.blocks[to.block]));
                if is_asked {
                    return false;
                }
                let Some(item) = self.ask(block) else { return false };
                self.leave(vec![(End { block, port: 0 }, item)], now_ns);
                true
            }
            Block::Manager(manager) => {
                let has_program = manager.has_program();
                let item = has_program.then(|| manager.take()).flatten();
                self.work(block, item, now_ns)
            }
            Block::FarManager(answerer) => {
                let has_program = answerer.has_program();
                let item = has_program.then(|| self.ask_far(block)).flatten();
                self.work(block, item, now_ns)
            }
            Block::P4(_)
            | Block::Selector(_)
            | Block::Tcam(_)
            | Block::Demultiplexer { .. }
            | Block::Far(false) => false,
        }
    }

    /// A MAC takes the next frame of a queue or scheduler; false: there is none.
    fn fetch(&mut self, source: usize, mac: usize, now_ns: u64) -> bool {
        let Some(item) = self.ask(source) else { return false };
        if let Block::Mac(mac) = &mut self.blocks[mac] {
            mac.send(item.bytes);
        } else {
            let came = self.deliver(End { block: mac, port: 0 }, &item, now_ns);
            self.leave(came, now_ns);
        }
        true
    }

    /// Has the program of a manager answer a frame of its buffer; false: there is none.
    fn work(&mut self, block: usize, item: Option<Item>, now_ns: u64) -> bool {
        let Some((item, answerer)) = item.zip(self.answerer(block)) else { return false };
        let answers = answerer.work(item, now_ns).into_iter();
        self.leave(answers.map(|item| (End { block, port: 0 }, item)).collect(), now_ns);
        true
    }

    /// The next frame of a queue or scheduler.
    fn ask(&mut self, block: usize) -> Option<Item> {
        let heads: Vec<u32> =
            self.asks[block].iter().map(|source| source.map_or(0, |source| self.head(source))).collect();
        match &mut self.blocks[block] {
            Block::Queue(queue) => queue.take(),
            Block::Scheduler(scheduler) => {
                let choice = scheduler.choose(|queue| heads[queue])?;
                let source = self.asks[block][choice]?;
                self.ask(source)
            }
            Block::Far(true) => self.ask_far(block),
            _ => None,
        }
    }

    fn head(&self, block: usize) -> u32 {
        match &self.blocks[block] {
            Block::Queue(queue) => queue.head(),
            _ => 0,
        }
    }

    fn read_block(&self, number: usize, word: u32) -> u32 {
        match &self.blocks[number] {
            Block::P4(program) => program.read(word),
            Block::Queue(queue) => {
                let ((frames, bytes), (taken, lost)) = (queue.length(), queue.counts());
                let counters = [u64::from(frames), bytes, taken, lost];
                counters.get(word as usize / 2).map_or(0, |counter| half(*counter, word))
            }
            Block::Scheduler(scheduler) => scheduler.read(word),
            Block::Selector(selector) => selector.read(word),
            Block::Tcam(tcam) => tcam.read(word),
            Block::FarManager(answerer) if word >= 6 => answerer.read(word),
            Block::Far(_) | Block::FarMac(_) | Block::FarManager(_) => {
                let words = far_of(&self.fars, number).map(|far| far.read(4 * (first_word(number) + word)));
                words.and_then(Result::ok).unwrap_or(0)
            }
            Block::Demultiplexer { lost, .. } if word < 2 => half(*lost, word),
            Block::Demultiplexer { .. } => 0,
            Block::Mac(mac) => mac.read(word),
            Block::Manager(manager) => manager.read(word),
        }
    }
}

impl Block {
    /// `is_part`: its program is part of the design of a device.
    fn new(spec: &BlockSpec, is_part: bool, memories: &[Place], load: Load<'_>) -> Result<Block, NoProgram> {
        if let (Kind::P4(program), Placement::Hardware, false) = (&spec.kind, spec.placement, is_part) {
            return Ok(Block::P4(Box::new(Program::in_hardware(program, load)?)));
        }
        if spec.placement == Placement::Hardware {
            return Ok(match &spec.kind {
                Kind::Mac(mac) => Block::FarMac(mac.attach.clone()),
                Kind::Manager(manager) => {
                    Block::FarManager(Box::new(Answerer::new(manager, Placement::Hardware, load)?))
                }
                kind => Block::Far(kind.is_asked()),
            });
        }
        Ok(match &spec.kind {
            Kind::P4(program) => {
                let place = program.shared.as_ref().map(|shared| &memories[shared.memory]);
                let engine = EngineKind::Fastest;
                Block::P4(Box::new(match place {
                    Some(place) => Program::sharing(program, engine, place, load)?,
                    None => Program::new(program, engine, load)?,
                }))
            }
            Kind::Queue(queue) => Block::Queue(Queue::new(*queue)),
            Kind::Scheduler(scheduler) => Block::Scheduler(Scheduler::new(scheduler)),
            Kind::OctetSelector(places) => Block::Selector(Selector::new(places)),
            Kind::Tcam(tcam) => Block::Tcam(Tcam::new(tcam)),
            Kind::Demultiplexer(outputs) => Block::Demultiplexer { outputs: *outputs, lost: 0 },
            Kind::Mac(mac) => Block::Mac(Box::new(Mac::new(mac))),
            Kind::Manager(manager) => Block::Manager(Box::new(Manager::new(manager, load)?)),
        })
    }
}

/// Where the memories of a node are, and those that this process has: they are served to it alone.
fn memories(node: &NodeFile) -> Result<(Vec<Place>, Vec<Server>), GraphError> {
    let (mut places, mut own) = (Vec::new(), Vec::new());
    for spec in &node.memories {
        let address = match spec.at {
            Some(address) => address,
            None => {
                let failed = |why: String| GraphError { block: spec.name.clone(), why };
                let memory =
                    SharedMemory::new(&spec.name, spec.words).map_err(|why| failed(why.to_string()))?;
                own.push(Server::local(Box::new(memory)).map_err(|why| failed(why.to_string()))?);
                own[own.len() - 1].address()
            }
        };
        places.push(Place { spec: spec.clone(), address });
    }
    Ok((places, own))
}

fn far_of(fars: &[Far], block: usize) -> Option<&Far> {
    fars.iter().find(|far| far.has(block))
}

/// The first word of the registers of a block.
fn first_word(block: usize) -> u32 {
    WINDOW_WORDS * (block as u32 + 1)
}

/// A counter of hardware, by its first word.
fn counter(far: &Far, word: u32) -> u64 {
    far.forget();
    let [low, high] = [word, word + 1].map(|word| far.read(4 * word).unwrap_or(0));
    u64::from(high) << 32 | u64::from(low)
}

impl Counts {
    fn read(&self, word: u32) -> u32 {
        let counters = [self.arrivals, self.unconnected, self.passes, self.link_lost];
        counters.get(word as usize / 2).map_or(0, |counter| half(*counter, word))
    }
}
