//! From what was found to the messages.

use super::annotations::{find, notes, number, pairs, string};
use super::collect::{
    Architecture, Found, FoundAction, FoundExtern, FoundTable, action_name, constant, default_action,
    instance_of,
};
use super::ids::{Ids, Kind, field_ids};
use super::types::{Types, full_width};
use super::*;
use millrace_sema::Constant;
use millrace_sema::hir::{
    ActionId, ActionRef as HirActionRef, CtorArg, Direction, Instance, Program, StructId, Ty, TyKind, VarKind,
};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// The size of a table that names none, as p4c and bmv2 have it.
const DEFAULT_TABLE_SIZE: u64 = 1024;

/// Builds the messages.
pub(super) struct Builder<'a> {
    pub(super) program: &'a Program,
    pub(super) found: &'a Found,
    pub(super) ids: Ids,
    pub(super) types: Types<'a>,
}

impl Builder<'_> {
    pub(super) fn build(mut self) -> P4Info {
        let mut info = P4Info { pkg_info: self.pkg_info(), ..P4Info::default() };
        self.types.touched |= self.found.uses_types || !self.found.tables.is_empty();
        info.tables = self.found.tables.iter().filter_map(|table| self.table(table)).collect();
        info.actions = self.found.actions.iter().filter_map(|found| self.action(found)).collect();
        for found in &self.found.externs {
            self.extern_instance(found, &mut info);
        }
        info.controller_packet_metadata =
            self.found.controller_headers.iter().filter_map(|&id| self.controller_header(id)).collect();
        info.value_sets = self.found.value_sets.iter().map(|set| self.value_set(set)).collect();
        for (name, ty) in &self.found.digests {
            let preamble = self.preamble(Kind::Digest, name, &[], &[]);
            info.digests.push(Digest { preamble, type_spec: self.types.describe(*ty) });
        }
        info.type_info = self.types.touched.then_some(self.types.info);
        info
    }

    fn preamble(&self, kind: Kind, name: &str, annotations: &[Annotation], except: &[&str]) -> Preamble {
        Preamble {
            id: self.ids.id(kind, name),
            name: name.to_owned(),
            alias: self.ids.alias(name),
            notes: notes(self.program, annotations, except),
        }
    }

    fn pkg_info(&self) -> Option<PkgInfo> {
        let main = &self.program.instances[self.program.main?];
        let arch = match self.program.types.kind(main.ty) {
            TyKind::Package(id, _) => Architecture(&self.program.packages[*id].name).name().to_owned(),
            _ => return None,
        };
        let mut info = PkgInfo { arch, ..PkgInfo::default() };
        let given = find(&main.annotations, "pkginfo").map(|a| pairs(self.program, a)).unwrap_or_default();
        for field in ["name", "version", "organization", "contact", "url"] {
            if let Some((_, Literal::String(value))) = given.iter().find(|(key, _)| key == field) {
                info.fields.push((field, value.clone()));
            }
        }
        if let Some((_, Literal::String(value))) = given.iter().find(|(key, _)| key == "arch") {
            info.arch = value.clone();
        }
        let given =
            find(&main.annotations, "platform_property").map(|a| pairs(self.program, a)).unwrap_or_default();
        for field in [
            "multicast_group_table_size",
            "multicast_group_table_total_replicas",
            "multicast_group_table_max_replicas_per_entry",
        ] {
            if let Some((_, Literal::Int(value))) = given.iter().find(|(key, _)| key == field) {
                info.platform_properties.push((field, i32::try_from(*value).unwrap_or(i32::MAX)));
            }
        }
        info.notes = notes(self.program, &main.annotations, &["pkginfo", "platform_property"]);
        info.notes.structured.retain(|a| a.name != "pkginfo" && a.name != "platform_property");
        Some(info)
    }

    fn table(&mut self, found: &FoundTable) -> Option<Table> {
        let program = self.program;
        let declared = &program.tables[found.table];
        if find(&declared.annotations, "hidden").is_some() {
            return None;
        }
        let mut table = Table {
            preamble: self.preamble(Kind::Table, &found.name, &declared.annotations, &[]),
            ..Table::default()
        };
        let given: Vec<Option<u32>> =
            declared.keys.iter().map(|key| number(&key.annotations, "id")).collect();
        for (key, id) in declared.keys.iter().zip(field_ids(&given)) {
            let Some(match_type) = match_type(&key.match_kind) else { continue };
            self.types.describe(key.expr.ty);
            table.match_fields.push(MatchField {
                id,
                name: key.name.clone(),
                notes: notes(self.program, &key.annotations, &[]),
                bitwidth: Some(self.types.width(key.expr.ty).unwrap_or(0)),
                data_width: None,
                match_type: Some(match_type),
                type_name: self.types.new_type_name(key.expr.ty),
            });
        }
        for reference in &declared.actions {
            let scope = match () {
                () if find(&reference.annotations, "tableonly").is_some() => Some("TABLE_ONLY"),
                () if find(&reference.annotations, "defaultonly").is_some() => Some("DEFAULT_ONLY"),
                () => None,
            };
            let id = self.action_id(reference.action, &found.prefix);
            table.action_refs.push(ActionRef {
                id,
                notes: notes(self.program, &reference.annotations, &[]),
                scope,
            });
        }
        if let Some(default) = default_action(program, found.table) {
            let id = self.action_id(default, &found.prefix);
            if table.action_refs.iter().all(|reference| reference.id != id) {
                // The default that the language puts in is a member of the list, too.
                let notes = Notes { annotations: vec!["@defaultonly".into()], ..Notes::default() };
                table.action_refs.push(ActionRef { id, notes, scope: Some("DEFAULT_ONLY") });
            }
            let arguments =
                declared.default_action.iter().flat_map(|call| self.default_arguments(call, found)).collect();
            table.initial_default = Some(DefaultAction { id, arguments });
            table.const_default_action =
                (declared.const_default && declared.default_action.is_some()).then_some(id);
        }
        for property in &declared.properties {
            match property.name.as_str() {
                "support_timeout" => {
                    table.idle_timeout = matches!(
                        constant(program, &property.value, &found.values),
                        Some(Constant::Bool(true))
                    );
                }
                "psa_idle_timeout" | "pna_idle_timeout" => {
                    let member = self
                        .enum_member(&property.value.ty, constant(program, &property.value, &found.values));
                    table.idle_timeout = member.is_some_and(|name| name == "NOTIFY_CONTROL");
                }
                _ => {
                    let Some(instance) = instance_of(program, &property.value, &found.values) else {
                        continue;
                    };
                    let Some(resource) = self.found.externs.iter().find(|e| e.instance == instance) else {
                        continue;
                    };
                    let name = self.found.instance_names.get(&instance).unwrap_or(&resource.name);
                    let id = self.ids.id(resource.kind, name);
                    match resource.kind {
                        Kind::ActionProfile => table.implementation = Some(id),
                        Kind::DirectCounter | Kind::DirectMeter => table.direct_resources.push(id),
                        _ => {}
                    }
                }
            }
        }
        let size = declared.size.as_ref().and_then(|size| self.integer(size, &found.values));
        table.size = size.filter(|size| *size > 0).unwrap_or(DEFAULT_TABLE_SIZE);
        table.is_const = declared.const_entries;
        table.has_initial_entries = !declared.entries.is_empty();
        Some(table)
    }

    fn default_arguments(&self, call: &HirActionRef, found: &FoundTable) -> Vec<(u32, Vec<u8>)> {
        let declared = &self.program.actions[call.action];
        let params = declared.params.iter().map(|&param| &self.program.vars[param]);
        let data: Vec<_> = params
            .zip(&call.args)
            .filter(|(_, argument)| argument.direction == Direction::None)
            .filter_map(|(param, argument)| {
                let width = self.types.width(argument.ty)?;
                let value = match constant(self.program, argument.value.as_ref()?, &found.values)? {
                    Constant::Int(value) => value,
                    Constant::Bool(value) => BigInt::from(u8::from(value)),
                    _ => return None,
                };
                Some((number(&param.annotations, "id"), full_width(&value, width)))
            })
            .collect();
        let ids: Vec<Option<u32>> = data.iter().map(|(id, _)| *id).collect();
        field_ids(&ids).into_iter().zip(data.into_iter().map(|(_, value)| value)).collect()
    }

    fn action_id(&self, action: ActionId, prefix: &str) -> Id {
        self.ids.id(Kind::Action, &action_name(self.program, action, prefix))
    }

    fn action(&mut self, found: &FoundAction) -> Option<Action> {
        let program = self.program;
        let declared = &program.actions[found.action];
        if find(&declared.annotations, "hidden").is_some() {
            return None;
        }
        let preamble = self.preamble(Kind::Action, &found.name, &declared.annotations, &[]);
        let data: Vec<_> = declared
            .params
            .iter()
            .map(|&param| &program.vars[param])
            .filter(|param| found.in_table && matches!(param.kind, VarKind::Param(Direction::None)))
            .collect();
        let given: Vec<Option<u32>> = data.iter().map(|param| number(&param.annotations, "id")).collect();
        let mut params = Vec::new();
        for (param, id) in data.into_iter().zip(field_ids(&given)) {
            self.types.describe(param.ty);
            params.push(MatchField {
                id,
                name: string(&param.annotations, "name").unwrap_or_else(|| param.name.clone()),
                notes: notes(self.program, &param.annotations, &[]),
                bitwidth: self.types.width(param.ty),
                data_width: None,
                match_type: None,
                type_name: self
                    .types
                    .new_type_name(param.ty)
                    .or_else(|| self.types.plain_enum_name(param.ty)),
            });
        }
        Some(Action { preamble, params })
    }

    fn extern_instance(&mut self, found: &FoundExtern, info: &mut P4Info) {
        let program = self.program;
        let made = &program.instances[found.instance];
        let TyKind::Extern(id, type_args) = program.types.kind(made.ty) else { return };
        let extern_name = program.externs[*id].name.as_str();
        let annotations: &[Annotation] = &made.annotations;
        let preamble = self.preamble(found.kind, &found.name, annotations, own_annotations(found.kind));
        let size = self.size(made, found);
        let unit = self.unit(made, found);
        let index = match extern_name {
            "counter" | "meter" | "Meter" => type_args.first(),
            "Counter" | "register" | "Register" => type_args.get(1),
            _ => None,
        };
        let index_type = index.and_then(|&ty| {
            self.types.describe(ty);
            self.types.new_type_name(ty)
        });
        match found.kind {
            Kind::Counter => info.counters.push(Counter { preamble, unit, size, index_type }),
            Kind::Meter => info.meters.push(Meter { preamble, unit, size, index_type }),
            Kind::DirectCounter | Kind::DirectMeter => {
                let Some(table) = self.owner(found) else { return };
                let direct = DirectCounter { preamble, unit, table };
                match found.kind {
                    Kind::DirectCounter => info.direct_counters.push(direct),
                    _ => info.direct_meters.push(direct),
                }
            }
            Kind::Register => {
                let Some(&ty) = type_args.first() else { return };
                let type_spec = self.types.describe(ty);
                info.registers.push(Register { preamble, type_spec, size, index_type });
            }
            Kind::Digest => {
                let Some(&ty) = type_args.first() else { return };
                info.digests.push(Digest { preamble, type_spec: self.types.describe(ty) });
            }
            Kind::ActionProfile => {
                let with_selector = matches!(extern_name, "action_selector" | "ActionSelector");
                info.action_profiles.push(ActionProfile {
                    preamble,
                    table_ids: self.users(found),
                    with_selector,
                    size,
                    max_group_size: number(annotations, "max_group_size").filter(|_| with_selector),
                    semantics: semantics(annotations).filter(|_| with_selector),
                });
            }
            _ => {}
        }
    }

    /// The tables that a property of theirs ties to an instance.
    fn users(&self, found: &FoundExtern) -> Vec<Id> {
        let uses = |table: &&FoundTable| {
            let properties = &self.program.tables[table.table].properties;
            properties
                .iter()
                .any(|p| instance_of(self.program, &p.value, &table.values) == Some(found.instance))
        };
        self.found.tables.iter().filter(uses).map(|table| self.ids.id(Kind::Table, &table.name)).collect()
    }

    fn owner(&self, found: &FoundExtern) -> Option<Id> {
        self.users(found).first().copied()
    }

    /// The constructor argument of that name.
    fn argument(&self, made: &Instance, found: &FoundExtern, names: &[&str]) -> Option<(Ty, Constant)> {
        let position = made.ctor_params.iter().position(|param| names.contains(&param.as_str()))?;
        let CtorArg::Expr(expr) = made.args.get(position)? else { return None };
        Some((expr.ty, constant(self.program, expr, &found.values)?))
    }

    fn size(&self, made: &Instance, found: &FoundExtern) -> u64 {
        match self.argument(made, found, &["size", "n_counters", "n_meters"]) {
            Some((_, Constant::Int(size))) => size.to_u64().unwrap_or(0),
            _ => 0,
        }
    }

    fn unit(&self, made: &Instance, found: &FoundExtern) -> &'static str {
        let argument = self.argument(made, found, &["type"]);
        let member = argument.and_then(|(ty, value)| self.enum_member(&ty, Some(value)));
        match member.map(|name| name.to_ascii_lowercase()).as_deref() {
            Some("packets") => "PACKETS",
            Some("bytes") => "BYTES",
            Some("packets_and_bytes") => "BOTH",
            _ => "UNSPECIFIED",
        }
    }

    fn enum_member(&self, ty: &Ty, value: Option<Constant>) -> Option<String> {
        match (self.program.types.kind(*ty), value?) {
            (TyKind::Enum(id), Constant::EnumMember(member)) => {
                Some(self.program.types.enums[*id].members.get(member)?.name.clone())
            }
            _ => None,
        }
    }

    fn integer(&self, expr: &millrace_sema::hir::Expr, values: &super::collect::Values) -> Option<u64> {
        match constant(self.program, expr, values)? {
            Constant::Int(value) => value.to_u64(),
            _ => None,
        }
    }

    fn controller_header(&mut self, id: StructId) -> Option<ControllerPacketMetadata> {
        let declared = &self.program.types.structs[id];
        if find(&declared.annotations, "hidden").is_some() {
            return None;
        }
        let own = string(&declared.annotations, "name").unwrap_or_else(|| declared.name.clone());
        let mut preamble = self.preamble(Kind::ControllerHeader, &own, &declared.annotations, &[]);
        // The specification wants the name of the annotation here, not that of the type.
        preamble.name = string(&declared.annotations, "controller_header").unwrap_or(own);
        preamble.alias = preamble.name.clone();
        let fields = self.types.flat_fields(id);
        let given: Vec<Option<u32>> =
            fields.iter().map(|(_, _, annotations)| number(annotations, "id")).collect();
        let mut metadata = Vec::new();
        for ((name, ty, annotations), id) in fields.into_iter().zip(field_ids(&given)) {
            if find(annotations, "hidden").is_some() {
                continue;
            }
            self.types.describe(ty);
            metadata.push(MatchField {
                id,
                name,
                notes: notes(self.program, annotations, &[]),
                bitwidth: self.types.width(ty),
                data_width: self.types.data_width(ty),
                match_type: None,
                type_name: self.types.new_type_name(ty),
            });
        }
        Some(ControllerPacketMetadata { preamble, metadata })
    }

    fn value_set(&self, found: &FoundExtern) -> ValueSet {
        let made = &self.program.instances[found.instance];
        let preamble = self.preamble(Kind::ValueSet, &found.name, &made.annotations, &[]);
        let size = match made.args.first() {
            Some(CtorArg::Expr(size)) => self.integer(size, &found.values).unwrap_or(0),
            _ => 0,
        };
        let TyKind::ValueSet(member) = *self.program.types.kind(made.ty) else {
            return ValueSet { preamble, size, ..ValueSet::default() };
        };
        let exact = || Some(MatchType::Known("EXACT"));
        let matches = match self.program.types.kind(member) {
            TyKind::Struct(id) => {
                let fields = &self.program.types.structs[*id].fields;
                let given: Vec<Option<u32>> = fields.iter().map(|f| number(&f.annotations, "id")).collect();
                let field = |(field, id): (&millrace_sema::hir::Field, u32)| MatchField {
                    id,
                    name: string(&field.annotations, "name").unwrap_or_else(|| field.name.clone()),
                    notes: notes(self.program, &field.annotations, &["match"]),
                    bitwidth: self.types.width(field.ty),
                    data_width: None,
                    match_type: word(&field.annotations, "match")
                        .map_or_else(exact, |kind| match_type(&kind)),
                    type_name: None,
                };
                fields.iter().zip(field_ids(&given)).map(field).collect()
            }
            // The members of a serializable enum are listed as if they were fields; p4c does so.
            TyKind::Enum(id) => {
                let declared = &self.program.types.enums[*id];
                let bitwidth = self.types.width(member);
                let field = |(id, member): (u32, &millrace_sema::hir::EnumMember)| MatchField {
                    id,
                    name: member.name.clone(),
                    bitwidth,
                    data_width: None,
                    match_type: exact(),
                    ..MatchField::default()
                };
                (1..).zip(&declared.members).map(field).collect()
            }
            _ => vec![MatchField {
                id: 1,
                bitwidth: self.types.width(member),
                data_width: None,
                match_type: exact(),
                ..MatchField::default()
            }],
        };
        ValueSet { preamble, matches, size }
    }
}

