//! Primitive actions on headers and fields (specification section 9.1), and those that programs use besides.
//!
//! A result is computed so wide that nothing is lost, then cut or saturated to the field that it goes to.

use millrace_syntax::Span;
use millrace_syntax::ast::{BinaryOp, Expr, ExprKind as Made, Stmt, UnaryOp};
use millrace_syntax::p4_14::ast as p14;

use crate::codes;
use crate::expr::Scope;
use crate::field_ref::{Element, FieldRef, Header};
use crate::model::{self, Kind};
use crate::translate::Translator;
use crate::tree;
use crate::value::{Number, Value};

/// The primitive actions that can stand in a table's list.
pub(crate) const WITHOUT_ARGUMENTS: [&str; 2] = ["drop", "no_op"];

/// All primitive actions.
pub(crate) const PRIMITIVES: [&str; 51] = [
    "add",
    "add_header",
    "add_to_field",
    "bit_and",
    "bit_andca",
    "bit_andcb",
    "bit_nand",
    "bit_nor",
    "bit_not",
    "bit_or",
    "bit_orca",
    "bit_orcb",
    "bit_xnor",
    "bit_xor",
    "clone_e2e",
    "clone_e2i",
    "clone_egress_pkt_to_egress",
    "clone_egress_pkt_to_ingress",
    "clone_i2e",
    "clone_i2i",
    "clone_ingress_pkt_to_egress",
    "clone_ingress_pkt_to_ingress",
    "copy_header",
    "count",
    "drop",
    "execute_meter",
    "generate_digest",
    "mark_for_drop",
    "max",
    "min",
    "modify_field",
    "modify_field_conditionally",
    "modify_field_rng_uniform",
    "modify_field_with_hash_based_offset",
    "modify_field_with_shift",
    "no_op",
    "pop",
    "push",
    "recirculate",
    "register_read",
    "register_write",
    "remove_header",
    "resubmit",
    "shift_left",
    "shift_right",
    "subtract",
    "subtract_from_field",
    "truncate",
    "bypass_egress",
    "exit",
    "invalidate",
];

/// An operand: an argument, or the field that is changed.
#[derive(Clone, Copy)]
enum Operand<'a, 's, 'p> {
    Given(&'a p14::Expr, &'s Scope<'a, 's>),
    Field(&'p FieldRef),
}

/// How two operands are combined.
#[derive(Clone, Copy)]
struct Combine {
    op: BinaryOp,
    /// `~` of the first, the second, the result.
    inverted: (bool, bool, bool),
}

const fn plain(op: BinaryOp) -> Combine {
    Combine { op, inverted: (false, false, false) }
}

/// The primitive actions `f(field, a, b)`.
fn combination(name: &str) -> Option<Combine> {
    use BinaryOp::*;
    let of = |op, a, b, result| Some(Combine { op, inverted: (a, b, result) });
    match name {
        "add" | "add_to_field" => of(Add, false, false, false),
        "subtract" | "subtract_from_field" => of(Sub, false, false, false),
        "bit_and" => of(BitAnd, false, false, false),
        "bit_or" => of(BitOr, false, false, false),
        "bit_xor" => of(BitXor, false, false, false),
        "bit_nand" => of(BitAnd, false, false, true),
        "bit_nor" => of(BitOr, false, false, true),
        "bit_xnor" => of(BitXor, false, false, true),
        "bit_andca" => of(BitAnd, true, false, false),
        "bit_andcb" => of(BitAnd, false, true, false),
        "bit_orca" => of(BitOr, true, false, false),
        "bit_orcb" => of(BitOr, false, true, false),
        "shift_left" => of(Shl, false, false, false),
        "shift_right" => of(Shr, false, false, false),
        _ => None,
    }
}

