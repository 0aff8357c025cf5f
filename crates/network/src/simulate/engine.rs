//! Frames on their way: events in the order of their time.
//!
//! A frame at a port is one event: it comes to the queue. If the port is idle, it is sent at once, and since nothing can hold it up any
//! more, its arrival at the next node is known then: the account of that node decides, and the events of the ports after it are made.
//! (Frames of an account come over one link, so it sees them in the order of their arrival.) If the port is busy, the frame waits in the
//! port's queues. Two things tell when it leaves:
//!
//! - **First in, first out.** No later frame changes when a frame leaves, so its arrival at the next node is known when it comes, too. It still waits in
//!   the port's queue, whose limits decide whether it has room; before the next frame comes, those that have left until then are taken out.
//! - **Any other plan.** One event asks the port for its next frame when the present one has left.

use super::layout::{Frame, Hop, Layout, NONE, Step};
use super::product::{Arrival, Next};
use super::queue::Queue;

/// What happens. Its key is the time in picoseconds and, in the last bit, whether the frame is observed: at one time such a frame comes last. Of one
/// time, ports take their next frames before others come, and frames come in the order of their hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A port has sent its frame.
    Left(u32),
    /// A frame comes to the queue of its hop's port.
    Comes(Frame),
}

/// What was seen of a path, until the last bit was there. Times are in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) frames: u64,
    pub(super) largest: u64,
    pub(super) least: u64,
}

impl Seen {
    pub(super) const NOTHING: Seen = Seen { frames: 0, largest: 0, least: u64::MAX };

    pub(super) fn add(&mut self, delay: u64) {
        self.frames += 1;
        self.largest = self.largest.max(delay);
        self.least = self.least.min(delay);
    }
}

/// Frames that were discarded, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards {
    /// Their account did not hold their cost.
    pub policed: u64,
    /// The port had no room.
    pub no_room: u64,
    /// They had waited longer than the port allows.
    pub too_old: u64,
}

/// When the frames that are looked at came to the queue of each hop, and when their transmission began; in a directed search.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// Of each virtual link when the frame that is looked at is released.
    pub(super) released: Vec<u64>,
    /// The virtual link of each hop.
    pub(super) vl_of: Vec<u32>,
    pub(super) came: Vec<u64>,
    pub(super) began: Vec<u64>,
}

/// A network with frames in it.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) layout: Layout,
    events: Queue<What>,
    /// By leaf.
    pub(super) seen: Vec<Seen>,
    pub(super) discards: Discards,
    pub(super) hops: u64,
    pub(super) trace: Option<Trace>,
    /// Hops that are simulated; all if there is none of it.
    pub(super) only: Option<Vec<bool>>,
    /// Delay of the frame that is observed, by its tree's leaves.
    pub(super) observed: Vec<(u32, u64)>,
}

impl Engine {
    pub(super) fn new(layout: Layout) -> Engine {
        let seen = vec![Seen::NOTHING; layout.leaves.len()];
        Engine {
            // A key is twice a time.
            events: Queue::new(layout.between_hops.saturating_mul(2)),
            layout,
            seen,
            discards: Discards::default(),
            hops: 0,
            trace: None,
            only: None,
            observed: Vec::new(),
        }
    }

    /// A regulator lets a frame go: it comes to the ports of its source, one in each network.
    pub(super) fn release(&mut self, vl: usize, now: u64, length: u16, is_observed: bool) {
        for at in 0..self.layout.starts[vl].len() {
            let step = self.layout.starts[vl][at];
            self.come(now, step, Frame { released: now, hop: step.hop, length, is_observed });
        }
    }

