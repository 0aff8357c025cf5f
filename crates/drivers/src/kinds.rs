//! Frames by who they are for and by how long they are, as RMON has them (RFC 2819, `etherStatsTable`).

use std::ops::{AddAssign, SubAssign};

/// The ranges of sizes by name, as [`FrameKinds::sizes`] counts them. A size is that on a cable, so with the check sequence.
pub const SIZES: [&str; 8] =
    ["0-63", "64", "65-127", "128-255", "256-511", "512-1023", "1024-1518", "1519-max"];

/// Bytes of the check sequence, which a frame in memory does not have.
pub const CHECK_SEQUENCE: usize = 4;

/// The longest frame of Ethernet without a tag, with its check sequence.
const LONGEST_USUAL: usize = 1518;

/// Frames of one direction by kind. Each frame is in one range of sizes, and is for one address, a group of them or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameKinds {
    /// Frames to a group address that is not the broadcast address.
    pub multicast: u64,
    /// Frames to the broadcast address.
    pub broadcast: u64,
    /// Frames by size, in the ranges of [`SIZES`].
    pub sizes: [u64; SIZES.len()],
}

impl FrameKinds {
    /// All frames.
    pub fn frames(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// Frames to the address of one station. A frame without a byte is for nobody in particular, and counted here.
    pub fn unicast(&self) -> u64 {
        self.frames().saturating_sub(self.multicast + self.broadcast)
    }

    /// Counts a frame, which is without its check sequence.
    #[inline]
    pub fn count(&mut self, frame: &[u8]) {
        self.add(Kind::of(frame));
    }

    /// Counts a frame that was looked at before.
    #[inline]
    pub(crate) fn add(&mut self, kind: Kind) {
        self.sizes[kind.range & (SIZES.len() - 1)] += 1;
        match kind.to {
            To::One => {}
            To::Group => self.multicast += 1,
            To::All => self.broadcast += 1,
        }
    }
}

/// How a frame is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    range: usize,
    to: To,
}

#[derive(Clone, Copy, Debug)]
enum To {
    One,
    Group,
    All,
}

impl Kind {
    /// That of a frame without its check sequence.
    #[inline]
    pub(crate) fn of(frame: &[u8]) -> Kind {
        // The first bit on the cable says that the address is one of a group.
        let to = match frame.first() {
            Some(byte) if byte & 1 == 1 => {
                if frame.starts_with(&[0xff; 6]) {
                    To::All
                } else {
                    To::Group
                }
            }
            _ => To::One,
        };
        Kind { range: range_of(frame.len()), to }
    }
}

/// The range of sizes that a frame of so many bytes, without its check sequence, is in.
#[inline]
fn range_of(length: usize) -> usize {
    let size = length + CHECK_SEQUENCE;
    // Bits that the size takes: 7 for 64 to 127, 8 for 128 to 255, up to 11 for 1024 to 2047.
    let bits = (usize::BITS - size.leading_zeros()) as usize;
    match size {
        0..64 => 0,
        // 64 is a range of its own.
        64..=LONGEST_USUAL => (bits - 5 - usize::from(size == 64)).min(SIZES.len() - 2),
        _ => SIZES.len() - 1,
    }
}

impl AddAssign for FrameKinds {
    fn add_assign(&mut self, other: FrameKinds) {
        self.multicast += other.multicast;
        self.broadcast += other.broadcast;
        self.sizes.iter_mut().zip(other.sizes).for_each(|(count, more)| *count += more);
    }
}

impl SubAssign for FrameKinds {
    fn sub_assign(&mut self, other: FrameKinds) {
        self.multicast = self.multicast.saturating_sub(other.multicast);
        self.broadcast = self.broadcast.saturating_sub(other.broadcast);
        self.sizes.iter_mut().zip(other.sizes).for_each(|(count, less)| *count = count.saturating_sub(less));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_rfc_2819_with_the_check_sequence() {
        // Bytes in memory, and the range of four more.
        for (length, range) in [
            (0, "0-63"),
            (59, "0-63"),
            (60, "64"),
            (61, "65-127"),
            (123, "65-127"),
            (124, "128-255"),
            (251, "128-255"),
            (252, "256-511"),
            (507, "256-511"),
            (508, "512-1023"),
            (1019, "512-1023"),
            (1020, "1024-1518"),
            (1514, "1024-1518"),
            (1515, "1519-max"),
            (2044, "1519-max"),
            (9216, "1519-max"),
        ] {
            let mut kinds = FrameKinds::default();
            kinds.count(&vec![0; length]);
            let counted: Vec<&str> = SIZES
                .iter()
                .zip(kinds.sizes)
                .filter(|(_, count)| *count == 1)
                .map(|(name, _)| *name)
                .collect();
            assert_eq!(counted, [range], "{length}");
        }
    }

    #[test]
    fn a_frame_is_for_one_for_a_group_or_for_all() {
        let mut kinds = FrameKinds::default();
        for start in [
            &[2, 0, 0, 0, 0, 1][..],
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[],
            &[1, 0, 0x5e, 0, 0, 1],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
            &[0xff, 0xff],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            kinds.count(start);
        }
        assert_eq!((kinds.unicast(), kinds.multicast, kinds.broadcast, kinds.frames()), (3, 3, 1, 7));
        let mut twice = kinds;
        twice += kinds;
        assert_eq!((twice.frames(), twice.broadcast), (14, 2));
        twice -= kinds;
        assert_eq!(twice, kinds);
    }
}
