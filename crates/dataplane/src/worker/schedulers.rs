//! The schedulers of a worker's ports: plans that come and go while it runs, the time at which frames may leave, and what was dropped.

use super::live::{LivePort, LivePorts};
use super::relay::Owned;
use super::{Worker, moves, relay, scheduled};
use crate::requests::RequestError;
use crate::{DropReason, PortId};
use millrace_traffic::{Plan, QueueReport};
use std::fmt;
use std::sync::Arc;

/// Most packets that wait in the queues of all ports of a switch together: each takes a slot of packet memory.
pub const MAX_SCHEDULED: usize = 1 << 16;

/// A port that has a plan, at one moment.
#[derive(Clone, Debug)]
pub struct PlannedPort {
    /// The port.
    pub port: PortId,
    /// Its plan.
    pub plan: Arc<Plan>,
    /// Its queues, copies of one as one: their sums, and the largest of each.
    pub queues: Vec<QueueReport>,
}

/// Why a port goes on as it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// There is no such port.
    UnknownPort(PortId),
    /// All ports have classes served by strict priority, as the switch was started.
    Priorities,
    /// The queues of all ports would hold more than [`MAX_SCHEDULED`] packets.
    TooMany {
        /// Packets that the queues of the others may hold.
        others: usize,
        /// Those of the new plan.
        more: usize,
    },
    /// What is on its way out has not left within [`crate::MAX_DRAIN_TIME`].
    Busy(PortId),
    /// The system has no memory for packets.
    NoMemory,
    /// The code that tells classes apart cannot be made.
    Code(String),
    /// The worker has ended.
    Ended,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::UnknownPort(port) => write!(f, "there is no port {port}"),
            ScheduleError::Priorities => f.write_str(
                "the switch was started with classes of service for all ports (`--priorities`): without that, a plan gives a port its classes",
            ),
            ScheduleError::TooMany { others, more } => write!(
                f,
                "the queues of all ports hold at most {MAX_SCHEDULED} packets: the others have {others}, which leaves no room for {more}"
            ),
            ScheduleError::Busy(port) => {
                write!(f, "packets of port {port} have not left in time: it goes on as it did, try again")
            }
            ScheduleError::NoMemory => f.write_str("there is no memory for the packets of the queues"),
            ScheduleError::Code(error) => write!(f, "no code that tells classes apart: {error}"),
            ScheduleError::Ended => RequestError.fmt(f),
        }
    }
}

impl std::error::Error for ScheduleError {}

impl From<RequestError> for ScheduleError {
    fn from(_: RequestError) -> ScheduleError {
        ScheduleError::Ended
    }
}

/// Has a port serve what leaves by it as a plan says, or as it comes.
pub(super) fn schedule(
    leader: &mut Worker,
    id: PortId,
    plan: Option<Arc<Plan>>,
) -> Result<(), ScheduleError> {
    if leader.switch.has_priorities() {
        return Err(ScheduleError::Priorities);
    }
    let spread = leader.seat.spread;
    leader.with_all(|workers| {
        if !workers.iter().any(|worker| worker.ports.find(id).is_some()) {
            return Err(ScheduleError::UnknownPort(id));
        }
        if let Some(plan) = &plan {
            check_room(workers, id, plan)?;
        }
        let is_planned = plan.is_some() || schedulers(workers).any(|(port, _)| port != id);
        for worker in workers.iter_mut() {
            worker.switch.tell_classes(is_planned).map_err(ScheduleError::Code)?;
        }
        let known = schedulers(workers).find(|(port, _)| *port == id).map(|(_, scheduler)| scheduler);
        match (known, &plan) {
            (Some(scheduler), Some(plan)) => {
                scheduler.replace(Arc::clone(plan));
                workers.iter_mut().for_each(|worker| note_kept(worker, id));
            }
            (None, None) => {}
            (_, plan) => connect_again(workers, id, plan.clone(), spread)?,
        }
        workers.iter_mut().for_each(|worker| worker.switch.plan(id, plan.clone()));
        Ok(())
    })
}

/// The schedulers of all ports.
fn schedulers<'w>(
    workers: &'w [&mut Worker],
) -> impl Iterator<Item = (PortId, scheduled::Scheduler)> + use<'w> {
    let ports = workers.iter().flat_map(|worker| worker.ports.iter());
    ports.filter_map(|live| Some((live.id, live.scheduler.clone()?)))
}

/// Whether queues of the plan have room, and the worker memory for their packets.
fn check_room(workers: &mut [&mut Worker], id: PortId, plan: &Plan) -> Result<(), ScheduleError> {
    let others = schedulers(workers).filter(|(port, _)| *port != id);
    let others: usize = others.map(|(_, scheduler)| scheduler.plan().max_packets()).sum();
    let more = plan.max_packets();
    if others.saturating_add(more) > MAX_SCHEDULED {
        return Err(ScheduleError::TooMany { others, more });
    }
    // A worker whose port others send by keeps theirs too.
    let kept = more.saturating_add(relay::most_kept(workers.len()));
    let mut made = workers.iter_mut().map(|worker| super::ports::make_room(worker, kept));
    made.try_for_each(|made| made.map_err(|_| ScheduleError::NoMemory))
}

