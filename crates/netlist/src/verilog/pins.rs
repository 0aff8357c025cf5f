//! Signals at pins of flip-flops: enables, and resets to a constant.
//!
//! A word that is taken where a signal is 1, or is 0 where it is not, needs no lookup table on an FPGA: the signal goes to pins of its
//! flip-flops. Yosys finds such registers, but these pins are active high: where it needs the inverse of a signal, each flip-flop gets an
//! inverter of its own, or the gate before it once more. A comparison `a == b` ends with an inverter, too. So the signal is written as one
//! whose last gate is none: `~a | ~b` for the inverse of `a & b`, `&(a ~^ b)` for `a == b`, and for the inverse of a bit of a register a
//! register next to it that takes the inverse. `always_ff r <= c ? x : 0;` with 32 bits takes 32 lookup tables otherwise.

use super::expressions::{literal, range};
use super::module::ModulePrinter;
use crate::*;
use std::collections::BTreeMap;

/// Words of so many bits at least have signals of their own.
const LEAST_BITS: u32 = 4;

/// What was written for pins.
#[derive(Default)]
pub(super) struct Pins {
    /// Wires, by the value and whether they are its inverse.
    wires: BTreeMap<(NodeId, bool), String>,
    /// Registers of the inverse of a bit.
    inverses: BTreeMap<(RegisterId, u32), String>,
    /// Values that have a wire and were written in another form.
    pub(super) passed: Vec<NodeId>,
}

/// How a register is written.
pub(super) struct Taken {
    /// Whether it takes anything.
    pub(super) enable: Option<String>,
    pub(super) next: String,
}

