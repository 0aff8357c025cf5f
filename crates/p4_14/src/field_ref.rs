//! Headers and fields that a program refers to.

use millrace_syntax::Span;
use millrace_syntax::ast::{Expr, ExprKind, Stmt, Text};
use millrace_syntax::p4_14::ast::{Index, Reference};

use crate::codes;
use crate::constant;
use crate::expr::Scope;
use crate::model::{self, Field, Kind};
use crate::translate::Translator;
use crate::tree;
use crate::value::{Number, Value};

/// Which element of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// It is no stack, or the whole stack is meant.
    All,
    At(u32),
    Next,
    Last,
}

/// A header or metadata instance.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// The instance's name.
    pub(crate) instance: Text,
    pub(crate) element: Element,
    pub(crate) kind: Kind,
    /// It is a stack as a whole.
    pub(crate) is_stack: bool,
    pub(crate) span: Span,
}

/// A field of an instance.
#[derive(Clone, Debug)]
pub(crate) struct FieldRef {
    pub(crate) header: Header,
    pub(crate) field: Field,
    /// Where it is kept, if that is not in the instance: a path and its width.
    stored: Option<(Vec<Text>, u32)>,
    pub(crate) span: Span,
}

impl FieldRef {
    pub(crate) fn number(&self) -> Number {
        Number { width: self.field.width, signed: self.field.signed }
    }

    /// Whether it belongs to the architecture: the switch gives it, whatever the program keeps.
    pub(crate) fn is_standard(&self) -> bool {
        self.stored.is_some()
    }
}

impl<'a> Translator<'a> {
    /// The header that a reference means, its field left aside.
    pub(crate) fn header(&mut self, reference: &Reference, scope: &Scope<'a, '_>) -> Option<Header> {
        let span = reference.span;
        if reference.name.as_str() == "latest" {
            let latest = scope.latest().cloned();
            if latest.is_none() {
                let message =
                    "`latest` is the header extracted last in the same parser function, and there is none";
                self.error(codes::PARSER, reference.name.span, message);
            }
            return latest.map(|h| Header { span, ..h });
        }
        let Some(instance) = self.model.instances.get(reference.name.as_str()) else {
            let known = self.model.instances.keys().copied();
            if self.muted == 0 {
                model::unknown(&mut self.found, &reference.name, "header or metadata instance", known);
            }
            return None;
        };
        let (name, kind, size) = (instance.name.clone(), instance.kind, instance.size);
        let element = match (&reference.index, size) {
            (None, _) => Element::All,
            (Some(_), None) => {
                self.error(codes::WRONG_KIND, span, format!("`{name}` is no header stack"));
                return None;
            }
            (Some(Index::At(index)), Some(size)) => {
                if constant::evaluate(index).is_none() {
                    let message = "the index of a header stack is a constant, `next` or `last`";
                    self.error(codes::NOT_CONSTANT, index.span, message);
                    return None;
                }
                let mut found = std::mem::take(&mut self.found);
                let at = constant::number(index, 0, size - 1, &mut found);
                self.found = found;
                Element::At(at?)
            }
            (Some(Index::Next(at) | Index::Last(at)), Some(_)) if !scope.in_parser() => {
                let message = "`next` and `last` mean something in a parser only";
                self.error(codes::PARSER, *at, message);
                return None;
            }
            (Some(Index::Next(_)), Some(_)) => Element::Next,
            (Some(Index::Last(_)), Some(_)) => Element::Last,
        };
        let is_stack = size.is_some() && element == Element::All;
        Some(Header { instance: name, element, kind, is_stack, span })
    }

    /// The field that a reference means.
    pub(crate) fn field_ref(&mut self, reference: &Reference, scope: &Scope<'a, '_>) -> Option<FieldRef> {
        let header = self.header(reference, scope)?;
        let Some(field) = &reference.field else {
            let message = format!("a field is expected here, `{}` is a header", reference.name);
            self.error(codes::WRONG_KIND, reference.span, message);
            return None;
        };
        if header.is_stack {
            let message = format!("`{}` is a header stack: which of its headers?", reference.name);
            self.error(codes::WRONG_KIND, reference.span, message);
            return None;
        }
        self.field_of(header, field.as_str(), field.span)
    }

