//! The walk over the graph: which node's code comes next, and the code that edges between nodes need.

use super::cache::Cache;
use super::emitter::Emitter;
use super::slots::SlotAccess;
use super::staged::Staged;
use crate::limits::MAX_REMEMBERED;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use millrace_midend::Verdict;
use millrace_midend::cfg::Term;
use millrace_midend::facts::Facts;
use millrace_midend::specialise::{Node, NodeId, Specialised};
use millrace_pipeline::entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// An edge that a branch takes.
#[derive(Debug)]
pub(super) struct Edge {
    /// Where the branch goes: to code of the edge's own, or to the node.
    block: Block,
    to: NodeId,
    /// What holds where the branch is, if the edge needs code.
    facts: Option<Facts>,
    /// What is remembered there.
    cache: Cache,
}

/// The walk over the nodes of a specialised graph.
///
/// The block of a node is sealed when all edges into it have their code. Edges that a terminator asks for are `pending`
/// until its node is done. A node with a single edge into it goes on with what was remembered on that edge; and if it is
/// the one that comes next, the code runs on into it without a block of its own.
pub(super) struct GraphWalk<'a> {
    special: &'a Specialised,
    /// Where each node's code starts, and how many edges to it are not generated yet.
    blocks: FxHashMap<NodeId, Block>,
    left: FxHashMap<NodeId, usize>,
    /// Nodes with one edge into them.
    single: FxHashSet<NodeId>,
    /// What is remembered on the only edge into a node.
    inherited: FxHashMap<NodeId, Cache>,
    /// Values in all copies of what is remembered.
    remembered: usize,
    /// Edges that still need code.
    pending: Vec<Edge>,
    /// The node whose code comes next, if the current code may run on there.
    following: Option<NodeId>,
    /// Whether it does.
    runs_on: bool,
    /// Nodes from which packets may be sent.
    going_on: SecondaryMap<NodeId, bool>,
    /// The block after the last operation for a packet, by phase.
    pub(super) ends: FxHashMap<u32, Block>,
}

