//! Completion: names of commands, and of what follows them.

use crate::catalogue;
use crate::schema::Schema;
use millrace_printable::printable_line;

/// Where the word at the cursor starts, and what it can become.
pub(crate) fn complete(schema: &Schema, before: &str) -> (usize, Vec<String>) {
    let start = before.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
    let word = &before[start..];
    let words: Vec<&str> = before[..start].split_whitespace().collect();
    let mut found: Vec<String> = match words.as_slice() {
        [] => catalogue::names().map(str::to_owned).collect(),
        ["help" | "?"] => catalogue::names().map(str::to_owned).collect(),
        [command] => first(schema, command),
        [command, of] => second(schema, command, of),
        _ => Vec::new(),
    };
    // The end of a name is enough where it is the end of only one.
    let ends_so = |name: &str| {
        !word.is_empty() && name.match_indices('.').any(|(dot, _)| name[dot + 1..].starts_with(word))
    };
    found.retain(|name| name.starts_with(word) || ends_so(name));
    // Names come from the switch, and the terminal would obey these.
    found.retain(|name| printable_line(name) == name.as_str());
    found.sort_unstable();
    found.dedup();
    (start, found)
}

/// What the first word after a command names.
fn first(schema: &Schema, command: &str) -> Vec<String> {
    match catalogue::usage(command).and_then(|(args, _)| args.split_whitespace().next()) {
        Some("TABLE") => schema.tables.keys().cloned().collect(),
        Some("PROFILE") => schema.profiles.keys().cloned().collect(),
        Some("COUNTER") => schema.counters.keys().cloned().collect(),
        Some("METER") => schema.meters.keys().cloned().collect(),
        Some("REGISTER") => schema.registers.keys().cloned().collect(),
        Some("VALUE_SET") => schema.value_sets.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Actions of a table or a profile.
fn second(schema: &Schema, command: &str, of: &str) -> Vec<String> {
    let args = catalogue::usage(command).map_or("", |(args, _)| args);
    let mut args = args.split_whitespace();
    let (kind, next) = (args.next(), args.next());
    if next != Some("ACTION") {
        return Vec::new();
    }
    let table = || crate::schema::find("table", &schema.tables, of).ok().map(|(_, table)| &table.actions);
    let profile =
        || crate::schema::find("action profile", &schema.profiles, of).ok().map(|(_, found)| &found.actions);
    let actions = if kind == Some("TABLE") { table() } else { profile() };
    actions.map_or_else(Vec::new, |actions| actions.iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let json = r#"{
            "actions": [{ "name": "In.set", "runtime_data": [] }, { "name": "In.drop", "runtime_data": [] }],
            "pipelines": [{ "tables": [
                { "name": "In.route", "match_type": "lpm", "type": "simple", "actions": ["In.set", "In.drop"], "key": [] },
                { "name": "Eg.rest", "match_type": "exact", "type": "simple", "actions": [], "key": [] }
            ] }],
            "register_arrays": [{ "name": "In.last", "size": 1, "bitwidth": 8 }]
        }"#;
        Schema::read(json).unwrap()
    }

    fn completed(before: &str) -> (usize, Vec<String>) {
        complete(&schema(), before)
    }

    #[test]
    fn commands_then_objects_then_actions() {
        let (start, names) = completed("table_dump_e");
        assert_eq!((start, names), (0, vec!["table_dump_entry".into(), "table_dump_entry_from_key".into()]));
        assert_eq!(completed("table_add "), (10, vec!["Eg.rest".into(), "In.route".into()]));
        assert_eq!(completed("table_add ro"), (10, vec!["In.route".into()]));
        assert_eq!(completed("table_add route In.s"), (16, vec!["In.set".into()]));
        assert_eq!(completed("register_read "), (14, vec!["In.last".into()]));
        assert_eq!(completed("table_dump route "), (17, vec![]));
        assert_eq!(completed("mc_mgrp_create "), (15, vec![]));
        assert!(completed("help sw").1.contains(&"switch_info".to_owned()));
    }
}
