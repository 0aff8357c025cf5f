//! Building a module: [`ModuleBuilder`].
//!
//! Each method that makes a value folds constants, applies the rules of `rules`, and gives the node that is there already
//! when an equal one is (hash consing); so a generator may write what is plain to write. A method takes constant time, but for
//! concatenations and slices of them, whose time goes with the number of parts.
//!
//! Operands of wrong width are faults of whoever calls. Debug builds panic at the caller; others record the node as it is, and
//! [`crate::verify()`] refuses the module. A module that has [`limits::MAX_NODES`] nodes grows no further and is refused, too.
//!
//! ```
//! use millrace_netlist::{Design, ModuleBuilder, verify};
//!
//! // A counter of frames that starts again at 0.
//! let mut m = ModuleBuilder::new("counter");
//! let (seen, clear) = (m.input("seen", 1), m.input("clear", 1));
//! let (count, value) = m.register("count", 32, Some(0));
//! let one = m.number(32, 1);
//! let more = m.add(value, one);
//! let zero = m.number(32, 0);
//! let next = m.mux(clear, zero, more);
//! let step = m.or(seen, clear);
//! m.set_next(count, next);
//! m.set_enable(count, step);
//! m.output("frames", value);
//! let mut design = Design::new();
//! design.add(m.finish());
//! assert!(verify(&design).is_ok());
//! ```

mod compound;
mod instances;
mod rules;
mod streams;

pub use streams::{Beat, InStream, OutStream};

use crate::*;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Builds a [`Module`].
#[derive(Clone, Debug)]
pub struct ModuleBuilder {
    module: Module,
    /// Nodes by the hash of operation and width. Of two different nodes with one hash, which is as good as impossible, the
    /// second is not shared; nothing else depends on it.
    shared: FxHashMap<u64, NodeId>,
    known_places: FxHashMap<Place, PlaceId>,
    place: PackedOption<PlaceId>,
    signatures: SecondaryMap<InstanceId, Arc<instances::Signature>>,
    known_signatures: FxHashMap<ModuleId, Arc<instances::Signature>>,
}

impl ModuleBuilder {
    /// Starts a module without ports.
    pub fn new(name: &str) -> ModuleBuilder {
        ModuleBuilder {
            module: Module { name: name.into(), ..Module::default() },
            shared: FxHashMap::default(),
            known_places: FxHashMap::default(),
            place: None.into(),
            signatures: SecondaryMap::new(),
            known_signatures: FxHashMap::default(),
        }
    }

    /// Goes on with a module. What it has is not shared with what is added, and nothing is known of its instances.
    pub(crate) fn resume(module: Module) -> ModuleBuilder {
        ModuleBuilder { module, ..ModuleBuilder::new("") }
    }

    /// The module as it is now.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Ends building. Whether all is driven is for [`crate::verify()`] to say.
    pub fn finish(mut self) -> Module {
        self.module.sort_places();
        self.module
    }

    /// The width of a value.
    pub fn width(&self, node: NodeId) -> u32 {
        self.module.width(node)
    }

    /// What follows comes from this place of the program, until another is set.
    pub fn set_place(&mut self, place: Option<Place>) {
        self.place = place.and_then(|place| self.place_id(place)).into();
    }

    /// As [`ModuleBuilder::set_place`], with a place of [`Module::places`].
    pub(crate) fn set_place_id(&mut self, place: PackedOption<PlaceId>) {
        self.place = place;
    }

    fn place_id(&mut self, place: Place) -> Option<PlaceId> {
        if let Some(id) = self.known_places.get(&place) {
            return Some(*id);
        }
        // A place more is a comfort, not a need.
        (self.module.places.len() < limits::MAX_PLACES).then(|| {
            let id = self.module.places.push(place.clone());
            self.known_places.insert(place, id);
            id
        })
    }

    /// Gives a value the name that it has in the program. The first name of a value stays.
    pub fn name(&mut self, node: NodeId, name: &str) {
        if !matches!(self.module.nodes[node].op, Op::Constant(_)) {
            self.module.names.entry(node).or_insert_with(|| name.into());
        }
    }

    /// A value with a name: `name` and the value itself.
    pub fn named(&mut self, name: &str, node: NodeId) -> NodeId {
        self.name(node, name);
        node
    }

