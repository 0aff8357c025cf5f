//! The `packet` driver: a Linux interface through a packet socket with mapped rings.
//!
//! Frames are read from and written to memory shared with the kernel; a system call is needed only to send a round of
//! frames and while nothing arrives. The interface is promiscuous as long as the port is open; frames that this machine
//! itself sends through it are not received.
//!
//! No offload has to be switched off on either side. What a local sender left to the hardware is finished here: begun
//! checksums, segmentation of TCP and UDP (also undone: frames that the interface merged), and a VLAN tag kept aside is
//! put back. A frame that cannot be restored counts as an error ([`PortStatistics::rx_errors`]).

mod offload;
mod ring;
#[cfg(test)]
mod tests;

use crate::link::LinkName;
use crate::packet::{MAX_FRAME, Packet};
use crate::pool::{Batch, PacketPool};
use crate::port::{Port, PortError, PortStatistics, Received, TimeSource, Transmitted};
use offload::{HEADER_LEN, Offload, Segmentation};
use ring::{Arrival, RingSocket};
use std::cell::Cell;
use std::io;
use std::os::fd::RawFd;

/// Longest frame before segmentation. The kernel makes 64 KiB unless an operator asks for more.
const MAX_WHOLE: usize = 256 * 1024;

/// An Ethernet header, which the kernel wants on every frame that it sends.
const ETHERNET_HEADER: usize = 14;
const VLAN_TAG: usize = 4;

/// A port over a Linux interface.
pub struct PacketPort {
    name: LinkName,
    index: i32,
    ring: RingSocket,
    /// Longest frame that the link takes.
    max_send: usize,
    /// Frames are in the sending ring that the kernel was not yet asked for, or did not take.
    unsent: bool,
    /// The frame that is being cut into segments; its bytes are in `whole`.
    cutting: Option<Cutting>,
    /// An offload header and a frame that outgrew its slot or is being cut.
    whole: Box<[u8]>,
    statistics: PortStatistics,
    missed: Cell<u64>,
}

struct Cutting {
    plan: Segmentation,
    length: usize,
    vlan: Option<(u16, u16)>,
    timestamp_ns: u64,
}

/// What became of a frame at the head of the ring.
enum Taken {
    Packet,
    Cutting(Cutting),
    Error,
}

impl PacketPort {
    /// Opens a port on an interface. An interface that is down is fine, and works as soon as it is up.
    ///
    /// # Errors
    /// [`PortError`]: no such interface, or not allowed.
    pub fn open(name: &str) -> Result<PacketPort, PortError> {
        let name = LinkName::new("packet", name)?;
        let refused =
            |what: &str, error| PortError::system(format!("{what} interface {}", name.as_str()), error);
        let mtu = name.mtu().map_err(|error| refused("find", error))?;
        let index = name.index().map_err(|error| refused("find", error))?;
        let ring = RingSocket::open(&name, mtu).map_err(|(what, error)| refused(what, error))?;
        Ok(PacketPort {
            max_send: (mtu + ETHERNET_HEADER + VLAN_TAG).min(ring.max_send()),
            name,
            index,
            ring,
            unsent: false,
            cutting: None,
            whole: vec![0; HEADER_LEN + MAX_WHOLE].into(),
            statistics: PortStatistics::default(),
            missed: Cell::new(0),
        })
    }

