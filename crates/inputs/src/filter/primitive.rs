//! Primitives: qualifiers and a value, or a keyword alone.

use super::layers::{ARP, Direction, IP, IP6, Layers, RARP, SCTP, TCP, UDP};
use super::parser::{Parsed, Parser};
use super::program::{Test, Width};
use super::tree::Node;
use super::words::Kind;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Protocols over IP by name, and whether they are of both versions of it.
const PROTOCOLS: [(&str, u32, bool); 11] = [
    ("icmp", 1, false),
    ("igmp", 2, false),
    ("igrp", 9, false),
    ("vrrp", 112, false),
    ("carp", 112, false),
    ("tcp", TCP, true),
    ("udp", UDP, true),
    ("sctp", SCTP, true),
    ("pim", 103, true),
    ("esp", 50, true),
    ("ah", 51, true),
];

/// Services that have a name here: no file of the machine is asked, so that an expression means the same everywhere.
const SERVICES: [(&str, u32); 16] = [
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("ntp", 123),
    ("snmp", 161),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("syslog", 514),
    ("radius", 1812),
];

/// What pcap-filter(7) has and a switch has not.
const REFUSED: [(&str, &str); 12] = [
    ("gateway", "names are not looked up"),
    ("protochain", "its program would have a loop"),
    ("inbound", "a chain has one direction already"),
    ("outbound", "a chain has one direction already"),
    ("ifname", "a chain has one port"),
    ("pppoes", "only Ethernet, VLAN, MPLS and IP are known"),
    ("pppoed", "only Ethernet, VLAN, MPLS and IP are known"),
    ("geneve", "only Ethernet, VLAN, MPLS and IP are known"),
    ("vxlan", "only Ethernet, VLAN, MPLS and IP are known"),
    ("wlan", "frames are those of Ethernet"),
    ("llc", "only frames with a type of Ethernet are known"),
    ("iso", "only frames with a type of Ethernet are known"),
];

pub(super) fn protocol(name: &str) -> Option<u32> {
    PROTOCOLS.iter().find(|(known, ..)| *known == name).map(|(_, number, _)| *number)
}

/// The protocol of a qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Any,
    Ether,
    Type(u32),
    /// Over IP; the second is whether it is over both versions.
    Over(u32, bool),
    Icmp6,
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    Host,
    Net,
    Port,
    Ports,
    Protocol,
}

/// What stands before a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Qualifiers {
    of: Of,
    direction: Direction,
    kind: Kinds,
    /// Whether the kind is written.
    is_said: bool,
}

/// A value, and how many words it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u32),
    Dotted(Ipv4Addr, u32),
    /// With the length of a prefix.
    V4Prefix(Ipv4Addr, u32, u32),
    /// With a mask.
    V4Mask(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr),
    V6Prefix(Ipv6Addr, u32),
    Mac([u8; 6]),
    Span(u32, u32),
    Name(String),
}

impl Value {
    /// The value that comes next, if one does.
    pub(super) fn next(parser: &Parser<'_>) -> Option<Value> {
        let (sign, after) = (&parser.ahead(1).kind, &parser.ahead(2).kind);
        let length = match (sign, after) {
            (Kind::Sign("/"), Kind::Number(length)) => Some(*length),
            _ => None,
        };
        Some(match (&parser.word().kind, length) {
            (Kind::Number(number), Some(length)) if *number < 256 => {
                Value::V4Prefix(Ipv4Addr::from(number << 24), 1, length)
            }
            (Kind::Number(number), _) => Value::Number(*number),
            (Kind::Dotted(address, parts), Some(length)) => Value::V4Prefix(*address, *parts, length),
            (Kind::Dotted(address, parts), None) => match (parser.name_ahead(1), after) {
                (Some("mask"), Kind::Dotted(mask, 4)) => Value::V4Mask(*address, *mask),
                _ => Value::Dotted(*address, *parts),
            },
            (Kind::V6(address), Some(length)) => Value::V6Prefix(*address, length),
            (Kind::V6(address), None) => Value::V6(*address),
            (Kind::Mac(mac), _) => Value::Mac(*mac),
            (Kind::Span(low, high), _) => Value::Span(*low, *high),
            (Kind::Name { name, is_escaped }, _) if *is_escaped || !is_keyword(name) => {
                Value::Name(name.clone())
            }
            _ => return None,
        })
    }

