//! Values as words: the graph of what has to be computed, each value in words of 64 bits.
//!
//! A value of more than 64 bits is a list of words, the lowest first, and an operation on it becomes operations on words. So the
//! machine knows no width but that of a word, and what only moves whole words, as slices and concatenations at multiples of 64 bits
//! do, costs nothing. Bits of a word above the width of what it holds are 0: this is the one invariant of the machine, each
//! operation relies on it and keeps it. Equal words are the same word.

use rustc_hash::FxHashMap;

/// The number of a word in the graph.
pub(super) type Word = u32;

/// What computes a word, from `a`, `b` and `c`: words unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Code {
    /// Nothing: the word is state, an input or a constant, with the number `a` among those.
    State,
    Constant,
    /// Part of what [`Code::Wide`] gives: word `b` of the operation with the number `a`.
    Part,
    /// An operation on values of many words, with the number `a` in a list of their own.
    Wide,
    /// `c` is 64 less the width.
    Not,
    And,
    Or,
    Xor,
    /// `c` is 64 less the width, in sums, differences and products.
    Add,
    Sub,
    Mul,
    /// A sum with a carry: `a + b + c` modulo 2^64.
    AddCarry,
    /// Whether `a + b + c` is 2^64 or more, `c` being 0 or 1.
    Carry,
    Eq,
    Lt,
    /// `a < b`, or `a == b` and `c`: a comparison that goes on in higher words.
    LtOr,
    /// `c` is 64 less the width.
    LtSigned,
    /// `c` is 64 less the width, in shifts.
    Shl,
    Shr,
    ShrSigned,
    /// `c` is 64 less the width.
    Repeat,
    NotZero,
    Parity,
    /// `a` ? `b` : `c`.
    Mux,
    /// `a` with bits of `b` at a place where `a` has zeros; `c` is a [`field`].
    Insert,
    /// Word `c` of the word at address `a` of memory `b`.
    Read,
}

/// Bits of a word and where they go: from bit `from`, `count` of them, to bit `to`.
pub(super) fn field(from: u32, count: u32, to: u32) -> u32 {
    from | (count << 8) | (to << 16)
}

/// What [`field`] has packed, applied: the bits at their new place.
#[inline(always)]
pub(super) fn moved(word: u64, field: u32) -> u64 {
    let (from, count, to) = (field & 63, (field >> 8) & 127, (field >> 16) & 63);
    ((word >> from) & (u64::MAX >> (64 - count))) << to
}

/// A word of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) code: Code,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

impl Node {
    /// Calls `visit` with each word that this depends on; those of [`Code::Wide`] are elsewhere.
    pub(super) fn operands(&self, mut visit: impl FnMut(Word)) {
        use Code::*;
        let count = match self.code {
            State | Constant | Part | Wide => 0,
            Not | Repeat | NotZero | Parity | Read => 1,
            And | Or | Xor | Add | Sub | Mul | Eq | Lt | LtSigned | Shl | Shr | ShrSigned | Insert => 2,
            AddCarry | Carry | LtOr | Mux => 3,
        };
        [self.a, self.b, self.c].into_iter().take(count).for_each(&mut visit);
    }
}

/// The graph. A word comes after those it depends on.
#[derive(Default)]
pub(super) struct Words {
    pub(super) nodes: Vec<Node>,
    /// The values of constants, by the `a` of their words.
    pub(super) constants: Vec<u64>,
    widths: Vec<u8>,
    shared: FxHashMap<Node, Word>,
    known: FxHashMap<u64, Word>,
}

impl Words {
    /// The word of that node: the one that is there, or a new one.
    pub(super) fn push(&mut self, code: Code, [a, b, c]: [u32; 3], width: u32) -> Word {
        let node = Node { code, a, b, c };
        if let Some(word) = self.shared.get(&node) {
            return *word;
        }
        let word = self.nodes.len() as Word;
        self.nodes.push(node);
        self.widths.push(width as u8);
        self.shared.insert(node, word);
        word
    }

    /// A constant word.
    pub(super) fn constant(&mut self, value: u64) -> Word {
        if let Some(word) = self.known.get(&value) {
            return *word;
        }
        let at = self.constants.len() as u32;
        self.constants.push(value);
        let word = self.push(Code::Constant, [at, 0, 0], 64 - value.leading_zeros());
        self.known.insert(value, word);
        word
    }

    fn value(&self, word: Word) -> Option<u64> {
        let node = self.nodes[word as usize];
        (node.code == Code::Constant).then(|| self.constants[node.a as usize])
    }

    /// `base`, which has zeros there, with `count` bits of `word` from bit `from` on at bit `to`.
    pub(super) fn insert(&mut self, base: Word, word: Word, from: u32, count: u32, to: u32) -> Word {
        // What is above the width of a word is 0 anyway.
        let has = u32::from(self.widths[word as usize]);
        let (mut word, mut from, count) = (word, from, count.min(has.saturating_sub(from)));
        if count == 0 {
            return base;
        }
        let base_value = self.value(base);
        if base_value == Some(0) && from == 0 && to == 0 && count == has {
            return word;
        }
        if let (Some(base), Some(value)) = (base_value, self.value(word)) {
            return self.constant(base | moved(value, field(from, count, to)));
        }
        // Bits of a word that are bits of another from its bit 0 on come from there.
        let node = self.nodes[word as usize];
        if node.code == Code::Insert && self.value(node.a) == Some(0) && node.c >> 16 == 0 {
            (word, from) = (node.b, from + (node.c & 63));
        }
        let width = (to + count).max(u32::from(self.widths[base as usize]));
        self.push(Code::Insert, [base, word, field(from, count, to)], width)
    }

    /// A chosen word, folded where that is plain.
    pub(super) fn mux(&mut self, select: Word, a: Word, b: Word, width: u32) -> Word {
        match self.value(select) {
            Some(0) => b,
            Some(_) => a,
            None if a == b => a,
            None => self.push(Code::Mux, [select, a, b], width),
        }
    }
}
