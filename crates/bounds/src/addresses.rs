//! Which addresses are a known distance apart: registers and places of the frame get the value that they hold as a name and a distance.
//!
//! A name stands for what one instruction computed ([`Name::Given`]), or for what a register holds where paths meet that bring
//! different values ([`Name::Joined`]). Moves between registers and the frame, and sums with numbers, keep the name. So two
//! addresses of one name lie as far apart as their distances say, also in different blocks, until what the name stands for happens
//! again: in the next turn of a loop.
//!
//! This is value numbering of registers alone (Alpern, Wegman and Zadeck, Detecting Equality of Variables in Programs). At the start
//! of a loop a register keeps the value that it has before the loop as long as no path back brings another one; where one does, all is
//! done again with a name of its own there.
//!
//! **Given**: what is read from a place of the frame is what was written there last by an instruction that names the place. The register
//! allocator's places are used in no other way. Places that are used by address (`MachineCode::frame_by_address`) are not followed.

use crate::decode::{Access, FRAME_X86, Flow, Instruction, Moves, REGISTERS, register};
use crate::graph::{BlockNumber, Flowing, Graph};
use crate::levels::Levels;
use millrace_midend::machine::Processor;
use rustc_hash::{FxHashMap, FxHashSet};

/// Most places of the frame that are followed, times blocks: beyond, only registers are.
const MAX_FOLLOWED: usize = 1 << 21;
/// Most times that all is done again: then each loop has names of its own.
const MAX_ROUNDS: usize = 16;

/// A value, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Name {
    /// What a register held at the start of the code.
    Argument(u16),
    /// What the instruction at an offset gave a register, or a place.
    Given(u32, u16),
    /// What is in a register or a place whenever a block starts.
    Joined(BlockNumber, u16),
    /// What is known of no other access: of the instruction at an offset alone.
    Own(u32),
}

/// The address of an access but for its distance: two that are equal are as far apart as their distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Base {
    pub(crate) name: Name,
    /// What is added to it, so many times.
    pub(crate) index: Option<(Name, u8)>,
}

/// Bytes from a base on: from the first one to after the last one.
pub(crate) type Span = (i64, i64);

/// An access to memory outside of the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) block: BlockNumber,
    /// The place of its instruction in the block.
    pub(crate) at: usize,
    pub(crate) base: Base,
    pub(crate) span: Span,
    /// How many accesses of the block it waits for, of one after the other.
    pub(crate) level: u32,
}

/// All accesses of some code to memory outside of the frame, block by block, and where each name gets another value.
pub(crate) struct Addresses {
    pub(crate) touches: Vec<Touch>,
    /// The block and the place in it of the instruction that gives a value.
    pub(crate) given: FxHashMap<Name, (BlockNumber, usize)>,
}

/// A name and a distance.
type Value = (Name, i64);

impl Addresses {
    /// Of code for a processor, with so many bytes of its frame used by address.
    pub(crate) fn new(graph: &Graph, processor: Processor, frame_by_address: u32) -> Addresses {
        let mut found = Addresses { touches: Vec::new(), given: FxHashMap::default() };
        if processor != Processor::X86_64 {
            // What instructions do with addresses is not decoded.
            found.touch_each_alone(graph);
            return found;
        }
        let follow = Follow::new(graph, frame_by_address);
        let starts = follow.starts();
        for (block, start) in starts.into_iter().enumerate() {
            let Some(mut state) = start else { continue };
            let mut levels = Levels::default();
            for (at, instruction) in graph.blocks[block].instructions.iter().enumerate() {
                for access in instruction.accesses.iter().filter(|access| !access.in_frame) {
                    let (base, distance) = follow.base(&state, instruction, access);
                    let span = (distance, distance.saturating_add(access.size.into()));
                    let level = levels.of(access);
                    found.touches.push(Touch { block, at, base, span, level });
                }
                levels.pass(at, instruction);
                follow.pass(&mut state, instruction, &mut |name| {
                    found.given.insert(name, (block, at));
                });
            }
        }
        found
    }

