//! Tables: keys and actions.

use crate::annotation::name_of;
use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::expr::{Param, Why, turns};
use crate::fold::is_literal;
use crate::hir::{self, ActionId, ActionRef, Arg, Direction, Expr, TableId, TyKind};
use crate::repeated::Names;
use crate::scope::Entity;
use crate::wording::{included_by, suggest};
use foldhash::{HashMap, HashMapExt};
use millrace_syntax::ast::{self, Argument, Name, TablePropertyValue};
use millrace_syntax::{Diagnostic, Span};

impl<'a> Checker<'a> {
    /// `table t { ... }`; its name is declared in the innermost scope.
    pub(crate) fn table(&mut self, d: &'a ast::Table) -> TableId {
        let id = self.hir.tables.push(hir::Table {
            name: d.name.to_string(),
            control: self.here.control,
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: None,
            empty_group_action: None,
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            size: None,
            largest_priority_wins: true,
            properties: Vec::new(),
            annotations: d.annotations.clone().into(),
            span: d.name.span,
        });
        self.declare_or_report_shadow(&d.name, Entity::Table(id));
        let outer = std::mem::replace(&mut self.here.context, CodeContext::Table);
        self.here.table = Some(id);
        self.check_repeated_properties(d);
        for property in &d.properties {
            if let TablePropertyValue::Key(keys) = &property.value {
                self.table_keys(id, keys);
            }
        }
        let mut has_actions = false;
        for property in &d.properties {
            if let TablePropertyValue::Actions(actions) = &property.value {
                has_actions = true;
                self.table_actions(id, actions);
            }
        }
        if !has_actions {
            let message = format!("the table `{}` has no property `actions`", d.name);
            self.error(codes::BAD_PROPERTY, d.name.span, message);
        } else {
            self.table_properties(id, d);
        }
        self.here.table = None;
        self.here.context = outer;
        id
    }

    fn check_repeated_properties(&mut self, d: &'a ast::Table) {
        let mut names = Names::default();
        for property in &d.properties {
            self.check_annotations(&property.annotations);
            if let Some(earlier) = names.take(property.name.as_str(), property.name.span) {
                let message = format!("the property `{}` is given twice", property.name);
                self.report(
                    Diagnostic::error(codes::DUPLICATE, property.name.span, message)
                        .with_secondary(earlier, "first given here"),
                );
            }
        }
    }

    fn table_keys(&mut self, id: TableId, keys: &'a [ast::KeyElement]) {
        let mut result = Vec::with_capacity(keys.len());
        for key in keys {
            self.check_annotations(&key.annotations);
            let expr = self.table_key_expr(&key.expr);
            let kind = key.match_kind.as_str();
            if !self.hir.match_kinds.iter().any(|k| k == kind) {
                let span = key.match_kind.span;
                let found =
                    Diagnostic::error(codes::UNKNOWN_NAME, span, format!("no match kind named `{kind}`"))
                        .with_label("not found");
                self.report(match included_by(kind) {
                    Some(file) => found.with_help(format!("{file} declares it: `#include <{file}>`")),
                    None => {
                        let known = self.hir.match_kinds.iter().map(String::as_str);
                        suggest(found, kind, known, "the match kinds")
                    }
                });
            }
            let name = match name_of(&key.annotations).or_else(|| self.key_name(&key.expr, &expr)) {
                Some(name) => name,
                None => {
                    self.report(
                        Diagnostic::error(
                            codes::KEY_NAME,
                            key.expr.span,
                            "this key has no name for the control plane",
                        )
                        .with_help("give it one: `@name(\"...\")` after the match kind"),
                    );
                    String::new()
                }
            };
            result.push(hir::Key {
                expr,
                match_kind: kind.to_string(),
                name,
                annotations: key.annotations.clone().into(),
                span: key.span,
            });
        }
        self.hir.tables[id].keys = result;
    }

    fn table_key_expr(&mut self, e: &'a ast::Expr) -> Expr {
        // A key may apply another table or call a function.
        let outer = std::mem::replace(&mut self.here.context, CodeContext::ControlApply);
        let expr = self.check_expr(e, None);
        self.here.context = outer;
        let fine = matches!(
            self.kind(expr.ty),
            TyKind::Bits(_)
                | TyKind::SignedBits(_)
                | TyKind::Varbit(_)
                | TyKind::Bool
                | TyKind::Enum(_)
                | TyKind::Error
                | TyKind::New(_)
                | TyKind::Unknown
                | TyKind::Var(_)
        );
        if fine {
            if is_literal(&expr) {
                self.warn(codes::UNREACHABLE, e.span, "this key is always the same");
            }
            return expr;
        }
        if matches!(&expr.kind, hir::ExprKind::Table(id) if self.here.table == Some(*id)) {
            return self.fail(codes::RECURSION, e.span, "a table cannot refer to itself");
        }
        let shown = self.show(expr.ty);
        self.fail(codes::TYPE_MISMATCH, e.span, format!("a table cannot match on a `{shown}`"))
    }

