//! Running a body: blocks, terminators, and the actions of tables.

use crate::context::Context;
use crate::observe::{Event, Observer};
use crate::parser::ParserFailure;
use crate::step::Failure;
use millrace_pipeline::entity::SecondaryMap;
use millrace_pipeline::semantics::{self, Leaf, Value};
use millrace_pipeline::*;
use millrace_state::{Effects, State};
use std::sync::Arc;

/// The interpreter of one program.
#[derive(Clone, Debug)]
pub struct Interp {
    program: Arc<Program>,
    /// The local slots that each body names.
    locals: SecondaryMap<BodyId, Vec<SlotId>>,
    work: Arc<Work>,
}

/// What surrounds the run of a body: the objects of the program, the time, and where effects and events go.
pub struct World<'a, O: Observer + ?Sized> {
    /// The objects of the program.
    pub state: &'a mut State,
    /// The time of the batch in nanoseconds.
    pub now_ns: u64,
    /// Collects what the program sends out.
    pub effects: &'a mut Effects,
    /// Is told what happens.
    pub observer: &'a mut O,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At its end (a parser accepted).
    Done,
    /// A parser rejected; the slot of [`Intrinsic::ParserError`] says why, and so does the code.
    Rejected {
        /// An index in [`Program::errors`], or `u16::MAX` for an error of the core library that the program does not
        /// name.
        code: u16,
    },
    /// The packet has to be dropped.
    Aborted(Abort),
}

/// Why a body was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// [`Inst::Assert`] did not hold.
    Assert,
    /// [`Inst::Stop`] ended it.
    Plugin,
    /// More than [`limits::MAX_STEPS`] steps.
    StepLimit,
}

/// What ended the blocks of a body.
enum Stop {
    End,
    Exit,
    Rejected { code: u16 },
    Aborted(Abort),
}

impl Interp {
    /// An interpreter for a verified program.
    pub fn new(program: Arc<Program>) -> Interp {
        let mut locals = SecondaryMap::new();
        for (id, body) in &program.bodies {
            locals[id] = body.locals(&program).into_iter().collect();
        }
        let work = Arc::new(Work::of(&program));
        Interp { program, locals, work }
    }

    /// What the program's code weighs.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs a body over a packet. Its locals start at 0; a parser starts with no error, a deparser ends with the packet
    /// put together again: what it emitted, then what the parser has not reached, with the cursor at its start.
    pub fn run<O: Observer + ?Sized>(
        &self,
        id: BodyId,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) -> Ending {
        let body = &self.program.bodies[id];
        world.observer.event(Event::Body(id), &context.phv);
        self.clear_locals(id, context);
        if body.kind == BodyKind::Parser {
            context.set(&self.program, Intrinsic::ParserError, 0);
        }
        let mut taken = 0;
        let stop = self.run_blocks(id, &mut taken, context, world);
        if self.work.counts(id) {
            context.steps += u64::from(taken);
        }
        match stop {
            Stop::End | Stop::Exit => {
                if body.kind == BodyKind::Deparser {
                    context.put_together();
                }
                Ending::Done
            }
            Stop::Rejected { code } => Ending::Rejected { code },
            Stop::Aborted(abort) => Ending::Aborted(abort),
        }
    }

