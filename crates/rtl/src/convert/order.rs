//! The order of visits: the components of the control-flow graph, and within a loop its blocks.

use millrace_midend::cfg::{Cfg, CfgId};
use millrace_pipeline::entity::SecondaryMap;

/// Blocks that are visited together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Component {
    /// A block that is in no loop.
    Block(CfgId),
    /// The blocks of a loop, in reverse postorder: edges to the same or an earlier one lead back.
    Loop(Vec<CfgId>),
}

/// The strongly connected components that the entry reaches, each after those that lead to it: Tarjan's algorithm with a stack of
/// its own, since graphs are deep.
pub(super) fn components(cfg: &Cfg) -> Vec<Component> {
    let mut search = Search {
        cfg,
        number: SecondaryMap::with_default(0),
        low: SecondaryMap::with_default(0),
        open: SecondaryMap::with_default(false),
        stack: Vec::new(),
        next: 1,
        found: Vec::new(),
        left: Vec::new(),
    };
    search.from(cfg.entry);
    let mut place: SecondaryMap<CfgId, usize> = SecondaryMap::new();
    for (at, block) in search.left.iter().rev().enumerate() {
        place[*block] = at;
    }
    let in_order = search.found.into_iter().rev();
    in_order
        .map(|mut blocks| {
            blocks.sort_by_key(|block| place[*block]);
            match blocks.as_slice() {
                [only] if !targets(cfg, *only).contains(only) => Component::Block(*only),
                _ => Component::Loop(blocks),
            }
        })
        .collect()
}

struct Search<'a> {
    cfg: &'a Cfg,
    /// The order in which blocks were met, from 1.
    number: SecondaryMap<CfgId, u32>,
    low: SecondaryMap<CfgId, u32>,
    open: SecondaryMap<CfgId, bool>,
    stack: Vec<CfgId>,
    next: u32,
    found: Vec<Vec<CfgId>>,
    /// Postorder.
    left: Vec<CfgId>,
}

impl Search<'_> {
    fn from(&mut self, entry: CfgId) {
        let mut path = vec![(entry, self.enter(entry), 0)];
        while let Some((block, to, at)) = path.last_mut() {
            let block = *block;
            let Some(next) = to.get(*at).copied() else {
                path.pop();
                self.leave(block);
                if let Some((parent, _, _)) = path.last() {
                    self.low[*parent] = self.low[*parent].min(self.low[block]);
                }
                continue;
            };
            *at += 1;
            if self.number[next] == 0 {
                let to = self.enter(next);
                path.push((next, to, 0));
            } else if self.open[next] {
                self.low[block] = self.low[block].min(self.number[next]);
            }
        }
    }

    fn enter(&mut self, block: CfgId) -> Vec<CfgId> {
        self.number[block] = self.next;
        self.low[block] = self.next;
        self.next += 1;
        self.open[block] = true;
        self.stack.push(block);
        targets(self.cfg, block)
    }

    fn leave(&mut self, block: CfgId) {
        self.left.push(block);
        if self.low[block] != self.number[block] {
            return;
        }
        let mut component = Vec::new();
        while let Some(other) = self.stack.pop() {
            self.open[other] = false;
            component.push(other);
            if other == block {
                break;
            }
        }
        self.found.push(component);
    }
}

fn targets(cfg: &Cfg, block: CfgId) -> Vec<CfgId> {
    let mut targets = Vec::new();
    cfg.blocks[block].term.for_each_target(&mut |to| targets.push(*to));
    targets
}
