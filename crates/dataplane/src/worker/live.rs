//! The ports of a worker, found by their numbers.

use super::relay::{self, Access};
use super::scheduled::Scheduler;
use crate::PortId;
use millrace_drivers::{PortStatistics, QueuePair, TimeSource};
use millrace_frames::Batch;
use std::ops::{Deref, DerefMut};

/// Numbers below this are found by one load. They are those of all ports, but for a few reserved ones.
const LISTED: PortId = 1 << 10;
/// No port has the number.
const NONE: u16 = u16::MAX;

#[repr(C, align(64))]
pub(crate) struct LivePort {
    /// What each batch needs comes first: a cache line.
    pub(crate) port: Box<dyn QueuePair>,
    pub(crate) sending: Batch,
    pub(crate) id: PortId,
    pub(super) ended: bool,
    /// Frames carry times by which they are to be ordered ([`TimeSource::Stamped`]).
    pub(super) is_stamped: bool,
    /// The number of the device's queue pair; none: the port is reached through another worker's.
    pub(super) queue: Option<usize>,
    /// What leaves by the port goes here: to the first queue pair of a worker that has several.
    pub(crate) sends: bool,
    /// What was counted of the port before the worker's queue pair was what it is.
    pub(super) before: PortStatistics,
    /// Most packets that it keeps until their frames have left ([`QueuePair::max_kept`]).
    pub(super) keeps: usize,
    /// When its last packet came, by the clock of the switch, if that was asked.
    pub(super) latest_ns: u64,
    /// The queues of the port, with the queue pair that sends from them.
    pub(crate) scheduler: Option<Scheduler>,
}

impl LivePort {
    /// What its queue pair has counted.
    pub(super) fn statistics(&self) -> PortStatistics {
        let mut statistics = self.port.statistics();
        statistics += self.before;
        statistics
    }
}

/// The queue pairs of a worker, in the order in which they came: mostly one for each port, of which there are at most as many as a
/// switch has.
#[derive(Default)]
pub(crate) struct LivePorts {
    ports: Vec<LivePort>,
    /// The place of each number below [`LISTED`] that a port has, or [`NONE`].
    places: Vec<u16>,
    /// Whether any keeps packets until their frames have left, or has queues.
    any_keeps: bool,
}

impl LivePorts {
    /// One more queue pair, of that port.
    pub(super) fn push(&mut self, id: PortId, access: Access) -> &mut LivePort {
        let Access { queue, pair: port, past } = access;
        let is_stamped = port.time_source() == TimeSource::Stamped;
        let keeps = port.max_kept();
        let scheduler = relay::scheduler_of(&*port);
        self.ports.push(LivePort {
            id,
            port,
            ended: past.has_ended,
            is_stamped,
            sending: Batch::new(),
            queue,
            sends: false,
            before: PortStatistics::default(),
            keeps,
            latest_ns: past.latest_ns,
            scheduler,
        });
        self.list();
        let last = self.ports.len() - 1;
        &mut self.ports[last]
    }

    pub(super) fn remove(&mut self, at: usize) -> LivePort {
        let port = self.ports.remove(at);
        self.list();
        port
    }

    /// Most packets that all ports together keep until their frames have left.
    pub(super) fn kept(&self) -> usize {
        self.ports.iter().fold(0, |kept, port| kept.saturating_add(port.keeps))
    }

    /// Where what leaves by a port goes.
    #[inline]
    pub(super) fn find(&self, id: PortId) -> Option<usize> {
        match self.places.get(id as usize) {
            Some(&NONE) => None,
            Some(place) => Some(usize::from(*place)),
            None if id < LISTED => None,
            None => self.ports.iter().position(|port| port.id == id),
        }
    }

    /// Whether any port keeps packets until their frames have left, or has queues: then there is something to do for ports to which
    /// nothing comes.
    #[inline]
    pub(super) fn any_keeps(&self) -> bool {
        self.any_keeps
    }

    fn list(&mut self) {
        self.any_keeps = self.ports.iter().any(|live| live.keeps > 0 || live.scheduler.is_some());
        self.places.clear();
        for (at, port) in (0..NONE).zip(&self.ports).filter(|(_, port)| port.id < LISTED) {
            let number = port.id as usize;
            if self.places.len() <= number {
                self.places.resize(number + 1, NONE);
            }
            if self.places[number] == NONE {
                self.places[number] = at;
            }
        }
        for at in 0..self.ports.len() {
            self.ports[at].sends = self.find(self.ports[at].id) == Some(at);
        }
    }
}

impl Deref for LivePorts {
    type Target = [LivePort];

    fn deref(&self) -> &[LivePort] {
        &self.ports
    }
}

impl DerefMut for LivePorts {
    fn deref_mut(&mut self) -> &mut [LivePort] {
        &mut self.ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::relay::Past;
    use millrace_drivers::NullPort;

    #[test]
    fn ports_are_found_as_they_come_and_go() {
        let mut ports = LivePorts::default();
        let access = |queue| {
            let pair = Box::new(NullPort::open("-").unwrap());
            Access { queue: Some(queue), pair, past: Past::default() }
        };
        let found = |ports: &LivePorts| [0, 1, 5, 7, LISTED - 1, LISTED, 70_000].map(|id| ports.find(id));
        assert_eq!(found(&ports), [None; 7]);
        for id in [5, 1, 70_000, LISTED] {
            ports.push(id, access(0));
        }
        assert_eq!(found(&ports), [None, Some(1), Some(0), None, None, Some(3), Some(2)]);
        assert_eq!(ports.remove(0).id, 5);
        assert_eq!(found(&ports), [None, Some(0), None, None, None, Some(2), Some(1)]);
        // Another queue pair of two of them.
        for id in [1, LISTED] {
            ports.push(id, access(1));
        }
        assert_eq!(found(&ports), [None, Some(0), None, None, None, Some(2), Some(1)]);
        let sends = |ports: &LivePorts| ports.iter().map(|live| live.sends).collect::<Vec<_>>();
        assert_eq!(sends(&ports), [true, true, true, false, false]);
        ports.remove(0);
        assert_eq!((ports.find(1), sends(&ports)), (Some(2), vec![true, true, true, false]));
    }
}
