//! Constant folding.

use crate::{Bits, Case, Expr, Inst, Matcher, Program, Terminator, fold};
use std::mem;

/// Folds expressions, decides branches and selects on constants, and drops instructions that do nothing.
pub fn fold_constants(program: &mut Program) {
    let mut bodies = mem::take(&mut program.bodies);
    for block in bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        block.for_each_expr_mut(&mut |e| fold_expr(e, program));
        block.insts.retain(|inst| !does_nothing(inst));
        fold_terminator(&mut block.term);
    }
    program.bodies = bodies;
    let mut tables = mem::take(&mut program.tables);
    for table in tables.values_mut() {
        let keys = table.keys.iter_mut().map(|key| &mut key.value);
        keys.chain(&mut table.selector_inputs).for_each(|e| fold_expr(e, program));
    }
    program.tables = tables;
}

fn fold_expr(expr: &mut Expr, program: &Program) {
    *expr = fold::tree(mem::replace(expr, Expr::Bool(false)), program);
}

fn does_nothing(inst: &Inst) -> bool {
    match inst {
        Inst::Assign { dst, value: Expr::Read(src) } => dst == src,
        Inst::Assert { cond: Expr::Bool(true), .. } => true,
        Inst::Advance { bits: Expr::Const(bits) } => bits.is_zero(),
        _ => false,
    }
}

fn fold_terminator(term: &mut Terminator) {
    match term {
        Terminator::Branch { cond: Expr::Bool(cond), then, els } => {
            *term = Terminator::Goto(if *cond { *then } else { *els });
        }
        Terminator::Branch { then, els, .. } if then == els => *term = Terminator::Goto(*then),
        Terminator::Select { keys, cases, default } => {
            let mut kept = Vec::new();
            for case in mem::take(cases) {
                match decide(keys, &case) {
                    Some(false) => {}
                    Some(true) => {
                        *default = case.target;
                        break;
                    }
                    None => kept.push(case),
                }
            }
            // The last cases may say what the default says.
            while kept.last().is_some_and(|case| case.target == *default) {
                kept.pop();
            }
            if kept.is_empty() {
                *term = Terminator::Goto(*default);
            } else {
                *cases = kept;
            }
        }
        _ => {}
    }
}

/// Whether a case matches, when the constants among the keys tell.
fn decide(keys: &[Expr], case: &Case) -> Option<bool> {
    // A value set takes several keys, and what it holds shows at run time.
    if case.matchers.iter().any(|m| matches!(m, Matcher::ValueSet(_))) {
        return None;
    }
    let mut all = Some(true);
    for (key, matcher) in keys.iter().zip(&case.matchers) {
        let key = match key {
            Expr::Const(bits) => Some(bits.clone()),
            Expr::Bool(b) => Some(Bits::new(1, u128::from(*b))),
            _ => None,
        };
        match matcher.matches(key.as_ref()) {
            Some(false) => return Some(false),
            Some(true) => {}
            None => all = None,
        }
    }
    all
}

impl Matcher {
    /// Whether this matches a key; `None` when it takes more to know: the key, or the members of a value set.
    pub fn matches(&self, key: Option<&Bits>) -> Option<bool> {
        match self {
            Matcher::Any => Some(true),
            Matcher::Value(value) => key.map(|key| key == value),
            Matcher::Mask(_, mask) if mask.is_zero() => Some(true),
            Matcher::Mask(value, mask) => key.map(|key| key.and(mask) == value.and(mask)),
            Matcher::Range(low, high) => {
                key.map(|key| low.cmp_unsigned(key).is_le() && key.cmp_unsigned(high).is_le())
            }
            Matcher::RangeSigned(low, high) => {
                key.map(|key| low.cmp_signed(key).is_le() && key.cmp_signed(high).is_le())
            }
            Matcher::ValueSet(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers() {
        let b = |v| Bits::new(8, v);
        for (matcher, key, result) in [
            (Matcher::Any, 7, true),
            (Matcher::Value(b(7)), 7, true),
            (Matcher::Value(b(7)), 8, false),
            (Matcher::Mask(b(0x1f), b(0xf0)), 0x12, true),
            (Matcher::Mask(b(0x1f), b(0xf0)), 0x22, false),
            (Matcher::Range(b(3), b(5)), 3, true),
            (Matcher::Range(b(3), b(5)), 5, true),
            (Matcher::Range(b(3), b(5)), 6, false),
            (Matcher::RangeSigned(b(0xff), b(1)), 0, true),
            (Matcher::RangeSigned(b(0xff), b(1)), 0xfe, false),
        ] {
            assert_eq!(matcher.matches(Some(&b(key))), Some(result), "{matcher:?} on {key}");
        }
        assert_eq!(Matcher::Value(b(7)).matches(None), None);
        assert_eq!(Matcher::Mask(b(7), b(0)).matches(None), Some(true));
    }
}
