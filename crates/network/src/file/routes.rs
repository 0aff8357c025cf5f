//! Routes as they are written, and those that are computed.

use super::parse::VlDraft;
use crate::graph::{Graph, NodeId, Searches, Tree};
use crate::limits::{MAX_DESTINATIONS, MAX_PATH};
use crate::model::{Route, Side};
use millrace_toml_sections::{Finding, Findings, Kind, Table, nearest, quoted};
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

/// A route with the places of its nodes.
pub(super) struct Written {
    pub(super) is: Route,
    /// Of each path, and of each of its nodes.
    pub(super) at: Vec<(Range<usize>, Vec<Range<usize>>)>,
    /// Whether all of it could be read.
    pub(super) is_whole: bool,
}

/// The route of a key, if it is there.
pub(super) fn written(
    table: &Table<'_>,
    key: &str,
    network: Side,
    findings: &mut Findings,
) -> Option<Written> {
    let value = table.value(key)?;
    let mut route = Written { is: Route { network, paths: Vec::new() }, at: Vec::new(), is_whole: true };
    let Some(paths) = list(table, key, value, (MAX_DESTINATIONS, "MAX_DESTINATIONS"), findings) else {
        route.is_whole = false;
        return Some(route);
    };
    if paths.is_empty() {
        findings.push(Finding::new(Kind::Value, value.span(), format!("`{key}` has no path")));
        route.is_whole = false;
    }
    for path in paths {
        let Some(nodes) = list(table, key, path, (MAX_PATH, "MAX_PATH"), findings) else {
            route.is_whole = false;
            continue;
        };
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for node in nodes {
            match node.get_ref().as_str() {
                Some(name) => {
                    names.push(name.to_owned());
                    places.push(node.span());
                }
                None => {
                    table.wrong_type(key, node, findings);
                    route.is_whole = false;
                }
            }
        }
        route.is.paths.push(names);
        route.at.push((path.span(), places));
    }
    Some(route)
}

fn list<'t>(
    table: &Table<'_>,
    key: &str,
    value: &'t Spanned<DeValue<'t>>,
    (most, limit): (usize, &str),
    findings: &mut Findings,
) -> Option<&'t [Spanned<DeValue<'t>>]> {
    let Some(elements) = value.get_ref().as_array() else {
        table.wrong_type(key, value, findings);
        return None;
    };
    if elements.len() > most {
        let message = format!("`{key}` has a list of {}: at most {most} ({limit})", elements.len());
        findings.push(Finding::new(Kind::Limit, value.span(), message));
        return None;
    }
    Some(&elements[..])
}

/// Makes the routes of virtual links, and the trees of these.
pub(super) struct Routing<'g> {
    pub(super) graph: &'g Graph,
    searches: Searches<'g>,
}