    pub(super) fn words(&self) -> usize {
        match self {
            Value::V4Prefix(..) | Value::V4Mask(..) | Value::V6Prefix(..) => 3,
            _ => 1,
        }
    }
}

const KEYWORDS: [&str; 33] = [
    "and",
    "or",
    "not",
    "src",
    "dst",
    "host",
    "net",
    "port",
    "portrange",
    "proto",
    "ether",
    "ip",
    "ip6",
    "arp",
    "rarp",
    "icmp6",
    "vlan",
    "mpls",
    "broadcast",
    "multicast",
    "less",
    "greater",
    "len",
    "mask",
    "gateway",
    "protochain",
    "inbound",
    "outbound",
    "ifname",
    "pppoes",
    "geneve",
    "wlan",
    "llc",
];

fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name) || protocol(name).is_some()
}

/// The qualifiers that come next, or the whole primitive where no value follows. Neither where no primitive begins.
pub(super) fn primitive(parser: &mut Parser<'_>) -> Parsed<(Option<Qualifiers>, Option<Node>)> {
    let start = parser.word().at.start;
    let Some(name) = parser.name().map(str::to_owned) else { return Ok((None, None)) };
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(parser.wrong(format!("there is no `{name}`: {reason}")));
    }
    if let Some(node) = alone(parser, &name)? {
        return Ok((None, Some(node)));
    }
    let of = match name.as_str() {
        "ether" => Some(Of::Ether),
        "ip" => Some(Of::Type(IP)),
        "ip6" => Some(Of::Type(IP6)),
        "arp" => Some(Of::Type(ARP)),
        "rarp" => Some(Of::Type(RARP)),
        "icmp6" => Some(Of::Icmp6),
        name => PROTOCOLS
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, number, both)| Of::Over(*number, *both)),
    };
    if of.is_some() {
        parser.advance();
    }
    let direction = direction(parser)?;
    let kind = match parser.name() {
        Some("host") => Some(Kinds::Host),
        Some("net") => Some(Kinds::Net),
        Some("port") => Some(Kinds::Port),
        Some("portrange") => Some(Kinds::Ports),
        Some("proto") if direction.is_none() => Some(Kinds::Protocol),
        _ => None,
    };
    if kind.is_some() {
        parser.advance();
    }
    let layers = parser.layers;
    if let (Some(of), None, None) = (of, direction, kind) {
        let node = match (of, parser.name()) {
            (Of::Ether, Some("broadcast")) => Ok(Some(layers.ether(Direction::Destination, [0xff; 6]))),
            (Of::Ether, Some("multicast")) => Ok(Some(Node::masked(0, Width::Byte, 1, 1))),
            (Of::Type(IP), Some("multicast")) => layers
                .ether_type(IP)
                .map(|is| Some(is.and(Node::masked(layers.payload() + 16, Width::Byte, 0xf0, 0xe0)))),
            (Of::Type(IP6), Some("multicast")) => layers
                .ether_type(IP6)
                .map(|is| Some(is.and(Node::is(layers.payload() + 24, Width::Byte, 0xff)))),
            (_, Some("broadcast" | "multicast")) => Err("it has none of that".to_owned()),
            _ => Ok(None),
        };
        if let Some(node) = node.map_err(|message| parser.wrong_since(start, message))? {
            parser.advance();
            return Ok((None, Some(node)));
        }
        return match of.alone(layers) {
            Ok(node) => Ok((None, Some(node))),
            Err(message) => Err(parser.wrong_since(start, message)),
        };
    }
    if (of, direction, kind) == (None, None, None) {
        return match is_keyword(&name) {
            true => Ok((None, None)),
            false => Err(parser.wrong(format!("`{name}` is no primitive; names of hosts are not looked up"))),
        };
    }
    let qualifiers = Qualifiers {
        of: of.unwrap_or(Of::Any),
        direction: direction.unwrap_or_default(),
        kind: kind.unwrap_or(Kinds::Host),
        is_said: kind.is_some(),
    };
    Ok((Some(qualifiers), None))
}

