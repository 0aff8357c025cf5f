//! Making the flat graph.

use super::{Flat, FlatBlock, FlatId, Input, Leave, Op, Spill, StepLevel, Term};
use crate::abi::Verdict;
use crate::plan::{Plan, Start, Step};
use crate::site::Site;
use millrace_pipeline::entity::{PrimaryMap, SecondaryMap};
use millrace_pipeline::*;
use std::collections::BTreeSet;

/// Makes the graph of a plan for a verified program.
pub(crate) fn flatten(program: &Program, plan: &Plan) -> Flat {
    let is_deparser =
        |step: &&Step| matches!(step, Step::Body(body) if program.bodies[*body].kind == BodyKind::Deparser);
    let mut builder = Builder {
        program,
        blocks: PrimaryMap::new(),
        keeps_headers: true,
        in_place: plan.steps.iter().filter(is_deparser).count() <= MAX_DEPARSERS_IN_PLACE,
        behind: None,
        site: Site::Glue,
    };
    // From the last step to the first, so that each knows where the next one starts.
    let mut next = builder.leave(Verdict::Stopped, Some(0), Spill::Everything);
    for (at, step) in plan.steps.iter().enumerate().rev() {
        let behind = plan.steps.get(at + 1);
        builder.keeps_headers = builder.lists_headers()
            || match behind {
                Some(Step::Transmit { .. }) => false,
                Some(Step::TrafficManager) => !program.deparse_at_ingress,
                _ => true,
            };
        next = builder.step(*step, next);
        if matches!(step, Step::TrafficManager | Step::Transmit { .. } | Step::Stop) {
            builder.behind = Some(next);
        }
    }
    let entry = match plan.start {
        Start::Arrival => builder.arrival(next),
        Start::Unparsed | Start::Context => next,
    };
    Flat { blocks: builder.blocks, entry }
}

/// Deparsers of one plan that may take from the headroom, each at most [`crate::abi::GROWTH`].
const MAX_DEPARSERS_IN_PLACE: usize = crate::abi::HEADROOM / crate::abi::GROWTH;

/// Bits of a packet's priority that queues tell apart.
const PRIORITY_BITS: u32 = 8;

struct Builder<'a> {
    program: &'a Program,
    blocks: PrimaryMap<FlatId, FlatBlock>,
    /// Whether headers matter behind the body that is being flattened.
    keeps_headers: bool,
    /// Whether deparsers may take from the headroom.
    in_place: bool,
    /// Where ingress or egress is done, for packets that leave out the rest of it.
    behind: Option<FlatId>,
    /// The part of the program that is being flattened.
    site: Site,
}

/// Where the ends of a body go.
#[derive(Clone, Copy)]
struct Ends {
    end: FlatId,
    exit: FlatId,
    reject: FlatId,
    level: StepLevel,
}

