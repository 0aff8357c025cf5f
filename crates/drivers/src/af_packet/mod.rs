//! The `packet` driver: a Linux interface through a packet socket with mapped rings.
//!
//! Frames are read from and written to memory shared with the kernel; a system call is needed only to send a round of
//! frames and while nothing arrives. The interface is promiscuous as long as the port is open,
//! unless it is asked otherwise (`addresses.rs`); frames that this machine
//! itself sends through it are not received. With several queue pairs each has a socket, and the kernel divides the frames among
//! them by flow.
//!
//! No offload has to be switched off on either side. What a local sender left to the hardware is finished here: begun
//! checksums, segmentation of TCP and UDP (also undone: frames that the interface merged), and a VLAN tag kept aside is
//! put back. A frame that cannot be restored counts as an error ([`PortStatistics::rx_errors`]). What came as one large frame of TCP and was
//! cut leaves as large frames (`offload/join.rs`), as it would through a bridge of the kernel.

mod device;
mod fanout;
mod ring;
#[cfg(test)]
mod tests;
mod whole;

use crate::addresses::Addresses;
use crate::link::{LinkName, changes};
use crate::offload::{
    Cutter, Cutting, HEADER_LEN, Joined, Offload, Segmentation, VLAN_TAG, insert_vlan, join,
};
use crate::port::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use crate::stamps::{StampedQueue, StampingDevice};
use crate::wait::Seldom;
use fanout::{Group, admit};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use ring::{Arrival, Refused, RingSocket};
use std::cell::Cell;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use whole::{Handed, WholeSocket};

pub use device::PacketDevice;

/// An Ethernet header, which the kernel wants on every frame that it sends.
const ETHERNET_HEADER: usize = 14;

/// Between two questions to the link that frames cause: for its MTU because of long ones, or whether it is still down.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A queue pair of a Linux interface.
#[repr(align(128))]
pub(crate) struct PacketQueue {
    name: LinkName,
    index: i32,
    ring: RingSocket,
    /// The group of the sockets that share the interface, if there are several queue pairs.
    group: Option<Group>,
    /// Bytes of each of its rings.
    ring_bytes: usize,
    /// Of frames that the interface is to take next to those for its own; none: all.
    addresses: Option<Addresses>,
    /// The one that is used as soon as nothing is left to be received from that: its slots are larger.
    next_ring: Option<RingSocket>,
    mtu: usize,
    /// The link is down, and was when this port asked last.
    down_at: Option<Instant>,
    /// When long frames caused a question for the MTU.
    looked: Option<Instant>,
    /// The number of changes of links that it was asked for after.
    changes: u32,
    /// Longest frame that the link takes.
    max_send: usize,
    /// Frames are in the sending ring that the kernel was not yet asked for, or did not take.
    unsent: bool,
    /// When the socket is asked next for an error that waits there.
    look_for_errors: Seldom,
    /// Has an offload header, and a frame that outgrew its slot or is being cut.
    large: Cutter,
    /// Sends frames that were put together again; none: all leave as they are.
    whole: Option<WholeSocket>,
    /// The clock of a device that stamps frames.
    stamped: Option<StampedQueue>,
    /// Why frames have not the stamps of the device that were asked for.
    unstamped: Option<String>,
    statistics: PortStatistics,
    missed: Cell<u64>,
}

/// What became of a frame at the head of the ring.
enum Taken {
    Packet,
    Cutting(Cutting),
    Error,
}

