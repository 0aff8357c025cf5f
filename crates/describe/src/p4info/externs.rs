//! Instances of externs: counters, meters, registers, digests and action profiles.

use super::annotations::{find, number, string};
use super::collect::{FoundExtern, constant, instance_of};
use super::ids::{Id, Kind};
use super::objects::{Builder, int32, int64, type_name};
use millrace_messages::config::action_profile::{SelectorSizeSemantics, SumOfMembers, SumOfWeights};
use millrace_messages::config::{
    ActionProfile, Counter, CounterSpec, Digest, DirectCounter, DirectMeter, Meter, MeterSpec, P4Info,
    Register, counter_spec, meter_spec,
};
use millrace_sema::Constant;
use millrace_sema::hir::{CtorArg, Instance, InstanceId, Ty, TyKind};
use millrace_syntax::ast::Annotation;
use num_traits::ToPrimitive;
use std::collections::HashMap;

/// An extern instance, and its name as a table sees it, where that is known.
pub(super) type Used = (InstanceId, Option<String>);

impl Builder<'_> {
    /// Adds what an instance is to the controller.
    pub(super) fn extern_instance(&mut self, found: &FoundExtern, info: &mut P4Info) {
        let program = self.program;
        let made = &program.instances[found.instance];
        let TyKind::Extern(id, type_args) = program.types.kind(made.ty) else { return };
        let extern_name = program.externs[*id].name.as_str();
        let annotations: &[Annotation] = &made.annotations;
        let preamble = Some(self.preamble(found.kind, &found.name, annotations, own_annotations(found.kind)));
        let size = self.size(made, found);
        let unit = self.unit(made, found);
        let index = match extern_name {
            "counter" | "meter" | "Meter" => type_args.first(),
            "Counter" | "register" | "Register" => type_args.get(1),
            _ => None,
        };
        let index_type_name = index.and_then(|&ty| {
            self.types.describe(ty);
            type_name(self.types.new_type_name(ty))
        });
        match found.kind {
            Kind::Counter => {
                let (spec, size) = (Some(of_counter(unit)), int64(size));
                info.counters.push(Counter { preamble, spec, size, index_type_name });
            }
            Kind::Meter => {
                let (spec, size) = (Some(of_meter(unit, annotations)), int64(size));
                info.meters.push(Meter { preamble, spec, size, index_type_name });
            }
            Kind::DirectCounter => {
                let Some(direct_table_id) = self.owner(found) else { return };
                let spec = Some(of_counter(unit));
                info.direct_counters.push(DirectCounter { preamble, spec, direct_table_id });
            }
            Kind::DirectMeter => {
                let Some(direct_table_id) = self.owner(found) else { return };
                let spec = Some(of_meter(unit, annotations));
                info.direct_meters.push(DirectMeter { preamble, spec, direct_table_id });
            }
            Kind::Register => {
                let Some(&ty) = type_args.first() else { return };
                let type_spec = Some(self.types.describe(ty));
                info.registers.push(Register { preamble, type_spec, size: int32(size), index_type_name });
            }
            Kind::Digest => {
                let Some(&ty) = type_args.first() else { return };
                info.digests.push(Digest { preamble, type_spec: Some(self.types.describe(ty)) });
            }
            Kind::ActionProfile => {
                let with_selector = matches!(extern_name, "action_selector" | "ActionSelector");
                let max_group_size = number(annotations, "max_group_size").filter(|_| with_selector);
                info.action_profiles.push(ActionProfile {
                    preamble,
                    table_ids: self.users(found),
                    with_selector,
                    size: int64(size),
                    max_group_size: max_group_size.map_or(0, int32),
                    selector_size_semantics: semantics(annotations).filter(|_| with_selector),
                    weights_disallowed: with_selector && find(annotations, "weights_disallowed").is_some(),
                });
            }
            _ => {}
        }
    }

    /// The tables that a property of theirs ties to an instance.
    fn users(&mut self, found: &FoundExtern) -> Vec<Id> {
        let (program, all, ids) = (self.program, self.found, &self.ids);
        let users = self.users.get_or_insert_with(|| {
            let mut users: HashMap<Used, Vec<(usize, Id)>> = HashMap::new();
            for (at, table) in all.tables.iter().enumerate() {
                let properties = &program.tables[table.table].properties;
                let mut used: Vec<InstanceId> =
                    properties.iter().filter_map(|p| instance_of(program, &p.value, &table.values)).collect();
                used.sort_unstable();
                used.dedup();
                let id = ids.id(Kind::Table, &table.name);
                for instance in used {
                    let name = all.instance_name(instance, &table.prefix).cloned();
                    users.entry((instance, name)).or_default().push((at, id));
                }
            }
            users
        });
        let of = |name: Option<String>| users.get(&(found.instance, name)).into_iter().flatten().copied();
        let mut list: Vec<(usize, Id)> = of(Some(found.name.clone())).chain(of(None)).collect();
        list.sort_unstable();
        list.into_iter().map(|(_, id)| id).collect()
    }

    fn owner(&mut self, found: &FoundExtern) -> Option<Id> {
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

    fn unit(&self, made: &Instance, found: &FoundExtern) -> counter_spec::Unit {
        let argument = self.argument(made, found, &["type"]);
        let member = argument.and_then(|(ty, value)| self.enum_member(&ty, Some(value)));
        match member.map(|name| name.to_ascii_lowercase()).as_deref() {
            Some("packets") => counter_spec::Unit::Packets,
            Some("bytes") => counter_spec::Unit::Bytes,
            Some("packets_and_bytes") => counter_spec::Unit::Both,
            _ => counter_spec::Unit::Unspecified,
        }
    }

    /// The name of a member of an enumeration.
    pub(super) fn enum_member(&self, ty: &Ty, value: Option<Constant>) -> Option<String> {
        match (self.program.types.kind(*ty), value?) {
            (TyKind::Enum(id), Constant::EnumMember(member)) => {
                Some(self.program.types.enums[*id].members.get(member)?.name.clone())
            }
            _ => None,
        }
    }
}

