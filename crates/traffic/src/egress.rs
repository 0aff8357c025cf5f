//! What leaves a port, and when.

use crate::admission::{Buffer, Room};
use crate::asynchronous::{Group, Ineligible, Scheduler};
use crate::layout::{self, Layout, Route};
use crate::link::Link;
use crate::passing::Passing;
use crate::plan::{Asynchronous, CLASSES, MAX_DEPTH, Plan, Queue};
use crate::red::{Early, Fate, Random};
use crate::report::{Admitted, Arrival, Counts, Departed, Discard, Next, QueueReport, Refused};
use crate::store::{Fifo, Origin, Slab, Slot, Taken};
use crate::tokens::Tokens;
use crate::tree::{Event, Tree};
use crate::wheel::{MAX_TIMERS, Wheel};
use std::sync::Arc;

/// The queues of a port, and the tree that says which of them sends.
///
/// Times are those of one clock, in nanoseconds; one that is before the last one counts as that.
#[derive(Debug)]
pub struct Egress<P> {
    pub(crate) plan: Arc<Plan>,
    pub(crate) slab: Slab<P>,
    pub(crate) tree: Tree,
    pub(crate) buffer: Buffer,
    pub(crate) link: Option<Link>,
    pub(crate) settings: Vec<Queue>,
    pub(crate) routes: [Route; CLASSES],
    /// Of each class whose packets may pass an idle port as they come.
    plain: [Option<Plain>; CLASSES],
    /// What bursts need that may pass an idle port in an order of its own.
    pub(crate) passing: Option<Box<Passing>>,
    pub(crate) queues: PerQueue,
    pub(crate) origins: Vec<Origin>,
    pub(crate) random: Random,
    pub(crate) len: usize,
    pub(crate) bytes: u64,
    pub(crate) now: u64,
}

/// The queue of a class, and what it has room for while the port is idle: the limits of queue and port together, so that a packet that passes has to
/// look in one place.
#[derive(Clone, Copy, Debug)]
struct Plain {
    bytes: u64,
    packets: u32,
    longest: u32,
    queue: u32,
}

/// What there is of each queue next to its list; vectors of what no queue uses are empty.
#[derive(Debug)]
pub(crate) struct PerQueue {
    pub(crate) counts: Vec<Counts>,
    pub(crate) discarded: Vec<[u64; Discard::ALL.len()]>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) early: Vec<Early>,
    pub(crate) streams: Vec<Option<Streams>>,
}

/// Asynchronous shaping of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    pub(crate) schedulers: Vec<Scheduler>,
    pub(crate) groups: Vec<Group>,
}

impl Streams {
    fn new(shaping: &Asynchronous, now_ns: u64) -> Streams {
        let Asynchronous { rate, burst, residence_ns, streams, groups } = *shaping;
        let scheduler =
            Scheduler::new(Tokens { rate, burst, overhead: 0 }, now_ns).expect("the plan was checked");
        let group = Group::new(residence_ns).expect("the plan was checked");
        Streams { schedulers: vec![scheduler; streams as usize], groups: vec![group; groups as usize] }
    }

    /// Goes on with the tokens and times of another one.
    pub(crate) fn follow(&mut self, old: &Streams, now_ns: u64) {
        for (new, old) in self.schedulers.iter_mut().zip(&old.schedulers) {
            let mut scheduler = old.clone();
            if scheduler.replace(new.committed(), now_ns).is_ok() {
                *new = scheduler;
            }
        }
        let same = self
            .groups
            .iter_mut()
            .zip(&old.groups)
            .filter(|(new, old)| new.residence_ns() == old.residence_ns());
        same.for_each(|(new, old)| *new = old.clone());
    }

    fn assign(&mut self, stream: u32, len: u32, now_ns: u64) -> Result<u64, Discard> {
        let stream = stream as usize % self.schedulers.len();
        let group = stream % self.groups.len();
        self.schedulers[stream].assign(&mut self.groups[group], len, now_ns).map_err(|why| match why {
            Ineligible::TooLate => Discard::TooOld,
            Ineligible::TooLong => Discard::TooLong,
        })
    }
}

