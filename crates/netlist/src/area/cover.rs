//! Gates in lookup tables: how many there are, by the owners of gates. A table belongs to the owner of the gate whose value it gives,
//! whichever other gates are in it.
//!
//! From inputs to outputs, each gate takes into its own table what makes its inputs, if nothing else needs that and the inputs of all of it
//! are not too many. What has many inputs is packed, the largest parts first, as many as fit. A choice between two tables is a
//! multiplexer of a Xilinx 7, which takes no table. An ECP5 has these, too, but what Yosys' mapping makes with them are tables of five to
//! seven inputs, where they make a path shorter, and a choice of many words takes as many tables as if there were none.

use super::bits::{Bits, Gate, Lit};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The most inputs that a lookup table has.
const MAX_INPUTS: usize = 6;

/// The number of lookup tables of each owner.
pub(super) struct Cover<'b> {
    bits: &'b Bits,
    inputs: usize,
    /// How often a gate is used.
    uses: &'b [u32],
    /// What a gate's table has for inputs while it is not known whether it has one of its own.
    cuts: Vec<Vec<u32>>,
    is_root: Vec<bool>,
    /// It is a multiplexer of the FPGA.
    is_wide: Vec<bool>,
    /// Numbers of tables that are no gates.
    next: u32,
    pub(super) luts: Vec<u64>,
}

