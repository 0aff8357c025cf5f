//! Preprocessor, lexer and parser for P4_16, with spans and diagnostics.
//!
//! The front door of Millrace: program text in, syntax tree and findings out. It never fails and never panics: on any
//! input it returns a tree of what could be understood and a diagnostic for everything that could not. It never
//! resolves a name or a type; that is the work of the crate behind it.

pub mod ast;
mod diagnostic;
mod span;

pub use diagnostic::{Diagnostic, Diagnostics, MAX_KEPT, Severity};
pub use span::{
    Expansion, ExpansionId, FileId, Location, MAX_FILE_BYTES, MAX_FILES, SourceFile, SourceMap, Span,
};

/// The greatest height of the syntax tree of one declaration: expressions, types, statements and blocks inside each
/// other. Deeper input is an error.
pub const MAX_NESTING: usize = 256;