    /// Adds an input port; gives its value.
    pub fn input(&mut self, name: &str, width: u32) -> NodeId {
        let id = self.module.inputs.push(Input { name: name.into(), width });
        self.node(Op::Input(id), width)
    }

    /// Adds an output port that gives a value.
    pub fn output(&mut self, name: &str, value: NodeId) -> OutputId {
        let width = self.width(value);
        self.module.outputs.push(Output { name: name.into(), width, value: value.into() })
    }

    /// Adds an output port whose value [`ModuleBuilder::drive_output`] tells later.
    pub fn declare_output(&mut self, name: &str, width: u32) -> OutputId {
        self.module.outputs.push(Output { name: name.into(), width, value: None.into() })
    }

    /// What an output port gives.
    #[track_caller]
    pub fn drive_output(&mut self, output: OutputId, value: NodeId) {
        debug_assert_eq!(self.module.outputs[output].width, self.width(value), "width of an output");
        self.module.outputs[output].value = value.into();
    }

    /// Adds a register; gives it and the value that it holds. [`ModuleBuilder::set_next`] must follow.
    pub fn register(&mut self, name: &str, width: u32, reset: Option<u128>) -> (RegisterId, NodeId) {
        self.register_with(name, width, reset.map(|value| Bits::new(width.max(1), value)))
    }

    /// As [`ModuleBuilder::register`], with a reset value of any width.
    pub fn register_with(&mut self, name: &str, width: u32, reset: Option<Bits>) -> (RegisterId, NodeId) {
        let (next, enable, place) = (None.into(), None.into(), self.place);
        let id =
            self.module.registers.push(Register { name: name.into(), width, reset, next, enable, place });
        (id, self.node(Op::Register(id), width))
    }

    /// What the register takes at each edge of the clock.
    #[track_caller]
    pub fn set_next(&mut self, register: RegisterId, next: NodeId) {
        debug_assert_eq!(self.module.registers[register].width, self.width(next), "width of a register");
        self.module.registers[register].next = next.into();
    }

    /// When the register takes its next value.
    #[track_caller]
    pub fn set_enable(&mut self, register: RegisterId, enable: NodeId) {
        debug_assert_eq!(self.width(enable), 1, "width of an enable");
        self.module.registers[register].enable = enable.into();
    }

    /// What a value was in the last cycle before this in which `when` was 1: a register that takes it then.
    pub fn kept(&mut self, name: &str, value: NodeId, when: NodeId, reset: Option<u128>) -> NodeId {
        let (register, output) = self.register(name, self.width(value), reset);
        self.set_next(register, value);
        self.set_enable(register, when);
        output
    }

    /// A value one cycle later: a register with that next value.
    pub fn delayed(&mut self, name: &str, value: NodeId, reset: Option<u128>) -> NodeId {
        let (register, output) = self.register(name, self.width(value), reset);
        self.set_next(register, value);
        output
    }

    /// Adds a memory of `depth` words of `width` bits, which starts with `initial` and then zeros.
    pub fn memory(&mut self, name: &str, width: u32, depth: u32, initial: Vec<Bits>) -> MemoryId {
        let (name, place, never_collides) = (name.into(), self.place, false);
        let (writes, reads) = (Vec::new(), PrimaryMap::new());
        let memory = Memory { name, width, depth, initial, writes, reads, never_collides, place };
        self.module.memories.push(memory)
    }

    /// Promises that no clocked port of a memory reads a word while it is written (see [`Memory::never_collides`]).
    pub fn promise_no_collision(&mut self, memory: MemoryId) {
        self.module.memories[memory].never_collides = true;
    }

    /// Adds a write port, after those that are there.
    #[track_caller]
    pub fn write(&mut self, memory: MemoryId, enable: NodeId, address: NodeId, data: NodeId) {
        self.check_port(memory, address, Some(enable));
        debug_assert_eq!(self.width(data), self.module.memories[memory].width, "width of a word");
        let port = WritePort { address, data, enable, lanes: None.into() };
        self.module.memories[memory].writes.push(port);
    }

    /// As [`ModuleBuilder::write`], of those parts of the word whose bit in `lanes` is 1 (see [`WritePort::lanes`]).
    #[track_caller]
    pub fn write_lanes(
        &mut self,
        memory: MemoryId,
        enable: NodeId,
        address: NodeId,
        data: NodeId,
        lanes: NodeId,
    ) {
        self.check_port(memory, address, Some(enable));
        let width = self.module.memories[memory].width;
        debug_assert_eq!(self.width(data), width, "width of a word");
        debug_assert_eq!(width % self.width(lanes), 0, "lanes of equal width");
        let port = WritePort { address, data, enable, lanes: lanes.into() };
        self.module.memories[memory].writes.push(port);
    }

