//! Passes over the graph of blocks.

use crate::{Block, BlockId, Body, Program, Terminator};
use cranelift_entity::{PrimaryMap, SecondaryMap};

/// Removes the blocks that the entry does not reach. The others keep their order; their numbers close up.
pub fn remove_unreachable_blocks(body: &mut Body) {
    let mut reached = body.postorder();
    if reached.len() < body.blocks.len() {
        reached.sort_unstable();
        renumber(body, &reached);
    }
}

/// Keeps these blocks, in this order.
fn renumber(body: &mut Body, order: &[BlockId]) {
    let mut number: SecondaryMap<BlockId, BlockId> = SecondaryMap::with_default(body.entry);
    let mut blocks = PrimaryMap::with_capacity(order.len());
    for id in order {
        let empty = Block { state: None, line: None, insts: Vec::new(), term: Terminator::End };
        number[*id] = blocks.push(std::mem::replace(&mut body.blocks[*id], empty));
    }
    for block in blocks.values_mut() {
        block.term.for_each_successor_mut(&mut |to| *to = number[*to]);
    }
    body.blocks = blocks;
    body.entry = number[body.entry];
}

/// Leads edges past blocks that only go elsewhere, and joins a block with its only successor when it is the only
/// predecessor. Blocks where a parser state starts stay apart, for traces. Blocks are numbered in the order of the flow,
/// from the entry on.
pub fn merge_blocks(program: &mut Program) {
    for body in program.bodies.values_mut() {
        skip_empty_blocks(body);
        join_blocks(body);
        let mut order = body.postorder();
        order.reverse();
        renumber(body, &order);
    }
}

fn skip_empty_blocks(body: &mut Body) {
    let mut target: SecondaryMap<BlockId, BlockId> = SecondaryMap::with_default(body.entry);
    body.blocks.keys().for_each(|id| target[id] = id);
    // In postorder it is known already where the successor leads, but in a loop, where the successor itself will do.
    for id in body.postorder() {
        if let Block { state: None, insts, term: Terminator::Goto(to), .. } = &body.blocks[id]
            && insts.is_empty()
        {
            target[id] = target[*to];
        }
    }
    for block in body.blocks.values_mut() {
        block.term.for_each_successor_mut(&mut |to| *to = target[*to]);
    }
    body.entry = target[body.entry];
}

fn join_blocks(body: &mut Body) {
    let edges = body.edges_in();
    // From the first block of a chain on, so that each instruction moves once.
    for id in body.postorder().into_iter().rev() {
        while let Terminator::Goto(to) = body.blocks[id].term
            && to != id
            && edges[to] == 1
            && body.blocks[to].state.is_none()
        {
            let empty = Block { state: None, line: None, insts: Vec::new(), term: Terminator::End };
            let mut next = std::mem::replace(&mut body.blocks[to], empty);
            let block = &mut body.blocks[id];
            block.line = block.line.or(next.line);
            block.insts.append(&mut next.insts);
            block.term = next.term;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BodyBuilder, BodyKind, HeaderId, Inst, ProgramBuilder};
    use std::time::{Duration, Instant};

    /// With all that follow it each of them would move 2^33 times together: a minute.
    #[test]
    fn each_instruction_of_a_chain_of_blocks_moves_once() {
        const BLOCKS: usize = 1 << 17;
        let mut program = ProgramBuilder::new("chain", "none");
        let mut body = BodyBuilder::new("chain", BodyKind::Control);
        for _ in 0..BLOCKS {
            body.push(Inst::SetValid(HeaderId::from_u32(0)));
            let next = body.create_block();
            body.goto(next);
            body.switch_to(next);
        }
        body.end();
        let id = body.finish(&mut program).unwrap();
        let mut program = program.finish();
        let start = Instant::now();
        merge_blocks(&mut program);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        let body = &program.bodies[id];
        assert_eq!((body.blocks.len(), body.blocks[body.entry].insts.len()), (1, BLOCKS));
    }
}
