//! The grammar of an expression: terms with `and`, `or` and `not`, as pcap-filter(7) has it.

use super::layers::Layers;
use super::primitive::{Qualifiers, Value, primitive};
use super::relation;
use super::tree::Node;
use super::words::{Kind, Word};
use crate::error::TextError;
use std::ops::Range;

/// Most parentheses and negations in each other.
pub const MAX_NESTING: usize = 64;

pub(super) struct Parser<'a> {
    text: &'a str,
    words: Vec<Word>,
    at: usize,
    depth: usize,
    pub(super) layers: Layers,
    /// The qualifiers of the primitive before, which a value without any has too.
    last: Option<Qualifiers>,
}

pub(super) type Parsed<T> = Result<T, TextError>;

/// The tree of an expression; one without words selects all frames.
pub(super) fn parse(text: &str, words: Vec<Word>) -> Parsed<Node> {
    let mut parser = Parser { text, words, at: 0, depth: 0, layers: Layers::new(), last: None };
    if parser.word().kind == Kind::End {
        return Ok(Node::Always(true));
    }
    let node = parser.expression()?;
    match parser.word().kind {
        Kind::End => Ok(node),
        _ => Err(parser.wrong("`and`, `or` or the end was expected")),
    }
}

impl Parser<'_> {
    pub(super) fn word(&self) -> &Word {
        self.ahead(0)
    }

    /// The word after so many others; the last one is an end.
    pub(super) fn ahead(&self, words: usize) -> &Word {
        &self.words[(self.at + words).min(self.words.len() - 1)]
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// An error at the next word.
    pub(super) fn wrong(&self, message: impl Into<String>) -> TextError {
        TextError::new(self.text, self.word().at.clone(), message)
    }

    /// An error at the words since one.
    pub(super) fn wrong_since(&self, start: usize, message: impl Into<String>) -> TextError {
        TextError::new(self.text, self.since(start), message)
    }

    fn since(&self, start: usize) -> Range<usize> {
        let last = self.words[..self.at.min(self.words.len())].last();
        start..last.map_or(start, |word| word.at.end.max(start))
    }

    /// The name that comes next, if it is no value.
    pub(super) fn name(&self) -> Option<&str> {
        name_of(self.word())
    }

    pub(super) fn name_ahead(&self, words: usize) -> Option<&str> {
        name_of(self.ahead(words))
    }

    pub(super) fn takes_name(&mut self, name: &str) -> bool {
        let takes = self.name() == Some(name);
        self.at += usize::from(takes);
        takes
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.word().kind, Kind::Sign(next) if next == sign)
    }

    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let takes = self.is_sign(sign);
        self.at += usize::from(takes);
        takes
    }

    pub(super) fn expects(&mut self, sign: &str) -> Parsed<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.wrong(format!("`{sign}` was expected"))) }
    }

    /// One level further down.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_NESTING {
            let message =
                format!("an expression has at most {MAX_NESTING} parentheses or negations in each other");
            return Err(self.wrong(message));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// `and` and `or` bind equally, from left to right.
    fn expression(&mut self) -> Parsed<Node> {
        let first = Self::term;
        self.joined(first)
    }

    fn joined(&mut self, part: impl Fn(&mut Self) -> Parsed<Node>) -> Parsed<Node> {
        let mut node = part(self)?;
        loop {
            if self.takes_name("and") || self.takes("&&") {
                node = node.and(part(self)?);
            } else if self.takes_name("or") || self.takes("||") {
                node = node.or(part(self)?);
            } else {
                return Ok(node);
            }
        }
    }

    fn takes_not(&mut self) -> bool {
        self.takes_name("not") || self.takes("!")
    }

    fn term(&mut self) -> Parsed<Node> {
        if self.takes_not() {
            return Ok(self.nested(Self::term)?.not());
        }
        if relation::begins(self) {
            self.last = None;
            return relation::relation(self);
        }
        if self.takes("(") {
            let node = self.nested(Self::expression)?;
            self.expects(")")?;
            return Ok(node);
        }
        if let Some(value) = Value::next(self)
            && let Some(qualifiers) = self.last
        {
            return self.value(qualifiers, value);
        }
        let (qualifiers, node) = primitive(self)?;
        self.last = qualifiers;
        match (node, qualifiers) {
            (Some(node), _) => Ok(node),
            (None, Some(qualifiers)) => self.values(qualifiers),
            (None, None) => {
                Err(self.wrong("a primitive was expected, as `host`, `net`, `port`, `tcp` or `vlan`"))
            }
        }
    }

    /// What follows qualifiers: a value, or several in parentheses.
    fn values(&mut self, qualifiers: Qualifiers) -> Parsed<Node> {
        if self.takes_not() {
            return Ok(self.nested(|parser| parser.values(qualifiers))?.not());
        }
        if self.takes("(") {
            let node = self.nested(|parser| parser.joined(|parser| parser.values(qualifiers)))?;
            self.expects(")")?;
            return Ok(node);
        }
        match Value::next(self) {
            Some(value) => self.value(qualifiers, value),
            None => Err(self.wrong(format!("{} was expected", qualifiers.expected()))),
        }
    }

    fn value(&mut self, qualifiers: Qualifiers, value: Value) -> Parsed<Node> {
        let start = self.word().at.start;
        for _ in 0..value.words() {
            self.advance();
        }
        qualifiers.of(self.layers, &value).map_err(|message| self.wrong_since(start, message))
    }
}

fn name_of(word: &Word) -> Option<&str> {
    match &word.kind {
        Kind::Name { name, is_escaped: false } => Some(name),
        _ => None,
    }
}
