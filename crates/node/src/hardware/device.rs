//! The hardware of a node in simulation, as a device of the host link.
//!
//! | port of a frame | to the device | from the device |
//! | --- | --- | --- |
//! | the number of a way | a frame with its facts comes in by it | one leaves by it |
//! | [`ASKS`] and the number of a way | asks for the next frame that leaves by it | |
//! | [`WIRE`] and the number of a MAC | a frame comes by its link | one leaves by it |
//! | [`DONE`] | comes back as it is | empty: all that follows from a frame was sent |

use super::modules::{BEAT, FACTS};
use super::top::Top;
use super::wires::Wires;
use crate::blocks::{ENTRY_START, ENTRY_WORDS, Scheduler, Selector, Tcam, half, registers};
use crate::interface::{FACTS_BYTES, Facts, Item};
use crate::limits::{MAX_FRAME, MAX_OCTETS};
use crate::model::{BlockSpec, Entry, Kind, NodeFile};
use crate::registers::{MAP_BYTES, UNCONNECTED, place};
use millrace_link::{Device, Event, Fault, Shape};
use millrace_netlist::{Bits, SignalId, Simulator, in_words};
use std::collections::BTreeMap;

/// The port of the end of an answer.
pub(super) const DONE: u16 = 0xffff;
/// Added to the number of a way: its next frame is asked for.
pub(super) const ASKS: u16 = 0x8000;
/// Added to the number of a MAC: of its link.
pub(super) const WIRE: u16 = 0x4000;
/// Most cycles that a beat waits to be taken.
const MAX_WAIT: usize = 65_536;
/// Most cycles until what has come has gone as far as it can: what MACs of GMII take for the frames that wait for them.
const MAX_SETTLE: usize = 1 << 20;
/// Cycles that a frame takes through blocks, apart from its beats.
const SETTLE: usize = 200;

/// The simulated hardware of a node.
pub struct HardwareDevice {
    name: String,
    sim: Simulator,
    specs: BTreeMap<usize, BlockSpec>,
    settings: BTreeMap<usize, Setting>,
    inputs: Vec<Signals>,
    outputs: Vec<Output>,
    wires: Wires,
    unconnected: Vec<String>,
    answers: Vec<(u16, Vec<u8>)>,
    failed: Option<&'static str>,
}

/// What software has set of a block.
enum Setting {
    Scheduler(Scheduler),
    Selector(Selector),
    Tcam(Box<Lookup>),
    Mac { up: bool, promiscuous: bool },
}

/// What software knows of a TCAM.
struct Lookup {
    tcam: Tcam,
    bank: usize,
    /// What is in the memories, by bank and address.
    written: [BTreeMap<(u32, u32), Bits>; 2],
    /// The entry of each place, the first that matches first.
    order: Vec<usize>,
    /// The count of each place when its entry came there, and what entries had counted before.
    before: Vec<u64>,
    counts: Vec<u64>,
}

/// The signals of a stream.
#[derive(Clone, Copy)]
struct Signals {
    data: SignalId,
    keep: SignalId,
    last: SignalId,
    user: SignalId,
    valid: SignalId,
    ready: SignalId,
}

/// A way out, and the frame that is leaving by it.
struct Output {
    signals: Signals,
    is_asked: bool,
    takes: bool,
    bytes: Vec<u8>,
    frames: Vec<Item>,
}

impl std::fmt::Debug for HardwareDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HardwareDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

