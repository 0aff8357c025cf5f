//! One socket with the slots that its rings have: packets go in, packets come out.

#![allow(unsafe_code)]

use super::memory::Part;
use super::socket::{Counts, Frame, Socket};
use crate::kinds::Kind;
use crate::offload::finish_begun;
use crate::port::{PortStatistics, TakingTimes};
use millrace_frames::{Batch, Packet, Place};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// So long a socket that is closed waits for frames that are on their way out.
const LEAVE_TIME: Duration = Duration::from_millis(20);

/// A socket and what is lent to it.
pub(super) struct Channel {
    socket: Option<Socket>,
    entries: u32,
    /// Slots of the own part that are lent for frames to come.
    to_receive: u32,
    /// Slots of each part that are lent for frames to be sent, and all of them.
    to_send: Box<[u32]>,
    sending: u32,
    /// Frames are in the sending ring that the kernel was not yet asked for, or did not take.
    pub(super) unsent: bool,
    traits: Traits,
}

/// How frames come to a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    /// The network card itself reads and writes slots.
    pub(super) is_zero_copy: bool,
    /// They may come from senders of this machine, which leave checksums to a card that is not there.
    pub(super) is_local: bool,
}

/// What becomes of a packet that is to be sent.
pub(super) enum Sending {
    /// It is in the ring where it lies.
    InPlace,
    /// A copy of it is in the ring.
    Copied(Packet),
    /// There is no room.
    Refused(Packet),
}

impl Channel {
    /// Uses a bound socket with rings of so many entries.
    pub(super) fn new(socket: Socket, entries: u32, parts: usize, traits: Traits) -> Channel {
        Channel {
            socket: Some(socket),
            entries,
            to_receive: 0,
            to_send: vec![0; parts].into(),
            sending: 0,
            unsent: false,
            traits,
        }
    }

