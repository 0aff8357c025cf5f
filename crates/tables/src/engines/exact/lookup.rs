//! Looking up a batch in stages: the lines of all keys are asked for, then compared.

use super::line::{Kind, Lines, SLOT_BITS};
use crate::engines::simd::{Simd, prefetch};

/// Keys under way at once.
const BATCH: usize = 64;

pub(super) fn batch(simd: Simd, lines: &Lines, keys: &[u64], out: &mut [u32]) {
    let limbs = lines.limbs();
    let whole = (keys.len() / limbs).min(out.len());
    let (out, absent) = out.split_at_mut(whole);
    absent.fill(0);
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a reader's level is no more than the machine has.
        Simd::Avx512 => unsafe { x86::avx512(lines, keys, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Simd::Avx2 => unsafe { x86::avx2(lines, keys, out) },
        _ => staged::<Scalar>(lines, keys, out),
    }
}

/// Compares a key with the slots of a line.
trait Compare {
    /// A bit for each slot whose key is this one, whether the slot is in use or not.
    ///
    /// # Safety
    /// `line` is the address of a line of keys of one limb.
    unsafe fn one(line: *const u8, key: u64) -> u32;

    /// The same for two limbs.
    ///
    /// # Safety
    /// `line` is the address of a line of keys of two limbs.
    unsafe fn two(line: *const u8, key: [u64; 2]) -> u32;

    /// The same for tags.
    ///
    /// # Safety
    /// `line` is the address of a line of tags.
    unsafe fn tags(line: *const u8, tag: u16) -> u32;

    /// The buckets of up to [`BATCH`] keys of one limb.
    ///
    /// # Safety
    /// The machine has what the level says.
    #[inline(always)]
    unsafe fn buckets(lines: &Lines, keys: &[u64], buckets: &mut [u32; BATCH]) {
        for (key, bucket) in keys.iter().zip(buckets) {
            *bucket = lines.place(&[*key]).0;
        }
    }
}

#[inline(always)]
fn staged<C: Compare>(lines: &Lines, keys: &[u64], out: &mut [u32]) {
    if let [out] = out {
        *out = single::<C>(lines, keys);
        return;
    }
    let limbs = lines.limbs();
    for (keys, out) in keys.chunks(BATCH * limbs).zip(out.chunks_mut(BATCH)) {
        match lines.kind() {
            Kind::One => {
                let mut bucket = [0u32; BATCH];
                // SAFETY: whoever chose the level knows the machine.
                unsafe { C::buckets(lines, keys, &mut bucket) };
                bucket[..keys.len()].iter().for_each(|bucket| prefetch(lines.address(*bucket)));
                for ((key, bucket), out) in keys.iter().zip(bucket).zip(out) {
                    // SAFETY: `walk` gives addresses of lines, and this table's keys have one limb.
                    *out = walk(lines, bucket, |line| unsafe { C::one(line, *key) });
                }
            }
            Kind::Two => {
                let (keys, _) = keys.as_chunks::<2>();
                let mut bucket = [0u32; BATCH];
                for (key, bucket) in keys.iter().zip(&mut bucket) {
                    *bucket = lines.place(key).0;
                    prefetch(lines.address(*bucket));
                }
                for ((key, bucket), out) in keys.iter().zip(bucket).zip(out) {
                    // SAFETY: `walk` gives addresses of lines, and this table's keys have two limbs.
                    *out = walk(lines, bucket, |line| unsafe { C::two(line, *key) });
                }
            }
            Kind::Tags(limbs) => wide::<C>(lines, limbs, keys, out),
        }
    }
}

/// One key: nothing else is under way, so nothing is set up for it. There are as many limbs as the table's keys have.
#[inline(always)]
fn single<C: Compare>(lines: &Lines, key: &[u64]) -> u32 {
    match (lines.kind(), key) {
        // SAFETY: `walk` gives addresses of lines, and this table's keys have one limb.
        (Kind::One, [key, ..]) => walk(lines, lines.place(&[*key]).0, |line| unsafe { C::one(line, *key) }),
        (Kind::Two, [low, high, ..]) => {
            let key = [*low, *high];
            // SAFETY: as above, two limbs.
            walk(lines, lines.place(&key).0, |line| unsafe { C::two(line, key) })
        }
        (Kind::Tags(limbs), _) => {
            let key = &key[..limbs];
            let place = lines.place(key);
            // SAFETY: the bucket is a line, and this table's lines hold tags.
            let equal = unsafe { tagged::<C>(lines, place.0, place.1) };
            walk_wide::<C>(lines, place, equal, key)
        }
        _ => 0,
    }
}

/// The result that a bucket has for the key that `compare` finds in a line.
#[inline(always)]
fn walk(lines: &Lines, bucket: u32, compare: impl Fn(*const u8) -> u32) -> u32 {
    let mut line = bucket;
    loop {
        let control = lines.control(line);
        let equal = compare(lines.address(line)) & control & ((1 << SLOT_BITS) - 1);
        if equal != 0 {
            return lines.found(line, equal.trailing_zeros());
        }
        match lines.next(control) {
            Some(next) => line = next,
            None => return 0,
        }
    }
}

/// Keys of more than two limbs: tags first, then the records that they name.
#[inline(always)]
fn wide<C: Compare>(lines: &Lines, limbs: usize, keys: &[u64], out: &mut [u32]) {
    let (mut place, mut equal) = ([(0u32, 0u16); BATCH], [0u32; BATCH]);
    for (key, place) in keys.chunks_exact(limbs).zip(&mut place) {
        *place = lines.place(key);
        prefetch(lines.address(place.0));
    }
    for (place, equal) in place.iter().zip(&mut equal).take(out.len()) {
        // SAFETY: the bucket is a line, and this table's lines hold tags.
        *equal = unsafe { tagged::<C>(lines, place.0, place.1) };
        if *equal != 0 {
            let record = lines.found(place.0, equal.trailing_zeros()) as usize * (limbs + 1);
            prefetch(lines.records.as_ptr().wrapping_add(record));
            prefetch(lines.records.as_ptr().wrapping_add(record + limbs));
        }
    }
    for (((key, place), equal), out) in keys.chunks_exact(limbs).zip(place).zip(equal).zip(out) {
        *out = walk_wide::<C>(lines, place, equal, key);
    }
}

/// The slots of a line that are in use and have a tag.
///
/// # Safety
/// `line` is one of a table whose lines hold tags.
#[inline(always)]
unsafe fn tagged<C: Compare>(lines: &Lines, line: u32, tag: u16) -> u32 {
    // SAFETY: the caller promises it.
    unsafe { C::tags(lines.address(line), tag) & lines.control(line) & ((1 << SLOT_BITS) - 1) }
}

/// The result that a bucket has for a key of more than two limbs, whose tag some slots of its line have.
#[inline(always)]
fn walk_wide<C: Compare>(lines: &Lines, (mut line, tag): (u32, u16), mut equal: u32, key: &[u64]) -> u32 {
    loop {
        if let Some(result) = confirm(lines, line, equal, key) {
            return result;
        }
        let Some(next) = lines.next(lines.control(line)) else { return 0 };
        line = next;
        // SAFETY: this table's lines hold tags.
        equal = unsafe { tagged::<C>(lines, line, tag) };
    }
}

/// The result of the slot, of those in `equal`, whose record has this key.
#[inline(always)]
fn confirm(lines: &Lines, line: u32, mut equal: u32, key: &[u64]) -> Option<u32> {
    use std::sync::atomic::Ordering::{Acquire, Relaxed};
    while equal != 0 {
        let record = lines.found(line, equal.trailing_zeros()) as usize * (key.len() + 1);
        let kept = lines.records.get(record..=record + key.len())?;
        if key.iter().zip(kept).all(|(limb, kept)| *limb == kept.load(Relaxed)) {
            return Some(kept[key.len()].load(Acquire) as u32);
        }
        equal &= equal - 1;
    }
    None
}

/// One limb at a time.
struct Scalar;

impl Compare for Scalar {
    #[inline(always)]
    unsafe fn one(line: *const u8, key: u64) -> u32 {
        // SAFETY: a line has eight limbs.
        (0..5).fold(0, |equal, slot| equal | u32::from(unsafe { limb(line, slot) } == key) << slot)
    }

    #[inline(always)]
    unsafe fn two(line: *const u8, key: [u64; 2]) -> u32 {
        (0..3).fold(0, |equal, slot| {
            // SAFETY: as above.
            let (low, high) = unsafe { (limb(line, 2 * slot), limb(line, 2 * slot + 1)) };
            equal | u32::from(low == key[0] && high == key[1]) << slot
        })
    }

    #[inline(always)]
    unsafe fn tags(line: *const u8, tag: u16) -> u32 {
        (0..10).fold(0, |equal, slot| {
            // SAFETY: as above.
            let found = unsafe { limb(line, slot / 4) } >> (slot % 4 * 16);
            equal | u32::from(found as u16 == tag) << slot
        })
    }
}

/// # Safety
/// `line` is the address of a line, and `at` less than eight.
#[inline(always)]
unsafe fn limb(line: *const u8, at: usize) -> u64 {
    // SAFETY: lines are arrays of eight AtomicU64.
    unsafe { &*line.cast::<std::sync::atomic::AtomicU64>().add(at) }
        .load(std::sync::atomic::Ordering::Relaxed)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// # Safety
    /// The machine has what [`Simd::Avx512`] says.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx512(lines: &Lines, keys: &[u64], out: &mut [u32]) {
        staged::<Avx512>(lines, keys, out);
    }

    /// # Safety
    /// The machine has what [`Simd::Avx2`] says.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx2(lines: &Lines, keys: &[u64], out: &mut [u32]) {
        staged::<Avx2>(lines, keys, out);
    }

    // Vector loads take a line in several pieces while a writer may fill unused slots of it. Slots in use do not
    // change (but for results, which are loaded alone), and what the others give is masked off.

    struct Avx512;

    impl Compare for Avx512 {
        #[inline(always)]
        unsafe fn one(line: *const u8, key: u64) -> u32 {
            // SAFETY: a line has 64 bytes, and the caller is compiled for AVX-512.
            unsafe {
                u32::from(_mm512_cmpeq_epi64_mask(
                    _mm512_load_si512(line.cast()),
                    _mm512_set1_epi64(key as i64),
                )) & 0x1f
            }
        }

        #[inline(always)]
        unsafe fn two(line: *const u8, key: [u64; 2]) -> u32 {
            // SAFETY: as above.
            let equal = unsafe {
                let key = _mm512_broadcast_i64x2(_mm_set_epi64x(key[1] as i64, key[0] as i64));
                u32::from(_mm512_cmpeq_epi64_mask(_mm512_load_si512(line.cast()), key))
            };
            let both = equal & equal >> 1;
            (both & 1) | (both >> 1 & 2) | (both >> 2 & 4)
        }

        #[inline(always)]
        unsafe fn buckets(lines: &Lines, keys: &[u64], buckets: &mut [u32; BATCH]) {
            let (eights, rest) = keys.as_chunks::<8>();
            // SAFETY: the caller is compiled for AVX-512; each load and store is of one chunk.
            unsafe {
                let [seed, factor] = lines.spread.seeds.map(|seed| _mm512_set1_epi64(seed as i64));
                let count = _mm512_set1_epi64(lines.spread.buckets as i64);
                for (keys, buckets) in eights.iter().zip(buckets.as_chunks_mut::<8>().0) {
                    let keys = _mm512_xor_si512(_mm512_loadu_si512(keys.as_ptr().cast()), seed);
                    let hash = _mm512_srli_epi64::<32>(_mm512_mullo_epi64(keys, factor));
                    let bucket = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hash, count));
                    _mm256_storeu_si256(buckets.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(bucket));
                }
            }
            for (key, bucket) in rest.iter().zip(&mut buckets[keys.len() - rest.len()..]) {
                *bucket = lines.place(&[*key]).0;
            }
        }

        #[inline(always)]
        unsafe fn tags(line: *const u8, tag: u16) -> u32 {
            // SAFETY: as above.
            unsafe {
                u32::from(_mm256_cmpeq_epi16_mask(
                    _mm256_load_si256(line.cast()),
                    _mm256_set1_epi16(tag as i16),
                )) & 0x3ff
            }
        }
    }

    struct Avx2;

    impl Compare for Avx2 {
        #[inline(always)]
        unsafe fn one(line: *const u8, key: u64) -> u32 {
            // SAFETY: a line has 64 bytes, and the caller is compiled for AVX2.
            unsafe {
                let four = _mm256_cmpeq_epi64(_mm256_load_si256(line.cast()), _mm256_set1_epi64x(key as i64));
                _mm256_movemask_pd(_mm256_castsi256_pd(four)) as u32 | u32::from(limb(line, 4) == key) << 4
            }
        }

        #[inline(always)]
        unsafe fn two(line: *const u8, key: [u64; 2]) -> u32 {
            // SAFETY: as above.
            unsafe { Scalar::two(line, key) }
        }

        #[inline(always)]
        unsafe fn tags(line: *const u8, tag: u16) -> u32 {
            // SAFETY: as above.
            unsafe {
                let same = _mm256_cmpeq_epi16(_mm256_load_si256(line.cast()), _mm256_set1_epi16(tag as i16));
                // Two bits for each tag; every other one is kept.
                _pext_u32(_mm256_movemask_epi8(same) as u32, 0x5555_5555) & 0x3ff
            }
        }
    }
}
