//! Folding one node of an expression: constants, neutral operands and casts of casts.
//!
//! Every rule keeps the value for every packet. With the program at hand the widths of slots are known and more rules
//! apply.

use crate::semantics::{self, Value};
use crate::{BinaryOp, Bits, Expr, Program, UnaryOp};

/// Folds the outermost node of `expr`; its operands are folded already.
pub fn node(expr: Expr, program: Option<&Program>) -> Expr {
    match expr {
        Expr::Unary(op, operand) => unary(op, *operand),
        Expr::Binary(op, left, right) => binary(op, *left, *right),
        Expr::Mux(cond, then, els) => mux(*cond, *then, *els),
        Expr::Slice(operand, high, low) => slice(*operand, high, low, program),
        Expr::Concat(high, low) => concat(*high, *low),
        Expr::ZeroExtend(operand, width) => zero_extend(*operand, width, program),
        Expr::SignExtend(operand, width) => sign_extend(*operand, width, program),
        Expr::BoolToBits(operand) => match *operand {
            Expr::Bool(b) => Expr::bits(1, u128::from(b)),
            other => Expr::BoolToBits(Box::new(other)),
        },
        leaf => leaf,
    }
}

/// Folds a whole expression, operands first.
pub fn tree(expr: Expr, program: &Program) -> Expr {
    // In its place.
    let sub = |mut e: Box<Expr>| {
        *e = tree(std::mem::replace(&mut *e, Expr::Bool(false)), program);
        e
    };
    let folded = match expr {
        Expr::Unary(op, a) => Expr::Unary(op, sub(a)),
        Expr::Binary(op, a, b) => Expr::Binary(op, sub(a), sub(b)),
        Expr::Mux(c, a, b) => Expr::Mux(sub(c), sub(a), sub(b)),
        Expr::Slice(a, high, low) => Expr::Slice(sub(a), high, low),
        Expr::Concat(a, b) => Expr::Concat(sub(a), sub(b)),
        Expr::ZeroExtend(a, width) => Expr::ZeroExtend(sub(a), width),
        Expr::SignExtend(a, width) => Expr::SignExtend(sub(a), width),
        Expr::BoolToBits(a) => Expr::BoolToBits(sub(a)),
        leaf => return leaf,
    };
    node(folded, Some(program))
}

fn constant(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Const(bits) => Some(Value::Bits(bits.clone())),
        Expr::Bool(b) => Some(Value::Bool(*b)),
        _ => None,
    }
}

fn literal(value: Value) -> Expr {
    match value {
        Value::Bool(b) => Expr::Bool(b),
        other => Expr::Const(other.as_bits()),
    }
}

