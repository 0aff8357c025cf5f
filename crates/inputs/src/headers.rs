//! The addresses, protocol and ports of a frame: what tells flows apart.

/// Most VLAN tags that are looked past.
pub const MAX_TAGS: usize = 4;
/// Most extension headers of IPv6 that are looked past.
pub const MAX_EXTENSIONS: usize = 8;

/// What tells flows apart. Addresses of IPv4 are the first four bytes. A frame without IP has only its type of Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    /// The source address.
    pub source: [u8; 16],
    /// The destination address.
    pub destination: [u8; 16],
    /// The source port of TCP, UDP or SCTP; 0 of others, and of fragments after the first one.
    pub source_port: u16,
    /// The destination port; type and code of ICMP.
    pub destination_port: u16,
    /// The type of Ethernet, after VLAN tags.
    pub ether_type: u16,
    /// The number of the outermost VLAN, 0 without one.
    pub vlan: u16,
    /// What IP carries.
    pub protocol: u8,
    /// 4, 6, or 0 without IP.
    pub version: u8,
}

/// A flow, and what single packets of it say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// The flow.
    pub key: FlowKey,
    /// The flags of TCP.
    pub tcp_flags: u8,
}

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

impl Headers {
    /// Reads a frame. What is cut off counts as not there.
    pub(crate) fn of(frame: &[u8]) -> Headers {
        let mut headers = Headers::default();
        let key = &mut headers.key;
        let mut at = 12;
        for tags in 0..=MAX_TAGS {
            let Some(kind) = half(frame, at) else { return headers };
            key.ether_type = kind;
            at += 2;
            if !TAGS.contains(&kind) || tags == MAX_TAGS {
                break;
            }
            if tags == 0 {
                key.vlan = half(frame, at).unwrap_or(0) & 0xfff;
            }
            at += 2;
        }
        let packet = frame.get(at..).unwrap_or(&[]);
        match key.ether_type {
            0x0800 => headers.read_v4(packet),
            0x86dd => headers.read_v6(packet),
            _ => {}
        }
        headers
    }

    fn read_v4(&mut self, packet: &[u8]) {
        let Some(header) = packet.first_chunk::<20>().filter(|header| header[0] >> 4 == 4) else { return };
        let key = &mut self.key;
        key.version = 4;
        key.protocol = header[9];
        key.source[..4].copy_from_slice(&header[12..16]);
        key.destination[..4].copy_from_slice(&header[16..20]);
        let is_first = (u16::from(header[6]) << 8 | u16::from(header[7])) & 0x1fff == 0;
        if is_first {
            let length = usize::from(header[0] & 15) * 4;
            self.read_ports(packet.get(length.max(20)..).unwrap_or(&[]));
        }
    }

    fn read_v6(&mut self, packet: &[u8]) {
        let Some(header) = packet.first_chunk::<40>().filter(|header| header[0] >> 4 == 6) else { return };
        let key = &mut self.key;
        key.version = 6;
        key.source.copy_from_slice(&header[8..24]);
        key.destination.copy_from_slice(&header[24..40]);
        let (mut next, mut at) = (header[6], 40);
        let mut is_first = true;
        for _ in 0..MAX_EXTENSIONS {
            let Some([following, length]) = packet.get(at..).and_then(|rest| rest.first_chunk::<2>()) else {
                break;
            };
            match next {
                // Hop-by-hop, routing and destination options, all of which say their length in units of eight bytes.
                0 | 43 | 60 => at += (usize::from(*length) + 1) * 8,
                44 => {
                    is_first = half(packet, at + 2).unwrap_or(0) & 0xfff8 == 0;
                    at += 8;
                }
                _ => break,
            }
            next = *following;
            if !is_first {
                break;
            }
        }
        key.protocol = next;
        if is_first {
            self.read_ports(packet.get(at..).unwrap_or(&[]));
        }
    }

