//! The design of all blocks of a node that are in hardware.

use super::control::{Reached, with_registers};
use super::mac::mac;
use super::modules::{demultiplexer, merge, parts, scheduler, selector, shape, tcam, tcam_ports};
use super::programs::{NoHardware, OF_PROGRAM, Part, Programs, is_stream};
use super::queue::queue;
use crate::blocks::{MAC_ERRORS, registers};
use crate::model::*;
use millrace_netlist::blocks::fifo;
use millrace_netlist::*;
use millrace_rtl::map::{Bus, RegisterMap, Step};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most bytes of a queue in hardware: its memory is part of the design.
const MAX_HARDWARE_BYTES: u64 = 1 << 18;

/// Bytes of the buffer of a manager.
const MANAGER_BYTES: u32 = 1 << 17;

/// The port of the time in nanoseconds, where programs are.
pub(super) const NOW: &str = "now_ns";

/// Beats that wait where streams meet.
const ROOM: u32 = 16;

/// The design of the blocks of a device in hardware, with its paths to software and to other devices.
#[derive(Clone, Debug)]
pub struct Top {
    /// The design; its top has a stream `inN` and `outN` for each way, and the bus of its registers.
    pub design: Design,
    /// The registers.
    pub map: RegisterMap,
    /// The bus that they are at.
    pub bus: Bus,
    /// The inputs that frames come to from software, by the number of the way.
    pub inputs: Vec<End>,
    /// The outputs whose frames go to software.
    pub outputs: Vec<End>,
    /// The device.
    pub device: usize,
    /// The blocks that are in it.
    pub blocks: Vec<usize>,
    /// The registers that count frames of outputs without a connection.
    pub unconnected: Vec<String>,
    /// Those of the blocks that are MACs, and the link that they have: ports `BLOCK.rx_NAME` and `BLOCK.tx_NAME`.
    pub macs: Vec<usize>,
    /// Their link.
    pub link: MacLink,
    /// The blocks that are programs: `BLOCK.` begins the names of the ports of the bus of each.
    pub programs: Vec<Arc<Part>>,
}

/// Whether a block is part of the design.
fn is_part(node: &NodeFile, block: usize, programs: &Programs) -> bool {
    let spec = &node.blocks[block];
    let is_one = !matches!(spec.kind, Kind::P4(_)) || programs.get(block).is_some();
    spec.placement == Placement::Hardware && is_one
}

impl Top {
    /// Of all devices that have blocks in hardware, each with its registers at such a bus.
    ///
    /// # Errors
    /// A block cannot be hardware.
    pub fn all(node: &NodeFile, programs: &Programs, bus: Bus) -> Result<Vec<Top>, NoHardware> {
        let tops = (0..node.devices.len()).map(|device| Top::new(node, programs, device, bus).transpose());
        tops.flatten().collect()
    }

