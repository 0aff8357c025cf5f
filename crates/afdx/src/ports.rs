//! Ports: how applications send and receive messages.
//!
//! | kind | sends | receives |
//! | --- | --- | --- |
//! | sampling | messages of one frame | keeps the last message; reading says how old it is, and does not remove it |
//! | queuing | messages of up to 8 KiB, as fragments if need be | keeps so many messages, first in, first out |
//! | SAP (service access point) | as queuing, to the address given with each message | as queuing, with the address of the sender |
//!
//! Both ends know the addresses of a sampling or queuing port from the configuration. A receiving port is found by VL, destination IP address
//! and destination UDP port.

use crate::address::{Partition, VlId};
use crate::frame::{MAX_MESSAGE, UdpEnd};
use crate::limits::{LimitError, within};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Most messages that a receiving port keeps.
pub const MAX_PORT_DEPTH: usize = 1024;

/// Most bytes of messages that a receiving port keeps.
pub const MAX_PORT_BYTES: usize = 1 << 20;

/// A kind of port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortKind {
    /// The last message counts.
    Sampling,
    /// All messages count.
    Queuing,
    /// All messages count, and they may go to and come from anywhere.
    Sap,
}

/// A port that sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransmitPort {
    /// Its kind.
    pub kind: PortKind,
    /// The VL that its messages go by.
    pub vl: VlId,
    /// The sub-VL, from 0.
    pub sub_vl: usize,
    /// The partition that sends, which is part of the source address.
    pub partition: Partition,
    /// The UDP port that it sends from.
    pub source_port: u16,
    /// Where messages go that are sent without an address; none of a SAP port. No IP address means the multicast address of the VL.
    pub destination: Option<(Option<Ipv4Addr>, u16)>,
}

/// A port that receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivePort {
    /// Its kind.
    pub kind: PortKind,
    /// The VL that its messages come by.
    pub vl: VlId,
    /// The IP address that they are for; none means the multicast address of the VL.
    pub ip: Option<Ipv4Addr>,
    /// The UDP port that they are for.
    pub port: u16,
    /// Messages that it keeps; a sampling port keeps one.
    pub depth: usize,
    /// The longest message in bytes.
    pub max_message: usize,
}

impl ReceivePort {
    /// Whether its sizes are within the limits.
    pub(crate) fn check(&self) -> Result<(), LimitError> {
        within("the depth of a port", self.depth as u64, (1, MAX_PORT_DEPTH as u64), "messages")?;
        let longest = (1, MAX_MESSAGE as u64);
        within("the longest message of a port", self.max_message as u64, longest, "bytes")?;
        Ok(())
    }
}

/// A message as a port has received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// When its last frame came, in nanoseconds.
    pub at_ns: u64,
    /// Who sent it.
    pub source: UdpEnd,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// What a sampling port has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// How old the message is, in nanoseconds.
    pub age_ns: u64,
    /// The message.
    pub message: &'a ReceivedMessage,
}

/// What happened at a receiving port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Messages that were put into it.
    pub messages: u64,
    /// Of a sampling port: messages that took the place of one that nobody had read.
    pub overwritten: u64,
    /// Messages dropped because it was full.
    pub dropped_full: u64,
    /// Messages dropped because they were longer than it takes.
    pub dropped_long: u64,
}

/// Why a port does not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortFault {
    Full,
    Long,
}

/// A receiving port with its messages.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    port: ReceivePort,
    messages: VecDeque<ReceivedMessage>,
    bytes: usize,
    was_read: bool,
    counters: PortCounters,
}

impl Inbox {
    pub(crate) fn new(port: ReceivePort) -> Inbox {
        Inbox { port, messages: VecDeque::new(), bytes: 0, was_read: true, counters: PortCounters::default() }
    }

