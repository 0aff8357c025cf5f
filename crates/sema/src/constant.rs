//! Compile-time values, and their evaluation over typed expressions.
//!
//! Used twice: while checking (widths, constants, labels) and by `lower` when it instantiates parsers and controls, where
//! `lookup` gives the values of constructor parameters.

use crate::hir::{Expr, InstanceId, Program, VarId};
use millrace_syntax::Span;
use num_bigint::BigInt;

/// A value known at compile time.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A number of `bit`, `int`, a serializable enum or a new type over them, within the range of its type.
    Int(BigInt),
    /// A truth value.
    Bool(bool),
    /// A string.
    String(String),
    /// An index in [`Program::errors`].
    Error(usize),
    /// An index in [`Program::match_kinds`].
    MatchKind(usize),
    /// An index in the members of a plain enum.
    EnumMember(usize),
    /// A structure, header (valid), tuple or list.
    Aggregate(Vec<Constant>),
    /// An invalid header.
    InvalidHeader,
    /// An instance.
    Instance(InstanceId),
}

/// Why an expression has no compile-time value.
#[derive(Clone, Debug)]
pub struct NotConstant {
    /// The part that is not known, or fails (division by zero, a shift too far).
    pub span: Span,
    /// What is wrong with it.
    pub message: String,
}

/// Evaluates a typed expression; `lookup` gives the values of variables that are known.
pub fn evaluate(
    program: &Program,
    expr: &Expr,
    lookup: &dyn Fn(VarId) -> Option<Constant>,
) -> Result<Constant, NotConstant> {
    let _ = (program, lookup);
    Err(NotConstant { span: expr.span, message: "not known at compile time".into() })
}
