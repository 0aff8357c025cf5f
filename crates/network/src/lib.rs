//! An ARINC 664 part 7 (AFDX) network in one file.
//!
//! - [`Network::parse`] reads the text of a file to a model that keeps every rule, or tells all that is wrong.
//! - [`Network::to_toml`] writes the text of a model; [`Network::crc`] is the check sum of what it says, whatever the order.
//! - [`Topology`] is what the rest works on: nodes, output ports, and the tree of each virtual link in each network.
//! - [`import`] reads the formats of other tools, [`export`] writes them, and what switches of the network need.
//!
//! The keys with their defaults and limits are in docs/network.md, which is written from `file/keys.rs`.

#![forbid(unsafe_code)]

pub mod bounds;
pub mod export;
mod file;
pub mod generate;
mod graph;
pub mod import;
mod limits;
pub mod load;
mod model;
mod random;
pub mod simulate;

pub use file::reference;
pub use graph::{Graph, Hop, Leaf, Node, NodeId, NodeKind, Port, PortId, Tree};
pub use limits::*;
pub use millrace_toml_sections::{Kind, Place, Problem, Problems};
pub use model::*;

/// A network with its nodes, ports and trees.
#[derive(Clone, Debug)]
pub struct Topology<'n> {
    /// The network.
    pub network: &'n Network,
    /// Nodes and ports.
    pub graph: Graph,
    /// The trees of all virtual links.
    pub trees: Vec<Tree>,
}

impl<'n> Topology<'n> {
    /// That of a network.
    ///
    /// # Errors
    /// The model has not been checked, and a route leads nowhere.
    pub fn new(network: &'n Network) -> Result<Topology<'n>, String> {
        let graph = Graph::new(&network.end_systems, &network.switches, &network.links);
        let trees = graph::trees(&graph, &network.vls)?;
        Ok(Topology { network, graph, trees })
    }

    /// The output ports to a leaf of a tree, that of the source first.
    pub fn path(&self, tree: &Tree, leaf: Leaf) -> Vec<PortId> {
        Graph::hops_to(tree, leaf).into_iter().map(|hop| tree.hops[hop as usize].port).collect()
    }

    /// The load of each port.
    pub fn loads(&self) -> Vec<load::Load> {
        load::loads(self.network, &self.graph, &self.trees)
    }
}
