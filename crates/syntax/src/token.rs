//! Tokens, as the lexer makes them and the parser reads them.

use crate::intern::{Interner, Symbol};
use crate::span::Span;

/// One token. Small and `Copy`: the preprocessor moves many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The first token on its line.
    pub(crate) starts_line: bool,
    /// White space or a comment stands in front.
    pub(crate) spaced: bool,
    /// A macro name that must stay: it came out of that macro's own expansion.
    pub(crate) no_expand: bool,
    /// The spelling.
    pub(crate) text: Symbol,
    pub(crate) span: Span,
}

macro_rules! symbols {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// What kind of token.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum TokenKind {
            /// End of the program.
            Eof,
            /// Identifier or keyword.
            Word,
            /// Integer literal, not yet checked.
            Int,
            /// String literal with its quotes.
            Str,
            /// A character that no token begins with.
            Unknown,
            /// Nothing, where a macro argument was empty next to `##`.
            Empty,
            $(#[doc = $text] $name),*
        }

        impl TokenKind {
            /// The spelling of symbols; empty for the other kinds.
            pub(crate) fn symbol(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    _ => "",
                }
            }

            /// The symbols, longer ones before their prefixes.
            pub(crate) const SYMBOLS: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

// `>>` is not here: two closing angle brackets of nested type arguments look the same. The expression parser joins two
// adjacent `>`.
symbols! {
    SatAddAssign = "|+|=", SatSubAssign = "|-|=",
    InvalidHeader = "{#}", SatAdd = "|+|", SatSub = "|-|", Mask = "&&&", Dots = "...", ShlAssign = "<<=",
    ShrAssign = ">>=",
    MulAssign = "*=", DivAssign = "/=", ModAssign = "%=", AddAssign = "+=", SubAssign = "-=", AndAssign = "&=",
    OrAssign = "|=", XorAssign = "^=", Le = "<=", Ge = ">=", Shl = "<<", AndAnd = "&&", OrOr = "||", EqEq = "==",
    NotEq = "!=", Concat = "++", DotDot = "..", HashHash = "##",
    Plus = "+", Minus = "-", Star = "*", Slash = "/", Percent = "%", Pipe = "|", Amp = "&", Caret = "^",
    Tilde = "~", LBracket = "[", RBracket = "]", LBrace = "{", RBrace = "}", Lt = "<", Gt = ">", Not = "!",
    Colon = ":", Comma = ",", Question = "?", Dot = ".", Assign = "=", Semicolon = ";", At = "@", LParen = "(",
    RParen = ")", Hash = "#", DontCare = "_",
}

impl Token {
    /// As written.
    pub(crate) fn spelling<'a>(&self, interner: &'a Interner) -> &'a str {
        match self.kind.symbol() {
            "" => interner.text(self.text),
            symbol => symbol,
        }
    }

    /// Whether it is this word.
    pub(crate) fn is_word(&self, symbol: Symbol) -> bool {
        self.kind == TokenKind::Word && self.text == symbol
    }

    /// Whether it can be a name.
    pub(crate) fn is_name(&self) -> bool {
        self.kind == TokenKind::Word && self.text.is_name()
    }
}
