//! Parts of a large frame, put together again for a link that takes large ones.
//!
//! A sender on this machine gives TCP in pieces of up to 64 KiB, of which the switch sees the frames of a cable ([`super::Segmentation`]). A receiver
//! on this machine would take each of these through its whole stack. So parts that follow each other leave as one frame, with a header that
//! says how to cut it: a device with a cable does that, a receiver on this machine takes it as it is.
//!
//! Nothing is lost by it: [`join`] takes frames only if cutting what it makes gives the same ones, bit by bit. What is missing, in another order, changed
//! in some parts only, or has a wrong checksum ends a piece. Frames that came one by one are left alone, as whoever sends such frames
//! expects them on the link.

use super::{
    ETHERTYPE_IP4, ETHERTYPE_IP6, GSO_ECN, GSO_TCP4, GSO_TCP6, HEADER_LEN, NEEDS_CHECKSUM, Segmentation,
    TCP_CWR, TCP_FIN_PSH, VLAN_TAG, fold, get, network_header, put, sum,
};
use millrace_frames::{MAX_BATCH, Packet};
use std::io::IoSlice;

/// Bytes before the network header, at most: Ethernet, and two VLAN tags.
const MAX_LINK: usize = 14 + 2 * VLAN_TAG;
const IP6: usize = 40;
const TCP: u8 = 6;
/// Where the checksum lies in the TCP header.
const TCP_CHECKSUM: usize = 16;
/// Flags that only a frame of its own has: urgent data, the ends of a connection.
const TCP_URG_RST_SYN: u8 = 0x26;
/// Most bytes of headers, with the longest ones of IPv4 and TCP.
const MAX_HEADERS: usize = MAX_LINK + 60 + 60;
/// The longest packet: IP says its length in 16 bits.
const MAX_JOINED: usize = u16::MAX as usize;

/// Frames that leave as one.
pub(crate) struct Joined {
    /// How many there are.
    pub(crate) frames: usize,
    /// Bytes of headers with which each of them begins.
    headers: usize,
    /// The offload header and the headers of the large frame.
    start: [u8; HEADER_LEN + MAX_HEADERS],
}

impl Joined {
    /// The large frame after its offload header, in pieces; of the packets that were joined.
    pub(crate) fn pieces<'a>(&'a self, packets: &'a [Packet]) -> ([IoSlice<'a>; MAX_BATCH + 1], usize) {
        let mut pieces = [IoSlice::new(&[]); MAX_BATCH + 1];
        pieces[0] = IoSlice::new(&self.start[..HEADER_LEN + self.headers]);
        for (piece, packet) in pieces[1..].iter_mut().zip(&packets[..self.frames]) {
            *piece = IoSlice::new(&packet.data()[self.headers..]);
        }
        (pieces, 1 + self.frames)
    }
}

/// The first of these packets and those after it that can leave as one frame; none: the first leaves alone.
pub(crate) fn join(packets: &[Packet]) -> Option<Joined> {
    let mut frames = packets.iter().take(MAX_BATCH).take_while(|packet| packet.is_part()).map(Packet::data);
    let first = Part::of(frames.next()?)?;
    let mut last = None;
    let (mut count, mut length) = (1, first.frame.len());
    if !first.may_end(first.frame) {
        for frame in frames {
            let joined = length + frame.len() - first.plan.payload.min(frame.len());
            let is_next = joined - first.plan.network <= MAX_JOINED && first.has_headers_of(count, frame);
            // The sums of the first one are looked at once it has a second.
            let is_first_right =
                || count > 1 || (first.has_headers_of(0, first.frame) && first.is_right(first.frame));
            if !is_next || !is_first_right() || !first.is_right(frame) {
                break;
            }
            (count, length, last) = (count + 1, joined, Some(frame));
            if first.may_end(frame) {
                break;
            }
        }
    }
    last.map(|last| first.joined(count, length, last))
}

/// A frame of TCP that may be the first part of a large one, and how that would be cut.
struct Part<'a> {
    frame: &'a [u8],
    plan: Segmentation,
}

