//! Tables: everything but keys and actions.

use crate::annotation::name_of;
use crate::check::Checker;
use crate::codes;
use crate::expr::{Param, turns};
use crate::hir::{self, ActionId, ActionRef, Arg, Direction, Expr, ExprKind, TableId, TyKind};
use crate::scope::Entity;
use millrace_syntax::ast::{self, Annotation, Argument, TablePropertyValue};
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

/// How the priorities of entries are counted.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    /// The difference between entries that follow each other.
    pub(super) delta: BigInt,
}

impl<'a> Checker<'a> {
    /// Reads the properties other than `key` and `actions`.
    pub(super) fn table_properties(&mut self, id: TableId, d: &'a ast::Table) {
        let mut priorities = Priorities { delta: BigInt::from(1) };
        let mut entries = None;
        let mut has_default = false;
        let mut key_at = None;
        let mut actions_seen = false;
        for (i, property) in d.properties.iter().enumerate() {
            match &property.value {
                TablePropertyValue::Key(_) => key_at = Some(i),
                TablePropertyValue::Actions(_) => actions_seen = true,
                TablePropertyValue::Entries(list) => entries = Some((i, property, list)),
                TablePropertyValue::Expr(value) => match property.name.as_str() {
                    "default_action" => {
                        has_default = true;
                        if !actions_seen {
                            let message = "`default_action` must come after `actions`";
                            self.error(codes::BAD_PROPERTY, property.name.span, message);
                        }
                        self.default_action(id, property, value);
                    }
                    "psa_empty_group_action" | "pna_empty_group_action" => {
                        let action = self.action_value(id, property, value);
                        self.hir.tables[id].empty_group_action = action;
                    }
                    "size" => self.table_size(id, value),
                    "largest_priority_wins" => {
                        let checked = self.check_condition(value);
                        match checked.kind {
                            ExprKind::Bool(wins) => self.hir.tables[id].largest_priority_wins = wins,
                            ExprKind::Unknown => {}
                            _ => {
                                let message = "`largest_priority_wins` must be known at compile time";
                                self.error(codes::NOT_CONSTANT, value.span, message);
                            }
                        }
                    }
                    "priority_delta" => self.priority_delta(value, &mut priorities),
                    _ => self.other_property(id, property, value),
                },
            }
        }
        if !has_default {
            self.check_no_action(d);
        }
        if let Some((at, property, list)) = entries {
            if key_at.is_some_and(|key| key > at) {
                let message = "`entries` must come after `key`";
                self.error(codes::BAD_PROPERTY, property.name.span, message);
            }
            self.table_entries(id, property, list, &priorities);
        }
    }

    fn priority_delta(&mut self, value: &'a ast::Expr, priorities: &mut Priorities) {
        let Some(delta) = self.constant_integer(value, "`priority_delta`") else { return };
        if !delta.is_positive() || delta.to_i32().is_none() {
            let message = format!("`priority_delta` must be a positive number of 32 bits, not {delta}");
            self.error(codes::BAD_PRIORITY, value.span, message);
            return;
        }
        priorities.delta = delta;
    }

    fn table_size(&mut self, id: TableId, value: &'a ast::Expr) {
        let size = self.check_expr(value, None);
        let size = self.without_enum(size);
        if self.is_unknown(size.ty) {
            return;
        }
        let numeric = matches!(self.kind(size.ty), TyKind::Int | TyKind::Bits(_) | TyKind::SignedBits(_));
        if !numeric || !self.is_known(&size) {
            let message = "the size of a table must be a number known at compile time";
            self.error(codes::BAD_PROPERTY, value.span, message);
            return;
        }
        if matches!(&size.kind, ExprKind::Int(v) if v.is_negative()) {
            self.error(codes::BAD_SIZE, value.span, "the size of a table cannot be negative");
            return;
        }
        self.hir.tables[id].size = Some(size);
    }

    fn other_property(&mut self, id: TableId, property: &'a ast::TableProperty, value: &'a ast::Expr) {
        // An action as the value of an architecture's own property stays what its own tools make of it.
        if let ast::ExprKind::Name(path) = &value.kind
            && let Some((Entity::Action(_) | Entity::Function(_), _)) =
                self.scopes.lookup(path.name.as_str(), path.absolute)
        {
            return;
        }
        let value = self.check_expr(value, None);
        if self.is_unknown(value.ty) {
            return;
        }
        if let ExprKind::Instance(instance) = value.kind {
            self.name_instance_in_place(id, property, instance);
        }
        self.hir.tables[id].properties.push(hir::Property {
            name: property.name.to_string(),
            value,
            is_const: property.is_const,
            annotations: property.annotations.clone().into(),
            span: property.span,
        });
    }

