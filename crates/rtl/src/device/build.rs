//! The top of a device: receiving sides, the pipeline that all ports share, sending sides.

use super::again::Tag;
use super::check::{check_bytes, check_parser, check_program, check_shared, check_stage};
use super::clones::{Features, parser_of, placed, tail_of};
use super::control::{Control, Software, quantum_at_start};
use super::copies::{Copies, Copy, copies};
use super::facts::{Length, length_use, needed, who_reads_length};
use super::fate::{Fate, left_fit};
use super::headers::{Headers, emitted_bytes};
use super::leave::{Leaving, leave};
use super::lists::PLACES;
use super::receive::{self, receive};
use super::report::{DeviceReport, PartsLatency};
use super::shape::Shape;
use super::stages::Placed;
use super::transmit::{Side, fields, transmit};
use super::{Counted, DeviceOptions, Reason};
use crate::assemble::bank_port;
use crate::driver::Driver;
use crate::hardware::{Hardware, Part, Stage};
use crate::map::RegisterMap;
use crate::parts::{Countdown, import, later};
use crate::refusal::Refusal;
use crate::stage::Input;
use crate::table_memories::PortMemory;
use crate::tables::TableUnit;
use millrace_netlist::blocks::{editor_moves, round_robin_arbiter};
use millrace_netlist::{Design, InstanceId, ModuleBuilder, ModuleId, NodeId};
use millrace_pipeline::{Intrinsic, PacketPath, Program, SlotId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The setting by which software knows whether a device had a reset since it wrote a number there.
pub const OWNER: &str = "owner";

/// A device: its design, and what is known about it.
#[derive(Clone, Debug)]
pub struct Device {
    pub(super) options: DeviceOptions,
    pub(super) design: Design,
    pub(super) report: DeviceReport,
    software: Software,
    units: Vec<TableUnit>,
}

impl Device {
    /// The device of a program.
    ///
    /// # Errors
    /// What devices cannot do of it.
    pub fn new(hardware: &Hardware, options: DeviceOptions) -> Result<Device, Refusal> {
        let program = Arc::clone(&hardware.program);
        let refuse = |why: String| Refusal::of_device(why, None);
        options.check().map_err(refuse)?;
        check_clock(hardware, &options).map_err(refuse)?;
        check_program(&program, options.queues)?;
        let stage = |part: Part| {
            let found = hardware.stages.iter().find(|stage| stage.part == part);
            found.ok_or_else(|| refuse(format!("a program without {}", part.name())))
        };
        let (ingress, egress) = (stage(Part::Ingress)?, stage(Part::Egress)?);
        for stage in [ingress, egress] {
            check_stage(hardware, stage)?;
        }
        check_bytes(&program, ingress, egress)?;
        check_shared(hardware, &program)?;
        let features = Features::of(&program, ingress, egress);
        let parser = parser_of(&hardware.stages, features);
        if let Some(parser) = parser {
            check_stage(hardware, parser)?;
            check_parser(&program, parser, ingress)?;
        }
        let whole = whole_frames(&program, ingress, egress);
        let whole = whole.or_else(|| features.cuts.then(|| "what is cloned or cut".to_owned()));
        let whole = whole.or_else(|| options.user.map(|_| "what goes with each frame".to_owned()));
        let tail = tail_of(&program, &hardware.stages, features)?;
        if let Some(tail) = tail {
            check_stage(hardware, tail)?;
        }
        let stages = [Some(ingress), Some(egress), parser, tail];
        let compared = stages.into_iter().flatten().map(|stage| match length_use(stage) {
            Length::Compared(bytes) => bytes.max(stage.ports.window),
            Length::Value => stage.ports.window,
        });
        let window = compared.max().unwrap_or(0);
        let emitted = emitted_bytes(ingress).max(emitted_bytes(egress));
        if window > options.frame / 2 || emitted > options.frame / 2 {
            let most = options.frame / 2;
            return Err(refuse(format!("headers of more than {most} bytes, half of the longest frame")));
        }
        let again = Tag::of(&program, (ingress, egress), (options.ports, features)).map_err(refuse)?;
        let tag = again.as_ref().map_or(0, Tag::sent);
        let emitted = emitted.max(tail.map_or(0, emitted_bytes));
        let headers = Headers::new(
            (&program, ingress, egress),
            (window, emitted),
            (again.as_ref(), features),
            options.width,
        );
        let shape = Shape::new(&options, headers, (tag, features));
        let stages = (ingress, egress, [parser, tail]);
        let (design, software) =
            Top::build((hardware, &options), &program, stages, (&shape, whole.is_some(), again));
        let report = DeviceReport {
            program: program.name.clone(),
            period_ps: hardware.period_ps,
            ports: options.ports,
            link: options.link,
            width: options.width,
            window,
            emitted,
            waits_for_end: whole,
            latency: PartsLatency::of(&shape, ingress.placed.latency, egress.placed.latency),
            interval: ingress.placed.interval.max(egress.placed.interval).max(hardware.shared.interval()),
            payload_bits: u64::from(shape.sides() * shape.slots * options.frame) * 8,
            places_again: if shape.tag > 0 { shape.places_again() } else { 0 },
        };
        let units = hardware.units.clone();
        Ok(Device { options, design, report, software, units })
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Adds it to a larger design as a module of these ports, whose name and those of its parts begin with `name` and a dot.
    pub fn add_to(&self, design: &mut Design, name: &str) -> ModuleId {
        let mut own = self.design.clone();
        own.modules.values_mut().for_each(|module| module.name = format!("{name}.{}", module.name));
        import(design, &own)
    }

    /// How it is made.
    pub fn options(&self) -> &DeviceOptions {
        &self.options
    }

    /// Its registers.
    pub fn register_map(&self) -> &RegisterMap {
        &self.software.map
    }

    /// Software's part of it, by the numbers of the ports of its registers.
    pub fn driver(&self) -> Driver {
        self.software.driver(&self.units)
    }

    /// The memories in which words of tables are.
    pub(super) fn memories(&self) -> &[PortMemory] {
        self.software.memories()
    }

    /// What it counts of lookups and drops, each with the port and the word of its registers that have the number.
    pub fn counted(&self) -> impl Iterator<Item = (Counted, (usize, u64))> {
        self.software.counted()
    }

    /// What it is like.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }
}

/// Whether cycles are as long as those of the link, or shorter: as such stages take that clock too.
fn check_clock(hardware: &Hardware, options: &DeviceOptions) -> Result<(), String> {
    match options.link.period_ps() {
        Some(most) if hardware.period_ps > most => Err(format!(
            "cycles of {} ps with a link of {}, whose cycles have {most} ps",
            hardware.period_ps,
            options.link.name()
        )),
        _ => Ok(()),
    }
}

/// Why decisions need the end of the frame, if they do.
fn whole_frames(program: &Program, ingress: &Stage, egress: &Stage) -> Option<String> {
    let told = program.intrinsics.get(Intrinsic::PacketLength).map(Input::Slot);
    for (stage, bodies) in [(ingress, &program.ingress), (egress, &program.egress)] {
        let of = needed(stage);
        let asks = of.iter().any(|at| Some(stage.dataflow.inputs[*at].0) == told);
        if asks || length_use(stage) == Length::Value {
            return Some(who_reads_length(program, bodies));
        }
    }
    None
}

/// The top while it is built.
pub(super) struct Top<'a> {
    pub(super) m: ModuleBuilder,
    pub(super) program: &'a Program,
    pub(super) shape: &'a Shape,
    pub(super) ingress: Placed<'a>,
    pub(super) egress: Placed<'a>,
    /// The parser of clones of ingress.
    pub(super) parser: Option<Placed<'a>>,
    /// What is left of egress after a clone.
    pub(super) tail: Option<Placed<'a>>,
    /// Which ports are up.
    pub(super) up: NodeId,
    /// What software reaches of the device itself.
    pub(super) control: Control,
    /// The port of a stage for the bank of a frame.
    pub(super) bank_input: String,
    /// The time in nanoseconds.
    pub(super) now: NodeId,
    /// What goes with frames that start again, if any does.
    pub(super) again: Option<Tag>,
}

/// A header that enters the pipeline, and what goes with it.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) valid: NodeId,
    pub(super) port: NodeId,
    pub(super) slot: NodeId,
    pub(super) length: NodeId,
    pub(super) time: NodeId,
    /// The bank of tables that it meets.
    pub(super) bank: NodeId,
    /// What goes with frames that start again; none: no frame does.
    pub(super) tag: Option<NodeId>,
}

