//! The design of a node in simulation: frames at its paths and links, requests at the bus of its registers.

use super::modules::{BEAT, FACTS};
use super::top::{NOW, Top};
use super::wires::Wires;
use crate::interface::{FACTS_BYTES, Facts, Item};
use crate::model::{Kind, NodeFile};
use millrace_netlist::{SignalId, Simulator, in_words};
use millrace_rtl::map::{Master, Pending, RegisterAccess, Request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most cycles that a beat waits to be taken.
const MAX_WAIT: usize = 65_536;
/// Most cycles until what has come has gone as far as it can: what MACs of GMII take for the frames that wait for them.
const MAX_SETTLE: usize = 1 << 20;
/// Cycles that a frame takes through blocks, apart from its beats.
const SETTLE: usize = 200;
/// Most cycles of a request at the bus.
const MAX_REQUEST: usize = 1000;

/// The simulated design.
pub(super) struct Cycles {
    sim: Simulator,
    /// That of the registers of the node, and those of programs.
    buses: Vec<Master>,
    /// Whether frames are in a program.
    busy: Vec<SignalId>,
    now: Option<SignalId>,
    inputs: Vec<Signals>,
    outputs: Vec<Output>,
    wires: Wires,
    /// How often a frame and its copies may pass a block as a whole before they are at a path or a link.
    passes: usize,
}

/// The signals of a stream.
#[derive(Clone, Copy, Debug)]
struct Signals {
    data: SignalId,
    keep: SignalId,
    last: SignalId,
    user: SignalId,
    valid: SignalId,
    ready: SignalId,
}

impl Signals {
    fn of(sim: &Simulator, name: &str, comes_in: bool) -> Result<Signals, String> {
        let find = |suffix: &str, is_input: bool| {
            let port = format!("{name}_{suffix}");
            let found = if is_input { sim.input(&port) } else { sim.output(&port) };
            found.ok_or_else(|| format!("the design has no port {port}"))
        };
        Ok(Signals {
            data: find("tdata", comes_in)?,
            keep: find("tkeep", comes_in)?,
            last: find("tlast", comes_in)?,
            user: find("tuser", comes_in)?,
            valid: find("tvalid", comes_in)?,
            ready: find("tready", !comes_in)?,
        })
    }
}

/// A way out, and the frame that is leaving by it.
#[derive(Debug)]
struct Output {
    signals: Signals,
    is_asked: bool,
    takes: bool,
    bytes: Vec<u8>,
    frames: Vec<Item>,
}

impl Cycles {
    /// After the reset.
    ///
    /// # Errors
    /// The design breaks a rule.
    pub(super) fn new(node: &NodeFile, top: &Top) -> Result<Cycles, String> {
        let sim = Simulator::new(&top.design).map_err(|errors| in_words(&errors))?;
        let input = |way: usize| Signals::of(&sim, &format!("in{way}"), true);
        let inputs = (0..top.inputs.len()).map(input).collect::<Result<_, _>>()?;
        let mut outputs = Vec::new();
        for (way, from) in top.outputs.iter().enumerate() {
            let kind = &node.blocks[from.block].kind;
            let is_asked = kind.is_asked() || matches!(kind, Kind::Manager(_));
            let signals = Signals::of(&sim, &format!("out{way}"), false)?;
            let (bytes, frames) = (Vec::new(), Vec::new());
            outputs.push(Output { signals, is_asked, takes: !is_asked, bytes, frames });
        }
        let wires = Wires::new(node, top, &sim);
        let mut buses = vec![Master::of(&sim, top.bus)];
        let mut busy = Vec::new();
        for part in &top.programs {
            let name = &node.blocks[part.block()].name;
            buses.push(Master::of_part(&sim, part.device().options().bus, &format!("{name}.")));
            busy.extend(sim.output(&format!("{name}.busy")));
        }
        let now = sim.input(NOW);
        // Each block may keep a frame until it is there as a whole, and a demultiplexer sends its copies one after the other.
        let kinds = top.blocks.iter().map(|block| &node.blocks[*block].kind);
        let passes = kinds.map(|kind| kind.outputs().len().max(1)).sum::<usize>() + 2;
        Ok(Cycles { sim, buses, busy, now, inputs, outputs, wires, passes })
    }

    /// How many paths lead in.
    pub(super) fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Whether a way out is there that frames leave by when they are asked for.
    pub(super) fn is_asked(&self, way: usize) -> bool {
        self.outputs.get(way).is_some_and(|output| output.is_asked)
    }

    /// From now on the time of programs is this.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        if let Some(now) = self.now {
            self.sim.set_u64(now, now_ns);
        }
    }

    /// A cycle, with a request at a bus: beats leave by paths that take them. Gives whether one did, or links or programs were not idle, and
    /// the answer to the request.
    fn pass(&mut self, request: Option<(usize, &mut Pending)>) -> (bool, Option<u32>) {
        self.wires.begin(&mut self.sim);
        for output in &self.outputs {
            self.sim.set_u64(output.signals.ready, output.takes.into());
        }
        let answer = request.and_then(|(bus, pending)| self.buses[bus].cycle(&mut self.sim, pending));
        let mut moved = !self.wires.are_idle() || self.busy.iter().any(|busy| self.sim.get_u64(*busy) != 0);
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
        (moved, answer)
    }

    /// A cycle; gives whether a beat left, or links or programs were not idle.
    fn cycle(&mut self) -> bool {
        self.pass(None).0
    }

    /// A frame comes in by a way.
    pub(super) fn feed(&mut self, way: usize, item: &Item) -> Result<(), &'static str> {
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

    /// A frame comes by the link of a MAC; nothing where there is none of that number.
    pub(super) fn come_by(&mut self, wire: usize, frame: &[u8]) {
        if wire < self.wires.count() {
            self.wires.send(wire, frame);
            self.settle(frame.len().div_ceil(BEAT));
        }
    }

    /// Until what has come in so many beats has gone as far as it can, for at most [`MAX_SETTLE`] cycles: frames may go round for ever.
    fn settle(&mut self, beats: usize) {
        let patience = self.passes * beats + SETTLE;
        let mut left = patience;
        for _ in 0..MAX_SETTLE {
            left = if self.cycle() { patience } else { left - 1 };
            if left == 0 {
                return;
            }
        }
    }

    /// The next frame of a way that is asked.
    pub(super) fn ask(&mut self, way: usize) {
        self.outputs[way].takes = true;
        let mut idle = 0;
        while self.outputs[way].takes && idle < SETTLE / 4 {
            idle = if self.cycle() { 0 } else { idle + 1 };
        }
        self.outputs[way].takes = false;
    }

    /// What has left by paths, each with the number of its way.
    pub(super) fn left(&mut self) -> impl Iterator<Item = (usize, Item)> {
        let outputs = self.outputs.iter_mut().enumerate();
        outputs.flat_map(|(way, output)| output.frames.drain(..).map(move |item| (way, item)))
    }

    /// What has left by links, each with the number of its MAC.
    pub(super) fn left_by_links(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.wires.take()
    }

    fn request(&mut self, bus: usize, request: Request) -> Result<u32, String> {
        let mut pending = Pending::new(request);
        for _ in 0..MAX_REQUEST {
            if let (_, Some(answer)) = self.pass(Some((bus, &mut pending))) {
                self.buses[bus].idle(&mut self.sim);
                return Ok(answer);
            }
        }
        Err("the bus of the design does not answer".to_owned())
    }
}

/// One of the buses of a simulated design, which frames and all buses share.
#[derive(Clone)]
pub(super) struct AtBus {
    cycles: Arc<Mutex<Cycles>>,
    bus: usize,
}

impl AtBus {
    /// Those of a design: that of the registers of the node, and those of its programs.
    pub(super) fn all(cycles: Cycles) -> impl Iterator<Item = AtBus> {
        let buses = cycles.buses.len();
        let cycles = Arc::new(Mutex::new(cycles));
        (0..buses).map(move |bus| AtBus { cycles: Arc::clone(&cycles), bus })
    }

    /// The design.
    pub(super) fn cycles(&self) -> MutexGuard<'_, Cycles> {
        self.cycles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegisterAccess for AtBus {
    type Error = String;

    fn read(&mut self, offset: u32) -> Result<u32, String> {
        self.cycles().request(self.bus, Request::Read(offset))
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), String> {
        self.cycles().request(self.bus, Request::Write(offset, value)).map(|_| ())
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
