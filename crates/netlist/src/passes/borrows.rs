//! Comparisons as the borrow of a subtraction, for fabrics whose carry chain gives its last carry as a bit of a sum.
//!
//! `a < b` holds if `a - b` borrows, which is the highest bit of the difference where both have a 0 added on top. Synthesis for an ECP5 makes
//! more of `a < b`: the chain of `b - a`, and next to it a tree of lookup tables that finds whether both are equal, as that chain alone
//! cannot tell (Yosys 0.23: 27 lookup tables next to the chain for 24 bits). The difference is the chain alone.

use super::rebuild::rebuild_with;
use super::registers::Known;
use crate::*;

/// Comparisons of fewer bits are a few lookup tables.
const NARROWEST: u32 = 5;
/// The same where one operand is a constant.
const NARROWEST_CONSTANT: u32 = 8;

/// Makes differences of comparisons in all modules of a verified design.
pub fn borrows(design: &mut Design) {
    for module in design.modules.values_mut() {
        *module = super::clean(&rebuild_with(module, &Known::default(), borrow));
    }
}

fn borrow(m: &mut ModuleBuilder, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
    let width = m.width(a);
    let is_constant = m.as_constant(a).is_some() || m.as_constant(b).is_some();
    let narrowest = if is_constant { NARROWEST_CONSTANT } else { NARROWEST };
    if width < narrowest || width == limits::MAX_WIDTH {
        return None;
    }
    // The order of numbers with a sign is that of numbers without when those below 0 come first.
    let turned = |m: &mut ModuleBuilder, value: NodeId| {
        let (sign, rest) = (m.slice(value, width - 1, 1), m.slice(value, 0, width - 1));
        let sign = m.not(sign);
        m.concat(&[sign, rest])
    };
    let (a, b) = match op {
        BinaryOp::Lt => (a, b),
        BinaryOp::LtSigned => (turned(m, a), turned(m, b)),
        _ => return None,
    };
    let zero = m.number(1, 0);
    let (a, b) = (m.concat(&[zero, a]), m.concat(&[zero, b]));
    let difference = m.binary(BinaryOp::Sub, a, b);
    Some(m.slice(difference, width, 1))
}
