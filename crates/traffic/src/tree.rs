//! The tree of a port while it runs: which queue sends next.
//!
//! A choice goes down from the root: each node says whose turn it is and, once the length of that child's packet is known, whether it
//! may leave. When the packet has left, each node on the way up is told. A node that has children with packets but may not send before
//! some time leaves the ready children of its parent, with a timer; the timer, or a packet that comes to an empty queue below, puts it
//! back.

use crate::disciplines::{Body, Child, Discipline, Inner, Order, Permit, with};
use crate::plan::MAX_DEPTH;
use crate::store::{Fifo, NONE};
use crate::wheel::{Timer, Wheel};

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An inner node may send.
    Node(u32),
    /// The gate before a credit-based shaper turns.
    Gate(u32),
    /// A packet in this slot may leave this queue.
    Packet { slot: u32, queue: u32 },
}

/// Nodes, queues and timers.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) children: Vec<Child>,
    pub(crate) inners: Vec<Inner>,
    pub(crate) fifos: Vec<Fifo>,
    pub(crate) timers: Wheel<Event>,
    /// Bytes that the wire adds to a frame.
    pub(crate) overhead: u32,
    /// Some nodes wait for a time.
    pub(crate) timed: bool,
    /// Inner nodes that wait for a time or for a packet, and their timers.
    pub(crate) waiting: usize,
    pub(crate) wakes: Vec<Option<Timer>>,
    /// From the root down: inner nodes and the children that were chosen, and how many.
    pub(crate) path: [(u32, u32); MAX_DEPTH],
    pub(crate) len: usize,
    /// The root may have something that leaves now.
    pub(crate) ready: bool,
}

/// A queue and the length of its first packet on the wire.
pub(crate) type Pick = (u32, u32);

/// What became of a question.
enum Asked {
    /// The packet may leave.
    Now,
    /// This node has to choose again.
    Again(u32),
    /// Nothing may leave.
    Nothing,
}

/// The root among the inner nodes.
const ROOT: u32 = 0;

impl Tree {
    /// A queue that was empty has a packet.
    #[inline]
    pub(crate) fn fill(&mut self, queue: u32, now_ns: u64) {
        let Fifo { parent, position, .. } = self.fifos[queue as usize];
        self.insert(parent, position, now_ns);
        if self.waiting > 0 || !self.inners[parent as usize].ready {
            self.activate(parent, now_ns);
        }
    }

    /// A child is ready that was not.
    #[inline]
    fn insert(&mut self, inner: u32, child: u32, now_ns: u64) {
        let order = &mut self.inners[inner as usize].order;
        with!(order, order => order.insert(child, now_ns));
        if let Order::Credit(credit) = order
            && credit.gate.is_some()
            && !credit.turning
        {
            self.turn(inner, now_ns);
        }
    }

    /// A node may have something that leaves: it waits no longer and is ready from now on, and so are all above it.
    pub(crate) fn activate(&mut self, mut inner: u32, now_ns: u64) {
        loop {
            if self.inners[inner as usize].waits {
                self.unblock(inner);
            }
            let this = &mut self.inners[inner as usize];
            let (parent, position) = (this.parent, this.position);
            let was_ready = std::mem::replace(&mut this.ready, true);
            if parent == NONE {
                self.ready = true;
                return;
            }
            if !was_ready {
                self.insert(parent, position, now_ns);
            } else if self.waiting == 0 {
                return;
            }
            inner = parent;
        }
    }

    /// A node waits no longer.
    pub(crate) fn unblock(&mut self, inner: u32) {
        let node = &mut self.inners[inner as usize];
        if std::mem::replace(&mut node.waits, false) {
            self.waiting -= 1;
        }
        if let Some(timer) = self.wakes[inner as usize].take() {
            self.timers.cancel(timer);
        }
    }

    /// A node waits until a time: if it is `u64::MAX`, for a packet that comes below it.
    fn block(&mut self, inner: u32, time: u64) {
        self.inners[inner as usize].waits = true;
        self.waiting += 1;
        if time < u64::MAX {
            let timer = self.timers.set(time, Event::Node(inner));
            self.wakes[inner as usize] = Some(timer.expect("there is room for a timer of each node"));
        }
    }

