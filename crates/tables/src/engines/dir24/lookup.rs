//! Looking up a batch. The loads of different keys are independent, so that many are under way at once. The fallback is loaded
//! after all words that it may stand for.

use super::words::{Array, Word, Words};
use crate::engines::simd::Simd;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "only AVX-512 has its own way"))]
pub(super) fn batch(simd: Simd, array: &Array, fallback: &AtomicU64, keys: &[u64], out: &mut [u32]) {
    match array {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a reader's level is no more than the machine has.
        Array::Byte(words) if simd == Simd::Avx512 => unsafe {
            avx512::batch::<_, 1>(words, fallback, keys, out)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Array::Narrow(words) if simd == Simd::Avx512 => unsafe {
            avx512::batch::<_, 2>(words, fallback, keys, out)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Array::Wide(words) if simd == Simd::Avx512 => unsafe {
            avx512::batch::<_, 4>(words, fallback, keys, out)
        },
        Array::Byte(words) => scalar(words, fallback, keys, out),
        Array::Narrow(words) => scalar(words, fallback, keys, out),
        Array::Wide(words) => scalar(words, fallback, keys, out),
    }
}

#[inline(always)]
fn scalar<T: Word>(words: &Words<T>, fallback: &AtomicU64, keys: &[u64], out: &mut [u32]) {
    let (flag, mut any) = (T::FLAG, 0);
    for (key, out) in keys.iter().zip(&mut *out) {
        // SAFETY: `first` has more words than the mask.
        *out = unsafe { words.first.get_unchecked((key >> words.low & words.mask) as usize) }.get();
        any |= *out;
    }
    if any & flag != 0 {
        let low = (1 << words.low) - 1;
        for (key, out) in keys.iter().zip(&mut *out) {
            if *out & flag != 0 {
                let at = (((*out & !flag) as usize) << words.low) + (key & low) as usize;
                *out = words.groups.get(at).map_or(0, Word::get);
            }
        }
    }
    let fallback = fallback.load(Ordering::Acquire) as u32;
    for (_, out) in keys.iter().zip(out) {
        *out = if *out == 0 { fallback } else { *out };
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::*;
    use std::arch::x86_64::*;
    use std::sync::atomic::fence;

    /// # Safety
    /// The machine has AVX-512 F, BW, DQ and VL; `BYTES` are those of a word.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn batch<T: Word, const BYTES: i32>(
        words: &Words<T>,
        fallback: &AtomicU64,
        keys: &[u64],
        out: &mut [u32],
    ) {
        const { assert!(BYTES as usize == size_of::<T>()) };
        let whole = keys.len().min(out.len()) / 8 * 8;
        let (shift, low) = (_mm_cvtsi32_si128(words.low as i32), _mm512_set1_epi64((1 << words.low) - 1));
        let mask = _mm512_set1_epi64(words.mask as i64);
        let flag = _mm256_set1_epi32(T::FLAG as i32);
        let bits = _mm256_set1_epi32((T::FLAG | (T::FLAG - 1)) as i32);
        for at in (0..whole).step_by(8) {
            // SAFETY: eight keys and results lie there. Indices are within the mask, and the array goes on beyond it
            // for a load of 32 bits. A flagged word names a group that exists, with room beyond the last. Gathered
            // words may be written meanwhile: each aligned word is loaded whole, and the part of the 32 bits that
            // belongs to the next words is thrown away.
            unsafe {
                let key = _mm512_loadu_si512(keys.as_ptr().add(at).cast());
                let index = _mm512_and_si512(_mm512_srl_epi64(key, shift), mask);
                let word = _mm512_i64gather_epi32::<BYTES>(index, words.first.as_ptr().cast());
                let mut word = _mm256_and_si256(word, bits);
                let flagged = _mm256_test_epi32_mask(word, flag);
                if flagged != 0 {
                    let group = _mm512_cvtepu32_epi64(_mm256_andnot_si256(flag, word));
                    let index = _mm512_add_epi64(_mm512_sll_epi64(group, shift), _mm512_and_si512(key, low));
                    let base = words.groups.as_ptr().cast();
                    word = _mm512_mask_i64gather_epi32::<BYTES>(word, flagged, index, base);
                    word = _mm256_and_si256(word, bits);
                }
                // The gathers come first: the processor keeps the order of loads, the fence has the compiler keep it.
                fence(Ordering::Acquire);
                let fallback = _mm256_set1_epi32(fallback.load(Ordering::Relaxed) as i32);
                word = _mm256_mask_mov_epi32(word, _mm256_testn_epi32_mask(word, word), fallback);
                _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), word);
            }
        }
        scalar(words, fallback, &keys[whole..], &mut out[whole..]);
    }
}
