//! P4_14 programs as P4_16 programs for v1model, so that nothing after the checker knows which language a program was
//! written in.
//!
//! [`translate`] takes the tree of a P4_14 program and the tree of `v1model.p4`, and gives the tree of a P4_16 program
//! that means the same, with the places of the original: what is found in it later is shown where the user wrote it.
//! It reports itself what is wrong in terms of P4_14. It never reads a file, and never panics.
//!
//! How P4_14 is put into P4_16:
//!
//! - Headers become members of one structure, metadata of another; what P4_14 calls `standard_metadata` and
//!   `intrinsic_metadata` is v1model's `standard_metadata`.
//! - Control functions and the actions that actions call are put where they are called. So a table or counter that
//!   several places use stays one.
//! - Widths are made equal by casts; saturation and signedness come out of the types of fields.
//! - The deparser follows from the parse graph.
//! - Parser exceptions end the parser with an error; ingress begins with what the program says about it.
//! - Names for the control plane are those of the program, without the name of a control in front.
//!
//! docs/semantics.md lists what the P4_14 specification leaves open, and what is done then.

mod actions;
mod checksum;
mod codes;
mod constant;
mod control;
mod deparser;
mod expr;
mod field_list;
mod field_ref;
mod hash;
mod model;
mod names;
mod objects;
mod parser;
mod primitive;
mod reach;
mod stateful;
mod table;
mod translate;
mod tree;
mod value;

use millrace_syntax::{Diagnostics, ast, p4_14};

/// The file that has to be translated against.
pub const LIBRARY: &str = "v1model.p4";

/// A translated program.
#[derive(Clone, Debug)]
pub struct Translated {
    /// The P4_16 program; usable only when no finding is an error.
    pub program: ast::Program,
    /// What was found, in order.
    pub diagnostics: Diagnostics,
}

/// Translates a program. `library` is the tree of [`LIBRARY`].
pub fn translate(program: &p4_14::ast::Program, library: ast::Program) -> Translated {
    translate::Translator::new(program, &library).finish(library)
}
