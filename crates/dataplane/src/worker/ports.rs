//! Ports that come and go while a worker runs, between two of its rounds.

use super::RunError;
use super::waker::Waker;
use super::{Worker, pool_size};
use super::{moves, relay, schedulers};
use crate::requests::RequestError;
use crate::switch::MAX_PORTS;
use crate::{DropReason, PortId};
use millrace_drivers::{PortStatistics, QueuePair, TimeSource};
use millrace_frames::PacketPool;
use std::fmt;

/// Why a worker's ports stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortsError {
    /// Another port has the number.
    Taken(PortId),
    /// There is no such port.
    Unknown(PortId),
    /// There are [`MAX_PORTS`] already.
    TooMany,
    /// The port, or all ports that there are, replay captures in simulated time, which is the same each time because nothing
    /// comes in between.
    Simulated,
    /// The port has so many queue pairs: neither one nor as many as there are workers.
    QueuePairs(PortId, usize),
    /// The system has no memory for more packets.
    NoMemory,
    /// The worker has ended.
    Ended,
}

impl fmt::Display for PortsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortsError::Taken(port) => write!(f, "there is a port {port} already"),
            PortsError::Unknown(port) => write!(f, "there is no port {port}"),
            PortsError::TooMany => write!(f, "a switch has at most {MAX_PORTS} ports"),
            PortsError::Simulated => {
                f.write_str("ports that replay captures cannot be added or removed, nor others added to them")
            }
            PortsError::QueuePairs(port, pairs) => RunError::QueuePairs(*port, *pairs).fmt(f),
            PortsError::NoMemory => f.write_str("there is no memory for the packets of one more port"),
            PortsError::Ended => RequestError.fmt(f),
        }
    }
}

impl std::error::Error for PortsError {}

/// How a worker took a port: the queue pairs of one that it does not take come back, to be closed elsewhere.
pub(super) type Added = Result<(), (PortsError, Vec<Box<dyn QueuePair>>)>;

/// What a worker had of a port: a queue pair, and what was counted before it was that.
pub(super) type Removed = Vec<(Box<dyn QueuePair>, PortStatistics)>;

impl From<RequestError> for PortsError {
    fn from(_: RequestError) -> PortsError {
        PortsError::Ended
    }
}

/// All workers go on with one more port: each has a queue pair of it, or the frames of its only one are spread over them.
pub(super) fn add(worker: &mut Worker, id: PortId, pairs: Vec<Box<dyn QueuePair>>) -> Added {
    if let Err(error) = check(worker, id, &pairs) {
        return Err((error, pairs));
    }
    let spread = worker.seat.spread;
    worker.with_all(|workers| {
        let wakers: Vec<Waker> = workers.iter().map(|worker| worker.mailbox.waker()).collect();
        let accesses = relay::connect(relay::first_owners(pairs), &wakers, spread);
        let mut failed = None;
        for (worker, accesses) in workers.iter_mut().zip(&accesses) {
            let kept =
                accesses.iter().fold(0, |kept: usize, access| kept.saturating_add(access.pair.max_kept()));
            if let Err(error) = make_room(worker, kept) {
                failed = Some(error);
            }
        }
        if let Some(error) = failed {
            // Nobody has used them.
            let pairs = accesses.into_iter().flatten().filter_map(|access| relay::disconnect(access.pair).0);
            return Err((error, pairs.collect()));
        }
        for (worker, accesses) in workers.iter_mut().zip(accesses) {
            worker.switch.add_port(id);
            for access in accesses {
                let live = worker.ports.push(id, access);
                worker.streams.any |= live.is_stamped;
            }
        }
        Ok(())
    })
}

/// Whether a port with these queue pairs can be one of this worker and its followers.
fn check(worker: &Worker, id: PortId, pairs: &[Box<dyn QueuePair>]) -> Result<(), PortsError> {
    let is_simulated = |pair: &dyn QueuePair| pair.time_source() == TimeSource::Simulated;
    if worker.simulated.is_some() || pairs.iter().any(|pair| is_simulated(&**pair)) {
        return Err(PortsError::Simulated);
    }
    if worker.ports.find(id).is_some() {
        return Err(PortsError::Taken(id));
    }
    if worker.ports.iter().filter(|live| live.sends).count() >= MAX_PORTS {
        return Err(PortsError::TooMany);
    }
    if pairs.len() != 1 && pairs.len() != worker.followers.len() + 1 {
        return Err(PortsError::QueuePairs(id, pairs.len()));
    }
    Ok(())
}

/// Has packets enough for one more queue pair, which keeps so many.
pub(super) fn make_room(worker: &mut Worker, kept: usize) -> Result<(), PortsError> {
    let wanted = pool_size(worker.ports.len() + 1, worker.ports.kept().saturating_add(kept));
    if worker.packets.pool.limit() < wanted && !worker.seat.are_lent {
        // Between two rounds all packets are back, but those that a driver keeps: their memory goes with the last of them.
        worker.packets.pool = PacketPool::try_new(wanted).map_err(|_| PortsError::NoMemory)?;
    }
    Ok(())
}

/// All workers go on without a port, after they have sent what waits for it.
pub(super) fn remove(worker: &mut Worker, id: PortId) -> Result<Removed, PortsError> {
    if worker.simulated.is_some() {
        return Err(PortsError::Simulated);
    }
    if worker.ports.find(id).is_none() {
        return Err(PortsError::Unknown(id));
    }
    Ok(worker.with_all(|workers| {
        // Those that have its queue pairs last: what the others hand over leaves through these.
        let has_own =
            |worker: &&mut Worker| worker.ports.iter().any(|live| live.id == id && live.queue.is_some());
        workers.sort_by_key(has_own);
        let mut removed = Removed::new();
        for worker in workers.iter_mut() {
            worker.complete();
            removed.extend(remove_one(worker, id));
        }
        removed
    }))
}

fn remove_one(worker: &mut Worker, id: PortId) -> Removed {
    // Frames that another worker has handed over are received already. They are as many as a ring holds, so this ends.
    moves::take_handed_over(worker, id, None);
    // What waits for its link alone leaves now; the port takes it or refuses it.
    worker.switch.traffic.queues.set_room(id, None);
    worker.switch.plan(id, None);
    let outcome = worker.switch.finish_port(id);
    worker.dispatch(outcome);
    worker.complete();
    schedulers::give_up(worker, id, DropReason::TxRefused);
    worker.switch.remove_port(id);
    worker.seat.intakes.set(id, None);
    worker.failed.retain(|(failed, _)| *failed != id);
    let mut removed = Removed::new();
    while let Some(at) = worker.ports.find(id) {
        let live = worker.ports.remove(at);
        removed.push((live.port, live.before));
    }
    removed
}
