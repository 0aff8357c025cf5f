//! Where the things of a program stand in its source, for traces.

/// The place of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// What it is.
    pub kind: SourceKind,
    /// Its name: of a state `BODY.STATE`, of a use `BODY THING`.
    pub name: String,
    /// The name of the source file, without its folder.
    pub file: String,
    /// The line there, from 1.
    pub line: u32,
}

/// What has a place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// A body: a parser, a control, an action.
    Body,
    /// A state of a parser.
    State,
    /// A table.
    Table,
    /// Where a body first makes use of a thing: a slot of the switch, an object, or [`PAYLOAD`].
    Use,
}

/// The thing that a body uses where it hashes the payload.
pub const PAYLOAD: &str = "payload";

impl SourceKind {
    /// As it is written in the text form.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Body => "body",
            SourceKind::State => "state",
            SourceKind::Table => "table",
            SourceKind::Use => "use",
        }
    }

    /// The kind that is written so.
    pub fn from_name(name: &str) -> Option<SourceKind> {
        let all = [SourceKind::Body, SourceKind::State, SourceKind::Table, SourceKind::Use];
        all.into_iter().find(|kind| kind.name() == name)
    }
}
