//! What a program has, from its description in bmv2's layout.

use crate::trouble::Trouble;
use millrace_pipeline::MatchKind;
use millrace_pipeline::limits::MAX_WIDTH;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A program.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    pub(crate) tables: BTreeMap<String, Table>,
    pub(crate) actions: BTreeMap<String, Action>,
    pub(crate) profiles: BTreeMap<String, Profile>,
    pub(crate) meters: BTreeMap<String, Meter>,
    pub(crate) counters: BTreeMap<String, Counter>,
    pub(crate) registers: BTreeMap<String, ()>,
    /// Their widths.
    pub(crate) value_sets: BTreeMap<String, u32>,
    /// Hashes with their algorithms.
    pub(crate) calculations: BTreeMap<String, String>,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    /// How it is looked up: `lpm`.
    pub(crate) match_type: String,
    pub(crate) actions: BTreeSet<String>,
    pub(crate) key: Vec<KeyField>,
    /// Its action profile.
    pub(crate) profile: Option<String>,
    pub(crate) idle_timeout: bool,
}

/// One field of a key.
#[derive(Debug)]
pub(crate) struct KeyField {
    pub(crate) name: String,
    pub(crate) kind: FieldKind,
    pub(crate) width: u32,
}

/// How a field matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FieldKind {
    /// Whether a header is valid, in descriptions of P4_14 programs.
    Valid,
    Value(MatchKind),
}

/// An action: its parameters with their widths.
#[derive(Debug)]
pub(crate) struct Action(pub(crate) Vec<(String, u32)>);

/// An action profile.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) has_groups: bool,
    /// Actions of the tables that use it.
    pub(crate) actions: BTreeSet<String>,
}

/// A meter.
#[derive(Debug)]
pub(crate) struct Meter {
    /// The table whose entries have it.
    pub(crate) table: Option<String>,
    pub(crate) rates: u64,
}

/// A counter.
#[derive(Debug)]
pub(crate) struct Counter {
    /// The table whose entries have it.
    pub(crate) table: Option<String>,
}

impl Table {
    /// Whether entries have priorities.
    pub(crate) fn has_priorities(&self) -> bool {
        matches!(self.match_type.as_str(), "ternary" | "range")
    }
}

impl FieldKind {
    /// Its name in upper case, for dumps.
    pub(crate) fn shown(self) -> String {
        self.name().to_uppercase()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            FieldKind::Valid => "valid",
            FieldKind::Value(kind) => millrace_commands::matching::kind_name(kind),
        }
    }
}

impl Schema {
    /// Reads a description.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(json: &str) -> Result<Schema, Trouble> {
        let json: Value = serde_json::from_str(json)
            .map_err(|error| Trouble::wrong(format!("the description of the program is no JSON: {error}")))?;
        let mut schema = Schema::default();
        schema
            .fill(&json)
            .ok_or_else(|| Trouble::wrong("the description of the program is not one of bmv2"))?;
        Ok(schema)
    }

    fn fill(&mut self, json: &Value) -> Option<()> {
        json.as_object()?;
        for action in array(json, "actions") {
            let params = array(action, "runtime_data");
            let params = params.map(|param| Some((text(param, "name")?, width(&param["bitwidth"])?)));
            self.actions.insert(text(action, "name")?, Action(params.collect::<Option<_>>()?));
        }
        for pipeline in array(json, "pipelines") {
            for profile in array(pipeline, "action_profiles") {
                let has_groups = profile.get("selector").is_some_and(|selector| !selector.is_null());
                let profile_name = text(profile, "name")?;
                self.profiles.insert(profile_name, Profile { has_groups, ..Profile::default() });
            }
            for table in array(pipeline, "tables") {
                self.add_table(json, table)?;
            }
        }
        let binding = |of: &Value| match of["is_direct"].as_bool() {
            Some(true) => text(of, "binding").map(Some),
            _ => Some(None),
        };
        for meter in array(json, "meter_arrays") {
            let rates = meter["rate_count"].as_u64().unwrap_or(2);
            self.meters.insert(text(meter, "name")?, Meter { table: binding(meter)?, rates });
        }
        for counter in array(json, "counter_arrays") {
            self.counters.insert(text(counter, "name")?, Counter { table: binding(counter)? });
        }
        for register in array(json, "register_arrays") {
            self.registers.insert(text(register, "name")?, ());
        }
        for calculation in array(json, "calculations") {
            self.calculations.insert(text(calculation, "name")?, text(calculation, "algo")?);
        }
        for set in array(json, "parse_vsets") {
            self.value_sets.insert(text(set, "name")?, width(&set["compressed_bitwidth"])?);
        }
        Some(())
    }

    fn add_table(&mut self, json: &Value, table: &Value) -> Option<()> {
        let actions: BTreeSet<String> =
            array(table, "actions").map(|name| Some(name.as_str()?.to_owned())).collect::<Option<_>>()?;
        let profile = match table["type"].as_str()? {
            "simple" => None,
            kind => {
                let named = text(table, "action_profile").or_else(|| text(table, "act_prof_name"))?;
                let profile = self.profiles.entry(named.clone()).or_default();
                profile.has_groups |= kind == "indirect_ws";
                profile.actions.extend(actions.iter().cloned());
                Some(named)
            }
        };
        let key = array(table, "key").map(|field| key_field(json, field)).collect::<Option<_>>()?;
        let read = Table {
            match_type: text(table, "match_type")?,
            actions,
            key,
            profile,
            idle_timeout: table["support_timeout"].as_bool().unwrap_or(false),
        };
        self.tables.insert(text(table, "name")?, read);
        Some(())
    }

    /// A table that entries with members are for, with its profile.
    pub(crate) fn indirect<'s>(
        &'s self,
        name: &str,
        groups: bool,
    ) -> Result<(&'s str, &'s Table, &'s str), Trouble> {
        let (full, table) = find("table", &self.tables, name)?;
        let profile = table.profile.as_deref();
        let profile =
            profile.ok_or_else(|| Trouble::wrong("Cannot run this command on non-indirect table"))?;
        if groups && !self.profiles.get(profile).is_some_and(|profile| profile.has_groups) {
            return Err(Trouble::wrong("Cannot run this command on an indirect table without a selector"));
        }
        Ok((full, table, profile))
    }
}

