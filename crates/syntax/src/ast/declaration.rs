//! Declarations of values, functions and instances, and what all declarations share.

use super::{
    Annotation, Argument, Block, BlockType, Control, Enum, Expr, Name, NameList, Parser, StructType, Table,
    Type, Typedef, ValueSet,
};
use crate::span::Span;

/// Any declaration. Each place in the grammar allows some of them; the parser reports the others.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// `const T x = e;` - anywhere.
    Constant(Constant),
    /// `T x;`, `T x = e;` - in parsers, controls, blocks.
    Variable(Variable),
    /// `extern E { ... }` - top level.
    ExternObject(ExternObject),
    /// `extern T f(...);` - top level.
    ExternFunction(Function),
    /// `T f(...) { ... }` - top level and object initialisers.
    Function(Function),
    /// `action a(...) { ... }` - top level and controls.
    Action(Action),
    /// `parser P(...);` - top level.
    ParserType(BlockType),
    /// `parser P(...) { ... }` - top level.
    Parser(Parser),
    /// `control C(...);` - top level.
    ControlType(BlockType),
    /// `control C(...) { ... }` - top level.
    Control(Control),
    /// `package P(...);` - top level.
    Package(BlockType),
    /// `header`, `header_union` or `struct` - top level.
    Struct(StructType),
    /// `enum E { ... }`, `enum T E { ... }` - top level.
    Enum(Enum),
    /// `typedef T N;`, `type T N;` - top level.
    Typedef(Typedef),
    /// `error { ... }` - top level.
    Errors(NameList),
    /// `match_kind { ... }` - top level.
    MatchKinds(NameList),
    /// `T(args) x;` - top level, parsers, controls, object initialisers.
    Instantiation(Instantiation),
    /// `table t { ... }` - in controls.
    Table(Table),
    /// `value_set<T>(n) x;` - in parsers.
    ValueSet(ValueSet),
}

impl Declaration {
    /// The declared name; none for `error` and `match_kind` lists.
    pub fn name(&self) -> Option<&Name> {
        Some(match self {
            Self::Constant(d) => &d.name,
            Self::Variable(d) => &d.name,
            Self::ExternObject(d) => &d.name,
            Self::ExternFunction(d) | Self::Function(d) => &d.name,
            Self::Action(d) => &d.name,
            Self::ParserType(d) | Self::ControlType(d) | Self::Package(d) => &d.name,
            Self::Parser(d) => &d.header.name,
            Self::Control(d) => &d.header.name,
            Self::Struct(d) => &d.name,
            Self::Enum(d) => &d.name,
            Self::Typedef(d) => &d.name,
            Self::Instantiation(d) => &d.name,
            Self::Table(d) => &d.name,
            Self::ValueSet(d) => &d.name,
            Self::Errors(_) | Self::MatchKinds(_) => return None,
        })
    }

    /// The whole declaration, annotations included.
    pub fn span(&self) -> Span {
        match self {
            Self::Constant(d) => d.span,
            Self::Variable(d) => d.span,
            Self::ExternObject(d) => d.span,
            Self::ExternFunction(d) | Self::Function(d) => d.span,
            Self::Action(d) => d.span,
            Self::ParserType(d) | Self::ControlType(d) | Self::Package(d) => d.span,
            Self::Parser(d) => d.span,
            Self::Control(d) => d.span,
            Self::Struct(d) => d.span,
            Self::Enum(d) => d.span,
            Self::Typedef(d) => d.span,
            Self::Errors(d) | Self::MatchKinds(d) => d.span,
            Self::Instantiation(d) => d.span,
            Self::Table(d) => d.span,
            Self::ValueSet(d) => d.span,
        }
    }

