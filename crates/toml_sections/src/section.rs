//! What a file is made of: sections, and for each key its form, what holds without it, its limit and what it means.

use crate::quantity::Measure;

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// How its header is written.
    pub header: &'static str,
    /// What it describes, in a sentence.
    pub means: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a section.
#[derive(Debug)]
pub struct Key {
    /// How it is written before the `=`.
    pub name: &'static str,
    /// How its value is written.
    pub form: Form,
    /// What holds without it.
    pub absent: Absent,
    /// What it means, in a few words.
    pub means: &'static str,
}

/// How the value of a key is written.
#[derive(Clone, Copy, Debug)]
pub enum Form {
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
    /// A name with any characters but `:`, `,` and those that control a terminal.
    Label,
    /// Several of them, at most so many; the limit has this name.
    Labels(usize, &'static str),
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
pub enum Absent {
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

impl Key {
    /// A key with a value.
    pub const fn new(name: &'static str, form: Form, absent: Absent, means: &'static str) -> Key {
        Key { name, form, absent, means }
    }

    /// A table in a table, which is a section of its own.
    pub const fn section(name: &'static str, means: &'static str) -> Key {
        Key::new(name, Form::Section, Absent::Is("none"), means)
    }

    /// Tables, each of which is a section of its own.
    pub const fn sections(name: &'static str, limit: &'static str, means: &'static str) -> Key {
        Key::new(name, Form::Sections(limit), Absent::Is("none"), means)
    }
}

impl Section {
    /// The key of a name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}