impl<P> Egress<P> {
    /// An empty port.
    pub fn new(plan: Arc<Plan>, now_ns: u64) -> Egress<P> {
        let Layout { children, inners, fifos, inner_origins, queue_origins, settings, routes } =
            layout::layout(&plan, now_ns);
        let port = plan.port();
        let queues = fifos.len();
        let has = |what: fn(&Queue) -> bool| if settings.iter().any(what) { queues } else { 0 };
        let streams = fifos[..has(|queue| queue.asynchronous.is_some())].iter().map(|fifo| {
            let shaping = &settings[fifo.setting as usize].asynchronous;
            shaping.as_ref().map(|shaping| Streams::new(shaping, now_ns))
        });
        let queues = PerQueue {
            counts: vec![Counts::default(); queues],
            discarded: vec![[0; Discard::ALL.len()]; queues],
            early: vec![Early::default(); has(|queue| queue.red.is_some())],
            streams: streams.collect(),
            origins: queue_origins,
        };
        let timers = Wheel::new(MAX_TIMERS, now_ns);
        let plain = std::array::from_fn(|class| {
            let queue = routes[class].queue(0);
            let setting = &settings[fifos[queue as usize].setting as usize];
            (plan.orders_classes_alone() && setting.is_plain()).then(|| Plain {
                bytes: setting.bytes.min(plan.shared()),
                packets: setting.packets.min(port.packets),
                longest: port.longest,
                queue,
            })
        });
        Egress {
            slab: Slab::new(),
            tree: Tree {
                wakes: vec![None; inners.len()],
                children,
                inners,
                fifos,
                timers,
                overhead: port.overhead,
                timed: plan.is_timed(),
                waiting: 0,
                path: [(0, 0); MAX_DEPTH],
                len: 0,
                ready: false,
            },
            buffer: Buffer::new(&plan),
            link: port.rate.map(|rate| Link::new(rate, port.catch_up_ns, now_ns)),
            passing: Passing::new(&plan, &settings).map(Box::new),
            settings,
            routes,
            plain,
            queues,
            origins: inner_origins,
            random: Random(port.seed),
            len: 0,
            bytes: 0,
            now: now_ns,
            plan,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the packets that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When [`Egress::next`] may give something, if nothing comes before: at once if that has passed.
    #[inline]
    pub fn wake_ns(&self) -> Option<u64> {
        let free = self.link.as_ref().map_or(0, Link::free_ns);
        match self.tree.ready {
            true => Some(free),
            false => self.tree.timers.next_ns().map(|time| time.max(free)),
        }
    }

    /// A packet comes. Either it waits from now on, or it is given back.
    #[inline]
    pub fn offer(&mut self, arrival: Arrival, now_ns: u64, packet: P) -> Result<Admitted, Refused<P>> {
        self.advance(now_ns);
        let now = self.now;
        let Arrival { class, flow, len, .. } = arrival;
        let class = class.min(CLASSES as u8 - 1);
        let route = &self.routes[usize::from(class)];
        let queue = route.queue(flow);
        let (room, mark, time) = match self.admit(queue, class, &arrival) {
            Ok(admitted) => admitted,
            Err(reason) => {
                self.queues.discarded[queue as usize][reason as usize] += 1;
                return Err(Refused { packet, reason, queue });
            }
        };
        let fifo = &mut self.tree.fifos[queue as usize];
        let depth = fifo.packets;
        self.buffer.put(fifo, &self.settings[fifo.setting as usize], len, room);
        fifo.largest_packets = fifo.largest_packets.max(fifo.packets);
        fifo.largest_bytes = fifo.largest_bytes.max(fifo.bytes);
        if mark {
            self.queues.counts[queue as usize].marked += 1;
        }
        self.len += 1;
        self.bytes += u64::from(len);
        let mut slot = Slot::new(packet, len, class, now);
        (slot.depth, slot.mark, slot.overflow) = (depth, mark, room == Room::Overflow);
        let slot = self.slab.put(slot);
        if time > now {
            fifo.held += 1;
            let timer = self.tree.timers.set(time, Event::Packet { slot, queue });
            timer.expect("there is room for a timer of each packet");
        } else {
            let was_empty = fifo.is_empty();
            fifo.append(&mut self.slab, slot);
            if was_empty {
                self.tree.fill(queue, now);
            }
        }
        Ok(Admitted { queue, depth, mark })
    }

    /// Whether packets of one class, so many with so many bytes and none longer than that, would leave in their order if they were all
    /// offered now and then asked for: the port is idle and orders nothing but classes. Then whoever sends them at once only has to say
    /// so ([`Egress::passed`]).
    #[inline]
    pub fn may_pass(&self, class: u8, packets: u32, bytes: u64, longest: u32) -> bool {
        let Some(plain) = &self.plain[usize::from(class).min(CLASSES - 1)] else { return false };
        self.len == 0 && packets <= plain.packets && bytes <= plain.bytes && longest <= plain.longest
    }

    /// Packets for which [`Egress::may_pass`] was true have left.
    #[inline]
    pub fn passed(&mut self, class: u8, packets: u32, bytes: u64) {
        let Some(plain) = &self.plain[usize::from(class).min(CLASSES - 1)] else { return };
        let queue = plain.queue as usize;
        let (fifo, counts) = (&mut self.tree.fifos[queue], &mut self.queues.counts[queue]);
        fifo.largest_packets = fifo.largest_packets.max(packets);
        fifo.largest_bytes = fifo.largest_bytes.max(bytes);
        counts.sent += u64::from(packets);
        counts.sent_bytes += bytes;
    }

    /// Whether a packet may wait, whether it is marked, and from when on it may leave.
    #[inline]
    fn admit(&mut self, queue: u32, class: u8, arrival: &Arrival) -> Result<(Room, bool, u64), Discard> {
        let fifo = &self.tree.fifos[queue as usize];
        let setting = &self.settings[fifo.setting as usize];
        let len = arrival.len;
        let average = match &setting.red {
            Some(red) => {
                let early = &mut self.queues.early[queue as usize];
                early.arrive(fifo.bytes, fifo.packets == 0, red.average, self.plan.port(), self.now);
                Some((red, early))
            }
            None => None,
        };
        if len > self.plan.port().longest {
            return Err(Discard::TooLong);
        }
        let room = self.buffer.room(fifo, setting, len)?;
        let mut mark = false;
        if let Some((red, early)) = average
            && let Some(curve) = red.curves.iter().find(|curve| curve.classes >> class & 1 == 1)
        {
            match early.decide(curve, red.average, arrival.ecn, &mut self.random) {
                Fate::Pass => {}
                Fate::Mark => mark = true,
                Fate::Discard => return Err(Discard::Early),
            }
        }
        let mut time = arrival.send_at_ns.unwrap_or(0);
        if setting.asynchronous.is_some()
            && let Some(streams) = &mut self.queues.streams[queue as usize]
        {
            let stream = self.routes[usize::from(class)].stream(arrival.flow);
            time = time.max(streams.assign(stream, len + self.tree.overhead, self.now)?);
        }
        Ok((room, mark, time))
    }

    /// The packet that leaves now, or one that is discarded.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Next<P> {
        self.advance(now_ns);
        let now = self.now;
        if self.link.as_ref().is_some_and(|link| link.free_ns() > now) {
            return Next::Nothing;
        }
        let Some((queue, len)) = self.tree.choose(now) else { return Next::Nothing };
        let fifo = &mut self.tree.fifos[queue as usize];
        let setting = &self.settings[fifo.setting as usize];
        let old = setting.age_ns.is_some_and(|age| now - self.slab.at(fifo.head()).enqueued_ns > age);
        let taken = fifo.pop(&mut self.slab);
        self.gone(queue, &taken);
        if old {
            self.tree.dropped(queue, now);
            self.queues.discarded[queue as usize][Discard::TooOld as usize] += 1;
            return Next::Discarded(taken.packet, Discard::TooOld);
        }
        self.tree.sent((queue, len), now);
        if let Some(link) = &mut self.link {
            link.send(len, now);
        }
        let delay = now.saturating_sub(taken.enqueued_ns);
        let counts = &mut self.queues.counts[queue as usize];
        counts.sent += 1;
        counts.sent_bytes += u64::from(taken.len);
        counts.delay = counts.delay.saturating_add(delay);
        counts.largest_delay = counts.largest_delay.max(delay);
        Next::Leaves(Departed {
            packet: taken.packet,
            queue,
            class: taken.class,
            len: taken.len,
            enqueued_ns: taken.enqueued_ns,
            enqueue_depth: taken.depth,
            dequeue_depth: self.tree.fifos[queue as usize].packets,
            mark: taken.mark,
        })
    }

    /// A packet has been taken out of its queue.
    #[inline]
    pub(crate) fn gone(&mut self, queue: u32, taken: &Taken<P>) {
        let fifo = &self.tree.fifos[queue as usize];
        self.buffer.take(fifo, &self.settings[fifo.setting as usize], taken.len, taken.overflow);
        self.len -= 1;
        self.bytes -= u64::from(taken.len);
        if fifo.packets == 0
            && let Some(early) = self.queues.early.get_mut(queue as usize)
        {
            early.empty_ns = self.now;
        }
    }

    /// Time goes on: what was due by now happens, at its time.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.now = self.now.max(now_ns);
        if !self.tree.timers.is_empty() {
            self.expire();
        }
    }

