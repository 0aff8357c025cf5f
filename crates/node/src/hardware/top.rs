//! The design of all blocks of a node that are in hardware.

use super::modules::{demultiplexer, merge, scheduler, selector, shape, tcam};
use super::queue::queue;
use crate::model::*;
use millrace_netlist::blocks::fifo;
use millrace_netlist::*;
use std::collections::BTreeMap;
use std::fmt;

/// Most bytes of a queue in hardware: its memory is part of the design.
const MAX_HARDWARE_BYTES: u64 = 1 << 18;

/// Beats that wait where streams meet.
const ROOM: u32 = 16;

/// The design of the blocks of a node in hardware, with its paths to software.
#[derive(Clone, Debug)]
pub struct Top {
    /// The design; its top has a stream `inN` and `outN` for each way, and ports `BLOCK.NAME` for registers.
    pub design: Design,
    /// The inputs that frames come to from software, by the number of the way.
    pub inputs: Vec<End>,
    /// The outputs whose frames go to software.
    pub outputs: Vec<End>,
    /// The blocks that are in it.
    pub blocks: Vec<usize>,
}

/// Why a node has no design: which block, and why.
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

/// Whether a block is part of the design: programs have devices of their own.
pub(crate) fn is_part(block: &BlockSpec) -> bool {
    block.placement == Placement::Hardware && !matches!(block.kind, Kind::P4(_))
}

impl Top {
    /// Of a node; none: it has no blocks in hardware.
    ///
    /// # Errors
    /// A block cannot be hardware.
    pub fn new(node: &NodeFile) -> Result<Option<Top>, NoHardware> {
        let blocks: Vec<usize> =
            (0..node.blocks.len()).filter(|block| is_part(&node.blocks[*block])).collect();
        if blocks.is_empty() {
            return Ok(None);
        }
        refuse(node, &blocks)?;
        let mut building = Building {
            node,
            design: Design::new(),
            m: ModuleBuilder::new("node"),
            instances: BTreeMap::new(),
            ready: BTreeMap::new(),
        };
        let inside = |end: End| blocks.contains(&end.block);
        let mut paths = (Vec::new(), Vec::new());
        for connection in &node.connections {
            match (inside(connection.from), inside(connection.to)) {
                (false, true) if !paths.0.contains(&connection.to) => paths.0.push(connection.to),
                (true, false) => paths.1.push(connection.from),
                _ => {}
            }
        }
        for block in &blocks {
            building.block(*block);
        }
        for (number, to) in paths.0.iter().enumerate() {
            let input = building.m.input_stream(&format!("in{number}"), shape());
            building.source(*to, Source { beat: input.beat, valid: input.valid, ready: Ready::Way(input) });
        }
        for (number, from) in paths.1.iter().enumerate() {
            building.way_out(number, *from);
        }
        for connection in node.connections.iter().filter(|of| inside(of.from) && inside(of.to)) {
            let (instance, stream) = building.output(connection.from);
            let (beat, valid) = building.m.stream_from(instance, &stream);
            building.source(connection.to, Source { beat, valid, ready: Ready::Of(instance, stream) });
        }
        building.connect_all(&blocks);
        let Building { mut design, m, .. } = building;
        let top = design.add(m.finish());
        design.top = top.into();
        Ok(Some(Top { design, inputs: paths.0, outputs: paths.1, blocks }))
    }
}

/// What cannot be hardware.
fn refuse(node: &NodeFile, blocks: &[usize]) -> Result<(), NoHardware> {
    let no = |block: usize, why: String| Err(NoHardware { block: node.blocks[block].name.clone(), why });
    for block in blocks {
        let kind = &node.blocks[*block].kind;
        for (port, name) in kind.outputs().into_iter().enumerate() {
            if node.follows(End { block: *block, port }).is_none() {
                return no(
                    *block,
                    format!("the output `{name}` leads nowhere: in hardware each output has a connection"),
                );
            }
        }
        match kind {
            Kind::Queue(queue) if queue.bytes > MAX_HARDWARE_BYTES => {
                return no(
                    *block,
                    format!(
                        "a queue of {} bytes in hardware: at most {MAX_HARDWARE_BYTES} (MAX_HARDWARE_BYTES)",
                        queue.bytes
                    ),
                );
            }
            Kind::Mac(_) => {
                return no(
                    *block,
                    "a mac in hardware is part of whole devices, which `millrace rtl --device` makes".into(),
                );
            }
            _ => {}
        }
    }
    for connection in &node.connections {
        let (from, to) = (connection.from.block, connection.to.block);
        if matches!(node.blocks[to].kind, Kind::Scheduler(_))
            && blocks.contains(&from) != blocks.contains(&to)
        {
            return no(to, format!("a scheduler and its queue `{}` are on one side", node.blocks[from].name));
        }
    }
    Ok(())
}

