//! Numbers in registers: limbs of 64 bits.
//!
//! A number of width W is `ceil(W/64)` limbs, the lowest first; the bits above W are 0. All arithmetic keeps that.

use cranelift_codegen::ir::Value;
use millrace_pipeline::Bits;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// 0 or 1, of type `I8`.
    Bool(Value),
    Bits(Num),
    /// The address of a varbit: its length in bits and its bytes.
    Varbit(Value),
}

/// A number.
#[derive(Clone, Debug)]
pub(super) struct Num {
    pub(super) width: u32,
    pub(super) form: Form,
}

/// How a number is held.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Const(Bits),
    Limbs(Vec<Value>),
    /// Of 2 to 8 whole bytes, as they lie in a packet: in the reverse order. The bits above are 0.
    Swapped(Value),
}

impl Num {
    pub(super) fn limbs(width: u32, limbs: Vec<Value>) -> Num {
        Num { width, form: Form::Limbs(limbs) }
    }

    pub(super) fn one(width: u32, limb: Value) -> Num {
        Num::limbs(width, vec![limb])
    }

    pub(super) fn constant(bits: Bits) -> Num {
        Num { width: bits.width(), form: Form::Const(bits) }
    }

    pub(super) fn as_const(&self) -> Option<&Bits> {
        match &self.form {
            Form::Const(bits) => Some(bits),
            _ => None,
        }
    }
}

/// The ones of the highest limb of a number.
pub(super) fn top_mask(width: u32) -> u64 {
    match width % 64 {
        0 => u64::MAX,
        bits => (1 << bits) - 1,
    }
}
