//! Frames of AFDX: Ethernet, IPv4, UDP, and the sequence number as the last byte before the check sequence.
//!
//! ```text
//!   destination 6  source 6  0x0800  IPv4 20  UDP 8  message 1 to 1471  padding 0 to 16  number 1 | FCS 4
//!   '----------------------- what a driver sends and receives ------------------------------------'
//! ```
//!
//! Lengths count the FCS, as the standard has them; bytes in memory are without it. A message that is longer than a frame of its VL has room
//! for leaves as fragments of one IP packet; only the first has the UDP header.

use crate::address::Mac;
use std::net::Ipv4Addr;

/// Bytes of the check sequence, which a driver neither sends nor receives.
pub const FCS_BYTES: usize = 4;
/// Bytes of a frame before its IP packet.
pub(crate) const ETHERNET_HEADER: usize = 14;
const IP_HEADER: usize = 20;
/// Bytes of a UDP header.
pub const UDP_HEADER: usize = 8;
/// Bytes of a frame that are not the payload of its IP packet: Ethernet and IP headers, number, FCS.
const AROUND_IP_PAYLOAD: usize = ETHERNET_HEADER + IP_HEADER + 1 + FCS_BYTES;
/// Longest message of any port: 8 KiB.
pub const MAX_MESSAGE: usize = 8192;
/// Fragments other than the last are a multiple of so many bytes.
pub(crate) const FRAGMENT_UNIT: usize = 8;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_UDP: u8 = 17;
/// Frames are not routed: one hop.
const TIME_TO_LIVE: u8 = 1;
const MORE_FRAGMENTS: u16 = 0x2000;

/// One end of a UDP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UdpEnd {
    /// The IP address.
    pub ip: Ipv4Addr,
    /// The UDP port.
    pub port: u16,
}

/// A message with its addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    /// The MAC address of its VL.
    pub(crate) destination_mac: Mac,
    /// Where it comes from.
    pub(crate) source: UdpEnd,
    /// Where it goes.
    pub(crate) destination: UdpEnd,
    /// The identification of its IP packet, by which fragments find each other.
    pub(crate) identification: u16,
    /// At most [`MAX_MESSAGE`] bytes.
    pub(crate) data: &'a [u8],
}

/// What an IP packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// Messages of ports.
    Udp,
    /// Echo requests and replies.
    Icmp,
}

impl Protocol {
    fn number(self) -> u8 {
        match self {
            Protocol::Udp => PROTOCOL_UDP,
            Protocol::Icmp => PROTOCOL_ICMP,
        }
    }

    fn of(number: u8) -> Option<Protocol> {
        [Protocol::Udp, Protocol::Icmp].into_iter().find(|protocol| protocol.number() == number)
    }
}

/// An IP packet before it is cut to frames, without what it carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    /// The MAC address of its VL.
    pub(crate) destination_mac: Mac,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) protocol: Protocol,
    /// By which fragments find each other.
    pub(crate) identification: u16,
}

/// The longest message that is one frame of at most `lmax` bytes with FCS.
pub fn unfragmented(lmax: u64) -> usize {
    usize::try_from(lmax).unwrap_or(usize::MAX).saturating_sub(AROUND_IP_PAYLOAD + UDP_HEADER)
}

/// How many frames of at most `lmax` bytes with FCS a message of so many bytes is.
pub fn frames_of(message: usize, lmax: u64) -> usize {
    frames_of_packet(message + UDP_HEADER, lmax)
}

/// How many frames of at most `lmax` bytes with FCS an IP packet with so many bytes after its header is.
pub(crate) fn frames_of_packet(total: usize, lmax: u64) -> usize {
    let room = usize::try_from(lmax).unwrap_or(usize::MAX).saturating_sub(AROUND_IP_PAYLOAD);
    if total <= room {
        return 1;
    }
    let unit = room / FRAGMENT_UNIT * FRAGMENT_UNIT;
    if unit == 0 { usize::MAX } else { (total - room).div_ceil(unit) + 1 }
}

/// Makes the frames of a message, from `lmin` to `lmax` bytes with FCS each; the source MAC address and the number, which are not known
/// yet, are 0.
pub(crate) fn compose(message: &Message<'_>, limits: (u64, u64)) -> Vec<Vec<u8>> {
    let envelope = Envelope {
        destination_mac: message.destination_mac,
        source: message.source.ip,
        destination: message.destination.ip,
        protocol: Protocol::Udp,
        identification: message.identification,
    };
    compose_packet(&envelope, &udp_datagram(message.source, message.destination, message.data), limits)
}

