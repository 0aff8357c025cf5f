//! Which storage still matters at a node: what a packet takes along while it waits for a staged table.
//!
//! A backward walk over the specialised graph. It asks the same questions as code generation: an expression counts with
//! what is known put in, a header that is in the packet has no storage.

use crate::budget::Refusal;
use crate::budget::{Limit, MAX_FACTS, Meter};
use crate::cfg::{Cfg, Input, Op, Spill, Term};
use crate::facts::{Facts, HeaderPlace};
use crate::simplify::simplify;
use crate::specialise::{Node, NodeId, Specialised};
use millrace_pipeline::entity::{EntityRef, EntitySet, SecondaryMap};
use millrace_pipeline::*;
use std::collections::VecDeque;

/// What is read at or after a point before it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Slots.
    pub slots: Set,
    /// The entries that tables hit last.
    pub entries: Set,
    /// The bits of headers after the parser.
    pub parsed: bool,
    /// The port to send to, or the parser's error.
    pub out: bool,
    /// The steps of the body.
    pub steps: bool,
}

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set(Vec<u64>);

impl Set {
    /// Adds a number.
    pub fn insert(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Takes a number out.
    pub fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Words of 64 numbers that it takes.
    pub fn words(&self) -> usize {
        self.0.len()
    }

    /// Whether a number is in it.
    pub fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Keeps those of which something holds.
    pub fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        for (at, word) in self.0.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                if !keeps(64 * at + bit) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Adds all of another; says whether that changed anything.
    pub fn extend(&mut self, other: &Set) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            changed |= *more & !*word != 0;
            *word |= more;
        }
        changed
    }
}

impl Live {
    /// Adds all of another; says whether that changed anything.
    pub fn extend(&mut self, other: &Live) -> bool {
        let mut changed = self.slots.extend(&other.slots) | self.entries.extend(&other.entries);
        let flags = [&mut self.parsed, &mut self.out, &mut self.steps];
        for (mine, more) in flags.into_iter().zip([other.parsed, other.out, other.steps]) {
            changed |= more && !*mine;
            *mine |= more;
        }
        changed
    }
}

/// Fewest operations in a stretch of a node.
const MIN_STRETCH: usize = 64;

/// What is live at the start of each node.
pub fn live(
    program: &Program,
    cfg: &Cfg,
    special: &Specialised,
    spilled: &[SlotId],
    meter: &Meter<'_>,
) -> Result<SecondaryMap<NodeId, Live>, Refusal> {
    let walk = Walk { program, cfg, special, spilled };
    let mut before: SecondaryMap<NodeId, Vec<NodeId>> = SecondaryMap::new();
    for node in &special.order {
        special.nodes[*node].term.for_each_target(&mut |to| before[*to].push(*node));
    }
    let bits = program.slots.len() + program.tables.len();
    if special.order.len() as u64 * bits as u64 / 8 > MAX_FACTS / 2 {
        return Err(Refusal::TooLarge(Limit::Facts));
    }
    let mut all: SecondaryMap<NodeId, Live> = SecondaryMap::with_default(Live::default());
    let mut queue: VecDeque<NodeId> = special.order.iter().rev().copied().collect();
    let mut queued = EntitySet::new();
    queued.extend(queue.iter().copied());
    while let Some(node) = queue.pop_front() {
        queued.remove(node);
        let mut live = Live::default();
        let mut words = 0;
        special.nodes[node].term.for_each_target(&mut |to| {
            live.extend(&all[*to]);
            words += 1 + all[*to].slots.words();
        });
        let Node { block, term, .. } = &special.nodes[node];
        let block = &cfg.blocks[*block];
        let ends = if matches!(term, Term::Leave(_)) { spilled.len() / 4 } else { 0 };
        meter.spend(block.ops.len() + (words + block.cost.code as usize) / 8 + ends)?;
        walk.node(node, &mut live, meter)?;
        if all[node].extend(&live) {
            queue.extend(before[node].iter().copied().filter(|node| queued.insert(*node)));
        }
    }
    Ok(all)
}

struct Walk<'a> {
    program: &'a Program,
    cfg: &'a Cfg,
    special: &'a Specialised,
    spilled: &'a [SlotId],
}

