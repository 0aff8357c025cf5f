//! What several workers of one switch mean for a program: warnings of code that gives something else than with one worker.

use crate::fail::code;
use crate::survey::{Node, walk_stmts};
use foldhash::{HashMap, HashMapExt};
use millrace_sema::hir::{Call, Callee, ExprKind, InstanceId, Program, Stmt, TyKind};
use millrace_syntax::{Diagnostic, Diagnostics, Span};

/// The findings, in the order of declaration.
pub(crate) fn advice(program: &Program) -> Diagnostics {
    let mut found = Diagnostics::new();
    let mut look = |stmts: &[Stmt]| {
        // Registers that this code has read, with the first place.
        let mut read: HashMap<InstanceId, Span> = HashMap::new();
        walk_stmts(stmts, &mut |node| {
            let Node::Call(call) = node else { return };
            match access(program, call) {
                Some(Access::Read(register)) => {
                    read.entry(register).or_insert(call.span);
                }
                Some(Access::Write(register)) => {
                    if let Some(first) = read.get(&register) {
                        let name = program.instances[register].name.as_deref().unwrap_or("a register");
                        found.push(lost(name, *first, call.span));
                    }
                }
                Some(Access::Random) => found.push(random(call.span)),
                None => {}
            }
        });
    };
    program.functions.values().for_each(|function| look(&function.body));
    program.actions.values().for_each(|action| look(&action.body));
    program.controls.values().for_each(|control| look(&control.body));
    program.parsers.values().flat_map(|parser| &parser.states).for_each(|state| look(&state.body));
    found
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
        .with_help("a counter counts for all workers; or have all packets that share a cell go to one worker, with `--spread`")
}

fn random(place: Span) -> Diagnostic {
    let message = "each worker draws random numbers from a sequence of its own";
    Diagnostic::warning(code::OWN_RANDOM, place, message)
        .with_help("which number a packet draws depends on the worker that has it")
}