fn unary(op: UnaryOp, operand: Expr) -> Expr {
    if let Some(value) = constant(&operand) {
        return literal(semantics::unary(op, &value));
    }
    match (op, operand) {
        (_, Expr::Unary(inner, e)) if inner == op => *e,
        (UnaryOp::Not, Expr::Binary(BinaryOp::Eq, a, b)) => Expr::Binary(BinaryOp::Ne, a, b),
        (UnaryOp::Not, Expr::Binary(BinaryOp::Ne, a, b)) => Expr::Binary(BinaryOp::Eq, a, b),
        (UnaryOp::Not, Expr::Binary(BinaryOp::Lt, a, b)) => Expr::Binary(BinaryOp::Le, b, a),
        (UnaryOp::Not, Expr::Binary(BinaryOp::Le, a, b)) => Expr::Binary(BinaryOp::Lt, b, a),
        (UnaryOp::Not, Expr::Binary(BinaryOp::LtSigned, a, b)) => Expr::Binary(BinaryOp::LeSigned, b, a),
        (UnaryOp::Not, Expr::Binary(BinaryOp::LeSigned, a, b)) => Expr::Binary(BinaryOp::LtSigned, b, a),
        (op, operand) => Expr::Unary(op, Box::new(operand)),
    }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    use BinaryOp::*;
    if let (Some(a), Some(b)) = (constant(&left), constant(&right)) {
        return literal(semantics::binary(op, &a, &b));
    }
    if left == right {
        match op {
            Eq | Le | LeSigned => return Expr::Bool(true),
            Ne | Lt | LtSigned => return Expr::Bool(false),
            And | Or | BoolAnd | BoolOr => return left,
            _ => {}
        }
    }
    match (op, &left, &right) {
        (BoolAnd, Expr::Bool(true), _) | (BoolOr, Expr::Bool(false), _) | (Eq, Expr::Bool(true), _) => {
            return right;
        }
        (BoolAnd, _, Expr::Bool(true)) | (BoolOr, _, Expr::Bool(false)) | (Eq, _, Expr::Bool(true)) => {
            return left;
        }
        (BoolAnd, Expr::Bool(false), _) | (BoolAnd, _, Expr::Bool(false)) => return Expr::Bool(false),
        (BoolOr, Expr::Bool(true), _) | (BoolOr, _, Expr::Bool(true)) => return Expr::Bool(true),
        (Ne, Expr::Bool(false), _) => return right,
        (Ne, _, Expr::Bool(false)) => return left,
        (Eq, Expr::Bool(false), _) | (Ne, Expr::Bool(true), _) => return unary(UnaryOp::Not, right),
        (Eq, _, Expr::Bool(false)) | (Ne, _, Expr::Bool(true)) => return unary(UnaryOp::Not, left),
        (Eq | Ne, Expr::BoolToBits(_), Expr::Const(bit))
        | (Eq | Ne, Expr::Const(bit), Expr::BoolToBits(_)) => {
            let wanted = bit.is_zero() == (op == Ne);
            let b = match (left, right) {
                (Expr::BoolToBits(b), _) | (_, Expr::BoolToBits(b)) => *b,
                (left, _) => left,
            };
            return if wanted { b } else { unary(UnaryOp::Not, b) };
        }
        (_, _, Expr::Const(bits)) => match right_constant(op, bits) {
            Some(Neutral::Other) => return left,
            Some(Neutral::Constant) => return right,
            None => {}
        },
        (Add | Mul | And | Or | Xor | AddSat, Expr::Const(bits), _) => match right_constant(op, bits) {
            Some(Neutral::Other) => return right,
            Some(Neutral::Constant) => return left,
            None => {}
        },
        _ => {}
    }
    Expr::Binary(op, Box::new(left), Box::new(right))
}

/// What an operation with a constant comes down to.
enum Neutral {
    /// The other operand.
    Other,
    /// The constant.
    Constant,
}

fn right_constant(op: BinaryOp, bits: &Bits) -> Option<Neutral> {
    use BinaryOp::*;
    let one = bits.to_u64() == Some(1);
    match op {
        Add | Sub | AddSat | SubSat | AddSatSigned | SubSatSigned | Or | Xor | Shl | Shr | ShrSigned
            if bits.is_zero() =>
        {
            Some(Neutral::Other)
        }
        And if bits.is_ones() => Some(Neutral::Other),
        Mul | Div if one => Some(Neutral::Other),
        And | Mul | Div | Mod if bits.is_zero() => Some(Neutral::Constant),
        Or | AddSat if bits.is_ones() => Some(Neutral::Constant),
        _ => None,
    }
}

fn mux(cond: Expr, then: Expr, els: Expr) -> Expr {
    match (cond, then, els) {
        (Expr::Bool(true), then, _) => then,
        (Expr::Bool(false), _, els) => els,
        (_, then, els) if then == els => then,
        (cond, Expr::Bool(true), els) => binary(BinaryOp::BoolOr, cond, els),
        (cond, then, Expr::Bool(false)) => binary(BinaryOp::BoolAnd, cond, then),
        (cond, Expr::Bool(false), Expr::Bool(true)) => unary(UnaryOp::Not, cond),
        (Expr::Unary(UnaryOp::Not, cond), then, els) => Expr::Mux(cond, Box::new(els), Box::new(then)),
        (cond, then, els) => Expr::Mux(Box::new(cond), Box::new(then), Box::new(els)),
    }
}

