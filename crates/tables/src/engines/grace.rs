//! Grace periods: when memory that workers may still read can be given back.
//!
//! A [`Domain`] knows the workers of one program. Each passes a **quiescent point** between two batches
//! ([`Worker::quiescent`]): there it holds nothing of what it has read. Control publishes a new version by one store
//! of a pointer and retires the old one; the old one is dropped once every worker has passed a quiescent point since.
//! Workers take no lock and write nothing but their own cell. The borrow checker enforces the rule: what is read
//! through a worker borrows it, and passing a quiescent point needs it exclusively.
//!
//! An example, with an epoch of 4 at first:
//!
//! ```text
//!  control                              worker A                    worker B
//!                                       seen 4, reads the old one   seen 0: rests
//!  swap the pointer, epoch 4 -> 5
//!  retire the old one with stamp 5
//!  collect: oldest seen 4 < 5, keep
//!                                       quiescent: seen 5
//!  collect: oldest seen 5, drop it
//! ```
//!
//! Why this is sound, for the two kinds of workers that [`Domain::collect`] finds:
//!
//! - **Awake, with a cell of at least the stamp.** The worker loaded the epoch (acquire) after control had advanced it,
//!   so each later load finds the new pointer. Its cell is stored with release order after its last read of the old
//!   version, and control loads the cell with acquire order: the read comes before the drop.
//! - **Resting.** The worker holds nothing, but may wake at any time. Both sides do "store, fence, load": the worker
//!   stores its cell and then loads pointers; control stores the pointer and then loads cells. Sequentially consistent
//!   fences have one order. If the worker's comes first, control sees it awake, with an epoch before the stamp, and
//!   keeps the memory (a later epoch is the case above). If control's comes first, the worker loads the new pointer.
//!
//! A cell may be older than what its worker holds. That only delays a drop.
//!
//! `grace/model.rs` tries all orders of these steps with loom.

#[cfg(all(test, loom))]
mod model;
mod sync;

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64 as Counter;
use sync::{Arc, AtomicPtr, AtomicU64, Mutex, MutexGuard, Ordering, fence, yield_now};

/// The cell of a worker that rests and so holds nothing.
const RESTING: u64 = 0;

/// The workers and the retired memory of one program. Clones are the same domain.
#[derive(Clone)]
pub struct Domain(Arc<Inner>);

struct Inner {
    /// Counts the changes that retired something; starts at 1.
    epoch: AtomicU64,
    /// See [`Domain::shapes`].
    shapes: AtomicU64,
    workers: Mutex<Vec<Arc<Seen>>>,
    limbo: Mutex<VecDeque<(u64, Box<dyn Send>)>>,
}

/// Numbers for [`Domain::shapes`], so that no two domains ever have the same one.
static NEXT_SHAPES: Counter = Counter::new(1);

/// The epoch that a worker saw at its last quiescent point, or [`RESTING`]. Alone on its pair of cache lines.
#[repr(align(128))]
struct Seen(AtomicU64);

/// A point in time of a [`Domain`]: [`Domain::passed`] says whether all workers have gone beyond it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

impl std::fmt::Debug for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stamp")
    }
}

impl Default for Domain {
    fn default() -> Domain {
        Domain::new()
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Domain")
    }
}

impl Domain {
    /// A domain without workers.
    pub fn new() -> Domain {
        Domain(Arc::new(Inner {
            epoch: AtomicU64::new(1),
            shapes: AtomicU64::new(NEXT_SHAPES.fetch_add(1, Ordering::Relaxed)),
            workers: Mutex::default(),
            limbo: Mutex::default(),
        }))
    }

    /// A worker for the calling thread. It starts awake: it must pass quiescent points from now on, or rest.
    pub fn worker(&self) -> Worker {
        let seen = Arc::new(Seen(AtomicU64::new(RESTING)));
        lock(&self.0.workers).push(Arc::clone(&seen));
        let mut worker = Worker { seen, domain: self.clone(), awake: false };
        worker.wake();
        worker
    }

    /// Whether two handles are of the same domain.
    pub fn is(&self, other: &Domain) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that changes when the kind of a [lookup shape](super::LookupShape) of some table does, and that no other
    /// domain has had: while it stays, code compiled for the shapes fits.
    #[inline]
    pub fn shapes(&self) -> u64 {
        self.0.shapes.load(Ordering::Acquire)
    }

    /// The kind of a lookup shape has changed.
    pub(crate) fn shape_changed(&self) {
        self.0.shapes.store(NEXT_SHAPES.fetch_add(1, Ordering::Relaxed), Ordering::Release);
    }

