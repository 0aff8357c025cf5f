//! Which output ports are those of one node.

use super::{Flow, Server};
use foldhash::{HashMap, HashSet};

/// How often nodes are looked at again after some were parted. After that names say nothing.
const MAX_ROUNDS: usize = 8;

/// Sets of servers, each known by its first one.
#[derive(Clone)]
struct Sets(Vec<usize>);

impl Sets {
    fn first(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b);
    }

    fn of_each(mut self) -> Vec<usize> {
        (0..self.0.len()).map(|place| self.first(place)).collect()
    }
}

/// The beginning of a name that ports of one node share: all up to the last `-`.
pub(super) fn beginning(server: &Server) -> &str {
    server.name.rsplit_once('-').map_or(&server.name, |(beginning, _)| beginning)
}

/// The node of each server, known by its first server.
///
/// Servers that follow the same one are ports of one node, as its link leads to one. So are those whose names have one beginning, as long as
/// paths that are trees take no node twice, and one link leads from a node to another: else they are ports of several nodes.
pub(super) fn nodes(servers: &[Server], flows: &[Flow<'_>]) -> Vec<usize> {
    let mut by_links = Sets((0..servers.len()).collect());
    let mut after: HashMap<usize, usize> = HashMap::default();
    for pair in flows.iter().flat_map(|flow| &flow.paths).flat_map(|path| path.windows(2)) {
        by_links.unite(pair[1], *after.entry(pair[0]).or_insert(pair[1]));
    }
    let mut by_names = by_links.clone();
    let mut named: HashMap<&str, usize> = HashMap::default();
    for (place, server) in servers.iter().enumerate().filter(|(_, server)| server.name.contains('-')) {
        by_names.unite(place, *named.entry(beginning(server)).or_insert(place));
    }
    let (by_links, mut nodes) = (by_links.of_each(), by_names.of_each());
    for _ in 0..MAX_ROUNDS {
        let wrong = wrong(&nodes, flows);
        let mut is_parted = false;
        for (node, apart) in nodes.iter_mut().zip(&by_links) {
            if node != apart && wrong.contains(node) {
                (*node, is_parted) = (*apart, true);
            }
        }
        if !is_parted {
            return nodes;
        }
    }
    by_links
}

/// Nodes that the paths of a flow enter by two ports, and the ends of two links from one node to another.
fn wrong(nodes: &[usize], flows: &[Flow<'_>]) -> HashSet<usize> {
    let mut wrong = HashSet::default();
    let mut links: HashMap<(usize, usize), usize> = HashMap::default();
    let mut entered: HashMap<usize, Option<usize>> = HashMap::default();
    for flow in flows {
        entered.clear();
        for path in &flow.paths {
            let mut before = None;
            for server in path {
                let node = nodes[*server];
                if *entered.entry(node).or_insert(before) != before {
                    wrong.insert(node);
                }
                if let Some(before) = before {
                    let from = nodes[before];
                    if *links.entry((from, node)).or_insert(before) != before {
                        wrong.extend([from, node]);
                    }
                }
                before = Some(*server);
            }
        }
    }
    wrong
}
