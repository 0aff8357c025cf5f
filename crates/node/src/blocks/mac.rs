//! A port to the outside.

use super::register::{RMON, half};
use crate::interface::Item;
use crate::limits::{MAX_FRAME, MAX_TO_SEND};
use crate::model::MacSpec;
use std::collections::VecDeque;

/// Counters of frames in one direction, as RMON (RFC 2819) has them: sizes with the check sequence of 4 bytes, which no frame here has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rmon([u64; RMON.len()]);

impl Rmon {
    /// Counts a frame.
    pub fn count(&mut self, frame: &[u8]) {
        const CHECK_SEQUENCE: usize = 4;
        let wire = frame.len() + CHECK_SEQUENCE;
        let kind = match frame.get(..6) {
            Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => 4,
            Some([first, ..]) if first & 1 == 1 => 3,
            _ => 2,
        };
        let size = match wire {
            0..=64 => 5,
            65..=127 => 6,
            128..=255 => 7,
            256..=511 => 8,
            512..=1023 => 9,
            1024..=1518 => 10,
            _ => 11,
        };
        for (counter, by) in [(0, 1), (1, wire as u64), (kind, 1), (size, 1)] {
            self.0[counter] = self.0[counter].wrapping_add(by);
        }
    }

    /// A counter by its name in the register map.
    pub fn get(&self, name: &str) -> Option<u64> {
        RMON.iter().position(|known| *known == name).map(|at| self.0[at])
    }
}

/// A MAC: lets frames in and out, and counts them. Who drives it gives it what has come and takes what is to be sent.
#[derive(Clone, Debug)]
pub struct Mac {
    spec: MacSpec,
    up: bool,
    promiscuous: bool,
    to_send: VecDeque<Vec<u8>>,
    received: Rmon,
    sent: Rmon,
    filtered: u64,
    came_while_down: u64,
    left_while_down: u64,
    lost: u64,
}

impl Mac {
    /// A MAC as the file has it.
    pub fn new(spec: &MacSpec) -> Mac {
        Mac {
            up: spec.up,
            promiscuous: spec.address.is_none(),
            spec: spec.clone(),
            to_send: VecDeque::new(),
            received: Rmon::default(),
            sent: Rmon::default(),
            filtered: 0,
            came_while_down: 0,
            left_while_down: 0,
            lost: 0,
        }
    }

    /// A frame has come; what goes on of it.
    pub fn receive(&mut self, frame: &[u8]) -> Option<Item> {
        if !self.up {
            self.came_while_down += 1;
            return None;
        }
        if frame.len() > MAX_FRAME {
            self.filtered += 1;
            return None;
        }
        self.received.count(frame);
        let is_for_one = frame.first().is_some_and(|first| first & 1 == 0);
        let is_own = self.spec.address.is_none_or(|own| frame.get(..6) == Some(&own[..]));
        if is_for_one && !is_own && !self.promiscuous {
            self.filtered += 1;
            return None;
        }
        let mut item = Item { bytes: frame.to_vec(), ..Item::default() };
        item.facts.port = self.spec.port;
        Some(item)
    }

    /// Whether it takes another frame to send. While it is down it takes frames, which are lost.
    pub fn has_room(&self) -> bool {
        self.to_send.len() < MAX_TO_SEND
    }

    /// A frame is to be sent. What nobody asked for has room or is lost.
    pub fn send(&mut self, frame: Vec<u8>) {
        if !self.up {
            self.left_while_down += 1;
        } else if self.has_room() {
            self.to_send.push_back(frame);
        } else {
            self.lost += 1;
        }
    }

    /// The next frame that leaves; it counts as sent.
    pub fn leave(&mut self) -> Option<Vec<u8>> {
        let frame = self.to_send.pop_front()?;
        self.sent.count(&frame);
        Some(frame)
    }

    /// A frame that was taken could not be sent after all.
    pub fn lose(&mut self) {
        self.lost += 1;
    }

    /// The number of its port.
    pub fn port(&self) -> u16 {
        self.spec.port
    }

    /// What it is connected to.
    pub fn attach(&self) -> Option<&str> {
        self.spec.attach.as_deref()
    }

    /// What it has received and sent.
    pub fn counts(&self) -> (Rmon, Rmon) {
        (self.received, self.sent)
    }

    /// Takes it up or down; down, what waits to be sent is lost.
    pub fn set_up(&mut self, up: bool) {
        if !up {
            self.left_while_down += self.to_send.len() as u64;
            self.to_send.clear();
        }
        self.up = up;
    }

    pub(crate) fn set_promiscuous(&mut self, promiscuous: bool) {
        self.promiscuous = promiscuous;
    }

    pub(crate) fn read(&self, word: u32) -> u32 {
        match word {
            0 => u32::from(self.up),
            1 => u32::from(self.promiscuous),
            2 | 3 => half(self.filtered, word),
            4 | 5 => half(self.came_while_down, word),
            6 | 7 => half(self.left_while_down, word),
            8 | 9 => half(self.lost, word),
            16..40 => half(self.received.0[(word as usize - 16) / 2], word),
            48..72 => half(self.sent.0[(word as usize - 48) / 2], word),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![0; length];
        frame[..6].copy_from_slice(&[first, 0, 0, 0, 0, 9]);
        frame
    }

    #[test]
    fn frames_to_others_are_left_out_and_all_are_counted() {
        let spec = MacSpec { port: 7, address: Some([2, 0, 0, 0, 0, 9]), ..MacSpec::default() };
        let mut mac = Mac::new(&spec);
        assert_eq!(mac.receive(&frame(2, 60)).unwrap().facts.port, 7);
        assert!(mac.receive(&frame(4, 61)).is_none() && mac.receive(&frame(1, 1514)).is_some());
        assert!(mac.receive(&[0xff; 1515]).is_some() && mac.receive(&vec![2; MAX_FRAME + 1]).is_none());
        let (received, _) = mac.counts();
        let counted = |name| received.get(name).unwrap();
        assert_eq!([counted("frames"), counted("octets")], [4, 64 + 65 + 1518 + 1519]);
        assert_eq!(["unicast", "multicast", "broadcast"].map(counted), [2, 1, 1]);
        assert_eq!(["size64", "size65", "size1024", "size1519"].map(counted), [1, 1, 1, 1]);
        assert_eq!([mac.read(2), mac.read(16), mac.read(18)], [2, 4, 64 + 65 + 1518 + 1519]);
        mac.set_promiscuous(true);
        assert!(mac.receive(&frame(4, 60)).is_some());
    }

    #[test]
    fn a_mac_that_is_down_lets_nothing_through() {
        let mut mac = Mac::new(&MacSpec::default());
        (0..MAX_TO_SEND + 2).for_each(|_| mac.send(frame(2, 60)));
        assert!(!mac.has_room() && mac.leave().is_some());
        mac.set_up(false);
        mac.send(frame(2, 60));
        assert!(mac.receive(&frame(2, 60)).is_none() && mac.leave().is_none());
        assert_eq!([0, 4, 6, 8].map(|word| mac.read(word)), [0, 1, MAX_TO_SEND as u32, 2]);
        mac.set_up(true);
        assert!(mac.receive(&frame(2, 60)).is_some());
    }
}
