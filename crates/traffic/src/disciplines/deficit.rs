//! Deficit round robin (M. Shreedhar and G. Varghese, SIGCOMM 1995).
//!
//! Each ready child has a deficit counter. When it comes to the front of the ring its quantum is added. It sends while the packet at its
//! head is no longer than the counter, which each packet lowers by its length; then it goes to the end. A child that has nothing to send
//! any more loses its counter.
//!
//! **Theorem** (Lemma 1 and Theorem 1 of the paper). With a longest packet `L` and quanta of at least `L`: the counter is always at
//! least 0 and below `L` at the end of a turn, so in any `m` turns a child that stays ready sends between `m · Q - L` and `m · Q + L`
//! bytes; two children `i` and `j` that stay ready over an interval have `|S(i) / Q(i) - S(j) / Q(j)| <= 1 + L / Q(i) + L / Q(j)`.
//! **Cost.** A quantum below the longest packet is refused, so a child sends in each of its turns, and a packet takes O(1) steps.
//!
//! Lengths are those on the wire.

use super::{Discipline, Permit};
use crate::store::NONE;

#[derive(Clone, Copy, Debug)]
struct Turn {
    next: u32,
    quantum: u32,
    deficit: u32,
}

/// A quantum each.
#[derive(Clone, Debug)]
pub(crate) struct Deficit {
    first: u32,
    last: u32,
    /// The first has got its quantum for this turn.
    given: bool,
    turns: Box<[Turn]>,
}

impl Deficit {
    pub(crate) fn new(quanta: impl Iterator<Item = u32>) -> Deficit {
        let turns = quanta.map(|quantum| Turn { next: NONE, quantum, deficit: 0 }).collect();
        Deficit { first: NONE, last: NONE, given: false, turns }
    }

    #[inline]
    fn push(&mut self, child: u32) {
        self.turns[child as usize].next = NONE;
        match self.last {
            NONE => self.first = child,
            last => self.turns[last as usize].next = child,
        }
        self.last = child;
    }

    /// Ends the turn of the first, which is in the ring no longer.
    #[inline]
    fn pop(&mut self) {
        self.first = self.turns[self.first as usize].next;
        if self.first == NONE {
            self.last = NONE;
        }
        self.given = false;
    }
}

impl Discipline for Deficit {
    #[inline]
    fn insert(&mut self, child: u32, _now_ns: u64) {
        self.push(child);
    }

    #[inline]
    fn first(&mut self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    fn permits(&mut self, child: u32, len: u32, _now_ns: u64) -> Permit {
        let turn = &mut self.turns[child as usize];
        if !self.given {
            turn.deficit += turn.quantum;
            self.given = true;
        }
        if len <= turn.deficit {
            return Permit::Now;
        }
        match self.first == self.last {
            true => self.given = false,
            false => {
                self.pop();
                self.push(child);
            }
        }
        Permit::Another
    }

    #[inline]
    fn sent(&mut self, child: u32, len: u32, ready: bool, now_ns: u64) {
        self.turns[child as usize].deficit -= len;
        if !ready {
            self.remove(child, now_ns);
        }
    }

    #[inline]
    fn remove(&mut self, child: u32, _now_ns: u64) {
        self.turns[child as usize].deficit = 0;
        self.pop();
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.first == NONE
    }
}
