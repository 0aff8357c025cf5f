//! Where in a program the checker is, and so which statements and calls are allowed.

use crate::hir::{ControlId, Local, ParserId, Ty, VarId};
use foldhash::HashSet;
use millrace_syntax::Span;

/// What the code belongs to, which decides what it may do (specification, appendix "Restrictions on compile time and run time
/// calls").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CodeContext {
    /// Outside of all.
    #[default]
    TopLevel,
    /// Among the local declarations of a parser.
    ParserLocals,
    /// In a parser state.
    ParserState,
    /// Among the local declarations of a control.
    ControlLocals,
    /// In the `apply` block of a control.
    ControlApply,
    /// In an action.
    Action,
    /// In a function.
    Function,
    /// In the definition of an abstract method.
    AbstractMethod,
    /// In a property of a table.
    Table,
}

impl CodeContext {
    /// For messages: "in ...".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::TopLevel => "at the top level",
            Self::ParserLocals => "among the declarations of a parser",
            Self::ParserState => "in a parser",
            Self::ControlLocals => "among the declarations of a control",
            Self::ControlApply => "in an apply block",
            Self::Action => "in an action",
            Self::Function => "in a function",
            Self::AbstractMethod => "in an abstract method",
            Self::Table => "in a table",
        }
    }

    /// Whether it is part of a parser.
    pub(crate) fn in_parser(self) -> bool {
        matches!(self, Self::ParserLocals | Self::ParserState)
    }
}

/// The surroundings of the code being checked.
#[derive(Debug, Default)]
pub(crate) struct Here {
    /// What the code belongs to.
    pub(crate) context: CodeContext,
    /// What `return` must give; none where it gives nothing.
    pub(crate) ret: Option<Ty>,
    /// Where that type is written.
    pub(crate) result: Option<Span>,
    /// Where the type arguments of the generic type at hand are written.
    pub(crate) instantiated: Option<Span>,
    /// Loops around.
    pub(crate) loops: u32,
    /// The type of `this`.
    pub(crate) this: Option<Ty>,
    /// The control around.
    pub(crate) control: Option<ControlId>,
    /// The parser around.
    pub(crate) parser: Option<ParserId>,
    /// Instances that direct applications make, to be added to the locals of the parser or control around.
    pub(crate) implied: Vec<Local>,
    /// Nested checks of generic declarations with type variables in place of types: what they make is thrown away.
    pub(crate) abstract_depth: u32,
    /// Nested instantiations of generic declarations.
    pub(crate) instantiation_depth: u32,
    /// Local constants that depend on constructor parameters.
    pub(crate) constants: HashSet<VarId>,
    /// Inside the argument of a call.
    pub(crate) in_argument: bool,
    /// Inside the receiver of a size method, which is not evaluated: an index may be out of bounds.
    pub(crate) unevaluated: bool,
    /// The table whose properties are being checked.
    pub(crate) table: Option<crate::hir::TableId>,
}
