//! The preprocessor: from files to one list of tokens.
//!
//! It does what p4c's users know from the C preprocessor: `#include`, `#define` with and without parameters (`#`,
//! `##`, variadic), `#undef`, conditionals, `#line`, `#error`, `#warning`, `#pragma once`; other pragmas are
//! ignored. It works on tokens, never on text, so that each token keeps the place it came from.
//!
//! It always ends: the limits below bound what includes and macros can unfold to. The first one exceeded is
//! reported and ends the input.

mod condition;
mod directives;
mod include;
mod macros;
mod strings;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::Options;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intern::{Interner, Symbol, kw};
use crate::lexer::Lexer;
use crate::span::{FileId, SourceMap, Span};
use crate::token::{Token, TokenKind};

use directives::Conditional;
use include::{Loader, Origin};
use macros::{Builtin, Context, Macro};

/// Most `#include`s inside each other.
pub const MAX_INCLUDE_DEPTH: usize = 64;

/// Most bytes of source text, each inclusion of a file counted.
pub const MAX_TOTAL_BYTES: usize = 64 << 20;

/// Most tokens of a program after preprocessing.
pub const MAX_TOKENS: usize = 1 << 20;

/// Most tokens read as arguments of macros: those of an invocation inside another count for both.
pub const MAX_ARGUMENT_TOKENS: usize = 1 << 21;

/// Most bytes of all tokens that `#` and `##` make.
pub const MAX_MADE_BYTES: usize = 1 << 24;

/// Most macro expansions in a program.
pub const MAX_EXPANSIONS: usize = 1_000_000;

/// Most macros being expanded inside each other.
pub const MAX_EXPANSION_DEPTH: usize = 200;

/// A preprocessed program.
pub(crate) struct Preprocessed {
    /// The tokens; the last one, and only that, is `Eof`.
    pub(crate) tokens: Vec<Token>,
    pub(crate) interner: Interner,
    pub(crate) sources: SourceMap,
    pub(crate) diagnostics: Diagnostics,
}

/// Preprocesses a file.
pub(crate) fn preprocess_file(path: PathBuf, options: &Options) -> Preprocessed {
    let mut preprocessor = Preprocessor::new(options);
    let origin = Origin::Disk(path);
    match preprocessor.loader.read(&origin) {
        Ok(text) => preprocessor.start(origin, text, options),
        Err(error) => {
            let name = origin.display_name();
            preprocessor.sources.add(name.as_str(), "", None);
            let message = format!("cannot read {name}: {error}");
            preprocessor.diagnostics.push(Diagnostic::error("file", Span::default(), message));
        }
    }
    preprocessor.finish()
}

/// Preprocesses a text. Its quoted includes are looked for next to `name`.
pub(crate) fn preprocess_text(name: &str, text: &str, options: &Options) -> Preprocessed {
    let mut preprocessor = Preprocessor::new(options);
    preprocessor.start(Origin::Text(name.to_owned()), text.into(), options);
    preprocessor.finish()
}

/// Preprocesses an embedded file on its own, into a map that has other sources already.
pub(crate) fn preprocess_embedded(name: &str, sources: SourceMap) -> Preprocessed {
    let mut preprocessor = Preprocessor::new(&Options::default());
    preprocessor.sources = sources;
    let origin = Origin::Builtin(name.to_owned());
    match preprocessor.loader.read(&origin) {
        Ok(text) => preprocessor.open(origin, text, None),
        Err(_) => {
            let message = format!("there is no embedded file `{name}`");
            preprocessor.diagnostics.push(Diagnostic::error("file", Span::default(), message));
        }
    }
    preprocessor.finish()
}

/// A file being read.
struct OpenFile {
    lexer: Lexer,
    origin: Origin,
    conditionals: Vec<Conditional>,
}

struct Preprocessor {
    loader: Loader,
    interner: Interner,
    sources: SourceMap,
    diagnostics: Diagnostics,
    macros: HashMap<Symbol, Rc<Macro>>,
    /// Open files, the innermost last.
    files: Vec<OpenFile>,
    /// Tokens to read before those of the files: macro bodies and arguments, the innermost last.
    contexts: Vec<Context>,
    once: HashSet<Origin>,
    bytes_read: usize,
    tokens_made: usize,
    expansions: usize,
    argument_tokens: usize,
    bytes_made: usize,
    /// A limit was exceeded; the input counts as ended.
    stopped: bool,
    end: Token,
}

