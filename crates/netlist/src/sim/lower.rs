//! A flat design as a graph of words.

use super::flatten::{Flat, Value};
use super::wide::{Wide, WideOp};
use super::words::{Code, Word, Words};
use crate::*;
use cranelift_entity::EntityRef;

/// What the simulator makes of a design, before words have places in memory.
#[derive(Default)]
pub(super) struct Lowered {
    pub(super) words: Words,
    pub(super) wides: Vec<Wide>,
    /// Words of state and inputs: how many there are.
    pub(super) states: u32,
    pub(super) registers: Vec<LoweredRegister>,
    pub(super) memories: Vec<LoweredMemory>,
    pub(super) signals: Vec<Signal>,
    /// How many values are computed in a cycle.
    pub(super) values: usize,
}

/// A signal that can be asked for.
pub(super) struct Signal {
    pub(super) name: String,
    pub(super) kind: SignalKind,
    pub(super) width: u32,
    pub(super) words: Vec<Word>,
}

/// What a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalKind {
    /// An input of the top.
    Input,
    /// An output of the top.
    Output,
    /// What a register holds.
    Register,
    /// A value with a name, as far as it is computed at all.
    Value,
}

pub(super) struct LoweredRegister {
    pub(super) state: Vec<Word>,
    pub(super) next: Vec<Word>,
    pub(super) reset: Option<Bits>,
}

pub(super) struct LoweredMemory {
    pub(super) name: String,
    pub(super) width: u32,
    pub(super) depth: u32,
    pub(super) never_collides: bool,
    pub(super) initial: Vec<Bits>,
    pub(super) writes: Vec<LoweredWrite>,
    pub(super) reads: Vec<LoweredRead>,
}

pub(super) struct LoweredWrite {
    pub(super) enable: Word,
    pub(super) address: Word,
    pub(super) data: Vec<Word>,
    /// Which bits are written, if not all.
    pub(super) mask: Option<Vec<Word>>,
}

/// A clocked read port.
pub(super) struct LoweredRead {
    pub(super) enable: Word,
    pub(super) address: Word,
    pub(super) state: Vec<Word>,
}

pub(super) fn limbs(width: u32) -> u32 {
    width.div_ceil(64)
}

/// The width of word `at` of a value.
pub(super) fn limb_width(width: u32, at: u32) -> u32 {
    (width - 64 * at).min(64)
}

pub(super) fn lower(flat: &Flat<'_>) -> Lowered {
    let mut lowerer = Lowerer {
        flat,
        out: Lowered::default(),
        found: vec![(0, 0); flat.count],
        pool: Vec::new(),
        zero: 0,
        register_bases: Vec::new(),
        memory_bases: Vec::new(),
    };
    lowerer.run();
    lowerer.out
}

struct Lowerer<'f, 'd> {
    flat: &'f Flat<'d>,
    out: Lowered,
    /// Where in `pool` the words of each value are, and how many; none for values that nothing needs.
    found: Vec<(u32, u32)>,
    pool: Vec<Word>,
    zero: Word,
    /// The number of the first register, and of the first memory, of each scope.
    register_bases: Vec<u32>,
    memory_bases: Vec<u32>,
}

impl Lowerer<'_, '_> {
    fn run(&mut self) {
        self.zero = self.out.words.constant(0);
        self.declare();
        let order = self.flat.sorted(&self.roots());
        self.out.values = order.len();
        for value in order {
            if self.found[value as usize].1 == 0 {
                let words = self.lowered(value);
                self.set(value, words);
            }
        }
        self.connect();
        self.signals();
    }

    fn set(&mut self, value: Value, words: Vec<Word>) {
        self.found[value as usize] = (self.pool.len() as u32, words.len() as u32);
        self.pool.extend(words);
    }

    fn words(&self, value: Value) -> &[Word] {
        let (from, len) = self.found[value as usize];
        &self.pool[from as usize..(from + len) as usize]
    }

    /// The words of a value of a scope.
    fn of(&self, scope: usize, node: NodeId) -> Vec<Word> {
        self.words(self.flat.value(scope, node)).to_vec()
    }

