//! What memories take: in lookup tables, or as block memories of the shape that Yosys would choose, with the choice among several.

use super::{Area, Fabric};
use crate::{Latency, Memory};

impl Fabric {
    /// Words of the smallest memory in lookup tables, bits of these words, lookup tables that it takes, and what Yosys takes as its cost.
    fn lut_memory(self, depth: u32) -> [u64; 4] {
        match self {
            Fabric::Lut4 => [16, 4, 4, 4],
            Fabric::Lut6 if depth <= 32 => [32, 6, 4, 8],
            Fabric::Lut6 => [64, 3, 4, 8],
        }
    }

    /// The shapes of block memories: words, bits, how many of 18 kbit that is, and what Yosys takes as its cost.
    fn shapes(self) -> impl Iterator<Item = [u64; 4]> {
        let small = match self {
            Fabric::Lut4 => 128,
            Fabric::Lut6 => 129,
        };
        let large = match self {
            Fabric::Lut4 => &[][..],
            Fabric::Lut6 => &SHAPES,
        };
        let large = large
            .iter()
            .map(|(words, bits)| (2 * words, *bits))
            .chain((self == Fabric::Lut6).then_some((512, 72)));
        let small = SHAPES.iter().map(move |(words, bits)| [*words, *bits, 1, small]);
        small.chain(large.map(|(words, bits)| [words, bits, 2, 257]))
    }

    /// Lookup tables of a bit of a word that is chosen among so many, as Yosys maps them: of more than eight words abc duplicates parts
    /// to be fast, 16 take 31 and 24 take 27 tables, so these are numbers in the middle.
    fn choice(self, groups: u64) -> u64 {
        match (self, groups) {
            // Four are a table of six inputs, which is four tables.
            (Fabric::Lut4, 0..=8) => [0, 0, 1, 2, 4, 5, 5, 5, 7][groups as usize],
            (Fabric::Lut4, 9..=11) => 11,
            (Fabric::Lut4, 12..=15) => 4 * groups - 29,
            (Fabric::Lut4, 16..=40) => 42,
            (Fabric::Lut4, _) => 5 * groups / 3,
            (Fabric::Lut6, 0..=8) => groups.saturating_sub(1).div_ceil(3),
            (Fabric::Lut6, _) => 4 * groups / 9,
        }
    }
}

/// Words and bits of the shapes of a block memory of 18 kbit.
const SHAPES: [(u64, u64); 6] = [(16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36)];

/// Block memories of 18 kbit for so many words of so many bits, by the shape that takes the fewest.
pub fn blocks(depth: u64, width: u64) -> u64 {
    SHAPES.iter().map(|(words, bits)| depth.div_ceil(*words) * width.div_ceil(*bits)).min().unwrap_or(0)
}

/// What a memory is made of, for each read.
struct Made {
    blocks: u64,
    /// One of so many blocks has the word.
    groups: u64,
    /// The cost, doubled.
    cost: u64,
}

/// What Yosys chooses: a word in as many blocks as it has parts of nine bits, all groups of words one after the other; each other group
/// to choose among costs half for each bit.
fn made(depth: u64, width: u64, fabric: Fabric) -> Made {
    let all = fabric.shapes().map(|[words, bits, units, cost]| {
        let groups = depth.div_ceil(words).max(1);
        let count = (groups * width.next_multiple_of(bits.min(9))).div_ceil(bits);
        Made { blocks: units * count, groups, cost: 2 * cost * count + (groups - 1) * width }
    });
    all.min_by_key(|made| made.cost).unwrap_or(Made { blocks: 0, groups: 1, cost: 0 })
}

/// What a memory takes, of whose words so many bits are read, and whether a register after each read is part of it.
pub(super) fn memory_area(memory: &Memory, (width, joined): (u64, bool), fabric: Fabric) -> Area {
    let depth = u64::from(memory.depth);
    let reads = memory.reads.len().max(1) as u64;
    let clocked = memory.reads.values().filter(|port| port.latency != Latency::Direct).count() as u64;
    let [words, bits, luts, cost] = fabric.lut_memory(memory.depth);
    let groups = depth.div_ceil(words);
    let cells = reads * groups * width.div_ceil(bits);
    let made = made(depth, width, fabric);
    let is_cheaper = (joined || clocked == reads) && reads * made.cost < 2 * cells * cost;
    if memory.is_block() || is_cheaper {
        let (decode, number) = match made.groups {
            1 => (0, 0),
            groups => (groups, u64::from(groups.next_power_of_two().trailing_zeros())),
        };
        return Area {
            blocks: reads * made.blocks,
            luts: reads * width * fabric.choice(made.groups) + decode,
            // Which group has the word, until it is there.
            ffs: reads * number,
            ..Area::default()
        };
    }
    // Which group is read, and which is written.
    let choice = match fabric {
        Fabric::Lut4 => groups / 2,
        Fabric::Lut6 => (groups - 1).div_ceil(3),
    };
    let decode = if groups > 1 { groups } else { 0 };
    Area {
        luts: reads * width * choice + decode,
        ffs: clocked * width,
        memory_luts: cells * luts,
        memory_bits: depth * width,
        ..Area::default()
    }
}
