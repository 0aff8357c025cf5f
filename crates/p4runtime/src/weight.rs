//! How much memory a message takes once it is decoded, from its bytes.
//!
//! A message that is full of empty ones takes two bytes for each, and a hundred times as many and more as a structure.
//! So before a large message is decoded it is walked over, with the sizes of the structures that come of it.

use millrace_messages::schema::{Kind, Message, message};
use millrace_messages::wire::{Value, fields};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Deepest nesting that is looked at; prost takes no deeper one.
const MAX_DEPTH: u32 = 100;

/// All messages that requests are made of.
static SHAPES: LazyLock<Shapes> = LazyLock::new(Shapes::new);

#[derive(Debug, Default)]
struct Shapes {
    by_name: HashMap<&'static str, usize>,
    all: Vec<Shape>,
}

/// A message as a structure.
#[derive(Debug, Default)]
struct Shape {
    /// Its size, without what it has on the heap.
    size: usize,
    fields: Vec<(u32, Field)>,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    /// What an occurrence of it takes on the heap, without what is in it.
    each: usize,
    /// The message that it is.
    message: Option<usize>,
    /// What a byte of it takes on the heap.
    byte: usize,
}

impl Shapes {
    fn new() -> Shapes {
        let mut shapes = Shapes::default();
        for name in
            ["WriteRequest", "ReadRequest", "SetForwardingPipelineConfigRequest", "StreamMessageRequest"]
        {
            if let Some(message) = message(&format!("p4.v1.{name}")) {
                shapes.add(message, &mut Vec::new());
            }
        }
        shapes
    }

    /// The number of a message. `above`: the messages that it is part of; one of these is boxed.
    fn add(&mut self, message: &'static Message, above: &mut Vec<usize>) -> usize {
        if let Some(known) = self.by_name.get(message.name) {
            return *known;
        }
        let number = self.all.len();
        self.by_name.insert(message.name, number);
        self.all.push(Shape::default());
        above.push(number);
        let (mut size, mut of_oneofs, mut fields) = (0, HashMap::<&str, usize>::new(), Vec::new());
        for field in message.fields {
            let inner = match field.kind {
                Kind::Message(inner) => Some(self.add(inner, above)),
                _ => None,
            };
            let is_boxed = inner.is_some_and(|inner| above.contains(&inner));
            let inner_size =
                inner.map_or(0, |inner| self.all[inner].size.max(if is_boxed { 256 } else { 0 }));
            let is_many = field.is_list;
            let (inline, each, byte) = match field.kind {
                // Lists double as they grow.
                Kind::Message(_) if is_many => (24, 2 * inner_size, 0),
                Kind::Message(_) if is_boxed => (8, inner_size, 0),
                Kind::Message(_) => (inner_size + 8, 0, 0),
                Kind::Bytes | Kind::String => (32, if is_many { 2 * 32 } else { 0 }, 1),
                // Numbers may be packed.
                _ => (8, if is_many { 16 } else { 0 }, 16),
            };
            match field.oneof {
                Some(oneof) => {
                    let most = of_oneofs.entry(oneof).or_default();
                    *most = (*most).max(inline);
                }
                None => size += inline,
            }
            fields.push((field.number, Field { each, message: inner, byte }));
        }
        above.pop();
        size += of_oneofs.values().map(|most| most + 8).sum::<usize>();
        self.all[number] = Shape { size, fields };
        number
    }

    /// Adds what a message takes on the heap, until it is more than `most`. What cannot be understood is not counted: it is
    /// not decoded either.
    fn weigh(&self, number: usize, bytes: &[u8], depth: u32, most: usize, weight: &mut usize) {
        let shape = &self.all[number];
        for (number, value) in fields(bytes) {
            let known = shape.fields.iter().find(|(known, _)| u64::from(*known) == number);
            let Some((_, field)) = known else { continue };
            match value {
                Value::Bytes(inside) => match field.message {
                    Some(message) if depth < MAX_DEPTH => {
                        self.weigh(message, inside, depth + 1, most, weight)
                    }
                    _ => *weight = weight.saturating_add(inside.len().saturating_mul(field.byte)),
                },
                Value::Varint(_) | Value::Fixed(_) => {}
            }
            *weight = weight.saturating_add(field.each);
            if *weight > most {
                return;
            }
        }
    }
}

