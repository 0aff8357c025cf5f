//! The data types of a design: modules, ports, registers, memories, instances, streams.

use crate::{
    InputId, InstanceId, MemoryId, ModuleId, Node, NodeId, OutputId, PlaceId, ReadId, RegisterId, StreamId,
};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use millrace_pipeline::Bits;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A whole design: modules of which one is the top. It has one clock, [`Design::CLOCK`], and one synchronous reset,
/// [`Design::RESET`]; neither is a port of the data types: printers add them to the modules that need them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Design {
    /// A module comes after those that it has instances of, so none contains itself.
    pub modules: PrimaryMap<ModuleId, Module>,
    /// The module that is built; the last one when nobody says which.
    pub top: PackedOption<ModuleId>,
}

impl Design {
    /// The name of the clock in SystemVerilog. All state changes at its rising edge.
    pub const CLOCK: &'static str = "clk";
    /// The name of the reset in SystemVerilog: synchronous, active high.
    pub const RESET: &'static str = "rst";

    /// A design without modules.
    pub fn new() -> Design {
        Design::default()
    }

    /// Adds a module. Its instances are of modules that are there already.
    pub fn add(&mut self, module: Module) -> ModuleId {
        self.modules.push(module)
    }

    /// The module of that name.
    pub fn module_named(&self, name: &str) -> Option<ModuleId> {
        self.modules.iter().find(|(_, module)| module.name == name).map(|(id, _)| id)
    }

    /// The top: the one that was set, or the last module. None in a design without modules.
    pub fn top(&self) -> Option<ModuleId> {
        self.top.expand().or_else(|| self.modules.keys().next_back())
    }
}

/// A module: ports, and what drives its outputs.
///
/// Nodes are in an order in which operands come before what uses them, so that one pass over `nodes` computes all of a
/// module that has no instances. Only registers, clocked memory reads and instances break that order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Unique in the design. A name may be any text; printers make it legal.
    pub name: String,
    /// Input ports. Names of ports are unique in the module, inputs and outputs together.
    pub inputs: PrimaryMap<InputId, Input>,
    /// Output ports.
    pub outputs: PrimaryMap<OutputId, Output>,
    /// Values.
    pub nodes: PrimaryMap<NodeId, Node>,
    /// The program's names of some values. Not unique; printers number what is equal.
    pub names: BTreeMap<NodeId, String>,
    /// Registers. Names of registers, memories and instances are unique in the module, all three together.
    pub registers: PrimaryMap<RegisterId, Register>,
    /// Memories.
    pub memories: PrimaryMap<MemoryId, Memory>,
    /// Instances of other modules.
    pub instances: PrimaryMap<InstanceId, Instance>,
    /// Which ports make ready/valid streams.
    pub streams: PrimaryMap<StreamId, Stream>,
    /// Places in the program that nodes and objects come from.
    pub places: PrimaryMap<PlaceId, Place>,
}

impl Module {
    /// The width of a node, 0 if there is none.
    pub fn width(&self, node: NodeId) -> u32 {
        self.nodes.get(node).map_or(0, |node| node.width)
    }

    /// The input port of that name.
    pub fn input_named(&self, name: &str) -> Option<InputId> {
        self.inputs.iter().find(|(_, port)| port.name == name).map(|(id, _)| id)
    }

    /// The output port of that name.
    pub fn output_named(&self, name: &str) -> Option<OutputId> {
        self.outputs.iter().find(|(_, port)| port.name == name).map(|(id, _)| id)
    }

    /// The stream of that name.
    pub fn stream_named(&self, name: &str) -> Option<&Stream> {
        self.streams.values().find(|stream| stream.name == name)
    }
}

impl Module {
    /// Visits what outputs, enables of registers, memories and instances take: each use of a value that is neither an operand nor what comes
    /// next in a register.
    pub(crate) fn taken(&self, mut visit: impl FnMut(PackedOption<NodeId>)) {
        self.outputs.values().for_each(|output| visit(output.value));
        self.registers.values().for_each(|register| visit(register.enable));
        for memory in self.memories.values() {
            for port in &memory.writes {
                [port.address, port.data, port.enable].into_iter().for_each(|node| visit(node.into()));
                visit(port.lanes);
            }
            for port in memory.reads.values() {
                visit(port.address);
                if let Latency::Clocked { enable } = port.latency {
                    visit(enable);
                }
            }
        }
        self.instances.values().flat_map(|instance| &instance.inputs).for_each(|input| visit(*input));
    }

