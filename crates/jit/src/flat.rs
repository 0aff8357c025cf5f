//! A plan as one graph: bodies behind one another, actions inlined at each application, every failure an edge.
//!
//! The graph is what the specialiser clones. Its operations are those of the IR that neither branch nor fail, and a few
//! more for what happens between bodies.

mod build;

pub(crate) use build::flatten;

use crate::abi::Verdict;
use crate::site::Site;
use millrace_pipeline::entity::{PrimaryMap, entity_impl};
use millrace_pipeline::{Expr, HeaderId, Inst, Matcher, SlotId, TableId};

/// A block of the flat graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FlatId(u32);
entity_impl!(FlatId, "flat");

/// The graph of one plan.
#[derive(Clone, Debug)]
pub(crate) struct Flat {
    pub(crate) blocks: PrimaryMap<FlatId, FlatBlock>,
    pub(crate) entry: FlatId,
}

/// Operations, then a terminator.
#[derive(Clone, Debug)]
pub(crate) struct FlatBlock {
    pub(crate) ops: Vec<Op>,
    pub(crate) term: Term<FlatId>,
    /// The body that it came from and its number there, for people.
    pub(crate) origin: String,
    /// The part of the program that it is.
    pub(crate) site: Site,
}

/// Something that neither branches nor fails.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// An instruction of the IR that does not fail, and no [`Inst::Emit`].
    Inst(Inst),
    /// A local starts anew.
    Clear(SlotId),
    /// The argument `param` of an action, from the record that the last lookup gave.
    Argument { dst: SlotId, table: TableId, action: usize, param: usize },
    /// Whether the last lookup, in this table, hit.
    Hit { dst: SlotId },
    /// The last lookup, in this table, counts and meters in the entry that it hit.
    AtHit { table: TableId, meter: Option<SlotId> },
    /// A value that the switch gives.
    Input { dst: SlotId, input: Input },
    /// Remembers how many bits the valid headers have.
    NoteParsed,
    /// The packet becomes these headers, those of them that are valid, and what is behind the cursor. Unless `keep` the
    /// headers are not needed any more and become invalid. `in_place`: what grows may take from the headroom.
    Deparse { headers: Vec<HeaderId>, keep: bool, in_place: bool },
    /// Starts to put a packet together header by header.
    StartEmit,
    /// Appends a header to it.
    Emit(HeaderId),
    /// The packet becomes what was put together, and what is behind the cursor. The flags are those of `Deparse`.
    FinishEmit { keep: bool, in_place: bool },
    /// All headers become invalid and the cursor goes to the start.
    Reparse,
    /// Remembers the port to send to.
    SetOut(Expr),
    /// Remembers the parser's error as the reason of a drop.
    SetError,
    /// The steps of a body or action are counted from here.
    StartSteps(StepLevel),
    /// Tells the log that an assertion does not hold.
    AssertFailed(String),
}

impl FlatBlock {
    /// The slots that it writes, one as often as it does.
    pub(crate) fn writes(&self) -> impl Iterator<Item = SlotId> {
        let looked_ahead = match self.term {
            Term::Lookahead { dst, .. } => Some(dst),
            _ => None,
        };
        self.ops.iter().filter_map(Op::dst).chain(looked_ahead)
    }
}

impl Op {
    /// The slot that it writes.
    pub(crate) fn dst(&self) -> Option<SlotId> {
        match self {
            Op::Inst(inst) => inst.dst(),
            Op::Clear(dst) | Op::Argument { dst, .. } | Op::Hit { dst } | Op::Input { dst, .. } => Some(*dst),
            Op::AtHit { meter, .. } => *meter,
            Op::NoteParsed
            | Op::Deparse { .. }
            | Op::StartEmit
            | Op::Emit(_)
            | Op::FinishEmit { .. }
            | Op::Reparse
            | Op::SetOut(_)
            | Op::SetError
            | Op::StartSteps(_)
            | Op::AssertFailed(_) => None,
        }
    }
}

/// A value that the switch gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The port of arrival.
    Port,
    /// The time of the batch.
    Now,
    /// The length of the packet.
    Length,
    /// The length of the packet with the headers that it now has.
    LengthNow,
    /// The port that the packet is for.
    Out,
}

/// Bodies and, inside, actions count their own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StepLevel {
    Body = 0,
    Action = 1,
}

