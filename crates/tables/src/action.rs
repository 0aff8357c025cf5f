//! Actions as tables see them: a number and packed arguments, each distinct pair stored once.

use std::collections::HashMap;
use std::sync::Arc;

/// One action with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ActionCall {
    /// Which action; the numbering is the caller's.
    pub action: u32,
    /// Its control-plane arguments, packed as the caller likes.
    pub data: Box<[u8]>,
}

impl ActionCall {
    /// An action with its packed arguments.
    pub fn new(action: u32, data: impl Into<Box<[u8]>>) -> ActionCall {
        ActionCall { action, data: data.into() }
    }
}

/// Names one stored [`ActionCall`] of one table. Equal calls have equal names, so a consumer can keep what it
/// prepared per call in an array indexed by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionDataId(pub u32);

/// The distinct calls of one table, counted by use. Freed names are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionStore {
    slots: Vec<Interned>,
    free: Vec<ActionDataId>,
    by_call: HashMap<Arc<ActionCall>, ActionDataId>,
}

#[derive(Clone, Debug)]
struct Interned {
    call: Arc<ActionCall>,
    uses: u32,
}

impl ActionStore {
    /// The name of `call`, with one more use.
    pub(crate) fn intern(&mut self, call: ActionCall) -> ActionDataId {
        if let Some(&id) = self.by_call.get(&call) {
            self.slots[id.0 as usize].uses += 1;
            return id;
        }
        let call = Arc::new(call);
        let slot = Interned { call: Arc::clone(&call), uses: 1 };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id.0 as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                // Uses come from entries, so there are at most MAX_ENTRIES + 1 distinct calls.
                ActionDataId((self.slots.len() - 1) as u32)
            }
        };
        self.by_call.insert(call, id);
        id
    }

    /// Takes one use back; the last one frees the name.
    pub(crate) fn release(&mut self, id: ActionDataId) {
        let slot = &mut self.slots[id.0 as usize];
        slot.uses -= 1;
        if slot.uses == 0 {
            self.by_call.remove(&slot.call);
            slot.call = Arc::default();
            self.free.push(id);
        }
    }

    /// The call of a name; `None` when the name was never given out.
    pub(crate) fn get(&self, id: ActionDataId) -> Option<&ActionCall> {
        self.slots.get(id.0 as usize).map(|slot| &*slot.call)
    }

    /// The number of distinct calls.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.by_call.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_calls_share_a_name_until_the_last_use_ends() {
        let mut store = ActionStore::default();
        let first = store.intern(ActionCall::new(1, [7]));
        assert_eq!(store.intern(ActionCall::new(1, [7])), first);
        let other = store.intern(ActionCall::new(1, [8]));
        assert_ne!(first, other);
        assert_eq!(store.len(), 2);

        store.release(first);
        assert_eq!(store.get(first), Some(&ActionCall::new(1, [7])));
        store.release(first);
        assert_eq!(store.len(), 1);
        assert_eq!(store.intern(ActionCall::new(9, [])), first, "the freed name is used again");
        assert_eq!(store.get(first), Some(&ActionCall::new(9, [])));
        assert_eq!(store.get(ActionDataId(99)), None);
    }
}