impl<'a> Translator<'a> {
    /// A call of a primitive action.
    pub(crate) fn primitive(
        &mut self,
        call: &'a p14::ActionCall,
        scope: &Scope<'a, '_>,
        out: &mut Vec<Stmt>,
    ) {
        let span = call.span;
        match (call.name.as_str(), call.args.as_slice()) {
            ("no_op" | "drop" | "mark_for_drop", []) => self.simple_primitive(call, out),
            ("add_header", [header]) => self.on_header("setValid", header, scope, span, out),
            ("remove_header", [header]) => self.on_header("setInvalid", header, scope, span, out),
            ("copy_header", [to, from]) => self.copy_header(to, from, scope, span, out),
            ("push" | "pop", [stack, count @ ..]) if count.len() < 2 => {
                self.shift_stack(call.name.as_str() == "push", stack, count.first(), scope, span, out);
            }
            ("modify_field", [to, value]) => {
                let Some(reference) = self.target(to, scope) else { return };
                let value = self.value(value, scope, reference.field.width);
                self.set(&reference, value, out);
            }
            ("modify_field", [to, value, mask]) => {
                let Some(reference) = self.target(to, scope) else { return };
                let value = self.value(value, scope, reference.field.width);
                self.masked(&reference, value, mask, scope, span, out);
            }
            ("modify_field_with_shift", [to, value, shift, mask]) => {
                let Some(reference) = self.target(to, scope) else { return };
                let shifted = plain(BinaryOp::Shr);
                let (a, b) = (Operand::Given(value, scope), Operand::Given(shift, scope));
                let Some(value) = self.combined(&reference, shifted, a, b, span) else { return };
                self.masked(&reference, value, mask, scope, span, out);
            }
            ("modify_field_conditionally", [to, condition, value]) => {
                let Some(reference) = self.target(to, scope) else { return };
                let condition = self.truth(condition, scope);
                let mut then = Vec::new();
                let value = self.value(value, scope, reference.field.width);
                self.set(&reference, value, &mut then);
                out.push(tree::if_stmt(condition, then, Vec::new(), span));
            }
            ("add_to_field" | "subtract_from_field", [to, value]) => {
                let Some(reference) = self.target(to, scope) else { return };
                let b = Operand::Given(value, scope);
                self.combine(call.name.as_str(), &reference, Operand::Field(&reference), b, span, out);
            }
            ("min" | "max", [to, a, b]) => {
                let Some(reference) = self.target(to, scope) else { return };
                self.extreme(call.name.as_str() == "max", &reference, [a, b], scope, span, out);
            }
            ("bit_not", [to, a]) => {
                let Some(reference) = self.target(to, scope) else { return };
                let value = self.value(a, scope, reference.field.width);
                let value = self.convert(value, reference.number());
                let value = self.tree.unary(UnaryOp::Complement, value);
                self.write(&reference, value, out);
            }
            (name, [to, a, b]) if combination(name).is_some() && !name.ends_with("_field") => {
                let Some(reference) = self.target(to, scope) else { return };
                self.combine(name, &reference, Operand::Given(a, scope), Operand::Given(b, scope), span, out);
            }
            _ => self.stateful(call, scope, out),
        }
    }

    /// `drop()`, `no_op()`
    pub(crate) fn simple_primitive(&mut self, call: &p14::ActionCall, out: &mut Vec<Stmt>) {
        if call.name.as_str() != "no_op" {
            let standard = self.tree.var(self.standard.clone(), call.span);
            out.push(self.tree.function("mark_to_drop", vec![standard], call.span));
        }
    }

    /// Reports a call that fits no primitive action.
    pub(crate) fn no_primitive(&mut self, call: &p14::ActionCall) {
        let name = call.name.as_str();
        if PRIMITIVES.contains(&name) {
            let message = format!("`{name}` does not take {} arguments", call.args.len());
            self.error(codes::ARGUMENTS, call.span, message);
        } else if self.muted == 0 {
            let known = self.model.actions.keys().copied().chain(PRIMITIVES);
            model::unknown(&mut self.found, &call.name, "action", known);
        }
    }

