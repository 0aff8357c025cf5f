//! Machine code of a program: for bursts at once, and for single packets that the switch has stopped.

use crate::beside::{Beside, Hold};
use crate::burst::Arrivals;
use crate::context::{JitContext, Spare};
use crate::flight::metadata;
use crate::order::{Order, may_set};
use crate::processors::Processors;
use crate::{DropReason, schedule, time};
use millrace_interp::Effects;
use millrace_jit::abi::HEADROOM;
use millrace_jit::{
    Batch, Compiled, Contexts, Effort, JitError, MAX_BATCH, Options, Outcomes, Plan, SlotPlaces, Statistics,
    Storage, Verdict,
};
use millrace_pipeline::*;
use millrace_ports::null::Written;
use millrace_state::State;
use std::sync::Arc;

/// A program's code. What bursts take is made at once, what only single packets take when the first one needs it.
pub(crate) struct Jit {
    /// None where the order of packets forbids it.
    pub(crate) ahead: Option<Ahead>,
    pub(crate) outcomes: Outcomes,
    /// What came in, of the burst that is worked on, where that has to be kept.
    pub(crate) arrivals: Arrivals,
    program: Arc<Program>,
    /// Whether the lookups of tables are counted.
    pub(crate) count_lookups: bool,
    /// The storage of a packet that no body has seen.
    blank: Storage,
    pub(crate) spare: Spare,
    /// What [`metadata`] names, and what starts anew in front of egress.
    pub(crate) metadata: SlotPlaces,
    pub(crate) at_egress: SlotPlaces,
    /// Parts that are there.
    parts: Vec<Made>,
    /// Parts that another thread makes.
    coming: Option<Beside<Vec<Made>>>,
    /// Where code is made that packets do not wait for.
    processors: Processors,
    /// The bytes that the last part left elsewhere.
    left: Vec<u8>,
}

/// Ingress, and egress behind it for packets that need nothing of the traffic manager: for bursts.
pub(crate) struct Ahead {
    pub(crate) code: Compiled,
    /// Storage for a burst.
    pub(crate) contexts: Contexts,
    /// Whether what came in has to be kept: for clones of it, and for packets that start again.
    pub(crate) keeps_arrivals: bool,
    /// Whether the time of a burst makes a difference.
    pub(crate) reads_time: bool,
    options: Options,
    /// How hard code is tried to be made where there is no time to wait.
    effort: Effort,
    count_lookups: bool,
    /// The code that is made while the quickly made one is in use.
    better: Better,
    /// [`State::shapes`] that the code is for.
    shapes: u64,
    /// Bursts until it is looked again whether other options are better.
    looks_in: u32,
    /// Where better code is made.
    processors: Processors,
}

/// Bursts between two looks at the sizes of tables.
const BURSTS_BETWEEN_LOOKS: u32 = 1 << 14;

/// Bursts after which it is worth to make better code for a large program, and between looks whether it is there.
const BURSTS_UNTIL_BUSY: u32 = 1 << 8;

/// The code that takes longer to make, of a large program.
enum Better {
    /// It is in use, or cannot be made.
    Settled,
    /// It will be made once the program has proved busy.
    Wanted,
    /// Another thread makes it, for these options.
    Coming(Options, Beside<Result<Compiled, JitError>>),
}

/// A part of a program's code for single packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Ingress,
    /// Ingress up to its parser.
    Parser,
    Egress,
    /// What is left of egress behind a clone in front of its deparser of that number.
    Tail(u32),
}

/// The code of a part, for one packet at a time.
struct Made {
    part: Part,
    code: Compiled,
    contexts: Contexts,
}

impl std::fmt::Debug for Jit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jit").finish_non_exhaustive()
    }
}

impl Jit {
    /// Compiles a verified program.
    pub(crate) fn new(program: &Program, state: &mut State, count_lookups: bool) -> Result<Jit, JitError> {
        // Slots and objects keep their numbers, so both engines work on the same state.
        let mut program = program.clone();
        passes::optimize(&mut program);
        let order = Order::of(&program);
        let mut parts = Vec::new();
        let ahead = match order.is_free && order.egress_is_plain {
            true => Some(Ahead::new(&program, state, count_lookups)?),
            false => None,
        };
        let blank = match &ahead {
            Some(ahead) => ahead.contexts.storage.one(0),
            None => {
                let ingress = compile(&program, Part::Ingress, count_lookups, Effort::Speed)?;
                let blank = ingress.contexts.storage.one(0);
                parts.push(ingress);
                blank
            }
        };
        Ok(Jit {
            ahead,
            outcomes: Outcomes::default(),
            arrivals: Arrivals::default(),
            metadata: blank.places(&program, metadata(&program)),
            at_egress: blank.places(&program, program.reset_at_egress.iter().copied()),
            program: Arc::new(program),
            count_lookups,
            blank,
            spare: Spare::default(),
            parts,
            coming: None,
            processors: Processors::of_this_thread(),
            left: Vec::new(),
        })
    }

