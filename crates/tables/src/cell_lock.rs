//! A lock for one cell that several workers change: a meter, or a register of more than 64 bits.
//!
//! A worker holds it for a few dozen instructions and never waits for anything meanwhile, so another worker spins instead of
//! sleeping. Control holds it as shortly. Where workers outnumber the processors, the holder may not run at all: after
//! [`SPINS`] attempts the waiting thread offers its processor.

use std::sync::atomic::{AtomicU32, Ordering};

/// Attempts before a thread that waits offers its processor to others.
const SPINS: u32 = 64;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Zero bytes are a free lock, the default too.
#[derive(Default)]
pub(crate) struct CellLock(AtomicU32);

/// The lock is free again when this is dropped.
pub(crate) struct Held<'l>(&'l CellLock);

impl CellLock {
    /// A lock that nobody holds.
    pub(crate) const fn new() -> CellLock {
        CellLock(AtomicU32::new(FREE))
    }

    /// Waits until no other thread holds the lock. A thread that holds it must not ask for it.
    #[inline]
    pub(crate) fn hold(&self) -> Held<'_> {
        // Acquire: what the last holder wrote is seen.
        if self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        Held(self)
    }

    #[cold]
    fn wait(&self) {
        let mut attempts = 0;
        loop {
            // Only loads while it is held, so that the holder keeps its cache line until it writes.
            if self.0.load(Ordering::Relaxed) == FREE
                && self.0.compare_exchange_weak(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
            attempts += 1;
            match attempts % SPINS {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// Locks that are found by a number: those of atomic sections, each alone on its cache line.
#[derive(Default)]
pub struct CellLocks([Alone; LOCKS]);

const LOCKS: usize = 32;

#[derive(Default)]
#[repr(align(64))]
struct Alone(CellLock);

impl std::fmt::Debug for CellLocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CellLocks")
    }
}

impl CellLocks {
    /// Waits until no other thread holds the lock of a number; gives what [`CellLocks::release`] takes. Numbers share locks.
    pub fn hold(&self, number: u64) -> usize {
        let at = (number % LOCKS as u64) as usize;
        // Released by number.
        std::mem::forget(self.0[at].0.hold());
        at
    }

    /// Releases a lock that the caller holds.
    pub fn release(&self, at: usize) {
        if let Some(lock) = self.0.get(at) {
            drop(Held(&lock.0));
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: the next holder sees what was written.
        self.0.0.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    struct Guarded(CellLock, UnsafeCell<u64>);
    // SAFETY: the number is reached by the holder of the lock alone.
    unsafe impl Sync for Guarded {}

    #[test]
    fn holders_do_not_meet() {
        let (threads, rounds) = (4, if cfg!(miri) { 50 } else { 20_000 });
        let guarded = Guarded(CellLock::new(), UnsafeCell::new(0));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let guarded = &guarded;
                    for _ in 0..rounds {
                        let _held = guarded.0.hold();
                        // SAFETY: the lock is held.
                        unsafe { *guarded.1.get() += 1 };
                    }
                });
            }
        });
        assert_eq!(guarded.1.into_inner(), threads * rounds);
    }
}
