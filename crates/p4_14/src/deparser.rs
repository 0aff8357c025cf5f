//! The deparser (specification section 5): the headers in an order that agrees with the parse graph. Headers that the
//! graph leads round (stacks, options in any order) are one node of it; among them the one reached first comes first.
//! The pragma `header_ordering` gives the order instead.

use indexmap::{IndexMap, IndexSet};
use millrace_syntax::Span;
use millrace_syntax::ast::{Declaration, Text};
use millrace_syntax::p4_14::ast::{self as p14, ParserStmt, Return, Target};
use std::collections::HashSet;

use crate::model::Kind;
use crate::names::PACKET;
use crate::translate::Translator;

/// The most states that are looked at, each as often as it is reached, to find the order of the headers.
pub(crate) const MAX_WORK: usize = 1 << 20;

/// Which header comes right after which.
type Edges<'a> = IndexMap<&'a str, IndexSet<&'a str>>;

impl<'a> Translator<'a> {
    /// The headers that the parser extracts, in the order in which they are put together again.
    ///
    /// # Errors
    /// The state at which the graph is too large to be looked through.
    pub(crate) fn deparser_order(&self) -> Result<Vec<Text>, &'a p14::ParserState> {
        let mut edges = Edges::new();
        let mut first: IndexSet<&'a str> = IndexSet::new();
        let entries = self
            .model
            .states
            .values()
            .filter(|s| s.pragmas.iter().any(|p| p.name.as_str() == "packet_entry"));
        let starts = self.model.states.get("start").copied().into_iter().chain(entries.copied());
        let mut work = 0;
        // What a state leads to, it leads to from everywhere: one look at each is enough.
        let mut seen = HashSet::new();
        for start in starts.chain(self.model.states.values().copied()) {
            first.extend(self.first_headers(start, &mut seen, &mut work)?);
        }
        for state in self.model.states.values() {
            let extracted: Vec<&'a str> = self.extracted(state).collect();
            for pair in extracted.windows(2) {
                edges.entry(pair[0]).or_default().insert(pair[1]);
            }
            if let Some(last) = extracted.last() {
                for next in self.successors(state) {
                    let headers = self.first_headers(next, &mut HashSet::new(), &mut work)?;
                    edges.entry(last).or_default().extend(headers);
                }
            }
        }
        let mut order: IndexSet<&'a str> = IndexSet::new();
        let pragmas = self.model.states.values().flat_map(|s| &s.pragmas);
        for pragma in pragmas.filter(|p| p.name.as_str() == "header_ordering") {
            order.extend(pragma.words.iter().map(|w| w.as_str()));
        }
        order.extend(topological(&first, &edges));
        let is_header =
            |name: &&&str| self.model.instances.get(**name).is_some_and(|i| i.kind == Kind::Header);
        Ok(order.iter().filter(is_header).map(|name| Text::from(*name)).collect())
    }

    fn extracted(&self, state: &'a p14::ParserState) -> impl Iterator<Item = &'a str> + use<'a> {
        state.statements.iter().filter_map(|statement| match statement {
            ParserStmt::Extract(header, _) => Some(header.name.as_str()),
            ParserStmt::Set(..) => None,
        })
    }

    fn successors(&self, state: &'a p14::ParserState) -> Vec<&'a p14::ParserState> {
        let targets: Vec<&'a Target> = match &state.ending {
            Some(Return::To(target)) => vec![target],
            Some(Return::Select { cases, .. }) => cases.iter().map(|case| &case.target).collect(),
            None => Vec::new(),
        };
        let named = targets.into_iter().filter_map(|target| match target {
            Target::Named(name) => self.model.states.get(name.as_str()).copied(),
            Target::Error(_) => None,
        });
        named.collect()
    }

    /// The headers that are extracted first from a state on, without what was seen.
    fn first_headers(
        &self,
        state: &'a p14::ParserState,
        seen: &mut HashSet<&'a str>,
        work: &mut usize,
    ) -> Result<Vec<&'a str>, &'a p14::ParserState> {
        let mut found = Vec::new();
        let mut open = vec![state];
        while let Some(state) = open.pop() {
            if !seen.insert(state.name.as_str()) {
                continue;
            }
            *work += 1;
            if *work > MAX_WORK {
                return Err(state);
            }
            match self.extracted(state).next() {
                Some(header) => found.push(header),
                None => {
                    let next = self.successors(state);
                    *work += next.len();
                    open.extend(next.into_iter().rev());
                }
            }
        }
        Ok(found)
    }

    /// `packet.emit(hdr.x);` for each.
    pub(crate) fn deparser(&mut self) -> Declaration {
        let span = Span::default();
        let mut body = Vec::new();
        for name in self.order.clone() {
            let headers = self.headers.clone();
            let header = self.tree.path(&[&headers, &name], span);
            let packet = self.tree.var(PACKET, span);
            body.push(self.tree.method(packet, "emit", vec![header], span));
        }
        self.control_block("DeparserImpl", Vec::new(), body, span)
    }
}

