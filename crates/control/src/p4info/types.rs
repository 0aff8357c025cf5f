//! Types as the control plane sees them.

use super::annotations::{notes, string};
use super::{NewType, Representation, SerializableEnum, TypeInfo, TypeSpec};
use millrace_sema::hir::{EnumId, NewTypeId, Program, StructId, StructKind, Ty, TyKind};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

/// Describes types and collects those that have names.
pub(super) struct Types<'a> {
    program: &'a Program,
    /// The named types met so far.
    pub(super) info: TypeInfo,
    /// Whether anything was described that could have had a named type.
    pub(super) touched: bool,
}

impl<'a> Types<'a> {
    pub(super) fn new(program: &'a Program) -> Types<'a> {
        Types { program, info: TypeInfo::default(), touched: false }
    }

    /// Describes a type, and the types that it names.
    pub(super) fn describe(&mut self, ty: Ty) -> TypeSpec {
        self.touched = true;
        match self.program.types.kind(ty) {
            TyKind::Bits(width) => TypeSpec::Bit(*width),
            TyKind::SignedBits(width) => TypeSpec::Int(*width),
            TyKind::Varbit(width) => TypeSpec::Varbit(*width),
            TyKind::Bool => TypeSpec::Bool,
            TyKind::Error => {
                self.info.error.get_or_insert_with(|| self.program.errors.clone());
                TypeSpec::Error
            }
            TyKind::Tuple(members) => {
                TypeSpec::Tuple(members.iter().map(|&member| self.describe(member)).collect())
            }
            TyKind::List(element) => TypeSpec::Tuple(vec![self.describe(*element)]),
            TyKind::Struct(id) => self.structure(*id),
            TyKind::Enum(id) => self.enumeration(*id),
            TyKind::New(id) => self.new_type(*id),
            TyKind::Stack(element, size) => match self.describe(*element) {
                TypeSpec::Named("header_union", name) => {
                    TypeSpec::Stack("header_union_stack", "header_union", name, *size)
                }
                TypeSpec::Named(field, name) => TypeSpec::Stack("header_stack", field, name, *size),
                other => other,
            },
            // No other type is data.
            _ => TypeSpec::Tuple(Vec::new()),
        }
    }

    /// The name of a new type; what P4Info writes beside a width.
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
                    Some(Representation::TranslatedBits(_, width)) => Some(width),
                    Some(Representation::TranslatedString(_)) => None,
                    _ => self.width(self.below_new_types(declared.base)),
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
                if !self.info.structs.iter().any(|(known, _)| *known == name) {
                    // The name goes in first: types cannot contain themselves, but the order is that of first use.
                    let at = self.info.structs.len();
                    self.info.structs.push((name.clone(), Vec::new()));
                    let members = declared.fields.iter().map(|field| {
                        let member = string(&field.annotations, "name").unwrap_or_else(|| field.name.clone());
                        (member, self.describe(field.ty))
                    });
                    let members = members.collect();
                    self.info.structs[at].1 = members;
                }
                TypeSpec::Named("struct", name)
            }
            StructKind::Header => {
                if !self.info.headers.iter().any(|(known, _)| *known == name) {
                    let fields = self.flat_fields(id);
                    let members =
                        fields.into_iter().map(|(member, ty, _)| (member, self.header_field(ty))).collect();
                    self.info.headers.push((name.clone(), members));
                }
                TypeSpec::Named("header", name)
            }
            StructKind::Union => {
                if !self.info.header_unions.iter().any(|(known, _)| *known == name) {
                    let members = declared
                        .fields
                        .iter()
                        .map(|field| {
                            self.describe(field.ty);
                            (field.name.clone(), self.short_name(field.ty))
                        })
                        .collect();
                    self.info.header_unions.push((name.clone(), members));
                }
                TypeSpec::Named("header_union", name)
            }
        }
    }

    /// Fields of headers are described as the bits that they are.
    fn header_field(&mut self, ty: Ty) -> TypeSpec {
        match self.program.types.kind(ty) {
            TyKind::SignedBits(_) | TyKind::Varbit(_) => self.describe(ty),
            _ => TypeSpec::Bit(self.width(ty).unwrap_or(0)),
        }
    }

    fn enumeration(&mut self, id: EnumId) -> TypeSpec {
        let program = self.program;
        let declared = &program.types.enums[id];
        let name = self.enum_name(id);
        let member_name = |annotations: &[Annotation], member: &str| {
            string(annotations, "name").unwrap_or_else(|| member.to_owned())
        };
        match declared.repr {
            None => {
                if !self.info.enums.iter().any(|(known, _)| *known == name) {
                    let members =
                        declared.members.iter().map(|m| member_name(&m.annotations, &m.name)).collect();
                    self.info.enums.push((name.clone(), members));
                }
                TypeSpec::Named("enum", name)
            }
            Some(repr) => {
                let width = self.width(repr).unwrap_or(0);
                if !self.info.serializable_enums.iter().any(|(known, ..)| *known == name) {
                    let members = declared
                        .members
                        .iter()
                        .map(|m| {
                            let value = m.value.clone().unwrap_or_default();
                            (member_name(&m.annotations, &m.name), full_width(&value, width))
                        })
                        .collect();
                    self.info.serializable_enums.push((name.clone(), SerializableEnum { width, members }));
                }
                TypeSpec::Named("serializable_enum", name)
            }
        }
    }

    fn new_type(&mut self, id: NewTypeId) -> TypeSpec {
        let program = self.program;
        let declared = &program.types.new_types[id];
        let name = declared.name.clone();
        if !self.info.new_types.iter().any(|(known, _)| *known == name) {
            let base = self.below_new_types(declared.base);
            let representation = match translation(&declared.annotations) {
                Some(translated) => translated,
                None => Representation::Original(self.describe(base)),
            };
            let notes = notes(program, &declared.annotations, &["p4runtime_translation"]);
            self.info.new_types.push((name.clone(), NewType { representation, notes }));
        }
        TypeSpec::Named("new_type", name)
    }
}

/// `@p4runtime_translation("uri", 32)`, `("uri", bit<32>)` or `("uri", string)`.
fn translation(annotations: &[Annotation]) -> Option<Representation> {
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
    Some(match width {
        Some(width) => Representation::TranslatedBits(uri, width),
        None => Representation::TranslatedString(uri),
    })
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
