//! The directives: lines that begin with `#`.

use std::rc::Rc;

use crate::diagnostic::Diagnostic;
use crate::intern::{Symbol, kw};
use crate::literal;
use crate::span::Span;
use crate::token::{Token, TokenKind};

use super::macros::Macro;
use super::{MAX_INCLUDE_DEPTH, Preprocessor, condition};

/// Most parameters of a macro.
const MAX_PARAMS: usize = 256;

/// An `#if` whose `#endif` is still to come.
pub(super) struct Conditional {
    /// The directive that began it.
    pub(super) span: Span,
    /// One of its groups has been read.
    taken: bool,
    /// Its `#else` has been seen.
    seen_else: bool,
}

impl Preprocessor {
    /// Obeys the directive after a `#`.
    pub(super) fn directive(&mut self, hash: Token) {
        let Some(name) = self.line_token() else { return };
        let span = hash.span.to(name.span);
        if name.kind == TokenKind::Int {
            // The form of `#line` that the C preprocessor writes: # 12 "file" flags
            self.line_directive(span, Some(name));
            return self.skip_line();
        }
        match name.spelling(&self.interner) {
            "include" => return self.include(span),
            "define" => self.define(span),
            "undef" => self.undef(span),
            "if" => {
                let value = self.condition(span);
                return self.begin_conditional(span, value);
            }
            "ifdef" => {
                let value = self.macro_name(span).is_some_and(|t| self.is_defined(t.text));
                return self.begin_conditional(span, value);
            }
            "ifndef" => {
                let value = self.macro_name(span).is_some_and(|t| !self.is_defined(t.text));
                return self.begin_conditional(span, value);
            }
            "elif" | "else" => return self.end_group(span, &name),
            "endif" => self.end_conditional(span),
            "error" => {
                let (_, text) = self.rest_of_line();
                self.diagnostics.push(Diagnostic::error("preprocessor", span, format!("#error: {text}")));
            }
            "warning" => {
                let (_, text) = self.rest_of_line();
                self.diagnostics.push(Diagnostic::warning("preprocessor", span, format!("#warning: {text}")));
            }
            "line" => self.line_directive(span, None),
            "pragma" => self.pragma(),
            "ident" => {}
            // p4c and its preprocessor read over such lines, and programs have comments in the form of a shell's.
            other => {
                let message = format!("unknown directive `#{other}`: this line is left out");
                self.diagnostics.push(
                    Diagnostic::warning("preprocessor", span, message)
                        .with_help("a comment begins with `//`"),
                );
            }
        }
        self.skip_line();
    }

    fn line_token(&mut self) -> Option<Token> {
        self.files.last_mut()?.lexer.next_in_line(&mut self.interner, &mut self.diagnostics)
    }

    fn line_tokens(&mut self) -> Vec<Token> {
        std::iter::from_fn(|| self.line_token()).collect()
    }

    fn skip_line(&mut self) {
        if let Some(file) = self.files.last_mut() {
            file.lexer.skip_line(&mut self.diagnostics);
        }
    }

