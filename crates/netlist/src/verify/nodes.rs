//! Rules of nodes: operands come earlier and have the widths that the operation asks for.

use super::{Location, Verifier, over};
use crate::*;
use cranelift_entity::EntityRef;

impl Verifier<'_> {
    pub(super) fn nodes(&mut self) {
        for (id, node) in &self.module.nodes {
            self.node(id, node);
        }
    }

    fn node(&mut self, id: NodeId, node: &Node) {
        let at = Location::Node(id);
        self.in_range(at, node.width);
        let mut late = None;
        node.op.operands(|operand| late = late.or((operand >= id).then_some(operand)));
        if let Some(operand) = late {
            // Whatever this is, its width says nothing.
            return self.report(at, format!("the operand {operand} does not come earlier"));
        }
        match &node.op {
            Op::Constant(value) => {
                let width = value.width();
                self.require(width == node.width, at, || {
                    format!("a constant of {width} bits for {}", node.width)
                });
            }
            Op::Input(input) => {
                let width = self.module.inputs.get(*input).map(|port| port.width);
                self.leaf(at, node.width, input, width);
            }
            Op::Register(register) => {
                let width = self.module.registers.get(*register).map(|register| register.width);
                self.leaf(at, node.width, register, width);
            }
            Op::Read(memory, read) => self.read(id, node.width, *memory, *read),
            Op::Instance(instance, output) => {
                let module = self.module.instances.get(*instance).map(|instance| instance.module);
                let module =
                    module.filter(|module| *module < self.id).map(|module| &self.design.modules[module]);
                let width = module.and_then(|module| module.outputs.get(*output)).map(|port| port.width);
                self.leaf(at, node.width, &format!("{output} of {instance}"), width);
            }
            Op::Unary(op, a) => {
                let width = if *op == UnaryOp::Not { self.module.width(*a) } else { 1 };
                self.result(at, node.width, width);
            }
            Op::Binary(op, a, b) => self.binary(at, node.width, *op, *a, *b),
            Op::Concat(parts) => {
                if parts.is_empty() {
                    return self.report(at, "a concatenation of nothing");
                }
                if parts.len() > limits::MAX_PARTS {
                    let (found, most) = (parts.len() as u64, limits::MAX_PARTS as u64);
                    self.report(at, over("parts", found, "MAX_PARTS", most));
                }
                let sum: u64 = parts.iter().map(|part| u64::from(self.module.width(*part))).sum();
                self.result(at, node.width, u32::try_from(sum).unwrap_or(u32::MAX));
            }
            Op::Slice(a, low) => {
                let has = self.module.width(*a);
                let end = low.checked_add(node.width);
                self.require(end.is_some_and(|end| end <= has), at, || {
                    format!("{} bits from bit {low} on of {a}, which has {has} bits", node.width)
                });
            }
            Op::Repeat(a) => self.value(at, "bit", *a, 1),
            Op::Mux(select, a, b) => {
                self.value(at, "choice", *select, 1);
                self.value(at, "first value", *a, node.width);
                self.value(at, "second value", *b, node.width);
            }
        }
    }

    fn binary(&mut self, at: Location<'_>, width: u32, op: BinaryOp, a: NodeId, b: NodeId) {
        let (left, right) = (self.module.width(a), self.module.width(b));
        self.require(op.is_shift() || left == right, at, || {
            format!("operands of {left} and {right} bits: {a} and {b}")
        });
        self.result(at, width, if op.is_comparison() { 1 } else { left });
    }

    fn read(&mut self, id: NodeId, width: u32, memory: MemoryId, read: ReadId) {
        let at = Location::Node(id);
        let port = self.module.memories.get(memory).and_then(|m| Some((m.width, m.reads.get(read)?)));
        self.leaf(at, width, &format!("{read} of {memory}"), port.map(|(width, _)| width));
        let Some((_, port)) = port else { return };
        // The address of a direct read is an operand. A clocked read has its data from the cycle before.
        if let (Latency::Direct, Some(address)) = (port.latency, port.address.expand())
            && address.index() >= id.index()
        {
            self.report(at, format!("the address {address} does not come earlier"));
        }
    }

    /// A value that comes from something else of the module, which has a width if it exists.
    fn leaf(&mut self, at: Location<'_>, width: u32, source: &dyn std::fmt::Display, wanted: Option<u32>) {
        match wanted {
            None => self.report(at, format!("{source} does not exist")),
            Some(wanted) => self.result(at, width, wanted),
        }
    }

    fn result(&mut self, at: Location<'_>, width: u32, wanted: u32) {
        self.require(width == wanted, at, || format!("a width of {width} bits for a value of {wanted}"));
    }
}
