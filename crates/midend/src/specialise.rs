//! Cloning blocks by what is known where they are entered.
//!
//! Each block of the cfg graph becomes one node for each different [`Facts`] that it is entered with, so that on usual
//! paths no code is left for validity, header offsets and constant metadata. Growth has a budget: a block with many
//! clones gets nodes that forget constant slots, then nodes that forget where in the packet headers are, then one node
//! that joins whatever comes.

use crate::budget::Refusal;
use crate::budget::{Limit, MAX_FACTS, Meter};
use crate::cfg::{Cfg, CfgId, Op, Term};
use crate::facts::{Facts, HeaderPlace, number};
use crate::liveness::Set;
use crate::precision::Precision;
use crate::simplify::simplify;
use millrace_pipeline::entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl};
use millrace_pipeline::*;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A node of the specialised graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);
entity_impl!(NodeId, "node");

/// A clone of a cfg block.
#[derive(Clone, Debug)]
pub struct Node {
    /// The block that it is a clone of.
    pub block: CfgId,
    /// What holds at its start.
    pub entry: Facts,
    /// Where it goes; expressions are simplified.
    pub term: Term<NodeId>,
}

/// The specialised graph.
#[derive(Clone, Debug)]
pub struct Specialised {
    /// All nodes that were made.
    pub nodes: PrimaryMap<NodeId, Node>,
    /// Where packets come in.
    pub entry: NodeId,
    /// The nodes that the entry reaches, in reverse postorder.
    pub order: Vec<NodeId>,
    /// The slots whose constants tell nodes apart.
    pub tracked: SecondaryMap<SlotId, bool>,
}

/// The bounds of growth.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Clones of one block that differ in anything.
    pub exact: usize,
    /// Clones of one block that differ in headers and cursor.
    pub shaped: usize,
    /// Clones of one block that differ in which headers are valid, and whether those are in the packet.
    pub sorted: usize,
    /// Nodes in all, as a multiple of the blocks, above which every block gets its one general node.
    pub factor: usize,
}

/// Above so many blocks a graph hardly grows: it would take seconds to compile.
const MANY_BLOCKS: usize = 800;
impl Growth {
    /// One node for each block.
    pub const NONE: Growth = Growth { exact: 0, shaped: 0, sorted: 0, factor: 1 };

    /// For a graph whose code is to be fast.
    pub fn of(cfg: &Cfg) -> Growth {
        match cfg.blocks.len() > MANY_BLOCKS {
            true => Growth::NONE,
            false => Growth { exact: 8, shaped: 16, sorted: 24, factor: 8 },
        }
    }
}

/// Specialises a graph from the facts at its entry. `stage_of` gives the number of the loop that starts after a staged
/// table.
pub fn specialise(
    program: &Program,
    cfg: &Cfg,
    entry: Facts,
    growth: Growth,
    stage_of: &dyn Fn(TableId) -> Option<u32>,
    meter: &Meter<'_>,
) -> Result<Specialised, Refusal> {
    // A bit for each slot at each block, and as much again when code is generated.
    if cfg.blocks.len() as u64 * program.slots.len() as u64 / 8 > MAX_FACTS / 2 {
        return Err(Refusal::TooLarge(Limit::Facts));
    }
    let tracked = tracked_slots(program, cfg);
    meter.spend(program.slots.len() + cfg.blocks.len())?;
    let live = live_slots(program, cfg, &tracked, meter)?;
    let mut work = Work {
        program,
        cfg,
        growth,
        stage_of,
        tracked,
        live,
        nodes: PrimaryMap::new(),
        clones: SecondaryMap::new(),
        ranks: if growth.exact == 0 { ranks(cfg) } else { SecondaryMap::with_default(0) },
        queue: BTreeSet::new(),
        fact_bytes: 0,
    };
    let start = work.node_for(cfg.entry, &entry);
    while let Some((_, node)) = work.queue.pop_first() {
        meter.spend(work.steps(node))?;
        // Each edge may need what is known on it, all at once: of a stack of headers there is an edge for each element.
        if work.edge_bytes(node) > MAX_FACTS {
            return Err(Refusal::TooLarge(Limit::Facts));
        }
        work.process(node);
        if work.fact_bytes > MAX_FACTS {
            return Err(Refusal::TooLarge(Limit::Facts));
        }
    }
    let order = reverse_postorder(work.nodes.len(), start, |node| &work.nodes[node].term);
    Ok(Specialised { nodes: work.nodes, entry: start, order, tracked: work.tracked })
}

