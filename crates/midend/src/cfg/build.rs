//! Making the cfg graph.

use super::{Cfg, CfgBlock, CfgId, Input, Leave, Op, Spill, Term};
use crate::budget::Refusal;
use crate::budget::{Cost, Limit, MAX_ESTIMATE, Meter};
use crate::copies::{Copies, MAX_COPIES};
use crate::footprint::HEADROOM;
use crate::plan::{Plan, Start, Step};
use crate::site::Site;
use crate::verdict::Verdict;
use millrace_pipeline::entity::{PrimaryMap, SecondaryMap};
use millrace_pipeline::*;
use std::collections::BTreeSet;

/// Makes the graph of a plan for a verified program, or says that it would be too large: actions are inlined at each
/// application, so a short program may have a large graph.
pub fn flatten(program: &Program, plan: &Plan, meter: &Meter<'_>) -> Result<Cfg, Refusal> {
    let is_deparser =
        |step: &&Step| matches!(step, Step::Body(body) if program.bodies[*body].kind == BodyKind::Deparser);
    let traffic_manager = plan.steps.iter().position(|step| *step == Step::TrafficManager { classes: false });
    let work = Work::of(program);
    let mut builder = Builder {
        program,
        work: &work,
        blocks: PrimaryMap::new(),
        keeps_headers: true,
        growth: growth(plan.steps.iter().filter(is_deparser).count()),
        copies: traffic_manager.and_then(|_| Copies::of(program, &work)),
        together: None,
        after: None,
        site: Site::Glue,
        of: None,
        cost: 0,
    };
    // From the last step to the first, so that each knows where the next one starts.
    let mut next = builder.leave(Verdict::Stopped, Some(0), Spill::Everything);
    for (at, step) in plan.steps.iter().enumerate().rev() {
        let after = plan.steps.get(at + 1);
        builder.keeps_headers = builder.lists_headers()
            || match after {
                Some(Step::Transmit { .. }) => false,
                Some(Step::TrafficManager { .. }) => !program.deparse_at_ingress,
                _ => true,
            };
        next = builder.step(*step, next);
        let passed = traffic_manager.and_then(|step| at.checked_sub(step + 1));
        if builder.copies.as_ref().is_some_and(|copies| Some(copies.apart) == passed) {
            builder.together = Some(next);
        }
        if builder.is_over() {
            return Err(Refusal::TooLarge(Limit::Estimate));
        }
        meter.spend(0)?;
        if matches!(step, Step::TrafficManager { .. } | Step::Transmit { .. } | Step::Stop) {
            builder.after = Some(next);
        }
    }
    let entry = match plan.start {
        Start::Arrival => builder.arrival(next),
        Start::Unparsed | Start::Context => next,
    };
    meter.spend(builder.blocks.len())?;
    let of_copies = builder.copies.map(|copies| copies.tables(program)).unwrap_or_default();
    let mut blocks = builder.blocks;
    let mut all = Cost::default();
    for block in blocks.values_mut() {
        block.cost = Cost::of_block(program, block);
        all = all.and(block.cost);
    }
    match all.code > MAX_ESTIMATE {
        true => Err(Refusal::TooLarge(Limit::Estimate)),
        false => Ok(Cfg { blocks, entry, of_copies, cost: all }),
    }
}

/// Deparsers of one plan that may take from the headroom.
const MAX_DEPARSERS_IN_PLACE: usize = 2;

/// What each of so many deparsers may take of the headroom: an equal share, as each starts where the one before has ended.
fn growth(deparsers: usize) -> u32 {
    match deparsers {
        1..=MAX_DEPARSERS_IN_PLACE => (HEADROOM / deparsers) as u32,
        _ => 0,
    }
}

/// So many bytes of names count as an instruction.
const BYTES_OF_COST: usize = 16;

/// Bits of a packet's priority that queues tell apart.
const PRIORITY_BITS: u32 = 8;

