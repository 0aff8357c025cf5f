//! Expressions, literals and operators.

use super::{Name, Path, Text, Type};
use crate::span::Span;
use num_bigint::BigInt;

/// Names one expression of a [`Program`](super::Program), for side tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which expression.
    pub kind: ExprKind,
    /// Where it is written, parentheses around it included.
    pub span: Span,
    /// Unique in its program.
    pub id: ExprId,
}

/// The kinds of [`Expr`].
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer literal
    Int(IntLiteral),
    /// `true`, `false`
    Bool(bool),
    /// A string literal, escapes resolved
    String(Text),
    /// `...`: the default value of whatever stands here
    Dots,
    /// `this`
    This,
    /// The name of a value or of a type
    Name(Path),
    /// A type that is not a plain name, before a dot: `error`, `C<T>`
    Type(Box<Type>),
    /// `e.member`
    Member(Box<Expr>, Name),
    /// `e[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `e[high:low]`
    Slice {
        /// What is sliced.
        base: Box<Expr>,
        /// The most significant bit.
        high: Box<Expr>,
        /// The least significant bit.
        low: Box<Expr>,
    },
    /// `e[low+:width]`
    PlusSlice {
        /// What is sliced.
        base: Box<Expr>,
        /// The least significant bit.
        low: Box<Expr>,
        /// The number of bits.
        width: Box<Expr>,
    },
    /// `f(args)`, `f<T>(args)`: a function, method, action, table application or constructor call
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// Explicit type arguments.
        type_args: Vec<Type>,
        /// Arguments.
        args: Vec<Argument>,
    },
    /// `(T) e`
    Cast(Box<Type>, Box<Expr>),
    /// `!e`, `~e`, `-e`, `+e`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b` and so on
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `condition ? then : otherwise`
    Conditional {
        /// The condition.
        condition: Box<Expr>,
        /// The value when it holds.
        then: Box<Expr>,
        /// The value when it does not.
        otherwise: Box<Expr>,
    },
    /// `{ a, b }`; the last element may be [`Dots`](ExprKind::Dots)
    List(Vec<Expr>),
    /// `{ f = a, g = b, ... }`
    Struct {
        /// The fields given.
        fields: Vec<NamedExpr>,
        /// The `...` at the end: the other fields get their defaults.
        dots: Option<Span>,
    },
    /// `{#}`
    InvalidHeader,
    /// Damaged by a syntax error, which was reported
    Invalid,
}

/// `name = e` in a structure-valued expression or a structured annotation.
#[derive(Clone, Debug)]
pub struct NamedExpr {
    /// Name.
    pub name: Name,
    /// Value.
    pub value: Expr,
}

/// One argument of a call, constructor call or action reference.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The parameter's name, for `name = e`.
    pub name: Option<Name>,
    /// The value; none for `_`.
    pub value: Option<Expr>,
    /// Whole argument.
    pub span: Span,
}

/// An integer literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntLiteral {
    /// The value of the digits, never negative and not reduced to the width.
    pub value: BigInt,
    /// The width and signedness of the prefix (`8w`, `4s`); none for a plain `int`.
    pub width: Option<IntWidth>,
    /// The base that it is written in: 2, 8, 10 or 16.
    pub radix: u32,
}

/// The `8w` or `4s` before an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntWidth {
    /// Bits.
    pub bits: u32,
    /// `s`: two's complement.
    pub signed: bool,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `-`
    Negate,
    /// `+`
    Plus,
}

impl UnaryOp {
    /// As written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Not => "!",
            Self::Complement => "~",
            Self::Negate => "-",
            Self::Plus => "+",
        }
    }
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `|+|`
    SatAdd,
    /// `|-|`
    SatSub,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `++`
    Concat,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl BinaryOp {
    /// As written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Add => "+",
            Self::Sub => "-",
            Self::SatAdd => "|+|",
            Self::SatSub => "|-|",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::Concat => "++",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::BitAnd => "&",
            Self::BitXor => "^",
            Self::BitOr => "|",
            Self::And => "&&",
            Self::Or => "||",
        }
    }
}
