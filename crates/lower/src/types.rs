//! How types of the language become storage: the shape of each type.

use millrace_pipeline::Type;
use millrace_sema::hir::{self, StructId, StructKind, Ty, TyKind};

/// The bits of an `error` at run time.
pub(crate) const ERROR_BITS: u32 = 16;
/// The bits of a plain enumeration at run time.
pub(crate) const ENUM_BITS: u32 = 32;

/// The bits of an `int` that depends on the packet. The specification keeps `int` to compile time, but programs convert
/// to it and back within an expression; more bits than any sum of such conversions needs change nothing there.
pub(crate) const INT_BITS: u32 = 128;

/// What a type is made of at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing: `void`, `bit<0>`.
    Unit,
    /// One slot.
    Scalar(Type),
    /// Members with names: structures and tuples.
    Struct,
    /// A header.
    Header(StructId),
    /// A header union.
    Union(StructId),
    /// So many elements.
    Stack(Ty, u32),
    /// A list; its length is that of its value.
    List,
    /// Known at compile time only: `int`, `string`, `match_kind`.
    CompileTime,
    /// An object: an extern, parser, control, package, table, value set.
    Object,
}

/// The shape of a type.
pub(crate) fn shape(types: &hir::Types, ty: Ty) -> Shape {
    match types.kind(ty) {
        TyKind::Void | TyKind::Bits(0) | TyKind::SignedBits(0) | TyKind::Varbit(0) => Shape::Unit,
        TyKind::Bool => Shape::Scalar(Type::Bool),
        TyKind::Bits(w) | TyKind::SignedBits(w) => Shape::Scalar(Type::Bits(*w)),
        TyKind::Varbit(w) => Shape::Scalar(Type::Varbit(*w)),
        TyKind::Error => Shape::Scalar(Type::Bits(ERROR_BITS)),
        TyKind::Enum(id) => match types.enums[*id].repr {
            Some(repr) => shape(types, repr),
            None => Shape::Scalar(Type::Bits(ENUM_BITS)),
        },
        TyKind::New(id) => shape(types, types.new_types[*id].base),
        TyKind::Tuple(_) => Shape::Struct,
        TyKind::Struct(id) => {
            let s = &types.structs[*id];
            match s.kind {
                StructKind::Struct => Shape::Struct,
                StructKind::Header => Shape::Header(*id),
                StructKind::Union => Shape::Union(*id),
            }
        }
        TyKind::Stack(element, n) => Shape::Stack(*element, *n),
        TyKind::List(_) => Shape::List,
        TyKind::Int | TyKind::String | TyKind::MatchKind | TyKind::Set(_) => Shape::CompileTime,
        TyKind::Extern(..)
        | TyKind::Parser(_)
        | TyKind::Control(_)
        | TyKind::Package(..)
        | TyKind::ApplyResult(_)
        | TyKind::ActionRun(_)
        | TyKind::Table(_)
        | TyKind::ValueSet(_)
        | TyKind::BlockType(..)
        | TyKind::Var(_)
        | TyKind::Unknown => Shape::Object,
    }
}

/// Whether numbers of this type are read in two's complement.
pub(crate) fn is_signed(types: &hir::Types, ty: Ty) -> bool {
    match types.kind(ty) {
        TyKind::SignedBits(_) | TyKind::Int => true,
        TyKind::New(id) => is_signed(types, types.new_types[*id].base),
        TyKind::Enum(id) => types.enums[*id].repr.is_some_and(|repr| is_signed(types, repr)),
        _ => false,
    }
}

/// The width of a type that is one `Bits`, a `bool` counting as one bit; 0 for `bit<0>`, none for other types.
pub(crate) fn bit_width(types: &hir::Types, ty: Ty) -> Option<u32> {
    match shape(types, ty) {
        Shape::Unit => Some(0),
        Shape::Scalar(Type::Bool) => Some(1),
        Shape::Scalar(Type::Bits(w)) => Some(w),
        _ => None,
    }
}

/// The members of a type that has members: name and type.
pub(crate) fn members(types: &hir::Types, ty: Ty) -> Vec<(String, Ty)> {
    match types.kind(ty) {
        TyKind::Tuple(members) => members.iter().enumerate().map(|(i, ty)| (format!("f{i}"), *ty)).collect(),
        TyKind::Struct(id) => types.structs[*id].fields.iter().map(|f| (f.name.clone(), f.ty)).collect(),
        TyKind::New(id) => members(types, types.new_types[*id].base),
        _ => Vec::new(),
    }
}
