//! Types as the control plane sees them.

use super::annotations::{notes, string};
use super::objects::int32;
use millrace_messages::config::p4_bitstring_like_type_spec::TypeSpec as Bits;
use millrace_messages::config::p4_data_type_spec::TypeSpec;
use millrace_messages::config::p4_new_type_spec::Representation;
use millrace_messages::config::p4_new_type_translation::{SdnString, SdnType};
use millrace_messages::config::{
    P4BitTypeSpec, P4BitstringLikeTypeSpec, P4BoolType, P4DataTypeSpec, P4EnumTypeSpec, P4ErrorType,
    P4ErrorTypeSpec, P4HeaderStackTypeSpec, P4HeaderTypeSpec, P4HeaderUnionStackTypeSpec,
    P4HeaderUnionTypeSpec, P4IntTypeSpec, P4NamedType, P4NewTypeSpec, P4NewTypeTranslation,
    P4SerializableEnumTypeSpec, P4StructTypeSpec, P4TupleTypeSpec, P4TypeInfo, P4VarbitTypeSpec,
    p4_enum_type_spec, p4_header_type_spec, p4_header_union_type_spec, p4_serializable_enum_type_spec,
    p4_struct_type_spec,
};
use millrace_sema::hir::{EnumId, NewTypeId, Program, StructId, StructKind, Ty, TyKind};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

/// Describes types and collects those that have names.
pub(super) struct Types<'a> {
    program: &'a Program,
    /// The named types met so far.
    pub(super) info: P4TypeInfo,
    /// Whether anything was described that could have had a named type.
    pub(super) touched: bool,
}

