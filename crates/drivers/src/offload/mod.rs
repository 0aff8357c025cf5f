//! What a local sender leaves to the hardware, finished in software.
//!
//! A frame that never met a cable (from a host over a veth pair, say) can reach a packet socket or a tap interface with a checksum that is
//! only begun, as one piece of up to 64 KiB that the hardware would have cut into segments, or with its VLAN tag kept
//! aside. The kernel says so in a virtio network header (virtio 1.2, section 5.1.6) before the frame. What is done
//! here is what the hardware would have done, so that the switch sees the frames of a cable, and nothing more.

mod begun;
mod cut;
mod join;

pub(crate) use begun::finish_begun;
pub(crate) use cut::{Cutter, Cutting};
#[cfg(test)]
pub(crate) use join::tests::parts;
pub(crate) use join::{Joined, join};

use millrace_frames::Packet;

/// Bytes of a VLAN tag.
pub(crate) const VLAN_TAG: usize = 4;

/// Bytes of the header before each frame.
pub(crate) const HEADER_LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
/// May be added to the kinds of TCP: congestion notification is in use.
const GSO_ECN: u8 = 0x80;

const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

/// What is left to do on one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    flags: u8,
    gso_type: u8,
    gso_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl Offload {
    /// Reads the header, which the kernel writes in the byte order of the machine.
    pub(crate) fn parse(header: &[u8; HEADER_LEN]) -> Offload {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        Offload {
            flags: header[0],
            gso_type: header[1],
            // The two bytes at 2 are a hint on the length of the headers.
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Whether the frame is to be cut into segments.
    pub(crate) fn is_segmented(&self) -> bool {
        self.gso_type & !GSO_ECN != GSO_NONE
    }

    /// Finishes the checksum of a whole frame, if it is only begun. Returns false when the header makes no sense.
    pub(crate) fn finish_checksum(&self, frame: &mut [u8]) -> bool {
        if self.flags & NEEDS_CHECKSUM == 0 {
            return true;
        }
        finish_checksum(frame, self.checksum_start.into(), self.checksum_offset.into())
    }
}

/// Puts a VLAN tag after the addresses. Returns false when there are none or the frame is too long already.
pub(crate) fn insert_vlan(packet: &mut Packet, (tpid, tci): (u16, u16)) -> bool {
    const ADDRESSES: usize = 12;
    if packet.len() < ADDRESSES || packet.push(VLAN_TAG).is_err() {
        return false;
    }
    let frame = packet.data_mut();
    frame.copy_within(VLAN_TAG..VLAN_TAG + ADDRESSES, 0);
    frame[ADDRESSES..ADDRESSES + 2].copy_from_slice(&tpid.to_be_bytes());
    frame[ADDRESSES + 2..ADDRESSES + 4].copy_from_slice(&tci.to_be_bytes());
    true
}

/// The sum of a checksum-to-be stands in its field (that of the pseudo header); completes it over all from `start`.
fn finish_checksum(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(field) = frame.get(start + offset..start + offset + 2) else { return false };
    debug_assert_eq!(field.len(), 2);
    // A result of zero is sent as all ones: for UDP zero means no checksum, for the others both are the same number.
    let sum = match !fold(sum(&frame[start..])) {
        0 => 0xffff,
        sum => sum,
    };
    frame[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// The sum of 16-bit words of RFC 1071, folded; a last odd byte counts as the high one of a word.
///
/// Words of 32 bits in the order of the machine have the same sum once it is folded, with its bytes swapped where the machine's are
/// (section 2 there), and the processor adds many of them at a time. Frames are far too short for the sum to overflow.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    u64::from(u16::from_be(fold(whole + u64::from(u32::from_ne_bytes(last)))))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// How to cut one frame into segments, and how far that has come. The frame itself stays with the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segmentation {
    tcp: bool,
    ip6: bool,
    /// Where the IP header starts.
    network: usize,
    /// Where the TCP or UDP header starts.
    transport: usize,
    /// Where the checksum lies in the TCP or UDP header.
    checksum_offset: usize,
    /// Where the payload starts: all before is repeated in each segment.
    payload: usize,
    segment_size: usize,
    total: usize,
    /// Payload bytes cut off so far.
    done: usize,
    segments: u16,
}

impl Segmentation {
    /// Plans the cutting of a frame; `None` when the frame is not what its offload header says.
    pub(crate) fn plan(offload: &Offload, frame: &[u8]) -> Option<Segmentation> {
        let (tcp, versions): (bool, &[u16]) = match offload.gso_type & !GSO_ECN {
            GSO_TCP4 => (true, &[ETHERTYPE_IP4]),
            GSO_TCP6 => (true, &[ETHERTYPE_IP6]),
            GSO_UDP => (false, &[ETHERTYPE_IP4, ETHERTYPE_IP6]),
            _ => return None,
        };
        if offload.flags & NEEDS_CHECKSUM == 0 || offload.gso_size == 0 {
            return None;
        }
        let (network, ethertype) = network_header(frame)?;
        let transport = usize::from(offload.checksum_start);
        let header = if tcp { usize::from(frame.get(transport + 12)? >> 4) * 4 } else { 8 };
        let ip6 = ethertype == ETHERTYPE_IP6;
        let payload = transport + header;
        let checksum_offset = usize::from(offload.checksum_offset);
        let sound = versions.contains(&ethertype)
            && transport >= network + if ip6 { 40 } else { 20 }
            && header >= if tcp { 20 } else { 8 }
            && checksum_offset + 2 <= header
            && payload < frame.len();
        sound.then_some(Segmentation {
            tcp,
            ip6,
            network,
            transport,
            checksum_offset,
            payload,
            segment_size: offload.gso_size.into(),
            total: frame.len(),
            done: 0,
            segments: 0,
        })
    }

    /// The length of the next segment's frame, `None` after the last.
    pub(crate) fn next_len(&self) -> Option<usize> {
        let left = self.total - self.payload - self.done;
        (left > 0).then(|| self.payload + left.min(self.segment_size))
    }

    /// Writes the next segment of `frame` into `segment`, which has the length of [`Segmentation::next_len`].
    /// Returns false when it has not, or the headers are not sound.
    pub(crate) fn write_next(&mut self, frame: &[u8], segment: &mut [u8]) -> bool {
        if Some(segment.len()) != self.next_len() || frame.len() != self.total {
            return false;
        }
        let from = self.payload + self.done;
        let length = segment.len() - self.payload;
        segment[..self.payload].copy_from_slice(&frame[..self.payload]);
        segment[self.payload..].copy_from_slice(&frame[from..from + length]);

        let is_last = from + length == self.total;
        if !self.write_network_header(segment, segment.len()) {
            return false;
        }
        self.write_transport_header(segment, segment.len(), is_last);
        self.done += length;
        self.segments = self.segments.wrapping_add(1);
        finish_checksum(segment, self.transport, self.checksum_offset)
    }

    /// Writes the network header of the next segment, a frame of so many bytes of which the headers are enough.
    fn write_network_header(&self, segment: &mut [u8], frame: usize) -> bool {
        let network = self.network;
        let length = frame - network;
        if self.ip6 {
            put(segment, network + 4, (length - 40) as u16);
            return true;
        }
        put(segment, network + 2, length as u16);
        put(segment, network + 4, get(segment, network + 4).wrapping_add(self.segments));
        let header = usize::from(segment[network] & 0x0f) * 4;
        if header < 20 || network + header > self.transport {
            return false;
        }
        put(segment, network + 10, 0);
        let checksum = !fold(sum(&segment[network..network + header]));
        put(segment, network + 10, checksum);
        true
    }

    /// As [`Segmentation::write_network_header`]; the checksum is begun.
    fn write_transport_header(&self, segment: &mut [u8], frame: usize, is_last: bool) {
        let transport = self.transport;
        if self.tcp {
            let place = transport + 4..transport + 8;
            let first = segment[place.clone()].try_into().map_or(0, u32::from_be_bytes);
            segment[place].copy_from_slice(&first.wrapping_add(self.done as u32).to_be_bytes());
            // The end of the data is told by its last segment, the answer to congestion by the first.
            if !is_last {
                segment[transport + 13] &= !TCP_FIN_PSH;
            }
            if self.done > 0 {
                segment[transport + 13] &= !TCP_CWR;
            }
        } else {
            put(segment, transport + 4, (frame - transport) as u16);
        }
        // The sum of the pseudo header has the length of the whole: take it out, put that of the segment in. In the
        // arithmetic of ones' complement the inverse is what subtracts.
        let field = transport + self.checksum_offset;
        let whole = fold((self.total - transport) as u64);
        let own = fold((frame - transport) as u64);
        let pseudo = u64::from(get(segment, field)) + u64::from(!whole) + u64::from(own);
        put(segment, field, fold(pseudo));
    }
}

const ETHERTYPE_IP4: u16 = 0x0800;
const ETHERTYPE_IP6: u16 = 0x86dd;
const ETHERTYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];

/// Where the network header starts, after any VLAN tags, and its EtherType.
fn network_header(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = 12;
    loop {
        let ethertype = u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?);
        if !ETHERTYPES_VLAN.contains(&ethertype) {
            return Some((at + 2, ethertype));
        }
        at += 4;
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, number: u16) {
    bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet, IP and TCP or UDP header with the pseudo header's sum in the checksum, and a payload of 0, 1, 2...
    pub(super) fn frame(ip6: bool, tcp: bool, vlan: bool, payload: usize) -> (Offload, Vec<u8>) {
        let mut frame = vec![0x02; 12];
        if vlan {
            frame.extend([0x81, 0x00, 0x00, 0x07]);
        }
        let header = if tcp { 20 } else { 8 };
        let length = header + payload;
        let protocol = if tcp { 6 } else { 17 };
        let addresses: Vec<u8> = if ip6 { (1..=32).collect() } else { vec![10, 0, 0, 1, 10, 0, 0, 2] };
        if ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([protocol, 64]);
        } else {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + length as u16).to_be_bytes());
            frame.extend([0xff, 0xff, 0x40, 0, 64, protocol, 0xde, 0xad]);
        }
        frame.extend(&addresses);
        let transport = frame.len();
        let pseudo = fold(sum(&addresses) + u64::from(protocol) + length as u64).to_be_bytes();
        if tcp {
            frame.extend([0x12, 0x34, 0x00, 0x50, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 9, 0x50, 0x99, 1, 0]);
            frame.extend([pseudo[0], pseudo[1], 0, 0]);
        } else {
            frame.extend([0x12, 0x34, 0x00, 0x50]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend(pseudo);
        }
        frame.extend((0..payload).map(|at| at as u8));
        let gso_type = match (tcp, ip6) {
            (true, false) => GSO_TCP4,
            (true, true) => GSO_TCP6,
            (false, _) => GSO_UDP,
        };
        let offload = Offload {
            flags: NEEDS_CHECKSUM,
            gso_type,
            gso_size: 1000,
            checksum_start: transport as u16,
            checksum_offset: if tcp { 16 } else { 6 },
        };
        (offload, frame)
    }

    /// Checks the transport checksum as a receiver does: the sum over pseudo header and all is all ones.
    fn transport_is_right(frame: &[u8], network: usize, transport: usize, ip6: bool, protocol: u64) -> bool {
        let addresses = if ip6 { network + 8..network + 40 } else { network + 12..network + 20 };
        let length = (frame.len() - transport) as u64;
        fold(sum(&frame[addresses]) + protocol + length + sum(&frame[transport..])) == 0xffff
    }

    #[test]
    fn a_begun_checksum_is_finished() {
        // RFC 1071 section 3: 0001 f203 f4f5 f6f7 sum to ddf2, the checksum is 220d.
        let mut bytes = [0xee, 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0x00, 0x00];
        assert!(finish_checksum(&mut bytes, 1, 8));
        assert_eq!(bytes[9..], [0x22, 0x0d]);
        // Odd length, and zero is sent as all ones.
        let mut bytes = [0, 0, 0xff, 0xff, 0];
        assert!(finish_checksum(&mut bytes, 0, 0));
        assert_eq!(bytes[..2], [0xff, 0xff]);
        assert!(!finish_checksum(&mut bytes, 3, 1));
        assert!(!finish_checksum(&mut bytes, 70_000, 0));
    }

    #[test]
    fn the_sum_is_that_of_rfc_1071() {
        let bytes: Vec<u8> = (0..64u32).map(|at| (at * 89 + 201) as u8).collect();
        for length in 0..bytes.len() {
            let word = |word: &[u8]| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low));
            let mut expected: u32 = bytes[..length].chunks(2).map(word).sum();
            expected = (expected >> 16) + (expected & 0xffff);
            assert_eq!(fold(sum(&bytes[..length])), expected as u16, "{length} bytes");
        }
    }

    #[test]
    fn frames_are_cut_as_the_hardware_would() {
        for (ip6, tcp, vlan) in
            [(false, true, false), (true, true, true), (false, false, true), (true, false, false)]
        {
            let (offload, whole) = frame(ip6, tcp, vlan, 2500);
            let mut plan = Segmentation::plan(&offload, &whole).unwrap();
            let (network, transport) = (if vlan { 18 } else { 14 }, usize::from(offload.checksum_start));
            let header = if tcp { 20 } else { 8 };
            let mut payload = Vec::new();
            let mut lengths = Vec::new();
            while let Some(length) = plan.next_len() {
                let mut segment = vec![0xaa; length];
                assert!(plan.write_next(&whole, &mut segment));
                assert!(transport_is_right(&segment, network, transport, ip6, if tcp { 6 } else { 17 }));
                let number = lengths.len();
                if ip6 {
                    assert_eq!(usize::from(get(&segment, network + 4)), length - network - 40);
                } else {
                    assert_eq!(usize::from(get(&segment, network + 2)), length - network);
                    // The identification 0xffff counts on from segment to segment.
                    assert_eq!(get(&segment, network + 4), [0xffff, 0, 1][number]);
                    assert_eq!(fold(sum(&segment[network..network + 20])), 0xffff);
                }
                if tcp {
                    let sequence = &segment[transport + 4..transport + 8];
                    assert_eq!(
                        sequence,
                        [[0xff, 0xff, 0xff, 0x00], [0, 0, 0x02, 0xe8], [0, 0, 0x06, 0xd0]][number]
                    );
                    // 0x99 is CWR, ACK, PSH and FIN.
                    assert_eq!(segment[transport + 13], [0x90, 0x10, 0x19][number]);
                } else {
                    assert_eq!(usize::from(get(&segment, transport + 4)), length - transport);
                }
                assert_eq!(segment[..12], whole[..12]);
                payload.extend_from_slice(&segment[transport + header..]);
                lengths.push(length - transport - header);
            }
            assert_eq!(lengths, [1000, 1000, 500]);
            assert_eq!(payload, whole[transport + header..]);
        }
    }

    #[test]
    fn frames_that_are_not_what_their_header_says_are_refused() {
        let (offload, whole) = frame(false, true, false, 2500);
        let refused = [
            Offload { flags: 0, ..offload },
            Offload { gso_size: 0, ..offload },
            Offload { gso_type: GSO_TCP6, ..offload },
            Offload { gso_type: 3, ..offload },
            Offload { checksum_start: 20, ..offload },
            Offload { checksum_start: 60_000, ..offload },
            Offload { checksum_offset: 19, ..offload },
        ];
        for offload in refused {
            assert!(Segmentation::plan(&offload, &whole).is_none(), "{offload:?}");
        }
        for cut in 0..=54 {
            assert!(Segmentation::plan(&offload, &whole[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn the_header_is_read_in_machine_order() {
        let mut header = [1, 0x84, 0, 0, 0, 0, 0, 0, 0, 0];
        header[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        header[6..8].copy_from_slice(&54u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let offload = Offload::parse(&header);
        let expected =
            Offload { flags: 1, gso_type: 0x84, gso_size: 1448, checksum_start: 54, checksum_offset: 16 };
        assert_eq!(offload, expected);
        assert!(offload.is_segmented());
        assert!(!Offload { gso_type: GSO_ECN, ..offload }.is_segmented());
    }
}
