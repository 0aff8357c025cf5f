//! Live ports over a switch: workers that receive, switch and transmit in rounds.
//!
//! A worker owns its switch and its queue pair of each port. Whoever wants something of a running switch sends a request through
//! its [`Control`], which the worker answers between two rounds. With several workers, each a thread, the first leads: it answers
//! for all ([`followers`]). They share the program's tables and objects and nothing else of what is here.
//!
//! With ports of real time it takes up to a batch from each port in turn and waits when there is nothing to do. When
//! all ports are replays of captures, it takes frame after frame in the order of their times, the simulated clock
//! follows them (0 is the time of the first frame), and it ends when all inputs have: the same captures give the same
//! output, to the byte and the nanosecond.

mod arrivals;
mod bursts;
mod control;
mod followers;
mod intake;
mod leaving;
pub(crate) mod live;
mod mailbox;
mod modes;
mod moves;
mod outgoing;
mod pace;
mod ports;
mod relay;
mod report;
mod run_error;
mod scheduled;
mod schedulers;
mod spread;
mod steps;
mod streams;
mod supplies;
mod waiting;
mod waker;

pub(crate) use control::Message;
pub use control::{Control, MAX_REQUESTS, Pending, PostError};
pub use followers::MAX_WORKERS;
pub use intake::{DEFAULT_QUANTUM, INTAKE_CLASSES, Intake, IntakeError, MAX_QUANTUM, MIN_QUANTUM};
pub use moves::{MAX_DRAIN_TIME, MoveError};
pub use ports::PortsError;
pub use report::{BurstReport, PortReport, Report, ReportError, WorkerReport};
pub use run_error::RunError;
pub use schedulers::{MAX_SCHEDULED, PlannedPort, ScheduleError};
pub use spread::Spread;
pub(crate) use spread::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, payload};
pub use steps::Progress;
pub use supplies::Supplies;
pub use waiting::{POLL_TIME, Polling};

use crate::links;
use crate::outcome::Outcome;
use crate::switch::Switch;
use crate::{Clock, DigestMessage, DropReason, PortId, Trace, attached, quotas};
use bursts::Bursts;
use followers::Followers;
use intake::Intakes;
use live::LivePorts;
use mailbox::Mailbox;
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource};
use millrace_frames::{MAX_BATCH, Packet, PacketPool};
use millrace_pipeline::Program;
use millrace_traffic::Plan;
use pace::Pace;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use streams::Streams;
use supplies::Packets;
use waker::Waker;
pub use waker::{Doorbell, Ringer};

/// Most notices that wait for whoever listens; more are lost, and counted.
pub const MAX_NOTICES: usize = 4096;
/// The same for a worker of a thread that drives many: their places are there from the beginning.
pub const MAX_DRIVEN_NOTICES: usize = 512;

/// What a running switch tells without being asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A program sent a message to the control plane.
    Digest {
        /// The program: another one may run when the notice is read.
        program: Arc<Program>,
        /// The message.
        message: DigestMessage,
    },
    /// The program wrote a line to its log.
    Log(String),
    /// What happened to a packet ([`Worker::tell_stories`]).
    Story(Box<Trace>),
    /// A port is broken for good; the others go on.
    PortFailed {
        /// The port.
        port: PortId,
        /// Why.
        error: String,
    },
}

/// How a worker ended.
#[derive(Debug)]
pub struct Summary {
    /// The switch, with its state and counters.
    pub switch: Switch,
    /// What each port counted.
    pub ports: Vec<(PortId, PortStatistics)>,
    /// The ports that broke.
    pub failed: Vec<(PortId, PortError)>,
    /// Notices that nobody took in time.
    pub lost_notices: u64,
    /// What each worker did, the leading one first.
    pub workers: Vec<WorkerReport>,
}

impl Summary {
    /// Adds how another worker of the same switch ended.
    fn add(&mut self, other: Summary) {
        other.ports.into_iter().for_each(|(port, statistics)| add(&mut self.ports, port, statistics));
        for (port, error) in other.failed {
            if self.failed.iter().all(|(failed, _)| *failed != port) {
                self.failed.push((port, error));
            }
        }
        self.lost_notices += other.lost_notices;
        self.workers.extend(other.workers);
        self.switch.add_counts(&other.switch);
    }
}

