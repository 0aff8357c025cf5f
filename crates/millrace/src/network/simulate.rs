//! `millrace network simulate`.

use super::bounds::VlArgs;
use super::table::{mean, table, us};
use super::{FileArg, load, topology};
use crate::findings::Failure;
use crate::output::{say, say_line};
use crate::progress::Progress;
use clap::{Args, ValueEnum};
use millrace_network::Topology;
use millrace_network::bounds::{self, Bounds, PathBound};
use millrace_network::simulate::{Discards, MAX_FRAMES, Offsets, PathSeen, Report, Setting, simulate as run};
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    #[command(flatten)]
    file: FileArg,
    /// Frames that end systems send in all
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=MAX_FRAMES))]
    frames: u64,
    /// When virtual links begin to send
    #[arg(long, value_enum, value_name = "HOW", default_value_t = How::Random)]
    offsets: How,
    /// Of the random numbers; the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    vls: VlArgs,
}

/// When virtual links begin.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// At random times, with pauses
    Random,
    /// All at once
    Synchronous,
    /// For each path, such that its frames wait as long as a search can make them
    Directed,
}

/// A path and its bound.
type Seen = (PathSeen, Option<PathBound>);

pub(super) fn simulate(args: &SimulateArgs, is_json: bool) -> Result<(), Failure> {
    let network = load(&args.file.file, is_json)?;
    let topology = topology(&network)?;
    let bounds = bounds::bounds(&topology).map_err(Failure::Failed)?;
    let shown = args.vls.places(&network.vls)?;
    let setting = Setting {
        frames: args.frames,
        offsets: match args.offsets {
            How::Random => Offsets::Random,
            How::Synchronous => Offsets::Synchronous,
            How::Directed => Offsets::Directed,
        },
        seed: args.seed,
        vls: shown.clone(),
    };
    let progress = Progress::start(format!("simulates {} frames", args.frames));
    let report = run(&topology, Some(&bounds), &setting, &mut |_| {}).map_err(Failure::Failed)?;
    drop(progress);
    // Paths have one order in both.
    let bound = |path: &bounds::Path| path.bound.as_ref().ok().copied();
    let paths = report.paths.iter().copied().zip(bounds.paths.iter().map(bound));
    let is_shown = |(seen, _): &Seen| shown.is_empty() || shown.contains(&topology.trees[seen.tree].vl);
    let shown_paths: Vec<Seen> = paths.filter(is_shown).collect();
    match is_json {
        true => say_line(as_json(&topology, &bounds, &report, &shown_paths)),
        false => say(as_text(&topology, &report, &shown_paths)),
    }
    let above = report.above(&bounds);
    match above.first() {
        None => Ok(()),
        Some(_) if is_json => Err(Failure::Told),
        Some(first) => {
            let seen = &report.paths[first.path];
            let (name, to) = name_of(&topology, seen);
            Err(Failure::Failed(format!(
                "{} paths were above their bounds: {name} to {to} had a delay of {} us, its bound {} us; a jitter of {} us, its bound {} us",
                above.len(),
                us(first.delay.0),
                us(first.delay.1),
                us(first.jitter.0),
                us(first.jitter.1)
            )))
        }
    }
}

fn name_of(topology: &Topology<'_>, seen: &PathSeen) -> (String, String) {
    let tree = &topology.trees[seen.tree];
    (topology.network.vls[tree.vl].name.clone(), topology.graph.name(tree.leaves[seen.leaf].node).to_owned())
}

fn as_text(topology: &Topology<'_>, report: &Report, paths: &[Seen]) -> String {
    let mut sorted: Vec<&Seen> = paths.iter().collect();
    sorted.sort_by_key(|(seen, _)| (std::cmp::Reverse(seen.delay), seen.tree, seen.leaf));
    let row = |(seen, bound): &&Seen| {
        let tree = &topology.trees[seen.tree];
        let (name, to) = name_of(topology, seen);
        let [of, part, jitter] = match bound {
            Some(bound) => [us(bound.delay), percent(seen.part_of(bound.delay)), us(bound.jitter)],
            None => ["none".into(), String::new(), "none".into()],
        };
        let id = topology.network.vls[tree.vl].id.to_string();
        let network = tree.network.name().to_owned();
        [id, name, network, to, seen.frames.to_string(), us(seen.delay), of, part, us(seen.jitter), jitter]
    };
    let rows: Vec<[String; 10]> = sorted.iter().map(row).collect();
    let columns = [
        "id",
        "virtual link",
        "net",
        "to",
        "frames",
        "delay us",
        "bound us",
        "of it",
        "jitter us",
        "bound us",
    ];
    let mut text = table(columns, 4, &rows);
    let Discards { policed, no_room, too_old } = report.discards;
    text.push_str(&format!(
        "\n{} frames sent, {} at ports; discarded: {policed} policed, {no_room} without room, {too_old} too old\n",
        report.frames, report.hops
    ));
    if let Some(line) = reached(paths) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// How much of their bounds paths reached on average.
fn reached(paths: &[Seen]) -> Option<String> {
    let is_searched = paths.iter().any(|(seen, _)| seen.is_searched);
    let looked_at = paths.iter().filter(|(seen, _)| seen.frames > 0 && (!is_searched || seen.is_searched));
    let parts: Vec<u64> =
        looked_at.filter_map(|(seen, bound)| Some(seen.part_of(bound.as_ref()?.delay))).collect();
    let mean = parts.iter().sum::<u64>().checked_div(parts.len() as u64)?;
    let most = *parts.iter().max()?;
    Some(format!(
        "{} paths reached {} of their bounds on average, {} at most",
        parts.len(),
        percent(mean),
        percent(most)
    ))
}

/// Thousandths as percent.
fn percent(part: u64) -> String {
    format!("{}.{} %", part / 10, part % 10)
}

fn as_json(topology: &Topology<'_>, bounds: &Bounds, report: &Report, paths: &[Seen]) -> Value {
    let path = |(seen, bound): &Seen| {
        let tree = &topology.trees[seen.tree];
        let (name, to) = name_of(topology, seen);
        json!({
            "id": topology.network.vls[tree.vl].id,
            "name": name,
            "network": tree.network.name(),
            "to": to,
            "frames": seen.frames,
            "delay-ns": seen.delay,
            "bound-ns": bound.as_ref().map(|bound| bound.delay),
            "jitter-ns": seen.jitter,
            "jitter-bound-ns": bound.as_ref().map(|bound| bound.jitter),
        })
    };
    let port = |(port, waiting): (usize, &u64)| {
        (*waiting > 0)
            .then(|| json!({ "port": topology.graph.port_name(port as u32), "most-waiting-bytes": waiting }))
    };
    let Discards { policed, no_room, too_old } = report.discards;
    let above = report.above(bounds);
    json!({
        "ok": above.is_empty(),
        "paths": paths.iter().map(path).collect::<Vec<_>>(),
        "ports": report.most_waiting.iter().enumerate().filter_map(port).collect::<Vec<_>>(),
        "frames": report.frames,
        "hops": report.hops,
        "discarded": { "policed": policed, "no-room": no_room, "too-old": too_old },
        "above": above.iter().map(|above| path(&(report.paths[above.path], bounds.paths[above.path].bound.as_ref().ok().copied()))).collect::<Vec<_>>(),
        "mean-ns": mean(paths.iter().filter(|(seen, _)| seen.frames > 0).map(|(seen, _)| seen.delay)),
        "largest-ns": paths.iter().map(|(seen, _)| seen.delay).max(),
    })
}
