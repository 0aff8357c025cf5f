//! Questions about the typed program that need a walk over its code.

use millrace_sema::hir::{
    self, ActionId, Arg, Call, Callee, ControlId, CtorArg, Expr, ExprKind, ForCollection, FunctionId,
    InstanceId, KeySet, Local, Stmt, StmtKind, Transition, TyKind, VarId,
};
use std::collections::HashSet;

use crate::objects::BlockType;

/// A part of the code.
pub(crate) enum Node<'a> {
    /// A statement.
    Stmt(&'a Stmt),
    /// An expression.
    Expr(&'a Expr),
    /// A call, as statement or expression.
    Call(&'a Call),
}

type Visitor<'v, 'a> = &'v mut dyn FnMut(Node<'a>);

/// Visits statements and what is in them.
pub(crate) fn walk_stmts<'a>(stmts: &'a [Stmt], f: Visitor<'_, 'a>) {
    stmts.iter().for_each(|s| walk_stmt(s, f));
}

fn walk_stmt<'a>(stmt: &'a Stmt, f: Visitor<'_, 'a>) {
    f(Node::Stmt(stmt));
    match &stmt.kind {
        StmtKind::Assign { lhs, rhs } | StmtKind::AssignOp { lhs, rhs, .. } => {
            walk_expr(lhs, f);
            walk_expr(rhs, f);
        }
        StmtKind::Call(call) => walk_call(call, f),
        StmtKind::Var(_, init) | StmtKind::Return(init) => init.iter().for_each(|e| walk_expr(e, f)),
        StmtKind::If { cond, then, els } => {
            walk_expr(cond, f);
            walk_stmts(then, f);
            walk_stmts(els, f);
        }
        StmtKind::Block(stmts) => walk_stmts(stmts, f),
        StmtKind::SwitchAction { cases, default, .. } => {
            cases.iter().for_each(|c| walk_stmts(&c.body, f));
            default.iter().for_each(|s| walk_stmts(s, f));
        }
        StmtKind::SwitchValue { value, cases, default } => {
            walk_expr(value, f);
            cases.iter().for_each(|c| walk_stmts(&c.body, f));
            default.iter().for_each(|s| walk_stmts(s, f));
        }
        StmtKind::For { init, cond, update, body } => {
            walk_stmts(init, f);
            walk_expr(cond, f);
            walk_stmts(update, f);
            walk_stmts(body, f);
        }
        StmtKind::ForIn { var, collection, body } => {
            walk_expr(var, f);
            match collection {
                ForCollection::Range(low, high) => {
                    walk_expr(low, f);
                    walk_expr(high, f);
                }
                ForCollection::Elements(list) => walk_expr(list, f),
            }
            walk_stmts(body, f);
        }
        StmtKind::Instance(_) | StmtKind::Exit | StmtKind::Break | StmtKind::Continue => {}
    }
}

/// Visits an expression and what is in it.
pub(crate) fn walk_expr<'a>(expr: &'a Expr, f: Visitor<'_, 'a>) {
    f(Node::Expr(expr));
    match &expr.kind {
        ExprKind::Field(e, _)
        | ExprKind::StackNext(e)
        | ExprKind::StackLast(e)
        | ExprKind::StackLastIndex(e)
        | ExprKind::Slice(e, _, _)
        | ExprKind::Unary(_, e)
        | ExprKind::Cast(e)
        | ExprKind::IsValid(e) => walk_expr(e, f),
        ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => {
            walk_expr(a, f);
            walk_expr(b, f);
        }
        ExprKind::Mux(a, b, c) => {
            walk_expr(a, f);
            walk_expr(b, f);
            walk_expr(c, f);
        }
        ExprKind::Aggregate(list) | ExprKind::StackLiteral(list) => list.iter().for_each(|e| walk_expr(e, f)),
        ExprKind::Call(call) => walk_call(call, f),
        _ => {}
    }
}

fn walk_call<'a>(call: &'a Call, f: Visitor<'_, 'a>) {
    f(Node::Call(call));
    match &call.callee {
        Callee::ExternMethod(e, _)
        | Callee::Apply(e)
        | Callee::SetValid(e)
        | Callee::SetInvalid(e)
        | Callee::PushFront(e, _)
        | Callee::PopFront(e, _) => walk_expr(e, f),
        Callee::Function(_) | Callee::Action(_) | Callee::ExternFunction(_) | Callee::Table(_) => {}
    }
    walk_args(&call.args, f);
}

fn walk_args<'a>(args: &'a [Arg], f: Visitor<'_, 'a>) {
    args.iter().filter_map(|a| a.value.as_ref()).for_each(|e| walk_expr(e, f));
}

/// Whether evaluating an expression can change something, fail, or end the packet.
pub(crate) fn has_effects(expr: &Expr) -> bool {
    let mut found = false;
    walk_expr(expr, &mut |node| match node {
        Node::Call(_) => found = true,
        Node::Expr(e) => {
            found |= matches!(
                e.kind,
                ExprKind::TableHit(_)
                    | ExprKind::TableMiss(_)
                    | ExprKind::StackNext(_)
                    | ExprKind::StackLast(_)
            );
        }
        Node::Stmt(_) => {}
    });
    found
}

