//! What each hash and checksum algorithm computes, for every engine and for the control plane.

use crate::{Bits, HashAlgorithm};
use crc::{CRC_16_ARC, CRC_16_IBM_3740, CRC_32_ISO_HDLC, Crc};

const CRC32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
const CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_ARC);
const CRC_CCITT: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_3740);

impl HashAlgorithm {
    /// The bits of a result.
    pub fn width(self) -> u32 {
        match self {
            HashAlgorithm::Identity => 64,
            HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom => 32,
            _ => 16,
        }
    }

    /// The hash of bytes, a number of [`HashAlgorithm::width`] bits.
    pub fn compute(self, data: &[u8]) -> u64 {
        match self {
            // As bmv2: of longer data the first 8 bytes count.
            HashAlgorithm::Identity => data.iter().take(8).fold(0, |v, b| v << 8 | u64::from(*b)),
            HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom => u64::from(CRC32.checksum(data)),
            HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom => u64::from(CRC16.checksum(data)),
            HashAlgorithm::CrcCcitt => u64::from(CRC_CCITT.checksum(data)),
            HashAlgorithm::Csum16 => u64::from(!ones_complement_sum(data)),
            HashAlgorithm::Xor16 => u64::from(words(data).fold(0, |x, w| x ^ w)),
            HashAlgorithm::OnesComplementSum => u64::from(ones_complement_sum(data)),
        }
    }

    /// The hash of bytes, cut or zero-extended to `width` bits.
    pub fn compute_bits(self, data: &[u8], width: u32) -> Bits {
        Bits::new(width, u128::from(self.compute(data)))
    }
}

/// The one's complement sum of big-endian 16-bit words (RFC 1071), odd data padded with a zero byte.
pub fn ones_complement_sum(data: &[u8]) -> u16 {
    words(data).fold(0, |sum, word| {
        let (sum, carry) = sum.overflowing_add(word);
        // The end-around carry cannot overflow again: a sum that wrapped is at most 0xfffe.
        sum + u16::from(carry)
    })
}

fn words(data: &[u8]) -> impl Iterator<Item = u16> {
    data.chunks(2).map(|c| u16::from_be_bytes([c[0], c.get(1).copied().unwrap_or(0)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the CRC catalogue; the sums computed by hand from 3132 3334 3536 3738 3900.
    #[test]
    fn check_values() {
        let hash = |algorithm: HashAlgorithm| algorithm.compute(b"123456789");
        assert_eq!(hash(HashAlgorithm::Crc32), 0xcbf43926);
        assert_eq!(hash(HashAlgorithm::Crc32Custom), 0xcbf43926);
        assert_eq!(hash(HashAlgorithm::Crc16), 0xbb3d);
        assert_eq!(hash(HashAlgorithm::Crc16Custom), 0xbb3d);
        assert_eq!(hash(HashAlgorithm::CrcCcitt), 0x29b1);
        assert_eq!(hash(HashAlgorithm::OnesComplementSum), 0x09d5);
        assert_eq!(hash(HashAlgorithm::Csum16), 0xf62a);
        assert_eq!(hash(HashAlgorithm::Xor16), 0x3908);
        assert_eq!(hash(HashAlgorithm::Identity), 0x3132_3334_3536_3738);
    }

    /// The example of RFC 1071, section 3, and a known IPv4 header with its checksum 0xb861.
    #[test]
    fn internet_checksums() {
        let rfc = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(HashAlgorithm::OnesComplementSum.compute(&rfc), 0xddf2);
        assert_eq!(HashAlgorithm::Csum16.compute(&rfc), 0x220d);
        let mut ip = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01,
            0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(HashAlgorithm::Csum16.compute(&ip), 0xb861);
        (ip[10], ip[11]) = (0xb8, 0x61);
        assert_eq!(HashAlgorithm::Csum16.compute(&ip), 0);
    }

    #[test]
    fn edges() {
        assert_eq!(HashAlgorithm::Csum16.compute(&[]), 0xffff);
        assert_eq!(HashAlgorithm::OnesComplementSum.compute(&[0xff, 0xff, 0, 1]), 1);
        assert_eq!(HashAlgorithm::Identity.compute(&[]), 0);
        assert_eq!(HashAlgorithm::Identity.compute(&[1, 2]), 0x0102);
        assert_eq!(HashAlgorithm::Crc32.compute_bits(b"123456789", 8), Bits::new(8, 0x26));
        assert_eq!(HashAlgorithm::Crc16.compute_bits(b"123456789", 100), Bits::new(100, 0xbb3d));
        for a in HashAlgorithm::ALL {
            assert!(a.width() == 64 || a.compute(b"abc") >> a.width() == 0);
        }
    }
}