/// Adds what one queue pair of a port has counted.
fn add(ports: &mut Vec<(PortId, PortStatistics)>, port: PortId, statistics: PortStatistics) {
    match ports.iter_mut().find(|(known, _)| *known == port) {
        Some((_, sum)) => *sum += statistics,
        None => ports.push((port, statistics)),
    }
}

/// The numbers of the ports, if so many workers can have them.
fn check(ports: &[(PortId, Vec<Box<dyn QueuePair>>)], workers: usize) -> Result<BTreeSet<PortId>, RunError> {
    let mut numbers = BTreeSet::new();
    for (port, pairs) in ports {
        if !numbers.insert(*port) {
            return Err(RunError::DuplicatePort(*port));
        }
        if pairs.len() != 1 && pairs.len() != workers {
            return Err(RunError::QueuePairs(*port, pairs.len()));
        }
    }
    Ok(numbers)
}

/// Makes the calling thread one that forwards: it wakes when its time is over, not later, and runs on this processor alone, if there is
/// one and the system lets it.
pub fn prepare_thread(processor: Option<usize>) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    waiting::wake_in_time();
    if let Some(processor) = processor.filter(|processor| *processor < CpuSet::MAX_CPU) {
        let mut set = CpuSet::new();
        set.set(processor);
        let _ = sched_setaffinity(None, &set);
    }
}

/// A switch over live ports.
pub struct Worker {
    pub(crate) switch: Switch,
    pub(crate) ports: LivePorts,
    packets: Box<Packets>,
    bursts: Bursts,
    pace: Pace,
    mailbox: Mailbox,
    listener: Listener,
    failed: Vec<(PortId, PortError)>,
    /// All ports replay captures; the time of the first frame.
    simulated: Option<Option<u64>>,
    streams: Streams,
    /// The workers that this one leads.
    followers: Followers,
    seat: Seat,
}

/// Which worker of a switch it is.
struct Seat {
    /// 0 leads.
    number: usize,
    /// Where the leader and its followers run, in their order; none: where the system has them run.
    processors: Vec<usize>,
    /// Which worker a frame goes to from a port with one queue pair.
    spread: Spread,
    /// How its ports share it.
    intakes: Intakes,
    /// Its packets are lent, by whoever drives it.
    are_lent: bool,
}

/// Who listens to the switch.
#[derive(Default)]
struct Listener {
    notices: Option<SyncSender<Notice>>,
    /// Notices that nobody took in time.
    lost: u64,
    /// Whether it hears of each packet.
    of_packets: bool,
}

/// Most packets that the ports of a worker may keep until their frames have left, all together (a gigabyte).
const MAX_KEPT: usize = 1 << 16;

/// Packets for so many ports: a batch on its way in, and one on its way out of each, which a driver may keep for a round; and
/// those that ports keep until their frames have left.
fn pool_size(ports: usize, kept: usize) -> usize {
    MAX_BATCH * (2 * ports + 2) + kept.min(MAX_KEPT)
}

