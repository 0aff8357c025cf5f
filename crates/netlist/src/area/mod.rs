//! What a design takes of an FPGA, as an estimate: lookup tables, flip-flops, memory.
//!
//! The design is made gates of single bits (`bits`), of which those count that an output or state depends on, and these are put in lookup
//! tables (`cover`) as tools for synthesis do. Choices that are pins of flip-flops are no gates (`registers`), and bits that hold the same
//! are one flip-flop (`same`). Carry chains, block memory, memory in lookup tables and shift registers are what Yosys makes of them.
//! `tests/rtl/calibrate --area` puts estimates next to what Yosys says.

mod bits;
mod cover;
mod memory;
mod owners;
mod registers;
mod same;

use crate::sim::flatten::Flat;
use crate::*;
use bits::{Bits as Gates, Gate, Leaf, Lit};
use cover::Cover;
pub use memory::blocks;
use memory::memory_area;
use owners::Owners;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

/// Bits of all values of a design together, above which it has no estimate.
pub const MAX_BITS: u64 = 1 << 23;
/// Gates of single bits, above which it has none: a shift of a thousand bits has ten thousand. The largest FPGAs have as many lookup tables.
pub const MAX_GATES: usize = 1 << 22;

/// Why a design has no estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// Its values have too many bits.
    Bits,
    /// Its operations are too many gates.
    Gates,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooLarge::Bits => {
                write!(f, "values of more than {MAX_BITS} bits (limit MAX_BITS of the estimate)")
            }
            TooLarge::Gates => write!(f, "more than {MAX_GATES} gates (limit MAX_GATES)"),
        }
    }
}

/// What an FPGA is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// Lookup tables of four inputs, carry chains of two of them, memories of 16 words of 4 bits: a Lattice ECP5.
    Lut4,
    /// Lookup tables of six inputs, which can be shift registers: a Xilinx 7.
    Lut6,
}

/// What something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Lookup tables, those of carry chains included, without those of memory.
    pub luts: u64,
    /// Flip-flops.
    pub ffs: u64,
    /// Lookup tables that are memory or shift registers.
    pub memory_luts: u64,
    /// Bits of memory in lookup tables, shift registers included.
    pub memory_bits: u64,
    /// Block memories of 18 kbit.
    pub blocks: u64,
    /// Multipliers of 18 bits.
    pub multipliers: u64,
}

impl AddAssign for Area {
    fn add_assign(&mut self, other: Area) {
        self.luts += other.luts;
        self.ffs += other.ffs;
        self.memory_luts += other.memory_luts;
        self.memory_bits += other.memory_bits;
        self.blocks += other.blocks;
        self.multipliers += other.multipliers;
    }
}

impl Fabric {
    fn inputs(self) -> u32 {
        match self {
            Fabric::Lut4 => 4,
            Fabric::Lut6 => 6,
        }
    }
}

/// Who takes what an estimate says.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// An instance, by the names of the instances that it is in and its own, with dots between; the top has no name.
    pub instance: String,
    /// The part of the program ([`Place::Part`]) that values, registers and memories in it come from; of those without one it is empty.
    pub part: Arc<str>,
}

/// What each instance of a verified design takes by itself, and of that each part of the program.
///
/// Each thing counts once: a lookup table where the value is that it gives, a gate that several values are made of where the first of
/// these is, in an order in which operands come before what uses them. So all together are what the design takes without any part.
pub fn estimate(design: &Design, fabric: Fabric) -> Result<BTreeMap<Owner, Area>, TooLarge> {
    let Some(top) = design.top() else { return Ok(BTreeMap::new()) };
    let flat = Flat::new(design, top);
    let owners = Owners::new(&flat);
    let gates = Gates::new(&flat, &owners, fabric.inputs())?;
    let mut all = vec![Area::default(); owners.len()];
    let mut live = Live::new(&flat, &gates, fabric);
    let cover = Cover::new(&gates, fabric.inputs(), &live.uses, &live.needed, owners.len());
    for (area, luts) in all.iter_mut().zip(&cover.luts) {
        area.luts = *luts;
    }
    live.join_memories();
    live.state(&owners, &mut all);
    Ok(owners.named(&flat, all))
}

/// What an output depends on.
struct Live<'a> {
    flat: &'a Flat<'a>,
    gates: &'a Gates,
    fabric: Fabric,
    /// How often each gate is used.
    uses: Vec<u32>,
    /// What has to be there as it is: outputs, and inputs of all that is no gate.
    needed: Vec<Lit>,
    /// Bits of registers, memories, chains and products that count.
    registers: Vec<Vec<bool>>,
    /// Parts of registers of which a bit counts.
    parts: FxHashSet<(u32, usize)>,
    words: Vec<Vec<bool>>,
    /// Memories whose direct reads have a register that becomes part of them.
    joined: Vec<bool>,
    chains: Vec<u32>,
    products: Vec<u32>,
}

