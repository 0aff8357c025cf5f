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
mod ops;
mod parser;
mod slots;
mod values;

use crate::abi;
use crate::flat::{Flat, StepLevel, Term};
use crate::layout::Layout;
use crate::specialise::{Node, NodeId, Special};
use crate::state::State;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder, SigRef, Signature, StackSlot, StackSlotData, StackSlotKind,
    Type as ClifType, Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use fields::{Base, plain};
use millrace_pipeline::entity::SecondaryMap;
use millrace_pipeline::*;
use millrace_state::RecordLayout;
use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use values::Val;

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
    function.signature.params.extend([AbiParam::new(types::I64); 3]);
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
    packet: Variable,
    context: Variable,
    data: Variable,
    len: Variable,
    cursor: Variable,
    parsed: Variable,
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
    packets: Value,
    state: State,
    cache: Cache,
    /// Where each node's code starts, and how many edges to it are not generated yet.
    blocks: HashMap<NodeId, Block>,
    edges_left: HashMap<NodeId, usize>,
    /// What is remembered on the only edge into a node.
    inherited: HashMap<NodeId, Cache>,
    /// Behind the last operation for a packet, by phase.
    next: HashMap<u32, Block>,
    /// Nodes with one edge into them.
    single: HashSet<NodeId>,
    /// The number of packets that wait for each staged table.
    waiting: HashMap<TableId, Variable>,
    /// Where packets that waited for a staged table go on.
    resumes: HashMap<TableId, Vec<NodeId>>,
    signatures: HashMap<usize, SigRef>,
    target: TargetFrontendConfig,
    /// Stack memory for the operands of one operation, grown to what is needed.
    scratch: Vec<StackSlot>,
    /// Edges that still need code.
    pending: Vec<edges::Edge>,
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
            packet: word(),
            context: word(),
            data: word(),
            len: word(),
            cursor: word(),
            parsed: word(),
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
            packets: params[1],
            state: special.nodes[special.entry].entry.clone(),
            cache: Cache::default(),
            blocks: HashMap::new(),
            edges_left: HashMap::new(),
            inherited: HashMap::new(),
            next: HashMap::new(),
            single: HashSet::new(),
            waiting: HashMap::new(),
            resumes: HashMap::new(),
            signatures: HashMap::new(),
            target,
            scratch: Vec::new(),
            pending: Vec::new(),
            b,
            s,
        }
    }

    /// The whole function.
    fn run(mut self, from_context: bool) {
        let order = self.special.order();
        self.edges_left.insert(self.special.entry, 1);
        for node in &order {
            self.special.nodes[*node].term.for_each_target(&mut |to| {
                *self.edges_left.entry(*to).or_default() += 1;
            });
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

        // The loop over the batch.
        let entry = self.b.current_block();
        let count = entry.map(|block| self.b.block_params(block)[2]);
        let count = count.unwrap_or(self.env);
        let size = self.int(size_of::<abi::Packet>() as u64);
        let bytes = self.b.ins().imul(count, size);
        let end = self.b.ins().iadd(self.packets, bytes);
        let contexts =
            self.b.ins().load(types::I64, plain(), self.env, offset_of!(abi::Env, contexts) as i32);
        self.b.def_var(self.vars.packet, self.packets);
        self.b.def_var(self.vars.context, contexts);
        let (head, first, next, done) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.next.insert(0, next);
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let packet = self.b.use_var(self.vars.packet);
        let more = self.b.ins().icmp(IntCC::NotEqual, packet, end);
        self.b.ins().brif(more, first, &[], done, &[]);
        self.b.switch_to_block(first);
        self.b.seal_block(first);
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

        self.b.switch_to_block(next);
        self.b.seal_block(next);
        let packet = self.b.use_var(self.vars.packet);
        let packet = self.plus(packet, size_of::<abi::Packet>() as i64);
        self.b.def_var(self.vars.packet, packet);
        let context = self.b.use_var(self.vars.context);
        let context = self.plus(context, self.s.layout.size() as i64);
        self.b.def_var(self.vars.context, context);
        self.b.ins().jump(head, &[]);
        self.b.seal_block(head);
        self.b.switch_to_block(done);
        self.b.seal_block(done);
        for table in staged {
            self.stage(table, &order);
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
        self.b.finalize(self.target);
    }

    /// The code of nodes, in an order that goes with the edges where they do not go back.
    fn nodes(&mut self, nodes: &[NodeId]) {
        for node in nodes {
            let block = self.block_of(*node);
            self.b.switch_to_block(block);
            self.cache = self.inherited.remove(node).unwrap_or_default();
            let Node { block, entry, term } = &self.special.nodes[*node];
            self.state = entry.clone();
            let flat = self.flat;
            for op in &flat.blocks[*block].ops {
                self.op(op);
                let tracked = &self.special.tracked;
                self.state.transfer(self.s.program, op, &|slot| tracked[slot]);
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
                self.branch(cond, then, els);
                let (on_then, on_els) = expr::evaluates_all(cond);
                if on_then {
                    self.remember_on(then);
                }
                if on_els {
                    self.remember_on(els);
                }
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

    fn context(&mut self) -> Value {
        self.b.use_var(self.vars.context)
    }

    fn data(&mut self) -> Value {
        self.b.use_var(self.vars.data)
    }
}
