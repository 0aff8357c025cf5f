//! From `main` to the list of what the control plane can name: instances are walked as a packet meets them.

use super::annotations::{number, qualified, string};
use super::ids::{Kind, Symbols};
use super::objects::Builder;
use super::types::Types;
use super::uses::Uses;
use super::{Description, annotations};
use millrace_sema::hir::{
    ActionId, Call, Callee, ControlId, CtorArg, Expr, ExprKind, InstanceId, Local, ParserId, Program,
    StructId, StructKind, TableId, Ty, TyKind,
};
use millrace_sema::{Constant, evaluate};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The values of constructor parameters within one instance.
pub(super) type Values = Rc<HashMap<millrace_sema::hir::VarId, Constant>>;

/// How deep instances may stand in one another; the language forbids recursion, this bounds damage.
const MAX_DEPTH: usize = 64;

/// The architecture that a program is written for, by the name of its package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture<'a>(pub &'a str);

impl Architecture<'_> {
    /// As P4Info and p4c spell it. p4c takes it from its command line, where `v1model` is what it is when nothing is
    /// said; so it is here for a package that is not known.
    pub fn name(self) -> &'static str {
        match self.0 {
            "PSA_Switch" => "psa",
            "PNA_NIC" => "pna",
            "ubpf" => "ubpf",
            "ebpfFilter" => "ebpf",
            "xdp" => "xdp",
            "SimpleSumeSwitch" => "sume",
            _ => "v1model",
        }
    }
}

/// Describes a program that the checker accepted.
pub fn describe(program: &Program) -> Description {
    let mut found = Found::collect(program);
    let ids = std::mem::take(&mut found.symbols).assign();
    Builder { program, found: &found, ids, types: Types::new(program), users: None }.build()
}

/// A table as it is instantiated.
pub(super) struct FoundTable {
    pub(super) table: TableId,
    pub(super) name: String,
    /// The prefix of names in its control.
    pub(super) prefix: String,
    pub(super) values: Values,
}

/// An action that a table lists or that is called.
pub(super) struct FoundAction {
    pub(super) action: ActionId,
    pub(super) name: String,
    /// Whether the control plane can give it data: some table lists it.
    pub(super) in_table: bool,
}

/// An extern instance that has a resource of its own.
pub(super) struct FoundExtern {
    pub(super) instance: InstanceId,
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) values: Values,
}

/// What a program shows, before ids.
#[derive(Default)]
pub(super) struct Found<'a> {
    pub(super) tables: Vec<FoundTable>,
    /// One action in two controls is two.
    pub(super) actions: Vec<FoundAction>,
    pub(super) externs: Vec<FoundExtern>,
    pub(super) value_sets: Vec<FoundExtern>,
    /// Name and type of what is sent.
    pub(super) digests: Vec<(String, Ty)>,
    pub(super) controller_headers: Vec<StructId>,
    /// The names of extern instances, by the prefix of the block that has them: a control with two instances has two of each.
    instance_names: HashMap<(InstanceId, String), String>,
    /// Anything met that P4Info could describe with types.
    pub(super) uses_types: bool,
    architecture: &'static str,
    symbols: Symbols,
    seen: HashSet<(Kind, String)>,
    /// Where in `actions` the action of a name is.
    action_places: HashMap<String, usize>,
    digests_without_name: usize,
    /// What the code of each parser and control uses, found once for all of its instances.
    parsers: HashMap<ParserId, Rc<Uses<'a>>>,
    controls: HashMap<ControlId, Rc<ControlUses<'a>>>,
}

/// What the code of a control uses, that of its actions included.
struct ControlUses<'a> {
    uses: Uses<'a>,
    /// The tables that it applies.
    applied: HashSet<TableId>,
    /// Their actions, each once, in order.
    actions: Vec<ActionId>,
}

