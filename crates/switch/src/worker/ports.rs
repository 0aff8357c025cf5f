//! Ports that come and go while a worker runs, between two of its rounds.

use super::control::{Control, Request, RequestError};
use super::{Worker, pool_size};
use crate::PortId;
use crate::switch::MAX_PORTS;
use millrace_ports::{PacketPool, Port, PortStatistics, TimeSource};
use std::fmt;
use std::time::{Duration, Instant};

/// How long frames may take to leave a port that is closed.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks whether they have left.
const PAUSE: Duration = Duration::from_millis(1);

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
                f.write_str("ports that replay captures cannot be added or removed, nor others beside them")
            }
            PortsError::NoMemory => f.write_str("there is no memory for the packets of one more port"),
            PortsError::Ended => RequestError.fmt(f),
        }
    }
}

impl std::error::Error for PortsError {}

/// How a worker took a port: one that it does not take comes back, to be closed elsewhere.
pub(super) type Added = Result<(), (PortsError, Box<dyn Port>)>;

impl Control {
    /// Has the worker go on with one more port, and waits until it does. A port that it does not take is closed.
    ///
    /// # Errors
    /// [`PortsError`]; the worker's ports are as they were.
    pub fn add_port(&self, number: PortId, port: Box<dyn Port>) -> Result<(), PortsError> {
        let added: Added = self.ask(|answer| Request::AddPort(number, port, answer))?;
        added.map_err(|(error, _)| error)
    }

    /// Has the worker go on without a port, sends what waits for it, and closes it; gives what it has counted. What comes
    /// for it later is dropped as for any port that does not exist.
    ///
    /// # Errors
    /// [`PortsError`]; the worker's ports are as they were.
    pub fn remove_port(&self, number: PortId) -> Result<PortStatistics, PortsError> {
        let mut port = self.ask(|answer| Request::RemovePort(number, answer))??;
        // On this thread: the system may take its time, for which no packet of another port should wait.
        let begun = Instant::now();
        while port.flush().is_ok() && port.in_flight() > 0 && begun.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        Ok(port.statistics())
    }
}

impl From<RequestError> for PortsError {
    fn from(_: RequestError) -> PortsError {
        PortsError::Ended
    }
}

impl Worker {
    pub(super) fn add_port(&mut self, id: PortId, port: Box<dyn Port>) -> Added {
        match self.make_room(id, &*port) {
            Ok(()) => {
                self.switch.add_port(id);
                self.ports.push(id, port);
                Ok(())
            }
            Err(error) => Err((error, port)),
        }
    }

    /// Has packets enough for one more port, if it can be one of this worker.
    fn make_room(&mut self, id: PortId, port: &dyn Port) -> Result<(), PortsError> {
        if self.simulated.is_some() || port.time_source() == TimeSource::Simulated {
            return Err(PortsError::Simulated);
        }
        if self.ports.find(id).is_some() {
            return Err(PortsError::Taken(id));
        }
        if self.ports.len() >= MAX_PORTS {
            return Err(PortsError::TooMany);
        }
        let wanted = pool_size(self.ports.len() + 1);
        if self.pool.limit() < wanted {
            // Between two rounds all packets are back; one that a driver kept is freed when it comes.
            self.pool = PacketPool::try_new(wanted).map_err(|_| PortsError::NoMemory)?;
        }
        Ok(())
    }

    pub(super) fn remove_port(&mut self, id: PortId) -> Result<Box<dyn Port>, PortsError> {
        if self.simulated.is_some() {
            return Err(PortsError::Simulated);
        }
        if self.ports.find(id).is_none() {
            return Err(PortsError::Unknown(id));
        }
        // What waits for its link alone leaves now; the port takes it or refuses it.
        self.switch.queues.set_room(id, None);
        let outcome = self.switch.advance_to(0);
        self.dispatch(outcome);
        self.switch.remove_port(id);
        self.failed.retain(|(failed, _)| *failed != id);
        let at = self.ports.find(id).ok_or(PortsError::Unknown(id))?;
        Ok(self.ports.remove(at).port)
    }
}
