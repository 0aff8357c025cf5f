//! Code for the specialised graph: one function that runs a plan over a batch of packets.
//!
//! Slots are variables of the function, but for numbers wider than 128 bits and varbits, which stay in the packet's
//! context. Fields of a header that is in the packet ([`Place::At`], [`Place::Pointed`]) have no variable there: they are
//! read and written in place.

mod apply;
mod calls;
pub(crate) mod deparse;
mod edges;
mod expr;
mod fields;
mod hashing;
mod loads;
mod ops;
mod parser;
mod slots;
mod surroundings;
mod values;

use crate::abi;
use crate::arrival::port_slots;
use crate::flat::{Flat, Op, StepLevel, Term};
use crate::layout::Layout;
use crate::live::{Live, Set, live};
use crate::runtime::Helper;
use crate::site::Site;
use crate::specialise::{Node, NodeId, Special};
use crate::state::{Place, State};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder, SigRef, Signature, StackSlot, StackSlotData, StackSlotKind,
    Type as ClifType, Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use fields::{Base, plain};
use millrace_pipeline::entity::{EntityRef, SecondaryMap};
use millrace_pipeline::*;
use millrace_state::RecordLayout;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::offset_of;
use surroundings::Around;
use values::Val;

/// The distance of two places, which is also that of two outcomes.
const PLACE: u32 = size_of::<abi::Place>() as u32;

