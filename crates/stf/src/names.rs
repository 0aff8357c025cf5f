//! From the names and values of tests to those of the program.

use crate::ast::{MatchValue, Named, Word};
use millrace_commands::{Refusal, nearest, value};
use millrace_pipeline::{ActionCall, Bits, EntryMatch, MatchKind, TableId, TableKey};
use millrace_state::{State, WriteError};

/// The table of a name: as the control plane has it, else mangled, else the bare end of one.
pub(crate) fn table(state: &State, name: &Word) -> Result<TableId, Refusal> {
    let tables: Vec<_> = state.program().tables.iter().map(|(id, table)| (id, table.name.as_str())).collect();
    state.table_named(&name.text).or_else(|error| find(name, &tables, error))
}

/// An action of a table by name: its index there.
fn action(state: &State, table: TableId, name: &Word) -> Result<usize, Refusal> {
    let program = state.program();
    let listed = program.tables[table].actions.iter().enumerate();
    let actions: Vec<_> =
        listed.map(|(at, listed)| (at, program.actions[listed.action].name.as_str())).collect();
    state.action_named(table, &name.text).or_else(|error| find(name, &actions, error))
}

fn find<T: Copy>(name: &Word, objects: &[(T, &str)], error: WriteError) -> Result<T, Refusal> {
    loosely(&name.text, objects).ok_or_else(|| {
        let near = nearest(&name.text, objects.iter().map(|(_, name)| *name));
        Refusal::new(name.at.clone(), error.to_string()).with_help_if(near.map(did_you_mean))
    })
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The one object whose mangled name (dots as underscores) is this, or, if there is none, whose name ends so.
fn loosely<T: Copy>(name: &str, objects: &[(T, &str)]) -> Option<T> {
    let mangled = |full: &str| full.replace('.', "_");
    let wanted = mangled(name);
    let one = |fits: &dyn Fn(&str) -> bool| {
        let mut fitting = objects.iter().filter(|(_, full)| fits(full));
        let found = fitting.next()?.0;
        fitting.next().is_none().then_some(found)
    };
    one(&|full| mangled(full) == wanted || format!("_{}", mangled(full)) == wanted)
        .or_else(|| one(&|full| mangled(full).ends_with(&format!("_{wanted}"))))
        .or_else(|| one(&|full| full.ends_with(name)))
}

/// What becomes of parameters that a test leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// They are missing.
    Missing,
    /// They are 0, as in a C structure that is written without them.
    Zero,
}

impl LeftOut {
    /// For an entry with these keys: `key.field0` is a field of a C structure, as the back ends of p4c for BPF have it.
    pub(crate) fn next_to(keys: &[Named<MatchValue>]) -> LeftOut {
        match keys.iter().any(|key| key.name.text.starts_with("key.")) {
            true => LeftOut::Zero,
            false => LeftOut::Missing,
        }
    }
}

/// An action with its arguments.
pub(crate) fn call(
    state: &State,
    table: TableId,
    name: &Word,
    args: &[Named<Word>],
    left_out: LeftOut,
) -> Result<ActionCall, Refusal> {
    let listed = action(state, table, name)?;
    let program = state.program();
    let id = program.tables[table].actions[listed].action;
    let called = &program.actions[id];
    let params: Vec<&str> = state.param_names(id).collect();
    for arg in args {
        if !params.contains(&arg.name.text.as_str()) {
            let help = nearest(&arg.name.text, params.iter().copied()).map(did_you_mean);
            let message = format!("action `{}` has no parameter `{}`", called.name, arg.name.text);
            return Err(Refusal::new(arg.name.at.clone(), message).with_help_if(help));
        }
    }
    let values = params.iter().zip(state.param_widths(id)).map(|(param, width)| {
        let Some(given) = args.iter().find(|arg| arg.name.text == *param) else {
            return match left_out {
                LeftOut::Zero => Ok(Bits::zero(*width)),
                LeftOut::Missing => {
                    let message = format!("action `{}` needs the parameter `{param}`", called.name);
                    Err(Refusal::new(name.at.clone(), message))
                }
            };
        };
        let value = value::parse(&given.value.text, *width);
        value.map_err(|error| Refusal::new(given.value.at.clone(), format!("parameter `{param}`: {error}")))
    });
    Ok(ActionCall { action: listed, args: values.collect::<Result<_, _>>()? })
}

