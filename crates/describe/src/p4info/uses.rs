//! What a piece of code uses: the tables that it applies, the extern functions that it calls, the instances it applies.

use millrace_sema::hir::{
    ActionId, Arg, Call, Callee, Control, Expr, ExprKind, ForCollection, FunctionId, InstanceId, Parser,
    Program, Stmt, StmtKind, TableId, Transition,
};
use std::collections::HashSet;

/// How deep calls are followed; a program that nests them deeper cannot be compiled.
const MAX_CALLS: usize = 128;

/// The uses, in order of first appearance.
#[derive(Default)]
pub(super) struct Uses<'a> {
    /// Tables applied.
    pub(super) tables: Vec<TableId>,
    /// Actions that the control itself calls.
    pub(super) actions: Vec<ActionId>,
    /// Calls of extern functions.
    pub(super) extern_calls: Vec<&'a Call>,
    /// Instances declared in the code or applied by it.
    pub(super) instances: Vec<InstanceId>,
    functions: HashSet<FunctionId>,
    instances_seen: HashSet<InstanceId>,
    entered: HashSet<ActionId>,
    /// How deep in actions that call actions.
    depth: usize,
    /// How deep in calls of any kind.
    calls: usize,
}

impl<'a> Uses<'a> {
    /// Of the body of a control.
    pub(super) fn of_control(program: &'a Program, control: &'a Control) -> Uses<'a> {
        let mut uses = Uses::default();
        uses.stmts(program, &control.body);
        // The key of a table may apply another one.
        let mut next = 0;
        while let Some(&table) = uses.tables.get(next) {
            program.tables[table].keys.iter().for_each(|key| uses.expr(program, &key.expr));
            next += 1;
        }
        uses
    }

    /// Of the states of a parser.
    pub(super) fn of_parser(program: &'a Program, parser: &'a Parser) -> Uses<'a> {
        let mut uses = Uses::default();
        for state in &parser.states {
            uses.stmts(program, &state.body);
            if let Transition::Select { keys, .. } = &state.transition {
                keys.iter().for_each(|key| uses.expr(program, key));
            }
        }
        uses
    }

    /// Adds those of the body of an action of a table.
    pub(super) fn table_action(&mut self, program: &'a Program, action: ActionId) {
        self.depth += 1;
        self.stmts(program, &program.actions[action].body);
        self.depth -= 1;
    }

    fn stmts(&mut self, program: &'a Program, stmts: &'a [Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(program, stmt));
    }

    fn stmt(&mut self, program: &'a Program, mut stmt: &'a Stmt) {
        // A chain of `else if` may be long.
        while let StmtKind::If { cond, then, els } = &stmt.kind
            && let [next] = els.as_slice()
            && !matches!(cond.kind, ExprKind::Bool(_))
        {
            self.expr(program, cond);
            self.stmts(program, then);
            stmt = next;
        }
        match &stmt.kind {
            StmtKind::Assign { lhs, rhs } | StmtKind::AssignOp { lhs, rhs, .. } => {
                self.expr(program, lhs);
                self.expr(program, rhs);
            }
            StmtKind::Call(call) => self.call(program, call),
            StmtKind::Var(_, value) => value.iter().for_each(|value| self.expr(program, value)),
            StmtKind::Instance(instance) => self.instance(*instance),
            StmtKind::If { cond, then, els } => {
                self.expr(program, cond);
                // What a condition known at compile time leaves out, no packet meets.
                if !matches!(cond.kind, ExprKind::Bool(false)) {
                    self.stmts(program, then);
                }
                if !matches!(cond.kind, ExprKind::Bool(true)) {
                    self.stmts(program, els);
                }
            }
            StmtKind::Block(body) => self.stmts(program, body),
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(program, value)),
            StmtKind::SwitchAction { table, cases, default } => {
                add(&mut self.tables, *table);
                cases.iter().for_each(|case| self.stmts(program, &case.body));
                default.iter().for_each(|body| self.stmts(program, body));
            }
            StmtKind::SwitchValue { value, cases, default } => {
                self.expr(program, value);
                cases.iter().for_each(|case| self.stmts(program, &case.body));
                default.iter().for_each(|body| self.stmts(program, body));
            }
            StmtKind::For { init, cond, update, body } => {
                self.stmts(program, init);
                self.expr(program, cond);
                self.stmts(program, update);
                self.stmts(program, body);
            }
            StmtKind::ForIn { collection, body, .. } => {
                match collection {
                    ForCollection::Range(low, high) => {
                        self.expr(program, low);
                        self.expr(program, high);
                    }
                    ForCollection::Elements(elements) => self.expr(program, elements),
                }
                self.stmts(program, body);
            }
            StmtKind::Exit | StmtKind::Break | StmtKind::Continue => {}
        }
    }

    fn expr(&mut self, program: &'a Program, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::TableHit(table) | ExprKind::TableMiss(table) => add(&mut self.tables, *table),
            ExprKind::Call(call) => self.call(program, call),
            ExprKind::Field(base, _)
            | ExprKind::StackNext(base)
            | ExprKind::StackLast(base)
            | ExprKind::StackLastIndex(base)
            | ExprKind::Slice(base, ..)
            | ExprKind::Unary(_, base)
            | ExprKind::Cast(base)
            | ExprKind::IsValid(base) => self.expr(program, base),
            ExprKind::Index(left, right) | ExprKind::Binary(_, left, right) => {
                self.expr(program, left);
                self.expr(program, right);
            }
            ExprKind::Mux(cond, then, els) => {
                [cond, then, els].iter().for_each(|part| self.expr(program, part))
            }
            ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => {
                members.iter().for_each(|member| self.expr(program, member));
            }
            ExprKind::InTurn(members) => members.iter().for_each(|(_, member)| self.expr(program, member)),
            _ => {}
        }
    }

    fn instance(&mut self, instance: InstanceId) {
        if self.instances_seen.insert(instance) {
            self.instances.push(instance);
        }
    }

    fn call(&mut self, program: &'a Program, call: &'a Call) {
        match &call.callee {
            Callee::Table(table) => add(&mut self.tables, *table),
            Callee::ExternFunction(_) => self.extern_calls.push(call),
            Callee::Function(id) => {
                // Neither functions nor actions recurse, but one may be called at many places.
                if self.calls < MAX_CALLS && self.functions.insert(*id) {
                    self.calls += 1;
                    self.stmts(program, &program.functions[*id].body);
                    self.calls -= 1;
                }
            }
            Callee::Action(id) => {
                if self.depth == 0 {
                    add(&mut self.actions, *id);
                }
                if self.calls < MAX_CALLS && self.entered.insert(*id) {
                    self.calls += 1;
                    self.depth += 1;
                    self.stmts(program, &program.actions[*id].body);
                    self.depth -= 1;
                    self.calls -= 1;
                }
            }
            Callee::Apply(object) => match object.kind {
                ExprKind::Instance(instance) => self.instance(instance),
                _ => self.expr(program, object),
            },
            Callee::ExternMethod(object, _)
            | Callee::SetValid(object)
            | Callee::SetInvalid(object)
            | Callee::PushFront(object, _)
            | Callee::PopFront(object, _) => self.expr(program, object),
        }
        let values = call.args.iter().filter_map(|Arg { value, .. }| value.as_ref());
        values.for_each(|value| self.expr(program, value));
    }
}

/// For lists of what is declared, each with text of its own.
fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}
