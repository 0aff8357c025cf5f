//! `millrace network`: an AFDX network that one file describes.

mod bounds;
mod simulate;
mod table;

use crate::entries::read_config;
use crate::findings::Failure;
use crate::output::{has_colour, note_line, say_line, tell_coloured};
use crate::source::write_output;
use clap::{Args, Subcommand, ValueEnum};
use millrace_network::export::{entries, mininet, wopanets};
use millrace_network::import::{Format, Source, import};
use millrace_network::load::Percent;
use millrace_network::{MAX_REPORT, Network, Problems, Side, Topology, Vl};
use millrace_printable::counted;
use millrace_syntax::read_text;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct NetworkCommand {
    #[command(subcommand)]
    what: What,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Says all that is wrong with the file of a network, else what it holds and its CRC
    Check(FileArg),
    /// Writes what each switch needs to run programs/afdx.p4: entries, and plans of its ports
    Entries(EntriesArgs),
    /// Reads a network of another tool: WoPANets and xTFA (XML), Saihu (JSON), Net2Plan-AFDX (three CSV tables)
    Import(ImportArgs),
    /// Writes a network for another tool, or as a file of its own with each default, each route and its CRC
    Export(ExportArgs),
    /// Says how long each path takes at most, how much waits at each port at most, and how full each link is
    Bounds(bounds::BoundsArgs),
    /// Simulates a network, and compares the largest delay of each path with its bound: one above it is an error
    Simulate(simulate::SimulateArgs),
}

/// The file of a network.
#[derive(Debug, Args)]
struct FileArg {
    /// The file of the network
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Args)]
struct EntriesArgs {
    #[command(flatten)]
    file: FileArg,
    /// The folder where SWITCH.entries and SWITCH.tc are written, for all switches
    #[arg(short, value_name = "DIR", required_unless_present_any = ["switch", "json"])]
    output: Option<PathBuf>,
    /// Prints the entries of that switch alone
    #[arg(long, value_name = "NAME", conflicts_with = "output")]
    switch: Option<String>,
    /// Prints the plans of its ports instead
    #[arg(long, requires = "switch")]
    tc: bool,
    /// Prints those of the virtual links of management alone instead, for --management-entries of `millrace run`
    #[arg(long, requires = "switch", conflicts_with = "tc")]
    management: bool,
}

#[derive(Debug, Args)]
struct ImportArgs {
    /// The file; for Net2Plan-AFDX the tables of switches, end systems and virtual links, in any order
    #[arg(value_name = "FILE", required = true, num_args = 1..=3)]
    files: Vec<PathBuf>,
    /// The format; without it, what the file looks like
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<From>,
    /// Where to write the file of the network; standard output if not given
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ExportArgs {
    #[command(flatten)]
    file: FileArg,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: To,
    /// The network, of a format that has one (wopanets); A if not given
    #[arg(long, value_enum, value_name = "NETWORK", ignore_case = true)]
    network: Option<OneOf>,
    /// Where to write it; standard output if not given
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A format that is read.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// XML of WoPANets and xTFA
    Wopanets,
    /// JSON of Saihu: output ports
    Saihu,
    /// CSV tables of Net2Plan-AFDX
    Net2plan,
}

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// A file of Millrace
    Toml,
    /// XML of WoPANets and xTFA
    Wopanets,
    /// A script for Mininet
    Mininet,
}

/// One of the two networks.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OneOf {
    /// Network A
    #[value(name = "A")]
    A,
    /// Network B
    #[value(name = "B")]
    B,
}

/// `millrace network`.
pub(crate) fn network(command: &NetworkCommand) -> Result<(), Failure> {
    let is_json = command.json;
    match &command.what {
        What::Check(args) => check(&args.file, is_json),
        What::Entries(args) => write_entries(args, is_json),
        What::Import(args) => read_other(args, is_json),
        What::Export(args) => write_other(args, is_json),
        What::Bounds(args) => bounds::bounds(args, is_json),
        What::Simulate(args) => simulate::simulate(args, is_json),
    }
}

/// The text of a file.
fn read(path: &Path) -> Result<String, Failure> {
    read_config(path)
}

/// The network of a file; what is wrong is shown.
fn load(path: &Path, is_json: bool) -> Result<Network, Failure> {
    let text = read(path)?;
    parse(path, &text).map_err(|problems| refused(&problems, is_json))
}