impl HardwareDevice {
    /// Simulates the design of a node.
    ///
    /// # Errors
    /// The design breaks a rule.
    pub fn new(node: &NodeFile, top: &Top) -> Result<HardwareDevice, String> {
        let sim = Simulator::new(&top.design).map_err(|errors| in_words(&errors))?;
        let signals = |name: String, comes_in: bool| {
            let find = |suffix: &str, is_input: bool| {
                let port = format!("{name}_{suffix}");
                let found = if is_input { sim.input(&port) } else { sim.output(&port) };
                found.ok_or_else(|| format!("the design has no port {port}"))
            };
            Ok::<Signals, String>(Signals {
                data: find("tdata", comes_in)?,
                keep: find("tkeep", comes_in)?,
                last: find("tlast", comes_in)?,
                user: find("tuser", comes_in)?,
                valid: find("tvalid", comes_in)?,
                ready: find("tready", !comes_in)?,
            })
        };
        let inputs =
            (0..top.inputs.len()).map(|way| signals(format!("in{way}"), true)).collect::<Result<_, _>>()?;
        let mut outputs = Vec::new();
        for (way, from) in top.outputs.iter().enumerate() {
            let kind = &node.blocks[from.block].kind;
            let is_asked = kind.is_asked() || matches!(kind, Kind::Manager(_));
            let signals = signals(format!("out{way}"), false)?;
            outputs.push(Output {
                signals,
                is_asked,
                takes: !is_asked,
                bytes: Vec::new(),
                frames: Vec::new(),
            });
        }
        let specs: BTreeMap<usize, BlockSpec> =
            top.blocks.iter().map(|block| (*block, node.blocks[*block].clone())).collect();
        let setting = |(number, spec): (&usize, &BlockSpec)| {
            let setting = match &spec.kind {
                Kind::Scheduler(scheduler) => Setting::Scheduler(Scheduler::new(scheduler)),
                Kind::OctetSelector(places) => Setting::Selector(Selector::new(places)),
                Kind::Tcam(tcam) => Setting::Tcam(Box::new(Lookup {
                    tcam: Tcam::new(tcam),
                    bank: 0,
                    written: Default::default(),
                    order: Vec::new(),
                    before: vec![0; tcam.size as usize],
                    counts: vec![0; tcam.size as usize],
                })),
                Kind::Mac(mac) => Setting::Mac { up: mac.up, promiscuous: mac.address.is_none() },
                _ => return None,
            };
            Some((*number, setting))
        };
        let settings = specs.iter().filter_map(setting).collect();
        let name = HardwareDevice::name_of(node, top);
        let wires = Wires::new(node, top, &sim);
        let mut device = HardwareDevice {
            name,
            sim,
            specs,
            settings,
            inputs,
            outputs,
            wires,
            unconnected: top.unconnected.clone(),
            answers: Vec::new(),
            failed: None,
        };
        let blocks: Vec<usize> = device.settings.keys().copied().collect();
        blocks.into_iter().for_each(|block| device.apply(block));
        // A MAC takes no frame whose begin it may have missed: not the one that comes as its reset ends.
        device.step();
        Ok(device)
    }

    /// What the device of a design calls itself: other designs have other names.
    pub fn name_of(node: &NodeFile, top: &Top) -> String {
        let (device, design) = (&node.devices[top.device].name, top.fingerprint());
        format!("{}.{device} {design:016x}", node.name)
    }

    /// Has the hardware be as software has set it.
    fn apply(&mut self, block: usize) {
        let name = self.specs[&block].name.clone();
        let values: Vec<(String, u64)> = match &self.settings[&block] {
            Setting::Scheduler(scheduler) => {
                let quanta = (0..scheduler.queues())
                    .map(|queue| (format!("quantum{queue}"), scheduler.quantum(queue).unwrap_or(0).into()));
                std::iter::once(("discipline".to_owned(), scheduler.discipline() as u64))
                    .chain(quanta)
                    .collect()
            }
            Setting::Selector(selector) => {
                let places = selector.places().iter().enumerate();
                places.map(|(octet, place)| (format!("octet{octet}"), u64::from(*place))).collect()
            }
            Setting::Tcam(_) => return self.write_tcam(block, &name),
            Setting::Mac { up, promiscuous } => {
                vec![("up".to_owned(), u64::from(*up)), ("promiscuous".to_owned(), u64::from(*promiscuous))]
            }
        };
        for (port, value) in values {
            self.set(&format!("{name}.{port}"), value);
        }
    }

    fn set(&mut self, port: &str, value: u64) {
        if let Some(signal) = self.sim.input(port) {
            self.sim.set_u64(signal, value);
        }
    }

    fn get(&mut self, port: &str) -> u64 {
        self.sim.output(port).map_or(0, |signal| self.sim.get_u64(signal))
    }

