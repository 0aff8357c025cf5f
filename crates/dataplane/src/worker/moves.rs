//! A queue pair of a device goes from one worker to another while both run.
//!
//! All workers are between two rounds meanwhile. What has come in on the port leaves the switch first, and its devices, so that
//! nothing that comes later by the queue pair overtakes it; then the port is connected again. Frames that come meanwhile wait in
//! the device.

use super::live::LivePort;
use super::relay::{self, Owned, Past};
use super::spread::Spread;
use super::{Worker, ports};
use crate::PortId;
use crate::requests::RequestError;
use millrace_drivers::PortStatistics;
use std::fmt;
use std::time::{Duration, Instant};

/// How long what came in on a port may take to leave before its queue pair moves. No packet passes meanwhile.
pub const MAX_DRAIN_TIME: Duration = Duration::from_millis(20);

/// Why a queue pair stays with its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveError {
    /// There is no such port.
    UnknownPort(PortId),
    /// The device of the port has fewer queue pairs.
    NoQueuePair {
        /// The port.
        port: PortId,
        /// The number given.
        queue: usize,
        /// How many there are.
        of: usize,
    },
    /// There are fewer workers.
    NoWorker {
        /// The number given.
        worker: usize,
        /// How many there are.
        of: usize,
    },
    /// What came in on the port, or is on its way out of a device, has not left within [`MAX_DRAIN_TIME`].
    Busy(PortId),
    /// The system has no memory for the packets that the other worker needs more.
    NoMemory,
    /// The worker has ended.
    Ended,
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoveError::UnknownPort(port) => write!(f, "there is no port {port}"),
            MoveError::NoQueuePair { port, queue, of } => {
                write!(f, "port {port} has no queue pair {queue}: there are {of}, counted from 0")
            }
            MoveError::NoWorker { worker, of } => {
                write!(f, "there is no worker {worker}: there are {of}, counted from 0")
            }
            MoveError::Busy(port) => write!(
                f,
                "packets of port {port} have not left within {MAX_DRAIN_TIME:?}, and would be overtaken: the queue pair stays"
            ),
            MoveError::NoMemory => f.write_str("there is no memory for the packets of one more queue pair"),
            MoveError::Ended => RequestError.fmt(f),
        }
    }
}

impl std::error::Error for MoveError {}

impl From<RequestError> for MoveError {
    fn from(_: RequestError) -> MoveError {
        MoveError::Ended
    }
}

/// Has another worker have a queue pair of a port.
pub(super) fn move_queue(leader: &mut Worker, id: PortId, queue: usize, to: usize) -> Result<(), MoveError> {
    let spread = leader.seat.spread;
    leader.with_all(|workers| {
        let from = find(workers, id, queue)?;
        if to >= workers.len() {
            return Err(MoveError::NoWorker { worker: to, of: workers.len() });
        }
        if from == to {
            return Ok(());
        }
        make_room(workers, id)?;
        drain(workers, id)?;
        let (mut pairs, before) = take_apart(workers, id);
        pairs.iter_mut().filter(|owned| owned.queue == queue).for_each(|owned| owned.worker = to);
        reconnect(workers, id, (pairs, before), spread);
        Ok(())
    })
}

/// Has all workers reach a port again that was taken apart.
pub(super) fn reconnect(
    workers: &mut [&mut Worker],
    id: PortId,
    (pairs, before): (Vec<Owned>, PortStatistics),
    spread: Spread,
) {
    let wakers: Vec<_> = workers.iter().map(|worker| worker.mailbox.waker()).collect();
    for (worker, accesses) in workers.iter_mut().zip(relay::connect(pairs, &wakers, spread)) {
        for access in accesses {
            let live = worker.ports.push(id, access);
            worker.streams.any |= live.is_stamped;
        }
    }
    if let Some(at) = workers[0].ports.find(id) {
        workers[0].ports[at].before = before;
    }
}

