//! The edges between nodes: how many lead to each node, and the code that each edge needs.

use super::{Cache, Gen, Shared};
use crate::compiled::JitError;
use crate::limits::MAX_REMEMBERED;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use millrace_midend::cfg::Term;
use millrace_midend::facts::Facts;
use millrace_midend::specialise::{Node, NodeId, Specialised};
use millrace_pipeline::*;
use rustc_hash::FxHashMap;

/// The edges of a specialised graph, as code generation counts them.
pub(super) struct Edges {
    /// Edges into each node.
    pub(super) into: FxHashMap<NodeId, usize>,
    /// How many lookups have packets wait before they go on at a node.
    pub(super) waits_for: FxHashMap<NodeId, usize>,
    /// Where packets that waited for a staged table go on.
    pub(super) resumes: FxHashMap<TableId, Vec<NodeId>>,
}

impl Edges {
    pub(super) fn new(special: &Specialised, shared: &Shared<'_>) -> Edges {
        let mut all = Edges {
            into: FxHashMap::from_iter([(special.entry, 1)]),
            waits_for: FxHashMap::default(),
            resumes: FxHashMap::default(),
        };
        let Edges { into, waits_for, resumes } = &mut all;
        for node in &special.order {
            let Node { term, entry, .. } = &special.nodes[*node];
            match term {
                Term::Lookup { table, next } if shared.waits(*table, entry.phase) => {
                    // All that wait for the table and go on at one node come on one edge.
                    *waits_for.entry(*next).or_default() += 1;
                    let resumes = resumes.entry(*table).or_default();
                    if !resumes.contains(next) {
                        resumes.push(*next);
                        *into.entry(*next).or_default() += 1;
                    }
                }
                _ => term.for_each_target(&mut |to| *into.entry(*to).or_default() += 1),
            }
        }
        all
    }
}

/// An edge that a branch takes.
#[derive(Debug)]
pub(crate) struct Edge {
    /// Where the branch goes: to code of the edge's own, or to the node.
    block: Block,
    to: NodeId,
    /// What holds where the branch is, if the edge needs code.
    facts: Option<Facts>,
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
            let cache = if self.is_only_edge(to) { self.remembered() } else { Cache::default() };
            self.pending.push(Edge { block, to, facts: None, cache });
            return block;
        }
        let block = self.b.create_block();
        if !self.going_on[to] {
            self.b.set_cold_block(block);
        }
        let cache = self.remembered();
        self.pending.push(Edge { block, to, facts: Some(self.facts.clone()), cache });
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
    pub(super) fn finish_edges(&mut self) -> Result<(), JitError> {
        // Code in blocks of their own cannot run on.
        if !self.pending.is_empty() {
            self.following = None;
        }
        for Edge { block, to, facts, cache } in std::mem::take(&mut self.pending) {
            self.check(0)?;
            self.cache = cache;
            match facts {
                Some(facts) => {
                    self.start(block);
                    self.facts = facts;
                    self.jump_to(to);
                }
                None => self.arrive(to, block),
            }
        }
        Ok(())
    }

    /// Goes to a node from here.
    pub(super) fn jump_to(&mut self, to: NodeId) {
        self.conform(&self.special.nodes[to].entry);
        if self.following == Some(to) && self.is_only_edge(to) && self.pending.is_empty() {
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
            let cache = self.remembered();
            self.inherited.insert(to, cache);
        }
    }

    /// A copy of what is remembered; where there are very many values in copies already, nothing.
    fn remembered(&mut self) -> Cache {
        self.remembered += self.cache.values();
        if self.remembered > MAX_REMEMBERED { Cache::default() } else { self.cache.clone() }
    }

    fn is_only_edge(&self, to: NodeId) -> bool {
        self.single.contains(&to)
    }
}
