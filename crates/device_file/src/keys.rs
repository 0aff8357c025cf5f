//! The keys of the file: sections, and for each key its form, what holds without it, its limit and what it means. The
//! reader, the error for an unknown key and docs/chassis.md all come from here.

mod sections;

pub(crate) use sections::*;

use crate::quantity::Measure;

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Section {
    /// How its header is written.
    pub(crate) header: &'static str,
    /// What it describes, in a sentence.
    pub(crate) means: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [Key],
}

/// A key of a section.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) absent: Absent,
    pub(crate) means: &'static str,
}

/// How the value of a key is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// A whole number from the first to the second, whose limit has this name.
    Number(u64, u64, &'static str),
    /// Several of them.
    Numbers(u64, u64, &'static str),
    /// A number with a unit, at most so large; the limit has this name.
    Quantity(Measure, u64, &'static str),
    /// `true` or `false`.
    Flag,
    /// A name of letters, digits, `_`, `-` and `.`.
    Name,
    /// One name or several, at most so many; the limit has this name.
    Names(usize, &'static str),
    /// A text that is not empty.
    Text,
    /// Several texts.
    Texts,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Several of these words.
    Words(&'static [&'static str]),
    /// The address of a server.
    Address,
    /// As these words say; the second text is the limit.
    Special(&'static str, &'static str),
    /// A section of its own.
    Section,
    /// A section of its own, once for each thing; the text is the limit.
    Sections(&'static str),
}

/// What holds when a key is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent {
    /// That is a mistake.
    Mistake,
    /// What these words say.
    Is(&'static str),
    /// The number.
    Number(u64),
    /// The word or text.
    Text(&'static str),
    /// The flag.
    Flag(bool),
}

/// All sections, in the order of the documentation.
pub(crate) const SECTIONS: [&Section; 12] =
    [&FILE, &DEVICE, &TENANT, &PORT, &SWITCH, &VIRTUAL_PORT, &MATCH, &BYTES, &TAG, &QUOTA, &LINK, &CLASSIFY];

impl Section {
    /// The key of a name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}
