//! The seam between the switch and what runs the program's code.
//!
//! The switch asks two things of an engine: to run the bodies of ingress or of egress over one packet, and, of compiled
//! code alone, to run both over a burst as far as the switch need not act between them. All else (which copy goes where,
//! queues, counters) is the switch's, so that every engine has the same meaning there.

use crate::beside::Hold;
use crate::context::Context;
use crate::flight::metadata;
use crate::jit::Jit;
use millrace_interp::Interp;
use millrace_pipeline::Program;
use millrace_state::State;
use std::sync::Arc;

/// What runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// The reference interpreter.
    #[default]
    Interp,
    /// Machine code.
    Jit,
    /// Machine code where the machine and the program let us have some, else the reference interpreter.
    Fastest,
}

/// The engines of one switch. Compiled code works where there is some; the interpreter does else, and when somebody
/// watches.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) interp: Interp,
    pub(crate) jit: Option<Box<Jit>>,
    use_interp: bool,
}

impl Engine {
    /// Engines for a verified program, or why there are none.
    pub(crate) fn new(
        kind: EngineKind,
        count_lookups: bool,
        program: &Arc<Program>,
        state: &mut State,
    ) -> Result<Engine, String> {
        let mut compile = || Jit::new(program, state, count_lookups).map(Box::new);
        let jit = match kind {
            EngineKind::Interp => None,
            EngineKind::Jit => Some(compile().map_err(|error| error.to_string())?),
            EngineKind::Fastest => compile().ok(),
        };
        Ok(Engine { interp: Interp::new(Arc::clone(program)), jit, use_interp: false })
    }

    pub(crate) fn kind(&self) -> EngineKind {
        match &self.jit {
            Some(_) => EngineKind::Jit,
            None => EngineKind::Interp,
        }
    }

    /// Has compiled code be what the tables want now. Gives what holds back the code that is made beside it.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(crate) fn fit(&mut self, state: &mut State) -> Result<Option<Hold>, String> {
        let fitted = self.jit.as_mut().map(|jit| jit.fit(state));
        fitted.transpose().map_err(|error| error.to_string())
    }

    /// Has the code be the best there is for the tables as they are.
    pub(crate) fn make_best(&mut self, state: &mut State) -> Result<(), String> {
        let made = self.jit.as_mut().map_or(Ok(()), |jit| jit.make_best(state));
        made.map_err(|error| error.to_string())
    }

    /// Has the interpreter work on packets that come in from now on, or only where there is no other engine.
    pub(crate) fn use_interp(&mut self, always: bool) {
        self.use_interp = always;
    }

    /// A packet that no body has seen.
    pub(crate) fn context(&mut self, bytes: &[u8]) -> Context {
        match &mut self.jit {
            Some(jit) if !self.use_interp => Context::Jit(jit.context(bytes)),
            _ => {
                let context = millrace_interp::Context::new(self.interp.program(), bytes.to_vec());
                Context::Interp(Box::new(context))
            }
        }
    }

    /// Another packet like one.
    pub(crate) fn copy(&mut self, of: &Context) -> Context {
        match (of, &mut self.jit) {
            (Context::Jit(own), Some(jit)) => Context::Jit(jit.copy(own)),
            _ => of.clone(),
        }
    }

    /// Takes the memory of a packet that is done.
    pub(crate) fn take_back(&mut self, context: Context) {
        if let (Context::Jit(own), Some(jit)) = (context, &mut self.jit) {
            jit.spare.put(own);
        }
    }

    /// All metadata of a packet starts anew, as [`metadata`] has it.
    pub(crate) fn reset_metadata(&self, program: &Program, context: &mut Context) {
        match (context, &self.jit) {
            (Context::Jit(own), Some(jit)) => own.storage.clear_places(0, &jit.metadata),
            (context, _) => metadata(program).for_each(|slot| context.clear(program, slot)),
        }
    }

    /// What starts anew in front of egress does.
    pub(crate) fn reset_at_egress(&self, program: &Program, context: &mut Context) {
        match (context, &self.jit) {
            (Context::Jit(own), Some(jit)) => own.storage.clear_places(0, &jit.at_egress),
            (context, _) => program.reset_at_egress.iter().for_each(|slot| context.clear(program, *slot)),
        }
    }
}

impl EngineKind {
    /// `interp`, `jit` or `fastest`.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Interp => "interp",
            EngineKind::Jit => "jit",
            EngineKind::Fastest => "fastest",
        }
    }
}
