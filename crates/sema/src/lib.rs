//! Names, types, generics and constant evaluation: from the syntax tree to the typed program.

mod constant;
pub mod hir;

pub use constant::{Constant, NotConstant, evaluate};
