//! Controls: what is applied, and in which order.

use crate::wording::{expression, text};
use crate::{Budget, Cluster, Graph, GraphsError, MAX_DEPTH, MAX_LABEL, NodeKind};
use millrace_sema::hir::{
    Call, Callee, ControlId, Expr, ExprKind, ForCollection, Program, Stmt, StmtKind, SwitchCase, TableId,
    TyKind,
};
use millrace_syntax::{SourceMap, Span};

/// Most characters of one of a row of statements.
const STATEMENT: usize = 25;

/// Draws a control of `main`.
pub(crate) fn graph(
    program: &Program,
    sources: &SourceMap,
    id: ControlId,
    budget: &mut Budget,
) -> Result<Graph, GraphsError> {
    let control = &program.controls[id];
    let mut graph = Graph::new(&control.name, false);
    let start = graph.node(budget, "__START__".into(), NodeKind::Other, 0)?;
    let exit = graph.node(budget, "__EXIT__".into(), NodeKind::Other, 0)?;
    let open = vec![Open { from: start, label: String::new() }];
    let mut drawing = Drawing {
        program,
        sources,
        budget,
        graph,
        exit,
        open,
        row: Vec::new(),
        returns: Vec::new(),
        loops: Vec::new(),
        cluster: 0,
        depth: 0,
    };
    drawing.body(&control.body)?;
    drawing.connect(exit)?;
    Ok(drawing.graph)
}

/// An edge whose end is not known yet.
#[derive(Clone)]
struct Open {
    from: usize,
    label: String,
}

/// What leaves a loop in its midst.
#[derive(Default)]
struct Loop {
    breaks: Vec<Open>,
    continues: Vec<Open>,
}

struct Drawing<'p> {
    program: &'p Program,
    sources: &'p SourceMap,
    budget: &'p mut Budget,
    graph: Graph,
    exit: usize,
    /// What the next node follows.
    open: Vec<Open>,
    /// Statements that will be one node.
    row: Vec<Span>,
    /// What has returned from each body that is being drawn.
    returns: Vec<Vec<Open>>,
    loops: Vec<Loop>,
    cluster: usize,
    depth: usize,
}

impl<'p> Drawing<'p> {
    /// A node after what is there.
    fn node(&mut self, label: String, kind: NodeKind) -> Result<usize, GraphsError> {
        self.end_row()?;
        let node = self.graph.node(self.budget, label, kind, self.cluster)?;
        self.connect(node)?;
        Ok(node)
    }

    /// Leads what is open to a node, after which it goes on.
    fn connect(&mut self, node: usize) -> Result<(), GraphsError> {
        for Open { from, label } in std::mem::take(&mut self.open) {
            self.graph.edge(self.budget, from, node, label)?;
        }
        self.follow(node, "");
        Ok(())
    }

    /// Goes on after a node.
    fn follow(&mut self, node: usize, label: &str) {
        self.open = vec![Open { from: node, label: label.to_owned() }];
    }

    /// The row of statements becomes a node: the first and the last of them.
    fn end_row(&mut self) -> Result<(), GraphsError> {
        let row = std::mem::take(&mut self.row);
        // What follows a return is never met.
        let (Some(first), Some(last)) = (row.first(), row.last()) else { return Ok(()) };
        let mut label = text(self.sources, *first, STATEMENT);
        if row.len() > 2 {
            label.push_str("\n...");
        }
        if row.len() > 1 {
            label.push('\n');
            label.push_str(&text(self.sources, *last, STATEMENT));
        }
        let node = self.graph.node(self.budget, label, NodeKind::Statements, self.cluster)?;
        self.connect(node)
    }

    /// The body of a control or an action, out of which `return` leads.
    fn body(&mut self, body: &'p [Stmt]) -> Result<(), GraphsError> {
        self.returns.push(Vec::new());
        self.statements(body)?;
        self.open.append(&mut self.returns.pop().unwrap_or_default());
        Ok(())
    }

