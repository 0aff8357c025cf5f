//! Operations that are made of others.

use super::ModuleBuilder;
use crate::{BinaryOp, NodeId, UnaryOp};

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, a: NodeId) -> NodeId {
            self.unary(UnaryOp::$op, a)
        }
    )*};
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&mut self, a: NodeId, b: NodeId) -> NodeId {
            self.binary(BinaryOp::$op, a, b)
        }
    )*};
}

impl ModuleBuilder {
    unary! {
        /// The complement of each bit.
        not = Not;
        /// Whether all bits are 1.
        reduce_and = ReduceAnd;
        /// Whether any bit is 1.
        reduce_or = ReduceOr;
        /// Whether an odd number of bits is 1.
        reduce_xor = ReduceXor;
    }

    binary! {
        /// Both, bit by bit.
        and = And;
        /// Either, bit by bit.
        or = Or;
        /// One alone, bit by bit.
        xor = Xor;
        /// The sum, modulo 2 to the power of the width.
        add = Add;
        /// The difference, modulo 2 to the power of the width.
        sub = Sub;
        /// The product, modulo 2 to the power of the width.
        mul = Mul;
        /// Whether they are equal.
        eq = Eq;
        /// Whether the first is less, as unsigned numbers.
        lt = Lt;
        /// Whether the first is less, in two's complement.
        lt_signed = LtSigned;
        /// To higher bits by an amount of any width.
        shl = Shl;
        /// To lower bits by an amount of any width; zeros come in.
        shr = Shr;
        /// To lower bits by an amount of any width; copies of the highest bit come in.
        shr_signed = ShrSigned;
    }

    /// Whether they differ.
    #[track_caller]
    pub fn ne(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let equal = self.eq(a, b);
        self.not(equal)
    }

    /// Whether the first is less or equal, as unsigned numbers.
    #[track_caller]
    pub fn le(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let greater = self.lt(b, a);
        self.not(greater)
    }

    /// Whether the first is less or equal, in two's complement.
    #[track_caller]
    pub fn le_signed(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let greater = self.lt_signed(b, a);
        self.not(greater)
    }

    /// Whether a value is a number.
    pub fn is(&mut self, a: NodeId, value: u128) -> NodeId {
        let value = self.number(self.width(a), value);
        self.eq(a, value)
    }

    /// The sum of a value and a number.
    pub fn add_number(&mut self, a: NodeId, value: u128) -> NodeId {
        let value = self.number(self.width(a), value);
        self.add(a, value)
    }

    /// To higher bits by a number of bits; 0 from the width on.
    pub fn shl_by(&mut self, a: NodeId, by: u32) -> NodeId {
        let width = self.width(a);
        match by {
            0 => a,
            _ if by >= width => self.number(width, 0),
            _ => {
                let kept = self.slice(a, 0, width - by);
                let zeros = self.number(by, 0);
                self.concat(&[kept, zeros])
            }
        }
    }

    /// To lower bits by a number of bits; 0 from the width on.
    pub fn shr_by(&mut self, a: NodeId, by: u32) -> NodeId {
        let width = self.width(a);
        match by {
            0 => a,
            _ if by >= width => self.number(width, 0),
            _ => {
                let kept = self.slice(a, by, width - by);
                let zeros = self.number(by, 0);
                self.concat(&[zeros, kept])
            }
        }
    }

    /// A value cut, or widened with zeros, to a width.
    pub fn resize(&mut self, a: NodeId, width: u32) -> NodeId {
        let has = self.width(a);
        if width <= has {
            return self.slice(a, 0, width);
        }
        let zeros = self.number(width - has, 0);
        self.concat(&[zeros, a])
    }

    /// A value cut, or widened with copies of its highest bit, to a width.
    pub fn resize_signed(&mut self, a: NodeId, width: u32) -> NodeId {
        let has = self.width(a);
        if width <= has {
            return self.slice(a, 0, width);
        }
        let sign = self.slice(a, has - 1, 1);
        let copies = self.repeat(sign, width - has);
        self.concat(&[copies, a])
    }

    /// One bit of a value.
    #[track_caller]
    pub fn bit(&mut self, a: NodeId, index: u32) -> NodeId {
        self.slice(a, index, 1)
    }

