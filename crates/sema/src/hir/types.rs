//! Types, interned: equal types have equal [`Ty`]s.

use super::*;
use foldhash::HashMap;
use millrace_syntax::{Span, ast::Annotation};
use num_bigint::BigInt;
use std::sync::Arc;

/// A type, an index in [`Types`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ty(u32);
entity_impl!(Ty, "ty");

/// The shape of a type. Typedefs are gone; `type` declarations (new types) stay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TyKind {
    /// `void`.
    Void,
    /// `bool`.
    Bool,
    /// `string`.
    String,
    /// `error`.
    Error,
    /// `match_kind`.
    MatchKind,
    /// `int`: a compile-time number of any size.
    Int,
    /// `bit<W>`. W may be 0.
    Bits(u32),
    /// `int<W>`. W may be 0.
    SignedBits(u32),
    /// `varbit<W>`.
    Varbit(u32),
    /// `tuple<...>`.
    Tuple(Vec<Ty>),
    /// `list<T>`.
    List(Ty),
    /// `T[n]`: a stack of headers or header unions.
    Stack(Ty, u32),
    /// A `struct`, `header` or `header_union`, instantiated: equal only to itself.
    Struct(StructId),
    /// An `enum`, plain or serializable.
    Enum(EnumId),
    /// `type T name`: distinct from T.
    New(NewTypeId),
    /// `set<T>`: the type of keysets.
    Set(Ty),
    /// An extern object, instantiated with types.
    Extern(ExternId, Vec<Ty>),
    /// A parser, by its declaration.
    Parser(ParserId),
    /// A control, by its declaration.
    Control(ControlId),
    /// A package, instantiated with types.
    Package(PackageId, Vec<Ty>),
    /// The result of applying a table: `hit`, `miss`, `action_run`.
    ApplyResult(TableId),
    /// The type of `action_run`.
    ActionRun(TableId),
    /// A table as a value (`t` in `t.apply()`).
    Table(TableId),
    /// A value set over T.
    ValueSet(Ty),
    /// A declared parser type or control type, instantiated with types: the type of a parameter that takes any parser
    /// or control of that signature.
    BlockType(BlockTypeId, Vec<Ty>),
    /// A type variable, bound or not, by number. Only while a program is checked: never in what a finished program's
    /// parsers, controls and functions hold.
    Var(u32),
    /// `_` given for an argument, or a type that an error left unknown: fits anything, silently.
    Unknown,
}

/// An instantiated structure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StructId(u32);
entity_impl!(StructId, "struct");

/// An enumeration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnumId(u32);
entity_impl!(EnumId, "enum");

/// A new type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NewTypeId(u32);
entity_impl!(NewTypeId, "newtype");

/// All types of a program.
#[derive(Clone, Debug, Default)]
pub struct Types {
    kinds: PrimaryMap<Ty, TyKind>,
    index: HashMap<TyKind, Ty>,
    /// Structures.
    pub structs: PrimaryMap<StructId, Struct>,
    /// Enumerations.
    pub enums: PrimaryMap<EnumId, Enum>,
    /// New types.
    pub new_types: PrimaryMap<NewTypeId, NewType>,
}

impl Types {
    /// The type with this shape.
    pub fn intern(&mut self, kind: TyKind) -> Ty {
        if let Some(&ty) = self.index.get(&kind) {
            return ty;
        }
        let ty = self.kinds.push(kind.clone());
        self.index.insert(kind, ty);
        ty
    }

    /// The shape of a type.
    pub fn kind(&self, ty: Ty) -> &TyKind {
        &self.kinds[ty]
    }
}

/// What kind of structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StructKind {
    /// `struct`.
    Struct,
    /// `header`.
    Header,
    /// `header_union`.
    Union,
}

/// A structure.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Which of the three.
    pub kind: StructKind,
    /// The declared name.
    pub name: String,
    /// The type arguments it was instantiated with.
    pub args: Vec<Ty>,
    /// The members in order.
    pub fields: Vec<Field>,
    /// What stands before the declaration.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// An enumeration.
#[derive(Clone, Debug)]
pub struct Enum {
    /// The declared name.
    pub name: String,
    /// The underlying type of a serializable one.
    pub repr: Option<Ty>,
    /// The members in order.
    pub members: Vec<EnumMember>,
    /// What stands before the declaration.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A member of an enumeration.
#[derive(Clone, Debug)]
pub struct EnumMember {
    /// Its name.
    pub name: String,
    /// The value that a serializable enum gives it.
    pub value: Option<BigInt>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// `type T name`.
#[derive(Clone, Debug)]
pub struct NewType {
    /// The declared name.
    pub name: String,
    /// T.
    pub base: Ty,
    /// What stands before the declaration.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}
