//! A running node: blocks, and what passes between them.
//!
//! A frame that comes in by a MAC passes from block to block at once, by direct calls, until it and its copies wait in queues or in
//! buffers, or are gone. [`Graph::turn`] then has queues give frames to who asks, and managers answer.

use crate::blocks::*;
use crate::interface::Item;
use crate::limits::{MAX_PASSES, MAX_TURN};
use crate::model::*;
use crate::registers::place;
use millrace_dataplane::EngineKind;
use std::fmt;

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
    /// Entries that are written word by word, until they are valid.
    drafts: Vec<(usize, usize, Entry)>,
}

/// What a node has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that MACs let in.
    pub arrivals: u64,
    /// Frames that left a block by an output without a connection: they are lost.
    pub unconnected: u64,
    /// Frames without a target at a demultiplexer: they are lost.
    pub nowhere: u64,
    /// Frames that would have passed more blocks than [`MAX_PASSES`]: they are lost.
    pub passes: u64,
    /// Frames that were on a host link when it was cut, or that it did not take.
    pub link_lost: u64,
}

/// Why there is no running node: which block, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphError {
    /// The name of the block.
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
    Demultiplexer { outputs: u32, lost: u64 },
    Mac(Box<Mac>),
    Manager(Box<Manager>),
}

impl Graph {
    /// A node as its file has it. `load` reads the files that it names.
    ///
    /// # Errors
    /// A block cannot be made.
    pub fn new(node: &NodeFile, load: Load<'_>) -> Result<Graph, GraphError> {
        let mut blocks = Vec::new();
        for spec in &node.blocks {
            let made = Block::new(spec, load);
            blocks.push(made.map_err(|why| GraphError { block: spec.name.clone(), why: why.to_string() })?);
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
            drafts: Vec::new(),
        })
    }

    /// A frame has come to a MAC; false: the block is none.
    pub fn receive(&mut self, mac: usize, frame: &[u8], now_ns: u64) -> bool {
        let Some(Block::Mac(of)) = self.blocks.get_mut(mac) else { return false };
        if let Some(item) = of.receive(frame) {
            self.counts.arrivals += 1;
            self.leave(vec![(End { block: mac, port: 0 }, item)], now_ns);
        }
        true
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
            _ => None,
        }
    }

    /// A MAC.
    pub fn mac(&mut self, block: usize) -> Option<&mut Mac> {
        match self.blocks.get_mut(block)? {
            Block::Mac(mac) => Some(mac),
            _ => None,
        }
    }

    /// A program.
    pub fn program(&mut self, block: usize) -> Option<&mut Program> {
        match self.blocks.get_mut(block)? {
            Block::P4(program) => Some(program),
            _ => None,
        }
    }

    /// The managers that answer from outside, and the next frame of the first that has one, with its block.
    pub fn ask_outside(&mut self) -> Option<(usize, Item)> {
        self.blocks.iter_mut().enumerate().find_map(|(number, block)| match block {
            Block::Manager(manager) if !manager.has_program() => manager.take().map(|item| (number, item)),
            _ => None,
        })
    }

    /// An answer from outside for a manager; false: the block is none that answers from outside.
    pub fn answer(&mut self, block: usize, item: Item, now_ns: u64) -> bool {
        let Some(Block::Manager(manager)) = self.blocks.get_mut(block) else { return false };
        if manager.has_program() {
            return false;
        }
        let answer = manager.answer(item);
        self.leave(vec![(End { block, port: 0 }, answer)], now_ns);
        true
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The MACs, each with its block, its name, and what it is connected to.
    pub fn macs(&self) -> impl Iterator<Item = (usize, &str, &Mac)> {
        self.blocks.iter().enumerate().filter_map(|(number, block)| match block {
            Block::Mac(mac) => Some((number, self.names[number].as_str(), &**mac)),
            _ => None,
        })
    }

    /// A word of the registers.
    pub fn read(&self, address: u32) -> u32 {
        let (window, word) = place(address);
        match window.checked_sub(1) {
            None => self.counts.read(word),
            Some(block) => self.blocks.get(block).map_or(0, |of| self.read_block(block, of, word)),
        }
    }

    /// Sets a word of the registers.
    ///
    /// # Errors
    /// It cannot be written, or not to that.
    pub fn write(&mut self, address: u32, word: u32) -> Result<(), Refusal> {
        let (window, at) = place(address);
        let refuse = || Refusal(format!("{address:#x} cannot be written"));
        let block = window.checked_sub(1).ok_or_else(refuse)?;
        match self.blocks.get_mut(block).ok_or_else(refuse)? {
            Block::Scheduler(scheduler) => set_scheduler(scheduler, at, word),
            Block::Selector(selector) => match u16::try_from(word) {
                Ok(place)
                    if u64::from(place) <= crate::limits::MAX_OFFSET
                        && selector.choose(at as usize, place) =>
                {
                    Ok(())
                }
                _ => Err(Refusal(format!("{word} is no place of an octet: 0 to 255 (MAX_OFFSET)"))),
            },
            Block::Mac(mac) if at <= 1 && word <= 1 => {
                match at {
                    0 => mac.set_up(word == 1),
                    _ => mac.set_promiscuous(word == 1),
                }
                Ok(())
            }
            Block::Tcam(tcam)
                if at >= ENTRY_START && (at - ENTRY_START) / ENTRY_WORDS < tcam.size() as u32 =>
            {
                let (number, field) = ((at - ENTRY_START) / ENTRY_WORDS, (at - ENTRY_START) % ENTRY_WORDS);
                self.write_entry(block, number as usize, (field, word))
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
                    self.counts.nowhere += 1;
                }
            }
            Block::Mac(mac) => mac.send(item.bytes),
            Block::Manager(manager) => drop(manager.put(item)),
            Block::Queue(queue) => {
                if queue.put(item) {
                    self.tell_scheduler(to.block);
                }
            }
            // Schedulers ask; the check of a file lets nothing else lead to one.
            Block::Scheduler(_) => self.counts.unconnected += 1,
        }
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
                let Some(item) = self.ask(source) else { return false };
                if let Block::Mac(mac) = &mut self.blocks[block] {
                    mac.send(item.bytes);
                }
                true
            }
            Block::Queue(_) | Block::Scheduler(_) => {
                let follows = self.follows[block][0];
                let is_asked = follows
                    .is_some_and(|to| matches!(self.blocks[to.block], Block::Mac(_) | Block::Scheduler(_)));
                if is_asked {
                    return false;
                }
                let Some(item) = self.ask(block) else { return false };
                self.leave(vec![(End { block, port: 0 }, item)], now_ns);
                true
            }
            Block::Manager(manager) => {
                let mut out = Out::new();
                let worked = manager.work(now_ns, &mut out);
                let answers = out.into_iter().map(|(port, item)| (End { block, port }, item));
                self.leave(answers.collect(), now_ns);
                worked
            }
            Block::P4(_) | Block::Selector(_) | Block::Tcam(_) | Block::Demultiplexer { .. } => false,
        }
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
            _ => None,
        }
    }

    fn head(&self, block: usize) -> u32 {
        match &self.blocks[block] {
            Block::Queue(queue) => queue.head(),
            _ => 0,
        }
    }

    fn read_block(&self, number: usize, block: &Block, word: u32) -> u32 {
        match block {
            Block::P4(program) => program.read(word),
            Block::Queue(queue) => {
                let ((frames, bytes), (taken, lost)) = (queue.length(), queue.counts());
                let counters = [u64::from(frames), bytes, taken, lost];
                counters.get(word as usize / 2).map_or(0, |counter| half(*counter, word))
            }
            Block::Scheduler(scheduler) => match word.checked_sub(1) {
                None => scheduler.discipline() as u32,
                Some(queue) => scheduler.quantum(queue as usize).unwrap_or(0),
            },
            Block::Selector(selector) => {
                selector.places().get(word as usize).map_or(0, |place| u32::from(*place))
            }
            Block::Tcam(tcam) => match word.checked_sub(ENTRY_START) {
                None if word < 2 => half(tcam.misses(), word),
                None => 0,
                Some(at) => self.read_entry(number, tcam, (at / ENTRY_WORDS) as usize, at % ENTRY_WORDS),
            },
            Block::Demultiplexer { lost, .. } if word < 2 => half(*lost, word),
            Block::Demultiplexer { .. } => 0,
            Block::Mac(mac) => mac.read(word),
            Block::Manager(manager) => manager.read(word),
        }
    }

    fn read_entry(&self, block: usize, tcam: &Tcam, number: usize, field: u32) -> u32 {
        if let 12 | 13 = field {
            return half(tcam.matches(number), field);
        }
        let draft = self.drafts.iter().find(|(of, at, _)| (*of, *at) == (block, number));
        let entry = draft.map(|(.., entry)| *entry).or(tcam.entry(number)).unwrap_or_default();
        match field {
            11 => u32::from(tcam.entry(number).is_some()),
            field => entry.word(field),
        }
    }

    /// A word of an entry. The entry is as it was until `valid` is written: then frames meet it whole, or none.
    fn write_entry(&mut self, block: usize, number: usize, (field, word): (u32, u32)) -> Result<(), Refusal> {
        let Block::Tcam(tcam) = &mut self.blocks[block] else { unreachable!("a TCAM was found") };
        let known = self.drafts.iter().position(|(of, at, _)| (*of, *at) == (block, number));
        let mut entry =
            known.map(|at| self.drafts.swap_remove(at).2).or(tcam.entry(number)).unwrap_or_default();
        match field {
            11 if word <= 1 => {
                let is_possible = entry.value.iter().zip(&entry.mask).all(|(value, mask)| value & !mask == 0);
                if word == 1 && !is_possible {
                    self.drafts.push((block, number, entry));
                    return Err(Refusal(
                        "the value has bits that the mask leaves out: it can never be".into(),
                    ));
                }
                tcam.set(number, (word == 1).then_some(entry));
                return Ok(());
            }
            10 if u64::from(word) > crate::limits::MAX_CLASS => {}
            0..=10 => {
                entry.set_word(field, word);
                self.drafts.push((block, number, entry));
                return Ok(());
            }
            _ => {}
        }
        if known.is_some() {
            self.drafts.push((block, number, entry));
        }
        Err(Refusal(format!("{word} cannot be written to word {field} of an entry")))
    }
}