impl<'b> Cover<'b> {
    /// Covers the gates of which there are uses. `needed` are those that have to be there as they are.
    pub(super) fn new(
        bits: &'b Bits,
        inputs: u32,
        uses: &'b [u32],
        needed: &[Lit],
        owners: usize,
    ) -> Cover<'b> {
        let count = bits.gates.len();
        let mut cover = Cover {
            bits,
            inputs: inputs as usize,
            uses,
            cuts: vec![Vec::new(); count],
            is_root: vec![false; count],
            is_wide: vec![false; count],
            next: u32::MAX,
            luts: vec![0; owners],
        };
        let mut is_needed = vec![false; count];
        needed.iter().for_each(|lit| is_needed[(lit / 2) as usize] = true);
        // A gate that is part of one of its kind is packed with that, and not before: it would be counted twice.
        let mut is_part = vec![false; count];
        for (gate, _) in bits.gates.iter().zip(uses).filter(|(_, uses)| **uses > 0) {
            cover.parts_of_kind(gate).for_each(|part| is_part[part as usize] = !is_needed[part as usize]);
        }
        for gate in 0..count as u32 {
            if uses[gate as usize] == 0 || cover.is_leaf(gate) || is_part[gate as usize] {
                continue;
            }
            let cut = match &bits.gates[gate as usize] {
                Gate::Mux(lits) => cover.mux(gate, *lits),
                _ => cover.pack(gate),
            };
            cover.cuts[gate as usize] = cut;
            if is_needed[gate as usize] || uses[gate as usize] > 1 {
                cover.root(gate);
            }
        }
        cover
    }

    fn is_leaf(&self, gate: u32) -> bool {
        gate as usize >= self.bits.gates.len()
            || matches!(self.bits.gates[gate as usize], Gate::Zero | Gate::Leaf(_))
    }

    /// Whether a gate may be part of the table of the only one that uses it.
    fn is_free(&self, gate: u32) -> bool {
        !self.is_leaf(gate) && self.uses[gate as usize] == 1 && !self.is_root[gate as usize]
    }

    /// Gives a gate a table.
    fn root(&mut self, gate: u32) {
        if self.is_leaf(gate) || std::mem::replace(&mut self.is_root[gate as usize], true) {
            return;
        }
        if !self.is_wide[gate as usize] {
            self.count(gate);
        }
    }

    fn count(&mut self, gate: u32) {
        self.luts[self.bits.owners[gate as usize] as usize] += 1;
    }

    /// What a gate brings to the table of one that uses it.
    fn brings(&self, gate: u32) -> Vec<u32> {
        match self.is_free(gate) && !self.is_wide[gate as usize] {
            true => self.cuts[gate as usize].clone(),
            false => vec![gate],
        }
    }

    fn mux(&mut self, gate: u32, lits: [Lit; 3]) -> Vec<u32> {
        let parts = lits.map(|lit| lit / 2);
        let mut best: Option<(usize, usize, usize, Vec<u32>)> = None;
        // Which parts go into this table: as many as can, with the fewest inputs.
        let brought = parts.map(|part| self.brings(part));
        for taken in 0..8_usize {
            let takes = |at: usize| taken >> at & 1 == 1;
            if (0..3).any(|at| takes(at) && brought[at] == [parts[at]]) {
                continue;
            }
            let mut cut = Vec::new();
            for (at, part) in parts.iter().enumerate() {
                match takes(at) {
                    true => join(&mut cut, &brought[at]),
                    false => join(&mut cut, &[*part]),
                }
            }
            let better = |(_, most, least, _): &(usize, usize, usize, Vec<u32>)| {
                (std::cmp::Reverse(taken.count_ones() as usize), cut.len())
                    < (std::cmp::Reverse(*most), *least)
            };
            if cut.len() <= self.inputs && best.as_ref().is_none_or(better) {
                best = Some((taken, taken.count_ones() as usize, cut.len(), cut));
            }
        }
        let (taken, cut) = best.map_or((0, parts.to_vec()), |(taken, _, _, cut)| (taken, cut));
        // Tables of six inputs are those of a Xilinx 7.
        let is_wide =
            self.inputs == MAX_INPUTS && taken & 6 == 0 && self.is_free(parts[1]) && self.is_free(parts[2]);
        self.is_wide[gate as usize] = is_wide;
        for (at, part) in parts.into_iter().enumerate() {
            if (taken >> at & 1 == 0 || is_wide) && self.is_free(part) {
                self.root(part);
            }
        }
        if is_wide { vec![gate] } else { cut }
    }

    /// The inputs of a gate of many parts, which may be gates of the same kind again.
    fn terms(&self, gate: u32) -> Vec<u32> {
        let (mut terms, mut open) = (Vec::new(), vec![gate]);
        while let Some(gate) = open.pop() {
            let (Gate::And(lits) | Gate::Xor(lits)) = &self.bits.gates[gate as usize] else { continue };
            for lit in lits.iter() {
                let part = lit / 2;
                match self.is_of_kind(&self.bits.gates[gate as usize], *lit) && self.is_free(part) {
                    true => open.push(part),
                    false => terms.push(part),
                }
            }
        }
        terms
    }

    /// Whether what a gate uses is a gate of the same kind, so that both are one.
    fn is_of_kind(&self, gate: &Gate, lit: Lit) -> bool {
        match (gate, &self.bits.gates[(lit / 2) as usize]) {
            (Gate::And(_), Gate::And(_)) => lit & 1 == 0,
            (Gate::Xor(_), Gate::Xor(_)) => true,
            _ => false,
        }
    }

    /// The gates that are used by this one alone and are of its kind.
    fn parts_of_kind<'g>(&'g self, gate: &'g Gate) -> impl Iterator<Item = u32> + 'g {
        let lits = match gate {
            Gate::And(lits) | Gate::Xor(lits) => &lits[..],
            _ => &[],
        };
        let parts = lits.iter().filter(|lit| self.is_of_kind(gate, **lit)).map(|lit| lit / 2);
        parts.filter(|part| self.uses[*part as usize] == 1)
    }

    /// The tables that an exclusive or of so many terms takes beyond those that it needs: Yosys' mapping makes its path short. On a Xilinx 7
    /// it has tables of eight inputs for that, four of six and multiplexers, which come from 15 terms on, and are most of it where two of
    /// six after each other do not reach (36); on an ECP5 those of 20 to 31 terms have tables of five and six inputs. The numbers are
    /// those of single ones with 7 to 64 terms, and of 32 of the same 48 and 64 bits, by Yosys 0.23 (`docs/dev/measurements.md`).
    fn more_for_sums(&self, terms: u64) -> u64 {
        let least = terms.saturating_sub(1).div_ceil(self.inputs as u64 - 1);
        let taken = match (self.inputs, terms) {
            (MAX_INPUTS, 15..=32) => (terms - 1) * 2 / 5,
            (MAX_INPUTS, 33..) => 12 + (terms - 32) * 3 / 4,
            (4, 20..=31) => (terms - 1) * 9 / 20,
            _ => least,
        };
        taken.saturating_sub(least)
    }

    fn pack(&mut self, gate: u32) -> Vec<u32> {
        let terms = self.terms(gate);
        if matches!(self.bits.gates[gate as usize], Gate::Xor(_)) {
            let owner = self.bits.owners[gate as usize];
            self.luts[owner as usize] += self.more_for_sums(terms.len() as u64);
        }
        let mut parts: Vec<(Vec<u32>, Option<u32>)> = terms
            .into_iter()
            .map(|term| (self.brings(term), Some(term).filter(|term| self.is_free(*term))))
            .collect();
        loop {
            let mut all = Vec::new();
            for (cut, _) in &parts {
                join(&mut all, cut);
                if all.len() > self.inputs {
                    break;
                }
            }
            if all.len() <= self.inputs {
                return all;
            }
            parts.sort_by_key(|(cut, _)| std::cmp::Reverse(cut.len()));
            let mut bins = Bins::new(self.inputs);
            parts.into_iter().for_each(|(cut, of)| bins.add(cut, of));
            let mut bins = bins.all;
            // Full bins become tables; the last one may take their outputs.
            bins.sort_by_key(|(bin, _)| std::cmp::Reverse(bin.len()));
            let mut left: usize = bins.iter().map(|(bin, _)| bin.len()).sum();
            parts = Vec::new();
            for (bin, sources) in bins {
                if left <= self.inputs || bin.len() == 1 {
                    parts.push((bin, sources.first().copied().flatten()));
                    continue;
                }
                left -= bin.len() - 1;
                match sources[..] {
                    [Some(only)] => {
                        self.root(only);
                        parts.push((vec![only], None));
                    }
                    _ => {
                        self.count(gate);
                        parts.push((vec![self.next], None));
                        self.next -= 1;
                    }
                }
            }
        }
    }
}

