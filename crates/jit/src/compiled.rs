//! A program as machine code, and running it.

use crate::abi::{AheadEnv, Env, ObjectsEnv, PacketsEnv, ResultsEnv, Shape, TimesEnv};
use crate::batch::Packets;
use crate::codegen::{self, Shared};
use crate::contexts::Contexts;
use crate::layout::Layout;
use crate::limits::{MAX_LIVE, MAX_SPEED};
use crate::memory::CodeMemory;
use crate::objects::{self, Numbers};
use crate::prefetch::{Unknown, turn_loads_into_requests};
use crate::runtime::{Host, Texts};
use crate::sampling::Sampler;
use crate::site::{Origins, Sites};
use crate::stage::stages;
use crate::stepping::{self, Steps};
use crate::tables;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::{LookupError, OwnedTargetIsa, lookup_by_name};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use millrace_frames::MAX_BATCH;
use millrace_midend::Site;
use millrace_midend::cfg::{Cfg, flatten};
use millrace_midend::facts::Facts;
use millrace_midend::machine::{MachineCode, Processor};
use millrace_midend::specialise::{Growth, Specialised, specialise};
use millrace_midend::{Cancel, Limit, Meter, Refusal};
use millrace_midend::{Footprint, footprint::footprint};
use millrace_midend::{Plan, Start};
use millrace_pipeline::entity::EntitySet;
use millrace_pipeline::*;
use millrace_state::{Effects, RecordLayout, State, record_layout};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether there is machine code for this processor.
pub const HAS_CODE_GENERATOR: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// How to compile.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tables that are looked up a batch at a time.
    pub staged: Vec<TableId>,
    /// Those of them of which memory is asked for when a packet starts to wait: what is far away comes meanwhile.
    pub far: Vec<TableId>,
    /// How each table is looked up, by its number; those beyond the end by calls.
    pub shapes: Vec<Shape>,
    /// Whether all slots go to the context where storage does, also those that no code reads any more.
    pub keep_all: bool,
    /// Whether lookups and misses of each table are counted, for a few instructions each.
    pub count_lookups: bool,
    /// How hard Cranelift tries.
    pub effort: Effort,
    /// Whether somebody still waits for the code.
    pub cancel: Cancel,
}

/// How hard Cranelift tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Fast code.
    #[default]
    Speed,
    /// A short time to compile: one clone of each block, with variables in memory.
    Quick,
    /// A few milliseconds: [`Effort::Speed`] for small programs, [`Effort::Quick`] for others, with no staged tables.
    Soon,
}

/// Up to so many blocks a graph is compiled within few milliseconds however it is done.
const FEW_BLOCKS: usize = 100;

/// Why a program was not compiled.
#[derive(Debug)]
pub enum JitError {
    /// The machine has no code generator, or the operating system gives no memory for code.
    Machine(String),
    /// This build has no code generator for that processor; the feature `all-targets` adds those of all machines that
    /// Millrace runs on.
    Target(String),
    /// The storage of a packet takes more than [`crate::MAX_CONTEXT`] bytes.
    ContextSize,
    /// Cranelift refused the code.
    Codegen(String),
    /// It would take too much time or memory.
    TooLarge(Limit),
    /// Nobody waits for it any more ([`Options::cancel`]).
    Cancelled,
}

impl fmt::Display for JitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JitError::Machine(why) => write!(f, "no machine code here: {why}"),
            JitError::Target(target) => write!(
                f,
                "this build has no code generator for {target}: build with `--features all-targets` for x86-64 and aarch64"
            ),
            JitError::ContextSize => {
                write!(f, "the storage of a packet takes more than {} bytes", crate::MAX_CONTEXT)
            }
            JitError::TooLarge(limit) => write!(f, "the program is too large for machine code: {limit}"),
            JitError::Cancelled => f.write_str("nobody waits for the code any more"),
            JitError::Codegen(why) => write!(f, "the code generator refuses the program: {why}"),
        }
    }
}

