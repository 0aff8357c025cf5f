//! Code for the specialised graph: one function that runs a plan over a batch of packets.
//!
//! Slots are variables of the function, but for numbers wider than 128 bits and varbits, which stay in the packet's
//! context; where code is made quickly, variables are words of a frame. Fields of a header that is in the packet
//! ([`HeaderPlace::At`], [`HeaderPlace::Pointed`]) have no variable there: they are read and written in place.

mod apply;
mod calls;
pub(crate) mod deparse;
mod edges;
mod env;
mod expr;
mod fields;
mod hashing;
mod loads;
mod ops;
mod parser;
mod slots;
mod state_transfer;
mod values;
mod variables;

use crate::abi;
use crate::arrival::port_slots;
use crate::compiled::JitError;
use crate::layout::Layout;
use crate::runtime::Helper;
use crate::site::location;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder, SigRef, Signature, StackSlot, StackSlotData, StackSlotKind,
    Type as ClifType, Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use edges::{Edge, Edges};
use env::LoopEnv;
use fields::{Base, plain};
use millrace_midend::Site;
use millrace_midend::budget::{Cost, Limit, MAX_CODE, MAX_FACTS, Meter};
use millrace_midend::cfg::{Cfg, Op, Term};
use millrace_midend::facts::{Facts, HeaderPlace};
use millrace_midend::liveness::{Live, Set, live};
use millrace_midend::specialise::{Node, NodeId, Specialised};
use millrace_pipeline::entity::{EntityRef, SecondaryMap};
use millrace_pipeline::*;
use millrace_state::RecordLayout;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::mem::offset_of;
use values::Val;
use variables::{Brought, Places, Var, Vars};

/// The distance of two places, which is also that of two outcomes.
const PLACE: u32 = size_of::<millrace_frames::Place>() as u32;

/// From this cost on the operations of a block are looked at one by one before they are generated.
const LARGE_BLOCK: u64 = 1 << 12;
/// An operation becomes at least its estimate divided by this: what is known is left out.
const PESSIMISM: u64 = 8;

/// The nodes from which packets may be sent, or all when that is not this code's business.
fn going_on(special: &Specialised) -> SecondaryMap<NodeId, bool> {
    let sends = |node: &NodeId| matches!(&special.nodes[*node].term, Term::Leave(leave) if leave.verdict == millrace_midend::Verdict::Forward);
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

/// What the code of all plans of a program has in common.
pub(crate) struct Shared<'a> {
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    pub(crate) records: &'a [RecordLayout],
    /// Slots that go to the context where storage does.
    pub(crate) spilled: &'a [SlotId],
    /// The memory of staged tables, by table.
    pub(crate) stages: &'a [Option<crate::stage::Stage>],
    /// How tables are looked up, by table; those beyond the end by calls.
    pub(crate) shapes: &'a [abi::Shape],
    /// Whether lookups are counted.
    pub(crate) count_lookups: bool,
    /// Whether packets stay where they are.
    pub(crate) stays: bool,
    /// Whether the code is to be made in a short time.
    pub(crate) is_quick: bool,
    /// Texts of the program, which code refers to by number.
    pub(crate) texts: &'a mut crate::runtime::Texts,
    /// What it may take.
    pub(crate) meter: &'a Meter<'a>,
}

impl Shared<'_> {
    /// Whether packets of a phase wait for the lookup of a table: it is staged, and its loop has not passed.
    fn waits(&self, table: TableId, phase: u32) -> bool {
        self.stages[table.index()].as_ref().is_some_and(|stage| stage.phase > phase)
    }
}

/// Generates the function of a specialised plan.
pub(crate) fn generate(
    shared: Shared<'_>,
    cfg: &Cfg,
    special: &Specialised,
    from_context: bool,
    target: TargetFrontendConfig,
    builder_context: &mut FunctionBuilderContext,
) -> Result<Function, JitError> {
    let mut function = Function::new();
    function.signature = Signature::new(target.default_call_conv);
    function.signature.params.push(AbiParam::new(types::I64));
    let b = FunctionBuilder::new(&mut function, builder_context);
    Gen::new(shared, cfg, special, target, b)?.run(from_context)?;
    Ok(function)
}

/// What is remembered while code is generated along one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    /// What was loaded, by address and size.
    pub(crate) loads: FxHashMap<(Base, u32, u32), Value>,
    /// Values of variables that are kept in memory, by their places in the frame.
    pub(crate) kept: FxHashMap<u32, Value>,
    /// Values of slots that have variables.
    pub(crate) values: FxHashMap<SlotId, Val>,
    /// Sums of words of the packet, kept up to date.
    pub(crate) sums: Vec<hashing::Sum>,
    /// What numbers are at least, after a comparison.
    pub(crate) least: FxHashMap<Value, u64>,
}

