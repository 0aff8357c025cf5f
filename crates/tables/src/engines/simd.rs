//! Which vector instructions lookups use, and prefetching.

use std::sync::OnceLock;

/// A set of vector instructions, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Simd {
    /// None beyond what the compiler uses for any code of this machine. On aarch64 that is NEON.
    Scalar,
    /// AVX2 and BMI of x86-64-v3.
    Avx2,
    /// AVX-512 F, BW, DQ and VL, and what [`Simd::Avx2`] has.
    Avx512,
}

impl Simd {
    /// The best that this machine has, asked once.
    pub fn best() -> Simd {
        static BEST: OnceLock<Simd> = OnceLock::new();
        *BEST.get_or_init(detect)
    }

    /// All that this machine has, weakest first.
    pub fn all() -> impl Iterator<Item = Simd> {
        [Simd::Scalar, Simd::Avx2, Simd::Avx512].into_iter().filter(|&simd| simd <= Simd::best())
    }

    /// This set, or the best that the machine has if that is less.
    pub(crate) fn or_less(self) -> Simd {
        self.min(Simd::best())
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Simd {
    let v3 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (v3, avx512) {
        (true, true) => Simd::Avx512,
        (true, false) => Simd::Avx2,
        (false, _) => Simd::Scalar,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Simd {
    Simd::Scalar
}

/// Asks for the cache line at an address, which need not be valid.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "arm")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("pld [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm")))]
    let _ = address;
}
