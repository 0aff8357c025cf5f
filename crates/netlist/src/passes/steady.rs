//! Bits of registers that never change, and bits that always hold what a bit of another register does.
//!
//! A word whose upper bits are 0, carried along a pipeline, is a register a cycle with these bits in it. Synthesis finds out that the first of
//! them never change, then that those of the next register do not, and so on: Yosys optimises the whole design once for each cycle of the
//! pipeline. Here each bit of each value gets a number, such that bits with equal numbers hold the same in every cycle; one walk over the values
//! finds a whole chain, as each register of it comes after the value that it takes.

use super::registers::{Known, Piece, Pieces, Value};
use crate::*;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;

/// How often values are walked over: a register that comes before what it takes is known a walk later.
const WALKS: usize = 4;
/// A module whose values have more bits than this is left as it is.
const MOST_BITS: u64 = 1 << 21;
/// Bits of values that are looked at in a design, counted again each time that they are: four times what the largest public program takes. When
/// they are used up, modules are left as they are.
pub(super) const MOST_BITS_OF_DESIGN: u64 = 1 << 24;

/// The bits that may still be looked at.
pub(super) struct Effort(u64);

impl Effort {
    /// So many.
    pub(super) fn new(bits: u64) -> Effort {
        Effort(bits)
    }

    /// Takes what a look costs; false: it is not there.
    fn takes(&mut self, bits: u64) -> bool {
        let left = self.0.checked_sub(bits);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// The numbers of bits that are always 0 and always 1; larger ones are of bits that change.
const ZERO: u32 = 0;
const ONE: u32 = 1;

/// Bits of ports that never change, by module: those that `None` stands for may.
#[derive(Default)]
pub(super) struct Ports {
    inputs: SecondaryMap<ModuleId, Option<Vec<Vec<Option<bool>>>>>,
    outputs: SecondaryMap<ModuleId, Vec<Vec<Option<bool>>>>,
}

impl Ports {
    /// Whether a bit of an input of a module never changes.
    pub(super) fn knows_inputs(&self, id: ModuleId) -> bool {
        self.inputs[id].iter().flatten().flatten().any(Option::is_some)
    }

    /// Notes what a module is known to give.
    pub(super) fn note_outputs(&mut self, id: ModuleId, module: &Module, effort: &mut Effort) {
        let known = Known::default();
        let Some(numbers) = Numbers::of(module, &known, (self, id), effort) else { return };
        let outputs = module.outputs.values().map(|port| numbers.constants(port.value)).collect();
        self.outputs[id] = outputs;
    }

    /// Notes what a module is known to give to its instances. What all instances of a module are given, none changes.
    pub(super) fn note_inputs(&mut self, id: ModuleId, module: &Module, effort: &mut Effort) {
        let known = Known::default();
        let has_instances = !module.instances.is_empty();
        let numbers = has_instances.then(|| Numbers::of(module, &known, (self, id), effort)).flatten();
        let mut given = Vec::new();
        for instance in module.instances.values() {
            let inputs: Option<Vec<_>> = numbers
                .as_ref()
                .map(|numbers| instance.inputs.iter().map(|value| numbers.constants(*value)).collect());
            given.push((instance.module, inputs.unwrap_or_default()));
        }
        for (module, inputs) in given {
            let Some(before) = &mut self.inputs[module] else {
                self.inputs[module] = Some(inputs);
                continue;
            };
            before.truncate(inputs.len());
            for (before, now) in before.iter_mut().zip(inputs) {
                before
                    .iter_mut()
                    .zip(now)
                    .for_each(|(before, now)| *before = before.filter(|_| *before == now));
            }
        }
    }

    /// A bit of a value from outside of a module.
    fn bit(&self, id: ModuleId, module: &Module, op: &Op, bit: u32) -> Option<bool> {
        let port = match op {
            Op::Input(input) => self.inputs[id].as_ref()?.get(input.index()),
            Op::Instance(instance, output) => {
                self.outputs[module.instances[*instance].module].get(output.index())
            }
            _ => None,
        };
        *port?.get(bit as usize)?
    }
}

/// What gives two bits the same number.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Unary(u32),
    Binary(BinaryOp, u32, u32),
    Mux(u32, u32, u32),
    /// What a register takes, when, what it starts with, and whether the reset sets it to that.
    Register {
        next: u32,
        enable: Option<NodeId>,
        start: bool,
        is_reset: bool,
    },
}

struct Numbers<'a> {
    module: &'a Module,
    known: &'a Known,
    ports: (&'a Ports, ModuleId),
    /// The numbers of all bits of all values, one value after the other, lowest bits first.
    bits: Vec<u32>,
    /// Where those of a value begin.
    first: SecondaryMap<NodeId, usize>,
    of: FxHashMap<Key, u32>,
    count: u32,
}

/// Adds what is known of bits of registers, memories and ports to what is known of whole registers; whether any of registers is new.
pub(super) fn add(
    module: &Module,
    known: &mut Known,
    ports: (&Ports, ModuleId),
    effort: &mut Effort,
) -> bool {
    let Some(numbers) = Numbers::of(module, known, ports, effort) else { return false };
    let (registers, values) = (numbers.pieces(), numbers.values());
    let any = !registers.is_empty();
    known.insert_pieces(registers);
    known.values_in_pieces = values;
    any
}

impl<'a> Numbers<'a> {
    /// Finds them; nothing for a module that is too large, or when too much was looked at.
    fn of(
        module: &'a Module,
        known: &'a Known,
        ports: (&'a Ports, ModuleId),
        effort: &mut Effort,
    ) -> Option<Numbers<'a>> {
        let total: u64 = module.nodes.values().map(|node| u64::from(node.width)).sum();
        if total > MOST_BITS || !effort.takes(total) {
            return None;
        }
        let (bits, first) =
            (Vec::with_capacity(total as usize), SecondaryMap::with_capacity(module.nodes.len()));
        let of = FxHashMap::with_capacity_and_hasher(total as usize / 2, Default::default());
        let mut numbers = Numbers { module, known, ports, bits, first, of, count: ONE + 1 };
        for (id, node) in &module.nodes {
            numbers.first[id] = numbers.bits.len();
            // Until something is known of a bit, it is one of its own.
            for _ in 0..node.width {
                numbers.bits.push(numbers.count);
                numbers.count += 1;
            }
        }
        for _ in 0..WALKS {
            if !numbers.walk() {
                break;
            }
        }
        Some(numbers)
    }