/// The code that a block runs by itself: apply block or states, and the initial values of its variables.
fn walk_block<'a>(hir: &'a hir::Program, ty: BlockType, f: Visitor<'_, 'a>) {
    let locals = match ty {
        BlockType::Control(id) => {
            walk_stmts(&hir.controls[id].body, f);
            &hir.controls[id].locals
        }
        BlockType::Parser(id) => {
            let parser = &hir.parsers[id];
            for state in &parser.states {
                walk_stmts(&state.body, f);
                if let Transition::Select { keys, cases, .. } = &state.transition {
                    keys.iter().for_each(|e| walk_expr(e, f));
                    for keyset in cases.iter().flat_map(|c| &c.keysets) {
                        match keyset {
                            KeySet::Value(a) => walk_expr(a, f),
                            KeySet::Mask(a, b) | KeySet::Range(a, b) => {
                                walk_expr(a, f);
                                walk_expr(b, f);
                            }
                            KeySet::Any | KeySet::ValueSet(_) => {}
                        }
                    }
                }
            }
            &parser.locals
        }
    };
    for local in locals {
        if let Local::Var(_, Some(init)) = local {
            walk_expr(init, f);
        }
    }
}

/// At how many places a block applies one of its instances. An instance that is a constructor argument of another
/// counts twice: who gets it applies it, and may be instantiated again.
pub(crate) fn applications(hir: &hir::Program, block: BlockType, instance: InstanceId) -> usize {
    let mut count = 0;
    walk_block(hir, block, &mut |node| {
        if let Node::Call(Call { callee: Callee::Apply(e), .. }) = node {
            count += usize::from(matches!(e.kind, ExprKind::Instance(i) if i == instance));
        }
    });
    for (_, other) in hir.instances.iter() {
        for arg in &other.args {
            if let CtorArg::Expr(Expr { kind: ExprKind::Instance(i), .. }) = arg
                && *i == instance
            {
                count += 2;
            }
        }
    }
    count
}

/// Whether a block has tables, itself or in an instance that it may contain.
pub(crate) fn has_tables(hir: &hir::Program, block: BlockType) -> bool {
    fn control(hir: &hir::Program, id: ControlId, seen: &mut HashSet<ControlId>) -> bool {
        if !seen.insert(id) {
            return false;
        }
        let control_decl = &hir.controls[id];
        // What a constructor parameter brings in is not known here.
        let given = control_decl.ctor_params.iter().any(|p| {
            matches!(
                hir.types.kind(hir.vars[*p].ty),
                TyKind::Control(_) | TyKind::Parser(_) | TyKind::BlockType(..)
            )
        });
        let mut nested: Vec<InstanceId> = Vec::new();
        let mut found = given;
        for local in &control_decl.locals {
            match local {
                Local::Table(_) => found = true,
                Local::Instance(i) => nested.push(*i),
                _ => {}
            }
        }
        walk_block(hir, BlockType::Control(id), &mut |node| match node {
            Node::Stmt(Stmt { kind: StmtKind::Instance(i), .. }) => nested.push(*i),
            Node::Call(Call { callee: Callee::Apply(e), .. }) => {
                if let ExprKind::Instance(i) = e.kind {
                    nested.push(i);
                }
            }
            _ => {}
        });
        found
            || nested.into_iter().any(|i| match hir.types.kind(hir.instances[i].ty) {
                TyKind::Control(id) => control(hir, *id, seen),
                _ => false,
            })
    }
    match block {
        BlockType::Parser(_) => false,
        BlockType::Control(id) => control(hir, id, &mut HashSet::new()),
    }
}

/// The variables that an action may read or write, those of the actions it calls included.
pub(crate) fn mentions(hir: &hir::Program, action: ActionId) -> HashSet<VarId> {
    let mut vars = HashSet::new();
    visit_reachable(hir, &hir.actions[action].body, &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Var(v), .. }) = node {
            vars.insert(*v);
        }
    });
    vars
}

/// Whether an action may run `exit`, itself or in what it calls.
pub(crate) fn may_exit(hir: &hir::Program, action: ActionId) -> bool {
    let mut found = false;
    visit_reachable(hir, &hir.actions[action].body, &mut |node| {
        found |= matches!(node, Node::Stmt(Stmt { kind: StmtKind::Exit, .. }));
    });
    found
}

/// Visits statements and the actions and functions that they call; abstract methods count as called by any extern.
fn visit_reachable<'a>(hir: &'a hir::Program, stmts: &'a [Stmt], f: Visitor<'_, 'a>) {
    let mut actions: HashSet<ActionId> = HashSet::new();
    let mut functions: HashSet<FunctionId> = HashSet::new();
    let mut pending: Vec<&'a [Stmt]> = vec![stmts];
    while let Some(stmts) = pending.pop() {
        walk_stmts(stmts, &mut |node| {
            if let Node::Call(call) = &node {
                match &call.callee {
                    Callee::Action(id) if actions.insert(*id) => pending.push(&hir.actions[*id].body),
                    Callee::Function(id) if functions.insert(*id) => pending.push(&hir.functions[*id].body),
                    Callee::ExternMethod(receiver, _) => {
                        if let ExprKind::Instance(i) = receiver.kind {
                            for (_, id) in &hir.instances[i].methods {
                                if functions.insert(*id) {
                                    pending.push(&hir.functions[*id].body);
                                }
                            }
                        }
                    }
                    _ => {}
                }
            }
            f(node);
        });
    }
}
