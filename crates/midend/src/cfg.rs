//! A plan as one control-flow graph: one body after another, actions inlined at each application, every failure an edge.
//!
//! The specialiser clones the blocks of this graph. Its operations are those of the IR that neither branch nor fail, and a few
//! more for what happens between bodies.

mod build;

pub use build::flatten;

use crate::budget::Cost;
use crate::site::Site;
use crate::verdict::Verdict;
use millrace_pipeline::entity::{PrimaryMap, entity_impl};
use millrace_pipeline::{BodyId, Expr, HeaderId, Inst, Matcher, SlotId, TableId};
use std::collections::BTreeSet;

/// A block of the cfg graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CfgId(u32);
entity_impl!(CfgId, "block");

/// The graph of one plan.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// The blocks.
    pub blocks: PrimaryMap<CfgId, CfgBlock>,
    /// Where packets come in.
    pub entry: CfgId,
    /// The tables that are looked up for each copy of a packet: no packet waits between two copies of it.
    pub of_copies: BTreeSet<TableId>,
    /// About the code that it becomes, with one clone of each block.
    pub cost: Cost,
}

/// Operations, then a terminator.
#[derive(Clone, Debug)]
pub struct CfgBlock {
    /// What happens, in order.
    pub ops: Vec<Op>,
    /// Where it goes then.
    pub term: Term<CfgId>,
    /// The body that it came from and its number there, for people.
    pub origin: String,
    /// The part of the program that it is.
    pub site: Site,
    /// The parser, control or deparser that it is of, with the actions that this applies; none: it is between them.
    pub body: Option<BodyId>,
    /// About the code that it becomes.
    pub cost: Cost,
}

/// Something that neither branches nor fails.
#[derive(Clone, Debug)]
pub enum Op {
    /// An instruction of the IR that does not fail, and no [`Inst::Emit`].
    Inst(Inst),
    /// A local starts again at 0.
    Clear(SlotId),
    /// An argument of an action, from the record that the last lookup gave.
    Argument {
        /// The parameter's slot.
        dst: SlotId,
        /// The table that was looked up.
        table: TableId,
        /// The action, as an index in the table's list.
        action: usize,
        /// The parameter, as an index in the action's list.
        param: usize,
    },
    /// Whether the last lookup hit.
    Hit {
        /// Where the answer goes.
        dst: SlotId,
    },
    /// The last lookup counts and meters in the entry that it hit.
    AtHit {
        /// The table that was looked up.
        table: TableId,
        /// Where the color goes.
        meter: Option<SlotId>,
    },
    /// A value that the switch gives.
    Input {
        /// Where it goes.
        dst: SlotId,
        /// Which value.
        input: Input,
    },
    /// Remembers how many bits the valid headers have.
    NoteParsed,
    /// The packet becomes the valid ones of some headers, followed by the bytes after the cursor.
    Deparse {
        /// The headers, in order.
        headers: Vec<HeaderId>,
        /// Whether headers are needed after this; else they become invalid.
        keep: bool,
        /// Bytes of the headroom that the packet may grow into; a packet that grows by more moves to memory of the host.
        growth: u32,
    },
    /// Starts to put a packet together header by header.
    StartEmit,
    /// Appends a header to it.
    Emit(HeaderId),
    /// The packet becomes the headers that were appended, followed by the bytes after the cursor.
    FinishEmit {
        /// As of `Deparse`.
        keep: bool,
        /// As of `Deparse`.
        growth: u32,
    },
    /// All headers become invalid and the cursor goes to the start.
    Reparse,
    /// Remembers the port to send to.
    SetOut(Expr),
    /// The remembered port is a set of ports that is not empty: a copy for each is to come.
    StartCopies,
    /// Goes on with the next copy that is to come, for the lowest port.
    NextCopy,
    /// The copy is dropped: its port leaves the set that is remembered. The slot says where the program asked for it.
    DropCopy(Option<SlotId>),
    /// Remembers the parser's error as the reason of a drop.
    SetError,
    /// Adds to the remembered port or error where the program asked for the drop.
    AddSite(SlotId),
    /// Adds to the remembered port the class of service: a slot of at most 8 bits, or one that is masked to them.
    AddClass(SlotId),
    /// Adds to the remembered port the number of its queue: a slot of 16 bits.
    AddQueue(SlotId),
    /// The steps of a body are counted from here.
    StartSteps,
    /// The packet has taken no steps yet.
    ForgetSteps,
    /// The steps of the body that ends here are added to those that the packet has taken.
    AddSteps,
    /// Tells the log that an assertion does not hold.
    AssertFailed(String),
}

impl CfgBlock {
    /// The slots that it writes, one as often as it does.
    pub fn writes(&self) -> impl Iterator<Item = SlotId> {
        let looked_ahead = match self.term {
            Term::Lookahead { dst, .. } => Some(dst),
            _ => None,
        };
        self.ops.iter().filter_map(Op::dst).chain(looked_ahead)
    }
}

