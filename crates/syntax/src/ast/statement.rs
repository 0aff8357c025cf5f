//! Statements.

use super::{Annotation, BinaryOp, Constant, Expr, Variable};
use crate::span::Span;

/// `{ statements }`
#[derive(Clone, Debug)]
pub struct Block {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Statements and declarations in order.
    pub statements: Vec<Stmt>,
    /// From brace to brace.
    pub span: Span,
}

/// A statement, or a declaration among statements.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Which statement.
    pub kind: StmtKind,
    /// Whole statement.
    pub span: Span,
}

/// The kinds of [`Stmt`].
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `;`
    Empty,
    /// `target = value;`, or with an operator `target op= value;`
    Assign {
        /// The operator of a compound assignment.
        op: Option<BinaryOp>,
        /// The l-value.
        target: Expr,
        /// The value.
        value: Expr,
    },
    /// A call as a statement; the expression is an [`ExprKind::Call`](super::ExprKind::Call). Direct applications
    /// (`P.apply()` on a type) are calls too.
    Call(Expr),
    /// `if (condition) then else otherwise`
    If {
        /// The condition.
        condition: Expr,
        /// What happens when it holds.
        then: Box<Stmt>,
        /// What happens when it does not.
        otherwise: Option<Box<Stmt>>,
    },
    /// `{ ... }`
    Block(Block),
    /// `return;`, `return e;`
    Return(Option<Expr>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `exit;`
    Exit,
    /// `switch (subject) { cases }`
    Switch {
        /// What is switched on.
        subject: Expr,
        /// Cases in order.
        cases: Vec<SwitchCase>,
    },
    /// `for (init; condition; update) body`
    For(Box<ForLoop>),
    /// `for (T x in collection) body`
    ForIn(Box<ForInLoop>),
    /// A variable.
    Variable(Variable),
    /// A constant.
    Constant(Constant),
}

/// `label: { ... }`, or without a block a label that falls through to the next
#[derive(Clone, Debug)]
pub struct SwitchCase {
    /// The label; none for `default`.
    pub label: Option<Expr>,
    /// Where the label is written.
    pub label_span: Span,
    /// The block; none to fall through.
    pub body: Option<Block>,
}

/// `for (init; condition; update) body`
#[derive(Clone, Debug)]
pub struct ForLoop {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Variables, assignments and calls before the loop.
    pub init: Vec<Stmt>,
    /// Whether to go on.
    pub condition: Expr,
    /// Assignments and calls after each turn.
    pub update: Vec<Stmt>,
    /// The body.
    pub body: Stmt,
}

/// `for (T x in collection) body`
#[derive(Clone, Debug)]
pub struct ForInLoop {
    /// Annotations of the loop.
    pub annotations: Vec<Annotation>,
    /// The loop's variable, without initial value.
    pub variable: Variable,
    /// What it runs over.
    pub collection: ForCollection,
    /// The body.
    pub body: Stmt,
}

/// What a `for ... in` loop runs over.
#[derive(Clone, Debug)]
pub enum ForCollection {
    /// A header stack, list or other collection.
    Expr(Expr),
    /// `low .. high`, both included.
    Range(Expr, Expr),
}