impl Builder<'_> {
    fn block(&mut self, origin: impl Into<String>, ops: Vec<Op>, term: Term<FlatId>) -> FlatId {
        self.blocks.push(FlatBlock { ops, term, origin: origin.into(), site: self.site })
    }

    fn leave(&mut self, verdict: Verdict, out: Option<u32>, spill: Spill) -> FlatId {
        self.block(format!("{verdict:?}"), Vec::new(), Term::Leave(Leave { verdict, out, spill }))
    }

    fn step(&mut self, step: Step, next: FlatId) -> FlatId {
        match step {
            Step::Body(body) => {
                self.site = Site::of(self.program.bodies[body].kind);
                let entry = self.body(body, next);
                self.site = Site::Glue;
                entry
            }
            Step::TrafficManager => self.traffic_manager(next),
            Step::CloneBeforeDeparser(nth) => {
                let stop = self.leave(Verdict::CloneBeforeDeparser, Some(nth), Spill::Everything);
                self.unless(Intrinsic::Clone, stop, next)
            }
            Step::DropInEgress => {
                let drop = self.leave(Verdict::EgressDrop, None, Spill::Nothing);
                self.unless(Intrinsic::Drop, drop, next)
            }
            Step::Transmit { cloned } => self.transmit(cloned),
            Step::Stop => self.leave(Verdict::Stopped, Some(0), Spill::Everything),
        }
    }

    /// Whether metadata that is kept from pass to pass has header fields in it.
    fn lists_headers(&self) -> bool {
        let slots = self.program.field_lists.iter().flat_map(|list| &list.slots);
        slots.into_iter().any(|slot| matches!(self.program.slots[*slot].home, Home::Header { .. }))
    }

    /// Goes to `instead` when the slot of a role is not 0.
    fn unless(&mut self, role: Intrinsic, instead: FlatId, next: FlatId) -> FlatId {
        let Some(slot) = self.program.intrinsics.get(role) else { return next };
        let cond = match self.program.slots[slot].ty {
            Type::Bool => Expr::Read(slot),
            _ => Expr::Read(slot).bits_to_bool(self.program),
        };
        self.block(role.name(), Vec::new(), Term::Branch { cond, then: instead, els: next })
    }

    fn set(&self, role: Intrinsic, value: u64, ops: &mut Vec<Op>) {
        if let Some(slot) = self.program.intrinsics.get(role) {
            ops.push(assign_number(self.program, slot, value));
        }
    }

    fn input(&self, role: Intrinsic, input: Input, ops: &mut Vec<Op>) {
        if let Some(dst) = self.program.intrinsics.get(role) {
            ops.push(Op::Input { dst, input });
        }
    }

    fn arrival(&mut self, next: FlatId) -> FlatId {
        let mut ops = Vec::new();
        self.input(Intrinsic::IngressPort, Input::Port, &mut ops);
        self.input(Intrinsic::IngressTimestamp, Input::Now, &mut ops);
        self.input(Intrinsic::PacketLength, Input::Length, &mut ops);
        self.block("arrival", ops, Term::Goto(next))
    }

    fn traffic_manager(&mut self, next: FlatId) -> FlatId {
        let p = self.program;
        let mut ops = Vec::new();
        let port = p.intrinsics.get(Intrinsic::EgressSpec).map(Expr::Read);
        ops.push(Op::SetOut(port.unwrap_or_else(|| Expr::bits(32, 0)).zext_to(32, p)));
        if p.deparse_at_ingress {
            ops.push(Op::Reparse);
        }
        ops.extend(self.priority_of_queues());
        ops.extend(p.reset_at_egress.iter().map(|slot| Op::Clear(*slot)));
        for role in [
            Intrinsic::Drop,
            Intrinsic::Clone,
            Intrinsic::CloneSession,
            Intrinsic::CloneList,
            Intrinsic::Recirculate,
            Intrinsic::RecirculateList,
        ] {
            self.set(role, 0, &mut ops);
        }
        let length = if p.deparse_at_ingress { Input::Length } else { Input::LengthNow };
        self.input(Intrinsic::PacketLength, length, &mut ops);
        self.set(Intrinsic::PacketPath, PacketPath::Normal as u64, &mut ops);
        self.input(Intrinsic::EgressPort, Input::Out, &mut ops);
        self.set(Intrinsic::EgressRid, 0, &mut ops);
        self.input(Intrinsic::EnqueueTimestamp, Input::Now, &mut ops);
        for role in [Intrinsic::EnqueueDepth, Intrinsic::QueueDelay, Intrinsic::DequeueDepth] {
            self.set(role, 0, &mut ops);
        }
        self.input(Intrinsic::EgressTimestamp, Input::Now, &mut ops);

        let unicast = self.block("unicast", ops, Term::Goto(next));
        let without_headers = p.deparse_at_ingress && !self.lists_headers();
        let spill = if without_headers { Spill::Metadata } else { Spill::Everything };
        let stop = self.leave(Verdict::Stopped, Some(0), spill);
        let drop = self.leave(Verdict::IngressDrop, Some(0), Spill::Nothing);
        let first = self.unless(Intrinsic::EgressPorts, stop, unicast);
        let first = self.unless(Intrinsic::Drop, drop, first);
        let first = self.unless(Intrinsic::MulticastGroup, stop, first);
        let first = self.unless(Intrinsic::Resubmit, stop, first);
        self.unless(Intrinsic::Clone, stop, first)
    }

    /// Egress sees the priority that the queues saw, which is its low [`PRIORITY_BITS`].
    fn priority_of_queues(&self) -> Option<Op> {
        let slot = self.program.intrinsics.get(Intrinsic::Priority)?;
        let width = self.program.slots[slot].ty.bits().filter(|width| *width > PRIORITY_BITS)?;
        let mask = Expr::bits(width, (1 << PRIORITY_BITS) - 1);
        Some(Op::Inst(Inst::Assign { dst: slot, value: Expr::binary(BinaryOp::And, Expr::Read(slot), mask) }))
    }

    fn transmit(&mut self, cloned: bool) -> FlatId {
        let forward = self.leave(Verdict::Forward, None, Spill::Nothing);
        let spill = if self.lists_headers() { Spill::Everything } else { Spill::Metadata };
        let stop = self.leave(Verdict::StoppedBehindEgress, None, spill);
        let drop = self.leave(Verdict::EgressDrop, None, Spill::Nothing);
        let first = self.unless(Intrinsic::Recirculate, stop, forward);
        let first = self.unless(Intrinsic::Truncate, stop, first);
        let first = self.unless(Intrinsic::Drop, drop, first);
        if cloned { first } else { self.unless(Intrinsic::Clone, stop, first) }
    }

    fn body(&mut self, id: BodyId, next: FlatId) -> FlatId {
        let p = self.program;
        let body = &p.bodies[id];
        let mut ops: Vec<Op> = body.locals(p).into_iter().map(Op::Clear).collect();
        let mut next = next;
        let mut reject = next;
        match body.kind {
            BodyKind::Parser => {
                self.set(Intrinsic::ParserError, 0, &mut ops);
                next = self.block("parsed", vec![Op::NoteParsed], Term::Goto(next));
                reject = match p.on_reject {
                    OnReject::Continue => next,
                    OnReject::PassOn => self.behind.unwrap_or(next),
                    OnReject::Drop => {
                        let drop = self.leave(Verdict::ParserError, None, Spill::Nothing);
                        self.block("rejected", vec![Op::SetError], Term::Goto(drop))
                    }
                };
            }
            BodyKind::Deparser => match emitted_as_one(body) {
                Some((start, emits)) => {
                    let end = self.block(
                        "deparsed",
                        vec![Op::Deparse {
                            headers: emits,
                            keep: self.keeps_headers,
                            in_place: self.in_place,
                        }],
                        Term::Goto(next),
                    );
                    let ends = Ends { end, exit: end, reject, level: StepLevel::Body };
                    let entry = self.blocks_of(id, ends, Some(start));
                    return self.block(&body.name, ops, Term::Goto(entry));
                }
                None => {
                    ops.push(Op::StartEmit);
                    let finish = Op::FinishEmit { keep: self.keeps_headers, in_place: self.in_place };
                    next = self.block("deparsed", vec![finish], Term::Goto(next));
                }
            },
            BodyKind::Control | BodyKind::Action => {}
        }
        let ends = Ends { end: next, exit: next, reject, level: StepLevel::Body };
        let entry = self.blocks_of(id, ends, None);
        if counts_steps(body) {
            ops.push(Op::StartSteps(StepLevel::Body));
        }
        self.block(&body.name, ops, Term::Goto(entry))
    }

    /// The blocks of a body; gives the entry. `emits_from` is the block whose emits are collected behind the body.
    fn blocks_of(&mut self, id: BodyId, ends: Ends, emits_from: Option<BlockId>) -> FlatId {
        let body = &self.program.bodies[id];
        let counts = counts_steps(body);
        let reachable = body.postorder();
        let mut entries: SecondaryMap<BlockId, Option<FlatId>> = SecondaryMap::new();
        let placeholder = ends.end;
        for block in &reachable {
            entries[*block] =
                Some(self.block(format!("{}.{block}", body.name), Vec::new(), Term::Goto(placeholder)));
        }
        let limit = counts.then(|| match body.kind {
            BodyKind::Parser => self.failure("ParserTimeout", ends.reject),
            _ => self.leave(Verdict::StepLimit, Some(0), Spill::Nothing),
        });
        for block in reachable {
            let Some(mut at) = entries[block] else { continue };
            if let Some(limit) = limit {
                let inner = self.block(format!("{}.{block}", body.name), Vec::new(), Term::Goto(placeholder));
                self.blocks[at].term = Term::Step { level: ends.level, next: inner, limit };
                at = inner;
            }
            for inst in &body.blocks[block].insts {
                at = self.inst(inst, at, ends, emits_from.is_some());
            }
            let go = |to: BlockId| entries[to].unwrap_or(placeholder);
            let term = match &body.blocks[block].term {
                Terminator::Goto(to) => Term::Goto(go(*to)),
                Terminator::Branch { cond, then, els } => {
                    Term::Branch { cond: cond.clone(), then: go(*then), els: go(*els) }
                }
                Terminator::Select { keys, cases, default } => Term::Select {
                    keys: keys.clone(),
                    cases: cases.iter().map(|case| (case.matchers.clone(), go(case.target))).collect(),
                    default: go(*default),
                },
                Terminator::Apply { table, hit, action, next, exit } => {
                    self.apply(*table, *hit, *action, go(*next), go(*exit))
                }
                Terminator::End => Term::Goto(ends.end),
                Terminator::Exit => Term::Goto(ends.exit),
                Terminator::Reject => Term::Goto(ends.reject),
            };
            self.blocks[at].term = term;
        }
        entries[body.entry].unwrap_or(placeholder)
    }

    /// Appends an instruction to a block; gives the block where the next one belongs.
    fn inst(&mut self, inst: &Inst, at: FlatId, ends: Ends, collect_emits: bool) -> FlatId {
        let origin = self.blocks[at].origin.clone();
        let term = |builder: &mut Self, make: &mut dyn FnMut(&mut Self, FlatId) -> Term<FlatId>| {
            let next = builder.block(origin.clone(), Vec::new(), Term::Goto(at));
            builder.blocks[at].term = make(builder, next);
            next
        };
        match inst {
            Inst::Extract(header) => term(self, &mut |b, next| Term::Extract {
                header: *header,
                next,
                short: b.failure("PacketTooShort", ends.reject),
            }),
            Inst::ExtractVar { header, bits } => term(self, &mut |b, next| Term::ExtractVar {
                header: *header,
                bits: bits.clone(),
                next,
                short: b.failure("PacketTooShort", ends.reject),
                long: b.failure("HeaderTooShort", ends.reject),
                invalid: b.failure("ParserInvalidArgument", ends.reject),
            }),
            Inst::Advance { bits } => term(self, &mut |b, next| Term::Advance {
                bits: bits.clone(),
                next,
                short: b.failure("PacketTooShort", ends.reject),
                invalid: b.failure("ParserInvalidArgument", ends.reject),
            }),
            Inst::Lookahead { dst, skip } => term(self, &mut |b, next| Term::Lookahead {
                dst: *dst,
                skip: *skip,
                next,
                short: b.failure("PacketTooShort", ends.reject),
            }),
            Inst::Assert { cond, text } => term(self, &mut |b, next| {
                let leave = b.leave(Verdict::Assert, Some(0), Spill::Nothing);
                let failed = b.block("assert", vec![Op::AssertFailed(text.clone())], Term::Goto(leave));
                Term::Branch { cond: cond.clone(), then: next, els: failed }
            }),
            Inst::Emit(_) if collect_emits => at,
            Inst::Emit(header) => {
                self.blocks[at].ops.push(Op::Emit(*header));
                at
            }
            other => {
                self.blocks[at].ops.push(Op::Inst(other.clone()));
                at
            }
        }
    }

    /// The parser rejects with an error of core.p4; one that the program does not name has the highest code.
    fn failure(&mut self, error: &str, reject: FlatId) -> FlatId {
        let place = self.program.errors.iter().position(|name| name == error);
        let code = place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX);
        let mut ops = Vec::new();
        self.set(Intrinsic::ParserError, u64::from(code), &mut ops);
        if self.program.on_reject == OnReject::Drop {
            // The code counts also where no slot keeps it.
            let drop = self.leave(Verdict::ParserError, Some(u32::from(code)), Spill::Nothing);
            return self.block(error, ops, Term::Goto(drop));
        }
        self.block(error, ops, Term::Goto(reject))
    }

    fn apply(
        &mut self,
        id: TableId,
        hit: Option<SlotId>,
        action: Option<SlotId>,
        next: FlatId,
        exit: FlatId,
    ) -> Term<FlatId> {
        let p = self.program;
        let table = &p.tables[id];
        let mut actions = Vec::new();
        for (index, listed) in table.actions.iter().enumerate() {
            let run = &p.actions[listed.action];
            let body = &p.bodies[run.body];
            let mut ops = Vec::new();
            if let Some(slot) = action {
                ops.push(assign_number(p, slot, index as u64));
            }
            ops.extend(body.locals(p).into_iter().filter(|slot| !run.params.contains(slot)).map(Op::Clear));
            let arguments = run.params.iter().enumerate();
            ops.extend(arguments.map(|(param, dst)| Op::Argument {
                dst: *dst,
                table: id,
                action: index,
                param,
            }));
            if counts_steps(body) {
                ops.push(Op::StartSteps(StepLevel::Action));
            }
            let ends = Ends { end: next, exit, reject: next, level: StepLevel::Action };
            let around = std::mem::replace(&mut self.site, Site::Action(listed.action));
            let entry = self.blocks_of(run.body, ends, None);
            actions.push(self.block(format!("{}.{}", table.name, run.name), ops, Term::Goto(entry)));
            self.site = around;
        }
        let mut ops = Vec::new();
        let meter = table.direct_meter.as_ref().and_then(|meter| meter.at_hit);
        if meter.is_some() || table.direct_counter.as_ref().is_some_and(|counter| counter.at_hit) {
            ops.push(Op::AtHit { table: id, meter });
        }
        ops.extend(hit.map(|dst| Op::Hit { dst }));
        let term = if actions.is_empty() { Term::Goto(next) } else { Term::Dispatch { table: id, actions } };
        let found = self.block(format!("{} found", table.name), ops, term);
        Term::Lookup { table: id, next: found }
    }
}

