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
//! - Sizes behind a name (`T x[n];`, an extension of p4c's) are put into the type (`T[n] x;`).
//! - Unstructured annotation bodies stay token lists.
//! - After a syntax error the tree is what could be saved: damaged parts are [`ExprKind::Invalid`],
//!   [`TypeKind::Invalid`] or left out, and there is at least one error diagnostic.
//!
//! The height of the tree is bounded (see [`crate::MAX_NESTING`]), so recursive readers need no guard of their own.

use std::sync::Arc;

use num_bigint::BigInt;

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
}

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

    /// The annotations in front of the declaration.
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
    /// p4c's) a [`TypeKind::Stack`] of it.
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
    pub states: Vec<State>,
    /// Whole declaration.
    pub span: Span,
}

/// `state s { ... transition ...; }`
#[derive(Clone, Debug)]
pub struct State {
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
    /// Annotations, which stand behind.
    pub annotations: Vec<Annotation>,
    /// Whole element.
    pub span: Span,
}

/// A reference to an action in a table's `actions` or `entries`.
#[derive(Clone, Debug)]
pub struct ActionRef {
    /// Annotations: in front of it in an `actions` list.
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
    /// Annotations, which stand behind.
    pub annotations: Vec<Annotation>,
    /// Whole entry.
    pub span: Span,
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

/// Names one expression of a [`Program`], for side tables.
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

/// An integer literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntLiteral {
    /// The value of the digits, never negative and not reduced to the width.
    pub value: BigInt,
    /// The width and signedness of the prefix (`8w`, `4s`); none for a plain `int`.
    pub width: Option<IntWidth>,
}

/// The `8w` or `4s` in front of an integer.
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
    /// A call as a statement; the expression is an [`ExprKind::Call`]. Direct applications (`P.apply()` on a
    /// type) are calls too.
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
