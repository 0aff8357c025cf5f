//! Suspicious paths of values through code: variables that are read and never set, `out` parameters that nothing sets, fields of
//! headers that cannot be valid, and calls that write one place twice.
//!
//! A variable counts as set as soon as some way to a place may have set part of it, so what is reported here happens on every
//! path; programs that are right on the paths that matter to their authors get no warning.

use crate::check::Checker;
use crate::codes;
use crate::hir::*;
use foldhash::{HashSet, HashSetExt};
use millrace_syntax::{Diagnostic, Span};
use std::cell::Cell;

/// Steps through the code of a program; in a larger one not all is looked at.
const MAX_FLOW_STEPS: usize = 1 << 24;

impl Checker<'_> {
    /// Warns about the whole program. Only for programs without errors.
    pub(crate) fn check_flow(&mut self) {
        let mut found = Vec::new();
        let steps = &Cell::new(MAX_FLOW_STEPS);
        let program = &self.hir;
        for function in program.functions.values() {
            Flow::new(program, &mut found, steps).callable(&function.params, &function.body);
        }
        for action in program.actions.values() {
            Flow::new(program, &mut found, steps).callable(&action.params, &action.body);
        }
        for control in program.controls.values() {
            Flow::new(program, &mut found, steps).control(control);
        }
        for parser in program.parsers.values() {
            Flow::new(program, &mut found, steps).parser(parser);
        }
        found.into_iter().for_each(|d| self.report(d));
    }
}

/// The way through one body.
struct Flow<'p> {
    program: &'p Program,
    found: &'p mut Vec<Diagnostic>,
    /// Variables that begin without a value.
    watched: HashSet<VarId>,
    /// Those that may be set here.
    set: HashSet<VarId>,
    /// Those that are set anywhere.
    ever: HashSet<VarId>,
    /// Steps that may still be taken: what is not looked at is not warned about.
    steps: &'p Cell<usize>,
    /// Only what is set is asked for: loops need no second look.
    collecting: bool,
}

/// How the type of a variable begins.
#[derive(PartialEq, Eq)]
enum Start {
    /// With values that nothing has set.
    Unset,
    /// As an invalid header.
    Invalid,
    /// Otherwise, or partly so.
    Other,
}

impl<'p> Flow<'p> {
    fn new(program: &'p Program, found: &'p mut Vec<Diagnostic>, steps: &'p Cell<usize>) -> Self {
        Self {
            program,
            found,
            steps,
            watched: HashSet::new(),
            set: HashSet::new(),
            ever: HashSet::new(),
            collecting: false,
        }
    }

    fn callable(mut self, params: &[VarId], body: &[Stmt]) {
        self.watch_params(params);
        self.statements(body);
        self.unset_params(params);
    }

    fn control(mut self, control: &Control) {
        self.watch_params(&control.params);
        for local in &control.locals {
            match local {
                Local::Action(id) => self.elsewhere(&self.program.actions[*id].body),
                Local::Instance(id) => self.methods(*id),
                Local::Table(id) => self.table(*id),
                Local::Var(..) => {}
            }
        }
        self.locals(&control.locals);
        self.statements(&control.body);
        self.unset_params(&control.params);
    }

    /// States follow each other in any order, so what one sets may be set in all.
    fn parser(mut self, parser: &Parser) {
        self.watch_params(&parser.params);
        for state in &parser.states {
            self.elsewhere(&state.body);
        }
        for local in &parser.locals {
            if let Local::Instance(id) = local {
                self.methods(*id);
            }
        }
        self.locals(&parser.locals);
        for state in &parser.states {
            if !self.spend(3 * self.set.len()) {
                break;
            }
            let before = self.set.clone();
            self.statements(&state.body);
            if let Transition::Select { keys, .. } = &state.transition {
                keys.iter().for_each(|k| self.read(k));
            }
            self.set = before;
        }
        self.unset_params(&parser.params);
    }

    fn locals(&mut self, locals: &[Local]) {
        for local in locals {
            if let Local::Var(var, init) = local {
                match init {
                    Some(value) => {
                        self.read(value);
                        self.set.insert(*var);
                    }
                    None => self.watch(*var),
                }
            }
        }
    }

    fn methods(&mut self, instance: InstanceId) {
        for (_, method) in &self.program.instances[instance].methods {
            self.elsewhere(&self.program.functions[*method].body);
        }
    }

    /// Arguments that a table's list binds to parameters of its actions.
    fn table(&mut self, table: TableId) {
        for action in &self.program.tables[table].actions {
            for arg in &action.args {
                if let (Direction::Out | Direction::InOut, Some(value)) = (arg.direction, &arg.value) {
                    self.write(value);
                }
            }
        }
    }

    /// What the rounds of a loop before set.
    fn round(&mut self, body: &[Stmt]) {
        if !self.collecting {
            self.elsewhere(body);
        }
    }

