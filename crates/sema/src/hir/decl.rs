//! Declarations.

use super::*;
use millrace_syntax::{Span, ast::Annotation};
use std::sync::Arc;

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// None: compile-time known, or given by the control plane (actions).
    None,
    /// `in`.
    In,
    /// `out`.
    Out,
    /// `inout`.
    InOut,
}

/// What a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarKind {
    /// A parameter of a function, action, parser or control.
    Param(Direction),
    /// A constructor parameter.
    CtorParam,
    /// A declared local variable, a loop variable, or a local constant that depends on a constructor parameter.
    Local,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// What it is.
    pub kind: VarKind,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// What it returns.
    pub ret: Ty,
    /// Its code.
    pub body: Vec<Stmt>,
    /// The declaration.
    pub span: Span,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// Its parameters; those without direction come last and are the action data.
    pub params: Vec<VarId>,
    /// Its code.
    pub body: Vec<Stmt>,
    /// The control it is declared in.
    pub control: Option<ControlId>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A parser.
#[derive(Clone, Debug)]
pub struct Parser {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// Its constructor parameters.
    pub ctor_params: Vec<VarId>,
    /// Its local declarations in order.
    pub locals: Vec<Local>,
    /// Its states; a [`StateRef`] is an index here.
    pub states: Vec<ParserState>,
    /// The state named `start`.
    pub start: usize,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct ParserState {
    /// Its name.
    pub name: String,
    /// Its statements (and variables, as [`StmtKind::Var`]).
    pub body: Vec<Stmt>,
    /// Where it goes.
    pub transition: Transition,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// The end of a parser state.
#[derive(Clone, Debug)]
pub enum Transition {
    /// Without a choice. (A state without a transition goes to `Reject`.)
    Goto(StateRef),
    /// By values. No match: error `NoMatch`.
    Select {
        /// What is matched.
        keys: Vec<Expr>,
        /// In order of precedence.
        cases: Vec<SelectCase>,
        /// The `select` expression.
        span: Span,
    },
}

/// One case of a select.
#[derive(Clone, Debug)]
pub struct SelectCase {
    /// One for each key; a lone [`KeySet::ValueSet`] or [`KeySet::Any`] may stand for all keys.
    pub keysets: Vec<KeySet>,
    /// Where to go.
    pub target: StateRef,
    /// The case.
    pub span: Span,
}

/// A set that a key is matched against.
#[derive(Clone, Debug)]
pub enum KeySet {
    /// `_` or `default`.
    Any,
    /// One value, compile-time known or not.
    Value(Expr),
    /// `value &&& mask`.
    Mask(Expr, Expr),
    /// `low .. high`.
    Range(Expr, Expr),
    /// A value set.
    ValueSet(InstanceId),
}

/// A state as a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateRef {
    /// An index in [`Parser::states`].
    State(usize),
    /// `accept`.
    Accept,
    /// `reject`.
    Reject,
}

/// A control.
#[derive(Clone, Debug)]
pub struct Control {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// Its constructor parameters.
    pub ctor_params: Vec<VarId>,
    /// Its local declarations in order.
    pub locals: Vec<Local>,
    /// Its `apply` block.
    pub body: Vec<Stmt>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A local declaration of a parser or control.
#[derive(Clone, Debug)]
pub enum Local {
    /// A variable with its initial value.
    Var(VarId, Option<Expr>),
    /// An instance.
    Instance(InstanceId),
    /// An action (controls only).
    Action(ActionId),
    /// A table (controls only).
    Table(TableId),
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The control it is declared in.
    pub control: Option<ControlId>,
    /// Its key.
    pub keys: Vec<Key>,
    /// Its actions.
    pub actions: Vec<ActionRef>,
    /// `default_action`; none: `NoAction` or nothing.
    pub default_action: Option<ActionRef>,
    /// Whether that is `const`.
    pub const_default: bool,
    /// `psa_empty_group_action` or PNA's: what an entry runs whose group is empty.
    pub empty_group_action: Option<ActionRef>,
    /// Its initial entries.
    pub entries: Vec<Entry>,
    /// Whether they are `const entries`.
    pub const_entries: bool,
    /// `size`.
    pub size: Option<Expr>,
    /// `largest_priority_wins` (default true) of initial entries with priorities.
    pub largest_priority_wins: bool,
    /// All other properties: `implementation`, `counters`, `psa_direct_counter`, ...
    pub properties: Vec<Property>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A field of a table's key.
#[derive(Clone, Debug)]
pub struct Key {
    /// What is matched.
    pub expr: Expr,
    /// The match kind's name: `exact`, `lpm`, ...
    pub match_kind: String,
    /// The key's name for the control plane: `@name`, or the source text of the expression as the specification says,
    /// but as p4c and bmv2 have it where they differ: `h.$valid$` for `h.isValid()`, fields by their `@name`, masks in
    /// the base that they are written in.
    pub name: String,
    /// What stands after the match kind.
    pub annotations: Arc<[Annotation]>,
    /// The element.
    pub span: Span,
}

/// An action in a table's list, as default, or in an entry.
#[derive(Clone, Debug)]
pub struct ActionRef {
    /// Which.
    pub action: ActionId,
    /// Arguments: in the list, those for the parameters with a direction; as default or in an entry, for all.
    pub args: Vec<Arg>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The reference.
    pub span: Span,
}

/// An initial entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// One for each key; a lone [`KeySet::Any`] may stand for all.
    pub keysets: Vec<KeySet>,
    /// What it runs.
    pub action: ActionRef,
    /// `priority = ...`, or the priority that the specification gives it (only for tables where it matters).
    pub priority: Option<Expr>,
    /// Whether this entry alone is `const`.
    pub is_const: bool,
    /// What stands after it.
    pub annotations: Arc<[Annotation]>,
    /// The entry.
    pub span: Span,
}

/// A property of a table that an architecture defines.
#[derive(Clone, Debug)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its value: an expression (often [`ExprKind::Instance`]).
    pub value: Expr,
    /// Whether it is `const`.
    pub is_const: bool,
    /// What stands before it. An instance made in place has them, too.
    pub annotations: Arc<[Annotation]>,
    /// The property.
    pub span: Span,
}

/// A kind of extern object.
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its name.
    pub name: String,
    /// Its methods, all overloads; types are those of the declaration (see [`Call`] for the concrete ones).
    pub methods: Vec<Method>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A method of an extern.
#[derive(Clone, Debug)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// The names and directions of its parameters.
    pub params: Vec<(String, Direction)>,
    /// Whether the program defines it at the instantiation.
    pub is_abstract: bool,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
}

