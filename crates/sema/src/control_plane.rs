//! Names for the control plane must be unique (specification, "Control plane names").

use crate::annotation::name_of;
use crate::check::Checker;
use crate::codes;
use crate::hir::{
    ActionId, ControlId, CtorArg, Direction, ExprKind, InstanceId, Local, ParserId, Program, Ty, TyKind,
    VarKind,
};
use cranelift_entity::SecondaryMap;
use foldhash::{HashMap, HashMapExt};
use millrace_syntax::ast::Annotation;
use millrace_syntax::{Diagnostic, Span};

/// The name of an action of core.p4 that programs may take for one of their own, too.
const NO_ACTION: &str = "NoAction";

impl Checker<'_> {
    /// Reports what would share a name in the control plane with something else of its kind.
    pub(crate) fn check_control_plane_names(&mut self) {
        self.check_declared_names();
        self.check_repeated_absolute_names();
    }

    /// Actions and tables by their declarations.
    fn check_declared_names(&mut self) {
        let mut problems = self.tables_of_one_name();
        problems.extend(self.actions_of_one_name());
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

    fn tables_of_one_name(&self) -> Vec<Problem> {
        let mut seen: HashMap<ControlPlaneName, (&str, Span)> = HashMap::new();
        let mut problems = Vec::new();
        for table in self.hir.tables.values() {
            let key = control_plane_name(&table.annotations, &table.name, table.control);
            let shown = key.1.clone();
            match seen.insert(key, (&table.name, table.span)) {
                // Two of one name in one scope are reported as such.
                Some((name, span)) if span != table.span && name != table.name => {
                    problems.push(("tables", shown, span, table.span));
                }
                _ => {}
            }
        }
        problems
    }

    /// The control plane names an action within a table. So several actions may have one name while they take the same action
    /// data and no table has two of them, as a `nop` in each control; p4c, which accepts any that P4Info is not asked for,
    /// writes such programs itself when it translates P4_14.
    fn actions_of_one_name(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut first: HashMap<ControlPlaneName, ActionId> = HashMap::new();
        let mut names: SecondaryMap<ActionId, Option<ActionId>> = SecondaryMap::new();
        for (id, action) in self.hir.actions.iter() {
            let key = control_plane_name(&action.annotations, &action.name, action.control);
            // A program may have its own `NoAction` next to that of core.p4, with data of its own.
            let shown = key.1.clone();
            let earliest = *first.entry(key).or_insert(id);
            names[id] = Some(earliest);
            let other = &self.hir.actions[earliest];
            // Two of one name in one scope are reported as such.
            let declared_twice = (&other.name, other.control) == (&action.name, action.control);
            if earliest != id
                && !declared_twice
                && shown != NO_ACTION
                && self.action_data(earliest) != self.action_data(id)
            {
                problems.push(("actions", shown, other.span, action.span));
            }
        }
        for table in self.hir.tables.values() {
            let mut listed: HashMap<ActionId, ActionId> = HashMap::new();
            for reference in &table.actions {
                let Some(name) = names[reference.action] else { continue };
                let earlier = *listed.entry(name).or_insert(reference.action);
                if earlier == reference.action {
                    continue;
                }
                let (first, later) = (earlier.min(reference.action), earlier.max(reference.action));
                let (one, other) = (&self.hir.actions[first], &self.hir.actions[later]);
                let shown = control_plane_name(&other.annotations, &other.name, other.control).1;
                if shown == NO_ACTION || self.action_data(earlier) == self.action_data(reference.action) {
                    problems.push(("actions", shown, one.span, other.span));
                }
            }
        }
        problems
    }

    /// What an entry gives to an action: names for the control plane and types of its parameters without direction.
    fn action_data(&self, action: ActionId) -> Vec<(String, Ty)> {
        let params = self.hir.actions[action].params.iter().map(|&param| &self.hir.vars[param]);
        let data = params.filter(|param| matches!(param.kind, VarKind::Param(Direction::None)));
        data.map(|param| (name_of(&param.annotations).unwrap_or_else(|| param.name.clone()), param.ty))
            .collect()
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

/// The control that a name is relative to, none for an absolute name, and the name.
type ControlPlaneName = (Option<ControlId>, String);

/// What shares a name, the name, and both places.
type Problem = (&'static str, String, Span, Span);

fn control_plane_name(
    annotations: &[Annotation],
    name: &str,
    control: Option<ControlId>,
) -> ControlPlaneName {
    let local = name_of(annotations).unwrap_or_else(|| name.to_string());
    match local.strip_prefix('.') {
        Some(absolute) => (None, absolute.to_string()),
        None => (control, local),
    }
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