    fn socket(&mut self) -> &mut Socket {
        self.socket.as_mut().expect("it is taken when this is dropped")
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, Socket::descriptor)
    }

    /// Frames that may be on their way out at once.
    pub(super) fn entries(&self) -> u32 {
        self.entries
    }

    /// Frames that have not left.
    pub(super) fn sending(&self) -> u32 {
        self.sending
    }

    pub(super) fn counts(&self) -> Counts {
        self.socket.as_ref().map(Socket::counts).unwrap_or_default()
    }

    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.socket().take_error()
    }

    /// Lends slots for frames to come, as many as the rings have room for.
    #[inline]
    pub(super) fn fill(&mut self, part: &mut Part) {
        if self.to_receive == self.entries {
            return;
        }
        let start = part.start() as u64;
        let entries = self.entries;
        let Some(socket) = self.socket.as_mut() else { return };
        let before = self.to_receive;
        while self.to_receive < entries && socket.rings.fill.has_room() {
            let Some(packet) = part.pool.take() else { break };
            let Ok(place) = part.lender().lend(packet) else { break };
            // The kernel looks for the slot alone.
            socket.rings.fill.push(start + u64::from(place.at));
            self.to_receive += 1;
        }
        if self.to_receive != before {
            socket.rings.fill.publish();
        }
    }

    /// Wakes the driver of the interface if it waits for slots.
    #[inline]
    pub(super) fn wake(&mut self) {
        let socket = self.socket();
        if socket.rings.fill.needs_wakeup() {
            socket.wake();
        }
    }

    /// Adds the frames that have come to the batch, as many as it has room for.
    pub(super) fn receive(
        &mut self,
        batch: &mut Batch,
        part: &mut Part,
        times: &mut TakingTimes,
        statistics: &mut PortStatistics,
    ) {
        let start = part.start() as u64;
        let Some(socket) = self.socket.as_mut() else { return };
        let receiving = &mut socket.rings.receiving;
        let before = self.to_receive;
        while !batch.is_full()
            && let Some(frame) = receiving.pop()
        {
            // The kernel gives addresses within the own part, which has fewer than 4 GiB.
            let place = Place { at: frame.address.wrapping_sub(start) as u32, len: frame.length };
            // SAFETY: the slot was lent to the fill ring of this socket, from where the kernel has taken it once, and is given
            // back by this entry of its receiving ring, which is read once and was written after the frame.
            let taken = batch.add_made(|| unsafe { part.lender().take_back(place.at) });
            let Some(packet) = taken else { continue };
            self.to_receive -= 1;
            if !packet.take_place(place) || place.len as usize > packet.longest_received() {
                statistics.rx_errors += 1;
                batch.give_last_back(&mut part.pool);
                continue;
            }
            if self.traits.is_local {
                finish_begun(packet.data_mut());
            }
            packet.timestamp_ns = times.next_ns();
            statistics.received(packet.data());
        }
        if self.to_receive != before {
            receiving.release();
        }
    }

    /// Puts all packets of a batch into the sending ring where they lie, and counts them; false, and nothing is done, when one does not
    /// lie in the shared memory, is not of a length among these, or has no room in the ring.
    #[inline]
    pub(super) fn send_all(
        &mut self,
        batch: &mut Batch,
        part: &mut Part,
        lengths: RangeInclusive<usize>,
        statistics: &mut PortStatistics,
    ) -> bool {
        let (entries, count) = (self.entries, batch.len() as u32);
        let Some(socket) = self.socket.as_mut() else { return false };
        let ring = &mut socket.rings.sending;
        if entries - self.sending.min(entries) < count || !ring.has_room_for(count) {
            return false;
        }
        let start = part.piece.start().as_ptr() as usize;
        let at_of = |packet: &Packet| (packet.data().as_ptr() as usize).wrapping_sub(start);
        let goes = |packet: &Packet| {
            lengths.contains(&packet.len()) && part.piece.lender_at(at_of(packet)).is_some()
        };
        if !batch.packets().iter().all(goes) {
            return false;
        }
        for packet in batch.drain() {
            let (at, length) = (at_of(&packet), packet.len());
            let kind = Kind::of(packet.data());
            let Some((number, lender, _)) = part.piece.lender_at(at) else { continue };
            match lender.lend(packet) {
                Ok(_) => {
                    ring.push(Frame { address: at as u64, length: length as u32, options: 0 });
                    self.to_send[number] += 1;
                    self.sending += 1;
                    statistics.sent_of(kind, length);
                }
                Err(packet) => {
                    // What lies in a part is lent by it: there is none.
                    debug_assert!(false, "a part does not lend its packet");
                    statistics.tx_refused += 1;
                    part.pool.put(packet);
                }
            }
        }
        self.unsent = true;
        true
    }

    /// Puts a packet into the sending ring: where it lies, if that is in the shared memory, else a copy.
    #[inline]
    pub(super) fn send(&mut self, packet: Packet, part: &mut Part) -> Sending {
        let entries = self.entries;
        let Some(socket) = self.socket.as_mut() else { return Sending::Refused(packet) };
        if self.sending >= entries || !socket.rings.sending.has_room() {
            return Sending::Refused(packet);
        }
        let at = (packet.data().as_ptr() as usize).wrapping_sub(part.piece.start().as_ptr() as usize);
        let (number, address, length, sent) = match part.piece.lender_at(at) {
            Some((number, lender, _)) => match lender.lend(packet) {
                Ok(place) => (number, at, place.len, Sending::InPlace),
                Err(packet) => return Sending::Refused(packet),
            },
            None => {
                let Some(mut copy) = part.pool.take() else { return Sending::Refused(packet) };
                if copy.set_frame(packet.data()).is_err() {
                    part.pool.put(copy);
                    return Sending::Refused(packet);
                }
                match part.lender().lend(copy) {
                    Ok(place) => {
                        (part.number(), part.start() + place.at as usize, place.len, Sending::Copied(packet))
                    }
                    Err(copy) => {
                        part.pool.put(copy);
                        return Sending::Refused(packet);
                    }
                }
            }
        };
        socket.rings.sending.push(Frame { address: address as u64, length, options: 0 });
        self.to_send[number] += 1;
        self.sending += 1;
        self.unsent = true;
        sent
    }

    /// Takes the packets back whose frames have left. Those of other parts go to their pools.
    #[inline]
    pub(super) fn complete(&mut self, part: &mut Part) {
        if self.sending == 0 {
            return;
        }
        let Some(socket) = self.socket.as_mut() else { return };
        let completion = &mut socket.rings.completion;
        let before = self.sending;
        while let Some(address) = completion.pop() {
            let Some((number, lender, at)) = part.piece.lender_at(address as usize) else { continue };
            // SAFETY: the slot was lent to the sending ring of this socket, and is given back by this entry of its completion
            // ring, which is read once.
            let Some(packet) = (unsafe { lender.take_back(at) }) else { continue };
            self.to_send[number] = self.to_send[number].saturating_sub(1);
            self.sending = self.sending.saturating_sub(1);
            // A packet of another part finds its pool by itself.
            part.pool.put(packet);
        }
        if self.sending != before {
            completion.release();
        }
    }

    /// Shows the kernel what is in the sending ring, and has it sent. That the queue is full is no error: it is tried again.
    pub(super) fn kick(&mut self) -> io::Result<()> {
        let socket = self.socket();
        socket.rings.sending.publish();
        let mut unread = socket.rings.sending.unread();
        let mut result = Ok(());
        // A request sends as many as the kernel likes; one that sends none is the last.
        while unread > 0 && socket.rings.sending.needs_wakeup() {
            if let Err(error) = socket.kick()
                && !matches!(
                    error.raw_os_error(),
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EBUSY | libc::EINTR)
                )
            {
                result = Err(error);
                break;
            }
            let left = socket.rings.sending.unread();
            if left == unread {
                break;
            }
            unread = left;
        }
        // A driver that needs no request sends what is there.
        self.unsent = unread > 0 && self.socket().rings.sending.needs_wakeup();
        result
    }

    /// Closes the socket. Slots that the kernel may still reach are taken out of use; there are few of other parts, for most
    /// frames leave before.
    pub(super) fn close(&mut self, part: &mut Part) {
        let deadline = Instant::now() + LEAVE_TIME;
        loop {
            let is_stuck = self.kick().is_err() || self.unsent;
            self.complete(part);
            if self.sending == 0 || is_stuck || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let Some(socket) = self.socket.take() else { return };
        if !self.traits.is_zero_copy {
            for frame in socket.rings.sending.unread_entries() {
                let Some((number, lender, at)) = part.piece.lender_at(frame.address as usize) else {
                    continue;
                };
                self.to_send[number] = self.to_send[number].saturating_sub(1);
                // SAFETY: the slot was lent to this ring, and the kernel, which copies frames out of it on request alone, is not
                // asked any more. Each entry is read once.
                drop(unsafe { lender.take_back(at) });
            }
        }
        drop(socket);
        // SAFETY: these are lent and not taken back, and nobody takes them back after this, for the rings are gone.
        unsafe { part.lender().retire(self.to_receive as usize) };
        for (number, count) in self.to_send.iter().enumerate() {
            if let Some(lender) = part.piece.lender(number) {
                // SAFETY: as above.
                unsafe { lender.retire(*count as usize) };
            }
        }
    }
}
