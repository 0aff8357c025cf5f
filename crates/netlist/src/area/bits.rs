//! A design as gates of single bits, without hierarchy.
//!
//! What a gate is made of comes before it. Equal gates are one, and so are bits of registers that always hold the same; constants are
//! folded, also those that registers hold from the first cycle on. An inversion is part of the use of a gate, as a lookup table has it for
//! nothing.

use super::owners::Owners;
use super::registers::{Cells, Choice, Part, Pin, parts};
use super::same::{Known, Same};
use super::{MAX_BITS, MAX_GATES, TooLarge};
use crate::sim::flatten::{Flat, Value};
use crate::*;
use cranelift_entity::EntityRef;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// A use of a gate: twice its number, and one more for the complement.
pub(super) type Lit = u32;

pub(super) const ZERO: Lit = 0;
pub(super) const ONE: Lit = 1;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Gate {
    /// The constant 0, the first gate.
    Zero,
    /// A value from outside the gates.
    Leaf(Leaf),
    /// All are 1.
    And(Box<[Lit]>),
    /// An odd number is 1.
    Xor(Box<[Lit]>),
    /// The second if the first, else the third.
    Mux([Lit; 3]),
}

/// Where a value that no gate makes comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    Input(u32, u32),
    /// A bit of a register.
    Register(u32, u32),
    /// A bit of a read port.
    Read {
        memory: u32,
        port: u32,
        bit: u32,
    },
    /// A bit of a carry chain.
    Sum(u32, u32),
    /// A bit of a product.
    Product(u32, u32),
}

/// A memory.
pub(super) struct Words {
    pub(super) scope: u32,
    pub(super) id: MemoryId,
    /// Addresses and enables of each read port, and of all write ports.
    pub(super) reads: Vec<Vec<Lit>>,
    pub(super) writes: Vec<Lit>,
    pub(super) data: Vec<Box<[Lit]>>,
}

/// A carry chain: a bit of each operand, the second complemented where it is subtracted. Bits that are constants are folded by tools.
pub(super) struct Chain {
    pub(super) owner: u32,
    pub(super) a: Vec<Lit>,
    pub(super) b: Vec<Lit>,
    /// Their exclusive or, which a lookup table before the chain makes.
    pub(super) sums: Vec<Lit>,
}

/// A product.
pub(super) struct Product {
    pub(super) owner: u32,
    pub(super) a: Box<[Lit]>,
    pub(super) b: Box<[Lit]>,
}

pub(super) struct Bits {
    /// Each by its number.
    pub(super) gates: IndexSet<Gate, FxBuildHasher>,
    /// Who has a gate, by its number in [`Owners`]: of values that are made of the same gate the one that comes first.
    pub(super) owners: Vec<u32>,
    pub(super) registers: Vec<Cells>,
    pub(super) memories: Vec<Words>,
    pub(super) chains: Vec<Chain>,
    pub(super) products: Vec<Product>,
    pub(super) outputs: Vec<Lit>,
    /// Inputs of a lookup table: comparisons of so few bits with a constant need no chain.
    inputs: u32,
    /// Of the value that is made gates.
    owner: u32,
}

/// Gates are made again with what is known of registers so often.
const ROUNDS: usize = 4;
/// Where fewer than one in so many of them has gone, another round would find little.
const FEW: usize = 64;

impl Bits {
    /// The gates of a flat design, if there are not too many.
    pub(super) fn new(flat: &Flat<'_>, owners: &Owners, inputs: u32) -> Result<Bits, TooLarge> {
        let all = flat.scopes.iter().flat_map(|scope| scope.module.nodes.values());
        if all.map(|node| u64::from(node.width)).sum::<u64>() > MAX_BITS {
            return Err(TooLarge::Bits);
        }
        let mut same = Same::default();
        let mut bits = Bits::build((flat, owners), inputs, &same, 0)?;
        for _ in 0..ROUNDS {
            if !bits.find_same(flat, &mut same) {
                break;
            }
            let gates = bits.gates.len();
            drop(bits);
            bits = Bits::build((flat, owners), inputs, &same, gates)?;
            if gates.saturating_sub(bits.gates.len()) < gates / FEW {
                break;
            }
        }
        Ok(bits)
    }

