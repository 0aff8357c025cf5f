//! Field lists (specification section 2.4), and the lists of metadata that copies of a packet keep.

use indexmap::IndexSet;
use millrace_syntax::Span;
use millrace_syntax::p4_14::ast::{self as p14, FieldListEntry};
use num_bigint::BigInt;
use std::collections::HashSet;

use crate::codes;
use crate::constant;
use crate::expr::Scope;
use crate::field_ref::{Element, FieldRef, Header};
use crate::model::{self, Kind};
use crate::translate::Translator;

/// The most entries of a field list, those of lists in it included.
const MAX_ENTRIES: usize = 10_000;

/// The most field lists and actions inside each other.
const MAX_DEPTH: usize = 64;

/// v1model's lists have numbers of 8 bits; 0 is the list of nothing.
const MAX_LISTS: u32 = 255;

/// The actions that keep a list of metadata, with the argument that is the list.
const KEEPING: [(&str, usize); 10] = [
    ("resubmit", 0),
    ("recirculate", 0),
    ("clone_ingress_pkt_to_egress", 1),
    ("clone_egress_pkt_to_egress", 1),
    ("clone_ingress_pkt_to_ingress", 1),
    ("clone_egress_pkt_to_ingress", 1),
    ("clone_i2e", 1),
    ("clone_e2e", 1),
    ("clone_i2i", 1),
    ("clone_e2i", 1),
];

/// An entry of a field list, lists in it unfolded.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Field(FieldRef),
    /// A packet header as a whole.
    Header(Header),
    Constant {
        value: BigInt,
        width: u32,
        span: Span,
    },
    /// The packet after the headers.
    Payload(Span),
}

impl<'a> Translator<'a> {
    /// The entries of a list.
    pub(crate) fn items(&mut self, list: &'a p14::FieldList) -> Vec<Item> {
        let mut items = Vec::new();
        self.unfold(list, &mut items);
        items
    }

    fn unfold(&mut self, list: &'a p14::FieldList, items: &mut Vec<Item>) {
        if self.stack.contains(&list.name.as_str()) {
            // It is reported where all lists are looked at.
            return;
        }
        if self.stack.len() >= MAX_DEPTH {
            let message = format!("field lists are nested more than {MAX_DEPTH} deep");
            self.error(codes::LIMIT, list.name.span, message);
            return;
        }
        self.stack.push(&list.name.text);
        for entry in &list.entries {
            if items.len() >= MAX_ENTRIES || !self.count_statement(list.name.span) {
                if items.len() == MAX_ENTRIES {
                    let message = format!("this field list has {MAX_ENTRIES} entries or more");
                    self.found.push(millrace_syntax::Diagnostic::error(
                        codes::LIMIT,
                        list.name.span,
                        message,
                    ));
                    // One more, so that this is said once.
                    items.push(Item::Constant { value: BigInt::ZERO, width: 1, span: list.name.span });
                }
                break;
            }
            match entry {
                FieldListEntry::Payload(span) => items.push(Item::Payload(*span)),
                FieldListEntry::Value(e) => match constant::evaluate(e) {
                    Some(value) => {
                        let given = match &e.kind {
                            p14::ExprKind::Int { width, .. } => *width,
                            _ => None,
                        };
                        let width = given.unwrap_or_else(|| constant::bits(&value));
                        items.push(Item::Constant { value, width, span: e.span });
                    }
                    None => self.error(
                        codes::NOT_CONSTANT,
                        e.span,
                        "a field, header, list or constant is expected",
                    ),
                },
                FieldListEntry::Reference(reference) => self.unfold_reference(reference, items),
            }
        }
        self.stack.pop();
    }

    fn unfold_reference(&mut self, reference: &'a p14::Reference, items: &mut Vec<Item>) {
        if let Some(name) = reference.plain()
            && let Some(inner) = self.model.field_lists.get(name.as_str()).copied()
        {
            return self.unfold(inner, items);
        }
        if reference.field.is_some() {
            let reference = self.field_ref(reference, &Scope::Outside);
            items.extend(reference.map(Item::Field));
            return;
        }
        let Some(header) = self.header(reference, &Scope::Outside) else { return };
        match header.kind {
            Kind::Header if header.is_stack => {
                let size = self.model.instances.get(&*header.instance).and_then(|i| i.size).unwrap_or(0);
                items.extend((0..size).map(|i| {
                    Item::Header(Header { element: Element::At(i), is_stack: false, ..header.clone() })
                }));
            }
            Kind::Header => items.push(Item::Header(header)),
            Kind::Metadata => {
                let Some(instance) = self.model.instances.get(&*header.instance) else { return };
                let fields: Vec<_> =
                    self.model.layout(instance).fields.iter().map(|f| f.name.clone()).collect();
                for field in fields {
                    items.extend(self.field_of(header.clone(), &field, header.span).map(Item::Field));
                }
            }
            // The switch gives it to every packet; there is nothing that could be kept or hashed as a whole.
            Kind::Standard => {}
        }
    }

