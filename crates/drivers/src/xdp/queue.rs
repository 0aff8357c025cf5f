//! A queue pair: the sockets of some receive queues of an interface, for one worker.

use super::channel::{Channel, Sending};
use super::interface::{ETHERNET_HEADER, Interface};
use super::memory::Part;
use super::program::Hold;
use crate::kinds::Kind;
use crate::port::{PortError, PortStatistics, QueuePair, Received, TakingTimes, TimeSource, Transmitted};
use crate::wait::Seldom;
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// A queue pair. Its sockets share the memory for frames, so that a batch of any of them is switched where it lies.
#[repr(align(128))]
pub(crate) struct XdpQueue {
    interface: Interface,
    /// At least one. Frames leave by the first, so that they stay in order.
    pub(super) channels: Vec<Channel>,
    pub(super) part: Part,
    /// The channel that is asked first for frames.
    next: usize,
    /// Packets that stay in a batch, while it is gone through.
    refused: Vec<Packet>,
    statistics: PortStatistics,
    /// When the sockets are asked next for errors that wait there.
    look_for_errors: Seldom,
    /// Readable when one of several sockets is.
    any: Option<OwnedFd>,
    remark: String,
    /// After the sockets.
    _hold: Arc<Hold>,
}

/// What a queue pair is made of.
pub(super) struct Parts {
    pub(super) interface: Interface,
    pub(super) channels: Vec<Channel>,
    pub(super) part: Part,
    pub(super) any: Option<OwnedFd>,
    pub(super) remark: String,
    pub(super) hold: Arc<Hold>,
}

impl XdpQueue {
    pub(super) fn new(parts: Parts) -> XdpQueue {
        let Parts { interface, channels, part, any, remark, hold } = parts;
        let mut queue = XdpQueue {
            interface,
            channels,
            part,
            next: 0,
            refused: Vec::with_capacity(MAX_BATCH),
            statistics: PortStatistics::default(),
            look_for_errors: Seldom::default(),
            any,
            remark,
            _hold: hold,
        };
        queue.refill();
        queue
    }

    /// Gives all sockets slots for frames to come.
    #[inline]
    fn refill(&mut self) {
        for channel in &mut self.channels {
            channel.fill(&mut self.part);
            channel.wake();
        }
    }

    /// Sends what waits. A link that is down is no error: it is tried again.
    fn kick(&mut self) -> Result<(), PortError> {
        let Some(channel) = self.channels.first_mut() else { return Ok(()) };
        match channel.kick() {
            Ok(()) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ENETDOWN | libc::ENXIO) => self.interface.check(),
                _ => Err(self.interface.error("send to", error)),
            },
        }
    }

    fn is_unsent(&self) -> bool {
        self.channels.first().is_some_and(|channel| channel.unsent)
    }

    /// Lengths of frames that the link takes, and the memory has room for.
    #[inline]
    fn lengths(&self) -> RangeInclusive<usize> {
        ETHERNET_HEADER..=self.interface.longest().min(self.part.piece.longest_frame())
    }

    /// Hands on one packet; gives it back if it is refused.
    #[inline]
    fn send(&mut self, packet: Packet, pool: &mut PacketPool) -> Result<(), (Packet, Option<PortError>)> {
        let (kind, length) = (Kind::of(packet.data()), packet.len());
        if self.interface.is_down() || !self.lengths().contains(&length) {
            return Err((packet, None));
        }
        let Some(channel) = self.channels.first_mut() else { return Err((packet, None)) };
        let mut sent = channel.send(packet, &mut self.part);
        if let Sending::Refused(packet) = sent {
            // The ring is full, or no slot is free: the kernel frees some while it sends.
            if let Err(error) = self.kick() {
                return Err((packet, Some(error)));
            }
            let Some(channel) = self.channels.first_mut() else { return Err((packet, None)) };
            channel.complete(&mut self.part);
            sent = channel.send(packet, &mut self.part);
        }
        match sent {
            Sending::InPlace => {}
            Sending::Copied(packet) => {
                self.statistics.tx_copied += 1;
                pool.put(packet);
            }
            Sending::Refused(packet) => return Err((packet, None)),
        }
        self.statistics.sent_of(kind, length);
        Ok(())
    }
}

