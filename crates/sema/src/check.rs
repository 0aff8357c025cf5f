//! The way through a program: one declaration of the top level after the other.

use crate::codes;
use crate::context::Here;
use crate::declarations::Declarations;
use crate::effort::Effort;
use crate::elaboration::Elaborated;
use crate::expr::Members;
use crate::hir::{self, Program, Ty, TyKind};
use crate::limits::{MAX_ERRORS, MAX_LITERAL_NODES, MAX_STEPS, MAX_TYPE_DEPTH, MAX_TYPE_NODES, STACK_BYTES};
use crate::repeated::Names;
use crate::scope::{Entity, Scopes};
use crate::types::Inference;
use crate::wording::included_by;
use foldhash::{HashMap, HashSet};
use millrace_syntax::ast::{self, Declaration, Name};
use millrace_syntax::{Diagnostic, Diagnostics, MAX_KEPT, MAX_NESTING, Span, nearest};

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
    if program.height <= MAX_NESTING {
        return check_here(program);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("check".into()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, || check_here(program)) {
            Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                let mut diagnostics = Diagnostics::new();
                let message = format!("no thread with {STACK_BYTES} bytes of stack: {error}");
                diagnostics.push(Diagnostic::error(codes::TOO_LARGE, Span::default(), message));
                Checked { program: Program::default(), diagnostics }
            }
        }
    })
}

fn check_here(program: &ast::Program) -> Checked {
    let mut checker = Checker::default();
    checker.collect_errors_and_match_kinds(program);
    let names = program.declarations.iter().filter_map(Declaration::name);
    checker.declared_names = names.map(|n| (n.to_string(), n.span)).collect();
    for declaration in &program.declarations {
        checker.scopes.advance();
        checker.top_level(declaration);
        if checker.effort.is_used_up() {
            checker.say_used_up();
            return Checked { program: checker.hir, diagnostics: checker.diagnostics };
        }
    }
    checker.finish();
    Checked { program: checker.hir, diagnostics: checker.diagnostics }
}

