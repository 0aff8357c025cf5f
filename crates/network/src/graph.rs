//! Nodes with their output ports, and the trees of virtual links over these.

use crate::model::{EndSystem, Link, Side, Switch, Vl};
use foldhash::HashMap;
use std::collections::VecDeque;

/// A node, by its place: end systems first, then switches.
pub type NodeId = u32;

/// An output port, by its place.
pub type PortId = u32;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The end system of this place.
    EndSystem(usize),
    /// The switch of this place.
    Switch(usize),
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// The output port of a node, with the link in that direction. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The node.
    pub node: NodeId,
    /// The number of the port there.
    pub number: u16,
    /// The node at the other end.
    pub to: NodeId,
    /// The number of the port there.
    pub to_number: u16,
    /// The link, by its place.
    pub link: usize,
    /// The network.
    pub network: Side,
    /// Rate of the link, in bit/s.
    pub rate: u64,
    /// What of it is sure, in bit/s.
    pub service_rate: u64,
    /// The longest from the last bit of a frame, or from the regulator, to the queue of this port.
    pub latency: u64,
    /// The shortest.
    pub least_latency: u64,
    /// How long a bit takes over the link.
    pub propagation: u64,
}

/// No port.
const NO_PORT: PortId = PortId::MAX;

/// Nodes and ports.
#[derive(Clone, Debug)]
pub struct Graph {
    /// End systems, then switches.
    pub nodes: Vec<Node>,
    /// Two of each link, or one of a link with one direction.
    pub ports: Vec<Port>,
    by_name: HashMap<String, NodeId>,
    /// By the node that sends, that which receives, and the network.
    by_ends: HashMap<(NodeId, NodeId, Side), PortId>,
    /// The ports of each node.
    of_node: Vec<Vec<PortId>>,
}

/// The tree of a virtual link in one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The virtual link, by its place.
    pub vl: usize,
    /// The network.
    pub network: Side,
    /// The output ports that a frame takes, that of the source first, each after the one before it.
    pub hops: Vec<Hop>,
    /// Where it ends.
    pub leaves: Vec<Leaf>,
}

/// An output port that a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The port.
    pub port: PortId,
    /// The hop before it; none of the source's.
    pub before: Option<u32>,
}

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The end system that receives.
    pub node: NodeId,
    /// The last hop.
    pub hop: u32,
}

/// What is wrong with a route: the path and the step there, by their places, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) path: usize,
    pub(crate) step: usize,
    pub(crate) why: String,
}

impl Graph {
    /// The graph of links whose ends are there.
    pub(crate) fn new(end_systems: &[EndSystem], switches: &[Switch], links: &[Link]) -> Graph {
        let mut nodes = Vec::with_capacity(end_systems.len() + switches.len());
        nodes.extend(
            end_systems
                .iter()
                .enumerate()
                .map(|(place, is)| Node { name: is.name.clone(), kind: NodeKind::EndSystem(place) }),
        );
        nodes.extend(
            switches
                .iter()
                .enumerate()
                .map(|(place, is)| Node { name: is.name.clone(), kind: NodeKind::Switch(place) }),
        );
        let by_name: HashMap<String, NodeId> =
            nodes.iter().enumerate().map(|(id, node)| (node.name.clone(), id as NodeId)).collect();
        let of_node = vec![Vec::new(); nodes.len()];
        let mut graph = Graph { nodes, ports: Vec::new(), by_name, by_ends: HashMap::default(), of_node };
        for (place, link) in links.iter().enumerate() {
            let [first, second] = &link.between;
            let (Some(from), Some(to)) = (graph.node(&first.node), graph.node(&second.node)) else {
                continue;
            };
            let latency = |node: NodeId| match (link.latency, graph.nodes[node as usize].kind) {
                (Some(latency), _) => (0, latency),
                (None, NodeKind::EndSystem(place)) => {
                    (end_systems[place].least_latency, end_systems[place].latency)
                }
                (None, NodeKind::Switch(place)) => (switches[place].least_latency, switches[place].latency),
            };
            let (forth, back) = (latency(from), latency(to));
            let port = |(node, number), (to, to_number), (least_latency, latency)| Port {
                node,
                number,
                to,
                to_number,
                link: place,
                network: link.network,
                rate: link.rate,
                service_rate: link.service_rate,
                latency,
                least_latency,
                propagation: link.propagation,
            };
            graph.add(port((from, first.port), (to, second.port), forth));
            if !link.one_way {
                graph.add(port((to, second.port), (from, first.port), back));
            }
        }
        graph
    }

