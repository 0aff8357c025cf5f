//! What each hash and checksum algorithm computes, for every engine and for the control plane.

mod sliced;

use crate::{Bits, HashAlgorithm};
use crc::{CRC_16_ARC, CRC_16_IBM_3740, CRC_32_ISO_HDLC};
use sliced::remainder;

// Their tables; `sliced` takes 16 bytes at a time through them: keys of flows are about as long.
static CRC32: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&CRC_32_ISO_HDLC);
static CRC16: crc::Crc<u16, crc::Table<16>> = crc::Crc::<u16, crc::Table<16>>::new(&CRC_16_ARC);
static CRC_CCITT: crc::Crc<u16, crc::Table<16>> = crc::Crc::<u16, crc::Table<16>>::new(&CRC_16_IBM_3740);

/// What makes a CRC, as bmv2's `set_crc16_parameters` and `set_crc32_parameters` take it. Of 16 bits only the lower half of
/// each number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcParameters {
    /// 16 or 32 bits.
    pub width: CrcWidth,
    /// Without its highest power, the lowest in bit 0.
    pub polynomial: u32,
    /// What the remainder starts from.
    pub initial: u32,
    /// Added to the remainder in the end.
    pub final_xor: u32,
    /// The bits of each byte are taken from the lowest on.
    pub data_reflected: bool,
    /// The bits of the remainder are turned round in the end.
    pub remainder_reflected: bool,
}

/// The bits of a CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcWidth {
    /// 16.
    Sixteen,
    /// 32.
    ThirtyTwo,
}

/// A CRC, ready to be computed. (The `crc` crate wants parameters that live for ever.)
#[derive(Clone, Debug)]
pub struct Crc {
    parameters: CrcParameters,
    /// What a byte adds to the remainder that lies in the highest bits.
    table: Box<[u32; 256]>,
}

impl CrcParameters {
    /// The parameters of an algorithm that can have others.
    pub fn of(algorithm: HashAlgorithm) -> Option<CrcParameters> {
        let (width, polynomial, ends) = match algorithm {
            HashAlgorithm::Crc16Custom => (CrcWidth::Sixteen, 0x8005, 0),
            HashAlgorithm::Crc32Custom => (CrcWidth::ThirtyTwo, 0x04c1_1db7, 0xffff_ffff),
            _ => return None,
        };
        let (data_reflected, remainder_reflected) = (true, true);
        Some(CrcParameters {
            width,
            polynomial,
            initial: ends,
            final_xor: ends,
            data_reflected,
            remainder_reflected,
        })
    }
}

impl Crc {
    /// The CRC of these parameters.
    pub fn new(parameters: CrcParameters) -> Crc {
        let polynomial = parameters.polynomial << parameters.width.unused();
        let mut table = Box::new([0; 256]);
        for (byte, entry) in (0u32..).zip(table.iter_mut()) {
            *entry = (0..8).fold(byte << 24, |rest, _| match rest >> 31 {
                0 => rest << 1,
                _ => rest << 1 ^ polynomial,
            });
        }
        Crc { parameters, table }
    }

    /// The parameters.
    pub fn parameters(&self) -> CrcParameters {
        self.parameters
    }

    /// The CRC of bytes.
    pub fn compute(&self, data: &[u8]) -> u64 {
        let CrcParameters { width, initial, final_xor, data_reflected, remainder_reflected, .. } =
            self.parameters;
        let unused = width.unused();
        let rest = data.iter().fold(initial << unused, |rest, byte| {
            let byte = if data_reflected { byte.reverse_bits() } else { *byte };
            rest << 8 ^ self.table[usize::from((rest >> 24) as u8 ^ byte)]
        });
        let rest = if remainder_reflected { rest.reverse_bits() } else { rest >> unused };
        u64::from((rest ^ final_xor) & (u32::MAX >> unused))
    }
}

impl CrcWidth {
    /// The bits of a 32-bit number that are not of the CRC.
    fn unused(self) -> u32 {
        match self {
            CrcWidth::Sixteen => 16,
            CrcWidth::ThirtyTwo => 0,
        }
    }
}

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
            HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom => {
                u64::from(!remainder::<u32, true>(CRC32.table(), !0, data))
            }
            HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom => {
                u64::from(remainder::<u16, true>(CRC16.table(), 0, data))
            }
            HashAlgorithm::CrcCcitt => u64::from(remainder::<u16, false>(CRC_CCITT.table(), 0xffff, data)),
            HashAlgorithm::Csum16 => u64::from(!ones_complement_sum(data)),
            HashAlgorithm::Xor16 => u64::from(xor_of_words(data)),
            HashAlgorithm::OnesComplementSum => u64::from(ones_complement_sum(data)),
        }
    }

    /// The hash of bytes, cut or zero-extended to `width` bits.
    pub fn compute_bits(self, data: &[u8], width: u32) -> Bits {
        Bits::new(width, u128::from(self.compute(data)))
    }
}