impl<'a> GraphWalk<'a> {
    pub(super) fn new(special: &'a Specialised, staged: &Staged<'_>) -> GraphWalk<'a> {
        let into = edges_into(special, staged);
        let is_single = |(node, edges): (&NodeId, &usize)| (*edges == 1).then_some(*node);
        GraphWalk {
            special,
            blocks: FxHashMap::default(),
            single: into.iter().filter_map(is_single).collect(),
            left: into,
            inherited: FxHashMap::default(),
            remembered: 0,
            pending: Vec::new(),
            following: None,
            runs_on: false,
            going_on: going_on(special),
            ends: FxHashMap::default(),
        }
    }

    /// Whether packets may be sent from a node.
    pub(super) fn goes_on(&self, node: NodeId) -> bool {
        self.going_on[node]
    }

    /// Starts the code of a node, or runs on into it. Its own code may run on into the node that follows.
    pub(super) fn enter(
        &mut self,
        slots: &mut SlotAccess<'_>,
        node: NodeId,
        is_cold: bool,
        following: Option<NodeId>,
    ) {
        if !std::mem::take(&mut self.runs_on) {
            let block = self.block_of(slots.e(), node);
            slots.e().b.switch_to_block(block);
            if is_cold {
                slots.e().b.set_cold_block(block);
            }
        }
        self.following = following;
        slots.packet.cache = self.inherited.remove(&node).unwrap_or_default();
        slots.facts = self.special.nodes[node].entry.clone();
    }

    /// After the last node of a phase.
    pub(super) fn leave(&mut self) {
        debug_assert!(!self.runs_on, "code that ends nowhere");
        self.following = None;
    }

    /// The edges that the terminator asked for; each is to be given to [`GraphWalk::finish`].
    pub(super) fn take_pending(&mut self) -> Vec<Edge> {
        // Code in blocks of their own cannot run on.
        if !self.pending.is_empty() {
            self.following = None;
        }
        std::mem::take(&mut self.pending)
    }

    /// Generates an edge.
    pub(super) fn finish(&mut self, slots: &mut SlotAccess<'_>, edge: Edge) {
        let Edge { block, to, facts, cache } = edge;
        slots.packet.cache = cache;
        match facts {
            Some(facts) => {
                slots.e().start(block);
                slots.facts = facts;
                self.jump_to(slots, to);
            }
            None => self.arrive(slots, to, block),
        }
    }

    /// A block that leads to a node, for a branch of the current code; its code comes at the end of the node.
    pub(super) fn edge(&mut self, slots: &mut SlotAccess<'_>, to: NodeId) -> Block {
        if slots.conforms(&self.special.nodes[to].entry) {
            let block = self.block_of(slots.e(), to);
            let cache =
                if self.is_only_edge(to) { self.remembered(&slots.packet.cache) } else { Cache::default() };
            self.pending.push(Edge { block, to, facts: None, cache });
            return block;
        }
        let block = slots.e().new_block();
        if !self.going_on[to] {
            slots.e().b.set_cold_block(block);
        }
        let cache = self.remembered(&slots.packet.cache);
        self.pending.push(Edge { block, to, facts: Some(slots.facts.clone()), cache });
        block
    }

    /// What is remembered now holds also on an edge that was asked for earlier, and what comes with it.
    pub(super) fn remember_on(&mut self, cache: &Cache, block: Block, least: &[(Value, u64)]) {
        if let Some(edge) = self.pending.iter_mut().find(|edge| edge.block == block) {
            edge.cache = cache.clone();
            edge.cache.least.extend(least.iter().copied());
        }
    }

    /// Goes to a node from here.
    pub(super) fn jump_to(&mut self, slots: &mut SlotAccess<'_>, to: NodeId) {
        slots.conform(&self.special.nodes[to].entry);
        if self.following == Some(to) && self.is_only_edge(to) && self.pending.is_empty() {
            self.runs_on = true;
            self.inherited.insert(to, std::mem::take(&mut slots.packet.cache));
            return;
        }
        let block = self.block_of(slots.e(), to);
        slots.ins().jump(block, &[]);
        self.arrive(slots, to, block);
    }

    /// An edge to a node has its code.
    fn arrive(&mut self, slots: &mut SlotAccess<'_>, to: NodeId, block: Block) {
        let left = self.left.entry(to).or_insert(1);
        *left -= 1;
        if *left == 0 {
            slots.e().b.seal_block(block);
        }
        if self.is_only_edge(to) {
            let cache = self.remembered(&slots.packet.cache);
            self.inherited.insert(to, cache);
        }
    }

    /// A copy of what is remembered; where there are very many values in copies already, nothing.
    fn remembered(&mut self, cache: &Cache) -> Cache {
        self.remembered += cache.values();
        if self.remembered > MAX_REMEMBERED { Cache::default() } else { cache.clone() }
    }

    fn is_only_edge(&self, to: NodeId) -> bool {
        self.single.contains(&to)
    }

    /// Where a node's code starts.
    pub(super) fn block_of(&mut self, e: &mut Emitter<'_>, node: NodeId) -> Block {
        match self.blocks.get(&node) {
            Some(block) => *block,
            None => {
                let block = e.new_block();
                self.blocks.insert(node, block);
                block
            }
        }
    }
}

/// How many edges lead into each node. All packets that wait for a table and go on at one node come on one edge.
fn edges_into(special: &Specialised, staged: &Staged<'_>) -> FxHashMap<NodeId, usize> {
    let mut into = FxHashMap::from_iter([(special.entry, 1)]);
    for node in &special.order {
        let Node { term, entry, .. } = &special.nodes[*node];
        match term {
            Term::Lookup { table, .. } if staged.waits(*table, entry.phase) => {}
            _ => term.for_each_target(&mut |to| *into.entry(*to).or_default() += 1),
        }
    }
    for node in staged.resumed() {
        *into.entry(node).or_default() += 1;
    }
    into
}

/// The nodes from which packets may be sent, or all when that is not this code's business.
fn going_on(special: &Specialised) -> SecondaryMap<NodeId, bool> {
    let sends = |node: &NodeId| matches!(&special.nodes[*node].term, Term::Leave(leave) if matches!(leave.verdict, Verdict::Forward | Verdict::ForwardEach));
    if !special.order.iter().any(sends) {
        return SecondaryMap::with_default(true);
    }
    let mut on: SecondaryMap<NodeId, bool> = SecondaryMap::with_default(false);
    let mut changed = true;
    while changed {
        changed = false;
        let nodes = special.order.iter().rev();
        for node in nodes.filter(|node| sends(node) || !on[**node]).collect::<Vec<_>>() {
            let mut goes = sends(node);
            special.nodes[*node].term.for_each_target(&mut |to| goes |= on[*to]);
            changed |= goes && !std::mem::replace(&mut on[*node], goes);
        }
    }
    on
}