    /// Of a device, its registers at such a bus; none: it has no blocks in hardware.
    ///
    /// # Errors
    /// A block cannot be hardware.
    pub fn new(
        node: &NodeFile,
        programs: &Programs,
        device: usize,
        bus: Bus,
    ) -> Result<Option<Top>, NoHardware> {
        let on_device = |block: &usize| node.functions[node.blocks[*block].function].device == device;
        let blocks = (0..node.blocks.len()).filter(on_device).filter(|block| is_part(node, *block, programs));
        let blocks: Vec<usize> = blocks.collect();
        if blocks.is_empty() {
            return Ok(None);
        }
        refuse(node, &blocks)?;
        let macs: Vec<(usize, MacLink)> = blocks.iter().filter_map(|block| mac_of(node, *block)).collect();
        let link = one_link(node, &macs)?;
        let mut building = Building {
            node,
            design: Design::new(),
            m: ModuleBuilder::new("blocks"),
            reached: Reached::default(),
            instances: BTreeMap::new(),
            ready: BTreeMap::new(),
            programs: Vec::new(),
            now: None,
        };
        // What managers have in their buffers goes to the processor, and answers come from there.
        let is_manager = |end: End| matches!(node.blocks[end.block].kind, Kind::Manager(_));
        let gives = |end: End| blocks.contains(&end.block) && !is_manager(end);
        let takes = |end: End| blocks.contains(&end.block);
        let mut paths = (Vec::new(), Vec::new());
        for connection in &node.connections {
            match (gives(connection.from), takes(connection.to)) {
                (false, true) if !paths.0.contains(&connection.to) => paths.0.push(connection.to),
                (true, false) => paths.1.push(connection.from),
                _ => {}
            }
        }
        paths
            .1
            .extend(blocks.iter().map(|block| End { block: *block, port: 0 }).filter(|end| is_manager(*end)));
        for block in &blocks {
            match programs.get(*block) {
                Some(part) => building.program(part),
                None => building.block(*block),
            }
        }
        for (number, to) in paths.0.iter().enumerate() {
            let input = building.m.input_stream(&format!("in{number}"), shape());
            let (beat, valid) = (input.beat, input.valid);
            // Software waits as long as it has to.
            let ready = Ready::Way(input);
            building.source(*to, Source { beat, valid, ready, waits: true, looks: false });
        }
        for (number, from) in paths.1.iter().enumerate() {
            building.way_out(number, *from);
        }
        for connection in node.connections.iter().filter(|of| gives(of.from) && takes(of.to)) {
            let (instance, stream) = building.output(connection.from);
            let (beat, valid) = building.m.stream_from(instance, &stream);
            let kind = &node.blocks[connection.from.block].kind;
            let (waits, looks) = (kind.is_asked(), matches!(kind, Kind::Scheduler(_)));
            let ready = Ready::Of(instance, stream);
            building.source(connection.to, Source { beat, valid, ready, waits, looks });
        }
        let outputs = blocks.iter().flat_map(|block| {
            let ports = 0..node.blocks[*block].kind.outputs().len();
            ports.map(|port| End { block: *block, port })
        });
        let open = outputs.filter(|from| !is_manager(*from) && node.follows(*from).is_none());
        let unconnected = open.map(|from| building.nowhere(from)).collect();
        building.connect_all(&blocks);
        let Building { mut design, m, reached, programs, .. } = building;
        let inner = design.add(m.finish());
        // Nodes that have the same blocks and connections have the same design.
        let (inputs, outputs) = paths;
        let made_of = format!("{} {inputs:?} {outputs:?}", millrace_netlist::text::print(&design));
        let map = reached.map(&node.name, &made_of);
        with_registers(&mut design, inner, &map, &reached, bus);
        let macs = macs.into_iter().map(|(block, _)| block).collect();
        Ok(Some(Top { design, map, bus, device, inputs, outputs, blocks, unconnected, macs, link, programs }))
    }
}

/// The link of a block that is a MAC.
fn mac_of(node: &NodeFile, block: usize) -> Option<(usize, MacLink)> {
    match &node.blocks[block].kind {
        Kind::Mac(spec) => Some((block, spec.link)),
        _ => None,
    }
}

/// The link that all MACs of a design have: it has one clock.
fn one_link(node: &NodeFile, macs: &[(usize, MacLink)]) -> Result<MacLink, NoHardware> {
    let Some((first, link)) = macs.first() else { return Ok(MacLink::default()) };
    match macs.iter().find(|(_, other)| other != link) {
        None => Ok(*link),
        Some((block, own)) => {
            let (own, other, first) = (own.word(), link.word(), &node.blocks[*first].name);
            let why = format!("its link is {own}, that of `{first}` {other}: a design has one clock");
            Err(NoHardware { block: node.blocks[*block].name.clone(), why })
        }
    }
}

