//! Where the headers of a frame are, and the tests of each primitive.

use super::program::{Field, Test, Width};
use super::tree::Node;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The type of Ethernet of each.
pub(super) const IP: u32 = 0x0800;
pub(super) const IP6: u32 = 0x86dd;
pub(super) const ARP: u32 = 0x0806;
pub(super) const RARP: u32 = 0x8035;
const MPLS: u32 = 0x8847;
const VLANS: [u32; 3] = [0x8100, 0x88a8, 0x9100];

/// The next header of IPv6 that says that a packet is a fragment.
const FRAGMENT: u32 = 44;

pub(super) const TCP: u32 = 6;
pub(super) const UDP: u32 = 17;
pub(super) const SCTP: u32 = 132;

/// Which end of a packet is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Direction {
    Source,
    Destination,
    #[default]
    Either,
    Both,
}

impl Direction {
    /// A test of the source and one of the destination as one.
    fn of(self, source: Node, destination: Node) -> Node {
        match self {
            Direction::Source => source,
            Direction::Destination => destination,
            Direction::Either => source.or(destination),
            Direction::Both => source.and(destination),
        }
    }
}

/// Where the headers are, after the tags and labels that the expression has asked for so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers {
    /// The type of Ethernet.
    type_at: u32,
    /// What comes after it.
    payload: u32,
    labels: u32,
}

impl Layers {
    /// A frame without tags.
    pub(super) fn new() -> Layers {
        Layers { type_at: 12, payload: 14, labels: 0 }
    }

    pub(super) fn payload(self) -> u32 {
        self.payload
    }

    /// One more VLAN tag, with that number if one is given.
    pub(super) fn vlan(&mut self, number: Option<u32>) -> Result<Node, String> {
        if self.labels > 0 {
            return Err("there is no `vlan` after `mpls`".to_owned());
        }
        let mut node = Node::Any(VLANS.map(|tag| Node::is(self.type_at, Width::Half, tag)).to_vec());
        if let Some(number) = number {
            if number > 0xfff {
                return Err(format!("the number of a VLAN is at most 4095, not {number}"));
            }
            node = node.and(Node::masked(self.payload, Width::Half, 0xfff, number));
        }
        self.type_at += 4;
        self.payload += 4;
        Ok(node)
    }

    /// One more MPLS label, with that number if one is given.
    pub(super) fn mpls(&mut self, number: Option<u32>) -> Result<Node, String> {
        let mut node = match self.labels {
            0 => Node::is(self.type_at, Width::Half, MPLS),
            // The label before is not the last one.
            _ => Node::masked(self.payload - 2, Width::Byte, 1, 0),
        };
        if let Some(number) = number {
            if number > 0xf_ffff {
                return Err(format!("an MPLS label is at most {}, not {number}", 0xf_ffff));
            }
            node = node.and(Node::masked(self.payload, Width::Word, 0xffff_f000, number << 12));
        }
        self.labels += 1;
        self.payload += 4;
        Ok(node)
    }

    /// What Ethernet carries. After labels it is told by the first bits of the packet.
    pub(super) fn ether_type(self, number: u32) -> Result<Node, String> {
        if self.labels == 0 {
            return Ok(Node::is(self.type_at, Width::Half, number));
        }
        let version = match number {
            IP => 0x40,
            IP6 => 0x60,
            _ => return Err("after `mpls` there are `ip` and `ip6` only".to_owned()),
        };
        let is_last = Node::masked(self.payload - 2, Width::Byte, 1, 1);
        Ok(is_last.and(Node::masked(self.payload, Width::Byte, 0xf0, version)))
    }

    /// What IPv4 carries.
    pub(super) fn of_ip(self, protocol: u32) -> Result<Node, String> {
        Ok(self.ether_type(IP)?.and(Node::is(self.payload + 9, Width::Byte, protocol)))
    }

    /// What IPv6 carries, also in a fragment.
    pub(super) fn of_ip6(self, protocol: u32) -> Result<Node, String> {
        let next = |at, protocol| Node::is(self.payload + at, Width::Byte, protocol);
        let in_fragment = next(6, FRAGMENT).and(next(40, protocol));
        Ok(self.ether_type(IP6)?.and(next(6, protocol).or(in_fragment)))
    }