    /// Drops `garbage` when no worker can hold it any more. What it replaced must be unreachable by now.
    pub fn retire(&self, garbage: impl Send + 'static) {
        let stamp = self.stamp();
        lock(&self.0.limbo).push_back((stamp.0, Box::new(garbage)));
        self.collect();
    }

    /// Now: what was unlinked before this is out of every worker's hands once the stamp has [passed](Domain::passed).
    pub fn stamp(&self) -> Stamp {
        Stamp(self.0.epoch.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Whether every worker has passed a quiescent point since the stamp was taken.
    pub fn passed(&self, stamp: Stamp) -> bool {
        stamp.0 <= self.oldest_seen()
    }

    /// Waits until every worker has passed a quiescent point, and drops what was retired before. (Garbage that another
    /// thread has collected meanwhile is dropped by that thread, perhaps a moment later.) A worker of the calling thread
    /// must rest or have passed its own point since the last change.
    pub fn wait(&self) {
        let stamp = self.stamp();
        while !self.passed(stamp) {
            yield_now();
        }
        self.collect();
    }

    /// Drops what no worker can hold any more, and says how much is left.
    pub fn collect(&self) -> usize {
        let oldest = self.oldest_seen();
        let mut limbo = lock(&self.0.limbo);
        let ready = limbo.partition_point(|(stamp, _)| *stamp <= oldest);
        let free: Vec<_> = limbo.drain(..ready).collect();
        let left = limbo.len();
        drop(limbo);
        drop(free);
        left
    }

    fn oldest_seen(&self) -> u64 {
        // Pairs with the fence of a worker that wakes: either we see it awake, or it sees what we unlinked.
        fence(Ordering::SeqCst);
        let workers = lock(&self.0.workers);
        let seen = workers.iter().map(|worker| worker.0.load(Ordering::Acquire));
        seen.filter(|&seen| seen != RESTING).min().unwrap_or(u64::MAX)
    }
}

/// One thread's right to read what a domain protects.
pub struct Worker {
    seen: Arc<Seen>,
    domain: Domain,
    awake: bool,
}

impl Worker {
    /// The domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Passes a quiescent point: nothing read before is held. One load and one store, to be done for each batch.
    #[inline]
    pub fn quiescent(&mut self) {
        if !self.awake {
            return self.wake();
        }
        let epoch = self.domain.0.epoch.load(Ordering::Acquire);
        self.seen.0.store(epoch, Ordering::Release);
    }

    /// Rests until the guard is dropped: a worker that waits for packets holds nobody up.
    pub fn rest(&mut self) -> Resting<'_> {
        self.sleep();
        Resting(self)
    }

    /// Rests until [`Worker::wake`] or the next quiescent point. Meanwhile it reads nothing: all its keys miss.
    pub fn sleep(&mut self) {
        self.awake = false;
        self.seen.0.store(RESTING, Ordering::Release);
    }

    /// Ends [`Worker::sleep`].
    pub fn wake(&mut self) {
        let epoch = self.domain.0.epoch.load(Ordering::Acquire);
        self.seen.0.store(epoch, Ordering::Relaxed);
        // Before anything is read: pairs with the fence of `oldest_seen`.
        fence(Ordering::SeqCst);
        self.awake = true;
    }

    /// Whether it may read now what that domain protects.
    #[inline]
    pub(crate) fn reads(&self, domain: &Domain) -> bool {
        self.awake && domain.is(&self.domain)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        lock(&self.domain.0.workers).retain(|seen| !Arc::ptr_eq(seen, &self.seen));
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Worker")
    }
}

/// A worker that rests. It wakes when this is dropped.
pub struct Resting<'a>(&'a mut Worker);

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// The writing side of a published value: nothing else replaces it.
pub(crate) struct Publisher<T: Send + Sync + 'static> {
    cell: Arc<Cell<T>>,
    domain: Domain,
}

/// Reads a published value, on behalf of a worker.
pub(crate) struct Subscriber<T: Send + Sync + 'static> {
    cell: Arc<Cell<T>>,
    domain: Domain,
}

/// A pointer from `Box::into_raw`, owned by the cell.
struct Cell<T>(AtomicPtr<T>);

impl<T> Drop for Cell<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, publisher and subscribers are gone, and what workers still read
        // borrows a subscriber's worker while the publisher keeps the cell alive (see `Publisher::drop`).
        drop(unsafe { Box::from_raw(self.0.load(Ordering::Relaxed)) });
    }
}

