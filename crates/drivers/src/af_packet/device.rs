//! A Linux interface as a device: one packet socket for each queue pair.

use super::PacketQueue;
use super::fanout::{Group, admit};
use super::ring::{RingSocket, ring_bytes};
use crate::addresses::Addresses;
use crate::device::{Device, MAX_QUEUES, check_queues};
use crate::link::LinkName;
use crate::port::{PortError, QueuePair};
use crate::stamps::{StampingDevice, Wanted};
use std::sync::Arc;

/// A Linux interface. One that is down is fine, and works as soon as it is up.
pub struct PacketDevice {
    /// `packet:` and the interface.
    name: String,
    link: LinkName,
    /// Ports of the switch, which share the memory for frames.
    ports: usize,
    addresses: Option<Addresses>,
    stamps: Wanted,
}

impl PacketDevice {
    /// The interface of this name, for a switch with so many ports, which share the memory for frames. After the name may stand
    /// `,timestamps=auto`, `hardware` or `software`.
    ///
    /// # Errors
    /// [`PortError::Arguments`] when that is not an interface name.
    pub fn new(args: &str, ports: usize) -> Result<PacketDevice, PortError> {
        let (name, stamps) = Wanted::take("packet", args)?;
        let link = LinkName::new("packet", &name)?;
        Ok(PacketDevice { name: format!("packet:{name}"), link, ports, addresses: None, stamps })
    }

    /// The same for frames to these addresses next to its own, or to all (none).
    pub(crate) fn for_addresses(self, addresses: Option<Addresses>) -> PacketDevice {
        PacketDevice { addresses, ..self }
    }

    /// Opens to so many queue pairs, of which none receives a frame before all are there.
    pub(crate) fn queues(&self, queues: usize) -> Result<Vec<PacketQueue>, PortError> {
        check_queues(self, queues)?;
        let bytes = ring_bytes(self.ports.saturating_mul(queues));
        // The link is up or down, and may be gone: opening a queue says that.
        let link = self.link.held_if_there();
        let stamping = StampingDevice::start(&link, self.stamps).map(|device| device.map(Arc::new));
        if queues == 1 {
            let alone = |ring: &RingSocket, index| ring.bind(index, self.addresses.as_ref()).map(|()| None);
            let mut queue = PacketQueue::open(&self.link, bytes, self.addresses.clone(), alone)?;
            queue.want_stamps(&stamping);
            return Ok(vec![queue]);
        }
        let mut opened: Vec<PacketQueue> = Vec::with_capacity(queues);
        for _ in 0..queues {
            let group = opened.first().and_then(|first| first.group);
            let addresses = self.addresses.as_ref();
            let among = |ring: &RingSocket, index| Group::enter(group, ring, (index, addresses)).map(Some);
            opened.push(PacketQueue::open(&self.link, bytes, self.addresses.clone(), among)?);
        }
        for queue in &mut opened {
            queue.want_stamps(&stamping);
            admit(&queue.ring).map_err(|(what, error)| queue.error(what, error))?;
        }
        Ok(opened)
    }
}

impl Device for PacketDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_queues(&self) -> usize {
        MAX_QUEUES
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        let opened = self.queues(queues)?;
        Ok(opened.into_iter().map(|queue| Box::new(queue) as Box<dyn QueuePair>).collect())
    }
}
