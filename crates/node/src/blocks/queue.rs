//! Keeps frames in order.

use crate::interface::Item;
use crate::model::QueueSpec;
use std::collections::VecDeque;

/// A queue of frames, first in, first out, bounded in frames and in bytes. A frame for which there is no room is lost as a whole.
#[derive(Clone, Debug)]
pub struct Queue {
    spec: QueueSpec,
    items: VecDeque<Item>,
    bytes: u64,
    taken: u64,
    lost: u64,
}

impl Queue {
    /// An empty queue.
    pub fn new(spec: QueueSpec) -> Queue {
        Queue { spec, items: VecDeque::new(), bytes: 0, taken: 0, lost: 0 }
    }

    /// Takes a frame; false: there is no room, it is lost.
    pub fn put(&mut self, item: Item) -> bool {
        let bytes = self.bytes + item.bytes.len() as u64;
        if self.items.len() >= self.spec.frames as usize || bytes > self.spec.bytes {
            self.lost += 1;
            return false;
        }
        self.bytes = bytes;
        self.taken += 1;
        self.items.push_back(item);
        true
    }

    /// Gives the first frame.
    pub fn take(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= item.bytes.len() as u64;
        Some(item)
    }

    /// The bytes of the first frame; 0 if there is none.
    pub fn head(&self) -> u32 {
        self.items.front().map_or(0, |item| item.bytes.len() as u32)
    }

    /// How many frames wait, and their bytes.
    pub fn length(&self) -> (u32, u64) {
        (self.items.len() as u32, self.bytes)
    }

    /// How many frames it has taken, and how many were lost for lack of room.
    pub fn counts(&self) -> (u64, u64) {
        (self.taken, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_bounded_in_frames_and_in_bytes() {
        let item = |length| Item { bytes: vec![length as u8; length], ..Item::default() };
        let mut queue = Queue::new(QueueSpec { frames: 3, bytes: 10 });
        assert_eq!([4, 6, 1].map(|length| queue.put(item(length))), [true, true, false]);
        assert_eq!((queue.length(), queue.head(), queue.counts()), ((2, 10), 4, (2, 1)));
        assert_eq!(queue.take(), Some(item(4)));
        assert_eq!([2, 2, 0].map(|length| queue.put(item(length))), [true, true, false]);
        assert_eq!((queue.length(), queue.counts()), ((3, 10), (4, 2)));
        assert_eq!(
            [(); 4].map(|()| queue.take().map(|item| item.bytes.len())),
            [Some(6), Some(2), Some(2), None]
        );
        assert_eq!((queue.length(), queue.head()), ((0, 0), 0));
    }
}
