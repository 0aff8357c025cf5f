//! What a stage computes, before it has a place in time: a graph of pure values without cycles.
//!
//! A [`Wire`] is one value of a fixed width. The constructors fold what is known, and give the same wire for the same
//! operation on the same operands, so that the if-converter may write the general form. A wire also knows a few things about its
//! value: which constants it may be ([`Graph::values`]) and how many of its lowest bits are 0. The first is
//! what bounds loops over header stacks, the second leaves out the places where a header cannot be.

mod known;

use crate::limits::{MAX_BITS, MAX_NODES};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use millrace_pipeline::{Bits, BodyId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of a fixed width.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wire(u32);
entity_impl!(Wire, "w");

/// How a value comes to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// A constant.
    Const(Bits),
    /// Bits of the frame, from that bit after its start on.
    Frame(u32),
    /// An input of the stage, by its number.
    Input(u32),
    /// A part of what a unit answered: the access and the bit of the answer, counted from its lowest.
    Answer(u32, u32),
    /// Of one value.
    Unary(Unary, Wire),
    /// Of two values.
    Binary(Binary, Wire, Wire),
    /// The bits of the first above those of the second.
    Concat(Wire, Wire),
    /// As many bits as the wire is wide, from that bit on.
    Slice(Wire, u32),
    /// The second value where the first is 1, else the third.
    Mux(Wire, Wire, Wire),
}

/// Operations of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unary {
    /// The complement of each bit.
    Not,
    /// Whether any bit is 1.
    Any,
    /// Whether an odd number of bits is 1.
    Parity,
}

/// Operations of two values of one width; the second of a shift has any width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    And,
    Or,
    Xor,
    Add,
    Sub,
    Mul,
    Eq,
    Lt,
    LtSigned,
    Shl,
    Shr,
    ShrSigned,
}

/// Constants that a wire may be, and when it is which.
pub(crate) type Cases = BTreeMap<u64, Wire>;

/// The most constants of a wire that are remembered.
const MAX_VALUES: usize = 24;

/// All wires of a stage.
#[derive(Clone)]
pub(crate) struct Graph {
    nodes: PrimaryMap<Wire, (Node, u32)>,
    same: FxHashMap<(Node, u32), Wire>,
    /// The constants that a wire may be, in order; none: it may be anything.
    values: SecondaryMap<Wire, Option<Arc<[u64]>>>,
    zeros: SecondaryMap<Wire, u32>,
    /// The body of the program that has a wire: the first that makes it.
    bodies: SecondaryMap<Wire, PackedOption<BodyId>>,
    /// The one that what follows is of.
    body: PackedOption<BodyId>,
    cases: FxHashMap<Wire, Option<Arc<Cases>>>,
    /// The widths of all wires together.
    bits: u64,
    overflow: bool,
    /// After the overflow, a wire of each width.
    spare: FxHashMap<u32, Wire>,
}

impl Graph {
    pub(crate) fn new() -> Graph {
        Graph {
            nodes: PrimaryMap::new(),
            same: FxHashMap::default(),
            values: SecondaryMap::new(),
            zeros: SecondaryMap::new(),
            bodies: SecondaryMap::new(),
            body: None.into(),
            cases: FxHashMap::default(),
            bits: 0,
            overflow: false,
            spare: FxHashMap::default(),
        }
    }

    /// What follows is of a parser, a control or a deparser, or is between them.
    pub(crate) fn set_body(&mut self, body: Option<BodyId>) {
        self.body = body.into();
    }

    /// The parser, control or deparser that has a wire. A value that several make is of the first of them.
    pub(crate) fn body(&self, wire: Wire) -> Option<BodyId> {
        self.bodies[wire].expand()
    }

    /// Whether there are more wires than [`MAX_NODES`], or more bits of them than [`MAX_BITS`]. The graph stops to grow there, and is of no use.
    pub(crate) fn is_full(&self) -> bool {
        self.overflow
    }

    /// All wires, operands before what uses them.
    pub(crate) fn wires(&self) -> impl DoubleEndedIterator<Item = Wire> + use<> {
        self.nodes.keys()
    }

    pub(crate) fn node(&self, wire: Wire) -> &Node {
        &self.nodes[wire].0
    }

    pub(crate) fn width(&self, wire: Wire) -> u32 {
        self.nodes[wire].1
    }