/// What cannot be hardware.
fn refuse(node: &NodeFile, blocks: &[usize]) -> Result<(), NoHardware> {
    let no = |block: usize, why: String| Err(NoHardware { block: node.blocks[block].name.clone(), why });
    for block in blocks {
        if let Kind::Queue(QueueSpec { bytes, .. }) = node.blocks[*block].kind
            && bytes > MAX_HARDWARE_BYTES
        {
            let why = format!(
                "a queue of {bytes} bytes in hardware: at most {MAX_HARDWARE_BYTES} (MAX_HARDWARE_BYTES)"
            );
            return no(*block, why);
        }
    }
    if let Some(block) = blocks.iter().find(|block| is_closed(node, blocks, **block)) {
        let why = "what comes in has left by it, without a queue or another way in: no frame ever gets there";
        return no(*block, why.to_owned());
    }
    for connection in &node.connections {
        let (from, to) = (connection.from.block, connection.to.block);
        if matches!(node.blocks[to].kind, Kind::Scheduler(_))
            && blocks.contains(&from) != blocks.contains(&to)
        {
            return no(
                to,
                format!("a scheduler and its queue `{}` are in one place", node.blocks[from].name),
            );
        }
    }
    Ok(())
}

/// Whether all that comes to a block has left by it, through blocks in which beats wait for nothing: as hardware that is a loop without a
/// register. Where several streams meet beats wait, so a loop with a way in has registers.
fn is_closed(node: &NodeFile, blocks: &[usize], start: usize) -> bool {
    let passes = |block: usize| {
        blocks.contains(&block) && matches!(node.blocks[block].kind, Kind::Tcam(_) | Kind::Demultiplexer(_))
    };
    let mut block = start;
    for _ in 0..blocks.len() {
        let mut sources = node.connections.iter().filter(|of| of.to.block == block);
        match (sources.next(), sources.next()) {
            (Some(only), None) if passes(block) => block = only.from.block,
            _ => return false,
        }
        if block == start {
            return true;
        }
    }
    false
}

struct Building<'n> {
    node: &'n NodeFile,
    design: Design,
    m: ModuleBuilder,
    /// What software reads and writes.
    reached: Reached,
    instances: BTreeMap<usize, InstanceId>,
    /// What leads to each input.
    ready: BTreeMap<End, Vec<Source>>,
    programs: Vec<Arc<Part>>,
    /// The time that all programs have.
    now: Option<NodeId>,
}

/// An output of a module, its name in the register map, and whether it counts what happens in each cycle.
type Shown = (&'static str, &'static str, bool);

/// A stream that leads to an input.
struct Source {
    beat: Beat,
    valid: NodeId,
    ready: Ready,
    /// It waits where it finds no room; what others send is lost then.
    waits: bool,
    /// It begins a frame only where that is taken: a scheduler, whose choice is that of the last moment.
    looks: bool,
}

/// Who is told that a beat is taken.
enum Ready {
    Way(InStream),
    Of(InstanceId, String),
}

