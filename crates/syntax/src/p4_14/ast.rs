//! The syntax tree of a P4_14 program (language version 1.0.5).
//!
//! Like the tree of P4_16 it says what was written and nothing more. Parentheses leave no node. What a name means (a
//! field, a parameter of an action, a field list) is for whoever resolves names: they all are [`Reference`]s.
//!
//! The height of expressions is bounded by [`super::MAX_EXPRESSION_HEIGHT`], that of statements by
//! [`super::MAX_STATEMENT_DEPTH`].

use num_bigint::BigInt;

pub use crate::ast::{Name, Text};
use crate::span::Span;

/// A whole program, includes and macros resolved.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Declarations in order.
    pub declarations: Vec<Declaration>,
}

/// A declaration. All stand at the top level, and may be used before they are declared.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// `header_type T { ... }`
    HeaderType(HeaderType),
    /// `header T x;`, `header T x[n];`, `metadata T x { ... }`
    Instance(Instance),
    /// `field_list L { ... }`
    FieldList(FieldList),
    /// `field_list_calculation C { ... }`
    Calculation(Calculation),
    /// `calculated_field x.f { ... }`
    CalculatedField(CalculatedField),
    /// `parser_value_set S;`
    ValueSet(ValueSet),
    /// `parser p { ... }`
    ParserState(ParserState),
    /// `parser_exception e { ... }`
    ParserException(ParserException),
    /// `counter c { ... }`
    Counter(Counter),
    /// `meter m { ... }`
    Meter(Meter),
    /// `register r { ... }`
    Register(Register),
    /// `action a(...) { ... }`
    Action(Action),
    /// `action_profile p { ... }`
    ActionProfile(ActionProfile),
    /// `action_selector s { ... }`
    ActionSelector(ActionSelector),
    /// `table t { ... }`
    Table(Table),
    /// `control c { ... }`
    Control(Control),
}

impl Declaration {
    /// What is declared; a calculated field has no name of its own.
    pub fn name(&self) -> Option<&Name> {
        Some(match self {
            Self::HeaderType(d) => &d.name,
            Self::Instance(d) => &d.name,
            Self::FieldList(d) => &d.name,
            Self::Calculation(d) => &d.name,
            Self::CalculatedField(_) => return None,
            Self::ValueSet(d) => &d.name,
            Self::ParserState(d) => &d.name,
            Self::ParserException(d) => &d.name,
            Self::Counter(d) => &d.name,
            Self::Meter(d) => &d.name,
            Self::Register(d) => &d.name,
            Self::Action(d) => &d.name,
            Self::ActionProfile(d) => &d.name,
            Self::ActionSelector(d) => &d.name,
            Self::Table(d) => &d.name,
            Self::Control(d) => &d.name,
        })
    }
}

/// `@pragma name words`: a line.
#[derive(Clone, Debug)]
pub struct Pragma {
    /// The first word.
    pub name: Name,
    /// The others, up to the end of the line.
    pub words: Vec<Name>,
    /// The whole line.
    pub span: Span,
}

/// `header_type T { fields { ... } length : e; max_length : e; }`
#[derive(Clone, Debug)]
pub struct HeaderType {
    /// Name.
    pub name: Name,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// The length in bytes of a header whose length varies.
    pub length: Option<Expr>,
    /// The greatest length in bytes.
    pub max_length: Option<Expr>,
    /// Whole declaration.
    pub span: Span,
}

/// `f : 8 (signed, saturating);`
#[derive(Clone, Debug)]
pub struct Field {
    /// Name.
    pub name: Name,
    /// Bits; none for `*`.
    pub width: Option<Expr>,
    /// Two's complement.
    pub signed: bool,
    /// Sums end at the ends of the range.
    pub saturating: bool,
    /// Whole field.
    pub span: Span,
}

/// What sort of instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// `header`
    Header,
    /// `metadata`
    Metadata,
}

/// An instance of a header type.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Header or metadata.
    pub kind: InstanceKind,
    /// The header type.
    pub ty: Name,
    /// Name.
    pub name: Name,
    /// The number of elements of a stack.
    pub size: Option<Expr>,
    /// Initial values of fields of metadata.
    pub initial: Vec<(Name, Expr)>,
    /// Whole declaration.
    pub span: Span,
}

/// A use of something: `x`, `x.f`, `x[i]`, `x[i].f`.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The first name.
    pub name: Name,
    /// In brackets.
    pub index: Option<Index>,
    /// After the dot.
    pub field: Option<Name>,
    /// All of it.
    pub span: Span,
}

impl Reference {
    /// The name, if there is nothing else.
    pub fn plain(&self) -> Option<&Name> {
        (self.index.is_none() && self.field.is_none()).then_some(&self.name)
    }
}

/// Which element of a stack.
#[derive(Clone, Debug)]
pub enum Index {
    /// A number.
    At(Box<Expr>),
    /// `next`
    Next(Span),
    /// `last`
    Last(Span),
}

