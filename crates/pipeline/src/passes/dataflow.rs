//! What the analyses share: facts that flow along the edges of a body, and what tables may do.

use crate::{BlockId, Body, HeaderId, Program, SlotId, TableId};
use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// Facts about things; a thing without a fact may be anything. Things are numbers that nobody chooses, so any hash is safe.
pub(super) type Facts<K, V> = FxHashMap<K, V>;

/// A set of things.
pub(super) type Things<K> = FxHashSet<K>;

/// Blocks times facts; above this the facts do not leave their block, so that no program takes quadratic time.
const MAX_WORK: usize = 1 << 24;

/// Runs facts from the entry through a body and calls `block` for each block that is reached, with the facts that hold
/// where it starts. It changes them to those that hold where the block ends and returns the edges that lead on, with
/// the facts that hold there besides.
///
/// Every block comes once, after all its predecessors but those of loops; at the head of a loop no facts hold.
pub(super) fn forward<K: Eq + Hash + Clone, V: Clone + PartialEq>(
    body: &mut Body,
    entry: Facts<K, V>,
    mut visit: impl FnMut(&mut Body, BlockId, &mut Facts<K, V>) -> Vec<(BlockId, Vec<(K, V)>)>,
) {
    let order = body.postorder();
    let mut waiting: SecondaryMap<BlockId, u32> = body.edges_in();
    let mut at: Facts<BlockId, Facts<K, V>> = Facts::default();
    waiting[body.entry] -= 1;
    at.insert(body.entry, entry);
    for block in order.into_iter().rev() {
        let mut facts = at.remove(&block).unwrap_or_default();
        if waiting[block] > 0 {
            // An edge from further on: a loop.
            facts = Facts::default();
        }
        let edges = visit(body, block, &mut facts);
        if facts.len().saturating_mul(body.blocks.len()) > MAX_WORK {
            // Not emptied: each edge would have a copy of all its room.
            facts = Facts::default();
        }
        let mut left = edges.len();
        for (to, more) in edges {
            left -= 1;
            waiting[to] = waiting[to].saturating_sub(1);
            let holds = |k: &K, v: &V| match more.iter().find(|(key, _)| key == k) {
                Some((_, value)) => value == v,
                None => facts.get(k) == Some(v),
            };
            match at.get_mut(&to) {
                Some(there) => there.retain(|k, v| holds(k, v)),
                None => {
                    let mut there = if left > 0 { facts.clone() } else { std::mem::take(&mut facts) };
                    there.extend(more);
                    at.insert(to, there);
                }
            }
        }
    }
}

/// What running any action of a table may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    pub(super) slots: Vec<SlotId>,
    pub(super) headers: Vec<HeaderId>,
}

/// The effects of all tables.
pub(super) fn table_effects(program: &Program) -> SecondaryMap<TableId, Effects> {
    let mut effects: SecondaryMap<TableId, Effects> = SecondaryMap::new();
    for (id, table) in &program.tables {
        let found = &mut effects[id];
        for listed in &table.actions {
            let body = &program.bodies[program.actions[listed.action].body];
            for inst in body.blocks.values().flat_map(|b| &b.insts) {
                found.slots.extend(inst.dst());
                found.headers.extend(inst.header_changed());
            }
        }
        found.slots.extend(table.direct_meter.as_ref().and_then(|m| m.at_hit));
        found.slots.sort_unstable();
        found.slots.dedup();
        found.headers.sort_unstable();
        found.headers.dedup();
    }
    effects
}

/// For each slot how many expressions read it.
pub(super) struct Readers {
    /// In the code of bodies, in keys and in selector inputs of tables.
    pub(super) counts: SecondaryMap<SlotId, u32>,
}

impl Readers {
    pub(super) fn of(program: &Program) -> Readers {
        let mut counts: SecondaryMap<SlotId, u32> = SecondaryMap::with_capacity(program.slots.len());
        let mut add = |slot| counts[slot] += 1;
        for block in program.bodies.values().flat_map(|b| b.blocks.values()) {
            block.for_each_expr(&mut |e| e.for_each_read(&mut add));
        }
        for table in program.tables.values() {
            table.exprs().for_each(|e| e.for_each_read(&mut add));
        }
        Readers { counts }
    }
}
