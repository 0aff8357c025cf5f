//! Zeroed memory for many frames, in huge pages where the system has them.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::ptr::NonNull;

/// The size of a huge page, and the alignment of memory at least as large.
const HUGE: usize = 2 << 20;

/// The system has no memory for frames.
#[derive(Debug)]
pub struct MemoryError {
    /// The bytes that were asked for.
    pub bytes: usize,
    /// What the system says.
    pub error: io::Error,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot allocate {} bytes for frames: {}", self.bytes, self.error)
    }
}

impl std::error::Error for MemoryError {}

/// Memory of its own, at a multiple of 4096 bytes. It starts as zeros.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    length: usize,
    /// The whole mapping.
    mapping: (*mut libc::c_void, usize),
}

// SAFETY: the memory belongs to this value alone and is reached only through it.
unsafe impl Send for Memory {}
// SAFETY: a shared one is only read.
unsafe impl Sync for Memory {}

impl Memory {
    /// At least one byte.
    ///
    /// # Errors
    /// [`MemoryError`] when the system has not so much.
    pub fn zeroed(length: usize) -> Result<Memory, MemoryError> {
        let length = length.max(1);
        let refused = |error| MemoryError { bytes: length, error };
        let asked = length.checked_add(HUGE).ok_or_else(|| refused(io::ErrorKind::OutOfMemory.into()))?;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping where the system likes touches nothing that exists.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), asked, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(refused(io::Error::last_os_error()));
        }
        let skipped = mapped.cast::<u8>().align_offset(HUGE).min(HUGE);
        // SAFETY: at most HUGE bytes into a mapping of `length + HUGE`.
        let start = unsafe { mapped.cast::<u8>().add(skipped) };
        // Miri has no such call.
        #[cfg(not(miri))]
        // SAFETY: the range lies in the mapping. A refusal leaves small pages, which are right too.
        unsafe {
            libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE)
        };
        let start = NonNull::new(start).ok_or_else(|| refused(io::ErrorKind::OutOfMemory.into()))?;
        Ok(Memory { start, length, mapping: (mapped, asked) })
    }

    /// Its first byte, for those who divide it among themselves.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its bytes.
    #[inline]
    pub fn size(&self) -> usize {
        self.length
    }
}

impl std::ops::Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length` initialised bytes from `start` on belong to this value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl std::ops::DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let (start, length) = self.mapping;
        // SAFETY: mapped as a whole in `zeroed` and never unmapped before.
        unsafe { libc::munmap(start, length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_its_own() {
        for length in [0, 1, 5000, 3 << 20] {
            let mut memory = Memory::zeroed(length).unwrap();
            assert_eq!(memory.len(), length.max(1));
            assert_eq!(memory.as_ptr() as usize % 4096, 0);
            assert!(memory.iter().all(|byte| *byte == 0));
            memory.fill(7);
            assert_eq!(memory.last(), Some(&7));
        }
        assert!(Memory::zeroed(usize::MAX).is_err());
    }
}
