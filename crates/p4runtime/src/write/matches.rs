//! What entries are known by: keys and the members of value sets.

use super::{Decoder, invalid};
use crate::catalog::{FieldInfo, TableInfo};
use crate::refusal::Refusal;
use crate::shadow::EntryKey;
use crate::translation::NewText;
use millrace_p4runtime_api::v1;
use millrace_p4runtime_api::v1::field_match::FieldMatchType;
use millrace_pipeline::{Bits, EntryMatch, MatchKind};

impl Decoder<'_> {
    /// What an entry is known by, one that is written or one that is looked for.
    pub(crate) fn key(
        &self,
        table: &TableInfo,
        given: &[v1::FieldMatch],
        priority: i32,
        new_text: NewText,
    ) -> Result<EntryKey, Refusal> {
        let matches = self.matches(&table.fields, given, new_text)?;
        let priority = u32::try_from(priority).map_err(|_| Refusal::invalid("the priority is negative"))?;
        match (table.needs_priority, priority) {
            (true, 0) => Err(Refusal::invalid("the priority is missing, the largest wins")),
            (false, 1..) => {
                Err(Refusal::invalid("without ternary, range or optional fields entries have no priority"))
            }
            _ => Ok((table.table, matches, priority)),
        }
    }

    pub(super) fn matches(
        &self,
        fields: &[FieldInfo],
        given: &[v1::FieldMatch],
        new_text: NewText,
    ) -> Result<Vec<EntryMatch>, Refusal> {
        let mut found: Vec<Option<&FieldMatchType>> = vec![None; fields.len()];
        for field in given {
            let at = fields.iter().position(|known| known.id == field.field_id).ok_or_else(|| {
                Refusal::invalid(format!("there is no match field with id {}", field.field_id))
            })?;
            let value = field
                .field_match_type
                .as_ref()
                .ok_or_else(|| Refusal::invalid(format!("match field `{}` has no value", fields[at].name)))?;
            if found[at].replace(value).is_some() {
                return Err(Refusal::invalid(format!("match field `{}` is given twice", fields[at].name)));
            }
        }
        let each = fields.iter().zip(found).map(|(field, given)| {
            self.field_match(field, given, new_text)
                .map_err(invalid(format_args!("match field `{}`", field.name)))
        });
        each.collect()
    }

    fn field_match(
        &self,
        field: &FieldInfo,
        given: Option<&FieldMatchType>,
        new_text: NewText,
    ) -> Result<EntryMatch, Refusal> {
        let width = field.codec.width;
        let Some(given) = given else {
            return Ok(match field.kind {
                MatchKind::Exact => return Err(Refusal::invalid("an exact field cannot be left out")),
                MatchKind::Lpm => EntryMatch::Lpm(Bits::zero(width), 0),
                MatchKind::Ternary => EntryMatch::Ternary(Bits::zero(width), Bits::zero(width)),
                MatchKind::Range => EntryMatch::Range(Bits::zero(width), Bits::ones(width)),
                MatchKind::Optional => EntryMatch::Optional(None),
            });
        };
        let value = |bytes: &[u8]| self.catalog.read(&field.codec, bytes, new_text);
        let parts = !matches!(field.kind, MatchKind::Exact | MatchKind::Optional);
        if parts && field.codec.is_text() {
            return Err(Refusal::invalid("a text can only be matched as a whole"));
        }
        match (field.kind, given) {
            (MatchKind::Exact, FieldMatchType::Exact(exact)) => Ok(EntryMatch::Exact(value(&exact.value)?)),
            (MatchKind::Optional, FieldMatchType::Optional(given)) => {
                Ok(EntryMatch::Optional(Some(value(&given.value)?)))
            }
            (MatchKind::Lpm, FieldMatchType::Lpm(lpm)) => {
                let length = u32::try_from(lpm.prefix_len).ok().filter(|length| *length <= width);
                let length =
                    length.ok_or_else(|| Refusal::invalid(format!("a prefix has 1 to {width} bits")))?;
                if length == 0 {
                    return Err(Refusal::invalid("a prefix of 0 bits is to be left out"));
                }
                let value = value(&lpm.value)?;
                if length < width && !value.shl_by(u64::from(length)).is_zero() {
                    return Err(Refusal::invalid("there are bits after the prefix"));
                }
                Ok(EntryMatch::Lpm(value, length))
            }
            (MatchKind::Ternary, FieldMatchType::Ternary(ternary)) => {
                let (value, mask) = (value(&ternary.value)?, value(&ternary.mask)?);
                if mask.is_zero() {
                    return Err(Refusal::invalid("a mask of 0 is to be left out"));
                }
                if value.and(&mask) != value {
                    return Err(Refusal::invalid("the value has bits outside of the mask"));
                }
                Ok(EntryMatch::Ternary(value, mask))
            }
            (MatchKind::Range, FieldMatchType::Range(range)) => {
                let (low, high) = (value(&range.low)?, value(&range.high)?);
                if low.cmp_unsigned(&high).is_gt() {
                    return Err(Refusal::invalid("the low end is above the high end"));
                }
                if low.is_zero() && high.is_ones() {
                    return Err(Refusal::invalid("a range of all values is to be left out"));
                }
                Ok(EntryMatch::Range(low, high))
            }
            (kind, _) => {
                let kind = millrace_commands::matching::kind_name(kind);
                Err(Refusal::invalid(format!("it is matched as {kind}")))
            }
        }
    }
}
