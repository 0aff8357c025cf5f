//! Values between words and the wire.

use crate::schema::{Action, FieldKind, Table};
use crate::trouble::Trouble;
use millrace_commands::Word;
use millrace_commands::{matching, value};
use millrace_pipeline::EntryMatch;
use millrace_thrift_api::{
    ActionData, EntryOptions, MatchExact, MatchKey, MatchLpm, MatchParam, MatchRange, MatchTernary,
    MatchType, MatchValid,
};

/// The match fields of an entry.
pub(crate) fn match_key(name: &str, table: &Table, words: &[Word<'_>]) -> Result<MatchKey, Trouble> {
    if words.len() != table.key.len() {
        return Err(Trouble::wrong(format!("Table {name} needs {} key fields", table.key.len())));
    }
    let fields = table.key.iter().zip(words);
    fields
        .map(|(field, word)| match field.kind {
            FieldKind::Valid => {
                let valid = value::plain(word.text).map_err(|error| wrong_match(word, &error.to_string()))?;
                let valid = Some(MatchValid { key: valid != 0 });
                Ok(MatchParam { kind: MatchType::Valid, valid, ..MatchParam::default() })
            }
            FieldKind::Value(kind) => {
                let read = matching::parse(word.text, kind, field.width);
                Ok(match_param(&read.map_err(|error| wrong_match(word, &error.message))?))
            }
        })
        .collect()
}

fn wrong_match(word: &Word<'_>, why: &str) -> Trouble {
    Trouble::Refused(format!("Invalid match key: {}: {why}", word.text))
}

fn match_param(field: &EntryMatch) -> MatchParam {
    let empty = MatchParam::default();
    match field {
        EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => {
            MatchParam { kind: MatchType::Exact, exact: Some(MatchExact { key: value.to_bytes() }), ..empty }
        }
        EntryMatch::Lpm(value, length) => MatchParam {
            kind: MatchType::Lpm,
            lpm: Some(MatchLpm {
                key: value.to_bytes(),
                prefix_length: i32::try_from(*length).unwrap_or(i32::MAX),
            }),
            ..empty
        },
        EntryMatch::Ternary(value, mask) => MatchParam {
            kind: MatchType::Ternary,
            ternary: Some(MatchTernary { key: value.to_bytes(), mask: mask.to_bytes() }),
            ..empty
        },
        EntryMatch::Range(low, high) => MatchParam {
            kind: MatchType::Range,
            range: Some(MatchRange { start: low.to_bytes(), end: high.to_bytes() }),
            ..empty
        },
        // Descriptions of bmv2 have no optional fields.
        EntryMatch::Optional(None) => empty,
    }
}

/// The values of an action's parameters.
pub(crate) fn action_data(name: &str, action: &Action, words: &[Word<'_>]) -> Result<ActionData, Trouble> {
    let Action(params) = action;
    if words.len() != params.len() {
        return Err(Trouble::wrong(format!("Action {name} needs {} parameters", params.len())));
    }
    let values = params.iter().zip(words).map(|((_, width), word)| match value::parse(word.text, *width) {
        Ok(value) => Ok(value.to_bytes()),
        Err(error) => Err(Trouble::Refused(format!("Invalid runtime data: {}: {error}", word.text))),
    });
    values.collect()
}

/// Takes the priority off the end of a command, when entries of the table have one.
pub(crate) fn priority<'l, 'a>(
    table: &Table,
    words: &'l [Word<'a>],
) -> Result<(&'l [Word<'a>], EntryOptions), Trouble> {
    if !table.has_priorities() {
        return Ok((words, EntryOptions { priority: Some(0) }));
    }
    let last = words.split_last().and_then(|(last, rest)| {
        let priority = value::plain(last.text).ok().and_then(|priority| i32::try_from(priority).ok())?;
        Some((rest, EntryOptions { priority: Some(priority) }))
    });
    last.ok_or_else(|| {
        Trouble::wrong("the table has priorities, and there is none at the end of the command")
    })
}

/// A handle as the interface has it.
pub(crate) fn handle(given: (u32, Word<'_>)) -> i32 {
    // bmv2 has handles of 32 bits without a sign, and its interface such with one.
    given.0 as i32
}

/// A number of the interface that has no sign.
pub(crate) fn number(what: &str, given: u64) -> Result<i32, Trouble> {
    i32::try_from(given).map_err(|_| Trouble::wrong(format!("{what} {given} is too large")))
}

/// Bytes as two digits each, between them `between`.
pub(crate) fn hex(bytes: &[u8], between: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between)
}
