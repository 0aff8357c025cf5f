//! Looking up a batch: all keys go down a level, each asking for the line of its next, before any goes further.
//! There is no branch on what one key finds.

use super::tree::{LANES, LINE, SHIFTS, Tree, VALUES, Value, WINDOW};
use crate::engines::simd::{Simd, prefetch};
use std::sync::atomic::{AtomicU32, Ordering};

/// Keys under way at once.
const BATCH: usize = 64;

/// The shape of a table's keys.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) limbs: usize,
    /// A key is shifted left by this, so that its first digit is whole.
    pub(super) align: u32,
}

/// Digit `at` of a key, counted from the most significant.
#[inline(always)]
pub(super) fn digit(key: &[u64], align: u32, at: usize) -> u64 {
    let Some(limb) = key.len().checked_sub(at + 1) else { return 0 };
    let high = key[limb] << align;
    if align == 0 || limb == 0 { high } else { high | key[limb - 1] >> (64 - align) }
}

pub(super) fn batch(simd: Simd, tree: &Tree, shape: Shape, keys: &[u64], out: &mut [u32]) {
    let whole = (keys.len() / shape.limbs).min(out.len());
    let (out, absent) = out.split_at_mut(whole);
    absent.fill(0);
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a reader's level is no more than the machine has.
        Simd::Avx512 => unsafe { x86::avx512(tree, shape, keys, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Simd::Avx2 => unsafe { x86::avx2(tree, shape, keys, out) },
        _ => by_width::<Plain>(tree, shape, keys, out),
    }
}

#[inline(always)]
fn by_width<C: Compare>(tree: &Tree, shape: Shape, keys: &[u64], out: &mut [u32]) {
    if let [out] = out {
        *out = single::<C>(tree, shape, &keys[..shape.limbs]);
        return;
    }
    match (shape.limbs, shape.align) {
        (2, 0) => waves::<C, 2>(tree, Shape { limbs: 2, align: 0 }, keys, out),
        (1, align) => waves::<C, 1>(tree, Shape { limbs: 1, align }, keys, out),
        _ => waves::<C, MANY>(tree, shape, keys, out),
    }
}

/// The next bits of a key, of its digits at hand from bit `skip` of the first on.
#[inline(always)]
fn window(high: u64, low: u64, skip: u32) -> u64 {
    (high << skip | low >> 1 >> (63 - skip)) >> 32
}

/// One key: nothing else is under way, so nothing is set up for it.
#[inline(always)]
fn single<C: Compare>(tree: &Tree, shape: Shape, key: &[u64]) -> u32 {
    let lines = tree.lines.as_ptr().cast::<u32>();
    let first = (digit(key, shape.align, 0) >> (64 - tree.root_bits)) as usize;
    let (mut value, mut pos) = (Value(tree.slots[first].load(Ordering::Acquire)), tree.root_bits);
    while value.is_link() {
        let (at, skip) = (pos as usize / 64, pos % 64);
        let (high, low) = (digit(key, shape.align, at), digit(key, shape.align, at + 1));
        let window = window(high, low, skip);
        let index = (window >> (WINDOW - value.bits())) as usize;
        let line = lines.wrapping_add((value.line() as usize + index) * LINE);
        // SAFETY: links of a tree lead to its lines, which stay as they are until the worker's next quiescent point, but for
        // their values, which are atomics.
        let (found, shift) = unsafe { best_of::<C>(line, window as u32) };
        value = Value(found);
        pos = pos.wrapping_add(WINDOW).wrapping_sub(shift);
    }
    value.0
}

/// The value of the first lane of a line that fits, and how far its prefix is shifted.
///
/// # Safety
/// `line` is the address of a line.
#[inline(always)]
unsafe fn best_of<C: Compare>(line: *const u32, window: u32) -> (u32, u32) {
    // SAFETY: a lane of a line, laid out as `tree` says.
    unsafe {
        let fitting = C::fitting(line, window);
        let lane = (fitting | 1 << LANES).trailing_zeros() as usize;
        let value = (*line.add(VALUES + lane).cast::<AtomicU32>()).load(Ordering::Acquire);
        (value, u32::from(*line.add(SHIFTS).cast::<u8>().add(lane)))
    }
}

/// For any number of limbs.
const MANY: usize = 0;

/// Compares a key with all prefixes of a line.
trait Compare {
    /// Bits of the lanes that fit, of the first [`LANES`]; above them anything.
    ///
    /// # Safety
    /// `line` is the address of a line.
    unsafe fn fitting(line: *const u32, window: u32) -> u32;
}

/// Keys that go down together.
struct Wave {
    /// Which keys of the batch these are.
    key: [u8; BATCH],
    /// The digits at hand: the first two, or those that hold the next bits if a key has more.
    digits: [[u64; BATCH]; 2],
    /// How many bits of the key were looked at.
    pos: [u32; BATCH],
    value: [u32; BATCH],
    /// The next bits, and the line to compare them with. Of keys that have their result it is line 0.
    window: [u32; BATCH],
    line: [u32; BATCH],
    /// What was found in that line: the value, and how far its prefix is shifted.
    found: [u32; BATCH],
    shift: [u32; BATCH],
}

#[inline(always)]
fn waves<C: Compare, const LIMBS: usize>(tree: &Tree, shape: Shape, keys: &[u64], out: &mut [u32]) {
    let lines = tree.lines.as_ptr().cast::<u32>();
    let mut wave = Wave {
        key: [0; BATCH],
        digits: [[0; BATCH]; 2],
        pos: [0; BATCH],
        value: [0; BATCH],
        window: [0; BATCH],
        line: [0; BATCH],
        found: [0; BATCH],
        shift: [0; BATCH],
    };
    for (keys, out) in keys.chunks(BATCH * shape.limbs).zip(out.chunks_mut(BATCH)) {
        let mut count = out.len();
        wave.start::<LIMBS>(tree, shape, keys, count);
        let mut links = count;
        while links > 0 {
            if LIMBS == MANY {
                wave.next_digits(shape, keys, count);
            }
            wave.go_on::<LIMBS>(lines, count);
            // SAFETY: links of a tree lead to its lines, which stay as they are until the worker's next quiescent
            // point, but for their values, which are atomics.
            unsafe { wave.compare::<C>(lines, count) };
            links = wave.settle(count);
            // Few keys go on without the others.
            if links < count / 4 * 3 || links == 0 {
                count = wave.part(count, out);
            }
        }
    }
}

impl Wave {
    /// Takes keys up, and asks for their slots.
    #[inline(always)]
    fn start<const LIMBS: usize>(&mut self, tree: &Tree, shape: Shape, keys: &[u64], count: usize) {
        let slot_shift = 64 - tree.root_bits;
        let slots = tree.slots.as_ptr();
        let [high, low] = &mut self.digits;
        for (at, key) in keys.chunks_exact(shape.limbs).enumerate().take(count.min(BATCH)) {
            high[at] = digit(key, shape.align, 0);
            low[at] = if LIMBS == 1 { 0 } else { digit(key, shape.align, 1) };
            prefetch(slots.wrapping_add((high[at] >> slot_shift) as usize));
        }
        for (at, high) in high.iter().enumerate().take(count) {
            // SAFETY: there are 2^root_bits slots.
            let slot = unsafe { tree.slots.get_unchecked((*high >> slot_shift) as usize) };
            self.value[at] = slot.load(Ordering::Acquire);
        }
        self.pos.fill(tree.root_bits);
        self.key.iter_mut().zip(0..).for_each(|(key, at)| *key = at);
    }

    /// Takes the digits up that hold the next bits.
    fn next_digits(&mut self, shape: Shape, keys: &[u64], count: usize) {
        let [high, low] = &mut self.digits;
        for at in 0..count.min(BATCH) {
            let key = &keys[usize::from(self.key[at]) * shape.limbs..][..shape.limbs];
            let digit_at = self.pos[at] as usize / 64;
            (high[at], low[at]) = (digit(key, shape.align, digit_at), digit(key, shape.align, digit_at + 1));
        }
    }

    /// Finds the line of each value, and asks for it.
    #[inline(always)]
    fn go_on<const LIMBS: usize>(&mut self, lines: *const u32, count: usize) {
        let count = count.min(BATCH);
        for at in 0..count {
            let (value, pos) = (Value(self.value[at]), self.pos[at]);
            let (mut high, mut low) = (self.digits[0][at], self.digits[1][at]);
            if LIMBS == 2 && pos >= 64 {
                (high, low) = (low, 0);
            }
            let window = window(high, low, pos % 64);
            let index = (window >> (WINDOW - value.bits())) as u32;
            self.window[at] = window as u32;
            self.line[at] = (value.line() + index) & value.link_mask();
        }
        for line in &self.line[..count] {
            prefetch(lines.wrapping_add(*line as usize * LINE));
        }
    }

    /// Compares all keys with their lines.
    ///
    /// # Safety
    /// There are such lines.
    #[inline(always)]
    unsafe fn compare<C: Compare>(&mut self, lines: *const u32, count: usize) {
        for at in 0..count.min(BATCH) {
            // SAFETY: the caller promises a line.
            (self.found[at], self.shift[at]) =
                unsafe { best_of::<C>(lines.add(self.line[at] as usize * LINE), self.window[at]) };
        }
    }

    /// Takes over what was found by the keys that had no result yet, and counts those that still have none.
    #[inline(always)]
    fn settle(&mut self, count: usize) -> usize {
        let mut links = 0;
        for at in 0..count.min(BATCH) {
            let seek = Value(self.value[at]).link_mask();
            let value = self.found[at] & seek | self.value[at] & !seek;
            self.value[at] = value;
            self.pos[at] = self.pos[at].wrapping_add(WINDOW).wrapping_sub(self.shift[at]);
            links += value >> 31;
        }
        links as usize
    }

    /// Gives results out, keeps the keys without one, and says how many these are.
    #[inline(always)]
    fn part(&mut self, count: usize, out: &mut [u32]) -> usize {
        let (mut list, mut left) = ([0u8; BATCH], 0);
        for at in 0..count.min(BATCH) {
            list[left % BATCH] = at as u8;
            left += usize::from(Value(self.value[at]).is_link());
            if let Some(out) = out.get_mut(usize::from(self.key[at])) {
                *out = self.value[at];
            }
        }
        for (to, &from) in list[..left].iter().enumerate() {
            let from = usize::from(from) % BATCH;
            self.key[to] = self.key[from];
            self.pos[to] = self.pos[from];
            self.value[to] = self.value[from];
            self.digits[0][to] = self.digits[0][from];
            self.digits[1][to] = self.digits[1][from];
        }
        left
    }
}

/// Without vector instructions, but for what the compiler makes of it.
struct Plain;

#[cfg(not(target_arch = "aarch64"))]
impl Compare for Plain {
    #[inline(always)]
    unsafe fn fitting(line: *const u32, window: u32) -> u32 {
        // SAFETY: as the caller says, and neither part ever changes.
        let (prefixes, shifts) =
            unsafe { (&*line.cast::<[u32; LANES]>(), &*line.add(SHIFTS).cast::<[u8; LANES]>()) };
        let lane = |at: usize| u32::from((prefixes[at] ^ window) >> (shifts[at] & 31) == 0) << at;
        lane(0) | lane(1) | lane(2) | lane(3) | lane(4) | lane(5)
    }
}

#[cfg(target_arch = "aarch64")]
impl Compare for Plain {
    #[inline(always)]
    unsafe fn fitting(line: *const u32, window: u32) -> u32 {
        use std::arch::aarch64::*;
        // SAFETY: every aarch64 has NEON. The 32 bytes read are a line's prefixes and shifts, which never change.
        unsafe {
            let window = vdupq_n_u32(window);
            let back = vreinterpret_s8_u8(vld1_u8(line.add(SHIFTS).cast()));
            let back = vnegq_s16(vmovl_s8(back));
            let four = |prefixes, back| {
                let rest = vshlq_u32(veorq_u32(prefixes, window), back);
                vmovn_u32(vceqzq_u32(rest))
            };
            let low = four(vld1q_u32(line), vmovl_s16(vget_low_s16(back)));
            let high = four(vld1q_u32(line.add(4)), vmovl_high_s16(back));
            let bits = vld1_u8([1u8, 2, 4, 8, 16, 32, 64, 128].as_ptr());
            u32::from(vaddv_u8(vand_u8(vmovn_u16(vcombine_u16(low, high)), bits)))
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// # Safety
    /// The machine has what [`Simd::Avx512`] says.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx512(tree: &Tree, shape: Shape, keys: &[u64], out: &mut [u32]) {
        by_width::<Avx512>(tree, shape, keys, out);
    }

    /// # Safety
    /// The machine has what [`Simd::Avx2`] says.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx2(tree: &Tree, shape: Shape, keys: &[u64], out: &mut [u32]) {
        by_width::<Avx2>(tree, shape, keys, out);
    }

    /// What differs between a key and the prefixes of a line, in eight lanes of which the last two are none.
    ///
    /// # Safety
    /// The machine has AVX2, and `line` is the address of a line.
    #[inline(always)]
    unsafe fn rest(line: *const u32, window: u32) -> __m256i {
        // SAFETY: the 32 bytes read are the prefixes and shifts, which never change.
        unsafe {
            let differ = _mm256_xor_si256(_mm256_load_si256(line.cast()), _mm256_set1_epi32(window as i32));
            let shifts = _mm256_cvtepu8_epi32(_mm_loadl_epi64(line.add(SHIFTS).cast()));
            // All are below 32. The compiler knows it from here on.
            _mm256_srlv_epi32(differ, _mm256_and_si256(shifts, _mm256_set1_epi32(31)))
        }
    }

    struct Avx512;

    impl Compare for Avx512 {
        #[inline(always)]
        unsafe fn fitting(line: *const u32, window: u32) -> u32 {
            // SAFETY: as the caller says; the caller is compiled for AVX-512.
            unsafe {
                let rest = rest(line, window);
                u32::from(_mm256_testn_epi32_mask(rest, rest))
            }
        }
    }

    struct Avx2;

    impl Compare for Avx2 {
        #[inline(always)]
        unsafe fn fitting(line: *const u32, window: u32) -> u32 {
            // SAFETY: as the caller says; the caller is compiled for AVX2.
            unsafe {
                let fits = _mm256_cmpeq_epi32(rest(line, window), _mm256_setzero_si256());
                _mm256_movemask_ps(_mm256_castsi256_ps(fits)) as u32
            }
        }
    }
}
