//! Graphs as JSON, in the form that p4c-graphs documents.

use crate::{Graph, NodeKind};
use serde_json::{Value, json};

/// One object with all graphs of a program.
pub fn json(name: &str, graphs: &[Graph]) -> Value {
    let blocks: Vec<Value> = graphs.iter().map(block).collect();
    json!({ "name": name, "nodes": blocks })
}

fn block(graph: &Graph) -> Value {
    let nodes: Vec<Value> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(number, node)| {
            let (name, code) = kind(node.kind);
            json!({ "node_nmb": number, "name": node.label, "type": name, "type_enum": code })
        })
        .collect();
    let edge = |edge: &crate::Edge| json!({ "from": edge.from, "to": edge.to, "cond": edge.label });
    let transitions: Vec<Value> = graph.edges.iter().map(edge).collect();
    let kind = if graph.is_parser { "parser" } else { "control" };
    json!({ "type": kind, "name": graph.name, "nodes": nodes, "transitions": transitions })
}

/// What p4c calls a kind of nodes, and its number.
fn kind(kind: NodeKind) -> (&'static str, u32) {
    match kind {
        NodeKind::Table => ("table", 0),
        NodeKind::Key => ("key", 1),
        NodeKind::Action => ("action", 2),
        NodeKind::Condition => ("condition", 3),
        NodeKind::Switch => ("switch", 4),
        NodeKind::Statements => ("statements", 5),
        NodeKind::Other => ("other", 7),
        NodeKind::State => ("state", 8),
    }
}
