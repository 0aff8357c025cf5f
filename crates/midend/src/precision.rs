//! How precisely the nodes of a block are told apart while a graph is specialised, from the finest precision on. The facts that a
//! precision compares stay the same at the entry of a node, whatever [joins](Facts::join) there.

use crate::facts::{Facts, HeaderPlace};
use millrace_pipeline::SlotId;

/// What a node is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// All that is known.
    Exact,
    /// Headers and cursor.
    Shaped,
    /// Which headers are valid, and whether those are in the packet.
    Sorted,
    /// Nothing but the loop that they belong to.
    General,
}

impl Precision {
    /// Whether a node with that entry is for packets with these facts, of which some slots are kept.
    pub(crate) fn takes(self, entry: &Facts, facts: &Facts, keep: impl Fn(SlotId) -> bool) -> bool {
        let is_shaped = || entry.places == facts.places && entry.cursor == facts.cursor;
        entry.phase == facts.phase
            && match self {
                Precision::Exact => is_shaped() && entry.constants.is_left_of(&facts.constants, keep),
                Precision::Shaped => is_shaped(),
                Precision::Sorted => sorts(entry).eq(sorts(facts)),
                Precision::General => true,
            }
    }
}

/// What headers have in common, wherever in the packet they are.
fn sorts(facts: &Facts) -> impl Iterator<Item = HeaderPlace> {
    facts.places.iter().map(|place| match place {
        HeaderPlace::At(_) => HeaderPlace::Pointed,
        other => *other,
    })
}
