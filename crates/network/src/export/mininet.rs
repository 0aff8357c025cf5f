//! A script for Mininet that builds both networks: a host for each end system, a namespace for each switch, in which Millrace runs.

use crate::Topology;
use std::fmt::Write;

/// The part of the script that is the same for every network.
const SCRIPT: &str = include_str!("mininet.py");

/// The script. It expects the files of [`super::entries`] in the folder that it is given.
pub fn mininet(topology: &Topology<'_>) -> String {
    let network = topology.network;
    let nodes = network.end_systems.len();
    let host = |node: u32| format!("e{}", node + 1);
    let switch = |node: u32| format!("s{}", node as usize - nodes + 1);
    let name = |node: u32| if topology.graph.switch(node).is_some() { switch(node) } else { host(node) };
    let mut data = String::new();
    // Writing to a string cannot fail. Names are literals of JSON, which are literals of Python too.
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let _ = writeln!(data, "NAME = {}", quoted(&network.name));
    data.push_str("# Name in Mininet, name in the network, number in addresses.\nEND_SYSTEMS = [\n");
    for (place, end_system) in network.end_systems.iter().enumerate() {
        let _ = writeln!(
            data,
            "    ({}, {}, {}),",
            quoted(&host(place as u32)),
            quoted(&end_system.name),
            end_system.id
        );
    }
    data.push_str("]\n# Name in Mininet, name in the network, its network, its files.\nSWITCHES = [\n");
    for ((place, is), file) in network.switches.iter().enumerate().zip(super::entries::file_names(network)) {
        let node = (nodes + place) as u32;
        let _ = writeln!(
            data,
            "    ({}, {}, {}, {}),",
            quoted(&switch(node)),
            quoted(&is.name),
            quoted(is.network.name()),
            quoted(&file)
        );
    }
    data.push_str("]\n# Node, port, node, port, network, Mbit/s, delay in us.\nLINKS = [\n");
    for link in &network.links {
        let [from, to] = &link.between;
        let (Some(a), Some(b)) = (topology.graph.node(&from.node), topology.graph.node(&to.node)) else {
            continue;
        };
        let _ = writeln!(
            data,
            "    ({}, {}, {}, {}, {}, {}, {}),",
            quoted(&name(a)),
            from.port,
            quoted(&name(b)),
            to.port,
            quoted(link.network.name()),
            link.rate as f64 / 1e6,
            link.propagation as f64 / 1e3
        );
    }
    data.push_str("]\n");
    SCRIPT.replace("# DATA\n", &data)
}