/// Where a block goes. `T` is a block, in the flat graph or in the specialised one.
#[derive(Clone, Debug)]
pub(crate) enum Term<T> {
    Goto(T),
    Branch {
        cond: Expr,
        then: T,
        els: T,
    },
    Select {
        keys: Vec<Expr>,
        cases: Vec<(Vec<Matcher>, T)>,
        default: T,
    },
    /// Extracts at the cursor.
    Extract {
        header: HeaderId,
        next: T,
        short: T,
    },
    /// The same for a header with a varbit of that many bits.
    ExtractVar {
        header: HeaderId,
        bits: Expr,
        next: T,
        short: T,
        long: T,
        invalid: T,
    },
    Advance {
        bits: Expr,
        next: T,
        short: T,
        invalid: T,
    },
    Lookahead {
        dst: SlotId,
        skip: u32,
        next: T,
        short: T,
    },
    /// Goes on unless the steps are used up.
    Step {
        level: StepLevel,
        next: T,
        limit: T,
    },
    /// Looks up a table.
    Lookup {
        table: TableId,
        next: T,
    },
    /// Goes to the action, by its index in the table, that the last lookup gave.
    Dispatch {
        table: TableId,
        actions: Vec<T>,
    },
    Leave(Leave),
}

/// The end of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leave {
    pub(crate) verdict: Verdict,
    /// The number that goes with it; none: the port or error that was remembered.
    pub(crate) out: Option<u32>,
    /// Whether the storage goes to the packet's context.
    pub(crate) spill: Spill,
}

/// What goes to the packet's context at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spill {
    Nothing,
    /// Everything, with all headers invalid.
    Metadata,
    Everything,
}

impl<T> Term<T> {
    /// The same with other targets, made in a fixed order.
    pub(crate) fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Term<U> {
        match self {
            Term::Goto(to) => Term::Goto(f(to)),
            Term::Branch { cond, then, els } => {
                Term::Branch { cond: cond.clone(), then: f(then), els: f(els) }
            }
            Term::Select { keys, cases, default } => Term::Select {
                keys: keys.clone(),
                cases: cases.iter().map(|(matchers, to)| (matchers.clone(), f(to))).collect(),
                default: f(default),
            },
            Term::Extract { header, next, short } => {
                Term::Extract { header: *header, next: f(next), short: f(short) }
            }
            Term::ExtractVar { header, bits, next, short, long, invalid } => Term::ExtractVar {
                header: *header,
                bits: bits.clone(),
                next: f(next),
                short: f(short),
                long: f(long),
                invalid: f(invalid),
            },
            Term::Advance { bits, next, short, invalid } => {
                Term::Advance { bits: bits.clone(), next: f(next), short: f(short), invalid: f(invalid) }
            }
            Term::Lookahead { dst, skip, next, short } => {
                Term::Lookahead { dst: *dst, skip: *skip, next: f(next), short: f(short) }
            }
            Term::Step { level, next, limit } => Term::Step { level: *level, next: f(next), limit: f(limit) },
            Term::Lookup { table, next } => Term::Lookup { table: *table, next: f(next) },
            Term::Dispatch { table, actions } => {
                Term::Dispatch { table: *table, actions: actions.iter().map(f).collect() }
            }
            Term::Leave(leave) => Term::Leave(*leave),
        }
    }

    /// Calls `f` with each target, in the order of [`Term::map`].
    pub(crate) fn for_each_target(&self, f: &mut impl FnMut(&T)) {
        match self {
            Term::Goto(next) | Term::Lookup { next, .. } => f(next),
            Term::Branch { then, els, .. } => [then, els].into_iter().for_each(f),
            Term::Select { cases, default, .. } => {
                cases.iter().map(|(_, to)| to).chain([default]).for_each(f);
            }
            Term::Extract { next, short, .. } | Term::Lookahead { next, short, .. } => {
                [next, short].into_iter().for_each(f);
            }
            Term::ExtractVar { next, short, long, invalid, .. } => {
                [next, short, long, invalid].into_iter().for_each(f);
            }
            Term::Advance { next, short, invalid, .. } => [next, short, invalid].into_iter().for_each(f),
            Term::Step { next, limit, .. } => [next, limit].into_iter().for_each(f),
            Term::Dispatch { actions, .. } => actions.iter().for_each(f),
            Term::Leave(_) => {}
        }
    }

    /// Calls `f` with each expression.
    pub(crate) fn for_each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Term::Branch { cond: e, .. }
            | Term::ExtractVar { bits: e, .. }
            | Term::Advance { bits: e, .. } => f(e),
            Term::Select { keys, .. } => keys.iter().for_each(f),
            _ => {}
        }
    }
}
