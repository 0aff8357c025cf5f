//! One design in both simulators, told the same: what they say is compared.

use crate::model::{Model, Port, Sim};
use crate::verilated::{Effort, Verilated};
use millrace_netlist::{Design, SignalKind};
use std::time::{Duration, Instant};

/// A design in the simulator of the hardware IR, and as Verilator makes a model of its SystemVerilog.
pub struct Pair {
    ours: Model,
    theirs: Model,
    /// Name, width, and the port in both; of inputs that nothing depends on the first is none.
    inputs: Vec<(u32, Option<Port>, Port)>,
    outputs: Vec<(String, Port, Port)>,
    /// What the inputs are.
    given: Vec<Vec<u64>>,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("outputs", &self.outputs.len()).finish_non_exhaustive()
    }
}

impl Pair {
    /// Of a design, in its first cycle.
    ///
    /// # Errors
    /// The design is not well formed, or Verilator cannot make a model.
    pub fn new(design: &Design, effort: Effort) -> Result<Pair, String> {
        let ours = Model::new(design, Sim::InProcess)?;
        let theirs = Model::Verilated(Box::new(Verilated::new(design, effort)?));
        let top = design.top().ok_or("the design has no top")?;
        let module = &design.modules[top];
        let mut inputs = Vec::new();
        for port in module.inputs.values() {
            let kind = SignalKind::Input;
            let other = theirs.port(kind, &port.name).ok_or_else(|| format!("no input {}", port.name))?;
            inputs.push((port.width, ours.port(kind, &port.name), other));
        }
        let mut outputs = Vec::new();
        for port in module.outputs.values() {
            let of = |model: &Model| {
                let found = model.port(SignalKind::Output, &port.name);
                found.ok_or_else(|| format!("no output {}", port.name))
            };
            outputs.push((port.name.clone(), of(&ours)?, of(&theirs)?));
        }
        Ok(Pair { ours, theirs, inputs, outputs, given: Vec::new() })
    }

    /// Sets all inputs, of words of 64 bits.
    pub fn set_inputs(&mut self, words: &mut dyn FnMut() -> u64) {
        self.given.clear();
        for (width, port, other) in &self.inputs {
            let value: Vec<u64> = (0..width.div_ceil(64)).map(|_| words()).collect();
            if let Some(port) = port {
                self.ours.set_limbs(*port, &value);
            }
            self.theirs.set_limbs(*other, &value);
            self.given.push(value);
        }
    }

    /// An output that is not the same in both in this cycle: its name and the two values.
    pub fn difference(&mut self) -> Option<(String, String, String)> {
        self.theirs.look_at(self.outputs.iter().map(|(_, _, other)| *other));
        let found = self.outputs.iter().find_map(|(name, port, other)| {
            let (ours, theirs) = (self.ours.get(*port), self.theirs.get(*other));
            (ours != theirs).then(|| (name.clone(), ours.to_string(), theirs.to_string()))
        });
        match self.theirs.failure() {
            Some(why) => Some(("the model".to_owned(), "running".to_owned(), why)),
            None => found,
        }
    }

    /// Goes to the next cycle in both.
    pub fn step(&mut self) {
        self.ours.step();
        self.theirs.step();
    }

    /// The cycles a second of both, with other inputs in each cycle, each measured for so long.
    pub fn speed(&mut self, time: Duration) -> (f64, f64) {
        let turned: Vec<Vec<u64>> =
            self.given.iter().map(|words| words.iter().map(|word| !word).collect()).collect();
        let rate = |model: &mut Model, ports: &[Option<Port>]| {
            let (began, mut cycles) = (Instant::now(), 0u32);
            while began.elapsed() < time {
                for values in [&self.given, &turned].into_iter().cycle().take(64) {
                    for (port, value) in ports.iter().zip(values) {
                        if let Some(port) = port {
                            model.set_limbs(*port, value);
                        }
                    }
                    model.step();
                    cycles += 1;
                }
            }
            let last = self.outputs.first();
            if let (Model::Verilated(_), Some((_, _, port))) = (&model, last) {
                // The answer comes when all cycles are done.
                model.look_at([*port].into_iter());
            }
            f64::from(cycles) / began.elapsed().as_secs_f64()
        };
        let ours: Vec<_> = self.inputs.iter().map(|(_, port, _)| *port).collect();
        let theirs: Vec<_> = self.inputs.iter().map(|(_, _, port)| Some(*port)).collect();
        (rate(&mut self.ours, &ours), rate(&mut self.theirs, &theirs))
    }
}
