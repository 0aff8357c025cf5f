//! The parser: from tokens to the syntax tree.
//!
//! Recursive descent over the grammar of P4_16 1.2.5. After an error it goes on at the next place that looks like the
//! start of something (see [`recovery`]), so one run reports all errors. The height of the tree is bounded by
//! [`MAX_NESTING`], checked both where the parser descends and where loops (operators, member accesses) build up
//! height on the left.
//!
//! The grammar needs to know types from values in a few places: casts, and `<` in expressions. For these the parser
//! keeps the declared names by scope ([`scope`]); everything else is told apart by looking ahead ([`lookahead`]).

mod annotations;
mod blocks;
mod declarations;
mod expressions;
mod keysets;
mod lookahead;
mod recovery;
mod scope;
mod statements;
mod tables;
mod type_declarations;
mod types;

use std::ops::{Deref, DerefMut};

use crate::ast::{ExprId, Name, Path, Program};
use crate::cursor::{Cursor, Failed, Parse, Wording};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intern::{Interner, Symbol, kw};
use crate::token::{Token, TokenKind};
use crate::{MAX_LEVELS, MAX_NESTING};

use scope::{Meaning, Scopes};

/// Parses a whole program. The last token must be `Eof`.
pub(crate) fn parse(tokens: Vec<Token>, interner: &Interner, diagnostics: &mut Diagnostics) -> Program {
    let mut parser = Parser {
        cursor: Cursor::new(tokens, interner, diagnostics, Wording { has_keywords: true, hint }),
        scopes: Scopes::new(),
        depth: 0,
        levels: 0,
        height: 0,
        inner_height: Height::default(),
        in_angles: false,
        next_expr: 0,
    };
    let declarations = parser.program();
    Program { declarations, expr_count: parser.next_expr, height: parser.height }
}

/// The height of an expression.
#[derive(Clone, Copy, Debug, Default)]
struct Height {
    /// As who writes it sees it: what stands on the left of an operator is not inside of it.
    nesting: usize,
    /// In nodes.
    levels: usize,
}

impl Height {
    /// Of an expression with nothing inside.
    const LEAF: Height = Height { nesting: 1, levels: 1 };

    fn max(self, other: Height) -> Height {
        Height { nesting: self.nesting.max(other.nesting), levels: self.levels.max(other.levels) }
    }

    /// Of an expression around one of this height.
    fn around(self) -> Height {
        Height { nesting: self.nesting + 1, levels: self.levels + 1 }
    }

    /// Of a chain of operators of this height when one more with a right operand follows.
    fn followed_by(self, right: Height) -> Height {
        Height { nesting: self.nesting.max(right.nesting + 1), levels: self.levels.max(right.levels) + 1 }
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    scopes: Scopes,
    /// How many constructs are being parsed inside each other.
    depth: usize,
    /// The same with the branches of `else if`.
    levels: usize,
    /// The greatest height of a tree so far.
    height: usize,
    /// The greatest height of the expressions inside of the one being parsed, in arguments, indices and so on.
    inner_height: Height,
    /// In `bit<...>` outside of all brackets, where `>` ends the expression.
    in_angles: bool,
    next_expr: u32,
}

impl<'a> Deref for Parser<'a> {
    type Target = Cursor<'a>;

    fn deref(&self) -> &Cursor<'a> {
        &self.cursor
    }
}

impl DerefMut for Parser<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cursor
    }
}

