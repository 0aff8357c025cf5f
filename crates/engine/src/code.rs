//! Machine code of a program: for bursts at once, and for single packets that the switch has stopped.

use crate::background::{Client, Coming, Hold};
use crate::bursts::{BurstCode, Bursts};
use crate::common::{Common, MachineCode, Part};
use crate::context::{JitContext, Kept, Spare};
use crate::{Compiler, Context, Ended, Engine, EngineError, Settings, Stage};
use millrace_frames::{Burst, HEADROOM, Place};
use millrace_interp::{Observer, World};
use millrace_jit::{
    Batch, Compiled, Contexts, Effort, JitError, Options, Outcomes, SlotPlaces, Statistics, Storage, Times,
};
use millrace_midend::order::may_set;
use millrace_midend::{Cancel, Plan, Verdict};
use millrace_pipeline::*;
use millrace_state::State;
use std::sync::Arc;

/// A program's code. What bursts take is made at once, a stage for single packets when the first one needs it.
pub(crate) struct Code {
    /// None where the order of packets forbids it.
    pub(crate) bursts: Option<BurstCode>,
    outcomes: Outcomes,
    common: Arc<Common>,
    pub(crate) settings: Settings,
    /// The storage of a packet that no stage has seen.
    blank: Storage,
    spare: Spare,
    /// See [`Engines::reset_metadata`](crate::Engines::reset_metadata).
    pub(crate) metadata: SlotPlaces,
    /// See [`Engines::reset_at_egress`](crate::Engines::reset_at_egress).
    pub(crate) at_egress: SlotPlaces,
    /// Stages that are there.
    stages: Vec<Made>,
    /// Stages that the compiler makes.
    coming: Option<Coming<Vec<Made>>>,
    /// Makes code that packets do not wait for.
    client: Arc<Client>,
    /// The bytes that the last stage left elsewhere.
    left: Vec<u8>,
}

/// The code of a stage, for one packet at a time.
struct Made {
    stage: Stage,
    code: Arc<MachineCode>,
    contexts: Contexts,
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

impl Code {
    /// Compiles a verified program.
    pub(crate) fn new(
        program: &Arc<Program>,
        state: &mut State,
        settings: &Settings,
        compiler: &Compiler,
    ) -> Result<Code, JitError> {
        let Settings { count_lookups, by_class, cancel, .. } = settings;
        if cancel.is_cancelled() {
            return Err(JitError::Cancelled);
        }
        let common = Common::of(program);
        let (program, order) = (&*common.program, common.order);
        let client = Arc::new(compiler.client());
        let mut stages = Vec::new();
        let bursts = match order.is_free && order.egress_is_plain && (order.serves_classes || !by_class) {
            true => Some(BurstCode::new(&common, state, settings, Arc::clone(&client))?),
            false => None,
        };
        let blank = match &bursts {
            Some(bursts) => bursts.blank(),
            None => {
                let ingress = compile(&common, Stage::Ingress, *count_lookups, Effort::Speed, cancel)?;
                let blank = ingress.contexts.storage.one(0);
                stages.push(ingress);
                blank
            }
        };
        Ok(Code {
            bursts,
            outcomes: Outcomes::default(),
            metadata: blank.places(program, metadata(program)),
            at_egress: blank.places(program, program.reset_at_egress.iter().copied()),
            common,
            settings: settings.clone(),
            blank,
            spare: Spare::default(),
            stages,
            coming: None,
            client,
            left: Vec::new(),
        })
    }

    /// Has the code for bursts tell the class of each packet, or not. A program for which that would change what it does loses its code for
    /// bursts: its packets go one by one.
    pub(crate) fn serve_by_class(&mut self, by_class: bool, state: &mut State) -> Result<(), JitError> {
        if self.settings.by_class == by_class {
            return Ok(());
        }
        let settings = Settings { by_class, ..self.settings.clone() };
        let order = self.common.order;
        self.bursts = match order.is_free && order.egress_is_plain && (order.serves_classes || !by_class) {
            true => Some(BurstCode::new(&self.common, state, &settings, Arc::clone(&self.client))?),
            false => None,
        };
        self.settings = settings;
        Ok(())
    }

    /// The same code for one more worker. What single packets may need it makes itself.
    pub(crate) fn share(&self) -> Code {
        let client = Arc::new(self.client.another());
        Code {
            bursts: self.bursts.as_ref().map(|bursts| bursts.share(Arc::clone(&client))),
            outcomes: Outcomes::default(),
            common: Arc::clone(&self.common),
            settings: self.settings.clone(),
            blank: self.blank.clone(),
            spare: Spare::default(),
            metadata: self.metadata.clone(),
            at_egress: self.at_egress.clone(),
            stages: Vec::new(),
            coming: None,
            client,
            left: Vec::new(),
        }
    }