struct Work<'a> {
    program: &'a Program,
    cfg: &'a Cfg,
    growth: Growth,
    stage_of: &'a dyn Fn(TableId) -> Option<u32>,
    tracked: SecondaryMap<SlotId, bool>,
    live: SecondaryMap<CfgId, Set>,
    nodes: PrimaryMap<NodeId, Node>,
    /// The nodes of each block.
    clones: SecondaryMap<CfgId, Vec<(Precision, NodeId)>>,
    /// With one clone for each block its rank in reverse postorder, so that what joins at a node has come together, but for
    /// loops, when the node is processed. With more clones 0: the short paths come first, and get the finest ones.
    ranks: SecondaryMap<CfgId, usize>,
    /// Nodes to process, by rank, then in the order in which they were found.
    queue: BTreeSet<(usize, NodeId)>,
    /// Bytes of what is known at all nodes.
    fact_bytes: u64,
}

impl Work<'_> {
    /// The node for a block entered with that facts; queued when what holds there changes.
    fn node_for(&mut self, block: CfgId, facts: &Facts) -> NodeId {
        let live = &self.live[block];
        let keep = |slot: SlotId| live.contains(slot.index());
        let clones = &self.clones[block];
        let find = |kind: Precision| {
            let mut same = clones.iter().filter(|(its, _)| *its == kind).map(|(_, node)| *node);
            same.find(|node| kind.takes(&self.nodes[*node].entry, facts, keep))
        };
        let full = self.nodes.len() > 64 + self.growth.factor * self.cfg.blocks.len();
        let bounds = [
            (Precision::Exact, self.growth.exact),
            (Precision::Shaped, self.growth.shaped),
            (Precision::Sorted, self.growth.sorted),
        ];
        let (mut kind, mut found) = (Precision::General, None);
        for (finer, most) in bounds {
            found = find(finer);
            if found.is_some() || clones.len() < most && !full {
                kind = finer;
                break;
            }
        }
        if kind == Precision::General {
            found = find(kind);
        }
        if let Some(node) = found {
            if self.nodes[node].entry.join(facts) {
                self.queue.insert((self.ranks[block], node));
            }
            return node;
        }
        let mut entry = facts.clone();
        entry.constants.retain(keep);
        self.fact_bytes += entry.bytes() as u64;
        let node = self.nodes.push(Node { block, entry, term: Term::Goto(NodeId::from_u32(0)) });
        self.clones[block].push((kind, node));
        self.queue.insert((self.ranks[block], node));
        node
    }

    /// About what it takes to process a node: each operation, and for each edge what is known there.
    fn steps(&self, id: NodeId) -> usize {
        let Node { block, entry, .. } = &self.nodes[id];
        let block = &self.cfg.blocks[*block];
        let mut edges = 1;
        block.term.for_each_target(&mut |_| edges += 1);
        block.ops.len() + (block.cost.code / 4) as usize + edges * (1 + entry.bytes() / 64)
    }

    /// What is known on all edges of a node together takes about so many bytes.
    fn edge_bytes(&self, id: NodeId) -> u64 {
        let Node { block, entry, .. } = &self.nodes[id];
        let mut edges = 0;
        self.cfg.blocks[*block].term.for_each_target(&mut |_| edges += 1);
        edges * entry.bytes() as u64
    }

    fn process(&mut self, id: NodeId) {
        let block = self.nodes[id].block;
        let mut facts = self.nodes[id].entry.clone();
        let tracked = &self.tracked;
        for op in &self.cfg.blocks[block].ops {
            facts.transfer(self.program, op, &|slot| tracked[slot]);
        }
        let edges = self.edges(&self.cfg.blocks[block].term, &facts);
        let term = edges.map(&mut |(block, facts): &(CfgId, Cow<'_, Facts>)| self.node_for(*block, facts));
        self.nodes[id].term = term;
    }

    /// The terminator with what is known put in, and the facts on each edge.
    fn edges<'s>(&self, term: &Term<CfgId>, facts: &'s Facts) -> Term<(CfgId, Cow<'s, Facts>)> {
        let p = self.program;
        let to = |block: &CfgId| (*block, Cow::Borrowed(facts));
        let with = |block: &CfgId, facts: Facts| (*block, Cow::Owned(facts));
        match term {
            Term::Branch { cond, then, els } => match simplify(p, cond, facts) {
                Expr::Bool(true) => Term::Goto(to(then)),
                Expr::Bool(false) => Term::Goto(to(els)),
                cond => {
                    let mut yes = facts.clone();
                    let mut no = facts.clone();
                    self.assume(&cond, true, &mut yes);
                    self.assume(&cond, false, &mut no);
                    Term::Branch { cond, then: with(then, yes), els: with(els, no) }
                }
            },
            Term::Select { keys, cases, default } => self.select(keys, cases, *default, facts),
            Term::Extract { header, next, short } => {
                let mut read = facts.clone();
                read.extracted(p, *header);
                Term::Extract { header: *header, next: with(next, read), short: to(short) }
            }
            Term::ExtractVar { header, bits, next, short, long, invalid } => {
                let mut read = facts.clone();
                read.extracted_var(p, *header);
                Term::ExtractVar {
                    header: *header,
                    bits: simplify(p, bits, facts),
                    next: with(next, read),
                    short: to(short),
                    long: to(long),
                    invalid: to(invalid),
                }
            }
            Term::Advance { bits, next, short, invalid } => {
                let bits = simplify(p, bits, facts);
                let mut moved = facts.clone();
                match number(&bits) {
                    Some(by) if !by.is_multiple_of(8) => return Term::Goto(to(invalid)),
                    by => moved.advanced(by),
                }
                Term::Advance { bits, next: with(next, moved), short: to(short), invalid: to(invalid) }
            }
            Term::Lookahead { dst, skip, next, short } => {
                let mut read = facts.clone();
                read.learn(p, *dst, None);
                Term::Lookahead { dst: *dst, skip: *skip, next: with(next, read), short: to(short) }
            }
            Term::Lookup { table, next } => {
                let mut found = facts.clone();
                // A table whose loop has passed already is looked up where it is applied.
                if let Some(phase) = (self.stage_of)(*table).filter(|phase| *phase > facts.phase) {
                    found.phase = phase;
                }
                Term::Lookup { table: *table, next: with(next, found) }
            }
            other => other.map(&mut |block| to(block)),
        }
    }

    fn select<'s>(
        &self,
        keys: &[Expr],
        cases: &[(Vec<Matcher>, CfgId)],
        default: CfgId,
        facts: &'s Facts,
    ) -> Term<(CfgId, Cow<'s, Facts>)> {
        let keys: Vec<Expr> = keys.iter().map(|key| simplify(self.program, key, facts)).collect();
        let mut left = Vec::new();
        for (matchers, target) in cases {
            let mut certain = true;
            let mut possible = true;
            let mut taken = facts.clone();
            let mut at = 0;
            for matcher in matchers {
                let key = keys.get(at);
                at += match matcher {
                    Matcher::ValueSet(set) => self.program.value_sets[*set].fields.len(),
                    _ => 1,
                };
                match decide(matcher, key) {
                    Some(true) => {}
                    Some(false) => possible = false,
                    None => certain = false,
                }
                if let (Matcher::Value(value), Some(Expr::Read(slot))) = (matcher, key)
                    && self.tracked[*slot]
                {
                    taken.learn(self.program, *slot, value.to_u64());
                }
            }
            if certain && possible {
                if left.is_empty() {
                    return Term::Goto((*target, Cow::Owned(taken)));
                }
                return Term::Select { keys, cases: left, default: (*target, Cow::Owned(taken)) };
            }
            if possible {
                left.push((matchers.clone(), (*target, Cow::Owned(taken))));
            }
        }
        if left.is_empty() {
            return Term::Goto((default, Cow::Borrowed(facts)));
        }
        Term::Select { keys, cases: left, default: (default, Cow::Borrowed(facts)) }
    }

    /// What a condition tells when it is known to hold, or not to.
    fn assume(&self, cond: &Expr, holds: bool, facts: &mut Facts) {
        match (cond, holds) {
            (Expr::Read(slot), _) if self.tracked[*slot] => {
                facts.learn(self.program, *slot, Some(u64::from(holds)));
            }
            (Expr::Unary(UnaryOp::Not, inner), _) => self.assume(inner, !holds, facts),
            (Expr::Binary(BinaryOp::BoolAnd, a, b), true) | (Expr::Binary(BinaryOp::BoolOr, a, b), false) => {
                self.assume(a, holds, facts);
                self.assume(b, holds, facts);
            }
            (Expr::Binary(BinaryOp::Eq, a, b), true) | (Expr::Binary(BinaryOp::Ne, a, b), false) => {
                for (slot, value) in [(a, b), (b, a)] {
                    if let (Expr::Read(slot), Some(value)) = (&**slot, number(value))
                        && self.tracked[*slot]
                    {
                        facts.learn(self.program, *slot, Some(value));
                    }
                }
            }
            (Expr::Binary(BinaryOp::Eq, a, b), false) | (Expr::Binary(BinaryOp::Ne, a, b), true) => {
                // Of one bit there is one other value.
                if let (Expr::Read(slot), Some(value)) = (&**a, number(b))
                    && self.tracked[*slot]
                    && matches!(self.program.slots[*slot].ty, Type::Bool | Type::Bits(1))
                {
                    facts.learn(self.program, *slot, Some(value ^ 1));
                }
            }
            // Only a header that may be either is asked.
            (Expr::IsValid(header), true) => match facts.place(*header) {
                HeaderPlace::Maybe => facts.set_place(*header, HeaderPlace::Pointed),
                _ => facts.set_place(*header, HeaderPlace::Stored),
            },
            (Expr::IsValid(header), false) => facts.set_place(*header, HeaderPlace::Invalid),
            _ => {}
        }
    }
}