    /// Has the code for bursts be the best there is, however long that takes.
    pub(crate) fn use_best(&mut self, state: &mut State) -> Result<(), JitError> {
        self.ahead.as_mut().map_or(Ok(()), |ahead| ahead.use_best(&self.program, state))
    }

    /// Has the code for bursts be the best there is for the tables as they are, and later what can be had soon; another thread
    /// makes what single packets may need, as in [`Jit::fit`].
    pub(crate) fn make_best(&mut self, state: &mut State) -> Result<(), JitError> {
        self.foresee();
        self.ahead.as_mut().map_or(Ok(()), |ahead| ahead.make_best(&self.program, state))
    }

    /// Has the code for bursts be as the tables want it now, in front of the first packet, and has another thread make what
    /// single packets may need, as soon as nothing holds it back.
    pub(crate) fn fit(&mut self, state: &mut State) -> Result<Hold, JitError> {
        if let Some(ahead) = &mut self.ahead {
            ahead.fit(&self.program, state)?;
        }
        Ok(self.foresee())
    }

    /// Has another thread make the parts that packets of the program may need, so that none waits for them.
    fn foresee(&mut self) -> Hold {
        let may = |roles: &[Intrinsic]| roles.iter().any(|role| may_set(&self.program, *role));
        let starts_again = may(&[Intrinsic::Resubmit, Intrinsic::Recirculate]);
        let clones = may(&[Intrinsic::Clone]);
        let copies = clones || starts_again || may(&[Intrinsic::MulticastGroup, Intrinsic::EgressPorts]);
        let wanted = [
            (Part::Ingress, starts_again || self.ahead.is_none()),
            (Part::Parser, clones && !self.program.deparse_at_ingress),
            (Part::Egress, copies || self.ahead.is_none()),
        ];
        let missing = |part: &Part| self.parts.iter().all(|made| made.part != *part);
        let wanted: Vec<Part> =
            wanted.into_iter().filter(|(_, may)| *may).map(|(part, _)| part).filter(missing).collect();
        if wanted.is_empty() || self.coming.is_some() {
            return Hold::nothing();
        }
        let (hold, held) = Hold::new();
        let (program, count_lookups) = (Arc::clone(&self.program), self.count_lookups);
        // What cannot be made is tried once more, and said, when a packet needs it; until it is there, code that is made
        // quickly does.
        let make = move || {
            let parts = wanted.into_iter().flat_map(|part| together(&program, part));
            parts.filter_map(|part| compile(&program, part, count_lookups, Effort::Speed).ok()).collect()
        };
        // Without a thread the first packet waits longer, which is right too.
        self.coming = Beside::start(&self.processors, Some(held), make);
        hold
    }

    /// The code for bursts, as the tables want it to be now.
    ///
    /// # Errors
    /// It would have to be other code, which cannot be compiled.
    #[inline]
    pub(crate) fn look(&mut self, state: &mut State) -> Result<(), JitError> {
        let Some(ahead) = &mut self.ahead else { return Ok(()) };
        if ahead.shapes == state.shapes() && ahead.looks_in > 0 {
            ahead.looks_in -= 1;
            return Ok(());
        }
        ahead.renew(&self.program, state)
    }

    /// What compiling took so far for bursts, or without code for them for single packets.
    pub(crate) fn statistics(&self) -> Statistics {
        let codes = self.ahead.iter().map(|ahead| &ahead.code);
        let codes = codes.chain(self.parts.iter().map(|made| &made.code)).map(Compiled::statistics);
        codes
            .reduce(|all, one| Statistics {
                specialise: all.specialise + one.specialise,
                codegen: all.codegen + one.codegen,
                nodes: all.nodes + one.nodes,
                bytes: all.bytes + one.bytes,
                effort: all.effort,
            })
            .unwrap_or_default()
    }

    /// A packet that no body has seen.
    pub(crate) fn context(&mut self, bytes: &[u8]) -> JitContext {
        self.spare.take(&self.blank, 0, bytes)
    }

    /// Another packet like one.
    pub(crate) fn copy(&mut self, of: &JitContext) -> JitContext {
        self.spare.take(&of.storage, 0, of.bytes())
    }

