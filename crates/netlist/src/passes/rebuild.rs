//! A module built again, from what its outputs depend on.

use super::registers::{Known, Piece, Pieces, Value};
use crate::*;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};

/// What of a module its outputs depend on, over any number of cycles.
#[derive(Default)]
pub(crate) struct Live {
    pub(crate) nodes: EntitySet<NodeId>,
    pub(crate) registers: EntitySet<RegisterId>,
    pub(crate) memories: EntitySet<MemoryId>,
    pub(crate) reads: std::collections::BTreeSet<(MemoryId, ReadId)>,
    pub(crate) instances: EntitySet<InstanceId>,
}

impl Live {
    /// Finds it. `known` registers depend on nothing but what stands for them.
    pub(crate) fn of(module: &Module, known: &Known) -> Live {
        let mut live = Live::default();
        let mut stack: Vec<NodeId> = Vec::new();
        let add = |stack: &mut Vec<NodeId>, node: PackedOption<NodeId>| stack.extend(node.expand());
        module.outputs.values().for_each(|port| add(&mut stack, port.value));
        while let Some(node) = stack.pop() {
            if !live.nodes.insert(node) {
                continue;
            }
            let op = &module.nodes[node].op;
            op.operands(|operand| stack.push(operand));
            match op {
                Op::Register(register) => {
                    let register = match known.get(*register) {
                        Some(Value::Constant(_)) => continue,
                        Some(Value::Same(other)) => *other,
                        Some(Value::Pieces(pieces)) => {
                            stack.extend(pieces.down().filter_map(|piece| match piece {
                                Piece::Of(node, ..) => Some(*node),
                                Piece::Constant(_) | Piece::Own(..) => None,
                            }));
                            if pieces.width() == 0 {
                                continue;
                            }
                            *register
                        }
                        None => *register,
                    };
                    if live.registers.insert(register) {
                        add(&mut stack, module.registers[register].next);
                        add(&mut stack, module.registers[register].enable);
                    }
                }
                Op::Read(memory, read) => {
                    let (id, memory) = (*memory, &module.memories[*memory]);
                    if never_reads(module, memory, &memory.reads[*read]) {
                        continue;
                    }
                    if live.reads.insert((id, *read)) {
                        let port = &memory.reads[*read];
                        add(&mut stack, port.address);
                        if let Latency::Clocked { enable } = port.latency {
                            add(&mut stack, enable);
                        }
                    }
                    if live.memories.insert(id) {
                        for port in memory.writes.iter().filter(|port| !never_writes(module, memory, port)) {
                            stack.extend([port.address, port.data, port.enable]);
                            add(&mut stack, port.lanes);
                        }
                    }
                }
                Op::Instance(instance, _) if live.instances.insert(*instance) => {
                    module.instances[*instance].inputs.iter().for_each(|input| add(&mut stack, *input));
                }
                _ => (),
            }
        }
        live
    }
}

fn constant(module: &Module, node: PackedOption<NodeId>) -> Option<&Bits> {
    match &module.nodes[node.expand()?].op {
        Op::Constant(value) => Some(value),
        _ => None,
    }
}

fn is_beyond(module: &Module, memory: &Memory, address: PackedOption<NodeId>) -> bool {
    constant(module, address).is_some_and(|address| address.to_u64_saturating() >= memory.depth.into())
}

/// Whether a write port is never enabled, or always writes beyond the end.
fn never_writes(module: &Module, memory: &Memory, port: &WritePort) -> bool {
    let off = |node: NodeId| constant(module, node.into()).is_some_and(Bits::is_zero);
    off(port.enable) || is_beyond(module, memory, port.address.into())
}

/// Whether a read port always gives 0, because it is never enabled or always reads beyond the end.
fn never_reads(module: &Module, memory: &Memory, port: &ReadPort) -> bool {
    let off = match port.latency {
        Latency::Clocked { enable } => constant(module, enable).is_some_and(Bits::is_zero),
        Latency::Direct => false,
    };
    off || is_beyond(module, memory, port.address)
}

/// Builds a module again. Registers that are known become what they are.
pub(super) fn rebuild(module: &Module, known: &Known) -> Module {
    rebuild_with(module, known, |_, _, _, _| None)
}

/// Builds a module again, with what `replace` makes of an operation and its operands where it makes something.
pub(super) fn rebuild_with(module: &Module, known: &Known, replace: Replace) -> Module {
    let live = Live::of(module, known);
    let mut rebuilder = Rebuilder {
        module,
        known,
        replace,
        live: &live,
        new: ModuleBuilder::new(&module.name),
        nodes: SecondaryMap::new(),
        registers: SecondaryMap::new(),
        memories: SecondaryMap::new(),
        reads: Default::default(),
        instances: SecondaryMap::new(),
    };
    rebuilder.objects();
    rebuilder.nodes();
    rebuilder.connect();
    rebuilder.new.finish()
}