/// Whether a matcher matches a key, where that shows.
fn decide(matcher: &Matcher, key: Option<&Expr>) -> Option<bool> {
    if matches!(matcher, Matcher::Any) {
        return Some(true);
    }
    let key = match key? {
        Expr::Const(bits) => bits.clone(),
        Expr::Bool(b) => Bits::new(1, u128::from(*b)),
        _ => return None,
    };
    match matcher {
        Matcher::Any => Some(true),
        Matcher::Value(value) => Some(key == *value),
        Matcher::Mask(value, mask) => Some(key.and(mask) == value.and(mask)),
        Matcher::Range(low, high) => Some(low.cmp_unsigned(&key).is_le() && key.cmp_unsigned(high).is_le()),
        Matcher::RangeSigned(low, high) => Some(low.cmp_signed(&key).is_le() && key.cmp_signed(high).is_le()),
        Matcher::ValueSet(_) => None,
    }
}

/// The slots whose constants are worth telling nodes apart for: those that decide where code goes, and those that flow
/// into them.
fn tracked_slots(program: &Program, cfg: &Cfg) -> SecondaryMap<SlotId, bool> {
    let narrow = |slot: SlotId| match program.slots[slot].ty {
        Type::Bool => true,
        Type::Bits(width) => width <= 64,
        Type::Varbit(_) => false,
    };
    let mut tracked: SecondaryMap<SlotId, bool> = SecondaryMap::with_default(false);
    let mut stack = Vec::new();
    let mut sources: BTreeMap<SlotId, BTreeSet<SlotId>> = BTreeMap::new();
    for block in cfg.blocks.values() {
        block.term.for_each_expr(&mut |expr| expr.for_each_read(&mut |slot| stack.push(slot)));
        for op in &block.ops {
            if let Op::Inst(Inst::Assign { dst, value }) = op {
                let sources = sources.entry(*dst).or_default();
                value.for_each_read(&mut |slot| sources.extend([slot]));
            }
        }
    }
    while let Some(slot) = stack.pop() {
        if narrow(slot) && !tracked[slot] {
            tracked[slot] = true;
            stack.extend(sources.get(&slot).into_iter().flatten());
        }
    }
    tracked
}

