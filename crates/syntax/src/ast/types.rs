//! Types as written, and the declarations of types.

use super::{Annotation, Expr, Name, Path};
use crate::span::Span;

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// Which type.
    pub kind: TypeKind,
    /// Where it is written.
    pub span: Span,
}

/// The kinds of [`Type`].
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `void`
    Void,
    /// `int`: integers of any size
    Int,
    /// `bit<W>`; none for `bit`, which is `bit<1>`
    Bits(Option<Box<Expr>>),
    /// `int<W>`
    SignedBits(Box<Expr>),
    /// `varbit<W>`
    Varbit(Box<Expr>),
    /// `_` as a type argument: to be inferred
    DontCare,
    /// A named type, type variable included
    Name(Path),
    /// `T<A, ...>`
    Specialized(Path, Vec<Type>),
    /// `T[n]`
    Stack(Box<Type>, Box<Expr>),
    /// `tuple<A, ...>`
    Tuple(Vec<Type>),
    /// `list<T>`
    List(Box<Type>),
    /// Damaged by a syntax error, which was reported
    Invalid,
}

/// Which of the three types with fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructKind {
    /// `struct`
    Struct,
    /// `header`
    Header,
    /// `header_union`
    HeaderUnion,
}

/// `struct S<T> { ... }`, `header H { ... }`, `header_union U { ... }`
#[derive(Clone, Debug)]
pub struct StructType {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Which of the three.
    pub kind: StructKind,
    /// Name.
    pub name: Name,
    /// Type parameters.
    pub type_params: Vec<Name>,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// Whole declaration.
    pub span: Span,
}

/// `T f;`
#[derive(Clone, Debug)]
pub struct Field {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Type.
    pub ty: Type,
    /// Name.
    pub name: Name,
    /// Whole field.
    pub span: Span,
}

/// `enum E { A, B }` or, serializable, `enum bit<8> E { A = 1, B = 2 }`
#[derive(Clone, Debug)]
pub struct Enum {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// The underlying type of a serializable enumeration.
    pub underlying: Option<Type>,
    /// Name.
    pub name: Name,
    /// Members in order.
    pub members: Vec<EnumMember>,
    /// Whole declaration.
    pub span: Span,
}

/// `A` or `A = e`
#[derive(Clone, Debug)]
pub struct EnumMember {
    /// Name.
    pub name: Name,
    /// Value.
    pub value: Option<Expr>,
}

/// `typedef T N;` or `type T N;`
#[derive(Clone, Debug)]
pub struct Typedef {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// `type`: a new type rather than another name.
    pub is_new: bool,
    /// The type named.
    pub ty: Type,
    /// Name.
    pub name: Name,
    /// Whole declaration.
    pub span: Span,
}

/// `error { A, B }` or `match_kind { a, b }`
#[derive(Clone, Debug)]
pub struct NameList {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// The names declared.
    pub names: Vec<Name>,
    /// Whole declaration.
    pub span: Span,
}