/// The annotations of an action profile that have fields of their own.
const PROFILE_ANNOTATIONS: &[&str] = &["max_group_size", "selector_size_semantics", "max_member_weight"];

fn own_annotations(kind: Kind) -> &'static [&'static str] {
    if kind == Kind::ActionProfile { PROFILE_ANNOTATIONS } else { &[] }
}

fn semantics(annotations: &[Annotation]) -> Option<SelectorSizeSemantics> {
    match string(annotations, "selector_size_semantics")?.to_ascii_lowercase().as_str() {
        "sum_of_weights" => Some(SelectorSizeSemantics::SumOfWeights(SumOfWeights {})),
        "sum_of_members" => Some(SelectorSizeSemantics::SumOfMembers(SumOfMembers {
            max_member_weight: number(annotations, "max_member_weight").map_or(0, int32),
        })),
        _ => None,
    }
}

fn of_counter(unit: counter_spec::Unit) -> CounterSpec {
    CounterSpec { unit: unit.into() }
}

fn of_meter(unit: counter_spec::Unit, annotations: &[Annotation]) -> MeterSpec {
    let has = |name| find(annotations, name).is_some();
    let unit = match unit {
        counter_spec::Unit::Packets => meter_spec::Unit::Packets,
        counter_spec::Unit::Bytes => meter_spec::Unit::Bytes,
        _ => meter_spec::Unit::Unspecified,
    };
    let of_type = match (has("single_rate_two_color"), has("single_rate_three_color")) {
        (true, _) => meter_spec::Type::SingleRateTwoColor,
        (_, true) => meter_spec::Type::SingleRateThreeColor,
        _ => meter_spec::Type::TwoRateThreeColor,
    };
    MeterSpec { unit: unit.into(), r#type: of_type.into() }
}
