//! Table entries and default actions of P4Runtime JSON.

use super::node::{Node, Problem};
use crate::commands::refused;
use millrace_commands::{nearest, value};
use millrace_dataplane::Switch;
use millrace_pipeline::{ActionCall, Bits, EntryMatch, MatchKind, TableId};
use millrace_state::{EntryWrite, State, Tables, Target, WriteError};
use serde_json::Value;

/// Writes one element of `table_entries`.
pub(super) fn entry(switch: &mut Switch, tables: &mut Tables, node: &Node<'_>) -> Result<(), Problem> {
    node.only(&["table", "match", "action_name", "action_params", "default_action", "priority"])?;
    let state = switch.state();
    let table_node = node.need("table")?;
    let table = state.table_named(table_node.text()?).map_err(|error| problem(&table_node, error))?;
    let action_node = node.need("action_name")?;
    let listed =
        state.action_named(table, action_node.text()?).map_err(|error| problem(&action_node, error))?;
    let args = params(state, table, listed, node)?;
    let call = ActionCall { action: listed, args };
    let is_default = node.get("default_action")?.map(|default| default.truth()).transpose()?.unwrap_or(false);
    if is_default {
        if let Some(given) =
            node.get("match")?.filter(|given| *given.value != Value::Object(Default::default()))
        {
            return Err(given.problem("a default action matches nothing".into()));
        }
        return tables.set_default(table, &call).map_err(|error| problem(node, error));
    }
    let matches = matches(state, table, node)?;
    let priority = priority(state, table, node)?;
    let entry = EntryWrite { matches, priority, target: Target::Action(call), idle_timeout_ns: 0 };
    let now = switch.now_ns();
    tables.insert(table, &entry, now).map(drop).map_err(|error| problem(node, error))
}

