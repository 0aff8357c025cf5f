//! Where frames go that go nowhere: counted by port, and summed up so that their bytes can be checked.

use std::collections::BTreeMap;

/// The CRC of IEEE 802.3, as zlib computes it.
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// What came out of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sink {
    ports: BTreeMap<u32, Taken>,
    digest: u32,
}

/// What came out of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Frames.
    pub frames: u64,
    /// Their bytes, without check sequences.
    pub bytes: u64,
}

impl Sink {
    /// Takes a frame that left by a port.
    pub fn take(&mut self, port: u32, frame: &[u8]) {
        let taken = self.ports.entry(port).or_default();
        taken.frames += 1;
        taken.bytes += frame.len() as u64;
        self.digest = self.digest.wrapping_add(frame_digest(port, frame));
    }

    /// What came out, by port.
    pub fn ports(&self) -> impl Iterator<Item = (u32, Taken)> {
        self.ports.iter().map(|(port, taken)| (*port, *taken))
    }

    /// Frames of all ports.
    pub fn frames(&self) -> u64 {
        self.ports.values().map(|taken| taken.frames).sum()
    }

    /// The sum modulo 2^32 of the CRC-32 of each frame, started from its port: the order of frames does not matter, any
    /// other difference almost surely does.
    pub fn digest(&self) -> u32 {
        self.digest
    }

    /// Adds what another sink took.
    pub fn add(&mut self, other: &Sink) {
        for (port, taken) in other.ports() {
            let mine = self.ports.entry(port).or_default();
            mine.frames += taken.frames;
            mine.bytes += taken.bytes;
        }
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

/// zlib's `crc32(port, frame)`.
pub fn frame_digest(port: u32, frame: &[u8]) -> u32 {
    // The register starts inverted, and the other way round than zlib holds it.
    let mut digest = CRC.digest_with_initial((!port).reverse_bits());
    digest.update(frame);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_zlibs_crc_started_from_the_port() {
        // The check value of the CRC catalogue, and Python's zlib.crc32(b"abc", 7).
        assert_eq!(frame_digest(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(frame_digest(7, b"abc"), ABC_FROM_7);
    }

    const ABC_FROM_7: u32 = 0x306b5747;

    #[test]
    fn ports_are_counted_apart() {
        let (mut one, mut other) = (Sink::default(), Sink::default());
        one.take(1, b"abc");
        other.take(2, b"de");
        other.take(1, b"f");
        one.add(&other);
        assert_eq!(
            one.ports().collect::<Vec<_>>(),
            [(1, Taken { frames: 2, bytes: 4 }), (2, Taken { frames: 1, bytes: 2 })]
        );
        assert_eq!(one.frames(), 3);
        let sum = [(1, &b"abc"[..]), (2, b"de"), (1, b"f")].map(|(port, frame)| frame_digest(port, frame));
        assert_eq!(one.digest(), sum.iter().fold(0, |sum: u32, crc| sum.wrapping_add(*crc)));
    }
}
