//! From what was found to the messages.

use super::Description;
use super::annotations::{find, notes, number, pairs, string};
use super::collect::{
    Architecture, Found, FoundAction, FoundExtern, FoundTable, action_name, constant, default_action,
    instance_of,
};
use super::externs::Used;
use super::ids::{Id, Ids, Kind, field_ids};
use super::types::{Types, full_width};
use millrace_messages::config::action::Param;
use millrace_messages::config::controller_packet_metadata::Metadata;
use millrace_messages::config::match_field::{Match, MatchType};
use millrace_messages::config::table_action_call::Argument;
use millrace_messages::config::{
    Action, ActionRef, ControllerPacketMetadata, Digest, MatchField, P4Info, P4NamedType, PkgInfo,
    PlatformProperties, Preamble, Table, TableActionCall, ValueSet, action_ref, expression, table,
};
use millrace_sema::Constant;
use millrace_sema::hir::{
    ActionId, ActionRef as HirActionRef, CtorArg, Direction, Program, StructId, TyKind, VarKind,
};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::collections::HashMap;

/// The size of a table that names none, as p4c and bmv2 have it.
const DEFAULT_TABLE_SIZE: u64 = 1024;

/// Builds the messages.
pub(super) struct Builder<'a> {
    pub(super) program: &'a Program,
    pub(super) found: &'a Found<'a>,
    pub(super) ids: Ids,
    pub(super) types: Types<'a>,
    /// The tables that use each extern instance, once somebody asked.
    pub(super) users: Option<HashMap<Used, Vec<(usize, Id)>>>,
}

