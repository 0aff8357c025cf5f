//! `millrace bench`.

use crate::cli::BenchArgs;
use crate::entries::load_file;
use crate::findings::{Failure, Findings};
use crate::output::{say, say_line};
use crate::progress::Progress;
use crate::source::load_any;
use millrace_bench::{Config, Report, measure};
use millrace_dataplane::{Clock, Switch, SwitchConfig};
use millrace_drivers::null::Trace;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn bench(args: &BenchArgs, findings: &mut Findings) -> Result<(), Failure> {
    let program = load_any(&args.program.path, &args.program.source, findings)?.program(findings)?;
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let mut trace = Trace::read(&args.trace.to_string_lossy()).map_err(|error| failed(&error))?;
    if let Some(length) = args.frame_size {
        trace = trace.padded(length).map_err(|error| failed(&error))?;
    }
    let mut switches = Vec::new();
    let mut load_ms = None;
    for _ in 0..args.cores.max(1) {
        let config = SwitchConfig {
            clock: Clock::real(),
            engine: args.running.kind()?,
            hardware: args.running.hardware(Some(&program), None)?,
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(Arc::clone(&program), config).map_err(|error| failed(&error))?;
        if let Some(entries) = &args.entries {
            let start = Instant::now();
            load_file(&mut switch, entries, findings)?;
            load_ms = load_ms.or(Some(start.elapsed().as_secs_f64() * 1e3));
        }
        switches.push(switch);
    }
    let config = Config {
        copy: args.copy,
        rounds: args.rounds,
        round: Duration::from_millis(args.ms),
        queues: args.queues,
        port: args.port,
        profile: args.profile,
        churn: args.churn,
        ..Config::default()
    };
    let progress = Progress::start(format!("measuring {}", program.name));
    let report = measure(switches, &trace, &config).map_err(|error| failed(&error));
    drop(progress);
    let report = Report { load_ms, ..report? };
    if args.running.json {
        say_line(serde_json::to_string(&report).map_err(|error| failed(&error))?);
    } else {
        say(report);
    }
    Ok(())
}
