//! The engines of one switch, and which of them a packet is in.

use crate::bursts::{BurstCode, Bursts};
use crate::code::{Code, metadata};
use crate::context::Kept;
use crate::simulated::Simulated;
use crate::{Compiler, Context, Ended, Engine, EngineError, Hold, Interpreted, Stage};
use millrace_frames::Footprint;
use millrace_interp::{Observer, World};
use millrace_jit::sampling::Sampler;
use millrace_jit::{HAS_CODE_GENERATOR, JitError, Statistics};
use millrace_midend::{Cancel, Site};
use millrace_pipeline::{Program, Type};
use millrace_rtl::{Capacities, Sim};
use millrace_state::State;
use std::io;
use std::sync::Arc;
use std::time::Duration;

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
    /// A simulation of the program's hardware.
    Rtl,
    /// The same hardware, as models that Verilator makes of its SystemVerilog.
    Verilated,
}

/// What the bodies of a program weigh, of those whose steps are not counted: the most steps of each together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weights {
    /// Of ingress.
    pub ingress: u32,
    /// Of egress.
    pub egress: u32,
    /// The steps of some bodies are counted.
    counts: bool,
    /// About the bytes of a packet's storage, in whichever engine it is.
    storage: usize,
}

/// Bytes of storage that are worked on in one step.
const STEP_BYTES: usize = 512;
/// Passes of programs with at most so many steps are short.
const SHORT: u32 = 1 << 11;

impl Weights {
    /// The bytes that a packet of so many counts for while it waits.
    #[inline]
    pub fn bytes_held(&self, len: usize) -> usize {
        len + self.storage
    }

    /// Whether one packet may keep a worker busy for long.
    pub fn are_heavy(self) -> bool {
        self.counts || self.ingress.saturating_add(self.egress) > SHORT
    }
}

/// How code is made.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether compiled code counts the lookups of tables. (The interpreter always does.)
    pub count_lookups: bool,
    /// Whether ports serve their packets by class.
    pub by_class: bool,
    /// Whether somebody still waits for the switch.
    pub cancel: Cancel,
    /// What units of tables hold where hardware is simulated.
    pub capacities: Arc<Capacities>,
}

/// The engines of one switch. Compiled code works where there is some; the interpreter does else, and when somebody
/// watches.
#[derive(Debug)]
pub struct Engines {
    interp: Interpreted,
    code: Option<Box<Code>>,
    /// An engine that the caller has brought.
    other: Option<Box<dyn Engine>>,
    use_interp: bool,
    /// Why the interpreter runs a program that was to have machine code.
    without_code: Option<String>,
    /// What stages said, used again for each packet.
    ended: Vec<Ended>,
}

impl Engines {
    /// Engines for a verified program.
    ///
    /// # Errors
    /// Why there are none.
    pub fn new(
        kind: EngineKind,
        settings: &Settings,
        compiler: &Compiler,
        program: &Arc<Program>,
        state: &mut State,
    ) -> Result<Engines, EngineError> {
        let simulated = |sim, state: &State| {
            let engine = Simulated::new(program, state, sim, &settings.capacities)?;
            Ok::<_, EngineError>(Box::new(engine) as Box<dyn Engine>)
        };
        let compile = |state: &mut State| Code::new(program, state, settings, compiler).map(Box::new);
        let mut engines = Engines::interpreted(program);
        match kind {
            EngineKind::Interp => {}
            EngineKind::Rtl => engines.other = Some(simulated(Sim::InProcess, state)?),
            EngineKind::Verilated => engines.other = Some(simulated(Sim::Verilator, state)?),
            EngineKind::Jit => engines.code = Some(compile(state).map_err(failed)?),
            EngineKind::Fastest => match compile(state) {
                Ok(code) => engines.code = Some(code),
                Err(error) => engines.without_code = Some(error.to_string()),
            },
        }
        Ok(engines)
    }

    /// The interpreter alone.
    fn interpreted(program: &Arc<Program>) -> Engines {
        Engines {
            interp: Interpreted::new(Arc::clone(program)),
            code: None,
            other: None,
            use_interp: false,
            without_code: None,
            ended: Vec::new(),
        }
    }