    /// What code sets that may have run before.
    fn elsewhere(&mut self, body: &[Stmt]) {
        let mut ignored = Vec::new();
        let mut inner = Flow::new(self.program, &mut ignored, self.steps);
        inner.collecting = true;
        inner.statements(body);
        self.set.extend(&inner.ever);
        self.ever.extend(inner.ever);
    }

    fn watch_params(&mut self, params: &[VarId]) {
        for &param in params {
            if self.program.vars[param].kind == VarKind::Param(Direction::Out)
                && self.start(param) == Start::Unset
            {
                self.watched.insert(param);
            }
        }
    }

    fn watch(&mut self, var: VarId) {
        if self.start(var) != Start::Other {
            self.watched.insert(var);
        }
    }

    fn unset_params(&mut self, params: &[VarId]) {
        if !self.spend(0) {
            return;
        }
        for param in params.iter().filter(|p| self.watched.contains(p) && !self.ever.contains(p)) {
            let var = &self.program.vars[*param];
            let message = format!("nothing sets the `out` parameter `{}`", var.name);
            self.found.push(Diagnostic::warning(codes::UNSET, var.span, message));
        }
    }

    fn start(&self, var: VarId) -> Start {
        let ty = self.program.vars[var].ty;
        match self.program.types.kind(ty) {
            TyKind::Struct(id) if self.program.types.structs[*id].kind == StructKind::Header => {
                Start::Invalid
            }
            _ if self.is_plain(ty) => Start::Unset,
            _ => Start::Other,
        }
    }

    /// Whether a type is made of numbers, truth values, errors and enumerations only.
    fn is_plain(&self, ty: Ty) -> bool {
        if !self.spend(1) {
            return false;
        }
        match self.program.types.kind(ty) {
            TyKind::Bool | TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Error | TyKind::Enum(_) => true,
            TyKind::New(id) => self.is_plain(self.program.types.new_types[*id].base),
            TyKind::Struct(id) => {
                let s = &self.program.types.structs[*id];
                s.kind == StructKind::Struct
                    && !s.fields.is_empty()
                    && s.fields.iter().all(|f| self.is_plain(f.ty))
            }
            TyKind::Tuple(parts) => !parts.is_empty() && parts.iter().all(|&t| self.is_plain(t)),
            _ => false,
        }
    }

    /// Takes steps; false when none are left.
    fn spend(&self, steps: usize) -> bool {
        self.steps.set(self.steps.get().saturating_sub(steps));
        self.steps.get() > 0
    }

    fn statements(&mut self, body: &[Stmt]) {
        body.iter().for_each(|s| self.statement(s));
    }

    fn statement(&mut self, statement: &Stmt) {
        if !self.spend(1) {
            return;
        }
        match &statement.kind {
            StmtKind::Assign { lhs, rhs } => {
                self.read(rhs);
                self.write(lhs);
            }
            StmtKind::AssignOp { lhs, rhs, .. } => {
                self.read(lhs);
                self.read(rhs);
                self.write(lhs);
            }
            StmtKind::Call(call) => self.call(call),
            StmtKind::Var(var, Some(value)) => {
                self.read(value);
                self.set.insert(*var);
            }
            StmtKind::Var(var, None) => {
                self.set.remove(var);
                self.watch(*var);
            }
            StmtKind::If { cond, then, els } => {
                self.read(cond);
                self.branches([then, els]);
            }
            StmtKind::Block(body) => self.statements(body),
            StmtKind::Return(Some(value)) => self.read(value),
            StmtKind::SwitchAction { cases, default, .. } => {
                self.branches(cases.iter().map(|c| &c.body).chain(default));
            }
            StmtKind::SwitchValue { value, cases, default } => {
                self.read(value);
                self.branches(cases.iter().map(|c| &c.body).chain(default));
            }
            StmtKind::For { init, cond, update, body } => {
                self.statements(init);
                self.round(body);
                self.round(update);
                self.read(cond);
                self.statements(body);
                self.statements(update);
            }
            StmtKind::ForIn { var, collection, body } => {
                match collection {
                    ForCollection::Range(low, high) => {
                        self.read(low);
                        self.read(high);
                    }
                    ForCollection::Elements(elements) => self.read(elements),
                }
                self.write(var);
                self.round(body);
                self.statements(body);
            }
            StmtKind::Instance(id) => self.methods(*id),
            StmtKind::Return(None) | StmtKind::Exit | StmtKind::Break | StmtKind::Continue => {}
        }
    }