impl<T: Send + Sync + 'static> Publisher<T> {
    pub(crate) fn new(domain: &Domain, value: T) -> Publisher<T> {
        let cell = Arc::new(Cell(AtomicPtr::new(Box::into_raw(Box::new(value)))));
        Publisher { cell, domain: domain.clone() }
    }

    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    pub(crate) fn subscribe(&self) -> Subscriber<T> {
        Subscriber { cell: Arc::clone(&self.cell), domain: self.domain.clone() }
    }

    /// The value as it is now.
    pub(crate) fn current(&self) -> &T {
        // SAFETY: only `publish` replaces the value, which needs this publisher exclusively.
        unsafe { &*self.cell.0.load(Ordering::Relaxed) }
    }

    /// Replaces the value. Batches that start after this returned see the new one.
    pub(crate) fn publish(&mut self, value: T) {
        let old = self.cell.0.swap(Box::into_raw(Box::new(value)), Ordering::AcqRel);
        // SAFETY: the old pointer came from a box, and from now on nobody can load it again. The grace period covers
        // workers that have loaded it.
        self.domain.retire(unsafe { Box::from_raw(old) });
    }
}

impl<T: Send + Sync + 'static> Drop for Publisher<T> {
    fn drop(&mut self) {
        // Workers may be reading: the cell lives on until they have passed a quiescent point.
        self.domain.retire(Arc::clone(&self.cell));
    }
}

impl<T: Send + Sync + 'static> Clone for Subscriber<T> {
    fn clone(&self) -> Subscriber<T> {
        Subscriber { cell: Arc::clone(&self.cell), domain: self.domain.clone() }
    }
}

impl<T: Send + Sync + 'static> Subscriber<T> {
    /// The value as of now, valid until the worker's next quiescent point. `None` for a worker that sleeps or is of
    /// another domain.
    #[inline]
    pub(crate) fn get<'w>(&self, worker: &'w Worker) -> Option<&'w T> {
        if !worker.reads(&self.domain) {
            return None;
        }
        // SAFETY: the worker is awake in the domain that the value is retired to, so the value outlives the
        // worker's next quiescent point, which `'w` precedes.
        Some(unsafe { &*self.cell.0.load(Ordering::Acquire) })
    }
}

impl<T: Send + Sync + 'static> Drop for Subscriber<T> {
    fn drop(&mut self) {
        // As for the publisher: the last owner of the cell may be this subscriber, with a worker still reading.
        self.domain.retire(Arc::clone(&self.cell));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code of others runs under these locks, so what they protect is whole even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Noted(Arc<AtomicU64>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn memory_is_returned_after_every_worker_passed_a_quiescent_point() {
        let (domain, dropped) = (Domain::new(), Arc::new(AtomicU64::new(0)));
        let count = || dropped.load(Ordering::Relaxed);
        domain.retire(Noted(Arc::clone(&dropped)));
        assert_eq!(count(), 1, "without workers at once");

        let (mut first, mut second) = (domain.worker(), domain.worker());
        domain.retire(Noted(Arc::clone(&dropped)));
        first.quiescent();
        assert_eq!((domain.collect(), count()), (1, 1));
        second.quiescent();
        assert_eq!((domain.collect(), count()), (0, 2));

        domain.retire(Noted(Arc::clone(&dropped)));
        first.quiescent();
        let resting = second.rest();
        assert_eq!((domain.collect(), count()), (0, 3), "a resting worker holds nobody up");
        drop(resting);
        domain.retire(Noted(Arc::clone(&dropped)));
        first.quiescent();
        assert_eq!((domain.collect(), count()), (1, 3), "a woken one does");
        drop(second);
        assert_eq!((domain.collect(), count()), (0, 4));
    }

    #[test]
    fn a_published_value_stays_while_it_is_read() {
        let domain = Domain::new();
        let dropped = Arc::new(AtomicU64::new(0));
        let mut publisher = Publisher::new(&domain, (1, Noted(Arc::clone(&dropped))));
        let subscriber = publisher.subscribe();
        let mut worker = domain.worker();
        let read = subscriber.get(&worker).unwrap();
        publisher.publish((2, Noted(Arc::clone(&dropped))));
        assert_eq!((read.0, dropped.load(Ordering::Relaxed)), (1, 0));
        assert_eq!(subscriber.get(&worker).unwrap().0, 2);
        drop((publisher, subscriber));
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        worker.quiescent();
        domain.collect();
        assert_eq!(dropped.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_worker_of_another_domain_reads_nothing() {
        let publisher = Publisher::new(&Domain::new(), 1);
        assert!(publisher.subscribe().get(&Domain::new().worker()).is_none());
    }
}