/// An order in which each node comes before those it leads to, unless these lead back to it.
fn topological<'a>(first: &IndexSet<&'a str>, edges: &Edges<'a>) -> Vec<&'a str> {
    let none = IndexSet::new();
    let next = |node: &str| edges.get(node).unwrap_or(&none);
    // In the order of discovery, and of leaving, of a depth-first search.
    let mut discovered: IndexSet<&'a str> = IndexSet::new();
    let mut left: Vec<&'a str> = Vec::new();
    for root in first.iter().rev() {
        if !discovered.insert(root) {
            continue;
        }
        let mut path: Vec<(&'a str, usize)> = vec![(root, next(root).len())];
        while let Some((node, rest)) = path.last_mut() {
            if *rest == 0 {
                left.push(node);
                path.pop();
                continue;
            }
            *rest -= 1;
            let Some(child) = next(node).get_index(*rest).copied() else { continue };
            if discovered.insert(child) {
                path.push((child, next(child).len()));
            }
        }
    }
    let mut back: Edges<'a> = Edges::new();
    for (from, to) in edges {
        for to in to {
            back.entry(to).or_default().insert(from);
        }
    }
    // Backwards from the node left last: what leads to it and was not placed lies on a cycle with it.
    let mut placed: HashSet<&'a str> = HashSet::new();
    let mut order = Vec::new();
    for node in left.iter().rev() {
        if placed.contains(node) {
            continue;
        }
        let mut cycle = Vec::new();
        let mut open = vec![*node];
        while let Some(node) = open.pop() {
            if discovered.contains(node) && placed.insert(node) {
                cycle.push(node);
                open.extend(back.get(node).unwrap_or(&none).iter().copied());
            }
        }
        // `first` is searched from its end, so what was discovered early came late; along a path it is the order.
        cycle.sort_by_key(|n| discovered.get_index_of(n));
        order.extend(cycle);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(first: &[&'static str], edges: &[(&'static str, &'static str)]) -> String {
        let first = first.iter().copied().collect();
        let mut all = Edges::new();
        for (from, to) in edges {
            all.entry(from).or_default().insert(to);
        }
        topological(&first, &all).concat()
    }

    #[test]
    fn headers_come_in_the_order_of_the_graph() {
        assert_eq!(order(&["e"], &[("e", "v"), ("e", "4"), ("v", "4"), ("4", "t"), ("4", "u")]), "ev4tu");
        assert_eq!(order(&["a", "b"], &[("b", "a")]), "ba");
        assert_eq!(order(&[], &[]), "");
    }

    #[test]
    fn cycles_stay_together() {
        assert_eq!(order(&["e"], &[("e", "m"), ("m", "m"), ("m", "i")]), "emi");
        let options = [("i", "n"), ("i", "t"), ("n", "t"), ("t", "n"), ("n", "p"), ("t", "p"), ("n", "n")];
        assert!(["intp", "itnp"].contains(&order(&["i"], &options).as_str()));
    }
}
