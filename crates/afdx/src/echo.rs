//! Echo requests of ICMP (RFC 792) and their replies: how whoever integrates a network finds out that an end system is there.
//!
//! ```text
//!   type 8 (request) or 0 (reply)  code 0  checksum 2 | identifier 2  sequence number 2  data
//!                                                     '------------ repeated ------------'
//! ```
//!
//! A reply leaves in a virtual link of the end system, with its regulator: requests cannot make it send more than its contract says.

use crate::address::VlId;
use crate::frame::{Malformed, ones_sum};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Most echo requests that wait for their replies.
pub const MAX_ECHOES: usize = 64;

const REQUEST: u8 = 8;
const REPLY: u8 = 0;
/// Type, code, checksum.
const HEADER: usize = 4;
/// Identifier and sequence number.
const NUMBERS: usize = 4;

/// An echo request, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoRequest {
    /// When its last frame came, in nanoseconds.
    pub at_ns: u64,
    /// By which virtual link.
    pub vl: VlId,
    /// Who asks.
    pub source: Ipv4Addr,
    /// What the reply repeats: identifier, sequence number, data.
    pub data: Vec<u8>,
}

/// What a reply to this ICMP message repeats.
pub(crate) fn parse_request(message: &[u8]) -> Result<&[u8], Malformed> {
    if message.len() < HEADER + NUMBERS {
        return Err(Malformed::IcmpLength);
    }
    if ones_sum(message, 0) != 0xffff {
        return Err(Malformed::IcmpChecksum);
    }
    match message {
        [REQUEST, 0, _, _, data @ ..] => Ok(data),
        _ => Err(Malformed::IcmpType),
    }
}

/// A reply that repeats this.
pub(crate) fn reply(data: &[u8]) -> Vec<u8> {
    let mut message = [&[REPLY, 0, 0, 0], data].concat();
    let sum = !ones_sum(&message, 0);
    message[2..HEADER].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Requests that wait, up to [`MAX_ECHOES`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Echoes(VecDeque<EchoRequest>);

impl Echoes {
    /// Whether there is room.
    pub(crate) fn put(&mut self, request: EchoRequest) -> bool {
        let has_room = self.0.len() < MAX_ECHOES;
        if has_room {
            self.0.push_back(request);
        }
        has_room
    }

    pub(crate) fn take(&mut self) -> Option<EchoRequest> {
        self.0.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_by_hand() {
        // 0800 + 0001 + 0002 + 4146 + 4458 = 8da1, inverted 725e; without the type 85a1, 7a5e.
        let request = [8, 0, 0x72, 0x5e, 0, 1, 0, 2, 0x41, 0x46, 0x44, 0x58];
        let data = parse_request(&request).unwrap();
        assert_eq!(data, [0, 1, 0, 2, 0x41, 0x46, 0x44, 0x58]);
        assert_eq!(reply(data), [0, 0, 0x7a, 0x5e, 0, 1, 0, 2, 0x41, 0x46, 0x44, 0x58]);
    }

    #[test]
    fn what_is_no_request_is_named() {
        let summed = |mut message: Vec<u8>| {
            let sum = !ones_sum(&message, 0);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            parse_request(&message).map(<[u8]>::len)
        };
        assert_eq!(summed(vec![8, 0, 0, 0, 1, 1, 2, 2]), Ok(4));
        assert_eq!(summed(vec![8, 0, 0, 0, 1, 1, 2, 2, 3]), Ok(5));
        assert_eq!(summed(vec![8, 0, 0, 0, 1, 1, 2]), Err(Malformed::IcmpLength));
        assert_eq!(summed(vec![0, 0, 0, 0, 1, 1, 2, 2]), Err(Malformed::IcmpType));
        assert_eq!(summed(vec![8, 1, 0, 0, 1, 1, 2, 2]), Err(Malformed::IcmpType));
        assert_eq!(parse_request(&[8, 0, 1, 1, 1, 1, 2, 2]), Err(Malformed::IcmpChecksum));
        assert_eq!(parse_request(&[]), Err(Malformed::IcmpLength));
    }
}
