//! Expressions under what is known: validity and constant slots put in, the rest folded.

use crate::facts::{Cursor, Facts, HeaderPlace};
use millrace_pipeline::*;

/// The expression with what is known put in. It has the same value for every packet that the facts describes.
pub fn simplify(program: &Program, expr: &Expr, facts: &Facts) -> Expr {
    let sub = |e: &Expr| Box::new(simplify(program, e, facts));
    let folded = match expr {
        Expr::Const(_) | Expr::Bool(_) | Expr::PacketLength => return expr.clone(),
        Expr::Read(slot) => return read(program, *slot, facts),
        Expr::IsValid(header) => {
            return match facts.place(*header) {
                HeaderPlace::Invalid => Expr::Bool(false),
                HeaderPlace::Unknown | HeaderPlace::Maybe => expr.clone(),
                HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Stored => Expr::Bool(true),
            };
        }
        Expr::Cursor => {
            return match facts.cursor {
                Cursor::At(at) => Expr::bits(32, u128::from(at)),
                Cursor::Byte | Cursor::Bit => expr.clone(),
            };
        }
        Expr::Unary(op, a) => Expr::Unary(*op, sub(a)),
        Expr::Binary(op, a, b) => Expr::Binary(*op, sub(a), sub(b)),
        Expr::Mux(c, a, b) => Expr::Mux(sub(c), sub(a), sub(b)),
        Expr::Slice(a, high, low) => Expr::Slice(sub(a), *high, *low),
        Expr::Concat(a, b) => Expr::Concat(sub(a), sub(b)),
        Expr::ZeroExtend(a, width) => Expr::ZeroExtend(sub(a), *width),
        Expr::SignExtend(a, width) => Expr::SignExtend(sub(a), *width),
        Expr::BoolToBits(a) => Expr::BoolToBits(sub(a)),
    };
    fold::node(folded, Some(program))
}

fn read(program: &Program, slot: SlotId, facts: &Facts) -> Expr {
    let ty = program.slots[slot].ty;
    let invalid = match program.slots[slot].home {
        Home::Header { header, .. } => facts.place(header) == HeaderPlace::Invalid,
        Home::Metadata | Home::Local => false,
    };
    let known = if invalid { Some(0) } else { facts.constants.get(&slot).copied() };
    match (ty, known) {
        (Type::Bool, Some(value)) => Expr::Bool(value != 0),
        (Type::Bits(width), Some(value)) => Expr::bits(width, u128::from(value)),
        _ => Expr::Read(slot),
    }
}