    fn branches<'b>(&mut self, bodies: impl IntoIterator<Item = &'b Vec<Stmt>>) {
        self.spend(3 * self.set.len());
        let before = self.set.clone();
        let mut after = before.clone();
        for body in bodies {
            if !self.spend(3 * before.len()) {
                break;
            }
            self.set.clone_from(&before);
            self.statements(body);
            after.extend(&self.set);
        }
        self.set = after;
    }

    fn call(&mut self, call: &Call) {
        match &call.callee {
            Callee::SetValid(e) | Callee::PushFront(e, _) | Callee::PopFront(e, _) => self.make(e),
            Callee::SetInvalid(_) => {}
            Callee::ExternMethod(object, _) | Callee::Apply(object) => self.read(object),
            Callee::Function(_) | Callee::Action(_) | Callee::ExternFunction(_) | Callee::Table(_) => {}
        }
        let values = || call.args.iter().filter_map(|a| Some((a.direction, a.value.as_ref()?)));
        for (direction, value) in values() {
            if direction != Direction::Out {
                self.read(value);
            }
        }
        let out: Vec<&Expr> = values()
            .filter(|(d, _)| matches!(d, Direction::Out | Direction::InOut))
            .map(|(_, value)| value)
            .collect();
        for (i, value) in out.iter().enumerate() {
            if !self.spend(i) {
                return;
            }
            if let Some(other) = out[..i].iter().find(|other| overlap(other, value)) {
                self.found.push(
                    Diagnostic::warning(
                        codes::WRITTEN_TWICE,
                        value.span,
                        "this call writes one place twice: the last parameter wins",
                    )
                    .with_secondary(other.span, "written here, too"),
                );
            }
            self.make(value);
        }
    }

    /// An assignment to a place or part of it.
    fn write(&mut self, e: &Expr) {
        if let ExprKind::Field(base, _) = &e.kind
            && let ExprKind::Var(var) = base.kind
        {
            self.header_field(var, e.span);
        }
        self.make(e);
    }

    /// Something that sets a place or part of it, and makes a header valid.
    fn make(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Var(var) => {
                self.set.insert(*var);
                self.ever.insert(*var);
            }
            ExprKind::Index(base, index) => {
                self.read(index);
                self.make(base);
            }
            ExprKind::Field(base, _) | ExprKind::Slice(base, ..) => self.make(base),
            ExprKind::StackNext(base) | ExprKind::StackLast(base) => self.make(base),
            _ => {}
        }
    }

    fn read(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Var(var) => self.variable(*var, e.span),
            ExprKind::Field(base, _) => {
                if let ExprKind::Var(var) = base.kind {
                    self.header_field(var, e.span);
                }
                self.read(base);
            }
            ExprKind::Slice(a, ..)
            | ExprKind::Unary(_, a)
            | ExprKind::Cast(a)
            | ExprKind::StackLast(a)
            | ExprKind::StackNext(a)
            | ExprKind::StackLastIndex(a) => self.read(a),
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => {
                self.read(a);
                self.read(b);
            }
            ExprKind::Mux(a, b, c) => [a, b, c].into_iter().for_each(|e| self.read(e)),
            ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => {
                members.iter().for_each(|m| self.read(m));
            }
            ExprKind::InTurn(members) => members.iter().for_each(|(_, m)| self.read(m)),
            ExprKind::Call(call) => self.call(call),
            _ => {}
        }
    }

    /// A variable is read.
    fn variable(&mut self, var: VarId, span: Span) {
        if self.watched.contains(&var) && self.start(var) == Start::Unset && self.set.insert(var) {
            let var = &self.program.vars[var];
            self.found.push(
                Diagnostic::warning(codes::UNSET, span, format!("nothing has set `{}`", var.name))
                    .with_label("read here")
                    .with_secondary(var.span, "declared without a value"),
            );
        }
    }

    /// A field of a header variable is read or set.
    fn header_field(&mut self, var: VarId, span: Span) {
        if self.watched.contains(&var) && self.start(var) == Start::Invalid && self.set.insert(var) {
            let var = &self.program.vars[var];
            let message = format!("`{}` is not valid here, so its fields hold nothing", var.name);
            self.found.push(
                Diagnostic::warning(codes::INVALID_HEADER, span, message)
                    .with_secondary(var.span, "declared here, and a header begins invalid")
                    .with_help(format!("`{}.setValid()` makes it valid", var.name)),
            );
        }
    }
}

/// Whether two places have a part in common for certain.
fn overlap(a: &Expr, b: &Expr) -> bool {
    let (Some((x, a)), Some((y, b))) = (steps(a), steps(b)) else { return false };
    x == y && a.iter().zip(&b).all(|(s, t)| s == t)
}

/// A variable and the members that lead to a place in it.
fn steps(e: &Expr) -> Option<(VarId, Vec<usize>)> {
    match &e.kind {
        ExprKind::Var(var) => Some((*var, Vec::new())),
        ExprKind::Field(base, member) => {
            let (var, mut steps) = steps(base)?;
            steps.push(*member);
            Some((var, steps))
        }
        _ => None,
    }
}