    pub(crate) fn constant(&self, wire: Wire) -> Option<&Bits> {
        match self.node(wire) {
            Node::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// The constants that a wire may be, when they are few and of at most 64 bits.
    pub(crate) fn values(&self, wire: Wire) -> Option<&[u64]> {
        self.values[wire].as_deref()
    }

    fn push(&mut self, node: Node, width: u32) -> Wire {
        debug_assert!(width > 0, "{node:?}");
        if let Some(known) = self.same.get(&(node.clone(), width)) {
            return *known;
        }
        self.bits += u64::from(width);
        if self.nodes.len() >= MAX_NODES || self.bits > MAX_BITS {
            self.overflow = true;
            // Any wire of the width will do in a graph that nobody uses.
            if let Some(wire) = self.spare.get(&width) {
                return *wire;
            }
        }
        let (values, zeros) = (self.values_of(&node, width), self.zeros_of(&node, width));
        let wire = self.nodes.push((node.clone(), width));
        self.same.insert((node, width), wire);
        self.values[wire] = values;
        self.zeros[wire] = zeros;
        self.bodies[wire] = self.body;
        if self.overflow {
            self.spare.insert(width, wire);
        }
        wire
    }

    /// How many of its lowest bits are known to be 0.
    pub(crate) fn zero_bits(&self, wire: Wire) -> u32 {
        self.zeros[wire]
    }

    pub(crate) fn bits(&mut self, bits: Bits) -> Wire {
        let width = bits.width();
        self.push(Node::Const(bits), width)
    }

    pub(crate) fn number(&mut self, width: u32, value: u64) -> Wire {
        self.bits(Bits::new(width, u128::from(value)))
    }

    pub(crate) fn bool(&mut self, value: bool) -> Wire {
        self.number(1, u64::from(value))
    }

    pub(crate) fn frame(&mut self, offset: u32, width: u32) -> Wire {
        self.push(Node::Frame(offset), width)
    }

    pub(crate) fn input(&mut self, number: u32, width: u32) -> Wire {
        self.push(Node::Input(number), width)
    }

    pub(crate) fn answer(&mut self, access: u32, low: u32, width: u32) -> Wire {
        self.push(Node::Answer(access, low), width)
    }

    pub(crate) fn is_true(&self, wire: Wire) -> bool {
        self.constant(wire).is_some_and(|bits| !bits.is_zero())
    }

    pub(crate) fn is_false(&self, wire: Wire) -> bool {
        self.constant(wire).is_some_and(Bits::is_zero)
    }

    pub(crate) fn not(&mut self, a: Wire) -> Wire {
        match self.node(a) {
            Node::Unary(Unary::Not, inner) => *inner,
            _ => self.unary(Unary::Not, a),
        }
    }

    pub(crate) fn unary(&mut self, op: Unary, a: Wire) -> Wire {
        if let Some(bits) = self.constant(a) {
            let folded = unary(op, bits);
            return self.bits(folded);
        }
        let width = match op {
            Unary::Not => self.width(a),
            Unary::Any | Unary::Parity => 1,
        };
        if width == 1 && self.width(a) == 1 && op != Unary::Not {
            return a;
        }
        self.push_decided(Node::Unary(op, a), width)
    }

    /// Adds a node; where its value can be one constant alone, that constant.
    fn push_decided(&mut self, node: Node, width: u32) -> Wire {
        let wire = self.push(node, width);
        match self.values(wire) {
            Some([only]) => {
                let only = *only;
                self.number(width, only)
            }
            _ => wire,
        }
    }

    pub(crate) fn any(&mut self, a: Wire) -> Wire {
        self.unary(Unary::Any, a)
    }

    pub(crate) fn and(&mut self, a: Wire, b: Wire) -> Wire {
        self.binary(Binary::And, a, b)
    }

    pub(crate) fn or(&mut self, a: Wire, b: Wire) -> Wire {
        if self.width(a) == 1
            && let Some(joined) = self.halves(a, b)
        {
            return joined;
        }
        self.binary(Binary::Or, a, b)
    }

    /// `(p & c) | (p & !c)` is `p`: where the two sides of a branch meet again.
    pub(crate) fn halves(&mut self, a: Wire, b: Wire) -> Option<Wire> {
        let is_not = |x: Wire, y: Wire, graph: &Graph| {
            matches!(graph.node(x), Node::Unary(Unary::Not, inner) if *inner == y)
                || matches!(graph.node(y), Node::Unary(Unary::Not, inner) if *inner == x)
        };
        if is_not(a, b, self) {
            return Some(self.bool(true));
        }
        let (Node::Binary(Binary::And, p, c), Node::Binary(Binary::And, q, d)) = (self.node(a), self.node(b))
        else {
            return None;
        };
        let sides = [(*p, *c), (*c, *p)];
        let others = [(*q, *d), (*d, *q)];
        sides
            .iter()
            .flat_map(|one| others.iter().map(move |other| (one, other)))
            .find_map(|((p, c), (q, d))| (p == q && is_not(*c, *d, self)).then_some(*p))
    }

    pub(crate) fn eq(&mut self, a: Wire, b: Wire) -> Wire {
        self.binary(Binary::Eq, a, b)
    }

    pub(crate) fn lt(&mut self, a: Wire, b: Wire) -> Wire {
        self.binary(Binary::Lt, a, b)
    }

    pub(crate) fn add(&mut self, a: Wire, b: Wire) -> Wire {
        self.binary(Binary::Add, a, b)
    }

    /// A sum, as a tree: of no terms none.
    pub(crate) fn sum(&mut self, terms: Vec<Wire>) -> Option<Wire> {
        self.tree(terms, Graph::add)
    }

    /// One value after the other, the first one highest.
    pub(crate) fn concat_all(&mut self, parts: Vec<Wire>) -> Option<Wire> {
        self.tree(parts, Graph::concat)
    }

    /// An operation of many values as a tree; the order of the values stays.
    pub(crate) fn tree(
        &mut self,
        mut terms: Vec<Wire>,
        of: impl Fn(&mut Graph, Wire, Wire) -> Wire,
    ) -> Option<Wire> {
        while terms.len() > 1 {
            terms = terms
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => of(self, *a, *b),
                    _ => pair[0],
                })
                .collect();
        }
        terms.pop()
    }

