//! `millrace compile`.

use crate::cli::{CompileArgs, Emit, Target};
use crate::findings::{Failure, Findings};
use crate::output::say;
use crate::source::{load_any, write_output};
use millrace_jit::{Compiled, Effort, Listing, Options, Plan, listing};
use millrace_pipeline::{Program, passes};
use millrace_switch::{EngineKind, Switch, SwitchConfig};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn compile(args: &CompileArgs, findings: &mut Findings) -> Result<(), Failure> {
    let start = Instant::now();
    let loaded = load_any(&args.program.path, &args.program.source, findings)?;
    let front = start.elapsed();
    if args.time {
        let lowering = Instant::now();
        let program = loaded.program(findings)?;
        return time(program, front, lowering.elapsed());
    }
    let text = match args.emit.unwrap_or(Emit::Image) {
        Emit::Image => loaded.image(findings)?.to_string(),
        Emit::Ir => millrace_pipeline::text::print(&*loaded.program(findings)?),
        Emit::Clif => list(&*loaded.program(findings)?, args.target)?.clif,
        Emit::Asm => list(&*loaded.program(findings)?, args.target)?.asm,
    };
    write_output(args.output.as_deref(), &text)
}

/// The texts of the code that takes a burst through a program.
fn list(program: &Program, target: Option<Target>) -> Result<Listing, Failure> {
    let mut program = program.clone();
    passes::optimize(&mut program);
    let target = target.map(|target| match target {
        Target::X86_64 => "x86_64",
        Target::Aarch64 => "aarch64",
    });
    let plan = Plan::through(&program, true);
    listing(&program, &plan, &Options::default(), target).map_err(|error| Failure::Failed(error.to_string()))
}

/// Tells how long each step takes, from the source to a switch that forwards; of a large program also how long the better
/// code takes that is made beside it. Measured once, as it is when a switch starts.
fn time(program: Arc<Program>, front: Duration, lowering: Duration) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let start = Instant::now();
    let config = SwitchConfig { engine: EngineKind::Jit, ..SwitchConfig::default() };
    let switch = Switch::new(Arc::clone(&program), config).map_err(|error| failed(&error))?;
    let made = start.elapsed();
    let code = switch.compile_statistics();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    say(format_args!(
        "source to typed program   {:8.2} ms\n\
         lowering                  {:8.2} ms\n\
         specialising              {:8.2} ms  {} nodes\n\
         code generation           {:8.2} ms  {} bytes\n\
         tables and the rest       {:8.2} ms\n\
         source to running switch  {:8.2} ms\n",
        ms(front),
        ms(lowering),
        ms(code.specialise),
        code.nodes,
        ms(code.codegen),
        code.bytes,
        ms(made.saturating_sub(code.specialise + code.codegen)),
        ms(front + lowering + made),
    ));
    if code.effort == Effort::Quick {
        let mut optimised = (*program).clone();
        passes::optimize(&mut optimised);
        let plan = Plan::through(&optimised, true);
        let better = Compiled::new(&optimised, &plan, &Options::default()).map_err(|error| failed(&error))?;
        let code = better.statistics();
        say(format_args!(
            "better code, made while the switch runs, once it is busy:\n\
             specialising              {:8.2} ms  {} nodes\n\
             code generation           {:8.2} ms  {} bytes\n",
            ms(code.specialise),
            code.nodes,
            ms(code.codegen),
            code.bytes,
        ));
    }
    Ok(())
}