/// The network of a text from this file, which may name reports: their names are those from its folder.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Network, Problems> {
    Network::parse_with_reports(&path.display().to_string(), text, &mut |name| report(path, name))
}

/// The text of a report that the file of a network names.
fn report(file: &Path, name: &str) -> Result<String, String> {
    let path = file.parent().unwrap_or(Path::new("")).join(name);
    read_text(&path, MAX_REPORT).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn refused(problems: &Problems, is_json: bool) -> Failure {
    match is_json {
        true => say_line(json!({ "ok": false, "file": problems.file, "diagnostics": problems.problems })),
        false => tell_coloured(problems.render(has_colour())),
    }
    Failure::Told
}

fn topology(network: &Network) -> Result<Topology<'_>, Failure> {
    Topology::new(network).map_err(Failure::Failed)
}

/// What a network holds.
fn summary(network: &Network) -> Result<Value, Failure> {
    let topology = topology(network)?;
    let loads = topology.loads();
    let share = |(port, load): (&millrace_network::Port, &millrace_network::load::Load)| {
        load.share(port.service_rate)
    };
    let largest =
        topology.graph.ports.iter().zip(&loads).map(share).enumerate().max_by_key(|(_, share)| *share);
    Ok(json!({
        "name": network.name,
        "part-number": network.part_number,
        "crc": format!("{:#010x}", network.crc()),
        "end-systems": network.end_systems.len(),
        "switches": network.switches.len(),
        "links": network.links.len(),
        "virtual-links": network.vls.len(),
        "paths": topology.trees.iter().map(|tree| tree.leaves.len()).sum::<usize>(),
        "largest-load": largest.map(|(port, share)| json!({ "port": topology.graph.port_name(port as u32), "ppm": share })),
    }))
}

fn check(path: &Path, is_json: bool) -> Result<(), Failure> {
    let network = load(path, is_json)?;
    let summary = summary(&network)?;
    if is_json {
        say_line(json!({ "ok": true, "network": summary }));
        return Ok(());
    }
    say_line(summary_line(&summary));
    Ok(())
}

fn summary_line(summary: &Value) -> String {
    let text = |key: &str| summary[key].as_str().unwrap_or("none").to_owned();
    let mut line = format!(
        "{}: {}, {}, {}, {}, {}; CRC {}, part number {}",
        text("name"),
        counted(&summary["end-systems"], "end system"),
        counted(&summary["switches"], "switch"),
        counted(&summary["links"], "link"),
        counted(&summary["virtual-links"], "virtual link"),
        counted(&summary["paths"], "path"),
        text("crc"),
        text("part-number")
    );
    if let (Some(port), Some(ppm)) =
        (summary["largest-load"]["port"].as_str(), summary["largest-load"]["ppm"].as_u64())
    {
        line.push_str(&format!("; largest load {} at {port}", Percent(ppm)));
    }
    line
}

fn write_entries(args: &EntriesArgs, is_json: bool) -> Result<(), Failure> {
    let network = load(&args.file.file, is_json)?;
    let topology = topology(&network)?;
    let bounds = millrace_network::bounds::bounds(&topology).map_err(Failure::Failed)?;
    let made = entries(&topology, &bounds).map_err(Failure::Failed)?;
    if let Some(name) = &args.switch {
        let Some(of_switch) = made.iter().find(|entries| entries.switch == *name) else {
            let known: Vec<&str> = made.iter().map(|entries| entries.switch.as_str()).collect();
            return Err(Failure::Failed(format!("there is no switch `{name}`: {}", known.join(", "))));
        };
        let text = match (args.tc, args.management) {
            (true, _) => &of_switch.plans,
            (_, true) => of_switch.management.as_ref().ok_or_else(|| {
                Failure::Failed(format!("no virtual link of management passes switch `{name}`"))
            })?,
            _ => &of_switch.commands,
        };
        return match is_json {
            true => {
                say_line(json!({ "ok": true, "switch": name, "text": text }));
                Ok(())
            }
            false => write_output(None, text),
        };
    }
    let mut files = Vec::new();
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|error| Failure::failed(folder.display(), error))?;
        for of_switch in &made {
            let management = of_switch.management.iter().map(|text| ("management.entries", text));
            for (kind, text) in
                [("entries", &of_switch.commands), ("tc", &of_switch.plans)].into_iter().chain(management)
            {
                let path = folder.join(format!("{}.{kind}", of_switch.file));
                write_output(Some(&path), text)?;
                files.push(path.display().to_string());
            }
        }
    }
    match (is_json, &args.output) {
        (true, Some(_)) => say_line(json!({ "ok": true, "files": files })),
        (true, None) => {
            let each = |of: &millrace_network::export::Entries| {
                let (entries, management) = (&of.commands, &of.management);
                json!({ "switch": of.switch, "entries": entries, "management": management, "tc": of.plans })
            };
            say_line(json!({ "ok": true, "switches": made.iter().map(each).collect::<Vec<_>>() }));
        }
        (false, _) => {
            note_line(format_args!("{} for {}", counted(files.len(), "file"), counted(made.len(), "switch")))
        }
    }
    Ok(())
}

