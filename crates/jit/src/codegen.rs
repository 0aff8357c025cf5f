//! Code for the specialised graph: one function that runs a plan over a batch of packets.
//!
//! Slots are variables of the function, but for numbers wider than 128 bits and varbits, which stay in the packet's
//! context; where code is made quickly, variables are words of a frame. Fields of a header that is in the packet
//! ([`HeaderPlace::At`], [`HeaderPlace::Pointed`]) have no variable there: they are read and written in place.
//!
//! The generator is made of parts, of which each has the part before it and knows nothing of the part after it:
//!
//! - [`Emitter`] adds instructions: single values, numbers of any width, calls.
//! - [`PacketAccess`] reads and writes variables and the packet's bytes, and remembers their values ([`Cache`]).
//! - [`SlotAccess`] knows the program's slots and headers, and by the facts where each is.
//! - [`Operations`] has the code of operations, expressions, hashes and deparsers.
//! - [`Gen`] goes through the graph. [`GraphWalk`] has its nodes and edges, [`Staged`] the packets that wait for a table,
//!   [`TableLookup`] the lookup of one table.

mod ahead;
mod apply;
mod arithmetic;
mod cache;
mod deparse;
mod emitter;
mod expr;
mod fields;
mod hashing;
mod headers;
mod lookup;
mod objects;
mod ops;
mod packet;
mod parser;
mod slots;
mod staged;
mod values;
mod variables;
mod walk;

use crate::abi;
use crate::compiled::JitError;
use crate::layout::Layout;
use crate::site::Origins;
use cache::Cache;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, Function, InstBuilder, Signature, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder, FunctionBuilderContext};
use emitter::Emitter;
use expr::evaluates_all;
use lookup::{Lookups, TableLookup};
use millrace_midend::Site;
use millrace_midend::budget::{Cost, Limit, MAX_CODE, MAX_FACTS, Meter};
use millrace_midend::cfg::{Cfg, Leave, Op, Spill, Term};
use millrace_midend::facts::HeaderPlace;
use millrace_midend::liveness::{Live, live};
use millrace_midend::machine::{Does, Origin};
use millrace_midend::specialise::{Node, NodeId, Specialised};
use millrace_pipeline::entity::SecondaryMap;
use millrace_pipeline::*;
use millrace_state::RecordLayout;
use ops::Operations;
use packet::PacketAccess;
use slots::SlotAccess;
use staged::Staged;
use std::mem::offset_of;
use variables::{Brought, PacketVar, Places};
use walk::GraphWalk;

/// The distance of two places, which is also that of two outcomes.
const PLACE: u32 = size_of::<millrace_frames::Place>() as u32;

/// From this cost on the operations of a block are looked at one by one before they are generated.
const LARGE_BLOCK: u64 = 1 << 12;
/// An operation becomes at least its estimate divided by this: what is known is left out.
const PESSIMISM: u64 = 8;

/// What the code of all plans of a program has in common.
pub(crate) struct Shared<'a> {
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    pub(crate) records: &'a [RecordLayout],
    /// Slots that go to the context where storage does.
    pub(crate) spilled: &'a [SlotId],
    /// The memory of staged tables, by table.
    pub(crate) stages: &'a [Option<crate::stage::Stage>],
    /// How tables are looked up.
    pub(crate) looked_up: LookedUp<'a>,
    /// What code works on itself; other objects are called for.
    pub(crate) objects: &'a crate::objects::Numbers,
    /// Whether packets stay where they are.
    pub(crate) stays: bool,
    /// Whether the code is to be made in a short time.
    pub(crate) is_quick: bool,
    /// Texts of the program, which code refers to by number.
    pub(crate) texts: &'a mut crate::runtime::Texts,
    /// What it may take.
    pub(crate) meter: &'a Meter<'a>,
}

/// How tables are looked up.
#[derive(Clone, Copy)]
pub(crate) struct LookedUp<'a> {
    /// By table; those beyond the end by calls.
    pub(crate) shapes: &'a [abi::Shape],
    /// Whether lookups are counted.
    pub(crate) are_counted: bool,
    /// Whether the processor does loads in the order of the code.
    pub(crate) loads_in_order: bool,
}

/// Generates the function of a specialised plan.
pub(crate) fn generate(
    shared: Shared<'_>,
    cfg: &Cfg,
    special: &Specialised,
    from_context: bool,
    target: TargetFrontendConfig,
    builder_context: &mut FunctionBuilderContext,
) -> Result<(Function, Origins), JitError> {
    let mut function = Function::new();
    function.signature = Signature::new(target.default_call_conv);
    function.signature.params.push(AbiParam::new(types::I64));
    let b = FunctionBuilder::new(&mut function, builder_context);
    let origins = Gen::new(shared, cfg, special, target, b)?.run(from_context)?;
    Ok((function, origins))
}