impl Building<'_> {
    /// The instance of a block, with its registers as ports.
    fn block(&mut self, number: usize) {
        let spec = &self.node.blocks[number];
        let design = &mut self.design;
        let same = |names: &[&'static str], counts: &[&'static str]| {
            let now = names.iter().map(|name| (*name, *name, false));
            now.chain(counts.iter().map(|name| (*name, *name, true))).collect()
        };
        let (module, settings, shown): (ModuleId, Vec<(String, u32)>, Vec<Shown>) = match &spec.kind {
            Kind::OctetSelector(places) => {
                let octets = (0..places.len()).map(|at| (format!("octet{at}"), 8));
                (selector(design, places.len() as u32), octets.collect(), vec![])
            }
            Kind::Tcam(spec) => (tcam(design, spec.size), vec![], same(&["bank"], &["misses"])),
            Kind::Demultiplexer(outputs) => (demultiplexer(design, *outputs), vec![], same(&[], &["lost"])),
            Kind::Queue(spec) => (
                queue(design, spec.frames, spec.bytes as u32),
                vec![],
                same(&["frames", "bytes"], &["taken", "lost"]),
            ),
            Kind::Scheduler(spec) => {
                let queues = spec.quanta.len() as u32;
                let quanta = (0..queues).map(|at| (format!("quantum{at}"), 16));
                let settings = std::iter::once(("discipline".to_owned(), 2)).chain(quanta);
                (scheduler(design, queues), settings.collect(), vec![])
            }
            // What a buffer counts; answers are counted where they are made.
            Kind::Manager(spec) => {
                let shown = [("frames", "waiting", false), ("taken", "taken", true), ("lost", "lost", true)];
                (queue(design, spec.buffer, MANAGER_BYTES), vec![], shown.to_vec())
            }
            Kind::Mac(spec) => {
                let module = mac(design, spec.link);
                return self.mac(number, module);
            }
            Kind::P4(_) => return,
        };
        let instance = self.m.instance(&self.design, module, &spec.name);
        self.instances.insert(number, instance);
        for (name, width) in settings {
            let value = self.setting(&format!("{}.{name}", spec.name), width);
            self.m.connect(instance, &name, value);
        }
        if let Kind::Tcam(TcamSpec { size, .. }) = spec.kind {
            self.unit(instance, (&spec.name, size));
        }
        if matches!(spec.kind, Kind::Queue(_) | Kind::Manager(_)) {
            let never = self.m.number(1, 0);
            self.m.connect(instance, "forget", never);
        }
        for (name, register, is_counted) in shown {
            let (value, register) = (self.m.output_of(instance, name), format!("{}.{register}", spec.name));
            match is_counted {
                true => self.counts(&register, value, Step::Events(1)),
                false => self.shows(&register, value),
            }
        }
    }

    /// What software sets.
    fn setting(&mut self, name: &str, width: u32) -> NodeId {
        self.reached.settings.push((name.to_owned(), width));
        self.m.input(name, width)
    }

    /// A number that software reads.
    fn shows(&mut self, name: &str, value: NodeId) {
        self.reached.shown.push(name.to_owned());
        self.m.output(name, value);
    }

    /// A number that software reads, of what is counted in each cycle.
    fn counts(&mut self, name: &str, value: NodeId, step: Step) {
        self.reached.counted.push((name.to_owned(), step));
        self.m.output(name, value);
    }

    /// The memories of a TCAM.
    fn unit(&mut self, instance: InstanceId, (name, size): (&str, u32)) {
        let own = tcam_ports("", size);
        for (of, port) in own.iter().zip(tcam_ports(&format!("{name}."), size)) {
            let mut inputs = Vec::new();
            if port.writable {
                inputs.extend(port.write_inputs(&mut self.m));
            }
            if port.readable {
                inputs.extend(port.read_inputs(&mut self.m));
            }
            for (what, value) in of.given().zip(inputs) {
                self.m.connect(instance, &of.port(what), value);
            }
            if port.readable {
                let data = self.m.output_of(instance, &of.port("read_data"));
                port.read_output(&mut self.m, data);
            }
            self.reached.units.push(port);
        }
    }

    /// A MAC, with the signals of its link as ports.
    fn mac(&mut self, number: usize, module: ModuleId) {
        let BlockSpec { name, kind, .. } = &self.node.blocks[number];
        let Kind::Mac(spec) = kind else { return };
        let m = &mut self.m;
        let instance = m.instance(&self.design, module, name);
        self.instances.insert(number, instance);
        let link = spec.link.of_devices();
        for (pin, width) in link.receives() {
            let value = m.input(&format!("{name}.rx_{pin}"), *width);
            m.connect(instance, &format!("rx_{pin}"), value);
        }
        for pin in link.transmits() {
            let value = m.output_of(instance, &format!("tx_{pin}"));
            m.output(&format!("{name}.tx_{pin}"), value);
        }
        let station =
            spec.address.unwrap_or_default().iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
        let fixed = [
            ("station", 48, station),
            ("filters", 1, spec.address.is_some().into()),
            ("port", 16, spec.port.into()),
        ];
        for (input, width, value) in fixed {
            let value = m.number(width, value);
            m.connect(instance, input, value);
        }
        for register in registers(kind) {
            let port = format!("{name}.{}", register.name);
            match register.writable {
                true => {
                    let value = self.setting(&port, 1);
                    self.m.connect(instance, &register.name, value);
                }
                false => {
                    let value = self.m.output_of(instance, &register.name);
                    let what = register.name.strip_prefix("rx.");
                    match self.m.width(value) {
                        // What the halves of a MAC count themselves.
                        _ if what.is_some_and(|what| MAC_ERRORS.contains(&what)) => self.shows(&port, value),
                        1 => self.counts(&port, value, Step::Events(1)),
                        width => self.counts(&port, value, Step::Sum(width)),
                    }
                }
            }
        }
    }

    /// A program, with the ports of its bus as ports.
    fn program(&mut self, part: &Arc<Part>) {
        let name = &self.node.blocks[part.block()].name;
        let module = part.add_to(&mut self.design, name);
        let m = &mut self.m;
        let instance = m.instance(&self.design, module, name);
        self.instances.insert(part.block(), instance);
        let made = self.design.modules[module].clone();
        for port in made.inputs.values().filter(|port| !is_stream(&port.name, OF_PROGRAM)) {
            let value = match port.name.as_str() {
                NOW => *self.now.get_or_insert_with(|| m.input(NOW, port.width)),
                own => m.input(&format!("{name}.{own}"), port.width),
            };
            m.connect(instance, &port.name, value);
        }
        for port in made.outputs.values().filter(|port| !is_stream(&port.name, OF_PROGRAM)) {
            let value = self.m.output_of(instance, &port.name);
            match port.name.as_str() {
                "frames" | "sent" => {
                    self.counts(&format!("{name}.{}", port.name), value, Step::Events(port.width))
                }
                own => drop(self.m.output(&format!("{name}.{own}"), value)),
            }
        }
        self.programs.push(Arc::clone(part));
    }

    /// The instance and stream of an output.
    fn output(&self, from: End) -> (InstanceId, String) {
        let stream = match self.node.blocks[from.block].kind {
            Kind::Demultiplexer(_) | Kind::P4(_) => format!("m{}", from.port),
            _ => "m".to_owned(),
        };
        (self.instances[&from.block], stream)
    }

    /// The instance and stream of an input.
    fn input(&self, to: End) -> (InstanceId, String) {
        let stream = match self.node.blocks[to.block].kind {
            Kind::Scheduler(_) | Kind::P4(_) => format!("s{}", to.port),
            _ => "s".to_owned(),
        };
        (self.instances[&to.block], stream)
    }

    fn source(&mut self, to: End, source: Source) {
        self.ready.entry(to).or_default().push(source);
    }

    fn way_out(&mut self, number: usize, from: End) {
        let (instance, stream) = self.output(from);
        let output = self.m.output_stream(&format!("out{number}"), shape());
        let (beat, valid) = self.m.stream_from(instance, &stream);
        self.m.drive_stream(&output, &beat, valid);
        self.m.connect_ready(instance, &stream, output.ready);
    }

    /// What leaves by an output without a connection is lost, and counted at a port.
    fn nowhere(&mut self, from: End) -> String {
        let (instance, stream) = self.output(from);
        let (beat, valid) = self.m.stream_from(instance, &stream);
        let always = self.m.number(1, 1);
        self.m.connect_ready(instance, &stream, always);
        let (_, _, last, _) = parts(&beat);
        let ends = self.m.and(valid, last);
        let spec = &self.node.blocks[from.block];
        let name = format!("{}.{}.unconnected", spec.name, spec.kind.outputs()[from.port]);
        self.counts(&name, ends, Step::Events(1));
        name
    }

    /// Connects all inputs.
    fn connect_all(&mut self, blocks: &[usize]) {
        for block in blocks {
            let spec = &self.node.blocks[*block];
            for port in 0..spec.kind.inputs().len() {
                let to = End { block: *block, port };
                let sources = self.ready.remove(&to).unwrap_or_default();
                self.connect(to, sources);
            }
            if let Kind::Scheduler(scheduler) = &spec.kind {
                self.tell_heads(*block, scheduler.quanta.len());
            }
        }
    }

    /// The heads of the queues of a scheduler.
    fn tell_heads(&mut self, block: usize, queues: usize) {
        let own = self.instances[&block];
        for port in 0..queues {
            let to = End { block, port };
            let queue =
                self.node.connections.iter().find(|of| of.to == to).map(|of| self.instances[&of.from.block]);
            for (name, width) in [("head", 16), ("arrived", 1)] {
                let value = match queue {
                    Some(queue) => self.m.output_of(queue, name),
                    None => self.m.number(width, 0),
                };
                self.m.connect(own, &format!("{name}{port}"), value);
            }
        }
    }

    fn connect(&mut self, to: End, mut sources: Vec<Source>) {
        let (instance, stream) = self.input(to);
        match sources.len() {
            0 => {
                let zeros = Beat {
                    data: Some(self.m.number(shape().data, 0)),
                    keep: Some(self.m.number(shape().keep, 0)),
                    last: Some(self.m.number(1, 0)),
                    user: Some(self.m.constant(Bits::zero(shape().user))),
                };
                let never = self.m.number(1, 0);
                self.m.connect_stream(instance, &stream, &zeros, never);
            }
            1 => {
                let Source { mut beat, mut valid, mut ready, waits, looks } = sources.remove(0);
                // A TCAM and a program take a beat that they have looked at, a demultiplexer one whose targets it sees: none of them takes any
                // that is not there.
                let kind = &self.node.blocks[to.block].kind;
                if looks && matches!(kind, Kind::Tcam(_) | Kind::Demultiplexer(_) | Kind::P4(_)) {
                    let between = fifo(&mut self.design, shape(), ROOM);
                    let name = format!("between.{}.{}", self.node.blocks[to.block].name, to.port);
                    let between = self.m.instance(&self.design, between, &name);
                    self.m.connect_stream(between, "s", &beat, valid);
                    let taken = self.m.ready_of(between, "s");
                    self.tell(ready, taken);
                    (beat, valid) = self.m.stream_from(between, "m");
                    ready = Ready::Of(between, "m".to_owned());
                }
                let room = self.room(to).filter(|_| waits);
                let valid = self.if_room(room, valid);
                self.m.connect_stream(instance, &stream, &beat, valid);
                let taken = self.m.ready_of(instance, &stream);
                let taken = self.if_room(room, taken);
                self.tell(ready, taken);
            }
            several => {
                let module = merge(&mut self.design, several as u32);
                let name = format!("merge.{}.{}", self.node.blocks[to.block].name, to.port);
                let merge = self.m.instance(&self.design, module, &name);
                let room_there = self.room(to);
                for (number, Source { beat, valid, ready, waits, .. }) in sources.into_iter().enumerate() {
                    let room_there = room_there.filter(|_| waits);
                    // Whether it takes a beat does not follow from what else comes: demultiplexers ask that of all their outputs.
                    let room = fifo(&mut self.design, shape(), ROOM);
                    let room = self.m.instance(&self.design, room, &format!("{name}.{number}"));
                    self.m.connect_stream(room, "s", &beat, valid);
                    let taken = self.m.ready_of(room, "s");
                    self.tell(ready, taken);
                    let of = format!("s{number}");
                    let (beat, valid) = self.m.stream_from(room, "m");
                    let valid = self.if_room(room_there, valid);
                    self.m.connect_stream(merge, &of, &beat, valid);
                    let taken = self.m.ready_of(merge, &of);
                    let taken = self.if_room(room_there, taken);
                    self.m.connect_ready(room, "m", taken);
                }
                self.m.connect_streams((merge, "m"), (instance, &stream));
            }
        }
    }

    /// Whether an input has room for a frame of any length, if what has none there is lost: at a MAC. Where frames wait for that, it stays
    /// as long as a frame passes: what others send is taken before or after it.
    fn room(&mut self, to: End) -> Option<NodeId> {
        let is_mac = matches!(self.node.blocks[to.block].kind, Kind::Mac(_));
        is_mac.then(|| self.m.output_of(self.instances[&to.block], "room"))
    }

    fn if_room(&mut self, room: Option<NodeId>, signal: NodeId) -> NodeId {
        room.map_or(signal, |room| self.m.and(signal, room))
    }

    fn tell(&mut self, ready: Ready, taken: NodeId) {
        match ready {
            Ready::Way(stream) => self.m.set_ready(&stream, taken),
            Ready::Of(instance, stream) => self.m.connect_ready(instance, &stream, taken),
        }
    }
}
