//! Statements and expressions.

use super::*;
use millrace_syntax::Span;
use num_bigint::BigInt;

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Its place.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `lhs = rhs`.
    Assign {
        /// An l-value.
        lhs: Expr,
        /// Of the same type.
        rhs: Expr,
    },
    /// `lhs op= rhs`: `lhs` is evaluated once.
    AssignOp {
        /// The operation.
        op: BinaryOp,
        /// An l-value.
        lhs: Expr,
        /// The right operand of `op`.
        rhs: Expr,
    },
    /// A call for its effects.
    Call(Box<Call>),
    /// A declaration of a variable.
    Var(VarId, Option<Expr>),
    /// A declaration of an instance (in parser states and apply blocks, where the language allows it).
    Instance(InstanceId),
    /// `if`.
    If {
        /// A `bool`.
        cond: Expr,
        /// When true.
        then: Vec<Stmt>,
        /// When false.
        els: Vec<Stmt>,
    },
    /// `{ ... }`.
    Block(Vec<Stmt>),
    /// `return`.
    Return(Option<Expr>),
    /// `exit`.
    Exit,
    /// `switch (t.apply().action_run)`.
    SwitchAction {
        /// The table.
        table: TableId,
        /// In order.
        cases: Vec<SwitchCase<ActionId>>,
        /// The statements of `default`.
        default: Option<Vec<Stmt>>,
    },
    /// `switch (expression)`.
    SwitchValue {
        /// What is compared.
        value: Expr,
        /// In order; labels are compile-time values of the same type.
        cases: Vec<SwitchCase<Expr>>,
        /// The statements of `default`.
        default: Option<Vec<Stmt>>,
    },
    /// `for (init; cond; update)`.
    For {
        /// Before the first round; variables declared here live in the loop.
        init: Vec<Stmt>,
        /// Before each round.
        cond: Expr,
        /// After each round.
        update: Vec<Stmt>,
        /// The round.
        body: Vec<Stmt>,
    },
    /// `for (var in collection)`.
    ForIn {
        /// The loop variable, declared by the loop or before it.
        var: Expr,
        /// What it runs over.
        collection: ForCollection,
        /// The round.
        body: Vec<Stmt>,
    },
    /// `break`.
    Break,
    /// `continue`.
    Continue,
}

/// What a `for ... in` runs over.
#[derive(Clone, Debug)]
pub enum ForCollection {
    /// `low .. high`, both included, evaluated once.
    Range(Expr, Expr),
    /// The elements of a list, tuple or stack.
    Elements(Expr),
}

/// Labels that share statements (fall-through is resolved: a label without a block is with the next block).
#[derive(Clone, Debug)]
pub struct SwitchCase<L> {
    /// One or more.
    pub labels: Vec<L>,
    /// What they do.
    pub body: Vec<Stmt>,
}

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// Its place.
    pub span: Span,
}

/// What an expression computes.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A number, within the range of its type. Also a value of a serializable enum or new type over numbers that was
    /// folded.
    Int(BigInt),
    /// A truth value.
    Bool(bool),
    /// A string.
    String(String),
    /// A member of `error`: an index in [`Program::errors`].
    ErrorMember(usize),
    /// A member of `match_kind`: an index in [`Program::match_kinds`].
    MatchKind(usize),
    /// A member of an enumeration: an index in [`Enum::members`]. The type names the enumeration.
    EnumMember(usize),
    /// A variable.
    Var(VarId),
    /// An instance (of an extern, parser, control, package or value set); also one made in place.
    Instance(InstanceId),
    /// `this` within an abstract method's definition.
    This,
    /// A table as a value (receiver of `apply`).
    Table(TableId),
    /// A member of a structure or tuple, by index.
    Field(Box<Expr>, usize),
    /// An element of a stack. The index is of a fixed-width or folded number type.
    Index(Box<Expr>, Box<Expr>),
    /// `stack.next` (parsers).
    StackNext(Box<Expr>),
    /// `stack.last` (parsers).
    StackLast(Box<Expr>),
    /// `stack.lastIndex`.
    StackLastIndex(Box<Expr>),
    /// Bits `high` down to `low`. The base may be signed; the result is `bit<high-low+1>`. Also an l-value.
    Slice(Box<Expr>, u32, u32),
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `cond ? then : els`.
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A conversion to the type of this expression, written or implied.
    Cast(Box<Expr>),
    /// A structure, tuple or list with these members, in order; the type tells which. A header made so is valid.
    Aggregate(Vec<Expr>),
    /// A structure with these members in the order in which they are written and evaluated, each with the number of its field. Only where
    /// that order differs from that of the fields and a member calls something.
    InTurn(Vec<(usize, Expr)>),
    /// A stack with these elements; those after are invalid.
    StackLiteral(Vec<Expr>),
    /// An invalid header or header union: `{#}`.
    InvalidHeader,
    /// `h.isValid()`, of a header or a header union.
    IsValid(Box<Expr>),
    /// A call that gives a value.
    Call(Box<Call>),
    /// `t.apply().hit`.
    TableHit(TableId),
    /// `t.apply().miss`.
    TableMiss(TableId),
    /// What an error left: its type is [`TyKind::Unknown`]. Never in a program without errors.
    Unknown,
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`.
    Not,
    /// `~`.
    BitNot,
    /// `-`.
    Neg,
}

/// Operations of two operands. Operand types are equal, except of shifts and concatenations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `|+|`
    AddSat,
    /// `|-|`
    SubSat,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    Shl,
    /// `>>`, arithmetic for signed
    Shr,
    /// `==`, also of structures, headers, stacks, tuples, varbits
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`, short-circuit
    BoolAnd,
    /// `||`, short-circuit
    BoolOr,
    /// `++`
    Concat,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is called.
    pub callee: Callee,
    /// Type arguments, inferred where not written (externs only; functions are instantiated).
    pub type_args: Vec<Ty>,
    /// The arguments in parameter order.
    pub args: Vec<Arg>,
    /// What it returns.
    pub ty: Ty,
    /// Its place.
    pub span: Span,
}

/// An argument.
#[derive(Clone, Debug)]
pub struct Arg {
    /// The direction of the parameter.
    pub direction: Direction,
    /// The type of the parameter, concrete.
    pub ty: Ty,
    /// The value or l-value; none: `_` for an out parameter, or an `@optional` parameter left out.
    pub value: Option<Expr>,
    /// Its place among the arguments as they are written, which is the order in which they are evaluated and copied out. Those that are
    /// not written come last.
    pub turn: usize,
}

/// What is called.
#[derive(Clone, Debug)]
pub enum Callee {
    /// A function.
    Function(FunctionId),
    /// An action, directly.
    Action(ActionId),
    /// An extern function.
    ExternFunction(ExternFunctionId),
    /// A method of an extern object, by index in [`Extern::methods`]. The object is an instance, a parameter of
    /// extern type (`packet_in`), a constructor parameter, or `this`.
    ExternMethod(Box<Expr>, usize),
    /// `apply` of a parser or control: an [`ExprKind::Instance`] or a constructor parameter.
    Apply(Box<Expr>),
    /// `apply` of a table.
    Table(TableId),
    /// `h.setValid()`.
    SetValid(Box<Expr>),
    /// `h.setInvalid()`.
    SetInvalid(Box<Expr>),
    /// `stack.push_front(n)`.
    PushFront(Box<Expr>, u32),
    /// `stack.pop_front(n)`.
    PopFront(Box<Expr>, u32),
}