    /// The annotations before the declaration.
    pub fn annotations(&self) -> &[Annotation] {
        match self {
            Self::Constant(d) => &d.annotations,
            Self::Variable(d) => &d.annotations,
            Self::ExternObject(d) => &d.annotations,
            Self::ExternFunction(d) | Self::Function(d) => &d.annotations,
            Self::Action(d) => &d.annotations,
            Self::ParserType(d) | Self::ControlType(d) | Self::Package(d) => &d.annotations,
            Self::Parser(d) => &d.header.annotations,
            Self::Control(d) => &d.header.annotations,
            Self::Struct(d) => &d.annotations,
            Self::Enum(d) => &d.annotations,
            Self::Typedef(d) => &d.annotations,
            Self::Errors(d) | Self::MatchKinds(d) => &d.annotations,
            Self::Instantiation(d) => &d.annotations,
            Self::Table(d) => &d.annotations,
            Self::ValueSet(d) => &d.annotations,
        }
    }
}

/// `const T x = e;`
#[derive(Clone, Debug)]
pub struct Constant {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Declared type.
    pub ty: Type,
    /// Name.
    pub name: Name,
    /// Value.
    pub value: Expr,
    /// Whole declaration.
    pub span: Span,
}

/// `T x;` or `T x = e;`
#[derive(Clone, Debug)]
pub struct Variable {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Declared type.
    pub ty: Type,
    /// Name.
    pub name: Name,
    /// Initial value.
    pub init: Option<Expr>,
    /// Whole declaration.
    pub span: Span,
}

/// `T(args) x;` or `T(args) x = { ... };`
#[derive(Clone, Debug)]
pub struct Instantiation {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// The instantiated type, possibly specialised; for an array of instances (`T(args) x[n];`, an extension of
    /// p4c's) a [`TypeKind::Stack`](super::TypeKind::Stack) of it.
    pub ty: Type,
    /// Constructor arguments.
    pub args: Vec<Argument>,
    /// Name of the instance.
    pub name: Name,
    /// The object initialiser: [`Declaration::Function`]s and [`Declaration::Instantiation`]s that implement
    /// abstract methods. None when there is no `= { ... }`.
    pub initializer: Option<Vec<Declaration>>,
    /// Whole declaration.
    pub span: Span,
}

/// `extern E<T> { ... }`
#[derive(Clone, Debug)]
pub struct ExternObject {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Name,
    /// Type parameters.
    pub type_params: Vec<Name>,
    /// Constructors and methods in order.
    pub methods: Vec<Method>,
    /// Whole declaration.
    pub span: Span,
}

/// A constructor or method of an extern object.
#[derive(Clone, Debug)]
pub struct Method {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Declared `abstract`: implemented by the instance's object initialiser.
    pub is_abstract: bool,
    /// Return type; none for a constructor.
    pub return_type: Option<Type>,
    /// Name; a constructor's is that of the object.
    pub name: Name,
    /// Type parameters.
    pub type_params: Vec<Name>,
    /// Parameters.
    pub params: Vec<Parameter>,
    /// Whole declaration.
    pub span: Span,
}

/// A function with a body, or an extern function without.
#[derive(Clone, Debug)]
pub struct Function {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Return type.
    pub return_type: Type,
    /// Name.
    pub name: Name,
    /// Type parameters.
    pub type_params: Vec<Name>,
    /// Parameters.
    pub params: Vec<Parameter>,
    /// The body; none for an extern function.
    pub body: Option<Block>,
    /// Whole declaration.
    pub span: Span,
}

/// `action a(params) { ... }`
#[derive(Clone, Debug)]
pub struct Action {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Name,
    /// Parameters; those without direction come from the control plane.
    pub params: Vec<Parameter>,
    /// Body.
    pub body: Block,
    /// Whole declaration.
    pub span: Span,
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// Directionless.
    #[default]
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

/// `inout T x = default`
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Annotations (`@optional` among them).
    pub annotations: Vec<Annotation>,
    /// Direction.
    pub direction: Direction,
    /// Type.
    pub ty: Type,
    /// Name.
    pub name: Name,
    /// Default value.
    pub default: Option<Expr>,
    /// Whole parameter.
    pub span: Span,
}
