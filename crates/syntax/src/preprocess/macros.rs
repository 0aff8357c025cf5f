//! Macros and their expansion.
//!
//! The rules are those of C: arguments are expanded before they are put in place, except next to `#` and `##`; the
//! result is read again together with what follows; a macro is not expanded inside its own expansion.

use std::cell::Cell;
use std::rc::Rc;

use crate::diagnostic::Diagnostic;
use crate::intern::{Symbol, kw};
use crate::lexer::single_token;
use crate::literal;
use crate::span::{Expansion, Span};
use crate::token::{Token, TokenKind};

use super::{
    MAX_ARGUMENT_TOKENS, MAX_EXPANSION_DEPTH, MAX_EXPANSIONS, MAX_MADE_BYTES, MAX_TOKENS, Preprocessor,
};

/// A macro.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Symbol,
    /// The parameters of a function-like macro.
    pub(super) params: Option<Vec<Symbol>>,
    /// The last parameter takes all further arguments.
    pub(super) variadic: bool,
    pub(super) body: Vec<Token>,
    /// The name in its `#define`.
    pub(super) definition: Span,
    builtin: Option<Builtin>,
    /// How many of its expansions are being read.
    active: Cell<u32>,
}

/// A macro whose value depends on the place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Builtin {
    /// `__LINE__`
    Line,
    /// `__FILE__`
    File,
}

impl Macro {
    pub(super) fn new(
        name: Symbol,
        params: Option<Vec<Symbol>>,
        variadic: bool,
        body: Vec<Token>,
        definition: Span,
    ) -> Self {
        Self { name, params, variadic, body, definition, builtin: None, active: Cell::new(0) }
    }

    pub(super) fn builtin(name: Symbol, builtin: Builtin) -> Self {
        Self { builtin: Some(builtin), ..Self::new(name, None, false, Vec::new(), Span::default()) }
    }

    /// Whether the definitions mean the same.
    pub(super) fn same(&self, other: &Macro) -> bool {
        let tokens = |m: &Macro| -> Vec<_> {
            m.body.iter().enumerate().map(|(i, t)| (t.kind, t.text, t.spaced && i > 0)).collect()
        };
        self.params == other.params && self.variadic == other.variadic && tokens(self) == tokens(other)
    }

    fn param(&self, token: &Token) -> Option<usize> {
        let params = self.params.as_ref()?;
        // `_` is a name here as any other.
        let is_name = matches!(token.kind, TokenKind::Word | TokenKind::DontCare);
        params.iter().position(|p| is_name && token.text == *p)
    }
}

/// Tokens to be read before others.
pub(super) struct Context {
    tokens: std::vec::IntoIter<Token>,
    /// The macro whose expansion this is.
    source: Option<Rc<Macro>>,
    /// Reading stops at the end of this one.
    barrier: bool,
}

/// The arguments of one invocation, as written and, once asked for, expanded.
struct Arguments {
    raw: Vec<Vec<Token>>,
    expanded: Vec<Option<Vec<Token>>>,
}

impl Preprocessor {
    /// The next token with all macros expanded.
    pub(super) fn next_expanded(&mut self) -> Token {
        loop {
            let mut token = self.next_raw();
            if token.kind != TokenKind::Word || token.no_expand {
                return token;
            }
            let Some(source) = self.macros.get(&token.text).cloned() else { return token };
            if source.active.get() > 0 {
                token.no_expand = true;
                return token;
            }
            if !self.expand(token, &source) {
                return token;
            }
        }
    }

    /// Expands the macros in a list of tokens on its own.
    pub(super) fn expand_all(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        self.contexts.push(Context { tokens: tokens.into_iter(), source: None, barrier: true });
        let mut expanded = Vec::new();
        loop {
            let token = self.next_expanded();
            if token.kind == TokenKind::Eof {
                break;
            }
            expanded.push(token);
        }
        while let Some(context) = self.contexts.pop() {
            leave(&context);
            if context.barrier {
                break;
            }
        }
        expanded
    }

    /// The next token of the contexts and files, nothing expanded.
    fn next_raw(&mut self) -> Token {
        while let Some(context) = self.contexts.last_mut() {
            if self.stopped {
                return self.end;
            }
            if let Some(token) = context.tokens.next() {
                return token;
            }
            if context.barrier {
                return self.end;
            }
            leave(context);
            self.contexts.pop();
        }
        self.next_from_files()
    }

    fn push_back(&mut self, token: Token) {
        // The end comes again by itself.
        if token.kind != TokenKind::Eof {
            let tokens = vec![token].into_iter();
            self.contexts.push(Context { tokens, source: None, barrier: false });
        }
    }

