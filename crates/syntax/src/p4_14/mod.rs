//! P4_14, language version 1.0.5: the older language, read with the same preprocessor and lexer.
//!
//! As with P4_16 reading never fails and never panics: there is a tree of what could be understood and a diagnostic for
//! everything that could not.
//!
//! ```
//! use millrace_syntax::{Options, p4_14};
//!
//! let parsed = p4_14::parse_text("demo.p4", "header_type t { fields { a : 8; } } header t h;", &Options::default());
//! assert_eq!(parsed.program.declarations.len(), 2);
//! assert!(parsed.diagnostics.is_empty());
//! ```

pub mod ast;
mod parser;

use std::path::Path;

use crate::Options;
use crate::diagnostic::Diagnostics;
use crate::preprocess::{self, Preprocessed};
use crate::span::SourceMap;

/// The greatest height of an expression.
pub const MAX_EXPRESSION_HEIGHT: usize = 24;

/// The most statements inside each other.
pub const MAX_STATEMENT_DEPTH: usize = 48;

/// The most branches of one chain of `if` and `else if`.
pub const MAX_ELSE_IFS: usize = 2000;

/// A P4_14 program as it was read.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree; incomplete when there are errors.
    pub program: ast::Program,
    /// The texts of its spans. File 0 is the program, the others were included.
    pub sources: SourceMap,
    /// What was found wrong.
    pub diagnostics: Diagnostics,
}

impl Parsed {
    /// Reads an embedded file of P4_16 declarations, such as `v1model.p4`, into the same map of sources.
    pub fn library(&mut self, name: &str) -> crate::ast::Program {
        let sources = std::mem::take(&mut self.sources);
        let Preprocessed { tokens, interner, sources, diagnostics } =
            preprocess::preprocess_embedded(name, sources);
        self.sources = sources;
        self.diagnostics.extend(diagnostics);
        crate::parser::parse(tokens, &interner, &mut self.diagnostics)
    }
}

/// Reads a program from a file. That the file cannot be read is a diagnostic too.
pub fn parse_path(path: impl AsRef<Path>, options: &Options) -> Parsed {
    parse(preprocess::preprocess_file(path.as_ref().to_owned(), options))
}

/// Reads a program from a text. Its name shows in diagnostics, and quoted includes are looked for next to it.
pub fn parse_text(name: &str, text: &str, options: &Options) -> Parsed {
    parse(preprocess::preprocess_text(name, text, options))
}

fn parse(input: Preprocessed) -> Parsed {
    let Preprocessed { tokens, interner, sources, mut diagnostics } = input;
    // Where tokens are missing or wrong, errors of the grammar only follow from that.
    let mut followed = Diagnostics::new();
    let found = if diagnostics.has_errors() { &mut followed } else { &mut diagnostics };
    let program = parser::parse(tokens, &interner, found);
    Parsed { program, sources, diagnostics }
}