    /// The field that an argument names, to be written.
    pub(crate) fn target(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> Option<FieldRef> {
        let (e, scope) = self.resolve(e, scope);
        match &e.kind {
            p14::ExprKind::Reference(reference) => {
                if let (Scope::Action(params), Some(name)) = (scope, reference.plain())
                    && params.contains_key(name.as_str())
                {
                    self.type_error(
                        e.span,
                        "a field is expected here; data of a table entry cannot be written",
                    );
                    return None;
                }
                self.field_ref(reference, scope)
            }
            _ => {
                self.type_error(e.span, "a field is expected here");
                None
            }
        }
    }

    /// The packet header that an argument names.
    fn header_argument(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> Option<Header> {
        let (e, scope) = self.resolve(e, scope);
        let p14::ExprKind::Reference(reference) = &e.kind else {
            self.type_error(e.span, "a header is expected here");
            return None;
        };
        let header = self.header(reference, scope)?;
        if reference.field.is_some() || header.kind != Kind::Header {
            self.type_error(e.span, "a header of the packet is expected here");
            return None;
        }
        Some(header)
    }

    /// `hdr.x.setValid();`
    fn on_header(
        &mut self,
        method: &str,
        header: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let Some(header) = self.header_argument(header, scope) else { return };
        for header in self.elements(&header) {
            let object = self.header_expr(&header);
            out.push(self.tree.method(object, method, Vec::new(), span));
        }
    }

    /// A header, or those of a whole stack.
    fn elements(&self, header: &Header) -> Vec<Header> {
        let size = self.model.instances.get(&*header.instance).and_then(|i| i.size);
        match size {
            Some(size) if header.is_stack => (0..size)
                .map(|i| Header { element: Element::At(i), is_stack: false, ..header.clone() })
                .collect(),
            _ => vec![header.clone()],
        }
    }

    fn copy_header(
        &mut self,
        to: &'a p14::Expr,
        from: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let (to, from) = (self.header_argument(to, scope), self.header_argument(from, scope));
        let (Some(to), Some(from)) = (to, from) else { return };
        let ty = |h: &Header| {
            self.model.instances.get(&*h.instance).map(|i| (i.ty, h.is_stack, i.size.filter(|_| h.is_stack)))
        };
        if ty(&to) != ty(&from) {
            let message = format!("`{}` and `{}` are of different types", to.instance, from.instance);
            self.type_error(span, &message);
            return;
        }
        let (target, value) = (self.header_expr(&to), self.header_expr(&from));
        out.push(tree::assign(target, value, span));
    }

    /// `push` and `pop`: P4_16's leave the new headers invalid, P4_14's are valid.
    fn shift_stack(
        &mut self,
        push: bool,
        stack: &'a p14::Expr,
        count: Option<&'a p14::Expr>,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let Some(stack) = self.header_argument(stack, scope) else { return };
        if !stack.is_stack {
            let message = format!("`{}` is no header stack", stack.instance);
            self.type_error(stack.span, &message);
            return;
        }
        // Before 1.0.3 the count could be left out.
        let count = match count {
            None => Some(1),
            Some(count) => {
                let (count, _) = self.resolve(count, scope);
                self.bounded(count, 0, u32::MAX / 2)
            }
        };
        let Some(count) = count else { return };
        let size = self.model.instances.get(&*stack.instance).and_then(|i| i.size).unwrap_or(0);
        let object = self.header_expr(&stack);
        let number = self.tree.int(count.min(size), span);
        let method = if push { "push_front" } else { "pop_front" };
        out.push(self.tree.method(object, method, vec![number], span));
        if push {
            for header in self.elements(&stack).into_iter().take(count as usize) {
                let object = self.header_expr(&header);
                out.push(self.tree.method(object, "setValid", Vec::new(), span));
            }
        }
    }

    /// `(field & ~mask) | (value & mask)`
    fn masked(
        &mut self,
        reference: &FieldRef,
        value: Value,
        mask: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let ty = Number::unsigned(reference.field.width);
        let now = self.read(reference);
        if reference.field.varies {
            self.type_error(reference.span, "a field of varying length cannot be masked");
            return;
        }
        let now = self.convert(now, ty);
        let masks = [self.value(mask, scope, ty.width), self.value(mask, scope, ty.width)];
        let [keep, change] = masks.map(|mask| self.convert(mask, ty));
        let value = self.convert(value, ty);
        let keep = self.tree.unary(UnaryOp::Complement, keep);
        let kept = self.tree.binary(BinaryOp::BitAnd, now, keep, span);
        let changed = self.tree.binary(BinaryOp::BitAnd, value, change, span);
        let value = self.tree.binary(BinaryOp::BitOr, kept, changed, span);
        let value = self.cast(value, ty, reference.number());
        self.write(reference, value, out);
    }

    /// An argument as a condition: a number counts as true when it is not 0.
    fn truth(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> Expr {
        match self.value(e, scope, 0) {
            Value::Bool(condition) => condition,
            value => {
                let ty = Number { width: value.width().max(1), signed: value.signed().unwrap_or(false) };
                let span = value.span();
                let value = self.convert(value, ty);
                let zero = self.tree.number(&0.into(), ty.width, ty.signed, span);
                self.tree.binary(BinaryOp::Ne, value, zero, span)
            }
        }
    }

    fn operand(&mut self, operand: Operand<'a, '_, '_>, least: u32) -> Value {
        match operand {
            Operand::Given(e, scope) => self.value(e, scope, least),
            Operand::Field(reference) => self.read(reference),
        }
    }

    /// `field = a op b`
    fn combine(
        &mut self,
        name: &str,
        reference: &FieldRef,
        a: Operand<'a, '_, '_>,
        b: Operand<'a, '_, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let Some(combine) = combination(name) else { return };
        if reference.field.varies {
            self.type_error(reference.span, "a field of varying length cannot be computed with");
            return;
        }
        if reference.field.saturating && matches!(combine.op, BinaryOp::Add | BinaryOp::Sub) {
            return self.saturating_sum(combine.op, reference, a, b, span, out);
        }
        if let Some(value) = self.combined(reference, combine, a, b, span) {
            self.set(reference, value, out);
        }
    }

    /// The combination, so wide that what the field takes of it is right.
    fn combined(
        &mut self,
        reference: &FieldRef,
        combine: Combine,
        a: Operand<'a, '_, '_>,
        b: Operand<'a, '_, '_>,
        span: Span,
    ) -> Option<Value> {
        let field = reference.number();
        let first = self.operand(a, field.width);
        let shift = matches!(combine.op, BinaryOp::Shl | BinaryOp::Shr);
        let ty = match combine.op {
            // Bits come down from above the field, and the sign with them.
            BinaryOp::Shr => Number {
                width: field.width.max(first.width()),
                signed: first.signed().unwrap_or(field.signed),
            },
            _ => field,
        };
        let mut left = self.convert(first, ty);
        let mut right = match b {
            Operand::Given(e, scope) if shift => {
                let (e, scope) = self.resolve(e, scope);
                self.shift_amount(e, scope, ty.width)?
            }
            b => {
                let value = self.operand(b, field.width);
                self.convert(value, ty)
            }
        };
        let (invert_a, invert_b, invert) = combine.inverted;
        if invert_a {
            left = self.tree.unary(UnaryOp::Complement, left);
        }
        if invert_b {
            right = self.tree.unary(UnaryOp::Complement, right);
        }
        let mut expr = self.tree.binary(combine.op, left, right, span);
        if invert {
            expr = self.tree.unary(UnaryOp::Complement, expr);
        }
        Some(Value::Num { expr, width: ty.width, signed: ty.signed })
    }

    /// A sum or difference that ends at the ends of the field's range.
    fn saturating_sum(
        &mut self,
        op: BinaryOp,
        reference: &FieldRef,
        a: Operand<'a, '_, '_>,
        b: Operand<'a, '_, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let field = reference.number();
        let (a, b) = (self.operand(a, field.width), self.operand(b, field.width));
        let width = field.width.max(a.width()).max(b.width()) + 2;
        let wide = Number { width, signed: true };
        // A parameter whose type is looked for has that of the field.
        let mut widened = |value| match value {
            value @ Value::Param { .. } => {
                self.convert(value, field);
                self.tree.number(&0.into(), width, true, span)
            }
            value => self.convert(value, wide),
        };
        let (a, b) = (widened(a), widened(b));
        let sum = self.tree.binary(op, a, b, span);
        let temporary = self.temporary(sum, wide, out);
        let value = self.clamp(&temporary, wide, field, span);
        self.write(reference, value, out);
    }

    /// `min` and `max`.
    fn extreme(
        &mut self,
        greatest: bool,
        reference: &FieldRef,
        operands: [&'a p14::Expr; 2],
        scope: &Scope<'a, '_>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let field = reference.number();
        let values = operands.map(|e| self.value(e, scope, field.width));
        let width = values.iter().map(Value::width).max().unwrap_or(0).max(field.width) + 1;
        let wide = Number { width, signed: true };
        let [a, b] = values.map(|value| {
            let expr = match value {
                value @ Value::Param { .. } => {
                    self.convert(value, field);
                    self.tree.number(&0.into(), width, true, span)
                }
                value => self.convert(value, wide),
            };
            self.temporary(expr, wide, out)
        });
        let (left, right) = (self.tree.var(a.as_str(), span), self.tree.var(b.as_str(), span));
        let op = if greatest { BinaryOp::Ge } else { BinaryOp::Le };
        let condition = self.tree.binary(op, left, right, span);
        let (then, otherwise) = (self.tree.var(a.as_str(), span), self.tree.var(b.as_str(), span));
        let kind = Made::Conditional {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        let expr = self.tree.expr(kind, span);
        self.set(reference, Value::Num { expr, width, signed: true }, out);
    }
}