impl<'a> ControlUses<'a> {
    fn new(program: &'a Program, control: ControlId) -> ControlUses<'a> {
        let mut uses = Uses::of_control(program, &program.controls[control]);
        let applied = uses.tables.clone();
        let mut seen = HashSet::new();
        let mut actions = Vec::new();
        for &table in &applied {
            actions.extend(table_actions(program, table).into_iter().filter(|action| seen.insert(*action)));
        }
        for &action in &actions {
            uses.table_action(program, action);
        }
        ControlUses { uses, applied: applied.into_iter().collect(), actions }
    }
}

impl<'a> Found<'a> {
    fn collect(program: &'a Program) -> Found<'a> {
        let mut found = Found::default();
        for &global in &program.globals {
            if let TyKind::Extern(..) = program.types.kind(program.instances[global].ty) {
                found.extern_instance(program, global, "", &Values::default());
            }
        }
        if let Some(main) = program.main {
            if let TyKind::Package(package, _) = program.types.kind(program.instances[main].ty) {
                found.architecture = Architecture(&program.packages[*package].name).name();
            }
            found.arguments(program, main, &Values::default(), 0);
        }
        for &ty in &program.type_decls {
            let TyKind::Struct(id) = program.types.kind(ty) else { continue };
            let declared = &program.types.structs[*id];
            let header = declared.kind == StructKind::Header;
            if header && annotations::find(&declared.annotations, "controller_header").is_some() {
                let name = string(&declared.annotations, "name").unwrap_or_else(|| declared.name.clone());
                found.symbols.add(Kind::ControllerHeader, &name, number(&declared.annotations, "id"));
                found.controller_headers.push(*id);
            }
        }
        found
    }

    /// The instances that are the arguments of a package.
    fn arguments(&mut self, program: &'a Program, package: InstanceId, values: &Values, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for argument in &program.instances[package].args {
            let CtorArg::Expr(expr) = argument else { continue };
            let Some(instance) = instance_of(program, expr, values) else { continue };
            match program.types.kind(program.instances[instance].ty) {
                TyKind::Package(..) => self.arguments(program, instance, values, depth + 1),
                TyKind::Extern(..) => self.extern_instance(program, instance, "", values),
                // The names of what is in there begin with the declared name; p4c has it so, whatever its `@name`.
                kind => {
                    if let Some(name) = block_name(program, kind) {
                        self.block(program, instance, name, values, depth + 1);
                    }
                }
            }
        }
    }

    /// An instance of a parser or a control, with what is in it.
    fn block(
        &mut self,
        program: &'a Program,
        instance: InstanceId,
        prefix: &str,
        outer: &Values,
        depth: usize,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        let values = |params| constructor_values(program, params, instance, outer);
        match program.types.kind(program.instances[instance].ty) {
            TyKind::Parser(parser) => {
                let declared = &program.parsers[*parser];
                let uses =
                    self.parsers.entry(*parser).or_insert_with(|| Uses::of_parser(program, declared).into());
                let uses = Rc::clone(uses);
                let values = values(&declared.ctor_params);
                self.locals(program, &declared.locals, &uses, prefix, &values, depth);
            }
            TyKind::Control(control) => {
                let values = values(&program.controls[*control].ctor_params);
                self.control(program, *control, prefix, &values, depth);
            }
            _ => {}
        }
    }

    fn control(
        &mut self,
        program: &'a Program,
        control: ControlId,
        prefix: &str,
        values: &Values,
        depth: usize,
    ) {
        let declared = &program.controls[control];
        let known = self.controls.entry(control).or_insert_with(|| ControlUses::new(program, control).into());
        let known = Rc::clone(known);
        let ControlUses { uses, applied, actions } = &*known;
        self.locals(program, &declared.locals, uses, prefix, values, depth);
        for &action in actions {
            self.action(program, action, prefix, true);
        }
        for &action in &uses.actions {
            self.action(program, action, prefix, false);
        }
        for local in &declared.locals {
            let Local::Table(table) = local else { continue };
            if applied.contains(table) {
                self.table(program, *table, prefix, values);
            }
        }
        self.extern_calls(program, &uses.extern_calls);
    }

