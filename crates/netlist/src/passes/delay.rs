//! Registers that only hand a value on, as memories in lookup tables: where a fabric has no shift registers, a value that waits for many
//! cycles takes a flip-flop for each bit and cycle, and a memory takes a lookup table for a bit and sixteen cycles.
//!
//! A chain of n registers is n - 1 words of a memory and one register. An address counts through these, and in each cycle the word
//! there is read and then written with what comes in, so it is read again n - 1 cycles later; the register is the last cycle. The address
//! may start anywhere and starts with 0, as all of the memory does, so the chain also gives its first n values as before.

use crate::*;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::collections::BTreeMap;

/// The registers of a chain that becomes a memory, at least: with fewer the memory takes about as much.
const SHORTEST: usize = 6;
/// The registers of one memory, at most: the words of a memory in lookup tables, and the last register.
const LONGEST: usize = 17;
/// Bits of one memory, at most.
const WIDEST: u32 = 512;

/// A chain: what goes in, and the last register.
struct Chain {
    from: NodeId,
    last: RegisterId,
    width: u32,
}

/// Makes memories of long chains of registers in all modules of a verified design.
pub fn delay_lines(design: &mut Design) {
    for module in design.modules.values_mut() {
        let chains = chains(module);
        if chains.is_empty() {
            continue;
        }
        let mut m = ModuleBuilder::resume(std::mem::take(module));
        for (registers, chains) in chains {
            let at = address(&mut m, registers);
            let (mut rest, mut number) = (chains.as_slice(), 0);
            while let [first, others @ ..] = rest {
                let mut width = first.width;
                let more = others.iter().take_while(|chain| {
                    width += chain.width;
                    width <= WIDEST
                });
                let (some, others) = rest.split_at(1 + more.count());
                memory(&mut m, &format!("waits{registers}_{number}"), (registers, at), some);
                (rest, number) = (others, number + 1);
            }
        }
        *module = super::clean(&m.finish());
    }
}

/// The chains of a module, by how many registers they have.
fn chains(module: &Module) -> BTreeMap<usize, Vec<Chain>> {
    let uses = uses(module);
    // What only this register takes, if it is a register that only hands on.
    let plain = |register: &Register| register.reset.is_none() && register.enable.is_none();
    let before = |id: RegisterId| -> Option<RegisterId> {
        let next = module.registers[id].next.expand()?;
        match module.nodes[next].op {
            Op::Register(other) if plain(&module.registers[other]) && uses[other] == 1 => Some(other),
            _ => None,
        }
    };
    let mut is_inner: SecondaryMap<RegisterId, bool> = SecondaryMap::new();
    let plain_registers =
        || module.registers.iter().filter(|(_, register)| plain(register)).map(|(id, _)| id);
    plain_registers().filter_map(before).for_each(|other| is_inner[other] = true);
    let mut chains: BTreeMap<usize, Vec<Chain>> = BTreeMap::new();
    for end in plain_registers().filter(|id| !is_inner[*id]) {
        // From the last one on. A ring has no end.
        let mut registers = vec![end];
        registers.extend(std::iter::successors(before(end), |id| before(*id)));
        for of in registers.chunks(LONGEST).filter(|of| of.len() >= SHORTEST) {
            let (last, first) = (of[0], &module.registers[of[of.len() - 1]]);
            if let Some(from) = first.next.expand() {
                chains.entry(of.len()).or_default().push(Chain { from, last, width: first.width });
            }
        }
    }
    chains
}

/// How often the value of each register is used.
fn uses(module: &Module) -> SecondaryMap<RegisterId, u32> {
    let mut uses: SecondaryMap<RegisterId, u32> = SecondaryMap::new();
    let mut using = |node: PackedOption<NodeId>| {
        if let Some(Op::Register(register)) = node.expand().map(|node| &module.nodes[node].op) {
            uses[*register] += 1;
        }
    };
    module.nodes.values().for_each(|node| node.op.operands(|operand| using(operand.into())));
    module.taken(&mut using);
    module.registers.values().for_each(|register| using(register.next));
    uses
}

/// The address that counts through the words of memories for so many registers.
fn address(m: &mut ModuleBuilder, registers: usize) -> NodeId {
    let words = registers as u32 - 1;
    let width = address_width(words);
    let (register, at) = m.register(&format!("waits{registers}"), width, None);
    let (zero, more) = (m.number(width, 0), m.add_number(at, 1));
    let is_last = m.is(at, u128::from(words - 1));
    let next = m.mux(is_last, zero, more);
    m.set_next(register, next);
    at
}

/// A memory for some chains.
fn memory(m: &mut ModuleBuilder, name: &str, (registers, at): (usize, NodeId), chains: &[Chain]) {
    let parts: Vec<NodeId> = chains.iter().rev().map(|chain| chain.from).collect();
    let data = m.concat(&parts);
    // With a word for each address, so that none is compared with the end.
    let depth = (registers as u32 - 1).next_power_of_two();
    let memory = m.memory(name, m.width(data), depth, Vec::new());
    let word = m.read(memory, at);
    let always = m.number(1, 1);
    m.write(memory, always, at, data);
    let mut low = 0;
    for chain in chains {
        let part = m.slice(word, low, chain.width);
        m.set_next(chain.last, part);
        low += chain.width;
    }
}
