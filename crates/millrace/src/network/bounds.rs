//! `millrace network bounds`.

use super::table::{mean, table, us};
use super::{FileArg, load, topology};
use crate::findings::Failure;
use crate::output::{say, say_line};
use clap::{Args, ValueEnum};
use millrace_network::bounds::{self, Analysis, Bounds, Path, TotalFlow};
use millrace_network::load::Percent;
use millrace_network::{Topology, Vl};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[derive(Debug, Args)]
pub(super) struct BoundsArgs {
    #[command(flatten)]
    file: FileArg,
    /// The analysis
    #[arg(long, value_enum, value_name = "NAME", default_value_t = By::Best)]
    analysis: By,
    #[command(flatten)]
    vls: VlArgs,
}

/// Which virtual links are shown.
#[derive(Debug, Args)]
pub(super) struct VlArgs {
    /// Shows the paths of these virtual links alone: ids or names
    #[arg(long = "vl", value_name = "ID|NAME", value_delimiter = ',')]
    vls: Vec<String>,
}

/// An analysis.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// The least bound of all that are quick
    Best,
    /// Total flow analysis with token buckets, as most published figures have it
    Affine,
    /// The same, and links shape what they carry together
    Grouping,
    /// Total flow analysis with arrival curves that are staircases
    Staircase,
    /// Separated flow analysis
    Sfa,
    /// Pay multiplexing only once
    Pmoo,
    /// A linear program for each path of the virtual links of `--vl`, which may take seconds
    Lp,
}

impl VlArgs {
    /// The places of the virtual links; none if all are meant.
    pub(super) fn places(&self, vls: &[Vl]) -> Result<Vec<usize>, Failure> {
        let find = |text: &String| {
            let is = |vl: &Vl| vl.name == *text || text.parse::<u16>().is_ok_and(|id| id == vl.id);
            // A name that is a number of another one is rare; the name counts.
            let place = vls.iter().position(|vl| vl.name == *text).or_else(|| vls.iter().position(is));
            place.ok_or_else(|| Failure::Failed(format!("there is no virtual link `{text}`")))
        };
        self.vls.iter().map(find).collect()
    }
}

pub(super) fn bounds(args: &BoundsArgs, is_json: bool) -> Result<(), Failure> {
    let network = load(&args.file.file, is_json)?;
    let topology = topology(&network)?;
    let shown = args.vls.places(&network.vls)?;
    if matches!(args.analysis, By::Lp) && shown.is_empty() {
        return Err(Failure::Usage("`--analysis lp` needs `--vl`: which virtual links".into()));
    }
    let analysis = match args.analysis {
        By::Best => Analysis::Best,
        By::Affine => Analysis::TotalFlow(TotalFlow::AFFINE),
        By::Grouping => Analysis::TotalFlow(TotalFlow { staircase: false, ..TotalFlow::BEST }),
        By::Staircase => Analysis::TotalFlow(TotalFlow { grouping: false, ..TotalFlow::BEST }),
        By::Sfa => Analysis::SeparatedFlow,
        By::Pmoo => Analysis::Pmoo,
        By::Lp => Analysis::Linear(shown.clone()),
    };
    let found = bounds::bounds_by(&topology, &analysis).map_err(Failure::Failed)?;
    let is_shown = |path: &&Path| shown.is_empty() || shown.contains(&topology.trees[path.tree].vl);
    let paths: Vec<&Path> = found.paths.iter().filter(is_shown).collect();
    match is_json {
        true => say_line(as_json(&topology, &found, &paths)),
        false => say(as_text(&topology, &found, &paths)),
    }
    let without = without_bound(&found);
    if without.is_empty() {
        return Ok(());
    }
    if !is_json {
        let paths = found.paths.iter().filter(|path| path.bound.is_err()).count();
        let reasons: Vec<&str> = without.iter().map(String::as_str).collect();
        let message = format!("{paths} of {} paths have no bound: {}", found.paths.len(), reasons.join("; "));
        return Err(Failure::Failed(message));
    }
    Err(Failure::Told)
}

