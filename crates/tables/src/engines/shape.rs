//! How compiled code may look a key up by itself, with plain loads.

/// How to look up, for one batch. Its pointers are valid between two quiescent points of an awake worker. When
/// [`LookupShape::kind`] or [`LookupShape::shift`] is not what code was compiled for, it must not look up by loads until it is compiled
/// again.
#[derive(Clone, Copy, Debug)]
pub struct LookupShape {
    /// What the other fields mean.
    pub kind: LookupKind,
    /// Bits to shift right, by kind.
    pub shift: u32,
    /// The first array.
    pub base: *const u8,
    /// The second array, or a [`Spread`], or null.
    pub second: *const u8,
    /// What a word of 0 of two levels leads to, a `u64` of its own; else null.
    pub fallback: *const u8,
    /// Null when results are action slots. Else results are entries, 0 for none, and the slot of entry `e` is
    /// `(u32) starts[log2(e | 63)][e]`: an array in pieces, each pointer counted from where entry 0 would be.
    pub starts: *const u8,
}

impl LookupShape {
    /// Only by the batch lookup function.
    pub const CALL: LookupShape = LookupShape {
        kind: LookupKind::Call,
        shift: 0,
        base: std::ptr::null(),
        second: std::ptr::null(),
        fallback: std::ptr::null(),
        starts: std::ptr::null(),
    };
}

// SAFETY: the pointers are to memory of atomics that lives as long as the value that holds the shape.
unsafe impl Send for LookupShape {}
// SAFETY: as above.
unsafe impl Sync for LookupShape {}

/// How a key is looked up. All loads are of the natural width and alignment, relaxed where nothing else is said; their
/// addresses depend on one another, which is all the order that is needed. Of two levels the words are loaded acquiring, and
/// [`LookupShape::fallback`] after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LookupKind {
    /// Only by the batch lookup function.
    Call,
    /// `result = (u32) base[key]`; the key has at most 16 bits.
    Direct,
    /// Two levels of u16, for keys of at most 32 bits. With `low = key & ((1 << shift) - 1)`:
    /// `e = (u16) base[key >> shift]`; if bit 15 is clear `result = e`, else
    /// `result = (u16) second[((e & 0x7fff) << shift) + low]`. Where that is 0, `result = (u64) *fallback`.
    Two16,
    /// The same with u32 and bit 31.
    Two32,
    /// The same with u8 and bit 7.
    Two8,
    /// Lines of [`Line::ONE`], spread by `second`, a [`Spread`]. The control word is loaded first, acquiring; see [`Line`].
    Lines1,
    /// The same with [`Line::TWO`].
    Lines2,
}

/// What spreads keys over the lines of an exact table. The bucket of a hash is `((hash >> 32) * buckets) >> 32`. That of a
/// key of one limb is `(limb ^ seeds[0]) * seeds[1]`; of more limbs, from `hash = seeds[0]` on, for each the folded product
/// `p = (hash ^ limb) * seeds[1]` of 128 bits: `hash = low(p) ^ high(p)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Secret numbers.
    pub seeds: [u64; 2],
    /// Lines that keys are spread over; those where full ones go on follow.
    pub buckets: u64,
}

impl Spread {
    /// The hash of a key of at least one limb. One limb is hashed by one multiplication with a secret odd number, of which the
    /// upper half counts: that is universal, and vectors can do it.
    #[inline(always)]
    pub fn hash(&self, key: &[u64]) -> u64 {
        let [start, factor] = self.seeds;
        match key {
            [limb] => (limb ^ start).wrapping_mul(factor),
            _ => key.iter().fold(start, |hash, limb| mix(hash ^ limb, factor)),
        }
    }

    /// The bucket of a hash, which is the number of its line.
    #[inline(always)]
    pub fn bucket(&self, hash: u64) -> u64 {
        ((hash >> 32) * self.buckets) >> 32
    }
}

/// Multiplies and folds: every bit of the product depends on many of the input.
#[inline(always)]
fn mix(value: u64, factor: u64) -> u64 {
    let product = u128::from(value) * u128::from(factor);
    product as u64 ^ (product >> 64) as u64
}

/// How a line of an exact table holds keys of one or two limbs and their results: keys from its start on, results of 4
/// bytes after them, and a control word. That has a bit for each slot in use, and from bit [`Line::SLOT_BITS`] on the
/// number of the line where the bucket goes on, counted from 1 after all buckets, 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Limbs of a key.
    pub limbs: u32,
    /// Slots.
    pub slots: u32,
    /// The byte where the results start.
    pub results: u32,
}

impl Line {
    /// Of keys of one limb.
    pub const ONE: Line = Line { limbs: 1, slots: 5, results: 40 };
    /// Of keys of two limbs.
    pub const TWO: Line = Line { limbs: 2, slots: 3, results: 48 };
    /// Bytes of a line.
    pub const BYTES: u32 = 64;
    /// The byte of the control word.
    pub const CONTROL: u32 = 60;
    /// Bits of the control word that are slots.
    pub const SLOT_BITS: u32 = 10;
}
