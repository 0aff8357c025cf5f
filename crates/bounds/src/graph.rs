//! The blocks of machine code, where they lead, and its loops.

use crate::cost::{Cost, LINE};
use crate::decode::{Decode, Flow, Instruction};
use crate::error::NoBound;
use millrace_midend::machine::{Does, MachineCode, Origin};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Most instructions of one function.
const MAX_INSTRUCTIONS: usize = 1 << 22;

/// A number of a block.
pub(crate) type BlockNumber = usize;

/// Instructions without a branch but at the end.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) successors: Vec<BlockNumber>,
}

impl Block {
    /// The first and the last line of its code, counted from the start of all, which is at the start of a page.
    pub(crate) fn code_lines(&self) -> Option<(u32, u32)> {
        let (first, last) = (self.instructions.first()?, self.instructions.last()?);
        Some((first.at / LINE, (last.at + last.len - 1) / LINE))
    }
}

/// Machine code as blocks. The first one is where it starts; all are reachable from there.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) blocks: Vec<Block>,
    pub(crate) loops: Vec<Loop>,
    /// The innermost loop of each block.
    pub(crate) loop_of: Vec<Option<usize>>,
    pub(crate) flowing: Flowing,
}

/// A loop with one entry.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) header: BlockNumber,
    pub(crate) blocks: BTreeSet<BlockNumber>,
    /// The loop around it.
    pub(crate) around: Option<usize>,
}

impl Graph {
    /// Decodes the code from its start, along all branches.
    pub(crate) fn new(code: &MachineCode) -> Result<Graph, NoBound> {
        let (instructions, leaders) = reachable(code)?;
        let numbers: BTreeMap<u32, BlockNumber> =
            leaders.iter().enumerate().map(|(number, at)| (*at, number)).collect();
        let mut blocks = Vec::with_capacity(leaders.len());
        for leader in &leaders {
            let mut own = Vec::new();
            let mut at = *leader;
            let successors = loop {
                let instruction = instructions.get(&at).ok_or(NoBound::Undecodable { at })?;
                at = instruction.at + instruction.len;
                let flow = instruction.flow;
                own.push(instruction.clone());
                if !matches!(flow, Flow::Next | Flow::Call) {
                    break targets(code, instruction)?;
                }
                if leaders.contains(&at) {
                    break vec![at];
                }
            };
            let successors: BTreeSet<BlockNumber> =
                successors.iter().filter_map(|at| numbers.get(at).copied()).collect();
            blocks.push(Block { instructions: own, successors: successors.into_iter().collect() });
        }
        let flowing = Flowing::new(&blocks);
        let loops = find_loops(code, &blocks, &flowing)?;
        let mut loop_of = vec![None; blocks.len()];
        // Larger ones first, so that the innermost one stays.
        for (number, found) in loops.iter().enumerate() {
            found.blocks.iter().for_each(|block| loop_of[*block] = Some(number));
        }
        Ok(Graph { blocks, loops, loop_of, flowing })
    }

    /// What it costs to go from a block to another one: a line of code, unless that starts in the last line of the first.
    pub(crate) fn edge(&self, from: BlockNumber, to: BlockNumber) -> Cost {
        match (self.blocks[from].code_lines(), self.blocks[to].code_lines()) {
            (Some((_, last)), Some((first, _))) if last == first => Cost::default(),
            (Some((_, last)), Some((first, _))) if last + 1 == first => Cost::of_code(0, 1),
            _ => Cost::of_code(1, 0),
        }
    }

    /// How many bytes the instructions have.
    pub(crate) fn bytes(&self) -> u64 {
        let instructions = self.blocks.iter().flat_map(|block| &block.instructions);
        instructions.map(|instruction| u64::from(instruction.len)).sum()
    }

    /// Bytes of cache lines that the function's frame covers: the distance of its lowest and its highest place.
    pub(crate) fn frame_bytes(&self) -> u64 {
        let instructions = self.blocks.iter().flat_map(|block| &block.instructions);
        let places =
            instructions.flat_map(|instruction| &instruction.accesses).filter(|access| access.in_frame);
        let mut range = (0, 0);
        for access in places {
            range = (range.0.min(access.offset), range.1.max(access.offset + i64::from(access.size)));
        }
        range.1.abs_diff(range.0)
    }
}

/// What each instruction was made for, where it is one that stays in the code of its node: branches, calls and stores outside of
/// the frame. What the register allocator adds only moves values in registers and in the frame.
pub(crate) fn mark<'a>(code: &'a MachineCode, instruction: &Instruction) -> Option<&'a Origin> {
    let stays = match instruction.flow {
        Flow::Branch(_) | Flow::Table | Flow::Call => true,
        _ => instruction.accesses.iter().any(|access| access.writes && !access.in_frame),
    };
    code.origin(instruction.at).filter(|_| stays)
}

