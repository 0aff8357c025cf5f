//! Children that wait for their turn, in a ring.

use crate::store::NONE;

/// A list of children without allocation: each has the number of the one after it.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    first: u32,
    last: u32,
    next: Box<[u32]>,
}

impl Ring {
    pub(crate) fn new(children: usize) -> Ring {
        Ring { first: NONE, last: NONE, next: vec![NONE; children].into() }
    }

    #[inline]
    pub(crate) fn push(&mut self, child: u32) {
        self.next[child as usize] = NONE;
        match self.last {
            NONE => self.first = child,
            last => self.next[last as usize] = child,
        }
        self.last = child;
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(crate) fn pop(&mut self) {
        self.first = self.next[self.first as usize];
        if self.first == NONE {
            self.last = NONE;
        }
    }

    /// The first goes to the end.
    #[inline]
    pub(crate) fn turn(&mut self) {
        let first = self.first;
        if first != self.last {
            self.pop();
            self.push(first);
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}
