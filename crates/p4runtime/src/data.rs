//! `P4Data`: values of any type of the program, to and from the scalars that registers and digests hold.

use crate::proto::v1::{P4Data, P4Header, P4HeaderStack, P4StructLike, P4Varbit, p4_data::Data};
use crate::refusal::Refusal;
use crate::value;
use millrace_control::p4info::{Representation, TypeInfo, TypeSpec};
use millrace_pipeline::Bits;
use millrace_pipeline::semantics::Value;

/// How deep types may stand in one another.
const MAX_DEPTH: usize = 32;

/// A type with its names resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Bit(u32),
    Int(u32),
    Bool,
    Varbit(u32),
    /// The names of the members, in order of their numbers.
    Error(Vec<String>),
    Enum(Vec<String>),
    SerializableEnum(u32),
    Struct(Vec<Shape>),
    Tuple(Vec<Shape>),
    Header(Vec<Shape>),
    HeaderStack(Vec<Shape>),
    /// A type that no message can carry.
    Unknown,
}

impl Shape {
    /// Resolves a type of P4Info.
    pub(crate) fn new(spec: &TypeSpec, types: Option<&TypeInfo>) -> Shape {
        Shape::at_depth(spec, types, 0)
    }

    fn at_depth(spec: &TypeSpec, types: Option<&TypeInfo>, depth: usize) -> Shape {
        if depth > MAX_DEPTH {
            return Shape::Unknown;
        }
        let inner = |spec: &TypeSpec| Shape::at_depth(spec, types, depth + 1);
        match spec {
            TypeSpec::Bit(width) => Shape::Bit(*width),
            TypeSpec::Int(width) => Shape::Int(*width),
            TypeSpec::Varbit(width) => Shape::Varbit(*width),
            TypeSpec::Bool => Shape::Bool,
            TypeSpec::Error => Shape::Error(types.and_then(|types| types.error.clone()).unwrap_or_default()),
            TypeSpec::Tuple(members) => Shape::Tuple(members.iter().map(inner).collect()),
            TypeSpec::Stack(_, field, name, size) => {
                let element = inner(&TypeSpec::Named(field, name.clone()));
                Shape::HeaderStack(vec![element; *size as usize])
            }
            TypeSpec::Named(kind, name) => {
                let Some(types) = types else { return Shape::Unknown };
                let members = |list: &[(String, Vec<(String, TypeSpec)>)]| {
                    let found = list.iter().find(|(known, _)| known == name);
                    found.map(|(_, members)| members.iter().map(|(_, spec)| inner(spec)).collect::<Vec<_>>())
                };
                let found = match *kind {
                    "struct" => members(&types.structs).map(Shape::Struct),
                    "header" => members(&types.headers).map(Shape::Header),
                    "enum" => types
                        .enums
                        .iter()
                        .find(|(known, _)| known == name)
                        .map(|(_, members)| Shape::Enum(members.clone())),
                    "serializable_enum" => types
                        .serializable_enums
                        .iter()
                        .find(|(known, _)| known == name)
                        .map(|(_, declared)| Shape::SerializableEnum(declared.width)),
                    "new_type" => {
                        types.new_types.iter().find(|(known, _)| known == name).map(|(_, declared)| {
                            match &declared.representation {
                                Representation::Original(spec) => inner(spec),
                                Representation::TranslatedBits(_, width) => Shape::Bit(*width),
                                Representation::TranslatedString(_) => Shape::Unknown,
                            }
                        })
                    }
                    _ => None,
                };
                found.unwrap_or(Shape::Unknown)
            }
        }
    }

    /// How many scalars a value has.
    pub(crate) fn scalars(&self) -> usize {
        match self {
            Shape::Struct(members)
            | Shape::Tuple(members)
            | Shape::Header(members)
            | Shape::HeaderStack(members) => members.iter().map(Shape::scalars).sum(),
            _ => 1,
        }
    }

    /// The message of a value whose scalars come next.
    pub(crate) fn write(&self, scalars: &mut impl Iterator<Item = Value>) -> P4Data {
        P4Data { data: Some(self.data(scalars)) }
    }

    fn data(&self, scalars: &mut impl Iterator<Item = Value>) -> Data {
        match self {
            Shape::Struct(members) => Data::Struct(P4StructLike {
                members: members.iter().map(|member| member.write(scalars)).collect(),
            }),
            Shape::Tuple(members) => Data::Tuple(P4StructLike {
                members: members.iter().map(|member| member.write(scalars)).collect(),
            }),
            Shape::Header(members) => Data::Header(header(members, scalars)),
            Shape::HeaderStack(elements) => Data::HeaderStack(P4HeaderStack {
                entries: elements
                    .iter()
                    .map(|element| match element {
                        Shape::Header(members) => header(members, scalars),
                        _ => P4Header::default(),
                    })
                    .collect(),
            }),
            scalar => {
                let value = scalars.next().unwrap_or(Value::Bool(false));
                scalar.scalar(&value)
            }
        }
    }