    /// Puts the expansion of a macro before the input. False if the name is no invocation.
    fn expand(&mut self, name: Token, source: &Rc<Macro>) -> bool {
        if let Some(builtin) = source.builtin {
            let token = self.builtin_token(builtin, name);
            self.contexts.push(Context { tokens: vec![token].into_iter(), source: None, barrier: false });
            return true;
        }
        let arguments = match &source.params {
            None => Some(Arguments { raw: Vec::new(), expanded: Vec::new() }),
            Some(params) => {
                let next = self.next_raw();
                if next.kind != TokenKind::LParen {
                    self.push_back(next);
                    return false;
                }
                self.arguments(name, source, params.len())
            }
        };
        let Some(arguments) = arguments else { return true };
        self.expansions += 1;
        let depth = self.contexts.iter().filter(|c| c.source.is_some() || c.barrier).count();
        let text = self.interner.text(source.name).clone();
        if self.expansions > MAX_EXPANSIONS {
            self.stop(name.span, format!("more than {MAX_EXPANSIONS} macro expansions"));
            return true;
        }
        if depth >= MAX_EXPANSION_DEPTH {
            self.stop(
                name.span,
                format!("macros are nested more than {MAX_EXPANSION_DEPTH} deep at `{text}`"),
            );
            return true;
        }
        let (definition, parent) = (source.definition, name.span.expansion);
        let expansion = self.sources.add_expansion(Expansion { name: text, definition, parent });
        let span = Span { expansion, ..name.span };
        let mut tokens = self.substitute(source, arguments, span);
        self.tokens_made += tokens.len();
        if self.tokens_made > MAX_TOKENS {
            self.stop(name.span, format!("macros expand to more than {MAX_TOKENS} tokens"));
            return true;
        }
        for (i, token) in tokens.iter_mut().enumerate() {
            token.starts_line = i == 0 && name.starts_line;
        }
        if let Some(first) = tokens.first_mut() {
            first.spaced = name.spaced;
        }
        source.active.set(source.active.get() + 1);
        self.contexts.push(Context {
            tokens: tokens.into_iter(),
            source: Some(source.clone()),
            barrier: false,
        });
        true
    }

    fn builtin_token(&mut self, builtin: Builtin, name: Token) -> Token {
        let location = self.sources.presumed_location(name.span);
        let (kind, text) = match builtin {
            Builtin::Line => (TokenKind::Int, location.line.to_string()),
            Builtin::File => (TokenKind::Str, literal::quote(&location.file)),
        };
        self.count_made(text.len(), name.span);
        Token { kind, text: self.interner.intern(&text), ..name }
    }

    /// Reads the arguments of an invocation, its `(` already read. None after an error.
    fn arguments(&mut self, name: Token, source: &Macro, params: usize) -> Option<Arguments> {
        let mut raw: Vec<Vec<Token>> = vec![Vec::new()];
        let mut depth = 0usize;
        loop {
            let mut token = self.next_raw();
            self.argument_tokens += 1;
            if self.argument_tokens > MAX_ARGUMENT_TOKENS {
                let message = format!("more than {MAX_ARGUMENT_TOKENS} tokens in the arguments of macros");
                self.stop(name.span, message);
                return None;
            }
            if token.kind == TokenKind::Eof {
                let text = self.interner.text(source.name);
                let message = format!("the invocation of macro `{text}` has no closing `)`");
                self.diagnostics.push(
                    Diagnostic::error("preprocessor", name.span, message)
                        .with_secondary(source.definition, "defined here"),
                );
                return None;
            }
            match token.kind {
                TokenKind::LParen => depth += 1,
                TokenKind::RParen if depth == 0 => break,
                TokenKind::RParen => depth -= 1,
                TokenKind::Comma if depth == 0 && !(source.variadic && raw.len() == params) => {
                    raw.push(Vec::new());
                    continue;
                }
                TokenKind::Word => {
                    token.no_expand |= self.macros.get(&token.text).is_some_and(|m| m.active.get() > 0);
                }
                _ => {}
            }
            token.spaced |= token.starts_line;
            token.starts_line = false;
            if let Some(argument) = raw.last_mut() {
                argument.push(token);
            }
        }
        if params == 0 && raw.len() == 1 && raw[0].is_empty() {
            raw.clear();
        }
        if source.variadic && raw.len() + 1 == params {
            raw.push(Vec::new());
        }
        if raw.len() != params {
            let text = self.interner.text(source.name);
            let message = format!("macro `{text}` takes {params} arguments, {} were given", raw.len());
            self.diagnostics.push(
                Diagnostic::error("preprocessor", name.span, message)
                    .with_secondary(source.definition, "defined here"),
            );
            return None;
        }
        let expanded = raw.iter().map(|_| None).collect();
        Some(Arguments { raw, expanded })
    }