    fn state(&mut self, width: u32) -> Vec<Word> {
        (0..limbs(width))
            .map(|at| {
                let state = self.out.states;
                self.out.states += 1;
                self.out.words.push(Code::State, [state, 0, 0], limb_width(width, at))
            })
            .collect()
    }

    /// State of registers and clocked reads, in the order in which [`Lowerer::connect`] meets them.
    fn declare(&mut self) {
        let flat = self.flat;
        for scope in &flat.scopes {
            self.register_bases.push(self.out.registers.len() as u32);
            for register in scope.module.registers.values() {
                let (state, reset) = (self.state(register.width), register.reset.clone());
                self.out.registers.push(LoweredRegister { state, next: Vec::new(), reset });
            }
        }
        for scope in &flat.scopes {
            self.memory_bases.push(self.out.memories.len() as u32);
            for memory in scope.module.memories.values() {
                let name = format!("{}{}", scope.path, memory.name);
                let (width, depth, initial) = (memory.width, memory.depth, memory.initial.clone());
                let mut reads = Vec::new();
                for port in memory.reads.values() {
                    let state = if port.latency == Latency::Direct { Vec::new() } else { self.state(width) };
                    reads.push(LoweredRead { enable: self.zero, address: self.zero, state });
                }
                let writes = Vec::new();
                let never_collides = memory.never_collides;
                let lowered = LoweredMemory { name, width, depth, never_collides, initial, writes, reads };
                self.out.memories.push(lowered);
            }
        }
    }

    /// What has to be computed.
    fn roots(&self) -> Vec<Value> {
        let mut roots = self.flat.roots();
        // Inputs that nothing reads can be set all the same.
        let inputs = self.flat.scopes[0].module.nodes.iter();
        let inputs = inputs.filter(|(_, node)| matches!(node.op, Op::Input(_)));
        roots.extend(inputs.map(|(id, _)| self.flat.value(0, id)));
        roots
    }

    /// What registers and memories take from the values, now that these have words.
    fn connect(&mut self) {
        let flat = self.flat;
        let (mut register_at, mut memory_at) = (0, 0);
        let one = self.out.words.constant(1);
        for (scope, at) in flat.scopes.iter().enumerate() {
            for register in at.module.registers.values() {
                let mut next = self.of(scope, register.next.expect("a verified register"));
                if let Some(enable) = register.enable.expand() {
                    let enable = self.of(scope, enable)[0];
                    let state = self.out.registers[register_at].state.clone();
                    for (at, (next, state)) in next.iter_mut().zip(state).enumerate() {
                        let width = limb_width(register.width, at as u32);
                        *next = self.out.words.mux(enable, *next, state, width);
                    }
                }
                self.out.registers[register_at].next = next;
                register_at += 1;
            }
        }
        for (scope, at) in flat.scopes.iter().enumerate() {
            for memory in at.module.memories.values() {
                for port in &memory.writes {
                    let enable = self.of(scope, port.enable)[0];
                    let address = self.of(scope, port.address)[0];
                    let data = self.of(scope, port.data);
                    let mask = port.lanes.expand().map(|lanes| self.mask(scope, lanes, memory.width));
                    let write = LoweredWrite { enable, address, data, mask };
                    self.out.memories[memory_at].writes.push(write);
                }
                for (id, port) in &memory.reads {
                    let Latency::Clocked { enable } = port.latency else { continue };
                    let enable = enable.expand().map_or(one, |enable| self.of(scope, enable)[0]);
                    let address = self.of(scope, port.address.expect("a verified port"))[0];
                    let read = &mut self.out.memories[memory_at].reads[id.index()];
                    (read.enable, read.address) = (enable, address);
                }
                memory_at += 1;
            }
        }
    }

    /// The bits of a word of a memory that lanes say are written.
    fn mask(&mut self, scope: usize, lanes: NodeId, width: u32) -> Vec<Word> {
        let count = self.flat.scopes[scope].module.width(lanes);
        let lanes = self.of(scope, lanes);
        let lane = width / count;
        let mut parts = Vec::new();
        for at in (0..count).rev() {
            let bit = self.extract(&lanes, at, 1);
            let words = (0..limbs(lane)).map(|at| self.repeated(bit, limb_width(lane, at))).collect();
            parts.push((words, lane));
        }
        self.concat(&parts, width)
    }

