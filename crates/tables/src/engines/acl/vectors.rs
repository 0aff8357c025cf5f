//! The vector instructions of x86-64.

use super::*;
use std::arch::x86_64::*;

/// # Safety
/// The machine has what [`Simd::Avx512`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn avx512(version: &Version, keys: &[u64], out: &mut [u32]) {
    staged::<Avx512>(version, keys, out);
}

/// # Safety
/// The machine has what [`Simd::Avx2`] says.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn avx2(version: &Version, keys: &[u64], out: &mut [u32]) {
    staged::<Avx2>(version, keys, out);
}

/// The first bit of two limbs, or 128.
///
/// # Safety
/// The machine has SSE4.1 and BMI.
#[inline(always)]
unsafe fn first_of_two(all: __m128i) -> usize {
    // SAFETY: as the caller says.
    let (low, high) = unsafe { (_mm_cvtsi128_si64(all), _mm_extract_epi64::<1>(all)) };
    let (low, high) = (low.trailing_zeros(), high.trailing_zeros());
    (if low < 64 { low } else { 64 + high }) as usize
}

struct Avx512;

impl Vectors for Avx512 {
    #[inline(always)]
    unsafe fn less(line: &Line, value: u32) -> usize {
        // SAFETY: a line has 64 bytes, and the caller is compiled for AVX-512.
        let less = unsafe {
            let bounds = _mm512_load_si512(line.0.as_ptr().cast());
            _mm512_cmplt_epu32_mask(bounds, _mm512_set1_epi32(value as i32))
        };
        less.count_ones() as usize
    }

    #[inline(always)]
    unsafe fn first<const WORDS: usize>(count: usize, row: impl Fn(usize) -> *const u64) -> usize {
        // SAFETY: rows have so many limbs and are aligned, and the caller is compiled for AVX-512.
        unsafe {
            match WORDS {
                2 => {
                    let and = |all, axis| _mm_and_si128(all, _mm_load_si128(row(axis).cast()));
                    first_of_two((1..count).fold(_mm_load_si128(row(0).cast()), and))
                }
                4 => {
                    let and = |all, axis| _mm256_and_si256(all, _mm256_load_si256(row(axis).cast()));
                    let all = (1..count).fold(_mm256_load_si256(row(0).cast()), and);
                    let limbs = _mm256_test_epi64_mask(all, all);
                    let packed = _mm256_castsi256_si128(_mm256_maskz_compress_epi64(limbs, all));
                    let limb = (u32::from(limbs) | 1 << 4).trailing_zeros();
                    let bit = _mm_cvtsi128_si64(packed).trailing_zeros();
                    (limb * 64 + bit).min(256) as usize
                }
                _ => {
                    let line = |at: usize| {
                        let load = |axis| _mm512_load_si512(row(axis).add(at).cast());
                        (1..count).fold(load(0), |all, axis| _mm512_and_si512(all, load(axis)))
                    };
                    let (mut all, mut before) = (line(0), 0);
                    let mut limbs = _mm512_test_epi64_mask(all, all);
                    if WORDS == 16 {
                        // Either half may hold the first bit: a branch would be taken at random.
                        let low_is_empty = u8::from(limbs == 0);
                        let high = line(8);
                        all = _mm512_mask_mov_epi64(all, 0u8.wrapping_sub(low_is_empty), high);
                        limbs = _mm512_test_epi64_mask(all, all);
                        before = u32::from(low_is_empty) * 512;
                    }
                    let packed = _mm512_castsi512_si128(_mm512_maskz_compress_epi64(limbs, all));
                    let limb = (u32::from(limbs) | 1 << 8).trailing_zeros();
                    let bit = _mm_cvtsi128_si64(packed).trailing_zeros();
                    (before + limb * 64 + bit).min(WORDS as u32 * 64) as usize
                }
            }
        }
    }
}

struct Avx2;

impl Vectors for Avx2 {
    #[inline(always)]
    unsafe fn less(line: &Line, value: u32) -> usize {
        // SAFETY: a line has 64 bytes, and the caller is compiled for AVX2.
        let less = unsafe {
            let sign = _mm256_set1_epi32(i32::MIN);
            let value = _mm256_set1_epi32((value ^ 1 << 31) as i32);
            let eight = |at: usize| {
                let bounds = _mm256_xor_si256(_mm256_load_si256(line.0.as_ptr().add(at).cast()), sign);
                _mm256_cmpgt_epi32(value, bounds)
            };
            // Lanes are 0 or -1: packed to 16 bits and then to bytes, one bit each.
            let both = _mm256_packs_epi32(eight(0), eight(8));
            _mm256_movemask_epi8(both) as u32
        };
        less.count_ones() as usize / 2
    }

    #[inline(always)]
    unsafe fn first<const WORDS: usize>(count: usize, row: impl Fn(usize) -> *const u64) -> usize {
        // SAFETY: rows have so many limbs and are aligned, and the caller is compiled for AVX2.
        unsafe {
            if WORDS == 2 {
                let and = |all, axis| _mm_and_si128(all, _mm_load_si128(row(axis).cast()));
                return first_of_two((1..count).fold(_mm_load_si128(row(0).cast()), and));
            }
            for at in (0..WORDS).step_by(4) {
                let load = |axis| _mm256_load_si256(row(axis).add(at).cast());
                let all = (1..count).fold(load(0), |all, axis| _mm256_and_si256(all, load(axis)));
                let empty = _mm256_cmpeq_epi64(all, _mm256_setzero_si256());
                let empty = _mm256_movemask_pd(_mm256_castsi256_pd(empty)) as u32;
                if empty != 0xf {
                    let mut limbs = [0u64; 4];
                    _mm256_storeu_si256(limbs.as_mut_ptr().cast(), all);
                    let limb = (!empty).trailing_zeros() as usize & 3;
                    return (at + limb) * 64 + limbs[limb].trailing_zeros() as usize;
                }
            }
            WORDS * 64
        }
    }
}
