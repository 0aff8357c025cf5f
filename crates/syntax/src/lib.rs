//! Preprocessor, lexer and parsers for P4_16 and ([`p4_14`]) P4_14, with spans and diagnostics.
//!
//! The front door of Millrace: program text in, syntax tree and findings out. It never fails and never panics: on any
//! input it returns a tree of what could be understood and a diagnostic for everything that could not. It never
//! resolves a name or a type; that is the work of the next crate.
//!
//! ```
//! use millrace_syntax::{Options, parse_text, render};
//!
//! let parsed = parse_text("demo.p4", "const bit<8> x = 8w0xFF\nconst bit<8> y = x;", &Options::default());
//! assert_eq!(parsed.program.declarations.len(), 2);
//! let first = parsed.diagnostics.iter().next().unwrap();
//! assert!(render(first, &parsed.sources, false).contains("demo.p4:1:24"));
//! ```

pub mod ast;
mod builtin;
mod cursor;
mod diagnostic;
mod file;
mod intern;
mod lexer;
mod literal;
pub mod p4_14;
mod parser;
mod preprocess;
mod render;
mod similar;
mod span;
mod token;
mod unfold;

use std::path::{Path, PathBuf};

pub use builtin::{builtin_include, builtin_includes};
pub use diagnostic::{Diagnostic, Diagnostics, MAX_KEPT, Severity};
pub use file::{read_file, read_text};
pub use literal::{MAX_LITERAL_DIGITS, MAX_LITERAL_WIDTH};
pub use preprocess::{
    MAX_ARGUMENT_TOKENS, MAX_EXPANSION_DEPTH, MAX_EXPANSIONS, MAX_INCLUDE_DEPTH, MAX_MADE_BYTES, MAX_TOKENS,
    MAX_TOTAL_BYTES,
};
pub use render::{render, render_lines};
pub use similar::nearest;
pub use span::{
    Expansion, ExpansionId, FileId, Location, MAX_FILE_BYTES, MAX_FILES, SourceFile, SourceMap, Span,
};
pub use unfold::{Unfolded, unfold_path};

/// The greatest number of expressions, types, statements and blocks inside each other in one declaration. Deeper input
/// is an error. With this height, recursion over the tree fits a thread's usual 2 MiB of stack even without
/// optimisation, when it takes less than 16 KiB a level; [`ast::Program::height`] says whether a tree is higher.
pub const MAX_NESTING: usize = 128;

/// The greatest height of the syntax tree of one declaration when the left operands of operators and the branches of an
/// `else if` count too, which [`MAX_NESTING`] leaves out: to who writes them, they stand one after the other.
pub const MAX_LEVELS: usize = 3000;

/// Most bytes of a name.
pub const MAX_NAME_BYTES: usize = 1024;

/// How to read a program.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders to look for included files in, in order; the embedded files come after them.
    pub include_dirs: Vec<PathBuf>,
    /// Macros to define before the program: name (with parameters, if any) and body.
    pub defines: Vec<(String, String)>,
    /// Macros that are not there, whoever defines them before the program.
    pub undefines: Vec<String>,
    /// Whether the predefined macros (`__MILLRACE__`, `__TARGET_BMV2__`) are there.
    pub predefined: bool,
    /// Whether included files are looked for on disk too. A program that came over the network must not read files here.
    pub on_disk: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            include_dirs: Vec::new(),
            defines: Vec::new(),
            undefines: Vec::new(),
            predefined: true,
            on_disk: true,
        }
    }
}

/// A program as it was read.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree; incomplete when there are errors.
    pub program: ast::Program,
    /// The texts of its spans. File 0 is the program, the others were included.
    pub sources: SourceMap,
    /// What was found wrong.
    pub diagnostics: Diagnostics,
}

/// Reads a program from a file. That the file cannot be read is a diagnostic too.
pub fn parse_path(path: impl AsRef<Path>, options: &Options) -> Parsed {
    parse(preprocess::preprocess_file(path.as_ref().to_owned(), options))
}

/// Reads a program from a text. Its name shows in diagnostics, and quoted includes are looked for next to it.
pub fn parse_text(name: &str, text: &str, options: &Options) -> Parsed {
    parse(preprocess::preprocess_text(name, text, options))
}

fn parse(input: preprocess::Preprocessed) -> Parsed {
    let preprocess::Preprocessed { tokens, interner, sources, mut diagnostics } = input;
    // Where tokens are missing or wrong, errors of the grammar only follow from that.
    let mut followed = Diagnostics::new();
    let found = if diagnostics.has_errors() { &mut followed } else { &mut diagnostics };
    let program = parser::parse(tokens, &interner, found);
    Parsed { program, sources, diagnostics }
}
