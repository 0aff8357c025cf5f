//! Graphs in the language of Graphviz.

use crate::{Graph, Node, NodeKind};
use std::fmt::{self, Display, Write};

impl Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "digraph {} {{", quoted(&self.name))?;
        clusters(f, self, "", 0)?;
        edges(f, self, 0)?;
        f.write_str("}\n")
    }
}

/// All graphs in one, `fullGraph`: a cluster for each, in the order in which packets meet them.
pub fn whole(graphs: &[Graph]) -> String {
    let mut text = String::from("digraph fullGraph {\n  graph [compound=true];\n");
    let (mut first, mut before) = (0, None);
    for (number, graph) in graphs.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = clusters(&mut text, graph, &format!("{number}_"), first);
        let _ = edges(&mut text, graph, first);
        let (begins, ends) = (first, first + end(graph));
        if let Some((cluster, node)) = before {
            let _ = writeln!(
                text,
                "  {node} -> {begins} [label=\"\", ltail=\"cluster{cluster}_0\", lhead=\"cluster{number}_0\"];"
            );
        }
        before = Some((number, ends));
        first += graph.nodes.len();
    }
    text.push_str("}\n");
    text
}

/// The node by which a packet leaves: `accept` of a parser, the end of a control.
fn end(graph: &Graph) -> usize {
    if graph.is_parser { graph.nodes.len().saturating_sub(2) } else { 1 }
}

/// Clusters with their nodes, those within others inside them.
fn clusters(out: &mut impl Write, graph: &Graph, prefix: &str, first: usize) -> fmt::Result {
    // A cluster stands before those within it.
    let mut depth = Vec::new();
    let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); graph.clusters.len()];
    for (number, node) in graph.nodes.iter().enumerate() {
        nodes[node.cluster].push(number);
    }
    for (number, cluster) in graph.clusters.iter().enumerate() {
        while depth.last().is_some_and(|last| Some(*last) != cluster.within) {
            depth.pop();
            writeln!(out, "{}}}", indent(depth.len() + 1))?;
        }
        let space = indent(depth.len() + 1);
        let label = match cluster.name.as_str() {
            "" => graph.name.clone(),
            name => format!("{}.{name}", graph.name),
        };
        writeln!(out, "{space}subgraph \"cluster{prefix}{number}\" {{")?;
        writeln!(out, "{space}  graph [label={}, fontsize=\"22pt\", style=bold];", quoted(&label))?;
        for at in &nodes[number] {
            writeln!(out, "{space}  {} [{}];", first + at, attributes(&graph.nodes[*at]))?;
        }
        depth.push(number);
    }
    while depth.pop().is_some() {
        writeln!(out, "{}}}", indent(depth.len() + 1))?;
    }
    Ok(())
}

fn edges(out: &mut impl Write, graph: &Graph, first: usize) -> fmt::Result {
    for edge in &graph.edges {
        writeln!(out, "  {} -> {} [label={}];", first + edge.from, first + edge.to, quoted(&edge.label))?;
    }
    Ok(())
}

fn indent(depth: usize) -> String {
    // Clusters nest as deep as controls do.
    "  ".repeat(depth.min(40))
}

fn attributes(node: &Node) -> String {
    let shape = match node.kind {
        NodeKind::Table | NodeKind::Action => "ellipse",
        _ => "rectangle",
    };
    let style = match node.kind {
        NodeKind::Key | NodeKind::Condition | NodeKind::Switch => "rounded",
        _ => "solid",
    };
    format!("label={}, shape={shape}, style={style}", quoted(&node.label))
}

/// A string of dot, whose lines are in the middle.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            // Also what a terminal would obey.
            character if character.is_control() => quoted.push(' '),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