fn slice(operand: Expr, high: u32, low: u32, program: Option<&Program>) -> Expr {
    let width = |e: &Expr| e.type_with(program).and_then(|ty| ty.bits());
    if low == 0 && width(&operand) == high.checked_add(1) {
        return operand;
    }
    match operand {
        Expr::Const(bits) if low <= high && high < bits.width() => Expr::Const(bits.slice(high, low)),
        Expr::Slice(inner, _, base) => match (high.checked_add(base), low.checked_add(base)) {
            (Some(h), Some(l)) => slice(*inner, h, l, program),
            _ => Expr::Slice(Box::new(Expr::Slice(inner, high, base)), high, low),
        },
        Expr::Concat(top, bottom) => match width(&bottom) {
            Some(w) if low >= w => slice(*top, high - w, low - w, program),
            Some(w) if high < w => slice(*bottom, high, low, program),
            _ => Expr::Slice(Box::new(Expr::Concat(top, bottom)), high, low),
        },
        Expr::ZeroExtend(inner, w) => match width(&inner) {
            Some(inner_width) if high < inner_width => slice(*inner, high, low, program),
            Some(inner_width) if low >= inner_width => Expr::Const(Bits::zero(high - low + 1)),
            _ => Expr::Slice(Box::new(Expr::ZeroExtend(inner, w)), high, low),
        },
        operand => Expr::Slice(Box::new(operand), high, low),
    }
}

fn concat(high: Expr, low: Expr) -> Expr {
    match (high, low) {
        (Expr::Const(h), Expr::Const(l)) => Expr::Const(h.concat(&l)),
        // Two neighbouring slices of one value are one slice.
        (Expr::Slice(a, h1, l1), Expr::Slice(b, h2, l2)) if a == b && h2.checked_add(1) == Some(l1) => {
            Expr::Slice(a, h1, l2)
        }
        (high, low) => Expr::Concat(Box::new(high), Box::new(low)),
    }
}

fn zero_extend(operand: Expr, width: u32, program: Option<&Program>) -> Expr {
    let width_of = |e: &Expr| e.type_with(program).and_then(|ty| ty.bits());
    if width_of(&operand) == Some(width) {
        return operand;
    }
    match operand {
        Expr::Const(bits) => Expr::Const(bits.zero_extend(width)),
        Expr::ZeroExtend(inner, middle)
            if width <= middle || width_of(&inner).is_some_and(|inner| inner <= middle) =>
        {
            zero_extend(*inner, width, program)
        }
        operand => Expr::ZeroExtend(Box::new(operand), width),
    }
}

