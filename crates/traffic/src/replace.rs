//! Another plan while packets wait.
//!
//! What has the same handle, and is the same copy, is the same. Its queue keeps its packets (also beyond a smaller limit, until they
//! have left) and what was counted of it; a shaper keeps its tokens or credit; gates run on until the new list takes over at its time.
//! Turns, deficits and tags begin again. Packets of queues that are gone are discarded.

use crate::disciplines::Order;
use crate::egress::Egress;
use crate::plan::{Plan, Queue};
use crate::report::Discard;
use crate::store::Origin;
use crate::tree::Event;
use std::collections::HashMap;
use std::sync::Arc;

impl<P> Egress<P> {
    /// Another plan from now on. What finds no queue in it is given to `discarded`.
    pub fn replace(&mut self, plan: Arc<Plan>, now_ns: u64, mut discarded: impl FnMut(P, Discard)) {
        self.advance(now_ns);
        let now = self.now;
        let mut new = Egress::new(plan, now);
        new.slab = std::mem::replace(&mut self.slab, crate::store::Slab::new());
        new.random = self.random.clone();
        if let (Some(new), Some(old)) = (&mut new.link, &self.link) {
            new.follow(old);
        }
        new.keep_inner(self, now);
        let places = new.keep_queues(self, &mut discarded);
        // In the order of their times, so that those of one time stay in order.
        while let Some((time, event)) = self.tree.timers.expire(u64::MAX) {
            let Event::Packet { slot, queue } = event else { continue };
            match places[queue as usize] {
                Some(queue) => {
                    let timer = new.tree.timers.set(time, Event::Packet { slot, queue });
                    timer.expect("there is room for a timer of each packet");
                }
                None => {
                    let taken = self.tree.fifos[queue as usize].take_held(&mut new.slab, slot);
                    discarded(taken.packet, Discard::NoQueue);
                }
            }
        }
        new.rebuild();
        *self = new;
    }

    /// Keeps the state of nodes that take time into account.
    fn keep_inner(&mut self, old: &mut Egress<P>, now: u64) {
        if !self.tree.timed || !old.tree.timed {
            return;
        }
        let places: HashMap<Origin, usize> = old.origins.iter().copied().zip(0..).collect();
        for (inner, origin) in self.tree.inners.iter_mut().zip(&self.origins) {
            let Some(place) = places.get(origin) else { continue };
            let was = &mut old.tree.inners[*place].order;
            match (&mut inner.order, was) {
                (Order::Shaper(new), Order::Shaper(old)) => new.follow(old, now),
                (Order::Credit(new), Order::Credit(old)) => new.follow(old, now),
                (Order::Gates(new), Order::Gates(old)) => new.follow(old, now),
                _ => {}
            }
        }
    }

    /// Keeps the packets of queues. Gives the new number of each old queue, if it has one.
    fn keep_queues(
        &mut self,
        old: &mut Egress<P>,
        discarded: &mut impl FnMut(P, Discard),
    ) -> Vec<Option<u32>> {
        let numbers: HashMap<Origin, u32> = self.queues.origins.iter().copied().zip(0..).collect();
        let places: Vec<Option<u32>> =
            old.queues.origins.iter().map(|origin| numbers.get(origin).copied()).collect();
        for (from, place) in places.iter().enumerate() {
            let fifo = &mut old.tree.fifos[from];
            let Some(to) = *place else {
                while !fifo.is_empty() {
                    discarded(fifo.pop(&mut self.slab).packet, Discard::NoQueue);
                }
                continue;
            };
            let to = to as usize;
            let new = &mut self.tree.fifos[to];
            new.inherit(fifo);
            self.buffer.inherit(new, &self.settings[new.setting as usize]);
            self.len += new.packets as usize;
            self.bytes += new.bytes;
            self.queues.counts[to] = std::mem::take(&mut old.queues.counts[from]);
            self.queues.discarded[to] = old.queues.discarded[from];
            let average = |setting: &Queue| setting.red.as_ref().map(|red| red.average);
            let was = &old.settings[old.tree.fifos[from].setting as usize];
            if let (Some(new), Some(old)) = (self.queues.early.get_mut(to), old.queues.early.get(from))
                && average(was) == average(&self.settings[self.tree.fifos[to].setting as usize])
            {
                *new = old.clone();
            }
            if let (Some(Some(new)), Some(Some(old))) =
                (self.queues.streams.get_mut(to), old.queues.streams.get_mut(from))
            {
                new.follow(old, self.now);
            }
        }
        places
    }

    /// Makes ready what has packets, after lists were changed under the tree.
    pub(crate) fn rebuild(&mut self) {
        for queue in 0..self.tree.fifos.len() {
            if !self.tree.fifos[queue].is_empty() {
                self.tree.fill(queue as u32, self.now);
            }
        }
    }
}
