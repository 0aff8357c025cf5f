//! What several workers of one switch mean for a program: warnings of code that gives something else than with one worker.

use crate::fail::code;
use crate::survey::{Node, walk_stmts};
use foldhash::{HashMap, HashMapExt};
use millrace_sema::hir::{Call, Callee, ExprKind, InstanceId, Program, Stmt, StmtKind, TyKind};
use millrace_syntax::{Diagnostic, Diagnostics, Span};

/// The findings, in the order of declaration.
///
/// Accesses of one action are one step for all workers, as are those of statements that follow one another
/// (`pipeline::passes::make_atomic`); so a register is at risk where a control reads it, branches or applies a table, and writes it.
pub(crate) fn advice(program: &Program) -> Diagnostics {
    let mut found = Diagnostics::new();
    let bodies = program.functions.values().map(|function| &function.body);
    let bodies = bodies.chain(program.actions.values().map(|action| &action.body));
    for body in bodies {
        walk_stmts(body, &mut |node| {
            if let Node::Call(call) = node
                && let Some(Access::Random) = access(program, call)
            {
                found.push(random(call.span));
            }
        });
    }
    let states = program.parsers.values().flat_map(|parser| &parser.states);
    let bodies = program.controls.values().map(|control| &control.body);
    for body in bodies.chain(states.map(|state| &state.body)) {
        let mut look = Look { program, read: HashMap::new(), before: HashMap::new(), found: &mut found };
        look.statements(body);
    }
    found
}

/// A walk over the code of a control.
struct Look<'p, 'f> {
    program: &'p Program,
    /// Registers that were read since the last branch or application, with the first place.
    read: HashMap<InstanceId, Span>,
    /// Those that were read before it.
    before: HashMap<InstanceId, Span>,
    found: &'f mut Diagnostics,
}

impl Look<'_, '_> {
    fn statements(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.statement(stmt));
    }

    fn statement(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Block(stmts) => self.statements(stmts),
            StmtKind::If { then, els, .. } => self.parts([then, els]),
            StmtKind::SwitchAction { cases, default, .. } => {
                self.parts(cases.iter().map(|case| &case.body).chain(default));
            }
            StmtKind::SwitchValue { cases, default, .. } => {
                self.parts(cases.iter().map(|case| &case.body).chain(default));
            }
            StmtKind::For { init, update, body, .. } => {
                self.statements(init);
                self.parts([body, update]);
            }
            StmtKind::ForIn { body, .. } => self.parts([body]),
            _ => self.calls(stmt),
        }
    }

    /// Parts of which each starts and ends with a branch.
    fn parts<'s>(&mut self, parts: impl IntoIterator<Item = &'s Vec<Stmt>>) {
        self.branch();
        for part in parts {
            self.statements(part);
            self.branch();
        }
    }

    fn branch(&mut self) {
        for (register, place) in self.read.drain() {
            self.before.entry(register).or_insert(place);
        }
    }

    fn calls(&mut self, stmt: &Stmt) {
        let program = self.program;
        walk_stmts(std::slice::from_ref(stmt), &mut |node| {
            let Node::Call(call) = node else { return };
            match access(program, call) {
                Some(Access::Read(register)) => {
                    self.read.entry(register).or_insert(call.span);
                }
                Some(Access::Write(register)) if !self.read.contains_key(&register) => {
                    if let Some(first) = self.before.get(&register) {
                        let name = program.instances[register].name.as_deref().unwrap_or("a register");
                        self.found.push(lost(name, *first, call.span));
                    }
                }
                Some(Access::Random) => self.found.push(random(call.span)),
                Some(Access::Write(_)) => {}
                // A table, a control or an action is applied.
                None if !matches!(call.callee, Callee::ExternFunction(_) | Callee::ExternMethod(..)) => {
                    self.branch();
                }
                None => {}
            }
        });
    }
}

enum Access {
    Read(InstanceId),
    Write(InstanceId),
    Random,
}

/// What a call does to an object that workers share, or have one each of.
fn access(program: &Program, call: &Call) -> Option<Access> {
    match &call.callee {
        Callee::ExternFunction(function) => {
            (program.extern_functions[*function].name == "random").then_some(Access::Random)
        }
        Callee::ExternMethod(object, method) => {
            let TyKind::Extern(declared, _) = program.types.kind(object.ty) else { return None };
            let declared = &program.externs[*declared];
            let ExprKind::Instance(instance) = object.kind else { return None };
            match (declared.name.as_str(), declared.methods[*method].name.as_str()) {
                ("register" | "Register", "read") => Some(Access::Read(instance)),
                ("register" | "Register", "write") => Some(Access::Write(instance)),
                ("Random", "read") => Some(Access::Random),
                _ => None,
            }
        }
        _ => None,
    }
}

fn lost(register: &str, read: Span, write: Span) -> Diagnostic {
    let message =
        format!("`{register}` is read and then written: between the two another worker may write it");
    Diagnostic::warning(code::SHARED_REGISTER, write, message)
        .with_label("what was written meanwhile is lost")
        .with_secondary(read, "it is read here")
        .with_help(
            "have one action do both; or a counter, which counts for all workers; or have all packets that share \
             a cell go to one worker, with `--spread`",
        )
}

fn random(place: Span) -> Diagnostic {
    let message = "each worker draws random numbers from a sequence of its own";
    Diagnostic::warning(code::OWN_RANDOM, place, message)
        .with_help("which number a packet draws depends on the worker that has it")
}
