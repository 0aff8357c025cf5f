//! A stage in simulation: a frame goes in, cycles pass, units answer, what is said comes out.

use crate::assemble::{software_ports, unit_of, units_of};
use crate::driver::{Device, Driver, DriverError};
use crate::frame_bits::frame_bits;
use crate::hardware::{Hardware, Stage};
use crate::software_port::{READ_LATENCY, SoftwarePort};
use crate::stage::{Input, Output, Unit};
use crate::tables::Full;
use crate::units::Objects;
use millrace_netlist::{SignalId, SignalKind, Simulator};
use millrace_pipeline::{Bits, Type};
use millrace_state::State;
use std::convert::Infallible;

/// The pipeline of a stage, running.
pub(crate) struct Simulation {
    simulator: Simulator,
    window: u32,
    valid: Option<SignalId>,
    frame: Option<SignalId>,
    inputs: Vec<(Input, u32, Option<SignalId>)>,
    outputs: Vec<(Output, SignalId)>,
    /// In the order of the program.
    accesses: Vec<Access>,
    driver: Driver,
    /// Enable, address and data of writes, by port of software.
    ports: Vec<[SignalId; 3]>,
    bank: Option<BankPins>,
    latency: u32,
}

/// The port of the bank.
#[derive(Clone, Copy)]
struct BankPins {
    write: [SignalId; 3],
    read_enable: SignalId,
    read: SignalId,
}

/// The ports of software of a simulated design.
struct Pins<'a> {
    simulator: &'a mut Simulator,
    ports: &'a [[SignalId; 3]],
    bank: Option<BankPins>,
}

impl Pins<'_> {
    fn put(&mut self, [enable, address, data]: [SignalId; 3], at: u64, word: &Bits) {
        self.simulator.set_u64(enable, 1);
        self.simulator.set_u64(address, at);
        self.simulator.set(data, word);
        self.simulator.step();
        self.simulator.set_u64(enable, 0);
    }
}

impl Device for Pins<'_> {
    type Error = Infallible;

    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Infallible> {
        self.put(self.ports[port], address, word);
        Ok(())
    }

    fn use_bank(&mut self, bank: bool) -> Result<(), Infallible> {
        let Some(BankPins { write, read_enable, read }) = self.bank else { return Ok(()) };
        self.put(write, 0, &Bits::new(2, bank.into()));
        loop {
            self.simulator.set_u64(read_enable, 1);
            self.simulator.step();
            self.simulator.set_u64(read_enable, 0);
            (1..READ_LATENCY).for_each(|_| self.simulator.step());
            if self.simulator.get_u64(read) == 2 | u64::from(bank) {
                return Ok(());
            }
        }
    }
}

struct Access {
    unit: Unit,
    /// The cycle of the request.
    cycle: u32,
    enable: SignalId,
    inputs: Vec<(SignalId, Type)>,
    width: u32,
    answer: Option<SignalId>,
    /// Whether a unit of the design answers.
    has_unit: bool,
    /// Cycles to the answer.
    latency: u32,
}

