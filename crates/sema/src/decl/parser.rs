//! Parsers and their states.

use super::ParamOf;
use super::keyset::MatchedKey;
use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::declarations::{BlockAst, Source};
use crate::expr::article;
use crate::hir::{self, ExprKind, KeySet, StateRef, Transition, Ty, TyKind};
use crate::scope::TypeEntity;
use crate::wording::suggest;
use foldhash::HashMap;
use millrace_syntax::ast::{self, KeysetKind, Name};
use millrace_syntax::{Diagnostic, Span, nearest};

type States = HashMap<String, usize>;

impl<'a> Checker<'a> {
    /// `parser P(...)(...) { ... }`
    pub(crate) fn parser(&mut self, d: &'a ast::Parser) {
        self.block(BlockAst::Parser(d));
    }

    /// A parser whose type parameters, if any, are in scope.
    pub(super) fn new_parser(&mut self, d: &'a ast::Parser, declare: bool) -> Ty {
        let id = self.hir.parsers.push(hir::Parser {
            name: d.header.name.to_string(),
            params: Vec::new(),
            ctor_params: Vec::new(),
            locals: Vec::new(),
            states: Vec::new(),
            start: 0,
            annotations: d.header.annotations.clone().into(),
            span: d.header.name.span,
        });
        let ty = self.intern(TyKind::Parser(id));
        self.decls.parsers.insert(id, Source { ast: d, mark: self.scopes.mark() });
        if declare {
            self.declare_constructible(&d.header.name, TypeEntity::Known(ty));
        }
        self.begin_elaboration();
        self.decls.open_parsers.push(id);
        let outer = self.enter(CodeContext::ParserLocals);
        self.here.parser = Some(id);
        self.scopes.push();
        self.hir.parsers[id].params = self.declare_params(&d.header.params, ParamOf::Parser);
        self.hir.parsers[id].ctor_params =
            self.declare_params(&d.constructor_params, ParamOf::ParserConstructor);
        self.scopes.push();
        let mut locals = Vec::new();
        for local in &d.locals {
            self.local_declaration(local, &mut locals);
        }
        let numbers = self.number_states(d);
        self.here.context = CodeContext::ParserState;
        let mut states = Vec::with_capacity(d.states.len());
        for state in &d.states {
            let state = self.state(state, &numbers);
            states.push(state);
        }
        locals.append(&mut self.here.implied);
        self.scopes.pop();
        self.scopes.pop();
        self.here = outer;
        self.decls.open_parsers.pop();
        self.end_elaboration(ty, &locals);
        match numbers.get("start") {
            Some(&start) => {
                self.hir.parsers[id].start = start;
                self.check_endless(d, start, &states);
            }
            None => {
                let message = format!("the parser `{}` has no state `start`", d.header.name);
                let found = Diagnostic::error(codes::NO_START, d.header.name.span, message);
                self.report(match nearest("start", d.states.iter().map(|s| s.name.as_str())) {
                    Some(near) => found.with_help(format!("`{near}` has a similar name")),
                    None => found.with_help("a parser begins in its state `start`"),
                });
            }
        }
        let parser = &mut self.hir.parsers[id];
        (parser.locals, parser.states) = (locals, states);
        ty
    }

    fn number_states(&mut self, d: &'a ast::Parser) -> States {
        let mut numbers = States::default();
        let locals = d.locals.iter().filter_map(|l| l.name()).map(|n| (n.as_str(), n.span));
        let locals: HashMap<&str, Span> = locals.collect();
        for (i, state) in d.states.iter().enumerate() {
            let name = state.name.as_str();
            if matches!(name, "accept" | "reject") {
                let message = format!("the state `{name}` is built in and cannot be defined");
                self.error(codes::RESERVED_STATE, state.name.span, message);
            }
            if let Some(&earlier) = numbers.get(name) {
                let earlier = d.states[earlier].name.span;
                self.duplicate(&state.name, earlier);
                continue;
            }
            if let Some(local) = locals.get(name) {
                self.duplicate(&state.name, *local);
            }
            numbers.insert(name.to_string(), i);
        }
        numbers
    }

    fn state(&mut self, state: &'a ast::ParserState, numbers: &States) -> hir::ParserState {
        self.check_annotations(&state.annotations);
        self.scopes.push();
        let body = self.statements(&state.statements);
        let transition = match &state.transition {
            None => {
                let found = Diagnostic::warning(
                    codes::IMPLIED,
                    state.name.span,
                    format!("the state `{}` has no transition, so it goes to `reject`", state.name),
                );
                self.report(found.with_help("write `transition reject;` if that is meant"));
                Transition::Goto(StateRef::Reject)
            }
            Some(ast::Transition::To(name)) => Transition::Goto(self.target(name, numbers)),
            Some(ast::Transition::Select(select)) => self.select(select, numbers),
        };
        self.scopes.pop();
        hir::ParserState {
            name: state.name.to_string(),
            body,
            transition,
            annotations: state.annotations.clone().into(),
            span: state.name.span,
        }
    }

