//! Which part of a program an operation is of: what profiles and reports count by.

use millrace_pipeline::{ActionId, BodyKind, TableId};

/// A part of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// Between bodies, and what is there for the switch.
    #[default]
    Glue,
    /// Any parser.
    Parser,
    /// Control flow around tables and actions.
    Control,
    /// Looking up a table: its key, the lookup, and the way to the action.
    Table(TableId),
    /// An action.
    Action(ActionId),
    /// Any deparser.
    Deparser,
}

impl Site {
    /// The site of a body outside the actions that it applies.
    pub fn of(kind: BodyKind) -> Site {
        match kind {
            BodyKind::Parser => Site::Parser,
            BodyKind::Deparser => Site::Deparser,
            BodyKind::Control | BodyKind::Action => Site::Control,
        }
    }
}