    fn read_ports(&mut self, rest: &[u8]) {
        let Some(&[a, b, c, d]) = rest.first_chunk::<4>() else { return };
        let key = &mut self.key;
        match (key.version, key.protocol) {
            (_, 6 | 17 | 132) => {
                key.source_port = u16::from_be_bytes([a, b]);
                key.destination_port = u16::from_be_bytes([c, d]);
            }
            // As IPFIX and NetFlow have it: the type times 256, and the code.
            (4, 1) | (6, 58) => key.destination_port = u16::from_be_bytes([a, b]),
            _ => {}
        }
        if key.protocol == 6 {
            self.tcp_flags = rest.get(13).copied().unwrap_or(0);
        }
    }
}

impl FlowKey {
    /// A number that is the same for both directions of a flow, in every process: what shares flows out.
    pub(crate) fn symmetric_hash(&self) -> u64 {
        let half = |address: &[u8; 16], port: u16| {
            let (words, _) = address.as_chunks::<8>();
            words.iter().fold(u64::from(port), |hash, word| mixed(hash ^ u64::from_le_bytes(*word)))
        };
        let is_port = matches!(self.protocol, 6 | 17 | 132);
        let (from, to) = if is_port { (self.source_port, self.destination_port) } else { (0, 0) };
        let ends = half(&self.source, from).wrapping_add(half(&self.destination, to));
        let kind = if self.version == 0 { self.ether_type } else { 0 };
        mixed(ends ^ u64::from(self.protocol) << 16 ^ u64::from(kind))
    }
}

/// The last step of splitmix64 (Steele, Lea and Flood, 2014): each bit of the input changes half of those of the result.
pub(crate) fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ethernet with a tag, IPv4, TCP.
    fn tcp() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0x20, 100, 8, 0]);
        frame.extend([0x46, 0, 0, 44, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0]);
        frame.extend([0, 80, 0x13, 0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x12, 0, 0, 0, 0, 0, 0]);
        frame
    }

    #[test]
    fn addresses_ports_and_flags_are_read_past_tags_and_options() {
        let Headers { key, tcp_flags } = Headers::of(&tcp());
        assert_eq!((key.version, key.protocol, key.vlan, key.ether_type), (4, 6, 100, 0x800));
        assert_eq!((&key.source[..4], &key.destination[..4]), (&[10, 0, 0, 1][..], &[10, 0, 0, 2][..]));
        assert_eq!((key.source_port, key.destination_port, tcp_flags), (80, 5000, 0x12));
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut frame = tcp();
        frame[18 + 7] = 1;
        let key = Headers::of(&frame).key;
        assert_eq!((key.protocol, key.source_port, key.destination_port), (6, 0, 0));
    }

    #[test]
    fn extension_headers_are_looked_past() {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 0, 64]);
        frame.extend([1; 16]);
        frame.extend([2; 16]);
        frame.extend([44, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([17, 0, 0, 1, 0, 0, 0, 9]);
        frame.extend([0, 53, 0, 99, 0, 8, 0, 0]);
        let key = Headers::of(&frame).key;
        assert_eq!((key.version, key.protocol, key.source_port, key.destination_port), (6, 17, 53, 99));
        frame[12 + 2 + 40 + 8 + 3] = 8;
        assert_eq!(Headers::of(&frame).key.source_port, 0);
    }

    proptest! {
        #[test]
        fn both_directions_have_one_hash(mut key in any::<[u8; 36]>()) {
            let mut frame = tcp();
            frame[30..38].copy_from_slice(&key[..8]);
            frame[42..46].copy_from_slice(&key[8..12]);
            let forth = Headers::of(&frame).key.symmetric_hash();
            key[..8].rotate_left(4);
            key[8..12].rotate_left(2);
            frame[30..38].copy_from_slice(&key[..8]);
            frame[42..46].copy_from_slice(&key[8..12]);
            prop_assert_eq!(forth, Headers::of(&frame).key.symmetric_hash());
        }

        #[test]
        fn no_frame_makes_it_fail(frame in proptest::collection::vec(any::<u8>(), 0..120)) {
            Headers::of(&frame);
        }
    }
}
