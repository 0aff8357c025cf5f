//! Varbits and bits in memory, as Rust values.

use millrace_pipeline::Bits;
use millrace_pipeline::semantics::VarbitValue;

/// A varbit from its words in memory: the length in bits, then the bytes.
///
/// # Safety
/// `address` points to a varbit: an aligned `u64` and as many bytes after it as that many bits take.
pub(crate) unsafe fn varbit_of(address: *const u64) -> VarbitValue {
    // SAFETY: the caller promises a varbit.
    let (len, bytes) = unsafe {
        let len = *address;
        (len, std::slice::from_raw_parts(address.add(1).cast::<u8>(), (len as usize).div_ceil(8)))
    };
    match len {
        0 => VarbitValue::EMPTY,
        len => VarbitValue::new(Bits::from_bytes(len as u32, bytes)),
    }
}

/// # Safety
/// `address` points to numbers of these widths, one after another, each as its limbs.
pub(super) unsafe fn numbers_at(mut address: *const u64, widths: &[u32]) -> Vec<Bits> {
    let mut numbers = Vec::with_capacity(widths.len());
    for width in widths {
        let count = width.div_ceil(64) as usize;
        // SAFETY: the caller promises them.
        unsafe {
            numbers.push(Bits::from_limbs(*width, std::slice::from_raw_parts(address, count)));
            address = address.add(count);
        }
    }
    numbers
}
