//! The typed program: what a P4 program says, with every name resolved and every expression typed.
//!
//! It is the only thing that `lower` and `control` see of a program, whichever language version it was written in.
//! What is already done here:
//! - every type is concrete: generic structures, headers, functions and externs are instantiated (a generic function
//!   is one [`Function`] for each use of it with other types);
//! - implicit casts are explicit, structure-valued expressions list their members in declaration order, default
//!   and optional arguments are filled in, named arguments are in parameter order;
//! - global constants and everything the specification calls a compile-time known value that depends on no
//!   constructor parameter is folded to a literal;
//! - `@name`-like annotations stay with their declarations for the control plane.
//!
//! What is not: parsers and controls are not instantiated. Constructor parameters are variables, nested instances are
//! declarations, and [`Program::main`] is the root from which `lower` elaborates.

mod code;
mod decl;
mod types;
mod verify;

pub use code::*;
pub use decl::*;
pub use types::*;
pub use verify::verify;

use cranelift_entity::{PrimaryMap, entity_impl};
use foldhash::HashMap;
use millrace_syntax::ast::ExprId;
use num_bigint::BigInt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )*};
}

ids! {
    /// A variable: a parameter (also a constructor's), or a local.
    VarId = "var";
    /// A function, instantiated.
    FunctionId = "function";
    /// An action.
    ActionId = "action";
    /// A table.
    TableId = "table";
    /// A parser with a body.
    ParserId = "parser";
    /// A control with a body.
    ControlId = "control";
    /// A kind of extern object.
    ExternId = "extern";
    /// An extern function (one overload).
    ExternFunctionId = "extern_function";
    /// A package type.
    PackageId = "package";
    /// A parser type or control type: a signature without a body.
    BlockTypeId = "block_type";
    /// A declared instance, global or local, of an extern, parser, control, package or value set.
    InstanceId = "instance";
}

/// A typed program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// All types.
    pub types: Types,
    /// Every `error` member in order of declaration; `NoError` (core.p4) is usually the first.
    pub errors: Vec<String>,
    /// Every `match_kind` member in order of declaration.
    pub match_kinds: Vec<String>,
    /// All variables.
    pub vars: PrimaryMap<VarId, Var>,
    /// All functions.
    pub functions: PrimaryMap<FunctionId, Function>,
    /// All actions, global and of controls.
    pub actions: PrimaryMap<ActionId, Action>,
    /// All tables.
    pub tables: PrimaryMap<TableId, Table>,
    /// All parsers.
    pub parsers: PrimaryMap<ParserId, Parser>,
    /// All controls.
    pub controls: PrimaryMap<ControlId, Control>,
    /// All extern object types.
    pub externs: PrimaryMap<ExternId, Extern>,
    /// All extern functions.
    pub extern_functions: PrimaryMap<ExternFunctionId, ExternFunction>,
    /// All package types.
    pub packages: PrimaryMap<PackageId, Package>,
    /// All parser types and control types.
    pub block_types: PrimaryMap<BlockTypeId, BlockType>,
    /// All instances.
    pub instances: PrimaryMap<InstanceId, Instance>,
    /// The instances at the top level, in order.
    pub globals: Vec<InstanceId>,
    /// The instance named `main` (a package), if there is one.
    pub main: Option<InstanceId>,
    /// Type declarations at the top level in order, for tools that list them (P4Info).
    pub type_decls: Vec<Ty>,
    /// The values of the expressions in structured annotations, `@a[expression, key = expression]`.
    pub annotation_values: HashMap<ExprId, crate::Constant>,
    /// The constants at the top level that are numbers, for unstructured annotations that name them.
    pub constants: HashMap<String, BigInt>,
}
