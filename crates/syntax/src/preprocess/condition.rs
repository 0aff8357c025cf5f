//! The constant expressions of `#if` and `#elif`.
//!
//! All operators of C on signed 128-bit integers, which wrap around. Words that are left after macro expansion are
//! 0, as in C.

use crate::diagnostic::Diagnostic;
use crate::intern::Interner;
use crate::span::Span;
use crate::token::{Token, TokenKind};

/// Most parentheses and operators inside each other.
const MAX_DEPTH: u32 = 64;

/// The value of the expression, which must be all of `tokens`. `directive` is where to report a missing one.
pub(crate) fn evaluate(
    tokens: &[Token],
    directive: Span,
    interner: &Interner,
) -> Result<bool, Box<Diagnostic>> {
    let end = tokens.last().map_or(directive, |t| t.span).after();
    let mut condition = Condition { tokens, pos: 0, end, depth: 0, interner };
    if tokens.is_empty() {
        return Err(error(directive, "this condition has no expression"));
    }
    let value = condition.conditional(true)?;
    match condition.tokens.get(condition.pos) {
        None => Ok(value != 0),
        Some(token) => Err(error(token.span, format!("unexpected `{}`", token.spelling(interner)))),
    }
}

fn error(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("preprocessor", span, message).with_label("in this condition"))
}

struct Condition<'a> {
    tokens: &'a [Token],
    pos: usize,
    end: Span,
    depth: u32,
    interner: &'a Interner,
}

