//! Primitive actions on stateful objects, random numbers and hashes, and those that send packets elsewhere
//! (specification section 9.1).

use millrace_syntax::Span;
use millrace_syntax::ast::{Expr, ExprKind as Made, Name, Stmt, StructKind};
use millrace_syntax::p4_14::ast::{self as p14, ExprKind};
use num_bigint::BigInt;
use num_traits::One;
use std::collections::{HashMap, HashSet};

use crate::codes;
use crate::expr::Scope;
use crate::field_list::Item;
use crate::field_ref::FieldRef;
use crate::hash;
use crate::model::{self, Kind};
use crate::translate::{self, Pipeline, Translator};
use crate::tree;
use crate::value::{Number, Value};

/// Indices, sessions, lengths.
const INDEX: Number = Number::unsigned(32);

impl<'a> Translator<'a> {
    /// A call of a primitive action that has an effect beyond headers and fields.
    pub(crate) fn stateful(&mut self, call: &'a p14::ActionCall, scope: &Scope<'a, '_>, out: &mut Vec<Stmt>) {
        let span = call.span;
        match (call.name.as_str(), call.args.as_slice()) {
            ("count", [counter, index]) => self.count(counter, index, scope, span, out),
            ("execute_meter", [meter, index, field] | [meter, index, field, _]) => {
                self.execute_meter(meter, index, field, scope, span, out);
            }
            ("register_read", [field, register, index]) => {
                let Some((object, ty)) = self.register_argument(register, scope) else { return };
                let Some(reference) = self.target(field, scope) else { return };
                let index = self.index(index, scope);
                self.result(&reference, ty, out, |t, into, out| {
                    let object = t.tree.global(&object, span);
                    out.push(t.tree.method(object, "read", vec![into, index], span));
                });
            }
            ("register_write", [register, index, value]) => {
                let Some((object, ty)) = self.register_argument(register, scope) else { return };
                let saturating = self.is_saturating(register, scope);
                let index = self.index(index, scope);
                let value = self.value(value, scope, ty.width);
                let value = if saturating { self.saturate(value, ty, out) } else { self.convert(value, ty) };
                let object = self.tree.global(&object, span);
                out.push(self.tree.method(object, "write", vec![index, value], span));
            }
            ("modify_field_rng_uniform", [field, low, high]) => {
                let Some(reference) = self.target(field, scope) else { return };
                let values = [low, high].map(|e| self.value(e, scope, reference.field.width));
                let width = values.iter().map(Value::width).max().unwrap_or(0).max(reference.field.width);
                let ty = Number::unsigned(width);
                let [low, high] = values.map(|value| self.convert(value, ty));
                self.result(&reference, ty, out, |t, into, out| {
                    out.push(t.tree.function("random", vec![into, low, high], span));
                });
            }
            ("modify_field_with_hash_based_offset", [field, base, calculation, size]) => {
                self.hash_offset(field, base, calculation, size, scope, span, out);
            }
            ("generate_digest", [receiver, list]) => self.digest(receiver, list, scope, span, out),
            ("truncate", [length]) => {
                let length = self.index(length, scope);
                out.push(self.tree.function("truncate", vec![length], span));
            }
            ("resubmit" | "recirculate", [] | [_]) => self.again(call, scope, out),
            ("exit", []) => out.push(Stmt { kind: millrace_syntax::ast::StmtKind::Exit, span }),
            ("invalidate", [_]) => {}
            ("clone_ingress_pkt_to_egress" | "clone_i2e", [session, list @ ..]) if list.len() < 2 => {
                self.clone_packet("I2E", session, list.first(), scope, span, out);
            }
            ("clone_egress_pkt_to_egress" | "clone_e2e", [session, list @ ..]) if list.len() < 2 => {
                self.clone_packet("E2E", session, list.first(), scope, span, out);
            }
            (
                "clone_ingress_pkt_to_ingress" | "clone_i2i" | "clone_egress_pkt_to_ingress" | "clone_e2i",
                [_, list @ ..],
            ) if list.len() < 2 => {
                let message = format!("v1model clones to egress only, it has no `{}`", call.name);
                self.error(codes::ARCHITECTURE, span, message);
            }
            ("bypass_egress", []) => {
                self.error(codes::ARCHITECTURE, span, "v1model has no way around egress");
            }
            _ => self.no_primitive(call),
        }
    }

