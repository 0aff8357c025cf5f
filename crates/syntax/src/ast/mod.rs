//! The syntax tree of a P4_16 program (language version 1.2.5).
//!
//! The tree says what was written and nothing more: no name is resolved, no type is known. The parser keeps to a few
//! simplifications that readers may rely on:
//!
//! - Parentheses leave no node; an expression's span includes them.
//! - `typedef struct S { ... } T;` becomes two declarations, the structure and the `typedef`.
//! - Names of types and of values look the same in expressions ([`ExprKind::Name`]): `T.member`, `T(args)` and
//!   `P.apply()` are [`ExprKind::Member`] and [`ExprKind::Call`] on a name. Whoever resolves names knows which it
//!   is. Only what cannot be a value's name (`error` and `C<T>` before a dot) is an [`ExprKind::Type`].
//! - Sizes after a name (`T x[n];`, an extension of p4c's) are put into the type (`T[n] x;`).
//! - Unstructured annotation bodies stay token lists.
//! - After a syntax error the tree is what could be saved: damaged parts are [`ExprKind::Invalid`],
//!   [`TypeKind::Invalid`] or left out, and there is at least one error diagnostic.
//!
//! The height of the tree is bounded (see [`Program::height`]), so recursive readers need no guard of their own.

mod annotation;
mod blocks;
mod declaration;
mod expression;
mod statement;
mod table;
mod types;

pub use annotation::*;
pub use blocks::*;
pub use declaration::*;
pub use expression::*;
pub use statement::*;
pub use table::*;
pub use types::*;

use std::sync::Arc;

use crate::span::Span;

/// Program text that is shared between its uses.
pub type Text = Arc<str>;

/// A name as written at one place.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name's text.
    pub text: Text,
    /// Where it is written.
    pub span: Span,
}

impl Name {
    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A use of a name, possibly with the leading dot that looks it up in the top-level scope (`.x`).
#[derive(Clone, Debug)]
pub struct Path {
    /// Written with a leading dot.
    pub absolute: bool,
    /// The name.
    pub name: Name,
}

/// A whole program, includes and macros resolved.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Top-level declarations in order.
    pub declarations: Vec<Declaration>,
    /// The number of [`ExprId`]s handed out: every id in the tree is below it.
    pub expr_count: u32,
    /// The greatest height of the tree of a declaration, at most [`crate::MAX_LEVELS`]. Above [`crate::MAX_NESTING`] it is
    /// a long chain of operators or of `else if`, and recursion over it needs a stack of its own.
    pub height: usize,
}
