//! Looking up a batch, in steps that each run over all its keys: the class of every key on each axis; for each layer the
//! part, and the row of each axis there; then the AND of the rows, whose first bit is the layer's best rule.

use super::axis::{Axis, Map};
use super::group::{Group, Layer, MAX_AXES, Rows, slots};
use super::rule::{Dimension, Order};
use super::search::{BOUNDS, CHILDREN, Line, MAX_LEVELS};
use super::{Searched, Version};
use crate::engines::simd::{Simd, prefetch};
use std::mem::MaybeUninit;

/// Keys under way at once.
const BATCH: usize = 64;

/// Rows that a key needs in a layer: one for each axis, and one that says which rules are still there.
const MAX_ROWS: usize = MAX_AXES + 1;

/// A number for each key of a batch, written for as many as there are.
type Column = [MaybeUninit<u32>; BATCH];

const UNWRITTEN: MaybeUninit<u32> = MaybeUninit::uninit();

pub(super) fn batch(simd: Simd, version: &Version, keys: &[u64], out: &mut [u32]) {
    let whole = (keys.len() / version.limbs).min(out.len());
    let (out, absent) = out.split_at_mut(whole);
    absent.fill(0);
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a reader's level is no more than the machine has.
        Simd::Avx512 => unsafe { vectors::avx512(version, keys, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Simd::Avx2 => unsafe { vectors::avx2(version, keys, out) },
        _ => staged::<Scalar>(version, keys, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[path = "vectors.rs"]
mod vectors;

/// What is done by vectors.
trait Vectors {
    /// How many boundaries are less than a value.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn less(line: &Line, value: u32) -> usize;

    /// The first bit set in all of `count` rows of `WORDS` limbs, or the number of bits if there is none.
    ///
    /// # Safety
    /// The machine has the instructions. `row` gives rows of so many limbs, aligned to their size or 64 bytes. `WORDS`
    /// is 2, 4, 8 or 16.
    unsafe fn first<const WORDS: usize>(count: usize, row: impl Fn(usize) -> *const u64) -> usize;
}

#[inline(always)]
fn staged<V: Vectors>(version: &Version, keys: &[u64], out: &mut [u32]) {
    for (keys, out) in keys.chunks(BATCH * version.limbs).zip(out.chunks_mut(BATCH)) {
        let mut best = [0; BATCH];
        let best = &mut best[..out.len()];
        if let [only] = &version.searched[..] {
            search::<V>(only, version.limbs, keys, best);
            for (out, rank) in out.iter_mut().zip(best) {
                // SAFETY: a rank is of a rule or the one of none, and both have a result.
                *out = unsafe { *only.group.results.get_unchecked(*rank as usize) };
            }
            continue;
        }
        out.fill(0);
        let mut orders = [Order::LAST; BATCH];
        for searched in &version.searched {
            search::<V>(searched, version.limbs, keys, best);
            for ((out, order), rank) in out.iter_mut().zip(&mut orders).zip(best.iter()) {
                let found = searched.group.orders[*rank as usize];
                if found < *order {
                    (*out, *order) = (searched.group.results[*rank as usize], found);
                }
            }
        }
    }
}

/// The best rank of each key in a group.
#[inline(always)]
fn search<V: Vectors>(searched: &Searched, limbs: usize, keys: &[u64], best: &mut [u32]) {
    let (group, count) = (&*searched.group, best.len());
    best.fill(group.len() as u32);
    let mut rows = Rowset {
        count: 0,
        bases: [std::ptr::null(); MAX_ROWS],
        columns: [[UNWRITTEN; BATCH]; MAX_ROWS],
        parts: [UNWRITTEN; BATCH],
    };
    if let [layer] = &group.layers[..]
        && layer.maps.is_empty()
    {
        // The only layer, of one part: it has all axes, and the classes are its rows.
        for (number, (axis, used)) in group.axes.iter().zip(&layer.axes).enumerate() {
            classify::<V>(axis, limbs, keys, &mut rows.columns[number][..count]);
            rows.bases[number] = used.rows.as_ptr();
        }
        rows.count = group.axes.len();
        if let Some(alive) = searched.alive.first() {
            rows.columns[rows.count][..count].fill(MaybeUninit::new(0));
            rows.add(alive);
        }
        match layer.inexact {
            true => confirm::<true>(group, layer, &rows, limbs, keys, best),
            // SAFETY: the classes are rows of the layer.
            false => unsafe { choose::<V, true>(layer, &rows, best) },
        }
        return;
    }
    let mut classes = [[UNWRITTEN; BATCH]; MAX_AXES];
    for (axis, classes) in group.axes.iter().zip(&mut classes) {
        classify::<V>(axis, limbs, keys, &mut classes[..count]);
    }
    for (number, layer) in group.layers.iter().enumerate() {
        rows.find(layer, searched.alive.get(number), &classes, count);
        match layer.inexact {
            true => confirm::<false>(group, layer, &rows, limbs, keys, best),
            // SAFETY: the rows are those of the layer.
            false => unsafe { choose::<V, false>(layer, &rows, best) },
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

/// The classes of the keys on an axis.
#[inline(always)]
fn classify<V: Vectors>(axis: &Axis, limbs: usize, keys: &[u64], classes: &mut [MaybeUninit<u32>]) {
    let dimension = axis.dimension;
    let keys = keys.chunks_exact(limbs).zip(classes);
    match &axis.map {
        Map::Direct(map) => {
            for (key, class) in keys {
                // SAFETY: the dimension is of these keys, and the map has a cell for each value.
                class.write(unsafe {
                    u32::from(*map.get_unchecked(value(&dimension, key.as_ptr()) as usize))
                });
            }
        }
        Map::Split { up, low, first, second } => {
            let span = (1u32 << low) - 1;
            for (key, class) in keys {
                // SAFETY: the dimension is of these keys, and each cell leads to as many cells as it says.
                unsafe {
                    let value = value(&dimension, key.as_ptr()) << up;
                    let cell = *first.get_unchecked((value >> low) as usize);
                    let next = (cell >> 5) + ((value & span) >> (cell & 31));
                    class.write(u32::from(*second.get_unchecked(next as usize)));
                }
            }
        }
        Map::Stepped { up, first, second, third } => {
            for (key, class) in keys {
                // SAFETY: the dimension is of these keys, and each cell leads to one or to 256 of the next step.
                unsafe {
                    let value = value(&dimension, key.as_ptr()) << up;
                    let cell = *first.get_unchecked((value >> 16) as usize);
                    let next = (cell >> 1) + (value >> 8 & 0xff & 0u32.wrapping_sub(cell & 1));
                    let cell = *second.get_unchecked(next as usize);
                    let next = (cell >> 1) + (value & 0xff & 0u32.wrapping_sub(cell & 1));
                    class.write(u32::from(*third.get_unchecked(next as usize)));
                }
            }
        }
        Map::Sorted { tree, classes } => {
            for (key, class) in keys {
                // SAFETY: the dimension is of these keys, and a place is at most the number of boundaries.
                unsafe {
                    let place =
                        place::<V>(&tree.lines, tree.levels, &tree.starts, value(&dimension, key.as_ptr()));
                    class.write(u32::from(*classes.get_unchecked(place)));
                }
            }
        }
    }
}

/// The place of a value among the boundaries of a tree.
///
/// # Safety
/// The lines are those of a tree of these levels, and the machine has the instructions.
#[inline(always)]
unsafe fn place<V: Vectors>(lines: &[Line], levels: usize, starts: &[u32; MAX_LEVELS], value: u32) -> usize {
    let mut node = 0;
    for (level, start) in starts.iter().enumerate().take(levels) {
        // SAFETY: a place of one level is a line of the next.
        let less = unsafe { V::less(lines.get_unchecked(*start as usize + node), value) };
        node = if level + 1 == levels { node * BOUNDS } else { node * CHILDREN } + less;
    }
    node
}

/// Where the rows of a batch lie in a layer.
struct Rowset {
    /// The number of axes, and one more when rules have died.
    count: usize,
    /// Where the rows of each axis begin, and the limb where the row of each key does; or its class, when the classes are the
    /// rows.
    bases: [*const u64; MAX_ROWS],
    columns: [Column; MAX_ROWS],
    /// The part of each key, unless the classes are the rows.
    parts: Column,
}

impl Rowset {
    /// Adds rows whose column is written.
    #[inline(always)]
    fn add(&mut self, rows: &Rows) {
        self.bases[self.count] = rows.as_ptr();
        self.count += 1;
    }

    /// The rows that keys of these classes need of a layer.
    #[inline(always)]
    fn find(&mut self, layer: &Layer, alive: Option<&Rows>, classes: &[Column; MAX_AXES], keys: usize) {
        self.count = 0;
        let words = layer.words as u32;
        let parts = &mut self.parts[..keys];
        match &layer.cut {
            Some(cut) => {
                for (part, class) in parts.iter_mut().zip(&classes[cut.axis]) {
                    // SAFETY: the classes of all keys are written, and each class has a part.
                    part.write(unsafe { (*cut.part_of.get_unchecked(class.assume_init() as usize)).into() });
                }
            }
            None => parts.fill(MaybeUninit::new(0)),
        }
        for used in &layer.axes {
            let first = used.rows.as_ptr();
            let rows = self.columns[self.count][..keys].iter_mut().zip(&classes[used.axis]);
            // SAFETY: classes and parts of all keys are written; the maps have a run of this axis for each part, with a
            // cell for each class, which leads to a row.
            unsafe {
                let (map, bases) = (layer.maps.as_ptr().add(used.run), used.bases.as_ptr());
                let put = |row: &mut MaybeUninit<u32>, limb: u32| {
                    prefetch(first.add(limb as usize));
                    if words == 16 {
                        prefetch(first.add(limb as usize + 8));
                    }
                    row.write(limb);
                };
                if layer.cut.is_none() {
                    for (row, class) in rows {
                        put(row, u32::from(*map.add(class.assume_init() as usize)) * words);
                    }
                } else {
                    for ((row, class), part) in rows.zip(&self.parts) {
                        let part = part.assume_init() as usize;
                        let cell = *map.add(part * layer.stride + class.assume_init() as usize);
                        put(row, *bases.add(part) + u32::from(cell) * words);
                    }
                }
            }
            self.add(&used.rows);
        }
        if let Some(alive) = alive {
            for (row, part) in self.columns[self.count].iter_mut().zip(&self.parts[..keys]) {
                // SAFETY: the parts of all keys are written.
                row.write(unsafe { part.assume_init() } * words);
            }
            self.add(alive);
        }
    }
}

/// Keeps the best rule that all rows have.
///
/// # Safety
/// The rows are of the layer, and `BY_CLASS` says whether the columns are classes; the machine has the instructions.
#[inline(always)]
unsafe fn choose<V: Vectors, const BY_CLASS: bool>(layer: &Layer, rows: &Rowset, best: &mut [u32]) {
    // SAFETY: as the caller says.
    unsafe {
        match layer.words {
            2 => choose_wide::<V, BY_CLASS, 2>(layer, rows, best),
            4 => choose_wide::<V, BY_CLASS, 4>(layer, rows, best),
            8 => choose_wide::<V, BY_CLASS, 8>(layer, rows, best),
            _ => choose_wide::<V, BY_CLASS, 16>(layer, rows, best),
        }
    }
}

/// The same for rows of `WORDS` limbs.
///
/// # Safety
/// As for [`choose`].
#[inline(always)]
unsafe fn choose_wide<V: Vectors, const BY_CLASS: bool, const WORDS: usize>(
    layer: &Layer,
    rows: &Rowset,
    best: &mut [u32],
) {
    // The loop over rows is unrolled for the usual numbers of them.
    // SAFETY: as the caller says.
    unsafe {
        match rows.count {
            2 => choose_among::<V, BY_CLASS, WORDS, 2>(layer, rows, best),
            3 => choose_among::<V, BY_CLASS, WORDS, 3>(layer, rows, best),
            4 => choose_among::<V, BY_CLASS, WORDS, 4>(layer, rows, best),
            5 => choose_among::<V, BY_CLASS, WORDS, 5>(layer, rows, best),
            6 => choose_among::<V, BY_CLASS, WORDS, 6>(layer, rows, best),
            _ => choose_among::<V, BY_CLASS, WORDS, 0>(layer, rows, best),
        }
    }
}

/// The same for `ROWS` rows, or any number if that is 0.
///
/// # Safety
/// As for [`choose`].
#[inline(always)]
unsafe fn choose_among<V: Vectors, const BY_CLASS: bool, const WORDS: usize, const ROWS: usize>(
    layer: &Layer,
    rows: &Rowset,
    best: &mut [u32],
) {
    let count = if ROWS == 0 { rows.count } else { ROWS };
    let (bases, ranks) = (rows.bases, layer.ranks.as_ptr());
    for (at, best) in best.iter_mut().enumerate() {
        // SAFETY: the rows of all keys are written, and each part has a rank for each bit of a row and for none.
        unsafe {
            let row = |axis: usize| {
                let limb = rows.columns.get_unchecked(axis).get_unchecked(at).assume_init() as usize;
                bases.get_unchecked(axis).add(if BY_CLASS { limb * WORDS } else { limb })
            };
            let bit = V::first::<WORDS>(count, row);
            let part = if BY_CLASS { 0 } else { rows.parts.get_unchecked(at).assume_init() as usize };
            let rank = *ranks.add(part * slots(WORDS) + bit);
            *best = if BY_CLASS { rank } else { rank.min(*best) };
        }
    }
}

/// The same where rows do not say all: rules in their order until one accepts the key.
fn confirm<const BY_CLASS: bool>(
    group: &Group,
    layer: &Layer,
    rows: &Rowset,
    limbs: usize,
    keys: &[u64],
    best: &mut [u32],
) {
    for ((at, best), key) in best.iter_mut().enumerate().zip(keys.chunks_exact(limbs)) {
        // SAFETY: the rows of all keys are written, and the parts unless the classes are the rows.
        let (limb, part) = unsafe {
            let limb = |axis: usize| rows.columns[axis][at].assume_init() as usize;
            let part = if BY_CLASS { 0 } else { rows.parts[at].assume_init() as usize };
            (move |axis: usize| limb(axis) * if BY_CLASS { layer.words } else { 1 }, part)
        };
        let ranks = &layer.ranks[part * slots(layer.words)..];
        'key: for word in 0..layer.words {
            // SAFETY: rows have so many limbs.
            let and = |left, axis: usize| left & unsafe { *rows.bases[axis].add(limb(axis) + word) };
            let mut left = (0..rows.count).fold(!0u64, and);
            while left != 0 {
                let rank = ranks[word * 64 + left.trailing_zeros() as usize];
                if rank >= *best {
                    break 'key;
                }
                if group.inexact[rank as usize].as_ref().is_none_or(|rule| rule.accepts(key)) {
                    *best = rank;
                    break 'key;
                }
                left &= left - 1;
            }
        }
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
    unsafe fn first<const WORDS: usize>(count: usize, row: impl Fn(usize) -> *const u64) -> usize {
        for word in 0..WORDS {
            // SAFETY: the rows have so many limbs.
            let all = (0..count).fold(!0u64, |all, axis| all & unsafe { *row(axis).add(word) });
            if all != 0 {
                return word * 64 + all.trailing_zeros() as usize;
            }
        }
        WORDS * 64
    }
}

/// The classes of keys of one limb, for tests.
#[cfg(test)]
pub(super) fn classes_of(axis: &Axis, keys: &[u64]) -> Vec<u16> {
    let mut classes = vec![UNWRITTEN; keys.len()];
    classify::<Scalar>(axis, 1, keys, &mut classes);
    // SAFETY: as many classes are written as there are keys.
    classes.iter().map(|class| unsafe { class.assume_init() } as u16).collect()
}
