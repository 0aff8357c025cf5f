//! Tables, their constant entries, and runtime commands for the others.

use crate::expr::Exprs;
use crate::scope::Scope;
use crate::stmt::{Action, Stmts};
use crate::types::{Ty, Types};
use millrace_pipeline::Bits;
use millrace_pipeline::arbitrary::Rng;

/// A key field.
struct Key {
    text: String,
    width: u32,
    kind: &'static str,
}

/// Writes a table of that name; adds commands for its entries, and gives the names of its actions.
pub(crate) fn table(
    name: &str,
    stmts: &mut Stmts<'_>,
    actions: &[Action],
    commands: &mut Vec<String>,
) -> Vec<String> {
    let mut keys: Vec<Key> = Vec::new();
    for _ in 0..stmts.rng.below(4) {
        keys.push(key(stmts, &keys));
    }
    let mut listed: Vec<(Action, String)> = Vec::new();
    for action in actions {
        if stmts.rng.below(3) == 0 {
            continue;
        }
        let Some(arguments) = stmts.directed(action) else { continue };
        let call = match arguments.is_empty() {
            true => action.name.clone(),
            false => format!("{}({})", action.name, arguments.join(", ")),
        };
        listed.push((action.clone(), call));
    }
    let nothing = Action { name: "NoAction".into(), directed: Vec::new(), data: Vec::new() };
    listed.push((nothing, "NoAction".into()));

    if stmts.rng.one_in(3) {
        stmts.text.line(format!("direct_counter(CounterType.packets_and_bytes) {name}_counter;"));
        stmts.text.open(format!("table {name} {{"));
        stmts.text.line(format!("counters = {name}_counter;"));
    } else {
        stmts.text.open(format!("table {name} {{"));
    }
    stmts.text.line("key = {");
    for (at, key) in keys.iter().enumerate() {
        // An expression has no name of its own.
        stmts.text.line(format!("    {}: {} @name(\"k{at}\");", key.text, key.kind));
    }
    stmts.text.line("}");
    let calls: Vec<&str> = listed.iter().map(|(_, call)| call.as_str()).collect();
    stmts.text.line(format!("actions = {{ {}; }}", calls.join("; ")));
    let (default, call) = listed[stmts.rng.below(listed.len())].clone();
    let data = literals(stmts.rng, stmts.types, &stmts.scope, &default.data);
    stmts.text.line(format!("default_action = {};", with_data(&call, &data)));
    stmts.text.line("size = 64;");
    if !keys.is_empty() {
        if stmts.rng.one_in(3) {
            constant_entries(stmts, &keys, &listed);
        } else {
            for number in 0..stmts.rng.below(6) {
                let (action, _) = listed[stmts.rng.below(listed.len())].clone();
                commands.push(command(stmts.rng, stmts.types, name, &keys, &action, number));
            }
        }
    }
    stmts.text.close("}");
    listed.into_iter().map(|(action, _)| action.name).collect()
}

fn key(stmts: &mut Stmts<'_>, before: &[Key]) -> Key {
    let kinds: &[&'static str] = match before.iter().any(|key| key.kind == "lpm") {
        true => &["exact", "ternary", "range", "optional"],
        false => &["exact", "exact", "lpm", "lpm", "ternary", "range", "optional"],
    };
    let kind = kinds[stmts.rng.below(kinds.len())];
    let width = stmts.types.width(stmts.rng);
    let text = match stmts.scope.pick(stmts.rng, |var| var.ty == Ty::Bit(width)) {
        Some(var) if stmts.rng.below(3) > 0 => var.path.clone(),
        _ => stmts.expr(Ty::Bit(width), 2),
    };
    Key { text, width, kind }
}

fn with_data(call: &str, data: &[String]) -> String {
    match (call.strip_suffix(')'), data.is_empty()) {
        (_, true) if call.ends_with(')') => call.to_owned(),
        (_, true) => format!("{call}()"),
        (Some(open), false) => format!("{open}, {})", data.join(", ")),
        (None, false) => format!("{call}({})", data.join(", ")),
    }
}