    fn locals(
        &mut self,
        program: &'a Program,
        locals: &[Local],
        uses: &Uses<'_>,
        prefix: &str,
        values: &Values,
        depth: usize,
    ) {
        let declared = locals.iter().filter_map(|local| match local {
            Local::Instance(instance) => Some(*instance),
            _ => None,
        });
        let mut instances: Vec<InstanceId> = declared.collect();
        let mut known: HashSet<InstanceId> = instances.iter().chain(&program.globals).copied().collect();
        for instance in &uses.instances {
            if known.insert(*instance) {
                instances.push(*instance);
            }
        }
        for instance in instances {
            let made = &program.instances[instance];
            match program.types.kind(made.ty) {
                TyKind::Extern(..) => self.extern_instance(program, instance, prefix, values),
                TyKind::ValueSet(_) => {
                    let name =
                        qualified(prefix, made.name.as_deref().unwrap_or("value_set"), &made.annotations);
                    self.resource(program, Kind::ValueSet, instance, name, values);
                }
                kind => {
                    let Some(fallback) = block_name(program, kind) else { continue };
                    let name = qualified(prefix, made.name.as_deref().unwrap_or(fallback), &made.annotations);
                    self.block(program, instance, &name, values, depth + 1);
                }
            }
        }
    }

    fn extern_instance(&mut self, program: &'a Program, instance: InstanceId, prefix: &str, values: &Values) {
        let made = &program.instances[instance];
        let TyKind::Extern(id, _) = program.types.kind(made.ty) else { return };
        self.uses_types |= made.name.is_some();
        let declared = made.name.as_deref().unwrap_or(&program.externs[*id].name);
        let name = qualified(prefix, declared, &made.annotations);
        self.instance_names.insert((instance, prefix.to_owned()), name.clone());
        if let Some(kind) = kind_of(&program.externs[*id].name) {
            self.resource(program, kind, instance, name, values);
        }
    }

    fn resource(
        &mut self,
        program: &'a Program,
        kind: Kind,
        instance: InstanceId,
        name: String,
        values: &Values,
    ) {
        self.symbols.add(kind, &name, number(&program.instances[instance].annotations, "id"));
        if self.seen.insert((kind, name.clone())) {
            let found = FoundExtern { instance, kind, name, values: values.clone() };
            match kind {
                Kind::ValueSet => self.value_sets.push(found),
                _ => self.externs.push(found),
            }
        }
    }

    fn action(&mut self, program: &'a Program, action: ActionId, prefix: &str, in_table: bool) {
        let name = action_name(program, action, prefix);
        let declared = &program.actions[action];
        self.symbols.add(Kind::Action, &name, number(&declared.annotations, "id"));
        // Several actions may have one name: for the control plane they are one.
        match self.action_places.entry(name) {
            Entry::Occupied(place) => self.actions[*place.get()].in_table |= in_table,
            Entry::Vacant(place) => {
                let name = place.key().clone();
                place.insert(self.actions.len());
                self.actions.push(FoundAction { action, name, in_table });
            }
        }
    }

    fn table(&mut self, program: &'a Program, table: TableId, prefix: &str, values: &Values) {
        let declared = &program.tables[table];
        let name = qualified(prefix, &declared.name, &declared.annotations);
        self.symbols.add(Kind::Table, &name, number(&declared.annotations, "id"));
        for property in &declared.properties {
            let Some(instance) = instance_of(program, &property.value, values) else { continue };
            if self.instance_name(instance, prefix).is_some() {
                continue;
            }
            // An instance made in place: what `@name` gives it is the whole name.
            let made = &program.instances[instance];
            let TyKind::Extern(id, _) = program.types.kind(made.ty) else { continue };
            let Some(kind) = kind_of(&program.externs[*id].name) else { continue };
            let within = match &made.name {
                Some(name) => qualified(prefix, name, &[]),
                None => qualified("", &property.name, &made.annotations),
            };
            self.instance_names.insert((instance, prefix.to_owned()), within.clone());
            self.resource(program, kind, instance, within, values);
        }
        if self.seen.insert((Kind::Table, name.clone())) {
            self.tables.push(FoundTable { table, name, prefix: prefix.to_owned(), values: values.clone() });
        }
    }

    /// The name of an extern instance as a block with that prefix sees it: its own, or the nearest around it, from which it got the
    /// instance as an argument.
    pub(super) fn instance_name(&self, instance: InstanceId, prefix: &str) -> Option<&String> {
        let mut key = (instance, prefix.to_owned());
        loop {
            if let Some(name) = self.instance_names.get(&key) {
                return Some(name);
            }
            if key.1.is_empty() {
                return None;
            }
            let outer = key.1.rfind('.').unwrap_or(0);
            key.1.truncate(outer);
        }
    }

