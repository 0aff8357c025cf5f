//! Large zeroed memory for tables that workers read while control writes: cells are atomics, pages are huge where
//! the system has them, and untouched pages cost nothing.
//!
//! Cells are atomics because control writes a cell while workers read it: with plain numbers that would be a data race. A
//! relaxed load or store of a machine word is the same instruction as a plain one, so this costs nothing.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// From this size on (bytes), memory is mapped and asks for huge pages.
pub(super) const HUGE: usize = 2 << 20;

/// Makes huge pages of small ones. Not every C library has a name for it.
const MADV_COLLAPSE: libc::c_int = 25;

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

/// Whether so many bytes more can be had, for what is about to be done and asks in small pieces, each of which would end the
/// process if it were refused.
///
/// # Errors
/// [`NoMemory`].
pub fn headroom(bytes: usize) -> Result<(), NoMemory> {
    let mut room = Vec::<u8>::new();
    let found = room.try_reserve_exact(bytes).map_err(|_| NoMemory { bytes });
    // The reservation is not to be left out because nothing is in it.
    std::hint::black_box(&room);
    found
}

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
        Cells::with_small_pages(len, 0)
    }

    /// As [`Cells::zeroed`], for cells of which mostly the first ones are used: the pages of these are small.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(crate) fn filled_from_the_first(len: usize) -> Result<Cells<T>, NoMemory> {
        Cells::with_small_pages(len, HUGE)
    }

    /// As [`Cells::zeroed`], for cells of which few may be used, here and there: all pages are small until
    /// [`Cells::set_huge_pages`] says something else.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(crate) fn sparse(len: usize) -> Result<Cells<T>, NoMemory> {
        let cells = Cells::with_small_pages(len, usize::MAX)?;
        cells.set_huge_pages(0..len, false);
        Ok(cells)
    }

    /// `len` zeros, of which so many bytes are in small pages in any case.
    fn with_small_pages(len: usize, small: usize) -> Result<Cells<T>, NoMemory> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(NoMemory { bytes: usize::MAX })?;
        if bytes >= HUGE {
            return Ok(Cells { ptr: map(bytes, small)?.cast(), len, mapped: true });
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

    /// Bytes of memory of an array of which so many cells are used, the first ones: where they fill huge pages, whole ones.
    pub(crate) fn bytes_of_first(used: usize) -> usize {
        let bytes = used * size_of::<T>();
        if bytes < HUGE { bytes } else { bytes.next_multiple_of(HUGE) }
    }

    /// Has some cells lie in huge pages from now on, or in small ones. The system does it when it is good for it; in memory of
    /// less than one huge page it is not asked. Small pages that are there become huge at once where the system can do that (Linux
    /// 6.1), else some time later.
    pub(crate) fn set_huge_pages(&self, cells: Range<usize>, are_huge: bool) {
        if are_huge {
            self.advise(cells.clone(), libc::MADV_HUGEPAGE);
            self.advise(cells, MADV_COLLAPSE);
        } else {
            self.advise(cells, libc::MADV_NOHUGEPAGE);
        }
    }

    /// Gives the memory of cells that are all zeros back to the system: from the next write on they take some again. Whoever reads
    /// them meanwhile finds zeros as before.
    pub(crate) fn give_back_zeros(&self, cells: Range<usize>) {
        self.advise(cells, libc::MADV_DONTNEED);
    }

    /// Tells the system something about the whole pages that lie in some cells.
    fn advise(&self, cells: Range<usize>, advice: libc::c_int) {
        if !self.mapped || cfg!(miri) {
            return;
        }
        let page = page();
        let (start, end) = (cells.start * size_of::<T>(), cells.end.min(self.len) * size_of::<T>());
        let (start, end) = (start.next_multiple_of(page), end / page * page);
        if start < end {
            // SAFETY: these pages are part of the mapping, which begins at a multiple of every page size. The advice changes the
            // size of pages, or has cells read as zeros that do so anyhow. When it is refused, all stays as it was.
            unsafe { libc::madvise(self.ptr.as_ptr().cast::<u8>().add(start).cast(), end - start, advice) };
        }
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

/// Cells in the first piece of [`Segments`], as a power of two.
const FIRST_PIECE: u32 = 6;
/// Pieces: room for 2^31 cells.
const PIECES: usize = 26;

/// An array that grows while others read it: in pieces, each as long as all before it together, which never move.
pub(crate) struct Segments<T: Cell> {
    pieces: [OnceLock<Cells<T>>; PIECES],
    /// Of each piece there is, where cell 0 of the array would be if the piece went back to it.
    starts: [AtomicPtr<T>; PIECES],
}

impl<T: Cell> Segments<T> {
    /// No cells.
    pub(crate) fn new() -> Segments<T> {
        Segments {
            pieces: [const { OnceLock::new() }; PIECES],
            starts: [const { AtomicPtr::new(std::ptr::null_mut()) }; PIECES],
        }
    }

    /// Makes zeros of all cells up to this one that are not there yet.
    ///
    /// # Errors
    /// [`NoMemory`]; those that there were stay.
    pub(crate) fn reserve(&self, at: usize) -> Result<(), NoMemory> {
        let (last, _) = piece_of(at);
        let pieces = self.pieces.get(..=last).ok_or(NoMemory { bytes: at.saturating_mul(size_of::<T>()) })?;
        if pieces.last().is_some_and(|piece| piece.get().is_some()) {
            return Ok(());
        }
        for (number, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.get().is_none()) {
            // Whoever was quicker made the same.
            let _ = piece.set(Cells::zeroed(1 << (FIRST_PIECE + (number as u32).saturating_sub(1)))?);
            if let Some(cells) = piece.get() {
                let first = if number == 0 { 0 } else { cells.len() };
                let start = cells.as_ptr().wrapping_sub(first).cast_mut();
                self.starts[number].store(start, Ordering::Release);
            }
        }
        Ok(())
    }

    /// A cell; `None` when it was not reserved.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let (piece, within) = piece_of(at);
        self.pieces.get(piece)?.get()?.get(within)
    }

    /// For code that finds cells itself: with `starts` what this gives, cell `at` is `starts[log2(at | 63)][at]` once it was
    /// reserved.
    pub(crate) fn starts(&self) -> *const AtomicPtr<T> {
        self.starts.as_ptr().wrapping_sub(FIRST_PIECE as usize - 1)
    }

    /// Bytes of address space.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().filter_map(OnceLock::get).map(Cells::bytes).sum()
    }
}

