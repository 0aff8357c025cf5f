//! A test as it is written.

use crate::Pattern;
use std::ops::Range;

/// A piece of the text with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text, quotes taken off.
    pub text: String,
    /// Its place in bytes.
    pub at: Range<usize>,
}

/// `name:value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<V> {
    /// The name.
    pub name: Word,
    /// The value.
    pub value: V,
}

/// The value of a key field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchValue {
    /// A number, perhaps with `*` for digits.
    One(Word),
    /// `value/length`.
    Prefix(Word, Word),
    /// `value&&&mask`.
    Masked(Word, Word),
    /// `low->high` or `low..high`.
    Range(Word, Word),
}

/// Which cell of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// By number.
    Number(u64),
    /// That of an entry with a label.
    Label(String),
}

/// What a check of a counter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// How a check compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Whether it holds.
    pub fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

/// One thing that a test says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A packet comes in.
    Packet {
        /// On that port.
        port: u32,
        /// The frame.
        bytes: Vec<u8>,
    },
    /// A packet is to leave.
    Expect {
        /// By that port.
        port: u32,
        /// What it looks like; none: any number of any packets, but at least one.
        pattern: Option<Pattern>,
    },
    /// The packet before made nothing leave.
    NoPacket,
    /// Time passes.
    Wait,
    /// An entry.
    Add {
        /// The table.
        table: Word,
        /// The largest wins.
        priority: Option<(u32, Word)>,
        /// The key fields.
        matches: Vec<Named<MatchValue>>,
        /// The action.
        action: Word,
        /// Its arguments.
        args: Vec<Named<Word>>,
        /// A name for the entry.
        label: Option<String>,
    },
    /// A default action.
    SetDefault {
        /// The table.
        table: Word,
        /// The action.
        action: Word,
        /// Its arguments.
        args: Vec<Named<Word>>,
    },
    /// All entries go.
    RemoveAll,
    /// A counter is looked at.
    CheckCounter {
        /// The counter.
        counter: Word,
        /// The cell.
        index: (Index, Range<usize>),
        /// What it should hold; none: only that it is there.
        check: Option<(Counted, Comparison, u64)>,
    },
    /// A runtime command; its text is that of the statement.
    Command,
}

/// A whole test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Test {
    /// The statements with their places, in order.
    pub statements: Vec<(Statement, Range<usize>)>,
}

impl Test {
    /// The frames that come in, with their ports, in order.
    pub fn frames(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.statements.iter().filter_map(|(statement, _)| match statement {
            Statement::Packet { port, bytes } => Some((*port, bytes.as_slice())),
            _ => None,
        })
    }

    /// The ports by which frames come in or are expected.
    pub fn ports(&self) -> impl Iterator<Item = u32> {
        self.statements.iter().filter_map(|(statement, _)| match statement {
            Statement::Packet { port, .. } | Statement::Expect { port, .. } => Some(*port),
            _ => None,
        })
    }
}
