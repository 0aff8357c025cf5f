//! Parser functions (specification section 4) as states of one parser.
//!
//! Parser exceptions, those of the program and those of the language, are errors of P4_16: the parser ends with one, and
//! ingress does what the program says about it.

use indexmap::IndexMap;
use millrace_syntax::Span;
use millrace_syntax::ast::{
    self as p16, BinaryOp, Declaration, Expr, ExprKind, Keyset, KeysetKind, Name, ParserState, Select,
    SelectCase, Stmt, Transition,
};
use millrace_syntax::p4_14::ast::{self as p14, ParserStmt, Return, Target};

use crate::codes;
use crate::constant;
use crate::control::ENTRY;
use crate::expr::Scope;
use crate::field_ref::{Element, Header};
use crate::model::{self, Kind};
use crate::names::PACKET;
use crate::translate::{Translator, initial_flag};
use crate::tree;
use crate::value::{Number, Value};

/// The exception of a checksum that is wrong: no error of the parser, since it is found after it.
pub(crate) const CHECKSUM: &str = "p4_pe_checksum";

/// A header longer and shorter than it may be: errors that this translation raises.
const TOO_LONG: &str = "p4_pe_header_too_long";
const TOO_SHORT: &str = "p4_pe_header_too_short";

/// The standard exceptions (specification section 4.6.1) with the errors of P4_16 that they are.
pub(crate) const EXCEPTIONS: &[(&str, &[&str])] = &[
    ("p4_pe_index_out_of_bounds", &["StackOutOfBounds"]),
    ("p4_pe_out_of_packet", &["PacketTooShort"]),
    (TOO_LONG, &[TOO_LONG]),
    (TOO_SHORT, &[TOO_SHORT, "HeaderTooShort"]),
    ("p4_pe_unhandled_select", &["NoMatch"]),
];

/// Names of errors that a program's own exceptions cannot have.
const CORE_ERRORS: [&str; 8] = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
    "Other",
];

/// The members of a value set that does not say how many.
const DEFAULT_VALUES: u32 = 4;

/// The most values that one `select` joins to a key.
const MAX_SUBJECTS: usize = 256;

/// The most errors of the parser that a program raises: they have numbers of 8 bits.
const MAX_ERRORS: usize = 255;

/// The most members of a value set.
const MAX_VALUES: u32 = 1 << 16;

/// The type in which lengths are computed.
const LENGTH: Number = Number { width: 64, signed: true };

/// Where a packet comes from (`instance_type`), by the name of the parser function that it begins with.
const ENTRIES: [(&str, u32); 6] = [
    ("start_i2e_mirrored", 1),
    ("start_e2e_mirrored", 2),
    ("start_coalesced", 3),
    ("start_ingress_recirc", 4),
    ("start_replicated", 5),
    ("start_resubmitted", 6),
];

/// The parser under construction.
struct Graph<'a> {
    /// States of the program by name: their names in the tree.
    states: IndexMap<&'a str, String>,
    /// States that go on to a control function, or raise an error.
    ends: IndexMap<String, ParserState>,
    /// Value sets: names in the tree and the width of their members.
    sets: IndexMap<&'a str, (String, u32)>,
    /// The control functions that it goes on to.
    roots: Vec<&'a str>,
}