    /// An argument as an index.
    fn index(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> Expr {
        let value = self.value(e, scope, 0);
        self.convert(value, INDEX)
    }

    /// The object that an argument names.
    fn object(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>, what: &str) -> Option<&'a Name> {
        let (e, _) = self.resolve(e, scope);
        let name = match &e.kind {
            ExprKind::Reference(reference) => reference.plain(),
            _ => None,
        };
        if name.is_none() {
            self.type_error(e.span, &format!("a {what} is expected here"));
        }
        name
    }

    fn unknown_object<'n>(&mut self, name: &Name, what: &str, known: impl Iterator<Item = &'n str>) {
        if self.muted == 0 {
            model::unknown(&mut self.found, name, what, known);
        }
    }

    fn count(
        &mut self,
        counter: &'a p14::Expr,
        index: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let Some(name) = self.object(counter, scope, "counter") else { return };
        if !self.model.counters.contains_key(name.as_str()) {
            let known: Vec<&str> = self.model.counters.keys().copied().collect();
            return self.unknown_object(name, "counter", known.into_iter());
        }
        let Some(object) = self.counters.get(name.as_str()).cloned() else {
            let message = format!("`{name}` is a direct counter: it counts by itself");
            return self.error(codes::OBJECT, name.span, message);
        };
        let index = self.index(index, scope);
        let object = self.tree.global(&object, span);
        out.push(self.tree.method(object, "count", vec![index], span));
    }

    fn execute_meter(
        &mut self,
        meter: &'a p14::Expr,
        index: &'a p14::Expr,
        field: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let Some(name) = self.object(meter, scope, "meter") else { return };
        let Some(declared) = self.model.meters.get(name.as_str()).copied() else {
            let known: Vec<&str> = self.model.meters.keys().copied().collect();
            return self.unknown_object(name, "meter", known.into_iter());
        };
        if matches!(declared.binding, Some(p14::Binding::Direct(_))) {
            let message = format!("`{name}` is a direct meter: it runs by itself");
            return self.error(codes::OBJECT, name.span, message);
        }
        let Some(object) = self.meters.get(name.as_str()).cloned() else { return };
        let Some(reference) = self.target(field, scope) else { return };
        let index = self.index(index, scope);
        let ty = Number::unsigned(reference.field.width);
        self.result(&reference, ty, out, |t, into, out| {
            let object = t.tree.global(&object, span);
            out.push(t.tree.method(object, "execute_meter", vec![index, into], span));
        });
    }

    /// The register that an argument names: in the tree, and the type of its cells.
    fn register_argument(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> Option<(String, Number)> {
        let name = self.object(e, scope, "register")?;
        if let Some(register) = self.registers.get(name.as_str()) {
            return Some(register.clone());
        }
        if self.model.registers.contains_key(name.as_str()) {
            let message = format!("`{name}` is direct: v1model has no registers that are part of a table");
            self.error(codes::ARCHITECTURE, e.span, message);
        } else {
            let known: Vec<&str> = self.model.registers.keys().copied().collect();
            self.unknown_object(name, "register", known.into_iter());
        }
        None
    }

    fn is_saturating(&self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> bool {
        let (e, _) = self.resolve(e, scope);
        let ExprKind::Reference(reference) = &e.kind else { return false };
        self.model.registers.get(reference.name.as_str()).is_some_and(|r| r.saturating)
    }

    /// Has something written into a field, by way of a variable if the types differ.
    fn result(
        &mut self,
        reference: &FieldRef,
        ty: Number,
        out: &mut Vec<Stmt>,
        write: impl FnOnce(&mut Self, Expr, &mut Vec<Stmt>),
    ) {
        if reference.field.varies {
            self.type_error(reference.span, "a field of varying length cannot be computed with");
            return;
        }
        if reference.number() == ty
            && let Some(target) = self.direct(reference)
        {
            return write(self, target, out);
        }
        let span = reference.span;
        let name = self.names.fresh("tmp");
        let declared = self.tree.ty(ty.width, ty.signed, span);
        out.push(tree::variable(declared, &name, None, span));
        let into = self.tree.var(name.as_str(), span);
        write(self, into, out);
        let expr = self.tree.var(name.as_str(), span);
        self.set(reference, Value::Num { expr, width: ty.width, signed: ty.signed }, out);
    }

    /// `field = base + hash mod size`, the hash cut to the width that the calculation gives.
    #[expect(
        clippy::too_many_arguments,
        reason = "the four arguments of the primitive action and where it stands"
    )]
    fn hash_offset(
        &mut self,
        field: &'a p14::Expr,
        base: &'a p14::Expr,
        calculation: &'a p14::Expr,
        size: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let Some(reference) = self.target(field, scope) else { return };
        let Some(name) = self.object(calculation, scope, "field list calculation") else { return };
        let Some(calculation) = self.calculation(name) else { return };
        let (base, size) = (self.value(base, scope, 0), self.value(size, scope, 0));
        if matches!(&size, Value::Const { value, .. } if *value <= BigInt::ZERO) {
            self.error(codes::BAD_SIZE, size.span(), "the size of the range must be greater than 0");
            return;
        }
        let width = reference.field.width.max(base.width()).max(size.width()).max(32);
        let ty = Number::unsigned(width);
        let (base, size) = (self.convert(base, ty), self.convert(size, ty));
        let data = self.data(calculation, &[], span, out);
        if data.payload {
            self.error(codes::FIELD_LIST, span, "v1model hashes headers and metadata, not the payload");
        }
        let algorithm = self.algorithm(calculation);
        let output = self.output_width(calculation);
        let hashed = |t: &mut Self, into: Expr, base: Expr, data: Expr, size: Expr| {
            let algorithm = t.tree.constant("HashAlgorithm", algorithm, span);
            t.tree.function("hash", vec![into, algorithm, base, data, size], span)
        };
        if output >= hash::natural_width(algorithm) {
            return self.result(&reference, ty, out, |t, into, out| {
                out.push(hashed(t, into, base, data.expr, size));
            });
        }
        // First the hash modulo two to the width, then the place in the range. The identity of 64 bits is their number.
        let wide = Number::unsigned(64);
        let zero = self.tree.number(&BigInt::ZERO, wide.width, false, span);
        let range = self.tree.number(&(BigInt::one() << output), wide.width, false, span);
        let name = self.names.fresh("tmp");
        let declared = self.tree.ty(wide.width, false, span);
        out.push(tree::variable(declared, &name, None, span));
        let into = self.tree.var(name.as_str(), span);
        out.push(hashed(self, into, zero, data.expr, range));
        let cut = self.tree.var(name.as_str(), span);
        let cut = self.tree.expr(Made::List(vec![cut]), span);
        self.result(&reference, ty, out, |t, into, out| {
            let algorithm = t.tree.constant("HashAlgorithm", "identity", span);
            out.push(t.tree.function("hash", vec![into, algorithm, base, cut, size], span));
        });
    }

    fn digest(
        &mut self,
        receiver: &'a p14::Expr,
        list: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let receiver = self.index(receiver, scope);
        let Some(list) = self.field_list(list, scope) else { return };
        let mut members = Members::default();
        let mut values = Vec::new();
        for item in self.items(list) {
            self.digest_item(&item, &mut members, &mut values);
        }
        let ty = match self.digests.get(list.name.as_str()) {
            Some(ty) => ty.clone(),
            None if self.muted > 0 => String::new(),
            None => {
                let ty = self.names.fresh(list.name.as_str());
                let mut fields = Vec::new();
                for (name, number) in &members.all {
                    let declared = self.tree.ty(number.width, number.signed, list.span);
                    fields.push(translate::member(declared, name, Vec::new(), list.span));
                }
                self.top.push(translate::structure(StructKind::Struct, &ty, fields, list.span));
                self.digests.insert(&list.name.text, ty.clone());
                ty
            }
        };
        let data = self.tree.expr(Made::List(values), span);
        let callee = self.tree.global("digest", span);
        let call = self.tree.call(callee, vec![tree::named_type(&ty, span)], vec![receiver, data], span);
        out.push(Stmt { kind: millrace_syntax::ast::StmtKind::Call(call), span });
    }

    fn digest_item(&mut self, item: &Item, members: &mut Members, values: &mut Vec<Expr>) {
        match item {
            Item::Field(reference) if reference.field.varies => {
                self.type_error(reference.span, "a field of varying length cannot be part of a digest");
            }
            Item::Field(reference) => {
                members.add(&reference.field.name, reference.number());
                values.push(self.read_expr(reference));
            }
            Item::Header(header) => {
                let Some(instance) = self.model.instances.get(&*header.instance) else { return };
                let fields: Vec<_> =
                    self.model.layout(instance).fields.iter().map(|f| f.name.clone()).collect();
                for field in fields {
                    if let Some(reference) = self.field_of(header.clone(), &field, header.span) {
                        self.digest_item(&Item::Field(reference), members, values);
                    }
                }
            }
            Item::Constant { value, width, span } => {
                members.add("constant", Number::unsigned(*width));
                values.push(self.tree.number(value, *width, false, *span));
            }
            Item::Payload(span) => {
                self.error(codes::FIELD_LIST, *span, "the payload cannot be part of a digest");
            }
        }
    }

    /// The number of the list that an argument names. Only metadata can be in it.
    fn kept(&mut self, list: Option<&'a p14::Expr>, scope: &Scope<'a, '_>, span: Span) -> Option<Expr> {
        let number = match list {
            None => 0,
            Some(e) => {
                let list = self.field_list(e, scope)?;
                for item in self.items(list) {
                    let wrong = match &item {
                        Item::Field(reference) if reference.header.kind == Kind::Header => {
                            Some(reference.span)
                        }
                        Item::Header(header) => Some(header.span),
                        Item::Payload(at) => Some(*at),
                        Item::Field(reference) if reference.is_standard() => {
                            let message = "the switch sets this field for every packet: it is not kept";
                            self.warn(reference.span, message);
                            None
                        }
                        _ => None,
                    };
                    if let Some(at) = wrong {
                        let message = "only metadata is kept for a copy of a packet, not headers";
                        let found = millrace_syntax::Diagnostic::error(codes::FIELD_LIST, at, message);
                        self.report(found.with_secondary(span, "kept here"));
                    }
                }
                self.lists.get(list.name.as_str()).copied().unwrap_or(0)
            }
        };
        Some(self.tree.number(&number.into(), 8, false, span))
    }

    /// `resubmit` and `recirculate`.
    fn again(&mut self, call: &'a p14::ActionCall, scope: &Scope<'a, '_>, out: &mut Vec<Stmt>) {
        let name = call.name.as_str();
        let wanted = if name == "resubmit" { Pipeline::Ingress } else { Pipeline::Egress };
        if self.pipeline != wanted && self.checks_pipeline {
            let message = format!("`{name}` is for {} only", wanted.block());
            self.error(codes::ARCHITECTURE, call.span, message);
            return;
        }
        let Some(list) = self.kept(call.args.first(), scope, call.span) else { return };
        let function = format!("{name}_preserving_field_list");
        out.push(self.tree.function(&function, vec![list], call.span));
    }

    fn clone_packet(
        &mut self,
        kind: &str,
        session: &'a p14::Expr,
        list: Option<&'a p14::Expr>,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let session = self.index(session, scope);
        let Some(list) = self.kept(list, scope, span) else { return };
        let kind = self.tree.constant("CloneType", kind, span);
        out.push(self.tree.function("clone_preserving_field_list", vec![kind, session, list], span));
    }
}

/// The members of the structure that a digest becomes. A list may name one field many times; its members are `x`, `x_1`, `x_2`.
#[derive(Default)]
struct Members {
    all: Vec<(String, Number)>,
    taken: HashSet<String>,
    /// The last number that was tried for a name.
    counts: HashMap<String, u32>,
}

impl Members {
    fn add(&mut self, name: &str, number: Number) {
        let mut unique = name.to_owned();
        while !self.taken.insert(unique.clone()) {
            let count = self.counts.entry(name.to_owned()).or_default();
            *count += 1;
            unique = format!("{name}_{count}");
        }
        self.all.push((unique, number));
    }
}