/// `field_list L { ... }`
#[derive(Clone, Debug)]
pub struct FieldList {
    /// Name.
    pub name: Name,
    /// Entries in order.
    pub entries: Vec<FieldListEntry>,
    /// Whole declaration.
    pub span: Span,
}

/// An entry of a field list.
#[derive(Clone, Debug)]
pub enum FieldListEntry {
    /// A field, a header, or another list.
    Reference(Reference),
    /// A constant.
    Value(Expr),
    /// `payload`
    Payload(Span),
}

/// `field_list_calculation C { input { ... } algorithm : a; output_width : w; }`
#[derive(Clone, Debug)]
pub struct Calculation {
    /// Name.
    pub name: Name,
    /// Field lists; the first is the one used.
    pub inputs: Vec<Name>,
    /// Algorithms; the first is the one used.
    pub algorithms: Vec<Name>,
    /// Bits of the result.
    pub output_width: Option<Expr>,
    /// Whole declaration.
    pub span: Span,
}

/// `calculated_field x.f { verify C if (e); update C; }`
#[derive(Clone, Debug)]
pub struct CalculatedField {
    /// The field.
    pub field: Reference,
    /// What is verified and updated, in order.
    pub rules: Vec<CalculationRule>,
    /// Whole declaration.
    pub span: Span,
}

/// `verify C if (e);` or `update C if (e);`
#[derive(Clone, Debug)]
pub struct CalculationRule {
    /// `update`.
    pub update: bool,
    /// The calculation.
    pub calculation: Name,
    /// When.
    pub condition: Option<Expr>,
    /// Whole rule.
    pub span: Span,
}

/// `parser_value_set S;`
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Pragmas in front.
    pub pragmas: Vec<Pragma>,
    /// Name.
    pub name: Name,
    /// Whole declaration.
    pub span: Span,
}

/// `parser p { ... return ...; }`
#[derive(Clone, Debug)]
pub struct ParserState {
    /// Pragmas in front.
    pub pragmas: Vec<Pragma>,
    /// Name.
    pub name: Name,
    /// What it does.
    pub statements: Vec<ParserStmt>,
    /// Where it goes; none after a syntax error.
    pub ending: Option<Return>,
    /// Whole declaration.
    pub span: Span,
}

/// A statement of a parser.
#[derive(Clone, Debug)]
pub enum ParserStmt {
    /// `extract(h);`
    Extract(Reference, Span),
    /// `set_metadata(m.f, e);`
    Set(Reference, Expr, Span),
}

/// How a parser function ends.
#[derive(Clone, Debug)]
pub enum Return {
    /// `return p;`, `parse_error e;`
    To(Target),
    /// `return select(...) { ... }`
    Select {
        /// What is selected on.
        subjects: Vec<Expr>,
        /// Cases in order.
        cases: Vec<Case>,
        /// From `return` to the brace.
        span: Span,
    },
}

/// Where to go.
#[derive(Clone, Debug)]
pub enum Target {
    /// A parser or control function.
    Named(Name),
    /// `parse_error e`
    Error(Name),
}

/// `1, 2 mask 3: p;`
#[derive(Clone, Debug)]
pub struct Case {
    /// Values; none is `default`.
    pub values: Vec<CaseValue>,
    /// Where to go.
    pub target: Target,
    /// Whole case.
    pub span: Span,
}

/// A value of a case.
#[derive(Clone, Debug)]
pub struct CaseValue {
    /// The value, or the name of a value set.
    pub value: Expr,
    /// After `mask`.
    pub mask: Option<Expr>,
}

/// `parser_exception e { ... return c; }`
#[derive(Clone, Debug)]
pub struct ParserException {
    /// Name.
    pub name: Name,
    /// `set_metadata` statements.
    pub statements: Vec<ParserStmt>,
    /// The control function to go on with; none for `parser_drop`.
    pub target: Option<Name>,
    /// Whole declaration.
    pub span: Span,
}

/// What belongs to a table.
#[derive(Clone, Debug)]
pub enum Binding {
    /// `direct : t;`
    Direct(Name),
    /// `static : t;`
    Static(Name),
}

/// What a counter or meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `packets`
    Packets,
    /// `bytes`
    Bytes,
    /// `packets_and_bytes`
    Both,
}

/// `counter c { ... }`
#[derive(Clone, Debug)]
pub struct Counter {
    /// Name.
    pub name: Name,
    /// What it counts.
    pub unit: Option<Unit>,
    /// Its table.
    pub binding: Option<Binding>,
    /// The number of cells.
    pub instances: Option<Expr>,
    /// Bits of a cell at least.
    pub min_width: Option<Expr>,
    /// Whole declaration.
    pub span: Span,
}

/// `meter m { ... }`
#[derive(Clone, Debug)]
pub struct Meter {
    /// Name.
    pub name: Name,
    /// What it measures.
    pub unit: Option<Unit>,
    /// Where the colour goes.
    pub result: Option<Reference>,
    /// Its table.
    pub binding: Option<Binding>,
    /// The number of cells.
    pub instances: Option<Expr>,
    /// Whole declaration.
    pub span: Span,
}