fn literals(rng: &mut Rng, types: &Types, scope: &Scope, data: &[Ty]) -> Vec<String> {
    let mut exprs = Exprs { rng, types, scope, constant: true };
    data.iter().map(|ty| exprs.literal(*ty)).collect()
}

fn constant_entries(stmts: &mut Stmts<'_>, keys: &[Key], listed: &[(Action, String)]) {
    stmts.text.open("const entries = {");
    let mut seen = Vec::new();
    for _ in 0..1 + stmts.rng.below(5) {
        let fields: Vec<String> = keys.iter().map(|key| keyset(stmts.rng, key)).collect();
        let fields = format!("({})", fields.join(", "));
        if seen.contains(&fields) {
            continue;
        }
        let (action, call) = listed[stmts.rng.below(listed.len())].clone();
        let data = literals(stmts.rng, stmts.types, &stmts.scope, &action.data);
        stmts.text.line(format!("{fields}: {};", with_data(&call, &data)));
        seen.push(fields);
    }
    stmts.text.close("}");
}

fn value(rng: &mut Rng, width: u32) -> String {
    rng.bits(width).to_biguint().to_string()
}

/// What a constant entry says of a field.
fn keyset(rng: &mut Rng, key: &Key) -> String {
    let width = key.width;
    let number = |rng: &mut Rng| format!("{width}w{}", value(rng, width));
    match key.kind {
        "exact" => number(rng),
        "lpm" => {
            let length = rng.below(width as usize + 1) as u32;
            let (value, mask) = prefix(rng, width, length);
            format!("{width}w{value} &&& {width}w{mask}")
        }
        "optional" if rng.one_in(3) => "_".into(),
        "optional" => number(rng),
        "range" => {
            let (low, high) = ordered(rng, width);
            format!("{width}w{low}..{width}w{high}")
        }
        _ if rng.one_in(4) => "_".into(),
        _ => format!("{} &&& {}", number(rng), number(rng)),
    }
}

fn ordered(rng: &mut Rng, width: u32) -> (String, String) {
    let (one, other) = (rng.bits(width).to_biguint(), rng.bits(width).to_biguint());
    let (low, high) = if one <= other { (one, other) } else { (other, one) };
    (low.to_string(), high.to_string())
}

/// A prefix, and its mask.
fn prefix(rng: &mut Rng, width: u32, length: u32) -> (String, String) {
    let mask = Bits::ones(width).shl_by(u64::from(width - length));
    (rng.bits(width).and(&mask).to_biguint().to_string(), mask.to_biguint().to_string())
}

/// A runtime command that adds an entry.
fn command(
    rng: &mut Rng,
    types: &Types,
    table: &str,
    keys: &[Key],
    action: &Action,
    number: usize,
) -> String {
    let needs_priority = keys.iter().any(|key| matches!(key.kind, "ternary" | "range" | "optional"));
    let fields: Vec<String> = keys
        .iter()
        .map(|key| {
            let width = key.width;
            match key.kind {
                "exact" => value(rng, width),
                "lpm" => {
                    let length = rng.below(width as usize + 1) as u32;
                    format!("{}/{length}", prefix(rng, width, length).0)
                }
                "range" => {
                    let (low, high) = ordered(rng, width);
                    format!("{low}->{high}")
                }
                _ => format!("{}&&&{}", value(rng, width), value(rng, width)),
            }
        })
        .collect();
    let data: Vec<String> = action.data.iter().map(|ty| value(rng, types.bits(*ty))).collect();
    let priority = if needs_priority { format!(" {}", number + 1) } else { String::new() };
    format!("table_add {table} {} {} => {}{priority}", action.name, fields.join(" "), data.join(" "))
}
