//! Atomics, locks and shared ownership: of the standard library, or of loom in a model (`--cfg loom`). Loom runs a test in
//! every order that the memory model allows, which needs all of these to go through it.

#[cfg(not(loom))]
pub(super) use std::{
    sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence},
    sync::{Arc, Mutex, MutexGuard},
    thread::yield_now,
};

#[cfg(loom)]
pub(super) use loom::{
    sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence},
    sync::{Arc, Mutex, MutexGuard},
    thread::yield_now,
};