impl std::error::Error for JitError {}

impl From<Refusal> for JitError {
    fn from(refusal: Refusal) -> JitError {
        match refusal {
            Refusal::TooLarge(limit) => JitError::TooLarge(limit),
            Refusal::Cancelled => JitError::Cancelled,
        }
    }
}

/// Above so many nodes code is generated in the quick way, whatever was asked for: it would take seconds.
const MANY_NODES: usize = 2000;

/// What compiling took and gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Until the graph was specialised and turned into Cranelift's IR.
    pub specialise: Duration,
    /// From there on until there was machine code.
    pub codegen: Duration,
    /// How hard Cranelift tried: [`Effort::Speed`] or [`Effort::Quick`].
    pub effort: Effort,
    /// Nodes of the specialised graph.
    pub nodes: usize,
    /// Bytes of machine code.
    pub bytes: usize,
}

/// The texts of a compiled plan, for people.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The specialised graph.
    pub graph: String,
    /// Cranelift's IR, before it optimises.
    pub clif: String,
    /// Machine code.
    pub asm: String,
}

/// A program as machine code for one plan.
pub struct Compiled {
    layout: Arc<Layout>,
    shapes: Vec<Shape>,
    objects: Numbers,
    texts: Texts,
    stage_bytes: usize,
    footprint: Footprint,
    stays: bool,
    memory: CodeMemory,
    sites: Sites,
    statistics: Statistics,
}

type Entry = unsafe extern "C" fn(env: *const Env);

impl Compiled {
    /// Compiles a plan of a verified program for this machine.
    ///
    /// # Errors
    /// [`JitError`].
    pub fn new(program: &Program, plan: &Plan, options: &Options) -> Result<Compiled, JitError> {
        Ok(Compiled::make(program, plan, options, false)?.0)
    }

    /// As [`Compiled::new`], with what analyses of the code have to know. It is the same code.
    ///
    /// # Errors
    /// [`JitError`].
    pub fn described(
        program: &Program,
        plan: &Plan,
        options: &Options,
    ) -> Result<(Compiled, MachineCode), JitError> {
        let (compiled, described) = Compiled::make(program, plan, options, true)?;
        let described = described.ok_or_else(|| JitError::Codegen("the code is not described".into()))?;
        Ok((compiled, described))
    }

    fn make(
        program: &Program,
        plan: &Plan,
        options: &Options,
        describes: bool,
    ) -> Result<(Compiled, Option<MachineCode>), JitError> {
        let start = Instant::now();
        let meter = Meter::new(&options.cancel);
        let mut parts = Parts::new(program, plan, options, &meter)?;
        let mut isa = native(parts.effort, describes)?;
        let mut generated = parts.function(program, plan.start, &isa, &meter, false);
        if let Err(JitError::TooLarge(_)) = generated
            && parts.effort != Effort::Quick
        {
            // Without clones it may be small enough.
            parts.effort = Effort::Quick;
            isa = native(parts.effort, describes)?;
            let meter = Meter::new(&options.cancel);
            generated = parts.function(program, plan.start, &isa, &meter, false);
        }
        let Generated { function, origins, special, nodes, texts, footprint, stays, effort, .. } = generated?;
        let frame_by_address = frame_by_address(&function);
        meter.spend(0)?;
        let specialised = start.elapsed();
        let start = Instant::now();
        let isa = if effort == parts.effort { isa } else { native(effort, describes)? };
        let mut context = cranelift_codegen::Context::for_function(function);
        let code = context
            .compile(&*isa, &mut Default::default())
            .map_err(|error| JitError::Codegen(format!("{:?}", error.inner)))?;
        let mut bytes = code.code_buffer().to_vec();
        let traps = code.buffer.traps().iter().map(|trap| (trap.offset, trap.code));
        turn_loads_into_requests(&mut bytes, traps)
            .map_err(|Unknown(at)| JitError::Codegen(format!("no load of a byte at {at:#x}")))?;
        let memory = CodeMemory::new(&bytes).map_err(|error| JitError::Machine(error.to_string()))?;
        let ranges = code.buffer.get_srclocs_sorted().iter();
        let ranges = ranges.map(|of| (of.start..of.end, origins.of(of.loc)));
        let sites = Sites::new(ranges.clone().map(|(range, origin)| (range, origin.site)));
        let (layout, stage_bytes) = (Arc::clone(&parts.layout), parts.stage_bytes);
        let described = describes.then(|| MachineCode {
            processor: if cfg!(target_arch = "aarch64") { Processor::Aarch64 } else { Processor::X86_64 },
            bytes: bytes.clone(),
            block_starts: code.bb_starts.clone(),
            origins: ranges.collect(),
            cfg: parts.cfg,
            graph: special,
            frame_by_address,
            context_bytes: layout.size() * MAX_BATCH,
            stage_bytes,
        });
        let statistics = Statistics {
            specialise: specialised,
            codegen: start.elapsed(),
            effort,
            nodes,
            bytes: bytes.len(),
        };
        let (shapes, objects) = (parts.shapes, parts.objects);
        let compiled = Compiled {
            layout,
            shapes,
            objects,
            texts,
            stage_bytes,
            footprint,
            stays,
            memory,
            sites,
            statistics,
        };
        Ok((compiled, described))
    }

