//! Annotations.

use super::{Expr, ExprKind, IntLiteral, Name, NamedExpr, Text, UnaryOp};
use crate::span::Span;
use num_bigint::BigInt;

/// `@name`, `@name(tokens)`, `@name[expressions]`, `@name[key = value, ...]`
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Name.
    pub name: Name,
    /// What follows the name.
    pub body: AnnotationBody,
    /// From the `@` to the end of the body.
    pub span: Span,
}

impl Annotation {
    /// The string of a body that is string literals only, which are put together: `@name("x")`, `@name["x"]`.
    pub fn string(&self) -> Option<String> {
        match &self.body {
            AnnotationBody::Tokens(tokens) if !tokens.is_empty() => tokens
                .iter()
                .map(|t| match &t.kind {
                    AnnotationTokenKind::String(s) => Some(&**s),
                    _ => None,
                })
                .collect(),
            AnnotationBody::Expressions(list) => match list.as_slice() {
                [Expr { kind: ExprKind::String(s), .. }] => Some(s.to_string()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The integer of a body that is one integer literal, possibly negated: `@id(5)`, `@priority[-1]`.
    pub fn integer(&self) -> Option<BigInt> {
        match &self.body {
            AnnotationBody::Tokens(tokens) => {
                let (negative, tokens) = match tokens.split_first() {
                    Some((t, rest)) if &*t.text == "-" => (true, rest),
                    _ => (false, tokens.as_slice()),
                };
                match tokens {
                    [AnnotationToken { kind: AnnotationTokenKind::Int(i), .. }] => {
                        Some(if negative { -&i.value } else { i.value.clone() })
                    }
                    _ => None,
                }
            }
            AnnotationBody::Expressions(list) => match list.as_slice() {
                [Expr { kind: ExprKind::Int(i), .. }] => Some(i.value.clone()),
                [Expr { kind: ExprKind::Unary(UnaryOp::Negate, e), .. }] => match &e.kind {
                    ExprKind::Int(i) => Some(-&i.value),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

/// What follows an annotation's name.
#[derive(Clone, Debug)]
pub enum AnnotationBody {
    /// Nothing.
    None,
    /// `(tokens)`: unstructured, parentheses balanced.
    Tokens(Vec<AnnotationToken>),
    /// `[expression, ...]`, also `[]`
    Expressions(Vec<Expr>),
    /// `[key = expression, ...]`
    KeyValues(Vec<NamedExpr>),
}

/// A token of an unstructured annotation body.
#[derive(Clone, Debug)]
pub struct AnnotationToken {
    /// What it is.
    pub kind: AnnotationTokenKind,
    /// As written (strings with quotes and escapes).
    pub text: Text,
    /// Where it is written.
    pub span: Span,
}

/// The kinds of [`AnnotationToken`].
#[derive(Clone, Debug)]
pub enum AnnotationTokenKind {
    /// An identifier or keyword.
    Word,
    /// An integer literal.
    Int(IntLiteral),
    /// A string literal, escapes resolved.
    String(Text),
    /// An operator, bracket or other symbol.
    Symbol,
}
