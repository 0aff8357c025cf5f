//! Checksums that are only begun, where nothing says of which frames.
//!
//! XDP shows the bytes of a frame alone. A sender at the other end of a veth begins a checksum of TCP or UDP by the sum of the
//! pseudo header in its field, and leaves the rest to the card. Whether it did is seen by that: the field has this sum.
//!
//! A checksum that is right already may have the same number by chance. It stays as it is: with `p` the sum of the pseudo header,
//! `s` that of all else in the segment and `c` the field, right means `p + s + c = 0` in ones' complement, and finishing writes
//! `-(s + c)`, which is `p`, which is `c`.

use super::{ETHERTYPE_IP4, ETHERTYPE_IP6, finish_checksum, fold, get, network_header, sum};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// More fragments follow, or this is not the first.
const FRAGMENT: u16 = 0x3fff;

/// A TCP or UDP segment in a frame.
struct Segment {
    start: usize,
    end: usize,
    /// Where the checksum is.
    field: usize,
    /// The sum of the pseudo header (RFC 9293, 3.1; RFC 8200, 8.1).
    pseudo: u16,
}

/// Finishes the checksum of a segment that is only begun.
pub(crate) fn finish_begun(frame: &mut [u8]) {
    if let Some(Segment { start, end, field, pseudo }) = segment(frame)
        && get(frame, field) == pseudo
    {
        finish_checksum(&mut frame[..end], start, field - start);
    }
}

/// The segment of a frame that is long enough for it: after an IPv4 header with any options, or an IPv6 header alone.
fn segment(frame: &[u8]) -> Option<Segment> {
    let (network, ethertype) = network_header(frame)?;
    let packet = frame.get(network..)?;
    let (header, length, protocol, addresses) = match ethertype {
        ETHERTYPE_IP4 => {
            let fixed = packet.first_chunk::<20>()?;
            let header = usize::from(fixed[0] & 0x0f) * 4;
            if fixed[0] >> 4 != 4 || header < 20 || get(fixed, 6) & FRAGMENT != 0 {
                return None;
            }
            (header, usize::from(get(fixed, 2)), fixed[9], 12..20)
        }
        ETHERTYPE_IP6 => {
            let fixed = packet.first_chunk::<40>()?;
            (40, 40 + usize::from(get(fixed, 4)), fixed[6], 8..40)
        }
        _ => return None,
    };
    let (offset, least) = match protocol {
        TCP => (16, 20),
        UDP => (6, 8),
        _ => return None,
    };
    let segment = length.checked_sub(header)?;
    if segment < least || length > packet.len() {
        return None;
    }
    let start = network + header;
    let pseudo = fold(sum(packet.get(addresses)?) + u64::from(protocol) + segment as u64);
    Some(Segment { start, end: network + length, field: start + offset, pseudo })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 or IPv6 frame with a segment of TCP or UDP and so many bytes after it, its checksum begun, and with the right one:
    /// sums of 16-bit words, as RFC 1071 has them.
    fn begun_and_right(ip6: bool, protocol: u8, payload: &[u8], padding: usize) -> (Vec<u8>, Vec<u8>) {
        let header = if protocol == TCP { 20 } else { 8 };
        let offset = if protocol == TCP { 16 } else { 6 };
        let length = header + payload.len();
        let mut frame = vec![2; 12];
        let addresses: Vec<u8> = (1..=if ip6 { 32 } else { 8 }).collect();
        if ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, length as u8, protocol, 64]);
        } else {
            // With an option of four bytes.
            frame.extend([8, 0, 0x46, 0, 0, 24 + length as u8, 0, 1, 0x40, 0, 64, protocol, 0, 0]);
        }
        frame.extend(&addresses);
        frame.extend(if ip6 { &[][..] } else { &[1, 1, 1, 0] });
        let start = frame.len();
        frame.extend(vec![0x11; header]);
        frame[start + offset..start + offset + 2].fill(0);
        frame.extend(payload);
        let words = |bytes: &[u8]| -> u32 {
            bytes.chunks(2).map(|w| u32::from(w[0]) * 256 + u32::from(w.get(1).copied().unwrap_or(0))).sum()
        };
        let folded = |sum: u32| (sum & 0xffff) + (sum >> 16);
        let pseudo = folded(folded(words(&addresses) + u32::from(protocol) + length as u32));
        let whole = folded(folded(words(&frame[start..]) + pseudo));
        let with = |number: u32| {
            let mut frame = frame.clone();
            frame[start + offset..start + offset + 2].copy_from_slice(&(number as u16).to_be_bytes());
            frame.extend(vec![0xee; padding]);
            frame
        };
        (with(pseudo), with(0xffff - whole))
    }

    #[test]
    fn a_checksum_that_is_begun_is_finished_and_another_is_left_alone() {
        for ip6 in [false, true] {
            for protocol in [TCP, UDP] {
                for (payload, padding) in [(&b"odd"[..], 0), (b"even", 7), (b"", 2)] {
                    let (mut frame, right) = begun_and_right(ip6, protocol, payload, padding);
                    assert_ne!(frame, right);
                    finish_begun(&mut frame);
                    assert_eq!(frame, right);
                    finish_begun(&mut frame);
                    assert_eq!(frame, right);
                    // A wrong checksum is for whoever receives it to refuse.
                    let at = frame.len() - padding - 1;
                    frame[at] ^= 0x5a;
                    let wrong = frame.clone();
                    finish_begun(&mut frame);
                    assert_eq!(frame, wrong);
                }
            }
        }
    }

    #[test]
    fn a_right_checksum_that_is_the_pseudo_headers_sum_stays() {
        // The last word makes all of the segment but the checksum be the inverse of twice the pseudo header.
        let found = (0..=u16::MAX).find_map(|word| {
            let (begun, right) = begun_and_right(false, TCP, &word.to_be_bytes(), 0);
            (begun == right).then_some(right)
        });
        let right = found.expect("one of all words does");
        let mut frame = right.clone();
        finish_begun(&mut frame);
        assert_eq!(frame, right);
    }

    #[test]
    fn what_is_no_whole_segment_is_left_alone() {
        let (begun, _) = begun_and_right(false, UDP, b"payload", 0);
        for length in 0..begun.len() {
            let mut cut = begun[..length].to_vec();
            finish_begun(&mut cut);
            assert_eq!(cut, begun[..length]);
        }
        for (at, byte) in [(20, 0x20), (21, 1), (23, 132), (14, 0x44), (14, 0x56)] {
            let mut other = begun.clone();
            other[at] = byte;
            let before = other.clone();
            finish_begun(&mut other);
            assert_eq!(other, before, "{at}");
        }
        // UDP without a checksum.
        let mut without = begun;
        without[44..46].fill(0);
        let before = without.clone();
        finish_begun(&mut without);
        assert_eq!(without, before);
    }
}