impl<'a> Translator<'a> {
    /// The parser.
    pub(crate) fn parser(&mut self, roots: &[&'a p14::Control]) -> Declaration {
        let mut graph = Graph {
            states: IndexMap::new(),
            ends: IndexMap::new(),
            sets: IndexMap::new(),
            roots: roots.iter().map(|c| c.name.as_str()).collect(),
        };
        for name in self.model.states.keys() {
            let fresh = self.names.fresh(name);
            graph.states.insert(name, fresh);
        }
        let mut states = Vec::new();
        let mut prologue = Vec::new();
        self.initial_values(&mut prologue);
        states.push(self.start(prologue, &graph));
        for state in self.model.states.values().copied().collect::<Vec<_>>() {
            states.push(self.state(state, &mut graph));
        }
        states.extend(graph.ends.into_values());
        let span = self.model.states.get("start").map_or(Span::default(), |s| s.span);
        let mut locals = Vec::new();
        for (name, (declared, width)) in &graph.sets {
            locals.extend(self.value_set(name, declared, *width));
        }
        Declaration::Parser(p16::Parser {
            header: self.block_header("ParserImpl", span),
            constructor_params: Vec::new(),
            locals,
            states,
            span,
        })
    }

    /// The first state: initial values, then where the packet comes from decides.
    fn start(&mut self, statements: Vec<Stmt>, graph: &Graph<'a>) -> ParserState {
        let Some(first) = self.model.states.get("start").copied() else {
            let message = "there is no parser function `start`";
            self.error(codes::PARSER, Span::default(), message);
            return state(
                "start",
                statements,
                Some(Transition::To(tree::name("accept", Span::default()))),
                Span::default(),
            );
        };
        let span = first.name.span;
        let normal = graph.states.get("start").cloned().unwrap_or_default();
        let mut entries: Vec<(&'a str, u32)> = Vec::new();
        for entry in self.model.states.values().copied().collect::<Vec<_>>() {
            let Some(pragma) = entry.pragmas.iter().find(|p| p.name.as_str() == "packet_entry") else {
                continue;
            };
            match ENTRIES.iter().find(|(name, _)| *name == entry.name.as_str()) {
                Some((_, number)) => entries.push((entry.name.as_str(), *number)),
                None => {
                    let known: Vec<&str> = ENTRIES.iter().map(|(name, _)| *name).collect();
                    let message = format!("`{}` is no way into the parser", entry.name);
                    let found = millrace_syntax::Diagnostic::warning(codes::SUSPICIOUS, pragma.span, message);
                    self.report(found.with_help(format!("there are {}", known.join(", "))));
                }
            }
        }
        if entries.is_empty() {
            return state("start", statements, Some(Transition::To(tree::name(normal, span))), span);
        }
        let standard = self.standard.clone();
        let subject = self.tree.path(&[&standard, "instance_type"], span);
        let mut cases = Vec::new();
        for (entry, number) in entries {
            let value = self.tree.number(&number.into(), 32, false, span);
            let name = graph.states.get(entry).cloned().unwrap_or_default();
            cases.push(case(KeysetKind::Value(value), &name, span));
        }
        cases.push(case(KeysetKind::Default, &normal, span));
        let select = Select { subjects: vec![subject], cases, span };
        state("start", statements, Some(Transition::Select(select)), span)
    }

    /// Gives metadata its initial values, unless it has them or later ones already: a copy of a packet keeps some fields,
    /// and begins with the initial values of the others.
    pub(crate) fn initial_values(&mut self, out: &mut Vec<Stmt>) {
        for instance in self.model.instances.values().cloned().collect::<Vec<_>>() {
            for (name, value) in instance.initial {
                let header = Header {
                    instance: instance.name.clone(),
                    element: Element::All,
                    kind: instance.kind,
                    is_stack: false,
                    span: name.span,
                };
                let Some(reference) = self.field_of(header, name.as_str(), name.span) else { continue };
                let Some(value) = constant::evaluate(value) else {
                    self.error(codes::NOT_CONSTANT, value.span, "an initial value is a constant");
                    continue;
                };
                let span = name.span;
                let flag = initial_flag(&instance.name, name.as_str());
                let now = self.hidden_expr(&flag, 1, span);
                let zero = self.tree.number(&0.into(), 1, false, span);
                let unset = self.tree.binary(BinaryOp::Eq, now, zero, span);
                let target = self.hidden_expr(&flag, 1, span);
                let one = self.tree.number(&1.into(), 1, false, span);
                let mut body = vec![tree::assign(target, one, span)];
                self.set(&reference, Value::Const { value, width: None, span }, &mut body);
                out.push(tree::if_stmt(unset, body, Vec::new(), span));
            }
        }
    }

    fn state(&mut self, declared: &'a p14::ParserState, graph: &mut Graph<'a>) -> ParserState {
        let mut scope = Scope::Parser(None);
        let mut statements = Vec::new();
        for statement in &declared.statements {
            match statement {
                ParserStmt::Extract(header, span) => {
                    if let Some(header) = self.extract(header, *span, &scope, &mut statements) {
                        scope = Scope::Parser(Some(header));
                    }
                }
                ParserStmt::Set(field, value, _) => self.set_metadata(field, value, &scope, &mut statements),
            }
        }
        let transition = match &declared.ending {
            None => Transition::To(tree::name("accept", declared.span)),
            Some(Return::To(target)) => Transition::To(self.goto(target, graph)),
            Some(Return::Select { subjects, cases, span }) => {
                Transition::Select(self.select(subjects, cases, *span, &scope, graph))
            }
        };
        let name = graph.states.get(declared.name.as_str()).cloned().unwrap_or_default();
        let mut made = state(&name, statements, Some(transition), declared.span);
        made.name.span = declared.name.span;
        made.annotations.push(tree::control_plane(declared.name.as_str(), declared.name.span));
        made
    }

    /// `set_metadata`, also in a parser exception.
    fn set_metadata(
        &mut self,
        field: &'a p14::Reference,
        value: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        out: &mut Vec<Stmt>,
    ) {
        let Some(reference) = self.field_ref(field, scope) else { return };
        if reference.header.kind == Kind::Header {
            let message = format!("a parser sets metadata, `{}` is a header", reference.header.instance);
            self.error(codes::PARSER, field.span, message);
            return;
        }
        let value = self.value(value, scope, reference.field.width);
        self.set(&reference, value, out);
    }

    pub(crate) fn exception_statement(&mut self, statement: &'a ParserStmt, out: &mut Vec<Stmt>) {
        match statement {
            ParserStmt::Set(field, value, _) => self.set_metadata(field, value, &Scope::Outside, out),
            ParserStmt::Extract(_, span) => {
                self.error(codes::PARSER, *span, "a parser exception extracts nothing");
            }
        }
    }

    // ---- Extraction ----

    /// `packet.extract(hdr.x)`; gives what `latest` is from now on.
    fn extract(
        &mut self,
        reference: &'a p14::Reference,
        span: Span,
        scope: &Scope<'a, '_>,
        out: &mut Vec<Stmt>,
    ) -> Option<Header> {
        let header = self.header(reference, scope)?;
        if header.kind != Kind::Header || reference.field.is_some() {
            let message = format!("a header of the packet is extracted, `{}` is none", reference.name);
            self.error(codes::WRONG_KIND, reference.span, message);
            return None;
        }
        if header.is_stack || header.element == Element::Last {
            let message =
                format!("`{}` is a header stack: extract to `[next]` or to a number", reference.name);
            self.error(codes::WRONG_KIND, reference.span, message);
            return None;
        }
        let (ty, _) = self.model.instances.get(&*header.instance).map(|i| (i.ty, i.kind))?;
        let (declared, layout) = self.model.types.get(ty).map(|(d, l)| (*d, l.clone()))?;
        let target = self.header_expr(&header);
        let mut args = vec![target];
        if let (true, Some(length)) = (layout.varies(), &declared.length) {
            let bits = self.varbit_length(length, &layout, span, out);
            args.push(bits?);
        }
        let packet = self.tree.var(PACKET, span);
        out.push(self.tree.method(packet, "extract", args, span));
        let element = if header.element == Element::Next { Element::Last } else { header.element };
        Some(Header { element, ..header })
    }

    /// The bits of the field of varying length, from fields that are looked at ahead.
    fn varbit_length(
        &mut self,
        length: &'a p14::Expr,
        layout: &model::Layout,
        span: Span,
        out: &mut Vec<Stmt>,
    ) -> Option<Expr> {
        let mut needed = 0;
        bits_needed(length, layout, &mut needed);
        let ahead = if needed > 0 {
            let value = self.lookahead(needed, span);
            self.temporary(value, Number::unsigned(needed), out)
        } else {
            String::new()
        };
        let value = self.length(length, layout, &ahead, needed)?;
        let bytes = self.temporary(value, LENGTH, out);
        let fixed = layout.fixed / 8;
        for (error, op, limit) in
            [(TOO_SHORT, BinaryOp::Ge, fixed), (TOO_LONG, BinaryOp::Le, layout.max_bytes)]
        {
            self.errors.insert(error.into());
            let found = self.tree.var(bytes.as_str(), span);
            let limit = self.tree.number(&limit.into(), LENGTH.width, true, span);
            let fits = self.tree.binary(op, found, limit, span);
            let error = self.tree.error(error, span);
            out.push(self.tree.function("verify", vec![fits, error], span));
        }
        let found = self.tree.var(bytes.as_str(), span);
        let fixed = self.tree.number(&fixed.into(), LENGTH.width, true, span);
        let rest = self.tree.binary(BinaryOp::Sub, found, fixed, span);
        let rest = self.cast(rest, LENGTH, Number::unsigned(32));
        let eight = self.tree.number(&8.into(), 32, false, span);
        Some(self.tree.binary(BinaryOp::Mul, rest, eight, span))
    }

    fn length(&mut self, e: &'a p14::Expr, layout: &model::Layout, ahead: &str, needed: u32) -> Option<Expr> {
        if let Some(value) = constant::evaluate(e) {
            return Some(self.tree.number(&value, LENGTH.width, true, e.span));
        }
        match &e.kind {
            p14::ExprKind::Reference(reference) => {
                let field = layout.field(reference.plain()?.as_str())?;
                let (high, low) = (needed - field.offset - 1, needed - field.offset - field.width);
                let own = Number { width: field.width, signed: field.signed };
                let base = self.tree.var(ahead, e.span);
                let bits = self.slice(base, high, low, e.span);
                let bits = self.cast(bits, Number::unsigned(own.width), own);
                Some(self.cast(bits, own, LENGTH))
            }
            p14::ExprKind::Unary(op, inner) => {
                let inner = self.length(inner, layout, ahead, needed)?;
                Some(self.tree.unary(*op, inner))
            }
            p14::ExprKind::Binary(op @ (BinaryOp::Shl | BinaryOp::Shr), a, b) => {
                let a = self.length(a, layout, ahead, needed)?;
                let b = self.length(b, layout, ahead, needed)?;
                let b = self.cast(b, LENGTH, Number::unsigned(LENGTH.width));
                Some(self.tree.binary(*op, a, b, e.span))
            }
            p14::ExprKind::Binary(
                op @ (BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor),
                a,
                b,
            ) => {
                let a = self.length(a, layout, ahead, needed)?;
                let b = self.length(b, layout, ahead, needed)?;
                Some(self.tree.binary(*op, a, b, e.span))
            }
            _ => {
                self.type_error(
                    e.span,
                    "a length is a sum, difference, product or shift of fields and constants",
                );
                None
            }
        }
    }

    // ---- Where to go ----

    /// The state that a target is.
    fn goto(&mut self, target: &'a Target, graph: &mut Graph<'a>) -> Name {
        match target {
            Target::Error(exception) => self.raise(exception, graph),
            Target::Named(name) => {
                if let Some(state) = graph.states.get(name.as_str()) {
                    return tree::name(state.as_str(), name.span);
                }
                let Some(at) = graph.roots.iter().position(|root| *root == name.as_str()) else {
                    let known = self.model.states.keys().chain(self.model.controls.keys()).copied();
                    model::unknown(&mut self.found, name, "parser or control function", known);
                    return tree::name("accept", name.span);
                };
                if graph.roots.len() == 1 {
                    return tree::name("accept", name.span);
                }
                self.enter(at, name, graph)
            }
        }
    }

    /// A state that notes which control function goes on.
    fn enter(&mut self, at: usize, name: &Name, graph: &mut Graph<'a>) -> Name {
        let key = format!("to {name}");
        if let Some(made) = graph.ends.get(&key) {
            return tree::name(made.name.text.clone(), name.span);
        }
        let fresh = self.names.fresh(&format!("enter_{name}"));
        let target = self.hidden_expr(ENTRY, 8, name.span);
        let number = self.tree.number(&at.into(), 8, false, name.span);
        let statements = vec![tree::assign(target, number, name.span)];
        let accept = Transition::To(tree::name("accept", name.span));
        graph.ends.insert(key, state(&fresh, statements, Some(accept), name.span));
        tree::name(fresh, name.span)
    }

    /// A state that raises an exception.
    fn raise(&mut self, exception: &'a Name, graph: &mut Graph<'a>) -> Name {
        let standard = EXCEPTIONS.iter().find(|(name, _)| *name == exception.as_str());
        let error = match standard {
            Some((_, errors)) => errors[0].to_owned(),
            None if CORE_ERRORS.contains(&exception.as_str()) => format!("p4_14_{exception}"),
            None => exception.to_string(),
        };
        let handled = self.model.exceptions.contains_key(exception.as_str());
        if standard.is_none()
            && !handled
            && exception.as_str() != "p4_pe_default"
            && exception.as_str() != CHECKSUM
        {
            let known = self.model.exceptions.keys().copied().chain(EXCEPTIONS.iter().map(|(name, _)| *name));
            model::unknown(&mut self.found, exception, "parser exception", known);
        }
        if !CORE_ERRORS.contains(&error.as_str()) && !self.errors.contains(error.as_str()) {
            if self.errors.len() == MAX_ERRORS {
                let message = format!("more than {MAX_ERRORS} parser exceptions are raised");
                self.error(codes::LIMIT, exception.span, message);
                return tree::name("reject", exception.span);
            }
            self.errors.insert(error.as_str().into());
        }
        let key = format!("raise {error}");
        let span = exception.span;
        if let Some(made) = graph.ends.get(&key) {
            return tree::name(made.name.text.clone(), span);
        }
        let fresh = self.names.fresh(&format!("raise_{error}"));
        let condition = self.tree.expr(ExprKind::Bool(false), span);
        let value = self.tree.error(&error, span);
        let statements = vec![self.tree.function("verify", vec![condition, value], span)];
        let reject = Transition::To(tree::name("reject", span));
        graph.ends.insert(key, state(&fresh, statements, Some(reject), span));
        tree::name(fresh, span)
    }

    /// The number of an exception in `parser_status`: the standard ones from 1 in the order of the specification, then
    /// those of the program.
    pub(crate) fn exception_number(&self, exception: &str) -> u32 {
        let standard = EXCEPTIONS.iter().map(|(name, _)| *name).chain([CHECKSUM]);
        let own = self.model.exceptions.keys().copied().filter(|name| {
            *name != CHECKSUM && *name != "p4_pe_default" && !EXCEPTIONS.iter().any(|(n, _)| n == name)
        });
        let at = standard.chain(own).position(|name| name == exception);
        at.map_or(255, |at| (at as u32 + 1).min(255))
    }

    /// `select`: the values side by side are compared as one number.
    fn select(
        &mut self,
        subjects: &'a [p14::Expr],
        cases: &'a [p14::Case],
        span: Span,
        scope: &Scope<'a, '_>,
        graph: &mut Graph<'a>,
    ) -> Select {
        let mut width = 0u32;
        let mut joined: Option<Expr> = None;
        if subjects.len() > MAX_SUBJECTS {
            self.error(codes::LIMIT, span, format!("more than {MAX_SUBJECTS} values are selected by"));
        }
        for e in subjects.iter().take(MAX_SUBJECTS) {
            let value = self.value(e, scope, 0);
            if matches!(value, Value::Error(_)) {
                continue;
            }
            let bits = value.width().max(1);
            let part = self.convert(value, Number::unsigned(bits));
            width = width.saturating_add(bits);
            joined = Some(match joined {
                None => part,
                Some(joined) => self.tree.binary(BinaryOp::Concat, joined, part, span),
            });
        }
        let known = joined.is_some();
        let subject = joined.unwrap_or_else(|| self.tree.number(&0.into(), 1, false, span));
        let width = width.max(1);
        let mut made = Vec::new();
        for c in cases {
            let target = self.goto(&c.target, graph);
            if c.values.is_empty() {
                made.push(case(KeysetKind::Default, &target.text, c.span));
            }
            for value in &c.values {
                if let Some(kind) = self.case_value(value, width, known, graph) {
                    made.push(case(kind, &target.text, c.span));
                }
            }
        }
        Select { subjects: vec![subject], cases: made, span }
    }

    fn case_value(
        &mut self,
        value: &'a p14::CaseValue,
        width: u32,
        known: bool,
        graph: &mut Graph<'a>,
    ) -> Option<KeysetKind> {
        if let p14::ExprKind::Reference(reference) = &value.value.kind {
            let name = reference.plain().filter(|name| self.model.value_sets.contains_key(name.as_str()));
            let Some(name) = name else {
                let known = self.model.value_sets.keys().copied();
                model::unknown(&mut self.found, &reference.name, "value set", known);
                return None;
            };
            if let Some(mask) = &value.mask {
                let message = "a value set has no mask; masks come with its members";
                self.error(codes::PARSER, mask.span, message);
                return None;
            }
            return self.set_case(name, width, known, graph);
        }
        let number = self.case_number(&value.value, width, known)?;
        match &value.mask {
            None => Some(KeysetKind::Value(number)),
            Some(mask) => Some(KeysetKind::Mask(number, self.case_number(mask, width, known)?)),
        }
    }

    fn set_case(
        &mut self,
        name: &'a Name,
        width: u32,
        known: bool,
        graph: &mut Graph<'a>,
    ) -> Option<KeysetKind> {
        if !known {
            return None;
        }
        if !graph.sets.contains_key(name.as_str()) {
            let fresh = self.names.fresh(name.as_str());
            graph.sets.insert(&name.text, (fresh, width));
        }
        let (declared, first) = graph.sets.get(name.as_str())?.clone();
        if first != width {
            let message = format!("`{name}` is compared with {first} bits elsewhere, with {width} here");
            self.error(codes::PARSER, name.span, message);
            return None;
        }
        Some(KeysetKind::Value(self.tree.var(declared, name.span)))
    }

    fn case_number(&mut self, e: &'a p14::Expr, width: u32, known: bool) -> Option<Expr> {
        let Some(value) = constant::evaluate(e) else {
            self.error(codes::NOT_CONSTANT, e.span, "a case is a constant or a value set");
            return None;
        };
        if known && constant::bits(&value) > width {
            self.warn(e.span, format!("this number has more than the {width} bits that are compared"));
        }
        Some(self.tree.number(&value, width, false, e.span))
    }

    fn value_set(&mut self, name: &str, declared: &str, width: u32) -> Option<Declaration> {
        let set = self.model.value_sets.get(name).copied()?;
        let pragma = set.pragmas.iter().find(|p| p.name.as_str() == "parser_value_set_size");
        let given = pragma.and_then(|p| p.words.first()).and_then(|word| word.as_str().parse::<u32>().ok());
        let size = given.unwrap_or(DEFAULT_VALUES).clamp(1, MAX_VALUES);
        Some(Declaration::ValueSet(p16::ValueSet {
            annotations: vec![tree::control_plane(name, set.name.span)],
            ty: self.tree.ty(width, false, set.span),
            size: self.tree.int(size, set.span),
            name: tree::name(declared, set.name.span),
            span: set.span,
        }))
    }
}

fn state(name: &str, statements: Vec<Stmt>, transition: Option<Transition>, span: Span) -> ParserState {
    ParserState { annotations: Vec::new(), name: tree::name(name, span), statements, transition, span }
}

fn case(kind: KeysetKind, target: &str, span: Span) -> SelectCase {
    SelectCase { keyset: Keyset { kind, span }, state: tree::name(target, span), span }
}

/// The bits from the beginning of a header that its length depends on.
fn bits_needed(e: &p14::Expr, layout: &model::Layout, needed: &mut u32) {
    match &e.kind {
        p14::ExprKind::Reference(reference) => {
            let field = reference.plain().and_then(|name| layout.field(name.as_str()));
            if let Some(field) = field {
                *needed = (*needed).max(field.offset + field.width);
            }
        }
        p14::ExprKind::Unary(_, e) => bits_needed(e, layout, needed),
        p14::ExprKind::Binary(_, a, b) => {
            bits_needed(a, layout, needed);
            bits_needed(b, layout, needed);
        }
        _ => {}
    }
}