fn problem(node: &Node<'_>, error: WriteError) -> Problem {
    let refusal = refused(0..0, error);
    let problem = node.problem(refusal.message);
    match refusal.help {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

fn priority(state: &State, table: TableId, node: &Node<'_>) -> Result<u32, Problem> {
    let name = &state.program().tables[table].name;
    let given = node.get("priority")?;
    match (state.needs_priority(table), given) {
        (true, None) => Err(node
            .problem(format!("`{name}` needs a `priority`"))
            .with_help("of the entries that match at once, the one with the largest number wins".into())),
        (true, Some(given)) => match given.u32()? {
            priority if (1..=i32::MAX as u32).contains(&priority) => Ok(priority),
            _ => Err(given.problem(format!("a priority is a number from 1 to {}", i32::MAX))),
        },
        // The tutorials' files give 0 where there is none.
        (false, Some(given)) if given.u32()? != 0 => Err(given.problem(format!(
            "`{name}` has no ternary, range or optional field, so its entries have no priority"
        ))),
        (false, _) => Ok(0),
    }
}

fn params(state: &State, table: TableId, listed: usize, node: &Node<'_>) -> Result<Vec<Bits>, Problem> {
    let program = state.program();
    let action = program.tables[table].actions[listed].action;
    let called = &program.actions[action];
    let name = |slot: &millrace_pipeline::SlotId| {
        let full = program.slots[*slot].name.as_str();
        full.rsplit('.').next().unwrap_or(full)
    };
    let given = node.get("action_params")?;
    if let Some(given) = &given {
        for (key, member) in given.members()? {
            if !called.params.iter().any(|slot| name(slot) == key) {
                let near = nearest(key, called.params.iter().map(name));
                let problem = member.problem(format!("action `{}` has no parameter `{key}`", called.name));
                return Err(match near {
                    Some(near) => problem.with_help(format!("did you mean `{near}`?")),
                    None => problem,
                });
            }
        }
    }
    let widths = state.param_widths(action);
    let params = called.params.iter().zip(widths).map(|(slot, width)| {
        let member = match &given {
            Some(given) => given.get(name(slot))?,
            None => None,
        };
        let missing =
            || node.problem(format!("action `{}` needs the parameter `{}`", called.name, name(slot)));
        scalar(&member.ok_or_else(missing)?, *width)
    });
    params.collect()
}

fn matches(state: &State, table: TableId, node: &Node<'_>) -> Result<Vec<EntryMatch>, Problem> {
    let keys = &state.program().tables[table].keys;
    let given = match node.get("match")? {
        Some(given) => given.members()?,
        None => Vec::new(),
    };
    // A key may be named by the end of its name, as everything else; and what is `isValid()` in a program is `$valid$` in
    // the P4Info of p4c.
    let fits = |full: &str, name: &str| {
        let name = match name.strip_suffix("$valid$") {
            Some(header) => format!("{header}isValid()"),
            None => name.to_owned(),
        };
        full == name || full.strip_suffix(&name).is_some_and(|front| front.ends_with('.'))
    };
    for (name, member) in &given {
        if !keys.iter().any(|key| fits(&key.name, name)) {
            let near = nearest(name, keys.iter().map(|key| key.name.as_str()));
            let known: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the key has {}", known.join(", ")),
            };
            let table = &state.program().tables[table].name;
            return Err(member.problem(format!("`{table}` has no key field `{name}`")).with_help(help));
        }
    }
    let fields = keys.iter().zip(state.key_widths(table)).map(|(key, width)| {
        let exactly = given.iter().find(|(name, _)| *name == key.name);
        match exactly.or_else(|| given.iter().find(|(name, _)| fits(&key.name, name))) {
            Some((_, member)) => field(member, key.kind, *width),
            None => anything(key.kind, *width)
                .ok_or_else(|| node.problem(format!("the exact key field `{}` is missing", key.name))),
        }
    });
    fields.collect()
}

/// What a field that is left out matches.
fn anything(kind: MatchKind, width: u32) -> Option<EntryMatch> {
    Some(match kind {
        MatchKind::Exact => return None,
        MatchKind::Lpm => EntryMatch::Lpm(Bits::zero(width), 0),
        MatchKind::Ternary => EntryMatch::Ternary(Bits::zero(width), Bits::zero(width)),
        MatchKind::Range => EntryMatch::Range(Bits::zero(width), Bits::ones(width)),
        MatchKind::Optional => EntryMatch::Optional(None),
    })
}

fn field(node: &Node<'_>, kind: MatchKind, width: u32) -> Result<EntryMatch, Problem> {
    let pair = |shape: &str| match node.value {
        Value::Array(_) => match <[Node<'_>; 2]>::try_from(node.elements()?) {
            Ok(pair) => Ok(pair),
            Err(list) => Err(node.problem(format!("{shape} is expected, this list has {}", list.len()))),
        },
        _ => Err(node.problem(format!("{shape} is expected"))),
    };
    Ok(match kind {
        MatchKind::Exact => EntryMatch::Exact(scalar(node, width)?),
        MatchKind::Optional => EntryMatch::Optional(Some(scalar(node, width)?)),
        MatchKind::Lpm => {
            let [value, length] = pair("`[value, prefix length]`")?;
            let bits = length.u32()?;
            if bits > width {
                return Err(
                    length.problem(format!("a prefix of {bits} bits is too long, the field has {width}"))
                );
            }
            EntryMatch::Lpm(scalar(&value, width)?, bits)
        }
        MatchKind::Ternary => {
            let [value, mask] = pair("`[value, mask]`")?;
            EntryMatch::Ternary(scalar(&value, width)?, scalar(&mask, width)?)
        }
        MatchKind::Range => {
            let [low, high] = pair("`[low, high]`")?;
            let (low, high) = (scalar(&low, width)?, scalar(&high, width)?);
            if low.to_biguint() > high.to_biguint() {
                return Err(node.problem("the range is empty: its low end is above its high end".into()));
            }
            EntryMatch::Range(low, high)
        }
    })
}

/// A value: a number, a text, a truth value, or a list of one of them.
fn scalar(node: &Node<'_>, width: u32) -> Result<Bits, Problem> {
    let parsed = match node.value {
        Value::Number(number) => value::number(&number.to_string(), width),
        Value::String(text) => value::parse(text, width),
        Value::Bool(truth) => value::number(if *truth { "1" } else { "0" }, width),
        Value::Array(list) if list.len() == 1 => {
            return match node.elements()?.first() {
                Some(only) => scalar(only, width),
                None => Err(node.problem("a value is missing".into())),
            };
        }
        _ => return Err(node.problem("a number or a text is expected".into())),
    };
    parsed.map_err(|error| node.problem(error.to_string()))
}
