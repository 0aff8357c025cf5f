//! The text form of a design: [`print()`] and [`parse`], file extension `.net`.
//!
//! It is exact: `parse(&print(d))` is `d` for every verified design that was built by [`crate::ModuleBuilder`] or parsed, and
//! printing what was parsed gives the printed text again. docs/dev/netlist.md describes the syntax. The parser takes designs that
//! are not well formed too, so that the verifier can be tested on them; it never panics, and says line and column of what it
//! does not understand.

mod cursor;
mod parse;
mod print;

pub use millrace_pipeline::text::ParseError;
pub use parse::parse;
pub use print::print;

use crate::*;
use std::fmt;

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// Gives an enumeration the words that stand for its variants in the text form.
macro_rules! words {
    ($ty:ident { $($variant:ident = $word:literal,)* }) => {
        impl $ty {
            /// All of them.
            pub const ALL: &[$ty] = &[$($ty::$variant,)*];

            /// The word in the text form.
            pub fn name(self) -> &'static str {
                match self { $($ty::$variant => $word,)* }
            }

            /// The one with that word.
            pub fn from_name(word: &str) -> Option<$ty> {
                $ty::ALL.iter().copied().find(|v| v.name() == word)
            }
        }
    };
}

words! { UnaryOp { Not = "not", ReduceAnd = "reduce_and", ReduceOr = "reduce_or", ReduceXor = "reduce_xor", } }

words! { BinaryOp {
    And = "and", Or = "or", Xor = "xor", Add = "add", Sub = "sub", Mul = "mul", Eq = "eq", Lt = "lt",
    LtSigned = "lt_signed", Shl = "shl", Shr = "shr", ShrSigned = "shr_signed",
} }

words! { Direction { In = "in", Out = "out", } }
