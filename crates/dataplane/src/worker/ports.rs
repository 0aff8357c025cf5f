//! Ports that come and go while a worker runs, between two of its rounds.

use super::control::RequestError;
use super::mailbox::Waker;
use super::{Worker, pool_size, relay};
use crate::PortId;
use crate::switch::MAX_PORTS;
use millrace_drivers::{QueuePair, TimeSource};
use millrace_frames::{MAX_BATCH, PacketPool};
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
            PortsError::NoMemory => f.write_str("there is no memory for the packets of one more port"),
            PortsError::Ended => RequestError.fmt(f),
        }
    }
}

impl std::error::Error for PortsError {}

/// How a worker took a port: one that it does not take comes back, to be closed elsewhere.
pub(super) type Added = Result<(), (PortsError, Box<dyn QueuePair>)>;

impl From<RequestError> for PortsError {
    fn from(_: RequestError) -> PortsError {
        PortsError::Ended
    }
}

/// All workers go on with one more port, whose frames are spread over them.
pub(super) fn add(worker: &mut Worker, id: PortId, port: Box<dyn QueuePair>) -> Added {
    if let Err(error) = check(worker, id, &*port) {
        return Err((error, port));
    }
    let spread = worker.seat.spread;
    worker.with_all(|workers| {
        let wakers: Vec<Waker> = workers.iter().map(|worker| worker.mailbox.waker()).collect();
        let mut pairs = relay::for_each_worker(vec![port], &wakers, spread);
        for (worker, pair) in workers.iter_mut().zip(&pairs) {
            if let Err(error) = make_room(worker, &**pair) {
                // The first pair is that of the device; nobody has used the others.
                return Err((error, pairs.swap_remove(0)));
            }
        }
        for (worker, pair) in workers.iter_mut().zip(pairs) {
            worker.switch.add_port(id);
            worker.streams.any |= pair.time_source() == TimeSource::Stamped;
            let is_of_device = worker.seat.number == 0;
            worker.ports.push(id, pair, is_of_device);
        }
        Ok(())
    })
}

/// Whether a port can be one of this worker.
fn check(worker: &Worker, id: PortId, port: &dyn QueuePair) -> Result<(), PortsError> {
    if worker.simulated.is_some() || port.time_source() == TimeSource::Simulated {
        return Err(PortsError::Simulated);
    }
    if worker.ports.find(id).is_some() {
        return Err(PortsError::Taken(id));
    }
    if worker.ports.len() >= MAX_PORTS {
        return Err(PortsError::TooMany);
    }
    Ok(())
}

/// Has packets enough for one more port.
fn make_room(worker: &mut Worker, port: &dyn QueuePair) -> Result<(), PortsError> {
    let wanted = pool_size(worker.ports.len() + 1, worker.ports.kept().saturating_add(port.max_kept()));
    if worker.packets.pool.limit() < wanted {
        // Between two rounds all packets are back, but those that a driver keeps: their memory goes with the last of them.
        worker.packets.pool = PacketPool::try_new(wanted).map_err(|_| PortsError::NoMemory)?;
    }
    Ok(())
}

/// All workers go on without a port, after they have sent what waits for it.
pub(super) fn remove(worker: &mut Worker, id: PortId) -> Result<Vec<Box<dyn QueuePair>>, PortsError> {
    if worker.simulated.is_some() {
        return Err(PortsError::Simulated);
    }
    if worker.ports.find(id).is_none() {
        return Err(PortsError::Unknown(id));
    }
    // The leader last: what the others hand over leaves through its queue pair.
    let mut pairs = Vec::new();
    for follower in worker.followers.all() {
        pairs.extend(remove_one(follower, id));
    }
    worker.complete();
    pairs.extend(remove_one(worker, id));
    pairs.reverse();
    Ok(pairs)
}

fn remove_one(worker: &mut Worker, id: PortId) -> Option<Box<dyn QueuePair>> {
    let at = worker.ports.find(id)?;
    if worker.seat.number > 0 {
        // Frames that the leader has handed over are received already.
        for _ in 0..relay::RING / MAX_BATCH {
            worker.receive(at);
            if worker.packets.received.is_empty() {
                break;
            }
            worker.switch_batch(at, 0);
        }
    }
    // What waits for its link alone leaves now; the port takes it or refuses it.
    worker.switch.traffic.queues.set_room(id, None);
    let outcome = worker.switch.advance_to(0);
    worker.dispatch(outcome);
    worker.switch.remove_port(id);
    worker.failed.retain(|(failed, _)| *failed != id);
    Some(worker.ports.remove(at).port)
}
