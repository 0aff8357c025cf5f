//! Another plan while packets wait.
//!
//! What has the same handle, and is the same copy, is the same. Its queue keeps its packets (also beyond a smaller limit, until they
//! have left) and what was counted of it; a shaper keeps its tokens or credit; gates run on until the new list takes over at its time.
//! Turns, deficits and tags begin again. Packets of queues that are gone are discarded, and so are those that are longer than the new
//! plan's longest frame: no gate of it may ever be open for as long, and they would keep those after them for ever.

use crate::admission::Room;
use crate::disciplines::Order;
use crate::egress::Egress;
use crate::plan::{Plan, Queue};
use crate::report::Discard;
use crate::store::{Origin, Taken};
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
        let longest = new.plan.port().longest;
        if longest < self.plan.port().longest {
            new.discard_longer(longest, &mut discarded);
        }
        // In the order of their times, so that those of one time stay in order.
        while let Some((time, event)) = self.tree.timers.expire(u64::MAX) {
            let Event::Packet { slot, queue } = event else { continue };
            match places[queue as usize] {
                Some(queue) if new.slab.at(slot).len > longest => {
                    let taken = new.tree.fifos[queue as usize].take_held(&mut new.slab, slot);
                    new.too_long(queue, taken, &mut discarded);
                }
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

    /// Discards the packets in lists that are longer; the others stay in their order.
    fn discard_longer(&mut self, longest: u32, discarded: &mut impl FnMut(P, Discard)) {
        for queue in 0..self.tree.fifos.len() {
            let fifo = &self.tree.fifos[queue];
            for _ in 0..fifo.packets - fifo.held {
                let taken = self.tree.fifos[queue].pop(&mut self.slab);
                if taken.len > longest {
                    self.too_long(queue as u32, taken, discarded);
                    continue;
                }
                // Taken out and put in again, its room is counted as before.
                self.gone(queue as u32, &taken);
                let fifo = &mut self.tree.fifos[queue];
                let room = if taken.overflow { Room::Overflow } else { Room::Buffer };
                self.buffer.put(fifo, &self.settings[fifo.setting as usize], taken.len, room);
                self.len += 1;
                self.bytes += u64::from(taken.len);
                let slot = self.slab.put(taken.into());
                fifo.append(&mut self.slab, slot);
            }
        }
    }

    /// A packet that was taken out is longer than the longest.
    fn too_long(&mut self, queue: u32, taken: Taken<P>, discarded: &mut impl FnMut(P, Discard)) {
        self.gone(queue, &taken);
        self.queues.discarded[queue as usize][Discard::TooLong as usize] += 1;
        discarded(taken.packet, Discard::TooLong);
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
