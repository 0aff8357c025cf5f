//! The queues between ingress and egress.
//!
//! A port with one class of service and no rate has no queue: its packets go on at once, in order. Any other port has a
//! queue for each class, served by strict priority, the highest class first; a queue with a rate gives out a packet at
//! most every so often. A full queue drops what comes. If so configured, a port whose link is busy has queues until what
//! waits has left. Ports with a plan have other queues ([`planned`]).

mod planned;

use crate::budget::DEFAULT_PACKET_MEMORY;
use crate::flight::{Departure, QueueStay};
use crate::quotas::{Occupied, Places};
use crate::timed::Timed;
use crate::{DropReason, PortId};
use millrace_frames::MAX_BATCH;
use millrace_traffic::Plan;
use planned::{Discarded, Planned};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Most classes of service of a port.
pub const MAX_PRIORITIES: u8 = 8;
/// Most packets that one queue may be set to hold.
pub const MAX_QUEUE_DEPTH: u32 = 1 << 16;
/// Most packets that all queues of a switch hold together.
pub const MAX_QUEUED: usize = 1 << 17;
/// The packets that a queue holds when nobody says otherwise.
pub const DEFAULT_QUEUE_DEPTH: u32 = 1024;

/// What is between ingress and egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Classes of service, 1 to [`MAX_PRIORITIES`]. Packets of a class that a port does not have go by class 0.
    pub priorities: u8,
    /// Packets that each queue holds, 1 to [`MAX_QUEUE_DEPTH`].
    pub depth: u32,
    /// Whether packets wait here while the link of their port is busy; else the port drops what it has no room for.
    pub wait_for_links: bool,
    /// Bytes that packets may take while they wait in the switch, with all their copies; at least
    /// [`crate::MIN_PACKET_MEMORY`].
    pub packet_memory: usize,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            priorities: 1,
            depth: DEFAULT_QUEUE_DEPTH,
            wait_for_links: false,
            packet_memory: DEFAULT_PACKET_MEMORY,
        }
    }
}

/// Why a queue was not configured. Everything is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// No or too many classes of service.
    Priorities(u8),
    /// A queue that holds nothing or too much.
    Depth(u32),
    /// A class of service that ports do not have.
    NoPriority {
        /// The class given.
        priority: u8,
        /// How many there are.
        priorities: u8,
    },
    /// The queues are those of a hardware device.
    Device,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::Priorities(given) => {
                write!(f, "a port has 1 to {MAX_PRIORITIES} classes of service, not {given}")
            }
            QueueError::Device => f.write_str("the queues of a hardware device are set by its registers"),
            QueueError::Depth(given) => {
                write!(f, "a queue holds 1 to {MAX_QUEUE_DEPTH} packets, not {given}")
            }
            QueueError::NoPriority { priority, priorities } => {
                write!(f, "no class of service {priority}: ports have {priorities}, counted from 0")
            }
        }
    }
}

impl std::error::Error for QueueError {}

/// All queues of a switch.
#[derive(Debug)]
pub(crate) struct Queues {
    config: QueueConfig,
    /// What every queue is like that is not set otherwise.
    common: Setting,
    /// Packets of ports without a queue.
    direct: VecDeque<(Departure, u64)>,
    ports: BTreeMap<PortId, PortQueues>,
    /// Packets in queues.
    queued: usize,
    /// The places of all packets that wait here.
    occupied: Occupied,
    /// Whether some queue does more than to let the highest class go first.
    is_shaped: bool,
    paces: Paces,
    /// Packets of ports with a plan.
    pub(crate) planned: Planned,
    /// Packets that wait for a time.
    timed: Timed,
    /// Packets that queues did not keep, until they are counted.
    discarded: Vec<Discarded>,
}

/// When the next packet of each queue may leave, for all workers that have queues of one port and class: together they keep its
/// rate. Looked up when a worker makes its queue.
#[derive(Clone, Debug, Default)]
struct Paces(Arc<Mutex<BTreeMap<(PortId, u8), Pace>>>);

/// A time in nanoseconds.
type Pace = Arc<AtomicU64>;

impl Paces {
    fn of(&self, port: PortId, priority: u8) -> Pace {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(paces.entry((port, priority)).or_default())
    }
}

