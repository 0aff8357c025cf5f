//! Tokens of the text form.

use super::ParseError;
use crate::Bits;
use std::borrow::Cow;

/// One token; what it names lies in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A word of the language, or a name.
    Word(&'t str),
    /// A name or a text in quotes.
    Quoted(Cow<'t, str>),
    /// A number with its width.
    Bits(Bits),
    /// A number without.
    Number(u64),
    /// Punctuation.
    Sign(&'static str),
    /// After the last.
    End,
}

impl<'t> Token<'t> {
    /// What it says, of a word and of what is in quotes.
    pub(super) fn text(&self) -> Option<Cow<'t, str>> {
        match self {
            Token::Word(word) => Some(Cow::Borrowed(word)),
            Token::Quoted(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Quoted(text) => f.write_str(&super::names::quoted(text)),
            Token::Bits(bits) => write!(f, "`{bits}`"),
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => write!(f, "the end of the text"),
        }
    }
}

/// A token and at which byte it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located<'t> {
    pub(super) token: Token<'t>,
    pub(super) at: usize,
}

/// Longer ones first.
const SIGNS: &[&str] = &["&&&", "=>", "..", "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", "=", "/", "#"];

/// All tokens of a text, the last is [`Token::End`]. A comment goes from `;` to the end of its line.
pub(super) fn tokens(text: &str) -> Result<Vec<Located<'_>>, ParseError> {
    let mut lexer = Lexer { text, at: 0 };
    // Most tokens are short.
    let mut tokens = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let token = lexer.token().map_err(|message| error_at(text, at, message))?;
        let end = token == Token::End;
        tokens.push(Located { token, at });
        if end {
            return Ok(tokens);
        }
    }
}

/// An error at a byte of a text.
pub(super) fn error_at(text: &str, at: usize, message: String) -> ParseError {
    let before = &text[..at];
    let count = |of: usize| u32::try_from(of + 1).unwrap_or(u32::MAX);
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = count(before.bytes().filter(|b| *b == b'\n').count());
    ParseError { line, column: count(before[start..].chars().count()), message }
}

/// Whether a text is one word, and nothing else.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(starts_word) && Lexer { text, at: 0 }.word().len() == text.len()
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '$'
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes `len` bytes, which end at a character.
    fn take(&mut self, len: usize) -> &'t str {
        let taken = &self.rest()[..len];
        self.at += len;
        taken
    }

    fn skip_blanks(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            if c == ';' {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if c.is_whitespace() {
                self.at += c.len_utf8();
            } else {
                return;
            }
        }
    }

    fn token(&mut self) -> Result<Token<'t>, String> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if starts_word(first) {
            return Ok(Token::Word(self.word()));
        }
        if first.is_ascii_digit() {
            let len = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let text = self.take(len);
            if text.contains('w') {
                return text.parse().map(Token::Bits).map_err(|e| format!("{e}"));
            }
            return text.parse().map(Token::Number).map_err(|_| "a number is at most 64 bits long".into());
        }
        if first == '"' {
            return self.quoted();
        }
        match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            Some(sign) => {
                self.take(sign.len());
                Ok(Token::Sign(sign))
            }
            None => Err(format!("no token starts with {first:?}")),
        }
    }

    /// Letters, digits, `_`, `$`, single dots between them, and indices such as `[2]`.
    fn word(&mut self) -> &'t str {
        let bytes = self.rest().as_bytes();
        let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
        let mut len = 0;
        loop {
            let rest = &bytes[len..];
            match rest.first() {
                Some(b) if part(b) => len += 1,
                Some(b'.') if rest.get(1).is_some_and(part) => len += 1,
                Some(b'[') => {
                    let digits = rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
                    if digits == 0 || rest.get(1 + digits) != Some(&b']') {
                        break;
                    }
                    len += digits + 2;
                }
                _ => break,
            }
        }
        self.take(len)
    }

    fn quoted(&mut self) -> Result<Token<'t>, String> {
        self.next();
        let plain = self.rest().find(['"', '\\', '\n']).unwrap_or(self.rest().len());
        let start = self.take(plain);
        if self.rest().starts_with('"') {
            self.next();
            return Ok(Token::Quoted(start.into()));
        }
        let mut text = start.to_owned();
        loop {
            match self.next() {
                Some('"') => return Ok(Token::Quoted(text.into())),
                Some('\\') => text.push(self.escape()?),
                Some('\n') | None => return Err("a quoted text does not end".into()),
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        match self.next() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some(c @ ('"' | '\\')) => Ok(c),
            Some('u') if self.rest().starts_with('{') => {
                let digits = self.rest().find('}').filter(|end| *end <= 7).map(|end| self.take(end + 1));
                digits
                    .and_then(|d| u32::from_str_radix(d.get(1..d.len() - 1)?, 16).ok())
                    .and_then(char::from_u32)
                    .ok_or_else(|| "an escape is written as \\u{HEX}".into())
            }
            _ => Err("an escape is one of \\n \\t \\\" \\\\ \\u{HEX}".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Token<'_>> {
        tokens(text).unwrap().into_iter().map(|t| t.token).collect()
    }

    #[test]
    fn all_kinds() {
        assert_eq!(
            kinds("hdr.m[1].x[7:4] = 8w0xff .. 12 ; comment\n=>&&&\"a\\u{e9}\\n\" #3"),
            [
                Token::Word("hdr.m[1].x"),
                Token::Sign("["),
                Token::Number(7),
                Token::Sign(":"),
                Token::Number(4),
                Token::Sign("]"),
                Token::Sign("="),
                Token::Bits(Bits::new(8, 255)),
                Token::Sign(".."),
                Token::Number(12),
                Token::Sign("=>"),
                Token::Sign("&&&"),
                Token::Quoted("aé\n".into()),
                Token::Sign("#"),
                Token::Number(3),
                Token::End,
            ]
        );
    }

    #[test]
    fn places() {
        let all = tokens("a\n  é").unwrap_err();
        assert_eq!((all.line, all.column), (2, 3));
        for bad in [
            "\"abc",
            "\"\\q\"",
            "\"\\u{110000}\"",
            "\"\\u{}\"",
            "\"\\u{é}\"",
            "8w256",
            "99999999999999999999",
            "12ab",
        ] {
            assert!(tokens(bad).is_err(), "{bad}");
        }
    }
}
