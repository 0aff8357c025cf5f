//! Questions about the typed program that need a walk over its code.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use millrace_sema::hir::{
    self, ActionId, Arg, Call, Callee, ControlId, CtorArg, Expr, ExprKind, ForCollection, FunctionId,
    InstanceId, KeySet, Local, Stmt, StmtKind, TableId, Transition, TyKind, VarId,
};
use std::rc::Rc;

use crate::context::Lowering;
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
        ExprKind::InTurn(list) => list.iter().for_each(|(_, e)| walk_expr(e, f)),
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

/// What walks over the code found, each made once.
#[derive(Debug, Default)]
pub(crate) struct Surveyed {
    applications: HashMap<BlockType, HashMap<InstanceId, usize>>,
    given: Option<HashMap<InstanceId, usize>>,
    has_tables: HashMap<BlockType, bool>,
    mentions: HashMap<ActionId, Rc<HashSet<VarId>>>,
    may_exit: HashMap<ActionId, bool>,
    table_may_exit: HashMap<TableId, bool>,
}

impl Lowering<'_> {
    /// At how many places a block applies one of its instances. An instance that is a constructor argument of another
    /// counts twice: who gets it applies it, and may be instantiated again.
    pub(crate) fn applications(&mut self, block: BlockType, instance: InstanceId) -> usize {
        let hir = self.hir;
        let applied = self.surveyed.applications.entry(block).or_insert_with(|| applied_in(hir, block));
        let given = self.surveyed.given.get_or_insert_with(|| given_to_others(hir));
        let count = |map: &HashMap<InstanceId, usize>| map.get(&instance).copied().unwrap_or(0);
        count(applied) + 2 * count(given)
    }

    /// Whether a block has tables, itself or in an instance that it may contain.
    pub(crate) fn has_tables(&mut self, block: BlockType) -> bool {
        has_tables(self.hir, block, &mut self.surveyed.has_tables)
    }

    /// The variables that an action may read or write, those of the actions it calls included.
    pub(crate) fn mentions(&mut self, action: ActionId) -> Rc<HashSet<VarId>> {
        if let Some(known) = self.surveyed.mentions.get(&action) {
            return known.clone();
        }
        let mut vars = HashSet::new();
        let visits = &mut self.budget.visits;
        visit_reachable(self.hir, &self.hir.actions[action].body, &mut |node| {
            *visits += 1;
            if let Node::Expr(Expr { kind: ExprKind::Var(v), .. }) = node {
                vars.insert(*v);
            }
        });
        let vars = Rc::new(vars);
        self.surveyed.mentions.insert(action, vars.clone());
        vars
    }

    /// Whether an action of a table may run `exit`.
    pub(crate) fn table_may_exit(&mut self, table: TableId) -> bool {
        if let Some(known) = self.surveyed.table_may_exit.get(&table) {
            return *known;
        }
        let hir = self.hir;
        let found = hir.tables[table].actions.iter().any(|a| self.may_exit(a.action));
        self.surveyed.table_may_exit.insert(table, found);
        found
    }

    /// Whether an action may run `exit`, itself or in what it calls.
    fn may_exit(&mut self, action: ActionId) -> bool {
        if let Some(known) = self.surveyed.may_exit.get(&action) {
            return *known;
        }
        let mut found = false;
        let visits = &mut self.budget.visits;
        visit_reachable(self.hir, &self.hir.actions[action].body, &mut |node| {
            *visits += 1;
            found |= matches!(node, Node::Stmt(Stmt { kind: StmtKind::Exit, .. }));
        });
        self.surveyed.may_exit.insert(action, found);
        found
    }
}

fn applied_in(hir: &hir::Program, block: BlockType) -> HashMap<InstanceId, usize> {
    let mut applied = HashMap::new();
    walk_block(hir, block, &mut |node| {
        if let Node::Call(Call { callee: Callee::Apply(e), .. }) = node
            && let ExprKind::Instance(instance) = e.kind
        {
            *applied.entry(instance).or_insert(0) += 1;
        }
    });
    applied
}

/// How often each instance is a constructor argument of another.
fn given_to_others(hir: &hir::Program) -> HashMap<InstanceId, usize> {
    let mut given = HashMap::new();
    for arg in hir.instances.values().flat_map(|other| &other.args) {
        if let CtorArg::Expr(Expr { kind: ExprKind::Instance(instance), .. }) = arg {
            *given.entry(*instance).or_insert(0) += 1;
        }
    }
    given
}

fn has_tables(hir: &hir::Program, block: BlockType, known: &mut HashMap<BlockType, bool>) -> bool {
    let BlockType::Control(id) = block else { return false };
    if let Some(known) = known.get(&block) {
        return *known;
    }
    // Until it is known: controls do not contain themselves.
    known.insert(block, false);
    let control = &hir.controls[id];
    // What a constructor parameter brings in is not known here.
    let given = control.ctor_params.iter().any(|p| {
        matches!(
            hir.types.kind(hir.vars[*p].ty),
            TyKind::Control(_) | TyKind::Parser(_) | TyKind::BlockType(..)
        )
    });
    let mut nested: HashSet<ControlId> = HashSet::new();
    let mut found = given;
    let mut note = |instance: InstanceId| {
        if let TyKind::Control(id) = hir.types.kind(hir.instances[instance].ty) {
            nested.insert(*id);
        }
    };
    for local in &control.locals {
        match local {
            Local::Table(_) => found = true,
            Local::Instance(instance) => note(*instance),
            _ => {}
        }
    }
    walk_block(hir, block, &mut |node| match node {
        Node::Stmt(Stmt { kind: StmtKind::Instance(instance), .. }) => note(*instance),
        Node::Call(Call { callee: Callee::Apply(e), .. }) => {
            if let ExprKind::Instance(instance) = e.kind {
                note(instance);
            }
        }
        _ => {}
    });
    found = found || nested.into_iter().any(|id| has_tables(hir, BlockType::Control(id), known));
    known.insert(block, found);
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
