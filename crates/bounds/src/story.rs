//! A way through a program in words: parser states, tables, actions, with their places in the source.

use crate::machine::Machine;
use crate::way::Move;
use millrace_midend::Site;
use millrace_midend::cfg::Term;
use millrace_midend::specialise::NodeId;
use millrace_pipeline::{BodyKind, Program, SourceKind};
use serde::Serialize;
use std::fmt;

/// A step of the way of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What it is: `state`, `table`, `action`, `body`, `end`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The source file, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:7} {}", self.kind, self.name)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "  ({file}:{line})"),
            _ => Ok(()),
        }
    }
}

/// The steps of a way.
pub(crate) fn tell(program: &Program, machine: &Machine<'_>, moves: &[Move]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for step in moves {
        let Move::Enter(node) = step else { continue };
        if let Some(step) = of_node(program, machine, *node)
            && steps.last() != Some(&step)
        {
            steps.push(step);
        }
    }
    steps
}

fn of_node(program: &Program, machine: &Machine<'_>, node: NodeId) -> Option<Step> {
    let node = &machine.code.graph.nodes[node];
    let block = &machine.code.cfg.blocks[node.block];
    match (&node.term, block.site) {
        (Term::Lookup { table, .. }, _) => {
            let name = &program.tables[*table].name;
            Some(step(program, "table", name, &[(SourceKind::Table, name.clone())]))
        }
        (Term::Leave(leave), _) => {
            Some(Step { kind: "end", name: leave.verdict.name().to_owned(), file: None, line: None })
        }
        (_, Site::Action(action)) => {
            let action = &program.actions[action];
            let body = &program.bodies[action.body].name;
            let places = [(SourceKind::Body, action.name.clone()), (SourceKind::Body, body.clone())];
            Some(step(program, "action", &action.name, &places))
        }
        _ => {
            let origin = block.origin.as_str();
            if let Some(body) = program.bodies.values().find(|body| body.name == origin) {
                return Some(step(program, "body", origin, &[(SourceKind::Body, body.name.clone())]));
            }
            let (body, number) = origin.rsplit_once('.')?;
            let body =
                program.bodies.values().find(|own| own.name == body && own.kind == BodyKind::Parser)?;
            let (_, found) = body.blocks.iter().find(|(id, _)| id.to_string() == number)?;
            let state = found.state.as_ref()?;
            let places = [(SourceKind::State, format!("{}.{state}", body.name))];
            Some(step(program, "state", state, &places))
        }
    }
}

fn step(program: &Program, kind: &'static str, name: &str, places: &[(SourceKind, String)]) -> Step {
    let found = places.iter().find_map(|(kind, name)| {
        program.source_lines.iter().find(|line| line.kind == *kind && line.name == *name)
    });
    Step {
        kind,
        name: name.to_owned(),
        file: found.map(|found| found.file.clone()),
        line: found.map(|found| found.line),
    }
}