impl Header {
    /// The same, so many cycles later.
    fn later(self, m: &mut ModuleBuilder, name: &str, cycles: u32) -> Header {
        let mut each = |what: &str, value, reset| later(m, &format!("{name}_{what}"), value, cycles, reset);
        Header {
            valid: each("valid", self.valid, Some(0)),
            port: each("port", self.port, None),
            slot: each("slot", self.slot, None),
            length: each("length", self.length, None),
            time: each("time", self.time, None),
            bank: each("bank", self.bank, None),
            tag: self.tag.map(|tag| each("tag", tag, None)),
        }
    }
}

impl<'a> Top<'a> {
    fn build(
        (hardware, options): (&'a Hardware, &DeviceOptions),
        program: &'a Program,
        (ingress, egress, others): (&'a Stage, &'a Stage, [Option<&'a Stage>; 2]),
        (shape, whole, again): (&'a Shape, bool, Option<Tag>),
    ) -> (Design, Software) {
        let mut design = Design::new();
        let mut m = ModuleBuilder::new("device");
        let ingress = Placed::new(&mut m, &mut design, hardware, ingress);
        let egress = Placed::new(&mut m, &mut design, hardware, egress);
        let [parser, tail] =
            others.map(|stage| stage.map(|stage| Placed::new(&mut m, &mut design, hardware, stage)));
        let receiving = receive(&mut design, shape, false);
        let sending = transmit(&mut design, shape, Side::Port);
        let now = m.input("now_ns", 64);
        let mut control = Control::new(&mut m);
        let up = control.setting(&mut m, "ports_up", shape.ports, (1 << shape.ports) - 1);
        // By a number that it has written here, software knows after a while that there was no reset.
        control.setting(&mut m, OWNER, 32, 0);
        let bank_input = bank_port(program).port("of_frame");
        let mut top =
            Top { m, program, shape, ingress, egress, parser, tail, up, control, bank_input, now, again };
        let m = &mut top.m;
        let mut receives: Vec<InstanceId> =
            (0..shape.ports).map(|port| m.instance(&design, receiving, &format!("receive{port}"))).collect();
        let mut sends: Vec<InstanceId> =
            (0..shape.ports).map(|port| m.instance(&design, sending, &format!("transmit{port}"))).collect();
        top.links(&mut design, &receives, &sends);
        let modes = top.scheduling(&sends);
        top.wait_for_end(&receives, &modes, whole);
        let sides_again = top.sides_again(&mut design);
        if let Some((receive, send)) = sides_again {
            receives.push(receive);
            sends.push(send);
        }
        let load = (shape.tag > 0).then(|| top.m.register("frames_on_their_way", 16, Some(0)));
        let admits = load.map(|(_, load)| top.admits(load));
        let places = if shape.headers.has_groups { PLACES } else { 0 };
        let depth = (top.ingress.stage.placed.latency + 4 + places).next_power_of_two().max(16);
        let (credit_register, credit) = top.m.register("outstanding", 16, Some(0));
        let (header, window) = top.headers(&mut design, &receives, (credit, depth, admits));
        let header_port = header.port;
        let mut fate = top.run_ingress(header, window);
        let ready = top.ingress.ready(&mut top.m);
        let enters = top.m.and(header.valid, ready);
        if shape.headers.are_shared {
            top.share(Header { valid: enters, ..header }, &sends);
            fate.emitted[0] = top.m.number(shape.emitted_bits(), 0);
        }
        let Copies { copy, consumed, of_bank, clones } = copies(&mut top, fate, depth);
        let m = &mut top.m;
        let (more, one) = (m.add_number(credit, 1), m.number(16, 1));
        let less = m.sub(credit, one);
        let next = m.mux(enters, more, less);
        m.set_next(credit_register, next);
        let changes = m.xor(enters, consumed);
        m.set_enable(credit_register, changes);
        let bank = copy.header;
        let leaving = leave(&mut top, copy, clones.as_ref());
        let cloned = leaving.cloned.as_ref().zip(clones.as_ref());
        let cloned = cloned.map(|(cloned, clones)| (cloned.kept, cloned.bank, clones.done, clones.of_bank));
        let settled = top.settled((enters, cloned), (consumed, of_bank), bank);
        top.queue(&receives, &sends, &leaving);
        if let (Some(sides), Some(load)) = (sides_again, load) {
            let of_port = top.m.number(top.shape.port_bits(), top.shape.ports.into());
            let of_port = top.m.ne(header_port, of_port);
            let enters = top.m.and(enters, of_port);
            top.connect_again(sides, load, (enters, &leaving));
        }
        top.payload(&receives, &sends);
        top.count_lookups();
        let Top { mut m, control, ingress, egress, parser, tail, .. } = top;
        let stages = placed(&[Some(&ingress), Some(&egress), parser.as_ref(), tail.as_ref()]);
        let shared = hardware.shared_design().map(|made| import(&mut design, &made));
        let shared = shared.map(|module| m.instance(&design, module, "shared"));
        if let Some(shared) = shared {
            stages.iter().for_each(|stage| stage.connect_shared(&mut m, &design, shared));
        }
        let software = control.finish(&mut m, &mut design, (hardware, options), (&stages, shared), settled);
        design.add(m.finish());
        hardware.target.suit(&mut design);
        (design, software)
    }

    /// The streams of the ports, or their MACs.
    fn links(&mut self, design: &mut Design, receives: &[InstanceId], sends: &[InstanceId]) {
        match self.shape.link.has_macs() {
            true => {
                let of = (self.shape, self.up, &mut self.control);
                super::macs::connect(&mut self.m, design, of, receives, sends);
            }
            false => self.streams(receives, sends),
        }
        if self.shape.user.is_some() {
            let busy: Vec<NodeId> = receives.iter().map(|of| self.m.output_of(*of, "busy")).collect();
            let busy = self.m.any(&busy);
            self.m.output("busy", busy);
        }
        let m = &mut self.m;
        for (port, (receive, send)) in self.shape.numbers.iter().zip(receives.iter().zip(sends)) {
            for name in receive::COUNTERS {
                let count = m.output_of(*receive, name);
                self.control.shows(&format!("port{port}.rx_{name}"), count);
            }
            for queue in 0..self.shape.queues {
                let count = m.output_of(*send, &format!("count{queue}"));
                self.control.shows(&format!("port{port}.queue{queue}.length"), count);
            }
            let full = m.output_of(*send, "full");
            self.control.shows(&format!("port{port}.queue_full"), full);
            let empty = m.output_of(*send, "empty");
            self.control.counts(Counted::Drops(Reason::TxRefused), empty);
            self.control.counts(Counted::DropsTo(*port), empty);
        }
    }

    fn streams(&mut self, receives: &[InstanceId], sends: &[InstanceId]) {
        let (m, shape) = (&mut self.m, self.shape);
        for (port, (receive, send)) in receives.iter().zip(sends).enumerate() {
            let input = m.input_stream(&format!("rx{port}"), shape.comes_in());
            m.connect_stream(*receive, "s", &input.beat, input.valid);
            let ready = m.ready_of(*receive, "s");
            m.set_ready(&input, ready);
            let output = m.output_stream(&format!("tx{port}"), shape.leaves());
            let (beat, valid) = m.stream_from(*send, "m");
            m.drive_stream(&output, &beat, valid);
            m.connect_ready(*send, "m", output.ready);
        }
    }

    /// The settings of schedulers; gives the mode of each port.
    fn scheduling(&mut self, sends: &[InstanceId]) -> Vec<NodeId> {
        let m = &mut self.m;
        let mut modes = Vec::new();
        for (port, send) in self.shape.numbers.iter().zip(sends) {
            let mode = self.control.setting(m, &format!("port{port}.discipline"), 2, 0);
            m.connect(*send, "mode", mode);
            modes.push(mode);
            for queue in 0..self.shape.queues {
                let (name, start) =
                    (format!("port{port}.queue{queue}.quantum"), quantum_at_start(self.shape));
                let quantum = self.control.setting(m, &name, Shape::LENGTH, start);
                m.connect(*send, &format!("quantum{queue}"), quantum);
            }
        }
        modes
    }

    /// Whether headers wait for the end of their frame: where the program needs it, and where a port counts bytes of frames.
    fn wait_for_end(&mut self, receives: &[InstanceId], modes: &[NodeId], always: bool) {
        let m = &mut self.m;
        let asked = self.control.setting(m, "whole_frames", 1, 0);
        let mut wants = vec![asked, m.number(1, u128::from(always))];
        for mode in modes {
            wants.push(m.is(*mode, millrace_netlist::blocks::Discipline::Deficit as u128));
        }
        let whole = m.any(&wants);
        let whole = if always { whole } else { m.delayed("whole_wanted", whole, Some(0)) };
        for receive in receives {
            m.connect(*receive, "whole", whole);
        }
    }

    /// The headers of all ports in turn, one a cycle or one an interval.
    fn headers(
        &mut self,
        design: &mut Design,
        receives: &[InstanceId],
        (credit, depth, admits): (NodeId, u32, Option<NodeId>),
    ) -> (Header, NodeId) {
        let arbiter = round_robin_arbiter(design, self.shape.sides());
        let (m, shape) = (&mut self.m, self.shape);
        let turns = m.instance(design, arbiter, "turns");
        let mut requests: Vec<NodeId> =
            receives.iter().map(|receive| m.output_of(*receive, "request")).collect();
        if let Some(admits) = admits {
            let of_ports = requests.iter_mut().take(shape.ports as usize);
            of_ports.for_each(|request| *request = m.and(*request, admits));
        }
        let any = m.any(&requests);
        requests.reverse();
        let request = m.concat(&requests);
        m.connect(turns, "request", request);
        let (valid_register, valid) = m.register("header_valid", 1, Some(0));
        // A header that enters in this cycle is not counted yet.
        let most = m.number(16, u128::from(depth - 1));
        let room = m.lt(credit, most);
        // A header stays until ingress takes it.
        let ready = self.ingress.ready(m);
        let stays = m.not(ready);
        let stays = m.and(valid, stays);
        let free = m.not(stays);
        let take = m.and(room, free);
        m.connect(turns, "take", take);
        let grants = m.output_of(turns, "grant");
        let enters = m.and(any, take);
        let next_valid = m.or(enters, stays);
        m.set_next(valid_register, next_valid);
        let mut numbers = Vec::new();
        let (mut windows, mut lengths, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        let (mut tags, mut times) = (Vec::new(), Vec::new());
        for (port, receive) in receives.iter().enumerate() {
            let granted = m.bit(grants, port as u32);
            let grant = m.and(granted, take);
            m.connect(*receive, "grant", grant);
            numbers.push((granted, m.number(shape.port_bits(), port as u128)));
            windows.push((granted, m.output_of(*receive, "window")));
            lengths.push((granted, m.output_of(*receive, "length")));
            slots.push((granted, m.output_of(*receive, "header_slot")));
            let Some(tag) = &self.again else { continue };
            let (own, time) = match port as u32 == shape.ports {
                true => {
                    let tag_of_frame = m.output_of(*receive, "header_tag");
                    tag.with_time(m, tag_of_frame, self.now)
                }
                false => (tag.of_port(m, port as u32), self.now),
            };
            tags.push((granted, own));
            times.push((granted, time));
        }
        let mut chosen = |name: &str, choices: &[(NodeId, NodeId)]| {
            let value = match choices {
                [] => self.now,
                choices => m.one_hot(m.width(choices[0].1), choices),
            };
            let (register, held) = m.register(name, m.width(value), None);
            m.set_next(register, value);
            m.set_enable(register, free);
            held
        };
        let window = chosen("header_window", &windows);
        let header = Header {
            valid,
            port: chosen("header_port", &numbers),
            slot: chosen("header_slot", &slots),
            length: chosen("header_length", &lengths),
            time: chosen("header_time", &times),
            bank: self.control.bank,
            tag: (!tags.is_empty()).then(|| chosen("header_tag", &tags)),
        };
        let passes = m.and(valid, ready);
        m.output("decided", passes);
        m.output("decided_port", header.port);
        m.output("decided_bank", header.bank);
        (header, window)
    }

    /// Sends headers through ingress; gives what comes out.
    fn run_ingress(&mut self, header: Header, window: NodeId) -> Fate {
        let ready = self.ingress.ready(&mut self.m);
        self.run_parser(&header, ready, window);
        let is_clone = self.parser.is_some().then(|| self.tag_of(&header)).flatten().map(|tag| tag.path);
        let stage = self.ingress.stage;
        let told = stage.dataflow.inputs.iter().filter_map(|(input, _)| match input {
            Input::Slot(slot) => Some((*slot, self.before_ingress(*slot, &header)?)),
            _ => None,
        });
        let slots: BTreeMap<SlotId, NodeId> = told.collect();
        let m = &mut self.m;
        let mut given: BTreeMap<String, NodeId> = BTreeMap::new();
        let enters = match is_clone {
            Some(path) => {
                let clone = m.number(m.width(path), PacketPath::IngressClone as u128);
                let other = m.ne(path, clone);
                m.and(header.valid, other)
            }
            None => header.valid,
        };
        given.insert("valid".to_owned(), enters);
        given.insert(self.bank_input.clone(), header.bank);
        if stage.ports.window > 0 {
            let bits = stage.ports.window * 8;
            let frame = m.slice(window, m.width(window) - bits, bits);
            given.insert("frame".to_owned(), frame);
        }
        for ((input, width), port) in stage.dataflow.inputs.iter().zip(&stage.ports.inputs) {
            let value = match input {
                Input::Length => header.length,
                Input::Slot(slot) => match slots.get(slot) {
                    Some(value) => *value,
                    None => m.number(*width, 0),
                },
                Input::Now => header.time,
                // Without what is added up of the payload, and settings of hashes, no device is made.
                Input::SlotLength(_)
                | Input::Valid(_)
                | Input::Cursor
                | Input::Rest(_)
                | Input::Parameters(_) => m.number(*width, 0),
            };
            given.insert(port.clone(), m.resize(value, *width));
        }
        self.ingress.connect(m, &given);
        let valid = m.and(header.valid, ready);
        let header = Header { valid, ..header }.later(m, "ingress", stage.placed.latency);
        self.count_parser_errors(&header);
        Fate::of(self, header)
    }

    /// Keeps the new headers of frames that come to ingress: each part in a memory, written in the cycle in which ingress knows it, of which each
    /// sending side reads a copy of its own.
    ///
    /// They are there when ingress ends, before the first copy goes to a queue, until the last has left, since the slot is in use until
    /// then. So none is read while it is written.
    fn share(&mut self, enters: Header, sends: &[InstanceId]) {
        let (m, shape, stage) = (&mut self.m, self.shape, self.ingress.stage);
        let mut copies: Vec<Vec<NodeId>> = vec![Vec::new(); sends.len()];
        // The header in the cycle of each part; those of several parts are the same registers.
        let cycles = stage.ports.new_headers.iter().map(|part| (part.cycle, enters));
        let mut headers: BTreeMap<u32, Header> = cycles.collect();
        let mut last = (0, enters);
        for (cycle, header) in &mut headers {
            *header = last.1.later(m, &format!("headers_{cycle}"), cycle - last.0);
            last = (*cycle, *header);
        }
        for part in &stage.ports.new_headers {
            let header = headers[&part.cycle];
            let bits = m.output_of(self.ingress.instance, &part.port);
            let memory = m.memory(&part.port, m.width(bits), shape.ports * shape.slots, Vec::new());
            m.promise_no_collision(memory);
            let place = m.concat(&[header.port, header.slot]);
            let place = m.resize(place, shape.place_bits());
            m.write(memory, header.valid, place, bits);
            for (send, copy) in sends.iter().zip(&mut copies) {
                let (fetch, place) = (m.output_of(*send, "fetch"), m.output_of(*send, "place"));
                copy.push(m.read_clocked(memory, place, Some(fetch)));
            }
        }
        for (send, copy) in sends.iter().zip(copies) {
            let bits = left_fit(m, copy, shape.emitted_bits());
            m.connect(*send, "emitted", bits);
        }
    }

    /// Whether no frame in the device meets another bank than those that come: none is between ingress and its last copy, none waits for
    /// egress, and what was in egress when that was not so has left.
    fn settled(
        &mut self,
        (enters, cloned): (NodeId, Option<(NodeId, NodeId, NodeId, NodeId)>),
        (consumed, of): (NodeId, NodeId),
        copy: Header,
    ) -> NodeId {
        let (m, bank) = (&mut self.m, self.control.bank);
        let mut some = Vec::new();
        for number in 0..2 {
            let (own, other) = (m.is(bank, number), m.is(of, number));
            let (comes, leaves) = (m.and(enters, own), m.and(consumed, other));
            let (register, inside) = m.register(&format!("inside{number}"), 16, Some(0));
            let (more, one) = (m.add_number(inside, 1), m.number(16, 1));
            let less = m.sub(inside, one);
            let next = m.mux(comes, more, less);
            let changes = m.xor(comes, leaves);
            match cloned {
                // Clones of egress enter and leave besides.
                Some((kept, kept_bank, takes, takes_bank)) => {
                    let (of_kept, of_taken) = (m.is(kept_bank, number), m.is(takes_bank, number));
                    let (kept, taken) = (m.and(kept, of_kept), m.and(takes, of_taken));
                    let (kept, taken) = (m.resize(kept, 16), m.resize(taken, 16));
                    let own = m.mux(changes, next, inside);
                    let own = m.add(own, kept);
                    let own = m.sub(own, taken);
                    m.set_next(register, own);
                }
                None => {
                    m.set_next(register, next);
                    m.set_enable(register, changes);
                }
            }
            some.push(m.reduce_or(inside));
        }
        let others = m.mux(bank, some[0], some[1]);
        let differs = m.xor(copy.bank, bank);
        let waits = m.and(copy.valid, differs);
        let starts = m.any(&[others, waits, self.control.bank_written]);
        let left = Countdown::new(m, "egress_left", self.egress.stage.placed.latency + 8);
        let (is_over, free) = (left.is_over, m.not(starts));
        left.begins_with(m, starts);
        m.and(is_over, free)
    }

    /// Puts copies in the queue of their port, and tells the receiving side what becomes of its slot.
    fn queue(&mut self, receives: &[InstanceId], sends: &[InstanceId], leaving: &Leaving) {
        let (m, shape) = (&mut self.m, self.shape);
        let Copy { header, port, class, last, .. } = leaving.copy;
        let moves = editor_moves(m, shape.editor(), leaving.emitted_bytes, leaving.payload_from);
        let queue = shape.queue_of(m, class);
        let (mut accepted, mut wanted) = (Vec::new(), Vec::new());
        for (number, send) in sends.iter().enumerate() {
            let own = m.is(port, number as u128);
            let enqueue = m.and(own, leaving.goes);
            m.connect(*send, "enqueue", enqueue);
            let is_again = number as u32 == shape.ports;
            let own_queue = match is_again {
                true => m.number(shape.again().queue_bits(), 0),
                false => queue,
            };
            m.connect(*send, "of_queue", own_queue);
            if shape.user.is_some() && !is_again {
                m.connect(*send, "of_class", class);
            }
            m.connect(*send, "bytes", leaving.bytes);
            let entry = [header.port, header.slot, leaving.emitted_bytes, moves];
            let emitted = (!shape.headers.are_shared).then_some(leaving.emitted);
            let entry = entry.into_iter().chain(emitted).chain(leaving.most);
            for ((name, _), value) in fields(shape, Side::Port).iter().zip(entry) {
                m.connect(*send, name, value);
            }
            accepted.push(m.output_of(*send, "accepted"));
            wanted.push(enqueue);
        }
        let kept = m.any(&accepted);
        let asked = m.any(&wanted);
        let not = m.not(kept);
        let full = m.and(asked, not);
        self.count_drops(leaving, full);
        let m = &mut self.m;
        let mut ends = m.and(header.valid, last);
        let mut clones = None;
        if let (Some(cloned), Some(of)) = (&leaving.cloned, &leaving.copy.clone) {
            let other = m.not(of.of_egress);
            let (ends_clone, ends_frame) = (m.and(ends, of.of_egress), m.and(ends, other));
            clones = Some((cloned.kept_with_frame, ends_clone));
            ends = ends_frame;
        }
        for (number, receive) in receives.iter().enumerate() {
            let own = m.is(header.port, number as u128);
            let release = m.and(own, ends);
            let keep = m.and(own, kept);
            m.connect(*receive, "release", release);
            m.connect(*receive, "keep", keep);
            if let Some((more, less)) = clones {
                for (name, event) in [("more", more), ("less", less)] {
                    let event = m.and(own, event);
                    m.connect(*receive, name, event);
                }
            }
            m.connect(*receive, "slot", header.slot);
        }
    }

    /// What sending sides read of receiving sides.
    fn payload(&mut self, receives: &[InstanceId], sends: &[InstanceId]) {
        let m = &mut self.m;
        for (to, send) in sends.iter().enumerate() {
            let address = m.output_of(*send, "address");
            let (done, done_input) = (m.output_of(*send, "done"), m.output_of(*send, "done_input"));
            let done_slot = m.output_of(*send, "done_slot");
            for (from, receive) in receives.iter().enumerate() {
                let read = m.output_of(*send, &format!("read{from}"));
                m.connect(*receive, &format!("read{to}"), read);
                m.connect(*receive, &format!("address{to}"), address);
                let own = m.is(done_input, from as u128);
                let done = m.and(done, own);
                m.connect(*receive, &format!("done{to}"), done);
                m.connect(*receive, &format!("slot{to}"), done_slot);
                if self.shape.user_bits() > 0 {
                    m.connect(*receive, &format!("user_slot{to}"), done_slot);
                    let user = m.output_of(*receive, &format!("user{to}"));
                    m.connect(*send, &format!("user{from}"), user);
                }
                for name in ["written", "writing"] {
                    let value = m.output_of(*receive, name);
                    m.connect(*send, &format!("{name}{from}"), value);
                }
                for name in ["data", "last_word"] {
                    let value = m.output_of(*receive, &format!("{name}{to}"));
                    m.connect(*send, &format!("{name}{from}"), value);
                }
            }
        }
    }
}

/// The role of a slot.
pub(super) fn role_of(program: &Program, slot: SlotId) -> Option<Intrinsic> {
    Intrinsic::ALL.iter().copied().find(|role| program.intrinsics.get(*role) == Some(slot))
}
