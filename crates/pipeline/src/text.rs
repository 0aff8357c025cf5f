//! The text form of a program: [`print()`] and [`parse`], file extension `.mir`.
//!
//! It is exact: `parse(&print(p))` is `p` for every verified program, and printing what was parsed gives the printed
//! text again. docs/dev/ir.md describes the syntax. The parser takes programs that are not well formed too, so that the
//! verifier can be tested on them; it never panics, and says line and column of what it does not understand.

mod lexer;
mod names;
mod parse;
mod parse_code;
mod parse_objects;
mod pieces;
mod print;
mod print_code;
mod print_objects;

pub use parse::parse;
pub use pieces::{print_expr, print_inst, print_matcher, print_name};
pub use print::print;

use crate::*;
use std::fmt;

/// Why a text is no program, or whatever else it is the form of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
    /// What was expected, or what is wrong.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for Program {
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

words! { UnaryOp { Not = "not", BitNot = "bit_not", Neg = "neg", } }

words! { BinaryOp {
    Add = "add", Sub = "sub", Mul = "mul", Div = "div", Mod = "mod",
    AddSat = "add_sat", SubSat = "sub_sat", AddSatSigned = "add_sat_signed", SubSatSigned = "sub_sat_signed",
    And = "and", Or = "or", Xor = "xor", Shl = "shl", Shr = "shr", ShrSigned = "shr_signed",
    Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", LtSigned = "lt_signed", LeSigned = "le_signed",
    BoolAnd = "bool_and", BoolOr = "bool_or",
} }

words! { BodyKind { Parser = "parser", Control = "control", Deparser = "deparser", Action = "action", } }

words! { Unit { Packets = "packets", Bytes = "bytes", PacketsAndBytes = "packets_and_bytes", Account = "account", } }

words! { MatchKind {
    Exact = "exact", Lpm = "lpm", Ternary = "ternary", Range = "range", Optional = "optional",
} }

words! { OnReject { Continue = "continue", Drop = "drop", PassOn = "pass_on", } }

words! { HashAlgorithm {
    Identity = "identity", Crc32 = "crc32", Crc32Custom = "crc32_custom", Crc16 = "crc16",
    Crc16Custom = "crc16_custom", CrcCcitt = "crc_ccitt", Csum16 = "csum16", Xor16 = "xor16",
    OnesComplementSum = "ones_complement_sum",
} }

#[cfg(test)]
mod tests {
    use super::*;

    /// The deepest expression that is allowed passes through everything on the stack of an ordinary thread.
    #[test]
    fn deepest_expression() {
        let depth = limits::MAX_EXPR_DEPTH - 1;
        let value = format!("{}x{}", "mux(b, 8w1, add(".repeat(depth / 2), ", 8w3))".repeat(depth / 2));
        let source = format!(
            "errors (NoError) metadata x: bit<8> metadata b: bool body control c {{ block0: x = {value} end }}"
        );
        let program = parse(&source).unwrap();
        assert_eq!(verify(&program), Ok(()));
        assert_eq!(parse(&print(&program)).as_ref(), Ok(&program));
        let block = &program.bodies[BodyId::from_u32(0)].blocks[BlockId::from_u32(0)];
        let Inst::Assign { value, .. } = &block.insts[0] else { panic!("an assignment") };
        assert_eq!(value.size(), depth / 2 * 5 + 1);
        let folded = fold::tree(value.clone(), &program);
        let one = semantics::Value::Bits(Bits::new(8, 1));
        let leaf = |leaf| match leaf {
            semantics::Leaf::Slot(slot) if slot.as_u32() == 0 => one.clone(),
            _ => semantics::Value::Bool(false),
        };
        // 255 times 3 and 1 more: 766 is 254 modulo 256.
        for expr in [value, &folded] {
            assert_eq!(semantics::evaluate(expr, &leaf), semantics::Value::Bits(Bits::new(8, 254)));
        }
    }
}
