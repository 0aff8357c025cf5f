//! Asking for a cache line from compiled code, for which the code generator has no instruction.

/// Where the routine is that asks for the cache line at its argument, which need not be valid. It changes no register
/// at all, so that code that calls it (`preserve_all`) keeps all values where they are.
pub(crate) fn prefetch_routine() -> usize {
    prefetch as *const () as usize
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn prefetch(address: *const u8) {
    std::arch::naked_asm!("prefetcht0 [rdi]", "ret")
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn prefetch(address: *const u8) {
    std::arch::naked_asm!("prfm pldl1keep, [x0]", "ret")
}

/// Never called: there is no compiled code on other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
extern "C" fn prefetch(_: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_may_be_asked_for() {
        let bytes = [0u8; 1];
        for address in [bytes.as_ptr(), std::ptr::null(), usize::MAX as *const u8] {
            prefetch(address);
        }
    }
}
