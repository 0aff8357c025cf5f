//! The sending side of an end system: messages of ports to frames on both lines.

use crate::address::{Addressing, EndSystemId, VlId};
use crate::config::{ConfigError, EndSystemConfig, MAX_PORTS, TransmitVl};
use crate::echo::{EchoRequest, reply};
use crate::faults::Faults;
use crate::frame::{
    Envelope, FCS_BYTES, MAX_MESSAGE, Message, Protocol, UdpEnd, compose, compose_packet, frames_of_packet,
    udp_datagram, unfragmented,
};
use crate::limits::{LimitError, within};
use crate::misbehaviour::Misbehaviour;
use crate::multiplexer::{Departure, LineCounters};
use crate::ports::{PortKind, TransmitPort};
use crate::regulator::{Regulator, RegulatorCounters};
use crate::scheduler::{Network, Released, Scheduler};
use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A frame that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Transmission<'a> {
    /// The line that it leaves by.
    pub network: Network,
    /// The VL whose regulator has released it.
    pub vl: VlId,
    /// Its bytes, without FCS.
    pub frame: &'a [u8],
    /// When it was released.
    pub released_ns: u64,
    /// When its first bit leaves.
    pub start_ns: u64,
}

/// Why a message is not sent. Each is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no such port.
    NoPort,
    /// The port has no destination, or has one already.
    Destination,
    /// It is longer than the port may send.
    TooLong {
        /// So many bytes.
        length: usize,
        /// Most that are allowed.
        limit: usize,
    },
    /// Its frames do not fit the queue of the sub-VL.
    QueueFull {
        /// So many frames.
        frames: usize,
        /// There is room for so many.
        room: usize,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::NoPort => f.write_str("there is no such port"),
            SendError::Destination => {
                f.write_str("a SAP port needs a destination with each message, and the others have theirs")
            }
            SendError::TooLong { length, limit } => {
                write!(f, "the message has {length} bytes: at most {limit} are allowed")
            }
            SendError::QueueFull { frames, room } => {
                write!(f, "the message is {frames} frames: the queue has room for {room}")
            }
        }
    }
}

impl std::error::Error for SendError {}

/// What happened at a port that sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Messages sent.
    pub messages: u64,
    /// Messages refused because they were too long.
    pub refused_long: u64,
    /// Messages refused because their frames did not fit the queue.
    pub refused_full: u64,
    /// Messages refused because of their destination.
    pub refused_destination: u64,
}

/// The sending side.
#[derive(Debug)]
pub struct Transmitter {
    es: EndSystemId,
    addressing: Addressing,
    scheduler: Scheduler<Arc<[u8]>>,
    vls: Vec<TransmitVl>,
    by_id: HashMap<VlId, usize>,
    /// Of the next message of each VL: what its fragments are found by.
    identifications: Vec<u16>,
    ports: Vec<(TransmitPort, SendCounters)>,
    faults: Faults,
    /// The frame that leaves.
    scratch: Vec<u8>,
}

impl Transmitter {
    pub(crate) fn new(config: &EndSystemConfig, jitter_ns: u64) -> Result<Transmitter, LimitError> {
        let mut scheduler = Scheduler::new(config.rates, jitter_ns);
        for vl in &config.transmits {
            scheduler.add(Regulator::new(vl.bag, vl.sub_vls, vl.queue_frames)?, vl.networks);
        }
        Ok(Transmitter {
            es: config.id,
            addressing: config.addressing,
            scheduler,
            vls: config.transmits.clone(),
            by_id: config.transmits.iter().enumerate().map(|(index, vl)| (vl.id, index)).collect(),
            identifications: vec![0; config.transmits.len()],
            ports: Vec::new(),
            faults: Faults::default(),
            scratch: Vec::new(),
        })
    }

    /// Adds a port; its number.
    ///
    /// # Errors
    /// [`ConfigError`] when its VL is not sent, its destination is missing, or there are [`MAX_PORTS`] already.
    pub fn add_port(&mut self, port: TransmitPort) -> Result<usize, ConfigError> {
        within("the number of ports that send", self.ports.len() as u64 + 1, (0, MAX_PORTS as u64), "")?;
        let vl = self.by_id.get(&port.vl).map(|index| &self.vls[*index]);
        if vl.is_none_or(|vl| port.sub_vl >= vl.sub_vls) {
            return Err(ConfigError::PortVl(port.vl));
        }
        if (port.kind == PortKind::Sap) == port.destination.is_some() {
            return Err(ConfigError::PortDestination(port.vl, port.kind));
        }
        self.ports.push((port, SendCounters::default()));
        Ok(self.ports.len() - 1)
    }