impl Builder<'_> {
    pub(super) fn build(mut self) -> Description {
        let mut info = P4Info { pkg_info: self.pkg_info(), ..P4Info::default() };
        self.types.touched |= self.found.uses_types || !self.found.tables.is_empty();
        info.tables = self.found.tables.iter().filter_map(|table| self.table(table)).collect();
        info.actions = self.found.actions.iter().filter_map(|found| self.action(found)).collect();
        for found in &self.found.externs {
            self.extern_instance(found, &mut info);
        }
        let headers = self.found.controller_headers.iter().filter_map(|&id| self.controller_header(id));
        let (metadata, controller_headers) = headers.unzip();
        info.controller_packet_metadata = metadata;
        info.value_sets = self.found.value_sets.iter().map(|set| self.value_set(set)).collect();
        for (name, ty) in &self.found.digests {
            let preamble = Some(self.preamble(Kind::Digest, name, &[], &[]));
            info.digests.push(Digest { preamble, type_spec: Some(self.types.describe(*ty)) });
        }
        info.type_info = self.types.touched.then_some(self.types.info);
        Description { info, controller_headers }
    }

    pub(super) fn preamble(
        &self,
        kind: Kind,
        name: &str,
        annotations: &[Annotation],
        except: &[&str],
    ) -> Preamble {
        let notes = notes(self.program, annotations, except);
        Preamble {
            id: self.ids.id(kind, name),
            name: name.to_owned(),
            alias: self.ids.alias(name),
            annotations: notes.annotations,
            doc: notes.doc,
            structured_annotations: notes.structured,
            ..Preamble::default()
        }
    }

    fn pkg_info(&self) -> Option<PkgInfo> {
        let main = &self.program.instances[self.program.main?];
        let arch = match self.program.types.kind(main.ty) {
            TyKind::Package(id, _) => Architecture(&self.program.packages[*id].name).name().to_owned(),
            _ => return None,
        };
        let notes = notes(self.program, &main.annotations, &["pkginfo", "platform_property"]);
        let mut structured_annotations = notes.structured;
        structured_annotations.retain(|a| a.name != "pkginfo" && a.name != "platform_property");
        let given = find(&main.annotations, "pkginfo").map(|a| pairs(self.program, a)).unwrap_or_default();
        let field = |name: &str| match given.iter().find(|(key, _)| key == name) {
            Some((_, expression::Value::StringValue(value))) => Some(value.clone()),
            _ => None,
        };
        Some(PkgInfo {
            name: field("name").unwrap_or_default(),
            version: field("version").unwrap_or_default(),
            doc: notes.doc,
            annotations: notes.annotations,
            arch: field("arch").unwrap_or(arch),
            organization: field("organization").unwrap_or_default(),
            contact: field("contact").unwrap_or_default(),
            url: field("url").unwrap_or_default(),
            structured_annotations,
            platform_properties: self.platform_properties(&main.annotations),
            ..PkgInfo::default()
        })
    }

    fn platform_properties(&self, annotations: &[Annotation]) -> Option<PlatformProperties> {
        let given = find(annotations, "platform_property").map(|a| pairs(self.program, a))?;
        let field = |name: &str| match given.iter().find(|(key, _)| key == name) {
            Some((_, expression::Value::Int64Value(value))) => Some(int32(*value)),
            _ => None,
        };
        let size = field("multicast_group_table_size");
        let total = field("multicast_group_table_total_replicas");
        let most = field("multicast_group_table_max_replicas_per_entry");
        (size.is_some() || total.is_some() || most.is_some()).then(|| PlatformProperties {
            multicast_group_table_size: size.unwrap_or(0),
            multicast_group_table_total_replicas: total.unwrap_or(0),
            multicast_group_table_max_replicas_per_entry: most.unwrap_or(0),
        })
    }

    fn table(&mut self, found: &FoundTable) -> Option<Table> {
        let program = self.program;
        let declared = &program.tables[found.table];
        if find(&declared.annotations, "hidden").is_some() {
            return None;
        }
        let mut table = Table {
            preamble: Some(self.preamble(Kind::Table, &found.name, &declared.annotations, &[])),
            ..Table::default()
        };
        let given: Vec<Option<u32>> =
            declared.keys.iter().map(|key| number(&key.annotations, "id")).collect();
        for (key, id) in declared.keys.iter().zip(field_ids(&given)) {
            let Some(match_type) = match_type(&key.match_kind) else { continue };
            self.types.describe(key.expr.ty);
            table.match_fields.push(MatchField {
                r#match: Some(match_type),
                type_name: type_name(self.types.new_type_name(key.expr.ty)),
                ..self.match_field(id, key.name.clone(), self.types.width(key.expr.ty), &key.annotations, &[])
            });
        }
        for reference in &declared.actions {
            let scope = match () {
                () if find(&reference.annotations, "tableonly").is_some() => action_ref::Scope::TableOnly,
                () if find(&reference.annotations, "defaultonly").is_some() => action_ref::Scope::DefaultOnly,
                () => action_ref::Scope::TableAndDefault,
            };
            let notes = notes(self.program, &reference.annotations, &[]);
            table.action_refs.push(ActionRef {
                id: self.action_id(reference.action, &found.prefix),
                scope: scope.into(),
                annotations: notes.annotations,
                structured_annotations: notes.structured,
                ..ActionRef::default()
            });
        }
        if let Some(default) = default_action(program, found.table) {
            let id = self.action_id(default, &found.prefix);
            if table.action_refs.iter().all(|reference| reference.id != id) {
                // The default that the language puts in is a member of the list, too.
                table.action_refs.push(ActionRef {
                    id,
                    scope: action_ref::Scope::DefaultOnly.into(),
                    annotations: vec!["@defaultonly".into()],
                    ..ActionRef::default()
                });
            }
            let arguments =
                declared.default_action.iter().flat_map(|call| self.default_arguments(call, found)).collect();
            table.initial_default_action = Some(TableActionCall { action_id: id, arguments });
            if declared.const_default && declared.default_action.is_some() {
                table.const_default_action_id = id;
            }
        }
        let mut notifies = false;
        for property in &declared.properties {
            match property.name.as_str() {
                "support_timeout" => {
                    let value = constant(program, &property.value, &found.values);
                    notifies = matches!(value, Some(Constant::Bool(true)));
                }
                "psa_idle_timeout" | "pna_idle_timeout" => {
                    let member = self
                        .enum_member(&property.value.ty, constant(program, &property.value, &found.values));
                    notifies = member.is_some_and(|name| name == "NOTIFY_CONTROL");
                }
                _ => {
                    let Some(instance) = instance_of(program, &property.value, &found.values) else {
                        continue;
                    };
                    let Some(resource) = self.found.externs.iter().find(|e| e.instance == instance) else {
                        continue;
                    };
                    let name = self.found.instance_name(instance, &found.prefix).unwrap_or(&resource.name);
                    let id = self.ids.id(resource.kind, name);
                    match resource.kind {
                        Kind::ActionProfile => table.implementation_id = id,
                        Kind::DirectCounter | Kind::DirectMeter => table.direct_resource_ids.push(id),
                        _ => {}
                    }
                }
            }
        }
        let size = declared.size.as_ref().and_then(|size| self.integer(size, &found.values));
        table.size = int64(size.filter(|size| *size > 0).unwrap_or(DEFAULT_TABLE_SIZE));
        if notifies {
            table.set_idle_timeout_behavior(table::IdleTimeoutBehavior::NotifyControl);
        }
        table.is_const_table = declared.const_entries;
        table.has_initial_entries = !declared.entries.is_empty();
        Some(table)
    }

    fn default_arguments(&self, call: &HirActionRef, found: &FoundTable) -> Vec<Argument> {
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
        let argument =
            |(param_id, (_, value)): (u32, (_, Vec<u8>))| Argument { param_id, value: value.into() };
        field_ids(&ids).into_iter().zip(data).map(argument).collect()
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
        let preamble = Some(self.preamble(Kind::Action, &found.name, &declared.annotations, &[]));
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
            let notes = notes(self.program, &param.annotations, &[]);
            let named = self.types.new_type_name(param.ty).or_else(|| self.types.plain_enum_name(param.ty));
            params.push(Param {
                id,
                name: string(&param.annotations, "name").unwrap_or_else(|| param.name.clone()),
                annotations: notes.annotations,
                bitwidth: self.types.width(param.ty).map_or(0, int32),
                doc: notes.doc,
                type_name: type_name(named),
                structured_annotations: notes.structured,
                ..Param::default()
            });
        }
        Some(Action { preamble, params })
    }

    fn integer(&self, expr: &millrace_sema::hir::Expr, values: &super::collect::Values) -> Option<u64> {
        match constant(self.program, expr, values)? {
            Constant::Int(value) => value.to_u64(),
            _ => None,
        }
    }

    /// A header of packets from or to the controller, and its name with the widths of its fields in the data plane.
    fn controller_header(&mut self, id: StructId) -> Option<(ControllerPacketMetadata, (String, Vec<u32>))> {
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
        let (mut metadata, mut widths) = (Vec::new(), Vec::new());
        for ((name, ty, annotations), id) in fields.into_iter().zip(field_ids(&given)) {
            if find(annotations, "hidden").is_some() {
                continue;
            }
            self.types.describe(ty);
            let width = self.types.width(ty);
            widths.push(self.types.data_width(ty).or(width).unwrap_or(1));
            let notes = notes(self.program, annotations, &[]);
            metadata.push(Metadata {
                id,
                name,
                annotations: notes.annotations,
                bitwidth: width.map_or(0, int32),
                type_name: type_name(self.types.new_type_name(ty)),
                structured_annotations: notes.structured,
                ..Metadata::default()
            });
        }
        let name = preamble.name.clone();
        Some((ControllerPacketMetadata { preamble: Some(preamble), metadata }, (name, widths)))
    }

    fn value_set(&self, found: &FoundExtern) -> ValueSet {
        let made = &self.program.instances[found.instance];
        let preamble = Some(self.preamble(Kind::ValueSet, &found.name, &made.annotations, &[]));
        let size = match made.args.first() {
            Some(CtorArg::Expr(size)) => int32(self.integer(size, &found.values).unwrap_or(0)),
            _ => 0,
        };
        let TyKind::ValueSet(member) = *self.program.types.kind(made.ty) else {
            return ValueSet { preamble, size, ..ValueSet::default() };
        };
        let exact = || Some(Match::MatchType(MatchType::Exact.into()));
        let fields = match self.program.types.kind(member) {
            TyKind::Struct(id) => {
                let fields = &self.program.types.structs[*id].fields;
                let given: Vec<Option<u32>> = fields.iter().map(|f| number(&f.annotations, "id")).collect();
                let field = |(field, id): (&millrace_sema::hir::Field, u32)| {
                    let name = string(&field.annotations, "name").unwrap_or_else(|| field.name.clone());
                    let given = word(&field.annotations, "match");
                    MatchField {
                        r#match: given.map_or_else(exact, |kind| match_type(&kind)),
                        ..self.match_field(
                            id,
                            name,
                            self.types.width(field.ty),
                            &field.annotations,
                            &["match"],
                        )
                    }
                };
                fields.iter().zip(field_ids(&given)).map(field).collect()
            }
            // The members of a serializable enum are listed as if they were fields; p4c does so.
            TyKind::Enum(id) => {
                let declared = &self.program.types.enums[*id];
                let width = self.types.width(member);
                let field = |(id, member): (u32, &millrace_sema::hir::EnumMember)| MatchField {
                    r#match: exact(),
                    ..self.match_field(id, member.name.clone(), width, &[], &[])
                };
                (1..).zip(&declared.members).map(field).collect()
            }
            _ => {
                let width = self.types.width(member);
                vec![MatchField { r#match: exact(), ..self.match_field(1, String::new(), width, &[], &[]) }]
            }
        };
        ValueSet { preamble, r#match: fields, size }
    }

    /// A match field, without how it matches and without the name of its type.
    fn match_field(
        &self,
        id: u32,
        name: String,
        width: Option<u32>,
        annotations: &[Annotation],
        except: &[&str],
    ) -> MatchField {
        let notes = notes(self.program, annotations, except);
        MatchField {
            id,
            name,
            annotations: notes.annotations,
            bitwidth: width.map_or(0, int32),
            doc: notes.doc,
            structured_annotations: notes.structured,
            ..MatchField::default()
        }
    }
}

/// A number that is too large for its field is the largest one that the field holds.
pub(super) fn int32(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

pub(super) fn int64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn type_name(name: Option<String>) -> Option<P4NamedType> {
    name.map(|name| P4NamedType { name })
}

/// How a match kind is spelled; `selector` is no match at all.
fn match_type(kind: &str) -> Option<Match> {
    let known = match kind {
        "exact" => MatchType::Exact,
        "lpm" => MatchType::Lpm,
        "ternary" => MatchType::Ternary,
        "range" => MatchType::Range,
        "optional" => MatchType::Optional,
        "selector" => return None,
        other => return Some(Match::OtherMatchType(other.to_owned())),
    };
    Some(Match::MatchType(known.into()))
}

/// The word of an annotation: `@match(ternary)`.
fn word(annotations: &[Annotation], name: &str) -> Option<String> {
    let AnnotationBody::Tokens(tokens) = &find(annotations, name)?.body else { return None };
    let token = tokens.iter().find(|token| matches!(token.kind, AnnotationTokenKind::Word))?;
    Some(token.text.to_string())
}