struct Builder<'a> {
    program: &'a Program,
    /// What the program's code weighs.
    work: &'a Work,
    blocks: PrimaryMap<CfgId, CfgBlock>,
    /// Whether headers matter after the body that is being added.
    keeps_headers: bool,
    /// What each deparser may take of the headroom, in bytes.
    growth: u32,
    /// How copies of packets pass egress, where the plan has it and the program allows that they do so together.
    copies: Option<Copies>,
    /// Where the part of egress begins that is run once for all copies.
    together: Option<CfgId>,
    /// Where ingress or egress is done, for packets that leave out the rest of it.
    after: Option<CfgId>,
    /// The part of the program that is being added.
    site: Site,
    /// The parser, control or deparser that is being added.
    of: Option<BodyId>,
    /// About what there is so far becomes, in instructions.
    cost: u64,
}

/// Where the ends of a body go.
#[derive(Clone, Copy)]
struct Ends {
    end: CfgId,
    exit: CfgId,
    reject: CfgId,
    /// Where a body goes whose steps are used up; none when its steps are not counted.
    limit: Option<CfgId>,
}

impl Builder<'_> {
    fn block(&mut self, origin: impl Into<String>, ops: Vec<Op>, term: Term<CfgId>) -> CfgId {
        let origin: String = origin.into();
        // A name may be long.
        self.cost += (2 + ops.len() + origin.len() / BYTES_OF_COST) as u64;
        let (site, body) = (self.site, self.of);
        self.blocks.push(CfgBlock { ops, term, origin, site, body, cost: Cost::default() })
    }

    /// Whether the graph is too large already. What is missing of it then is left out.
    fn is_over(&self) -> bool {
        self.cost > MAX_ESTIMATE
    }

    fn leave(&mut self, verdict: Verdict, out: Option<u32>, spill: Spill) -> CfgId {
        self.block(format!("{verdict:?}"), Vec::new(), Term::Leave(Leave { verdict, out, spill }))
    }

    /// The end of a packet that the program drops, with the number that `ops` remember and the place that asked for it.
    fn drop(&mut self, verdict: Verdict, mut ops: Vec<Op>) -> CfgId {
        ops.extend(self.program.intrinsics.get(Intrinsic::DropSite).map(Op::AddSite));
        let leave = Leave { verdict, out: None, spill: Spill::Nothing };
        self.block(format!("{verdict:?}"), ops, Term::Leave(leave))
    }

    fn step(&mut self, step: Step, next: CfgId) -> CfgId {
        match step {
            Step::Body(body) => {
                (self.site, self.of) = (Site::of(self.program.bodies[body].kind), Some(body));
                let entry = self.body(body, next);
                (self.site, self.of) = (Site::Glue, None);
                entry
            }
            Step::TrafficManager { classes } => self.traffic_manager(classes, next),
            Step::CloneBeforeDeparser(nth) => {
                let stop = self.leave(Verdict::CloneBeforeDeparser, Some(nth), Spill::Everything);
                self.unless(Intrinsic::Clone, stop, next)
            }
            Step::DropInEgress => {
                let drop = self.drop(Verdict::EgressDrop, Vec::new());
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
    fn unless(&mut self, role: Intrinsic, instead: CfgId, next: CfgId) -> CfgId {
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

    fn arrival(&mut self, next: CfgId) -> CfgId {
        let mut ops = Vec::new();
        self.input(Intrinsic::IngressPort, Input::Port, &mut ops);
        self.input(Intrinsic::IngressTimestamp, Input::Arrival, &mut ops);
        self.input(Intrinsic::PacketLength, Input::Length, &mut ops);
        if self.program.bodies.keys().any(|body| self.work.counts(body)) {
            ops.push(Op::ForgetSteps);
        }
        self.block("arrival", ops, Term::Goto(next))
    }

    fn traffic_manager(&mut self, classes: bool, next: CfgId) -> CfgId {
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
        for role in
            [Intrinsic::EnqueueDepth, Intrinsic::QueueDelay, Intrinsic::DequeueDepth, Intrinsic::QueueId]
        {
            self.set(role, 0, &mut ops);
        }
        self.input(Intrinsic::EgressTimestamp, Input::Now, &mut ops);

        if classes {
            // After the program was told the port, which is all that it may see of what is remembered.
            ops.extend(p.intrinsics.get(Intrinsic::Priority).map(Op::AddClass));
            ops.extend(p.intrinsics.get(Intrinsic::Queue).map(Op::AddQueue));
        }

        let copies = self.copies(&ops);
        let unicast = self.block("unicast", ops, Term::Goto(next));
        let without_headers = p.deparse_at_ingress && !self.lists_headers();
        let spill = if without_headers { Spill::Metadata } else { Spill::Everything };
        let stop = self.leave(Verdict::Stopped, Some(0), spill);
        let drop = self.drop(Verdict::IngressDrop, vec![Op::SetOut(Expr::bits(32, 0))]);
        let several = copies.map_or(stop, |(cond, copies)| {
            let copies = self.unless(Intrinsic::Truncate, stop, copies);
            self.block("copies", Vec::new(), Term::Branch { cond, then: copies, els: stop })
        });
        let first = self.unless(Intrinsic::EgressPorts, several, unicast);
        let first = self.unless(Intrinsic::Drop, drop, first);
        let first = self.unless(Intrinsic::MulticastGroup, stop, first);
        let first = self.unless(Intrinsic::Resubmit, stop, first);
        self.unless(Intrinsic::Clone, stop, first)
    }

    /// The path of a packet whose copies pass egress together: what the unicast path does for each port of the set, but for the path,
    /// then the rest of egress, with the set in the place of the port. Only for ports whose set fits there: the condition.
    fn copies(&mut self, unicast: &[Op]) -> Option<(Expr, CfgId)> {
        let p = self.program;
        let ports = p.intrinsics.get(Intrinsic::EgressPorts)?;
        let (Copies { apart, cleared }, together) = (self.copies.clone()?, self.together?);
        let fits = Expr::Read(ports).slice(63, MAX_COPIES, p).eq(Expr::bits(64 - MAX_COPIES, 0));
        let set = Op::SetOut(Expr::Read(ports).slice(MAX_COPIES - 1, 0, p));
        let mut told = unicast[1..].to_vec();
        self.set(Intrinsic::PacketPath, PacketPath::Replication as u64, &mut told);
        if apart == 0 {
            told.insert(0, set);
            return Some((fits, self.block("copies", told, Term::Goto(together))));
        }
        self.input(Intrinsic::EgressPort, Input::Copy, &mut told);
        told.extend(cleared.into_iter().map(Op::Clear));
        told.insert(0, Op::NextCopy);
        let each = self.block("copy", told, Term::Goto(together));
        let mut asked = Vec::new();
        self.set(Intrinsic::Drop, 0, &mut asked);
        let done = self.block("copies passed", asked, Term::Goto(together));
        let more = self.block("copy passed", Vec::new(), Term::MoreCopies { more: each, done });
        let site = p.intrinsics.get(Intrinsic::DropSite);
        let drop = self.block("copy dropped", vec![Op::DropCopy(site)], Term::Goto(more));
        let mut next = self.unless(Intrinsic::Drop, drop, more);
        for body in p.egress[..apart].iter().rev() {
            next = self.step(Step::Body(*body), next);
        }
        self.blocks[each].term = Term::Goto(next);
        Some((fits, self.block("copies", vec![set, Op::StartCopies], Term::Goto(each))))
    }

    /// Egress sees the priority that the queues saw, which is its low [`PRIORITY_BITS`].
    fn priority_of_queues(&self) -> Option<Op> {
        let slot = self.program.intrinsics.get(Intrinsic::Priority)?;
        let width = self.program.slots[slot].ty.bits().filter(|width| *width > PRIORITY_BITS)?;
        let mask = Expr::bits(width, (1 << PRIORITY_BITS) - 1);
        Some(Op::Inst(Inst::Assign { dst: slot, value: Expr::binary(BinaryOp::And, Expr::Read(slot), mask) }))
    }

    fn transmit(&mut self, cloned: bool) -> CfgId {
        let forward = self.leave(Verdict::Forward, None, Spill::Nothing);
        let forward = match &self.copies {
            Some(_) => {
                let each = self.leave(Verdict::ForwardEach, None, Spill::Nothing);
                self.unless(Intrinsic::EgressPorts, each, forward)
            }
            None => forward,
        };
        let spill = if self.lists_headers() { Spill::Everything } else { Spill::Metadata };
        let stop = self.leave(Verdict::StoppedAfterEgress, None, spill);
        let drop = self.drop(Verdict::EgressDrop, Vec::new());
        let first = self.unless(Intrinsic::Recirculate, stop, forward);
        let first = self.unless(Intrinsic::Truncate, stop, first);
        let first = self.unless(Intrinsic::Drop, drop, first);
        if cloned { first } else { self.unless(Intrinsic::Clone, stop, first) }
    }

    fn body(&mut self, id: BodyId, next: CfgId) -> CfgId {
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
                    OnReject::PassOn => self.after.unwrap_or(next),
                    OnReject::Drop => self.drop(Verdict::ParserError, vec![Op::SetError]),
                };
            }
            BodyKind::Deparser => match emitted_as_one(p, body).filter(|_| !self.work.counts(id)) {
                Some((start, emits)) => {
                    let end = self.block(
                        "deparsed",
                        vec![Op::Deparse { headers: emits, keep: self.keeps_headers, growth: self.growth }],
                        Term::Goto(next),
                    );
                    let ends = Ends { end, exit: end, reject, limit: None };
                    let entry = self.blocks_of(id, ends, Some(start));
                    return self.block(&body.name, ops, Term::Goto(entry));
                }
                None => {
                    ops.push(Op::StartEmit);
                    let finish = Op::FinishEmit { keep: self.keeps_headers, growth: self.growth };
                    next = self.block("deparsed", vec![finish], Term::Goto(next));
                }
            },
            BodyKind::Control | BodyKind::Action => {}
        }
        let mut limit = None;
        if self.work.counts(id) {
            ops.push(Op::StartSteps);
            // However the body ends, what it has taken is the packet's.
            let add = |builder: &mut Self, to| builder.block("steps", vec![Op::AddSteps], Term::Goto(to));
            (next, reject) = (add(self, next), add(self, reject));
            limit = Some(match body.kind {
                BodyKind::Parser => self.failure("ParserTimeout", reject, true),
                _ => {
                    let leave = self.leave(Verdict::StepLimit, Some(0), Spill::Nothing);
                    add(self, leave)
                }
            });
        }
        let ends = Ends { end: next, exit: next, reject, limit };
        let entry = self.blocks_of(id, ends, None);
        self.block(&body.name, ops, Term::Goto(entry))
    }

    /// The blocks of a body; gives the entry. `emits_from` is the block whose emits are collected after the body.
    fn blocks_of(&mut self, id: BodyId, ends: Ends, emits_from: Option<BlockId>) -> CfgId {
        let body = &self.program.bodies[id];
        let reachable = body.postorder();
        let mut entries: SecondaryMap<BlockId, Option<CfgId>> = SecondaryMap::new();
        let placeholder = ends.end;
        for block in &reachable {
            entries[*block] =
                Some(self.block(format!("{}.{block}", body.name), Vec::new(), Term::Goto(placeholder)));
        }
        for block in reachable {
            let Some(mut at) = entries[block].filter(|_| !self.is_over()) else { continue };
            if let Some(limit) = ends.limit {
                let inner = self.block(format!("{}.{block}", body.name), Vec::new(), Term::Goto(placeholder));
                self.blocks[at].term = Term::Step { steps: self.work.steps(id, block), next: inner, limit };
                at = inner;
            }
            for inst in &body.blocks[block].insts {
                at = self.inst(inst, at, ends, emits_from.is_some());
            }
            self.cost += Cost::of_terminator(self.program, &body.blocks[block].term).code;
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
                    self.apply(*table, (*hit, *action), (go(*next), go(*exit)), ends.limit)
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
    fn inst(&mut self, inst: &Inst, at: CfgId, ends: Ends, collect_emits: bool) -> CfgId {
        let origin = self.blocks[at].origin.clone();
        let term = |builder: &mut Self, make: &mut dyn FnMut(&mut Self, CfgId) -> Term<CfgId>| {
            let next = builder.block(origin.clone(), Vec::new(), Term::Goto(at));
            builder.blocks[at].term = make(builder, next);
            next
        };
        match inst {
            Inst::Extract(header) => term(self, &mut |b, next| Term::Extract {
                header: *header,
                next,
                short: b.failure("PacketTooShort", ends.reject, ends.limit.is_some()),
            }),
            Inst::ExtractVar { header, bits } => term(self, &mut |b, next| Term::ExtractVar {
                header: *header,
                bits: bits.clone(),
                next,
                short: b.failure("PacketTooShort", ends.reject, ends.limit.is_some()),
                long: b.failure("HeaderTooShort", ends.reject, ends.limit.is_some()),
                invalid: b.failure("ParserInvalidArgument", ends.reject, ends.limit.is_some()),
            }),
            Inst::Advance { bits } => term(self, &mut |b, next| Term::Advance {
                bits: bits.clone(),
                next,
                short: b.failure("PacketTooShort", ends.reject, ends.limit.is_some()),
                invalid: b.failure("ParserInvalidArgument", ends.reject, ends.limit.is_some()),
            }),
            Inst::Lookahead { dst, skip } => term(self, &mut |b, next| Term::Lookahead {
                dst: *dst,
                skip: *skip,
                next,
                short: b.failure("PacketTooShort", ends.reject, ends.limit.is_some()),
            }),
            Inst::Assert { cond, text } => term(self, &mut |b, next| {
                let leave = b.leave(Verdict::Assert, Some(0), Spill::Nothing);
                let mut ops = vec![Op::AssertFailed(text.clone())];
                ops.extend(ends.limit.map(|_| Op::AddSteps));
                let failed = b.block("assert", ops, Term::Goto(leave));
                Term::Branch { cond: cond.clone(), then: next, els: failed }
            }),
            Inst::Stop { cond } => term(self, &mut |b, next| {
                let leave = b.leave(Verdict::Plugin, Some(0), Spill::Nothing);
                let ops = ends.limit.map(|_| Op::AddSteps).into_iter().collect();
                let stopped = b.block("stop", ops, Term::Goto(leave));
                Term::Branch { cond: cond.clone(), then: stopped, els: next }
            }),
            Inst::Emit(_) if collect_emits => at,
            Inst::Emit(header) => {
                self.blocks[at].ops.push(Op::Emit(*header));
                at
            }
            other => {
                self.cost += Cost::of_inst(self.program, other).code;
                self.blocks[at].ops.push(Op::Inst(other.clone()));
                at
            }
        }
    }

    /// The parser rejects with an error of core.p4; one that the program does not name has the highest code.
    fn failure(&mut self, error: &str, reject: CfgId, counts: bool) -> CfgId {
        let place = self.program.errors.iter().position(|name| name == error);
        let code = place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX);
        let mut ops = Vec::new();
        self.set(Intrinsic::ParserError, u64::from(code), &mut ops);
        if self.program.on_reject == OnReject::Drop {
            if counts {
                ops.push(Op::AddSteps);
            }
            // The code counts also where no slot keeps it.
            ops.push(Op::SetOut(Expr::bits(32, code.into())));
            return self.drop(Verdict::ParserError, ops);
        }
        self.block(error, ops, Term::Goto(reject))
    }

    fn apply(
        &mut self,
        id: TableId,
        (hit, action): (Option<SlotId>, Option<SlotId>),
        (next, exit): (CfgId, CfgId),
        limit: Option<CfgId>,
    ) -> Term<CfgId> {
        let p = self.program;
        let table = &p.tables[id];
        let mut actions = Vec::new();
        for (index, listed) in table.actions.iter().enumerate() {
            if self.is_over() {
                break;
            }
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
            let ends = Ends { end: next, exit, reject: next, limit };
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

/// The headers of a deparser that emits all of them on one straight path, which every run passes, without changing them
/// until it ends: so the packet can be put together at the end, at once. What else it does after it has emitted, and by
/// which branches it ends, does not matter. Gives the block where the path starts.
fn emitted_as_one(program: &Program, body: &Body) -> Option<(BlockId, Vec<HeaderId>)> {
    if body.has_loop() {
        return None;
    }
    let emits = |id: BlockId| body.blocks[id].insts.iter().any(|inst| matches!(inst, Inst::Emit(_)));
    let order = body.postorder();
    // The first block that emits, in an order that goes with the edges.
    let start = order.iter().rev().copied().find(|id| emits(*id)).unwrap_or(body.entry);
    let mut way = BTreeSet::new();
    let mut headers = Vec::new();
    let mut at = start;
    loop {
        way.insert(at);
        for inst in &body.blocks[at].insts {
            match inst {
                Inst::Emit(header) => headers.push(*header),
                _ if changes_one_of(program, inst, &headers) => return None,
                _ => {}
            }
        }
        let Terminator::Goto(next) = &body.blocks[at].term else { break };
        at = *next;
    }
    // What comes after it; actions of tables may change anything.
    let after = reachable(body, at, |_| true);
    let keeps = |id: &BlockId| {
        let block = &body.blocks[*id];
        let applies = matches!(block.term, Terminator::Apply { .. });
        !applies && (*id == at || block.insts.iter().all(|inst| !changes_one_of(program, inst, &headers)))
    };
    if !headers.is_empty() && !after.iter().all(keeps) {
        return None;
    }
    // Every run has to pass there, and nothing else may emit.
    let elsewhere = order.iter().any(|id| emits(*id) && !way.contains(id));
    (!elsewhere && dominates(body, start)).then_some((start, headers))
}

/// Whether an instruction changes fields or the validity of one of these headers, or what comes after them.
fn changes_one_of(program: &Program, inst: &Inst, headers: &[HeaderId]) -> bool {
    let of_field = inst.dst().and_then(|slot| match program.slots[slot].home {
        Home::Header { header, .. } => Some(header),
        _ => None,
    });
    let mut changed = inst.header_changed().into_iter().chain(of_field);
    changed.any(|header| headers.contains(&header)) || !headers.is_empty() && inst.rewrites(program)
}

/// The blocks that a block leads to by those that are passed on from, with itself.
fn reachable(body: &Body, from: BlockId, passes: impl Fn(BlockId) -> bool) -> BTreeSet<BlockId> {
    let mut seen = BTreeSet::from([from]);
    let mut stack = vec![from];
    while let Some(at) = stack.pop() {
        if passes(at) {
            body.blocks[at].term.for_each_successor(&mut |next| {
                if seen.insert(next) {
                    stack.push(next);
                }
            });
        }
    }
    seen
}

/// Whether every run of a body passes a block.
fn dominates(body: &Body, block: BlockId) -> bool {
    let without = reachable(body, body.entry, |at| at != block);
    let ends = |id: &BlockId| {
        *id != block
            && matches!(body.blocks[*id].term, Terminator::End | Terminator::Exit | Terminator::Reject)
    };
    !without.iter().any(ends)
}