    fn add(&mut self, port: Port) {
        let id = self.ports.len() as PortId;
        self.by_ends.entry((port.node, port.to, port.network)).or_insert(id);
        self.of_node[port.node as usize].push(id);
        self.ports.push(port);
    }

    /// The node of a name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The name of a node.
    pub fn name(&self, node: NodeId) -> &str {
        &self.nodes[node as usize].name
    }

    /// The switch that a node is, by its place.
    pub fn switch(&self, node: NodeId) -> Option<usize> {
        match self.nodes[node as usize].kind {
            NodeKind::Switch(place) => Some(place),
            NodeKind::EndSystem(_) => None,
        }
    }

    /// The port of a node that leads to another one.
    pub fn port(&self, from: NodeId, to: NodeId, network: Side) -> Option<PortId> {
        self.by_ends.get(&(from, to, network)).copied()
    }

    /// The ports of a node.
    pub fn ports_of(&self, node: NodeId) -> &[PortId] {
        &self.of_node[node as usize]
    }

    /// How a port is called: its node, the number and where it leads.
    pub fn port_name(&self, port: PortId) -> String {
        let Port { node, number, to, .. } = &self.ports[port as usize];
        format!("{}:{number} to {}", self.name(*node), self.name(*to))
    }

    /// For each node the port that leads to it on a path of the fewest links from the source, or [`NO_PORT`]. End systems forward nothing.
    ///
    /// A search in breadth: a node is reached first over the fewest links, and of these paths over the one whose link is first in the
    /// file. Since each node has one port that leads to it, paths to several destinations are a tree.
    pub(crate) fn reached_from(&self, source: NodeId, network: Side) -> Vec<PortId> {
        let mut reached = vec![NO_PORT; self.nodes.len()];
        let mut waiting = VecDeque::from([source]);
        while let Some(node) = waiting.pop_front() {
            if node != source && self.switch(node).is_none() {
                continue;
            }
            for id in self.ports_of(node) {
                let port = &self.ports[*id as usize];
                if port.network == network && port.to != source && reached[port.to as usize] == NO_PORT {
                    reached[port.to as usize] = *id;
                    waiting.push_back(port.to);
                }
            }
        }
        reached
    }

    /// The path to a node by what [`Graph::reached_from`] says, without the source.
    pub(crate) fn path_to(&self, node: NodeId, reached: &[PortId]) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(port) = self.ports.get(reached[at as usize] as usize) {
            path.push(at);
            at = port.node;
        }
        path.reverse();
        path
    }

    /// The switch that a source leads to, if it has no other way out.
    fn only_switch_after(&self, source: NodeId, network: Side) -> Option<NodeId> {
        let mut ports = self.ports_of(source).iter().map(|id| &self.ports[*id as usize]);
        let first = ports.by_ref().find(|port| port.network == network)?;
        let is_alone = !ports.any(|port| port.network == network);
        (is_alone && self.switch(first.to).is_some()).then_some(first.to)
    }

    /// The tree of paths from a source.
    ///
    /// The paths are a tree if a frame enters each node by one port: then what is before a node is the same on each path over it, and
    /// a path takes no node twice.
    pub(crate) fn tree(
        &self,
        vl: usize,
        source: NodeId,
        network: Side,
        paths: &[Vec<String>],
    ) -> Result<Tree, Fault> {
        let mut tree = Tree { vl, network, hops: Vec::new(), leaves: Vec::new() };
        // The hop by which a node is entered.
        let mut entered: HashMap<NodeId, u32> = HashMap::default();
        for (path, names) in paths.iter().enumerate() {
            let (mut at, mut before) = (source, None);
            for (step, name) in names.iter().enumerate() {
                let fault = |why| Fault { path, step, why };
                let Some(node) = self.node(name) else {
                    return Err(fault(format!("there is no node `{name}`")));
                };
                if node == source {
                    return Err(fault("a path comes back to the source".to_owned()));
                }
                if step > 0 && self.switch(at).is_none() {
                    return Err(fault(format!(
                        "`{}` is an end system, which forwards nothing",
                        self.name(at)
                    )));
                }
                let Some(port) = self.port(at, node, network) else {
                    let (from, to) = (self.name(at), self.name(node));
                    return Err(fault(format!("no link of network {network} leads from `{from}` to `{to}`")));
                };
                before = match entered.get(&node) {
                    Some(hop)
                        if tree.hops[*hop as usize].port == port
                            && tree.hops[*hop as usize].before == before =>
                    {
                        Some(*hop)
                    }
                    Some(_) => {
                        let why =
                            format!("`{name}` is entered by two ports: paths of a virtual link are a tree");
                        return Err(fault(why));
                    }
                    None if before.is_none() && !tree.hops.is_empty() => {
                        return Err(fault("the paths leave the source by two ports".to_owned()));
                    }
                    None => {
                        let hop = tree.hops.len() as u32;
                        tree.hops.push(Hop { port, before });
                        entered.insert(node, hop);
                        Some(hop)
                    }
                };
                at = node;
            }
            let step = names.len().saturating_sub(1);
            let Some(hop) = before else {
                return Err(Fault { path, step, why: "a path has a node at least".to_owned() });
            };
            if self.switch(at).is_some() {
                let why = format!("`{}` is a switch: a path ends at an end system", self.name(at));
                return Err(Fault { path, step, why });
            }
            if tree.leaves.iter().any(|leaf| leaf.node == at) {
                let why = format!("two paths end at `{}`", self.name(at));
                return Err(Fault { path, step, why });
            }
            tree.leaves.push(Leaf { node: at, hop });
        }
        Ok(tree)
    }

    /// The hops to a leaf, that of the source first.
    pub fn hops_to(tree: &Tree, leaf: Leaf) -> Vec<u32> {
        let mut hops = vec![leaf.hop];
        let mut at = leaf.hop;
        while let Some(before) = tree.hops[at as usize].before {
            hops.push(before);
            at = before;
        }
        hops.reverse();
        hops
    }
}

