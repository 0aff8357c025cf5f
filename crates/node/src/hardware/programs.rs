//! Programs of `p4` blocks as parts of a design: each is a whole device with streams ([`millrace_rtl::device`]), at a bus of its own.
//!
//! ```text
//!   s0, s1 ... -> facts but the class -> device -> the class of the program -> m0, m1 ...
//!                                          ^
//!                              bus of its registers: tables, objects, what it counts
//! ```
//!
//! The device keeps what goes with a frame next to its slot, so each copy leaves with the facts of the frame that came, as far as anything
//! looks at them after it ([`Live`]).

use super::facts::Live;
use super::modules::{counter, parts, shape};
use crate::blocks::{Load, NoProgram, compile, load_entries};
use crate::model::{Kind, MacLink, NodeFile, Placement, ProgramSpec};
use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_netlist::*;
use millrace_pipeline::{ProfileId, Program as Ir, TableId};
use millrace_rtl::device::CLASS_BITS;
use millrace_rtl::map::Bus;
use millrace_rtl::{Device, DeviceOptions, Hardware, Options, Target};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The names of the streams of a device, and of a program in a design.
const OF_DEVICE: [&str; 2] = ["rx", "tx"];
pub(super) const OF_PROGRAM: [&str; 2] = ["s", "m"];

/// Frames that each input of a program holds.
const SLOTS: u32 = 16;

/// The programs of a node that are in hardware.
#[derive(Debug, Default)]
pub struct Programs {
    parts: BTreeMap<usize, Arc<Part>>,
    alone: Vec<(usize, String)>,
}

/// The program of a block.
pub struct Part {
    block: usize,
    spec: ProgramSpec,
    program: Arc<Ir>,
    /// The facts that something looks at after it.
    live: Live,
    device: Device,
    entries: Option<String>,
    capacities: Vec<(TableId, u64)>,
    places: Vec<(ProfileId, u64)>,
}

/// Why a node has no design, or no program for it: which block, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoHardware {
    /// The name of the block.
    pub block: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for NoHardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block `{}`: {}", self.block, self.why)
    }
}

impl std::error::Error for NoHardware {}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("block", &self.block).finish_non_exhaustive()
    }
}

impl Programs {
    /// Those of all blocks in hardware that run one, their registers at such a bus. `load` reads the files that they name.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it is wrong.
    pub fn of(node: &NodeFile, (bus, target): (Bus, Target), load: Load<'_>) -> Result<Programs, NoHardware> {
        let mut programs = Programs::default();
        let mut left = BTreeMap::new();
        for (number, block) in node.blocks.iter().enumerate() {
            match (&block.kind, block.placement) {
                (Kind::P4(spec), Placement::Hardware) if spec.software.is_empty() => {
                    left.insert(number, spec);
                }
                (Kind::P4(_), Placement::Hardware) => {
                    programs.alone.push((number, "it has tables in software".to_owned()));
                }
                _ => {}
            }
        }
        // What is kept of facts follows from which other programs are parts, which is known when their devices are made.
        while !left.is_empty() {
            let is_alone = |block: usize| programs.alone.iter().any(|(other, _)| *other == block);
            let is_part =
                |block: usize| node.blocks[block].placement == Placement::Hardware && !is_alone(block);
            let live = Live::after_blocks(node, is_part);
            let alone = programs.alone.len();
            for (number, spec) in &left {
                let block = &node.blocks[*number];
                let failed = |why: NoProgram| NoHardware { block: block.name.clone(), why: why.to_string() };
                let options =
                    Options { period_ps: period(node, block.function), target, ..Options::default() };
                if programs.parts.get(number).is_some_and(|part| part.live == live[*number]) {
                    continue;
                }
                match Part::new((*number, spec, live[*number]), options, bus, load).map_err(failed)? {
                    Ok(part) => drop(programs.parts.insert(*number, Arc::new(part))),
                    Err(why) => programs.alone.push((*number, why)),
                }
            }
            if alone == programs.alone.len() {
                break;
            }
            for (number, _) in &programs.alone {
                left.remove(number);
                programs.parts.remove(number);
            }
        }
        programs.alone.sort();
        Ok(programs)
    }