/// The rank of each block that the entry reaches in reverse postorder.
fn ranks(cfg: &Cfg) -> SecondaryMap<CfgId, usize> {
    let order = reverse_postorder(cfg.blocks.len(), cfg.entry, |block| &cfg.blocks[block].term);
    let mut ranks = SecondaryMap::with_default(usize::MAX);
    order.into_iter().enumerate().for_each(|(rank, block)| ranks[block] = rank);
    ranks
}

/// What the entry reaches of so many blocks or nodes: but for loops, each comes after all that lead to it.
pub(crate) fn reverse_postorder<'a, K: EntityRef + 'a>(
    count: usize,
    entry: K,
    term: impl Fn(K) -> &'a Term<K>,
) -> Vec<K> {
    let mut seen = vec![false; count];
    let mut order = Vec::new();
    let mut stack = vec![(entry, false)];
    while let Some((at, done)) = stack.pop() {
        if done {
            order.push(at);
        } else if !std::mem::replace(&mut seen[at.index()], true) {
            stack.push((at, true));
            term(at).for_each_target(&mut |next| stack.push((*next, false)));
        }
    }
    order.reverse();
    order
}

/// The tracked slots that matter at the start of each block: read on some way before they are written.
fn live_slots(
    program: &Program,
    cfg: &Cfg,
    tracked: &SecondaryMap<SlotId, bool>,
    meter: &Meter<'_>,
) -> Result<SecondaryMap<CfgId, Set>, Refusal> {
    let mut live: SecondaryMap<CfgId, Set> = SecondaryMap::new();
    let mut preds: SecondaryMap<CfgId, Vec<CfgId>> = SecondaryMap::new();
    for (id, block) in &cfg.blocks {
        block.term.for_each_target(&mut |to| preds[*to].push(id));
    }
    // Ends were made first.
    let mut queue: VecDeque<CfgId> = cfg.blocks.keys().collect();
    let mut queued: Vec<bool> = vec![true; cfg.blocks.len()];
    while let Some(id) = queue.pop_front() {
        queued[id.index()] = false;
        let block = &cfg.blocks[id];
        let mut now = Set::default();
        let mut words = 0;
        block.term.for_each_target(&mut |to| {
            now.extend(&live[*to]);
            words += 1 + live[*to].words();
        });
        meter.spend(block.ops.len() + (words + (block.cost.code as usize)) / 8)?;
        let read = |expr: &Expr, now: &mut Set| {
            expr.for_each_read(&mut |slot| {
                if tracked[slot] {
                    now.insert(slot.index());
                }
            });
        };
        block.term.for_each_expr(&mut |expr| read(expr, &mut now));
        if let Term::Lookup { table, .. } = &block.term {
            program.tables[*table].exprs().for_each(|expr| read(expr, &mut now));
        }
        for op in block.ops.iter().rev() {
            match op {
                Op::Inst(inst) => {
                    if let (Some(dst), Inst::Assign { .. }) = (inst.dst(), inst)
                        && !matches!(program.slots[dst].home, Home::Header { .. })
                    {
                        now.remove(dst.index());
                    }
                    inst.for_each_expr(&mut |expr| read(expr, &mut now));
                }
                Op::Clear(slot) => now.remove(slot.index()),
                Op::SetOut(expr) => read(expr, &mut now),
                _ => {}
            }
        }
        if live[id].extend(&now) {
            for pred in &preds[id] {
                if !std::mem::replace(&mut queued[pred.index()], true) {
                    queue.push_back(*pred);
                }
            }
        }
    }
    Ok(live)
}
