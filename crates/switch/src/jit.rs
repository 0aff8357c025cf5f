//! Machine code of a program: for bursts at once, and for single packets that the switch has stopped.

use crate::burst::Arrivals;
use crate::context::JitContext;
use crate::order::{Order, may_set};
use crate::{DropReason, schedule, time};
use millrace_interp::Effects;
use millrace_jit::abi::HEADROOM;
use millrace_jit::{Compiled, Contexts, JitError, MAX_BATCH, Options, PacketList, Plan, Verdict};
use millrace_pipeline::*;
use millrace_ports::null::Written;
use millrace_state::State;

/// A program's code. What bursts take is made at once, what only single packets take when the first one needs it.
pub(crate) struct Jit {
    /// None where the order of packets forbids it.
    pub(crate) ahead: Option<Ahead>,
    pub(crate) list: PacketList,
    /// What came in, of the burst that is worked on, where that has to be kept.
    pub(crate) arrivals: Arrivals,
    program: Program,
    /// A context of a packet that no body has seen.
    blank: Contexts,
    /// Parts that were needed so far.
    parts: Vec<(Part, Compiled)>,
    /// The bytes that the last part left.
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
    /// [`State::shapes`] that the code is for.
    shapes: u64,
    /// Bursts until it is looked again whether other options are better.
    looks_in: u32,
}

/// Bursts between two looks at the sizes of tables.
const BURSTS_BETWEEN_LOOKS: u32 = 1 << 14;

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

impl std::fmt::Debug for Jit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jit").finish_non_exhaustive()
    }
}

impl Jit {
    /// Compiles a verified program.
    pub(crate) fn new(program: &Program, state: &mut State) -> Result<Jit, JitError> {
        // Slots and objects keep their numbers, so both engines work on the same state.
        let mut program = program.clone();
        passes::optimize(&mut program);
        let order = Order::of(&program);
        let mut parts = Vec::new();
        let ahead = match order.is_free && order.egress_is_plain {
            true => Some(Ahead::new(&program, state)?),
            false => None,
        };
        let blank = match &ahead {
            Some(ahead) => ahead.code.contexts(1),
            None => {
                let ingress = compile(&program, Part::Ingress)?;
                let blank = ingress.contexts(1);
                parts.push((Part::Ingress, ingress));
                blank
            }
        };
        let list = PacketList::default();
        Ok(Jit { ahead, list, arrivals: Arrivals::default(), program, blank, parts, left: Vec::new() })
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

    /// A packet that no body has seen.
    pub(crate) fn context(&self, bytes: &[u8]) -> JitContext {
        JitContext::new(self.blank.clone(), bytes)
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
        let Some((_, code)) = self.parts.iter().find(|(made, _)| *made == part) else {
            return Ok((Verdict::StepLimit, 0));
        };
        let mut host = code.host(state);
        let mut batch = self.list.over(&mut context.buffer, HEADROOM);
        // Every packet in a buffer of its own lies so.
        let pushed = batch.push(HEADROOM, context.len, 0);
        debug_assert!(pushed, "a buffer without room");
        let results = batch.run(code, &mut host, &mut context.contexts, now_ns);
        let verdict = results.verdicts().next().unwrap_or((Verdict::StepLimit, 0));
        self.left.clear();
        self.left.extend_from_slice(results.bytes(0));
        effects.append(host.take_effects());
        context.set_bytes(&self.left);
        Ok(verdict)
    }

    /// Compiles a part that is not there. All of egress comes together: where one part of it is missing, a packet could not
    /// go on.
    fn make(&mut self, part: Part) -> Result<(), JitError> {
        if self.parts.iter().any(|(made, _)| *made == part) {
            return Ok(());
        }
        let mut parts = vec![part];
        if part == Part::Egress && !self.program.deparse_at_ingress {
            let in_egress = |body: &&BodyId| self.program.bodies[**body].kind == BodyKind::Deparser;
            let deparsers = self.program.egress.iter().filter(in_egress).count() as u32;
            parts.extend((0..deparsers).map(Part::Tail));
        }
        for part in parts {
            let code = compile(&self.program, part)?;
            self.parts.push((part, code));
        }
        Ok(())
    }
}

fn compile(program: &Program, part: Part) -> Result<Compiled, JitError> {
    let plan = match part {
        Part::Ingress => Plan::ingress(program),
        Part::Parser => Plan::parser(program),
        Part::Egress => Plan::egress(program),
        Part::Tail(nth) => Plan::tail(program, nth),
    };
    Compiled::new(program, &plan, &Options::default())
}

impl Ahead {
    fn new(program: &Program, state: &mut State) -> Result<Ahead, JitError> {
        let shapes = state.shapes();
        let options = schedule::choose(program, state);
        let code = Compiled::new(program, &Plan::through(program, true), &options)?;
        let may_keep = [Intrinsic::Clone, Intrinsic::Resubmit];
        Ok(Ahead {
            contexts: code.contexts(MAX_BATCH),
            code,
            keeps_arrivals: may_keep.iter().any(|role| may_set(program, *role)),
            reads_time: time::shows(program),
            options,
            shapes,
            looks_in: 0,
        })
    }

    #[cold]
    fn renew(&mut self, program: &Program, state: &mut State) -> Result<(), JitError> {
        let shapes = state.shapes();
        let options = schedule::choose(program, state);
        if !schedule::are_same(&self.options, &options) {
            self.code = Compiled::new(program, &Plan::through(program, true), &options)?;
            self.contexts = self.code.contexts(MAX_BATCH);
            self.options = options;
        }
        (self.shapes, self.looks_in) = (shapes, BURSTS_BETWEEN_LOOKS);
        Ok(())
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
