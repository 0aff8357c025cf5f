//! A design that runs: in the simulator of the hardware IR, or as a program that Verilator has made of its SystemVerilog.

use crate::verilated::{Effort, Verilated};
use millrace_netlist::{Design, MemoryHandle, SignalId, SignalKind, Simulator, in_words};
use millrace_pipeline::Bits;

/// What runs designs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sim {
    /// The simulator of the hardware IR, in this process.
    #[default]
    InProcess,
    /// A model that Verilator makes of the printed SystemVerilog, as a process of its own.
    Verilator,
}

/// A port of the top of a design that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port(pub(crate) u32);

/// A design that runs.
pub(crate) enum Model {
    InProcess { simulator: Box<Simulator>, ports: Vec<SignalId> },
    Verilated(Box<Verilated>),
}

impl Model {
    /// Of a design, in its first cycle.
    pub(crate) fn new(design: &Design, sim: Sim) -> Result<Model, String> {
        match sim {
            Sim::InProcess => {
                let simulator = Simulator::new(design).map_err(|errors| in_words(&errors))?;
                let ports = simulator.signals().collect();
                Ok(Model::InProcess { simulator: Box::new(simulator), ports })
            }
            Sim::Verilator => Ok(Model::Verilated(Box::new(Verilated::new(design, Effort::Fast)?))),
        }
    }

    /// The input or output of that name; none: nothing depends on it.
    pub(crate) fn port(&self, kind: SignalKind, name: &str) -> Option<Port> {
        match self {
            Model::InProcess { simulator, ports } => {
                let signal = simulator.signal(kind, name)?;
                ports.iter().position(|port| *port == signal).map(|at| Port(at as u32))
            }
            Model::Verilated(model) => model.port(kind, name),
        }
    }

    /// The memory of that name; none: it is not reached but by ports.
    pub(crate) fn memory(&self, name: &str) -> Option<MemoryHandle> {
        match self {
            Model::InProcess { simulator, .. } => simulator.memory(name),
            Model::Verilated(_) => None,
        }
    }

    /// Sets a word of a memory in this cycle; a word has as many bits as the memory or more.
    pub(crate) fn fill(&mut self, memory: MemoryHandle, address: u32, word: &Bits) {
        if let Model::InProcess { simulator, .. } = self {
            simulator.write_memory(memory, address, word);
        }
    }

    /// Sets an input.
    pub(crate) fn set(&mut self, port: Port, value: &Bits) {
        let limbs: Vec<u64> = value.limbs().collect();
        self.set_limbs(port, &limbs);
    }

    /// How often a memory that promises otherwise was read where it was written; a model of Verilator does not know.
    #[cfg(test)]
    pub(crate) fn collisions(&self) -> u64 {
        match self {
            Model::InProcess { simulator, .. } => simulator.collisions(),
            Model::Verilated(_) => 0,
        }
    }

    /// Sets an input, of words of 64 bits, the lowest first.
    pub(crate) fn set_limbs(&mut self, port: Port, limbs: &[u64]) {
        match self {
            Model::InProcess { simulator, ports } => simulator.set_limbs(ports[port.0 as usize], limbs),
            Model::Verilated(model) => model.set(port, limbs),
        }
    }

    /// Says which outputs are looked at next in this cycle.
    pub(crate) fn look_at(&mut self, outputs: impl Iterator<Item = Port>) {
        if let Model::Verilated(model) = self {
            model.look_at(outputs);
        }
    }

    /// The value of an output in this cycle.
    pub(crate) fn get(&mut self, port: Port) -> Bits {
        match self {
            Model::InProcess { simulator, ports } => simulator.get(ports[port.0 as usize]),
            Model::Verilated(model) => model.get(port),
        }
    }

    /// Whether an output of one bit is 1 in this cycle.
    pub(crate) fn is_one(&mut self, port: Port) -> bool {
        match self {
            Model::InProcess { simulator, ports } => simulator.get_u64(ports[port.0 as usize]) == 1,
            Model::Verilated(model) => !model.get(port).is_zero(),
        }
    }

    /// Goes to the next cycle.
    pub(crate) fn step(&mut self) {
        match self {
            Model::InProcess { simulator, .. } => simulator.step(),
            Model::Verilated(model) => model.step(),
        }
    }

    /// Why what was got since the last call does not count.
    pub(crate) fn failure(&mut self) -> Option<String> {
        match self {
            Model::InProcess { .. } => None,
            Model::Verilated(model) => model.failure(),
        }
    }
}
