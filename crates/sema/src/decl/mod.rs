//! Declarations.

mod block;
mod callable;
mod control;
mod entries;
mod externs;
mod instance;
mod key_name;
mod keyset;
mod parameters;
mod parser;
mod properties;
mod table;
mod types;
mod variable;

pub(crate) use externs::same_parameters;
pub(crate) use keyset::has_call;
pub(crate) use parameters::ParamOf;