/// Paths of the fewest links, with what is known of them: of a source with one way out, to a switch, what is known of that switch.
pub(crate) struct Searches<'g> {
    graph: &'g Graph,
    /// The port that leads to each node, from a node in a network.
    reached: HashMap<(NodeId, Side), Vec<PortId>>,
}

impl<'g> Searches<'g> {
    /// Most nodes that ports to them are kept of.
    const MOST_KEPT: usize = 1 << 25;

    pub(crate) fn new(graph: &'g Graph) -> Searches<'g> {
        Searches { graph, reached: HashMap::default() }
    }

    /// The nodes of the path from one to another, without the first; none if there is no path.
    pub(crate) fn path(&mut self, from: NodeId, to: NodeId, network: Side) -> Vec<NodeId> {
        // The switch after it leads back to it.
        if from == to {
            return Vec::new();
        }
        let graph = self.graph;
        let switch = graph.only_switch_after(from, network);
        let start = switch.unwrap_or(from);
        if self.reached.len() * graph.nodes.len() >= Searches::MOST_KEPT
            && !self.reached.contains_key(&(start, network))
        {
            self.reached.clear();
        }
        let reached =
            self.reached.entry((start, network)).or_insert_with(|| graph.reached_from(start, network));
        let path = graph.path_to(to, reached);
        match switch {
            Some(switch) if !path.is_empty() => [switch].into_iter().chain(path).collect(),
            _ => path,
        }
    }
}

/// All trees of virtual links whose routes are right.
pub(crate) fn trees(graph: &Graph, vls: &[Vl]) -> Result<Vec<Tree>, String> {
    let mut trees = Vec::new();
    for (place, vl) in vls.iter().enumerate() {
        let source =
            graph.node(&vl.source).ok_or_else(|| format!("there is no end system `{}`", vl.source))?;
        for route in &vl.routes {
            let tree = graph.tree(place, source, route.network, &route.paths);
            trees.push(tree.map_err(|fault| format!("virtual link {}: {}", vl.id, fault.why))?);
        }
    }
    Ok(trees)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Size, generate};

    /// End systems of a switch share what is known of it; one with a second way out has its own, and the path is the same.
    #[test]
    fn paths_are_those_of_a_search_from_each_source() {
        for seed in 0..40 {
            let size = Size { switches: 6, end_systems: 20, extra_links: 4, ..Size::random(seed) };
            let mut network = generate(seed, size);
            let second = |place: usize| {
                let between = [("E1", 9), ("S1", 40 + place as u16)];
                let between = between.map(|(node, port)| crate::model::End { node: node.to_owned(), port });
                crate::model::Link { between, ..network.links[0].clone() }
            };
            network.links.push(second(0));
            let graph = Graph::new(&network.end_systems, &network.switches, &network.links);
            let mut searches = Searches::new(&graph);
            for from in 0..20 {
                let reached = graph.reached_from(from, Side::A);
                for to in 0..20 {
                    assert_eq!(
                        searches.path(from, to, Side::A),
                        graph.path_to(to, &reached),
                        "{seed}: {from} {to}"
                    );
                }
            }
            assert!(searches.reached.len() <= 7, "{}", searches.reached.len());
        }
    }
}