    /// The value whose condition holds, of values of which one does.
    pub(crate) fn one_of(&mut self, values: &[(Wire, Wire)]) -> Option<Wire> {
        /// Of more a chain of choices is longer than a tree.
        const CHAIN: usize = 4;
        let (_, last) = values.last()?;
        if values.len() <= CHAIN {
            let rest = values.iter().rev().skip(1);
            return Some(rest.fold(*last, |rest, (when, value)| self.mux(*when, *value, rest)));
        }
        let zero = self.number(self.width(*last), 0);
        let terms = values.iter().map(|(when, value)| self.mux(*when, *value, zero)).collect();
        self.tree(terms, Graph::or)
    }

    pub(crate) fn equals(&mut self, a: Wire, value: u64) -> Wire {
        let value = self.number(self.width(a), value);
        self.eq(a, value)
    }

    pub(crate) fn binary(&mut self, op: Binary, a: Wire, b: Wire) -> Wire {
        use Binary::*;
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            let folded = binary(op, x, y);
            return self.bits(folded);
        }
        let width = self.width(a);
        // Constants of commutative operations stand on the right.
        let (a, b) = match op {
            And | Or | Xor | Add | Mul | Eq
                if self.constant(a).is_some() || (self.constant(b).is_none() && a > b) =>
            {
                (b, a)
            }
            _ => (a, b),
        };
        let zero = self.constant(b).is_some_and(Bits::is_zero);
        let ones = self.constant(b).is_some_and(Bits::is_ones);
        match op {
            And | Mul if zero => return b,
            And if ones => return a,
            Or | Xor | Add | Sub | Shl | Shr | ShrSigned if zero => return a,
            Or if ones => return b,
            Xor if ones => return self.not(a),
            And | Or if a == b => return a,
            Sub | Xor if a == b => return self.number(width, 0),
            Eq if a == b => return self.bool(true),
            Lt | LtSigned if a == b => return self.bool(false),
            Lt if zero => return self.bool(false),
            Eq if width == 1 && ones => return a,
            Eq if width == 1 && zero => return self.not(a),
            Mul if self.constant(b).and_then(Bits::to_u64) == Some(1) => return a,
            And | Or if width == 1 => {
                let opposite = matches!(self.node(a), Node::Unary(Unary::Not, inner) if *inner == b)
                    || matches!(self.node(b), Node::Unary(Unary::Not, inner) if *inner == a);
                if opposite {
                    return self.bool(op == Or);
                }
            }
            Eq => {
                // The lowest bits of one are 0 where the constant has a 1.
                let odd = self.constant(b).is_some_and(|bits| (0..self.zeros[a]).any(|bit| bits.bit(bit)));
                if odd {
                    return self.bool(false);
                }
            }
            _ => {}
        }
        if let (Shl | Shr, Some(by)) = (op, self.constant(b)) {
            return self.shift_by(op, a, by.to_u64_saturating());
        }
        if op == Mul
            && let Some(value) = self.constant(b)
            && let Some(bit) = power_of_two(value)
        {
            return self.shift_by(Shl, a, u64::from(bit));
        }
        let result = match op {
            Eq | Lt | LtSigned => 1,
            _ => width,
        };
        self.push_decided(Node::Binary(op, a, b), result)
    }

    /// A shift by a constant is wiring.
    fn shift_by(&mut self, op: Binary, a: Wire, by: u64) -> Wire {
        let width = self.width(a);
        if by >= u64::from(width) {
            return self.number(width, 0);
        }
        let by = by as u32;
        if by == 0 {
            return a;
        }
        let zeros = self.number(by, 0);
        match op {
            Binary::Shl => {
                let kept = self.slice(a, width - by - 1, 0);
                self.concat(kept, zeros)
            }
            _ => {
                let kept = self.slice(a, width - 1, by);
                self.concat(zeros, kept)
            }
        }
    }

    pub(crate) fn concat(&mut self, high: Wire, low: Wire) -> Wire {
        let width = self.width(high) + self.width(low);
        match (self.node(high), self.node(low)) {
            (Node::Const(a), Node::Const(b)) => {
                let folded = a.concat(b);
                return self.bits(folded);
            }
            (Node::Slice(of, from), Node::Slice(other, to))
                if of == other && to + self.width(low) == *from =>
            {
                let (of, to) = (*of, *to);
                return self.slice(of, to + width - 1, to);
            }
            (Node::Frame(from), Node::Frame(to)) if from + self.width(high) == *to => {
                let from = *from;
                return self.frame(from, width);
            }
            _ => {}
        }
        self.push_decided(Node::Concat(high, low), width)
    }

    /// Bits `high` down to `low`.
    pub(crate) fn slice(&mut self, a: Wire, high: u32, low: u32) -> Wire {
        let (width, whole) = (high - low + 1, self.width(a));
        if width == whole {
            return a;
        }
        match *self.node(a) {
            Node::Const(ref bits) => {
                let folded = bits.slice(high, low);
                return self.bits(folded);
            }
            Node::Slice(of, inner) => return self.slice(of, high + inner, low + inner),
            Node::Frame(offset) => return self.frame(offset + (whole - 1 - high), width),
            Node::Answer(access, inner) => return self.answer(access, inner + low, width),
            Node::Concat(upper, lower) => {
                let border = self.width(lower);
                if low >= border {
                    return self.slice(upper, high - border, low - border);
                }
                if high < border {
                    return self.slice(lower, high, low);
                }
                let (upper, lower) =
                    (self.slice(upper, high - border, 0), self.slice(lower, border - 1, low));
                return self.concat(upper, lower);
            }
            _ => {}
        }
        self.push_decided(Node::Slice(a, low), width)
    }

    /// Cut, or widened with zeros.
    pub(crate) fn zero_extend(&mut self, a: Wire, width: u32) -> Wire {
        let has = self.width(a);
        if width <= has {
            return self.slice(a, width - 1, 0);
        }
        let zeros = self.number(width - has, 0);
        self.concat(zeros, a)
    }

    /// Cut, or widened with the sign.
    pub(crate) fn sign_extend(&mut self, a: Wire, width: u32) -> Wire {
        let has = self.width(a);
        if width <= has {
            return self.slice(a, width - 1, 0);
        }
        let sign = self.slice(a, has - 1, has - 1);
        let (ones, zeros) = (self.bits(Bits::ones(width - has)), self.number(width - has, 0));
        let copies = self.mux(sign, ones, zeros);
        self.concat(copies, a)
    }

    /// Cut from the right, or widened with zeros on the right.
    pub(crate) fn left_fit(&mut self, a: Wire, width: u32) -> Wire {
        let has = self.width(a);
        if width <= has {
            return self.slice(a, has - 1, has - width);
        }
        let zeros = self.number(width - has, 0);
        self.concat(a, zeros)
    }

    pub(crate) fn mux(&mut self, cond: Wire, then: Wire, els: Wire) -> Wire {
        if then == els || self.is_true(cond) {
            return then;
        }
        if self.is_false(cond) {
            return els;
        }
        if let Node::Unary(Unary::Not, inner) = *self.node(cond) {
            return self.mux(inner, els, then);
        }
        let width = self.width(then);
        if width == 1 {
            if self.is_true(then) {
                return self.or(cond, els);
            }
            if self.is_false(then) {
                let not = self.not(cond);
                return self.and(not, els);
            }
            if self.is_false(els) {
                return self.and(cond, then);
            }
            if self.is_true(els) {
                let not = self.not(cond);
                return self.or(not, then);
            }
        }
        // The same condition twice.
        let then = match *self.node(then) {
            Node::Mux(other, inner, _) if other == cond => inner,
            _ => then,
        };
        let els = match *self.node(els) {
            Node::Mux(other, _, inner) if other == cond => inner,
            _ => els,
        };
        if then == els {
            return then;
        }
        self.push_decided(Node::Mux(cond, then, els), width)
    }
}