    /// The program of a block; none: it is no part of a design.
    pub fn get(&self, block: usize) -> Option<&Arc<Part>> {
        self.parts.get(&block)
    }

    /// Blocks in hardware whose programs are no part of a design but simulated by themselves, and why.
    pub fn alone(&self) -> impl Iterator<Item = (usize, &str)> {
        self.alone.iter().map(|(block, why)| (*block, why.as_str()))
    }
}

/// The length of a cycle of the design that a function is part of: that of the link of its MACs.
fn period(node: &NodeFile, function: usize) -> u32 {
    let device = node.functions[function].device;
    let macs = node.blocks.iter().filter(|block| {
        block.placement == Placement::Hardware && node.functions[block.function].device == device
    });
    let mut links = macs.filter_map(|block| match &block.kind {
        Kind::Mac(mac) => Some(mac.link),
        _ => None,
    });
    links.next().map_or(Options::default().period_ps, MacLink::period_ps)
}

impl Part {
    /// `Err` in it: why no device runs the program.
    fn new(
        (block, spec, live): (usize, &ProgramSpec, Live),
        options: Options,
        bus: Bus,
        load: Load<'_>,
    ) -> Result<Result<Part, String>, NoProgram> {
        let program = compile(&spec.program, load)?;
        let entries = match &spec.entries {
            Some(path) => Some(load(path).map_err(|why| NoProgram(format!("{}: {why}", path.display())))?),
            None => None,
        };
        let hardware = match Hardware::new(Arc::clone(&program), options) {
            Ok(hardware) => hardware,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let device = match Device::new(&hardware, device_options(spec, live, bus)) {
            Ok(device) => device,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let (capacities, places) = (hardware.capacities().collect(), hardware.places().collect());
        let part = Part { block, spec: spec.clone(), program, live, device, entries, capacities, places };
        part.switch()?;
        Ok(Ok(part))
    }

    /// The number of its block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// The device that runs it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A switch with its entries, for what is to be in the tables of the device.
    pub(super) fn switch(&self) -> Result<Switch, NoProgram> {
        let failed = |why: &dyn fmt::Display| NoProgram(format!("{}: {why}", self.spec.program.display()));
        let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
        let mut switch = Switch::new(Arc::clone(&self.program), config).map_err(|why| failed(&why))?;
        {
            let mut tables = switch.state().tables();
            for (table, entries) in &self.capacities {
                tables.set_capacity(*table, u32::try_from(*entries).unwrap_or(u32::MAX));
            }
            for (profile, places) in &self.places {
                tables.set_places(*profile, u32::try_from(*places).unwrap_or(u32::MAX));
            }
        }
        if let (Some(path), Some(text)) = (&self.spec.entries, &self.entries) {
            load_entries(&mut switch, path, text)?;
        }
        Ok(switch)
    }

    /// A number for what its tables are to hold: another one for other entries, never 0.
    pub(super) fn owner(&self) -> u32 {
        let mut hasher = DefaultHasher::new();
        self.entries.hash(&mut hasher);
        hasher.finish() as u32 | 1
    }

    /// Adds its module to a design. Inputs: streams `sN` for the inputs of the block, `now_ns`. Outputs: streams `mN` for its outputs, the
    /// last of which is `manager`; `busy`, while a frame is in it; `frames` and `sent`, a bit
    /// for each that came or left as a whole in this cycle. And the bus of the registers.
    pub(super) fn add_to(&self, design: &mut Design, name: &str) -> ModuleId {
        let inner = self.device.add_to(design, name);
        let mut m = ModuleBuilder::new(&format!("{name}.program"));
        let device = m.instance(design, inner, "device");
        let own = self.device.options().ports;
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for port in 0..own {
            match port < self.spec.ports {
                true => came.push(comes_in(&mut m, (device, self.live), port)),
                // Nothing comes from the manager.
                false => never_comes(&mut m, (device, self.live), port),
            }
        }
        let manager = self.spec.cpu_port.and_then(|number| self.device.options().port(number));
        for output in 0..=self.spec.ports {
            let port = if output == self.spec.ports { manager } else { Some(output) };
            let taken = output < self.spec.ports && port == manager;
            match port.filter(|_| !taken) {
                Some(port) => left.push(leaves(&mut m, (device, self.live), (output, port))),
                None => never_leaves(&mut m, output),
            }
        }
        // Several may be in one cycle.
        for (name, events) in [("frames", came), ("sent", left)] {
            let events = m.concat(&events);
            counter(&mut m, name, events);
        }
        let made = design.modules[inner].clone();
        for port in made.inputs.values().filter(|port| !is_stream(&port.name, OF_DEVICE)) {
            let value = m.input(&port.name, port.width);
            m.connect(device, &port.name, value);
        }
        for port in
            made.outputs.values().filter(|port| !is_stream(&port.name, OF_DEVICE) && !is_told(&port.name))
        {
            let value = m.output_of(device, &port.name);
            m.output(&port.name, value);
        }
        design.add(m.finish())
    }
}

/// The device of a program: a port for each input and output, and one for the manager.
fn device_options(spec: &ProgramSpec, live: Live, bus: Bus) -> DeviceOptions {
    let manager = spec.cpu_port.filter(|number| *number >= spec.ports);
    let numbers: Vec<u32> = (0..spec.ports).chain(manager).collect();
    let ports = numbers.len() as u32;
    DeviceOptions {
        ports,
        numbers,
        slots: SLOTS,
        frame: spec.longest.next_power_of_two(),
        // One copy of each frame that is there finds room, also if all of them leave by one output.
        depth: (ports * SLOTS).next_power_of_two(),
        queues: 1,
        bus,
        user: Some(live.width()),
        ..DeviceOptions::default()
    }
}

/// Whether a port is a signal of a stream whose name is one of these with a number, such as `rx0`.
pub(super) fn is_stream(port: &str, names: [&str; 2]) -> bool {
    let number = names.iter().find_map(|name| port.strip_prefix(name));
    number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether it is for tests of devices.
fn is_told(name: &str) -> bool {
    name.starts_with("decided")
}

/// The stream of an input; whether a frame has come whole.
fn comes_in(m: &mut ModuleBuilder, (device, live): (InstanceId, Live), port: u32) -> NodeId {
    let input = m.input_stream(&format!("s{port}"), shape());
    let (_, _, last, facts) = parts(&input.beat);
    let mut user = live.pack(m, facts);
    // No frame of a node is bad.
    user.push(m.number(1, 0));
    let user = m.concat(&user);
    let beat = Beat { user: Some(user), ..input.beat };
    let stream = format!("rx{port}");
    m.connect_stream(device, &stream, &beat, input.valid);
    let ready = m.ready_of(device, &stream);
    m.set_ready(&input, ready);
    m.all(&[input.valid, ready, last])
}

fn never_comes(m: &mut ModuleBuilder, (device, live): (InstanceId, Live), port: u32) {
    let never = m.number(1, 0);
    let beat = Beat {
        data: Some(m.number(shape().data, 0)),
        keep: Some(m.number(shape().keep, 0)),
        last: Some(never),
        user: Some(m.constant(Bits::zero(1 + live.width()))),
    };
    m.connect_stream(device, &format!("rx{port}"), &beat, never);
}

/// The stream of an output; whether a frame has left whole.
fn leaves(m: &mut ModuleBuilder, (device, live): (InstanceId, Live), (output, port): (u32, u32)) -> NodeId {
    let stream = format!("tx{port}");
    let (beat, valid) = m.stream_from(device, &stream);
    let (_, _, last, user) = parts(&beat);
    let class = m.slice(user, 1 + live.width(), CLASS_BITS);
    let packed = (live.width() > 0).then(|| m.slice(user, 1, live.width()));
    let facts = live.unpack(m, packed, class);
    let out = m.output_stream(&format!("m{output}"), shape());
    m.drive_stream(&out, &Beat { user: Some(facts), ..beat }, valid);
    m.connect_ready(device, &stream, out.ready);
    m.all(&[valid, out.ready, last])
}

fn never_leaves(m: &mut ModuleBuilder, output: u32) {
    let out = m.output_stream(&format!("m{output}"), shape());
    let never = m.number(1, 0);
    let beat = Beat {
        data: Some(m.number(shape().data, 0)),
        keep: Some(m.number(shape().keep, 0)),
        last: Some(never),
        user: Some(m.constant(Bits::zero(shape().user))),
    };
    m.drive_stream(&out, &beat, never);
}