impl Block {
    fn new(spec: &BlockSpec, load: Load<'_>) -> Result<Block, NoProgram> {
        if let (Kind::P4(program), Placement::Hardware) = (&spec.kind, spec.placement) {
            return Ok(Block::P4(Box::new(Program::in_hardware(program, load)?)));
        }
        if spec.placement == Placement::Hardware {
            return Err(NoProgram(format!("a {} in hardware is not simulated yet", spec.kind.word())));
        }
        Ok(match &spec.kind {
            Kind::P4(program) => Block::P4(Box::new(Program::new(program, EngineKind::Fastest, load)?)),
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

impl Counts {
    fn read(&self, word: u32) -> u32 {
        let counters = [self.arrivals, self.unconnected, self.nowhere, self.passes, self.link_lost];
        counters.get(word as usize / 2).map_or(0, |counter| half(*counter, word))
    }
}

fn set_scheduler(scheduler: &mut Scheduler, at: u32, word: u32) -> Result<(), Refusal> {
    let Some(queue) = at.checked_sub(1) else {
        let known = Discipline::ALL.into_iter().find(|(_, discipline)| *discipline as u32 == word);
        let (_, discipline) = known.ok_or_else(|| {
            Refusal(format!("{word} is no discipline: 0 is priority, 1 round robin, 2 deficit round robin"))
        })?;
        scheduler.set_discipline(discipline);
        return Ok(());
    };
    let is_right = (1..=crate::limits::MAX_QUANTUM).contains(&word.into());
    match is_right && scheduler.set_quantum(queue as usize, word) {
        true => Ok(()),
        false => Err(Refusal(format!(
            "{word} is no quantum: 1 to {} bytes (MAX_QUANTUM)",
            crate::limits::MAX_QUANTUM
        ))),
    }
}

impl Entry {
    /// A word of the register map: value, mask, priority, targets, class.
    fn word(&self, field: u32) -> u32 {
        let of = |octets: &[u8], at: u32| {
            octets.iter().skip(4 * at as usize).take(4).fold(0, |word, octet| word << 8 | u32::from(*octet))
        };
        match field {
            0..4 => of(&self.value, field),
            4..8 => of(&self.mask, field - 4),
            8 => self.priority,
            9 => self.outcome.targets,
            10 => u32::from(self.outcome.class),
            _ => 0,
        }
    }

    fn set_word(&mut self, field: u32, word: u32) {
        let octets = word.to_be_bytes();
        match field {
            0..4 => self.value[4 * field as usize..][..4].copy_from_slice(&octets),
            4..8 => self.mask[4 * (field as usize - 4)..][..4].copy_from_slice(&octets),
            8 => self.priority = word,
            9 => self.outcome.targets = word,
            10 => self.outcome.class = word as u8,
            _ => {}
        }
    }
}