fn assign_number(program: &Program, dst: SlotId, value: u64) -> Op {
    let value = match program.slots[dst].ty {
        Type::Bool => Expr::Bool(value != 0),
        Type::Bits(width) | Type::Varbit(width) => Expr::bits(width, u128::from(value)),
    };
    Op::Inst(Inst::Assign { dst, value })
}

fn counts_steps(body: &Body) -> bool {
    body.blocks.len() > limits::MAX_STEPS as usize || body.has_loop()
}

/// The headers of a deparser that emits all of them on one straight way to its end, without changing headers on it: so
/// the packet can be put together at the end, at once. Gives the block where the way starts.
fn emitted_as_one(body: &Body) -> Option<(BlockId, Vec<HeaderId>)> {
    if counts_steps(body) {
        return None;
    }
    let emits = |id: BlockId| body.blocks[id].insts.iter().any(|inst| matches!(inst, Inst::Emit(_)));
    let order = body.postorder();
    // The first block that emits, in an order that goes with the edges.
    let start = order.iter().rev().copied().find(|id| emits(*id)).unwrap_or(body.entry);
    let mut way = Vec::new();
    let mut headers = Vec::new();
    let mut at = start;
    let mut emitting = false;
    loop {
        way.push(at);
        for inst in &body.blocks[at].insts {
            match inst {
                Inst::Emit(header) => {
                    emitting = true;
                    headers.push(*header);
                }
                _ if emitting => return None,
                _ => {}
            }
        }
        match &body.blocks[at].term {
            Terminator::Goto(next) => at = *next,
            Terminator::End => break,
            _ => return None,
        }
    }
    // Every run has to pass there, and nothing else may emit.
    let elsewhere = order.iter().any(|id| emits(*id) && !way.contains(id));
    (!elsewhere && dominates(body, start)).then_some((start, headers))
}

/// Whether every run of a body passes a block.
fn dominates(body: &Body, block: BlockId) -> bool {
    let mut seen = BTreeSet::from([body.entry]);
    let mut stack = vec![body.entry];
    while let Some(at) = stack.pop() {
        if at == block {
            continue;
        }
        if matches!(body.blocks[at].term, Terminator::End | Terminator::Exit | Terminator::Reject) {
            return false;
        }
        body.blocks[at].term.for_each_successor(&mut |next| {
            if seen.insert(next) {
                stack.push(next);
            }
        });
    }
    true
}
