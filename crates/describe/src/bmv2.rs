//! The description of a program in the layout of bmv2's JSON, with what control-plane clients read of it: actions, tables
//! with their keys, action profiles, counters, meters, registers, value sets, digests, and the headers that keys name.
//!
//! It is for clients, not to be run: parsers, conditions and the code of actions are left out.

use indexmap::IndexMap;
use millrace_pipeline::*;
use serde_json::{Map, Value, json};

/// What has an id in the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A table.
    Table,
    /// An action profile or selector.
    Profile,
    /// An indexed or direct counter.
    Counter,
    /// An indexed or direct meter.
    Meter,
    /// A register.
    Register,
    /// A digest.
    Digest,
}

/// The description of a program.
pub fn description(program: &Program) -> Value {
    let mut fields = Fields::new(program);
    let ids = ActionIds::new(program);
    let egress = applied(program, &program.egress);
    let pipeline = |name: &str, number: u32, fields: &mut Fields<'_>| {
        let in_egress = name == "egress";
        let own = |table: TableId| egress.contains(&table) == in_egress;
        let of = |(id, _): &(TableId, &Table)| own(*id);
        let tables: Vec<Value> = program
            .tables
            .iter()
            .filter(of)
            .map(|(id, table)| table_json(program, id, table, fields, &ids))
            .collect();
        let profiles = program.profiles.iter().filter(|(id, _)| {
            let user = program.tables.iter().find(|(_, table)| table.profile == Some(*id));
            user.map_or(!in_egress, |(table, _)| own(table))
        });
        let profiles: Vec<Value> = profiles.map(|(id, profile)| profile_json(id, profile)).collect();
        json!({
            "name": name, "id": number, "init_table": null,
            "tables": tables, "action_profiles": profiles, "conditionals": [],
        })
    };
    let pipelines = [pipeline("ingress", 0, &mut fields), pipeline("egress", 1, &mut fields)];
    let (header_types, headers) = fields.finish();
    json!({
        "program": program.name,
        "__meta__": { "version": [2, 23], "compiler": concat!("millrace ", env!("CARGO_PKG_VERSION")) },
        "header_types": header_types,
        "headers": headers,
        "header_stacks": [], "header_union_types": [], "header_unions": [], "header_union_stacks": [],
        "field_lists": [],
        "errors": program.errors.iter().enumerate().map(|(at, name)| json!([name, at])).collect::<Vec<_>>(),
        "enums": [], "parsers": [],
        "parse_vsets": program.value_sets.iter().map(|(id, set)| json!({
            "name": set.name, "id": id.as_u32(), "max_size": set.size,
            "compressed_bitwidth": set.fields.iter().map(|(_, width, _)| u64::from(*width)).sum::<u64>(),
        })).collect::<Vec<_>>(),
        "deparsers": [],
        "meter_arrays": meters(program),
        "counter_arrays": counters(program),
        "register_arrays": program.registers.iter().map(|(id, register)| json!({
            "name": register.name, "id": id.as_u32(), "size": register.size, "bitwidth": register.width,
        })).collect::<Vec<_>>(),
        "calculations": program.hashes.iter().map(|(id, hash)| json!({
            "name": hash.name, "id": id.as_u32(), "algo": hash.algorithm.name(), "input": [],
        })).collect::<Vec<_>>(),
        "learn_lists": program.digests.iter().map(|(id, digest)| json!({
            "name": digest.name, "id": FIRST_LIST + id.as_u32(), "elements": [],
        })).collect::<Vec<_>>(),
        "actions": actions(program, &ids),
        "pipelines": pipelines,
        "checksums": [], "force_arith": [], "extern_instances": [], "field_aliases": [],
    })
}

/// Lists of digests are numbered from 1: for bmv2, 0 is no list.
const FIRST_LIST: u32 = 1;

/// The id of something in the description.
pub fn id(program: &Program, kind: Resource, name: &str) -> Option<u32> {
    let position = |found: Option<usize>| found.and_then(|at| u32::try_from(at).ok());
    match kind {
        Resource::Table => position(program.tables.values().position(|table| table.name == name)),
        Resource::Profile => position(program.profiles.values().position(|profile| profile.name == name)),
        Resource::Register => position(program.registers.values().position(|register| register.name == name)),
        Resource::Digest => position(program.digests.values().position(|digest| digest.name == name))
            .map(|at| FIRST_LIST + at),
        Resource::Counter => position(counters(program).iter().position(|counter| counter["name"] == name)),
        Resource::Meter => position(meters(program).iter().position(|meter| meter["name"] == name)),
    }
}

