//! Files of TOML that are described by their sections and keys.
//!
//! A kind of file is a list of [`Section`]s: for each key its form, what holds without it, its limit and what it means. Three things
//! come from that one list, so that they cannot disagree: the reader ([`Table`]), the error for an unknown key, and the reference in
//! the documentation ([`reference()`]).
//!
//! Whoever reads a file gives [`read_document`] a function. It makes what it wants of the tables and leaves every mistake as a
//! [`Finding`] with its bytes; at the end all are [`Problems`] with file, line and caret. What is no TOML at all does not end the
//! reading: the rest is looked at as far as that tells something.
//!
//! [`quantity`] has numbers with units, exact. Readers of other formats use [`Findings`] too, so that their errors look the same.

#![forbid(unsafe_code)]

mod document;
mod limits;
mod problem;
pub mod quantity;
mod reference;
mod section;
mod table;
mod text;

pub use document::read_document;
pub use limits::*;
pub use problem::{Finding, Findings, Kind, Place, Problem, Problems, nearest, quoted};
pub use quantity::Measure;
pub use reference::reference;
pub use section::{Absent, Form, Key, Section};
pub use table::{Placed, Table, is_name, words};
pub use text::{Out, toml_string};