    /// What compiling took and gave.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The part of the program that the code at an offset is of.
    pub fn site(&self, offset: u32) -> Site {
        self.sites.at(offset)
    }

    /// Starts to sample what the calling thread does, that often, in this code or outside of it.
    ///
    /// # Errors
    /// What the operating system says; [`std::io::ErrorKind::Unsupported`] where sampling is not written for the machine.
    pub fn sampler(&self, interval: Duration) -> std::io::Result<Sampler> {
        let start = self.memory.start().addr();
        Sampler::start(start..start + self.statistics.bytes, interval)
    }

    /// Counts the instructions of the first run of this code that `run` does on the calling thread, one by one: see [`stepping`].
    ///
    /// # Errors
    /// [`std::io::ErrorKind::Unsupported`] where counting is not written for the machine, and what the operating system says.
    pub fn count_steps(&self, run: impl FnOnce()) -> std::io::Result<Steps> {
        let start = self.memory.start().addr();
        stepping::count(start..start + self.statistics.bytes, run)
    }

    /// Bytes before a packet that the code may write.
    pub fn headroom(&self) -> usize {
        self.footprint.before
    }

    /// Whether every packet stays where it is, with its length.
    pub fn keeps_place(&self) -> bool {
        self.stays
    }

    /// What the code may change of a packet.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Contexts for a batch of so many packets.
    pub fn contexts(&self, packets: usize) -> Contexts {
        Contexts::new(Arc::clone(&self.layout), packets, self.stage_bytes)
    }