    /// With room for so many gates.
    fn build(
        (flat, owners): (&Flat<'_>, &Owners),
        inputs: u32,
        same: &Same,
        gates: usize,
    ) -> Result<Bits, TooLarge> {
        let mut all = IndexSet::with_capacity_and_hasher(gates, FxBuildHasher);
        all.insert(Gate::Zero);
        let mut bits = Bits {
            gates: all,
            owners: vec![0],
            registers: Vec::new(),
            memories: Vec::new(),
            chains: Vec::new(),
            products: Vec::new(),
            outputs: Vec::new(),
            inputs,
            owner: 0,
        };
        let mut values: Vec<Option<Box<[Lit]>>> = vec![None; flat.count];
        let (mut numbers, mut memories) = (FxHashMap::default(), FxHashMap::default());
        for (scope, of) in flat.scopes.iter().enumerate() {
            for id in of.module.registers.keys() {
                let number = numbers.len() as u32;
                numbers.insert((scope, id), number);
            }
            for id in of.module.memories.keys() {
                let number = memories.len() as u32;
                memories.insert((scope, id), number);
            }
        }
        for value in flat.sorted(&flat.roots()) {
            let (scope, node) = flat.node(value);
            bits.owner = owners.of(scope, node.place);
            let made = match &node.op {
                Op::Register(id) => {
                    let number = numbers[&(scope, *id)];
                    (0..node.width)
                        .map(|bit| match same.of((number, bit)) {
                            Known::Constant(value) => Lit::from(value),
                            Known::As((number, bit)) => bits.leaf(Leaf::Register(number, bit)),
                        })
                        .collect()
                }
                Op::Read(memory, port) => {
                    let (memory, port) = (memories[&(scope, *memory)], port.index() as u32);
                    (0..node.width)
                        .map(|bit| match same.is_zero(memory, bit) {
                            true => ZERO,
                            false => bits.leaf(Leaf::Read { memory, port, bit }),
                        })
                        .collect()
                }
                Op::Input(_) => (0..node.width).map(|bit| bits.leaf(Leaf::Input(value, bit))).collect(),
                op => {
                    let of =
                        |node: NodeId| values[flat.value(scope, node) as usize].as_deref().unwrap_or(&[]);
                    bits.operation(op, node.width, of)
                }
            };
            values[value as usize] = Some(made);
            if bits.gates.len() > MAX_GATES {
                return Err(TooLarge::Gates);
            }
        }
        bits.state(flat, &values);
        Ok(bits)
    }

    /// Connects registers, memories and outputs.
    fn state(&mut self, flat: &Flat<'_>, values: &[Option<Box<[Lit]>>]) {
        let lits = |value: Value| values[value as usize].clone().unwrap_or_default();
        for (scope, of) in flat.scopes.iter().enumerate() {
            let get = |node: NodeId| lits(flat.value(scope, node));
            for (id, register) in &of.module.registers {
                let enable: Vec<Lit> = register.enable.expand().iter().flat_map(|node| get(*node)).collect();
                let next = register.next.expand().map(|node| flat.value(scope, node));
                let has_reset = register.reset.is_some();
                let mut cells =
                    Cells { scope: scope as u32, id, next: [].into(), parts: Vec::new(), has_reset };
                let mut lits_of = Vec::new();
                for (value, chosen) in
                    next.into_iter().flat_map(|next| parts(flat, (scope, id), register, next))
                {
                    lits_of.extend_from_slice(&lits(value));
                    let mut part = Part {
                        end: lits_of.len() as u32,
                        pins: vec![Pin::Enable; enable.len()],
                        control: enable.clone(),
                        set: None,
                    };
                    for Choice { select, is_inverted, constant } in chosen {
                        part.control.extend(lits(select).iter().map(|lit| lit ^ Lit::from(is_inverted)));
                        part.pins.push(if constant.is_some() { Pin::Set } else { Pin::Enable });
                        part.set = constant.or(part.set);
                    }
                    cells.push(part);
                }
                cells.next = lits_of.into();
                self.registers.push(cells);
            }
            for (id, memory) in &of.module.memories {
                let reads = memory.reads.values().map(|port| {
                    let mut all: Vec<Lit> =
                        port.address.expand().iter().flat_map(|node| get(*node)).collect();
                    if let Latency::Clocked { enable } = port.latency {
                        all.extend(enable.expand().iter().flat_map(|node| get(*node)));
                    }
                    all
                });
                let reads = reads.collect();
                let writes = memory.writes.iter().flat_map(|port| {
                    let lanes = port.lanes.expand();
                    [Some(port.address), Some(port.enable), lanes].into_iter().flatten().flat_map(get)
                });
                let writes = writes.collect();
                let data = memory.writes.iter().map(|port| get(port.data)).collect();
                self.memories.push(Words { scope: scope as u32, id, reads, writes, data });
            }
        }
        let top = &flat.scopes[0];
        let outputs = top.module.outputs.values().filter_map(|port| port.value.expand());
        self.outputs = outputs.flat_map(|node| lits(flat.value(0, node))).collect();
    }

    fn leaf(&mut self, leaf: Leaf) -> Lit {
        self.gate(Gate::Leaf(leaf))
    }

    fn gate(&mut self, gate: Gate) -> Lit {
        let (number, is_new) = self.gates.insert_full(gate);
        if is_new {
            self.owners.push(self.owner);
        }
        2 * number as Lit
    }

    /// The number of the gate that gives a value from outside, if something uses it.
    pub(super) fn number_of(&self, leaf: Leaf) -> Option<u32> {
        self.gates.get_index_of(&Gate::Leaf(leaf)).map(|number| number as u32)
    }

    fn and(&mut self, parts: &[Lit]) -> Lit {
        let mut all: Vec<Lit> = parts.iter().copied().filter(|lit| *lit != ONE).collect();
        all.sort_unstable();
        all.dedup();
        if all.contains(&ZERO) || all.windows(2).any(|pair| pair[0] ^ 1 == pair[1]) {
            return ZERO;
        }
        match all[..] {
            [] => ONE,
            [only] => only,
            _ => self.gate(Gate::And(all.into())),
        }
    }

    fn or(&mut self, parts: &[Lit]) -> Lit {
        let complements: Vec<Lit> = parts.iter().map(|lit| lit ^ 1).collect();
        self.and(&complements) ^ 1
    }

    fn xor(&mut self, parts: &[Lit]) -> Lit {
        let mut inverted = 0;
        let mut all: Vec<Lit> = Vec::with_capacity(parts.len());
        for lit in parts {
            inverted ^= lit & 1;
            all.push(lit & !1);
        }
        all.sort_unstable();
        let mut odd: Vec<Lit> = Vec::with_capacity(all.len());
        for lit in all {
            if odd.last() == Some(&lit) {
                odd.pop();
            } else if lit != ZERO {
                odd.push(lit);
            }
        }
        inverted
            ^ match odd[..] {
                [] => ZERO,
                [only] => only,
                _ => self.gate(Gate::Xor(odd.into())),
            }
    }

    fn mux(&mut self, select: Lit, a: Lit, b: Lit) -> Lit {
        let (select, a, b) = if select & 1 == 1 { (select ^ 1, b, a) } else { (select, a, b) };
        match (select, a, b) {
            (ZERO, _, b) => b,
            (_, a, b) if a == b => a,
            (_, a, b) if a == b ^ 1 => self.xor(&[select, b]),
            (_, ONE, b) => self.or(&[select, b]),
            (_, ZERO, b) => self.and(&[select ^ 1, b]),
            (_, a, ONE) => self.or(&[select ^ 1, a]),
            (_, a, ZERO) => self.and(&[select, a]),
            _ => self.gate(Gate::Mux([select, a, b])),
        }
    }

    fn operation<'v>(&mut self, op: &Op, width: u32, of: impl Fn(NodeId) -> &'v [Lit]) -> Box<[Lit]> {
        let at = |lits: &[Lit], bit: u32| lits.get(bit as usize).copied().unwrap_or(ZERO);
        match op {
            Op::Constant(value) => (0..width).map(|bit| Lit::from(value.bit(bit))).collect(),
            Op::Unary(UnaryOp::Not, a) => of(*a).iter().map(|lit| lit ^ 1).collect(),
            Op::Unary(UnaryOp::ReduceAnd, a) => [self.and(of(*a))].into(),
            Op::Unary(UnaryOp::ReduceOr, a) => [self.or(of(*a))].into(),
            Op::Unary(UnaryOp::ReduceXor, a) => [self.xor(of(*a))].into(),
            Op::Concat(parts) => parts.iter().rev().flat_map(|part| of(*part).iter().copied()).collect(),
            Op::Slice(a, low) => (0..width).map(|bit| at(of(*a), low + bit)).collect(),
            Op::Repeat(a) => vec![at(of(*a), 0); width as usize].into(),
            Op::Mux(select, a, b) => {
                let (select, a, b) = (at(of(*select), 0), of(*a), of(*b));
                (0..width).map(|bit| self.mux(select, at(a, bit), at(b, bit))).collect()
            }
            Op::Binary(op, a, b) => self.binary(*op, width, of(*a), of(*b)),
            // These have no value of their own in a flat design.
            Op::Input(_) | Op::Register(_) | Op::Read(..) | Op::Instance(..) => [].into(),
        }
    }