    /// Has compiled code for bursts tell the class of each packet, or not ([`Settings::by_class`]).
    ///
    /// # Errors
    /// The code cannot be made; what there is goes on.
    pub fn serve_by_class(&mut self, by_class: bool, state: &mut State) -> Result<(), EngineError> {
        let made = self.code.as_mut().map_or(Ok(()), |code| code.serve_by_class(by_class, state));
        made.map_err(failed)
    }

    /// An engine of the caller for a verified program. The interpreter works when somebody watches, and after an error of the
    /// engine; so the engine keeps its packets as [`Context::interpreted`] makes them.
    pub fn with(engine: Box<dyn Engine>, program: &Arc<Program>) -> Engines {
        Engines { other: Some(engine), ..Engines::interpreted(program) }
    }

    /// Engines for one more worker of the same program, with the same code for bursts. None: the caller has brought the engine,
    /// which has one worker.
    pub fn share(&self) -> Option<Engines> {
        if self.other.is_some() {
            return None;
        }
        Some(Engines {
            code: self.code.as_ref().map(|code| Box::new(code.share())),
            use_interp: self.use_interp,
            without_code: self.without_code.clone(),
            ..Engines::interpreted(self.interp.program())
        })
    }

    /// Why the interpreter runs a program that was to have machine code.
    pub fn without_code(&self) -> Option<&str> {
        self.without_code.as_deref()
    }

    /// What the program weighs.
    pub fn weights(&self) -> Weights {
        let (program, work) = (self.interp.program(), self.interp.work());
        let storage: usize = program.slots.values().map(|slot| slot_bytes(slot.ty)).sum();
        // Each pass has the storage made, copied or cleared.
        let made = u32::try_from(storage / STEP_BYTES).unwrap_or(u32::MAX);
        Weights {
            ingress: work.uncounted(&program.ingress).saturating_add(made),
            egress: work.uncounted(&program.egress).saturating_add(made),
            counts: program.ingress.iter().chain(&program.egress).any(|body| work.counts(*body)),
            storage,
        }
    }

