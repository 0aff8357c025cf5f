//! A placed stage as a module: values in their cycles, registers where a value is needed in a later one.
//!
//! # Ports
//! `valid` and `frame` (the window, the first byte highest) with the inputs of the stage come together, in any cycle; `out_valid` and the
//! outputs follow [`Schedule::latency`] cycles later. For a device, which has a memory for new headers, each part of these is an output in the
//! cycle in which it is known, too ([`EarlyPart`]). Each access to a table or an object has an `_enable` and its inputs as outputs of the
//! module, in the cycle that the schedule says, and an `_answer` as an input, [`Unit::latency`](crate::Unit) cycles later. All
//! start with the number of the access and the name of the object, so that a unit is connected by name.
//!
//! # Parts
//! What computes something comes from the part of the program that has its wire: a parser, a control or a deparser, or what is between
//! them. Registers, which only move values from cycle to cycle, come from none.

use crate::graph::{Binary, Node, Unary, Wire};
use crate::schedule::Schedule;
use crate::stage::{Dataflow, Input, Output, Unit};
use cranelift_entity::{EntityRef, SecondaryMap};
use millrace_netlist::limits::MAX_PORTS;
use millrace_netlist::{BinaryOp, Module, ModuleBuilder, NodeId, Place, UnaryOp};
use millrace_pipeline::{Body, BodyKind, HashId, Program};
use rustc_hash::FxHashMap;

/// The names of the ports of a stage.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// Bytes of the window; 0: the stage does not read the frame.
    pub(crate) window: u32,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) accesses: Vec<AccessPorts>,
    /// The parts of the new headers, the first bytes first; none: the stage makes no headers.
    pub(crate) new_headers: Vec<EarlyPart>,
}

/// A part of the new headers, known in a cycle before the stage ends: an output of its own, which only the stage of a device has.
///
/// Most bytes of a header are as they came, and need not wait in the pipeline while a table is looked up.
#[derive(Clone, Debug)]
pub(crate) struct EarlyPart {
    /// Named after its lowest bit within all new headers.
    pub(crate) port: String,
    pub(crate) cycle: u32,
    /// What it is put together from, the highest bits first.
    wires: Vec<Wire>,
}

impl Ports {
    /// How many inputs or outputs there are, where that is more than a module may have, and the first access that has no room for its own.
    pub(crate) fn excess(&self) -> Option<(usize, Option<usize>)> {
        let mut inputs = 2 + self.inputs.len();
        let mut outputs = 1 + self.outputs.len() + self.new_headers.len();
        let mut first = None;
        for (number, access) in self.accesses.iter().enumerate() {
            inputs += access.answer.iter().len();
            outputs += 1 + access.inputs.len();
            if inputs.max(outputs) > MAX_PORTS {
                first = first.or(Some(number));
            }
        }
        let ports = inputs.max(outputs);
        (ports > MAX_PORTS).then_some((ports, first))
    }

    /// Whether an output is a part of the new headers.
    pub(crate) fn is_early(&self, output: &str) -> bool {
        self.new_headers.iter().any(|part| part.port == output)
    }
}

/// The names of the ports of an access.
#[derive(Clone, Debug)]
pub(crate) struct AccessPorts {
    pub(crate) enable: String,
    pub(crate) inputs: Vec<String>,
    /// None: there is no answer.
    pub(crate) answer: Option<String>,
}

/// Makes the module of a stage.
pub(crate) fn emit(
    program: &Program,
    name: &str,
    dataflow: &Dataflow,
    schedule: &Schedule,
) -> (Module, Ports) {
    let ports = ports(program, dataflow, schedule);
    let mut emitter = Emitter {
        dataflow,
        schedule,
        m: ModuleBuilder::new(name),
        homes: SecondaryMap::new(),
        later: FxHashMap::default(),
        answers: Vec::new(),
        valid: Vec::new(),
        bodies: program.bodies.values().map(|body| Place::Part(part_of_body(body).into())).collect(),
        part: None,
    };
    emitter.run(&ports);
    (emitter.m.finish(), ports)
}