impl Cache {
    /// How many values it holds.
    fn values(&self) -> usize {
        self.loads.len() + self.kept.len() + self.values.len() + self.least.len()
    }

    /// The packet has changed.
    fn forget_packet(&mut self) {
        self.loads.clear();
        self.sums.clear();
    }

    /// What a variable has depends on the way.
    fn forget_var(&mut self, var: Var) {
        if let Var::Kept(_, at) = var {
            self.kept.remove(&at);
        }
    }

    /// What was loaded from there lies elsewhere.
    fn forget(&mut self, base: Base) {
        self.loads.retain(|(other, _, _), _| *other != base);
        self.sums.retain(|sum| !sum.is_of(base));
    }
}

/// The variable of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlotVar {
    Flag(Var),
    One(Var),
    Two(Var, Var),
    /// In the context.
    Memory,
}

/// The generator of one function.
pub(crate) struct Gen<'a> {
    pub(crate) s: Shared<'a>,
    cfg: &'a Cfg,
    special: &'a Specialised,
    b: FunctionBuilder<'a>,
    vars: Vars,
    slots: SecondaryMap<SlotId, Option<SlotVar>>,
    env: Value,
    loop_env: LoopEnv,
    facts: Facts,
    cache: Cache,
    /// How many bits of numbers may be 1, the lowest ones; that holds wherever there is the number.
    widths: FxHashMap<Value, u32>,
    /// Where each node's code starts, and how many edges to it are not generated yet.
    blocks: FxHashMap<NodeId, Block>,
    edges_left: FxHashMap<NodeId, usize>,
    /// What is remembered on the only edge into a node.
    inherited: FxHashMap<NodeId, Cache>,
    /// The block after the last operation for a packet, by phase.
    next: FxHashMap<u32, Block>,
    /// Nodes with one edge into them.
    single: FxHashSet<NodeId>,
    /// The bytes that packets that wait for each staged table take in an array of `u32`.
    waiting: FxHashMap<TableId, Variable>,
    /// Where packets that waited for a staged table go on.
    resumes: FxHashMap<TableId, Vec<NodeId>>,
    signatures: FxHashMap<usize, SigRef>,
    prefetch_signature: Option<SigRef>,
    target: TargetFrontendConfig,
    /// Stack memory for the operands of one operation, grown to what is needed.
    scratch: Vec<StackSlot>,
    /// Zeros, where headers point that are invalid ([`HeaderPlace::Maybe`]).
    zeros: Option<StackSlot>,
    /// Edges that still need code.
    pending: Vec<Edge>,
    /// The node whose code comes next, if the current code may run on there.
    following: Option<NodeId>,
    /// Whether it does.
    runs_on: bool,
    /// How many lookups have packets wait before they go on at a node.
    waits_for: FxHashMap<NodeId, usize>,
    /// What need not be stored while packets wait, by the node that they wait for.
    constants: FxHashMap<NodeId, state_transfer::Constants>,
    /// Sums over packets that wait for a node, with the array of the stage memory that each is in.
    kept_sums: FxHashMap<NodeId, Vec<hashing::Sum>>,
    /// Slots that hold the port of arrival under a mask, where tables are staged.
    port_slots: BTreeMap<SlotId, u64>,
    /// What is live at nodes, where tables are staged or variables kept in memory.
    live: SecondaryMap<NodeId, Live>,
    /// Where variables are that are kept in memory.
    frame: Value,
    /// Slots that the code writes.
    written: Set,
    /// Nodes from which packets may be sent.
    going_on: SecondaryMap<NodeId, bool>,
    /// Values in all copies of what is remembered.
    remembered: usize,
}