/// Makes the frames of an IP packet that carries these bytes, as [`compose`] does.
pub(crate) fn compose_packet(envelope: &Envelope, carried: &[u8], (lmin, lmax): (u64, u64)) -> Vec<Vec<u8>> {
    let room = usize::try_from(lmax).unwrap_or(usize::MAX).saturating_sub(AROUND_IP_PAYLOAD);
    let shortest = usize::try_from(lmin).unwrap_or(0).saturating_sub(FCS_BYTES + 1);
    let unit = (room / FRAGMENT_UNIT * FRAGMENT_UNIT).max(FRAGMENT_UNIT);
    let mut frames = Vec::new();
    let mut offset = 0;
    loop {
        let rest = &carried[offset..];
        let is_last = rest.len() <= room;
        let part = if is_last { rest } else { &rest[..unit] };
        let mut frame = Vec::with_capacity(ETHERNET_HEADER + IP_HEADER + part.len() + 1);
        frame.extend(envelope.destination_mac);
        frame.extend([0; 6]);
        frame.extend(ETHERTYPE_IPV4);
        frame.extend(ip_header(envelope, part.len(), offset, !is_last));
        frame.extend(part);
        frame.resize(frame.len().max(shortest), 0);
        frame.push(0);
        frames.push(frame);
        offset += part.len();
        if is_last {
            return frames;
        }
    }
}

/// A UDP datagram of at most [`MAX_MESSAGE`] bytes of data.
pub(crate) fn udp_datagram(source: UdpEnd, destination: UdpEnd, data: &[u8]) -> Vec<u8> {
    // At most 8 KiB and 8 bytes.
    let length = (UDP_HEADER + data.len()) as u16;
    let mut udp = Vec::with_capacity(usize::from(length));
    udp.extend(source.port.to_be_bytes());
    udp.extend(destination.port.to_be_bytes());
    udp.extend(length.to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(data);
    let sum = match udp_checksum(source.ip, destination.ip, &udp) {
        // 0 would say that there is none.
        0 => 0xffff,
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    udp
}

fn ip_header(envelope: &Envelope, payload: usize, offset: usize, more: bool) -> [u8; IP_HEADER] {
    let mut header = [0; IP_HEADER];
    header[0] = 0x45;
    // At most 1499; offsets are at most 8200 bytes.
    header[2..4].copy_from_slice(&((IP_HEADER + payload) as u16).to_be_bytes());
    header[4..6].copy_from_slice(&envelope.identification.to_be_bytes());
    let flags = if more { MORE_FRAGMENTS } else { 0 };
    header[6..8].copy_from_slice(&(flags | (offset / FRAGMENT_UNIT) as u16).to_be_bytes());
    header[8] = TIME_TO_LIVE;
    header[9] = envelope.protocol.number();
    header[12..16].copy_from_slice(&envelope.source.octets());
    header[16..20].copy_from_slice(&envelope.destination.octets());
    let sum = !ones_sum(&header, 0);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// The sum of 16-bit words in ones' complement, an odd last byte as the high one (RFC 1071).
pub(crate) fn ones_sum(bytes: &[u8], start: u32) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    // 8 KiB are 4096 words: far from 2^32.
    let mut sum = words.iter().fold(start, |sum, word| sum + u32::from(u16::from_be_bytes(*word)));
    if let [last] = rest {
        sum += u32::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum of a UDP datagram with its pseudo header; 0 when the one in it is right.
fn udp_checksum(source: Ipv4Addr, destination: Ipv4Addr, udp: &[u8]) -> u16 {
    let pseudo = [source.octets(), destination.octets()].concat();
    let start = u32::from(ones_sum(&pseudo, 0)) + u32::from(PROTOCOL_UDP) + udp.len() as u32;
    !ones_sum(udp, start)
}

/// A frame as it comes, without FCS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) destination: Mac,
    pub(crate) source: Mac,
    pub(crate) number: u8,
    /// What is between addresses and number: EtherType, IP packet, padding.
    rest: &'a [u8],
}

/// Takes a frame apart; none below the shortest length.
pub(crate) fn split(frame: &[u8]) -> Option<Frame<'_>> {
    let (&destination, rest) = frame.split_first_chunk::<6>()?;
    let (&source, rest) = rest.split_first_chunk::<6>()?;
    let (&number, rest) = rest.split_last()?;
    Some(Frame { destination, source, number, rest })
}

/// What is wrong with the IP packet or the UDP datagram of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    EtherType,
    IpHeader,
    IpLength,
    IpChecksum,
    Protocol,
    UdpLength,
    UdpChecksum,
    IcmpLength,
    IcmpChecksum,
    IcmpType,
}

/// An IP packet or a fragment of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpPacket<'a> {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) protocol: Protocol,
    pub(crate) identification: u16,
    /// Of its data in the whole packet, in bytes.
    pub(crate) offset: usize,
    pub(crate) more: bool,
    pub(crate) data: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The IP packet; options are skipped.
    pub(crate) fn ip(&self) -> Result<IpPacket<'a>, Malformed> {
        let Some((&ethertype, rest)) = self.rest.split_first_chunk::<2>() else {
            return Err(Malformed::EtherType);
        };
        if ethertype != ETHERTYPE_IPV4 {
            return Err(Malformed::EtherType);
        }
        let Some((header, _)) = rest.split_first_chunk::<IP_HEADER>() else {
            return Err(Malformed::IpHeader);
        };
        let header_bytes = usize::from(header[0] & 0x0f) * 4;
        if header[0] >> 4 != 4 || header_bytes < IP_HEADER {
            return Err(Malformed::IpHeader);
        }
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let total = usize::from(word(2));
        if total < header_bytes || total > rest.len() {
            return Err(Malformed::IpLength);
        }
        if ones_sum(&rest[..header_bytes], 0) != 0xffff {
            return Err(Malformed::IpChecksum);
        }
        let Some(protocol) = Protocol::of(header[9]) else { return Err(Malformed::Protocol) };
        let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        Ok(IpPacket {
            source: address(12),
            destination: address(16),
            protocol,
            identification: word(4),
            offset: usize::from(word(6) & 0x1fff) * FRAGMENT_UNIT,
            more: word(6) & MORE_FRAGMENTS != 0,
            data: &rest[header_bytes..total],
        })
    }
}

