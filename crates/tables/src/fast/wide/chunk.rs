//! Building chunks: ranges of a digit laid out as a static search tree of cache lines.
//!
//! | node | bytes | holds |
//! | --- | --- | --- |
//! | leaf | 64 | 5 boundaries of 8 bytes, 6 values of 4 bytes |
//! | narrow inner | 128 | 30 boundaries of 4 bytes, then where its children begin |
//! | wide inner | 128 | 15 boundaries of 8 bytes, then where its children begin |
//!
//! A boundary is one less than the first key of what follows it, so that the place of a key is the number of
//! boundaries less than it, and unused boundaries are the largest number. Narrow boundaries are 32 bits of the digit
//! from the first that differs within the chunk's area; leaves begin where the bits below those are zero.
//!
//! The last eight bytes of an inner node: 32 bits with the distance to its first child in lines, then the shift that
//! brings a digit to narrow boundaries (bits 0 to 7), and the flags [`CHILD_INNER`] and [`WIDE_NODE`].

use super::{INNER, LEAF, Link};
use crate::fast::memory::NoMemory;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// Ranges in a leaf.
const LEAF_RANGES: usize = 6;

/// Children of the inner nodes.
const NARROW_CHILDREN: usize = 31;
const WIDE_CHILDREN: usize = 16;

/// The children are inner nodes.
pub(super) const CHILD_INNER: u32 = 1 << 8;

/// The boundaries are 64 bits wide.
pub(super) const WIDE_NODE: u32 = 1 << 9;

/// A range that goes on until the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) value: u32,
}

/// The memory of one chunk. It is written once, before it is published.
pub(super) struct Chunk {
    ptr: NonNull<u64>,
    lines: usize,
}

// SAFETY: plain memory that belongs to this value alone.
unsafe impl Send for Chunk {}
// SAFETY: through a shared reference it is only read.
unsafe impl Sync for Chunk {}

/// Limbs of a line.
const LINE: usize = 8;

impl Chunk {
    /// Lays ranges out. They begin with the first key of the area and rise; there are at least two. `first_bits` is how many leading
    /// bits all keys of the area share.
    pub(super) fn build(ranges: &[Range], first_bits: u32) -> Result<(Chunk, Link), NoMemory> {
        let shift = 32u32.saturating_sub(first_bits);
        let (leaves, wide) = match leaves(ranges, shift) {
            Some(leaves) => (leaves, false),
            None => (leaves_anywhere(ranges), true),
        };
        let children = if wide { WIDE_CHILDREN } else { NARROW_CHILDREN };
        // From the leaves up: how many nodes each level has.
        let mut levels = vec![leaves.len()];
        while let Some(&below) = levels.last()
            && below > 1
        {
            levels.push(below.div_ceil(children));
        }
        let inner: usize = levels[1..].iter().sum();
        let mut chunk = Chunk::new(2 * inner + leaves.len())?;
        let limbs = chunk.limbs();
        for (leaf, line) in leaves.iter().zip(limbs[2 * inner * LINE..].chunks_exact_mut(LINE)) {
            write_leaf(leaf, line);
        }
        let starts: Vec<u64> = leaves.iter().map(|leaf| leaf[0].start).collect();
        let (mut start_of_level, mut below_line, mut stride) = (2 * inner, 2 * inner, 1);
        for (height, &count) in levels.iter().enumerate().skip(1) {
            start_of_level -= 2 * count;
            for node in 0..count {
                let line = start_of_level + 2 * node;
                let first_child = below_line + node * children * (1 + usize::from(height > 1));
                let span = children.pow(height as u32 - 1);
                let bounds = (1..children).map(|child| starts.get((node * children + child) * span).copied());
                let flags = if height > 1 { CHILD_INNER } else { 0 } | if wide { WIDE_NODE } else { shift };
                let info = (first_child - line) as u64 | u64::from(flags) << 32;
                write_inner(&mut limbs[line * LINE..(line + 2) * LINE], bounds, wide, shift, info);
            }
            (below_line, stride) = (start_of_level, children);
        }
        debug_assert!(stride >= 1 && start_of_level == 0);
        let tag = if inner == 0 { LEAF } else { INNER };
        let link = Link(chunk.ptr.as_ptr() as u64 | tag);
        Ok((chunk, link))
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines * LINE * 8
    }

    fn layout(lines: usize) -> Option<Layout> {
        Layout::from_size_align(lines * LINE * 8, if lines == 1 { 64 } else { 128 }).ok()
    }

    fn new(lines: usize) -> Result<Chunk, NoMemory> {
        let refused = NoMemory { bytes: lines * 64 };
        let layout = Chunk::layout(lines).ok_or(refused)?;
        // SAFETY: there is at least one leaf, so the layout is not empty. All ones is what unused boundaries are.
        let ptr = unsafe {
            let ptr = NonNull::new(alloc(layout)).ok_or(refused)?;
            ptr.write_bytes(0xff, layout.size());
            ptr.cast()
        };
        Ok(Chunk { ptr, lines })
    }

    fn limbs(&mut self) -> &mut [u64] {
        // SAFETY: `new` allocated and initialised as many, and the chunk is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.lines * LINE) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(layout) = Chunk::layout(self.lines) {
            // SAFETY: allocated in `new` with the same layout.
            unsafe { dealloc(self.ptr.as_ptr().cast(), layout) };
        }
    }
}

/// Cuts ranges into leaves that begin at multiples of 2^shift; `None` when they lie too close together for it.
fn leaves(ranges: &[Range], shift: u32) -> Option<Vec<Vec<Range>>> {
    let cut = !0u64 << shift;
    let mut leaves = Vec::with_capacity(ranges.len() / 4 + 1);
    let (mut at, mut start) = (0, ranges[0].start);
    loop {
        let first = Range { start, value: ranges[at].value };
        let rest = &ranges[at + 1..];
        if rest.len() < LEAF_RANGES {
            leaves.push(std::iter::once(first).chain(rest.iter().copied()).collect());
            return Some(leaves);
        }
        let next = rest[LEAF_RANGES - 1].start & cut;
        if next <= start {
            return None;
        }
        let kept = rest.iter().take_while(|range| range.start < next).count();
        leaves.push(std::iter::once(first).chain(rest[..kept].iter().copied()).collect());
        // The range that `next` lies in goes on in the next leaf.
        let begins_there = rest[kept].start == next;
        (at, start) = (at + kept + usize::from(begins_there), next);
    }
}

fn leaves_anywhere(ranges: &[Range]) -> Vec<Vec<Range>> {
    ranges.chunks(LEAF_RANGES).map(<[Range]>::to_vec).collect()
}

fn write_leaf(ranges: &[Range], line: &mut [u64]) {
    for (range, bound) in ranges[1..].iter().zip(&mut *line) {
        *bound = range.start - 1;
    }
    let mut values = [0u32; LEAF_RANGES];
    values.iter_mut().zip(ranges).for_each(|(to, range)| *to = range.value);
    for (pair, to) in values.chunks_exact(2).zip(&mut line[5..]) {
        *to = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    }
}

fn write_inner(
    node: &mut [u64],
    starts: impl Iterator<Item = Option<u64>>,
    wide: bool,
    shift: u32,
    info: u64,
) {
    for (at, start) in starts.enumerate() {
        let Some(start) = start else { break };
        if wide {
            node[at] = start - 1;
        } else {
            let bound = ((start >> shift) as u32).wrapping_sub(1);
            let half = at % 2 * 32;
            node[at / 2] = node[at / 2] & !(0xffff_ffff << half) | u64::from(bound) << half;
        }
    }
    node[15] = info;
}
