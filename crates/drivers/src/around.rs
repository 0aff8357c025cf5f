//! Queue pairs around other ones.

use crate::port::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, PacketPool};
use std::os::fd::RawFd;

/// A queue pair around another one: it says what is different, everything else is as the other one has it. Whoever implements this
/// is a [`QueuePair`]; the methods are those of that trait.
pub trait Around: Send {
    /// The other one.
    type Inner: QueuePair + ?Sized;

    /// The queue pair inside.
    fn inner(&self) -> &Self::Inner;

    /// The same, to be used.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// [`QueuePair::receive`].
    ///
    /// # Errors
    /// As there.
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        self.inner_mut().receive(batch, pool)
    }

    /// [`QueuePair::transmit`].
    ///
    /// # Errors
    /// As there.
    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        self.inner_mut().transmit(batch, pool)
    }

    /// [`QueuePair::flush`].
    ///
    /// # Errors
    /// As there.
    fn flush(&mut self) -> Result<(), PortError> {
        self.inner_mut().flush()
    }

    /// [`QueuePair::complete`].
    fn complete(&mut self, pool: &mut PacketPool) {
        self.inner_mut().complete(pool);
    }

    /// [`QueuePair::max_kept`].
    fn max_kept(&self) -> usize {
        self.inner().max_kept()
    }

    /// [`QueuePair::in_flight`].
    fn in_flight(&mut self) -> usize {
        self.inner_mut().in_flight()
    }

    /// [`QueuePair::remark`].
    fn remark(&self) -> Option<String> {
        self.inner().remark()
    }

    /// [`QueuePair::is_link_down`].
    fn is_link_down(&self) -> bool {
        self.inner().is_link_down()
    }

    /// [`QueuePair::takes_length`].
    fn takes_length(&self, length: usize) -> bool {
        self.inner().takes_length(length)
    }

    /// [`QueuePair::poll_fd`].
    fn poll_fd(&self) -> Option<RawFd> {
        self.inner().poll_fd()
    }

    /// [`QueuePair::time_source`].
    fn time_source(&self) -> TimeSource {
        self.inner().time_source()
    }

    /// [`QueuePair::next_arrival_ns`].
    fn next_arrival_ns(&mut self) -> Option<u64> {
        self.inner_mut().next_arrival_ns()
    }

    /// [`QueuePair::statistics`].
    fn statistics(&self) -> PortStatistics {
        self.inner().statistics()
    }
}

impl<A: Around + 'static> QueuePair for A {
    #[inline]
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        Around::receive(self, batch, pool)
    }

    #[inline]
    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        Around::transmit(self, batch, pool)
    }

    #[inline]
    fn flush(&mut self) -> Result<(), PortError> {
        Around::flush(self)
    }

    #[inline]
    fn complete(&mut self, pool: &mut PacketPool) {
        Around::complete(self, pool);
    }

    fn max_kept(&self) -> usize {
        Around::max_kept(self)
    }

    fn in_flight(&mut self) -> usize {
        Around::in_flight(self)
    }

    fn remark(&self) -> Option<String> {
        Around::remark(self)
    }

    #[inline]
    fn is_link_down(&self) -> bool {
        Around::is_link_down(self)
    }

    fn takes_length(&self, length: usize) -> bool {
        Around::takes_length(self, length)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Around::poll_fd(self)
    }

    fn time_source(&self) -> TimeSource {
        Around::time_source(self)
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        Around::next_arrival_ns(self)
    }

    fn statistics(&self) -> PortStatistics {
        Around::statistics(self)
    }
}