    /// The bits of a value that never change.
    fn constants(&self, node: PackedOption<NodeId>) -> Vec<Option<bool>> {
        let Some(node) = node.expand() else { return Vec::new() };
        let bits = (0..self.module.width(node)).map(|bit| match self.bit(node, bit) {
            ZERO => Some(false),
            ONE => Some(true),
            _ => None,
        });
        bits.collect()
    }

    /// Values that are no operations with bits that never change.
    fn values(&self) -> FxHashMap<NodeId, Pieces> {
        let mut values = FxHashMap::default();
        for (id, node) in &self.module.nodes {
            if !matches!(node.op, Op::Input(_) | Op::Instance(..) | Op::Read(..)) {
                continue;
            }
            let mut pieces = Pieces::default();
            for (bit, constant) in (0..).zip(self.constants(id.into())) {
                match constant {
                    Some(value) => pieces.add(Piece::Constant(Bits::new(1, u128::from(value)))),
                    None => {
                        pieces.keep(bit);
                        pieces.add(Piece::Own(bit, 1));
                    }
                }
            }
            if pieces.width() < node.width {
                values.insert(id, pieces);
            }
        }
        values
    }
}

impl Numbers<'_> {
    fn bit(&self, node: NodeId, bit: u32) -> u32 {
        self.bits[self.first[node] + bit as usize]
    }

    fn keyed(&mut self, key: Key) -> u32 {
        let count = &mut self.count;
        *self.of.entry(key).or_insert_with(|| {
            *count += 1;
            *count - 1
        })
    }

    /// Gives numbers to the bits of all values; says whether any has another one than before.
    fn walk(&mut self) -> bool {
        let module = self.module;
        let mut is_changed = false;
        for (id, node) in &module.nodes {
            let first = self.first[id];
            let set = |this: &mut Self, bit: u32, number: u32, is_changed: &mut bool| {
                let place = first + bit as usize;
                *is_changed |= this.bits[place] != number;
                this.bits[place] = number;
            };
            match &node.op {
                Op::Concat(parts) => {
                    let mut low = 0;
                    for part in parts.iter().rev() {
                        for bit in 0..module.width(*part) {
                            let number = self.bit(*part, bit);
                            set(self, low + bit, number, &mut is_changed);
                        }
                        low += module.width(*part);
                    }
                }
                Op::Register(register) => {
                    for bit in 0..node.width {
                        if let Some(number) = self.of_register(*register, bit) {
                            set(self, bit, number, &mut is_changed);
                        }
                    }
                }
                op @ (Op::Input(_) | Op::Instance(..)) => {
                    let (ports, of) = self.ports;
                    for bit in 0..node.width {
                        if let Some(value) = ports.bit(of, module, op, bit) {
                            set(self, bit, u32::from(value), &mut is_changed);
                        }
                    }
                }
                Op::Read(memory, _) => {
                    for bit in 0..node.width {
                        if self.is_always_zero(&module.memories[*memory], bit) {
                            set(self, bit, ZERO, &mut is_changed);
                        }
                    }
                }
                op => {
                    for bit in 0..node.width {
                        let Some(number) = self.of_operation(op, bit) else { break };
                        set(self, bit, number, &mut is_changed);
                    }
                }
            }
        }
        is_changed
    }

