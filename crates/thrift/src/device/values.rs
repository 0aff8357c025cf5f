//! Values between the wire and the tables.

use super::loaded::Loaded;
use millrace_commands::{bmv2_priority, from_bmv2_priority};
use millrace_pipeline::{ActionCall, ActionId, Bits, EntryMatch, MatchKind, TableId};
use millrace_state::Target;
use millrace_thrift_api::{
    ActionData, ActionEntry, ActionEntryType, InvalidTableOperation, MatchExact, MatchKey, MatchLpm,
    MatchParam, MatchRange, MatchTernary, MatchType, TableCode,
};

/// The number that big-endian bytes are, when the field holds it. (bmv2 cuts off what is above the field.)
pub(super) fn number(bytes: &[u8], width: u32) -> Option<Bits> {
    let zeroes = bytes.iter().take_while(|byte| **byte == 0).count();
    let digits = &bytes[zeroes..];
    let bits = digits.len() as u64 * 8 - digits.first().map_or(0, |first| u64::from(first.leading_zeros()));
    (width > 0 && bits <= u64::from(width)).then(|| Bits::from_bytes(width, digits))
}

/// The match fields of an entry.
pub(super) fn matches(
    loaded: &Loaded,
    table: TableId,
    key: &[MatchParam],
) -> Result<Vec<EntryMatch>, InvalidTableOperation> {
    let fields = &loaded.program.tables[table].keys;
    if key.len() != fields.len() {
        return Err(TableCode::BadMatchKey.into());
    }
    let parts = fields.iter().zip(loaded.key_widths(table)).zip(key);
    let read = parts.map(|((field, width), param)| entry_match(field.kind, *width, param));
    read.collect::<Option<_>>().ok_or(TableCode::BadMatchKey.into())
}

fn entry_match(kind: MatchKind, width: u32, param: &MatchParam) -> Option<EntryMatch> {
    let number = |bytes: &[u8]| number(bytes, width);
    Some(match (kind, param.kind) {
        (MatchKind::Exact, MatchType::Exact) => EntryMatch::Exact(number(&param.exact.as_ref()?.key)?),
        (MatchKind::Exact, MatchType::Valid) => {
            EntryMatch::Exact(Bits::new(width, u128::from(param.valid.as_ref()?.key)))
        }
        (MatchKind::Lpm, MatchType::Lpm) => {
            let lpm = param.lpm.as_ref()?;
            let length = u32::try_from(lpm.prefix_length).ok().filter(|length| *length <= width)?;
            EntryMatch::Lpm(number(&lpm.key)?, length)
        }
        (MatchKind::Ternary, MatchType::Ternary) => {
            let ternary = param.ternary.as_ref()?;
            EntryMatch::Ternary(number(&ternary.key)?, number(&ternary.mask)?)
        }
        // bmv2 has no optional fields: they are ternary ones with a mask of all ones or 0.
        (MatchKind::Optional, MatchType::Ternary) => {
            let ternary = param.ternary.as_ref()?;
            let (value, mask) = (number(&ternary.key)?, number(&ternary.mask)?);
            match (mask.is_zero(), mask.is_ones()) {
                (true, _) => EntryMatch::Optional(None),
                (_, true) => EntryMatch::Optional(Some(value)),
                _ => return None,
            }
        }
        (MatchKind::Range, MatchType::Range) => {
            let range = param.range.as_ref()?;
            EntryMatch::Range(number(&range.start)?, number(&range.end)?)
        }
        _ => return None,
    })
}

/// The match fields of an entry as clients see them.
pub(super) fn match_key(loaded: &Loaded, table: TableId, matches: &[EntryMatch]) -> MatchKey {
    matches.iter().zip(loaded.key_widths(table)).map(|(field, width)| match_param(field, *width)).collect()
}

fn match_param(field: &EntryMatch, width: u32) -> MatchParam {
    let ternary = |value: &Bits, mask: &Bits| MatchParam {
        kind: MatchType::Ternary,
        ternary: Some(MatchTernary { key: value.to_bytes(), mask: mask.to_bytes() }),
        ..MatchParam::default()
    };
    match field {
        EntryMatch::Exact(value) => MatchParam {
            kind: MatchType::Exact,
            exact: Some(MatchExact { key: value.to_bytes() }),
            ..MatchParam::default()
        },
        EntryMatch::Lpm(value, length) => MatchParam {
            kind: MatchType::Lpm,
            lpm: Some(MatchLpm {
                key: value.to_bytes(),
                prefix_length: i32::try_from(*length).unwrap_or(i32::MAX),
            }),
            ..MatchParam::default()
        },
        EntryMatch::Ternary(value, mask) => ternary(value, mask),
        EntryMatch::Optional(Some(value)) => ternary(value, &Bits::ones(width)),
        EntryMatch::Optional(None) => ternary(&Bits::zero(width), &Bits::zero(width)),
        EntryMatch::Range(low, high) => MatchParam {
            kind: MatchType::Range,
            range: Some(MatchRange { start: low.to_bytes(), end: high.to_bytes() }),
            ..MatchParam::default()
        },
    }
}

