//! The definitions of all messages as tables, which the build makes from `proto/`.

/// A message with a text form and a JSON form.
pub trait Described: prost::Message + Default {
    /// Its definition.
    const MESSAGE: &'static Message;
}

/// A message.
#[derive(Debug)]
pub struct Message {
    /// Its name with its package: `p4.config.v1.P4Info`.
    pub name: &'static str,
    /// Whether it is an entry of a map: a field `key`, and a field `value`.
    pub is_entry: bool,
    /// Its fields, in order of declaration.
    pub fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// Its name, which the text form has.
    pub name: &'static str,
    /// Its name in the JSON form.
    pub json_name: &'static str,
    /// Its number in the binary form.
    pub number: u32,
    /// What it holds.
    pub kind: Kind,
    /// Whether it can occur more than once; the entries of a map do.
    pub is_list: bool,
    /// The `oneof` that it belongs to.
    pub oneof: Option<&'static str>,
}

/// What a field holds. P4Runtime has no other kinds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
    /// `bool`
    Bool,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// An enumeration: names and numbers.
    Enum(&'static [(&'static str, i32)]),
    /// A message.
    Message(&'static Message),
}

/// The message of a full name.
pub fn message(name: &str) -> Option<&'static Message> {
    MESSAGES.iter().copied().find(|message| message.name == name)
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
