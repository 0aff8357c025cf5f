//! Looking up a batch: for each layer, the part of every key; for each dimension, the rows; then their ANDs.

use super::block::{Block, PIECE_RULES, Piece, Table};
use super::rule::{Dimension, Order};
use super::search::{BOUNDS, CHILDREN, Line};
use super::{Layer, Version};
use crate::fast::simd::{Simd, prefetch};

/// Keys under way at once.
const BATCH: usize = 64;

/// Most dimensions whose rows are kept at once; layers with more take their AND in several turns.
const ROWS: usize = 12;

pub(super) fn batch(simd: Simd, version: &Version, keys: &[u64], out: &mut [u32]) {
    let whole = (keys.len() / version.limbs).min(out.len());
    let (out, absent) = out.split_at_mut(whole);
    absent.fill(0);
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a reader's level is no more than the machine has.
        Simd::Avx512 => unsafe { x86::avx512(version, keys, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Simd::Avx2 => unsafe { x86::avx2(version, keys, out) },
        _ => staged::<Scalar>(version, keys, out),
    }
}

/// What is done by vectors.
trait Vectors {
    /// How many boundaries are less than a value.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn less(line: &Line, value: u32) -> usize;

    /// The AND of pieces; the first is `rows[0][at]`. `None` when it is zero.
    ///
    /// # Safety
    /// The machine has the instructions, and each row has a piece `at`.
    unsafe fn all_of(rows: &[*const Piece], at: usize) -> Option<Found>;
}

/// The bits of one piece: the first one set, and all of them.
struct Found {
    first: usize,
    bits: Piece,
}

#[inline(always)]
fn staged<V: Vectors>(version: &Version, keys: &[u64], out: &mut [u32]) {
    for (keys, out) in keys.chunks(BATCH * version.limbs).zip(out.chunks_mut(BATCH)) {
        out.fill(0);
        let mut orders = [Order::LAST; BATCH];
        for layer in &version.layers {
            look_through::<V>(version, layer, keys, &mut orders, out);
        }
    }
}

/// The value of a dimension in a key.
///
/// # Safety
/// The dimension was cut for keys of as many limbs.
#[inline(always)]
unsafe fn value(dimension: &Dimension, key: *const u64) -> u32 {
    // SAFETY: the eight bytes from `byte` lie within the key.
    let bytes = unsafe { key.cast::<u8>().add(dimension.byte as usize).cast::<u64>().read_unaligned() };
    (u64::from_le(bytes) >> dimension.shift) as u32 & dimension.mask
}

#[inline(always)]
fn look_through<V: Vectors>(
    version: &Version,
    layer: &Layer,
    keys: &[u64],
    orders: &mut [Order; BATCH],
    out: &mut [u32],
) {
    let Some(first) = layer.parts.first() else { return };
    let count = out.len();
    let mut blocks: [&Block; BATCH] = [first; BATCH];
    if layer.parts.len() > 1 {
        for (key, block) in keys.chunks_exact(version.limbs).zip(&mut blocks) {
            // SAFETY: the dimension is of these keys, and a place is at most the number of cuts.
            unsafe {
                let value = value(&layer.cut, key.as_ptr());
                let place = place::<V>(&layer.cuts.lines, layer.cuts.levels, &layer.cuts.starts, value);
                *block = layer.parts.get_unchecked(place);
            }
            prefetch(block.tables.as_ptr());
        }
    }
    let mut rows = [[std::ptr::null::<Piece>(); ROWS]; BATCH];
    let all = layer.dimensions.len();
    if all > ROWS {
        return many_dimensions::<V>(version, layer, &blocks, keys, orders, out);
    }
    if layer.parts.len() == 1 {
        for ((table, (dimension, levels)), number) in first.tables.iter().zip(&layer.dimensions).zip(0..) {
            let (pieces, limbs) = (first.pieces, version.limbs);
            // SAFETY: the block's tables are of the layer's dimensions and levels.
            unsafe {
                match levels {
                    1 => rows_of_one::<V, 1>(dimension, table, pieces, limbs, keys, &mut rows, number, count),
                    2 => rows_of_one::<V, 2>(dimension, table, pieces, limbs, keys, &mut rows, number, count),
                    _ => rows_of_one::<V, 3>(dimension, table, pieces, limbs, keys, &mut rows, number, count),
                }
            }
        }
        for at in 0..count {
            let key = &keys[at * version.limbs..(at + 1) * version.limbs];
            choose::<V>(first, &rows[at][..all], key, &mut orders[at], &mut out[at]);
        }
        return;
    }
    for (number, (dimension, levels)) in layer.dimensions.iter().enumerate() {
        // SAFETY: all blocks of a layer have its dimensions and levels.
        unsafe {
            match levels {
                1 => find_rows::<V, 1>(dimension, number, version.limbs, &blocks, keys, &mut rows, count),
                2 => find_rows::<V, 2>(dimension, number, version.limbs, &blocks, keys, &mut rows, count),
                _ => find_rows::<V, 3>(dimension, number, version.limbs, &blocks, keys, &mut rows, count),
            }
        }
    }
    for at in 0..count {
        let key = &keys[at * version.limbs..(at + 1) * version.limbs];
        choose::<V>(blocks[at], &rows[at][..all], key, &mut orders[at], &mut out[at]);
    }
}

/// The place of a value among the boundaries of a tree.
///
/// # Safety
/// The lines are those of a tree of these levels.
#[inline(always)]
unsafe fn place<V: Vectors>(lines: &[Line], levels: usize, starts: &[u32; 3], value: u32) -> usize {
    let mut node = 0;
    for (level, start) in starts.iter().enumerate().take(levels) {
        // SAFETY: a place of one level is a line of the next.
        let less = unsafe { V::less(lines.get_unchecked(*start as usize + node), value) };
        node = if level + 1 == levels { node * BOUNDS } else { node * CHILDREN } + less;
    }
    node
}

/// The row of each key in one dimension.
///
/// # Safety
/// The blocks are of a layer whose dimension `number` is this one, with this many levels.
#[inline(always)]
unsafe fn find_rows<V: Vectors, const LEVELS: usize>(
    dimension: &Dimension,
    number: usize,
    limbs: usize,
    blocks: &[&Block; BATCH],
    keys: &[u64],
    rows: &mut [[*const Piece; ROWS]; BATCH],
    count: usize,
) {
    for at in 0..count {
        // SAFETY: as the caller says; there is a row for each place, of as many pieces as the block says.
        unsafe {
            let value = value(dimension, keys.as_ptr().add(at * limbs));
            let block = blocks[at];
            let table: &Table = block.tables.get_unchecked(number);
            let place = place::<V>(&table.tree.lines, LEVELS, &table.tree.starts, value);
            let row = table.rows.as_ptr().add(place * block.pieces);
            prefetch(row);
            rows[at][number] = row;
        }
    }
}

/// The same for a layer of one block, which need not be looked at for each key.
///
/// # Safety
/// The table is of this dimension, with this many levels and pieces to a row.
#[expect(clippy::too_many_arguments, reason = "one loop, kept out of its caller for its constant")]
#[inline(always)]
unsafe fn rows_of_one<V: Vectors, const LEVELS: usize>(
    dimension: &Dimension,
    table: &Table,
    pieces: usize,
    limbs: usize,
    keys: &[u64],
    rows: &mut [[*const Piece; ROWS]; BATCH],
    number: usize,
    count: usize,
) {
    let (dimension, starts, lines) = (*dimension, table.tree.starts, &table.tree.lines[..]);
    let (first, keys) = (table.rows.as_ptr(), keys.as_ptr());
    for (at, rows) in rows.iter_mut().enumerate().take(count) {
        // SAFETY: as the caller says; there is a row for each place.
        unsafe {
            let value = value(&dimension, keys.add(at * limbs));
            let place = place::<V>(lines, LEVELS, &starts, value);
            *rows.get_unchecked_mut(number) = first.add(place * pieces);
        }
    }
}

/// Keeps the best rule that all rows have, if it comes before what was found so far.
#[inline(always)]
fn choose<V: Vectors>(block: &Block, rows: &[*const Piece], key: &[u64], order: &mut Order, out: &mut u32) {
    for piece in 0..block.pieces {
        // SAFETY: rows have as many pieces as their block says.
        let Some(found) = (unsafe { V::all_of(rows, piece) }) else { continue };
        let mut rule = piece * PIECE_RULES + found.first;
        if !block.inexact.is_empty() {
            let Some(first) = confirm(block, piece, &found.bits, key) else { continue };
            rule = first;
        }
        if block.orders[rule] < *order {
            *order = block.orders[rule];
            *out = block.results[rule];
        }
        return;
    }
}

/// The first rule of these that accepts the key, also where rows do not say all.
fn confirm(block: &Block, piece: usize, bits: &Piece, key: &[u64]) -> Option<usize> {
    for (limb, mut left) in bits.0.into_iter().enumerate() {
        while left != 0 {
            let rule = piece * PIECE_RULES + limb * 64 + left.trailing_zeros() as usize;
            if block.inexact[rule].as_ref().is_none_or(|rule| rule.accepts(key)) {
                return Some(rule);
            }
            left &= left - 1;
        }
    }
    None
}

/// One key at a time, for layers of more dimensions than are kept.
fn many_dimensions<V: Vectors>(
    version: &Version,
    layer: &Layer,
    blocks: &[&Block; BATCH],
    keys: &[u64],
    orders: &mut [Order; BATCH],
    out: &mut [u32],
) {
    let mut rows = Vec::with_capacity(layer.dimensions.len());
    for (at, key) in keys.chunks_exact(version.limbs).enumerate().take(out.len()) {
        rows.clear();
        for (table, (dimension, _)) in blocks[at].tables.iter().zip(&layer.dimensions) {
            // SAFETY: the dimension is of these keys.
            let place = table.tree.place(unsafe { value(dimension, key.as_ptr()) });
            rows.push(std::ptr::from_ref(&table.rows[place * blocks[at].pieces]));
        }
        choose::<V>(blocks[at], &rows, key, &mut orders[at], &mut out[at]);
    }
}

/// One limb at a time; the compiler makes vectors of it where the machine has them for all code.
struct Scalar;

impl Vectors for Scalar {
    #[inline(always)]
    unsafe fn less(line: &Line, value: u32) -> usize {
        line.0.iter().map(|bound| u32::from(*bound < value)).sum::<u32>() as usize
    }

    #[inline(always)]
    unsafe fn all_of(rows: &[*const Piece], at: usize) -> Option<Found> {
        let mut bits = Piece([!0; 8]);
        for row in rows {
            // SAFETY: the row has a piece `at`.
            let piece = unsafe { &*row.add(at) };
            bits.0.iter_mut().zip(&piece.0).for_each(|(all, one)| *all &= one);
        }
        let limb = bits.0.iter().position(|limb| *limb != 0)?;
        Some(Found { first: limb * 64 + bits.0[limb].trailing_zeros() as usize, bits })
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
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
        unsafe fn all_of(rows: &[*const Piece], at: usize) -> Option<Found> {
            // SAFETY: the rows have a piece `at`, and the caller is compiled for AVX-512.
            unsafe {
                let mut all = _mm512_set1_epi64(-1);
                for row in rows {
                    all = _mm512_and_si512(all, _mm512_load_si512(row.add(at).cast()));
                }
                let limbs = u32::from(_mm512_test_epi64_mask(all, all));
                if limbs == 0 {
                    return None;
                }
                let mut bits = Piece([0; 8]);
                _mm512_store_si512(bits.0.as_mut_ptr().cast(), all);
                let packed = _mm512_maskz_compress_epi64(limbs as u8, all);
                let first = _mm_cvtsi128_si64(_mm512_castsi512_si128(packed)).trailing_zeros();
                Some(Found { first: (limbs.trailing_zeros() * 64 + first) as usize, bits })
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
        unsafe fn all_of(rows: &[*const Piece], at: usize) -> Option<Found> {
            // SAFETY: the rows have a piece `at`, and the caller is compiled for AVX2.
            unsafe {
                let (mut low, mut high) = (_mm256_set1_epi64x(-1), _mm256_set1_epi64x(-1));
                for row in rows {
                    let piece = row.add(at).cast::<__m256i>();
                    low = _mm256_and_si256(low, _mm256_load_si256(piece));
                    high = _mm256_and_si256(high, _mm256_load_si256(piece.add(1)));
                }
                let either = _mm256_or_si256(low, high);
                if _mm256_testz_si256(either, either) != 0 {
                    return None;
                }
                let mut bits = Piece([0; 8]);
                _mm256_store_si256(bits.0.as_mut_ptr().cast(), low);
                _mm256_store_si256(bits.0.as_mut_ptr().add(4).cast(), high);
                let zero = _mm256_setzero_si256();
                let empty =
                    |half| _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(half, zero))) as u32;
                let limb = (!(empty(low) | empty(high) << 4)).trailing_zeros() as usize;
                Some(Found { first: limb * 64 + bits.0[limb & 7].trailing_zeros() as usize, bits })
            }
        }
    }
}