impl Op {
    /// The slot that it writes.
    pub fn dst(&self) -> Option<SlotId> {
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
            | Op::StartCopies
            | Op::NextCopy
            | Op::DropCopy(_)
            | Op::SetError
            | Op::AddSite(_)
            | Op::AddClass(_)
            | Op::AddQueue(_)
            | Op::StartSteps
            | Op::ForgetSteps
            | Op::AddSteps
            | Op::AssertFailed(_) => None,
        }
    }
}

/// A value that the switch gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The port of arrival.
    Port,
    /// When the packet came.
    Arrival,
    /// When the batch is worked on.
    Now,
    /// The length of the packet.
    Length,
    /// The length of the packet with the headers that it now has.
    LengthNow,
    /// The port that the packet is for.
    Out,
    /// The port that the copy is for.
    Copy,
}

/// Where a block goes. `T` is a block: of the control-flow graph, or of the specialised one.
#[derive(Clone, Debug)]
pub enum Term<T> {
    /// To one block.
    Goto(T),
    /// By a condition.
    Branch {
        /// The condition.
        cond: Expr,
        /// Where it holds.
        then: T,
        /// Where it does not.
        els: T,
    },
    /// By the first case whose matchers all match.
    Select {
        /// What is matched.
        keys: Vec<Expr>,
        /// The cases, in order.
        cases: Vec<(Vec<Matcher>, T)>,
        /// Where no case matches.
        default: T,
    },
    /// Extracts a header at the cursor.
    Extract {
        /// The header.
        header: HeaderId,
        /// With the header.
        next: T,
        /// The packet is too short.
        short: T,
    },
    /// Extracts a header with a field of varying length at the cursor.
    ExtractVar {
        /// The header.
        header: HeaderId,
        /// The length of the field.
        bits: Expr,
        /// With the header.
        next: T,
        /// The packet is too short.
        short: T,
        /// The length is above the field's largest.
        long: T,
        /// The length is no whole number of bytes.
        invalid: T,
    },
    /// Moves the cursor.
    Advance {
        /// How far.
        bits: Expr,
        /// It has moved.
        next: T,
        /// The packet is too short.
        short: T,
        /// The distance is no whole number of bytes.
        invalid: T,
    },
    /// Reads bits after the cursor, which stays.
    Lookahead {
        /// Where they go.
        dst: SlotId,
        /// Bits between the cursor and them.
        skip: u32,
        /// They are read.
        next: T,
        /// The packet is too short.
        short: T,
    },
    /// Takes steps of those that a body may take.
    Step {
        /// How many.
        steps: u32,
        /// There were as many left.
        next: T,
        /// There were not.
        limit: T,
    },
    /// Looks up a table.
    Lookup {
        /// The table.
        table: TableId,
        /// With the result.
        next: T,
    },
    /// Goes to the action that the last lookup gave.
    Dispatch {
        /// The table that was looked up.
        table: TableId,
        /// The actions, by their index in the table's list.
        actions: Vec<T>,
    },
    /// By whether copies are still to come.
    MoreCopies {
        /// Some are.
        more: T,
        /// None is.
        done: T,
    },
    /// Ends.
    Leave(Leave),
}

/// The end of a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// What became of the packet.
    pub verdict: Verdict,
    /// The number that goes with it; none: the port or error that was remembered.
    pub out: Option<u32>,
    /// Whether the storage goes to the packet's context.
    pub spill: Spill,
}

/// What goes to the packet's context at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spill {
    /// Nothing.
    Nothing,
    /// Everything, with all headers invalid.
    Metadata,
    /// Everything.
    Everything,
}

impl<T> Term<T> {
    /// The same with other targets, made in a fixed order.
    pub fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Term<U> {
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
            Term::Step { steps, next, limit } => Term::Step { steps: *steps, next: f(next), limit: f(limit) },
            Term::Lookup { table, next } => Term::Lookup { table: *table, next: f(next) },
            Term::Dispatch { table, actions } => {
                Term::Dispatch { table: *table, actions: actions.iter().map(f).collect() }
            }
            Term::MoreCopies { more, done } => Term::MoreCopies { more: f(more), done: f(done) },
            Term::Leave(leave) => Term::Leave(*leave),
        }
    }

    /// Calls `f` with each target, in the order of [`Term::map`].
    pub fn for_each_target(&self, f: &mut impl FnMut(&T)) {
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
            Term::MoreCopies { more, done } => [more, done].into_iter().for_each(f),
            Term::Dispatch { actions, .. } => actions.iter().for_each(f),
            Term::Leave(_) => {}
        }
    }

    /// Calls `f` with each expression.
    pub fn for_each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Term::Branch { cond: e, .. }
            | Term::ExtractVar { bits: e, .. }
            | Term::Advance { bits: e, .. } => f(e),
            Term::Select { keys, .. } => keys.iter().for_each(f),
            _ => {}
        }
    }
}