/// Whether entries of a table have priorities.
pub(super) fn has_priorities(loaded: &Loaded, table: TableId) -> bool {
    let keys = &loaded.program.tables[table].keys;
    keys.iter().any(|key| !matches!(key.kind, MatchKind::Exact | MatchKind::Lpm))
}

/// The priority of an entry in the order of the tables.
pub(super) fn priority(
    loaded: &Loaded,
    table: TableId,
    given: Option<i32>,
) -> Result<u32, InvalidTableOperation> {
    if !has_priorities(loaded, table) {
        return Ok(0);
    }
    let given = u64::try_from(given.unwrap_or(0)).ok();
    given.and_then(from_bmv2_priority).ok_or(TableCode::Error.into())
}

/// The priority of an entry as clients see it: -1 where there are none.
pub(super) fn shown_priority(loaded: &Loaded, table: TableId, kept: u32) -> i32 {
    match has_priorities(loaded, table) {
        true => i32::try_from(bmv2_priority(kept)).unwrap_or(i32::MAX),
        false => -1,
    }
}

/// An action of a table with its data.
pub(super) fn call(
    loaded: &Loaded,
    table: TableId,
    action: &str,
    data: &ActionData,
) -> Result<ActionCall, InvalidTableOperation> {
    let program = &loaded.program;
    let listed = program.tables[table].actions.iter();
    let at = listed.clone().position(|listed| program.actions[listed.action].name == action);
    let at = at.ok_or(TableCode::InvalidActionName)?;
    let args = arguments(loaded, program.tables[table].actions[at].action, data)?;
    Ok(ActionCall { action: at, args })
}

/// The values of an action's parameters.
pub(super) fn arguments(
    loaded: &Loaded,
    action: ActionId,
    data: &ActionData,
) -> Result<Vec<Bits>, InvalidTableOperation> {
    let widths = loaded.param_widths(action);
    if widths.len() != data.len() {
        return Err(TableCode::BadActionData.into());
    }
    let read = widths.iter().zip(data).map(|(width, bytes)| number(bytes, *width));
    read.collect::<Option<_>>().ok_or(TableCode::BadActionData.into())
}

/// What an entry does, as clients see it.
pub(super) fn action_entry(loaded: &Loaded, table: TableId, target: &Target) -> ActionEntry {
    let handle = |id: &u32| i32::try_from(*id).ok();
    match target {
        Target::Action(call) => {
            let program = &loaded.program;
            let listed = program.tables[table].actions.get(call.action);
            ActionEntry {
                action_type: ActionEntryType::ActionData,
                action_name: listed.map(|listed| program.actions[listed.action].name.clone()),
                action_data: Some(call.args.iter().map(Bits::to_bytes).collect()),
                ..ActionEntry::default()
            }
        }
        Target::Member(member) => ActionEntry {
            action_type: ActionEntryType::Member,
            mbr_handle: handle(member),
            ..ActionEntry::default()
        },
        Target::Group(group) => ActionEntry {
            action_type: ActionEntryType::Group,
            grp_handle: handle(group),
            ..ActionEntry::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_shorter_or_longer_but_must_fit() {
        assert_eq!(number(&[1, 0xff], 9), Some(Bits::new(9, 0x1ff)));
        assert_eq!(number(&[0, 0, 1], 9), Some(Bits::new(9, 1)));
        assert_eq!(number(&[], 9), Some(Bits::zero(9)));
        assert_eq!(number(&[2, 0], 9), None);
    }

    #[test]
    fn optional_fields_are_ternary_ones() {
        let read = |param: &MatchParam| entry_match(MatchKind::Optional, 9, param);
        for field in [EntryMatch::Optional(None), EntryMatch::Optional(Some(Bits::new(9, 0x1ff)))] {
            assert_eq!(read(&match_param(&field, 9)), Some(field));
        }
        let partly = EntryMatch::Ternary(Bits::new(9, 1), Bits::new(9, 1));
        assert_eq!(read(&match_param(&partly, 9)), None);
    }
}