struct Building<'n> {
    node: &'n NodeFile,
    design: Design,
    m: ModuleBuilder,
    instances: BTreeMap<usize, InstanceId>,
    /// What leads to each input.
    ready: BTreeMap<End, Vec<Source>>,
}

/// A stream that leads to an input.
struct Source {
    beat: Beat,
    valid: NodeId,
    ready: Ready,
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
        let (module, settings, shown): (ModuleId, Vec<(String, u32)>, Vec<&str>) = match &spec.kind {
            Kind::OctetSelector(places) => {
                let octets = (0..places.len()).map(|at| (format!("octet{at}"), 8));
                (selector(design, places.len() as u32), octets.collect(), vec![])
            }
            Kind::Tcam(spec) => {
                let module = tcam(design, spec.size);
                let names = [
                    "bank",
                    "miss",
                    "write_enable",
                    "write_memory",
                    "write_address",
                    "write_data",
                    "count_of",
                ];
                let settings = names.map(|name| (name.to_owned(), input_width(design, module, name)));
                (module, settings.to_vec(), vec!["count", "misses"])
            }
            Kind::Demultiplexer(outputs) => (demultiplexer(design, *outputs), vec![], vec!["lost"]),
            Kind::Queue(spec) => (
                queue(design, spec.frames, spec.bytes as u32),
                vec![],
                vec!["frames", "bytes", "taken", "lost"],
            ),
            Kind::Scheduler(spec) => {
                let queues = spec.quanta.len() as u32;
                let quanta = (0..queues).map(|at| (format!("quantum{at}"), 16));
                let settings = std::iter::once(("discipline".to_owned(), 2)).chain(quanta);
                (scheduler(design, queues), settings.collect(), vec![])
            }
            Kind::P4(_) | Kind::Mac(_) | Kind::Manager(_) => return,
        };
        let instance = self.m.instance(&self.design, module, &spec.name);
        self.instances.insert(number, instance);
        for (name, width) in settings {
            let value = self.m.input(&format!("{}.{name}", spec.name), width);
            self.m.connect(instance, &name, value);
        }
        for name in shown {
            let value = self.m.output_of(instance, name);
            self.m.output(&format!("{}.{name}", spec.name), value);
        }
    }

    /// The instance and stream of an output.
    fn output(&self, from: End) -> (InstanceId, String) {
        let stream = match self.node.blocks[from.block].kind {
            Kind::Demultiplexer(_) => format!("m{}", from.port),
            _ => "m".to_owned(),
        };
        (self.instances[&from.block], stream)
    }

    /// The instance and stream of an input.
    fn input(&self, to: End) -> (InstanceId, String) {
        let stream = match self.node.blocks[to.block].kind {
            Kind::Scheduler(_) => format!("s{}", to.port),
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
                let Source { beat, valid, ready } = sources.remove(0);
                self.m.connect_stream(instance, &stream, &beat, valid);
                let taken = self.m.ready_of(instance, &stream);
                self.tell(ready, taken);
            }
            several => {
                let module = merge(&mut self.design, several as u32);
                let name = format!("merge.{}.{}", self.node.blocks[to.block].name, to.port);
                let merge = self.m.instance(&self.design, module, &name);
                for (number, Source { beat, valid, ready }) in sources.into_iter().enumerate() {
                    // Whether it takes a beat does not follow from what else comes: demultiplexers ask that of all their outputs.
                    let room = fifo(&mut self.design, shape(), ROOM);
                    let room = self.m.instance(&self.design, room, &format!("{name}.{number}"));
                    self.m.connect_stream(room, "s", &beat, valid);
                    let taken = self.m.ready_of(room, "s");
                    self.tell(ready, taken);
                    let of = format!("s{number}");
                    let (beat, valid) = self.m.stream_from(room, "m");
                    self.m.connect_stream(merge, &of, &beat, valid);
                    let taken = self.m.ready_of(merge, &of);
                    self.m.connect_ready(room, "m", taken);
                }
                let (beat, valid) = self.m.stream_from(merge, "m");
                self.m.connect_stream(instance, &stream, &beat, valid);
                let taken = self.m.ready_of(instance, &stream);
                self.m.connect_ready(merge, "m", taken);
            }
        }
    }

    fn tell(&mut self, ready: Ready, taken: NodeId) {
        match ready {
            Ready::Way(stream) => self.m.set_ready(&stream, taken),
            Ready::Of(instance, stream) => self.m.connect_ready(instance, &stream, taken),
        }
    }
}

/// The width of an input of a module.
fn input_width(design: &Design, module: ModuleId, name: &str) -> u32 {
    design.modules[module].inputs.values().find(|input| input.name == name).map_or(1, |input| input.width)
}
