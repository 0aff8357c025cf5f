//! `millrace rtl`.

use crate::findings::{Failure, Findings};
use crate::output::{say, say_line};
use crate::source::load_any;
use crate::{cli::ProgramArgs, progress::Progress};
use clap::Args;
use millrace_netlist::verilog;
use millrace_rtl::map::{Bus, Field, RegisterMap};
use millrace_rtl::tables::MAX_CAPACITY;
use millrace_rtl::{Hardware, Options};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RtlArgs {
    #[command(flatten)]
    program: ProgramArgs,
    /// Folder to write the SystemVerilog, the report and the register map to
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The length of a cycle that stages are placed for, in picoseconds
    #[arg(long, value_name = "PS", default_value_t = Options::default().period_ps,
          value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    period: u32,
    /// How many entries the unit of a table holds, if not as many as the program declares up to 4096, or 512 for masks and several ranges
    #[arg(long, value_name = "TABLE=N", value_parser = capacity)]
    capacity: Vec<(String, u64)>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// `TABLE=N`.
fn capacity(text: &str) -> Result<(String, u64), String> {
    let (table, entries) = text.split_once('=').ok_or("a capacity is TABLE=N")?;
    let entries: u64 = entries.parse().map_err(|_| format!("{entries} is no number of entries"))?;
    match (1..=MAX_CAPACITY).contains(&entries) {
        true => Ok((table.to_owned(), entries)),
        false => Err(format!("a unit holds 1 to {MAX_CAPACITY} entries")),
    }
}

/// The register map as JSON.
fn registers_json(map: &RegisterMap) -> serde_json::Value {
    let registers: Vec<_> = (Field::ALL.iter())
        .map(|field| {
            json!({ "name": field.name(), "offset": field.offset(), "writable": field.is_written(), "about": field.about() })
        })
        .collect();
    let ports: Vec<_> = (map.ports.iter().zip(map.c_names()).enumerate())
        .map(|(number, (port, c_name))| {
            json!({ "number": number, "object": port.object, "c_name": c_name, "kind": port.kind.to_string(), "words": port.words,
                    "bits": port.width, "readable": port.readable, "writable": port.writable })
        })
        .collect();
    let tables: Vec<_> = (map.tables.iter())
        .map(|table| {
            let memories: Vec<_> = (table.areas.iter())
                .map(|area| json!({ "name": area.name, "base": area.base, "words": area.words, "bits": area.width }))
                .collect();
            json!({ "port": table.port, "unit": table.kind, "memories": memories })
        })
        .collect();
    json!({ "program": map.program, "cookie": format!("{:#018x}", map.cookie), "ident": RegisterMap::IDENT,
            "version": RegisterMap::VERSION, "bytes": map.size(), "data_offset": RegisterMap::DATA, "data_registers": map.words(),
            "command": { "write": RegisterMap::WRITE, "read": RegisterMap::READ, "next": RegisterMap::NEXT },
            "registers": registers, "ports": ports, "tables": tables })
}

pub(crate) fn rtl(args: &RtlArgs, findings: &mut Findings) -> Result<(), Failure> {
    let program = load_any(&args.program.path, &args.program.source, findings)?.program(findings)?;
    let progress = Progress::start(format!("making hardware of {}", program.name));
    let known = |name: &str| program.tables.values().any(|table| table.name == name);
    if let Some((name, _)) = args.capacity.iter().find(|(name, _)| !known(name)) {
        return Err(Failure::Failed(format!("--capacity: {} has no table {name}", program.name)));
    }
    let capacities = args.capacity.iter().cloned().collect();
    let hardware = Hardware::new(program, Options { period_ps: args.period, capacities });
    let hardware = hardware.map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    let report = hardware.report();
    let mut files = Vec::new();
    if let Some(folder) = &args.output {
        let write = |name: &str, text: &str| -> Result<String, Failure> {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| Failure::failed(path.display(), error))?;
            Ok(path.display().to_string())
        };
        std::fs::create_dir_all(folder).map_err(|error| Failure::failed(folder.display(), error))?;
        for (_, design) in hardware.designs() {
            for file in verilog::print(&design) {
                files.push(write(&file.file_name(), &file.text)?);
            }
        }
        files.push(write("report.txt", &report.to_string())?);
        let map = hardware.register_map();
        for bus in [Bus::Axi4Lite, Bus::AvalonMm] {
            for file in verilog::print(&map.design(bus)) {
                // Both have the same registers.
                let path = write(&file.file_name(), &file.text)?;
                if !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        files.push(write("registers.h", &map.header())?);
        files.push(write("registers.md", &map.markdown())?);
        files.push(write("registers.json", &format!("{:#}\n", registers_json(&map)))?);
    }
    drop(progress);
    if args.json {
        let stages: Vec<_> = (report.stages.iter())
            .map(|stage| {
                let accesses: Vec<_> = (stage.accesses.iter())
                    .map(|access| {
                        json!({ "kind": access.kind, "object": access.object, "cycle": access.cycle, "latency": access.latency,
                                "asked_bits": access.asked_bits, "answered_bits": access.answered_bits })
                    })
                    .collect();
                json!({ "name": stage.name, "latency": stage.latency, "interval": stage.interval, "window": stage.window,
                        "values": stage.values, "register_bits": stage.registers, "accesses": accesses })
            })
            .collect();
        say_line(
            json!({ "ok": true, "program": report.program, "period_ps": report.period_ps, "stages": stages, "files": files }),
        );
    } else {
        say(&report);
    }
    Ok(())
}