struct Emitter<'a> {
    dataflow: &'a Dataflow,
    schedule: &'a Schedule,
    m: ModuleBuilder,
    /// The value of a wire in its cycle.
    homes: SecondaryMap<Wire, Option<NodeId>>,
    /// The value of a wire in later cycles.
    later: FxHashMap<(Wire, u32), NodeId>,
    answers: Vec<Option<NodeId>>,
    /// Whether there is a frame in each cycle.
    valid: Vec<NodeId>,
    /// The part that each body of the program is.
    bodies: Vec<Place>,
    /// The one that operations are of; registers are of none.
    part: Option<Place>,
}

/// The part of what no body of the program has: what the stage says where its paths end, and what the switch does between bodies.
const VERDICT: &str = "verdict";

/// The part of the program that a body is, for people.
fn part_of_body(body: &Body) -> String {
    let kind = match body.kind {
        BodyKind::Parser => "parser",
        BodyKind::Control => "control",
        BodyKind::Deparser => "deparser",
        BodyKind::Action => "action",
    };
    format!("{kind} {}", body.name)
}

impl Emitter<'_> {
    fn run(&mut self, ports: &Ports) {
        let valid = self.m.input("valid", 1);
        let frame = (ports.window > 0).then(|| self.m.input("frame", ports.window * 8));
        self.valid.push(valid);
        for cycle in 1..=self.schedule.latency {
            let valid = self.valid[cycle as usize - 1];
            self.valid.push(self.m.delayed(&format!("valid_{cycle}"), valid, Some(0)));
        }
        let inputs: Vec<NodeId> = (ports.inputs.iter().zip(&self.dataflow.inputs))
            .map(|(name, (_, width))| self.m.input(name, *width))
            .collect();
        for (access, ports) in self.dataflow.accesses.iter().zip(&ports.accesses) {
            let answer = ports.answer.as_ref().map(|name| self.m.input(name, access.answer));
            self.answers.push(answer);
        }
        for wire in self.dataflow.graph.wires() {
            if let Some(cycle) = self.schedule.cycle[wire] {
                self.set_part(wire);
                let value = self.value(wire, cycle, frame, &inputs);
                self.homes[wire] = Some(value);
            }
        }
        self.outputs(ports);
    }

    fn outputs(&mut self, ports: &Ports) {
        let accesses = self.dataflow.accesses.iter().zip(&ports.accesses).zip(&self.schedule.access);
        for ((access, ports), cycle) in accesses {
            self.set_part(access.enable);
            let enable = self.at(access.enable, *cycle);
            let enable = self.m.and(enable, self.valid[*cycle as usize]);
            self.m.output(&ports.enable, enable);
            for ((wire, _), name) in access.inputs.iter().zip(&ports.inputs) {
                let value = self.at(*wire, *cycle);
                self.m.output(name, value);
            }
        }
        let last = self.schedule.latency;
        self.m.output("out_valid", self.valid[last as usize]);
        for ((_, wire), name) in self.dataflow.outputs.iter().zip(&ports.outputs) {
            let value = self.at(*wire, last);
            self.m.output(name, value);
        }
        for part in &ports.new_headers {
            let values: Vec<NodeId> = part.wires.iter().map(|wire| self.at(*wire, part.cycle)).collect();
            let value = self.m.concat(&values);
            self.m.output(&part.port, value);
        }
    }

    /// What follows is of the part of the program that has a wire.
    fn set_part(&mut self, wire: Wire) {
        let body = self.dataflow.graph.body(wire);
        let part = body.and_then(|body| self.bodies.get(body.index()).cloned());
        self.part = Some(part.unwrap_or_else(|| Place::Part(VERDICT.into())));
        self.m.set_place(self.part.clone());
    }

    /// The value of a wire in a cycle that is not before its own.
    fn at(&mut self, wire: Wire, cycle: u32) -> NodeId {
        if let Node::Const(bits) = self.dataflow.graph.node(wire) {
            return self.m.constant(bits.clone());
        }
        let home = self.schedule.cycle[wire].unwrap_or(cycle);
        let mut value = self.homes[wire].unwrap_or_else(|| self.m.number(self.dataflow.graph.width(wire), 0));
        for next in home + 1..=cycle {
            value = match self.later.get(&(wire, next)) {
                Some(known) => *known,
                None => {
                    let name = format!("{wire:?}_{next}");
                    self.m.set_place(None);
                    let delayed = self.m.delayed(&name, value, None);
                    self.m.set_place(self.part.clone());
                    self.later.insert((wire, next), delayed);
                    delayed
                }
            };
        }
        value
    }

    fn value(&mut self, wire: Wire, cycle: u32, frame: Option<NodeId>, inputs: &[NodeId]) -> NodeId {
        let width = self.dataflow.graph.width(wire);
        match self.dataflow.graph.node(wire).clone() {
            Node::Const(bits) => self.m.constant(bits),
            Node::Frame(offset) => match frame {
                Some(frame) => {
                    let low = self.m.width(frame) - offset - width;
                    self.m.slice(frame, low, width)
                }
                None => self.m.number(width, 0),
            },
            Node::Input(number) => inputs[number as usize],
            Node::Answer(access, low) => match self.answers[access as usize] {
                Some(answer) => self.m.slice(answer, low, width),
                None => self.m.number(width, 0),
            },
            Node::Unary(op, a) => {
                let a = self.at(a, cycle);
                self.m.unary(unary(op), a)
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.at(a, cycle), self.at(b, cycle));
                self.m.binary(binary(op), a, b)
            }
            Node::Concat(a, b) => {
                let (a, b) = (self.at(a, cycle), self.at(b, cycle));
                self.m.concat(&[a, b])
            }
            Node::Slice(a, low) => {
                let a = self.at(a, cycle);
                self.m.slice(a, low, width)
            }
            Node::Mux(cond, a, b) => {
                let (cond, a, b) = (self.at(cond, cycle), self.at(a, cycle), self.at(b, cycle));
                self.m.mux(cond, a, b)
            }
        }
    }
}

