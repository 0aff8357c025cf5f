//! Parsers: states become blocks, `select` becomes branches. A nested parser's states are inlined at each call.

use millrace_pipeline::{BinaryOp, Bits, BlockId, BodyKind, Case, Expr, Matcher, Type};
use millrace_sema::Constant;
use millrace_sema::hir::{self, KeySet, SelectCase, StateRef, Transition};

use crate::code::Code;
use crate::fail::{Lower, code, fail, internal};
use crate::objects::Object;
use crate::types;
use crate::value::Value;

/// One alternative of a select, ready to become code.
enum Alternative {
    /// Constants: part of a `Select`.
    Constant(Vec<Matcher>, BlockId),
    /// A condition.
    Condition(Expr, BlockId),
}

/// A key of a select.
struct SelectKey {
    expr: Expr,
    ty: hir::Ty,
    width: u32,
}

impl<'a> Code<'_, 'a> {
    /// The states of the innermost frame's parser, from `start` on. `accept` is where the frame returns to.
    pub(crate) fn parser_states(&mut self, parser: &'a hir::Parser) -> Lower<()> {
        if self.body.kind() != BodyKind::Parser {
            return fail(code::PLACE, parser.span, "a parser can be applied in parsers only");
        }
        let start = self.state(parser, parser.start);
        self.body.goto(start);
        // A state is written when something goes to it, so states that nothing reaches cost nothing.
        let mut written = 0;
        while let Some((&number, &block)) = self.frame().states.get_index(written) {
            written += 1;
            let state = &parser.states[number];
            self.span = state.span;
            self.stand();
            self.body.switch_to(block);
            let name = self.state_name(&state.name);
            self.note_line_of_state(&name);
            self.note_state(Some(&name));
            self.stmts(&state.body)?;
            if self.reachable() {
                self.transition(parser, &state.transition)?;
            }
        }
        Ok(())
    }

    /// The block of a state.
    fn state(&mut self, parser: &'a hir::Parser, number: usize) -> BlockId {
        if let Some(block) = self.frame().states.get(&number) {
            return *block;
        }
        let name = self.state_name(&parser.states[number].name);
        let block = self.block();
        self.body.set_state(block, name);
        self.frame_mut().states.insert(number, block);
        block
    }

    fn target(&mut self, parser: &'a hir::Parser, target: StateRef) -> BlockId {
        match target {
            StateRef::State(number) => self.state(parser, number),
            StateRef::Accept => self.frame().ret,
            StateRef::Reject => self.reject_block(0),
        }
    }

    fn transition(&mut self, parser: &'a hir::Parser, transition: &'a Transition) -> Lower<()> {
        match transition {
            Transition::Goto(target) => {
                let target = self.target(parser, *target);
                self.body.goto(target);
                Ok(())
            }
            Transition::Select { keys, cases, span } => {
                self.span = *span;
                self.stand();
                let keys = self.select_keys(keys)?;
                let keys = self.reused(keys, cases);
                let mut alternatives = Vec::with_capacity(cases.len());
                let mut default = None;
                for case in cases {
                    let target = self.target(parser, case.target);
                    match self.alternative(&keys, case, target)? {
                        Alternative::Constant(matchers, target)
                            if matchers.iter().all(|m| *m == Matcher::Any) =>
                        {
                            default = Some(target);
                            break;
                        }
                        other => alternatives.push(other),
                    }
                }
                let default = match default {
                    Some(block) => block,
                    None => {
                        let error = self.cx.ir.error("NoMatch");
                        self.reject_block(error)
                    }
                };
                self.select(&keys, alternatives, default);
                Ok(())
            }
        }
    }

    /// The scalars of the keys in order. Keysets of structures are matched member by member.
    fn select_keys(&mut self, keys: &'a [hir::Expr]) -> Lower<Vec<SelectKey>> {
        let values = self.eval_all(keys)?;
        let mut list = Vec::new();
        for (value, key) in values.into_iter().zip(keys) {
            self.flatten_key(value, key.ty, &mut list)?;
        }
        Ok(list)
    }

    fn flatten_key(&mut self, value: Value, ty: hir::Ty, list: &mut Vec<SelectKey>) -> Lower<()> {
        match value {
            Value::Scalar(expr) => {
                // A truth value is matched as the bit that stands for it in keysets.
                let (expr, width) = match self.type_of(&expr) {
                    Type::Bits(w) => (expr, w),
                    Type::Bool => (expr.bool_to_bits(), 1),
                    Type::Varbit(_) => return internal(self.span, "a varbit as key of a select"),
                };
                list.push(SelectKey { expr, ty, width });
            }
            Value::Tuple(members) => {
                for (member, (_, ty)) in members.into_iter().zip(types::members(&self.cx.hir.types, ty)) {
                    self.flatten_key(member, ty, list)?;
                }
            }
            Value::Int(number) => {
                list.push(SelectKey { expr: Expr::Const(Bits::from_bigint(64, &number)), ty, width: 64 });
            }
            Value::Unit => list.push(SelectKey { expr: Expr::bits(1, 0), ty, width: 1 }),
            _ => return internal(self.span, "this cannot be the key of a select"),
        }
        Ok(())
    }

    /// Keys that several instructions read are evaluated once.
    fn reused(&mut self, keys: Vec<SelectKey>, cases: &'a [SelectCase]) -> Vec<SelectKey> {
        let scope = self.scope();
        let known = |e: &'a hir::Expr| self.cx.constant(e, scope).is_ok();
        let constant = cases.iter().flat_map(|c| &c.keysets).all(|k| match k {
            KeySet::Any | KeySet::ValueSet(_) => true,
            KeySet::Value(a) => known(a),
            KeySet::Mask(a, b) | KeySet::Range(a, b) => known(a) && known(b),
        });
        if constant {
            return keys;
        }
        keys.into_iter().map(|k| SelectKey { expr: self.settle_expr(k.expr), ..k }).collect()
    }

    fn alternative(
        &mut self,
        keys: &[SelectKey],
        case: &'a SelectCase,
        target: BlockId,
    ) -> Lower<Alternative> {
        if let [KeySet::Any] = case.keysets.as_slice() {
            return Ok(Alternative::Constant(vec![Matcher::Any; keys.len()], target));
        }
        let mut matchers = Vec::new();
        let mut conditions = Vec::new();
        let mut at = 0;
        for keyset in &case.keysets {
            let Some(key) = keys.get(at) else { break };
            match keyset {
                KeySet::ValueSet(instance) => {
                    let object = self.object(*instance)?;
                    let Object::ValueSet(set, fields) = *self.cx.objects.get(object) else {
                        return internal(case.span, "a value set was expected here");
                    };
                    matchers.push(Matcher::ValueSet(set));
                    at += fields;
                }
                // A structured keyset matches as many keys as it has members; `_` for a structure matches them all.
                KeySet::Any if case.keysets.len() == 1 => {
                    matchers.extend(std::iter::repeat_n(Matcher::Any, keys.len() - at));
                    at = keys.len();
                }
                KeySet::Any => {
                    matchers.push(Matcher::Any);
                    at += 1;
                }
                KeySet::Value(value) if self.is_structured(value) => {
                    at += self.structured(keys, at, value, &mut matchers, &mut conditions)?;
                }
                _ => {
                    match self.constant_matcher(key, keyset)? {
                        Some(matcher) => matchers.push(matcher),
                        None => {
                            matchers.push(Matcher::Any);
                            conditions.push(self.matches(key, keyset)?);
                        }
                    }
                    at += 1;
                }
            }
        }
        matchers.extend(std::iter::repeat_n(Matcher::Any, keys.len().saturating_sub(at)));
        if conditions.is_empty() {
            return Ok(Alternative::Constant(matchers, target));
        }
        // The constant part of the same case is a condition too.
        for (key, matcher) in keys.iter().zip(&matchers) {
            match matcher {
                Matcher::ValueSet(_) => {
                    return fail(code::PLACE, case.span, "a value set next to a value that is not constant");
                }
                matcher => conditions.push(condition(key, matcher)),
            }
        }
        Ok(Alternative::Condition(Expr::all(conditions), target))
    }

    fn is_structured(&self, value: &hir::Expr) -> bool {
        matches!(self.cx.shape(value.ty), types::Shape::Struct)
    }

    /// Matches the members of a structure; the number of keys that they took.
    fn structured(
        &mut self,
        keys: &[SelectKey],
        at: usize,
        value: &'a hir::Expr,
        matchers: &mut Vec<Matcher>,
        conditions: &mut Vec<Expr>,
    ) -> Lower<usize> {
        let scalars = self.eval(value)?.scalars();
        let n = scalars.len();
        for (key, scalar) in keys.iter().skip(at).zip(scalars) {
            match self.as_key(scalar, key.width) {
                Expr::Const(bits) if bits.width() == key.width => matchers.push(Matcher::Value(bits)),
                scalar => {
                    matchers.push(Matcher::Any);
                    conditions.push(key.expr.clone().eq(scalar));
                }
            }
        }
        Ok(n)
    }

    fn constant_matcher(&mut self, key: &SelectKey, keyset: &'a KeySet) -> Lower<Option<Matcher>> {
        let bits = |code: &Self, e: &'a hir::Expr| -> Option<Bits> {
            let value = code.cx.constant(e, code.scope()).ok()?;
            match value {
                Constant::Int(n) => Some(Bits::from_bigint(key.width, &n)),
                other => code.cx.constant_bits(&other, e.ty).map(|b| b.zero_extend(key.width)),
            }
        };
        Ok(match keyset {
            KeySet::Value(value) => bits(self, value).map(Matcher::Value),
            KeySet::Mask(value, mask) => match (bits(self, value), bits(self, mask)) {
                (Some(value), Some(mask)) => Some(Matcher::Mask(value.and(&mask), mask)),
                _ => None,
            },
            KeySet::Range(low, high) => match (bits(self, low), bits(self, high)) {
                (Some(low), Some(high)) if types::is_signed(&self.cx.hir.types, key.ty) => {
                    Some(Matcher::RangeSigned(low, high))
                }
                (Some(low), Some(high)) => Some(Matcher::Range(low, high)),
                _ => None,
            },
            KeySet::Any | KeySet::ValueSet(_) => None,
        })
    }

    /// Whether a key is in a set that is not known at compile time.
    fn matches(&mut self, key: &SelectKey, keyset: &'a KeySet) -> Lower<Expr> {
        Ok(match keyset {
            KeySet::Value(value) => {
                let value = self.scalar(value)?;
                key.expr.clone().eq(self.as_key(value, key.width))
            }
            KeySet::Mask(value, mask) => {
                let (value, mask) = (self.scalar(value)?, self.scalar(mask)?);
                let (value, mask) = (self.as_key(value, key.width), self.as_key(mask, key.width));
                let masked = |e| Expr::binary(BinaryOp::And, e, mask.clone());
                masked(key.expr.clone()).eq(masked(value))
            }
            KeySet::Range(low, high) => {
                let (low, high) = (self.scalar(low)?, self.scalar(high)?);
                let (low, high) = (self.as_key(low, key.width), self.as_key(high, key.width));
                let signed = types::is_signed(&self.cx.hir.types, key.ty);
                let le = if signed { BinaryOp::LeSigned } else { BinaryOp::Le };
                Expr::binary(le, low, key.expr.clone()).and(Expr::binary(le, key.expr.clone(), high))
            }
            KeySet::Any | KeySet::ValueSet(_) => Expr::Bool(true),
        })
    }

    /// A value of a keyset in the form of its key.
    fn as_key(&self, value: Expr, width: u32) -> Expr {
        match self.type_of(&value) {
            Type::Bool => value.bool_to_bits(),
            _ => value.zext_to(width, self.cx.ir.program()),
        }
    }

    /// Runs of constant cases become one `Select` each; a condition is a branch between them.
    fn select(&mut self, keys: &[SelectKey], alternatives: Vec<Alternative>, default: BlockId) {
        let mut pending = alternatives.into_iter().peekable();
        while let Some(alternative) = pending.next() {
            match alternative {
                Alternative::Condition(cond, target) => {
                    let rest = if pending.peek().is_some() { self.block() } else { default };
                    self.body.branch(cond, target, rest);
                    self.body.switch_to(rest);
                    if rest == default {
                        return;
                    }
                }
                Alternative::Constant(matchers, target) => {
                    let mut cases = vec![Case { matchers, target }];
                    while let Some(Alternative::Constant(matchers, target)) =
                        pending.next_if(|a| matches!(a, Alternative::Constant(..)))
                    {
                        cases.push(Case { matchers, target });
                    }
                    let rest = if pending.peek().is_some() { self.block() } else { default };
                    let keys = keys.iter().map(|k| k.expr.clone()).collect();
                    self.body.select(keys, cases, rest);
                    if rest == default {
                        return;
                    }
                    self.body.switch_to(rest);
                }
            }
        }
        self.body.goto(default);
    }
}

fn condition(key: &SelectKey, matcher: &Matcher) -> Expr {
    let constant = |bits: &Bits| Expr::Const(bits.clone());
    match matcher {
        Matcher::Any | Matcher::ValueSet(_) => Expr::Bool(true),
        Matcher::Value(value) => key.expr.clone().eq(constant(value)),
        Matcher::Mask(value, mask) => {
            Expr::binary(BinaryOp::And, key.expr.clone(), constant(mask)).eq(constant(value))
        }
        Matcher::Range(low, high) => {
            constant(low).le(key.expr.clone()).and(key.expr.clone().le(constant(high)))
        }
        Matcher::RangeSigned(low, high) => Expr::binary(BinaryOp::LeSigned, constant(low), key.expr.clone())
            .and(Expr::binary(BinaryOp::LeSigned, key.expr.clone(), constant(high))),
    }
}