    /// Writes the bank that frames do not meet, and has them meet it.
    fn write_tcam(&mut self, block: usize, name: &str) {
        self.keep_counts(block, name);
        let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) else { return };
        let size = lookup.tcam.size();
        let mut entries: Vec<(usize, Entry)> =
            (0..size).filter_map(|number| Some((number, lookup.tcam.entry(number)?))).collect();
        // The first is it; of those with one priority the first of the file.
        entries.sort_by_key(|(number, entry)| (std::cmp::Reverse(entry.priority), *number));
        lookup.order = entries.iter().map(|(number, _)| *number).collect();
        let bank = 1 - lookup.bank;
        let mut words: Vec<((u32, u32), Bits)> = Vec::new();
        for octet in 0..MAX_OCTETS {
            for value in 0..=255u8 {
                let mut word = Bits::zero(size as u32);
                for (place, (_, entry)) in entries.iter().enumerate() {
                    if value & entry.mask[octet] == entry.value[octet] {
                        word = word.or(&Bits::new(size as u32, 1).shl_by(place as u64));
                    }
                }
                words.push(((octet as u32, (bank as u32) << 8 | u32::from(value)), word));
            }
        }
        let half = (2 * size.next_power_of_two() / 2).max(1) as u32;
        for (place, (_, entry)) in entries.iter().enumerate() {
            let said = u128::from(entry.outcome.class) << 32 | u128::from(entry.outcome.targets);
            words.push(((MAX_OCTETS as u32, bank as u32 * half + place as u32), Bits::new(40, said)));
        }
        words.retain(|(at, word)| lookup.written[bank].get(at) != Some(word));
        lookup.written[bank].extend(words.iter().cloned());
        lookup.bank = bank;
        let miss = lookup.tcam.miss();
        for ((memory, address), word) in words {
            self.set(&format!("{name}.write_enable"), 1);
            self.set(&format!("{name}.write_memory"), memory.into());
            self.set(&format!("{name}.write_address"), address.into());
            if let Some(signal) = self.sim.input(&format!("{name}.write_data")) {
                self.sim.set(signal, &word);
            }
            self.step();
        }
        self.set(&format!("{name}.write_enable"), 0);
        self.set(&format!("{name}.bank"), bank as u64);
        self.set(&format!("{name}.miss"), u64::from(miss.class) << 32 | u64::from(miss.targets));
    }

    /// Adds what the places have counted to their entries.
    fn keep_counts(&mut self, block: usize, name: &str) {
        let Some(Setting::Tcam(lookup)) = self.settings.get(&block) else { return };
        (0..lookup.order.len()).for_each(|place| self.keep_count(block, name, place));
    }

    /// Adds what a place has counted to its entry.
    fn keep_count(&mut self, block: usize, name: &str, place: usize) {
        let count = self.count(name, place);
        if let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) {
            let entry = lookup.order[place];
            lookup.counts[entry] =
                lookup.counts[entry].wrapping_add(count.wrapping_sub(lookup.before[place]));
            lookup.before[place] = count;
        }
    }

    /// What a place of a TCAM has counted.
    fn count(&mut self, name: &str, place: usize) -> u64 {
        self.set(&format!("{name}.count_of"), place as u64);
        self.step();
        self.get(&format!("{name}.count"))
    }

    /// A cycle in which nothing leaves by paths.
    fn step(&mut self) {
        self.wires.begin(&mut self.sim);
        self.wires.end(&mut self.sim);
        self.sim.step();
    }

    /// A cycle: beats leave by paths that take them; gives whether one did, or links were not idle.
    fn cycle(&mut self) -> bool {
        self.wires.begin(&mut self.sim);
        for output in &self.outputs {
            self.sim.set_u64(output.signals.ready, output.takes.into());
        }
        let mut moved = !self.wires.are_idle();
        for output in &mut self.outputs {
            let Signals { data, keep, last, user, valid, .. } = output.signals;
            if !output.takes || self.sim.get_u64(valid) == 0 {
                continue;
            }
            moved = true;
            let (data, keep) = (self.sim.get_u64(data).to_le_bytes(), self.sim.get_u64(keep));
            output.bytes.extend(data.iter().take(keep.trailing_ones() as usize));
            if self.sim.get_u64(last) == 1 {
                let facts = facts_of(self.sim.limbs(user));
                output.frames.push(Item { bytes: std::mem::take(&mut output.bytes), facts });
                // One that was asked for is one.
                output.takes = !output.is_asked;
            }
        }
        self.wires.end(&mut self.sim);
        self.sim.step();
        moved
    }

    /// A frame comes in by a way.
    fn feed(&mut self, way: usize, item: &Item) -> Result<(), &'static str> {
        let signals = self.inputs[way];
        let beats = item.bytes.chunks(BEAT).count();
        self.sim.set_limbs(signals.user, &limbs_of(&item.facts));
        for (number, bytes) in (1..).zip(item.bytes.chunks(BEAT)) {
            let mut data = [0; BEAT];
            data[..bytes.len()].copy_from_slice(bytes);
            self.sim.set_u64(signals.data, u64::from_le_bytes(data));
            self.sim.set_u64(signals.keep, u64::MAX >> (64 - bytes.len()));
            self.sim.set_u64(signals.last, u64::from(number == beats));
            self.sim.set_u64(signals.valid, 1);
            let mut waited = 0;
            while self.sim.get_u64(signals.ready) == 0 {
                self.cycle();
                waited += 1;
                if waited > MAX_WAIT {
                    return Err("a block takes no beats");
                }
            }
            self.cycle();
        }
        self.sim.set_u64(signals.valid, 0);
        self.settle(beats);
        Ok(())
    }

    /// Until what has come in so many beats has gone as far as it can, for at most [`MAX_SETTLE`] cycles: frames may go round for ever.
    fn settle(&mut self, beats: usize) {
        let mut left = 2 * beats + SETTLE;
        for _ in 0..MAX_SETTLE {
            left = if self.cycle() { left.max(SETTLE) } else { left - 1 };
            if left == 0 {
                return;
            }
        }
    }

    /// The next frame of a way that is asked.
    fn ask(&mut self, way: usize) {
        self.outputs[way].takes = true;
        let mut idle = 0;
        while self.outputs[way].takes && idle < SETTLE / 4 {
            idle = if self.cycle() { 0 } else { idle + 1 };
        }
        self.outputs[way].takes = false;
    }

    fn answer(&mut self) {
        for (way, output) in self.outputs.iter_mut().enumerate() {
            self.answers.extend(output.frames.drain(..).map(|item| (way as u16, item.encode())));
        }
        let left = self.wires.take().into_iter();
        self.answers.extend(left.map(|(wire, bytes)| (WIRE | wire as u16, bytes)));
        self.answers.push((DONE, Vec::new()));
    }
}