    /// Runs a part over a packet; gives what became of it, and the number that goes with it.
    ///
    /// # Errors
    /// The part is new and cannot be compiled; the packet is as it was.
    pub(crate) fn run(
        &mut self,
        part: Part,
        context: &mut JitContext,
        state: &mut State,
        effects: &mut Effects,
        now_ns: u64,
    ) -> Result<(Verdict, u32), JitError> {
        self.make(part)?;
        let Some(Made { code, contexts, .. }) = self.parts.iter_mut().find(|made| made.part == part) else {
            return Ok((Verdict::StepLimit, 0));
        };
        let mut host = code.host(state);
        let place = [[HEADROOM as u32, context.len as u32]];
        let lies = context.buffer[HEADROOM..].as_ptr();
        let batch = Batch::new(&mut context.buffer, &place, 0, HEADROOM);
        // Every packet in a buffer of its own lies so.
        debug_assert!(batch.is_some(), "a buffer without room");
        contexts.exchange(&mut context.storage);
        let results = batch.map(|batch| batch.run(code, &mut host, contexts, &mut self.outcomes, now_ns));
        let mut verdict = (Verdict::StepLimit, 0);
        let mut moved = false;
        if let Some(results) = results
            && let Some(outcome) = results.outcomes().first()
        {
            verdict = (outcome.verdict(), outcome.number());
            let bytes = results.bytes(0);
            moved = bytes.as_ptr() != lies;
            if moved {
                self.left.clear();
                self.left.extend_from_slice(bytes);
            } else {
                context.len = bytes.len();
            }
        }
        effects.append(host.take_effects());
        drop(host);
        contexts.exchange(&mut context.storage);
        if moved {
            context.set_bytes(&self.left);
        }
        Ok(verdict)
    }

    /// Has a part be there: in the quick way where the program is large and another thread makes it well.
    fn make(&mut self, part: Part) -> Result<(), JitError> {
        if let Some(made) = self.coming.as_ref().and_then(Beside::take) {
            self.coming = None;
            self.parts.retain(|quick| made.iter().all(|made| made.part != quick.part));
            self.parts.extend(made);
        }
        if self.has(part) {
            return Ok(());
        }
        let effort = if self.coming.is_some() { Effort::Soon } else { Effort::Speed };
        for part in together(&self.program, part) {
            if !self.has(part) {
                self.parts.push(compile(&self.program, part, self.count_lookups, effort)?);
            }
        }
        Ok(())
    }

    fn has(&self, part: Part) -> bool {
        self.parts.iter().any(|made| made.part == part)
    }
}

/// The parts that are made together: where one part of egress is missing, a packet could not go on.
fn together(program: &Program, part: Part) -> Vec<Part> {
    let mut parts = vec![part];
    if part == Part::Egress && !program.deparse_at_ingress {
        let in_egress = |body: &&BodyId| program.bodies[**body].kind == BodyKind::Deparser;
        let deparsers = program.egress.iter().filter(in_egress).count() as u32;
        parts.extend((0..deparsers).map(Part::Tail));
    }
    parts
}

fn compile(program: &Program, part: Part, count_lookups: bool, effort: Effort) -> Result<Made, JitError> {
    let plan = match part {
        Part::Ingress => Plan::ingress(program),
        Part::Parser => Plan::parser(program),
        Part::Egress => Plan::egress(program),
        Part::Tail(nth) => Plan::tail(program, nth),
    };
    let code = Compiled::new(program, &plan, &Options { count_lookups, effort, ..Options::default() })?;
    Ok(Made { part, contexts: code.contexts(1), code })
}

/// How to make the code for bursts, as the tables want it now.
fn options(program: &Program, state: &mut State, effort: Effort, count_lookups: bool) -> Options {
    Options { effort, count_lookups, ..schedule::choose(program, state) }
}

/// Makes the code for bursts.
fn through(program: &Program, options: &Options) -> Result<Compiled, JitError> {
    Compiled::new(program, &Plan::through(program, true), options)
}

impl Ahead {
    fn new(program: &Program, state: &mut State, count_lookups: bool) -> Result<Ahead, JitError> {
        let shapes = state.shapes();
        let options = options(program, state, Effort::Soon, count_lookups);
        let code = through(program, &options)?;
        let may_keep = [Intrinsic::Clone, Intrinsic::Resubmit];
        let mut ahead = Ahead {
            contexts: code.contexts(MAX_BATCH),
            code,
            keeps_arrivals: may_keep.iter().any(|role| may_set(program, *role)),
            reads_time: time::shows(program),
            options,
            effort: Effort::Soon,
            count_lookups,
            better: Better::Settled,
            shapes,
            looks_in: 0,
            processors: Processors::of_this_thread(),
        };
        ahead.look_later();
        Ok(ahead)
    }

