//! Words of the source text as small numbers.
//!
//! Every identifier, keyword and literal spelling is stored once; tokens carry a [`Symbol`]. Keywords have the first
//! numbers, so that asking for one is comparing integers.

use foldhash::{HashMap, HashMapExt};

use crate::ast::Text;

/// A spelling in an [`Interner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol(pub(crate) u32);

macro_rules! keywords {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// The keywords of P4_16 as symbols. Some may also be used as names, see [`Symbol::is_name`].
        pub(crate) mod kw {
            use super::Symbol;
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Index { $($name),* }
            $(pub(crate) const $name: Symbol = Symbol(Index::$name as u32);)*
        }
        const KEYWORDS: &[&str] = &[$($text),*];
    };
}

keywords! {
    // These may be used as names. So may `actions`, `entries` and `key`, which are read by their text in tables.
    APPLY = "apply", LIST = "list", PRIORITY = "priority", STATE = "state", TYPE = "type",
    // These are reserved.
    ABSTRACT = "abstract", ACTION = "action", BIT = "bit", BOOL = "bool", BREAK = "break", CONST = "const",
    CONTINUE = "continue", CONTROL = "control", DEFAULT = "default", ELSE = "else", ENUM = "enum", ERROR = "error",
    EXIT = "exit", EXTERN = "extern", FALSE = "false", FOR = "for", HEADER = "header",
    HEADER_UNION = "header_union", IF = "if", IN = "in", INOUT = "inout", INT = "int",
    MATCH_KIND = "match_kind", OUT = "out", PACKAGE = "package", PARSER = "parser", RETURN = "return",
    SELECT = "select", STRING = "string", STRUCT = "struct", SWITCH = "switch", TABLE = "table", THIS = "this",
    TRANSITION = "transition", TRUE = "true", TUPLE = "tuple", TYPEDEF = "typedef", VALUE_SET = "value_set",
    VARBIT = "varbit", VOID = "void",
    // Not keywords, but asked for by the preprocessor and for annotations.
    PRAGMA = "pragma", DEFINED = "defined", VA_ARGS = "__VA_ARGS__", LINE = "__LINE__", FILE = "__FILE__",
}

impl Symbol {
    /// The spelling of tokens that need none: symbols and the end.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Whether the word may name something: an identifier, or a keyword that the grammar also allows as a name.
    pub(crate) fn is_name(self) -> bool {
        !self.is_reserved()
    }

    /// Whether the word is a keyword that can never be a name.
    pub(crate) fn is_reserved(self) -> bool {
        self >= kw::ABSTRACT && self <= kw::VOID
    }
}

/// Stores each spelling once.
#[derive(Debug)]
pub(crate) struct Interner {
    symbols: HashMap<Text, Symbol>,
    texts: Vec<Text>,
    empty: Text,
}

impl Interner {
    /// Holds the keywords.
    pub(crate) fn new() -> Self {
        let mut interner =
            Self { symbols: HashMap::with_capacity(1024), texts: Vec::with_capacity(1024), empty: "".into() };
        for keyword in KEYWORDS {
            interner.intern(keyword);
        }
        interner
    }

    /// The symbol of a spelling.
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.symbols.get(text) {
            return symbol;
        }
        let symbol = Symbol(self.texts.len() as u32);
        let text: Text = text.into();
        self.texts.push(text.clone());
        self.symbols.insert(text, symbol);
        symbol
    }

    /// The spelling of a symbol.
    pub(crate) fn text(&self, symbol: Symbol) -> &Text {
        self.texts.get(symbol.0 as usize).unwrap_or(&self.empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_come_first_and_some_are_names() {
        let mut interner = Interner::new();
        assert_eq!(interner.intern("apply"), kw::APPLY);
        assert_eq!(interner.intern("__FILE__"), kw::FILE);
        assert!(kw::APPLY.is_name() && kw::TYPE.is_name() && kw::LIST.is_name() && kw::PRAGMA.is_name());
        assert!(!kw::VOID.is_name() && !kw::ABSTRACT.is_name() && !kw::IN.is_name());
        let x = interner.intern("x");
        assert!(x.is_name());
        assert_eq!(interner.intern("x"), x);
        assert_eq!(&**interner.text(x), "x");
    }
}