    /// Runs the blocks of a body, or of an action inside one; adds to the steps that the body has taken.
    fn run_blocks<O: Observer + ?Sized>(
        &self,
        id: BodyId,
        taken: &mut u32,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) -> Stop {
        let body = &self.program.bodies[id];
        let mut at = body.entry;
        loop {
            // Neither is much more than the limit.
            *taken += self.work.steps(id, at);
            if *taken > limits::MAX_STEPS {
                break;
            }
            let block = &body.blocks[at];
            if let Some(state) = &block.state {
                world.observer.event(Event::State(state), &context.phv);
            }
            for inst in &block.insts {
                match self.step(inst, context, world) {
                    Ok(()) => {}
                    Err(Failure::Parser(failure)) => return self.fail(failure, context, world),
                    Err(Failure::Assert) => return Stop::Aborted(Abort::Assert),
                    Err(Failure::Stop) => return Stop::Aborted(Abort::Plugin),
                }
            }
            at = match &block.term {
                Terminator::Goto(next) => *next,
                Terminator::Branch { cond, then, els } => {
                    if self.eval(cond, context).as_bool() {
                        *then
                    } else {
                        *els
                    }
                }
                Terminator::Select { keys, cases, default } => {
                    let exprs = keys;
                    let keys: Vec<Value> = keys.iter().map(|key| self.eval(key, context)).collect();
                    let case = cases.iter().position(|case| matches(&case.matchers, &keys, world.state));
                    world.observer.event(Event::Select { keys: &keys, exprs, case }, &context.phv);
                    case.map_or(*default, |case| cases[case].target)
                }
                Terminator::Apply { table, hit, action, next, exit } => {
                    match self.apply(*table, (*hit, *action), taken, context, world) {
                        Stop::End => *next,
                        Stop::Exit => *exit,
                        stop => return stop,
                    }
                }
                Terminator::End => return Stop::End,
                Terminator::Exit => return Stop::Exit,
                Terminator::Reject => return self.reject(context, world),
            };
        }
        match body.kind {
            BodyKind::Parser => self.fail(ParserFailure::ParserTimeout, context, world),
            BodyKind::Control | BodyKind::Deparser | BodyKind::Action => Stop::Aborted(Abort::StepLimit),
        }
    }

    /// Looks up the table and runs the action that it gives.
    fn apply<O: Observer + ?Sized>(
        &self,
        id: TableId,
        (hit, action): (Option<SlotId>, Option<SlotId>),
        taken: &mut u32,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) -> Stop {
        let table = &self.program.tables[id];
        let keys: Vec<Bits> = table.keys.iter().map(|key| self.eval(&key.value, context).as_bits()).collect();
        let inputs: Vec<Bits> =
            table.selector_inputs.iter().map(|input| self.eval(input, context).as_bits()).collect();
        let lookup = world.state.lookup(id, &keys, &inputs, world.now_ns);
        let event = Event::Applied { table: id, keys: &keys, lookup: &lookup, state: world.state };
        world.observer.event(event, &context.phv);

        context.set_hit(id, lookup.entry);
        if lookup.is_hit() {
            self.count_and_meter_at_hit(id, context, world);
        }
        if let Some(slot) = hit {
            self.write(slot, Value::Bool(lookup.is_hit()), context, world);
        }
        if let Some(slot) = action {
            self.write(slot, Value::Bits(Bits::new(16, lookup.action as u128)), context, world);
        }
        match table.actions.get(lookup.action) {
            Some(listed) => self.run_action(listed.action, &lookup.args, taken, context, world),
            None => Stop::End,
        }
    }

    fn count_and_meter_at_hit<O: Observer + ?Sized>(
        &self,
        id: TableId,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) {
        let table = &self.program.tables[id];
        if table.direct_counter.as_ref().is_some_and(|counter| counter.at_hit) {
            self.count_direct(id, context, world);
        }
        if let Some(slot) = table.direct_meter.as_ref().and_then(|meter| meter.at_hit) {
            let told = (millrace_state::Color::Green, context.length() as u64);
            self.meter_direct(id, told, slot, context, world);
        }
    }

    fn run_action<O: Observer + ?Sized>(
        &self,
        id: ActionId,
        args: &[Bits],
        taken: &mut u32,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) -> Stop {
        let action = &self.program.actions[id];
        self.clear_locals(action.body, context);
        for (param, arg) in action.params.iter().zip(args) {
            let value = of_type(self.program.slots[*param].ty, Value::Bits(arg.clone()));
            context.phv.write(&self.program, *param, value);
        }
        let stop = self.run_blocks(action.body, taken, context, world);
        if matches!(stop, Stop::Exit) {
            world.observer.event(Event::Exited, &context.phv);
        }
        stop
    }