    /// The body with the arguments in place. Tokens of the body get `span`, those of the arguments keep theirs.
    fn substitute(&mut self, source: &Macro, mut arguments: Arguments, span: Span) -> Vec<Token> {
        let body = &source.body;
        let is_paste = |i: usize| body.get(i).is_some_and(|t| t.kind == TokenKind::HashHash);
        let mut out: Vec<Token> = Vec::with_capacity(body.len());
        let mut pasting = false;
        let mut i = 0;
        while i < body.len() {
            let token = body[i];
            i += 1;
            if token.kind == TokenKind::HashHash && !out.is_empty() && i < body.len() {
                pasting = true;
                continue;
            }
            let mut piece = Vec::new();
            let stringified = body.get(i).and_then(|t| source.param(t));
            if let (TokenKind::Hash, Some(param)) = (token.kind, stringified) {
                i += 1;
                piece.push(self.stringify(&arguments.raw[param], token, span));
            } else if let Some(param) = source.param(&token) {
                if pasting || is_paste(i) {
                    piece = arguments.raw[param].clone();
                    let variadic =
                        source.variadic && source.params.as_ref().is_some_and(|p| p.len() == param + 1);
                    if pasting && variadic && out.last().is_some_and(|t| t.kind == TokenKind::Comma) {
                        // `, ## __VA_ARGS__`: the comma goes when there are no arguments, and is not pasted.
                        pasting = false;
                        if piece.is_empty() {
                            out.pop();
                        }
                    }
                } else {
                    if arguments.expanded[param].is_none() {
                        let expanded = self.expand_all(arguments.raw[param].clone());
                        arguments.expanded[param] = Some(expanded);
                    }
                    piece = arguments.expanded[param].clone().unwrap_or_default();
                }
                match piece.first_mut() {
                    Some(first) => first.spaced = token.spaced,
                    None => piece.push(Token { kind: TokenKind::Empty, span, ..token }),
                }
            } else {
                piece.push(Token { span, ..token });
            }
            if std::mem::take(&mut pasting)
                && let Some(left) = out.pop()
            {
                let right = piece.remove(0);
                out.extend(self.paste(left, right));
            }
            out.append(&mut piece);
            if self.stopped || self.tokens_made + out.len() > MAX_TOKENS {
                break;
            }
        }
        out.retain(|t| t.kind != TokenKind::Empty);
        out
    }

    /// `left ## right`. Two tokens that do not make one stay two, as in the assembler mode that p4c runs the C
    /// preprocessor in.
    fn paste(&mut self, left: Token, right: Token) -> Vec<Token> {
        if left.kind == TokenKind::Empty {
            return vec![Token { spaced: left.spaced, ..right }];
        }
        if right.kind == TokenKind::Empty {
            return vec![left];
        }
        let text = format!("{}{}", left.spelling(&self.interner), right.spelling(&self.interner));
        self.count_made(text.len(), left.span);
        match single_token(&text, &mut self.interner) {
            Some((kind, text)) => vec![Token { kind, text, no_expand: false, ..left }],
            None => vec![left, Token { spaced: false, ..right }],
        }
    }

    /// `#argument`
    fn stringify(&mut self, argument: &[Token], hash: Token, span: Span) -> Token {
        let mut text = String::new();
        for (i, token) in argument.iter().enumerate() {
            if i > 0 && token.spaced {
                text.push(' ');
            }
            let spelling = token.spelling(&self.interner);
            match token.kind {
                TokenKind::Str => text.push_str(&spelling.replace('\\', "\\\\").replace('"', "\\\"")),
                _ => text.push_str(spelling),
            }
        }
        self.count_made(text.len(), span);
        let text = self.interner.intern(&format!("\"{text}\""));
        Token { kind: TokenKind::Str, text, span, ..hash }
    }

    /// Counts the bytes of a token that `#`, `##` or `__FILE__` made: each may double what the one before made.
    fn count_made(&mut self, bytes: usize, span: Span) {
        self.bytes_made = self.bytes_made.saturating_add(bytes);
        if self.bytes_made > MAX_MADE_BYTES {
            self.stop(
                span,
                format!("`#`, `##` and `__FILE__` make more than {MAX_MADE_BYTES} bytes of text"),
            );
        }
    }

    /// Whether a word is the name of a macro.
    pub(super) fn is_defined(&self, name: Symbol) -> bool {
        self.macros.contains_key(&name)
    }

    /// Whether a word may be `#define`d and `#undef`ined.
    pub(super) fn is_definable(&self, name: Symbol) -> bool {
        name != kw::DEFINED
            && name != kw::VA_ARGS
            && self.macros.get(&name).is_none_or(|m| m.builtin.is_none())
    }
}

fn leave(context: &Context) {
    if let Some(source) = &context.source {
        source.active.set(source.active.get().saturating_sub(1));
    }
}
