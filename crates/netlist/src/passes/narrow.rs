//! Values without the bits that nothing reads.
//!
//! What is read of a value is a range of its bits, from the lowest that anything reads to the highest. It follows from what is
//! read of the values that use it: of what drives an output all bits; of both operands of a bitwise operation the same as of its
//! result; of a sum, whose carries go up, the bits from 0 to the highest that is read. State is read in other cycles too, so the
//! range of a register and what is read of its next value depend on each other: ranges grow, from nothing, until they agree.
//! Then each value and each register is built again with its range alone.

use crate::*;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};

/// How often ranges of registers may grow.
const MOST_ROUNDS: usize = 64;

/// A range of bits: the first, and the one after the last. Nothing when they are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Range {
    low: u32,
    end: u32,
}

impl Range {
    fn all(width: u32) -> Range {
        Range { low: 0, end: width }
    }

    fn is_empty(self) -> bool {
        self.low >= self.end
    }

    fn width(self) -> u32 {
        self.end - self.low
    }

    /// The smallest range with both.
    fn join(self, other: Range) -> Range {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Range { low: self.low.min(other.low), end: self.end.max(other.end) },
        }
    }
}

/// What is read of each value and register.
struct Ranges {
    nodes: SecondaryMap<NodeId, Range>,
    registers: SecondaryMap<RegisterId, Range>,
}

/// Builds a module again without bits that nothing reads, if there are any. Registers of which nothing is read are left to
/// [`super::clean`], which drops them.
pub(super) fn narrow(module: &Module) -> Option<Module> {
    let ranges = ranges(module)?;
    let whole = |(id, register): (RegisterId, &Register)| ranges.registers[id] == Range::all(register.width);
    let narrower = |(id, node): (NodeId, &Node)| {
        let range = ranges.nodes[id];
        let low = if takes_carries(&node.op) { 0 } else { range.low };
        !range.is_empty() && Range { low, ..range } != Range::all(node.width) && can_narrow(&node.op)
    };
    if module.registers.iter().all(whole) && !module.nodes.iter().any(narrower) {
        return None;
    }
    Some(Narrower::new(module, &ranges).run())
}

/// Whether bits of a value depend on lower bits of its operands.
fn takes_carries(op: &Op) -> bool {
    matches!(op, Op::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, ..))
}

/// Whether a value can be built with a range of its bits alone.
fn can_narrow(op: &Op) -> bool {
    use BinaryOp::*;
    match op {
        Op::Unary(op, _) => *op == UnaryOp::Not,
        Op::Binary(op, ..) => matches!(op, And | Or | Xor | Add | Sub | Mul),
        Op::Mux(..) | Op::Register(_) => true,
        // The rules for slices of these do it.
        _ => false,
    }
}

/// Finds them; `None` if that takes too long, as where each bit of a register goes to the next one.
fn ranges(module: &Module) -> Option<Ranges> {
    let mut ranges = Ranges { nodes: SecondaryMap::new(), registers: SecondaryMap::new() };
    for _ in 0..MOST_ROUNDS {
        let before = ranges.registers.clone();
        let mut nodes: SecondaryMap<NodeId, Range> = SecondaryMap::with_capacity(module.nodes.len());
        module.taken(|node| {
            if let Some(node) = node.expand() {
                nodes[node] = Range::all(module.width(node));
            }
        });
        for (id, register) in &module.registers {
            if let Some(next) = register.next.expand() {
                nodes[next] = nodes[next].join(ranges.registers[id]);
            }
        }
        for (id, node) in module.nodes.iter().rev() {
            let range = nodes[id];
            if range.is_empty() {
                continue;
            }
            if let Op::Register(register) = node.op {
                ranges.registers[register] = ranges.registers[register].join(range);
            }
            spread(module, &node.op, range, &mut nodes);
        }
        ranges.nodes = nodes;
        if ranges.registers == before {
            return Some(ranges);
        }
    }
    None
}

/// What is read of the operands of a value of which that range is read.
fn spread(module: &Module, op: &Op, range: Range, nodes: &mut SecondaryMap<NodeId, Range>) {
    let mut read = |node: NodeId, range: Range| nodes[node] = nodes[node].join(range);
    match op {
        Op::Unary(UnaryOp::Not, a) => read(*a, range),
        Op::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, a, b) => {
            read(*a, range);
            read(*b, range);
        }
        Op::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b) => {
            read(*a, Range { low: 0, end: range.end });
            read(*b, Range { low: 0, end: range.end });
        }
        Op::Mux(select, a, b) => {
            read(*select, Range::all(1));
            read(*a, range);
            read(*b, range);
        }
        Op::Slice(a, low) => read(*a, Range { low: range.low + low, end: range.end + low }),
        Op::Concat(parts) => {
            let mut start = 0;
            for part in parts.iter().rev() {
                let end = start + module.width(*part);
                let (low, high) = (range.low.max(start), range.end.min(end));
                if low < high {
                    read(*part, Range { low: low - start, end: high - start });
                }
                start = end;
            }
        }
        op => op.operands(|operand| read(operand, Range::all(module.width(operand)))),
    }
}

struct Narrower<'a> {
    module: &'a Module,
    ranges: &'a Ranges,
    new: ModuleBuilder,
    /// What stands for a value: another, which has its bits from the given one on.
    nodes: SecondaryMap<NodeId, Option<(NodeId, u32)>>,
}

