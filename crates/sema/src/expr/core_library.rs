//! What the specification says about the functions and methods of core.p4 beyond their declarations.

use crate::check::Checker;
use crate::codes;
use crate::hir::{Arg, Direction, Expr, ExprKind, StructKind, Ty, TyKind};
use millrace_syntax::ast::{self, Name};
use millrace_syntax::{Diagnostic, Span};

impl<'a> Checker<'a> {
    /// `static_assert` is decided here and now; `verify` belongs in parsers. Gives what stands in place of the call, if
    /// not the call itself.
    pub(super) fn core_function(
        &mut self,
        name: &str,
        declared: &'a ast::Function,
        args: &[Arg],
        span: Span,
    ) -> Option<Expr> {
        match name {
            "static_assert" if matches!(declared.return_type.kind, ast::TypeKind::Bool) => {
                let value = |i: usize| args.get(i).and_then(|a| a.value.as_ref());
                match value(0).map(|e| &e.kind) {
                    Some(ExprKind::Bool(true)) => {}
                    Some(ExprKind::Bool(false)) => {
                        let why = match value(1).map(|e| &e.kind) {
                            Some(ExprKind::String(text)) => format!(": {text}"),
                            _ => String::new(),
                        };
                        self.error(codes::STATIC_ASSERT, span, format!("static_assert failed{why}"));
                    }
                    _ => return None,
                }
                Some(self.typed(ExprKind::Bool(true), TyKind::Bool, span))
            }
            "verify" if is_core_verify(declared) && !self.here.context.in_parser() => {
                let message =
                    format!("`verify` can be called in parsers only, not {}", self.here.context.describe());
                Some(self.fail(codes::CALL_NOT_ALLOWED, span, message))
            }
            _ => None,
        }
    }

    /// The rules of `packet_in` and `packet_out`. False when one is broken.
    pub(super) fn core_method(
        &mut self,
        object: &str,
        method: &Name,
        types: &[Ty],
        args: &[Arg],
        span: Span,
    ) -> bool {
        match (object, method.as_str()) {
            ("packet_in", "extract") => self.check_extract(types, args, span),
            ("packet_in", "lookahead") => match types {
                [ty] => self.check_lookahead(*ty, span),
                _ => true,
            },
            ("packet_out", "emit") => match types {
                [ty] => self.check_emit(*ty, span),
                _ => true,
            },
            _ => true,
        }
    }

    fn check_extract(&mut self, types: &[Ty], args: &[Arg], span: Span) -> bool {
        let Some(&ty) = types.first() else { return true };
        let at = args.first().and_then(|a| a.value.as_ref()).map_or(span, |e| e.span);
        let is_header = match self.kind(ty) {
            TyKind::Struct(id) => self.hir.types.structs[id].kind == StructKind::Header,
            TyKind::Unknown | TyKind::Var(_) => return true,
            _ => false,
        };
        let shown = self.show(ty);
        if !is_header {
            let message = format!("`extract` fills a header, not `{shown}`");
            let mut found = Diagnostic::error(codes::ARCHITECTURE, at, message);
            if matches!(self.kind(ty), TyKind::Stack(..)) {
                found = found.with_help("`.next` of the stack is its next element");
            }
            self.report(found);
            return false;
        }
        let varbits = self.varbits(ty);
        let problem = match (args.len(), varbits) {
            (_, 2..) => "has more than one varbit member, whose sizes cannot be told apart",
            (1, 1..) => "has a varbit member: say how many bits it takes with a second argument",
            (2, 0) => "has no varbit member that the second argument could be the size of",
            _ => return true,
        };
        self.report(
            Diagnostic::error(codes::ARCHITECTURE, at, format!("`{shown}` {problem}"))
                .with_label("extracted here"),
        );
        false
    }

    fn check_lookahead(&mut self, ty: Ty, span: Span) -> bool {
        match self.size_in_bits(ty) {
            Ok((least, most)) if least == most => true,
            Err(crate::types::SizeError::Generic | crate::types::SizeError::Unknown) => true,
            _ => {
                let shown = self.show(ty);
                let message = format!("`lookahead` needs a type of fixed size, not `{shown}`");
                self.error(codes::ARCHITECTURE, span, message);
                false
            }
        }
    }

    fn check_emit(&mut self, ty: Ty, span: Span) -> bool {
        if self.can_be_emitted(ty) {
            return true;
        }
        let shown = self.show(ty);
        self.error(codes::ARCHITECTURE, span, format!("only headers can be emitted, not `{shown}`"));
        false
    }

    fn can_be_emitted(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Struct(id) => {
                let s = &self.hir.types.structs[id];
                s.kind != StructKind::Struct || s.fields.iter().all(|f| self.can_be_emitted(f.ty))
            }
            TyKind::Stack(element, _) => self.can_be_emitted(element),
            TyKind::Tuple(parts) => parts.into_iter().all(|t| self.can_be_emitted(t)),
            TyKind::Unknown | TyKind::Var(_) => true,
            _ => false,
        }
    }

    /// The number of varbit members of a header.
    pub(crate) fn varbits(&self, ty: Ty) -> usize {
        match self.kind(ty) {
            TyKind::Varbit(_) => 1,
            TyKind::Struct(id) => self.hir.types.structs[id].fields.iter().map(|f| self.varbits(f.ty)).sum(),
            _ => 0,
        }
    }
}

fn is_core_verify(declared: &ast::Function) -> bool {
    let directions = declared.params.iter().map(|p| super::arguments::direction(p.direction));
    declared.type_params.is_empty() && directions.eq([Direction::In, Direction::In])
}
