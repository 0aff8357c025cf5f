//! Passes over the graph of blocks.

use crate::{BlockId, Body};
use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};

/// Removes the blocks that the entry does not reach. The others keep their order; their numbers close up.
pub fn remove_unreachable_blocks(body: &mut Body) {
    let mut reached = EntitySet::with_capacity(body.blocks.len());
    for block in body.postorder() {
        reached.insert(block);
    }
    if body.blocks.keys().all(|b| reached.contains(b)) {
        return;
    }
    let mut kept = PrimaryMap::new();
    let mut number: SecondaryMap<BlockId, BlockId> = SecondaryMap::with_default(body.entry);
    for (id, block) in std::mem::take(&mut body.blocks) {
        if reached.contains(id) {
            number[id] = kept.push(block);
        }
    }
    for block in kept.values_mut() {
        block.term.for_each_successor_mut(&mut |to| *to = number[*to]);
    }
    body.blocks = kept;
    body.entry = number[body.entry];
}