/// Facts as words, the lowest first.
fn limbs_of(facts: &Facts) -> [u64; FACTS.div_ceil(64) as usize] {
    let mut limbs = [0; FACTS.div_ceil(64) as usize];
    for (at, byte) in facts.encode().iter().rev().enumerate() {
        limbs[at / 8] |= u64::from(*byte) << (8 * (at % 8));
    }
    limbs
}

fn facts_of(limbs: impl Iterator<Item = u64>) -> Facts {
    let mut bytes = [0; FACTS_BYTES];
    for (at, byte) in limbs.flat_map(u64::to_le_bytes).take(FACTS_BYTES).enumerate() {
        bytes[FACTS_BYTES - 1 - at] = byte;
    }
    Facts::decode(&bytes)
}

impl Device for HardwareDevice {
    fn shape(&self) -> Shape {
        Shape { name: self.name.clone(), bytes: MAP_BYTES, ports: DONE }
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        let (window, word) = place(address);
        let none = || Fault::new(format_args!("{address:#x} is no register of a block in hardware"));
        if window == 0 && word / 2 == UNCONNECTED / 2 {
            let ports = self.unconnected.clone();
            return Ok(half(ports.iter().map(|port| self.get(port)).sum(), word));
        }
        let block = window.checked_sub(1).ok_or_else(none)?;
        let name = self.specs.get(&block).ok_or_else(none)?.name.clone();
        let counter = match (&self.specs[&block].kind, self.settings.get(&block)) {
            (_, Some(Setting::Scheduler(scheduler))) => return Ok(scheduler.read(word)),
            (_, Some(Setting::Selector(selector))) => return Ok(selector.read(word)),
            (_, Some(Setting::Mac { up, .. })) if word == 0 => return Ok(u32::from(*up)),
            (_, Some(Setting::Mac { promiscuous, .. })) if word == 1 => return Ok(u32::from(*promiscuous)),
            (_, Some(Setting::Tcam(_))) if word < 2 => self.get(&format!("{name}.misses")),
            (_, Some(Setting::Tcam(lookup))) => {
                let at = word.wrapping_sub(ENTRY_START);
                let (entry, field) = ((at / ENTRY_WORDS) as usize, at % ENTRY_WORDS);
                match field {
                    12 | 13 if entry < lookup.tcam.size() => {
                        // Each count that is read takes a cycle: those of the other entries stay where they are.
                        if let Some(place) = lookup.order.iter().position(|of| *of == entry) {
                            self.keep_count(block, &name, place);
                        }
                        match self.settings.get(&block) {
                            Some(Setting::Tcam(lookup)) => lookup.counts[entry],
                            _ => 0,
                        }
                    }
                    _ => return Ok(lookup.tcam.read(word)),
                }
            }
            // What others count is at ports that are named as the registers.
            (kind, _) => {
                let of = registers(kind).into_iter().find(|of| (of.word..of.word + of.words).contains(&word));
                let Some(of) = of else { return Ok(0) };
                let value = self.get(&format!("{name}.{}", of.name));
                return Ok((value >> (32 * (word - of.word))) as u32);
            }
        };
        Ok(half(counter, word))
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        let (window, at) = place(address);
        let refuse = || Fault::new(format_args!("{address:#x} cannot be written"));
        let block = window.checked_sub(1).ok_or_else(refuse)?;
        match self.settings.get_mut(&block).ok_or_else(refuse)? {
            Setting::Scheduler(scheduler) => scheduler.write(at, word).map_err(Fault::new)?,
            Setting::Selector(selector) => selector.write(at, word).map_err(Fault::new)?,
            Setting::Tcam(lookup) => {
                let Some(entry) = lookup.tcam.write(at, word).map_err(Fault::new)? else { return Ok(()) };
                let name = self.specs[&block].name.clone();
                self.keep_counts(block, &name);
                if let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) {
                    lookup.counts[entry] = 0;
                }
            }
            Setting::Mac { up, promiscuous } => {
                match at {
                    0 if word <= 1 => *up = word == 1,
                    1 if word <= 1 => *promiscuous = word == 1,
                    _ => return Err(refuse()),
                };
            }
        }
        self.apply(block);
        Ok(())
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        if port == DONE {
            self.answers.push((DONE, frame.to_vec()));
            return Ok(());
        }
        let way = usize::from(port & !(ASKS | WIRE));
        if port & WIRE != 0 && port < ASKS {
            if way < self.wires.count() {
                self.wires.send(way, frame);
                self.settle(frame.len().div_ceil(BEAT));
            }
        } else if port >= ASKS {
            if self.outputs.get(way).is_some_and(|output| output.is_asked) {
                self.ask(way);
            }
        } else if way < self.inputs.len() {
            let item = Item::decode(frame).map_err(Fault::new)?;
            if item.bytes.is_empty() || item.bytes.len() > MAX_FRAME {
                self.answer();
                return Err(Fault::new(format_args!("a frame of {} bytes", item.bytes.len())));
            }
            if let Err(why) = self.feed(way, &item) {
                self.failed = Some(why);
            }
        }
        self.answer();
        Ok(())
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        for (port, bytes) in self.answers.drain(..) {
            tell(Event::Frame { port, bytes });
        }
        self.failed.map_or(Ok(()), |why| Err(Fault::new(why)))
    }
}