/// The one's complement sum of big-endian 16-bit words (RFC 1071), odd data padded with a zero byte.
///
/// Words of 32 bits in the order of the machine have the same sum once it is folded, with its bytes swapped where the machine's are (section 2
/// there), and the processor adds many of them at a time. So many bytes that their sum does not fit 64 bits are 16 GiB.
pub fn ones_complement_sum(data: &[u8]) -> u16 {
    let (words, last) = words_of_32(data);
    let mut sum = words.iter().chain(&[last]).map(|word| u64::from(u32::from_ne_bytes(*word))).sum::<u64>();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::from_be(sum as u16)
}

/// The sum without carries of big-endian 16-bit words, odd data padded with a zero byte.
fn xor_of_words(data: &[u8]) -> u16 {
    let (words, last) = words_of_32(data);
    let all = words.iter().chain(&[last]).fold(0, |all, word| all ^ u32::from_ne_bytes(*word));
    u16::from_be((all >> 16 ^ all) as u16)
}

/// The words of four bytes, and what is left with zeros after it.
fn words_of_32(data: &[u8]) -> (&[[u8; 4]], [u8; 4]) {
    let (words, rest) = data.as_chunks();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    (words, last)
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

    /// Each CRC of 16 or 32 bits of the catalogue, by the check value that it has there.
    #[test]
    fn own_parameters() {
        let check = |width, polynomial, initial, final_xor, data_reflected, remainder_reflected| {
            let parameters =
                CrcParameters { width, polynomial, initial, final_xor, data_reflected, remainder_reflected };
            Crc::new(parameters).compute(b"123456789")
        };
        let mut seen = 0;
        macro_rules! catalogue {
            ($width:ident: $($name:ident)*) => {$(
                let a = crc::$name;
                let found = check(
                    CrcWidth::$width, a.poly.into(), a.init.into(), a.xorout.into(), a.refin, a.refout,
                );
                assert_eq!(found, u64::from(a.check), stringify!($name));
                seen += 1;
            )*};
        }
        catalogue!(Sixteen: CRC_16_ARC CRC_16_DECT_R CRC_16_DNP CRC_16_GENIBUS CRC_16_IBM_3740 CRC_16_IBM_SDLC
            CRC_16_KERMIT CRC_16_MAXIM_DOW CRC_16_MODBUS CRC_16_RIELLO CRC_16_T10_DIF CRC_16_TMS37157 CRC_16_USB CRC_16_XMODEM);
        catalogue!(ThirtyTwo: CRC_32_AIXM CRC_32_AUTOSAR CRC_32_BZIP2 CRC_32_CKSUM CRC_32_ISCSI CRC_32_ISO_HDLC
            CRC_32_JAMCRC CRC_32_MPEG_2 CRC_32_XFER);
        assert_eq!(seen, 23);
        // Turned round at one end only: what bits are turned is told apart.
        assert_eq!(check(CrcWidth::Sixteen, 0x1021, 0, 0, true, false), u64::from(0x2189u16.reverse_bits()));
    }

    #[test]
    fn own_hashes_start_as_their_algorithm() {
        for algorithm in HashAlgorithm::ALL {
            if let Some(parameters) = CrcParameters::of(*algorithm) {
                for data in [&b""[..], b"a", b"123456789"] {
                    assert_eq!(Crc::new(parameters).compute(data), algorithm.compute(data));
                }
            }
        }
        assert!(CrcParameters::of(HashAlgorithm::Crc32).is_none());
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

    /// Sums word by word, as RFC 1071 and bmv2 define them.
    #[test]
    fn sums_are_those_of_words() {
        let bytes: Vec<u8> = (0..200u32).map(|at| (at * at * 89 + 255 * (at % 3)) as u8).collect();
        for data in
            (0..bytes.len()).map(|length| &bytes[bytes.len() - length..]).chain([&[0xff; 64][..], &[0; 9]])
        {
            let words =
                data.chunks(2).map(|word| u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
            let carried = words.clone().fold(0u16, |sum, word| {
                let (sum, carry) = sum.overflowing_add(word);
                sum + u16::from(carry)
            });
            assert_eq!(HashAlgorithm::OnesComplementSum.compute(data), carried.into(), "{data:?}");
            assert_eq!(HashAlgorithm::Csum16.compute(data), (!carried).into(), "{data:?}");
            assert_eq!(
                HashAlgorithm::Xor16.compute(data),
                words.fold(0, |all, word| all ^ word).into(),
                "{data:?}"
            );
        }
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
