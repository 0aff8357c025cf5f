//! `millrace trace`.

use crate::capture::{self, Captured};
use crate::cli::{Engine, Simulator, TraceArgs};
use crate::entries::{load_file, load_text};
use crate::findings::{Failure, Findings};
use crate::output::{say, say_line};
use crate::running::Running;
use crate::source::load_any;
use crate::trace_cycles;
use millrace_control::commands::number_trace;
use millrace_dataplane::{Switch, SwitchConfig};
use millrace_frames::MAX_FRAME;
use millrace_rtl::{Hardware, Options};
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn trace(args: &TraceArgs, findings: &mut Findings) -> Result<(), Failure> {
    if let (None, Some(option)) = (&args.path, args.source.given()) {
        return Err(Failure::Usage(format!(
            "{option} is for a source: without PROG the program is that of the switch"
        )));
    }
    let packets = packets(&args.packet)?;
    let mut running = args.from.as_ref().map(Running::connect).transpose()?;
    let program = match (&args.path, &mut running) {
        (Some(path), _) => load_any(path, &args.source, findings)?.program(findings)?,
        (None, Some(running)) => running.program()?,
        (None, None) => return Err(Failure::Usage("a program is needed, or --from".into())),
    };
    args.engine.check_capacity(&args.capacity)?;
    let config = SwitchConfig { engine: args.engine.kind(Simulator::InProcess)?, ..SwitchConfig::default() };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Failed(error.to_string()))?;
    if let Some(path) = &args.entries {
        load_file(&mut switch, path, findings)?;
    }
    if let Some(running) = &mut running {
        let state = running.state()?;
        load_text(&mut switch, Path::new(&running.name()), &state, findings)?;
    }
    let hardware = match args.engine {
        Engine::Rtl => {
            let program = Arc::clone(switch.program());
            let capacities = args.capacity.of(&program)?;
            Some(Hardware::new(program, Options { capacities, ..Options::default() }))
        }
        _ => None,
    };
    let report = hardware.transpose().map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    let report = report.map(|hardware| hardware.report());
    let mut stories: Vec<Value> = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let (_, mut trace) = switch.inject_traced(args.port, &packet.bytes, packet.time_ns);
        number_trace(&mut trace);
        if let Some(report) = &report {
            trace_cycles::add(&mut trace, report);
        }
        if args.json {
            stories.push(serde_json::to_value(&trace).map_err(|error| Failure::failed("the trace", error))?);
        } else {
            let rule = if number == 0 { "" } else { "\n" };
            say(format_args!("{rule}{trace}"));
        }
    }
    if args.json {
        say_line(json!({ "ok": true, "packets": stories }));
    }
    Ok(())
}

/// The packets of a capture file, or one of hexadecimal digits; blanks and colons between them do not count.
fn packets(text: &str) -> Result<Vec<Captured>, Failure> {
    let path = Path::new(text);
    if path.is_file() {
        let file = File::open(path).map_err(|error| Failure::failed(text, error))?;
        let mut packets =
            capture::read(BufReader::new(file)).map_err(|error| Failure::failed(text, error))?;
        capture::from_zero(&mut packets);
        return Ok(packets);
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let digits: Option<Vec<u8>> = digits
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    match digits {
        Some(digits) if !digits.is_empty() && digits.len() % 2 == 0 && digits.len() / 2 <= MAX_FRAME => {
            let bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
            Ok(vec![Captured { time_ns: 0, bytes }])
        }
        Some(digits) if !digits.is_empty() => Err(Failure::Usage(format!(
            "--packet: {} hexadecimal digits are no packet: an even number, at most {}, is expected",
            digits.len(),
            MAX_FRAME * 2
        ))),
        _ => Err(Failure::Usage(format!("--packet: `{text}` is neither a file nor hexadecimal digits"))),
    }
}