/// The worker that has a queue pair.
fn find(workers: &[&mut Worker], id: PortId, queue: usize) -> Result<usize, MoveError> {
    let of_port = |worker: &&mut Worker| worker.ports.iter().filter(|live| live.id == id).count();
    if workers.iter().map(of_port).sum::<usize>() == 0 {
        return Err(MoveError::UnknownPort(id));
    }
    let has = |live: &LivePort| live.id == id && live.queue == Some(queue);
    let from = workers.iter().position(|worker| worker.ports.iter().any(has));
    from.ok_or_else(|| {
        let pairs = workers.iter().flat_map(|worker| worker.ports.iter());
        let of = pairs.filter(|live| live.id == id && live.queue.is_some()).count();
        MoveError::NoQueuePair { port: id, queue, of }
    })
}

/// Has each worker have packets enough for any of the port's queue pairs, with rings to all others.
fn make_room(workers: &mut [&mut Worker], id: PortId) -> Result<(), MoveError> {
    let pairs = workers.iter().flat_map(|worker| worker.ports.iter());
    let most = pairs.filter(|live| live.id == id).map(|live| live.keeps).max().unwrap_or(0);
    let kept = most.saturating_add(relay::most_kept(workers.len()));
    let room = workers.iter_mut().try_for_each(|worker| ports::make_room(worker, kept));
    room.map_err(|_| MoveError::NoMemory)
}

/// Lets what has come in on a port leave the switch, and what is on its way out leave the devices.
pub(super) fn drain(workers: &mut [&mut Worker], id: PortId) -> Result<(), MoveError> {
    let begun = Instant::now();
    loop {
        let mut are_empty = true;
        for worker in workers.iter_mut() {
            are_empty &= take_handed_over(worker, id, Some(begun + MAX_DRAIN_TIME));
            go_on_with_waiting(worker);
            worker.flush();
            worker.complete();
        }
        if are_empty && workers.iter_mut().all(|worker| is_dry(worker, id)) {
            return Ok(());
        }
        if begun.elapsed() > MAX_DRAIN_TIME {
            return Err(MoveError::Busy(id));
        }
        std::thread::yield_now();
    }
}

/// Whether nothing that came in on a port waits in a worker, and no frame is on its way out of it.
fn is_dry(worker: &mut Worker, id: PortId) -> bool {
    let traffic = &worker.switch.traffic;
    !traffic.has_put_off()
        && !traffic.queues.has_of(id)
        && worker.ports.iter_mut().all(|live| live.sending.is_empty() && live.port.in_flight() == 0)
}

/// Takes a port out of all workers: its queue pairs with those that have them, and what was counted next to these.
pub(super) fn take_apart(workers: &mut [&mut Worker], id: PortId) -> (Vec<Owned>, PortStatistics) {
    let (mut pairs, mut counted) = (Vec::new(), PortStatistics::default());
    for (number, worker) in workers.iter_mut().enumerate() {
        while let Some(at) = worker.ports.find(id) {
            let LivePort { port, queue, ended, before, latest_ns, .. } = worker.ports.remove(at);
            let (pair, rest) = relay::disconnect(port);
            counted += before;
            counted += rest;
            if let (Some(pair), Some(queue)) = (pair, queue) {
                let past = Past { has_ended: ended, latest_ns };
                pairs.push(Owned { queue, worker: number, pair, past });
            }
        }
    }
    pairs.sort_by_key(|owned| owned.queue);
    (pairs, counted)
}

/// Switches what the worker with a port's queue pair has handed over, as in its rounds: no packet while others of the port are put
/// off, which it would overtake. At that time what is left stays in the ring. Says whether nothing is.
pub(super) fn take_handed_over(worker: &mut Worker, id: PortId, until: Option<Instant>) -> bool {
    let is_handed = |live: &LivePort| live.id == id && live.queue.is_none();
    let Some(at) = worker.ports.iter().position(is_handed) else { return true };
    for _ in 0..relay::RING {
        while worker.switch.traffic.holds_back(id) {
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            worker.go_on();
        }
        worker.receive(at);
        if worker.packets.received.is_empty() {
            return true;
        }
        worker.switch_batch(at, 0);
    }
    false
}

/// Goes on with packets that wait in the switch and may leave now.
fn go_on_with_waiting(worker: &mut Worker) {
    if worker.switch.traffic.has_put_off() {
        worker.go_on();
    }
    let outcome = worker.switch.advance_to(0);
    worker.dispatch(outcome);
}