    /// Whether a bit of all words of a memory is 0, with which its reads start, too.
    fn is_always_zero(&self, memory: &Memory, bit: u32) -> bool {
        let is_written = memory.writes.iter().any(|port| self.bit(port.data, bit) != ZERO);
        !is_written && !memory.initial.iter().any(|word| word.bit(bit))
    }

    /// The number of a bit of a register; nothing where it has one of its own.
    fn of_register(&mut self, id: RegisterId, bit: u32) -> Option<u32> {
        let register = &self.module.registers[id];
        if let Some(Value::Constant(value)) = self.known.get(id) {
            return Some(u32::from(value.bit(bit)));
        }
        let start = register.reset.as_ref().is_some_and(|reset| reset.bit(bit));
        let next = self.bit(register.next.expand()?, bit);
        if next == u32::from(start) {
            return Some(next);
        }
        let (enable, is_reset) = (register.enable.expand(), register.reset.is_some());
        Some(self.keyed(Key::Register { next, enable, start, is_reset }))
    }

    /// The number of a bit of an operation; nothing where each of its bits has one of its own.
    fn of_operation(&mut self, op: &Op, bit: u32) -> Option<u32> {
        Some(match op {
            Op::Constant(value) => u32::from(value.bit(bit)),
            Op::Slice(a, low) => self.bit(*a, low + bit),
            Op::Repeat(a) => self.bit(*a, 0),
            Op::Unary(UnaryOp::Not, a) => match self.bit(*a, bit) {
                ZERO => ONE,
                ONE => ZERO,
                a => self.keyed(Key::Unary(a)),
            },
            Op::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor), a, b) => {
                let (a, b) = (self.bit(*a, bit), self.bit(*b, bit));
                let (a, b) = (a.min(b), a.max(b));
                match (op, a, b) {
                    (BinaryOp::And, ZERO, _) => ZERO,
                    (BinaryOp::Or, ONE, _) => ONE,
                    (BinaryOp::And, ONE, _) | (BinaryOp::Or | BinaryOp::Xor, ZERO, _) => b,
                    (BinaryOp::Xor, ..) if a == b => ZERO,
                    _ if a == b => a,
                    (BinaryOp::Xor, ONE, _) => self.keyed(Key::Unary(b)),
                    _ => self.keyed(Key::Binary(*op, a, b)),
                }
            }
            Op::Mux(select, a, b) => match (self.bit(*select, 0), self.bit(*a, bit), self.bit(*b, bit)) {
                (_, a, b) if a == b => a,
                (ONE, a, _) => a,
                (ZERO, _, b) => b,
                (select, ONE, ZERO) => select,
                (select, ZERO, ONE) => self.keyed(Key::Unary(select)),
                (select, a, b) => self.keyed(Key::Mux(select, a, b)),
            },
            _ => return None,
        })
    }

    /// The registers of which not all bits are bits of their own.
    fn pieces(&self) -> Vec<(RegisterId, Pieces)> {
        // The first register with a bit of that number, and which bit it is.
        let mut holders: FxHashMap<u32, (NodeId, u32)> = FxHashMap::default();
        let mut found = Vec::new();
        for (id, node) in &self.module.nodes {
            let Op::Register(register) = node.op else { continue };
            if matches!(self.known.get(register), Some(Value::Constant(_))) {
                continue;
            }
            let mut pieces = Pieces::default();
            for bit in 0..node.width {
                match self.bit(id, bit) {
                    number @ (ZERO | ONE) => pieces.add(Piece::Constant(Bits::new(1, u128::from(number)))),
                    number => {
                        let (holder, of) = *holders.entry(number).or_insert((id, bit));
                        if (holder, of) == (id, bit) {
                            pieces.keep(bit);
                        }
                        pieces.add(if holder == id { Piece::Own(of, 1) } else { Piece::Of(holder, of, 1) });
                    }
                }
            }
            if pieces.width() < node.width {
                found.push((register, pieces));
            }
        }
        found
    }
}