impl Walk<'_> {
    /// From what is live after a node to what is live before it.
    ///
    /// What is known at each operation is asked from the last one back. A node may set thousands of slots, each of which is known after
    /// it; so what is known is kept at the start of each stretch of operations, and found again within one.
    fn node(&self, node: NodeId, live: &mut Live, meter: &Meter<'_>) -> Result<(), Refusal> {
        let node = &self.special.nodes[node];
        let ops = &self.cfg.blocks[node.block].ops;
        let stretch = ops.len().isqrt().max(MIN_STRETCH);
        let last = ops.len().saturating_sub(1) / stretch * stretch;
        let transfer =
            |facts: &mut Facts, op: &Op| facts.transfer(self.program, op, &|slot| self.special.tracked[slot]);
        let mut facts = node.entry.clone();
        let (mut starts, mut kept) = (Vec::new(), 0);
        for (at, op) in ops[..last].iter().enumerate() {
            if at % stretch == 0 {
                kept += facts.bytes();
                if kept as u64 > MAX_FACTS {
                    return Err(Refusal::TooLarge(Limit::Facts));
                }
                starts.push(facts.clone());
            }
            transfer(&mut facts, op);
        }
        starts.push(facts);
        for (number, start) in starts.into_iter().enumerate().rev() {
            let first = number * stretch;
            let ops = &ops[first..ops.len().min(first + stretch)];
            let (mut known, mut bytes) = (vec![start], 0);
            for op in ops {
                let mut facts = known[known.len() - 1].clone();
                transfer(&mut facts, op);
                bytes += facts.bytes();
                if (kept + bytes) as u64 > MAX_FACTS {
                    return Err(Refusal::TooLarge(Limit::Facts));
                }
                known.push(facts);
            }
            meter.spend(bytes / 64)?;
            if first == last {
                self.term(&node.term, &known[ops.len()], live);
            }
            for (op, facts) in ops.iter().zip(&known).rev() {
                self.op(op, facts, live);
            }
        }
        Ok(())
    }

    fn term(&self, term: &Term<NodeId>, facts: &Facts, live: &mut Live) {
        term.for_each_expr(&mut |expr| self.expr(expr, facts, live));
        match term {
            // On the way of a packet that is too short the slot keeps its value.
            Term::Lookahead { .. } => {}
            Term::Step { .. } => live.steps = true,
            Term::Lookup { table, .. } => {
                let exprs = self.program.tables[*table].exprs();
                exprs.for_each(|expr| self.expr(expr, facts, live));
            }
            Term::Leave(leave) => {
                live.out |= leave.out.is_none();
                if leave.spill != Spill::Nothing {
                    self.spilled.iter().for_each(|slot| live.slots.insert(slot.index()));
                    self.program.tables.keys().for_each(|table| live.entries.insert(table.index()));
                    live.parsed = true;
                }
            }
            _ => {}
        }
    }

    fn op(&self, op: &Op, facts: &Facts, live: &mut Live) {
        match op {
            Op::Inst(inst) => self.inst(inst, facts, live),
            Op::Clear(dst) | Op::Argument { dst, .. } | Op::Hit { dst } => self.written(*dst, live),
            Op::AtHit { table, meter } => {
                meter.iter().for_each(|slot| live.slots.insert(slot.index()));
                live.entries.insert(table.index());
            }
            Op::Input { dst, input } => {
                self.written(*dst, live);
                live.out |= *input == Input::Out;
                live.parsed |= *input == Input::LengthNow;
            }
            Op::NoteParsed => live.parsed = false,
            Op::Deparse { headers, .. } => headers.iter().for_each(|header| self.header(*header, live)),
            Op::Emit(header) => self.header(*header, live),
            // The headers get storage of their own, or go.
            Op::FinishEmit { .. } | Op::StartEmit | Op::Reparse | Op::AssertFailed(_) | Op::ForgetSteps => {}
            Op::SetOut(expr) => {
                live.out = false;
                self.expr(expr, facts, live);
            }
            Op::StartCopies => live.out = true,
            // No packet waits for a table between two copies.
            Op::NextCopy => {}
            Op::DropCopy(site) => {
                live.out = true;
                site.iter().for_each(|slot| live.slots.insert(slot.index()));
            }
            Op::SetError => {
                live.out = false;
                let error = self.program.intrinsics.get(Intrinsic::ParserError);
                error.iter().for_each(|slot| live.slots.insert(slot.index()));
            }
            Op::AddSite(slot) | Op::AddClass(slot) | Op::AddQueue(slot) => {
                live.out = true;
                live.slots.insert(slot.index());
            }
            Op::StartSteps => live.steps = false,
            Op::AddSteps => live.steps = true,
        }
    }

    fn inst(&self, inst: &Inst, facts: &Facts, live: &mut Live) {
        if let Some(dst) = inst.dst() {
            self.written(dst, live);
        }
        match inst {
            Inst::CountDirect(table) | Inst::MeterDirect { table, .. } => live.entries.insert(table.index()),
            Inst::Hash { data, .. } => {
                for item in data {
                    if let DataItem::Header(header) = item {
                        self.header(*header, live);
                    }
                }
            }
            _ => {}
        }
        inst.for_each_expr(&mut |expr| self.expr(expr, facts, live));
    }

    fn header(&self, header: HeaderId, live: &mut Live) {
        self.program.headers[header].fields.iter().for_each(|field| live.slots.insert(field.index()));
    }

    fn expr(&self, expr: &Expr, facts: &Facts, live: &mut Live) {
        simplify(self.program, expr, facts).for_each_read(&mut |slot| live.slots.insert(slot.index()));
    }

    /// A slot gets a value whatever it held. (A write to a field of a header may be lost.)
    fn written(&self, slot: SlotId, live: &mut Live) {
        if !matches!(self.program.slots[slot].home, Home::Header { .. }) {
            live.slots.remove(slot.index());
        }
    }
}

/// Whether a slot's value is in its own storage, as the facts has it.
pub fn has_storage(program: &Program, facts: &Facts, slot: SlotId) -> bool {
    match program.slots[slot].home {
        Home::Header { header, .. } => {
            matches!(facts.place(header), HeaderPlace::Stored | HeaderPlace::Unknown)
        }
        Home::Metadata | Home::Local => true,
    }
}
