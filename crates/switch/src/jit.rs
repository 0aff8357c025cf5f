//! Machine code of a program: for bursts at once, and for single packets that the switch has stopped.

use crate::DropReason;
use crate::context::JitContext;
use crate::order::Order;
use millrace_interp::{DigestMessage, Effects};
use millrace_jit::abi::HEADROOM;
use millrace_jit::{Compiled, Contexts, JitError, MAX_BATCH, Options, PacketList, Plan, Verdict};
use millrace_pipeline::*;
use millrace_state::State;

/// A program's code.
pub(crate) struct Jit {
    /// Ingress, and egress behind it for packets that need nothing of the traffic manager; none where the order of
    /// packets forbids it.
    pub(crate) through: Option<Compiled>,
    /// Storage for bursts.
    pub(crate) contexts: Contexts,
    pub(crate) list: PacketList,
    /// Whether what came in has to be kept: for clones of it, and for packets that start again.
    pub(crate) keeps_arrivals: bool,
    ingress: Compiled,
    parser: Compiled,
    egress: Compiled,
    /// What is left of egress behind a clone in front of each of its deparsers.
    tails: Vec<Compiled>,
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

impl std::fmt::Debug for Jit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jit").finish_non_exhaustive()
    }
}

impl Jit {
    /// Compiles a verified program.
    pub(crate) fn new(program: &Program) -> Result<Jit, JitError> {
        // Slots and objects keep their numbers, so both engines work on the same state.
        let mut optimised = program.clone();
        passes::optimize(&mut optimised);
        let program = &optimised;
        let order = Order::of(program);
        let options = Options::default();
        let compile = |plan: Plan| Compiled::new(program, &plan, &options);
        let through = (order.is_free && order.egress_is_plain)
            .then(|| compile(Plan::through(program, true)))
            .transpose()?;
        let ingress = compile(Plan::ingress(program))?;
        let in_egress = |body: &&BodyId| program.bodies[**body].kind == BodyKind::Deparser;
        let deparsers = match program.deparse_at_ingress {
            true => 0,
            false => program.egress.iter().filter(in_egress).count() as u32,
        };
        let may_keep = [Intrinsic::Clone, Intrinsic::Resubmit];
        Ok(Jit {
            contexts: through.as_ref().unwrap_or(&ingress).contexts(MAX_BATCH),
            list: PacketList::default(),
            keeps_arrivals: may_keep.iter().any(|role| program.intrinsics.get(*role).is_some()),
            parser: compile(Plan::parser(program))?,
            egress: compile(Plan::egress(program))?,
            tails: (0..deparsers).map(|nth| compile(Plan::tail(program, nth))).collect::<Result<_, _>>()?,
            through,
            ingress,
        })
    }

    /// A packet that no body has seen.
    pub(crate) fn context(&self, bytes: &[u8]) -> JitContext {
        JitContext::new(self.ingress.contexts(1), bytes)
    }

    /// Runs a part over a packet; gives what became of it, and the number that goes with it.
    pub(crate) fn run(
        &mut self,
        part: Part,
        context: &mut JitContext,
        state: &mut State,
        effects: &mut Effects,
        now_ns: u64,
    ) -> (Verdict, u32) {
        let code = match part {
            Part::Ingress => &self.ingress,
            Part::Parser => &self.parser,
            Part::Egress => &self.egress,
            Part::Tail(nth) => match self.tails.get(nth as usize) {
                Some(tail) => tail,
                None => return (Verdict::StepLimit, 0),
            },
        };
        let mut host = code.host(state);
        let mut batch = self.list.over(&mut context.buffer, HEADROOM);
        // Every packet in a buffer of its own lies so.
        let pushed = batch.push(HEADROOM, context.len, 0);
        debug_assert!(pushed, "a buffer without room");
        let results = batch.run(code, &mut host, &mut context.contexts, now_ns);
        let verdict = results.verdicts().next().unwrap_or((Verdict::StepLimit, 0));
        let bytes = results.bytes(0).to_vec();
        take_effects(host.take_effects(), effects);
        drop(host);
        context.set_bytes(&bytes);
        verdict
    }
}

/// Adds what compiled code sent out.
pub(crate) fn take_effects(from: millrace_jit::Effects, to: &mut Effects) {
    to.digests.extend(
        from.digests
            .into_iter()
            .map(|message| DigestMessage { digest: message.digest, values: message.values }),
    );
    to.log.extend(from.log);
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
