//! The receiving side of an end system: frames of both networks to messages in ports.
//!
//! The order of the checks is that of the standard: length and destination, then per VL and network the sequence number (integrity),
//! then the copies (redundancy), then IP and UDP or ICMP, then the port. A frame that an earlier check drops is not seen by a later one.

use crate::address::{Addressing, EndSystemId, Partition, VlId};
use crate::config::{ConfigError, EndSystemConfig, MAX_PORTS, ReceiveVl};
use crate::echo::{EchoRequest, Echoes, parse_request};
use crate::frame::{FCS_BYTES, Frame, Protocol, UdpEnd, parse_udp, split};
use crate::integrity::{IntegrityChecker, IntegrityCounters};
use crate::limits::within;
use crate::line::FRAME_LIMITS;
use crate::ports::{Inbox, PortCounters, PortFault, ReceivePort, ReceivedMessage, Sample};
use crate::reassembly::Reassembler;
use crate::redundancy::{Redundancy, RedundancyCounters, RedundancyManager};
use crate::scheduler::Network;
use crate::verdict::{Discard, DiscardCounters, Verdict};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// What came of a VL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Frames of its destination address, by network.
    pub frames: [u64; 2],
    /// Their bytes with FCS, by network.
    pub bytes: [u64; 2],
    /// What integrity checking said, by network.
    pub integrity: [IntegrityCounters; 2],
    /// What redundancy management said.
    pub redundancy: RedundancyCounters,
    /// Messages that were given up since fragments did not come.
    pub abandoned: u64,
    /// Frames that went no further, by reason.
    pub discards: DiscardCounters,
}

/// A VL with its state.
#[derive(Debug)]
struct Vl {
    config: ReceiveVl,
    checkers: [IntegrityChecker; 2],
    manager: RedundancyManager,
    reassembler: Reassembler,
    counters: ReceiveCounters,
}

/// The receiving side.
#[derive(Debug)]
pub struct Receiver {
    es: EndSystemId,
    addressing: Addressing,
    checks_interface: bool,
    /// Echo requests that wait for their replies; none: they are not taken.
    echoes: Option<Echoes>,
    vls: Vec<Vl>,
    by_id: HashMap<VlId, usize>,
    inboxes: Vec<Inbox>,
    by_address: HashMap<(VlId, Ipv4Addr, u16), usize>,
    frames: [u64; 2],
    /// Of all frames, those of no VL too.
    discards: DiscardCounters,
}

impl Receiver {
    pub(crate) fn new(config: &EndSystemConfig) -> Receiver {
        let vl = |config: &ReceiveVl| Vl {
            config: config.clone(),
            checkers: Default::default(),
            manager: RedundancyManager::default(),
            reassembler: Reassembler::new(config.bag.ns()),
            counters: ReceiveCounters::default(),
        };
        Receiver {
            es: config.id,
            addressing: config.addressing,
            checks_interface: config.checks_interface,
            echoes: config.answers_echo.then(Echoes::default),
            vls: config.receives.iter().map(vl).collect(),
            by_id: config.receives.iter().enumerate().map(|(index, vl)| (vl.id, index)).collect(),
            inboxes: Vec::new(),
            by_address: HashMap::new(),
            frames: [0; 2],
            discards: DiscardCounters::default(),
        }
    }

    /// Adds a port; its number.
    ///
    /// # Errors
    /// [`ConfigError`] when its VL is not received, another port has its address, or there are [`MAX_PORTS`] already.
    pub fn add_port(&mut self, port: ReceivePort) -> Result<usize, ConfigError> {
        within("the number of ports that receive", self.inboxes.len() as u64 + 1, (0, MAX_PORTS as u64), "")?;
        port.check().map_err(|error| ConfigError::Vl(port.vl, error))?;
        if !self.by_id.contains_key(&port.vl) {
            return Err(ConfigError::PortVl(port.vl));
        }
        let ip = port.ip.unwrap_or_else(|| self.addressing.multicast_ip(port.vl));
        let key = (port.vl, ip, port.port);
        if self.by_address.contains_key(&key) {
            return Err(ConfigError::PortTwice(port.vl, port.port));
        }
        let number = self.inboxes.len();
        self.by_address.insert(key, number);
        self.inboxes.push(Inbox::new(port));
        Ok(number)
    }

    /// Receives a frame, without FCS, that came by this network at this time.
    pub fn receive(&mut self, now_ns: u64, network: Network, frame: &[u8]) -> Verdict {
        self.frames[network.index()] += 1;
        let vl = self.vl_of(frame);
        let verdict = match vl {
            Ok((vl, frame)) => self.of_vl(now_ns, network, vl, &frame),
            Err(discard) => Err(discard),
        };
        match verdict {
            Ok(verdict) => verdict,
            Err(discard) => {
                self.discards.count(discard);
                if let Ok((vl, _)) = vl {
                    self.vls[vl].counters.discards.count(discard);
                }
                Verdict::Dropped(discard)
            }
        }
    }