    /// A value with some bits, from `low` on, replaced by another.
    #[track_caller]
    pub fn with_slice(&mut self, a: NodeId, low: u32, part: NodeId) -> NodeId {
        let (width, end) = (self.width(a), low + self.width(part));
        let mut parts = Vec::new();
        if end < width {
            parts.push(self.slice(a, end, width - end));
        }
        parts.push(part);
        if low > 0 {
            parts.push(self.slice(a, 0, low));
        }
        self.concat(&parts)
    }

    /// All of some bits as one by an operation that may be done in any order: a tree of the least depth, so that many
    /// operands make a short path. `empty` if there are none.
    pub fn tree(&mut self, op: BinaryOp, values: &[NodeId], empty: NodeId) -> NodeId {
        let mut level = values.to_vec();
        while level.len() > 1 {
            let mut next = Vec::with_capacity(level.len().div_ceil(2));
            for pair in level.chunks(2) {
                next.push(match pair {
                    [a, b] => self.binary(op, *a, *b),
                    rest => rest[0],
                });
            }
            level = next;
        }
        level.first().copied().unwrap_or(empty)
    }

    /// Whether all of some bits are 1.
    pub fn all(&mut self, bits: &[NodeId]) -> NodeId {
        let empty = self.number(1, 1);
        self.tree(BinaryOp::And, bits, empty)
    }

    /// Whether any of some bits is 1.
    pub fn any(&mut self, bits: &[NodeId]) -> NodeId {
        let empty = self.number(1, 0);
        self.tree(BinaryOp::Or, bits, empty)
    }

    /// The value whose bit is 1, when at most one is; 0 when none is. When several are, the "or" of their values.
    pub fn one_hot(&mut self, width: u32, choices: &[(NodeId, NodeId)]) -> NodeId {
        let mut masked = Vec::with_capacity(choices.len());
        for (bit, value) in choices {
            let mask = self.repeat(*bit, width);
            masked.push(self.and(mask, *value));
        }
        let empty = self.number(width, 0);
        self.tree(BinaryOp::Or, &masked, empty)
    }

    /// The value of the first choice whose bit is 1, else `otherwise`.
    #[track_caller]
    pub fn first(&mut self, choices: &[(NodeId, NodeId)], otherwise: NodeId) -> NodeId {
        choices.iter().rev().fold(otherwise, |rest, (bit, value)| self.mux(*bit, *value, rest))
    }

    /// Whether the bit of any choice is 1, and the value of the first such choice; without one any value. A tree of choices, so that many make
    /// a short path. None: there are no choices.
    #[track_caller]
    pub fn first_found(&mut self, choices: &[(NodeId, NodeId)]) -> Option<(NodeId, NodeId)> {
        let mut level = choices.to_vec();
        while level.len() > 1 {
            let pair = |pair: &[(NodeId, NodeId)]| match *pair {
                [(first, one), (second, other)] => (self.or(first, second), self.mux(first, one, other)),
                _ => pair[0],
            };
            level = level.chunks(2).map(pair).collect();
        }
        level.first().copied()
    }

    /// The value with the number `index`, a tree of choices by its bits; the last one for all numbers from there on.
    ///
    /// # Panics
    /// There are no values.
    #[track_caller]
    pub fn choose(&mut self, index: NodeId, values: &[NodeId]) -> NodeId {
        let last = *values.last().expect("values to choose from");
        let mut level = values.to_vec();
        let mut bit = 0;
        while level.len() > 1 && bit < self.width(index) {
            let select = self.bit(index, bit);
            let mut next = Vec::with_capacity(level.len().div_ceil(2));
            for pair in level.chunks(2) {
                // The last one also stands for the numbers after it.
                next.push(self.mux(select, *pair.get(1).unwrap_or(&last), pair[0]));
            }
            (level, bit) = (next, bit + 1);
        }
        let chosen = level[0];
        if bit >= self.width(index) {
            return chosen;
        }
        let rest = self.slice(index, bit, self.width(index) - bit);
        let beyond = self.reduce_or(rest);
        self.mux(beyond, last, chosen)
    }
}
