//! Control functions (specification section 13), put where they are called, and the two controls they become.

use millrace_syntax::ast::{BinaryOp, Declaration, Stmt, StmtKind, SwitchCase};
use millrace_syntax::p4_14::MAX_ELSE_IFS;
use millrace_syntax::p4_14::ast::{self as p14, ApplyCase, ApplyLabel};
use millrace_syntax::{Diagnostic, Span, nearest};

use crate::codes;
use crate::expr::Scope;
use crate::model::{self, PARSER_STATUS};
use crate::parser::{CHECKSUM, EXCEPTIONS};
use crate::translate::{Pipeline, Translator};
use crate::tree;

/// The most statements inside each other, when control functions are put where they are called.
const MAX_DEPTH: usize = 60;

/// The most control functions that call each other, one inside the other.
const MAX_CALL_DEPTH: usize = 64;

/// Which control function the parser goes on to, when there are several.
pub(crate) const ENTRY: &str = "entry";

impl<'a> Translator<'a> {
    /// Ingress or egress, with its tables.
    pub(crate) fn control(&mut self, pipeline: Pipeline, roots: &[&'a p14::Control]) -> Declaration {
        self.pipeline = pipeline;
        let egress: Vec<_> = self.model.controls.get("egress").copied().into_iter().collect();
        let roots = if pipeline == Pipeline::Ingress { roots.to_vec() } else { egress.clone() };
        let applied = self.applied(&roots);
        let in_egress = self.applied(&egress);
        for (name, table) in self.model.tables.clone() {
            let here = applied.contains_key(name);
            if pipeline == Pipeline::Ingress
                && let (Some(first), Some(second)) = (applied.get(name), in_egress.get(name))
            {
                let message =
                    format!("table `{name}` is applied in ingress and in egress: v1model has them apart");
                let found = Diagnostic::error(codes::ARCHITECTURE, *second, message);
                self.report(found.with_secondary(*first, "applied in ingress here"));
            }
            // What nobody applies is looked at all the same.
            if here && !(pipeline == Pipeline::Egress && self.tables.contains_key(name)) {
                self.table(table);
            } else if pipeline == Pipeline::Egress && !self.tables.contains_key(name) {
                self.checks_pipeline = false;
                self.table(table);
                self.checks_pipeline = true;
            }
        }
        let mut body = Vec::new();
        match pipeline {
            Pipeline::Ingress => self.ingress(&roots, &mut body),
            Pipeline::Egress => {
                self.initial_values(&mut body);
                if let Some(egress) = egress.first() {
                    self.call(egress, egress.name.span, 1, &mut body);
                }
                self.unused_actions();
                self.unused_controls();
                self.check_static();
            }
        }
        let span = roots.first().map_or(Span::default(), |c| c.span);
        let locals = std::mem::take(&mut self.locals);
        self.control_block(pipeline.block(), locals, body, span)
    }

    /// Ingress: what the program does about parser exceptions, else the control function that the parser went on to.
    fn ingress(&mut self, roots: &[&'a p14::Control], out: &mut Vec<Stmt>) {
        let span = Span::default();
        let mut normal = Vec::new();
        match roots {
            [] => {}
            [only] => self.call(only, only.name.span, 2, &mut normal),
            several => {
                for (i, root) in several.iter().enumerate() {
                    let mut body = Vec::new();
                    self.call(root, root.name.span, 3, &mut body);
                    let entry = self.hidden_expr(ENTRY, 8, span);
                    let number = self.tree.number(&i.into(), 8, false, span);
                    let condition = self.tree.binary(BinaryOp::Eq, entry, number, root.name.span);
                    normal.push(tree::if_stmt(condition, body, Vec::new(), root.span));
                }
            }
        }
        let mut rest = normal;
        if self.verifies() {
            let standard = self.standard.clone();
            let flag = self.tree.path(&[&standard, "checksum_error"], span);
            let zero = self.tree.number(&0.into(), 1, false, span);
            let right = self.tree.binary(BinaryOp::Eq, flag, zero, span);
            let handled = self.handler(CHECKSUM);
            rest = vec![tree::if_stmt(right, rest, handled, span)];
        }
        let handled = self.handlers();
        let standard = self.standard.clone();
        let error = self.tree.path(&[&standard, "parser_error"], span);
        let none = self.tree.error("NoError", span);
        let sound = self.tree.binary(BinaryOp::Eq, error, none, span);
        out.push(tree::if_stmt(sound, rest, handled, span));
    }

    /// What is done about each error of the parser.
    fn handlers(&mut self) -> Vec<Stmt> {
        let span = Span::default();
        let mut rest = self.handler("p4_pe_default");
        let mut errors: Vec<(String, String)> = Vec::new();
        for (exception, raised) in EXCEPTIONS {
            errors.extend(raised.iter().map(|error| ((*exception).to_owned(), (*error).to_owned())));
        }
        for error in &self.errors {
            if !errors.iter().any(|(_, e)| **e == **error) {
                errors.push((error.to_string(), error.to_string()));
            }
        }
        let others = self.model.exceptions.contains_key("p4_pe_default");
        for (exception, error) in errors.into_iter().rev() {
            let declared = self.model.exceptions.contains_key(exception.as_str());
            let raised = self.errors.contains(error.as_str()) || !error.starts_with("p4_pe_");
            if !raised || !(declared || others) {
                continue;
            }
            let body = self.handler(&exception);
            let standard = self.standard.clone();
            let found = self.tree.path(&[&standard, "parser_error"], span);
            let wanted = self.tree.error(&error, span);
            let condition = self.tree.binary(BinaryOp::Eq, found, wanted, span);
            rest = vec![tree::if_stmt(condition, body, rest, span)];
        }
        rest
    }

    /// What is done about one exception: what the program says, else what it says about all others, else the packet is
    /// dropped.
    fn handler(&mut self, exception: &str) -> Vec<Stmt> {
        let mut out = Vec::new();
        let declared = self.model.exceptions.get(exception).copied();
        let declared = declared.or_else(|| self.model.exceptions.get("p4_pe_default").copied());
        let number = self.exception_number(exception);
        match declared {
            Some(p14::ParserException { target: Some(target), statements, .. }) => {
                let span = target.span;
                let status = self.hidden_expr(PARSER_STATUS, 8, span);
                let number = self.tree.number(&number.into(), 8, false, span);
                out.push(tree::assign(status, number, span));
                for statement in statements {
                    self.exception_statement(statement, &mut out);
                }
                match self.model.controls.get(target.as_str()).copied() {
                    Some(control) => self.call(control, span, 3, &mut out),
                    None => {
                        let known: Vec<&str> = self.model.controls.keys().copied().collect();
                        model::unknown(&mut self.found, target, "control function", known.into_iter());
                    }
                }
            }
            _ => {
                let standard = self.tree.var(self.standard.clone(), Span::default());
                out.push(self.tree.function("mark_to_drop", vec![standard], Span::default()));
            }
        }
        out
    }

    /// Checks the control functions that nothing leads to.
    fn unused_controls(&mut self) {
        let roots = self.roots_without_findings();
        let mut seen = std::collections::HashSet::new();
        let mut open = roots;
        while let Some(control) = open.pop() {
            if seen.insert(control.name.as_str()) {
                open.extend(self.called(&control.body));
            }
        }
        let unused: Vec<_> =
            self.model.controls.values().copied().filter(|c| !seen.contains(c.name.as_str())).collect();
        for control in unused {
            self.call(control, control.name.span, 1, &mut Vec::new());
        }
    }

    fn roots_without_findings(&mut self) -> Vec<&'a p14::Control> {
        self.muted += 1;
        let mut roots = self.roots();
        self.muted -= 1;
        roots.extend(self.model.controls.get("egress").copied());
        roots
    }

    fn called(&self, body: &'a [p14::Stmt]) -> Vec<&'a p14::Control> {
        let mut controls = Vec::new();
        for stmt in body {
            match stmt {
                p14::Stmt::Call { control, .. } => {
                    controls.extend(self.model.controls.get(control.as_str()).copied());
                }
                p14::Stmt::If { then, otherwise, .. } => {
                    controls.extend(self.called(then));
                    controls.extend(self.called(otherwise));
                }
                p14::Stmt::Apply { cases, .. } => {
                    cases.iter().for_each(|case| controls.extend(self.called(&case.body)));
                }
            }
        }
        controls
    }

    // ---- Statements ----

    /// The statements of a control function, where it is called.
    fn call(&mut self, control: &'a p14::Control, at: Span, depth: usize, out: &mut Vec<Stmt>) {
        if self.stack.contains(&control.name.as_str()) {
            let message = format!("control function `{}` calls itself", control.name);
            let found = Diagnostic::error(codes::RECURSION, at, message);
            self.report(found.with_secondary(control.name.span, "declared here"));
            return;
        }
        if self.stack.len() >= MAX_CALL_DEPTH {
            let message = format!("control functions call each other more than {MAX_CALL_DEPTH} deep");
            self.error(codes::LIMIT, at, message);
            return;
        }
        self.stack.push(&control.name.text);
        self.statements(&control.body, depth, out);
        self.stack.pop();
    }

    fn statements(&mut self, body: &'a [p14::Stmt], depth: usize, out: &mut Vec<Stmt>) {
        for stmt in body {
            let span = match stmt {
                p14::Stmt::Apply { span, .. } | p14::Stmt::If { span, .. } | p14::Stmt::Call { span, .. } => {
                    *span
                }
            };
            if !self.count_statement(span) {
                return;
            }
            if depth > MAX_DEPTH {
                let message = format!("more than {MAX_DEPTH} statements are nested here, calls put in place");
                self.error(codes::LIMIT, span, message);
                return;
            }
            match stmt {
                p14::Stmt::Apply { table, cases, .. } => self.apply(table, cases, span, depth, out),
                p14::Stmt::If { .. } => self.choices(stmt, depth, out),
                p14::Stmt::Call { control, .. } => match self.model.controls.get(control.as_str()).copied() {
                    Some(called) => self.call(called, control.span, depth, out),
                    None => {
                        let known = self.model.controls.keys().copied();
                        model::unknown(&mut self.found, control, "control function", known);
                    }
                },
            }
        }
    }

    /// Counts a branch of `else if`: the tree gets higher with it.
    fn another_branch(&mut self, span: Span) -> bool {
        self.branches += 1;
        if self.branches > MAX_ELSE_IFS {
            let message = format!("more than {MAX_ELSE_IFS} branches follow each other, calls put in place");
            self.error(codes::LIMIT, span, message);
            return false;
        }
        self.count_statement(span)
    }

    /// An `if` with all that follows as `else if`, which is no nesting.
    fn choices(&mut self, first: &'a p14::Stmt, depth: usize, out: &mut Vec<Stmt>) {
        let mut branches = Vec::new();
        let mut last = Vec::new();
        let mut next = Some(first);
        let around = self.branches;
        while let Some(p14::Stmt::If { condition, then, otherwise, span }) = next {
            let condition = self.condition(condition, &Scope::Outside);
            let mut yes = Vec::new();
            self.statements(then, depth + 1, &mut yes);
            branches.push((condition, yes, *span));
            next = match otherwise.as_slice() {
                [chained @ p14::Stmt::If { span, .. }] if self.another_branch(*span) => Some(chained),
                [p14::Stmt::If { .. }] => None,
                others => {
                    self.statements(others, depth + 1, &mut last);
                    None
                }
            };
        }
        self.branches = around;
        for (condition, yes, span) in branches.into_iter().rev() {
            last = vec![tree::if_stmt(condition, yes, last, span)];
        }
        out.append(&mut last);
    }

    fn apply(
        &mut self,
        name: &'a millrace_syntax::ast::Name,
        cases: &'a [ApplyCase],
        span: Span,
        depth: usize,
        out: &mut Vec<Stmt>,
    ) {
        let Some(table) = self.tables.get(name.as_str()).cloned() else {
            if !self.model.tables.contains_key(name.as_str()) {
                let known = self.model.tables.keys().copied();
                model::unknown(&mut self.found, name, "table", known);
            }
            return;
        };
        let callee = self.tree.path(&[&table.name, "apply"], name.span);
        let applied = self.tree.call(callee, Vec::new(), Vec::new(), name.span);
        let all: Vec<&ApplyLabel> = cases.iter().flat_map(|case| &case.labels).collect();
        let by_result = all.iter().filter(|l| matches!(l, ApplyLabel::Hit(_) | ApplyLabel::Miss(_))).count();
        if cases.is_empty() {
            out.push(Stmt { kind: StmtKind::Call(applied), span });
        } else if by_result == all.len() {
            let (mut hit, mut miss) = (Vec::new(), Vec::new());
            for case in cases {
                for label in &case.labels {
                    let body = if matches!(label, ApplyLabel::Hit(_)) { &mut hit } else { &mut miss };
                    self.statements(&case.body, depth + 1, body);
                }
            }
            let condition = self.tree.member(applied, "hit", span);
            out.push(tree::if_stmt(condition, hit, miss, span));
        } else if by_result > 0 {
            let message = "`hit` and `miss` cannot stand next to actions";
            self.error(codes::TABLE, span, message);
        } else {
            let subject = self.tree.member(applied, "action_run", span);
            // P4_16 wants `default` at the end.
            let is_default =
                |case: &&ApplyCase| case.labels.iter().any(|l| matches!(l, ApplyLabel::Default(_)));
            let (last, first): (Vec<_>, Vec<_>) = cases.iter().partition(is_default);
            let mut cases: Vec<SwitchCase> = Vec::new();
            for case in first.into_iter().chain(last) {
                self.action_case(case, name, &table, depth, &mut cases);
            }
            out.push(Stmt { kind: StmtKind::Switch { subject, cases }, span });
        }
    }

    fn action_case(
        &mut self,
        case: &'a ApplyCase,
        table_name: &millrace_syntax::ast::Name,
        table: &crate::table::Known,
        depth: usize,
        made: &mut Vec<SwitchCase>,
    ) {
        let mut labels = Vec::new();
        for label in &case.labels {
            labels.push(match label {
                ApplyLabel::Action(name) => {
                    let Some(action) = table.actions.get(name.as_str()) else {
                        let message = format!("table `{table_name}` has no action `{name}`");
                        let mut found = Diagnostic::error(codes::TABLE, name.span, message)
                            .with_secondary(table_name.span, "applied here");
                        if let Some(near) = nearest(name.as_str(), table.actions.keys().map(String::as_str)) {
                            found = found.with_help(format!("`{near}` has a similar name"));
                        }
                        self.report(found);
                        return;
                    };
                    (Some(self.tree.var(action.as_str(), name.span)), name.span)
                }
                ApplyLabel::Default(span) | ApplyLabel::Hit(span) | ApplyLabel::Miss(span) => (None, *span),
            });
        }
        // Next to `default` the other labels say nothing.
        if let Some(default) = labels.iter().position(|(label, _)| label.is_none()) {
            labels = vec![labels.swap_remove(default)];
        }
        let mut body = Vec::new();
        self.statements(&case.body, depth + 1, &mut body);
        let mut body = Some(tree::block(body, case.span));
        let last = labels.len().saturating_sub(1);
        for (i, (label, label_span)) in labels.into_iter().enumerate() {
            made.push(SwitchCase { label, label_span, body: if i == last { body.take() } else { None } });
        }
    }
}
