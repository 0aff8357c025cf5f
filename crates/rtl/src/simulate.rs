//! A stage in simulation: a frame goes in, cycles pass, units answer, what is said comes out.

use crate::assemble::{View, unit_of};
use crate::driver::{Driver, DriverError};
use crate::frame_bits::frame_bits;
use crate::hardware::{Hardware, Stage};
use crate::model::{Model, Port, Sim};
use crate::pins::{Attached, Pins, WORDS_BY_PORT};
use crate::stage::{Input, ObjectKey, Output, Unit};
use crate::units::Objects;
use millrace_netlist::SignalKind;
use millrace_pipeline::{Bits, Type};
use millrace_state::{EntryIndex, State};

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
    driver: Driver,
    pins: Pins,
    ready: Port,
    latency: u32,
    interval: u32,
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
    /// The unit of an object that does what is asked.
    object: Option<usize>,
    /// Cycles to the answer.
    latency: u32,
}

impl Simulation {
    /// Of a stage.
    pub(crate) fn new(hardware: &Hardware, stage: &Stage, sim: Sim) -> Result<Simulation, String> {
        let Stage { dataflow, placed: schedule, ports, .. } = stage;
        let model = Model::new(&hardware.design(stage, View::Observed), sim)?;
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
                object: stage
                    .objects
                    .iter()
                    .position(|unit| unit.key == access.unit.object() && unit.key != ObjectKey::Random),
                latency: access.latency,
            });
        }
        let pins = Pins::find(&model, &hardware.software_ports(stage.part), &hardware.memories(stage));
        let driver = hardware.driver(stage.part);
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
            driver,
            pins,
            ready: output("ready")?,
            latency: schedule.latency,
            interval: schedule.interval,
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
    /// What there is does not fit a unit, or the model has ended.
    pub(crate) fn run(
        &mut self,
        frame: &[u8],
        input: &dyn Fn(Input, u32) -> Bits,
        objects: &mut Objects<'_>,
    ) -> Result<Vec<(Output, Bits)>, String> {
        self.update(objects.state)?;
        self.wait();
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
                    coming.push((cycle + self.accesses[at].latency, at, answer));
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
        self.bring_back(objects);
        if let Some(why) = self.model.failure() {
            return Err(why);
        }
        Ok(said)
    }

    /// Sends frames through as close together as the stage takes them; gives the outputs of each. None: an access has no unit. The
    /// time of a frame is its number.
    #[cfg(test)]
    pub(crate) fn run_together(
        &mut self,
        frames: &[Vec<u8>],
        input: &dyn Fn(usize, Input, u32) -> Bits,
        objects: &mut Objects<'_>,
    ) -> Option<Vec<Vec<(Output, Bits)>>> {
        if self.accesses.iter().any(|access| !access.has_unit && access.object.is_none()) {
            return None;
        }
        self.update(objects.state).ok()?;
        self.wait();
        let (mut cycle, mut next) = (0, 0);
        let mut due = std::collections::VecDeque::new();
        let mut said = Vec::new();
        while said.len() < frames.len() {
            if let Some(frame) = frames.get(next) {
                if let Some(port) = self.frame {
                    self.model.set(port, &frame_bits(frame, 0, self.window * 8));
                }
                for (of, width, port) in &self.inputs {
                    let value = match of {
                        Input::Now => Bits::new(*width, next as u128),
                        other => input(next, *other, *width),
                    };
                    port.iter().for_each(|port| self.model.set(*port, &value));
                }
                self.set_valid(1);
                if self.model.is_one(self.ready) {
                    due.push_back(cycle + self.latency);
                    next += 1;
                }
            } else {
                self.set_valid(0);
            }
            for at in 0..self.accesses.len() {
                if self.accesses[at].object.is_some() {
                    self.ask(at, objects);
                }
            }
            if due.front() == Some(&cycle) {
                due.pop_front();
                let outputs = self.outputs.iter();
                said.push(outputs.map(|(of, port)| (*of, self.model.get(*port))).collect());
            }
            self.model.step();
            cycle += 1;
        }
        self.set_valid(0);
        self.bring_back(objects);
        Some(said)
    }

    /// The kinds of the units, and how often each was asked.
    #[cfg(test)]
    pub(crate) fn asked(&mut self) -> impl Iterator<Item = (&'static str, u64)> {
        self.driver.objects().map(|unit| (unit.unit.kind_name(), unit.requests))
    }

    /// How often a memory that promises otherwise was read where it was written.
    #[cfg(test)]
    pub(crate) fn collisions(&self) -> u64 {
        self.model.collisions()
    }

    /// Lets cycles pass until the stage takes a frame.
    fn wait(&mut self) {
        let most = 2 * (self.latency + self.interval) + 16;
        for _ in 0..most {
            if self.model.is_one(self.ready) {
                break;
            }
            self.model.step();
        }
    }

    /// Writes what control has changed since the last frame.
    fn update(&mut self, state: &State) -> Result<(), String> {
        let mut device = Attached::new(&self.pins, &mut self.model, WORDS_BY_PORT);
        match self.driver.update(state, &mut device) {
            Ok(_) => Ok(()),
            Err(DriverError::Full(full)) => Err(full.to_string()),
            Err(DriverError::Device(never)) => match never {},
        }
    }

    /// Brings back what frames have changed.
    fn bring_back(&mut self, objects: &mut Objects<'_>) {
        /// Cycles until what a frame asked for in its last cycle is done.
        const DONE: u32 = 12;
        if self.driver.is_touched() {
            (0..DONE).for_each(|_| self.model.step());
            let now_ns = objects.now_ns;
            let mut device = Attached::new(&self.pins, &mut self.model, WORDS_BY_PORT);
            match self.driver.read_touched(objects, &mut device, &|| now_ns) {
                Ok(()) => {}
                Err(never) => match never {},
            }
        }
    }

    fn set_valid(&mut self, value: u128) {
        if let Some(port) = self.valid {
            self.model.set(port, &Bits::new(1, value));
        }
    }

    /// Has a unit do what the pipeline asks for in this cycle, if it does.
    fn ask(&mut self, at: usize, objects: &mut Objects<'_>) -> Option<Bits> {
        let Access { unit, enable, inputs, width, object, .. } = &self.accesses[at];
        if !self.model.is_one(*enable) {
            return None;
        }
        let mut inputs: Vec<(Bits, Type)> =
            inputs.iter().map(|(port, ty)| (self.model.get(*port), *ty)).collect();
        if let Some(at) = *object {
            self.driver.objects().nth(at).into_iter().for_each(|object| object.asked(unit, &inputs));
            return None;
        }
        // Software knows an entry by its index.
        if let Unit::Hit(table) | Unit::CountDirect(table) | Unit::MeterDirect(table) = unit
            && let Some(numbers) = self.driver.numbers(*table)
            && let Some((number, _)) = inputs.first_mut()
        {
            let entry = numbers.entry(number.to_u64_saturating()).unwrap_or(EntryIndex::MISS);
            *number = Bits::new(32, entry.0.into());
        }
        objects.access(unit, &inputs, *width)
    }
}
