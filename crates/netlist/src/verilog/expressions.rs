//! Values as expressions.
//!
//! SystemVerilog widens operands to the widest one around them. Here all operands of an operation have the width of its result but
//! for those whose width nothing outside changes: of comparisons, reductions, concatenations, shift amounts and conditions. So the
//! rule never widens anything. Of the signed operations, comparisons are not widened either, and a shift stands in `$unsigned`, without
//! which an unsigned operand next to it would make it a shift of an unsigned number.

use super::module::ModulePrinter;
use crate::*;

/// Verilator takes a longer repetition for a mistake.
const LONGEST_REPETITION: u32 = 8192;

/// Range or index of a signal of a width: `[7:4]`, `[3]`, or nothing for all of it.
pub(super) fn range(width: u32, low: u32, count: u32) -> String {
    match count {
        _ if count == width => String::new(),
        1 => format!("[{low}]"),
        _ => format!("[{}:{low}]", low + count - 1),
    }
}

/// A constant.
pub(super) fn literal(value: &Bits) -> String {
    match value.width() {
        1 => format!("1'b{}", u8::from(!value.is_zero())),
        width => format!("{width}'h{}", value.to_hex()),
    }
}

impl ModulePrinter<'_> {
    /// A value where it is used: a name, a constant, or an expression in parentheses.
    pub(super) fn operand(&self, node: NodeId) -> String {
        if let Some(name) = &self.wires[node] {
            return name.clone();
        }
        let is_atom = matches!(
            self.module.nodes[node].op,
            Op::Constant(_) | Op::Slice(..) | Op::Concat(_) | Op::Repeat(_) | Op::Unary(UnaryOp::Not, _)
        );
        let text = self.expression(node);
        if is_atom { text } else { format!("({text})") }
    }

    /// The operation of a value.
    pub(super) fn expression(&self, node: NodeId) -> String {
        let Node { op, width, .. } = &self.module.nodes[node];
        match op {
            Op::Constant(value) => literal(value),
            Op::Input(_) | Op::Register(_) | Op::Read(..) | Op::Instance(..) => {
                self.wires[node].clone().expect("leaves have names")
            }
            Op::Unary(op, a) => {
                if let (UnaryOp::Not, Op::Binary(BinaryOp::Eq, x, y)) = (op, &self.module.nodes[*a].op)
                    && self.wires[*a].is_none()
                {
                    return format!("({} != {})", self.operand(*x), self.operand(*y));
                }
                let sign = match op {
                    UnaryOp::Not => "~",
                    UnaryOp::ReduceAnd => "&",
                    UnaryOp::ReduceOr => "|",
                    UnaryOp::ReduceXor => "^",
                };
                format!("{sign}{}", self.operand(*a))
            }
            Op::Binary(op, a, b) => self.binary(*op, *a, *b),
            Op::Concat(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.bare(*part)).collect();
                format!("{{{}}}", parts.join(", "))
            }
            Op::Slice(a, low) => {
                let name = self.wires[*a].as_ref().expect("what is sliced has a name");
                format!("{name}{}", range(self.module.width(*a), *low, *width))
            }
            Op::Repeat(a) => {
                let bit = self.bare(*a);
                let whole = (0..width / LONGEST_REPETITION).map(|_| LONGEST_REPETITION);
                let counts = whole.chain([width % LONGEST_REPETITION]).filter(|count| *count > 0);
                let parts: Vec<String> = counts.map(|count| format!("{{{count}{{{bit}}}}}")).collect();
                if parts.len() == 1 { parts.concat() } else { format!("{{{}}}", parts.join(", ")) }
            }
            Op::Mux(select, a, b) => {
                format!("{} ? {} : {}", self.operand(*select), self.operand(*a), self.operand(*b))
            }
        }
    }

    fn binary(&self, op: BinaryOp, a: NodeId, b: NodeId) -> String {
        let (left, right) = (self.operand(a), self.operand(b));
        let sign = match op {
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Eq => "==",
            BinaryOp::Lt => "<",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::LtSigned => return format!("$signed({left}) < $signed({right})"),
            BinaryOp::ShrSigned => return format!("$unsigned($signed({left}) >>> {right})"),
        };
        format!("{left} {sign} {right}")
    }
}