impl<'a> Types<'a> {
    pub(super) fn new(program: &'a Program) -> Types<'a> {
        Types { program, info: P4TypeInfo::default(), touched: false }
    }

    /// Describes a type, and the types that it names.
    pub(super) fn describe(&mut self, ty: Ty) -> P4DataTypeSpec {
        P4DataTypeSpec { type_spec: Some(self.spec(ty)) }
    }

    fn spec(&mut self, ty: Ty) -> TypeSpec {
        self.touched = true;
        match self.program.types.kind(ty) {
            TyKind::Bits(width) => TypeSpec::Bitstring(bitstring(bit(*width))),
            TyKind::SignedBits(width) => TypeSpec::Bitstring(bitstring(int(*width))),
            TyKind::Varbit(width) => TypeSpec::Bitstring(bitstring(varbit(*width))),
            TyKind::Bool => TypeSpec::Bool(P4BoolType {}),
            TyKind::Error => {
                let program = self.program;
                self.info.error.get_or_insert_with(|| P4ErrorTypeSpec { members: program.errors.clone() });
                TypeSpec::Error(P4ErrorType {})
            }
            TyKind::Tuple(members) => {
                let members = members.iter().map(|&member| self.describe(member)).collect();
                TypeSpec::Tuple(P4TupleTypeSpec { members })
            }
            TyKind::List(element) => {
                TypeSpec::Tuple(P4TupleTypeSpec { members: vec![self.describe(*element)] })
            }
            TyKind::Struct(id) => self.structure(*id),
            TyKind::Enum(id) => self.enumeration(*id),
            TyKind::New(id) => self.new_type(*id),
            TyKind::Stack(element, size) => {
                let size = int32(*size);
                match self.spec(*element) {
                    TypeSpec::HeaderUnion(name) => {
                        let header_union = Some(name);
                        TypeSpec::HeaderUnionStack(P4HeaderUnionStackTypeSpec { header_union, size })
                    }
                    TypeSpec::Header(name) => {
                        TypeSpec::HeaderStack(P4HeaderStackTypeSpec { header: Some(name), size })
                    }
                    other => other,
                }
            }
            // No other type is data.
            _ => TypeSpec::Tuple(P4TupleTypeSpec::default()),
        }
    }

    /// The name of a new type; what P4Info writes next to a width.
    pub(super) fn new_type_name(&self, ty: Ty) -> Option<String> {
        match self.program.types.kind(ty) {
            TyKind::New(id) => Some(self.program.types.new_types[*id].name.clone()),
            _ => None,
        }
    }

    /// The width in bits of a number, truth value, serializable enum or new type, as the controller sees it; none for
    /// what is a text to it.
    pub(super) fn width(&self, ty: Ty) -> Option<u32> {
        match self.program.types.kind(ty) {
            TyKind::Bits(width) | TyKind::SignedBits(width) | TyKind::Varbit(width) => Some(*width),
            TyKind::Bool => Some(1),
            TyKind::Enum(id) => self.width(self.program.types.enums[*id].repr?),
            TyKind::New(id) => {
                let declared = &self.program.types.new_types[*id];
                match translation(&declared.annotations) {
                    Some((_, width)) => width,
                    None => self.width(self.below_new_types(declared.base)),
                }
            }
            _ => None,
        }
    }

    /// The width in bits in the data plane.
    pub(super) fn data_width(&self, ty: Ty) -> Option<u32> {
        self.width(self.below_new_types(ty))
    }

    /// The name of a plain enumeration.
    pub(super) fn plain_enum_name(&self, ty: Ty) -> Option<String> {
        match self.program.types.kind(ty) {
            TyKind::Enum(id) if self.program.types.enums[*id].repr.is_none() => Some(self.enum_name(*id)),
            _ => None,
        }
    }

    /// What is below all new types. Only the outermost one says how the controller sees its values.
    fn below_new_types(&self, mut ty: Ty) -> Ty {
        while let TyKind::New(id) = self.program.types.kind(ty) {
            ty = self.program.types.new_types[*id].base;
        }
        ty
    }

    fn enum_name(&self, id: EnumId) -> String {
        let declared = &self.program.types.enums[id];
        string(&declared.annotations, "name").unwrap_or_else(|| declared.name.clone())
    }

    /// The name of a structure: `@name`, or the declared one with its type arguments.
    pub(super) fn struct_name(&self, id: StructId) -> String {
        let declared = &self.program.types.structs[id];
        if let Some(name) = string(&declared.annotations, "name") {
            return name;
        }
        let mut name = declared.name.clone();
        for &argument in &declared.args {
            name.push('_');
            name.push_str(&self.short_name(argument));
        }
        name
    }

    /// The fields of a header in one level: those of a structure in it are `structure.field`.
    pub(super) fn flat_fields(&self, id: StructId) -> Vec<(String, Ty, &'a [Annotation])> {
        let mut fields = Vec::new();
        self.flatten(id, "", &mut fields);
        fields
    }

    fn flatten(&self, id: StructId, prefix: &str, fields: &mut Vec<(String, Ty, &'a [Annotation])>) {
        let program = self.program;
        for field in &program.types.structs[id].fields {
            let own = string(&field.annotations, "name").unwrap_or_else(|| field.name.clone());
            let name = if prefix.is_empty() { own } else { format!("{prefix}.{own}") };
            match program.types.kind(field.ty) {
                TyKind::Struct(inner) => self.flatten(*inner, &name, fields),
                _ => fields.push((name, field.ty, &field.annotations)),
            }
        }
    }

    fn short_name(&self, ty: Ty) -> String {
        match self.program.types.kind(ty) {
            TyKind::Bits(width) => format!("bit{width}"),
            TyKind::SignedBits(width) => format!("int{width}"),
            TyKind::Varbit(width) => format!("varbit{width}"),
            TyKind::Bool => "bool".into(),
            TyKind::Error => "error".into(),
            TyKind::Struct(id) => self.struct_name(*id),
            TyKind::Enum(id) => self.enum_name(*id),
            TyKind::New(id) => self.program.types.new_types[*id].name.clone(),
            TyKind::Stack(element, size) => format!("{}_{size}", self.short_name(*element)),
            TyKind::Tuple(members) => {
                members.iter().fold("tuple".to_owned(), |name, &member| name + "_" + &self.short_name(member))
            }
            _ => "type".into(),
        }
    }

    fn structure(&mut self, id: StructId) -> TypeSpec {
        let program = self.program;
        let declared = &program.types.structs[id];
        let name = self.struct_name(id);
        match declared.kind {
            StructKind::Struct => {
                if !self.info.structs.contains_key(&name) {
                    // The types of its members are described once, also where it is met again while they are.
                    self.info.structs.insert(name.clone(), P4StructTypeSpec::default());
                    let members = declared.fields.iter().map(|field| p4_struct_type_spec::Member {
                        name: string(&field.annotations, "name").unwrap_or_else(|| field.name.clone()),
                        type_spec: Some(self.describe(field.ty)),
                    });
                    let spec = P4StructTypeSpec { members: members.collect(), ..P4StructTypeSpec::default() };
                    self.info.structs.insert(name.clone(), spec);
                }
                TypeSpec::Struct(P4NamedType { name })
            }
            StructKind::Header => {
                if !self.info.headers.contains_key(&name) {
                    let fields = self.flat_fields(id).into_iter();
                    let members = fields.map(|(name, ty, _)| p4_header_type_spec::Member {
                        name,
                        type_spec: Some(self.header_field(ty)),
                    });
                    let spec = P4HeaderTypeSpec { members: members.collect(), ..P4HeaderTypeSpec::default() };
                    self.info.headers.insert(name.clone(), spec);
                }
                TypeSpec::Header(P4NamedType { name })
            }
            StructKind::Union => {
                if !self.info.header_unions.contains_key(&name) {
                    let members = declared.fields.iter().map(|field| {
                        self.describe(field.ty);
                        let header = Some(P4NamedType { name: self.short_name(field.ty) });
                        p4_header_union_type_spec::Member { name: field.name.clone(), header }
                    });
                    let members = members.collect();
                    let spec = P4HeaderUnionTypeSpec { members, ..P4HeaderUnionTypeSpec::default() };
                    self.info.header_unions.insert(name.clone(), spec);
                }
                TypeSpec::HeaderUnion(P4NamedType { name })
            }
        }
    }

    /// Fields of headers are described as the bits that they are.
    fn header_field(&self, ty: Ty) -> P4BitstringLikeTypeSpec {
        bitstring(match self.program.types.kind(ty) {
            TyKind::SignedBits(width) => int(*width),
            TyKind::Varbit(width) => varbit(*width),
            _ => bit(self.width(ty).unwrap_or(0)),
        })
    }

    fn enumeration(&mut self, id: EnumId) -> TypeSpec {
        let declared = &self.program.types.enums[id];
        let name = self.enum_name(id);
        let member_name = |annotations: &[Annotation], member: &str| {
            string(annotations, "name").unwrap_or_else(|| member.to_owned())
        };
        match declared.repr {
            None => {
                let members = declared.members.iter().map(|m| p4_enum_type_spec::Member {
                    name: member_name(&m.annotations, &m.name),
                    ..p4_enum_type_spec::Member::default()
                });
                let described = || P4EnumTypeSpec { members: members.collect(), ..P4EnumTypeSpec::default() };
                self.info.enums.entry(name.clone()).or_insert_with(described);
                TypeSpec::Enum(P4NamedType { name })
            }
            Some(repr) => {
                let width = self.width(repr).unwrap_or(0);
                let members = declared.members.iter().map(|m| p4_serializable_enum_type_spec::Member {
                    name: member_name(&m.annotations, &m.name),
                    value: full_width(&m.value.clone().unwrap_or_default(), width).into(),
                    ..p4_serializable_enum_type_spec::Member::default()
                });
                let described = || P4SerializableEnumTypeSpec {
                    underlying_type: Some(P4BitTypeSpec { bitwidth: int32(width) }),
                    members: members.collect(),
                    ..P4SerializableEnumTypeSpec::default()
                };
                self.info.serializable_enums.entry(name.clone()).or_insert_with(described);
                TypeSpec::SerializableEnum(P4NamedType { name })
            }
        }
    }

    fn new_type(&mut self, id: NewTypeId) -> TypeSpec {
        let program = self.program;
        let declared = &program.types.new_types[id];
        let name = declared.name.clone();
        if !self.info.new_types.contains_key(&name) {
            let base = self.below_new_types(declared.base);
            let representation = match translation(&declared.annotations) {
                Some((uri, width)) => {
                    let bits = width.map(|width| SdnType::SdnBitwidth(int32(width)));
                    let sdn_type = Some(bits.unwrap_or(SdnType::SdnString(SdnString {})));
                    Representation::TranslatedType(P4NewTypeTranslation { uri, sdn_type })
                }
                None => Representation::OriginalType(self.describe(base)),
            };
            let notes = notes(program, &declared.annotations, &["p4runtime_translation"]);
            let spec = P4NewTypeSpec {
                representation: Some(representation),
                annotations: notes.annotations,
                structured_annotations: notes.structured,
                ..P4NewTypeSpec::default()
            };
            self.info.new_types.insert(name.clone(), spec);
        }
        TypeSpec::NewType(P4NamedType { name })
    }
}

fn bitstring(bits: Bits) -> P4BitstringLikeTypeSpec {
    P4BitstringLikeTypeSpec { type_spec: Some(bits), ..P4BitstringLikeTypeSpec::default() }
}

fn bit(width: u32) -> Bits {
    Bits::Bit(P4BitTypeSpec { bitwidth: int32(width) })
}

fn int(width: u32) -> Bits {
    Bits::Int(P4IntTypeSpec { bitwidth: int32(width) })
}

fn varbit(width: u32) -> Bits {
    Bits::Varbit(P4VarbitTypeSpec { max_bitwidth: int32(width) })
}

/// `@p4runtime_translation("uri", 32)`, `("uri", bit<32>)` or `("uri", string)`: the URI, and the width as the controller sees it;
/// none for a text.
fn translation(annotations: &[Annotation]) -> Option<(String, Option<u32>)> {
    let annotation = super::annotations::find(annotations, "p4runtime_translation")?;
    let AnnotationBody::Tokens(tokens) = &annotation.body else { return None };
    let uri = tokens.iter().find_map(|token| match &token.kind {
        AnnotationTokenKind::String(text) => Some(text.to_string()),
        _ => None,
    })?;
    let width = tokens.iter().find_map(|token| match &token.kind {
        AnnotationTokenKind::Int(literal) => literal.value.to_u32(),
        _ => None,
    });
    Some((uri, width))
}

/// A number in big-endian bytes, as many as its width takes; negative ones in two's complement.
pub(super) fn full_width(value: &BigInt, width: u32) -> Vec<u8> {
    let wrapped = if value.is_negative() { value + (BigInt::from(1) << width) } else { value.clone() };
    let (_, digits) = wrapped.to_bytes_be();
    let length = width.div_ceil(8) as usize;
    let mut bytes = vec![0; length.saturating_sub(digits.len())];
    bytes.extend(&digits[digits.len().saturating_sub(length)..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_bytes_of_their_width() {
        assert_eq!(full_width(&BigInt::from(10), 32), [0, 0, 0, 10]);
        assert_eq!(full_width(&BigInt::from(2), 9), [0, 2]);
        assert_eq!(full_width(&BigInt::from(-1), 12), [0x0f, 0xff]);
        assert_eq!(full_width(&BigInt::from(0), 5), [0]);
    }
}
