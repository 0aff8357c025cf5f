//! Ways from node to node: which there are, and the code of each.

use super::{Cache, Gen, Shared};
use crate::flat::Term;
use crate::specialise::{Node, NodeId, Special};
use crate::state::State;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use millrace_pipeline::*;
use rustc_hash::FxHashMap;

/// How nodes are come to.
pub(super) struct Ways {
    /// Edges into each node.
    pub(super) edges: FxHashMap<NodeId, usize>,
    /// How often packets start to wait for what is behind a node.
    pub(super) waits_for: FxHashMap<NodeId, usize>,
    /// Where packets that waited for a staged table go on.
    pub(super) resumes: FxHashMap<TableId, Vec<NodeId>>,
}

impl Ways {
    pub(super) fn new(special: &Special, shared: &Shared<'_>) -> Ways {
        let mut ways = Ways {
            edges: FxHashMap::from_iter([(special.entry, 1)]),
            waits_for: FxHashMap::default(),
            resumes: FxHashMap::default(),
        };
        let Ways { edges, waits_for, resumes } = &mut ways;
        for node in &special.order {
            let Node { term, entry, .. } = &special.nodes[*node];
            match term {
                Term::Lookup { table, next } if shared.waits(*table, entry.phase) => {
                    // All that wait for the table and go on at one node come on one edge.
                    *waits_for.entry(*next).or_default() += 1;
                    let resumes = resumes.entry(*table).or_default();
                    if !resumes.contains(next) {
                        resumes.push(*next);
                        *edges.entry(*next).or_default() += 1;
                    }
                }
                _ => term.for_each_target(&mut |to| *edges.entry(*to).or_default() += 1),
            }
        }
        ways
    }
}

/// An edge that a branch takes.
#[derive(Debug)]
pub(crate) struct Edge {
    /// Where the branch goes: to code of the edge's own, or to the node.
    block: Block,
    to: NodeId,
    /// What holds where the branch is, if the edge needs code.
    state: Option<State>,
    /// What is remembered there.
    cache: Cache,
}

impl Gen<'_> {
    /// Where a node's code starts.
    pub(super) fn block_of(&mut self, node: NodeId) -> Block {
        match self.blocks.get(&node) {
            Some(block) => *block,
            None => {
                let block = self.b.create_block();
                self.blocks.insert(node, block);
                block
            }
        }
    }

    /// A block that leads to a node, for a branch of the current code; its code comes at the end of the node.
    pub(super) fn edge(&mut self, to: NodeId) -> Block {
        if self.conforms(&self.special.nodes[to].entry) {
            let block = self.block_of(to);
            let cache = if self.is_only_edge(to) { self.cache.clone() } else { Cache::default() };
            self.pending.push(Edge { block, to, state: None, cache });
            return block;
        }
        let block = self.b.create_block();
        if !self.going_on[to] {
            self.b.set_cold_block(block);
        }
        self.pending.push(Edge { block, to, state: Some(self.state.clone()), cache: self.cache.clone() });
        block
    }

    /// What is remembered now holds also on an edge that was asked for earlier, and what comes with it.
    pub(super) fn remember_on(&mut self, block: Block, least: &[(Value, u64)]) {
        if let Some(edge) = self.pending.iter_mut().find(|edge| edge.block == block) {
            edge.cache = self.cache.clone();
            edge.cache.least.extend(least.iter().copied());
        }
    }

    /// Generates the edges that the terminator asked for.
    pub(super) fn finish_edges(&mut self) {
        // Code in blocks of their own cannot run on.
        if !self.pending.is_empty() {
            self.behind = None;
        }
        for Edge { block, to, state, cache } in std::mem::take(&mut self.pending) {
            self.cache = cache;
            match state {
                Some(state) => {
                    self.start(block);
                    self.state = state;
                    self.jump_to(to);
                }
                None => self.arrive(to, block),
            }
        }
    }

    /// Goes to a node from here.
    pub(super) fn jump_to(&mut self, to: NodeId) {
        self.conform(&self.special.nodes[to].entry);
        if self.behind == Some(to) && self.is_only_edge(to) && self.pending.is_empty() {
            self.runs_on = true;
            self.inherited.insert(to, std::mem::take(&mut self.cache));
            return;
        }
        let block = self.block_of(to);
        self.b.ins().jump(block, &[]);
        self.arrive(to, block);
    }

    /// An edge to a node has its code.
    fn arrive(&mut self, to: NodeId, block: Block) {
        let left = self.edges_left.entry(to).or_insert(1);
        *left -= 1;
        if *left == 0 {
            self.b.seal_block(block);
        }
        if self.is_only_edge(to) {
            self.inherited.insert(to, self.cache.clone());
        }
    }

    fn is_only_edge(&self, to: NodeId) -> bool {
        self.single.contains(&to)
    }
}