    fn binary(&mut self, op: BinaryOp, width: u32, a: &[Lit], b: &[Lit]) -> Box<[Lit]> {
        let pairs = || a.iter().copied().zip(b.iter().copied());
        match op {
            BinaryOp::And => pairs().map(|(a, b)| self.and(&[a, b])).collect(),
            BinaryOp::Or => pairs().map(|(a, b)| self.or(&[a, b])).collect(),
            BinaryOp::Xor => pairs().map(|(a, b)| self.xor(&[a, b])).collect(),
            BinaryOp::Eq => {
                let same: Vec<Lit> = pairs().map(|(a, b)| self.xor(&[a, b]) ^ 1).collect();
                [self.and(&same)].into()
            }
            BinaryOp::Add => self.sum(a, b, width),
            BinaryOp::Sub => {
                let complement: Vec<Lit> = b.iter().map(|lit| lit ^ 1).collect();
                self.sum(a, &complement, width)
            }
            BinaryOp::Lt => [self.less(a, b)].into(),
            BinaryOp::LtSigned => {
                let turned = |lits: &[Lit]| {
                    let mut lits = lits.to_vec();
                    lits.iter_mut().last().into_iter().for_each(|sign| *sign ^= 1);
                    lits
                };
                [self.less(&turned(a), &turned(b))].into()
            }
            BinaryOp::Mul => {
                let number = self.products.len() as u32;
                self.products.push(Product { owner: self.owner, a: a.into(), b: b.into() });
                (0..width).map(|bit| self.leaf(Leaf::Product(number, bit))).collect()
            }
            BinaryOp::Shl => self.shift(a, b, |at, by| at.checked_sub(by), ZERO),
            BinaryOp::Shr => self.shift(a, b, |at, by| at.checked_add(by), ZERO),
            BinaryOp::ShrSigned => {
                let sign = a.last().copied().unwrap_or(ZERO);
                self.shift(a, b, |at, by| at.checked_add(by), sign)
            }
        }
    }

