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
    for id in body.postorder() {
        // In postorder the successor took in its own successors before.
        if let Terminator::Goto(to) = body.blocks[id].term
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