    fn scalar(&self, value: &Value) -> Data {
        let bits = |width: u32| match value {
            Value::Bits(bits) => bits.clone(),
            Value::Bool(truth) => Bits::new(width.max(1), u128::from(*truth)),
            Value::Varbit(varbit) => varbit.bits().cloned().unwrap_or_else(|| Bits::zero(width.max(1))),
        };
        match self {
            Shape::Int(width) => Data::Bitstring(value::canonical_signed(&bits(*width))),
            Shape::Bool => Data::Bool(match value {
                Value::Bool(truth) => *truth,
                other => !matches!(other, Value::Bits(bits) if bits.is_zero()),
            }),
            Shape::Varbit(_) => {
                let bits = match value {
                    Value::Varbit(varbit) => varbit.bits().cloned(),
                    Value::Bits(bits) => Some(bits.clone()),
                    Value::Bool(_) => None,
                };
                Data::Varbit(P4Varbit {
                    bitwidth: bits.as_ref().map_or(0, |bits| bits.width() as i32),
                    bitstring: bits.map(|bits| bits.to_bytes()).unwrap_or_default().into(),
                })
            }
            Shape::Error(names) => Data::Error(name_of(names, &bits(32))),
            Shape::Enum(names) => Data::Enum(name_of(names, &bits(32))),
            Shape::SerializableEnum(width) => Data::EnumValue(value::canonical(&bits(*width))),
            _ => Data::Bitstring(value::canonical(&bits(1))),
        }
    }

    /// The scalars of a message; `widths` are those of the scalars, in order.
    pub(crate) fn read(
        &self,
        data: &P4Data,
        widths: &mut impl Iterator<Item = u32>,
        scalars: &mut Vec<Bits>,
    ) -> Result<(), Refusal> {
        let wrong = || Refusal::invalid("the data is not of the type that P4Info says");
        let data = data.data.as_ref().ok_or_else(wrong)?;
        match (self, data) {
            (Shape::Struct(members), Data::Struct(given)) | (Shape::Tuple(members), Data::Tuple(given)) => {
                if members.len() != given.members.len() {
                    return Err(wrong());
                }
                members
                    .iter()
                    .zip(&given.members)
                    .try_for_each(|(shape, data)| shape.read(data, widths, scalars))
            }
            (Shape::Header(members), Data::Header(given)) => {
                if members.len() != given.bitstrings.len() {
                    return Err(wrong());
                }
                for (shape, bytes) in members.iter().zip(&given.bitstrings) {
                    let width = widths.next().ok_or_else(wrong)?;
                    scalars.push(match shape {
                        Shape::Int(_) => value::signed(bytes, width)?,
                        _ => value::unsigned(bytes, width)?,
                    });
                }
                Ok(())
            }
            _ => {
                let width = widths.next().ok_or_else(wrong)?;
                scalars.push(self.read_scalar(data, width).ok_or_else(wrong)??);
                Ok(())
            }
        }
    }

    fn read_scalar(&self, data: &Data, width: u32) -> Option<Result<Bits, Refusal>> {
        let numbered = |names: &[String], given: &String| {
            let number = names.iter().position(|name| name == given)?;
            Some(Ok(Bits::new(width, number as u128)))
        };
        match (self, data) {
            (Shape::Bit(_), Data::Bitstring(bytes)) => Some(value::unsigned(bytes, width)),
            (Shape::Int(_), Data::Bitstring(bytes)) => Some(value::signed(bytes, width)),
            (Shape::SerializableEnum(_), Data::EnumValue(bytes)) => Some(value::unsigned(bytes, width)),
            (Shape::Bool, Data::Bool(truth)) => Some(Ok(Bits::new(width, u128::from(*truth)))),
            (Shape::Enum(names), Data::Enum(given)) | (Shape::Error(names), Data::Error(given)) => {
                numbered(names, given)
            }
            _ => None,
        }
    }
}

fn header(members: &[Shape], scalars: &mut impl Iterator<Item = Value>) -> P4Header {
    let bitstrings = members.iter().map(|member| match member.data(scalars) {
        Data::Bitstring(bytes) | Data::EnumValue(bytes) => bytes,
        Data::Bool(truth) => vec![u8::from(truth)].into(),
        Data::Varbit(varbit) => varbit.bitstring,
        _ => vec![0].into(),
    });
    P4Header { is_valid: true, bitstrings: bitstrings.collect() }
}

fn name_of(names: &[String], number: &Bits) -> String {
    let known = number.to_u64().and_then(|number| names.get(usize::try_from(number).ok()?));
    known.cloned().unwrap_or_else(|| number.to_u64_saturating().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_go_and_come_back() {
        let types = TypeInfo {
            structs: vec![(
                "learn_t".into(),
                vec![
                    ("mac".into(), TypeSpec::Bit(48)),
                    ("delta".into(), TypeSpec::Int(12)),
                    ("ok".into(), TypeSpec::Bool),
                    ("color".into(), TypeSpec::Named("enum", "Color".into())),
                ],
            )],
            enums: vec![("Color".into(), vec!["RED".into(), "GREEN".into()])],
            ..TypeInfo::default()
        };
        let shape = Shape::new(&TypeSpec::Named("struct", "learn_t".into()), Some(&types));
        assert_eq!(shape.scalars(), 4);
        let scalars =
            [Bits::new(48, 0x0a), Bits::new(12, (-739i128) as u128), Bits::new(1, 1), Bits::new(32, 1)];
        let data = shape.write(&mut scalars.iter().cloned().map(Value::Bits));
        let Some(Data::Struct(written)) = &data.data else { panic!("{data:?}") };
        let members: Vec<_> = written.members.iter().map(|member| member.data.clone().unwrap()).collect();
        assert_eq!(
            members,
            [
                Data::Bitstring(vec![0x0a].into()),
                Data::Bitstring(vec![0xfd, 0x1d].into()),
                Data::Bool(true),
                Data::Enum("GREEN".into())
            ]
        );
        let mut read = Vec::new();
        shape.read(&data, &mut [48, 12, 1, 32].into_iter(), &mut read).unwrap();
        assert_eq!(read, scalars);
        let wrong = P4Data { data: Some(Data::Bool(true)) };
        assert!(shape.read(&wrong, &mut [48].into_iter(), &mut Vec::new()).is_err());
    }
}
