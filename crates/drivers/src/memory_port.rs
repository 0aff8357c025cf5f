//! A port without an interface: its frames come from memory and go there.

use crate::port::{PortError, PortStatistics, QueuePair, Received, TakingTimes, TimeSource, Transmitted};
use millrace_frames::{Batch, PacketPool};
use std::os::fd::RawFd;

/// The far end of a [`MemoryPort`]: where its frames come from and where they go. Nothing in it waits.
pub trait FarEnd: Send + 'static {
    /// The port is asked for frames; [`FarEnd::next`] follows, as often as there is room.
    fn asked(&mut self) {}

    /// The next frame that has come.
    fn next(&mut self) -> Next<'_>;

    /// Takes a frame; false when there is no room for it.
    fn take(&mut self, frame: &[u8]) -> bool;

    /// As [`QueuePair::poll_fd`].
    fn poll_fd(&self) -> Option<RawFd> {
        None
    }
}

/// What a [`FarEnd`] says when it is asked for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// Here is one.
    Frame(&'a [u8]),
    /// There is none now.
    None,
    /// There will never be another one.
    End,
}

/// A port whose frames come from memory and go there. It counts them and gives them their times.
#[derive(Debug)]
#[repr(align(128))]
pub struct MemoryPort<F> {
    far_end: F,
    statistics: PortStatistics,
    has_kinds: bool,
}

impl<F: FarEnd> MemoryPort<F> {
    /// A port with this far end.
    pub fn new(far_end: F) -> MemoryPort<F> {
        MemoryPort { far_end, statistics: PortStatistics::default(), has_kinds: true }
    }

    /// A port with this far end that does not count frames by kind: what it does for a frame takes less time than to look at it.
    pub fn without_kinds(far_end: F) -> MemoryPort<F> {
        MemoryPort { has_kinds: false, ..MemoryPort::new(far_end) }
    }

    /// Adds the frames that have come to the batch.
    fn take_frames(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Received {
        self.far_end.asked();
        let (mut times, mut refused) = (TakingTimes::of(batch), false);
        loop {
            if batch.is_full() || pool.is_exhausted() {
                return Received::More;
            }
            let frame = match self.far_end.next() {
                Next::Frame(frame) => frame,
                // Far ends may keep one order over all ports. After a refused frame it can be the turn of a port that the
                // worker asked earlier in this round, and nothing would wake the worker for it.
                Next::None if refused => return Received::More,
                Next::None => return Received::Idle,
                Next::End => return Received::End,
            };
            // There is room and a packet, so no frame is lost here.
            let Some(packet) = batch.add(pool) else { return Received::More };
            packet.timestamp_ns = times.next_ns();
            if packet.set_frame(frame).is_err() {
                self.statistics.rx_errors += 1;
                refused = true;
                batch.give_last_back(pool);
                continue;
            }
            self.statistics.rx_packets += 1;
            self.statistics.rx_bytes += frame.len() as u64;
        }
    }
}

impl<F: FarEnd> QueuePair for MemoryPort<F> {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let before = batch.len();
        let received = self.take_frames(batch, pool);
        if self.has_kinds {
            batch.packets()[before..].iter().for_each(|packet| self.statistics.rx_kinds.count(packet.data()));
        }
        Ok(received)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut sent = 0;
        for packet in batch.packets() {
            if !self.far_end.take(packet.data()) {
                break;
            }
            self.statistics.tx_bytes += packet.len() as u64;
            sent += 1;
        }
        if self.has_kinds {
            batch.packets()[..sent].iter().for_each(|packet| self.statistics.tx_kinds.count(packet.data()));
        }
        batch.recycle_first(sent, pool);
        self.statistics.tx_packets += sent as u64;
        self.statistics.tx_refused += batch.len() as u64;
        Ok(Transmitted { sent, refused: batch.len() })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.far_end.poll_fd()
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_frames::MAX_FRAME;
    use std::collections::VecDeque;

    struct Frames(VecDeque<Vec<u8>>, Vec<u8>);

    impl FarEnd for Frames {
        fn next(&mut self) -> Next<'_> {
            match self.0.pop_front() {
                Some(frame) => {
                    self.1 = frame;
                    Next::Frame(&self.1)
                }
                None => Next::None,
            }
        }

        fn take(&mut self, _: &[u8]) -> bool {
            false
        }
    }

    #[test]
    fn frames_have_their_own_times_where_somebody_looks() {
        let (mut pool, mut batch) = (PacketPool::new(64), Batch::new());
        let mut times = |each| {
            batch.want_times(each);
            batch.recycle(&mut pool);
            let mut port = MemoryPort::new(Frames(vec![vec![1; 60]; 64].into(), Vec::new()));
            port.receive(&mut batch, &mut pool).unwrap();
            batch.packets().iter().map(|packet| packet.timestamp_ns).collect::<Vec<_>>()
        };
        let together = times(false);
        assert!(together.len() == 64 && together.iter().all(|time| *time == together[0]));
        let own = times(true);
        assert!(own.is_sorted() && own[0] < own[63], "{own:?}");
    }

    #[test]
    fn a_refused_frame_keeps_the_worker_awake() {
        let mut pool = PacketPool::new(8);
        let mut batch = Batch::new();
        let frames = [vec![1; 60], vec![2; MAX_FRAME + 1], vec![3; 60]];
        let mut port = MemoryPort::new(Frames(frames.into(), Vec::new()));
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::More);
        let first: Vec<u8> = batch.packets().iter().map(|packet| packet.data()[0]).collect();
        assert_eq!(first, [1, 3]);
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::Idle);
        let statistics = port.statistics();
        assert_eq!((statistics.rx_packets, statistics.rx_bytes, statistics.rx_errors), (2, 120, 1));
    }
}
