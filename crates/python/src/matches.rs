//! What an entry matches, from Python and back.

use crate::errors::{Wrong, refused};
use crate::values::{bits, int};
use millrace_commands::matching;
use millrace_pipeline::{Bits, EntryMatch, MatchKind};
use millrace_state::{ObjectKind, find_named};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// A field of a key.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: MatchKind,
    pub(crate) width: u32,
}

/// All fields of a key: a dict by name, where a field that is left out matches anything; a list in order; of a key with
/// one field also what it matches alone.
pub(crate) fn key(fields: &[Field], given: &Bound<'_, PyAny>) -> Result<Vec<EntryMatch>, Wrong> {
    if let Ok(by_name) = given.cast::<PyDict>() {
        return by_names(fields, by_name);
    }
    let names = || fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Ok(list) = given.cast::<PyList>() {
        if list.len() != fields.len() {
            let message =
                format!("the key has {} field(s) ({}), {} given", fields.len(), names(), list.len());
            return Err(Wrong::Value(message));
        }
        return fields.iter().zip(list.iter()).map(|(field, one)| field.matched(&one)).collect();
    }
    match fields {
        [only] => Ok(vec![only.matched(given)?]),
        _ => {
            let message =
                format!("the key has {} fields ({}): a dict or a list is expected", fields.len(), names());
            Err(Wrong::Type(message))
        }
    }
}

fn by_names(fields: &[Field], given: &Bound<'_, PyDict>) -> Result<Vec<EntryMatch>, Wrong> {
    let mut found: Vec<Option<EntryMatch>> = fields.iter().map(|_| None).collect();
    for (name, one) in given {
        let name: String = name.extract()?;
        let names = fields.iter().enumerate().map(|(at, field)| (at, field.name.as_str()));
        let at = find_named(ObjectKind::KeyField, &name, names).map_err(refused)?;
        if found[at].replace(fields[at].matched(&one)?).is_some() {
            return Err(Wrong::Value(format!("key field `{}` is given twice", fields[at].name)));
        }
    }
    let fields = fields.iter().zip(found);
    fields.map(|(field, found)| found.map_or_else(|| field.anything(), Ok)).collect()
}

impl Field {
    /// What one field matches.
    pub(crate) fn matched(&self, given: &Bound<'_, PyAny>) -> Result<EntryMatch, Wrong> {
        self.read(given).map_err(|wrong| wrong.about(format_args!("key field `{}`", self.name)))
    }

    fn read(&self, given: &Bound<'_, PyAny>) -> Result<EntryMatch, Wrong> {
        if given.is_none() {
            return self.anything();
        }
        let width = self.width;
        if let Ok(text) = given.cast::<PyString>() {
            return self.text(&text.to_cow()?);
        }
        if let Ok((value, other)) = pair(given) {
            return match self.kind {
                MatchKind::Lpm => Ok(EntryMatch::Lpm(bits(&value, width)?, self.length(&other)?)),
                MatchKind::Ternary => Ok(EntryMatch::Ternary(bits(&value, width)?, bits(&other, width)?)),
                MatchKind::Range => {
                    let (low, high) = (bits(&value, width)?, bits(&other, width)?);
                    match low.to_biguint() <= high.to_biguint() {
                        true => Ok(EntryMatch::Range(low, high)),
                        false => Err(Wrong::Value("the low end of the range is above its high end".into())),
                    }
                }
                kind @ (MatchKind::Exact | MatchKind::Optional) => {
                    let kind = matching::kind_name(kind);
                    Err(Wrong::Type(format!("a pair does not fit a field that matches by {kind}")))
                }
            };
        }
        // A network of `ipaddress`.
        if let Ok(length) = given.getattr(intern!(given.py(), "prefixlen")) {
            let address = given.getattr(intern!(given.py(), "network_address"))?;
            return self.prefix(bits(&address, width)?, self.length(&length)?);
        }
        Ok(self.one(bits(given, width)?))
    }