fn sign_extend(operand: Expr, width: u32, program: Option<&Program>) -> Expr {
    match (operand.type_with(program).and_then(|ty| ty.bits()), operand) {
        (Some(w), operand) if w == width => operand,
        (_, Expr::Const(bits)) => Expr::Const(bits.sign_extend(width)),
        // Cutting has one form.
        (Some(w), operand) if width < w => zero_extend(operand, width, program),
        (_, operand) => Expr::SignExtend(Box::new(operand), width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Home, Slot, SlotId, Type};
    use proptest::prelude::*;

    fn program() -> Program {
        let mut program = Program::default();
        for (name, ty) in [("x", Type::Bits(8)), ("y", Type::Bits(8)), ("p", Type::Bool), ("q", Type::Bool)] {
            program.slots.push(Slot { name: name.into(), ty, home: Home::Local });
        }
        program
    }

    fn read(index: u32) -> Expr {
        Expr::Read(SlotId::from_u32(index))
    }

    /// A tree whose value is a `Bits(8)` when `bits`, a `Bool` otherwise, from a string of choices.
    fn tree_from(bits: bool, depth: u32, choices: &mut impl FnMut() -> u8) -> Expr {
        use BinaryOp::*;
        let c = choices();
        if depth == 0 {
            return match (bits, c % 4) {
                (true, 0) => read(0),
                (true, 1) => read(1),
                (true, 2) => Expr::bits(8, [0, 1, 0xff, 0x80][usize::from(c / 4 % 4)]),
                (true, _) => Expr::bits(8, u128::from(c)),
                (false, 0) => read(2),
                (false, 1) => read(3),
                (false, n) => Expr::Bool(n == 2),
            };
        }
        let mut sub = |bits| Box::new(tree_from(bits, depth - 1, choices));
        let arithmetic = [
            Add,
            Sub,
            Mul,
            Div,
            Mod,
            AddSat,
            SubSat,
            AddSatSigned,
            SubSatSigned,
            And,
            Or,
            Xor,
            Shl,
            Shr,
            ShrSigned,
        ];
        let compare = [Eq, Ne, Lt, Le, LtSigned, LeSigned];
        let low = u32::from(c) % 5;
        match (bits, c % 10) {
            (true, 0) => Expr::Mux(sub(false), sub(true), sub(true)),
            (true, 1) => Expr::Concat(
                Box::new(Expr::Slice(sub(true), low + 3, low)),
                Box::new(Expr::Slice(sub(true), 7 - low, 4 - low)),
            ),
            (true, 2) => Expr::ZeroExtend(Box::new(Expr::ZeroExtend(sub(true), 4 + low * 2)), 8),
            (true, 3) => Expr::SignExtend(Box::new(Expr::SignExtend(sub(true), 4 + low * 2)), 8),
            (true, 4) => Expr::Unary([UnaryOp::BitNot, UnaryOp::Neg][usize::from(c / 16 % 2)], sub(true)),
            (true, 5) => Expr::ZeroExtend(Box::new(Expr::BoolToBits(sub(false))), 8),
            (true, _) => Expr::Binary(arithmetic[usize::from(c) % 15], sub(true), sub(true)),
            (false, 0) => Expr::Mux(sub(false), sub(false), sub(false)),
            (false, 1..4) => Expr::Unary(UnaryOp::Not, sub(false)),
            (false, 4) => Expr::Binary(
                [Eq, Ne][usize::from(c / 16 % 2)],
                Box::new(Expr::BoolToBits(sub(false))),
                Box::new(Expr::bits(1, u128::from(c / 32 % 2))),
            ),
            (false, 5..7) => {
                Expr::Binary([BoolAnd, BoolOr, Eq, Ne][usize::from(c / 10 % 4)], sub(false), sub(false))
            }
            (false, _) => Expr::Binary(compare[usize::from(c / 10) % 6], sub(true), sub(true)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn folding_keeps_the_value(
            choices in proptest::collection::vec(any::<u8>(), 1..60), bits: bool, x: u8, y: u8, p: bool, q: bool,
        ) {
            let program = program();
            let mut at = 0;
            let expr = tree_from(bits, 4, &mut || { at += 1; choices[at % choices.len()].wrapping_add(at as u8) });
            let leaf = |leaf| match leaf {
                semantics::Leaf::Slot(s) => match s.as_u32() {
                    0 => Value::Bits(Bits::new(8, u128::from(x))),
                    1 => Value::Bits(Bits::new(8, u128::from(y))),
                    2 => Value::Bool(p),
                    _ => Value::Bool(q),
                },
                _ => Value::Bool(false),
            };
            let folded = tree(expr.clone(), &program);
            prop_assert_eq!(folded.ty(&program), expr.ty(&program));
            prop_assert_eq!(semantics::evaluate(&folded, &leaf), semantics::evaluate(&expr, &leaf), "{:?}", folded);
        }
    }

    #[test]
    fn by_hand() {
        let p = program();
        let fold = |e: Expr| tree(e, &p);
        let bin = |op, a, b| Expr::Binary(op, Box::new(a), Box::new(b));
        assert_eq!(fold(bin(BinaryOp::Add, read(0), Expr::bits(8, 0))), read(0));
        assert_eq!(fold(bin(BinaryOp::And, Expr::bits(8, 0), read(0))), Expr::bits(8, 0));
        assert_eq!(fold(bin(BinaryOp::Eq, read(2), Expr::Bool(true))), read(2));
        assert_eq!(
            fold(Expr::Unary(UnaryOp::Not, Box::new(bin(BinaryOp::Lt, read(0), read(1))))),
            bin(BinaryOp::Le, read(1), read(0))
        );
        let wide = Expr::Concat(Box::new(read(0)), Box::new(read(1)));
        assert_eq!(fold(Expr::Slice(Box::new(wide.clone()), 15, 8)), read(0));
        assert_eq!(fold(Expr::Slice(Box::new(wide.clone()), 7, 0)), read(1));
        assert_eq!(fold(Expr::Slice(Box::new(wide.clone()), 9, 4)), Expr::Slice(Box::new(wide), 9, 4));
        let halves = Expr::Concat(
            Box::new(Expr::Slice(Box::new(read(0)), 6, 4)),
            Box::new(Expr::Slice(Box::new(read(0)), 3, 1)),
        );
        assert_eq!(fold(halves), Expr::Slice(Box::new(read(0)), 6, 1));
    }
}