    /// Numbers places in the order of their first use by registers, memories, instances and nodes, and drops those that nothing
    /// uses: the order of the text form.
    pub(crate) fn sort_places(&mut self) {
        let old = std::mem::take(&mut self.places);
        let mut new: SecondaryMap<PlaceId, PackedOption<PlaceId>> = SecondaryMap::with_capacity(old.len());
        let places = &mut self.places;
        let mut renumber = |place: &mut PackedOption<PlaceId>| {
            if let Some(id) = place.expand().filter(|id| old.is_valid(*id)) {
                if new[id].is_none() {
                    new[id] = places.push(old[id].clone()).into();
                }
                *place = new[id];
            }
        };
        self.registers.values_mut().for_each(|register| renumber(&mut register.place));
        self.memories.values_mut().for_each(|memory| renumber(&mut memory.place));
        self.instances.values_mut().for_each(|instance| renumber(&mut instance.place));
        self.nodes.values_mut().for_each(|node| renumber(&mut node.place));
    }

    /// The file and the line of the source that a place is, if it is one.
    pub(crate) fn line(&self, place: PackedOption<PlaceId>) -> Option<(&str, u32)> {
        match self.places.get(place.expand()?)? {
            Place::Line { file, line } => Some((file, *line)),
            Place::Part(_) => None,
        }
    }
}

/// Where in the program something comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A line of its source.
    Line {
        /// The name of the file.
        file: Arc<str>,
        /// Counted from 1.
        line: u32,
    },
    /// A part of it, which [`crate::area::estimate`] counts by and nothing prints.
    Part(Arc<str>),
}

/// An input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
}

/// An output port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
    /// What drives it.
    pub value: PackedOption<NodeId>,
}

/// A register. At the first cycle it holds `reset`, or 0 without one. At each rising edge of the clock it takes `reset`
/// if there is one and the reset is active, else `next` if there is no `enable` or it is 1, else it keeps what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
    /// The value while the reset is active. Registers of data that a valid bit covers need none.
    pub reset: Option<Bits>,
    /// The value that comes next.
    pub next: PackedOption<NodeId>,
    /// Whether it does, 1 bit wide.
    pub enable: PackedOption<NodeId>,
    /// Where in the program it comes from.
    pub place: PackedOption<PlaceId>,
}

/// A memory: `depth` words of `width` bits, with read and write ports that all work in each cycle.
///
/// An address is as wide as [`Memory::address_width`] says. An access to an address of `depth` or more does nothing: a
/// write is lost, a clocked read port keeps its data, a direct read gives 0.
///
/// Reads see what the memory holds *before* the writes of the same clock edge (old data). When several write ports write
/// bits of one word, the last port in `writes` wins. The reset leaves the content alone.
///
/// A memory with a direct read becomes lookup tables (distributed memory), one with clocked reads alone, block memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its name.
    pub name: String,
    /// The width of a word in bits.
    pub width: u32,
    /// The number of words, at least 1.
    pub depth: u32,
    /// What it holds at the first cycle, from word 0 on; the rest is 0.
    pub initial: Vec<Bits>,
    /// Write ports.
    pub writes: Vec<WritePort>,
    /// Read ports.
    pub reads: PrimaryMap<ReadId, ReadPort>,
    /// A promise of the design: no clocked port reads a word at an edge at which a port writes it. Where block memory does not give
    /// old data by itself, as in an ECP5, synthesis then needs no circuit that does. [`crate::Simulator::collisions`] counts where the
    /// promise is broken; what is read in a simulation is old data all the same.
    pub never_collides: bool,
    /// Where in the program it comes from.
    pub place: PackedOption<PlaceId>,
}

impl Register {
    /// Whether pins of flip-flops can have its bits from `low` on take a constant: they have one for the reset's value.
    pub(crate) fn can_be_set(&self, low: u32, value: &Bits) -> bool {
        let reset = self.reset.as_ref().map(|reset| reset.slice(low + value.width() - 1, low));
        reset.is_none_or(|reset| reset == *value)
    }
}

impl Memory {
    /// Bits from which on a memory is asked to be block memory.
    pub const BLOCK_BITS: u64 = 2048;

    /// The width of its addresses: as many bits as `depth - 1` needs, at least 1.
    pub fn address_width(&self) -> u32 {
        address_width(self.depth)
    }

