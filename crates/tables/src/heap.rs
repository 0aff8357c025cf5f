//! What the allocator takes for what is asked of it: it keeps a word next to each piece and rounds up, and collections keep room.

/// What glibc's malloc has next to a piece, what it rounds up to, and its smallest piece, in bytes. Other allocators take about as much.
const NEXT_TO: usize = 8;
const STEP: usize = 16;
const SMALLEST: usize = 32;

/// Bytes of a table without entries: itself, its readers, and the lists of pieces of arrays that it may have, at most.
pub(crate) const EMPTY_TABLE: usize = 12 << 10;

/// Bytes of a piece of so many bytes; none are asked for if it is empty.
pub(crate) fn piece(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + NEXT_TO).next_multiple_of(STEP).max(SMALLEST) }
}

/// Bytes of a hash map with room for so many of `T`: an eighth of its places stays free, and each has a byte that says what is there.
pub(crate) fn hash_map<T>(capacity: usize) -> usize {
    piece(capacity.div_ceil(7) * 8 * (size_of::<T>() + 1))
}

/// Bytes of a tree map of so many of `T`: a node has eleven places, of which six are filled where entries come in order.
pub(crate) fn tree_map<T>(len: usize) -> usize {
    const PLACES: usize = 11;
    const FILLED: usize = 6;
    /// The links of a node, and its part of the nodes above.
    const LINKS: usize = 24;
    len * (PLACES * size_of::<T>() + LINKS).div_ceil(FILLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_rounded_up_with_the_word_next_to_them() {
        assert_eq!([0, 1, 24, 25, 40, 41].map(piece), [0, 32, 32, 48, 48, 64]);
        // 14 entries have 16 places, each of 8 bytes and one more.
        assert_eq!(hash_map::<u64>(14), piece(16 * 9));
        // 11 places of 8 bytes for 6 entries.
        assert_eq!(tree_map::<u64>(6), 6 * 19);
    }
}