/// The match fields of an entry; keys that are not named match anything, exact ones 0.
pub(crate) fn matches(
    state: &State,
    table: TableId,
    given: &[Named<MatchValue>],
) -> Result<Vec<EntryMatch>, Refusal> {
    let declared = &state.program().tables[table];
    let widths = state.key_widths(table);
    let mut matches: Vec<EntryMatch> =
        declared.keys.iter().zip(widths).map(|(key, width)| anything(key.kind, *width)).collect();
    for named in given {
        let index = key_index(&declared.keys, &named.name.text).ok_or_else(|| {
            let keys: Vec<&str> = declared.keys.iter().map(|key| key.name.as_str()).collect();
            let help = match nearest(&named.name.text, keys.iter().copied()) {
                Some(near) => did_you_mean(near),
                None => format!("the key has {}", keys.join(", ")),
            };
            let message = format!("`{}` has no key field `{}`", declared.name, named.name.text);
            Refusal::new(named.name.at.clone(), message).with_help(help)
        })?;
        let one = key_match(&named.value, declared.keys[index].kind, widths[index])?;
        matches[index] = match one {
            EntryMatch::Lpm(value, length) if named.name.text.starts_with("key.") => {
                EntryMatch::Lpm(from_memory(&value), length)
            }
            other => other,
        };
    }
    Ok(matches)
}

/// A number whose bytes are those in the memory of a little-endian machine: p4c's back ends for BPF match prefixes on the
/// fields of a C structure as they lie there, and so count the bits of `key.field0:0x010a/16` from the byte 0x0a on.
fn from_memory(value: &Bits) -> Bits {
    let width = value.width();
    if !width.is_multiple_of(8) {
        return value.clone();
    }
    let mut bytes = value.to_bytes();
    bytes.reverse();
    Bits::from_bytes(width, &bytes)
}

fn anything(kind: MatchKind, width: u32) -> EntryMatch {
    match kind {
        MatchKind::Exact => EntryMatch::Exact(Bits::zero(width)),
        MatchKind::Lpm => EntryMatch::Lpm(Bits::zero(width), 0),
        MatchKind::Ternary => EntryMatch::Ternary(Bits::zero(width), Bits::zero(width)),
        MatchKind::Range => EntryMatch::Range(Bits::zero(width), Bits::ones(width)),
        MatchKind::Optional => EntryMatch::Optional(None),
    }
}

/// The key field of a name.
fn key_index(keys: &[TableKey], name: &str) -> Option<usize> {
    let wanted = with_indices(name);
    let find = |fits: &dyn Fn(&str) -> bool| keys.iter().position(|key| fits(&key.name));
    let valid = |header: &str| [format!("{header}.isValid()"), format!("{header}.$valid$")];
    let header = wanted.strip_suffix(".$valid").or_else(|| wanted.strip_suffix(".valid")).unwrap_or(&wanted);
    let ends = |full: &str, end: &str| full.strip_suffix(end).is_some_and(|front| front.ends_with('.'));
    find(&|full| full == wanted)
        .or_else(|| find(&|full| valid(header).iter().any(|name| full == name)))
        .or_else(|| find(&|full| ends(full, &wanted)))
        .or_else(|| find(&|full| valid(header).iter().any(|name| ends(full, name))))
        .or_else(|| {
            // The backends for eBPF: `key.field0` by position, or `key.headers_ipv4_srcAddr`.
            let field = wanted.strip_prefix("key.")?;
            let position = field.strip_prefix("field").and_then(|digits| digits.parse::<usize>().ok());
            match position {
                Some(position) => (position < keys.len()).then_some(position),
                None => find(&|full| full.replace('.', "_") == field),
            }
        })
}