    /// Reports field lists that contain themselves, used or not.
    pub(crate) fn check_field_lists(&mut self) {
        let lists = &self.model.field_lists;
        let inner = |list: &'a p14::FieldList| -> Vec<&'a p14::FieldList> {
            let names = list.entries.iter().filter_map(|entry| match entry {
                FieldListEntry::Reference(reference) => reference.plain(),
                FieldListEntry::Value(_) | FieldListEntry::Payload(_) => None,
            });
            names.filter_map(|name| lists.get(name.as_str()).copied()).collect()
        };
        // Depth first, without recursion: the path holds the lists that are open, each with those in it that remain.
        let mut done: HashSet<&'a str> = HashSet::new();
        let mut open: HashSet<&'a str> = HashSet::new();
        let mut recursive = Vec::new();
        for root in lists.values().copied() {
            let mut path = vec![(root, Vec::new())];
            if done.insert(root.name.as_str()) {
                open.insert(root.name.as_str());
                path[0].1 = inner(root);
            }
            while let Some((list, rest)) = path.last_mut() {
                let Some(next) = rest.pop() else {
                    open.remove(list.name.as_str());
                    path.pop();
                    continue;
                };
                if open.contains(next.name.as_str()) {
                    recursive.push(&next.name);
                } else if done.insert(next.name.as_str()) {
                    open.insert(next.name.as_str());
                    path.push((next, inner(next)));
                }
            }
        }
        for name in recursive {
            self.error(codes::RECURSION, name.span, format!("field list `{name}` contains itself"));
        }
    }

    /// A field list by name, where one is expected.
    pub(crate) fn field_list(
        &mut self,
        e: &'a p14::Expr,
        scope: &Scope<'a, '_>,
    ) -> Option<&'a p14::FieldList> {
        let (e, scope) = self.resolve(e, scope);
        let is_data = |name: &millrace_syntax::ast::Name| match scope {
            Scope::Action(params) => params.contains_key(name.as_str()),
            _ => false,
        };
        let name = match &e.kind {
            p14::ExprKind::Reference(reference) => reference.plain().filter(|name| !is_data(name)),
            _ => None,
        };
        let found = name.and_then(|name| self.model.field_lists.get(name.as_str()).copied());
        if found.is_none() {
            match name {
                Some(name) if self.muted == 0 && !self.model.instances.contains_key(name.as_str()) => {
                    let known = self.model.field_lists.keys().copied();
                    model::unknown(&mut self.found, name, "field list", known);
                }
                _ => self.error(codes::FIELD_LIST, e.span, "a field list is expected here"),
            }
        }
        found
    }

    /// Numbers the lists that are kept, in the order of their first use.
    pub(crate) fn declare_lists(&mut self) {
        let mut used: IndexSet<&'a str> = IndexSet::new();
        for action in self.model.actions.values() {
            for call in &action.body {
                let at = KEEPING.iter().find(|(name, _)| *name == call.name.as_str()).map(|(_, at)| *at);
                if let Some(p14::ExprKind::Reference(list)) =
                    at.and_then(|at| call.args.get(at)).map(|e| &e.kind)
                    && let Some((name, _)) = self.model.field_lists.get_key_value(list.name.as_str())
                {
                    used.insert(name);
                }
            }
        }
        // An action may get its list as an argument.
        let given: Vec<&'a p14::Expr> =
            self.model.actions.values().flat_map(|a| &a.body).flat_map(|call| &call.args).collect();
        for e in given {
            if let p14::ExprKind::Reference(list) = &e.kind
                && let Some((name, _)) = self.model.field_lists.get_key_value(list.name.as_str())
                && list.plain().is_some()
            {
                used.insert(name);
            }
        }
        for (i, name) in used.into_iter().enumerate() {
            let number = i as u32 + 1;
            if number > MAX_LISTS {
                let span = self.model.field_lists.get(name).map_or(Span::default(), |l| l.name.span);
                self.error(codes::LIMIT, span, format!("more than {MAX_LISTS} field lists are in use"));
                return;
            }
            self.lists.insert(name, number);
            self.muted += 1;
            let items =
                self.model.field_lists.get(name).copied().map(|list| self.items(list)).unwrap_or_default();
            self.muted -= 1;
            let fields = items.into_iter().filter_map(|item| match item {
                Item::Field(reference) => Some((reference.header.instance, reference.field.name)),
                _ => None,
            });
            self.kept_fields.push((number, fields.collect()));
        }
    }

    /// The numbers of the lists that keep a field of metadata.
    pub(crate) fn lists_of(&self, instance: &str, field: &str) -> Vec<u32> {
        let key = (instance.into(), field.into());
        self.kept_fields
            .iter()
            .filter(|(_, fields)| fields.contains(&key))
            .map(|(number, _)| *number)
            .collect()
    }
}