impl Part<'_> {
    fn of(frame: &[u8]) -> Option<Part<'_>> {
        let (network, ip6) = match network_header(frame)? {
            (network @ ..=MAX_LINK, ETHERTYPE_IP4) => (network, false),
            (network @ ..=MAX_LINK, ETHERTYPE_IP6) => (network, true),
            _ => return None,
        };
        let version = *frame.get(network)?;
        let (header, protocol) = match ip6 {
            true => (IP6, *frame.get(network + 6)?),
            false => (usize::from(version & 0x0f) * 4, *frame.get(network + 9)?),
        };
        let transport = network + header;
        let payload = transport + usize::from(frame.get(transport + 12)? >> 4) * 4;
        let is_whole = match ip6 {
            true => version >> 4 == 6 && usize::from(get_in(frame, network + 4)?) == frame.len() - transport,
            // Neither a fragment nor one that is to come.
            false => {
                version >> 4 == 4
                    && header >= 20
                    && usize::from(get_in(frame, network + 2)?) == frame.len() - network
                    && get_in(frame, network + 6)? & 0x3fff == 0
            }
        };
        if !is_whole || protocol != TCP || payload < transport + 20 || payload >= frame.len() {
            return None;
        }
        let plan = Segmentation {
            tcp: true,
            ip6,
            network,
            transport,
            checksum_offset: TCP_CHECKSUM,
            payload,
            segment_size: frame.len() - payload,
            total: frame.len(),
            done: 0,
            segments: 0,
        };
        let part = Part { frame, plan };
        (part.flags(frame) & TCP_URG_RST_SYN == 0).then_some(part)
    }

    fn flags(&self, frame: &[u8]) -> u8 {
        frame[self.plan.transport + 13]
    }

    /// Whether no part comes after this one: the end of the data is told, or it is shorter.
    fn may_end(&self, frame: &[u8]) -> bool {
        self.flags(frame) & TCP_FIN_PSH != 0 || frame.len() < self.frame.len()
    }

    /// The headers that cutting gives part `number` of the large frame that begins with this one, in a frame of so many bytes.
    fn headers_of(&self, number: usize, length: usize) -> [u8; MAX_HEADERS] {
        let mut headers = [0; MAX_HEADERS];
        let own = &mut headers[..self.plan.payload];
        own.copy_from_slice(&self.frame[..self.plan.payload]);
        let plan =
            Segmentation { done: number * self.plan.segment_size, segments: number as u16, ..self.plan };
        let is_sound = plan.write_network_header(own, length);
        debug_assert!(is_sound, "the header ends where that of TCP starts");
        // None but the last has flags that only the last keeps.
        plan.write_transport_header(own, length, true);
        headers
    }

    /// Whether a frame has the headers of part `number`. The checksum of TCP is looked at with the payload.
    fn has_headers_of(&self, number: usize, frame: &[u8]) -> bool {
        let Segmentation { payload, transport, .. } = self.plan;
        if frame.len() <= payload || frame.len() > self.frame.len() {
            return false;
        }
        let mut expected = self.headers_of(number, frame.len());
        expected[transport + 13] |= self.flags(frame) & TCP_FIN_PSH;
        put(&mut expected, transport + TCP_CHECKSUM, get(frame, transport + TCP_CHECKSUM));
        expected[..payload] == frame[..payload]
    }

    /// Whether the checksum of TCP is what cutting writes.
    fn is_right(&self, frame: &[u8]) -> bool {
        let transport = self.plan.transport;
        get(frame, transport + TCP_CHECKSUM) != 0
            && fold(self.pseudo(frame.len()) + sum(&frame[transport..])) == 0xffff
    }

    /// The sum of the pseudo header of a frame of so many bytes.
    fn pseudo(&self, length: usize) -> u64 {
        let Segmentation { ip6, network, transport, .. } = self.plan;
        let addresses = if ip6 { network + 8..network + 40 } else { network + 12..network + 20 };
        sum(&self.frame[addresses]) + u64::from(TCP) + (length - transport) as u64
    }

    /// The large frame of so many bytes.
    fn joined(&self, frames: usize, length: usize, last: &[u8]) -> Joined {
        let Segmentation { ip6, transport, payload, segment_size, .. } = self.plan;
        let mut headers = self.headers_of(0, length);
        headers[transport + 13] |= self.flags(last) & TCP_FIN_PSH;
        // Begun: the sum of the pseudo header.
        put(&mut headers, transport + TCP_CHECKSUM, fold(self.pseudo(length)));

        let mut start = [0; HEADER_LEN + MAX_HEADERS];
        let (offload, rest) = start.split_at_mut(HEADER_LEN);
        rest.copy_from_slice(&headers);
        let answers = self.flags(self.frame) & TCP_CWR != 0;
        offload[0] = NEEDS_CHECKSUM;
        offload[1] = if ip6 { GSO_TCP6 } else { GSO_TCP4 } | if answers { GSO_ECN } else { 0 };
        for (at, number) in [payload, segment_size, transport, TCP_CHECKSUM].into_iter().enumerate() {
            offload[2 + 2 * at..4 + 2 * at].copy_from_slice(&(number as u16).to_ne_bytes());
        }
        Joined { frames, headers: payload, start }
    }
}