/// Why ports or paths have no bound, the causes alone where they are known.
fn without_bound(found: &Bounds) -> BTreeSet<String> {
    let ports = found.ports.iter().filter_map(|port| port.bound.as_ref()?.as_ref().err());
    let reasons: BTreeSet<String> =
        ports.chain(found.paths.iter().filter_map(|path| path.bound.as_ref().err())).cloned().collect();
    let causes: BTreeSet<String> =
        reasons.iter().filter(|reason| !reason.starts_with("it depends on")).cloned().collect();
    if causes.is_empty() { reasons } else { causes }
}

fn name_of(topology: &Topology<'_>, tree: usize, leaf: usize) -> (u16, String, &'static str, String) {
    let tree = &topology.trees[tree];
    let vl = &topology.network.vls[tree.vl];
    (vl.id, vl.name.clone(), tree.network.name(), topology.graph.name(tree.leaves[leaf].node).to_owned())
}

fn as_text(topology: &Topology<'_>, found: &Bounds, paths: &[&Path]) -> String {
    let mut sorted: Vec<&Path> = paths.to_vec();
    let delay = |path: &Path| path.bound.as_ref().map_or(u64::MAX, |bound| bound.delay);
    sorted.sort_by_key(|path| (std::cmp::Reverse(delay(path)), path.tree, path.leaf));
    let row = |path: &&Path| {
        let (id, name, network, to) = name_of(topology, path.tree, path.leaf);
        let vl = &topology.network.vls[topology.trees[path.tree].vl];
        let late = match (&path.bound, vl.deadline) {
            (Ok(bound), Some(deadline)) if bound.delay > deadline => format!("above {}", us(deadline)),
            (_, Some(deadline)) => us(deadline),
            (_, None) => String::new(),
        };
        let [delay, jitter, by] = match &path.bound {
            Ok(bound) => [us(bound.delay), us(bound.jitter), bound.method.to_string()],
            Err(_) => ["none".into(), "none".into(), String::new()],
        };
        [id.to_string(), name, network.to_owned(), to, delay, jitter, late, by]
    };
    let rows: Vec<[String; 8]> = sorted.iter().map(row).collect();
    let columns = ["id", "virtual link", "net", "to", "delay us", "jitter us", "deadline us", "by"];
    let mut text = table(columns, 4, &rows);
    let mut ports: Vec<usize> =
        (0..found.ports.len()).filter(|port| found.ports[*port].bound.is_some()).collect();
    let share = |port: usize| found.ports[port].load.share(topology.graph.ports[port].service_rate);
    ports.sort_by_key(|port| (std::cmp::Reverse(share(*port)), *port));
    let row = |port: &usize| {
        let is = &found.ports[*port];
        let [backlog, frames, delay] = match &is.bound {
            Some(Ok(queue)) => [queue.room.to_string(), queue.frames.to_string(), us(queue.delay)],
            _ => ["none".into(), "none".into(), "none".into()],
        };
        let name = topology.graph.port_name(*port as u32);
        let network = topology.graph.ports[*port].network.name().to_owned();
        [name, network, is.load.vls.to_string(), Percent(share(*port)).to_string(), backlog, frames, delay]
    };
    let rows: Vec<[String; 7]> = ports.iter().map(row).collect();
    text.push('\n');
    text.push_str(&table(["port", "net", "VLs", "load", "backlog B", "frames", "delay us"], 2, &rows));
    text.push('\n');
    text.push_str(&summary_text(topology, found, paths));
    text
}

