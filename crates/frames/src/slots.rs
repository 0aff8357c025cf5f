//! The memory of packets: slots of one size, each of one packet alone.

#![allow(unsafe_code)]

use crate::burst::TAILROOM;
use crate::memory::{Memory, MemoryError};
use crate::packet::{HEADROOM, MAX_FRAME};

use std::ptr::NonNull;
use std::sync::Arc;

const LINE: usize = 64;

/// Where the frame of an empty packet starts in its slot: a tag that a driver puts in front leaves the headroom whole.
pub(crate) const START: usize = HEADROOM + LINE;

/// What a packet may use of its slot.
pub(crate) const ROOM: usize = START + MAX_FRAME;

/// From one slot to the next: an odd number of cache lines, so that frames do not all begin in the same few sets of a cache.
const STRIDE: usize = ROOM + 2 * LINE;

const _: () = assert!(STRIDE - ROOM >= TAILROOM && STRIDE.is_multiple_of(LINE) && (STRIDE / LINE) % 2 == 1);

/// Most slots in one memory: places in it are numbers of 32 bits.
pub(crate) const MAX_SLOTS: usize = u32::MAX as usize / STRIDE;

/// Memory for slots, and those that nobody uses.
#[derive(Debug)]
pub(crate) struct Slots {
    shared: Arc<Shared>,
    /// Used before; all of this memory.
    free: Vec<Slot>,
    made: usize,
    limit: usize,
}

/// Memory of which slots are parts.
#[derive(Debug)]
struct Shared(Memory);

// SAFETY: its bytes are reached only through slots, which do not overlap and have one owner each, and through a burst while it
// borrows the slots that it lends.
unsafe impl Sync for Shared {}

/// A part of a memory, reached through this value alone.
#[derive(Debug)]
pub(crate) struct Slot {
    shared: Arc<Shared>,
    start: NonNull<u8>,
}

// SAFETY: the bytes belong to this value alone, and the memory is there for as long as any slot.
unsafe impl Send for Slot {}
// SAFETY: as above; a shared slot is only read.
unsafe impl Sync for Slot {}

impl Slots {
    /// Memory for up to `limit` slots, and never more than [`MAX_SLOTS`]. What no slot uses takes no memory.
    pub(crate) fn new(limit: usize) -> Slots {
        Slots::try_new(limit)
            .unwrap_or_else(|_| std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; STRIDE]>()))
    }

    /// As [`Slots::new`], or what the system says when it has not so much memory.
    pub(crate) fn try_new(limit: usize) -> Result<Slots, MemoryError> {
        let limit = limit.min(MAX_SLOTS);
        let memory = Memory::zeroed(limit * STRIDE)?;
        Ok(Slots { shared: Arc::new(Shared(memory)), free: Vec::new(), made: 0, limit })
    }

    /// A slot that nobody uses, if there is one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.free.pop().or_else(|| self.make())
    }

    /// Takes a slot back. One of another memory is freed.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot) {
        if self.has(&slot) {
            self.free.push(slot);
        }
    }

    /// How many can be taken now.
    pub(crate) fn available(&self) -> usize {
        self.free.len() + self.limit - self.made
    }

    /// Most slots, in use and not.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    #[cold]
    fn make(&mut self) -> Option<Slot> {
        if self.made == self.limit {
            return None;
        }
        // SAFETY: the memory has room for as many slots as the limit.
        let start = unsafe { self.shared.0.start().add(self.made * STRIDE) };
        self.made += 1;
        Some(Slot { shared: Arc::clone(&self.shared), start })
    }

    #[inline]
    fn has(&self, slot: &Slot) -> bool {
        Arc::ptr_eq(&self.shared, &slot.shared)
    }
}

impl Slot {
    /// A slot with memory of its own.
    pub(crate) fn alone() -> Slot {
        Slots::new(1).take().expect("the first of one")
    }

    /// Whether another slot is of the same memory.
    #[inline]
    pub(crate) fn is_with(&self, other: &Slot) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The start and the bytes of the memory that it is a part of. Only its own bytes may be reached there.
    #[inline]
    pub(crate) fn memory(&self) -> (NonNull<u8>, usize) {
        (self.shared.0.start(), self.shared.0.size())
    }

    /// Where it starts in its memory.
    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.start.as_ptr() as usize - self.shared.0.start().as_ptr() as usize
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8; ROOM] {
        // SAFETY: ROOM initialised bytes from `start` on belong to this value alone.
        unsafe { self.start.cast().as_ref() }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; ROOM] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { self.start.cast().as_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_outlive_what_made_them() {
        let mut slots = Slots::new(2);
        let mut slot = slots.take().unwrap();
        drop(slots);
        slot.bytes_mut().fill(3);
        assert!(slot.bytes().iter().all(|byte| *byte == 3));
    }
}
