//! A CRC with a table for each of sixteen places of a byte.
//!
//! Table `n` says what a byte adds to the remainder when `n` more bytes follow it. So all bytes of a chunk are looked up
//! concurrently and their sum is the new remainder; with one table, each byte would wait for the one before. The first bytes of
//! a chunk meet the bytes of the remainder. After chunks of sixteen bytes come one of eight, four, two and one as the length has
//! them, which take that many tables: a key of a flow, such as the 13 bytes of addresses, ports and protocol, is three steps.

use std::ops::BitXor;

/// What a byte adds, by how many bytes follow it.
pub(super) type Tables<W> = [[W; 256]; 16];

/// A remainder.
pub(super) trait Remainder: Copy + BitXor<Output = Self> {
    const BYTES: usize;
    /// The byte that meets byte `at` of the data, which is below [`Remainder::BYTES`].
    fn byte<const REFLECTED: bool>(self, at: usize) -> u8;
    /// What is left when it has met so many bytes.
    fn after<const REFLECTED: bool>(self, bytes: usize) -> Self;
}

macro_rules! remainder {
    ($($word:ty)*) => {$(
        impl Remainder for $word {
            const BYTES: usize = size_of::<$word>();

            #[inline(always)]
            fn byte<const REFLECTED: bool>(self, at: usize) -> u8 {
                let at = if REFLECTED { at } else { Self::BYTES - 1 - at };
                (self >> (8 * at)) as u8
            }

            #[inline(always)]
            fn after<const REFLECTED: bool>(self, bytes: usize) -> $word {
                let bits = 8 * bytes as u32;
                let left = if REFLECTED { self.checked_shr(bits) } else { self.checked_shl(bits) };
                left.unwrap_or(0)
            }
        }
    )*};
}

remainder!(u16 u32);

/// The remainder of data. `REFLECTED`: the lowest bit of each byte comes first, and that of the remainder is its highest power.
#[inline(always)]
pub(super) fn remainder<W: Remainder, const REFLECTED: bool>(
    tables: &Tables<W>,
    initial: W,
    data: &[u8],
) -> W {
    let (whole, mut last) = data.as_chunks::<16>();
    let mut rest = whole.iter().fold(initial, |rest, chunk| step::<W, REFLECTED, 16>(tables, rest, chunk));
    macro_rules! last {
        ($($bytes:literal)*) => {$(
            if let Some((chunk, after)) = last.split_first_chunk() {
                (rest, last) = (step::<W, REFLECTED, $bytes>(tables, rest, chunk), after);
            }
        )*};
    }
    last!(8 4 2);
    match last.first_chunk() {
        Some(chunk) => step::<W, REFLECTED, 1>(tables, rest, chunk),
        None => rest,
    }
}

/// The remainder after `N` bytes more. The number is known when this is compiled, so that no loop is left.
#[inline(always)]
fn step<W: Remainder, const REFLECTED: bool, const N: usize>(
    tables: &Tables<W>,
    rest: W,
    chunk: &[u8; N],
) -> W {
    let mut sum = rest.after::<REFLECTED>(N);
    for at in 0..N {
        let met = if at < W::BYTES { rest.byte::<REFLECTED>(at) } else { 0 };
        sum = sum ^ tables[N - 1 - at][usize::from(chunk[at] ^ met)];
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Next to the library whose tables these are, for every length of a last chunk, after up to three whole ones.
    #[test]
    fn equal_to_the_library_for_all_lengths() {
        let data: Vec<u8> = (0..64u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let arc = crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_16_ARC);
        let ccitt = crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_16_IBM_3740);
        let iso = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISO_HDLC);
        for length in 0..=data.len() {
            let data = &data[data.len() - length..];
            assert_eq!(remainder::<u16, true>(arc.table(), 0, data), arc.checksum(data), "{length}");
            assert_eq!(
                remainder::<u16, false>(ccitt.table(), 0xffff, data),
                ccitt.checksum(data),
                "{length}"
            );
            assert_eq!(!remainder::<u32, true>(iso.table(), !0, data), iso.checksum(data), "{length}");
        }
    }
}
