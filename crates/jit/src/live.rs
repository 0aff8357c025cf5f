//! Which storage still matters at a node: what a packet takes along while it waits for a staged table.
//!
//! A backward walk over the specialised graph. It asks the same questions as code generation: an expression counts with
//! what is known put in, a header that is in the packet has no storage.

use crate::flat::{Flat, Input, Op, Spill, Term};
use crate::simplify::simplify;
use crate::specialise::{NodeId, Special};
use crate::state::{Place, State};
use millrace_pipeline::entity::{EntityRef, EntitySet, SecondaryMap};
use millrace_pipeline::*;
use std::collections::VecDeque;

/// What is read at or behind a point before it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Live {
    pub(crate) slots: Set,
    /// The entries that tables hit last.
    pub(crate) entries: Set,
    /// The bits of headers behind the parser.
    pub(crate) parsed: bool,
    /// The port to send to, or the parser's error.
    pub(crate) out: bool,
    /// The steps of body and action.
    pub(crate) steps: [bool; 2],
}

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    pub(crate) fn insert(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Keeps those of which something holds.
    pub(crate) fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
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
    pub(crate) fn extend(&mut self, other: &Set) -> bool {
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
    pub(crate) fn extend(&mut self, other: &Live) -> bool {
        let mut changed = self.slots.extend(&other.slots) | self.entries.extend(&other.entries);
        let [body, action] = &mut self.steps;
        let flags = [&mut self.parsed, &mut self.out, body, action];
        for (mine, more) in flags.into_iter().zip([other.parsed, other.out, other.steps[0], other.steps[1]]) {
            changed |= more && !*mine;
            *mine |= more;
        }
        changed
    }
}

/// What is live at the start of each node.
pub(crate) fn live(
    program: &Program,
    flat: &Flat,
    special: &Special,
    spilled: &[SlotId],
) -> SecondaryMap<NodeId, Live> {
    let walk = Walk { program, flat, special, spilled };
    let mut before: SecondaryMap<NodeId, Vec<NodeId>> = SecondaryMap::new();
    for node in &special.order {
        special.nodes[*node].term.for_each_target(&mut |to| before[*to].push(*node));
    }
    let mut all: SecondaryMap<NodeId, Live> = SecondaryMap::with_default(Live::default());
    let mut queue: VecDeque<NodeId> = special.order.iter().rev().copied().collect();
    let mut queued = EntitySet::new();
    queued.extend(queue.iter().copied());
    while let Some(node) = queue.pop_front() {
        queued.remove(node);
        let mut live = Live::default();
        special.nodes[node].term.for_each_target(&mut |to| {
            live.extend(&all[*to]);
        });
        walk.node(node, &mut live);
        if all[node].extend(&live) {
            queue.extend(before[node].iter().copied().filter(|node| queued.insert(*node)));
        }
    }
    all
}

struct Walk<'a> {
    program: &'a Program,
    flat: &'a Flat,
    special: &'a Special,
    spilled: &'a [SlotId],
}

impl Walk<'_> {
    /// From what is live behind a node to what is live in front of it.
    fn node(&self, node: NodeId, live: &mut Live) {
        let node = &self.special.nodes[node];
        let ops = &self.flat.blocks[node.block].ops;
        let mut states = vec![node.entry.clone()];
        for op in ops {
            let mut state = states[states.len() - 1].clone();
            state.transfer(self.program, op, &|slot| self.special.tracked[slot]);
            states.push(state);
        }
        let last = &states[ops.len()];
        self.term(&node.term, last, live);
        for (op, state) in ops.iter().zip(&states).rev() {
            self.op(op, state, live);
        }
    }

    fn term(&self, term: &Term<NodeId>, state: &State, live: &mut Live) {
        term.for_each_expr(&mut |expr| self.expr(expr, state, live));
        match term {
            // On the way of a packet that is too short the slot keeps its value.
            Term::Lookahead { .. } => {}
            Term::Step { level, .. } => live.steps[*level as usize] = true,
            Term::Lookup { table, .. } => {
                let exprs = self.program.tables[*table].exprs();
                exprs.for_each(|expr| self.expr(expr, state, live));
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

    fn op(&self, op: &Op, state: &State, live: &mut Live) {
        match op {
            Op::Inst(inst) => self.inst(inst, state, live),
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
            Op::FinishEmit { .. } | Op::StartEmit | Op::Reparse | Op::AssertFailed(_) => {}
            Op::SetOut(expr) => {
                live.out = false;
                self.expr(expr, state, live);
            }
            Op::SetError => {
                live.out = false;
                let error = self.program.intrinsics.get(Intrinsic::ParserError);
                error.iter().for_each(|slot| live.slots.insert(slot.index()));
            }
            Op::StartSteps(level) => live.steps[*level as usize] = false,
        }
    }

    fn inst(&self, inst: &Inst, state: &State, live: &mut Live) {
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
        inst.for_each_expr(&mut |expr| self.expr(expr, state, live));
    }

    fn header(&self, header: HeaderId, live: &mut Live) {
        self.program.headers[header].fields.iter().for_each(|field| live.slots.insert(field.index()));
    }

    fn expr(&self, expr: &Expr, state: &State, live: &mut Live) {
        simplify(self.program, expr, state).for_each_read(&mut |slot| live.slots.insert(slot.index()));
    }

    /// A slot gets a value whatever it held. (A write to a field of a header may be lost.)
    fn written(&self, slot: SlotId, live: &mut Live) {
        if !matches!(self.program.slots[slot].home, Home::Header { .. }) {
            live.slots.remove(slot.index());
        }
    }
}

/// Whether a slot's value is in its own storage, as the state has it.
pub(crate) fn has_storage(program: &Program, state: &State, slot: SlotId) -> bool {
    match program.slots[slot].home {
        Home::Header { header, .. } => matches!(state.place(header), Place::Stored | Place::Unknown),
        Home::Metadata | Home::Local => true,
    }
}
