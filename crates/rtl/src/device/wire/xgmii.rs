//! XGMII in a simulation: frames to words of eight characters, and back.

use super::{Received, check};
use std::collections::VecDeque;

const START: u8 = 0xfb;
const TERMINATE: u8 = 0xfd;
const IDLE: u8 = 0x07;

/// A character, and whether it is a control character.
type Character = (u8, bool);

/// What a link partner sends.
#[derive(Debug, Default)]
pub(super) struct Sender {
    coming: VecDeque<Character>,
    /// Characters that were sent.
    sent: u64,
    /// The place of the last terminator.
    ended: u64,
    /// How much shorter than 12 characters gaps have been.
    deficit: u64,
}

impl Sender {
    /// Whether a frame that is given now does not have to wait for longer than its gap.
    pub(super) fn has_room(&self) -> bool {
        self.coming.len() < 16
    }

    pub(super) fn is_idle(&self) -> bool {
        self.coming.is_empty()
    }

    /// Sends a frame as soon as it may start: with a gap of 12 characters on average. Gives the character at which it starts.
    pub(super) fn send(&mut self, bytes: &[u8], is_bad: bool) -> u64 {
        let free = self.sent + self.coming.len() as u64;
        let wanted = self.ended + 12;
        let over = wanted % 4;
        let start = match self.deficit + over <= 3 {
            true => {
                self.deficit += over;
                wanted - over
            }
            false => {
                self.deficit = self.deficit.saturating_sub(4 - over);
                wanted + 4 - over
            }
        };
        let start = start.max(free.next_multiple_of(4));
        (free..start).for_each(|_| self.coming.push_back((IDLE, true)));
        let mut check = check(bytes);
        check[0] ^= u8::from(is_bad);
        let plain = |byte: &u8| (*byte, false);
        self.coming.push_back((START, true));
        self.coming.extend([0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5].iter().map(plain));
        self.coming.extend(bytes.iter().map(plain));
        self.coming.extend(check.iter().map(plain));
        self.ended = self.sent + self.coming.len() as u64;
        self.coming.push_back((TERMINATE, true));
        start
    }

    /// The next word: data, the first character lowest, and a bit for each control character.
    pub(super) fn word(&mut self) -> (u64, u64) {
        let (mut data, mut control) = (0, 0);
        for lane in 0..8 {
            let (byte, is_control) = self.coming.pop_front().unwrap_or((IDLE, true));
            data |= u64::from(byte) << (8 * lane);
            control |= u64::from(is_control) << lane;
        }
        self.sent += 8;
        (data, control)
    }
}

/// What a link partner receives.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    frame: Option<Vec<u8>>,
    began: u64,
    seen: u64,
    is_bad: bool,
}

impl Receiver {
    pub(super) fn is_idle(&self) -> bool {
        self.frame.is_none()
    }

    /// Takes a word; gives the frame that ends in it.
    pub(super) fn word(&mut self, data: u64, control: u64) -> Option<Received> {
        let mut received = None;
        for lane in 0..8 {
            let (byte, is_control) = ((data >> (8 * lane)) as u8, control >> lane & 1 != 0);
            match (is_control, byte) {
                (true, START) => (self.frame, self.began, self.is_bad) = (Some(Vec::new()), self.seen, false),
                (true, TERMINATE) => received = self.frame.take().map(|bytes| self.end(bytes)),
                (true, IDLE) => self.frame = None,
                (true, _) => self.is_bad = true,
                (false, _) => self.frame.iter_mut().for_each(|bytes| bytes.push(byte)),
            }
            self.seen += 1;
        }
        received
    }

    fn end(&self, mut bytes: Vec<u8>) -> Received {
        let fcs = bytes.split_off(bytes.len().saturating_sub(4));
        let frame = bytes.split_off(bytes.len().min(7));
        let is_bad = self.is_bad || fcs != check(&frame);
        Received { bytes: frame, at: (self.began, self.seen), is_bad }
    }
}