    fn signals(&mut self) {
        let flat = self.flat;
        let mut signals = Vec::new();
        let top = &flat.scopes[0];
        for (id, node) in &top.module.nodes {
            if let Op::Input(input) = node.op {
                let name = top.module.inputs[input].name.clone();
                signals.push((name, SignalKind::Input, node.width, self.of(0, id)));
            }
        }
        for port in top.module.outputs.values() {
            let words = self.of(0, port.value.expect("a verified output"));
            signals.push((port.name.clone(), SignalKind::Output, port.width, words));
        }
        let mut register_at = 0;
        for (scope, at) in flat.scopes.iter().enumerate() {
            for register in at.module.registers.values() {
                let name = format!("{}{}", at.path, register.name);
                let words = self.out.registers[register_at].state.clone();
                signals.push((name, SignalKind::Register, register.width, words));
                register_at += 1;
            }
            for (node, name) in &at.module.names {
                let words = self.of(scope, *node);
                if !words.is_empty() {
                    let name = format!("{}{name}", at.path);
                    signals.push((name, SignalKind::Value, at.module.width(*node), words));
                }
            }
        }
        let made = |(name, kind, width, words)| Signal { name, kind, width, words };
        self.out.signals = signals.into_iter().map(made).collect();
    }

    fn lowered(&mut self, value: Value) -> Vec<Word> {
        let (scope, node) = self.flat.node(value);
        let width = node.width;
        match &node.op {
            Op::Constant(bits) => bits.limbs().map(|limb| self.out.words.constant(limb)).collect(),
            // Inputs of instances are aliases.
            Op::Input(_) => self.state(width),
            Op::Instance(..) => unreachable!("aliases are resolved"),
            Op::Register(register) => {
                let at = self.register_bases[scope] + register.as_u32();
                self.out.registers[at as usize].state.clone()
            }
            Op::Read(memory, read) => {
                let at = self.memory_bases[scope] + memory.as_u32();
                let port = &self.flat.scopes[scope].module.memories[*memory].reads[*read];
                match port.latency {
                    Latency::Clocked { .. } => {
                        self.out.memories[at as usize].reads[read.index()].state.clone()
                    }
                    Latency::Direct => {
                        let address = self.of(scope, port.address.expect("a verified port"))[0];
                        let limb = |limb| (Code::Read, [address, at, limb], limb_width(width, limb));
                        (0..limbs(width))
                            .map(limb)
                            .map(|(c, abc, w)| self.out.words.push(c, abc, w))
                            .collect()
                    }
                }
            }
            Op::Unary(op, a) => {
                let words = self.of(scope, *a);
                self.unary(*op, &words, self.flat.scopes[scope].module.width(*a))
            }
            Op::Binary(op, a, b) => {
                let (left, right) = (self.of(scope, *a), self.of(scope, *b));
                self.binary(*op, left, right, self.flat.scopes[scope].module.width(*a))
            }
            Op::Concat(parts) => {
                let module = self.flat.scopes[scope].module;
                let parts: Vec<(Vec<Word>, u32)> =
                    parts.iter().map(|part| (self.of(scope, *part), module.width(*part))).collect();
                self.concat(&parts, width)
            }
            Op::Slice(a, low) => {
                let words = self.of(scope, *a);
                (0..limbs(width))
                    .map(|at| self.extract(&words, low + 64 * at, limb_width(width, at)))
                    .collect()
            }
            Op::Repeat(a) => {
                let bit = self.of(scope, *a)[0];
                (0..limbs(width)).map(|at| self.repeated(bit, limb_width(width, at))).collect()
            }
            Op::Mux(select, a, b) => {
                let select = self.of(scope, *select)[0];
                let (a, b) = (self.of(scope, *a), self.of(scope, *b));
                let limb = |(at, (a, b)): (usize, (Word, Word))| {
                    self.out.words.mux(select, a, b, limb_width(width, at as u32))
                };
                a.into_iter().zip(b).enumerate().map(limb).collect()
            }
        }
    }