impl Simulation {
    /// Of a stage.
    pub(crate) fn new(hardware: &Hardware, stage: &Stage) -> Result<Simulation, String> {
        let Stage { dataflow, placed: schedule, ports, .. } = stage;
        let simulator =
            Simulator::new(&hardware.design(stage, true)).map_err(|errors| match errors.first() {
                Some(error) => format!("the design is not well formed: {error}"),
                None => "the design is not well formed".to_owned(),
            })?;
        let output = |name: &str| {
            simulator.signal(SignalKind::Output, name).ok_or_else(|| format!("there is no output {name}"))
        };
        let input = |name: &str| simulator.signal(SignalKind::Input, name);
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
                latency: access.latency,
            });
        }
        let units = units_of(&hardware.units, &dataflow.accesses);
        let (software, bank) = software_ports(&hardware.program, &units);
        let port = |port: &SoftwarePort, what: &str| {
            let name = port.port(what);
            input(&name).ok_or_else(|| format!("there is no input {name}"))
        };
        let write = |of: &SoftwarePort| -> Result<[SignalId; 3], String> {
            Ok([port(of, "write_enable")?, port(of, "write_address")?, port(of, "write_data")?])
        };
        let writes = software.iter().map(|(_, port)| write(port)).collect::<Result<Vec<_>, String>>()?;
        let driver = hardware.driver(stage.part);
        let bank = bank.map(|of| -> Result<BankPins, String> {
            let (read_enable, read) = (port(&of, "read_enable")?, output(&of.port("read_data"))?);
            Ok(BankPins { write: write(&of)?, read_enable, read })
        });
        let bank = bank.transpose()?;
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
            ports: writes,
            bank,
            latency: schedule.latency,
            simulator,
        })
    }

    /// Whether the stage has such an input.
    pub(crate) fn takes(&self, input: Input) -> bool {
        self.inputs.iter().any(|(of, ..)| *of == input)
    }

    /// Sends a frame through; gives the outputs.
    ///
    /// # Errors
    /// The entries of a table do not fit its unit.
    pub(crate) fn run(
        &mut self,
        frame: &[u8],
        input: &dyn Fn(Input, u32) -> Bits,
        objects: &mut Objects<'_>,
    ) -> Result<Vec<(Output, Bits)>, Full> {
        self.write_tables(objects.state)?;
        if let Some(port) = self.frame {
            self.simulator.set(port, &frame_bits(frame, 0, self.window * 8));
        }
        for (of, width, port) in &self.inputs {
            if let Some(port) = port {
                self.simulator.set(*port, &input(*of, *width));
            }
        }
        self.set_valid(1);
        // Answers that are on their way: the cycle of each, the access and the bits.
        let mut coming: Vec<(u32, usize, Bits)> = Vec::new();
        let mut said = Vec::new();
        for cycle in 0..=self.latency {
            for (_, access, bits) in coming.iter().filter(|(due, ..)| *due == cycle) {
                if let Some(port) = self.accesses[*access].answer {
                    self.simulator.set(port, bits);
                }
            }
            coming.retain(|(due, ..)| *due > cycle);
            for at in 0..self.accesses.len() {
                if self.accesses[at].cycle == cycle
                    && let Some(answer) = self.ask(at, objects)
                    && !self.accesses[at].has_unit
                {
                    coming.push((cycle + self.accesses[at].latency, at, answer));
                }
            }
            if cycle == self.latency {
                let outputs = self.outputs.iter();
                said = outputs.map(|(of, port)| (*of, self.simulator.get(*port))).collect();
            }
            self.simulator.step();
            self.set_valid(0);
        }
        Ok(said)
    }

    /// Writes what has changed in tables since the last frame.
    fn write_tables(&mut self, state: &State) -> Result<(), Full> {
        let mut pins = Pins { simulator: &mut self.simulator, ports: &self.ports, bank: self.bank };
        match self.driver.update(state, &mut pins) {
            Ok(_) => Ok(()),
            Err(DriverError::Full(full)) => Err(full),
            Err(DriverError::Device(never)) => match never {},
        }
    }

    fn set_valid(&mut self, value: u64) {
        if let Some(port) = self.valid {
            self.simulator.set_u64(port, value);
        }
    }

    /// Has a unit do what the pipeline asks for in this cycle, if it does.
    fn ask(&mut self, at: usize, objects: &mut Objects<'_>) -> Option<Bits> {
        let Access { unit, enable, inputs, width, .. } = &self.accesses[at];
        if self.simulator.get_u64(*enable) == 0 {
            return None;
        }
        let inputs: Vec<(Bits, Type)> =
            inputs.iter().map(|(port, ty)| (self.simulator.get(*port), *ty)).collect();
        objects.access(unit, &inputs, *width)
    }
}