    /// Moves the frame at the head of the ring into the packet, or into `whole` if it is to be cut.
    fn take(&mut self, arrival: &Arrival, packet: &mut Packet) -> Taken {
        let (offload, length) = if arrival.is_queued {
            let Ok(received) = self.ring.receive_large(&mut self.whole) else { return Taken::Error };
            let Some((header, _)) = self.whole.split_first_chunk() else { return Taken::Error };
            if received < HEADER_LEN || received > self.whole.len() {
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
            // Fits: a slot is smaller than `whole`.
            let length = frame.len();
            self.whole[HEADER_LEN..HEADER_LEN + length].copy_from_slice(frame);
            (offload, length)
        };
        let frame = &self.whole[HEADER_LEN..HEADER_LEN + length];
        if !offload.is_segmented() {
            let set = packet.set_frame(frame).is_ok();
            return finish(packet, set, &offload, arrival.vlan);
        }
        match Segmentation::plan(&offload, frame) {
            Some(plan) => Taken::Cutting(Cutting {
                plan,
                length,
                vlan: arrival.vlan,
                timestamp_ns: arrival.timestamp_ns,
            }),
            None => Taken::Error,
        }
    }

    /// Moves segments of the frame that is being cut into the batch. Returns false when batch or pool ended first.
    fn cut(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> bool {
        let Some(cutting) = &mut self.cutting else { return true };
        let frame = &self.whole[HEADER_LEN..HEADER_LEN + cutting.length];
        while let Some(length) = cutting.plan.next_len() {
            if batch.is_full() {
                return false;
            }
            let Some(mut packet) = pool.take() else { return false };
            let written = length <= MAX_FRAME
                && packet.extend(length).is_ok_and(|segment| cutting.plan.write_next(frame, segment))
                && cutting.vlan.is_none_or(|tag| insert_vlan(&mut packet, tag));
            if !written {
                self.statistics.rx_errors += 1;
                pool.put(packet);
                break;
            }
            packet.timestamp_ns = cutting.timestamp_ns;
            deliver(packet, batch, pool, &mut self.statistics);
        }
        self.cutting = None;
        true
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

    /// The link went down, which is no error, or away, which is.
    fn check_link(&self) -> Result<(), PortError> {
        match self.name.index() {
            Ok(index) if index == self.index => Ok(()),
            Ok(_) => Err(self.error("use", io::Error::from_raw_os_error(libc::ENODEV))),
            Err(error) => Err(self.error("use", error)),
        }
    }

    fn error(&self, what: &str, error: io::Error) -> PortError {
        PortError::system(format!("{what} interface {}", self.name.as_str()), error)
    }
}

fn finish(packet: &mut Packet, set: bool, offload: &Offload, vlan: Option<(u16, u16)>) -> Taken {
    let finished =
        set && offload.finish_checksum(packet.data_mut()) && vlan.is_none_or(|tag| insert_vlan(packet, tag));
    if finished { Taken::Packet } else { Taken::Error }
}

/// Puts a VLAN tag behind the addresses. Returns false when there are none or the frame is too long already.
fn insert_vlan(packet: &mut Packet, (tpid, tci): (u16, u16)) -> bool {
    const ADDRESSES: usize = 12;
    if packet.len() < ADDRESSES || packet.push(VLAN_TAG).is_err() {
        return false;
    }
    let frame = packet.data_mut();
    frame.copy_within(VLAN_TAG..VLAN_TAG + ADDRESSES, 0);
    frame[ADDRESSES..ADDRESSES + 2].copy_from_slice(&tpid.to_be_bytes());
    frame[ADDRESSES + 2..ADDRESSES + 4].copy_from_slice(&tci.to_be_bytes());
    true
}

fn deliver(packet: Packet, batch: &mut Batch, pool: &mut PacketPool, statistics: &mut PortStatistics) {
    let length = packet.len() as u64;
    match batch.push(packet) {
        Ok(_) => {
            statistics.rx_packets += 1;
            statistics.rx_bytes += length;
        }
        Err(packet) => pool.put(packet),
    }
}

impl Port for PacketPort {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        loop {
            if !self.cut(batch, pool) {
                return Ok(Received::More);
            }
            let Some(arrival) = self.ring.arrival() else { break };
            if batch.is_full() {
                return Ok(Received::More);
            }
            let Some(mut packet) = pool.take() else { return Ok(Received::More) };
            let taken = self.take(&arrival, &mut packet);
            self.ring.release();
            match taken {
                Taken::Packet => {
                    packet.timestamp_ns = arrival.timestamp_ns;
                    deliver(packet, batch, pool, &mut self.statistics);
                }
                Taken::Cutting(cutting) => {
                    self.cutting = Some(cutting);
                    pool.put(packet);
                }
                Taken::Error => {
                    self.statistics.rx_errors += 1;
                    pool.put(packet);
                }
            }
        }
        if self.unsent {
            self.kick()?;
        }
        match self.ring.take_error() {
            None => {}
            Some(error) if error.raw_os_error() == Some(libc::ENETDOWN) => self.check_link()?,
            Some(error) => return Err(self.error("receive from", error)),
        }
        Ok(Received::Idle)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let before = batch.len();
        let mut result = Ok(());
        batch.recycle_if(pool, |packet| {
            let fits = (ETHERNET_HEADER..=self.max_send).contains(&packet.len());
            let mut sent = fits && self.ring.enqueue(packet.data());
            if fits && !sent && result.is_ok() {
                // The ring is full: the kernel frees slots while it sends.
                result = self.kick();
                sent = result.is_ok() && self.ring.enqueue(packet.data());
            }
            if sent {
                self.unsent = true;
                self.statistics.tx_packets += 1;
                self.statistics.tx_bytes += packet.len() as u64;
            } else {
                self.statistics.tx_refused += 1;
            }
            sent
        });
        result.map(|()| Transmitted { sent: before - batch.len(), refused: batch.len() })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if self.unsent { self.kick() } else { Ok(()) }
    }

    fn in_flight(&mut self) -> usize {
        self.ring.unsent()
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
