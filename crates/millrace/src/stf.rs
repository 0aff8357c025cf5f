//! `millrace stf`.

use crate::cli::StfArgs;
use crate::entries::read;
use crate::findings::{Failure, Findings};
use crate::output::{say_line, tell};
use crate::source::load_any;
use millrace_commands::Refusal;
use millrace_dataplane::SwitchConfig;
use millrace_pipeline::Program;
use millrace_printable::counted;
use millrace_stf::{FailureKind, Report, parse, run};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn stf(args: &StfArgs, findings: &mut Findings) -> Result<(), Failure> {
    let program = load_any(&args.program.path, &args.program.source, findings)?.program(findings)?;
    let mut results = Vec::new();
    let mut failed = 0;
    for path in &args.tests {
        let result = test(path, &program, findings, args)?;
        failed += usize::from(result["ok"] == false);
        results.push(result);
    }
    if args.running.json {
        let passed = results.len() - failed;
        let object = json!({ "ok": failed == 0, "passed": passed, "failed": failed, "tests": results });
        say_line(format_args!("{object}"));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// Runs one test and says how it went.
fn test(
    path: &Path,
    program: &Arc<Program>,
    findings: &mut Findings,
    args: &StfArgs,
) -> Result<Value, Failure> {
    let json = args.running.json;
    let name = path.display().to_string();
    let text = read(path)?;
    let test = match parse(&text) {
        Ok(test) => test,
        Err(refusals) => {
            findings.refused(&name, &text, &refusals, "stf");
            let failures: Vec<Value> =
                refusals.iter().map(|r| json!({ "line": r.line(&text), "message": r.message })).collect();
            return Ok(json!({ "file": name, "ok": false, "failures": failures }));
        }
    };
    let engine = args.running.kind_or_device()?;
    let device = args.hardware.for_test(args.running.engine, test.ports())?;
    let hardware = args.running.hardware(Some(program), device)?;
    let config = SwitchConfig { engine, hardware, ..SwitchConfig::default() };
    let report =
        run(&text, &test, Arc::clone(program), config).map_err(|error| Failure::Failed(error.to_string()))?;
    for failure in &report.failures {
        let message = failure.kind.to_string();
        let help = match &failure.kind {
            FailureKind::Refused { help, .. } => help.clone(),
            _ => None,
        };
        let refusal = Refusal::new(failure.at.clone(), message).with_help_if(help);
        let (sources, diagnostics) = millrace_commands::diagnostics(&name, &text, &[refusal], "stf");
        diagnostics.iter().for_each(|diagnostic| findings.show(diagnostic, &sources));
        tell(failure.kind.packets());
    }
    let Report { packets, passed, failures, .. } = &report;
    if !json {
        let is_unchecked = *passed == 0;
        let (packets, passed) = (counted(packets, "packet"), counted(passed, "check"));
        match failures.len() {
            0 if is_unchecked => {
                say_line(format_args!("{name}: ok ({packets}, 0 checks: it expects nothing)"));
            }
            0 => say_line(format_args!("{name}: ok ({packets}, {passed})")),
            failed => say_line(format_args!("{name}: FAILED ({packets}, {passed} passed, {failed} failed)")),
        }
    }
    let failures: Vec<Value> = failures.iter().map(|failure| failure_json(failure, &text)).collect();
    let ok = report.is_success();
    Ok(
        json!({ "file": name, "ok": ok, "packets": packets, "passed": passed, "failures": failures, "log": report.log }),
    )
}

fn failure_json(failure: &millrace_stf::Failure, text: &str) -> Value {
    let line = Refusal::new(failure.at.clone(), "").line(text);
    let mut object = json!({ "line": line, "message": failure.kind.to_string() });
    let pattern = |pattern: &millrace_stf::Pattern| -> String {
        (0..pattern.length()).map(|index| pattern.byte_text(index)).collect()
    };
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let details = match &failure.kind {
        FailureKind::Differs(difference) => json!({
            "port": difference.port,
            "packet": difference.number,
            "expected": pattern(&difference.expected),
            "got": hex(&difference.got),
            "differing_bytes": difference.bytes(),
        }),
        FailureKind::Missing { port, number, pattern: expected } => {
            json!({ "port": port, "packet": number, "expected": expected.as_ref().map(pattern) })
        }
        FailureKind::Unexpected { port, number, bytes } => {
            json!({ "port": port, "packet": number, "got": hex(bytes) })
        }
        FailureKind::Counter { counter, wanted, found } => {
            json!({ "counter": counter, "expected": wanted, "got": found })
        }
        FailureKind::Refused { help, .. } => json!({ "help": help }),
    };
    if let (Some(object), Value::Object(details)) = (object.as_object_mut(), details) {
        object.extend(details);
    }
    object
}