impl<'a> Gen<'a> {
    fn new(
        s: Shared<'a>,
        cfg: &'a Cfg,
        special: &'a Specialised,
        target: TargetFrontendConfig,
        mut b: FunctionBuilder<'a>,
    ) -> Result<Gen<'a>, JitError> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let params = b.block_params(entry).to_vec();
        let edges = Edges::new(special, &s);
        let waits = !edges.resumes.is_empty();
        let live = match s.is_quick || waits {
            true => live(s.program, cfg, special, s.spilled, s.meter)?,
            false => SecondaryMap::with_default(Live::default()),
        };
        let brought = match s.is_quick {
            true => Brought::new(s.program, special, &live),
            false => Brought::default(),
        };
        let mut places = Places::new(&mut b, brought);
        let (vars, slots) = (places.vars(s.program), places.slots(s.program));
        let frame = places.frame();
        let is_single = |(node, edges): (&NodeId, &usize)| (*edges == 1).then_some(*node);
        Ok(Gen {
            cfg,
            special,
            vars,
            slots,
            env: params[0],
            loop_env: LoopEnv::unknown(params[0]),
            facts: special.nodes[special.entry].entry.clone(),
            cache: Cache::default(),
            widths: FxHashMap::default(),
            blocks: FxHashMap::default(),
            single: edges.into.iter().filter_map(is_single).collect(),
            edges_left: edges.into,
            inherited: FxHashMap::default(),
            next: FxHashMap::default(),
            waiting: FxHashMap::default(),
            resumes: edges.resumes,
            signatures: FxHashMap::default(),
            prefetch_signature: None,
            target,
            scratch: Vec::new(),
            zeros: None,
            pending: Vec::new(),
            following: None,
            runs_on: false,
            waits_for: edges.waits_for,
            constants: FxHashMap::default(),
            kept_sums: FxHashMap::default(),
            port_slots: if waits { port_slots(s.program, cfg) } else { BTreeMap::new() },
            live,
            written: deparse::written_slots(cfg),
            going_on: going_on(special),
            frame,
            remembered: 0,
            b,
            s,
        })
    }

    /// The whole function.
    fn run(mut self, from_context: bool) -> Result<(), JitError> {
        let staged = self.staged_in_order();
        for table in &staged {
            let count = self.b.declare_var(types::I64);
            let zero = self.int(0);
            self.b.def_var(count, zero);
            self.waiting.insert(*table, count);
        }
        self.make_zeros();

        // The loop over the batch, its condition at the end.
        self.load_loop_env();
        let count = self.env_field(offset_of!(abi::Env, places_bytes));
        let first_place = self.b.ins().ineg(count);
        self.set(self.vars.before_end, first_place);
        let (first, next, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.next.insert(0, next);
        let any = self.not_zero(count);
        self.b.ins().brif(any, first, &[], done, &[]);
        self.b.switch_to_block(first);
        self.cache = Cache::default();
        self.find_context();
        self.load_packet();
        if from_context {
            self.load_context()
        } else {
            self.start_from_nothing()
        }
        self.jump_to(self.special.entry);

        self.nodes(0)?;

        self.b.set_srcloc(location(Site::Glue));
        self.start_anew(next);
        let before_end = self.get(self.vars.before_end);
        let before_end = self.plus(before_end, i64::from(PLACE));
        self.set(self.vars.before_end, before_end);
        let more = self.not_zero(before_end);
        self.b.ins().brif(more, first, &[], done, &[]);
        self.b.seal_block(first);
        self.start_anew(done);
        for table in staged {
            self.stage(table)?;
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
        self.b.finalize(self.target);
        Ok(())
    }

    /// Makes the zeros for headers that may be invalid and point there, as many as fields of them may read.
    fn make_zeros(&mut self) {
        let places = self.special.order.iter().flat_map(|node| &self.special.nodes[*node].entry.places);
        let headers = self.s.program.headers.values().cycle();
        let pointing = places.zip(headers).filter(|(place, _)| **place == HeaderPlace::Maybe);
        let Some(bits) = pointing.map(|(_, header)| header.fixed_bits).max() else { return };
        let bytes = (bits.div_ceil(8) + millrace_frames::TAILROOM as u32).next_multiple_of(8);
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
        self.zeros = Some(self.b.create_sized_stack_slot(slot));
        let (address, bytes) = (self.zeros(), self.int(u64::from(bytes)));
        self.call(Helper::Zero, &[address, bytes]);
    }

    /// Where the zeros are.
    fn zeros(&mut self) -> Value {
        match self.zeros {
            Some(slot) => self.b.ins().stack_addr(types::I64, slot, 0),
            // Nothing points there.
            None => self.int(0),
        }
    }

    /// Whether few packets come to a node: they will not be sent, or somebody is told something.
    fn is_cold(&self, node: NodeId) -> bool {
        let cfg = self.cfg;
        let ops = &cfg.blocks[self.special.nodes[node].block].ops;
        let tells =
            |op: &Op| matches!(op, Op::Inst(Inst::Digest { .. } | Inst::Log { .. }) | Op::AssertFailed(_));
        !self.going_on[node] || ops.iter().any(tells)
    }

    /// The code of the nodes of a phase, in an order that goes with the edges where they do not go back.
    fn nodes(&mut self, phase: u32) -> Result<(), JitError> {
        let special = self.special;
        let in_phase = |node: &NodeId| special.nodes[*node].entry.phase == phase;
        let nodes: Vec<NodeId> = special.order.iter().copied().filter(in_phase).collect();
        for (at, node) in nodes.iter().enumerate() {
            if !std::mem::take(&mut self.runs_on) {
                let block = self.block_of(*node);
                self.b.switch_to_block(block);
                if self.is_cold(*node) {
                    self.b.set_cold_block(block);
                }
            }
            let following = nodes.get(at + 1).copied();
            self.following = following.filter(|following| self.is_cold(*following) == self.is_cold(*node));
            self.cache = self.inherited.remove(node).unwrap_or_default();
            let Node { block, entry, term } = &self.special.nodes[*node];
            self.facts = entry.clone();
            let cfg = self.cfg;
            self.b.set_srcloc(location(cfg.blocks[*block].site));
            let is_large = cfg.blocks[*block].cost.code > LARGE_BLOCK;
            for op in &cfg.blocks[*block].ops {
                if is_large {
                    self.check(Cost::of_op(self.s.program, op).code)?;
                }
                self.op(op);
                let tracked = &self.special.tracked;
                self.facts.transfer(self.s.program, op, &|slot| tracked[slot]);
            }
            if let Term::Lookup { table, .. } | Term::Dispatch { table, .. } = term {
                self.b.set_srcloc(location(Site::Table(*table)));
            }
            let facts = entry.bytes();
            if facts > 1 << 12 {
                // An edge may need what holds at the node, until it has its code.
                let mut edges = 0;
                term.for_each_target(&mut |_| edges += 1);
                if (edges * facts) as u64 > MAX_FACTS {
                    return Err(JitError::TooLarge(Limit::Facts));
                }
            }
            self.term(term);
            self.check(0)?;
            self.finish_edges()?;
        }
        debug_assert!(!self.runs_on, "code that ends nowhere");
        self.following = None;
        Ok(())
    }

    /// Whether there may be more code, about so much.
    pub(crate) fn check(&self, more: u64) -> Result<(), JitError> {
        let there = self
            .b
            .func
            .dfg
            .num_insts()
            .saturating_add(usize::try_from(more / PESSIMISM).unwrap_or(usize::MAX));
        if there > MAX_CODE {
            return Err(JitError::TooLarge(Limit::Code));
        }
        Ok(self.s.meter.spend(1)?)
    }

    fn term(&mut self, term: &Term<NodeId>) {
        match term {
            Term::Goto(to) => self.jump_to(*to),
            Term::Branch { cond, then, els } => {
                let (then, els) = (self.edge(*then), self.edge(*els));
                self.branch_at_end(cond, then, els);
            }
            Term::Select { keys, cases, default } => self.select(keys, cases, *default),
            Term::Extract { header, next, short } => self.extract_header(*header, *next, *short),
            Term::ExtractVar { header, bits, next, short, long, invalid } => {
                self.extract_var(*header, bits, *next, [*short, *long, *invalid]);
            }
            Term::Advance { bits, next, short, invalid } => self.advance(bits, *next, *short, *invalid),
            Term::Lookahead { dst, skip, next, short } => self.lookahead(*dst, *skip, *next, *short),
            Term::Step { steps, next, limit } => self.count_steps(*steps, *next, *limit),
            Term::Lookup { table, next } => self.lookup(*table, *next),
            Term::Dispatch { table, actions } => self.dispatch(*table, actions),
            Term::Leave(leave) => self.leave(leave),
        }
    }

    fn count_steps(&mut self, taken: u32, next: NodeId, limit: NodeId) {
        let steps = self.get(self.vars.steps);
        let steps = self.plus(steps, taken.into());
        let most = self.int(u64::from(limits::MAX_STEPS));
        let left = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, steps, most);
        self.set(self.vars.steps, steps);
        let (next, limit) = (self.edge(next), self.edge(limit));
        self.b.ins().brif(left, next, &[], limit, &[]);
    }

    /// As [`Gen::start`], for a block to which nodes lead.
    fn start_anew(&mut self, block: Block) {
        self.start(block);
        self.cache = Cache::default();
    }

    /// Goes on in a block to which all edges are there.
    fn start(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    /// Stack memory of at least so many bytes for the current operation; its address. Different numbers give different
    /// memory.
    pub(crate) fn buffer(&mut self, number: usize, bytes: u32) -> Value {
        let bytes = bytes.next_multiple_of(8).max(8);
        while self.scratch.len() <= number {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
            let slot = self.b.create_sized_stack_slot(data);
            self.scratch.push(slot);
        }
        let slot = self.scratch[number];
        let size = &mut self.b.func.sized_stack_slots[slot].size;
        *size = (*size).max(bytes);
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    fn load_word(&mut self, ty: ClifType, address: Value, offset: u32) -> Value {
        self.b.ins().load(ty, plain(), address, offset as i32)
    }

    fn store_word(&mut self, value: Value, address: Value, offset: u32) {
        self.b.ins().store(plain(), value, address, offset as i32);
    }

    /// The packet's context.
    fn context(&mut self) -> Value {
        self.get(self.vars.context)
    }

    fn data(&mut self) -> Value {
        self.get(self.vars.data)
    }
}