/// Buffers that may be too small, deadlines that may be missed, and the mean and largest delay.
fn summary_text(topology: &Topology<'_>, found: &Bounds, paths: &[&Path]) -> String {
    let mut text = String::new();
    for (port, buffer) in found.small_buffers(topology) {
        let name = topology.graph.port_name(port);
        text.push_str(&format!("port {name} may need more than its buffer of {buffer} bytes\n"));
    }
    for tight in found.tight_accounts(topology) {
        text.push_str(&format!("{tight}\n"));
    }
    let late = paths.iter().filter(|path| is_late(topology, path)).count();
    if late > 0 {
        text.push_str(&format!("{late} paths may take longer than their deadlines\n"));
    }
    let delays = || paths.iter().filter_map(|path| path.bound.as_ref().ok()).map(|bound| bound.delay);
    if let (Some(mean), Some(largest)) = (mean(delays()), delays().max()) {
        text.push_str(&format!(
            "{} paths: mean {} us, largest {} us\n",
            delays().count(),
            us(mean),
            us(largest)
        ));
    }
    text
}

fn is_late(topology: &Topology<'_>, path: &Path) -> bool {
    let deadline = topology.network.vls[topology.trees[path.tree].vl].deadline;
    matches!((&path.bound, deadline), (Ok(bound), Some(deadline)) if bound.delay > deadline)
}

fn as_json(topology: &Topology<'_>, found: &Bounds, paths: &[&Path]) -> Value {
    let path = |path: &&Path| {
        let (id, name, network, to) = name_of(topology, path.tree, path.leaf);
        let tree = &topology.trees[path.tree];
        let ports = topology.path(tree, tree.leaves[path.leaf]);
        let ports: Vec<String> = ports.into_iter().map(|port| topology.graph.port_name(port)).collect();
        let mut value = json!({ "id": id, "name": name, "network": network, "to": to, "ports": ports });
        match &path.bound {
            Ok(bound) => {
                value["delay-ns"] = bound.delay.into();
                value["jitter-ns"] = bound.jitter.into();
                value["least-ns"] = bound.least.into();
                value["analysis"] = bound.method.to_string().into();
            }
            Err(why) => value["no-bound"] = why.as_str().into(),
        }
        if let Some(deadline) = topology.network.vls[tree.vl].deadline {
            value["deadline-ns"] = deadline.into();
        }
        value
    };
    let port = |(port, is): (usize, &bounds::PortBound)| {
        let at = &topology.graph.ports[port];
        let mut value = json!({
            "port": topology.graph.port_name(port as u32),
            "network": at.network.name(),
            "virtual-links": is.load.vls,
            "load-ppm": is.load.share(at.service_rate),
            "load-bit/s": is.load.bits_per_second(),
        });
        match is.bound.as_ref()? {
            Ok(queue) => {
                value["backlog-bits"] = queue.backlog.into();
                value["room-bytes"] = queue.room.into();
                value["frames"] = queue.frames.into();
                value["delay-ns"] = queue.delay.into();
            }
            Err(why) => value["no-bound"] = why.as_str().into(),
        }
        Some(value)
    };
    let delays = || paths.iter().filter_map(|path| path.bound.as_ref().ok()).map(|bound| bound.delay);
    let buffers = found.small_buffers(topology).into_iter().map(|(port, _)| topology.graph.port_name(port));
    let accounts = found.tight_accounts(topology).into_iter().map(|tight| {
        json!({
            "account": tight.account,
            "switch": tight.switch,
            "credit-bytes": tight.credit,
            "needed-bytes": tight.needed,
        })
    });
    json!({
        "ok": without_bound(found).is_empty(),
        "paths": paths.iter().map(path).collect::<Vec<_>>(),
        "ports": found.ports.iter().enumerate().filter_map(port).collect::<Vec<_>>(),
        "no-bound": without_bound(found),
        "mean-ns": mean(delays()),
        "largest-ns": delays().max(),
        "late-paths": paths.iter().filter(|path| is_late(topology, path)).count(),
        "small-buffers": buffers.collect::<Vec<_>>(),
        "tight-accounts": accounts.collect::<Vec<_>>(),
    })
}
