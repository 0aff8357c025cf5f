//! What the tests of several engines share.

use super::Simd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Looks keys up with each set of vector instructions, in one batch and each alone. The batch has room for one more
/// result: its key is not wholly there and must miss.
pub(super) fn check(keys: &[Vec<u64>], expected: &[u32], lookup: impl Fn(Simd, &[u64], &mut [u32])) {
    let flat = keys.concat();
    for simd in Simd::all() {
        let mut out = vec![9; keys.len() + 1];
        lookup(simd, &flat, &mut out);
        assert_eq!(out.pop(), Some(0), "a key that is not there misses");
        assert_eq!(out, expected, "{simd:?}");
        for (key, expected) in keys.iter().zip(expected) {
            let mut out = [9];
            lookup(simd, key, &mut out);
            assert_eq!(out, [*expected], "{simd:?}, alone");
        }
    }
}

/// Ends the readers also when the writer fails.
pub(super) struct StopOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