    /// Has the code for bursts be the best there is, however long that takes.
    pub(crate) fn use_best(&mut self, state: &mut State) -> Result<(), JitError> {
        self.bursts.as_mut().map_or(Ok(()), |bursts| bursts.use_best(state))
    }

    /// Has the code for bursts be the best there is for the tables as they are, and later what can be had soon; another thread
    /// makes what single packets may need, as in [`Code::fit`].
    pub(crate) fn make_best(&mut self, state: &mut State) -> Result<(), JitError> {
        self.foresee();
        self.bursts.as_mut().map_or(Ok(()), |bursts| bursts.make_best(state))
    }

    /// Has the code for bursts be as the tables want it now, before the first packet, and has another thread make what
    /// single packets may need, as soon as nothing holds it back.
    pub(crate) fn fit(&mut self, state: &mut State) -> Result<Hold, JitError> {
        if let Some(ahead) = &mut self.bursts {
            ahead.fit(state)?;
        }
        Ok(self.foresee())
    }

    /// Has another thread make the parts that packets of the program may need, so that none waits for them.
    fn foresee(&mut self) -> Hold {
        let may = |roles: &[Intrinsic]| roles.iter().any(|role| may_set(&self.common.program, *role));
        let starts_again = may(&[Intrinsic::Resubmit, Intrinsic::Recirculate]);
        let clones = may(&[Intrinsic::Clone]);
        let copies = clones || starts_again || may(&[Intrinsic::MulticastGroup, Intrinsic::EgressPorts]);
        let wanted = [
            (Stage::Ingress, starts_again || self.bursts.is_none()),
            (Stage::Parser, clones && !self.common.program.deparse_at_ingress),
            (Stage::Egress, copies || self.bursts.is_none()),
        ];
        let missing = |part: &Stage| self.stages.iter().all(|made| made.stage != *part);
        let wanted: Vec<Stage> =
            wanted.into_iter().filter(|(_, may)| *may).map(|(part, _)| part).filter(missing).collect();
        if wanted.is_empty() || self.coming.is_some() {
            return Hold::default();
        }
        let (common, count_lookups) = (Arc::clone(&self.common), self.settings.count_lookups);
        // What cannot be made is tried once more, and said, when a packet needs it; until it is there, code that is made
        // quickly does.
        let make = move |cancel: &Cancel| {
            let parts = wanted.into_iter().flat_map(|part| together(&common.program, part));
            parts
                .filter_map(|part| compile(&common, part, count_lookups, Effort::Speed, cancel).ok())
                .collect()
        };
        let (coming, hold) = self.client.start_later(make);
        self.coming = Some(coming);
        hold
    }

    /// Has the code for bursts be as the tables want it to be now.
    ///
    /// # Errors
    /// It would have to be other code, which cannot be compiled.
    #[inline]
    pub(crate) fn look(&mut self, state: &mut State) -> Result<(), JitError> {
        self.bursts.as_mut().map_or(Ok(()), |bursts| bursts.look(state))
    }

    /// The code for bursts; none where the order of packets forbids it.
    #[inline]
    pub(crate) fn bursts(&mut self) -> Option<Bursts<'_>> {
        Some(self.bursts.as_mut()?.view(&mut self.spare))
    }