    fn repeated(&mut self, bit: Word, width: u32) -> Word {
        match width {
            1 => bit,
            _ => self.out.words.push(Code::Repeat, [bit, 0, 64 - width], width),
        }
    }

    /// `count` bits, at most 64, of a value from bit `low` on, as one word.
    fn extract(&mut self, words: &[Word], low: u32, count: u32) -> Word {
        let (at, from) = ((low / 64) as usize, low % 64);
        let first = count.min(64 - from);
        let word = self.out.words.insert(self.zero, words[at], from, first, 0);
        if first == count {
            word
        } else {
            self.out.words.insert(word, words[at + 1], 0, count - first, first)
        }
    }

    /// Parts one after the other, the highest first.
    fn concat(&mut self, parts: &[(Vec<Word>, u32)], width: u32) -> Vec<Word> {
        let mut out = vec![self.zero; limbs(width) as usize];
        let mut at = 0;
        for (words, width) in parts.iter().rev() {
            for (limb, word) in words.iter().enumerate() {
                let count = limb_width(*width, limb as u32);
                let (to, start) = ((at / 64) as usize, at % 64);
                let first = count.min(64 - start);
                out[to] = self.out.words.insert(out[to], *word, 0, first, start);
                if first < count {
                    out[to + 1] = self.out.words.insert(out[to + 1], *word, first, count - first, 0);
                }
                at += count;
            }
        }
        out
    }

    /// All words as one by an operation on two.
    fn joined(&mut self, code: Code, words: &[Word]) -> Word {
        let mut words = words.iter().copied();
        let first = words.next().unwrap_or(self.zero);
        words.fold(first, |all, word| self.out.words.push(code, [all, word, 0], 64))
    }

    fn unary(&mut self, op: UnaryOp, words: &[Word], width: u32) -> Vec<Word> {
        match op {
            UnaryOp::Not => {
                let limb = |(at, word): (usize, &Word)| {
                    let width = limb_width(width, at as u32);
                    self.out.words.push(Code::Not, [*word, 0, 64 - width], width)
                };
                words.iter().enumerate().map(limb).collect()
            }
            UnaryOp::ReduceOr => {
                let any = self.joined(Code::Or, words);
                vec![self.out.words.push(Code::NotZero, [any, 0, 0], 1)]
            }
            UnaryOp::ReduceXor => {
                let odd = self.joined(Code::Xor, words);
                vec![self.out.words.push(Code::Parity, [odd, 0, 0], 1)]
            }
            UnaryOp::ReduceAnd => {
                let ones: Vec<Word> =
                    Bits::ones(width).limbs().map(|limb| self.out.words.constant(limb)).collect();
                vec![self.equal(words, &ones)]
            }
        }
    }

    fn equal(&mut self, a: &[Word], b: &[Word]) -> Word {
        if let ([a], [b]) = (a, b) {
            return self.out.words.push(Code::Eq, [*a, *b, 0], 1);
        }
        let differ: Vec<Word> =
            a.iter().zip(b).map(|(a, b)| self.out.words.push(Code::Xor, [*a, *b, 0], 64)).collect();
        let differ = self.joined(Code::Or, &differ);
        self.out.words.push(Code::Eq, [differ, self.zero, 0], 1)
    }

