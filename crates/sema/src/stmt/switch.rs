//! `switch`.

use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::expr::Why;
use crate::fold::is_literal;
use crate::hir::{ActionId, Callee, Expr, ExprKind, Stmt, StmtKind, SwitchCase, TableId, Ty, TyKind};
use crate::scope::Entity;
use crate::wording::suggest;
use foldhash::{HashMap, HashMapExt};
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;

impl<'a> Checker<'a> {
    /// `switch (subject) { cases }`.
    pub(super) fn switch(
        &mut self,
        subject: &'a ast::Expr,
        cases: &'a [ast::SwitchCase],
        span: Span,
    ) -> Option<StmtKind> {
        if self.here.context.in_parser() {
            self.error(
                codes::STATEMENT_NOT_ALLOWED,
                span,
                "`switch` is not allowed in a parser; use `select`",
            );
            return None;
        }
        self.check_default_labels(cases);
        if let ast::ExprKind::Member(applied, member) = &subject.kind
            && member.as_str() == "action_run"
            && self.named_by(applied).is_none()
        {
            return self.switch_on_action(applied, cases, span);
        }
        self.switch_on_value(subject, cases)
    }

    fn check_default_labels(&mut self, cases: &'a [ast::SwitchCase]) {
        let mut default: Option<Span> = None;
        for case in cases {
            match (&case.label, default) {
                (None, Some(earlier)) => self.report(
                    Diagnostic::error(
                        codes::BAD_LABEL,
                        case.label_span,
                        "this `switch` has two `default` labels",
                    )
                    .with_secondary(earlier, "the first one"),
                ),
                (None, None) => default = Some(case.label_span),
                (Some(_), Some(earlier)) => self.report(
                    Diagnostic::error(codes::BAD_LABEL, case.label_span, "`default` must be the last label")
                        .with_secondary(earlier, "`default` stands here"),
                ),
                (Some(_), None) => {}
            }
        }
    }

    fn switch_on_action(
        &mut self,
        applied: &'a ast::Expr,
        cases: &'a [ast::SwitchCase],
        span: Span,
    ) -> Option<StmtKind> {
        let e = self.check_expr(applied, None);
        let table = match (&e.kind, self.kind(e.ty)) {
            (ExprKind::Call(call), TyKind::ApplyResult(table)) if matches!(call.callee, Callee::Table(_)) => {
                table
            }
            (_, TyKind::Unknown) => {
                self.switch_bodies(cases);
                return None;
            }
            _ => {
                let shown = self.show(e.ty);
                let message =
                    format!("`{shown}` has no member `action_run`: only the result of applying a table has");
                self.error(codes::BAD_SWITCH, applied.span, message);
                return None;
            }
        };
        if self.here.context != CodeContext::ControlApply {
            let message = "a table can be applied in the `apply` block of a control only";
            self.error(codes::BAD_SWITCH, span, message);
            return None;
        }
        let label = |c: &mut Self, e: &'a ast::Expr| c.action_label(table, e);
        let (cases, default) =
            self.switch_cases(cases, label, |action: &ActionId| Some(LabelKey::Action(*action)));
        Some(StmtKind::SwitchAction { table, cases, default })
    }

    /// A label that names an action of the table.
    fn action_label(&mut self, table: TableId, e: &'a ast::Expr) -> Option<ActionId> {
        let ast::ExprKind::Name(path) = &e.kind else {
            self.error(codes::BAD_LABEL, e.span, "the label must be the name of an action, or `default`");
            return None;
        };
        let id = match self.scopes.lookup(path.name.as_str(), path.absolute) {
            Some((Entity::Action(id), _)) => *id,
            Some((Entity::Broken, _)) => return None,
            Some((other, _)) => {
                let message = format!("`{}` is a {}, not an action", path.name, other.noun());
                self.error(codes::BAD_LABEL, e.span, message);
                return None;
            }
            None => {
                self.unknown_name(&path.name, "action");
                return None;
            }
        };
        let known = &self.hir.tables[table];
        let is_default_only = self.hir.actions[id].name == "NoAction" && known.default_action.is_none();
        if !known.actions.iter().any(|a| a.action == id) && !is_default_only {
            let message = format!("`{}` is not an action of the table `{}`", path.name, known.name);
            let found =
                Diagnostic::error(codes::BAD_LABEL, e.span, message).with_secondary(known.span, "the table");
            let names: Vec<String> =
                known.actions.iter().map(|a| self.hir.actions[a.action].name.clone()).collect();
            let listed = names.iter().map(String::as_str);
            self.report(suggest(found, path.name.as_str(), listed, "its actions"));
            return None;
        }
        Some(id)
    }

