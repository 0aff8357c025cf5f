//! Random well-typed P4_16 programs for v1model, grown from the grammar and the types of the language.
//!
//! [`generate`] writes the source of a whole program (headers, stacks, structs, enumerations, functions, a parser, controls
//! with actions and tables, checksums, externs, a deparser), runtime commands for its tables, and packets that its
//! parser has something to do with. The program is right by construction: a tool that refuses it is wrong. It has one
//! meaning: what the specification leaves undefined is written only where docs/semantics.md defines it.
//!
//! The same seed gives the same program everywhere.

mod control;
mod expr;
mod packets;
mod parser;
mod program;
mod scope;
mod stmt;
mod table;
mod types;

pub use program::{Generated, generate};
