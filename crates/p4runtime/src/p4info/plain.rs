//! P4Info as images have it: protobuf text with one field a line. It becomes protobuf's binary form line by line, many times
//! faster than by way of a message that can be anything.

use prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// The binary form of a message. None where the text is written in another way, or is wrong: the general reader knows.
pub(super) fn to_binary(text: &str, message: MessageDescriptor) -> Option<Vec<u8>> {
    let mut open = vec![Open::new(message, 0)];
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let inner = open.last_mut()?;
        if line == "}" {
            let Open { number, bytes, .. } = open.pop()?;
            open.last_mut()?.put_bytes(number, &bytes);
        } else if let Some(name) = line.strip_suffix(" {") {
            let field = inner.field(name)?;
            let Kind::Message(message) = field.kind() else { return None };
            open.push(Open::new(message, field.number()));
        } else {
            let (name, value) = line.split_once(": ")?;
            let field = inner.field(name)?;
            inner.put(&field, value)?;
        }
    }
    let whole = open.pop()?;
    open.is_empty().then_some(whole.bytes)
}

/// A message that is being read.
struct Open {
    message: MessageDescriptor,
    /// The field that it is the value of.
    number: u32,
    bytes: Vec<u8>,
    /// Fields that may come once, and have.
    seen: Vec<u32>,
}

impl Open {
    fn new(message: MessageDescriptor, number: u32) -> Open {
        Open { message, number, bytes: Vec::new(), seen: Vec::new() }
    }

    /// The field of a name, if it may come now.
    fn field(&mut self, name: &str) -> Option<FieldDescriptor> {
        let field = self.message.get_field_by_name(name)?;
        if field.is_list() || field.is_map() {
            return Some(field);
        }
        let was_seen = |number| self.seen.contains(&number);
        let is_late = was_seen(field.number())
            || field.containing_oneof().is_some_and(|one| one.fields().any(|other| was_seen(other.number())));
        self.seen.push(field.number());
        (!is_late).then_some(field)
    }

    fn put(&mut self, field: &FieldDescriptor, value: &str) -> Option<()> {
        let number = match field.kind() {
            Kind::String | Kind::Bytes => {
                self.put_bytes(field.number(), &unquoted(value)?);
                return Some(());
            }
            // Negative numbers have the bits of those with 64.
            Kind::Int32 => i64::from(value.parse::<i32>().ok()?) as u64,
            Kind::Int64 => value.parse::<i64>().ok()? as u64,
            Kind::Uint32 => value.parse::<u32>().ok()?.into(),
            Kind::Uint64 => value.parse().ok()?,
            Kind::Bool => value.parse::<bool>().ok()?.into(),
            Kind::Enum(values) => i64::from(values.get_value_by_name(value)?.number()) as u64,
            _ => return None,
        };
        encode_key(field.number(), WireType::Varint, &mut self.bytes);
        encode_varint(number, &mut self.bytes);
        Some(())
    }

    fn put_bytes(&mut self, number: u32, bytes: &[u8]) {
        encode_key(number, WireType::LengthDelimited, &mut self.bytes);
        encode_varint(bytes.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(bytes);
    }
}

/// The bytes that a text in quotes stands for.
fn unquoted(text: &str) -> Option<Vec<u8>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'"' => return None,
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                plain @ (b'"' | b'\'' | b'\\') => plain,
                first @ b'0'..=b'3' => {
                    let [second, third] = [rest.next()?, rest.next()?];
                    if ![second, third].iter().all(|digit| (b'0'..=b'7').contains(digit)) {
                        return None;
                    }
                    (first - b'0') << 6 | (second - b'0') << 3 | (third - b'0')
                }
                _ => return None,
            },
            other => other,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{P4INFO, definition, dynamic};
    use super::*;
    use crate::proto::config::P4Info;
    use prost::Message;

    fn plain(text: &str) -> Option<P4Info> {
        let bytes = to_binary(text, definition(P4INFO).unwrap())?;
        P4Info::decode(&*bytes).ok()
    }

    fn general(text: &str) -> P4Info {
        P4Info::decode(&*dynamic(text).unwrap().encode_to_vec()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_as_the_general_reader_does() {
        use millrace_compile::{Options, Source, Standard, check};
        let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let programs =
            std::fs::read_dir(own.join("../../programs")).unwrap().map(|file| file.unwrap().path());
        let programs = programs.chain([own.join("tests/programs/all.p4")]);
        let mut read = 0;
        for path in programs.filter(|path| path.extension().is_some_and(|of| of == "p4")) {
            let checked = check(Source::Path(&path), Standard::P4_16, &Options::default());
            if !checked.has_errors() {
                let text = millrace_control::p4info::describe(&checked.typed).to_string();
                assert_eq!(plain(&text), Some(general(&text)), "{}", path.display());
                read += 1;
            }
        }
        assert!(read > 5, "{read} programs");
    }

    #[test]
    fn values() {
        let text = "# a comment\n\ntables {\n  preamble {\n    id: 33554433\n    name: \"a\\\"\\'\\\\\\n\\r\\t\\303\\251\"\n  }\n  \
                    direct_resource_ids: 1\n  direct_resource_ids: 300\n  idle_timeout_behavior: NOTIFY_CONTROL\n  \
                    is_const_table: true\n  size: -1\n}\n";
        let info = plain(text).unwrap();
        assert_eq!(info, general(text));
        let table = &info.tables[0];
        assert_eq!(table.preamble.as_ref().unwrap().name, "a\"'\\\n\r\té");
        assert_eq!((table.direct_resource_ids.as_slice(), table.size), (&[1, 300][..], -1));
    }

    #[test]
    fn what_is_written_otherwise_or_wrong_is_left_to_the_general_reader() {
        for text in [
            "tables { size: 1 }\n",
            "tables: 1\n",
            "tables {\n",
            "}\n",
            "nonsense: 1\n",
            "tables {\n  size: 1\n  size: 2\n}\n",
            "tables {\n  size: 0x10\n}\n",
            "tables {\n  is_const_table: 1\n}\n",
            "tables {\n  match_fields {\n    match_type: EXACT\n    other_match_type: \"a\"\n  }\n}\n",
            "pkg_info {\n  arch: \"a\" \"b\"\n}\n",
            "pkg_info {\n  arch: 'a'\n}\n",
            "pkg_info {\n  arch: \"\\x41\"\n}\n",
            "pkg_info {\n  arch: \"\\377\"\n}\n",
        ] {
            assert_eq!(plain(text), None, "{text}");
        }
    }
}