/// The bit of a number that has one alone.
fn power_of_two(value: &Bits) -> Option<u32> {
    let mut ones = (0..value.width()).filter(|bit| value.bit(*bit));
    let first = ones.next()?;
    ones.next().is_none().then_some(first)
}

#[cfg(test)]
impl Unary {
    /// What it gives.
    pub(crate) fn evaluate(self, a: &Bits) -> Bits {
        unary(self, a)
    }
}

#[cfg(test)]
impl Binary {
    /// What it gives.
    pub(crate) fn evaluate(self, a: &Bits, b: &Bits) -> Bits {
        binary(self, a, b)
    }
}

fn unary(op: Unary, a: &Bits) -> Bits {
    let bit = |holds: bool| Bits::new(1, u128::from(holds));
    match op {
        Unary::Not => a.bit_not(),
        Unary::Any => bit(!a.is_zero()),
        Unary::Parity => bit(a.limbs().fold(0, |all, limb| all ^ limb).count_ones() % 2 == 1),
    }
}

fn binary(op: Binary, a: &Bits, b: &Bits) -> Bits {
    let bit = |holds: bool| Bits::new(1, u128::from(holds));
    match op {
        Binary::And => a.and(b),
        Binary::Or => a.or(b),
        Binary::Xor => a.xor(b),
        Binary::Add => a.add(b),
        Binary::Sub => a.sub(b),
        Binary::Mul => a.mul(b),
        Binary::Eq => bit(a == b),
        Binary::Lt => bit(a.cmp_unsigned(b).is_lt()),
        Binary::LtSigned => bit(a.cmp_signed(b).is_lt()),
        Binary::Shl => a.shl(b),
        Binary::Shr => a.shr(b),
        Binary::ShrSigned => a.shr_signed(b),
    }
}