/// The parts of the new headers: neighbours that are there in the same cycle are one.
fn new_headers(dataflow: &Dataflow, schedule: &Schedule) -> Vec<EarlyPart> {
    let graph = &dataflow.graph;
    let mut found: Vec<EarlyPart> = Vec::new();
    let mut left: Vec<Wire> = dataflow.output(Output::Emitted).into_iter().collect();
    let mut low = left.iter().map(|wire| graph.width(*wire)).sum::<u32>();
    while let Some(wire) = left.pop() {
        if let Node::Concat(high, rest) = graph.node(wire) {
            left.extend([*rest, *high]);
            continue;
        }
        low -= graph.width(wire);
        let (port, cycle) = (format!("emitted.from_{low}"), schedule.cycle[wire].unwrap_or(0));
        match found.last_mut() {
            // A constant goes with what is next to it.
            Some(last) if last.cycle == cycle || graph.constant(wire).is_some() => {
                last.port = port;
                last.wires.push(wire);
            }
            _ => found.push(EarlyPart { port, cycle, wires: vec![wire] }),
        }
    }
    found
}

fn ports(program: &Program, dataflow: &Dataflow, schedule: &Schedule) -> Ports {
    let mut window = 0;
    for wire in dataflow.graph.wires().filter(|wire| schedule.cycle[*wire].is_some()) {
        if let Node::Frame(offset) = dataflow.graph.node(wire) {
            window = window.max((offset + dataflow.graph.width(wire)).div_ceil(8));
        }
    }
    let slot = |slot| program.slots[slot].name.as_str();
    let inputs = dataflow.inputs.iter().map(|(input, _)| match input {
        Input::Length => "length".to_owned(),
        Input::Cursor => "cursor".to_owned(),
        Input::Now => "now".to_owned(),
        Input::Parameters(hash) => parameters_port(program, *hash),
        Input::Slot(of) => format!("in.{}", slot(*of)),
        Input::SlotLength(of) => format!("in.{}.length", slot(*of)),
        Input::Valid(header) => format!("in.{}.valid", program.headers[*header].name),
        Input::Rest(rest) => format!("rest.{}", rest.name()),
    });
    let outputs = dataflow.outputs.iter().map(|(output, _)| match output {
        Output::Verdict => "verdict".to_owned(),
        Output::Number => "number".to_owned(),
        Output::DropSite => "drop_site".to_owned(),
        Output::Cursor => "out_cursor".to_owned(),
        Output::ParsedBits => "parsed_bits".to_owned(),
        Output::Deparsed => "deparsed".to_owned(),
        Output::Emitted => "emitted".to_owned(),
        Output::EmittedLength => "emitted_length".to_owned(),
        Output::PayloadFrom => "payload_from".to_owned(),
        Output::Slot(of) => format!("out.{}", slot(*of)),
        Output::SlotLength(of) => format!("out.{}.length", slot(*of)),
        Output::Valid(header) => format!("out.{}.valid", program.headers[*header].name),
    });
    let accesses = dataflow.accesses.iter().enumerate().map(|(number, access)| {
        let name = format!("unit{number}.{}.{}", access.unit.kind(), object(program, &access.unit));
        AccessPorts {
            enable: format!("{name}.enable"),
            inputs: (0..access.inputs.len()).map(|input| format!("{name}.input{input}")).collect(),
            answer: (access.answer > 0).then(|| format!("{name}.answer")),
        }
    });
    Ports {
        window,
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        accesses: accesses.collect(),
        new_headers: new_headers(dataflow, schedule),
    }
}