/// Connects a port again, with a scheduler around its first queue pair or without one.
fn connect_again(
    workers: &mut [&mut Worker],
    id: PortId,
    plan: Option<Arc<Plan>>,
    spread: super::Spread,
) -> Result<(), ScheduleError> {
    moves::drain(workers, id).map_err(|_| ScheduleError::Busy(id))?;
    let (mut pairs, before) = moves::take_apart(workers, id);
    // There is one, as the port is there.
    let Owned { queue, worker: owner, pair, past } = pairs.remove(0);
    let Worker { switch, packets, .. } = &mut *workers[owner];
    let pair = match plan {
        Some(plan) => scheduled::schedule(pair, plan, &switch.clock, switch.traffic.queues.places()),
        None => scheduled::unschedule(pair, &mut packets.pool, |len, why| {
            switch.ledger.counters.refused(id, len, why);
        }),
    };
    pairs.insert(0, Owned { queue, worker: owner, pair, past });
    moves::reconnect(workers, id, (pairs, before), spread);
    Ok(())
}

/// Notes how many packets a port keeps, after that has changed.
fn note_kept(worker: &mut Worker, id: PortId) {
    for live in worker.ports.iter_mut().filter(|live| live.id == id) {
        live.keeps = live.port.max_kept();
    }
}

/// The ports that have a plan, by number.
pub(super) fn plans(leader: &mut Worker) -> Vec<PlannedPort> {
    leader.with_all(|workers| {
        let mut plans: Vec<PlannedPort> = Vec::new();
        for (port, scheduler) in schedulers(workers) {
            let mut queues = Vec::new();
            scheduler.report(|report| add(&mut queues, report));
            // Those that wait before egress are in the queues of the worker that has switched them.
            let before_egress =
                workers.iter().flat_map(|worker| worker.switch.traffic.queues.planned.reports(port));
            before_egress.for_each(|report| add(&mut queues, report));
            plans.push(PlannedPort { port, plan: scheduler.plan(), queues });
        }
        plans.sort_by_key(|plan| plan.port);
        plans
    })
}

/// Adds what a queue tells to what other copies of it do.
fn add(queues: &mut Vec<QueueReport>, its: QueueReport) {
    // Copies follow one another.
    let Some(mine) = queues.iter_mut().rev().find(|mine| mine.handle == its.handle) else {
        return queues.push(its);
    };
    mine.packets += its.packets;
    mine.bytes += its.bytes;
    mine.sent += its.sent;
    mine.sent_bytes += its.sent_bytes;
    mine.marked += its.marked;
    mine.discarded.iter_mut().zip(its.discarded).for_each(|(sum, count)| *sum += count);
    mine.largest_packets = mine.largest_packets.max(its.largest_packets);
    mine.largest_bytes = mine.largest_bytes.max(its.largest_bytes);
    mine.delay_ns += its.delay_ns;
    mine.largest_delay_ns = mine.largest_delay_ns.max(its.largest_delay_ns);
}

/// A port has gone, or may not send any more: what waits for it is dropped.
pub(super) fn give_up(worker: &mut Worker, id: PortId, reason: DropReason) {
    let of_port = worker.ports.iter().filter(|live| live.id == id);
    of_port.filter_map(|live| live.scheduler.as_ref()).for_each(|scheduler| scheduler.give_up(reason));
    count_discarded(worker);
}

/// When a frame that waits may leave by one of the ports.
pub(super) fn wake_ns(ports: &LivePorts) -> Option<u64> {
    ports.iter().filter_map(|live| live.scheduler.as_ref()?.wake_ns()).min()
}

/// Counts what the queues have dropped since that was done last.
pub(super) fn count_discarded(worker: &mut Worker) {
    let Worker { ports, switch, .. } = worker;
    for LivePort { id, scheduler, .. } in ports.iter() {
        if let Some(scheduler) = scheduler {
            let counters = &mut switch.ledger.counters;
            scheduler.take_discarded(|len, why| counters.refused(*id, len, why));
        }
    }
}

/// Lets frames leave up to a time of a simulated clock, each at its own.
pub(super) fn let_time_pass(worker: &mut Worker, time_ns: u64) {
    let Some(origin) = worker.simulated else { return };
    let origin = origin.unwrap_or(0);
    while let Some(next) = wake_ns(&worker.ports).filter(|next| *next <= time_ns) {
        leave_at(worker, next, origin);
    }
    let told = worker.ports.iter().filter_map(|live| live.scheduler.as_ref());
    told.for_each(|scheduler| scheduler.tell_time(time_ns, origin));
}

/// Lets all frames leave, each at its own time of a simulated clock.
pub(super) fn drain(worker: &mut Worker) {
    let Some(origin) = worker.simulated else { return };
    while let Some(next) = wake_ns(&worker.ports) {
        leave_at(worker, next, origin.unwrap_or(0));
    }
}

fn leave_at(worker: &mut Worker, time_ns: u64, origin: u64) {
    let Worker { ports, packets, .. } = worker;
    for live in ports.iter_mut() {
        if let Some(scheduler) = &live.scheduler {
            scheduler.tell_time(time_ns, origin);
            live.port.complete(&mut packets.pool);
        }
    }
    count_discarded(worker);
}