    /// Makes the code that the tables want, in the quick way where the program is large, unless it is there. Says whether it
    /// was made.
    fn fit(&mut self, program: &Program, state: &mut State) -> Result<bool, JitError> {
        self.shapes = state.shapes();
        let options = options(program, state, self.effort, self.count_lookups);
        if schedule::are_same(&self.options, &options) {
            return Ok(false);
        }
        self.take(through(program, &options)?, options);
        self.look_later();
        Ok(true)
    }

    /// Looks whether other code is better by now. What the tables need is made here and now, in the quick way where the
    /// program is large, what is only better meanwhile.
    #[cold]
    fn renew(&mut self, program: &Arc<Program>, state: &mut State) -> Result<(), JitError> {
        if self.fit(program, state)? {
            return Ok(());
        }
        match std::mem::replace(&mut self.better, Better::Settled) {
            Better::Settled => self.looks_in = BURSTS_BETWEEN_LOOKS,
            Better::Wanted => {
                let options = Options { effort: Effort::Speed, ..self.options.clone() };
                let (program, wanted) = (Arc::clone(program), options.clone());
                let make = move || through(&program, &wanted);
                // Without a thread the code stays as it is, which is right too.
                if let Some(made) = Beside::start(&self.processors, None, make) {
                    self.better = Better::Coming(options, made);
                }
                self.looks_in = BURSTS_UNTIL_BUSY;
            }
            // The tables may have changed meanwhile, and code that cannot be made is not missed.
            Better::Coming(options, made) => match made.take() {
                None => {
                    self.better = Better::Coming(options, made);
                    self.looks_in = BURSTS_UNTIL_BUSY;
                }
                Some(Ok(code)) if schedule::are_same(&self.options, &options) => {
                    self.take(code, options);
                    self.looks_in = BURSTS_BETWEEN_LOOKS;
                }
                Some(Ok(_)) => self.look_later(),
                Some(Err(_)) => self.looks_in = BURSTS_BETWEEN_LOOKS,
            },
        }
        Ok(())
    }

    /// Makes the best code here and now, and from now on.
    fn use_best(&mut self, program: &Program, state: &mut State) -> Result<(), JitError> {
        self.effort = Effort::Speed;
        self.make_best(program, state)
    }

    /// Makes the best code here and now.
    fn make_best(&mut self, program: &Program, state: &mut State) -> Result<(), JitError> {
        self.shapes = state.shapes();
        let options = options(program, state, Effort::Speed, self.count_lookups);
        let is_best = self.code.statistics().effort == Effort::Speed;
        if !(is_best && schedule::are_same(&self.options, &options)) {
            self.take(through(program, &options)?, options);
        }
        (self.better, self.looks_in) = (Better::Settled, BURSTS_BETWEEN_LOOKS);
        Ok(())
    }

    fn take(&mut self, code: Compiled, options: Options) {
        self.contexts = code.contexts(MAX_BATCH);
        self.code = code;
        self.options = options;
    }

    /// Sets when to look again: soon where the code was made in the quick way.
    fn look_later(&mut self) {
        let is_quick = self.code.statistics().effort == Effort::Quick;
        (self.better, self.looks_in) = match is_quick {
            true => (Better::Wanted, BURSTS_UNTIL_BUSY),
            false => (Better::Settled, BURSTS_BETWEEN_LOOKS),
        };
    }

    /// What the code may change of a frame.
    pub(crate) fn written(&self) -> Written {
        let written = self.code.written();
        Written { front: written.front as usize, behind: written.behind as usize }
    }
}

/// The reason for a drop that a verdict is.
pub(crate) fn drop_reason(verdict: Verdict, number: u32) -> Option<DropReason> {
    match verdict {
        Verdict::IngressDrop => Some(DropReason::IngressDrop),
        Verdict::EgressDrop => Some(DropReason::EgressDrop),
        Verdict::ParserError => Some(DropReason::ParserError(u16::try_from(number).unwrap_or(u16::MAX))),
        Verdict::Assert => Some(DropReason::Assert),
        Verdict::StepLimit => Some(DropReason::StepLimit),
        Verdict::Forward | Verdict::Stopped | Verdict::CloneBeforeDeparser | Verdict::StoppedBehindEgress => {
            None
        }
    }
}