/// A queue at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// The port that its packets leave by.
    pub port: PortId,
    /// Its class of service.
    pub priority: u8,
    /// Packets that wait.
    pub packets: u32,
    /// Packets that it holds at most.
    pub depth: u32,
    /// Packets that it had no room for.
    pub dropped: u64,
}

/// Packets that have passed ingress and wait for nothing.
#[derive(Debug, Default)]
pub(crate) struct Waiting(VecDeque<(Departure, u64)>);

impl Waiting {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn departures(&self) -> impl Iterator<Item = &Departure> {
        self.0.iter().map(|(departure, _)| departure)
    }

    /// Those of which this holds, and the others.
    pub(crate) fn partition(self, holds: impl Fn(&Departure) -> bool) -> (Waiting, Waiting) {
        let (these, others) = self.0.into_iter().partition(|(departure, _)| holds(departure));
        (Waiting(these), Waiting(others))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting {
    depth: u32,
    /// Packets a second; none: as they come.
    rate_pps: Option<u64>,
}

#[derive(Debug)]
struct PortQueues {
    queues: Vec<Queue>,
    /// Packets that the link has room for; none: for as many as come.
    room: Option<u32>,
}

#[derive(Debug)]
struct Queue {
    setting: Setting,
    packets: VecDeque<(Departure, u64, u32)>,
    /// The earliest time at which the next packet may leave, from whichever worker.
    free_at_ns: Pace,
    /// Packets that found no room.
    dropped: u64,
}

impl Queues {
    pub(crate) fn new(config: QueueConfig) -> Result<Queues, QueueError> {
        if !(1..=MAX_PRIORITIES).contains(&config.priorities) {
            return Err(QueueError::Priorities(config.priorities));
        }
        check_depth(config.depth)?;
        let mut queues = Queues {
            config,
            common: Setting { depth: config.depth, rate_pps: None },
            direct: VecDeque::new(),
            ports: BTreeMap::new(),
            queued: 0,
            occupied: Occupied::default(),
            is_shaped: false,
            paces: Paces::default(),
            planned: Planned::default(),
            timed: Timed::default(),
            discarded: Vec::new(),
        };
        queues.is_shaped = queues.shapes();
        Ok(queues)
    }

    /// The queues of one more worker, without packets, set up as these are. Each worker's queues hold as many packets as is set;
    /// a rate is that of all together.
    pub(crate) fn share(&self) -> Queues {
        let settings = |queues: &PortQueues| PortQueues {
            queues: queues
                .queues
                .iter()
                .map(|queue| Queue::new(queue.setting, Arc::clone(&queue.free_at_ns)))
                .collect(),
            room: None,
        };
        Queues {
            config: self.config,
            common: self.common,
            direct: VecDeque::new(),
            ports: self.ports.iter().map(|(port, queues)| (*port, settings(queues))).collect(),
            queued: 0,
            occupied: Occupied::of(self.occupied.places()),
            is_shaped: self.is_shaped,
            paces: self.paces.clone(),
            planned: self.planned.share(),
            timed: Timed::default(),
            discarded: Vec::new(),
        }
    }

    /// Takes a packet in, or gives it back when its queue is full.
    pub(crate) fn push(
        &mut self,
        departure: Departure,
        now_ns: u64,
    ) -> Result<(), (Box<Departure>, DropReason)> {
        let waits_for_time = departure.origin.send_at_ns > now_ns;
        let port = departure.port;
        if !waits_for_time && self.is_direct(port) {
            self.direct.push_back((departure, now_ns));
            return Ok(());
        }
        if !self.occupied.take(self.in_places()) {
            return Err((Box::new(departure), DropReason::QueuePlaces));
        }
        let pushed = match waits_for_time {
            true => self.timed.push(departure, now_ns),
            false => self.push_into_queue(departure, now_ns),
        };
        if pushed.is_err() {
            self.tell_places();
        }
        pushed
    }

    /// Takes a packet into the queue of its port, which has one.
    fn push_into_queue(
        &mut self,
        departure: Departure,
        now_ns: u64,
    ) -> Result<(), (Box<Departure>, DropReason)> {
        let port = departure.port;
        let queued = self.queued + self.planned.len();
        if self.planned.has(port) {
            return match queued >= MAX_QUEUED {
                true => Err((Box::new(departure), DropReason::BufferFull)),
                false => self.planned.push(departure, now_ns),
            };
        }
        let queues = self.port(port);
        let class = match usize::from(departure.priority) {
            known if known < queues.queues.len() => known,
            _ => 0,
        };
        let queue = &mut queues.queues[class];
        let depth = queue.packets.len() as u32;
        if depth >= queue.setting.depth || queued >= MAX_QUEUED {
            queue.dropped += 1;
            return Err((Box::new(departure), DropReason::QueueFull));
        }
        queue.packets.push_back((departure, now_ns, depth));
        self.queued += 1;
        Ok(())
    }

    /// Packets that take a place.
    fn in_places(&self) -> usize {
        self.queued + self.planned.len() + self.timed.len()
    }

    fn tell_places(&mut self) {
        self.occupied.tell(self.in_places());
    }

    /// The places that its packets take, with those of others.
    pub(crate) fn places(&self) -> &Places {
        self.occupied.places()
    }

    /// There are more or fewer places than before.
    pub(crate) fn heed_places(&mut self) {
        self.tell_places();
        self.is_shaped = self.shapes();
    }

    /// How many packets of ports without a queue there are.
    pub(crate) fn waiting(&self) -> usize {
        self.direct.len()
    }

    /// Takes out the first packet of ports without a queue.
    pub(crate) fn pop_waiting(&mut self) -> Option<(Departure, QueueStay)> {
        let (departure, enqueued_ns) = self.direct.pop_front()?;
        Some((departure, QueueStay::none(enqueued_ns)))
    }

    /// Puts packets of ports without a queue after those that were set aside before.
    #[inline]
    pub(crate) fn set_aside(&mut self, aside: &mut Waiting) {
        if !self.direct.is_empty() {
            aside.0.append(&mut self.direct);
        }
    }

    /// Puts packets of ports without a queue back, before others.
    pub(crate) fn put_waiting(&mut self, mut waiting: Waiting) {
        waiting.0.append(&mut self.direct);
        self.direct = waiting.0;
    }

    /// A packet that waits, whether it may leave now or not.
    pub(crate) fn pop_any(&mut self) -> Option<(Departure, QueueStay)> {
        let any = self.take_any();
        self.tell_places();
        any
    }

    fn take_any(&mut self) -> Option<(Departure, QueueStay)> {
        if let Some((departure, since_ns)) = self.timed.pop(u64::MAX) {
            return Some((departure, QueueStay { waited: true, ..QueueStay::none(since_ns) }));
        }
        if let Some(first) = self.pop_waiting() {
            return Some(first);
        }
        self.planned.take_all(|departure| self.direct.push_back((departure, 0)));
        if let Some(first) = self.pop_waiting() {
            return Some(first);
        }
        let mut queues = self.ports.values_mut().flat_map(|port| port.queues.iter_mut().rev());
        // Links with or without room: who empties all queues takes what comes of it.
        let (departure, enqueued_ns, _) = queues.find_map(|queue| queue.packets.pop_front())?;
        self.queued -= 1;
        Some((departure, QueueStay { waited: true, ..QueueStay::none(enqueued_ns) }))
    }

    /// The next packet that may leave now.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(Departure, QueueStay)> {
        let next = self.take_next(now_ns);
        self.tell_places();
        next
    }

    fn take_next(&mut self, now_ns: u64) -> Option<(Departure, QueueStay)> {
        while let Some((departure, since_ns)) = self.timed.pop(now_ns) {
            if let Err((refused, why)) = self.push(departure, since_ns) {
                self.discarded.push((*refused, why));
            }
        }
        if let Some(first) = self.pop_waiting() {
            return Some(first);
        }
        if let Some(planned) = self.planned.pop(now_ns, &mut self.discarded) {
            return Some(planned);
        }
        if self.queued == 0 {
            return None;
        }
        let mut with_room = self.ports.values_mut().filter(|port| port.room != Some(0));
        let ((number, queue), room) = with_room.find_map(|port| {
            let mut queues = (0..).zip(port.queues.iter_mut().rev());
            let is_ready = |queue: &Queue| !queue.packets.is_empty() && queue.free_at_ns() <= now_ns;
            Some((queues.find(|(_, queue)| is_ready(queue))?, &mut port.room))
        })?;
        if !queue.take_turn(now_ns) {
            // A packet of another worker has left meanwhile.
            return None;
        }
        if let Some(room) = room {
            *room -= 1;
        }
        let (departure, enqueued_ns, enqueue_depth) = queue.packets.pop_front()?;
        let dequeue_depth = queue.packets.len() as u32;
        self.queued -= 1;
        let waited = true;
        Some((departure, QueueStay { enqueued_ns, enqueue_depth, dequeue_depth, queue: number, waited }))
    }

    /// Takes all packets for a port out that wait in its queues, or for their time.
    pub(crate) fn take_for(&mut self, port: PortId) -> Vec<Departure> {
        let mut taken = self.timed.take_for(port);
        let queues = self.ports.get_mut(&port).into_iter().flat_map(|port| &mut port.queues);
        let queued = queues.flat_map(|queue| queue.packets.drain(..)).map(|(departure, ..)| departure);
        let before = taken.len();
        taken.extend(queued);
        self.queued -= taken.len() - before;
        self.tell_places();
        taken
    }

    /// Takes a packet out that its queue did not keep.
    pub(crate) fn pop_discarded(&mut self) -> Option<(Departure, DropReason)> {
        self.discarded.pop()
    }

    /// Has packets of these ports wait as their plans say, and those of all others as they did. Nothing is lost: what waits for a port
    /// without a plan any more leaves at once.
    pub(crate) fn set_plans(&mut self, plans: &BTreeMap<PortId, Arc<Plan>>, now_ns: u64) {
        let Queues { planned, direct, discarded, .. } = self;
        planned.set(plans, now_ns, |departure| direct.push_back((departure, now_ns)), discarded);
        self.tell_places();
    }

    /// Whether a packet waits that came in on a port.
    pub(crate) fn has_of(&self, port: PortId) -> bool {
        let queues = self.ports.values().flat_map(|port| &port.queues);
        let queued = queues.flat_map(|queue| &queue.packets).map(|(departure, ..)| departure);
        // Which ports these came in on, nobody asks but before a queue pair moves: then all of them leave first.
        if self.planned.len() > 0 || !self.timed.is_empty() {
            return true;
        }
        let mut waiting = self.direct.iter().map(|(departure, _)| departure).chain(queued);
        waiting.any(|departure| departure.origin.port == port)
    }

    /// Whether packets wait only for the link of their port.
    pub(crate) fn wait_for_links(&self) -> bool {
        let mut held = self.ports.values().filter(|port| port.room == Some(0));
        self.planned.are_held() || held.any(|port| port.queues.iter().any(|queue| !queue.packets.is_empty()))
    }

    /// How many classes of service each port has.
    pub(crate) fn priorities(&self) -> u8 {
        self.config.priorities
    }

    /// Whether packets are to wait for links.
    pub(crate) fn are_to_wait(&self) -> bool {
        self.config.wait_for_links
    }

    /// Says how many packets the link of a port has room for; none: for as many as come. A port that needs no queue any
    /// more has none again.
    pub(crate) fn set_room(&mut self, port: PortId, room: Option<u32>) {
        match (room, self.ports.get_mut(&port)) {
            (None, None) => {}
            (None, Some(queues)) => {
                queues.room = None;
                let common = self.common;
                let idle = |queue: &Queue| queue.packets.is_empty() && queue.setting == common;
                if self.config.priorities == 1 && common.rate_pps.is_none() && queues.queues.iter().all(idle)
                {
                    self.ports.remove(&port);
                }
            }
            (Some(room), _) => self.port(port).room = Some(room),
        }
        self.is_shaped = self.shapes();
    }

    /// The queues that there are.
    pub(crate) fn report(&self) -> impl Iterator<Item = QueueReport> {
        self.ports.iter().flat_map(|(port, of_port)| {
            of_port.queues.iter().zip(0..).map(|(queue, priority)| QueueReport {
                port: *port,
                priority,
                packets: queue.packets.len() as u32,
                depth: queue.setting.depth,
                dropped: queue.dropped,
            })
        })
    }

    /// When the next packet may leave; none when nothing waits, or only for links.
    pub(crate) fn next_departure_ns(&self) -> Option<u64> {
        if !self.direct.is_empty() {
            return Some(0);
        }
        let of_ports = || {
            let queues =
                self.ports.values().filter(|port| port.room != Some(0)).flat_map(|port| &port.queues);
            queues.filter(|queue| !queue.packets.is_empty()).map(Queue::free_at_ns).min()
        };
        let free = if self.queued > 0 { of_ports() } else { None };
        [free, self.planned.next_ns(), self.timed.next_ns()].into_iter().flatten().min()
    }

    /// Sets how many packets queues hold: of one class of one port, of one port, or of all.
    pub(crate) fn set_depth(
        &mut self,
        depth: u32,
        port: Option<PortId>,
        priority: Option<u8>,
    ) -> Result<(), QueueError> {
        check_depth(depth)?;
        self.change(port, priority, |setting| setting.depth = depth)
    }

    /// Sets how many packets a second leave queues: of one class of one port, of one port, or of all; 0: no limit.
    pub(crate) fn set_rate(
        &mut self,
        rate_pps: u64,
        port: Option<PortId>,
        priority: Option<u8>,
    ) -> Result<(), QueueError> {
        self.change(port, priority, |setting| setting.rate_pps = (rate_pps > 0).then_some(rate_pps))
    }

    fn change(
        &mut self,
        port: Option<PortId>,
        priority: Option<u8>,
        change: impl Fn(&mut Setting),
    ) -> Result<(), QueueError> {
        let priorities = self.config.priorities;
        if let Some(priority) = priority.filter(|priority| *priority >= priorities) {
            return Err(QueueError::NoPriority { priority, priorities });
        }
        let Some(port) = port else {
            change(&mut self.common);
            let all = self.ports.values_mut().flat_map(|port| &mut port.queues);
            all.for_each(|queue| change(&mut queue.setting));
            self.is_shaped = self.shapes();
            return Ok(());
        };
        for (class, queue) in self.port(port).queues.iter_mut().enumerate() {
            if priority.is_none_or(|priority| usize::from(priority) == class) {
                change(&mut queue.setting);
            }
        }
        self.is_shaped = self.shapes();
        Ok(())
    }

    /// Whether packets of all ports go on at once.
    pub(crate) fn are_direct(&self) -> bool {
        self.ports.is_empty()
            && !self.planned.has_ports()
            && self.direct.is_empty()
            && self.config.priorities == 1
            && self.common.rate_pps.is_none()
    }

    /// How many classes every port serves by nothing but strict priority, when no packet waits: those of a burst then leave in
    /// the order of their classes, and there is room for all of them.
    pub(crate) fn classes(&self) -> Option<u8> {
        let is_idle = self.queued == 0 && self.direct.is_empty();
        (is_idle && !self.is_shaped && self.config.priorities > 1).then_some(self.config.priorities)
    }

    /// Whether some queue has a rate, a link without room, or less depth than a burst has packets, or all of them have fewer places.
    fn shapes(&self) -> bool {
        let shapes = |setting: &Setting| setting.rate_pps.is_some() || (setting.depth as usize) < MAX_BATCH;
        let of_port =
            |port: &PortQueues| port.room.is_some() || port.queues.iter().any(|queue| shapes(&queue.setting));
        let are_few = self.places().limit() < MAX_BATCH;
        are_few || shapes(&self.common) || self.ports.values().any(of_port)
    }

    /// Whether packets of the port go on at once; what waits already goes first. More ports than a switch can have get
    /// no queues: a program can name any number.
    fn is_direct(&self, id: PortId) -> bool {
        match self.ports.get(&id) {
            Some(port) => match port.queues.as_slice() {
                [only] if !self.planned.has(id) => {
                    only.setting.rate_pps.is_none() && only.packets.is_empty() && port.room.is_none()
                }
                _ => false,
            },
            None if self.planned.has(id) => false,
            None => {
                self.ports.len() >= crate::MAX_PORTS
                    || (self.config.priorities == 1 && self.common.rate_pps.is_none())
            }
        }
    }

    fn port(&mut self, port: PortId) -> &mut PortQueues {
        let (classes, setting, paces) = (self.config.priorities, self.common, &self.paces);
        self.ports.entry(port).or_insert_with(|| PortQueues {
            queues: (0..classes).map(|class| Queue::new(setting, paces.of(port, class))).collect(),
            room: None,
        })
    }
}

impl Queue {
    fn new(setting: Setting, free_at_ns: Pace) -> Queue {
        Queue { setting, packets: VecDeque::new(), free_at_ns, dropped: 0 }
    }

