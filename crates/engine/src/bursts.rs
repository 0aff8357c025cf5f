//! Compiled code for whole bursts: which code, when it is made again, and one run of it.

use crate::background::{Client, Coming};
use crate::common::{Common, Lent, MachineCode, Part, Scratch};
use crate::context::{Kept, Spare};
use crate::{Context, Settings, schedule};
use millrace_frames::Footprint;
use millrace_jit::sampling::Sampler;
use millrace_jit::{
    Batch, Compiled, Contexts, Effort, Host, JitError, Options, Results, Statistics, Storage, Times,
};
use millrace_midend::order::may_set;
use millrace_midend::{Cancel, Plan, Site};
use millrace_pipeline::*;
use millrace_state::{Effects, State};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Ingress, and egress after it for packets that need nothing of the traffic manager.
pub(crate) struct BurstCode {
    common: Arc<Common>,
    /// Switches and workers of one program may have the same.
    code: Arc<MachineCode>,
    /// What a burst needs, where the thread's could not be had.
    own: Option<Box<Scratch>>,
    /// Whether what came in has to be kept: for clones of it, and for packets that start again.
    keeps_arrivals: bool,
    options: Options,
    /// How hard code is tried to be made where there is no time to wait.
    effort: Effort,
    settings: Settings,
    /// The code that is made while the quickly made one is in use.
    better: Better,
    /// [`State::shapes`] that the code is for.
    shapes: u64,
    /// Bursts until it is looked again whether other options are better.
    looks_in: u32,
    /// Makes better code.
    client: Arc<Client>,
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
    /// The compiler makes it, for these options.
    Coming(Options, Coming<Result<Arc<MachineCode>, JitError>>),
}

/// How to make the code for bursts, as the tables want it now.
fn options(program: &Program, state: &mut State, effort: Effort, settings: &Settings) -> Options {
    let Settings { count_lookups, cancel, .. } = settings;
    let cancel = cancel.clone();
    Options { effort, count_lookups: *count_lookups, cancel, ..schedule::choose(program, state) }
}

/// The code for bursts, made unless another switch has it.
fn through(common: &Common, by_class: bool, options: &Options) -> Result<Arc<MachineCode>, JitError> {
    common.code(Part::Through(by_class), options, |program| {
        let plan = if by_class { Plan::through_by_class(program) } else { Plan::through(program, true) };
        Compiled::new(program, &plan, options)
    })
}

impl BurstCode {
    pub(crate) fn new(
        common: &Arc<Common>,
        state: &mut State,
        settings: &Settings,
        client: Arc<Client>,
    ) -> Result<BurstCode, JitError> {
        let shapes = state.shapes();
        let program = &*common.program;
        let options = options(program, state, Effort::Soon, settings);
        let code = through(common, settings.by_class, &options)?;
        let may_keep = [Intrinsic::Clone, Intrinsic::Resubmit];
        let mut bursts = BurstCode {
            common: Arc::clone(common),
            code,
            own: None,
            keeps_arrivals: may_keep.iter().any(|role| may_set(program, *role)),
            options,
            effort: Effort::Soon,
            settings: settings.clone(),
            better: Better::Settled,
            shapes,
            looks_in: 0,
            client,
        };
        bursts.look_later();
        Ok(bursts)
    }

    /// The same code for one more worker, whose better code `client` makes.
    pub(crate) fn share(&self, client: Arc<Client>) -> BurstCode {
        let mut bursts = BurstCode {
            common: Arc::clone(&self.common),
            code: Arc::clone(&self.code),
            own: None,
            options: self.options.clone(),
            settings: self.settings.clone(),
            better: Better::Settled,
            client,
            ..*self
        };
        bursts.look_later();
        bursts
    }

    /// The storage of a packet that no stage has seen.
    pub(crate) fn blank(&self) -> Storage {
        self.code.compiled.contexts(1).storage
    }

    /// Everything that one run needs.
    #[inline]
    pub(crate) fn view<'e>(&'e mut self, spare: &'e mut Spare) -> Bursts<'e> {
        let BurstCode { code, own, keeps_arrivals, settings, .. } = self;
        Bursts {
            code,
            scratch: code.lend(own),
            spare,
            keeps_arrivals: *keeps_arrivals,
            by_class: settings.by_class,
        }
    }

    /// Has the code be as the tables want it to be now.
    ///
    /// # Errors
    /// It would have to be other code, which cannot be compiled.
    #[inline]
    pub(crate) fn look(&mut self, state: &mut State) -> Result<(), JitError> {
        if self.shapes == state.shapes() && self.looks_in > 0 {
            self.looks_in -= 1;
            return Ok(());
        }
        self.renew(state)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.code.compiled.statistics()
    }

    pub(crate) fn sampler(&self, interval: Duration) -> io::Result<Sampler> {
        self.code.compiled.sampler(interval)
    }

    pub(crate) fn site(&self, offset: u32) -> Site {
        self.code.compiled.site(offset)
    }