/// The name of the input of the parameters of a hash.
pub(crate) fn parameters_port(program: &Program, hash: HashId) -> String {
    format!("parameters.{}", program.hashes[hash].name)
}

/// The name of the object that an access is to.
pub(crate) fn object<'a>(program: &'a Program, unit: &Unit) -> &'a str {
    match unit {
        Unit::Lookup(table) | Unit::Hit(table) | Unit::CountDirect(table) | Unit::MeterDirect(table) => {
            &program.tables[*table].name
        }
        Unit::Member(set) => &program.value_sets[*set].name,
        Unit::Count(counter) => &program.counters[*counter].name,
        Unit::Meter(meter) => &program.meters[*meter].name,
        Unit::RegisterRead(register) | Unit::RegisterWrite(register) => &program.registers[*register].name,
        Unit::Digest(digest) => &program.digests[*digest].name,
        Unit::Random => "numbers",
        Unit::Log(_) => "lines",
    }
}

fn unary(op: Unary) -> UnaryOp {
    match op {
        Unary::Not => UnaryOp::Not,
        Unary::Any => UnaryOp::ReduceOr,
        Unary::Parity => UnaryOp::ReduceXor,
    }
}

fn binary(op: Binary) -> BinaryOp {
    match op {
        Binary::And => BinaryOp::And,
        Binary::Or => BinaryOp::Or,
        Binary::Xor => BinaryOp::Xor,
        Binary::Add => BinaryOp::Add,
        Binary::Sub => BinaryOp::Sub,
        Binary::Mul => BinaryOp::Mul,
        Binary::Eq => BinaryOp::Eq,
        Binary::Lt => BinaryOp::Lt,
        Binary::LtSigned => BinaryOp::LtSigned,
        Binary::Shl => BinaryOp::Shl,
        Binary::Shr => BinaryOp::Shr,
        Binary::ShrSigned => BinaryOp::ShrSigned,
    }
}