impl Condition<'_> {
    fn kind(&self) -> TokenKind {
        self.tokens.get(self.pos).map_or(TokenKind::Eof, |t| t.kind)
    }

    fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.kind() == kind;
        self.pos += usize::from(found);
        found
    }

    fn here(&self) -> Span {
        self.tokens.get(self.pos).map_or(self.end, |t| t.span)
    }

    /// `live`: the value matters; a division by zero where it does not is no error.
    fn conditional(&mut self, live: bool) -> Result<i128, Box<Diagnostic>> {
        let value = self.binary(0, live)?;
        if !self.take(TokenKind::Question) {
            return Ok(value);
        }
        let then = self.nested(|c| c.conditional(live && value != 0))?;
        if !self.take(TokenKind::Colon) {
            return Err(error(self.here(), "expected `:`"));
        }
        let otherwise = self.nested(|c| c.conditional(live && value == 0))?;
        Ok(if value != 0 { then } else { otherwise })
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Box<Diagnostic>>,
    ) -> Result<T, Box<Diagnostic>> {
        if self.depth >= MAX_DEPTH {
            return Err(error(self.here(), "this condition is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The infix operator here, with its level and the number of tokens it takes.
    fn operator(&self) -> Option<(u8, TokenKind, usize)> {
        use TokenKind as T;
        let kind = self.kind();
        let level = match kind {
            T::OrOr => 1,
            T::AndAnd => 2,
            T::Pipe => 3,
            T::Caret => 4,
            T::Amp => 5,
            T::EqEq | T::NotEq => 6,
            T::Gt if self.tokens.get(self.pos + 1).is_some_and(|t| t.kind == T::Gt && !t.spaced) => {
                return Some((8, T::ShrAssign, 2));
            }
            T::Lt | T::Le | T::Gt | T::Ge => 7,
            T::Shl => 8,
            T::Plus | T::Minus => 9,
            T::Star | T::Slash | T::Percent => 10,
            _ => return None,
        };
        Some((level, kind, 1))
    }

    fn binary(&mut self, above: u8, live: bool) -> Result<i128, Box<Diagnostic>> {
        let mut left = self.unary(live)?;
        while let Some((level, kind, width)) = self.operator().filter(|(level, ..)| *level > above) {
            let at = self.here();
            self.pos += width;
            let right_live = match kind {
                TokenKind::OrOr => live && left == 0,
                TokenKind::AndAnd => live && left != 0,
                _ => live,
            };
            let right = self.nested(|c| c.binary(level, right_live))?;
            left = apply(kind, left, right)
                .or((!live).then_some(0))
                .ok_or_else(|| error(at, "division by zero"))?;
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Result<i128, Box<Diagnostic>> {
        let Some(token) = self.tokens.get(self.pos) else {
            return Err(error(self.end, "the condition ends too early"));
        };
        self.pos += 1;
        match token.kind {
            TokenKind::Not => Ok(i128::from(self.nested(|c| c.unary(live))? == 0)),
            TokenKind::Minus => Ok(self.nested(|c| c.unary(live))?.wrapping_neg()),
            TokenKind::Plus => self.nested(|c| c.unary(live)),
            TokenKind::Tilde => Ok(!self.nested(|c| c.unary(live))?),
            TokenKind::LParen => {
                let value = self.nested(|c| c.conditional(live))?;
                if !self.take(TokenKind::RParen) {
                    return Err(error(self.here(), "expected `)`"));
                }
                Ok(value)
            }
            TokenKind::Int => {
                let text = self.interner.text(token.text);
                integer(text).ok_or_else(|| error(token.span, format!("`{text}` is not an integer")))
            }
            TokenKind::Word | TokenKind::DontCare => Ok(0),
            _ => Err(error(token.span, format!("unexpected `{}`", token.spelling(self.interner)))),
        }
    }
}

/// None for a division by zero.
fn apply(kind: TokenKind, a: i128, b: i128) -> Option<i128> {
    use TokenKind as T;
    let shift = |b: i128| u32::try_from(b).ok().filter(|b| *b < 128);
    Some(match kind {
        T::OrOr => i128::from(a != 0 || b != 0),
        T::AndAnd => i128::from(a != 0 && b != 0),
        T::Pipe => a | b,
        T::Caret => a ^ b,
        T::Amp => a & b,
        T::EqEq => i128::from(a == b),
        T::NotEq => i128::from(a != b),
        T::Lt => i128::from(a < b),
        T::Le => i128::from(a <= b),
        T::Gt => i128::from(a > b),
        T::Ge => i128::from(a >= b),
        T::Shl => shift(b).map_or(0, |b| a.wrapping_shl(b)),
        T::ShrAssign => shift(b).map_or(a >> 127, |b| a >> b),
        T::Plus => a.wrapping_add(b),
        T::Minus => a.wrapping_sub(b),
        T::Star => a.wrapping_mul(b),
        T::Slash => (b != 0).then(|| a.wrapping_div(b))?,
        _ => (b != 0).then(|| a.wrapping_rem(b))?,
    })
}

/// A C integer: `0x`, `0b` and leading-zero octal, with any of the suffixes `u` and `l`.
fn integer(text: &str) -> Option<i128> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let lower = digits.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        i128::from_str_radix(hex, 16).ok()
    } else if let Some(binary) = lower.strip_prefix("0b") {
        i128::from_str_radix(binary, 2).ok()
    } else if lower.len() > 1 && lower.starts_with('0') {
        i128::from_str_radix(&lower[1..], 8).ok()
    } else {
        lower.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::lexer::Lexer;
    use crate::span::FileId;

    fn eval(text: &str) -> Result<bool, String> {
        let (mut interner, mut diagnostics) = (Interner::new(), Diagnostics::new());
        let mut lexer = Lexer::new(FileId(0), text.into());
        let tokens: Vec<Token> =
            std::iter::from_fn(|| lexer.next_in_line(&mut interner, &mut diagnostics)).collect();
        evaluate(&tokens, Span::default(), &interner).map_err(|d| d.message)
    }

    #[test]
    fn operators_bind_as_in_c() {
        for text in [
            "1 + 2 * 3 == 7",
            "(1 + 2) * 3 == 9",
            "1 || 1 / 0",
            "!(0 && 1 / 0)",
            "1 ? 2 : 1 / 0",
            "-7 / 2 == -3 && -7 % 2 == -1",
            "1 << 4 == 16 && 256 >> 4 == 16",
            "0x10 == 16 && 010 == 8 && 0b11 == 3 && 10UL == 10",
            "undefined_word == 0",
            "~0 == -1",
            "5 - 2 - 1 == 2",
            "0 ? 0 : 0 ? 0 : 1",
            "(1 | 6) == 7 && (5 & 4) == 4 && (5 ^ 1) == 4",
        ] {
            assert_eq!(eval(text), Ok(true), "{text}");
        }
        assert_eq!(eval("3 > 4"), Ok(false));
    }

    #[test]
    fn errors_are_named() {
        assert_eq!(eval("1 / 0"), Err("division by zero".into()));
        assert_eq!(eval("1 +"), Err("the condition ends too early".into()));
        assert_eq!(eval("1 2"), Err("unexpected `2`".into()));
        assert_eq!(eval("(1"), Err("expected `)`".into()));
        assert_eq!(eval("\"a\""), Err("unexpected `\"a\"`".into()));
        assert_eq!(eval(&"(".repeat(5000)), Err("this condition is nested too deeply".into()));
        assert_eq!(eval(&"-".repeat(5000)), Err("this condition is nested too deeply".into()));
        assert_eq!(eval(""), Err("this condition has no expression".into()));
    }
}