/// The generator of one function: it goes through the nodes of the graph, phase by phase, and ties its parts together.
struct Gen<'a> {
    program: &'a Program,
    cfg: &'a Cfg,
    special: &'a Specialised,
    ops: Operations<'a>,
    walk: GraphWalk<'a>,
    staged: Staged<'a>,
    lookups: Lookups<'a>,
    /// What is live at nodes, where tables are staged or variables kept in memory.
    live: SecondaryMap<NodeId, Live>,
    /// What the code may take.
    meter: &'a Meter<'a>,
}

impl<'a> Gen<'a> {
    fn new(
        shared: Shared<'a>,
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
        let staged = Staged::new(shared.program, cfg, special, shared.stages);
        let live = match shared.is_quick || staged.any() {
            true => live(shared.program, cfg, special, shared.spilled, shared.meter)?,
            false => SecondaryMap::with_default(Live::default()),
        };
        let brought = match shared.is_quick {
            true => Brought::new(shared.program, special, &live),
            false => Brought::default(),
        };
        let mut places = Places::new(&mut b, brought);
        let (vars, slot_vars) = (places.vars(shared.program), places.slots(shared.program));
        let frame = places.frame();
        let e = Emitter::new(b, target);
        let packet = PacketAccess::new(e, params[0], (vars, frame), shared.layout.size(), shared.stays);
        let facts = special.nodes[special.entry].entry.clone();
        let slots = SlotAccess::new(&shared, packet, slot_vars, facts);
        Ok(Gen {
            program: shared.program,
            cfg,
            special,
            walk: GraphWalk::new(special, &staged),
            staged,
            lookups: Lookups::new(&shared),
            live,
            meter: shared.meter,
            ops: Operations {
                slots,
                records: shared.records,
                objects: shared.objects,
                texts: shared.texts,
                written: deparse::written_slots(cfg),
            },
        })
    }

    /// The whole function.
    fn run(mut self, from_context: bool) -> Result<Origins, JitError> {
        let staged = self.staged.in_order();
        for table in &staged {
            self.staged.count(self.ops.slots.e(), *table);
        }
        self.ops.slots.make_zeros(self.special);

        // The loop over the batch, its condition at the end.
        self.packet().load_loop_env();
        let count = self.packet().env_field(offset_of!(abi::Env, packets.places_bytes));
        let first_place = self.ins().ineg(count);
        self.packet().set(PacketVar::BeforeEnd, first_place);
        let (first, next, done) = (self.e().new_block(), self.e().new_block(), self.e().new_block());
        self.walk.ends.insert(0, next);
        let any = self.e().not_zero(count);
        self.ins().brif(any, first, &[], done, &[]);
        self.e().b.switch_to_block(first);
        self.packet().cache = Cache::default();
        self.packet().find_context();
        self.packet().load_packet();
        if !from_context && staged.iter().any(|table| self.staged.is_far(*table)) {
            // With tables that do not fit into caches, frames that come do not either.
            self.packet().ask_ahead();
        }
        if from_context {
            self.ops.slots.load_context(&self.live[self.special.entry])
        } else {
            self.ops.slots.start_from_nothing(&self.live[self.special.entry])
        }
        self.jump_to(self.special.entry);

        self.nodes(0)?;

        self.e().set_origin(Origin { does: Does::NextPacket(0), ..Origin::default() });
        self.start_anew(next);
        let before_end = self.packet().get(PacketVar::BeforeEnd);
        let before_end = self.e().plus(before_end, i64::from(PLACE));
        self.packet().set(PacketVar::BeforeEnd, before_end);
        let more = self.e().not_zero(before_end);
        self.ins().brif(more, first, &[], done, &[]);
        self.e().b.seal_block(first);
        self.e().set_origin(Origin::default());
        self.start_anew(done);
        for table in staged {
            self.stage(table)?;
        }
        self.ins().return_(&[]);
        Ok(self.ops.slots.packet.e.finish())
    }

