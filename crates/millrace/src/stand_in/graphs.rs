//! `p4c-graphs`: the parsers and controls of a program as graphs for Graphviz.

use super::options::{ProgramArgs, parse};
use crate::findings::{Failure, Findings};
use clap::Parser;
use millrace_graphs::{graphs, json, whole};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Draws the parsers and controls of a P4 program: NAME.dot for each of them.
#[derive(Debug, Parser)]
#[command(version, infer_long_args = false, args_override_self = true)]
struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// The folder for the graphs
    #[arg(long, value_name = "DIR", default_value = ".")]
    graphs_dir: PathBuf,
    /// A graph for each parser and control: so it is without --fullGraph and --jsonOut
    #[arg(long)]
    graphs: bool,
    /// One graph of all that a packet meets, fullGraph.dot
    #[arg(long = "fullGraph")]
    full_graph: bool,
    /// The same as JSON, fullGraph.json
    #[arg(long = "jsonOut")]
    json_out: bool,
}

pub(super) fn main(args: Vec<OsString>) -> ExitCode {
    let args = match parse::<Args>("p4c-graphs", args, 1) {
        Ok(args) => args,
        Err(status) => return status,
    };
    let mut findings = Findings::new();
    match draw(&args, &mut findings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.show();
            ExitCode::FAILURE
        }
    }
}

fn draw(args: &Args, findings: &mut Findings) -> Result<(), Failure> {
    let checked = args.program.load(findings)?;
    let (typed, sources) = checked.understood();
    let drawn =
        graphs(typed, sources).map_err(|error| Failure::failed(args.program.file.display(), error))?;
    let folder = &args.graphs_dir;
    if args.graphs || !(args.full_graph || args.json_out) {
        for graph in &drawn {
            write(folder, &format!("{}.dot", graph.name), &graph.to_string())?;
        }
    }
    if args.full_graph {
        write(folder, "fullGraph.dot", &whole(&drawn))?;
    }
    if args.json_out {
        write(folder, "fullGraph.json", &format!("{:#}\n", json(&name(&args.program.file), &drawn)))?;
    }
    Ok(())
}

/// The name of a file without its ending.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| Failure::failed(path.display(), error))
}
