//! The words of protobuf text.

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// The name of a field or of a value of an enumeration, `true`, `false`.
    Word(&'a str),
    /// A number without its sign.
    Number(&'a str),
    /// What stands in quotes, without escapes.
    String(Vec<u8>),
    Symbol(u8),
    End,
}

/// A text, and how far it is read.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The next word, after spaces and comments, with the place where it begins.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), String> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'#' => self.at += self.while_(|byte| byte != b'\n'),
                byte if byte.is_ascii_whitespace() || *byte == 0x0b => self.at += 1,
                _ => break,
            }
        }
        let from = self.at;
        let Some(&first) = bytes.get(from) else { return Ok((from, Token::End)) };
        let token = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.at += self.while_(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                Token::Word(&self.text[from..self.at])
            }
            b'0'..=b'9' | b'.' => {
                self.at += self.while_(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
                Token::Number(&self.text[from..self.at])
            }
            b'"' | b'\'' => {
                self.at += 1;
                Token::String(self.string(first)?)
            }
            byte if byte.is_ascii_graphic() => {
                self.at += 1;
                Token::Symbol(byte)
            }
            _ => return Err(self.error(from, "a character that has no meaning there")),
        };
        Ok((from, token))
    }

    /// What stands before the bracket that closes; it is read after one that opens.
    pub(super) fn bracketed(&mut self) -> Result<&'a str, String> {
        let from = self.at;
        let length = self.while_(|byte| byte != b']' && byte != b'\n');
        self.at += length;
        if self.text.as_bytes().get(self.at) != Some(&b']') {
            return Err(self.error(from, "`]` is missing"));
        }
        self.at += 1;
        Ok(self.text[from..from + length].trim())
    }

    /// What is wrong, with its line and column.
    pub(super) fn error(&self, at: usize, what: &str) -> String {
        let before = &self.text.as_bytes()[..at];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        format!("{line}:{column}: {what}")
    }

    /// How many bytes follow that are of a kind.
    fn while_(&self, is: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter().position(|byte| !is(*byte)).unwrap_or(rest.len())
    }

    /// The bytes of a text up to the quote that closes it.
    fn string(&mut self, quote: u8) -> Result<Vec<u8>, String> {
        let from = self.at - 1;
        let mut bytes = Vec::new();
        loop {
            let length = self.while_(|byte| ![quote, b'\\', b'\n'].contains(&byte));
            bytes.extend_from_slice(&self.text.as_bytes()[self.at..self.at + length]);
            self.at += length;
            match self.text.as_bytes().get(self.at) {
                Some(b'\\') => self.escape(&mut bytes)?,
                Some(byte) if *byte == quote => {
                    self.at += 1;
                    return Ok(bytes);
                }
                _ => return Err(self.error(from, "the text has no quote at its end")),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), String> {
        let from = self.at;
        let wrong = |lexer: &Lexer<'_>| lexer.error(from, "no such escape");
        let letter = *self.text.as_bytes().get(from + 1).ok_or_else(|| wrong(self))?;
        self.at += 2;
        bytes.push(match letter {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'"' | b'\'' | b'\\' | b'?' => letter,
            b'0'..=b'7' => {
                self.at -= 1;
                let number = self.digits(8, 1..=3).ok_or_else(|| wrong(self))?;
                u8::try_from(number).map_err(|_| wrong(self))?
            }
            b'x' | b'X' => self.digits(16, 1..=2).ok_or_else(|| wrong(self))? as u8,
            b'u' | b'U' => {
                let length = if letter == b'u' { 4 } else { 8 };
                let number = self.digits(16, length..=length).ok_or_else(|| wrong(self))?;
                let character = char::from_u32(number).ok_or_else(|| wrong(self))?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(wrong(self)),
        });
        Ok(())
    }

    /// A number of so many digits.
    fn digits(&mut self, radix: u32, lengths: std::ops::RangeInclusive<usize>) -> Option<u32> {
        let length = self.while_(|byte| char::from(byte).is_digit(radix)).min(*lengths.end());
        let digits = &self.text[self.at..self.at + length];
        self.at += length;
        u32::from_str_radix(digits, radix).ok().filter(|_| lengths.contains(&length))
    }
}