    fn touch_each_alone(&mut self, graph: &Graph) {
        for (block, found) in graph.blocks.iter().enumerate() {
            for (at, instruction) in found.instructions.iter().enumerate() {
                for access in instruction.accesses.iter().filter(|access| !access.in_frame) {
                    let base = Base { name: Name::Own(instruction.at), index: None };
                    let name = base.name;
                    let span = (access.offset, access.offset + i64::from(access.size));
                    self.touches.push(Touch { block, at, base, span, level: at as u32 });
                    // It is another address each time.
                    self.given.insert(name, (block, at));
                }
            }
        }
    }
}

/// What is followed.
struct Follow<'g> {
    graph: &'g Graph,
    /// The places of the frame, after the registers.
    places: FxHashMap<i64, usize>,
}

impl<'g> Follow<'g> {
    fn new(graph: &'g Graph, by_address: u32) -> Follow<'g> {
        let all = || graph.blocks.iter().flat_map(|block| &block.instructions).map(|found| found.moves);
        let lent = all().filter_map(|moves| if let Moves::Lend { at } = moves { Some(at) } else { None });
        let lent = lent.min().map_or(0..0, |first| first..first.saturating_add(by_address.into()));
        let mut places = FxHashMap::default();
        let stored =
            all().filter_map(|moves| if let Moves::Store { at, .. } = moves { Some(at) } else { None });
        for at in stored.filter(|at| at + 8 <= lent.start || lent.end <= *at) {
            let number = REGISTERS + places.len();
            if (number + 1) * graph.blocks.len() > MAX_FOLLOWED || number >= usize::from(u16::MAX) {
                places.clear();
                break;
            }
            places.entry(at).or_insert(number);
        }
        Follow { graph, places }
    }

    fn len(&self) -> usize {
        REGISTERS + self.places.len()
    }

    /// What is held where each block starts; none: nothing leads there.
    fn starts(&self) -> Vec<Option<Vec<Value>>> {
        let blocks = &self.graph.blocks;
        let Flowing { order, place, predecessors, .. } = &self.graph.flowing;
        // What has a name of its own at the start of a loop.
        let mut own: FxHashSet<(BlockNumber, usize)> = FxHashSet::default();
        for round in 0.. {
            let mut starts: Vec<Option<Vec<Value>>> = vec![None; blocks.len()];
            let mut ends: Vec<Option<Vec<Value>>> = vec![None; blocks.len()];
            for block in order.iter().copied() {
                let mut state: Option<Vec<Value>> =
                    (block == 0).then(|| (0..self.len()).map(|at| (Name::Argument(at as u16), 0)).collect());
                for before in predecessors[block].iter().filter(|before| place[**before] < place[block]) {
                    let Some(end) = &ends[*before] else { continue };
                    match &mut state {
                        None => state = Some(end.clone()),
                        Some(state) => meet(state, end, block),
                    }
                }
                let Some(mut state) = state else { continue };
                for (at, held) in state.iter_mut().enumerate() {
                    if own.contains(&(block, at)) {
                        *held = (Name::Joined(block, at as u16), 0);
                    }
                }
                starts[block] = Some(state.clone());
                for instruction in &blocks[block].instructions {
                    self.pass(&mut state, instruction, &mut |_| ());
                }
                ends[block] = Some(state);
            }
            // Paths back: what they bring has to be what was taken for granted.
            let mut is_so = true;
            for (before, to) in
                (0..blocks.len()).flat_map(|from| blocks[from].successors.iter().map(move |to| (from, *to)))
            {
                let (true, Some(end), Some(start)) = (place[to] <= place[before], &ends[before], &starts[to])
                else {
                    continue;
                };
                for at in 0..self.len() {
                    let is_own = start[at] == (Name::Joined(to, at as u16), 0);
                    if !is_own && (start[at] != end[at] || round >= MAX_ROUNDS) {
                        is_so = false;
                        own.insert((to, at));
                    }
                }
            }
            if is_so {
                return starts;
            }
        }
        Vec::new()
    }

    /// The address that an access uses, and its distance.
    fn base(&self, state: &[Value], instruction: &Instruction, access: &Access) -> (Base, i64) {
        let held = |number: u16| register(number).map(|at| state[at]);
        let [first, second] = access.registers;
        let nothing = (Name::Argument(u16::MAX), 0);
        let (name, distance) = match (first, held(first)) {
            (0, _) => nothing,
            (_, Some(value)) => value,
            // Of the code itself: a constant.
            (_, None) => (Name::Own(instruction.at), 0),
        };
        let mut distance = distance.wrapping_add(access.offset);
        let index = match (second, held(second)) {
            (0, _) => None,
            (_, Some((name, times))) => {
                distance = distance.wrapping_add(times.wrapping_mul(access.scale.into()));
                Some((name, access.scale))
            }
            (_, None) => Some((Name::Own(instruction.at), access.scale)),
        };
        (Base { name, index }, distance)
    }

    /// What is held after an instruction; `gives` is told the names of what it computes.
    fn pass(&self, state: &mut [Value], instruction: &Instruction, gives: &mut impl FnMut(Name)) {
        let moved = match instruction.moves {
            Moves::Sum { to, from, by } => match (register(to), register(from)) {
                (Some(to), Some(from)) => Some((to, (state[from].0, state[from].1.wrapping_add(by)))),
                _ => None,
            },
            Moves::Load { to, at } => match (register(to), self.places.get(&at)) {
                (Some(to), Some(place)) => Some((to, state[*place])),
                _ => None,
            },
            Moves::Store { at, from } => match (self.places.get(&at), register(from)) {
                (Some(place), Some(from)) => Some((*place, state[from])),
                _ => None,
            },
            Moves::Nothing | Moves::Lend { .. } => None,
        };
        let mut give = |at: usize| {
            let name = Name::Given(instruction.at, at as u16);
            state[at] = (name, 0);
            gives(name);
        };
        for at in instruction.changes.iter().filter_map(|number| register(*number)) {
            give(at);
        }
        // Functions that are called give the frame back as it was.
        let calls = instruction.flow == Flow::Call;
        let moves_frame = !calls && instruction.changes.contains(&FRAME_X86);
        let writes = instruction.accesses.iter().filter(|access| access.in_frame && access.writes && !calls);
        for access in writes {
            let span = (access.offset, access.offset + i64::from(access.size));
            let is_told = access.registers == [FRAME_X86, 0];
            for (at, place) in self.places.iter() {
                if !is_told || *at < span.1 && span.0 < at + 8 {
                    give(*place);
                }
            }
        }
        if moves_frame {
            self.places.values().for_each(|place| give(*place));
        }
        if let Some((to, value)) = moved {
            state[to] = value;
        }
    }
}

/// What is held where two paths come to a block.
fn meet(state: &mut [Value], other: &[Value], block: BlockNumber) {
    for (at, (held, other)) in state.iter_mut().zip(other).enumerate() {
        if held != other {
            *held = (Name::Joined(block, at as u16), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decode, Instruction};
    use crate::graph::Block;

    /// The code of a block, and where it leads.
    type Coded<'a> = (&'a [u8], &'a [BlockNumber]);

    fn graph(blocks: &[Coded<'_>]) -> Graph {
        let mut from = 0;
        let blocks: Vec<Block> = blocks
            .iter()
            .map(|(bytes, successors)| {
                let mut decode = Decode::new(bytes, Processor::X86_64);
                let (mut at, mut instructions) = (0, Vec::new());
                while (at as usize) < bytes.len() {
                    let found = decode.at(at).unwrap();
                    at += found.len;
                    instructions.push(Instruction { at: from + found.at, ..found });
                }
                from += at;
                Block { instructions, successors: successors.to_vec() }
            })
            .collect();
        let loop_of = vec![None; blocks.len()];
        Graph { flowing: Flowing::new(&blocks), blocks, loops: Vec::new(), loop_of }
    }

    /// The names and first bytes of what is touched.
    fn touched(blocks: &[Coded<'_>], by_address: u32) -> Vec<(Name, i64)> {
        let found = Addresses::new(&graph(blocks), Processor::X86_64, by_address);
        found.touches.iter().map(|touch| (touch.base.name, touch.span.0)).collect()
    }

    const RDI: u16 = 7;

    #[test]
    fn moves_and_sums_keep_the_name() {
        // mov rax, rdi; add rax, 16; mov [rsp + 8], rax; mov rcx, [rsp + 8]; lea rdx, [rcx - 4]; mov r8, [rdx + 1]; mov r9, [rdi]
        let code = [
            0x48, 0x89, 0xf8, 0x48, 0x83, 0xc0, 16, 0x48, 0x89, 0x44, 0x24, 8, 0x48, 0x8b, 0x4c, 0x24, 8,
            0x48, 0x8d, 0x51, 0xfc, 0x4c, 0x8b, 0x42, 1, 0x4c, 0x8b, 0x0f,
        ];
        let name = Name::Argument(RDI);
        assert_eq!(touched(&[(&code, &[])], 0), [(name, 13), (name, 0)]);
        // Where the place is used by address, what is in it is not known: lea rsi, [rsp + 8] comes first.
        let lent = [&[0x48, 0x8d, 0x74, 0x24, 8][..], &code].concat();
        let found = touched(&[(&lent, &[])], 16);
        assert!(matches!(found[..], [(Name::Given(..), -3), (Name::Argument(RDI), 0)]), "{found:?}");
    }

    #[test]
    fn calls_and_other_instructions_give_new_values() {
        // mov rax, [rdi]; call rbx; mov rax, [rdi]; mov rcx, [rbx]
        let code = [0x48, 0x8b, 7, 0xff, 0xd3, 0x48, 0x8b, 7, 0x48, 0x8b, 0x0b];
        let found = touched(&[(&code, &[])], 0);
        // rdi is the callee's, rbx (register 3) stays.
        assert!(
            matches!(found[..], [(Name::Argument(RDI), 0), (Name::Given(3, RDI), 0), (Name::Argument(3), 0)]),
            "{found:?}"
        );
    }

    #[test]
    fn what_paths_bring_is_one_name_if_it_is_one_value() {
        // mov rax, [rdi] in the last of four blocks, of which one changes rdi on its path: mov rdi, rsi; nop.
        let change: Coded<'_> = (&[0x48, 0x89, 0xf7], &[3]);
        let stay: Coded<'_> = (&[0x90], &[3]);
        let (start, end): (Coded<'_>, Coded<'_>) = ((&[0x90], &[1, 2]), (&[0x48, 0x8b, 7], &[]));
        assert_eq!(touched(&[start, stay, stay, end], 0), [(Name::Argument(RDI), 0)]);
        assert_eq!(touched(&[start, change, stay, end], 0), [(Name::Joined(3, RDI), 0)]);
    }

    #[test]
    fn loops_keep_what_no_turn_changes() {
        // mov rax, [rdi]; mov rcx, [rsi]; add rsi, 8
        let turn = [0x48, 0x8b, 7, 0x48, 0x8b, 0x0e, 0x48, 0x83, 0xc6, 8];
        let found = touched(&[(&[0x90], &[1]), (&turn, &[1, 2]), (&[0xc3], &[])], 0);
        assert_eq!(found, [(Name::Argument(RDI), 0), (Name::Joined(1, 6), 0)]);
    }
}