    /// The host for runs over this state; what the program sends out goes to the effects.
    pub fn host<'a>(&'a self, state: &'a mut State, effects: &'a mut Effects) -> Host<'a> {
        Host::new((state, effects), &self.texts, &self.layout)
    }

    /// Whether the code looks each table up as it has to be now. Else it must be compiled again, with [`crate::shapes`]
    /// of the state; that can be only when [`State::shapes`] has changed since it was compiled.
    pub fn fits(&self, state: &mut State) -> bool {
        let now = tables::shapes(state).into_iter();
        let wanted = self.shapes.iter().copied();
        wanted.zip(now).all(|(wanted, now)| wanted == Shape::Call || wanted == now)
    }

    /// Runs the plan over a batch of at most [`MAX_BATCH`] packets, as many as there are contexts; or leaves it as it is when
    /// the code does not [fit](Compiled::fits): then the answer is false.
    ///
    /// # Safety
    /// Every packet lies in the memory with [`Compiled::headroom`] bytes before and [`millrace_frames::TAILROOM`] after it,
    /// and these bytes are used by nothing else meanwhile. Of the memory between them others may use what they like.
    pub(crate) unsafe fn run(
        &self,
        host: &mut Host<'_>,
        contexts: &mut Contexts,
        mut packets: Packets<'_>,
    ) -> bool {
        host.start(packets.times.each);
        if !contexts.tables.refresh(host.state, &self.shapes) {
            return false;
        }
        debug_assert!(packets.places.len() <= MAX_BATCH.min(contexts.len()));
        debug_assert_eq!(packets.places.len(), packets.times.each.len());
        contexts.objects.refresh(host.state, &self.objects);
        let objects =
            ObjectsEnv { each: contexts.objects.start(), has_sections: host.state.has_sections().into() };
        let tables = contexts.tables.start();
        let (contexts, stage) = contexts.memory();
        let lookups = host.state.lookup_counts_mut().as_mut_ptr();
        let env = Env {
            tables,
            objects,
            host: std::ptr::from_mut(host).cast(),
            contexts,
            stage,
            packets: PacketsEnv {
                memory: packets.memory.as_ptr(),
                places_end: packets.places.as_ptr_range().end,
                places_bytes: size_of_val(packets.places) as u64,
            },
            ahead: AheadEnv {
                memory: packets.ahead.memory,
                places_end: packets.ahead.places.as_ptr_range().end,
            },
            results: ResultsEnv {
                outcomes_end: packets.outcomes_end(),
                moved: packets.moved(),
                dropped_copies: packets.dropped_copies(),
            },
            lookups,
            port: u64::from(packets.port),
            times: TimesEnv { end: packets.times.each.as_ptr_range().end, now_ns: packets.times.now_ns },
        };
        // SAFETY: the caller promises the packets; `host`, `contexts` and outcomes are borrowed, and the tables are as the
        // code takes them, until the worker's next quiescent point.
        unsafe { self.enter(&env) };
        true
    }

    /// Runs the plan over packets in an environment of the caller's.
    ///
    /// # Safety
    /// `env` is as [`Env`] and its parts say, with a context, an outcome and, unless the code
    /// [keeps the places](Compiled::keeps_place) of packets, a [`crate::abi::Moved`] for each packet. There are at most
    /// [`MAX_BATCH`] packets, which are as [`millrace_frames::Place`] says, with bytes that nothing else uses meanwhile.
    pub unsafe fn enter(&self, env: &Env) {
        // SAFETY: the code has this signature; the caller promises the rest.
        unsafe {
            let entry = std::mem::transmute::<*const std::ffi::c_void, Entry>(self.memory.start());
            entry(env);
        }
    }
}

/// The texts of a plan, for a target such as `aarch64`; none: this machine. Code for another machine than this one needs
/// the feature `all-targets`; nobody else should wait until a second back end is compiled.
///
/// # Errors
/// [`JitError`].
pub fn listing(
    program: &Program,
    plan: &Plan,
    options: &Options,
    target: Option<&str>,
) -> Result<Listing, JitError> {
    let isa = match target {
        Some(target) => foreign(target, options.effort)?,
        None => native(options.effort, false)?,
    };
    let meter = Meter::new(&options.cancel);
    let parts = Parts::new(program, plan, options, &meter)?;
    let generated = parts.function(program, plan.start, &isa, &meter, true)?;
    let clif = generated.function.display().to_string();
    let mut context = cranelift_codegen::Context::for_function(generated.function);
    context.set_disasm(true);
    let code = context
        .compile(&*isa, &mut Default::default())
        .map_err(|error| JitError::Codegen(format!("{:?}", error.inner)))?;
    Ok(Listing { graph: generated.graph, clif, asm: code.vcode.clone().unwrap_or_default() })
}