/// The instructions that the start leads to, and where blocks start.
fn reachable(code: &MachineCode) -> Result<(BTreeMap<u32, Instruction>, BTreeSet<u32>), NoBound> {
    let mut decode = Decode::new(&code.bytes, code.processor);
    let (mut found, mut leaders) = (BTreeMap::new(), BTreeSet::from([0]));
    let mut waiting = vec![0];
    while let Some(mut at) = waiting.pop() {
        while !found.contains_key(&at) {
            let instruction = decode.at(at).map_err(|error| NoBound::Undecodable { at: error.0 })?;
            let (flow, next) = (instruction.flow, at + instruction.len);
            if !matches!(flow, Flow::Next | Flow::Call) {
                for target in targets(code, &instruction)? {
                    leaders.insert(target);
                    waiting.push(target);
                }
            }
            found.insert(at, instruction);
            if found.len() > MAX_INSTRUCTIONS {
                return Err(NoBound::TooLarge { what: "instructions", most: MAX_INSTRUCTIONS });
            }
            if !matches!(flow, Flow::Next | Flow::Call) {
                break;
            }
            at = next;
        }
    }
    Ok((found, leaders))
}

/// Where an instruction leads that ends a block.
fn targets(code: &MachineCode, instruction: &Instruction) -> Result<Vec<u32>, NoBound> {
    Ok(match instruction.flow {
        Flow::Jump(to) => vec![to],
        Flow::Branch(to) => vec![to, instruction.at + instruction.len],
        Flow::Return | Flow::Trap => Vec::new(),
        Flow::Next | Flow::Call => vec![instruction.at + instruction.len],
        Flow::Table => jump_table(code, instruction)?,
    })
}

/// The targets of a jump through a table. Both back ends put the table right after the jump, up to the next block: words of 32
/// bits, signed, from the start of the table to the target. Each has to lead to the start of a block.
fn jump_table(code: &MachineCode, instruction: &Instruction) -> Result<Vec<u32>, NoBound> {
    let unknown = NoBound::UnknownJump { at: instruction.at };
    let start = instruction.at + instruction.len;
    let end = code.block_starts.iter().copied().filter(|block| *block > start).min();
    let end = end.unwrap_or(code.bytes.len() as u32);
    let bytes = code.bytes.get(start as usize..end as usize).ok_or_else(|| unknown.clone())?;
    let (words, _) = bytes.as_chunks::<4>();
    let targets = words.iter().map(|word| {
        let to = start.checked_add_signed(i32::from_le_bytes(*word));
        to.filter(|to| code.block_starts.contains(to)).ok_or_else(|| unknown.clone())
    });
    let targets = targets.collect::<Result<Vec<u32>, NoBound>>()?;
    if targets.is_empty() { Err(unknown) } else { Ok(targets) }
}

/// The order in which control comes to blocks.
#[derive(Debug)]
pub(crate) struct Flowing {
    /// The blocks in reverse postorder: only paths back lead to an earlier one.
    pub(crate) order: Vec<BlockNumber>,
    /// The place of each block in that order.
    pub(crate) place: Vec<usize>,
    /// The blocks that lead to each block.
    pub(crate) predecessors: Vec<Vec<BlockNumber>>,
    /// The nearest block that each path to a block passes.
    dominators: Vec<BlockNumber>,
}

impl Flowing {
    pub(crate) fn new(blocks: &[Block]) -> Flowing {
        let order = reverse_postorder(blocks);
        let mut place = vec![0; blocks.len()];
        order.iter().enumerate().for_each(|(at, block)| place[*block] = at);
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (number, block) in blocks.iter().enumerate() {
            block.successors.iter().for_each(|to| predecessors[*to].push(number));
        }
        let dominators = dominators(&order, &place, &predecessors);
        Flowing { order, place, predecessors, dominators }
    }

    fn dominates(&self, above: BlockNumber, mut below: BlockNumber) -> bool {
        while below != above && below != 0 {
            below = self.dominators[below];
        }
        below == above
    }

    /// The nearest block that each path to any of some blocks passes, or one of them.
    pub(crate) fn common_dominator(&self, blocks: impl Iterator<Item = BlockNumber>) -> BlockNumber {
        let nearest = |mut one: BlockNumber, mut other: BlockNumber| {
            while one != other {
                if self.place[one] > self.place[other] {
                    one = self.dominators[one];
                } else {
                    other = self.dominators[other];
                }
            }
            one
        };
        blocks.reduce(nearest).unwrap_or(0)
    }