    fn statements(&mut self, statements: &'p [Stmt]) -> Result<(), GraphsError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(GraphsError::TooLarge("statements and controls within each other", MAX_DEPTH));
        }
        for statement in statements {
            // Nothing leads to what follows `return` and `exit`.
            if self.open.is_empty() {
                break;
            }
            self.statement(statement)?;
        }
        self.end_row()?;
        self.depth -= 1;
        Ok(())
    }

    fn statement(&mut self, statement: &'p Stmt) -> Result<(), GraphsError> {
        match &statement.kind {
            StmtKind::Assign { lhs, rhs } | StmtKind::AssignOp { lhs, rhs, .. } => {
                self.tables_in(&[lhs, rhs])?;
                self.row.push(statement.span);
            }
            StmtKind::Call(call) => self.call(call, statement.span)?,
            StmtKind::Var(_, Some(value)) => {
                self.tables_in(&[value])?;
                self.row.push(statement.span);
            }
            StmtKind::Var(_, None) | StmtKind::Instance(_) => {}
            StmtKind::If { .. } => self.branch(statement)?,
            StmtKind::Block(statements) => {
                self.end_row()?;
                self.statements(statements)?;
            }
            StmtKind::Return(value) => {
                value.as_ref().map_or(Ok(()), |value| self.tables_in(&[value]))?;
                self.end_row()?;
                let open = std::mem::take(&mut self.open);
                if let Some(returns) = self.returns.last_mut() {
                    returns.extend(open);
                }
            }
            StmtKind::Exit => {
                self.end_row()?;
                self.connect(self.exit)?;
                self.open.clear();
            }
            StmtKind::SwitchAction { table, cases, default } => {
                self.table(*table)?;
                let names = |action: &_| action_name(self.program, *action);
                let labels = cases.iter().map(|case| case.labels.iter().map(names).collect()).collect();
                self.switch("switch: action_run".into(), labels, cases, default.as_deref())?;
            }
            StmtKind::SwitchValue { value, cases, default } => {
                self.tables_in(&[value])?;
                let words = |label: &Expr| expression(self.sources, label);
                let labels = cases.iter().map(|case| case.labels.iter().map(words).collect()).collect();
                self.switch(expression(self.sources, value), labels, cases, default.as_deref())?;
            }
            StmtKind::For { init, cond, update, body } => {
                self.statements(init)?;
                let node = self.node(expression(self.sources, cond), NodeKind::Condition)?;
                self.round(node, body, update)?;
            }
            StmtKind::ForIn { var, collection, body } => {
                let over = match collection {
                    ForCollection::Range(low, high) => {
                        format!("{} .. {}", expression(self.sources, low), expression(self.sources, high))
                    }
                    ForCollection::Elements(elements) => expression(self.sources, elements),
                };
                let label = format!("{} in {over}", expression(self.sources, var));
                let node = self.node(label, NodeKind::Condition)?;
                self.round(node, body, &[])?;
            }
            StmtKind::Break => self.leave(|loops| &mut loops.breaks)?,
            StmtKind::Continue => self.leave(|loops| &mut loops.continues)?,
        }
        Ok(())
    }

    /// `if` with all `else if` after it, of which there may be many.
    fn branch(&mut self, mut statement: &'p Stmt) -> Result<(), GraphsError> {
        let mut done = Vec::new();
        while let StmtKind::If { cond, then, els } = &statement.kind {
            self.tables_in(&[cond])?;
            let node = self.node(expression(self.sources, cond), NodeKind::Condition)?;
            self.follow(node, "TRUE");
            self.statements(then)?;
            done.append(&mut self.open);
            self.follow(node, "FALSE");
            match els.as_slice() {
                [only] if matches!(only.kind, StmtKind::If { .. }) => statement = only,
                els => {
                    self.statements(els)?;
                    break;
                }
            }
        }
        self.open.append(&mut done);
        Ok(())
    }

    fn switch<L>(
        &mut self,
        label: String,
        labels: Vec<Vec<String>>,
        cases: &'p [SwitchCase<L>],
        default: Option<&'p [Stmt]>,
    ) -> Result<(), GraphsError> {
        let node = self.node(label, NodeKind::Switch)?;
        let mut done = Vec::new();
        for (labels, case) in labels.into_iter().zip(cases) {
            self.open = labels.into_iter().map(|label| Open { from: node, label }).collect();
            self.statements(&case.body)?;
            done.append(&mut self.open);
        }
        self.follow(node, "default");
        self.statements(default.unwrap_or_default())?;
        self.open.append(&mut done);
        Ok(())
    }

    /// The body of a loop, which goes back to its condition.
    fn round(&mut self, node: usize, body: &'p [Stmt], update: &'p [Stmt]) -> Result<(), GraphsError> {
        self.loops.push(Loop::default());
        self.follow(node, "TRUE");
        self.statements(body)?;
        let Loop { breaks, mut continues } = self.loops.pop().unwrap_or_default();
        self.open.append(&mut continues);
        self.statements(update)?;
        self.connect(node)?;
        self.follow(node, "FALSE");
        self.open.extend(breaks);
        Ok(())
    }

    fn leave(&mut self, to: impl Fn(&mut Loop) -> &mut Vec<Open>) -> Result<(), GraphsError> {
        self.end_row()?;
        let open = std::mem::take(&mut self.open);
        if let Some(innermost) = self.loops.last_mut() {
            to(innermost).extend(open);
        }
        Ok(())
    }

    fn call(&mut self, call: &'p Call, span: Span) -> Result<(), GraphsError> {
        match &call.callee {
            Callee::Table(table) => self.table(*table),
            Callee::Apply(object) => match self.applied(object) {
                Some((name, control)) => self.inner(&name, control),
                None => {
                    self.row.push(span);
                    Ok(())
                }
            },
            _ => {
                let values: Vec<&Expr> = call.args.iter().filter_map(|arg| arg.value.as_ref()).collect();
                self.tables_in(&values)?;
                self.row.push(span);
                Ok(())
            }
        }
    }

    /// The control that an expression names, with the name of the instance.
    fn applied(&self, object: &Expr) -> Option<(String, ControlId)> {
        let ExprKind::Instance(id) = object.kind else { return None };
        let instance = &self.program.instances[id];
        let TyKind::Control(control) = self.program.types.kind(instance.ty) else { return None };
        let name = instance.name.clone();
        Some((name.unwrap_or_else(|| self.program.controls[*control].name.clone()), *control))
    }

    /// A control that this one applies.
    fn inner(&mut self, name: &str, control: ControlId) -> Result<(), GraphsError> {
        self.end_row()?;
        let outer = self.cluster;
        let path = &self.graph.clusters[outer].name;
        let name = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        // A cluster takes as much as a node.
        self.budget.nodes =
            self.budget.nodes.checked_sub(1).ok_or(GraphsError::TooLarge("nodes", crate::MAX_NODES))?;
        self.graph.clusters.push(Cluster { name, within: Some(outer) });
        self.cluster = self.graph.clusters.len() - 1;
        self.body(&self.program.controls[control].body)?;
        self.cluster = outer;
        Ok(())
    }

    /// A table: its name, its key, its actions.
    fn table(&mut self, id: TableId) -> Result<(), GraphsError> {
        let table = &self.program.tables[id];
        self.node(table.name.clone(), NodeKind::Table)?;
        if !table.keys.is_empty() {
            let mut label = String::new();
            for key in &table.keys {
                if label.len() > 8 * MAX_LABEL {
                    label.push_str("...");
                    break;
                }
                let name = key.name.chars().take(MAX_LABEL).collect::<String>();
                label.push_str(&format!("{}: {name}\n", key.match_kind));
            }
            self.node(label, NodeKind::Key)?;
        }
        if table.actions.is_empty() {
            return Ok(());
        }
        let (before, mut done) = (std::mem::take(&mut self.open), Vec::new());
        for action in &table.actions {
            self.open = before.clone();
            let action = &self.program.actions[action.action];
            self.node(action.name.clone(), NodeKind::Action)?;
            self.body(&action.body)?;
            done.append(&mut self.open);
        }
        self.open = done;
        Ok(())
    }

    /// Tables that expressions apply, as `t.apply().hit`, which are applied before.
    fn tables_in(&mut self, expressions: &[&'p Expr]) -> Result<(), GraphsError> {
        let mut left = expressions.to_vec();
        let mut tables = Vec::new();
        while let Some(expr) = left.pop() {
            match &expr.kind {
                ExprKind::TableHit(table) | ExprKind::TableMiss(table) => tables.push(*table),
                ExprKind::Field(base, _)
                | ExprKind::Slice(base, ..)
                | ExprKind::Unary(_, base)
                | ExprKind::Cast(base)
                | ExprKind::StackNext(base)
                | ExprKind::StackLast(base)
                | ExprKind::StackLastIndex(base)
                | ExprKind::IsValid(base) => left.push(base),
                ExprKind::Index(first, second) | ExprKind::Binary(_, first, second) => {
                    left.extend([&**second, &**first]);
                }
                ExprKind::Mux(cond, then, els) => left.extend([&**els, &**then, &**cond]),
                ExprKind::Aggregate(parts) | ExprKind::StackLiteral(parts) => left.extend(parts.iter().rev()),
                ExprKind::InTurn(parts) => left.extend(parts.iter().rev().map(|(_, part)| part)),
                ExprKind::Call(call) => {
                    if let Callee::Table(table) = &call.callee {
                        tables.push(*table);
                    }
                    left.extend(call.args.iter().rev().filter_map(|arg| arg.value.as_ref()));
                }
                _ => {}
            }
        }
        tables.into_iter().try_for_each(|table| self.table(table))
    }
}

fn action_name(program: &Program, action: millrace_sema::hir::ActionId) -> String {
    program.actions[action].name.clone()
}
