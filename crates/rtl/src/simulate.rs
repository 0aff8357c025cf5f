//! A stage in simulation: a frame goes in, cycles pass, units answer, what is said comes out.

use crate::assemble::{WritePorts, unit_of};
use crate::frame_bits::frame_bits;
use crate::hardware::{Hardware, Stage};
use crate::model::{Model, Port, Sim};
use crate::stage::{Input, Output, Unit};
use crate::tables::{Contents, TableUnit};
use crate::units::Objects;
use millrace_netlist::SignalKind;
use millrace_pipeline::{Bits, Type};
use millrace_state::State;

/// The pipeline of a stage, running.
pub(crate) struct Simulation {
    model: Model,
    window: u32,
    valid: Option<Port>,
    frame: Option<Port>,
    inputs: Vec<(Input, u32, Option<Port>)>,
    outputs: Vec<(Output, Port)>,
    /// In the order of the program.
    accesses: Vec<Access>,
    tables: Vec<Table>,
    latency: u32,
}

/// A table that has units in the design.
struct Table {
    contents: Contents,
    write: [Option<Port>; 3],
}

struct Access {
    unit: Unit,
    /// The cycle of the request.
    cycle: u32,
    enable: Port,
    inputs: Vec<(Port, Type)>,
    width: u32,
    answer: Option<Port>,
    /// Whether a unit of the design answers.
    has_unit: bool,
}

impl Simulation {
    /// Of a stage.
    pub(crate) fn new(hardware: &Hardware, stage: &Stage, sim: Sim) -> Result<Simulation, String> {
        let Stage { dataflow, placed: schedule, ports, .. } = stage;
        let model = Model::new(&hardware.design(stage, true), sim)?;
        let output = |name: &str| {
            model.port(SignalKind::Output, name).ok_or_else(|| format!("there is no output {name}"))
        };
        let input = |name: &str| model.port(SignalKind::Input, name);
        let mut accesses = Vec::new();
        for ((access, ports), cycle) in dataflow.accesses.iter().zip(&ports.accesses).zip(&schedule.access) {
            let inputs = access.inputs.iter().zip(&ports.inputs);
            accesses.push(Access {
                unit: access.unit.clone(),
                cycle: *cycle,
                enable: output(&ports.enable)?,
                inputs: inputs
                    .map(|((_, ty), name)| Ok((output(name)?, *ty)))
                    .collect::<Result<_, String>>()?,
                width: access.answer,
                answer: ports.answer.as_ref().and_then(|name| input(name)),
                has_unit: unit_of(&hardware.units, access).is_some(),
            });
        }
        let used = |unit: &&TableUnit| {
            dataflow.accesses.iter().any(|access| access.unit == Unit::Lookup(unit.table))
        };
        let tables = hardware.units.iter().filter(used).map(|unit| {
            let ports = WritePorts::of(&hardware.program, unit.table);
            let write = [&ports.enable, &ports.address, &ports.data].map(|name| input(name));
            Table { contents: Contents::new(unit.clone()), write }
        });
        let tables = tables.collect();
        let outputs = dataflow.outputs.iter().zip(&ports.outputs);
        let inputs = dataflow.inputs.iter().zip(&ports.inputs);
        Ok(Simulation {
            window: ports.window,
            valid: input("valid"),
            frame: input("frame"),
            inputs: inputs.map(|((of, width), name)| (*of, *width, input(name))).collect(),
            outputs: outputs
                .map(|((of, _), name)| Ok((*of, output(name)?)))
                .collect::<Result<_, String>>()?,
            accesses,
            tables,
            latency: schedule.latency,
            model,
        })
    }

    /// Whether the stage has such an input.
    pub(crate) fn takes(&self, input: Input) -> bool {
        self.inputs.iter().any(|(of, ..)| *of == input)
    }

    /// Sends a frame through; gives the outputs.
    ///
    /// # Errors
    /// The entries of a table do not fit its unit, or the model has ended.
    pub(crate) fn run(
        &mut self,
        frame: &[u8],
        input: &dyn Fn(Input, u32) -> Bits,
        objects: &mut Objects<'_>,
    ) -> Result<Vec<(Output, Bits)>, String> {
        self.write_tables(objects.state)?;
        if let Some(port) = self.frame {
            self.model.set(port, &frame_bits(frame, 0, self.window * 8));
        }
        for (of, width, port) in &self.inputs {
            if let Some(port) = port {
                let given = objects.given(*of).unwrap_or_else(|| input(*of, *width));
                self.model.set(*port, &given);
            }
        }
        self.set_valid(1);
        // Answers that are on their way: the cycle of each, the access and the bits.
        let mut coming: Vec<(u32, usize, Bits)> = Vec::new();
        let mut said = Vec::new();
        for cycle in 0..=self.latency {
            for (_, access, bits) in coming.iter().filter(|(due, ..)| *due == cycle) {
                if let Some(port) = self.accesses[*access].answer {
                    self.model.set(port, bits);
                }
            }
            coming.retain(|(due, ..)| *due > cycle);
            let now = self.accesses.iter().filter(|access| access.cycle == cycle);
            self.model.look_at(
                now.flat_map(|access| access.inputs.iter().map(|(port, _)| *port).chain([access.enable])),
            );
            for at in 0..self.accesses.len() {
                if self.accesses[at].cycle == cycle
                    && let Some(answer) = self.ask(at, objects)
                    && !self.accesses[at].has_unit
                {
                    coming.push((cycle + self.accesses[at].unit.latency(), at, answer));
                }
            }
            if cycle == self.latency {
                self.model.look_at(self.outputs.iter().map(|(_, port)| *port));
                let outputs = self.outputs.iter();
                said = outputs.map(|(of, port)| (*of, self.model.get(*port))).collect();
            }
            self.model.step();
            self.set_valid(0);
        }
        if let Some(why) = self.model.failure() {
            return Err(why);
        }
        Ok(said)
    }

    /// Writes what has changed in tables since the last frame, a word in each cycle.
    fn write_tables(&mut self, state: &State) -> Result<(), String> {
        for Table { contents, write } in &mut self.tables {
            let [Some(enable), Some(address), Some(data)] = *write else { continue };
            for (at, word) in contents.changes(state).map_err(|full| full.to_string())? {
                self.model.set(enable, &Bits::new(1, 1));
                self.model.set(address, &Bits::new(32, at.into()));
                self.model.set(data, &word);
                self.model.step();
            }
            self.model.set(enable, &Bits::new(1, 0));
        }
        Ok(())
    }

    fn set_valid(&mut self, value: u128) {
        if let Some(port) = self.valid {
            self.model.set(port, &Bits::new(1, value));
        }
    }

    /// Has a unit do what the pipeline asks for in this cycle, if it does.
    fn ask(&mut self, at: usize, objects: &mut Objects<'_>) -> Option<Bits> {
        let Access { unit, enable, inputs, width, .. } = &self.accesses[at];
        if !self.model.is_one(*enable) {
            return None;
        }
        let inputs: Vec<(Bits, Type)> =
            inputs.iter().map(|(port, ty)| (self.model.get(*port), *ty)).collect();
        objects.access(unit, &inputs, *width)
    }
}
