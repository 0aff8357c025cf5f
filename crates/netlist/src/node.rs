//! Nodes: the values of a module, and what each operation means.

use crate::{InputId, InstanceId, MemoryId, NodeId, OutputId, PlaceId, ReadId, RegisterId};
use cranelift_entity::packed_option::PackedOption;
use millrace_pipeline::Bits;

/// A value: an operation and the width of its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub op: Op,
    /// The width of the value in bits, 1 to [`crate::limits::MAX_WIDTH`].
    pub width: u32,
    /// Where in the program it comes from.
    pub place: PackedOption<PlaceId>,
}

/// An operation. All are total: each value of the operands gives a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant, as wide as the node.
    Constant(Box<Bits>),
    /// The value of an input port.
    Input(InputId),
    /// What a register holds.
    Register(RegisterId),
    /// The data of a read port of a memory.
    Read(MemoryId, ReadId),
    /// An output of an instance.
    Instance(InstanceId, OutputId),
    /// An operation on one value.
    Unary(UnaryOp, NodeId),
    /// An operation on two values.
    Binary(BinaryOp, NodeId, NodeId),
    /// The values one after the other, the highest bits first; as wide as all of them together. At least one.
    Concat(Box<[NodeId]>),
    /// As many bits as the node is wide, from bit `.1` of the value on upwards.
    Slice(NodeId, u32),
    /// A value of 1 bit, as often as the node is wide.
    Repeat(NodeId),
    /// A choice: the second value if the first, which is 1 bit wide, is 1, else the third. Both are as wide as the node.
    Mux(NodeId, NodeId, NodeId),
}

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// The complement of each bit.
    Not,
    /// 1 bit: whether all bits are 1.
    ReduceAnd,
    /// 1 bit: whether any bit is 1.
    ReduceOr,
    /// 1 bit: whether an odd number of bits is 1.
    ReduceXor,
}

/// An operation on two values. But for shifts both have the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Both, bit by bit.
    And,
    /// Either, bit by bit.
    Or,
    /// One alone, bit by bit.
    Xor,
    /// The sum, modulo 2 to the power of the width.
    Add,
    /// The difference, modulo 2 to the power of the width.
    Sub,
    /// The product, modulo 2 to the power of the width.
    Mul,
    /// 1 bit: whether they are equal.
    Eq,
    /// 1 bit: whether the first is less, as unsigned numbers.
    Lt,
    /// 1 bit: whether the first is less, in two's complement.
    LtSigned,
    /// The first moved to higher bits by the second, an unsigned number of any width; zeros come in. 0 from the width on.
    Shl,
    /// The first moved to lower bits by the second, an unsigned number of any width; zeros come in. 0 from the width on.
    Shr,
    /// As [`BinaryOp::Shr`], with copies of the highest bit instead of zeros. All bits are that bit from the width on.
    ShrSigned,
}

impl BinaryOp {
    /// Whether the result has one bit.
    pub fn is_comparison(self) -> bool {
        matches!(self, BinaryOp::Eq | BinaryOp::Lt | BinaryOp::LtSigned)
    }

    /// Whether the second operand may have any width.
    pub fn is_shift(self) -> bool {
        matches!(self, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned)
    }

    /// Whether the order of the operands makes no difference.
    pub fn is_commutative(self) -> bool {
        use BinaryOp::*;
        matches!(self, And | Or | Xor | Add | Mul | Eq)
    }

    /// What it gives.
    pub fn evaluate(self, a: &Bits, b: &Bits) -> Bits {
        let bit = |holds: bool| Bits::new(1, u128::from(holds));
        match self {
            BinaryOp::And => a.and(b),
            BinaryOp::Or => a.or(b),
            BinaryOp::Xor => a.xor(b),
            BinaryOp::Add => a.add(b),
            BinaryOp::Sub => a.sub(b),
            BinaryOp::Mul => a.mul(b),
            BinaryOp::Eq => bit(a == b),
            BinaryOp::Lt => bit(a.cmp_unsigned(b).is_lt()),
            BinaryOp::LtSigned => bit(a.cmp_signed(b).is_lt()),
            BinaryOp::Shl => a.shl(b),
            BinaryOp::Shr => a.shr(b),
            BinaryOp::ShrSigned => a.shr_signed(b),
        }
    }
}

impl UnaryOp {
    /// What it gives.
    pub fn evaluate(self, a: &Bits) -> Bits {
        let bit = |holds: bool| Bits::new(1, u128::from(holds));
        match self {
            UnaryOp::Not => a.bit_not(),
            UnaryOp::ReduceAnd => bit(a.is_ones()),
            UnaryOp::ReduceOr => bit(!a.is_zero()),
            UnaryOp::ReduceXor => bit(a.limbs().fold(0, |all, limb| all ^ limb).count_ones() % 2 == 1),
        }
    }
}

impl Op {
    /// Calls `visit` with each operand, in order.
    pub fn operands(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Op::Constant(_) | Op::Input(_) | Op::Register(_) | Op::Read(..) | Op::Instance(..) => (),
            Op::Unary(_, a) | Op::Slice(a, _) | Op::Repeat(a) => visit(*a),
            Op::Binary(_, a, b) => {
                visit(*a);
                visit(*b);
            }
            Op::Concat(parts) => parts.iter().for_each(|part| visit(*part)),
            Op::Mux(a, b, c) => {
                visit(*a);
                visit(*b);
                visit(*c);
            }
        }
    }
}
