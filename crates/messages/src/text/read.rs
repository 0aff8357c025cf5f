//! From text to a message.
//!
//! The text becomes protobuf's binary form, which prost decodes: fields are looked up by name in the tables, and no message needs
//! code of its own.

use super::lexer::{Lexer, Token};
use crate::schema::{Described, Field, Kind, Message};
use crate::view::{ANY, of_url};
use prost::encoding::{WireType, encode_key, encode_varint};

/// How deep messages may stand in one another; prost decodes no deeper ones.
pub const MAX_DEPTH: usize = 100;

/// Reads a message.
///
/// # Errors
/// What is wrong with the text, with line and column.
pub fn read<M: Described>(text: &str) -> Result<M, String> {
    let mut lexer = Lexer::new(text);
    let (at, next) = lexer.next()?;
    let bytes = Reader { lexer, at, next, depth: 0 }.message(M::MESSAGE, Token::End)?;
    M::decode(&*bytes).map_err(|error| error.to_string())
}

struct Reader<'a> {
    lexer: Lexer<'a>,
    /// The word that is next, and where it begins.
    next: Token<'a>,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The fields of a message, up to the word that ends it.
    fn message(&mut self, message: &'static Message, end: Token<'_>) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let mut seen: Vec<&'static Field> = Vec::new();
        while self.next != end {
            if self.next == Token::Symbol(b'[') && message.name == ANY {
                self.any(&mut bytes)?;
            } else {
                let Token::Word(name) = self.next else {
                    return Err(self.wrong("the name of a field is expected there"));
                };
                let field = message.fields.iter().find(|field| field.name == name);
                let field =
                    field.ok_or_else(|| self.wrong(&format!("{} has no field `{name}`", message.name)))?;
                let other = seen.iter().find(|other| {
                    other.number == field.number || (field.oneof.is_some() && other.oneof == field.oneof)
                });
                match other {
                    Some(other) if other.number == field.number => {
                        return Err(self.wrong(&format!("`{name}` may be there once")));
                    }
                    Some(other) => {
                        return Err(
                            self.wrong(&format!("`{name}` cannot be there together with `{}`", other.name))
                        );
                    }
                    None => {}
                }
                if !field.is_list {
                    seen.push(field);
                }
                self.advance()?;
                self.field(field, &mut bytes)?;
            }
            if matches!(self.next, Token::Symbol(b',' | b';')) {
                self.advance()?;
            }
        }
        if self.depth > 0 {
            self.advance()?;
        }
        Ok(bytes)
    }

    /// What stands after the name of a field.
    fn field(&mut self, field: &'static Field, bytes: &mut Vec<u8>) -> Result<(), String> {
        if self.next == Token::Symbol(b':') {
            self.advance()?;
        } else if !matches!(field.kind, Kind::Message(_)) {
            return Err(self.wrong(&format!("`:` is expected after `{}`", field.name)));
        }
        if self.next != Token::Symbol(b'[') || !field.is_list {
            return self.value(field, bytes);
        }
        self.advance()?;
        while self.next != Token::Symbol(b']') {
            self.value(field, bytes)?;
            match self.next {
                Token::Symbol(b',') => {
                    self.advance()?;
                    if self.next == Token::Symbol(b']') {
                        return Err(self.wrong("a value is expected after `,`"));
                    }
                }
                Token::Symbol(b']') => {}
                _ => return Err(self.wrong("`,` or `]` is expected there")),
            }
        }
        self.advance()
    }

    fn value(&mut self, field: &'static Field, bytes: &mut Vec<u8>) -> Result<(), String> {
        let number = match field.kind {
            Kind::Message(message) => {
                let inside = self.inner(message)?;
                put(field.number, &inside, bytes);
                return Ok(());
            }
            Kind::String | Kind::Bytes => {
                let at = self.at;
                let text = self.string()?;
                if matches!(field.kind, Kind::String) && std::str::from_utf8(&text).is_err() {
                    return Err(self.lexer.error(at, &format!("`{}` is not UTF-8", field.name)));
                }
                put(field.number, &text, bytes);
                return Ok(());
            }
            // Negative numbers have the bits of those with 64.
            Kind::Int32 => self.integer(i32::MIN.into(), i32::MAX.into())?,
            Kind::Int64 => self.integer(i64::MIN.into(), i64::MAX.into())?,
            Kind::Uint32 => self.integer(0, u32::MAX.into())?,
            Kind::Uint64 => self.integer(0, u64::MAX.into())?,
            Kind::Bool => {
                let value = match self.next {
                    Token::Word("true" | "True" | "t") => 1,
                    Token::Word("false" | "False" | "f") => 0,
                    _ => return self.integer(0, 1).map(|value| put_number(field, value, bytes)),
                };
                self.advance()?;
                value
            }
            Kind::Enum(values) => match self.next {
                Token::Word(name) => {
                    let value = values.iter().find(|(known, _)| *known == name);
                    let (_, value) =
                        value.ok_or_else(|| self.wrong(&format!("`{}` cannot be `{name}`", field.name)))?;
                    self.advance()?;
                    i64::from(*value) as u64
                }
                _ => self.integer(i32::MIN.into(), i32::MAX.into())?,
            },
        };
        put_number(field, number, bytes);
        Ok(())
    }

    /// A message within another, with its braces.
    fn inner(&mut self, message: &'static Message) -> Result<Vec<u8>, String> {
        let end = match self.next {
            Token::Symbol(b'{') => b'}',
            Token::Symbol(b'<') => b'>',
            _ => return Err(self.wrong("`{` is expected there")),
        };
        if self.depth == MAX_DEPTH {
            return Err(self.wrong(&format!("more than {MAX_DEPTH} messages stand in one another")));
        }
        self.depth += 1;
        self.advance()?;
        let bytes = self.message(message, Token::Symbol(end));
        self.depth -= 1;
        bytes
    }

    /// `[type.googleapis.com/p4.v1.Update] { ... }` within a `google.protobuf.Any`.
    fn any(&mut self, bytes: &mut Vec<u8>) -> Result<(), String> {
        if !bytes.is_empty() {
            return Err(self.wrong("the google.protobuf.Any holds something already"));
        }
        let url = self.lexer.bracketed()?;
        let message =
            of_url(url).ok_or_else(|| self.wrong(&format!("no message of type `{url}` is known")))?;
        self.advance()?;
        if self.next == Token::Symbol(b':') {
            self.advance()?;
        }
        let inside = self.inner(message)?;
        put(1, url.as_bytes(), bytes);
        put(2, &inside, bytes);
        Ok(())
    }

    /// Texts that stand one after another are one.
    fn string(&mut self) -> Result<Vec<u8>, String> {
        let mut text: Option<Vec<u8>> = None;
        while let Token::String(part) = &mut self.next {
            text.get_or_insert_default().append(part);
            self.advance()?;
        }
        text.ok_or_else(|| self.wrong("a text in quotes is expected there"))
    }

    /// The bits of a number: decimal, hexadecimal or octal.
    fn integer(&mut self, least: i128, most: i128) -> Result<u64, String> {
        let at = self.at;
        let is_negative = self.next == Token::Symbol(b'-');
        if is_negative {
            self.advance()?;
        }
        let Token::Number(digits) = self.next else { return Err(self.wrong("a number is expected there")) };
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        let value = u64::from_str_radix(digits, radix).ok().map(i128::from);
        let value = value.map(|value| if is_negative { -value } else { value });
        let value = value.filter(|value| (least..=most).contains(value)).ok_or_else(|| {
            self.lexer.error(at, &format!("a whole number from {least} to {most} is expected there"))
        })?;
        self.advance()?;
        Ok(value as u64)
    }

    fn advance(&mut self) -> Result<(), String> {
        (self.at, self.next) = self.lexer.next()?;
        Ok(())
    }

    /// What is wrong with the word that is next.
    fn wrong(&self, what: &str) -> String {
        match self.next {
            Token::End => self.lexer.error(self.at, "the text ends in the middle"),
            _ => self.lexer.error(self.at, what),
        }
    }
}

fn put(number: u32, inside: &[u8], bytes: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, bytes);
    encode_varint(inside.len() as u64, bytes);
    bytes.extend_from_slice(inside);
}

fn put_number(field: &Field, value: u64, bytes: &mut Vec<u8>) {
    encode_key(field.number, WireType::Varint, bytes);
    encode_varint(value, bytes);
}
