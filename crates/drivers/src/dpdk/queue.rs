//! A queue pair of a device, for one worker.

#![allow(unsafe_code)]

use super::device::{ETHERNET_HEADER, Port};
use super::eal;
use super::memory::{Piece, Pieces};
use super::shim::{self, Frame, TAG_ASIDE, WHOLE};
use crate::kinds::{FrameKinds, Kind};
use crate::offload::{finish_begun, insert_vlan};
use crate::port::{
    PortError, PortStatistics, QueuePair, Received, TakingTimes, TimeSource, Transmitted, deliver,
};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use std::ops::{Range, RangeInclusive};
use std::os::fd::RawFd;
use std::sync::Arc;

/// The EtherType of a VLAN tag.
const VLAN: u16 = 0x8100;

/// A queue pair. What DPDK has of its memory, and what it has of other ports', is in `memory.rs`.
#[repr(align(128))]
pub(super) struct DpdkQueue {
    number: u16,
    piece: Arc<Piece>,
    /// The slots of the piece that were dropped as packets; none are taken from here but to be lent again.
    slots: Option<PacketPool>,
    pieces: Pieces,
    frames: Box<[Frame; MAX_BATCH]>,
    /// The time and the port of each packet that is an mbuf, in case that the device does not take it.
    marks: Box<[(u64, u8); MAX_BATCH]>,
    handed: Vec<Handed>,
    longest: usize,
    is_local: bool,
    is_down: bool,
    statistics: PortStatistics,
    remark: String,
    /// Closed with the last queue pair.
    port: Arc<Port>,
}

// SAFETY: `frames` has pointers within a call alone. Everything else goes from one thread to another by itself.
unsafe impl Send for DpdkQueue {}

/// What a queue pair is made of.
pub(super) struct Parts {
    pub(super) port: Arc<Port>,
    pub(super) number: u16,
    pub(super) piece: Arc<Piece>,
    pub(super) slots: PacketPool,
    /// The longest frame that the link takes.
    pub(super) longest: usize,
    pub(super) is_local: bool,
    pub(super) remark: String,
}

/// What became of a packet that is to be sent, before the device was asked.
enum Handed {
    /// It is not for this link, or there is no mbuf for a copy.
    Refused(Packet),
    /// It is lent.
    Lent { hops: u8, timestamp_ns: u64, kind: Kind },
    /// A copy of it is an mbuf.
    Copied(Packet),
}

impl DpdkQueue {
    pub(super) fn new(parts: Parts) -> DpdkQueue {
        let Parts { port, number, piece, slots, longest, is_local, remark } = parts;
        DpdkQueue {
            number,
            piece,
            slots: Some(slots),
            pieces: Pieces::default(),
            frames: Box::new([Frame::NONE; MAX_BATCH]),
            marks: Box::new([(0, 0); MAX_BATCH]),
            handed: Vec::with_capacity(MAX_BATCH),
            longest,
            is_local,
            is_down: false,
            statistics: PortStatistics::default(),
            remark,
            port,
        }
    }

    /// Gives the mbufs of packets that were dropped to the pool of DPDK.
    #[inline]
    pub(super) fn refill(&mut self) {
        if let Some(slots) = &mut self.slots {
            self.piece.refill(slots);
        }
    }

    #[cfg(test)]
    pub(super) fn piece(&self) -> &Arc<Piece> {
        &self.piece
    }

    /// The piece in which a frame lies.
    #[inline]
    fn piece_of<'p>(own: &'p Piece, pieces: &'p Pieces, data: *const u8) -> Option<&'p Piece> {
        if own.has(data) { Some(own) } else { pieces.of(data) }
    }

