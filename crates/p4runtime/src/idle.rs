//! Timers of entries that can be idle for too long.
//!
//! Nobody scans tables: an entry with a timeout is looked at when its timeout has passed, and again when its last hit
//! says that it may have.

use millrace_pipeline::TableId;
use millrace_state::EntryIndex;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// When to look at which entry; times are those of the switch, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BinaryHeap<Reverse<(u64, u64, TableId, u32)>>,
    /// The timer that counts for an entry: an entry has one.
    current: HashMap<(TableId, EntryIndex), u64>,
    next: u64,
}

impl Timers {
    /// Looks at an entry at a time, and not at the time that was set before.
    pub(crate) fn set(&mut self, table: TableId, index: EntryIndex, at_ns: u64) {
        self.next += 1;
        self.current.insert((table, index), self.next);
        self.due.push(Reverse((at_ns, self.next, table, index.0)));
    }

    /// Looks at an entry no more.
    pub(crate) fn cancel(&mut self, table: TableId, index: EntryIndex) {
        self.current.remove(&(table, index));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// The entries that have a timer.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (TableId, EntryIndex)> {
        self.current.keys().copied()
    }

    /// An entry that is to be looked at now.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(TableId, EntryIndex)> {
        while let Some(Reverse((at_ns, serial, table, index))) = self.due.peek().copied() {
            if at_ns > now_ns {
                break;
            }
            self.due.pop();
            let entry = (table, EntryIndex(index));
            if self.current.get(&entry) == Some(&serial) {
                self.current.remove(&entry);
                return Some(entry);
            }
        }
        if self.current.is_empty() {
            self.due.clear();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::entity::EntityRef;

    #[test]
    fn an_entry_comes_up_once_at_its_last_time() {
        let (table, one, two) = (TableId::new(0), EntryIndex(1), EntryIndex(2));
        let mut timers = Timers::default();
        timers.set(table, one, 10);
        timers.set(table, two, 20);
        timers.set(table, one, 30);
        assert_eq!(timers.pop(15), None);
        assert_eq!(timers.pop(30), Some((table, two)));
        assert_eq!(timers.pop(30), Some((table, one)));
        assert!(timers.is_empty());
        timers.set(table, one, 40);
        timers.cancel(table, one);
        assert_eq!(timers.pop(99), None);
    }
}