fn read_other(args: &ImportArgs, is_json: bool) -> Result<(), Failure> {
    let names: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
    let texts = args.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let format = match args.from {
        Some(From::Wopanets) => Format::Wopanets,
        Some(From::Saihu) => Format::Saihu,
        Some(From::Net2plan) => Format::Net2plan,
        None => Format::of(&texts[0]).ok_or_else(|| {
            Failure::Failed(format!("{}: it looks like none of the formats; `--from` says which", names[0]))
        })?,
    };
    let sources: Vec<Source<'_>> =
        names.iter().zip(&texts).map(|(name, text)| Source { name, text }).collect();
    let imported = import(format, &sources).map_err(|problems| refused(&problems, is_json))?;
    imported.notes.iter().for_each(|note| note_line(format_args!("note: {note}")));
    let text = imported.network.to_toml();
    if is_json {
        if let Some(path) = &args.output {
            write_output(Some(path), &text)?;
        }
        let text = args.output.is_none().then_some(text);
        say_line(
            json!({ "ok": true, "network": summary(&imported.network)?, "notes": imported.notes, "text": text }),
        );
        return Ok(());
    }
    write_output(args.output.as_deref(), &text)?;
    if args.output.is_some() {
        note_line(summary_line(&summary(&imported.network)?));
    }
    Ok(())
}

fn write_other(args: &ExportArgs, is_json: bool) -> Result<(), Failure> {
    if args.network.is_some() && args.to != To::Wopanets {
        return Err(Failure::Usage(
            "--network is for --to wopanets: other formats have both networks".into(),
        ));
    }
    let network = match args.to {
        // A file with another CRC can be written again: that is how it gets its own.
        To::Toml => load_without_crc(&args.file.file, is_json)?,
        _ => load(&args.file.file, is_json)?,
    };
    let topology = topology(&network)?;
    let side = match args.network {
        None | Some(OneOf::A) => Side::A,
        Some(OneOf::B) => Side::B,
    };
    let on_side = |vl: &Vl| vl.routes.iter().any(|route| route.network == side);
    if args.to == To::Wopanets && !network.vls.is_empty() && !network.vls.iter().any(on_side) {
        let other = if side == Side::A { Side::B } else { Side::A };
        return Err(Failure::Failed(format!(
            "no virtual link is sent on network {side}: `--network {other}`"
        )));
    }
    let (text, notes) = match args.to {
        To::Toml => (network.to_toml(), Vec::new()),
        To::Wopanets => wopanets(&topology, side),
        To::Mininet => (mininet(&topology), Vec::new()),
    };
    notes.iter().for_each(|note| note_line(format_args!("note: {note}")));
    match (is_json, &args.output) {
        (false, output) => write_output(output.as_deref(), &text),
        (true, output) => {
            if let Some(path) = output {
                write_output(Some(path), &text)?;
            }
            let text = output.is_none().then_some(text);
            say_line(json!({ "ok": true, "notes": notes, "text": text }));
            Ok(())
        }
    }
}

/// As [`load`], of a file whose CRC need not be its own.
fn load_without_crc(path: &Path, is_json: bool) -> Result<Network, Failure> {
    let text = read(path)?;
    Network::parse_with_any_crc(&path.display().to_string(), &text, &mut |name| report(path, name))
        .map_err(|problems| refused(&problems, is_json))
}