    /// The packet of a frame that has come, where it lies or copied; none, and it is counted, when it is lost.
    #[inline]
    fn packet(&mut self, frame: Frame, pool: &mut PacketPool) -> Option<Packet> {
        let piece = match frame.flags & WHOLE {
            0 => None,
            _ => Self::piece_of(&self.piece, &self.pieces, frame.data),
        };
        let packet = match piece {
            // SAFETY: the device has handed the mbuf over, it has no other user, and its frame lies in its own room, so that it
            // is an mbuf of this piece.
            Some(piece) => unsafe { piece.packet(frame.mbuf, frame.data, frame.length) },
            None => self.copy(frame, pool),
        };
        let mut packet = packet?;
        let is_right = !packet.is_empty()
            && packet.len() <= packet.longest_received()
            && (frame.flags & TAG_ASIDE == 0 || insert_vlan(&mut packet, (VLAN, frame.tag)));
        if !is_right {
            self.statistics.rx_errors += 1;
            return None;
        }
        if self.is_local {
            finish_begun(packet.data_mut());
        }
        Some(packet)
    }

    /// Adds a frame that has come to the batch, or counts it as wrong, if it is of the usual kind: whole, with its tag, in an mbuf of
    /// the own piece. What is to be said of its packet is said in the batch: one that is moved right after a change waits for that.
    #[inline]
    fn receive_in_place(
        &mut self,
        frame: Frame,
        (batch, pool): (&mut Batch, &mut PacketPool),
        now_ns: u64,
    ) -> bool {
        if frame.flags != WHOLE || !self.piece.has(frame.data) || batch.is_full() {
            return false;
        }
        // SAFETY: the device has handed the mbuf over, it has no other user, and its frame lies in its own room, so that it is an
        // mbuf of this piece.
        let Some(packet) = batch.add_made(|| unsafe { self.piece.empty(frame.mbuf) }) else { return false };
        // What a device says that cannot be is an error of the frame.
        let is_right = frame.length > 0
            && packet.take_place(self.piece.place(frame.data, frame.length))
            && packet.len() <= packet.longest_received();
        if !is_right {
            self.statistics.rx_errors += 1;
            batch.give_last_back(pool);
            return true;
        }
        packet.timestamp_ns = now_ns;
        if self.is_local {
            finish_begun(packet.data_mut());
        }
        self.statistics.received(packet.data());
        true
    }