impl Parser<'_> {
    fn at_word(&self, word: Symbol) -> bool {
        self.peek().is_word(word)
    }

    fn eat_word(&mut self, word: Symbol) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    fn expect_word(&mut self, word: Symbol) -> Parse<Token> {
        if self.at_word(word) {
            return Ok(self.bump());
        }
        let text = self.interner.text(word).clone();
        Err(self.unexpected(&format!("`{text}`")))
    }

    /// A name; `what` says of what, for the error.
    fn name(&mut self, what: &str) -> Parse<Name> {
        let token = self.peek();
        if token.is_name() {
            self.check_name(token)?;
            self.bump();
            return Ok(self.name_of(token));
        }
        Err(self.unexpected(what))
    }

    fn name_of(&self, token: Token) -> Name {
        Name { text: self.interner.text(token.text).clone(), span: token.span }
    }

    /// The name of something being declared, known in the scope at hand from now on.
    fn declared_name(&mut self, meaning: Meaning, what: &str) -> Parse<Name> {
        let symbol = self.peek().text;
        let name = self.name(what)?;
        self.scopes.declare(symbol, meaning);
        Ok(name)
    }

    /// A name, possibly with a leading dot.
    fn path(&mut self, what: &str) -> Parse<Path> {
        let start = self.peek().span;
        let absolute = self.eat(TokenKind::Dot);
        let mut name = self.name(what)?;
        name.span = start.to(name.span);
        Ok(Path { absolute, name })
    }

    fn expr_id(&mut self) -> ExprId {
        let id = ExprId(self.next_expr);
        self.next_expr += 1;
        id
    }

    /// Parses something one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_NESTING {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = self.lower(parse);
        self.depth -= 1;
        result
    }

    /// Parses something one level further from the root, though no deeper to who wrote it.
    fn lower<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.reach(1)?;
        self.levels += 1;
        let result = parse(self);
        self.levels -= 1;
        result
    }

    /// Notes that the tree goes on for so many levels from here.
    fn reach(&mut self, levels: usize) -> Parse<()> {
        let height = self.levels + levels;
        if height > MAX_LEVELS {
            let span = self.peek().span;
            let message = format!("this is a chain of more than {MAX_LEVELS} operators or branches");
            return Err(self.report(Diagnostic::error("limit", span, message).with_label("here")));
        }
        self.height = self.height.max(height);
        Ok(())
    }

    /// Parses something with a scope of its own.
    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.scopes.push();
        let result = parse(self);
        self.scopes.pop();
        result
    }

    fn too_deep(&mut self) -> Failed {
        let span = self.peek().span;
        let message = format!("this is nested more than {MAX_NESTING} levels deep");
        self.report(Diagnostic::error("limit", span, message).with_label("here"))
    }

    /// Items between separators up to a closing token, which is not taken. An empty list is fine.
    fn list<T>(
        &mut self,
        close: TokenKind,
        trailing_comma: bool,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        if self.at(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(TokenKind::Comma) {
                return Ok(items);
            }
            if trailing_comma && self.at(close) {
                return Ok(items);
            }
        }
    }

    /// Whether the word at hand is a type that needs no declaration.
    fn at_builtin_type(&self) -> bool {
        is_builtin_type(self.peek())
            // `error.NoMatch` is a value.
            && !(self.at_word(kw::ERROR) && self.nth(1).kind == TokenKind::Dot)
    }
}

/// What is most likely meant by a token that cannot stand where it does.
fn hint(cursor: &Cursor<'_>, token: Token, expected: &str) -> Option<String> {
    let spelling = token.spelling(cursor.interner);
    let names = expected.ends_with("name");
    Some(match token.kind {
        TokenKind::Word if names && token.text.is_reserved() => {
            format!("`{spelling}` is a keyword and cannot be a name")
        }
        TokenKind::DontCare if names => "`_` cannot be a name".into(),
        TokenKind::DontCare => {
            "`_` stands for any value in sets of values, and for arguments left out".into()
        }
        TokenKind::Word if expected == "an expression" && is_builtin_type(token) => {
            "a cast has its type in parentheses: `(bit<8>) value`".into()
        }
        TokenKind::Gt if cursor.previous().kind == TokenKind::Gt => "`>>` is written without a space".into(),
        TokenKind::EqEq if expected.starts_with("`=`") => "`=` assigns, `==` compares".into(),
        TokenKind::Assign if expected == "`)`" => "`==` compares, `=` assigns".into(),
        TokenKind::Int if expected == "a member's name" => {
            "addresses are written as numbers: 10.0.0.1 is `0x0a000001`".into()
        }
        TokenKind::Concat if expected.starts_with("`=`") => "write `x = x + 1`; `++` joins bits".into(),
        TokenKind::LBrace if expected == "`;`" && follows_call_of(cursor, "while") => {
            "P4 has no `while`: `for (bit<8> i = 0; i < 3; i = i + 1) { ... }` repeats in controls, and a parser goes back to \
             one of its states"
                .into()
        }
        TokenKind::RBrace | TokenKind::RParen if cursor.previous().kind == TokenKind::Comma => {
            "leave out the `,` before it".into()
        }
        _ => return None,
    })
}

/// Whether what stands before the token at hand looks like a call of that name.
fn follows_call_of(cursor: &Cursor<'_>, name: &str) -> bool {
    let mut open = 0usize;
    for back in (0..cursor.pos).rev() {
        let token = cursor.tokens[back];
        match token.kind {
            TokenKind::RParen => open += 1,
            TokenKind::LParen if open > 1 => open -= 1,
            TokenKind::LParen => {
                return open == 1 && back > 0 && cursor.tokens[back - 1].spelling(cursor.interner) == name;
            }
            TokenKind::Semicolon | TokenKind::LBrace | TokenKind::RBrace => return false,
            _ => {}
        }
    }
    false
}

/// Whether a word is a type that needs no declaration.
fn is_builtin_type(token: Token) -> bool {
    const TYPES: [Symbol; 9] =
        [kw::BIT, kw::BOOL, kw::INT, kw::STRING, kw::VARBIT, kw::TUPLE, kw::VOID, kw::ERROR, kw::MATCH_KIND];
    token.kind == TokenKind::Word && TYPES.contains(&token.text)
}

#[cfg(test)]
mod tests;