/// The bytes that a message of that name takes when it is decoded; when they are more than `most`, at least that many.
pub(crate) fn weight(name: &str, bytes: &[u8], most: usize) -> usize {
    let shapes = &*SHAPES;
    let Some(number) = shapes.by_name.get(format!("p4.v1.{name}").as_str()) else { return bytes.len() };
    let mut weight = shapes.all[*number].size;
    shapes.weigh(*number, bytes, 0, most, &mut weight);
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_p4runtime_api::v1::*;
    use prost::Message;

    #[test]
    fn structures_are_not_larger_than_they_are_taken_for() {
        let size = |name: &str| SHAPES.all[SHAPES.by_name[format!("p4.v1.{name}").as_str()]].size;
        for (name, real) in [
            ("Update", size_of::<Update>()),
            ("TableEntry", size_of::<TableEntry>()),
            ("FieldMatch", size_of::<FieldMatch>()),
            ("ActionProfileAction", size_of::<ActionProfileAction>()),
            ("P4Data", size_of::<P4Data>()),
            ("Replica", size_of::<Replica>()),
            ("PacketMetadata", size_of::<PacketMetadata>()),
        ] {
            assert!((real..3 * real + 64).contains(&size(name)), "{name}: {} for {real}", size(name));
        }
        let table = SHAPES.all[SHAPES.by_name["p4.config.v1.Table"]].size;
        assert!(table >= size_of::<millrace_p4runtime_api::config::Table>(), "{table}");
    }

    #[test]
    fn empty_messages_weigh_what_they_become() {
        let updates = vec![Update::default(); 10_000];
        let bytes = WriteRequest { updates, ..WriteRequest::default() }.encode_to_vec();
        assert_eq!(bytes.len(), 20_000);
        let weight_of = |most| weight("WriteRequest", &bytes, most);
        assert!(weight_of(usize::MAX) >= 10_000 * size_of::<Update>());
        assert!((100_000..200_000).contains(&weight_of(100_000)), "it stops where it is too much");
        // Deeper down as well.
        let matches = vec![FieldMatch::default(); 10_000];
        let entry = TableEntry { r#match: matches, ..TableEntry::default() };
        let entity = Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) });
        let updates = vec![Update { entity, ..Update::default() }];
        let bytes = WriteRequest { updates, ..WriteRequest::default() }.encode_to_vec();
        assert!(weight("WriteRequest", &bytes, usize::MAX) >= 10_000 * size_of::<FieldMatch>());
    }

    #[test]
    fn nested_values_and_nonsense_come_to_an_end() {
        let mut value = P4Data::default();
        for _ in 0..90 {
            let members = vec![value];
            value = P4Data { data: Some(p4_data::Data::Struct(P4StructLike { members })) };
        }
        let entry = RegisterEntry { data: Some(value), ..RegisterEntry::default() };
        let entity = Some(Entity { entity: Some(entity::Entity::RegisterEntry(entry)) });
        let updates = vec![Update { entity, ..Update::default() }];
        let bytes = WriteRequest { updates, ..WriteRequest::default() }.encode_to_vec();
        assert!(weight("WriteRequest", &bytes, usize::MAX) >= 90 * size_of::<P4Data>());
        for bytes in [&[0xff; 30][..], &[0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f], &[0x0b, 0x0b], &[0x1a]] {
            assert!(weight("WriteRequest", bytes, usize::MAX) < 4096);
        }
    }

    #[test]
    fn a_program_weighs_little_more_than_its_text() {
        let config = ForwardingPipelineConfig {
            p4_device_config: vec![b'x'; 1 << 20].into(),
            ..ForwardingPipelineConfig::default()
        };
        let request = SetForwardingPipelineConfigRequest { config: Some(config), ..Default::default() };
        let weight = weight("SetForwardingPipelineConfigRequest", &request.encode_to_vec(), usize::MAX);
        assert!((1 << 20..(1 << 20) + 4096).contains(&weight), "{weight}");
    }
}