    /// Sends a message from a sampling or queuing port.
    ///
    /// # Errors
    /// [`SendError`]; then nothing of it is sent.
    pub fn send(&mut self, now_ns: u64, port: usize, data: &[u8]) -> Result<(), SendError> {
        let Some((known, counters)) = self.ports.get_mut(port) else { return Err(SendError::NoPort) };
        let Some((ip, udp)) = known.destination else {
            counters.refused_destination += 1;
            return Err(SendError::Destination);
        };
        let ip = ip.unwrap_or_else(|| self.addressing.multicast_ip(known.vl));
        self.enqueue(now_ns, port, UdpEnd { ip, port: udp }, data)
    }

    /// Sends a message from a SAP port to an address.
    ///
    /// # Errors
    /// [`SendError`]; then nothing of it is sent.
    pub fn send_to(
        &mut self,
        now_ns: u64,
        port: usize,
        destination: UdpEnd,
        data: &[u8],
    ) -> Result<(), SendError> {
        let Some((known, counters)) = self.ports.get_mut(port) else { return Err(SendError::NoPort) };
        if known.kind != PortKind::Sap {
            counters.refused_destination += 1;
            return Err(SendError::Destination);
        }
        self.enqueue(now_ns, port, destination, data)
    }

    /// Replies to an echo request, by the virtual link and the partition of a SAP port.
    ///
    /// # Errors
    /// [`SendError`]; then nothing of it is sent.
    pub fn answer_echo(&mut self, now_ns: u64, port: usize, request: &EchoRequest) -> Result<(), SendError> {
        let Some((known, counters)) = self.ports.get_mut(port) else { return Err(SendError::NoPort) };
        if known.kind != PortKind::Sap {
            counters.refused_destination += 1;
            return Err(SendError::Destination);
        }
        let source = self.addressing.source_ip(self.es, known.partition);
        let message = reply(&request.data);
        self.enqueue_packet(now_ns, port, (source, request.source, Protocol::Icmp), &message)
    }

    fn enqueue(
        &mut self,
        now_ns: u64,
        port: usize,
        destination: UdpEnd,
        data: &[u8],
    ) -> Result<(), SendError> {
        let (known, counters) = &mut self.ports[port];
        let limit = match known.kind {
            PortKind::Sampling => unfragmented(self.vls[self.by_id[&known.vl]].lmax),
            PortKind::Queuing | PortKind::Sap => MAX_MESSAGE,
        };
        if data.len() > limit {
            counters.refused_long += 1;
            return Err(SendError::TooLong { length: data.len(), limit });
        }
        let source =
            UdpEnd { ip: self.addressing.source_ip(self.es, known.partition), port: known.source_port };
        let datagram = udp_datagram(source, destination, data);
        self.enqueue_packet(now_ns, port, (source.ip, destination.ip, Protocol::Udp), &datagram)
    }

    /// Puts an IP packet into the queue of a port's sub-VL, as one frame or as fragments; all of it or nothing.
    fn enqueue_packet(
        &mut self,
        now_ns: u64,
        port: usize,
        (source, destination, protocol): (Ipv4Addr, Ipv4Addr, Protocol),
        carried: &[u8],
    ) -> Result<(), SendError> {
        let (known, counters) = &mut self.ports[port];
        let index = self.by_id[&known.vl];
        let vl = &self.vls[index];
        let (frames, room) =
            (frames_of_packet(carried.len(), vl.lmax), self.scheduler.room(index, known.sub_vl));
        if frames > room {
            counters.refused_full += 1;
            return Err(SendError::QueueFull { frames, room });
        }
        let envelope = Envelope {
            destination_mac: self.addressing.destination_mac(vl.id),
            source,
            destination,
            protocol,
            identification: self.identifications[index],
        };
        self.identifications[index] = self.identifications[index].wrapping_add(1);
        for frame in compose_packet(&envelope, carried, (vl.lmin, vl.lmax)) {
            let length = (frame.len() + FCS_BYTES) as u64;
            // There is room: that was asked for.
            let _ = self.scheduler.offer(now_ns, index, known.sub_vl, length, frame.into());
        }
        counters.messages += 1;
        Ok(())
    }

