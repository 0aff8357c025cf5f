//! Why a program cannot be run or a write was refused, in words an operator understands.

use crate::account::{OverQuota, Quota};
use millrace_tables::{MeterError, ProfileError, SpecError, TableError};
use std::fmt;

/// What kind of object a name was looked up as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// An action.
    Action,
    /// An action profile or selector.
    Profile,
    /// An indexed or direct counter.
    Counter,
    /// An indexed or direct meter.
    Meter,
    /// A register.
    Register,
    /// A parser value set.
    ValueSet,
    /// A field of a key.
    KeyField,
    /// A parameter of an action.
    Parameter,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Table => "table",
            ObjectKind::Action => "action",
            ObjectKind::Profile => "action profile",
            ObjectKind::Counter => "counter",
            ObjectKind::Meter => "meter",
            ObjectKind::Register => "register",
            ObjectKind::ValueSet => "value set",
            ObjectKind::KeyField => "key field",
            ObjectKind::Parameter => "parameter",
        })
    }
}

/// Why the objects of a program cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// An object is larger than this switch can hold.
    Spec {
        /// The object's name.
        object: String,
        /// What is too large.
        error: SpecError,
    },
    /// An entry in the source of the program does not fit its table.
    Entry {
        /// The table.
        table: String,
        /// The entry, counted from 1.
        number: usize,
        /// Why.
        error: Box<WriteError>,
    },
    /// A plugin that the program calls cannot be called.
    Plugin {
        /// Its name.
        plugin: String,
        /// Why.
        why: String,
    },
    /// The quotas of the switch leave no room for the program.
    Quota {
        /// Its object that takes the most, or has the most entries, as kind and name; none: it has none.
        largest: Option<(ObjectKind, String)>,
        /// What that takes.
        takes: u64,
        /// The quota.
        error: OverQuota,
    },
    /// All objects together take too much memory.
    Memory {
        /// Bytes that they take.
        bytes: u64,
        /// The written limit.
        limit: u64,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Spec { object, error } => write!(f, "{object}: {error}"),
            BuildError::Entry { table, number, error } => write!(f, "{table}: entry {number}: {error}"),
            BuildError::Plugin { plugin, why } => write!(f, "plugin {plugin}: {why}"),
            BuildError::Quota { largest, takes, error } => {
                error.fmt(f)?;
                match (largest, error.what) {
                    (Some((kind, name)), Quota::Memory) => write!(f, ": {kind} `{name}` takes {takes}"),
                    (Some((kind, name)), Quota::Entries) => write!(f, ": {kind} `{name}` has {takes}"),
                    (None, _) => Ok(()),
                }
            }
            BuildError::Memory { bytes, limit } => {
                write!(
                    f,
                    "the program's counters, meters and registers take {bytes} bytes, the limit is {limit}"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Why a write (or a read) of the control side was refused. Everything is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// No object has this name.
    Unknown {
        /// What was looked for.
        kind: ObjectKind,
        /// The name given.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Several objects' names end with this one.
    Ambiguous {
        /// What was looked for.
        kind: ObjectKind,
        /// The name given.
        name: String,
        /// The full names that fit.
        candidates: Vec<String>,
    },
    /// The action may not stand there.
    ActionScope {
        /// The action.
        action: String,
        /// Whether it was given as the default action.
        as_default: bool,
    },
    /// There is no action with this number in the table or program.
    NoAction {
        /// The number given.
        action: usize,
    },
    /// Too many or too few arguments.
    ArgCount {
        /// The action.
        action: String,
        /// Its parameters, by name.
        params: Vec<String>,
        /// Arguments given.
        found: usize,
    },
    /// An argument is of another width than its parameter.
    ArgWidth {
        /// The action.
        action: String,
        /// The parameter.
        param: String,
        /// Its width in bits.
        width: u32,
        /// The width of the argument.
        found: u32,
    },
    /// Too many or too few match fields.
    MatchCount {
        /// The key fields, by name.
        keys: Vec<String>,
        /// Match fields given.
        found: usize,
    },
    /// A match value is of another width than its key field.
    KeyWidth {
        /// The key field.
        key: String,
        /// Its width in bits.
        width: u32,
        /// The width of the value.
        found: u32,
    },
    /// The table refused.
    Table(TableError),
    /// The table refused something about one key field.
    Key {
        /// The key field.
        key: String,
        /// Why.
        error: TableError,
    },
    /// The action profile refused.
    Profile(ProfileError),
    /// The table has no action profile.
    NoProfile,
    /// The meter refused.
    Meter(MeterError),
    /// An index outside an array.
    Index {
        /// The index given.
        index: u64,
        /// Cells of the array.
        size: u64,
    },
    /// A quota of the switch would be exceeded.
    Quota(OverQuota),
    /// A register's value is too wide.
    CellWidth {
        /// The width of a cell in bits.
        width: u32,
        /// The width of the value.
        found: u32,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Unknown { kind, name, known } if known.is_empty() => {
                write!(f, "no {kind} named `{name}`: there is none here")
            }
            WriteError::Unknown { kind, name, known } => {
                write!(f, "no {kind} named `{name}`, there is {}", list(known))
            }
            WriteError::Ambiguous { kind, name, candidates } => {
                write!(f, "{kind} `{name}` is ambiguous: it can be {}", list(candidates))
            }
            WriteError::ActionScope { action, as_default: true } => {
                write!(f, "action `{action}` is for entries only, it cannot be the default action")
            }
            WriteError::ActionScope { action, as_default: false } => {
                write!(f, "action `{action}` is for the default action only, an entry cannot use it")
            }
            WriteError::NoAction { action } => write!(f, "no action with number {action}"),
            WriteError::ArgCount { action, params, found } if params.is_empty() => {
                write!(f, "action `{action}` takes no arguments, {found} given")
            }
            WriteError::ArgCount { action, params, found } => write!(
                f,
                "action `{action}` takes {} argument(s) ({}), {found} given",
                params.len(),
                params.join(", ")
            ),
            WriteError::ArgWidth { action, param, width, found } => write!(
                f,
                "parameter `{param}` of action `{action}` is {width} bit(s) wide, the value has {found}"
            ),
            WriteError::MatchCount { keys, found } => {
                write!(
                    f,
                    "the key has {} field(s) ({}), the entry matches on {found}",
                    keys.len(),
                    keys.join(", ")
                )
            }
            WriteError::KeyWidth { key, width, found } => {
                write!(f, "key field `{key}` is {width} bit(s) wide, the value has {found}")
            }
            WriteError::Table(error) => error.fmt(f),
            WriteError::Key { key, error } => write!(f, "`{key}`: {error}"),
            WriteError::Profile(error) => error.fmt(f),
            WriteError::NoProfile => f.write_str("the table has no action profile"),
            WriteError::Meter(error) => error.fmt(f),
            WriteError::Index { index, size } => {
                write!(f, "no cell {index}: there are {size}, counted from 0")
            }
            WriteError::Quota(error) => error.fmt(f),
            WriteError::CellWidth { width, found } => {
                write!(f, "a cell is {width} bit(s) wide, the value has {found}")
            }
        }
    }
}

impl std::error::Error for WriteError {}

impl From<TableError> for WriteError {
    fn from(error: TableError) -> WriteError {
        WriteError::Table(error)
    }
}

impl From<ProfileError> for WriteError {
    fn from(error: ProfileError) -> WriteError {
        WriteError::Profile(error)
    }
}

impl From<OverQuota> for WriteError {
    fn from(error: OverQuota) -> WriteError {
        WriteError::Quota(error)
    }
}

impl From<MeterError> for WriteError {
    fn from(error: MeterError) -> WriteError {
        WriteError::Meter(error)
    }
}

/// `a`, `b` or `c`; of many only the first few.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
