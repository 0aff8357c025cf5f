//! Which accesses no frame makes both: their conditions contradict each other.
//!
//! A condition is taken apart into what it is the "and" of. Two contradict each other when one asks for a bit that the other asks to
//! be 0, or when they ask for one value to be two numbers. What is not found counts as made by one frame: that costs cycles, no
//! correctness.

use crate::graph::{Binary, Graph, Node, Unary, Wire};
use crate::stage::Dataflow;
use millrace_pipeline::Bits;
use rustc_hash::FxHashMap;

/// Parts of a condition that are looked at.
const MAX_PARTS: usize = 256;

/// What each access asks for.
pub(crate) struct Conditions {
    /// Bits, and whether they have to be 1; values, and the number that they have to be.
    parts: Vec<(FxHashMap<Wire, bool>, FxHashMap<Wire, Bits>)>,
}

impl Conditions {
    pub(crate) fn of(dataflow: &Dataflow) -> Conditions {
        let accesses = dataflow.accesses.iter();
        Conditions { parts: accesses.map(|access| parts(&dataflow.graph, access.enable)).collect() }
    }

    /// Whether a frame that makes one access never makes the other.
    pub(crate) fn exclude(&self, one: usize, other: usize) -> bool {
        let ((bits, values), (other_bits, other_values)) = (&self.parts[one], &self.parts[other]);
        bits.iter().any(|(wire, is)| other_bits.get(wire).is_some_and(|other| other != is))
            || values.iter().any(|(wire, is)| other_values.get(wire).is_some_and(|other| other != is))
    }
}

fn parts(graph: &Graph, condition: Wire) -> (FxHashMap<Wire, bool>, FxHashMap<Wire, Bits>) {
    let (mut bits, mut values) = (FxHashMap::default(), FxHashMap::default());
    let mut left = vec![(condition, true)];
    while let Some((wire, is)) = left.pop() {
        if bits.len() >= MAX_PARTS || bits.insert(wire, is).is_some() {
            continue;
        }
        match (graph.node(wire), is) {
            (Node::Binary(Binary::And, a, b), true) | (Node::Binary(Binary::Or, a, b), false) => {
                left.extend([(*a, is), (*b, is)]);
            }
            (Node::Unary(Unary::Not, a), _) => left.push((*a, !is)),
            (Node::Binary(Binary::Eq, a, b), true) => {
                for (value, number) in [(a, b), (b, a)] {
                    if let Some(number) = graph.constant(*number) {
                        values.insert(*value, number.clone());
                    }
                }
            }
            _ => {}
        }
    }
    (bits, values)
}
