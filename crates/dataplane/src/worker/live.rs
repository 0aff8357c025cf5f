//! The ports of a worker, found by their numbers.

use crate::PortId;
use millrace_drivers::{QueuePair, TimeSource};
use millrace_frames::Batch;
use std::ops::{Deref, DerefMut};

/// Numbers below this are found by one load. They are those of all ports, but for a few reserved ones.
const LISTED: PortId = 1 << 10;
/// No port has the number.
const NONE: u16 = u16::MAX;

pub(crate) struct LivePort {
    pub(crate) id: PortId,
    pub(crate) port: Box<dyn QueuePair>,
    pub(super) ended: bool,
    /// Frames carry times by which they are to be ordered ([`TimeSource::Stamped`]).
    pub(super) is_stamped: bool,
    pub(crate) sending: Batch,
    /// The pair is one of the device, and no path to another worker's.
    pub(super) is_of_device: bool,
    /// Most packets that it keeps until their frames have left ([`QueuePair::max_kept`]).
    pub(super) keeps: usize,
    /// When its last packet came, by the clock of the switch, if that was asked.
    pub(super) latest_ns: u64,
}

/// At most as many as a switch has, in the order in which they came.
#[derive(Default)]
pub(crate) struct LivePorts {
    ports: Vec<LivePort>,
    /// The place of each number below [`LISTED`] that a port has, or [`NONE`].
    places: Vec<u16>,
}

impl LivePorts {
    /// One more port, with a number that no other has.
    pub(super) fn push(&mut self, id: PortId, port: Box<dyn QueuePair>, is_of_device: bool) {
        let is_stamped = port.time_source() == TimeSource::Stamped;
        let keeps = port.max_kept();
        self.ports.push(LivePort {
            id,
            port,
            ended: false,
            is_stamped,
            sending: Batch::new(),
            is_of_device,
            keeps,
            latest_ns: 0,
        });
        self.list();
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

    /// The place of a port.
    #[inline]
    pub(super) fn find(&self, id: PortId) -> Option<usize> {
        match self.places.get(id as usize) {
            Some(&NONE) => None,
            Some(place) => Some(usize::from(*place)),
            None if id < LISTED => None,
            None => self.ports.iter().position(|port| port.id == id),
        }
    }

    fn list(&mut self) {
        self.places.clear();
        for (at, port) in (0..NONE).zip(&self.ports).filter(|(_, port)| port.id < LISTED) {
            let number = port.id as usize;
            if self.places.len() <= number {
                self.places.resize(number + 1, NONE);
            }
            self.places[number] = at;
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
    use millrace_drivers::NullPort;

    #[test]
    fn ports_are_found_as_they_come_and_go() {
        let mut ports = LivePorts::default();
        let found = |ports: &LivePorts| [0, 1, 5, 7, LISTED - 1, LISTED, 70_000].map(|id| ports.find(id));
        assert_eq!(found(&ports), [None; 7]);
        for id in [5, 1, 70_000, LISTED] {
            ports.push(id, Box::new(NullPort::open("-").unwrap()), true);
        }
        assert_eq!(found(&ports), [None, Some(1), Some(0), None, None, Some(3), Some(2)]);
        assert_eq!(ports.remove(0).id, 5);
        assert_eq!(found(&ports), [None, Some(0), None, None, None, Some(2), Some(1)]);
    }
}
