//! The modules of units. Each has `key`, `bank`, `write_enable`, `write_address`, `write_data`, with an action selector `hash`, and
//! `answer`, [`TableUnit::latency`] cycles after key, hash and bank.

mod choice;
mod constant;
mod hash;
mod tcam;
mod tree;

pub(super) use hash::{LANE, hash_mask};

use super::{Area, Kind, TableUnit};
use crate::parts::later;
use crate::stage::LookupAnswer;
use millrace_netlist::area::blocks;
use millrace_netlist::{Memory, MemoryId, Module, ModuleBuilder, NodeId, address_width};
use millrace_pipeline::Program;
use std::collections::BTreeMap;

/// A module that is being made.
struct Making<'a> {
    unit: &'a TableUnit,
    m: ModuleBuilder,
    areas: BTreeMap<String, Area>,
    /// Enable, address and data of a write; none where nothing is written.
    write: Option<[NodeId; 3]>,
    /// Bits of the address of a write.
    address: u32,
    /// The key, a cycle after it came.
    key: Option<NodeId>,
    /// The bank so many cycles after it came, from 0 on.
    banks: Vec<NodeId>,
}

/// What is found: whether an entry is, and its answer as it is kept, in some cycle.
#[derive(Clone, Copy)]
struct Found {
    hit: NodeId,
    stored: NodeId,
    cycle: u32,
}

impl TableUnit {
    /// The module.
    pub fn module(&self, program: &Program, name: &str) -> Module {
        let mut m = ModuleBuilder::new(name);
        let key = (self.key() > 0).then(|| m.input("key", self.key()));
        let key = key.map(|key| m.delayed("asked", key, None));
        let hash = self.choice.map(|choice| m.input("hash", choice.hash));
        let hash = hash.map(|hash| m.delayed("asked_hash", hash, None));
        let port = self.software_port(program);
        let (mut write, mut banks, mut address) = (None, Vec::new(), 0);
        if let Some(port) = port {
            address = port.address_width();
            let enable = m.input("write_enable", 1);
            write = Some([enable, m.input("write_address", address), m.input("write_data", port.width)]);
            banks.push(m.input("bank", 1));
        }
        let areas = self.areas().into_iter().map(|area| (area.name.clone(), area)).collect();
        let mut making = Making { unit: self, m, areas, write, address, key, banks };
        let found = match self.kind {
            Kind::Constant => making.constant(program),
            Kind::Direct => making.direct(),
            Kind::Hash { memories, bits, .. } => making.hash(memories, bits),
            Kind::Tree { entries, keys } => making.tree(entries, keys),
            Kind::Tcam { entries, block } => making.tcam(entries, block),
        };
        making.answer(program, found, hash);
        making.m.finish()
    }

    /// The cycles from a key to its answer.
    pub fn latency(&self) -> u32 {
        1 + match self.kind {
            Kind::Constant => constant::CYCLES,
            Kind::Direct => 3,
            Kind::Hash { .. } => hash::CYCLES,
            Kind::Tree { entries, keys } => tree::cycles(entries, keys),
            Kind::Tcam { block, .. } => tcam::cycles(block),
        } + self.choice.map_or(0, |choice| choice.cycles())
    }
}

