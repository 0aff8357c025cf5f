//! What becomes of each frame that an end system receives, with a counter for each reason.

use crate::frame::Malformed;
use crate::reassembly::FragmentFault;
use std::fmt;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its message is in the port of this number.
    Delivered(usize),
    /// It is an echo request, or the last part of one, which waits for its reply.
    Echo,
    /// It is a part of a message whose other parts are still to come.
    Fragment,
    /// It went no further.
    Dropped(Discard),
}

/// Why a frame went no further, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard {
    /// Shorter than 64 bytes with FCS.
    Short,
    /// Longer than 1518 bytes with FCS.
    Long,
    /// The destination is no VL.
    Destination,
    /// The end system receives no such VL.
    UnknownVl,
    /// The VL does not come by this network.
    Network,
    /// The source address is not of an interface to this network.
    Interface,
    /// Longer than the longest frame of its VL.
    Lmax,
    /// The sequence number is not one that may follow.
    OutOfWindow,
    /// Its copy came before: what redundancy is for, and no fault.
    Redundant,
    /// A newer frame came before.
    Late,
    /// It is no IPv4.
    EtherType,
    /// The IP header is wrong.
    IpHeader,
    /// The length of the IP packet is not that of the frame.
    IpLength,
    /// The checksum of the IP header is wrong.
    IpChecksum,
    /// It is neither UDP nor, for an end system that answers echo requests, ICMP.
    Protocol,
    /// A fragment is after the longest message.
    FragmentLong,
    /// A fragment has a length that it cannot have.
    FragmentLength,
    /// A fragment contradicts others.
    FragmentContradiction,
    /// The length of the UDP datagram is wrong.
    UdpLength,
    /// The checksum of the UDP datagram is wrong.
    UdpChecksum,
    /// The ICMP message is too short for an echo request.
    IcmpLength,
    /// The checksum of the ICMP message is wrong.
    IcmpChecksum,
    /// The ICMP message is no echo request.
    IcmpType,
    /// The echo request is for the address of another one.
    EchoAddress,
    /// Too many echo requests wait for their replies.
    EchoFull,
    /// No port receives messages of this VL, IP address and UDP port.
    NoPort,
    /// The message is longer than its port takes.
    PortLong,
    /// The port is full.
    PortFull,
}

impl Discard {
    /// All of them, in the order of the checks.
    pub const ALL: [Discard; 28] = [
        Discard::Short,
        Discard::Long,
        Discard::Destination,
        Discard::UnknownVl,
        Discard::Network,
        Discard::Interface,
        Discard::Lmax,
        Discard::OutOfWindow,
        Discard::Redundant,
        Discard::Late,
        Discard::EtherType,
        Discard::IpHeader,
        Discard::IpLength,
        Discard::IpChecksum,
        Discard::Protocol,
        Discard::FragmentLong,
        Discard::FragmentLength,
        Discard::FragmentContradiction,
        Discard::UdpLength,
        Discard::UdpChecksum,
        Discard::IcmpLength,
        Discard::IcmpChecksum,
        Discard::IcmpType,
        Discard::EchoAddress,
        Discard::EchoFull,
        Discard::NoPort,
        Discard::PortLong,
        Discard::PortFull,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Discard::Short => "short",
            Discard::Long => "long",
            Discard::Destination => "destination",
            Discard::UnknownVl => "unknown-vl",
            Discard::Network => "network",
            Discard::Interface => "interface",
            Discard::Lmax => "lmax",
            Discard::OutOfWindow => "out-of-window",
            Discard::Redundant => "redundant",
            Discard::Late => "late",
            Discard::EtherType => "ethertype",
            Discard::IpHeader => "ip-header",
            Discard::IpLength => "ip-length",
            Discard::IpChecksum => "ip-checksum",
            Discard::Protocol => "protocol",
            Discard::FragmentLong => "fragment-long",
            Discard::FragmentLength => "fragment-length",
            Discard::FragmentContradiction => "fragment-contradiction",
            Discard::UdpLength => "udp-length",
            Discard::UdpChecksum => "udp-checksum",
            Discard::IcmpLength => "icmp-length",
            Discard::IcmpChecksum => "icmp-checksum",
            Discard::IcmpType => "icmp-type",
            Discard::EchoAddress => "echo-address",
            Discard::EchoFull => "echo-full",
            Discard::NoPort => "no-port",
            Discard::PortLong => "port-long",
            Discard::PortFull => "port-full",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Malformed> for Discard {
    fn from(malformed: Malformed) -> Discard {
        match malformed {
            Malformed::EtherType => Discard::EtherType,
            Malformed::IpHeader => Discard::IpHeader,
            Malformed::IpLength => Discard::IpLength,
            Malformed::IpChecksum => Discard::IpChecksum,
            Malformed::Protocol => Discard::Protocol,
            Malformed::UdpLength => Discard::UdpLength,
            Malformed::UdpChecksum => Discard::UdpChecksum,
            Malformed::IcmpLength => Discard::IcmpLength,
            Malformed::IcmpChecksum => Discard::IcmpChecksum,
            Malformed::IcmpType => Discard::IcmpType,
        }
    }
}

impl From<FragmentFault> for Discard {
    fn from(fault: FragmentFault) -> Discard {
        match fault {
            FragmentFault::TooLong => Discard::FragmentLong,
            FragmentFault::Length => Discard::FragmentLength,
            FragmentFault::Contradiction => Discard::FragmentContradiction,
        }
    }
}

/// How many frames of each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardCounters([u64; Discard::ALL.len()]);

impl Default for DiscardCounters {
    fn default() -> DiscardCounters {
        DiscardCounters([0; Discard::ALL.len()])
    }
}

impl DiscardCounters {
    pub(crate) fn count(&mut self, discard: Discard) {
        self.0[discard as usize] += 1;
    }

    /// How many frames for this reason.
    pub fn of(&self, discard: Discard) -> u64 {
        self.0[discard as usize]
    }

    /// Those that there are, in the order of the checks.
    pub fn all(&self) -> impl Iterator<Item = (Discard, u64)> {
        Discard::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// All frames that were dropped.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_and_a_name_of_its_own() {
        let mut counters = DiscardCounters::default();
        for (place, discard) in Discard::ALL.into_iter().enumerate() {
            assert_eq!(place, discard as usize);
            (0..=place).for_each(|_| counters.count(discard));
        }
        assert!(Discard::ALL.into_iter().all(|discard| counters.of(discard) == discard as u64 + 1));
        let mut names: Vec<_> = Discard::ALL.map(Discard::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), counters.total()), (28, 28 * 29 / 2));
    }
}