/// The tables that bodies apply.
fn applied(program: &Program, bodies: &[BodyId]) -> Vec<TableId> {
    let blocks = bodies.iter().flat_map(|body| program.bodies[*body].blocks.values());
    let tables = blocks.filter_map(|block| match block.term {
        Terminator::Apply { table, .. } => Some(table),
        _ => None,
    });
    tables.collect()
}

fn table_json(
    program: &Program,
    id: TableId,
    table: &Table,
    fields: &mut Fields<'_>,
    ids: &ActionIds<'_>,
) -> Value {
    let profile = table.profile.map(|profile| &program.profiles[profile]);
    let kind = match profile {
        None => "simple",
        Some(profile) if profile.selector.is_none() => "indirect",
        Some(_) => "indirect_ws",
    };
    let names = table.actions.iter().map(|listed| program.actions[listed.action].name.as_str());
    let key = table.keys.iter().map(|key| {
        json!({
            "match_type": match_type(key.kind), "name": key.name, "target": fields.target(key), "mask": null,
        })
    });
    let mut described = Map::new();
    let mut put = |name: &str, value: Value| drop(described.insert(name.to_owned(), value));
    put("name", json!(table.name));
    put("id", json!(id.as_u32()));
    put("key", key.collect());
    put("match_type", json!(table_match_type(table)));
    put("type", json!(kind));
    if let Some(profile) = profile {
        put("action_profile", json!(profile.name));
    }
    put("max_size", json!(table.size));
    put("with_counters", json!(table.direct_counter.is_some()));
    put("support_timeout", json!(table.idle_timeout));
    put("direct_meters", json!(table.direct_meter.as_ref().map(|meter| &meter.name)));
    put("action_ids", names.clone().map(|name| json!(ids.id(name))).collect());
    put("actions", names.map(|name| json!(name)).collect());
    put("base_default_next", Value::Null);
    put("next_tables", json!({}));
    if let (None, Some(listed)) = (profile, table.actions.get(table.default.action)) {
        let data = table.default.args.iter().map(|value| format!("0x{}", value.to_hex()));
        put(
            "default_entry",
            json!({
                "action_id": ids.id(&program.actions[listed.action].name),
                "action_const": table.const_default,
                "action_data": data.collect::<Vec<_>>(),
                "action_entry_const": table.const_default,
            }),
        );
    }
    Value::Object(described)
}

/// The kind of lookup that a table needs.
fn table_match_type(table: &Table) -> &'static str {
    let has = |kind| table.keys.iter().any(|key| match_type(key.kind) == kind);
    ["range", "ternary", "lpm"].into_iter().find(|kind| has(*kind)).unwrap_or("exact")
}

/// bmv2 has no optional fields: they are ternary ones.
fn match_type(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary | MatchKind::Optional => "ternary",
        MatchKind::Range => "range",
    }
}

fn profile_json(id: ProfileId, profile: &Profile) -> Value {
    let mut described = json!({ "name": profile.name, "id": id.as_u32(), "max_size": profile.size });
    if profile.selector.is_some() {
        described["selector"] = json!({ "algo": "crc16", "input": [] });
    }
    described
}

/// The ids of actions by name. bmv2's clients use an id as a position in the array of actions, so ids count the names that
/// are there: what tables bind arguments to are copies of one action, and so are actions of one name in ingress and egress.
struct ActionIds<'p>(IndexMap<&'p str, ActionId>);

impl<'p> ActionIds<'p> {
    fn new(program: &'p Program) -> ActionIds<'p> {
        let mut first = IndexMap::new();
        for (id, action) in program.actions.iter() {
            first.entry(action.name.as_str()).or_insert(id);
        }
        ActionIds(first)
    }

    fn id(&self, name: &str) -> Option<usize> {
        self.0.get_index_of(name)
    }
}

fn actions(program: &Program, ids: &ActionIds<'_>) -> Vec<Value> {
    let described = ids.0.iter().enumerate().map(|(id, (name, action))| {
        let data = program.actions[*action].params.iter().map(|slot| {
            let slot = &program.slots[*slot];
            json!({ "name": last(&slot.name), "bitwidth": width(slot.ty) })
        });
        json!({ "name": name, "id": id, "runtime_data": data.collect::<Vec<_>>(), "primitives": [] })
    });
    described.collect()
}

/// Indexed counters, then those of tables.
fn counters(program: &Program) -> Vec<Value> {
    let mut described: Vec<Value> = Vec::new();
    for counter in program.counters.values() {
        described.push(json!({
            "name": counter.name, "id": described.len(), "is_direct": false, "size": counter.size,
        }));
    }
    for table in program.tables.values() {
        if let Some(counter) = &table.direct_counter {
            described.push(json!({
                "name": counter.name, "id": described.len(), "is_direct": true, "binding": table.name,
            }));
        }
    }
    described
}

/// Indexed meters, then those of tables.
fn meters(program: &Program) -> Vec<Value> {
    let unit = |unit| if unit == Unit::Packets { "packets" } else { "bytes" };
    let mut described: Vec<Value> = Vec::new();
    for meter in program.meters.values() {
        described.push(json!({
            "name": meter.name, "id": described.len(), "is_direct": false, "size": meter.size,
            "rate_count": 2, "type": unit(meter.unit),
        }));
    }
    for table in program.tables.values() {
        if let Some(meter) = &table.direct_meter {
            described.push(json!({
                "name": meter.name, "id": described.len(), "is_direct": true, "binding": table.name,
                "size": table.size, "rate_count": 2, "type": unit(meter.unit), "result_target": [],
            }));
        }
    }
    described
}

/// The headers of a program, and the metadata that keys name.
struct Fields<'a> {
    program: &'a Program,
    /// Name and width.
    scalars: Vec<(String, u32)>,
    standard: Vec<(String, u32)>,
}

