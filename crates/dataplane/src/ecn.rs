//! Explicit congestion notification (RFC 3168): the two bits of an IP header that say whether its flow heeds marks, and the mark.

use crate::worker::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, payload};

/// Both bits: congestion was met.
const CONGESTION: u8 = 0b11;

/// Where the bits are in a frame.
#[derive(Clone, Copy)]
enum Bits {
    /// The two lowest bits of the byte after that one, with which the header begins; its checksum covers them.
    V4(usize),
    /// Bits 4 and 5 of the byte after that one.
    V6(usize),
}

/// Whether the flow of a frame takes a mark for a loss: a frame of others has to be dropped.
pub(crate) fn is_capable(frame: &[u8]) -> bool {
    match bits(frame) {
        Some(Bits::V4(at)) => frame[at + 1] & CONGESTION != 0,
        Some(Bits::V6(at)) => (frame[at + 1] >> 4) & CONGESTION != 0,
        None => false,
    }
}

/// Marks a frame whose flow [heeds it](is_capable).
pub(crate) fn mark(frame: &mut [u8]) {
    match bits(frame) {
        Some(Bits::V4(at)) => {
            let before = frame[at + 1];
            frame[at + 1] |= CONGESTION;
            let added = frame[at + 1] - before;
            let checksum = u16::from_be_bytes([frame[at + 10], frame[at + 11]]);
            // RFC 1624, equation 4: the sum of the words has grown by what was added, so its complement shrinks by that, with the
            // borrow taken from the other end.
            let (less, borrows) = checksum.overflowing_sub(u16::from(added));
            let checksum = less.wrapping_sub(u16::from(borrows));
            frame[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(Bits::V6(at)) => frame[at + 1] |= CONGESTION << 4,
        None => {}
    }
}

/// The frame, marked.
pub(crate) fn marked(mut frame: Vec<u8>) -> Vec<u8> {
    mark(&mut frame);
    frame
}

/// Where the bits are of a frame with a whole IP header after its Ethernet header and tags.
fn bits(frame: &[u8]) -> Option<Bits> {
    let (kind, start) = payload(frame)?;
    let is_version = |version: u8| frame.get(start).is_some_and(|first| first >> 4 == version);
    match kind {
        ETHERTYPE_IPV4 if is_version(4) && frame.len() >= start + 20 => Some(Bits::V4(start)),
        ETHERTYPE_IPV6 if is_version(6) && frame.len() >= start + 40 => Some(Bits::V6(start)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of an IPv4 header's words, folded: all ones where its checksum is right (RFC 791).
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let folded = (sum >> 16) + (sum & 0xffff);
        ((folded >> 16) + (folded & 0xffff)) as u16
    }

    fn v4(tos: u8, id: u16, tags: usize) -> (Vec<u8>, usize) {
        let mut frame = vec![0; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        frame.extend([8, 0]);
        let start = frame.len();
        frame.extend([
            0x45,
            tos,
            0,
            40,
            (id >> 8) as u8,
            id as u8,
            0,
            0,
            64,
            6,
            0,
            0,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
        ]);
        let checksum = !sum(&frame[start..]);
        frame[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend([0; 20]);
        (frame, start)
    }

    #[test]
    fn a_marked_header_has_a_right_checksum() {
        for tos in [1, 2, 3, 0xb9, 0xba] {
            for id in 0..=u16::MAX {
                let (mut frame, start) = v4(tos, id, usize::from(id % 3));
                assert!(is_capable(&frame));
                mark(&mut frame);
                assert_eq!(
                    (frame[start + 1], sum(&frame[start..start + 20])),
                    (tos | 3, 0xffff),
                    "{tos} {id}"
                );
            }
        }
    }

    #[test]
    fn flows_that_do_not_heed_marks_are_known() {
        assert!(!is_capable(&v4(0xb8, 1, 0).0));
        assert!(!is_capable(&v4(2, 1, 3).0), "more tags than are passed over");
        assert!(!is_capable(&[]) && !is_capable(&[0; 13]) && !is_capable(&v4(2, 1, 0).0[..33]));
        let mut v6 = vec![0; 12];
        v6.extend([0x86, 0xdd, 0x6f, 0xcf]);
        v6.resize(14 + 40, 0);
        assert!(!is_capable(&v6));
        v6[15] = 0xdf;
        assert!(is_capable(&v6));
        mark(&mut v6);
        assert_eq!(v6[14..16], [0x6f, 0xff]);
    }
}