/// `extra$0.h` as `extra[0].h`.
fn with_indices(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(dollar) = rest.find('$') {
        let digits = rest[dollar + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let end = dollar + 1 + digits;
        text.push_str(&rest[..dollar]);
        match digits {
            0 => text.push('$'),
            _ => text.push_str(&format!("[{}]", &rest[dollar + 1..end])),
        }
        rest = &rest[end..];
    }
    text + rest
}

fn key_match(given: &MatchValue, kind: MatchKind, width: u32) -> Result<EntryMatch, Refusal> {
    let number = |word: &Word| {
        value::parse(&word.text, width).map_err(|error| Refusal::new(word.at.clone(), error.to_string()))
    };
    let length = |word: &Word| {
        let bits = word.text.parse::<u32>().ok().filter(|bits| *bits <= width);
        bits.ok_or_else(|| {
            Refusal::new(word.at.clone(), format!("a prefix length from 0 to {width} is expected"))
        })
    };
    let wrong = |word: &Word, what: &str| {
        let kind = millrace_commands::matching::kind_name(kind);
        Err(Refusal::new(word.at.clone(), format!("{what} does not fit a field that matches by {kind}")))
    };
    Ok(match (given, kind) {
        (MatchValue::Prefix(value, bits), MatchKind::Lpm) => EntryMatch::Lpm(number(value)?, length(bits)?),
        (MatchValue::Prefix(value, bits), MatchKind::Ternary) => {
            let bits = length(bits)?;
            let mask = Bits::ones(width).shl_by(u64::from(width.saturating_sub(bits)));
            EntryMatch::Ternary(number(value)?, mask)
        }
        (MatchValue::Masked(value, mask), MatchKind::Ternary) => {
            EntryMatch::Ternary(number(value)?, number(mask)?)
        }
        (MatchValue::Range(low, high), MatchKind::Range) => EntryMatch::Range(number(low)?, number(high)?),
        (MatchValue::Prefix(word, _), _) => return wrong(word, "a prefix"),
        (MatchValue::Masked(word, _), _) => return wrong(word, "a mask"),
        (MatchValue::Range(word, _), _) => return wrong(word, "a range"),
        (MatchValue::One(word), kind) if word.text.contains('*') => {
            let (value, mask, stars) = starred(word, width)?;
            match kind {
                MatchKind::Ternary => EntryMatch::Ternary(value, mask),
                MatchKind::Lpm if word.text.trim_end_matches('*').contains('*') => {
                    return wrong(word, "a `*` before a digit");
                }
                MatchKind::Lpm => EntryMatch::Lpm(value, width.saturating_sub(stars)),
                MatchKind::Optional if mask.is_zero() => EntryMatch::Optional(None),
                _ => return wrong(word, "a `*`"),
            }
        }
        (MatchValue::One(word), MatchKind::Exact) => EntryMatch::Exact(number(word)?),
        (MatchValue::One(word), MatchKind::Lpm) => EntryMatch::Lpm(number(word)?, width),
        (MatchValue::One(word), MatchKind::Ternary) => EntryMatch::Ternary(number(word)?, Bits::ones(width)),
        (MatchValue::One(word), MatchKind::Range) => {
            let value = number(word)?;
            EntryMatch::Range(value.clone(), value)
        }
        (MatchValue::One(word), MatchKind::Optional) => EntryMatch::Optional(Some(number(word)?)),
    })
}

/// A number with `*` for digits: the value with 0 for them, the mask of the other digits, and the bits that the stars
/// are. Bits above the digits match anything, as with p4c.
fn starred(word: &Word, width: u32) -> Result<(Bits, Bits, u32), Refusal> {
    let text = word.text.as_str();
    let (prefix, bits, ones) = match text.get(..2) {
        Some("0x" | "0X") => ("0x", 4, 'f'),
        Some("0b" | "0B") => ("0b", 1, '1'),
        Some("0o" | "0O") => ("0o", 3, '7'),
        _ => return Err(Refusal::new(word.at.clone(), "a `*` needs a number in `0x`, `0o` or `0b`")),
    };
    let digits = &text[2..];
    let filled = |star: char, other: Option<char>| -> String {
        let digit = |c: char| if c == '*' { star } else { other.unwrap_or(c) };
        prefix.chars().chain(digits.chars().map(digit)).collect()
    };
    let read = |text: String| {
        value::number(&text, width).map_err(|error| Refusal::new(word.at.clone(), error.to_string()))
    };
    let value = read(filled('0', None))?;
    // The mask may be wider than the field when the digits are: the field then has fewer bits in its first digit.
    let all = value::number(&filled('0', Some(ones)), digits.len() as u32 * bits);
    let mask = all.map_err(|error| Refusal::new(word.at.clone(), error.to_string()))?;
    let mask = Bits::from_biguint(width, &mask.to_biguint());
    let stars = digits.bytes().filter(|byte| *byte == b'*').count() as u32 * bits;
    Ok((value, mask, stars))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Word {
        Word { text: text.into(), at: 0..text.len() }
    }

    fn one(text: &str, kind: MatchKind, width: u32) -> Result<EntryMatch, String> {
        key_match(&MatchValue::One(word(text)), kind, width).map_err(|refusal| refusal.message)
    }

    #[test]
    fn stars_become_masks_and_prefixes() {
        let b = |value| Bits::new(32, value);
        let ternary = |text| one(text, MatchKind::Ternary, 32);
        assert_eq!(ternary("0x****0101"), Ok(EntryMatch::Ternary(b(0x0101), b(0xffff))));
        assert_eq!(ternary("0b1*0"), Ok(EntryMatch::Ternary(b(4), b(5))));
        assert_eq!(ternary("0x101"), Ok(EntryMatch::Ternary(b(0x101), b(0xffff_ffff))));
        assert_eq!(one("0xc0a8****", MatchKind::Lpm, 32), Ok(EntryMatch::Lpm(b(0xc0a8_0000), 16)));
        assert_eq!(one("0xc0a80101", MatchKind::Lpm, 32), Ok(EntryMatch::Lpm(b(0xc0a8_0101), 32)));
        assert!(one("0x**a8", MatchKind::Lpm, 16).unwrap_err().contains("before a digit"));
        assert!(one("0x*1", MatchKind::Exact, 8).unwrap_err().contains("matches by exact"));
        let nine = Bits::new(9, 0x1f);
        assert_eq!(one("0x*1f", MatchKind::Ternary, 9), Ok(EntryMatch::Ternary(nine, Bits::new(9, 0xff))));
        assert!(one("***", MatchKind::Ternary, 8).is_err());
    }

    #[test]
    fn prefixes_and_addresses() {
        let b = |value| Bits::new(32, value);
        let prefix = |value: &str, bits: &str, kind| {
            let given = MatchValue::Prefix(word(value), word(bits));
            key_match(&given, kind, 32).map_err(|refusal| refusal.message)
        };
        let lpm = EntryMatch::Lpm(b(0x0a01_0000), 16);
        assert_eq!(prefix("10.1.0.0", "16", MatchKind::Lpm), Ok(lpm.clone()));
        assert_eq!(prefix("0x0a010000", "16", MatchKind::Lpm), Ok(lpm));
        let masked = |mask| Ok(EntryMatch::Ternary(b(0x0a01_0000), b(mask)));
        assert_eq!(prefix("10.1.0.0", "16", MatchKind::Ternary), masked(0xffff_0000));
        assert_eq!(prefix("10.1.0.0", "0", MatchKind::Ternary), masked(0));
        assert_eq!(prefix("10.1.0.0", "32", MatchKind::Ternary), masked(0xffff_ffff));
        assert!(prefix("10.1.0.0", "33", MatchKind::Ternary).unwrap_err().contains("0 to 32"));
        assert!(prefix("10.1.0.0", "8", MatchKind::Exact).unwrap_err().contains("matches by exact"));
        assert_eq!(one("10.0.0.1", MatchKind::Exact, 32), Ok(EntryMatch::Exact(b(0x0a00_0001))));
        assert!(one("10.0.0.1", MatchKind::Exact, 48).is_err());
    }

    #[test]
    fn names_of_stacks_and_of_other_backends() {
        assert_eq!(with_indices("extra$0.h"), "extra[0].h");
        assert_eq!(with_indices("h.$valid$"), "h.$valid$");
        let names = ["pipe.Check_src_ip", "pipe.t", "NoAction"];
        let objects: Vec<(usize, &str)> = names.into_iter().enumerate().collect();
        let find = |name| loosely(name, &objects);
        assert_eq!(find("pipe_Check_src_ip"), Some(0));
        assert_eq!(find("_NoAction"), Some(2));
        assert_eq!(find("src_ip"), Some(0));
        assert_eq!(find("nothing"), None);
        assert_eq!(find("t"), Some(1), "a part after a dot comes before a bare end");
    }

    #[test]
    fn bytes_in_memory_come_lowest_first() {
        assert_eq!(from_memory(&Bits::new(32, 0x0000_010a)), Bits::new(32, 0x0a01_0000));
        assert_eq!(from_memory(&Bits::new(12, 0x123)), Bits::new(12, 0x123));
    }

    #[test]
    fn keys_by_their_names() {
        let key = |name: &str| TableKey {
            name: name.into(),
            value: millrace_pipeline::Expr::Bool(true),
            kind: MatchKind::Exact,
        };
        let keys = [key("hdr.data.f1"), key("hdr.extra[0].h"), key("hdr.data.isValid()")];
        assert_eq!(key_index(&keys, "data.f1"), Some(0));
        assert_eq!(key_index(&keys, "extra$0.h"), Some(1));
        assert_eq!(key_index(&keys, "data.$valid"), Some(2));
        assert_eq!(key_index(&keys, "data"), Some(2));
        assert_eq!(key_index(&keys, "key.field1"), Some(1));
        assert_eq!(key_index(&keys, "key.hdr_data_f1"), Some(0));
        assert_eq!(key_index(&keys, "key.field9"), None);
        assert_eq!(key_index(&keys, "f2"), None);
    }
}
