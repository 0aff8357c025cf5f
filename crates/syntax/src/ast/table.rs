//! Tables: keys, actions, entries, properties.

use super::{Annotation, Argument, Expr, Keyset, Name, Path};
use crate::span::Span;

/// `table t { ... }`
#[derive(Clone, Debug)]
pub struct Table {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Name,
    /// Properties in order.
    pub properties: Vec<TableProperty>,
    /// Whole declaration.
    pub span: Span,
}

/// One property of a table.
#[derive(Clone, Debug)]
pub struct TableProperty {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Declared `const`.
    pub is_const: bool,
    /// The property's name; for `key`, `actions` and `entries` that word.
    pub name: Name,
    /// What it holds.
    pub value: TablePropertyValue,
    /// Whole property.
    pub span: Span,
}

/// What a table property holds.
#[derive(Clone, Debug)]
pub enum TablePropertyValue {
    /// `key = { ... }`
    Key(Vec<KeyElement>),
    /// `actions = { ... }`
    Actions(Vec<ActionRef>),
    /// `entries = { ... }`
    Entries(Vec<Entry>),
    /// `name = expression;`: `default_action` (a name or a call), `size` and the architecture's own.
    Expr(Expr),
}

/// `e: match_kind @annotations;`
#[derive(Clone, Debug)]
pub struct KeyElement {
    /// The matched expression.
    pub expr: Expr,
    /// The match kind's name.
    pub match_kind: Name,
    /// Annotations, which stand after.
    pub annotations: Vec<Annotation>,
    /// Whole element.
    pub span: Span,
}

/// A reference to an action in a table's `actions` or `entries`.
#[derive(Clone, Debug)]
pub struct ActionRef {
    /// Annotations: before it in an `actions` list.
    pub annotations: Vec<Annotation>,
    /// The action.
    pub action: Path,
    /// Arguments; none when written without parentheses.
    pub args: Option<Vec<Argument>>,
    /// Where it is written, annotations not included.
    pub span: Span,
}

/// `const priority=p: keyset: action(args) @annotations;`
#[derive(Clone, Debug)]
pub struct Entry {
    /// Declared `const`.
    pub is_const: bool,
    /// The `priority = p:` in front.
    pub priority: Option<Expr>,
    /// What it matches: one keyset, or a tuple with one for each key.
    pub keyset: Keyset,
    /// What it does.
    pub action: ActionRef,
    /// Annotations, which stand after.
    pub annotations: Vec<Annotation>,
    /// Whole entry.
    pub span: Span,
}
