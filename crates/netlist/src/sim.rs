//! The cycle simulator: a design as a compact program over words of 64 bits.
//!
//! [`Simulator::new`] makes one from a design: `flatten` drops the hierarchy, `lower` makes values words and shares equal ones,
//! `schedule` orders them in long runs of equal operations, `activity` knows what has to be computed again. A cycle then is one pass
//! over that program or over what has changed, without allocation, followed by the edge of the clock: what registers, clocked reads
//! and memories take, all from the values before it.
//!
//! ```
//! use millrace_netlist::{Design, ModuleBuilder, Simulator};
//!
//! let mut m = ModuleBuilder::new("counter");
//! let (count, value) = m.register("count", 8, Some(0));
//! let next = m.add_number(value, 1);
//! m.set_next(count, next);
//! m.output("value", value);
//! let mut design = Design::new();
//! design.add(m.finish());
//!
//! let mut sim = Simulator::new(&design).unwrap();
//! let value = sim.output("value").unwrap();
//! for cycle in 0..300 {
//!     assert_eq!(sim.get_u64(value), cycle % 256);
//!     sim.step();
//! }
//! ```

mod activity;
pub(crate) mod flatten;
mod lower;
mod run;
mod schedule;
mod vcd;
mod wide;
mod words;

pub use lower::SignalKind;
pub use vcd::Vcd;

use crate::*;
use lower::{Lowered, limb_width, limbs};
use run::Machine;
use std::collections::HashMap;

/// A running design.
pub struct Simulator {
    machine: Machine,
    signals: Vec<Signal>,
    names: HashMap<(SignalKind, String), SignalId>,
    memory_names: HashMap<String, MemoryHandle>,
    /// Whether values may be older than what has been set.
    stale: bool,
    cycle: u64,
    values: usize,
}

/// A signal of a simulator: an input, an output, a register, or a value with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalId(u32);

/// A memory of a simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryHandle(u32);

/// What a simulator knows of a signal.
struct Signal {
    name: String,
    kind: SignalKind,
    width: u32,
    /// The places of its words.
    places: Box<[u32]>,
}

impl Simulator {
    /// A simulator of a design, in its first cycle, all inputs 0 and the reset inactive.
    ///
    /// # Errors
    /// Why the design is not well formed.
    pub fn new(design: &Design) -> Result<Simulator, Vec<VerifierError>> {
        verify(design)?;
        let top = design.top().expect("a verified design");
        let flat = flatten::Flat::new(design, top);
        let mut lowered = lower::lower(&flat);
        let roots = run::roots(&lowered);
        let schedule = schedule::schedule(&mut lowered, &roots);
        let places =
            |words: &[words::Word]| words.iter().map(|word| schedule.places[*word as usize]).collect();
        let mut signals = Vec::new();
        let mut names = HashMap::new();
        for signal in &lowered.signals {
            let places: Box<[u32]> = places(&signal.words);
            // Folded away, or shared with nothing that is computed.
            if places.contains(&u32::MAX) {
                continue;
            }
            names.entry((signal.kind, signal.name.clone())).or_insert(SignalId(signals.len() as u32));
            signals.push(Signal {
                name: signal.name.clone(),
                kind: signal.kind,
                width: signal.width,
                places,
            });
        }
        let memory_names = memory_names(&lowered);
        let values = lowered.values;
        let machine = Machine::new(lowered, schedule);
        Ok(Simulator { machine, signals, names, memory_names, stale: true, cycle: 0, values })
    }

    /// The signal of that kind and name. The names of what is in an instance start with the name of that and a dot.
    pub fn signal(&self, kind: SignalKind, name: &str) -> Option<SignalId> {
        self.names.get(&(kind, name.to_owned())).copied()
    }

    /// The input of the top of that name.
    pub fn input(&self, name: &str) -> Option<SignalId> {
        self.signal(SignalKind::Input, name)
    }

    /// The output of the top of that name.
    pub fn output(&self, name: &str) -> Option<SignalId> {
        self.signal(SignalKind::Output, name)
    }

    /// The register of that name, `queue.head` for `head` of the instance `queue`.
    pub fn register(&self, name: &str) -> Option<SignalId> {
        self.signal(SignalKind::Register, name)
    }

    /// The memory of that name, `queue.words` for `words` of the instance `queue`.
    pub fn memory(&self, name: &str) -> Option<MemoryHandle> {
        self.memory_names.get(name).copied()
    }

    /// All signals.
    pub fn signals(&self) -> impl Iterator<Item = SignalId> {
        (0..self.signals.len() as u32).map(SignalId)
    }

