//! The way through a program: one declaration of the top level after the other.

use crate::codes;
use crate::context::Here;
use crate::declarations::Declarations;
use crate::hir::{self, Program, Ty, TyKind};
use crate::limits::{MAX_LITERAL_NODES, MAX_TYPE_NODES};
use crate::scope::{Entity, Scopes};
use crate::types::Inference;
use crate::wording::included_by;
use millrace_syntax::ast::{self, Declaration, Name};
use millrace_syntax::{Diagnostic, Diagnostics, Span, nearest};
use std::collections::{HashMap, HashSet};

/// A checked program.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What the program says; usable only when no finding is an error.
    pub program: Program,
    /// What was found, in order.
    pub diagnostics: Diagnostics,
}

/// Checks a program: resolves its names, types its expressions, folds its constants. Never panics and never stops early;
/// a tree damaged by syntax errors gives findings about its sound parts.
pub fn check(program: &ast::Program) -> Checked {
    let mut checker = Checker::default();
    checker.collect_errors_and_match_kinds(program);
    let names = program.declarations.iter().filter_map(Declaration::name);
    checker.declared_names = names.map(|n| (n.to_string(), n.span)).collect();
    for declaration in &program.declarations {
        checker.scopes.advance();
        checker.top_level(declaration);
    }
    checker.finish();
    Checked { program: checker.hir, diagnostics: checker.diagnostics }
}

/// What is known while a program is read.
#[derive(Default)]
pub(crate) struct Checker<'a> {
    /// The typed program so far.
    pub(crate) hir: Program,
    /// What was found so far.
    pub(crate) diagnostics: Diagnostics,
    /// Which names are visible.
    pub(crate) scopes: Scopes,
    /// The syntax behind the declarations.
    pub(crate) decls: Declarations<'a>,
    /// Type variables.
    pub(crate) infer: Inference,
    /// Where in the program this is.
    pub(crate) here: Here,
    /// The number of types that each type is made of; those not here are single.
    pub(crate) weights: HashMap<Ty, usize>,
    copied: usize,
    /// Every name of the top level, for those that are used before they are declared.
    declared_names: HashMap<String, Span>,
    /// The name and place of the declaration of the top level at hand.
    declared_name: Option<String>,
    declaration: Span,
    reported: HashSet<(&'static str, Span)>,
}