    /// Hands on all packets of a batch at once, if they are of the usual kind: mbufs of one piece, of lengths that the link takes.
    /// Gives how many the device has not taken, which are in the batch. None, and nothing is done, when they are not.
    #[inline]
    fn transmit_in_place(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Option<usize> {
        let DpdkQueue { piece, pieces, frames, marks, longest, statistics, .. } = self;
        let piece = Self::piece_of(piece, pieces, batch.packets().first()?.data().as_ptr())?;
        let lengths = lengths(*longest);
        let fits = |packet: &Packet| lengths.contains(&packet.len());
        if !batch.packets().iter().all(|packet| fits(packet) && piece.lends(packet)) {
            return None;
        }
        let (mut count, mut bytes) = (0, 0);
        for ((packet, frame), mark) in batch.drain().zip(frames.iter_mut()).zip(marks.iter_mut()) {
            let (data, length) = (packet.data().as_ptr().cast_mut(), packet.len() as u32);
            *mark = (packet.timestamp_ns, packet.hops);
            statistics.tx_kinds.count(packet.data());
            match piece.lend(packet) {
                Ok(mbuf) => *frame = Frame { mbuf, data, length, tag: 0, flags: 0 },
                Err(packet) => {
                    // It was asked whether it does: there is none.
                    debug_assert!(false, "a piece does not lend what it said it does");
                    pool.put(packet);
                    break;
                }
            }
            (count, bytes) = (count + 1, bytes + u64::from(length));
        }
        statistics.tx_packets += count as u64;
        statistics.tx_bytes += bytes;
        // SAFETY: so many mbufs, which nobody else has and whose slots are lent; this is the only user of the queue.
        let sent =
            unsafe { shim::millrace_send(self.port.id(), self.number, self.frames.as_ptr(), count as u16) };
        let sent = (sent as usize).min(count);
        if sent < count {
            self.take_all_back(sent..count, (batch, pool));
        }
        Some(count - sent)
    }

    /// The packets of lent mbufs that the device did not take go back to the batch, and are counted as refused.
    #[cold]
    fn take_all_back(&mut self, numbers: Range<usize>, (batch, pool): (&mut Batch, &mut PacketPool)) {
        for number in numbers {
            let (frame, (timestamp_ns, hops)) = (self.frames[number], self.marks[number]);
            let packet = self.take_back(frame, hops, timestamp_ns);
            self.statistics.tx_packets -= 1;
            self.statistics.tx_bytes -= u64::from(frame.length);
            self.statistics.tx_refused += 1;
            if let Some(packet) = packet {
                let mut kinds = FrameKinds::default();
                kinds.count(packet.data());
                self.statistics.tx_kinds -= kinds;
                // It was in the batch before.
                if let Err(packet) = batch.push(packet) {
                    pool.put(packet);
                }
            }
        }
    }

    /// A copy of a frame in memory that is not shared with DPDK, or in several mbufs.
    #[cold]
    fn copy(&mut self, frame: Frame, pool: &mut PacketPool) -> Option<Packet> {
        let packet = pool.take();
        let copied = packet.map(|mut packet| {
            let length = packet.fill(|room| {
                // SAFETY: the mbufs are the driver's, and there is so much room.
                let used =
                    unsafe { shim::millrace_copy_out(frame.mbuf, room.as_mut_ptr(), room.len() as u32) };
                Ok::<_, std::convert::Infallible>(used as usize)
            });
            // A frame that does not fit leaves an empty one.
            let Ok(_) = length;
            packet
        });
        // SAFETY: the device has handed the mbuf over, and it is not used after this.
        unsafe { shim::millrace_frame_free(frame.mbuf) };
        if copied.is_none() {
            self.statistics.rx_missed += 1;
        }
        copied
    }

    /// Makes an mbuf of a packet.
    #[inline]
    fn hand_on(&self, packet: Packet, frame: &mut Frame) -> Handed {
        if !self.takes_length(packet.len()) {
            return Handed::Refused(packet);
        }
        let data = packet.data().as_ptr();
        let (length, hops, timestamp_ns) = (packet.len() as u32, packet.hops, packet.timestamp_ns);
        let kind = Kind::of(packet.data());
        let packet = match Self::piece_of(&self.piece, &self.pieces, data) {
            Some(piece) => match piece.lend(packet) {
                Ok(mbuf) => {
                    *frame = Frame { mbuf, data: data.cast_mut(), length, tag: 0, flags: 0 };
                    return Handed::Lent { hops, timestamp_ns, kind };
                }
                Err(packet) => packet,
            },
            None => packet,
        };
        // SAFETY: the pool is there, the packet has so many bytes, and the frame is there for the answer.
        let copied = unsafe {
            let from = packet.data().as_ptr();
            shim::millrace_copy_in(self.piece.pool(), from, length, &raw mut *frame)
        };
        if copied == 0 { Handed::Copied(packet) } else { Handed::Refused(packet) }
    }

    /// The packet of a lent mbuf that the device did not take.
    #[cold]
    fn take_back(&self, frame: Frame, hops: u8, timestamp_ns: u64) -> Option<Packet> {
        let piece = Self::piece_of(&self.piece, &self.pieces, frame.data)?;
        // SAFETY: it was lent for this call, and the device did not take it.
        let mut packet = unsafe { piece.packet(frame.mbuf, frame.data, frame.length) }?;
        (packet.hops, packet.timestamp_ns) = (hops, timestamp_ns);
        Some(packet)
    }
}

impl QueuePair for DpdkQueue {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        eal::enter();
        self.pieces.refresh();
        self.refill();
        let room = batch.room().min(MAX_BATCH);
        // SAFETY: there is room for so many frames, and this is the only user of the queue.
        let count = unsafe {
            shim::millrace_receive(self.port.id(), self.number, self.frames.as_mut_ptr(), room as u16)
        };
        let count = (count as usize).min(room);
        if count == 0 {
            return Ok(if room == 0 { Received::More } else { Received::Idle });
        }
        let mut times = TakingTimes::of(batch);
        for at in 0..count {
            let now_ns = times.next_ns();
            if self.receive_in_place(self.frames[at], (batch, pool), now_ns) {
                continue;
            }
            if let Some(mut packet) = self.packet(self.frames[at], pool) {
                packet.timestamp_ns = now_ns;
                deliver(packet, batch, pool, &mut self.statistics);
            }
        }
        Ok(if count == room { Received::More } else { Received::Idle })
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        eal::enter();
        self.pieces.refresh();
        let all = batch.len();
        if let Some(refused) = self.transmit_in_place(batch, pool) {
            self.is_down = refused > 0 && !self.port.is_up();
            return Ok(Transmitted { sent: all - refused, refused });
        }
        let mut handed = std::mem::take(&mut self.handed);
        let mut ready = 0;
        for packet in batch.drain() {
            let mut frame = Frame::NONE;
            let became = self.hand_on(packet, &mut frame);
            if !matches!(became, Handed::Refused(_)) {
                self.frames[ready] = frame;
                ready += 1;
            }
            handed.push(became);
        }
        // SAFETY: so many mbufs, which nobody else has and whose slots are lent; this is the only user of the queue.
        let sent =
            unsafe { shim::millrace_send(self.port.id(), self.number, self.frames.as_ptr(), ready as u16) };
        let sent = (sent as usize).min(ready);
        let (mut at, mut refused) = (0, 0);
        for became in handed.drain(..) {
            let frame = self.frames[at.min(MAX_BATCH - 1)];
            let back = match became {
                Handed::Refused(packet) => Some(packet),
                handed => {
                    let is_sent = at < sent;
                    at += 1;
                    if is_sent {
                        match handed {
                            Handed::Lent { kind, .. } => {
                                self.statistics.sent_of(kind, frame.length as usize);
                            }
                            Handed::Copied(packet) => {
                                self.statistics.sent(packet.data());
                                self.statistics.tx_copied += 1;
                                pool.put(packet);
                            }
                            // Taken above.
                            Handed::Refused(packet) => pool.put(packet),
                        }
                        continue;
                    }
                    match handed {
                        Handed::Lent { hops, timestamp_ns, .. } => self.take_back(frame, hops, timestamp_ns),
                        Handed::Copied(packet) => {
                            // SAFETY: the mbuf of the copy, which the device did not take.
                            unsafe { shim::millrace_frame_free(frame.mbuf) };
                            Some(packet)
                        }
                        Handed::Refused(packet) => Some(packet),
                    }
                }
            };
            refused += 1;
            // It was in the batch before.
            if let Some(packet) = back
                && let Err(packet) = batch.push(packet)
            {
                pool.put(packet);
            }
        }
        self.handed = handed;
        self.statistics.tx_refused += refused as u64;
        self.is_down = refused > 0 && !self.port.is_up();
        Ok(Transmitted { sent, refused })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn is_link_down(&self) -> bool {
        self.is_down
    }

    fn takes_length(&self, length: usize) -> bool {
        lengths(self.longest).contains(&length)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        let mut statistics = self.statistics;
        // The device counts them for all of its queues.
        if self.number == 0 {
            let (missed, wrong) = self.port.lost();
            statistics.rx_missed += missed;
            statistics.rx_errors += wrong;
        }
        statistics
    }

    fn remark(&self) -> Option<String> {
        Some(self.remark.clone())
    }
}

impl Drop for DpdkQueue {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            self.port.give_back(Arc::clone(&self.piece), slots);
        }
    }
}

/// Lengths of frames that a link takes whose longest is this.
fn lengths(longest: usize) -> RangeInclusive<usize> {
    ETHERNET_HEADER..=longest
}