    /// The word at an address, in the same cycle.
    #[track_caller]
    pub fn read(&mut self, memory: MemoryId, address: NodeId) -> NodeId {
        self.check_port(memory, address, None);
        let depth = u64::from(self.module.memories[memory].depth);
        if self.as_constant(address).is_some_and(|address| address.to_u64_saturating() >= depth) {
            return self.constant(Bits::zero(self.module.memories[memory].width.max(1)));
        }
        // An equal port is the same port.
        let reads = &mut self.module.memories[memory].reads;
        let equal = |port: &ReadPort| port.latency == Latency::Direct && port.address == address.into();
        let known = reads.iter().find(|(_, port)| equal(port)).map(|(id, _)| id);
        let read = known
            .unwrap_or_else(|| reads.push(ReadPort { address: address.into(), latency: Latency::Direct }));
        self.node(Op::Read(memory, read), self.module.memories[memory].width)
    }

    /// The word at an address, one cycle later.
    #[track_caller]
    pub fn read_clocked(&mut self, memory: MemoryId, address: NodeId, enable: Option<NodeId>) -> NodeId {
        let (read, data) = self.declare_read(memory);
        self.drive_read(memory, read, address, enable);
        data
    }

    /// Adds a clocked read port; gives it and its data. [`ModuleBuilder::drive_read`] must follow.
    pub fn declare_read(&mut self, memory: MemoryId) -> (ReadId, NodeId) {
        let latency = Latency::Clocked { enable: None.into() };
        let port = ReadPort { address: None.into(), latency };
        let read = self.module.memories[memory].reads.push(port);
        (read, self.node(Op::Read(memory, read), self.module.memories[memory].width))
    }

    /// What a clocked read port reads, and when.
    #[track_caller]
    pub fn drive_read(&mut self, memory: MemoryId, read: ReadId, address: NodeId, enable: Option<NodeId>) {
        self.check_port(memory, address, enable);
        let latency = Latency::Clocked { enable: enable.into() };
        self.module.memories[memory].reads[read] = ReadPort { address: address.into(), latency };
    }

    #[track_caller]
    fn check_port(&self, memory: MemoryId, address: NodeId, enable: Option<NodeId>) {
        let wanted = self.module.memories[memory].address_width();
        debug_assert_eq!(self.width(address), wanted, "width of an address");
        debug_assert!(enable.is_none_or(|enable| self.width(enable) == 1), "width of an enable");
    }

    /// Any operation by its value, as the methods for each do it: the optimiser rebuilds modules with it.
    pub(crate) fn operation(&mut self, op: Op, width: u32) -> NodeId {
        match op {
            Op::Unary(op, a) => self.unary(op, a),
            Op::Binary(op, a, b) => self.binary(op, a, b),
            Op::Concat(parts) => self.concat(&parts),
            Op::Slice(a, low) => self.slice(a, low, width),
            Op::Repeat(a) => self.repeat(a, width),
            Op::Mux(select, a, b) => self.mux(select, a, b),
            leaf => self.node(leaf, width),
        }
    }

    /// A node as it is, to which no rule applies: what random designs have, so that optimisers find something to do.
    #[cfg(feature = "arbitrary")]
    pub(crate) fn raw(&mut self, op: Op, width: u32) -> NodeId {
        self.module.nodes.push(Node { op, width, place: self.place })
    }

    /// The parts of the module that the optimiser fills in itself.
    pub(crate) fn module_mut(&mut self) -> &mut Module {
        &mut self.module
    }

    /// The node of that operation: the one that is there, or a new one.
    fn node(&mut self, op: Op, width: u32) -> NodeId {
        let mut hasher = FxHasher::default();
        (&op, width).hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(known) = self.shared.get(&hash) {
            let node = &self.module.nodes[*known];
            if node.width == width && node.op == op {
                return *known;
            }
        }
        if self.module.nodes.len() >= limits::MAX_NODES {
            return NodeId::from_u32(0);
        }
        let id = self.module.nodes.push(Node { op, width, place: self.place });
        self.shared.insert(hash, id);
        id
    }
}