    fn table_actions(&mut self, id: TableId, actions: &'a [ast::ActionRef]) {
        let mut listed: HashMap<ActionId, Span> = HashMap::new();
        for action in actions {
            self.check_annotations(&action.annotations);
            let Some(which) = self.action_named(&action.action) else { continue };
            if let Some(&earlier) = listed.get(&which) {
                let message = format!("the action `{}` is listed twice", action.action.name);
                self.report(
                    Diagnostic::error(codes::DUPLICATE, action.span, message)
                        .with_secondary(earlier, "first listed here"),
                );
                continue;
            }
            listed.insert(which, action.span);
            let args = self.listed_args(which, action.args.as_deref().unwrap_or(&[]), action.span);
            self.hir.tables[id].actions.push(ActionRef {
                action: which,
                // One with an error stays in the list, so that no other place misses it.
                args: args.unwrap_or_default(),
                annotations: action.annotations.clone().into(),
                span: action.span,
            });
        }
    }

    /// The action that a name means.
    pub(super) fn action_named(&mut self, path: &'a ast::Path) -> Option<ActionId> {
        let name = &path.name;
        match self.scopes.lookup(name.as_str(), path.absolute) {
            Some((Entity::Action(id), _)) => Some(*id),
            Some((Entity::Broken, _)) => None,
            Some((other, declared)) => {
                let message = format!("`{name}` is a {}, not an action", other.noun());
                self.report(
                    Diagnostic::error(codes::WRONG_KIND, name.span, message)
                        .with_secondary(declared, "declared here"),
                );
                None
            }
            None => {
                self.unknown_name(name, "action");
                None
            }
        }
    }

    /// The arguments of an action in the table's list: one for each parameter with a direction.
    fn listed_args(&mut self, action: ActionId, args: &'a [Argument], span: Span) -> Option<Vec<Arg>> {
        let signature = self.action_signature(action);
        let directed: Vec<&Param<'a>> =
            signature.params.iter().filter(|p| p.direction != Direction::None).collect();
        let is_data = |name: &Name| {
            signature.params.iter().any(|p| p.direction == Direction::None && p.name == name.as_str())
        };
        let extra = match args.iter().find(|a| a.name.as_ref().is_some_and(is_data)) {
            Some(named) => Some(named),
            None if args.iter().all(|a| a.name.is_none()) => args.get(directed.len()),
            None => None,
        };
        if let Some(extra) = extra {
            let message =
                "a parameter without direction is set by the control plane and cannot be bound here";
            let data = signature.params.iter().find(|p| match &extra.name {
                Some(name) => p.name == name.as_str(),
                None => p.direction == Direction::None,
            });
            let found = Diagnostic::error(codes::BAD_BINDING, extra.span, message);
            self.report(match data {
                Some(data) => found.with_secondary(data.span, "this one has no direction"),
                None => found.with_secondary(signature.span, "the action has no such parameter"),
            });
            return None;
        }
        let what = format!("`{}`", signature.name);
        if args.is_empty()
            && let Some(first) = directed.iter().find(|p| p.default.is_none())
        {
            let message = format!("the parameter `{}` of {what} must be bound", first.name);
            self.report(
                Diagnostic::error(codes::BAD_BINDING, span, message)
                    .with_secondary(first.span, "it has a direction, so the control plane cannot set it"),
            );
            return None;
        }
        let params = directed.iter().map(|p| (p.name.as_str(), p.default.is_some()));
        let bound = self.bind(&what, signature.span, params, args, span)?;
        let turns = turns(args, &bound);
        let of = directed.into_iter().zip(bound).zip(turns);
        of.map(|((param, arg), turn)| Some(Arg { turn, ..self.action_arg(param, arg, false, span)? }))
            .collect()
    }

    /// An argument of an action in a table; its caller knows its turn.
    pub(super) fn action_arg(
        &mut self,
        param: &Param<'a>,
        arg: Option<&'a Argument>,
        constant: bool,
        span: Span,
    ) -> Option<Arg> {
        let value = match arg {
            Some(Argument { value: Some(value), .. }) => value,
            Some(arg) => {
                let message = format!("the parameter `{}` must be given a value", param.name);
                self.error(codes::BAD_BINDING, arg.span, message);
                return None;
            }
            None => match param.default {
                Some(default) => default,
                None => {
                    let message = format!("the parameter `{}` must be bound", param.name);
                    self.error(codes::BAD_BINDING, span, message);
                    return None;
                }
            },
        };
        let checked = self.check_expr(value, Some(param.ty));
        if self.is_unknown(checked.ty) {
            return None;
        }
        let value = match param.direction {
            Direction::Out | Direction::InOut => {
                if checked.ty != param.ty && !self.is_unknown(param.ty) {
                    self.mismatch(&checked, param.ty, Why::Parameter(param.span));
                    return None;
                }
                if !self.check_lvalue(&checked) {
                    return None;
                }
                checked
            }
            _ => self.coerce(checked, param.ty, Why::Parameter(param.span)),
        };
        if constant && !self.is_known(&value) {
            let message = format!("the argument for `{}` must be known at compile time", param.name);
            self.report(
                Diagnostic::error(codes::NOT_CONSTANT, value.span, message)
                    .with_secondary(param.span, "the parameter has no direction"),
            );
            return None;
        }
        Some(Arg { direction: param.direction, ty: param.ty, value: Some(value), turn: 0 })
    }
}