/// The number of two bytes there, if the frame has them.
fn get_in(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| get(bytes, 0))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::Offload;
    use super::super::tests::frame;
    use super::*;
    use proptest::prelude::*;

    /// The frames that a large one is cut into, as packets of a batch.
    fn cut(offload: &Offload, whole: &[u8]) -> Vec<Packet> {
        let mut plan = Segmentation::plan(offload, whole).unwrap();
        let mut packets = Vec::new();
        while let Some(length) = plan.next_len() {
            let mut segment = vec![0; length];
            assert!(plan.write_next(whole, &mut segment));
            let mut packet = Packet::from_frame(&segment).unwrap();
            packet.set_part();
            packets.push(packet);
        }
        packets
    }

    /// The parts of a large frame of TCP over IPv4 or IPv6, with or without a VLAN tag.
    pub(crate) fn parts((ip6, vlan): (bool, bool), payload: usize, size: u16) -> Vec<Packet> {
        let (offload, whole) = sent((ip6, vlan), payload, size, 0x10);
        cut(&offload, &whole)
    }

    /// The large frame that some packets leave as, and its offload header.
    fn large(joined: &Joined, packets: &[Packet]) -> (Offload, Vec<u8>) {
        let (pieces, count) = joined.pieces(packets);
        let bytes: Vec<u8> = pieces[..count].iter().flat_map(|piece| piece.iter().copied()).collect();
        let (header, frame) = bytes.split_first_chunk().unwrap();
        (Offload::parse(header), frame.to_vec())
    }

    /// A frame as a sender leaves it: the flags of TCP, and a segment size.
    fn sent((ip6, vlan): (bool, bool), payload: usize, size: u16, flags: u8) -> (Offload, Vec<u8>) {
        let (mut offload, mut whole) = frame(ip6, true, vlan, payload);
        offload.gso_size = size;
        if flags & TCP_CWR != 0 {
            offload.gso_type |= GSO_ECN;
        }
        let transport = usize::from(offload.checksum_start);
        whole[transport + 13] = flags;
        if !ip6 {
            // The helper's frame has a wrong one, as cutting writes it again.
            let network = transport - 20;
            put(&mut whole, network + 10, 0);
            let checksum = !fold(sum(&whole[network..transport]));
            put(&mut whole, network + 10, checksum);
        }
        (offload, whole)
    }

    #[test]
    fn what_was_cut_is_joined_to_what_it_was() {
        for (ip6, flags) in [(false, 0x10), (true, 0x18), (false, 0xd9), (true, 0x51)] {
            for (payload, size) in [(2500, 1000), (2000, 1000), (64_000, 1448), (1001, 1000), (3, 1)] {
                for vlan in [false, true] {
                    let (offload, whole) = sent((ip6, vlan), payload, size, flags);
                    let packets = cut(&offload, &whole);
                    let joined = join(&packets).unwrap();
                    assert_eq!(joined.frames, payload.div_ceil(size.into()));
                    assert_eq!(large(&joined, &packets), (offload, whole));
                }
            }
        }
    }

    #[test]
    fn two_tags_are_joined_and_three_are_not() {
        for (tags, are_joined) in [(2, true), (3, false)] {
            let (mut offload, mut whole) = sent((false, false), 2500, 1000, 0x10);
            for tag in 0..tags {
                whole.splice(12..12, [0x88, 0xa8, 0, tag]);
                offload.checksum_start += 4;
            }
            let packets = cut(&offload, &whole);
            let joined = join(&packets);
            assert_eq!(joined.is_some(), are_joined, "{tags}");
            if let Some(joined) = joined {
                assert_eq!(large(&joined, &packets), (offload, whole));
            }
        }
    }

    #[test]
    fn a_packet_of_ip_is_no_longer_than_its_length_can_say() {
        let kind = (false, true);
        let (offload, whole) = sent(kind, 60_000, 1500, 0x10);
        let (_, mut next) = sent(kind, 15_000, 1500, 0x10);
        // It follows in its number and its sequence.
        put(&mut next, 18 + 4, get(&whole, 18 + 4).wrapping_add(40));
        let sequence = 0xffff_ff00_u32.wrapping_add(60_000);
        next[38 + 4..38 + 8].copy_from_slice(&sequence.to_be_bytes());
        let packets = [cut(&offload, &whole), cut(&offload, &next)].concat();
        assert_eq!(packets.len(), 50);
        // 43 times 1500 and 40 of headers are 64,540 bytes; one part more would be 66,040.
        assert_eq!(join(&packets).unwrap().frames, 43);
    }

    #[test]
    fn frames_that_were_not_cut_stay_alone() {
        let (offload, whole) = sent((false, false), 3000, 1000, 0x10);
        let mut packets = cut(&offload, &whole);
        assert_eq!(join(&packets).unwrap().frames, 3);
        packets[1].reset();
        packets[1].set_frame(cut(&offload, &whole)[1].data()).unwrap();
        assert!(join(&packets).is_none(), "the second one came by itself");
        assert!(join(&[]).is_none() && join(&packets[2..]).is_none());
        let (offload, whole) = frame(false, false, false, 2500);
        assert!(join(&cut(&offload, &whole)).is_none(), "UDP is left alone");
    }

    /// All that joining makes of packets, cut again.
    fn over_the_link(packets: &[Packet]) -> Vec<Vec<u8>> {
        let (mut frames, mut at) = (Vec::new(), 0);
        while at < packets.len() {
            let Some(joined) = join(&packets[at..]) else {
                frames.push(packets[at].data().to_vec());
                at += 1;
                continue;
            };
            assert!(joined.frames > 1);
            let (offload, whole) = large(&joined, &packets[at..]);
            frames.extend(cut(&offload, &whole).iter().map(|packet| packet.data().to_vec()));
            at += joined.frames;
        }
        frames
    }

    /// Writes the right checksums, if the frame has IPv4 without options or IPv6, and TCP.
    fn mend(frame: &mut [u8], (ip6, vlan): (bool, bool)) {
        let network = if vlan { 18 } else { 14 };
        let transport = network + if ip6 { 40 } else { 20 };
        let addresses = network + if ip6 { 8 } else { 12 }..transport;
        let Some(addresses) = frame.get(addresses).map(sum) else { return };
        if !ip6 {
            put(frame, network + 10, 0);
            let checksum = !fold(sum(&frame[network..transport]));
            put(frame, network + 10, checksum);
        }
        put(frame, transport + 16, 0);
        let all = addresses + 6 + (frame.len() - transport) as u64 + sum(&frame[transport..]);
        put(frame, transport + 16, if fold(all) == 0xffff { 0xffff } else { !fold(all) });
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever became of the parts on their way, the link carries these frames and no others.
        #[test]
        fn the_link_carries_the_same_frames(
            (kind, flags, size) in (any::<(bool, bool)>(), 0u8..=255, 1u16..1500),
            payload in 1usize..8000,
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), 0u8..8, 0u32..8), 0..4),
        ) {
            let payload = payload.min(usize::from(size) * 60);
            let (offload, whole) = sent(kind, payload, size, flags);
            let mut packets = cut(&offload, &whole);
            for (which, at, change, bit) in changes {
                let which = which.index(packets.len());
                let other = at.index(packets.len());
                match change {
                    0 => packets.swap(which, other),
                    1 => packets.push(packets[which].clone()),
                    2 if packets.len() > 1 => drop(packets.remove(which)),
                    // Damage, and what a program changes, with the checksums: most of what matters is in the headers.
                    _ => {
                        let length = packets[which].len();
                        let at = at.index(if change < 7 { length.min(78) } else { length });
                        packets[which].data_mut()[at] ^= 1 << bit;
                        if change > 3 {
                            mend(packets[which].data_mut(), kind);
                        }
                    }
                }
            }
            let expected: Vec<Vec<u8>> = packets.iter().map(|packet| packet.data().to_vec()).collect();
            prop_assert_eq!(over_the_link(&packets), expected);
        }
    }
}