    fn switch_on_value(&mut self, subject: &'a ast::Expr, cases: &'a [ast::SwitchCase]) -> Option<StmtKind> {
        let value = self.check_expr(subject, None);
        let ty = value.ty;
        let fine = matches!(
            self.kind(ty),
            TyKind::Bits(_)
                | TyKind::SignedBits(_)
                | TyKind::Enum(_)
                | TyKind::Error
                | TyKind::Bool
                | TyKind::New(_)
                | TyKind::Unknown
        );
        if !fine {
            let shown = self.show(ty);
            let message = format!("`switch` cannot choose by a `{shown}`");
            let mut found = Diagnostic::error(codes::BAD_SWITCH, subject.span, message);
            if matches!(self.kind(ty), TyKind::ApplyResult(_)) {
                found = found.with_help("choose by the action that ran: `.action_run`");
            }
            self.report(found);
            self.switch_bodies(cases);
            return None;
        }
        let unknown = self.is_unknown(ty);
        let label = |c: &mut Self, e: &'a ast::Expr| c.value_label(ty, subject.span, e);
        let (cases, default) = self.switch_cases(cases, label, literal_key);
        (!unknown).then_some(StmtKind::SwitchValue { value, cases, default })
    }

    fn value_label(&mut self, ty: Ty, subject: Span, e: &'a ast::Expr) -> Option<Expr> {
        let label = self.check_expr_as(e, ty, Why::Key(subject));
        if matches!(label.kind, ExprKind::Unknown) || self.is_unknown(label.ty) {
            return None;
        }
        if !self.is_known(&label) {
            self.error(codes::NOT_CONSTANT, e.span, "a label must be known at compile time");
            return None;
        }
        Some(label)
    }

    /// Checks the blocks of a `switch` whose subject is wrong.
    fn switch_bodies(&mut self, cases: &'a [ast::SwitchCase]) {
        for body in cases.iter().filter_map(|c| c.body.as_ref()) {
            self.block_statements(body);
        }
    }

    /// Labels and blocks; labels without a block belong to the next block. A label that falls through to `default` needs no
    /// case of its own.
    fn switch_cases<L>(
        &mut self,
        cases: &'a [ast::SwitchCase],
        mut read: impl FnMut(&mut Self, &'a ast::Expr) -> Option<L>,
        key: impl Fn(&L) -> Option<LabelKey>,
    ) -> (Vec<SwitchCase<L>>, Option<Vec<Stmt>>) {
        let mut result: Vec<SwitchCase<L>> = Vec::new();
        let mut default = None;
        let mut waiting: Vec<L> = Vec::new();
        let mut labels: HashMap<LabelKey, Span> = HashMap::new();
        let mut falls_to_default = false;
        for case in cases {
            match &case.label {
                None => falls_to_default = true,
                Some(e) => {
                    if let Some(label) = read(self, e) {
                        let key = key(&label);
                        if let Some(earlier) = key.as_ref().and_then(|key| labels.get(key)) {
                            let message = "this label appears twice";
                            self.report(
                                Diagnostic::error(codes::BAD_LABEL, e.span, message)
                                    .with_secondary(*earlier, "first here"),
                            );
                        } else {
                            labels.extend(key.map(|key| (key, e.span)));
                            waiting.push(label);
                        }
                    }
                }
            }
            if let Some(body) = &case.body {
                let body = self.block_statements(body);
                let labels = std::mem::take(&mut waiting);
                if falls_to_default {
                    default = Some(body);
                    falls_to_default = false;
                } else if !labels.is_empty() {
                    result.push(SwitchCase { labels, body });
                }
            }
        }
        if let Some(last) = cases.last().filter(|c| c.body.is_none()) {
            let message = "the last label has no block, so nothing happens";
            self.warn(codes::IMPLIED, last.label_span, message);
        }
        if !waiting.is_empty() && !falls_to_default {
            result.push(SwitchCase { labels: waiting, body: Vec::new() });
        }
        (result, default)
    }
}

/// What makes two labels of one `switch` the same.
#[derive(PartialEq, Eq, Hash)]
enum LabelKey {
    Action(ActionId),
    Int(BigInt),
    Bool(bool),
    Member(usize),
}

fn literal_key(label: &Expr) -> Option<LabelKey> {
    match &label.kind {
        _ if !is_literal(label) => None,
        ExprKind::Int(number) => Some(LabelKey::Int(number.clone())),
        ExprKind::Bool(value) => Some(LabelKey::Bool(*value)),
        ExprKind::EnumMember(member) | ExprKind::ErrorMember(member) => Some(LabelKey::Member(*member)),
        _ => None,
    }
}