    /// A parser instruction failed: the error is set and the packet rejected.
    fn fail<O: Observer + ?Sized>(
        &self,
        failure: ParserFailure,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) -> Stop {
        let code = failure.code(&self.program);
        context.set(&self.program, Intrinsic::ParserError, u64::from(code));
        world.observer.event(Event::Rejected { code, name: failure.name() }, &context.phv);
        Stop::Rejected { code }
    }

    /// The program rejects the packet, with the error that it has set.
    fn reject<O: Observer + ?Sized>(&self, context: &Context, world: &mut World<'_, O>) -> Stop {
        let code = context.get(&self.program, Intrinsic::ParserError) as u16;
        let name = self.program.errors.get(usize::from(code)).map_or("", String::as_str);
        world.observer.event(Event::Rejected { code, name }, &context.phv);
        Stop::Rejected { code }
    }

    fn clear_locals(&self, id: BodyId, context: &mut Context) {
        self.locals[id].iter().for_each(|slot| context.phv.clear(&self.program, *slot));
    }

    /// The value of an expression.
    pub(crate) fn eval(&self, expr: &Expr, context: &Context) -> Value {
        semantics::evaluate(expr, &|leaf| match leaf {
            Leaf::Slot(slot) => context.phv.read(&self.program, slot),
            Leaf::Valid(header) => Value::Bool(context.phv.is_valid(header)),
            Leaf::PacketLength => Value::Bits(Bits::new(32, context.length() as u128)),
            Leaf::Cursor => Value::Bits(Bits::new(32, context.cursor as u128)),
        })
    }

    /// Writes a slot and tells so.
    pub(crate) fn write<O: Observer + ?Sized>(
        &self,
        slot: SlotId,
        value: Value,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) {
        let lost = match self.program.slots[slot].home {
            Home::Header { header, .. } => !context.phv.is_valid(header),
            Home::Metadata | Home::Local => false,
        };
        world.observer.event(Event::Assigned { slot, value: &value, lost }, &context.phv);
        context.phv.write(&self.program, slot, value);
    }
}

/// A value as one of that type, where an instruction gives bits: cut or zero-extended, or a truth value.
pub(crate) fn of_type(ty: Type, value: Value) -> Value {
    match ty {
        Type::Bool => Value::Bool(value.as_bool()),
        Type::Bits(width) => Value::Bits(value.as_bits().zero_extend(width)),
        Type::Varbit(_) => value,
    }
}

/// Whether all matchers of a case match; a value set takes as many keys as it has fields.
fn matches(matchers: &[Matcher], keys: &[Value], state: &State) -> bool {
    let mut keys = keys;
    matchers.iter().all(|matcher| {
        let taken = match matcher {
            Matcher::ValueSet(set) => state.program().value_sets[*set].fields.len(),
            _ => 1,
        };
        let Some((own, rest)) = keys.split_at_checked(taken) else { return false };
        keys = rest;
        let bits: Vec<Bits> = own.iter().map(Value::as_bits).collect();
        match (matcher, bits.as_slice()) {
            (Matcher::ValueSet(set), fields) => state.is_member(*set, fields),
            (Matcher::Any, _) => true,
            (Matcher::Value(value), [key]) => key == value,
            (Matcher::Mask(value, mask), [key]) => key.and(mask) == value.and(mask),
            (Matcher::Range(low, high), [key]) => {
                low.cmp_unsigned(key).is_le() && key.cmp_unsigned(high).is_le()
            }
            (Matcher::RangeSigned(low, high), [key]) => {
                low.cmp_signed(key).is_le() && key.cmp_signed(high).is_le()
            }
            (_, _) => false,
        }
    })
}
