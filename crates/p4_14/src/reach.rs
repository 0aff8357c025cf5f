//! What is run where: the control functions that parsers go on to, and the tables that ingress and egress apply.

use indexmap::{IndexMap, IndexSet};
use millrace_syntax::Span;
use millrace_syntax::ast::Name;
use millrace_syntax::p4_14::ast::{self as p14, Binding, Return, Stmt, Target};
use std::collections::HashSet;

use crate::codes;
use crate::translate::Translator;

/// Tables with the place where they are first applied.
pub(crate) type Applied<'a> = IndexMap<&'a str, Span>;

impl<'a> Translator<'a> {
    /// The control functions that the parser goes on to, in the order of their first mention.
    pub(crate) fn roots(&mut self) -> Vec<&'a p14::Control> {
        let mut names: IndexSet<&'a str> = IndexSet::new();
        for state in self.model.states.values() {
            match &state.ending {
                Some(Return::To(Target::Named(name))) => drop(names.insert(&name.text)),
                Some(Return::Select { cases, .. }) => {
                    for case in cases {
                        if let Target::Named(name) = &case.target {
                            names.insert(&name.text);
                        }
                    }
                }
                _ => {}
            }
        }
        names.extend(self.model.exceptions.values().filter_map(|e| e.target.as_ref()).map(|n| &*n.text));
        let roots: Vec<_> = names.iter().filter_map(|name| self.model.controls.get(name).copied()).collect();
        let leads_on = names.iter().any(|name| !self.model.states.contains_key(name));
        if roots.is_empty() && !leads_on && !self.model.states.is_empty() {
            let span = self.model.states.values().next().map_or(Span::default(), |s| s.name.span);
            let message = "no parser function goes on to a control function, such as `ingress`";
            self.error(codes::PARSER, span, message);
        }
        roots
    }

    /// The tables that control functions apply, those they call included.
    pub(crate) fn applied(&self, roots: &[&'a p14::Control]) -> Applied<'a> {
        let mut applied = Applied::new();
        let mut seen = HashSet::new();
        let mut open: Vec<&'a p14::Control> = roots.to_vec();
        while let Some(control) = open.pop() {
            if seen.insert(control.name.as_str()) {
                self.visit(&control.body, &mut applied, &mut open);
            }
        }
        applied
    }

    fn visit(&self, body: &'a [Stmt], applied: &mut Applied<'a>, open: &mut Vec<&'a p14::Control>) {
        for stmt in body {
            match stmt {
                Stmt::Apply { table, cases, .. } => {
                    applied.entry(&table.text).or_insert(table.span);
                    cases.iter().for_each(|case| self.visit(&case.body, applied, open));
                }
                Stmt::If { then, otherwise, .. } => {
                    self.visit(then, applied, open);
                    self.visit(otherwise, applied, open);
                }
                Stmt::Call { control, .. } => open.extend(self.model.controls.get(control.as_str()).copied()),
            }
        }
    }

    /// Objects of one table must not be used by another (specification sections 7.1 to 7.3).
    pub(crate) fn check_static(&mut self) {
        let counters = self.model.counters.values().map(|c| (&c.name, &c.binding));
        let meters = self.model.meters.values().map(|m| (&m.name, &m.binding));
        let registers = self.model.registers.values().map(|r| (&r.name, &r.binding));
        let owned: Vec<(&'a Name, &'a Name)> = counters
            .chain(meters)
            .chain(registers)
            .filter_map(|(object, binding)| match binding {
                Some(Binding::Static(table)) => Some((object, table)),
                _ => None,
            })
            .collect();
        if owned.is_empty() {
            return;
        }
        for table in self.model.tables.values().copied().collect::<Vec<_>>() {
            let actions: Vec<&'a str> = self.action_names(table).iter().map(|n| n.as_str()).collect();
            let used = self.mentioned(actions);
            for (object, owner) in &owned {
                if owner.text != table.name.text && used.contains(object.as_str()) {
                    let message = format!(
                        "`{object}` belongs to table `{owner}`, but an action of `{}` uses it",
                        table.name
                    );
                    let found = millrace_syntax::Diagnostic::error(codes::OBJECT, table.name.span, message);
                    self.report(found.with_secondary(object.span, "declared `static` here"));
                }
            }
        }
    }

    /// The names that stand as objects in actions and those they call.
    fn mentioned(&self, actions: Vec<&'a str>) -> HashSet<&'a str> {
        let mut names = HashSet::new();
        let mut seen = HashSet::new();
        let mut open = actions;
        while let Some(name) = open.pop() {
            let Some(action) = self.model.actions.get(name) else { continue };
            if !seen.insert(name) {
                continue;
            }
            for call in &action.body {
                open.push(call.name.as_str());
                for arg in &call.args {
                    if let p14::ExprKind::Reference(reference) = &arg.kind
                        && let Some(name) = reference.plain()
                        && !action.params.iter().any(|p| p.text == name.text)
                    {
                        names.insert(name.as_str());
                    }
                }
            }
        }
        names
    }
}