    /// An instance made in place has the annotations of the property that it is. Without `@name`, its name is
    /// `table.property`.
    fn name_instance_in_place(
        &mut self,
        id: TableId,
        property: &'a ast::TableProperty,
        instance: hir::InstanceId,
    ) {
        let made = &mut self.hir.instances[instance];
        if made.name.is_some() {
            return;
        }
        made.annotations = made.annotations.iter().chain(&property.annotations).cloned().collect();
        if name_of(&made.annotations).is_none() {
            let table = &self.hir.tables[id];
            let table = name_of(&table.annotations).unwrap_or_else(|| table.name.clone());
            made.name = Some(format!("{table}.{}", property.name));
        }
    }

    /// A table without `default_action` runs `NoAction`, which core.p4 declares.
    fn check_no_action(&mut self, d: &'a ast::Table) {
        let found = match self.scopes.lookup("NoAction", true) {
            Some((Entity::Action(id), span)) => Some((self.hir.actions[*id].params.is_empty(), span)),
            Some((Entity::Broken, _)) => return,
            Some((_, span)) => Some((false, span)),
            None => None,
        };
        let message =
            format!("the table `{}` has no `default_action`, so it needs the action `NoAction`", d.name);
        match found {
            Some((true, _)) => {}
            Some((false, span)) => self.report(
                Diagnostic::error(codes::BAD_PROPERTY, d.name.span, message)
                    .with_secondary(span, "this is no action without parameters"),
            ),
            None => self.report(
                Diagnostic::error(codes::BAD_PROPERTY, d.name.span, message)
                    .with_help("include core.p4, or give the table a `default_action`"),
            ),
        }
    }

    fn default_action(&mut self, id: TableId, property: &'a ast::TableProperty, value: &'a ast::Expr) {
        let Some(action) = self.action_value(id, property, value) else { return };
        let table = &self.hir.tables[id];
        let listed = table.actions.iter().find(|listed| listed.action == action.action);
        if listed.is_some_and(|listed| has(&listed.annotations, "tableonly")) {
            let message = "an action marked `@tableonly` cannot be the default action";
            self.error(codes::NOT_IN_ACTIONS, value.span, message);
        }
        let table = &mut self.hir.tables[id];
        table.const_default = property.is_const;
        table.default_action = Some(action);
    }

    /// An action of the table's list with all its arguments, as a property has it.
    fn action_value(
        &mut self,
        id: TableId,
        property: &'a ast::TableProperty,
        value: &'a ast::Expr,
    ) -> Option<ActionRef> {
        let (path, args) = self.action_expression(value)?;
        let listed = self.listed_action(id, path, value.span)?;
        let args = self.full_args(&listed, args, value.span)?;
        let annotations = property.annotations.clone().into();
        Some(ActionRef { action: listed.action, args, annotations, span: value.span })
    }

    /// An action with or without arguments, written as an expression.
    fn action_expression(&mut self, e: &'a ast::Expr) -> Option<(&'a ast::Path, &'a [Argument])> {
        match &e.kind {
            ast::ExprKind::Name(path) => Some((path, &[])),
            ast::ExprKind::Call { callee, args, .. } => match &callee.kind {
                ast::ExprKind::Name(path) => Some((path, args)),
                _ => {
                    self.error(codes::WRONG_KIND, e.span, "an action is expected here");
                    None
                }
            },
            ast::ExprKind::Invalid => None,
            _ => {
                self.error(codes::WRONG_KIND, e.span, "an action is expected here");
                None
            }
        }
    }

    /// The entry of the table's list for an action.
    pub(super) fn listed_action(
        &mut self,
        id: TableId,
        path: &'a ast::Path,
        span: Span,
    ) -> Option<ActionRef> {
        let action: ActionId = self.action_named(path)?;
        let listed = self.hir.tables[id].actions.iter().find(|a| a.action == action).cloned();
        if listed.is_none() {
            let table = self.hir.tables[id].name.clone();
            self.report(
                Diagnostic::error(
                    codes::NOT_IN_ACTIONS,
                    span,
                    format!("`{}` is not in the list of actions of `{table}`", path.name),
                )
                .with_secondary(self.hir.tables[id].span, "the table")
                .with_help("add it to the table's `actions`"),
            );
        }
        listed
    }

