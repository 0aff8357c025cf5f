//! Asking for bytes of frames before they are read.

#![allow(unsafe_code)]

/// Asks for the cache line at an address, which need not be valid. The line goes to the second-level cache: a request into the
/// first would hold one of the ten to sixteen buffers there until the line has come, and loads need them meanwhile.
#[inline(always)]
pub fn ask_for(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the request is a hint and faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
