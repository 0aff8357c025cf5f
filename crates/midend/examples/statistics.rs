//! A second reader of the middle end, next to the code generator: how many paths a packet may take through a program,
//! how many tables it meets on them, and which bytes of it may change.
//!
//!     cargo run -p millrace-midend --example statistics < program.mir
//!
//! (`millrace compile PROG --emit ir` prints the text that this reads.) A new back end starts like this: a plan, its graph, the
//! specialised graph, and then one walk over the nodes in reverse postorder.

use millrace_midend::cfg::{Term, flatten};
use millrace_midend::facts::Facts;
use millrace_midend::footprint::{Footprint, footprint};
use millrace_midend::specialise::{Growth, NodeId, Specialised, specialise};
use millrace_midend::{Cancel, Meter, Plan, Refusal};
use millrace_pipeline::{Program, text};
use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::process::ExitCode;

/// What the graph of a program says about its packets.
#[derive(Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Nodes of the specialised graph.
    pub nodes: usize,
    /// Paths from the arrival of a packet to its end; none for a program with a loop, which has as many as packets are long.
    pub paths: Option<u128>,
    /// The most tables that are applied on one path; none as above.
    pub applications: Option<u32>,
    /// The bytes that may change.
    pub footprint: Footprint,
    /// Whether a packet may move: a header comes or goes.
    pub moves: bool,
}

impl Statistics {
    /// Of a verified program, from the arrival of a packet to its departure.
    ///
    /// # Errors
    /// [`Refusal`] for a program whose graph would be too large.
    pub fn of(program: &Program) -> Result<Statistics, Refusal> {
        let cancel = Cancel::default();
        let meter = Meter::new(&cancel);
        let graph = flatten(program, &Plan::through(program, true), &meter)?;
        let entry = Facts::arrival(program, program.slots.keys());
        // No table is staged: a packet runs from its arrival to its end in one go.
        let nodes = specialise(program, &graph, entry, Growth::of(&graph), &|_| None, &meter)?;
        let (footprint, stays) = footprint(program, &graph, &nodes);
        let walked = walk(&nodes);
        Ok(Statistics {
            nodes: nodes.order.len(),
            paths: walked.map(|(paths, _)| paths),
            applications: walked.map(|(_, applications)| applications),
            footprint,
            moves: !stays,
        })
    }
}

/// Paths from the entry, and the most table applications on one of them; none when there is a loop.
///
/// In reverse postorder all edges of a graph without loops lead forward. So one pass from the last node to the first knows the
/// paths of all successors of a node when it comes to the node.
fn walk(graph: &Specialised) -> Option<(u128, u32)> {
    let mut known: HashMap<NodeId, (u128, u32)> = HashMap::new();
    for id in graph.order.iter().rev() {
        let term = &graph.nodes[*id].term;
        let (mut paths, mut applications, mut has_loop) = (0u128, 0, false);
        term.for_each_target(&mut |to| match known.get(to) {
            Some((more, deep)) => {
                paths = paths.saturating_add(*more);
                applications = applications.max(*deep);
            }
            None => has_loop = true,
        });
        if has_loop {
            return None;
        }
        match term {
            Term::Leave(_) => paths = 1,
            Term::Lookup { .. } => applications += 1,
            _ => {}
        }
        known.insert(*id, (paths, applications));
    }
    known.get(&graph.entry).copied()
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number =
            |value: Option<String>| value.unwrap_or_else(|| "as many as the packet allows".to_owned());
        writeln!(f, "nodes               {}", self.nodes)?;
        writeln!(f, "paths               {}", number(self.paths.map(|paths| paths.to_string())))?;
        writeln!(
            f,
            "applied tables      {}",
            number(self.applications.map(|most| format!("at most {most}")))
        )?;
        let Footprint { before, within } = self.footprint;
        match within {
            usize::MAX => writeln!(f, "bytes that change   all, and {before} in the headroom")?,
            _ => writeln!(f, "bytes that change   the first {within}, and {before} in the headroom")?,
        }
        writeln!(f, "packets move        {}", if self.moves { "some" } else { "never" })
    }
}

#[allow(dead_code, reason = "the test includes this file")]
fn main() -> ExitCode {
    let mut source = String::new();
    let read = std::io::stdin().read_to_string(&mut source).map_err(|error| error.to_string());
    let program = read.and_then(|_| text::parse(&source).map_err(|error| error.to_string()));
    let statistics = program.and_then(|program| Statistics::of(&program).map_err(|error| error.to_string()));
    match statistics {
        Ok(statistics) => print!("{statistics}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