/// The piece of a cell, and its place there.
#[inline]
fn piece_of(at: usize) -> (usize, usize) {
    let bits = usize::BITS - (at >> FIRST_PIECE).leading_zeros();
    let start = if bits == 0 { 0 } else { 1 << (FIRST_PIECE + bits - 1) };
    (bits as usize, at - start)
}

/// Maps zeros at a multiple of the huge page size, the first ones in small pages. The overhang at both ends is given back.
fn map(bytes: usize, small: usize) -> Result<NonNull<u8>, NoMemory> {
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
    let end = (head + bytes).next_multiple_of(page()).min(asked);
    // SAFETY: both ends lie in the mapping just made and outside what is handed out. A refused munmap or madvise
    // leaves memory mapped or pages small, which is correct too.
    unsafe {
        if head > 0 {
            libc::munmap(start.cast(), head);
        }
        if asked > end {
            libc::munmap(start.add(end).cast(), asked - end);
        }
        let small = small.min(bytes);
        libc::madvise(start.add(head + small).cast(), bytes - small, libc::MADV_HUGEPAGE);
        NonNull::new(start.add(head)).ok_or(refused)
    }
}

/// The bytes of a page: 4 KiB, with kernels for aarch64 also 16 or 64.
fn page() -> usize {
    // SAFETY: takes no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(HUGE)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn segments_grow_without_moving() {
        let segments = Segments::<AtomicU32>::new();
        assert!(segments.get(0).is_none());
        segments.reserve(0).unwrap();
        let first = segments.get(63).unwrap();
        assert!(segments.get(64).is_none());
        first.store(1, Ordering::Relaxed);
        segments.reserve(70_000).unwrap();
        for at in [64, 127, 128, 129, 65_535, 70_000, 131_071] {
            segments.get(at).unwrap().store(at as u32, Ordering::Relaxed);
        }
        assert!(segments.get(131_072).is_none());
        let read = |at: usize| segments.get(at).unwrap().load(Ordering::Relaxed);
        assert_eq!([63, 64, 127, 128, 129, 65_535, 70_000].map(read), [1, 64, 127, 128, 129, 65_535, 70_000]);
        assert_eq!(first.load(Ordering::Relaxed), 1);
        for at in [0_usize, 63, 64, 127, 128, 70_000] {
            // SAFETY: a pointer of the array, for a cell that was reserved.
            let start = unsafe { &*segments.starts().wrapping_add((at | 63).ilog2() as usize) };
            let cell = start.load(Ordering::Relaxed).wrapping_add(at).cast_const();
            assert_eq!(cell, std::ptr::from_ref(segments.get(at).unwrap()).cast());
        }
        assert_eq!(segments.bytes(), 131_072 * 4);
        assert!(segments.reserve(usize::MAX).is_err());
    }

    #[test]
    fn memory_of_zeros_is_given_back_while_it_is_read() {
        let cells = Cells::<AtomicU8>::sparse(3 * HUGE + 100).unwrap();
        cells.set_huge_pages(0..HUGE, true);
        for at in [0, 5000, HUGE, 3 * HUGE + 99] {
            cells[at].store(1, Ordering::Relaxed);
        }
        cells[5000].store(0, Ordering::Relaxed);
        cells.give_back_zeros(1..HUGE);
        cells.set_huge_pages(0..HUGE, false);
        let read = |at: usize| cells[at].load(Ordering::Relaxed);
        assert_eq!([0, 1, 5000, HUGE, 3 * HUGE + 99].map(read), [1, 0, 0, 1, 1]);
        // Also where nothing can be told to the system.
        let few = Cells::<AtomicU8>::sparse(10).unwrap();
        few.give_back_zeros(0..10);
        assert_eq!(few.len(), 10);
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Cells::<AtomicU64>::zeroed(usize::MAX).is_err());
        assert!(Cells::<AtomicU64>::zeroed(usize::MAX / 16).is_err());
    }
}