    /// The name of what runs the program.
    pub fn name(&self) -> &'static str {
        match (&self.other, &self.code) {
            (Some(other), _) => other.name(),
            (None, Some(code)) => code.name(),
            (None, None) => self.interp.name(),
        }
    }

    /// Has compiled code be what the tables want now. Gives what holds back the code that has time.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn fit(&mut self, state: &mut State) -> Result<Option<Hold>, EngineError> {
        self.code.as_mut().map(|code| code.fit(state)).transpose().map_err(failed)
    }

    /// Has the code be the best there is for the tables as they are.
    ///
    /// # Errors
    /// Why it cannot be made; what there is goes on.
    pub fn make_best(&mut self, state: &mut State) -> Result<(), EngineError> {
        self.code.as_mut().map_or(Ok(()), |code| code.make_best(state)).map_err(failed)
    }

    /// Has the code for bursts be the best there is from now on, however long that takes.
    ///
    /// # Errors
    /// Why it cannot be made; what there is goes on.
    pub fn use_best(&mut self, state: &mut State) -> Result<(), EngineError> {
        self.code.as_mut().map_or(Ok(()), |code| code.use_best(state)).map_err(failed)
    }

    /// Has the interpreter work on packets that come in from now on, or only where there is no other engine.
    pub fn use_interp(&mut self, always: bool) {
        self.use_interp = always;
    }

    /// A packet that no stage has seen.
    pub fn context(&mut self, bytes: &[u8]) -> Context {
        match (&mut self.other, &mut self.code) {
            _ if self.use_interp => self.interp.context(bytes),
            (Some(other), _) => other.context(bytes),
            (None, Some(code)) => code.context(bytes),
            (None, None) => self.interp.context(bytes),
        }
    }

    /// Another packet like one.
    pub fn copy(&mut self, of: &Context) -> Context {
        match (&of.0, &mut self.code) {
            (Kept::Jit(_), Some(code)) => code.copy(of),
            _ => of.clone(),
        }
    }

    /// Takes the memory of a packet that is done.
    pub fn take_back(&mut self, context: Context) {
        if let (Kept::Jit(_), Some(code)) = (&context.0, &mut self.code) {
            code.take_back(context);
        }
    }

    /// All metadata of a packet starts again: all but what belongs to the headers, what the switch wrote about the arrival, and
    /// the parser's error.
    pub fn reset_metadata(&self, program: &Program, context: &mut Context) {
        match (&mut context.0, &self.code) {
            (Kept::Jit(own), Some(code)) => own.storage.clear_places(0, &code.metadata),
            _ => metadata(program).for_each(|slot| context.clear(program, slot)),
        }
    }

    /// The slots start again that do so before egress.
    pub fn reset_at_egress(&self, program: &Program, context: &mut Context) {
        match (&mut context.0, &self.code) {
            (Kept::Jit(own), Some(code)) => own.storage.clear_places(0, &code.at_egress),
            _ => program.reset_at_egress.iter().for_each(|slot| context.clear(program, *slot)),
        }
    }

    /// Runs a stage over a packet, in the engine that it is in. Where that cannot run it, the interpreter goes on with the
    /// packet, and with those that come in later, and the program's log says so.
    pub fn run(
        &mut self,
        stage: Stage,
        packet: &mut Context,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Ended {
        self.ended.clear();
        let packets = std::slice::from_mut(packet);
        let ran = match (&packets[0].0, &mut self.code, &mut self.other) {
            (Kept::Jit(_), Some(code), _) => code.run(stage, packets, world, &mut self.ended),
            (Kept::Interp(_), _, Some(other)) if !self.use_interp => {
                other.run(stage, packets, world, &mut self.ended)
            }
            _ => self.interp.run(stage, packets, world, &mut self.ended),
        };
        match ran.map(|()| self.ended.first().copied()) {
            Ok(ended) => ended.unwrap_or(Ended::STOPPED),
            Err(error) => {
                world.effects.say(format!("{error}; the interpreter goes on"));
                (self.code, self.other) = (None, None);
                self.interp.run_one(stage, packet.make_interpreted(self.interp.program()), world)
            }
        }
    }

    /// Compiled code for bursts as the tables want it now, where there is some.
    ///
    /// # Errors
    /// It cannot be made; the interpreter runs the program from now on.
    #[inline]
    pub fn bursts(&mut self, state: &mut State) -> Result<Option<Bursts<'_>>, EngineError> {
        if let Some(code) = &mut self.code
            && let Err(error) = code.look(state)
        {
            self.code = None;
            return Err(failed(error));
        }
        Ok(self.code.as_mut().and_then(|code| code.bursts()))
    }

    /// What the code for bursts may change of a frame.
    pub fn footprint(&self) -> Footprint {
        self.burst_code().map_or_else(Footprint::default, BurstCode::footprint)
    }

    /// What compiling took so far, and gave; nothing where there is no compiled code.
    pub fn statistics(&self) -> Statistics {
        self.code.as_ref().map(|code| code.statistics()).unwrap_or_default()
    }

    /// Whether the lookups of tables are counted.
    pub fn counts_lookups(&self) -> bool {
        self.code.as_ref().is_none_or(|code| code.settings.count_lookups)
    }

    /// Starts to sample what the calling thread does, that often.
    ///
    /// # Errors
    /// What the operating system says; [`io::ErrorKind::Unsupported`] where there is no compiled code for bursts, or
    /// sampling is not written for the machine.
    pub fn sample(&self, interval: Duration) -> io::Result<Sampler> {
        self.burst_code().ok_or(io::ErrorKind::Unsupported)?.sampler(interval)
    }

    /// The part of the program that an offset in the code for bursts belongs to.
    pub fn site(&self, offset: u32) -> Site {
        self.burst_code().map_or(Site::Glue, |bursts| bursts.site(offset))
    }

    fn burst_code(&self) -> Option<&BurstCode> {
        self.code.as_ref().and_then(|code| code.bursts.as_ref())
    }
}

fn failed(error: JitError) -> EngineError {
    EngineError(error.to_string())
}

/// About the bytes that a slot takes, between what the engines need for it.
fn slot_bytes(ty: Type) -> usize {
    let bits = match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    };
    24 + 8 * bits.div_ceil(64) as usize
}

impl EngineKind {
    /// Those that this processor has: machine code only where there is a code generator for it.
    pub const HERE: &[EngineKind] = match HAS_CODE_GENERATOR {
        true => &[EngineKind::Interp, EngineKind::Jit],
        false => &[EngineKind::Interp],
    };

    /// `interp`, `jit`, `fastest` or `rtl`.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Interp => "interp",
            EngineKind::Jit => "jit",
            EngineKind::Fastest => "fastest",
            EngineKind::Rtl | EngineKind::Verilated => "rtl",
        }
    }
}