impl<'a> Fields<'a> {
    fn new(program: &'a Program) -> Fields<'a> {
        let own = program.slots.values().filter(|slot| slot.home == Home::Metadata);
        let standard =
            own.filter_map(|slot| Some((slot.name.strip_prefix(STANDARD)?.to_owned(), width(slot.ty))));
        Fields { program, scalars: Vec::new(), standard: standard.collect() }
    }

    /// Header and field of a key, as p4c names them.
    fn target(&mut self, key: &TableKey) -> Value {
        let value = match &key.value {
            Expr::BoolToBits(inner) => inner,
            other => other,
        };
        match value {
            Expr::IsValid(header) => json!([instance(&self.program.headers[*header].name), "$valid$"]),
            Expr::Read(slot) => {
                let slot = &self.program.slots[*slot];
                match (slot.home, slot.name.strip_prefix(STANDARD)) {
                    (Home::Header { header, .. }, _) => {
                        json!([instance(&self.program.headers[header].name), last(&slot.name)])
                    }
                    (_, Some(field)) => json!([STANDARD.trim_end_matches('.'), field]),
                    (_, None) => {
                        let field = format!("userMetadata.{}", instance(&slot.name));
                        self.scalar(field, width(slot.ty))
                    }
                }
            }
            _ => self.scalar(key.name.clone(), width(key.value.ty(self.program))),
        }
    }

    fn scalar(&mut self, field: String, width: u32) -> Value {
        let target = json!(["scalars", field]);
        if !self.scalars.iter().any(|(known, _)| *known == field) {
            self.scalars.push((field, width));
        }
        target
    }

    /// Header types and headers.
    fn finish(self) -> (Vec<Value>, Vec<Value>) {
        let (mut types, mut headers) = (Vec::new(), Vec::new());
        let mut add = |name: &str, type_name: String, metadata: bool, fields: Option<Vec<Value>>| {
            if let Some(fields) = fields {
                types.push(json!({ "name": type_name, "id": types.len(), "fields": fields }));
            }
            headers.push(json!({
                "name": name, "id": headers.len(), "header_type": type_name,
                "metadata": metadata, "pi_omit": true,
            }));
        };
        let plain = |fields: &[(String, u32)]| {
            Some(fields.iter().map(|(name, width)| json!([name, width, false])).collect())
        };
        add("scalars", "scalars_0".into(), true, plain(&self.scalars));
        add("standard_metadata", "standard_metadata".into(), true, plain(&self.standard));
        let mut known: Vec<(String, Vec<Value>)> = Vec::new();
        for header in self.program.headers.values() {
            let fields: Vec<Value> =
                header.fields.iter().map(|slot| field(&self.program.slots[*slot])).collect();
            // Instances of a generic type have one name and several layouts.
            let mut name = header.type_name.clone();
            let mut same = known.iter().find(|(other, _)| *other == name);
            while same.is_some_and(|(_, layout)| *layout != fields) {
                name.push('_');
                same = known.iter().find(|(other, _)| *other == name);
            }
            let new = same.is_none().then(|| fields.clone());
            if new.is_some() {
                known.push((name.clone(), fields));
            }
            add(instance(&header.name), name, false, new);
        }
        (types, headers)
    }
}

const STANDARD: &str = "standard_metadata.";

fn field(slot: &Slot) -> Value {
    match slot.ty {
        Type::Varbit(most) => json!([last(&slot.name), "*", most]),
        ty => json!([last(&slot.name), width(ty), false]),
    }
}

/// A name without that of the parameter that it is part of: `ipv4` of `hdr.ipv4`.
fn instance(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, rest)| rest)
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    }
}