/// What all plans of a program share.
struct Parts {
    layout: Arc<Layout>,
    records: Vec<RecordLayout>,
    spilled: Vec<SlotId>,
    stages: Vec<Option<crate::stage::Stage>>,
    stage_bytes: usize,
    objects: Numbers,
    shapes: Vec<Shape>,
    count_lookups: bool,
    cfg: Cfg,
    effort: Effort,
}

/// The code of one plan, before Cranelift.
/// The bytes of a frame that are used by address, as Cranelift places them: one after another, below what is spilled.
fn frame_by_address(function: &Function) -> u32 {
    let end = function.sized_stack_slots.values().fold(0u32, |end, slot| {
        let align = 1 << slot.align_shift.max(3);
        end.next_multiple_of(align).saturating_add(slot.size)
    });
    end.next_multiple_of(8)
}

struct Generated {
    function: Function,
    /// What its instructions were made for.
    origins: Origins,
    special: Specialised,
    /// The specialised graph as text, where people ask for it.
    graph: String,
    nodes: usize,
    /// How hard Cranelift is to try.
    effort: Effort,
    texts: Texts,
    footprint: Footprint,
    stays: bool,
}

impl Parts {
    fn new(program: &Program, plan: &Plan, options: &Options, meter: &Meter<'_>) -> Result<Parts, JitError> {
        let cfg = flatten(program, plan, meter)?;
        let (effort, stages_tables) = match options.effort {
            // A loop more for each of them is more code.
            Effort::Soon if cfg.blocks.len() > FEW_BLOCKS => (Effort::Quick, false),
            Effort::Soon => (Effort::Speed, true),
            asked => (asked, true),
        };
        // Many limbs at once in registers take long to place there.
        let effort = if cfg.cost.speed > MAX_SPEED { Effort::Quick } else { effort };
        let layout = Arc::new(Layout::new(program).ok_or(JitError::ContextSize)?);
        let records = program.tables.values().map(|table| record_layout(program, table)).collect();
        let mut staged = if stages_tables { options.staged.clone() } else { Vec::new() };
        // Copies' part of egress keeps nothing in which the order of packets shows.
        staged.retain(|table| !cfg.of_copies.contains(table));
        let (stages, stage_bytes) = stages(program, &staged, &options.far, &options.shapes);
        Ok(Parts {
            objects: objects::numbers(program, &cfg),
            layout,
            records,
            spilled: spilled(program, options.keep_all),
            stages,
            stage_bytes,
            shapes: options.shapes.clone(),
            count_lookups: options.count_lookups,
            effort,
            cfg,
        })
    }

    fn function(
        &self,
        program: &Program,
        start: Start,
        isa: &OwnedTargetIsa,
        meter: &Meter<'_>,
        for_people: bool,
    ) -> Result<Generated, JitError> {
        let (cfg, effort) = (&self.cfg, self.effort);
        let from_context = start != Start::Arrival;
        let mut entry = match start {
            Start::Arrival => Facts::arrival(program, program.slots.keys()),
            Start::Unparsed => Facts::unparsed(program),
            Start::Context => Facts::context(program),
        };
        entry.packs = entry.in_place && effort == Effort::Quick;
        let growth = if effort == Effort::Quick { Growth::NONE } else { Growth::of(cfg) };
        let stage_of =
            |table: TableId| self.stages[table.as_u32() as usize].as_ref().map(|stage| stage.phase);
        let special = specialise(program, cfg, entry, growth, &stage_of, meter)?;
        let (footprint, stays) = footprint(program, cfg, &special);
        let nodes = special.order.len();
        let cost = special.order.iter().map(|node| cfg.blocks[special.nodes[*node].block].cost.speed);
        let cost = cost.fold(0, u64::saturating_add);
        let is_large = nodes > MANY_NODES || cost > MAX_SPEED || nodes * program.slots.len() > MAX_LIVE;
        let effort = if is_large { Effort::Quick } else { effort };
        let mut texts = Texts::default();
        // Calls are less code.
        let no_objects = Numbers::new();
        let shared = Shared {
            program,
            layout: &self.layout,
            records: &self.records,
            spilled: &self.spilled,
            stages: &self.stages,
            looked_up: codegen::LookedUp {
                shapes: &self.shapes,
                are_counted: self.count_lookups,
                loads_in_order: isa.name() == "x64",
            },
            objects: if effort == Effort::Quick { &no_objects } else { &self.objects },
            stays,
            is_quick: effort == Effort::Quick,
            texts: &mut texts,
            meter,
        };
        let mut builder_context = FunctionBuilderContext::new();
        let config = isa.frontend_config();
        let (function, origins) =
            codegen::generate(shared, cfg, &special, from_context, config, &mut builder_context)?;
        let graph = if for_people { special.to_text(program, cfg) } else { String::new() };
        Ok(Generated { function, origins, special, graph, nodes, effort, texts, footprint, stays })
    }
}

