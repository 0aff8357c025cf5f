//! Parsers, controls, packages, and the values that parsers select on.

use super::{Annotation, Block, Declaration, Expr, Name, Parameter, Stmt, Type};
use crate::span::Span;

/// A parser type, control type or package: a name with type parameters and parameters.
#[derive(Clone, Debug)]
pub struct BlockType {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Name,
    /// Type parameters.
    pub type_params: Vec<Name>,
    /// Parameters (constructor parameters for a package).
    pub params: Vec<Parameter>,
    /// Whole declaration.
    pub span: Span,
}

/// `parser P(params)(constructor params) { ... }`
#[derive(Clone, Debug)]
pub struct Parser {
    /// Name, annotations, type parameters and parameters.
    pub header: BlockType,
    /// Constructor parameters.
    pub constructor_params: Vec<Parameter>,
    /// Local constants, variables, instantiations and value sets.
    pub locals: Vec<Declaration>,
    /// States in order.
    pub states: Vec<ParserState>,
    /// Whole declaration.
    pub span: Span,
}

/// `state s { ... transition ...; }`
#[derive(Clone, Debug)]
pub struct ParserState {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Name,
    /// Statements before the transition.
    pub statements: Vec<Stmt>,
    /// The transition; none means `reject`.
    pub transition: Option<Transition>,
    /// Whole state.
    pub span: Span,
}

/// How a parser state ends.
#[derive(Clone, Debug)]
pub enum Transition {
    /// `transition s;`
    To(Name),
    /// `transition select(...) { ... }`
    Select(Select),
}

/// `select(e, ...) { cases }`
#[derive(Clone, Debug)]
pub struct Select {
    /// The selected expressions.
    pub subjects: Vec<Expr>,
    /// Cases in order.
    pub cases: Vec<SelectCase>,
    /// From `select` to the closing brace.
    pub span: Span,
}

/// `keyset: state;`
#[derive(Clone, Debug)]
pub struct SelectCase {
    /// What to match.
    pub keyset: Keyset,
    /// The next state.
    pub state: Name,
    /// Whole case.
    pub span: Span,
}

/// A set of values, in a `select` case or a table entry.
#[derive(Clone, Debug)]
pub struct Keyset {
    /// Which set.
    pub kind: KeysetKind,
    /// Where it is written.
    pub span: Span,
}

/// The kinds of [`Keyset`].
#[derive(Clone, Debug)]
pub enum KeysetKind {
    /// One value, or the name of a value set.
    Value(Expr),
    /// `value &&& mask`
    Mask(Expr, Expr),
    /// `low .. high`, both included
    Range(Expr, Expr),
    /// `default`
    Default,
    /// `_`
    DontCare,
    /// `(k, k, ...)` with at least two members, which are not tuples themselves
    Tuple(Vec<Keyset>),
}

/// `value_set<T>(size) x;`
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Type of the members.
    pub ty: Type,
    /// Most members.
    pub size: Expr,
    /// Name.
    pub name: Name,
    /// Whole declaration.
    pub span: Span,
}

/// `control C(params)(constructor params) { ... apply { ... } }`
#[derive(Clone, Debug)]
pub struct Control {
    /// Name, annotations, type parameters and parameters.
    pub header: BlockType,
    /// Constructor parameters.
    pub constructor_params: Vec<Parameter>,
    /// Local constants, variables, instantiations, actions and tables.
    pub locals: Vec<Declaration>,
    /// The `apply` block.
    pub apply: Block,
    /// Whole declaration.
    pub span: Span,
}
