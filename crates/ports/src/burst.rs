//! Frames that lie in one memory, to be switched where they are.

#![allow(unsafe_code)]

/// Bytes behind a frame that may be read and written back unchanged, so that a field is one access.
pub const TAILROOM: usize = 16;

/// Where a frame lies in its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// Its first byte.
    pub at: u32,
    /// Its bytes, at most [`crate::MAX_FRAME`].
    pub len: u32,
}

/// Frames to be switched where they lie. In front of each is the room that was asked for, behind each [`TAILROOM`];
/// both may be parts of other frames, and are then put back with them.
#[derive(Debug)]
pub struct Burst<'m> {
    /// The memory of all frames.
    pub memory: &'m mut [u8],
    /// Where the frames of this burst are in it, in order.
    pub places: &'m [Place],
}

impl Place {
    /// Places as pairs of numbers, first byte and length: what compiled code reads.
    #[inline]
    pub fn as_pairs(places: &[Place]) -> &[[u32; 2]] {
        // SAFETY: a place is two `u32` in this order, laid out as in C, which is the layout of the pair too.
        unsafe { std::slice::from_raw_parts(places.as_ptr().cast(), places.len()) }
    }
}
