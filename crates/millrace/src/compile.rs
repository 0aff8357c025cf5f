//! `millrace compile`.

use crate::cli::{CompileArgs, Emit, Target};
use crate::findings::{Failure, Findings};
use crate::output::{say, say_line};
use crate::source::{load_any, write_output};
use crate::usage::report;
use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_jit::{Compiled, Effort, Listing, Options, Statistics, listing};
use millrace_midend::Plan;
use millrace_pipeline::{Program, passes};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn compile(args: &CompileArgs, findings: &mut Findings) -> Result<(), Failure> {
    if args.target.is_some() && !matches!(args.emit, Some(Emit::Clif | Emit::Asm)) {
        return Err(Failure::Usage("--target is for --emit clif and --emit asm".into()));
    }
    if args.time && args.output.is_some() {
        return Err(Failure::Usage("-o: what --time says goes to standard output".into()));
    }
    let start = Instant::now();
    let loaded = load_any(&args.program.path, &args.program.source, findings)?;
    let front = start.elapsed();
    if args.time {
        let lowering = Instant::now();
        let program = loaded.program(findings)?;
        return time(program, front, lowering.elapsed(), args.json);
    }
    if args.report {
        return report(&*loaded.program(findings)?, args.output.as_deref(), args.json);
    }
    let text = match args.emit.unwrap_or(Emit::Image) {
        Emit::Image => loaded.image(findings)?.to_string(),
        Emit::Ir => millrace_pipeline::text::print(&*loaded.program(findings)?),
        Emit::Clif => list(&*loaded.program(findings)?, args.target)?.clif,
        Emit::Asm => list(&*loaded.program(findings)?, args.target)?.asm,
    };
    if !args.json {
        return write_output(args.output.as_deref(), &text);
    }
    match &args.output {
        Some(path) => {
            write_output(Some(path), &text)?;
            say_line(json!({ "ok": true, "output": path.display().to_string(), "bytes": text.len() }));
        }
        None => say_line(json!({ "ok": true, "text": text })),
    }
    Ok(())
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
/// code takes that is made concurrently. Measured once, as it is when a switch starts.
fn time(program: Arc<Program>, front: Duration, lowering: Duration, as_json: bool) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let start = Instant::now();
    let config = SwitchConfig { engine: EngineKind::Jit, ..SwitchConfig::default() };
    let switch = Switch::new(Arc::clone(&program), config).map_err(|error| failed(&error))?;
    let made = start.elapsed();
    let code = switch.compile_statistics();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let rest = made.saturating_sub(code.specialise + code.codegen);
    let better = match code.effort {
        Effort::Quick => Some(better(&program)?),
        _ => None,
    };
    if as_json {
        let of = |code: &Statistics| {
            json!({ "specialise_ms": ms(code.specialise), "nodes": code.nodes,
                    "codegen_ms": ms(code.codegen), "bytes": code.bytes })
        };
        say_line(json!({
            "ok": true,
            "front_ms": ms(front),
            "lower_ms": ms(lowering),
            "code": of(&code),
            "rest_ms": ms(rest),
            "total_ms": ms(front + lowering + made),
            "better_code": better.as_ref().map(of),
        }));
        return Ok(());
    }
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
        ms(rest),
        ms(front + lowering + made),
    ));
    if let Some(code) = better {
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

/// How long the better code takes.
fn better(program: &Program) -> Result<Statistics, Failure> {
    let mut optimised = program.clone();
    passes::optimize(&mut optimised);
    let plan = Plan::through(&optimised, true);
    let compiled = Compiled::new(&optimised, &plan, &Options::default());
    Ok(compiled.map_err(|error| Failure::Failed(error.to_string()))?.statistics())
}