/// What stands for an operation of two operands.
pub(super) type Replace = fn(&mut ModuleBuilder, BinaryOp, NodeId, NodeId) -> Option<NodeId>;

struct Rebuilder<'a> {
    module: &'a Module,
    known: &'a Known,
    replace: Replace,
    live: &'a Live,
    new: ModuleBuilder,
    /// What the new builder calls things of the old module.
    nodes: SecondaryMap<NodeId, PackedOption<NodeId>>,
    registers: SecondaryMap<RegisterId, PackedOption<RegisterId>>,
    memories: SecondaryMap<MemoryId, PackedOption<MemoryId>>,
    reads: std::collections::BTreeMap<(MemoryId, ReadId), NodeId>,
    instances: SecondaryMap<InstanceId, PackedOption<InstanceId>>,
}

impl Rebuilder<'_> {
    /// Ports, and what has state, without what drives it.
    fn objects(&mut self) {
        let (old, new) = (self.module, self.new.module_mut());
        new.inputs = old.inputs.clone();
        new.streams = old.streams.clone();
        new.places = old.places.clone();
        for (id, register) in old.registers.iter().filter(|(id, _)| self.live.registers.contains(*id)) {
            let mut register = Register { next: None.into(), enable: None.into(), ..register.clone() };
            if let Some(Value::Pieces(pieces)) = self.known.get(id) {
                let kept = |bits: &Bits| {
                    let parts = pieces.kept_down().map(|(low, width)| bits.slice(low + width - 1, low));
                    parts.reduce(|high, low| high.concat(&low)).expect("a live register keeps bits")
                };
                register.reset = register.reset.as_ref().map(kept);
                register.width = pieces.width();
            }
            self.registers[id] = new.registers.push(register).into();
        }
        for (id, memory) in old.memories.iter().filter(|(id, _)| self.live.memories.contains(*id)) {
            let (writes, reads) = (Vec::new(), PrimaryMap::new());
            self.memories[id] = new.memories.push(Memory { writes, reads, ..memory.clone() }).into();
        }
        for (id, instance) in old.instances.iter().filter(|(id, _)| self.live.instances.contains(*id)) {
            self.instances[id] = new.instances.push(instance.clone()).into();
        }
        for (memory, read) in &self.live.reads {
            if self.module.memories[*memory].reads[*read].latency != Latency::Direct {
                let new = self.memories[*memory].expect("a live memory");
                let (_, data) = self.new.declare_read(new);
                self.reads.insert((*memory, *read), data);
            }
        }
    }

    /// What a node has become.
    fn node(&self, old: NodeId) -> NodeId {
        self.nodes[old].expect("operands come earlier and are as live as what uses them")
    }

    fn nodes(&mut self) {
        for (id, node) in &self.module.nodes {
            if !self.live.nodes.contains(id) {
                continue;
            }
            self.new.set_place_id(node.place);
            let mut new = self.operation(node);
            if let Some(pieces) = self.known.values_in_pieces.get(&id) {
                new = self.put_together(pieces, |_, bit| bit, Some(new));
            }
            self.nodes[id] = new.into();
            let named = matches!(self.new.module().nodes[new].op, Op::Input(_) | Op::Register(_));
            if let Some(name) = self.module.names.get(&id).filter(|_| !named) {
                self.new.name(new, name);
            }
        }
    }

    fn operation(&mut self, node: &Node) -> NodeId {
        let width = node.width;
        let op = match &node.op {
            Op::Constant(value) => return self.new.constant((**value).clone()),
            Op::Input(input) => Op::Input(*input),
            Op::Register(register) => {
                let register = match self.known.get(*register) {
                    Some(Value::Constant(value)) => return self.new.constant(value.clone()),
                    Some(Value::Same(other)) => *other,
                    Some(Value::Pieces(pieces)) => return self.pieces(*register, pieces),
                    None => *register,
                };
                Op::Register(self.registers[register].expect("a live register"))
            }
            Op::Read(memory, read) => {
                if let Some(data) = self.reads.get(&(*memory, *read)) {
                    return *data;
                }
                let port = &self.module.memories[*memory].reads[*read];
                if never_reads(self.module, &self.module.memories[*memory], port) {
                    return self.new.constant(Bits::zero(width));
                }
                let address = self.node(port.address.expect("a verified port"));
                return self.new.read(self.memories[*memory].expect("a live memory"), address);
            }
            Op::Instance(instance, output) => {
                Op::Instance(self.instances[*instance].expect("a live instance"), *output)
            }
            Op::Unary(op, a) => Op::Unary(*op, self.node(*a)),
            Op::Binary(op, a, b) => {
                let (a, b) = (self.node(*a), self.node(*b));
                if let Some(new) = (self.replace)(&mut self.new, *op, a, b) {
                    return new;
                }
                Op::Binary(*op, a, b)
            }
            Op::Concat(parts) => Op::Concat(parts.iter().map(|part| self.node(*part)).collect()),
            Op::Slice(a, low) => Op::Slice(self.node(*a), *low),
            Op::Repeat(a) => Op::Repeat(self.node(*a)),
            Op::Mux(select, a, b) => Op::Mux(self.node(*select), self.node(*a), self.node(*b)),
        };
        self.new.operation(op, width)
    }

    /// The value of a register that keeps some of its bits.
    fn pieces(&mut self, old: RegisterId, pieces: &Pieces) -> NodeId {
        let mut own = None;
        if let Some(register) = self.registers[old].expand() {
            // What it takes is there before it, if it was.
            if let Some(next) =
                self.module.registers[old].next.expand().and_then(|next| self.nodes[next].expand())
            {
                let next = self.kept(next, pieces);
                self.new.module_mut().registers[register].next = next.into();
            }
            own = Some(self.new.operation(Op::Register(register), pieces.width()));
        }
        self.put_together(pieces, Pieces::place, own)
    }

    /// A value made of pieces, with those of its own at their place in another value.
    fn put_together(
        &mut self,
        pieces: &Pieces,
        place: fn(&Pieces, u32) -> u32,
        own: Option<NodeId>,
    ) -> NodeId {
        let mut parts = Vec::new();
        for piece in pieces.down() {
            parts.push(match piece {
                Piece::Constant(value) => self.new.constant(value.clone()),
                Piece::Own(bit, width) => {
                    self.new.slice(own.expect("a live register"), place(pieces, *bit), *width)
                }
                Piece::Of(node, low, width) => self.new.slice(self.node(*node), *low, *width),
            });
        }
        self.new.concat(&parts)
    }

    /// The bits of what a register takes that it keeps.
    fn kept(&mut self, next: NodeId, pieces: &Pieces) -> NodeId {
        let parts: Vec<_> = pieces.kept_down().map(|(low, width)| self.new.slice(next, low, width)).collect();
        self.new.concat(&parts)
    }

    /// What drives outputs, registers, memories and instances.
    fn connect(&mut self) {
        let driven =
            |this: &Self, node: PackedOption<NodeId>| node.expand().map(|node| this.node(node)).into();
        let is = |this: &Self, node: PackedOption<NodeId>, value: bool| {
            let constant = node.expand().and_then(|node| this.new.as_constant(node));
            constant.is_some_and(|constant| constant.is_zero() != value)
        };
        for port in self.module.outputs.values() {
            let value = driven(self, port.value);
            self.new.module_mut().outputs.push(Output { value, ..port.clone() });
        }
        for (old, register) in &self.module.registers {
            let Some(id) = self.registers[old].expand() else { continue };
            let (mut next, mut enable) = (driven(self, register.next), driven(self, register.enable));
            if let (Some(Value::Pieces(pieces)), Some(whole)) = (self.known.get(old), next.expand()) {
                let kept = self.new.module().registers[id].next;
                next = kept.expand().unwrap_or_else(|| self.kept(whole, pieces)).into();
            }
            if is(self, enable, true) {
                enable = None.into();
            }
            let new = &mut self.new.module_mut().registers[id];
            (new.next, new.enable) = (next, enable);
        }
        for (old, memory) in &self.module.memories {
            let Some(id) = self.memories[old].expand() else { continue };
            for port in &memory.writes {
                if never_writes(self.module, memory, port) {
                    continue;
                }
                let (enable, mut lanes) = (self.node(port.enable), driven(self, port.lanes));
                let all = |lanes: NodeId| self.new.as_constant(lanes).is_some_and(|lanes| lanes.is_ones());
                if lanes.expand().is_some_and(all) {
                    lanes = None.into();
                }
                let (address, data) = (self.node(port.address), self.node(port.data));
                let port = WritePort { address, data, enable, lanes };
                self.new.module_mut().memories[id].writes.push(port);
            }
            for (read, port) in &memory.reads {
                let Latency::Clocked { enable } = port.latency else { continue };
                let Some(data) = self.reads.get(&(old, read)).copied() else { continue };
                let mut enable: PackedOption<NodeId> = driven(self, enable);
                if is(self, enable, true) {
                    enable = None.into();
                }
                let Op::Read(_, new) = self.new.module().nodes[data].op else { continue };
                let port =
                    ReadPort { address: driven(self, port.address), latency: Latency::Clocked { enable } };
                self.new.module_mut().memories[id].reads[new] = port;
            }
        }
        for (old, instance) in &self.module.instances {
            let Some(id) = self.instances[old].expand() else { continue };
            let inputs = instance.inputs.iter().map(|input| driven(self, *input)).collect();
            self.new.module_mut().instances[id].inputs = inputs;
        }
    }
}