impl Making<'_> {
    /// The bank so many cycles after it came.
    fn bank(&mut self, cycle: u32) -> NodeId {
        let Some(first) = self.banks.first().copied() else { return self.m.number(1, 0) };
        while self.banks.len() <= cycle as usize {
            let last = self.banks.last().copied().unwrap_or(first);
            let name = format!("bank_{}", self.banks.len());
            let next = self.m.delayed(&name, last, Some(0));
            self.banks.push(next);
        }
        self.banks[cycle as usize]
    }

    /// The memory of an area, both banks of it, with its write port.
    ///
    /// Frames read one bank while software writes the other, so no word is read while it is written.
    fn memory(&mut self, name: &str) -> MemoryId {
        let area = self.areas[name].clone();
        let memory = self.m.memory(&area.name, area.width, padded(2 * area.words, area.width), Vec::new());
        self.m.promise_no_collision(memory);
        if let Some([enable, address, data]) = self.write {
            let inner = address_width(2 * area.words);
            let (word, data) = (self.m.slice(address, 0, inner), self.m.slice(data, 0, area.width));
            let here = match self.address - inner {
                0 => enable,
                rest => {
                    let of = self.m.slice(address, inner, rest);
                    let here = self.m.is(of, u128::from(area.base >> (inner - 1)));
                    self.m.and(enable, here)
                }
            };
            self.m.write(memory, here, word, data);
        }
        memory
    }

    /// The address of a word in the bank of frames that came so many cycles ago; of the only word without an index.
    fn place(&mut self, index: Option<NodeId>, cycle: u32) -> NodeId {
        let bank = self.bank(cycle);
        match index {
            Some(index) => self.m.concat(&[index, bank]),
            None => bank,
        }
    }

    /// The only word of an area, in a cycle.
    fn word(&mut self, name: &str, cycle: u32) -> NodeId {
        let memory = self.memory(name);
        let place = self.place(None, cycle);
        self.m.read(memory, place)
    }

    fn direct(&mut self) -> Found {
        let memory = self.memory("entries");
        let place = self.place(self.key, 1);
        let word = self.m.read_clocked(memory, place, None);
        let word = self.m.delayed("word", word, None);
        let stored = self.unit.stored.bits();
        Found { hit: self.m.bit(word, stored), stored: self.m.slice(word, 0, stored), cycle: 3 }
    }

    /// The answer, a cycle after what is found.
    fn answer(&mut self, program: &Program, found: Found, hash: Option<NodeId>) {
        let miss = match self.areas.contains_key("miss") {
            true => self.word("miss", found.cycle),
            false => {
                let call = &program.tables[self.unit.table].default;
                let stored = self.unit.stored_call(program, call, 0);
                self.m.constant(stored)
            }
        };
        let (mut stored, mut hit) = (self.m.mux(found.hit, found.stored, miss), found.hit);
        let mut cycle = found.cycle;
        if let (Some(choice), Some(hash)) = (self.unit.choice, hash) {
            stored = self.choose(choice, stored, hash, cycle);
            hit = later(&mut self.m, "hit_of_group", hit, choice.cycles(), None);
            cycle += choice.cycles();
        }
        let (widths, data) = (self.unit.stored, self.unit.data());
        let m = &mut self.m;
        let data = m.slice(stored, widths.action + widths.entry, data);
        let mut part = |low: u32, bits: u32, width: u32| match bits {
            0 => m.number(width, 0),
            _ => {
                let value = m.slice(stored, low, bits);
                m.resize(value, width)
            }
        };
        let action = part(0, widths.action, LookupAnswer::ENTRY - LookupAnswer::ACTION);
        let entry = part(widths.action, widths.entry, LookupAnswer::DATA - LookupAnswer::ENTRY);
        let answer = self.m.concat(&[data, entry, action, hit]);
        let answer = self.m.delayed("answered", answer, None);
        debug_assert_eq!(self.unit.latency(), cycle + 1);
        self.m.output("answer", answer);
    }
}

/// How many words a memory has of which so many are used: where it takes no more of an FPGA, as many as addresses have, so that no access
/// compares its address with the end.
fn padded(words: u32, width: u32) -> u32 {
    /// Words of the smallest memories in lookup tables.
    const FEWEST: u32 = 16;
    let all = words.next_power_of_two();
    let is_block = u64::from(words) * u64::from(width) > Memory::BLOCK_BITS;
    let of = |words: u32| blocks(words.into(), width.into());
    if all <= FEWEST || is_block && of(all) == of(words) { all } else { words }
}