    /// What IP carries, of either version.
    pub(super) fn of_any_ip(self, protocol: u32) -> Result<Node, String> {
        Ok(self.of_ip(protocol)?.or(self.of_ip6(protocol)?))
    }

    /// Not a fragment after the first one.
    pub(super) fn is_first(self) -> Node {
        Node::masked(self.payload + 6, Width::Half, 0x1fff, 0)
    }

    /// Addresses of IPv4 within a prefix, of IPv4 itself or of ARP.
    pub(super) fn v4(
        self,
        ether_type: u32,
        direction: Direction,
        (address, mask): (Ipv4Addr, u32),
    ) -> Result<Node, String> {
        let (source, destination) = if ether_type == IP { (12, 16) } else { (14, 24) };
        let is = |at| Node::masked(self.payload + at, Width::Word, mask, address.into());
        Ok(self.ether_type(ether_type)?.and(direction.of(is(source), is(destination))))
    }

    /// The same wherever an address of IPv4 can be.
    pub(super) fn v4_anywhere(self, direction: Direction, network: (Ipv4Addr, u32)) -> Result<Node, String> {
        let mut node = self.v4(IP, direction, network)?;
        if self.labels == 0 {
            node = node.or(self.v4(ARP, direction, network)?).or(self.v4(RARP, direction, network)?);
        }
        Ok(node)
    }

    /// Addresses of IPv6 within a prefix.
    pub(super) fn v6(self, direction: Direction, address: Ipv6Addr, length: u32) -> Result<Node, String> {
        let octets = address.octets();
        let is = |start: u32| {
            let words = octets.chunks_exact(4).zip(0u32..).filter(|(_, at)| at * 32 < length);
            let words = words.map(|(word, at)| {
                let bits = (length - at * 32).min(32);
                let mask = (!0u32).checked_shl(32 - bits).unwrap_or(0);
                let value = word.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
                Node::masked(self.payload + start + at * 4, Width::Word, mask, value)
            });
            let words: Vec<Node> = words.collect();
            if words.is_empty() { Node::Always(true) } else { Node::All(words) }
        };
        Ok(self.ether_type(IP6)?.and(direction.of(is(8), is(24))))
    }

    /// Ports between two numbers, of these protocols.
    pub(super) fn ports(
        self,
        protocols: &[u32],
        direction: Direction,
        (low, high): (u32, u32),
    ) -> Result<Node, String> {
        let of = |at: u32, header: Option<u16>| {
            let field = Field { at, header, width: Width::Half, mask: !0 };
            match low == high {
                true => Node::Field(field, Test::Equal, low),
                false => {
                    Node::Field(field, Test::AtLeast, low).and(Node::Field(field, Test::Above, high).not())
                }
            }
        };
        let any = |at: u32| {
            let is = protocols.iter().map(|protocol| Node::is(at, Width::Byte, *protocol));
            Node::Any(is.collect())
        };
        let payload = self.payload;
        // Tags and labels are few: an expression has at most 4096 bytes.
        let header = Some(payload as u16);
        let v6 = direction.of(of(payload + 40, None), of(payload + 42, None));
        let v6 = self.ether_type(IP6)?.and(any(payload + 6)).and(v6);
        let v4 = direction.of(of(payload, header), of(payload + 2, header));
        let v4 = self.ether_type(IP)?.and(any(payload + 9)).and(self.is_first()).and(v4);
        Ok(v6.or(v4))
    }

    /// Hardware addresses.
    pub(super) fn ether(self, direction: Direction, address: [u8; 6]) -> Node {
        let [a, b, c, d, e, f] = address.map(u32::from);
        let is = |at| {
            let low = Node::is(at + 2, Width::Word, c << 24 | d << 16 | e << 8 | f);
            low.and(Node::is(at, Width::Half, a << 8 | b))
        };
        direction.of(is(6), is(0))
    }
}