    /// What compiling took so far for bursts, or without code for them for single packets.
    pub(crate) fn statistics(&self) -> Statistics {
        let stages = self.stages.iter().map(|made| made.code.compiled.statistics());
        let codes = self.bursts.iter().map(BurstCode::statistics).chain(stages);
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

    /// Runs a stage over a packet.
    fn run_one(
        &mut self,
        stage: Stage,
        context: &mut JitContext,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Ended {
        let Some(Made { code, contexts, .. }) = self.stages.iter_mut().find(|made| made.stage == stage)
        else {
            return Ended::of(Verdict::StepLimit);
        };
        let code = &code.compiled;
        let mut host = code.host(world.state, world.effects);
        let place = [Place { at: HEADROOM as u32, len: context.len as u32 }];
        let lies = context.buffer[HEADROOM..].as_ptr();
        let burst = Burst::new(&mut context.buffer, &place, HEADROOM);
        let batch = burst.and_then(|burst| Batch::new(burst, 0));
        // Every packet in a buffer of its own lies so.
        debug_assert!(batch.is_some(), "a buffer without room");
        contexts.exchange(&mut context.storage);
        let times = Times { each: &[world.now_ns], now_ns: world.now_ns };
        let results = batch.map(|batch| batch.run(code, &mut host, contexts, &mut self.outcomes, times));
        let mut ended = Ended::of(Verdict::StepLimit);
        let mut moved = false;
        if let Some(results) = results
            && let Some(outcome) = results.outcomes().first()
        {
            ended = Ended {
                verdict: outcome.verdict(),
                number: outcome.number(),
                drop_site: outcome.drop_site(),
            };
            let bytes = results.bytes(0);
            moved = bytes.as_ptr() != lies;
            if moved {
                self.left.clear();
                self.left.extend_from_slice(bytes);
            } else {
                context.len = bytes.len();
            }
        }
        drop(host);
        contexts.exchange(&mut context.storage);
        if moved {
            context.set_bytes(&self.left);
        }
        ended
    }

    /// Has a stage be there: in the quick way where the program is large and another thread makes it well.
    fn make(&mut self, stage: Stage) -> Result<(), JitError> {
        if let Some(made) = self.coming.as_ref().and_then(Coming::take) {
            self.coming = None;
            self.stages.retain(|quick| made.iter().all(|made| made.stage != quick.stage));
            self.stages.extend(made);
        }
        if self.has(stage) {
            return Ok(());
        }
        let effort = if self.coming.is_some() { Effort::Soon } else { Effort::Speed };
        for stage in together(&self.common.program, stage) {
            if !self.has(stage) {
                self.stages.push(compile(
                    &self.common,
                    stage,
                    self.settings.count_lookups,
                    effort,
                    &self.settings.cancel,
                )?);
            }
        }
        Ok(())
    }

    fn has(&self, stage: Stage) -> bool {
        self.stages.iter().any(|made| made.stage == stage)
    }
}

/// The stages that are made together: where one part of egress is missing, a packet could not go on.
fn together(program: &Program, stage: Stage) -> Vec<Stage> {
    let mut stages = vec![stage];
    if stage == Stage::Egress && !program.deparse_at_ingress {
        let in_egress = |body: &&BodyId| program.bodies[**body].kind == BodyKind::Deparser;
        let deparsers = program.egress.iter().filter(in_egress).count() as u32;
        stages.extend((0..deparsers).map(Stage::Tail));
    }
    stages
}

/// The code of a stage, made unless another switch has it.
fn compile(
    common: &Common,
    stage: Stage,
    count_lookups: bool,
    effort: Effort,
    cancel: &Cancel,
) -> Result<Made, JitError> {
    let options = Options { count_lookups, effort, cancel: cancel.clone(), ..Options::default() };
    let code = common.code(Part::One(stage), &options, |program| {
        let plan = match stage {
            Stage::Ingress => Plan::ingress(program),
            Stage::Parser => Plan::parser(program),
            Stage::Egress => Plan::egress(program),
            Stage::Tail(nth) => Plan::tail(program, nth),
        };
        Compiled::new(program, &plan, &options)
    })?;
    Ok(Made { stage, contexts: code.compiled.contexts(1), code })
}

/// The metadata that starts again where headers stay: all of it but what belongs to the headers (`nextIndex` of stacks),
/// what the switch wrote about the arrival, and the parser's error.
pub(crate) fn metadata(program: &Program) -> impl Iterator<Item = SlotId> {
    let staying = [Intrinsic::IngressPort, Intrinsic::IngressTimestamp, Intrinsic::ParserError];
    let stays = move |slot: SlotId| {
        staying.iter().any(|role| program.intrinsics.get(*role) == Some(slot))
            || program.stacks.values().any(|stack| stack.next == slot)
    };
    let of_metadata = program.slots.iter().filter(|(_, slot)| slot.home == Home::Metadata);
    of_metadata.map(|(id, _)| id).filter(move |slot| !stays(*slot))
}

impl Engine for Code {
    fn name(&self) -> &'static str {
        "jit"
    }

    fn context(&mut self, bytes: &[u8]) -> Context {
        Context(Kept::Jit(self.spare.take(&self.blank, 0, bytes)))
    }

    fn copy(&mut self, of: &Context) -> Context {
        match &of.0 {
            Kept::Jit(own) => Context(Kept::Jit(self.spare.take(&own.storage, 0, own.bytes()))),
            Kept::Interp(_) => of.clone(),
        }
    }

    fn take_back(&mut self, context: Context) {
        if let Kept::Jit(own) = context.0 {
            self.spare.put(own);
        }
    }

    fn run(
        &mut self,
        stage: Stage,
        packets: &mut [Context],
        world: &mut World<'_, dyn Observer + '_>,
        ended: &mut Vec<Ended>,
    ) -> Result<(), EngineError> {
        if packets.iter().any(|packet| matches!(packet.0, Kept::Interp(_))) {
            return Err(EngineError("a packet of the interpreter cannot go on in machine code".to_owned()));
        }
        self.make(stage).map_err(|error| EngineError(error.to_string()))?;
        for packet in packets {
            if let Kept::Jit(own) = &mut packet.0 {
                ended.push(self.run_one(stage, own, world));
            }
        }
        Ok(())
    }
}