    /// A choice for each bit of the amount that counts.
    fn shift(
        &mut self,
        a: &[Lit],
        by: &[Lit],
        from: impl Fn(usize, usize) -> Option<usize>,
        filler: Lit,
    ) -> Box<[Lit]> {
        let mut lits = a.to_vec();
        let counts = a.len().next_power_of_two().trailing_zeros() as usize;
        for (bit, select) in by.iter().enumerate().take(counts) {
            lits = (0..lits.len())
                .map(|at| {
                    let moved = from(at, 1 << bit).and_then(|from| lits.get(from)).copied().unwrap_or(filler);
                    self.mux(*select, moved, lits[at])
                })
                .collect();
        }
        let beyond = self.or(by.get(counts..).unwrap_or(&[]));
        lits.into_iter().map(|lit| self.mux(beyond, filler, lit)).collect()
    }

    fn chain(&mut self, a: &[Lit], b: &[Lit]) -> u32 {
        let sums = a.iter().zip(b).map(|(a, b)| self.xor(&[*a, *b])).collect();
        self.chains.push(Chain { owner: self.owner, a: a.to_vec(), b: b.to_vec(), sums });
        self.chains.len() as u32 - 1
    }

    fn sum(&mut self, a: &[Lit], b: &[Lit], width: u32) -> Box<[Lit]> {
        let number = self.chain(a, b);
        (0..width).map(|bit| self.leaf(Leaf::Sum(number, bit))).collect()
    }

    fn less(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let varies = |lits: &[Lit]| lits.iter().filter(|lit| **lit > ONE).count() as u32;
        let (left, right) = (varies(a), varies(b));
        if left == 0 && right <= self.inputs || right == 0 && left <= self.inputs {
            return a.iter().zip(b).fold(ZERO, |less, (a, b)| {
                let differs = self.xor(&[*a, *b]);
                self.mux(differs, *b, less)
            });
        }
        let complement: Vec<Lit> = b.iter().map(|lit| lit ^ 1).collect();
        let number = self.chain(a, &complement);
        self.leaf(Leaf::Sum(number, a.len() as u32)) ^ 1
    }
}