impl PacketQueue {
    /// Opens a queue pair with rings of so many bytes. `enter` binds its socket to the interface of a number.
    fn open(
        name: &LinkName,
        ring_bytes: usize,
        addresses: Option<Addresses>,
        enter: impl FnOnce(&RingSocket, i32) -> Result<Option<Group>, Refused>,
    ) -> Result<PacketQueue, PortError> {
        let refused =
            |what: &str, error| PortError::system(format!("{what} interface {}", name.as_str()), error);
        // Before the MTU: a change meanwhile is asked for again.
        let changes = changes();
        let name = name.held().map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => {
                PortError::NoInterface { name: name.as_str().to_owned(), known: crate::link::names() }
            }
            _ => refused("find", error),
        })?;
        let mtu = name.mtu().map_err(|error| refused("find", error))?;
        let index = name.index().map_err(|error| refused("find", error))?;
        let ring = RingSocket::prepare(mtu, ring_bytes).map_err(|(what, error)| refused(what, error))?;
        let group = enter(&ring, index).map_err(|(what, error)| refused(what, error))?;
        let whole = WholeSocket::open(index).map_err(|(what, error)| refused(what, error))?;
        let mut queue = PacketQueue {
            max_send: max_send(mtu, &ring),
            ring_bytes,
            addresses,
            next_ring: None,
            mtu,
            down_at: None,
            looked: None,
            changes,
            name,
            index,
            ring,
            group,
            unsent: false,
            look_for_errors: Seldom::default(),
            large: Cutter::new(),
            whole: Some(whole),
            stamped: None,
            unstamped: None,
            statistics: PortStatistics::default(),
            missed: Cell::new(0),
        };
        queue.look_whether_up();
        Ok(queue)
    }

    /// Has frames come with the stamps of the device, if there is one that stamps.
    fn want_stamps(&mut self, device: &Result<Option<Arc<StampingDevice>>, String>) {
        let wanted = match device {
            Ok(None) => return,
            Ok(Some(device)) => StampedQueue::new(device)
                .and_then(|stamped| self.ring.want_device_stamps().map(|()| stamped))
                .map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        };
        match wanted {
            Ok(stamped) => self.stamped = Some(stamped),
            Err(reason) => self.unstamped = Some(reason),
        }
    }

    /// Moves the frame at the head of the ring into the packet, or to `large` if it is to be cut.
    fn take(&mut self, arrival: &Arrival, packet: &mut Packet) -> Taken {
        let (offload, length) = if arrival.is_queued {
            let whole = self.large.buffer();
            let Ok(received) = self.ring.receive_large(whole) else { return Taken::Error };
            let Some((header, _)) = whole.split_first_chunk() else { return Taken::Error };
            if received < HEADER_LEN || received > whole.len() {
                return Taken::Error;
            }
            (Offload::parse(header), received - HEADER_LEN)
        } else {
            if arrival.captured < arrival.length {
                return Taken::Error;
            }
            let Some((header, frame)) = self.ring.arrived(arrival) else { return Taken::Error };
            let offload = Offload::parse(header);
            if !offload.is_segmented() {
                let set = packet.set_frame(frame).is_ok();
                return finish(packet, set, &offload, arrival.vlan);
            }
            // Fits: a slot is smaller than the buffer.
            let length = frame.len();
            self.large.buffer()[HEADER_LEN..HEADER_LEN + length].copy_from_slice(frame);
            (offload, length)
        };
        let place = HEADER_LEN..HEADER_LEN + length;
        let frame = &self.large.buffer()[place.clone()];
        if !offload.is_segmented() {
            let set = packet.set_frame(frame).is_ok();
            return finish(packet, set, &offload, arrival.vlan);
        }
        match Segmentation::plan(&offload, frame) {
            Some(plan) => Taken::Cutting(Cutting {
                plan,
                place,
                vlan: arrival.vlan,
                timestamp_ns: arrival.timestamp_ns,
            }),
            None => Taken::Error,
        }
    }

    /// Some link of the system has changed: this interface may have another MTU, or be gone.
    ///
    /// The socket alone does not tell that an interface is gone: the kernel leaves its error (`ENETDOWN`) once, when the
    /// interface goes down on its way out, and whoever looks then still finds it.
    #[cold]
    fn follow_link(&mut self) -> Result<(), PortError> {
        // Before the questions: a change meanwhile is asked for again.
        self.changes = changes();
        self.follow_mtu();
        self.check_link()
    }

    /// Follows the MTU of the link, which may have changed. The driver makes larger slots at once, and uses them when all
    /// frames in the present ones are received.
    #[cold]
    fn follow_mtu(&mut self) {
        // `check_link` reports an interface that is gone.
        let Ok(mtu) = self.name.mtu() else { return };
        if mtu == self.mtu {
            return;
        }
        self.mtu = mtu;
        self.max_send = max_send(mtu, &self.ring);
        self.next_ring = None;
        if self.ring.is_small_for(mtu) {
            // Without memory for larger slots, frames that fit the smaller ones pass.
            self.next_ring = RingSocket::prepare(mtu, self.ring_bytes).ok();
        }
    }

    /// The same because of a frame that is longer than the link takes, or than a slot: not for each one.
    #[cold]
    fn follow_mtu_for_long(&mut self) {
        let now = Instant::now();
        if self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK_AGAIN) {
            self.looked = Some(now);
            self.follow_mtu();
        }
    }

    /// Goes on with the larger slots, if there are some. Nothing is left to be received from the others.
    #[cold]
    fn change_rings(&mut self) {
        let Some(next) = self.next_ring.take() else { return };
        if self.unsent {
            // What does not leave now waits in the kernel, or is lost with the ring.
            let _ = self.ring.kick();
        }
        // In a group it enters before the other one leaves, and the kernel then gives it the share of that one: flows stay with
        // their queues. In between, they are divided among one more.
        let entered = match self.group {
            None => next.bind(self.index, self.addresses.as_ref()),
            Some(group) => Group::enter(Some(group), &next, (self.index, self.addresses.as_ref()))
                .and_then(|_| admit(&next)),
        };
        if entered.is_err() {
            return;
        }
        if self.stamped.is_some() && next.want_device_stamps().is_err() {
            self.stamped = None;
        }
        self.missed.set(self.missed.get() + self.ring.take_missed());
        self.ring = next;
        self.unsent = false;
        self.max_send = max_send(self.mtu, &self.ring);
    }

    /// Sends what waits. That the queue is full or the link down is no error: it is tried again.
    fn kick(&mut self) -> Result<(), PortError> {
        match self.ring.kick() {
            Ok(()) => self.unsent = false,
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => {}
                Some(libc::ENETDOWN | libc::ENXIO) => self.check_link()?,
                _ => return Err(self.error("send to", error)),
            },
        }
        Ok(())
    }

    /// Sends a frame by the ring; false: it does not leave. What goes wrong with the port is noted in `result`.
    fn send(&mut self, packet: &Packet, is_up: bool, result: &mut Result<(), PortError>) -> bool {
        let fits = is_up && lengths(self.max_send).contains(&packet.len());
        let mut sent = fits && self.ring.enqueue(packet.data());
        if fits && !sent && result.is_ok() {
            // The ring is full: the kernel frees slots while it sends.
            *result = self.kick();
            sent = result.is_ok() && self.ring.enqueue(packet.data());
        }
        if sent {
            self.unsent = true;
            self.statistics.sent(packet.data());
        } else {
            self.statistics.tx_refused += 1;
        }
        sent
    }

    /// Sends frames of which some are parts of large ones, and says of each whether it leaves.
    fn send_parts(
        &mut self,
        packets: &[Packet],
        is_up: bool,
        result: &mut Result<(), PortError>,
    ) -> [bool; MAX_BATCH] {
        let (mut sent, mut at) = ([false; MAX_BATCH], 0);
        while let Some(packet) = packets.get(at) {
            let rest = &packets[at..];
            // No part is longer than the first.
            let fits = is_up && result.is_ok() && packet.len() <= self.mtu + ETHERNET_HEADER;
            let joined = if fits && self.whole.is_some() { join(rest) } else { None };
            match joined {
                Some(joined) if self.send_whole(&joined, rest) => {
                    sent[at..at + joined.frames].fill(true);
                    rest[..joined.frames].iter().for_each(|packet| self.statistics.sent(packet.data()));
                    at += joined.frames;
                }
                _ => {
                    sent[at] = self.send(packet, is_up, result);
                    at += 1;
                }
            }
        }
        sent
    }

    /// Sends a large frame, after all that is in the ring; false: it does not leave so.
    fn send_whole(&mut self, joined: &Joined, packets: &[Packet]) -> bool {
        if self.unsent && self.kick().is_err() || !self.ring.has_handed_over() {
            return false;
        }
        let handed = self.whole.as_mut().map(|whole| whole.send(joined, packets));
        if handed == Some(Handed::Never) {
            self.whole = None;
        }
        handed == Some(Handed::Sent)
    }

    /// Asks whether the link is up and has a carrier. The kernel takes frames for a link without a carrier and loses them,
    /// so this driver refuses them, and its worker counts them as that.
    #[cold]
    fn look_whether_up(&mut self) {
        // `check_link` reports an interface that is gone.
        self.down_at = (!self.name.is_running().unwrap_or(false)).then(Instant::now);
    }

    /// The link went down, which is no error, or away, which is.
    fn check_link(&mut self) -> Result<(), PortError> {
        self.look_whether_up();
        self.name.index().map(drop).map_err(|error| self.error("use", error))
    }

    fn error(&self, what: &str, error: io::Error) -> PortError {
        PortError::system(format!("{what} interface {}", self.name.as_str()), error)
    }
}