/// An extern function.
#[derive(Clone, Debug)]
pub struct ExternFunction {
    /// Its name.
    pub name: String,
    /// The names and directions of its parameters.
    pub params: Vec<(String, Direction)>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A package type.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The names of its constructor parameters.
    pub params: Vec<String>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A parser type or control type.
#[derive(Clone, Debug)]
pub struct BlockType {
    /// Its name.
    pub name: String,
    /// Whether it is a parser type rather than a control type.
    pub is_parser: bool,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A declared instance, or one made in place as an argument.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name. An instance made in place has none, but for one that is a property of a table and has no `@name`:
    /// that is `table.property`.
    pub name: Option<String>,
    /// Its type: extern, parser, control, package or value set.
    pub ty: Ty,
    /// Constructor arguments in parameter order. For a value set: its size.
    pub args: Vec<CtorArg>,
    /// Which of an extern's constructors: the names of its parameters, in order.
    pub ctor_params: Vec<String>,
    /// Abstract methods that the initialiser defines: name, function. Their bodies may name variables and instances
    /// of the block around the instance.
    pub methods: Vec<(String, FunctionId)>,
    /// What stands before it.
    pub annotations: Arc<[Annotation]>,
    /// The declaration.
    pub span: Span,
}

/// A constructor argument.
#[derive(Clone, Debug)]
pub enum CtorArg {
    /// A compile-time value, or [`ExprKind::Instance`], or [`ExprKind::Var`] of a constructor parameter.
    Expr(Expr),
    /// An `@optional` parameter that was left out.
    Omitted,
}