    /// The time of the next event.
    #[inline]
    pub(super) fn next_time(&mut self) -> Option<u64> {
        self.events.next_key().map(|key| key >> 1)
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn step(&mut self) {
        let Some((key, what)) = self.events.pop() else { return };
        let now = key >> 1;
        match what {
            What::Comes(frame) => self.arrive(now, frame),
            What::Left(port) => self.ask(now, port),
        }
    }

    /// A frame will be at the queue of a hop's port after the latency of that port.
    #[inline]
    fn come(&mut self, now: u64, step: Step, frame: Frame) {
        if self.only.as_ref().is_some_and(|only| !only[step.hop as usize]) {
            return;
        }
        let time = now + step.latency;
        self.events.push(time << 1 | u64::from(frame.is_observed), What::Comes(frame));
    }

    #[inline]
    fn arrive(&mut self, now: u64, frame: Frame) {
        self.hops += 1;
        let hop = self.layout.hops[frame.hop as usize];
        if self.trace.is_some() {
            self.note(frame, |trace| &mut trace.came, now);
        }
        let at = hop.port as usize;
        if self.layout.ports[at].is_fifo {
            self.leave(now, at);
        }
        let (port, queues) = (&mut self.layout.ports[at], &mut self.layout.queues[at]);
        let length = u32::from(frame.length);
        let is_idle = port.busy_until <= now && queues.is_empty();
        if is_idle && queues.may_pass(hop.class, 1, length.into(), length) {
            queues.passed(hop.class, 1, length.into());
            port.most_waiting = port.most_waiting.max(length.into());
            self.send(now, hop, frame);
            return;
        }
        let arrival = Arrival { class: hop.class, len: length, ..Arrival::default() };
        if queues.offer(arrival, now / 1000, frame).is_err() {
            self.discards.no_room += 1;
            return;
        }
        port.most_waiting = port.most_waiting.max(queues.bytes());
        let free = port.busy_until.max(now);
        if port.is_fifo {
            if queues.len() == 1 {
                port.next_leaves = free;
            }
            self.send(free, hop, frame);
        } else if !port.is_asked {
            port.is_asked = true;
            self.events.push(free << 1, What::Left(hop.port));
        }
    }

    /// Takes the frames out of the queue of a port that have left it until now; each leaves when the one before has been sent.
    #[inline]
    fn leave(&mut self, now: u64, port: usize) {
        let (port, queues) = (&mut self.layout.ports[port], &mut self.layout.queues[port]);
        while !queues.is_empty() && port.next_leaves <= now {
            let Next::Leaves(departed) = queues.next(port.next_leaves / 1000) else { break };
            port.next_leaves += port.time_of(u64::from(departed.len) + self.layout.overhead);
        }
    }

    /// Asks a port for its next frame.
    #[inline]
    fn ask(&mut self, now: u64, port: u32) {
        let at = port as usize;
        loop {
            match self.layout.queues[at].next(now / 1000) {
                Next::Leaves(departed) => {
                    let frame = departed.packet;
                    let hop = self.layout.hops[frame.hop as usize];
                    self.send(now, hop, frame);
                    break;
                }
                Next::Discarded(..) => self.discards.too_old += 1,
                Next::Nothing => break,
            }
        }
        let is = &mut self.layout.ports[at];
        is.is_asked = !self.layout.queues[at].is_empty();
        if is.is_asked {
            let time = is.busy_until;
            self.events.push(time << 1, What::Left(port));
        }
    }

    /// A port begins to send a frame.
    #[inline]
    fn send(&mut self, now: u64, hop: Hop, frame: Frame) {
        if self.trace.is_some() {
            self.note(frame, |trace| &mut trace.began, now);
        }
        let length = u64::from(frame.length);
        let overhead = self.layout.overhead;
        let port = &mut self.layout.ports[hop.port as usize];
        // The last bit of a frame is received before the gap after it, but a bound counts with whole times of the wire.
        port.busy_until = now + port.time_of(length + overhead);
        let arrives = port.busy_until + port.propagation;
        if hop.leaf != NONE {
            let delay = arrives - frame.released;
            self.seen[hop.leaf as usize].add(delay);
            if frame.is_observed {
                self.observed.push((hop.leaf, delay));
            }
            return;
        }
        if hop.account != NONE {
            let account = &mut self.layout.accounts[hop.account as usize].0;
            if !account.admit(arrives / 1000, length) {
                self.discards.policed += 1;
                return;
            }
        }
        for at in hop.after.0..hop.after.1 {
            let step = self.layout.next[at as usize];
            self.come(arrives, step, Frame { hop: step.hop, ..frame });
        }
    }

    fn note(&mut self, frame: Frame, of: impl FnOnce(&mut Trace) -> &mut Vec<u64>, now: u64) {
        let Some(trace) = &mut self.trace else { return };
        let vl = trace.vl_of[frame.hop as usize] as usize;
        if trace.released[vl] == frame.released {
            of(trace)[frame.hop as usize] = now;
        }
    }
}