impl<'a> Narrower<'a> {
    fn new(module: &'a Module, ranges: &'a Ranges) -> Narrower<'a> {
        Narrower { module, ranges, new: ModuleBuilder::new(&module.name), nodes: SecondaryMap::new() }
    }

    fn run(mut self) -> Module {
        let module = self.module;
        let new = self.new.module_mut();
        // All but the values and what refers to them stays.
        *new = Module { nodes: Default::default(), names: Default::default(), ..module.clone() };
        for (id, register) in &mut new.registers {
            let range = self.ranges.registers[id];
            if !range.is_empty() {
                register.width = range.width();
                register.reset = register.reset.as_ref().map(|reset| reset.slice(range.end - 1, range.low));
            }
        }
        for (id, node) in &module.nodes {
            if self.ranges.nodes[id].is_empty() {
                continue;
            }
            self.new.set_place_id(node.place);
            let (value, low) = self.value(id, node);
            self.nodes[id] = Some((value, low));
            if let Some(name) = module.names.get(&id) {
                self.new.name(value, name);
            }
        }
        self.connect();
        self.new.finish()
    }

    /// Bits of what stands for a value.
    fn bits(&mut self, old: NodeId, range: Range) -> NodeId {
        let (value, low) = self.nodes[old].expect("what is read was built");
        self.new.slice(value, range.low - low, range.width())
    }

    fn whole(&mut self, old: NodeId) -> NodeId {
        self.bits(old, Range::all(self.module.width(old)))
    }

    /// Builds a value, or the range of it that is read; gives it and its first bit.
    fn value(&mut self, id: NodeId, node: &Node) -> (NodeId, u32) {
        let range = self.ranges.nodes[id];
        match &node.op {
            Op::Register(register) => {
                let range = self.ranges.registers[*register];
                (self.new.operation(Op::Register(*register), range.width()), range.low)
            }
            Op::Unary(UnaryOp::Not, a) => {
                let a = self.bits(*a, range);
                (self.new.not(a), range.low)
            }
            Op::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor), a, b) => {
                let (a, b) = (self.bits(*a, range), self.bits(*b, range));
                (self.new.binary(*op, a, b), range.low)
            }
            Op::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                let up_to = Range { low: 0, end: range.end };
                let (a, b) = (self.bits(*a, up_to), self.bits(*b, up_to));
                (self.new.binary(*op, a, b), 0)
            }
            Op::Mux(select, a, b) => {
                let (select, a, b) = (self.whole(*select), self.bits(*a, range), self.bits(*b, range));
                (self.new.mux(select, a, b), range.low)
            }
            Op::Slice(a, low) => {
                let bits = self.bits(*a, Range { low: range.low + low, end: range.end + low });
                (bits, range.low)
            }
            Op::Concat(parts) => {
                let mut pieces = Vec::new();
                let mut start = 0;
                for part in parts.iter().rev() {
                    let end = start + self.module.width(*part);
                    let (low, high) = (range.low.max(start), range.end.min(end));
                    if low < high {
                        pieces.push(self.bits(*part, Range { low: low - start, end: high - start }));
                    }
                    start = end;
                }
                pieces.reverse();
                (self.new.concat(&pieces), range.low)
            }
            Op::Constant(value) => (self.new.constant((**value).clone()), 0),
            Op::Input(_) | Op::Instance(..) => (self.new.operation(node.op.clone(), node.width), 0),
            Op::Read(memory, read) => {
                // The address of a direct read is an operand.
                let port = &self.module.memories[*memory].reads[*read];
                if let (Latency::Direct, Some(address)) = (port.latency, port.address.expand()) {
                    let address = self.whole(address);
                    self.new.module_mut().memories[*memory].reads[*read].address = address.into();
                }
                (self.new.operation(node.op.clone(), node.width), 0)
            }
            Op::Unary(op, a) => {
                let a = self.whole(*a);
                (self.new.unary(*op, a), 0)
            }
            Op::Binary(op, a, b) => {
                let (a, b) = (self.whole(*a), self.whole(*b));
                (self.new.binary(*op, a, b), 0)
            }
            Op::Repeat(a) => {
                let a = self.whole(*a);
                (self.new.repeat(a, range.width()), range.low)
            }
        }
    }

    fn connect(&mut self) {
        let module = self.module;
        let mut driven = |node: PackedOption<NodeId>| -> PackedOption<NodeId> {
            node.expand().map(|node| self.bits(node, Range::all(module.width(node)))).into()
        };
        let outputs: Vec<_> = module.outputs.values().map(|port| driven(port.value)).collect();
        let enables: Vec<_> = module.registers.values().map(|register| driven(register.enable)).collect();
        let mut memories = module.memories.clone();
        for memory in memories.values_mut() {
            for port in &mut memory.writes {
                for node in [&mut port.address, &mut port.data, &mut port.enable] {
                    *node = driven((*node).into()).expect("a verified port");
                }
                port.lanes = driven(port.lanes);
            }
            for port in memory.reads.values_mut() {
                port.address = driven(port.address);
                if let Latency::Clocked { enable } = &mut port.latency {
                    *enable = driven(*enable);
                }
            }
        }
        let mut instances = module.instances.clone();
        instances
            .values_mut()
            .flat_map(|instance| &mut instance.inputs)
            .for_each(|input| *input = driven(*input));
        let mut nexts = Vec::new();
        for (id, register) in &module.registers {
            let range = self.ranges.registers[id];
            let next = register.next.expand().filter(|_| !range.is_empty());
            nexts.push(next.map(|next| self.bits(next, range)));
        }
        let new = self.new.module_mut();
        new.memories = memories;
        new.instances = instances;
        new.outputs.values_mut().zip(outputs).for_each(|(port, value)| port.value = value);
        for (id, register) in &mut new.registers {
            register.enable = enables[id.index()];
            register.next = nexts[id.index()].into();
        }
    }
}