/// Primitives that are a keyword, perhaps with a number.
fn alone(parser: &mut Parser<'_>, name: &str) -> Parsed<Option<Node>> {
    let start = parser.word().at.start;
    let number = match parser.ahead(1).kind {
        Kind::Number(number) => Some(number),
        _ => None,
    };
    let node = match (name, number) {
        ("vlan", number) => parser.layers.vlan(number),
        ("mpls", number) => parser.layers.mpls(number),
        ("less", Some(number)) => Ok(Node::Length(Test::Above, number).not()),
        ("greater", Some(number)) => Ok(Node::Length(Test::AtLeast, number)),
        ("less" | "greater", None) => {
            parser.advance();
            return Err(parser.wrong("a number of bytes was expected"));
        }
        ("broadcast", _) => Ok(parser.layers.ether(Direction::Destination, [0xff; 6])),
        ("multicast", _) => Ok(Node::masked(0, Width::Byte, 1, 1)),
        _ => return Ok(None),
    };
    parser.advance();
    if number.is_some() && !name.ends_with("cast") {
        parser.advance();
    }
    node.map(Some).map_err(|message| parser.wrong_since(start, message))
}

/// `src`, `dst`, `src or dst`, `src and dst`.
fn direction(parser: &mut Parser<'_>) -> Parsed<Option<Direction>> {
    let (one, other, direction) = match parser.name() {
        Some("src") => ("src", "dst", Direction::Source),
        Some("dst") => ("dst", "src", Direction::Destination),
        _ => return Ok(None),
    };
    debug_assert_eq!(parser.name(), Some(one));
    parser.advance();
    let is_pair = parser.name_ahead(1) == Some(other);
    let both = match parser.name() {
        Some("or") if is_pair => Direction::Either,
        Some("and") if is_pair => Direction::Both,
        _ => return Ok(Some(direction)),
    };
    parser.advance();
    parser.advance();
    Ok(Some(both))
}

impl Of {
    /// The protocol as a primitive.
    fn alone(self, layers: Layers) -> Result<Node, String> {
        match self {
            Of::Any | Of::Ether => {
                Err("`ether` needs `host`, `src`, `dst`, `proto`, `broadcast` or `multicast`".to_owned())
            }
            Of::Type(number) => layers.ether_type(number),
            Of::Over(number, true) => layers.of_any_ip(number),
            Of::Over(number, false) => layers.of_ip(number),
            Of::Icmp6 => layers.of_ip6(58),
        }
    }
}

