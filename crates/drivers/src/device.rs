//! The device of a port: what opens to as many queue pairs as there are workers.

use crate::port::{PortError, QueuePair};

/// Most queue pairs of a device that has any number of them. The kernel has 256 for a tap interface and for the sockets that share
/// an interface; of these a queue pair needs two while it changes its rings.
pub const MAX_QUEUES: usize = 128;

/// What a port number is connected to. It opens once, to a number of queue pairs, each for one worker.
///
/// A pair has a receive and a transmit queue. A device with different numbers of both has as many pairs as it has of the scarcer
/// ones. It decides which pair receives a frame, keeps the frames of a flow together where it can tell flows apart, and gives no
/// frame to two pairs. All pairs send to the same far end.
pub trait Device: Send {
    /// The driver and its arguments, as in `packet:veth0`.
    fn name(&self) -> &str;

    /// Most queue pairs that it opens to.
    fn max_queues(&self) -> usize;

    /// Opens to so many queue pairs.
    ///
    /// # Errors
    /// [`PortError::Queues`] when it has not so many, or none is asked for; it is for the caller then to distribute the frames of
    /// fewer pairs. Others as the driver says.
    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError>;
}

/// A device with one queue pair, which is open already.
pub struct SingleQueue {
    name: String,
    queue: Box<dyn QueuePair>,
}

impl SingleQueue {
    /// A device of this name that opens to this pair.
    pub fn new(name: impl Into<String>, queue: impl QueuePair + 'static) -> SingleQueue {
        SingleQueue { name: name.into(), queue: Box::new(queue) }
    }
}

impl Device for SingleQueue {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_queues(&self) -> usize {
        1
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        check_queues(&*self, queues)?;
        Ok(vec![self.queue])
    }
}

/// Whether a device opens to so many queue pairs.
pub(crate) fn check_queues(device: &dyn Device, asked: usize) -> Result<(), PortError> {
    let limit = device.max_queues();
    if (1..=limit).contains(&asked) {
        return Ok(());
    }
    Err(PortError::Queues { device: device.name().to_owned(), asked, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::NullPort;
    use crate::open::device;

    #[test]
    fn a_device_opens_to_no_more_queue_pairs_than_it_has() {
        let refused = |device: Box<dyn Device>, queues| match device.open(queues) {
            Ok(_) => panic!("{queues} queue pairs opened"),
            Err(error) => error.to_string(),
        };
        let single = || Box::new(SingleQueue::new("memory", NullPort::open("-").unwrap()));
        assert_eq!(single().open(1).unwrap().len(), 1);
        assert_eq!(refused(single(), 2), "memory opens to 1 queue pair, not 2");
        assert_eq!(refused(single(), 0), "memory opens to 1 queue pair, not 0");
        for (name, limit) in [
            ("null:-", "1 to 128 queue pairs"),
            ("tap:mr0", "1 to 128 queue pairs"),
            ("lo", "1 to 128 queue pairs"),
        ] {
            let interface = name.parse().unwrap();
            let whole = device(&interface).unwrap().name().to_owned();
            assert_eq!(whole, interface.to_string());
            assert_eq!(
                refused(device(&interface).unwrap(), 129),
                format!("{whole} opens to {limit}, not 129")
            );
        }
    }
}
