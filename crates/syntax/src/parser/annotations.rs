//! Annotations (specification section 20).

use crate::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Name, NamedExpr};
use crate::diagnostic::Diagnostic;
use crate::intern::kw;
use crate::literal;
use crate::token::{Token, TokenKind};

use super::{Parse, Parser};

impl Parser<'_> {
    /// Annotations, possibly none.
    pub(super) fn annotations(&mut self) -> Parse<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.at(TokenKind::At) {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> Parse<Annotation> {
        let at = self.bump();
        if self.at_word(kw::PRAGMA) {
            return self.pragma(at);
        }
        let name = self.annotation_name()?;
        let body = match self.peek().kind {
            TokenKind::LParen => AnnotationBody::Tokens(self.unstructured_body()?),
            TokenKind::LBracket => self.nested(Self::structured_body)?,
            _ => AnnotationBody::None,
        };
        Ok(Annotation { name, body, span: self.since(at.span) })
    }

    /// Any word: tools use keywords as annotation names too.
    fn annotation_name(&mut self) -> Parse<Name> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return Err(self.unexpected("an annotation's name"));
        }
        self.bump();
        Ok(self.name_of(token))
    }

    /// `@pragma name tokens`, which ends with the line.
    fn pragma(&mut self, at: Token) -> Parse<Annotation> {
        self.bump();
        let name = self.annotation_name()?;
        let mut tokens = Vec::new();
        while !self.peek().starts_line && !self.at(TokenKind::Eof) {
            tokens.push(self.annotation_token());
        }
        let body = if tokens.is_empty() { AnnotationBody::None } else { AnnotationBody::Tokens(tokens) };
        Ok(Annotation { name, body, span: self.since(at.span) })
    }

    /// `(tokens)` with balanced parentheses; characters that mean nothing elsewhere may be among them.
    fn unstructured_body(&mut self) -> Parse<Vec<AnnotationToken>> {
        let open = self.bump();
        let mut tokens = Vec::new();
        let mut depth = 0usize;
        loop {
            match self.peek().kind {
                TokenKind::Eof => {
                    let span = self.peek().span;
                    return Err(self.report(
                        Diagnostic::error("syntax", span, "this annotation has no closing `)`")
                            .with_secondary(open.span, "opened here"),
                    ));
                }
                TokenKind::LParen => depth += 1,
                TokenKind::RParen if depth == 0 => {
                    self.bump();
                    return Ok(tokens);
                }
                TokenKind::RParen => depth -= 1,
                _ => {}
            }
            tokens.push(self.annotation_token());
        }
    }

    fn annotation_token(&mut self) -> AnnotationToken {
        let token = self.bump();
        let spelling = token.spelling(self.interner);
        let kind = match token.kind {
            TokenKind::Word => AnnotationTokenKind::Word,
            TokenKind::Str => AnnotationTokenKind::String(literal::string(spelling).into()),
            TokenKind::Int => match literal::integer(spelling) {
                Ok(value) => AnnotationTokenKind::Int(value),
                Err(_) => AnnotationTokenKind::Word,
            },
            _ => AnnotationTokenKind::Symbol,
        };
        let text = match token.kind.symbol() {
            "" => self.interner.text(token.text).clone(),
            symbol => symbol.into(),
        };
        AnnotationToken { kind, text, span: token.span }
    }

    /// `[expression, ...]` or `[key = expression, ...]`
    fn structured_body(&mut self) -> Parse<AnnotationBody> {
        self.bump();
        let has_keys = self.peek().is_name() && self.nth(1).kind == TokenKind::Assign;
        let body = if has_keys {
            AnnotationBody::KeyValues(self.list(TokenKind::RBracket, true, |p| {
                let name = p.name("a key")?;
                p.expect(TokenKind::Assign)?;
                Ok(NamedExpr { name, value: p.expression()? })
            })?)
        } else {
            AnnotationBody::Expressions(self.list(TokenKind::RBracket, true, Self::expression)?)
        };
        self.expect(TokenKind::RBracket)?;
        Ok(body)
    }
}