    pub(crate) fn put(&mut self, message: ReceivedMessage) -> Result<(), PortFault> {
        if message.data.len() > self.port.max_message {
            self.counters.dropped_long += 1;
            return Err(PortFault::Long);
        }
        if self.port.kind == PortKind::Sampling {
            self.counters.overwritten += u64::from(!self.was_read);
            self.messages.clear();
            self.was_read = false;
        } else {
            if self.messages.len() >= self.port.depth || self.bytes + message.data.len() > MAX_PORT_BYTES {
                self.counters.dropped_full += 1;
                return Err(PortFault::Full);
            }
            self.bytes += message.data.len();
        }
        self.counters.messages += 1;
        self.messages.push_back(message);
        Ok(())
    }

    /// Of a sampling port: the last message, if there was one.
    pub(crate) fn sample(&mut self, now_ns: u64) -> Option<Sample<'_>> {
        if self.port.kind != PortKind::Sampling {
            return None;
        }
        self.was_read = true;
        let message = self.messages.back()?;
        Some(Sample { age_ns: now_ns.saturating_sub(message.at_ns), message })
    }

    /// Of a queuing or SAP port: the next message.
    pub(crate) fn take(&mut self) -> Option<ReceivedMessage> {
        if self.port.kind == PortKind::Sampling {
            return None;
        }
        let message = self.messages.pop_front()?;
        self.bytes -= message.data.len();
        Some(message)
    }

    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
        self.was_read = true;
    }

    pub(crate) fn port(&self) -> &ReceivePort {
        &self.port
    }

    pub(crate) fn counters(&self) -> PortCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(kind: PortKind, depth: usize, max_message: usize) -> Inbox {
        let port = ReceivePort { kind, vl: VlId(1), ip: None, port: 5, depth, max_message };
        port.check().unwrap();
        Inbox::new(port)
    }

    fn message(at_ns: u64, length: usize) -> ReceivedMessage {
        let source = UdpEnd { ip: Ipv4Addr::new(10, 0, 0, 1), port: 7 };
        ReceivedMessage { at_ns, source, data: vec![at_ns as u8; length] }
    }

    #[test]
    fn a_sampling_port_has_the_last_message_and_its_age() {
        let mut port = inbox(PortKind::Sampling, 1, 100);
        assert!(port.sample(0).is_none());
        port.put(message(10, 4)).unwrap();
        port.put(message(20, 5)).unwrap();
        for (now, age) in [(20, 0), (25, 5), (19, 0)] {
            let sample = port.sample(now).unwrap();
            assert_eq!((sample.age_ns, sample.message.data.len()), (age, 5));
        }
        port.put(message(30, 6)).unwrap();
        assert_eq!(port.put(message(40, 101)), Err(PortFault::Long));
        assert!(port.take().is_none());
        // The first was never read; the second was, before the third came.
        let counters = PortCounters { messages: 3, overwritten: 1, dropped_full: 0, dropped_long: 1 };
        assert_eq!(port.counters(), counters);
    }

    #[test]
    fn a_queuing_port_is_first_in_first_out_with_a_limit() {
        let mut port = inbox(PortKind::Queuing, 2, 100);
        port.put(message(1, 1)).unwrap();
        port.put(message(2, 1)).unwrap();
        assert_eq!(port.put(message(3, 1)), Err(PortFault::Full));
        assert_eq!(port.take().unwrap().at_ns, 1);
        port.put(message(4, 1)).unwrap();
        assert_eq!((port.take().unwrap().at_ns, port.take().unwrap().at_ns), (2, 4));
        assert!(port.take().is_none() && port.sample(9).is_none());
        assert_eq!(port.counters().dropped_full, 1);
    }

    #[test]
    fn a_port_keeps_a_mebibyte_at_most() {
        let mut port = inbox(PortKind::Sap, 1024, MAX_MESSAGE);
        let taken = (0..1024).filter(|at| port.put(message(*at, MAX_MESSAGE)).is_ok()).count();
        assert_eq!(taken, 128);
        port.take().unwrap();
        port.put(message(0, MAX_MESSAGE)).unwrap();
        let port = ReceivePort { depth: 1025, ..port.port().clone() };
        let error = port.check().unwrap_err().to_string();
        assert_eq!(error, "the depth of a port is 1025 messages: 1 to 1024 messages is allowed");
    }
}
