//! Names for the control plane must be unique (specification, "Control plane names").

use crate::annotation::name_of;
use crate::check::Checker;
use crate::codes;
use crate::hir::{ControlId, CtorArg, ExprKind, InstanceId, Local, ParserId, Program, TyKind};
use millrace_syntax::ast::Annotation;
use millrace_syntax::{Diagnostic, Span};
use std::collections::HashMap;

impl Checker<'_> {
    /// Reports what would share a name in the control plane with something else of its kind.
    pub(crate) fn check_control_plane_names(&mut self) {
        self.check_declared_names();
        self.check_repeated_absolute_names();
    }

    /// Actions and tables by their declarations.
    fn check_declared_names(&mut self) {
        let name = |annotations: &[Annotation], name: &str, control: Option<ControlId>| {
            let local = name_of(annotations).unwrap_or_else(|| name.to_string());
            match local.strip_prefix('.') {
                Some(absolute) => (None, absolute.to_string()),
                None => (control, local),
            }
        };
        let actions = self.hir.actions.values().map(|a| {
            (
                name(&a.annotations, &a.name, a.control),
                Declared { name: &a.name, control: a.control, span: a.span },
            )
        });
        let tables = self.hir.tables.values().map(|t| {
            (
                name(&t.annotations, &t.name, t.control),
                Declared { name: &t.name, control: t.control, span: t.span },
            )
        });
        let (actions, tables): (Vec<_>, Vec<_>) = (actions.collect(), tables.collect());
        let mut problems = Vec::new();
        for (what, all) in [("actions", actions), ("tables", tables)] {
            let mut seen: HashMap<(Option<ControlId>, String), Declared<'_>> = HashMap::new();
            for (key, declared) in all {
                let shown = key.1.clone();
                if shown == "NoAction" {
                    // A program may have its own beside that of core.p4.
                    continue;
                }
                match seen.insert(key, declared) {
                    // Two of one name in one scope are reported as such.
                    Some(other)
                        if other.span != declared.span
                            && (other.name, other.control) != (declared.name, declared.control) =>
                    {
                        problems.push((what, shown, other.span, declared.span));
                    }
                    _ => {}
                }
            }
        }
        for (what, shown, earlier, span) in problems {
            self.report(
                Diagnostic::error(
                    codes::CONTROL_PLANE_NAME,
                    span,
                    format!("two {what} have the name `{shown}` for the control plane"),
                )
                .with_secondary(earlier, "the other one")
                .with_help("give one of them another `@name`"),
            );
        }
    }

    /// Tables and extern objects with an absolute name in a parser or control of which there are several instances. An
    /// action may be there several times: it is the same one.
    fn check_repeated_absolute_names(&mut self) {
        let mut found = Vec::new();
        for block in repeated_blocks(&self.hir) {
            let (locals, owner, declared) = match block {
                Block::Parser(id) => {
                    let parser = &self.hir.parsers[id];
                    (&parser.locals, &parser.name, parser.span)
                }
                Block::Control(id) => {
                    let control = &self.hir.controls[id];
                    (&control.locals, &control.name, control.span)
                }
            };
            for local in locals {
                let (annotations, span) = match local {
                    Local::Table(id) => (&self.hir.tables[*id].annotations, self.hir.tables[*id].span),
                    Local::Instance(id) => {
                        let made = &self.hir.instances[*id];
                        match self.hir.types.kind(made.ty) {
                            TyKind::Extern(..) | TyKind::ValueSet(_) => (&made.annotations, made.span),
                            _ => continue,
                        }
                    }
                    Local::Var(..) | Local::Action(_) => continue,
                };
                if let Some(name) = name_of(annotations)
                    && let Some(absolute) = name.strip_prefix('.')
                {
                    found.push((span, absolute.to_owned(), owner.clone(), declared));
                }
            }
        }
        for (span, name, owner, declared) in found {
            let message = format!("the name `{name}` stands for several things in the control plane");
            self.report(
                Diagnostic::error(codes::CONTROL_PLANE_NAME, span, message)
                    .with_secondary(declared, format!("each instance of `{owner}` has one"))
                    .with_help("without the leading dot, the name begins with that of the instance"),
            );
        }
    }
}

/// A table or action as it is declared.
#[derive(Clone, Copy)]
struct Declared<'p> {
    name: &'p str,
    control: Option<ControlId>,
    span: Span,
}

/// A declaration that has instances with contents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Block {
    Parser(ParserId),
    Control(ControlId),
}

/// The parsers and controls of which `main` has more than one instance, in order of declaration.
fn repeated_blocks(program: &Program) -> Vec<Block> {
    let mut counts: HashMap<Block, u8> = HashMap::new();
    // Blocks whose instances rose by one in number; two stand for any more, so this ends.
    let mut risen = Vec::new();
    if let Some(main) = program.main {
        let mut made = Vec::new();
        made_by(program, main, &mut made);
        count(&made, &mut counts, &mut risen);
    }
    while let Some(block) = risen.pop() {
        let locals = match block {
            Block::Parser(id) => &program.parsers[id].locals,
            Block::Control(id) => &program.controls[id].locals,
        };
        let mut made = Vec::new();
        for local in locals {
            if let Local::Instance(instance) = local {
                made_by(program, *instance, &mut made);
            }
        }
        count(&made, &mut counts, &mut risen);
    }
    let mut repeated: Vec<Block> =
        counts.into_iter().filter(|(_, count)| *count > 1).map(|(block, _)| block).collect();
    repeated.sort();
    repeated
}

fn count(made: &[Block], counts: &mut HashMap<Block, u8>, risen: &mut Vec<Block>) {
    for block in made {
        let count = counts.entry(*block).or_default();
        if *count < 2 {
            *count += 1;
            risen.push(*block);
        }
    }
}

/// The parsers and controls that an instance is or is given: those made in place as its arguments, too.
fn made_by(program: &Program, instance: InstanceId, made: &mut Vec<Block>) {
    let mut open = vec![instance];
    while let Some(instance) = open.pop() {
        let instance = &program.instances[instance];
        match program.types.kind(instance.ty) {
            TyKind::Parser(id) => made.push(Block::Parser(*id)),
            TyKind::Control(id) => made.push(Block::Control(*id)),
            _ => {}
        }
        open.extend(instance.args.iter().filter_map(|argument| match argument {
            CtorArg::Expr(expr) => match expr.kind {
                ExprKind::Instance(given) => Some(given),
                _ => None,
            },
            CtorArg::Omitted => None,
        }));
    }
}
