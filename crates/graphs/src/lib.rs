//! The parsers and controls of a typed program as graphs, as p4c-graphs draws them: what a packet meets, and in which order.
//!
//! A parser has a node for each state, and an edge for each transition with the values that lead there. A control has nodes
//! for tables with their keys and actions, conditions, and other statements, of which a row is one node; controls that it
//! applies are clusters in it. Names and expressions are those of the source.
//!
//! Sizes are bounded ([`MAX_NODES`], [`MAX_EDGES`], [`MAX_LABEL`], [`MAX_DEPTH`]), since a control that others apply is drawn
//! as often as it is applied.

mod control;
mod dot;
mod json;
mod parser;
mod wording;

pub use dot::{quoted, whole};
pub use json::json;

use millrace_sema::hir;
use millrace_syntax::SourceMap;
use std::fmt;

/// Most nodes of all graphs of a program.
pub const MAX_NODES: usize = 1 << 16;
/// Most edges of all graphs of a program.
pub const MAX_EDGES: usize = 1 << 18;
/// Most characters of what a node or an edge says of one thing.
pub const MAX_LABEL: usize = 200;
/// How deep statements and controls are in each other.
pub const MAX_DEPTH: usize = 500;

/// The graph of a parser or control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Its name in the program.
    pub name: String,
    /// Whether it is of a parser.
    pub is_parser: bool,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// From a node to a node, with what the edge says.
    pub edges: Vec<Edge>,
    /// Controls within it. The first is the whole.
    pub clusters: Vec<Cluster>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it says; lines are apart.
    pub label: String,
    /// What it is.
    pub kind: NodeKind,
    /// Which of [`Graph::clusters`] it is in.
    pub cluster: usize,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A table.
    Table,
    /// The key of a table.
    Key,
    /// An action of a table.
    Action,
    /// `if` and loops.
    Condition,
    /// `switch`.
    Switch,
    /// Other statements.
    Statements,
    /// The beginning and the end of a control.
    Other,
    /// A state of a parser.
    State,
}

/// An edge of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node where it begins.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// When it is taken; empty: always.
    pub label: String,
}

/// A control within another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The names of the instances on the way to it, with dots.
    pub name: String,
    /// The one that it is in.
    pub within: Option<usize>,
}

/// Why a program has no graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphsError {
    /// There is no instance `main`.
    NoMain,
    /// A limit, and what it counts.
    TooLarge(&'static str, usize),
}

impl fmt::Display for GraphsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphsError::NoMain => {
                f.write_str("the program has no `main`, whose parsers and controls are drawn")
            }
            GraphsError::TooLarge(what, limit) => write!(f, "the graphs have more than {limit} {what}"),
        }
    }
}

impl std::error::Error for GraphsError {}

/// All graphs of a program that was found right: those of its parsers, then those of the controls that `main` consists of.
///
/// # Errors
/// [`GraphsError`].
pub fn graphs(program: &hir::Program, sources: &SourceMap) -> Result<Vec<Graph>, GraphsError> {
    let main = program.main.ok_or(GraphsError::NoMain)?;
    let mut budget = Budget { nodes: MAX_NODES, edges: MAX_EDGES };
    let mut graphs = Vec::new();
    for parser in program.parsers.keys() {
        graphs.push(parser::graph(program, sources, parser, &mut budget)?);
    }
    for id in controls(program, main) {
        graphs.push(control::graph(program, sources, id, &mut budget)?);
    }
    Ok(graphs)
}

/// The controls that a package consists of, each once, in order. Packages stand before what is made of them.
fn controls(program: &hir::Program, main: hir::InstanceId) -> Vec<hir::ControlId> {
    let (mut found, mut seen, mut left) = (Vec::new(), std::collections::HashSet::new(), vec![main]);
    while let Some(id) = left.pop() {
        if !seen.insert(id) {
            continue;
        }
        let instance = &program.instances[id];
        match program.types.kind(instance.ty) {
            hir::TyKind::Control(control) if !found.contains(control) => found.push(*control),
            hir::TyKind::Package(..) => left.extend(instance.args.iter().rev().filter_map(|arg| match arg {
                hir::CtorArg::Expr(hir::Expr { kind: hir::ExprKind::Instance(part), .. }) => Some(*part),
                hir::CtorArg::Expr(_) | hir::CtorArg::Omitted => None,
            })),
            _ => {}
        }
    }
    found
}

/// What may still be drawn.
struct Budget {
    nodes: usize,
    edges: usize,
}

impl Graph {
    fn new(name: &str, is_parser: bool) -> Graph {
        let whole = Cluster { name: String::new(), within: None };
        Graph {
            name: name.to_owned(),
            is_parser,
            nodes: Vec::new(),
            edges: Vec::new(),
            clusters: vec![whole],
        }
    }

    fn node(
        &mut self,
        budget: &mut Budget,
        label: String,
        kind: NodeKind,
        cluster: usize,
    ) -> Result<usize, GraphsError> {
        budget.nodes = budget.nodes.checked_sub(1).ok_or(GraphsError::TooLarge("nodes", MAX_NODES))?;
        self.nodes.push(Node { label, kind, cluster });
        Ok(self.nodes.len() - 1)
    }

    fn edge(
        &mut self,
        budget: &mut Budget,
        from: usize,
        to: usize,
        label: String,
    ) -> Result<(), GraphsError> {
        budget.edges = budget.edges.checked_sub(1).ok_or(GraphsError::TooLarge("edges", MAX_EDGES))?;
        self.edges.push(Edge { from, to, label });
        Ok(())
    }
}