    /// A field of a header.
    pub(crate) fn field_of(&mut self, header: Header, field: &str, span: Span) -> Option<FieldRef> {
        let instance = self.model.instances.get(&*header.instance)?;
        let layout = self.model.layout(instance);
        let Some(found) = layout.field(field).cloned() else {
            let ty = instance.ty;
            if self.muted == 0 {
                let name = tree::name(field, span);
                let wanted = format!("field of `{ty}`");
                let mut none = millrace_syntax::Diagnostics::new();
                model::unknown(&mut none, &name, &wanted, layout.fields.iter().map(|f| &*f.name));
                self.found.extend(
                    none.into_iter().map(|d| millrace_syntax::Diagnostic { code: codes::UNKNOWN_FIELD, ..d }),
                );
            }
            return None;
        };
        let full = format!("{}.{field}", header.instance);
        let stored = match self.model.aliases.get(&full) {
            Some(alias) if header.kind != Kind::Header => {
                Some((vec![self.standard.clone(), alias.member.clone()], alias.width))
            }
            _ if header.kind == Kind::Standard => Some((self.hidden(&found.name, found.width), found.width)),
            _ => None,
        };
        let span = header.span;
        Some(FieldRef { header, field: found, stored, span })
    }

    /// `hdr.x`, `hdr.x[1]`, `hdr.x.next`, `meta.x`
    pub(crate) fn header_expr(&mut self, header: &Header) -> Expr {
        let span = header.span;
        let base = match header.kind {
            Kind::Header => self.headers.clone(),
            Kind::Metadata => self.meta.clone(),
            Kind::Standard => return self.tree.var(self.standard.clone(), span),
        };
        let e = self.tree.path(&[&base, &header.instance], span);
        match header.element {
            Element::All => e,
            Element::At(index) => {
                let index = self.tree.int(index, span);
                self.tree.expr(ExprKind::Index(Box::new(e), Box::new(index)), span)
            }
            Element::Next => self.tree.member(e, "next", span),
            Element::Last => self.tree.member(e, "last", span),
        }
    }

    fn field_expr(&mut self, reference: &FieldRef) -> (Expr, u32) {
        match &reference.stored {
            Some((path, width)) => {
                let path: Vec<&str> = path.iter().map(|p| &**p).collect();
                (self.tree.path(&path, reference.span), *width)
            }
            None => {
                let header = self.header_expr(&reference.header);
                (
                    self.tree.member(header, reference.field.name.clone(), reference.span),
                    reference.field.width,
                )
            }
        }
    }

    /// The field as it can be passed on to be written; none if its width is not that which the program declares.
    pub(crate) fn direct(&mut self, reference: &FieldRef) -> Option<Expr> {
        let (expr, width) = self.field_expr(reference);
        (width == reference.field.width).then_some(expr)
    }

    /// The field's value.
    pub(crate) fn read(&mut self, reference: &FieldRef) -> Value {
        let (expr, width) = self.field_expr(reference);
        if reference.field.varies {
            return Value::Varbit { expr };
        }
        let Number { width: declared, signed } = reference.number();
        let expr = self.cast(expr, Number { width, signed }, Number { width: declared, signed });
        Value::Num { expr, width: declared, signed }
    }

    /// The field's value as an expression.
    pub(crate) fn read_expr(&mut self, reference: &FieldRef) -> Expr {
        let (expr, width) = self.field_expr(reference);
        if reference.field.varies {
            return expr;
        }
        let signed = reference.field.signed;
        self.cast(expr, Number { width, signed }, reference.number())
    }

    /// Sets a field to an expression of its own type.
    pub(crate) fn write(&mut self, reference: &FieldRef, value: Expr, out: &mut Vec<Stmt>) {
        let (target, width) = self.field_expr(reference);
        let stored = Number { width, signed: reference.field.signed };
        let value = self.cast(value, reference.number(), stored);
        out.push(tree::assign(target, value, reference.span));
    }

    /// Sets a field to a value, converted as the field's type asks.
    pub(crate) fn set(&mut self, reference: &FieldRef, value: Value, out: &mut Vec<Stmt>) {
        if reference.field.varies {
            match value {
                Value::Varbit { expr } => {
                    let (target, _) = self.field_expr(reference);
                    out.push(tree::assign(target, expr, reference.span));
                }
                Value::Error(_) => {}
                other => self.type_error(other.span(), "a field of varying length is copied as a whole"),
            }
            return;
        }
        let value = if reference.field.saturating {
            self.saturate(value, reference.number(), out)
        } else {
            self.convert(value, reference.number())
        };
        self.write(reference, value, out);
    }
}
