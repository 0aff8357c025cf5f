//! The rings that a socket shares with the kernel: one side writes entries, the other reads them.
//!
//! Both ends count on for ever; an entry's place is its number modulo the size, which is a power of two. The writer publishes
//! its count after the entries are written (release), the reader sees it before it reads them (acquire), and the same the other
//! way round for places that are free again. Each end keeps what it has seen of the other and looks again only when that is not
//! enough, so that a batch costs one look.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapped ring of entries.
struct Ring<T> {
    start: NonNull<u8>,
    length: usize,
    /// Where the two counts, the flags and the entries are.
    offsets: Offsets,
    size: u32,
    entries: PhantomData<T>,
}

/// Where the parts of a ring are in its mapping, as `XDP_MMAP_OFFSETS` says.
#[derive(Clone, Copy)]
pub(super) struct Offsets {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
}

// SAFETY: the mapping is plain memory that belongs to no thread; this end of the ring is used by `&mut` alone.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of a socket. `T` has any bytes as a value, and is the kernel's entry.
    fn map(socket: RawFd, at: libc::off64_t, offsets: Offsets, size: u32) -> io::Result<Ring<T>> {
        let length = offsets.entries + size as usize * size_of::<T>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap64(std::ptr::null_mut(), length, access, flags, socket, at) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Ring { start, length, offsets, size, entries: PhantomData })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel has said that an aligned word is there, before the entries; it is mapped as long as self lives, and
        // accessed by atomic operations alone.
        unsafe { AtomicU32::from_ptr(self.start.add(at).as_ptr().cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    fn needs_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// The place of an entry.
    fn entry(&self, number: u32) -> NonNull<T> {
        let at = self.offsets.entries + (number & (self.size - 1)) as usize * size_of::<T>();
        // SAFETY: the mapping has `size` entries there, a power of two.
        unsafe { self.start.add(at) }.cast()
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: mapped as a whole in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A ring that the kernel reads.
pub(super) struct ToKernel<T> {
    ring: Ring<T>,
    /// The number of the next entry.
    next: u32,
    /// The number of the first entry that has no place yet, as far as was looked.
    end: u32,
}

impl<T: Copy> ToKernel<T> {
    pub(super) fn map(
        socket: RawFd,
        at: libc::off64_t,
        offsets: Offsets,
        size: u32,
    ) -> io::Result<ToKernel<T>> {
        Ok(ToKernel { ring: Ring::map(socket, at, offsets, size)?, next: 0, end: size })
    }

    /// Whether an entry has a place.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        if self.next == self.end {
            // The kernel has read what its count has passed.
            self.end = self.ring.consumer().load(Ordering::Acquire).wrapping_add(self.ring.size);
        }
        self.next != self.end
    }

    /// Whether so many entries have a place.
    #[inline]
    pub(super) fn has_room_for(&mut self, count: u32) -> bool {
        if self.end.wrapping_sub(self.next) < count {
            self.end = self.ring.consumer().load(Ordering::Acquire).wrapping_add(self.ring.size);
        }
        self.end.wrapping_sub(self.next) >= count
    }

    /// Writes an entry, which the kernel sees after [`ToKernel::publish`]. False when there is no place.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> bool {
        let has_room = self.has_room();
        if has_room {
            // SAFETY: the kernel does not read this place before it is published, and has read what was there.
            unsafe { self.ring.entry(self.next).write(entry) };
            self.next = self.next.wrapping_add(1);
        }
        has_room
    }

    /// Shows the entries to the kernel.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Entries that the kernel has not read.
    pub(super) fn unread(&self) -> u32 {
        self.next.wrapping_sub(self.ring.consumer().load(Ordering::Acquire))
    }

    /// Whether the kernel reads only when it is told to.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }

    /// The entries that the kernel has not read. It must not be about to read them.
    pub(super) fn unread_entries(&self) -> impl Iterator<Item = T> {
        let count = self.unread().min(self.ring.size);
        let first = self.next.wrapping_sub(count);
        // SAFETY: these entries were written by `push`, and are written by nobody meanwhile.
        (0..count).map(move |at| unsafe { self.ring.entry(first.wrapping_add(at)).read() })
    }
}

/// A ring that the kernel writes.
pub(super) struct FromKernel<T> {
    ring: Ring<T>,
    /// The number of the next entry to be read.
    next: u32,
    /// The number after the last entry, as far as was looked.
    end: u32,
}

impl<T: Copy> FromKernel<T> {
    pub(super) fn map(
        socket: RawFd,
        at: libc::off64_t,
        offsets: Offsets,
        size: u32,
    ) -> io::Result<FromKernel<T>> {
        Ok(FromKernel { ring: Ring::map(socket, at, offsets, size)?, next: 0, end: 0 })
    }

    /// Reads an entry. The kernel has its place back after [`FromKernel::release`].
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.next == self.end {
            self.end = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.end {
                return None;
            }
        }
        // SAFETY: the kernel has written the entry before it counted it, and does not write there before it is released.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of the entries that were read back.
    #[inline]
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}