    /// Whether the text asks for block memory: all reads are clocked, need no old data, and there are more than 2048 bits. Synthesis
    /// may choose lookup tables for less, and would for somewhat more.
    pub fn is_block(&self) -> bool {
        let is_clocked = |port: &ReadPort| port.latency != Latency::Direct;
        let bits = u64::from(self.width) * u64::from(self.depth);
        self.never_collides && bits >= Memory::BLOCK_BITS && self.reads.values().all(is_clocked)
    }
}

/// The width of the addresses of a memory of so many words: as many bits as `depth - 1` needs, at least 1.
pub fn address_width(depth: u32) -> u32 {
    (32 - depth.saturating_sub(1).leading_zeros()).max(1)
}

/// A write port: at each rising edge of the clock with `enable`, `data` goes to the word at `address`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePort {
    /// The word.
    pub address: NodeId,
    /// What it will hold.
    pub data: NodeId,
    /// Whether anything is written, 1 bit wide.
    pub enable: NodeId,
    /// Which parts of the word are written: the word has as many parts of equal width as this has bits, bit 0 is for
    /// the lowest. All parts without it.
    pub lanes: PackedOption<NodeId>,
}

/// A read port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPort {
    /// The word.
    pub address: PackedOption<NodeId>,
    /// When its data come.
    pub latency: Latency,
}

/// When the data of a read port come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// In the same cycle.
    Direct,
    /// In the next cycle: at a rising edge of the clock, the data take the word at the address if there is no `enable`
    /// or it is 1, else they stay. They are 0 at the first cycle, and a reset leaves them alone.
    Clocked {
        /// Whether the port reads, 1 bit wide.
        enable: PackedOption<NodeId>,
    },
}

/// An instance of another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// What it is an instance of: a module that comes earlier in the design.
    pub module: ModuleId,
    /// What drives its inputs, by the number of [`InputId`].
    pub inputs: Vec<PackedOption<NodeId>>,
    /// Where in the program it comes from.
    pub place: PackedOption<PlaceId>,
}

/// A ready/valid stream among the ports of a module, as AXI4-Stream has it. A beat passes at each rising edge of the clock
/// at which `valid` and `ready` are both 1. A source that has raised `valid` keeps it and all signals of the beat until then,
/// and `valid` does not wait for `ready`.
///
/// Its ports are plain ports of the module named `NAME_tdata`, `NAME_tkeep`, `NAME_tlast`, `NAME_tuser`, `NAME_tvalid`
/// and `NAME_tready`, the last in the other direction than the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The start of the names of its ports.
    pub name: String,
    /// Whether beats come in or go out.
    pub direction: Direction,
    /// Which signals it has.
    pub shape: StreamShape,
}

/// Whether beats of a stream come into the module or leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `valid` and the beat are inputs, `ready` is an output.
    In,
    /// `valid` and the beat are outputs, `ready` is an input.
    Out,
}

/// The signals of a stream besides `valid` and `ready`, by width; 0 for those it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamShape {
    /// The bits of `tdata`. The first byte of a frame is in bits 7 to 0 of its first beat, as AXI4-Stream has it.
    pub data: u32,
    /// The bits of `tkeep`, one for each byte of `tdata`: whether the byte is part of the frame.
    pub keep: u32,
    /// The bits of `tlast`, 0 or 1: whether the beat is the last one of a frame.
    pub last: u32,
    /// The bits of `tuser`: whatever else goes with a beat.
    pub user: u32,
}

impl StreamShape {
    /// A stream of frames: data, keep, last, and so many bits of user signals.
    pub fn frames(data: u32, user: u32) -> StreamShape {
        StreamShape { data, keep: data / 8, last: 1, user }
    }

    /// A stream of words: data alone.
    pub fn words(data: u32) -> StreamShape {
        StreamShape { data, ..StreamShape::default() }
    }

    /// The signals that it has, with suffix and width, in the order `tdata`, `tkeep`, `tlast`, `tuser`.
    pub fn signals(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [("tdata", self.data), ("tkeep", self.keep), ("tlast", self.last), ("tuser", self.user)]
            .into_iter()
            .filter(|(_, width)| *width > 0)
    }

    /// The bits of a beat: all of its signals together.
    pub fn beat(&self) -> u32 {
        self.signals().map(|(_, width)| width).sum()
    }
}