/// The slots that go to the context: those that code reads anywhere, that the switch reads, and whole headers.
fn spilled(program: &Program, all: bool) -> Vec<SlotId> {
    let mut read = EntitySet::with_capacity(program.slots.len());
    for body in program.bodies.values() {
        for block in body.blocks.values() {
            block.for_each_expr(&mut |expr| {
                expr.for_each_read(&mut |slot| {
                    read.insert(slot);
                });
            });
        }
    }
    for table in program.tables.values() {
        for expr in table.exprs() {
            expr.for_each_read(&mut |slot| {
                read.insert(slot);
            });
        }
    }
    for role in Intrinsic::ALL {
        read.extend(program.intrinsics.get(*role));
    }
    read.extend(program.field_lists.iter().flat_map(|list| list.slots.iter().copied()));
    read.extend(program.stacks.values().map(|stack| stack.next));
    let wanted = |slot: &SlotId| match program.slots[*slot].home {
        Home::Header { .. } => true,
        Home::Metadata => all || read.contains(*slot),
        Home::Local => all,
    };
    program.slots.keys().filter(wanted).collect()
}

fn flags(effort: Effort, describes: bool) -> Result<settings::Flags, JitError> {
    let mut builder = settings::builder();
    let level = match effort {
        Effort::Speed | Effort::Soon => "speed",
        Effort::Quick => "none",
    };
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    let registers = match effort {
        Effort::Speed | Effort::Soon => "backtracking",
        Effort::Quick => "single_pass",
    };
    let wanted = [
        ("opt_level", level),
        ("regalloc_algorithm", registers),
        ("enable_verifier", verify),
        ("is_pic", "false"),
        ("machine_code_cfg_info", if describes { "true" } else { "false" }),
    ];
    for (name, value) in wanted {
        builder.set(name, value).map_err(|error| JitError::Machine(error.to_string()))?;
    }
    Ok(settings::Flags::new(builder))
}

fn native(effort: Effort, describes: bool) -> Result<OwnedTargetIsa, JitError> {
    if !HAS_CODE_GENERATOR {
        let why = format!("it is made for x86-64 and aarch64, and this is {}", std::env::consts::ARCH);
        return Err(JitError::Machine(why));
    }
    let builder = cranelift_native::builder().map_err(|why| JitError::Machine(why.into()))?;
    builder.finish(flags(effort, describes)?).map_err(|error| JitError::Machine(error.to_string()))
}

fn foreign(target: &str, effort: Effort) -> Result<OwnedTargetIsa, JitError> {
    let builder = lookup_by_name(target).map_err(|error| match error {
        LookupError::SupportDisabled => JitError::Target(target.to_owned()),
        LookupError::Unsupported => JitError::Machine(format!("{target}: {error}")),
    })?;
    builder.finish(flags(effort, false)?).map_err(|error| JitError::Machine(error.to_string()))
}