    /// The name, the kind and the width of a signal.
    pub fn describe(&self, signal: SignalId) -> (&str, SignalKind, u32) {
        let signal = &self.signals[signal.0 as usize];
        (&signal.name, signal.kind, signal.width)
    }

    /// Sets an input or a register, cut to its width; what is computed is left alone.
    pub fn set_u64(&mut self, signal: SignalId, value: u64) {
        self.set_limbs(signal, &[value]);
    }

    /// Sets an input or a register to a value, cut or widened with zeros to its width; what is computed is left alone.
    pub fn set(&mut self, signal: SignalId, value: &Bits) {
        let value: Vec<u64> = value.limbs().collect();
        self.set_limbs(signal, &value);
    }

    /// As [`Simulator::set`], the value in words of 64 bits, the lowest first.
    pub fn set_limbs(&mut self, signal: SignalId, value: &[u64]) {
        let signal = &self.signals[signal.0 as usize];
        if matches!(signal.kind, SignalKind::Input | SignalKind::Register) {
            for (at, place) in signal.places.iter().enumerate() {
                let mask = u64::MAX >> (64 - limb_width(signal.width, at as u32));
                self.machine.set(*place, value.get(at).copied().unwrap_or(0) & mask);
            }
            self.stale = true;
        }
    }

    /// Whether the reset is active at the next edges of the clock.
    pub fn set_reset(&mut self, active: bool) {
        self.machine.reset = active;
    }

    /// The lowest 64 bits of a signal in this cycle.
    pub fn get_u64(&mut self, signal: SignalId) -> u64 {
        self.settle();
        self.machine.slots[self.signals[signal.0 as usize].places[0] as usize]
    }

    /// The value of a signal in this cycle.
    pub fn get(&mut self, signal: SignalId) -> Bits {
        self.settle();
        let (signal, slots) = (&self.signals[signal.0 as usize], &self.machine.slots);
        bits(signal.width, signal.places.iter().map(|place| slots[*place as usize]))
    }

    /// The value of a signal in this cycle in words of 64 bits, the lowest first.
    pub fn limbs(&mut self, signal: SignalId) -> impl Iterator<Item = u64> {
        self.settle();
        let (signal, slots) = (&self.signals[signal.0 as usize], &self.machine.slots);
        signal.places.iter().map(|place| slots[*place as usize])
    }

    /// A word of a memory; 0 beyond its end.
    pub fn read_memory(&self, memory: MemoryHandle, address: u32) -> Bits {
        let memory = &self.machine.memories[memory.0 as usize];
        bits(memory.width, (0..memory.limbs).map(|at| memory.word(address.into(), at)))
    }

    /// Writes a word of a memory, as tests and control do it: at once, past all write ports. Beyond its end it does nothing.
    pub fn write_memory(&mut self, memory: MemoryHandle, address: u32, value: &Bits) {
        let width = self.machine.memories[memory.0 as usize].width;
        self.machine.write(memory.0 as usize, address, value.zero_extend(width).limbs());
        self.stale = true;
    }

    /// Computes all values of this cycle, if they are not there yet.
    pub fn settle(&mut self) {
        if self.stale {
            self.machine.settle();
            self.stale = false;
        }
    }

    /// Goes to the next cycle: one rising edge of the clock.
    pub fn step(&mut self) {
        self.settle();
        self.machine.edge();
        self.stale = true;
        self.cycle += 1;
    }

    /// The number of edges so far.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// How often a clocked port of a memory that promises otherwise read a word while it was written (see
    /// [`Memory::never_collides`]).
    pub fn collisions(&self) -> u64 {
        self.machine.collisions
    }

    /// How many values of the design are computed in each cycle, and how many operations on words that takes.
    pub fn work(&self) -> (usize, usize) {
        (self.values, self.machine.steps())
    }

    /// How many runs of equal operations a cycle has.
    pub fn runs(&self) -> usize {
        self.machine.runs()
    }
}

fn memory_names(lowered: &Lowered) -> HashMap<String, MemoryHandle> {
    let numbered = lowered.memories.iter().enumerate();
    numbered.map(|(at, memory)| (memory.name.clone(), MemoryHandle(at as u32))).collect()
}

/// A value from its words.
fn bits(width: u32, words: impl DoubleEndedIterator<Item = u64> + Clone) -> Bits {
    let count = limbs(width);
    if count == 1 {
        return words.clone().next().map_or(Bits::zero(width), |word| Bits::new(width, word.into()));
    }
    let mut parts = words.rev().map(|word| Bits::new(64, word.into()));
    let first = parts.next().unwrap_or(Bits::zero(64));
    parts.fold(first, |high, low| high.concat(&low)).zero_extend(width)
}