/// The ends and the data of a UDP datagram. A checksum of 0 says that there is none.
pub(crate) fn parse_udp(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    udp: &[u8],
) -> Result<(UdpEnd, UdpEnd, &[u8]), Malformed> {
    let Some((header, _)) = udp.split_first_chunk::<UDP_HEADER>() else { return Err(Malformed::UdpLength) };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let length = usize::from(word(4));
    if length < UDP_HEADER || length > udp.len() {
        return Err(Malformed::UdpLength);
    }
    let udp = &udp[..length];
    if word(6) != 0 && udp_checksum(source, destination, udp) != 0 {
        return Err(Malformed::UdpChecksum);
    }
    let ends = (UdpEnd { ip: source, port: word(0) }, UdpEnd { ip: destination, port: word(2) });
    Ok((ends.0, ends.1, &udp[UDP_HEADER..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(data: &[u8]) -> Message<'_> {
        Message {
            destination_mac: [3, 0, 0, 0, 0, 1],
            source: UdpEnd { ip: Ipv4Addr::new(10, 1, 2, 3), port: 1000 },
            destination: UdpEnd { ip: Ipv4Addr::new(224, 224, 0, 1), port: 2000 },
            identification: 0x0102,
            data,
        }
    }

    #[test]
    fn the_shortest_frame_by_hand() {
        let frames = compose(&message(b"AFDX"), (64, 1518));
        let expected: Vec<u8> = [
            &[3, 0, 0, 0, 0, 1][..],
            &[0; 6],
            &[8, 0],
            // 32 bytes; the checksum: 4500+0020+0102+0000+0111+0a01+0203+e0e0+0001 = 13418, 3419, inverted cbe6.
            &[0x45, 0, 0, 32, 1, 2, 0, 0, 1, 17, 0xcb, 0xe6, 10, 1, 2, 3, 224, 224, 0, 1],
            // Pseudo header 0a01+0203+e0e0+0001+0011+000c = ed02, header 03e8+07d0+000c = 0bc4, data 4146+4458 = 859e:
            // 17e64, 7e65, inverted 819a.
            &[0x03, 0xe8, 0x07, 0xd0, 0, 12, 0x81, 0x9a],
            b"AFDX",
            // 13 bytes of padding, the number.
            &[0; 14],
        ]
        .concat();
        assert_eq!(expected.len(), 60);
        assert_eq!(frames, [expected]);
    }

    #[test]
    fn lengths_by_hand() {
        // 1518 - 14 - 20 - 8 - 1 - 4.
        assert_eq!((unfragmented(1518), unfragmented(64), unfragmented(46)), (1471, 17, 0));
        assert_eq!((frames_of(1471, 1518), frames_of(1472, 1518)), (1, 2));
        // 8200 bytes of UDP; 1472 a fragment (a multiple of 8 of 1479), the last up to 1479: 5 * 1472 = 7360, 840 are left.
        assert_eq!(frames_of(8192, 1518), 6);
        // 25 bytes: fragments of 24, the last up to 25. 8200 = 341 * 24 + 16.
        assert_eq!(frames_of(8192, 64), 342);
        let frames = compose(&message(&[7; 1472]), (64, 1518));
        // 39 bytes around 1472, and the last 8 of the UDP datagram in a frame of the least length; without FCS.
        let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1507, 60]);
        // A VL whose shortest frame is longer.
        assert_eq!(compose(&message(&[7; 3]), (200, 300))[0].len(), 196);
    }

    #[test]
    fn what_is_malformed_is_named() {
        let frame = compose(&message(b"AFDX"), (64, 1518)).remove(0);
        let broken = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut frame = frame.clone();
            change(&mut frame);
            let ip = split(&frame).unwrap().ip()?;
            parse_udp(ip.source, ip.destination, ip.data).map(|(_, _, data)| data.to_vec())
        };
        assert_eq!(broken(&|_| {}), Ok(b"AFDX".to_vec()));
        assert_eq!(broken(&|frame| frame[12] = 0x86), Err(Malformed::EtherType));
        assert_eq!(broken(&|frame| frame.truncate(13)), Err(Malformed::EtherType));
        assert_eq!(broken(&|frame| frame[14] = 0x55), Err(Malformed::IpHeader));
        assert_eq!(broken(&|frame| frame[14] = 0x44), Err(Malformed::IpHeader));
        assert_eq!(broken(&|frame| frame.truncate(30)), Err(Malformed::IpHeader));
        assert_eq!(broken(&|frame| frame[17] = 60), Err(Malformed::IpLength));
        assert_eq!(broken(&|frame| frame[17] = 19), Err(Malformed::IpLength));
        assert_eq!(broken(&|frame| frame[24] ^= 1), Err(Malformed::IpChecksum));
        assert_eq!(
            broken(&|frame| {
                (frame[23], frame[25]) = (6, 0xe6 + 11);
            }),
            Err(Malformed::Protocol)
        );
        assert_eq!(broken(&|frame| frame[39] = 13), Err(Malformed::UdpLength));
        assert_eq!(broken(&|frame| frame[39] = 7), Err(Malformed::UdpLength));
        assert_eq!(broken(&|frame| frame[42] ^= 1), Err(Malformed::UdpChecksum));
        assert_eq!(broken(&|frame| (frame[40], frame[41]) = (0, 0)), Ok(b"AFDX".to_vec()));
    }

    proptest! {
        /// Fragments put together by their offsets are the datagram, and no frame is outside of the limits of its VL.
        #[test]
        fn fragments_are_the_message(
            data in prop::collection::vec(any::<u8>(), 0..8193),
            lmax in 64u64..1519,
            lmin in 64u64..1519,
        ) {
            let lmin = lmin.min(lmax);
            let frames = compose(&message(&data), (lmin, lmax));
            prop_assert_eq!(frames.len(), frames_of(data.len(), lmax));
            let mut udp = Vec::new();
            for (index, frame) in frames.iter().enumerate() {
                let length = (frame.len() + FCS_BYTES) as u64;
                prop_assert!((lmin..=lmax).contains(&length), "{}", length);
                let ip = split(frame).unwrap().ip().unwrap();
                prop_assert_eq!(ip.offset, udp.len());
                prop_assert_eq!(ip.more, index + 1 < frames.len());
                udp.extend(ip.data);
            }
            let (source, destination) = (message(&data).source, message(&data).destination);
            let parsed = parse_udp(source.ip, destination.ip, &udp).unwrap();
            prop_assert_eq!(parsed, (source, destination, &data[..]));
        }

        #[test]
        fn no_bytes_make_it_panic(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(Ok(ip)) = split(&frame).map(|frame| frame.ip()) {
                let _ = parse_udp(ip.source, ip.destination, ip.data);
            }
        }
    }
}
