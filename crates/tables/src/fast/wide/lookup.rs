//! Looking up a batch: all keys go down a level, each asking for the lines of its next, before any goes further.

use super::chunk::{CHILD_INNER, WIDE_NODE};
use super::{ARRAY, INNER, LEAF, Link, RESULT, SUB, Shared, TAG, area::Array};
use crate::fast::simd::{Simd, prefetch};
use std::sync::atomic::Ordering;

/// Keys under way at once.
const BATCH: usize = 64;

/// Digit `at` of a key, counted from the most significant.
#[inline(always)]
pub(super) fn digit(key: &[u64], align: u32, at: usize) -> u64 {
    let Some(limb) = key.len().checked_sub(at + 1) else { return 0 };
    let high = key[limb] << align;
    if align == 0 || limb == 0 { high } else { high | key[limb - 1] >> (64 - align) }
}

pub(super) fn batch(simd: Simd, shared: &Shared, keys: &[u64], out: &mut [u32]) {
    let whole = (keys.len() / shared.limbs).min(out.len());
    let (out, absent) = out.split_at_mut(whole);
    absent.fill(0);
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a reader's level is no more than the machine has.
        Simd::Avx512 => unsafe { x86::avx512(shared, keys, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Simd::Avx2 => unsafe { x86::avx2(shared, keys, out) },
        _ => staged::<Scalar>(shared, keys, out),
    }
}

/// Counts boundaries that are less than a key.
trait Search {
    /// # Safety
    /// `line` is the address of a leaf.
    unsafe fn leaf(line: *const u64, digit: u64) -> usize;

    /// # Safety
    /// `node` is the address of a narrow inner node.
    unsafe fn narrow(node: *const u64, key: u32) -> usize;

    /// # Safety
    /// `node` is the address of a wide inner node.
    unsafe fn wide(node: *const u64, digit: u64) -> usize;
}

#[derive(Clone, Copy)]
struct Way {
    link: Link,
    digit: u64,
    at: u32,
}

#[inline(always)]
fn staged<S: Search>(shared: &Shared, keys: &[u64], out: &mut [u32]) {
    let root = Link(shared.root.load(Ordering::Acquire));
    for (keys, out) in keys.chunks(BATCH * shared.limbs).zip(out.chunks_mut(BATCH)) {
        let mut ways = [Way { link: root, digit: 0, at: 0 }; BATCH];
        let mut active = [0u8; BATCH];
        for (at, key) in keys.chunks_exact(shared.limbs).enumerate().take(out.len()) {
            ways[at].digit = digit(key, shared.align, 0);
            active[at] = at as u8;
            // SAFETY: what a link leads to is valid until the worker's next quiescent point.
            unsafe { ask_for(root, ways[at].digit) };
        }
        let mut count = out.len();
        while count > 0 {
            let mut left = 0;
            for turn in 0..count {
                let at = active[turn] as usize % BATCH;
                let way = &mut ways[at];
                // SAFETY: as above.
                let link = unsafe { step::<S>(way.link, way.digit) };
                way.link = match link {
                    Step::To(link) => link,
                    Step::Sub(number) => {
                        way.at += 1;
                        let start = at * shared.limbs;
                        let key = &keys[start..start + shared.limbs];
                        way.digit = digit(key, shared.align, way.at as usize);
                        // SAFETY: the writer gives out numbers below the length.
                        Link(unsafe { shared.subs.get_unchecked(number as usize) }.load(Ordering::Acquire))
                    }
                };
                out[at] = (way.link.0 >> 2) as u32;
                active[left] = at as u8;
                left += usize::from(way.link.0 & TAG != RESULT);
                // SAFETY: as above.
                unsafe { ask_for(way.link, way.digit) };
            }
            count = left;
        }
    }
}

/// # Safety
/// The link was loaded from a live table since the worker's last quiescent point.
#[inline(always)]
unsafe fn ask_for(link: Link, digit: u64) {
    let address = (link.0 & !TAG) as *const u64;
    if link.0 & TAG == ARRAY {
        // SAFETY: the link is to an array.
        let array = unsafe { &*address.cast::<Array>() };
        prefetch(array.links.as_ptr().wrapping_add((digit >> array.shift & array.mask) as usize));
    } else {
        // A leaf's next line is wasted, but there is no branch.
        prefetch(address);
        prefetch(address.wrapping_add(8 * usize::from(link.0 & TAG == INNER)));
    }
}

enum Step {
    To(Link),
    Sub(u32),
}

/// # Safety
/// As for [`ask_for`].
#[inline(always)]
unsafe fn step<S: Search>(link: Link, digit: u64) -> Step {
    let address = (link.0 & !TAG) as *const u64;
    // SAFETY: the tag says what lies at the address, laid out as `chunk` documents.
    unsafe {
        match link.0 & TAG {
            INNER => {
                let info = *address.add(15);
                let (first, flags) = (info as u32, (info >> 32) as u32);
                let rank = if flags & WIDE_NODE == 0 {
                    S::narrow(address, (digit >> (flags & 0xff)) as u32)
                } else {
                    S::wide(address, digit)
                };
                let inner = usize::from(flags & CHILD_INNER != 0);
                let child = address.add((first as usize + (rank << inner)) * 8) as u64;
                Step::To(Link(child | (LEAF + inner as u64)))
            }
            LEAF => {
                let rank = S::leaf(address, digit);
                let value = *address.add(5).cast::<u32>().add(rank);
                if value & SUB == 0 { Step::To(Link::result(value)) } else { Step::Sub(value & !SUB) }
            }
            ARRAY => {
                let array = &*address.cast::<Array>();
                let slot = (digit >> array.shift & array.mask) as usize;
                Step::To(Link(array.links.get_unchecked(slot).load(Ordering::Acquire)))
            }
            _ => Step::To(link),
        }
    }
}

/// One boundary at a time; the compiler makes vectors of it where the machine has them for all code.
struct Scalar;

impl Search for Scalar {
    #[inline(always)]
    unsafe fn leaf(line: *const u64, digit: u64) -> usize {
        // SAFETY: a leaf has five boundaries.
        let bounds = unsafe { &*line.cast::<[u64; 5]>() };
        bounds.iter().map(|bound| usize::from(*bound < digit)).sum()
    }

    #[inline(always)]
    unsafe fn narrow(node: *const u64, key: u32) -> usize {
        // SAFETY: a narrow node has thirty boundaries.
        let bounds = unsafe { &*node.cast::<[u32; 30]>() };
        bounds.iter().map(|bound| u32::from(*bound < key)).sum::<u32>() as usize
    }

    #[inline(always)]
    unsafe fn wide(node: *const u64, digit: u64) -> usize {
        // SAFETY: a wide node has fifteen boundaries.
        let bounds = unsafe { &*node.cast::<[u64; 15]>() };
        bounds.iter().map(|bound| usize::from(*bound < digit)).sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// # Safety
    /// The machine has what [`Simd::Avx512`] says.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx512(shared: &Shared, keys: &[u64], out: &mut [u32]) {
        staged::<Avx512>(shared, keys, out);
    }

    /// # Safety
    /// The machine has what [`Simd::Avx2`] says.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx2(shared: &Shared, keys: &[u64], out: &mut [u32]) {
        staged::<Avx2>(shared, keys, out);
    }

    struct Avx512;

    impl Search for Avx512 {
        #[inline(always)]
        unsafe fn leaf(line: *const u64, digit: u64) -> usize {
            // SAFETY: a leaf has 64 bytes, and the caller is compiled for AVX-512.
            let less = unsafe {
                _mm512_cmplt_epu64_mask(_mm512_load_si512(line.cast()), _mm512_set1_epi64(digit as i64))
            };
            (less & 0x1f).count_ones() as usize
        }

        #[inline(always)]
        unsafe fn narrow(node: *const u64, key: u32) -> usize {
            // SAFETY: an inner node has 128 bytes; as above.
            let less = unsafe {
                let key = _mm512_set1_epi32(key as i32);
                let low = _mm512_cmplt_epu32_mask(_mm512_load_si512(node.cast()), key);
                let high = _mm512_cmplt_epu32_mask(_mm512_load_si512(node.add(8).cast()), key);
                u32::from(low) | u32::from(high & 0x3fff) << 16
            };
            less.count_ones() as usize
        }

        #[inline(always)]
        unsafe fn wide(node: *const u64, digit: u64) -> usize {
            // SAFETY: as above.
            let less = unsafe {
                let key = _mm512_set1_epi64(digit as i64);
                let low = _mm512_cmplt_epu64_mask(_mm512_load_si512(node.cast()), key);
                let high = _mm512_cmplt_epu64_mask(_mm512_load_si512(node.add(8).cast()), key);
                u32::from(low) | u32::from(high & 0x7f) << 8
            };
            less.count_ones() as usize
        }
    }

    struct Avx2;

    /// Bits of the lanes of four boundaries that are less than a key, both unsigned.
    ///
    /// # Safety
    /// The machine has AVX2, and 32 bytes lie there.
    #[inline(always)]
    unsafe fn less_of_four(bounds: *const u64, key: u64) -> u32 {
        // SAFETY: as the caller says.
        unsafe {
            let sign = _mm256_set1_epi64x(i64::MIN);
            let key = _mm256_set1_epi64x((key ^ 1 << 63) as i64);
            let bounds = _mm256_xor_si256(_mm256_loadu_si256(bounds.cast()), sign);
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(key, bounds))) as u32
        }
    }

    impl Search for Avx2 {
        #[inline(always)]
        unsafe fn leaf(line: *const u64, digit: u64) -> usize {
            // SAFETY: a leaf has five boundaries, and the caller is compiled for AVX2.
            unsafe { less_of_four(line, digit).count_ones() as usize + usize::from(*line.add(4) < digit) }
        }

        #[inline(always)]
        unsafe fn narrow(node: *const u64, key: u32) -> usize {
            // SAFETY: an inner node has 128 bytes; as above.
            let less = unsafe {
                let sign = _mm256_set1_epi32(i32::MIN);
                let key = _mm256_set1_epi32((key ^ 1 << 31) as i32);
                let eight = |at: usize| {
                    let bounds = _mm256_xor_si256(_mm256_load_si256(node.add(4 * at).cast()), sign);
                    let less = _mm256_cmpgt_epi32(key, bounds);
                    (_mm256_movemask_ps(_mm256_castsi256_ps(less)) as u32) << (8 * at)
                };
                eight(0) | eight(1) | eight(2) | eight(3)
            };
            (less & 0x3fff_ffff).count_ones() as usize
        }

        #[inline(always)]
        unsafe fn wide(node: *const u64, digit: u64) -> usize {
            // SAFETY: as above.
            let less = unsafe {
                let four = |at: usize| less_of_four(node.add(4 * at), digit) << (4 * at);
                four(0) | four(1) | four(2) | four(3)
            };
            (less & 0x7fff).count_ones() as usize
        }
    }
}