    fn expire(&mut self) {
        while let Some((time, event)) = self.tree.timers.expire(self.now) {
            match event {
                Event::Node(inner) => {
                    self.tree.unblock(inner);
                    self.tree.activate(inner, time);
                }
                Event::Gate(credit) => self.tree.turn(credit, time),
                Event::Packet { slot, queue } => {
                    let fifo = &mut self.tree.fifos[queue as usize];
                    let was_empty = fifo.is_empty();
                    fifo.held -= 1;
                    fifo.append(&mut self.slab, slot);
                    if was_empty {
                        self.tree.fill(queue, time);
                    }
                }
            }
        }
    }

    /// Takes out all that waits, in any order. Nothing of it is counted as sent or discarded.
    pub fn take_all(&mut self, mut each: impl FnMut(P)) {
        for queue in 0..self.tree.fifos.len() as u32 {
            while !self.tree.fifos[queue as usize].is_empty() {
                let taken = self.tree.fifos[queue as usize].pop(&mut self.slab);
                self.gone(queue, &taken);
                each(taken.packet);
            }
        }
        while let Some((_, event)) = self.tree.timers.expire(u64::MAX) {
            if let Event::Packet { slot, queue } = event {
                let taken = self.tree.fifos[queue as usize].take_held(&mut self.slab, slot);
                self.gone(queue, &taken);
                each(taken.packet);
            }
        }
        self.replace(self.plan.clone(), self.now, |_, _| {});
    }

    /// What is known of each queue.
    pub fn queues(&self) -> impl Iterator<Item = QueueReport> {
        (0..self.tree.fifos.len()).map(|queue| self.report(queue))
    }

    fn report(&self, queue: usize) -> QueueReport {
        let Fifo { packets, bytes, largest_packets, largest_bytes, .. } = self.tree.fifos[queue];
        let counts = &self.queues.counts[queue];
        let Origin { handle, copy } = self.queues.origins[queue];
        QueueReport {
            queue: queue as u32,
            handle,
            copy,
            packets,
            bytes,
            sent: counts.sent,
            sent_bytes: counts.sent_bytes,
            marked: counts.marked,
            discarded: self.queues.discarded[queue],
            largest_packets,
            largest_bytes,
            delay_ns: counts.delay,
            largest_delay_ns: counts.largest_delay,
        }
    }
}
