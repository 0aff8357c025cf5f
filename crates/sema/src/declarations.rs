//! The syntax of the declarations of a program, kept to read signatures and generic bodies again where they are used.

use crate::hir::*;
use crate::scope::Mark;
use foldhash::HashMap;
use millrace_syntax::{Span, ast};

/// A declaration and the place it sees names from.
#[derive(Debug)]
pub(crate) struct Source<'a, T> {
    /// The syntax.
    pub(crate) ast: &'a T,
    /// Its place.
    pub(crate) mark: Mark,
}

impl<T> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}

/// A structure with or without type parameters.
#[derive(Debug)]
pub(crate) struct StructSource<'a> {
    /// The declaration.
    pub(crate) source: Source<'a, ast::StructType>,
    /// What was made of it already.
    pub(crate) instances: HashMap<Vec<Ty>, Ty>,
}

/// A function with or without type parameters.
#[derive(Debug)]
pub(crate) struct FunctionSource<'a> {
    /// The declaration.
    pub(crate) source: Source<'a, ast::Function>,
    /// What was made of it already.
    pub(crate) instances: HashMap<Vec<Ty>, FunctionId>,
    /// Whether its body is being checked.
    pub(crate) open: bool,
}

/// A parser or a control.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlockAst<'a> {
    /// A parser.
    Parser(&'a ast::Parser),
    /// A control.
    Control(&'a ast::Control),
}

impl<'a> BlockAst<'a> {
    /// Name, type parameters and parameters.
    pub(crate) fn header(self) -> &'a ast::BlockType {
        match self {
            Self::Parser(p) => &p.header,
            Self::Control(c) => &c.header,
        }
    }

    /// Constructor parameters.
    pub(crate) fn constructor_params(self) -> &'a [ast::Parameter] {
        match self {
            Self::Parser(p) => &p.constructor_params,
            Self::Control(c) => &c.constructor_params,
        }
    }
}

/// A parser or control with type parameters.
#[derive(Clone, Debug)]
pub(crate) struct BlockSource<'a> {
    /// The declaration.
    pub(crate) ast: BlockAst<'a>,
    /// Its place.
    pub(crate) mark: Mark,
    /// What was made of it already.
    pub(crate) instances: HashMap<Vec<Ty>, Ty>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Declarations<'a> {
    /// Structures.
    pub(crate) structs: Vec<StructSource<'a>>,
    /// Which declaration a structure was made of; none for the types of structure-valued expressions without a name.
    pub(crate) struct_origin: HashMap<StructId, usize>,
    /// Structures without a declaration by their members.
    pub(crate) records: HashMap<Vec<(String, Ty)>, Ty>,
    /// Functions.
    pub(crate) functions: Vec<FunctionSource<'a>>,
    /// Parsers and controls with type parameters.
    pub(crate) blocks: Vec<BlockSource<'a>>,
    /// Parsers by what was made of them.
    pub(crate) parsers: HashMap<ParserId, Source<'a, ast::Parser>>,
    /// Controls by what was made of them.
    pub(crate) controls: HashMap<ControlId, Source<'a, ast::Control>>,
    /// Parsers whose bodies are being checked.
    pub(crate) open_parsers: Vec<ParserId>,
    /// Controls whose bodies are being checked.
    pub(crate) open_controls: Vec<ControlId>,
    /// Actions.
    pub(crate) actions: HashMap<ActionId, Source<'a, ast::Action>>,
    /// Extern objects.
    pub(crate) externs: HashMap<ExternId, Source<'a, ast::ExternObject>>,
    /// The methods of an extern object as numbered in [`Extern::methods`]: indices in the declaration.
    pub(crate) methods: HashMap<ExternId, Vec<usize>>,
    /// Extern functions.
    pub(crate) extern_functions: HashMap<ExternFunctionId, Source<'a, ast::Function>>,
    /// Packages.
    pub(crate) packages: HashMap<PackageId, Source<'a, ast::BlockType>>,
    /// Parser types and control types.
    pub(crate) block_types: HashMap<BlockTypeId, Source<'a, ast::BlockType>>,
    /// Where each error is declared.
    pub(crate) error_spans: Vec<Span>,
    /// Where each match kind is declared.
    pub(crate) match_kind_spans: Vec<Span>,
}