    /// The gate before a credit-based shaper opens or closes, or is looked at since the shaper is in use again.
    pub(crate) fn turn(&mut self, credit: u32, now_ns: u64) {
        let gates = self.inners[credit as usize].parent;
        let Order::Credit(shaper) = &self.inners[credit as usize].order else { return };
        let Some(gate) = shaper.gate else { return };
        let Order::Gates(nodes) = &mut self.inners[gates as usize].order else { return };
        let (is_open, turns) = nodes.state(gate, now_ns);
        let Order::Credit(shaper) = &mut self.inners[credit as usize].order else { return };
        shaper.turn(is_open, now_ns);
        shaper.turning = turns < u64::MAX && !shaper.is_idle(now_ns);
        if shaper.turning {
            let timer = self.timers.set(turns, Event::Gate(credit));
            timer.expect("there is room for timers of each node");
        }
    }

    /// The queue that sends now. The way to it is kept for [`Tree::sent`] and [`Tree::dropped`].
    #[inline]
    pub(crate) fn choose(&mut self, now_ns: u64) -> Option<Pick> {
        if !self.ready {
            return None;
        }
        let pick = self.pick(now_ns);
        self.ready = pick.is_some();
        pick
    }

    fn pick(&mut self, now_ns: u64) -> Option<Pick> {
        let (mut inner, mut depth) = (ROOT, 0);
        loop {
            let node = &mut self.inners[inner as usize];
            let Some(child) = with!(&mut node.order, order => order.first()) else {
                self.path[depth % MAX_DEPTH].0 = inner;
                inner = self.leave(&mut depth, now_ns)?;
                continue;
            };
            self.path[depth % MAX_DEPTH] = (inner, child);
            match self.children[(node.children + child) as usize].body() {
                Body::Inner(below) => {
                    inner = below;
                    depth += 1;
                }
                Body::Queue(queue) => {
                    let len = self.fifos[queue as usize].head_len + self.overhead;
                    match self.ask(&mut depth, len, now_ns) {
                        Asked::Now => return Some((queue, len)),
                        Asked::Again(from) => inner = from,
                        Asked::Nothing => return None,
                    }
                }
            }
        }
    }

    /// Whether all nodes on the path let a packet of so many bytes leave.
    #[inline]
    fn ask(&mut self, depth: &mut usize, len: u32, now_ns: u64) -> Asked {
        self.len = *depth + 1;
        loop {
            let (inner, child) = self.path[*depth % MAX_DEPTH];
            let permit = match &mut self.inners[inner as usize].order {
                Order::Priority(_) | Order::RoundRobin(_) | Order::Fair(_) => Permit::Now,
                other => with!(other, order => order.permits(child, len, now_ns)),
            };
            match permit {
                Permit::Now if *depth == 0 => return Asked::Now,
                Permit::Now => *depth -= 1,
                Permit::Another => return Asked::Again(inner),
                Permit::Until(time) => {
                    self.block(inner, time);
                    return self.leave(depth, now_ns).map_or(Asked::Nothing, Asked::Again);
                }
            }
        }
    }

    /// The last node of the path has nothing that may leave now: its parent has it among its ready children no more. Gives the parent.
    fn leave(&mut self, depth: &mut usize, now_ns: u64) -> Option<u32> {
        let last = self.path[*depth % MAX_DEPTH].0;
        self.inners[last as usize].ready = false;
        *depth = depth.checked_sub(1)?;
        let (inner, child) = self.path[*depth % MAX_DEPTH];
        with!(&mut self.inners[inner as usize].order, order => order.remove(child, now_ns));
        Some(inner)
    }

    /// The packet that was chosen has left its queue for the wire.
    #[inline]
    pub(crate) fn sent(&mut self, (queue, len): Pick, now_ns: u64) {
        let mut ready = !self.fifos[queue as usize].is_empty();
        for (inner, child) in self.path[..self.len.min(MAX_DEPTH)].iter().rev() {
            let node = &mut self.inners[*inner as usize];
            with!(&mut node.order, order => {
                order.sent(*child, len, ready, now_ns);
                ready = !order.is_empty();
            });
            node.ready = ready;
        }
        self.ready = ready;
    }

    /// The packet that was chosen was discarded.
    pub(crate) fn dropped(&mut self, queue: u32, now_ns: u64) {
        if !self.fifos[queue as usize].is_empty() {
            return;
        }
        for (inner, child) in self.path[..self.len.min(MAX_DEPTH)].iter().rev() {
            let node = &mut self.inners[*inner as usize];
            let is_empty = with!(&mut node.order, order => {
                order.remove(*child, now_ns);
                order.is_empty()
            });
            if !is_empty {
                return;
            }
            node.ready = false;
        }
        self.ready = false;
    }
}