    /// When something can leave next; a time that has passed means at once. None while nothing waits.
    pub fn next_ns(&self) -> Option<u64> {
        self.scheduler.next_ns().into_iter().chain(self.faults.next_ns()).min()
    }

    /// Has what can leave at this time leave: at most one frame of each line.
    pub fn step(&mut self, now_ns: u64, mut leaves: impl FnMut(Transmission<'_>)) {
        self.babble(now_ns);
        let Transmitter { es, addressing, scheduler, vls, faults, scratch, by_id, .. } = self;
        scheduler.step(now_ns, |line, departure| {
            let Departure { frame: released, released_ns, start_ns, .. } = departure;
            let Released { vl: index, number, serial, frame } = released;
            scratch.clear();
            scratch.extend_from_slice(&frame);
            scratch[6..12].copy_from_slice(&addressing.source_mac(*es, line));
            if let Some(last) = scratch.last_mut() {
                *last = number;
            }
            let vl = &vls[index];
            let network = if faults.is_none() {
                line
            } else {
                faults.apply(vl, serial, line, scratch, |other| by_id.contains_key(&other))
            };
            leaves(Transmission { network, vl: vl.id, frame: scratch, released_ns, start_ns });
        });
    }

    /// Tells that a frame of a VL really left at this time ([`Scheduler::departed`]).
    pub fn departed(&mut self, vl: VlId, at_ns: u64) {
        if let Some(&index) = self.by_id.get(&vl) {
            self.scheduler.departed(index, at_ns);
        }
    }

    /// Has the end system misbehave from this time on; it stops to babble at another one.
    ///
    /// # Errors
    /// [`ConfigError`] when a VL is not one of those that are sent, or there are too many faults.
    pub fn misbehave(
        &mut self,
        (from_ns, until_ns): (u64, u64),
        seed: u64,
        faults: &[Misbehaviour],
    ) -> Result<(), ConfigError> {
        if let Some(unknown) = faults.iter().find(|fault| !self.by_id.contains_key(&fault.vl)) {
            return Err(ConfigError::FaultVl(unknown.vl));
        }
        self.faults = Faults::new((from_ns, until_ns), seed, faults)?;
        Ok(())
    }

    /// Gives frames of babbling VLs to the lines.
    fn babble(&mut self, now_ns: u64) {
        while let Some(vl) = self.faults.babbles(now_ns) {
            let index = self.by_id[&vl];
            let known = self.ports.iter().map(|(port, _)| port).find(|port| port.vl == vl);
            let ends = known.map(|port| (port.source_port, port.destination.map_or(0, |(_, udp)| udp)));
            let (source, destination) = ends.unwrap_or_default();
            let partition = known.map(|port| port.partition).unwrap_or_default();
            let lmax = self.vls[index].lmax;
            let data = vec![0; self.faults.babble_length(unfragmented(lmax))];
            let message = Message {
                destination_mac: self.addressing.destination_mac(vl),
                source: UdpEnd { ip: self.addressing.source_ip(self.es, partition), port: source },
                destination: UdpEnd { ip: self.addressing.multicast_ip(vl), port: destination },
                identification: 0,
                data: &data,
            };
            for frame in compose(&message, (self.vls[index].lmin, lmax)) {
                let length = (frame.len() + FCS_BYTES) as u64;
                self.scheduler.babble(now_ns, index, length, frame.into());
            }
        }
    }

    /// A reset of the end system: what waits is lost, and sequence numbers start at 0 again. The number of frames that were lost.
    pub fn reset(&mut self) -> usize {
        self.scheduler.reset()
    }

    /// The VLs that are sent, with what their regulators did.
    pub fn vls(&self) -> impl Iterator<Item = (&TransmitVl, RegulatorCounters)> {
        self.vls.iter().enumerate().map(|(index, vl)| (vl, self.scheduler.vl_counters(index)))
    }

    /// The ports, by their numbers, with what happened there.
    pub fn ports(&self) -> &[(TransmitPort, SendCounters)] {
        &self.ports
    }

    /// What happened on a line.
    pub fn line_counters(&self, network: Network) -> LineCounters {
        self.scheduler.line_counters(network)
    }

    /// The output jitter that the network expects.
    pub fn jitter_ns(&self) -> u64 {
        self.scheduler.jitter_ns()
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.scheduler.waiting()
    }
}