    fn binary(&mut self, op: BinaryOp, a: Vec<Word>, b: Vec<Word>, width: u32) -> Vec<Word> {
        let one_word = width <= 64;
        let bitwise = match op {
            BinaryOp::And => Code::And,
            BinaryOp::Or => Code::Or,
            BinaryOp::Xor => Code::Xor,
            BinaryOp::Eq => return vec![self.equal(&a, &b)],
            BinaryOp::Lt => return vec![self.less(&a, &b)],
            BinaryOp::LtSigned if one_word => {
                return vec![self.out.words.push(Code::LtSigned, [a[0], b[0], 64 - width], 1)];
            }
            BinaryOp::LtSigned => {
                // With the sign bits inverted, signed numbers are in the order of unsigned ones.
                let last = limbs(width) - 1;
                let sign = self.out.words.constant(1 << (limb_width(width, last) - 1));
                let [a, b] = [a, b].map(|mut words| {
                    let top = &mut words[last as usize];
                    *top = self.out.words.push(Code::Xor, [*top, sign, 0], limb_width(width, last));
                    words
                });
                return vec![self.less(&a, &b)];
            }
            BinaryOp::Add | BinaryOp::Sub if !one_word => return self.sum(op, &a, &b, width),
            BinaryOp::Mul if !one_word => return self.wide(WideOp::Mul, a, b, width),
            BinaryOp::Add => Code::Add,
            BinaryOp::Sub => Code::Sub,
            BinaryOp::Mul => Code::Mul,
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned => return self.shift(op, a, b, width),
        };
        let limb = |(at, (a, b)): (usize, (Word, Word))| {
            let width = limb_width(width, at as u32);
            let c = if matches!(bitwise, Code::And | Code::Or | Code::Xor) { 0 } else { 64 - width };
            self.out.words.push(bitwise, [a, b, c], width)
        };
        a.into_iter().zip(b).enumerate().map(limb).collect()
    }

    fn less(&mut self, a: &[Word], b: &[Word]) -> Word {
        let mut less = self.out.words.push(Code::Lt, [a[0], b[0], 0], 1);
        for (a, b) in a.iter().zip(b).skip(1) {
            less = self.out.words.push(Code::LtOr, [*a, *b, less], 1);
        }
        less
    }

    /// A sum of many words; a difference is the sum with the complement, and one more.
    fn sum(&mut self, op: BinaryOp, a: &[Word], b: &[Word], width: u32) -> Vec<Word> {
        let subtract = op == BinaryOp::Sub;
        let mut carry = self.out.words.constant(u64::from(subtract));
        let mut out = Vec::with_capacity(a.len());
        for (at, (a, b)) in a.iter().zip(b).enumerate() {
            let b = if subtract { self.out.words.push(Code::Not, [*b, 0, 0], 64) } else { *b };
            let sum = self.out.words.push(Code::AddCarry, [*a, b, carry], 64);
            // The last word is cut; others are whole.
            let width = limb_width(width, at as u32);
            out.push(self.out.words.insert(self.zero, sum, 0, width, 0));
            carry = self.out.words.push(Code::Carry, [*a, b, carry], 1);
        }
        out
    }

    fn shift(&mut self, op: BinaryOp, a: Vec<Word>, amount: Vec<Word>, width: u32) -> Vec<Word> {
        // An amount of many words is its lowest one, or too large.
        let amount = match amount[..] {
            [word] => word,
            _ => {
                let beyond = self.joined(Code::Or, &amount[1..]);
                let beyond = self.out.words.push(Code::NotZero, [beyond, 0, 0], 1);
                let all = self.out.words.constant(u64::MAX);
                self.out.words.mux(beyond, all, amount[0], 64)
            }
        };
        if width <= 64 {
            let code = match op {
                BinaryOp::Shl => Code::Shl,
                BinaryOp::Shr => Code::Shr,
                _ => Code::ShrSigned,
            };
            return vec![self.out.words.push(code, [a[0], amount, 64 - width], width)];
        }
        let op = match op {
            BinaryOp::Shl => WideOp::Shl,
            BinaryOp::Shr => WideOp::Shr,
            _ => WideOp::ShrSigned,
        };
        self.wide(op, a, vec![amount], width)
    }

    fn wide(&mut self, op: WideOp, a: Vec<Word>, b: Vec<Word>, width: u32) -> Vec<Word> {
        let number = self.out.wides.len() as u32;
        self.out.wides.push(Wide { op, a, b, width, to: 0 });
        let whole = self.out.words.push(Code::Wide, [number, 0, 0], 64);
        (0..limbs(width))
            .map(|at| self.out.words.push(Code::Part, [number, at, whole], limb_width(width, at)))
            .collect()
    }
}