    fn extern_calls(&mut self, program: &'a Program, calls: &[&Call]) {
        for call in calls {
            let Callee::ExternFunction(function) = call.callee else { continue };
            // p4c gives an empty `type_info` to programs for v1model that call any extern function.
            self.uses_types |= self.architecture == "v1model";
            if program.extern_functions[function].name != "digest" {
                continue;
            }
            let [ty] = call.type_args[..] else { continue };
            let name = match program.types.kind(ty) {
                TyKind::Struct(id) => Types::new(program).struct_name(*id),
                _ => {
                    self.digests_without_name += 1;
                    format!("digest_{}", self.digests_without_name - 1)
                }
            };
            self.symbols.add(Kind::Digest, &name, None);
            if self.seen.insert((Kind::Digest, name.clone())) {
                self.digests.push((name, ty));
            }
        }
    }
}

/// The declared name of a parser or a control.
fn block_name<'a>(program: &'a Program, kind: &TyKind) -> Option<&'a str> {
    match kind {
        TyKind::Parser(parser) => Some(&program.parsers[*parser].name),
        TyKind::Control(control) => Some(&program.controls[*control].name),
        _ => None,
    }
}

/// The name of an action within a control; one declared outside stands alone.
pub(super) fn action_name(program: &Program, action: ActionId, prefix: &str) -> String {
    let declared = &program.actions[action];
    let prefix = if declared.control.is_some() { prefix } else { "" };
    qualified(prefix, &declared.name, &declared.annotations)
}

/// The actions of a table, its default included.
fn table_actions(program: &Program, table: TableId) -> Vec<ActionId> {
    let declared = &program.tables[table];
    let mut actions: Vec<ActionId> = declared.actions.iter().map(|reference| reference.action).collect();
    actions.extend(default_action(program, table));
    actions
}

/// The default action of a table: what it says, or else `NoAction`.
pub(super) fn default_action(program: &Program, table: TableId) -> Option<ActionId> {
    match &program.tables[table].default_action {
        Some(reference) => Some(reference.action),
        None => {
            let mut actions = program.actions.iter();
            actions.find(|(_, a)| a.control.is_none() && a.name == "NoAction").map(|(id, _)| id)
        }
    }
}

/// The instance that an expression names.
pub(super) fn instance_of(program: &Program, expr: &Expr, values: &Values) -> Option<InstanceId> {
    match &expr.kind {
        ExprKind::Instance(instance) => Some(*instance),
        ExprKind::Var(_) => match constant(program, expr, values)? {
            Constant::Instance(instance) => Some(instance),
            _ => None,
        },
        ExprKind::Cast(inner) => instance_of(program, inner, values),
        _ => None,
    }
}

/// The value of an expression within an instance.
pub(super) fn constant(program: &Program, expr: &Expr, values: &Values) -> Option<Constant> {
    evaluate(program, expr, &|var| values.get(&var).cloned()).ok()
}

fn constructor_values(
    program: &Program,
    params: &[millrace_sema::hir::VarId],
    instance: InstanceId,
    outer: &Values,
) -> Values {
    let given = params.iter().zip(&program.instances[instance].args).filter_map(|(param, argument)| {
        let CtorArg::Expr(expr) = argument else { return None };
        let value = match instance_of(program, expr, outer) {
            Some(instance) => Constant::Instance(instance),
            None => constant(program, expr, outer)?,
        };
        Some((*param, value))
    });
    Rc::new(given.collect())
}

/// The resource that an extern object is, by the names of v1model and of PSA (which PNA and uBPF share).
fn kind_of(extern_name: &str) -> Option<Kind> {
    Some(match extern_name {
        "counter" | "Counter" => Kind::Counter,
        "direct_counter" | "DirectCounter" => Kind::DirectCounter,
        "meter" | "Meter" => Kind::Meter,
        "direct_meter" | "DirectMeter" => Kind::DirectMeter,
        "register" | "Register" => Kind::Register,
        "action_profile" | "ActionProfile" | "action_selector" | "ActionSelector" => Kind::ActionProfile,
        "Digest" => Kind::Digest,
        _ => return None,
    })
}