impl<'a> Checker<'a> {
    /// Adds a finding, unless the same was found at the same place before (in another use of a generic declaration).
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        if self.reported.insert((diagnostic.code, diagnostic.primary)) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds an error.
    pub(crate) fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::warning(code, span, message));
    }

    /// Declares a name in the innermost scope, or says that it is taken.
    pub(crate) fn declare(&mut self, name: &Name, entity: Entity) {
        if let Err(earlier) = self.scopes.declare(&name.text, entity, name.span) {
            self.duplicate(name, earlier);
        }
    }

    /// Says that a name is taken.
    pub(crate) fn duplicate(&mut self, name: &Name, earlier: Span) {
        self.report(
            Diagnostic::error(
                codes::DUPLICATE,
                name.span,
                format!("`{name}` is declared twice in this scope"),
            )
            .with_label("declared again here")
            .with_secondary(earlier, "first declared here"),
        );
    }

    /// Says that nothing of this name is visible, with the nearest name that is.
    pub(crate) fn unknown_name(&mut self, name: &Name, wanted: &str) {
        if self.declared_name.as_deref() == Some(name.as_str()) {
            let found = Diagnostic::error(
                codes::RECURSION,
                name.span,
                format!("`{name}` is used in its own declaration"),
            );
            return self.report(
                found.with_label("not complete yet").with_secondary(self.declaration, "being declared here"),
            );
        }
        let mut found = Diagnostic::error(
            codes::UNKNOWN_NAME,
            name.span,
            format!("no {wanted} named `{name}` is visible here"),
        )
        .with_label("not found");
        if let Some(&later) = self.declared_names.get(name.as_str()) {
            found = found
                .with_secondary(later, "declared only here")
                .with_help("move the declaration up: it must stand before its uses");
        } else if let Some(file) = included_by(name.as_str()) {
            found = found.with_help(format!("{file} declares it: `#include <{file}>`"));
        } else if let Some(near) = nearest(name.as_str(), self.scopes.visible_names()) {
            found = found.with_help(format!("`{near}` has a similar name"));
        }
        self.report(found);
    }

    /// Errors and match kinds extend one type each, from wherever they stand.
    fn collect_errors_and_match_kinds(&mut self, program: &'a ast::Program) {
        for declaration in &program.declarations {
            let (names, is_error) = match declaration {
                Declaration::Errors(list) => (&list.names, true),
                Declaration::MatchKinds(list) => (&list.names, false),
                _ => continue,
            };
            for name in names {
                let (all, spans) = if is_error {
                    (&mut self.hir.errors, &mut self.decls.error_spans)
                } else {
                    (&mut self.hir.match_kinds, &mut self.decls.match_kind_spans)
                };
                if let Some(earlier) = all.iter().position(|n| n == name.as_str()) {
                    let earlier = spans[earlier];
                    self.duplicate(name, earlier);
                    continue;
                }
                all.push(name.to_string());
                spans.push(name.span);
            }
        }
    }

    fn top_level(&mut self, declaration: &'a Declaration) {
        self.declared_name = declaration.name().map(Name::to_string);
        self.declaration = declaration.name().map_or(declaration.span(), |n| n.span);
        self.check_annotations(declaration.annotations());
        match declaration {
            Declaration::Constant(d) => self.global_constant(d),
            Declaration::ExternObject(d) => self.extern_object(d),
            Declaration::ExternFunction(d) => self.extern_function(d),
            Declaration::Function(d) => self.function(d),
            Declaration::Action(d) => self.global_action(d),
            Declaration::ParserType(d) => self.block_type(d, true),
            Declaration::ControlType(d) => self.block_type(d, false),
            Declaration::Parser(d) => self.parser(d),
            Declaration::Control(d) => self.control(d),
            Declaration::Package(d) => self.package(d),
            Declaration::Struct(d) => self.structure(d),
            Declaration::Enum(d) => self.enumeration(d),
            Declaration::Typedef(d) => self.typedef(d),
            Declaration::Instantiation(d) => self.global_instance(d),
            Declaration::MatchKinds(list) => {
                for name in &list.names {
                    if let Some(index) = self.hir.match_kinds.iter().position(|n| n == name.as_str()) {
                        self.declare(name, Entity::MatchKind(index));
                    }
                }
            }
            Declaration::Errors(_) => {}
            Declaration::Variable(d) => {
                self.error(
                    codes::STATEMENT_NOT_ALLOWED,
                    d.span,
                    "variables cannot be declared at the top level; declare a `const`",
                );
            }
            Declaration::Table(_) | Declaration::ValueSet(_) => {
                let span = declaration.span();
                self.error(
                    codes::STATEMENT_NOT_ALLOWED,
                    span,
                    "this declaration cannot stand at the top level",
                );
            }
        }
    }

    fn global_constant(&mut self, d: &'a ast::Constant) {
        self.constant_declaration(d);
    }

    fn global_instance(&mut self, d: &'a ast::Instantiation) {
        if let Some(id) = self.instance_declaration(d) {
            self.hir.globals.push(id);
        }
    }

    /// What can be said only when all is read.
    fn finish(&mut self) {
        self.hir.main = None;
        for &id in &self.hir.globals {
            if self.hir.instances[id].name.as_deref() == Some("main") {
                self.hir.main = Some(id);
            }
        }
        if let Some(main) = self.hir.main {
            let instance = &self.hir.instances[main];
            let (ty, span) = (instance.ty, instance.span);
            if !matches!(self.kind(ty), TyKind::Package(..) | TyKind::Unknown) {
                let found = self.show(ty);
                self.error(codes::BAD_MAIN, span, format!("`main` must be a package, not `{found}`"));
            }
        } else if let Some((entity, span)) = self.scopes.lookup("main", true)
            && !matches!(entity, Entity::Function(_) | Entity::Broken)
        {
            self.error(codes::BAD_MAIN, span, "`main` must be an instance of a package");
        }
        self.check_control_plane_names();
        if !self.diagnostics.has_errors() {
            self.check_flow();
        }
    }

    /// The type with this shape; unknown, after an error, when it is too large.
    pub(crate) fn intern(&mut self, kind: TyKind) -> Ty {
        let weight = match &kind {
            TyKind::Tuple(parts)
            | TyKind::Extern(_, parts)
            | TyKind::Package(_, parts)
            | TyKind::BlockType(_, parts) => self.weight_of(parts.iter().copied()),
            TyKind::List(t) | TyKind::Stack(t, _) | TyKind::Set(t) | TyKind::ValueSet(t) => {
                self.weight_of([*t].into_iter())
            }
            _ => return self.hir.types.intern(kind),
        };
        if !self.check_weight(weight) {
            return self.unknown_ty();
        }
        let ty = self.hir.types.intern(kind);
        self.weights.insert(ty, weight);
        ty
    }

    /// The number of types that a type is made of, itself included.
    pub(crate) fn weight_of(&self, parts: impl Iterator<Item = Ty>) -> usize {
        parts.map(|t| self.weights.get(&t).copied().unwrap_or(1)).fold(1, usize::saturating_add)
    }

    /// Reports a type that is too large to work with.
    pub(crate) fn check_weight(&mut self, weight: usize) -> bool {
        if weight > MAX_TYPE_NODES {
            let message = format!("a type here is made of more than {MAX_TYPE_NODES} others");
            self.error(codes::TOO_LARGE, self.declaration, message);
        }
        weight <= MAX_TYPE_NODES
    }

    /// Counts the parts of a literal that is written out once more; reports when they are too many.
    pub(crate) fn check_copies(&mut self, literal: &hir::Expr, span: Span) -> bool {
        self.copied = self.copied.saturating_add(crate::fold::literal_nodes(literal));
        if self.copied > MAX_LITERAL_NODES {
            let message = format!("constants are used with more than {MAX_LITERAL_NODES} members altogether");
            self.error(codes::TOO_LARGE, span, message);
        }
        self.copied <= MAX_LITERAL_NODES
    }

    /// The type of what an error left.
    pub(crate) fn unknown_ty(&mut self) -> Ty {
        self.intern(TyKind::Unknown)
    }

    /// What an error leaves in place of an expression.
    pub(crate) fn unknown(&mut self, span: Span) -> hir::Expr {
        let ty = self.unknown_ty();
        hir::Expr { kind: hir::ExprKind::Unknown, ty, span }
    }

    /// Reports an error and leaves an unknown expression.
    pub(crate) fn fail(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> hir::Expr {
        self.error(code, span, message);
        self.unknown(span)
    }
}