impl ModulePrinter<'_> {
    /// What a register takes and when. Writes what that needs before.
    pub(super) fn taken(&mut self, id: RegisterId) -> Taken {
        let register = &self.module.registers[id];
        let next = register.next.expect("a verified register");
        let enable = register.enable.expand();
        if register.width < LEAST_BITS {
            return Taken { enable: enable.map(|enable| self.bare(enable)), next: self.bare(next) };
        }
        let enable = enable.map(|enable| self.pin(enable, false).unwrap_or_else(|| self.bare(enable)));
        if enable.is_none()
            && let Op::Mux(select, a, b) = self.module.nodes[next].op
        {
            let is_own = |node: NodeId| self.module.nodes[node].op == Op::Register(id);
            let other = if is_own(a) { Some(b) } else { is_own(b).then_some(a) };
            if let Some(other) = other
                && let Some(enable) = self.pin(select, is_own(a))
            {
                self.pass(next);
                return Taken { enable: Some(enable), next: self.with_reset(id, other, 0) };
            }
        }
        Taken { enable, next: self.with_reset(id, next, 0) }
    }

    /// What bits of a register from `low` on take, where a constant is chosen by a pin.
    fn with_reset(&mut self, id: RegisterId, node: NodeId, low: u32) -> String {
        let module = self.module;
        let width = module.width(node);
        if width < LEAST_BITS {
            return self.bare(node);
        }
        match &module.nodes[node].op {
            Op::Mux(select, a, b) => {
                let constant = |node: NodeId| match &module.nodes[node].op {
                    Op::Constant(value) => module.registers[id].can_be_set(low, value),
                    _ => false,
                };
                let (constant, other) = match (constant(*a), constant(*b)) {
                    (true, false) => (*a, *b),
                    (false, true) => (*b, *a),
                    _ => return self.bare(node),
                };
                let Some(pin) = self.pin(*select, constant == *b) else { return self.bare(node) };
                self.pass(node);
                format!("{pin} ? {} : {}", self.bare(constant), self.operand(other))
            }
            Op::Concat(parts) if self.wires[node].is_none() => {
                let mut above = low + width;
                let parts: Vec<String> = (parts.iter())
                    .map(|part| {
                        above -= module.width(*part);
                        self.with_reset(id, *part, above)
                    })
                    .collect();
                format!("{{{}}}", parts.join(", "))
            }
            _ => self.bare(node),
        }
    }

    /// Notes that a value is written in another form here.
    fn pass(&mut self, node: NodeId) {
        if self.wires[node].is_some() {
            self.pins.passed.push(node);
        }
    }

    /// The name of a signal that is a value, or its inverse, and whose last gate is no inverter. None: there is no such form.
    fn pin(&mut self, mut node: NodeId, mut is_inverse: bool) -> Option<String> {
        while let Op::Unary(UnaryOp::Not, a) = self.module.nodes[node].op {
            self.pass(node);
            (node, is_inverse) = (a, !is_inverse);
        }
        if let Some(name) = self.pins.wires.get(&(node, is_inverse)) {
            return Some(name.clone());
        }
        let module = self.module;
        let op = &module.nodes[node].op;
        let text = match (op, is_inverse) {
            (Op::Constant(_), _) => return None,
            (Op::Register(register), true) => return self.inverse_of(node, (*register, 0)),
            (Op::Slice(a, low), true) => match module.nodes[*a].op {
                Op::Register(register) => return self.inverse_of(*a, (register, *low)),
                _ => return None,
            },
            (Op::Binary(BinaryOp::Eq, a, b), _) => {
                let (left, right) = (self.operand(*a), self.operand(*b));
                match (is_inverse, module.width(*a)) {
                    (true, 1) => format!("{left} ^ {right}"),
                    (true, _) => format!("{left} != {right}"),
                    (false, 1) => format!("{left} ~^ {right}"),
                    (false, _) => format!("&({left} ~^ {right})"),
                }
            }
            (_, false) => return Some(self.operand(node)),
            (Op::Binary(BinaryOp::And, a, b), _) => format!("{} | {}", self.inverted(*a), self.inverted(*b)),
            (Op::Binary(BinaryOp::Or, a, b), _) => format!("{} & {}", self.inverted(*a), self.inverted(*b)),
            (Op::Binary(BinaryOp::Xor, a, b), _) => format!("{} ~^ {}", self.operand(*a), self.operand(*b)),
            (Op::Binary(BinaryOp::Lt, a, b), _) => format!("{} >= {}", self.operand(*a), self.operand(*b)),
            (Op::Unary(UnaryOp::ReduceAnd, a), _) => format!("|(~{})", self.operand(*a)),
            (Op::Unary(UnaryOp::ReduceOr, a), _) => format!("&(~{})", self.operand(*a)),
            (Op::Mux(select, a, b), _) => {
                format!("{} ? {} : {}", self.operand(*select), self.inverted(*a), self.inverted(*b))
            }
            _ => return None,
        };
        self.pass(node);
        let wanted = match &self.wires[node] {
            Some(name) => format!("{name}_pin"),
            None => format!("{node}_pin"),
        };
        let name = self.names.take(&wanted);
        self.line(format_args!("wire {name} = {text};"));
        self.pins.wires.insert((node, is_inverse), name.clone());
        Some(name)
    }

    /// The inverse of a bit.
    fn inverted(&mut self, node: NodeId) -> String {
        match self.module.nodes[node].op {
            Op::Unary(UnaryOp::Not, a) => {
                self.pass(node);
                self.operand(a)
            }
            _ => format!("~{}", self.operand(node)),
        }
    }

    /// A register that holds the inverse of a bit of another one, whose value is `node`.
    fn inverse_of(&mut self, node: NodeId, (id, bit): (RegisterId, u32)) -> Option<String> {
        if let Some(name) = self.pins.inverses.get(&(id, bit)) {
            return Some(name.clone());
        }
        let register = &self.module.registers[id];
        let next = self.bit(register.next.expand()?, bit)?;
        self.pass(node);
        let enable = register.enable.expand().map(|enable| self.bare(enable));
        let start = register.reset.as_ref().is_some_and(|reset| reset.bit(bit));
        let start = literal(&Bits::new(1, u128::from(!start)));
        let name = self.names.take(&format!("{}_{bit}_inverse", super::names::legal(&register.name)));
        self.line(format_args!("logic {name} = {start};"));
        let reset = register.reset.is_some().then_some(start);
        self.clock_register(&name, reset, &Taken { enable, next });
        self.pins.inverses.insert((id, bit), name.clone());
        Some(name)
    }

    /// The inverse of a bit of a value, where it has a name or is a value of its own.
    fn bit(&mut self, mut node: NodeId, mut bit: u32) -> Option<String> {
        loop {
            let width = self.module.width(node);
            if width == 1 {
                return Some(self.inverted(node));
            }
            if let Some(name) = &self.wires[node] {
                return Some(format!("~{name}{}", range(width, bit, 1)));
            }
            let Op::Concat(parts) = &self.module.nodes[node].op else { return None };
            for part in parts.iter().rev() {
                match bit.checked_sub(self.module.width(*part)) {
                    Some(above) => bit = above,
                    None => {
                        node = *part;
                        break;
                    }
                }
            }
        }
    }
}