/// The nodes from which packets may be sent, or all when that is not this code's business.
fn going_on(special: &Special, order: &[NodeId]) -> SecondaryMap<NodeId, bool> {
    let sends = |node: &NodeId| matches!(&special.nodes[*node].term, Term::Leave(leave) if leave.verdict == abi::Verdict::Forward);
    if !order.iter().any(sends) {
        return SecondaryMap::with_default(true);
    }
    let mut on: SecondaryMap<NodeId, bool> = SecondaryMap::with_default(false);
    let mut changed = true;
    while changed {
        changed = false;
        for node in order.iter().rev().filter(|node| sends(node) || !on[**node]).collect::<Vec<_>>() {
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
    /// Texts of the program, which code refers to by number.
    pub(crate) texts: &'a mut crate::runtime::Texts,
}

/// Generates the function of a specialised plan.
pub(crate) fn generate(
    shared: Shared<'_>,
    flat: &Flat,
    special: &Special,
    from_context: bool,
    target: TargetFrontendConfig,
    builder_context: &mut FunctionBuilderContext,
) -> Function {
    let mut function = Function::new();
    function.signature = Signature::new(target.default_call_conv);
    function.signature.params.push(AbiParam::new(types::I64));
    let b = FunctionBuilder::new(&mut function, builder_context);
    Gen::new(shared, flat, special, target, b).run(from_context);
    function
}

/// What is remembered while code is generated along one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    /// What was loaded, by address and size.
    pub(crate) loads: HashMap<(Base, u32, u32), Value>,
    /// Values of slots that have variables.
    pub(crate) values: HashMap<SlotId, Val>,
    /// Sums of words of the packet, kept up to date.
    pub(crate) sums: Vec<hashing::Sum>,
    /// What numbers are at least, after a comparison.
    pub(crate) least: HashMap<Value, u64>,
}

impl Cache {
    /// The packet has changed.
    fn forget_packet(&mut self) {
        self.loads.clear();
        self.sums.clear();
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
    Flag(Variable),
    One(Variable),
    Two(Variable, Variable),
    /// In the context.
    Memory,
}

/// The variables that are no slots.
struct Vars {
    /// The packet's place counted from behind the last one, in bytes: below 0.
    before_end: Variable,
    context: Variable,
    data: Variable,
    len: Variable,
    cursor: Variable,
    parsed: Variable,
    /// The port to send to, or the parser's error.
    out: Variable,
    /// The record of the action that the last lookup gave, and its slot (0: a miss).
    record: Variable,
    found: Variable,
    steps: [Variable; 2],
    valid: Vec<Variable>,
    pointer: Vec<Variable>,
    /// The entry (plus one) that each table with direct objects hit last.
    entries: Vec<Variable>,
}

/// The generator of one function.
pub(crate) struct Gen<'a> {
    pub(crate) s: Shared<'a>,
    flat: &'a Flat,
    special: &'a Special,
    b: FunctionBuilder<'a>,
    vars: Vars,
    slots: SecondaryMap<SlotId, Option<SlotVar>>,
    env: Value,
    around: Around,
    state: State,
    cache: Cache,
    /// How many bits of numbers may be 1, the lowest ones; that holds wherever there is the number.
    widths: HashMap<Value, u32>,
    /// Where each node's code starts, and how many edges to it are not generated yet.
    blocks: HashMap<NodeId, Block>,
    edges_left: HashMap<NodeId, usize>,
    /// What is remembered on the only edge into a node.
    inherited: HashMap<NodeId, Cache>,
    /// Behind the last operation for a packet, by phase.
    next: HashMap<u32, Block>,
    /// Nodes with one edge into them.
    single: HashSet<NodeId>,
    /// The bytes that packets that wait for each staged table take in an array of `u32`.
    waiting: HashMap<TableId, Variable>,
    /// Where packets that waited for a staged table go on.
    resumes: HashMap<TableId, Vec<NodeId>>,
    signatures: HashMap<usize, SigRef>,
    prefetch_signature: Option<SigRef>,
    target: TargetFrontendConfig,
    /// Stack memory for the operands of one operation, grown to what is needed.
    scratch: Vec<StackSlot>,
    /// Zeros, where headers point that are invalid ([`Place::Maybe`]).
    zeros: Option<StackSlot>,
    /// Edges that still need code.
    pending: Vec<edges::Edge>,
    /// How often packets start to wait for what is behind a node.
    waits_for: HashMap<NodeId, usize>,
    /// What need not be stored while packets wait, by the node that they wait for.
    constants: HashMap<NodeId, edges::Constants>,
    /// Sums over packets that wait for a node, with the array of the stage memory that each is in.
    kept_sums: HashMap<NodeId, Vec<hashing::Sum>>,
    /// Slots that hold the port of arrival under a mask, where tables are staged.
    port_slots: BTreeMap<SlotId, u64>,
    /// What is live at nodes, where tables are staged.
    live: SecondaryMap<NodeId, Live>,
    /// Slots that the code writes.
    written: Set,
    /// Nodes from which packets may be sent.
    going_on: SecondaryMap<NodeId, bool>,
}

impl<'a> Gen<'a> {
    fn new(
        s: Shared<'a>,
        flat: &'a Flat,
        special: &'a Special,
        target: TargetFrontendConfig,
        mut b: FunctionBuilder<'a>,
    ) -> Gen<'a> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let params = b.block_params(entry).to_vec();
        let mut word = || b.declare_var(types::I64);
        let vars = Vars {
            before_end: word(),
            context: word(),
            data: word(),
            len: word(),
            cursor: word(),
            parsed: word(),
            out: word(),
            record: word(),
            found: word(),
            steps: [word(), word()],
            valid: s.program.headers.keys().map(|_| word()).collect(),
            pointer: s.program.headers.keys().map(|_| word()).collect(),
            entries: s.program.tables.keys().map(|_| word()).collect(),
        };
        let mut slots = SecondaryMap::new();
        for (id, slot) in &s.program.slots {
            slots[id] = Some(match slot.ty {
                Type::Bool => SlotVar::Flag(b.declare_var(types::I8)),
                Type::Bits(..=64) => SlotVar::One(b.declare_var(types::I64)),
                Type::Bits(65..=128) => SlotVar::Two(b.declare_var(types::I64), b.declare_var(types::I64)),
                Type::Bits(_) | Type::Varbit(_) => SlotVar::Memory,
            });
        }
        Gen {
            flat,
            special,
            vars,
            slots,
            env: params[0],
            around: Around::unknown(params[0]),
            state: special.nodes[special.entry].entry.clone(),
            cache: Cache::default(),
            widths: HashMap::new(),
            blocks: HashMap::new(),
            edges_left: HashMap::new(),
            inherited: HashMap::new(),
            next: HashMap::new(),
            single: HashSet::new(),
            waiting: HashMap::new(),
            resumes: HashMap::new(),
            signatures: HashMap::new(),
            prefetch_signature: None,
            target,
            scratch: Vec::new(),
            zeros: None,
            pending: Vec::new(),
            waits_for: HashMap::new(),
            constants: HashMap::new(),
            kept_sums: HashMap::new(),
            port_slots: BTreeMap::new(),
            live: SecondaryMap::with_default(Live::default()),
            written: deparse::written_slots(flat),
            going_on: SecondaryMap::with_default(true),
            b,
            s,
        }
    }

    /// The whole function.
    fn run(mut self, from_context: bool) {
        let order = self.special.order();
        self.edges_left.insert(self.special.entry, 1);
        for node in &order {
            let Node { term, entry, .. } = &self.special.nodes[*node];
            match term {
                Term::Lookup { table, next } if self.waits(*table, entry.phase) => {
                    // All that wait for the table and go on at one node come on one edge.
                    *self.waits_for.entry(*next).or_default() += 1;
                    let resumes = self.resumes.entry(*table).or_default();
                    if !resumes.contains(next) {
                        resumes.push(*next);
                        *self.edges_left.entry(*next).or_default() += 1;
                    }
                }
                _ => term.for_each_target(&mut |to| *self.edges_left.entry(*to).or_default() += 1),
            }
        }
        self.single =
            self.edges_left.iter().filter(|(_, edges)| **edges == 1).map(|(node, _)| *node).collect();
        let staged: Vec<TableId> = self.staged_in_order(&order);
        for table in &staged {
            let count = self.b.declare_var(types::I64);
            let zero = self.int(0);
            self.b.def_var(count, zero);
            self.waiting.insert(*table, count);
        }

        if !staged.is_empty() {
            self.port_slots = port_slots(self.s.program, self.flat);
            self.live = live(self.s.program, self.flat, self.special, self.s.spilled);
        }
        self.going_on = going_on(self.special, &order);
        self.make_zeros(&order);

        // The loop over the batch, its condition at the end.
        self.load_around();
        let count = self.env_field(offset_of!(abi::Env, places_bytes));
        let first_place = self.b.ins().ineg(count);
        self.b.def_var(self.vars.before_end, first_place);
        let (first, next, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.next.insert(0, next);
        let any = self.not_zero(count);
        self.b.ins().brif(any, first, &[], done, &[]);
        self.b.switch_to_block(first);
        self.find_context();
        self.load_packet();
        if from_context {
            self.load_context()
        } else {
            self.start_from_nothing()
        }
        self.jump_to(self.special.entry);

        let in_phase =
            |gen_: &Gen<'_>, node: &NodeId, phase: u32| gen_.special.nodes[*node].entry.phase == phase;
        let phase: Vec<NodeId> = order.iter().copied().filter(|node| in_phase(&self, node, 0)).collect();
        self.nodes(&phase);

        self.b.set_srcloc(Site::Glue.location());
        self.start(next);
        let before_end = self.b.use_var(self.vars.before_end);
        let before_end = self.plus(before_end, i64::from(PLACE));
        self.b.def_var(self.vars.before_end, before_end);
        let more = self.not_zero(before_end);
        self.b.ins().brif(more, first, &[], done, &[]);
        self.b.seal_block(first);
        self.start(done);
        for table in staged {
            self.stage(table, &order);
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
        self.b.finalize(self.target);
    }

    /// Makes the zeros for headers that may be invalid and point there, as many as fields of them may read.
    fn make_zeros(&mut self, order: &[NodeId]) {
        let places = order.iter().flat_map(|node| &self.special.nodes[*node].entry.places);
        let headers = self.s.program.headers.values().cycle();
        let pointing = places.zip(headers).filter(|(place, _)| **place == Place::Maybe);
        let Some(bits) = pointing.map(|(_, header)| header.fixed_bits).max() else { return };
        let bytes = (bits.div_ceil(8) + abi::TAILROOM as u32).next_multiple_of(8);
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

    /// Whether a node tells somebody something, which programs do for few packets.
    fn is_seldom(&self, node: NodeId) -> bool {
        let flat = self.flat;
        let ops = &flat.blocks[self.special.nodes[node].block].ops;
        ops.iter()
            .any(|op| matches!(op, Op::Inst(Inst::Digest { .. } | Inst::Log { .. }) | Op::AssertFailed(_)))
    }

    /// Whether packets of a phase wait for the lookup of a table: it is staged, and its loop has not passed.
    fn waits(&self, table: TableId, phase: u32) -> bool {
        self.s.stages[table.index()].as_ref().is_some_and(|stage| stage.phase > phase)
    }

    /// The code of nodes, in an order that goes with the edges where they do not go back.
    fn nodes(&mut self, nodes: &[NodeId]) {
        for node in nodes {
            let block = self.block_of(*node);
            self.b.switch_to_block(block);
            if !self.going_on[*node] || self.is_seldom(*node) {
                self.b.set_cold_block(block);
            }
            self.cache = self.inherited.remove(node).unwrap_or_default();
            let Node { block, entry, term } = &self.special.nodes[*node];
            self.state = entry.clone();
            let flat = self.flat;
            self.b.set_srcloc(flat.blocks[*block].site.location());
            for op in &flat.blocks[*block].ops {
                self.op(op);
                let tracked = &self.special.tracked;
                self.state.transfer(self.s.program, op, &|slot| tracked[slot]);
            }
            if let Term::Lookup { table, .. } | Term::Dispatch { table, .. } = term {
                self.b.set_srcloc(Site::Table(*table).location());
            }
            self.term(term);
            self.finish_edges();
        }
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
            Term::Step { level, next, limit } => self.count_step(*level, *next, *limit),
            Term::Lookup { table, next } => self.lookup(*table, *next),
            Term::Dispatch { table, actions } => self.dispatch(*table, actions),
            Term::Leave(leave) => self.leave(leave),
        }
    }

    fn count_step(&mut self, level: StepLevel, next: NodeId, limit: NodeId) {
        let variable = self.vars.steps[level as usize];
        let steps = self.b.use_var(variable);
        let most = self.int(u64::from(limits::MAX_STEPS));
        let left = self.b.ins().icmp(IntCC::UnsignedLessThan, steps, most);
        let steps = self.plus(steps, 1);
        self.b.def_var(variable, steps);
        let (next, limit) = (self.edge(next), self.edge(limit));
        self.b.ins().brif(left, next, &[], limit, &[]);
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
        self.b.use_var(self.vars.context)
    }

    fn data(&mut self) -> Value {
        self.b.use_var(self.vars.data)
    }
}
