//! Const entries: comparisons of the key with constants.

use super::{Found, Making};
use crate::tables::content::first_wins;
use crate::tables::slices::Wanted;
use millrace_netlist::NodeId;
use millrace_pipeline::{Bits, MatchKind, Program};

/// Cycles from a key to what is found.
pub(super) const CYCLES: u32 = 3;

impl Making<'_> {
    pub(super) fn constant(&mut self, program: &Program) -> Found {
        let unit = self.unit;
        let entries = &program.tables[unit.table].entries;
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|at| first_wins(&unit.fields, entries[*at].priority, &entries[*at].matches));
        let width = unit.stored.bits();
        let mut matched = Vec::new();
        for (place, at) in order.into_iter().enumerate() {
            let entry = &entries[at];
            let (Some(key), Some(wanted)) = (self.key, Wanted::of(&unit.fields, &entry.matches)) else {
                continue;
            };
            let hit = self.compared(key, &wanted);
            let hit = self.m.delayed(&format!("matched{place}"), hit, None);
            // Entries of a program are numbered from 1 on, in its order.
            let stored = unit.stored_call(program, &entry.call, at as u32 + 1);
            matched.push((hit, self.m.constant(stored)));
        }
        let found = self.m.first_found(&matched);
        let (hit, stored) = found.unwrap_or_else(|| (self.m.number(1, 0), self.m.number(width, 0)));
        let (hit, stored) = (self.m.delayed("hit", hit, None), self.m.delayed("stored", stored, None));
        Found { hit, stored, cycle: CYCLES }
    }

    /// Whether a key is what an entry wants.
    fn compared(&mut self, key: NodeId, wanted: &Wanted) -> NodeId {
        let m = &mut self.m;
        let mut low = m.width(key);
        let mut all = Vec::new();
        for (width, kind) in &self.unit.fields {
            low -= width;
            let asked = m.slice(key, low, *width);
            let part = |bits: &Bits| bits.slice(low + width - 1, low);
            let (value, mask) = (m.constant(part(&wanted.value)), m.constant(part(&wanted.mask)));
            all.push(match kind {
                MatchKind::Range => {
                    let (from, to) = (m.le(value, asked), m.le(asked, mask));
                    m.and(from, to)
                }
                _ => {
                    let kept = m.and(asked, mask);
                    m.eq(kept, value)
                }
            });
        }
        m.all(&all)
    }
}
