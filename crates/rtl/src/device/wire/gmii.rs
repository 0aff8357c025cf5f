//! GMII in a simulation: frames to an octet in each cycle, and back.

use super::{Received, check};
use std::collections::VecDeque;

/// What comes before the bytes of a frame.
const PREAMBLE: [u8; 8] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];
/// Octets between two frames.
const GAP: usize = 12;

/// What a link partner sends.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// Octets, and whether they belong to a frame.
    coming: VecDeque<(u8, bool)>,
    sent: u64,
}

impl Sender {
    pub(super) fn has_room(&self) -> bool {
        self.coming.len() <= GAP
    }

    pub(super) fn is_idle(&self) -> bool {
        self.coming.is_empty()
    }

    /// Sends a frame after what was given before, with a gap after it. Gives the octet at which it starts.
    pub(super) fn send(&mut self, bytes: &[u8], is_bad: bool) -> u64 {
        let start = self.sent + self.coming.len() as u64;
        let mut check = check(bytes);
        check[0] ^= u8::from(is_bad);
        let octets = PREAMBLE.iter().chain(bytes).chain(&check);
        self.coming.extend(octets.map(|octet| (*octet, true)));
        self.coming.extend([(0, false); GAP]);
        start
    }

    /// The next octet: data, `dv`, `er`.
    pub(super) fn octet(&mut self) -> [u64; 3] {
        self.sent += 1;
        let (data, is_there) = self.coming.pop_front().unwrap_or_default();
        [data.into(), is_there.into(), 0]
    }
}

/// What a link partner receives.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    octets: Vec<u8>,
    began: u64,
    seen: u64,
    has_errors: bool,
}

impl Receiver {
    pub(super) fn is_idle(&self) -> bool {
        self.octets.is_empty()
    }

    /// Takes an octet: data, `en`, `er`; gives the frame that has ended before it.
    pub(super) fn octet(&mut self, [data, en, er]: [u64; 3]) -> Option<Received> {
        let mut received = None;
        match (en != 0, self.octets.is_empty()) {
            (true, is_first) => {
                if is_first {
                    (self.began, self.has_errors) = (self.seen, false);
                }
                self.octets.push(data as u8);
                self.has_errors |= er != 0;
            }
            (false, false) => received = Some(self.end()),
            (false, true) => {}
        }
        self.seen += 1;
        received
    }

    fn end(&mut self) -> Received {
        let octets = std::mem::take(&mut self.octets);
        let (preamble, frame) = octets.split_at(octets.len().min(PREAMBLE.len()));
        let (bytes, fcs) = frame.split_at(frame.len().saturating_sub(4));
        let is_bad = self.has_errors || preamble != PREAMBLE || fcs != check(bytes);
        Received { bytes: bytes.to_vec(), at: (self.began, self.seen), is_bad }
    }
}
