//! What a program for v1model may mean otherwise than its author thinks. A program with such findings runs all the same.

use millrace_sema::hir::{self, Call, Callee, Expr, ExprKind, Program, Stmt, StmtKind, TyKind};
use millrace_syntax::{Diagnostic, Diagnostics};
use num_traits::ToPrimitive;
use std::collections::BTreeSet;

use super::field_list;
use crate::fail::code;
use crate::names::is_called;
use crate::survey::{Node, walk_stmts};

/// The findings, in the order of declaration.
pub(crate) fn advice(program: &Program) -> Diagnostics {
    let lists = lists(program);
    let mut found = Diagnostics::new();
    let mut look = |stmts: &[Stmt]| {
        walk_stmts(stmts, &mut |node| match node {
            Node::Stmt(Stmt {
                kind: StmtKind::Assign { lhs, .. } | StmtKind::AssignOp { lhs, .. }, ..
            }) => {
                if let Some(warning) = assigned(program, lhs) {
                    found.push(warning);
                }
            }
            Node::Call(call) => {
                if let Some(warning) = called(program, call, &lists) {
                    found.push(warning);
                }
            }
            _ => {}
        });
    };
    program.functions.values().for_each(|function| look(&function.body));
    program.actions.values().for_each(|action| look(&action.body));
    program.controls.values().for_each(|control| look(&control.body));
    program.parsers.values().flat_map(|parser| &parser.states).for_each(|state| look(&state.body));
    found
}

/// `standard_metadata.egress_port = 3`: the switch has chosen by `egress_spec` when it sets this.
fn assigned(program: &Program, lhs: &Expr) -> Option<Diagnostic> {
    let ExprKind::Field(base, field) = &lhs.kind else { return None };
    let TyKind::Struct(id) = program.types.kind(base.ty) else { return None };
    let declared = &program.types.structs[*id];
    if declared.name != "standard_metadata_t" || declared.fields[*field].name != "egress_port" {
        return None;
    }
    let message = "assigning `egress_port` does not change where the packet leaves";
    Some(
        Diagnostic::warning(code::READ_ONLY, lhs.span, message)
            .with_help("`egress_spec` chooses the port, in ingress; `egress_port` is for reading, in egress"),
    )
}

/// `clone_preserving_field_list(..., 3)` where no field has `@field_list(3)`: nothing is kept.
fn called(program: &Program, call: &Call, lists: &BTreeSet<u32>) -> Option<Diagnostic> {
    let Callee::ExternFunction(function) = call.callee else { return None };
    let name = program.extern_functions[function].name.as_str();
    if !matches!(
        name,
        "clone_preserving_field_list"
            | "resubmit_preserving_field_list"
            | "recirculate_preserving_field_list"
    ) {
        return None;
    }
    let list = call.args.last()?.value.as_ref()?;
    let number = match &list.kind {
        ExprKind::Int(number) => number.to_u32()?,
        ExprKind::Cast(inner) => match &inner.kind {
            ExprKind::Int(number) => number.to_u32()?,
            _ => return None,
        },
        _ => return None,
    };
    // Programs write 0 where nothing is to be kept, and so does the translation of P4_14.
    if number == 0 || lists.contains(&number) {
        return None;
    }
    let message = format!("field list {number} has no fields, so `{name}` keeps nothing");
    Some(
        Diagnostic::warning(code::EMPTY_LIST, list.span, message)
            .with_help(format!("put `@field_list({number})` on the fields of the metadata to keep")),
    )
}

/// The numbers of the lists that some field is in.
fn lists(program: &Program) -> BTreeSet<u32> {
    let fields = program.types.structs.values().flat_map(|declared: &hir::Struct| &declared.fields);
    let annotations = fields.flat_map(|field| field.annotations.iter());
    let named = annotations.filter(|annotation| is_called(annotation, "field_list"));
    named.filter_map(|annotation| field_list::numbers(program, annotation).ok()).flatten().collect()
}
