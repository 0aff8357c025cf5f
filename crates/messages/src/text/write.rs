//! From a message to text.

use crate::schema::{Described, Field, Message};
use crate::view::{Single, View};
use std::fmt::Write;

/// How fields that occur more than once are written. Readers take both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Each occurrence by itself, as protobuf's own library does: `id: 1`, `id: 2`.
    Lines,
    /// In brackets: `id: [1, 2]`.
    Brackets,
}

/// A message as text, a line for each field.
pub fn write<M: Described>(message: &M, style: Style) -> String {
    let bytes = message.encode_to_vec();
    let mut out = Text { text: String::new(), depth: 0, style };
    out.fields(View { message: M::MESSAGE, bytes: &bytes });
    out.text
}

/// Fields that do not stand in order of their numbers: message, field, and the number of the field that it follows. Readers do not
/// mind; texts that were kept do not change.
const MOVED: [(&str, &str, u32); 5] = [
    ("p4.config.v1.PkgInfo", "doc", 8),
    ("p4.config.v1.MatchField", "other_match_type", 5),
    ("p4.config.v1.MatchField", "type_name", 9),
    ("p4.config.v1.Action.Param", "type_name", 7),
    ("p4.config.v1.ControllerPacketMetadata.Metadata", "type_name", 6),
];

fn place(message: &Message, field: &Field) -> (u32, bool) {
    let moved = MOVED.iter().find(|(of, name, _)| *of == message.name && *name == field.name);
    moved.map_or((field.number, false), |(_, _, number)| (*number, true))
}

struct Text {
    text: String,
    depth: usize,
    style: Style,
}

impl Text {
    fn fields(&mut self, view: View<'_>) {
        if let Some((url, inside)) = view.inside_any() {
            self.indent();
            self.text.push('[');
            self.text.push_str(url);
            self.text.push_str("] ");
            self.value(Single::Message(inside));
            self.text.push('\n');
            return;
        }
        let mut values = view.values();
        values.sort_by_key(|(field, _)| place(view.message, field));
        for list in values.chunk_by(|(one, _), (other, _)| one.number == other.number) {
            let [(field, first), ..] = list else { continue };
            if field.is_list && self.style == Style::Brackets {
                self.indent();
                self.text.push_str(field.name);
                self.text.push_str(": [");
                for (at, (_, value)) in list.iter().enumerate() {
                    self.text.push_str(if at == 0 { "" } else { ", " });
                    self.value(*value);
                }
                self.text.push_str("]\n");
                continue;
            }
            let separator = if matches!(first, Single::Message(_)) { " " } else { ": " };
            for (_, value) in list {
                self.indent();
                self.text.push_str(field.name);
                self.text.push_str(separator);
                self.value(*value);
                self.text.push('\n');
            }
        }
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn value(&mut self, value: Single<'_>) {
        // Writing to a string cannot fail.
        let _ = match value {
            Single::Signed(number) => write!(self.text, "{number}"),
            Single::Unsigned(number) => write!(self.text, "{number}"),
            Single::Bool(value) => write!(self.text, "{value}"),
            Single::Name(name) => self.text.write_str(name),
            Single::String(text) => self.quoted(text.as_bytes()),
            Single::Bytes(bytes) => self.quoted(bytes),
            Single::Message(view) if view.bytes.is_empty() && self.style == Style::Brackets => {
                self.text.write_str("{}")
            }
            Single::Message(view) => {
                self.text.push_str("{\n");
                self.depth += 1;
                self.fields(view);
                self.depth -= 1;
                self.indent();
                self.text.write_char('}')
            }
        };
    }

    fn quoted(&mut self, bytes: &[u8]) -> std::fmt::Result {
        self.text.push('"');
        for &byte in bytes {
            match byte {
                b'\n' => self.text.push_str("\\n"),
                b'\r' => self.text.push_str("\\r"),
                b'\t' => self.text.push_str("\\t"),
                b'"' | b'\'' | b'\\' => self.text.extend(['\\', char::from(byte)]),
                0x20..0x7f => self.text.push(char::from(byte)),
                _ => write!(self.text, "\\{byte:03o}")?,
            }
        }
        self.text.write_char('"')
    }
}
