//! A port without an interface: its frames come from memory and go there.

use crate::pool::{Batch, PacketPool};
use crate::port::{Port, PortError, PortStatistics, Received, TimeSource, Transmitted, wall_clock_ns};
use std::os::fd::RawFd;

/// The far end of a [`MemoryPort`]: where its frames come from and where they go. Nothing in it waits.
pub trait FarEnd: Send {
    /// The port is asked for frames; [`FarEnd::next`] follows, as often as there is room.
    fn asked(&mut self) {}

    /// The next frame that has come.
    fn next(&mut self) -> Next<'_>;

    /// Takes a frame; false when there is no room for it.
    fn take(&mut self, frame: &[u8]) -> bool;

    /// As [`Port::poll_fd`].
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
pub struct MemoryPort<F> {
    far_end: F,
    statistics: PortStatistics,
}

impl<F: FarEnd> MemoryPort<F> {
    /// A port with this far end.
    pub fn new(far_end: F) -> MemoryPort<F> {
        MemoryPort { far_end, statistics: PortStatistics::default() }
    }
}

impl<F: FarEnd> Port for MemoryPort<F> {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        self.far_end.asked();
        let mut now_ns = None;
        loop {
            if batch.is_full() || pool.available() == 0 {
                return Ok(Received::More);
            }
            let frame = match self.far_end.next() {
                Next::Frame(frame) => frame,
                Next::None => return Ok(Received::Idle),
                Next::End => return Ok(Received::End),
            };
            // There is room and a packet, so no frame is lost here.
            let Some(packet) = batch.add(pool) else { return Ok(Received::More) };
            packet.timestamp_ns = *now_ns.get_or_insert_with(wall_clock_ns);
            if packet.set_frame(frame).is_err() {
                self.statistics.rx_errors += 1;
                batch.give_last_back(pool);
                continue;
            }
            self.statistics.rx_packets += 1;
            self.statistics.rx_bytes += frame.len() as u64;
        }
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
