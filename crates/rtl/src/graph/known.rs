//! What is known of a wire's value without the frame: constants that it may be, and when it is which; lowest bits that are 0; the
//! largest number that it may be.

use super::{Binary, Cases, Graph, MAX_VALUES, Node, Unary, Wire, binary, unary};
use crate::limits::MAX_CASES;
use millrace_pipeline::Bits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Graph {
    pub(super) fn zeros_of(&self, node: &Node, width: u32) -> u32 {
        let zeros = match node {
            Node::Const(bits) => (0..width).take_while(|bit| !bits.bit(*bit)).count() as u32,
            Node::Concat(high, low) => match self.zeros[*low] {
                all if all == self.width(*low) => all + self.zeros[*high],
                some => some,
            },
            Node::Slice(of, low) => self.zeros[*of].saturating_sub(*low),
            Node::Mux(_, a, b) => self.zeros[*a].min(self.zeros[*b]),
            Node::Binary(Binary::And, a, b) => self.zeros[*a].max(self.zeros[*b]),
            Node::Binary(Binary::Or | Binary::Xor | Binary::Add | Binary::Sub, a, b) => {
                self.zeros[*a].min(self.zeros[*b])
            }
            Node::Binary(Binary::Mul, a, b) => self.zeros[*a].saturating_add(self.zeros[*b]),
            Node::Binary(Binary::Shl, a, by) => {
                let by =
                    self.constant(*by).map_or(0, |by| by.to_u64_saturating().min(u64::from(width)) as u32);
                self.zeros[*a].saturating_add(by)
            }
            _ => 0,
        };
        zeros.min(width)
    }

    pub(super) fn values_of(&self, node: &Node, width: u32) -> Option<Arc<[u64]>> {
        if width > 64 {
            return None;
        }
        let mut found: Vec<u64> = match node {
            Node::Const(bits) => vec![bits.to_u64()?],
            Node::Mux(_, a, b) => self.values(*a)?.iter().chain(self.values(*b)?).copied().collect(),
            Node::Unary(op, a) => {
                let wide = self.width(*a);
                let one = |value: &u64| unary(*op, &Bits::new(wide, u128::from(*value))).to_u64();
                self.values(*a)?.iter().map(one).collect::<Option<Vec<_>>>()?
            }
            Node::Slice(a, low) => {
                let wide = self.width(*a);
                let one =
                    |value: &u64| Bits::new(wide, u128::from(*value)).slice(low + width - 1, *low).to_u64();
                self.values(*a)?.iter().map(one).collect::<Option<Vec<_>>>()?
            }
            Node::Binary(op, a, b) => {
                let both = |x: &Bits, y: &Bits| binary(*op, x, y);
                self.pairs(*a, *b, both)?
            }
            Node::Concat(a, b) => self.pairs(*a, *b, |x, y| x.concat(y))?,
            _ => return None,
        };
        found.sort_unstable();
        found.dedup();
        (found.len() <= MAX_VALUES).then(|| found.into())
    }

    fn pairs(&self, a: Wire, b: Wire, of: impl Fn(&Bits, &Bits) -> Bits) -> Option<Vec<u64>> {
        let (left, right) = (self.values(a)?, self.values(b)?);
        if left.len() * right.len() > MAX_VALUES * 4 {
            return None;
        }
        let mut found = Vec::new();
        for x in left {
            for y in right {
                let (x, y) =
                    (Bits::new(self.width(a), u128::from(*x)), Bits::new(self.width(b), u128::from(*y)));
                found.push(of(&x, &y).to_u64()?);
            }
        }
        Some(found)
    }

    /// The constants that a wire may be, each with the condition under which it is; none when they are more than [`MAX_CASES`] or
    /// the wire may be anything.
    pub(crate) fn cases(&mut self, wire: Wire) -> Option<Arc<Cases>> {
        self.cases_within(wire, 256)
    }

    fn cases_within(&mut self, wire: Wire, depth: u32) -> Option<Arc<Cases>> {
        if let Some(known) = self.cases.get(&wire) {
            return known.clone();
        }
        if depth == 0 || self.width(wire) > 64 {
            return None;
        }
        let depth = depth - 1;
        let width = self.width(wire);
        let found = match self.node(wire).clone() {
            Node::Const(bits) => {
                let always = self.bool(true);
                bits.to_u64().map(|value| Cases::from([(value, always)]))
            }
            Node::Mux(cond, a, b) => self.cases_of_mux(cond, a, b, depth),
            Node::Unary(op, a) => self.cases_of_one(a, depth, |bits| unary(op, bits)),
            Node::Slice(a, low) => self.cases_of_one(a, depth, |bits| bits.slice(low + width - 1, low)),
            Node::Binary(op, a, b) => self.cases_of_two(a, b, depth, |x, y| binary(op, x, y)),
            Node::Concat(a, b) => self.cases_of_two(a, b, depth, |x, y| x.concat(y)),
            Node::Frame(_) | Node::Input(_) | Node::Answer(..) => None,
        };
        let found = found.filter(|cases| cases.len() <= MAX_CASES).map(Arc::new);
        self.cases.insert(wire, found.clone());
        found
    }

    fn cases_of_mux(&mut self, cond: Wire, a: Wire, b: Wire, depth: u32) -> Option<Cases> {
        let (then, els) = (self.cases_within(a, depth)?, self.cases_within(b, depth)?);
        let not = self.not(cond);
        let mut cases = Cases::new();
        for (side, of) in [(cond, then), (not, els)] {
            for (value, when) in of.iter() {
                let when = self.and(side, *when);
                self.add_case(&mut cases, *value, when);
            }
        }
        Some(cases)
    }

    fn cases_of_one(&mut self, a: Wire, depth: u32, of: impl Fn(&Bits) -> Bits) -> Option<Cases> {
        let (wide, inner) = (self.width(a), self.cases_within(a, depth)?);
        let mut cases = Cases::new();
        for (value, when) in inner.iter() {
            let value = of(&Bits::new(wide, u128::from(*value))).to_u64()?;
            self.add_case(&mut cases, value, *when);
        }
        Some(cases)
    }

    fn cases_of_two(
        &mut self,
        a: Wire,
        b: Wire,
        depth: u32,
        of: impl Fn(&Bits, &Bits) -> Bits,
    ) -> Option<Cases> {
        let (left, right) = (self.cases_within(a, depth)?, self.cases_within(b, depth)?);
        if left.len() * right.len() > MAX_CASES * 8 {
            return None;
        }
        let (wide, narrow) = (self.width(a), self.width(b));
        let mut cases = Cases::new();
        for (x, when) in left.iter() {
            for (y, also) in right.iter() {
                let when = self.and(*when, *also);
                let (x, y) = (Bits::new(wide, u128::from(*x)), Bits::new(narrow, u128::from(*y)));
                self.add_case(&mut cases, of(&x, &y).to_u64()?, when);
            }
        }
        Some(cases)
    }

    pub(crate) fn add_case(&mut self, cases: &mut Cases, value: u64, when: Wire) {
        if self.is_false(when) {
            return;
        }
        let joined = match cases.get(&value) {
            Some(other) => self.or(*other, when),
            None => when,
        };
        cases.insert(value, joined);
    }

    /// The wire that is one of the constants, of which exactly one has a condition that holds.
    pub(crate) fn of_cases(&mut self, width: u32, cases: &Cases) -> Wire {
        if cases.len() > MAX_VALUES {
            let values: Vec<_> =
                cases.iter().map(|(value, when)| (*when, self.number(width, *value))).collect();
            return self.one_of(&values).unwrap_or_else(|| self.number(width, 0));
        }
        let mut wire = None;
        for (value, when) in cases.iter().rev() {
            let value = self.number(width, *value);
            wire = Some(match wire {
                None => value,
                Some(rest) => self.mux(*when, value, rest),
            });
        }
        wire.unwrap_or_else(|| self.number(width, 0))
    }

    /// Bits from the lowest one up to the highest that may be 1, as far as is plain, where these inputs are 0.
    pub(crate) fn used_bits(&self, wire: Wire, zeros: &BTreeSet<usize>) -> u32 {
        const DEPTH: u32 = 64;
        self.used_bits_within(wire, zeros, DEPTH)
    }

    fn used_bits_within(&self, wire: Wire, zeros: &BTreeSet<usize>, depth: u32) -> u32 {
        let width = self.width(wire);
        if depth == 0 {
            return width;
        }
        let of = |wire: &Wire| self.used_bits_within(*wire, zeros, depth - 1);
        if let Some(values) = self.values(wire) {
            let most = values.iter().copied().max().unwrap_or(0);
            return u64::BITS - most.leading_zeros();
        }
        match self.node(wire) {
            Node::Input(number) if zeros.contains(&(*number as usize)) => 0,
            Node::Const(bits) => (0..width).rev().find(|bit| bits.bit(*bit)).map_or(0, |bit| bit + 1),
            Node::Concat(high, low) => match of(high) {
                0 => of(low),
                some => self.width(*low) + some,
            },
            Node::Mux(_, a, b) => match of(a) {
                all if all == width => width,
                some => some.max(of(b)),
            },
            _ => width,
        }
    }

    /// Whether a condition holds for no values of what it is put together of: those that are no conditions themselves count as
    /// independent. A condition of more than [`MAX_PARTS`] of these may hold.
    pub(crate) fn is_never(&self, wire: Wire) -> bool {
        /// What a condition is put together of, and the nodes between.
        const MAX_PARTS: usize = 12;
        const MAX_NODES: usize = 1 << 10;
        if self.width(wire) != 1 {
            return false;
        }
        let (mut inner, mut open) = (BTreeSet::new(), vec![wire]);
        while let Some(next) = open.pop() {
            if inner.len() > MAX_NODES {
                return false;
            }
            if inner.insert(next) && self.is_condition(next) {
                self.node(next).operands(|operand| open.push(operand));
            }
        }
        // A bit for each choice of the parts, 64 in a word. Operands come before what uses them.
        let parts = inner.iter().filter(|wire| !self.is_condition(**wire)).count();
        if parts > MAX_PARTS {
            return false;
        }
        let words = (1_usize << parts).div_ceil(64);
        let mut values: BTreeMap<Wire, Vec<u64>> = BTreeMap::new();
        let mut part = 0;
        for wire in inner {
            let of = |wire: &Wire| values[wire].iter().copied();
            let value: Vec<u64> = match self.node(wire) {
                _ if !self.is_condition(wire) => {
                    part += 1;
                    (0..words).map(|word| alternating(part - 1, word)).collect()
                }
                Node::Const(bits) => vec![if bits.is_zero() { 0 } else { u64::MAX }; words],
                Node::Unary(_, a) => of(a).map(|a| !a).collect(),
                Node::Binary(op, a, b) => {
                    let both = of(a).zip(of(b));
                    match op {
                        Binary::And => both.map(|(a, b)| a & b).collect(),
                        Binary::Or => both.map(|(a, b)| a | b).collect(),
                        _ => both.map(|(a, b)| a ^ b).collect(),
                    }
                }
                Node::Mux(cond, a, b) => {
                    let all = of(cond).zip(of(a)).zip(of(b));
                    all.map(|((cond, a), b)| cond & a | !cond & b).collect()
                }
                _ => return false,
            };
            values.insert(wire, value);
        }
        values[&wire].iter().all(|word| *word == 0)
    }

    /// Whether a wire is a constant or put together of conditions.
    fn is_condition(&self, wire: Wire) -> bool {
        let is_bit = self.width(wire) == 1;
        is_bit
            && match self.node(wire) {
                Node::Const(_) | Node::Unary(Unary::Not, _) | Node::Mux(..) => true,
                Node::Binary(op, ..) => matches!(op, Binary::And | Binary::Or | Binary::Xor),
                _ => false,
            }
    }

    /// The largest number that a wire may be, as far as its highest bits show it: a constant above something narrower.
    pub(crate) fn most(&self, wire: Wire) -> Option<u32> {
        let most = match self.node(wire) {
            Node::Const(bits) => bits.to_u64()?,
            Node::Concat(high, low) => {
                let (high, low) = (self.constant(*high)?.to_u64()?, *low);
                let below = self.width(low);
                let low = match self.most(low) {
                    Some(low) => u64::from(low),
                    None if below < 32 => (1 << below) - 1,
                    None => return None,
                };
                high.checked_shl(below).filter(|shifted| shifted >> below == high)? + low
            }
            _ if self.width(wire) < 32 => (1 << self.width(wire)) - 1,
            _ => return None,
        };
        u32::try_from(most).ok()
    }
}

/// Bit `part` of the numbers of choices from 64 times `word` on, a bit for each. Choices beyond the last repeat those before.
fn alternating(part: u32, word: usize) -> u64 {
    const LOW: [u64; 6] = [
        0xaaaa_aaaa_aaaa_aaaa,
        0xcccc_cccc_cccc_cccc,
        0xf0f0_f0f0_f0f0_f0f0,
        0xff00_ff00_ff00_ff00,
        0xffff_0000_ffff_0000,
        0xffff_ffff_0000_0000,
    ];
    match LOW.get(part as usize) {
        Some(low) => *low,
        None if word >> (part - 6) & 1 == 1 => u64::MAX,
        None => 0,
    }
}
