//! A message in its binary form, seen with its definition.

use crate::schema::{Field, Kind, Message};
use crate::wire::{Value, fields, varint};

/// A message that is to be written in another form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) message: &'static Message,
    pub(crate) bytes: &'a [u8],
}

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Single<'a> {
    Signed(i64),
    Unsigned(u64),
    Bool(bool),
    String(&'a str),
    Bytes(&'a [u8]),
    /// A value of an enumeration, by its name.
    Name(&'static str),
    Message(View<'a>),
}

impl<'a> View<'a> {
    /// The values that the message has, in order of the numbers of their fields.
    pub(crate) fn values(self) -> Vec<(&'static Field, Single<'a>)> {
        let mut values = Vec::new();
        for (number, value) in fields(self.bytes) {
            let Some(field) = self.message.fields.iter().find(|field| u64::from(field.number) == number)
            else {
                continue;
            };
            match (value, field.kind) {
                (Value::Bytes(bytes), Kind::String | Kind::Bytes | Kind::Message(_)) => {
                    values.extend(delimited(field.kind, bytes).map(|value| (field, value)));
                }
                // Numbers of a list, packed.
                (Value::Bytes(mut bytes), kind) => {
                    while let Some(bits) = varint(&mut bytes) {
                        values.push((field, scalar(kind, bits)));
                    }
                }
                (Value::Varint(bits), kind) => values.push((field, scalar(kind, bits))),
                (Value::Fixed(_), _) => {}
            }
        }
        if self.message.is_entry {
            // Key and value are there also where they are what they are without anything written.
            for field in self.message.fields {
                if !values.iter().any(|(known, _)| known.number == field.number) {
                    let nothing = delimited(field.kind, &[]).unwrap_or_else(|| scalar(field.kind, 0));
                    values.push((field, nothing));
                }
            }
        }
        values.sort_by_key(|(field, _)| field.number);
        values
    }

    /// What a `google.protobuf.Any` holds, if that is one of the messages here: the URL of its type, and the message.
    pub(crate) fn inside_any(self) -> Option<(&'a str, View<'a>)> {
        if self.message.name != ANY {
            return None;
        }
        let (mut url, mut bytes): (&str, &[u8]) = ("", &[]);
        for (field, value) in self.values() {
            match value {
                Single::String(text) if field.number == 1 => url = text,
                Single::Bytes(inside) if field.number == 2 => bytes = inside,
                _ => {}
            }
        }
        Some((url, View { message: of_url(url)?, bytes }))
    }
}

/// The message that can hold any other.
pub(crate) const ANY: &str = "google.protobuf.Any";

/// The message that a URL of a type means.
pub(crate) fn of_url(url: &str) -> Option<&'static Message> {
    crate::schema::message(url.rsplit_once('/')?.1)
}

fn delimited(kind: Kind, bytes: &[u8]) -> Option<Single<'_>> {
    Some(match kind {
        Kind::String => Single::String(std::str::from_utf8(bytes).ok()?),
        Kind::Bytes => Single::Bytes(bytes),
        Kind::Message(message) => Single::Message(View { message, bytes }),
        _ => return None,
    })
}

/// A number by its bits, of which the kind may have fewer.
fn scalar(kind: Kind, bits: u64) -> Single<'static> {
    match kind {
        Kind::Int32 => Single::Signed(i64::from(bits as i32)),
        Kind::Int64 => Single::Signed(bits as i64),
        Kind::Uint32 => Single::Unsigned(u64::from(bits as u32)),
        Kind::Bool => Single::Bool(bits != 0),
        Kind::Enum(values) => {
            let name = values.iter().find(|(_, number)| *number == bits as i32);
            name.map_or(Single::Signed(i64::from(bits as i32)), |(name, _)| Single::Name(name))
        }
        _ => Single::Unsigned(bits),
    }
}
