//! Protobuf's JSON form, written.

use crate::schema::{Described, Field, Kind};
use crate::view::{ANY, Single, View};
use serde::ser::{Error, Serialize, SerializeMap, Serializer};

/// A message in protobuf's JSON form, indented.
///
/// # Errors
/// A `google.protobuf.Any` in it holds a message that is not known here: it has no JSON form.
pub fn write<M: Described>(message: &M) -> Result<String, String> {
    let bytes = message.encode_to_vec();
    serde_json::to_string_pretty(&View { message: M::MESSAGE, bytes: &bytes })
        .map_err(|error| error.to_string())
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        let mut view = *self;
        if self.message.name == ANY && !self.bytes.is_empty() {
            let (url, inside) = self.inside_any().ok_or_else(|| {
                S::Error::custom(
                    "a google.protobuf.Any holds a message of an unknown type, which has no JSON form",
                )
            })?;
            map.serialize_entry("@type", url)?;
            view = inside;
        }
        let values = view.values();
        for list in values.chunk_by(|(one, _), (other, _)| one.number == other.number) {
            let [(field, value), ..] = list else { continue };
            match field.kind {
                Kind::Message(message) if message.is_entry => {
                    map.serialize_entry(field.json_name, &Map(list))?
                }
                _ if field.is_list => map.serialize_entry(field.json_name, &List(list))?,
                _ => map.serialize_entry(field.json_name, &Value(field.kind, *value))?,
            }
        }
        map.end()
    }
}

struct List<'a>(&'a [(&'static Field, Single<'a>)]);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|(field, value)| Value(field.kind, *value)))
    }
}

struct Map<'a>(&'a [(&'static Field, Single<'a>)]);

impl Serialize for Map<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (_, entry) in self.0 {
            let Single::Message(entry) = entry else { continue };
            if let [(_, Single::String(key)), (field, value)] = &*entry.values() {
                map.serialize_entry(key, &Value(field.kind, *value))?;
            }
        }
        map.end()
    }
}

struct Value<'a>(Kind, Single<'a>);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (self.0, self.1) {
            // Readers of JSON may hold numbers as floating point, which has no room for 64 bits.
            (Kind::Int64, Single::Signed(value)) => to.collect_str(&value),
            (Kind::Uint64, Single::Unsigned(value)) => to.collect_str(&value),
            (_, Single::Signed(value)) => to.serialize_i64(value),
            (_, Single::Unsigned(value)) => to.serialize_u64(value),
            (_, Single::Bool(value)) => to.serialize_bool(value),
            (_, Single::String(text) | Single::Name(text)) => to.serialize_str(text),
            (_, Single::Bytes(bytes)) => to.serialize_str(&base64(bytes)),
            (_, Single::Message(view)) => view.serialize(to),
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let at = (bits >> (18 - 6 * digit)) as usize & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[at]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_base64() {
        let wanted = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, wanted) in wanted.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), wanted);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }
}