impl Qualifiers {
    /// What follows.
    pub(super) fn expected(self) -> &'static str {
        match (self.kind, self.of) {
            (Kinds::Host, Of::Ether) => "a hardware address",
            (Kinds::Host, _) => "an address",
            (Kinds::Net, _) => "a prefix, as 10.0.0.0/8",
            (Kinds::Port, _) => "the number of a port",
            (Kinds::Ports, _) => "two numbers of ports, as 1024-2047",
            (Kinds::Protocol, _) => "the number of a protocol, or its name after a backslash",
        }
    }

    /// The test that a primitive is.
    pub(super) fn of(self, layers: Layers, value: &Value) -> Result<Node, String> {
        match self.kind {
            Kinds::Host => self.host(layers, value),
            Kinds::Net => self.net(layers, value),
            Kinds::Port | Kinds::Ports => self.ports(layers, value),
            Kinds::Protocol => self.protocol(layers, value),
        }
    }

    fn wrong<T>(self) -> Result<T, String> {
        Err(format!("{} was expected", self.expected()))
    }

    fn host(self, layers: Layers, value: &Value) -> Result<Node, String> {
        match (self.of, value) {
            (Of::Ether, Value::Mac(mac)) => Ok(layers.ether(self.direction, *mac)),
            (_, Value::Mac(_)) => Err("a hardware address needs `ether`, as in `ether host`".to_owned()),
            (_, Value::Dotted(address, 4)) => self.v4(layers, (*address, !0)),
            (_, Value::V6(address)) => self.v6(layers, *address, 128),
            (_, Value::Name(name)) => {
                Err(format!("`{name}` is no address; names of hosts are not looked up"))
            }
            (_, Value::V4Prefix(..) | Value::V6Prefix(..) | Value::V4Mask(..)) if !self.is_said => {
                Err("a prefix needs `net`".to_owned())
            }
            _ => self.wrong(),
        }
    }

    fn net(self, layers: Layers, value: &Value) -> Result<Node, String> {
        let mask = |length: u32| (!0u32).checked_shl(32 - length.min(32)).unwrap_or(0);
        let checked = |address: Ipv4Addr, mask: u32| match u32::from(address) & !mask {
            0 => self.v4(layers, (address, mask)),
            _ => Err(format!("{address} has bits beyond its prefix")),
        };
        match value {
            Value::V4Prefix(address, _, length) if *length <= 32 => checked(*address, mask(*length)),
            Value::V4Mask(address, mask) => checked(*address, (*mask).into()),
            Value::Dotted(address, parts) => checked(*address, mask(8 * parts)),
            Value::Number(number) if *number < 256 => checked(Ipv4Addr::from(number << 24), mask(8)),
            Value::V6Prefix(address, length) if *length <= 128 => {
                let beyond = u128::from(*address) & !(!0u128).checked_shl(128 - length).unwrap_or(0);
                match beyond {
                    0 => self.v6(layers, *address, *length),
                    _ => Err(format!("{address} has bits beyond its prefix")),
                }
            }
            Value::V4Prefix(..) => Err("a prefix of IPv4 has at most 32 bits".to_owned()),
            Value::V6Prefix(..) => Err("a prefix of IPv6 has at most 128 bits".to_owned()),
            Value::V6(address) => self.v6(layers, *address, 128),
            _ => self.wrong(),
        }
    }

    fn v4(self, layers: Layers, network: (Ipv4Addr, u32)) -> Result<Node, String> {
        match self.of {
            Of::Any => layers.v4_anywhere(self.direction, network),
            Of::Type(of @ (IP | ARP | RARP)) => layers.v4(of, self.direction, network),
            _ => Err("an address of IPv4 has `ip`, `arp` or `rarp` before it, or nothing".to_owned()),
        }
    }

    fn v6(self, layers: Layers, address: Ipv6Addr, length: u32) -> Result<Node, String> {
        match self.of {
            Of::Any | Of::Type(IP6) => layers.v6(self.direction, address, length),
            _ => Err("an address of IPv6 has `ip6` before it, or nothing".to_owned()),
        }
    }

    fn ports(self, layers: Layers, value: &Value) -> Result<Node, String> {
        let is_range = self.kind == Kinds::Ports;
        let (low, high) = match value {
            Value::Number(port) => (*port, *port),
            Value::Span(low, high) if is_range => (*low.min(high), *low.max(high)),
            Value::Name(name) => match SERVICES.iter().find(|(known, _)| known == name) {
                Some((_, port)) => (*port, *port),
                None => return Err(format!("`{name}` is no service that is known here; give its number")),
            },
            _ => return self.wrong(),
        };
        if high > 65535 {
            return Err(format!("a port is at most 65535, not {high}"));
        }
        match self.of {
            Of::Any => layers.ports(&[TCP, UDP, SCTP], self.direction, (low, high)),
            Of::Over(of @ (TCP | UDP | SCTP), _) => layers.ports(&[of], self.direction, (low, high)),
            _ => Err("ports are of `tcp`, `udp` or `sctp`".to_owned()),
        }
    }

    fn protocol(self, layers: Layers, value: &Value) -> Result<Node, String> {
        let of_ether = [("ip", IP), ("ip6", IP6), ("arp", ARP), ("rarp", RARP)];
        let number = match (value, self.of) {
            (Value::Number(number), _) => *number,
            (Value::Name(name), Of::Ether) => match of_ether.into_iter().find(|(known, _)| known == name) {
                Some((_, number)) => number,
                None => {
                    return Err(format!(
                        "`{name}` is no type of Ethernet that is known here; give its number"
                    ));
                }
            },
            (Value::Name(name), _) => match protocol(name).or((name == "icmp6").then_some(58)) {
                Some(number) => number,
                None => return Err(format!("`{name}` is no protocol that is known here; give its number")),
            },
            _ => return self.wrong(),
        };
        match self.of {
            Of::Ether if number <= 1500 => {
                Err("types of Ethernet are above 1500; LLC is not known".to_owned())
            }
            Of::Ether if number > 65535 => Err("types of Ethernet are at most 65535".to_owned()),
            Of::Ether => layers.ether_type(number),
            _ if number > 255 => Err("protocols of IP are at most 255".to_owned()),
            Of::Type(IP) => layers.of_ip(number),
            Of::Type(IP6) => layers.of_ip6(number),
            Of::Any => layers.of_any_ip(number),
            _ => Err("`proto` is of `ether`, `ip` or `ip6`".to_owned()),
        }
    }
}
