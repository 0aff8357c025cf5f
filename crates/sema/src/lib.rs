//! Names, types, generics and constant evaluation: from the syntax tree to the typed program.
//!
//! [`check`] takes a tree and gives a [`hir::Program`] together with everything that was found wrong. The program may be
//! used only when no finding is an error. It never panics, whatever the tree; it never reads a file; and it knows no
//! architecture beyond what the program's own text declares.

mod annotation;
mod check;
mod codes;
mod constant;
mod context;
mod control_plane;
mod decl;
mod declarations;
mod effort;
mod elaboration;
mod expr;
mod flow;
mod fold;
pub mod hir;
pub mod limits;
mod repeated;
mod scope;
mod stmt;
mod types;
mod wording;

pub use check::{Checked, check};
pub use constant::{Constant, NotConstant, evaluate};
pub use limits::*;
