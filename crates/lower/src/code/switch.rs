//! `switch`.

use foldhash::{HashMap, HashMapExt};
use millrace_pipeline::{Bits, BlockId, Case, Expr, Matcher, Type};
use millrace_sema::hir::{self, ActionId, Stmt, SwitchCase, TableId};
use millrace_syntax::Span;

use super::Code;
use crate::fail::{Lower, internal};
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// `switch (t.apply().action_run)`.
    pub(crate) fn switch_action(
        &mut self,
        table: TableId,
        cases: &'a [SwitchCase<ActionId>],
        default: Option<&'a [Stmt]>,
        span: Span,
    ) -> Lower<()> {
        let (_, run) = self.apply_table(table, false, true, span)?;
        let Some(run) = run else { return internal(span, "an application without a result") };
        let state = self.table(table)?;
        // An action may stand in the list more than once.
        let mut positions: HashMap<ActionId, Vec<usize>> = HashMap::new();
        for (position, action) in state.actions.iter().enumerate() {
            positions.entry(*action).or_default().push(position);
        }
        let mut list = Vec::new();
        for case in cases {
            let positions = case.labels.iter().filter_map(|label| positions.get(label)).flatten();
            let values = positions.map(|position| Bits::new(16, *position as u128));
            list.push((values.collect::<Vec<_>>(), case.body.as_slice()));
        }
        self.select_values(Expr::Read(run), list, default)
    }

    /// `switch (value)`.
    pub(crate) fn switch_value(
        &mut self,
        value: &'a hir::Expr,
        cases: &'a [SwitchCase<hir::Expr>],
        default: Option<&'a [Stmt]>,
    ) -> Lower<()> {
        let key = match self.eval(value)? {
            Value::Scalar(key) => key,
            Value::Unit => Expr::bits(1, 0),
            Value::Int(number) => Expr::Const(Bits::from_bigint(64, &number)),
            _ => return internal(value.span, "a number was expected here"),
        };
        let width = match self.type_of(&key) {
            Type::Bits(w) => w,
            _ => 1,
        };
        let mut list = Vec::new();
        for case in cases {
            let mut values = Vec::new();
            for label in &case.labels {
                let constant = self.cx.must_be_constant(label, self.scope())?;
                let bits = self.cx.constant_bits(&constant, label.ty);
                values.push(bits.map_or_else(|| Bits::zero(width), |b| b.zero_extend(width)));
            }
            list.push((values, case.body.as_slice()));
        }
        self.select_values(key, list, default)
    }

    fn select_values(
        &mut self,
        key: Expr,
        list: Vec<(Vec<Bits>, &'a [Stmt])>,
        default: Option<&'a [Stmt]>,
    ) -> Lower<()> {
        let join = self.block();
        let otherwise = if default.is_some() { self.block() } else { join };
        let mut cases = Vec::new();
        let mut bodies: Vec<(BlockId, &'a [Stmt])> = Vec::new();
        for (values, body) in list {
            let block = self.block();
            for value in values {
                cases.push(Case { matchers: vec![Matcher::Value(value)], target: block });
            }
            bodies.push((block, body));
        }
        self.body.select(vec![key], cases, otherwise);
        if let Some(default) = default {
            bodies.push((otherwise, default));
        }
        for (block, body) in bodies {
            self.body.switch_to(block);
            self.stmts(body)?;
            self.body.goto(join);
        }
        self.body.switch_to(join);
        Ok(())
    }
}