    fn rest_of_line(&mut self) -> (Span, String) {
        self.files.last_mut().map(|f| f.lexer.rest_of_line()).unwrap_or_default()
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error("preprocessor", span, message));
    }

    /// The name after `#define`, `#undef`, `#ifdef`, `#ifndef`.
    fn macro_name(&mut self, directive: Span) -> Option<Token> {
        match self.line_token() {
            Some(token) if token.kind == TokenKind::Word => Some(token),
            Some(token) => {
                self.error(token.span, "a macro's name must be an identifier");
                None
            }
            None => {
                self.error(directive, "this directive needs a macro's name");
                None
            }
        }
    }

    fn include(&mut self, directive: Span) {
        let angled = self.files.last_mut().and_then(|f| f.lexer.angled_name(&mut self.diagnostics));
        let target = match angled {
            Some((span, name)) => Some((span, name, false)),
            None => self.computed_include(directive),
        };
        if let Some(extra) = self.line_token() {
            self.error(extra.span, "nothing may follow the file's name");
        }
        self.skip_line();
        let Some((span, name, quoted)) = target else { return };
        // Relative to the file at hand, which stays open below the new one.
        let Some(from) = self.files.last().map(|f| f.origin.clone()) else { return };
        if self.files.len() > MAX_INCLUDE_DEPTH {
            let message = format!("includes are nested more than {MAX_INCLUDE_DEPTH} deep");
            let cycle = self.files.iter().filter(|f| f.origin == from).count() > 1;
            self.stop(
                span,
                if cycle { format!("{message}: {} includes itself", from.display_name()) } else { message },
            );
            return;
        }
        match self.loader.include(&name, quoted, &from) {
            None => self.diagnostics.push(
                Diagnostic::error("include", span, format!("cannot find the include file `{name}`"))
                    .with_help("add its folder with `-I`"),
            ),
            Some((origin, Err(error))) => {
                let message = format!("cannot read {}: {error}", origin.display_name());
                self.diagnostics.push(Diagnostic::error("include", span, message));
            }
            Some((origin, Ok(_))) if self.once.contains(&origin) => {}
            Some((origin, Ok(text))) => self.open(origin, text, Some(span)),
        }
    }

    /// `#include "name"`, or a macro that expands to one of the two forms.
    fn computed_include(&mut self, directive: Span) -> Option<(Span, String, bool)> {
        let mut tokens = self.line_tokens();
        if tokens.first().is_some_and(|t| t.kind == TokenKind::Word) {
            tokens = self.expand_all(tokens);
        }
        match tokens.as_slice() {
            [name] if name.kind == TokenKind::Str => {
                let quoted = name.spelling(&self.interner);
                Some((name.span, quoted.trim_matches('"').to_owned(), true))
            }
            [open, name @ .., close] if open.kind == TokenKind::Lt && close.kind == TokenKind::Gt => {
                let name = name.iter().map(|t| t.spelling(&self.interner)).collect();
                Some((open.span.to(close.span), name, false))
            }
            _ => {
                let span = tokens.first().map_or(directive, |t| t.span);
                self.error(span, "`#include` needs a file's name in quotes or angle brackets");
                None
            }
        }
    }

    fn define(&mut self, directive: Span) {
        let Some(name) = self.macro_name(directive) else { return };
        if !self.is_definable(name.text) {
            let message = format!("`{}` cannot be defined", name.spelling(&self.interner));
            return self.error(name.span, message);
        }
        let mut tokens = self.line_tokens();
        let is_function = tokens.first().is_some_and(|t| t.kind == TokenKind::LParen && !t.spaced);
        let (params, variadic) = if is_function {
            let Some((params, variadic, length)) = self.params(&tokens, name) else { return };
            tokens.drain(..length);
            (Some(params), variadic)
        } else {
            (None, false)
        };
        for token in &mut tokens {
            token.starts_line = false;
        }
        let new = Macro::new(name.text, params, variadic, tokens, name.span);
        if let Some(old) = self.macros.get(&name.text)
            && !old.same(&new)
        {
            let message = format!("macro `{}` is defined again, differently", name.spelling(&self.interner));
            self.diagnostics.push(
                Diagnostic::warning("macro-redefined", name.span, message)
                    .with_secondary(old.definition, "first defined here")
                    .with_help("`#undef` it first"),
            );
        }
        self.macros.insert(name.text, Rc::new(new));
    }

    /// The parameters of a function-like macro, whether the last is variadic, and how many tokens that took.
    fn params(&mut self, tokens: &[Token], name: Token) -> Option<(Vec<Symbol>, bool, usize)> {
        let mut params: Vec<Symbol> = Vec::new();
        let mut at = 1;
        let kind = |i: usize| tokens.get(i).map_or(TokenKind::Eof, |t| t.kind);
        if kind(at) == TokenKind::RParen {
            return Some((params, false, 2));
        }
        loop {
            let span = tokens.get(at).map_or(name.span, |t| t.span);
            if params.len() >= MAX_PARAMS {
                self.error(span, format!("a macro can have {MAX_PARAMS} parameters at most"));
                return None;
            }
            let mut variadic = false;
            match kind(at) {
                TokenKind::Word | TokenKind::DontCare if params.contains(&tokens[at].text) => {
                    self.error(span, "two parameters of this macro have the same name");
                    return None;
                }
                TokenKind::Word | TokenKind::DontCare => {
                    params.push(tokens[at].text);
                    if kind(at + 1) == TokenKind::Dots {
                        variadic = true;
                        at += 1;
                    }
                }
                TokenKind::Dots => {
                    params.push(kw::VA_ARGS);
                    variadic = true;
                }
                _ => {
                    self.error(span, "expected a parameter's name");
                    return None;
                }
            }
            at += 1;
            match kind(at) {
                TokenKind::Comma if !variadic => at += 1,
                TokenKind::RParen => return Some((params, variadic, at + 1)),
                _ => {
                    let span = tokens.get(at).map_or(name.span, |t| t.span);
                    self.error(span, "the parameters of a macro end with `)`");
                    return None;
                }
            }
        }
    }

    fn undef(&mut self, directive: Span) {
        let Some(name) = self.macro_name(directive) else { return };
        if self.is_definable(name.text) {
            self.macros.remove(&name.text);
        } else {
            let message = format!("`{}` cannot be undefined", name.spelling(&self.interner));
            self.error(name.span, message);
        }
    }

    /// The value of the condition on the rest of the line; false after an error.
    fn condition(&mut self, directive: Span) -> bool {
        let tokens = self.line_tokens();
        let tokens = self.resolve_defined(tokens);
        let tokens = self.expand_all(tokens);
        condition::evaluate(&tokens, directive, &self.interner).unwrap_or_else(|error| {
            self.diagnostics.push(*error);
            false
        })
    }

    /// Replaces `defined X` and `defined(X)` by 1 or 0.
    fn resolve_defined(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        let (one, zero) = (self.interner.intern("1"), self.interner.intern("0"));
        let mut out = Vec::with_capacity(tokens.len());
        let mut rest = tokens.as_slice();
        while let Some((&token, tail)) = rest.split_first() {
            rest = tail;
            if !token.is_word(kw::DEFINED) {
                out.push(token);
                continue;
            }
            let name = match tail {
                [open, name, close, ..]
                    if open.kind == TokenKind::LParen
                        && name.kind == TokenKind::Word
                        && close.kind == TokenKind::RParen =>
                {
                    rest = &tail[3..];
                    *name
                }
                [name, ..] if name.kind == TokenKind::Word => {
                    rest = &tail[1..];
                    *name
                }
                _ => {
                    self.error(token.span, "`defined` needs a macro's name");
                    continue;
                }
            };
            let text = if self.is_defined(name.text) { one } else { zero };
            out.push(Token { kind: TokenKind::Int, text, ..token });
        }
        out
    }

    fn begin_conditional(&mut self, span: Span, value: bool) {
        self.skip_line();
        if let Some(file) = self.files.last_mut() {
            file.conditionals.push(Conditional { span, taken: value, seen_else: false });
        }
        if !value {
            self.skip_groups();
        }
    }

    /// An `#elif` or `#else` after a group that was read: skips to the `#endif`.
    fn end_group(&mut self, span: Span, name: &Token) {
        self.skip_line();
        let is_else = name.spelling(&self.interner) == "else";
        match self.files.last_mut().and_then(|f| f.conditionals.last_mut()) {
            None => {
                let message = format!("`#{}` without `#if`", name.spelling(&self.interner));
                self.error(span, message);
            }
            Some(conditional) => {
                let again = conditional.seen_else;
                conditional.seen_else |= is_else;
                if again {
                    self.else_again(span);
                }
                self.skip_groups();
            }
        }
    }

    fn else_again(&mut self, span: Span) {
        self.error(span, "this condition already had its `#else`");
    }

    fn end_conditional(&mut self, span: Span) {
        if self.files.last_mut().and_then(|f| f.conditionals.pop()).is_none() {
            self.error(span, "`#endif` without `#if`");
        }
    }

    /// Skips groups of the innermost conditional up to one that is to be read, or past its `#endif`.
    fn skip_groups(&mut self) {
        let mut inner = 0usize;
        loop {
            let Some(file) = self.files.last_mut() else { return };
            if !file.lexer.skip_to_directive(&mut self.diagnostics) {
                return;
            }
            let Some(name) = self.line_token() else { continue };
            match &*self.interner.text(name.text).clone() {
                "if" | "ifdef" | "ifndef" => inner += 1,
                "endif" if inner > 0 => inner -= 1,
                "endif" => {
                    self.end_conditional(name.span);
                    return self.skip_line();
                }
                "elif" if inner == 0 && self.enter_group(name.span, false) => return,
                "else" if inner == 0 && self.enter_group(name.span, true) => return,
                _ => {}
            }
            self.skip_line();
        }
    }

    /// Whether the group of an `#elif` or `#else`, met while skipping, is to be read.
    fn enter_group(&mut self, span: Span, is_else: bool) -> bool {
        let Some(conditional) = self.files.last_mut().and_then(|f| f.conditionals.last_mut()) else {
            return false;
        };
        let (taken, again) = (conditional.taken, conditional.seen_else);
        conditional.seen_else |= is_else;
        if again {
            self.else_again(span);
            return false;
        }
        let enter = !taken && (is_else || self.condition(span));
        if enter && let Some(conditional) = self.files.last_mut().and_then(|f| f.conditionals.last_mut()) {
            conditional.taken = true;
            self.skip_line();
        }
        enter
    }

    /// `#line 12 "file"`; `number` is already read in the short form.
    fn line_directive(&mut self, span: Span, number: Option<Token>) {
        let tokens: Vec<Token> = number.into_iter().chain(self.line_tokens()).collect();
        let tokens = self.expand_all(tokens);
        let Some(file) = self.files.last() else { return };
        let here = file.lexer.here();
        let line = tokens
            .first()
            .filter(|t| t.kind == TokenKind::Int)
            .and_then(|t| t.spelling(&self.interner).parse::<u32>().ok());
        let Some(line) = line else {
            return self.error(span, "`#line` needs a line number");
        };
        let name = match tokens.get(1) {
            None => self.sources.presumed_location(span).file,
            Some(t) if t.kind == TokenKind::Str => literal::string(t.spelling(&self.interner)).into(),
            Some(t) => {
                let at = t.span;
                return self.error(at, "expected a file's name in quotes");
            }
        };
        // The mark counts from the line after this one, whose break has not been read.
        self.sources.mark_line(here.file, here.end.saturating_add(1), line, name);
    }

    fn pragma(&mut self) {
        let once = self.line_token().is_some_and(|t| t.spelling(&self.interner) == "once");
        if once && let Some(file) = self.files.last() {
            self.once.insert(file.origin.clone());
        }
    }
}