/// Lengths of frames that a link takes.
fn lengths(max_send: usize) -> RangeInclusive<usize> {
    ETHERNET_HEADER..=max_send
}

/// Longest frame that a link of this MTU takes from a ring.
fn max_send(mtu: usize, ring: &RingSocket) -> usize {
    (mtu + ETHERNET_HEADER + VLAN_TAG).min(ring.max_send())
}

fn finish(packet: &mut Packet, set: bool, offload: &Offload, vlan: Option<(u16, u16)>) -> Taken {
    let finished =
        set && offload.finish_checksum(packet.data_mut()) && vlan.is_none_or(|tag| insert_vlan(packet, tag));
    if finished { Taken::Packet } else { Taken::Error }
}

impl QueuePair for PacketQueue {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let mut has_looked = false;
        loop {
            if !self.large.cut(batch, pool, &mut self.statistics) {
                return Ok(Received::More);
            }
            let Some(mut arrival) = self.ring.arrival() else {
                if self.next_ring.is_none() {
                    break;
                }
                self.change_rings();
                continue;
            };
            if arrival.is_stamped_by_device
                && let Some(StampedQueue { clock, .. }) = &mut self.stamped
            {
                if !std::mem::replace(&mut has_looked, true) {
                    clock.keep_up();
                }
                arrival.timestamp_ns = clock.wall_ns(arrival.timestamp_ns);
            }
            if arrival.is_queued {
                self.follow_mtu_for_long();
            }
            // It is filled in the batch: one that is moved right after a change waits for that. None: no room, or no packet.
            let Some(packet) = batch.add(pool) else { return Ok(Received::More) };
            let taken = self.take(&arrival, packet);
            self.ring.release();
            match taken {
                Taken::Packet => {
                    packet.timestamp_ns = arrival.timestamp_ns;
                    self.statistics.received(packet.data());
                }
                Taken::Cutting(cutting) => {
                    self.large.start(cutting);
                    batch.give_last_back(pool);
                }
                Taken::Error => {
                    self.statistics.rx_errors += 1;
                    batch.give_last_back(pool);
                }
            }
        }
        if self.unsent {
            self.kick()?;
        }
        if self.changes != changes() {
            self.follow_link()?;
        }
        if !self.look_for_errors.is_due() {
            return Ok(Received::Idle);
        }
        match self.ring.take_error() {
            None => {}
            Some(error) if error.raw_os_error() == Some(libc::ENETDOWN) => self.check_link()?,
            Some(error) => return Err(self.error("receive from", error)),
        }
        Ok(Received::Idle)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut result = if self.changes == changes() { Ok(()) } else { self.follow_link() };
        if self.down_at.is_some_and(|asked| asked.elapsed() >= LOOK_AGAIN) {
            self.look_whether_up();
        }
        if batch.packets().iter().any(|packet| packet.len() > self.max_send) {
            self.follow_mtu_for_long();
        }
        let is_up = !self.is_link_down();
        let before = batch.len();
        if batch.packets().iter().any(Packet::is_part) {
            let mut sent = self.send_parts(batch.packets(), is_up, &mut result).into_iter();
            batch.recycle_if(pool, |_| sent.next() == Some(true));
        } else {
            batch.recycle_if(pool, |packet| self.send(packet, is_up, &mut result));
        }
        result.map(|()| Transmitted { sent: before - batch.len(), refused: batch.len() })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if self.unsent { self.kick() } else { Ok(()) }
    }

    fn in_flight(&mut self) -> usize {
        self.ring.unsent()
    }

    fn remark(&self) -> Option<String> {
        let name = self.name.as_str();
        let stamps = match (&self.stamped, &self.unstamped) {
            (Some(stamped), _) => {
                format!("; frames have the stamps of the device, by its clock {}", stamped.device.clock())
            }
            (None, Some(reason)) => {
                format!("; frames have the kernel's stamps, not those of the device: {reason}")
            }
            (None, None) => String::new(),
        };
        Some(format!(
            "{name} stays with the kernel's own stack too; xdp:{name} is faster and takes it{stamps}"
        ))
    }

    fn is_link_down(&self) -> bool {
        self.down_at.is_some()
    }

    fn takes_length(&self, length: usize) -> bool {
        lengths(self.max_send).contains(&length)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.ring.descriptor())
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        self.missed.set(self.missed.get() + self.ring.take_missed());
        PortStatistics { rx_missed: self.missed.get(), ..self.statistics }
    }
}