    /// The code of the nodes of a phase, in an order that goes with the edges where they do not go back.
    fn nodes(&mut self, phase: u32) -> Result<(), JitError> {
        let special = self.special;
        let in_phase = |node: &NodeId| special.nodes[*node].entry.phase == phase;
        let nodes: Vec<NodeId> = special.order.iter().copied().filter(in_phase).collect();
        for (at, node) in nodes.iter().enumerate() {
            let is_cold = self.is_cold(*node);
            let following = nodes.get(at + 1).copied();
            let following = following.filter(|following| self.is_cold(*following) == is_cold);
            self.walk.enter(&mut self.ops.slots, *node, is_cold, following);
            let Node { block, entry, term } = &special.nodes[*node];
            let cfg = self.cfg;
            let origin = Origin { site: cfg.blocks[*block].site, node: Some(*node), ..Origin::default() };
            self.e().set_origin(origin);
            let is_large = cfg.blocks[*block].cost.code > LARGE_BLOCK;
            for op in &cfg.blocks[*block].ops {
                if is_large {
                    self.check(Cost::of_op(self.program, op).code)?;
                }
                self.ops.op(op);
                let tracked = &self.special.tracked;
                self.ops.slots.facts.transfer(self.program, op, &|slot| tracked[slot]);
            }
            if let Term::Lookup { table, .. } | Term::Dispatch { table, .. } = term {
                self.e().set_origin(Origin { site: Site::Table(*table), ..origin });
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
        self.walk.leave();
        Ok(())
    }

    /// Whether few packets come to a node: they will not be sent, or somebody is told something.
    fn is_cold(&self, node: NodeId) -> bool {
        let cfg = self.cfg;
        let ops = &cfg.blocks[self.special.nodes[node].block].ops;
        let tells =
            |op: &Op| matches!(op, Op::Inst(Inst::Digest { .. } | Inst::Log { .. }) | Op::AssertFailed(_));
        !self.walk.goes_on(node) || ops.iter().any(tells)
    }

    /// Whether there may be more code, about so much.
    fn check(&self, more: u64) -> Result<(), JitError> {
        let more = usize::try_from(more / PESSIMISM).unwrap_or(usize::MAX);
        let there = self.ops.slots.packet.e.len().saturating_add(more);
        if there > MAX_CODE {
            return Err(JitError::TooLarge(Limit::Code));
        }
        Ok(self.meter.spend(1)?)
    }

    fn term(&mut self, term: &Term<NodeId>) {
        match term {
            Term::Goto(to) => self.jump_to(*to),
            Term::Branch { cond, then, els } => {
                let (then, els) = (self.edge(*then), self.edge(*els));
                self.branch(cond, then, els);
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
            Term::MoreCopies { more, done } => {
                let to_come = self.packet().get(PacketVar::ToCome);
                let (more, done) = (self.edge(*more), self.edge(*done));
                let around = self.e().origin();
                self.e().set_origin(Origin { does: Does::NextCopy, ..around });
                self.ins().brif(to_come, more, &[], done, &[]);
                self.e().set_origin(around);
            }
            Term::Leave(leave) => self.leave(leave),
        }
    }

    /// Generates the edges that the terminator asked for.
    fn finish_edges(&mut self) -> Result<(), JitError> {
        for edge in self.walk.take_pending() {
            self.check(0)?;
            self.walk.finish(&mut self.ops.slots, edge);
        }
        Ok(())
    }

    /// Branches; what is known after all parts of the condition were looked at goes along.
    fn branch(&mut self, cond: &Expr, then: Block, els: Block) {
        let least = self.ops.branch_at_end(cond, then, els);
        let (on_then, on_els) = evaluates_all(cond);
        let cache = &self.ops.slots.packet.cache;
        if on_then {
            self.walk.remember_on(cache, then, &least);
        }
        if on_els {
            self.walk.remember_on(cache, els, &[]);
        }
    }

    fn count_steps(&mut self, taken: u32, next: NodeId, limit: NodeId) {
        let steps = self.packet().get(PacketVar::Steps);
        let steps = self.e().plus(steps, taken.into());
        let most = self.e().int(u64::from(limits::MAX_STEPS));
        let left = self.ins().icmp(IntCC::UnsignedLessThanOrEqual, steps, most);
        self.packet().set(PacketVar::Steps, steps);
        let (next, limit) = (self.edge(next), self.edge(limit));
        self.ins().brif(left, next, &[], limit, &[]);
    }

    /// The packet is done.
    fn leave(&mut self, leave: &Leave) {
        match leave.spill {
            Spill::Nothing => {}
            Spill::Metadata => {
                self.ops.slots.facts.places.fill(HeaderPlace::Invalid);
                self.ops.slots.spill();
            }
            Spill::Everything => self.ops.slots.spill(),
        }
        let out = match leave.out {
            Some(out) => self.e().int(u64::from(out)),
            None => self.packet().get(PacketVar::Out),
        };
        let both = match leave.verdict as u64 {
            0 => out,
            verdict => {
                let upper = self.e().int(verdict << 32);
                self.ins().bor(out, upper)
            }
        };
        let outcome = self.packet().outcome();
        self.e().store_word(both, outcome, 0);
        let next = self.walk.ends[&self.ops.slots.facts.phase];
        self.ins().jump(next, &[]);
        self.packet().cache = Cache::default();
    }

    /// As [`Emitter::start`], for a block to which nodes lead.
    fn start_anew(&mut self, block: Block) {
        self.e().start(block);
        self.packet().cache = Cache::default();
    }

    /// The next instruction.
    fn ins(&mut self) -> FuncInstBuilder<'_, 'a> {
        self.ops.slots.packet.e.ins()
    }

    fn e(&mut self) -> &mut Emitter<'a> {
        &mut self.ops.slots.packet.e
    }

    fn packet(&mut self) -> &mut PacketAccess<'a> {
        &mut self.ops.slots.packet
    }

    /// See [`GraphWalk::edge`].
    fn edge(&mut self, to: NodeId) -> Block {
        self.walk.edge(&mut self.ops.slots, to)
    }

    /// See [`GraphWalk::jump_to`].
    fn jump_to(&mut self, to: NodeId) {
        self.walk.jump_to(&mut self.ops.slots, to);
    }

    /// The code of lookups of a table.
    fn of_table(&mut self, table: TableId) -> TableLookup<'_, 'a> {
        self.lookups.of(&mut self.ops.slots.packet, table)
    }
}
