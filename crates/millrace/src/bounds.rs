//! `millrace bounds` and `millrace calibrate`.

use crate::cli::{BoundsArgs, CalibrateArgs};
use crate::entries::load_file;
use crate::findings::{Failure, Findings};
use crate::output::{say, say_line};
use crate::progress::Progress;
use crate::source::load_any;
use millrace_bounds::{Bounds, Calibration, Frame, Input, Knowledge, analyse};
use millrace_dataplane::{EngineKind, Switch, SwitchConfig, described};
use millrace_frames::MAX_FRAME;
use millrace_syntax::read_text;
use pcap_file::pcap::{PcapPacket, PcapWriter};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Largest calibration file, in bytes.
const MAX_BYTES: u64 = 1 << 16;

pub(crate) fn bounds(args: &BoundsArgs, findings: &mut Findings) -> Result<(), Failure> {
    let machine = args.calibration.as_deref().map(read_calibration).transpose()?;
    let program = load_any(&args.program.path, &args.program.source, findings)?.program(findings)?;
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    // The tables are what counts; no packet passes this switch.
    let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(&program), config).map_err(|error| failed(&error))?;
    if let Some(entries) = &args.entries {
        load_file(&mut switch, entries, findings)?;
    }
    let progress = Progress::start(format!("analysing {}", program.name));
    let (compiled, parts) = described(&program, switch.state_mut()).map_err(|error| failed(&error))?;
    let knowledge = Knowledge::of(switch.state());
    let mut bounds = Bounds { program: program.name.clone(), parts: Vec::new(), machine };
    for part in &parts {
        let input =
            Input { program: &compiled, code: &part.code, start: part.start, longest: MAX_FRAME as u64 };
        let found = analyse(&input, &knowledge, bounds.machine.as_ref());
        let found =
            found.map_err(|error| Failure::Failed(format!("{} has no bound: {error}", program.name)))?;
        bounds.parts.push((part.name.to_owned(), found));
    }
    drop(progress);
    // Where packets go one by one, only the first plan takes a frame as it came.
    let frame = bounds.parts.first().and_then(|(_, part)| part.frame.clone());
    if let Some(path) = &args.packet {
        let frame = frame.as_ref().ok_or_else(|| {
            Failure::Failed(
                "no frame was found that takes the dearest path; the bound holds without it".into(),
            )
        })?;
        write_frame(path, frame)?;
    }
    if args.json {
        let batches: Vec<_> = millrace_bounds::BATCHES
            .iter()
            .map(|packets| {
                json!({ "packets": packets, "cost": bounds.of_batch(*packets), "ns": bounds.ns_of_batch(*packets),
                        "packets_per_second": bounds.rate(*packets).map(|rate| rate.per_second) })
            })
            .collect();
        let port = frame.as_ref().map(|frame| frame.port);
        say_line(json!({ "ok": true, "bounds": bounds, "batches": batches, "port": port }));
    } else {
        say(&bounds);
        match (&args.packet, &frame) {
            (Some(path), Some(frame)) => say(format_args!(
                "{} has a frame of {} bytes that takes the dearest path, for port {}.\n",
                path.display(),
                frame.bytes.len(),
                frame.port
            )),
            (None, None) => {
                say("No frame was found that takes the dearest path; the bound holds without it.\n")
            }
            _ => {}
        }
    }
    Ok(())
}

fn write_frame(path: &Path, frame: &Frame) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(path.display(), error);
    let file = File::create(path).map_err(|error| failed(&error))?;
    let mut writer = PcapWriter::new(file).map_err(|error| failed(&error))?;
    let len = u32::try_from(frame.bytes.len()).map_err(|error| failed(&error))?;
    let packet = PcapPacket::new(Duration::ZERO, len, &frame.bytes);
    writer.write_packet(&packet).map_err(|error| failed(&error))?;
    Ok(())
}

/// Measures this machine.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    let progress = Progress::start("measuring this machine".to_owned());
    let found = millrace_bench::calibrate();
    drop(progress);
    let (processor, machine) = this_machine()?;
    let calibration = Calibration::new(processor, machine, found.all());
    let text = serde_json::to_string_pretty(&calibration)
        .map_err(|error| Failure::failed("the calibration", error))?;
    let path = &args.output;
    std::fs::write(path, text + "\n").map_err(|error| Failure::failed(path.display(), error))?;
    if args.json {
        say_line(json!({ "ok": true, "output": path.display().to_string(), "calibration": calibration }));
    } else {
        say(format_args!(
            "{}\nan instruction {} ps, a cache line {} ps, of several at once {} ps, of code {} ps, after a jump {} ps, a batch {} ps\n",
            calibration.processor,
            calibration.ps_per_instruction,
            calibration.ps_per_line,
            calibration.ps_per_line_at_once,
            calibration.ps_per_line_of_code,
            calibration.ps_per_jump,
            calibration.ps_per_batch
        ));
    }
    Ok(())
}

fn read_calibration(path: &Path) -> Result<Calibration, Failure> {
    let name = path.display().to_string();
    let text =
        read_text(path, MAX_BYTES).map_err(|error| Failure::failed(format!("cannot read {name}"), error))?;
    // The message ends with the line and the column.
    let wrong = |error: serde_json::Error| Failure::failed(&name, error);
    // Another version has other fields.
    let any: Value = serde_json::from_str(&text).map_err(wrong)?;
    if let Some(version) = any["version"].as_u64() {
        Calibration::check_version(version).map_err(|error| Failure::failed(&name, error))?;
    }
    let calibration: Calibration = serde_json::from_str(&text).map_err(wrong)?;
    let (processor, machine) = this_machine()?;
    calibration.check(&processor, &machine).map_err(|error| Failure::failed(&name, error))?;
    Ok(calibration)
}

/// The names of the processor and of the machine.
fn this_machine() -> Result<(String, String), Failure> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
    };
    let named = ["model name", "CPU implementer", "CPU part", "microcode", "cpu family", "model", "stepping"];
    let words = named.iter().filter(|name| !field(name).is_empty());
    let processor: Vec<String> = words.map(|name| format!("{name} {}", field(name))).collect();
    if processor.is_empty() {
        return Err(Failure::Failed("the machine does not say which processor it has".into()));
    }
    let machine = ["/etc/machine-id", "/proc/sys/kernel/hostname"].into_iter().map(read);
    let machine = machine.map(|text| text.trim().to_owned()).find(|text| !text.is_empty());
    Ok((processor.join(", "), machine.unwrap_or_else(|| "without a name".into())))
}