/// How a match kind is spelled; `selector` is no match at all.
fn match_type(kind: &str) -> Option<MatchType> {
    Some(MatchType::Known(match kind {
        "exact" => "EXACT",
        "lpm" => "LPM",
        "ternary" => "TERNARY",
        "range" => "RANGE",
        "optional" => "OPTIONAL",
        "selector" => return None,
        other => return Some(MatchType::Other(other.to_owned())),
    }))
}

/// The annotations of an action profile that have fields of their own.
const PROFILE_ANNOTATIONS: &[&str] = &["max_group_size", "selector_size_semantics", "max_member_weight"];

fn own_annotations(kind: Kind) -> &'static [&'static str] {
    if kind == Kind::ActionProfile { PROFILE_ANNOTATIONS } else { &[] }
}

fn semantics(annotations: &[Annotation]) -> Option<SizeSemantics> {
    match string(annotations, "selector_size_semantics")?.to_ascii_lowercase().as_str() {
        "sum_of_weights" => Some(SizeSemantics::SumOfWeights),
        "sum_of_members" => Some(SizeSemantics::SumOfMembers(number(annotations, "max_member_weight"))),
        _ => None,
    }
}

/// The word of an annotation: `@match(ternary)`.
fn word(annotations: &[Annotation], name: &str) -> Option<String> {
    let AnnotationBody::Tokens(tokens) = &find(annotations, name)?.body else { return None };
    let token = tokens.iter().find(|token| matches!(token.kind, AnnotationTokenKind::Word))?;
    Some(token.text.to_string())
}