impl QueuePair for XdpQueue {
    fn receive(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Received, PortError> {
        let (before, mut times) = (batch.len(), TakingTimes::of(batch));
        for _ in 0..self.channels.len() {
            let channel = &mut self.channels[self.next];
            channel.receive(batch, &mut self.part, &mut times, &mut self.statistics);
            if batch.is_full() {
                break;
            }
            self.next = (self.next + 1) % self.channels.len();
        }
        self.refill();
        if batch.is_full() {
            return Ok(Received::More);
        }
        if self.is_unsent() {
            self.kick()?;
        }
        self.interface.follow()?;
        if batch.len() == before && self.look_for_errors.is_due() {
            for channel in &mut self.channels {
                match channel.take_error() {
                    None => {}
                    Some(error) if error.raw_os_error() == Some(libc::ENETDOWN) => self.interface.check()?,
                    Some(error) => return Err(self.interface.error("receive from", error)),
                }
            }
        }
        Ok(Received::Idle)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut result = self.interface.follow();
        let before = batch.len();
        if result.is_ok() && before > 0 && !self.interface.is_down() {
            let lengths = self.lengths();
            let XdpQueue { channels, part, statistics, .. } = self;
            if let Some(channel) = channels.first_mut()
                && channel.send_all(batch, part, lengths, statistics)
            {
                return Ok(Transmitted { sent: before, refused: 0 });
            }
        }
        for packet in batch.drain() {
            if result.is_err() {
                self.refused.push(packet);
            } else if let Err((packet, error)) = self.send(packet, pool) {
                result = error.map_or(Ok(()), Err);
                self.refused.push(packet);
            }
        }
        let refused = self.refused.len();
        self.statistics.tx_refused += refused as u64;
        for packet in self.refused.drain(..) {
            // They were in the batch before.
            if let Err(packet) = batch.push(packet) {
                pool.put(packet);
            }
        }
        result.map(|()| Transmitted { sent: before - refused, refused })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if self.is_unsent() { self.kick() } else { Ok(()) }
    }

    fn complete(&mut self, _: &mut PacketPool) {
        self.channels.iter_mut().for_each(|channel| channel.complete(&mut self.part));
    }

    fn max_kept(&self) -> usize {
        self.channels.first().map_or(0, |channel| channel.entries() as usize)
    }

    fn in_flight(&mut self) -> usize {
        self.channels.iter_mut().for_each(|channel| channel.complete(&mut self.part));
        self.channels.iter().map(|channel| channel.sending() as usize).sum()
    }

    fn is_link_down(&self) -> bool {
        self.interface.is_down()
    }

    fn takes_length(&self, length: usize) -> bool {
        self.lengths().contains(&length)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        let of_channel = || self.channels.first().map(Channel::descriptor);
        self.any.as_ref().map(|any| any.as_raw_fd()).or_else(of_channel)
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        let mut statistics = self.statistics;
        for counts in self.channels.iter().map(Channel::counts) {
            // `fill_ring_empty` counts the same frames as `dropped`, or none.
            statistics.rx_missed += counts.dropped + counts.ring_full;
            statistics.rx_errors += counts.invalid;
        }
        statistics
    }

    fn remark(&self) -> Option<String> {
        Some(self.remark.clone())
    }
}

impl Drop for XdpQueue {
    fn drop(&mut self) {
        for mut channel in self.channels.drain(..) {
            channel.close(&mut self.part);
        }
    }
}

/// A descriptor that polls readable when one of these does.
#[allow(unsafe_code)]
pub(super) fn any_of(descriptors: &[RawFd]) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: takes no pointers.
    let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and nobody else has it.
    let any = unsafe { OwnedFd::from_raw_fd(descriptor) };
    for one in descriptors {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the event lives beyond the call.
        if unsafe { libc::epoll_ctl(any.as_raw_fd(), libc::EPOLL_CTL_ADD, *one, &raw mut event) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(any)
}
