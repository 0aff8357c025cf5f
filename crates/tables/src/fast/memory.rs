//! Large zeroed memory for tables that workers read while control writes: cells are atomics, pages are huge where
//! the system has them, and untouched pages cost nothing.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// From this size on (bytes), memory is mapped and asks for huge pages.
const HUGE: usize = 2 << 20;

/// Alignment of smaller memory: two cache lines, which are fetched together.
const ALIGN: usize = 128;

/// The system has no memory left for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory {
    /// Bytes that were asked for.
    pub bytes: usize,
}

impl std::fmt::Display for NoMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the system gives no {} bytes of memory", self.bytes)
    }
}

impl std::error::Error for NoMemory {}

/// A cell that is valid in any state of its bytes and may be shared.
///
/// # Safety
/// Every bit pattern is valid, and shared access is sound from many threads.
pub(crate) unsafe trait Cell: Send + Sync {}
// SAFETY: an atomic integer is valid in every bit pattern and made to be shared.
unsafe impl Cell for AtomicU8 {}
// SAFETY: as above.
unsafe impl Cell for AtomicU16 {}
// SAFETY: as above.
unsafe impl Cell for AtomicU32 {}
// SAFETY: as above.
unsafe impl Cell for AtomicU64 {}

/// An array of cells that starts as zeros.
pub(crate) struct Cells<T: Cell> {
    ptr: NonNull<T>,
    len: usize,
    mapped: bool,
}

// SAFETY: the cells are Send and Sync, and the memory belongs to this value alone.
unsafe impl<T: Cell> Send for Cells<T> {}
// SAFETY: as above.
unsafe impl<T: Cell> Sync for Cells<T> {}

impl<T: Cell> Cells<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(crate) fn zeroed(len: usize) -> Result<Cells<T>, NoMemory> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(NoMemory { bytes: usize::MAX })?;
        if bytes >= HUGE {
            return Ok(Cells { ptr: map(bytes)?.cast(), len, mapped: true });
        }
        let layout = Layout::from_size_align(bytes.max(ALIGN), ALIGN).map_err(|_| NoMemory { bytes })?;
        // SAFETY: the layout is not empty.
        let ptr = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(NoMemory { bytes })?;
        Ok(Cells { ptr: ptr.cast(), len, mapped: false })
    }

    /// Bytes of address space; pages that were never written take no memory.
    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address of the first cell, for code that computes addresses itself.
    pub(crate) fn as_ptr(&self) -> *const T {
        self.ptr.as_ptr()
    }
}

impl<T: Cell> std::ops::Deref for Cells<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` cells lie there, valid in any state, until drop.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl<T: Cell> Drop for Cells<T> {
    fn drop(&mut self) {
        let bytes = self.bytes();
        if self.mapped {
            // SAFETY: mapped with this length in `map`, and never unmapped before.
            unsafe { libc::munmap(self.ptr.as_ptr().cast(), bytes) };
        } else if let Ok(layout) = Layout::from_size_align(bytes.max(ALIGN), ALIGN) {
            // SAFETY: allocated with the same layout.
            unsafe { dealloc(self.ptr.as_ptr().cast(), layout) };
        }
    }
}

/// Maps zeros at a multiple of the huge page size. The overhang at both ends is given back.
fn map(bytes: usize) -> Result<NonNull<u8>, NoMemory> {
    let refused = NoMemory { bytes };
    let asked = bytes.checked_add(HUGE).ok_or(refused)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing that exists.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), asked, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(refused);
    }
    let start = start.cast::<u8>();
    let head = start.align_offset(HUGE);
    // The kernel unmaps whole pages, and a page that the table's last bytes share must stay.
    let end = (head + bytes).next_multiple_of(4096).min(asked);
    // SAFETY: both ends lie in the mapping just made and outside what is handed out. A refused munmap or madvise
    // leaves memory mapped or pages small, which is correct too.
    unsafe {
        if head > 0 {
            libc::munmap(start.cast(), head);
        }
        if asked > end {
            libc::munmap(start.add(end).cast(), asked - end);
        }
        libc::madvise(start.add(head).cast(), bytes, libc::MADV_HUGEPAGE);
        NonNull::new(start.add(head)).ok_or(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn cells_start_as_zeros_and_keep_what_is_written_in_small_and_large_memory() {
        for len in [0, 1, 1000, 3 << 20] {
            let cells = Cells::<AtomicU32>::zeroed(len).unwrap();
            assert_eq!((cells.len(), cells.bytes()), (len, 4 * len));
            assert_eq!(cells.as_ptr() as usize % ALIGN, 0);
            if let (Some(first), Some(last)) = (cells.first(), cells.last()) {
                assert_eq!((first.load(Ordering::Relaxed), last.load(Ordering::Relaxed)), (0, 0));
                last.store(7, Ordering::Relaxed);
                assert_eq!(cells[len - 1].load(Ordering::Relaxed), 7);
            }
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Cells::<AtomicU64>::zeroed(usize::MAX).is_err());
        assert!(Cells::<AtomicU64>::zeroed(usize::MAX / 16).is_err());
    }
}