    fn free_at_ns(&self) -> u64 {
        match self.setting.rate_pps {
            Some(_) => self.free_at_ns.load(Ordering::Relaxed),
            None => 0,
        }
    }

    /// Has the next packet leave now, if no other worker has had one leave too recently.
    fn take_turn(&self, now_ns: u64) -> bool {
        let Some(rate) = self.setting.rate_pps else { return true };
        let next = now_ns.saturating_add(1_000_000_000 / rate.max(1));
        let take = |free_at_ns: u64| (free_at_ns <= now_ns).then_some(next);
        // Nothing else is read by what it holds.
        self.free_at_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

fn check_depth(depth: u32) -> Result<(), QueueError> {
    if (1..=MAX_QUEUE_DEPTH).contains(&depth) { Ok(()) } else { Err(QueueError::Depth(depth)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::Origin;
    use millrace_engine::Context;
    use millrace_frames::Service;
    use millrace_pipeline::{PacketPath, Program};

    fn packet(port: PortId, priority: u8, tag: u16) -> Departure {
        Departure {
            passed: crate::flight::Passed::Nothing,
            context: Context::interpreted(&Program::default(), Vec::new()),
            path: PacketPath::Normal,
            origin: Origin {
                port: 0,
                time_ns: 0,
                passes: 0,
                budget: 0,
                steps: crate::flight::Journeying(0),
                journey: None,
                service: Service::default(),
                hops: 0,
                send_at_ns: 0,
                has_rested: false,
                is_marked: false,
            },
            parsed_bits: 0,
            port,
            rid: tag,
            priority,
            truncate: None,
        }
    }

    fn tags(queues: &mut Queues, now_ns: u64) -> Vec<u16> {
        std::iter::from_fn(|| queues.pop(now_ns).map(|(departure, _)| departure.rid)).collect()
    }

    fn config(priorities: u8, depth: u32) -> QueueConfig {
        QueueConfig { priorities, depth, ..QueueConfig::default() }
    }

    #[test]
    fn packets_wait_for_a_busy_link_and_the_queue_goes_with_them() {
        let mut queues = Queues::new(config(1, 3)).unwrap();
        queues.set_room(1, Some(2));
        assert!(!queues.are_direct());
        let taken = (1..=4).map(|tag| queues.push(packet(1, 0, tag), 0).is_ok()).collect::<Vec<_>>();
        assert_eq!(taken, [true, true, true, false]);
        queues.push(packet(2, 0, 9), 0).unwrap();
        assert_eq!(tags(&mut queues, 0), [9, 1, 2]);
        assert_eq!((queues.next_departure_ns(), queues.wait_for_links()), (None, true));
        // What comes later stays after what waits, also when there is room for as much as may come.
        queues.set_room(1, None);
        queues.push(packet(1, 0, 5), 0).unwrap();
        assert_eq!(queues.next_departure_ns(), Some(0));
        let stays: Vec<_> =
            std::iter::from_fn(|| queues.pop(0)).map(|(_, stay)| stay.enqueue_depth).collect();
        assert_eq!(stays, [2, 1]);
        assert!(!queues.wait_for_links());
        queues.set_room(1, None);
        assert!(queues.are_direct());
    }

    #[test]
    fn the_highest_class_goes_first_when_a_link_has_room_again() {
        let mut queues = Queues::new(config(8, 8)).unwrap();
        queues.set_room(1, Some(0));
        for (class, tag) in [(0, 1), (7, 2), (3, 3), (7, 4)] {
            queues.push(packet(1, class, tag), 0).unwrap();
        }
        assert_eq!(tags(&mut queues, 0), Vec::<u16>::new());
        queues.set_room(1, Some(3));
        assert_eq!(tags(&mut queues, 0), [2, 4, 3]);
    }

    #[test]
    fn without_classes_and_rates_packets_go_on_in_order_and_at_once() {
        let mut queues = Queues::new(QueueConfig::default()).unwrap();
        for tag in 0..3 {
            queues.push(packet(u32::from(tag), 5, tag), 7).unwrap();
        }
        assert_eq!(queues.next_departure_ns(), Some(0));
        let (_, stay) = queues.pop(9).unwrap();
        assert_eq!((stay.enqueued_ns, stay.enqueue_depth, stay.dequeue_depth), (7, 0, 0));
        assert_eq!(tags(&mut queues, 9), [1, 2]);
        assert_eq!(queues.next_departure_ns(), None);
    }

    #[test]
    fn the_highest_class_goes_first_and_an_unknown_class_is_the_lowest() {
        let mut queues = Queues::new(config(3, 8)).unwrap();
        for (class, tag) in [(0, 1), (2, 2), (1, 3), (2, 4), (7, 5)] {
            queues.push(packet(1, class, tag), 0).unwrap();
        }
        assert_eq!(tags(&mut queues, 0), [2, 4, 3, 1, 5]);
    }

    #[test]
    fn depths_are_told_and_kept() {
        let mut queues = Queues::new(config(2, 2)).unwrap();
        queues.push(packet(1, 0, 1), 0).unwrap();
        queues.push(packet(1, 0, 2), 0).unwrap();
        assert_eq!(queues.push(packet(1, 0, 3), 0).unwrap_err().0.rid, 3);
        queues.push(packet(1, 1, 4), 0).unwrap();
        queues.push(packet(2, 0, 5), 0).unwrap();
        let stays: Vec<(u16, u32, u32)> = std::iter::from_fn(|| queues.pop(0))
            .map(|(departure, stay)| (departure.rid, stay.enqueue_depth, stay.dequeue_depth))
            .collect();
        assert_eq!(stays, [(4, 0, 0), (1, 0, 1), (2, 1, 0), (5, 0, 0)]);
    }

    #[test]
    fn a_rate_spaces_packets() {
        let mut queues = Queues::new(QueueConfig::default()).unwrap();
        queues.set_rate(1000, Some(1), None).unwrap();
        queues.push(packet(1, 0, 1), 0).unwrap();
        queues.push(packet(1, 0, 2), 0).unwrap();
        queues.push(packet(2, 0, 3), 0).unwrap();
        assert_eq!(tags(&mut queues, 10), [3, 1]);
        assert_eq!(queues.next_departure_ns(), Some(1_000_010));
        assert_eq!(tags(&mut queues, 1_000_009), Vec::<u16>::new());
        assert_eq!(tags(&mut queues, 1_000_010), [2]);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Queues::new(config(0, 1)).is_err());
        assert!(Queues::new(config(9, 1)).is_err());
        let mut queues = Queues::new(config(2, 1)).unwrap();
        assert_eq!(queues.set_depth(0, None, None), Err(QueueError::Depth(0)));
        assert_eq!(
            queues.set_rate(1, Some(1), Some(2)),
            Err(QueueError::NoPriority { priority: 2, priorities: 2 })
        );
    }

    #[test]
    fn packets_that_wait_for_their_time_take_places_too() {
        let mut queues = Queues::new(QueueConfig::default()).unwrap();
        queues.set_rate(1000, Some(1), None).unwrap();
        queues.places().set(Some(3));
        queues.heed_places();
        let at = |time_ns, tag| {
            let mut departure = packet(1, 0, tag);
            departure.origin.send_at_ns = time_ns;
            departure
        };
        let push =
            |queues: &mut Queues, departure, now_ns| queues.push(departure, now_ns).map_err(|(_, why)| why);
        assert_eq!(push(&mut queues, at(500, 1), 0), Ok(()));
        assert_eq!([2, 3].map(|tag| push(&mut queues, packet(1, 0, tag), 0)), [Ok(()), Ok(())]);
        assert_eq!(push(&mut queues, at(900, 4), 0), Err(DropReason::QueuePlaces));
        // One whose time has come goes on to its queue, in the place that it has.
        assert_eq!(tags(&mut queues, 500), [2]);
        assert_eq!(queues.in_places(), 2);
        assert_eq!(push(&mut queues, at(900, 5), 500), Ok(()));
        assert_eq!(push(&mut queues, packet(1, 0, 6), 500), Err(DropReason::QueuePlaces));
        assert_eq!(queues.take_for(1).len(), 3);
        assert_eq!(push(&mut queues, packet(1, 0, 7), 500), Ok(()));
    }
}