impl<'g> Routing<'g> {
    pub(super) fn new(graph: &'g Graph) -> Routing<'g> {
        Routing { graph, searches: Searches::new(graph) }
    }

    /// The routes of a virtual link and their trees; those alone that are right.
    pub(super) fn route(
        &mut self,
        place: usize,
        vl: &VlDraft<'_>,
        findings: &mut Findings,
    ) -> Vec<(Route, Tree)> {
        let graph = self.graph;
        let table = &vl.table;
        let Some(source) = end_system(graph, &vl.is.source, table.at("source"), findings) else {
            return Vec::new();
        };
        let mut to = Vec::new();
        for (name, at) in &vl.to {
            let Some(node) = end_system(graph, name, at.clone(), findings) else { continue };
            if node == source {
                let message = format!("`{name}` sends this virtual link: it does not receive it");
                findings.push(Finding::new(Kind::Conflict, at.clone(), message));
                continue;
            }
            to.push((node, at.clone()));
        }
        let mut routes = Vec::new();
        for side in networks(graph, vl, source) {
            let written = vl.written.iter().find(|written| written.is.network == side);
            let key = if side == Side::A { "route-a" } else { "route-b" };
            let route = match written {
                Some(written) if !written.is_whole => continue,
                Some(written) => written.is.clone(),
                None if vl.to.is_empty() => {
                    let message = format!(
                        "nothing says where virtual link {} leads in network {side}: write `to` or `{key}`",
                        vl.is.id
                    );
                    findings.push(Finding::new(Kind::Missing, table.header(), message));
                    continue;
                }
                None => match self.computed(source, side, &to, findings) {
                    Some(route) => route,
                    None => continue,
                },
            };
            match graph.tree(place, source, side, &route.paths) {
                Ok(tree) => {
                    if let Some(written) = written.filter(|_| !vl.to.is_empty()) {
                        same_destinations(graph, &tree, &to, (key, written), findings);
                    }
                    routes.push((route, tree));
                }
                Err(fault) => {
                    let at = written.and_then(|written| written.at.get(fault.path));
                    let at = at.map(|(path, nodes)| nodes.get(fault.step).unwrap_or(path).clone());
                    let finding = Finding::new(Kind::Route, at.unwrap_or(table.at("to")), fault.why);
                    findings.push(finding);
                }
            }
        }
        routes
    }

    fn computed(
        &mut self,
        source: NodeId,
        side: Side,
        to: &[(NodeId, Range<usize>)],
        findings: &mut Findings,
    ) -> Option<Route> {
        let graph = self.graph;
        let mut paths = Vec::new();
        for (node, at) in to {
            let path = self.searches.path(source, *node, side);
            if path.is_empty() || path.len() > MAX_PATH {
                let (from, to) = (graph.name(source), graph.name(*node));
                let message = format!("no path of network {side} leads from `{from}` to `{to}`");
                findings.push(Finding::new(Kind::Route, at.clone(), message));
                continue;
            }
            paths.push(path.into_iter().map(|node| graph.name(node).to_owned()).collect());
        }
        (!paths.is_empty()).then_some(Route { network: side, paths })
    }
}

/// The networks that a virtual link is sent on.
fn networks(graph: &Graph, vl: &VlDraft<'_>, source: NodeId) -> Vec<Side> {
    if !vl.networks.is_empty() {
        return vl.networks.clone();
    }
    if !vl.written.is_empty() {
        return vl.written.iter().map(|written| written.is.network).collect();
    }
    let has_port =
        |side: &Side| graph.ports_of(source).iter().any(|port| graph.ports[*port as usize].network == *side);
    let sides: Vec<Side> = Side::BOTH.into_iter().filter(has_port).collect();
    if sides.is_empty() { vec![Side::A] } else { sides }
}

fn end_system(graph: &Graph, name: &str, at: Range<usize>, findings: &mut Findings) -> Option<NodeId> {
    // What was not read has been told.
    if name.is_empty() {
        return None;
    }
    match graph.node(name) {
        Some(node) if graph.switch(node).is_none() => return Some(node),
        Some(_) => {
            let message = format!("{} is a switch: an end system is expected", quoted(name));
            findings.push(Finding::new(Kind::UnknownName, at, message));
        }
        None => findings.push_with(|| {
            let message = format!("there is no end system {}", quoted(name));
            let finding = Finding::new(Kind::UnknownName, at, message);
            match nearest(name, graph.nodes.iter().map(|node| node.name.as_str())) {
                Some(near) => finding.help(format!("did you mean `{near}`?")),
                None => finding,
            }
        }),
    }
    None
}

/// A route that is written leads where `to` says.
fn same_destinations(
    graph: &Graph,
    tree: &Tree,
    to: &[(NodeId, Range<usize>)],
    (key, written): (&str, &Written),
    findings: &mut Findings,
) {
    for (path, leaf) in tree.leaves.iter().enumerate() {
        if !to.iter().any(|(node, _)| *node == leaf.node) {
            let message = format!("a path ends at `{}`, which `to` does not name", graph.name(leaf.node));
            findings.push(Finding::new(Kind::Conflict, written.at[path].0.clone(), message));
        }
    }
    for (node, at) in to {
        if !tree.leaves.iter().any(|leaf| leaf.node == *node) {
            let message = format!("no path of `{key}` ends at `{}`", graph.name(*node));
            findings.push(Finding::new(Kind::Conflict, at.clone(), message));
        }
    }
}