    /// Arguments for all parameters of an action: all of them written, or only those that the list leaves open.
    pub(super) fn full_args(
        &mut self,
        listed: &ActionRef,
        args: &'a [Argument],
        span: Span,
    ) -> Option<Vec<Arg>> {
        let signature = self.action_signature(listed.action);
        let what = format!("`{}`", signature.name);
        let data: Vec<&Param<'a>> =
            signature.params.iter().filter(|p| p.direction == Direction::None).collect();
        let bound_by_list = signature.params.len() - data.len();
        let is_data =
            |a: &Argument| a.name.as_ref().is_some_and(|n| data.iter().any(|p| p.name == n.as_str()));
        let data_only = bound_by_list > 0
            && match args.iter().any(|a| a.name.is_some()) {
                true => args.iter().all(is_data),
                false => args.len() == data.len(),
            };
        let given: Vec<&Param<'a>> = if data_only { data } else { signature.params.iter().collect() };
        let params = given.iter().map(|p| (p.name.as_str(), p.default.is_some()));
        let bound = self.bind(&what, signature.span, params, args, span)?;
        let turns = turns(args, &bound);
        let mut result = if data_only { listed.args.clone() } else { Vec::with_capacity(given.len()) };
        let mut from_list = listed.args.iter();
        for ((param, arg), turn) in given.into_iter().zip(bound).zip(turns) {
            let is_data = param.direction == Direction::None;
            let arg = Arg { turn, ..self.action_arg(param, arg, is_data, span)? };
            if !is_data
                && let Some(Some(listed)) = from_list.next().map(|a| &a.value)
                && let Some(value) = &arg.value
                && !same_expr(listed, value)
                && !self.is_damaged(listed)
                && !self.is_damaged(value)
            {
                self.report(
                    Diagnostic::error(
                        codes::BAD_BINDING,
                        value.span,
                        format!("the argument for `{}` is not the one in the list of actions", param.name),
                    )
                    .with_secondary(listed.span, "bound here to something else"),
                );
                return None;
            }
            result.push(arg);
        }
        Some(result)
    }
}

/// Whether an annotation of this name is there.
pub(super) fn has(annotations: &[Annotation], name: &str) -> bool {
    annotations.iter().any(|a| a.name.as_str() == name)
}

/// Whether two expressions say the same.
fn same_expr(a: &Expr, b: &Expr) -> bool {
    use ExprKind as E;
    match (&a.kind, &b.kind) {
        (E::Int(x), E::Int(y)) => x == y && a.ty == b.ty,
        (E::Bool(x), E::Bool(y)) => x == y,
        (E::String(x), E::String(y)) => x == y,
        (E::ErrorMember(x), E::ErrorMember(y))
        | (E::MatchKind(x), E::MatchKind(y))
        | (E::EnumMember(x), E::EnumMember(y)) => x == y && a.ty == b.ty,
        (E::Var(x), E::Var(y)) => x == y,
        (E::Instance(x), E::Instance(y)) => x == y,
        (E::Field(x, i), E::Field(y, j)) => i == j && same_expr(x, y),
        (E::Index(x, i), E::Index(y, j)) => same_expr(x, y) && same_expr(i, j),
        (E::Slice(x, h, l), E::Slice(y, i, m)) => h == i && l == m && same_expr(x, y),
        (E::Unary(o, x), E::Unary(p, y)) => o == p && same_expr(x, y),
        (E::Binary(o, x, i), E::Binary(p, y, j)) => o == p && same_expr(x, y) && same_expr(i, j),
        (E::Mux(c, x, i), E::Mux(d, y, j)) => same_expr(c, d) && same_expr(x, y) && same_expr(i, j),
        (E::Cast(x), E::Cast(y)) => a.ty == b.ty && same_expr(x, y),
        (E::IsValid(x), E::IsValid(y)) => same_expr(x, y),
        (E::StackLiteral(x), E::StackLiteral(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_expr(x, y))
        }
        // In whatever order they are written.
        (E::Aggregate(_) | E::InTurn(_), E::Aggregate(_) | E::InTurn(_)) => {
            let (left, right) = (members(a), members(b));
            left.len() == right.len() && left.iter().zip(right).all(|(x, y)| same_expr(x, y))
        }
        (E::InvalidHeader, E::InvalidHeader) => true,
        (E::Call(x), E::Call(y)) => {
            let values = |c: &hir::Call| c.args.iter().filter_map(|a| a.value.clone()).collect::<Vec<_>>();
            let (left, right) = (values(x), values(y));
            same_callee(&x.callee, &y.callee)
                && left.len() == right.len()
                && left.iter().zip(&right).all(|(x, y)| same_expr(x, y))
        }
        _ => false,
    }
}

/// The members of a structure, tuple or list, in the order of its fields.
fn members(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Aggregate(members) => members.iter().collect(),
        ExprKind::InTurn(written) => {
            let mut placed: Vec<&(usize, Expr)> = written.iter().collect();
            placed.sort_by_key(|(place, _)| *place);
            placed.into_iter().map(|(_, member)| member).collect()
        }
        _ => Vec::new(),
    }
}

fn same_callee(a: &hir::Callee, b: &hir::Callee) -> bool {
    match (a, b) {
        (hir::Callee::Function(x), hir::Callee::Function(y)) => x == y,
        (hir::Callee::ExternFunction(x), hir::Callee::ExternFunction(y)) => x == y,
        (hir::Callee::ExternMethod(x, i), hir::Callee::ExternMethod(y, j)) => i == j && same_expr(x, y),
        _ => false,
    }
}
