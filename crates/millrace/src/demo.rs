//! `millrace run` without a program: a router between two capture files, all built in.

use crate::capture::{self, Captured};
use crate::cli::RunArgs;
use crate::findings::{Failure, Findings};
use crate::output::{say, say_line};
use crate::source::load_text;
use crate::{frame, statistics};
use millrace_control::entries::load;
use millrace_dataplane::{PortId, Switch, SwitchConfig};
use serde_json::{Value, json};

const PROGRAM_NAME: &str = "programs/router.p4";
const PROGRAM: &str = include_str!("../../../programs/router.p4");
const ENTRIES_NAME: &str = "programs/router.entries";
const ENTRIES: &str = include_str!("../../../programs/router.entries");
/// What comes in on which port.
const CAPTURES: [(PortId, &str, &[u8]); 2] = [
    (0, "programs/demo/in0.pcap", include_bytes!("../../../programs/demo/in0.pcap")),
    (1, "programs/demo/in1.pcap", include_bytes!("../../../programs/demo/in1.pcap")),
];

/// The options of `millrace run` that it heeds; others are for a program.
pub(crate) const OPTIONS: [&str; 6] = ["--engine", "--sim", "--capacity", "--json", "--color", "--quiet"];

pub(crate) fn run(args: &RunArgs, findings: &mut Findings) -> Result<(), Failure> {
    let program = load_text(PROGRAM_NAME, PROGRAM, findings)?.lower(findings)?;
    let hardware = args.running.hardware(Some(&program), None)?;
    let config = SwitchConfig { engine: args.running.kind()?, hardware, ..SwitchConfig::default() };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Failed(error.to_string()))?;
    if let Err(refusals) = load(&mut switch, ENTRIES) {
        return Err(findings.refused(ENTRIES_NAME, ENTRIES, &refusals, "entry"));
    }
    let arrivals = arrivals()?;
    if !args.running.json {
        say_line(format_args!(
            "{PROGRAM_NAME} with {ENTRIES_NAME}, packets from {} and {}\n",
            CAPTURES[0].1, CAPTURES[1].1
        ));
    }
    let mut story = Vec::new();
    for (port, packet) in arrivals {
        let outcome = switch.inject(port, &packet.bytes, packet.time_ns);
        let label = |reason: millrace_dataplane::DropReason| reason.label(switch.program());
        if !args.running.json {
            say_line(format_args!("in   port {port}  {}", frame::describe(&packet.bytes)));
            outcome.sent.iter().for_each(|sent| {
                say_line(format_args!("out  port {}  {}", sent.port, frame::describe(&sent.bytes)))
            });
            outcome
                .drops
                .iter()
                .for_each(|drop| say_line(format_args!("drop         {}", drop.describe(switch.program()))));
        }
        story.push(json!({
            "port": port,
            "time_ns": packet.time_ns,
            "bytes": hex(&packet.bytes),
            "sent": outcome.sent.iter().map(|sent| json!({ "port": sent.port, "bytes": hex(&sent.bytes) })).collect::<Value>(),
            "drops": outcome.drops.iter().map(|drop| Value::from(label(drop.reason))).collect::<Value>(),
        }));
    }
    if args.running.json {
        let mut object = statistics::json(&switch, &[]);
        object.insert("ok".into(), true.into());
        object.insert("packets".into(), story.into());
        say_line(Value::from(object));
    } else {
        say(format_args!("\n{}", statistics::text(&switch, &[])));
    }
    Ok(())
}

/// The packets of all ports in the order of their times, the first at 0.
fn arrivals() -> Result<Vec<(PortId, Captured)>, Failure> {
    let mut frames = Vec::new();
    let mut ports = Vec::new();
    for (port, name, bytes) in CAPTURES {
        let captured = capture::read(bytes).map_err(|error| Failure::failed(name, error))?;
        ports.extend(captured.iter().map(|_| port));
        frames.extend(captured);
    }
    capture::from_zero(&mut frames);
    let mut arrivals: Vec<(PortId, Captured)> = ports.into_iter().zip(frames).collect();
    arrivals.sort_by_key(|(_, packet)| packet.time_ns);
    Ok(arrivals)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