impl<'a> Live<'a> {
    fn new(flat: &'a Flat<'a>, gates: &'a Gates, fabric: Fabric) -> Live<'a> {
        let registers = gates.registers.iter().map(|cells| vec![false; cells.next.len()]).collect();
        let width = |of: &bits::Words| flat.scopes[of.scope as usize].module.memories[of.id].width as usize;
        let words = gates.memories.iter().map(|of| vec![false; width(of)]).collect();
        let mut live = Live {
            flat,
            gates,
            fabric,
            uses: vec![0; gates.gates.len()],
            needed: Vec::new(),
            registers,
            parts: FxHashSet::default(),
            words,
            joined: vec![false; gates.memories.len()],
            chains: vec![0; gates.chains.len()],
            products: vec![0; gates.products.len()],
        };
        let mut open: Vec<u32> = Vec::new();
        live.need(&gates.outputs, &mut open);
        while let Some(gate) = open.pop() {
            match &gates.gates[gate as usize] {
                Gate::Zero => {}
                Gate::And(parts) | Gate::Xor(parts) => live.use_all(parts, &mut open),
                Gate::Mux(parts) => live.use_all(parts, &mut open),
                Gate::Leaf(leaf) => live.leaf(*leaf, &mut open),
            }
        }
        live
    }

    fn need(&mut self, lits: &[Lit], open: &mut Vec<u32>) {
        self.needed.extend(lits);
        self.use_all(lits, open);
    }

    fn use_all(&mut self, lits: &[Lit], open: &mut Vec<u32>) {
        for lit in lits {
            let uses = &mut self.uses[(lit / 2) as usize];
            *uses += 1;
            if *uses == 1 {
                open.push(lit / 2);
            }
        }
    }

    /// What a value depends on that no gate makes.
    fn leaf(&mut self, leaf: Leaf, open: &mut Vec<u32>) {
        let gates = self.gates;
        match leaf {
            Leaf::Input(..) => {}
            Leaf::Register(number, bit) => {
                let cells = &gates.registers[number as usize];
                if self.parts.insert((number, cells.part_of(bit))) {
                    self.need(cells.control(bit), open);
                }
                self.registers[number as usize][bit as usize] = true;
                if let Some(next) = cells.next.get(bit as usize) {
                    self.need(&[*next], open);
                }
            }
            Leaf::Read { memory, port, bit } => {
                let of = &gates.memories[memory as usize];
                let live = &mut self.words[memory as usize];
                let is_first = !live.contains(&true);
                if !std::mem::replace(&mut live[bit as usize], true) {
                    let data: Vec<Lit> =
                        of.data.iter().filter_map(|data| data.get(bit as usize)).copied().collect();
                    self.need(&data, open);
                }
                if is_first {
                    self.need(&of.writes, open);
                    of.reads.iter().for_each(|port| self.need(port, open));
                }
                debug_assert!((port as usize) < of.reads.len());
            }
            Leaf::Sum(number, bit) => {
                let chain = &gates.chains[number as usize];
                let end = (bit + 1).min(chain.a.len() as u32);
                let start = grow(&mut self.chains[number as usize], end);
                for at in start..end {
                    let at = at as usize;
                    let (a, b, sum) = (chain.a[at], chain.b[at], chain.sums[at]);
                    match self.fabric {
                        Fabric::Lut4 => self.need(&[a, b], open),
                        // A lookup table gives the sum; the chain takes one operand where neither is a constant.
                        Fabric::Lut6 if a > bits::ONE && b > bits::ONE => self.need(&[sum, a], open),
                        Fabric::Lut6 => self.need(&[sum], open),
                    }
                }
            }
            Leaf::Product(number, bit) => {
                let product = &gates.products[number as usize];
                let end = (bit + 1).min(product.a.len() as u32);
                let start = grow(&mut self.products[number as usize], end);
                for at in start..end {
                    self.need(&[product.a[at as usize], product.b[at as usize]], open);
                }
            }
        }
    }

    /// Makes registers that hold nothing but what a memory gives in the same cycle part of it, where it then is a block memory.
    fn join_memories(&mut self) {
        let gates = self.gates;
        let mut after: FxHashMap<Lit, (usize, usize)> = FxHashMap::default();
        for (number, cells) in gates.registers.iter().enumerate() {
            let live = (0..cells.next.len()).filter(|bit| self.registers[number][*bit]);
            after.extend(live.map(|bit| (cells.next[bit], (number, bit))));
        }
        for (number, words) in gates.memories.iter().enumerate() {
            let memory = &self.flat.scopes[words.scope as usize].module.memories[words.id];
            let width = self.words[number].iter().filter(|live| **live).count() as u64;
            let is_direct = |port: &ReadPort| port.latency == Latency::Direct;
            if width == 0
                || !memory.reads.values().all(is_direct)
                || memory_area(memory, (width, true), self.fabric).blocks == 0
            {
                continue;
            }
            let leaf = |port: u32, bit: u32| {
                let leaf = Leaf::Read { memory: number as u32, port, bit };
                gates.number_of(leaf).filter(|gate| self.uses[*gate as usize] > 0)
            };
            let all =
                (0..memory.reads.len() as u32).flat_map(|port| (0..memory.width).map(move |bit| (port, bit)));
            let registers: Option<Vec<(usize, usize)>> = all
                .filter_map(|(port, bit)| leaf(port, bit))
                .map(|gate| after.get(&(2 * gate)).copied().filter(|_| self.uses[gate as usize] == 1))
                .collect();
            for (of, bit) in registers.into_iter().flatten() {
                self.registers[of][bit] = false;
                self.joined[number] = true;
            }
        }
    }

    /// Registers, memories, chains and products.
    fn state(&self, owners: &Owners, all: &mut [Area]) {
        if self.fabric == Fabric::Lut4 {
            for (chain, live) in self.gates.chains.iter().zip(&self.chains) {
                all[chain.owner as usize].luts += u64::from(live.next_multiple_of(2));
            }
        }
        for (product, live) in self.gates.products.iter().zip(&self.products) {
            let area = &mut all[product.owner as usize];
            let parts = parts_of_product(product, *live);
            area.multipliers += parts;
            area.luts += u64::from(*live) * parts.saturating_sub(1);
        }
        self.flip_flops(owners, all);
        for ((words, live), joined) in self.gates.memories.iter().zip(&self.words).zip(&self.joined) {
            let width = live.iter().filter(|live| **live).count() as u64;
            if width > 0 {
                let scope = words.scope as usize;
                let memory = &self.flat.scopes[scope].module.memories[words.id];
                all[owners.of(scope, memory.place) as usize] +=
                    memory_area(memory, (width, *joined), self.fabric);
            }
        }
    }

    fn flip_flops(&self, owners: &Owners, all: &mut [Area]) {
        let mut lengths: Vec<Vec<u32>> = self.registers.iter().map(|bits| vec![1; bits.len()]).collect();
        let mut goes_on: Vec<Vec<bool>> = self.registers.iter().map(|bits| vec![false; bits.len()]).collect();
        if self.fabric == Fabric::Lut6 {
            // The register that a bit is the only use of, when both move together.
            let before = |number: usize, bit: usize| {
                let cells = &self.gates.registers[number];
                let next = *cells.next.get(bit)?;
                let Gate::Leaf(Leaf::Register(of, at)) = self.gates.gates[(next / 2) as usize] else {
                    return None;
                };
                let other = &self.gates.registers[of as usize];
                let moves = cells.only_moves(bit as u32)
                    && other.only_moves(at)
                    && self.registers[of as usize][at as usize]
                    && cells.control(bit as u32) == other.control(at);
                (next & 1 == 0 && moves && self.uses[(next / 2) as usize] == 1)
                    .then_some((of as usize, at as usize))
            };
            for number in 0..self.registers.len() {
                for bit in 0..self.registers[number].len() {
                    if self.registers[number][bit]
                        && let Some((of, at)) = before(number, bit)
                    {
                        goes_on[of][at] = true;
                    }
                }
            }
            for (number, bits) in goes_on.iter().enumerate() {
                // Bits that do not count may come after a chain, too, and as many as there are would walk the same one again.
                let ends = |bit: &usize| self.registers[number][*bit] && !bits[*bit];
                for bit in (0..bits.len()).filter(ends) {
                    let (mut at, mut length) = ((number, bit), 1);
                    while let Some(next) = before(at.0, at.1) {
                        (at, length) = (next, length + 1);
                        if length > limits::MAX_WIDTH {
                            break;
                        }
                    }
                    lengths[number][bit] = length;
                }
            }
        }
        /// The shortest chain that becomes a shift register, and the longest of one lookup table.
        const SHIFTS: (u32, u32) = (3, 32);
        for (number, cells) in self.gates.registers.iter().enumerate() {
            let scope = cells.scope as usize;
            let place = self.flat.scopes[scope].module.registers[cells.id].place;
            let area = &mut all[owners.of(scope, place) as usize];
            let live =
                (0..cells.next.len()).filter(|bit| self.registers[number][*bit] && !goes_on[number][*bit]);
            for bit in live {
                let length = lengths[number][bit];
                if length >= SHIFTS.0 {
                    area.memory_luts += u64::from(length.div_ceil(SHIFTS.1));
                    area.memory_bits += u64::from(length);
                } else {
                    area.ffs += u64::from(length);
                }
            }
        }
    }
}

/// Multipliers that a product takes, of whose bits so many count: one for each pair of parts of 17 bits that reaches these.
fn parts_of_product(product: &bits::Product, live: u32) -> u64 {
    const PART: usize = 17;
    let parts = |of: &[Lit]| {
        (of.iter().rposition(|lit| *lit != bits::ZERO).map_or(0, |last| last + 1)).div_ceil(PART)
    };
    let (a, b) = (parts(&product.a), parts(&product.b));
    let pairs = (0..a).map(|low| b.min((live as usize).div_ceil(PART).saturating_sub(low)));
    pairs.sum::<usize>() as u64
}

/// Makes a number at least another one; gives what it was.
fn grow(number: &mut u32, least: u32) -> u32 {
    std::mem::replace(number, least.max(*number))
}
