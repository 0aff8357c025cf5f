//! Tables (specification section 12).

use millrace_syntax::Span;
use millrace_syntax::ast::{
    self as p16, ActionRef, Annotation, BinaryOp, Declaration, Expr, ExprKind, KeyElement, Name, Path,
    TableProperty, TablePropertyValue,
};
use millrace_syntax::p4_14::ast::{self as p14, Binding};
use std::collections::HashMap;

use crate::codes;
use crate::expr::Scope;
use crate::field_list::Item;
use crate::field_ref::{Element, Header};
use crate::model;
use crate::translate::Translator;
use crate::tree;
use crate::value::{Number, Value};

/// The most entries that a table is made for.
const MAX_SIZE: u32 = 1 << 24;

/// A table in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Its name there.
    pub(crate) name: String,
    /// The names of its actions there.
    pub(crate) actions: HashMap<String, String>,
}

impl<'a> Translator<'a> {
    /// The actions that a table may run: its own, or those of its profile.
    pub(crate) fn action_names(&self, table: &'a p14::Table) -> &'a [Name] {
        let profile = table.profile.as_ref().and_then(|name| self.model.profiles.get(name.as_str()));
        profile.map_or(&table.actions, |profile| &profile.actions)
    }

    /// Translates a table; its actions and what is part of it come before it.
    pub(crate) fn table(&mut self, table: &'a p14::Table) {
        let span = table.span;
        let direct = self.direct_objects(table);
        let meter = self.model.meters.values().copied().find(
            |meter| matches!(&meter.binding, Some(Binding::Direct(owner)) if owner.text == table.name.text),
        );
        let mut properties = Vec::new();
        let mut keys: Vec<KeyElement> = table.reads.iter().filter_map(|read| self.key(read)).collect();
        if let Some(name) = &table.profile {
            keys.extend(self.profile_property(name, &mut properties));
        }
        if !keys.is_empty() {
            properties.insert(0, property("key", TablePropertyValue::Key(keys), span));
        }
        let mut known = Known { name: self.names.fresh(table.name.as_str()), actions: HashMap::new() };
        let mut listed = Vec::new();
        for name in self.action_names(table) {
            let Some(action) = self.table_action(name, meter) else { continue };
            if known.actions.insert(name.to_string(), action.name.clone()).is_some() {
                self.warn(name.span, format!("action `{name}` is listed twice"));
                continue;
            }
            listed.push(reference(&action.name, Vec::new(), name.span));
        }
        let default = table.default.as_ref().and_then(|(call, constant)| {
            let action = self.table_action(&call.name, meter)?;
            if !known.actions.contains_key(call.name.as_str()) {
                let annotation = Annotation {
                    name: tree::name("defaultonly", span),
                    body: p16::AnnotationBody::None,
                    span,
                };
                listed.push(reference(&action.name, vec![annotation], call.span));
            }
            let value = self.default_action(call, &action)?;
            let mut made = property("default_action", TablePropertyValue::Expr(value), call.span);
            made.is_const = *constant;
            Some(made)
        });
        properties.push(property("actions", TablePropertyValue::Actions(listed), span));
        properties.extend(default);
        if let Some(size) = &table.size
            && let Some(size) = self.bounded(size, 0, MAX_SIZE)
            && size > 0
        {
            let size = self.tree.int(size, span);
            properties.push(property("size", TablePropertyValue::Expr(size), span));
        }
        if table.timeout {
            let value = self.tree.expr(ExprKind::Bool(true), span);
            properties.push(property("support_timeout", TablePropertyValue::Expr(value), span));
        }
        for (name, object) in direct {
            properties.push(property(name, TablePropertyValue::Expr(object), span));
        }
        let declaration = Declaration::Table(p16::Table {
            annotations: vec![tree::control_plane(table.name.as_str(), table.name.span)],
            name: tree::name(known.name.as_str(), table.name.span),
            properties,
            span,
        });
        self.locals.push(declaration);
        self.tables.insert(&table.name.text, known);
    }

    /// `a(1, 2)` with numbers of the types of the parameters.
    fn default_action(&mut self, call: &'a p14::ActionCall, action: &crate::actions::Known) -> Option<Expr> {
        if call.args.len() != action.params.len() {
            let message = format!(
                "action `{}` takes {} arguments, {} are given",
                call.name,
                action.params.len(),
                call.args.len()
            );
            self.error(codes::ARGUMENTS, call.span, message);
            return None;
        }
        let mut args = Vec::new();
        for (arg, ty) in call.args.iter().zip(&action.params) {
            match self.value(arg, &Scope::Outside, 0) {
                value @ Value::Const { .. } => args.push(self.convert(value, *ty)),
                Value::Error(_) => return None,
                value => {
                    self.error(codes::NOT_CONSTANT, value.span(), "a default action is given constants");
                    return None;
                }
            }
        }
        let callee = self.tree.var(action.name.as_str(), call.span);
        Some(self.tree.call(callee, Vec::new(), args, call.span))
    }

    /// The profile of a table, and the keys by which its selector chooses.
    fn profile_property(&mut self, name: &'a Name, properties: &mut Vec<TableProperty>) -> Vec<KeyElement> {
        let Some(profile) = self.model.profiles.get(name.as_str()).copied() else {
            model::unknown(&mut self.found, name, "action profile", self.model.profiles.keys().copied());
            return Vec::new();
        };
        if let Some(object) = self.profiles.get(name.as_str()).cloned() {
            let object = self.tree.global(&object, name.span);
            properties.push(property("implementation", TablePropertyValue::Expr(object), name.span));
        }
        self.muted += 1;
        let calculation = self.selector(profile);
        self.muted -= 1;
        let Some(calculation) = calculation else { return Vec::new() };
        let mut keys = Vec::new();
        for item in self.calculation_items(calculation) {
            self.selector_key(&item, name.span, &mut keys);
        }
        keys
    }

    fn selector_key(&mut self, item: &Item, span: Span, keys: &mut Vec<KeyElement>) {
        match item {
            Item::Field(reference) if reference.field.varies => {
                self.error(
                    codes::TABLE,
                    reference.span,
                    "a field of varying length cannot choose a member of a group",
                );
            }
            Item::Field(reference) => {
                let expr = self.read_expr(reference);
                keys.push(KeyElement {
                    expr,
                    match_kind: tree::name("selector", span),
                    annotations: vec![key_name(&reference.header, &reference.field.name, span)],
                    span,
                });
            }
            Item::Header(header) => {
                let Some(instance) = self.model.instances.get(&*header.instance) else { return };
                let fields: Vec<_> =
                    self.model.layout(instance).fields.iter().map(|f| f.name.clone()).collect();
                for field in fields {
                    if let Some(reference) = self.field_of(header.clone(), &field, header.span) {
                        self.selector_key(&Item::Field(reference), span, keys);
                    }
                }
            }
            // The same for every packet.
            Item::Constant { .. } => {}
            Item::Payload(at) => {
                self.error(codes::FIELD_LIST, *at, "the payload cannot choose a member of a group");
            }
        }
    }

    /// One read of a table.
    fn key(&mut self, read: &'a p14::Read) -> Option<KeyElement> {
        let span = read.span;
        let scope = Scope::Outside;
        let kind = read.kind.as_str();
        let validity = self.asks_validity(&read.field);
        if kind == "valid" || validity {
            if validity && !matches!(kind, "valid" | "exact" | "ternary") {
                let message =
                    format!("whether a header is valid is matched by `exact` or `ternary`, not `{kind}`");
                self.error(codes::TABLE, read.kind.span, message);
                return None;
            }
            if let Some(mask) = &read.mask {
                self.error(codes::TABLE, mask.span, "whether a header is valid has no mask");
            }
            let header = self.header(&read.field, &scope)?;
            let expr = self.validity(&read.field, &scope);
            let match_kind = tree::name(if kind == "ternary" { kind } else { "exact" }, read.kind.span);
            let annotations = vec![key_name(&header, "$valid$", span)];
            return Some(KeyElement { expr, match_kind, annotations, span });
        }
        if !matches!(kind, "exact" | "ternary" | "lpm" | "range") {
            let known = ["exact", "ternary", "lpm", "range", "valid"];
            model::unknown(&mut self.found, &read.kind, "kind of match", known.into_iter());
            return None;
        }
        let reference = self.field_ref(&read.field, &scope)?;
        if reference.field.varies {
            let message = "a field of varying length cannot be matched";
            self.error(codes::TABLE, read.field.span, message);
            return None;
        }
        let mut expr = self.read_expr(&reference);
        if let Some(mask) = &read.mask {
            let ty = Number::unsigned(reference.field.width);
            let mask = match self.value(mask, &scope, 0) {
                value @ Value::Const { .. } => self.convert(value, ty),
                value => {
                    self.error(codes::NOT_CONSTANT, value.span(), "the mask of a read is a constant");
                    return None;
                }
            };
            let bits = self.cast(expr, reference.number(), ty);
            let masked = self.tree.binary(BinaryOp::BitAnd, bits, mask, span);
            expr = self.cast(masked, ty, reference.number());
        }
        let annotations = vec![key_name(&reference.header, &reference.field.name, span)];
        let match_kind = tree::name(kind, read.kind.span);
        Some(KeyElement { expr, match_kind, annotations, span })
    }
}

/// The name of a key for the control plane: `ipv4.dstAddr`, `vlan[0].vid`.
fn key_name(header: &Header, field: &str, span: Span) -> Annotation {
    let index = match header.element {
        Element::At(index) => format!("[{index}]"),
        _ => String::new(),
    };
    tree::string_annotation("name", &format!("{}{index}.{field}", header.instance), span)
}

fn property(name: &str, value: TablePropertyValue, span: Span) -> TableProperty {
    TableProperty { annotations: Vec::new(), is_const: false, name: tree::name(name, span), value, span }
}

fn reference(action: &str, annotations: Vec<Annotation>, span: Span) -> ActionRef {
    let action = Path { absolute: false, name: tree::name(action, span) };
    ActionRef { annotations, action, args: None, span }
}
