//! Parsers: states and transitions.

use crate::wording::{expression, key_set, list};
use crate::{Budget, Graph, GraphsError, NodeKind};
use millrace_sema::hir::{KeySet, ParserId, Program, StateRef, Transition};
use millrace_syntax::SourceMap;

pub(crate) fn graph(
    program: &Program,
    sources: &SourceMap,
    id: ParserId,
    budget: &mut Budget,
) -> Result<Graph, GraphsError> {
    let parser = &program.parsers[id];
    let mut graph = Graph::new(&parser.name, true);
    for state in &parser.states {
        let mut label = state.name.clone();
        if let Transition::Select { keys, .. } = &state.transition {
            label.push('\n');
            label.push_str(&list(keys.iter().map(|key| expression(sources, key))));
        }
        graph.node(budget, label, NodeKind::State, 0)?;
    }
    let [accept, reject] = [parser.states.len(), parser.states.len() + 1];
    for label in ["accept", "reject"] {
        graph.node(budget, label.into(), NodeKind::State, 0)?;
    }
    let place = |target: &StateRef| match target {
        StateRef::State(state) => *state,
        StateRef::Accept => accept,
        StateRef::Reject => reject,
    };
    for (from, state) in parser.states.iter().enumerate() {
        match &state.transition {
            Transition::Goto(target) => graph.edge(budget, from, place(target), "always".into())?,
            Transition::Select { keys, cases, .. } => {
                let mut is_total = false;
                for case in cases {
                    is_total |= case.keysets.iter().all(|set| matches!(set, KeySet::Any));
                    let sets = case.keysets.iter().map(|set| key_set(program, sources, set));
                    let label = match case.keysets.as_slice() {
                        // One for all keys.
                        [KeySet::Any] if keys.len() > 1 => "default".into(),
                        _ => list(sets),
                    };
                    graph.edge(budget, from, place(&case.target), label)?;
                }
                if !is_total {
                    graph.edge(budget, from, reject, "fallthrough".into())?;
                }
            }
        }
    }
    Ok(graph)
}
