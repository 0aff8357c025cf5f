//! `P4Data`: values of any type of the program, to and from the scalars that registers and digests hold.

use crate::refusal::Refusal;
use crate::value;
use millrace_p4runtime_api::config::p4_data_type_spec::TypeSpec;
use millrace_p4runtime_api::config::p4_new_type_spec::Representation;
use millrace_p4runtime_api::config::p4_new_type_translation::SdnType;
use millrace_p4runtime_api::config::{
    self, P4BitstringLikeTypeSpec, P4DataTypeSpec, P4NamedType, P4TypeInfo,
};
use millrace_p4runtime_api::v1::{P4Data, P4Header, P4HeaderStack, P4StructLike, P4Varbit, p4_data::Data};
use millrace_pipeline::Bits;
use millrace_pipeline::semantics::Value;
use std::cell::Cell;

/// How deep types may stand in one another.
const MAX_DEPTH: usize = 32;
/// Most parts that a type may have, all those inside it counted.
const MAX_PARTS: usize = 1 << 14;

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
    pub(crate) fn new(spec: Option<&P4DataTypeSpec>, types: Option<&P4TypeInfo>) -> Shape {
        Resolver { types, left: Cell::new(MAX_PARTS) }.shape(spec, 0)
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

/// Resolves the names in types. An image can bring any P4Info, so what it grows to is bounded.
struct Resolver<'t> {
    types: Option<&'t P4TypeInfo>,
    left: Cell<usize>,
}

impl Resolver<'_> {
    fn shape(&self, spec: Option<&P4DataTypeSpec>, depth: usize) -> Shape {
        let Some(spec) = spec.and_then(|spec| spec.type_spec.as_ref()) else { return Shape::Unknown };
        if depth > MAX_DEPTH || self.spend(1).is_none() {
            return Shape::Unknown;
        }
        let found = match spec {
            TypeSpec::Bitstring(bits) => Some(bit_string(bits)),
            TypeSpec::Bool(_) => Some(Shape::Bool),
            TypeSpec::Error(_) => {
                let declared = self.types.and_then(|types| types.error.as_ref());
                let members = declared.map(|error| error.members.as_slice()).unwrap_or_default();
                self.spend(members.len()).map(|()| Shape::Error(members.to_vec()))
            }
            TypeSpec::Tuple(tuple) => {
                let members = tuple.members.iter().map(|member| self.shape(Some(member), depth + 1));
                Some(Shape::Tuple(members.collect()))
            }
            TypeSpec::Struct(named) => self.types.and_then(|types| {
                let members = types.structs.get(&named.name)?.members.iter();
                let shapes = members.map(|member| self.shape(member.type_spec.as_ref(), depth + 1));
                Some(Shape::Struct(shapes.collect()))
            }),
            TypeSpec::Header(named) => self.header(named),
            TypeSpec::HeaderStack(stack) => stack.header.as_ref().and_then(|named| {
                let element = self.header(named)?;
                let size = usize::try_from(stack.size).ok()?;
                self.spend(element.scalars().checked_mul(size)?)?;
                Some(Shape::HeaderStack(vec![element; size]))
            }),
            TypeSpec::Enum(named) => self.types.and_then(|types| {
                let members = &types.enums.get(&named.name)?.members;
                self.spend(members.len())?;
                Some(Shape::Enum(members.iter().map(|member| member.name.clone()).collect()))
            }),
            TypeSpec::SerializableEnum(named) => self.types.and_then(|types| {
                let underlying = types.serializable_enums.get(&named.name)?.underlying_type.as_ref()?;
                Some(Shape::SerializableEnum(width(underlying.bitwidth)))
            }),
            TypeSpec::NewType(named) => self.types.and_then(|types| {
                Some(match types.new_types.get(&named.name)?.representation.as_ref()? {
                    Representation::OriginalType(spec) => self.shape(Some(spec), depth + 1),
                    Representation::TranslatedType(translation) => match translation.sdn_type {
                        Some(SdnType::SdnBitwidth(bits)) => Shape::Bit(width(bits)),
                        _ => Shape::Unknown,
                    },
                })
            }),
            TypeSpec::HeaderUnion(_) | TypeSpec::HeaderUnionStack(_) => None,
        };
        found.unwrap_or(Shape::Unknown)
    }

    fn header(&self, named: &P4NamedType) -> Option<Shape> {
        let members = &self.types?.headers.get(&named.name)?.members;
        self.spend(members.len())?;
        let shapes =
            members.iter().map(|member| member.type_spec.as_ref().map_or(Shape::Unknown, bit_string));
        Some(Shape::Header(shapes.collect()))
    }

    /// Counts parts; none when there are too many.
    fn spend(&self, parts: usize) -> Option<()> {
        self.left.set(self.left.get().checked_sub(parts)?);
        Some(())
    }
}

fn bit_string(spec: &P4BitstringLikeTypeSpec) -> Shape {
    use config::p4_bitstring_like_type_spec::TypeSpec;
    match &spec.type_spec {
        Some(TypeSpec::Bit(bits)) => Shape::Bit(width(bits.bitwidth)),
        Some(TypeSpec::Int(bits)) => Shape::Int(width(bits.bitwidth)),
        Some(TypeSpec::Varbit(bits)) => Shape::Varbit(width(bits.max_bitwidth)),
        None => Shape::Unknown,
    }
}

fn width(bits: i32) -> u32 {
    u32::try_from(bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_p4runtime_api::config::P4Info;

    fn types(text: &str) -> P4TypeInfo {
        millrace_messages::text::read::<P4Info>(&format!("type_info {{ {text} }}"))
            .unwrap()
            .type_info
            .unwrap()
    }

    fn structure(name: &str) -> P4DataTypeSpec {
        P4DataTypeSpec { type_spec: Some(TypeSpec::Struct(P4NamedType { name: name.into() })) }
    }

    /// Thirty levels of two members each would be a thousand million scalars.
    #[test]
    fn types_that_grow_without_bound_are_no_types() {
        let mut text = String::from("structs { key: \"t0\" value { } }");
        for level in 1..30 {
            let member = format!("members {{ type_spec {{ struct {{ name: \"t{}\" }} }} }}", level - 1);
            text += &format!("structs {{ key: \"t{level}\" value {{ {member} {member} }} }}");
        }
        text += "headers { key: \"h\" value { members { type_spec { bit { bitwidth: 8 } } } } }";
        let types = types(&text);
        assert!(Shape::new(Some(&structure("t29")), Some(&types)).scalars() <= MAX_PARTS);
        let stack =
            config::P4HeaderStackTypeSpec { header: Some(P4NamedType { name: "h".into() }), size: i32::MAX };
        let stack = P4DataTypeSpec { type_spec: Some(TypeSpec::HeaderStack(stack)) };
        assert_eq!(Shape::new(Some(&stack), Some(&types)), Shape::Unknown);
    }

    #[test]
    fn structures_go_and_come_back() {
        let types = types(
            "structs { key: \"learn_t\" value {
                 members { name: \"mac\" type_spec { bitstring { bit { bitwidth: 48 } } } }
                 members { name: \"delta\" type_spec { bitstring { int { bitwidth: 12 } } } }
                 members { name: \"ok\" type_spec { bool { } } }
                 members { name: \"color\" type_spec { enum { name: \"Color\" } } }
             } }
             enums { key: \"Color\" value { members { name: \"RED\" } members { name: \"GREEN\" } } }",
        );
        let shape = Shape::new(Some(&structure("learn_t")), Some(&types));
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