/// What to write for the name of a number type of other languages.
fn type_of_c(name: &str) -> Option<String> {
    let sized =
        [("uint", "bit"), ("int", "int"), ("u", "bit"), ("i", "int")].iter().find_map(|(prefix, p4)| {
            let bits = name.strip_prefix(prefix)?.trim_end_matches("_t");
            ["8", "16", "32", "64", "128"].contains(&bits).then(|| format!("`{p4}<{bits}>`"))
        });
    let p4 = match name {
        "char" | "byte" | "uchar" => "`bit<8>`".to_owned(),
        "short" | "ushort" => "`bit<16>`".to_owned(),
        "unsigned" | "uint" | "long" | "ulong" | "size_t" => "`bit<32>`".to_owned(),
        "boolean" | "_Bool" => "`bool`".to_owned(),
        "float" | "double" => return Some("P4 has no numbers with a fraction".to_owned()),
        _ => sized?,
    };
    Some(format!("P4 writes it {p4}"))
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
    /// The syntax of the declarations.
    pub(crate) decls: Declarations<'a>,
    /// Type variables.
    pub(crate) infer: Inference,
    /// Where in the program this is.
    pub(crate) here: Here,
    /// The number of types that each type is made of; those not here are single.
    pub(crate) weights: HashMap<Ty, usize>,
    copied: usize,
    /// The steps so far.
    pub(crate) effort: Effort,
    /// What instances of each parser and control consist of.
    pub(crate) elaborated: HashMap<Ty, Elaborated>,
    /// The same for the declarations at hand, so far.
    pub(crate) elaborating: Vec<Elaborated>,
    /// How deep types nest; those not here do not.
    depths: HashMap<Ty, usize>,
    /// The numbers of members by name, of types that have many.
    pub(crate) member_numbers: HashMap<Members, HashMap<String, usize>>,
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
        if self.effort.is_used_up() {
            // What follows from giving up says nothing about the program.
            return;
        }
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
        } else if let Some(later) = self.later_in_this_block(name) {
            found = found
                .with_secondary(later, "declared only here")
                .with_help("move the declaration up: it must stand before its uses");
        } else if let Some(help) = type_of_c(name.as_str()).filter(|_| wanted == "type") {
            found = found.with_help(help);
        } else if let Some(file) = included_by(name.as_str()) {
            found = found.with_help(format!("{file} declares it: `#include <{file}>`"));
        } else if self.is_shown()
            && let Some(near) = nearest(name.as_str(), self.scopes.visible_names())
        {
            found = found.with_help(format!("`{near}` has a similar name"));
        }
        self.report(found);
    }

    /// Says that the steps are used up.
    fn say_used_up(&mut self) {
        let message = format!("checking the program to here takes more than {MAX_STEPS} steps");
        self.diagnostics.push(Diagnostic::error(codes::TOO_LARGE, self.declaration, message));
    }

    /// Whether another error will be shown, so that it is worth while to look for a name that may have been meant.
    pub(crate) fn is_shown(&self) -> bool {
        self.diagnostics.error_count() < MAX_KEPT
    }

    /// Where the control being read declares a name later. Findings that are too many to be kept are not worth the search.
    fn later_in_this_block(&self, name: &Name) -> Option<Span> {
        if self.diagnostics.suppressed() > 0 {
            return None;
        }
        let control = self.decls.controls.get(self.decls.open_controls.last()?)?;
        let mut names = control.ast.locals.iter().filter_map(Declaration::name);
        names
            .find(|declared| declared.text == name.text && declared.span.start > name.span.start)
            .map(|n| n.span)
    }

    /// Errors and match kinds extend one type each, from wherever they stand.
    fn collect_errors_and_match_kinds(&mut self, program: &'a ast::Program) {
        let (mut errors, mut match_kinds) = (Names::default(), Names::default());
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
                let seen = if is_error { &mut errors } else { &mut match_kinds };
                if let Some(earlier) = seen.take(name.as_str(), name.span) {
                    self.duplicate(name, earlier);
                    continue;
                }
                if is_error && all.len() == MAX_ERRORS {
                    let message = format!("the type `error` has more than {MAX_ERRORS} members");
                    self.error(codes::TOO_LARGE, name.span, message);
                    return;
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
                    if let Some(index) = self.member_number(Members::MatchKinds, name.as_str()) {
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
        let one;
        let parts = match &kind {
            TyKind::Tuple(parts)
            | TyKind::Extern(_, parts)
            | TyKind::Package(_, parts)
            | TyKind::BlockType(_, parts) => parts.as_slice(),
            TyKind::List(t) | TyKind::Stack(t, _) | TyKind::Set(t) | TyKind::ValueSet(t) => {
                one = [*t];
                &one
            }
            TyKind::New(id) => {
                one = [self.hir.types.new_types[*id].base];
                &one
            }
            _ => return self.hir.types.intern(kind),
        };
        let (weight, depth) = (self.weight_of(parts.iter().copied()), self.depth_of(parts.iter().copied()));
        if !self.check_weight(weight) || !self.check_depth(depth) {
            return self.unknown_ty();
        }
        let ty = self.hir.types.intern(kind);
        self.note_size(ty, weight, depth);
        ty
    }

    /// The number of types that a type is made of, itself included.
    pub(crate) fn weight_of(&self, parts: impl Iterator<Item = Ty>) -> usize {
        parts.map(|t| self.weights.get(&t).copied().unwrap_or(1)).fold(1, usize::saturating_add)
    }

    /// How deep a type nests that has these parts.
    pub(crate) fn depth_of(&self, parts: impl Iterator<Item = Ty>) -> usize {
        parts.map(|t| self.depths.get(&t).copied().unwrap_or(0)).max().unwrap_or(0) + 1
    }

    /// Keeps the size of a type.
    pub(crate) fn note_size(&mut self, ty: Ty, weight: usize, depth: usize) {
        self.weights.insert(ty, weight);
        self.depths.insert(ty, depth);
    }

    /// Reports a type that nests too deep to walk over.
    pub(crate) fn check_depth(&mut self, depth: usize) -> bool {
        if depth > MAX_TYPE_DEPTH {
            let message = format!("types are nested more than {MAX_TYPE_DEPTH} deep here");
            self.error(codes::TOO_LARGE, self.declaration, message);
        }
        depth <= MAX_TYPE_DEPTH
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