/// `register r { ... }`
#[derive(Clone, Debug)]
pub struct Register {
    /// Name.
    pub name: Name,
    /// Bits of a cell.
    pub width: Option<Expr>,
    /// A header type whose width a cell has (1.0.2).
    pub layout: Option<Name>,
    /// Its table.
    pub binding: Option<Binding>,
    /// The number of cells.
    pub instances: Option<Expr>,
    /// Two's complement.
    pub signed: bool,
    /// Values end at the ends of the range.
    pub saturating: bool,
    /// Whole declaration.
    pub span: Span,
}

/// `action a(x, y) { ... }`
#[derive(Clone, Debug)]
pub struct Action {
    /// Pragmas in front.
    pub pragmas: Vec<Pragma>,
    /// Name.
    pub name: Name,
    /// Parameters.
    pub params: Vec<Name>,
    /// Statements.
    pub body: Vec<ActionCall>,
    /// Whole declaration.
    pub span: Span,
}

/// `a(e, ...)`: a primitive or compound action.
#[derive(Clone, Debug)]
pub struct ActionCall {
    /// The action.
    pub name: Name,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Whole call.
    pub span: Span,
}

/// `action_profile p { actions { ... } size : e; dynamic_action_selection : s; }`
#[derive(Clone, Debug)]
pub struct ActionProfile {
    /// Name.
    pub name: Name,
    /// Actions.
    pub actions: Vec<Name>,
    /// Most members.
    pub size: Option<Expr>,
    /// The selector.
    pub selector: Option<Name>,
    /// Whole declaration.
    pub span: Span,
}

/// `action_selector s { selection_key : c; }`
#[derive(Clone, Debug)]
pub struct ActionSelector {
    /// Name.
    pub name: Name,
    /// The calculation.
    pub key: Option<Name>,
    /// Whole declaration.
    pub span: Span,
}

/// `table t { ... }`
#[derive(Clone, Debug)]
pub struct Table {
    /// Pragmas in front.
    pub pragmas: Vec<Pragma>,
    /// Name.
    pub name: Name,
    /// What is matched.
    pub reads: Vec<Read>,
    /// Actions.
    pub actions: Vec<Name>,
    /// The profile that has the actions.
    pub profile: Option<Name>,
    /// `size`, `max_size` or `min_size`: the first of these that is given.
    pub size: Option<Expr>,
    /// `support_timeout : true`.
    pub timeout: bool,
    /// `default_action : a(...);`, an extension that programs use: the call, and whether it is `const`.
    pub default: Option<(ActionCall, bool)>,
    /// Whole declaration.
    pub span: Span,
}

/// `x.f mask 3 : exact;`
#[derive(Clone, Debug)]
pub struct Read {
    /// A field or header.
    pub field: Reference,
    /// Which bits count.
    pub mask: Option<Expr>,
    /// How it is matched.
    pub kind: Name,
    /// Whole read.
    pub span: Span,
}

/// `control c { ... }`
#[derive(Clone, Debug)]
pub struct Control {
    /// Name.
    pub name: Name,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Whole declaration.
    pub span: Span,
}

/// A statement of a control function.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// `apply(t);`, `apply(t) { ... }`
    Apply {
        /// The table.
        table: Name,
        /// What is done after it.
        cases: Vec<ApplyCase>,
        /// Whole statement.
        span: Span,
    },
    /// `if (e) { ... } else { ... }`
    If {
        /// The condition.
        condition: Expr,
        /// When it holds.
        then: Vec<Stmt>,
        /// When it does not.
        otherwise: Vec<Stmt>,
        /// Whole statement.
        span: Span,
    },
    /// `c();`
    Call {
        /// The control function.
        control: Name,
        /// Whole statement.
        span: Span,
    },
}

/// `label { ... }` after `apply`.
#[derive(Clone, Debug)]
pub struct ApplyCase {
    /// When: at any of these.
    pub labels: Vec<ApplyLabel>,
    /// Then.
    pub body: Vec<Stmt>,
    /// Whole case.
    pub span: Span,
}

/// When a case after `apply` is run.
#[derive(Clone, Debug)]
pub enum ApplyLabel {
    /// `hit`
    Hit(Span),
    /// `miss`
    Miss(Span),
    /// `default`: another action
    Default(Span),
    /// An action
    Action(Name),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which.
    pub kind: ExprKind,
    /// Where, parentheses included.
    pub span: Span,
}

/// The kinds of [`Expr`].
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `42`, `16'42`
    Int {
        /// The value, never negative.
        value: BigInt,
        /// The width in front; none if it is to be inferred.
        width: Option<u32>,
    },
    /// `true`, `false`
    Bool(bool),
    /// A field, header, parameter, or other name; `latest` and `latest.f` among them
    Reference(Reference),
    /// `current(offset, width)`
    Current(Box<Expr>, Box<Expr>),
    /// `valid(h)`
    Valid(Reference),
    /// `-e`, `~e`, `not e`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b` and so on
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
}

pub use crate::ast::{BinaryOp, UnaryOp};