impl Node {
    /// Calls `visit` with each operand, in order.
    pub(crate) fn operands(&self, mut visit: impl FnMut(Wire)) {
        match self {
            Node::Const(_) | Node::Frame(_) | Node::Input(_) | Node::Answer(..) => {}
            Node::Unary(_, a) | Node::Slice(a, _) => visit(*a),
            Node::Binary(_, a, b) | Node::Concat(a, b) => {
                visit(*a);
                visit(*b);
            }
            Node::Mux(cond, a, b) => {
                visit(*cond);
                visit(*a);
                visit(*b);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_folded() {
        let mut g = Graph::new();
        let (cond, x) = (g.input(0, 1), g.input(1, 8));
        let (one, two) = (g.number(8, 1), g.number(8, 2));
        // 1 or 2 is never 3, and always less than 3.
        let either = g.mux(cond, one, two);
        let never = g.equals(either, 3);
        assert!(g.is_false(never));
        let three = g.number(8, 3);
        let always = g.lt(either, three);
        assert!(g.is_true(always));
        let sum = g.add(either, one);
        assert_eq!(g.values(sum), Some([2, 3].as_slice()));
        // The lowest bits of a multiple of 4 are 0.
        let shifted = g.binary(Binary::Shl, x, two);
        let odd = g.equals(shifted, 5);
        assert!(g.is_false(odd));
        // Bits of a concatenation are those of its parts.
        let both = g.concat(x, one);
        assert_eq!(g.slice(both, 15, 8), x);
        assert_eq!(g.slice(both, 7, 0), one);
        // The two sides of a branch are the branch.
        let (p, c) = (g.input(2, 1), g.input(3, 1));
        let not = g.not(c);
        let (then, els) = (g.and(p, c), g.and(p, not));
        assert_eq!(g.or(then, els), p);
    }

    #[test]
    fn cases_have_conditions() {
        let mut g = Graph::new();
        let cond = g.input(0, 1);
        let (a, b) = (g.number(32, 112), g.number(32, 144));
        let place = g.mux(cond, a, b);
        let more = g.number(32, 16);
        let place = g.add(place, more);
        let cases = g.cases(place).unwrap();
        assert_eq!(cases.keys().copied().collect::<Vec<_>>(), [128, 160]);
        assert_eq!(cases[&128], cond);
        let anything = g.input(1, 32);
        assert_eq!(g.cases(anything), None);
    }
}
