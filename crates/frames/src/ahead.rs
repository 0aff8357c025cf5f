//! Memory that is asked for before it is used: a processor that waits for one cache line after the other could have had many of them on
//! their way at once.

#![allow(unsafe_code)]

const LINE: usize = 64;

/// Has the processor bring all cache lines of a value, which is used soon.
#[inline]
pub fn ask_for<T>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    (0..size_of::<T>()).step_by(LINE).for_each(|at| ask_for_line(start.wrapping_add(at)));
}

/// As [`ask_for`], of a value whose first cache line is all that is used.
#[inline]
pub fn ask_for_start<T>(value: &T) {
    ask_for_line(std::ptr::from_ref(value));
}

/// Has the processor bring the cache line with that address, if there is memory.
#[inline]
pub(crate) fn ask_for_line<T>(address: *const T) {
    // Miri has no such instruction.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a request reads nothing that anybody could see, and does nothing where there is no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