/// Parts with their inputs, put together in tables: each goes to the first table that has room for what it brings.
///
/// Tables are not looked through one after the other, which for a comparison of ten thousand bits would be as many steps for each of them:
/// a table has room for all inputs of a part, or has some of these already.
struct Bins {
    inputs: usize,
    /// The inputs of each table, and the gates of its parts.
    all: Vec<(Vec<u32>, Vec<Option<u32>>)>,
    /// The tables with room for so many more inputs.
    by_room: Vec<BTreeSet<usize>>,
    /// The tables that have an input, as they got it.
    with: FxHashMap<u32, Vec<usize>>,
}

/// Of tables that have an input already, as many of the latest are looked at.
const MOST_SHARING: usize = 64;

impl Bins {
    fn new(inputs: usize) -> Bins {
        Bins {
            inputs,
            all: Vec::new(),
            by_room: vec![BTreeSet::new(); inputs + 1],
            with: FxHashMap::default(),
        }
    }

    fn add(&mut self, cut: Vec<u32>, of: Option<u32>) {
        let at = self.first_fit(&cut).unwrap_or_else(|| {
            self.all.push((Vec::new(), Vec::new()));
            self.all.len() - 1
        });
        let (bin, sources) = &mut self.all[at];
        let before = bin.len();
        for input in cut {
            if let Err(place) = bin.binary_search(&input) {
                bin.insert(place, input);
                self.with.entry(input).or_default().push(at);
            }
        }
        sources.push(of);
        let after = bin.len();
        self.by_room[self.inputs.saturating_sub(before)].remove(&at);
        self.by_room[self.inputs.saturating_sub(after)].insert(at);
    }

    fn first_fit(&self, cut: &[u32]) -> Option<usize> {
        let with_room = self.by_room.iter().skip(cut.len()).filter_map(|tables| tables.first().copied());
        let sharing = cut.iter().filter_map(|input| self.with.get(input));
        let sharing = sharing.flat_map(|tables| tables.iter().rev().take(MOST_SHARING).copied());
        let fits = |at: &usize| {
            let (bin, _) = &self.all[*at];
            let more = cut.iter().filter(|input| bin.binary_search(input).is_err()).count();
            bin.len() + more <= self.inputs
        };
        with_room.chain(sharing.filter(fits)).min()
    }
}

/// Adds what is not there yet; both are sorted.
fn join(all: &mut Vec<u32>, more: &[u32]) {
    for one in more {
        if let Err(at) = all.binary_search(one) {
            all.insert(at, *one);
        }
    }
}