impl Preprocessor {
    fn new(options: &Options) -> Self {
        let end = Token {
            kind: TokenKind::Eof,
            starts_line: true,
            spaced: true,
            no_expand: false,
            text: Symbol::NONE,
            span: Span::default(),
        };
        let mut macros = HashMap::new();
        for (name, builtin) in [(kw::LINE, Builtin::Line), (kw::FILE, Builtin::File)] {
            macros.insert(name, Rc::new(Macro::builtin(name, builtin)));
        }
        Self {
            loader: Loader::new(options.include_dirs.clone(), options.on_disk),
            interner: Interner::new(),
            sources: SourceMap::new(),
            diagnostics: Diagnostics::new(),
            macros,
            files: Vec::new(),
            contexts: Vec::new(),
            once: HashSet::new(),
            bytes_read: 0,
            tokens_made: 0,
            expansions: 0,
            argument_tokens: 0,
            bytes_made: 0,
            stopped: false,
            end,
        }
    }

    /// Opens the main file, and before it the definitions of the options.
    fn start(&mut self, origin: Origin, text: Arc<str>, options: &Options) {
        self.open(origin, text, None);
        let mut definitions = String::new();
        if options.predefined {
            definitions.push_str(PREDEFINED);
        }
        let defines = options.defines.iter().map(|(name, value)| format!("#define {name} {value}"));
        for line in defines.chain(options.undefines.iter().map(|name| format!("#undef {name}"))) {
            definitions.push_str(&line.replace(['\n', '\r'], " "));
            definitions.push('\n');
        }
        if !definitions.is_empty() {
            self.open(Origin::Text("<command line>".into()), definitions.into(), None);
        }
    }

    /// Reads a text from now on.
    fn open(&mut self, origin: Origin, text: Arc<str>, included_from: Option<Span>) {
        self.bytes_read = self.bytes_read.saturating_add(text.len());
        let at = included_from.unwrap_or_default();
        if self.bytes_read > MAX_TOTAL_BYTES {
            self.stop(at, format!("the program has more than {MAX_TOTAL_BYTES} bytes, includes counted"));
            return;
        }
        match self.sources.add(origin.display_name(), text.clone(), included_from) {
            Some(id) => {
                let lexer = Lexer::new(id, text);
                self.files.push(OpenFile { lexer, origin, conditionals: Vec::new() });
            }
            None => self.stop(at, "the program has too many files, or one that is too large".into()),
        }
    }

    /// Reports an exceeded limit and ends the input.
    fn stop(&mut self, span: Span, message: String) {
        if !self.stopped {
            self.stopped = true;
            self.diagnostics.push(Diagnostic::error("limit", span, message));
        }
    }

    fn finish(mut self) -> Preprocessed {
        let mut tokens: Vec<Token> = Vec::new();
        loop {
            let token = self.next_expanded();
            match token.kind {
                TokenKind::Eof => {
                    // The end stands after the last token of the main file.
                    tokens.push(Token { span: self.end.span, ..token });
                    break;
                }
                TokenKind::Empty => {}
                _ if tokens.len() >= MAX_TOKENS => {
                    self.stop(token.span, format!("the program has more than {MAX_TOKENS} tokens"));
                }
                _ => tokens.push(token),
            }
        }
        let Self { interner, sources, diagnostics, .. } = self;
        Preprocessed { tokens, interner, sources, diagnostics }
    }

    /// The next token of the files, directives obeyed.
    fn next_from_files(&mut self) -> Token {
        while !self.stopped {
            let Some(file) = self.files.last_mut() else { break };
            let token = file.lexer.next(&mut self.interner, &mut self.diagnostics);
            match token.kind {
                TokenKind::Eof => self.close(token),
                TokenKind::Hash if token.starts_line => self.directive(token),
                TokenKind::Str if self.has_directives(token) => return self.string_with_directives(token),
                _ => return token,
            }
        }
        self.end
    }

    /// Leaves the innermost file.
    fn close(&mut self, end: Token) {
        let Some(file) = self.files.pop() else { return };
        for conditional in file.conditionals {
            self.diagnostics.push(
                Diagnostic::error("preprocessor", conditional.span, "this condition has no `#endif`")
                    .with_label("begins here"),
            );
        }
        if end.span.file == FileId::default() {
            self.end.span = end.span;
        }
    }
}

/// Our own name, and what the compilers for bmv2's switches define, whose architectures these are. Other backends of p4c do not define it;
/// nothing but the one for Tofino defines `__p4c__`.
const PREDEFINED: &str = "\
#define __MILLRACE__ 1
#define __TARGET_BMV2__ 1
";

#[cfg(test)]
mod tests;