/// An object by its full name, or by the end of it, as long as it is the end of only one.
pub(crate) fn find<'s, T>(
    what: &str,
    objects: &'s BTreeMap<String, T>,
    name: &str,
) -> Result<(&'s str, &'s T), Trouble> {
    if let Some((full, object)) = objects.get_key_value(name) {
        return Ok((full, object));
    }
    let ends_so = |full: &str| full.strip_suffix(name).is_some_and(|front| front.ends_with('.'));
    let found: Vec<(&String, &T)> = objects.iter().filter(|(full, _)| ends_so(full)).collect();
    let more = match found.as_slice() {
        [(full, object)] => return Ok((full, object)),
        [] => millrace_commands::nearest(name, objects.keys().map(String::as_str))
            .map_or_else(String::new, |near| format!(", did you mean `{near}`?")),
        several => {
            let names: Vec<String> = several.iter().map(|(full, _)| format!("`{full}`")).collect();
            format!(", it can be {}", names.join(", "))
        }
    };
    Err(Trouble::wrong(format!("Invalid {what} name ({name}){more}")))
}

fn key_field(json: &Value, field: &Value) -> Option<KeyField> {
    let kind = match field["match_type"].as_str()? {
        "valid" => FieldKind::Valid,
        "exact" => FieldKind::Value(MatchKind::Exact),
        "lpm" => FieldKind::Value(MatchKind::Lpm),
        "ternary" => FieldKind::Value(MatchKind::Ternary),
        "range" => FieldKind::Value(MatchKind::Range),
        _ => return None,
    };
    let target = &field["target"];
    if let (FieldKind::Valid, Some(header)) = (kind, target.as_str()) {
        return Some(KeyField { name: format!("{header}_valid"), kind, width: 1 });
    }
    let (header, member) = (target[0].as_str()?, target[1].as_str()?);
    if member == "$valid$" {
        return Some(KeyField { name: format!("{header}_valid"), kind, width: 1 });
    }
    let instance = array(json, "headers").find(|instance| instance["name"] == header)?;
    let layout = array(json, "header_types").find(|layout| layout["name"] == instance["header_type"])?;
    let found = array(layout, "fields").find(|field| field[0] == member)?;
    Some(KeyField { name: format!("{header}.{member}"), kind, width: width(&found[1])? })
}

fn array<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.get(key).and_then(Value::as_array).map_or([].iter(), |found| found.iter())
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// A width in bits, as values can have it.
fn width(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|width| u32::try_from(width).ok()).filter(|width| (1..=MAX_WIDTH).contains(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As bmv2 describes a P4_14 table, written by hand.
    const OLD: &str = r#"{
        "header_types": [{ "name": "h_t", "fields": [["f", 9], ["g", 16, false]] }],
        "headers": [{ "name": "h", "header_type": "h_t" }],
        "actions": [{ "name": "set", "id": 0, "runtime_data": [{ "name": "v", "bitwidth": 32 }] }],
        "pipelines": [{ "tables": [{
            "name": "t", "id": 0, "match_type": "ternary", "type": "indirect_ws", "act_prof_name": "p",
            "selector": {}, "support_timeout": true, "actions": ["set"],
            "key": [
                { "match_type": "valid", "target": "h" },
                { "match_type": "ternary", "target": ["h", "g"] },
                { "match_type": "exact", "target": ["h", "$valid$"] }
            ]
        }] }],
        "counter_arrays": [{ "name": "hits", "id": 0, "is_direct": true, "binding": "t" }]
    }"#;

    #[test]
    fn descriptions_of_older_programs_are_read() {
        let schema = Schema::read(OLD).unwrap();
        let (_, table, profile) = schema.indirect("t", true).unwrap();
        let key: Vec<(&str, FieldKind, u32)> =
            table.key.iter().map(|field| (field.name.as_str(), field.kind, field.width)).collect();
        let ternary = FieldKind::Value(MatchKind::Ternary);
        let exact = FieldKind::Value(MatchKind::Exact);
        assert_eq!(key, [("h_valid", FieldKind::Valid, 1), ("h.g", ternary, 16), ("h_valid", exact, 1)]);
        assert_eq!(profile, "p");
        assert!(table.has_priorities() && schema.profiles["p"].actions.contains("set"));
        assert_eq!(schema.counters["hits"].table.as_deref(), Some("t"));
    }

    #[test]
    fn names_may_be_ends_of_only_one() {
        let names = ["a.t", "b.t", "b.u"].map(|name| (name.to_owned(), ()));
        let objects = BTreeMap::from(names);
        assert_eq!(find("table", &objects, "u").unwrap().0, "b.u");
        assert_eq!(find("table", &objects, "a.t").unwrap().0, "a.t");
        assert_eq!(
            find("table", &objects, "t").unwrap_err().to_string(),
            "Error: Invalid table name (t), it can be `a.t`, `b.t`"
        );
    }

    #[test]
    fn what_is_no_description_is_refused() {
        for wrong in ["", "[]", "{", r#"{"actions": [{}]}"#, r#"{"pipelines": [{"tables": [{"name": 1}]}]}"#]
        {
            assert!(Schema::read(wrong).is_err(), "{wrong}");
        }
    }
}
