//! Which worker a frame goes to, where a device does not say: a hash of the fields that name its flow.
//!
//! The hash is made of the outermost headers, read here and not by the program: the program decides only once a worker has the
//! frame. Frames of one flow have one hash in all cases: a later fragment has no ports, so no fragment's ports count.

use std::fmt;
use std::str::FromStr;

/// What frames are told apart by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Addresses, protocol and ports, the same for both directions of a flow; addresses of Ethernet where there is no IP.
    #[default]
    Symmetric,
    /// As `Symmetric`, of what a tunnel carries: the packet inside GTP-U, VXLAN, GRE or IP in IP.
    Tunnel,
    /// The virtual link of ARINC 664 part 7: the last 16 bits of the destination address.
    VirtualLink,
    /// Nothing: all frames of a port go to the leading worker.
    Port,
}

impl Spread {
    /// All of them, with their names.
    pub const ALL: [(Spread, &str); 4] = [
        (Spread::Symmetric, "symmetric"),
        (Spread::Tunnel, "tunnel"),
        (Spread::VirtualLink, "vl"),
        (Spread::Port, "port"),
    ];

    /// The hash of a frame.
    pub fn hash(self, frame: &[u8]) -> u32 {
        match self {
            Spread::Symmetric => network(frame, 0),
            Spread::Tunnel => network(frame, MAX_TUNNELS),
            Spread::VirtualLink => frame.get(4..6).map_or(0, |id| mixed(u64::from(number(id)))),
            Spread::Port => 0,
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Spread::ALL[*self as usize];
        f.write_str(name)
    }
}

impl FromStr for Spread {
    type Err = String;

    fn from_str(text: &str) -> Result<Spread, String> {
        let named = Spread::ALL.iter().find(|(_, name)| *name == text);
        named.map(|(spread, _)| *spread).ok_or_else(|| {
            let names = Spread::ALL.map(|(_, name)| name).join(", ");
            format!("frames are not spread by `{text}` ({names})")
        })
    }
}

/// Most tunnels that are looked into, one inside the other.
const MAX_TUNNELS: usize = 2;
/// Most VLAN tags that are passed over.
const MAX_TAGS: usize = 2;

pub(crate) const ETHERTYPE_IPV4: u32 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u32 = 0x86dd;
const TRANSPARENT_ETHERNET: u32 = 0x6558;
const TCP: u8 = 6;
const UDP: u8 = 17;
const GRE: u8 = 47;
const SCTP: u8 = 132;
const GTP_U: u32 = 2152;
const VXLAN: u32 = 4789;

/// The hash of an Ethernet frame, looking into so many tunnels.
fn network(frame: &[u8], tunnels: usize) -> u32 {
    let Some((kind, at)) = payload(frame) else { return 0 };
    packet(kind, &frame[at..], tunnels).unwrap_or_else(|| {
        let (to, from) = frame[..12].split_at(6);
        mixed(long(to).wrapping_add(long(from)))
    })
}

/// The type of what an Ethernet frame carries after its tags, and where that begins; none for less than a header.
pub(crate) fn payload(frame: &[u8]) -> Option<(u32, usize)> {
    let (mut kind, mut at) = (number(frame.get(12..14)?), 14);
    for _ in 0..MAX_TAGS {
        if !matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
            break;
        }
        let Some(tag) = frame.get(at..at + 4) else { break };
        (kind, at) = (number(&tag[2..]), at + 4);
    }
    Some((kind, at))
}

/// The hash of an IP packet; none for anything else.
fn packet(kind: u32, packet: &[u8], tunnels: usize) -> Option<u32> {
    let (from, to, protocol, rest) = match kind {
        ETHERTYPE_IPV4 => {
            let header = packet.get(..20)?;
            let length = usize::from(header[0] & 0xf) * 4;
            let is_fragment = number(&header[6..8]) & 0x3fff != 0;
            let rest = if is_fragment { &[] } else { packet.get(length..)? };
            (long(&header[12..16]), long(&header[16..20]), header[9], rest)
        }
        ETHERTYPE_IPV6 => {
            let header = packet.get(..40)?;
            let address =
                |at: usize| long(&header[at..at + 8]).rotate_left(23) ^ long(&header[at + 8..at + 16]);
            // Extension headers, those of fragments among them, are no ports.
            (address(8), address(24), header[6], &packet[40..])
        }
        _ => return None,
    };
    if tunnels > 0
        && let Some(hash) = inside(protocol, rest, tunnels - 1)
    {
        return Some(hash);
    }
    // Sums, so that both directions have the same.
    let ports = match (protocol, rest.get(..4)) {
        (TCP | UDP | SCTP, Some(ports)) => u64::from(number(&ports[..2]) + number(&ports[2..])),
        _ => 0,
    };
    Some(mixed(from.wrapping_add(to) ^ ports << 40 ^ u64::from(protocol) << 32))
}

/// The hash of what a tunnel carries.
fn inside(protocol: u8, packet: &[u8], tunnels: usize) -> Option<u32> {
    match protocol {
        4 => self::packet(ETHERTYPE_IPV4, packet, tunnels),
        41 => self::packet(ETHERTYPE_IPV6, packet, tunnels),
        GRE => {
            let header = packet.get(..4)?;
            // Checksum, key and sequence number take four bytes each where their flags are set.
            let length = 4 + 4 * (header[0] & 0xb0).count_ones() as usize;
            match number(&header[2..]) {
                TRANSPARENT_ETHERNET => Some(network(packet.get(length..)?, tunnels)),
                kind => self::packet(kind, packet.get(length..)?, tunnels),
            }
        }
        UDP => match number(packet.get(2..4)?) {
            VXLAN => Some(network(packet.get(16..)?, tunnels)),
            GTP_U => {
                let header = packet.get(8..16)?;
                let is_data = header[1] == 255;
                let has_options = header[0] & 7 != 0;
                let mut at = if has_options { 20 } else { 16 };
                // Extension headers: a length in units of four bytes first, the type of the next last.
                let mut next = if header[0] & 4 != 0 { *packet.get(19)? } else { 0 };
                for _ in 0..4 {
                    if next == 0 {
                        break;
                    }
                    let length = usize::from(*packet.get(at)?) * 4;
                    at += length.max(4);
                    next = *packet.get(at - 1)?;
                }
                let carried = packet.get(at..).filter(|_| is_data)?;
                let kind = if carried.first()? >> 4 == 6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 };
                self::packet(kind, carried, tunnels)
            }
            _ => None,
        },
        _ => None,
    }
}

/// A big-endian number of two bytes, or of fewer.
#[inline]
fn number(bytes: &[u8]) -> u32 {
    match bytes {
        [high, low, ..] => u16::from_be_bytes([*high, *low]).into(),
        [only] => u32::from(*only),
        [] => 0,
    }
}

/// A big-endian number of up to eight bytes.
#[inline]
fn long(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
        (Some(eight), _) => u64::from_be_bytes(*eight),
        (None, Some(four)) if bytes.len() == 4 => u32::from_be_bytes(*four).into(),
        _ => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// A number whose bits depend on all bits of another (the finaliser of MurmurHash3): flows whose addresses follow one another are
/// spread evenly.
fn mixed(mut number: u64) -> u32 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^= number >> 33;
    number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (number >> 32) as u32
}