    /// A text: `10.0.0.0/8`, `0x800&&&0xff00`, `80->443` where the kind has such, else one value.
    fn text(&self, text: &str) -> Result<EntryMatch, Wrong> {
        let parse = |kind| {
            matching::parse(text, kind, self.width).map_err(|error| {
                let help = error.help.map_or_else(String::new, |help| format!(" ({help})"));
                Wrong::Value(format!("`{text}`: {}{help}", error.message))
            })
        };
        match self.kind {
            MatchKind::Lpm | MatchKind::Ternary if text.contains('/') => match parse(MatchKind::Lpm)? {
                EntryMatch::Lpm(value, length) => self.prefix(value, length),
                other => Ok(other),
            },
            kind @ (MatchKind::Ternary | MatchKind::Optional) if text.contains("&&&") => parse(kind),
            MatchKind::Range if text.contains("->") => parse(MatchKind::Range),
            _ => match parse(MatchKind::Exact)? {
                EntryMatch::Exact(value) => Ok(self.one(value)),
                other => Ok(other),
            },
        }
    }

    /// A prefix, also for a field with a mask.
    fn prefix(&self, value: Bits, length: u32) -> Result<EntryMatch, Wrong> {
        match self.kind {
            MatchKind::Lpm => Ok(EntryMatch::Lpm(value, length)),
            MatchKind::Ternary => {
                let mask = Bits::ones(self.width).shl_by(u64::from(self.width.saturating_sub(length)));
                Ok(EntryMatch::Ternary(value, mask))
            }
            kind => {
                let kind = matching::kind_name(kind);
                Err(Wrong::Type(format!("a prefix does not fit a field that matches by {kind}")))
            }
        }
    }

    fn length(&self, given: &Bound<'_, PyAny>) -> Result<u32, Wrong> {
        let width = self.width;
        given.extract::<u32>().ok().filter(|length| *length <= width).ok_or_else(|| {
            Wrong::Value(format!("a prefix length from 0 to {width} is expected, not {given}"))
        })
    }

    /// One value.
    fn one(&self, value: Bits) -> EntryMatch {
        match self.kind {
            MatchKind::Exact => EntryMatch::Exact(value),
            MatchKind::Lpm => EntryMatch::Lpm(value, self.width),
            MatchKind::Ternary => EntryMatch::Ternary(value, Bits::ones(self.width)),
            MatchKind::Range => EntryMatch::Range(value.clone(), value),
            MatchKind::Optional => EntryMatch::Optional(Some(value)),
        }
    }

    fn anything(&self) -> Result<EntryMatch, Wrong> {
        let zero = || Bits::zero(self.width);
        Ok(match self.kind {
            MatchKind::Exact => {
                return Err(Wrong::Value(format!("the exact key field `{}` needs a value", self.name)));
            }
            MatchKind::Lpm => EntryMatch::Lpm(zero(), 0),
            MatchKind::Ternary => EntryMatch::Ternary(zero(), zero()),
            MatchKind::Range => EntryMatch::Range(zero(), Bits::ones(self.width)),
            MatchKind::Optional => EntryMatch::Optional(None),
        })
    }
}

/// What an entry matches, by name, in the forms that [`key`] takes: a value, a pair, or `None` for an optional field.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    fields: &[Field],
    matches: &[EntryMatch],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (field, one) in fields.iter().zip(matches) {
        dict.set_item(&field.name, to_python(py, one)?)?;
    }
    Ok(dict)
}

fn to_python<'py>(py: Python<'py>, one: &EntryMatch) -> PyResult<Bound<'py, PyAny>> {
    Ok(match one {
        EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => int(py, value)?,
        EntryMatch::Lpm(value, length) => (int(py, value)?, *length).into_pyobject(py)?.into_any(),
        EntryMatch::Ternary(value, other) | EntryMatch::Range(value, other) => {
            (int(py, value)?, int(py, other)?).into_pyobject(py)?.into_any()
        }
        EntryMatch::Optional(None) => py.None().into_bound(py),
    })
}

fn pair<'py>(given: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    given.cast::<PyTuple>()?.extract()
}
