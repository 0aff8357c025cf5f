//! By what the nodes of a block are told apart while a graph is specialised, from the finest kind on. What a kind goes by stays
//! the same at the entry of a node, whatever [joins](State::join) there.

use crate::state::{Place, State};
use millrace_pipeline::SlotId;

/// What a node is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All that is known.
    Exact,
    /// Headers and cursor.
    Shaped,
    /// Which headers are valid, and whether those are in the packet.
    Sorted,
    /// Nothing but the loop that they belong to.
    General,
}

impl Kind {
    /// Whether a node with that entry is for packets in a state, of which some slots are kept.
    pub(crate) fn takes(self, entry: &State, state: &State, keep: impl Fn(SlotId) -> bool) -> bool {
        let is_shaped = || entry.places == state.places && entry.cursor == state.cursor;
        entry.phase == state.phase
            && match self {
                Kind::Exact => is_shaped() && entry.known.is_left_of(&state.known, keep),
                Kind::Shaped => is_shaped(),
                Kind::Sorted => sorts(entry).eq(sorts(state)),
                Kind::General => true,
            }
    }
}

/// What headers have in common, wherever in the packet they are.
fn sorts(state: &State) -> impl Iterator<Item = Place> {
    state.places.iter().map(|place| match place {
        Place::At(_) => Place::Pointed,
        other => *other,
    })
}