    fn target(&mut self, name: &'a Name, numbers: &States) -> StateRef {
        match (name.as_str(), numbers.get(name.as_str())) {
            ("accept", _) => StateRef::Accept,
            ("reject", _) => StateRef::Reject,
            (_, Some(&index)) => StateRef::State(index),
            (text, None) => {
                let mut known: Vec<&str> = numbers.keys().map(String::as_str).collect();
                known.sort_unstable();
                known.extend(["accept", "reject"]);
                let mut found = Diagnostic::error(
                    codes::UNKNOWN_STATE,
                    name.span,
                    format!("this parser has no state `{name}`"),
                );
                if let Some((other, declared)) = self.scopes.lookup(text, false) {
                    found = found.with_secondary(declared, format!("this is {}", article(other.noun())));
                }
                self.report(suggest(found, text, known.into_iter(), "its states"));
                StateRef::Reject
            }
        }
    }

    fn select(&mut self, select: &'a ast::Select, numbers: &States) -> Transition {
        let mut keys = Vec::with_capacity(select.subjects.len());
        for subject in &select.subjects {
            let key = self.check_expr(subject, None);
            if !self.is_selectable(key.ty) {
                let shown = self.show(key.ty);
                let message = format!("a parser cannot select on a `{shown}`");
                self.error(codes::BAD_KEYSET, key.span, message);
                let ty = self.unknown_ty();
                keys.push(hir::Expr { kind: ExprKind::Unknown, ty, span: key.span });
                continue;
            }
            keys.push(key);
        }
        // A lone tuple matched against `(a, b)` is matched member by member.
        let by_member = select.cases.iter().any(|c| matches!(c.keyset.kind, KeysetKind::Tuple(_)));
        if let [key] = keys.as_slice()
            && by_member
            && let Some(members) = self.members_of(key)
        {
            keys = members;
        }
        let matched: Vec<MatchedKey> = keys.iter().map(|k| (k.ty, k.span)).collect();
        let mut cases = Vec::with_capacity(select.cases.len());
        let mut all_matched = None;
        for case in &select.cases {
            if let Some(earlier) = all_matched {
                let message = "this case is never reached: one before it matches all";
                self.report(
                    Diagnostic::warning(codes::UNREACHABLE, case.span, message)
                        .with_secondary(earlier, "this one matches all"),
                );
            }
            let target = self.target(&case.state, numbers);
            let Some(keysets) = self.keysets(&case.keyset, &matched, false) else { continue };
            if all_matched.is_none() && keysets.iter().all(|k| matches!(k, KeySet::Any)) {
                all_matched = Some(case.span);
            }
            cases.push(hir::SelectCase { keysets, target, span: case.span });
        }
        Transition::Select { keys, cases, span: select.span }
    }

    /// Whether a parser can select on values of a type.
    fn is_selectable(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Bits(_)
            | TyKind::SignedBits(_)
            | TyKind::Bool
            | TyKind::Enum(_)
            | TyKind::Error
            | TyKind::Unknown
            | TyKind::Var(_) => true,
            TyKind::New(id) => self.is_selectable(self.hir.types.new_types[id].base),
            TyKind::Tuple(parts) => parts.into_iter().all(|t| self.is_selectable(t)),
            _ => false,
        }
    }

    /// The members of a tuple or struct as expressions.
    pub(crate) fn members_of(&mut self, e: &hir::Expr) -> Option<Vec<hir::Expr>> {
        let types: Vec<Ty> = match self.kind(e.ty) {
            TyKind::Tuple(parts) => parts,
            TyKind::Struct(id) => self.hir.types.structs[id].fields.iter().map(|f| f.ty).collect(),
            _ => return None,
        };
        if let ExprKind::Aggregate(members) = &e.kind {
            return Some(members.clone());
        }
        let member = |(i, ty)| hir::Expr { kind: ExprKind::Field(Box::new(e.clone()), i), ty, span: e.span };
        Some(types.into_iter().enumerate().map(member).collect())
    }

    /// Reports a parser that can neither accept nor reject.
    fn check_endless(&mut self, d: &'a ast::Parser, start: usize, states: &[hir::ParserState]) {
        let mut seen = vec![false; states.len()];
        let mut open = vec![start];
        let mut rejects = false;
        while let Some(index) = open.pop() {
            let Some(state) = states.get(index) else { return };
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let targets: Vec<StateRef> = match &state.transition {
                Transition::Goto(target) => vec![*target],
                Transition::Select { cases, .. } => {
                    let all = |c: &hir::SelectCase| c.keysets.iter().all(|k| matches!(k, KeySet::Any));
                    if !cases.iter().any(all) {
                        // No match rejects.
                        rejects = true;
                    }
                    cases.iter().map(|c| c.target).collect()
                }
            };
            for target in targets {
                match target {
                    StateRef::State(next) => open.push(next),
                    StateRef::Accept => return,
                    StateRef::Reject => rejects = true,
                }
            }
        }
        if rejects && (self.diagnostics.has_errors() || d.states.iter().any(|s| s.transition.is_none())) {
            // The state without a transition has a finding of its own, and a wrong one counts as `reject`.
            return;
        }
        if rejects {
            let message = format!("the parser `{}` never reaches `accept`", d.header.name);
            self.warn(codes::UNREACHABLE, d.header.name.span, message);
            return;
        }
        let message = format!("the parser `{}` never reaches `accept` or `reject`", d.header.name);
        self.error(codes::ENDLESS_PARSER, d.header.name.span, message);
    }
}