    /// Makes the code that the tables want, in the quick way where the program is large, unless it is there. Says whether it
    /// was made.
    pub(crate) fn fit(&mut self, state: &mut State) -> Result<bool, JitError> {
        self.shapes = state.shapes();
        let options = options(&self.common.program, state, self.effort, &self.settings);
        if schedule::are_same(&self.options, &options) {
            return Ok(false);
        }
        self.take(through(&self.common, self.settings.by_class, &options)?, options);
        self.look_later();
        Ok(true)
    }

    /// Looks whether other code is better by now. What the tables need is made here and now, in the quick way where the
    /// program is large, what is only better meanwhile.
    #[cold]
    fn renew(&mut self, state: &mut State) -> Result<(), JitError> {
        if self.fit(state)? {
            return Ok(());
        }
        match std::mem::replace(&mut self.better, Better::Settled) {
            Better::Settled => self.looks_in = BURSTS_BETWEEN_LOOKS,
            Better::Wanted => {
                let options = Options { effort: Effort::Speed, ..self.options.clone() };
                let (common, by_class, wanted) =
                    (Arc::clone(&self.common), self.settings.by_class, options.clone());
                let make = move |cancel: &Cancel| {
                    through(&common, by_class, &Options { cancel: cancel.clone(), ..wanted })
                };
                // Without a thread the code stays as it is, which is right too.
                if let Some(made) = self.client.start(make) {
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
    pub(crate) fn use_best(&mut self, state: &mut State) -> Result<(), JitError> {
        self.effort = Effort::Speed;
        self.make_best(state)
    }

    /// Makes the best code here and now.
    pub(crate) fn make_best(&mut self, state: &mut State) -> Result<(), JitError> {
        self.shapes = state.shapes();
        let options = options(&self.common.program, state, Effort::Speed, &self.settings);
        let is_best = self.code.compiled.statistics().effort == Effort::Speed;
        if !(is_best && schedule::are_same(&self.options, &options)) {
            self.take(through(&self.common, self.settings.by_class, &options)?, options);
        }
        (self.better, self.looks_in) = (Better::Settled, BURSTS_BETWEEN_LOOKS);
        Ok(())
    }

    fn take(&mut self, code: Arc<MachineCode>, options: Options) {
        // What the burst before needed was laid out as that code has it.
        self.own = None;
        self.code = code;
        self.options = options;
    }

    /// Sets when to look again: soon where the code was made in the quick way.
    fn look_later(&mut self) {
        let is_quick = self.code.compiled.statistics().effort == Effort::Quick;
        (self.better, self.looks_in) = match is_quick {
            true => (Better::Wanted, BURSTS_UNTIL_BUSY),
            false => (Better::Settled, BURSTS_BETWEEN_LOOKS),
        };
    }

    /// What the code may change of a frame.
    pub(crate) fn footprint(&self) -> Footprint {
        self.code.compiled.footprint()
    }
}

/// Compiled code for bursts, ready for one run.
pub struct Bursts<'e> {
    code: &'e MachineCode,
    scratch: Lent<'e>,
    spare: &'e mut Spare,
    keeps_arrivals: bool,
    by_class: bool,
}

/// A burst that compiled code has run over: what became of each packet, and the storage of those that go on.
pub struct Ran<'r> {
    /// What became of each packet, by its number in the burst.
    pub results: Results<'r>,
    contexts: &'r Contexts,
    spare: &'r mut Spare,
    by_class: bool,
}

impl<'e> Bursts<'e> {
    /// Whether frames have to be kept as they came in: for clones of them, and for packets that start again.
    #[inline]
    pub fn keeps_arrivals(&self) -> bool {
        self.keeps_arrivals
    }

    /// What the code may change of a frame.
    #[inline]
    pub fn footprint(&self) -> Footprint {
        self.code.compiled.footprint()
    }

    /// What the code calls: the program's objects, and where its effects go.
    #[inline]
    pub fn host<'s>(&self, state: &'s mut State, effects: &'s mut Effects) -> Host<'s>
    where
        'e: 's,
    {
        self.code.compiled.host(state, effects)
    }

    /// Runs the code over a batch, which has a time for each packet. Fewer results than packets: a table has changed its form meanwhile, or frames have less
    /// headroom than the code takes, and nothing is done.
    #[inline]
    pub fn run<'r>(&'r mut self, batch: Batch<'r>, host: &'r mut Host<'_>, times: Times<'_>) -> Ran<'r> {
        let Bursts { code, scratch, spare, by_class, .. } = self;
        let Scratch { contexts, outcomes } = scratch.get(code);
        let results = batch.run(&code.compiled, host, contexts, outcomes, times);
        Ran { results, contexts, spare, by_class: *by_class }
    }
}

impl Ran<'_> {
    /// Whether outcomes tell the class of service.
    pub fn by_class(&self) -> bool {
        self.by_class
    }

    /// A packet of the burst on its own, as the code left it.
    pub fn context(&mut self, packet: usize) -> Context {
        let own = self.spare.take(&self.contexts.storage, packet, self.results.bytes(packet));
        Context(Kept::Jit(own))
    }
}