impl Worker {
    /// A worker for a switch over these ports. The switch gets their numbers as those it knows, and their clock: a
    /// simulated one if all of them replay captures, else that which it follows, or the machine's monotonic one.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn new(switch: Switch, ports: Vec<(PortId, Box<dyn QueuePair>)>) -> Result<Worker, RunError> {
        let ports = ports.into_iter().map(|(port, pair)| (port, vec![pair])).collect();
        Worker::with_followers(switch, ports, 1, Spread::default())
    }

    /// So many workers for a switch, of which this one leads. A port has a queue pair for each, or one pair, whose frames `spread`
    /// distributes.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn with_followers(
        switch: Switch,
        ports: Vec<(PortId, Vec<Box<dyn QueuePair>>)>,
        workers: usize,
        spread: Spread,
    ) -> Result<Worker, RunError> {
        if !(1..=MAX_WORKERS).contains(&workers) {
            return Err(RunError::Workers(workers));
        }
        let doorbells = (0..workers).map(|_| Doorbell::new()).collect::<io::Result<Vec<_>>>();
        let doorbells = doorbells.map_err(RunError::System)?;
        let mailboxes = doorbells.into_iter().map(Mailbox::new).collect();
        Worker::with_mailboxes(switch, ports, mailboxes, (spread, false))
    }

    /// As [`Worker::with_followers`], as many as there are mailboxes; with packets that are lent to them, or with their own.
    fn with_mailboxes(
        mut switch: Switch,
        ports: Vec<(PortId, Vec<Box<dyn QueuePair>>)>,
        mailboxes: Vec<Mailbox>,
        (spread, are_lent): (Spread, bool),
    ) -> Result<Worker, RunError> {
        let workers = mailboxes.len();
        let numbers = check(&ports, workers)?;
        // Without ports it is still there for its controllers, until it is stopped.
        let is_simulated =
            |(_, pairs): &(_, Vec<Box<dyn QueuePair>>)| pairs[0].time_source() == TimeSource::Simulated;
        let simulated = !ports.is_empty() && ports.iter().all(is_simulated);
        if simulated && workers > 1 {
            return Err(RunError::Simulated);
        }
        if simulated && !attached::has_this_time(&switch) {
            return Err(RunError::Device);
        }
        let clock = match (&switch.clock, simulated) {
            (Clock::Followed(_), true) => return Err(RunError::Clock),
            (followed @ Clock::Followed(_), false) => followed.clone(),
            (_, true) => Clock::simulated(),
            (_, false) => Clock::real(),
        };
        switch.connect(numbers, clock).map_err(RunError::Switch)?;
        if !simulated {
            switch.take_turns();
            // Code that cannot be made is not missed: what there is goes on.
            let _ = switch.fit_code();
        }
        let memory = switch.traffic.budget.memory() / workers;
        switch.traffic.budget.set_memory(memory);
        let mut others = switch.share_with(workers - 1).map_err(RunError::Switch)?;
        quotas::apply(&mut switch, 0, workers);
        (1..).zip(&mut others).for_each(|(worker, other)| quotas::apply(other, worker, workers));
        let wakers: Vec<Waker> = mailboxes.iter().map(Mailbox::waker).collect();
        let mut live: Vec<LivePorts> = (0..workers).map(|_| LivePorts::default()).collect();
        for (number, pairs) in ports {
            let accesses = relay::connect(relay::first_owners(pairs), &wakers, spread);
            for (live, accesses) in live.iter_mut().zip(accesses) {
                accesses.into_iter().for_each(|access| _ = live.push(number, access));
            }
        }
        let switches = std::iter::once(switch).chain(others);
        let parts = mailboxes.into_iter().zip(live);
        let mut made = switches.zip(parts).enumerate().map(|(number, (switch, (mailbox, live)))| {
            let (processors, intakes) = (Vec::new(), Intakes::default());
            let seat = Seat { number, processors, spread, intakes, are_lent };
            Worker::made((switch, live), simulated, mailbox, seat)
        });
        // There is at least one.
        let mut leader = made.next().ok_or(RunError::Workers(0))?;
        made.for_each(|worker| leader.followers.push(worker));
        leader.followers.start(&leader.mailbox.control().clone()).map_err(RunError::System)?;
        leader.mailbox.lead(workers);
        Ok(leader)
    }

    fn made((switch, live): (Switch, LivePorts), simulated: bool, mailbox: Mailbox, seat: Seat) -> Worker {
        let streams = Streams::of(&live);
        let size = if seat.are_lent { 0 } else { pool_size(live.len(), live.kept()) };
        let packets = Packets::of(PacketPool::new(size), if simulated { 1 } else { MAX_BATCH });
        Worker {
            switch,
            ports: live,
            packets,
            bursts: Bursts::new(!simulated),
            pace: Pace::default(),
            mailbox,
            listener: Listener::default(),
            failed: Vec::new(),
            simulated: simulated.then_some(None),
            streams,
            followers: Followers::default(),
            seat,
        }
    }

    /// Has the workers run on these processors, the leading one on the first: those that threads may be put on are numbered from 0.
    pub fn run_on(&mut self, processors: Vec<usize>) {
        self.seat.processors = processors;
    }

    /// As [`Control::schedule`], before the workers run.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub fn schedule(&mut self, port: PortId, plan: Option<Arc<Plan>>) -> Result<(), ScheduleError> {
        schedulers::schedule(self, port, plan)
    }

    /// As [`Control::set_intake`], before the workers run.
    ///
    /// # Errors
    /// [`IntakeError`].
    pub fn set_intake(&mut self, port: PortId, intake: Option<Intake>) -> Result<(), IntakeError> {
        intake::set(self, port, intake)
    }

    /// Has the workers wait for packets like that.
    pub fn poll(&mut self, polling: Polling) {
        self.mailbox.idleness.polling = polling;
    }

    /// Does something with this worker and its followers, between two rounds of all.
    fn with_all<R>(&mut self, work: impl FnOnce(&mut [&mut Worker]) -> R) -> R {
        let mut followers = std::mem::take(&mut self.followers);
        let here = followers.all().iter_mut().map(|follower| &mut **follower);
        let result = work(&mut std::iter::once(&mut *self).chain(here).collect::<Vec<_>>());
        self.followers = followers;
        result
    }

    /// The switch, to be set up before it runs, for all workers.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    /// A handle for other threads. Requests wait until the worker runs.
    pub fn control(&self) -> Control {
        self.mailbox.control().clone()
    }

    /// Listens to the switch. Only the last listener gets notices.
    pub fn notices(&mut self) -> Receiver<Notice> {
        let places = if self.seat.are_lent { MAX_DRIVEN_NOTICES } else { MAX_NOTICES };
        let (sender, receiver) = sync_channel(places);
        self.listener.notices = Some(sender);
        receiver
    }

    /// From now on tells what happens to each packet: as far as it goes at once, which may be into a queue. The reference
    /// interpreter runs the program then.
    pub fn tell_stories(&mut self) {
        self.listener.of_packets = true;
    }

    /// From now on goes on when all ports have ended, and takes the first frames of streams after that time.
    pub fn replay_streams_after(&mut self, wait: Duration) {
        self.streams.start_after(wait);
    }

    /// Runs until it is stopped or all ports have ended and all queues are empty, of all workers.
    pub fn run(mut self) -> Summary {
        self.set_followers_up();
        prepare_thread(self.seat.processors.first().copied());
        while !self.mailbox.control().is_to_stop() {
            mailbox::take_messages(&mut self);
            if self.mailbox.is_paused() {
                // It is to stop.
                continue;
            }
            let busy = self.round();
            // Before it sleeps: nothing comes any more that would wake it.
            if self.has_ended() && !self.streams.go_on && self.followers.are_done() {
                break;
            }
            self.rest_after(busy);
        }
        let mut others = std::mem::take(&mut self.followers).end();
        self.send_the_last();
        others.iter_mut().for_each(|other| other.send_the_last());
        // What one has handed over to another leaves.
        self.complete();
        others.iter_mut().for_each(|other| other.complete());
        let mut summary = self.summary();
        others.into_iter().for_each(|other| summary.add(other.summary()));
        summary
    }

    /// Gives the followers what the leader was set up with, and has them run.
    fn set_followers_up(&mut self) {
        let Worker { switch, listener, followers, seat, mailbox, .. } = self;
        let workers = followers.len() + 1;
        quotas::apply(switch, 0, workers);
        for (number, follower) in (1..).zip(followers.all()) {
            follower.switch.set_up_as(switch);
            quotas::apply(&mut follower.switch, number, workers);
            follower.listener.notices = listener.notices.clone();
            follower.listener.of_packets = listener.of_packets;
            follower.seat.processors = seat.processors.clone();
            follower.mailbox.idleness.polling = mailbox.idleness.polling;
        }
        followers.give_back();
    }

    /// Takes a batch from each port; says whether there was anything to do.
    fn round(&mut self) -> bool {
        self.send_the_last();
        let busy = if self.simulated.is_some() { self.replay_round() } else { self.live_round() };
        self.flush();
        self.complete();
        self.bursts.left();
        busy
    }

    /// Sleeps after a round in which there was nothing to do.
    fn rest_after(&mut self, busy: bool) {
        let is_alone = self.seat.number == 0 && self.followers.is_empty();
        if busy {
            self.mailbox.is_awake();
        } else if self.mailbox.idleness.goes_on() {
            std::hint::spin_loop();
        } else if is_alone || self.mailbox.may_sleep() {
            waiting::wait(self);
            self.mailbox.is_awake();
        }
    }

    /// Whether its ports have ended and no packet waits in it.
    fn has_ended(&self) -> bool {
        !self.ports.is_empty() && self.ports.iter().all(|port| port.ended) && self.is_done()
    }

    fn summary(mut self) -> Summary {
        if self.switch.has_device() {
            attached::take(&mut self.switch, true);
            self.switch.settle_device();
            let outcome = self.switch.take_outcome();
            self.dispatch(outcome);
        }
        self.flush();
        let workers = vec![WorkerReport::of(&self)];
        let mut ports = Vec::new();
        self.ports.iter().for_each(|live| add(&mut ports, live.id, live.statistics()));
        Summary { workers, ports, switch: self.switch, failed: self.failed, lost_notices: self.listener.lost }
    }

    /// Whether no packet waits for anything.
    fn is_done(&self) -> bool {
        self.switch.next_departure_ns().is_none()
            && !self.switch.traffic.has_put_off()
            && self.switch.traffic.queues.planned.len() == 0
            && schedulers::wake_ns(&self.ports).is_none()
    }

    /// Takes back the packets of frames that have left, from the ports that keep them until then.
    fn complete(&mut self) {
        let Worker { ports, packets, .. } = self;
        let Packets { pool, .. } = &mut **packets;
        ports.iter_mut().filter(|live| live.keeps > 0).for_each(|live| live.port.complete(pool));
        schedulers::count_discarded(self);
    }

    /// Takes a batch from each of these ports, all of which have nothing but queue pairs that keep no packets and serve no queues; says
    /// whether there was anything to do.
    fn short_round(&mut self, ports: impl Iterator<Item = PortId>) -> bool {
        self.send_the_last();
        let mut busy = false;
        for port in ports {
            if let Some(at) = self.ports.find(port) {
                busy |= self.take_any_from(at);
            }
        }
        busy |= self.let_go_on();
        let Worker { ports, packets, .. } = self;
        let Packets { outgoing, .. } = &mut **packets;
        outgoing.flush(ports);
        self.note_broken();
        self.bursts.left();
        busy
    }

    /// Takes a batch from each port; says whether there was anything to do.
    fn live_round(&mut self) -> bool {
        let mut busy = self.streams.any && streams::round(self);
        match self.seat.intakes.are_alike() {
            true => (0..self.ports.len()).for_each(|at| busy |= self.take_any_from(at)),
            false => busy |= intake::round(self),
        }
        busy | self.let_go_on()
    }

    /// Lets packets go on that wait in the switch for a turn, a time or a link; whether there were any.
    fn let_go_on(&mut self) -> bool {
        links::look(&mut self.switch, &mut self.ports);
        if self.switch.has_device() {
            let busy = attached::take(&mut self.switch, false);
            let outcome = self.switch.take_outcome();
            self.dispatch(outcome);
            return busy;
        }
        let put_off = self.switch.traffic.has_put_off();
        if put_off {
            self.go_on();
        }
        let due = self.switch.next_departure_ns().is_some_and(|next| next <= self.switch.now_ns());
        if due {
            let outcome = self.switch.advance_to(0);
            self.dispatch(outcome);
        }
        due || put_off
    }

    /// Takes a batch from a port; says whether there was any or may be more.
    fn take_any_from(&mut self, at: usize) -> bool {
        self.take_from(at).is_some_and(|(any, _)| any)
    }

    /// As [`Worker::take_any_from`], and says its bytes; none: nothing is taken before what came there earlier is done.
    fn take_from(&mut self, at: usize) -> Option<(bool, u64)> {
        let live = &self.ports[at];
        if self.switch.traffic.holds_back(live.id) {
            return None;
        }
        if self.streams.any && live.is_stamped {
            return Some((false, 0));
        }
        let more = self.receive(at);
        let received = &self.packets.received;
        if received.is_empty() {
            return Some((more, 0));
        }
        let bytes = match self.seat.intakes.are_alike() {
            true => 0,
            false => Packet::bytes_of(received.packets()),
        };
        links::look(&mut self.switch, &mut self.ports);
        self.switch_batch(at, 0);
        Some((true, bytes))
    }

    /// Works for another turn on packets that were put off.
    fn go_on(&mut self) {
        let outcome = self.switch.go_on();
        self.dispatch(outcome);
    }

    /// Takes up to a batch of frames, one by one in the order of their times.
    fn replay_round(&mut self) -> bool {
        for _ in 0..MAX_BATCH {
            let arrivals = self.ports.iter_mut().enumerate().filter(|(_, port)| !port.ended);
            let next = arrivals.filter_map(|(at, port)| Some((port.port.next_arrival_ns()?, at))).min();
            // Without a next arrival, asking tells why: the end, or damage.
            let at = next.map(|(_, at)| at).or_else(|| self.ports.iter().position(|port| !port.ended));
            let Some(at) = at else { break };
            self.receive(at);
            if let (Some(packet), Some(origin)) =
                (self.packets.received.packets().first(), &mut self.simulated)
            {
                let time_ns = packet.timestamp_ns.saturating_sub(*origin.get_or_insert(packet.timestamp_ns));
                self.switch_batch(at, time_ns);
            }
        }
        if self.ports.iter().all(|port| port.ended) {
            let outcome = self.switch.drain();
            self.dispatch(outcome);
            schedulers::drain(self);
        }
        true
    }

    /// Receives from a port into the batch; says whether there may be more at once.
    fn receive(&mut self, at: usize) -> bool {
        let live = &mut self.ports[at];
        if live.ended {
            return false;
        }
        let Packets { received, pool, .. } = &mut *self.packets;
        received.want_times(self.switch.reads_time());
        received.set_limit(self.pace.allowed);
        match live.port.receive(received, pool) {
            Ok(Received::More) => true,
            Ok(Received::Idle) => false,
            Ok(Received::End) => {
                live.ended = true;
                false
            }
            Err(error) => {
                live.ended = true;
                self.fail(at, error);
                false
            }
        }
    }

    /// Switches the batch that came from a port.
    fn switch_batch(&mut self, at: usize, time_ns: u64) {
        schedulers::let_time_pass(self, time_ns);
        if !self.switch.advance_empty(time_ns) {
            let waited = self.switch.advance_to(time_ns);
            self.dispatch(waited);
        }
        let from = self.ports[at].id;
        self.bursts.came(self.packets.received.packets());
        if self.simulated.is_none() {
            self.pace.allowed = match self.switch.forwarder.weights.are_heavy() {
                true => self.pace.next(self.switch.now_ns, self.packets.received.len()),
                false => MAX_BATCH,
            };
        }
        let tells = self.listener.of_packets;
        // The clock was read above.
        let left_ns = self.simulated.flatten().unwrap_or(0).saturating_add(self.switch.now_ns);
        let Worker { switch, ports, packets, simulated, bursts: Bursts { arrivals, .. }, .. } = self;
        let Packets { pool, received, places, leaving, outgoing } = &mut **packets;
        switch.hops = received.packets().first().map_or(0, |packet| packet.hops);
        leaving.hops = switch.hops;
        let times = match simulated.is_none() && (switch.reads_time() || tells) {
            true => arrivals.of(received.packets(), &switch.clock, switch.now_ns, &mut ports[at].latest_ns),
            false => arrivals.all_now(),
        };
        if tells && !switch.has_device() {
            return self.switch_telling(from, time_ns);
        }
        let Some(mut burst) = received.burst(places) else {
            return self.switch_copies(from);
        };
        let memory = burst.addresses();
        switch.switch_burst_at(from, &mut burst, times, |port, output| leaving.note(port, output, &memory));
        leaving.hand_on(received, left_ns, outgoing, (ports, pool));
        self.hand_over();
        let (digests, log) = self.switch.take_messages();
        self.tell_messages(digests, log);
    }

    /// Switches the batch that came from a port, whose packets cannot be switched where they lie.
    fn switch_copies(&mut self, from: PortId) {
        let (Packets { received, .. }, arrivals) = (&*self.packets, &self.bursts.arrivals);
        let frames = received.packets().iter().enumerate();
        let frames = frames.map(|(number, packet)| (from, packet.data(), arrivals.time(number)));
        // The clock is where it has to be.
        let outcome = self.switch.inject_each(frames, 0);
        self.packets.received.recycle(&mut self.packets.pool);
        self.dispatch(outcome);
    }

    /// Switches the batch that came from a port, packet by packet, each with its story.
    fn switch_telling(&mut self, from: PortId, time_ns: u64) {
        let frames: Vec<Vec<u8>> =
            self.packets.received.packets().iter().map(|packet| packet.data().to_vec()).collect();
        self.packets.received.recycle(&mut self.packets.pool);
        for (number, frame) in frames.iter().enumerate() {
            let came_ns = self.bursts.arrivals.time(number);
            let (outcome, story) = self.switch.inject_one_traced((from, frame, came_ns), time_ns);
            self.tell(Notice::Story(Box::new(story)));
            self.dispatch(outcome);
        }
    }

    /// Sends what waited for a program that has gone since the last round ([`Switch::run_empty`]).
    fn send_the_last(&mut self) {
        let Outcome { sent, drops, .. } = &self.switch.ledger.outcome;
        if !sent.is_empty() || !drops.is_empty() {
            let outcome = self.switch.take_outcome();
            self.dispatch(outcome);
        }
    }

    /// Gives packets to their ports and notices to whoever listens.
    fn dispatch(&mut self, outcome: Outcome) {
        for sent in &outcome.sent {
            let time_ns = self.simulated.flatten().unwrap_or(0).saturating_add(sent.time_ns);
            let Worker { ports, packets, .. } = self;
            let Packets { pool, outgoing, .. } = &mut **packets;
            outgoing.put(ports, pool, (sent.port, sent.service, sent.hops, &sent.bytes), time_ns);
        }
        self.hand_over();
        self.tell_messages(outcome.digests, outcome.log);
    }

    fn tell_messages(&mut self, digests: impl IntoIterator<Item = DigestMessage>, log: Vec<String>) {
        for message in digests {
            let program = Arc::clone(self.switch.program());
            self.tell(Notice::Digest { program, message });
        }
        log.into_iter().for_each(|line| self.tell(Notice::Log(line)));
        self.listener.lost += self.switch.take_lost();
    }

    /// Transmits what waits for ports, and counts what was refused.
    fn hand_over(&mut self) {
        let Worker { ports, packets, .. } = self;
        let Packets { pool, outgoing, .. } = &mut **packets;
        outgoing.transmit_all(ports, pool);
        for (port, bytes, reason) in self.packets.outgoing.refused.drain(..) {
            self.switch.ledger.counters.refused(port, bytes, reason);
        }
        self.note_broken();
    }

    /// Ends the ports that broke while they sent.
    fn note_broken(&mut self) {
        if self.packets.outgoing.broken.is_empty() {
            return;
        }
        for (at, error) in std::mem::take(&mut self.packets.outgoing.broken) {
            self.fail(at, error);
        }
    }

    fn flush(&mut self) {
        self.packets.outgoing.are_flushed();
        for at in 0..self.ports.len() {
            if let Err(error) = self.ports[at].port.flush() {
                self.fail(at, error);
            }
        }
    }

    /// A port is broken: it ends, the others go on.
    fn fail(&mut self, at: usize, error: PortError) {
        let port = self.ports[at].id;
        self.ports[at].ended = true;
        schedulers::give_up(self, port, DropReason::TxRefused);
        if self.failed.iter().any(|(failed, _)| *failed == port) {
            return;
        }
        self.tell(Notice::PortFailed { port, error: error.to_string() });
        self.failed.push((port, error));
    }

    fn tell(&mut self, notice: Notice) {
        let Some(listener) = &self.listener.notices else { return };
        match listener.try_send(notice) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.listener.lost += 1,
            Err(TrySendError::Disconnected(_)) => self.listener.notices = None,
        }
    }
}