    /// The largest sum of a path that goes back nowhere, where some blocks have a number.
    pub(crate) fn longest(&self, of_blocks: &FxHashMap<BlockNumber, u64>) -> u64 {
        if of_blocks.len() < 2 {
            return of_blocks.values().sum();
        }
        let mut best = vec![0u64; self.order.len()];
        let mut longest = 0;
        for (place, block) in self.order.iter().enumerate() {
            let before = self.predecessors[*block].iter().map(|before| self.place[*before]);
            let before = before.filter(|before| *before < place).map(|before| best[before]).max();
            best[place] = before.unwrap_or(0) + of_blocks.get(block).copied().unwrap_or(0);
            longest = longest.max(best[place]);
        }
        longest
    }
}

/// The loops, each before those inside it.
fn find_loops(code: &MachineCode, blocks: &[Block], flowing: &Flowing) -> Result<Vec<Loop>, NoBound> {
    let Flowing { place, predecessors, .. } = flowing;
    let mut loops: BTreeMap<BlockNumber, BTreeSet<BlockNumber>> = BTreeMap::new();
    for (from, block) in blocks.iter().enumerate() {
        for to in block.successors.iter().copied().filter(|to| place[*to] <= place[from]) {
            if !flowing.dominates(to, from) {
                let at = blocks[to].instructions.first().map_or(0, |first| first.at);
                return Err(NoBound::Loop { place: describe(code, at) });
            }
            let inside = loops.entry(to).or_insert_with(|| BTreeSet::from([to]));
            let mut waiting = vec![from];
            while let Some(block) = waiting.pop() {
                if inside.insert(block) {
                    waiting.extend(&predecessors[block]);
                }
            }
        }
    }
    let mut loops: Vec<Loop> =
        loops.into_iter().map(|(header, blocks)| Loop { header, blocks, around: None }).collect();
    loops.sort_by_key(|found| std::cmp::Reverse(found.blocks.len()));
    for at in 0..loops.len() {
        let around = loops[..at].iter().rposition(|other| other.blocks.contains(&loops[at].header));
        loops[at].around = around;
    }
    Ok(loops)
}

/// The place of some code in words, for errors.
pub(crate) fn describe(code: &MachineCode, at: u32) -> String {
    match code.origin(at).and_then(|origin| origin.node) {
        Some(node) => code.cfg.blocks[code.graph.nodes[node].block].origin.clone(),
        None => format!("the code at {at:#x}"),
    }
}

/// The blocks in reverse postorder from the first one.
fn reverse_postorder(blocks: &[Block]) -> Vec<BlockNumber> {
    let (mut order, mut seen) = (Vec::with_capacity(blocks.len()), vec![false; blocks.len()]);
    let mut stack = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, next)) = stack.pop() {
        match blocks[block].successors.get(next) {
            Some(to) => {
                stack.push((block, next + 1));
                if !std::mem::replace(&mut seen[*to], true) {
                    stack.push((*to, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

/// The immediate dominator of each block (Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm).
fn dominators(order: &[BlockNumber], place: &[usize], predecessors: &[Vec<BlockNumber>]) -> Vec<BlockNumber> {
    let mut above: Vec<Option<BlockNumber>> = vec![None; place.len()];
    above[0] = Some(0);
    let mut changed = true;
    while changed {
        changed = false;
        for block in order.iter().copied().filter(|block| *block != 0) {
            let mut found: Option<BlockNumber> = None;
            for before in predecessors[block].iter().copied().filter(|before| above[*before].is_some()) {
                found = Some(match found {
                    None => before,
                    Some(mut other) => {
                        let mut one = before;
                        while one != other {
                            while place[one] > place[other] {
                                one = above[one].unwrap_or(0);
                            }
                            while place[other] > place[one] {
                                other = above[other].unwrap_or(0);
                            }
                        }
                        one
                    }
                });
            }
            changed |= above[block] != found;
            above[block] = found;
        }
    }
    above.into_iter().map(|above| above.unwrap_or(0)).collect()
}

/// Which marks the blocks of a loop have that are in no loop inside it.
pub(crate) fn does(code: &MachineCode, graph: &Graph, number: usize) -> Vec<Does> {
    let own = graph.loops[number].blocks.iter().filter(|block| graph.loop_of[**block] == Some(number));
    let instructions = own.flat_map(|block| &graph.blocks[*block].instructions);
    let origins = instructions.filter_map(|instruction| {
        let is_load = instruction.accesses.iter().any(|access| !access.in_frame);
        match instruction.flow {
            Flow::Branch(_) | Flow::Jump(_) => code.origin(instruction.at),
            _ if is_load => code.origin(instruction.at),
            _ => None,
        }
    });
    origins.map(|origin| origin.does).collect()
}