    /// The VL of a frame, and its parts.
    fn vl_of<'f>(&self, frame: &'f [u8]) -> Result<(usize, FrameParts<'f>), Discard> {
        let length = (frame.len() + FCS_BYTES) as u64;
        if length < FRAME_LIMITS.0 {
            return Err(Discard::Short);
        }
        if length > FRAME_LIMITS.1 {
            return Err(Discard::Long);
        }
        let frame = split(frame).ok_or(Discard::Short)?;
        let id = self.addressing.vl_of(frame.destination).ok_or(Discard::Destination)?;
        let vl = *self.by_id.get(&id).ok_or(Discard::UnknownVl)?;
        Ok((vl, FrameParts { length, frame }))
    }

    fn of_vl(
        &mut self,
        now_ns: u64,
        network: Network,
        index: usize,
        parts: &FrameParts<'_>,
    ) -> Result<Verdict, Discard> {
        let from = self.addressing.network_of(parts.frame.source);
        let vl = &mut self.vls[index];
        vl.counters.frames[network.index()] += 1;
        vl.counters.bytes[network.index()] += parts.length;
        if !vl.config.networks.has(network) {
            return Err(Discard::Network);
        }
        if self.checks_interface && from != Some(network) {
            return Err(Discard::Interface);
        }
        if parts.length > vl.config.lmax {
            return Err(Discard::Lmax);
        }
        vl.check(now_ns, network, parts.frame.number)?;
        let ip = parts.frame.ip()?;
        if ip.protocol == Protocol::Icmp && self.echoes.is_none() {
            return Err(Discard::Protocol);
        }
        let whole;
        let data = if ip.offset == 0 && !ip.more {
            ip.data
        } else {
            whole = vl.reassembler.add(now_ns, &ip)?;
            match &whole {
                Some(datagram) => datagram,
                None => return Ok(Verdict::Fragment),
            }
        };
        match ip.protocol {
            Protocol::Udp => self.deliver(now_ns, index, ip.source, ip.destination, data),
            Protocol::Icmp => self.echo(now_ns, index, ip.source, ip.destination, data),
        }
    }

    /// An echo request for the end system itself waits for its reply.
    fn echo(
        &mut self,
        now_ns: u64,
        vl: usize,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        message: &[u8],
    ) -> Result<Verdict, Discard> {
        let data = parse_request(message)?;
        let vl = self.vls[vl].config.id;
        let own =
            [self.addressing.source_ip(self.es, Partition::default()), self.addressing.multicast_ip(vl)];
        if !own.contains(&destination) {
            return Err(Discard::EchoAddress);
        }
        let echoes = self.echoes.as_mut().ok_or(Discard::Protocol)?;
        match echoes.put(EchoRequest { at_ns: now_ns, vl, source, data: data.to_vec() }) {
            true => Ok(Verdict::Echo),
            false => Err(Discard::EchoFull),
        }
    }

    fn deliver(
        &mut self,
        now_ns: u64,
        vl: usize,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        datagram: &[u8],
    ) -> Result<Verdict, Discard> {
        let (source, destination, data) = parse_udp(source, destination, datagram)?;
        let UdpEnd { ip, port } = destination;
        let number = *self.by_address.get(&(self.vls[vl].config.id, ip, port)).ok_or(Discard::NoPort)?;
        let message = ReceivedMessage { at_ns: now_ns, source, data: data.to_vec() };
        self.inboxes[number].put(message).map_err(|fault| match fault {
            PortFault::Full => Discard::PortFull,
            PortFault::Long => Discard::PortLong,
        })?;
        Ok(Verdict::Delivered(number))
    }

    /// What a sampling port has; none before the first message.
    pub fn sample(&mut self, now_ns: u64, port: usize) -> Option<Sample<'_>> {
        self.inboxes.get_mut(port)?.sample(now_ns)
    }

    /// The next message of a queuing or SAP port.
    pub fn take(&mut self, port: usize) -> Option<ReceivedMessage> {
        self.inboxes.get_mut(port)?.take()
    }

    /// The next echo request that waits for its reply.
    pub fn take_echo(&mut self) -> Option<EchoRequest> {
        self.echoes.as_mut()?.take()
    }

    /// A reset of the receiver: ports are empty, and any number is valid as the first.
    pub fn reset(&mut self) {
        for vl in &mut self.vls {
            vl.checkers.iter_mut().for_each(IntegrityChecker::reset);
            vl.manager.reset();
            vl.reassembler.reset();
        }
        self.inboxes.iter_mut().for_each(Inbox::clear);
        self.echoes.iter_mut().for_each(Echoes::clear);
    }

    /// Frames that came, by network.
    pub fn frames(&self) -> [u64; 2] {
        self.frames
    }

    /// Frames that went no further, by reason.
    pub fn discards(&self) -> DiscardCounters {
        self.discards
    }

    /// The VLs that are received, with what came of them.
    pub fn vls(&self) -> impl Iterator<Item = (&ReceiveVl, ReceiveCounters)> {
        self.vls.iter().map(|vl| (&vl.config, vl.counters()))
    }

    /// The ports, by their numbers, with what happened there.
    pub fn ports(&self) -> impl Iterator<Item = (&ReceivePort, PortCounters)> {
        self.inboxes.iter().map(|inbox| (inbox.port(), inbox.counters()))
    }
}

/// A frame with its length, FCS included.
#[derive(Clone, Copy)]
struct FrameParts<'f> {
    length: u64,
    frame: Frame<'f>,
}

impl Vl {
    /// Integrity checking and redundancy management.
    fn check(&mut self, now_ns: u64, network: Network, number: u8) -> Result<(), Discard> {
        if let Some(rule) = &self.config.integrity
            && !self.checkers[network.index()].check(rule, number).is_valid()
        {
            return Err(Discard::OutOfWindow);
        }
        let Some(rule) = &self.config.redundancy else { return Ok(()) };
        match self.manager.check(rule, now_ns, number) {
            Redundancy::First => Ok(()),
            Redundancy::Redundant => Err(Discard::Redundant),
            Redundancy::Late => Err(Discard::Late),
        }
    }

    fn counters(&self) -> ReceiveCounters {
        ReceiveCounters {
            integrity: self.checkers.map(|checker| checker.counters()),
            redundancy: self.manager.counters(),
            abandoned: self.reassembler.abandoned(),
            ..self.counters
        }
    }
}
